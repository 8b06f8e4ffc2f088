/* The audit (protocol.md §3): the live part up to C compared with the archive, page by page, byte for byte; resumable, a share of a pass at a time. What it
 * finds is decided by conclude.c and committed in one transaction that clears the verdict. Changes nothing on the server but the marker it creates at 0-0. */
#include <stdio.h>

#include "conclude.h"
#include "cycle_priv.h"
#include "faultpoint.h"
#include "log.h"

enum { AUDIT_SAVE_MS = 5000 };

/* ---- comparing ---- */

enum silt_status silt_compare_next(struct silt_compare *compare, const struct silt_entry *live,
                                   enum silt_comparison *ret, struct silt_err *err)
{
    struct silt_range damaged;
    while (!compare->ended &&
           (!compare->has_next || silt_wire_id_less(compare->next.entry.id, live->id))) {
        enum silt_status status =
            silt_archive_source_next(compare->archiver->source, &compare->next, &damaged, err);
        if (status != SILT_OK && status != SILT_END) return status;
        compare->ended = status == SILT_END;
        compare->has_next = !compare->ended;
    }
    if (!compare->has_next || !silt_wire_id_equal(compare->next.entry.id, live->id))
        *ret = SILT_COMPARED_ABSENT;
    else
        *ret = silt_entry_equal(&compare->next.entry, live) ? SILT_COMPARED_EQUAL
                                                            : SILT_COMPARED_CONFLICT;
    return SILT_OK;
}

enum silt_status silt_archived_above(struct silt_archiver *archiver,
                                     const struct silt_stream_row *row, uint64_t *ret,
                                     struct silt_err *err)
{
    struct silt_range range = {.to = row->watermark}, damaged;
    *ret = 0;
    if (!row->folded_any || !silt_wire_id_less(row->custody, row->watermark) ||
        !silt_wire_id_next(row->custody, &range.from))
        return SILT_OK;
    return silt_archive_count(archiver->source, row->life, row->ns, range, ret, &damaged, err);
}

static void count(struct silt_audit *audit, const struct silt_entry *live,
                  enum silt_comparison match)
{
    audit->position = live->id;
    audit->equal += match == SILT_COMPARED_EQUAL;
    audit->absent += match == SILT_COMPARED_ABSENT;
    audit->conflict += match == SILT_COMPARED_CONFLICT;
    if (match == SILT_COMPARED_EQUAL) {
        audit->prefix += !audit->has_difference;
    } else if (!audit->has_difference) {
        audit->has_difference = true;
        audit->difference = live->id;
    }
}

/* ---- opening, and going on ---- */

/* C of the audit is min(W, LAST) of the look that opens it, never LAST at its end: after a failover LAST lies below W, and entries may legally arrive between
 * the two after the audit has passed (protocol §3). */
static void open_audit(const struct silt_archiver *archiver, struct silt_work *work,
                       const struct silt_custody *custody)
{
    struct silt_audit *audit = &work->state->audit;
    const struct silt_stream_row *row = &work->stream.row;
    const struct silt_facts *facts = &archiver->look.facts;
    /* Opened again: what went back since the last look of it counts as what went back before it, or nothing would tell what was seen and is gone. */
    bool back = row->audit.went_back || audit->went_back ||
                (audit->opened && silt_custody_went_back(&audit->facts, facts));
    *audit = (struct silt_audit){.cause = row->audit.cause,
                                 .went_back = back,
                                 .added_seen = row->audit.added_seen,
                                 .last_seen = row->audit.last_seen,
                                 .opened = true,
                                 .facts = *facts,
                                 .opening_added = facts->entries_added,
                                 .opening_length = facts->length,
                                 .marker_at = custody->marker_at};
    audit->through =
        silt_wire_id_lower(row->folded_any ? row->watermark : SILT_WIRE_ID_MIN, facts->last);
    work->state->audit_unsaved = 0;
    SILT_LOG(SILT_LOG_INFO, "audit", SILT_KEY("stream", silt_work_key(work)),
             SILT_STR("cause", silt_audit_cause_name(audit->cause)),
             SILT_ID("through", audit->through), SILT_NUM("live", facts->length));
}

static enum silt_status save(struct silt_archiver *archiver, struct silt_work *work,
                             struct silt_err *err)
{
    struct silt_stream_row row = work->stream.row;
    row.audit = work->state->audit;
    work->state->audit_unsaved = 0;
    work->state->audit_saved_ms = archiver->now_ms;
    enum silt_status status = silt_commit_row(archiver, work, &row, NULL, NULL, err);
    if (status == SILT_OK && SILT_FAULTPOINT("after-audit-save"))
        status = silt_fail(err, SILT_ERR_IO, "a test failed after an audit was saved");
    return status;
}

