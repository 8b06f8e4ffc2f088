/* Bounded reading of LMDB's pages: see store_page.h. Source: lmdb 0.9.24, mdb.c, "Page Flags", struct MDB_page, MDB_node, MDB_db,
 * MDB_meta. */
#include "store_page.h"

enum { /* places in a page */
       AT_NUMBER = 0,
       AT_FLAGS = 10,
       AT_LOWER = 12, /* or, of an overflow page, the number of its pages */
       AT_UPPER = 14,
       HEADER = 16
};
enum { PAGE_BRANCH = 1, PAGE_LEAF = 2, PAGE_OVERFLOW = 4, PAGE_META_FLAG = 8 };
enum { NODE_BIG = 1, NODE_TREE = 2, NODE_HEAD = 8 };
enum { /* places in a meta page */
       META_MAGIC = 16,
       META_VERSION = 20,
       META_FREE = 40,
       META_MAIN = 88,
       META_LAST = 136,
       META_TXN = 144,
       META_END = 152,
       TREE_BYTES = 48
};
#define MAGIC 0xBEEFC0DEu
#define DATA_VERSION 1u
#define PAGE_LEAST 512u
#define PAGE_MOST 65536u /* an offset in a page has 16 bits */
#define NO_PAGE UINT64_MAX
#define NEVER_WRITTEN_MAX (1u << 16)

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

/* ---- meta pages ---- */

static bool meta_ok(const uint8_t *meta, unsigned slot)
{
    return get16(meta + AT_FLAGS) == PAGE_META_FLAG && silt_get_le64(meta + AT_NUMBER) == slot &&
           silt_get_le32(meta + META_MAGIC) == MAGIC &&
           silt_get_le32(meta + META_VERSION) == DATA_VERSION;
}

bool silt_pages_head_ok(struct silt_view head, uint64_t file_bytes)
{
    if (head.len < META_END || !meta_ok(head.at, 0)) return false;
    uint64_t size = silt_get_le32(head.at + META_FREE); /* kept in the free list's record */
    if (size < PAGE_LEAST || size > PAGE_MOST || (size & (size - 1)) != 0) return false;
    if (head.len < size + META_END || !meta_ok(head.at + size, 1)) return false;
    if (silt_get_le32(head.at + size + META_FREE) != size) return false;
    uint64_t even = silt_get_le64(head.at + META_TXN);
    uint64_t odd = silt_get_le64(head.at + size + META_TXN);
    /* Each commit writes the other one: they follow each other, or nothing was ever committed. */
    bool fresh = even == 0 && odd == 0;
    bool follow = even % 2 == 0 && odd % 2 == 1 && (even > odd ? even - odd : odd - even) == 1;
    uint64_t last = silt_get_le64(head.at + (odd > even ? size : 0) + META_LAST);
    /* The last pages of a transaction may never be written; a flipped high bit is more than that. */
    return (fresh || follow) && last < file_bytes / size + NEVER_WRITTEN_MAX;
}

static struct silt_tree get_tree(const uint8_t *at)
{
    return (struct silt_tree){.depth = get16(at + 6),
                              .branch_pages = silt_get_le64(at + 8),
                              .leaf_pages = silt_get_le64(at + 16),
                              .overflow_pages = silt_get_le64(at + 24),
                              .entries = silt_get_le64(at + 32),
                              .root = silt_get_le64(at + 40)};
}

bool silt_pages_begin(struct silt_pages *pages, const uint8_t *map, uint64_t bytes,
                      uint64_t page_bytes, uint64_t txn)
{
    uint8_t meta[META_END];
    uint64_t slot = txn % 2;
    if (bytes < (slot + 1) * page_bytes) return false;
    const uint64_t *words = (const uint64_t *)(const void *)(map + slot * page_bytes);
    for (size_t i = 0; i < sizeof meta / 8;
         i++) { /* acquire: each word is read after the one before */
        uint64_t word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
        memcpy(meta + 8 * i, &word, 8);
    }
    /* The writer may be two commits further: then it wrote while we copied. */
    uint64_t again = __atomic_load_n(&words[META_TXN / 8], __ATOMIC_ACQUIRE);
    if (silt_get_le64((const uint8_t *)&again) != txn) return false;
    if (!meta_ok(meta, (unsigned)slot) || silt_get_le64(meta + META_TXN) != txn) return false;
    *pages = (struct silt_pages){.map = map,
                                 .bytes = bytes,
                                 .page_bytes = page_bytes,
                                 .last_page = silt_get_le64(meta + META_LAST),
                                 .txn = txn,
                                 .free = get_tree(meta + META_FREE),
                                 .main = get_tree(meta + META_MAIN)};
    pages->free.numbers = true;
    return true;
}

