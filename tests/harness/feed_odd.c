/* The adversarial shard: what a stream may hold although nobody would write it on purpose. */
#include <stdio.h>
#include <stdlib.h>

#include "feed_priv.h"

enum {
    EMPTY_VALUE,
    BYTES_VALUE,
    LONG_VALUE,
    MANY_FIELDS,
    REPEATED_NAME,
    NAME_UPPER_ID,
    ONLY_ID,
    LEADING_ZEROS,
    NUMBERS,
    UNIQUE_NAME,
    EMPTY_NAME,
    BINARY_NAME,
    ID_NOT_FIRST,
    PLAIN_OURS,
    FOREIGN_FROM, /* from here on no valid id of its own */
    NO_ID = FOREIGN_FROM,
    NO_FIELDS,
    TWO_IDS_WRONG_FIRST,
    OTHER_ID,
    OTHER_BRAND,
    JUNK_ID,
    TAIL_TOO_LARGE,
    KINDS
};

struct odd {
    struct test_feed base;
    uint64_t ms;
    uint64_t tail;
};

static const uint8_t every_byte[] = {'a', '\n', 0, 0xFF, '\\', 0xC3, 0x28, '"', 0x80, 'z'};

static void put_own_id(struct feed_entry *entry)
{
    uint64_t snowflake;
    if (silt_snowflake_from_wire(entry->id, &snowflake))
        feed_put_branded(entry, "id", "EVT", snowflake);
}

static void put_many(struct test_feed *feed)
{
    char name[32], value[32];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "f%d", i);
        snprintf(value, sizeof value, "v%llu", (unsigned long long)test_rng_below(&feed->rng, 50));
        feed_put_text(&feed->entry, name, value);
    }
}

static void put_long(struct test_feed *feed)
{
    static uint8_t bytes[65536];
    test_rng_bytes(&feed->rng, bytes, 4096);
    for (size_t i = 4096; i < sizeof bytes; i++)
        bytes[i] = bytes[i - 4096 + (i >> 12) % 3];
    feed_put(&feed->entry, "long", bytes, sizeof bytes);
}

static void put_leading_zeros(struct test_feed *feed)
{
    char text[32];
    snprintf(text, sizeof text, "%0*llu", (int)test_rng_below(&feed->rng, 6),
             (unsigned long long)test_rng_below(&feed->rng, 1000));
    feed_put_text(&feed->entry, "n", text);
    feed_put_text(&feed->entry, "m", test_rng_chance(&feed->rng, 50) ? "0" : "00");
}

static void put_numbers(struct test_feed *feed)
{
    static const char *const texts[] = {"18446744073709551615",
                                        "18446744073709551616",
                                        "-1",
                                        "+1",
                                        " 1",
                                        "1.5",
                                        "1e9",
                                        "",
                                        "9223372036854775808",
                                        "0"};
    feed_put_text(&feed->entry, "n", texts[test_rng_below(&feed->rng, 10)]);
    feed_put_number(&feed->entry, "m", test_rng_next(&feed->rng));
}

static void put_ours(struct test_feed *feed, int kind)
{
    struct feed_entry *entry = &feed->entry;
    char name[32];
    if (kind != ID_NOT_FIRST) put_own_id(entry);
    switch (kind) {
    case EMPTY_VALUE: feed_put_text(entry, "event", ""); break;
    case BYTES_VALUE:
        feed_put(entry, "raw", every_byte, 1 + test_rng_below(&feed->rng, sizeof every_byte));
        break;
    case LONG_VALUE: put_long(feed); break;
    case MANY_FIELDS: put_many(feed); break;
    case REPEATED_NAME:
        for (uint64_t i = 2 + test_rng_below(&feed->rng, 4); i > 0; i--)
            feed_put_number(entry, "again", test_rng_below(&feed->rng, 9));
        break;
    case NAME_UPPER_ID: feed_put_branded(entry, "ID", "EVT", test_rng_next(&feed->rng) >> 1); break;
    case LEADING_ZEROS: put_leading_zeros(feed); break;
    case NUMBERS: put_numbers(feed); break;
    case UNIQUE_NAME:
        snprintf(name, sizeof name, "u%llu", (unsigned long long)feed->given);
        feed_put_text(entry, name, "once");
        break;
    case EMPTY_NAME: feed_put_text(entry, "", "nameless"); break;
    case BINARY_NAME: feed_put_text(entry, "\xff\xfe\n", "x"); break;
    case ID_NOT_FIRST:
        feed_put_text(entry, "before", "x");
        put_own_id(entry);
        feed_put_text(entry, "id", "second");
        break;
    default: break;
    }
}

static void put_foreign(struct test_feed *feed, int kind)
{
    struct feed_entry *entry = &feed->entry;
    uint64_t snowflake = test_rng_next(&feed->rng) >> 1;
    switch (kind) {
    case NO_FIELDS: return;
    case TWO_IDS_WRONG_FIRST:
        feed_put_text(entry, "id", "wrong");
        put_own_id(entry);
        break;
    case OTHER_ID: feed_put_branded(entry, "id", "EVT", snowflake); break;
    case OTHER_BRAND: feed_put_branded(entry, "id", "GES", snowflake); break;
    case JUNK_ID: feed_put_text(entry, "id", "EVT~~~~~~~~~~~"); break;
    default: break;
    }
    feed_put_text(entry, "kind", "foreign");
}

/* Some before the epoch, the others at a pace of their own; now and then many in one millisecond. */
static struct silt_wire_id next_id(struct odd *self, int kind)
{
    struct test_rng *rng = &self->base.rng;
    if (self->base.given == 200) self->ms = SILT_EPOCH_MS + 1000;
    if (test_rng_chance(rng, 30)) {
        self->tail++;
    } else {
        self->ms += 1 + test_rng_below(rng, 5000);
        self->tail = test_rng_below(rng, 4194000);
    }
    if (kind == TAIL_TOO_LARGE && self->tail < 4194304) self->tail = 4194304;
    return (struct silt_wire_id){self->ms, self->tail};
}

static bool odd_next(struct test_feed *feed)
{
    struct odd *self = (struct odd *)(void *)feed;
    int kind = (int)test_rng_below(&feed->rng, KINDS);
    if (kind == LONG_VALUE && !test_rng_chance(&feed->rng, 10)) kind = PLAIN_OURS;
    feed_entry_start(&feed->entry, next_id(self, kind));
    if (kind >= FOREIGN_FROM)
        put_foreign(feed, kind);
    else
        put_ours(feed, kind);
    return true;
}

static void odd_free(struct test_feed *feed)
{
    free(feed);
}

struct test_feed *test_feed_new_odd(uint64_t seed)
{
    struct odd *self = feed_alloc(1, sizeof *self);
    self->base.next = odd_next;
    self->base.free = odd_free;
    self->base.rng = test_rng_fixed(seed ^ 0x0dd);
    self->base.count = TEST_FEED_ODD_COUNT;
    self->ms = 5;
    self->tail = 0;
    return &self->base;
}
