/* The deep check: decodes everything that the store holds and tells each thing that is wrong, one segment at a time in short
 * snapshots, so that it neither stops at the first finding nor holds the writer's pages. */
#include "check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "alloc.h"
#include "segment_header.h"
#include "store_priv.h"

#define PROGRESS_EVERY 64 /* segments */

struct checker {
    struct silt_store *store;
    const struct silt_check_options *options;
    struct silt_check_sum sum;
    struct silt_segment *segment;

    /* the pair at hand, copied out of its snapshot */
    struct silt_buf key;
    struct silt_buf value;
    struct silt_buf other; /* a segment that a row leads to */

    /* the stream at hand */
    struct silt_stream stream;
    struct silt_stream again;
    uint64_t life;
    struct silt_wire_id reached; /* last id of the segments so far */
    bool any;
    uint64_t entries, bytes, foreign; /* of all its lives */
    bool damaged;

    uint64_t next_life; /* lives from here on came while we were reading */
    uint64_t *lives;    /* that belong to some stream */
    size_t life_count;
    size_t life_cap;
};

const char *silt_finding_name(enum silt_finding_kind kind)
{
    switch (kind) {
    case SILT_FINDING_CHECKSUM: return "checksum";
    case SILT_FINDING_DECODE: return "decode";
    case SILT_FINDING_KEY: return "key";
    case SILT_FINDING_OVERLAP: return "overlap";
    case SILT_FINDING_COUNT: return "count";
    case SILT_FINDING_ORDER: return "order";
    case SILT_FINDING_WATERMARK: return "watermark";
    case SILT_FINDING_ROW: return "row";
    case SILT_FINDING_GAP: return "gap";
    }
    return "unknown";
}

static void SILT_PRINTF(5, 6)
    tell(struct checker *c, enum silt_finding_kind kind, struct silt_wire_id first,
         struct silt_wire_id last, const char *format, ...)
{
    struct silt_finding finding = {
        .kind = kind, .stream = c->stream.row.name, .life = c->life, .first = first, .last = last};
    va_list args;
    va_start(args, format);
    vsnprintf(finding.text, sizeof finding.text, format, args);
    va_end(args);
    c->sum.findings++;
    if (c->options->found) c->options->found(c->options->ctx, &finding);
}

static void tell_row(struct checker *c, const char *what, const struct silt_err *err)
{
    tell(c, SILT_FINDING_ROW, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, "%s: %s", what, err->sentence);
}

static bool is_damage(enum silt_status status)
{
    return silt_status_class(status) == SILT_CLASS_CORRUPT || status == SILT_ERR_NEWER_FORMAT;
}

static enum silt_status keep_pair(struct checker *c, const struct silt_kv_pair *pair,
                                  struct silt_err *err)
{
    silt_buf_clear(&c->key);
    silt_buf_clear(&c->value);
    enum silt_status status = silt_buf_put(&c->key, pair->key.at, pair->key.len);
    if (status == SILT_OK) status = silt_buf_put(&c->value, pair->value.at, pair->value.len);
    return status == SILT_OK ? SILT_OK : silt_fail(err, status, NULL);
}

static void damaged_segment(struct checker *c)
{
    c->sum.damaged_segments++;
    c->damaged = true;
}

/* The first pair with a key at or above (above: not at) the given one, copied. Damaged index pages are told and stepped over.
 * SILT_END: none. */
