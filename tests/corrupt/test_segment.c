/* Damaged segments. A flipped bit anywhere is refused, with no hole in the sweep; behind right checksums, whatever the columns say, the
 * decoder refuses or gives entries that can be walked, and never reads or writes out of bounds (the sanitizers watch). */
#include "format/segment_header.h"
#include "harness/feed.h"
#include "harness/forge.h"
#include "harness/harness.h"
#include "harness/heap.h"

static const struct silt_namespace evt = {"EVT"}, plain = {{0}};

static void build(const struct silt_entry *entries, size_t count, struct silt_namespace ns,
                  struct silt_buf *ret, struct silt_segment_info *ret_info)
{
    struct silt_segment_builder *builder;
    ck_assert_int_eq(silt_segment_builder_new(3, &builder), SILT_OK);
    silt_segment_builder_begin(builder, 7, ns);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(silt_segment_builder_add(builder, &entries[i]), SILT_OK);
    ck_assert_int_eq(silt_segment_builder_finish(builder, ret, ret_info), SILT_OK);
    silt_segment_builder_free(builder);
}

struct sample {
    struct test_feed *feed;
    struct silt_entry_list list;
    struct silt_buf value;
    struct silt_segment_info info;
    struct silt_segment *segment;
};

static void sample_new(struct sample *sample, struct test_feed *feed, size_t from, size_t count,
                       struct silt_namespace ns)
{
    *sample = (struct sample){.feed = feed};
    test_feed_list(feed, &sample->list);
    build(sample->list.entries + from, count, ns, &sample->value, &sample->info);
    ck_assert_int_eq(silt_segment_new(&sample->segment), SILT_OK);
    ck_assert_int_eq(silt_segment_open(sample->segment, silt_buf_view(&sample->value), NULL),
                     SILT_OK);
}

static void sample_free(struct sample *sample)
{
    silt_segment_free(sample->segment);
    silt_buf_release(&sample->value);
    silt_entry_list_release(&sample->list);
    test_feed_free(sample->feed);
}

/* Touches every byte that the segment says it holds. */
static uint64_t walk(struct silt_segment *segment)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < silt_segment_count(segment); i++) {
        struct silt_entry entry;
        silt_segment_entry(segment, i, &entry);
        digest = silt_entry_digest(&entry, digest);
    }
    return digest;
}

static void flip_every_bit(struct sample *sample)
{
    struct silt_segment_info info;
    struct silt_err err;
    for (size_t bit = 0; bit < 8 * sample->value.len; bit++) {
        uint8_t mask = (uint8_t)(1 << bit % 8);
        sample->value.at[bit / 8] ^= mask;
        err = (struct silt_err){0};
        struct silt_view value = silt_buf_view(&sample->value);
        enum silt_status status = silt_segment_open(sample->segment, value, &err);
        ck_assert_msg(status == SILT_ERR_CORRUPT, "bit %zu of %zu bytes went unnoticed: %s", bit,
                      value.len, silt_status_name(status));
        ck_assert_str_ne(err.sentence, "");
        ck_assert_uint_eq(silt_segment_count(sample->segment), 0);
        if (bit < (size_t)112 * 8)
            ck_assert_int_eq(silt_segment_peek(value, &info, NULL), SILT_ERR_CORRUPT);
        sample->value.at[bit / 8] ^= mask;
    }
    ck_assert_int_eq(silt_segment_open(sample->segment, silt_buf_view(&sample->value), NULL),
                     SILT_OK);
}

START_TEST(segment__every_flipped_bit_is_refused)
{
    struct sample sample;
    sample_new(&sample, test_feed_new(1, 300), 0, 300, evt);
    flip_every_bit(&sample);
    sample_free(&sample);
    sample_new(&sample, test_feed_new(1, 300), 100, 1, evt);
    flip_every_bit(&sample);
    sample_free(&sample);
    sample_new(&sample, test_feed_new_odd(1), 30, 60, evt);
    flip_every_bit(&sample);
    sample_free(&sample);
    sample_new(&sample, test_feed_new(2, 200), 0, 200, plain);
    flip_every_bit(&sample);
    sample_free(&sample);
}
END_TEST

