/* See scarce.h. The C library's own heap, behind a count. */
#include "scarce.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static struct {
    atomic_bool armed;
    atomic_size_t requests, refused;
    size_t nth;
    bool on;
} scarce;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

#include "harness/heap.h"

static struct test_heap heap;

void scarce_start(size_t nth, bool on)
{
    test_heap_start(&heap, nth);
    heap.fail_on = on;
}

size_t scarce_stop(size_t *ret_requests)
{
    test_heap_stop();
    if (ret_requests) *ret_requests = atomic_load(&heap.request_count);
    return atomic_load(&heap.failed_count);
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *at, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static bool refuses(void)
{
    if (!atomic_load_explicit(&scarce.armed, memory_order_relaxed)) return false;
    size_t request = atomic_fetch_add(&scarce.requests, 1) + 1;
    if (scarce.nth == 0 || request < scarce.nth || (request > scarce.nth && !scarce.on))
        return false;
    atomic_fetch_add(&scarce.refused, 1);
    errno = ENOMEM;
    return true;
}

void scarce_start(size_t nth, bool on)
{
    scarce.nth = nth;
    scarce.on = on;
    atomic_store(&scarce.requests, 0);
    atomic_store(&scarce.refused, 0);
    atomic_store(&scarce.armed, true);
}

size_t scarce_stop(size_t *ret_requests)
{
    atomic_store(&scarce.armed, false);
    if (ret_requests) *ret_requests = atomic_load(&scarce.requests);
    return atomic_load(&scarce.refused);
}

EXPORT void *malloc(size_t size)
{
    return refuses() ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return refuses() ? NULL : __libc_calloc(count, size);
}

/* To nothing is no request: it gives back. */
EXPORT void *realloc(void *at, size_t size)
{
    return (size > 0 || !at) && refuses() ? NULL : __libc_realloc(at, size);
}

EXPORT void *reallocarray(void *at, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(at, bytes);
}

EXPORT int posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (refuses()) return ENOMEM;
    void *at = __libc_memalign(alignment, size);
    if (!at) return ENOMEM;
    *ret = at;
    return 0;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return refuses() ? NULL : __libc_memalign(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size);
EXPORT void *memalign(size_t alignment, size_t size)
{
    return refuses() ? NULL : __libc_memalign(alignment, size);
}

__attribute__((constructor)) static void set_up(void)
{
    const char *text = getenv("SILT_SCARCE");
    if (text && *text) scarce_start(strtoul(text, NULL, 10), strchr(text, '+') != NULL);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("SILT_SCARCE_TELL");
    char text[24];
    size_t requests;
    scarce_stop(&requests);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return;
    int len = snprintf(text, sizeof text, "%zu", requests);
    if (write(fd, text, (size_t)len) != len) abort();
    close(fd);
}

#endif
