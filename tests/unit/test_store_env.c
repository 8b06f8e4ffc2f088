/* One environment for a whole process, whatever threads, forks, growth and replacement do to it. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/store_priv.h"
#include "harness/harness.h"

#define THREADS 4

static struct test_archive archive;
static struct test_stream stream;

/* Readers count what they see, again and again; the watermark they saw last must be there. */
struct reader {
    pthread_t thread;
    const char *dir;
    atomic_bool *stop;
    uint64_t rounds;
    uint64_t last;
    char wrong[200];
};

static void *read_on(void *arg)
{
    struct reader *reader = arg;
    struct silt_store *store = test_store_reader(reader->dir);
    do {
        uint64_t count = test_archive_count(store, "s", reader->wrong);
        if (!reader->wrong[0] && count < reader->last)
            snprintf(reader->wrong, sizeof reader->wrong, "%llu entries after %llu",
                     (unsigned long long)count, (unsigned long long)reader->last);
        reader->last = count;
        reader->rounds++;
    } while (!reader->wrong[0] && !atomic_load(reader->stop));
    silt_store_close(store);
    return NULL;
}

static void start_readers(struct reader *readers, const char *dir, atomic_bool *stop)
{
    atomic_init(stop, false);
    for (int i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){.dir = dir, .stop = stop};
        ck_assert_int_eq(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
    }
}

static void stop_readers(struct reader *readers, atomic_bool *stop)
{
    atomic_store(stop, true);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(readers[i].thread, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_str_eq(readers[i].wrong, "");
        ck_assert_uint_gt(readers[i].rounds, 0);
    }
}

static pid_t start_process(const char *dir, const char *stop_file)
{
    pid_t pid = fork();
    if (pid != 0) return pid;
    struct reader reader = {.dir = dir};
    atomic_bool stop;
    atomic_init(&stop, true); /* one round at a time */
    reader.stop = &stop;
    do
        read_on(&reader);
    while (!reader.wrong[0] && access(stop_file, F_OK) != 0);
    if (reader.wrong[0]) fprintf(stderr, "reader process: %s\n", reader.wrong);
    _exit(reader.wrong[0] ? 1 : 0);
}

