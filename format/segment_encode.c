/* The raw columns of a segment: places of the same name share a dictionary where that pays, large places get a column of their own,
 * small ones share one, so that unusual shapes cost only themselves. The layout is told in format/README.md. */
#include "segment_write.h"

#define OWN_COLUMN 32u /* entries of a shape from which on its field gets a column of its own */
#define NO_CODE UINT32_MAX
#define KEPT_TRIED 8u /* columns of the same shape that a column is tried as a function of */
#define REFERENCE_SHARE 8u

/* Values of one column to be, and what becomes of them. */
struct group {
    uint32_t first; /* in the name's values */
    uint32_t count;
    bool alone;     /* one large place */
    uint32_t place; /* alone: its number; else the first one's index in places_by_name */
    uint32_t place_count;
    uint32_t distinct;
    uint32_t number; /* of its column, once written */
    bool coded;
    struct silt_choice choice;
};

/* Working memory for one name after the other, all in the builder's arena. */
struct work {
    struct silt_segment_builder *builder;
    uint32_t *places_by_name; /* place numbers, by name */
    uint32_t *name_first;     /* in places_by_name; one more than names */
    struct group *groups;
    uint32_t group_count;
    struct silt_ref *refs; /* the name's values, group by group */
    uint64_t *times;
    uint32_t *ids; /* equal values have equal ids, from 0 in order of first appearance */
    uint32_t count;
    uint32_t distinct;
    uint32_t *table; /* of the ids' values: id + 1 */
    size_t table_size;
    struct silt_ref *id_ref;
    uint64_t *id_hash;
    uint32_t *stamp; /* per id: the last mark it was met under */
    uint32_t mark;
    uint32_t *local; /* per id: its code in that group */
    uint32_t *code;  /* per id: its code in the shared dictionary */
    uint64_t *codes; /* of one column */
    uint64_t *odd;
    uint64_t *map;
};

/* ---- values of a name ---- */

static uint64_t hash_value(struct silt_view value)
{
    uint64_t a = 0, b = 0;
    if (value.len > 16) return silt_checksum(value, 0);
    if (value.len >= 8) {
        a = silt_get_le64(value.at);
        b = silt_get_le64(value.at + value.len - 8);
    } else {
        for (size_t i = 0; i < value.len; i++)
            a = a << 8 | value.at[i];
    }
    uint64_t hash = (a ^ b >> 7 ^ value.len) * 0x9e3779b97f4a7c15ULL;
    hash = (hash ^ hash >> 32 ^ b) * 0xff51afd7ed558ccdULL;
    return hash ^ hash >> 29;
}

static uint32_t intern(struct work *work, struct silt_ref ref)
{
    const struct silt_view value = silt_ref_view(work->builder, ref);
    const uint64_t hash = hash_value(value);
    const size_t mask = work->table_size - 1;
    size_t slot = hash & mask;
    for (; work->table[slot] != 0; slot = (slot + 1) & mask) {
        uint32_t id = work->table[slot] - 1;
        if (work->id_hash[id] == hash &&
            silt_view_equal(silt_ref_view(work->builder, work->id_ref[id]), value))
            return id;
    }
    uint32_t id = work->distinct++;
    work->table[slot] = id + 1;
    work->id_ref[id] = ref;
    work->id_hash[id] = hash;
    work->stamp[id] = 0;
    work->code[id] = NO_CODE;
    return id;
}

static void intern_all(struct work *work)
{
    work->table_size = 16;
    while (work->table_size < 2 * (size_t)work->count)
        work->table_size *= 2;
    memset(work->table, 0, work->table_size * sizeof *work->table);
    work->distinct = work->mark = 0;
    for (uint32_t i = 0; i < work->count; i++)
        work->ids[i] = intern(work, work->refs[i]);
}

/* Adds the values of one place to the last group. */
static void gather_place(struct work *work, uint32_t number)
{
    const struct silt_segment_builder *builder = work->builder;
    const struct silt_build_place *place = &builder->places.at[number];
    const struct silt_build_shape *shape = &builder->shapes.at[place->shape];
    const uint32_t field = number - shape->first_place;
    const uint32_t *entry = builder->by_shape + shape->first_entry;
    struct group *group = &work->groups[work->group_count - 1];
    for (uint32_t i = 0; i < shape->entry_count; i++) {
        work->refs[work->count + i] = builder->refs.at[builder->first_ref.at[entry[i]] + field];
        work->times[work->count + i] = builder->ids.at[entry[i]].ms;
    }
    work->count += shape->entry_count;
    group->count += shape->entry_count;
    group->place_count++;
}

