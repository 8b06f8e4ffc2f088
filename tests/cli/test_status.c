/* silt status, inspect, verify and sync, with and without a running siltd. */
#include <signal.h>

#include "cli.h"

#define STREAMS                                                           \
    "  - match: orders\n    keep: { entries: 5 }\n    fold-delay: 10ms\n" \
    "  - match: shadow\n"                                                 \
    "  - match: 'two*'\n  - match: '*two'\n"

static struct cli cli;
static struct test_child siltd;

static void start_folded(void)
{
    cli_start(&cli, STREAMS);
    cli_add(&cli, "orders", 1, 20);
    cli_add(&cli, "shadow", 1, 3);
    cli_fold();
}

static void start_siltd(void)
{
    static const char *const argv[] = {"siltd", NULL};
    test_child_start(&siltd, argv, NULL);
    TEST_WAIT(access(cli.control, F_OK) == 0, 20000);
}

static void stop_siltd(void)
{
    struct test_outcome end;
    test_child_signal(&siltd, SIGTERM);
    test_child_wait(&siltd, 20000, &end);
    if (end.code != 0) test_die("siltd: exit %d: %s", end.code, end.err);
    test_outcome_release(&end);
}

START_TEST(status__reads_archive_and_server_without_siltd)
{
    start_folded();
    CK_SILT(0, "orders", "siltd does not run; this is what the archive and the server say",
            "status");
    CK_SILT(0, "can be trimmed  yes, up to 20-0", "", "status", "orders");
    CK_SILT(0, "floor held by   retention", "", "status", "orders");
    CK_SILT(0, "floor held by   shadow", "", "status", "shadow");
    CK_SILT(
        0,
        "\"watermark\":{\"id\":\"20-0\",\"branded\":null,\"instant\":\"1970-01-01T00:00:00.020Z\"}",
        "", "status", "orders", "--json");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(status__names_the_group_that_holds_the_floor)
{
    start_folded();
    cli_add(&cli, "shadow", 4, 6);
    test_cmd(&cli.server, "XGROUP CREATE shadow slow 1-0");
    CK_SILT(1, "floor held by   group slow", "", "status", "shadow");
    test_cmd(&cli.server, "XGROUP CREATE shadow slower 0");
    test_cmd(&cli.server, "XREADGROUP GROUP slower me COUNT 1 STREAMS shadow >");
    CK_SILT(1, "floor held by   pending slower", "", "status", "shadow");
    CK_SILT(1, "behind", "", "status", "shadow");
    CK_SILT(1, "lag             3, ", "", "status", "shadow");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(status__tells_what_stands_in_the_way)
{
    start_folded();
    test_cmd(&cli.server, "SET orders x");
    CK_SILT(1, "can be trimmed  no", "", "status", "orders");
    CK_SILT(1, "the key holds another type", "", "status", "orders");
    CK_SILT(2, "", "neither the archive nor the server knows this key", "status", "nokey");
    CK_SILT(4, "", "another type", "status", "orders", "--archive", test_path("none"));
    test_server_kill(&cli.server);
    CK_SILT(4, "orders", "cannot connect to unix:", "status");
    CK_SILT(4, "can be trimmed  yes", "", "status", "shadow");
    CK_SILT(5, "", "none", "status", "--archive", test_path("none"));
    test_server_release(&cli.server);
}
END_TEST

START_TEST(status__asks_a_running_siltd)
{
    start_folded();
    start_siltd();
    test_cmd(&cli.server, "XADD atwo 1-0 a b");
    CK_SILT(0, "orders: folded, and durable\n", "", "sync", "orders");
    CK_SILT(0, "can be trimmed  yes, up to 20-0", "", "status", "orders");
    CK_SILT(0, "\"stream_count\":", "", "status", "--json");
    CK_SILT(2, "", "nokey", "status", "nokey");
    stop_siltd();
    test_server_release(&cli.server);
}
END_TEST

START_TEST(status__tells_of_a_key_that_two_patterns_match)
{
    start_folded();
    test_cmd(&cli.server, "XADD twotwo 1-0 a b");
    CK_SILT(1, "two patterns of the settings match this key", "", "status", "twotwo");
    start_siltd();
    CK_SILT(1, "2 streams folded", "twotwo: two patterns match", "sync"); /* the others go on */
    CK_SILT(1, "ambiguous", "", "status");
    stop_siltd();
    test_server_release(&cli.server);
}
END_TEST

START_TEST(sync__returns_when_it_is_durable)
{
    start_folded();
    start_siltd();
    cli_add(&cli, "orders", 21, 40);
    CK_SILT(0, "orders: folded, and durable\n", "", "sync", "orders");
    CK_SILT_OUT(0, "40\n", "read", "orders", "--count", "--archive-only");
    CK_SILT(0, "2 streams folded, and durable", "", "sync");
    CK_SILT(0, "{\"", "", "sync", "orders", "--json");
    CK_SILT(2, "", "nokey", "sync", "nokey");
    stop_siltd();
    CK_SILT(4, "", "siltd is not running: nobody listens on ", "sync");
    unsetenv("SILT_CONFIG");
    CK_SILT(2, "", "the settings name no control socket", "sync");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(inspect__tells_what_is_stored)
{
    start_folded();
    CK_SILT(0, "archive ", "", "inspect");
    CK_SILT(0, "orders  plain         1       20", "", "inspect");
    CK_SILT(0, "entries    20 in 1 segments, 0 foreign", "", "inspect", "orders");
    CK_SILT(0, "SEGMENT  LIFE  ENTRIES", "", "inspect", "orders", "--segments");
    CK_SILT(0, "\"segments\":1,\"entries\":20,\"foreign_entries\":0", "", "inspect", "orders",
            "--json");
    CK_SILT(0, "\"segment_list\":[{\"life\":", "", "inspect", "orders", "--json", "--segments");
    CK_SILT(2, "", "nokey", "inspect", "nokey");
    unsetenv("SILT_CONFIG");
    CK_SILT(2, "", "no archive is named\nhint: --archive DIR", "inspect");
    CK_SILT(5, "", "none", "inspect", "--archive", test_path("none"));
    test_server_release(&cli.server);
}
END_TEST

START_TEST(timeline__draws_archive_live_and_gap)
{
    start_folded();
    setenv("LC_ALL", "C", 1);
    cli_add(&cli, "orders", 21, 25);
    test_cmd(&cli.server, "XTRIM orders MINID 23-0");
    cli_fold();
    cli_add(&cli, "orders", 26, 27);
    char *text = SILT_OUTPUT("inspect", "orders", "--timeline");
    ck_assert_ptr_nonnull(strstr(
        text, "1970-01-01 00:00:00.001  ########################################          1\n"));
    ck_assert_ptr_nonnull(strstr(
        text, "1970-01-01 00:00:00.025  ++++++++++++++++++++++++++++++++++++++++          1"));
    ck_assert_ptr_nonnull(strstr(
        text, "1970-01-01 00:00:00.027  ........................................          1\n"));
    ck_assert_ptr_nonnull(strstr(text, "X 2 missing"));
    free(text);
    CK_SILT(
        0, "\"timeline\":{\"width_ms\":1,\"buckets\":[{\"from_ms\":1,\"archive\":1,\"live_only\":0",
        "", "inspect", "orders", "--timeline", "--json");
    test_server_release(&cli.server);
}
END_TEST

TEST_MAIN(status__reads_archive_and_server_without_siltd,
          status__names_the_group_that_holds_the_floor, status__tells_what_stands_in_the_way,
          status__asks_a_running_siltd, status__tells_of_a_key_that_two_patterns_match,
          sync__returns_when_it_is_durable, inspect__tells_what_is_stored,
          timeline__draws_archive_live_and_gap)
