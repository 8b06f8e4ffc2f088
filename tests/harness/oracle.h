/* What the history must be: a plain sorted array of entries, each with its own copy of its bytes. Much too simple to be wrong
 * in the way the real thing could be. For programs that link silt_format (headers only are used). */
#ifndef TEST_ORACLE_H
#define TEST_ORACLE_H

#include "format/entry.h"

struct test_oracle {
    struct silt_entry **entries; /* ascending */
    size_t count;
    size_t cap;
};

/* Puts an entry in its place. An id that is there already must bring the same bytes (test_die otherwise). */
void test_oracle_add(struct test_oracle *oracle, const struct silt_entry *entry);
/* The same from C strings, name and value in turn up to NULL. */
void test_oracle_add_text(struct test_oracle *oracle, struct silt_wire_id id, ...)
    __attribute__((sentinel));
bool test_oracle_remove(struct test_oracle *oracle,
                        struct silt_wire_id id); /* false: it was not there */
const struct silt_entry *test_oracle_find(const struct test_oracle *oracle,
                                          struct silt_wire_id id); /* borrowed, or NULL */
size_t test_oracle_count(const struct test_oracle *oracle, struct silt_wire_id from,
                         struct silt_wire_id to);
void test_oracle_release(struct test_oracle *oracle);

/* A walk over from..to (both inclusive) that is compared, entry by entry, with what somebody delivers. Several walks may run over one
 * oracle in several threads while nobody changes it. */
struct test_walk {
    const struct test_oracle *oracle;
    size_t next; /* index; forward: next to come; reverse: one above it */
    size_t end;
    bool reverse;
    size_t taken;
    char difference[600]; /* the first one, "" while there is none */
};
void test_walk_start(struct test_walk *walk, const struct test_oracle *oracle,
                     struct silt_wire_id from, struct silt_wire_id to, bool reverse);
/* One delivered entry. False: it is not the one that was due; the difference says what came and what was due. */
bool test_walk_take(struct test_walk *walk, const struct silt_entry *entry);
/* The deliverer says that it is at its end (or at a limit of `limit` entries; 0: none). False: something is missing. */
bool test_walk_finish(struct test_walk *walk, size_t limit);

/* "1-2 {name=value, ...}" with odd bytes escaped, cut to fit. */
void test_entry_show(const struct silt_entry *entry, char *ret, size_t size);

#endif
