/* Entries out of the store. Holds one decoded segment and a place; each further segment is found by seeking the place in a fresh snapshot, because
 * the open tail is rewritten, and late entries go in, while readers walk. Knows nothing of servers. */
#include "archive_source.h"

#include "alloc.h"
#include "archive_source_priv.h"

enum silt_status silt_archive_source_new(struct silt_store *store, struct silt_archive_source **ret)
{
    struct silt_archive_source *source = silt_calloc(1, sizeof *source);
    if (source == NULL) return SILT_ERR_MEMORY;
    source->store = store;
    source->done = true;
    if (silt_segment_new(&source->segment) != SILT_OK) {
        silt_free(source);
        return SILT_ERR_MEMORY;
    }
    *ret = source;
    return SILT_OK;
}

void silt_archive_source_free(struct silt_archive_source *source)
{
    if (source == NULL) return;
    silt_segment_free(source->segment);
    silt_buf_release(&source->value);
    silt_free(source->pieces);
    silt_free(source);
}

enum silt_status silt_archive_source_chain(struct silt_archive_source *source, uint64_t life,
                                           struct silt_err *err)
{
    if (source->piece_count > 0 && source->chain_life == life) return SILT_OK;
    source->piece_count = 0;
    struct silt_range range = SILT_RANGE_ALL;
    for (;;) {
        if (silt_grow((void **)&source->pieces, &source->piece_cap, source->piece_count + 1,
                      sizeof *source->pieces) != 0)
            return silt_fail(err, SILT_ERR_MEMORY, NULL);
        struct silt_fork_row fork;
        enum silt_status status = silt_store_fork(source->store, life, &fork, err);
        if (status != SILT_OK && status != SILT_END) {
            source->piece_count = 0;
            return status;
        }
        struct silt_life_piece *piece = &source->pieces[source->piece_count++];
        *piece = (struct silt_life_piece){life, range};
        if (source->piece_count == 1) source->chain_life = life;
        if (status == SILT_END) return SILT_OK;
        piece->range.from = fork.fork;
        /* Numbers of lives only grow, so a parent with a number that is not lower would lead round in a circle. */
        if (fork.parent >= life) {
            source->piece_count = 0;
            return silt_fail(err, SILT_ERR_CORRUPT,
                             "life %llu names the later life %llu as its parent",
                             (unsigned long long)life, (unsigned long long)fork.parent);
        }
        if (!silt_wire_id_prev(fork.fork, &range.to)) return SILT_OK;
        if (silt_wire_id_less(piece->range.to, range.to)) range.to = piece->range.to;
        life = fork.parent;
    }
}

static struct silt_range piece_range(const struct silt_archive_source *source)
{
    const struct silt_life_piece *piece = &source->pieces[source->piece];
    return (struct silt_range){silt_wire_id_higher(piece->range.from, source->range.from),
                               silt_wire_id_lower(piece->range.to, source->range.to)};
}

/* To the next piece that meets the range: towards the newest going forward, towards the oldest in reverse. */
static void next_piece(struct silt_archive_source *source)
{
    for (;;) {
        if (source->reverse ? source->piece + 1 >= source->piece_count : source->piece == 0) {
            source->done = true;
            return;
        }
        source->piece += source->reverse ? (size_t)1 : (size_t)-1;
        struct silt_range range = piece_range(source);
        if (silt_wire_id_less(range.to, range.from)) continue;
        source->place = source->reverse ? range.to : range.from;
        return;
    }
}

enum silt_status silt_archive_source_seek(struct silt_archive_source *source, uint64_t life,
                                          struct silt_namespace ns, struct silt_range range,
                                          bool reverse, struct silt_err *err)
{
    source->left = 0;
    source->done = true;
    enum silt_status status = silt_range_check(range, err);
    if (status == SILT_OK) status = silt_archive_source_chain(source, life, err);
    if (status != SILT_OK) return status;
    source->ns = ns;
    source->range = range;
    source->reverse = reverse;
    source->step = reverse ? (size_t)-1 : 1;
    source->done = false;
    source->piece = reverse ? (size_t)-1 : source->piece_count; /* one before the first */
    next_piece(source);
    return SILT_OK;
}

enum silt_status silt_archive_source_fetch(struct silt_archive_source *source, uint64_t life,
                                           struct silt_namespace ns, struct silt_wire_id id,
                                           enum silt_seek seek, struct silt_segment_info *ret_info,
                                           struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    for (int attempt = 0; attempt < 2; attempt++) {
        *ret_info = (struct silt_segment_info){0};
        status =
            silt_store_segment(source->store, life, ns, id, seek, &source->value, ret_info, err);
        if (status != SILT_OK) return status;
        status = silt_segment_open(source->segment, silt_buf_view(&source->value), err);
        if (status != SILT_ERR_CORRUPT) break;
    }
    return status;
}

