/* The segment codec: a run of consecutive entries of one life, encoded by columns and compressed; one LMDB value.
 * Layout, limits and what may ever change: format/README.md. Knows nothing of stores or servers. */
#ifndef SILT_SEGMENT_H
#define SILT_SEGMENT_H

#include "entry.h"

#define SILT_SEGMENT_COUNT_MAX 65536u                 /* entries of one segment */
#define SILT_SEGMENT_RAW_MAX (1u << 30)               /* bytes of the uncompressed columns */
#define SILT_SEGMENT_PLACES_MAX SILT_ENTRY_FIELDS_MAX /* fields of all its different shapes */
#define SILT_SEGMENT_VALUES_MAX (1u << 24)            /* fields of all its entries */

/* What a segment's header says. */
struct silt_segment_info {
    uint64_t life;
    struct silt_namespace ns; /* none: a plain stream */
    struct silt_wire_id first;
    struct silt_wire_id last;
    uint32_t count;
    uint32_t foreign_count; /* entries of a branded segment that do not follow the rule */
    uint64_t values_bytes;  /* names and values of all entries, the id pair included */
    uint64_t raw_bytes;     /* columns before compression */
    uint64_t stored_bytes;  /* the whole value */
};

/* Columns in. A builder is reused from segment to segment. Threads: one at a time. */
struct silt_segment_builder;
SILT_MUST_USE enum silt_status silt_segment_builder_new(int level,
                                                        struct silt_segment_builder **ret);
void silt_segment_builder_free(struct silt_segment_builder *builder);
/* Forgets all entries, keeps the memory. */
void silt_segment_builder_begin(struct silt_segment_builder *builder, uint64_t life,
                                struct silt_namespace ns);
/* Copies what it needs of the entry. Fails with SILT_ERR_ORDER (id not above the last one), SILT_ERR_ENTRY_SHAPE (a limit of entry.h),
 * SILT_ERR_LIMIT (the segment would pass its count or raw limit: finish it first), SILT_ERR_MEMORY; after a failure the builder is as before. */
SILT_MUST_USE enum silt_status silt_segment_builder_add(struct silt_segment_builder *builder,
                                                        const struct silt_entry *entry);
size_t silt_segment_builder_count(const struct silt_segment_builder *builder);
uint64_t silt_segment_builder_values_bytes(const struct silt_segment_builder *builder);
/* Appends the whole value to *out; the builder keeps its entries (more may be added and finish called again).
 * Fails with SILT_ERR_USAGE (no entries), SILT_ERR_MEMORY. */
SILT_MUST_USE enum silt_status silt_segment_builder_finish(struct silt_segment_builder *builder,
                                                           struct silt_buf *out,
                                                           struct silt_segment_info *ret_info);

/* The header alone: magic, version, feature bits, header checksum, limits, length against bytes.len. Does not touch the columns.
 * Fails with SILT_ERR_CORRUPT, SILT_ERR_NEWER_FORMAT. */
SILT_MUST_USE enum silt_status silt_segment_peek(struct silt_view bytes,
                                                 struct silt_segment_info *ret,
                                                 struct silt_err *err);

/* Columns out: a decoded segment, reused from value to value. Threads: one at a time. */
struct silt_segment;
SILT_MUST_USE enum silt_status silt_segment_new(struct silt_segment **ret);
void silt_segment_free(struct silt_segment *segment);
/* Verifies everything (checksum before decompression, every number before use) and decodes. `bytes` is not needed afterwards.
 * Allocates only to grow. On failure the segment holds no entries. Fails with SILT_ERR_CORRUPT, SILT_ERR_NEWER_FORMAT, SILT_ERR_MEMORY. */
SILT_MUST_USE enum silt_status silt_segment_open(struct silt_segment *segment,
                                                 struct silt_view bytes, struct silt_err *err);
const struct silt_segment_info *silt_segment_info(const struct silt_segment *segment);
size_t silt_segment_count(const struct silt_segment *segment);
/* index < count. */
struct silt_wire_id silt_segment_id(const struct silt_segment *segment, size_t index);
bool silt_segment_is_foreign(const struct silt_segment *segment, size_t index);
/* Any order. Valid until: entry->fields (the array) until the next call of silt_segment_entry on this segment; the names' and values'
 * bytes until silt_segment_open or _free. */
void silt_segment_entry(struct silt_segment *segment, size_t index, struct silt_entry *ret);
/* Index of the first entry with id >= the given one; count if none. */
size_t silt_segment_find(const struct silt_segment *segment, struct silt_wire_id id);

#endif
