/* Each kind of finding, made on purpose; a whole archive has none; nothing stops the check at the first one. */
#include <stdlib.h>

#include "format/check.h"
#include "format/segment_header.h"
#include "format/store_priv.h"
#include "harness/harness.h"

static struct test_archive archive;
static struct test_stream stream;

/* Entries 1..100 in ten segments, and a second stream that must stay clean. */
static void setup(const char *ns)
{
    struct test_stream clean;
    test_archive_open(&archive, test_path("a"), true, 0);
    test_stream_new(&archive, &stream, "s", ns);
    for (uint64_t n = 1; n <= 100; n += 10)
        test_fold(&archive, &stream, n, n + 9);
    test_stream_new(&archive, &clean, "clean", NULL);
    test_fold(&archive, &clean, 1, 10);
}

struct found {
    size_t count;
    struct silt_finding all[16];
    char streams[16][32];
};

static void take(void *ctx, const struct silt_finding *finding)
{
    struct found *found = ctx;
    if (found->count == 16) test_die("too many findings");
    silt_escape(finding->stream, found->streams[found->count], 32);
    found->all[found->count++] = *finding;
}

static struct silt_check_sum check_range(struct found *found, const char *name,
                                         struct silt_range range)
{
    struct silt_check_sum sum;
    struct silt_err err;
    struct silt_check_options options = {
        .stream = silt_view_str(name), .range = range, .found = take, .ctx = found};
    memset(found, 0, sizeof *found);
    ck_assert_int_eq(silt_check(archive.store, &options, &sum, &err), SILT_OK);
    ck_assert_uint_eq(sum.findings, found->count);
    return sum;
}

static struct silt_check_sum check_all(struct found *found)
{
    return check_range(found, "", SILT_RANGE_ALL);
}

struct change {
    enum silt_db db;
    struct silt_view key;
    struct silt_view value;
};

static enum silt_status put(void *ctx, struct silt_kv_txn *txn, struct silt_err *err)
{
    const struct change *change = ctx;
    return silt_kv_put(txn, change->db, change->key, change->value, err);
}

static void write_pair(enum silt_db db, struct silt_key key, struct silt_view value)
{
    struct change change = {db, silt_key_view(&key), value};
    ck_assert_int_eq(silt_env_write(archive.store, put, &change, NULL), SILT_OK);
}

static struct silt_key key_of(uint64_t n)
{
    return silt_key_segment(stream.row.life, stream.row.ns, test_entry_id(n));
}

static struct silt_buf value_of(uint64_t n)
{
    struct silt_buf value = {0};
    struct silt_segment_info info;
    ck_assert_int_eq(silt_store_segment(archive.store, stream.row.life, stream.row.ns,
                                        test_entry_id(n), SILT_SEEK_FORWARD, &value, &info, NULL),
                     SILT_OK);
    return value;
}

/* Makes the checksums of a changed value right again. */
static void seal(struct silt_buf *value)
{
    struct silt_view body = {value->at + SILT_SEGMENT_HEADER, value->len - SILT_SEGMENT_HEADER};
    silt_put_le64(value->at + SILT_SEGMENT_HEADER - 16, silt_checksum(body, 0));
    silt_put_le64(value->at + SILT_SEGMENT_HEADER - 8,
                  silt_checksum(silt_view(value->at, SILT_SEGMENT_HEADER - 8), 0));
}

/* Exactly one damaged segment, with this finding and this range, in this stream; everything else was still read. */
static void one_finding(enum silt_finding_kind kind, uint64_t first, uint64_t last)
{
    struct found found;
    struct silt_check_sum sum = check_all(&found);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_str_eq(silt_finding_name(found.all[0].kind), silt_finding_name(kind));
    ck_assert_str_eq(found.streams[0], "s");
    ck_assert_uint_eq(found.all[0].life, stream.row.life);
    ck_assert(silt_wire_id_equal(found.all[0].first, test_entry_id(first)));
    ck_assert(silt_wire_id_equal(found.all[0].last, test_entry_id(last)));
    ck_assert_uint_eq(sum.damaged_segments, 1);
    ck_assert_uint_eq(sum.segments, 11);
    ck_assert_uint_eq(sum.streams, 2);
}

