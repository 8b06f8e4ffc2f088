/* A fold below W (protocol.md §2 step 3): after an audit C may lie below W, and what is live in (C, W] is compared with the archive before it counts as folded.
 * Equal: it was folded before. Absent: a late entry. Other bytes: two histories, which an audit decides. Commits nothing. */
#include <stdio.h>

#include "cycle_priv.h"
#include "faultpoint.h"

/* One run over (C, min(W, LAST)]. */
struct refold {
    struct silt_archiver *archiver;
    struct silt_work *work;
    struct silt_fetch_request request;
    struct silt_fetch fetched;
    struct silt_compare compare;
    bool has_fork; /* the life's own: below it nothing can be put in */
    struct silt_wire_id fork;
    struct silt_outcome outcome;
};

static void conflict(struct refold *refold, const struct silt_entry *live, const char *what)
{
    char id[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(live->id, id);
    snprintf(refold->outcome.reason, sizeof refold->outcome.reason,
             "entry %s lies below the watermark and %s", id, what);
    refold->outcome.doubt = true;
    refold->outcome.cause = SILT_AUDIT_FOLD_CONFLICT;
}

static enum silt_status take_entry(struct refold *refold, const struct silt_entry *live,
                                   struct silt_err *err)
{
    enum silt_comparison match;
    enum silt_status status = silt_compare_next(&refold->compare, live, &match, err);
    if (status != SILT_OK || match == SILT_COMPARED_EQUAL) return status;
    if (match == SILT_COMPARED_CONFLICT)
        conflict(refold, live, "holds other bytes than in the archive");
    else if (refold->has_fork && silt_wire_id_less(live->id, refold->fork))
        conflict(refold, live, "below the fork of its life, and is not in the archive");
    else
        return silt_insert_add(refold->archiver->insert, live, err);
    return SILT_OK;
}

/* One page; *ret_more: another is to be read. */
static enum silt_status take_page(struct refold *refold, struct silt_page_request *ask,
                                  bool *ret_more, struct silt_err *err)
{
    struct silt_archiver *archiver = refold->archiver;
    struct silt_fetch_request *request = &refold->request;
    uint64_t left = request->max_entries - refold->fetched.count;
    uint32_t size = silt_page_count(&refold->work->state->page_size, request->page_entries,
                                    request->page_bytes);
    *ret_more = false;
    ask->count = left < size ? (uint32_t)left : size;
    enum silt_status status = silt_page_append(archiver->conn, ask, err);
    if (status == SILT_OK) status = silt_page_receive(archiver->conn, ask, &archiver->page, err);
    if (status == SILT_OK && SILT_FAULTPOINT("after-refold-page"))
        status = silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection");
    if (status != SILT_OK) return status;
    const struct silt_page *page = &archiver->page;
    refold->fetched.broken =
        silt_fetch_break(request->opening, &page->look, request->marker, request->marker_at);
    if (refold->fetched.broken) return SILT_OK;
    silt_page_learn(&refold->work->state->page_size, page, ask->count);
    for (size_t i = 0; i < page->entry_count && !refold->outcome.doubt; i++) {
        status = take_entry(refold, &page->entries[i], err);
        if (status != SILT_OK) return status;
    }
    if (refold->outcome.doubt) return SILT_OK;
    *ret_more = silt_fetch_take(request, page, page->entry_count, &refold->fetched) &&
                silt_wire_id_next(refold->fetched.through, &ask->from);
    return SILT_OK;
}

static enum silt_status read_all(struct refold *refold, struct silt_err *err)
{
    struct silt_archiver *archiver = refold->archiver;
    const struct silt_stream_row *row = &refold->work->stream.row;
    struct silt_fetch_request *request = &refold->request;
    struct silt_page_request ask = {
        .key = request->key, .to = request->target, .what = SILT_LOOK_ARCHIVER};
    silt_fetch_begin(request, &refold->fetched);
    if (!silt_wire_id_next(request->after, &ask.from) ||
        silt_wire_id_less(request->target, ask.from)) {
        refold->fetched.reached = true;
        return SILT_OK;
    }
    enum silt_status status =
        silt_archive_source_seek(archiver->source, row->life, row->ns,
                                 (struct silt_range){ask.from, request->target}, false, err);
    for (bool more = status == SILT_OK; more && status == SILT_OK;)
        status = take_page(refold, &ask, &more, err);
    return status;
}

static enum silt_status find_fork(struct refold *refold, struct silt_err *err)
{
    struct silt_fork_row fork;
    enum silt_status status =
        silt_store_fork(refold->archiver->store, refold->work->stream.row.life, &fork, err);
    refold->has_fork = status == SILT_OK;
    if (refold->has_fork) refold->fork = fork.fork;
    return status == SILT_END ? SILT_OK : status;
}

enum silt_status silt_refold(struct silt_archiver *archiver, struct silt_work *work,
                             const struct silt_custody *custody,
                             const struct silt_fetch_request *request, struct silt_err *err)
{
    struct refold refold = {
        .archiver = archiver, .work = work, .request = *request, .compare = {.archiver = archiver}};
    const struct silt_stream_row *row = &work->stream.row;
    struct silt_wire_id last = archiver->look.facts.last;
    struct silt_outcome *outcome = &refold.outcome;
    refold.request.target = silt_wire_id_lower(row->watermark, last);
    refold.request.stop_at_foreign = false; /* most of it is archived already */
    silt_insert_begin(archiver->insert, row->life, row->ns);
    enum silt_status status = find_fork(&refold, err);
    if (status == SILT_OK) status = read_all(&refold, err);
    if (status != SILT_OK) return status;
    if (!outcome->doubt) {
        /* The target is W: above it the next fold goes on, and counts what is missing up to LAST. */
        bool reached = refold.fetched.reached;
        if (reached) refold.fetched.through = refold.request.target;
        refold.fetched.reached = reached && silt_wire_id_compare(refold.request.target, last) >= 0;
        silt_fold_settle(archiver, work, &refold.fetched, outcome);
        work->state->partial = !refold.fetched.reached;
    }
    if (outcome->doubt)
        return silt_judge_doubt(archiver, work, outcome->cause, outcome->reason, err);
    return silt_fold_put(archiver, work, custody, outcome, archiver->insert, request->after, err);
}
