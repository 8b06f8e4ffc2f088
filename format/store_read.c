/* Reading the store. Every public call is one snapshot of its own, copied out before it returns, so that no reader ever holds
 * pages that the writer could use again (design.md §4). */
#include "alloc.h"
#include "store_priv.h"

/* ---- inside a transaction ---- */

enum silt_status silt_txn_meta(struct silt_kv_txn *txn, struct silt_meta_row *ret,
                               struct silt_err *err)
{
    struct silt_key key = silt_key_meta();
    struct silt_view value;
    enum silt_status status = silt_kv_get(txn, SILT_DB_META, silt_key_view(&key), &value, err);
    if (status == SILT_END)
        return silt_fail(err, SILT_ERR_NOT_ARCHIVE, "not a silt archive: it has no meta row");
    if (status != SILT_OK) return status;
    return silt_meta_row_decode(value, silt_key_view(&key), ret, err);
}

static enum silt_status take_stream(struct silt_view value, struct silt_view key,
                                    struct silt_stream *ret, struct silt_err *err)
{
    ret->row = (struct silt_stream_row){0}; /* its views are into the bytes that change now */
    silt_buf_clear(&ret->bytes);
    enum silt_status status = silt_buf_put(&ret->bytes, value.at, value.len);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    return silt_stream_row_decode(silt_buf_view(&ret->bytes), key, &ret->groups, &ret->row, err);
}

enum silt_status silt_txn_stream(struct silt_kv_txn *txn, uint64_t number, struct silt_stream *ret,
                                 struct silt_err *err)
{
    struct silt_key key = silt_key_number(number);
    struct silt_view value;
    enum silt_status status = silt_kv_get(txn, SILT_DB_STREAMS, silt_key_view(&key), &value, err);
    if (status != SILT_OK) return status;
    return take_stream(value, silt_key_view(&key), ret, err);
}

/* A damaged row on the way hides no stream: the look-up goes on, and only if the name is nowhere else it may have been the
 * damaged one. */
enum silt_status silt_txn_name(struct silt_kv_txn *txn, struct silt_view name,
                               struct silt_stream *scratch, uint64_t *ret_number,
                               uint64_t *ret_round, struct silt_err *err)
{
    enum silt_status damage = SILT_OK;
    for (uint64_t round = 0;; round++) {
        struct silt_key key = silt_key_name(name, round);
        struct silt_view value;
        uint64_t number;
        enum silt_status status = silt_kv_get(txn, SILT_DB_NAMES, silt_key_view(&key), &value, err);
        if (status == SILT_END) {
            *ret_round = round;
            return damage == SILT_OK ? SILT_END : damage;
        }
        if (status != SILT_OK) return status; /* the index itself: no round can be looked up */
        status = silt_name_row_decode(value, silt_key_view(&key), &number, err);
        if (status == SILT_OK) status = silt_txn_stream(txn, number, scratch, err);
        if (status == SILT_END)
            status = silt_fail(err, SILT_ERR_CORRUPT, "a name row leads to no stream");
        if (status == SILT_OK && silt_view_equal(scratch->row.name, name)) {
            *ret_number = number;
            return SILT_OK;
        }
        if (status != SILT_OK && silt_status_class(status) != SILT_CLASS_CORRUPT) return status;
        if (status != SILT_OK) damage = status;
    }
}

/* The header of the value at a place; a damaged one gets the range from its key to the next key. */
static enum silt_status place_info(struct silt_kv_txn *txn, uint64_t life, struct silt_namespace ns,
                                   struct silt_segment_place *place, struct silt_err *err)
{
    uint64_t key_life = 0;
    struct silt_namespace key_ns = {{0}};
    struct silt_wire_id first = {0, 0};
    struct silt_segment_info info = {0};
    bool keyed = silt_key_segment_parse(place->pair.key, &key_life, &key_ns, &first);
    enum silt_status status = silt_segment_peek(place->pair.value, &info, err);
    if (status == SILT_OK &&
        (!keyed || info.life != life || key_life != life || !silt_namespace_equal(info.ns, ns) ||
         !silt_namespace_equal(key_ns, ns) || !silt_wire_id_equal(info.first, first) ||
         silt_wire_id_less(info.last, info.first)))
        status = silt_fail(err, SILT_ERR_CORRUPT, "a segment's header does not fit its key");
    if (status == SILT_OK) {
        place->info = info;
        return SILT_OK;
    }
    struct silt_kv_pair next;
    struct silt_wire_id last = SILT_WIRE_ID_MAX, next_first;
    if (silt_kv_next(txn, SILT_DB_SEGMENTS, &next, NULL) == SILT_OK &&
        silt_key_segment_parse(next.key, &key_life, &key_ns, &next_first) && key_life == life)
        (void)silt_wire_id_prev(next_first, &last);
    place->info = (struct silt_segment_info){.life = life, .ns = ns, .first = first, .last = last};
    return status;
}

