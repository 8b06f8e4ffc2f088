/* The pass: which stream is at which step, what is committed together, and what stops one stream and what stops all. The steps themselves are in judge.c,
 * fold_stream.c and shed.c; README.md numbers them. */
#include <stdio.h>

#include "alloc.h"
#include "cycle_priv.h"
#include "faultpoint.h"
#include "log.h"

enum { STALE_TRIES = 3 };

bool silt_archiver_stops(const struct silt_archiver *archiver, enum silt_status status)
{
    switch (status) {
    case SILT_ERR_CANCELLED:
    case SILT_ERR_MEMORY:
    case SILT_ERR_DISK_FULL:
    case SILT_ERR_MAP_FULL:
    case SILT_ERR_STORE_LOST:
    case SILT_ERR_IO:
    case SILT_ERR_LIMIT: return true;
    default: return !silt_conn_is_open(archiver->conn);
    }
}

static void reset(struct silt_work *work)
{
    work->status = SILT_OK;
    work->err = (struct silt_err){0};
    work->more = work->changed = work->awaited = work->settled = false;
    work->folded = work->trimmed = work->asked = 0;
    work->held_by = SILT_HELD_NOTHING;
    work->held_name[0] = 0;
    work->state->met_foreign = work->state->partial = work->state->auditing = false;
}

/* A failure of one stream. Gives SILT_OK when the others may go on: the connection stands, or stands again. */
static enum silt_status fail_stream(struct silt_archiver *archiver, struct silt_work *work,
                                    enum silt_status status, struct silt_err *err)
{
    silt_err_set_stream(err, work->key.at, work->key.len);
    work->status = status;
    work->err = *err;
    work->settled = false;
    if (silt_status_class(status) == SILT_CLASS_CORRUPT) {
        silt_hold(work, err->sentence);
        work->held_by = SILT_HELD_DAMAGE;
        work->settled = false;
    }
    if (!silt_archiver_stops(archiver, status)) return SILT_OK;
    /* A page that breaks the connection must not keep the other streams waiting: if the server is there, they go on. */
    bool line = silt_status_class(status) == SILT_CLASS_RETRY && status != SILT_ERR_CANCELLED;
    struct silt_err again;
    if (line && silt_conn_open(archiver->conn, &again) == SILT_OK) return SILT_OK;
    return status;
}

/* ---- after the commit ---- */

/* Step 6: what was folded, from a fresh snapshot, against what was read. */
static enum silt_status read_back(struct silt_archiver *archiver, struct silt_work *work,
                                  bool *ret_same, struct silt_err *err)
{
    const struct silt_stream_row *row = &work->stream.row;
    const struct silt_fold_sum *sum = &work->state->sum;
    struct silt_receipt *receipt = NULL;
    *ret_same = true;
    if (sum->count == 0 || work->state->pending_late) return SILT_OK;
    enum silt_status status =
        silt_store_read_back(archiver->store, row->number, work->state->pending_after,
                             row->watermark, UINT64_MAX, &receipt, err);
    if (status != SILT_OK) return status;
    const struct silt_receipt_facts *facts = silt_receipt_facts(receipt);
    *ret_same = facts->count == sum->count && facts->digest == sum->digest &&
                facts->life == row->life && silt_wire_id_equal(facts->through, sum->last);
    silt_receipt_free(receipt);
    if (SILT_FAULTPOINT("read-back-differs")) *ret_same = false;
    return SILT_OK;
}

/* Looks, and if the stream still continues, moves its marker and trims; again where the stream changed in between. */
static enum silt_status look_and_shed(struct silt_archiver *archiver, struct silt_work *work,
                                      struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    for (int i = 0; i < STALE_TRIES; i++) {
        struct silt_custody custody;
        bool go;
        status = silt_judge(archiver, work, &custody, &go, err);
        if (status != SILT_OK || !go) return status;
        status = silt_shed(archiver, work, &custody, err);
        if (status != SILT_ERR_STALE || !silt_conn_is_open(archiver->conn)) return status;
    }
    return status;
}

static enum silt_status finish_stream(struct silt_archiver *archiver, struct silt_work *work,
                                      struct silt_err *err)
{
    bool same;
    if (SILT_FAULTPOINT("before-read-back"))
        return silt_fail(err, SILT_ERR_IO, "a test failed the read-back");
    enum silt_status status = read_back(archiver, work, &same, err);
    if (status != SILT_OK) return status;
    if (!same)
        return silt_judge_doubt(
            archiver, work, SILT_AUDIT_READ_BACK,
            "what was read back from the archive differs from what was read from the stream", err);
    if (SILT_FAULTPOINT("after-read-back"))
        return silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection");
    if (silt_archiver_cancelled(archiver)) return silt_fail(err, SILT_ERR_CANCELLED, NULL);
    return look_and_shed(archiver, work, err);
}

static void settle(struct silt_work *work)
{
    work->more = work->status == SILT_OK && (work->state->partial || work->state->auditing);
    if (work->status == SILT_OK) work->settled = !work->more;
}

