/* Late entries come into their place, and nothing that was there is lost by it: wherever they fall, whatever they meet, and wherever memory ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/check.h"
#include "format/fold.h"
#include "format/insert.h"
#include "format/store_priv.h"
#include "harness/harness.h"

#define TOP 4000

static struct test_archive archive;
static struct test_stream stream;
static struct silt_insert *insert;
static struct silt_err err;
static bool there[TOP + 1]; /* the oracle: which entries the archive holds */

static void setup(const char *ns)
{
    static unsigned archives;
    test_archive_open(&archive, test_path("a%u", archives++), true, 0);
    test_stream_new(&archive, &stream, "s", ns);
    ck_assert_int_eq(silt_insert_new(3, &insert), SILT_OK);
    memset(there, 0, sizeof there);
}

static void teardown(void)
{
    silt_insert_free(insert);
    test_archive_close(&archive);
}

static void count_in(uint64_t n)
{
    struct silt_entry entry = test_entry(n);
    ck_assert(!there[n]);
    there[n] = true;
    stream.row.folded_entries++;
    stream.row.folded_bytes += silt_entry_bytes(&entry);
    if (!silt_namespace_is_none(stream.row.ns)) stream.row.foreign_entries++;
}

/* Every step-th entry of first..last as one segment, committed. */
static void segment(uint64_t first, uint64_t last, uint64_t step)
{
    struct silt_segment_info info;
    struct silt_buf value = {0};
    silt_segment_builder_begin(archive.builder, stream.row.life, stream.row.ns);
    for (uint64_t n = first; n <= last; n += step) {
        struct silt_entry entry = test_entry(n);
        ck_assert_int_eq(silt_segment_builder_add(archive.builder, &entry), SILT_OK);
        count_in(n);
    }
    ck_assert_int_eq(silt_segment_builder_finish(archive.builder, &value, &info), SILT_OK);
    stream.row.folded_any = true;
    if (silt_wire_id_less(stream.row.watermark, info.last))
        stream.row.watermark = stream.row.custody = info.last;
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_batch_segment(archive.batch, &info, silt_buf_view(&value), false),
                     SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    silt_buf_release(&value);
}

static void add_late(uint64_t n)
{
    struct silt_entry entry = test_entry(n);
    ck_assert_int_eq(silt_insert_add(insert, &entry, &err), SILT_OK);
    count_in(n);
    stream.row.late_entries++;
}

static void begin(void)
{
    silt_batch_clear(archive.batch);
    silt_insert_begin(insert, stream.row.life, stream.row.ns);
}

static void apply_and_commit(void)
{
    ck_assert_msg(silt_insert_apply(insert, archive.store, archive.batch, &err) == SILT_OK, "%s",
                  err.sentence);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_msg(silt_store_commit(archive.store, archive.batch, &err) == SILT_OK, "%s",
                  err.sentence);
}

static void late(uint64_t first, uint64_t last, uint64_t step)
{
    begin();
    for (uint64_t n = first; n <= last; n += step)
        add_late(n);
    apply_and_commit();
}

static void found(void *ctx, const struct silt_finding *finding)
{
    (void)ctx;
    ck_abort_msg("the deep check finds: %s", finding->text);
}

static void walk(struct silt_segment *segment, size_t *inout_segments, uint64_t *inout_n)
{
    struct silt_buf value = {0};
    struct silt_segment_info info;
    struct silt_wire_id id = SILT_WIRE_ID_MIN;
    enum silt_status status;
    while ((status = silt_store_segment(archive.store, stream.row.life, stream.row.ns, id,
                                        SILT_SEEK_FORWARD, &value, &info, &err)) == SILT_OK) {
        ck_assert_int_eq(silt_segment_open(segment, silt_buf_view(&value), &err), SILT_OK);
        for (size_t i = 0; i < silt_segment_count(segment); i++) {
            struct silt_entry got, due;
            do
                ck_assert_uint_le(++*inout_n, TOP);
            while (!there[*inout_n]);
            due = test_entry(*inout_n);
            silt_segment_entry(segment, i, &got);
            ck_assert_msg(silt_entry_equal(&got, &due), "entry %d was due", (int)*inout_n);
        }
        ++*inout_segments;
        ck_assert(silt_wire_id_next(info.last, &id));
    }
    ck_assert_int_eq(status, SILT_END);
    silt_buf_release(&value);
}

