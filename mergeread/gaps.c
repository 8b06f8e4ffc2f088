/* What is missing: gaps that the archiver recorded, told in their place, and those above the watermark, which the reader counts itself (protocol.md §5
 * and §6; promise 5: nothing is hidden, and nothing is told twice). No input or output but the store's gap rows. */
#include "alloc.h"
#include "cursor_priv.h"

void silt_gaps_release(struct silt_gaps *gaps)
{
    silt_free(gaps->rows);
    *gaps = (struct silt_gaps){0};
}

/* Which object the counters are of: entries-added of another one says nothing about this one. */
static uint32_t fingerprint(const struct silt_cursor *cursor)
{
    const struct silt_stream_row *row = &cursor->stream.row;
    if (!cursor->known || !row->has_facts) return 0; /* nobody knows yet */
    uint64_t sum = silt_checksum(silt_view(row->facts.replid, SILT_REPLID_LEN), row->incarnation);
    return (uint32_t)(sum ^ sum >> 32) | 1u;
}

static bool same_object(const struct silt_cursor *cursor)
{
    uint32_t then = cursor->at.fingerprint, now = fingerprint(cursor);
    return cursor->at.has_base && (then == now || then == 0 || now == 0);
}

/* ---- recorded gaps ---- */

enum when { PAST, NOW, LATER };

/* Where does the walk stand towards a row that it has not seen yet? */
static enum when place_of(const struct silt_cursor *cursor, const struct silt_gap_row *row)
{
    const struct silt_position *at = &cursor->at;
    struct silt_wire_id after = row->range.after, through = row->range.through;
    if (cursor->reverse) {
        if (at->above_all || silt_wire_id_less(through, at->id)) return LATER;
        return silt_wire_id_less(after, at->id) ? NOW : PAST;
    }
    if (!silt_wire_id_less(after, at->id)) return LATER;
    return silt_wire_id_less(at->id, through) ? NOW : PAST;
}

static bool wanted(struct silt_cursor *cursor, const struct silt_gap_row *row)
{
    struct silt_wire_id after = row->range.after, through = row->range.through;
    if (silt_wire_id_less(through, cursor->range.from) ||
        !silt_wire_id_less(after, cursor->range.to))
        return false;
    enum when when = place_of(cursor, row);
    if (when != NOW) return when == LATER;
    /* It straddles the place. A walk that begins inside it tells it; one that was resumed inside it told it before; later on the reader's own count covers
     * it, where there is one. */
    if (!cursor->gaps.loaded) return !cursor->resumed;
    return !same_object(cursor);
}

/* Rows that were told before the position was written. */
static bool told_already(struct silt_cursor *cursor, const struct silt_gap_row *row,
                         uint64_t *inout_left)
{
    if (*inout_left == 0 || cursor->at.above_all) return false;
    struct silt_wire_id edge = cursor->at.id;
    if (cursor->reverse && !silt_wire_id_prev(cursor->at.id, &edge)) return false;
    if (!silt_wire_id_equal(cursor->reverse ? row->range.through : row->range.after, edge))
        return false;
    --*inout_left;
    return true;
}

static bool comes_before(const struct silt_cursor *cursor, const struct silt_gap_row *a,
                         const struct silt_gap_row *b)
{
    if (cursor->reverse) return silt_wire_id_less(b->range.through, a->range.through);
    return silt_wire_id_less(a->range.after, b->range.after);
}

/* How many entries may still be told missing up to W: what was added there, less what was given or told and what the archive is going to give. The archiver books
 * a gap where a fold reaches LAST, which may be far above the place where this cursor has counted the same entries already. UINT64_MAX: no such limit is known. */
static enum silt_status allowance(struct silt_cursor *cursor, uint64_t *ret, struct silt_err *err)
{
    const struct silt_stream_row *row = &cursor->stream.row;
    const struct silt_gaps *gaps = &cursor->gaps;
    struct silt_range range = {.to = cursor->watermark}, damaged;
    *ret = UINT64_MAX;
    if (cursor->reverse || !same_object(cursor) || !row->folded_any ||
        !silt_wire_id_equal(row->custody, row->watermark))
        return SILT_OK;
    if (!silt_wire_id_next(cursor->at.id, &range.from) || silt_wire_id_less(range.to, range.from))
        return SILT_OK;
    uint64_t ahead = 0;
    enum silt_status status =
        silt_archive_count(cursor->source, cursor->at.life, row->ns, range, &ahead, &damaged, err);
    if (status == SILT_ERR_CORRUPT) return SILT_OK; /* the walk will say so; the count is off */
    if (status != SILT_OK) return status;
    for (size_t i = gaps->next; i < gaps->count; i++)
        if (gaps->rows[i].has_count) ahead += gaps->rows[i].count;
    uint64_t passed = cursor->at.accounted + ahead;
    *ret = row->custody_added > passed ? row->custody_added - passed : 0;
    return SILT_OK;
}

