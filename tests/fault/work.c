/* The work of work.h. Must not end the process: faults are what it is for. */
#include "work.h"

#include <stdio.h>
#include <string.h>

#include "format/alloc.h"

static const struct {
    const char *name, *ns;
} kinds[WORK_STREAMS] = {{"plain", NULL}, {"emq:{q}:stream:branded", "EVT"}, {"third", NULL}};

const char *work_stream_name(size_t stream)
{
    return kinds[stream].name;
}

static enum silt_status open_stream(struct work *work, size_t i, struct silt_err *err)
{
    struct test_stream *stream = &work->streams[i];
    SILT_CLEANUP(silt_stream_release) struct silt_stream found = {0};
    memset(stream, 0, sizeof *stream);
    snprintf(stream->name, sizeof stream->name, "%s", kinds[i].name);
    enum silt_status status =
        silt_store_stream(work->store, silt_view_str(stream->name), &found, err);
    if (status == SILT_OK) {
        stream->row = found.row;
        stream->row.group_count = 0;
        stream->row.groups = NULL;
        stream->row.verdict_reason = silt_view("", 0);
        work->held[i] = found.row.folded_entries;
    } else if (status == SILT_ERR_UNKNOWN_STREAM) {
        if (kinds[i].ns) memcpy(stream->row.ns.letters, kinds[i].ns, 3);
        work->held[i] = 0;
        status = silt_store_new_stream(work->store, &stream->row.number, &stream->row.life, err);
    }
    stream->row.name = silt_view_str(stream->name);
    return status;
}

enum silt_status work_open(struct work *work, const char *dir, uint64_t map_bytes,
                           uint64_t map_limit_bytes, struct silt_err *err)
{
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    options.write = options.create = true;
    options.map_initial_bytes = map_bytes ? map_bytes : 1u << 20;
    if (map_limit_bytes) options.map_limit_bytes = map_limit_bytes;
    enum silt_status status = silt_store_open(dir, &options, &work->store, err);
    if (status == SILT_OK) status = silt_batch_new(&work->batch);
    if (status == SILT_OK) status = silt_fold_new(3, &work->fold);
    if (status == SILT_OK) status = silt_segment_builder_new(3, &work->builder);
    if (status == SILT_OK) status = silt_segment_new(&work->segment);
    for (size_t i = 0; i < WORK_STREAMS && status == SILT_OK; i++)
        status = open_stream(work, i, err);
    if (status != SILT_OK) work_close(work);
    return status;
}

void work_close(struct work *work)
{
    silt_store_close(work->store);
    silt_batch_free(work->batch);
    silt_fold_free(work->fold);
    silt_segment_builder_free(work->builder);
    silt_segment_free(work->segment);
    silt_buf_release(&work->tail);
    work->store = NULL;
    work->batch = NULL;
    work->fold = NULL;
    work->builder = NULL;
    work->segment = NULL;
}

/* ---- one step ---- */

static enum silt_status load_tail(struct work *work, const struct silt_stream_row *row,
                                  struct silt_err *err)
{
    struct silt_segment_info info;
    silt_buf_clear(&work->tail);
    if (!row->folded_any) return SILT_OK;
    enum silt_status status = silt_store_segment(work->store, row->life, row->ns, SILT_WIRE_ID_MAX,
                                                 SILT_SEEK_BACKWARD, &work->tail, &info, err);
    return status == SILT_END ? SILT_ERR_CORRUPT : status; /* what was folded is gone */
}

static enum silt_status fold(struct work *work, size_t i, uint64_t count, struct silt_err *err)
{
    struct silt_stream_row *row = &work->streams[i].row;
    enum silt_status status = load_tail(work, row, err);
    if (status == SILT_OK)
        status = silt_fold_begin(work->fold, row->life, row->ns, silt_buf_view(&work->tail), err);
    for (uint64_t n = 1; n <= count && status == SILT_OK; n++) {
        struct silt_entry entry = test_entry(work->held[i] + n);
        status = silt_fold_add(work->fold, &entry, err);
    }
    if (status == SILT_OK) status = silt_fold_finish(work->fold, err);
    return status;
}

static enum silt_status add_to_batch(struct work *work, size_t i, struct silt_err *err)
{
    size_t count;
    struct silt_stream_row row = work->streams[i].row;
    const struct silt_fold_sum *sum = silt_fold_sum(work->fold);
    const struct silt_fold_segment *segments = silt_fold_segments(work->fold, &count);
    row.folded_any = true;
    row.watermark = row.custody = sum->last;
    row.folded_entries += sum->count;
    row.folded_bytes += sum->values_bytes;
    row.foreign_entries += sum->foreign_count;
    enum silt_status status = silt_batch_stream(work->batch, &row);
    for (size_t s = 0; s < count && status == SILT_OK; s++)
        status = silt_batch_segment(work->batch, &segments[s].info, segments[s].value,
                                    segments[s].replaces_tail);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    work->streams[i].row = row;
    return SILT_OK;
}

