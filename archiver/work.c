/* The archiver's parts and the works: made, held together, let go. Must not know the order of the cycle. */
#include <stdio.h>

#include "alloc.h"
#include "cycle_priv.h"
#include "log.h"

bool silt_archiver_cancelled(const struct silt_archiver *archiver)
{
    return archiver->cancelled && archiver->cancelled(archiver->cancelled_ctx);
}

static enum silt_status open_store(struct silt_archiver *archiver, struct silt_err *err)
{
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    options.write = options.create = !archiver->preview;
    if (archiver->config->map_limit_bytes > 0)
        options.map_limit_bytes = archiver->config->map_limit_bytes;
    enum silt_status status =
        silt_store_open(archiver->config->archive_path, &options, &archiver->store, err);
    if (archiver->preview && status == SILT_ERR_NO_ARCHIVE) return SILT_OK;
    if (status == SILT_OK) status = silt_store_meta(archiver->store, &archiver->meta, err);
    if (status != SILT_OK) return status;
    return silt_archive_source_new(archiver->store, &archiver->source) == SILT_OK
               ? SILT_OK
               : silt_fail(err, SILT_ERR_MEMORY, NULL);
}

static enum silt_status open_parts(struct silt_archiver *archiver, struct silt_err *err)
{
    struct silt_conn_options options = SILT_CONN_OPTIONS_DEFAULT;
    silt_config_conn_options(archiver->config, &options);
    options.cancelled = archiver->cancelled;
    options.cancelled_ctx = archiver->cancelled_ctx;
    enum silt_status status = silt_conn_new(&options, &archiver->conn, err);
    if (status == SILT_OK) status = open_store(archiver, err);
    if (status != SILT_OK) return status;
    if (silt_segment_new(&archiver->segment) != SILT_OK ||
        silt_batch_new(&archiver->batch) != SILT_OK ||
        silt_batch_new(&archiver->verdict) != SILT_OK)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    if (archiver->preview) return SILT_OK;
    if (silt_insert_new(archiver->config->level, &archiver->insert) != SILT_OK)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    return silt_worker_new(archiver->config->level, &archiver->worker, err);
}

static enum silt_status make(const struct silt_config *config, bool preview,
                             bool (*cancelled)(void *), void *ctx, struct silt_archiver **ret,
                             struct silt_err *err)
{
    struct silt_archiver *archiver = silt_calloc(1, sizeof *archiver);
    if (!archiver) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    archiver->config = config;
    archiver->limits = SILT_CYCLE_LIMITS_DEFAULT;
    archiver->preview = preview;
    archiver->cancelled = cancelled;
    archiver->cancelled_ctx = ctx;
    silt_trimmer_init(&archiver->trimmer);
    enum silt_status status = open_parts(archiver, err);
    if (status != SILT_OK) {
        silt_archiver_free(archiver);
        return status;
    }
    *ret = archiver;
    return SILT_OK;
}

enum silt_status silt_archiver_new(const struct silt_config *config, bool (*cancelled)(void *),
                                   void *ctx, struct silt_archiver **ret, struct silt_err *err)
{
    return make(config, false, cancelled, ctx, ret, err);
}

enum silt_status silt_archiver_new_preview(const struct silt_config *config,
                                           bool (*cancelled)(void *), void *ctx,
                                           struct silt_archiver **ret, struct silt_err *err)
{
    return make(config, true, cancelled, ctx, ret, err);
}

void silt_archiver_free(struct silt_archiver *archiver)
{
    if (!archiver) return;
    silt_worker_free(archiver->worker);
    silt_insert_free(archiver->insert);
    silt_batch_free(archiver->batch);
    silt_batch_free(archiver->verdict);
    silt_archive_source_free(archiver->source);
    silt_segment_free(archiver->segment);
    silt_buf_release(&archiver->value);
    silt_look_release(&archiver->look);
    silt_page_release(&archiver->page);
    silt_reply_release(&archiver->scratch);
    silt_trimmer_release(&archiver->trimmer);
    silt_conn_free(archiver->conn);
    silt_store_close(archiver->store);
    silt_free(archiver->pending);
    silt_free(archiver);
}

