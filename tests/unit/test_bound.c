/* The ends of a range, from text to wire ids. */
#include <string.h>

#include "format/bound.h"
#include "harness/harness.h"

#define MAX UINT64_MAX

static const struct silt_namespace none = {0}, evt = {"EVT"};

START_TEST(bound__every_form)
{
    static const struct {
        const char *text;
        struct silt_wire_id from, to;
    } rows[] = {
        {"-", {0, 0}, {0, 0}},
        {"+", {MAX, MAX}, {MAX, MAX}},
        {"5", {5, 0}, {5, MAX}},
        {"0", {0, 0}, {0, MAX}},
        {"005", {5, 0}, {5, MAX}},
        {"5-7", {5, 7}, {5, 7}},
        {"(5-7", {5, 8}, {5, 6}},
        {"(5", {5, 1}, {5, MAX - 1}},
        {"(5-18446744073709551615", {6, 0}, {5, MAX - 1}},
        {"(5-0", {5, 1}, {4, MAX}},
        {"253402300799999", {253402300799999, 0}, {253402300799999, MAX}},
        {"EVT000xY9Wvvcd", {1704117200000, 1620567}, {1704117200000, 1620567}},
        {"(EVT000xY9Wvvcd", {1704117200000, 1620568}, {1704117200000, 1620566}},
        {"2025-05-01T09:00:00.300Z", {1746090000300, 0}, {1746090000300, MAX}},
        {"2025-05-01T09:00:00.3009Z", {1746090000300, 0}, {1746090000300, MAX}},
        {"(2025-05-01T09:00:00.300Z", {1746090000300, 1}, {1746090000300, MAX - 1}},
        {"2025-05-01", {1746057600000, 0}, {1746057600000, MAX}},
        {"1970-01-01", {0, 0}, {0, MAX}},
        {"2023-12-31T23:59:59.999Z", {1704067199999, 0}, {1704067199999, MAX}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct silt_view text = silt_view_str(rows[i].text);
        struct silt_wire_id from, to;
        ck_assert_int_eq(silt_bound_parse(text, SILT_EDGE_FROM, evt, &from, NULL), SILT_OK);
        ck_assert_int_eq(silt_bound_parse(text, SILT_EDGE_TO, none, &to, NULL), SILT_OK);
        ck_assert_msg(silt_wire_id_equal(from, rows[i].from), "from %s", rows[i].text);
        ck_assert_msg(silt_wire_id_equal(to, rows[i].to), "to %s", rows[i].text);
    }
}
END_TEST

START_TEST(bound__each_kind_of_bad_text_has_its_own_refusal)
{
    static const struct {
        const char *text;
        enum silt_status code;
    } rows[] = {
        {"", SILT_ERR_WIRE_ID},
        {"(", SILT_ERR_WIRE_ID},
        {"((5", SILT_ERR_WIRE_ID},
        {"(-", SILT_ERR_WIRE_ID},
        {"(+", SILT_ERR_WIRE_ID},
        {"yesterday", SILT_ERR_WIRE_ID},
        {"-5", SILT_ERR_WIRE_ID},
        {"5-", SILT_ERR_WIRE_ID},
        {"5-*", SILT_ERR_WIRE_ID},
        {"5-1-1", SILT_ERR_WIRE_ID},
        {"18446744073709551616", SILT_ERR_WIRE_ID},
        {"EVT", SILT_ERR_ID_LENGTH},
        {"EVT000xY9Wvvcd0", SILT_ERR_ID_LENGTH},
        {"evt000xY9Wvvcd", SILT_ERR_ID_NAMESPACE},
        {"@VT000xY9Wvvcd", SILT_ERR_ID_NAMESPACE},
        {"EVT000xY9Wvv!d", SILT_ERR_ID_CHARSET},
        {"EVTAzL8n0Y58m8", SILT_ERR_ID_RANGE},
        {"ORD000xY9Wvvcd", SILT_ERR_ID_KIND},
        {"2025-13-01", SILT_ERR_INSTANT},
        {"2025-05-01T09:00:00", SILT_ERR_INSTANT},
        {"1969-12-31", SILT_ERR_INSTANT},
        {"(1969-12-31T23:59:59.999Z", SILT_ERR_INSTANT},
        {"253402300800000", SILT_ERR_BARE_SNOWFLAKE},
        {"(274557032793636864", SILT_ERR_BARE_SNOWFLAKE},
        {"18446744073709551615", SILT_ERR_BARE_SNOWFLAKE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct silt_wire_id id = {7, 7};
        struct silt_err err = {0};
        enum silt_status got =
            silt_bound_parse(silt_view_str(rows[i].text), SILT_EDGE_FROM, evt, &id, &err);
        ck_assert_msg(got == rows[i].code, "'%s': %s", rows[i].text, silt_status_name(got));
        ck_assert_int_eq(err.code, rows[i].code);
        ck_assert(silt_wire_id_equal(id, (struct silt_wire_id){7, 7}));
        const char *value = rows[i].text[0] == '(' ? rows[i].text + 1 : rows[i].text;
        ck_assert_msg(strstr(err.sentence, value) != NULL, "%s", err.sentence);
    }
}
END_TEST

START_TEST(bound__bare_snowflake_is_refused_with_the_wire_id_it_stands_for)
{
    struct silt_wire_id id;
    struct silt_err err;
    ck_assert_int_eq(
        silt_bound_parse(silt_view_str("274557032793636864"), SILT_EDGE_TO, none, &id, &err),
        SILT_ERR_BARE_SNOWFLAKE);
    ck_assert_ptr_nonnull(strstr(err.hint, "1769526697641-0"));
    ck_assert_int_eq(
        silt_bound_parse(silt_view_str("18446744073709551615"), SILT_EDGE_TO, none, &id, &err),
        SILT_ERR_BARE_SNOWFLAKE);
    ck_assert_ptr_nonnull(strstr(err.hint, "<ms>-<seq>"));
}
END_TEST

START_TEST(bound__a_plain_stream_takes_any_brand)
{
    struct silt_wire_id id;
    ck_assert_int_eq(
        silt_bound_parse(silt_view_str("ORD000xY9Wvvcd"), SILT_EDGE_FROM, none, &id, NULL),
        SILT_OK);
    ck_assert(silt_wire_id_equal(id, (struct silt_wire_id){1704117200000, 1620567}));
}
END_TEST

START_TEST(bound__exclusive_beyond_the_range_is_no_window)
{
    struct silt_wire_id id;
    struct silt_err err;
    ck_assert_int_eq(silt_bound_parse(silt_view_str("(18446744073709551615-18446744073709551615"),
                                      SILT_EDGE_FROM, none, &id, &err),
                     SILT_ERR_WINDOW);
    ck_assert_int_eq(silt_bound_parse(silt_view_str("(0-0"), SILT_EDGE_TO, none, &id, &err),
                     SILT_ERR_WINDOW);
    ck_assert_ptr_nonnull(strstr(err.sentence, "(0-0"));
}
END_TEST

START_TEST(window__both_edges_inclusive_and_one_millisecond_is_enough)
{
    struct silt_range range;
    ck_assert_int_eq(
        silt_window_parse(silt_view_str("2025-06-10T06:30:00.000Z..2025-06-10T06:30:00.250Z"), evt,
                          &range, NULL),
        SILT_OK);
    ck_assert(silt_wire_id_equal(range.from, (struct silt_wire_id){1749537000000, 0}));
    ck_assert(silt_wire_id_equal(range.to, (struct silt_wire_id){1749537000250, MAX}));
    ck_assert_int_eq(silt_window_parse(silt_view_str("5..5"), none, &range, NULL), SILT_OK);
    ck_assert(silt_wire_id_equal(range.from, (struct silt_wire_id){5, 0}));
    ck_assert(silt_wire_id_equal(range.to, (struct silt_wire_id){5, MAX}));
    ck_assert_int_eq(silt_window_parse(silt_view_str("-..+"), none, &range, NULL), SILT_OK);
}
END_TEST

START_TEST(window__inverted_or_incomplete_is_refused)
{
    static const struct {
        const char *text;
        enum silt_status code;
    } rows[] = {{"6..5", SILT_ERR_WINDOW},
                {"2025-06-10T06:30:00.001Z..2025-06-10T06:30:00.000Z", SILT_ERR_WINDOW},
                {"+..-", SILT_ERR_WINDOW},
                {"(5-1..5-1", SILT_ERR_WINDOW},
                {"", SILT_ERR_WINDOW},
                {"5", SILT_ERR_WINDOW},
                {"5.6", SILT_ERR_WINDOW},
                {"..5", SILT_ERR_WIRE_ID},
                {"5..", SILT_ERR_WIRE_ID},
                {"1..2..3", SILT_ERR_WIRE_ID},
                {"1969-12-31..2025-01-01", SILT_ERR_INSTANT},
                {"ORD000xY9Wvvcd..+", SILT_ERR_ID_KIND}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct silt_range range;
        struct silt_err err;
        enum silt_status got = silt_window_parse(silt_view_str(rows[i].text), evt, &range, &err);
        ck_assert_msg(got == rows[i].code, "'%s': %s", rows[i].text, silt_status_name(got));
    }
}
END_TEST

START_TEST(range__from_above_to_names_both)
{
    struct silt_err err;
    struct silt_range good = {{5, 5}, {5, 5}}, bad = {{5, 6}, {5, 5}};
    ck_assert_int_eq(silt_range_check(good, &err), SILT_OK);
    ck_assert_int_eq(silt_range_check(SILT_RANGE_ALL, &err), SILT_OK);
    ck_assert_int_eq(silt_range_check(bad, &err), SILT_ERR_WINDOW);
    ck_assert_ptr_nonnull(strstr(err.sentence, "5-6"));
    ck_assert_ptr_nonnull(strstr(err.sentence, "5-5"));
}
END_TEST

TEST_MAIN(bound__every_form, bound__each_kind_of_bad_text_has_its_own_refusal,
          bound__bare_snowflake_is_refused_with_the_wire_id_it_stands_for,
          bound__a_plain_stream_takes_any_brand, bound__exclusive_beyond_the_range_is_no_window,
          window__both_edges_inclusive_and_one_millisecond_is_enough,
          window__inverted_or_incomplete_is_refused, range__from_above_to_names_both)
