/* The segment codec: what goes in comes out, byte for byte; what was not written so is refused. */
#include <stdlib.h>

#include "format/alloc.h"
#include "format/segment.h"
#include "harness/feed.h"
#include "harness/harness.h"
#include "harness/heap.h"

static const struct silt_namespace evt = {"EVT"}, plain = {{0}};

/* Entries as they are written in the tests. */
struct sheet {
    struct silt_entry entries[256];
    struct silt_field fields[2048];
    char text[65536];
    size_t count, field_count, text_len;
};

static struct silt_view note(struct sheet *sheet, const char *text)
{
    size_t len = strlen(text);
    ck_assert_uint_le(sheet->text_len + len, sizeof sheet->text);
    char *to = memcpy(sheet->text + sheet->text_len, text, len);
    sheet->text_len += len;
    return silt_view(to, len);
}

static void start(struct sheet *sheet, uint64_t ms, uint64_t seq)
{
    ck_assert_uint_lt(sheet->count, 256);
    sheet->entries[sheet->count++] =
        (struct silt_entry){{ms, seq}, sheet->fields + sheet->field_count, 0};
}

static void put(struct sheet *sheet, const char *name, const char *value)
{
    ck_assert_uint_lt(sheet->field_count, 2048);
    sheet->fields[sheet->field_count++] =
        (struct silt_field){note(sheet, name), note(sheet, value)};
    sheet->entries[sheet->count - 1].field_count++;
}

static void build(const struct silt_entry *entries, size_t count, struct silt_namespace ns,
                  struct silt_buf *ret)
{
    struct silt_segment_builder *builder;
    struct silt_segment_info info;
    ck_assert_int_eq(silt_segment_builder_new(3, &builder), SILT_OK);
    silt_segment_builder_begin(builder, 7, ns);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(silt_segment_builder_add(builder, &entries[i]), SILT_OK);
    ck_assert_int_eq(silt_segment_builder_finish(builder, ret, &info), SILT_OK);
    ck_assert_uint_eq(info.stored_bytes, ret->len);
    silt_segment_builder_free(builder);
}

static void compare(struct silt_segment *segment, const struct silt_entry *entries, size_t count,
                    struct silt_namespace ns)
{
    size_t field, foreign = 0;
    uint64_t bytes = 0;
    ck_assert_uint_eq(silt_segment_count(segment), count);
    for (size_t n = 0; n < 2 * count; n++) { /* upwards, then downwards */
        size_t i = n < count ? n : 2 * count - 1 - n;
        struct silt_entry got;
        silt_segment_entry(segment, i, &got);
        ck_assert_msg(silt_entry_equal(&got, &entries[i]), "entry %zu differs", i);
        ck_assert(silt_wire_id_equal(silt_segment_id(segment, i), entries[i].id));
        bool ours = silt_entry_is_ours(&entries[i], ns, &field);
        bool is_foreign = !ours && !silt_namespace_is_none(ns);
        ck_assert_int_eq(silt_segment_is_foreign(segment, i), is_foreign);
        if (n < count) foreign += is_foreign;
        if (n < count) bytes += silt_entry_bytes(&entries[i]);
    }
    const struct silt_segment_info *info = silt_segment_info(segment);
    ck_assert_uint_eq(info->foreign_count, foreign);
    ck_assert_uint_eq(info->values_bytes, bytes);
    ck_assert_uint_eq(info->life, 7);
    ck_assert(silt_namespace_equal(info->ns, ns));
}

static void round_trip(const struct silt_entry *entries, size_t count, struct silt_namespace ns)
{
    SILT_CLEANUP(silt_buf_release) struct silt_buf value = {0};
    struct silt_segment *segment;
    struct silt_err err = {0};
    build(entries, count, ns, &value);
    ck_assert_int_eq(silt_segment_new(&segment), SILT_OK);
    enum silt_status status = silt_segment_open(segment, silt_buf_view(&value), &err);
    ck_assert_msg(status == SILT_OK, "%s", err.sentence);
    memset(value.at, 0xEE, value.len); /* it is not needed any more */
    compare(segment, entries, count, ns);
    silt_segment_free(segment);
}

