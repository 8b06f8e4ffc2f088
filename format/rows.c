/* Rows as bytes: a version byte, fields as varints and length-prefixed strings, and XXH64 over all of it, seeded with the
 * checksum of the row's key, so that a row under another key is as damaged as a flipped bit. Knows nothing of LMDB. */
#include "rows.h"

#include <limits.h>

#define ROW_VERSION 1u
#define STREAM_ROW_VERSION 2u /* 1: without the audit; read, no longer written */
#define TRAILER 8u
#define KEY_SEED 0x73696c7420726f77ULL /* "silt row" */
#define GROUP_BYTES_MIN 5u /* name length, id (2), entries read, pending: one byte each */

/* ---- writing ---- */

struct writer {
    struct silt_buf *out;
    size_t start;
    enum silt_status status;
};

static struct writer writer_begin(struct silt_buf *out, uint8_t version)
{
    struct writer w = {out, out->len, SILT_OK};
    w.status = silt_buf_put_u8(out, version);
    return w;
}

static void put_u(struct writer *w, uint64_t value)
{
    if (w->status == SILT_OK) w->status = silt_buf_put_varint(w->out, value);
}

static void put_bool(struct writer *w, bool value)
{
    put_u(w, value ? 1 : 0);
}

static void put_bytes(struct writer *w, const void *at, size_t len)
{
    put_u(w, len);
    if (w->status == SILT_OK) w->status = silt_buf_put(w->out, at, len);
}

static void put_id(struct writer *w, struct silt_wire_id id)
{
    put_u(w, id.ms);
    put_u(w, id.seq);
}

static void put_facts(struct writer *w, const struct silt_facts *facts)
{
    put_bytes(w, facts->replid, strnlen(facts->replid, SILT_REPLID_LEN));
    put_u(w, facts->entries_added);
    put_u(w, facts->length);
    put_id(w, facts->last);
    put_bool(w, facts->has_first);
    put_id(w, facts->first);
    put_u(w, facts->first_digest);
    put_id(w, facts->max_deleted);
}

static uint64_t row_checksum(struct silt_view bytes, struct silt_view key)
{
    return silt_checksum(bytes, silt_checksum(key, KEY_SEED));
}

/* Adds the trailer; after a failure *out is as it was. */
static enum silt_status writer_end(struct writer *w, struct silt_view key)
{
    if (w->status == SILT_OK) {
        struct silt_view row = {w->out->at + w->start, w->out->len - w->start};
        w->status = silt_buf_put_u64(w->out, row_checksum(row, key));
    }
    if (w->status != SILT_OK) w->out->len = w->start;
    return w->status;
}

/* ---- reading ---- */

static bool get_u(struct silt_reader *r, uint64_t *ret)
{
    return silt_read_varint(r, ret);
}

static bool get_u32(struct silt_reader *r, uint32_t *ret)
{
    uint64_t value;
    if (!silt_read_varint(r, &value) || value > UINT32_MAX) return false;
    *ret = (uint32_t)value;
    return true;
}

static bool get_bool(struct silt_reader *r, bool *ret)
{
    uint64_t value;
    if (!silt_read_varint(r, &value) || value > 1) return false;
    *ret = value == 1;
    return true;
}

/* A value of an enumeration whose last member is `max`. */
static bool get_enum(struct silt_reader *r, unsigned max, unsigned *ret)
{
    uint64_t value;
    if (!silt_read_varint(r, &value) || value > max) return false;
    *ret = (unsigned)value;
    return true;
}

static bool get_bytes(struct silt_reader *r, struct silt_view *ret)
{
    uint64_t len;
    if (!silt_read_varint(r, &len) || len > silt_reader_left(r)) return false;
    return silt_read_view(r, (size_t)len, ret);
}

/* Text without NUL of at most max bytes into ret[max + 1]. */
static bool get_text(struct silt_reader *r, char *ret, size_t max)
{
    struct silt_view text;
    if (!get_bytes(r, &text) || text.len > max) return false;
    if (text.len > 0 && memchr(text.at, 0, text.len)) return false;
    memset(ret, 0, max + 1);
    if (text.len > 0) memcpy(ret, text.at, text.len);
    return true;
}

static bool get_id(struct silt_reader *r, struct silt_wire_id *ret)
{
    return get_u(r, &ret->ms) && get_u(r, &ret->seq);
}

