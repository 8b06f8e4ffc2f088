/* E6, K6, F1 and their kind with the real archiver: no room on the disk, a file that may not grow, a map at its limit, no file descriptors, no address space. The
 * policy: trimming stops, reading goes on, it is said, and when there is room again all goes on by itself; never a crash, never a trim. */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"
#include "rig.h"

#define STREAM "- { match: s, ids: wire, keep: { entries: 5 }, fold-delay: 0s }\n"

/* `silt VERB s` with the rig's settings. */
static void run_silt(struct rig *rig, const char *verb, const char *flag, struct test_outcome *ret)
{
    const char *argv[] = {"silt", verb, "s", "--config", rig->config, flag, NULL};
    test_program(ret, argv, NULL, NULL, 60000);
}

static bool status_says(struct rig *rig, const char *words)
{
    struct test_outcome outcome;
    run_silt(rig, "status", NULL, &outcome);
    bool said = strstr(outcome.out, words) || strstr(outcome.err, words);
    if (!said) fprintf(stderr, "%d: %s%s", outcome.code, outcome.out, outcome.err);
    test_outcome_release(&outcome);
    return said;
}

static uint64_t count_read(struct rig *rig)
{
    struct test_outcome outcome;
    run_silt(rig, "read", "--count", &outcome);
    uint64_t count = outcome.code == 0 ? strtoull(outcome.out, NULL, 10) : 0;
    if (outcome.code != 0) fprintf(stderr, "read: %d: %s", outcome.code, outcome.err);
    test_outcome_release(&outcome);
    return count;
}

/* A siltd that has settled with 200 entries and then meets the limit. */
static void begin(struct rig *rig, const char *fault)
{
    rig_start(rig, "", STREAM);
    rig_add(rig, "s", 1, 200);
    rig_siltd(rig, fault != NULL, fault); /* a limit would be one for the journal, too */
    TEST_WAIT(rig_length(rig, "s") == 5, 30000);
}

/* More comes: it is said, nothing goes, everything can be read. */
static void meet(struct rig *rig, const char *code)
{
    char words[64];
    snprintf(words, sizeof words, "code=%s", code);
    rig_add(rig, "s", 201, 1500);
    TEST_WAIT(rig_has_said(rig, words), 30000);
    ck_assert(test_child_running(&rig->child));
    ck_assert_int_eq(rig_length(rig, "s"), 1305);
    rig_add(rig, "s", 1501, 1600);
    ck_assert_uint_eq(count_read(rig), 1600);
}

static void end(struct rig *rig)
{
    TEST_WAIT(rig_length(rig, "s") == 5, 40000);
    TEST_WAIT(rig_has_said(rig, "event=back"), 30000);
    ck_assert_int_eq(rig_end(rig, SIGTERM), 0);
    ck_assert_str_eq(rig_history(rig, "s", 1600), "");
    rig_release(rig);
}

START_TEST(siltd_full__K6_a_full_disk_stops_trims_is_told_and_passes)
{
    static struct rig rig;
    char fault[300];
    snprintf(fault, sizeof fault, "SILT_SHIM_WHILE=%s:write:ENOSPC", test_path("full"));
    begin(&rig, fault);
    test_file_write(test_path("full"), "", 0);
    meet(&rig, "SILT_ERR_DISK_FULL");
    ck_assert(status_says(&rig, "no space left"));
    struct test_outcome outcome;
    ck_assert_int_eq(rig_end(&rig, SIGTERM), 0);
    /* Once: a code of its own. */
    rig_once(&rig, true, fault, &outcome);
    ck_assert_msg(outcome.code == 7, "%d: %s", outcome.code, outcome.err);
    ck_assert_msg(strstr(outcome.err, "o space left") != NULL, "%s", outcome.err);
    ck_assert_int_eq(rig_length(&rig, "s"), 1405);
    test_outcome_release(&outcome);
    unlink(test_path("full"));
    rig_siltd(&rig, true, fault);
    TEST_WAIT(rig_length(&rig, "s") == 5, 40000);
    /* And once more, now without a new start. */
    test_file_write(test_path("full"), "", 0);
    rig_add(&rig, "s", 1601, 1700);
    TEST_WAIT(rig_has_said(&rig, "code=SILT_ERR_DISK_FULL"), 30000);
    ck_assert_int_eq(rig_length(&rig, "s"), 105);
    unlink(test_path("full"));
    TEST_WAIT(rig_length(&rig, "s") == 5, 40000);
    ck_assert_int_eq(rig_end(&rig, SIGTERM), 0);
    ck_assert_str_eq(rig_history(&rig, "s", 1700), "");
    rig_release(&rig);
}
END_TEST