static void open_group(struct work *work, bool alone, uint32_t place)
{
    work->groups[work->group_count++] =
        (struct group){.first = work->count, .alone = alone, .place = place};
}

/* The name's places into groups: the large ones alone, then all small ones in one. The order of places_by_name follows. */
static void gather(struct work *work, uint32_t name)
{
    const struct silt_segment_builder *builder = work->builder;
    uint32_t *place = work->places_by_name + work->name_first[name];
    const uint32_t total = work->name_first[name + 1] - work->name_first[name];
    uint32_t small = 0;
    work->group_count = work->count = 0;
    for (uint32_t p = 0; p < total; p++) {
        uint32_t number = place[p];
        const struct silt_build_shape *shape =
            &builder->shapes.at[builder->places.at[number].shape];
        if (number - shape->first_place + 1 == shape->id_field) continue;
        if (shape->entry_count < OWN_COLUMN) {
            place[small++] = number; /* behind what was read */
            continue;
        }
        open_group(work, true, number);
        gather_place(work, number);
    }
    if (small == 0) return;
    open_group(work, false, work->name_first[name]);
    for (uint32_t p = 0; p < small; p++)
        gather_place(work, place[p]);
}

/* ---- choosing ---- */

static struct silt_values group_values(const struct work *work, const struct group *group)
{
    return (struct silt_values){work->refs + group->first, work->times + group->first,
                                group->count};
}

/* Distinct values, and codes as if the group had a dictionary of its own, into work->codes. */
static void code_locally(struct work *work, struct group *group)
{
    const uint32_t mark = ++work->mark;
    group->distinct = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t id = work->ids[group->first + i];
        if (work->stamp[id] != mark) {
            work->stamp[id] = mark;
            work->local[id] = group->distinct++;
        }
        work->codes[i] = work->local[id];
    }
}

/* Gives the group's values codes of the shared dictionary; *codes counts them. */
static void join_dictionary(struct work *work, struct group *group, uint32_t *codes)
{
    group->coded = true;
    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t id = work->ids[group->first + i];
        if (work->code[id] == NO_CODE) work->code[id] = (*codes)++;
    }
}

/* First those groups that would be worth a dictionary of their own, then those that are given what there is. Gives the dictionary's size. */
static enum silt_status choose_groups(struct work *work, uint32_t *ret_codes)
{
    uint32_t codes = 0;
    for (uint32_t g = 0; g < work->group_count; g++) {
        struct group *group = &work->groups[g];
        struct silt_values values = group_values(work, group);
        enum silt_status status = silt_choose(work->builder, &values, &group->choice);
        if (status != SILT_OK) return status;
        if (group->choice.kind == SILT_COLUMN_CONST) continue;
        code_locally(work, group);
        if (group->distinct > group->count / 2 + 1) continue;
        uint64_t cost = silt_ints_cost(work->codes, group->count) +
                        group->choice.cost / group->count * group->distinct;
        /* Codes are read faster than numbers, so they may cost a little more. */
        if (cost < group->choice.cost + group->choice.cost / 16)
            join_dictionary(work, group, &codes);
    }
    for (uint32_t g = 0; g < work->group_count && codes != 0; g++) {
        struct group *group = &work->groups[g];
        uint32_t more = 0;
        if (group->coded || group->choice.kind == SILT_COLUMN_CONST) continue;
        code_locally(work, group);
        for (uint32_t i = 0; i < group->count; i++) {
            uint32_t id = work->ids[group->first + i];
            if (work->code[id] == NO_CODE && work->stamp[id] != 0) {
                work->stamp[id] = 0; /* counted */
                more++;
            }
        }
        uint64_t cost =
            silt_ints_cost(work->codes, group->count) + group->choice.cost / group->count * more;
        if (cost < group->choice.cost) join_dictionary(work, group, &codes);
    }
    *ret_codes = codes;
    return SILT_OK;
}

/* ---- writing columns ---- */

static enum silt_status open_column(struct work *work, uint32_t name, uint32_t count,
                                    uint32_t *ret_number)
{
    struct silt_segment_builder *builder = work->builder;
    enum silt_status status = SILT_ARRAY_RESERVE(&builder->columns, builder->columns.count + 1);
    if (status != SILT_OK) return status;
    *ret_number = (uint32_t)builder->columns.count;
    builder->columns.at[builder->columns.count++] = (struct silt_build_column){name, count};
    return SILT_OK;
}

