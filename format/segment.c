/* A segment opened: entries by index out of the decoded columns. Everything is verified and decoded when it is opened; giving an entry
 * is a few loads. Knows nothing of how columns are chosen (segment_builder.c). */
#include "alloc.h"
#include "segment_header.h"
#include "segment_read.h"

enum silt_status silt_segment_new(struct silt_segment **ret)
{
    struct silt_segment *segment = silt_calloc(1, sizeof *segment);
    if (!segment) return SILT_ERR_MEMORY;
    enum silt_status status = silt_unpacker_new(&segment->unpacker);
    if (status != SILT_OK) {
        silt_segment_free(segment);
        return status;
    }
    *ret = segment;
    return SILT_OK;
}

void silt_segment_free(struct silt_segment *segment)
{
    if (!segment) return;
    silt_unpacker_free(segment->unpacker);
    silt_buf_release(&segment->raw);
    silt_arena_release(&segment->arena);
    for (int i = 0; i < 3; i++)
        silt_free(segment->scratch[i]);
    silt_free(segment);
}

/* ---- the parts of the raw bytes, in their order ---- */

static enum silt_status read_counts(struct silt_segment *segment, struct silt_reader *reader)
{
    uint64_t names, columns, shapes;
    if (!silt_read_varint(reader, &names) || names > SILT_SEGMENT_PLACES_MAX ||
        !silt_read_varint(reader, &columns) || columns > 2 * SILT_SEGMENT_PLACES_MAX ||
        !silt_read_varint(reader, &shapes) || shapes == 0 || shapes > segment->info.count)
        return SILT_ERR_CORRUPT;
    /* Each column and each shape takes at least a byte. */
    if (columns + shapes > silt_reader_left(reader)) return SILT_ERR_CORRUPT;
    struct silt_arena *arena = &segment->arena;
    segment->name_count = (uint32_t)names;
    segment->column_count = (uint32_t)columns;
    segment->shape_count = (uint32_t)shapes;
    segment->names = silt_arena_take(arena, names, sizeof *segment->names);
    segment->columns = silt_arena_take(arena, columns, sizeof *segment->columns);
    segment->shapes = silt_arena_take(arena, shapes, sizeof *segment->shapes);
    if (!segment->names || !segment->columns || !segment->shapes) return SILT_ERR_MEMORY;
    memset(segment->columns, 0, columns * sizeof *segment->columns);
    memset(segment->shapes, 0, shapes * sizeof *segment->shapes);
    return SILT_OK;
}

static enum silt_status read_names(struct silt_segment *segment, struct silt_reader *reader)
{
    uint32_t *offsets;
    struct silt_view bytes;
    if (segment->name_count == 0) return SILT_OK;
    enum silt_status status =
        silt_segment_read_texts(segment, reader, segment->name_count, &offsets, &bytes);
    if (status != SILT_OK) return status;
    for (uint32_t i = 0; i < segment->name_count; i++)
        segment->names[i] = silt_view(bytes.at + offsets[i], offsets[i + 1] - offsets[i]);
    return SILT_OK;
}

/* Whose field each column is; a dictionary is nobody's and says itself how many values it has. */
static enum silt_status read_column_names(struct silt_segment *segment, struct silt_reader *reader)
{
    uint64_t dictionaries = 0;
    for (uint32_t i = 0; i < segment->column_count; i++) {
        struct silt_column *column = &segment->columns[i];
        uint64_t name, count = 0;
        if (!silt_read_varint(reader, &name) || name > segment->name_count) return SILT_ERR_CORRUPT;
        if (name == 0 &&
            (!silt_read_varint(reader, &count) || count == 0 || count > SILT_SEGMENT_CODES_MAX))
            return SILT_ERR_CORRUPT;
        dictionaries += count;
        if (dictionaries > SILT_SEGMENT_VALUES_MAX) return SILT_ERR_CORRUPT;
        column->name = (uint32_t)name;
        column->count = (uint32_t)count;
    }
    return SILT_OK;
}

