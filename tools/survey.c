/* A stream's segments and gaps by their headers and rows. Must not know how they are shown. */
#include "survey.h"

#define LIVES_MAX 64

struct part {
    uint64_t life;
    struct silt_wire_id below; /* of a parent: entries from here on belong to its child */
    bool is_parent;
};

struct visit {
    struct silt_survey *survey;
    const struct part *part;
    enum silt_status status;
};

void silt_survey_release(struct silt_survey *survey)
{
    silt_buf_release(&survey->list);
    silt_buf_release(&survey->gaps);
}

static bool visit_segment(void *ctx, enum silt_status status, const struct silt_segment_info *info)
{
    struct visit *visit = ctx;
    struct silt_survey *survey = visit->survey;
    struct silt_segment_info seen = *info;
    if (visit->part->is_parent && !silt_wire_id_less(info->first, visit->part->below)) return false;
    if (status != SILT_OK) {
        seen = (struct silt_segment_info){.life = visit->part->life, .first = info->first};
        survey->damaged++;
    } else {
        survey->entries += info->count;
        survey->foreign += info->foreign_count;
        survey->values_bytes += info->values_bytes;
        survey->stored_bytes += info->stored_bytes;
        if (!survey->any) survey->first = info->first;
        survey->last = info->last;
        survey->any = true;
    }
    survey->segments++;
    visit->status = silt_buf_put(&survey->list, &seen, sizeof seen);
    return visit->status == SILT_OK;
}

static enum silt_status take_life(struct silt_store *store, const struct part *part,
                                  struct silt_survey *survey, struct silt_err *err)
{
    struct visit visit = {.survey = survey, .part = part};
    struct silt_gap_row gap;
    uint64_t cursor = 0;
    enum silt_status status =
        silt_store_segments(store, part->life, survey->row->ns, SILT_WIRE_ID_MIN, SILT_SEEK_FORWARD,
                            visit_segment, &visit, err);
    if (status >= 0 && visit.status != SILT_OK) return silt_fail(err, visit.status, NULL);
    if (status < 0) return status;
    while ((status = silt_store_gap_after(store, part->life, &cursor, &gap, err)) == SILT_OK) {
        if (part->is_parent && !silt_wire_id_less(gap.range.after, part->below)) continue;
        if (silt_buf_put(&survey->gaps, &gap, sizeof gap) != SILT_OK)
            return silt_fail(err, SILT_ERR_MEMORY, NULL);
    }
    return status == SILT_END ? SILT_OK : status;
}

enum silt_status silt_survey_take(struct silt_store *store, const struct silt_stream_row *row,
                                  struct silt_survey *ret, struct silt_err *err)
{
    struct part parts[LIVES_MAX] = {{.life = row->life}};
    size_t count = 1;
    enum silt_status status = SILT_OK;
    *ret = (struct silt_survey){.row = row};
    while (count < LIVES_MAX) {
        struct silt_fork_row fork;
        status = silt_store_fork(store, parts[count - 1].life, &fork, err);
        if (status != SILT_OK) break;
        parts[count] = (struct part){fork.parent, fork.fork, true};
        /* A grandparent's entries end where its child's do, if that is earlier. */
        if (parts[count - 1].is_parent && silt_wire_id_less(parts[count - 1].below, fork.fork))
            parts[count].below = parts[count - 1].below;
        count++;
    }
    if (status < 0) return status;
    ret->lives = count;
    for (status = SILT_OK; count > 0 && status == SILT_OK; count--)
        status = take_life(store, &parts[count - 1], ret, err);
    return status;
}
