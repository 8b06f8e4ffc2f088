/* Rows: what goes in comes out; whatever is cut, flipped, moved to another key or written by a newer silt is refused. */
#include <stdlib.h>

#include "format/rows.h"
#include "harness/harness.h"

static const uint8_t key_bytes[] = {0, 0, 0, 0, 0, 0, 0, 7};
#define KEY silt_view(key_bytes, sizeof key_bytes)

/* Numbers of every length, the ends among them. */
static uint64_t some_u64(struct test_rng *rng)
{
    uint64_t value = test_rng_next(rng) >> test_rng_below(rng, 64);
    return test_rng_chance(rng, 10) ? UINT64_MAX : value;
}

static struct silt_wire_id some_id(struct test_rng *rng)
{
    struct silt_wire_id id = {some_u64(rng), some_u64(rng)};
    return id;
}

static void fill_facts(struct test_rng *rng, struct silt_facts *facts)
{
    size_t len = (size_t)test_rng_below(rng, SILT_REPLID_LEN + 1);
    memset(facts, 0, sizeof *facts);
    for (size_t i = 0; i < len; i++)
        facts->replid[i] = "0123456789abcdef"[test_rng_below(rng, 16)];
    facts->entries_added = some_u64(rng);
    facts->length = some_u64(rng);
    facts->last = some_id(rng);
    facts->has_first = test_rng_chance(rng, 50);
    facts->first = some_id(rng);
    facts->first_digest = some_u64(rng);
    facts->max_deleted = some_id(rng);
}

struct bench {
    struct silt_stream_row row;
    struct silt_group_fact groups[5];
    uint8_t bytes[600];
};

static void fill_stream(struct test_rng *rng, struct bench *bench)
{
    struct silt_stream_row *row = &bench->row;
    memset(bench, 0, sizeof *bench);
    test_rng_bytes(rng, bench->bytes, sizeof bench->bytes);
    row->number = some_u64(rng);
    row->name = silt_view(bench->bytes, (size_t)test_rng_below(rng, 300));
    if (test_rng_chance(rng, 50)) memcpy(row->ns.letters, "EVT", 3);
    row->life = some_u64(rng);
    row->incarnation = some_u64(rng);
    row->folded_any = test_rng_chance(rng, 50);
    row->watermark = some_id(rng);
    row->custody = some_id(rng);
    row->custody_added = some_u64(rng);
    row->marker_number = some_u64(rng);
    row->marker_seen = test_rng_chance(rng, 50);
    row->has_facts = test_rng_chance(rng, 50);
    fill_facts(rng, &row->facts);
    row->group_count = (size_t)test_rng_below(rng, 6);
    row->groups = row->group_count > 0 ? bench->groups : NULL;
    for (size_t i = 0; i < row->group_count; i++)
        bench->groups[i] = (struct silt_group_fact){
            .name = silt_view(bench->bytes + 300 + i, (size_t)test_rng_below(rng, 50)),
            .last_delivered = some_id(rng),
            .entries_read = some_u64(rng),
            .pending = some_u64(rng)};
    row->verdict = (enum silt_verdict)test_rng_below(rng, SILT_VERDICT_LAST + 1);
    row->verdict_reason = silt_view(bench->bytes + 400, (size_t)test_rng_below(rng, 200));
    fill_facts(rng, &row->verdict_facts);
    row->verdict_at_ms = some_u64(rng);
    row->folded_entries = some_u64(rng);
    row->folded_bytes = some_u64(rng);
    row->foreign_entries = some_u64(rng);
    row->trimmed_entries = some_u64(rng);
    row->gap_entries = some_u64(rng);
    row->late_entries = some_u64(rng);
    row->trim_threshold = some_id(rng);
    row->folded_at_ms = some_u64(rng);
    row->trimmed_at_ms = some_u64(rng);
    row->audit = (struct silt_audit){
        .cause = (enum silt_audit_cause)test_rng_below(rng, SILT_AUDIT_CAUSE_LAST + 1),
        .went_back = test_rng_chance(rng, 50),
        .added_seen = some_u64(rng),
        .last_seen = some_id(rng),
        .opened = test_rng_chance(rng, 50),
        .opening_added = some_u64(rng),
        .opening_length = some_u64(rng),
        .marker_at = some_id(rng),
        .through = some_id(rng),
        .position = some_id(rng),
        .equal = some_u64(rng),
        .absent = some_u64(rng),
        .conflict = some_u64(rng),
        .prefix = some_u64(rng),
        .has_difference = test_rng_chance(rng, 50),
        .difference = some_id(rng)};
    fill_facts(rng, &row->audit.facts);
    row->top_watermark = some_id(rng);
    row->lost_added = some_u64(rng);
    row->added_estimated = test_rng_chance(rng, 50);
    row->epoch = some_u64(rng);
}