/* ---- pages and nodes ---- */

/* A page that is where it says it is, inside the file and the snapshot. NULL: damage. */
static const uint8_t *page_at(const struct silt_pages *p, uint64_t number)
{
    if (number < SILT_PAGE_META || number > p->last_page || number >= p->bytes / p->page_bytes)
        return NULL;
    const uint8_t *page = p->map + number * p->page_bytes;
    return silt_get_le64(page + AT_NUMBER) == number ? page : NULL;
}

size_t silt_page_keys(const uint8_t *page)
{
    return (size_t)(get16(page + AT_LOWER) - HEADER) / 2;
}

bool silt_page_is_branch(const uint8_t *page)
{
    return get16(page + AT_FLAGS) == PAGE_BRANCH;
}

const uint8_t *silt_page_node(const uint8_t *page, size_t index)
{
    return page + get16(page + HEADER + 2 * index);
}

static size_t node_key_len(const uint8_t *node)
{
    return get16(node + 6);
}

struct silt_view silt_node_key(const uint8_t *node)
{
    return silt_view(node + NODE_HEAD, node_key_len(node));
}

uint64_t silt_node_child(const uint8_t *node)
{
    return (uint64_t)get16(node) | (uint64_t)get16(node + 2) << 16 |
           (uint64_t)get16(node + 4) << 32;
}

static size_t node_value_len(const uint8_t *node)
{
    return (size_t)(get16(node) | (uint32_t)get16(node + 2) << 16);
}

/* Bytes that a node takes in its page; 0: it does not fit into it. */
static size_t node_bytes(const struct silt_pages *p, const uint8_t *page, size_t index)
{
    size_t at = get16(page + HEADER + 2 * index);
    if (at < get16(page + AT_UPPER) || at + NODE_HEAD > p->page_bytes || at % 2 != 0) return 0;
    const uint8_t *node = page + at;
    size_t room = p->page_bytes - at - NODE_HEAD, more = 0;
    if (node_key_len(node) > room) return 0;
    if (!silt_page_is_branch(page)) {
        unsigned flags = get16(node + 4);
        if (flags != 0 && flags != NODE_BIG && flags != NODE_TREE) return 0;
        more = flags == NODE_BIG ? 8 : node_value_len(node);
    }
    if (more > room - node_key_len(node)) return 0;
    size_t bytes = NODE_HEAD + node_key_len(node) + more;
    return bytes + bytes % 2;
}

static bool ascends(struct silt_view a, struct silt_view b, bool numbers)
{
    if (!numbers) return silt_view_compare(a, b) < 0;
    return a.len == 8 && b.len == 8 && silt_get_le64(a.at) < silt_get_le64(b.at);
}

/* A page of a tree, whole: its nodes lie inside it, fill it without a hole, and their keys ascend. The first key of a branch page is
 * not looked at: LMDB leaves it as it comes. */
const uint8_t *silt_page_of_tree(const struct silt_pages *p, uint64_t number, bool numbers)
{
    const uint8_t *page = page_at(p, number);
    if (!page) return NULL;
    unsigned flags = get16(page + AT_FLAGS), lower = get16(page + AT_LOWER);
    unsigned upper = get16(page + AT_UPPER);
    if (flags != PAGE_BRANCH && flags != PAGE_LEAF) return NULL;
    if (lower <= HEADER || lower % 2 != 0 || lower > upper || upper > p->page_bytes) return NULL;
    size_t count = silt_page_keys(page), filled = 0, first = flags == PAGE_BRANCH ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        size_t bytes = node_bytes(p, page, i);
        if (bytes == 0) return NULL;
        filled += bytes;
        if (i > first && !ascends(silt_node_key(silt_page_node(page, i - 1)),
                                  silt_node_key(silt_page_node(page, i)), numbers))
            return NULL;
    }
    return filled == p->page_bytes - upper ? page : NULL;
}

