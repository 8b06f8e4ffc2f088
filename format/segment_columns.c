/* Columns of a segment out of the raw bytes: numbers become text again, codes become views. Every number is checked before it is
 * used; memory is bounded by the values' count, which the caller has checked. Knows nothing of entries beyond their time. */
#include "alloc.h"
#include "segment_read.h"

uint64_t *silt_segment_scratch(struct silt_segment *segment, unsigned which, size_t count)
{
    void *at = segment->scratch[which];
    if (silt_grow(&at, &segment->scratch_cap[which], count, sizeof(uint64_t)) != 0) return NULL;
    segment->scratch[which] = at;
    return at;
}

enum silt_status silt_segment_read_texts(struct silt_segment *segment, struct silt_reader *reader,
                                         size_t count, uint32_t **ret_offsets,
                                         struct silt_view *ret_bytes)
{
    struct silt_ints ints;
    uint64_t *lengths = silt_segment_scratch(segment, 0, count);
    uint32_t *offsets = silt_arena_take(&segment->arena, count + 1, sizeof *offsets);
    if (!lengths || !offsets) return SILT_ERR_MEMORY;
    if (!silt_ints_read(reader, count, &ints)) return SILT_ERR_CORRUPT;
    silt_ints_u64(&ints, count, lengths);
    const uint64_t left = silt_reader_left(reader); /* below 2^31, so a sum cannot wrap */
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        offsets[i] = (uint32_t)sum;
        if (lengths[i] > left) return SILT_ERR_CORRUPT;
        sum += lengths[i];
        if (sum > left) return SILT_ERR_CORRUPT;
    }
    offsets[count] = (uint32_t)sum;
    if (!silt_read_view(reader, sum, ret_bytes)) return SILT_ERR_CORRUPT;
    *ret_offsets = offsets;
    return SILT_OK;
}

/* Values that stand apart. */
struct exceptions {
    size_t count;
    uint64_t *positions; /* in scratch[2] */
    uint32_t *offsets;
    struct silt_view bytes;
};

static struct silt_view exception_at(const struct exceptions *odd, size_t index)
{
    return silt_view(odd->bytes.at + odd->offsets[index],
                     odd->offsets[index + 1] - odd->offsets[index]);
}

static enum silt_status read_exceptions(struct silt_segment *segment, struct silt_reader *reader,
                                        uint8_t form, size_t values, struct exceptions *ret)
{
    uint64_t count;
    struct silt_ints ints;
    *ret = (struct exceptions){0};
    if (!(form & SILT_COLUMN_EXCEPTIONS)) return SILT_OK;
    if (!silt_read_varint(reader, &count) || count == 0 || count > values) return SILT_ERR_CORRUPT;
    if (!silt_ints_read(reader, count, &ints)) return SILT_ERR_CORRUPT;
    ret->positions = silt_segment_scratch(segment, 2, count);
    if (!ret->positions) return SILT_ERR_MEMORY;
    silt_ints_u64(&ints, count, ret->positions);
    for (size_t i = 0; i < count; i++)
        if (ret->positions[i] >= values || (i > 0 && ret->positions[i] <= ret->positions[i - 1]))
            return SILT_ERR_CORRUPT;
    ret->count = count;
    return silt_segment_read_texts(segment, reader, count, &ret->offsets, &ret->bytes);
}

static enum silt_status read_const(struct silt_reader *reader, struct silt_column *column)
{
    uint64_t len;
    struct silt_view value;
    if (!silt_read_varint(reader, &len) || len > silt_reader_left(reader) ||
        !silt_read_view(reader, len, &value))
        return SILT_ERR_CORRUPT;
    column->access = SILT_ACCESS_CONST;
    column->at = value.at;
    column->len = (uint32_t)len;
    return SILT_OK;
}

static enum silt_status read_text(struct silt_segment *segment, struct silt_reader *reader,
                                  struct silt_column *column)
{
    uint32_t *offsets;
    struct silt_view bytes;
    enum silt_status status =
        silt_segment_read_texts(segment, reader, column->count, &offsets, &bytes);
    if (status != SILT_OK) return status;
    column->access = SILT_ACCESS_LIST;
    column->at = bytes.at;
    column->offsets = offsets;
    return SILT_OK;
}

