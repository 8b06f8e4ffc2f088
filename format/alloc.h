/* The one door to the heap. Running out returns NULL, never aborts. A test may replace the heap to count or to fail the
 * n-th request; nothing else may. */
#ifndef SILT_ALLOC_H
#define SILT_ALLOC_H

#include <stddef.h>

/* As malloc, calloc, realloc and free; a size of 0 gives a unique pointer. Threads: any. */
void *silt_alloc(size_t size);
void *silt_calloc(size_t count, size_t size); /* checks the product */
void *silt_realloc(void *at, size_t size);
void silt_free(void *at);
char *silt_strdup(const char *text);
void *silt_memdup(const void *at, size_t size);

/* Grows *at (elements of `size` bytes, *cap of them) to hold at least `need`, doubling. 0 on success, -1 (nothing changed)
 * when out of memory or the product overflows. */
int silt_grow(void **at, size_t *cap, size_t need, size_t size);

/* For tests: every request goes through these until reset with NULL. Set before threads start. */
struct silt_heap {
    void *(*realloc)(void *ctx, void *at, size_t size); /* at NULL: a new block; NULL: refused */
    void (*free)(void *ctx, void *at);
    void *ctx;
};
void silt_heap_set(const struct silt_heap *heap);

/* Scope-bound release: SILT_CLEANUP(silt_buf_release) struct silt_buf buf = {0}; the function gets &buf. */
#define SILT_CLEANUP(function) __attribute__((cleanup(function)))
/* Hands a pointer over: returns its value and sets it to NULL, so that cleanup does nothing. */
#define SILT_TAKE(pointer)                      \
    __extension__({                             \
        __typeof__(pointer) taken_ = (pointer); \
        (pointer) = NULL;                       \
        taken_;                                 \
    })

void silt_free_p(void *pointer_to_pointer); /* for SILT_CLEANUP on a pointer from silt_alloc */

#endif
