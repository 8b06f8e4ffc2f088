/* The read-back: what it counts, what it refuses, and that nothing else makes a receipt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    test_fold(&archive, &stream, 21, 30);
    test_fold(&archive, &stream, 41, 50);
}

/* Reads (after, through] back and compares with the entries themselves; entries 31..40 do not exist. */
static void check(struct silt_wire_id after, struct silt_wire_id through, uint64_t max)
{
    struct silt_receipt *receipt;
    struct silt_receipt_facts due = {.through = after};
    for (uint64_t n = 11; n <= 50 && due.count < max; n++) {
        struct silt_entry entry = test_entry(n);
        if (n > 30 && n < 41) continue;
        if (!silt_wire_id_less(after, entry.id) || silt_wire_id_less(through, entry.id)) continue;
        due.count++;
        due.values_bytes += silt_entry_bytes(&entry);
        due.digest = silt_entry_digest(&entry, due.digest);
        due.through = entry.id;
    }
    ck_assert_int_eq(
        silt_store_read_back(archive.store, stream.row.number, after, through, max, &receipt, &err),
        SILT_OK);
    const struct silt_receipt_facts *facts = silt_receipt_facts(receipt);
    ck_assert_uint_eq(facts->stream, stream.row.number);
    ck_assert_uint_eq(facts->life, stream.row.life);
    ck_assert(silt_wire_id_equal(facts->after, after));
    ck_assert(silt_wire_id_equal(facts->through, due.through));
    ck_assert_uint_eq(facts->count, due.count);
    ck_assert_uint_eq(facts->values_bytes, due.values_bytes);
    ck_assert_uint_eq(facts->digest, due.digest);
    ck_assert(silt_wire_id_equal(facts->watermark, test_entry_id(50)));
    silt_receipt_free(receipt);
}

static void check_ranges(void)
{
    check(SILT_WIRE_ID_MIN, test_entry_id(50), UINT64_MAX);
    check(SILT_WIRE_ID_MIN, test_entry_id(11), UINT64_MAX);
    check(SILT_WIRE_ID_MIN, test_entry_id(10), UINT64_MAX);
    check(test_entry_id(11), test_entry_id(11), UINT64_MAX);
    check(test_entry_id(15), test_entry_id(45), UINT64_MAX);
    check(test_entry_id(20), test_entry_id(21), UINT64_MAX);
    check(test_entry_id(30), test_entry_id(40), UINT64_MAX);
    check(test_entry_id(30), test_entry_id(41), UINT64_MAX);
    check(test_entry_id(49), test_entry_id(50), UINT64_MAX);
    check(test_entry_id(50), test_entry_id(50), UINT64_MAX);
}

START_TEST(receipt__says_what_is_there)
{
    setup(NULL);
    check_ranges();
    test_archive_close(&archive);
}
END_TEST

START_TEST(receipt__says_what_is_there_in_a_branded_stream)
{
    setup("EVT");
    check_ranges();
    test_archive_close(&archive);
}
END_TEST

START_TEST(receipt__stops_at_its_limit)
{
    setup(NULL);
    for (uint64_t max = 0; max <= 31; max++)
        check(SILT_WIRE_ID_MIN, test_entry_id(50), max);
    check(test_entry_id(15), test_entry_id(50), 6);
    test_archive_close(&archive);
}
END_TEST

START_TEST(receipt__none_above_the_watermark)
{
    struct silt_receipt *receipt = NULL;
    struct silt_wire_id above;
    setup(NULL);
    ck_assert(silt_wire_id_next(test_entry_id(50), &above));
    ck_assert_int_eq(silt_store_read_back(archive.store, stream.row.number, SILT_WIRE_ID_MIN, above,
                                          UINT64_MAX, &receipt, &err),
                     SILT_ERR_PROTECTED);
    ck_assert_str_eq(err.stream, "s");
    ck_assert_ptr_null(receipt);
    test_archive_close(&archive);
}
END_TEST

START_TEST(receipt__none_of_a_stream_that_was_never_folded)
{
    struct silt_receipt *receipt = NULL;
    struct test_stream fresh;
    setup(NULL);
    test_stream_new(&archive, &fresh, "fresh", NULL);
    silt_batch_clear(archive.batch);
    ck_assert_int_eq(silt_batch_stream(archive.batch, &fresh.row), SILT_OK);
    ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err), SILT_OK);
    ck_assert_int_eq(silt_store_read_back(archive.store, fresh.row.number, SILT_WIRE_ID_MIN,
                                          SILT_WIRE_ID_MIN, UINT64_MAX, &receipt, &err),
                     SILT_ERR_PROTECTED);
    ck_assert_int_eq(silt_store_read_back(archive.store, 99, SILT_WIRE_ID_MIN, test_entry_id(1),
                                          UINT64_MAX, &receipt, &err),
                     SILT_ERR_UNKNOWN_STREAM);
    ck_assert_int_eq(silt_store_read_back(archive.store, stream.row.number, test_entry_id(2),
                                          test_entry_id(1), UINT64_MAX, &receipt, &err),
                     SILT_ERR_WINDOW);
    ck_assert_ptr_null(receipt);
    test_archive_close(&archive);
}
END_TEST

