/* An archive opened, made, refused: each refusal its own code, nothing changed by it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/store_priv.h"
#include "harness/harness.h"

static enum silt_status open_as(const char *dir, bool write, bool create, struct silt_store **ret,
                                struct silt_err *err)
{
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    options.write = write;
    options.create = create;
    return silt_store_open(dir, &options, ret, err);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

START_TEST(store__makes_an_archive_and_finds_it_again)
{
    const char *dir = test_path("a");
    struct silt_store *store;
    struct silt_err err;
    struct silt_meta_row made, found;
    ck_assert_int_eq(open_as(dir, true, true, &store, &err), SILT_OK);
    ck_assert_int_eq(silt_store_meta(store, &made, &err), SILT_OK);
    silt_store_close(store);
    ck_assert_uint_eq(strlen(made.uuid), 36);
    ck_assert_int_eq(made.uuid[14], '4');
    ck_assert_uint_eq(made.version, SILT_FORMAT_VERSION);
    ck_assert_uint_eq(made.epoch, 1);
    ck_assert_uint_eq(made.pid_namespace, silt_pid_namespace());
    ck_assert_int_eq(open_as(dir, false, false, &store, &err), SILT_OK);
    ck_assert_int_eq(silt_store_meta(store, &found, &err), SILT_OK);
    silt_store_close(store);
    ck_assert_str_eq(made.uuid, found.uuid);
    char *current = test_file_read(test_path("a/current"), NULL);
    ck_assert_str_eq(current, "archive-1.mdb\n");
    free(current);
    ck_assert_int_eq(access(test_path("a/archive-1.mdb.new"), F_OK), -1);
}
END_TEST

START_TEST(store__modes_are_never_wider_than_stated)
{
    struct silt_store *store;
    umask(0);
    ck_assert_int_eq(open_as(test_path("open"), true, true, &store, NULL), SILT_OK);
    silt_store_close(store);
    ck_assert_uint_eq(mode_of(test_path("open")), 0750);
    ck_assert_uint_eq(mode_of(test_path("open/archive-1.mdb")), 0640);
    ck_assert_uint_eq(mode_of(test_path("open/archive-1.mdb-lock")), 0640);
    ck_assert_uint_eq(mode_of(test_path("open/current")), 0640);
    ck_assert_uint_eq(mode_of(test_path("open/lock")), 0640);
    umask(077);
    ck_assert_int_eq(open_as(test_path("closed"), true, true, &store, NULL), SILT_OK);
    silt_store_close(store);
    ck_assert_uint_eq(mode_of(test_path("closed")), 0700);
    ck_assert_uint_eq(mode_of(test_path("closed/archive-1.mdb")), 0600);
}
END_TEST

START_TEST(store__nothing_there_is_told_and_nothing_is_made)
{
    struct silt_store *store;
    struct silt_err err;
    ck_assert_int_eq(open_as(test_path("no"), false, false, &store, &err), SILT_ERR_NO_ARCHIVE);
    ck_assert_ptr_nonnull(strstr(err.sentence, test_path("no")));
    ck_assert_int_eq(open_as(test_path("no"), true, false, &store, &err), SILT_ERR_NO_ARCHIVE);
    ck_assert_int_eq(access(test_path("no"), F_OK), -1);
    ck_assert_int_eq(mkdir(test_path("empty"), 0700), 0);
    ck_assert_int_eq(open_as(test_path("empty"), false, false, &store, &err), SILT_ERR_NO_ARCHIVE);
    ck_assert_int_eq(open_as(test_path("empty"), true, false, &store, &err), SILT_ERR_NO_ARCHIVE);
    ck_assert_int_eq(rmdir(test_path("empty")), 0);
    ck_assert_int_eq(open_as(test_path("no/deeper"), true, true, &store, &err), SILT_ERR_IO);
}
END_TEST

START_TEST(store__a_file_is_no_archive)
{
    struct silt_store *store;
    struct silt_err err;
    test_file_write(test_path("file"), "hello", 5);
    ck_assert_int_eq(open_as(test_path("file"), true, true, &store, &err), SILT_ERR_NOT_ARCHIVE);
    ck_assert_int_eq(open_as(test_path("file"), false, false, &store, &err), SILT_ERR_NOT_ARCHIVE);
}
END_TEST

/* Each is named by `current` like a real one. */
START_TEST(store__foreign_bytes_are_no_archive_and_stay_as_they_are)
{
    static const char text[] = "SQLite format 3, or any other file that is longer than a header";
    struct silt_store *store;
    const struct {
        const void *at;
        size_t len;
    } rows[] = {{"", 0}, {"x", 1}, {text, sizeof text}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *dir = test_path("foreign%zu", i);
        const char *file = test_path("foreign%zu/archive-1.mdb", i);
        size_t len;
        ck_assert_int_eq(mkdir(dir, 0750), 0);
        test_file_write(test_path("foreign%zu/current", i), "archive-1.mdb\n", 14);
        test_file_write(file, rows[i].at, rows[i].len);
        ck_assert_int_eq(open_as(dir, false, false, &store, NULL), SILT_ERR_NOT_ARCHIVE);
        ck_assert_int_eq(open_as(dir, true, true, &store, NULL), SILT_ERR_NOT_ARCHIVE);
        char *after = test_file_read(file, &len);
        ck_assert_uint_eq(len, rows[i].len);
        free(after);
    }
}
END_TEST

