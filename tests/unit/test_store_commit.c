/* A commit is all or nothing, and refuses what would make the archive contradict itself. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "format/store_priv.h"
#include "harness/harness.h"

static struct test_archive archive;
static struct test_stream stream;
static struct silt_err err;

static void setup(const char *ns)
{
    test_archive_open(&archive, test_path("a"), true, 0);
    test_stream_new(&archive, &stream, "s", ns);
    test_fold(&archive, &stream, 11, 20);
    test_fold(&archive, &stream, 31, 40);
}

static uint64_t entries_in(const char *name)
{
    struct silt_stream found = {0};
    uint64_t count = 0;
    if (silt_store_stream(archive.store, silt_view_str(name), &found, NULL) == SILT_OK)
        count = found.row.folded_entries;
    silt_stream_release(&found);
    return count;
}

/* The commit is refused with the code, and what stood there before still stands, nothing beside it. */
static void refused(enum silt_status code)
{
    struct silt_stream found = {0};
    struct silt_store_space before, after;
    ck_assert_int_eq(silt_store_space(archive.store, &before, NULL), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), code);
    ck_assert_int_eq(err.code, code);
    ck_assert_int_ne(err.sentence[0], '\0');
    ck_assert_int_eq(silt_store_stream(archive.store, silt_view_str("s"), &found, NULL), SILT_OK);
    ck_assert(silt_wire_id_equal(found.row.watermark, test_entry_id(40)));
    ck_assert_uint_eq(found.row.folded_entries, 20);
    ck_assert_int_eq(silt_store_stream_after(archive.store, stream.row.number, &found, NULL),
                     SILT_END);
    ck_assert_int_eq(silt_store_space(archive.store, &after, NULL), SILT_OK);
    ck_assert_uint_eq(before.used_bytes, after.used_bytes);
    silt_stream_release(&found);
}

static void check_refused_segment(uint64_t first, uint64_t last, bool replaces)
{
    setup(NULL);
    silt_batch_clear(archive.batch);
    test_fold_add(&archive, &stream, first, last, replaces);
    refused(SILT_ERR_PROTECTED);
    ck_assert_str_eq(err.stream, "s");
    test_archive_close(&archive);
}

START_TEST(store_commit__refuses_overlap_with_the_segment_below)
{
    check_refused_segment(20, 25, false);
}
END_TEST

START_TEST(store_commit__refuses_overlap_with_the_segment_above)
{
    check_refused_segment(25, 31, false);
}
END_TEST

START_TEST(store_commit__refuses_a_segment_around_another)
{
    check_refused_segment(5, 50, false);
}
END_TEST

START_TEST(store_commit__refuses_a_segment_inside_another)
{
    check_refused_segment(33, 35, false);
}
END_TEST

START_TEST(store_commit__refuses_another_segment_under_the_same_id)
{
    check_refused_segment(31, 41, false);
}
END_TEST

START_TEST(store_commit__refuses_to_replace_what_is_not_there)
{
    check_refused_segment(41, 50, true);
}
END_TEST

START_TEST(store_commit__refuses_a_replacement_that_holds_less)
{
    check_refused_segment(31, 39, true);
}
END_TEST

START_TEST(store_commit__refuses_a_replacement_with_fewer_entries)
{
    setup(NULL);
    struct silt_segment_info info;
    struct silt_buf value = {0};
    silt_segment_builder_begin(archive.builder, stream.row.life, stream.row.ns);
    struct silt_entry first = test_entry(31);
    ck_assert_int_eq(silt_segment_builder_add(archive.builder, &first), SILT_OK);
    struct silt_entry last = test_entry(41);
    ck_assert_int_eq(silt_segment_builder_add(archive.builder, &last), SILT_OK);
    ck_assert_int_eq(silt_segment_builder_finish(archive.builder, &value, &info), SILT_OK);
    stream.row.watermark = stream.row.custody = test_entry_id(41);
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_batch_segment(archive.batch, &info, silt_buf_view(&value), true),
                     SILT_OK);
    refused(SILT_ERR_PROTECTED);
    silt_buf_release(&value);
    test_archive_close(&archive);
}
END_TEST

