/* What the plan needs to know: where retention's limits lie, and what the groups still want. Asks the archive and the server, decides nothing. */
#include <stdio.h>

#include "cycle_priv.h"
#include "log.h"

void silt_floors_release(struct silt_floors *floors)
{
    silt_buf_release(&floors->floors);
    silt_buf_release(&floors->released);
}

/* ---- retention ---- */

/* Live entries above C, at least: LEN less what the archive has from FIRST to C. Too small a number only keeps more. */
static enum silt_status live_above(struct silt_archiver *archiver, const struct silt_work *work,
                                   uint64_t *ret, struct silt_err *err)
{
    const struct silt_stream_row *row = &work->stream.row;
    const struct silt_look *look = &archiver->look;
    struct silt_range damaged;
    uint64_t below = 0;
    *ret = 0;
    if (silt_wire_id_compare(look->last.id, row->custody) <= 0) return SILT_OK;
    if (!silt_wire_id_less(row->custody, look->first.id)) {
        enum silt_status status = silt_archive_count(
            archiver->source, row->life, row->ns, (struct silt_range){look->first.id, row->custody},
            &below, &damaged, err);
        if (status != SILT_OK) return status;
    }
    if (look->facts.length > below) *ret = look->facts.length - below;
    return SILT_OK;
}

/* The id of the n-th newest live entry comes from the archive's own counts (design §5). */
static enum silt_status entries_floor(struct silt_archiver *archiver, struct silt_work *work,
                                      struct silt_plan_input *plan, struct silt_err *err)
{
    const struct silt_stream_row *row = &work->stream.row;
    uint64_t above, keep = work->config->keep.entries;
    if (archiver->look.facts.length <= keep) return SILT_OK;
    enum silt_status status = live_above(archiver, work, &above, err);
    if (status != SILT_OK) return status;
    if (above >= keep) {
        plan->has_entries_floor = true; /* all of the archive may go */
        if (!silt_wire_id_next(row->custody, &plan->entries_floor))
            plan->entries_floor = row->custody;
        return SILT_OK;
    }
    status = silt_archive_nth_newest(archiver->source, row->life, row->ns, row->custody,
                                     keep - above, &plan->entries_floor, err);
    plan->has_entries_floor = status == SILT_OK;
    return status == SILT_END ? SILT_OK : status;
}

static enum silt_status bytes_floor(struct silt_archiver *archiver, struct silt_work *work,
                                    struct silt_plan_input *plan, struct silt_err *err)
{
    const struct silt_stream_row *row = &work->stream.row;
    if (work->config->fold == SILT_FOLD_ON_TRIM) {
        enum silt_status status = silt_floors_live_bytes(archiver, work, err);
        plan->has_bytes_floor = status == SILT_OK && work->state->has_bytes_floor;
        plan->bytes_floor = work->state->bytes_floor;
        return status;
    }
    enum silt_status status =
        silt_archive_newest_bytes(archiver->source, row->life, row->ns, row->custody,
                                  work->config->keep.bytes, &plan->bytes_floor, err);
    plan->has_bytes_floor = status == SILT_OK;
    return status == SILT_END ? SILT_OK : status;
}

/* Entries of a page, newest first, until they hold more than the limit; true: the floor was found. */
static bool pass_bytes(const struct silt_page *page, uint64_t limit, uint64_t *sum,
                       struct silt_work_state *state)
{
    for (size_t i = 0; i < page->entry_count; i++) {
        *sum += silt_entry_bytes(&page->entries[i]);
        if (*sum > limit && state->has_bytes_floor) return true;
        state->bytes_floor = page->entries[i].id; /* the newest stays, whatever it holds */
        state->has_bytes_floor = true;
    }
    return false;
}

enum silt_status silt_floors_live_bytes(struct silt_archiver *archiver, struct silt_work *work,
                                        struct silt_err *err)
{
    struct silt_work_state *state = work->state;
    const struct silt_facts *facts = &archiver->look.facts;
    uint64_t limit = work->config->keep.bytes; /* another one after a reload */
    if (state->bytes_floor_added == facts->entries_added &&
        state->bytes_floor_length == facts->length && state->bytes_floor_limit == limit)
        return SILT_OK;
    struct silt_page_request ask = {.key = silt_work_key(work),
                                    .from = SILT_WIRE_ID_MIN,
                                    .to = facts->last,
                                    .reverse = true,
                                    .what = SILT_LOOK_READER};
    uint64_t sum = 0;
    state->has_bytes_floor = false;
    state->bytes_floor_length = UINT64_MAX; /* until the walk has come to its end */
    for (bool more = facts->has_first; more;) {
        ask.count = silt_page_count(&state->page_size, archiver->config->page_entries,
                                    archiver->config->page_bytes);
        enum silt_status status = silt_page_append(archiver->conn, &ask, err);
        if (status == SILT_OK)
            status = silt_page_receive(archiver->conn, &ask, &archiver->page, err);
        if (status != SILT_OK) return status;
        const struct silt_page *page = &archiver->page;
        if (pass_bytes(page, limit, &sum, state) || !page->full) break;
        more = silt_wire_id_prev(page->entries[page->entry_count - 1].id, &ask.to);
    }
    state->bytes_floor_added = facts->entries_added;
    state->bytes_floor_length = facts->length;
    state->bytes_floor_limit = limit;
    return SILT_OK;
}

