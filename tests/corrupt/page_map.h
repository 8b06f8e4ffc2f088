/* What every byte of an archive's file is: which structure of LMDB's or of ours, and whose segment. Set-up for damage: it checks nothing. */
#ifndef TEST_PAGE_MAP_H
#define TEST_PAGE_MAP_H

#include "format/branded_id.h"
#include "format/store_page.h"

enum place {
    PLACE_UNUSED,       /* of no tree: free pages and what lies behind them */
    PLACE_META,         /* the meta page that counts */
    PLACE_META_OLD,     /* and the one that the next commit writes over */
    PLACE_BRANCH,       /* a branch page's header, offsets, nodes and keys */
    PLACE_LEAF,         /* a leaf's header and offsets */
    PLACE_NODE,         /* a leaf's node heads: lengths, flags */
    PLACE_KEY,          /* keys of segments */
    PLACE_ROW_KEY,      /* all other keys */
    PLACE_RECORD,       /* of the main tree: what it says of a tree */
    PLACE_FREE_LIST,    /* lists of free pages, with their keys */
    PLACE_ROW,          /* rows of streams, names, gaps, forks, late entries, meta */
    PLACE_REFERENCE,    /* which pages of its own a value has */
    PLACE_OVERFLOW,     /* the header of such pages */
    PLACE_SEGMENT,      /* a segment's header */
    PLACE_SEGMENT_BODY, /* and its body */
    PLACE_SLACK,        /* between what a page holds, and behind it */
    PLACE_COUNT
};
extern const char *const test_place_names[PLACE_COUNT];

struct test_segment_at {
    uint64_t life;
    struct silt_namespace ns;
    struct silt_wire_id first, last;
};

struct test_page_map {
    uint64_t bytes;
    uint8_t *places; /* one enum place for each byte */
    int16_t *owners; /* index of the segment, or -1 */
    struct test_segment_at segments[256];
    size_t segment_count;
};
/* Of the newest snapshot in the file. Ends the test where the file is not whole. */
void test_page_map(const char *file, struct test_page_map *ret);
void test_page_map_free(struct test_page_map *map);

#endif