static bool place_ok(const struct silt_segment *segment, const struct silt_shape *shape,
                     uint64_t column)
{
    if (column > segment->column_count) return false;
    if (column != 0) return segment->columns[column - 1].name != 0;
    return !shape->ours && !silt_namespace_is_none(segment->info.ns);
}

static enum silt_status read_shapes(struct silt_segment *segment, struct silt_reader *reader)
{
    struct silt_reader again = *reader;
    uint64_t total = 0, number;
    for (uint32_t s = 0; s < segment->shape_count; s++) { /* measure, then read */
        uint64_t fields;
        if (!silt_read_varint(&again, &fields) || fields > SILT_SEGMENT_PLACES_MAX)
            return SILT_ERR_CORRUPT;
        total += fields;
        if (total > SILT_SEGMENT_PLACES_MAX) return SILT_ERR_CORRUPT;
        for (uint64_t f = 0; f < fields; f++)
            if (!silt_read_varint(&again, &number)) return SILT_ERR_CORRUPT;
    }
    segment->place_count = (uint32_t)total;
    segment->places = silt_arena_take(&segment->arena, total, sizeof *segment->places);
    segment->column_places =
        silt_arena_take(&segment->arena, total, sizeof *segment->column_places);
    if (!segment->places || !segment->column_places) return SILT_ERR_MEMORY;
    uint32_t at = 0;
    for (uint32_t s = 0; s < segment->shape_count; s++) {
        struct silt_shape *shape = &segment->shapes[s];
        if (!silt_read_varint(reader, &number)) return SILT_ERR_CORRUPT;
        shape->field_count = (uint32_t)number;
        shape->first_place = at;
        for (uint32_t f = 0; f < shape->field_count; f++) {
            if (!silt_read_varint(reader, &number) || !place_ok(segment, shape, number))
                return SILT_ERR_CORRUPT;
            if (number == 0) {
                shape->ours = true;
                shape->id_field = f;
            }
            segment->places[at++] = (struct silt_place){.column = (uint32_t)number, .shape = s};
        }
    }
    return SILT_OK;
}

/* The shape of each entry, and entries by shape. */
static enum silt_status read_shape_codes(struct silt_segment *segment, struct silt_reader *reader)
{
    const uint32_t count = segment->info.count;
    struct silt_ints ints;
    uint64_t *scratch = silt_segment_scratch(segment, 0, count);
    segment->shape_of = silt_arena_take(&segment->arena, count, sizeof *segment->shape_of);
    segment->rank = silt_arena_take(&segment->arena, count, sizeof *segment->rank);
    segment->by_shape = silt_arena_take(&segment->arena, count, sizeof *segment->by_shape);
    if (!scratch || !segment->shape_of || !segment->rank || !segment->by_shape)
        return SILT_ERR_MEMORY;
    if (!silt_ints_read(reader, count, &ints) ||
        !silt_ints_u16(&ints, count, segment->shape_count, scratch, segment->shape_of))
        return SILT_ERR_CORRUPT;
    struct silt_shape *shapes = segment->shapes;
    for (uint32_t i = 0; i < count; i++)
        segment->rank[i] = shapes[segment->shape_of[i]].entry_count++;
    uint32_t at = 0, foreign = 0;
    uint64_t values = 0;
    for (uint32_t s = 0; s < segment->shape_count; s++) {
        if (shapes[s].entry_count == 0) return SILT_ERR_CORRUPT;
        shapes[s].first_entry = at;
        at += shapes[s].entry_count;
        if (!shapes[s].ours) foreign += shapes[s].entry_count;
        values += (uint64_t)shapes[s].entry_count * shapes[s].field_count;
    }
    if (silt_namespace_is_none(segment->info.ns)) foreign = 0;
    if (foreign != segment->info.foreign_count || values > SILT_SEGMENT_VALUES_MAX)
        return SILT_ERR_CORRUPT;
    for (uint32_t i = 0; i < count; i++)
        segment->by_shape[shapes[segment->shape_of[i]].first_entry + segment->rank[i]] = i;
    return SILT_OK;
}