static bool get_facts(struct silt_reader *r, struct silt_facts *ret)
{
    return get_text(r, ret->replid, SILT_REPLID_LEN) && get_u(r, &ret->entries_added) &&
           get_u(r, &ret->length) && get_id(r, &ret->last) && get_bool(r, &ret->has_first) &&
           get_id(r, &ret->first) && get_u(r, &ret->first_digest) && get_id(r, &ret->max_deleted);
}

/* The checksum comes first: a flipped version byte is damage, not a newer silt. */
static enum silt_status reader_begin_version(struct silt_view bytes, struct silt_view key,
                                             const char *what, unsigned newest,
                                             unsigned *ret_version, struct silt_reader *ret,
                                             struct silt_err *err)
{
    if (bytes.len <= TRAILER)
        return silt_fail(err, SILT_ERR_CORRUPT, "a %s row of %zu bytes is too short", what,
                         bytes.len);
    struct silt_view body = {bytes.at, bytes.len - TRAILER};
    if (silt_get_le64(bytes.at + body.len) != row_checksum(body, key))
        return silt_fail(err, SILT_ERR_CORRUPT, "a %s row's checksum does not match", what);
    if (body.at[0] < ROW_VERSION || body.at[0] > newest)
        return silt_fail(err, SILT_ERR_NEWER_FORMAT, "a %s row has version %u; this silt reads %u",
                         what, body.at[0], newest);
    *ret_version = body.at[0];
    *ret = silt_reader((struct silt_view){body.at + 1, body.len - 1});
    return SILT_OK;
}

static enum silt_status reader_begin(struct silt_view bytes, struct silt_view key, const char *what,
                                     struct silt_reader *ret, struct silt_err *err)
{
    unsigned version;
    return reader_begin_version(bytes, key, what, ROW_VERSION, &version, ret, err);
}

static enum silt_status reader_end(const struct silt_reader *r, bool well, const char *what,
                                   struct silt_err *err)
{
    if (well && silt_reader_left(r) == 0) return SILT_OK;
    return silt_fail(err, SILT_ERR_CORRUPT, "a %s row is not well formed", what);
}

/* ---- streams ---- */

static void put_groups(struct writer *w, const struct silt_group_fact *groups, size_t count)
{
    put_u(w, count);
    for (size_t i = 0; i < count; i++) {
        put_bytes(w, groups[i].name.at, groups[i].name.len);
        put_id(w, groups[i].last_delivered);
        put_u(w, groups[i].entries_read);
        put_u(w, groups[i].pending);
    }
}

static void put_audit(struct writer *w, const struct silt_audit *audit)
{
    put_u(w, (uint64_t)audit->cause);
    put_bool(w, audit->went_back);
    put_u(w, audit->added_seen);
    put_id(w, audit->last_seen);
    put_bool(w, audit->opened);
    put_facts(w, &audit->facts);
    put_u(w, audit->opening_added);
    put_u(w, audit->opening_length);
    put_id(w, audit->marker_at);
    put_id(w, audit->through);
    put_id(w, audit->position);
    put_u(w, audit->equal);
    put_u(w, audit->absent);
    put_u(w, audit->conflict);
    put_u(w, audit->prefix);
    put_bool(w, audit->has_difference);
    put_id(w, audit->difference);
}

enum silt_status silt_stream_row_encode(const struct silt_stream_row *row, struct silt_view key,
                                        struct silt_buf *out)
{
    struct writer w = writer_begin(out, STREAM_ROW_VERSION);
    put_u(&w, row->number);
    put_bytes(&w, row->name.at, row->name.len);
    put_bytes(&w, row->ns.letters, strnlen(row->ns.letters, 3));
    put_u(&w, row->life);
    put_u(&w, row->incarnation);
    put_bool(&w, row->folded_any);
    put_id(&w, row->watermark);
    put_id(&w, row->custody);
    put_u(&w, row->custody_added);
    put_u(&w, row->marker_number);
    put_bool(&w, row->marker_seen);
    put_id(&w, row->marker_found);
    put_bool(&w, row->has_facts);
    put_facts(&w, &row->facts);
    put_groups(&w, row->groups, row->group_count);
    put_u(&w, (uint64_t)row->verdict);
    put_bytes(&w, row->verdict_reason.at, row->verdict_reason.len);
    put_facts(&w, &row->verdict_facts);
    put_u(&w, row->verdict_at_ms);
    put_u(&w, row->folded_entries);
    put_u(&w, row->folded_bytes);
    put_u(&w, row->foreign_entries);
    put_u(&w, row->trimmed_entries);
    put_u(&w, row->gap_entries);
    put_u(&w, row->late_entries);
    put_id(&w, row->trim_threshold);
    put_u(&w, row->folded_at_ms);
    put_u(&w, row->trimmed_at_ms);
    put_audit(&w, &row->audit);
    put_id(&w, row->top_watermark);
    put_u(&w, row->lost_added);
    put_bool(&w, row->added_estimated);
    put_u(&w, row->epoch);
    return writer_end(&w, key);
}

