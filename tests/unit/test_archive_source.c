/* Entries out of the store: ranges, directions, rewritten tails, forks, damage, counts; each compared with a sorted array. */
#include "alloc.h"
#include "harness/harness.h"
#include "harness/mini.h"
#include "mergeread/archive_source.h"

static struct test_mini mini;
static struct test_oracle oracle;
static struct silt_archive_source *source;
static struct silt_err err;

static struct silt_wire_id id(uint64_t ms)
{
    return (struct silt_wire_id){ms, 0};
}

/* Entries 10, 20, ... in segments of `per` entries each. */
static void fill(uint64_t from, size_t count, size_t per)
{
    struct silt_field field = {silt_view_str("n"), silt_view_str("value")};
    struct silt_entry entries[64];
    for (size_t done = 0; done < count;) {
        size_t n = 0;
        for (; n < per && done < count; n++, done++) {
            entries[n] = (struct silt_entry){id(from + 10 * done), &field, 1};
            test_oracle_add(&oracle, &entries[n]);
        }
        mini.seal = true;
        test_mini_fold_entries(&mini, entries, n);
    }
}

static void start(void)
{
    test_mini_open(&mini, test_path("archive"), NULL, "s", NULL);
    ck_assert_int_eq(silt_archive_source_new(mini.store, &source), SILT_OK);
}

static void stop(void)
{
    silt_archive_source_free(source);
    test_mini_close(&mini);
    test_oracle_release(&oracle);
}

static void seek(struct silt_wire_id from, struct silt_wire_id to, bool reverse)
{
    ck_assert_int_eq(silt_archive_source_seek(source, mini.row.life, mini.row.ns,
                                              (struct silt_range){from, to}, reverse, &err),
                     SILT_OK);
}

static void walk(struct silt_wire_id from, struct silt_wire_id to, bool reverse)
{
    struct silt_archive_entry entry;
    struct silt_range damaged;
    struct test_walk expected;
    test_walk_start(&expected, &oracle, from, to, reverse);
    seek(from, to, reverse);
    enum silt_status status;
    while ((status = silt_archive_source_next(source, &entry, &damaged, &err)) == SILT_OK)
        ck_assert_msg(test_walk_take(&expected, &entry.entry), "%s", expected.difference);
    ck_assert_int_eq(status, SILT_END);
    ck_assert_msg(test_walk_finish(&expected, 0), "%s", expected.difference);
    ck_assert_int_eq(silt_archive_source_next(source, &entry, &damaged, &err), SILT_END);
}

static uint64_t next_ms(void)
{
    struct silt_archive_entry entry;
    struct silt_range damaged;
    enum silt_status status = silt_archive_source_next(source, &entry, &damaged, &err);
    return status == SILT_OK ? entry.entry.id.ms : status == SILT_END ? 0 : UINT64_MAX;
}

START_TEST(archive_source__empty_life_is_at_its_end)
{
    start();
    walk(SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, false);
    walk(SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, true);
    stop();
}
END_TEST

START_TEST(archive_source__gives_every_range_in_both_directions)
{
    start();
    fill(10, 12, 4);
    for (uint64_t from = 5; from <= 130; from += 5)
        for (uint64_t to = from; to <= 130; to += 5) {
            walk(id(from), id(to), false);
            walk(id(from), id(to), true);
        }
    walk(SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, false);
    walk(SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, true);
    stop();
}
END_TEST

START_TEST(archive_source__reseek_forgets_what_was_read_ahead)
{
    start();
    fill(10, 12, 4);
    seek(id(0), SILT_WIRE_ID_MAX, false);
    ck_assert_uint_eq(next_ms(), 10);
    seek(id(100), SILT_WIRE_ID_MAX, false);
    ck_assert_uint_eq(next_ms(), 100);
    seek(id(0), id(45), true);
    ck_assert_uint_eq(next_ms(), 40);
    ck_assert_uint_eq(next_ms(), 30);
    ck_assert_int_eq(silt_archive_source_seek(source, mini.row.life, mini.row.ns,
                                              (struct silt_range){id(9), id(8)}, false, &err),
                     SILT_ERR_WINDOW);
    ck_assert_uint_eq(next_ms(), 0);
    stop();
}
END_TEST

START_TEST(archive_source__goes_on_in_a_tail_that_was_rewritten)
{
    start();
    fill(10, 4, 4);
    seek(id(0), SILT_WIRE_ID_MAX, false);
    for (uint64_t ms = 10; ms <= 40; ms += 10)
        ck_assert_uint_eq(next_ms(), ms);
    struct silt_field field = {silt_view_str("n"), silt_view_str("later")};
    struct silt_entry more = {id(50), &field, 1};
    test_mini_fold_entries(&mini, &more, 1); /* the same segment, one longer */
    ck_assert_uint_eq(next_ms(), 50);
    ck_assert_uint_eq(next_ms(), 0);
    stop();
}
END_TEST

