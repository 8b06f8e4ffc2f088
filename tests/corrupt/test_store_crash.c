/* Promise 6 for the store: kill -9 at every fault point of creating, committing and replacing, each passage of it; the next start
 * finds every committed entry once, and only whole files. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/alloc.h"
#include "format/check.h"
#include "format/store_priv.h"
#include "harness/harness.h"

#define FOLDS 4
#define STEP 30

/* Says on the pipe how many folds were reported as committed. */
static void say(int fd, uint8_t done)
{
    if (write(fd, &done, 1) != 1) _exit(3);
}

/* Makes an archive, folds, replaces the file, folds on. */
static void work(const char *dir, int fd)
{
    struct test_archive archive;
    struct test_stream stream;
    struct silt_err err;
    test_archive_open(&archive, dir, true, 0);
    test_stream_new(&archive, &stream, "s", "EVT");
    for (uint8_t i = 0; i < FOLDS; i++) {
        test_fold(&archive, &stream, i * STEP + 1u, i * STEP + STEP);
        say(fd, (uint8_t)(i + 1));
        if (i % 2 == 1 && silt_store_replace(archive.store, &err) != SILT_OK) _exit(4);
    }
    struct silt_receipt *receipt;
    if (silt_store_read_back(archive.store, stream.row.number, SILT_WIRE_ID_MIN,
                             stream.row.watermark, UINT64_MAX, &receipt, &err) != SILT_OK)
        _exit(5);
    silt_receipt_free(receipt);
    test_archive_close(&archive);
}