static bool same_id(struct silt_wire_id a, struct silt_wire_id b)
{
    return silt_wire_id_equal(a, b);
}

static void check_facts(const struct silt_facts *a, const struct silt_facts *b)
{
    ck_assert_str_eq(a->replid, b->replid);
    ck_assert_uint_eq(a->entries_added, b->entries_added);
    ck_assert_uint_eq(a->length, b->length);
    ck_assert(same_id(a->last, b->last));
    ck_assert_int_eq(a->has_first, b->has_first);
    ck_assert(same_id(a->first, b->first));
    ck_assert_uint_eq(a->first_digest, b->first_digest);
    ck_assert(same_id(a->max_deleted, b->max_deleted));
}

static void check_audit(const struct silt_audit *a, const struct silt_audit *b)
{
    ck_assert_int_eq(a->cause, b->cause);
    ck_assert_int_eq(a->went_back, b->went_back);
    ck_assert_uint_eq(a->added_seen, b->added_seen);
    ck_assert(same_id(a->last_seen, b->last_seen));
    ck_assert_int_eq(a->opened, b->opened);
    check_facts(&a->facts, &b->facts);
    ck_assert_uint_eq(a->opening_added, b->opening_added);
    ck_assert_uint_eq(a->opening_length, b->opening_length);
    ck_assert(same_id(a->marker_at, b->marker_at));
    ck_assert(same_id(a->through, b->through));
    ck_assert(same_id(a->position, b->position));
    ck_assert_uint_eq(a->equal, b->equal);
    ck_assert_uint_eq(a->absent, b->absent);
    ck_assert_uint_eq(a->conflict, b->conflict);
    ck_assert_uint_eq(a->prefix, b->prefix);
    ck_assert_int_eq(a->has_difference, b->has_difference);
    ck_assert(same_id(a->difference, b->difference));
}

static void check_stream(const struct silt_stream_row *a, const struct silt_stream_row *b)
{
    ck_assert_uint_eq(a->number, b->number);
    ck_assert(silt_view_equal(a->name, b->name));
    ck_assert_str_eq(a->ns.letters, b->ns.letters);
    ck_assert_uint_eq(a->life, b->life);
    ck_assert_uint_eq(a->incarnation, b->incarnation);
    ck_assert_int_eq(a->folded_any, b->folded_any);
    ck_assert(same_id(a->watermark, b->watermark));
    ck_assert(same_id(a->custody, b->custody));
    ck_assert_uint_eq(a->custody_added, b->custody_added);
    ck_assert_uint_eq(a->marker_number, b->marker_number);
    ck_assert_int_eq(a->marker_seen, b->marker_seen);
    ck_assert_int_eq(a->has_facts, b->has_facts);
    check_facts(&a->facts, &b->facts);
    ck_assert_uint_eq(a->group_count, b->group_count);
    for (size_t i = 0; i < a->group_count; i++) {
        ck_assert(silt_view_equal(a->groups[i].name, b->groups[i].name));
        ck_assert(same_id(a->groups[i].last_delivered, b->groups[i].last_delivered));
        ck_assert_uint_eq(a->groups[i].entries_read, b->groups[i].entries_read);
        ck_assert_uint_eq(a->groups[i].pending, b->groups[i].pending);
    }
    ck_assert_int_eq(a->verdict, b->verdict);
    ck_assert(silt_view_equal(a->verdict_reason, b->verdict_reason));
    check_facts(&a->verdict_facts, &b->verdict_facts);
    ck_assert_uint_eq(a->verdict_at_ms, b->verdict_at_ms);
    ck_assert_uint_eq(a->folded_entries, b->folded_entries);
    ck_assert_uint_eq(a->folded_bytes, b->folded_bytes);
    ck_assert_uint_eq(a->foreign_entries, b->foreign_entries);
    ck_assert_uint_eq(a->trimmed_entries, b->trimmed_entries);
    ck_assert_uint_eq(a->gap_entries, b->gap_entries);
    ck_assert_uint_eq(a->late_entries, b->late_entries);
    ck_assert(same_id(a->trim_threshold, b->trim_threshold));
    ck_assert_uint_eq(a->folded_at_ms, b->folded_at_ms);
    ck_assert_uint_eq(a->trimmed_at_ms, b->trimmed_at_ms);
    check_audit(&a->audit, &b->audit);
    ck_assert(same_id(a->top_watermark, b->top_watermark));
    ck_assert_uint_eq(a->lost_added, b->lost_added);
    ck_assert_int_eq(a->added_estimated, b->added_estimated);
    ck_assert_uint_eq(a->epoch, b->epoch);
}

