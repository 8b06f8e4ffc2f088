/* Instants and durations as text. */
#include <string.h>
#include <time.h>

#include "format/instant.h"
#include "harness/harness.h"

START_TEST(instant__parses_every_form)
{
    static const struct {
        const char *text;
        long long ms;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2024-01-01T00:00:00.000Z", 1704067200000},
        {"2026-03-01T12:00:00.123Z", 1772366400123},
        {"2026-03-01t12:00:00.123z", 1772366400123},
        {"2026-03-01 12:00:00.123Z", 1772366400123},
        {"2026-03-01T17:30:00.123+05:30", 1772366400123},
        {"2026-03-01T04:00:00.123-08:00", 1772366400123},
        {"2026-03-01T12:00:00.123-00:00", 1772366400123},
        {"2026-03-01", 1772323200000},
        {"2026-03-01T12:00:00.5Z", 1772366400500},
        {"2026-03-01T12:00:00.0005Z", 1772366400000},
        {"2026-03-01T12:00:00.9999999Z", 1772366400999},
        {"2024-02-29T23:59:59.999Z", 1709251199999},
        {"2000-02-29", 951782400000},
        {"1969-12-31T23:59:59.9999Z", -1},
        {"1969-12-31T23:59:59.0001Z", -1000},
        {"1969-12-31", -86400000},
        {"0000-03-01", -62162035200000},
        {"2016-12-31T23:59:60Z", 1483228800000},
        {"2017-01-01T00:59:60.5+01:00", 1483228800500},
        {"9999-12-31T23:59:59.999Z", 253402300799999},
        {"2093-09-06T15:47:35.551Z", 3903090455551},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct silt_instant instant = {12345};
        ck_assert_msg(silt_instant_parse(silt_view_str(rows[i].text), &instant, NULL) == SILT_OK,
                      "%s", rows[i].text);
        ck_assert_msg(instant.ms == rows[i].ms, "%s: %lld", rows[i].text, (long long)instant.ms);
    }
}
END_TEST

START_TEST(instant__refuses_everything_else)
{
    static const char *const refused[] = {"",
                                          "now",
                                          "2026",
                                          "2026-03",
                                          "2026-3-1",
                                          "2026-13-01",
                                          "2026-00-01",
                                          "2026-02-29",
                                          "1900-02-29",
                                          "2026-04-31",
                                          "2026-03-00",
                                          "2026-03-01T",
                                          "2026-03-01T12:00Z",
                                          "2026-03-01T12:00:00",
                                          "2026-03-01T24:00:00Z",
                                          "2026-03-01T12:60:00Z",
                                          "2026-03-01T12:00:60Z",
                                          "2026-03-01T23:59:61Z",
                                          "2026-03-01T12:00:00.Z",
                                          "2026-03-01T12:00:00,5Z",
                                          "2026-03-01T12:00:00+5:30",
                                          "2026-03-01T12:00:00+0530",
                                          "2026-03-01T12:00:00+24:00",
                                          "2026-03-01T12:00:00Zx",
                                          " 2026-03-01",
                                          "2026-03-01Z",
                                          "+2026-03-01",
                                          "02026-03-01",
                                          "2026-03-01T12:00:00 Z"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct silt_instant instant = {12345};
        struct silt_err err = {0};
        ck_assert_msg(silt_instant_parse(silt_view_str(refused[i]), &instant, &err) ==
                          SILT_ERR_INSTANT,
                      "%s", refused[i]);
        ck_assert_int_eq(instant.ms, 12345);
        ck_assert_ptr_nonnull(strstr(err.sentence, refused[i]));
        ck_assert_str_ne(err.hint, "");
    }
    struct silt_instant instant;
    ck_assert_int_eq(silt_instant_parse(silt_view("2026-03-01\0", 11), &instant, NULL),
                     SILT_ERR_INSTANT);
}
END_TEST

