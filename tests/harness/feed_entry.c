#include <stdio.h>
#include <stdlib.h>

#include "die.h"
#include "feed_priv.h"

void *feed_alloc(size_t count, size_t size)
{
    void *at = calloc(count ? count : 1, size);
    if (!at) test_die("feed: out of memory");
    return at;
}

void feed_entry_start(struct feed_entry *entry, struct silt_wire_id id)
{
    entry->id = id;
    entry->field_count = 0;
    entry->text_len = 0;
}

static struct silt_view keep(struct feed_entry *entry, const void *at, size_t len)
{
    if (len > FEED_TEXT_MAX - entry->text_len) test_die("feed: an entry is too large");
    uint8_t *to = entry->text + entry->text_len;
    if (len != 0) memcpy(to, at, len);
    entry->text_len += len;
    return silt_view(to, len);
}

void feed_put(struct feed_entry *entry, const char *name, const void *value, size_t len)
{
    if (entry->field_count == FEED_FIELDS_MAX) test_die("feed: too many fields");
    entry->fields[entry->field_count++] =
        (struct silt_field){keep(entry, name, strlen(name)), keep(entry, value, len)};
}

void feed_put_text(struct feed_entry *entry, const char *name, const char *value)
{
    feed_put(entry, name, value, strlen(value));
}

void feed_put_number(struct feed_entry *entry, const char *name, uint64_t value)
{
    char text[24];
    feed_put(entry, name, text,
             (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)value));
}

void feed_put_branded(struct feed_entry *entry, const char *name, const char *letters,
                      uint64_t snowflake)
{
    uint8_t text[SILT_BRANDED_ID_LEN];
    memcpy(text, letters, 3);
    silt_base62_encode(snowflake, text + 3);
    feed_put(entry, name, text, sizeof text);
}

bool test_feed_next(struct test_feed *feed, struct silt_entry *ret)
{
    if (feed->given == feed->count || !feed->next(feed)) return false;
    feed->given++;
    *ret = (struct silt_entry){feed->entry.id, feed->entry.fields, feed->entry.field_count};
    return true;
}

void test_feed_free(struct test_feed *feed)
{
    if (feed) feed->free(feed);
}

void test_feed_list(struct test_feed *feed, struct silt_entry_list *ret)
{
    struct silt_entry entry;
    *ret = (struct silt_entry_list){0};
    while (test_feed_next(feed, &entry))
        if (silt_entry_list_add(ret, &entry) != SILT_OK) test_die("feed: out of memory");
    silt_entry_list_seal(ret);
}
