/* kill -9, or a failure of what stands there, at every fault point of the cycle, at its first and at later passages; then a start without faults: every entry is
 * there once, in order, byte for byte (promise 6), nothing is counted as missing, and no doubt arises. The archiver runs in a child of the test, so that it
 * can be killed. */
#include "stand.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct stand stand;
static struct test_oracle oracle;

struct scene {
    const char *streams;
    const char *action; /* "kill" or "fail" */
    bool group;         /* a consumer group that holds part of the trim */
    unsigned passages;
};

static void write_entries(uint64_t from, uint64_t to)
{
    for (uint64_t ms = from; ms <= to; ms++) {
        stand_add(&stand, "s", &oracle, ms, ms);
        if (ms % 3 == 0) stand_add(&stand, "t", NULL, ms, ms);
    }
}

static void fresh(const struct scene *scene)
{
    test_cmd(&stand.server, "FLUSHALL");
    test_oracle_release(&oracle);
    test_remove_all(stand.archive);
    write_entries(1, 40);
    if (scene->group) test_cmd(&stand.server, "XGROUP CREATE s g 25-0");
}

/* The story of one run: a first fold, more entries, a second. Gives how often the child was killed or ended with a failure. */
static int story(const char *setting)
{
    int struck = 0;
    for (int part = 0; part < 2; part++) {
        if (part == 1) write_entries(41, 70);
        int status = stand_child(&stand, struck ? NULL : setting);
        if ((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
            (WIFEXITED(status) && WEXITSTATUS(status) == 3)) {
            struck++;
            status = stand_child(&stand, NULL);
        }
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                      "%s: the archiver ended with %x", setting ? setting : "no fault", status);
    }
    return struck;
}

static void check_story(const char *setting)
{
    struct silt_gap_row gap;
    const char *difference = stand_difference(&stand, "s", &oracle);
    ck_assert_msg(!difference[0], "%s: %s", setting, difference);
    ck_assert_msg(!stand_gap(&stand, "s", 0, &gap), "%s: a false gap", setting);
    const struct silt_stream_row *row = stand_row(&stand, "s");
    ck_assert_msg(row->verdict == SILT_VERDICT_CLEAR, "%s: %s", setting,
                  silt_verdict_name(row->verdict));
    ck_assert_msg(row->folded_entries == stand_archived(&stand, "s"), "%s: folded twice", setting);
}

/* A kill is not a power loss: what was written is there, synced or not. So the archive may lie in memory, and a sweep takes seconds. */
static void use_memory(void)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/silt-kill-sweep-%d", (int)getpid());
    if (access("/dev/shm", W_OK) == 0) snprintf(stand.archive, sizeof stand.archive, "%s", path);
}

static void sweep(const struct scene *scene)
{
    struct test_faults faults;
    unsigned killed = 0;
    if (!test_faults_built_in()) return;
    stand = (struct stand){0};
    use_memory();
    stand_start(&stand, scene->streams); /* reads the configuration */
    stand_close(&stand);
    fresh(scene);
    const char *log = test_path("faults");
    char setting[200];
    snprintf(setting, sizeof setting, "SILT_FAULT_LOG=%s", log);
    ck_assert_int_eq(story(setting), 0);
    check_story("no fault");
    long long live = test_cmd_int(&stand.server, "XLEN s");
    test_faults_learn(&faults, log, scene->passages);
    for (size_t i = 0; i < faults.count; i++) {
        /* it ends in doubt, and is meant to (test_cycle.c) */
        if (strcmp(faults.points[i].name, "read-back-differs") == 0 &&
            strcmp(scene->action, "fail") == 0)
            continue;
        fresh(scene);
        snprintf(setting, sizeof setting, "%s", test_faults_setting(&faults, i, scene->action));
        killed += story(setting) > 0;
        check_story(setting);
        ck_assert_msg(test_cmd_int(&stand.server, "XLEN s") == live,
                      "%s: %lld live, should be %lld", setting,
                      test_cmd_int(&stand.server, "XLEN s"), live);
    }
    /* Each learnt passage is reached again: the run up to it is the same. (A failure may be one that the cycle gets over by itself.) */
    if (strcmp(scene->action, "kill") == 0) ck_assert_uint_eq(killed, faults.count);
    ck_assert_uint_gt(faults.count, 15);
    test_faults_release(&faults);
    test_oracle_release(&oracle);
    test_remove_all(stand.archive);
    stand_release(&stand);
}

START_TEST(kill_sweep__continuous)
{
    sweep(&(struct scene){
        .action = "kill",
        .streams =
            "- { match: s, ids: wire, keep: { entries: 4 } }\n- { match: t, ids: wire, keep: { entries: 2 }, seam: best-effort }",
        .passages = test_long() ? 0 : 2});
}
END_TEST

START_TEST(kill_sweep__on_trim_with_a_group_that_holds)
{
    sweep(&(struct scene){
        .action = "kill",
        .streams =
            "- { match: s, ids: wire, fold: on-trim, keep: { entries: 4 } }\n- { match: t, ids: wire, keep: { bytes: 60 } }",
        .group = true,
        .passages = test_long() ? 0 : 1});
}
END_TEST

START_TEST(kill_sweep__without_trims)
{
    sweep(&(struct scene){.action = "kill",
                          .streams = "- { match: s, ids: wire }\n- { match: t, ids: wire }",
                          .passages = test_long() ? 0 : 1});
}
END_TEST

START_TEST(kill_sweep__without_markers)
{
    sweep(&(struct scene){.action = "kill",
                          .streams = "- { match: s, ids: wire, claim: off, keep: { entries: 4 } }\n"
                                     "- { match: t, ids: wire, claim: key, keep: { entries: 2 } }",
                          .passages = test_long() ? 0 : 1});
}
END_TEST

START_TEST(fail_sweep__continuous)
{
    sweep(&(struct scene){.action = "fail",
                          .streams =
                              "- { match: s, ids: wire, keep: { entries: 4 } }\n- { match: t, ids: "
                              "wire, keep: { entries: 2 }, seam: strict }",
                          .passages = test_long() ? 0 : 1});
}
END_TEST

TEST_MAIN(kill_sweep__continuous, kill_sweep__on_trim_with_a_group_that_holds,
          kill_sweep__without_trims, kill_sweep__without_markers, fail_sweep__continuous)
