/* One stream's fold: what is to go (the whole of it, or what must go), the pages through the worker, the gap arithmetic, the row; all into the batch of the
 * pass. Commits nothing. */
#include <inttypes.h>
#include <stdio.h>

#include "alloc.h"
#include "cycle_priv.h"
#include "faultpoint.h"
#include "log.h"

/* Up to where a fold goes: everything up to `target`, and beyond that up to `entries` entries in all. */
struct goal {
    struct silt_wire_id through; /* all up to here must go */
    uint64_t entries;            /* so many from the front must go, wherever they end */
};

/* Live entries up to C, at most: what the archive has there. */
static enum silt_status live_below(struct silt_archiver *archiver, const struct silt_work *work,
                                   uint64_t *ret, struct silt_err *err)
{
    const struct silt_stream_row *row = &work->stream.row;
    const struct silt_facts *facts = &archiver->look.facts;
    struct silt_range damaged;
    *ret = 0;
    if (!row->folded_any || silt_wire_id_less(row->custody, facts->first)) return SILT_OK;
    return silt_archive_count(archiver->source, row->life, row->ns,
                              (struct silt_range){facts->first, row->custody}, ret, &damaged, err);
}

/* fold: on-trim. An entry must go when any limit says so; the newest never goes. */
static enum silt_status must_go(struct silt_archiver *archiver, struct silt_work *work,
                                struct goal *ret, struct silt_err *err)
{
    const struct silt_keep *keep = &work->config->keep;
    const struct silt_look *look = &archiver->look;
    *ret = (struct goal){0};
    struct silt_wire_id below_newest;
    if (!look->facts.has_first || !silt_wire_id_prev(look->last.id, &below_newest)) return SILT_OK;
    if (keep->has_age && archiver->now_ms > keep->age_ms)
        silt_wire_id_prev((struct silt_wire_id){archiver->now_ms - keep->age_ms, 0}, &ret->through);
    if (keep->has_bytes) {
        enum silt_status status = silt_floors_live_bytes(archiver, work, err);
        if (status != SILT_OK) return status;
        struct silt_wire_id below = SILT_WIRE_ID_MIN;
        if (work->state->has_bytes_floor && silt_wire_id_prev(work->state->bytes_floor, &below) &&
            silt_wire_id_less(ret->through, below))
            ret->through = below;
    }
    if (silt_wire_id_less(below_newest, ret->through)) ret->through = below_newest;
    if (keep->has_entries) {
        uint64_t live = 0, stays = keep->entries > 0 ? keep->entries : 1;
        enum silt_status status = live_below(archiver, work, &live, err);
        if (status != SILT_OK) return status;
        if (look->facts.length > stays && look->facts.length - stays > live)
            ret->entries = look->facts.length - stays - live;
    }
    return SILT_OK;
}

/* ---- fetching ---- */

static bool folds_all(const struct silt_work *work)
{
    return work->config->fold == SILT_FOLD_CONTINUOUS || work->whole;
}

static struct silt_fetch_request prepare(const struct silt_archiver *archiver,
                                         const struct silt_work *work, const char *marker,
                                         const struct silt_custody *custody)
{
    const struct silt_stream_row *row = &work->stream.row;
    return (struct silt_fetch_request){.key = silt_work_key(work),
                                       .marker = silt_view_str(marker),
                                       .marker_at = custody->marker_at,
                                       .opening = &archiver->look.facts,
                                       .after = row->folded_any ? row->custody : SILT_WIRE_ID_MIN,
                                       .max_entries = archiver->limits.fold_entries,
                                       .max_bytes = archiver->limits.fold_bytes,
                                       .page_entries = archiver->config->page_entries,
                                       .page_bytes = archiver->config->page_bytes,
                                       .stop_at_foreign =
                                           work->config->on_foreign == SILT_FOREIGN_HOLD &&
                                           !silt_namespace_is_none(row->ns),
                                       .ns = row->ns};
}