/* A valid segment with a row that is changed just before it is added. */
static void check_refused_row(void (*change)(struct silt_stream_row *row))
{
    setup("EVT");
    test_segment_make(&archive, &stream, 41, 50);
    stream.row.watermark = stream.row.custody = test_entry_id(50);
    change(&stream.row);
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(
        silt_batch_segment(archive.batch, &archive.info, silt_buf_view(&archive.value), false),
        SILT_OK);
    refused(SILT_ERR_PROTECTED);
    test_archive_close(&archive);
}

static void lower_watermark(struct silt_stream_row *row)
{
    row->watermark = row->custody = test_entry_id(49);
}
START_TEST(store_commit__refuses_a_segment_above_its_watermark)
{
    check_refused_row(lower_watermark);
}
END_TEST

static void watermark_back(struct silt_stream_row *row)
{
    row->watermark = row->custody = test_entry_id(39);
}
START_TEST(store_commit__refuses_a_watermark_that_goes_back)
{
    check_refused_row(watermark_back);
    ck_assert_ptr_nonnull(strstr(err.sentence, "watermark would go back"));
}
END_TEST

static void forget_folds(struct silt_stream_row *row)
{
    row->folded_any = false;
}
START_TEST(store_commit__refuses_a_row_that_forgets_its_folds)
{
    check_refused_row(forget_folds);
}
END_TEST

static void custody_above(struct silt_stream_row *row)
{
    row->custody = test_entry_id(51);
}
START_TEST(store_commit__refuses_custody_above_the_watermark)
{
    check_refused_row(custody_above);
}
END_TEST

static void other_name(struct silt_stream_row *row)
{
    row->name = silt_view_str("other");
}
START_TEST(store_commit__refuses_a_number_under_another_name)
{
    check_refused_row(other_name);
}
END_TEST

static void other_kind(struct silt_stream_row *row)
{
    memset(&row->ns, 0, sizeof row->ns);
}
START_TEST(store_commit__refuses_another_kind_of_id)
{
    check_refused_row(other_kind);
}
END_TEST

static void life_of_nobody(struct silt_stream_row *row)
{
    row->life = 77;
}
START_TEST(store_commit__refuses_a_life_that_was_never_given_out)
{
    check_refused_row(life_of_nobody);
}
END_TEST

static void number_of_nobody(struct silt_stream_row *row)
{
    row->number = 77;
}
START_TEST(store_commit__refuses_a_number_that_was_never_given_out)
{
    check_refused_row(number_of_nobody);
}
END_TEST

