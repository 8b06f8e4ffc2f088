/* What was committed is found again: by key, by number, by id in both directions, at every edge. */
#include <stdlib.h>

#include "format/store_priv.h"
#include "harness/harness.h"

static struct silt_store *store;
static struct test_archive archive;
static struct test_stream stream;
static struct silt_buf value;
static struct silt_segment_info info;

/* Entries 11..20, 21..30, 41..50 of one stream as three segments. */
static void three_segments(const char *ns)
{
    test_archive_open(&archive, test_path("a"), true, 0);
    test_stream_new(&archive, &stream, "s", ns);
    test_fold(&archive, &stream, 11, 20);
    test_fold(&archive, &stream, 21, 30);
    test_fold(&archive, &stream, 41, 50);
    store = archive.store;
}

static void done(void)
{
    silt_buf_release(&value);
    test_archive_close(&archive);
}

static enum silt_status seek(struct silt_wire_id id, enum silt_seek way)
{
    return silt_store_segment(store, stream.row.life, stream.row.ns, id, way, &value, &info, NULL);
}

/* Seeks and gives the number of the segment's first entry; 0: end. */
static uint64_t seek_first(struct silt_wire_id id, enum silt_seek way)
{
    enum silt_status status = seek(id, way);
    if (status == SILT_END) return 0;
    ck_assert_int_eq(status, SILT_OK);
    ck_assert_uint_eq(info.stored_bytes, value.len);
    return info.first.ms - test_entry_id(0).ms;
}

static void check_seeks(void)
{
    struct silt_wire_id before = {test_entry_id(11).ms, 0}, after = {test_entry_id(50).ms, 2};
    ck_assert_uint_eq(seek_first(SILT_WIRE_ID_MIN, SILT_SEEK_FORWARD), 11);
    ck_assert_uint_eq(seek_first(before, SILT_SEEK_FORWARD), 11);
    ck_assert_uint_eq(seek_first(test_entry_id(11), SILT_SEEK_FORWARD), 11);
    ck_assert_uint_eq(seek_first(test_entry_id(20), SILT_SEEK_FORWARD), 11);
    ck_assert_uint_eq(seek_first(test_entry_id(21), SILT_SEEK_FORWARD), 21);
    ck_assert_uint_eq(seek_first(test_entry_id(30), SILT_SEEK_FORWARD), 21);
    ck_assert_uint_eq(seek_first(test_entry_id(31), SILT_SEEK_FORWARD), 41);
    ck_assert_uint_eq(seek_first(test_entry_id(50), SILT_SEEK_FORWARD), 41);
    ck_assert_uint_eq(seek_first(after, SILT_SEEK_FORWARD), 0);
    ck_assert_uint_eq(seek_first(SILT_WIRE_ID_MAX, SILT_SEEK_FORWARD), 0);
    ck_assert_uint_eq(seek_first(SILT_WIRE_ID_MAX, SILT_SEEK_BACKWARD), 41);
    ck_assert_uint_eq(seek_first(after, SILT_SEEK_BACKWARD), 41);
    ck_assert_uint_eq(seek_first(test_entry_id(41), SILT_SEEK_BACKWARD), 41);
    ck_assert_uint_eq(seek_first(test_entry_id(40), SILT_SEEK_BACKWARD), 21);
    ck_assert_uint_eq(seek_first(test_entry_id(21), SILT_SEEK_BACKWARD), 21);
    ck_assert_uint_eq(seek_first(test_entry_id(20), SILT_SEEK_BACKWARD), 11);
    ck_assert_uint_eq(seek_first(test_entry_id(11), SILT_SEEK_BACKWARD), 11);
    ck_assert_uint_eq(seek_first(before, SILT_SEEK_BACKWARD), 0);
    ck_assert_uint_eq(seek_first(SILT_WIRE_ID_MIN, SILT_SEEK_BACKWARD), 0);
}

START_TEST(store_read__seeks_plain_segments)
{
    three_segments(NULL);
    check_seeks();
    done();
}
END_TEST

START_TEST(store_read__seeks_branded_segments)
{
    three_segments("EVT");
    check_seeks();
    done();
}
END_TEST

