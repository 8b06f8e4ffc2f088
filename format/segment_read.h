/* The decoded form of a segment, for the codec's own files: segment.c opens it and gives entries, segment_columns.c fills the columns. */
#ifndef SILT_SEGMENT_READ_H
#define SILT_SEGMENT_READ_H

#include "pack.h"
#include "segment_priv.h"

/* How a column's values are found by their index. */
enum silt_access {
    SILT_ACCESS_CONST, /* at, len */
    SILT_ACCESS_FIXED, /* at + index * SILT_BRANDED_STRIDE, len */
    SILT_ACCESS_LIST,  /* at + offsets[index], up to offsets[index + 1] */
    SILT_ACCESS_CODES  /* views[codes[index]] */
};

struct silt_column {
    enum silt_access access;
    uint32_t count;       /* values; above 0 */
    uint32_t name;        /* index of its name + 1; 0: nobody's field, a dictionary */
    uint32_t first_place; /* in column_places; those of one column follow each other */
    uint32_t place_count;
    uint32_t len;
    const uint8_t *at;
    const uint32_t *offsets;
    const struct silt_view *views; /* also of a column that others' codes name, once one did */
    uint32_t view_count;
    const uint16_t *codes;
};

/* A field of a shape whose value changes from entry to entry; at, offsets and codes begin at the shape's first value. */
struct silt_live_field {
    struct silt_view *value;
    const uint8_t *at;
    const uint32_t *offsets;
    const struct silt_view *views;
    const uint16_t *codes;
};

/* Entries with the same names in the same order. fields: names and constant values stay, live values are set by each silt_segment_entry. */
struct silt_shape {
    uint32_t field_count;
    uint32_t entry_count;
    uint32_t first_entry; /* in by_shape */
    uint32_t first_place; /* in places */
    bool ours;            /* has the derived id */
    uint32_t id_field;    /* which field that is */
    uint32_t live_count;  /* first those by codes, then the fixed ones, then the lists */
    uint32_t codes_count;
    uint32_t fixed_count;
    uint32_t list_count;
    struct silt_live_field *live;
    struct silt_field *fields;
};

/* One field of one shape: which column, and where in it the shape's values begin. */
struct silt_place {
    uint32_t column; /* + 1; 0: the derived id */
    uint32_t shape;
    uint32_t base;
};

struct silt_segment {
    struct silt_segment_info info; /* count 0: holds nothing */
    struct silt_unpacker *unpacker;
    struct silt_buf raw;
    struct silt_arena arena; /* everything below lives there */
    uint64_t *scratch[3];
    size_t scratch_cap[3];

    struct silt_wire_id *ids;
    uint16_t *shape_of;
    uint32_t *rank;     /* of an entry among those of its shape */
    uint32_t *by_shape; /* entries by shape, then by id */
    uint8_t *id_text;
    struct silt_view *names;
    uint32_t name_count;
    struct silt_shape *shapes;
    uint32_t shape_count;
    struct silt_place *places;
    uint32_t place_count;
    struct silt_column *columns;
    uint32_t column_count;
    uint32_t *column_places; /* places by column */
};

/* Room for count integers in scratch[which]; NULL: no memory. */
uint64_t *silt_segment_scratch(struct silt_segment *segment, unsigned which, size_t count);

/* Lengths and bytes as lengths[count + 1] (running sums) and a view; a malformed one is SILT_ERR_CORRUPT. */
SILT_MUST_USE enum silt_status silt_segment_read_texts(struct silt_segment *segment,
                                                       struct silt_reader *reader, size_t count,
                                                       uint32_t **ret_offsets,
                                                       struct silt_view *ret_bytes);
/* Reads the payload of columns[index] and makes it accessible. Fails with SILT_ERR_CORRUPT (no text), SILT_ERR_MEMORY. */
SILT_MUST_USE enum silt_status silt_segment_read_column(struct silt_segment *segment,
                                                        struct silt_reader *reader, uint32_t index);
/* Bytes of all the column's values. */
uint64_t silt_column_bytes(const struct silt_column *column);

#endif