static enum silt_status next_pair(struct checker *c, enum silt_db db, struct silt_view from,
                                  bool above, struct silt_err *err)
{
    struct silt_kv_txn *txn;
    struct silt_kv_pair pair;
    struct silt_err why = {0};
    enum silt_status status = silt_env_read(c->store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_kv_at_or_above(txn, db, from, &pair, &why);
    while (is_damage(status) || (status == SILT_OK && above && silt_view_equal(pair.key, from))) {
        if (is_damage(status)) {
            tell(c, SILT_FINDING_CHECKSUM, c->reached, SILT_WIRE_ID_MAX, "%s", why.sentence);
            damaged_segment(c);
        }
        status = silt_kv_next(txn, db, &pair, &why);
    }
    if (status == SILT_OK)
        status = keep_pair(c, &pair, err);
    else if (status != SILT_END)
        silt_fail(err, status, "%s", why.sentence);
    silt_env_read_end(c->store, txn);
    return status;
}

/* ---- one segment ---- */

/* Whose checksum is it that does not fit, if one: else the bytes are what was written, and that was wrong. */
static enum silt_finding_kind kind_of_damage(struct silt_view value)
{
    struct silt_segment_info info;
    struct silt_view body;
    uint64_t body_sum;
    if (silt_segment_header_get(value, &info, &body, &body_sum, NULL) == SILT_OK)
        return silt_checksum(body, 0) == body_sum ? SILT_FINDING_DECODE : SILT_FINDING_CHECKSUM;
    if (value.len < SILT_SEGMENT_HEADER) return SILT_FINDING_CHECKSUM;
    size_t length = (size_t)(value.at[6] | value.at[7] << 8);
    if (length < SILT_SEGMENT_HEADER || length > value.len) return SILT_FINDING_CHECKSUM;
    return silt_get_le64(value.at + length - 8) == silt_checksum(silt_view(value.at, length - 8), 0)
               ? SILT_FINDING_DECODE
               : SILT_FINDING_CHECKSUM;
}

struct segment_facts {
    bool keyed; /* the key could be read */
    uint64_t key_life;
    struct silt_namespace key_ns;
    struct silt_wire_id key_first;
    struct silt_wire_id first, last; /* as well as can be told: for the finding's range */
};

static void check_header(struct checker *c, const struct segment_facts *facts,
                         const struct silt_segment_info *info)
{
    if (!facts->keyed || info->life != facts->key_life ||
        !silt_wire_id_equal(info->first, facts->key_first) ||
        !silt_namespace_equal(info->ns, facts->key_ns))
        tell(c, SILT_FINDING_KEY, facts->first, facts->last,
             "a segment's key and its header name different lives, kinds or ids");
    else if (!silt_namespace_equal(info->ns, c->stream.row.ns))
        tell(c, SILT_FINDING_KEY, facts->first, facts->last,
             "a segment's kind of id is not its stream's");
    if (c->any && !silt_wire_id_less(c->reached, facts->first))
        tell(c, SILT_FINDING_OVERLAP, facts->first, c->reached,
             "a segment begins before the one below it ends");
}

/* Every entry touched, every number of the header held against what is there. */
static void check_entries(struct checker *c, const struct segment_facts *facts,
                          const struct silt_segment_info *info)
{
    size_t count = silt_segment_count(c->segment);
    uint64_t bytes = 0, foreign = 0;
    bool ordered = count > 0;
    for (size_t i = 0; i < count; i++) {
        struct silt_entry entry;
        silt_segment_entry(c->segment, i, &entry);
        bytes += silt_entry_bytes(&entry);
        foreign += silt_segment_is_foreign(c->segment, i);
        if (i > 0 && !silt_wire_id_less(silt_segment_id(c->segment, i - 1), entry.id))
            ordered = false;
    }
    if (count != info->count || bytes != info->values_bytes || foreign != info->foreign_count)
        tell(c, SILT_FINDING_COUNT, facts->first, facts->last,
             "the header counts %" PRIu32 " entries, %" PRIu32 " foreign, %" PRIu64
             " bytes; there are %zu, %" PRIu64 ", %" PRIu64,
             info->count, info->foreign_count, info->values_bytes, count, foreign, bytes);
    if (!ordered)
        tell(c, SILT_FINDING_ORDER, facts->first, facts->last, "ids are not ascending");
    else if (!silt_wire_id_equal(silt_segment_id(c->segment, 0), info->first) ||
             !silt_wire_id_equal(silt_segment_id(c->segment, count - 1), info->last))
        tell(c, SILT_FINDING_ORDER, facts->first, facts->last,
             "the first or last id is not the header's");
    c->sum.entries += count;
    c->sum.values_bytes += bytes;
    c->entries += count;
    c->bytes += bytes;
    c->foreign += foreign;
}

static enum silt_status check_segment(struct checker *c, struct segment_facts *facts,
                                      struct silt_err *err)
{
    struct silt_err why = {0};
    struct silt_segment_info info = {0};
    uint64_t before = c->sum.findings;
    struct silt_view value = silt_buf_view(&c->value);
    enum silt_status status = silt_segment_open(c->segment, value, &why);
    if (status != SILT_OK && !is_damage(status)) return silt_fail(err, status, NULL);
    bool headed = silt_segment_peek(value, &info, NULL) == SILT_OK;
    if (headed) {
        facts->first = info.first;
        facts->last = info.last;
        check_header(c, facts, &info);
        c->reached = !c->any || silt_wire_id_less(c->reached, info.last) ? info.last : c->reached;
        c->any = true;
    }
    if (status != SILT_OK)
        tell(c, kind_of_damage(value), facts->first, facts->last, "%s", why.sentence);
    else
        check_entries(c, facts, &info);
    c->sum.segments++;
    c->sum.stored_bytes += value.len;
    if (c->sum.findings != before) damaged_segment(c);
    return SILT_OK;
}

/* ---- one life ---- */

static bool of_life(struct silt_view key, uint64_t life)
{
    return key.len >= 8 && silt_get_be64(key.at) == life;
}

/* The key to begin with: the life's first, or that of the segment in which the range begins. */
static enum silt_status first_key(struct checker *c, struct silt_key *ret, struct silt_err *err)
{
    struct silt_kv_txn *txn;
    struct silt_kv_pair pair;
    struct silt_key at = silt_key_segment(c->life, c->stream.row.ns, c->options->range.from);
    *ret = silt_key_number(c->life); /* a prefix of all keys of the life, whatever their kind */
    if (silt_wire_id_is_zero(c->options->range.from)) return SILT_OK;
    enum silt_status status = silt_env_read(c->store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_kv_at_or_below(txn, SILT_DB_SEGMENTS, silt_key_view(&at), &pair, err);
    if (status == SILT_OK && of_life(pair.key, c->life) && pair.key.len <= SILT_KEY_MAX) {
        memcpy(ret->at, pair.key.at, pair.key.len);
        ret->len = pair.key.len;
    }
    silt_env_read_end(c->store, txn);
    return status == SILT_END ? SILT_OK : status;
}

/* What a damaged header cannot say: up to where its entries may reach. */
static struct silt_wire_id end_of_range(struct checker *c, struct silt_view key)
{
    struct silt_kv_txn *txn;
    struct silt_kv_pair pair;
    struct silt_wire_id last = SILT_WIRE_ID_MAX, first;
    struct silt_namespace ns;
    uint64_t life;
    if (silt_env_read(c->store, &txn, NULL) != SILT_OK) return last;
    enum silt_status status = silt_kv_at_or_above(txn, SILT_DB_SEGMENTS, key, &pair, NULL);
    if (status == SILT_OK && silt_view_equal(pair.key, key))
        status = silt_kv_next(txn, SILT_DB_SEGMENTS, &pair, NULL);
    if (status == SILT_OK && silt_key_segment_parse(pair.key, &life, &ns, &first) &&
        life == c->life)
        (void)silt_wire_id_prev(first, &last);
    silt_env_read_end(c->store, txn);
    return last;
}

static void read_key(struct checker *c, struct segment_facts *facts)
{
    struct silt_view key = silt_buf_view(&c->key);
    memset(facts, 0, sizeof *facts);
    facts->keyed = silt_key_segment_parse(key, &facts->key_life, &facts->key_ns, &facts->key_first);
    facts->first = facts->keyed ? facts->key_first : c->reached;
    facts->last = end_of_range(c, key);
}

static enum silt_status check_life(struct checker *c, struct silt_err *err)
{
    struct silt_key start;
    struct silt_buf from = {0};
    bool above = false;
    c->any = false;
    c->reached = SILT_WIRE_ID_MIN;
    enum silt_status status = first_key(c, &start, err);
    if (status == SILT_OK) status = silt_buf_put(&from, start.at, start.len);
    while (status == SILT_OK) {
        struct segment_facts facts;
        status = next_pair(c, SILT_DB_SEGMENTS, silt_buf_view(&from), above, err);
        if (status != SILT_OK || !of_life(silt_buf_view(&c->key), c->life)) break;
        read_key(c, &facts);
        if (facts.keyed && silt_wire_id_less(c->options->range.to, facts.key_first)) break;
        /* Once more in a fresh snapshot before it is called damage (protocol.md §10). */
        silt_buf_clear(&from);
        status = silt_buf_put(&from, c->key.at, c->key.len);
        if (status == SILT_OK &&
            silt_segment_open(c->segment, silt_buf_view(&c->value), NULL) != SILT_OK)
            status = next_pair(c, SILT_DB_SEGMENTS, silt_buf_view(&from), false, err);
        if (status == SILT_OK) status = check_segment(c, &facts, err);
        above = true;
        if (c->options->progress && c->sum.segments % PROGRESS_EVERY == 0)
            c->options->progress(c->options->ctx, &c->sum);
    }
    silt_buf_release(&from);
    if (is_damage(status)) { /* LMDB itself could not go on */
        tell(c, SILT_FINDING_CHECKSUM, c->reached, SILT_WIRE_ID_MAX, "%s",
             err ? err->sentence : "the index is damaged");
        damaged_segment(c);
        status = SILT_OK;
    }
    return status == SILT_END ? SILT_OK : status;
}

/* ---- one stream ---- */

static void check_gaps(struct checker *c)
{
    struct silt_gap_row gap;
    struct silt_err why = {0};
    uint64_t cursor = 0;
    for (;;) {
        char count[32] = "an unknown number of";
        uint64_t before = cursor;
        enum silt_status status = silt_store_gap_after(c->store, c->life, &cursor, &gap, &why);
        if (is_damage(status)) tell_row(c, "a gap row", &why);
        if (is_damage(status) && cursor != before) continue;
        if (status != SILT_OK) return; /* the end, or no way to the rows behind it */
        if (silt_wire_id_less(gap.range.through, c->options->range.from) ||
            !silt_wire_id_less(gap.range.after, c->options->range.to))
            continue;
        if (gap.has_count)
            snprintf(count, sizeof count, "%s%" PRIu64,
                     gap.precision == SILT_GAP_AT_LEAST ? "at least " : "", gap.count);
        struct silt_wire_id first = gap.range.after;
        (void)silt_wire_id_next(gap.range.after, &first);
        tell(c, SILT_FINDING_GAP, first, gap.range.through, "%s entries missing: %s", count,
             silt_gap_cause_name(gap.cause));
    }
}

/* The row names an entry that is there. A segment that is damaged is told as such, not once more for each late entry in it. Rows of one audit
 * name neighbours, so the segment decoded last mostly has the next one too; a copy that does not may be older, and is loaded again. */
static enum silt_status check_late_entry(struct checker *c, const struct silt_late_row *late,
                                         struct silt_err *err)
{
    struct silt_segment_info info;
    struct silt_err why = {0};
    if (silt_wire_id_less(late->id, c->options->range.from) ||
        silt_wire_id_less(c->options->range.to, late->id))
        return SILT_OK;
    for (int attempt = 0; attempt < 2; attempt++) {
        size_t index = silt_segment_find(c->segment, late->id);
        if (silt_segment_info(c->segment)->life == late->life &&
            index < silt_segment_count(c->segment) &&
            silt_wire_id_equal(silt_segment_id(c->segment, index), late->id))
            return SILT_OK;
        if (attempt > 0) break;
        enum silt_status status =
            silt_store_segment(c->store, late->life, c->stream.row.ns, late->id, SILT_SEEK_FORWARD,
                               &c->other, &info, &why);
        if (status == SILT_OK)
            status = silt_segment_open(c->segment, silt_buf_view(&c->other), &why);
        if (is_damage(status)) return SILT_OK;
        if (status == SILT_END) break;
        if (status != SILT_OK) return silt_fail(err, status, "%s", why.sentence);
    }
    tell(c, SILT_FINDING_ROW, late->id, late->id,
         "late entry number %" PRIu64 " is not in the archive", late->number);
    return SILT_OK;
}

static enum silt_status check_late(struct checker *c, struct silt_err *err)
{
    struct silt_key from = silt_key_pair(c->life, 0);
    uint64_t number = 0;
    for (bool above = false;; above = true) {
        struct silt_late_row late;
        struct silt_err why = {0};
        enum silt_status status = next_pair(c, SILT_DB_LATE, silt_key_view(&from), above, err);
        if (status == SILT_END || (status == SILT_OK && !of_life(silt_buf_view(&c->key), c->life)))
            return SILT_OK;
        if (status == SILT_OK && c->key.len != from.len)
            status = silt_fail(err, SILT_ERR_CORRUPT, "a late row's key is damaged");
        if (is_damage(status)) {
            tell(c, SILT_FINDING_ROW, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, "late rows: %s",
                 err ? err->sentence : "damaged");
            return SILT_OK;
        }
        if (status != SILT_OK) return status;
        status =
            silt_late_row_decode(silt_buf_view(&c->value), silt_buf_view(&c->key), &late, &why);
        if (status != SILT_OK) tell_row(c, "a late row", &why);
        if (status == SILT_OK && late.number != ++number) {
            tell(c, SILT_FINDING_ROW, late.id, late.id,
                 "late entry number %" PRIu64 " stands where number %" PRIu64 " should",
                 late.number, number);
            number = late.number;
        }
        if (status == SILT_OK) status = check_late_entry(c, &late, err);
        if (status < 0 && !is_damage(status)) return status;
        memcpy(from.at, c->key.at, from.len);
    }
}

static enum silt_status note_life(struct checker *c, struct silt_err *err)
{
    void *at = c->lives;
    if (silt_grow(&at, &c->life_cap, c->life_count + 1, sizeof *c->lives) != 0)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    c->lives = at;
    c->lives[c->life_count++] = c->life;
    return SILT_OK;
}

/* W of the newest life; the archiver may have gone on since the row was read. */
static void check_watermark(struct checker *c)
{
    const struct silt_stream_row *row = &c->stream.row, *again = &c->again.row;
    if (c->life != row->life || !c->any) return;
    if (row->folded_any && !silt_wire_id_less(row->watermark, c->reached)) return;
    enum silt_status status = silt_store_stream_number(c->store, row->number, &c->again, NULL);
    if (status != SILT_OK || !again->folded_any || silt_wire_id_less(again->watermark, c->reached))
        tell(c, SILT_FINDING_WATERMARK, row->watermark, c->reached,
             "the archive reaches beyond its watermark");
}

/* A fork's two rows say the same, its parent was given out before it, and nothing of the life lies below where it forked off: that is its parent's. */
static void check_fork(struct checker *c, const struct silt_fork_row *fork)
{
    struct silt_fork_row again = {0};
    struct silt_segment_info info;
    if (silt_store_fork_after(c->store, fork->stream, c->life - 1, &again, NULL) != SILT_OK ||
        again.life != fork->life || again.parent != fork->parent ||
        !silt_wire_id_equal(again.fork, fork->fork))
        tell(c, SILT_FINDING_ROW, fork->fork, fork->fork,
             "the stream's list of forks does not have life %" PRIu64 " as its own row does",
             c->life);
    if (silt_store_segment(c->store, c->life, c->stream.row.ns, SILT_WIRE_ID_MIN, SILT_SEEK_FORWARD,
                           &c->other, &info, NULL) == SILT_OK &&
        silt_wire_id_less(info.first, fork->fork))
        tell(c, SILT_FINDING_ROW, info.first, fork->fork,
             "life %" PRIu64 " holds entries below the fork where it begins", c->life);
}

/* The parent of the life at hand. SILT_END: it is a first life, or nobody can tell. */
static enum silt_status find_parent(struct checker *c, uint64_t *ret, struct silt_err *err)
{
    struct silt_fork_row fork_row;
    struct silt_err why = {0};
    enum silt_status status = silt_store_fork(c->store, c->life, &fork_row, &why);
    if (status == SILT_OK && (fork_row.life != c->life || fork_row.parent >= c->life ||
                              fork_row.parent == 0 || fork_row.stream != c->stream.row.number))
        status = silt_fail(&why, SILT_ERR_CORRUPT, "it leads nowhere");
    if (is_damage(status)) {
        tell_row(c, "a fork row", &why);
        c->damaged = true;
        return SILT_END;
    }
    if (status == SILT_OK) {
        check_fork(c, &fork_row);
        *ret = fork_row.parent;
    }
    return status < 0 ? silt_fail(err, status, "%s", why.sentence) : status;
}

/* The newest life, its parent, and so on. Each parent is older, so the walk ends whatever the rows say. */
static enum silt_status check_lives(struct checker *c, struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    for (c->life = c->stream.row.life; status == SILT_OK;) {
        status = note_life(c, err);
        if (status == SILT_OK) status = check_life(c, err);
        if (status != SILT_OK) return status;
        check_watermark(c);
        check_gaps(c);
        status = check_late(c, err);
        if (status == SILT_OK) status = find_parent(c, &c->life, err);
    }
    return status == SILT_END ? SILT_OK : status;
}

/* Only when everything was read and nothing is damaged: then the counters must agree, or a segment is missing as a whole. */
static void check_counters(struct checker *c)
{
    const struct silt_stream_row *before = &c->stream.row, *after = &c->again.row;
    struct silt_range range = c->options->range;
    if (c->damaged || !silt_wire_id_is_zero(range.from) ||
        !silt_wire_id_equal(range.to, SILT_WIRE_ID_MAX))
        return;
    if (silt_store_stream_number(c->store, before->number, &c->again, NULL) != SILT_OK) return;
    c->life = before->life;
    if (c->entries < before->folded_entries || c->entries > after->folded_entries)
        tell(c, SILT_FINDING_WATERMARK, SILT_WIRE_ID_MIN, before->watermark,
             "%" PRIu64 " entries were folded, %" PRIu64 " are there", after->folded_entries,
             c->entries);
    else if (c->bytes < before->folded_bytes || c->bytes > after->folded_bytes ||
             c->foreign < before->foreign_entries || c->foreign > after->foreign_entries)
        tell(c, SILT_FINDING_WATERMARK, SILT_WIRE_ID_MIN, before->watermark,
             "the counters of bytes or foreign entries do not agree with the segments");
}

static void check_name(struct checker *c)
{
    struct silt_kv_txn *txn;
    struct silt_err why = {0};
    uint64_t number = 0, round;
    if (silt_env_read(c->store, &txn, &why) != SILT_OK) return;
    enum silt_status status =
        silt_txn_name(txn, c->stream.row.name, &c->again, &number, &round, &why);
    silt_env_read_end(c->store, txn);
    if (status == SILT_END || is_damage(status))
        tell(c, SILT_FINDING_ROW, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX,
             "the stream cannot be found by its name");
    else if (status == SILT_OK && number != c->stream.row.number)
        tell(c, SILT_FINDING_ROW, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX,
             "the stream's name leads to number %" PRIu64, number);
}

static enum silt_status check_stream(struct checker *c, struct silt_err *err)
{
    c->entries = c->bytes = c->foreign = 0;
    c->damaged = false;
    c->life = c->stream.row.life;
    c->sum.streams++;
    check_name(c);
    enum silt_status status = check_lives(c, err);
    if (status == SILT_OK) check_counters(c);
    if (c->options->progress) c->options->progress(c->options->ctx, &c->sum);
    return status;
}

/* ---- all of it ---- */

static bool knows_life(const struct checker *c, uint64_t life)
{
    for (size_t i = 0; i < c->life_count; i++)
        if (c->lives[i] == life) return true;
    return false;
}

/* Lives that came while we were reading have streams that we have not met; a number that was never given is damage. */
static bool may_be_new(struct checker *c, uint64_t life)
{
    struct silt_meta_row meta;
    if (life < c->next_life) return false;
    return silt_store_meta(c->store, &meta, NULL) == SILT_OK && life < meta.next_life;
}

/* Rows of lives that no stream has: their stream's row is gone, or they never had one. */
static enum silt_status check_orphans(struct checker *c, enum silt_db db, struct silt_err *err)
{
    struct silt_key from = silt_key_number(0);
    for (;;) {
        enum silt_status status = next_pair(c, db, silt_key_view(&from), false, err);
        if (status == SILT_END) return SILT_OK;
        if (is_damage(status)) {
            tell(c, SILT_FINDING_CHECKSUM, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, "%s",
                 err ? err->sentence : "the index is damaged");
            return SILT_OK;
        }
        if (status != SILT_OK) return status;
        if (c->key.len < 8) { /* sorts among the first: go on with the life it would have */
            tell(c, SILT_FINDING_KEY, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX,
                 "a key of %s is too short", silt_db_name(db));
            return SILT_OK;
        }
        c->life = silt_get_be64(c->key.at);
        if (!knows_life(c, c->life) && !may_be_new(c, c->life)) {
            tell(c, SILT_FINDING_ROW, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX,
                 "%s of life %" PRIu64 " belong to no stream", silt_db_name(db), c->life);
            if (db == SILT_DB_SEGMENTS) c->sum.damaged_segments++;
        }
        if (c->life == UINT64_MAX) return SILT_OK;
        from = silt_key_number(c->life + 1);
    }
}

static void check_name_row(struct checker *c)
{
    struct silt_err why = {0};
    uint64_t number;
    enum silt_status status =
        silt_name_row_decode(silt_buf_view(&c->value), silt_buf_view(&c->key), &number, &why);
    if (status == SILT_OK) status = silt_store_stream_number(c->store, number, &c->again, &why);
    if (status == SILT_ERR_UNKNOWN_STREAM || is_damage(status)) tell_row(c, "a name row", &why);
}

/* A fork has two rows, by its life and by its stream: one that is lost would hide what lies before the fork, or the fork from the lists. */
static void check_fork_row(struct checker *c)
{
    struct silt_kv_txn *txn;
    struct silt_fork_row row = {0};
    struct silt_err why = {0};
    struct silt_view key = silt_buf_view(&c->key), twin;
    enum silt_status status = silt_fork_row_decode(silt_buf_view(&c->value), key, &row, &why);
    struct silt_key by_life = silt_key_fork_life(row.life);
    struct silt_key by_stream = silt_key_fork_stream(row.stream, row.life);
    bool of_stream = key.len == by_stream.len;
    if (is_damage(status) && key.len == by_life.len && knows_life(c, silt_get_be64(key.at + 1)))
        return; /* told where its life was read */
    if (status == SILT_OK &&
        !silt_view_equal(key, silt_key_view(of_stream ? &by_stream : &by_life)))
        status = silt_fail(&why, SILT_ERR_CORRUPT, "its key names another life or stream");
    if (status == SILT_OK && silt_env_read(c->store, &txn, NULL) == SILT_OK) {
        status = silt_kv_get(txn, SILT_DB_FORKS, silt_key_view(of_stream ? &by_life : &by_stream),
                             &twin, &why);
        silt_env_read_end(c->store, txn);
    }
    c->life = row.life;
    if (status == SILT_END) silt_fail(&why, SILT_ERR_CORRUPT, "it is there once, not twice");
    if (status == SILT_END || is_damage(status)) tell_row(c, "a fork row", &why);
}

/* Each row of a small table by itself: the streams' own look-ups do not meet those that lead nowhere. */
static enum silt_status check_rows(struct checker *c, enum silt_db db,
                                   void (*check)(struct checker *c), struct silt_err *err)
{
    struct silt_buf from = {0};
    enum silt_status status = silt_buf_put_u8(&from, 0);
    while (status == SILT_OK) {
        status = next_pair(c, db, silt_buf_view(&from), true, err);
        if (status != SILT_OK) break;
        check(c);
        silt_buf_clear(&from);
        status = silt_buf_put(&from, c->key.at, c->key.len);
    }
    silt_buf_release(&from);
    if (is_damage(status)) {
        tell(c, SILT_FINDING_ROW, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, "%s: %s", silt_db_name(db),
             err ? err->sentence : "damaged");
        return SILT_OK;
    }
    return status == SILT_END ? SILT_OK : status;
}

static void forget_stream(struct checker *c)
{
    silt_buf_clear(&c->stream.bytes);
    memset(&c->stream.row, 0, sizeof c->stream.row);
    c->life = 0;
}

static void tell_page(void *ctx, const struct silt_page_fault *fault)
{
    tell(ctx, SILT_FINDING_CHECKSUM, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX,
         "index of %s: %s (page %" PRIu64 ")", fault->tree, fault->what, fault->page);
}

/* What the file says of itself: without it, a segment could be missing and leave no trace. */
static enum silt_status check_pages(struct checker *c, struct silt_err *err)
{
    struct silt_kv_txn *txn;
    enum silt_status status = silt_env_read(c->store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_kv_audit(txn, tell_page, c, err);
    silt_env_read_end(c->store, txn);
    return status;
}

static enum silt_status check_streams(struct checker *c, struct silt_err *err)
{
    uint64_t after = 0;
    enum silt_status status = check_pages(c, err);
    if (status != SILT_OK) return status;
    for (;;) {
        struct silt_err why = {0};
        status = silt_store_stream_after(c->store, after, &c->stream, &why);
        if (status == SILT_END) break;
        if (is_damage(status) && c->stream.row.number > after) {
            after = c->stream.row.number;
            forget_stream(c);
            tell_row(c, "a stream row", &why);
            continue;
        }
        if (is_damage(status)) { /* no way to the rows behind it */
            forget_stream(c);
            tell_row(c, "stream rows", &why);
            break;
        }
        if (status != SILT_OK) return silt_fail(err, status, "%s", why.sentence);
        after = c->stream.row.number;
        status = check_stream(c, err);
        if (status != SILT_OK) return status;
    }
    forget_stream(c);
    status = check_rows(c, SILT_DB_NAMES, check_name_row, err);
    if (status == SILT_OK) status = check_rows(c, SILT_DB_FORKS, check_fork_row, err);
    c->life = 0;
    for (enum silt_db db = SILT_DB_SEGMENTS; db <= SILT_DB_LATE && status == SILT_OK; db++)
        if (db != SILT_DB_FORKS) status = check_orphans(c, db, err);
    return status;
}

static enum silt_status check_one(struct checker *c, struct silt_err *err)
{
    enum silt_status status = silt_store_stream(c->store, c->options->stream, &c->stream, err);
    if (status == SILT_OK) return check_stream(c, err);
    if (!is_damage(status)) return status;
    struct silt_err why = err ? *err : (struct silt_err){.sentence = "damaged"};
    forget_stream(c);
    tell_row(c, "the stream's row", &why);
    return SILT_OK;
}

enum silt_status silt_check(struct silt_store *store, const struct silt_check_options *options,
                            struct silt_check_sum *ret, struct silt_err *err)
{
    struct checker c = {.store = store, .options = options};
    struct silt_meta_row meta;
    enum silt_status status = silt_range_check(options->range, err);
    if (status == SILT_OK) status = silt_store_meta(store, &meta, err);
    if (status != SILT_OK) return status;
    c.next_life = meta.next_life;
    status = silt_segment_new(&c.segment);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    status = options->stream.len > 0 ? check_one(&c, err) : check_streams(&c, err);
    silt_buf_release(&c.other);
    silt_segment_free(c.segment);
    silt_buf_release(&c.key);
    silt_buf_release(&c.value);
    silt_stream_release(&c.stream);
    silt_stream_release(&c.again);
    silt_free(c.lives);
    if (status == SILT_OK) *ret = c.sum;
    return status;
}