START_TEST(instant__is_written_in_utc_with_three_decimals)
{
    static const struct {
        long long ms;
        const char *text;
    } rows[] = {{0, "1970-01-01T00:00:00.000Z"},
                {1772366400123, "2026-03-01T12:00:00.123Z"},
                {-1, "1969-12-31T23:59:59.999Z"},
                {-62162035200000, "0000-03-01T00:00:00.000Z"},
                {253402300800000, "10000-01-01T00:00:00.000Z"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[SILT_INSTANT_TEXT];
        size_t len = silt_instant_format((struct silt_instant){rows[i].ms}, text);
        ck_assert_str_eq(text, rows[i].text);
        ck_assert_uint_eq(len, strlen(text));
    }
}
END_TEST

START_TEST(instant__any_number_has_room)
{
    char text[SILT_INSTANT_TEXT];
    ck_assert_uint_lt(silt_instant_format((struct silt_instant){INT64_MAX}, text), sizeof text);
    ck_assert_uint_lt(silt_instant_format((struct silt_instant){INT64_MIN}, text), sizeof text);
}
END_TEST

/* Against the C library's calendar, over every day of eight centuries. */
START_TEST(instant__agrees_with_the_calendar)
{
    for (long long day = -150000; day < 150000; day++) {
        char text[SILT_INSTANT_TEXT], want[64];
        struct silt_instant instant = {day * 86400000 + 43200007}, back;
        time_t seconds = (time_t)(day * 86400 + 43200);
        struct tm tm;
        gmtime_r(&seconds, &tm);
        strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%S.007Z", &tm);
        size_t len = silt_instant_format(instant, text);
        ck_assert_str_eq(text, want);
        ck_assert_int_eq(silt_instant_parse(silt_view(text, len), &back, NULL), SILT_OK);
        ck_assert_int_eq(back.ms, instant.ms);
    }
}
END_TEST

START_TEST(duration__parses_numbers_and_sums)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } rows[] = {{"0s", 0},
                {"0ms", 0},
                {"250ms", 250},
                {"90s", 90000},
                {"15m", 900000},
                {"36h", 129600000},
                {"30d", 2592000000},
                {"1d12h", 129600000},
                {"1d2h3m4s5ms", 93784005},
                {"1m1ms", 60001},
                {"18446744073709551615ms", UINT64_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t ms = 7;
        ck_assert_msg(silt_duration_parse(silt_view_str(rows[i].text), &ms, NULL) == SILT_OK, "%s",
                      rows[i].text);
        ck_assert_uint_eq(ms, rows[i].ms);
    }
}
END_TEST

START_TEST(duration__refuses_everything_else)
{
    static const char *const refused[] = {"",
                                          "5",
                                          "s",
                                          "-5s",
                                          "+5s",
                                          "1.5h",
                                          "5 s",
                                          "5s ",
                                          "5S",
                                          "1h1d",
                                          "1d1d",
                                          "1w",
                                          "5mss",
                                          "5sm",
                                          "1d12",
                                          "18446744073709551616ms",
                                          "18446744073709551615s",
                                          "18446744073709551615d",
                                          "213503982334d15h"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        uint64_t ms = 7;
        struct silt_err err = {0};
        ck_assert_msg(silt_duration_parse(silt_view_str(refused[i]), &ms, &err) ==
                          SILT_ERR_DURATION,
                      "%s", refused[i]);
        ck_assert_uint_eq(ms, 7);
        ck_assert_ptr_nonnull(strstr(err.sentence, refused[i]));
    }
}
END_TEST

START_TEST(duration__text_round_trips)
{
    static const uint64_t rows[] = {0, 1, 999, 1000, 90000, 129600000, 93784005, UINT64_MAX};
    static const char *const text[] = {
        "0s", "1ms", "999ms", "1s", "1m30s", "1d12h", "1d2h3m4s5ms", "213503982334d14h25m51s615ms"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char shown[SILT_INSTANT_TEXT];
        uint64_t back;
        size_t len = silt_duration_format(rows[i], shown);
        ck_assert_str_eq(shown, text[i]);
        ck_assert_int_eq(silt_duration_parse(silt_view(shown, len), &back, NULL), SILT_OK);
        ck_assert_uint_eq(back, rows[i]);
    }
}
END_TEST

TEST_MAIN(instant__parses_every_form, instant__refuses_everything_else,
          instant__is_written_in_utc_with_three_decimals, instant__any_number_has_room,
          instant__agrees_with_the_calendar, duration__parses_numbers_and_sums,
          duration__refuses_everything_else, duration__text_round_trips)
