/* Branded ids against every vector there is, and the properties that hold between them. */
#include <string.h>

#include "format/branded_id.h"
#include "harness/harness.h"

static const struct silt_namespace evt = {"EVT"};

struct vector {
    uint8_t branded[64];
    size_t len;
    char namespace[16];
    uint64_t snowflake, unix_ms, tail;
    char xadd_id[SILT_WIRE_ID_TEXT];
    bool valid;
    char verdict[16];
};

static size_t unescape(const char *text, uint8_t *ret)
{
    size_t len = 0;
    for (; *text; len++) {
        unsigned byte;
        if (text[0] == '\\' && sscanf(text, "\\x%2X", &byte) == 1) {
            ret[len] = (uint8_t)byte;
            text += 4;
        } else {
            ret[len] = (uint8_t)*text++;
        }
    }
    return len;
}

/* The vectors one after the other; false at the end. */
static bool next_vector(char **rest, struct vector *ret)
{
    char *line = strsep(rest, "\n"), *columns[8];
    if (line == NULL || *line == '\0') return false;
    for (int i = 0; i < 8; i++) /* strsep does not collapse an empty column */
        columns[i] = strsep(&line, "\t");
    if (columns[7] == NULL) test_die("a row with fewer than eight columns");
    *ret = (struct vector){.valid = strcmp(columns[6], "yes") == 0};
    ret->len = unescape(columns[0], ret->branded);
    snprintf(ret->namespace, sizeof ret->namespace, "%s", columns[1]);
    ret->snowflake = strtoull(columns[2], NULL, 10);
    ret->unix_ms = strtoull(columns[3], NULL, 10);
    ret->tail = strtoull(columns[4], NULL, 10);
    snprintf(ret->xadd_id, sizeof ret->xadd_id, "%s", columns[5]);
    snprintf(ret->verdict, sizeof ret->verdict, "%.*s", (int)strcspn(columns[7], ";"), columns[7]);
    return true;
}

static char *vectors(char **ret_rest)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/data/branded-id-vectors.tsv", test_source_root());
    char *text = test_file_read(path, NULL);
    *ret_rest = text;
    strsep(ret_rest, "\n"); /* the names of the columns */
    return text;
}

static enum silt_status code_of(const char *verdict)
{
    static const struct {
        const char *verdict;
        enum silt_status code;
    } rows[] = {{"ok", SILT_OK},
                {"kind", SILT_ERR_ID_KIND},
                {"length", SILT_ERR_ID_LENGTH},
                {"namespace", SILT_ERR_ID_NAMESPACE},
                {"charset", SILT_ERR_ID_CHARSET},
                {"range", SILT_ERR_ID_RANGE}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].verdict, verdict) == 0) return rows[i].code;
    test_die("unknown verdict: %s", verdict);
}

START_TEST(branded_id__every_vector_at_the_codec)
{
    char *rest, *text = vectors(&rest);
    struct vector row;
    size_t valid = 0, refused = 0;
    while (next_vector(&rest, &row)) {
        struct silt_branded_id id;
        struct silt_err err = {0};
        enum silt_status want = row.valid ? SILT_OK : code_of(row.verdict);
        ck_assert_int_eq(silt_branded_id_parse(silt_view(row.branded, row.len), &id, &err), want);
        ck_assert_int_eq(silt_branded_id_parse(silt_view(row.branded, row.len), &id, NULL), want);
        if (!row.valid) {
            refused++;
            ck_assert_int_eq(err.code, want);
            ck_assert_str_ne(err.sentence, "");
            continue;
        }
        char back[SILT_BRANDED_ID_LEN];
        valid++;
        ck_assert_str_eq(id.ns.letters, row.namespace);
        ck_assert_uint_eq(id.snowflake, row.snowflake);
        ck_assert_uint_eq(silt_snowflake_ms(id.snowflake), row.unix_ms);
        ck_assert_uint_eq(silt_snowflake_to_wire(id.snowflake).seq, row.tail);
        ck_assert_int_eq(silt_branded_id_format(id, back), SILT_OK);
        ck_assert_mem_eq(back, row.branded, SILT_BRANDED_ID_LEN);
    }
    ck_assert_uint_eq(valid, 146);
    ck_assert_uint_eq(refused, 61);
    free(text);
}
END_TEST