static bool of_life(struct silt_view key, uint64_t life)
{
    return key.len >= 8 && silt_get_be64(key.at) == life;
}

/* Does it hold the id, or lie behind it in the direction of the walk? */
static bool reaches(const struct silt_segment_info *info, struct silt_wire_id id,
                    enum silt_seek seek)
{
    return seek == SILT_SEEK_FORWARD ? !silt_wire_id_less(info->last, id)
                                     : !silt_wire_id_less(id, info->first);
}

/* The neighbour is another life's by its key. Where its value says that it is ours, the key is damaged: to call this the end would hide it. */
static enum silt_status end_of_life(uint64_t life, struct silt_wire_id id, enum silt_seek seek,
                                    struct silt_segment_place *place, struct silt_err *err)
{
    struct silt_segment_info info;
    if (silt_segment_peek(place->pair.value, &info, NULL) != SILT_OK || info.life != life ||
        !reaches(&info, id, seek))
        return SILT_END;
    place->info = info;
    return silt_fail(err, SILT_ERR_CORRUPT, "a segment's key names another life");
}

/* The segment whose first id is the highest at or below the given one. SILT_END: none. Where LMDB itself cannot go on, the
 * range says that nothing beyond the id can be reached from here. */
static enum silt_status place_below(struct silt_kv_txn *txn, uint64_t life,
                                    struct silt_namespace ns, struct silt_wire_id id,
                                    enum silt_seek seek, struct silt_segment_place *ret,
                                    struct silt_err *err)
{
    struct silt_key key = silt_key_segment(life, ns, id);
    *ret = (struct silt_segment_place){.info = {.life = life, .ns = ns, .last = id}};
    enum silt_status status =
        silt_kv_at_or_below(txn, SILT_DB_SEGMENTS, silt_key_view(&key), &ret->pair, err);
    if (status != SILT_OK) return status;
    if (!of_life(ret->pair.key, life)) return end_of_life(life, id, seek, ret, err);
    return place_info(txn, life, ns, ret, err);
}

static enum silt_status place_above(struct silt_kv_txn *txn, uint64_t life,
                                    struct silt_namespace ns, struct silt_wire_id id,
                                    struct silt_segment_place *ret, struct silt_err *err)
{
    struct silt_key key = silt_key_segment(life, ns, id);
    *ret = (struct silt_segment_place){
        .info = {.life = life, .ns = ns, .first = id, .last = SILT_WIRE_ID_MAX}};
    enum silt_status status =
        silt_kv_at_or_above(txn, SILT_DB_SEGMENTS, silt_key_view(&key), &ret->pair, err);
    if (status != SILT_OK) return status;
    if (!of_life(ret->pair.key, life)) return end_of_life(life, id, SILT_SEEK_FORWARD, ret, err);
    return place_info(txn, life, ns, ret, err);
}

/* An index page on the way is damaged: the segments that it leads to cannot be reached, its neighbours can. The range is what lies between
 * them, so that the caller can step over it. */
static void range_of_lost_page(struct silt_kv_txn *txn, uint64_t life, struct silt_wire_id id,
                               enum silt_seek seek, struct silt_segment_info *info)
{
    struct silt_kv_pair pair;
    struct silt_segment_info header;
    struct silt_namespace ns;
    struct silt_wire_id first;
    uint64_t key_life;
    bool forward = seek == SILT_SEEK_FORWARD;
    info->first = forward ? id : SILT_WIRE_ID_MIN;
    info->last = forward ? SILT_WIRE_ID_MAX : id;
    enum silt_status status = forward ? silt_kv_next(txn, SILT_DB_SEGMENTS, &pair, NULL)
                                      : silt_kv_prev(txn, SILT_DB_SEGMENTS, &pair, NULL);
    if (status != SILT_OK || !silt_key_segment_parse(pair.key, &key_life, &ns, &first) ||
        key_life != life)
        return;
    if (forward && silt_wire_id_less(id, first)) {
        (void)silt_wire_id_prev(first, &info->last);
    } else if (!forward && silt_wire_id_less(first, id)) {
        info->first = first;
        if (silt_segment_peek(pair.value, &header, NULL) == SILT_OK &&
            silt_wire_id_less(header.last, id))
            (void)silt_wire_id_next(header.last, &info->first);
    }
}

