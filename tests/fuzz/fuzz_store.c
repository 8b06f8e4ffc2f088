/* The store: its rows, their checksums made right (what decodes must encode to the same bytes), and LMDB's pages, in pages of 512 bytes so that a small input
 * is a whole tree. The first byte chooses which. */
#include "fuzz.h"

#include "format/rows.h"
#include "format/store_priv.h"

#define FUZZ_ROW_SEED 0x73696c7420726f77ULL /* of format/rows.c */
enum { PAGE = 512, PAGES_MAX = 40, TXN = 5, PAIRS_MAX = 3000 };

static const struct silt_view key = {(const uint8_t *)"key", 3};
static struct silt_buf row, again;

/* ---- rows ---- */

static void same(enum silt_status status)
{
    if (status != SILT_OK || !silt_view_equal(silt_buf_view(&row), silt_buf_view(&again))) abort();
}

/* A row of an earlier version is written again as one of the newest; that one must come back as it is. */
static void stream_row(void)
{
    static struct silt_buf groups;
    struct silt_stream_row stream;
    for (int round = 0; round < 2; round++) {
        enum silt_status status =
            silt_stream_row_decode(silt_buf_view(&row), key, &groups, &stream, NULL);
        if (status != SILT_OK && round == 0) return;
        silt_buf_clear(&again);
        if (status != SILT_OK || silt_stream_row_encode(&stream, key, &again) != SILT_OK) abort();
        bool newest = row.at[0] == again.at[0];
        if (newest) same(SILT_OK);
        if (newest) return;
        silt_buf_clear(&row);
        if (silt_buf_put(&row, again.at, again.len) != SILT_OK) abort();
    }
    abort();
}

static void gap_row(void)
{
    struct silt_gap_row gap;
    if (silt_gap_row_decode(silt_buf_view(&row), key, &gap, NULL) == SILT_OK)
        same(silt_gap_row_encode(&gap, key, &again));
}

static void fork_row(void)
{
    struct silt_fork_row fork;
    if (silt_fork_row_decode(silt_buf_view(&row), key, &fork, NULL) == SILT_OK)
        same(silt_fork_row_encode(&fork, key, &again));
}

static void late_row(void)
{
    struct silt_late_row late;
    if (silt_late_row_decode(silt_buf_view(&row), key, &late, NULL) == SILT_OK)
        same(silt_late_row_encode(&late, key, &again));
}

static void meta_row(void)
{
    struct silt_meta_row meta;
    if (silt_meta_row_decode(silt_buf_view(&row), key, &meta, NULL) == SILT_OK)
        same(silt_meta_row_encode(&meta, key, &again));
}

static void name_row(void)
{
    uint64_t number, life;
    struct silt_namespace ns;
    struct silt_wire_id id;
    if (silt_name_row_decode(silt_buf_view(&row), key, &number, NULL) == SILT_OK)
        same(silt_name_row_encode(number, key, &again));
    if (silt_key_segment_parse(silt_buf_view(&row), &life, &ns, &id)) {
        struct silt_key back = silt_key_segment(life, ns, id);
        if (!silt_view_equal(silt_key_view(&back), silt_buf_view(&row))) abort();
    }
}

static void rows(unsigned which, struct silt_view body)
{
    static void (*const kinds[])(void) = {stream_row, gap_row,  fork_row,
                                          late_row,   meta_row, name_row};
    silt_buf_clear(&row);
    silt_buf_clear(&again);
    if (silt_buf_put(&row, body.at, body.len) != SILT_OK ||
        silt_buf_put_u64(&row, silt_checksum(body, silt_checksum(key, FUZZ_ROW_SEED))) != SILT_OK)
        abort();
    kinds[which]();
}

/* ---- pages ---- */

static volatile uint64_t sink;

static uint64_t touch(struct silt_view bytes)
{
    uint64_t sum = bytes.len;
    for (size_t i = 0; i < bytes.len; i++)
        sum += bytes.at[i];
    return sum;
}

