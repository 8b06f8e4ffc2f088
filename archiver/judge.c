/* From a look to a permission: the table of custody.c applied, its verdict made durable before anything else is touched, first contact made, and what the
 * look shows compared with the archive. Must not fold or trim. */
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "conclude.h"
#include "cycle_priv.h"
#include "faultpoint.h"
#include "log.h"

enum { LOOKS = 8 };

static enum silt_status reload(struct silt_archiver *archiver, struct silt_work *work,
                               uint64_t number, struct silt_err *err)
{
    return silt_store_stream_number(archiver->store, number, &work->stream, err);
}

enum silt_status silt_commit_row(struct silt_archiver *archiver, struct silt_work *work,
                                 const struct silt_stream_row *row,
                                 const struct silt_fork_row *fork, const struct silt_gap_row *gap,
                                 struct silt_err *err)
{
    silt_batch_clear(archiver->verdict);
    enum silt_status status = silt_batch_stream(archiver->verdict, row);
    if (status == SILT_OK && fork) status = silt_batch_fork(archiver->verdict, fork);
    if (status == SILT_OK && gap) status = silt_batch_gap(archiver->verdict, gap);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    uint64_t number = row->number;
    work->state->stale =
        true; /* until the row has been read again: a failed commit may be durable all the same */
    status = silt_store_commit(archiver->store, archiver->verdict, err);
    if (status == SILT_OK && gap) silt_work_tell_gap(work, gap);
    if (status == SILT_OK) status = reload(archiver, work, number, err);
    if (status == SILT_OK) work->state->stale = false;
    return status;
}

void silt_hold(struct silt_work *work, const char *reason)
{
    work->held_by = SILT_HELD_VERDICT;
    work->settled = true;
    /* a reason may be longer than there is room to name it */
    snprintf(work->held_name, sizeof work->held_name, "%.*s", (int)sizeof work->held_name - 1,
             reason);
}

/* The number says that this copy of the archive read this object: random, and durable before the marker is made (protocol §1). */
enum silt_status silt_marker_number(uint64_t *ret, struct silt_err *err)
{
    return getrandom(ret, sizeof *ret, 0) == (ssize_t)sizeof *ret
               ? SILT_OK
               : silt_fail_errno(err, errno, "no random number for the marker");
}

static uint64_t added_seen(const struct silt_work *work)
{
    const struct silt_stream_row *row = &work->stream.row;
    return row->facts.entries_added > work->state->added_seen ? row->facts.entries_added
                                                              : work->state->added_seen;
}

/* What the verdict has to remember: the next look may show a fresh marker, and facts that continue by accident. */
void silt_begin_audit(const struct silt_archiver *archiver, const struct silt_work *work,
                      enum silt_audit_cause cause, struct silt_stream_row *row)
{
    const struct silt_facts *now = &archiver->look.facts;
    row->audit = (struct silt_audit){.cause = cause, .added_seen = added_seen(work)};
    row->audit.last_seen = silt_wire_id_higher(row->facts.last, work->state->last_seen);
    row->audit.went_back = (row->has_facts && silt_custody_went_back(&row->facts, now) != NULL) ||
                           now->entries_added < row->audit.added_seen;
    /* silt adopt in the middle of one, or after a release in the middle of one: what that had to remember is as true. Zeros where there was none. */
    const struct silt_stream_row *known = &work->stream.row;
    row->audit.went_back |= known->audit.went_back;
    row->audit.last_seen = silt_wire_id_higher(row->audit.last_seen, known->audit.last_seen);
    if (row->audit.added_seen < known->audit.added_seen)
        row->audit.added_seen = known->audit.added_seen;
}

/* A doubt that no comparing settles stays until somebody has seen to the archive. */
static void stop_for_good(struct silt_work *work, const char *reason)
{
    work->state->auditing = false;
    work->status = silt_fail(&work->err, SILT_ERR_DOUBT, "%s", reason);
    silt_hint(&work->err, "nothing is folded or trimmed any more; `silt verify` tells what the "
                          "archive holds, and that stays readable");
    silt_err_set_stream(&work->err, work->key.at, work->key.len);
}

