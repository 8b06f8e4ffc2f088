/* Late entries into their place. A segment that gets one is read, merged, encoded, and what was encoded is decoded again and compared with the stored
 * segment's own decoding and with the late entries, byte for byte (promise 1, step "prove"): rewriting overwrites the only copy of what was trimmed
 * long ago. Which segment: the one they fall in; between two, the one below if it is not full, else the one above, else one of their own. */
#include "insert.h"

#include "alloc.h"
#include "faultpoint.h"
#include "fold.h"

struct made { /* a new segment; the value lies in insert->values */
    struct silt_segment_info info;
    size_t offset;
    size_t len;
};

struct silt_insert {
    uint64_t life;
    struct silt_namespace ns;
    struct silt_entry_list late;
    struct silt_insert_sum sum;

    /* while applying, for the segment at hand */
    struct silt_segment_builder *builder;
    struct silt_segment *stored;  /* what is replaced; holds nothing: a segment of their own */
    struct silt_segment *decoded; /* what was made */
    struct silt_buf value;        /* of the stored one */
    struct silt_entry_list old;   /* its entries */
    const struct silt_entry **merged;
    size_t merged_count;
    size_t merged_cap;
    struct silt_buf values;
    struct made *made;
    size_t made_count;
    size_t made_cap;
    struct silt_batch_part *parts;
    size_t parts_cap;
};

enum silt_status silt_insert_new(int level, struct silt_insert **ret)
{
    struct silt_insert *insert = silt_calloc(1, sizeof *insert);
    if (!insert) return SILT_ERR_MEMORY;
    enum silt_status status = silt_segment_builder_new(level, &insert->builder);
    if (status == SILT_OK) status = silt_segment_new(&insert->stored);
    if (status == SILT_OK) status = silt_segment_new(&insert->decoded);
    if (status != SILT_OK) {
        silt_insert_free(insert);
        return status;
    }
    *ret = insert;
    return SILT_OK;
}

void silt_insert_free(struct silt_insert *insert)
{
    if (!insert) return;
    silt_segment_builder_free(insert->builder);
    silt_segment_free(insert->stored);
    silt_segment_free(insert->decoded);
    silt_entry_list_release(&insert->late);
    silt_entry_list_release(&insert->old);
    silt_buf_release(&insert->value);
    silt_buf_release(&insert->values);
    silt_free(insert->merged);
    silt_free(insert->made);
    silt_free(insert->parts);
    silt_free(insert);
}

void silt_insert_begin(struct silt_insert *insert, uint64_t life, struct silt_namespace ns)
{
    insert->life = life;
    insert->ns = ns;
    insert->sum = (struct silt_insert_sum){0};
    silt_entry_list_clear(&insert->late);
}

const struct silt_insert_sum *silt_insert_sum(const struct silt_insert *insert)
{
    return &insert->sum;
}

