/* A place as text: fields between full stops, closed by a checksum over all of them, so that no byte can change unnoticed.
 * s1.<f|b, of a walk over late entries alone l|m>.<key>.<archive>.<life>.<changed to>.<id|+>.<gaps>.<late>.<marker>.<base id|->.<accounted>.<object>.<check> */
#include <inttypes.h>
#include <stdio.h>

#include "cursor_priv.h"

#define CHECK_SEED 0x73696c74706f7331ULL /* "siltpos1" */
#define CHECK_LEN 16

static const char kinds[2][2] = {{'f', 'b'}, {'l', 'm'}};

size_t silt_position_format(const struct silt_position *position, char ret[SILT_POSITION_TEXT])
{
    char id[SILT_WIRE_ID_TEXT] = "+", base[SILT_WIRE_ID_TEXT] = "-";
    if (!position->above_all) silt_wire_id_format(position->id, id);
    if (position->has_base) silt_wire_id_format(position->base, base);
    int len = snprintf(ret, SILT_POSITION_TEXT,
                       "s1.%c.%016" PRIx64 ".%016" PRIx64 ".%" PRIu64 ".%" PRIu64 ".%s.%" PRIu64
                       ".%" PRIu64 ".%d.%s.%" PRIu64 ".%08" PRIx32 ".",
                       kinds[position->late_walk][position->reverse], position->key_hash,
                       position->archive_hash, position->life, position->changed_to, id,
                       position->gaps_given, position->late, position->saw_marker, base,
                       position->has_base ? position->accounted : 0,
                       position->has_base ? position->fingerprint : 0);
    uint64_t check = silt_checksum(silt_view(ret, (size_t)len), CHECK_SEED);
    len += snprintf(ret + len, SILT_POSITION_TEXT - (size_t)len, "%016" PRIx64, check);
    return (size_t)len;
}

/* The next field, without its full stop. */
static bool take(struct silt_view *text, struct silt_view *ret)
{
    const uint8_t *dot = text->len == 0 ? NULL : memchr(text->at, '.', text->len);
    if (dot == NULL) return false;
    *ret = silt_view(text->at, (size_t)(dot - text->at));
    *text = silt_view(dot + 1, text->len - ret->len - 1);
    return true;
}

static bool take_number(struct silt_view *text, uint64_t *ret)
{
    struct silt_view field;
    return take(text, &field) && silt_parse_u64(field, ret);
}

static bool take_hex(struct silt_view *text, size_t digits, uint64_t *ret)
{
    struct silt_view field;
    if (!take(text, &field) || field.len != digits) return false;
    uint64_t value = 0;
    for (size_t i = 0; i < digits; i++) {
        uint8_t c = field.at[i];
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *ret = value;
    return true;
}

/* A wire id, or the one character that stands for none. */
static bool take_id(struct silt_view *text, char none, bool *ret_none, struct silt_wire_id *ret)
{
    struct silt_view field;
    if (!take(text, &field)) return false;
    *ret_none = field.len == 1 && field.at[0] == (uint8_t)none;
    return *ret_none || silt_wire_id_parse(field, ret, NULL) == SILT_OK;
}

static bool take_fields(struct silt_view text, struct silt_position *position)
{
    struct silt_view field;
    bool none;
    uint64_t marker, object;
    if (!take(&text, &field) || !silt_view_equal(field, silt_view_str("s1"))) return false;
    if (!take(&text, &field) || field.len != 1) return false;
    position->reverse = field.at[0] == 'b' || field.at[0] == 'm';
    position->late_walk = field.at[0] == 'l' || field.at[0] == 'm';
    if (field.at[0] != (uint8_t)kinds[position->late_walk][position->reverse]) return false;
    if (!take_hex(&text, 16, &position->key_hash) ||
        !take_hex(&text, 16, &position->archive_hash) || !take_number(&text, &position->life) ||
        !take_number(&text, &position->changed_to) ||
        !take_id(&text, '+', &position->above_all, &position->id) ||
        !take_number(&text, &position->gaps_given) || !take_number(&text, &position->late) ||
        !take_number(&text, &marker) || marker > 1 ||
        !take_id(&text, '-', &none, &position->base) || !take_number(&text, &position->accounted) ||
        !take_hex(&text, 8, &object))
        return false;
    position->saw_marker = marker == 1;
    position->has_base = !none;
    position->fingerprint = (uint32_t)object;
    return text.len == CHECK_LEN;
}

enum silt_status silt_position_parse(struct silt_view text, struct silt_position *ret,
                                     struct silt_err *err)
{
    struct silt_position position = {0};
    char again[SILT_POSITION_TEXT];
    /* Written again it must be the same text: one place has one form, and the checksum covers every byte. */
    if (text.len < SILT_POSITION_TEXT && take_fields(text, &position)) {
        size_t len = silt_position_format(&position, again);
        if (silt_view_equal(text, silt_view(again, len))) {
            *ret = position;
            return SILT_OK;
        }
    }
    char shown[80];
    silt_escape(text, shown, sizeof shown);
    silt_fail(err, SILT_ERR_POSITION, "not a cursor position: \"%s\"", shown);
    if (text.len > 1 && text.at[0] == 's' && text.at[1] >= '2' && text.at[1] <= '9')
        silt_hint(err, "it was written by a newer version");
    else
        silt_hint(err,
                  "a position is given whole, as silt_cursor_position or `silt read` wrote it");
    return SILT_ERR_POSITION;
}
