/* Any byte of an archive's file flipped, whatever it is part of: either the whole content is still there, byte for byte, or the check tells; a flip in a segment
 * costs that segment and names it; nothing comes out that was never written. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "format/check.h"
#include "format/store_priv.h"
#include "harness/harness.h"
#include "page_map.h"

enum { PER_SEGMENT = 40, SMALL = 24, BIG_BYTES = 24000, FORK = 121, LIVES = 40 };
enum { SAMPLE = 70 }; /* flips of each kind of place in the bounded form */

static char names[LIVES][128]; /* of the stream of each life */

/* ---- the archive ---- */

static struct silt_entry big_entry(uint64_t n)
{
    static char bytes[BIG_BYTES];
    static struct silt_field field;
    struct test_rng rng = test_rng_fixed(n);
    test_rng_bytes(&rng, bytes, sizeof bytes);
    field = (struct silt_field){silt_view_str("v"), silt_view(bytes, sizeof bytes)};
    return (struct silt_entry){test_entry_id(n), &field, 1};
}

static void commit(struct test_archive *archive)
{
    struct silt_err err = {0};
    if (silt_store_commit(archive->store, archive->batch, &err) != SILT_OK)
        test_die("commit: %s", err.sentence);
    silt_batch_clear(archive->batch);
}

static void begin_stream(struct test_archive *archive, struct test_stream *stream, const char *name,
                         const char *ns)
{
    test_stream_new(archive, stream, "", ns);
    snprintf(names[stream->row.life], sizeof names[0], "%s", name);
    stream->row.name = silt_view_str(names[stream->row.life]);
}

static void fold(struct test_archive *archive, struct test_stream *stream, uint64_t first,
                 uint64_t last, bool replaces)
{
    test_fold_add(archive, stream, first, last, replaces);
    commit(archive);
}

/* Entries of many pages each. */
static void fold_big(struct test_archive *archive)
{
    struct test_stream big;
    begin_stream(archive, &big, "big", NULL);
    for (uint64_t n = 1; n <= 2; n++) {
        struct silt_entry entry = big_entry(n);
        silt_buf_clear(&archive->value);
        silt_segment_builder_begin(archive->builder, big.row.life, big.row.ns);
        big.row.folded_any = true;
        big.row.folded_entries++;
        big.row.folded_bytes += silt_entry_bytes(&entry);
        big.row.watermark = big.row.custody = entry.id;
        if (silt_segment_builder_add(archive->builder, &entry) != SILT_OK ||
            silt_segment_builder_finish(archive->builder, &archive->value, &archive->info) !=
                SILT_OK ||
            silt_batch_stream(archive->batch, &big.row) != SILT_OK ||
            silt_batch_segment(archive->batch, &archive->info, silt_buf_view(&archive->value),
                               false) != SILT_OK)
            test_die("a big segment");
        commit(archive);
    }
}

/* A life that forks off, with its parent beneath it. */
static void fold_forked(struct test_archive *archive)
{
    struct test_stream b;
    struct silt_fork_row fork = {.fork = test_entry_id(FORK), .noticed_ms = 7};
    begin_stream(archive, &b, "b", NULL);
    for (uint64_t n = 1; n <= 160; n += PER_SEGMENT)
        fold(archive, &b, n, n + PER_SEGMENT - 1, false);
    fork.stream = b.row.number;
    fork.parent = b.row.life;
    if (silt_store_new_life(archive->store, &fork.life, NULL) != SILT_OK) test_die("a life");
    memcpy(names[fork.life], names[b.row.life], sizeof names[0]);
    b.row.life = fork.life;
    b.row.watermark = b.row.custody = test_entry_id(FORK - 1);
    if (silt_batch_fork(archive->batch, &fork) != SILT_OK) test_die("a fork");
    fold(archive, &b, FORK, 160, false);
    fold(archive, &b, 161, 200, false);
}

static void note_gaps_and_late(struct test_archive *archive, const struct test_stream *stream)
{
    for (uint64_t i = 1; i <= 4; i++) {
        struct silt_gap_row gap = {.life = stream->row.life,
                                   .range = {test_entry_id(30 * i), test_entry_id(30 * i + 1)},
                                   .precision = SILT_GAP_EXACT,
                                   .has_count = true,
                                   .count = i,
                                   .cause = SILT_GAP_TRIMMED,
                                   .noticed_ms = i};
        struct silt_late_row late = {stream->row.life, i, test_entry_id(9 * i)};
        if (silt_batch_gap(archive->batch, &gap) != SILT_OK ||
            silt_batch_late(archive->batch, &late) != SILT_OK)
            test_die("a gap");
    }
    commit(archive);
}