/* The kernel takes half and says so: LMDB calls that an I/O error, and the archive is opened anew each time. */
START_TEST(siltd_full__E6_short_writes_stop_trims_and_pass)
{
    static struct rig rig;
    char fault[300];
    snprintf(fault, sizeof fault, "SILT_SHIM_WHILE=%s:write:short", test_path("full"));
    begin(&rig, fault);
    test_file_write(test_path("full"), "", 0);
    meet(&rig, "SILT_ERR_STORE_LOST");
    unlink(test_path("full"));
    end(&rig);
}
END_TEST

static void limit_of(pid_t pid, __rlimit_resource_t what, rlim_t soft)
{
    struct rlimit limit;
    if (prlimit(pid, what, NULL, &limit) != 0) test_die("prlimit");
    limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
    if (prlimit(pid, what, &limit, NULL) != 0) test_die("prlimit");
}

/* Files may not grow; the signal that comes with it is not heard. */
START_TEST(siltd_full__E6_the_limit_of_file_size_stops_trims_and_passes)
{
    static struct rig rig;
    struct stat st;
    begin(&rig, NULL);
    ck_assert_int_eq(stat(test_path("root/archive/archive-1.mdb"), &st), 0);
    limit_of(rig.child.pid, RLIMIT_FSIZE, (rlim_t)st.st_size);
    meet(&rig, "SILT_ERR_DISK_FULL");
    limit_of(rig.child.pid, RLIMIT_FSIZE, RLIM_INFINITY);
    end(&rig);
}
END_TEST

/* A small file system of its own, where we may make one; it then has the real short writes and counts of free blocks. */
START_TEST(siltd_full__E6_a_small_file_system_fills_up_and_is_emptied)
{
    static struct rig rig;
    char filler[200];
    size_t size = 600u << 10;
    rig_start(&rig, "", STREAM);
    /* In a mount namespace of this test's own: it goes with it. */
    bool mounted = unshare(CLONE_NEWNS) == 0 &&
                   mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                   mount("tmpfs", rig.root, "tmpfs", 0, "size=1m,mode=755") == 0;
    snprintf(filler, sizeof filler, "%s/filler", rig.root);
    if (!mounted)
        fprintf(stderr, "# no file system of its own here: the limit of file size again\n");
    rig_add(&rig, "s", 1, 200);
    rig_siltd(&rig, false, NULL);
    TEST_WAIT(rig_length(&rig, "s") == 5, 30000);
    struct stat st;
    ck_assert_int_eq(stat(test_path("root/archive/archive-1.mdb"), &st), 0);
    if (mounted) {
        char *bytes = calloc(1, 4096);
        FILE *file = fopen(filler, "w");
        for (size_t i = 0; file && i < size * 2 / 4096 && fwrite(bytes, 4096, 1, file) == 1; i++)
            if (fflush(file) != 0) break;
        if (file) fclose(file);
        free(bytes);
    } else {
        limit_of(rig.child.pid, RLIMIT_FSIZE, (rlim_t)st.st_size);
    }
    meet(&rig, "SILT_ERR_DISK_FULL");
    if (mounted)
        unlink(filler);
    else
        limit_of(rig.child.pid, RLIMIT_FSIZE, RLIM_INFINITY);
    TEST_WAIT(rig_length(&rig, "s") == 5, 40000);
    ck_assert_int_eq(rig_end(&rig, SIGTERM), 0);
    ck_assert_str_eq(rig_history(&rig, "s", 1600), "");
    if (mounted) umount2(rig.root, MNT_DETACH);
    rig_release(&rig);
}
END_TEST