/* Runs the work in a child under a SILT_FAULT setting; gives the number of folds it reported. */
static uint8_t run(const char *dir, const char *name, const char *value, bool killed)
{
    int ends[2], status;
    uint8_t done = 0, byte;
    if (pipe(ends) != 0) test_die("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        setenv(name, value, 1);
        work(dir, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    while (read(ends[0], &byte, 1) == 1)
        done = byte;
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    if (killed)
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
        ck_assert_int_eq(status, 0);
    return done;
}

static void no_finding(void *ctx, const struct silt_finding *finding)
{
    fprintf(stderr, "%s: %s: %s\n", (const char *)ctx, silt_finding_name(finding->kind),
            finding->text);
    _exit(6);
}

/* In a child of its own, since passages of points are counted per process. */
static void claim(bool holds, const char *setting, const char *what)
{
    if (holds) return;
    fprintf(stderr, "%s: %s\n", setting, what);
    _exit(7);
}

/* What a reader, and then the next writer, finds: all that was reported, at most one fold more, nothing wrong. */
static void look(const char *dir, uint8_t done, char *setting)
{
    char wrong[200];
    struct silt_check_sum sum;
    struct silt_err err = {0};
    struct silt_check_options options = {
        .range = SILT_RANGE_ALL, .found = no_finding, .ctx = setting};
    for (int writer = 0; writer < 2; writer++) {
        struct silt_store *store = NULL;
        struct silt_store_options how = SILT_STORE_OPTIONS_DEFAULT;
        how.write = how.create = writer == 1;
        enum silt_status status = silt_store_open(dir, &how, &store, &err);
        if (status == SILT_ERR_NO_ARCHIVE && writer == 0 && done == 0) continue; /* too early */
        claim(status == SILT_OK, setting, err.sentence);
        uint64_t count = test_archive_count(store, "s", wrong);
        claim((done == 0 && count == 0) || !wrong[0], setting, wrong);
        claim(count == done * STEP || count == (done + 1u) * STEP, setting, "wrong count");
        claim(silt_check(store, &options, &sum, &err) == SILT_OK, setting, err.sentence);
        silt_store_close(store);
    }
}

/* After the writer's start: one file, named by `current`, and nothing half-made. */
static void look_at_files(const char *dir, const char *setting)
{
    char name[SILT_FILE_NAME_MAX], other[SILT_FILE_NAME_MAX];
    claim(silt_dir_has_current(dir) && silt_dir_current(dir, name, NULL) == SILT_OK, setting,
          "no current");
    for (int i = 1; i <= FOLDS; i++) {
        silt_file_name((uint64_t)i, other);
        char *made = silt_path_join(dir, other, ".new");
        char *path = silt_path_join(dir, other, NULL);
        claim(access(made, F_OK) != 0, setting, "a half-made file is left");
        claim((access(path, F_OK) == 0) == (strcmp(name, other) == 0), setting, other);
        silt_free(made);
        silt_free(path);
    }
}

static void look_in_child(const char *dir, uint8_t done, const char *setting)
{
    int status;
    char copy[160];
    snprintf(copy, sizeof copy, "%s", setting);
    pid_t pid = fork();
    if (pid == 0) {
        look(dir, done, copy);
        look_at_files(dir, copy);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0, "%s: what is left is not right (%d)", setting, status);
}

#ifdef SILT_FAULTPOINTS
START_TEST(store_crash__kill_at_every_point)
{
    struct test_faults faults;
    const char *log = test_path("log");
    ck_assert_uint_eq(run(test_path("good"), "SILT_FAULT_LOG", log, false), FOLDS);
    look_in_child(test_path("good"), FOLDS, "none");
    test_faults_learn(&faults, log, 0);
    ck_assert_uint_ge(faults.count, 30);
    for (size_t i = 0; i < faults.count; i++) {
        char setting[160];
        const char *dir = test_path("at");
        snprintf(setting, sizeof setting, "%s", test_faults_setting(&faults, i, "kill"));
        uint8_t done = run(dir, "SILT_FAULT", strchr(setting, '=') + 1, true);
        look_in_child(dir, done, setting);
        test_remove_all(dir);
    }
    test_faults_release(&faults);
}
END_TEST

/* Every point of a replacement that can fail, fails: told, nothing lost, the next replacement works. */
START_TEST(store_crash__a_replacement_that_fails_changes_nothing)
{
    static const char *const points[] = {
        "store-replace-copied=fail",        "store-file-sync-fails:5=fail",
        "store-file-sync-fails:6=fail",     "store-replace-before-announce=fail",
        "store-replace-announced=fail",     "store-before-current:2=fail",
        "store-replace-before-remove=fail", "store-file-sync-fails:7=fail",
    };
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        struct test_archive archive;
        struct test_stream stream;
        struct silt_err err = {0};
        char wrong[200];
        const char *dir = test_path("f%zu", i);
        pid_t pid = fork(); /* passages are counted per process */
        if (pid != 0) {
            int status;
            ck_assert_int_eq(waitpid(pid, &status, 0), pid);
            ck_assert_msg(status == 0, "%s: %d", points[i], status);
            continue;
        }
        test_archive_open(&archive, dir, true, 0);
        test_stream_new(&archive, &stream, "s", NULL);
        test_fold(&archive, &stream, 1, 50);
        setenv("SILT_FAULT", points[i], 1);
        if (silt_store_replace(archive.store, &err) == SILT_OK) _exit(1);
        unsetenv("SILT_FAULT");
        if (test_archive_count(archive.store, "s", wrong) != 50 || wrong[0]) _exit(2);
        test_fold(&archive, &stream, 51, 60);
        if (silt_store_replace(archive.store, &err) != SILT_OK) {
            fprintf(stderr, "%s\n", err.sentence);
            _exit(3);
        }
        test_archive_close(&archive);
        test_archive_open(&archive, dir, true, 0);
        if (test_archive_count(archive.store, "s", wrong) != 60 || wrong[0]) _exit(4);
        test_archive_close(&archive);
        _exit(0);
    }
}
END_TEST

TEST_MAIN(store_crash__kill_at_every_point, store_crash__a_replacement_that_fails_changes_nothing)
#else
START_TEST(store_crash__without_fault_points_the_work_runs_through)
{
    ck_assert_uint_eq(run(test_path("good"), "SILT_FAULT_LOG", "", false), FOLDS);
    look_in_child(test_path("good"), FOLDS, "none");
}
END_TEST

TEST_MAIN(store_crash__without_fault_points_the_work_runs_through)
#endif
