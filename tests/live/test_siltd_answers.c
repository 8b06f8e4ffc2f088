/* siltd, the program, when the server refuses, is away or changes its mind: one sentence, exit 4, nothing changed; running, it waits and goes on. */
#include "harness/harness.h"
#include "meddler.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct test_server server;
static struct test_meddler meddler;
static struct test_outcome outcome;

enum { ENTRIES = 30 };

/* Settings with that address; more: lines of the valkey: block. Gives their path. */
static const char *write_settings(const char *address, const char *more)
{
    char text[1024];
    int len =
        snprintf(text, sizeof text,
                 "valkey:\n  address: \"%s\"\n  command-timeout: 500ms\n%s"
                 "archive: { path: \"%s\" }\ncontrol: \"%s\"\n"
                 "streams:\n- { match: s, ids: wire, keep: { entries: 5 }, fold-delay: 10ms }\n",
                 address, more, test_path("archive"), test_path("control.sock"));
    test_file_write(test_path("silt.yaml"), text, (size_t)len);
    return test_path("silt.yaml");
}

static void start(void)
{
    test_server_start(&server, NULL);
    for (int i = 1; i <= ENTRIES; i++)
        test_cmd(&server, "XADD s %d-0 n %d", i, i);
    test_meddler_start(&meddler, server.socket);
}

static void finish(void)
{
    test_outcome_release(&outcome);
    test_meddler_release(&meddler);
    test_server_release(&server);
}

/* Exit 4, the words on stderr, the stream as it was. */
static void check_refused(const char *answer, const char *words)
{
    ck_assert_msg(outcome.code == 4, "%s: exit %d, %s", answer, outcome.code, outcome.err);
    ck_assert_msg(strstr(outcome.err, words) != NULL, "%s: no '%s' in: %s", answer, words,
                  outcome.err);
    ck_assert_int_eq(test_cmd_int(&server, "XLEN s"), ENTRIES);
}

START_TEST(siltd_answers__once_says_what_is_the_matter_and_exits_4)
{
    static const struct {
        const char *answer, *words;
    } cases[] = {
        {"-LOADING Redis is loading the dataset in memory\r\n", "loading its data"},
        {"-BUSY Redis is busy running a script\r\n", "busy with a script"},
        {"-NOAUTH Authentication required.\r\n", "wants a password"},
        {"-NOPERM this user has no permissions\r\n", "no right"},
        {"-MASTERDOWN Link with MASTER is down\r\n", "lost its master"},
        {"-CLUSTERDOWN Hash slot not served\r\n", "cluster is down"},
        {"-MOVED 3999 127.0.0.1:6381\r\n", "another node"},
        {"-ASK 3999 127.0.0.1:6381\r\n", "another node"},
        {"-TRYAGAIN Multiple keys request\r\n", "being moved"},
        {"-ERR max number of clients reached\r\n", "another client"},
        {"-ERR unknown command 'XINFO'\r\n", "does not know the command"},
        {"*2147483647\r\n", "makes no sense"},
        {">1\r\n+x\r\n", "makes no sense"},
        {"$-1\r\n", "makes no sense"},
        {"*0\r\n", "makes no sense"},
    };
    start();
    const char *settings = write_settings(meddler.address, "");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        /* from the look on: every command is answered so */
        test_meddler_set(&meddler, 3, TEST_MEDDLE_REFUSE, cases[i].answer);
        test_meddler_go_on(&meddler);
        TEST_PROGRAM(&outcome, "siltd", "--config", settings, "--once");
        check_refused(cases[i].answer, cases[i].words);
        test_outcome_release(&outcome);
    }
    test_meddler_set(&meddler, 0, TEST_MEDDLE_REFUSE, NULL);
    TEST_PROGRAM(&outcome, "siltd", "--config", settings, "--once");
    ck_assert_msg(outcome.code == 0, "%s", outcome.err);
    ck_assert_int_eq(test_cmd_int(&server, "XLEN s"), 5);
    finish();
}
END_TEST

START_TEST(siltd_answers__once_without_a_server_exits_4)
{
    start();
    const char *settings = write_settings(test_path("nobody.sock"), "");
    TEST_PROGRAM(&outcome, "siltd", "--config", settings, "--once");
    check_refused("nobody there", "nobody.sock");
    test_outcome_release(&outcome);
    settings = write_settings(server.address, "");
    test_server_pause(&server);
    TEST_PROGRAM(&outcome, "siltd", "--config", settings, "--once");
    test_server_resume(&server);
    check_refused("silence", "did not answer within 500 ms");
    test_outcome_release(&outcome);
    test_file_write(test_path("password"), "wrong", 5);
    char more[300];
    snprintf(more, sizeof more, "  user: silt\n  password-file: \"%s\"\n", test_path("password"));
    settings = write_settings(server.address, more);
    TEST_PROGRAM(&outcome, "siltd", "--config", settings, "--once");
    check_refused("another password", "WRONGPASS");
    finish();
}
END_TEST

