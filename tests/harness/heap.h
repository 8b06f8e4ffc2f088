/* A heap that counts and fails on demand, put behind the one door of format/alloc.h. For programs that link silt_format.
 *
 *     struct test_heap heap;
 *     for (size_t n = 1; ; n++) {           // "fail the n-th" until it succeeds
 *         test_heap_start(&heap, n);
 *         status = silt_something(...);
 *         test_heap_stop();
 *         ck_assert_uint_eq(heap.live_count, 0);
 *         if (!heap.failed_count) break;
 *         ck_assert_int_eq(status, SILT_ERR_MEMORY);
 *     }
 */
#ifndef TEST_HEAP_H
#define TEST_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct test_heap {
    atomic_size_t request_count; /* new blocks and growth, the refused ones too */
    atomic_size_t failed_count;
    atomic_size_t live_count; /* blocks not yet freed */
    atomic_size_t live_bytes;
    atomic_size_t peak_bytes;
    size_t fail_at; /* the n-th request, from 1; 0: none */
    bool fail_on;   /* and every one after it */
};

/* From here to test_heap_stop all of silt's requests are counted, and the fail_at-th is refused. Threads: start before the
 * first other thread and stop after the last. The blocks are malloc's own, so they may be freed after the stop; freeing one
 * from before the start counts as well. */
void test_heap_start(struct test_heap *heap, size_t fail_at);
void test_heap_stop(void);

#endif