/* Lives on both sides must not be seen. */
START_TEST(store_read__stays_within_its_life)
{
    struct test_stream before, after;
    test_archive_open(&archive, test_path("a"), true, 0);
    test_stream_new(&archive, &before, "before", NULL);
    test_stream_new(&archive, &stream, "s", NULL);
    test_stream_new(&archive, &after, "after", NULL);
    test_fold(&archive, &before, 1, 90);
    test_fold(&archive, &after, 1, 90);
    store = archive.store;
    ck_assert_uint_eq(seek_first(test_entry_id(40), SILT_SEEK_FORWARD), 0);
    ck_assert_uint_eq(seek_first(test_entry_id(40), SILT_SEEK_BACKWARD), 0);
    test_fold(&archive, &stream, 11, 20);
    test_fold(&archive, &stream, 21, 30);
    test_fold(&archive, &stream, 41, 50);
    check_seeks();
    done();
}
END_TEST

/* Ids before the epoch, between two branded ids, and after the last one: the order of keys is the order of wire ids. */
START_TEST(store_read__branded_keys_sort_as_wire_ids)
{
    static const struct silt_wire_id ids[] = {
        {0, 1},
        {5, 0},
        {SILT_EPOCH_MS - 1, UINT64_MAX},
        {SILT_EPOCH_MS, 0},
        {SILT_EPOCH_MS, 1},
        {SILT_EPOCH_MS, SILT_TAIL_MAX},
        {SILT_EPOCH_MS, SILT_TAIL_MAX + 1},
        {SILT_EPOCH_MS, UINT64_MAX},
        {SILT_EPOCH_MS + 1, 0},
        {SILT_LAST_MS, SILT_TAIL_MAX},
        {SILT_LAST_MS, UINT64_MAX},
        {SILT_LAST_MS + 1, 0},
        {UINT64_MAX, UINT64_MAX},
    };
    struct silt_namespace ns = {"EVT"};
    struct silt_key last = {.len = 0};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        uint64_t life;
        struct silt_namespace back_ns;
        struct silt_wire_id back;
        struct silt_key key = silt_key_segment(7, ns, ids[i]);
        ck_assert_uint_eq(key.len, 8 + 14 + 16);
        ck_assert_int_lt(silt_view_compare(silt_key_view(&last), silt_key_view(&key)), 0);
        ck_assert(silt_key_segment_parse(silt_key_view(&key), &life, &back_ns, &back));
        ck_assert_uint_eq(life, 7);
        ck_assert(silt_namespace_equal(ns, back_ns));
        ck_assert(silt_wire_id_equal(back, ids[i]));
        last = key;
    }
    struct silt_key key = silt_key_segment(7, ns, ids[0]);
    ck_assert_mem_eq(key.at + 8, "EVT00000000000", 14); /* nothing branded lies below */
    key = silt_key_segment(7, ns, (struct silt_wire_id){1767225600002, 28672});
    ck_assert_mem_eq(key.at + 8, "EVT0JZGkP9S5WS", 14);
    struct silt_namespace none = {{0}};
    ck_assert_uint_eq(silt_key_segment(7, none, ids[0]).len, 8 + 16);
}
END_TEST