START_TEST(check__a_whole_archive_has_no_findings)
{
    struct found found;
    static const char *const kinds[] = {NULL, "EVT"};
    for (int i = 0; i < 2; i++) {
        setup(kinds[i]);
        struct silt_check_sum sum = check_all(&found);
        ck_assert_uint_eq(found.count, 0);
        ck_assert_uint_eq(sum.streams, 2);
        ck_assert_uint_eq(sum.segments, 11);
        ck_assert_uint_eq(sum.entries, 110);
        ck_assert_uint_eq(sum.damaged_segments, 0);
        ck_assert_uint_gt(sum.values_bytes, 1000);
        ck_assert_uint_gt(sum.stored_bytes, 1000);
        test_archive_close(&archive);
        test_remove_all(test_path("a"));
    }
}
END_TEST

START_TEST(check__one_stream_and_a_range_read_only_that)
{
    struct found found;
    setup("EVT");
    struct silt_check_sum sum = check_range(&found, "clean", SILT_RANGE_ALL);
    ck_assert_uint_eq(sum.entries, 10);
    ck_assert_uint_eq(sum.streams, 1);
    sum = check_range(&found, "s", (struct silt_range){test_entry_id(35), test_entry_id(41)});
    ck_assert_uint_eq(sum.segments, 2);
    ck_assert_uint_eq(found.count, 0);
    sum = check_range(&found, "s", (struct silt_range){test_entry_id(200), SILT_WIRE_ID_MAX});
    ck_assert_uint_le(sum.segments, 1);
    struct silt_err err;
    struct silt_check_options options = {.stream = silt_view_str("none"), .range = SILT_RANGE_ALL};
    ck_assert_int_eq(silt_check(archive.store, &options, &sum, &err), SILT_ERR_UNKNOWN_STREAM);
    options.range = (struct silt_range){test_entry_id(2), test_entry_id(1)};
    ck_assert_int_eq(silt_check(archive.store, &options, &sum, &err), SILT_ERR_WINDOW);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__finds_a_checksum_that_does_not_fit)
{
    setup("EVT");
    struct silt_buf value = value_of(41);
    value.at[value.len - 1] ^= 1;
    write_pair(SILT_DB_SEGMENTS, key_of(41), silt_buf_view(&value));
    one_finding(SILT_FINDING_CHECKSUM, 41, 50);
    silt_buf_release(&value);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__finds_a_damaged_header_with_the_range_it_can_tell)
{
    struct found found;
    struct silt_wire_id last;
    setup("EVT");
    struct silt_buf value = value_of(41);
    value.at[33] ^= 1;
    write_pair(SILT_DB_SEGMENTS, key_of(41), silt_buf_view(&value));
    check_all(&found);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].kind, SILT_FINDING_CHECKSUM);
    ck_assert(silt_wire_id_equal(found.all[0].first, test_entry_id(41)));
    ck_assert(silt_wire_id_prev(test_entry_id(51), &last));
    ck_assert(silt_wire_id_equal(found.all[0].last, last));
    silt_buf_release(&value);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__finds_content_that_does_not_decode_under_a_right_checksum)
{
    setup("EVT");
    struct silt_buf value = value_of(41);
    value.at[SILT_SEGMENT_HEADER] ^= 0xFF;
    seal(&value);
    write_pair(SILT_DB_SEGMENTS, key_of(41), silt_buf_view(&value));
    one_finding(SILT_FINDING_DECODE, 41, 50);
    silt_buf_release(&value);
    test_archive_close(&archive);
}
END_TEST

