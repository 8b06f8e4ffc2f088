/* Backward, protocol.md §5:
 *     page <- live entries below the place, newest first; snapshot, W2
 *     W2 at or above the place: drop the page, go on in segments below the place
 *     else the page's entries above W2; full and its lowest above W2: again below it; else segments from W2 down (never stop on a short page) */
#include "cursor_priv.h"

/* The highest id not yet passed, within the bounds; false: there is none. */
static bool upper(const struct silt_cursor *cursor, struct silt_wire_id *ret)
{
    struct silt_wire_id id = SILT_WIRE_ID_MAX;
    if (cursor->exhausted) return false;
    if (!cursor->at.above_all && !silt_wire_id_prev(cursor->at.id, &id)) return false;
    *ret = silt_wire_id_lower(id, cursor->range.to);
    return !silt_wire_id_less(*ret, cursor->range.from);
}

static enum silt_status go_down_archive(struct silt_cursor *cursor, struct silt_wire_id top,
                                        struct silt_err *err)
{
    struct silt_range range = {cursor->range.from, silt_wire_id_lower(top, cursor->watermark)};
    cursor->state = SILT_AT_END;
    if (!cursor->known || silt_wire_id_less(range.to, range.from)) return SILT_OK;
    enum silt_status status = silt_cursor_seek(cursor, range, err);
    cursor->state = status == SILT_OK ? SILT_AT_ARCHIVE : SILT_AT_LOOKUP;
    return status;
}

static enum silt_status lookup(struct silt_cursor *cursor, struct silt_err *err)
{
    struct silt_wire_id top;
    if (!upper(cursor, &top)) {
        cursor->state = SILT_AT_END;
        cursor->held = false; /* the bounds leave nothing live to hold back */
        return SILT_OK;
    }
    if (cursor->history->conn == NULL || cursor->older_life ||
        !silt_wire_id_less(cursor->watermark, top)) {
        cursor->held = false;
        return go_down_archive(cursor, top, err);
    }
    struct silt_range range = {.to = top};
    if (!silt_wire_id_next(cursor->watermark, &range.from)) return SILT_END;
    range.from = silt_wire_id_higher(range.from, cursor->range.from);
    uint32_t count =
        (uint32_t)silt_min_u64(cursor->page_entries, silt_look_page_cap(&cursor->page.look));
    if (cursor->limited) count = (uint32_t)silt_min_u64(count, cursor->limit_left);
    enum silt_status status = silt_cursor_fetch(cursor, range, count, err);
    if (status != SILT_OK) return status;
    if (cursor->archive_only || cursor->held) return go_down_archive(cursor, top, err);
    if (!silt_wire_id_less(cursor->watermark, top))
        return SILT_OK; /* W2 passed us: drop the page */
    cursor->page_index = 0;
    cursor->page_split = 0;
    while (cursor->page_split < cursor->page.entry_count &&
           silt_wire_id_less(cursor->watermark, cursor->page.entries[cursor->page_split].id))
        cursor->page_split++;
    cursor->state = SILT_AT_PAGE;
    return SILT_OK;
}

static enum silt_status out_of_page(struct silt_cursor *cursor, struct silt_item *ret,
                                    bool *ret_given)
{
    struct silt_page *page = &cursor->page;
    if (cursor->page_index < cursor->page_split) {
        const struct silt_entry *entry = &page->entries[cursor->page_index];
        *ret_given = true;
        if (silt_cursor_gap_before(cursor, entry->id)) {
            silt_cursor_tell_gap(cursor, ret);
            return SILT_OK;
        }
        cursor->page_index++;
        silt_cursor_give_live(cursor, entry, ret);
        return SILT_OK;
    }
    cursor->state = SILT_AT_LOOKUP;
    if (page->full && cursor->page_split == page->entry_count) return SILT_OK;
    /* Nothing is left above W2; what lies at it and below is the archive's to give. */
    struct silt_wire_id place;
    if (!silt_wire_id_next(cursor->watermark, &place)) return SILT_OK;
    if (cursor->at.above_all || silt_wire_id_less(place, cursor->at.id)) {
        cursor->at.id = place;
        cursor->at.above_all = false;
        cursor->at.gaps_given = 0;
    }
    return SILT_OK;
}

enum silt_status silt_cursor_reverse(struct silt_cursor *cursor, struct silt_item *ret,
                                     bool *ret_given, struct silt_err *err)
{
    enum silt_status status;
    switch (cursor->state) {
    case SILT_AT_LOOKUP: return lookup(cursor, err);
    case SILT_AT_PAGE: return out_of_page(cursor, ret, ret_given);
    case SILT_AT_TAIL:
    case SILT_AT_ARCHIVE:
        status = silt_cursor_archive_step(cursor, ret, err);
        if (status == SILT_OK) *ret_given = true;
        if (status != SILT_END) return status;
        cursor->exhausted = true;
        cursor->at.id = SILT_WIRE_ID_MIN;
        cursor->at.above_all = false;
        cursor->at.gaps_given = 0;
        cursor->state = SILT_AT_END;
        return SILT_OK;
    case SILT_AT_END: break;
    }
    return cursor->held && !cursor->archive_only ? silt_cursor_doubt(cursor, err) : SILT_END;
}