START_TEST(rows__streams_come_back_as_written)
{
    struct test_rng rng = test_rng(1);
    struct silt_buf out = {0}, scratch = {0};
    for (int i = 0; i < 2000; i++) {
        struct bench bench;
        struct silt_stream_row back;
        fill_stream(&rng, &bench);
        silt_buf_clear(&out);
        ck_assert_int_eq(silt_stream_row_encode(&bench.row, KEY, &out), SILT_OK);
        ck_assert_int_eq(silt_stream_row_decode(silt_buf_view(&out), KEY, &scratch, &back, NULL),
                         SILT_OK);
        check_stream(&bench.row, &back);
    }
    silt_buf_release(&out);
    silt_buf_release(&scratch);
}
END_TEST

START_TEST(rows__small_ones_come_back_as_written)
{
    struct test_rng rng = test_rng(2);
    struct silt_buf out = {0};
    for (int i = 0; i < 2000; i++) {
        struct silt_gap_row gap_back,
            gap = {.life = some_u64(&rng),
                   .range = {some_id(&rng), some_id(&rng)},
                   .precision = (enum silt_gap_precision)test_rng_below(&rng, 3),
                   .has_count = test_rng_chance(&rng, 50),
                   .count = some_u64(&rng),
                   .count_max = some_u64(&rng),
                   .cause = (enum silt_gap_cause)test_rng_below(&rng, 5),
                   .noticed_ms = some_u64(&rng)};
        silt_buf_clear(&out);
        ck_assert_int_eq(silt_gap_row_encode(&gap, KEY, &out), SILT_OK);
        ck_assert_int_eq(silt_gap_row_decode(silt_buf_view(&out), KEY, &gap_back, NULL), SILT_OK);
        ck_assert_uint_eq(gap.life, gap_back.life);
        ck_assert(same_id(gap.range.after, gap_back.range.after));
        ck_assert(same_id(gap.range.through, gap_back.range.through));
        ck_assert_int_eq(gap.precision, gap_back.precision);
        ck_assert_int_eq(gap.has_count, gap_back.has_count);
        ck_assert_uint_eq(gap.count, gap_back.count);
        ck_assert_uint_eq(gap.count_max, gap_back.count_max);
        ck_assert_int_eq(gap.cause, gap_back.cause);
        ck_assert_uint_eq(gap.noticed_ms, gap_back.noticed_ms);

        struct silt_fork_row fork_back, fork_row = {some_u64(&rng), some_u64(&rng), some_u64(&rng),
                                                    some_id(&rng), some_u64(&rng)};
        silt_buf_clear(&out);
        ck_assert_int_eq(silt_fork_row_encode(&fork_row, KEY, &out), SILT_OK);
        ck_assert_int_eq(silt_fork_row_decode(silt_buf_view(&out), KEY, &fork_back, NULL), SILT_OK);
        ck_assert_mem_eq(&fork_row, &fork_back, sizeof fork_row);

        struct silt_late_row late_back, late = {some_u64(&rng), some_u64(&rng), some_id(&rng)};
        silt_buf_clear(&out);
        ck_assert_int_eq(silt_late_row_encode(&late, KEY, &out), SILT_OK);
        ck_assert_int_eq(silt_late_row_decode(silt_buf_view(&out), KEY, &late_back, NULL), SILT_OK);
        ck_assert_mem_eq(&late, &late_back, sizeof late);
    }
    silt_buf_release(&out);
}
END_TEST

static struct silt_meta_row some_meta(void)
{
    struct silt_meta_row meta = {.version = SILT_FORMAT_VERSION,
                                 .epoch = 3,
                                 .needs_adopt = true,
                                 .pid_namespace = 4026531836,
                                 .next_stream = 7,
                                 .next_life = 9};
    memcpy(meta.uuid, "01234567-89ab-4cde-8f01-23456789abcd", SILT_UUID_TEXT);
    return meta;
}