/* One walk from an end to the other: keys in order, every value inside the map, and a search for a key that is there finds it or damage. */
static void walk(const struct silt_pages *pages, const struct silt_tree *tree, int way)
{
    static const uint8_t high[] = {255, 255, 255, 255, 255, 255, 255, 255, 255};
    struct silt_page_cursor cursor, other;
    struct silt_view k, value, last = {NULL, 0};
    enum silt_status status =
        silt_page_seek(&cursor, pages, tree, silt_view(high, way < 0 ? sizeof high : 0));
    if (way < 0 && status == SILT_END && cursor.depth > 0) status = SILT_OK;
    for (int i = 0; i < PAIRS_MAX && status != SILT_END; i++) {
        if (status == SILT_OK) {
            if (silt_page_pair(&cursor, &k, &value) == SILT_OK) sink += touch(value);
            k = silt_page_key(&cursor);
            sink += touch(k);
            if (!tree->numbers && last.at && (silt_view_compare(last, k) < 0) != (way > 0)) abort();
            last = k;
            if (!tree->numbers && silt_page_seek(&other, pages, tree, k) == SILT_OK &&
                silt_view_compare(silt_page_key(&other), k) < 0)
                abort();
        }
        status = silt_page_step(&cursor, way);
    }
}

static void count_fault(void *ctx, const struct silt_page_fault *fault)
{
    if (!fault->what || !fault->tree) abort();
    ++*(unsigned *)ctx;
}

static void put_word(uint8_t *at, uint64_t word)
{
    silt_put_le64(at, word);
}

/* What every page says of itself is made right unless the first byte asks for the bytes as they are. */
static void forge_pages(uint8_t *map, size_t count, bool bare)
{
    for (size_t i = 0; i < count && !bare; i++)
        put_word(map + i * PAGE, i);
    for (size_t i = 0; i < 2; i++) {
        uint8_t *meta = map + i * PAGE;
        put_word(meta, i);
        meta[10] = 8;
        meta[11] = 0;
        silt_put_le32(meta + 16, 0xBEEFC0DEu);
        silt_put_le32(meta + 20, 1);
        silt_put_le32(meta + 40, PAGE);
        if (!bare) put_word(meta + 136, count - 1);
        put_word(meta + 144, TXN - 1 + i);
    }
}

static void pages(struct silt_view body, bool bare)
{
    struct silt_pages snapshot;
    struct silt_tree tree;
    size_t count = body.len / PAGE;
    uint64_t free_pages;
    unsigned faults = 0;
    if (count < 2 || count > PAGES_MAX) return;
    uint8_t *map = malloc(count * PAGE); /* no byte more: the sanitizer sees who reads past it */
    if (!map) abort();
    memcpy(map, body.at, count * PAGE);
    forge_pages(map, count, bare);
    (void)silt_pages_head_ok(silt_view(map, count * PAGE), count * PAGE);
    if (silt_pages_begin(&snapshot, map, count * PAGE, PAGE, TXN)) {
        walk(&snapshot, &snapshot.free, 1);
        walk(&snapshot, &snapshot.main, 1);
        walk(&snapshot, &snapshot.main, -1);
        for (enum silt_db db = 0; db < SILT_DB_COUNT; db++) {
            if (silt_pages_tree(&snapshot, silt_db_name(db), &tree) != SILT_OK) continue;
            walk(&snapshot, &tree, 1);
            walk(&snapshot, &tree, -1);
        }
        (void)!silt_pages_free(&snapshot, &free_pages);
        if (silt_pages_audit(&snapshot, count_fault, &faults) != SILT_OK) abort();
    }
    free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    unsigned which = data[0] % 8;
    struct silt_view body = {data + 1, size - 1};
    if (which < 6)
        rows(which, body);
    else
        pages(body, which == 7);
    return 0;
}
