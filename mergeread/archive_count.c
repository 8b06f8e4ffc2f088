/* Counts over the archive by segment headers: only a segment at an edge is decoded. Knows nothing of servers. */
#include "archive_source_priv.h"

enum stop {
    STOP_NONE,    /* walked to the end of the piece */
    STOP_DECODE,  /* the segment in `at` must be looked into */
    STOP_DAMAGED, /* its header is damaged */
};

/* One walk over headers, within one snapshot. */
struct headers {
    struct silt_range left; /* what is still to walk: from moves up, or to moves down */
    enum stop stop;
    struct silt_segment_info at;
    bool over; /* the piece has nothing more */
    /* counting up */
    uint64_t count;
    /* measuring down */
    bool by_bytes;
    uint64_t want;              /* entries or bytes still wanted */
    bool any;                   /* lowest means something */
    struct silt_wire_id lowest; /* of those that fit so far */
};

static bool stop_at(struct headers *headers, enum silt_status status,
                    const struct silt_segment_info *info)
{
    headers->stop = status == SILT_OK ? STOP_DECODE : STOP_DAMAGED;
    headers->at = *info;
    return false;
}

static bool count_header(void *ctx, enum silt_status status, const struct silt_segment_info *info)
{
    struct headers *headers = ctx;
    if (silt_wire_id_less(headers->left.to, info->first)) {
        headers->over = true;
        return false;
    }
    if (status != SILT_OK || silt_wire_id_less(info->first, headers->left.from) ||
        silt_wire_id_less(headers->left.to, info->last))
        return stop_at(headers, status, info);
    headers->count += info->count;
    headers->over = !silt_wire_id_next(info->last, &headers->left.from) ||
                    silt_wire_id_less(headers->left.to, headers->left.from);
    return !headers->over;
}

/* Decodes the segment that a walk stopped at; its clipped entries are [*ret_begin, *ret_end). */
static enum silt_status decode(struct silt_archive_source *source, uint64_t life,
                               struct silt_namespace ns, struct headers *headers, bool down,
                               size_t *ret_begin, size_t *ret_end, struct silt_range *ret_damaged,
                               struct silt_err *err)
{
    struct silt_segment_info info;
    struct silt_wire_id id = silt_wire_id_higher(headers->at.first, headers->left.from);
    enum silt_status status =
        silt_archive_source_fetch(source, life, ns, id, SILT_SEEK_FORWARD, &info, err);
    if (status == SILT_ERR_CORRUPT) {
        if (silt_wire_id_is_zero(info.last)) info.last = headers->left.to;
        *ret_damaged = (struct silt_range){silt_wire_id_higher(info.first, headers->left.from),
                                           silt_wire_id_lower(info.last, headers->left.to)};
        return silt_archive_damaged(*ret_damaged, err);
    }
    if (status == SILT_END)
        return silt_fail(err, SILT_ERR_CORRUPT, "a segment of life %llu disappeared",
                         (unsigned long long)life);
    if (status != SILT_OK) return status;
    silt_archive_source_clip(source, headers->left, ret_begin, ret_end);
    headers->over = down ? !silt_wire_id_prev(info.first, &headers->left.to)
                         : !silt_wire_id_next(info.last, &headers->left.from);
    if (silt_wire_id_less(headers->left.to, headers->left.from)) headers->over = true;
    return SILT_OK;
}

/* The range's share of a piece; false: none. */
static bool share(const struct silt_life_piece *piece, struct silt_range range,
                  struct silt_range *ret)
{
    ret->from = silt_wire_id_higher(piece->range.from, range.from);
    ret->to = silt_wire_id_lower(piece->range.to, range.to);
    return !silt_wire_id_less(ret->to, ret->from);
}

enum silt_status silt_archive_count(struct silt_archive_source *source, uint64_t life,
                                    struct silt_namespace ns, struct silt_range range,
                                    uint64_t *ret_count, struct silt_range *ret_damaged,
                                    struct silt_err *err)
{
    enum silt_status status = silt_range_check(range, err);
    if (status == SILT_OK) status = silt_archive_source_chain(source, life, err);
    if (status != SILT_OK) return status;
    uint64_t total = 0;
    for (size_t i = source->piece_count; i-- > 0;) {
        struct headers headers = {0};
        if (!share(&source->pieces[i], range, &headers.left)) continue;
        while (!headers.over) {
            headers.stop = STOP_NONE;
            status =
                silt_store_segments(source->store, source->pieces[i].life, ns, headers.left.from,
                                    SILT_SEEK_FORWARD, count_header, &headers, err);
            if (status != SILT_OK && status != SILT_END) return status;
            if (headers.stop == STOP_NONE) break;
            size_t begin, end;
            status = decode(source, source->pieces[i].life, ns, &headers, false, &begin, &end,
                            ret_damaged, err);
            if (status == SILT_ERR_CORRUPT) *ret_count = total + headers.count;
            if (status != SILT_OK) return status;
            headers.count += end - begin;
        }
        total += headers.count;
    }
    *ret_count = total;
    return SILT_OK;
}

