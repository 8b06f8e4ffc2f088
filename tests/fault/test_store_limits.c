/* F1, F3, F9, F11 and E5 for the store: maps that grow to a cap, readers that die inside a snapshot, values that are rewritten all the time, large transactions. */
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "format/store_priv.h"
#include "image.h"

#define MIB (1024u * 1024u)

/* ---- F1 ---- */

START_TEST(store_limits__F1_a_map_of_1_mib_grows_to_its_cap_and_says_so)
{
    struct work work = {.on_trim = NULL};
    struct silt_err err = {0};
    struct silt_store_space space;
    static const uint64_t counts[WORK_STREAMS] = {3000, 500, 100};
    uint64_t cap = (test_long() ? 200u : 6u) * (uint64_t)MIB;
    char dir[200], wrong[200], limit[40];
    snprintf(dir, sizeof dir, "%s", test_path("a"));
    enum silt_status status = work_open(&work, dir, MIB, cap, &err);
    while (status == SILT_OK)
        status = work_step(&work, counts, &err);
    ck_assert_msg(status == SILT_ERR_MAP_FULL, "%s", err.sentence);
    snprintf(limit, sizeof limit, "%" PRIu64, cap);
    ck_assert_ptr_nonnull(strstr(err.sentence, limit));
    ck_assert_str_ne(err.hint, "");
    /* The same again changes nothing; all that was told is there, and readable. */
    ck_assert_int_eq(work_step(&work, counts, &err), SILT_ERR_MAP_FULL);
    ck_assert_int_eq(silt_store_space(work.store, &space, &err), SILT_OK);
    ck_assert_uint_eq(space.map_bytes, cap);
    ck_assert_uint_le(space.file_bytes, cap);
    ck_assert_uint_ge(space.file_bytes, cap / 2);
    for (size_t i = 0; i < WORK_STREAMS; i++) {
        ck_assert_uint_eq(work_count(work.store, i, wrong), work.held[i]);
        ck_assert_str_eq(wrong, "");
    }
    work_close(&work);
    /* A higher cap is all that is needed. */
    ck_assert_int_eq(work_open(&work, dir, MIB, cap * 2, &err), SILT_OK);
    ck_assert_msg(work_step(&work, counts, &err) == SILT_OK, "%s", err.sentence);
    ck_assert_uint_eq(work_count(work.store, 0, wrong), work.held[0]);
    work_close(&work);
}
END_TEST

/* ---- F3 ---- */

#define READERS 200

