/* Everything that a fold changes, in one synced transaction (promise 1, archiver step "commit"). The writer trusts nobody: what
 * would make the archive contradict itself is refused before it is written, and then nothing is. */
#include <stdlib.h>

#include "alloc.h"
#include "faultpoint.h"
#include "store_batch.h"

struct commit {
    struct silt_store *store;
    struct silt_batch *batch;
};

static struct silt_view bytes_of(const struct silt_batch *batch, const struct silt_change *change)
{
    return (struct silt_view){batch->bytes.at + change->offset, change->len};
}

/* ---- stream rows ---- */

static enum silt_status refuse_row(const struct silt_stream_row *row, struct silt_err *err,
                                   const char *why)
{
    silt_fail(err, SILT_ERR_PROTECTED, "refused to commit: %s", why);
    silt_err_set_stream(err, row->name.at, row->name.len);
    return SILT_ERR_PROTECTED;
}

static enum silt_status check_row(const struct silt_store *store, const struct silt_stream_row *row,
                                  struct silt_err *err)
{
    if (row->number == 0 || row->number >= store->next_stream)
        return refuse_row(row, err, "the stream's number was never given out");
    if (row->life == 0 || row->life >= store->next_life)
        return refuse_row(row, err, "the life's number was never given out");
    if (row->folded_any && silt_wire_id_less(row->watermark, row->custody))
        return refuse_row(row, err, "custody lies above the watermark");
    return SILT_OK;
}

static enum silt_status check_change(const struct silt_stream_row *old,
                                     const struct silt_stream_row *row, struct silt_err *err)
{
    if (!silt_view_equal(old->name, row->name))
        return refuse_row(row, err, "the stream's number belongs to another name");
    if (!silt_namespace_equal(old->ns, row->ns))
        return refuse_row(row, err, "the stream's kind of id would change");
    if (row->life < old->life) return refuse_row(row, err, "the stream's life would go back");
    if (row->life != old->life || !old->folded_any) return SILT_OK;
    if (!row->folded_any || silt_wire_id_less(row->watermark, old->watermark))
        return refuse_row(row, err, "the watermark would go back");
    return SILT_OK;
}

/* A new stream gets its name, in the first round of the hash that nobody has. */
static enum silt_status add_name(struct commit *c, struct silt_kv_txn *txn,
                                 const struct silt_stream_row *row, struct silt_err *err)
{
    uint64_t number, round;
    struct silt_batch *batch = c->batch;
    enum silt_status status = silt_txn_name(txn, row->name, &batch->before, &number, &round, err);
    if (status == SILT_OK) return refuse_row(row, err, "another stream has this name");
    if (status != SILT_END) return status;
    struct silt_key key = silt_key_name(row->name, round);
    silt_buf_clear(&batch->row);
    status = silt_name_row_encode(row->number, silt_key_view(&key), &batch->row);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    return silt_kv_put(txn, SILT_DB_NAMES, silt_key_view(&key), silt_buf_view(&batch->row), err);
}

static enum silt_status note_life(struct silt_batch *batch, const struct silt_stream_row *row,
                                  const struct silt_stream_row *old, struct silt_err *err)
{
    void *at = batch->lives;
    if (silt_grow(&at, &batch->life_cap, batch->life_count + 1, sizeof *batch->lives) != 0)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    batch->lives = at;
    struct silt_batch_life *life = &batch->lives[batch->life_count];
    *life = (struct silt_batch_life){.life = row->life,
                                     .order = batch->life_count,
                                     .ns = row->ns,
                                     .folded_any = row->folded_any,
                                     .watermark = row->watermark};
    if (old && old->life == row->life && old->folded_any) {
        life->had_watermark = true;
        life->old_watermark = old->watermark;
    }
    silt_escape(row->name, life->name, sizeof life->name);
    batch->life_count++;
    return SILT_OK;
}