START_TEST(rows__meta_comes_back_as_written)
{
    struct silt_buf out = {0};
    struct silt_meta_row meta = some_meta(), back;
    ck_assert_int_eq(silt_meta_row_encode(&meta, KEY, &out), SILT_OK);
    ck_assert_int_eq(silt_meta_row_decode(silt_buf_view(&out), KEY, &back, NULL), SILT_OK);
    ck_assert_str_eq(back.uuid, meta.uuid);
    ck_assert_uint_eq(back.epoch, 3);
    ck_assert(back.needs_adopt);
    ck_assert_uint_eq(back.pid_namespace, 4026531836);
    ck_assert_uint_eq(back.next_stream, 7);
    ck_assert_uint_eq(back.next_life, 9);
    silt_buf_release(&out);
}
END_TEST

START_TEST(rows__meta_of_a_newer_silt_is_refused_by_name)
{
    struct silt_err err;
    struct silt_meta_row meta = some_meta(), back = {.epoch = 77};
    struct silt_buf out = {0};
    meta.version = SILT_FORMAT_VERSION + 1;
    ck_assert_int_eq(silt_meta_row_encode(&meta, KEY, &out), SILT_OK);
    ck_assert_int_eq(silt_meta_row_decode(silt_buf_view(&out), KEY, &back, &err),
                     SILT_ERR_NEWER_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.sentence, "format 2"));
    ck_assert_uint_eq(back.epoch, 77); /* untouched */
    meta = some_meta();
    meta.must_refuse = 4;
    silt_buf_clear(&out);
    ck_assert_int_eq(silt_meta_row_encode(&meta, KEY, &out), SILT_OK);
    ck_assert_int_eq(silt_meta_row_decode(silt_buf_view(&out), KEY, &back, &err),
                     SILT_ERR_NEWER_FORMAT);
    meta = some_meta();
    meta.may_ignore = 4;
    silt_buf_clear(&out);
    ck_assert_int_eq(silt_meta_row_encode(&meta, KEY, &out), SILT_OK);
    ck_assert_int_eq(silt_meta_row_decode(silt_buf_view(&out), KEY, &back, &err), SILT_OK);
    silt_buf_release(&out);
}
END_TEST

/* All kinds of rows behind one door, so that a sweep leaves none out. */
enum { ROW_STREAM, ROW_GAP, ROW_FORK, ROW_LATE, ROW_META, ROW_KINDS };

static void encode_kind(int kind, struct silt_buf *out)
{
    struct test_rng rng = test_rng_fixed(42);
    struct bench bench;
    struct silt_meta_row meta = some_meta();
    enum silt_status status = SILT_ERR_USAGE;
    fill_stream(&rng, &bench);
    if (bench.row.group_count == 0) test_die("the fixed row has no groups");
    if (kind == ROW_STREAM) status = silt_stream_row_encode(&bench.row, KEY, out);
    if (kind == ROW_GAP)
        status = silt_gap_row_encode(
            &(struct silt_gap_row){.life = 300, .range = {{1, 2}, {3, 4}}, .count = 5}, KEY, out);
    if (kind == ROW_FORK)
        status = silt_fork_row_encode(&(struct silt_fork_row){2, 300, 1, {5, 6}, 70000}, KEY, out);
    if (kind == ROW_LATE)
        status = silt_late_row_encode(&(struct silt_late_row){1, 300, {5, 6}}, KEY, out);
    if (kind == ROW_META) status = silt_meta_row_encode(&meta, KEY, out);
    if (status != SILT_OK) test_die("a row of kind %d cannot be encoded", kind);
}

static enum silt_status decode_kind(int kind, struct silt_view bytes, struct silt_view key)
{
    struct silt_buf scratch = {0};
    struct silt_stream_row stream;
    struct silt_gap_row gap;
    struct silt_fork_row fork_row;
    struct silt_late_row late;
    struct silt_meta_row meta;
    enum silt_status status = SILT_ERR_USAGE;
    if (kind == ROW_STREAM) status = silt_stream_row_decode(bytes, key, &scratch, &stream, NULL);
    if (kind == ROW_GAP) status = silt_gap_row_decode(bytes, key, &gap, NULL);
    if (kind == ROW_FORK) status = silt_fork_row_decode(bytes, key, &fork_row, NULL);
    if (kind == ROW_LATE) status = silt_late_row_decode(bytes, key, &late, NULL);
    if (kind == ROW_META) status = silt_meta_row_decode(bytes, key, &meta, NULL);
    silt_buf_release(&scratch);
    return status;
}