static bool get_namespace(struct silt_reader *r, struct silt_namespace *ret)
{
    struct silt_view letters;
    if (!get_bytes(r, &letters)) return false;
    memset(ret, 0, sizeof *ret);
    if (letters.len == 0) return true;
    if (letters.len != 3) return false;
    for (size_t i = 0; i < 3; i++)
        if (letters.at[i] < 'A' || letters.at[i] > 'Z') return false;
    memcpy(ret->letters, letters.at, 3);
    return true;
}

/* The count is checked against what is left before room is made for it. */
static enum silt_status get_groups(struct silt_reader *r, struct silt_buf *scratch,
                                   struct silt_stream_row *ret, bool *ret_well)
{
    uint64_t count;
    *ret_well = false;
    silt_buf_clear(scratch);
    if (!get_u(r, &count) || count > silt_reader_left(r) / GROUP_BYTES_MIN) return SILT_OK;
    size_t room = (size_t)count * sizeof(struct silt_group_fact);
    enum silt_status status = silt_buf_reserve(scratch, room);
    if (status != SILT_OK) return status;
    for (uint64_t i = 0; i < count; i++) {
        struct silt_group_fact group = {0};
        if (!get_bytes(r, &group.name) || !get_id(r, &group.last_delivered) ||
            !get_u(r, &group.entries_read) || !get_u(r, &group.pending))
            return SILT_OK;
        status = silt_buf_put(scratch, &group, sizeof group);
        if (status != SILT_OK) return status;
    }
    ret->groups = count > 0 ? (const struct silt_group_fact *)(const void *)scratch->at : NULL;
    ret->group_count = (size_t)count;
    *ret_well = true;
    return SILT_OK;
}

static bool get_stream_head(struct silt_reader *r, struct silt_stream_row *ret)
{
    return get_u(r, &ret->number) && get_bytes(r, &ret->name) && get_namespace(r, &ret->ns) &&
           get_u(r, &ret->life) && get_u(r, &ret->incarnation) && get_bool(r, &ret->folded_any) &&
           get_id(r, &ret->watermark) && get_id(r, &ret->custody) &&
           get_u(r, &ret->custody_added) && get_u(r, &ret->marker_number) &&
           get_bool(r, &ret->marker_seen) && get_id(r, &ret->marker_found) &&
           get_bool(r, &ret->has_facts) && get_facts(r, &ret->facts);
}

static bool get_stream_tail(struct silt_reader *r, struct silt_stream_row *ret)
{
    unsigned verdict = 0;
    bool well = get_enum(r, SILT_VERDICT_LAST, &verdict) && get_bytes(r, &ret->verdict_reason) &&
                get_facts(r, &ret->verdict_facts) && get_u(r, &ret->verdict_at_ms) &&
                get_u(r, &ret->folded_entries) && get_u(r, &ret->folded_bytes) &&
                get_u(r, &ret->foreign_entries) && get_u(r, &ret->trimmed_entries) &&
                get_u(r, &ret->gap_entries) && get_u(r, &ret->late_entries) &&
                get_id(r, &ret->trim_threshold) && get_u(r, &ret->folded_at_ms) &&
                get_u(r, &ret->trimmed_at_ms);
    ret->verdict = (enum silt_verdict)verdict;
    return well;
}

static bool get_audit(struct silt_reader *r, struct silt_audit *ret)
{
    unsigned cause = 0;
    bool well = get_enum(r, SILT_AUDIT_CAUSE_LAST, &cause) && get_bool(r, &ret->went_back) &&
                get_u(r, &ret->added_seen) && get_id(r, &ret->last_seen) &&
                get_bool(r, &ret->opened) && get_facts(r, &ret->facts) &&
                get_u(r, &ret->opening_added) && get_u(r, &ret->opening_length) &&
                get_id(r, &ret->marker_at) && get_id(r, &ret->through) &&
                get_id(r, &ret->position) && get_u(r, &ret->equal) && get_u(r, &ret->absent) &&
                get_u(r, &ret->conflict) && get_u(r, &ret->prefix) &&
                get_bool(r, &ret->has_difference) && get_id(r, &ret->difference);
    ret->cause = (enum silt_audit_cause)cause;
    return well;
}