/* The shared dictionary: a column of nobody's, in the order of the codes. */
static enum silt_status put_dictionary(struct work *work, uint32_t codes, uint32_t *ret_number)
{
    struct silt_segment_builder *builder = work->builder;
    struct silt_ref *refs = silt_arena_take(&builder->arena, codes, sizeof *refs);
    uint64_t *times = silt_arena_take(&builder->arena, codes, sizeof *times);
    if (!refs || !times) return SILT_ERR_MEMORY;
    for (uint32_t id = 0; id < work->distinct; id++)
        if (work->code[id] != NO_CODE) refs[work->code[id]] = work->id_ref[id];
    for (uint32_t i = 0; i < codes; i++)
        times[i] = builder->ids.at[0].ms;
    struct silt_values values = {refs, times, codes};
    struct silt_choice choice;
    enum silt_status status = silt_choose(builder, &values, &choice);
    if (status == SILT_OK) status = open_column(work, 0, codes, ret_number);
    if (status == SILT_OK) status = silt_put_chosen(builder, &values, &choice);
    return status;
}

/* Codes of a place alone are kept: a later column of its shape may follow from them. */
static enum silt_status keep_codes(struct work *work, const struct group *group,
                                   uint32_t code_count)
{
    struct silt_segment_builder *builder = work->builder;
    enum silt_status status = SILT_ARRAY_RESERVE(&builder->kept, builder->kept.count + 1);
    uint32_t *codes = silt_arena_take(&builder->arena, group->count, sizeof *codes);
    if (status != SILT_OK || !codes) return SILT_ERR_MEMORY;
    for (uint32_t i = 0; i < group->count; i++)
        codes[i] = (uint32_t)work->codes[i];
    builder->kept.at[builder->kept.count++] =
        (struct silt_build_codes){.shape = builder->places.at[group->place].shape,
                                  .column = group->number,
                                  .code_count = code_count,
                                  .count = group->count,
                                  .codes = codes};
    return SILT_OK;
}

/* work->map from the kept codes to work->codes, and where it does not hold, into work->odd; false: too often. */
static bool map_codes(struct work *work, const struct group *group,
                      const struct silt_build_codes *kept, uint32_t *ret_odd)
{
    uint32_t odd = 0;
    const uint32_t limit = group->count / 64;
    for (uint32_t k = 0; k < kept->code_count; k++)
        work->map[k] = NO_CODE;
    for (uint32_t i = 0; i < group->count; i++) {
        uint64_t *to = &work->map[kept->codes[i]];
        if (*to == NO_CODE) *to = work->codes[i];
        if (*to == work->codes[i]) continue;
        if (odd == limit) return false;
        work->odd[odd++] = i;
    }
    uint64_t last = 0;
    for (uint32_t k = 0; k < kept->code_count; k++) { /* codes that this shape does not have */
        if (work->map[k] == NO_CODE) work->map[k] = last;
        last = work->map[k];
    }
    *ret_odd = odd;
    return true;
}

static enum silt_status put_mapped(struct work *work, const struct group *group,
                                   const struct silt_build_codes *kept, uint32_t source,
                                   uint32_t odd)
{
    struct silt_segment_builder *builder = work->builder;
    unsigned form = SILT_COLUMN_MAPPED | (odd ? SILT_COLUMN_EXCEPTIONS : 0);
    enum silt_status status = silt_scratch_reserve(builder, group->count);
    if (status == SILT_OK) status = silt_buf_put_u8(&builder->bodies, (uint8_t)form);
    if (status == SILT_OK) status = silt_buf_put_varint(&builder->bodies, kept->column);
    if (status == SILT_OK) status = silt_buf_put_varint(&builder->bodies, source);
    if (status == SILT_OK) status = silt_ints_put(&builder->bodies, work->map, kept->code_count);
    if (status != SILT_OK) return status;
    return silt_put_exceptions(builder, work->refs + group->first, work->odd, odd);
}

