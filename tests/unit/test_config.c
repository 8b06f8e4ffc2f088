/* mergeread/config*.c: what a settings file may say, and where exactly it is refused. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "config_table.h"
#include "harness/harness.h"

static struct silt_config *parsed(const char *text)
{
    struct silt_config *config = NULL;
    struct silt_err err = {0};
    enum silt_status status = silt_config_parse("f", silt_view_str(text), &config, &err);
    if (status != SILT_OK) test_die("not accepted: %s", err.sentence);
    return config;
}

/* The sentence with which a text is refused; "" when it is accepted. Valid until the next call. */
static const char *refused(const char *text)
{
    static struct silt_err err;
    struct silt_config *config = NULL;
    memset(&err, 0, sizeof err);
    enum silt_status status = silt_config_parse("f", silt_view_str(text), &config, &err);
    if (status == SILT_OK) {
        silt_config_free(config);
        return "";
    }
    if (status != SILT_ERR_CONFIG || err.code != SILT_ERR_CONFIG)
        test_die("wrong code: %s", silt_status_name(status));
    return err.sentence;
}

/* The sentence begins with the place and contains the words. */
static void check_refused(const char *text, const char *place, const char *words)
{
    const char *sentence = refused(text);
    ck_assert_msg(strncmp(sentence, place, strlen(place)) == 0, "%s instead of %s for:\n%s",
                  sentence, place, text);
    ck_assert_msg(strstr(sentence, words) != NULL, "no '%s' in: %s", words, sentence);
}

#define STREAM "streams:\n  - match: a\n"

START_TEST(config__an_empty_file_gives_the_defaults)
{
    static const char *const texts[] = {"", "\n\n# nothing\n", "---\n", "null\n", "--- {}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct silt_config *config = parsed(texts[i]);
        ck_assert_uint_eq(config->connect_timeout_ms, 5000);
        ck_assert_uint_eq(config->command_timeout_ms, 10000);
        ck_assert_uint_eq(config->map_limit_bytes, 1ULL << 40);
        ck_assert_uint_eq(config->page_entries, 1000);
        ck_assert_uint_eq(config->page_bytes, 4u << 20);
        ck_assert_uint_eq(config->idle_look_ms, 30000);
        ck_assert_int_eq(config->level, 3);
        ck_assert_int_eq(config->log_level, 2);
        ck_assert(!config->log_json);
        ck_assert_ptr_null(config->address);
        ck_assert_ptr_null(config->control);
        ck_assert_uint_eq(config->stream_count, 0);
        silt_config_free(config);
    }
}
END_TEST

START_TEST(config__every_setting_reaches_its_place)
{
    struct silt_config *config = parsed(
        "valkey: { address: 'tcp:127.0.0.1:6379', database: 3, user: u, password-file: /p, tls-ca-file: /c, tls-cert-file: /e, tls-key-file: /k,\n"
        "          connect-timeout: 250ms, command-timeout: 1m }\n"
        "archive: { path: /a, map-limit: 2GiB, level: 9, keep: { age: 365d, entries: 5, bytes: 1MB } }\n"
        "page: { entries: 7, bytes: 64KiB }\ncontrol: /c.sock\nidle-look: 2s\n"
        "log: { format: json, level: debug }\n"
        "serve: { resp: [ 'unix:/x', 'tcp:1:2' ], http: [] }\n");
    ck_assert_str_eq(config->address, "tcp:127.0.0.1:6379");
    ck_assert_uint_eq(config->database, 3);
    ck_assert_str_eq(config->user, "u");
    ck_assert_str_eq(config->password_file, "/p");
    ck_assert_str_eq(config->tls_ca_file, "/c");
    ck_assert_str_eq(config->tls_cert_file, "/e");
    ck_assert_str_eq(config->tls_key_file, "/k");
    ck_assert_uint_eq(config->connect_timeout_ms, 250);
    ck_assert_uint_eq(config->command_timeout_ms, 60000);
    ck_assert_str_eq(config->archive_path, "/a");
    ck_assert_uint_eq(config->map_limit_bytes, 2ULL << 30);
    ck_assert_int_eq(config->level, 9);
    ck_assert(config->archive_keep.has_age && config->archive_keep.has_entries &&
              config->archive_keep.has_bytes);
    ck_assert_uint_eq(config->archive_keep.bytes, 1000000);
    ck_assert_uint_eq(config->archive_keep.entries, 5);
    ck_assert_uint_eq(config->page_entries, 7);
    ck_assert_uint_eq(config->page_bytes, 65536);
    ck_assert_str_eq(config->control, "/c.sock");
    ck_assert_uint_eq(config->idle_look_ms, 2000);
    ck_assert(config->log_json);
    ck_assert_int_eq(config->log_level, 3);
    silt_config_free(config);
}
END_TEST

