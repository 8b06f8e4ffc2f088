/* The entry id as a pair of numbers. */
#include <string.h>

#include "format/wire_id.h"
#include "harness/harness.h"

#define ID(ms, seq) ((struct silt_wire_id){ms, seq})
#define MAX UINT64_MAX

/* Ascending. */
static const struct silt_wire_id ladder[] = {{0, 0},  {0, 1},     {0, MAX}, {1, 0},   {9, 10},
                                             {10, 9}, {255, MAX}, {256, 0}, {MAX, 0}, {MAX, MAX}};
#define COUNT (sizeof ladder / sizeof ladder[0])

START_TEST(wire_id__orders_as_a_pair_of_numbers)
{
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t j = 0; j < COUNT; j++) {
            int want = i < j ? -1 : i > j;
            ck_assert_int_eq(silt_wire_id_compare(ladder[i], ladder[j]), want);
            ck_assert_int_eq(silt_wire_id_less(ladder[i], ladder[j]), want < 0);
            ck_assert_int_eq(silt_wire_id_equal(ladder[i], ladder[j]), want == 0);
        }
    }
    ck_assert(silt_wire_id_is_zero(ladder[0]) && !silt_wire_id_is_zero(ladder[1]));
}
END_TEST

START_TEST(wire_id__keys_sort_as_ids_and_come_back)
{
    uint8_t a[SILT_WIRE_ID_KEY], b[SILT_WIRE_ID_KEY];
    for (size_t i = 0; i < COUNT; i++) {
        silt_wire_id_put_key(ladder[i], a);
        ck_assert(silt_wire_id_equal(silt_wire_id_get_key(a), ladder[i]));
        if (i > 0) ck_assert_int_lt(memcmp(b, a, sizeof a), 0);
        memcpy(b, a, sizeof a);
    }
}
END_TEST

START_TEST(wire_id__next_and_prev_are_inverse_and_stop_at_the_ends)
{
    for (size_t i = 0; i < COUNT; i++) {
        struct silt_wire_id id = ladder[i], back;
        bool last = i == COUNT - 1;
        ck_assert_int_eq(silt_wire_id_next(ladder[i], &id), !last);
        if (last) {
            ck_assert(silt_wire_id_equal(id, ladder[i])); /* untouched */
        } else {
            ck_assert(silt_wire_id_less(ladder[i], id));
            ck_assert(silt_wire_id_prev(id, &back));
            ck_assert(silt_wire_id_equal(back, ladder[i]));
        }
    }
    struct silt_wire_id id = ID(7, 7);
    ck_assert(!silt_wire_id_prev(SILT_WIRE_ID_MIN, &id));
    ck_assert(silt_wire_id_equal(id, ID(7, 7)));
    ck_assert(silt_wire_id_next(ID(1, MAX), &id));
    ck_assert(silt_wire_id_equal(id, ID(2, 0)));
}
END_TEST

START_TEST(wire_id__text_round_trips)
{
    for (size_t i = 0; i < COUNT; i++) {
        char text[SILT_WIRE_ID_TEXT];
        struct silt_wire_id back;
        size_t len = silt_wire_id_format(ladder[i], text);
        ck_assert_uint_eq(len, strlen(text));
        ck_assert_int_eq(silt_wire_id_parse(silt_view(text, len), &back, NULL), SILT_OK);
        ck_assert(silt_wire_id_equal(back, ladder[i]));
    }
    char text[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(SILT_WIRE_ID_MAX, text);
    ck_assert_str_eq(text, "18446744073709551615-18446744073709551615");
    ck_assert_uint_eq(strlen(text), SILT_WIRE_ID_TEXT - 1);
}
END_TEST

START_TEST(wire_id__takes_leading_zeros_as_the_server_does)
{
    struct silt_wire_id id;
    ck_assert_int_eq(silt_wire_id_parse(silt_view_str("007-08"), &id, NULL), SILT_OK);
    ck_assert(silt_wire_id_equal(id, ID(7, 8)));
}
END_TEST

START_TEST(wire_id__refuses_everything_else)
{
    static const char *const refused[] = {"",
                                          "-",
                                          "1",
                                          "1-",
                                          "-1",
                                          "1--1",
                                          "1-1-1",
                                          "+1-1",
                                          "1-+1",
                                          " 1-1",
                                          "1-1 ",
                                          "1-*",
                                          "*",
                                          "a-1",
                                          "1-a",
                                          "1 - 1",
                                          "(1-1",
                                          "$",
                                          "18446744073709551616-0",
                                          "0-18446744073709551616",
                                          "EVT000xY9Wvvcd",
                                          "2026-03-01"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct silt_wire_id id = ID(7, 7);
        struct silt_err err = {0};
        ck_assert_msg(silt_wire_id_parse(silt_view_str(refused[i]), &id, &err) == SILT_ERR_WIRE_ID,
                      "%s", refused[i]);
        ck_assert(silt_wire_id_equal(id, ID(7, 7)));
        ck_assert_ptr_nonnull(strstr(err.sentence, refused[i]));
    }
}
END_TEST

TEST_MAIN(wire_id__orders_as_a_pair_of_numbers, wire_id__keys_sort_as_ids_and_come_back,
          wire_id__next_and_prev_are_inverse_and_stop_at_the_ends, wire_id__text_round_trips,
          wire_id__takes_leading_zeros_as_the_server_does, wire_id__refuses_everything_else)