/* A second run goes on where the first ended. */
static enum silt_status fetch_more(struct silt_archiver *archiver, struct silt_work *work,
                                   struct silt_fetch_request *request, struct silt_fetch *fetch,
                                   struct silt_err *err)
{
    struct silt_fetch next;
    request->after = fetch->through;
    enum silt_status status = silt_fetch_run(archiver->conn, archiver->worker, request,
                                             &work->state->page_size, &next, err);
    next.count += fetch->count;
    next.bytes += fetch->bytes;
    next.evidence.custody = fetch->evidence.custody;
    next.count_known.fetched += fetch->count;
    next.count_known.evidence.custody = fetch->evidence.custody;
    if (!next.count_known.is_set) next.count_known = fetch->count_known;
    if (silt_wire_id_less(next.evidence.max_deleted, fetch->evidence.max_deleted))
        next.evidence.max_deleted = fetch->evidence.max_deleted;
    *fetch = next;
    return status;
}

static enum silt_status fetch(struct silt_archiver *archiver, struct silt_work *work,
                              struct silt_fetch_request *request, struct silt_fetch *ret,
                              struct silt_err *err)
{
    struct silt_wire_id last = archiver->look.facts.last;
    request->target = last;
    if (folds_all(work))
        return silt_fetch_run(archiver->conn, archiver->worker, request, &work->state->page_size,
                              ret, err);
    struct goal goal;
    struct silt_wire_id after = request->after;
    enum silt_status status = must_go(archiver, work, &goal, err);
    if (status != SILT_OK) return status;
    request->max_entries =
        goal.entries < archiver->limits.fold_entries ? goal.entries : archiver->limits.fold_entries;
    status = silt_fetch_run(archiver->conn, archiver->worker, request, &work->state->page_size, ret,
                            err);
    bool whole = status == SILT_OK && !ret->broken && !ret->met_foreign;
    if (whole && silt_wire_id_less(ret->through, goal.through) &&
        ret->count < archiver->limits.fold_entries && ret->bytes < archiver->limits.fold_bytes) {
        request->target = goal.through;
        request->max_entries = archiver->limits.fold_entries - ret->count;
        status = fetch_more(archiver, work, request, ret, err);
        ret->reached = ret->reached && silt_wire_id_compare(goal.through, last) >= 0;
    }
    request->after = after;
    work->state->partial =
        ret->count >= archiver->limits.fold_entries || ret->bytes >= archiver->limits.fold_bytes;
    return status;
}

static enum silt_status load_tail(struct silt_archiver *archiver, const struct silt_stream_row *row,
                                  struct silt_view *ret, struct silt_err *err)
{
    struct silt_segment_info info;
    enum silt_status status =
        silt_store_segment(archiver->store, row->life, row->ns, SILT_WIRE_ID_MAX,
                           SILT_SEEK_BACKWARD, &archiver->value, &info, err);
    *ret = status == SILT_OK ? silt_buf_view(&archiver->value) : silt_view(NULL, 0);
    return status == SILT_END ? SILT_OK : status;
}

/* ---- the arithmetic ---- */

/* protocol §6. To LAST: what the opening look promises less what was fetched. Short of it: from the last look that showed all live entries above what was
 * fetched by then (the opening look, where FIRST > C; a later one, where others trimmed in the middle of the fetch); without one, nothing can be said yet. */
static struct silt_gap_sum count_gap(const struct silt_archiver *archiver,
                                     const struct silt_fetch *fetch, uint64_t custody_added,
                                     bool may_rebase)
{
    const struct silt_facts *opening = &archiver->look.facts;
    const struct silt_fetch_count *known = &fetch->count_known;
    struct silt_gap_input input = {.added_now = opening->entries_added,
                                   .custody_added = custody_added,
                                   .fetched = fetch->count,
                                   .reached_last = fetch->reached,
                                   .may_rebase = may_rebase};
    if (!fetch->reached && known->is_set)
        input = (struct silt_gap_input){.added_now = known->added,
                                        .custody_added = custody_added + known->fetched,
                                        .length_now = known->length,
                                        .fetched = fetch->count - known->fetched,
                                        .all_above_custody = true,
                                        .may_rebase = may_rebase};
    return silt_gap_count(&input);
}

/* Where they lay is told best by a look at which they were missing already. */
static const struct silt_gap_evidence *choose_evidence(const struct silt_fetch *fetch,
                                                       uint64_t custody_added, uint64_t missing)
{
    const struct silt_fetch_count *known = &fetch->count_known;
    bool then =
        known->is_set && known->added - custody_added - known->fetched - known->length == missing;
    return !fetch->reached || then ? &known->evidence : &fetch->evidence;
}

