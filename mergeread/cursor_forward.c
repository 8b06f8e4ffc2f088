/* Forward and follow, protocol.md §5:
 *     while place < W: segments; nothing more in them: place <- W
 *     page <- live entries after the place; snapshot, W2
 *     archive entries in (place, W2], then the page's entries above W2; place <- at least W2
 *     short page: gaps above the base; place <- at least LAST; end, or wait */
#include "cursor_priv.h"

static void move_up(struct silt_cursor *cursor, struct silt_wire_id to)
{
    if (!silt_wire_id_less(cursor->at.id, to)) return;
    cursor->at.id = to;
    cursor->at.gaps_given = 0;
}

static bool at_bound(const struct silt_cursor *cursor)
{
    return !silt_wire_id_less(cursor->at.id, cursor->range.to);
}

/* Reads segments in (place, to]. */
static enum silt_status seek_up(struct silt_cursor *cursor, struct silt_wire_id to,
                                enum silt_cursor_state state, struct silt_err *err)
{
    struct silt_range range = {.to = to};
    if (!silt_wire_id_next(cursor->at.id, &range.from)) return SILT_END;
    enum silt_status status = silt_cursor_seek(cursor, range, err);
    if (status == SILT_OK) cursor->state = state;
    return status;
}

/* A gap whose edge is the place itself, or W2: nothing of the archive comes before it any more. */
static bool tell_reached(struct silt_cursor *cursor, struct silt_item *ret)
{
    const struct silt_gap_row *gap = silt_cursor_next_gap(cursor);
    if (gap == NULL || silt_wire_id_less(cursor->watermark, gap->range.after)) return false;
    silt_cursor_tell_gap(cursor, ret);
    return true;
}

/* protocol.md §5, the one optimisation: nothing between place and page can be missing from the page, so it stands for the tail of the archive. */
static bool page_is_whole(const struct silt_cursor *cursor)
{
    const struct silt_look *look = &cursor->page.look;
    return look->state == SILT_LOOK_STREAM && look->facts.has_first &&
           !silt_wire_id_less(cursor->at.id, look->facts.first) &&
           !silt_wire_id_less(cursor->at.id, look->facts.max_deleted) &&
           !silt_wire_id_less(look->facts.last, cursor->watermark);
}

