/* What one commit will change, gathered before the transaction is opened, so that it can be applied again when the map had to
 * grow. Knows nothing of LMDB. */
#include "store_batch.h"
#include "alloc.h"

enum silt_status silt_batch_new(struct silt_batch **ret)
{
    struct silt_batch *batch = silt_calloc(1, sizeof *batch);
    if (!batch) return SILT_ERR_MEMORY;
    *ret = batch;
    return SILT_OK;
}

void silt_batch_free(struct silt_batch *batch)
{
    if (!batch) return;
    silt_free(batch->changes);
    silt_free(batch->lives);
    silt_buf_release(&batch->bytes);
    silt_buf_release(&batch->row);
    silt_stream_release(&batch->before);
    silt_stream_release(&batch->after);
    silt_free(batch);
}

void silt_batch_clear(struct silt_batch *batch)
{
    batch->count = 0;
    batch->life_count = 0;
    silt_buf_clear(&batch->bytes);
}

bool silt_batch_is_empty(const struct silt_batch *batch)
{
    return batch->count == 0;
}

size_t silt_batch_mark(const struct silt_batch *batch)
{
    return batch->count;
}

void silt_batch_undo(struct silt_batch *batch, size_t mark)
{
    if (mark < batch->count) batch->count = mark; /* its bytes stay until the batch is cleared */
}

/* Room for more changes; nothing is added before everything it needs is there. */
static enum silt_status room_for(struct silt_batch *batch, size_t count)
{
    void *at = batch->changes;
    if (silt_grow(&at, &batch->cap, batch->count + count, sizeof *batch->changes) != 0)
        return SILT_ERR_MEMORY;
    batch->changes = at;
    return SILT_OK;
}

static enum silt_status room(struct silt_batch *batch)
{
    return room_for(batch, 1);
}

static void add(struct silt_batch *batch, const struct silt_change *change)
{
    batch->changes[batch->count++] = *change;
}

enum silt_status silt_batch_segment(struct silt_batch *batch, const struct silt_segment_info *info,
                                    struct silt_view value, bool replaces)
{
    struct silt_change change = {.kind = SILT_CHANGE_SEGMENT,
                                 .replaces = replaces,
                                 .info = *info,
                                 .offset = batch->bytes.len,
                                 .len = value.len};
    enum silt_status status = room(batch);
    if (status == SILT_OK) status = silt_buf_put(&batch->bytes, value.at, value.len);
    if (status == SILT_OK) add(batch, &change);
    return status;
}

enum silt_status silt_batch_replace(struct silt_batch *batch, const struct silt_segment_info *old,
                                    uint64_t checksum, const struct silt_batch_part *parts,
                                    size_t count)
{
    struct silt_change change = {.kind = SILT_CHANGE_REPLACE};
    change.replaced.info = *old;
    change.replaced.checksum = checksum;
    change.replaced.parts = count;
    size_t offset = batch->bytes.len;
    if (count == 0) return SILT_ERR_USAGE;
    enum silt_status status = room_for(batch, count + 1);
    for (size_t i = 0; status == SILT_OK && i < count; i++)
        status = silt_buf_put(&batch->bytes, parts[i].value.at, parts[i].value.len);
    if (status != SILT_OK) return status;
    add(batch, &change);
    for (size_t i = 0; i < count; i++) {
        struct silt_change part = {.kind = SILT_CHANGE_PART,
                                   .info = parts[i].info,
                                   .offset = offset,
                                   .len = parts[i].value.len};
        add(batch, &part);
        offset += part.len;
    }
    return SILT_OK;
}

uint64_t silt_batch_late_highest(const struct silt_batch *batch, uint64_t life)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct silt_change *change = &batch->changes[i];
        if (change->kind == SILT_CHANGE_LATE && change->late.life == life &&
            change->late.number > highest)
            highest = change->late.number;
    }
    return highest;
}

enum silt_status silt_batch_stream(struct silt_batch *batch, const struct silt_stream_row *row)
{
    struct silt_key key = silt_key_number(row->number);
    struct silt_change change = {
        .kind = SILT_CHANGE_STREAM, .number = row->number, .offset = batch->bytes.len};
    enum silt_status status = room(batch);
    if (status == SILT_OK) status = silt_stream_row_encode(row, silt_key_view(&key), &batch->bytes);
    if (status != SILT_OK) return status;
    change.len = batch->bytes.len - change.offset;
    add(batch, &change);
    return SILT_OK;
}

enum silt_status silt_batch_gap(struct silt_batch *batch, const struct silt_gap_row *row)
{
    struct silt_change change = {.kind = SILT_CHANGE_GAP, .gap = *row};
    enum silt_status status = room(batch);
    if (status == SILT_OK) add(batch, &change);
    return status;
}

enum silt_status silt_batch_fork(struct silt_batch *batch, const struct silt_fork_row *row)
{
    struct silt_change change = {.kind = SILT_CHANGE_FORK, .fork = *row};
    enum silt_status status = room(batch);
    if (status == SILT_OK) add(batch, &change);
    return status;
}

enum silt_status silt_batch_late(struct silt_batch *batch, const struct silt_late_row *row)
{
    struct silt_change change = {.kind = SILT_CHANGE_LATE, .late = *row};
    enum silt_status status = room(batch);
    if (status == SILT_OK) add(batch, &change);
    return status;
}
