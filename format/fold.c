/* From entries to proven segment values. What goes into a value is digested from the caller's own bytes as it comes in; the encoded value is decoded
 * by the reader's own code and digested again: only equal digests, ids and counts make a segment (promise 1, step "prove"). Knows no store. */
#include "fold.h"

#include "alloc.h"
#include "faultpoint.h"

/* Encoding is tried when the estimate says full; a little short of it still counts as full, so that a bulk fold encodes each entry about once. */
#define NEARLY_FULL (SILT_SEGMENT_FULL_BYTES - SILT_SEGMENT_FULL_BYTES / 8)
/* Entries pack to a tenth at best before anything is known of them; too low a guess only makes an early try. */
#define FIRST_GUESS_SHIFT 3u
#define OPEN_VALUES_MAX SILT_SEGMENT_OPEN_VALUES_MAX

struct silt_fold {
    struct silt_segment_builder *builder;
    struct silt_segment *decoded;
    uint64_t life;
    struct silt_namespace ns;
    struct silt_fold_sum sum;

    bool has_last; /* the last id seen, of the tail or of an entry */
    struct silt_wire_id last;
    uint64_t digest;   /* of what is in the builder, from the callers' bytes */
    uint64_t try_at;   /* values_bytes from which on encoding is worth a try */
    uint64_t packs_to; /* stored bytes of 2^16 bytes of values, as of the last encoding */
    bool holds_tail;   /* the builder began with the tail's entries */
    struct silt_segment_info tail;
    uint64_t tail_checksum;
    bool done;

    struct silt_buf values; /* all new values, one after the other */
    struct silt_fold_segment *segments;
    size_t segment_count;
    size_t segment_cap;
    struct silt_buf trial; /* an encoding that was not yet full */
};

enum silt_status silt_fold_new(int level, struct silt_fold **ret)
{
    struct silt_fold *fold = silt_calloc(1, sizeof *fold);
    if (!fold) return SILT_ERR_MEMORY;
    enum silt_status status = silt_segment_builder_new(level, &fold->builder);
    if (status == SILT_OK) status = silt_segment_new(&fold->decoded);
    if (status != SILT_OK) {
        silt_fold_free(fold);
        return status;
    }
    fold->packs_to = 65536 >> FIRST_GUESS_SHIFT;
    *ret = fold;
    return SILT_OK;
}

void silt_fold_free(struct silt_fold *fold)
{
    if (!fold) return;
    silt_segment_builder_free(fold->builder);
    silt_segment_free(fold->decoded);
    silt_buf_release(&fold->values);
    silt_buf_release(&fold->trial);
    silt_free(fold->segments);
    silt_free(fold);
}

/* ---- a new value ---- */

static void builder_restart(struct silt_fold *fold)
{
    silt_segment_builder_begin(fold->builder, fold->life, fold->ns);
    fold->digest = 0;
    fold->holds_tail = false;
    fold->try_at = SILT_SEGMENT_FULL_BYTES * 65536ULL / (fold->packs_to + 1);
}

static enum silt_status encode(struct silt_fold *fold, struct silt_segment_info *ret_info,
                               struct silt_err *err)
{
    silt_buf_clear(&fold->trial);
    enum silt_status status = silt_segment_builder_finish(fold->builder, &fold->trial, ret_info);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    uint64_t values = ret_info->values_bytes + 1;
    fold->packs_to = (ret_info->stored_bytes << 16) / values + 1;
    fold->try_at = SILT_SEGMENT_FULL_BYTES * 65536ULL / fold->packs_to;
    return SILT_OK;
}