enum silt_status silt_judge_doubt(struct silt_archiver *archiver, struct silt_work *work,
                                  enum silt_audit_cause cause, const char *reason,
                                  struct silt_err *err)
{
    struct silt_stream_row row = work->stream.row;
    enum silt_status status = SILT_OK;
    silt_hold(work, reason);
    work->state->auditing = true;
    work->settled = false;
    if (!silt_audit_settles(cause)) stop_for_good(work, reason);
    if (row.verdict == SILT_VERDICT_AUDIT_PENDING) return SILT_OK;
    row.verdict = SILT_VERDICT_AUDIT_PENDING;
    row.verdict_reason = silt_view_str(reason);
    row.verdict_facts = archiver->look.facts;
    row.verdict_at_ms = archiver->now_ms;
    silt_begin_audit(archiver, work, cause, &row);
    if (cause == SILT_AUDIT_MARKER_ABSENT) status = silt_marker_number(&row.marker_number, err);
    if (status != SILT_OK) return status;
    work->state->number_fresh = cause == SILT_AUDIT_MARKER_ABSENT;
    work->state->audit_loaded = false;
    work->changed = true;
    SILT_LOG(SILT_LOG_WARN, "doubt", SILT_KEY("stream", silt_work_key(work)),
             SILT_STR("reason", reason), SILT_ID("watermark", row.watermark));
    status = silt_commit_row(archiver, work, &row, NULL, NULL, err);
    if (status == SILT_OK && SILT_FAULTPOINT("after-verdict"))
        status = silt_fail(err, SILT_ERR_IO, "a test failed after the verdict");
    return status;
}

/* Entries once seen go with their key: a gap, once for each count that was seen (protocol §3), however often the key comes and goes. */
static enum silt_status book_gone(struct silt_archiver *archiver, const struct silt_work *work,
                                  struct silt_stream_row *row, struct silt_gap_row *ret,
                                  bool *ret_lost, struct silt_err *err)
{
    const struct silt_look *look = &archiver->look;
    uint64_t seen = added_seen(work), archived = 0;
    uint64_t base = row->lost_added > row->custody_added ? row->lost_added : row->custody_added;
    bool gone = look->state != SILT_LOOK_STREAM ||
                (!look->facts.has_first && look->facts.entries_added < seen);
    *ret_lost = false;
    if (!gone || !row->folded_any || seen <= base) return SILT_OK;
    enum silt_status status = silt_archived_above(archiver, row, &archived, err);
    if (status != SILT_OK || seen - base <= archived) return status;
    uint64_t count = seen - base - archived;
    *ret = (struct silt_gap_row){
        .life = row->life,
        .range = {row->watermark, silt_wire_id_higher(row->facts.last, work->state->last_seen)},
        .precision = SILT_GAP_AT_LEAST,
        .has_count = true,
        .count = count,
        .count_max = count,
        .noticed_ms = archiver->now_ms};
    if (silt_wire_id_compare(ret->range.through, ret->range.after) <= 0 &&
        !silt_wire_id_next(ret->range.after, &ret->range.through))
        ret->range.through = ret->range.after;
    row->gap_entries += count;
    row->lost_added = seen;
    *ret_lost = true;
    return SILT_OK;
}