/* Several streams, lives, a fork, gaps, late rows, rewritten tails (so there is a free list), values inside of leaves, in pages of their own and in runs of
 * pages; enough rows for branch pages. */
static void make_archive(const char *dir)
{
    struct test_archive archive;
    struct test_stream a, small;
    char name[128];
    test_archive_open(&archive, dir, true, 0);
    begin_stream(&archive, &a, "a", "EVT");
    for (uint64_t n = 1; n <= 200; n += PER_SEGMENT) {
        fold(&archive, &a, n, n + PER_SEGMENT / 2, false);
        fold(&archive, &a, n, n + PER_SEGMENT - 1, true);
    }
    note_gaps_and_late(&archive, &a);
    fold_forked(&archive);
    fold_big(&archive);
    for (unsigned i = 0; i < SMALL; i++) {
        snprintf(name, sizeof name, "emq:{a-queue-with-a-rather-long-name-%02u}:stream:%060u",
                 i % 100, i);
        begin_stream(&archive, &small, name, i % 2 ? "EVT" : NULL);
        test_fold_add(&archive, &small, 1 + i, 3 + i, false);
    }
    commit(&archive);
    test_archive_close(&archive);
}

/* ---- what is there ---- */

struct view {
    enum silt_status opened;
    uint64_t findings; /* damage; gaps are none */
    bool named[256];   /* segments that a finding names: stream, life, range */
    bool exact[256];   /* and its range is the segment's own */
    bool readable[256];
    uint64_t digests[256];
    uint64_t rows;   /* digest of everything that is no segment */
    uint64_t walk;   /* and of what a walk through each life meets */
    bool wrong;      /* something that was never written */
    uint64_t hidden; /* segments for which a reader got nothing, or another one, and no word */
};

struct examination {
    const struct test_page_map *map;
    struct view *view;
    struct silt_store *store;
    struct silt_segment *segment;
};

static void found(void *ctx, const struct silt_finding *finding)
{
    struct examination *x = ctx;
    if (finding->kind == SILT_FINDING_GAP) return;
    x->view->findings++;
    for (size_t i = 0; i < x->map->segment_count; i++) {
        const struct test_segment_at *at = &x->map->segments[i];
        if (finding->life != at->life ||
            !silt_view_equal(finding->stream, silt_view_str(names[at->life])) ||
            !silt_wire_id_equal(finding->first, at->first) ||
            silt_wire_id_less(finding->last, at->last))
            continue;
        x->view->named[i] = true;
        x->view->exact[i] |= silt_wire_id_equal(finding->last, at->last);
    }
}

static uint64_t chain(uint64_t digest, const void *at, size_t len)
{
    return silt_checksum(silt_view(at, len), digest);
}

static uint64_t chain_id(uint64_t digest, struct silt_wire_id id)
{
    uint64_t words[2] = {id.ms, id.seq};
    return chain(digest, words, sizeof words);
}

/* Every entry as it was written, by its id. */
static uint64_t take_entries(struct examination *x)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < silt_segment_count(x->segment); i++) {
        struct silt_entry entry, due;
        silt_segment_entry(x->segment, i, &entry);
        uint64_t n = entry.id.ms - test_entry_id(0).ms;
        due = silt_entry_bytes(&entry) >= BIG_BYTES ? big_entry(n) : test_entry(n);
        if (!silt_entry_equal(&entry, &due)) x->view->wrong = true;
        digest = silt_entry_digest(&entry, digest);
    }
    return digest;
}

static void read_segment(struct examination *x, size_t index)
{
    const struct test_segment_at *at = &x->map->segments[index];
    struct silt_buf value = {0};
    struct silt_segment_info info;
    enum silt_status status = silt_store_segment(x->store, at->life, at->ns, at->first,
                                                 SILT_SEEK_FORWARD, &value, &info, NULL);
    if (status == SILT_OK) status = silt_segment_open(x->segment, silt_buf_view(&value), NULL);
    if (status == SILT_OK) {
        x->view->digests[index] = take_entries(x);
        x->view->readable[index] = silt_wire_id_equal(info.first, at->first);
    }
    x->view->hidden +=
        status == SILT_END || (status == SILT_OK && !silt_wire_id_equal(info.last, at->last));
    silt_buf_release(&value);
}

static bool visit(void *ctx, enum silt_status status, const struct silt_segment_info *info)
{
    struct examination *x = ctx;
    x->view->walk =
        chain_id(chain_id(x->view->walk + (uint64_t)(status != SILT_OK), info->first), info->last);
    return true;
}