START_TEST(config__every_setting_of_a_stream_reaches_its_place)
{
    struct silt_config *config = parsed(
        "streams:\n- match: 'emq:{*}:stream:*'\n  ids: branded EVT\n  keep: { age: 7d, entries: 1000, bytes: 512MiB }\n"
        "  fold: on-trim\n  fold-delay: 250ms\n  groups: hold\n  group-limit: { age: 1d12h, entries: 9 }\n"
        "  on-foreign: hold\n  on-delete: keep\n  seam: strict\n  claim: group\n"
        "- match: plain\n");
    ck_assert_uint_eq(config->stream_count, 2);
    const struct silt_stream_config *s = &config->streams[0];
    ck_assert(s->is_pattern);
    ck_assert_str_eq(s->ns.letters, "EVT");
    ck_assert(s->keep.has_age && s->keep.has_entries && s->keep.has_bytes);
    ck_assert_uint_eq(s->keep.age_ms, 7ULL * 86400000);
    ck_assert_uint_eq(s->keep.bytes, 512ULL << 20);
    ck_assert_int_eq(s->fold, SILT_FOLD_ON_TRIM);
    ck_assert_uint_eq(s->fold_delay_ms, 250);
    ck_assert_uint_eq(s->group_limit.age_ms, 36ULL * 3600000);
    ck_assert(s->group_limit.has_entries && !s->group_limit.has_bytes);
    ck_assert_int_eq(s->on_foreign, SILT_FOREIGN_HOLD);
    ck_assert_int_eq(s->seam, SILT_SEAM_STRICT);
    ck_assert_int_eq(s->line, 2);
    s = &config->streams[1];
    ck_assert(!s->is_pattern && silt_namespace_is_none(s->ns) && !s->keep.has_age);
    ck_assert_uint_eq(s->fold_delay_ms, 1000);
    ck_assert_int_eq(s->groups, SILT_GROUPS_HOLD);
    ck_assert_int_eq(s->line, 13);
    silt_config_free(config);
}
END_TEST

START_TEST(config__unknown_settings_are_refused_where_they_stand)
{
    check_refused("bogus: 1\n", "f:1:1: ", "no setting bogus");
    check_refused("# a comment\n\n\n  \n# more\nvalkey:\n\n  # here\n\n  adress: unix:/x\n",
                  "f:10:3: ", "valkey has no setting adress");
    check_refused("\n" STREAM "\n    # x\n    keep:\n\n      # y\n      days: 7\n",
                  "f:9:7: ", "streams.keep has no setting days");
    check_refused(STREAM "    group-limit: { age: 1d, bytes: 5 }\n", "f:3:29: ", "bytes");
    check_refused("archive: { path: /a, \"pa th\": 1 }\n", "f:1:22: ", "pa th");
    check_refused("log: { \xc3\xa9t\xc3\xa9: 1, level: loud }\n", "f:1:8: ", "\\xc3\\xa9t");
    check_refused("log: { format: json, # \xc3\xa9t\xc3\xa9\n  level: loud }\n",
                  "f:2:10: ", "loud");
    check_refused("<<: { a: 1 }\n", "f:1:1: ", "no setting <<");
}
END_TEST