/* Verdicts that lift by themselves: stored when they change, so that a restart and every reader knows. */
static enum silt_status note_verdict(struct silt_archiver *archiver, struct silt_work *work,
                                     enum silt_verdict verdict, const char *reason,
                                     struct silt_err *err)
{
    if (work->stream.row.number == 0) return SILT_OK;
    struct silt_stream_row row = work->stream.row;
    if (row.verdict == verdict && silt_view_equal(row.verdict_reason, silt_view_str(reason)))
        return SILT_OK;
    struct silt_gap_row gap;
    bool lost = false;
    if (verdict == SILT_VERDICT_WAITING) {
        enum silt_status status = book_gone(archiver, work, &row, &gap, &lost, err);
        if (status != SILT_OK) return status;
    }
    row.verdict = verdict;
    row.verdict_reason = silt_view_str(reason);
    row.verdict_at_ms = archiver->now_ms;
    work->changed = true;
    SILT_LOG(verdict == SILT_VERDICT_CLEAR ? SILT_LOG_INFO : SILT_LOG_WARN, "verdict",
             SILT_KEY("stream", silt_work_key(work)),
             SILT_STR("verdict", silt_verdict_name(verdict)), SILT_STR("reason", reason));
    return silt_commit_row(archiver, work, &row, NULL, lost ? &gap : NULL, err);
}

static enum silt_status stop(struct silt_archiver *archiver, struct silt_work *work,
                             enum silt_verdict verdict, enum silt_status code, const char *reason,
                             struct silt_err *err)
{
    silt_hold(work, reason);
    work->status = code;
    if (code != SILT_OK) {
        silt_fail(&work->err, code, "%s", reason);
        if (code != SILT_ERR_WRONG_TYPE)
            silt_hint(&work->err, "`silt adopt` decides which archive goes on");
        silt_err_set_stream(&work->err, work->key.at, work->key.len);
    }
    return note_verdict(archiver, work, verdict, reason, err);
}

/* ---- first contact ---- */

static enum silt_status make_row(struct silt_archiver *archiver, struct silt_work *work,
                                 struct silt_err *err)
{
    struct silt_stream_row row = {
        .name = silt_work_key(work), .ns = work->config->ns, .epoch = archiver->meta.epoch};
    enum silt_status status = silt_marker_number(&row.marker_number, err);
    if (status == SILT_OK)
        status = silt_store_new_stream(archiver->store, &row.number, &row.life, err);
    if (status == SILT_OK) status = silt_commit_row(archiver, work, &row, NULL, NULL, err);
    if (status == SILT_OK && SILT_FAULTPOINT("after-first-row"))
        status = silt_fail(err, SILT_ERR_IO, "a test failed after the first row");
    return status;
}

static void aim_creation(const struct silt_archiver *archiver, const struct silt_work *work,
                         struct silt_trim_target *target)
{
    *target = (struct silt_trim_target){.key = silt_work_key(work),
                                        .stream = work->stream.row.number,
                                        .life = work->stream.row.life,
                                        .generation = archiver->look.generation,
                                        .facts = archiver->look.facts,
                                        .newest = archiver->look.last.id};
    if (archiver->look.facts.has_first) silt_sha1_entry(&archiver->look.first, target->first_sha1);
    silt_work_marker(archiver, work, target->marker);
}

enum silt_status silt_judge_mark(struct silt_archiver *archiver, struct silt_work *work,
                                 struct silt_err *err)
{
    struct silt_trim_target target;
    struct silt_trim_answer answer;
    aim_creation(archiver, work, &target);
    enum silt_status status =
        silt_trim_mark(&archiver->trimmer, archiver->conn, &target, &answer, err);
    if (status == SILT_OK && SILT_FAULTPOINT("after-marker-made"))
        status = silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection");
    return status;
}

/* Row, then marker at 0-0 by the script; only a later look that shows it counts. */
static enum silt_status make_contact(struct silt_archiver *archiver, struct silt_work *work,
                                     struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    if (work->stream.row.number == 0) status = make_row(archiver, work, err);
    if (silt_work_claimless(work)) return status; /* the row alone: nothing stands in the stream */
    if (status == SILT_OK) status = silt_judge_mark(archiver, work, err);
    return status == SILT_ERR_STALE ? SILT_OK : status;
}

/* ---- the look against the archive ---- */