START_TEST(store_read__damaged_keys_are_none)
{
    uint64_t life;
    struct silt_namespace ns = {"EVT"}, back_ns;
    struct silt_wire_id back;
    struct silt_key key = silt_key_segment(7, ns, (struct silt_wire_id){1767225600002, 28672});
    for (size_t len = 0; len < key.len; len++)
        ck_assert(len == 8 + 16 ||
                  !silt_key_segment_parse(silt_view(key.at, len), &life, &back_ns, &back));
    for (size_t bit = 8 * 8; bit < key.len * 8;
         bit++) { /* the branded and the wire id must agree */
        key.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        bool parsed = silt_key_segment_parse(silt_key_view(&key), &life, &back_ns, &back);
        bool in_namespace = bit / 8 < 11;
        ck_assert(in_namespace || !parsed);
        key.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}
END_TEST

struct seen {
    size_t count;
    size_t stop_after;
    uint64_t first[8];
    enum silt_status status[8];
    struct silt_wire_id last[8];
};

static bool see(void *ctx, enum silt_status status, const struct silt_segment_info *segment)
{
    struct seen *seen = ctx;
    if (seen->count == 8) return false;
    seen->first[seen->count] = segment->first.ms - test_entry_id(0).ms;
    seen->last[seen->count] = segment->last;
    seen->status[seen->count++] = status;
    return seen->count != seen->stop_after;
}

static struct seen visit(struct silt_wire_id id, enum silt_seek way, size_t stop_after)
{
    struct seen seen = {.stop_after = stop_after};
    ck_assert_int_eq(
        silt_store_segments(store, stream.row.life, stream.row.ns, id, way, see, &seen, NULL),
        SILT_OK);
    return seen;
}

START_TEST(store_read__visits_headers_both_ways)
{
    three_segments("EVT");
    struct seen seen = visit(SILT_WIRE_ID_MIN, SILT_SEEK_FORWARD, 0);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_uint_eq(seen.first[0], 11);
    ck_assert_uint_eq(seen.first[2], 41);
    seen = visit(test_entry_id(31), SILT_SEEK_FORWARD, 0);
    ck_assert_uint_eq(seen.count, 1);
    seen = visit(SILT_WIRE_ID_MAX, SILT_SEEK_BACKWARD, 0);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_uint_eq(seen.first[0], 41);
    ck_assert_uint_eq(seen.first[2], 11);
    seen = visit(SILT_WIRE_ID_MAX, SILT_SEEK_BACKWARD, 2);
    ck_assert_uint_eq(seen.count, 2);
    seen = visit(SILT_WIRE_ID_MAX, SILT_SEEK_FORWARD, 0);
    ck_assert_uint_eq(seen.count, 0);
    done();
}
END_TEST

struct damage {
    struct silt_key key;
    struct silt_buf bytes;
};

static enum silt_status put_damage(void *ctx, struct silt_kv_txn *txn, struct silt_err *err)
{
    struct damage *damage = ctx;
    return silt_kv_put(txn, SILT_DB_SEGMENTS, silt_key_view(&damage->key),
                       silt_buf_view(&damage->bytes), err);
}

/* Flips a bit of the header of the segment that begins with entry n. */
static void damage_segment(uint64_t n)
{
    struct damage damage = {silt_key_segment(stream.row.life, stream.row.ns, test_entry_id(n)),
                            {0}};
    ck_assert_uint_eq(seek_first(test_entry_id(n), SILT_SEEK_FORWARD), n);
    ck_assert_int_eq(silt_buf_put(&damage.bytes, value.at, value.len), SILT_OK);
    damage.bytes.at[8] ^= 4;
    ck_assert_int_eq(silt_env_write(store, put_damage, &damage, NULL), SILT_OK);
    silt_buf_release(&damage.bytes);
}

START_TEST(store_read__a_damaged_header_costs_its_range_only)
{
    three_segments("EVT");
    damage_segment(21);
    /* The range goes up to the next segment's first id, since the header cannot be trusted. */
    struct silt_wire_id end;
    ck_assert(silt_wire_id_prev(test_entry_id(41), &end));
    for (uint64_t n = 21; n < 41; n++) {
        ck_assert_int_eq(seek(test_entry_id(n), SILT_SEEK_FORWARD), SILT_ERR_CORRUPT);
        ck_assert(silt_wire_id_equal(info.first, test_entry_id(21)));
        ck_assert(silt_wire_id_equal(info.last, end));
        ck_assert_int_eq(seek(test_entry_id(n), SILT_SEEK_BACKWARD), SILT_ERR_CORRUPT);
        ck_assert(silt_wire_id_equal(info.first, test_entry_id(21)));
    }
    ck_assert_uint_eq(seek_first(test_entry_id(20), SILT_SEEK_FORWARD), 11);
    ck_assert_uint_eq(seek_first(test_entry_id(41), SILT_SEEK_FORWARD), 41);
    ck_assert_uint_eq(seek_first(test_entry_id(20), SILT_SEEK_BACKWARD), 11);
    done();
}
END_TEST

START_TEST(store_read__a_damaged_last_header_reaches_to_the_end)
{
    three_segments(NULL);
    damage_segment(41);
    ck_assert_int_eq(seek(SILT_WIRE_ID_MAX, SILT_SEEK_FORWARD), SILT_ERR_CORRUPT);
    ck_assert(silt_wire_id_equal(info.first, test_entry_id(41)));
    ck_assert(silt_wire_id_equal(info.last, SILT_WIRE_ID_MAX));
    done();
}
END_TEST

START_TEST(store_read__visits_go_on_behind_a_damaged_header)
{
    three_segments("EVT");
    damage_segment(21);
    struct seen seen = visit(SILT_WIRE_ID_MIN, SILT_SEEK_FORWARD, 0);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_int_eq(seen.status[0], SILT_OK);
    ck_assert_int_eq(seen.status[1], SILT_ERR_CORRUPT);
    ck_assert_uint_eq(seen.first[1], 21);
    ck_assert_int_eq(seen.status[2], SILT_OK);
    seen = visit(SILT_WIRE_ID_MAX, SILT_SEEK_BACKWARD, 0);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_int_eq(seen.status[1], SILT_ERR_CORRUPT);
    ck_assert_uint_eq(seen.first[2], 11);
    done();
}
END_TEST

START_TEST(store_read__streams_by_key_number_and_walk)
{
    struct silt_stream found = {0};
    struct test_stream other;
    static const char odd[] = "with\0zero\xff{tag}";
    three_segments(NULL);
    test_stream_new(&archive, &other, "", NULL);
    other.row.name = silt_view(odd, sizeof odd - 1);
    test_fold(&archive, &other, 1, 5);
    ck_assert_int_eq(silt_store_stream(store, other.row.name, &found, NULL), SILT_OK);
    ck_assert_uint_eq(found.row.number, other.row.number);
    ck_assert(silt_view_equal(found.row.name, other.row.name));
    ck_assert_int_eq(silt_store_stream(store, silt_view_str("s"), &found, NULL), SILT_OK);
    ck_assert_uint_eq(found.row.number, stream.row.number);
    ck_assert(silt_wire_id_equal(found.row.watermark, test_entry_id(50)));
    ck_assert_int_eq(silt_store_stream_number(store, other.row.number, &found, NULL), SILT_OK);
    ck_assert(silt_view_equal(found.row.name, other.row.name));
    ck_assert_int_eq(silt_store_stream_after(store, 0, &found, NULL), SILT_OK);
    ck_assert_uint_eq(found.row.number, stream.row.number);
    ck_assert_int_eq(silt_store_stream_after(store, found.row.number, &found, NULL), SILT_OK);
    ck_assert_uint_eq(found.row.number, other.row.number);
    ck_assert_int_eq(silt_store_stream_after(store, found.row.number, &found, NULL), SILT_END);
    ck_assert_int_eq(silt_store_stream_after(store, UINT64_MAX, &found, NULL), SILT_END);
    silt_stream_release(&found);
    done();
}
END_TEST

START_TEST(store_read__an_unknown_stream_is_named)
{
    struct silt_stream found = {0};
    struct silt_err err;
    three_segments(NULL);
    ck_assert_int_eq(silt_store_stream(store, silt_view_str("no:such"), &found, &err),
                     SILT_ERR_UNKNOWN_STREAM);
    ck_assert_str_eq(err.stream, "no:such");
    ck_assert_int_eq(silt_store_stream_number(store, 99, &found, &err), SILT_ERR_UNKNOWN_STREAM);
    silt_stream_release(&found);
    done();
}
END_TEST

START_TEST(store_read__keys_longer_than_lmdb_takes)
{
    struct silt_stream found = {0};
    struct test_stream other;
    static char name[100000];
    three_segments(NULL);
    memset(name, 'k', sizeof name);
    test_stream_new(&archive, &other, "", NULL);
    other.row.name = silt_view(name, sizeof name);
    test_fold(&archive, &other, 1, 5);
    ck_assert_int_eq(silt_store_stream(store, other.row.name, &found, NULL), SILT_OK);
    ck_assert(silt_view_equal(found.row.name, other.row.name));
    ck_assert_int_eq(silt_store_stream(store, silt_view(name, sizeof name - 1), &found, NULL),
                     SILT_ERR_UNKNOWN_STREAM);
    silt_stream_release(&found);
    done();
}
END_TEST

struct name_row {
    struct silt_key key;
    uint64_t number;
};

static enum silt_status put_name(void *ctx, struct silt_kv_txn *txn, struct silt_err *err)
{
    struct name_row *row = ctx;
    struct silt_buf bytes = {0};
    enum silt_status status = silt_name_row_encode(row->number, silt_key_view(&row->key), &bytes);
    if (status == SILT_OK)
        status =
            silt_kv_put(txn, SILT_DB_NAMES, silt_key_view(&row->key), silt_buf_view(&bytes), err);
    silt_buf_release(&bytes);
    return status;
}

/* As if "twin" had the hash of "s" in its first round. */
START_TEST(store_read__names_that_collide_take_the_next_round)
{
    struct silt_stream found = {0};
    struct test_stream twin;
    three_segments(NULL);
    struct name_row row = {silt_key_name(silt_view_str("twin"), 0), stream.row.number};
    ck_assert_int_eq(silt_env_write(store, put_name, &row, NULL), SILT_OK);
    ck_assert_int_eq(silt_store_stream(store, silt_view_str("twin"), &found, NULL),
                     SILT_ERR_UNKNOWN_STREAM);
    test_stream_new(&archive, &twin, "twin", NULL);
    test_fold(&archive, &twin, 1, 5);
    ck_assert_int_eq(silt_store_stream(store, silt_view_str("twin"), &found, NULL), SILT_OK);
    ck_assert_uint_eq(found.row.number, twin.row.number);
    ck_assert_int_eq(silt_store_stream(store, silt_view_str("s"), &found, NULL), SILT_OK);
    ck_assert_uint_eq(found.row.number, stream.row.number);
    silt_stream_release(&found);
    done();
}
END_TEST

START_TEST(store_read__gaps_in_id_order_with_others_of_the_same_place)
{
    struct silt_gap_row gap;
    uint64_t cursor = 0;
    static const uint64_t after[] = {30, 10, 20, 20, 20};
    three_segments(NULL);
    silt_batch_clear(archive.batch);
    for (uint64_t i = 0; i < 5; i++)
        ck_assert_int_eq(
            silt_batch_gap(archive.batch,
                           &(struct silt_gap_row){.life = stream.row.life + (i == 4),
                                                  .range = {{after[i], 0}, {after[i] + 5, 0}},
                                                  .noticed_ms = i}),
            SILT_OK);
    ck_assert_int_eq(silt_store_commit(store, archive.batch, NULL), SILT_OK);
    static const uint64_t order[] = {1, 2, 3, 0};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(silt_store_gap_after(store, stream.row.life, &cursor, &gap, NULL),
                         SILT_OK);
        ck_assert_uint_eq(gap.noticed_ms, order[i]);
    }
    ck_assert_int_eq(silt_store_gap_after(store, stream.row.life, &cursor, &gap, NULL), SILT_END);
    cursor = 2; /* not where this handle's walk stands */
    ck_assert_int_eq(silt_store_gap_after(store, stream.row.life, &cursor, &gap, NULL), SILT_OK);
    ck_assert_uint_eq(gap.noticed_ms, 3);
    cursor = 0;
    ck_assert_int_eq(silt_store_gap_after(store, stream.row.life + 1, &cursor, &gap, NULL),
                     SILT_OK);
    ck_assert_uint_eq(gap.noticed_ms, 4);
    done();
}
END_TEST

