/* Instants and durations as text. Must not know what time it is. */
#include "instant.h"

#include <stdio.h>

#define DAY_MS 86400000LL
#define DAYS_400_YEARS 146097

/* Exactly `digits` decimal digits, taken off the front. */
static bool take_number(struct silt_view *text, unsigned digits, int *ret)
{
    int value = 0;
    if (text->len < digits) return false;
    for (unsigned i = 0; i < digits; i++) {
        if (text->at[i] < '0' || text->at[i] > '9') return false;
        value = value * 10 + (text->at[i] - '0');
    }
    *text = silt_view(text->at + digits, text->len - digits);
    *ret = value;
    return true;
}

static bool take_one_of(struct silt_view *text, const char *bytes)
{
    if (text->len == 0 || text->at[0] == '\0' || strchr(bytes, text->at[0]) == NULL) return false;
    *text = silt_view(text->at + 1, text->len - 1);
    return true;
}

/* Days since 1970-01-01 of a date in the Gregorian calendar. Source: the 400-year era with a year that starts in March,
 * so that the leap day is its last. */
static int64_t days_of(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * DAYS_400_YEARS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - (DAYS_400_YEARS - 1)) / DAYS_400_YEARS;
    int64_t of_era = days - era * DAYS_400_YEARS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t march_month = (5 * of_year + 2) / 153;
    *ret_day = (int)(of_year - (153 * march_month + 2) / 5 + 1);
    *ret_month = (int)(march_month < 10 ? march_month + 3 : march_month - 9);
    *ret_year = year + era * 400 + (*ret_month <= 2);
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

static bool take_date(struct silt_view *text, int64_t *ret_ms)
{
    int year, month, day;
    if (!take_number(text, 4, &year) || !take_one_of(text, "-") || !take_number(text, 2, &month) ||
        !take_one_of(text, "-") || !take_number(text, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month)) return false;
    *ret_ms = days_of(year, month, day) * DAY_MS;
    return true;
}

/* ".123456": the first three digits count, the rest is floored away. */
static bool take_fraction(struct silt_view *text, int *ret_ms)
{
    static const int weight[] = {100, 10, 1};
    size_t digits = 0;
    int digit;
    *ret_ms = 0;
    if (!take_one_of(text, ".")) return true;
    for (; take_number(text, 1, &digit); digits++)
        if (digits < 3) *ret_ms += digit * weight[digits];
    return digits > 0;
}

/* "Z" or "+05:30". */
static bool take_offset(struct silt_view *text, int *ret_minutes)
{
    int hours, minutes;
    *ret_minutes = 0;
    if (take_one_of(text, "Zz")) return true;
    bool west = text->len > 0 && text->at[0] == '-';
    if (!take_one_of(text, "+-") || !take_number(text, 2, &hours) || !take_one_of(text, ":") ||
        !take_number(text, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret_minutes = (west ? -1 : 1) * (hours * 60 + minutes);
    return true;
}

static bool take_time(struct silt_view *text, int64_t *ret_ms)
{
    int hour, minute, second, fraction, offset;
    if (!take_number(text, 2, &hour) || !take_one_of(text, ":") || !take_number(text, 2, &minute) ||
        !take_one_of(text, ":") || !take_number(text, 2, &second) ||
        !take_fraction(text, &fraction) || !take_offset(text, &offset))
        return false;
    int utc_minute = hour * 60 + minute - offset;
    /* A leap second exists only at the end of a UTC day; it names the same instant as the second after it. */
    bool leap_minute = (utc_minute + 2 * 1440) % 1440 == 1439;
    if (hour > 23 || minute > 59 || second > (leap_minute ? 60 : 59)) return false;
    *ret_ms = ((int64_t)utc_minute * 60 + second) * 1000 + fraction;
    return true;
}

enum silt_status silt_instant_parse(struct silt_view text, struct silt_instant *ret,
                                    struct silt_err *err)
{
    int64_t date_ms, time_ms = 0;
    struct silt_view rest = text;
    bool good = take_date(&rest, &date_ms);
    if (good && rest.len > 0)
        good = take_one_of(&rest, "Tt ") && take_time(&rest, &time_ms) && rest.len == 0;
    if (good) {
        ret->ms = date_ms + time_ms;
        return SILT_OK;
    }
    char shown[64];
    silt_escape(text, shown, sizeof shown);
    silt_fail(err, SILT_ERR_INSTANT, "not an instant: '%s'", shown);
    silt_hint(err, "RFC 3339 with an offset, such as 2026-03-01T12:00:00.000Z or a bare date");
    return SILT_ERR_INSTANT;
}

size_t silt_instant_format(struct silt_instant instant, char ret[SILT_INSTANT_TEXT])
{
    int64_t year, days = instant.ms / DAY_MS, of_day = instant.ms % DAY_MS;
    int month, day;
    if (of_day < 0) {
        of_day += DAY_MS;
        days--;
    }
    date_of(days, &year, &month, &day);
    int ms = (int)(of_day % 1000), second = (int)(of_day / 1000);
    int len =
        snprintf(ret, SILT_INSTANT_TEXT, "%04lld-%02d-%02dT%02d:%02d:%02d.%03dZ", (long long)year,
                 month, day, second / 3600, second / 60 % 60, second % 60, ms);
    return (size_t)len;
}

struct unit {
    const char *name;
    uint64_t ms;
};
static const struct unit units[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
#define UNITS (sizeof units / sizeof units[0])

/* "12h" off the front, of a unit smaller than the last one. */
static bool take_part(struct silt_view *text, size_t *unit, uint64_t *sum)
{
    size_t digits = 0, letters = 0;
    uint64_t count;
    while (digits < text->len && text->at[digits] >= '0' && text->at[digits] <= '9')
        digits++;
    while (digits + letters < text->len && text->at[digits + letters] >= 'a')
        letters++;
    struct silt_view name = silt_view(text->at + digits, letters);
    for (; *unit < UNITS; ++*unit)
        if (silt_view_equal(name, silt_view_str(units[*unit].name))) break;
    if (*unit == UNITS || !silt_parse_u64(silt_view(text->at, digits), &count) ||
        __builtin_mul_overflow(count, units[*unit].ms, &count) ||
        __builtin_add_overflow(*sum, count, sum))
        return false;
    *text = silt_view(name.at + letters, text->len - digits - letters);
    ++*unit;
    return true;
}

enum silt_status silt_duration_parse(struct silt_view text, uint64_t *ret_ms, struct silt_err *err)
{
    struct silt_view rest = text;
    uint64_t sum = 0;
    size_t unit = 0;
    bool good = text.len > 0;
    while (good && rest.len > 0)
        good = take_part(&rest, &unit, &sum);
    if (good) {
        *ret_ms = sum;
        return SILT_OK;
    }
    char shown[64];
    silt_escape(text, shown, sizeof shown);
    silt_fail(err, SILT_ERR_DURATION, "not a duration: '%s'", shown);
    silt_hint(err, "a number with d, h, m, s or ms, or a sum from large to small, such as 1d12h");
    return SILT_ERR_DURATION;
}

size_t silt_duration_format(uint64_t ms, char ret[SILT_INSTANT_TEXT])
{
    size_t len = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < UNITS; i++) {
        uint64_t count = ms / units[i].ms;
        ms %= units[i].ms;
        if (count > 0)
            len += (size_t)snprintf(ret + len, SILT_INSTANT_TEXT - len, "%llu%s",
                                    (unsigned long long)count, units[i].name);
    }
    return len > 0 ? len : (size_t)snprintf(ret, SILT_INSTANT_TEXT, "0s");
}