START_TEST(store__a_second_writer_in_this_process_is_refused_by_name)
{
    const char *dir = test_path("a");
    struct silt_store *first, *second, *reader;
    struct silt_err err;
    char pid[32];
    snprintf(pid, sizeof pid, "(%ld)", (long)getpid());
    ck_assert_int_eq(open_as(dir, true, true, &first, &err), SILT_OK);
    ck_assert_int_eq(open_as(dir, true, true, &second, &err), SILT_ERR_HELD);
    ck_assert_ptr_nonnull(strstr(err.sentence, pid));
    ck_assert_int_ne(err.hint[0], '\0');
    ck_assert_int_eq(open_as(dir, false, false, &reader, &err), SILT_OK);
    silt_store_close(reader);
    ck_assert_int_eq(open_as(dir, true, true, &second, &err), SILT_ERR_HELD);
    silt_store_close(first);
    ck_assert_int_eq(open_as(dir, true, true, &second, &err), SILT_OK);
    silt_store_close(second);
}
END_TEST

/* A child that holds the archive's lock until it is killed. */
static pid_t hold_in_child(const char *dir)
{
    int ends[2];
    char byte;
    if (pipe(ends) != 0) test_die("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        struct silt_store *store;
        if (open_as(dir, true, true, &store, NULL) != SILT_OK || write(ends[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1) test_die("the child did not get the lock");
    close(ends[0]);
    return pid;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

START_TEST(store__a_second_writer_in_another_process_is_refused_by_name)
{
    const char *dir = test_path("a");
    struct silt_store *store;
    struct silt_err err;
    char name[32];
    pid_t pid = hold_in_child(dir);
    snprintf(name, sizeof name, "process %ld", (long)pid);
    ck_assert_int_eq(open_as(dir, true, true, &store, &err), SILT_ERR_HELD);
    ck_assert_ptr_nonnull(strstr(err.sentence, name));
    ck_assert_int_eq(silt_status_exit_code(err.code), 6);
    end_child(pid);
    ck_assert_int_eq(open_as(dir, true, true, &store, &err), SILT_OK); /* kill -9 leaves no lock */
    silt_store_close(store);
}
END_TEST

/* F4: the holder writes its PID namespace into the lock; a test cannot make one without rights, so it writes another's number. */
START_TEST(store__a_reader_of_another_pid_namespace_is_refused_while_held)
{
    const char *dir = test_path("a");
    struct silt_store *store;
    struct silt_err err;
    pid_t pid = hold_in_child(dir);
    char line[64];
    int len = snprintf(line, sizeof line, "%10ld %20llu\n", (long)pid, 12345ULL);
    int fd = open(test_path("a/lock"), O_WRONLY);
    ck_assert_int_eq(pwrite(fd, line, (size_t)len, 0), len);
    close(fd);
    ck_assert_int_eq(open_as(dir, false, false, &store, &err), SILT_ERR_HELD);
    ck_assert_ptr_nonnull(strstr(err.sentence, "namespace"));
    end_child(pid);
    ck_assert_int_eq(open_as(dir, false, false, &store, &err), SILT_OK);
    silt_store_close(store);
}
END_TEST

static enum silt_status set_namespace(void *ctx, struct silt_kv_txn *txn, struct silt_err *err)
{
    struct silt_meta_row meta;
    enum silt_status status = silt_txn_meta(txn, &meta, err);
    meta.pid_namespace = *(const uint64_t *)ctx;
    return status == SILT_OK ? silt_txn_put_meta(txn, &meta, err) : status;
}

START_TEST(store__the_next_holder_overwrites_the_namespace)
{
    const char *dir = test_path("a");
    struct silt_store *store;
    struct silt_meta_row meta;
    uint64_t other = 12345;
    ck_assert_int_eq(open_as(dir, true, true, &store, NULL), SILT_OK);
    ck_assert_int_eq(silt_env_write(store, set_namespace, &other, NULL), SILT_OK);
    silt_store_close(store);
    ck_assert_int_eq(open_as(dir, true, false, &store, NULL), SILT_OK);
    ck_assert_int_eq(silt_store_meta(store, &meta, NULL), SILT_OK);
    ck_assert_uint_eq(meta.pid_namespace, silt_pid_namespace());
    silt_store_close(store);
}
END_TEST

START_TEST(store__a_newer_format_is_refused_and_nothing_changes)
{
    const char *dir = test_path("a");
    struct silt_store *store;
    struct silt_err err;
    struct test_archive archive;
    size_t before_len, after_len;
    test_archive_open(&archive, dir, true, 0);
    struct silt_key key = silt_key_meta();
    struct silt_meta_row meta;
    struct silt_buf row = {0};
    struct silt_kv_txn *txn;
    bool resized;
    ck_assert_int_eq(silt_store_meta(archive.store, &meta, NULL), SILT_OK);
    meta.must_refuse = 1;
    ck_assert_int_eq(silt_meta_row_encode(&meta, silt_key_view(&key), &row), SILT_OK);
    ck_assert_int_eq(silt_kv_write_begin(archive.store->env->kv, &txn, &resized, NULL), SILT_OK);
    ck_assert_int_eq(silt_kv_put(txn, SILT_DB_META, silt_key_view(&key), silt_buf_view(&row), NULL),
                     SILT_OK);
    ck_assert_int_eq(silt_kv_commit(txn, NULL), SILT_OK);
    silt_buf_release(&row);
    test_archive_close(&archive);
    char *before = test_file_read(test_path("a/archive-1.mdb"), &before_len);
    ck_assert_int_eq(open_as(dir, true, true, &store, &err), SILT_ERR_NEWER_FORMAT);
    ck_assert_int_eq(open_as(dir, false, false, &store, &err), SILT_ERR_NEWER_FORMAT);
    char *after = test_file_read(test_path("a/archive-1.mdb"), &after_len);
    ck_assert_uint_eq(before_len, after_len);
    ck_assert_mem_eq(before, after, before_len);
    free(before);
    free(after);
}
END_TEST

START_TEST(store__a_lost_current_is_found_again)
{
    const char *dir = test_path("a");
    struct test_archive archive;
    struct test_stream stream;
    struct silt_store *store;
    char wrong[200];
    test_archive_open(&archive, dir, true, 0);
    test_stream_new(&archive, &stream, "s", NULL);
    test_fold(&archive, &stream, 1, 10);
    test_archive_close(&archive);
    ck_assert_int_eq(unlink(test_path("a/current")), 0);
    store = test_store_reader(dir);
    ck_assert_uint_eq(test_archive_count(store, "s", wrong), 10);
    ck_assert_str_eq(wrong, "");
    silt_store_close(store);
    test_file_write(test_path("a/current"), "archive-9.mdb\n", 14);
    store = test_store_reader(dir);
    ck_assert_uint_eq(test_archive_count(store, "s", wrong), 10);
    silt_store_close(store);
    test_archive_open(&archive, dir, true, 0); /* a writer puts it right */
    test_archive_close(&archive);
    char *current = test_file_read(test_path("a/current"), NULL);
    ck_assert_str_eq(current, "archive-1.mdb\n");
    free(current);
}
END_TEST

START_TEST(store__a_reader_writes_nothing_and_gives_out_no_numbers)
{
    struct silt_store *store;
    struct silt_batch *batch;
    struct silt_err err;
    uint64_t number, life;
    ck_assert_int_eq(open_as(test_path("a"), true, true, &store, &err), SILT_OK);
    silt_store_close(store);
    store = test_store_reader(test_path("a"));
    ck_assert_int_eq(silt_batch_new(&batch), SILT_OK);
    ck_assert_int_eq(silt_store_commit(store, batch, &err), SILT_ERR_USAGE);
    ck_assert_int_eq(silt_store_new_stream(store, &number, &life, &err), SILT_ERR_USAGE);
    ck_assert_int_eq(silt_store_new_life(store, &life, &err), SILT_ERR_USAGE);
    ck_assert_int_eq(silt_store_replace(store, &err), SILT_ERR_USAGE);
    silt_batch_free(batch);
    silt_store_close(store);
}
END_TEST

START_TEST(store__numbers_given_out_are_durable_with_the_next_commit)
{
    struct test_archive archive;
    struct test_stream a, b;
    struct silt_meta_row meta;
    uint64_t life;
    test_archive_open(&archive, test_path("a"), true, 0);
    test_stream_new(&archive, &a, "a", NULL);
    test_stream_new(&archive, &b, "b", NULL);
    ck_assert_int_eq(silt_store_new_life(archive.store, &life, NULL), SILT_OK);
    ck_assert_uint_eq(a.row.number, 1);
    ck_assert_uint_eq(b.row.number, 2);
    ck_assert_uint_eq(life, 3);
    test_fold(&archive, &a, 1, 1);
    ck_assert_int_eq(silt_store_meta(archive.store, &meta, NULL), SILT_OK);
    ck_assert_uint_eq(meta.next_stream, 3);
    ck_assert_uint_eq(meta.next_life, 4);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store__a_directory_without_rights_is_refused)
{
    const char *dir = test_path("shut");
    struct silt_store *store;
    struct silt_err err;
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    test_become_nobody();
    if (chmod(dir, 0555) != 0) ck_assert_int_eq(errno, EPERM); /* it is root's */
    ck_assert_int_eq(open_as(dir, true, true, &store, &err), SILT_ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(err.sentence, dir));
}
END_TEST

START_TEST(store__space_adds_up)
{
    struct test_archive archive;
    struct test_stream stream;
    struct silt_store_space space;
    struct stat st;
    test_archive_open(&archive, test_path("a"), true, 0);
    test_stream_new(&archive, &stream, "s", NULL);
    for (uint64_t i = 0; i < 20; i++)
        test_fold(&archive, &stream, i * 50 + 1, i * 50 + 50);
    ck_assert_int_eq(silt_store_space(archive.store, &space, NULL), SILT_OK);
    ck_assert_int_eq(stat(test_path("a/archive-1.mdb"), &st), 0);
    ck_assert_uint_eq(space.file_bytes, (uint64_t)st.st_size);
    ck_assert_uint_gt(space.free_bytes, 0); /* what each commit replaced */
    ck_assert_uint_gt(space.used_bytes, 4096);
    ck_assert_uint_le(space.used_bytes + space.free_bytes, space.map_bytes);
    ck_assert_uint_eq(space.map_bytes, 1ULL << 30);
    ck_assert_uint_ge(space.readers, 1);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store__no_memory_leaves_nothing_open)
{
    const char *dir = test_path("a");
    struct silt_store *store;
    ck_assert_int_eq(open_as(dir, true, true, &store, NULL), SILT_OK);
    silt_store_close(store);
    for (size_t n = 1;; n++) {
        struct test_heap heap;
        struct silt_meta_row meta;
        store = NULL;
        test_heap_start(&heap, n);
        enum silt_status status = open_as(dir, true, false, &store, NULL);
        if (status == SILT_OK) status = silt_store_meta(store, &meta, NULL);
        silt_store_close(store);
        test_heap_stop();
        ck_assert_uint_eq(heap.live_count, 0);
        if (!heap.failed_count) break;
        ck_assert(status == SILT_ERR_MEMORY || status == SILT_OK); /* a leftover may stay */
    }
    ck_assert_int_eq(open_as(dir, true, false, &store, NULL), SILT_OK); /* no lock is left */
    silt_store_close(store);
}
END_TEST

TEST_MAIN(store__makes_an_archive_and_finds_it_again, store__modes_are_never_wider_than_stated,
          store__nothing_there_is_told_and_nothing_is_made, store__a_file_is_no_archive,
          store__foreign_bytes_are_no_archive_and_stay_as_they_are,
          store__a_second_writer_in_this_process_is_refused_by_name,
          store__a_second_writer_in_another_process_is_refused_by_name,
          store__a_reader_of_another_pid_namespace_is_refused_while_held,
          store__the_next_holder_overwrites_the_namespace,
          store__a_newer_format_is_refused_and_nothing_changes,
          store__a_lost_current_is_found_again,
          store__a_reader_writes_nothing_and_gives_out_no_numbers,
          store__numbers_given_out_are_durable_with_the_next_commit,
          store__a_directory_without_rights_is_refused, store__space_adds_up,
          store__no_memory_leaves_nothing_open)
