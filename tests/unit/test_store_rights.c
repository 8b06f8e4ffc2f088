/* Who may open an archive, what modes its files have, and that root leaves no file behind that its owner cannot open. */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/check.h"
#include "format/store_priv.h"
#include "harness/harness.h"

enum { SOMEBODY = 12345 };

static void fill(const char *dir)
{
    struct test_archive archive;
    struct test_stream stream;
    test_archive_open(&archive, dir, true, 0);
    test_stream_new(&archive, &stream, "s", NULL);
    test_fold(&archive, &stream, 1, 10);
    test_archive_close(&archive);
}

/* As another process; gives its exit code. */
static int in_child(int (*run)(const char *), const char *dir)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) _exit(run(dir));
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) test_die("the child");
    return WEXITSTATUS(status);
}

typedef void each_file(const char *path, const struct stat *st);

static unsigned for_each(const char *dir, each_file *each)
{
    struct stat st;
    unsigned count = 0;
    DIR *entries = opendir(dir);
    ck_assert_ptr_nonnull(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        char path[400];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        ck_assert_int_eq(lstat(path, &st), 0);
        each(path, &st);
        count++;
    }
    closedir(entries);
    return count;
}

static mode_t most;

static void check_mode(const char *path, const struct stat *st)
{
    ck_assert_msg((st->st_mode & 07777) == (0640 & most), "%s is %04o", path, st->st_mode & 07777);
}

START_TEST(store_rights__files_are_0640_and_the_directory_0750_and_no_wider)
{
    static const mode_t masks[] = {0, 022, 027, 077};
    struct stat st;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        const char *dir = test_path("a%zu", i);
        umask(masks[i]);
        most = ~masks[i] & 0777;
        fill(dir);
        struct silt_store *store = test_store_reader(dir);
        silt_store_close(store);
        ck_assert_int_eq(stat(dir, &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, 0750 & most);
        ck_assert_uint_eq(for_each(dir, check_mode),
                          4); /* archive-1.mdb and its lock, current, lock */
    }
}
END_TEST

static const char *owner = "root";

static int try_as_another(const char *dir)
{
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    struct silt_store *store;
    struct silt_err err = {0};
    if (setgid(SOMEBODY) != 0 || setuid(SOMEBODY) != 0) return 9;
    for (int write = 0; write < 2; write++) {
        options.write = write;
        if (silt_store_open(dir, &options, &store, &err) != SILT_ERR_PERMISSION) return 1;
        if (!strstr(err.hint, "same user") || !strstr(err.hint, "silt-serve") ||
            !strstr(err.hint, owner) || !strstr(err.sentence, dir))
            return 2;
    }
    return 0;
}

/* In the archive's group: may read the file, and still not open it, since a reader writes the lock file. No silent way round the locks. */
static int try_as_group(const char *dir)
{
    if (setgid(0) != 0) return 9;
    return try_as_another(dir);
}

START_TEST(store_rights__f7_another_user_is_refused_in_words)
{
    if (geteuid() != 0) TEST_SKIP("only root can become another user");
    const char *dir = test_path("a");
    fill(dir);
    ck_assert_int_eq(chmod(test_scratch(), 0711), 0);
    char *slash, parent[300];
    snprintf(parent, sizeof parent, "%s", test_scratch());
    slash = strrchr(parent, '/');
    *slash = '\0';
    ck_assert_int_eq(chmod(parent, 0711), 0);
    ck_assert_int_eq(in_child(try_as_another, dir), 0);
    ck_assert_int_eq(chmod(dir, 0755), 0); /* the way in is open: the files are not */
    ck_assert_int_eq(in_child(try_as_another, dir), 0);
    ck_assert_int_eq(in_child(try_as_group, dir), 0);
    ck_assert_int_eq(chmod(test_path("a/archive-1.mdb"), 0644), 0);
    ck_assert_int_eq(chmod(test_path("a/current"), 0644), 0);
    ck_assert_int_eq(in_child(try_as_another, dir),
                     0); /* may read, and still not open: a reader writes the lock file */
    ck_assert_int_eq(chmod(parent, 0700), 0);
    owner = "run as the user it belongs to"; /* who that is cannot even be seen */
    ck_assert_int_eq(in_child(try_as_another, dir), 0);
}
END_TEST