static void round_trip_sheet(const struct sheet *sheet)
{
    round_trip(sheet->entries, sheet->count, plain);
    round_trip(sheet->entries, sheet->count, evt);
}

START_TEST(segment__one_entry)
{
    struct sheet sheet = {0};
    start(&sheet, 1, 0);
    put(&sheet, "a", "x");
    round_trip_sheet(&sheet);
}
END_TEST

START_TEST(segment__no_fields_at_all)
{
    struct sheet sheet = {0};
    for (uint64_t i = 0; i < 50; i++)
        start(&sheet, i + 1, 0);
    round_trip_sheet(&sheet);
}
END_TEST

START_TEST(segment__derived_id_is_not_stored)
{
    struct sheet with = {0}, without = {0};
    char text[16] = "EVT";
    for (uint64_t i = 0; i < 200; i++) {
        uint64_t ms = 1704117200000 + i * i, snowflake;
        ck_assert(silt_snowflake_from_wire((struct silt_wire_id){ms, i}, &snowflake));
        silt_base62_encode(snowflake, (uint8_t *)text + 3);
        start(&with, ms, i);
        put(&with, "id", text);
        put(&with, "v", "1");
        start(&without, ms, i);
        put(&without, "v", "1");
    }
    SILT_CLEANUP(silt_buf_release) struct silt_buf a = {0};
    SILT_CLEANUP(silt_buf_release) struct silt_buf b = {0};
    build(with.entries, with.count, evt, &a);
    build(without.entries, without.count, evt, &b);
    ck_assert_uint_le(a.len, b.len + 8);
    round_trip_sheet(&with);
}
END_TEST

/* An id not in its place, twice, of another brand, of another entry: stored like any value. */
START_TEST(segment__odd_ids_are_kept)
{
    struct sheet sheet = {0};
    static const char *const ids[] = {"EVT000xY9Wvvcd", "GES000xY9Wvvcd", "EVT000xY9Wvvce", "", "x",
                                      "EVT~~~~~~~~~~~"};
    for (uint64_t i = 0; i < 6; i++) {
        start(&sheet, 1704117200000, 1620567 + i);
        put(&sheet, "id", ids[i]);
        start(&sheet, 1704117200100 + i * 200, 1620567);
        put(&sheet, "a", "x");
        put(&sheet, "id", ids[5 - i]);
        put(&sheet, "id", ids[i]);
    }
    /* ascending */
    struct sheet ordered = {0};
    for (uint64_t i = 0; i < 12; i++) {
        const struct silt_entry *from = &sheet.entries[i < 6 ? 2 * i : 2 * (i - 6) + 1];
        ordered.entries[ordered.count++] = *from;
    }
    round_trip_sheet(&ordered);
}
END_TEST

START_TEST(segment__numbers_keep_their_spelling)
{
    struct sheet sheet = {0};
    static const char *const odd[] = {"007", "+1", "-0", "", "18446744073709551616", "1e3", " 1"};
    for (uint64_t i = 0; i < 200; i++) {
        char text[32];
        snprintf(text, sizeof text, "%llu", (unsigned long long)(i * i * i * 977));
        start(&sheet, 1000 + i, i % 3);
        put(&sheet, "n", i % 20 == 7 ? odd[i % 7] : text);
        put(&sheet, "edge", i % 2 ? "18446744073709551615" : "0");
        snprintf(text, sizeof text, "%llu", 1000ULL + i + (i % 7) * 100);
        put(&sheet, "at", text);
    }
    round_trip_sheet(&sheet);
}
END_TEST