/* The archive holds what the oracle says, in order, byte for byte; the deep check agrees. Gives the number of segments. */
static size_t check(void)
{
    struct silt_segment *decoded;
    struct silt_check_sum sum;
    size_t segments = 0;
    uint64_t n = 0;
    ck_assert_int_eq(silt_segment_new(&decoded), SILT_OK);
    walk(decoded, &segments, &n);
    while (n < TOP)
        ck_assert(!there[++n]);
    silt_segment_free(decoded);
    ck_assert_int_eq(
        silt_check(archive.store,
                   &(struct silt_check_options){.range = SILT_RANGE_ALL, .found = found}, &sum,
                   &err),
        SILT_OK);
    return segments;
}

static void check_numbers(uint64_t count, const uint64_t *entries)
{
    struct silt_late_row row;
    uint64_t number = 0, highest;
    for (uint64_t i = 0; i < count; i++) {
        ck_assert_int_eq(silt_store_late_after(archive.store, stream.row.life, number, &row, &err),
                         SILT_OK);
        ck_assert_uint_eq(row.number, ++number);
        ck_assert(silt_wire_id_equal(row.id, test_entry_id(entries[i])));
    }
    ck_assert_int_eq(silt_store_late_after(archive.store, stream.row.life, number, &row, &err),
                     SILT_END);
    ck_assert_int_eq(silt_store_late_highest(archive.store, stream.row.life, &highest, &err),
                     SILT_OK);
    ck_assert_uint_eq(highest, count);
}

/* ---- the place ---- */

START_TEST(insert__into_the_segment_that_they_fall_in)
{
    setup("EVT");
    segment(11, 29, 2);
    segment(41, 59, 2);
    begin();
    add_late(12);
    add_late(20);
    add_late(44);
    apply_and_commit();
    ck_assert_uint_eq(check(), 2);
    check_numbers(3, (uint64_t[]){12, 20, 44});
    ck_assert_uint_eq(silt_insert_sum(insert)->count, 3);
    ck_assert_uint_eq(silt_insert_sum(insert)->foreign_count, 3);
    teardown();
}
END_TEST

START_TEST(insert__between_two_into_the_one_below)
{
    setup(NULL);
    segment(11, 20, 1);
    segment(41, 50, 1);
    late(25, 30, 1);
    ck_assert_uint_eq(check(), 2);
    teardown();
}
END_TEST

START_TEST(insert__before_the_first_moves_its_key)
{
    setup("EVT");
    segment(11, 20, 1);
    segment(41, 50, 1);
    late(3, 9, 2);
    ck_assert_uint_eq(check(), 2);
    late(1, 2, 1); /* and once more, beneath the moved one */
    ck_assert_uint_eq(check(), 2);
    check_numbers(6, (uint64_t[]){3, 5, 7, 9, 1, 2});
    teardown();
}
END_TEST

START_TEST(insert__behind_the_tail_up_to_the_watermark)
{
    setup(NULL);
    segment(11, 20, 1);
    stream.row.watermark = stream.row.custody = test_entry_id(40);
    late(30, 40, 5);
    ck_assert_uint_eq(check(), 1);
    teardown();
}
END_TEST

/* A segment that the fold would have closed. */
static void full_segment(uint64_t first, uint64_t last, uint64_t step)
{
    struct silt_segment_info info;
    struct silt_buf value = {0};
    segment(first, last, step);
    ck_assert_int_eq(silt_store_segment(archive.store, stream.row.life, stream.row.ns,
                                        test_entry_id(first), SILT_SEEK_FORWARD, &value, &info,
                                        &err),
                     SILT_OK);
    ck_assert(silt_segment_is_full(&info));
    silt_buf_release(&value);
}

START_TEST(insert__between_full_ones_into_one_of_their_own)
{
    setup(NULL);
    full_segment(1, 900, 1);
    full_segment(1001, 1900, 1);
    late(950, 960, 1);
    ck_assert_uint_eq(check(), 3);
    late(970, 980, 1); /* which is not full, and takes the next ones */
    ck_assert_uint_eq(check(), 3);
    teardown();
}
END_TEST

