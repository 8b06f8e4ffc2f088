/* Field report D8: pieces that overlap, repeat, lie about themselves or are not there, behind right checksums. The check names each; a reader gives what lies twice once,
 * says which range is missing where that can be known, and gives the next piece whole. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "archive_source.h"
#include "format/check.h"
#include "format/segment_header.h"
#include "format/store_priv.h"
#include "harness/forge.h"
#include "harness/harness.h"

enum { TOP = 250, PER = 50, MANY = 6000 };

static uint64_t top = TOP; /* entries of the archive at hand */

static struct test_archive archive;
static struct test_stream stream;

static void setup(uint64_t count)
{
    top = count;
    test_archive_open(&archive, test_path("a"), true, 1 << 20);
    test_stream_new(&archive, &stream, "s", NULL);
    for (uint64_t n = 1; n <= top; n += PER)
        test_fold(&archive, &stream, n, n + PER - 1);
}

/* ---- what the check says ---- */

struct findings {
    size_t count;
    struct silt_finding all[16];
};

static void take(void *ctx, const struct silt_finding *finding)
{
    struct findings *found = ctx;
    if (found->count == 16) test_die("too many findings");
    ck_assert(finding->stream.len == 0 || silt_view_equal(finding->stream, silt_view_str("s")));
    found->all[found->count++] = *finding;
}

static struct findings check(const char *dir)
{
    struct findings found = {.count = 0};
    struct silt_check_sum sum;
    struct silt_err err = {0};
    struct silt_check_options options = {.range = SILT_RANGE_ALL, .found = take, .ctx = &found};
    struct silt_store *store = test_store_reader(dir);
    ck_assert_msg(silt_check(store, &options, &sum, &err) == SILT_OK, "%s", err.sentence);
    silt_store_close(store);
    return found;
}

static void expect_finding(const struct findings *found, enum silt_finding_kind kind,
                           uint64_t first, uint64_t last)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->all[i].kind == kind && found->all[i].life == stream.row.life &&
            silt_wire_id_equal(found->all[i].first, test_entry_id(first)) &&
            silt_wire_id_equal(found->all[i].last, test_entry_id(last)))
            return;
    ck_abort_msg("no finding %s of %d to %d (%d others)", silt_finding_name(kind), (int)first,
                 (int)last, (int)found->count);
}

/* ---- what a reader gets ---- */

/* Everything in one direction: each entry once, in order, as written; returns how many. The missing range, if the reader told one. */
static uint64_t read_all(const char *dir, bool reverse, struct silt_range *ret_damaged)
{
    struct silt_store *store = test_store_reader(dir);
    struct silt_archive_source *source;
    struct silt_archive_entry got;
    struct silt_range damaged;
    struct silt_err err = {0};
    uint64_t count = 0, last = reverse ? top + 1 : 0;
    *ret_damaged = (struct silt_range){SILT_WIRE_ID_MAX, SILT_WIRE_ID_MIN};
    ck_assert_int_eq(silt_archive_source_new(store, &source), SILT_OK);
    ck_assert_int_eq(silt_archive_source_seek(source, stream.row.life, stream.row.ns,
                                              SILT_RANGE_ALL, reverse, &err),
                     SILT_OK);
    for (;;) {
        enum silt_status status = silt_archive_source_next(source, &got, &damaged, &err);
        if (status == SILT_END) break;
        if (status == SILT_ERR_CORRUPT) {
            ck_assert_msg(silt_wire_id_less(ret_damaged->to, ret_damaged->from),
                          "a second range is told: %s", err.sentence);
            *ret_damaged = damaged;
            continue;
        }
        ck_assert_int_eq(status, SILT_OK);
        uint64_t n = got.entry.id.ms - test_entry_id(0).ms;
        struct silt_entry due = test_entry(n);
        ck_assert(silt_entry_equal(&got.entry, &due));
        ck_assert_msg(reverse ? n < last : n > last, "entry %d after %d", (int)n, (int)last);
        last = n;
        count++;
    }
    silt_archive_source_free(source);
    silt_store_close(store);
    return count;
}

/* In both directions: so many entries, and exactly this range told as missing (first 0: none). */
static void expect_reading(const char *dir, uint64_t count, uint64_t first, uint64_t last)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        struct silt_range damaged;
        ck_assert_uint_eq(read_all(dir, reverse, &damaged), count);
        if (first == 0) {
            ck_assert(silt_wire_id_less(damaged.to, damaged.from));
            continue;
        }
        struct silt_wire_id above;
        ck_assert(silt_wire_id_next(test_entry_id(last), &above));
        ck_assert(silt_wire_id_equal(damaged.from, test_entry_id(first)));
        /* Where its end cannot be known it reaches up to the next piece. */
        ck_assert(!silt_wire_id_less(damaged.to, test_entry_id(last)));
        ck_assert(silt_wire_id_less(damaged.to, test_entry_id(last + 1)));
    }
}