static enum silt_status apply_stream(struct commit *c, struct silt_kv_txn *txn,
                                     const struct silt_change *change, struct silt_err *err)
{
    struct silt_batch *batch = c->batch;
    struct silt_key key = silt_key_number(change->number);
    struct silt_view bytes = bytes_of(batch, change);
    struct silt_stream_row *row = &batch->after.row;
    /* Decoding what was encoded proves the row as the segments are proved. */
    enum silt_status status =
        silt_stream_row_decode(bytes, silt_key_view(&key), &batch->after.groups, row, err);
    if (status == SILT_OK) status = check_row(c->store, row, err);
    if (status != SILT_OK) return status;
    status = silt_txn_stream(txn, change->number, &batch->before, err);
    if (status != SILT_OK && status != SILT_END) {
        silt_err_set_stream(err, row->name.at, row->name.len);
        return status;
    }
    const struct silt_stream_row *old = status == SILT_OK ? &batch->before.row : NULL;
    status = old ? check_change(old, row, err) : SILT_OK;
    if (status == SILT_OK) status = note_life(batch, row, old, err);
    if (status == SILT_OK && !old) status = add_name(c, txn, row, err);
    if (status != SILT_OK) return status;
    return silt_kv_put(txn, SILT_DB_STREAMS, silt_key_view(&key), bytes, err);
}

