/* The ends of a range, from text to an inclusive pair of wire ids. Must not know of servers or stores. */
#include "bound.h"

#define YEAR_9999_LAST_MS 253402300799999ULL
#define SHOWN_BYTES 64

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* YYYY-MM-...: no wire id has two dashes. */
static bool looks_like_instant(struct silt_view text)
{
    return text.len >= 8 && is_digit(text.at[0]) && is_digit(text.at[3]) && text.at[4] == '-' &&
           text.at[7] == '-';
}

static bool is_number(struct silt_view text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_digit(text.at[i])) return false;
    return text.len > 0;
}

static struct silt_wire_id end_of_ms(uint64_t ms, enum silt_edge edge)
{
    return (struct silt_wire_id){ms, edge == SILT_EDGE_FROM ? 0 : UINT64_MAX};
}

static enum silt_status parse_instant(struct silt_view text, enum silt_edge edge,
                                      struct silt_wire_id *ret, struct silt_err *err)
{
    struct silt_instant instant;
    enum silt_status status = silt_instant_parse(text, &instant, err);
    if (status != SILT_OK) return status;
    if (instant.ms < 0)
        return silt_fail(err, SILT_ERR_INSTANT, "no id can lie before 1970: '%.*s'", (int)text.len,
                         (const char *)text.at);
    *ret = end_of_ms((uint64_t)instant.ms, edge);
    return SILT_OK;
}

/* A bare number is milliseconds, as for the server. A snowflake would be taken for a year far away and find nothing. */
static enum silt_status parse_ms(struct silt_view text, enum silt_edge edge,
                                 struct silt_wire_id *ret, struct silt_err *err)
{
    uint64_t ms;
    char shown[SHOWN_BYTES], wire[SILT_WIRE_ID_TEXT];
    if (silt_parse_u64(text, &ms) && ms <= YEAR_9999_LAST_MS) {
        *ret = end_of_ms(ms, edge);
        return SILT_OK;
    }
    silt_escape(text, shown, sizeof shown);
    if (!silt_parse_u64(text, &ms))
        return silt_fail(err, SILT_ERR_WIRE_ID, "not a wire id: '%s' is not below 2^64", shown);
    silt_fail(err, SILT_ERR_BARE_SNOWFLAKE,
              "a bare number is milliseconds, and '%s' would lie after the year 9999", shown);
    if (ms <= SILT_SNOWFLAKE_MAX) {
        silt_wire_id_format(silt_snowflake_to_wire(ms), wire);
        silt_hint(err, "as a snowflake it stands for the wire id %s", wire);
    } else {
        silt_hint(err, "write the wire id in full: <ms>-<seq>");
    }
    return SILT_ERR_BARE_SNOWFLAKE;
}

static enum silt_status parse_branded(struct silt_view text, struct silt_namespace ns,
                                      struct silt_wire_id *ret, struct silt_err *err)
{
    struct silt_branded_id id;
    enum silt_status status = silt_namespace_is_none(ns)
                                  ? silt_branded_id_parse(text, &id, err)
                                  : silt_branded_id_parse_kind(text, ns, &id, err);
    if (status == SILT_OK) *ret = silt_snowflake_to_wire(id.snowflake);
    return status;
}

static enum silt_status parse_place(struct silt_view text, enum silt_edge edge,
                                    struct silt_namespace ns, struct silt_wire_id *ret,
                                    struct silt_err *err)
{
    if (looks_like_instant(text)) return parse_instant(text, edge, ret, err);
    if (is_number(text)) return parse_ms(text, edge, ret, err);
    if (text.len > 0 && is_digit(text.at[0]) && memchr(text.at, '-', text.len) != NULL)
        return silt_wire_id_parse(text, ret, err);
    bool letter = text.len > 0 && text.at[0] >= 'A' && text.at[0] <= 'Z';
    if (letter || text.len == SILT_BRANDED_ID_LEN) return parse_branded(text, ns, ret, err);
    char shown[SHOWN_BYTES];
    silt_escape(text, shown, sizeof shown);
    silt_fail(err, SILT_ERR_WIRE_ID, "not an id or instant: '%s'", shown);
    silt_hint(err, "- or + or <ms> or <ms>-<seq>, a branded id, an RFC 3339 instant; ( before it "
                   "leaves it out");
    return SILT_ERR_WIRE_ID;
}

enum silt_status silt_bound_parse(struct silt_view text, enum silt_edge edge,
                                  struct silt_namespace ns, struct silt_wire_id *ret,
                                  struct silt_err *err)
{
    struct silt_wire_id id;
    if (silt_view_equal(text, silt_view_str("-")) || silt_view_equal(text, silt_view_str("+"))) {
        *ret = text.at[0] == '-' ? SILT_WIRE_ID_MIN : SILT_WIRE_ID_MAX;
        return SILT_OK;
    }
    bool exclusive = text.len > 0 && text.at[0] == '(';
    struct silt_view place = exclusive ? silt_view(text.at + 1, text.len - 1) : text;
    enum silt_status status = parse_place(place, edge, ns, &id, err);
    if (status != SILT_OK) return status;
    if (exclusive &&
        !(edge == SILT_EDGE_FROM ? silt_wire_id_next(id, &id) : silt_wire_id_prev(id, &id)))
        return silt_fail(err, SILT_ERR_WINDOW, "nothing lies beyond '%.*s'", (int)text.len,
                         (const char *)text.at);
    *ret = id;
    return SILT_OK;
}

enum silt_status silt_range_check(struct silt_range range, struct silt_err *err)
{
    char from[SILT_WIRE_ID_TEXT], to[SILT_WIRE_ID_TEXT];
    if (!silt_wire_id_less(range.to, range.from)) return SILT_OK;
    silt_wire_id_format(range.from, from);
    silt_wire_id_format(range.to, to);
    return silt_fail(err, SILT_ERR_WINDOW, "the window is inverted: it begins at %s and ends at %s",
                     from, to);
}

enum silt_status silt_window_parse(struct silt_view text, struct silt_namespace ns,
                                   struct silt_range *ret, struct silt_err *err)
{
    struct silt_range range;
    const uint8_t *dots = text.len ? memmem(text.at, text.len, "..", 2) : NULL;
    if (dots == NULL) {
        char shown[SHOWN_BYTES];
        silt_escape(text, shown, sizeof shown);
        return silt_fail(err, SILT_ERR_WINDOW, "not a window: '%s' is not T0..T1", shown);
    }
    size_t from_len = (size_t)(dots - text.at);
    struct silt_view from = silt_view(text.at, from_len);
    struct silt_view to = silt_view(dots + 2, text.len - from_len - 2);
    enum silt_status status;
    if ((status = silt_bound_parse(from, SILT_EDGE_FROM, ns, &range.from, err)) != SILT_OK ||
        (status = silt_bound_parse(to, SILT_EDGE_TO, ns, &range.to, err)) != SILT_OK ||
        (status = silt_range_check(range, err)) != SILT_OK)
        return status;
    *ret = range;
    return SILT_OK;
}