/* ---- groups ---- */

static enum silt_status behind(struct silt_archiver *archiver, const struct silt_work *work,
                               struct silt_wire_id floor, uint64_t *ret, struct silt_err *err)
{
    const struct silt_stream_row *row = &work->stream.row;
    const struct silt_facts *facts = &archiver->look.facts;
    struct silt_range damaged;
    struct silt_wire_id from = silt_wire_id_less(floor, facts->first) ? facts->first : floor;
    uint64_t above =
        facts->entries_added > row->custody_added ? facts->entries_added - row->custody_added : 0;
    *ret = above;
    if (silt_wire_id_less(row->custody, from)) return SILT_OK;
    enum silt_status status =
        silt_archive_count(archiver->source, row->life, row->ns,
                           (struct silt_range){from, row->custody}, ret, &damaged, err);
    *ret += above;
    return status;
}

/* The first id that the group still wants: its oldest pending, else the successor of what it was given last. */
static enum silt_status group_floor(struct silt_archiver *archiver, struct silt_work *work,
                                    const struct silt_look_group *group,
                                    struct silt_plan_floor *ret, struct silt_err *err)
{
    struct silt_wire_id oldest;
    *ret = (struct silt_plan_floor){.group = group->name};
    if (!silt_wire_id_next(group->last_delivered, &ret->floor)) ret->floor = SILT_WIRE_ID_MAX;
    if (group->pending == 0) return SILT_OK;
    enum silt_status status = silt_look_oldest_pending(
        archiver->conn, silt_work_key(work), group->name, &archiver->scratch, &oldest, err);
    if (status == SILT_END) return SILT_OK;
    if (status == SILT_OK && silt_wire_id_less(oldest, ret->floor)) {
        ret->floor = oldest;
        ret->pending = true;
    }
    return status;
}

static enum silt_status add_group(struct silt_archiver *archiver, struct silt_work *work,
                                  const struct silt_look_group *group, struct silt_floors *floors,
                                  struct silt_err *err)
{
    struct silt_plan_floor floor;
    const struct silt_keep *limit = &work->config->group_limit;
    enum silt_status status = group_floor(archiver, work, group, &floor, err);
    if (status != SILT_OK) return status;
    if (limit->has_age || limit->has_entries) {
        uint64_t entries = 0;
        struct silt_wire_id first = archiver->look.facts.first;
        if (limit->has_entries) status = behind(archiver, work, floor.floor, &entries, err);
        if (status != SILT_OK) return status;
        if (silt_plan_releases(limit, archiver->now_ms,
                               silt_wire_id_less(floor.floor, first) ? first : floor.floor,
                               entries)) {
            floors->released_count++;
            return silt_buf_put(&floors->released, &group->name, sizeof group->name);
        }
    }
    floors->plan.floor_count++;
    return silt_buf_put(&floors->floors, &floor, sizeof floor);
}

enum silt_status silt_floors_groups(struct silt_archiver *archiver, struct silt_work *work,
                                    struct silt_floors *floors, struct silt_err *err)
{
    for (size_t i = 0; i < archiver->look.group_count; i++) {
        if (archiver->look.groups[i].is_silt) continue;
        enum silt_status status = add_group(archiver, work, &archiver->look.groups[i], floors, err);
        if (status == SILT_ERR_MEMORY) return silt_fail(err, status, NULL);
        if (status != SILT_OK) return status;
    }
    floors->plan.floors = (const struct silt_plan_floor *)(const void *)floors->floors.at;
    return SILT_OK;
}

/* ---- groups that came too late ---- */

/* A group that was created, or set back, below the first live entry: the server gives it nothing of what was trimmed (field report B2). */
static bool is_behind(const struct silt_archiver *archiver, const struct silt_look_group *group)
{
    const struct silt_facts *facts = &archiver->look.facts;
    return !group->is_silt && facts->has_first &&
           silt_wire_id_less(group->last_delivered, facts->first);
}