static enum silt_status refuse(struct silt_wire_id id, enum silt_status code, const char *why,
                               struct silt_err *err)
{
    char text[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(id, text);
    return silt_fail(err, code, "late entry %s: %s", text, why);
}

static bool storable(const struct silt_entry *entry)
{
    return entry->field_count <= SILT_ENTRY_FIELDS_MAX &&
           silt_entry_bytes(entry) <= SILT_ENTRY_BYTES_MAX;
}

enum silt_status silt_insert_add(struct silt_insert *insert, const struct silt_entry *entry,
                                 struct silt_err *err)
{
    struct silt_entry_list *late = &insert->late;
    size_t id_field;
    if (late->count > 0 && !silt_wire_id_less(late->entries[late->count - 1].id, entry->id))
        return refuse(entry->id, SILT_ERR_ORDER, "it is not above the one before it", err);
    if (!storable(entry))
        return refuse(entry->id, SILT_ERR_ENTRY_SHAPE, "it is larger than what is stored", err);
    enum silt_status status = silt_entry_list_add(late, entry);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    insert->sum.count++;
    insert->sum.values_bytes += silt_entry_bytes(entry);
    if (!silt_namespace_is_none(insert->ns) && !silt_entry_is_ours(entry, insert->ns, &id_field))
        insert->sum.foreign_count++;
    return SILT_OK;
}

/* ---- where they go ---- */

struct near { /* the headers around an id, as they come */
    size_t count;
    size_t want;
    enum silt_status status[2];
    struct silt_segment_info info[2];
};

static bool take_near(void *ctx, enum silt_status status, const struct silt_segment_info *info)
{
    struct near *near = ctx;
    near->status[near->count] = status;
    near->info[near->count] = *info;
    return ++near->count < near->want;
}

static enum silt_status look_near(const struct silt_insert *insert, struct silt_store *store,
                                  struct silt_wire_id id, enum silt_seek seek, size_t want,
                                  struct near *ret, struct silt_err *err)
{
    *ret = (struct near){.want = want};
    return silt_store_segments(store, insert->life, insert->ns, id, seek, take_near, ret, err);
}

/* The segment that takes late entries, and the id that they must stay below. */
struct place {
    bool has_target;
    struct silt_segment_info target;
    bool bounded;
    struct silt_wire_id below;
};

static bool has_room(const struct near *near, size_t index)
{
    return index < near->count && near->status[index] == SILT_OK &&
           !silt_segment_is_full(&near->info[index]);
}

static void bound(struct place *place, const struct near *above, size_t index)
{
    place->bounded = index < above->count;
    if (place->bounded) place->below = above->info[index].first;
}

/* A damaged segment may hold the id: nobody can tell whether the entry is there. */
static enum silt_status refuse_damaged(struct silt_wire_id id, struct silt_err *err)
{
    return refuse(id, SILT_ERR_CORRUPT, "its place lies in a damaged segment", err);
}

static enum silt_status find_place(const struct silt_insert *insert, struct silt_store *store,
                                   struct silt_wire_id id, struct place *ret, struct silt_err *err)
{
    struct near below, above;
    struct silt_wire_id from = id;
    *ret = (struct place){0};
    enum silt_status status = look_near(insert, store, id, SILT_SEEK_BACKWARD, 1, &below, err);
    if (status != SILT_OK) return status;
    if (below.count > 0 && below.status[0] != SILT_OK) return refuse_damaged(id, err);
    bool inside = below.count > 0 && !silt_wire_id_less(below.info[0].last, id);
    if (inside && !silt_wire_id_next(below.info[0].last, &from)) from = SILT_WIRE_ID_MAX;
    status = look_near(insert, store, from, SILT_SEEK_FORWARD, 2, &above, err);
    if (status != SILT_OK) return status;
    if (above.count > 0 && !silt_wire_id_less(id, above.info[0].first))
        return refuse_damaged(id, err);
    if (inside || has_room(&below, 0)) {
        ret->has_target = true;
        ret->target = below.info[0];
        bound(ret, &above, 0);
        /* What comes behind a full one is looked for a place of its own. */
        if (!has_room(&below, 0)) {
            ret->bounded = true;
            ret->below = from;
        }
    } else if (has_room(&above, 0)) {
        ret->has_target = true;
        ret->target = above.info[0];
        bound(ret, &above, 1);
    } else {
        bound(ret, &above, 0);
    }
    return SILT_OK;
}

/* ---- merging ---- */

static enum silt_status read_stored(struct silt_insert *insert, struct silt_store *store,
                                    const struct place *place, struct silt_err *err)
{
    struct silt_segment_info info;
    silt_entry_list_clear(&insert->old);
    if (!place->has_target) return SILT_OK;
    enum silt_status status =
        silt_store_segment(store, insert->life, insert->ns, place->target.first, SILT_SEEK_FORWARD,
                           &insert->value, &info, err);
    if (status == SILT_END) return silt_fail(err, SILT_ERR_STALE, "a segment is gone");
    if (status == SILT_OK)
        status = silt_segment_open(insert->stored, silt_buf_view(&insert->value), err);
    if (status != SILT_OK) return status;
    for (size_t i = 0; i < silt_segment_count(insert->stored); i++) {
        struct silt_entry entry;
        silt_segment_entry(insert->stored, i, &entry);
        status = silt_entry_list_add(&insert->old, &entry);
        if (status != SILT_OK) return silt_fail(err, status, NULL);
    }
    silt_entry_list_seal(&insert->old);
    return SILT_OK;
}

/* The late entries first to end (not included) among the old ones. */
static enum silt_status merge(struct silt_insert *insert, size_t first, size_t end,
                              struct silt_err *err)
{
    const struct silt_entry *old = insert->old.entries, *late = insert->late.entries;
    size_t at = 0, count = 0;
    void *merged = insert->merged;
    if (silt_grow(&merged, &insert->merged_cap, insert->old.count + (end - first),
                  sizeof(struct silt_entry *)) != 0)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    insert->merged = merged;
    for (size_t i = first; i < end; i++) {
        while (at < insert->old.count && silt_wire_id_less(old[at].id, late[i].id))
            insert->merged[count++] = &old[at++];
        if (at < insert->old.count && silt_wire_id_equal(old[at].id, late[i].id))
            return refuse(late[i].id, SILT_ERR_PROTECTED, "the archive holds it already", err);
        insert->merged[count++] = &late[i];
    }
    while (at < insert->old.count)
        insert->merged[count++] = &old[at++];
    insert->merged_count = count;
    return SILT_OK;
}

/* ---- encoding ---- */

/* What an entry costs, roughly: also one of nothing but empty fields costs something. */
static uint64_t weight(const struct silt_entry *entry)
{
    return silt_entry_bytes(entry) + entry->field_count + sizeof entry->id;
}

static uint64_t weight_of(const struct silt_insert *insert, size_t low, size_t high)
{
    uint64_t sum = 0;
    for (size_t i = low; i < high; i++)
        sum += weight(insert->merged[i]);
    return sum;
}

/* Appends one segment of merged[low..high). SILT_ERR_LIMIT: they do not fit into one. */
static enum silt_status encode(struct silt_insert *insert, size_t low, size_t high,
                               struct made *ret, struct silt_err *err)
{
    silt_segment_builder_begin(insert->builder, insert->life, insert->ns);
    for (size_t i = low; i < high; i++) {
        enum silt_status status = silt_segment_builder_add(insert->builder, insert->merged[i]);
        if (status == SILT_ERR_LIMIT && i > low) return status;
        if (status == SILT_ERR_MEMORY) return silt_fail(err, status, NULL);
        if (status != SILT_OK)
            return refuse(insert->merged[i]->id, SILT_ERR_ENTRY_SHAPE, "it cannot be stored", err);
    }
    ret->offset = insert->values.len;
    enum silt_status status =
        silt_segment_builder_finish(insert->builder, &insert->values, &ret->info);
    ret->len = insert->values.len - ret->offset;
    return status == SILT_OK ? SILT_OK : silt_fail(err, status, NULL);
}

static enum silt_status keep(struct silt_insert *insert, const struct made *made,
                             struct silt_err *err)
{
    void *at = insert->made;
    if (silt_grow(&at, &insert->made_cap, insert->made_count + 1, sizeof *insert->made) != 0)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    insert->made = at;
    insert->made[insert->made_count++] = *made;
    return SILT_OK;
}

/* Into how many segments at least, before anything is known of how they pack. */
static size_t pieces_before(uint64_t weight, size_t count)
{
    uint64_t by_weight = weight / (SILT_SEGMENT_OPEN_VALUES_MAX + 1u) + 1;
    uint64_t by_count = (count - 1) / SILT_SEGMENT_COUNT_MAX + 1;
    uint64_t pieces = by_weight > by_count ? by_weight : by_count;
    return pieces > count ? count : (size_t)pieces;
}

/* Behind the piece that begins at `from`: at least one entry, and never all of [low, high), so that cutting comes to an end. */
static size_t end_of_piece(const struct silt_insert *insert, size_t low, size_t from, size_t high,
                           uint64_t share)
{
    uint64_t got = 0;
    size_t end = from;
    while (end < high && got <= share)
        got += weight(insert->merged[end++]);
    return end == high && from == low ? high - 1 : end;
}

/* merged[low..high) as one segment or, where that is too large, cut into pieces of about the same weight. One entry is always one segment. */
static enum silt_status make(struct silt_insert *insert, size_t low, size_t high,
                             struct silt_err *err)
{
    uint64_t sum = weight_of(insert, low, high);
    size_t pieces = pieces_before(sum, high - low), end;
    enum silt_status status = SILT_OK;
    if (pieces == 1) {
        struct made made = {.offset = insert->values.len};
        status = encode(insert, low, high, &made, err);
        if (status != SILT_OK && status != SILT_ERR_LIMIT) return status;
        if (status == SILT_OK && (made.len <= SILT_SEGMENT_SPLIT_BYTES || high - low == 1))
            return keep(insert, &made, err);
        insert->values.len = made.offset;
        pieces = status == SILT_OK ? made.len / SILT_SEGMENT_FULL_BYTES + 1 : 2;
        status = SILT_OK;
    }
    for (size_t from = low; from < high && status == SILT_OK; from = end) {
        end = end_of_piece(insert, low, from, high, sum / pieces);
        status = make(insert, from, end, err);
    }
    return status;
}

/* ---- the proof ---- */

static enum silt_status refuse_proof(const struct silt_segment_info *info, const char *what,
                                     struct silt_err *err)
{
    char first[SILT_WIRE_ID_TEXT], last[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(info->first, first);
    silt_wire_id_format(info->last, last);
    return silt_fail(err, SILT_ERR_PROOF,
                     "the segment %s to %s does not decode to what was there and is new: %s", first,
                     last, what);
}

/* How far the new segments have given back what is due. */
struct due {
    size_t old;
    size_t late;
    size_t end; /* of late */
};

static bool is_due(struct silt_insert *insert, const struct silt_entry *entry, struct due *due)
{
    if (due->late < due->end && silt_wire_id_equal(insert->late.entries[due->late].id, entry->id))
        return silt_entry_equal(&insert->late.entries[due->late++], entry);
    if (due->old >= insert->old.count) return false;
    struct silt_entry was; /* decoded from what is stored, not what the builder was fed with */
    silt_segment_entry(insert->stored, due->old++, &was);
    return silt_entry_equal(&was, entry);
}

/* Promise 1, step "prove": every entry of the stored segment and every late one is there, byte for byte, in order, and nothing else. */
static enum silt_status prove(struct silt_insert *insert, size_t first, size_t end,
                              struct silt_err *err)
{
    struct due due = {.late = first, .end = end};
    if (SILT_FAULTPOINT("insert-corrupt-encoded")) insert->values.at[insert->values.len / 2] ^= 1;
    for (size_t i = 0; i < insert->made_count; i++) {
        const struct made *made = &insert->made[i];
        struct silt_err inner = {0};
        enum silt_status status = silt_segment_open(
            insert->decoded, silt_view(insert->values.at + made->offset, made->len), &inner);
        if (status == SILT_ERR_MEMORY) return silt_fail(err, status, NULL);
        if (status != SILT_OK) return refuse_proof(&made->info, inner.sentence, err);
        for (size_t j = 0; j < silt_segment_count(insert->decoded); j++) {
            struct silt_entry entry;
            silt_segment_entry(insert->decoded, j, &entry);
            if (!is_due(insert, &entry, &due))
                return refuse_proof(&made->info, "another entry was due", err);
        }
    }
    if (due.old != insert->old.count || due.late != due.end)
        return refuse_proof(&insert->made[0].info, "entries are missing", err);
    return SILT_OK;
}

/* ---- into the batch ---- */

static enum silt_status put_parts(struct silt_insert *insert, struct silt_batch *batch,
                                  const struct place *place)
{
    void *at = insert->parts;
    if (silt_grow(&at, &insert->parts_cap, insert->made_count, sizeof *insert->parts) != 0)
        return SILT_ERR_MEMORY;
    insert->parts = at;
    for (size_t i = 0; i < insert->made_count; i++) {
        const struct made *made = &insert->made[i];
        struct silt_view value = silt_view(insert->values.at + made->offset, made->len);
        insert->parts[i] = (struct silt_batch_part){made->info, value};
    }
    if (place->has_target)
        return silt_batch_replace(batch, silt_segment_info(insert->stored),
                                  silt_checksum(silt_buf_view(&insert->value), 0), insert->parts,
                                  insert->made_count);
    enum silt_status status = SILT_OK;
    for (size_t i = 0; status == SILT_OK && i < insert->made_count; i++)
        status = silt_batch_segment(batch, &insert->parts[i].info, insert->parts[i].value, false);
    return status;
}

static enum silt_status number_late(const struct silt_insert *insert, struct silt_store *store,
                                    struct silt_batch *batch, struct silt_err *err)
{
    uint64_t number, in_batch = silt_batch_late_highest(batch, insert->life);
    enum silt_status status = silt_store_late_highest(store, insert->life, &number, err);
    if (status != SILT_OK) return status;
    if (in_batch > number) number = in_batch;
    for (size_t i = 0; i < insert->late.count; i++) {
        struct silt_late_row row = {insert->life, ++number, insert->late.entries[i].id};
        status = silt_batch_late(batch, &row);
        if (status != SILT_OK) return silt_fail(err, status, NULL);
    }
    return SILT_OK;
}

/* All late entries from *inout_at on that go to one place. */
static enum silt_status apply_some(struct silt_insert *insert, struct silt_store *store,
                                   struct silt_batch *batch, size_t *inout_at, struct silt_err *err)
{
    struct place place;
    size_t first = *inout_at, end = first + 1;
    insert->made_count = 0;
    silt_buf_clear(&insert->values);
    enum silt_status status =
        find_place(insert, store, insert->late.entries[first].id, &place, err);
    if (status == SILT_OK) status = read_stored(insert, store, &place, err);
    if (status != SILT_OK) return status;
    while (end < insert->late.count &&
           (!place.bounded || silt_wire_id_less(insert->late.entries[end].id, place.below)))
        end++;
    status = merge(insert, first, end, err);
    if (status == SILT_OK) status = make(insert, 0, insert->merged_count, err);
    if (status == SILT_OK) status = prove(insert, first, end, err);
    if (status != SILT_OK) return status;
    status = put_parts(insert, batch, &place);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    *inout_at = end;
    return SILT_OK;
}

/* Below its own fork a life has nothing: those entries are its parent's. */
static enum silt_status check_fork(const struct silt_insert *insert, struct silt_store *store,
                                   struct silt_err *err)
{
    struct silt_fork_row row;
    enum silt_status status = silt_store_fork(store, insert->life, &row, err);
    if (status == SILT_END) return SILT_OK;
    if (status != SILT_OK) return status;
    struct silt_wire_id lowest = insert->late.entries[0].id;
    return silt_wire_id_less(lowest, row.fork)
               ? refuse(lowest, SILT_ERR_PROTECTED, "it lies below the fork of its life", err)
               : SILT_OK;
}

enum silt_status silt_insert_apply(struct silt_insert *insert, struct silt_store *store,
                                   struct silt_batch *batch, struct silt_err *err)
{
    size_t mark = silt_batch_mark(batch), at = 0;
    if (insert->late.count == 0) return SILT_OK;
    silt_entry_list_seal(&insert->late);
    enum silt_status status = check_fork(insert, store, err);
    while (status == SILT_OK && at < insert->late.count)
        status = apply_some(insert, store, batch, &at, err);
    if (status == SILT_OK) status = number_late(insert, store, batch, err);
    if (status != SILT_OK) silt_batch_undo(batch, mark);
    return status;
}