/* Is the column a function of one before it in the same shape? *ret_done: it was written as such. */
static enum silt_status try_mapped(struct work *work, const struct group *group, uint32_t source,
                                   uint32_t code_count, bool *ret_done)
{
    struct silt_segment_builder *builder = work->builder;
    const uint32_t shape = builder->places.at[group->place].shape;
    const uint64_t plain = silt_ints_cost(work->codes, group->count);
    uint32_t tried = 0, odd;
    *ret_done = false;
    for (size_t k = builder->kept.count; k-- > 0 && tried < KEPT_TRIED;) {
        const struct silt_build_codes *kept = &builder->kept.at[k];
        if (kept->shape != shape || kept->code_count > group->count) continue;
        tried++;
        if (!map_codes(work, group, kept, &odd)) continue;
        if (odd != 0 && code_count > SILT_SEGMENT_SOURCE_SHARE * (uint64_t)group->count) continue;
        uint64_t cost = silt_ints_cost(work->map, kept->code_count) + 120 * (uint64_t)odd;
        if (cost >= plain) continue;
        *ret_done = true;
        return put_mapped(work, group, kept, source, odd);
    }
    return SILT_OK;
}

static enum silt_status put_coded(struct work *work, struct group *group, uint32_t source,
                                  uint32_t code_count)
{
    struct silt_buf *out = &work->builder->bodies;
    bool done = false;
    enum silt_status status = SILT_OK;
    for (uint32_t i = 0; i < group->count; i++)
        work->codes[i] = work->code[work->ids[group->first + i]];
    if (group->alone) status = try_mapped(work, group, source, code_count, &done);
    if (status != SILT_OK || done) return status;
    if (group->alone) status = keep_codes(work, group, code_count);
    if (status == SILT_OK) status = silt_buf_put_u8(out, SILT_COLUMN_CODES);
    if (status == SILT_OK) status = silt_buf_put_varint(out, source);
    if (status == SILT_OK) status = silt_ints_put(out, work->codes, group->count);
    return status;
}

/* Nearly all values stand in an earlier column of the name: they are told by their places there. *ret_done: it was written so. */
static enum silt_status try_reference(struct work *work, const struct group *group,
                                      const struct group *to, bool *ret_done)
{
    struct silt_segment_builder *builder = work->builder;
    const uint32_t limit = group->count / REFERENCE_SHARE;
    uint32_t odd = 0;
    uint64_t last = 0;
    *ret_done = false;
    if (to->count > SILT_SEGMENT_CODES_MAX) return SILT_OK;
    for (uint32_t id = 0; id < work->distinct; id++)
        work->local[id] = NO_CODE;
    for (uint32_t i = to->count; i-- > 0;)
        work->local[work->ids[to->first + i]] = i;
    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t at = work->local[work->ids[group->first + i]];
        if (at != NO_CODE) {
            last = at;
        } else {
            if (odd == limit) return SILT_OK;
            work->odd[odd++] = i;
        }
        work->codes[i] = last;
    }
    if (odd != 0 && (to->count + odd > SILT_SEGMENT_CODES_MAX ||
                     to->count > SILT_SEGMENT_SOURCE_SHARE * (uint64_t)group->count))
        return SILT_OK;
    if (silt_ints_cost(work->codes, group->count) + 100 * (uint64_t)odd >= group->choice.cost)
        return SILT_OK;
    unsigned form = SILT_COLUMN_CODES | (odd ? SILT_COLUMN_EXCEPTIONS : 0);
    *ret_done = true;
    enum silt_status status = silt_scratch_reserve(builder, group->count);
    if (status == SILT_OK) status = silt_buf_put_u8(&builder->bodies, (uint8_t)form);
    if (status == SILT_OK) status = silt_buf_put_varint(&builder->bodies, to->number);
    if (status == SILT_OK) status = silt_ints_put(&builder->bodies, work->codes, group->count);
    if (status != SILT_OK) return status;
    return silt_put_exceptions(builder, work->refs + group->first, work->odd, odd);
}

static void name_places(struct work *work, const struct group *group)
{
    struct silt_segment_builder *builder = work->builder;
    if (group->alone) builder->places.at[group->place].column = group->number + 1;
    for (uint32_t p = 0; p < group->place_count && !group->alone; p++)
        builder->places.at[work->places_by_name[group->place + p]].column = group->number + 1;
}

static enum silt_status put_group(struct work *work, struct group *group, uint32_t name,
                                  const struct group *direct, uint32_t source, uint32_t codes)
{
    bool done = false;
    enum silt_status status = open_column(work, name + 1, group->count, &group->number);
    if (status != SILT_OK) return status;
    name_places(work, group);
    if (group->coded) return put_coded(work, group, source, codes);
    if (direct && group->choice.kind != SILT_COLUMN_CONST && group->count >= OWN_COLUMN)
        status = try_reference(work, group, direct, &done);
    if (status != SILT_OK || done) return status;
    struct silt_values values = group_values(work, group);
    return silt_put_chosen(work->builder, &values, &group->choice);
}

