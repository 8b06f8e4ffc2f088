/* Two archives and one stream without anybody's `silt adopt` (field report K4): the marker decides, and what an archiver knew before it slept is worth nothing afterwards.
 * Taking over in order is tried in test_adopt.c, the second process on one archive in test_siltd.c. */
#include "stand.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP5 "- { match: s, ids: wire, keep: { entries: 5 } }"
#define SHADOW "- { match: s, ids: wire }"

static struct stand first, second; /* beside one server, that of the first */

static void start(const char *streams)
{
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    stand_start(&first, streams);
}

static void start_second(const char *streams)
{
    second.server = first.server;
    snprintf(second.archive, sizeof second.archive, "%s", test_path("second"));
    stand_open(&second, streams);
}

static void stop(void)
{
    stand_close(&second);
    silt_config_free(second.config);
    stand_release(&first);
}

static enum silt_status run(struct stand *stand)
{
    enum silt_status status = stand_run(stand);
    ck_assert_msg(status == SILT_OK, "%s", stand->err.sentence);
    return stand->works[0]->status;
}

/* Two different archives: who came first keeps the stream, the other one refuses, names both, and changes nothing. */
START_TEST(two_archivers__the_second_archive_refuses_and_names_both)
{
    char at[SILT_WIRE_ID_TEXT], marker[SILT_MARKER_TEXT];
    start(KEEP5);
    stand_add(&first, "s", NULL, 1, 10);
    ck_assert_int_eq(run(&first), SILT_OK);
    snprintf(marker, sizeof marker, "%s", stand_marker(&first, "s", at));
    stand_add(&first, "s", NULL, 11, 20);
    start_second(KEEP5);
    ck_assert_int_eq(run(&second), SILT_ERR_CLAIMED);
    const char *sentence = second.works[0]->err.sentence;
    ck_assert_msg(strstr(sentence, first.archiver->meta.uuid) != NULL, "%s", sentence);
    ck_assert_msg(strstr(sentence, second.archiver->meta.uuid) != NULL, "%s", sentence);
    ck_assert_int_eq(test_cmd_int(&first.server, "XLEN s"), 15);
    ck_assert_uint_eq(stand_archived(&second, "s"), 0);
    ck_assert_str_eq(stand_marker(&first, "s", at), marker);
    ck_assert_int_eq(run(&first), SILT_OK); /* undisturbed */
    ck_assert_int_eq(test_cmd_int(&first.server, "XLEN s"), 5);
    stop();
}
END_TEST

#ifdef SILT_FAULTPOINTS
/* How often this process has passed a point: its child counts on from there. */
static unsigned passed(const char *log, const char *point)
{
    size_t len, n = strlen(point);
    unsigned count = 0;
    char *text = test_file_read(log, &len);
    for (char *line = text; line && *line; line = strchr(line, '\n') + 1)
        count += strncmp(line, point, n) == 0 && line[n] == ' ';
    free(text);
    return count;
}

/* An archiver that sleeps anywhere between its look and its trim, while its marker is destroyed by hand and another archive claims the stream and goes on: awake again,
 * it removes nothing and moves nobody's marker. */
static void sleep_through_a_takeover(const char *point)
{
    char setting[300], paused[200], log[200], at[SILT_WIRE_ID_TEXT], marker[SILT_MARKER_TEXT];
    snprintf(log, sizeof log, "%s", test_path("passages"));
    setenv("SILT_FAULT_LOG", log, 1);
    start(SHADOW);
    snprintf(paused, sizeof paused, "%s", test_path("paused"));
    stand_add(&first, "s", NULL, 1, 10);
    ck_assert_int_eq(run(&first), SILT_OK);
    snprintf(marker, sizeof marker, "%s", stand_marker(&first, "s", at));
    stand_add(&first, "s", NULL, 11, 12);
    stand_close(&first);
    stand_open(&first, KEEP5);
    stand_close(&first);
    snprintf(setting, sizeof setting, "SILT_FAULT=%s:%u=pause:%s", point, passed(log, point) + 1,
             paused);
    pid_t pid = stand_child_start(&first, setting);
    TEST_WAIT(access(paused, F_OK) == 0, 20000);
    kill(pid, SIGSTOP);

    test_cmd(&first.server, "XGROUP DESTROY s %s", marker);
    start_second(SHADOW);
    ck_assert_int_eq(run(&second), SILT_OK);
    stand_add(&first, "s", NULL, 13, 15);
    ck_assert_int_eq(run(&second), SILT_OK);
    snprintf(marker, sizeof marker, "%s", stand_marker(&first, "s", at));
    ck_assert_str_eq(at, "15-0");

    unlink(paused);
    kill(pid, SIGCONT);
    int end = stand_child_wait(pid);
    ck_assert_msg(WIFEXITED(end) && WEXITSTATUS(end) == 3, "%s: %x", point,
                  (unsigned)end); /* it says that it may not */
    ck_assert_int_eq(test_cmd_int(&first.server, "XLEN s"), 15);
    ck_assert_str_eq(stand_marker(&first, "s", at), marker);
    ck_assert_str_eq(at, "15-0");
    ck_assert_uint_eq(stand_archived(&second, "s"), 15);
    stand_open(&first, NULL);
    ck_assert_int_eq(run(&first), SILT_ERR_CLAIMED);
    stop();
}

START_TEST(two_archivers__one_that_slept_after_its_look_trims_nothing)
{
    sleep_through_a_takeover("after-look");
}
END_TEST

START_TEST(two_archivers__one_that_slept_between_commit_and_trim_trims_nothing)
{
    sleep_through_a_takeover("after-commit");
}
END_TEST

START_TEST(two_archivers__one_that_slept_with_its_trim_in_hand_trims_nothing)
{
    sleep_through_a_takeover("before-trim");
}
END_TEST

TEST_MAIN(two_archivers__the_second_archive_refuses_and_names_both,
          two_archivers__one_that_slept_after_its_look_trims_nothing,
          two_archivers__one_that_slept_between_commit_and_trim_trims_nothing,
          two_archivers__one_that_slept_with_its_trim_in_hand_trims_nothing)
#else
TEST_MAIN(two_archivers__the_second_archive_refuses_and_names_both)
#endif
