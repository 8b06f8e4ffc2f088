/* Namespace and snowflake, to and from 14 bytes and to and from the wire id. Must not know of streams or clocks. */
#include "branded_id.h"

#define DIGITS 11
#define POW3 238328u    /* 62^3 */
#define POW5 916132832u /* 62^5 */
#define PAIR 3844u      /* 62^2 */

/* 2^63 - 1 = AzL8n0Y58m7, cut after the sixth digit: comparing the halves needs no number above 64 bits. */
#define HI_MAX (SILT_SNOWFLAKE_MAX / POW5)
#define LO_MAX (SILT_SNOWFLAKE_MAX % POW5)

/* clang-format off */
#define NO 0x80 /* any high bit: not a digit */
static const uint8_t digit_value[128] = {
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
     0,  1,  2,  3,  4,  5,  6,  7,  8,  9, NO, NO, NO, NO, NO, NO,
    NO, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
    25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, NO, NO, NO, NO, NO,
    NO, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
    51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, NO, NO, NO, NO, NO,
};

#define ROW(a)                                                                           \
    {a, '0'}, {a, '1'}, {a, '2'}, {a, '3'}, {a, '4'}, {a, '5'}, {a, '6'}, {a, '7'},      \
    {a, '8'}, {a, '9'}, {a, 'A'}, {a, 'B'}, {a, 'C'}, {a, 'D'}, {a, 'E'}, {a, 'F'},      \
    {a, 'G'}, {a, 'H'}, {a, 'I'}, {a, 'J'}, {a, 'K'}, {a, 'L'}, {a, 'M'}, {a, 'N'},      \
    {a, 'O'}, {a, 'P'}, {a, 'Q'}, {a, 'R'}, {a, 'S'}, {a, 'T'}, {a, 'U'}, {a, 'V'},      \
    {a, 'W'}, {a, 'X'}, {a, 'Y'}, {a, 'Z'}, {a, 'a'}, {a, 'b'}, {a, 'c'}, {a, 'd'},      \
    {a, 'e'}, {a, 'f'}, {a, 'g'}, {a, 'h'}, {a, 'i'}, {a, 'j'}, {a, 'k'}, {a, 'l'},      \
    {a, 'm'}, {a, 'n'}, {a, 'o'}, {a, 'p'}, {a, 'q'}, {a, 'r'}, {a, 's'}, {a, 't'},      \
    {a, 'u'}, {a, 'v'}, {a, 'w'}, {a, 'x'}, {a, 'y'}, {a, 'z'}
/* Two digits at a time: the decoder of segments writes millions of these. */
const uint8_t silt_base62_pairs[PAIR][2] = {
    ROW('0'), ROW('1'), ROW('2'), ROW('3'), ROW('4'), ROW('5'), ROW('6'), ROW('7'),
    ROW('8'), ROW('9'), ROW('A'), ROW('B'), ROW('C'), ROW('D'), ROW('E'), ROW('F'),
    ROW('G'), ROW('H'), ROW('I'), ROW('J'), ROW('K'), ROW('L'), ROW('M'), ROW('N'),
    ROW('O'), ROW('P'), ROW('Q'), ROW('R'), ROW('S'), ROW('T'), ROW('U'), ROW('V'),
    ROW('W'), ROW('X'), ROW('Y'), ROW('Z'), ROW('a'), ROW('b'), ROW('c'), ROW('d'),
    ROW('e'), ROW('f'), ROW('g'), ROW('h'), ROW('i'), ROW('j'), ROW('k'), ROW('l'),
    ROW('m'), ROW('n'), ROW('o'), ROW('p'), ROW('q'), ROW('r'), ROW('s'), ROW('t'),
    ROW('u'), ROW('v'), ROW('w'), ROW('x'), ROW('y'), ROW('z'),
};
/* clang-format on */

/* The halves as numbers; false when a byte is no digit. */
static bool decode_halves(const uint8_t digits[DIGITS], uint64_t *ret_hi, uint64_t *ret_lo)
{
    uint8_t d[DIGITS], any = 0;
    for (int i = 0; i < DIGITS; i++) {
        d[i] = digit_value[digits[i] & 0x7F];
        any |= d[i] | digits[i]; /* NO is also the bit that ASCII does not have */
    }
    if (any & NO) return false;
    *ret_hi =
        (uint64_t)(d[0] * PAIR + d[1] * 62u + d[2]) * POW3 + (d[3] * PAIR + d[4] * 62u + d[5]);
    *ret_lo = (uint64_t)(d[6] * 62u + d[7]) * POW3 + (d[8] * PAIR + d[9] * 62u + d[10]);
    return true;
}

static bool halves_in_range(uint64_t hi, uint64_t lo)
{
    return hi < HI_MAX || (hi == HI_MAX && lo <= LO_MAX);
}

bool silt_base62_decode(const uint8_t digits[DIGITS], uint64_t *ret)
{
    uint64_t hi, lo;
    if (!decode_halves(digits, &hi, &lo) || !halves_in_range(hi, lo)) return false;
    *ret = hi * POW5 + lo;
    return true;
}