static enum silt_status commit(struct silt_archiver *archiver, struct silt_err *err)
{
    if (SILT_FAULTPOINT("before-commit"))
        return silt_fail(err, SILT_ERR_IO, "a test failed the commit");
    enum silt_status status = silt_store_commit(archiver->store, archiver->batch, err);
    if (status == SILT_OK && SILT_FAULTPOINT("after-commit"))
        return silt_fail(err, SILT_ERR_IO, "a test failed after the commit");
    return status;
}

static enum silt_status take_rows(struct silt_archiver *archiver, struct silt_err *err)
{
    for (size_t i = 0; i < archiver->pending_count; i++) {
        struct silt_work *work = archiver->pending[i];
        enum silt_status status =
            silt_store_stream_number(archiver->store, work->stream.row.number, &work->stream, err);
        if (status != SILT_OK) return status;
        work->state->dirty = false;
        work->state->trimmed_unsaved = 0;
        work->folded += work->state->sum.count;
        work->state->has_fresh = work->state->sum.count > 0 && !work->state->pending_late;
        work->state->fresh = (struct silt_range){work->state->sum.first, work->state->sum.last};
        work->changed = true;
        SILT_LOG(SILT_LOG_INFO, "folded", SILT_KEY("stream", silt_work_key(work)),
                 SILT_ID("after", work->state->pending_after),
                 SILT_ID("through", work->stream.row.watermark),
                 SILT_NUM("entries", work->state->sum.count),
                 SILT_STR("copy", archiver->config->archive_path));
    }
    return SILT_OK;
}

/* A commit of several streams was refused as a whole: each tries again by itself, in the next pass, and the one that is refused then is named. */
static void part(struct silt_archiver *archiver)
{
    for (size_t i = 0; i < archiver->pending_count; i++) {
        struct silt_work *work = archiver->pending[i];
        work->state->pending = false;
        work->state->alone = work->more = true;
        work->settled = false;
    }
}

/* What was committed: proof, marker and trim. */
static enum silt_status finish_all(struct silt_archiver *archiver, bool trim, struct silt_err *err)
{
    enum silt_status result = SILT_OK;
    for (size_t i = 0; i < archiver->pending_count; i++) {
        struct silt_work *work = archiver->pending[i];
        work->state->pending = work->state->alone = false;
        if (result == SILT_OK && trim) {
            struct silt_err why = {0};
            enum silt_status one = finish_stream(archiver, work, &why);
            if (one != SILT_OK) result = fail_stream(archiver, work, one, &why);
            if (result != SILT_OK && err) *err = why;
        }
        settle(work);
        if (result != SILT_OK || !trim) work->settled = false;
    }
    return result;
}

/* Whether it became durable is not known: the rows are what the store says from now on, if it still speaks. */
static void fail_all(struct silt_archiver *archiver, enum silt_status status,
                     const struct silt_err *failed)
{
    for (size_t i = 0; i < archiver->pending_count; i++) {
        struct silt_work *work = archiver->pending[i];
        work->state->pending = false;
        work->state->stale = true;
        work->settled = work->more = false;
        work->status = status;
        work->err = *failed;
    }
}

/* The folds gathered so far: one synced transaction, then each stream's proof, marker and trim. */
static enum silt_status flush(struct silt_archiver *archiver, bool trim, struct silt_err *err)
{
    if (silt_batch_is_empty(archiver->batch)) return SILT_OK;
    struct silt_err failed = {0};
    enum silt_status status = commit(archiver, &failed);
    if (status == SILT_OK) status = take_rows(archiver, &failed);
    if (status == SILT_OK) {
        status = finish_all(archiver, trim, err);
    } else if (status == SILT_ERR_PROTECTED && archiver->pending_count > 1) {
        part(archiver);
        status = SILT_OK;
    } else {
        fail_all(archiver, status, &failed);
        if (status == SILT_ERR_PROTECTED)
            status = fail_stream(archiver, archiver->pending[0], status, &failed);
        if (status != SILT_OK && err) *err = failed;
    }
    archiver->pending_count = 0;
    archiver->pending_entries = archiver->pending_bytes = 0;
    silt_batch_clear(archiver->batch);
    return status;
}

/* ---- before the commit ---- */

/* Room is made before the fold: what is in the batch is always on the list too, or its row would not be read again after the commit. */
static enum silt_status reserve_pending(struct silt_archiver *archiver, struct silt_err *err)
{
    void *list = archiver->pending;
    if (silt_grow(&list, &archiver->pending_cap, archiver->pending_count + 1,
                  sizeof(struct silt_work *)) != 0)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    archiver->pending = list;
    return SILT_OK;
}

static void add_pending(struct silt_archiver *archiver, struct silt_work *work)
{
    archiver->pending[archiver->pending_count++] = work;
    archiver->pending_entries += work->state->sum.count;
    archiver->pending_bytes += work->state->sum.values_bytes;
}