/* Which places draw on each column, in their order, and where in it each begins. */
static enum silt_status link_places(struct silt_segment *segment)
{
    struct silt_column *columns = segment->columns;
    for (uint32_t p = 0; p < segment->place_count; p++) {
        struct silt_place *place = &segment->places[p];
        if (place->column == 0) continue;
        struct silt_column *column = &columns[place->column - 1];
        place->base = column->count;
        column->count +=
            segment->shapes[place->shape].entry_count; /* values are limited: no wrap */
        column->place_count++;
    }
    uint32_t at = 0;
    for (uint32_t c = 0; c < segment->column_count; c++) {
        if (columns[c].count == 0) return SILT_ERR_CORRUPT; /* a field's column without a field */
        columns[c].first_place = at;
        at += columns[c].place_count;
        columns[c].place_count = 0;
    }
    for (uint32_t p = 0; p < segment->place_count; p++) {
        if (segment->places[p].column == 0) continue;
        struct silt_column *column = &columns[segment->places[p].column - 1];
        segment->column_places[column->first_place + column->place_count++] = p;
    }
    return SILT_OK;
}

static enum silt_status read_ids(struct silt_segment *segment, struct silt_reader *reader)
{
    const uint32_t count = segment->info.count;
    const struct silt_wire_id first = segment->info.first;
    struct silt_ints ms, seq;
    uint64_t seq_base;
    uint64_t *a = silt_segment_scratch(segment, 0, count);
    uint64_t *b = silt_segment_scratch(segment, 1, count);
    struct silt_wire_id *ids = silt_arena_take(&segment->arena, count, sizeof *ids);
    if (!a || !b || !ids) return SILT_ERR_MEMORY;
    if (!silt_ints_read(reader, count, &ms) || !silt_read_varint(reader, &seq_base) ||
        !silt_ints_read(reader, count, &seq))
        return SILT_ERR_CORRUPT;
    silt_ints_u64(&ms, count, a);
    silt_ints_u64(&seq, count, b);
    ids[0] = (struct silt_wire_id){first.ms + a[0], seq_base + b[0]};
    for (uint32_t i = 1; i < count; i++) {
        uint64_t at = first.ms + a[i];
        /* Within a millisecond the next number is expected, at the start of one the base. */
        uint64_t from = at == ids[i - 1].ms ? ids[i - 1].seq + 1 : seq_base;
        ids[i] = (struct silt_wire_id){at, from + b[i]};
        if (!silt_wire_id_less(ids[i - 1], ids[i])) return SILT_ERR_CORRUPT;
    }
    if (!silt_wire_id_equal(ids[0], first) ||
        !silt_wire_id_equal(ids[count - 1], segment->info.last))
        return SILT_ERR_CORRUPT;
    segment->ids = ids;
    return SILT_OK;
}

/* The text of the derived id of every entry; what stands there for a foreign entry is never looked at. */
static enum silt_status derive_ids(struct silt_segment *segment)
{
    const uint32_t count = segment->info.count;
    if (segment->info.foreign_count == count || silt_namespace_is_none(segment->info.ns))
        return SILT_OK;
    uint8_t *text = silt_arena_take(&segment->arena, count, SILT_BRANDED_STRIDE);
    uint64_t *snowflakes = silt_segment_scratch(segment, 0, count);
    if (!text || !snowflakes) return SILT_ERR_MEMORY;
    const bool all = segment->info.foreign_count == 0;
    const uint64_t ms_max = SILT_LAST_MS - SILT_EPOCH_MS;
    bool bad = false;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t ms = segment->ids[i].ms - SILT_EPOCH_MS, tail = segment->ids[i].seq;
        const bool out = ms > ms_max || tail > SILT_TAIL_MAX;
        snowflakes[i] = (ms << 22 | (tail & SILT_TAIL_MAX)) & SILT_SNOWFLAKE_MAX;
        bad |= out && (all || segment->shapes[segment->shape_of[i]].ours);
    }
    if (bad) return SILT_ERR_CORRUPT;
    silt_branded_texts(segment->info.ns.letters, snowflakes, count, text);
    segment->id_text = text;
    return SILT_OK;
}

