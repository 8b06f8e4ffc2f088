/* LMDB's pages read with suspicion. LMDB 0.9 has no checksums and believes every offset and length in a page; a flipped bit there would
 * crash the reader or hide what comes after it. Snapshots therefore find their pairs through this file: the same layout (LMDB data version 1, 64 bit,
 * little-endian), every number checked before use. Knows nothing of what the pairs mean. */
#ifndef SILT_STORE_PAGE_H
#define SILT_STORE_PAGE_H

#include "bytes.h"

#define SILT_PAGE_DEPTH 32
#define SILT_PAGE_META 2 /* the first two pages */

/* One tree as its record says. */
struct silt_tree {
    uint16_t depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries;
    uint64_t root; /* UINT64_MAX: empty */
    bool numbers;  /* keys are numbers of this machine, not bytes: the free list */
};

/* A snapshot of the file: what its meta page said when it was taken. */
struct silt_pages {
    const uint8_t *map;
    uint64_t bytes; /* of the file, and mapped */
    uint64_t page_bytes;
    uint64_t last_page;
    uint64_t txn;
    struct silt_tree free;
    struct silt_tree main;
};

/* Both meta pages, from the head of a file of so many bytes (it may be growing): magic, version, kind, transaction numbers that follow each
 * other, a length that the file can have. false: not what LMDB writes. */
bool silt_pages_head_ok(struct silt_view head, uint64_t file_bytes);
/* Reads the meta page of a transaction. false: it is no longer that transaction's (the writer went on: take a new snapshot) or damaged. */
bool silt_pages_begin(struct silt_pages *pages, const uint8_t *map, uint64_t bytes,
                      uint64_t page_bytes, uint64_t txn);
/* The record of a named database. SILT_END: none. SILT_ERR_CORRUPT. */
SILT_MUST_USE enum silt_status silt_pages_tree(const struct silt_pages *pages, const char *name,
                                               struct silt_tree *ret);

/* A place in a tree. */
struct silt_page_cursor {
    const struct silt_pages *pages;
    bool numbers;
    size_t leaf_depth;       /* where its leaves lie, as the record says */
    struct silt_view passed; /* the last key that was in order */
    bool astray;             /* the key at hand is not: it is told as damage, and passed by */
    size_t depth;            /* 0: nowhere */
    struct {
        const uint8_t *page;
        size_t index;
    } at[SILT_PAGE_DEPTH];
};
/* The first pair at or above the key. Then its neighbours. SILT_END: none; the place is then behind the last (before the first). Fails with
 * SILT_ERR_CORRUPT, also where a neighbour's key is not above (below) the one before: a torn copy may lead in circles, and a walk that goes by keys
 * comes to its end. Views lie in the map. */
SILT_MUST_USE enum silt_status silt_page_seek(struct silt_page_cursor *cursor,
                                              const struct silt_pages *pages,
                                              const struct silt_tree *tree, struct silt_view key);
SILT_MUST_USE enum silt_status silt_page_step(struct silt_page_cursor *cursor, int way);
SILT_MUST_USE enum silt_status silt_page_pair(const struct silt_page_cursor *cursor,
                                              struct silt_view *ret_key,
                                              struct silt_view *ret_value);

/* The key alone; the cursor stands somewhere. */
struct silt_view silt_page_key(const struct silt_page_cursor *cursor);
/* Pages that hold nothing, by LMDB's own list of them. */
SILT_MUST_USE enum silt_status silt_pages_free(const struct silt_pages *pages, uint64_t *ret);

/* store_audit.c: everything LMDB keeps about itself: each page belongs to one place only, to a tree or to the free list; keys ascend
 * across pages; records count right. Tells everything that is wrong. Fails with SILT_ERR_MEMORY. */
struct silt_page_fault {
    const char *tree;
    const char *what;
    uint64_t page;
    bool grave; /* a commit could write over what is in use, or LMDB fall over it */
};
typedef void silt_page_found(void *ctx, const struct silt_page_fault *fault);
SILT_MUST_USE enum silt_status silt_pages_audit(const struct silt_pages *pages,
                                                silt_page_found *found, void *ctx);

/* store_roots.c: false in `newest`: the meta page is not the last commit's, though it may be whole in itself. wrong: roots of named trees that are not of this
 * snapshot. A damaged page is not told here. */
#define SILT_ROOTS_MAX 16
struct silt_roots {
    bool newest;
    size_t wrong_count;
    uint64_t wrong[SILT_ROOTS_MAX];
};
void silt_pages_roots(const struct silt_pages *pages, struct silt_roots *ret);

/* For the audit: a page of a tree, checked by itself, and its parts. NULL, false: damage. */
const uint8_t *silt_page_of_tree(const struct silt_pages *pages, uint64_t number, bool numbers);
bool silt_page_is_branch(const uint8_t *page);
size_t silt_page_keys(const uint8_t *page);
const uint8_t *silt_page_node(const uint8_t *page, size_t index);
struct silt_view silt_node_key(const uint8_t *node);
uint64_t silt_node_child(const uint8_t *node); /* of a branch page */
/* Of a leaf. *ret_page and *ret_count: the pages of its own that the value takes; count 0: none. */
bool silt_node_value(const struct silt_pages *pages, const uint8_t *node, struct silt_view *ret,
                     uint64_t *ret_page, uint64_t *ret_count);
/* Of a leaf of the main tree: true and the record when it names another tree. */
bool silt_node_tree(const struct silt_pages *pages, const uint8_t *node, struct silt_tree *ret);

#endif