START_TEST(rows__every_truncation_is_refused)
{
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        struct silt_buf out = {0};
        encode_kind(kind, &out);
        ck_assert_int_eq(decode_kind(kind, silt_buf_view(&out), KEY), SILT_OK);
        for (size_t len = 0; len < out.len; len++) {
            uint8_t *cut = malloc(len + 1); /* exact, so that the sanitizer sees a byte too far */
            memcpy(cut, out.at, len);
            ck_assert_int_eq(decode_kind(kind, silt_view(cut, len), KEY), SILT_ERR_CORRUPT);
            free(cut);
        }
        silt_buf_release(&out);
    }
}
END_TEST

START_TEST(rows__every_single_bit_flip_is_refused)
{
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        struct silt_buf out = {0};
        encode_kind(kind, &out);
        for (size_t bit = 0; bit < out.len * 8; bit++) {
            out.at[bit / 8] ^= (uint8_t)(1u << (bit % 8));
            ck_assert_int_eq(decode_kind(kind, silt_buf_view(&out), KEY), SILT_ERR_CORRUPT);
            out.at[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        }
        silt_buf_release(&out);
    }
}
END_TEST

START_TEST(rows__another_key_is_refused)
{
    static const uint8_t other[] = {0, 0, 0, 0, 0, 0, 0, 8};
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        struct silt_buf out = {0};
        encode_kind(kind, &out);
        ck_assert_int_eq(decode_kind(kind, silt_buf_view(&out), silt_view(other, sizeof other)),
                         SILT_ERR_CORRUPT);
        silt_buf_release(&out);
    }
}
END_TEST

/* A row whose checksum is right but whose bytes are not: what a hostile or mistaken writer would make. */
static enum silt_status decode_sealed(int kind, const uint8_t *body, size_t len)
{
    struct silt_buf out = {0};
    uint8_t trailer[8];
    struct silt_view view = {body, len};
    silt_put_le64(trailer, silt_checksum(view, silt_checksum(KEY, 0x73696c7420726f77ULL)));
    if (silt_buf_put(&out, body, len) != SILT_OK || silt_buf_put(&out, trailer, 8) != SILT_OK)
        test_die("no memory");
    enum silt_status status = decode_kind(kind, silt_buf_view(&out), KEY);
    silt_buf_release(&out);
    return status;
}

START_TEST(rows__a_newer_row_version_is_told_from_damage)
{
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        struct silt_buf out = {0};
        encode_kind(kind, &out);
        ck_assert_int_eq(decode_sealed(kind, out.at, out.len - 8), SILT_OK);
        out.at[0] = 3;
        ck_assert_int_eq(decode_sealed(kind, out.at, out.len - 8), SILT_ERR_NEWER_FORMAT);
        silt_buf_release(&out);
    }
}
END_TEST

/* Version 1 had no audit: it ends with the time of the last trim. What it lacks is empty here: a byte each, two for an id. */
START_TEST(rows__a_stream_row_of_version_1_is_read)
{
    struct silt_stream_row row = {.number = 7, .name = silt_view_str("s"), .life = 3}, back;
    struct silt_buf out = {0}, scratch = {0};
    ck_assert_int_eq(silt_stream_row_encode(&row, KEY, &out), SILT_OK);
    enum { FACTS = 11, AUDIT = 6 + FACTS + 15, REST = 5 };
    uint8_t trailer[8];
    out.len -= 8 + AUDIT + REST;
    out.at[0] = 1;
    silt_put_le64(trailer,
                  silt_checksum(silt_buf_view(&out), silt_checksum(KEY, 0x73696c7420726f77ULL)));
    ck_assert_int_eq(silt_buf_put(&out, trailer, 8), SILT_OK);
    ck_assert_int_eq(silt_stream_row_decode(silt_buf_view(&out), KEY, &scratch, &back, NULL),
                     SILT_OK);
    check_stream(&row, &back);
    silt_buf_release(&out);
    silt_buf_release(&scratch);
}
END_TEST

