/* How many: the archive's share by segment headers, the rest by walking on from there, so that what is folded and trimmed meanwhile is counted once. */
#include "cursor_priv.h"

static enum silt_status count_archive(struct silt_cursor *cursor, uint64_t *count,
                                      struct silt_err *err)
{
    struct silt_range range = {cursor->range.from,
                               silt_wire_id_lower(cursor->watermark, cursor->range.to)};
    while (cursor->known && !silt_wire_id_less(range.to, range.from)) {
        uint64_t part = 0;
        struct silt_range damaged;
        enum silt_status status = silt_archive_count(
            cursor->source, cursor->at.life, cursor->stream.row.ns, range, &part, &damaged, err);
        if (status != SILT_OK && !(status == SILT_ERR_CORRUPT && cursor->skip_damaged))
            return status;
        *count += part;
        cursor->at.id = status == SILT_OK ? range.to : damaged.to;
        if (!silt_wire_id_next(cursor->at.id, &range.from)) break;
    }
    return SILT_OK;
}

enum silt_status silt_history_count(struct silt_history *history,
                                    const struct silt_cursor_options *which, uint64_t *ret_count,
                                    struct silt_err *err)
{
    struct silt_cursor_options options = *which;
    options.limit = 0;
    options.follow = options.reverse = false;
    options.resume = NULL;
    struct silt_cursor *cursor = NULL;
    enum silt_status status = silt_cursor_open(history, &options, &cursor, err);
    if (status != SILT_OK) return status;
    uint64_t count = 0;
    status = count_archive(cursor, &count, err);
    struct silt_item item;
    if (status == SILT_OK)
        while ((status = silt_cursor_next(cursor, &item, err)) == SILT_OK)
            if (item.kind == SILT_ITEM_ENTRY) count++;
    history->went_without = cursor->archive_only;
    silt_cursor_close(cursor);
    if (status != SILT_END) return status;
    *ret_count = count;
    return SILT_OK;
}