/* No descriptor for a new connection, nor for anything else. */
START_TEST(siltd_full__no_file_descriptors_stop_trims_and_pass)
{
    static struct rig rig;
    begin(&rig, NULL);
    limit_of(rig.child.pid, RLIMIT_NOFILE, 3);
    test_cmd(&rig.server, "CLIENT KILL TYPE normal SKIPME yes");
    rig_add(&rig, "s", 201, 1500);
    TEST_WAIT(rig_has_said(&rig, "event=waiting"), 30000);
    ck_assert(test_child_running(&rig.child));
    ck_assert_int_ge(rig_length(&rig, "s"), 1305);
    rig_add(&rig, "s", 1501, 1600);
    ck_assert_uint_eq(count_read(&rig), 1600);
    limit_of(rig.child.pid, RLIMIT_NOFILE, 1024);
    end(&rig);
}
END_TEST

/* F1: the map's limit is named, and raising it is all that is needed. */
START_TEST(siltd_full__F1_a_full_map_stops_trims_names_the_limit_and_passes)
{
    static struct rig rig;
    struct test_outcome outcome;
    char wrong[200];
    rig_start(&rig, ", map-limit: 1MiB", STREAM);
    rig_add(&rig, "s", 1, 200000);
    rig_once(&rig, true, NULL, &outcome);
    struct stat st;
    ck_assert_int_eq(stat(test_path("root/archive/archive-1.mdb"), &st), 0);
    ck_assert_msg(outcome.code == 7, "%d: %s", (int)st.st_size, outcome.err);
    ck_assert_ptr_nonnull(strstr(outcome.err, "map-limit"));
    ck_assert_ptr_nonnull(strstr(outcome.err, "1048576"));
    test_outcome_release(&outcome);
    ck_assert_uint_ge(rig_archived(rig.archive, "s", wrong) + 1, rig_first(&rig, "s"));
    ck_assert_str_eq(wrong, "");
    ck_assert_uint_eq(count_read(&rig), 200000);
    rig_settings(&rig, ", map-limit: 64MiB", STREAM);
    rig_once(&rig, true, NULL, &outcome);
    ck_assert_msg(outcome.code == 0, "%d: %s", outcome.code, outcome.err);
    test_outcome_release(&outcome);
    ck_assert_int_eq(rig_length(&rig, "s"), 5);
    ck_assert_str_eq(rig_history(&rig, "s", 200000), "");
    rig_release(&rig);
}
END_TEST

/* Less and less address space: it works with a smaller map, or says that there is no memory. */
START_TEST(siltd_full__little_address_space_is_used_or_refused)
{
    static struct rig rig;
    size_t refused = 0, done = 0;
    uint64_t n = 0;
    if (case_price() > 1) return; /* a sanitizer wants terabytes */
    rig_start(&rig, "", STREAM);
    for (unsigned mib = 8; mib <= 1400; mib += mib < 120 ? (test_long() ? 1 : 16) : 320) {
        char command[600];
        struct test_outcome outcome;
        rig_add(&rig, "s", n + 1, n + 100);
        n += 100;
        snprintf(command, sizeof command, "ulimit -v %u; exec %s --config %s --once", mib * 1024,
                 test_program_path("siltd"), rig.config);
        const char *argv[] = {"sh", "-c", command, NULL};
        test_program(&outcome, argv, NULL, NULL, 60000);
        /* 127: the dynamic loader had no room for the libraries. */
        ck_assert_msg(outcome.code == 0 || outcome.code == 7 || outcome.code == 127,
                      "%u MiB: code %d, signal %d: %s", mib, outcome.code, outcome.signal,
                      outcome.err);
        ck_assert(outcome.code == 0 || outcome.err_len > 0);
        refused += outcome.code != 0;
        done += outcome.code == 0;
        test_outcome_release(&outcome);
        ck_assert_str_eq(rig_history(&rig, "s", n), "");
    }
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_gt(done, 0);
    rig_release(&rig);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *tests[] = {
        siltd_full__K6_a_full_disk_stops_trims_is_told_and_passes,
        siltd_full__E6_short_writes_stop_trims_and_pass,
        siltd_full__E6_the_limit_of_file_size_stops_trims_and_passes,
        siltd_full__E6_a_small_file_system_fills_up_and_is_emptied,
        siltd_full__no_file_descriptors_stop_trims_and_pass,
        siltd_full__F1_a_full_map_stops_trims_names_the_limit_and_passes,
        siltd_full__little_address_space_is_used_or_refused,
    };
    return case_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