/* ---- the pieces ---- */

struct change {
    struct silt_key key;
    struct silt_view value;
};

static enum silt_status put(void *ctx, struct silt_kv_txn *txn, struct silt_err *err)
{
    const struct change *change = ctx;
    return silt_kv_put(txn, SILT_DB_SEGMENTS, silt_key_view(&change->key), change->value, err);
}

static void write_segment(uint64_t first, struct silt_view value)
{
    struct change change = {silt_key_segment(stream.row.life, stream.row.ns, test_entry_id(first)),
                            value};
    ck_assert_int_eq(silt_env_write(archive.store, put, &change, NULL), SILT_OK);
}

START_TEST(pieces__D8_an_overlap_is_named_and_read_once)
{
    setup(TOP);
    test_segment_make(&archive, &stream, 95, 110);
    write_segment(95, silt_buf_view(&archive.value));
    struct findings found = check(test_path("a"));
    expect_finding(&found, SILT_FINDING_OVERLAP, 95, 100);
    expect_reading(test_path("a"), TOP, 0, 0);
    test_archive_close(&archive);
}
END_TEST

/* One place of the header of the piece 101 to 150, its checksum right again. */
static void lie(size_t at, uint64_t value, size_t bytes)
{
    struct silt_buf bent = {0};
    test_segment_make(&archive, &stream, 101, 150);
    ck_assert_int_eq(silt_buf_put(&bent, archive.value.at, archive.value.len), SILT_OK);
    for (size_t i = 0; i < bytes; i++)
        bent.at[at + i] = (uint8_t)(value >> 8 * i);
    test_forge_header(&bent);
    write_segment(101, silt_buf_view(&bent));
    silt_buf_release(&bent);
}

START_TEST(pieces__D8_a_wrong_count_first_or_last_id_is_named_and_costs_its_range)
{
    const struct {
        size_t at, bytes;
        uint64_t value, first, last;
        enum silt_finding_kind kind;
    } lies[] = {
        {28, 4, 49, 101, 150, SILT_FINDING_DECODE}, /* entries */
        {28, 4, 51, 101, 150, SILT_FINDING_DECODE},
        {32, 8, test_entry_id(102).ms, 102, 150, SILT_FINDING_KEY},    /* first id */
        {48, 8, test_entry_id(149).ms, 101, 149, SILT_FINDING_DECODE}, /* last id */
        {48, 8, test_entry_id(153).ms, 101, 153, SILT_FINDING_DECODE}, /* into the next piece */
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        setup(TOP);
        lie(lies[i].at, lies[i].value, lies[i].bytes);
        struct findings found = check(test_path("a"));
        expect_finding(&found, lies[i].kind, lies[i].first, lies[i].last);
        struct silt_range damaged;
        for (int reverse = 0; reverse < 2; reverse++) {
            uint64_t count = read_all(test_path("a"), reverse, &damaged);
            ck_assert_msg(count == TOP - PER, "lie %zu: %d entries", i, (int)count);
            ck_assert(!silt_wire_id_less(test_entry_id(102), damaged.from));
            ck_assert(silt_wire_id_less(damaged.to, test_entry_id(151)));
        }
        test_archive_close(&archive);
        test_remove_all(test_path("a"));
    }
}
END_TEST

/* A piece that never was, as the counters say that it was: what is there is read whole, and the check says how much is missing. Which range it was nobody can know:
 * ids need not be dense. */
START_TEST(pieces__D8_a_removed_piece_is_missed)
{
    test_archive_open(&archive, test_path("a"), true, 1 << 20);
    test_stream_new(&archive, &stream, "s", NULL);
    for (uint64_t n = 1; n <= TOP; n += PER) {
        if (n == 101) { /* counted, and not there */
            for (uint64_t k = n; k < n + PER; k++) {
                struct silt_entry entry = test_entry(k);
                stream.row.folded_entries++;
                stream.row.folded_bytes += silt_entry_bytes(&entry);
            }
            continue;
        }
        test_fold(&archive, &stream, n, n + PER - 1);
    }
    struct findings found = check(test_path("a"));
    ck_assert_uint_eq(found.count, 1);
    ck_assert_int_eq(found.all[0].kind, SILT_FINDING_WATERMARK);
    ck_assert_ptr_nonnull(strstr(found.all[0].text, "250 entries were folded, 200 are there"));
    expect_reading(test_path("a"), TOP - PER, 0, 0);
    test_archive_close(&archive);
}
END_TEST

/* ---- index and data apart ---- */