/* The progress of before where this look continues it; else from the start. */
static enum silt_status resume(struct silt_archiver *archiver, struct silt_work *work,
                               const struct silt_custody *custody, const char *marker,
                               struct silt_err *err)
{
    struct silt_work_state *state = work->state;
    if (!state->audit_loaded) state->audit = work->stream.row.audit;
    state->audit_loaded = true;
    const char *broken = NULL;
    if (state->audit.opened)
        broken = silt_fetch_break(&state->audit.facts, &archiver->look, silt_view_str(marker),
                                  state->audit.marker_at);
    if (broken)
        SILT_LOG(SILT_LOG_WARN, "audit begins again", SILT_KEY("stream", silt_work_key(work)),
                 SILT_STR("reason", broken));
    if (!broken && state->audit.opened) {
        state->audit.facts = archiver->look.facts;
        return SILT_OK;
    }
    open_audit(archiver, work, custody);
    return save(archiver, work, err);
}

/* ---- reading ---- */

static enum silt_status take_page(struct silt_archiver *archiver, struct silt_work *work,
                                  struct silt_compare *compare, struct silt_err *err)
{
    struct silt_audit *audit = &work->state->audit;
    const struct silt_page *page = &archiver->page;
    for (size_t i = 0; i < page->entry_count; i++) {
        enum silt_comparison match;
        enum silt_status status = silt_compare_next(compare, &page->entries[i], &match, err);
        if (status != SILT_OK) return status;
        count(audit, &page->entries[i], match);
    }
    audit->facts = page->look.facts;
    work->state->audit_unsaved += page->entry_count;
    return SILT_OK;
}

/* A pass's share. *ret_done: everything up to C of the audit is compared. *ret_broken: a page's look did not continue. */
static enum silt_status read_share(struct silt_archiver *archiver, struct silt_work *work,
                                   const char *marker, bool *ret_done, const char **ret_broken,
                                   struct silt_err *err)
{
    struct silt_audit *audit = &work->state->audit;
    const struct silt_stream_row *row = &work->stream.row;
    struct silt_compare compare = {.archiver = archiver};
    struct silt_page_request ask = {
        .key = silt_work_key(work), .to = audit->through, .what = SILT_LOOK_ARCHIVER};
    uint64_t left = archiver->limits.audit_entries;
    *ret_broken = NULL;
    *ret_done = !silt_wire_id_next(audit->position, &ask.from) ||
                silt_wire_id_less(audit->through, ask.from) || !audit->facts.has_first ||
                silt_wire_id_less(audit->through, audit->facts.first);
    if (*ret_done) return SILT_OK;
    enum silt_status status =
        silt_archive_source_seek(archiver->source, row->life, row->ns,
                                 (struct silt_range){ask.from, audit->through}, false, err);
    while (status == SILT_OK && !*ret_done && left > 0) {
        uint32_t page = silt_page_count(&work->state->page_size, archiver->config->page_entries,
                                        archiver->config->page_bytes);
        ask.count = left < page ? (uint32_t)left : page;
        status = silt_page_append(archiver->conn, &ask, err);
        if (status == SILT_OK)
            status = silt_page_receive(archiver->conn, &ask, &archiver->page, err);
        if (status == SILT_OK && SILT_FAULTPOINT("after-audit-page"))
            status = silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection");
        if (status != SILT_OK) return status;
        *ret_broken = silt_fetch_break(&audit->facts, &archiver->page.look, silt_view_str(marker),
                                       audit->marker_at);
        if (*ret_broken) return SILT_OK;
        silt_page_learn(&work->state->page_size, &archiver->page, ask.count);
        status = take_page(archiver, work, &compare, err);
        left -= archiver->page.entry_count < left ? archiver->page.entry_count : left;
        *ret_done = !archiver->page.full || !silt_wire_id_next(audit->position, &ask.from) ||
                    silt_wire_id_less(audit->through, ask.from);
    }
    return status;
}

/* ---- the end ---- */

/* Entries of the equal prefix that the closing look still holds. Where the head moved during the audit the archive counts them: entries deleted from among them
 * make it too many, and A too large, which the next fold sets right (protocol §3). */