START_TEST(store_read__forks_and_late_entries)
{
    struct silt_fork_row fork_row;
    struct silt_late_row late;
    uint64_t life;
    three_segments(NULL);
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(silt_store_new_life(store, &life, NULL), SILT_OK);
    ck_assert_int_eq(silt_batch_fork(archive.batch,
                                     &(struct silt_fork_row){
                                         life, stream.row.number, stream.row.life, {7, 7}, 99}),
                     SILT_OK);
    for (uint64_t i = 1; i <= 3; i++)
        ck_assert_int_eq(
            silt_batch_late(archive.batch, &(struct silt_late_row){life, i, {100 - i, 0}}),
            SILT_OK);
    ck_assert_int_eq(silt_store_commit(store, archive.batch, NULL), SILT_OK);
    ck_assert_int_eq(silt_store_fork(store, life, &fork_row, NULL), SILT_OK);
    ck_assert_uint_eq(fork_row.parent, stream.row.life);
    ck_assert_uint_eq(fork_row.fork.ms, 7);
    ck_assert_int_eq(silt_store_fork(store, stream.row.life, &fork_row, NULL), SILT_END);
    ck_assert_int_eq(silt_store_fork_after(store, stream.row.number, 0, &fork_row, NULL), SILT_OK);
    ck_assert_uint_eq(fork_row.life, life);
    ck_assert_int_eq(silt_store_fork_after(store, stream.row.number, life, &fork_row, NULL),
                     SILT_END);
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_int_eq(silt_store_late_after(store, life, i, &late, NULL), SILT_OK);
        ck_assert_uint_eq(late.number, i + 1);
        ck_assert_uint_eq(late.id.ms, 99 - i);
    }
    ck_assert_int_eq(silt_store_late_after(store, life, 3, &late, NULL), SILT_END);
    ck_assert_int_eq(silt_store_late_after(store, stream.row.life, 0, &late, NULL), SILT_END);
    done();
}
END_TEST

TEST_MAIN(store_read__seeks_plain_segments, store_read__seeks_branded_segments,
          store_read__stays_within_its_life, store_read__branded_keys_sort_as_wire_ids,
          store_read__damaged_keys_are_none, store_read__visits_headers_both_ways,
          store_read__a_damaged_header_costs_its_range_only,
          store_read__a_damaged_last_header_reaches_to_the_end,
          store_read__visits_go_on_behind_a_damaged_header,
          store_read__streams_by_key_number_and_walk, store_read__an_unknown_stream_is_named,
          store_read__keys_longer_than_lmdb_takes,
          store_read__names_that_collide_take_the_next_round,
          store_read__gaps_in_id_order_with_others_of_the_same_place,
          store_read__forks_and_late_entries)