START_TEST(config__wrong_types_are_refused_where_they_stand)
{
    check_refused("valkey: 5\n", "f:1:9: ", "takes settings of its own");
    check_refused("valkey:\n\n# c\narchive: {}\n", "f:1:1: ", "valkey has no value");
    check_refused("archive:\n  path:\n", "f:2:3: ", "archive.path has no value");
    check_refused("archive:\n  path: ~\n", "f:2:3: ", "archive.path has no value");
    check_refused("archive:\n  path: \"\"\n", "f:2:9: ", "the text is empty");
    check_refused("archive:\n  path: [ a ]\n", "f:2:9: ", "one value, not a list");
    check_refused("archive:\n  path: { a: b }\n", "f:2:9: ", "not a block");
    check_refused("streams: { match: a }\n", "f:1:10: ", "streams is a list");
    check_refused("streams:\n- a\n", "f:2:3: ", "block of settings");
    check_refused("serve: { resp: unix:/x }\n", "f:1:16: ", "serve.resp is a list");
    check_refused("serve: { http: [ [ a ] ] }\n", "f:1:18: ", "list of addresses");
    check_refused("- a\n", "f:1:1: ", "name: value");
    check_refused("word\n", "f:1:1: ", "name: value");
    check_refused("? [ a ]\n: b\n", "f:1:3: ", "name of a setting is a word");
    check_refused("page: { entries: many }\n", "f:1:18: ", "many is not a whole number");
    check_refused("page: { entries: 1e3 }\n", "f:1:18: ", "not a whole number");
    check_refused("page: { entries: 0x10 }\n", "f:1:18: ", "not a whole number");
    check_refused("page: { bytes: 4 parsecs }\n", "f:1:16: ", "a size such as");
    check_refused("page: { bytes: 1.5MiB }\n", "f:1:16: ", "a size such as");
    check_refused("idle-look: soon\n", "f:1:12: ", "a duration such as");
    check_refused("idle-look: 30\n", "f:1:12: ", "a duration such as");
    check_refused("log: { format: xml }\n", "f:1:16: ", "not one of logfmt or json");
    check_refused(STREAM "    ids: branded\n", "f:3:10: ", "neither wire nor branded NS");
    check_refused(STREAM "    ids: branded evt\n", "f:3:10: ", "three letters A-Z");
    check_refused(STREAM "    ids: branded EVTX\n", "f:3:10: ", "three letters A-Z");
    check_refused("archive: { path: \"a\\0b\" }\n", "f:1:18: ", "zero byte");
}
END_TEST

START_TEST(config__numbers_out_of_range_and_below_zero_are_refused)
{
    check_refused("valkey: { database: -1 }\n", "f:1:21: ", "-1 is negative");
    check_refused("idle-look: -5s\n", "f:1:12: ", "-5s is negative");
    check_refused("archive: { level: 0 }\n", "f:1:19: ", "0 is out of range, 1 to 19");
    check_refused("archive: { level: 20 }\n", "f:1:19: ", "out of range");
    check_refused("archive: { map-limit: 1 }\n", "f:1:23: ", "1MiB to 64TiB");
    check_refused("archive: { map-limit: 99999999TiB }\n", "f:1:23: ", "99999999TiB");
    check_refused("page: { entries: 18446744073709551616 }\n", "f:1:18: ", "not a whole number");
    check_refused("valkey: { command-timeout: 2h }\n", "f:1:28: ", "1ms to 1h");
    check_refused(STREAM "    keep: { entries: 0 }\n",
                  "f:3:22: ", "0 is out of range, 1 is the least");
    check_refused(STREAM "    keep: { age: 0s }\n", "f:3:18: ", "out of range");
    check_refused(STREAM "    keep: { bytes: -3 }\n", "f:3:20: ", "negative");
    check_refused(STREAM "    keep: { age: 900000d }\n", "f:3:18: ", "out of range");
}
END_TEST