static void read_rows_of_life(struct examination *x, const struct silt_stream *stream,
                              uint64_t life)
{
    struct silt_gap_row gap = {0};
    struct silt_late_row late = {0};
    uint64_t at = 0, *rows = &x->view->rows;
    while (silt_store_gap_after(x->store, life, &at, &gap, NULL) == SILT_OK)
        *rows = chain_id(chain_id(*rows + gap.count, gap.range.after), gap.range.through);
    for (uint64_t n = 0; silt_store_late_after(x->store, life, n, &late, NULL) == SILT_OK;
         n = late.number)
        *rows = chain_id(*rows, late.id);
    enum silt_status status = silt_store_segments(x->store, life, stream->row.ns, SILT_WIRE_ID_MIN,
                                                  SILT_SEEK_FORWARD, visit, x, NULL);
    *rows += (uint64_t)(status != SILT_OK);
}

static void read_stream(struct examination *x, const struct silt_stream *stream)
{
    struct silt_stream again = {0};
    struct silt_fork_row fork = {0};
    uint64_t *rows = &x->view->rows;
    *rows = chain(*rows, stream->bytes.at, stream->bytes.len);
    if (silt_store_stream(x->store, stream->row.name, &again, NULL) != SILT_OK ||
        again.row.number != stream->row.number)
        *rows += 1; /* its name leads elsewhere */
    for (uint64_t life = stream->row.life, i = 0; i < 3; i++, life = fork.parent) {
        read_rows_of_life(x, stream, life);
        if (silt_store_fork(x->store, life, &fork, NULL) != SILT_OK) break;
        *rows = chain_id(*rows, fork.fork);
    }
    silt_stream_release(&again);
}

static void read_all(struct examination *x)
{
    struct silt_stream stream = {0};
    struct silt_meta_row meta = {0};
    uint64_t after = 0;
    for (size_t i = 0; i < x->map->segment_count; i++)
        read_segment(x, i);
    if (silt_store_meta(x->store, &meta, NULL) == SILT_OK)
        x->view->rows = chain(meta.next_life, meta.uuid, sizeof meta.uuid);
    while (silt_store_stream_after(x->store, after, &stream, NULL) == SILT_OK) {
        after = stream.row.number;
        read_stream(x, &stream);
    }
    silt_stream_release(&stream);
}

static void examine(const char *dir, const struct test_page_map *map, struct view *ret)
{
    struct examination x = {.map = map, .view = ret};
    struct silt_check_sum sum = {0};
    struct silt_store_options how = SILT_STORE_OPTIONS_DEFAULT;
    struct silt_check_options options = {.range = SILT_RANGE_ALL, .found = found, .ctx = &x};
    struct silt_err err = {0};
    memset(ret, 0, sizeof *ret);
    how.map_initial_bytes = 1 << 20;
    ret->opened = silt_store_open(dir, &how, &x.store, &err);
    if (ret->opened != SILT_OK) return;
    if (silt_segment_new(&x.segment) != SILT_OK) test_die("no memory");
    read_all(&x);
    enum silt_status status = silt_check(x.store, &options, &sum, &err);
    if (status != SILT_OK && silt_status_class(status) != SILT_CLASS_CORRUPT)
        ck_abort_msg("the check did not go through: %s", err.sentence);
    ret->findings += status != SILT_OK;
    silt_segment_free(x.segment);
    silt_store_close(x.store);
}

/* ---- flips ---- */

struct tally {
    uint64_t flips, refused, told, harmless, most_lost, hidden;
};

static uint64_t count_lost(const struct test_page_map *map, const struct view *before,
                           const struct view *after)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < map->segment_count; i++)
        lost += !after->readable[i] || after->digests[i] != before->digests[i];
    return lost;
}

static void check_segment_flip(const struct test_page_map *map, uint64_t at,
                               const struct view *after, uint64_t lost, const char *where)
{
    int owner = map->owners[at];
    ck_assert_msg(after->opened == SILT_OK, "%s: not opened", where);
    ck_assert_msg(after->named[owner], "%s: the finding does not name the segment", where);
    ck_assert_msg(map->places[at] == PLACE_SEGMENT || after->exact[owner],
                  "%s: its range is not told", where);
    ck_assert_msg(lost == 1 && !after->readable[owner], "%s: costs %d segments", where, (int)lost);
}

/* The one rule: all of it is there, or somebody says that it is not. */
static void judge(const struct test_page_map *map, uint64_t at, const struct view *before,
                  const struct view *after, struct tally *tally, const char *where)
{
    tally->flips++;
    if (after->opened != SILT_OK) {
        ck_assert_msg(silt_status_class(after->opened) == SILT_CLASS_CORRUPT ||
                          after->opened == SILT_ERR_NOT_ARCHIVE ||
                          after->opened == SILT_ERR_NEWER_FORMAT,
                      "%s: opening says %s", where, silt_status_name(after->opened));
        tally->refused++;
        return;
    }
    uint64_t lost = count_lost(map, before, after);
    bool whole = lost == 0 && after->rows == before->rows && after->walk == before->walk;
    ck_assert_msg(!after->wrong, "%s: entries that were never written", where);
    ck_assert_msg(whole || after->findings > 0, "%s: damage that the check does not see", where);
    tally->told += after->findings > 0;
    tally->hidden += after->hidden > 0;
    tally->harmless += whole && after->findings == 0;
    if (lost > tally->most_lost) tally->most_lost = lost;
    if (map->places[at] == PLACE_SEGMENT || map->places[at] == PLACE_SEGMENT_BODY)
        check_segment_flip(map, at, after, lost, where);
}