static enum silt_status count_still(struct silt_archiver *archiver,
                                    const struct silt_stream_row *row, uint64_t *ret,
                                    struct silt_err *err)
{
    const struct silt_audit *audit = &row->audit;
    struct silt_range range = {.from = audit->facts.first, .to = audit->through}, damaged;
    uint64_t archived;
    *ret = 0;
    if (audit->has_difference && !silt_wire_id_prev(audit->difference, &range.to)) return SILT_OK;
    if (audit->prefix == 0 || !audit->facts.has_first || silt_wire_id_less(range.to, range.from))
        return SILT_OK;
    enum silt_status status =
        silt_archive_count(archiver->source, row->life, row->ns, range, &archived, &damaged, err);
    if (status == SILT_OK) *ret = archived < audit->prefix ? archived : audit->prefix;
    return status;
}

static void fill_row(const struct silt_archiver *archiver,
                     const struct silt_audit_conclusion *conclusion, struct silt_stream_row *row)
{
    bool fork = conclusion->end == SILT_AUDIT_FORK;
    if (fork) row->top_watermark = silt_highest_watermark(row);
    row->folded_any = row->has_facts = row->marker_seen = true;
    row->watermark = conclusion->watermark;
    row->custody = conclusion->custody;
    row->custody_added = conclusion->custody_added;
    row->added_estimated = conclusion->added_estimated;
    row->facts = row->audit.facts;
    row->marker_found = row->audit.marker_at;
    row->incarnation += conclusion->end == SILT_AUDIT_RECREATED;
    if (fork || conclusion->end == SILT_AUDIT_RECREATED)
        row->lost_added = 0; /* of another object's counter */
    if (conclusion->has_gap) row->gap_entries += conclusion->gap.count;
    row->verdict = SILT_VERDICT_CLEAR;
    row->verdict_reason = silt_view(NULL, 0);
    row->verdict_at_ms = archiver->now_ms;
    row->audit = (struct silt_audit){0};
}

static void tell(const struct silt_work *work, const struct silt_audit_conclusion *conclusion,
                 uint64_t life)
{
    SILT_LOG(conclusion->end == SILT_AUDIT_SAME ? SILT_LOG_INFO : SILT_LOG_WARN, "audited",
             SILT_KEY("stream", silt_work_key(work)), SILT_STR("conclusion", conclusion->sentence),
             SILT_NUM("life", life), SILT_ID("custody", conclusion->custody));
}

/* Everything that was known of the stream in memory was of the object, or the life, of before. */
static void forget(struct silt_work *work)
{
    struct silt_work_state *state = work->state;
    state->audit_loaded = state->auditing = state->has_bytes_floor = false;
    state->has_fresh = false;
    state->first.is_set = state->last.is_set = false;
    state->counted = true; /* the audit compared every live entry up to C */
    state->added_seen = work->stream.row.facts.entries_added;
    state->last_seen = work->stream.row.facts.last;
}

/* Row, fork and gap in one transaction (promise 5): only this clears the verdict. */
static enum silt_status finish(struct silt_archiver *archiver, struct silt_work *work,
                               bool *ret_again, struct silt_err *err)
{
    struct silt_stream_row row = work->stream.row;
    struct silt_fork_row parent, fork = {0};
    row.audit = work->state->audit;
    struct silt_audit_input input = {
        .row = &row, .closing = &row.audit.facts, .now_ms = archiver->now_ms};
    enum silt_status status = silt_store_fork(archiver->store, row.life, &parent, err);
    if (status != SILT_OK && status != SILT_END) return status;
    input.has_fork = status == SILT_OK;
    if (input.has_fork) input.fork = parent.fork;
    status = count_still(archiver, &row, &input.still, err);
    if (status == SILT_OK) status = silt_archived_above(archiver, &row, &input.archived_above, err);
    if (status != SILT_OK) return status;
    struct silt_audit_conclusion conclusion = silt_audit_conclude(&input);
    if (conclusion.end == SILT_AUDIT_WAIT) return SILT_OK;
    bool forks = conclusion.end == SILT_AUDIT_FORK;
    if (forks) {
        fork = (struct silt_fork_row){.stream = row.number,
                                      .parent = row.life,
                                      .fork = conclusion.fork,
                                      .noticed_ms = archiver->now_ms};
        status = silt_store_new_life(archiver->store, &fork.life, err);
        if (status != SILT_OK) return status;
    }
    fill_row(archiver, &conclusion, &row);
    row.marker_seen = !silt_work_claimless(work);
    if (forks) row.life = fork.life;
    if (SILT_FAULTPOINT("before-audit-end"))
        return silt_fail(err, SILT_ERR_IO, "a test failed before the audit's end");
    status = silt_commit_row(archiver, work, &row, forks ? &fork : NULL,
                             conclusion.has_gap ? &conclusion.gap : NULL, err);
    if (status != SILT_OK) return status;
    tell(work, &conclusion, row.life);
    forget(work);
    work->changed = true;
    work->held_by = SILT_HELD_NOTHING;
    work->held_name[0] = 0;
    work->settled = false;
    *ret_again = true;
    return SILT_FAULTPOINT("after-audit-end")
               ? silt_fail(err, SILT_ERR_IO, "a test failed after the audit's end")
               : SILT_OK;
}