/* A value under another segment's key: also the ids are then not the key's. */
START_TEST(check__finds_a_value_under_the_wrong_key)
{
    struct found found;
    setup("EVT");
    struct silt_buf value = value_of(41);
    write_pair(SILT_DB_SEGMENTS, key_of(51), silt_buf_view(&value));
    check_all(&found);
    ck_assert_uint_ge(found.count, 1);
    ck_assert_int_eq(found.all[0].kind, SILT_FINDING_KEY);
    silt_buf_release(&value);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__finds_an_overlap)
{
    struct found found;
    setup(NULL);
    test_segment_make(&archive, &stream, 45, 52);
    write_pair(SILT_DB_SEGMENTS, key_of(45), silt_buf_view(&archive.value));
    struct silt_check_sum sum = check_all(&found);
    ck_assert_uint_eq(found.count, 2); /* it begins in the one below, and the next begins in it */
    ck_assert_int_eq(found.all[0].kind, SILT_FINDING_OVERLAP);
    ck_assert(silt_wire_id_equal(found.all[0].first, test_entry_id(45)));
    ck_assert(silt_wire_id_equal(found.all[0].last, test_entry_id(50)));
    ck_assert_int_eq(found.all[1].kind, SILT_FINDING_OVERLAP);
    ck_assert(silt_wire_id_equal(found.all[1].first, test_entry_id(51)));
    ck_assert_uint_eq(sum.segments, 12);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__finds_a_header_that_counts_wrong)
{
    setup("EVT");
    struct silt_buf value = value_of(41);
    value.at[72] ^= 1; /* bytes of names and values */
    seal(&value);
    write_pair(SILT_DB_SEGMENTS, key_of(41), silt_buf_view(&value));
    struct found found;
    check_all(&found);
    ck_assert_uint_eq(found.count, 1);
    ck_assert(found.all[0].kind == SILT_FINDING_COUNT || found.all[0].kind == SILT_FINDING_DECODE);
    silt_buf_release(&value);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__finds_a_last_id_that_is_not_there)
{
    setup("EVT");
    struct silt_buf value = value_of(41);
    silt_put_le64(value.at + 56, 2); /* the sequence of the last id: one more */
    seal(&value);
    write_pair(SILT_DB_SEGMENTS, key_of(41), silt_buf_view(&value));
    struct found found;
    check_all(&found);
    ck_assert_uint_eq(found.count, 1);
    ck_assert(found.all[0].kind == SILT_FINDING_ORDER || found.all[0].kind == SILT_FINDING_DECODE);
    silt_buf_release(&value);
    test_archive_close(&archive);
}
END_TEST

static void write_row(const struct silt_stream_row *row)
{
    struct silt_key key = silt_key_number(row->number);
    struct silt_buf bytes = {0};
    ck_assert_int_eq(silt_stream_row_encode(row, silt_key_view(&key), &bytes), SILT_OK);
    write_pair(SILT_DB_STREAMS, key, silt_buf_view(&bytes));
    silt_buf_release(&bytes);
}

START_TEST(check__finds_a_watermark_below_the_last_entry)
{
    struct found found;
    setup("EVT");
    stream.row.watermark = test_entry_id(99);
    write_row(&stream.row);
    check_all(&found);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].kind, SILT_FINDING_WATERMARK);
    ck_assert(silt_wire_id_equal(found.all[0].last, test_entry_id(100)));
    test_archive_close(&archive);
}
END_TEST