START_TEST(config__what_stands_twice_is_refused)
{
    check_refused("control: /a\n# x\ncontrol: /b\n", "f:3:1: ", "control stands in line 1 already");
    check_refused("archive:\n  path: /a\n\n  path: /b\n",
                  "f:4:3: ", "path stands in line 2 already");
    check_refused(STREAM "\n  # again\n  - match: a\n",
                  "f:5:12: ", "the same key stands in line 2 already");
    check_refused("streams: [ { match: 'a*' }, { match: \"a*\" } ]\n",
                  "f:1:38: ", "the same pattern");
}
END_TEST

START_TEST(config__contradictions_are_refused)
{
    check_refused(STREAM "    groups: ignore\n    group-limit: { age: 1d }\n",
                  "f:4:18: ", "contradicts groups: ignore");
    check_refused(STREAM "    seam: strict\n    claim: off\n",
                  "f:3:11: ", "contradicts claim: off");
    check_refused(STREAM "    seam: strict\n    claim: key\n",
                  "f:3:11: ", "goes with claim: group");
    check_refused(STREAM "    on-delete: mark\n",
                  "f:3:16: ", "on-delete: mark is not available yet");
    check_refused(STREAM "    fold: on-trim\n", "f:3:11: ", "without keep");
    check_refused(STREAM "    keep: {}\n", "f:3:11: ", "names no limit");
    check_refused("streams:\n  - ids: wire\n", "f:2:5: ", "needs `match`");
    check_refused("streams:\n  - match: \"{a}:archived\"\n", "f:2:12: ", "silt's own");
    check_refused("valkey: { address: somewhere }\n", "f:1:20: ", "not an address");
    check_refused("valkey: { address: 'tcp:host:70000' }\n", "f:1:20: ", "not an address");
}
END_TEST

START_TEST(config__what_is_not_plain_yaml_is_refused_in_words)
{
    check_refused("a: &x 1\n", "f:1:4: ", "anchors");
    check_refused("archive: &x { path: /a }\n", "f:1:10: ", "anchors");
    check_refused("a: *x\n", "f:1:4: ", "aliases");
    check_refused("a: !!str 1\n", "f:1:4: ", "tags");
    check_refused("control: /a\n---\ncontrol: /b\n", "f:2:1: ", "second document");
    check_refused("archive:\n\tpath: /a\n", "f:2:1: ", "a tab");
    check_refused("archive:\n  \tpath: /a\n", "f:2:3: ", "a tab");
    check_refused("valkey:\n  user: u\n  address unix\n\n\n# c\narchive:\n  path: /a\n",
                  "f:3:3: ", "colon is missing");
    check_refused("control: \"/a\n\n\n", "f:1:10: ", "quoted text");
    check_refused("archive: { path: /a\nlog: {}\n", "f:2:4: ", "closing bracket");
    check_refused("control: a: b\n", "f:1:11: ", "colon is not expected");
    check_refused("archive:\n  path: /a\n level: 3\n", "f:3:2: ", "indented");
    check_refused("control: @a\n", "f:1:10: ", "quotes");
    check_refused("# \xc3\xa9\ncontrol: /\xc3\xa9\xff\n", "f:2:12: ", "byte 0xff is not UTF-8");
    check_refused("[[[[[[[[[[[[[[[[[[[[\n", "f:1:17: ", "nested too deeply");
}
END_TEST