START_TEST(store_commit__refuses_two_streams_of_one_name)
{
    struct test_stream twin;
    setup(NULL);
    test_stream_new(&archive, &twin, "s", NULL);
    silt_batch_clear(archive.batch);
    test_fold_add(&archive, &twin, 1, 5, false);
    refused(SILT_ERR_PROTECTED);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__refuses_a_segment_without_its_row)
{
    setup(NULL);
    test_segment_make(&archive, &stream, 41, 50);
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(
        silt_batch_segment(archive.batch, &archive.info, silt_buf_view(&archive.value), false),
        SILT_OK);
    refused(SILT_ERR_PROTECTED);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__refuses_a_value_that_is_not_what_it_is_said_to_be)
{
    setup(NULL);
    test_segment_make(&archive, &stream, 41, 50);
    stream.row.watermark = test_entry_id(60);
    archive.info.last = test_entry_id(60);
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(
        silt_batch_segment(archive.batch, &archive.info, silt_buf_view(&archive.value), false),
        SILT_OK);
    refused(SILT_ERR_PROTECTED);
    silt_batch_clear(archive.batch);
    archive.value.at[6] ^= 1;
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(
        silt_batch_segment(archive.batch, &archive.info, silt_buf_view(&archive.value), false),
        SILT_OK);
    ck_assert_int_ne(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    ck_assert_uint_eq(entries_in("s"), 20);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__one_refusal_refuses_all_of_the_batch)
{
    struct test_stream good;
    setup(NULL);
    test_stream_new(&archive, &good, "good", NULL);
    silt_batch_clear(archive.batch);
    test_fold_add(&archive, &good, 1, 5, false);
    test_fold_add(&archive, &stream, 20, 25, false);
    refused(SILT_ERR_PROTECTED);
    silt_batch_clear(archive.batch); /* and the good one goes through alone afterwards */
    good.row.folded_any = false;
    memset(&good.row.watermark, 0, sizeof good.row.watermark);
    good.row.folded_entries = 0;
    test_fold_add(&archive, &good, 1, 5, false);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    ck_assert_uint_eq(entries_in("good"), 5);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__an_open_tail_grows_and_new_segments_follow)
{
    char wrong[200];
    test_archive_open(&archive, test_path("a"), true, 0);
    test_stream_new(&archive, &stream, "s", "EVT");
    test_fold(&archive, &stream, 1, 20);
    silt_batch_clear(archive.batch);
    test_fold_add(&archive, &stream, 1, 30, true);
    test_fold_add(&archive, &stream, 31, 33, false);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    ck_assert_uint_eq(test_archive_count(archive.store, "s", wrong), 33);
    ck_assert_str_eq(wrong, "");
    ck_assert_uint_eq(entries_in("s"), 33);
    test_archive_close(&archive);
}
END_TEST

/* Rule 15: the same id with the same bytes is done already. */
START_TEST(store_commit__the_same_batch_twice_is_success)
{
    char wrong[200];
    test_archive_open(&archive, test_path("a"), true, 0);
    test_stream_new(&archive, &stream, "s", NULL);
    test_fold(&archive, &stream, 1, 20);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    ck_assert_uint_eq(test_archive_count(archive.store, "s", wrong), 20);
    test_archive_close(&archive);
}
END_TEST

/* ---- one segment makes way for several ---- */

struct made {
    struct silt_buf value[3];
    struct silt_batch_part parts[3];
    size_t count;
};

/* One more part, of the entries first..last. */
static void part(struct made *made, uint64_t first, uint64_t last)
{
    struct silt_buf *value = &made->value[made->count];
    test_segment_make(&archive, &stream, first, last);
    ck_assert_int_eq(silt_buf_put(value, archive.value.at, archive.value.len), SILT_OK);
    made->parts[made->count++] = (struct silt_batch_part){archive.info, silt_buf_view(value)};
}

/* The segment of entries 31..40 gives way to the parts. */
static void replace(struct made *made)
{
    struct silt_buf old = {0};
    struct silt_segment_info info;
    ck_assert_int_eq(silt_store_segment(archive.store, stream.row.life, stream.row.ns,
                                        test_entry_id(31), SILT_SEEK_FORWARD, &old, &info, &err),
                     SILT_OK);
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_batch_replace(archive.batch, &info, silt_checksum(silt_buf_view(&old), 0),
                                        made->parts, made->count),
                     SILT_OK);
    silt_buf_release(&old);
    for (size_t i = 0; i < 3; i++)
        silt_buf_release(&made->value[i]);
}

static void check_refused_parts(size_t count, uint64_t ranges[][2], const char *what)
{
    struct made made = {0};
    setup(NULL);
    for (size_t i = 0; i < count; i++)
        part(&made, ranges[i][0], ranges[i][1]);
    replace(&made);
    refused(SILT_ERR_PROTECTED);
    ck_assert_msg(strstr(err.sentence, what) != NULL, "%s", err.sentence);
    ck_assert_str_eq(err.stream, "s");
    test_archive_close(&archive);
}