static unsigned count_lines(const struct test_child *child, const char *words)
{
    unsigned count = 0;
    char *err = test_child_err(child);
    for (const char *at = err; (at = strstr(at, words)) != NULL; at++)
        count++;
    free(err);
    return count;
}

START_TEST(siltd_answers__running_it_waits_and_goes_on)
{
    static const struct {
        enum test_meddle how;
        const char *answer;
    } cases[] = {
        {TEST_MEDDLE_REFUSE, "-LOADING Redis is loading the dataset in memory\r\n"},
        {TEST_MEDDLE_REFUSE, "-NOPERM this user has no permissions\r\n"},
        {TEST_MEDDLE_BREAK, "*1\r\n$99\r\nhalf"},
        {TEST_MEDDLE_SILENT, NULL},
    };
    struct test_child child = {0};
    start();
    const char *settings = write_settings(meddler.address, "");
    const char *const argv[] = {"siltd", "--config", settings, NULL};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int n = 1; n <= ENTRIES; n++)
            test_cmd(&server, "XADD s %d-%d n %d", ENTRIES + 1 + (int)i, n, n);
        long long before = test_cmd_int(&server, "XLEN s");
        test_meddler_set(&meddler, 1, cases[i].how, cases[i].answer);
        test_meddler_go_on(&meddler);
        test_child_start(&child, argv, NULL);
        TEST_WAIT(count_lines(&child, "event=waiting") + count_lines(&child, "event=failing") > 0,
                  20000);
        unsigned seen = atomic_load(&meddler.state->seen);
        TEST_WAIT(atomic_load(&meddler.state->seen) >= seen + 2, 20000); /* it tries again */
        ck_assert_int_eq(test_cmd_int(&server, "XLEN s"), before);
        ck_assert_uint_le(count_lines(&child, "event=waiting"),
                          2); /* said once, not at every try */
        test_meddler_set(&meddler, 0, TEST_MEDDLE_REFUSE, NULL);
        TEST_WAIT(test_cmd_int(&server, "XLEN s") == 5, 30000);
        test_child_signal(&child, SIGTERM);
        test_child_wait(&child, 10000, &outcome);
        ck_assert_msg(outcome.code == 0, "%s", outcome.err);
        test_outcome_release(&outcome);
    }
    finish();
}
END_TEST

START_TEST(siltd_answers__a_changed_password_needs_no_restart)
{
    struct test_child child = {0};
    char more[300];
    start();
    test_cmd(&server, "ACL SETUSER silt on >first ~* +@all");
    test_file_write(test_path("password"), "first\n", 6);
    snprintf(more, sizeof more, "  user: silt\n  password-file: \"%s\"\n", test_path("password"));
    const char *const argv[] = {"siltd", "--config", write_settings(server.address, more), NULL};
    test_child_start(&child, argv, NULL);
    TEST_WAIT(test_cmd_int(&server, "XLEN s") == 5, 20000);
    test_cmd(&server, "ACL SETUSER silt resetpass >second");
    test_cmd(&server, "CLIENT KILL USER silt");
    for (int i = 1; i <= 20; i++)
        test_cmd(&server, "XADD s %d-0 n %d", 100 + i, i);
    TEST_WAIT(count_lines(&child, "WRONGPASS") > 0, 20000);
    ck_assert_int_eq(test_cmd_int(&server, "XLEN s"), 25);
    test_file_write(test_path("password"), "second\n", 7);
    TEST_WAIT(test_cmd_int(&server, "XLEN s") == 5, 30000);
    ck_assert_uint_eq(count_lines(&child, "first") + count_lines(&child, "second"), 0);
    test_child_signal(&child, SIGTERM);
    test_child_wait(&child, 10000, &outcome);
    ck_assert_int_eq(outcome.code, 0);
    finish();
}
END_TEST

TEST_MAIN(siltd_answers__once_says_what_is_the_matter_and_exits_4,
          siltd_answers__once_without_a_server_exits_4, siltd_answers__running_it_waits_and_goes_on,
          siltd_answers__a_changed_password_needs_no_restart)