static enum silt_status run_stream(struct silt_archiver *archiver, struct silt_work *work,
                                   struct silt_err *err)
{
    struct silt_custody custody;
    bool go = false;
    enum silt_status status = work->state->stale ? silt_work_load(archiver, work, err) : SILT_OK;
    if (status == SILT_OK) status = silt_judge(archiver, work, &custody, &go, err);
    work->more = status == SILT_OK && work->state->auditing;
    if (status != SILT_OK || !go) return status;
    status = reserve_pending(archiver, err);
    if (status != SILT_OK) return status;
    status = silt_fold_stream(archiver, work, &custody, err);
    if (work->state->pending) {
        add_pending(archiver, work);
        return status;
    }
    if (work->state->auditing) settle(work);
    if (status != SILT_OK || work->status != SILT_OK || work->state->auditing) return status;
    /* Nothing new to commit: this look serves the trim too. */
    status = silt_shed(archiver, work, &custody, err);
    if (status == SILT_ERR_STALE && silt_conn_is_open(archiver->conn))
        status = look_and_shed(archiver, work, err);
    settle(work);
    return status;
}

/* Counters of trims that no fold's commit took along. */
static enum silt_status save_counters(struct silt_archiver *archiver, struct silt_work **works,
                                      size_t count, struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    for (size_t i = 0; i < count && status == SILT_OK; i++) {
        struct silt_work_state *state = works[i]->state;
        if (!state->dirty || state->stale || works[i]->more)
            continue; /* more: the next commit is at hand */
        struct silt_stream_row row = works[i]->stream.row;
        row.trimmed_entries += state->trimmed_unsaved;
        row.trim_threshold = state->threshold_sent;
        row.trimmed_at_ms = archiver->now_ms;
        status = silt_batch_stream(archiver->batch, &row);
    }
    if (status == SILT_OK && !silt_batch_is_empty(archiver->batch))
        status = silt_store_commit(archiver->store, archiver->batch, err);
    for (size_t i = 0; i < count && status == SILT_OK; i++) {
        if (!works[i]->state->dirty || works[i]->state->stale || works[i]->more) continue;
        works[i]->state->dirty = false;
        works[i]->state->trimmed_unsaved = 0;
        status = silt_store_stream_number(archiver->store, works[i]->stream.row.number,
                                          &works[i]->stream, err);
    }
    silt_batch_clear(archiver->batch);
    return status;
}

/* One stream, and a commit where enough is gathered or it must be alone in it. */
static enum silt_status walk_one(struct silt_archiver *archiver, struct silt_work *work,
                                 struct silt_err *err)
{
    bool alone = work->state->alone;
    enum silt_status status = alone ? flush(archiver, true, err) : SILT_OK;
    if (status != SILT_OK) return status;
    status = run_stream(archiver, work, err);
    if (status != SILT_OK) status = fail_stream(archiver, work, status, err);
    if (status == SILT_OK && (alone || archiver->pending_entries >= archiver->limits.fold_entries ||
                              archiver->pending_bytes >= archiver->limits.fold_bytes))
        status = flush(archiver, true, err);
    return status;
}

/* Every stream in turn; a failure of all ends the walk. */
static enum silt_status walk(struct silt_archiver *archiver, struct silt_work **works, size_t count,
                             struct silt_err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (silt_archiver_cancelled(archiver)) return silt_fail(err, SILT_ERR_CANCELLED, NULL);
        struct silt_err why = {0};
        enum silt_status status = walk_one(archiver, works[i], &why);
        if (status == SILT_OK) continue;
        if (err) *err = why;
        return status;
    }
    return SILT_OK;
}

/* A server that was demoted stays connected for ever, while the address may name another one by now: only a new connection finds out. */
static void leave_replica(struct silt_archiver *archiver, struct silt_work **works, size_t count)
{
    bool replica = false;
    for (size_t i = 0; i < count; i++)
        replica |= works[i]->status == SILT_ERR_SERVER_READONLY;
    if (replica) silt_conn_close(archiver->conn);
}

enum silt_status silt_archiver_pass(struct silt_archiver *archiver, struct silt_work **works,
                                    size_t count, struct silt_err *err)
{
    struct silt_err first = {0}, second = {0};
    if (archiver->preview) return silt_fail(err, SILT_ERR_USAGE, "a preview changes nothing");
    for (size_t i = 0; i < count; i++)
        reset(works[i]);
    enum silt_status status = silt_conn_open(archiver->conn, err);
    if (status == SILT_OK)
        status = silt_look_time(archiver->conn, &archiver->scratch, &archiver->now_ms, err);
    if (status != SILT_OK) return status;
    status = walk(archiver, works, count, &first);
    /* Whatever stopped the walk, what is proven is committed (SIGTERM: promise 6); trims need the server and a caller that still wants them. */
    enum silt_status last = flush(archiver, status == SILT_OK, &second);
    if (last == SILT_OK) last = save_counters(archiver, works, count, &second);
    if (status == SILT_OK && last != SILT_OK) {
        status = last;
        first = second;
    }
    leave_replica(archiver, works, count);
    if (status != SILT_OK && err) *err = first;
    return status;
}