static void doubt(struct silt_outcome *ret, const char *format, ...) SILT_PRINTF(2, 3);
static void doubt(struct silt_outcome *ret, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(ret->reason, sizeof ret->reason, format, args);
    va_end(args);
    ret->doubt = true;
    ret->cause = SILT_AUDIT_FOLD_COUNT;
}

/* The last commit did not reach LAST of its look: what others removed above its C counts nowhere before a later fold reaches LAST, and C may have passed it by then
 * (found by tests/model/gaps.pml). */
static bool stopped_short(const struct silt_stream_row *row)
{
    return row->folded_any && row->has_facts && !silt_wire_id_equal(row->custody, row->facts.last);
}

/* How many is known; where, only that it was behind the first entry still live, or above C. */
static struct silt_gap_row describe_overtaken(const struct silt_facts *facts,
                                              const struct silt_stream_row *row, uint64_t missing)
{
    struct silt_gap_row gap = {.life = row->life,
                               .range = {row->custody, facts->last},
                               .precision = SILT_GAP_EXACT,
                               .has_count = true,
                               .count = missing,
                               .count_max = missing,
                               .cause = SILT_GAP_UNKNOWN};
    struct silt_wire_id before;
    if (facts->has_first && silt_wire_id_prev(facts->first, &before) &&
        silt_wire_id_less(before, gap.range.after))
        gap.range.after = before;
    return gap;
}

void silt_fold_settle(const struct silt_archiver *archiver, const struct silt_work *work,
                      const struct silt_fetch *fetch, struct silt_outcome *ret)
{
    const struct silt_stream_row *row = &work->stream.row;
    uint64_t custody_added = row->folded_any ? row->custody_added : 0;
    ret->reached = fetch->reached;
    ret->custody = fetch->reached ? archiver->look.facts.last : fetch->through;
    ret->gap = count_gap(archiver, fetch, custody_added, row->added_estimated);
    if (ret->gap.breaks) {
        doubt(ret, "more entries above the watermark than entries-added %" PRIu64 " promises",
              archiver->look.facts.entries_added);
        return;
    }
    if (ret->gap.missing == 0) return;
    const struct silt_gap_evidence *evidence =
        choose_evidence(fetch, custody_added, ret->gap.missing);
    if (!silt_gap_is_explained(evidence) && stopped_short(row)) {
        ret->gap_row = describe_overtaken(&archiver->look.facts, row, ret->gap.missing);
        ret->gap_row.noticed_ms = archiver->now_ms;
        ret->overtaken = true;
        return;
    }
    if (!silt_gap_is_explained(evidence)) {
        doubt(ret,
              "%" PRIu64
              " entries above the watermark are missing and nothing shows who removed them",
              ret->gap.missing);
        return;
    }
    ret->gap_row = silt_gap_describe(evidence, ret->gap.missing);
    ret->gap_row.life = row->life;
    ret->gap_row.noticed_ms = archiver->now_ms;
}

/* ---- the batch ---- */

static enum silt_status group_facts(const struct silt_look *look, struct silt_buf *ret)
{
    for (size_t i = 0; i < look->group_count; i++) {
        const struct silt_look_group *group = &look->groups[i];
        if (group->is_silt) continue;
        struct silt_group_fact fact = {group->name, group->last_delivered, group->entries_read,
                                       group->pending};
        enum silt_status status = silt_buf_put(ret, &fact, sizeof fact);
        if (status != SILT_OK) return status;
    }
    return SILT_OK;
}