START_TEST(segment__branded_values_near_and_far)
{
    struct sheet sheet = {0};
    struct test_rng rng = test_rng(1);
    for (uint64_t i = 0; i < 220; i++) {
        char near[16] = "JOB", far[16] = "PLR";
        uint64_t ms = 1767225600000 + 500 * i;
        silt_base62_encode((ms - SILT_EPOCH_MS - i % 5) << 22 | 7 << 12 | i % 3,
                           (uint8_t *)near + 3);
        silt_base62_encode(test_rng_next(&rng) >> 1, (uint8_t *)far + 3);
        start(&sheet, ms, 0);
        put(&sheet, "job", i % 50 == 9 ? "JOB~" : near);
        put(&sheet, "player", far);
        put(&sheet, "edge", i % 2 ? "AAAAzL8n0Y58m7" : "AAA00000000000");
    }
    round_trip_sheet(&sheet);
}
END_TEST

/* A column that is a function of another but for a few entries; one that repeats another shape's values. */
START_TEST(segment__columns_that_follow_from_others)
{
    struct sheet sheet = {0};
    struct test_rng rng = test_rng(2);
    char text[32];
    for (uint64_t i = 0; i < 250; i++) {
        uint64_t who = test_rng_below(&rng, 12);
        start(&sheet, 5000 + 10 * i, 0);
        snprintf(text, sizeof text, "player-%llu", (unsigned long long)who * 7919);
        put(&sheet, "who", text);
        snprintf(text, sizeof text, "name of %llu",
                 (unsigned long long)(who == 3 && i > 200) + who);
        put(&sheet, "name", text);
        snprintf(text, sizeof text, "%016llx", (unsigned long long)(i / 2) * 0x9e3779b97f4a7c15ULL);
        put(&sheet, i % 2 ? "done" : "asked", "1");
        put(&sheet, "token", text);
    }
    round_trip_sheet(&sheet);
}
END_TEST

START_TEST(segment__every_entry_another_shape)
{
    struct sheet sheet = {0};
    char name[32];
    for (uint64_t i = 0; i < 256; i++) {
        start(&sheet, i, 1);
        for (uint64_t f = 0; f < i % 6; f++) {
            snprintf(name, sizeof name, "f%llu", (unsigned long long)(i * f % 41));
            put(&sheet, name, "v");
        }
    }
    round_trip_sheet(&sheet);
}
END_TEST

START_TEST(segment__ids_at_the_ends_of_the_range)
{
    struct sheet sheet = {0};
    static const struct silt_wire_id ids[] = {{0, 1},
                                              {0, UINT64_MAX},
                                              {1, 0},
                                              {1, 1},
                                              {SILT_EPOCH_MS - 1, 0},
                                              {SILT_EPOCH_MS, 4194303},
                                              {SILT_EPOCH_MS, 4194304},
                                              {SILT_LAST_MS, 4194303},
                                              {SILT_LAST_MS + 1, 0},
                                              {UINT64_MAX, 0},
                                              {UINT64_MAX, UINT64_MAX}};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        start(&sheet, ids[i].ms, ids[i].seq);
        put(&sheet, "n", "1767225600000");
    }
    round_trip_sheet(&sheet);
    round_trip(&sheet.entries[10], 1, plain);
}
END_TEST

START_TEST(segment__sample_feed)
{
    struct silt_entry_list list;
    struct test_feed *feed = test_feed_new(6, 20000);
    test_feed_list(feed, &list);
    for (size_t from = 0, n = 1; from < list.count; from += n, n = 3 * n + 1) {
        if (n > list.count - from) n = list.count - from;
        round_trip(list.entries + from, n, evt);
    }
    round_trip(list.entries, 4000, plain);
    silt_entry_list_release(&list);
    test_feed_free(feed);
}
END_TEST

START_TEST(segment__adversarial_shard)
{
    struct silt_entry_list list;
    struct test_feed *feed = test_feed_new_odd(test_seed());
    test_feed_list(feed, &list);
    for (size_t from = 0; from < list.count; from += 1000)
        round_trip(list.entries + from, 1000, from % 2000 ? plain : evt);
    silt_entry_list_release(&list);
    test_feed_free(feed);
}
END_TEST

