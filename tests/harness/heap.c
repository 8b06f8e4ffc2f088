/* The counting, failing heap: malloc's blocks, counted by what malloc says they hold. */
#include "heap.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "format/alloc.h"

static void grew(struct test_heap *heap, size_t bytes)
{
    size_t live = atomic_fetch_add(&heap->live_bytes, bytes) + bytes;
    size_t peak = atomic_load(&heap->peak_bytes);
    while (live > peak && !atomic_compare_exchange_weak(&heap->peak_bytes, &peak, live))
        ;
}

static void *heap_realloc(void *ctx, void *at, size_t size)
{
    struct test_heap *heap = ctx;
    size_t request = atomic_fetch_add(&heap->request_count, 1) + 1;
    if (heap->fail_at && (request == heap->fail_at || (heap->fail_on && request > heap->fail_at))) {
        atomic_fetch_add(&heap->failed_count, 1);
        return NULL;
    }
    void *block = malloc(size ? size : 1);
    if (!block) return NULL;
    grew(heap, malloc_usable_size(block));
    if (!at) {
        atomic_fetch_add(&heap->live_count, 1);
        return block;
    }
    /* Always moved, the old bytes spoilt: whoever kept a pointer into them is found out. */
    size_t old = malloc_usable_size(at);
    memcpy(block, at, old < size ? old : size);
    memset(at, 0xdd, old);
    free(at);
    atomic_fetch_sub(&heap->live_bytes, old);
    return block;
}

static void heap_free(void *ctx, void *at)
{
    struct test_heap *heap = ctx;
    if (!at) return;
    size_t size = malloc_usable_size(at);
    atomic_fetch_sub(&heap->live_count, 1);
    atomic_fetch_sub(&heap->live_bytes, size);
    memset(at, 0xdd, size);
    free(at);
}

void test_heap_start(struct test_heap *heap, size_t fail_at)
{
    static struct silt_heap ours;
    memset(heap, 0, sizeof *heap);
    heap->fail_at = fail_at;
    ours = (struct silt_heap){heap_realloc, heap_free, heap};
    silt_heap_set(&ours);
}

void test_heap_stop(void)
{
    silt_heap_set(NULL);
}