enum silt_status silt_txn_segment(struct silt_kv_txn *txn, uint64_t life, struct silt_namespace ns,
                                  struct silt_wire_id id, enum silt_seek seek,
                                  struct silt_segment_place *ret, struct silt_err *err)
{
    enum silt_status status = place_below(txn, life, ns, id, seek, ret, err);
    bool reached = status == SILT_END || ret->pair.key.at;
    /* A damaged one may reach as far as the next one's first id: it is the answer for every id up to there. */
    if (reached && seek == SILT_SEEK_FORWARD &&
        (status == SILT_END || silt_wire_id_less(ret->info.last, id))) {
        status = place_above(txn, life, ns, id, ret, err);
        reached = status == SILT_END || ret->pair.key.at;
    }
    if (!reached) range_of_lost_page(txn, life, id, seek, &ret->info);
    if (status == SILT_END || reaches(&ret->info, id, seek)) return status;
    /* Damaged keys may lead back: a walk that believed them would never end. */
    ret->info.first = seek == SILT_SEEK_FORWARD ? id : SILT_WIRE_ID_MIN;
    ret->info.last = seek == SILT_SEEK_FORWARD ? SILT_WIRE_ID_MAX : id;
    return status == SILT_OK
               ? silt_fail(err, SILT_ERR_CORRUPT, "a segment stands in another one's place")
               : status;
}

/* ---- streams ---- */

void silt_stream_release(struct silt_stream *stream)
{
    if (!stream) return;
    silt_buf_release(&stream->bytes);
    silt_buf_release(&stream->groups);
    memset(&stream->row, 0, sizeof stream->row);
}

static enum silt_status unknown(struct silt_view name, struct silt_err *err)
{
    silt_fail(err, SILT_ERR_UNKNOWN_STREAM, "the archive holds no such stream");
    silt_err_set_stream(err, name.at, name.len);
    return SILT_ERR_UNKNOWN_STREAM;
}

enum silt_status silt_store_stream(struct silt_store *store, struct silt_view name,
                                   struct silt_stream *ret, struct silt_err *err)
{
    struct silt_kv_txn *txn;
    uint64_t number, round;
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_txn_name(txn, name, ret, &number, &round, err);
    silt_env_read_end(store, txn);
    if (status == SILT_END) return unknown(name, err);
    if (status != SILT_OK) silt_err_set_stream(err, name.at, name.len);
    return status;
}

enum silt_status silt_store_stream_number(struct silt_store *store, uint64_t number,
                                          struct silt_stream *ret, struct silt_err *err)
{
    struct silt_kv_txn *txn;
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_txn_stream(txn, number, ret, err);
    silt_env_read_end(store, txn);
    if (status == SILT_END)
        return silt_fail(err, SILT_ERR_UNKNOWN_STREAM, "the archive has no stream number %llu",
                         (unsigned long long)number);
    return status;
}

enum silt_status silt_store_stream_after(struct silt_store *store, uint64_t after,
                                         struct silt_stream *ret, struct silt_err *err)
{
    struct silt_kv_txn *txn;
    struct silt_kv_pair pair;
    if (after == UINT64_MAX) return SILT_END;
    struct silt_key key = silt_key_number(after + 1);
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_kv_at_or_above(txn, SILT_DB_STREAMS, silt_key_view(&key), &pair, err);
    if (status == SILT_OK) {
        status = take_stream(pair.value, pair.key, ret, err);
        /* So that a walk can go on behind a damaged row. */
        if (pair.key.len == 8) ret->row.number = silt_get_be64(pair.key.at);
    }
    silt_env_read_end(store, txn);
    return status;
}

/* ---- segments ---- */

