/* The whole of an LMDB file's structure held against itself: what single reads cannot see, such as a root that was turned into an old
 * page, or a free list that gives away pages which are in use. */
#include "alloc.h"
#include "store_page.h"

struct audit {
    const struct silt_pages *pages;
    uint8_t *used; /* a bit for each page */
    silt_page_found *found;
    void *ctx;
    const char *name; /* of the tree at hand */
    bool numbers;
    size_t depth;
    struct silt_tree counted;
};

static void tell(struct audit *a, const char *what, uint64_t page)
{
    struct silt_page_fault fault = {a->name, what, page, true};
    a->found(a->ctx, &fault);
}

static void tell_count(struct audit *a, const struct silt_tree *tree)
{
    struct silt_page_fault fault = {
        a->name, "the record counts other pages or entries than there are", tree->root, false};
    a->found(a->ctx, &fault);
}

/* false: not for the first time, so that a walk does not go in circles. */
static bool use(struct audit *a, uint64_t first, uint64_t count)
{
    for (uint64_t page = first; page < first + count; page++) {
        if (page < SILT_PAGE_META || page > a->pages->last_page) {
            tell(a, "a page lies outside of the file", page);
            return false;
        }
        uint8_t bit = (uint8_t)(1u << page % 8);
        if (a->used[page / 8] & bit) {
            tell(a, "a page belongs to two places", page);
            return false;
        }
        a->used[page / 8] |= bit;
    }
    return true;
}

static uint64_t number_of(struct silt_view key)
{
    return key.len == 8 ? silt_get_le64(key.at) : 0;
}

static bool below(const struct audit *a, struct silt_view x, struct silt_view y)
{
    return a->numbers ? number_of(x) < number_of(y) : silt_view_compare(x, y) < 0;
}

/* The keys between which a page's keys must lie; at NULL: open. */
struct bounds {
    struct silt_view low;
    struct silt_view high;
};

static void check_leaf(struct audit *a, const uint8_t *page, uint64_t number,
                       const struct bounds *bounds)
{
    size_t count = silt_page_keys(page);
    struct silt_view first = silt_node_key(silt_page_node(page, 0));
    struct silt_view last = silt_node_key(silt_page_node(page, count - 1));
    if ((bounds->low.at && below(a, first, bounds->low)) ||
        (bounds->high.at && !below(a, last, bounds->high)))
        tell(a, "keys lie outside of their page's range", number);
    a->counted.leaf_pages++;
    a->counted.entries += count;
    for (size_t i = 0; i < count; i++) {
        struct silt_view value;
        uint64_t own, own_count;
        if (!silt_node_value(a->pages, silt_page_node(page, i), &value, &own, &own_count)) {
            tell(a, "a value's pages are damaged", number);
            continue;
        }
        (void)use(a, own, own_count);
        a->counted.overflow_pages += own_count;
    }
}

static void walk(struct audit *a, uint64_t number, size_t level, struct bounds bounds)
{
    const uint8_t *page =
        level < SILT_PAGE_DEPTH ? silt_page_of_tree(a->pages, number, a->numbers) : NULL;
    if (!page) {
        tell(a, "a page is damaged", number);
        return;
    }
    if (!use(a, number, 1)) return;
    if (!silt_page_is_branch(page)) {
        if (level + 1 != a->depth) tell(a, "a leaf lies at the wrong depth", number);
        check_leaf(a, page, number, &bounds);
        return;
    }
    a->counted.branch_pages++;
    if (level + 1 >= a->depth) {
        tell(a, "a branch lies at the wrong depth", number);
        return;
    }
    size_t count = silt_page_keys(page);
    for (size_t i = 0; i < count; i++) {
        struct bounds inner = bounds;
        if (i > 0) inner.low = silt_node_key(silt_page_node(page, i));
        if (i + 1 < count) inner.high = silt_node_key(silt_page_node(page, i + 1));
        walk(a, silt_node_child(silt_page_node(page, i)), level + 1, inner);
    }
}

