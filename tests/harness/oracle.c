/* The oracle. It shares no code with what it judges: bytes are compared here with memcmp and nothing of format/ is called. */
#include "oracle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runner.h"

static int compare(struct silt_wire_id a, struct silt_wire_id b)
{
    if (a.ms != b.ms) return a.ms < b.ms ? -1 : 1;
    return a.seq < b.seq ? -1 : a.seq > b.seq;
}

static bool same_view(struct silt_view a, struct silt_view b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static bool same(const struct silt_entry *a, const struct silt_entry *b)
{
    if (compare(a->id, b->id) != 0 || a->field_count != b->field_count) return false;
    for (size_t i = 0; i < a->field_count; i++)
        if (!same_view(a->fields[i].name, b->fields[i].name) ||
            !same_view(a->fields[i].value, b->fields[i].value))
            return false;
    return true;
}

static void *must(void *block)
{
    if (!block) test_die("out of memory");
    return block;
}

static struct silt_view copy_view(struct silt_view view, uint8_t **at)
{
    uint8_t *copy = *at;
    if (view.len) memcpy(copy, view.at, view.len);
    *at += view.len;
    return (struct silt_view){copy, view.len};
}

/* One block: the entry, its fields, their bytes. */
static struct silt_entry *copy_of(const struct silt_entry *entry)
{
    size_t bytes = 0;
    for (size_t i = 0; i < entry->field_count; i++)
        bytes += entry->fields[i].name.len + entry->fields[i].value.len;
    size_t fields_size = entry->field_count * sizeof(struct silt_field);
    struct silt_entry *copy = must(malloc(sizeof *copy + fields_size + bytes));
    struct silt_field *fields = (struct silt_field *)(copy + 1);
    uint8_t *at = (uint8_t *)fields + fields_size;
    for (size_t i = 0; i < entry->field_count; i++) {
        fields[i].name = copy_view(entry->fields[i].name, &at);
        fields[i].value = copy_view(entry->fields[i].value, &at);
    }
    *copy = (struct silt_entry){entry->id, fields, entry->field_count};
    return copy;
}

/* Index of the first entry at or above the id. */
static size_t lower(const struct test_oracle *oracle, struct silt_wire_id id)
{
    size_t low = 0;
    size_t high = oracle->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(oracle->entries[middle]->id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Index of the first entry above the id. */
static size_t upper(const struct test_oracle *oracle, struct silt_wire_id id)
{
    size_t at = lower(oracle, id);
    return at < oracle->count && compare(oracle->entries[at]->id, id) == 0 ? at + 1 : at;
}

void test_oracle_add(struct test_oracle *oracle, const struct silt_entry *entry)
{
    size_t at = lower(oracle, entry->id);
    if (at < oracle->count && compare(oracle->entries[at]->id, entry->id) == 0) {
        if (!same(oracle->entries[at], entry))
            test_die("oracle: %" PRIu64 "-%" PRIu64 " is there with other bytes", entry->id.ms,
                     entry->id.seq);
        return;
    }
    if (oracle->count == oracle->cap) {
        oracle->cap = oracle->cap ? oracle->cap * 2 : 64;
        oracle->entries = must(realloc(oracle->entries, oracle->cap * sizeof *oracle->entries));
    }
    memmove(oracle->entries + at + 1, oracle->entries + at,
            (oracle->count - at) * sizeof *oracle->entries);
    oracle->entries[at] = copy_of(entry);
    oracle->count++;
}

void test_oracle_add_text(struct test_oracle *oracle, struct silt_wire_id id, ...)
{
    struct silt_field fields[64];
    size_t count = 0;
    va_list args;
    va_start(args, id);
    for (const char *name; (name = va_arg(args, const char *)); count++) {
        const char *value = va_arg(args, const char *);
        if (count == 64 || !value)
            test_die("test_oracle_add_text: at most 64 names, each with a value");
        fields[count] = (struct silt_field){{(const uint8_t *)name, strlen(name)},
                                            {(const uint8_t *)value, strlen(value)}};
    }
    va_end(args);
    test_oracle_add(oracle, &(struct silt_entry){id, fields, count});
}

bool test_oracle_remove(struct test_oracle *oracle, struct silt_wire_id id)
{
    size_t at = lower(oracle, id);
    if (at == oracle->count || compare(oracle->entries[at]->id, id) != 0) return false;
    free(oracle->entries[at]);
    oracle->count--;
    memmove(oracle->entries + at, oracle->entries + at + 1,
            (oracle->count - at) * sizeof *oracle->entries);
    return true;
}

const struct silt_entry *test_oracle_find(const struct test_oracle *oracle, struct silt_wire_id id)
{
    size_t at = lower(oracle, id);
    return at < oracle->count && compare(oracle->entries[at]->id, id) == 0 ? oracle->entries[at]
                                                                           : NULL;
}

size_t test_oracle_count(const struct test_oracle *oracle, struct silt_wire_id from,
                         struct silt_wire_id to)
{
    size_t first = lower(oracle, from);
    size_t end = upper(oracle, to);
    return end > first ? end - first : 0;
}

void test_oracle_release(struct test_oracle *oracle)
{
    for (size_t i = 0; i < oracle->count; i++)
        free(oracle->entries[i]);
    free(oracle->entries);
    memset(oracle, 0, sizeof *oracle);
}

static size_t show_view(struct silt_view view, char *ret, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; i < view.len && len + 8 < size; i++) {
        bool plain = view.at[i] > 0x20 && view.at[i] < 0x7f && view.at[i] != '\\';
        len += (size_t)snprintf(ret + len, size - len, plain ? "%c" : "\\x%02x", view.at[i]);
        if (i == 40 && view.len > 48) {
            len += (size_t)snprintf(ret + len, size - len, "...(%zu)", view.len);
            break;
        }
    }
    ret[len < size ? len : size - 1] = '\0';
    return len < size ? len : size - 1;
}

void test_entry_show(const struct silt_entry *entry, char *ret, size_t size)
{
    int start = snprintf(ret, size, "%" PRIu64 "-%" PRIu64 " {", entry->id.ms, entry->id.seq);
    size_t len = (size_t)start;
    for (size_t i = 0; i < entry->field_count && len + 32 < size; i++) {
        if (i) len += (size_t)snprintf(ret + len, size - len, ", ");
        len += show_view(entry->fields[i].name, ret + len, size - len);
        len += (size_t)snprintf(ret + len, size - len, "=");
        if (len < size) len += show_view(entry->fields[i].value, ret + len, size - len);
    }
    if (len + 2 < size) snprintf(ret + len, size - len, "}");
}

void test_walk_start(struct test_walk *walk, const struct test_oracle *oracle,
                     struct silt_wire_id from, struct silt_wire_id to, bool reverse)
{
    memset(walk, 0, sizeof *walk);
    walk->oracle = oracle;
    walk->reverse = reverse;
    size_t first = lower(oracle, from);
    size_t last = upper(oracle, to);
    if (last < first) last = first;
    walk->next = reverse ? last : first;
    walk->end = reverse ? first : last;
}

static const struct silt_entry *due(const struct test_walk *walk)
{
    if (walk->next == walk->end) return NULL;
    return walk->oracle->entries[walk->reverse ? walk->next - 1 : walk->next];
}

static bool differ(struct test_walk *walk, const struct silt_entry *came)
{
    char text[2][256] = {"the end", "the end"};
    if (walk->difference[0]) return false;
    if (came) test_entry_show(came, text[0], sizeof text[0]);
    if (due(walk)) test_entry_show(due(walk), text[1], sizeof text[1]);
    snprintf(walk->difference, sizeof walk->difference, "after %zu entries came %s, due was %s",
             walk->taken, text[0], text[1]);
    return false;
}

bool test_walk_take(struct test_walk *walk, const struct silt_entry *entry)
{
    const struct silt_entry *want = due(walk);
    if (walk->difference[0] || !want || !same(want, entry)) return differ(walk, entry);
    if (walk->reverse)
        walk->next--;
    else
        walk->next++;
    walk->taken++;
    return true;
}

bool test_walk_finish(struct test_walk *walk, size_t limit)
{
    if (walk->difference[0]) return false;
    if (limit && walk->taken == limit) return true;
    return due(walk) ? differ(walk, NULL) : true;
}