static int fill_as_somebody(const char *dir)
{
    if (setgid(SOMEBODY) != 0 || setuid(SOMEBODY) != 0) return 9;
    fill(dir);
    return 0;
}

static void check_owner(const char *path, const struct stat *st)
{
    ck_assert_msg(st->st_uid == SOMEBODY && st->st_gid == SOMEBODY, "%s belongs to %u:%u", path,
                  (unsigned)st->st_uid, (unsigned)st->st_gid);
    check_mode(path, st);
}

static int write_as_somebody(const char *dir)
{
    struct test_archive archive;
    char wrong[200];
    if (setgid(SOMEBODY) != 0 || setuid(SOMEBODY) != 0) return 9;
    test_archive_open(&archive, dir, true, 0);
    test_archive_close(&archive);
    struct silt_store *store = test_store_reader(dir);
    uint64_t count = test_archive_count(store, "s", wrong);
    silt_store_close(store);
    return count == 10 && wrong[0] == '\0' ? 0 : 1;
}

/* The directory is of `somebody`; root reads, verifies and even writes, with the lock files there and without. */
START_TEST(store_rights__f7_root_leaves_owner_and_modes_as_they_were)
{
    if (geteuid() != 0) TEST_SKIP("only root can work on another user's files");
    const char *dir = test_path("a");
    umask(022);
    most = 0755;
    ck_assert_int_eq(mkdir(dir, 0750), 0);
    ck_assert_int_eq(chown(dir, SOMEBODY, SOMEBODY), 0);
    char parent[300];
    snprintf(parent, sizeof parent, "%s", test_scratch());
    ck_assert_int_eq(chmod(parent, 0711), 0);
    *strrchr(parent, '/') = '\0';
    ck_assert_int_eq(chmod(parent, 0711), 0);
    ck_assert_int_eq(in_child(fill_as_somebody, dir), 0);
    for (int round = 0; round < 2; round++) {
        if (round == 1) { /* the first to open after a copy, or a restore */
            ck_assert_int_eq(unlink(test_path("a/archive-1.mdb-lock")), 0);
            ck_assert_int_eq(unlink(test_path("a/lock")), 0);
            ck_assert_int_eq(unlink(test_path("a/current")), 0);
        }
        struct silt_store *store = test_store_reader(dir);
        silt_store_close(store);
        struct test_archive archive;
        test_archive_open(&archive, dir, true, 0);
        test_archive_close(&archive);
        ck_assert_uint_eq(for_each(dir, check_owner), 4);
        ck_assert_int_eq(in_child(write_as_somebody, dir), 0);
    }
}
END_TEST

/* ---- F4: another PID namespace ---- */

static int open_both(const char *dir)
{
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    struct silt_store *store;
    struct silt_err err = {0};
    for (int write = 0; write < 2; write++) {
        options.write = write;
        if (silt_store_open(dir, &options, &store, &err) != SILT_ERR_HELD) return 1;
        if (!strstr(err.sentence, "of another PID namespace")) return 2;
    }
    return 0;
}

/* 99: the kernel does not let us. */
static int open_from_another_namespace(const char *dir)
{
    if (unshare(CLONE_NEWPID) != 0) return 99;
    return in_child(open_both, dir); /* the next child is the first process there */
}

START_TEST(store_rights__f4_an_opener_from_another_pid_namespace_is_refused)
{
    const char *dir = test_path("a");
    struct test_archive archive;
    test_archive_open(&archive, dir, true, 0);
    int code = in_child(open_from_another_namespace, dir);
    test_archive_close(&archive);
    if (code == 99) TEST_SKIP("this user may not make a PID namespace");
    ck_assert_int_eq(code, 0);
}
END_TEST

TEST_MAIN(store_rights__files_are_0640_and_the_directory_0750_and_no_wider,
          store_rights__f7_another_user_is_refused_in_words,
          store_rights__f7_root_leaves_owner_and_modes_as_they_were,
          store_rights__f4_an_opener_from_another_pid_namespace_is_refused)