START_TEST(branded_id__every_vector_at_the_door_of_a_stream)
{
    char *rest, *text = vectors(&rest);
    struct vector row;
    size_t kinds = 0, admitted = 0;
    while (next_vector(&rest, &row)) {
        struct silt_branded_id id;
        enum silt_status want = code_of(row.verdict);
        struct silt_view view = silt_view(row.branded, row.len);
        ck_assert_int_eq(silt_branded_id_parse_kind(view, evt, &id, NULL), want);
        kinds += want == SILT_ERR_ID_KIND;
        if (want != SILT_OK) {
            ck_assert_str_eq(row.xadd_id, "-");
            continue;
        }
        char wire[SILT_WIRE_ID_TEXT];
        uint64_t snowflake;
        admitted++;
        silt_wire_id_format(silt_snowflake_to_wire(id.snowflake), wire);
        ck_assert_str_eq(wire, row.xadd_id);
        ck_assert(silt_snowflake_from_wire(silt_snowflake_to_wire(id.snowflake), &snowflake));
        ck_assert_uint_eq(snowflake, row.snowflake);
    }
    ck_assert_uint_gt(kinds, 5);
    ck_assert_uint_gt(admitted, 100);
    free(text);
}
END_TEST

START_TEST(branded_id__refusals_name_the_value)
{
    struct silt_branded_id id;
    struct silt_err err;
    ck_assert_int_eq(silt_branded_id_parse(silt_view("EVT\n", 4), &id, &err), SILT_ERR_ID_LENGTH);
    ck_assert_str_eq(err.sentence, "not a branded id: 'EVT\\x0a' has 4 bytes, not 14");
    ck_assert_int_eq(silt_branded_id_parse_kind(silt_view_str("ORD000xY9Wvvcd"), evt, &id, &err),
                     SILT_ERR_ID_KIND);
    ck_assert_str_eq(err.sentence, "the branded id 'ORD000xY9Wvvcd' is of namespace ORD, not EVT");
    struct silt_namespace none = {0};
    ck_assert_int_eq(silt_branded_id_parse_kind(silt_view_str("ORD000xY9Wvvcd"), none, &id, &err),
                     SILT_ERR_ID_KIND);
    ck_assert_ptr_nonnull(strstr(err.sentence, "plain stream"));
}
END_TEST

START_TEST(branded_id__bytes_numbers_and_wire_ids_sort_alike)
{
    struct test_rng rng = test_rng(1);
    for (int i = 0; i < 200000; i++) {
        uint64_t a = test_rng_next(&rng) >> 1, b = test_rng_next(&rng) >> 1;
        if (test_rng_chance(&rng, 50)) b = a ^ (test_rng_next(&rng) & 0xFFFFFF);
        uint8_t text_a[11], text_b[11];
        uint64_t back_a, back_b;
        silt_base62_encode(a, text_a);
        silt_base62_encode(b, text_b);
        ck_assert(silt_base62_decode(text_a, &back_a) && silt_base62_decode(text_b, &back_b));
        ck_assert(back_a == a && back_b == b);
        int want = a < b ? -1 : a > b;
        int bytes = memcmp(text_a, text_b, 11);
        ck_assert_int_eq(bytes < 0 ? -1 : bytes > 0, want);
        ck_assert_int_eq(silt_wire_id_compare(silt_snowflake_to_wire(a), silt_snowflake_to_wire(b)),
                         want);
    }
}
END_TEST

/* Digit by digit, as a person would: the fast form must agree, also about what is refused. */
static bool decode_slowly(const uint8_t digits[11], uint64_t *ret)
{
    static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t value = 0;
    for (int i = 0; i < 11; i++) {
        const char *at = memchr(alphabet, digits[i], 62);
        if (at == NULL || __builtin_mul_overflow(value, 62, &value) ||
            __builtin_add_overflow(value, (uint64_t)(at - alphabet), &value))
            return false;
    }
    if (value > SILT_SNOWFLAKE_MAX) return false;
    *ret = value;
    return true;
}

