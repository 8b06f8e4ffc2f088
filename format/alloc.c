/* The heap behind one door, so that tests can count requests and refuse any of them. Must not know who asks. */
#include "alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct silt_heap *replaced; /* NULL: the system's heap */
static struct silt_heap replacement;

void silt_heap_set(const struct silt_heap *heap)
{
    if (heap != NULL) replacement = *heap;
    replaced = heap != NULL ? &replacement : NULL;
}

void *silt_realloc(void *at, size_t size)
{
    if (size == 0) size = 1; /* realloc(at, 0) would free */
    if (replaced != NULL) return replaced->realloc(replaced->ctx, at, size);
    return realloc(at, size);
}

void *silt_alloc(size_t size)
{
    return silt_realloc(NULL, size);
}

void *silt_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    if (replaced == NULL) return calloc(bytes ? bytes : 1, 1);
    void *at = silt_alloc(bytes);
    if (at != NULL) memset(at, 0, bytes);
    return at;
}

void silt_free(void *at)
{
    if (at == NULL) return;
    if (replaced != NULL)
        replaced->free(replaced->ctx, at);
    else
        free(at);
}

void *silt_memdup(const void *at, size_t size)
{
    void *copy = silt_alloc(size);
    if (copy != NULL && size > 0) memcpy(copy, at, size);
    return copy;
}

char *silt_strdup(const char *text)
{
    return silt_memdup(text, strlen(text) + 1);
}

int silt_grow(void **at, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap) return 0;
    size_t count = *cap > SIZE_MAX / 2 ? need : *cap * 2;
    if (count < need) count = need;
    if (count < 8) count = 8;
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return -1;
    void *grown = silt_realloc(*at, bytes);
    if (grown == NULL) return -1;
    *at = grown;
    *cap = count;
    return 0;
}

void silt_free_p(void *pointer_to_pointer)
{
    void *at;
    memcpy(&at, pointer_to_pointer,
           sizeof at); /* void ** would alias the caller's own pointer type */
    silt_free(at);
}