/* Lowers the row's count to what is allowed; false: all of it was told before. */
static bool within(struct silt_gap_row *row, uint64_t *inout_allowance)
{
    if (!row->has_count || *inout_allowance == UINT64_MAX) return true;
    if (*inout_allowance == 0) return false;
    if (row->count > *inout_allowance) row->count = *inout_allowance;
    *inout_allowance -= row->count;
    return true;
}

static enum silt_status keep(struct silt_cursor *cursor, const struct silt_gap_row *row,
                             struct silt_err *err)
{
    struct silt_gaps *gaps = &cursor->gaps;
    if (silt_grow((void **)&gaps->rows, &gaps->cap, gaps->count + 1, sizeof *gaps->rows) != 0)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    size_t at = gaps->count++;
    for (; at > gaps->next && comes_before(cursor, row, &gaps->rows[at - 1]); at--)
        gaps->rows[at] = gaps->rows[at - 1];
    gaps->rows[at] = *row;
    return SILT_OK;
}

/* The store numbers a life's rows in id order. A row that does not come after the last one means that one was put in below it, and the numbers have moved. */
static bool moved(const struct silt_gaps *gaps, const struct silt_gap_row *row)
{
    const struct silt_gap_row *last = &gaps->last;
    return gaps->has_last && (silt_wire_id_less(row->range.after, last->range.after) ||
                              (silt_wire_id_equal(row->range.after, last->range.after) &&
                               silt_wire_id_equal(row->range.through, last->range.through) &&
                               row->count == last->count && row->noticed_ms == last->noticed_ms));
}

struct spent {
    uint64_t told;      /* rows at the place that a position says were told */
    uint64_t allowance; /* of entries that may be told missing */
    bool counted;       /* allowance is known: it is asked for only where there is a row */
};

/* *ret_moved: begin again from the first row. */
static enum silt_status load_life(struct silt_cursor *cursor, const struct silt_life_piece *piece,
                                  bool own, struct spent *spent, bool *ret_moved,
                                  struct silt_err *err)
{
    struct silt_gaps *gaps = &cursor->gaps;
    struct silt_gap_row row;
    uint64_t place = own ? gaps->store_cursor : 0;
    enum silt_status status;
    while ((status = silt_store_gap_after(cursor->history->store, piece->life, &place, &row,
                                          err)) == SILT_OK) {
        if (own && moved(gaps, &row)) {
            *ret_moved = true;
            return SILT_OK;
        }
        if (own) gaps->store_cursor = place, gaps->last = row, gaps->has_last = true;
        if (silt_wire_id_less(piece->range.to, row.range.after)) continue;
        if (!wanted(cursor, &row) || told_already(cursor, &row, &spent->told)) continue;
        if (!spent->counted) {
            enum silt_status counted = allowance(cursor, &spent->allowance, err);
            if (counted != SILT_OK) return counted;
            spent->counted = true;
        }
        if (!within(&row, &spent->allowance)) continue;
        status = keep(cursor, &row, err);
        if (status != SILT_OK) return status;
    }
    return status == SILT_END ? SILT_OK : status;
}

static enum silt_status load_all(struct silt_cursor *cursor, struct silt_err *err)
{
    struct silt_archive_source *source = cursor->source;
    struct silt_gaps *gaps = &cursor->gaps;
    struct spent spent = {.told = cursor->at.gaps_given};
    bool unused = false;
    gaps->store_cursor = 0;
    gaps->count = gaps->next = 0;
    gaps->has_last = false;
    enum silt_status status = SILT_OK;
    for (size_t i = 0; status == SILT_OK && i < source->piece_count; i++)
        status = load_life(cursor, &source->pieces[i], i == 0, &spent, &unused, err);
    if (status == SILT_OK) gaps->loaded = true;
    return status;
}

enum silt_status silt_cursor_load_gaps(struct silt_cursor *cursor, struct silt_err *err)
{
    enum silt_status status = silt_archive_source_chain(cursor->source, cursor->at.life, err);
    if (status != SILT_OK) return status;
    bool begin_again = !cursor->gaps.loaded;
    struct spent spent = {.told = 0}; /* new rows were not told yet */
    if (!begin_again)
        status = load_life(cursor, cursor->source->pieces, true, &spent, &begin_again, err);
    return status == SILT_OK && begin_again ? load_all(cursor, err) : status;
}

const struct silt_gap_row *silt_cursor_next_gap(const struct silt_cursor *cursor)
{
    return cursor->gaps.next < cursor->gaps.count ? &cursor->gaps.rows[cursor->gaps.next] : NULL;
}

bool silt_cursor_gap_before(const struct silt_cursor *cursor, struct silt_wire_id id)
{
    const struct silt_gap_row *gap = silt_cursor_next_gap(cursor);
    if (gap == NULL) return false;
    return cursor->reverse ? !silt_wire_id_less(gap->range.through, id)
                           : silt_wire_id_less(gap->range.after, id);
}