/* Small alphabets and random widths meet every kind of column and its edges. */
START_TEST(segment__random_entries)
{
    struct test_rng rng = test_rng(3);
    for (int round = 0; round < (test_long() ? 3000 : 150); round++) {
        struct sheet sheet = {0};
        uint64_t ms = test_rng_below(&rng, 3) ? SILT_EPOCH_MS : 0, seq = 0;
        uint64_t shapes = 1 + test_rng_below(&rng, 4), values = 1 + test_rng_below(&rng, 40);
        size_t count = 1 + test_rng_below(&rng, 200);
        for (size_t i = 0; i < count; i++) {
            char text[64], id[16] = "EVT";
            ms += test_rng_below(&rng, 3) * test_rng_below(&rng, 1000);
            seq += 1 + test_rng_below(&rng, 2) * test_rng_below(&rng, 5000);
            start(&sheet, ms, seq);
            uint64_t shape = test_rng_below(&rng, shapes), snowflake;
            if (shape != 0 &&
                silt_snowflake_from_wire((struct silt_wire_id){ms, seq}, &snowflake)) {
                silt_base62_encode(snowflake, (uint8_t *)id + 3);
                put(&sheet, "id", id);
            }
            for (uint64_t f = 0; f < shape + 1; f++) {
                uint64_t value = test_rng_below(&rng, values) * 1234567;
                static const char *const forms[] = {"%llu", "%012llu", "v%llx", "%.0llu"};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                snprintf(text, sizeof text, forms[(f + shape) % 4], (unsigned long long)value);
#pragma GCC diagnostic pop
                put(&sheet, f % 2 ? "a" : "b", text);
            }
        }
        round_trip_sheet(&sheet);
    }
}
END_TEST

START_TEST(segment__large_entries)
{
    static struct silt_field fields[20000];
    static char names[20000][8];
    size_t len = 48u << 20;
    uint8_t *large = silt_alloc(len);
    struct test_rng rng = test_rng(4);
    for (size_t i = 0; i < len; i++)
        large[i] = (uint8_t)(i >> 8);
    test_rng_bytes(&rng, large, 1 << 20);
    for (size_t f = 0; f < 20000; f++) {
        snprintf(names[f], sizeof names[f], "%zu", f % 10001);
        fields[f] = (struct silt_field){silt_view_str(names[f]), silt_view(large + f, f % 50)};
    }
    struct silt_field one = {silt_view(large, 100), silt_view(large, len)};
    struct silt_entry entries[] = {
        {{1, 1}, &one, 1}, {{1, 2}, fields, 20000}, {{2, 0}, fields, 19999}};
    round_trip(entries, 3, plain);
    silt_free(large);
}
END_TEST

START_TEST(segment__find_is_the_first_not_below)
{
    struct sheet sheet = {0};
    SILT_CLEANUP(silt_buf_release) struct silt_buf value = {0};
    struct silt_segment *segment;
    for (uint64_t i = 1; i <= 100; i++)
        start(&sheet, 10 * i, i);
    build(sheet.entries, sheet.count, plain, &value);
    ck_assert_int_eq(silt_segment_new(&segment), SILT_OK);
    ck_assert_int_eq(silt_segment_open(segment, silt_buf_view(&value), NULL), SILT_OK);
    ck_assert_uint_eq(silt_segment_find(segment, SILT_WIRE_ID_MIN), 0);
    ck_assert_uint_eq(silt_segment_find(segment, SILT_WIRE_ID_MAX), 100);
    for (uint64_t i = 1; i <= 100; i++) {
        ck_assert_uint_eq(silt_segment_find(segment, (struct silt_wire_id){10 * i, i}), i - 1);
        ck_assert_uint_eq(silt_segment_find(segment, (struct silt_wire_id){10 * i, i + 1}), i);
        ck_assert_uint_eq(silt_segment_find(segment, (struct silt_wire_id){10 * i, 0}), i - 1);
    }
    silt_segment_free(segment);
}
END_TEST

