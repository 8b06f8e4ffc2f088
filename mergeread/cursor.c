/* The cursor: deals a call out to the walk of its direction and gives entries from the loaded segment without looking at anything else. */
#include "alloc.h"
#include "cursor_priv.h"

void silt_cursor_close(struct silt_cursor *cursor)
{
    if (cursor == NULL) return;
    silt_archive_source_free(cursor->source);
    silt_page_release(&cursor->page);
    silt_stream_release(&cursor->stream);
    silt_gaps_release(&cursor->gaps);
    silt_late_segment_free(cursor->late_segment);
    silt_stream_release(&cursor->glance);
    silt_buf_release(&cursor->key);
    silt_free(cursor);
}

struct silt_namespace silt_cursor_brand(const struct silt_cursor *cursor)
{
    return cursor->known ? cursor->stream.row.ns : cursor->ns;
}

void silt_cursor_give_live(struct silt_cursor *cursor, const struct silt_entry *entry,
                           struct silt_item *ret)
{
    size_t index;
    struct silt_namespace brand = silt_cursor_brand(cursor);
    *ret = (struct silt_item){
        .kind = SILT_ITEM_ENTRY, .entry = *entry, .tier = SILT_TIER_LIVE, .life = cursor->at.life};
    ret->foreign = !silt_namespace_is_none(brand) && !silt_entry_is_ours(entry, brand, &index);
    cursor->at.id = entry->id;
    cursor->at.above_all = false;
    cursor->at.gaps_given = 0;
    cursor->at.accounted++;
    if (cursor->limited) cursor->limit_left--;
}

enum silt_status silt_cursor_seek(struct silt_cursor *cursor, struct silt_range range,
                                  struct silt_err *err)
{
    cursor->fast = 0;
    cursor->tail_to = range.to;
    return silt_archive_source_seek(cursor->source, cursor->at.life, cursor->stream.row.ns, range,
                                    cursor->reverse, err);
}

static inline void give_archived(struct silt_cursor *cursor, struct silt_item *ret)
{
    cursor->fast--;
    silt_archive_source_take(cursor->source, &ret->entry, &ret->foreign);
    ret->kind = SILT_ITEM_ENTRY;
    ret->tier = SILT_TIER_ARCHIVE;
    ret->life = cursor->source->life;
    cursor->at.id = ret->entry.id;
}

/* Everything that would have to be asked per entry is asked here for all that the loaded segment has before the next gap or the limit. */
static void count_fast(struct silt_cursor *cursor)
{
    struct silt_archive_source *source = cursor->source;
    const struct silt_gap_row *gap = silt_cursor_next_gap(cursor);
    size_t fast = source->left;
    if (gap != NULL) {
        /* Up to the gap's edge: entries at or below `after` come before it; in reverse those above `through`. */
        struct silt_wire_id edge;
        size_t at = silt_segment_count(source->segment);
        if (silt_wire_id_next(cursor->reverse ? gap->range.through : gap->range.after, &edge))
            at = silt_segment_find(source->segment, edge);
        size_t before = cursor->reverse ? source->index + 1 - at : at - source->index;
        if (before < fast) fast = before;
    }
    if (cursor->limited) {
        fast = (size_t)silt_min_u64(fast, cursor->limit_left);
        cursor->limit_left -= fast;
    }
    cursor->at.accounted += fast; /* silt_cursor_position takes back what was not given yet */
    cursor->at.gaps_given = 0;
    cursor->at.above_all = false;
    cursor->fast = fast;
}

/* The walk goes on behind the damage; with skip_damaged it is an item and the place moves, else the place stays, so that a saved position meets it again. */
static enum silt_status damaged(struct silt_cursor *cursor, struct silt_range range,
                                struct silt_item *ret, struct silt_err *err)
{
    /* How many entries it hides is not known, so the count of the missing starts anew. */
    cursor->at.has_base = false;
    if (!cursor->skip_damaged) {
        silt_err_set_stream(err, cursor->key.at, cursor->key.len);
        return SILT_ERR_CORRUPT;
    }
    *ret = (struct silt_item){.kind = SILT_ITEM_DAMAGE,
                              .tier = SILT_TIER_ARCHIVE,
                              .life = cursor->at.life,
                              .first = range.from,
                              .last = range.to};
    cursor->at.id = cursor->reverse ? range.from : range.to;
    cursor->at.above_all = false;
    cursor->at.gaps_given = 0;
    return SILT_OK;
}

