/* Walks a whole file by the product's own page reader, which the unit and golden tests try by themselves, and notes what lies where. */
#include "page_map.h"

#include <stdlib.h>

#include "format/segment_header.h"
#include "format/store_priv.h"
#include "harness/harness.h"

enum { PAGE = 4096, HEADER = 16, NODE_HEAD = 8, BIG = 1 };

const char *const test_place_names[PLACE_COUNT] = {
    "unused",   "meta",    "old meta",     "branch",    "leaf", "node",
    "key",      "row key", "record",       "free list", "row",  "reference",
    "overflow", "segment", "segment body", "slack"};

struct walk {
    struct test_page_map *map;
    struct silt_pages pages;
    const uint8_t *file;
    enum silt_db db; /* SILT_DB_COUNT: the main tree or the free list */
    bool main;
};

static void mark(struct walk *w, const uint8_t *at, size_t len, enum place place, int owner)
{
    size_t from = (size_t)(at - w->file);
    if (from + len > w->map->bytes) test_die("a page lies outside of the file");
    for (size_t i = from; i < from + len; i++) {
        w->map->places[i] = (uint8_t)place;
        w->map->owners[i] = (int16_t)owner;
    }
}

static int note_segment(struct walk *w, struct silt_view value)
{
    struct silt_segment_info info;
    struct test_page_map *map = w->map;
    if (silt_segment_peek(value, &info, NULL) != SILT_OK) test_die("a segment is damaged");
    if (map->segment_count == sizeof map->segments / sizeof map->segments[0])
        test_die("too many segments");
    map->segments[map->segment_count] =
        (struct test_segment_at){info.life, info.ns, info.first, info.last};
    return (int)map->segment_count++;
}

static void mark_value(struct walk *w, struct silt_view value, int owner)
{
    if (owner >= 0) {
        mark(w, value.at, SILT_SEGMENT_HEADER, PLACE_SEGMENT, owner);
        mark(w, value.at + SILT_SEGMENT_HEADER, value.len - SILT_SEGMENT_HEADER, PLACE_SEGMENT_BODY,
             owner);
        return;
    }
    enum place place = w->main ? PLACE_RECORD : PLACE_ROW;
    if (w->db == SILT_DB_COUNT && !w->main) place = PLACE_FREE_LIST;
    mark(w, value.at, value.len, place, -1);
}

static void mark_pair(struct walk *w, const uint8_t *node)
{
    struct silt_view value, key = silt_node_key(node);
    uint64_t page, count;
    if (!silt_node_value(&w->pages, node, &value, &page, &count)) test_die("a value is damaged");
    int owner = w->db == SILT_DB_SEGMENTS ? note_segment(w, value) : -1;
    bool free_list = w->db == SILT_DB_COUNT && !w->main;
    mark(w, node, NODE_HEAD, PLACE_NODE, owner);
    mark(w, key.at, key.len,
         owner >= 0  ? PLACE_KEY
         : free_list ? PLACE_FREE_LIST
                     : PLACE_ROW_KEY,
         owner);
    if (count > 0) {
        const uint8_t *at = w->file + page * PAGE;
        mark(w, key.at + key.len, 8, PLACE_REFERENCE, owner);
        mark(w, at, count * PAGE, PLACE_SLACK, owner);
        mark(w, at, HEADER, PLACE_OVERFLOW, owner);
    }
    mark_value(w, value, owner);
}

static void mark_page(struct walk *w, uint64_t number, bool numbers)
{
    const uint8_t *page = silt_page_of_tree(&w->pages, number, numbers);
    if (!page) test_die("page %llu is damaged", (unsigned long long)number);
    bool branch = silt_page_is_branch(page);
    size_t count = silt_page_keys(page);
    enum place own = branch ? PLACE_BRANCH : PLACE_LEAF;
    mark(w, page, PAGE, PLACE_SLACK, -1);
    mark(w, page, HEADER + 2 * count, own, -1);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *node = silt_page_node(page, i);
        if (!branch) {
            mark_pair(w, node);
            continue;
        }
        mark(w, node, NODE_HEAD + silt_node_key(node).len, PLACE_BRANCH, -1);
        mark_page(w, silt_node_child(node), numbers);
    }
}

static void mark_tree(struct walk *w, const struct silt_tree *tree, enum silt_db db, bool main)
{
    w->db = db;
    w->main = main;
    if (tree->root != UINT64_MAX) mark_page(w, tree->root, tree->numbers);
}

void test_page_map(const char *file, struct test_page_map *ret)
{
    size_t len;
    uint8_t *bytes = (uint8_t *)test_file_read(file, &len);
    struct walk w = {.map = ret, .file = bytes};
    struct silt_tree tree;
    *ret = (struct test_page_map){.bytes = len};
    ret->places = calloc(len, 1);
    ret->owners = malloc(len * sizeof *ret->owners);
    if (!ret->places || !ret->owners) test_die("no memory");
    memset(ret->owners, 0xFF, len * sizeof *ret->owners);
    uint64_t even = silt_get_le64(bytes + 144), odd = silt_get_le64(bytes + PAGE + 144);
    uint64_t txn = even > odd ? even : odd;
    if (!silt_pages_begin(&w.pages, bytes, len, PAGE, txn)) test_die("no snapshot");
    for (uint64_t i = 0; i < 2; i++) {
        mark(&w, bytes + i * PAGE, PAGE, PLACE_SLACK, -1);
        mark(&w, bytes + i * PAGE, 152, i == txn % 2 ? PLACE_META : PLACE_META_OLD, -1);
    }
    mark_tree(&w, &w.pages.free, SILT_DB_COUNT, false);
    mark_tree(&w, &w.pages.main, SILT_DB_COUNT, true);
    for (enum silt_db db = 0; db < SILT_DB_COUNT; db++) {
        if (silt_pages_tree(&w.pages, silt_db_name(db), &tree) != SILT_OK) test_die("no tree");
        mark_tree(&w, &tree, db, false);
    }
    free(bytes);
}

void test_page_map_free(struct test_page_map *map)
{
    free(map->places);
    free(map->owners);
}