/* A segment that is gone leaves no trace but the count. */
START_TEST(check__finds_counters_that_disagree)
{
    struct found found;
    setup("EVT");
    stream.row.folded_entries += 10;
    write_row(&stream.row);
    check_all(&found);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].kind, SILT_FINDING_WATERMARK);
    ck_assert_ptr_nonnull(strstr(found.all[0].text, "110 entries were folded, 100 are there"));
    stream.row.folded_entries -= 10;
    stream.row.folded_bytes += 1;
    write_row(&stream.row);
    check_all(&found);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].kind, SILT_FINDING_WATERMARK);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__finds_damaged_rows_and_goes_on)
{
    struct found found;
    setup(NULL);
    write_pair(SILT_DB_STREAMS, silt_key_number(stream.row.number), silt_view_str("nonsense"));
    struct silt_check_sum sum = check_all(&found);
    ck_assert_uint_eq(sum.streams, 1); /* the clean one */
    ck_assert_uint_eq(sum.entries, 10);
    ck_assert_uint_eq(found.count, 3); /* the row, its name's row, its life without a stream */
    for (size_t i = 0; i < found.count; i++)
        ck_assert_int_eq(found.all[i].kind, SILT_FINDING_ROW);
    check_range(&found, "s", SILT_RANGE_ALL);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].kind, SILT_FINDING_ROW);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__finds_names_that_lead_nowhere)
{
    struct found found;
    struct silt_buf row = {0};
    setup(NULL);
    struct silt_key key = silt_key_name(silt_view_str("ghost"), 0);
    ck_assert_int_eq(silt_name_row_encode(99, silt_key_view(&key), &row), SILT_OK);
    write_pair(SILT_DB_NAMES, key, silt_buf_view(&row));
    check_all(&found);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].kind, SILT_FINDING_ROW);
    key = silt_key_name(stream.row.name, 0);
    write_pair(SILT_DB_NAMES, key, silt_view_str("damaged"));
    check_all(&found);
    ck_assert_uint_eq(found.count, 3); /* as a row, and as a stream that has no name any more */
    silt_buf_release(&row);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__finds_damaged_gap_late_and_fork_rows)
{
    struct found found;
    setup(NULL);
    write_pair(SILT_DB_GAPS, silt_key_gap(stream.row.life, test_entry_id(5), 0),
               silt_view_str("nonsense"));
    write_pair(SILT_DB_LATE, silt_key_pair(stream.row.life, 1), silt_view_str("nonsense"));
    write_pair(SILT_DB_LATE, silt_key_pair(stream.row.life, UINT64_MAX), silt_view_str("nonsense"));
    write_pair(SILT_DB_FORKS, silt_key_fork_life(stream.row.life), silt_view_str("nonsense"));
    check_all(&found);
    ck_assert_uint_eq(found.count, 4);
    for (size_t i = 0; i < found.count; i++)
        ck_assert_int_eq(found.all[i].kind, SILT_FINDING_ROW);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__tells_gaps_of_the_range)
{
    struct found found;
    setup(NULL);
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(
        silt_batch_gap(archive.batch,
                       &(struct silt_gap_row){.life = stream.row.life,
                                              .range = {test_entry_id(40), test_entry_id(41)},
                                              .precision = SILT_GAP_AT_LEAST,
                                              .has_count = true,
                                              .count = 7,
                                              .cause = SILT_GAP_TRIMMED}),
        SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, NULL), SILT_OK);
    struct silt_check_sum sum = check_all(&found);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].kind, SILT_FINDING_GAP);
    ck_assert_ptr_nonnull(strstr(found.all[0].text, "at least 7"));
    ck_assert_ptr_nonnull(strstr(found.all[0].text, "trimmed"));
    ck_assert_uint_eq(sum.damaged_segments, 0);
    check_range(&found, "s", (struct silt_range){test_entry_id(60), SILT_WIRE_ID_MAX});
    ck_assert_uint_eq(found.count, 0);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__reads_the_parents_of_a_life)
{
    struct found found;
    uint64_t parent;
    setup(NULL);
    parent = stream.row.life;
    ck_assert_int_eq(silt_store_new_life(archive.store, &stream.row.life, NULL), SILT_OK);
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(
        silt_batch_fork(archive.batch, &(struct silt_fork_row){stream.row.life, stream.row.number,
                                                               parent, test_entry_id(101), 1}),
        SILT_OK);
    test_fold_add(&archive, &stream, 101, 110, false);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, NULL), SILT_OK);
    struct silt_check_sum sum = check_all(&found);
    ck_assert_uint_eq(found.count, 0);
    ck_assert_uint_eq(sum.entries, 120);
    test_archive_close(&archive);
}
END_TEST

START_TEST(check__never_stops_at_the_first)
{
    struct found found;
    setup("EVT");
    for (uint64_t n = 1; n <= 100; n += 20) {
        struct silt_buf value = value_of(n);
        value.at[value.len / 2] ^= 0x20;
        write_pair(SILT_DB_SEGMENTS, key_of(n), silt_buf_view(&value));
        silt_buf_release(&value);
    }
    struct silt_check_sum sum = check_all(&found);
    ck_assert_uint_eq(found.count, 5);
    ck_assert_uint_eq(sum.damaged_segments, 5);
    ck_assert_uint_eq(sum.entries, 60);
    test_archive_close(&archive);
}
END_TEST

TEST_MAIN(check__a_whole_archive_has_no_findings, check__one_stream_and_a_range_read_only_that,
          check__finds_a_checksum_that_does_not_fit,
          check__finds_a_damaged_header_with_the_range_it_can_tell,
          check__finds_content_that_does_not_decode_under_a_right_checksum,
          check__finds_a_value_under_the_wrong_key, check__finds_an_overlap,
          check__finds_a_header_that_counts_wrong, check__finds_a_last_id_that_is_not_there,
          check__finds_a_watermark_below_the_last_entry, check__finds_counters_that_disagree,
          check__finds_damaged_rows_and_goes_on, check__finds_names_that_lead_nowhere,
          check__finds_damaged_gap_late_and_fork_rows, check__tells_gaps_of_the_range,
          check__reads_the_parents_of_a_life, check__never_stops_at_the_first)
