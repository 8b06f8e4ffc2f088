/* Does a snapshot's meta page lead to what was committed last? A bit turned in a transaction's number or in a root may lead to an older state that is whole in
 * itself: every page is sound, and what was committed since is hidden. The free list tells: a commit notes there, under its own number, the pages that it
 * no longer needs, so its last key is the number of the snapshot, and no root stands in it. Source: lmdb 0.9.24, mdb.c, mdb_freelist_save. */
#include "store_page.h"

static bool note(struct silt_roots *roots, uint64_t page)
{
    if (roots->wrong_count == SILT_ROOTS_MAX) return false;
    roots->wrong[roots->wrong_count++] = page;
    return true;
}

/* The number of the last commit that freed pages; false: the list is empty, or damaged so that it says nothing. */
static bool last_freeing(const struct silt_pages *pages, uint64_t *ret)
{
    static const uint8_t high[9] = {255, 255, 255, 255, 255, 255, 255, 255, 255};
    struct silt_page_cursor cursor;
    enum silt_status status =
        silt_page_seek(&cursor, pages, &pages->free, silt_view(high, sizeof high));
    if (status != SILT_END || cursor.depth == 0) return false;
    struct silt_view key = silt_page_key(&cursor);
    if (key.len != 8) return false;
    *ret = silt_get_le64(key.at);
    return true;
}

/* The other meta page is the commit before; its pages are not used again while a reader holds the newer one. One that freed pages later than it says is the
 * newest in truth. */
static bool is_newest(const struct silt_pages *pages)
{
    struct silt_pages before;
    uint64_t freed;
    if (last_freeing(pages, &freed) && freed != pages->txn) return false;
    if (pages->txn == 0 ||
        !silt_pages_begin(&before, pages->map, pages->bytes, pages->page_bytes, pages->txn - 1))
        return true;
    return !last_freeing(&before, &freed) || freed <= before.txn;
}

struct roots_of {
    uint64_t root[SILT_ROOTS_MAX];
    size_t count;
};

static bool take_root(struct roots_of *known, const struct silt_pages *pages,
                      const struct silt_tree *tree)
{
    if (tree->root == UINT64_MAX || known->count == SILT_ROOTS_MAX) return true;
    for (size_t i = 0; i < known->count; i++)
        if (known->root[i] == tree->root) return false;
    known->root[known->count++] = tree->root;
    const uint8_t *page = silt_page_of_tree(pages, tree->root, tree->numbers);
    /* A damaged page costs what it leads to. A sound one that is another tree's, or another state's, mostly has another number of pairs. */
    return !page || tree->depth != 1 || silt_page_is_branch(page) ||
           silt_page_keys(page) == tree->entries;
}

static void take_roots(struct roots_of *known, const struct silt_pages *pages,
                       struct silt_roots *ret)
{
    struct silt_page_cursor cursor;
    struct silt_tree tree;
    if (!take_root(known, pages, &pages->main) || !take_root(known, pages, &pages->free))
        ret->newest = false;
    enum silt_status status = silt_page_seek(&cursor, pages, &pages->main, silt_view("", 0));
    for (; status == SILT_OK; status = silt_page_step(&cursor, 1)) {
        const uint8_t *node =
            silt_page_node(cursor.at[cursor.depth - 1].page, cursor.at[cursor.depth - 1].index);
        if (silt_node_tree(pages, node, &tree) && !take_root(known, pages, &tree) &&
            !note(ret, tree.root))
            ret->newest = false;
    }
}

static void free_page(const struct roots_of *known, uint64_t page, struct silt_roots *ret)
{
    for (size_t i = 0; i < known->count; i++) {
        if (known->root[i] != page) continue;
        if (i < 2 || !note(ret, page))
            ret->newest = false; /* of the main tree, of the list itself */
    }
}

void silt_pages_roots(const struct silt_pages *pages, struct silt_roots *ret)
{
    struct silt_page_cursor cursor;
    struct silt_view key, value;
    struct roots_of known = {.count = 0};
    *ret = (struct silt_roots){.newest = is_newest(pages)};
    take_roots(&known, pages, ret);
    enum silt_status status = silt_page_seek(&cursor, pages, &pages->free, silt_view("", 0));
    for (; status == SILT_OK; status = silt_page_step(&cursor, 1)) {
        if (silt_page_pair(&cursor, &key, &value) != SILT_OK || value.len < 8) continue;
        uint64_t count = silt_get_le64(value.at);
        for (uint64_t i = 1; i <= count && i < value.len / 8; i++)
            free_page(&known, silt_get_le64(value.at + 8 * i), ret);
    }
}