START_TEST(archive_source__reads_the_parent_below_the_fork)
{
    struct silt_archive_entry entry;
    struct silt_range damaged;
    start();
    fill(10, 8, 4); /* 10 ... 80 */
    uint64_t parent = mini.row.life;
    test_mini_fork(&mini, id(60));
    for (uint64_t ms = 60; ms <= 80; ms += 10)
        test_oracle_remove(&oracle, id(ms));
    fill(65, 3, 2); /* 65, 75, 85 */
    walk(SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, false);
    walk(SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, true);
    walk(id(50), id(65), false);
    walk(id(50), id(65), true);
    seek(id(50), SILT_WIRE_ID_MAX, false);
    ck_assert_int_eq(silt_archive_source_next(source, &entry, &damaged, &err), SILT_OK);
    ck_assert_uint_eq(entry.life, parent);
    ck_assert_int_eq(silt_archive_source_next(source, &entry, &damaged, &err), SILT_OK);
    ck_assert_uint_eq(entry.life, mini.row.life);
    ck_assert_uint_eq(entry.segment_first.ms, 65);
    /* the parent by itself still has what the child left behind */
    ck_assert_int_eq(
        silt_archive_source_seek(source, parent, mini.row.ns, SILT_RANGE_ALL, true, &err), SILT_OK);
    ck_assert_uint_eq(next_ms(), 80);
    stop();
}
END_TEST

/* One bit of the columns of the segment that begins at this id. */
static void damage(struct silt_wire_id first)
{
    struct silt_buf value = {0};
    struct silt_segment_info info;
    ck_assert_int_eq(silt_store_segment(mini.store, mini.row.life, mini.row.ns, first,
                                        SILT_SEEK_FORWARD, &value, &info, &err),
                     SILT_OK);
    value.at[value.len - 3] ^= 4;
    ck_assert_int_eq(silt_batch_segment(mini.batch, &info, silt_buf_view(&value), true), SILT_OK);
    test_mini_commit_row(&mini);
    silt_buf_release(&value);
}