START_TEST(insert__behind_a_full_one_into_the_one_above)
{
    setup(NULL);
    full_segment(1, 900, 1);
    segment(1001, 1010, 1);
    begin();
    add_late(950);
    add_late(1020); /* above the target too: the same one takes it */
    stream.row.watermark = stream.row.custody = test_entry_id(1020);
    apply_and_commit();
    ck_assert_uint_eq(check(), 2);
    teardown();
}
END_TEST

START_TEST(insert__into_a_full_one_and_behind_it)
{
    setup(NULL);
    full_segment(1, 1400, 2);
    full_segment(2001, 2900, 1);
    begin();
    add_late(500);
    add_late(1500);
    apply_and_commit();
    ck_assert_uint_eq(check(), 3);
    teardown();
}
END_TEST

START_TEST(insert__into_a_life_without_segments)
{
    setup(NULL);
    stream.row.folded_any = true; /* everything was removed by others before it was folded */
    stream.row.watermark = stream.row.custody = test_entry_id(40);
    late(5, 10, 1);
    ck_assert_uint_eq(check(), 1);
    teardown();
}
END_TEST

START_TEST(insert__nothing_added_nothing_done)
{
    setup(NULL);
    segment(11, 20, 1);
    begin();
    ck_assert_int_eq(silt_insert_apply(insert, archive.store, archive.batch, &err), SILT_OK);
    ck_assert(silt_batch_is_empty(archive.batch));
    teardown();
}
END_TEST

/* ---- growth ---- */

START_TEST(insert__what_grows_too_large_is_cut_into_like_parts)
{
    struct silt_segment_info info;
    struct silt_buf value = {0};
    struct silt_wire_id id = SILT_WIRE_ID_MIN;
    setup("EVT");
    segment(1, 1001, 2);
    segment(1101, 1110, 1);
    late(2, 1000, 2);
    size_t segments = check();
    ck_assert_uint_ge(segments, 3);
    for (size_t i = 0; i + 1 < segments; i++) {
        ck_assert_int_eq(silt_store_segment(archive.store, stream.row.life, stream.row.ns, id,
                                            SILT_SEEK_FORWARD, &value, &info, &err),
                         SILT_OK);
        ck_assert_uint_le(info.stored_bytes, SILT_SEGMENT_SPLIT_BYTES);
        ck_assert_uint_ge(info.stored_bytes, SILT_SEGMENT_SPLIT_BYTES / 4);
        ck_assert(silt_wire_id_next(info.last, &id));
    }
    silt_buf_release(&value);
    teardown();
}
END_TEST

START_TEST(insert__a_flood_becomes_many_segments)
{
    setup(NULL);
    segment(1, 10, 1);
    segment(3991, 4000, 1);
    late(11, 3990, 1);
    size_t segments = check();
    ck_assert_uint_ge(segments, 4);
    ck_assert_uint_le(segments, 20);
    teardown();
}
END_TEST

/* An entry larger than a segment should be stands alone; its neighbours stay. */
START_TEST(insert__a_huge_entry_is_a_segment)
{
    struct test_rng rng = test_rng(1);
    static char text[100000];
    struct silt_field field = {silt_view("a", 1), silt_view(text, sizeof text)};
    struct silt_entry huge = {test_entry_id(15), &field, 1};
    struct silt_buf value = {0};
    struct silt_segment_info info;
    setup(NULL);
    test_rng_bytes(&rng, text, sizeof text);
    segment(11, 19, 2);
    begin();
    there[15] = false;
    huge.id.seq = 2;
    ck_assert_int_eq(silt_insert_add(insert, &huge, &err), SILT_OK);
    ck_assert_int_eq(silt_insert_apply(insert, archive.store, archive.batch, &err), SILT_OK);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    ck_assert_int_eq(silt_store_segment(archive.store, stream.row.life, stream.row.ns, huge.id,
                                        SILT_SEEK_FORWARD, &value, &info, &err),
                     SILT_OK);
    ck_assert_uint_ge(info.stored_bytes, sizeof text);
    ck_assert_uint_le(info.count, 4);
    silt_buf_release(&value);
    teardown();
}
END_TEST

/* ---- beside the fold ---- */

