/* The feeds' common part: one entry under construction. */
#ifndef TEST_FEED_PRIV_H
#define TEST_FEED_PRIV_H

#include "feed.h"
#include "rng.h"

#define FEED_FIELDS_MAX 512
#define FEED_TEXT_MAX (256 * 1024)

struct feed_entry {
    struct silt_wire_id id;
    struct silt_field fields[FEED_FIELDS_MAX];
    size_t field_count;
    uint8_t text[FEED_TEXT_MAX]; /* names and values lie here */
    size_t text_len;
};
void feed_entry_start(struct feed_entry *entry, struct silt_wire_id id);
void feed_put(struct feed_entry *entry, const char *name, const void *value, size_t len);
void feed_put_text(struct feed_entry *entry, const char *name, const char *value);
void feed_put_number(struct feed_entry *entry, const char *name, uint64_t value);
void feed_put_branded(struct feed_entry *entry, const char *name, const char *letters,
                      uint64_t snowflake);

struct test_feed {
    bool (*next)(struct test_feed *feed);
    void (*free)(struct test_feed *feed);
    struct test_rng rng;
    uint64_t count;
    uint64_t given;
    struct feed_entry entry;
};
void *feed_alloc(size_t count, size_t size); /* dies when there is none */

#endif