static void end_process(pid_t pid, const char *stop_file)
{
    int status;
    test_file_write(stop_file, "", 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

START_TEST(store_env__handles_of_one_process_share_one_file)
{
    struct silt_store *a, *b;
    test_archive_open(&archive, test_path("a"), true, 0);
    a = test_store_reader(test_path("a"));
    b = test_store_reader(test_path("./a/../a"));
    ck_assert_ptr_eq(a->env, archive.store->env);
    ck_assert_ptr_eq(b->env, archive.store->env);
    silt_store_close(a);
    silt_store_close(b);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_env__a_reader_that_was_first_does_not_hinder_a_writer)
{
    char wrong[200];
    test_archive_open(&archive, test_path("a"), true, 0);
    test_stream_new(&archive, &stream, "s", NULL);
    test_fold(&archive, &stream, 1, 10);
    test_archive_close(&archive);
    struct silt_store *reader = test_store_reader(test_path("a"));
    ck_assert(!reader->env->writable);
    test_archive_open(&archive, test_path("a"), true, 0);
    test_fold(&archive, &stream, 11, 20);
    ck_assert_uint_eq(test_archive_count(reader, "s", wrong), 20);
    test_archive_close(&archive);
    ck_assert_uint_eq(test_archive_count(reader, "s", wrong), 20);
    silt_store_close(reader);
}
END_TEST

/* F1, F2: the map grows under four threads of this process and under another process, all reading. */
START_TEST(store_env__the_map_grows_under_readers)
{
    struct reader readers[THREADS];
    atomic_bool stop;
    const char *dir = test_path("a"), *stop_file = test_path("stop");
    test_archive_open(&archive, dir, true, 1 << 20);
    test_stream_new(&archive, &stream, "s", NULL);
    test_fold(&archive, &stream, 1, 999);
    pid_t pid = start_process(dir, stop_file);
    start_readers(readers, dir, &stop);
    for (uint64_t i = 1; i < 25; i++)
        test_fold(&archive, &stream, i * 1000, i * 1000 + 999);
    stop_readers(readers, &stop);
    end_process(pid, stop_file);
    test_archive_close(&archive);
}
END_TEST

/* Current files come and go under four threads of this process and under another process, while folds go on. */
START_TEST(store_env__the_file_is_replaced_under_readers)
{
    struct reader readers[THREADS];
    struct silt_err err = {0};
    atomic_bool stop;
    const char *dir = test_path("a"), *stop_file = test_path("stop");
    test_archive_open(&archive, dir, true, 1 << 20);
    test_stream_new(&archive, &stream, "s", "EVT");
    test_fold(&archive, &stream, 1, 200);
    pid_t pid = start_process(dir, stop_file);
    start_readers(readers, dir, &stop);
    for (uint64_t i = 1; i < 12; i++) {
        ck_assert_msg(silt_store_replace(archive.store, &err) == SILT_OK, "%s", err.sentence);
        test_fold(&archive, &stream, i * 200 + 1, i * 200 + 200);
    }
    stop_readers(readers, &stop);
    end_process(pid, stop_file);
    ck_assert_str_eq(archive.store->env->file, "archive-12.mdb");
    ck_assert_int_eq(access(test_path("a/archive-11.mdb"), F_OK), -1);
    test_archive_close(&archive);
}
END_TEST

START_TEST(store_env__a_handle_from_before_a_fork_is_refused_in_the_child)
{
    char wrong[200];
    const char *dir = test_path("a");
    test_archive_open(&archive, dir, true, 0);
    test_stream_new(&archive, &stream, "s", NULL);
    test_fold(&archive, &stream, 1, 10);
    pid_t pid = fork();
    if (pid == 0) {
        struct silt_meta_row meta;
        struct silt_err err;
        if (silt_store_meta(archive.store, &meta, &err) != SILT_ERR_USAGE) _exit(1);
        struct silt_store *own = test_store_reader(dir);
        if (own->env == archive.store->env) _exit(2);
        if (test_archive_count(own, "s", wrong) != 10 || wrong[0]) _exit(3);
        silt_store_close(own);
        test_archive_close(&archive); /* must leave the parent's slots alone */
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    test_fold(&archive, &stream, 11, 20);
    ck_assert_uint_eq(test_archive_count(archive.store, "s", wrong), 20);
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    struct silt_store *second;
    options.write = true;
    ck_assert_int_eq(silt_store_open(dir, &options, &second, NULL), SILT_ERR_HELD);
    test_archive_close(&archive);
}
END_TEST

/* F3: killed in the middle of a read; their slots are given back at the writer's start. */
START_TEST(store_env__slots_of_killed_readers_are_given_back)
{
    struct silt_store_space space;
    int cleared;
    const char *dir = test_path("a");
    test_archive_open(&archive, dir, true, 0);
    for (int i = 0; i < 5; i++) {
        int ends[2];
        char byte;
        ck_assert_int_eq(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct silt_kv_txn *txn;
            struct silt_store *own = test_store_reader(dir);
            if (silt_env_read(own, &txn, NULL) != SILT_OK || write(ends[1], "x", 1) != 1) _exit(1);
            for (;;)
                pause();
        }
        ck_assert_int_eq(read(ends[0], &byte, 1), 1);
        close(ends[0]);
        close(ends[1]);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    ck_assert_int_eq(silt_store_space(archive.store, &space, NULL), SILT_OK);
    ck_assert_uint_ge(space.readers, 5);
    ck_assert_int_eq(silt_store_clear_dead_readers(archive.store, &cleared, NULL), SILT_OK);
    ck_assert_int_eq(cleared, 5);
    test_archive_close(&archive);
}
END_TEST

TEST_MAIN(store_env__handles_of_one_process_share_one_file,
          store_env__a_reader_that_was_first_does_not_hinder_a_writer,
          store_env__the_map_grows_under_readers, store_env__the_file_is_replaced_under_readers,
          store_env__a_handle_from_before_a_fork_is_refused_in_the_child,
          store_env__slots_of_killed_readers_are_given_back)
