/* The sample feed of benchmarks, quickstart and tests: an invented game's activity log in the shape of EchoMQ's (contract.md §6): branded ids EVT,
 * six kinds of event, branded values from other nodes, heavy-tailed players, a day curve, bursts of one millisecond, deploys, a clock that steps
 * back. The same seed and count give the same bytes. And the adversarial shard: every odd entry that a stream may hold. */
#ifndef TEST_FEED_H
#define TEST_FEED_H

#include "format/entry.h"

#define TEST_FEED_KEY "emq:{cm}:stream:feed"
#define TEST_FEED_NAMESPACE ((struct silt_namespace){"EVT"})
#define TEST_FEED_ODD_COUNT 5000u

struct test_feed;

/* A feed of `count` entries (its bursts and deploys lie at fixed shares of that). Owns: freed with test_feed_free. */
struct test_feed *test_feed_new(uint64_t seed, uint64_t count);
/* The adversarial shard of TEST_FEED_ODD_COUNT entries, ids ascending: foreign ones, empty and huge values, repeated names, no fields. */
struct test_feed *test_feed_new_odd(uint64_t seed);
/* The next entry; false: all given. Valid until the next call with this feed. */
bool test_feed_next(struct test_feed *feed, struct silt_entry *ret);
void test_feed_free(struct test_feed *feed);

/* All of it, kept; released with silt_entry_list_release. */
void test_feed_list(struct test_feed *feed, struct silt_entry_list *ret);

#endif