static void fold_on(uint64_t first, uint64_t last, bool apply)
{
    struct silt_fold *fold;
    struct silt_buf tail = {0};
    struct silt_segment_info info;
    size_t count;
    ck_assert_int_eq(silt_fold_new(3, &fold), SILT_OK);
    ck_assert_int_eq(silt_store_segment(archive.store, stream.row.life, stream.row.ns,
                                        SILT_WIRE_ID_MAX, SILT_SEEK_BACKWARD, &tail, &info, &err),
                     SILT_OK);
    ck_assert_int_eq(
        silt_fold_begin(fold, stream.row.life, stream.row.ns, silt_buf_view(&tail), &err), SILT_OK);
    for (uint64_t n = first; n <= last; n++) {
        struct silt_entry entry = test_entry(n);
        ck_assert_int_eq(silt_fold_add(fold, &entry, &err), SILT_OK);
        if (apply) count_in(n);
    }
    ck_assert_int_eq(silt_fold_finish(fold, &err), SILT_OK);
    const struct silt_fold_segment *segments = silt_fold_segments(fold, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert(segments->replaces_tail);
    struct silt_batch_part part = {segments->info, segments->value};
    ck_assert_int_eq(
        silt_batch_replace(archive.batch, &segments->tail, segments->tail_checksum, &part, 1),
        SILT_OK);
    stream.row.watermark = stream.row.custody = test_entry_id(last);
    silt_fold_free(fold);
    silt_buf_release(&tail);
}

START_TEST(insert__the_fold_goes_on_in_a_tail_with_late_entries)
{
    setup("EVT");
    segment(11, 29, 2);
    late(12, 14, 2);
    silt_batch_clear(archive.batch);
    fold_on(31, 40, true);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    ck_assert_uint_eq(check(), 1);
    teardown();
}
END_TEST

/* A fold that was made from the tail as it was before would take the late entry out again: it holds more entries and a higher last id. */
START_TEST(insert__a_fold_of_the_older_tail_is_refused)
{
    setup("EVT");
    segment(11, 29, 2);
    struct test_stream before = stream;
    begin();
    add_late(12);
    ck_assert_int_eq(silt_insert_apply(insert, archive.store, archive.batch, &err), SILT_OK);
    fold_on(31, 40, false);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_ERR_PROTECTED);
    ck_assert_ptr_nonnull(strstr(err.sentence, "has changed since it was read"));
    there[12] = false;
    stream.row = before.row;
    ck_assert_uint_eq(check(), 1);
    teardown();
}
END_TEST

START_TEST(insert__a_stale_view_is_refused)
{
    setup(NULL);
    segment(11, 29, 2);
    begin();
    add_late(12);
    ck_assert_int_eq(silt_insert_apply(insert, archive.store, archive.batch, &err), SILT_OK);
    struct silt_batch *older = archive.batch;
    ck_assert_int_eq(silt_batch_new(&archive.batch), SILT_OK);
    late(14, 18, 2); /* somebody was faster */
    ck_assert_int_eq(silt_batch_stream(older, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, older, &err), SILT_ERR_PROTECTED);
    silt_batch_free(older);
    there[12] = false;
    stream.row.folded_entries--;
    struct silt_entry entry = test_entry(12);
    stream.row.folded_bytes -= silt_entry_bytes(&entry);
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    ck_assert_uint_eq(check(), 1);
    teardown();
}
END_TEST

/* Nobody knows whether a commit that failed last was done: the same batch once more is no failure. */
START_TEST(insert__the_same_commit_again_is_fine)
{
    setup(NULL);
    segment(11, 29, 2);
    late(2, 28, 2);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    ck_assert_uint_eq(check(), 1);
    check_numbers(14, (uint64_t[]){2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28});
    teardown();
}
END_TEST

START_TEST(insert__numbers_go_on_behind_those_in_the_batch)
{
    setup(NULL);
    segment(11, 29, 2);
    late(12, 12, 1);
    begin();
    struct silt_late_row row = {stream.row.life, 2, test_entry_id(11)};
    ck_assert_int_eq(silt_batch_late(archive.batch, &row), SILT_OK);
    row = (struct silt_late_row){stream.row.life + 1, 9, test_entry_id(11)};
    ck_assert_int_eq(silt_batch_late(archive.batch, &row), SILT_OK);
    stream.row.late_entries++;
    add_late(14);
    apply_and_commit();
    check_numbers(3, (uint64_t[]){12, 11, 14});
    teardown();
}
END_TEST

