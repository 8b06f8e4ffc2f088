/* The builder's insides, for the codec's own files: segment_builder.c takes entries in, segment_encode.c writes the raw columns,
 * segment_choose.c decides how a column is written. */
#ifndef SILT_SEGMENT_WRITE_H
#define SILT_SEGMENT_WRITE_H

#include "pack.h"
#include "segment_priv.h"

/* A value: where it lies in the builder's bytes. */
struct silt_ref {
    uint32_t at;
    uint32_t len;
};

/* Entries with the same names in the same order. */
struct silt_build_shape {
    uint64_t hash;
    uint64_t names_bytes;
    uint32_t field_count;
    uint32_t first_place; /* in places */
    uint32_t entry_count;
    uint32_t id_field;    /* + 1; 0: no derived id */
    uint32_t first_entry; /* in by_shape; while encoding */
};

/* One field of one shape. */
struct silt_build_place {
    uint32_t name;
    uint32_t shape;
    uint32_t column; /* its number as written; while encoding */
};

struct silt_build_name {
    struct silt_ref text; /* in names_text */
    uint64_t hash;
};

/* A column as written, as far as later ones need to know it. */
struct silt_build_column {
    uint32_t name; /* + 1; 0: a dictionary */
    uint32_t count;
};

/* Codes that are kept because another column of the same shape may be a function of them. */
struct silt_build_codes {
    uint32_t shape;
    uint32_t column;
    uint32_t code_count;
    uint32_t count;
    const uint32_t *codes;
};

/* A growing array: at, used, room. */
#define SILT_ARRAY(type) \
    struct {             \
        type *at;        \
        size_t count;    \
        size_t cap;      \
    }

struct silt_segment_builder {
    uint64_t life;
    struct silt_namespace ns;
    struct silt_packer *packer;
    uint64_t values_bytes;
    uint64_t bound; /* raw bytes that what is here takes at the most */
    uint32_t foreign_count;

    SILT_ARRAY(struct silt_wire_id) ids; /* per entry */
    SILT_ARRAY(uint16_t) shape_of;
    SILT_ARRAY(uint32_t) first_ref;
    SILT_ARRAY(struct silt_ref) refs; /* per value, in the order they came */
    struct silt_buf bytes;            /* values; what they refer to */
    SILT_ARRAY(struct silt_build_shape) shapes;
    SILT_ARRAY(struct silt_build_place) places;
    SILT_ARRAY(uint32_t) shape_table; /* open addressing: index + 1 */
    SILT_ARRAY(struct silt_build_name) names;
    SILT_ARRAY(uint32_t) name_table;
    struct silt_buf names_text;

    /* while encoding; kept for the next time */
    struct silt_arena arena;
    struct silt_buf raw;
    struct silt_buf bodies;
    SILT_ARRAY(struct silt_build_column) columns;
    SILT_ARRAY(struct silt_build_codes) kept;
    uint32_t *by_shape;
    uint64_t *scratch[4]; /* integers of one column */
    size_t scratch_cap[4];
};

/* Room for `need` elements. SILT_ERR_MEMORY. */
#define SILT_ARRAY_RESERVE(array, need) \
    silt_array_reserve((void **)(void *)&(array)->at, &(array)->cap, need, sizeof *(array)->at)
SILT_MUST_USE enum silt_status silt_array_reserve(void **at, size_t *cap, size_t need, size_t size);

static inline struct silt_view silt_ref_view(const struct silt_segment_builder *builder,
                                             struct silt_ref ref)
{
    return silt_view(builder->bytes.at + ref.at, ref.len);
}

/* Room for count integers in each of scratch[0..3]; they hold until the next call of a function of segment_choose.c. */
SILT_MUST_USE enum silt_status silt_scratch_reserve(struct silt_segment_builder *builder,
                                                    size_t count);

/* Values of one column to write: their places in the bytes, and the time of the entry each belongs to. */
struct silt_values {
    const struct silt_ref *refs;
    const uint64_t *times;
    uint32_t count;
};

/* How one column is best written by itself. */
struct silt_choice {
    enum silt_column_kind kind; /* CONST, TEXT, NUMBER, NEAR or BRANDED */
    uint64_t cost;              /* bits after compression, guessed */
    uint32_t exceptions;
    char letters[4]; /* BRANDED */
};
SILT_MUST_USE enum silt_status silt_choose(struct silt_segment_builder *builder,
                                           const struct silt_values *values,
                                           struct silt_choice *ret);
/* Appends kind and payload to builder->bodies. */
SILT_MUST_USE enum silt_status silt_put_chosen(struct silt_segment_builder *builder,
                                               const struct silt_values *values,
                                               const struct silt_choice *choice);
/* Exceptions: positions (ascending) and the texts there. */
SILT_MUST_USE enum silt_status silt_put_exceptions(struct silt_segment_builder *builder,
                                                   const struct silt_ref *refs,
                                                   const uint64_t *positions, uint32_t count);
/* The raw columns of everything in the builder, into builder->raw. SILT_ERR_MEMORY. */
SILT_MUST_USE enum silt_status silt_segment_encode(struct silt_segment_builder *builder);

#endif