START_TEST(segment__every_cut_and_every_tail_is_refused)
{
    struct sample sample;
    sample_new(&sample, test_feed_new(1, 100), 0, 100, evt);
    for (size_t len = 0; len < sample.value.len; len++)
        ck_assert_int_eq(silt_segment_open(sample.segment, silt_view(sample.value.at, len), NULL),
                         SILT_ERR_CORRUPT);
    ck_assert_int_eq(silt_buf_put_u8(&sample.value, 0), SILT_OK);
    ck_assert_int_eq(silt_segment_open(sample.segment, silt_buf_view(&sample.value), NULL),
                     SILT_ERR_CORRUPT);
    sample_free(&sample);
}
END_TEST

/* One named place of the header each, with its checksum right again. */
START_TEST(segment__header_rows_have_their_codes)
{
    static const struct {
        const char *what;
        size_t at;
        uint8_t byte;
        enum silt_status code;
        const char *says;
    } rows[] = {
        {"magic", 0, 'X', SILT_ERR_CORRUPT, "magic"},
        {"version", 4, 2, SILT_ERR_NEWER_FORMAT, "version 2"},
        {"version", 5, 1, SILT_ERR_NEWER_FORMAT, "version 257"},
        {"length", 6, 111, SILT_ERR_CORRUPT, "claims 111 bytes"},
        {"length", 7, 0xFF, SILT_ERR_CORRUPT, "claims"},
        {"must refuse", 8, 1, SILT_ERR_NEWER_FORMAT, "features 0x1"},
        {"must refuse", 11, 0x80, SILT_ERR_NEWER_FORMAT, "features 0x80000000"},
        {"may ignore", 12, 0xFF, SILT_OK, ""},
        {"life", 16, 9, SILT_OK, ""},
        {"namespace", 24, 'e', SILT_ERR_CORRUPT, "namespace"},
        {"namespace", 24, 0, SILT_ERR_CORRUPT, "namespace"},
        {"namespace", 27, 'X', SILT_ERR_CORRUPT, "namespace"},
        {"count", 28, 99, SILT_ERR_CORRUPT, "not well formed"},
        {"count", 28, 101, SILT_ERR_CORRUPT, ""},
        {"count", 30, 2, SILT_ERR_CORRUPT, "count"},
        {"first", 34, 0, SILT_ERR_CORRUPT, "ids"},
        {"first", 39, 0xFF, SILT_ERR_CORRUPT, "ids"},
        {"first", 40, 0xFF, SILT_ERR_CORRUPT, "ids"},
        {"last", 56, 0x11, SILT_ERR_CORRUPT, "ids"},
        {"foreign", 64, 1, SILT_ERR_CORRUPT, "shape codes"},
        {"foreign", 66, 1, SILT_ERR_CORRUPT, "foreign count"},
        {"zero", 68, 1, SILT_ERR_CORRUPT, "reserved"},
        {"values", 72, 0xAA, SILT_ERR_CORRUPT, "bytes"},
        {"values", 79, 1, SILT_ERR_CORRUPT, "bytes"},
        {"raw", 80, 0xAA, SILT_ERR_CORRUPT, "compressed"},
        {"raw", 84, 1, SILT_ERR_CORRUPT, "raw length"},
        {"body", 88, 1, SILT_ERR_CORRUPT, "length"},
        {"body sum", 96, 1, SILT_ERR_CORRUPT, "checksum"},
    };
    struct sample sample;
    sample_new(&sample, test_feed_new(1, 100), 0, 100, evt);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct silt_err err = {0};
        struct silt_buf value = {0};
        ck_assert_int_eq(silt_buf_put(&value, sample.value.at, sample.value.len), SILT_OK);
        ck_assert_uint_ne(value.at[rows[i].at], rows[i].byte);
        value.at[rows[i].at] = rows[i].byte;
        test_forge_header(&value);
        enum silt_status status = silt_segment_open(sample.segment, silt_buf_view(&value), &err);
        ck_assert_msg(status == rows[i].code, "%s at %zu: %s (%s)", rows[i].what, rows[i].at,
                      silt_status_name(status), err.sentence);
        ck_assert_msg(strstr(err.sentence, rows[i].says) != NULL, "%s at %zu says: %s",
                      rows[i].what, rows[i].at, err.sentence);
        silt_buf_release(&value);
    }
    sample_free(&sample);
}
END_TEST

