/* silt read and silt get across the watermark. */
#include <signal.h>

#include "cli.h"

#define KEY "emq:{t}:stream:s"

static struct cli cli;

/* orders: 1-0 to 20-0, of which the last five are live. */
static void start_folded(void)
{
    cli_start(&cli, "  - match: orders\n    keep: { entries: 5 }\n"
                    "  - match: '" KEY "'\n    ids: branded EVT\n    keep: { entries: 1 }\n");
    cli_add(&cli, "orders", 1, 20);
    cli_fold();
    if (test_cmd_int(&cli.server, "XLEN orders") != 5) test_die("not trimmed");
}

START_TEST(read__gives_archive_and_live_as_one)
{
    start_folded();
    char *text = SILT_OUTPUT("read", "orders");
    ck_assert_uint_eq(count_lines(text), 20);
    ck_assert_int_eq(strncmp(text, "1-0  1970-01-01T00:00:00.001Z  n=1\n", 35), 0);
    ck_assert_ptr_nonnull(strstr(text, "15-0  1970-01-01T00:00:00.015Z  n=15\n16-0 "));
    free(text);
    CK_SILT_OUT(0, "20\n", "read", "orders", "--count");
    CK_SILT_OUT(0, "{\"count\":20}\n", "read", "orders", "--count", "--json");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(read__bounds_in_every_form)
{
    start_folded();
    CK_SILT_OUT(0, "4\n", "read", "orders", "--count", "--from", "14", "--to", "17-0");
    CK_SILT_OUT(0, "2\n", "read", "orders", "--count", "--from", "(14-0", "--to", "(17-0");
    CK_SILT_OUT(0, "3\n", "read", "orders", "--count", "--window", "14..16");
    CK_SILT_OUT(0, "3\n", "read", "orders", "--count", "--since", "1970-01-01T00:00:00.018Z");
    CK_SILT_OUT(0, "0\n", "read", "orders", "--count", "--since", "1h");
    CK_SILT_OUT(0, "1\n", "read", "orders", "--count", "--window",
                "1970-01-01T00:00:00.0159Z..1970-01-01T00:00:00.015Z");
    CK_SILT_OUT(0, "20\n", "read", "orders", "--count", "--window", "-..+");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(read__newest_first_and_limited)
{
    start_folded();
    CK_SILT_OUT(0,
                "17-0  1970-01-01T00:00:00.017Z  n=17\n16-0  1970-01-01T00:00:00.016Z  n=16\n"
                "15-0  1970-01-01T00:00:00.015Z  n=15\n",
                "read", "orders", "--reverse", "--limit", "3", "--to", "17");
    test_server_release(&cli.server);
}
END_TEST

/* Pages of seven, each resumed in a process of its own, in both directions: nothing twice, nothing lost. */
START_TEST(read__resumes_from_the_position_it_told)
{
    start_folded();
    for (int reverse = 0; reverse < 2; reverse++) {
        char position[400] = "", all[4096] = "";
        for (int page = 0; page < 3; page++) {
            struct test_outcome end;
            const char *argv[] = {"silt", "read", "orders", "--limit", "7", NULL, NULL, NULL, NULL};
            int at = 5;
            if (reverse) argv[at++] = "--reverse";
            if (page) {
                argv[at++] = "--resume";
                argv[at++] = position;
            }
            test_program(&end, argv, NULL, NULL, 30000);
            ck_assert_int_eq(end.code, 0);
            strncat(all, end.out, sizeof all - strlen(all) - 1);
            if (sscanf(end.err, "position: %399s", position) != 1) ck_assert_int_eq(page, 2);
            test_outcome_release(&end);
        }
        char *whole =
            reverse ? SILT_OUTPUT("read", "orders", "--reverse") : SILT_OUTPUT("read", "orders");
        ck_assert_str_eq(all, whole);
        free(whole);
    }
    CK_SILT(2, "", "position", "read", "orders", "--resume", "nonsense");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(read__json_has_every_pair_the_brand_and_the_tier)
{
    start_folded();
    test_cmd(&cli.server, "XADD " KEY " 1704117200000-1620567 id EVT000xY9Wvvcd kind x kind y");
    test_cmd(&cli.server, "XADD " KEY " 1704117200000-1620568 kind foreign");
    cli_fold();
    CK_SILT_OUT(
        0,
        "{\"id\":\"1704117200000-1620567\",\"branded\":\"EVT000xY9Wvvcd\",\"fields\":[[\"id\","
        "\"EVT000xY9Wvvcd\"],[\"kind\",\"x\"],[\"kind\",\"y\"]],\"tier\":\"archive\"}\n"
        "{\"id\":\"1704117200000-1620568\",\"branded\":null,\"fields\":[[\"kind\",\"foreign\"]],"
        "\"tier\":\"archive\"}\n",
        "read", KEY, "--json");
    CK_SILT_OUT(0,
                "EVT000xY9Wvvcd  2024-01-01T13:53:20.000Z  kind=x kind=y\n"
                "1704117200000-1620568  2024-01-01T13:53:20.000Z  kind=foreign\n",
                "read", KEY);
    CK_SILT_OUT(0, "1\n", "read", KEY, "--count", "--to", "EVT000xY9Wvvcd");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(read__text_sends_no_control_characters)
{
    start_folded();
    test_cmd(&cli.server, "XADD odd 1-1 %b %b", "a b", (size_t)3, "\033[31m\xc3\xa9\xff\xc2\x9b=\"",
             (size_t)12);
    CK_SILT_OUT(
        0, "1-1  1970-01-01T00:00:00.001Z  \"a b\"=\"\\x1b[31m\xc3\xa9\\xff\\xc2\\x9b=\\\"\"\n",
        "read", "odd");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(read__bad_bounds_each_have_their_sentence)
{
    static const char *const rows[][3] = {
        {"--from", "yesterday", "not an id or instant: 'yesterday'"},
        {"--from", "5-x", "not a wire id: '5-x'"},
        {"--from", "274557032793636864", "stands for the wire id 1769526697641-0"},
        {"--to", "2026-02-30", "not an instant: '2026-02-30'"},
        {"--to", "1969-12-31", "before 1970"},
        {"--from", "EVT000xY9Wvvc", "has 13 bytes, not 14"},
        {"--from", "ORD000xY9Wvvcd", "is of namespace ORD, not EVT"},
        {"--window", "6..5", "the window is inverted"},
        {"--window", "5", "not a window: '5'"},
        {"--to", "(0-0", "nothing lies beyond '(0-0'"},
        {"--limit", "0", "--limit is a number from 1"},
        {"--limit", "many", "--limit is a number from 1"}};
    start_folded();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CK_SILT(2, "", rows[i][2], "read", KEY, "--ids", "branded EVT", rows[i][0], rows[i][1]);
    CK_SILT(2, "", "the window is inverted", "read", "orders", "--from", "6-0", "--to", "5-0");
    CK_SILT(2, "", "--follow and --to contradict", "read", "orders", "--follow", "--to", "5");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(read__keys_and_kinds_it_cannot_read)
{
    start_folded();
    test_cmd(&cli.server, "SET text x");
    CK_SILT(2, "", "nokey", "read", "nokey");
    CK_SILT(4, "", "another type", "read", "text");
    CK_SILT(2, "", "the archive knows this stream as 'wire'", "read", "orders", "--ids",
            "branded EVT");
    unsetenv("SILT_CONFIG");
    CK_SILT(2, "", "neither an archive nor a server is named", "read", "orders");
    CK_SILT(5, "", "not-there", "read", "orders", "--archive", test_path("not-there"));
    test_file_write(test_path("file"), "x", 1);
    CK_SILT(5, "", "file", "read", "orders", "--archive", test_path("file"));
    test_server_release(&cli.server);
}
END_TEST

START_TEST(read__without_the_server_only_where_allowed)
{
    start_folded();
    cli_add(&cli, "orders", 21, 21);
    CK_SILT_OUT(0, "20\n", "read", "orders", "--count", "--archive-only");
    test_server_kill(&cli.server);
    CK_SILT(4, "", "cannot connect to unix:", "read", "orders");
    CK_SILT(4, "", "cannot connect to unix:", "read", "orders", "--count");
    CK_SILT(1, "20-0 ", "the archive alone was read, complete up to 20-0", "read", "orders",
            "--allow-archive-only");
    CK_SILT(1, "20\n", "the archive alone was read", "read", "orders", "--count",
            "--allow-archive-only");
    CK_SILT(0, "20-0 ", "", "read", "orders", "--archive-only");
    test_server_release(&cli.server);
}
END_TEST

static bool has_said(const struct test_child *child, const char *text)
{
    char *out = test_child_out(child);
    bool said = strstr(out, text) != NULL;
    free(out);
    return said;
}

static bool has_complained(const struct test_child *child, const char *text)
{
    char *err = test_child_err(child);
    bool said = strstr(err, text) != NULL;
    free(err);
    return said;
}

START_TEST(read__follow_goes_from_history_to_news_and_tells_its_position)
{
    static const char *const argv[] = {"silt", "read", "orders", "--follow", "--from", "14", NULL};
    struct test_child child;
    struct test_outcome end;
    start_folded();
    test_child_start(&child, argv, NULL);
    TEST_WAIT(has_said(&child, "20-0 "), 20000);
    cli_add(&cli, "orders", 21, 30);
    cli_fold(); /* beneath the follower */
    cli_add(&cli, "orders", 31, 31);
    TEST_WAIT(has_said(&child, "31-0 "), 20000);
    test_child_signal(&child, SIGINT);
    test_child_wait(&child, 10000, &end);
    CK_RUN(&end, 0, "14-0 ", "position: ");
    ck_assert_uint_eq(count_lines(end.out), 18);
    test_outcome_release(&end);
    test_server_release(&cli.server);
}
END_TEST

START_TEST(read__gap_stands_in_its_place_and_in_the_exit_code)
{
    start_folded();
    cli_add(&cli, "orders", 21, 30);
    test_cmd(&cli.server, "XTRIM orders MINID 28-0");
    cli_fold();
    CK_SILT(1, "28-0 ", "gap: 7 entries of ", "read", "orders");
    CK_SILT(1, "{\"gap\":{\"first\":", "", "read", "orders", "--json");
    CK_SILT(1, "\"count\":7,\"count_is_exact\":true", "", "read", "orders", "--json");
    CK_SILT_OUT(0, "23\n", "read", "orders", "--count");
    CK_SILT(1, "", "", "status");
    test_server_release(&cli.server);
}
END_TEST

/* The key was made anew: its entries are held back, and no reading passes over that in silence. */
START_TEST(read__doubt_is_told_however_it_is_read)
{
    static const char *const argv[] = {"silt", "read", "orders", "--follow", NULL};
    struct test_child child;
    struct test_outcome end;
    if (!test_faults_built_in()) return;
    start_folded();
    test_cmd(&cli.server, "DEL orders");
    cli_add(&cli, "orders", 31, 34);
    setenv("SILT_FAULT", "after-verdict:1=kill", 1); /* an audit that nobody ends */
    TEST_PROGRAM(&end, "siltd", "--once");
    unsetenv("SILT_FAULT");
    ck_assert_int_eq(end.signal, SIGKILL);
    test_outcome_release(&end);
    CK_SILT(8, "20-0 ", "the live part is held back", "read", "orders");
    CK_SILT(8, "20-0 ", "the live part is held back", "read", "orders", "--reverse", "--limit",
            "2");
    CK_SILT(0, "3-0 ", "position: ", "read", "orders", "--reverse", "--limit", "2", "--to", "3-0");
    CK_SILT(0, "20-0 ", "", "get", "orders", "20-0");
    CK_SILT(8, "", "the live part is held back", "get", "orders", "19-1");
    CK_SILT(8, "", "the live part is held back", "get", "orders", "33-0");
    CK_SILT(1, "", "there is no entry 19-1", "get", "orders", "19-1", "--archive-only");
    test_child_start(&child, argv, NULL);
    TEST_WAIT(has_complained(&child, "held back"), 20000);
    test_child_signal(&child, SIGINT);
    test_child_wait(&child, 10000, &end);
    CK_RUN(&end, 1, "20-0 ", "hint: silt status");
    test_outcome_release(&end);
    test_server_release(&cli.server);
}
END_TEST

START_TEST(get__finds_an_entry_wherever_it_lives)
{
    start_folded();
    CK_SILT_OUT(0, "3-0  1970-01-01T00:00:00.003Z  (archive)\n  n = 3\n", "get", "orders", "3-0");
    CK_SILT(0, "{\"id\":\"20-0\",\"branded\":null,\"fields\":[[\"n\",\"20\"]],\"tier\":", "", "get",
            "orders", "20-0", "--json");
    CK_SILT(1, "", "there is no entry 3-1 in orders", "get", "orders", "3-1");
    CK_SILT(2, "", "'3'", "get", "orders", "3");
    CK_SILT(2, "", "3-x", "get", "orders", "3-x");
    test_cmd(&cli.server, "XADD " KEY " 1704117200000-1620567 id EVT000xY9Wvvcd kind x");
    test_cmd(&cli.server, "XADD " KEY " 1704117200000-1620568 kind foreign");
    cli_fold();
    CK_SILT(0, "EVT000xY9Wvvcd  2024-01-01T13:53:20.000Z  (archive)\n", "", "get", KEY,
            "EVT000xY9Wvvcd");
    CK_SILT(0, "foreign)\n  kind = foreign\n", "", "get", KEY, "1704117200000-1620568");
    CK_SILT(2, "", "is of namespace ORD, not EVT", "get", KEY, "ORD000xY9Wvvcd");
    test_server_release(&cli.server);
}
END_TEST

TEST_MAIN(read__gives_archive_and_live_as_one, read__bounds_in_every_form,
          read__newest_first_and_limited, read__resumes_from_the_position_it_told,
          read__json_has_every_pair_the_brand_and_the_tier, read__text_sends_no_control_characters,
          read__bad_bounds_each_have_their_sentence, read__keys_and_kinds_it_cannot_read,
          read__without_the_server_only_where_allowed,
          read__follow_goes_from_history_to_news_and_tells_its_position,
          read__gap_stands_in_its_place_and_in_the_exit_code,
          read__doubt_is_told_however_it_is_read, get__finds_an_entry_wherever_it_lives)