static enum silt_status encode_name(struct work *work, uint32_t name)
{
    uint32_t codes = 0, source = 0;
    const struct group *direct = NULL;
    gather(work, name);
    if (work->count == 0) return SILT_OK;
    intern_all(work);
    enum silt_status status = choose_groups(work, &codes);
    if (status != SILT_OK) return status;
    if (codes > SILT_SEGMENT_CODES_MAX) {
        codes = 0;
        for (uint32_t g = 0; g < work->group_count; g++)
            work->groups[g].coded = false;
    }
    if (codes != 0) status = put_dictionary(work, codes, &source);
    for (uint32_t g = 0; g < work->group_count && status == SILT_OK; g++) {
        struct group *group = &work->groups[g];
        status = put_group(work, group, name, direct, source, codes);
        if (!direct && !group->coded && group->choice.kind != SILT_COLUMN_CONST) direct = group;
    }
    return status;
}

/* ---- the whole ---- */

/* Places by name; room for the name with the most values. */
static enum silt_status prepare(struct work *work)
{
    struct silt_segment_builder *builder = work->builder;
    struct silt_arena *arena = &builder->arena;
    const uint32_t names = (uint32_t)builder->names.count;
    const uint32_t places = (uint32_t)builder->places.count;
    uint64_t *values = silt_arena_take(arena, names + 1, sizeof *values);
    work->name_first = silt_arena_take(arena, names + 2, sizeof *work->name_first);
    work->places_by_name = silt_arena_take(arena, places, sizeof *work->places_by_name);
    if (!values || !work->name_first || !work->places_by_name) return SILT_ERR_MEMORY;
    memset(values, 0, (names + 1) * sizeof *values);
    memset(work->name_first, 0, (names + 2) * sizeof *work->name_first);
    for (uint32_t p = 0; p < places; p++) {
        const struct silt_build_place *place = &builder->places.at[p];
        values[place->name] += builder->shapes.at[place->shape].entry_count;
        work->name_first[place->name + 2]++;
    }
    uint64_t most = 1, most_places = 1;
    for (uint32_t n = 0; n < names; n++) {
        most = values[n] > most ? values[n] : most;
        if (work->name_first[n + 2] > most_places) most_places = work->name_first[n + 2];
        work->name_first[n + 2] += work->name_first[n + 1];
    }
    for (uint32_t p = 0; p < places; p++)
        work->places_by_name[work->name_first[builder->places.at[p].name + 1]++] = p;
    uint64_t table = 16;
    while (table < 2 * most)
        table *= 2;
    work->groups = silt_arena_take(arena, most_places + 1, sizeof *work->groups);
    work->refs = silt_arena_take(arena, most, sizeof *work->refs);
    work->times = silt_arena_take(arena, most, sizeof *work->times);
    work->ids = silt_arena_take(arena, most, sizeof *work->ids);
    work->table = silt_arena_take(arena, table, sizeof *work->table);
    work->id_ref = silt_arena_take(arena, most, sizeof *work->id_ref);
    work->id_hash = silt_arena_take(arena, most, sizeof *work->id_hash);
    work->stamp = silt_arena_take(arena, most, sizeof *work->stamp);
    work->local = silt_arena_take(arena, most, sizeof *work->local);
    work->code = silt_arena_take(arena, most, sizeof *work->code);
    work->codes = silt_arena_take(arena, most, sizeof *work->codes);
    work->odd = silt_arena_take(arena, most, sizeof *work->odd);
    work->map = silt_arena_take(arena, most, sizeof *work->map);
    bool all = work->groups && work->refs && work->times && work->ids && work->table &&
               work->id_ref && work->id_hash && work->stamp && work->local && work->code &&
               work->codes && work->odd && work->map;
    return all ? SILT_OK : SILT_ERR_MEMORY;
}

static enum silt_status order_by_shape(struct silt_segment_builder *builder)
{
    const uint32_t count = (uint32_t)builder->ids.count;
    uint32_t at = 0;
    builder->by_shape = silt_arena_take(&builder->arena, count, sizeof *builder->by_shape);
    uint32_t *next = silt_arena_take(&builder->arena, builder->shapes.count, sizeof *next);
    if (!builder->by_shape || !next) return SILT_ERR_MEMORY;
    for (uint32_t s = 0; s < builder->shapes.count; s++) {
        builder->shapes.at[s].first_entry = next[s] = at;
        at += builder->shapes.at[s].entry_count;
    }
    for (uint32_t i = 0; i < count; i++)
        builder->by_shape[next[builder->shape_of.at[i]]++] = i;
    return SILT_OK;
}

