/* The inside of an archive source, for the cursor's hot path and the counts: siblings only. */
#ifndef SILT_ARCHIVE_SOURCE_PRIV_H
#define SILT_ARCHIVE_SOURCE_PRIV_H

#include "archive_source.h"

/* What one life of the chain contributes: its own entries from its fork on, its parent's below. */
struct silt_life_piece {
    uint64_t life;
    struct silt_range range;
};

struct silt_archive_source {
    struct silt_store *store;
    struct silt_segment *segment; /* decoded: ours, so the store's snapshot is long gone */
    struct silt_buf value;
    struct silt_life_piece
        *pieces; /* the life first, then its parents; kept while the life stays the same */
    size_t piece_count;
    size_t piece_cap;
    uint64_t chain_life;

    struct silt_namespace ns;
    struct silt_range range;
    bool reverse;
    bool done;                 /* no piece is left */
    size_t piece;              /* being read */
    struct silt_wire_id place; /* the next id to look for in it, inclusive */

    /* Of the loaded segment, what is still to give: `left` entries from `index` on, in steps of +1 or -1. */
    size_t index;
    size_t step;
    size_t left;
    bool has_foreign;
    uint64_t life;
    struct silt_wire_id segment_first;
};

/* Makes left > 0: loads the next segment of the walk. SILT_END, SILT_ERR_CORRUPT (with *ret_damaged) and the rest as silt_archive_source_next. */
SILT_MUST_USE enum silt_status silt_archive_source_load(struct silt_archive_source *source,
                                                        struct silt_range *ret_damaged,
                                                        struct silt_err *err);
/* Only with left > 0. */
static inline void silt_archive_source_take(struct silt_archive_source *source,
                                            struct silt_entry *ret, bool *ret_foreign)
{
    silt_segment_entry(source->segment, source->index, ret);
    *ret_foreign = source->has_foreign && silt_segment_is_foreign(source->segment, source->index);
    source->index += source->step;
    source->left--;
}

/* Loads the pieces of a life. */
SILT_MUST_USE enum silt_status silt_archive_source_chain(struct silt_archive_source *source,
                                                         uint64_t life, struct silt_err *err);
/* Copies and decodes one segment of one life; a damaged one is fetched and tried once more from a fresh snapshot (protocol.md §10). */
SILT_MUST_USE enum silt_status silt_archive_source_fetch(struct silt_archive_source *source,
                                                         uint64_t life, struct silt_namespace ns,
                                                         struct silt_wire_id id,
                                                         enum silt_seek seek,
                                                         struct silt_segment_info *ret_info,
                                                         struct silt_err *err);
/* Indices of the decoded segment's entries inside the range: [*ret_begin, *ret_end). */
void silt_archive_source_clip(const struct silt_archive_source *source, struct silt_range range,
                              size_t *ret_begin, size_t *ret_end);
/* Names the damaged range in front of what the store or the codec said of it. */
enum silt_status silt_archive_damaged(struct silt_range range, struct silt_err *err);

#endif