static enum silt_status tell_late(struct silt_cursor *cursor, struct silt_item *ret)
{
    *ret = cursor->late;
    ret->late_after = cursor->at.late;
    ret->late_number = cursor->late_told;
    cursor->at.late = cursor->late_told;
    cursor->late_due = false;
    return SILT_OK;
}

enum silt_status silt_cursor_archive_step(struct silt_cursor *cursor, struct silt_item *ret,
                                          struct silt_err *err)
{
    struct silt_archive_source *source = cursor->source;
    struct silt_range range;
    enum silt_status status = SILT_OK;
    bool fresh = source->left == 0;
    if (fresh) status = silt_cursor_check_late(cursor, err);
    if (status != SILT_OK) return status;
    if (cursor->late_due) return tell_late(cursor, ret);
    status = silt_archive_source_load(source, &range, err);
    if (status == SILT_OK && fresh) {
        cursor->has_copy = true;
        cursor->copy_from = cursor->at.above_all ? SILT_WIRE_ID_MAX : cursor->at.id;
    }
    if (status == SILT_ERR_CORRUPT) return damaged(cursor, range, ret, err);
    if (status == SILT_END) {
        const struct silt_gap_row *gap = silt_cursor_next_gap(cursor);
        if (gap == NULL) return SILT_END;
        if (cursor->reverse ? silt_wire_id_less(gap->range.through, cursor->range.from)
                            : !silt_wire_id_less(gap->range.after, cursor->tail_to))
            return SILT_END;
        silt_cursor_tell_gap(cursor, ret);
        return SILT_OK;
    }
    if (status != SILT_OK) return status;
    if (silt_cursor_gap_before(cursor, silt_segment_id(source->segment, source->index))) {
        silt_cursor_tell_gap(cursor, ret);
        return SILT_OK;
    }
    count_fast(cursor);
    give_archived(cursor, ret);
    return SILT_OK;
}

enum silt_status silt_cursor_doubt(const struct silt_cursor *cursor, struct silt_err *err)
{
    silt_fail(
        err, SILT_ERR_DOUBT,
        "the stream's continuity is in doubt, an audit is pending: the archive was given, the live part is held back");
    silt_hint(err, "silt status gives the reason");
    silt_err_set_stream(err, cursor->key.at, cursor->key.len);
    return SILT_ERR_DOUBT;
}

/* Backward, what is held back lies before what was given: the newest n are not those n (promise 5). */
static enum silt_status limit_reached(const struct silt_cursor *cursor, struct silt_err *err)
{
    bool hidden = cursor->reverse && cursor->held && !cursor->archive_only;
    return hidden ? silt_cursor_doubt(cursor, err) : SILT_END;
}

enum silt_status silt_cursor_next(struct silt_cursor *cursor, struct silt_item *ret,
                                  struct silt_err *err)
{
    if (cursor->fast > 0) {
        give_archived(cursor, ret);
        return SILT_OK;
    }
    if (cursor->late_walk) return silt_cursor_late_next(cursor, ret, err);
    cursor->deadline_ms =
        cursor->follow_wait_ms == 0 ? 0 : silt_now_ms() + (int64_t)cursor->follow_wait_ms;
    for (;;) {
        if (cursor->late_due) return tell_late(cursor, ret);
        if (cursor->limited && cursor->limit_left == 0) return limit_reached(cursor, err);
        bool given = false;
        enum silt_status status = cursor->reverse ? silt_cursor_reverse(cursor, ret, &given, err)
                                                  : silt_cursor_forward(cursor, ret, &given, err);
        if (status == SILT_END) {
            status = silt_cursor_check_late(cursor, err);
            if (status == SILT_OK && cursor->late_due) continue;
            return status == SILT_OK ? SILT_END : status;
        }
        if (status != SILT_OK || given) return status;
    }
}

size_t silt_cursor_position(const struct silt_cursor *cursor, char ret[SILT_POSITION_TEXT])
{
    struct silt_position at = cursor->at;
    at.accounted -= cursor->fast;
    return silt_position_format(&at, ret);
}

bool silt_cursor_is_archive_only(const struct silt_cursor *cursor)
{
    return cursor->archive_only;
}

bool silt_cursor_is_held(const struct silt_cursor *cursor)
{
    return cursor->held && !cursor->archive_only;
}

struct silt_wire_id silt_cursor_watermark(const struct silt_cursor *cursor)
{
    return cursor->watermark;
}

const char *silt_cursor_namespace(const struct silt_cursor *cursor)
{
    return cursor->ns.letters;
}