static void flip_byte(int fd, uint64_t at, unsigned bit)
{
    uint8_t byte;
    if (pread(fd, &byte, 1, (off_t)at) != 1) test_die("cannot read the file");
    byte ^= (uint8_t)(1u << bit);
    if (pwrite(fd, &byte, 1, (off_t)at) != 1) test_die("cannot write the file");
}

static bool is_index(enum place place)
{
    return place >= PLACE_META && place <= PLACE_RECORD && place != PLACE_META_OLD;
}

/* Which bits of this byte are tried: in the long form one of each byte, all of an index's; else of each kind of place about as many. */
static unsigned bits_of(const struct test_page_map *map, uint64_t at, const uint64_t *sizes,
                        struct test_rng *rng)
{
    enum place place = map->places[at];
    unsigned one = 1u << test_rng_below(rng, 8);
    if (test_long()) return is_index(place) ? 0xFF : one;
    return test_rng_below(rng, sizes[place]) < SAMPLE ? one : 0;
}

static void print_tally(const struct tally *tally)
{
    struct tally all = {0};
    for (int i = 0; i < PLACE_COUNT; i++) {
        printf("# %-12s %6llu flips: %llu refused at opening, %llu found, %llu harmless; at most "
               "%llu segments lost; %llu hide from a reader\n",
               test_place_names[i], (unsigned long long)tally[i].flips,
               (unsigned long long)tally[i].refused, (unsigned long long)tally[i].told,
               (unsigned long long)tally[i].harmless, (unsigned long long)tally[i].most_lost,
               (unsigned long long)tally[i].hidden);
        all.flips += tally[i].flips;
        all.told += tally[i].told + tally[i].refused;
        all.harmless += tally[i].harmless;
    }
    printf("# %llu flips, %llu found, %llu harmless\n", (unsigned long long)all.flips,
           (unsigned long long)all.told, (unsigned long long)all.harmless);
}

/* Field report E2 and design promise 5. */
START_TEST(damage__E2_every_flip_is_harmless_or_found_and_costs_one_segment)
{
    const char *dir = test_path("a"), *file = test_path("a/archive-1.mdb");
    static struct view before, after;
    static struct test_page_map map;
    struct tally tally[PLACE_COUNT] = {{0}};
    uint64_t sizes[PLACE_COUNT] = {0};
    struct test_rng rng = test_rng(0xE2);
    make_archive(dir);
    test_page_map(file, &map);
    examine(dir, &map, &before);
    ck_assert_int_eq(before.opened, SILT_OK);
    ck_assert_uint_eq(before.findings, 0);
    ck_assert(!before.wrong);
    for (size_t i = 0; i < map.segment_count; i++)
        ck_assert(before.readable[i]);
    for (uint64_t at = 0; at < map.bytes; at++)
        sizes[map.places[at]]++;
    int fd = open(file, O_RDWR);
    for (uint64_t at = 0; at < map.bytes; at++) {
        char where[96];
        for (unsigned bits = bits_of(&map, at, sizes, &rng), bit = 0; bit < 8; bit++) {
            if ((bits & 1u << bit) == 0) continue;
            snprintf(where, sizeof where, "%s: page %llu byte %llu bit %u",
                     test_place_names[map.places[at]], (unsigned long long)(at / 4096),
                     (unsigned long long)(at % 4096), bit);
            flip_byte(fd, at, bit);
            examine(dir, &map, &after);
            flip_byte(fd, at, bit);
            if (after.hidden) printf("# hidden from a plain read: %s\n", where);
            judge(&map, at, &before, &after, &tally[map.places[at]], where);
        }
    }
    close(fd);
    print_tally(tally);
    for (int i = 0; i < PLACE_COUNT; i++)
        ck_assert_msg(tally[i].flips > 10, "no %s in the archive", test_place_names[i]);
    test_page_map_free(&map);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create(argv[0]);
    TCase *tcase = tcase_create("all");
    (void)argc;
    tcase_set_timeout(tcase, test_long() ? 7200.0 : 240.0);
    tcase_add_test(tcase, damage__E2_every_flip_is_harmless_or_found_and_costs_one_segment);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