/* ---- refusals ---- */

static void refused(const struct silt_entry *entry, enum silt_status code, const char *what)
{
    struct silt_entry good = test_entry(12);
    struct silt_late_row row = {stream.row.life, 1, {5, 0}};
    begin();
    ck_assert_int_eq(silt_batch_late(archive.batch, &row), SILT_OK);
    size_t mark = silt_batch_mark(archive.batch);
    ck_assert_int_eq(silt_insert_add(insert, &good, &err), SILT_OK);
    ck_assert_int_eq(silt_insert_add(insert, entry, &err), SILT_OK);
    ck_assert_int_eq(silt_insert_apply(insert, archive.store, archive.batch, &err), code);
    ck_assert_msg(strstr(err.sentence, what) != NULL, "%s", err.sentence);
    ck_assert_uint_eq(silt_batch_mark(archive.batch), mark);
}

START_TEST(insert__refuses_what_the_archive_holds)
{
    setup(NULL);
    segment(11, 29, 2);
    segment(41, 50, 1);
    struct silt_entry entry = test_entry(41);
    refused(&entry, SILT_ERR_PROTECTED, "1893456000041-1: the archive holds it already");
    struct silt_field field = {silt_view("other", 5), silt_view("bytes", 5)};
    entry = (struct silt_entry){test_entry_id(45), &field, 1};
    refused(&entry, SILT_ERR_PROTECTED, "1893456000045-1: the archive holds it already");
    teardown();
}
END_TEST

START_TEST(insert__refuses_ids_that_do_not_ascend)
{
    struct silt_entry entries[2] = {test_entry(12), test_entry(12)};
    setup(NULL);
    begin();
    ck_assert_int_eq(silt_insert_add(insert, &entries[0], &err), SILT_OK);
    ck_assert_int_eq(silt_insert_add(insert, &entries[1], &err), SILT_ERR_ORDER);
    ck_assert_ptr_nonnull(strstr(err.sentence, "1893456000012-1"));
    entries[1].id.ms--;
    ck_assert_int_eq(silt_insert_add(insert, &entries[1], &err), SILT_ERR_ORDER);
    ck_assert_uint_eq(silt_insert_sum(insert)->count, 1);
    teardown();
}
END_TEST

START_TEST(insert__refuses_an_entry_that_is_too_large)
{
    struct silt_field field = {silt_view("a", 1), silt_view("a", 1)};
    struct silt_entry entry = {test_entry_id(12), &field, SILT_ENTRY_FIELDS_MAX + 1};
    setup(NULL);
    begin();
    ck_assert_int_eq(silt_insert_add(insert, &entry, &err), SILT_ERR_ENTRY_SHAPE);
    ck_assert_uint_eq(silt_insert_sum(insert)->count, 0);
    teardown();
}
END_TEST

START_TEST(insert__refuses_what_lies_below_the_fork)
{
    uint64_t parent;
    setup(NULL);
    segment(11, 29, 2);
    parent = stream.row.life;
    ck_assert_int_eq(silt_store_new_life(archive.store, &stream.row.life, NULL), SILT_OK);
    struct silt_fork_row row = {stream.row.life, stream.row.number, parent, test_entry_id(20), 1};
    stream.row.watermark = stream.row.custody = test_entry_id(60);
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(silt_batch_fork(archive.batch, &row), SILT_OK);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    begin();
    struct silt_entry entry = test_entry(19);
    ck_assert_int_eq(silt_insert_add(insert, &entry, &err), SILT_OK);
    ck_assert_int_eq(silt_insert_apply(insert, archive.store, archive.batch, &err),
                     SILT_ERR_PROTECTED);
    ck_assert_ptr_nonnull(strstr(err.sentence, "below the fork"));
    begin();
    entry = test_entry(20);
    ck_assert_int_eq(silt_insert_add(insert, &entry, &err), SILT_OK);
    ck_assert_int_eq(silt_insert_apply(insert, archive.store, archive.batch, &err), SILT_OK);
    teardown();
}
END_TEST