/* Every bit of the raw columns, checksums right. Ids and counts are told twice, so that much must be noticed; a value's bit cannot be. */
static void flip_raw(struct sample *sample, size_t *ret_refused, size_t *ret_changed)
{
    struct silt_buf raw = {0}, value = {0};
    const uint64_t original = walk(sample->segment);
    ck_assert_int_eq(test_forge_raw(silt_buf_view(&sample->value), &raw), SILT_OK);
    *ret_refused = *ret_changed = 0;
    for (size_t bit = 0; bit < 8 * raw.len; bit++) {
        raw.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        test_forge(&sample->info, silt_buf_view(&raw), &value);
        enum silt_status status = silt_segment_open(sample->segment, silt_buf_view(&value), NULL);
        if (status == SILT_OK)
            *ret_changed += walk(sample->segment) != original;
        else
            ck_assert_int_eq(status, SILT_ERR_CORRUPT);
        *ret_refused += status != SILT_OK;
        raw.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    silt_buf_release(&raw);
    silt_buf_release(&value);
}

START_TEST(segment__forged_columns_never_do_harm)
{
    struct sample sample;
    size_t refused, changed;
    sample_new(&sample, test_feed_new(1, 300), 0, 300, evt);
    flip_raw(&sample, &refused, &changed);
    ck_assert_uint_gt(refused, 500);
    ck_assert_uint_gt(changed, 500);
    sample_free(&sample);
    sample_new(&sample, test_feed_new_odd(2), 250, 40, evt);
    flip_raw(&sample, &refused, &changed);
    ck_assert_uint_gt(refused, 500);
    ck_assert_uint_gt(changed, 500);
    sample_free(&sample);
}
END_TEST

/* Whole bytes and runs of them replaced at random. */
START_TEST(segment__random_columns_never_do_harm)
{
    struct sample sample;
    struct test_rng rng = test_rng(1);
    struct silt_buf raw = {0}, value = {0}, bent = {0};
    sample_new(&sample, test_feed_new(3, 150), 0, 150, evt);
    ck_assert_int_eq(test_forge_raw(silt_buf_view(&sample.value), &raw), SILT_OK);
    for (int round = 0; round < (test_long() ? 200000 : 8000); round++) {
        silt_buf_clear(&bent);
        ck_assert_int_eq(silt_buf_put(&bent, raw.at, raw.len), SILT_OK);
        for (uint64_t n = 1 + test_rng_below(&rng, 3); n > 0; n--) {
            size_t at = test_rng_below(&rng, test_rng_chance(&rng, 50) ? 200 : raw.len);
            bent.at[at] = test_rng_chance(&rng, 40) ? 0xFF : (uint8_t)test_rng_next(&rng);
        }
        test_forge(&sample.info, silt_buf_view(&bent), &value);
        if (silt_segment_open(sample.segment, silt_buf_view(&value), NULL) == SILT_OK)
            (void)walk(sample.segment);
    }
    silt_buf_release(&raw);
    silt_buf_release(&bent);
    silt_buf_release(&value);
    sample_free(&sample);
}
END_TEST

/* A few bytes that would unfold into very many values are refused before memory is taken for them. */
START_TEST(segment__bombs_are_refused)
{
    struct silt_buf raw = {0}, value = {0};
    struct silt_segment *segment;
    struct silt_segment_info info = {
        .life = 1, .count = 60000, .first = {1, 0}, .last = {60000, 0}};
    ck_assert_int_eq(silt_segment_new(&segment), SILT_OK);
    /* 1 name, 1 column, 1 shape of 500 fields, each entry has it: 30 million values */
    static const uint8_t head[] = {1,
                                   1,
                                   1,
                                   /* names */ 0,
                                   2,
                                   'a',
                                   /* columns */ 1,
                                   /* shape */ 0xF4,
                                   3};
    ck_assert_int_eq(silt_buf_put(&raw, head, sizeof head), SILT_OK);
    for (int i = 0; i < 500; i++)
        ck_assert_int_eq(silt_buf_put_u8(&raw, 1), SILT_OK);
    static const uint8_t rest[] = {/* codes */ 0,    0,
                                   /* ms */ 0x10,    2, 0,
                                   /* seq */ 0,      0, 0,
                                   /* a number */ 2, 0, 0};
    ck_assert_int_eq(silt_buf_put(&raw, rest, sizeof rest), SILT_OK);
    test_forge(&info, silt_buf_view(&raw), &value);
    struct silt_err err = {0};
    ck_assert_int_eq(silt_segment_open(segment, silt_buf_view(&value), &err), SILT_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.sentence, "shape codes"));
    silt_buf_release(&raw);
    silt_buf_release(&value);
    silt_segment_free(segment);
}
END_TEST

