/* Entries into a segment: values are copied once, row by row; names only where a shape is new. Knows nothing of how columns are written
 * (segment_encode.c). */
#include "alloc.h"
#include "faultpoint.h"
#include "segment_header.h"
#include "segment_write.h"

/* Most bytes that a value, a field of a shape and an entry add to the raw columns beyond texts (lengths, codes, headers of columns). */
#define VALUE_COST 24u
#define PLACE_COST 40u
#define ENTRY_COST 32u

enum silt_status silt_array_reserve(void **at, size_t *cap, size_t need, size_t size)
{
    return silt_grow(at, cap, need, size) == 0 ? SILT_OK : SILT_ERR_MEMORY;
}

enum silt_status silt_scratch_reserve(struct silt_segment_builder *builder, size_t count)
{
    enum silt_status status = SILT_OK;
    for (int i = 0; i < 4 && status == SILT_OK; i++)
        status = silt_array_reserve((void **)(void *)&builder->scratch[i], &builder->scratch_cap[i],
                                    count, sizeof(uint64_t));
    return status;
}

enum silt_status silt_segment_builder_new(int level, struct silt_segment_builder **ret)
{
    struct silt_segment_builder *builder = silt_calloc(1, sizeof *builder);
    if (!builder) return SILT_ERR_MEMORY;
    enum silt_status status = silt_packer_new(level, &builder->packer);
    if (status != SILT_OK) {
        silt_segment_builder_free(builder);
        return status;
    }
    *ret = builder;
    return SILT_OK;
}

void silt_segment_builder_free(struct silt_segment_builder *builder)
{
    if (!builder) return;
    silt_packer_free(builder->packer);
    silt_free(builder->ids.at);
    silt_free(builder->shape_of.at);
    silt_free(builder->first_ref.at);
    silt_free(builder->refs.at);
    silt_buf_release(&builder->bytes);
    silt_free(builder->shapes.at);
    silt_free(builder->places.at);
    silt_free(builder->shape_table.at);
    silt_free(builder->names.at);
    silt_free(builder->name_table.at);
    silt_buf_release(&builder->names_text);
    silt_arena_release(&builder->arena);
    silt_buf_release(&builder->raw);
    silt_buf_release(&builder->bodies);
    silt_free(builder->columns.at);
    silt_free(builder->kept.at);
    for (int i = 0; i < 4; i++)
        silt_free(builder->scratch[i]);
    silt_free(builder);
}

void silt_segment_builder_begin(struct silt_segment_builder *builder, uint64_t life,
                                struct silt_namespace ns)
{
    builder->life = life;
    builder->ns = ns;
    builder->values_bytes = 0;
    builder->bound = 64;
    builder->foreign_count = 0;
    builder->ids.count = builder->shape_of.count = builder->first_ref.count = 0;
    builder->refs.count = builder->shapes.count = builder->places.count = builder->names.count = 0;
    silt_buf_clear(&builder->bytes);
    silt_buf_clear(&builder->names_text);
    builder->shape_table.count = builder->name_table.count = 0; /* built anew when next used */
}

size_t silt_segment_builder_count(const struct silt_segment_builder *builder)
{
    return builder->ids.count;
}

uint64_t silt_segment_builder_values_bytes(const struct silt_segment_builder *builder)
{
    return builder->values_bytes;
}

/* ---- names and shapes ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> 29;
}

static uint64_t hash_name(struct silt_view name)
{
    uint64_t word = 0;
    if (name.len > 8) return silt_checksum(name, 0);
    for (size_t i = 0; i < name.len; i++)
        word = word << 8 | name.at[i];
    return mix(name.len, word);
}

/* One table of `slots`, at least twice as large as `count`, emptied; the caller puts everything in again. */
static enum silt_status table_clear(uint32_t **at, size_t *slots, size_t *cap, size_t count)
{
    size_t size = 64;
    while (size < 4 * count)
        size *= 2;
    enum silt_status status = silt_array_reserve((void **)(void *)at, cap, size, sizeof **at);
    if (status != SILT_OK) return status;
    memset(*at, 0, size * sizeof **at);
    *slots = size;
    return SILT_OK;
}