static enum silt_status refuse_proof(const struct silt_segment_info *info, const char *what,
                                     struct silt_err *err)
{
    char first[SILT_WIRE_ID_TEXT], last[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(info->first, first);
    silt_wire_id_format(info->last, last);
    return silt_fail(err, SILT_ERR_PROOF,
                     "the segment %s to %s does not decode to what was read: %s", first, last,
                     what);
}

/* Promise 1, step "prove": before a value may be stored it is decoded as a reader would, and every entry compared, by digest, with the bytes
 * that came in. */
static enum silt_status prove(struct silt_fold *fold, const struct silt_segment_info *info,
                              struct silt_err *err)
{
    struct silt_err inner = {0};
    if (SILT_FAULTPOINT("fold-corrupt-encoded")) fold->trial.at[fold->trial.len / 2] ^= 1;
    enum silt_status status = silt_segment_open(fold->decoded, silt_buf_view(&fold->trial), &inner);
    if (status == SILT_ERR_MEMORY) return silt_fail(err, status, NULL);
    if (status != SILT_OK) return refuse_proof(info, inner.sentence, err);
    const struct silt_segment_info *back = silt_segment_info(fold->decoded);
    if (back->count != silt_segment_builder_count(fold->builder) || back->life != fold->life ||
        !silt_namespace_equal(back->ns, fold->ns) ||
        back->values_bytes != silt_segment_builder_values_bytes(fold->builder) ||
        !silt_wire_id_equal(back->last, fold->last))
        return refuse_proof(info, "the header differs", err);
    uint64_t digest = 0;
    for (size_t i = 0; i < back->count; i++) {
        struct silt_entry entry;
        silt_segment_entry(fold->decoded, i, &entry);
        digest = silt_entry_digest(&entry, digest);
    }
    if (digest != fold->digest) return refuse_proof(info, "other bytes", err);
    return SILT_OK;
}

/* The encoded value, proven, becomes one of the fold's segments; the builder starts again. */
static enum silt_status close_segment(struct silt_fold *fold, const struct silt_segment_info *info,
                                      struct silt_err *err)
{
    enum silt_status status = prove(fold, info, err);
    if (status != SILT_OK) return status;
    void *at = fold->segments;
    if (silt_grow(&at, &fold->segment_cap, fold->segment_count + 1, sizeof *fold->segments) != 0)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    fold->segments = at;
    struct silt_fold_segment *segment = &fold->segments[fold->segment_count];
    /* Where the value begins; silt_fold_segments makes a view of it when values has stopped growing. */
    *segment = (struct silt_fold_segment){
        .info = *info, .value = {NULL, fold->trial.len}, .replaces_tail = fold->holds_tail};
    if (fold->holds_tail) {
        segment->tail = fold->tail;
        segment->tail_checksum = fold->tail_checksum;
    }
    status = silt_buf_put(&fold->values, fold->trial.at, fold->trial.len);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    fold->segment_count++;
    builder_restart(fold);
    return SILT_OK;
}

/* ---- the tail ---- */

bool silt_segment_is_full(const struct silt_segment_info *info)
{
    return info->stored_bytes >= SILT_SEGMENT_FULL_BYTES || info->values_bytes >= OPEN_VALUES_MAX ||
           info->count >= SILT_SEGMENT_COUNT_MAX;
}

static enum silt_status reopen_tail(struct silt_fold *fold, struct silt_view tail,
                                    struct silt_err *err)
{
    enum silt_status status = silt_segment_open(fold->decoded, tail, err);
    if (status != SILT_OK) return status;
    const struct silt_segment_info *info = silt_segment_info(fold->decoded);
    if (info->life != fold->life || !silt_namespace_equal(info->ns, fold->ns))
        return silt_fail(err, SILT_ERR_CORRUPT, "the last segment belongs to another life");
    fold->has_last = true;
    fold->last = info->last;
    if (silt_segment_is_full(info)) return SILT_OK;
    for (size_t i = 0; i < info->count; i++) {
        struct silt_entry entry;
        silt_segment_entry(fold->decoded, i, &entry);
        status = silt_segment_builder_add(fold->builder, &entry);
        if (status != SILT_OK) return silt_fail(err, status, NULL);
        fold->digest = silt_entry_digest(&entry, fold->digest);
    }
    fold->holds_tail = true;
    fold->tail = *info;
    fold->tail_checksum = silt_checksum(tail, 0);
    fold->packs_to = (info->stored_bytes << 16) / (info->values_bytes + 1) + 1;
    fold->try_at = SILT_SEGMENT_FULL_BYTES * 65536ULL / fold->packs_to;
    return SILT_OK;
}

enum silt_status silt_fold_begin(struct silt_fold *fold, uint64_t life, struct silt_namespace ns,
                                 struct silt_view tail, struct silt_err *err)
{
    fold->life = life;
    fold->ns = ns;
    fold->sum = (struct silt_fold_sum){0};
    fold->has_last = false;
    fold->done = false;
    fold->segment_count = 0;
    silt_buf_clear(&fold->values);
    builder_restart(fold);
    return tail.len == 0 ? SILT_OK : reopen_tail(fold, tail, err);
}

/* ---- entries ---- */

static enum silt_status refuse_entry(const struct silt_entry *entry, enum silt_status status,
                                     struct silt_err *err)
{
    char id[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(entry->id, id);
    if (status == SILT_ERR_ORDER)
        return silt_fail(err, status, "entry %s is not above the one before it", id);
    if (status == SILT_ERR_ENTRY_SHAPE)
        return silt_fail(err, status, "entry %s has %zu fields of %llu bytes: more than is stored",
                         id, entry->field_count, (unsigned long long)silt_entry_bytes(entry));
    return silt_fail(err, status, NULL);
}

static enum silt_status add(struct silt_fold *fold, const struct silt_entry *entry,
                            struct silt_err *err)
{
    struct silt_segment_info info;
    enum silt_status status = silt_segment_builder_add(fold->builder, entry);
    if (status == SILT_ERR_LIMIT && silt_segment_builder_count(fold->builder) != 0) {
        status = encode(fold, &info, err);
        if (status == SILT_OK) status = close_segment(fold, &info, err);
        if (status != SILT_OK) return status;
        status = silt_segment_builder_add(fold->builder, entry);
    }
    return status == SILT_OK ? SILT_OK : refuse_entry(entry, status, err);
}

static void count_in(struct silt_fold *fold, const struct silt_entry *entry)
{
    struct silt_fold_sum *sum = &fold->sum;
    size_t id_field;
    if (sum->count == 0) sum->first = entry->id;
    sum->last = entry->id;
    sum->count++;
    sum->values_bytes += silt_entry_bytes(entry);
    if (!silt_namespace_is_none(fold->ns) && !silt_entry_is_ours(entry, fold->ns, &id_field))
        sum->foreign_count++;
    sum->digest = silt_entry_digest(entry, sum->digest);
    fold->digest = silt_entry_digest(entry, fold->digest);
    fold->has_last = true;
    fold->last = entry->id;
}

enum silt_status silt_fold_add(struct silt_fold *fold, const struct silt_entry *entry,
                               struct silt_err *err)
{
    struct silt_segment_info info;
    if (fold->has_last && !silt_wire_id_less(fold->last, entry->id))
        return refuse_entry(entry, SILT_ERR_ORDER, err);
    enum silt_status status = add(fold, entry, err);
    if (status != SILT_OK) return status;
    count_in(fold, entry);
    uint64_t values = silt_segment_builder_values_bytes(fold->builder);
    if (values < fold->try_at && values < OPEN_VALUES_MAX) return SILT_OK;
    status = encode(fold, &info, err);
    if (status != SILT_OK) return status;
    if (info.stored_bytes >= NEARLY_FULL || values >= OPEN_VALUES_MAX)
        return close_segment(fold, &info, err);
    return SILT_OK;
}

enum silt_status silt_fold_finish(struct silt_fold *fold, struct silt_err *err)
{
    struct silt_segment_info info;
    /* A tail to which nothing was added stays as it is. */
    if (fold->sum.count != 0 && silt_segment_builder_count(fold->builder) != 0) {
        enum silt_status status = encode(fold, &info, err);
        if (status == SILT_OK) status = close_segment(fold, &info, err);
        if (status != SILT_OK) return status;
    }
    size_t at = 0;
    for (size_t i = 0; i < fold->segment_count; i++) {
        fold->segments[i].value.at = fold->values.at + at;
        at += fold->segments[i].value.len;
    }
    fold->done = true;
    return SILT_OK;
}

const struct silt_fold_segment *silt_fold_segments(const struct silt_fold *fold, size_t *ret_count)
{
    *ret_count = fold->done ? fold->segment_count : 0;
    return fold->segments;
}

const struct silt_fold_sum *silt_fold_sum(const struct silt_fold *fold)
{
    return &fold->sum;
}