/* With the checksum made right again, no changed byte may crash the decoder or make it take memory by a number from disk. */
START_TEST(rows__sealed_nonsense_is_survived)
{
    struct test_rng rng = test_rng(3);
    size_t refused = 0;
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        struct silt_buf out = {0};
        encode_kind(kind, &out);
        for (int i = 0; i < 5000; i++) {
            uint8_t body[4096];
            size_t len = out.len - 8;
            if (len > sizeof body) test_die("the row is too long for this test");
            memcpy(body, out.at, len);
            for (uint64_t n = 1 + test_rng_below(&rng, 4); n > 0; n--)
                body[1 + test_rng_below(&rng, len - 1)] = (uint8_t)test_rng_next(&rng);
            enum silt_status status = decode_sealed(kind, body, len);
            ck_assert(status == SILT_OK || status == SILT_ERR_CORRUPT ||
                      (kind == ROW_META && status == SILT_ERR_NEWER_FORMAT));
            refused += status == SILT_ERR_CORRUPT;
        }
        silt_buf_release(&out);
    }
    ck_assert_uint_gt(refused, 1000);
}
END_TEST

START_TEST(rows__bytes_behind_the_last_field_are_refused)
{
    for (int kind = 0; kind < ROW_META; kind++) {
        struct silt_buf out = {0};
        encode_kind(kind, &out);
        out.at[out.len - 8] = 0;
        ck_assert_int_eq(decode_sealed(kind, out.at, out.len - 7), SILT_ERR_CORRUPT);
        silt_buf_release(&out);
    }
}
END_TEST

START_TEST(rows__names_of_causes_and_verdicts)
{
    ck_assert_str_eq(silt_gap_cause_name(SILT_GAP_TRIMMED), "trimmed");
    ck_assert_str_eq(silt_gap_cause_name(SILT_GAP_DELETED), "deleted");
    ck_assert_str_eq(silt_audit_cause_name(SILT_AUDIT_OURS_REPL), "failover or restart");
    ck_assert_str_eq(silt_audit_cause_name((enum silt_audit_cause)99), "unknown");
    ck_assert_str_eq(silt_gap_cause_name(SILT_GAP_EXPIRED), "expired or evicted");
    ck_assert_str_eq(silt_gap_cause_name(SILT_GAP_ROLLED_BACK), "rolled back");
    ck_assert_str_eq(silt_gap_cause_name(SILT_GAP_UNKNOWN), "unknown");
    ck_assert_str_eq(silt_gap_cause_name((enum silt_gap_cause)99), "unknown");
    ck_assert_str_eq(silt_verdict_name(SILT_VERDICT_CLEAR), "clear");
    ck_assert_str_eq(silt_verdict_name(SILT_VERDICT_AUDIT_PENDING), "audit pending");
    ck_assert_str_eq(silt_verdict_name(SILT_VERDICT_CLAIMED), "claimed by another archive");
    ck_assert_str_eq(silt_verdict_name(SILT_VERDICT_OTHER_COPY), "another copy of this archive");
    ck_assert_str_eq(silt_verdict_name(SILT_VERDICT_WAITING), "waiting");
    ck_assert_str_eq(silt_verdict_name(SILT_VERDICT_RELEASED), "released");
    ck_assert_str_eq(silt_verdict_name((enum silt_verdict)99), "unknown");
}
END_TEST

START_TEST(rows__no_memory_leaves_the_buffer_as_it_was)
{
    struct test_rng rng = test_rng_fixed(42);
    struct bench bench;
    fill_stream(&rng, &bench);
    for (size_t n = 1;; n++) {
        struct test_heap heap;
        struct silt_buf out = {0};
        test_heap_start(&heap, n);
        enum silt_status status = silt_stream_row_encode(&bench.row, KEY, &out);
        test_heap_stop();
        size_t len = out.len;
        silt_buf_release(&out);
        if (!heap.failed_count) break;
        ck_assert_int_eq(status, SILT_ERR_MEMORY);
        ck_assert_uint_eq(len, 0);
    }
}
END_TEST

TEST_MAIN(rows__streams_come_back_as_written, rows__small_ones_come_back_as_written,
          rows__meta_comes_back_as_written, rows__meta_of_a_newer_silt_is_refused_by_name,
          rows__every_truncation_is_refused, rows__every_single_bit_flip_is_refused,
          rows__another_key_is_refused, rows__a_newer_row_version_is_told_from_damage,
          rows__a_stream_row_of_version_1_is_read, rows__sealed_nonsense_is_survived,
          rows__bytes_behind_the_last_field_are_refused, rows__names_of_causes_and_verdicts,
          rows__no_memory_leaves_the_buffer_as_it_was)