/* A process that stands inside a snapshot. */
static pid_t reader_inside(const char *dir)
{
    int ends[2];
    char byte;
    if (pipe(ends) != 0) test_die("no pipe");
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        struct silt_kv_txn *txn;
        test_die_with_parent(parent);
        close(ends[0]);
        struct silt_store *store = test_store_reader(dir);
        if (silt_env_read(store, &txn, NULL) != SILT_OK || write(ends[1], "x", 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    if (pid < 0 || read(ends[0], &byte, 1) != 1) test_die("a reader did not begin");
    close(ends[0]);
    return pid;
}

static void end_reader(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

START_TEST(store_limits__F3_two_hundred_readers_killed_inside_a_snapshot)
{
    static pid_t pids[READERS];
    struct work work = {.on_trim = NULL};
    struct silt_err err = {0};
    struct silt_store_space space;
    static const uint64_t counts[WORK_STREAMS] = {20, 20, 20};
    char dir[200], wrong[200];
    int cleared;
    size_t live = test_long() ? READERS : 130 / case_price();
    snprintf(dir, sizeof dir, "%s", test_path("a"));
    ck_assert_int_eq(work_open(&work, dir, 0, 0, &err), SILT_OK);
    ck_assert_int_eq(work_step(&work, counts, &err), SILT_OK);
    for (size_t i = 0; i < READERS; i++)
        pids[i] = reader_inside(dir);
    for (size_t i = 0; i < READERS; i++)
        end_reader(pids[i]);
    /* The writer that is there gives them back, and so does one that starts. */
    ck_assert_int_eq(silt_store_clear_dead_readers(work.store, &cleared, &err), SILT_OK);
    ck_assert_int_eq(cleared, READERS);
    ck_assert_int_eq(silt_store_space(work.store, &space, &err), SILT_OK);
    for (size_t i = 0; i < live; i++)
        pids[i] = reader_inside(dir);
    struct silt_store *one_more = test_store_reader(dir);
    ck_assert_uint_eq(work_count(one_more, 0, wrong), 20);
    ck_assert_str_eq(wrong, "");
    silt_store_close(one_more);
    ck_assert_int_eq(work_step(&work, counts, &err), SILT_OK);
    for (size_t i = 0; i < live; i++)
        end_reader(pids[i]);
    work_close(&work);
    ck_assert_int_eq(work_open(&work, dir, 0, 0, &err), SILT_OK);
    ck_assert_int_eq(silt_store_clear_dead_readers(work.store, &cleared, &err), SILT_OK);
    ck_assert_int_eq(cleared, 0); /* the start has seen to it */
    work_close(&work);
    fprintf(stderr, "# readers killed inside a snapshot: %zu\n", READERS + live);
}
END_TEST

/* A writer that runs for weeks: dead readers must not keep what it frees for ever. */
START_TEST(store_limits__F3_a_killed_reader_does_not_let_the_file_grow)
{
    struct work work = {.on_trim = NULL};
    struct silt_err err = {0};
    struct silt_store_space before, after;
    static const uint64_t counts[WORK_STREAMS] = {2, 1, 1};
    char dir[200];
    snprintf(dir, sizeof dir, "%s", test_path("a"));
    ck_assert_int_eq(work_open(&work, dir, 0, 0, &err), SILT_OK);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(work_step(&work, counts, &err), SILT_OK);
    ck_assert_int_eq(silt_store_space(work.store, &before, &err), SILT_OK);
    end_reader(reader_inside(dir));
    for (int i = 0; i < 300; i++)
        ck_assert_int_eq(work_step(&work, counts, &err), SILT_OK);
    ck_assert_int_eq(silt_store_space(work.store, &after, &err), SILT_OK);
    /* Pinned for good it would be twelve pages a commit: some 14 MiB. */
    ck_assert_msg(after.file_bytes < before.file_bytes + 6 * MIB,
                  "%" PRIu64 " bytes became %" PRIu64, before.file_bytes, after.file_bytes);
    work_close(&work);
}
END_TEST

/* ---- F9 ---- */

/* The open tail is the only copy of what it holds and is rewritten at each fold, under a reader that looks at it each time. */
START_TEST(store_limits__F9_rewriting_does_not_let_the_file_grow)
{
    struct work work = {.on_trim = NULL};
    struct silt_err err = {0};
    struct silt_store_space space;
    static const uint64_t counts[WORK_STREAMS] = {2, 1, 1};
    char dir[200], wrong[200];
    size_t rounds = test_long() ? 20000 : 400 / case_price();
    snprintf(dir, sizeof dir, "%s", test_path("a"));
    ck_assert_int_eq(work_open(&work, dir, 0, 0, &err), SILT_OK);
    struct silt_store *reader = NULL;
    for (size_t i = 0; i < rounds; i++) {
        ck_assert_msg(work_step(&work, counts, &err) == SILT_OK, "%s", err.sentence);
        if (!reader) reader = test_store_reader(dir);
        if (i % 50 == 0) ck_assert_uint_eq(work_count(reader, 0, wrong), work.held[0]);
    }
    ck_assert_int_eq(silt_store_space(work.store, &space, &err), SILT_OK);
    ck_assert_uint_eq(space.file_bytes % 4096, 0);
    ck_assert_msg(space.file_bytes <= 2 * space.used_bytes + 256 * 1024,
                  "%" PRIu64 " bytes of file for %" PRIu64 " in use", space.file_bytes,
                  space.used_bytes);
    silt_store_close(reader);
    work_close(&work);
}
END_TEST

/* ---- F11 ---- */

/* Memory of our own; the file's mapped pages are the kernel's. */
static size_t anonymous_kib(void)
{
    char *text = test_file_read("/proc/self/status", NULL);
    const char *at = strstr(text, "RssAnon:");
    size_t kib = at ? strtoul(at + 8, NULL, 10) : 0;
    free(text);
    return kib;
}

/* LMDB 0.9.24 lost the list of spilled pages with each transaction that was too large for its list. */
START_TEST(store_limits__F11_large_transactions_leave_memory_flat)
{
    struct test_archive archive;
    struct silt_err err = {0};
    size_t rounds = test_long() ? 5000 : 60, warm = rounds / 3, before = 0;
    if (case_price() > 1) return; /* a sanitizer keeps what was freed */
    test_archive_open(&archive, test_path("a"), true, 0);
    struct test_stream stream;
    test_stream_new(&archive, &stream, "s", NULL);
    test_fold(&archive, &stream, 1, 4000);
    for (size_t i = 0; i < rounds; i++) {
        if (i == warm) before = anonymous_kib();
        uint64_t last = 4000 + (uint64_t)i + 1;
        silt_batch_clear(archive.batch);
        test_fold_add(&archive, &stream, 1, last, true);
        ck_assert_msg(silt_store_commit(archive.store, archive.batch, &err) == SILT_OK, "%s",
                      err.sentence);
    }
    size_t after = anonymous_kib();
    ck_assert_uint_gt(before, 0);
    ck_assert_msg(after < before + before / 4 + 2048, "%zu KiB became %zu KiB", before, after);
    test_archive_close(&archive);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *tests[] = {
        store_limits__F1_a_map_of_1_mib_grows_to_its_cap_and_says_so,
        store_limits__F3_two_hundred_readers_killed_inside_a_snapshot,
        store_limits__F3_a_killed_reader_does_not_let_the_file_grow,
        store_limits__F9_rewriting_does_not_let_the_file_grow,
        store_limits__F11_large_transactions_leave_memory_flat,
    };
    return case_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