/* The value may lie in pages of its own. Those may be more than it needs: LMDB reuses them within a transaction. */
bool silt_node_value(const struct silt_pages *p, const uint8_t *node, struct silt_view *ret,
                     uint64_t *ret_page, uint64_t *ret_count)
{
    size_t len = node_value_len(node);
    const uint8_t *at = node + NODE_HEAD + node_key_len(node);
    *ret_page = *ret_count = 0;
    *ret = silt_view(at, len);
    if (get16(node + 4) != NODE_BIG) return true;
    uint64_t number = silt_get_le64(at);
    const uint8_t *page = page_at(p, number);
    if (!page || get16(page + AT_FLAGS) != PAGE_OVERFLOW) return false;
    uint64_t count = silt_get_le32(page + AT_LOWER);
    if (count < (HEADER + len + p->page_bytes - 1) / p->page_bytes) return false;
    if (count > p->last_page - number + 1 || count > p->bytes / p->page_bytes - number)
        return false;
    *ret = silt_view(page + HEADER, len);
    *ret_page = number;
    *ret_count = count;
    return true;
}

bool silt_node_tree(const struct silt_pages *p, const uint8_t *node, struct silt_tree *ret)
{
    struct silt_view value;
    uint64_t page, count;
    if (get16(node + 4) != NODE_TREE || !silt_node_value(p, node, &value, &page, &count) ||
        value.len != TREE_BYTES)
        return false;
    *ret = get_tree(value.at);
    return true;
}

/* ---- walking ---- */

