/* The file of an archive that took its entries in continuous folds of 300, each a commit, beside the sum of its segments. */
#include <inttypes.h>
#include <stdio.h>

#include "bench.h"

void bench_growth(const struct bench_options *options)
{
    enum { FOLD = 300 };
    struct test_filled filled;
    const char *dir = test_path("growth");
    double start = bench_now();
    test_fill(dir, test_feed_new(options->seed, options->count), FOLD, &filled);
    double took = bench_now() - start;
    printf("{\"case\":\"growth\",\"entries\":%" PRIu64 ",\"per_fold\":%d,\"commits\":%" PRIu64
           ",\"commits_per_s\":%.0f,\"segments\":%" PRIu64 ",\"segment_bytes\":%" PRIu64
           ",\"file_bytes\":%" PRIu64 ",\"ratio\":%.3f}\n",
           options->count, FOLD, filled.commits, (double)filled.commits / took, filled.segments,
           filled.stored_bytes, filled.file_bytes,
           (double)filled.file_bytes / (double)filled.stored_bytes);
    fflush(stdout);
    test_remove_all(dir);
}