static size_t above(const struct silt_page *page, struct silt_wire_id id)
{
    size_t low = 0, high = page->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (silt_wire_id_less(id, page->entries[middle].id))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* A page and its snapshot are in hand; what is given first? */
static enum silt_status begin_page(struct silt_cursor *cursor, struct silt_err *err)
{
    cursor->rebased = false;
    cursor->page_split = above(&cursor->page, cursor->watermark);
    cursor->page_index = 0;
    cursor->whole = page_is_whole(cursor);
    if (cursor->whole) {
        cursor->state = SILT_AT_PAGE;
        return SILT_OK;
    }
    cursor->page_index = cursor->page_split;
    struct silt_wire_id to = silt_wire_id_lower(cursor->watermark, cursor->range.to);
    if (silt_wire_id_less(cursor->at.id, to)) return seek_up(cursor, to, SILT_AT_TAIL, err);
    cursor->state = SILT_AT_PAGE;
    return SILT_OK;
}

/* The live part is out of reach or held back: is the walk over? */
static enum silt_status without_live(struct silt_cursor *cursor, struct silt_item *ret,
                                     bool *ret_given, struct silt_err *err)
{
    if (silt_wire_id_less(cursor->at.id, cursor->watermark)) return SILT_OK; /* W moved meanwhile */
    if (cursor->archive_only && tell_reached(cursor, ret)) {
        *ret_given = true;
        return SILT_OK;
    }
    cursor->state = SILT_AT_END;
    if (!cursor->held || cursor->archive_only || cursor->follow) return SILT_OK;
    cursor->state = SILT_AT_LOOKUP;
    return silt_cursor_doubt(cursor, err);
}

static enum silt_status lookup(struct silt_cursor *cursor, struct silt_item *ret, bool *ret_given,
                               struct silt_err *err)
{
    if (at_bound(cursor)) {
        cursor->state = SILT_AT_END;
        return SILT_OK;
    }
    struct silt_wire_id to = silt_wire_id_lower(cursor->watermark, cursor->range.to);
    if (silt_wire_id_less(cursor->at.id, to)) return seek_up(cursor, to, SILT_AT_ARCHIVE, err);
    if (cursor->history->conn == NULL || cursor->older_life)
        return without_live(cursor, ret, ret_given, err);
    struct silt_range range = {.to = cursor->range.to};
    if (!silt_wire_id_next(cursor->at.id, &range.from)) return SILT_END;
    uint32_t count =
        (uint32_t)silt_min_u64(cursor->page_entries, silt_look_page_cap(&cursor->page.look));
    if (cursor->limited) count = (uint32_t)silt_min_u64(count, cursor->limit_left);
    cursor->fetched_from = cursor->at.id;
    enum silt_status status = silt_cursor_fetch(cursor, range, count, err);
    if (status == SILT_ERR_STALE && cursor->behind && cursor->follow) {
        cursor->state = SILT_AT_END;
        return SILT_OK;
    }
    if (status != SILT_OK) return status;
    if (cursor->archive_only || cursor->held) return without_live(cursor, ret, ret_given, err);
    return begin_page(cursor, err);
}

static enum silt_status out_of_archive(struct silt_cursor *cursor, struct silt_item *ret,
                                       bool *ret_given, struct silt_err *err)
{
    enum silt_status status = silt_cursor_archive_step(cursor, ret, err);
    if (status == SILT_OK) *ret_given = true;
    if (status != SILT_END) return status;
    move_up(cursor, cursor->tail_to);
    if (cursor->state == SILT_AT_TAIL) {
        cursor->state = SILT_AT_PAGE;
        return SILT_OK;
    }
    cursor->state = SILT_AT_LOOKUP;
    return silt_cursor_snapshot(cursor, err);
}

/* All up to W2 is given. */
static bool pass_watermark(struct silt_cursor *cursor, struct silt_item *ret)
{
    cursor->rebased = true;
    move_up(cursor, silt_wire_id_lower(cursor->watermark, cursor->range.to));
    return silt_cursor_rebase(cursor, ret);
}

static enum silt_status out_of_page(struct silt_cursor *cursor, struct silt_item *ret,
                                    bool *ret_given)
{
    struct silt_page *page = &cursor->page;
    *ret_given = true;
    /* A full page that ends at or below W2 has not passed it. */
    bool passes = !cursor->whole || !page->full || cursor->page_split < page->entry_count;
    if (passes && !cursor->rebased && cursor->page_index == cursor->page_split &&
        pass_watermark(cursor, ret))
        return SILT_OK;
    if (cursor->page_index < page->entry_count) {
        const struct silt_entry *entry = &page->entries[cursor->page_index];
        if (silt_cursor_gap_before(cursor, entry->id)) {
            silt_cursor_tell_gap(cursor, ret);
            return SILT_OK;
        }
        cursor->page_index++;
        silt_cursor_give_live(cursor, entry, ret);
        return SILT_OK;
    }
    if (page->full) {
        cursor->state = SILT_AT_LOOKUP;
        *ret_given = false;
        return SILT_OK;
    }
    if (!at_bound(cursor) && tell_reached(cursor, ret)) return SILT_OK;
    *ret_given = silt_cursor_count_short_page(cursor, ret);
    if (page->look.state == SILT_LOOK_STREAM)
        move_up(cursor, silt_wire_id_lower(page->look.facts.last, cursor->range.to));
    cursor->state = SILT_AT_END;
    return SILT_OK;
}

enum silt_status silt_cursor_forward(struct silt_cursor *cursor, struct silt_item *ret,
                                     bool *ret_given, struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    switch (cursor->state) {
    case SILT_AT_LOOKUP: return lookup(cursor, ret, ret_given, err);
    case SILT_AT_ARCHIVE:
    case SILT_AT_TAIL: return out_of_archive(cursor, ret, ret_given, err);
    case SILT_AT_PAGE: return out_of_page(cursor, ret, ret_given);
    case SILT_AT_END: break;
    }
    if (!cursor->follow) return SILT_END;
    status = silt_cursor_wait(cursor, err);
    if (status != SILT_OK) return status;
    cursor->state = SILT_AT_LOOKUP;
    /* Without a server nothing else looks at the archive again. */
    return cursor->history->conn == NULL ? silt_cursor_snapshot(cursor, err) : SILT_OK;
}