/* ---- from columns to fields ---- */

static void lay_name(struct silt_segment *segment, struct silt_shape *shape, uint32_t index)
{
    static const char id_name[] = "id";
    const struct silt_place *place = &segment->places[shape->first_place + index];
    struct silt_field *field = &shape->fields[index];
    if (place->column == 0) {
        field->name = silt_view(id_name, 2);
        field->value = silt_view(segment->id_text, SILT_BRANDED_ID_LEN);
        return;
    }
    const struct silt_column *column = &segment->columns[place->column - 1];
    field->name = segment->names[column->name - 1];
    field->value =
        silt_view(column->at, column->len); /* right for a constant, elsewhere set per entry */
}

/* The shape's fields of one kind of access behind those that are there; gives how many. */
static uint32_t lay_live(struct silt_segment *segment, struct silt_shape *shape,
                         enum silt_access access)
{
    uint32_t count = 0;
    for (uint32_t f = 0; f < shape->field_count; f++) {
        const struct silt_place *place = &segment->places[shape->first_place + f];
        if (place->column == 0) continue;
        const struct silt_column *column = &segment->columns[place->column - 1];
        if (column->access != access) continue;
        struct silt_live_field live = {.value = &shape->fields[f].value};
        switch (access) {
        case SILT_ACCESS_CONST: continue;
        case SILT_ACCESS_FIXED:
            live.at = column->at + (size_t)place->base * SILT_BRANDED_STRIDE;
            break;
        case SILT_ACCESS_LIST:
            live.at = column->at;
            live.offsets = column->offsets + place->base;
            break;
        case SILT_ACCESS_CODES:
            live.views = column->views;
            live.codes = column->codes + place->base;
            break;
        }
        shape->live[shape->live_count++] = live;
        count++;
    }
    return count;
}

static enum silt_status lay_fields(struct silt_segment *segment)
{
    for (uint32_t s = 0; s < segment->shape_count; s++) {
        struct silt_shape *shape = &segment->shapes[s];
        shape->fields = silt_arena_take(&segment->arena, shape->field_count, sizeof *shape->fields);
        shape->live = silt_arena_take(&segment->arena, shape->field_count, sizeof *shape->live);
        if (!shape->fields || !shape->live) return SILT_ERR_MEMORY;
        for (uint32_t f = 0; f < shape->field_count; f++)
            lay_name(segment, shape, f);
        shape->codes_count = lay_live(segment, shape, SILT_ACCESS_CODES);
        shape->fixed_count = lay_live(segment, shape, SILT_ACCESS_FIXED);
        shape->list_count = lay_live(segment, shape, SILT_ACCESS_LIST);
    }
    return SILT_OK;
}

/* Names and values of all entries must come to what the header says. */
static enum silt_status check_bytes(const struct silt_segment *segment)
{
    uint64_t sum = 0;
    for (uint32_t c = 0; c < segment->column_count; c++)
        if (segment->columns[c].place_count != 0) sum += silt_column_bytes(&segment->columns[c]);
    for (uint32_t s = 0; s < segment->shape_count; s++) {
        const struct silt_shape *shape = &segment->shapes[s];
        uint64_t names = 0;
        for (uint32_t f = 0; f < shape->field_count; f++)
            names += shape->fields[f].name.len;
        if (shape->ours) names += SILT_BRANDED_ID_LEN;
        sum += names * shape->entry_count;
    }
    return sum == segment->info.values_bytes ? SILT_OK : SILT_ERR_CORRUPT;
}

static enum silt_status fail_part(struct silt_err *err, enum silt_status status, const char *part)
{
    if (status == SILT_OK) return SILT_OK;
    if (status != SILT_ERR_CORRUPT) return silt_fail(err, status, NULL);
    return silt_fail(err, status, "the segment's %s are not well formed", part);
}

typedef enum silt_status part_reader(struct silt_segment *segment, struct silt_reader *reader);

