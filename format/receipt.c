/* The receipt (promise 1, archiver step "read back"): proof that entries were read from a fresh snapshot, checked and decoded.
 * struct silt_receipt is known to this file alone, and only silt_store_read_back makes one: what has no receipt is not trimmed. */
#include "alloc.h"
#include "faultpoint.h"
#include "store_priv.h"

struct silt_receipt {
    struct silt_receipt_facts facts;
};

struct read_back {
    struct silt_store *store;
    struct silt_wire_id through; /* the highest id wanted */
    uint64_t max_entries;
    struct silt_receipt_facts facts;
};

/* The entries of one decoded segment from `from` to `last`. *ret_more: the limit was not reached. */
static void count_entries(struct read_back *r, struct silt_wire_id from, struct silt_wire_id last,
                          bool *ret_more)
{
    struct silt_segment *segment = r->store->segment;
    size_t count = silt_segment_count(segment);
    *ret_more = false;
    for (size_t i = silt_segment_find(segment, from); i < count; i++) {
        struct silt_entry entry;
        if (r->facts.count == r->max_entries) return;
        silt_segment_entry(segment, i, &entry);
        if (silt_wire_id_less(r->through, entry.id)) return;
        if (silt_wire_id_less(last, entry.id)) break; /* the child's from here on */
        r->facts.count++;
        r->facts.values_bytes += silt_entry_bytes(&entry);
        r->facts.digest = silt_entry_digest(&entry, r->facts.digest);
        r->facts.through = entry.id;
    }
    *ret_more = r->facts.count < r->max_entries;
}

static bool header_holds(const struct silt_segment *segment, const struct silt_segment_info *info)
{
    size_t count = silt_segment_count(segment);
    return count > 0 && count == info->count &&
           silt_wire_id_equal(silt_segment_id(segment, 0), info->first) &&
           silt_wire_id_equal(silt_segment_id(segment, count - 1), info->last);
}

/* Which life holds this id: the row's own from its fork on, below it its parent, and so on. *ret_last: the last id that it is asked for. */
static enum silt_status life_of(struct silt_kv_txn *txn, const struct silt_stream_row *row,
                                struct silt_wire_id id, uint64_t *ret_life,
                                struct silt_wire_id *ret_last, struct silt_err *err)
{
    *ret_life = row->life;
    *ret_last = SILT_WIRE_ID_MAX;
    for (;;) {
        struct silt_view value;
        struct silt_fork_row fork;
        struct silt_key key = silt_key_fork_life(*ret_life);
        enum silt_status status = silt_kv_get(txn, SILT_DB_FORKS, silt_key_view(&key), &value, err);
        if (status == SILT_END) return SILT_OK;
        if (status == SILT_OK)
            status = silt_fork_row_decode(value, silt_key_view(&key), &fork, err);
        if (status != SILT_OK) return status;
        if (!silt_wire_id_less(id, fork.fork)) return SILT_OK;
        if (fork.parent >= *ret_life) /* only downwards, or the walk would never end */
            return silt_fail(err, SILT_ERR_CORRUPT, "a life's parent is not older than it");
        if (!silt_wire_id_less(*ret_last, fork.fork)) silt_wire_id_prev(fork.fork, ret_last);
        *ret_life = fork.parent;
    }
}

static enum silt_status walk(struct read_back *r, struct silt_kv_txn *txn,
                             const struct silt_stream_row *row, struct silt_err *err)
{
    struct silt_wire_id from = r->facts.after;
    bool more = r->max_entries > 0;
    while (more && silt_wire_id_next(from, &from) && !silt_wire_id_less(r->through, from)) {
        struct silt_segment_place place;
        struct silt_wire_id last;
        uint64_t life;
        enum silt_status status = life_of(txn, row, from, &life, &last, err);
        if (status == SILT_OK)
            status = silt_txn_segment(txn, life, row->ns, from, SILT_SEEK_FORWARD, &place, err);
        if (status == SILT_END ||
            (status == SILT_OK && silt_wire_id_less(last, place.info.first))) {
            from =
                last; /* nothing more of this life; the highest id there is where it is the row's own */
            continue;
        }
        if (status == SILT_OK) status = silt_segment_open(r->store->segment, place.pair.value, err);
        if (status != SILT_OK) return status;
        if (!header_holds(r->store->segment, &place.info))
            return silt_fail(err, SILT_ERR_CORRUPT, "a segment does not hold what its header says");
        count_entries(r, from, last, &more);
        from = silt_wire_id_lower(place.info.last, last);
    }
    return SILT_OK;
}