static bool get_stream_v2(struct silt_reader *r, struct silt_stream_row *ret)
{
    return get_audit(r, &ret->audit) && get_id(r, &ret->top_watermark) &&
           get_u(r, &ret->lost_added) && get_bool(r, &ret->added_estimated) &&
           get_u(r, &ret->epoch);
}

enum silt_status silt_stream_row_decode(struct silt_view bytes, struct silt_view key,
                                        struct silt_buf *groups_scratch,
                                        struct silt_stream_row *ret, struct silt_err *err)
{
    struct silt_reader r;
    struct silt_stream_row row = {0};
    bool well = false;
    unsigned version = 0;
    enum silt_status status =
        reader_begin_version(bytes, key, "stream", STREAM_ROW_VERSION, &version, &r, err);
    if (status != SILT_OK) return status;
    if (get_stream_head(&r, &row)) {
        status = get_groups(&r, groups_scratch, &row, &well);
        if (status != SILT_OK) return silt_fail(err, status, NULL);
    }
    well = well && get_stream_tail(&r, &row) && (version < 2 || get_stream_v2(&r, &row));
    status = reader_end(&r, well, "stream", err);
    if (status == SILT_OK) *ret = row;
    return status;
}

const char *silt_verdict_name(enum silt_verdict verdict)
{
    switch (verdict) {
    case SILT_VERDICT_CLEAR: return "clear";
    case SILT_VERDICT_AUDIT_PENDING: return "audit pending";
    case SILT_VERDICT_CLAIMED: return "claimed by another archive";
    case SILT_VERDICT_OTHER_COPY: return "another copy of this archive";
    case SILT_VERDICT_WAITING: return "waiting";
    case SILT_VERDICT_RELEASED: return "released";
    }
    return "unknown";
}

const char *silt_audit_cause_name(enum silt_audit_cause cause)
{
    static const char *const names[] = {[SILT_AUDIT_UNKNOWN] = "unknown",
                                        [SILT_AUDIT_OURS_REPL] = "failover or restart",
                                        [SILT_AUDIT_OURS_BACK] = "a fact went back",
                                        [SILT_AUDIT_OURS_ELSEWHERE] = "marker elsewhere",
                                        [SILT_AUDIT_MARKER_ABSENT] = "marker absent",
                                        [SILT_AUDIT_BYTES] = "other bytes",
                                        [SILT_AUDIT_FOLD_COUNT] = "count",
                                        [SILT_AUDIT_FOLD_CONFLICT] = "conflict below the watermark",
                                        [SILT_AUDIT_READ_BACK] = "read back",
                                        [SILT_AUDIT_TRIM_ALARM] = "trim alarm",
                                        [SILT_AUDIT_ADOPTED] = "adopted"};
    return (size_t)cause < sizeof names / sizeof names[0] ? names[cause] : names[0];
}

/* ---- gaps, forks, late entries ---- */

enum silt_status silt_gap_row_encode(const struct silt_gap_row *row, struct silt_view key,
                                     struct silt_buf *out)
{
    struct writer w = writer_begin(out, ROW_VERSION);
    put_u(&w, row->life);
    put_id(&w, row->range.after);
    put_id(&w, row->range.through);
    put_u(&w, (uint64_t)row->precision);
    put_bool(&w, row->has_count);
    put_u(&w, row->count);
    put_u(&w, row->count_max);
    put_u(&w, (uint64_t)row->cause);
    put_u(&w, row->noticed_ms);
    return writer_end(&w, key);
}

enum silt_status silt_gap_row_decode(struct silt_view bytes, struct silt_view key,
                                     struct silt_gap_row *ret, struct silt_err *err)
{
    struct silt_reader r;
    struct silt_gap_row row = {0};
    unsigned precision = 0, cause = 0;
    enum silt_status status = reader_begin(bytes, key, "gap", &r, err);
    if (status != SILT_OK) return status;
    bool well = get_u(&r, &row.life) && get_id(&r, &row.range.after) &&
                get_id(&r, &row.range.through) && get_enum(&r, SILT_GAP_AT_LEAST, &precision) &&
                get_bool(&r, &row.has_count) && get_u(&r, &row.count) &&
                get_u(&r, &row.count_max) && get_enum(&r, SILT_GAP_ROLLED_BACK, &cause) &&
                get_u(&r, &row.noticed_ms);
    row.precision = (enum silt_gap_precision)precision;
    row.cause = (enum silt_gap_cause)cause;
    status = reader_end(&r, well, "gap", err);
    if (status == SILT_OK) *ret = row;
    return status;
}

