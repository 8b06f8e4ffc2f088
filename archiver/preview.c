/* `--plan`: what a pass would do, from a look, the groups and a walk over the head of the live stream. Reads only: no lock, no marker, no row. */
#include <inttypes.h>
#include <stdio.h>

#include "alloc.h"
#include "cycle_priv.h"

enum { GUESSED_SEGMENT_ENTRIES = 4096 }; /* before there is a segment to learn from */

/* Where retention would let the stream begin, and who stops it earlier. */
struct head {
    uint64_t entries;          /* so many from the front, by keep: entries */
    struct silt_wire_id below; /* all below, by age and bytes */
    struct silt_wire_id limit; /* not beyond: groups, the newest */
    enum silt_held_by held_by; /* who set the limit */
    const struct silt_plan_floor *by;
};

static enum silt_status retention(struct silt_archiver *archiver, struct silt_work *work,
                                  struct head *head, struct silt_err *err)
{
    const struct silt_keep *keep = &work->config->keep;
    const struct silt_facts *facts = &archiver->look.facts;
    if (keep->has_entries && facts->length > keep->entries)
        head->entries = facts->length - keep->entries;
    if (keep->has_age && archiver->now_ms > keep->age_ms)
        head->below = (struct silt_wire_id){archiver->now_ms - keep->age_ms, 0};
    if (!keep->has_bytes) return SILT_OK;
    enum silt_status status = silt_floors_live_bytes(archiver, work, err);
    if (status == SILT_OK && work->state->has_bytes_floor &&
        silt_wire_id_less(head->below, work->state->bytes_floor))
        head->below = work->state->bytes_floor;
    return status;
}

static void find_limit(const struct silt_look *look, const struct silt_floors *floors,
                       struct head *head)
{
    head->limit = look->last.id;
    head->held_by = SILT_HELD_NEWEST;
    for (size_t i = 0; i < floors->plan.floor_count; i++) {
        const struct silt_plan_floor *floor = &floors->plan.floors[i];
        if (!silt_wire_id_less(floor->floor, head->limit)) continue;
        head->limit = floor->floor;
        head->held_by = floor->pending ? SILT_HELD_PENDING : SILT_HELD_GROUP;
        head->by = floor;
    }
}

/* Walks from the front to the first entry that stays. */
static enum silt_status walk_head(struct silt_archiver *archiver, struct silt_work *work,
                                  const struct head *head, struct silt_preview *ret,
                                  struct silt_err *err)
{
    struct silt_page_request ask = {
        .key = silt_work_key(work), .to = SILT_WIRE_ID_MAX, .what = SILT_LOOK_READER};
    ret->threshold = archiver->look.facts.first;
    for (bool more = true; more;) {
        ask.count = silt_page_count(&work->state->page_size, archiver->config->page_entries,
                                    archiver->config->page_bytes);
        enum silt_status status = silt_page_append(archiver->conn, &ask, err);
        if (status == SILT_OK)
            status = silt_page_receive(archiver->conn, &ask, &archiver->page, err);
        if (status != SILT_OK) return status;
        const struct silt_page *page = &archiver->page;
        for (size_t i = 0; i < page->entry_count; i++) {
            struct silt_wire_id id = page->entries[i].id;
            ret->threshold = id;
            bool goes = ret->trim_entries < head->entries || silt_wire_id_less(id, head->below);
            if (!goes || !silt_wire_id_less(id, head->limit)) {
                ret->held_by = goes ? head->held_by : SILT_HELD_RETENTION;
                return SILT_OK;
            }
            ret->trim_entries++;
        }
        more = page->full && silt_wire_id_next(page->entries[page->entry_count - 1].id, &ask.from);
    }
    return SILT_OK;
}

static enum silt_status memory(struct silt_archiver *archiver, struct silt_work *work,
                               struct silt_preview *ret, struct silt_err *err)
{
    const struct silt_view argv[] = {silt_view_str("MEMORY"), silt_view_str("USAGE"),
                                     silt_work_key(work), silt_view_str("SAMPLES"),
                                     silt_view_str("5")};
    enum silt_status status = silt_conn_call(archiver->conn, argv, 5, &archiver->scratch, err);
    if (status == SILT_ERR_SERVER_DENIED)
        return SILT_OK; /* not among the rights silt asks for: the figure stays 0 */
    if (status != SILT_OK) return status;
    if (archiver->scratch.nodes[0].type == SILT_NODE_INTEGER)
        ret->memory_bytes = archiver->scratch.nodes[0].value;
    work->memory_bytes = ret->memory_bytes;
    if (ret->live_entries > 0)
        ret->trim_memory_bytes = (uint64_t)((double)ret->memory_bytes * (double)ret->trim_entries /
                                            (double)ret->live_entries);
    return SILT_OK;
}