START_TEST(builder__refuses_and_stays_as_it_was)
{
    struct sheet sheet = {0};
    struct silt_segment_builder *builder;
    struct silt_segment_info info;
    SILT_CLEANUP(silt_buf_release) struct silt_buf before = {0};
    SILT_CLEANUP(silt_buf_release) struct silt_buf after = {0};
    start(&sheet, 5, 5);
    put(&sheet, "a", "1");
    ck_assert_int_eq(silt_segment_builder_new(3, &builder), SILT_OK);
    silt_segment_builder_begin(builder, 1, plain);
    ck_assert_int_eq(silt_segment_builder_finish(builder, &before, &info), SILT_ERR_USAGE);
    ck_assert_int_eq(silt_segment_builder_add(builder, &sheet.entries[0]), SILT_OK);
    ck_assert_int_eq(silt_segment_builder_finish(builder, &before, &info), SILT_OK);
    ck_assert_int_eq(silt_segment_builder_add(builder, &sheet.entries[0]), SILT_ERR_ORDER);
    struct silt_entry wide = {{6, 0}, sheet.fields, SILT_ENTRY_FIELDS_MAX + 1};
    ck_assert_int_eq(silt_segment_builder_add(builder, &wide), SILT_ERR_ENTRY_SHAPE);
    struct silt_field huge = {sheet.fields[0].name,
                              {sheet.fields[0].value.at, SILT_ENTRY_BYTES_MAX}};
    struct silt_entry long_one = {{6, 0}, &huge, 1};
    ck_assert_int_eq(silt_segment_builder_add(builder, &long_one), SILT_ERR_ENTRY_SHAPE);
    ck_assert_int_eq(silt_segment_builder_finish(builder, &after, &info), SILT_OK);
    ck_assert(silt_view_equal(silt_buf_view(&before), silt_buf_view(&after)));
    silt_segment_builder_free(builder);
}
END_TEST

START_TEST(builder__is_full_at_its_count)
{
    struct silt_segment_builder *builder;
    struct silt_segment_info info;
    SILT_CLEANUP(silt_buf_release) struct silt_buf value = {0};
    ck_assert_int_eq(silt_segment_builder_new(1, &builder), SILT_OK);
    silt_segment_builder_begin(builder, 1, plain);
    for (uint64_t i = 1; i <= SILT_SEGMENT_COUNT_MAX; i++) {
        struct silt_entry entry = {{i, 0}, NULL, 0};
        ck_assert_int_eq(silt_segment_builder_add(builder, &entry), SILT_OK);
    }
    struct silt_entry more = {{UINT64_MAX, 0}, NULL, 0};
    ck_assert_int_eq(silt_segment_builder_add(builder, &more), SILT_ERR_LIMIT);
    ck_assert_int_eq(silt_segment_builder_finish(builder, &value, &info), SILT_OK);
    ck_assert_uint_eq(info.count, SILT_SEGMENT_COUNT_MAX);
    struct silt_segment *segment;
    ck_assert_int_eq(silt_segment_new(&segment), SILT_OK);
    ck_assert_int_eq(silt_segment_open(segment, silt_buf_view(&value), NULL), SILT_OK);
    ck_assert_uint_eq(silt_segment_id(segment, 65535).ms, 65536);
    silt_segment_free(segment);
    silt_segment_builder_free(builder);
}
END_TEST

/* Continued after a finish, a builder gives what one that got all at once gives. */
START_TEST(builder__may_go_on_after_finish)
{
    struct silt_entry_list list;
    struct test_feed *feed = test_feed_new(8, 600);
    struct silt_segment_builder *builder;
    struct silt_segment_info info;
    SILT_CLEANUP(silt_buf_release) struct silt_buf once = {0};
    SILT_CLEANUP(silt_buf_release) struct silt_buf parts = {0};
    test_feed_list(feed, &list);
    build(list.entries, 600, evt, &once);
    ck_assert_int_eq(silt_segment_builder_new(3, &builder), SILT_OK);
    silt_segment_builder_begin(builder, 7, evt);
    for (size_t i = 0; i < 600; i++) {
        ck_assert_int_eq(silt_segment_builder_add(builder, &list.entries[i]), SILT_OK);
        if (i % 100 != 99) continue;
        silt_buf_clear(&parts);
        ck_assert_int_eq(silt_segment_builder_finish(builder, &parts, &info), SILT_OK);
    }
    ck_assert(silt_view_equal(silt_buf_view(&once), silt_buf_view(&parts)));
    silt_segment_builder_free(builder);
    silt_entry_list_release(&list);
    test_feed_free(feed);
}
END_TEST

