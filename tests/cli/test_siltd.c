/* siltd's flags: stdout, stderr, exit code. No server is started here. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/harness.h"

#define GOOD \
    "valkey: { address: unix:/nowhere/s.sock }\narchive: { path: /nowhere/a }\nstreams:\n- { match: a }\n- { match: 'b*' }\n"

static const char *config_of(const char *text)
{
    const char *path = test_path("silt.yaml");
    test_file_write(path, text, strlen(text));
    return path;
}

/* Exit code, and words that must stand on stdout and stderr ("" : it must be empty there). */
static void check(const char *const *argv, int code, const char *out, const char *err)
{
    struct test_outcome o;
    const char *const env[] = {"SILT_CONFIG", NULL};
    test_program(&o, argv, env, NULL, 30000);
    ck_assert_msg(o.code == code, "%d instead of %d: %s%s", o.code, code, o.out, o.err);
    ck_assert_msg(*out ? strstr(o.out, out) != NULL : !*o.out, "no '%s' on stdout: %s", out, o.out);
    ck_assert_msg(*err ? strstr(o.err, err) != NULL : !*o.err, "no '%s' on stderr: %s", err, o.err);
    test_outcome_release(&o);
}
#define CHECK(code, out, err, ...) \
    check((const char *const[]){"siltd", __VA_ARGS__, NULL}, code, out, err)

START_TEST(siltd__help_and_version)
{
    CHECK(0, "usage: siltd", "", "--help");
    CHECK(0, "--check-config", "", "-h");
    CHECK(0, "siltd 0.", "", "--version");
}
END_TEST

START_TEST(siltd__wrong_flags_are_usage)
{
    CHECK(2, "", "there is no flag --frobnicate\nhint: siltd --help", "--frobnicate");
    CHECK(2, "", "--config needs a value", "--config");
    CHECK(2, "", "it takes flags only", "word");
    CHECK(2, "", "exclude each other", "--once", "--plan");
    CHECK(2, "", "--json goes with", "--json");
}
END_TEST

START_TEST(siltd__check_config_tells_that_it_is_well)
{
    const char *path = config_of(GOOD);
    CHECK(0, "silt.yaml: well; 1 keys and 1 patterns\n", "", "--config", path, "--check-config");
    CHECK(0, "{\"ok\":true,\"keys\":1,\"patterns\":1}\n", "", "--config", path, "--check-config",
          "--json");
}
END_TEST

START_TEST(siltd__check_config_names_file_line_and_column)
{
    CHECK(3, "", "silt.yaml:3:3: archive has no setting pth\nhint: known here: path", "--config",
          config_of("archive:\n  # here\n  pth: /a\n"), "--check-config");
    CHECK(3, "", "silt.yaml:4:10: streams.match: the same key stands in line 3", "--config",
          config_of("\nstreams:\n- match: a\n- match: a\n"), "--check-config");
    CHECK(3, "", "no server is named", "--config", config_of(""), "--check-config");
    CHECK(3, "", "none.yaml: cannot be read: No such file", "--config", test_path("none.yaml"),
          "--check-config");
}
END_TEST

START_TEST(siltd__a_bad_configuration_stops_every_mode)
{
    const char *path = config_of(
        "valkey: { address: unix:/s }\narchive: { path: /nowhere/a }\nstreams:\n- { match: a, on-delete: mark }\n");
    CHECK(3, "", "silt.yaml:4:26: on-delete: mark is not available yet", "--config", path);
    CHECK(3, "", "silt.yaml:4:26: ", "--config", path, "--once");
    CHECK(3, "", "silt.yaml:4:26: ", "--config", path, "--plan");
}
END_TEST

START_TEST(siltd__flags_win_over_the_settings)
{
    const char *path = config_of(GOOD);
    CHECK(3, "", "nonsense is not an address", "--config", path, "--valkey", "nonsense",
          "--check-config");
    CHECK(0, "well", "", "--config", path, "--valkey", "tcp:127.0.0.1:1", "--archive", "/x",
          "--check-config");
}
END_TEST

START_TEST(siltd__an_archive_that_cannot_be_made_is_told)
{
    char text[400];
    test_file_write(test_path("file"), "text", 4);
    snprintf(
        text, sizeof text,
        "valkey: { address: unix:/nowhere/s.sock }\narchive: { path: %s/a }\nstreams: [ { match: a } ]\n",
        test_path("file"));
    struct test_outcome o;
    TEST_PROGRAM(&o, "siltd", "--config", config_of(text), "--once");
    ck_assert_int_eq(o.code, 5);
    ck_assert_ptr_nonnull(strstr(o.err, "siltd: "));
    test_outcome_release(&o);
}
END_TEST

START_TEST(siltd__a_directory_that_is_no_archive_is_refused_untouched)
{
    char text[400];
    const char *dir = test_path("other");
    mkdir(dir, 0700);
    test_file_write(test_path("other/archive-1.mdb"), "somebody's notes\n", 17);
    test_file_write(test_path("other/current"), "archive-1.mdb\n", 14);
    snprintf(
        text, sizeof text,
        "valkey: { address: unix:/nowhere/s.sock }\narchive: { path: %s }\nstreams: [ { match: a } ]\n",
        dir);
    struct test_outcome o;
    TEST_PROGRAM(&o, "siltd", "--config", config_of(text), "--once");
    ck_assert_msg(o.code == 5, "%d: %s", o.code, o.err);
    test_outcome_release(&o);
    char *kept = test_file_read(test_path("other/archive-1.mdb"), NULL);
    ck_assert_str_eq(kept, "somebody's notes\n");
    free(kept);
}
END_TEST

/* The text of the page without troff's backslashes. */
static char *page_text(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/docs/man/siltd.8", test_source_root());
    char *text = test_file_read(path, NULL), *to = text;
    for (const char *at = text; *at; at++)
        if (*at != '\\') *to++ = *at;
    *to = '\0';
    return text;
}

START_TEST(siltd__the_man_page_has_every_flag_with_its_words)
{
    struct test_outcome o;
    char *page = page_text();
    unsigned flags = 0;
    TEST_PROGRAM(&o, "siltd", "--help");
    char *rest;
    for (char *line = strtok_r(o.out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "  --", 4) != 0) continue;
        char name[40], text[400];
        ck_assert_int_eq(sscanf(line, " %39s", name), 1);
        const char *help = line + 25; /* the column of the help */
        snprintf(text, sizeof text, "%s\n%s\n", "", help);
        ck_assert_msg(strstr(page, text) != NULL, "docs/man/siltd.8 does not say '%s'", help);
        ck_assert_msg(strstr(page, name) != NULL, "docs/man/siltd.8 has no %s", name);
        flags++;
    }
    ck_assert_uint_ge(flags, 9);
    test_outcome_release(&o);
    free(page);
}
END_TEST

TEST_MAIN(siltd__help_and_version, siltd__wrong_flags_are_usage,
          siltd__check_config_tells_that_it_is_well, siltd__check_config_names_file_line_and_column,
          siltd__a_bad_configuration_stops_every_mode, siltd__flags_win_over_the_settings,
          siltd__an_archive_that_cannot_be_made_is_told,
          siltd__a_directory_that_is_no_archive_is_refused_untouched,
          siltd__the_man_page_has_every_flag_with_its_words)