/* ---- before it can begin ---- */

/* The marker is not there: a number of its own for it, committed before it is made; what was read before says nothing of this object (protocol §1, §3). */
static enum silt_status mark(struct silt_archiver *archiver, struct silt_work *work,
                             struct silt_err *err)
{
    struct silt_stream_row row = work->stream.row;
    enum silt_status status = SILT_OK;
    if (!work->state->number_fresh) {
        status = silt_marker_number(&row.marker_number, err);
        row.marker_seen = false;
        row.audit.cause = SILT_AUDIT_MARKER_ABSENT;
        row.audit.opened = false;
        row.audit.went_back |=
            row.has_facts && silt_custody_went_back(&row.facts, &archiver->look.facts);
        work->state->audit_loaded = false;
        if (status == SILT_OK) status = silt_commit_row(archiver, work, &row, NULL, NULL, err);
    }
    work->state->number_fresh = false;
    if (status == SILT_OK) status = silt_judge_mark(archiver, work, err);
    return status == SILT_ERR_STALE && silt_conn_is_open(archiver->conn) ? SILT_OK : status;
}

/* Nothing to be done before something changes. */
static enum silt_status rest(struct silt_work *work, enum silt_status code, const char *reason,
                             const char *hint)
{
    silt_hold(work, reason);
    work->state->auditing = false;
    work->status = silt_fail(&work->err, code, "%s", reason);
    if (hint) silt_hint(&work->err, "%s", hint);
    silt_err_set_stream(&work->err, work->key.at, work->key.len);
    return SILT_OK;
}

/* Holds until the next entry, or the key, is there. */
static enum silt_status await(struct silt_work *work, const char *reason)
{
    silt_hold(work, reason);
    work->state->auditing = false;
    return SILT_OK;
}

static enum silt_status go_on(struct silt_archiver *archiver, struct silt_work *work,
                              const struct silt_custody *custody, bool *ret_again,
                              struct silt_err *err)
{
    char marker[SILT_MARKER_TEXT];
    bool done = false;
    const char *broken = NULL;
    struct silt_work_state *state = work->state;
    silt_work_marker(archiver, work, marker);
    enum silt_status status = resume(archiver, work, custody, marker, err);
    if (status == SILT_OK) status = read_share(archiver, work, marker, &done, &broken, err);
    if (status != SILT_OK) return status;
    if (broken) {
        *ret_again = true; /* the next look breaks too, and the audit opens again */
        return SILT_OK;
    }
    if (done) {
        status = finish(archiver, work, ret_again, err);
        if (status == SILT_OK && !*ret_again)
            return await(work, "the audit waits: the marker was gone and the stream is empty");
        return status;
    }
    silt_hold(work, custody->reason);
    work->settled = false;
    if (state->audit_unsaved >= archiver->limits.audit_save ||
        archiver->now_ms > state->audit_saved_ms + AUDIT_SAVE_MS)
        return save(archiver, work, err);
    return SILT_OK;
}

enum silt_status silt_audit_run(struct silt_archiver *archiver, struct silt_work *work,
                                const struct silt_custody *custody, bool *ret_again,
                                struct silt_err *err)
{
    const struct silt_look *look = &archiver->look;
    enum silt_audit_cause cause = work->stream.row.audit.cause;
    work->state->auditing = true;
    *ret_again = false;
    if (!silt_audit_settles(cause))
        return rest(work, SILT_ERR_DOUBT, custody->reason,
                    "nothing is folded or trimmed any more; `silt verify` tells what the archive "
                    "holds, and that stays readable");
    if (look->state == SILT_LOOK_GONE) return await(work, "the audit waits: the key is gone");
    if (look->state != SILT_LOOK_STREAM)
        return rest(work, SILT_ERR_WRONG_TYPE, "the audit waits: the key holds another type", NULL);
    if (custody->claim[0])
        return rest(work, SILT_ERR_CLAIMED, custody->claim,
                    "`silt adopt` decides which archive goes on");
    if (!custody->marker_present) {
        if (!look->facts.has_first)
            return await(work, "the audit waits: the marker is gone and the stream is empty");
        *ret_again = true;
        return mark(archiver, work, err);
    }
    return go_on(archiver, work, custody, ret_again, err);
}