static void table_put(uint32_t *at, size_t slots, uint64_t hash, uint32_t index)
{
    size_t slot = hash & (slots - 1);
    while (at[slot] != 0)
        slot = (slot + 1) & (slots - 1);
    at[slot] = index + 1;
}

static enum silt_status names_room(struct silt_segment_builder *builder)
{
    if (2 * (builder->names.count + 1) <= builder->name_table.count) return SILT_OK;
    enum silt_status status = table_clear(&builder->name_table.at, &builder->name_table.count,
                                          &builder->name_table.cap, builder->names.count + 1);
    if (status != SILT_OK) return status;
    for (uint32_t i = 0; i < builder->names.count; i++)
        table_put(builder->name_table.at, builder->name_table.count, builder->names.at[i].hash, i);
    return SILT_OK;
}

static enum silt_status find_name(struct silt_segment_builder *builder, struct silt_view text,
                                  uint32_t *ret)
{
    uint64_t hash = hash_name(text);
    enum silt_status status = names_room(builder);
    if (status != SILT_OK) return status;
    size_t mask = builder->name_table.count - 1;
    for (size_t slot = hash & mask; builder->name_table.at[slot] != 0; slot = (slot + 1) & mask) {
        uint32_t index = builder->name_table.at[slot] - 1;
        const struct silt_build_name *name = &builder->names.at[index];
        struct silt_view known = silt_view(builder->names_text.at + name->text.at, name->text.len);
        if (name->hash == hash && silt_view_equal(known, text)) {
            *ret = index;
            return SILT_OK;
        }
    }
    struct silt_ref ref = {(uint32_t)builder->names_text.len, (uint32_t)text.len};
    status = SILT_ARRAY_RESERVE(&builder->names, builder->names.count + 1);
    if (status == SILT_OK) status = silt_buf_put(&builder->names_text, text.at, text.len);
    if (status != SILT_OK) return status;
    *ret = (uint32_t)builder->names.count;
    builder->names.at[builder->names.count++] = (struct silt_build_name){ref, hash};
    table_put(builder->name_table.at, builder->name_table.count, hash, *ret);
    return SILT_OK;
}

static bool same_shape(const struct silt_segment_builder *builder,
                       const struct silt_build_shape *shape, const struct silt_entry *entry,
                       uint32_t id_field)
{
    if (shape->field_count != entry->field_count || shape->id_field != id_field) return false;
    const struct silt_build_place *place = builder->places.at + shape->first_place;
    for (size_t f = 0; f < entry->field_count; f++) {
        struct silt_ref ref = builder->names.at[place[f].name].text;
        struct silt_view name = entry->fields[f].name;
        if (ref.len != name.len ||
            (ref.len != 0 && memcmp(builder->names_text.at + ref.at, name.at, ref.len) != 0))
            return false;
    }
    return true;
}