static enum silt_status copy_segment(struct silt_store *store, uint64_t life,
                                     struct silt_namespace ns, struct silt_wire_id id,
                                     enum silt_seek seek, struct silt_buf *value,
                                     struct silt_segment_info *ret_info, struct silt_err *err)
{
    struct silt_kv_txn *txn;
    struct silt_segment_place place = {0};
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_txn_segment(txn, life, ns, id, seek, &place, err);
    if (status == SILT_OK) {
        silt_buf_clear(value);
        status = silt_buf_put(value, place.pair.value.at, place.pair.value.len);
        if (status != SILT_OK) silt_fail(err, status, NULL);
    }
    silt_env_read_end(store, txn);
    *ret_info = place.info;
    return status;
}

enum silt_status silt_store_segment(struct silt_store *store, uint64_t life,
                                    struct silt_namespace ns, struct silt_wire_id id,
                                    enum silt_seek seek, struct silt_buf *value,
                                    struct silt_segment_info *ret_info, struct silt_err *err)
{
    enum silt_status status = copy_segment(store, life, ns, id, seek, value, ret_info, err);
    /* protocol.md §10: once more in a fresh transaction before it is called damage. */
    if (silt_status_class(status) == SILT_CLASS_CORRUPT)
        status = copy_segment(store, life, ns, id, seek, value, ret_info, err);
    return status;
}

enum silt_status silt_store_segment_above(struct silt_store *store, uint64_t life,
                                          struct silt_namespace ns, struct silt_wire_id id,
                                          struct silt_wire_id *ret)
{
    struct silt_kv_txn *txn;
    struct silt_kv_pair pair;
    struct silt_namespace key_ns;
    uint64_t key_life;
    if (!silt_wire_id_next(id, &id)) return SILT_END;
    struct silt_key key = silt_key_segment(life, ns, id);
    enum silt_status status = silt_env_read(store, &txn, NULL);
    if (status != SILT_OK) return status;
    status = silt_kv_at_or_above(txn, SILT_DB_SEGMENTS, silt_key_view(&key), &pair, NULL);
    if (status == SILT_OK && (!silt_key_segment_parse(pair.key, &key_life, &key_ns, ret) ||
                              key_life != life || !silt_namespace_equal(key_ns, ns)))
        status = SILT_END;
    silt_env_read_end(store, txn);
    return status;
}

/* Peeking at a damaged value may have moved the place to the next key: seek afresh from a known id. */
static enum silt_status next_place(struct silt_kv_txn *txn, uint64_t life, struct silt_namespace ns,
                                   enum silt_seek seek, struct silt_segment_place *place,
                                   struct silt_err *err)
{
    struct silt_wire_id id;
    if (seek == SILT_SEEK_BACKWARD)
        return silt_wire_id_prev(place->info.first, &id)
                   ? silt_txn_segment(txn, life, ns, id, seek, place, err)
                   : SILT_END;
    return silt_wire_id_next(place->info.last, &id)
               ? silt_txn_segment(txn, life, ns, id, SILT_SEEK_FORWARD, place, err)
               : SILT_END;
}

enum silt_status silt_store_segments(struct silt_store *store, uint64_t life,
                                     struct silt_namespace ns, struct silt_wire_id id,
                                     enum silt_seek seek, silt_store_visit *visit, void *ctx,
                                     struct silt_err *err)
{
    struct silt_kv_txn *txn;
    struct silt_segment_place place = {0};
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_txn_segment(txn, life, ns, id, seek, &place, err);
    while (status == SILT_OK || silt_status_class(status) == SILT_CLASS_CORRUPT) {
        if (!visit(ctx, status, &place.info)) break;
        status = next_place(txn, life, ns, seek, &place, err);
    }
    silt_env_read_end(store, txn);
    return status == SILT_END || silt_status_class(status) == SILT_CLASS_CORRUPT ? SILT_OK : status;
}

/* ---- forks, gaps, late entries ---- */

enum silt_status silt_store_fork(struct silt_store *store, uint64_t life, struct silt_fork_row *ret,
                                 struct silt_err *err)
{
    struct silt_kv_txn *txn;
    struct silt_view value;
    struct silt_key key = silt_key_fork_life(life);
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_kv_get(txn, SILT_DB_FORKS, silt_key_view(&key), &value, err);
    if (status == SILT_OK) status = silt_fork_row_decode(value, silt_key_view(&key), ret, err);
    silt_env_read_end(store, txn);
    return status;
}

