/* One stream record and lists of them. */
#include <string.h>

#include "format/entry.h"
#include "harness/harness.h"
#include "harness/heap.h"

#define TEXT(literal) silt_view(literal, sizeof(literal) - 1)
#define PAIR(name, value) ((struct silt_field){TEXT(name), TEXT(value)})
#define ENTRY(...)                                                          \
    ((struct silt_entry){{1704117200000, 1620567},                          \
                         (const struct silt_field[]){__VA_ARGS__},          \
                         sizeof((const struct silt_field[]){__VA_ARGS__}) / \
                             sizeof(struct silt_field)})

static const struct silt_namespace evt = {"EVT"}, none = {0};
static const struct silt_field good_pair[] = {
    {{(const uint8_t *)"id", 2}, {(const uint8_t *)"EVT000xY9Wvvcd", 14}}};

START_TEST(entry__equality_is_of_id_and_every_byte_in_order)
{
    struct silt_entry a = ENTRY(PAIR("a", "1"), PAIR("b", "2"));
    struct silt_entry same = ENTRY(PAIR("a", "1"), PAIR("b", "2"));
    struct silt_entry swapped = ENTRY(PAIR("b", "2"), PAIR("a", "1"));
    struct silt_entry fewer = ENTRY(PAIR("a", "1"));
    struct silt_entry value = ENTRY(PAIR("a", "1"), PAIR("b", "3"));
    struct silt_entry nul = ENTRY(PAIR("a", "1"), PAIR("b", "2\0"));
    struct silt_entry moved = a;
    moved.id.seq++;
    ck_assert(silt_entry_equal(&a, &same));
    ck_assert(!silt_entry_equal(&a, &swapped) && !silt_entry_equal(&a, &fewer));
    ck_assert(!silt_entry_equal(&a, &value) && !silt_entry_equal(&a, &nul));
    ck_assert(!silt_entry_equal(&a, &moved));
    ck_assert_uint_eq(silt_entry_bytes(&a), 4);
}
END_TEST

START_TEST(digest__binds_every_boundary)
{
    struct silt_entry forms[] = {ENTRY(PAIR("ab", "c")),
                                 ENTRY(PAIR("a", "bc")),
                                 ENTRY(PAIR("", "abc")),
                                 ENTRY(PAIR("abc", "")),
                                 ENTRY(PAIR("a", "b"), PAIR("c", "")),
                                 ENTRY(PAIR("a", "b"), PAIR("", "c")),
                                 ENTRY(PAIR("a", ""), PAIR("b", "c")),
                                 ENTRY(PAIR("abc", ""), PAIR("", "")),
                                 ENTRY(PAIR("", ""), PAIR("abc", "")),
                                 ENTRY(PAIR("ab", "c\0"))};
    size_t count = sizeof forms / sizeof forms[0];
    for (size_t i = 0; i < count; i++) {
        struct silt_entry moved = forms[i];
        moved.id.ms++;
        ck_assert_uint_ne(silt_entry_digest(&forms[i], 0), silt_entry_digest(&moved, 0));
        ck_assert_uint_ne(silt_entry_digest(&forms[i], 0), silt_entry_digest(&forms[i], 1));
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_ne(silt_entry_digest(&forms[i], 0), silt_entry_digest(&forms[j], 0));
    }
}
END_TEST

/* Lengths around the places where the digest's input is cut. */
START_TEST(digest__sees_every_byte_of_any_length)
{
    static uint8_t bytes[5000];
    for (size_t len = 1; len < sizeof bytes; len += len < 60 ? 1 : 61) {
        struct silt_field fields[3] = {PAIR("n", "v"),
                                       {silt_view(bytes, len / 3), TEXT("")},
                                       {TEXT("m"), silt_view(bytes + len / 3, len - len / 3)}};
        struct silt_entry entry = {{1, 1}, fields, 3};
        uint64_t before = silt_entry_digest(&entry, 5);
        for (size_t at = 0; at < len; at += 1 + len / 7) {
            bytes[at] ^= 1;
            ck_assert_uint_ne(silt_entry_digest(&entry, 5), before);
            bytes[at] ^= 1;
        }
        if (len >= 3) { /* a byte from the value to the name */
            fields[1].name.len++;
            fields[2].value = silt_view(fields[2].value.at + 1, fields[2].value.len - 1);
            ck_assert_uint_ne(silt_entry_digest(&entry, 5), before);
        }
    }
}
END_TEST

START_TEST(digest__does_not_change_from_build_to_build)
{
    /* Receipts of different builds are compared: the value is part of the format. */
    struct silt_entry entry = ENTRY(PAIR("id", "EVT000xY9Wvvcd"), PAIR("kind", "scored"));
    ck_assert_uint_eq(silt_entry_digest(&entry, 0), 94586726755782815ULL);
}
END_TEST

START_TEST(ours__needs_the_first_id_field_to_name_this_wire_id)
{
    struct silt_entry good = ENTRY(PAIR("kind", "x"), PAIR("id", "EVT000xY9Wvvcd"));
    struct silt_entry twice = ENTRY(PAIR("id", "EVT000xY9Wvvcd"), PAIR("id", "EVT00000000001"));
    size_t at = 9;
    ck_assert(silt_entry_is_ours(&good, evt, &at));
    ck_assert_uint_eq(at, 1);
    ck_assert(silt_entry_is_ours(&twice, evt, &at));
    ck_assert_uint_eq(at, 0);
    ck_assert(!silt_entry_is_ours(&good, none, &at));
}
END_TEST

