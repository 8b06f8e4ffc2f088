/* What the files of the segment codec share: the header's places, the kinds of column, integer arrays, the decoder's arena.
 * The layout is told in format/README.md; change one, change both. */
#ifndef SILT_SEGMENT_PRIV_H
#define SILT_SEGMENT_PRIV_H

#include "segment.h"

#define SILT_SEGMENT_MAGIC 0x47455353u /* "SSEG" */
#define SILT_SEGMENT_VERSION 1u
#define SILT_SEGMENT_HEADER 112u      /* bytes of a version 1 header */
#define SILT_SEGMENT_HEADER_MAX 4096u /* of any version */
#define SILT_SEGMENT_MUST_REFUSE 0u   /* the bits this version knows */

#define SILT_SEGMENT_CODES_MAX 65536u /* values that one column's codes can name */

/* A column whose decoding copies or maps another's values must have at least a quarter as many itself, else few bytes could unfold into much
 * memory: codes with exceptions, and mapped ones. */
#define SILT_SEGMENT_SOURCE_SHARE 4u

/* What a column's payload is. */
enum silt_column_kind {
    SILT_COLUMN_CONST = 0,  /* one value for all */
    SILT_COLUMN_TEXT = 1,   /* lengths, then bytes */
    SILT_COLUMN_NUMBER = 2, /* canonical decimals below 2^64 */
    SILT_COLUMN_NEAR = 3,   /* the same, less the entry's milliseconds */
    SILT_COLUMN_BRANDED =
        4, /* branded ids of one namespace, by their distance from the entry's time, and their tails */
    SILT_COLUMN_CODES = 5, /* indexes into an earlier column */
    SILT_COLUMN_MAPPED = 6 /* a function of an earlier column's codes */
};
#define SILT_COLUMN_KIND_MASK 0x0Fu
#define SILT_COLUMN_EXCEPTIONS 0x10u /* some values stand apart, as text */

/* An integer array at rest: base + offset, or first and then previous + base + offset, all modulo 2^64; offsets of `width` bytes lie in
 * planes: all lowest bytes, then all second ones. */
struct silt_ints {
    uint8_t width; /* 0 to 8 */
    bool delta;
    uint64_t base;
    uint64_t first; /* delta only */
    const uint8_t *planes;
    size_t stride; /* bytes from plane to plane */
};
#define SILT_INTS_WIDTH_MASK 0x0Fu
#define SILT_INTS_DELTA 0x10u

/* Reads an array of count (above 0) integers; the planes stay in the reader's bytes. false: malformed. */
bool silt_ints_read(struct silt_reader *reader, size_t count, struct silt_ints *ret);
void silt_ints_u64(const struct silt_ints *ints, size_t count, uint64_t *ret);
/* Codes: all below limit (at most 65536), else false. scratch: count integers, used only for unusual arrays. */
bool silt_ints_u16(const struct silt_ints *ints, size_t count, uint32_t limit, uint64_t *scratch,
                   uint16_t *ret);

/* Chooses a form for the integers and appends it; SILT_ERR_MEMORY. */
SILT_MUST_USE enum silt_status silt_ints_put(struct silt_buf *out, const uint64_t *values,
                                             size_t count);
/* What silt_ints_put is likely to come to after compression, in bits. */
uint64_t silt_ints_cost(const uint64_t *values, size_t count);
/* Bits that `total` bytes of this frequency take at the least, one by one. */
uint64_t silt_histogram_bits(const uint32_t counts[256], uint64_t total);

/* Memory of one decoded segment: carved from blocks that are kept; after a reset that had needed several, one block of their size. */
struct silt_arena_block;
struct silt_arena {
    struct silt_arena_block *blocks;
    size_t used; /* of the newest block */
    size_t total;
};
void *silt_arena_take(struct silt_arena *arena, size_t count, size_t size); /* NULL: no memory */
void silt_arena_reset(struct silt_arena *arena);
void silt_arena_release(struct silt_arena *arena);

/* Branded ids as texts of fourteen bytes and two of padding, at a stride of 16. Each snowflake <= SILT_SNOWFLAKE_MAX. */
#define SILT_BRANDED_STRIDE 16u
void silt_branded_texts(const char letters[4], const uint64_t *snowflakes, size_t count,
                        uint8_t *ret);
/* Decimal text without leading zeros; gives its length. */
size_t silt_decimal_text(uint64_t value, uint8_t ret[20]);
/* The inverse: only the text that silt_decimal_text gives. */
bool silt_decimal_value(struct silt_view text, uint64_t *ret);

#endif