/* Archived entries after the group's place and before the first live one. */
static enum silt_status missed_by(struct silt_archiver *archiver, const struct silt_work *work,
                                  const struct silt_look_group *group, uint64_t *ret,
                                  struct silt_err *err)
{
    const struct silt_stream_row *row = &work->stream.row;
    struct silt_range range, damaged;
    *ret = 0;
    if (!silt_wire_id_next(group->last_delivered, &range.from) ||
        !silt_wire_id_prev(archiver->look.facts.first, &range.to) ||
        silt_wire_id_less(range.to, range.from))
        return SILT_OK;
    return silt_archive_count(archiver->source, row->life, row->ns, range, ret, &damaged, err);
}

static uint64_t add_behind(uint64_t sum, const struct silt_look_group *group)
{
    sum = silt_checksum(group->name, sum);
    return silt_checksum(silt_view(&group->last_delivered, sizeof group->last_delivered), sum);
}

static void say_behind(const struct silt_archiver *archiver, const struct silt_work *work,
                       const struct silt_look_group *group, uint64_t missed)
{
    SILT_LOG(SILT_LOG_WARN, "group behind", SILT_KEY("stream", silt_work_key(work)),
             SILT_KEY("group", group->name), SILT_ID("after", group->last_delivered),
             SILT_ID("first_live", archiver->look.facts.first), SILT_NUM("entries", missed),
             SILT_STR("copy", archiver->config->archive_path),
             SILT_STR("remedy", "the server gives it none of these: silt read, silt get"));
}

/* Who they are (a sum of names and places), and each of them said. A damaged segment is no reason to stop here: what reads it will tell. */
static enum silt_status walk_behind(struct silt_archiver *archiver, const struct silt_work *work,
                                    bool say, uint64_t *ret_sum, struct silt_err *err)
{
    const struct silt_look *look = &archiver->look;
    *ret_sum = 0;
    for (size_t i = 0; i < look->group_count; i++) {
        uint64_t missed = 0;
        if (!is_behind(archiver, &look->groups[i])) continue;
        enum silt_status status = missed_by(archiver, work, &look->groups[i], &missed, err);
        if (status != SILT_OK && status != SILT_ERR_CORRUPT) return status;
        if (missed == 0) continue;
        *ret_sum = add_behind(*ret_sum, &look->groups[i]);
        if (say) say_behind(archiver, work, &look->groups[i], missed);
    }
    return SILT_OK;
}

/* Each such group once, and again when it is set back or another one comes; counted only when something has moved. */
static enum silt_status tell_behind(struct silt_archiver *archiver, struct silt_work *work,
                                    struct silt_err *err)
{
    const struct silt_look *look = &archiver->look;
    struct silt_work_state *state = work->state;
    uint64_t counted = 0, told = 0;
    for (size_t i = 0; i < look->group_count; i++)
        if (is_behind(archiver, &look->groups[i])) counted = add_behind(counted, &look->groups[i]);
    if (counted != 0)
        counted = silt_checksum(silt_view(&look->facts.first, sizeof look->facts.first), counted);
    if (counted == state->behind_counted) return SILT_OK;
    enum silt_status status = walk_behind(archiver, work, false, &told, err);
    if (status == SILT_OK && told != state->behind_told)
        status = walk_behind(archiver, work, true, &told, err);
    if (status != SILT_OK) return status;
    state->behind_counted = counted;
    state->behind_told = told;
    return SILT_OK;
}

enum silt_status silt_floors_gather(struct silt_archiver *archiver, struct silt_work *work,
                                    struct silt_floors *ret, struct silt_err *err)
{
    const struct silt_stream_row *row = &work->stream.row;
    const struct silt_keep *keep = &work->config->keep;
    struct silt_plan_input *plan = &ret->plan;
    *plan = (struct silt_plan_input){.keep = *keep,
                                     .now_ms = archiver->now_ms,
                                     .custody = row->custody,
                                     .folded_any = row->folded_any,
                                     .newest = archiver->look.last.id};
    enum silt_status status = SILT_OK;
    if (!archiver->look.facts.has_first || !row->folded_any) return SILT_OK;
    if (!archiver->preview) status = tell_behind(archiver, work, err);
    if (status != SILT_OK) return status;
    if (keep->has_entries) status = entries_floor(archiver, work, plan, err);
    if (status == SILT_OK && keep->has_bytes) status = bytes_floor(archiver, work, plan, err);
    if (status != SILT_OK || work->config->groups == SILT_GROUPS_IGNORE) return status;
    struct silt_plan without = silt_plan_trim(plan);
    return silt_wire_id_less(archiver->look.facts.first, without.threshold)
               ? silt_floors_groups(archiver, work, ret, err)
               : SILT_OK;
}