static enum silt_status decode(struct silt_segment *segment, struct silt_err *err)
{
    static const struct {
        const char *name;
        part_reader *read;
    } parts[] = {{"counts", read_counts},           {"names", read_names},
                 {"columns", read_column_names},    {"shapes", read_shapes},
                 {"shape codes", read_shape_codes}, {"ids", read_ids}};
    struct silt_reader reader = silt_reader(silt_buf_view(&segment->raw));
    enum silt_status status;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if ((status = parts[i].read(segment, &reader)) != SILT_OK)
            return fail_part(err, status, parts[i].name);
    if ((status = link_places(segment)) != SILT_OK) return fail_part(err, status, "columns");
    for (uint32_t c = 0; c < segment->column_count; c++)
        if ((status = silt_segment_read_column(segment, &reader, c)) != SILT_OK)
            return fail_part(err, status, "values");
    if (silt_reader_left(&reader) != 0) return fail_part(err, SILT_ERR_CORRUPT, "last bytes");
    if ((status = derive_ids(segment)) != SILT_OK) return fail_part(err, status, "branded ids");
    if ((status = lay_fields(segment)) != SILT_OK) return fail_part(err, status, "fields");
    return fail_part(err, check_bytes(segment), "bytes");
}

/* ---- public ---- */

enum silt_status silt_segment_open(struct silt_segment *segment, struct silt_view bytes,
                                   struct silt_err *err)
{
    struct silt_segment_info info;
    struct silt_view body;
    uint64_t body_sum;
    segment->info.count = 0;
    enum silt_status status = silt_segment_header_get(bytes, &info, &body, &body_sum, err);
    if (status != SILT_OK) return status;
    if (silt_checksum(body, 0) != body_sum)
        return silt_fail(err, SILT_ERR_CORRUPT, "the segment's columns have a wrong checksum");
    status = silt_unpack(segment->unpacker, body, info.raw_bytes, &segment->raw);
    if (status != SILT_OK) return fail_part(err, status, "compressed columns");
    silt_arena_reset(&segment->arena);
    segment->info = info;
    segment->id_text = NULL;
    status = decode(segment, err);
    if (status != SILT_OK) segment->info.count = 0;
    return status;
}

const struct silt_segment_info *silt_segment_info(const struct silt_segment *segment)
{
    return &segment->info;
}

size_t silt_segment_count(const struct silt_segment *segment)
{
    return segment->info.count;
}

struct silt_wire_id silt_segment_id(const struct silt_segment *segment, size_t index)
{
    return segment->ids[index];
}

bool silt_segment_is_foreign(const struct silt_segment *segment, size_t index)
{
    return !silt_namespace_is_none(segment->info.ns) &&
           !segment->shapes[segment->shape_of[index]].ours;
}

void silt_segment_entry(struct silt_segment *segment, size_t index, struct silt_entry *ret)
{
    const struct silt_shape *shape = &segment->shapes[segment->shape_of[index]];
    const size_t rank = segment->rank[index];
    const struct silt_live_field *live = shape->live;
    for (const struct silt_live_field *end = live + shape->codes_count; live < end; live++)
        *live->value = live->views[live->codes[rank]];
    for (const struct silt_live_field *end = live + shape->fixed_count; live < end; live++)
        live->value->at = live->at + rank * SILT_BRANDED_STRIDE;
    for (const struct silt_live_field *end = live + shape->list_count; live < end; live++) {
        live->value->at = live->at + live->offsets[rank];
        live->value->len = live->offsets[rank + 1] - live->offsets[rank];
    }
    if (shape->ours)
        shape->fields[shape->id_field].value.at = segment->id_text + index * SILT_BRANDED_STRIDE;
    ret->id = segment->ids[index];
    ret->fields = shape->fields;
    ret->field_count = shape->field_count;
}

size_t silt_segment_find(const struct silt_segment *segment, struct silt_wire_id id)
{
    size_t low = 0, high = segment->info.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (silt_wire_id_less(segment->ids[middle], id))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