static void fill(struct silt_cursor *cursor, struct silt_wire_id after, struct silt_wire_id through,
                 struct silt_item *ret)
{
    *ret = (struct silt_item){.kind = SILT_ITEM_GAP, .life = cursor->at.life, .last = through};
    if (!silt_wire_id_next(after, &ret->first)) ret->first = after;
    if (silt_wire_id_less(ret->last, ret->first)) ret->first = ret->last;
}

void silt_cursor_tell_gap(struct silt_cursor *cursor, struct silt_item *ret)
{
    const struct silt_gap_row *gap = &cursor->gaps.rows[cursor->gaps.next++];
    struct silt_position *at = &cursor->at;
    fill(cursor, gap->range.after, gap->range.through, ret);
    ret->tier = SILT_TIER_ARCHIVE;
    ret->life = gap->life;
    ret->count = gap->has_count ? gap->count : 0;
    ret->count_is_exact = gap->has_count && gap->precision == SILT_GAP_EXACT;
    ret->cause = silt_gap_cause_name(gap->cause);
    /* What is told counts as accounted for, or the count above the watermark would tell it again. */
    if (!cursor->reverse && at->has_base && gap->has_count &&
        silt_wire_id_less(at->base, gap->range.through))
        at->accounted += gap->count;
    /* The place moves up to the gap's edge, which nothing that is left lies before: a position saved now does not tell it twice. */
    struct silt_wire_id edge = gap->range.after;
    if (cursor->reverse && !silt_wire_id_next(gap->range.through, &edge)) return;
    bool onward = cursor->reverse ? at->above_all || silt_wire_id_less(edge, at->id)
                                  : silt_wire_id_less(at->id, edge);
    if (onward) {
        at->above_all = false;
        at->id = edge;
        at->gaps_given = 1;
    } else if (silt_wire_id_equal(at->id, edge)) {
        at->gaps_given++;
    }
}

/* ---- the count above the watermark ---- */

bool silt_cursor_rebase(struct silt_cursor *cursor, struct silt_item *ret)
{
    struct silt_position *at = &cursor->at;
    const struct silt_stream_row *row = &cursor->stream.row;
    /* Entries between W2 and the place were given out of pages and are counted above the present base: it stays. */
    if (silt_wire_id_less(cursor->watermark, cursor->fetched_from)) return false;
    bool folded = cursor->known && row->folded_any;
    uint64_t added = folded ? row->custody_added : 0;
    uint32_t object = fingerprint(cursor);
    bool same = same_object(cursor);
    /* A is the count at C; while C is below W, after an audit, it is not the count at W. */
    if (folded && !silt_wire_id_equal(row->custody, row->watermark)) {
        at->has_base = same;
        return false;
    }
    uint64_t missing = same && added > at->accounted ? added - at->accounted : 0;
    struct silt_wire_id base = at->base;
    /* A fold that stopped short of LAST has not booked its gap: what this cursor has told already must not come again when it does. */
    at->accounted = same && at->accounted > added ? at->accounted : added;
    at->base = cursor->watermark;
    at->fingerprint = object;
    at->has_base = true;
    if (missing == 0) return false;
    fill(cursor, base, cursor->watermark, ret);
    ret->count = missing;
    ret->count_is_exact = true;
    ret->cause = silt_gap_cause_name(SILT_GAP_UNKNOWN);
    return true;
}

bool silt_cursor_count_short_page(struct silt_cursor *cursor, struct silt_item *ret)
{
    const struct silt_facts *facts = &cursor->page.look.facts;
    struct silt_position *at = &cursor->at;
    if (cursor->page.look.state != SILT_LOOK_STREAM) return false;
    /* A walk that ends below LAST has not seen what entries-added counts. */
    if (silt_wire_id_less(cursor->range.to, facts->last)) return false;
    if (silt_wire_id_less(facts->last, at->has_base ? at->base : at->id)) return false;
    uint32_t object = fingerprint(cursor);
    bool same = same_object(cursor);
    uint64_t missing =
        same && facts->entries_added > at->accounted ? facts->entries_added - at->accounted : 0;
    struct silt_wire_id base = at->base;
    at->base = facts->last;
    at->accounted = facts->entries_added;
    at->fingerprint = object;
    at->has_base = true;
    if (missing == 0) return false;
    fill(cursor, base, facts->last, ret);
    ret->tier = SILT_TIER_LIVE;
    ret->count = missing;
    ret->count_is_exact = true;
    bool deleted = silt_wire_id_less(base, facts->max_deleted);
    bool trimmed = !facts->has_first || silt_wire_id_less(base, facts->first);
    ret->cause = silt_gap_cause_name(deleted   ? SILT_GAP_DELETED
                                     : trimmed ? SILT_GAP_TRIMMED
                                               : SILT_GAP_UNKNOWN);
    return true;
}