static void fill_row(const struct silt_archiver *archiver, const struct silt_work *work,
                     const struct silt_custody *custody, const struct silt_outcome *outcome,
                     const struct silt_fold_sum *sum, struct silt_stream_row *row)
{
    *row = work->stream.row;
    row->folded_any = true;
    row->custody = outcome->custody;
    row->watermark =
        silt_wire_id_higher(row->watermark, row->custody); /* after an audit W may lie ahead */
    if (outcome->reached || outcome->gap.rebased) row->added_estimated = !outcome->reached;
    row->custody_added = outcome->gap.custody_added;
    row->marker_seen = !silt_work_claimless(work);
    row->marker_found = custody->marker_at;
    row->has_facts = true;
    row->facts = archiver->look.facts;
    row->folded_entries += sum->count;
    row->folded_bytes += sum->values_bytes;
    row->foreign_entries += sum->foreign_count;
    row->gap_entries += outcome->gap.missing;
    row->trimmed_entries += work->state->trimmed_unsaved;
    if (work->state->dirty) row->trim_threshold = work->state->threshold_sent;
    if (work->state->dirty) row->trimmed_at_ms = archiver->now_ms;
    if (sum->count > 0) row->folded_at_ms = archiver->now_ms;
}

static enum silt_status put_segments(struct silt_archiver *archiver, struct silt_err *err)
{
    size_t count;
    const struct silt_fold_segment *segments =
        silt_fold_segments(silt_worker_fold(archiver->worker), &count);
    for (size_t i = 0; i < count; i++) {
        struct silt_batch_part part = {segments[i].info, segments[i].value};
        enum silt_status status =
            segments[i].replaces_tail
                ? silt_batch_replace(archiver->batch, &segments[i].tail, segments[i].tail_checksum,
                                     &part, 1)
                : silt_batch_segment(archiver->batch, &part.info, part.value, false);
        if (status != SILT_OK) return silt_fail(err, status, NULL);
    }
    return SILT_OK;
}

/* Row, gap and segments, whole or not at all. */
static enum silt_status put(struct silt_archiver *archiver, struct silt_work *work,
                            const struct silt_custody *custody, const struct silt_outcome *outcome,
                            const struct silt_fold_sum *sum, struct silt_insert *late,
                            struct silt_err *err)
{
    SILT_CLEANUP(silt_buf_release) struct silt_buf groups = {0};
    struct silt_stream_row row;
    fill_row(archiver, work, custody, outcome, sum, &row);
    if (late) row.late_entries += sum->count;
    enum silt_status status = group_facts(&archiver->look, &groups);
    row.groups = (const struct silt_group_fact *)(const void *)groups.at;
    row.group_count = groups.len / sizeof(struct silt_group_fact);
    if (status == SILT_OK) status = silt_batch_stream(archiver->batch, &row);
    if (status == SILT_OK && outcome->gap.missing > 0)
        status = silt_batch_gap(archiver->batch, &outcome->gap_row);
    if (status == SILT_OK && SILT_FAULTPOINT("half-gathered")) status = SILT_ERR_MEMORY;
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    if (late) return silt_insert_apply(late, archiver->store, archiver->batch, err);
    return sum->count > 0 ? put_segments(archiver, err) : SILT_OK;
}

static void tell(const struct silt_work *work, const struct silt_outcome *outcome,
                 const struct silt_fold_sum *sum, bool late)
{
    if (outcome->gap.rebased)
        SILT_LOG(SILT_LOG_INFO, "count re-based", SILT_KEY("stream", silt_work_key(work)),
                 SILT_NUM("entries_added", outcome->gap.custody_added),
                 SILT_STR("reason", "the audit's estimate was too large"));
    if (outcome->gap.missing > 0) silt_work_tell_gap(work, &outcome->gap_row);
    if (sum->count > 0 && late)
        SILT_LOG(SILT_LOG_INFO, "late", SILT_KEY("stream", silt_work_key(work)),
                 SILT_ID("through", outcome->custody), SILT_NUM("entries", sum->count));
    if (sum->count > 0 && !late)
        SILT_LOG(SILT_LOG_DEBUG, "folding", SILT_KEY("stream", silt_work_key(work)),
                 SILT_ID("first", sum->first), SILT_ID("last", sum->last),
                 SILT_NUM("entries", sum->count));
}

/* Does anything have to be stored? C moves, a gap was found, or the object is met for the first time. */
static bool is_news(const struct silt_work *work, const struct silt_outcome *outcome)
{
    const struct silt_stream_row *row = &work->stream.row;
    return !row->folded_any || outcome->gap.missing > 0 ||
           !silt_wire_id_equal(row->custody, outcome->custody);
}