enum { COPIES = 3000 };

/* Many columns of one value each; each names a dictionary of `count` values and has an exception, for which it is copied. */
static void forge_copies(uint64_t count, struct silt_buf *ret)
{
    struct silt_buf raw = {0};
    struct silt_segment_info info = {.life = 1, .count = 1, .first = {1, 0}, .last = {1, 0}};
    static const uint8_t counts[] = {1, 0xB9, 0x17, 1, /* names */ 0, 2, 'a', /* a dictionary */ 0};
    static const uint8_t codes[] = {0, 0, /* ms */ 0, 0, 0, /* seq */ 0, 0};
    static const uint8_t dictionary[] = {2, 0, 0};
    static const uint8_t column[] = {0x15, 0, 0, 0, /* exception */ 1, 0, 0, 0, 2, 'x'};
    info.values_bytes = 2 * COPIES;
    ck_assert_int_eq(silt_buf_put(&raw, counts, sizeof counts), SILT_OK);
    ck_assert_int_eq(silt_buf_put_varint(&raw, count), SILT_OK);
    for (int i = 0; i < COPIES; i++)
        ck_assert_int_eq(silt_buf_put_varint(&raw, 1), SILT_OK);
    ck_assert_int_eq(silt_buf_put_varint(&raw, COPIES), SILT_OK);
    for (uint64_t i = 0; i < COPIES; i++)
        ck_assert_int_eq(silt_buf_put_varint(&raw, i + 2), SILT_OK);
    ck_assert_int_eq(silt_buf_put(&raw, codes, sizeof codes), SILT_OK);
    ck_assert_int_eq(silt_buf_put(&raw, dictionary, sizeof dictionary), SILT_OK);
    for (int i = 0; i < COPIES; i++)
        ck_assert_int_eq(silt_buf_put(&raw, column, sizeof column), SILT_OK);
    test_forge(&info, silt_buf_view(&raw), ret);
    silt_buf_release(&raw);
}

START_TEST(segment__copies_of_a_dictionary_are_refused)
{
    struct silt_buf value = {0};
    struct silt_segment *segment;
    struct silt_err err = {0};
    struct test_heap heap;
    struct silt_entry entry;
    ck_assert_int_eq(silt_segment_new(&segment), SILT_OK);
    forge_copies(4, &value); /* so many are fine */
    ck_assert_msg(silt_segment_open(segment, silt_buf_view(&value), &err) == SILT_OK, "%s",
                  err.sentence);
    silt_segment_entry(segment, 0, &entry);
    ck_assert_uint_eq(entry.field_count, COPIES);
    ck_assert(silt_view_equal(entry.fields[COPIES - 1].value, silt_view_str("x")));
    forge_copies(65535, &value);
    test_heap_start(&heap, 0);
    ck_assert_int_eq(silt_segment_open(segment, silt_buf_view(&value), &err), SILT_ERR_CORRUPT);
    test_heap_stop();
    ck_assert_ptr_nonnull(strstr(err.sentence, "values"));
    ck_assert_uint_lt(heap.peak_bytes, 16u << 20);
    silt_buf_release(&value);
    silt_segment_free(segment);
}
END_TEST

/* ---- frames that lie about their size ---- */

/* A segment whose body is this frame and whose header says raw_bytes; all checksums right. */
static void reframe(const struct sample *sample, struct silt_view frame, uint64_t raw_bytes,
                    struct silt_buf *ret)
{
    struct silt_segment_info info = sample->info;
    uint8_t header[SILT_SEGMENT_HEADER];
    info.raw_bytes = raw_bytes;
    silt_segment_header_put(&info, frame, header);
    silt_buf_clear(ret);
    ck_assert_int_eq(silt_buf_put(ret, header, sizeof header), SILT_OK);
    ck_assert_int_eq(silt_buf_put(ret, frame.at, frame.len), SILT_OK);
}

static void refuse_frame(struct sample *sample, const char *what, struct silt_view frame,
                         uint64_t raw_bytes)
{
    struct silt_buf value = {0};
    struct silt_err err = {0};
    struct test_heap heap;
    reframe(sample, frame, raw_bytes, &value);
    test_heap_start(&heap, 0);
    enum silt_status status = silt_segment_open(sample->segment, silt_buf_view(&value), &err);
    test_heap_stop();
    ck_assert_msg(status == SILT_ERR_CORRUPT, "%s, %llu raw bytes: %s", what,
                  (unsigned long long)raw_bytes, silt_status_name(status));
    ck_assert_str_ne(err.sentence, "");
    ck_assert_msg(heap.peak_bytes < 64u << 20, "%s, %llu raw bytes: took %zu bytes", what,
                  (unsigned long long)raw_bytes, heap.peak_bytes);
    silt_buf_release(&value);
}