const char *silt_gap_cause_name(enum silt_gap_cause cause)
{
    switch (cause) {
    case SILT_GAP_UNKNOWN: return "unknown";
    case SILT_GAP_TRIMMED: return "trimmed";
    case SILT_GAP_DELETED: return "deleted";
    case SILT_GAP_EXPIRED: return "expired or evicted";
    case SILT_GAP_ROLLED_BACK: return "rolled back";
    }
    return "unknown";
}

enum silt_status silt_fork_row_encode(const struct silt_fork_row *row, struct silt_view key,
                                      struct silt_buf *out)
{
    struct writer w = writer_begin(out, ROW_VERSION);
    put_u(&w, row->life);
    put_u(&w, row->stream);
    put_u(&w, row->parent);
    put_id(&w, row->fork);
    put_u(&w, row->noticed_ms);
    return writer_end(&w, key);
}

enum silt_status silt_fork_row_decode(struct silt_view bytes, struct silt_view key,
                                      struct silt_fork_row *ret, struct silt_err *err)
{
    struct silt_reader r;
    struct silt_fork_row row = {0};
    enum silt_status status = reader_begin(bytes, key, "fork", &r, err);
    if (status != SILT_OK) return status;
    bool well = get_u(&r, &row.life) && get_u(&r, &row.stream) && get_u(&r, &row.parent) &&
                get_id(&r, &row.fork) && get_u(&r, &row.noticed_ms);
    status = reader_end(&r, well, "fork", err);
    if (status == SILT_OK) *ret = row;
    return status;
}

enum silt_status silt_late_row_encode(const struct silt_late_row *row, struct silt_view key,
                                      struct silt_buf *out)
{
    struct writer w = writer_begin(out, ROW_VERSION);
    put_u(&w, row->life);
    put_u(&w, row->number);
    put_id(&w, row->id);
    return writer_end(&w, key);
}

enum silt_status silt_late_row_decode(struct silt_view bytes, struct silt_view key,
                                      struct silt_late_row *ret, struct silt_err *err)
{
    struct silt_reader r;
    struct silt_late_row row = {0};
    enum silt_status status = reader_begin(bytes, key, "late", &r, err);
    if (status != SILT_OK) return status;
    bool well = get_u(&r, &row.life) && get_u(&r, &row.number) && get_id(&r, &row.id);
    status = reader_end(&r, well, "late", err);
    if (status == SILT_OK) *ret = row;
    return status;
}

/* ---- meta ---- */

/* Version and must-refuse bits come first and keep their place in every version to come. */
enum silt_status silt_meta_row_encode(const struct silt_meta_row *row, struct silt_view key,
                                      struct silt_buf *out)
{
    struct writer w = writer_begin(out, ROW_VERSION);
    put_u(&w, row->version);
    put_u(&w, row->must_refuse);
    put_u(&w, row->may_ignore);
    put_bytes(&w, row->uuid, strnlen(row->uuid, SILT_UUID_TEXT - 1));
    put_u(&w, row->epoch);
    put_bool(&w, row->needs_adopt);
    put_u(&w, row->pid_namespace);
    put_u(&w, row->next_stream);
    put_u(&w, row->next_life);
    return writer_end(&w, key);
}

enum silt_status silt_meta_row_decode(struct silt_view bytes, struct silt_view key,
                                      struct silt_meta_row *ret, struct silt_err *err)
{
    struct silt_reader r;
    struct silt_meta_row row = {0};
    enum silt_status status = reader_begin(bytes, key, "meta", &r, err);
    if (status != SILT_OK) return status;
    bool well = get_u32(&r, &row.version) && get_u32(&r, &row.must_refuse);
    if (well && (row.version > SILT_FORMAT_VERSION || row.must_refuse != 0))
        return silt_fail(err, SILT_ERR_NEWER_FORMAT,
                         "the archive has format %u with features %#x; this silt reads format %u",
                         row.version, row.must_refuse, SILT_FORMAT_VERSION);
    well = well && get_u32(&r, &row.may_ignore) && get_text(&r, row.uuid, SILT_UUID_TEXT - 1) &&
           get_u(&r, &row.epoch) && get_bool(&r, &row.needs_adopt) &&
           get_u(&r, &row.pid_namespace) && get_u(&r, &row.next_stream) &&
           get_u(&r, &row.next_life);
    status = reader_end(&r, well, "meta", err);
    if (status == SILT_OK) *ret = row;
    return status;
}