static enum silt_status folds(struct silt_archiver *archiver, struct silt_work *work,
                              struct silt_preview *ret, struct silt_err *err)
{
    const struct silt_stream_row *row = silt_work_row(work);
    const struct silt_facts *facts = &archiver->look.facts;
    struct silt_range damaged;
    struct silt_segment_info info;
    uint64_t below = 0, per_segment = GUESSED_SEGMENT_ENTRIES;
    bool folded = row && row->folded_any;
    if (folded && facts->has_first && !silt_wire_id_less(row->custody, facts->first)) {
        enum silt_status status = silt_archive_count(
            archiver->source, row->life, row->ns, (struct silt_range){facts->first, row->custody},
            &below, &damaged, err);
        if (status != SILT_OK) return status;
    }
    ret->fold_entries = facts->length > below ? facts->length - below : 0;
    if (work->config->fold == SILT_FOLD_ON_TRIM)
        ret->fold_entries = ret->trim_entries > below ? ret->trim_entries - below : 0;
    if (folded &&
        silt_store_segment(archiver->store, row->life, row->ns, SILT_WIRE_ID_MIN, SILT_SEEK_FORWARD,
                           &archiver->value, &info, NULL) == SILT_OK &&
        info.count > per_segment / 8)
        per_segment = info.count;
    ret->segments = (ret->fold_entries + per_segment - 1) / per_segment;
    return SILT_OK;
}

static bool judge(const struct silt_archiver *archiver, const struct silt_work *work,
                  struct silt_preview *ret)
{
    const struct silt_stream_row *row = silt_work_row(work);
    bool released = row && row->verdict == SILT_VERDICT_RELEASED;
    if (released || silt_needs_adopt(archiver, row)) {
        ret->held_by = SILT_HELD_VERDICT;
        snprintf(ret->held_name, sizeof ret->held_name, "%s: silt adopt takes it up",
                 released ? "released" : "the archive was restored or imported");
        return false;
    }
    struct silt_custody custody = silt_judge_table(archiver, work);
    if (custody.row == SILT_CUSTODY_FIRST_CONTACT || custody.row == SILT_CUSTODY_CONTINUES ||
        custody.row == SILT_CUSTODY_MOVE_MARKER)
        return true;
    ret->held_by = SILT_HELD_VERDICT;
    ret->awaited =
        custody.row == SILT_CUSTODY_WAIT && !row && archiver->look.state == SILT_LOOK_GONE;
    snprintf(ret->held_name, sizeof ret->held_name, "%s", custody.reason);
    return false;
}

enum silt_status silt_archiver_preview(struct silt_archiver *archiver, struct silt_work *work,
                                       struct silt_preview *ret, struct silt_err *err)
{
    const struct silt_keep *keep = &work->config->keep;
    SILT_CLEANUP(silt_floors_release) struct silt_floors floors = {0};
    struct silt_preview preview = {0};
    struct head head = {0};
    enum silt_status status = silt_conn_open(archiver->conn, err);
    if (status == SILT_OK)
        status = silt_look_time(archiver->conn, &archiver->scratch, &archiver->now_ms, err);
    if (status == SILT_OK)
        status = silt_look_call(archiver->conn, silt_work_key(work), SILT_LOOK_ARCHIVER,
                                &archiver->look, err);
    if (status != SILT_OK) return status;
    work->state->page_size.sparse_cap = silt_look_page_cap(&archiver->look);
    preview.live_entries =
        archiver->look.state == SILT_LOOK_STREAM ? archiver->look.facts.length : 0;
    bool goes_on = judge(archiver, work, &preview);
    bool keeps = keep->has_age || keep->has_entries || keep->has_bytes;
    if (goes_on && !keeps) preview.held_by = SILT_HELD_SHADOW;
    if (goes_on && keeps && preview.live_entries > 0) {
        status = retention(archiver, work, &head, err);
        if (status == SILT_OK && work->config->groups == SILT_GROUPS_HOLD)
            status = silt_floors_groups(archiver, work, &floors, err);
        find_limit(&archiver->look, &floors, &head);
        if (status == SILT_OK) status = walk_head(archiver, work, &head, &preview, err);
        if (head.by && preview.held_by == head.held_by)
            silt_escape(head.by->group, preview.held_name, sizeof preview.held_name);
    }
    if (status == SILT_OK && goes_on) status = folds(archiver, work, &preview, err);
    if (status == SILT_OK && preview.live_entries > 0)
        status = memory(archiver, work, &preview, err);
    if (status == SILT_OK) *ret = preview;
    return status;
}