/* The time, in milliseconds, of the entry that each value belongs to; a dictionary's values belong to the first entry. */
static void owner_times(const struct silt_segment *segment, const struct silt_column *column,
                        uint64_t *ret)
{
    if (column->place_count == 0)
        for (size_t i = 0; i < column->count; i++)
            ret[i] = segment->info.first.ms;
    for (uint32_t p = 0; p < column->place_count; p++) {
        const struct silt_place *place =
            &segment->places[segment->column_places[column->first_place + p]];
        const struct silt_shape *shape = &segment->shapes[place->shape];
        const uint32_t *entry = segment->by_shape + shape->first_entry;
        for (uint32_t i = 0; i < shape->entry_count; i++)
            ret[place->base + i] = segment->ids[entry[i]].ms;
    }
}

static size_t decimal_digits(uint64_t value)
{
    size_t digits = 1;
    while (value >= 10) {
        value /= 10;
        digits++;
    }
    return digits;
}

/* Numbers, with the exceptions between them, as texts one after the other. */
static enum silt_status number_texts(struct silt_segment *segment, const uint64_t *values,
                                     const struct exceptions *odd, struct silt_column *column)
{
    uint64_t high = 0;
    const size_t count = column->count;
    for (size_t i = 0; i < count; i++)
        high = values[i] > high ? values[i] : high;
    uint32_t *offsets = silt_arena_take(&segment->arena, count + 1, sizeof *offsets);
    uint8_t *text =
        silt_arena_take(&segment->arena, count * decimal_digits(high) + odd->bytes.len + 20, 1);
    if (!offsets || !text) return SILT_ERR_MEMORY;
    size_t at = 0, next = 0;
    for (size_t i = 0; i < count; i++) {
        offsets[i] = (uint32_t)at;
        if (next < odd->count && odd->positions[next] == i) {
            struct silt_view value = exception_at(odd, next++);
            if (value.len != 0) memcpy(text + at, value.at, value.len);
            at += value.len;
        } else {
            at += silt_decimal_text(values[i], text + at);
        }
    }
    offsets[count] = (uint32_t)at;
    column->access = SILT_ACCESS_LIST;
    column->at = text;
    column->offsets = offsets;
    return SILT_OK;
}

static enum silt_status read_number(struct silt_segment *segment, struct silt_reader *reader,
                                    uint8_t form, struct silt_column *column)
{
    struct silt_ints ints;
    struct exceptions odd;
    const size_t count = column->count;
    if (!silt_ints_read(reader, count, &ints)) return SILT_ERR_CORRUPT;
    enum silt_status status = read_exceptions(segment, reader, form, count, &odd);
    if (status != SILT_OK) return status;
    uint64_t *values = silt_segment_scratch(segment, 0, count);
    if (!values) return SILT_ERR_MEMORY;
    silt_ints_u64(&ints, count, values);
    if ((form & SILT_COLUMN_KIND_MASK) == SILT_COLUMN_NEAR) {
        uint64_t *times = silt_segment_scratch(segment, 1, count);
        if (!times) return SILT_ERR_MEMORY;
        owner_times(segment, column, times);
        for (size_t i = 0; i < count; i++)
            values[i] += times[i];
    }
    return number_texts(segment, values, &odd, column);
}

/* Snowflakes of a branded column: times and tails are given, both checked. */
static bool snowflakes(const uint64_t *distances, const uint64_t *times, const uint64_t *tails,
                       size_t count, uint64_t *ret)
{
    const uint64_t ms_max = SILT_LAST_MS - SILT_EPOCH_MS;
    uint64_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t ms = times[i] - SILT_EPOCH_MS - distances[i];
        bad |= (uint64_t)(ms > ms_max) | (uint64_t)(tails[i] > SILT_TAIL_MAX);
        ret[i] = ms << 22 | tails[i];
    }
    return bad == 0;
}