void silt_archive_source_clip(const struct silt_archive_source *source, struct silt_range range,
                              size_t *ret_begin, size_t *ret_end)
{
    struct silt_wire_id behind;
    *ret_begin = silt_segment_find(source->segment, range.from);
    *ret_end = silt_wire_id_next(range.to, &behind) ? silt_segment_find(source->segment, behind)
                                                    : silt_segment_count(source->segment);
    if (*ret_end < *ret_begin) *ret_end = *ret_begin;
}

enum silt_status silt_archive_damaged(struct silt_range range, struct silt_err *err)
{
    char from[SILT_WIRE_ID_TEXT], to[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(range.from, from);
    silt_wire_id_format(range.to, to);
    if (err == NULL) return SILT_ERR_CORRUPT;
    struct silt_err inner = *err;
    silt_fail(err, SILT_ERR_CORRUPT, "the archive is damaged between %s and %s: %.200s", from, to,
              inner.sentence);
    silt_hint(err, "the entries before and after are readable; silt verify shows the extent");
    return SILT_ERR_CORRUPT;
}

/* Moves the place behind what was loaded or is damaged; false: the piece has nothing more. */
static bool step_over(struct silt_archive_source *source, struct silt_wire_id first,
                      struct silt_wire_id last, struct silt_range range)
{
    if (source->reverse)
        return silt_wire_id_prev(first, &source->place) &&
               !silt_wire_id_less(source->place, range.from);
    return silt_wire_id_next(last, &source->place) && !silt_wire_id_less(range.to, source->place);
}

/* What a damaged segment says of its last id may be wrong: the next one's entries are not its. */
static void clip_to_next(struct silt_archive_source *source, uint64_t life,
                         struct silt_segment_info *info)
{
    struct silt_wire_id next;
    if (silt_store_segment_above(source->store, life, source->ns, info->first, &next) == SILT_OK &&
        !silt_wire_id_less(info->last, next))
        (void)silt_wire_id_prev(next, &info->last);
}

/* One segment of the present piece. SILT_OK with left 0: go on looking. */
static enum silt_status load_one(struct silt_archive_source *source, struct silt_range *ret_damaged,
                                 struct silt_err *err)
{
    struct silt_segment_info info;
    struct silt_range range = piece_range(source);
    struct silt_range walk = source->reverse ? (struct silt_range){range.from, source->place}
                                             : (struct silt_range){source->place, range.to};
    uint64_t life = source->pieces[source->piece].life;
    enum silt_status status = silt_archive_source_fetch(
        source, life, source->ns, source->place,
        source->reverse ? SILT_SEEK_BACKWARD : SILT_SEEK_FORWARD, &info, err);
    if (status == SILT_END) {
        next_piece(source);
        return SILT_OK;
    }
    if (status != SILT_OK && status != SILT_ERR_CORRUPT) return status;
    /* Without a range to blame, all that this walk would still have read of the life is in doubt. */
    if (status == SILT_ERR_CORRUPT && silt_wire_id_is_zero(info.last))
        info.first = range.from, info.last = range.to;
    if (status == SILT_ERR_CORRUPT && !source->reverse) clip_to_next(source, life, &info);
    if (silt_wire_id_less(walk.to, info.first) || silt_wire_id_less(info.last, walk.from)) {
        next_piece(source);
        return SILT_OK;
    }
    struct silt_range damaged = {silt_wire_id_higher(info.first, walk.from),
                                 silt_wire_id_lower(info.last, walk.to)};
    if (!step_over(source, info.first, info.last, range)) next_piece(source);
    if (status == SILT_ERR_CORRUPT) {
        *ret_damaged = damaged;
        return silt_archive_damaged(damaged, err);
    }
    size_t begin, end;
    silt_archive_source_clip(source, walk, &begin, &end);
    source->left = end - begin;
    source->index = source->reverse ? end - 1 : begin;
    source->has_foreign = info.foreign_count > 0;
    source->life = life;
    source->segment_first = info.first;
    return SILT_OK;
}

enum silt_status silt_archive_source_load(struct silt_archive_source *source,
                                          struct silt_range *ret_damaged, struct silt_err *err)
{
    while (source->left == 0) {
        if (source->done) return SILT_END;
        enum silt_status status = load_one(source, ret_damaged, err);
        if (status != SILT_OK) return status;
    }
    return SILT_OK;
}

enum silt_status silt_archive_source_next(struct silt_archive_source *source,
                                          struct silt_archive_entry *ret,
                                          struct silt_range *ret_damaged, struct silt_err *err)
{
    if (source->left == 0) {
        enum silt_status status = silt_archive_source_load(source, ret_damaged, err);
        if (status != SILT_OK) return status;
    }
    silt_archive_source_take(source, &ret->entry, &ret->foreign);
    ret->life = source->life;
    ret->segment_first = source->segment_first;
    return SILT_OK;
}
