/* What the cases share. Each prints JSON objects, one a line; figures are medians of alternating runs, the peer in the same run. */
#ifndef TEST_BENCH_H
#define TEST_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "harness/fill.h"
#include "harness/harness.h"

struct bench_options {
    uint64_t count; /* entries of the feed */
    uint64_t seed;
    size_t runs; /* of each side; at least 5 for figures that are quoted */
};

void bench_scan(const struct bench_options *options);
void bench_rest(const struct bench_options *options);
void bench_fold(const struct bench_options *options);
void bench_growth(const struct bench_options *options);

double bench_now(void); /* seconds, monotonic */
/* Sorts the values. */
double bench_median(double *values, size_t count);
/* XADDs the whole feed, pipelined. Frees the feed. */
void bench_load(struct test_server *server, struct test_feed *feed);
void bench_must(enum silt_status status, const struct silt_err *err, const char *what);

#endif