static enum silt_status read_branded(struct silt_segment *segment, struct silt_reader *reader,
                                     uint8_t form, struct silt_column *column)
{
    struct silt_view letters;
    struct silt_ints distance, tail;
    struct exceptions odd;
    const size_t count = column->count;
    if (!silt_read_view(reader, 3, &letters) || !silt_ints_read(reader, count, &distance) ||
        !silt_ints_read(reader, count, &tail))
        return SILT_ERR_CORRUPT;
    uint64_t *a = silt_segment_scratch(segment, 0, count);
    uint64_t *b = silt_segment_scratch(segment, 1, count);
    uint64_t *c = silt_segment_scratch(segment, 2, count);
    uint8_t *text = silt_arena_take(&segment->arena, count, SILT_BRANDED_STRIDE);
    if (!a || !b || !c || !text) return SILT_ERR_MEMORY;
    silt_ints_u64(&distance, count, a);
    owner_times(segment, column, b);
    silt_ints_u64(&tail, count, c);
    if (!snowflakes(a, b, c, count, a)) return SILT_ERR_CORRUPT;
    const char brand[4] = {(char)letters.at[0], (char)letters.at[1], (char)letters.at[2], 0};
    silt_branded_texts(brand, a, count, text);
    column->access = SILT_ACCESS_FIXED;
    column->at = text;
    column->len = SILT_BRANDED_ID_LEN;
    enum silt_status status = read_exceptions(segment, reader, form, count, &odd);
    if (status != SILT_OK || odd.count == 0) return status;
    /* A few odd ones between them: all texts one after the other. */
    uint32_t *offsets = silt_arena_take(&segment->arena, count + 1, sizeof *offsets);
    size_t at = 0, next = 0;
    uint8_t *packed =
        silt_arena_take(&segment->arena, count * SILT_BRANDED_ID_LEN + odd.bytes.len, 1);
    if (!offsets || !packed) return SILT_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        offsets[i] = (uint32_t)at;
        struct silt_view value = silt_view(text + i * SILT_BRANDED_STRIDE, SILT_BRANDED_ID_LEN);
        if (next < odd.count && odd.positions[next] == i) value = exception_at(&odd, next++);
        if (value.len != 0) memcpy(packed + at, value.at, value.len);
        at += value.len;
    }
    offsets[count] = (uint32_t)at;
    column->access = SILT_ACCESS_LIST;
    column->at = packed;
    column->offsets = offsets;
    return SILT_OK;
}

/* ---- codes ---- */

static struct silt_view value_at(const struct silt_column *column, size_t index)
{
    switch (column->access) {
    case SILT_ACCESS_CONST: return silt_view(column->at, column->len);
    case SILT_ACCESS_FIXED: return silt_view(column->at + index * SILT_BRANDED_STRIDE, column->len);
    case SILT_ACCESS_LIST:
        return silt_view(column->at + column->offsets[index],
                         column->offsets[index + 1] - column->offsets[index]);
    case SILT_ACCESS_CODES: break;
    }
    return column->views[column->codes[index]];
}

/* Views of all values of a column that codes name; made once. */
static enum silt_status source_views(struct silt_segment *segment, struct silt_column *source)
{
    if (source->views) return SILT_OK;
    struct silt_view *views = silt_arena_take(&segment->arena, source->count, sizeof *views);
    if (!views) return SILT_ERR_MEMORY;
    for (size_t i = 0; i < source->count; i++)
        views[i] = value_at(source, i);
    source->views = views;
    source->view_count = source->count;
    return SILT_OK;
}

static enum silt_status read_source(struct silt_segment *segment, struct silt_reader *reader,
                                    uint32_t index, struct silt_column **ret)
{
    uint64_t number;
    if (!silt_read_varint(reader, &number) || number >= index) return SILT_ERR_CORRUPT;
    struct silt_column *source = &segment->columns[number];
    if (source->access == SILT_ACCESS_CODES || source->count > SILT_SEGMENT_CODES_MAX)
        return SILT_ERR_CORRUPT;
    *ret = source;
    return source_views(segment, source);
}

/* The source's views, and behind them those of the exceptions, whose codes are set to them. */
static enum silt_status finish_codes(struct silt_segment *segment, struct silt_reader *reader,
                                     uint8_t form, const struct silt_column *source,
                                     uint16_t *codes, struct silt_column *column)
{
    struct exceptions odd;
    enum silt_status status = read_exceptions(segment, reader, form, column->count, &odd);
    if (status != SILT_OK) return status;
    column->access = SILT_ACCESS_CODES;
    column->codes = codes;
    column->views = source->views;
    column->view_count = source->view_count;
    if (odd.count == 0) return SILT_OK;
    size_t count = source->view_count + odd.count;
    if (count > SILT_SEGMENT_CODES_MAX ||
        source->view_count > SILT_SEGMENT_SOURCE_SHARE * (uint64_t)column->count)
        return SILT_ERR_CORRUPT;
    struct silt_view *views = silt_arena_take(&segment->arena, count, sizeof *views);
    if (!views) return SILT_ERR_MEMORY;
    memcpy(views, source->views, source->view_count * sizeof *views);
    for (size_t i = 0; i < odd.count; i++) {
        views[source->view_count + i] = exception_at(&odd, i);
        codes[odd.positions[i]] = (uint16_t)(source->view_count + i);
    }
    column->views = views;
    column->view_count = (uint32_t)count;
    return SILT_OK;
}

