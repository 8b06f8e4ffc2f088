/* silt adopt and silt release with running archivers: what they say, how they end, and that an archiver that was stopped meanwhile trims nothing more. */
#include "cli.h"

#include <signal.h>

static struct cli cli;
static struct test_child archivers[2];

static const char *config_of(int which)
{
    return test_path("silt-%d.yaml", which);
}

static void write_config(int which, const char *keep)
{
    char text[2000];
    int len = snprintf(text, sizeof text,
                       "valkey:\n  address: %s\narchive:\n  path: %s\ncontrol: %s\nidle-look: 1s\n"
                       "streams:\n  - { match: s, fold-delay: 50ms%s }\n",
                       cli.server.address, test_path("archive-%d", which),
                       test_path("c%d.sock", which), keep);
    test_file_write(config_of(which), text, (size_t)len);
}

/* The silt of this archive from here on. */
static void use(int which)
{
    setenv("SILT_CONFIG", config_of(which), 1);
}

static void start_archiver(int which, const char *keep)
{
    write_config(which, keep);
    use(which);
    test_child_start(&archivers[which],
                     (const char *const[]){"siltd", "--config", config_of(which), NULL}, NULL);
    TEST_WAIT(access(test_path("c%d.sock", which), F_OK) == 0, 20000);
}

static void stop_archiver(int which)
{
    struct test_outcome end;
    if (!archivers[which].pid) return;
    test_child_signal(&archivers[which], SIGTERM);
    test_child_wait(&archivers[which], 20000, &end);
    test_outcome_release(&end);
}

static bool status_says(const char *words)
{
    struct test_outcome end;
    TEST_PROGRAM(&end, "silt", "status", "s", "--json");
    bool says = strstr(end.out, words) != NULL;
    test_outcome_release(&end);
    return says;
}

static long long length(void)
{
    return test_cmd_int(&cli.server, "XLEN s");
}

static void start(void)
{
    memset(&cli, 0, sizeof cli);
    memset(archivers, 0, sizeof archivers);
    test_server_start(&cli.server, NULL);
    cli_add(&cli, "s", 1, 10);
}

static void stop(void)
{
    stop_archiver(0);
    stop_archiver(1);
    test_server_release(&cli.server);
}

START_TEST(adopt__takes_over_from_an_archive_that_was_stopped)
{
    struct test_outcome end;
    start();
    start_archiver(0, ", keep: { entries: 5 }");
    TEST_WAIT(length() == 5, 20000);
    start_archiver(1, "");
    TEST_WAIT(status_says("claimed by another archive"), 20000);
    CK_SILT(0, "s: would be taken over from archive ", "", "adopt", "s", "--dry-run");
    ck_assert(status_says("claimed by another archive"));
    test_child_signal(&archivers[0], SIGSTOP);
    TEST_PROGRAM(&end, "silt", "adopt", "s");
    CK_RUN(&end, 0, "s: took over from archive ", "");
    ck_assert_ptr_nonnull(strstr(end.out, " epoch 1 (marker at 10-0); it is now archive "));
    ck_assert_ptr_nonnull(strstr(end.out, " epoch 2\n"));
    test_outcome_release(&end);
    cli_add(&cli, "s", 11, 30);
    TEST_WAIT(status_says("\"folded_entries\":25"), 20000);
    test_child_signal(&archivers[0], SIGCONT);
    use(0);
    TEST_WAIT(status_says("claimed by another archive"), 20000);
    ck_assert_int_eq(length(), 25); /* it has keep, and more than that is there */
    CK_SILT(6, "", "another archive", "release", "s");
    use(1);
    CK_SILT(0, "already, epoch 2", "", "adopt", "s");
    CK_SILT(0, "\"already\":true", "", "adopt", "s", "--json");
    stop();
}
END_TEST

START_TEST(adopt__a_released_stream_is_taken_up_again)
{
    start();
    start_archiver(0, ", keep: { entries: 5 }");
    TEST_WAIT(length() == 5, 20000);
    CK_SILT(0, "s: would be released by archive ", "", "release", "s", "--dry-run");
    CK_SILT(0, "s: released by archive ", "", "release", "s");
    ck_assert_int_eq((long long)test_cmd(&cli.server, "XINFO GROUPS s")->elements, 0);
    CK_SILT(0, "s: was released already", "", "release", "s");
    cli_add(&cli, "s", 11, 20);
    CK_SILT(8, "", "released", "sync", "s");
    CK_SILT(1, "released", "", "status", "s");
    CK_SILT_OUT(0, "20\n", "read", "s", "--count");
    ck_assert_int_eq(length(), 15);
    CK_SILT(0, "\"from\":[]", "", "adopt", "s", "--json");
    TEST_WAIT(length() == 5, 20000);
    CK_SILT_OUT(0, "20\n", "read", "s", "--count");
    stop();
}
END_TEST

START_TEST(adopt__refusals)
{
    start();
    write_config(0, "");
    use(0);
    CK_SILT(4, "", "start siltd with these settings", "adopt", "s");
    CK_SILT(4, "", "siltd is not running", "release", "s");
    start_archiver(0, "");
    CK_SILT(2, "", "siltd does not archive nokey", "adopt", "nokey");
    CK_SILT(2, "", "", "adopt");
    test_file_write(test_path("none.yaml"), "streams: []\n", 12);
    CK_SILT(2, "", "no control socket", "adopt", "s", "--config", test_path("none.yaml"));
    stop();
}
END_TEST

TEST_MAIN(adopt__takes_over_from_an_archive_that_was_stopped,
          adopt__a_released_stream_is_taken_up_again, adopt__refusals)