static void check_tree(struct audit *a, const struct silt_tree *tree, const char *name)
{
    a->name = name;
    a->numbers = tree->numbers;
    a->depth = tree->depth;
    a->counted = (struct silt_tree){0};
    if (tree->root != UINT64_MAX) walk(a, tree->root, 0, (struct bounds){{NULL, 0}, {NULL, 0}});
    if (a->counted.entries != tree->entries || a->counted.leaf_pages != tree->leaf_pages ||
        a->counted.branch_pages != tree->branch_pages ||
        a->counted.overflow_pages != tree->overflow_pages)
        tell_count(a, tree);
}

/* Trees that the main tree names. */
static void check_named(struct audit *a)
{
    struct silt_page_cursor cursor;
    struct silt_tree tree;
    char name[32];
    enum silt_status status = silt_page_seek(&cursor, a->pages, &a->pages->main, silt_view("", 0));
    for (; status == SILT_OK; status = silt_page_step(&cursor, 1)) {
        const uint8_t *node =
            silt_page_node(cursor.at[cursor.depth - 1].page, cursor.at[cursor.depth - 1].index);
        silt_escape(silt_node_key(node), name, sizeof name);
        a->name = name;
        if (silt_node_tree(a->pages, node, &tree))
            check_tree(a, &tree, name);
        else
            tell(a, "a tree's record is damaged", 0);
    }
    a->name = "main";
    if (status != SILT_END) tell(a, "a page is damaged", a->pages->main.root);
}

/* A page in the free list is given to the next writer: it must not be in use. */
static void check_free_list(struct audit *a)
{
    struct silt_page_cursor cursor;
    struct silt_view key, value;
    enum silt_status status = silt_page_seek(&cursor, a->pages, &a->pages->free, silt_view("", 0));
    a->name = "free list";
    for (; status == SILT_OK; status = silt_page_step(&cursor, 1)) {
        if (silt_page_pair(&cursor, &key, &value) != SILT_OK || value.len < 8) {
            tell(a, "a list is damaged", 0);
            continue;
        }
        uint64_t count = silt_get_le64(value.at);
        if (count > value.len / 8 - 1) {
            tell(a, "a list is longer than its place", count);
            continue;
        }
        for (uint64_t i = 1; i <= count; i++)
            (void)use(a, silt_get_le64(value.at + 8 * i), 1);
    }
    if (status != SILT_END) tell(a, "a page is damaged", a->pages->free.root);
}

/* LMDB loses no page: one that is in no tree and not free was in a tree before something in it was damaged. Told once for each run of them. */
static void check_lost(struct audit *a)
{
    uint64_t last = a->pages->last_page, in_file = a->pages->bytes / a->pages->page_bytes;
    a->name = "file";
    bool before = false;
    for (uint64_t page = SILT_PAGE_META; page <= last && page < in_file; page++) {
        bool lost = (a->used[page / 8] & 1u << page % 8) == 0;
        if (lost && !before) {
            struct silt_page_fault fault = {
                a->name, "pages that no tree leads to, and that are not free", page, false};
            a->found(a->ctx, &fault);
        }
        before = lost;
    }
}

enum silt_status silt_pages_audit(const struct silt_pages *pages, silt_page_found *found, void *ctx)
{
    struct audit a = {.pages = pages, .found = found, .ctx = ctx, .name = "file"};
    if (pages->last_page >= pages->bytes / pages->page_bytes + (1u << 16)) {
        tell(&a, "the file is shorter than it says", pages->last_page);
        return SILT_OK; /* a little is well: the last pages of a transaction may never be written */
    }
    a.used = silt_calloc((size_t)(pages->last_page / 8 + 1), 1);
    if (!a.used) return SILT_ERR_MEMORY;
    check_tree(&a, &pages->main, "main");
    check_named(&a);
    check_tree(&a, &pages->free, "free list");
    check_free_list(&a);
    check_lost(&a);
    silt_free(a.used);
    return SILT_OK;
}