static enum silt_status read_codes(struct silt_segment *segment, struct silt_reader *reader,
                                   uint8_t form, uint32_t index)
{
    struct silt_column *column = &segment->columns[index], *source;
    struct silt_ints ints;
    enum silt_status status = read_source(segment, reader, index, &source);
    if (status != SILT_OK) return status;
    if (!silt_ints_read(reader, column->count, &ints)) return SILT_ERR_CORRUPT;
    uint64_t *scratch = silt_segment_scratch(segment, 0, column->count);
    uint16_t *codes = silt_arena_take(&segment->arena, column->count, sizeof *codes);
    if (!scratch || !codes) return SILT_ERR_MEMORY;
    if (!silt_ints_u16(&ints, column->count, source->count, scratch, codes))
        return SILT_ERR_CORRUPT;
    return finish_codes(segment, reader, form, source, codes, column);
}

static enum silt_status read_mapped(struct silt_segment *segment, struct silt_reader *reader,
                                    uint8_t form, uint32_t index)
{
    struct silt_column *column = &segment->columns[index], *source;
    struct silt_ints ints;
    uint64_t number;
    if (!silt_read_varint(reader, &number) || number >= index) return SILT_ERR_CORRUPT;
    const struct silt_column *of = &segment->columns[number];
    if (of->access != SILT_ACCESS_CODES || of->count != column->count ||
        of->view_count > SILT_SEGMENT_SOURCE_SHARE * (uint64_t)column->count)
        return SILT_ERR_CORRUPT;
    enum silt_status status = read_source(segment, reader, index, &source);
    if (status != SILT_OK) return status;
    if (!silt_ints_read(reader, of->view_count, &ints)) return SILT_ERR_CORRUPT;
    uint64_t *scratch = silt_segment_scratch(segment, 0, of->view_count);
    uint16_t *map = silt_arena_take(&segment->arena, of->view_count, sizeof *map);
    uint16_t *codes = silt_arena_take(&segment->arena, column->count, sizeof *codes);
    if (!scratch || !map || !codes) return SILT_ERR_MEMORY;
    if (!silt_ints_u16(&ints, of->view_count, source->count, scratch, map)) return SILT_ERR_CORRUPT;
    for (size_t i = 0; i < column->count; i++)
        codes[i] = map[of->codes[i]];
    return finish_codes(segment, reader, form, source, codes, column);
}

enum silt_status silt_segment_read_column(struct silt_segment *segment, struct silt_reader *reader,
                                          uint32_t index)
{
    struct silt_column *column = &segment->columns[index];
    uint8_t form;
    if (!silt_read_u8(reader, &form) ||
        (form & ~(SILT_COLUMN_KIND_MASK | SILT_COLUMN_EXCEPTIONS)) != 0)
        return SILT_ERR_CORRUPT;
    switch (form & SILT_COLUMN_KIND_MASK) {
    case SILT_COLUMN_CONST:
        return form == SILT_COLUMN_CONST ? read_const(reader, column) : SILT_ERR_CORRUPT;
    case SILT_COLUMN_TEXT:
        return form == SILT_COLUMN_TEXT ? read_text(segment, reader, column) : SILT_ERR_CORRUPT;
    case SILT_COLUMN_NUMBER:
    case SILT_COLUMN_NEAR: return read_number(segment, reader, form, column);
    case SILT_COLUMN_BRANDED: return read_branded(segment, reader, form, column);
    case SILT_COLUMN_CODES: return read_codes(segment, reader, form, index);
    case SILT_COLUMN_MAPPED: return read_mapped(segment, reader, form, index);
    default: return SILT_ERR_CORRUPT;
    }
}

uint64_t silt_column_bytes(const struct silt_column *column)
{
    uint64_t sum = 0;
    switch (column->access) {
    case SILT_ACCESS_CONST:
    case SILT_ACCESS_FIXED: return (uint64_t)column->count * column->len;
    case SILT_ACCESS_LIST: return column->offsets[column->count];
    case SILT_ACCESS_CODES: break;
    }
    for (size_t i = 0; i < column->count; i++)
        sum += column->views[column->codes[i]].len;
    return sum;
}
