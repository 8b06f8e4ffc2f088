/* Late entries into their place: the segments that they fall in are rewritten, proven and, with the numbers by which readers find them (protocol.md §5),
 * put into a batch. No server. Threads: one at a time.
 *
 *     silt_insert_begin(insert, life, ns);
 *     silt_insert_add(insert, &entry, &err);          // ascending, none of them in the archive
 *     silt_insert_apply(insert, store, batch, &err);  // then the stream's row into the same batch, and silt_store_commit
 *
 * Once per life and batch: two that touch one segment do not see each other, and the commit refuses the second. The same holds for a fold of the
 * life in the same batch: it was made from the tail as it was. */
#ifndef SILT_INSERT_H
#define SILT_INSERT_H

#include "store.h"

/* A rewritten segment stays one up to this stored size; above, it becomes several of about SILT_SEGMENT_FULL_BYTES. Why: format/README.md. */
#define SILT_SEGMENT_SPLIT_BYTES (48u << 10)

struct silt_insert;

SILT_MUST_USE enum silt_status silt_insert_new(int level, struct silt_insert **ret);
void silt_insert_free(struct silt_insert *insert);
/* Forgets what was added, keeps the memory. */
void silt_insert_begin(struct silt_insert *insert, uint64_t life, struct silt_namespace ns);
/* The next late entry, above the one before. Copies. Fails with SILT_ERR_ORDER (named by id), SILT_ERR_ENTRY_SHAPE, SILT_ERR_MEMORY; then it is not
 * added. */
SILT_MUST_USE enum silt_status silt_insert_add(struct silt_insert *insert,
                                               const struct silt_entry *entry,
                                               struct silt_err *err);

/* What was added since begin, as the row's counters want it. */
struct silt_insert_sum {
    uint64_t count;
    uint64_t foreign_count;
    uint64_t values_bytes;
};
const struct silt_insert_sum *silt_insert_sum(const struct silt_insert *insert);

/* Replacements, new segments and late rows (numbered on from the life's highest, in id order) into the batch: all of it or, after a failure, nothing.
 * Nothing added: nothing done. Fails with SILT_ERR_PROTECTED (an entry that the archive holds already, equal or not; one below the life's own fork: named
 * by id), SILT_ERR_ENTRY_SHAPE, SILT_ERR_CORRUPT (the place lies in a damaged segment), SILT_ERR_PROOF (a new value does not give back the old segment's
 * entries and the late ones), SILT_ERR_MEMORY. That an entry lies above the row's watermark is for the commit to refuse. */
SILT_MUST_USE enum silt_status silt_insert_apply(struct silt_insert *insert,
                                                 struct silt_store *store, struct silt_batch *batch,
                                                 struct silt_err *err);

#endif