START_TEST(base62__agrees_with_the_slow_form_for_every_byte_everywhere)
{
    static const char *const bases[] = {"AzL8n0Y58m7", "00000000000", "0KHTOWnGLuC", "AzL8n0zzzzz",
                                        "AzL8mzzzzzz"};
    for (size_t base = 0; base < sizeof bases / sizeof bases[0]; base++) {
        for (int place = 0; place < 11; place++) {
            for (int byte = 0; byte < 256; byte++) {
                uint8_t digits[11];
                uint64_t fast = 1, slow = 1;
                memcpy(digits, bases[base], 11);
                digits[place] = (uint8_t)byte;
                ck_assert_int_eq(silt_base62_decode(digits, &fast), decode_slowly(digits, &slow));
                ck_assert_uint_eq(fast, slow);
            }
        }
    }
}
END_TEST

START_TEST(format__refuses_range_before_namespace)
{
    char text[SILT_BRANDED_ID_LEN];
    struct silt_branded_id both = {{"evt"}, SILT_SNOWFLAKE_MAX + 1};
    struct silt_branded_id letters = {{"E1T"}, 5};
    ck_assert_int_eq(silt_branded_id_format(both, text), SILT_ERR_ID_RANGE);
    ck_assert_int_eq(silt_branded_id_format(letters, text), SILT_ERR_ID_NAMESPACE);
}
END_TEST

START_TEST(namespace__is_three_capital_letters)
{
    static const char *const refused[] = {"", "EV", "EVTX", "evt", "EV1", "E T", "EV["};
    struct silt_namespace ns, none = {0};
    struct silt_err err;
    ck_assert_int_eq(silt_namespace_parse(silt_view_str("EVT"), &ns, NULL), SILT_OK);
    ck_assert(silt_namespace_equal(ns, evt));
    ck_assert(!silt_namespace_is_none(ns) && silt_namespace_is_none(none));
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        ck_assert_int_eq(silt_namespace_parse(silt_view_str(refused[i]), &ns, &err),
                         SILT_ERR_ID_NAMESPACE);
}
END_TEST

START_TEST(snowflake__from_wire_only_inside_its_range)
{
    static const struct {
        struct silt_wire_id id;
        bool exact;
        uint64_t floor;
    } rows[] = {
        {{0, 0}, false, 0},
        {{SILT_EPOCH_MS - 1, UINT64_MAX}, false, 0},
        {{SILT_EPOCH_MS, 0}, true, 0},
        {{SILT_EPOCH_MS, 1}, true, 1},
        {{SILT_EPOCH_MS, SILT_TAIL_MAX}, true, SILT_TAIL_MAX},
        {{SILT_EPOCH_MS, SILT_TAIL_MAX + 1}, false, SILT_TAIL_MAX},
        {{SILT_EPOCH_MS + 1, UINT64_MAX}, false, 2 * SILT_TAIL_MAX + 1},
        {{SILT_LAST_MS, SILT_TAIL_MAX}, true, SILT_SNOWFLAKE_MAX},
        {{SILT_LAST_MS, SILT_TAIL_MAX + 1}, false, SILT_SNOWFLAKE_MAX},
        {{SILT_LAST_MS + 1, 0}, false, SILT_SNOWFLAKE_MAX},
        {{UINT64_MAX, UINT64_MAX}, false, SILT_SNOWFLAKE_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t snowflake = 77;
        ck_assert_int_eq(silt_snowflake_from_wire(rows[i].id, &snowflake), rows[i].exact);
        ck_assert_uint_eq(snowflake, rows[i].exact ? rows[i].floor : 77);
        ck_assert_uint_eq(silt_snowflake_floor(rows[i].id), rows[i].floor);
    }
}
END_TEST

START_TEST(snowflake__parts_and_placement_hash)
{
    ck_assert_uint_eq(silt_snowflake_node(209715201620567), 395);
    ck_assert_uint_eq(silt_snowflake_seq(209715201620567), 2647);
    ck_assert_uint_eq(silt_snowflake_ms(274557032793636864), 1769526697641ULL);
    ck_assert_uint_eq(silt_snowflake_hash32(274557032793636864), 234878118);
}
END_TEST

TEST_MAIN(branded_id__every_vector_at_the_codec, branded_id__every_vector_at_the_door_of_a_stream,
          branded_id__refusals_name_the_value, branded_id__bytes_numbers_and_wire_ids_sort_alike,
          base62__agrees_with_the_slow_form_for_every_byte_everywhere,
          format__refuses_range_before_namespace, namespace__is_three_capital_letters,
          snowflake__from_wire_only_inside_its_range, snowflake__parts_and_placement_hash)