enum silt_status silt_archived(struct silt_archiver *archiver, const struct silt_stream_row *row,
                               struct silt_wire_id id, struct silt_entry *ret, struct silt_err *err)
{
    struct silt_archive_entry found;
    struct silt_range damaged;
    enum silt_status status = silt_archive_source_seek(archiver->source, row->life, row->ns,
                                                       (struct silt_range){id, id}, false, err);
    if (status == SILT_OK)
        status = silt_archive_source_next(archiver->source, &found, &damaged, err);
    if (status == SILT_OK) *ret = found.entry;
    return status;
}

/* SILT_OK with a reason: it is not as archived. */
static enum silt_status compare_entry(struct silt_archiver *archiver,
                                      const struct silt_stream_row *row,
                                      const struct silt_entry *live, struct silt_compared *seen,
                                      const char *which, char ret_reason[200], struct silt_err *err)
{
    uint64_t digest = silt_entry_digest(live, 0);
    if (seen->is_set && silt_wire_id_equal(seen->id, live->id) && seen->digest == digest)
        return SILT_OK;
    char id[SILT_WIRE_ID_TEXT];
    struct silt_entry archived;
    silt_wire_id_format(live->id, id);
    enum silt_status status = silt_archived(archiver, row, live->id, &archived, err);
    if (status == SILT_END)
        snprintf(ret_reason, 200,
                 "the %s entry %s lies below the watermark and is not in the archive", which, id);
    else if (status == SILT_OK && !silt_entry_equal(live, &archived))
        snprintf(ret_reason, 200, "the %s entry %s holds other bytes than in the archive", which,
                 id);
    else if (status == SILT_OK)
        *seen = (struct silt_compared){true, live->id, digest};
    return status == SILT_END ? SILT_OK : status;
}

/* First and last live entry, where they are at or below C (protocol §2 step 1): no trim without it. */
static enum silt_status compare_edges(struct silt_archiver *archiver, struct silt_work *work,
                                      char ret_reason[200], struct silt_err *err)
{
    const struct silt_look *look = &archiver->look;
    const struct silt_stream_row *row = &work->stream.row;
    enum silt_status status = SILT_OK;
    ret_reason[0] = 0;
    if (!look->facts.has_first || !row->folded_any) return SILT_OK;
    if (silt_wire_id_compare(look->first.id, row->custody) <= 0)
        status = compare_entry(archiver, row, &look->first, &work->state->first, "first",
                               ret_reason, err);
    if (status == SILT_OK && !ret_reason[0] &&
        silt_wire_id_compare(look->last.id, row->custody) <= 0)
        status =
            compare_entry(archiver, row, &look->last, &work->state->last, "last", ret_reason, err);
    return status;
}

/* Those that only the archive has were deleted or trimmed since. */
enum silt_status silt_compare_page(struct silt_compare *compare, const struct silt_page *page,
                                   char ret_reason[200], struct silt_err *err)
{
    for (size_t i = 0; i < page->entry_count; i++) {
        enum silt_comparison match;
        char id[SILT_WIRE_ID_TEXT];
        enum silt_status status = silt_compare_next(compare, &page->entries[i], &match, err);
        if (status != SILT_OK) return status;
        if (match == SILT_COMPARED_EQUAL) continue;
        silt_wire_id_format(page->entries[i].id, id);
        snprintf(ret_reason, 200,
                 match == SILT_COMPARED_ABSENT
                     ? "entry %s lies below the watermark and is not in the archive"
                     : "entry %s holds other bytes than in the archive",
                 id);
        return SILT_OK;
    }
    return SILT_OK;
}