START_TEST(store_commit__one_segment_makes_way_for_several)
{
    struct made made = {0};
    struct silt_segment_info info;
    struct silt_buf value = {0};
    setup("EVT");
    part(&made, 25, 30);
    part(&made, 31, 35);
    part(&made, 36, 40);
    replace(&made);
    for (int i = 0; i < 2;
         i++) /* and once more: nobody knows what became of a commit that failed last */
        ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    for (uint64_t n = 25, last = 30; n <= 36; n = last + 1, last = n + 4) {
        ck_assert_int_eq(silt_store_segment(archive.store, stream.row.life, stream.row.ns,
                                            test_entry_id(n), SILT_SEEK_FORWARD, &value, &info,
                                            &err),
                         SILT_OK);
        ck_assert(silt_wire_id_equal(info.first, test_entry_id(n)));
        ck_assert(silt_wire_id_equal(info.last, test_entry_id(last)));
    }
    silt_buf_release(&value);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__refuses_parts_that_begin_higher)
{
    check_refused_parts(1, (uint64_t[][2]){{32, 40}}, "holds less than what it replaces");
}
END_TEST

START_TEST(store_commit__refuses_parts_that_end_lower)
{
    check_refused_parts(1, (uint64_t[][2]){{22, 39}}, "holds less than what it replaces");
}
END_TEST

START_TEST(store_commit__refuses_parts_with_fewer_entries)
{
    check_refused_parts(2, (uint64_t[][2]){{31, 33}, {35, 40}}, "holds less than what it replaces");
}
END_TEST

START_TEST(store_commit__refuses_parts_that_overlap_each_other)
{
    check_refused_parts(2, (uint64_t[][2]){{31, 36}, {36, 40}}, "overlap the segment below");
}
END_TEST

START_TEST(store_commit__refuses_parts_that_overlap_the_segment_below)
{
    check_refused_parts(2, (uint64_t[][2]){{20, 30}, {31, 40}}, "overlap the segment below");
}
END_TEST

START_TEST(store_commit__refuses_parts_above_the_watermark)
{
    check_refused_parts(2, (uint64_t[][2]){{31, 40}, {41, 45}}, "above its stream's watermark");
}
END_TEST

START_TEST(store_commit__refuses_parts_that_overlap_the_segment_above)
{
    struct made made = {0};
    setup(NULL);
    test_fold(&archive, &stream, 51, 60);
    part(&made, 31, 51);
    replace(&made);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_ERR_PROTECTED);
    ck_assert_ptr_nonnull(strstr(err.sentence, "overlap the segment above"));
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__refuses_to_replace_what_has_changed)
{
    struct made made = {0};
    setup(NULL);
    part(&made, 31, 40);
    made.parts[0].info.first = test_entry_id(31);
    replace(&made);
    /* The same range and count, another byte of the value: what was read is not what stands there. */
    silt_batch_clear(archive.batch);
    struct silt_segment_info info = made.parts[0].info;
    test_segment_make(&archive, &stream, 30, 40);
    struct silt_batch_part larger = {archive.info, silt_buf_view(&archive.value)};
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_batch_replace(archive.batch, &info, 7, &larger, 1), SILT_OK);
    refused(SILT_ERR_PROTECTED);
    ck_assert_ptr_nonnull(strstr(err.sentence, "has changed since it was read"));
    /* And one that is not there at all. */
    silt_batch_clear(archive.batch);
    info.first = info.last = test_entry_id(30);
    info.count = 1;
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_batch_replace(archive.batch, &info, 7, &larger, 1), SILT_OK);
    refused(SILT_ERR_PROTECTED);
    ck_assert_int_eq(silt_batch_replace(archive.batch, &info, 7, &larger, 0), SILT_ERR_USAGE);
    test_archive_close(&archive);
}
END_TEST