START_TEST(config__an_exact_key_beats_a_pattern_and_two_patterns_are_ambiguous)
{
    const struct silt_stream_config *one = NULL, *other = NULL;
    struct silt_config *config =
        parsed("streams:\n- match: 'a*'\n- match: '*b'\n- match: ab\n- match: 'q:{*}:s'\n");
    ck_assert_int_eq(silt_config_match(config, silt_view_str("ab"), &one, &other), SILT_MATCH_ONE);
    ck_assert_ptr_eq(one, &config->streams[2]);
    ck_assert_int_eq(silt_config_match(config, silt_view_str("ac"), &one, &other), SILT_MATCH_ONE);
    ck_assert_ptr_eq(one, &config->streams[0]);
    ck_assert_int_eq(silt_config_match(config, silt_view_str("aab"), &one, &other),
                     SILT_MATCH_AMBIGUOUS);
    ck_assert_ptr_eq(one, &config->streams[0]);
    ck_assert_ptr_eq(other, &config->streams[1]);
    ck_assert_int_eq(silt_config_match(config, silt_view_str("c"), &one, &other), SILT_MATCH_NONE);
    ck_assert_int_eq(silt_config_match(config, silt_view_str("q:{x}:s"), &one, &other),
                     SILT_MATCH_ONE);
    ck_assert_int_eq(silt_config_match(config, silt_view_str("q:x:s"), &one, &other),
                     SILT_MATCH_NONE);
    /* seam and claim keys are silt's own */
    ck_assert_int_eq(silt_config_match(config, silt_view_str("a{x}:archived"), &one, &other),
                     SILT_MATCH_NONE);
    silt_config_free(config);
}
END_TEST

START_TEST(config__flags_win_over_the_file)
{
    struct silt_err err = {0};
    struct silt_config *config = parsed("valkey: { address: unix:/a }\narchive: { path: /b }\n");
    ck_assert_int_eq(silt_config_override(config, NULL, NULL, &err), SILT_OK);
    ck_assert_str_eq(config->archive_path, "/b");
    ck_assert_int_eq(silt_config_override(config, "/c", "tcp:h:1", &err), SILT_OK);
    ck_assert_str_eq(config->archive_path, "/c");
    ck_assert_str_eq(config->address, "tcp:h:1");
    ck_assert_int_eq(silt_config_override(config, NULL, "nowhere", &err), SILT_ERR_ADDRESS);
    ck_assert_str_eq(config->address, "tcp:h:1");
    silt_config_free(config);
}
END_TEST

START_TEST(config__an_archiver_needs_server_archive_and_streams)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "no server"},
        {"valkey: { address: unix:/a }\n", "no archive"},
        {"valkey: { address: unix:/a }\narchive: { path: /b }\nstreams: []\n", "no stream"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct silt_err err = {0};
        struct silt_config *config = parsed(rows[i].text);
        ck_assert_int_eq(silt_config_check_archiver(config, &err), SILT_ERR_CONFIG);
        ck_assert_ptr_nonnull(strstr(err.sentence, rows[i].words));
        ck_assert_str_ne(err.hint, "");
        silt_config_free(config);
    }
}
END_TEST

START_TEST(config__a_file_is_named_by_flag_then_environment)
{
    struct silt_config *config = NULL;
    struct silt_err err = {0};
    test_file_write(test_path("a.yaml"), "control: /a\n", 12);
    test_file_write(test_path("b.yaml"), "control: /b\n", 12);
    setenv("SILT_CONFIG", test_path("b.yaml"), 1);
    ck_assert_int_eq(silt_config_load(test_path("a.yaml"), &config, &err), SILT_OK);
    ck_assert_str_eq(config->control, "/a");
    silt_config_free(config);
    ck_assert_int_eq(silt_config_load(NULL, &config, &err), SILT_OK);
    ck_assert_str_eq(config->control, "/b");
    ck_assert_str_eq(config->path, test_path("b.yaml"));
    silt_config_free(config);
    ck_assert_int_eq(silt_config_load(test_path("none.yaml"), &config, &err), SILT_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.sentence, "none.yaml: cannot be read: No such file"));
}
END_TEST

/* SILT_WRITE_PAGES=1 writes the pages anew. */
static void check_page(const char *name, struct silt_buf *made)
{
    char path[4096];
    size_t len;
    snprintf(path, sizeof path, "%s/docs/%s", test_source_root(), name);
    if (getenv("SILT_WRITE_PAGES")) test_file_write(path, made->at, made->len);
    char *committed = test_file_read(path, &len);
    ck_assert_msg(
        len == made->len && memcmp(committed, made->at, len) == 0,
        "docs/%s is not what the table of settings gives; SILT_WRITE_PAGES=1 test_config writes it",
        name);
    free(committed);
    silt_buf_release(made);
}