START_TEST(insert__the_commit_refuses_what_lies_above_the_watermark)
{
    setup(NULL);
    segment(11, 29, 2);
    begin();
    struct silt_entry entry = test_entry(30);
    ck_assert_int_eq(silt_insert_add(insert, &entry, &err), SILT_OK);
    ck_assert_int_eq(silt_insert_apply(insert, archive.store, archive.batch, &err), SILT_OK);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_ERR_PROTECTED);
    ck_assert_uint_eq(check(), 1);
    teardown();
}
END_TEST

static void damage(uint64_t first, const char *bytes)
{
    struct silt_key key = silt_key_segment(stream.row.life, stream.row.ns, test_entry_id(first));
    struct silt_kv_txn *txn;
    struct silt_view value;
    struct silt_buf copy = {0};
    bool resized;
    ck_assert_int_eq(silt_kv_write_begin(archive.store->env->kv, &txn, &resized, NULL), SILT_OK);
    ck_assert_int_eq(silt_kv_get(txn, SILT_DB_SEGMENTS, silt_key_view(&key), &value, NULL),
                     SILT_OK);
    ck_assert_int_eq(silt_buf_put(&copy, value.at, value.len), SILT_OK);
    if (bytes)
        memcpy(copy.at, bytes, strlen(bytes));
    else
        copy.at[copy.len - 1] ^= 1;
    ck_assert_int_eq(
        silt_kv_put(txn, SILT_DB_SEGMENTS, silt_key_view(&key), silt_buf_view(&copy), NULL),
        SILT_OK);
    ck_assert_int_eq(silt_kv_commit(txn, NULL), SILT_OK);
    silt_buf_release(&copy);
}

START_TEST(insert__refuses_a_place_in_a_damaged_segment)
{
    setup(NULL);
    segment(11, 29, 2);
    segment(41, 59, 2);
    segment(71, 80, 1);
    damage(41, "header");
    struct silt_entry entry = test_entry(42);
    refused(&entry, SILT_ERR_CORRUPT, "1893456000042-1: its place lies in a damaged segment");
    entry = test_entry(65); /* it may reach as far as the next one */
    refused(&entry, SILT_ERR_CORRUPT, "damaged");
    late(31, 35, 1); /* its neighbours take theirs */
    stream.row.watermark = stream.row.custody = test_entry_id(90);
    late(81, 90, 3);
    teardown();
}
END_TEST

START_TEST(insert__refuses_to_rewrite_what_does_not_decode)
{
    setup(NULL);
    segment(11, 29, 2);
    segment(41, 59, 2);
    damage(41, NULL);
    struct silt_entry entry = test_entry(42);
    refused(&entry, SILT_ERR_CORRUPT, "");
    teardown();
}
END_TEST

#ifdef SILT_FAULTPOINTS
START_TEST(insert__proof_notices_damage_after_encoding)
{
    setenv("SILT_FAULT", "insert-corrupt-encoded=fail", 1);
    setup(NULL);
    segment(11, 29, 2);
    struct silt_entry entry = test_entry(20);
    refused(&entry, SILT_ERR_PROOF, "does not decode to what was there and is new");
    teardown();
}
END_TEST
#define FAULT_TESTS , insert__proof_notices_damage_after_encoding
#else
#define FAULT_TESTS
#endif

/* ---- memory ---- */

