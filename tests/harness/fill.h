/* An archive full of a feed, made without a server: through folds and the store, as the archiver would. It checks nothing itself. */
#ifndef TEST_FILL_H
#define TEST_FILL_H

#include "feed.h"
#include "format/store.h"

struct test_filled {
    uint64_t entries;
    uint64_t values_bytes;
    uint64_t digest; /* silt_entry_digest, chained from 0 */
    uint64_t commits;
    uint64_t segments; /* as they are at the end */
    uint64_t stored_bytes;
    uint64_t file_bytes; /* of the environment file */
};

/* Makes the archive in dir and folds the whole feed into it under TEST_FEED_KEY, per_fold entries a commit. Frees the feed. */
void test_fill(const char *dir, struct test_feed *feed, uint64_t per_fold, struct test_filled *ret);

#endif