static void expect_damage(uint64_t from, uint64_t to)
{
    struct silt_archive_entry entry;
    struct silt_range damaged = {0};
    err.sentence[0] = '\0';
    ck_assert_int_eq(silt_archive_source_next(source, &entry, &damaged, &err), SILT_ERR_CORRUPT);
    ck_assert_uint_eq(damaged.from.ms, from);
    ck_assert_uint_eq(damaged.to.ms, to);
    char text[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(damaged.from, text);
    ck_assert_ptr_nonnull(strstr(err.sentence, text));
}

START_TEST(archive_source__damage_costs_one_segment)
{
    start();
    fill(10, 12, 4); /* 10-40, 50-80, 90-120 */
    damage(id(50));
    seek(id(30), SILT_WIRE_ID_MAX, false);
    ck_assert_uint_eq(next_ms(), 30);
    ck_assert_uint_eq(next_ms(), 40);
    expect_damage(50, 80);
    ck_assert_uint_eq(next_ms(), 90);
    seek(id(60), id(95), true);
    ck_assert_uint_eq(next_ms(), 90);
    expect_damage(60, 80);
    ck_assert_uint_eq(next_ms(), 0);
    seek(id(55), id(70), false);
    expect_damage(55, 70);
    ck_assert_uint_eq(next_ms(), 0);
    stop();
}
END_TEST

static void count(struct silt_wire_id from, struct silt_wire_id to)
{
    uint64_t got = UINT64_MAX;
    struct silt_range damaged;
    ck_assert_int_eq(silt_archive_count(source, mini.row.life, mini.row.ns,
                                        (struct silt_range){from, to}, &got, &damaged, &err),
                     SILT_OK);
    ck_assert_uint_eq(got, test_oracle_count(&oracle, from, to));
}

START_TEST(archive_source__counts_every_range)
{
    start();
    count(SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX);
    fill(10, 12, 4);
    test_mini_fork(&mini, id(105));
    test_oracle_remove(&oracle, id(110));
    test_oracle_remove(&oracle, id(120));
    fill(107, 5, 2);
    for (uint64_t from = 5; from <= 150; from += 4)
        for (uint64_t to = from; to <= 150; to += 3)
            count(id(from), id(to));
    count(SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX);
    stop();
}
END_TEST

START_TEST(archive_source__count_names_damage_at_an_edge)
{
    uint64_t got = 0;
    struct silt_range damaged = {0};
    start();
    fill(10, 12, 4);
    damage(id(50));
    struct silt_range range = {id(20), id(60)};
    ck_assert_int_eq(
        silt_archive_count(source, mini.row.life, mini.row.ns, range, &got, &damaged, &err),
        SILT_ERR_CORRUPT);
    ck_assert_uint_eq(got, 3);
    ck_assert_uint_eq(damaged.from.ms, 50);
    ck_assert_uint_eq(damaged.to.ms, 60);
    range.to = id(85); /* whole by its header */
    ck_assert_int_eq(
        silt_archive_count(source, mini.row.life, mini.row.ns, range, &got, &damaged, &err),
        SILT_OK);
    ck_assert_uint_eq(got, 7);
    stop();
}
END_TEST

START_TEST(archive_source__finds_the_nth_newest)
{
    struct silt_wire_id found;
    start();
    fill(10, 12, 4);
    for (uint64_t top = 5; top <= 125; top += 5) {
        size_t below = test_oracle_count(&oracle, SILT_WIRE_ID_MIN, id(top));
        for (size_t n = 1; n <= 13; n++) {
            enum silt_status status = silt_archive_nth_newest(source, mini.row.life, mini.row.ns,
                                                              id(top), n, &found, &err);
            ck_assert_int_eq(status, n <= below ? SILT_OK : SILT_END);
            if (n <= below) ck_assert(silt_wire_id_equal(found, oracle.entries[below - n]->id));
        }
    }
    ck_assert_int_eq(
        silt_archive_nth_newest(source, mini.row.life, mini.row.ns, id(9), 0, &found, &err),
        SILT_ERR_USAGE);
    stop();
}
END_TEST

START_TEST(archive_source__finds_what_fits_in_bytes)
{
    struct silt_wire_id found;
    start();
    ck_assert_int_eq(silt_archive_newest_bytes(source, mini.row.life, mini.row.ns, SILT_WIRE_ID_MAX,
                                               100, &found, &err),
                     SILT_END);
    fill(10, 12, 4);
    uint64_t each = silt_entry_bytes(oracle.entries[0]);
    for (uint64_t bytes = 0; bytes <= each * 13; bytes += 3) {
        ck_assert_int_eq(silt_archive_newest_bytes(source, mini.row.life, mini.row.ns, id(115),
                                                   bytes, &found, &err),
                         SILT_OK);
        size_t fit = bytes / each > 11 ? 11 : bytes / each;
        if (fit == 0) fit = 1; /* the newest at the most */
        ck_assert_uint_eq(found.ms, oracle.entries[11 - fit]->id.ms);
    }
    stop();
}
END_TEST

START_TEST(archive_source__allocates_per_segment_at_most)
{
    struct test_heap heap;
    struct silt_archive_entry entry;
    struct silt_range damaged;
    start();
    fill(10, 600, 60);
    seek(SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, false);
    ck_assert_uint_eq(next_ms(), 10); /* buffers have their size now */
    test_heap_start(&heap, 0);
    size_t given = 1;
    while (silt_archive_source_next(source, &entry, &damaged, &err) == SILT_OK)
        given++;
    test_heap_stop();
    ck_assert_uint_eq(given, 600);
    ck_assert_uint_le(atomic_load(&heap.request_count), 4 * 10);
    stop();
}
END_TEST

START_TEST(archive_source__running_out_of_memory_is_said)
{
    struct test_heap heap;
    start();
    fill(10, 12, 4);
    silt_archive_source_free(source);
    source = NULL;
    for (size_t n = 1;; n++) {
        test_heap_start(&heap, n);
        enum silt_status status = silt_archive_source_new(mini.store, &source);
        if (status == SILT_OK)
            status = silt_archive_source_seek(source, mini.row.life, mini.row.ns, SILT_RANGE_ALL,
                                              false, &err);
        struct silt_archive_entry entry;
        struct silt_range damaged;
        if (status == SILT_OK) status = silt_archive_source_next(source, &entry, &damaged, &err);
        test_heap_stop();
        bool failed = atomic_load(&heap.failed_count) > 0;
        ck_assert_int_eq(status, failed ? SILT_ERR_MEMORY : SILT_OK);
        silt_archive_source_free(source);
        source = NULL;
        if (!failed) break;
    }
    stop();
}
END_TEST

TEST_MAIN(archive_source__empty_life_is_at_its_end,
          archive_source__gives_every_range_in_both_directions,
          archive_source__reseek_forgets_what_was_read_ahead,
          archive_source__goes_on_in_a_tail_that_was_rewritten,
          archive_source__reads_the_parent_below_the_fork, archive_source__damage_costs_one_segment,
          archive_source__counts_every_range, archive_source__count_names_damage_at_an_edge,
          archive_source__finds_the_nth_newest, archive_source__finds_what_fits_in_bytes,
          archive_source__allocates_per_segment_at_most,
          archive_source__running_out_of_memory_is_said)
