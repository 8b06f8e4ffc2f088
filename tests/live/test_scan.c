/* A scan of the archive through the public cursor asks the heap for memory per segment at the most, never per entry. */
#include <inttypes.h>

#include "harness/fill.h"
#include "harness/harness.h"
#include "harness/heap.h"
#include "mergeread.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNT 100000u
#else
#define COUNT 1000000u
#endif

static void scan(const char *dir, bool reverse, uint64_t *ret_count, uint64_t *ret_digest)
{
    struct silt_history_options where = {.archive_path = dir};
    struct silt_cursor_options what = SILT_CURSOR_OPTIONS_DEFAULT;
    struct silt_history *history;
    struct silt_cursor *cursor;
    struct silt_item item;
    struct silt_err err = {0};
    what.key = TEST_FEED_KEY;
    what.reverse = reverse;
    *ret_count = *ret_digest = 0;
    ck_assert_msg(silt_history_open(&where, &history, &err) == SILT_OK, "%s", err.sentence);
    ck_assert_msg(silt_cursor_open(history, &what, &cursor, &err) == SILT_OK, "%s", err.sentence);
    enum silt_status status;
    while ((status = silt_cursor_next(cursor, &item, &err)) == SILT_OK) {
        ck_assert_int_eq(item.kind, SILT_ITEM_ENTRY);
        *ret_digest = silt_entry_digest(&item.entry, *ret_digest);
        ++*ret_count;
    }
    ck_assert_msg(status == SILT_END, "%s", err.sentence);
    silt_cursor_close(cursor);
    silt_history_close(history);
}

START_TEST(scan__of_a_million_allocates_per_segment)
{
    struct test_filled filled;
    struct test_heap heap;
    uint64_t count, digest;
    const char *dir = test_path("archive");
    test_fill(dir, test_feed_new(1, COUNT), 50000, &filled);
    for (int reverse = 0; reverse < 2; reverse++) {
        test_heap_start(&heap, 0);
        scan(dir, reverse, &count, &digest);
        test_heap_stop();
        ck_assert_uint_eq(count, COUNT);
        if (!reverse) ck_assert_uint_eq(digest, filled.digest);
        ck_assert_msg(heap.request_count <= 3 * filled.segments + 200,
                      "%zu requests for %" PRIu64 " segments", (size_t)heap.request_count,
                      filled.segments);
        ck_assert_uint_eq(heap.live_count, 0);
    }
}
END_TEST

TEST_MAIN(scan__of_a_million_allocates_per_segment)