static enum silt_status whole_way(const struct silt_entry *entries, size_t count)
{
    struct silt_segment_builder *builder = NULL;
    struct silt_segment *segment = NULL;
    struct silt_buf value = {0};
    struct silt_segment_info info;
    enum silt_status status = silt_segment_builder_new(1, &builder);
    if (status == SILT_OK) silt_segment_builder_begin(builder, 1, evt);
    for (size_t i = 0; status == SILT_OK && i < count; i++)
        status = silt_segment_builder_add(builder, &entries[i]);
    if (status == SILT_OK) status = silt_segment_builder_finish(builder, &value, &info);
    if (status == SILT_OK) status = silt_segment_new(&segment);
    if (status == SILT_OK) status = silt_segment_open(segment, silt_buf_view(&value), NULL);
    if (status == SILT_OK && silt_segment_count(segment) != count) status = SILT_ERR_PROOF;
    silt_buf_release(&value);
    silt_segment_free(segment);
    silt_segment_builder_free(builder);
    return status;
}

START_TEST(segment__every_refused_allocation_is_survived)
{
    struct silt_entry_list list;
    struct test_feed *feed = test_feed_new_odd(9);
    struct test_heap heap;
    test_feed_list(feed, &list);
    for (size_t n = 1;; n++) {
        test_heap_start(&heap, n);
        enum silt_status status = whole_way(list.entries, 40);
        test_heap_stop();
        ck_assert_uint_eq(heap.live_count, 0);
        if (heap.failed_count == 0) {
            ck_assert_int_eq(status, SILT_OK);
            ck_assert_uint_gt(n, 30);
            break;
        }
        ck_assert_int_eq(status, SILT_ERR_MEMORY);
    }
    silt_entry_list_release(&list);
    test_feed_free(feed);
}
END_TEST

/* After the first segments a scan asks the heap for nothing any more. */
START_TEST(segment__scan_allocates_nothing_once_grown)
{
    struct silt_entry_list list;
    struct test_feed *feed = test_feed_new(10, 9000);
    struct test_heap heap;
    struct silt_segment *segment;
    struct silt_buf values[9] = {{0}};
    test_feed_list(feed, &list);
    for (size_t s = 0; s < 9; s++)
        build(list.entries + 1000 * s, 1000, evt, &values[s]);
    ck_assert_int_eq(silt_segment_new(&segment), SILT_OK);
    for (int pass = 0; pass < 3; pass++) {
        test_heap_start(&heap, 0);
        for (size_t s = 0; s < 9; s++) {
            ck_assert_int_eq(silt_segment_open(segment, silt_buf_view(&values[s]), NULL), SILT_OK);
            for (size_t i = 0; i < 1000; i++) {
                struct silt_entry entry;
                silt_segment_entry(segment, i, &entry);
                ck_assert_uint_gt(entry.field_count, 0);
            }
        }
        test_heap_stop();
        if (pass == 2) ck_assert_uint_eq(heap.request_count, 0);
    }
    for (size_t s = 0; s < 9; s++)
        silt_buf_release(&values[s]);
    silt_segment_free(segment);
    silt_entry_list_release(&list);
    test_feed_free(feed);
}
END_TEST

TEST_MAIN(segment__one_entry, segment__no_fields_at_all, segment__derived_id_is_not_stored,
          segment__odd_ids_are_kept, segment__numbers_keep_their_spelling,
          segment__branded_values_near_and_far, segment__columns_that_follow_from_others,
          segment__every_entry_another_shape, segment__ids_at_the_ends_of_the_range,
          segment__sample_feed, segment__adversarial_shard, segment__random_entries,
          segment__large_entries, segment__find_is_the_first_not_below,
          builder__refuses_and_stays_as_it_was, builder__is_full_at_its_count,
          builder__may_go_on_after_finish, segment__every_refused_allocation_is_survived,
          segment__scan_allocates_nothing_once_grown)