enum silt_status silt_store_fork_after(struct silt_store *store, uint64_t stream,
                                       uint64_t after_life, struct silt_fork_row *ret,
                                       struct silt_err *err)
{
    struct silt_kv_txn *txn;
    struct silt_kv_pair pair;
    if (after_life == UINT64_MAX) return SILT_END;
    struct silt_key key = silt_key_fork_stream(stream, after_life + 1);
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_kv_at_or_above(txn, SILT_DB_FORKS, silt_key_view(&key), &pair, err);
    if (status == SILT_OK && (pair.key.len != key.len || memcmp(pair.key.at, key.at, 9) != 0))
        status = SILT_END;
    if (status == SILT_OK) status = silt_fork_row_decode(pair.value, pair.key, ret, err);
    silt_env_read_end(store, txn);
    return status;
}

enum silt_status silt_store_late_after(struct silt_store *store, uint64_t life,
                                       uint64_t after_number, struct silt_late_row *ret,
                                       struct silt_err *err)
{
    struct silt_kv_txn *txn;
    struct silt_kv_pair pair;
    if (after_number == UINT64_MAX) return SILT_END;
    struct silt_key key = silt_key_pair(life, after_number + 1);
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_kv_at_or_above(txn, SILT_DB_LATE, silt_key_view(&key), &pair, err);
    if (status == SILT_OK && !of_life(pair.key, life)) status = SILT_END;
    if (status == SILT_OK) status = silt_late_row_decode(pair.value, pair.key, ret, err);
    silt_env_read_end(store, txn);
    return status;
}

enum silt_status silt_store_late_highest(struct silt_store *store, uint64_t life, uint64_t *ret,
                                         struct silt_err *err)
{
    struct silt_kv_txn *txn;
    struct silt_kv_pair pair;
    struct silt_late_row row = {0};
    struct silt_key key = silt_key_pair(life, UINT64_MAX);
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_kv_at_or_below(txn, SILT_DB_LATE, silt_key_view(&key), &pair, err);
    if (status == SILT_OK && !of_life(pair.key, life)) status = SILT_END;
    if (status == SILT_OK) status = silt_late_row_decode(pair.value, pair.key, &row, err);
    silt_env_read_end(store, txn);
    if (status == SILT_OK || status == SILT_END) *ret = row.number;
    return status == SILT_END ? SILT_OK : status;
}

/* The gap with `index` gaps of its life before it. From the one given last where the walk goes on, else from the first. */
static enum silt_status gap_pair(struct silt_store *store, struct silt_kv_txn *txn, uint64_t life,
                                 uint64_t index, struct silt_kv_pair *ret, struct silt_err *err)
{
    bool going_on = index > 0 && store->gap_life == life && store->gap_cursor == index &&
                    store->gap_key.len > 0;
    struct silt_key start = silt_key_gap(life, SILT_WIRE_ID_MIN, 0);
    struct silt_view from = going_on ? silt_buf_view(&store->gap_key) : silt_key_view(&start);
    enum silt_status status = silt_kv_at_or_above(txn, SILT_DB_GAPS, from, ret, err);
    if (status == SILT_OK && going_on && silt_view_equal(ret->key, from))
        status = silt_kv_next(txn, SILT_DB_GAPS, ret, err);
    for (uint64_t i = 0; !going_on && status == SILT_OK && i < index; i++) {
        if (!of_life(ret->key, life)) return SILT_END;
        status = silt_kv_next(txn, SILT_DB_GAPS, ret, err);
    }
    return status == SILT_OK && !of_life(ret->key, life) ? SILT_END : status;
}

enum silt_status silt_store_gap_after(struct silt_store *store, uint64_t life,
                                      uint64_t *inout_cursor, struct silt_gap_row *ret,
                                      struct silt_err *err)
{
    struct silt_kv_txn *txn;
    struct silt_kv_pair pair;
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = gap_pair(store, txn, life, *inout_cursor, &pair, err);
    if (status == SILT_OK) {
        *inout_cursor += 1; /* also past a damaged row: a walk goes on behind it */
        store->gap_life = life;
        store->gap_cursor = *inout_cursor;
        silt_buf_clear(&store->gap_key);
        status = silt_buf_put(&store->gap_key, pair.key.at, pair.key.len);
        if (status != SILT_OK) silt_fail(err, status, NULL);
    }
    if (status == SILT_OK) status = silt_gap_row_decode(pair.value, pair.key, ret, err);
    silt_env_read_end(store, txn);
    return status;
}