/* Everything that can fail comes before the shape counts. */
static enum silt_status add_shape(struct silt_segment_builder *builder,
                                  const struct silt_entry *entry, uint32_t id_field, uint64_t hash,
                                  uint32_t *ret)
{
    const size_t first = builder->places.count;
    struct silt_build_shape shape = {.hash = hash,
                                     .field_count = (uint32_t)entry->field_count,
                                     .first_place = (uint32_t)first,
                                     .id_field = id_field};
    enum silt_status status = SILT_ARRAY_RESERVE(&builder->shapes, builder->shapes.count + 1);
    if (status == SILT_OK)
        status = SILT_ARRAY_RESERVE(&builder->places, first + entry->field_count);
    for (size_t f = 0; status == SILT_OK && f < entry->field_count; f++) {
        struct silt_build_place place = {.shape = (uint32_t)builder->shapes.count};
        status = find_name(builder, entry->fields[f].name, &place.name);
        builder->places.at[first + f] = place;
        shape.names_bytes += entry->fields[f].name.len;
    }
    if (status != SILT_OK) return status;
    if (2 * (builder->shapes.count + 1) > builder->shape_table.count) {
        status = table_clear(&builder->shape_table.at, &builder->shape_table.count,
                             &builder->shape_table.cap, builder->shapes.count + 1);
        if (status != SILT_OK) return status;
        for (uint32_t i = 0; i < builder->shapes.count; i++)
            table_put(builder->shape_table.at, builder->shape_table.count,
                      builder->shapes.at[i].hash, i);
    }
    *ret = (uint32_t)builder->shapes.count;
    builder->shapes.at[builder->shapes.count++] = shape;
    builder->places.count = first + entry->field_count;
    builder->bound += shape.names_bytes + (uint64_t)PLACE_COST * entry->field_count;
    table_put(builder->shape_table.at, builder->shape_table.count, hash, *ret);
    return SILT_OK;
}

static bool find_shape(const struct silt_segment_builder *builder, const struct silt_entry *entry,
                       uint32_t id_field, uint64_t *ret_hash, uint32_t *ret)
{
    uint64_t hash = mix(entry->field_count, id_field);
    for (size_t f = 0; f < entry->field_count; f++)
        hash = mix(hash, hash_name(entry->fields[f].name));
    *ret_hash = hash;
    if (builder->shape_table.count == 0) return false;
    size_t mask = builder->shape_table.count - 1;
    for (size_t slot = hash & mask; builder->shape_table.at[slot] != 0; slot = (slot + 1) & mask) {
        uint32_t index = builder->shape_table.at[slot] - 1;
        const struct silt_build_shape *shape = &builder->shapes.at[index];
        if (shape->hash == hash && same_shape(builder, shape, entry, id_field)) {
            *ret = index;
            return true;
        }
    }
    return false;
}

/* ---- adding ---- */

static enum silt_status check_entry(const struct silt_segment_builder *builder,
                                    const struct silt_entry *entry, uint64_t *ret_bytes)
{
    size_t count = builder->ids.count;
    if (entry->field_count > SILT_ENTRY_FIELDS_MAX) return SILT_ERR_ENTRY_SHAPE;
    uint64_t bytes = silt_entry_bytes(entry);
    if (bytes > SILT_ENTRY_BYTES_MAX) return SILT_ERR_ENTRY_SHAPE;
    if (count != 0 && !silt_wire_id_less(builder->ids.at[count - 1], entry->id))
        return SILT_ERR_ORDER;
    /* As if its shape were new; one entry alone always fits. */
    uint64_t bound = builder->bound + bytes + ENTRY_COST +
                     (uint64_t)(VALUE_COST + PLACE_COST) * entry->field_count;
    if (count == SILT_SEGMENT_COUNT_MAX || bound > SILT_SEGMENT_RAW_MAX ||
        builder->refs.count + entry->field_count > SILT_SEGMENT_VALUES_MAX)
        return SILT_ERR_LIMIT;
    *ret_bytes = bytes;
    return SILT_OK;
}

static enum silt_status reserve_entry(struct silt_segment_builder *builder,
                                      const struct silt_entry *entry, uint64_t bytes)
{
    size_t count = builder->ids.count;
    enum silt_status status = SILT_ARRAY_RESERVE(&builder->ids, count + 1);
    if (status == SILT_OK) status = SILT_ARRAY_RESERVE(&builder->shape_of, count + 1);
    if (status == SILT_OK) status = SILT_ARRAY_RESERVE(&builder->first_ref, count + 1);
    if (status == SILT_OK)
        status = SILT_ARRAY_RESERVE(&builder->refs, builder->refs.count + entry->field_count);
    if (status == SILT_OK) status = silt_buf_reserve(&builder->bytes, bytes);
    return status;
}

