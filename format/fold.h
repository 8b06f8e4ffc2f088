/* From fetched entries to proven segment values: appends to the open tail, closes full segments, decodes every new value and compares it
 * with what came in (promise 1, archiver step "prove"). No store, no server. Threads: one at a time (the archiver's worker). */
#ifndef SILT_FOLD_H
#define SILT_FOLD_H

#include "segment.h"

/* A tail is full, and so closed, from this stored size on (protocol.md §10: 20 to 60 KB; why this, in format/README.md). */
#define SILT_SEGMENT_FULL_BYTES (32u << 10)

/* Is it closed: too large to be rewritten for a few entries more? By stored size, by bytes of values, by count. */
bool silt_segment_is_full(const struct silt_segment_info *info);
/* More than this is not kept open, however well it packs: every fold would pay for rewriting it. */
#define SILT_SEGMENT_OPEN_VALUES_MAX (8u << 20)

struct silt_fold;

/* One value to store. replaces_tail: it takes the place of the open tail that silt_fold_begin was given (same first id): tail and tail_checksum are for
 * silt_batch_replace, so that a tail that is another by then (late entries came into it) is not overwritten. */
struct silt_fold_segment {
    struct silt_segment_info info;
    struct silt_view value;
    bool replaces_tail;
    struct silt_segment_info tail;
    uint64_t tail_checksum;
};

SILT_MUST_USE enum silt_status silt_fold_new(int level, struct silt_fold **ret);
void silt_fold_free(struct silt_fold *fold);

/* Starts a fold of one life. tail: the life's last segment as stored, or an empty view; it is decoded at once and reopened if it is not full.
 * `tail` bytes are not needed afterwards. Fails with SILT_ERR_CORRUPT (the tail), SILT_ERR_MEMORY. */
SILT_MUST_USE enum silt_status silt_fold_begin(struct silt_fold *fold, uint64_t life,
                                               struct silt_namespace ns, struct silt_view tail,
                                               struct silt_err *err);
/* The next entry, above all before it and above the tail. Copies. Fails with SILT_ERR_ORDER, SILT_ERR_ENTRY_SHAPE (named by id),
 * SILT_ERR_PROOF (a segment that was closed by this call does not decode to what came in), SILT_ERR_MEMORY. After a failure the fold
 * must be begun again. */
SILT_MUST_USE enum silt_status silt_fold_add(struct silt_fold *fold, const struct silt_entry *entry,
                                             struct silt_err *err);
/* Encodes and proves what is left. */
SILT_MUST_USE enum silt_status silt_fold_finish(struct silt_fold *fold, struct silt_err *err);

/* Valid until the next silt_fold_begin or _free; in id order; only after a successful finish. */
const struct silt_fold_segment *silt_fold_segments(const struct silt_fold *fold, size_t *ret_count);

/* What was added since begin (without the tail's old entries). digest: silt_entry_digest chained over the added entries from 0. */
struct silt_fold_sum {
    uint64_t count;
    uint64_t foreign_count;
    uint64_t values_bytes;
    uint64_t digest;
    struct silt_wire_id first;
    struct silt_wire_id last;
};
const struct silt_fold_sum *silt_fold_sum(const struct silt_fold *fold);

#endif