/* Whatever a damaged segment below holds, one that begins no lower than before overlaps no more of it. */
START_TEST(store_commit__a_damaged_neighbour_does_not_stop_a_replacement)
{
    struct made made = {0};
    setup(NULL);
    struct silt_key key = silt_key_segment(stream.row.life, stream.row.ns, test_entry_id(11));
    struct silt_kv_txn *txn;
    bool resized;
    part(&made, 31, 40);
    replace(&made);
    ck_assert_int_eq(silt_kv_write_begin(archive.store->env->kv, &txn, &resized, NULL), SILT_OK);
    ck_assert_int_eq(
        silt_kv_put(txn, SILT_DB_SEGMENTS, silt_key_view(&key), silt_view_str("damaged"), NULL),
        SILT_OK);
    ck_assert_int_eq(silt_kv_commit(txn, NULL), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    made = (struct made){0};
    part(&made, 30, 40);
    replace(&made);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_ERR_CORRUPT);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__a_new_life_starts_its_own_watermark)
{
    uint64_t parent;
    setup(NULL);
    parent = stream.row.life;
    ck_assert_int_eq(silt_store_new_life(archive.store, &stream.row.life, NULL), SILT_OK);
    stream.row.watermark = stream.row.custody = (struct silt_wire_id){0, 0};
    stream.row.folded_any = false;
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(
        silt_batch_fork(archive.batch, &(struct silt_fork_row){stream.row.life, stream.row.number,
                                                               parent, test_entry_id(15), 1}),
        SILT_OK);
    test_fold_add(&archive, &stream, 15, 18, false);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    stream.row.life = parent; /* and nobody goes back to the old one */
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_ERR_PROTECTED);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__a_damaged_neighbour_does_not_stop_the_stream)
{
    setup(NULL);
    struct silt_key key = silt_key_segment(stream.row.life, stream.row.ns, test_entry_id(31));
    struct silt_kv_txn *txn;
    bool resized;
    ck_assert_int_eq(silt_kv_write_begin(archive.store->env->kv, &txn, &resized, NULL), SILT_OK);
    ck_assert_int_eq(
        silt_kv_put(txn, SILT_DB_SEGMENTS, silt_key_view(&key), silt_view_str("damaged"), NULL),
        SILT_OK);
    ck_assert_int_eq(silt_kv_commit(txn, NULL), SILT_OK);
    test_fold(&archive, &stream, 41, 50); /* above the old watermark: nothing can lie there */
    silt_batch_clear(archive.batch);
    test_fold_add(&archive, &stream, 35, 38, false);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_ERR_CORRUPT);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__rows_that_never_change_are_never_changed)
{
    uint64_t life;
    setup(NULL);
    ck_assert_int_eq(silt_store_new_life(archive.store, &life, NULL), SILT_OK);
    struct silt_late_row late = {stream.row.life, 1, {5, 0}};
    struct silt_fork_row fork_row = {life, stream.row.number, stream.row.life, {5, 0}, 1};
    for (int i = 0; i < 2; i++) { /* the same again is fine */
        silt_batch_clear(archive.batch);
        ck_assert_int_eq(silt_batch_late(archive.batch, &late), SILT_OK);
        ck_assert_int_eq(silt_batch_fork(archive.batch, &fork_row), SILT_OK);
        ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    }
    silt_batch_clear(archive.batch);
    late.id.ms = 6;
    ck_assert_int_eq(silt_batch_late(archive.batch, &late), SILT_OK);
    refused(SILT_ERR_PROTECTED);
    silt_batch_clear(archive.batch);
    fork_row.fork.ms = 6;
    ck_assert_int_eq(silt_batch_fork(archive.batch, &fork_row), SILT_OK);
    refused(SILT_ERR_PROTECTED);
    test_archive_close(&archive);
}
END_TEST

