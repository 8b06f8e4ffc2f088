/* Names of keys: grammar, slots, our own keys, the server's glob. */
#include <string.h>

#include "format/stream_key.h"
#include "harness/harness.h"
#include "harness/heap.h"

#define TEXT(literal) silt_view(literal, sizeof(literal) - 1)

START_TEST(slot__is_the_servers)
{
    static const struct {
        const char *key;
        uint16_t slot;
    } rows[] = {{"123456789", 12739},
                {"{cm}", 9074},
                {"cm", 9074},
                {"emq:{cm}:stream:feed", 9074},
                {"emq:{cm}:pending", 9074},
                {"emq:{cm}:stream:feed:archived", 9074},
                {"{emq}", 9051},
                {"{emq}:version", 9051},
                {"emq:{}:stream:s", 4072},
                {"", 0},
                {"foo{}{bar}", 8363},
                {"foo{{bar}}zap", 4015},
                {"foo{bar}{zap}", 5061},
                {"bar", 5061}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_msg(silt_key_slot(silt_view_str(rows[i].key)) == rows[i].slot, "%s: %u",
                      rows[i].key, silt_key_slot(silt_view_str(rows[i].key)));
}
END_TEST

START_TEST(hash_part__is_between_the_first_braces_if_not_empty)
{
    static const struct {
        const char *key, *part;
    } rows[] = {{"a", "a"},
                {"{a}", "a"},
                {"x{a}y{b}", "a"},
                {"{}", "{}"},
                {"{}{a}", "{}{a}"},
                {"{a", "{a"},
                {"a}b", "a}b"},
                {"}{a}", "a"},
                {"{{a}}", "{a"},
                {"", ""},
                {"emq:{a}b}:stream:s", "a"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct silt_view key = silt_view_str(rows[i].key), part = silt_key_hash_part(key);
        ck_assert(silt_view_equal(part, silt_view_str(rows[i].part)));
        ck_assert_int_eq(silt_key_has_tag(key), strcmp(rows[i].key, rows[i].part) != 0);
    }
}
END_TEST

START_TEST(stream_key__parses_and_builds)
{
    struct silt_stream_key parts;
    struct silt_buf built = {0};
    char key[300];
    ck_assert_int_eq(silt_stream_key_parse(TEXT("emq:{cm}:stream:feed"), &parts, NULL), SILT_OK);
    ck_assert(silt_view_equal(parts.queue, TEXT("cm")) &&
              silt_view_equal(parts.name, TEXT("feed")));
    ck_assert_int_eq(silt_stream_key_build(parts.queue, parts.name, &built, NULL), SILT_OK);
    ck_assert(silt_view_equal(silt_buf_view(&built), TEXT("emq:{cm}:stream:feed")));
    ck_assert_uint_eq(built.len, 20);
    silt_buf_release(&built);
    snprintf(key, sizeof key, "emq:{%0128d}:stream:%0128d", 1, 2);
    ck_assert_int_eq(silt_stream_key_parse(silt_view_str(key), &parts, NULL), SILT_OK);
    ck_assert_int_eq(silt_stream_key_parse(TEXT("emq:{A.z_0-}:stream:-._"), &parts, NULL), SILT_OK);
}
END_TEST

START_TEST(stream_key__refusals_name_the_part)
{
    char long_queue[300], long_name[300];
    snprintf(long_queue, sizeof long_queue, "emq:{%0129d}:stream:s", 1);
    snprintf(long_name, sizeof long_name, "emq:{q}:stream:%0129d", 1);
    const struct {
        struct silt_view key;
        const char *named;
    } rows[] = {{TEXT(""), "emq:{<queue>}:stream:<name>"},
                {TEXT("orders"), "'orders'"},
                {TEXT("emq:{q}:pending"), "emq:{q}:pending"},
                {TEXT("emq:{}:stream:s"), "queue ''"},
                {TEXT("emq:{q}:stream:"), "name ''"},
                {TEXT("emq:{q}:stream:s:archived"), "name 's:archived'"},
                {TEXT("emq:{a}b}:stream:s"), "queue 'a}b'"},
                {TEXT("emq:{a b}:stream:s"), "queue 'a b'"},
                {TEXT("emq:{q}:stream:a\nb"), "name 'a\\x0ab'"},
                {TEXT("emq:{q}:stream:a\0b"), "name 'a\\x00b'"},
                {TEXT("emq:{q}:stream:caf\xc3\xa9"), "name 'caf\\xc3\\xa9'"},
                {TEXT("xemq:{q}:stream:s"), "xemq"},
                {silt_view_str(long_queue), "queue"},
                {silt_view_str(long_name), "name"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct silt_stream_key parts;
        struct silt_err err = {0};
        ck_assert_int_eq(silt_stream_key_parse(rows[i].key, &parts, &err), SILT_ERR_KEY);
        ck_assert_msg(strstr(err.sentence, rows[i].named) != NULL, "%s", err.sentence);
    }
}
END_TEST

START_TEST(stream_key__build_refuses_what_parse_would)
{
    struct silt_buf built = {0};
    struct silt_err err;
    ck_assert_int_eq(silt_stream_key_build(TEXT("a}b"), TEXT("s"), &built, &err), SILT_ERR_KEY);
    ck_assert_int_eq(silt_stream_key_build(TEXT("q"), TEXT("s:archived"), &built, &err),
                     SILT_ERR_KEY);
    ck_assert_uint_eq(built.len, 0);
}
END_TEST

START_TEST(seam_and_claim__share_the_slot_and_are_ours)
{
    static const struct {
        const char *key, *seam, *claim;
    } rows[] = {
        {"emq:{cm}:stream:feed", "emq:{cm}:stream:feed:archived", "{cm}:silt-claim"},
        {"orders", "{orders}:archived", "{orders}:silt-claim"},
        {"a{b", "{a{b}:archived", "{a{b}:silt-claim"},
        {"{a}", "{a}:archived", "{a}:silt-claim"},
        {"{a}b}", "{a}b}:archived", "{a}:silt-claim"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct silt_view key = silt_view_str(rows[i].key);
        struct silt_buf seam = {0}, claim = {0};
        ck_assert_int_eq(silt_key_seam(key, &seam, NULL), SILT_OK);
        ck_assert_int_eq(silt_key_claim(key, &claim, NULL), SILT_OK);
        ck_assert(silt_view_equal(silt_buf_view(&seam), silt_view_str(rows[i].seam)));
        ck_assert(silt_view_equal(silt_buf_view(&claim), silt_view_str(rows[i].claim)));
        ck_assert_uint_eq(silt_key_slot(silt_buf_view(&seam)), silt_key_slot(key));
        ck_assert_uint_eq(silt_key_slot(silt_buf_view(&claim)), silt_key_slot(key));
        ck_assert(silt_key_is_ours(silt_buf_view(&seam)) &&
                  silt_key_is_ours(silt_buf_view(&claim)));
        ck_assert(!silt_key_is_ours(key));
        silt_buf_release(&seam);
        silt_buf_release(&claim);
    }
}
END_TEST

START_TEST(seam_and_claim__refused_where_no_name_shares_the_slot)
{
    static const char *const refused[] = {"", "a}b", "{}", "{}x", "a}b{c"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct silt_buf name = {0};
        struct silt_err err;
        ck_assert_int_eq(silt_key_seam(silt_view_str(refused[i]), &name, &err), SILT_ERR_KEY);
        ck_assert_str_eq(err.stream, refused[i]);
        ck_assert_int_eq(silt_key_claim(silt_view_str(refused[i]), &name, &err), SILT_ERR_KEY);
        ck_assert_uint_eq(name.len, 0);
    }
}
END_TEST

START_TEST(seam_and_claim__need_memory)
{
    struct test_heap heap;
    struct silt_buf name = {0};
    struct silt_err err;
    test_heap_start(&heap, 1);
    ck_assert_int_eq(silt_key_seam(TEXT("k"), &name, &err), SILT_ERR_MEMORY);
    test_heap_stop();
    ck_assert_int_eq(err.code, SILT_ERR_MEMORY);
}
END_TEST

START_TEST(ours__leaves_other_names_alone)
{
    static const char *const others[] = {
        "orders:archived", "archived",        ":archived",   "a}:archived",   "orders:silt-claim",
        "x{a}:silt-claim", "{a}b:silt-claim", "{}:archived", "{}:silt-claim", "{a}:archived2"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(!silt_key_is_ours(silt_view_str(others[i])), "%s", others[i]);
}
END_TEST

START_TEST(glob__matches_as_the_server_does)
{
    static const struct {
        const char *pattern, *key;
        bool match;
    } rows[] = {
        {"*", "anything", true},
        {"*", "", true},
        {"", "", true},
        {"", "a", false},
        {"abc", "abc", true},
        {"abc", "abcd", false},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"a*c", "ac", true},
        {"a*c", "abbc", true},
        {"a*c", "abcb", false},
        {"a*b*c", "a1b2b3c", true},
        {"*a*a*a", "aaa", true},
        {"*a*a*a*a", "aaa", false},
        {"**", "x", true},
        {"a**", "a", true},
        {"[abc]", "b", true},
        {"[abc]", "d", false},
        {"[a-c]x", "bx", true},
        {"[c-a]x", "bx", true},
        {"[^a]", "b", true},
        {"[^a]", "a", false},
        {"[^a-c]", "d", true},
        {"[a-]", "]", true},
        {"[]", "]", false},
        {"[a", "a", true},
        {"[^", "x", true},
        {"[", "[", false},
        {"[\\]]", "]", true},
        {"[\\a-c]", "-", true},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"a\\", "a\\", true},
        {"\\a", "a", true},
        {"emq:{*}:stream:*", "emq:{q}:stream:s", true},
        {"{a,b}", "a", false},
        {"{a,b}", "{a,b}", true},
        {"h[^e]llo", "hallo", true},
        {"h[^e]llo", "hello", false},
        {"?", "", false},
        {"[a]*", "", false},
        {"*[0-9]", "ab7", true},
        {"*[0-9]", "a7b", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_msg(silt_glob_match(silt_view_str(rows[i].pattern), silt_view_str(rows[i].key)) ==
                          rows[i].match,
                      "'%s' and '%s'", rows[i].pattern, rows[i].key);
    ck_assert(silt_glob_match(TEXT("a?b"), TEXT("a\0b")));
    ck_assert(silt_glob_match(TEXT("[\x80-\xff]"), TEXT("\xc3")));
}
END_TEST

START_TEST(glob__no_pattern_takes_for_ever)
{
    char pattern[128], key[4096];
    for (size_t i = 0; i + 2 < sizeof pattern; i += 2)
        memcpy(pattern + i, "*a", 2);
    memcpy(pattern + 126, "b", 2);
    memset(key, 'a', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    ck_assert(!silt_glob_match(silt_view_str(pattern), silt_view_str(key)));
}
END_TEST

TEST_MAIN(slot__is_the_servers, hash_part__is_between_the_first_braces_if_not_empty,
          stream_key__parses_and_builds, stream_key__refusals_name_the_part,
          stream_key__build_refuses_what_parse_would, seam_and_claim__share_the_slot_and_are_ours,
          seam_and_claim__refused_where_no_name_shares_the_slot, seam_and_claim__need_memory,
          ours__leaves_other_names_alone, glob__matches_as_the_server_does,
          glob__no_pattern_takes_for_ever)