/* Each byte of the middle segment's value, damaged in the store: no receipt over it, receipts beside it. */
START_TEST(receipt__none_over_damage)
{
    setup("EVT");
    struct silt_key key = silt_key_segment(stream.row.life, stream.row.ns, test_entry_id(21));
    struct silt_receipt *receipt = NULL;
    struct silt_buf value = {0};
    struct silt_segment_info info;
    struct silt_wire_id just_below_41 = {test_entry_id(41).ms, 0};
    ck_assert_int_eq(silt_store_segment(archive.store, stream.row.life, stream.row.ns,
                                        test_entry_id(21), SILT_SEEK_FORWARD, &value, &info, NULL),
                     SILT_OK);
    for (size_t i = 0; i < value.len; i += 7) {
        struct silt_kv_txn *txn;
        bool resized;
        value.at[i] ^= 0x10;
        ck_assert_int_eq(silt_kv_write_begin(archive.store->env->kv, &txn, &resized, NULL),
                         SILT_OK);
        ck_assert_int_eq(
            silt_kv_put(txn, SILT_DB_SEGMENTS, silt_key_view(&key), silt_buf_view(&value), NULL),
            SILT_OK);
        ck_assert_int_eq(silt_kv_commit(txn, NULL), SILT_OK);
        value.at[i] ^= 0x10;
        enum silt_status status =
            silt_store_read_back(archive.store, stream.row.number, test_entry_id(20),
                                 test_entry_id(50), UINT64_MAX, &receipt, &err);
        ck_assert(status == SILT_ERR_CORRUPT || status == SILT_ERR_NEWER_FORMAT);
        ck_assert_str_eq(err.stream, "s");
        check(SILT_WIRE_ID_MIN, test_entry_id(20), UINT64_MAX);
        check(just_below_41, test_entry_id(50), UINT64_MAX);
    }
    silt_buf_release(&value);
    test_archive_close(&archive);
}
END_TEST

/* What a file holds that nobody can open again is gone with the process: no copy, so no receipt, and nothing more is written there. */
static void lose_name(bool moved)
{
    struct silt_receipt *receipt = NULL;
    char file[300], elsewhere[300];
    setup(NULL);
    snprintf(file, sizeof file, "%s", test_path("a/archive-1.mdb"));
    snprintf(elsewhere, sizeof elsewhere, "%s", test_path("elsewhere"));
    ck_assert_int_eq(moved ? rename(file, elsewhere) : unlink(file), 0);
    ck_assert_int_eq(silt_store_read_back(archive.store, stream.row.number, SILT_WIRE_ID_MIN,
                                          test_entry_id(50), UINT64_MAX, &receipt, &err),
                     SILT_ERR_STORE_LOST);
    ck_assert_ptr_null(receipt);
    ck_assert_ptr_nonnull(strstr(err.sentence, "archive-1.mdb was moved or removed"));
    if (moved) { /* put back, it is as it was */
        ck_assert_int_eq(rename(elsewhere, file), 0);
        check(SILT_WIRE_ID_MIN, test_entry_id(50), UINT64_MAX);
    } else {
        silt_batch_clear(archive.batch);
        ck_assert_int_eq(silt_batch_stream(archive.batch, &stream.row), SILT_OK);
        ck_assert_int_eq(silt_store_commit(archive.store, archive.batch, &err),
                         SILT_ERR_STORE_LOST);
    }
    test_archive_close(&archive);
}

START_TEST(receipt__none_from_a_file_that_was_removed)
{
    lose_name(false);
}
END_TEST

START_TEST(receipt__none_from_a_file_that_was_moved)
{
    lose_name(true);
}
END_TEST

START_TEST(receipt__no_memory_makes_none)
{
    setup(NULL);
    for (size_t n = 1;; n++) {
        struct test_heap heap;
        struct silt_receipt *receipt = NULL;
        struct silt_store *store = test_store_reader(test_path("a"));
        test_heap_start(&heap, n);
        enum silt_status status =
            silt_store_read_back(store, stream.row.number, SILT_WIRE_ID_MIN, test_entry_id(50),
                                 UINT64_MAX, &receipt, &err);
        test_heap_stop();
        ck_assert(status == SILT_OK || (status == SILT_ERR_MEMORY && !receipt));
        silt_receipt_free(receipt);
        silt_store_close(store);
        if (!heap.failed_count) {
            ck_assert_int_eq(status, SILT_OK);
            break;
        }
    }
    test_archive_close(&archive);
}
END_TEST

TEST_MAIN(receipt__says_what_is_there, receipt__says_what_is_there_in_a_branded_stream,
          receipt__stops_at_its_limit, receipt__none_above_the_watermark,
          receipt__none_of_a_stream_that_was_never_folded, receipt__none_over_damage,
          receipt__none_from_a_file_that_was_removed, receipt__none_from_a_file_that_was_moved,
          receipt__no_memory_makes_none)