enum silt_status silt_judge_live(struct silt_archiver *archiver, struct silt_work *work,
                                 const struct silt_custody *custody, struct silt_wire_id through,
                                 char ret_reason[200], struct silt_err *err)
{
    char marker[SILT_MARKER_TEXT];
    const struct silt_stream_row *row = &work->stream.row;
    silt_work_marker(archiver, work, marker);
    ret_reason[0] = 0;
    struct silt_compare compare = {.archiver = archiver};
    enum silt_status status = silt_archive_source_seek(
        archiver->source, row->life, row->ns,
        (struct silt_range){archiver->look.facts.first, through}, false, err);
    struct silt_page_request ask = {.key = silt_work_key(work),
                                    .from = archiver->look.facts.first,
                                    .to = through,
                                    .what = SILT_LOOK_ARCHIVER};
    for (bool more = status == SILT_OK; more;) {
        ask.count = silt_page_count(&work->state->page_size, archiver->config->page_entries,
                                    archiver->config->page_bytes);
        status = silt_page_append(archiver->conn, &ask, err);
        if (status == SILT_OK)
            status = silt_page_receive(archiver->conn, &ask, &archiver->page, err);
        if (status != SILT_OK) return status;
        const char *broken = silt_fetch_break(&archiver->look.facts, &archiver->page.look,
                                              silt_view_str(marker), custody->marker_at);
        if (broken)
            return silt_fail(err, SILT_ERR_STALE, "the stream changed since the look: %s", broken);
        status = silt_compare_page(&compare, &archiver->page, ret_reason, err);
        if (status != SILT_OK || ret_reason[0] || !archiver->page.full) return status;
        more = silt_wire_id_next(archiver->page.entries[archiver->page.entry_count - 1].id,
                                 &ask.from) &&
               !silt_wire_id_less(through, ask.from);
    }
    return status;
}

/* ---- the judgement ---- */

static void refuse(struct silt_work *work, enum silt_status code, const char *sentence,
                   const char *hint)
{
    work->status = silt_fail(&work->err, code, "%s", sentence);
    silt_hint(&work->err, "%s", hint);
    silt_err_set_stream(&work->err, work->key.at, work->key.len);
    work->held_by = SILT_HELD_VERDICT;
    snprintf(work->held_name, sizeof work->held_name, "%s", silt_status_sentence(code));
}

/* What must be so before the table may speak; false: work->status says why not. */
static bool is_readable(const struct silt_archiver *archiver, struct silt_work *work)
{
    const struct silt_look *look = &archiver->look;
    if (look->state != SILT_LOOK_STREAM) return true;
    if (look->groups_denied && !silt_work_claimless(work))
        refuse(work, SILT_ERR_SERVER_DENIED,
               "XINFO GROUPS is denied: the marker cannot be seen, so nothing is folded or trimmed",
               "allow xinfo|groups on this key");
    else if (!look->replication_known)
        refuse(work, SILT_ERR_SERVER_DENIED,
               "INFO is denied: a failover could not be noticed, so nothing is folded or trimmed",
               "allow info");
    else if (!look->is_master)
        refuse(work, SILT_ERR_SERVER_READONLY,
               "the server is a replica: nothing is folded or trimmed",
               "name the primary's address");
    return work->status == SILT_OK;
}

/* Nothing has been read yet, but the look shows the first and the last entry: where these are large, the first page begins small. */
static void guess_page(const struct silt_archiver *archiver, struct silt_work *work)
{
    const struct silt_look *look = &archiver->look;
    struct silt_page_size *size = &work->state->page_size;
    if (size->entry_bytes > 0 || size->count_cap > 0 || !look->facts.has_first) return;
    uint64_t first = silt_entry_bytes(&look->first), last = silt_entry_bytes(&look->last);
    uint64_t entry = first > last ? first : last;
    uint64_t page = archiver->config->page_bytes;
    if (entry > page / silt_page_count(size, archiver->config->page_entries, page))
        size->count_cap = entry < page ? (uint32_t)(page / entry) : 1;
}

