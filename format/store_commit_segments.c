/* The segments of a commit, held against their stream's row, their neighbours and what they replace (promise 1, archiver step "commit").
 * The writer trusts nobody: a segment that would overlap, lie too high or hold less than what it replaces is refused. */
#include "store_batch.h"

static struct silt_view bytes_of(const struct silt_batch *batch, const struct silt_change *change)
{
    return (struct silt_view){batch->bytes.at + change->offset, change->len};
}

static enum silt_status refuse_segment(const struct silt_segment_info *info,
                                       const struct silt_batch_life *life, struct silt_err *err,
                                       const char *why)
{
    char first[SILT_WIRE_ID_TEXT], last[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(info->first, first);
    silt_wire_id_format(info->last, last);
    silt_fail(err, SILT_ERR_PROTECTED, "refused to commit segment %s to %s: %s", first, last, why);
    if (life) silt_err_set_stream(err, life->name, strlen(life->name));
    return SILT_ERR_PROTECTED;
}

static bool same_header(const struct silt_segment_info *a, const struct silt_segment_info *b)
{
    return a->life == b->life && silt_namespace_equal(a->ns, b->ns) &&
           silt_wire_id_equal(a->first, b->first) && silt_wire_id_equal(a->last, b->last) &&
           a->count == b->count;
}

/* The segment for itself and against its stream's row. */
static enum silt_status check_segment(const struct silt_segment_info *info, struct silt_view value,
                                      const struct silt_batch_life *life, struct silt_err *err)
{
    struct silt_segment_info header;
    enum silt_status status = silt_segment_peek(value, &header, err);
    if (status != SILT_OK) return status;
    if (!same_header(&header, info))
        return refuse_segment(info, life, err, "its header says something else");
    if (silt_wire_id_less(info->last, info->first) || info->count == 0)
        return refuse_segment(info, life, err, "its range is not one");
    if (!life) return refuse_segment(info, life, err, "it comes without its stream's row");
    if (!silt_namespace_equal(info->ns, life->ns))
        return refuse_segment(info, life, err, "its kind of id is not the stream's");
    if (!life->folded_any || silt_wire_id_less(life->watermark, info->last))
        return refuse_segment(info, life, err, "it lies above its stream's watermark");
    return SILT_OK;
}

/* Against what stands under its key. *ret_done: the same bytes stand there already. */
static enum silt_status check_replaced(struct silt_kv_txn *txn, const struct silt_change *change,
                                       struct silt_view key, struct silt_view value,
                                       const struct silt_batch_life *life, bool *ret_done,
                                       struct silt_err *err)
{
    const struct silt_segment_info *info = &change->info;
    struct silt_segment_info old;
    struct silt_view stored;
    *ret_done = false;
    enum silt_status status = silt_kv_get(txn, SILT_DB_SEGMENTS, key, &stored, err);
    if (status == SILT_END)
        return change->replaces
                   ? refuse_segment(info, life, err, "what it should replace is not there")
                   : SILT_OK;
    if (status != SILT_OK) return status;
    if (silt_view_equal(stored, value)) {
        *ret_done = true;
        return SILT_OK;
    }
    if (!change->replaces)
        return refuse_segment(info, life, err, "another segment stands in its place");
    status = silt_segment_peek(stored, &old, err);
    if (status != SILT_OK) return status;
    if (silt_wire_id_less(info->last, old.last) || info->count < old.count)
        return refuse_segment(info, life, err, "it holds less than what it replaces");
    return SILT_OK;
}

/* Segments of one life never overlap. */
static enum silt_status check_below(struct silt_kv_txn *txn, const struct silt_segment_info *info,
                                    struct silt_view key, const struct silt_batch_life *life,
                                    struct silt_err *err)
{
    struct silt_kv_pair below;
    struct silt_segment_info header;
    enum silt_status status = silt_kv_at_or_below(txn, SILT_DB_SEGMENTS, key, &below, err);
    if (status == SILT_OK && silt_view_equal(below.key, key))
        status = silt_kv_prev(txn, SILT_DB_SEGMENTS, &below, err);
    if (status == SILT_END) return SILT_OK;
    if (status != SILT_OK) return status;
    if (below.key.len < 8 || silt_get_be64(below.key.at) != info->life) return SILT_OK;
    status = silt_segment_peek(below.value, &header, err);
    if (status != SILT_OK) {
        /* A damaged neighbour must not stop the stream: whatever it holds lies at or below the old watermark. */
        if (life->had_watermark && silt_wire_id_less(life->old_watermark, info->first))
            return SILT_OK;
        return status;
    }
    if (!silt_wire_id_less(header.last, info->first))
        return refuse_segment(info, life, err, "it would overlap the segment below");
    return SILT_OK;
}

static enum silt_status check_above(struct silt_kv_txn *txn, const struct silt_segment_info *info,
                                    struct silt_view key, const struct silt_batch_life *life,
                                    struct silt_err *err)
{
    struct silt_kv_pair above;
    uint64_t key_life;
    struct silt_namespace ns;
    struct silt_wire_id first;
    enum silt_status status = silt_kv_at_or_above(txn, SILT_DB_SEGMENTS, key, &above, err);
    if (status == SILT_OK && silt_view_equal(above.key, key))
        status = silt_kv_next(txn, SILT_DB_SEGMENTS, &above, err);
    if (status == SILT_END) return SILT_OK;
    if (status != SILT_OK) return status;
    if (!silt_key_segment_parse(above.key, &key_life, &ns, &first))
        return silt_fail(err, SILT_ERR_CORRUPT, "a segment's key is damaged");
    if (key_life == info->life && !silt_wire_id_less(info->last, first))
        return refuse_segment(info, life, err, "it would overlap the segment above");
    return SILT_OK;
}

enum silt_status silt_commit_segment(struct silt_batch *batch, struct silt_kv_txn *txn,
                                     const struct silt_change *change, struct silt_err *err)
{
    const struct silt_segment_info *info = &change->info;
    const struct silt_batch_life *life = silt_batch_find_life(batch, info->life);
    struct silt_view value = bytes_of(batch, change);
    struct silt_key key = silt_key_segment(info->life, info->ns, info->first);
    bool done = false;
    enum silt_status status = check_segment(info, value, life, err);
    if (status == SILT_OK)
        status = check_replaced(txn, change, silt_key_view(&key), value, life, &done, err);
    if (status == SILT_OK) status = check_below(txn, info, silt_key_view(&key), life, err);
    if (status == SILT_OK) status = check_above(txn, info, silt_key_view(&key), life, err);
    if (status != SILT_OK || done) return status;
    return silt_kv_put(txn, SILT_DB_SEGMENTS, silt_key_view(&key), value, err);
}

/* ---- one segment makes way for several ---- */

/* The new ones for themselves, against the row, and together against what they replace. *ret_range: first, last, count of all. */
static enum silt_status check_parts(const struct silt_batch *batch,
                                    const struct silt_change *change,
                                    const struct silt_batch_life *life,
                                    struct silt_segment_info *ret_range, struct silt_err *err)
{
    const struct silt_segment_info *old = &change->replaced.info;
    uint64_t count = 0;
    for (size_t i = 1; i <= change->replaced.parts; i++) {
        const struct silt_segment_info *info = &change[i].info;
        enum silt_status status = check_segment(info, bytes_of(batch, &change[i]), life, err);
        if (status != SILT_OK) return status;
        if (info->life != old->life || !silt_namespace_equal(info->ns, old->ns))
            return refuse_segment(info, life, err, "it is of another life than what it replaces");
        if (i > 1 && !silt_wire_id_less(change[i - 1].info.last, info->first))
            return refuse_segment(info, life, err, "it would overlap the segment below");
        count += info->count;
    }
    *ret_range = change[1].info;
    ret_range->last = change[change->replaced.parts].info.last;
    if (silt_wire_id_less(old->first, ret_range->first) ||
        silt_wire_id_less(ret_range->last, old->last) || count < old->count)
        return refuse_segment(ret_range, life, err, "it holds less than what it replaces");
    return SILT_OK;
}

/* All of the new ones stand there already: the same commit once more. */
static bool parts_are_there(const struct silt_batch *batch, struct silt_kv_txn *txn,
                            const struct silt_change *change)
{
    for (size_t i = 1; i <= change->replaced.parts; i++) {
        const struct silt_segment_info *info = &change[i].info;
        struct silt_key key = silt_key_segment(info->life, info->ns, info->first);
        struct silt_view stored;
        if (silt_kv_get(txn, SILT_DB_SEGMENTS, silt_key_view(&key), &stored, NULL) != SILT_OK ||
            !silt_view_equal(stored, bytes_of(batch, &change[i])))
            return false;
    }
    return true;
}

/* What stands there must be, byte for byte, what the new ones were made from: anything else, and entries that came in meanwhile would be
 * overwritten. */
static enum silt_status check_old(const struct silt_change *change, struct silt_view stored,
                                  const struct silt_batch_life *life, struct silt_err *err)
{
    const struct silt_segment_info *old = &change->replaced.info;
    struct silt_segment_info header;
    enum silt_status status = silt_segment_peek(stored, &header, err);
    if (status != SILT_OK) return status;
    if (!same_header(&header, old) || stored.len != old->stored_bytes ||
        silt_checksum(stored, 0) != change->replaced.checksum)
        return refuse_segment(old, life, err,
                              "what it should replace has changed since it was read");
    return SILT_OK;
}

enum silt_status silt_commit_replace(struct silt_batch *batch, struct silt_kv_txn *txn,
                                     const struct silt_change *change, struct silt_err *err)
{
    const struct silt_segment_info *old = &change->replaced.info;
    const struct silt_batch_life *life = silt_batch_find_life(batch, old->life);
    struct silt_key key = silt_key_segment(old->life, old->ns, old->first);
    struct silt_segment_info range;
    struct silt_view stored;
    enum silt_status status = check_parts(batch, change, life, &range, err);
    if (status != SILT_OK || parts_are_there(batch, txn, change)) return status;
    status = silt_kv_get(txn, SILT_DB_SEGMENTS, silt_key_view(&key), &stored, err);
    if (status == SILT_END)
        return refuse_segment(old, life, err, "what it should replace is not there");
    if (status == SILT_OK) status = check_old(change, stored, life, err);
    if (status == SILT_OK) status = silt_kv_delete(txn, SILT_DB_SEGMENTS, silt_key_view(&key), err);
    key = silt_key_segment(range.life, range.ns, range.first);
    /* Where it begins no lower than before, nothing below can overlap that did not: a damaged neighbour is no reason to refuse. */
    if (status == SILT_OK && silt_wire_id_less(range.first, old->first))
        status = check_below(txn, &range, silt_key_view(&key), life, err);
    if (status == SILT_OK) status = check_above(txn, &range, silt_key_view(&key), life, err);
    for (size_t i = 1; status == SILT_OK && i <= change->replaced.parts; i++) {
        key = silt_key_segment(old->life, old->ns, change[i].info.first);
        status = silt_kv_put(txn, SILT_DB_SEGMENTS, silt_key_view(&key),
                             bytes_of(batch, &change[i]), err);
    }
    return status;
}