static enum silt_status refuse(const struct silt_stream_row *row, struct silt_wire_id through,
                               struct silt_err *err)
{
    char wanted[SILT_WIRE_ID_TEXT], top[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(through, wanted);
    silt_wire_id_format(row->watermark, top);
    silt_fail(err, SILT_ERR_PROTECTED, "no receipt up to %s: the archive reaches to %s", wanted,
              row->folded_any ? top : "nothing yet");
    silt_err_set_stream(err, row->name.at, row->name.len);
    return SILT_ERR_PROTECTED;
}

static enum silt_status read_once(struct read_back *r, struct silt_err *err)
{
    SILT_CLEANUP(silt_stream_release) struct silt_stream stream = {0};
    struct silt_kv_txn *txn;
    r->facts.count = r->facts.values_bytes = r->facts.digest = 0;
    r->facts.through = r->facts.after;
    enum silt_status status = silt_env_read(r->store, &txn, err); /* a fresh snapshot */
    if (status != SILT_OK) return status;
    /* Promise 1: a copy in a file that nobody can open again is none, and nothing may be trimmed for it. */
    status = silt_kv_named(r->store->env->kv, err);
    if (status == SILT_OK) status = silt_txn_stream(txn, r->facts.stream, &stream, err);
    if (status == SILT_END)
        status = silt_fail(err, SILT_ERR_UNKNOWN_STREAM, "the archive has no stream number %llu",
                           (unsigned long long)r->facts.stream);
    if (status == SILT_OK &&
        (!stream.row.folded_any || silt_wire_id_less(stream.row.watermark, r->through)))
        status = refuse(&stream.row, r->through, err);
    if (status == SILT_OK) {
        r->facts.life = stream.row.life;
        r->facts.watermark = stream.row.watermark;
        status = walk(r, txn, &stream.row, err);
        if (status != SILT_OK) silt_err_set_stream(err, stream.row.name.at, stream.row.name.len);
    }
    silt_env_read_end(r->store, txn);
    return status;
}

enum silt_status silt_store_read_back(struct silt_store *store, uint64_t stream,
                                      struct silt_wire_id after, struct silt_wire_id through,
                                      uint64_t max_entries, struct silt_receipt **ret,
                                      struct silt_err *err)
{
    struct read_back r = {store, through, max_entries, {.stream = stream, .after = after}};
    if (silt_wire_id_less(through, after)) return silt_fail(err, SILT_ERR_WINDOW, NULL);
    if (SILT_FAULTPOINT("store-before-read-back")) return silt_fail(err, SILT_ERR_CORRUPT, NULL);
    enum silt_status status = store->segment ? SILT_OK : silt_segment_new(&store->segment);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    status = read_once(&r, err);
    if (silt_status_class(status) == SILT_CLASS_CORRUPT)
        status = read_once(&r, err); /* once more before it is called damage (protocol.md §10) */
    if (status != SILT_OK) return status;
    struct silt_receipt *receipt = silt_alloc(sizeof *receipt);
    if (!receipt) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    receipt->facts = r.facts;
    *ret = receipt;
    return SILT_OK;
}

const struct silt_receipt_facts *silt_receipt_facts(const struct silt_receipt *receipt)
{
    return &receipt->facts;
}

void silt_receipt_free(struct silt_receipt *receipt)
{
    silt_free(receipt);
}
