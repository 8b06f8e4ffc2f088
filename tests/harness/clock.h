/* A clock that stands still until told. For whatever takes its time as an argument or as a function with a context. */
#ifndef TEST_CLOCK_H
#define TEST_CLOCK_H

#include <stdint.h>

struct test_clock {
    uint64_t now_ms;  /* set freely, backwards too */
    uint64_t step_ms; /* added after each reading; 0: stands still */
    uint64_t read_count;
};

static inline uint64_t test_clock_read(void *clock_)
{
    struct test_clock *clock = clock_;
    uint64_t now_ms = clock->now_ms;
    clock->now_ms += clock->step_ms;
    clock->read_count++;
    return now_ms;
}

#endif