START_TEST(insert__every_refused_allocation_is_survived)
{
    struct test_heap heap;
    setup("EVT");
    segment(1, 601, 2);
    segment(1001, 1010, 1);
    for (size_t n = 1;; n++) {
        struct silt_insert *mine = NULL;
        silt_batch_clear(archive.batch);
        struct silt_late_row row = {stream.row.life, 7, {5, 0}};
        ck_assert_int_eq(silt_batch_late(archive.batch, &row), SILT_OK);
        test_heap_start(&heap, n);
        enum silt_status status = silt_insert_new(1, &mine);
        if (status == SILT_OK) silt_insert_begin(mine, stream.row.life, stream.row.ns);
        for (uint64_t i = 2; status == SILT_OK && i <= 1000; i += 2) {
            struct silt_entry entry = test_entry(i);
            status = silt_insert_add(mine, &entry, NULL);
        }
        if (status == SILT_OK) status = silt_insert_apply(mine, archive.store, archive.batch, NULL);
        silt_insert_free(mine);
        test_heap_stop();
        if (heap.failed_count == 0) {
            ck_assert_int_eq(status, SILT_OK);
            break;
        }
        if (status == SILT_OK) { /* an arena that could not be joined does as well in pieces */
            ck_assert_uint_gt(silt_batch_mark(archive.batch), 1);
            continue;
        }
        ck_assert_int_eq(status, SILT_ERR_MEMORY);
        ck_assert_uint_eq(silt_batch_mark(archive.batch), 1);
        ck_assert_uint_eq(silt_batch_late_highest(archive.batch, stream.row.life), 7);
    }
    teardown();
}
END_TEST

/* ---- random histories ---- */

static uint64_t lowest_missing_from(uint64_t n)
{
    while (n <= TOP && there[n])
        n++;
    return n;
}

/* Segments with holes, then rounds of late entries anywhere below the watermark, folds between them. */
static void random_history(uint64_t salt)
{
    struct test_rng rng = test_rng(salt);
    uint64_t numbered = 0;
    setup(test_rng_chance(&rng, 50) ? "EVT" : NULL);
    for (uint64_t n = 1 + test_rng_below(&rng, 40); n < 3000;) {
        uint64_t step = 1 + test_rng_below(&rng, 4);
        uint64_t last = n + step * test_rng_below(&rng, test_rng_chance(&rng, 20) ? 400 : 30);
        if (last > 3000) break;
        segment(n, last, step);
        n = last + 1 + test_rng_below(&rng, 100);
    }
    for (int round = 0; round < 25; round++) {
        uint64_t top = stream.row.watermark.ms - test_entry_id(0).ms;
        uint64_t n = test_rng_below(&rng, top + 1), most = 1 + test_rng_below(&rng, 60);
        begin();
        while (most-- > 0 && (n = lowest_missing_from(n + 1)) <= top) {
            add_late(n);
            numbered++;
            if (test_rng_chance(&rng, 20)) n += test_rng_below(&rng, 200);
        }
        apply_and_commit();
        if (test_rng_chance(&rng, 30) && top + 20 < TOP) segment(top + 5, top + 20, 3);
        if (round % 5 == 4) check();
    }
    uint64_t highest;
    ck_assert_int_eq(silt_store_late_highest(archive.store, stream.row.life, &highest, &err),
                     SILT_OK);
    ck_assert_uint_eq(highest, numbered);
    teardown();
}

START_TEST(insert__random_histories_equal_a_sorted_array)
{
    for (uint64_t salt = 0; salt < (test_long() ? 25 : 1); salt++)
        random_history(7 + salt);
}
END_TEST

TEST_MAIN(insert__into_the_segment_that_they_fall_in, insert__between_two_into_the_one_below,
          insert__before_the_first_moves_its_key, insert__behind_the_tail_up_to_the_watermark,
          insert__between_full_ones_into_one_of_their_own,
          insert__behind_a_full_one_into_the_one_above, insert__into_a_full_one_and_behind_it,
          insert__into_a_life_without_segments, insert__nothing_added_nothing_done,
          insert__what_grows_too_large_is_cut_into_like_parts,
          insert__a_flood_becomes_many_segments, insert__a_huge_entry_is_a_segment,
          insert__the_fold_goes_on_in_a_tail_with_late_entries,
          insert__a_fold_of_the_older_tail_is_refused, insert__a_stale_view_is_refused,
          insert__the_same_commit_again_is_fine, insert__numbers_go_on_behind_those_in_the_batch,
          insert__refuses_what_the_archive_holds, insert__refuses_ids_that_do_not_ascend,
          insert__refuses_an_entry_that_is_too_large, insert__refuses_what_lies_below_the_fork,
          insert__the_commit_refuses_what_lies_above_the_watermark,
          insert__refuses_a_place_in_a_damaged_segment,
          insert__refuses_to_rewrite_what_does_not_decode,
          insert__every_refused_allocation_is_survived,
          insert__random_histories_equal_a_sorted_array FAULT_TESTS)