static bool measure_header(void *ctx, enum silt_status status, const struct silt_segment_info *info)
{
    struct headers *headers = ctx;
    if (status != SILT_OK) return stop_at(headers, status, info);
    if (silt_wire_id_less(info->last, headers->left.from)) {
        headers->over = true;
        return false;
    }
    bool whole = !silt_wire_id_less(info->first, headers->left.from) &&
                 !silt_wire_id_less(headers->left.to, info->last);
    bool fits = headers->by_bytes ? info->values_bytes <= headers->want
                                  : info->count < headers->want; /* the n-th itself is looked for */
    if (!whole || !fits) return stop_at(headers, status, info);
    headers->want -= headers->by_bytes ? info->values_bytes : info->count;
    headers->lowest = info->first;
    headers->any = true;
    headers->over = !silt_wire_id_prev(info->first, &headers->left.to) ||
                    silt_wire_id_less(headers->left.to, headers->left.from);
    return !headers->over;
}

/* Goes down the entries [begin, end) of the decoded segment; true: *ret is the answer. */
static bool measure_entries(struct silt_archive_source *source, struct headers *headers,
                            size_t begin, size_t end, struct silt_wire_id *ret)
{
    if (!headers->by_bytes) {
        if (headers->want <= end - begin) {
            *ret = silt_segment_id(source->segment, end - headers->want);
            return true;
        }
        headers->want -= end - begin;
        return false;
    }
    while (end-- > begin) {
        struct silt_entry entry;
        silt_segment_entry(source->segment, end, &entry);
        uint64_t bytes = silt_entry_bytes(&entry);
        if (bytes > headers->want) {
            *ret = headers->any ? headers->lowest : entry.id;
            return true;
        }
        headers->want -= bytes;
        headers->lowest = entry.id;
        headers->any = true;
    }
    return false;
}

/* Newest to oldest from top down; SILT_END: all of it was walked and headers says what fitted. */
static enum silt_status measure(struct silt_archive_source *source, uint64_t life,
                                struct silt_namespace ns, struct silt_wire_id top,
                                struct headers *headers, struct silt_wire_id *ret,
                                struct silt_err *err)
{
    enum silt_status status = silt_archive_source_chain(source, life, err);
    if (status != SILT_OK) return status;
    for (size_t i = 0; i < source->piece_count; i++) {
        struct silt_range range = {SILT_WIRE_ID_MIN, top};
        if (!share(&source->pieces[i], range, &headers->left)) continue;
        headers->over = false;
        while (!headers->over) {
            headers->stop = STOP_NONE;
            status =
                silt_store_segments(source->store, source->pieces[i].life, ns, headers->left.to,
                                    SILT_SEEK_BACKWARD, measure_header, headers, err);
            if (status != SILT_OK && status != SILT_END) return status;
            if (headers->stop == STOP_NONE) break;
            size_t begin, end;
            struct silt_range damaged;
            status = decode(source, source->pieces[i].life, ns, headers, true, &begin, &end,
                            &damaged, err);
            if (status != SILT_OK) return status;
            if (measure_entries(source, headers, begin, end, ret)) return SILT_OK;
        }
    }
    return SILT_END;
}

enum silt_status silt_archive_nth_newest(struct silt_archive_source *source, uint64_t life,
                                         struct silt_namespace ns, struct silt_wire_id top,
                                         uint64_t n, struct silt_wire_id *ret, struct silt_err *err)
{
    if (n == 0) return silt_fail(err, SILT_ERR_USAGE, "entries are counted from 1");
    struct headers headers = {.want = n};
    return measure(source, life, ns, top, &headers, ret, err);
}

enum silt_status silt_archive_newest_bytes(struct silt_archive_source *source, uint64_t life,
                                           struct silt_namespace ns, struct silt_wire_id top,
                                           uint64_t bytes, struct silt_wire_id *ret,
                                           struct silt_err *err)
{
    struct headers headers = {.by_bytes = true, .want = bytes};
    enum silt_status status = measure(source, life, ns, top, &headers, ret, err);
    if (status == SILT_END && headers.any) {
        *ret = headers.lowest;
        return SILT_OK;
    }
    return status;
}