void silt_archiver_set_config(struct silt_archiver *archiver, const struct silt_config *config)
{
    archiver->config = config;
}

struct silt_store *silt_archiver_store(struct silt_archiver *archiver)
{
    return archiver->store;
}

struct silt_conn *silt_archiver_conn(struct silt_archiver *archiver)
{
    return archiver->conn;
}

struct silt_view silt_work_key(const struct silt_work *work)
{
    return silt_buf_view(&work->key);
}

const struct silt_stream_row *silt_work_row(const struct silt_work *work)
{
    return work->stream.row.number != 0 ? &work->stream.row : NULL;
}

struct silt_wire_id silt_highest_watermark(const struct silt_stream_row *row)
{
    return row ? silt_wire_id_higher(row->watermark, row->top_watermark) : SILT_WIRE_ID_MIN;
}

void silt_work_marker(const struct silt_archiver *archiver, const struct silt_work *work,
                      char ret[SILT_MARKER_TEXT])
{
    ret[0] = 0;
    if (!silt_work_claimless(work)) silt_work_claim(archiver, work, ret);
}

void silt_work_claim(const struct silt_archiver *archiver, const struct silt_work *work,
                     char ret[SILT_MARKER_TEXT])
{
    struct silt_marker marker = {.epoch =
                                     silt_stream_epoch(silt_work_row(work), archiver->meta.epoch),
                                 .number = work->stream.row.marker_number};
    memcpy(marker.uuid, archiver->meta.uuid, sizeof marker.uuid);
    silt_marker_format(&marker, ret);
}

enum silt_status silt_work_load(struct silt_archiver *archiver, struct silt_work *work,
                                struct silt_err *err)
{
    work->state->stale = false;
    if (!archiver->store) return SILT_OK;
    enum silt_status status =
        silt_store_stream(archiver->store, silt_work_key(work), &work->stream, err);
    if (status != SILT_ERR_UNKNOWN_STREAM) {
        work->state->stale = status != SILT_OK;
        return status;
    }
    work->stream.row = (struct silt_stream_row){0};
    return SILT_OK;
}

enum silt_status silt_archiver_work(struct silt_archiver *archiver, struct silt_view key,
                                    const struct silt_stream_config *config, struct silt_work **ret,
                                    struct silt_err *err)
{
    struct silt_work *work = silt_calloc(1, sizeof *work);
    if (!work) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    work->config = config;
    work->state = silt_calloc(1, sizeof *work->state);
    enum silt_status status =
        work->state ? silt_buf_put(&work->key, key.at, key.len) : SILT_ERR_MEMORY;
    if (status != SILT_OK)
        silt_fail(err, status, NULL);
    else
        status = silt_work_load(archiver, work, err);
    if (status != SILT_OK) {
        silt_err_set_stream(err, key.at, key.len);
        silt_work_free(work);
        return status;
    }
    /* A restart: what the last commit reached it had also counted. */
    const struct silt_stream_row *row = &work->stream.row;
    work->state->counted = row->folded_any && silt_wire_id_equal(row->custody, row->facts.last);
    *ret = work;
    return SILT_OK;
}

void silt_work_free(struct silt_work *work)
{
    if (!work) return;
    silt_buf_release(&work->key);
    silt_stream_release(&work->stream);
    silt_free(work->state);
    silt_free(work);
}

void silt_work_tell_gap(const struct silt_work *work, const struct silt_gap_row *gap)
{
    SILT_LOG(SILT_LOG_WARN, "gap", SILT_KEY("stream", silt_work_key(work)),
             SILT_ID("after", gap->range.after), SILT_ID("through", gap->range.through),
             SILT_NUM("entries", gap->count), SILT_STR("cause", silt_gap_cause_name(gap->cause)),
             SILT_STR("copy", "none: they were removed before they were folded"));
}