/* First index whose key is at or above the given one; count: none. */
static size_t lower_bound(const uint8_t *page, size_t first, struct silt_view key)
{
    size_t low = first, high = silt_page_keys(page);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (silt_view_compare(silt_node_key(silt_page_node(page, middle)), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Has the page a key where the branches above say that its keys lie? A turned bit in a branch may lead to a sound page of another place, and what lies in the
 * right one would be hidden. One key is enough: the branch's own keys may be the damaged ones, and searches do not depend on them (see go_back). */
static bool has_its_place(const struct silt_page_cursor *c, const uint8_t *page)
{
    struct silt_view low = {NULL, 0}, high = {NULL, 0};
    size_t first = silt_page_is_branch(page) ? 1 : 0, count = silt_page_keys(page);
    if (count <= first) return true;
    for (size_t level = c->depth; level > 0; level--) {
        const uint8_t *above = c->at[level - 1].page;
        size_t index = c->at[level - 1].index;
        if (!low.at && index > 0) low = silt_node_key(silt_page_node(above, index));
        if (!high.at && index + 1 < silt_page_keys(above))
            high = silt_node_key(silt_page_node(above, index + 1));
    }
    struct silt_view least = silt_node_key(silt_page_node(page, first));
    struct silt_view most = silt_node_key(silt_page_node(page, count - 1));
    return !(low.at && ascends(most, low, c->numbers)) &&
           !(high.at && !ascends(least, high, c->numbers));
}

/* All leaves lie at one depth: pages that lead back to themselves are left there. */
static bool push(struct silt_page_cursor *c, uint64_t number)
{
    const uint8_t *page =
        c->depth < SILT_PAGE_DEPTH ? silt_page_of_tree(c->pages, number, c->numbers) : NULL;
    if (!page || silt_page_is_branch(page) != (c->depth + 1 < c->leaf_depth) ||
        !has_its_place(c, page))
        return false;
    c->at[c->depth].page = page;
    c->at[c->depth].index = 0;
    c->depth++;
    return true;
}

/* From the page at hand down to a leaf, along the first (way > 0) or last children. */
static bool go_down(struct silt_page_cursor *c, int way)
{
    while (silt_page_is_branch(c->at[c->depth - 1].page)) {
        const uint8_t *page = c->at[c->depth - 1].page;
        if (!push(c, silt_node_child(silt_page_node(page, c->at[c->depth - 1].index))))
            return false;
        page = c->at[c->depth - 1].page;
        if (way < 0) c->at[c->depth - 1].index = silt_page_keys(page) - 1;
    }
    return true;
}

struct silt_view silt_page_key(const struct silt_page_cursor *c)
{
    return silt_node_key(silt_page_node(c->at[c->depth - 1].page, c->at[c->depth - 1].index));
}

static bool is_at_leaf(const struct silt_page_cursor *c)
{
    return c->depth > 0 && !silt_page_is_branch(c->at[c->depth - 1].page);
}

/* In order behind the last one that was? */
static bool is_in_order(const struct silt_page_cursor *c, int way)
{
    if (!c->passed.at) return true;
    struct silt_view key = silt_page_key(c);
    return way > 0 ? ascends(c->passed, key, c->numbers) : ascends(key, c->passed, c->numbers);
}

enum silt_status silt_page_step(struct silt_page_cursor *c, int way)
{
    size_t level = c->depth;
    if (is_at_leaf(c) && !c->astray) c->passed = silt_page_key(c);
    while (level > 0) { /* up to where there is a neighbour */
        size_t index = c->at[level - 1].index;
        if (way > 0 ? index + 1 < silt_page_keys(c->at[level - 1].page) : index > 0) break;
        level--;
    }
    if (level == 0) return SILT_END;
    c->depth = level;
    c->at[level - 1].index = way > 0 ? c->at[level - 1].index + 1 : c->at[level - 1].index - 1;
    if (!go_down(c, way)) return SILT_ERR_CORRUPT;
    c->astray = !is_in_order(c, way);
    return c->astray ? SILT_ERR_CORRUPT : SILT_OK;
}

/* The branches led to a leaf that begins at or above the key. Where one of their keys is damaged, the leaf before may hold it, or more of what is above it: that
 * would be hidden. */
static void go_back(struct silt_page_cursor *c, struct silt_view key)
{
    struct silt_page_cursor before = *c;
    while (silt_page_step(&before, -1) == SILT_OK &&
           silt_view_compare(silt_page_key(&before), key) >= 0)
        *c = before;
    c->passed = silt_view(NULL, 0);
    c->astray = false;
}

enum silt_status silt_page_seek(struct silt_page_cursor *c, const struct silt_pages *pages,
                                const struct silt_tree *tree, struct silt_view key)
{
    c->pages = pages;
    c->numbers = tree->numbers;
    c->leaf_depth = tree->depth;
    c->passed = silt_view(NULL, 0);
    c->astray = false;
    c->depth = 0;
    if (tree->root == NO_PAGE) return tree->entries == 0 ? SILT_END : SILT_ERR_CORRUPT;
    for (uint64_t number = tree->root;;) {
        if (!push(c, number)) return SILT_ERR_CORRUPT;
        const uint8_t *page = c->at[c->depth - 1].page;
        size_t *index = &c->at[c->depth - 1].index;
        if (silt_page_is_branch(page)) {
            *index = lower_bound(page, 1, key);
            if (*index == silt_page_keys(page) ||
                !silt_view_equal(silt_node_key(silt_page_node(page, *index)), key))
                *index -= 1; /* the child whose keys begin at or below */
            number = silt_node_child(silt_page_node(page, *index));
            continue;
        }
        *index = lower_bound(page, 0, key);
        if (*index == 0) go_back(c, key);
        if (c->at[c->depth - 1].index < silt_page_keys(c->at[c->depth - 1].page)) return SILT_OK;
        *index = silt_page_keys(page) - 1;
        enum silt_status status = silt_page_step(c, 1);
        while (status == SILT_OK && silt_view_compare(silt_page_key(c), key) < 0)
            status = silt_page_step(c, 1); /* never back behind what was asked for */
        return status;
    }
}

enum silt_status silt_page_pair(const struct silt_page_cursor *c, struct silt_view *ret_key,
                                struct silt_view *ret_value)
{
    if (c->depth == 0) return SILT_END;
    const uint8_t *node = silt_page_node(c->at[c->depth - 1].page, c->at[c->depth - 1].index);
    *ret_key = silt_node_key(node);
    uint64_t page, count;
    return silt_node_value(c->pages, node, ret_value, &page, &count) ? SILT_OK : SILT_ERR_CORRUPT;
}

enum silt_status silt_pages_tree(const struct silt_pages *pages, const char *name,
                                 struct silt_tree *ret)
{
    struct silt_page_cursor cursor;
    struct silt_view key, value;
    enum silt_status status = silt_page_seek(&cursor, pages, &pages->main, silt_view_str(name));
    if (status == SILT_OK) status = silt_page_pair(&cursor, &key, &value);
    if (status != SILT_OK) return status;
    if (!silt_view_equal(key, silt_view_str(name))) return SILT_END;
    const uint8_t *node =
        silt_page_node(cursor.at[cursor.depth - 1].page, cursor.at[cursor.depth - 1].index);
    return silt_node_tree(pages, node, ret) ? SILT_OK : SILT_ERR_CORRUPT;
}

enum silt_status silt_pages_free(const struct silt_pages *pages, uint64_t *ret)
{
    struct silt_page_cursor cursor;
    struct silt_view key, value;
    uint64_t count = 0;
    enum silt_status status = silt_page_seek(&cursor, pages, &pages->free, silt_view("", 0));
    while (status == SILT_OK) {
        status = silt_page_pair(&cursor, &key, &value);
        if (status != SILT_OK) break;
        if (value.len >= 8) count += silt_get_le64(value.at);
        status = silt_page_step(&cursor, 1);
    }
    if (status == SILT_END) *ret = count;
    return status == SILT_END ? SILT_OK : status;
}