static enum silt_status read_back(struct work *work, size_t i, uint64_t count, struct silt_err *err)
{
    struct silt_receipt *receipt = NULL;
    const struct silt_stream_row *row = &work->streams[i].row;
    struct silt_wire_id after = work->held[i] ? test_entry_id(work->held[i]) : SILT_WIRE_ID_MIN;
    enum silt_status status = silt_store_read_back(work->store, row->number, after, row->watermark,
                                                   UINT64_MAX, &receipt, err);
    if (status != SILT_OK) return status;
    bool whole = silt_receipt_facts(receipt)->count == count;
    silt_receipt_free(receipt);
    if (!whole) return silt_fail(err, SILT_ERR_PROOF, "read back another number than was folded");
    work->held[i] += count;
    work->trimmed[i] = work->held[i] - count / 4; /* as `keep` would have it */
    if (work->on_trim) work->on_trim(work, i);
    return SILT_OK;
}

enum silt_status work_step(struct work *work, const uint64_t counts[WORK_STREAMS],
                           struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    struct silt_stream_row before[WORK_STREAMS];
    silt_batch_clear(work->batch);
    for (size_t i = 0; i < WORK_STREAMS; i++)
        before[i] = work->streams[i].row;
    for (size_t i = 0; i < WORK_STREAMS && status == SILT_OK; i++) {
        if (counts[i] == 0) continue;
        status = fold(work, i, counts[i], err);
        if (status == SILT_OK) status = add_to_batch(work, i, err);
    }
    if (status == SILT_OK) status = silt_store_commit(work->store, work->batch, err);
    if (status != SILT_OK)
        for (size_t i = 0; i < WORK_STREAMS; i++)
            work->streams[i].row = before[i];
    for (size_t i = 0; i < WORK_STREAMS && status == SILT_OK; i++)
        if (counts[i] > 0) status = read_back(work, i, counts[i], err);
    return status;
}

static enum silt_status build(struct work *work, const struct silt_segment_info *old, size_t from,
                              size_t to, struct silt_buf *value, struct silt_batch_part *ret,
                              struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    silt_segment_builder_begin(work->builder, old->life, old->ns);
    for (size_t i = from; i < to && status == SILT_OK; i++) {
        struct silt_entry entry;
        silt_segment_entry(work->segment, i, &entry);
        status = silt_segment_builder_add(work->builder, &entry);
    }
    if (status == SILT_OK) status = silt_segment_builder_finish(work->builder, value, &ret->info);
    ret->value = silt_buf_view(value);
    return status == SILT_OK ? status : silt_fail(err, status, NULL);
}

enum silt_status work_split(struct work *work, size_t stream, uint64_t n, struct silt_err *err)
{
    SILT_CLEANUP(silt_buf_release) struct silt_buf low = {0};
    SILT_CLEANUP(silt_buf_release) struct silt_buf high = {0};
    struct silt_segment_info old;
    struct silt_batch_part parts[2];
    const struct silt_stream_row *row = &work->streams[stream].row;
    silt_batch_clear(work->batch);
    enum silt_status status = silt_store_segment(work->store, row->life, row->ns, test_entry_id(n),
                                                 SILT_SEEK_BACKWARD, &work->tail, &old, err);
    struct silt_view value = silt_buf_view(&work->tail);
    if (status == SILT_OK) status = silt_segment_open(work->segment, value, err);
    size_t count = status == SILT_OK ? silt_segment_count(work->segment) : 0;
    if (status != SILT_OK || count < 2) return status;
    status = build(work, &old, 0, count / 2, &low, &parts[0], err);
    if (status == SILT_OK) status = build(work, &old, count / 2, count, &high, &parts[1], err);
    if (status == SILT_OK) status = silt_batch_stream(work->batch, row);
    if (status == SILT_OK)
        status = silt_batch_replace(work->batch, &old, silt_checksum(value, 0), parts, 2);
    return status == SILT_OK ? silt_store_commit(work->store, work->batch, err) : status;
}

enum silt_status work_random(struct work *work, const char *dir, struct test_rng *rng,
                             uint64_t most, struct silt_err *err)
{
    uint64_t counts[WORK_STREAMS];
    for (size_t i = 0; i < WORK_STREAMS; i++)
        counts[i] = test_rng_chance(rng, 60) ? 1 + test_rng_below(rng, most) : 0;
    enum silt_status status = work_step(work, counts, err);
    size_t stream = (size_t)test_rng_below(rng, WORK_STREAMS);
    if (status == SILT_OK && work->held[stream] > 1 && test_rng_chance(rng, 20))
        status = work_split(work, stream, 1 + test_rng_below(rng, work->held[stream]), err);
    if (status == SILT_OK && test_rng_chance(rng, 8)) status = silt_store_replace(work->store, err);
    if (status == SILT_OK && test_rng_chance(rng, 5)) {
        work_close(work);
        status = work_open(work, dir, 0, 0, err);
    }
    return status;
}

uint64_t work_count(struct silt_store *store, size_t stream, char ret_wrong[200])
{
    SILT_CLEANUP(silt_stream_release) struct silt_stream row = {0};
    ret_wrong[0] = 0;
    enum silt_status status =
        silt_store_stream(store, silt_view_str(kinds[stream].name), &row, NULL);
    if (status == SILT_ERR_UNKNOWN_STREAM) return 0;
    return test_archive_count(store, kinds[stream].name, ret_wrong);
}
