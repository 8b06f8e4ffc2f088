/* The entry id as a pair of numbers. Must not know of snowflakes or streams. */
#include "wire_id.h"

bool silt_wire_id_next(struct silt_wire_id id, struct silt_wire_id *ret)
{
    if (id.seq < UINT64_MAX) {
        *ret = (struct silt_wire_id){id.ms, id.seq + 1};
        return true;
    }
    if (id.ms == UINT64_MAX) return false;
    *ret = (struct silt_wire_id){id.ms + 1, 0};
    return true;
}

bool silt_wire_id_prev(struct silt_wire_id id, struct silt_wire_id *ret)
{
    if (id.seq > 0) {
        *ret = (struct silt_wire_id){id.ms, id.seq - 1};
        return true;
    }
    if (id.ms == 0) return false;
    *ret = (struct silt_wire_id){id.ms - 1, UINT64_MAX};
    return true;
}

enum silt_status silt_wire_id_parse(struct silt_view text, struct silt_wire_id *ret,
                                    struct silt_err *err)
{
    struct silt_wire_id id;
    const uint8_t *dash = text.len ? memchr(text.at, '-', text.len) : NULL;
    if (dash != NULL) {
        size_t ms_len = (size_t)(dash - text.at);
        if (silt_parse_u64(silt_view(text.at, ms_len), &id.ms) &&
            silt_parse_u64(silt_view(dash + 1, text.len - ms_len - 1), &id.seq)) {
            *ret = id;
            return SILT_OK;
        }
    }
    char shown[64];
    silt_escape(text, shown, sizeof shown);
    return silt_fail(err, SILT_ERR_WIRE_ID,
                     "not a wire id: '%s' is not <ms>-<seq>, two decimal numbers below 2^64",
                     shown);
}

static char *put_decimal(char *to, uint64_t value)
{
    char digits[20];
    size_t len = 0;
    do {
        digits[len++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    while (len > 0)
        *to++ = digits[--len];
    return to;
}

size_t silt_wire_id_format(struct silt_wire_id id, char ret[SILT_WIRE_ID_TEXT])
{
    char *to = put_decimal(ret, id.ms);
    *to++ = '-';
    to = put_decimal(to, id.seq);
    *to = '\0';
    return (size_t)(to - ret);
}

void silt_wire_id_put_key(struct silt_wire_id id, uint8_t ret[SILT_WIRE_ID_KEY])
{
    silt_put_be64(ret, id.ms);
    silt_put_be64(ret + 8, id.seq);
}

struct silt_wire_id silt_wire_id_get_key(const uint8_t key[SILT_WIRE_ID_KEY])
{
    return (struct silt_wire_id){silt_get_be64(key), silt_get_be64(key + 8)};
}