enum silt_status silt_fold_put(struct silt_archiver *archiver, struct silt_work *work,
                               const struct silt_custody *custody,
                               const struct silt_outcome *outcome, struct silt_insert *late,
                               struct silt_wire_id after, struct silt_err *err)
{
    struct silt_work_state *state = work->state;
    struct silt_fold_sum sum = {0};
    if (late) {
        const struct silt_insert_sum *put_in = silt_insert_sum(late);
        sum.count = put_in->count;
        sum.foreign_count = put_in->foreign_count;
        sum.values_bytes = put_in->values_bytes;
    } else {
        sum = *silt_fold_sum(silt_worker_fold(archiver->worker));
    }
    if (!is_news(work, outcome)) return SILT_OK;
    if (outcome->overtaken) {
        /* The count may be wrong another way, too: by an entry that came up to C behind it, and must not be passed by. */
        char reason[200];
        enum silt_status same =
            silt_judge_live(archiver, work, custody, work->stream.row.custody, reason, err);
        if (same != SILT_OK) return same;
        if (reason[0]) return silt_judge_doubt(archiver, work, SILT_AUDIT_BYTES, reason, err);
    }
    size_t mark = silt_batch_mark(archiver->batch);
    enum silt_status status = put(archiver, work, custody, outcome, &sum, late, err);
    if (status != SILT_OK) {
        /* Promise 1: the folds gathered before are committed all the same, and a row must never go with them without its segments. */
        silt_batch_undo(archiver->batch, mark);
        return status;
    }
    tell(work, outcome, &sum, late != NULL);
    state->pending = true;
    state->pending_after = after;
    state->pending_late = late != NULL;
    state->sum = sum;
    return SILT_OK;
}

static enum silt_status conclude(struct silt_archiver *archiver, struct silt_work *work,
                                 const struct silt_custody *custody,
                                 const struct silt_fetch_request *request,
                                 const struct silt_fetch *fetched, struct silt_err *err)
{
    enum silt_status status = silt_worker_finish(archiver->worker, err);
    if (status == SILT_OK && SILT_FAULTPOINT("after-prove"))
        status = silt_fail(err, SILT_ERR_PROOF, "a test failed after the proof");
    if (status != SILT_OK) return status;
    struct silt_outcome outcome = {0};
    silt_fold_settle(archiver, work, fetched, &outcome);
    if (outcome.doubt) return silt_judge_doubt(archiver, work, outcome.cause, outcome.reason, err);
    work->state->met_foreign = fetched->met_foreign;
    work->state->counted = fetched->reached || fetched->count_known.is_set;
    return silt_fold_put(archiver, work, custody, &outcome, NULL, request->after, err);
}

enum silt_status silt_fold_stream(struct silt_archiver *archiver, struct silt_work *work,
                                  const struct silt_custody *custody, struct silt_err *err)
{
    const struct silt_stream_row *row = &work->stream.row;
    const struct silt_facts *facts = &archiver->look.facts;
    work->state->partial = false;
    if (row->folded_any && silt_wire_id_equal(row->custody, facts->last) &&
        row->custody_added == facts->entries_added) {
        work->state->counted = true; /* nothing was added above C, so nothing was added at all */
        return SILT_OK;
    }
    char marker[SILT_MARKER_TEXT];
    struct silt_view tail;
    silt_work_marker(archiver, work, marker);
    struct silt_fetch_request request = prepare(archiver, work, marker, custody);
    if (row->folded_any && silt_wire_id_less(row->custody, row->watermark))
        return silt_refold(archiver, work, custody, &request, err);
    enum silt_status status = load_tail(archiver, row, &tail, err);
    if (status == SILT_OK)
        status = silt_worker_begin(archiver->worker, row->life, row->ns, tail, err);
    if (status != SILT_OK) return status;
    struct silt_fetch fetched = {.through = request.after, .evidence = {.custody = request.after}};
    enum silt_status fetch_status = fetch(archiver, work, &request, &fetched, err);
    if (folds_all(work)) work->state->partial = !fetched.reached && !fetched.met_foreign;
    /* What came before a failure is whole and proven: it is kept, and the failure told. */
    struct silt_err kept = err ? *err : (struct silt_err){0};
    status = conclude(archiver, work, custody, &request, &fetched, err);
    if (status != SILT_OK || fetch_status == SILT_OK) return status;
    if (err) *err = kept;
    return fetch_status;
}