START_TEST(config__the_committed_sample_and_page_are_those_of_the_table)
{
    struct silt_buf made = {0};
    ck_assert_int_eq(silt_config_sample(&made), SILT_OK);
    check_page("silt.yaml", &made);
    ck_assert_int_eq(silt_config_man(&made), SILT_OK);
    check_page("man/silt.yaml.5", &made);
}
END_TEST

START_TEST(config__the_sample_is_accepted_and_says_the_defaults)
{
    struct silt_buf text = {0};
    struct silt_config *sample = NULL, *plain = parsed("");
    struct silt_err err = {0};
    ck_assert_int_eq(silt_config_sample(&text), SILT_OK);
    enum silt_status status = silt_config_parse("sample", silt_buf_view(&text), &sample, &err);
    ck_assert_msg(status == SILT_OK, "%s", err.sentence);
    ck_assert_uint_eq(sample->connect_timeout_ms, plain->connect_timeout_ms);
    ck_assert_uint_eq(sample->page_bytes, plain->page_bytes);
    ck_assert_uint_eq(sample->idle_look_ms, plain->idle_look_ms);
    ck_assert_uint_eq(sample->map_limit_bytes, plain->map_limit_bytes);
    ck_assert_int_eq(silt_config_check_archiver(sample, &err), SILT_OK);
    silt_config_free(sample);
    /* the lines that stand there as comments are settings, too */
    for (size_t i = 0; i + 2 < text.len; i++)
        if (text.at[i] == '#' && text.at[i + 1] == ' ' &&
            strncmp((char *)text.at + i + 2, "user:", 5) == 0)
            memmove(text.at + i, text.at + i + 2, text.len - i - 2), text.len -= 2;
    ck_assert_int_eq(silt_config_parse("sample", silt_buf_view(&text), &sample, &err), SILT_OK);
    ck_assert_str_eq(sample->user, "silt");
    silt_config_free(sample);
    silt_config_free(plain);
    silt_buf_release(&text);
}
END_TEST

START_TEST(config__no_cut_and_no_flip_of_the_sample_harms)
{
    struct silt_buf text = {0};
    struct silt_config *config;
    ck_assert_int_eq(silt_config_sample(&text), SILT_OK);
    for (size_t len = 0; len < text.len; len += 7)
        if (silt_config_parse("f", silt_view(text.at, len), &config, NULL) == SILT_OK)
            silt_config_free(config);
    struct test_rng rng = test_rng(1);
    for (int i = 0; i < 400; i++) {
        size_t at = test_rng_below(&rng, text.len);
        uint8_t kept = text.at[at];
        text.at[at] = (uint8_t)test_rng_next(&rng);
        if (silt_config_parse("f", silt_buf_view(&text), &config, NULL) == SILT_OK)
            silt_config_free(config);
        text.at[at] = kept;
    }
    silt_buf_release(&text);
}
END_TEST

TEST_MAIN(config__an_empty_file_gives_the_defaults, config__every_setting_reaches_its_place,
          config__every_setting_of_a_stream_reaches_its_place,
          config__unknown_settings_are_refused_where_they_stand,
          config__wrong_types_are_refused_where_they_stand,
          config__numbers_out_of_range_and_below_zero_are_refused,
          config__what_stands_twice_is_refused, config__contradictions_are_refused,
          config__what_is_not_plain_yaml_is_refused_in_words,
          config__an_exact_key_beats_a_pattern_and_two_patterns_are_ambiguous,
          config__flags_win_over_the_file, config__an_archiver_needs_server_archive_and_streams,
          config__a_file_is_named_by_flag_then_environment,
          config__the_committed_sample_and_page_are_those_of_the_table,
          config__the_sample_is_accepted_and_says_the_defaults,
          config__no_cut_and_no_flip_of_the_sample_harms)