START_TEST(ours__everything_else_is_foreign)
{
    struct silt_entry foreign[] = {
        ENTRY(PAIR("kind", "x")),
        ENTRY(PAIR("id", "")),
        ENTRY(PAIR("ID", "EVT000xY9Wvvcd")),
        ENTRY(PAIR("idx", "EVT000xY9Wvvcd")),
        ENTRY(PAIR("id", "ORD000xY9Wvvcd")),
        ENTRY(PAIR("id", "evt000xY9Wvvcd")),
        ENTRY(PAIR("id", "EVT000xY9Wvvce")),
        ENTRY(PAIR("id", "EVT000xY9Wvvc!")),
        ENTRY(PAIR("id", "EVTzzzzzzzzzzz")),
        ENTRY(PAIR("id", "EVT000xY9Wvvcd\n")),
        ENTRY(PAIR("id", "junk"), PAIR("id", "EVT000xY9Wvvcd")),
        {{1704117200000, 1620567}, NULL, 0},
        {{1704117200000, 1620567 + 4194304}, good_pair, 1},
        {{5, 1620567}, good_pair, 1},
    };
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        size_t at = 9;
        ck_assert_msg(!silt_entry_is_ours(&foreign[i], evt, &at), "row %zu", i);
        ck_assert_uint_eq(at, 9);
    }
}
END_TEST

static void random_entry(struct test_rng *rng, struct silt_field *fields, struct silt_entry *ret)
{
    static uint8_t noise[256];
    test_rng_bytes(rng, noise, sizeof noise);
    size_t count = test_rng_below(rng, 6);
    for (size_t i = 0; i < count; i++)
        fields[i] = (struct silt_field){
            silt_view(noise + test_rng_below(rng, 128), test_rng_below(rng, 20)),
            silt_view(noise + test_rng_below(rng, 128), test_rng_below(rng, 100))};
    *ret = (struct silt_entry){{test_rng_next(rng), test_rng_next(rng)}, fields, count};
}

START_TEST(list__keeps_what_was_added)
{
    enum { COUNT = 300 };
    struct test_rng rng = test_rng(1);
    struct silt_entry_list list = {0};
    for (int round = 0; round < 2; round++) { /* cleared and filled again */
        struct silt_entry *copies[COUNT];
        for (size_t i = 0; i < COUNT; i++) {
            struct silt_field fields[6];
            struct silt_entry entry;
            random_entry(&rng, fields, &entry);
            ck_assert_int_eq(silt_entry_copy(&entry, &copies[i]), SILT_OK);
            ck_assert(silt_entry_equal(copies[i], &entry));
            ck_assert_int_eq(silt_entry_list_add(&list, &entry), SILT_OK);
            if (i == COUNT / 2) silt_entry_list_seal(&list); /* in between */
        }
        silt_entry_list_seal(&list);
        ck_assert_uint_eq(list.count, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            ck_assert(silt_entry_equal(&list.entries[i], copies[i]));
            silt_entry_free(copies[i]);
        }
        silt_entry_list_clear(&list);
        ck_assert_uint_eq(list.count, 0);
    }
    silt_entry_list_release(&list);
    ck_assert_ptr_null(list.entries);
    silt_entry_list_release(NULL);
}
END_TEST

START_TEST(list__refused_memory_leaves_it_as_it_was)
{
    struct test_heap heap;
    struct silt_entry entry = ENTRY(PAIR("a", "1"), PAIR("", ""), PAIR("bcd", "23"));
    for (size_t n = 1;; n++) {
        struct silt_entry_list list = {0};
        enum silt_status status = SILT_OK;
        test_heap_start(&heap, n);
        for (size_t i = 0; i < 100 && status == SILT_OK; i++)
            status = silt_entry_list_add(&list, &entry);
        silt_entry_list_seal(&list);
        for (size_t i = 0; i < list.count; i++)
            ck_assert(silt_entry_equal(&list.entries[i], &entry));
        ck_assert_uint_eq(list.bytes.len, list.count * 7);
        silt_entry_list_release(&list);
        struct silt_entry *copy = NULL;
        if (status == SILT_OK) status = silt_entry_copy(&entry, &copy);
        silt_entry_free(copy);
        test_heap_stop();
        ck_assert_uint_eq(heap.live_count, 0);
        if (heap.failed_count == 0) break;
        ck_assert_int_eq(status, SILT_ERR_MEMORY);
    }
}
END_TEST

START_TEST(list__costs_nothing_per_entry_when_reused)
{
    struct test_heap heap;
    struct silt_entry_list list = {0};
    struct silt_entry entry = ENTRY(PAIR("a", "1"), PAIR("b", "2"));
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(silt_entry_list_add(&list, &entry), SILT_OK);
    silt_entry_list_clear(&list);
    test_heap_start(&heap, 0);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(silt_entry_list_add(&list, &entry), SILT_OK);
    silt_entry_list_seal(&list);
    test_heap_stop();
    ck_assert_uint_eq(heap.request_count, 0);
    silt_entry_list_release(&list);
}
END_TEST

TEST_MAIN(entry__equality_is_of_id_and_every_byte_in_order, digest__binds_every_boundary,
          digest__sees_every_byte_of_any_length, digest__does_not_change_from_build_to_build,
          ours__needs_the_first_id_field_to_name_this_wire_id, ours__everything_else_is_foreign,
          list__keeps_what_was_added, list__refused_memory_leaves_it_as_it_was,
          list__costs_nothing_per_entry_when_reused)
