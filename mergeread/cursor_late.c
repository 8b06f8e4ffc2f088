/* The walk over late entries alone: the rows of their numbers say which, the archive gives them. Protocol.md §5: "n late entries behind you" has a way
 * to read just these. The server is never asked. */
#include "alloc.h"
#include "cursor_priv.h"

/* The segment that the last late entry was in: those of one audit lie together. */
struct silt_late_segment {
    struct silt_buf value;
    struct silt_segment *decoded; /* holds nothing: none is loaded */
};

void silt_late_segment_free(struct silt_late_segment *segment)
{
    if (segment == NULL) return;
    silt_buf_release(&segment->value);
    silt_segment_free(segment->decoded);
    silt_free(segment);
}

static enum silt_status segment_of(struct silt_cursor *cursor, struct silt_late_segment **ret,
                                   struct silt_err *err)
{
    if (cursor->late_segment == NULL) {
        struct silt_late_segment *segment = silt_calloc(1, sizeof *segment);
        if (segment == NULL || silt_segment_new(&segment->decoded) != SILT_OK) {
            silt_free(segment);
            return silt_fail(err, SILT_ERR_MEMORY, NULL);
        }
        cursor->late_segment = segment;
    }
    *ret = cursor->late_segment;
    return SILT_OK;
}

static bool holds(const struct silt_segment *segment, struct silt_wire_id id, size_t *ret_index)
{
    *ret_index = silt_segment_find(segment, id);
    return *ret_index < silt_segment_count(segment) &&
           silt_wire_id_equal(silt_segment_id(segment, *ret_index), id);
}

/* Finds the entry of the row. A copy that does not hold it may be older than the entry: it is loaded again before anything is concluded. */
static enum silt_status find(struct silt_cursor *cursor, const struct silt_late_row *row,
                             struct silt_item *ret, struct silt_err *err)
{
    struct silt_late_segment *segment = NULL;
    struct silt_segment_info info;
    size_t index;
    enum silt_status status = segment_of(cursor, &segment, err);
    if (status != SILT_OK) return status;
    if (!holds(segment->decoded, row->id, &index)) {
        status = silt_store_segment(cursor->history->store, row->life, cursor->stream.row.ns,
                                    row->id, SILT_SEEK_FORWARD, &segment->value, &info, err);
        if (status == SILT_OK)
            status = silt_segment_open(segment->decoded, silt_buf_view(&segment->value), err);
        if (status < 0) return status;
        if (status == SILT_END || !holds(segment->decoded, row->id, &index)) {
            char id[SILT_WIRE_ID_TEXT];
            silt_wire_id_format(row->id, id);
            return silt_fail(err, SILT_ERR_CORRUPT,
                             "late entry number %llu, %s, is not in the archive",
                             (unsigned long long)row->number, id);
        }
    }
    *ret = (struct silt_item){.kind = SILT_ITEM_ENTRY,
                              .tier = SILT_TIER_ARCHIVE,
                              .life = row->life,
                              .late_number = row->number};
    silt_segment_entry(segment->decoded, index, &ret->entry);
    ret->foreign = silt_segment_is_foreign(segment->decoded, index);
    return SILT_OK;
}

/* Within the bounds, and behind the position that the walk was begun from. */
static bool is_wanted(const struct silt_cursor *cursor, struct silt_wire_id id)
{
    const struct silt_position *at = &cursor->at;
    if (silt_wire_id_less(id, cursor->range.from) || silt_wire_id_less(cursor->range.to, id))
        return false;
    if (at->above_all) return true;
    return at->reverse ? !silt_wire_id_less(id, at->id) : !silt_wire_id_less(at->id, id);
}

static enum silt_status damaged(struct silt_cursor *cursor, const struct silt_late_row *row,
                                struct silt_item *ret, struct silt_err *err)
{
    if (!cursor->skip_damaged) {
        silt_err_set_stream(err, cursor->key.at, cursor->key.len);
        return SILT_ERR_CORRUPT;
    }
    cursor->at.late = row->number;
    *ret = (struct silt_item){.kind = SILT_ITEM_DAMAGE,
                              .tier = SILT_TIER_ARCHIVE,
                              .life = row->life,
                              .first = row->id,
                              .last = row->id,
                              .late_number = row->number};
    return SILT_OK;
}

enum silt_status silt_cursor_late_next(struct silt_cursor *cursor, struct silt_item *ret,
                                       struct silt_err *err)
{
    struct silt_late_row row;
    if (!cursor->known || (cursor->limited && cursor->limit_left == 0)) return SILT_END;
    for (;;) {
        enum silt_status status = silt_store_late_after(cursor->history->store, cursor->at.life,
                                                        cursor->late_told, &row, err);
        if (status != SILT_OK) return status;
        if (row.number <= cursor->late_told)
            return silt_fail(err, SILT_ERR_CORRUPT, "late numbers go back");
        cursor->late_told = row.number; /* also past damage: the next call goes on behind it */
        if (!is_wanted(cursor, row.id)) continue;
        status = find(cursor, &row, ret, err);
        if (silt_status_class(status) == SILT_CLASS_CORRUPT) return damaged(cursor, &row, ret, err);
        if (status != SILT_OK) return status;
        cursor->at.late = row.number;
        if (cursor->limited) cursor->limit_left--;
        return SILT_OK;
    }
}