static void take_facts(const struct silt_archiver *archiver, struct silt_work *work)
{
    const struct silt_facts *facts = &archiver->look.facts;
    const struct silt_stream_row *row = silt_work_row(work);
    bool stream = archiver->look.state == SILT_LOOK_STREAM;
    if (stream) guess_page(archiver, work);
    work->looked_at_ms = archiver->now_ms;
    work->live_length = stream ? facts->length : 0;
    uint64_t base = row && row->folded_any ? row->custody_added : 0;
    uint64_t above = stream && facts->entries_added > base ? facts->entries_added - base : 0;
    work->lag_entries = above < work->live_length ? above : work->live_length;
    struct silt_wire_id oldest = facts->first;
    if (row && row->folded_any && silt_wire_id_less(oldest, row->custody)) oldest = row->custody;
    work->lag_ms =
        work->lag_entries > 0 && archiver->now_ms > oldest.ms ? archiver->now_ms - oldest.ms : 0;
}

/* Only what continues counts as seen: another object's counters say nothing of this one. */
static void note_seen(const struct silt_archiver *archiver, struct silt_work *work)
{
    const struct silt_facts *facts = &archiver->look.facts;
    struct silt_work_state *state = work->state;
    if (facts->entries_added > state->added_seen) state->added_seen = facts->entries_added;
    state->last_seen = silt_wire_id_higher(state->last_seen, facts->last);
}

static enum silt_status act(struct silt_archiver *archiver, struct silt_work *work,
                            struct silt_custody *custody, bool *ret_go, struct silt_err *err)
{
    char reason[200];
    enum silt_status status;
    switch (custody->row) {
    case SILT_CUSTODY_CLAIMED:
        return stop(archiver, work, SILT_VERDICT_CLAIMED, SILT_ERR_CLAIMED, custody->reason, err);
    case SILT_CUSTODY_OTHER_COPY:
        return stop(archiver, work, SILT_VERDICT_OTHER_COPY, SILT_ERR_OLDER_COPY, custody->reason,
                    err);
    case SILT_CUSTODY_WAIT:
        work->awaited = !silt_work_row(work) && archiver->look.state == SILT_LOOK_GONE;
        return stop(archiver, work, SILT_VERDICT_WAITING,
                    archiver->look.state == SILT_LOOK_WRONG_TYPE ? SILT_ERR_WRONG_TYPE : SILT_OK,
                    custody->reason, err);
    case SILT_CUSTODY_DOUBT:
        return silt_judge_doubt(archiver, work, custody->cause, custody->reason, err);
    case SILT_CUSTODY_AUDIT: return SILT_OK; /* silt_audit_run's */
    case SILT_CUSTODY_FIRST_CONTACT:
    case SILT_CUSTODY_CONTINUES:
    case SILT_CUSTODY_MOVE_MARKER: break;
    }
    status = compare_edges(archiver, work, reason, err);
    if (status != SILT_OK) return status;
    if (reason[0]) return silt_judge_doubt(archiver, work, SILT_AUDIT_BYTES, reason, err);
    note_seen(archiver, work);
    status = silt_late_overtaken(archiver, work, err);
    if (status != SILT_OK) return status;
    *ret_go = true;
    return note_verdict(archiver, work, SILT_VERDICT_CLEAR, "", err);
}

struct silt_custody silt_judge_table(const struct silt_archiver *archiver,
                                     const struct silt_work *work)
{
    const struct silt_stream_row *row = silt_work_row(work);
    struct silt_custody_input input = {.row = row,
                                       .highest_watermark = silt_highest_watermark(row),
                                       .look = &archiver->look,
                                       .uuid = archiver->meta.uuid,
                                       .epoch = silt_stream_epoch(row, archiver->meta.epoch),
                                       .claimless = silt_work_claimless(work)};
    return silt_custody_decide(&input);
}