/* F1: a map of one MiB and much more data. */
START_TEST(store_commit__the_map_grows)
{
    char wrong[200];
    struct silt_store_space space;
    test_archive_open(&archive, test_path("a"), true, 1 << 20);
    test_stream_new(&archive, &stream, "s", NULL);
    for (uint64_t i = 0; i < 40; i++)
        test_fold(&archive, &stream, i * 1000 + 1, i * 1000 + 1000);
    ck_assert_int_eq(silt_store_space(archive.store, &space, NULL), SILT_OK);
    ck_assert_uint_gt(space.file_bytes, 2 << 20);
    ck_assert_uint_eq(test_archive_count(archive.store, "s", wrong), 40000);
    ck_assert_str_eq(wrong, "");
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__at_the_limit_nothing_is_lost_and_a_higher_limit_helps)
{
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    char wrong[200];
    uint64_t n = 0;
    enum silt_status status;
    test_archive_open(&archive, test_path("a"), true, 1 << 20);
    silt_store_close(archive.store);
    options.write = true;
    options.map_initial_bytes = options.map_limit_bytes = 1 << 20;
    ck_assert_int_eq(silt_store_open(test_path("a"), &options, &archive.store, NULL), SILT_OK);
    test_stream_new(&archive, &stream, "s", NULL);
    test_fold(&archive, &stream, 1, 500);
    n = 500;
    do {
        silt_batch_clear(archive.batch);
        test_fold_add(&archive, &stream, n + 1, n + 500, false);
        status = silt_store_commit(archive.store, archive.batch, &err);
        if (status == SILT_OK) n += 500;
    } while (status == SILT_OK && n < 100000);
    ck_assert_int_eq(status, SILT_ERR_MAP_FULL);
    ck_assert_ptr_nonnull(strstr(err.sentence, "1048576"));
    ck_assert_ptr_nonnull(strstr(err.hint, "map-limit"));
    ck_assert_int_eq(silt_status_class(status), SILT_CLASS_FULL);
    ck_assert_uint_eq(test_archive_count(archive.store, "s", wrong), n);
    ck_assert_str_eq(wrong, "");
    silt_store_close(archive.store);
    options.map_limit_bytes = 1 << 24;
    ck_assert_int_eq(silt_store_open(test_path("a"), &options, &archive.store, NULL), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    ck_assert_uint_eq(test_archive_count(archive.store, "s", wrong), n + 500);
    ck_assert_str_eq(wrong, "");
    test_archive_close(&archive);
}
END_TEST

/* E6: a full disk, by a limit of the file's size with the signal ignored. */
START_TEST(store_commit__a_full_disk_is_told_as_such_and_passes)
{
    char wrong[200];
    uint64_t n = 20;
    enum silt_status status = SILT_OK;
    struct rlimit before, limit;
    test_archive_open(&archive, test_path("a"), true, 0);
    test_stream_new(&archive, &stream, "s", NULL);
    test_fold(&archive, &stream, 1, 20);
    struct test_stream good = stream;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 300000;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    while (status == SILT_OK && n < 20000) {
        good = stream;
        good.row.name = silt_view_str(good.name);
        silt_batch_clear(archive.batch);
        test_fold_add(&archive, &stream, n + 1, n + 500, false);
        status = silt_store_commit(archive.store, archive.batch, &err);
        if (status == SILT_OK) n += 500;
    }
    ck_assert_int_eq(status, SILT_ERR_DISK_FULL);
    ck_assert_ptr_nonnull(strstr(err.sentence, "no space"));
    ck_assert_uint_eq(test_archive_count(archive.store, "s", wrong), n);
    ck_assert_str_eq(wrong, "");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err),
                     SILT_OK); /* the same batch */
    ck_assert_uint_eq(test_archive_count(archive.store, "s", wrong), n + 500);
    ck_assert_str_eq(wrong, "");
    test_archive_close(&archive);
}
END_TEST