static int compare_lives(const void *a, const void *b)
{
    const struct silt_batch_life *x = a, *y = b;
    if (x->life != y->life) return x->life < y->life ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The last row of the life's stream. */
const struct silt_batch_life *silt_batch_find_life(const struct silt_batch *batch, uint64_t life)
{
    size_t low = 0, high = batch->life_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (batch->lives[middle].life <= life)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && batch->lives[low - 1].life == life ? &batch->lives[low - 1] : NULL;
}

/* ---- gaps, forks, late entries ---- */

/* Two gaps may begin behind the same id: the first free number tells them apart. */
static enum silt_status apply_gap(struct commit *c, struct silt_kv_txn *txn,
                                  const struct silt_gap_row *row, struct silt_err *err)
{
    uint64_t n = 0;
    struct silt_kv_pair last;
    struct silt_key top = silt_key_gap(row->life, row->range.after, UINT64_MAX);
    enum silt_status status =
        silt_kv_at_or_below(txn, SILT_DB_GAPS, silt_key_view(&top), &last, err);
    if (status != SILT_OK && status != SILT_END) return status;
    if (status == SILT_OK && last.key.len == top.len &&
        memcmp(last.key.at, top.at, top.len - 8) == 0)
        n = silt_get_be64(last.key.at + top.len - 8) + 1;
    struct silt_key key = silt_key_gap(row->life, row->range.after, n);
    silt_buf_clear(&c->batch->row);
    status = silt_gap_row_encode(row, silt_key_view(&key), &c->batch->row);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    return silt_kv_put(txn, SILT_DB_GAPS, silt_key_view(&key), silt_buf_view(&c->batch->row), err);
}

/* A row that is never changed: the same bytes twice are fine, other bytes are refused. */
static enum silt_status put_once(struct silt_kv_txn *txn, enum silt_db db, struct silt_view key,
                                 struct silt_view bytes, struct silt_err *err)
{
    struct silt_view stored;
    enum silt_status status = silt_kv_get(txn, db, key, &stored, err);
    if (status == SILT_END) return silt_kv_put(txn, db, key, bytes, err);
    if (status != SILT_OK || silt_view_equal(stored, bytes)) return status;
    return silt_fail(err, SILT_ERR_PROTECTED, "refused to commit: a row of %s would change",
                     silt_db_name(db));
}

static enum silt_status apply_fork(struct commit *c, struct silt_kv_txn *txn,
                                   const struct silt_fork_row *row, struct silt_err *err)
{
    struct silt_key keys[2] = {silt_key_fork_life(row->life),
                               silt_key_fork_stream(row->stream, row->life)};
    if (row->parent >= row->life)
        return silt_fail(err, SILT_ERR_PROTECTED, "refused to commit: a life before its parent");
    for (int i = 0; i < 2; i++) {
        silt_buf_clear(&c->batch->row);
        enum silt_status status =
            silt_fork_row_encode(row, silt_key_view(&keys[i]), &c->batch->row);
        if (status != SILT_OK) return silt_fail(err, status, NULL);
        status = put_once(txn, SILT_DB_FORKS, silt_key_view(&keys[i]),
                          silt_buf_view(&c->batch->row), err);
        if (status != SILT_OK) return status;
    }
    return SILT_OK;
}

static enum silt_status apply_late(struct commit *c, struct silt_kv_txn *txn,
                                   const struct silt_late_row *row, struct silt_err *err)
{
    struct silt_key key = silt_key_pair(row->life, row->number);
    silt_buf_clear(&c->batch->row);
    enum silt_status status = silt_late_row_encode(row, silt_key_view(&key), &c->batch->row);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    return put_once(txn, SILT_DB_LATE, silt_key_view(&key), silt_buf_view(&c->batch->row), err);
}

/* ---- all of it ---- */

static enum silt_status apply_one(struct commit *c, struct silt_kv_txn *txn,
                                  const struct silt_change *change, struct silt_err *err)
{
    switch (change->kind) {
    case SILT_CHANGE_STREAM: return apply_stream(c, txn, change, err);
    case SILT_CHANGE_SEGMENT: return silt_commit_segment(c->batch, txn, change, err);
    case SILT_CHANGE_REPLACE: return silt_commit_replace(c->batch, txn, change, err);
    case SILT_CHANGE_PART: return SILT_OK; /* of the replacement before it */
    case SILT_CHANGE_GAP: return apply_gap(c, txn, &change->gap, err);
    case SILT_CHANGE_FORK: return apply_fork(c, txn, &change->fork, err);
    case SILT_CHANGE_LATE: return apply_late(c, txn, &change->late, err);
    }
    return silt_fail(err, SILT_ERR_USAGE, NULL);
}

/* Numbers that were given out are used up with the commit that may use them. */
static enum silt_status apply_numbers(const struct silt_store *store, struct silt_kv_txn *txn,
                                      struct silt_err *err)
{
    struct silt_meta_row meta;
    enum silt_status status = silt_txn_meta(txn, &meta, err);
    if (status != SILT_OK) return status;
    if (meta.next_stream >= store->next_stream && meta.next_life >= store->next_life)
        return SILT_OK;
    if (meta.next_stream < store->next_stream) meta.next_stream = store->next_stream;
    if (meta.next_life < store->next_life) meta.next_life = store->next_life;
    return silt_txn_put_meta(txn, &meta, err);
}

/* May run more than once (a full map): starts from nothing each time. Rows come before segments, which are held against them. */
static enum silt_status apply(void *ctx, struct silt_kv_txn *txn, struct silt_err *err)
{
    struct commit *c = ctx;
    struct silt_batch *batch = c->batch;
    enum silt_status status = apply_numbers(c->store, txn, err);
    batch->life_count = 0;
    for (size_t i = 0; i < batch->count && status == SILT_OK; i++)
        if (batch->changes[i].kind == SILT_CHANGE_STREAM)
            status = apply_one(c, txn, &batch->changes[i], err);
    if (batch->life_count > 1)
        qsort(batch->lives, batch->life_count, sizeof *batch->lives, compare_lives);
    for (size_t i = 0; i < batch->count && status == SILT_OK; i++)
        if (batch->changes[i].kind != SILT_CHANGE_STREAM)
            status = apply_one(c, txn, &batch->changes[i], err);
    if (status == SILT_OK && SILT_FAULTPOINT("store-in-commit"))
        status = silt_fail(err, SILT_ERR_DISK_FULL, NULL);
    return status;
}

enum silt_status silt_store_commit(struct silt_store *store, struct silt_batch *batch,
                                   struct silt_err *err)
{
    struct commit c = {store, batch};
    if (SILT_FAULTPOINT("store-before-commit")) return silt_fail(err, SILT_ERR_DISK_FULL, NULL);
    enum silt_status status = silt_env_write(store, apply, &c, err);
    if (status == SILT_OK && SILT_FAULTPOINT("store-after-commit")) {
        /* Committed, but nobody can say so: what a failed sync of the last page would leave. */
        silt_env_lose(store->env);
        return silt_fail(err, SILT_ERR_STORE_LOST, NULL);
    }
    return status;
}