static enum silt_status put_names(struct silt_segment_builder *builder)
{
    const size_t count = builder->names.count;
    if (count == 0) return SILT_OK;
    enum silt_status status = silt_scratch_reserve(builder, count);
    if (status != SILT_OK) return status;
    for (size_t i = 0; i < count; i++)
        builder->scratch[0][i] = builder->names.at[i].text.len;
    status = silt_ints_put(&builder->raw, builder->scratch[0], count);
    if (status != SILT_OK) return status;
    return silt_buf_put(&builder->raw, builder->names_text.at, builder->names_text.len);
}

static enum silt_status put_shapes(struct silt_segment_builder *builder)
{
    enum silt_status status = SILT_OK;
    for (size_t s = 0; s < builder->shapes.count && status == SILT_OK; s++) {
        const struct silt_build_shape *shape = &builder->shapes.at[s];
        status = silt_buf_put_varint(&builder->raw, shape->field_count);
        for (uint32_t f = 0; f < shape->field_count && status == SILT_OK; f++)
            status = silt_buf_put_varint(&builder->raw,
                                         builder->places.at[shape->first_place + f].column);
    }
    return status;
}

/* Milliseconds from the first entry's; then, for each entry, by how much its number is above the expected one. */
static enum silt_status put_ids(struct silt_segment_builder *builder)
{
    const struct silt_wire_id *ids = builder->ids.at;
    const size_t count = builder->ids.count;
    enum silt_status status = silt_scratch_reserve(builder, count);
    if (status != SILT_OK) return status;
    uint64_t *ms = builder->scratch[0], *seq = builder->scratch[1], base = ids[0].seq;
    for (size_t i = 1; i < count; i++)
        if (ids[i].ms != ids[i - 1].ms && ids[i].seq < base) base = ids[i].seq;
    for (size_t i = 0; i < count; i++) {
        bool same = i != 0 && ids[i].ms == ids[i - 1].ms;
        ms[i] = ids[i].ms - ids[0].ms;
        seq[i] = ids[i].seq - (same ? ids[i - 1].seq + 1 : base);
    }
    status = silt_ints_put(&builder->raw, ms, count);
    if (status == SILT_OK) status = silt_buf_put_varint(&builder->raw, base);
    if (status == SILT_OK) status = silt_ints_put(&builder->raw, seq, count);
    return status;
}

static enum silt_status put_head(struct silt_segment_builder *builder)
{
    struct silt_buf *raw = &builder->raw;
    enum silt_status status = silt_buf_put_varint(raw, builder->names.count);
    if (status == SILT_OK) status = silt_buf_put_varint(raw, builder->columns.count);
    if (status == SILT_OK) status = silt_buf_put_varint(raw, builder->shapes.count);
    if (status == SILT_OK) status = put_names(builder);
    for (size_t c = 0; c < builder->columns.count && status == SILT_OK; c++) {
        status = silt_buf_put_varint(raw, builder->columns.at[c].name);
        if (status == SILT_OK && builder->columns.at[c].name == 0)
            status = silt_buf_put_varint(raw, builder->columns.at[c].count);
    }
    if (status == SILT_OK) status = put_shapes(builder);
    if (status == SILT_OK) status = silt_scratch_reserve(builder, builder->ids.count);
    if (status != SILT_OK) return status;
    for (size_t i = 0; i < builder->ids.count; i++)
        builder->scratch[0][i] = builder->shape_of.at[i];
    status = silt_ints_put(raw, builder->scratch[0], builder->ids.count);
    return status == SILT_OK ? put_ids(builder) : status;
}

enum silt_status silt_segment_encode(struct silt_segment_builder *builder)
{
    struct work work = {.builder = builder};
    silt_arena_reset(&builder->arena);
    silt_buf_clear(&builder->raw);
    silt_buf_clear(&builder->bodies);
    builder->columns.count = builder->kept.count = 0;
    enum silt_status status = order_by_shape(builder);
    if (status == SILT_OK) status = prepare(&work);
    for (uint32_t n = 0; n < builder->names.count && status == SILT_OK; n++)
        status = encode_name(&work, n);
    if (status == SILT_OK) status = put_head(builder);
    if (status != SILT_OK) return status;
    return silt_buf_put(&builder->raw, builder->bodies.at, builder->bodies.len);
}