/* The frame with another content size of eight bytes; has_size false: without one. */
static void resize_frame(struct silt_view frame, bool has_size, uint64_t size, struct silt_buf *ret)
{
    static const size_t size_bytes[4] = {1, 2, 4, 8};
    unsigned descriptor = frame.at[4];
    ck_assert_uint_eq(descriptor & 0x23, 0x20); /* one segment, no dictionary: as we write it */
    size_t blocks = 5 + size_bytes[descriptor >> 6];
    silt_buf_clear(ret);
    ck_assert_int_eq(silt_buf_put(ret, frame.at, 4), SILT_OK);
    ck_assert_int_eq(silt_buf_put_u8(ret, has_size ? 0xE0 | (descriptor & 4) : descriptor & 4),
                     SILT_OK);
    if (has_size)
        ck_assert_int_eq(silt_buf_put_u64(ret, size), SILT_OK);
    else
        ck_assert_int_eq(silt_buf_put_u8(ret, 0x50), SILT_OK); /* a window of a MiB */
    ck_assert_int_eq(silt_buf_put(ret, frame.at + blocks, frame.len - blocks), SILT_OK);
}

/* Field report G2: the stored frame's size patched, removed, a second frame behind it: refused by the recorded length, within 64 MiB. */
START_TEST(segment__G2_frames_that_lie_about_their_size_are_refused)
{
    struct sample sample;
    struct silt_buf bent = {0};
    static const uint8_t skippable[] = {0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0};
    sample_new(&sample, test_feed_new(1, 300), 0, 300, evt);
    struct silt_view frame = {sample.value.at + SILT_SEGMENT_HEADER,
                              sample.value.len - SILT_SEGMENT_HEADER};
    uint64_t raw = sample.info.raw_bytes;
    const uint64_t sizes[] = {0,       1,       raw - 1,         raw + 1,
                              1 << 20, 1 << 30, (1u << 30) + 1u, UINT64_MAX - 2};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        resize_frame(frame, true, sizes[i], &bent);
        refuse_frame(&sample, "patched", silt_buf_view(&bent), raw);
        refuse_frame(&sample, "both patched", silt_buf_view(&bent), sizes[i]);
        refuse_frame(&sample, "the header patched", frame, sizes[i]);
    }
    resize_frame(frame, false, 0, &bent);
    refuse_frame(&sample, "removed", silt_buf_view(&bent), raw);
    silt_buf_clear(&bent);
    ck_assert_int_eq(silt_buf_put(&bent, frame.at, frame.len), SILT_OK);
    ck_assert_int_eq(silt_buf_put(&bent, frame.at, frame.len), SILT_OK);
    refuse_frame(&sample, "a second frame", silt_buf_view(&bent), raw);
    refuse_frame(&sample, "a second frame", silt_buf_view(&bent), 2 * raw);
    bent.len = frame.len;
    ck_assert_int_eq(silt_buf_put(&bent, skippable, sizeof skippable), SILT_OK);
    refuse_frame(&sample, "a frame to be skipped", silt_buf_view(&bent), raw);
    /* Written in another way, but true: the size is what counts. */
    resize_frame(frame, true, raw, &bent);
    struct silt_buf value = {0};
    reframe(&sample, silt_buf_view(&bent), raw, &value);
    ck_assert_int_eq(silt_segment_open(sample.segment, silt_buf_view(&value), NULL), SILT_OK);
    ck_assert_uint_eq(silt_segment_count(sample.segment), 300);
    silt_buf_release(&value);
    silt_buf_release(&bent);
    sample_free(&sample);
}
END_TEST

TEST_MAIN(segment__every_flipped_bit_is_refused, segment__every_cut_and_every_tail_is_refused,
          segment__header_rows_have_their_codes, segment__forged_columns_never_do_harm,
          segment__random_columns_never_do_harm, segment__bombs_are_refused,
          segment__copies_of_a_dictionary_are_refused,
          segment__G2_frames_that_lie_about_their_size_are_refused)
