/* The one door to the heap. */
#include <stdint.h>
#include <string.h>

#include "format/alloc.h"
#include "harness/harness.h"
#include "harness/heap.h"

static size_t give_everything(void)
{
    void *a = silt_alloc(0), *b = silt_alloc(0), *c = silt_calloc(3, 5), *d = silt_calloc(0, 8);
    char *e = silt_strdup("text"), *f = silt_memdup("m\0n", 3), *g = silt_memdup(NULL, 0);
    size_t got = (a != NULL) + (b != NULL) + (c != NULL) + (d != NULL) + (e != NULL) + (f != NULL) +
                 (g != NULL);
    if (a && b) ck_assert_ptr_ne(a, b);
    if (c) ck_assert_mem_eq(c, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15);
    if (e) ck_assert_str_eq(e, "text");
    if (f) ck_assert_mem_eq(f, "m\0n", 3);
    silt_free(a);
    silt_free(b);
    silt_free(c);
    silt_free(d);
    silt_free(e);
    silt_free(f);
    silt_free(g);
    return got;
}

START_TEST(alloc__gives_and_takes)
{
    ck_assert_uint_eq(give_everything(), 7);
    silt_free(NULL);
}
END_TEST

START_TEST(alloc__any_request_may_be_refused)
{
    struct test_heap heap;
    for (size_t n = 1;; n++) {
        test_heap_start(&heap, n);
        size_t got = give_everything();
        test_heap_stop();
        ck_assert_uint_eq(heap.live_count, 0);
        ck_assert_uint_eq(got, 7 - heap.failed_count);
        if (heap.failed_count == 0) {
            ck_assert_uint_eq(n, 8);
            break;
        }
    }
}
END_TEST

START_TEST(calloc__checks_the_product)
{
    volatile size_t huge = SIZE_MAX / 2;
    ck_assert_ptr_null(silt_calloc(huge, 3));
}
END_TEST

START_TEST(grow__doubles_and_keeps)
{
    uint32_t *at = NULL;
    size_t cap = 0, moves = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        size_t before = cap;
        void *p = at;
        ck_assert_int_eq(silt_grow(&p, &cap, i + 1, sizeof *at), 0);
        at = p;
        moves += cap != before;
        at[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(at[i], i);
    ck_assert_uint_le(moves, 10);
    silt_free(at);
}
END_TEST

START_TEST(grow__refusal_changes_nothing)
{
    struct test_heap heap;
    void *at = NULL;
    size_t cap = 0;
    ck_assert_int_eq(silt_grow(&at, &cap, 4, 8), 0);
    void *before = at;
    size_t before_cap = cap;
    test_heap_start(&heap, 1);
    ck_assert_int_eq(silt_grow(&at, &cap, 1000, 8), -1);
    test_heap_stop();
    ck_assert_int_eq(silt_grow(&at, &cap, SIZE_MAX / 4, 8), -1);
    ck_assert_ptr_eq(at, before);
    ck_assert_uint_eq(cap, before_cap);
    silt_free(at);
}
END_TEST

START_TEST(cleanup__frees_unless_taken)
{
    struct test_heap heap;
    char *kept = NULL;
    test_heap_start(&heap, 0);
    {
        SILT_CLEANUP(silt_free_p) char *freed = silt_strdup("freed");
        SILT_CLEANUP(silt_free_p) char *taken = silt_strdup("taken");
        SILT_CLEANUP(silt_free_p) char *none = NULL;
        ck_assert_str_eq(freed, "freed");
        ck_assert_ptr_null(none);
        kept = SILT_TAKE(taken);
        ck_assert_ptr_null(taken);
    }
    test_heap_stop();
    ck_assert_uint_eq(heap.live_count, 1);
    ck_assert_str_eq(kept, "taken");
    silt_free(kept);
}
END_TEST

TEST_MAIN(alloc__gives_and_takes, alloc__any_request_may_be_refused, calloc__checks_the_product,
          grow__doubles_and_keeps, grow__refusal_changes_nothing, cleanup__frees_unless_taken)