/* SILT_END: the stream cannot be judged, work->status says why. */
static enum silt_status look(struct silt_archiver *archiver, struct silt_work *work,
                             struct silt_custody *ret, struct silt_err *err)
{
    enum silt_status status = silt_look_call(archiver->conn, silt_work_key(work),
                                             SILT_LOOK_ARCHIVER, &archiver->look, err);
    if (status == SILT_OK && SILT_FAULTPOINT("after-look"))
        status = silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection");
    if (status != SILT_OK) return status;
    work->state->page_size.sparse_cap = silt_look_page_cap(&archiver->look);
    if (!is_readable(archiver, work)) return SILT_END;
    take_facts(archiver, work);
    const struct silt_stream_row *row = silt_work_row(work);
    if (row && !silt_namespace_equal(row->ns, work->config->ns)) {
        refuse(work, SILT_ERR_CONFIG,
               "the archive holds this stream with another kind of ids than the configuration says",
               "set ids: as it was when the stream was first archived");
        return SILT_END;
    }
    *ret = silt_judge_table(archiver, work);
    return SILT_OK;
}

bool silt_needs_adopt(const struct silt_archiver *archiver, const struct silt_stream_row *row)
{
    return archiver->meta.needs_adopt && (!row || row->epoch <= archiver->meta.epoch);
}

/* Not ours to touch, whatever the stream shows: it is not even looked at. */
static bool is_let_go(const struct silt_archiver *archiver, struct silt_work *work)
{
    const struct silt_stream_row *row = silt_work_row(work);
    if (row && row->verdict == SILT_VERDICT_RELEASED) {
        silt_hold(work, "released: left alone until silt adopt takes it up again");
        return true;
    }
    if (!silt_needs_adopt(archiver, row)) return false;
    refuse(
        work, SILT_ERR_OLDER_COPY,
        "the archive was restored or imported: nothing of this stream is folded before it is adopted",
        "`silt adopt KEY`, if the archive that it was made from is no longer at work");
    return true;
}

/* claim: key. SILT_END: it is somebody else's. */
static enum silt_status hold_claim(struct silt_archiver *archiver, struct silt_work *work,
                                   struct silt_err *err)
{
    struct silt_claim claim;
    if (work->stream.row.number == 0 || archiver->look.state != SILT_LOOK_STREAM) return SILT_OK;
    enum silt_status status = silt_claim_hold(archiver, work, &claim, err);
    if (status != SILT_OK || claim.verdict == SILT_VERDICT_CLEAR) return status;
    bool foreign = claim.verdict == SILT_VERDICT_CLAIMED;
    status = stop(archiver, work, claim.verdict, foreign ? SILT_ERR_CLAIMED : SILT_ERR_OLDER_COPY,
                  claim.reason, err);
    return status == SILT_OK ? SILT_END : status;
}

enum silt_status silt_judge(struct silt_archiver *archiver, struct silt_work *work,
                            struct silt_custody *ret, bool *ret_go, struct silt_err *err)
{
    struct silt_work_state *state = work->state;
    *ret_go = false;
    if (is_let_go(archiver, work)) return SILT_OK;
    for (int looks = 0; looks < LOOKS; looks++) {
        bool again = true;
        enum silt_status status = look(archiver, work, ret, err);
        if (status == SILT_OK) status = hold_claim(archiver, work, err);
        if (status == SILT_END) return SILT_OK;
        if (status != SILT_OK) return status;
        if (ret->row == SILT_CUSTODY_FIRST_CONTACT && !ret->marker_present) {
            status = make_contact(archiver, work, err);
        } else if (ret->row == SILT_CUSTODY_AUDIT) {
            status = silt_audit_run(archiver, work, ret, &again, err);
        } else {
            status = act(archiver, work, ret, ret_go, err);
            again = !*ret_go && state->auditing; /* a doubt: its audit begins with another look */
        }
        if (status != SILT_OK || !again) return status;
    }
    if (state->auditing) return SILT_OK; /* the stream does not stand still: in the next pass */
    work->status = silt_fail(&work->err, SILT_ERR_STALE,
                             "the marker could not be made: the stream changed at each try");
    return SILT_OK;
}