#ifdef SILT_FAULTPOINTS
/* E3: never retry and go on. */
START_TEST(store_commit__a_failed_sync_is_final_until_opened_again)
{
    char wrong[200];
    struct silt_meta_row meta;
    setup(NULL); /* three passages: the first file and two folds */
    struct silt_store *reader = test_store_reader(test_path("a"));
    silt_batch_clear(archive.batch);
    test_fold_add(&archive, &stream, 41, 50, false);
    setenv("SILT_FAULT", "store-sync-fails:4=fail", 1);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_ERR_STORE_LOST);
    unsetenv("SILT_FAULT");
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err),
                         SILT_ERR_STORE_LOST);
    ck_assert_int_eq(silt_store_meta(archive.store, &meta, &err), SILT_ERR_STORE_LOST);
    ck_assert_int_eq(silt_store_meta(reader, &meta, &err), SILT_ERR_STORE_LOST);
    struct silt_store *fresh = test_store_reader(test_path("a")); /* reads what is on the disk */
    ck_assert_int_eq(silt_store_meta(fresh, &meta, &err), SILT_OK);
    ck_assert_int_eq(silt_store_meta(reader, &meta, &err), SILT_ERR_STORE_LOST);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_ERR_STORE_LOST);
    silt_store_close(reader);
    silt_store_close(fresh);
    test_archive_close(&archive);
    test_archive_open(&archive, test_path("a"), true, 0);
    ck_assert_uint_eq(entries_in("s"), 20);
    test_archive_count(archive.store, "s", wrong);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__failures_before_and_inside_change_nothing)
{
    static const char *const points[] = {"store-before-commit:3=fail", "store-in-commit:3=fail"};
    setup(NULL); /* two passages of each point */
    silt_batch_clear(archive.batch);
    test_fold_add(&archive, &stream, 41, 50, false);
    for (int i = 0; i < 2; i++) {
        setenv("SILT_FAULT", points[i], 1);
        refused(SILT_ERR_DISK_FULL);
    }
    unsetenv("SILT_FAULT");
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    ck_assert_uint_eq(entries_in("s"), 30);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_commit__an_unknown_outcome_is_read_again_after_opening)
{
    setup(NULL);
    silt_batch_clear(archive.batch);
    test_fold_add(&archive, &stream, 41, 50, false);
    setenv("SILT_FAULT", "store-after-commit:3=fail", 1);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_ERR_STORE_LOST);
    unsetenv("SILT_FAULT");
    test_archive_close(&archive);
    test_archive_open(&archive, test_path("a"), true, 0);
    ck_assert_uint_eq(entries_in("s"), 30);
    test_archive_close(&archive);
}
END_TEST

#define FAULT_TESTS                                              \
    , store_commit__a_failed_sync_is_final_until_opened_again,   \
        store_commit__failures_before_and_inside_change_nothing, \
        store_commit__an_unknown_outcome_is_read_again_after_opening
#else
#define FAULT_TESTS
#endif

TEST_MAIN(
    store_commit__one_segment_makes_way_for_several, store_commit__refuses_parts_that_begin_higher,
    store_commit__refuses_parts_that_end_lower, store_commit__refuses_parts_with_fewer_entries,
    store_commit__refuses_parts_that_overlap_each_other,
    store_commit__refuses_parts_that_overlap_the_segment_below,
    store_commit__refuses_parts_above_the_watermark,
    store_commit__refuses_parts_that_overlap_the_segment_above,
    store_commit__refuses_to_replace_what_has_changed,
    store_commit__a_damaged_neighbour_does_not_stop_a_replacement,
    store_commit__refuses_overlap_with_the_segment_below,
    store_commit__refuses_overlap_with_the_segment_above,
    store_commit__refuses_a_segment_around_another, store_commit__refuses_a_segment_inside_another,
    store_commit__refuses_another_segment_under_the_same_id,
    store_commit__refuses_to_replace_what_is_not_there,
    store_commit__refuses_a_replacement_that_holds_less,
    store_commit__refuses_a_replacement_with_fewer_entries,
    store_commit__refuses_a_segment_above_its_watermark,
    store_commit__refuses_a_watermark_that_goes_back,
    store_commit__refuses_a_row_that_forgets_its_folds,
    store_commit__refuses_custody_above_the_watermark,
    store_commit__refuses_a_number_under_another_name, store_commit__refuses_another_kind_of_id,
    store_commit__refuses_a_life_that_was_never_given_out,
    store_commit__refuses_a_number_that_was_never_given_out,
    store_commit__refuses_two_streams_of_one_name, store_commit__refuses_a_segment_without_its_row,
    store_commit__refuses_a_value_that_is_not_what_it_is_said_to_be,
    store_commit__one_refusal_refuses_all_of_the_batch,
    store_commit__an_open_tail_grows_and_new_segments_follow,
    store_commit__the_same_batch_twice_is_success,
    store_commit__a_new_life_starts_its_own_watermark,
    store_commit__a_damaged_neighbour_does_not_stop_the_stream,
    store_commit__rows_that_never_change_are_never_changed, store_commit__the_map_grows,
    store_commit__at_the_limit_nothing_is_lost_and_a_higher_limit_helps,
    store_commit__a_full_disk_is_told_as_such_and_passes FAULT_TESTS)