void silt_base62_encode(uint64_t snowflake, uint8_t ret[DIGITS])
{
    uint64_t hi = snowflake / POW5;
    uint32_t lo = (uint32_t)(snowflake % POW5);
    uint32_t hi_top = (uint32_t)(hi / PAIR), hi_low = (uint32_t)(hi % PAIR);
    uint32_t lo_top = lo / PAIR;
    memcpy(ret, silt_base62_pairs[hi_top / PAIR], 2);
    memcpy(ret + 2, silt_base62_pairs[hi_top % PAIR], 2);
    memcpy(ret + 4, silt_base62_pairs[hi_low], 2);
    ret[6] = silt_base62_pairs[lo_top / PAIR][1];
    memcpy(ret + 7, silt_base62_pairs[lo_top % PAIR], 2);
    memcpy(ret + 9, silt_base62_pairs[lo % PAIR], 2);
}

static bool is_letter(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z';
}

static bool are_letters(const uint8_t *at)
{
    return is_letter(at[0]) && is_letter(at[1]) && is_letter(at[2]);
}

/* The four gates in their order. */
static enum silt_status gate(struct silt_view text, struct silt_branded_id *ret)
{
    uint64_t hi, lo;
    if (text.len != SILT_BRANDED_ID_LEN) return SILT_ERR_ID_LENGTH;
    if (!are_letters(text.at)) return SILT_ERR_ID_NAMESPACE;
    if (!decode_halves(text.at + 3, &hi, &lo)) return SILT_ERR_ID_CHARSET;
    if (!halves_in_range(hi, lo)) return SILT_ERR_ID_RANGE;
    *ret = (struct silt_branded_id){.snowflake = hi * POW5 + lo};
    memcpy(ret->ns.letters, text.at, 3);
    return SILT_OK;
}

enum silt_status silt_branded_id_parse(struct silt_view text, struct silt_branded_id *ret,
                                       struct silt_err *err)
{
    enum silt_status status = gate(text, ret);
    if (status == SILT_OK || err == NULL) return status;
    char shown[64];
    silt_escape(text, shown, sizeof shown);
    if (status == SILT_ERR_ID_LENGTH)
        return silt_fail(err, status, "not a branded id: '%s' has %zu bytes, not 14", shown,
                         text.len);
    return silt_fail(err, status, "not a branded id: '%s': %s", shown,
                     silt_status_sentence(status));
}

enum silt_status silt_branded_id_parse_kind(struct silt_view text, struct silt_namespace ns,
                                            struct silt_branded_id *ret, struct silt_err *err)
{
    struct silt_branded_id id;
    enum silt_status status = silt_branded_id_parse(text, &id, err);
    if (status != SILT_OK) return status;
    if (!silt_namespace_equal(id.ns, ns))
        return silt_fail(err, SILT_ERR_ID_KIND, "the branded id '%.14s' is of namespace %s, not %s",
                         (const char *)text.at, id.ns.letters,
                         silt_namespace_is_none(ns) ? "none (a plain stream)" : ns.letters);
    *ret = id;
    return SILT_OK;
}

enum silt_status silt_branded_id_format(struct silt_branded_id id, char ret[SILT_BRANDED_ID_LEN])
{
    uint8_t letters[3], digits[DIGITS];
    memcpy(letters, id.ns.letters, 3);
    if (id.snowflake > SILT_SNOWFLAKE_MAX) return SILT_ERR_ID_RANGE;
    if (!are_letters(letters)) return SILT_ERR_ID_NAMESPACE;
    silt_base62_encode(id.snowflake, digits);
    memcpy(ret, letters, 3);
    memcpy(ret + 3, digits, DIGITS);
    return SILT_OK;
}

enum silt_status silt_namespace_parse(struct silt_view text, struct silt_namespace *ret,
                                      struct silt_err *err)
{
    if (text.len == 3 && are_letters(text.at)) {
        *ret = (struct silt_namespace){0};
        memcpy(ret->letters, text.at, 3);
        return SILT_OK;
    }
    char shown[64];
    silt_escape(text, shown, sizeof shown);
    return silt_fail(err, SILT_ERR_ID_NAMESPACE, "not a namespace: '%s' is not three letters A-Z",
                     shown);
}

bool silt_namespace_equal(struct silt_namespace a, struct silt_namespace b)
{
    return memcmp(a.letters, b.letters, 3) == 0;
}

bool silt_namespace_is_none(struct silt_namespace ns)
{
    return ns.letters[0] == '\0';
}

bool silt_snowflake_from_wire(struct silt_wire_id id, uint64_t *ret)
{
    if (id.ms < SILT_EPOCH_MS || id.ms > SILT_LAST_MS || id.seq > SILT_TAIL_MAX) return false;
    *ret = (id.ms - SILT_EPOCH_MS) << 22 | id.seq;
    return true;
}

uint64_t silt_snowflake_floor(struct silt_wire_id id)
{
    if (id.ms < SILT_EPOCH_MS) return 0;
    if (id.ms > SILT_LAST_MS) return SILT_SNOWFLAKE_MAX;
    return (id.ms - SILT_EPOCH_MS) << 22 | (id.seq < SILT_TAIL_MAX ? id.seq : SILT_TAIL_MAX);
}

uint32_t silt_snowflake_hash32(uint64_t snowflake)
{
    uint64_t hash = snowflake ^ snowflake >> 33;
    hash *= 0xFF51AFD7ED558CCDULL;
    hash ^= hash >> 33;
    return (uint32_t)hash;
}