/* Where in the file the value of the piece that begins with `first` lies: its header. */
static size_t place_of(const char *bytes, size_t len, uint64_t first)
{
    for (size_t at = 16; at + SILT_SEGMENT_HEADER < len; at += 4096) {
        struct silt_segment_info info;
        struct silt_view value = {(const uint8_t *)bytes + at, SILT_SEGMENT_HEADER};
        if (memcmp(value.at, "SSEG", 4) != 0) continue;
        info.first.ms = silt_get_le64(value.at + 32);
        if (info.first.ms == test_entry_id(first).ms) return at;
    }
    test_die("entry %llu begins no page", (unsigned long long)first);
}

START_TEST(pieces__D8_index_without_data_is_named_and_costs_its_range)
{
    static const uint8_t zeros[4096];
    const char *file = test_path("a/archive-1.mdb");
    size_t len;
    setup(TOP);
    test_archive_close(&archive);
    char *bytes = test_file_read(file, &len);
    size_t at = place_of(bytes, len, 101) - 16; /* its page, with the page's header */
    free(bytes);
    int fd = open(file, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, zeros, sizeof zeros, (off_t)at), sizeof zeros);
    close(fd);
    struct findings found = check(test_path("a"));
    ck_assert_uint_ge(found.count, 1);
    bool named = false;
    for (size_t i = 0; i < found.count; i++)
        named |= found.all[i].life == stream.row.life &&
                 silt_wire_id_equal(found.all[i].first, test_entry_id(101)) &&
                 !silt_wire_id_less(found.all[i].last, test_entry_id(150)) &&
                 silt_wire_id_less(found.all[i].last, test_entry_id(151));
    ck_assert(named);
    expect_reading(test_path("a"), TOP - PER, 101, 150);
}
END_TEST

static size_t get16(const uint8_t *at)
{
    return (size_t)(at[0] | at[1] << 8);
}

static void put16(uint8_t *at, size_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

/* The leaf of the segments that leads to the piece which begins with `first`, and which node of it; NULL: this page is none. */
static bool leads_to(const uint8_t *page, uint64_t first, size_t *ret_index)
{
    if (get16(page + 10) != 2) return false;
    for (size_t i = 0; i < (get16(page + 12) - 16) / 2; i++) {
        const uint8_t *node = page + get16(page + 16 + 2 * i);
        *ret_index = i;
        if (get16(node + 6) == 24 && silt_get_be64(node + 8 + 8) == test_entry_id(first).ms)
            return true;
    }
    return false;
}

/* Takes a node with a reference out of a leaf; what stands below it in the page moves up. */
static void take_out(uint8_t *page, size_t index)
{
    const size_t bytes = 8 + 24 + 8; /* head, key, reference */
    size_t count = (get16(page + 12) - 16) / 2, upper = get16(page + 14);
    size_t gone = get16(page + 16 + 2 * index);
    memmove(page + upper + bytes, page + upper, gone - upper);
    for (size_t i = 0, kept = 0; i < count; i++) {
        size_t at = get16(page + 16 + 2 * i);
        if (i != index) put16(page + 16 + 2 * kept++, at < gone ? at + bytes : at);
    }
    put16(page + 12, 16 + 2 * (count - 1));
    put16(page + 14, upper + bytes);
}

/* The value lies in the file, and nothing leads to it. */
START_TEST(pieces__D8_data_without_index_is_named)
{
    const char *file = test_path("a/archive-1.mdb");
    size_t len, index = 0, done = 0;
    setup(MANY);
    test_archive_close(&archive);
    char *bytes = test_file_read(file, &len);
    for (size_t at = (size_t)2 * 4096; at < len; at += 4096) /* old ones, too: nobody reads those */
        if (leads_to((uint8_t *)bytes + at, 101, &index)) {
            take_out((uint8_t *)bytes + at, index);
            done++;
        }
    ck_assert_uint_gt(done, 0);
    test_file_write(file, bytes, len);
    free(bytes);
    struct findings found = check(test_path("a"));
    bool lost = false, counted = false;
    for (size_t i = 0; i < found.count; i++) {
        lost |= strstr(found.all[i].text, "no tree leads to") != NULL;
        counted |= strstr(found.all[i].text, "6000 entries were folded, 5950 are there") != NULL;
    }
    ck_assert(lost);
    ck_assert(counted);
    expect_reading(test_path("a"), MANY - PER, 0, 0);
}
END_TEST

TEST_MAIN(pieces__D8_an_overlap_is_named_and_read_once,
          pieces__D8_a_wrong_count_first_or_last_id_is_named_and_costs_its_range,
          pieces__D8_a_removed_piece_is_missed,
          pieces__D8_index_without_data_is_named_and_costs_its_range,
          pieces__D8_data_without_index_is_named)