static void put_values(struct silt_segment_builder *builder, const struct silt_entry *entry,
                       uint32_t id_field)
{
    struct silt_ref *ref = builder->refs.at + builder->refs.count;
    uint8_t *to = builder->bytes.at + builder->bytes.len;
    uint8_t *const start = builder->bytes.at;
    for (size_t f = 0; f < entry->field_count; f++) {
        struct silt_view value = entry->fields[f].value;
        if (f + 1 == id_field) value.len = 0; /* it follows from the wire id */
        ref[f] = (struct silt_ref){(uint32_t)(to - start), (uint32_t)value.len};
        if (value.len != 0) memcpy(to, value.at, value.len);
        to += value.len;
    }
    builder->refs.count += entry->field_count;
    builder->bytes.len = (size_t)(to - start);
}

enum silt_status silt_segment_builder_add(struct silt_segment_builder *builder,
                                          const struct silt_entry *entry)
{
    uint64_t bytes, hash;
    uint32_t shape;
    size_t id_field = 0;
    enum silt_status status = check_entry(builder, entry, &bytes);
    if (status == SILT_OK) status = reserve_entry(builder, entry, bytes);
    if (status != SILT_OK) return status;
    bool ours = silt_entry_is_ours(entry, builder->ns, &id_field);
    uint32_t id = ours ? (uint32_t)id_field + 1 : 0;
    if (!find_shape(builder, entry, id, &hash, &shape)) {
        if (builder->places.count + entry->field_count > SILT_SEGMENT_PLACES_MAX)
            return SILT_ERR_LIMIT;
        status = add_shape(builder, entry, id, hash, &shape);
        if (status != SILT_OK) return status;
    }
    size_t count = builder->ids.count;
    builder->ids.at[count] = entry->id;
    builder->shape_of.at[count] = (uint16_t)shape;
    builder->first_ref.at[count] = (uint32_t)builder->refs.count;
    put_values(builder, entry, id);
    builder->ids.count = builder->shape_of.count = builder->first_ref.count = count + 1;
    builder->shapes.at[shape].entry_count++;
    builder->values_bytes += bytes;
    builder->bound += bytes - builder->shapes.at[shape].names_bytes + ENTRY_COST +
                      (uint64_t)VALUE_COST * entry->field_count;
    if (!ours && !silt_namespace_is_none(builder->ns)) builder->foreign_count++;
    return SILT_OK;
}

/* ---- finishing ---- */

enum silt_status silt_segment_builder_finish(struct silt_segment_builder *builder,
                                             struct silt_buf *out,
                                             struct silt_segment_info *ret_info)
{
    const size_t count = builder->ids.count, start = out->len;
    uint8_t header[SILT_SEGMENT_HEADER] = {0};
    if (count == 0) return SILT_ERR_USAGE;
    enum silt_status status = silt_segment_encode(builder);
    if (status != SILT_OK) return status;
    if (SILT_FAULTPOINT("segment-corrupt-columns")) builder->raw.at[builder->raw.len - 1] ^= 1;
    status = silt_buf_put(out, header, sizeof header);
    if (status == SILT_OK) status = silt_pack(builder->packer, silt_buf_view(&builder->raw), out);
    if (status != SILT_OK) {
        out->len = start;
        return status;
    }
    struct silt_view body =
        silt_view(out->at + start + sizeof header, out->len - start - sizeof header);
    struct silt_segment_info info = {.life = builder->life,
                                     .ns = builder->ns,
                                     .first = builder->ids.at[0],
                                     .last = builder->ids.at[count - 1],
                                     .count = (uint32_t)count,
                                     .foreign_count = builder->foreign_count,
                                     .values_bytes = builder->values_bytes,
                                     .raw_bytes = builder->raw.len,
                                     .stored_bytes = out->len - start};
    silt_segment_header_put(&info, body, out->at + start);
    *ret_info = info;
    return SILT_OK;
}
