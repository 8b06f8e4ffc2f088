/* Damage to the archive's file that is larger than a byte, and what a writer does with it: no crash, nothing hidden, nothing made up. Single bytes are in
 * test_damage.c. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/check.h"
#include "format/store_priv.h"
#include "harness/harness.h"

#define PER_SEGMENT 40
#define SEGMENTS 8
#define ENTRIES (PER_SEGMENT * SEGMENTS)
#define PAGE 4096

/* Two streams, with tails that were rewritten, so that there is a free list; gaps and late entries. */
static void make_archive(const char *dir)
{
    struct test_archive archive;
    struct test_stream a, b;
    struct silt_err err = {0};
    test_archive_open(&archive, dir, true, 0);
    test_stream_new(&archive, &a, "a", "EVT");
    test_stream_new(&archive, &b, "b", NULL);
    for (uint64_t i = 0; i < SEGMENTS; i++) {
        uint64_t first = i * PER_SEGMENT + 1;
        silt_batch_clear(archive.batch);
        test_fold_add(&archive, &a, first, first + 20, false);
        test_fold_add(&archive, &b, first, first + PER_SEGMENT - 1, false);
        if (silt_store_commit(archive.store, archive.batch, &err) != SILT_OK) test_die("commit");
        silt_batch_clear(archive.batch);
        test_fold_add(&archive, &a, first, first + PER_SEGMENT - 1, true);
        if (i % 4 == 0 && silt_batch_late(archive.batch,
                                          &(struct silt_late_row){a.row.life, i / 4 + 1,
                                                                  test_entry_id(first)}) != SILT_OK)
            test_die("late");
        if (silt_store_commit(archive.store, archive.batch, &err) != SILT_OK)
            test_die("commit: %s", err.sentence);
    }
    test_archive_close(&archive);
}

/* One stream read as a reader does: over damage, on behind it. */
struct reading {
    bool found;        /* its row could be read */
    uint64_t given;    /* entries that came, each as it was written */
    uint64_t reported; /* entries that lie in ranges reported as damaged */
    uint64_t segments; /* damaged ones */
    bool wrong;        /* something came that was never written, or out of order */
};

static uint64_t entries_between(struct silt_wire_id first, struct silt_wire_id last)
{
    uint64_t count = 0;
    for (uint64_t n = 1; n <= ENTRIES; n++) {
        struct silt_wire_id id = test_entry_id(n);
        count += !silt_wire_id_less(id, first) && !silt_wire_id_less(last, id);
    }
    return count;
}

static void take(struct reading *r, struct silt_segment *segment)
{
    for (size_t i = 0; i < silt_segment_count(segment); i++) {
        struct silt_entry entry;
        silt_segment_entry(segment, i, &entry);
        struct silt_entry due = test_entry(r->given + r->reported + 1);
        if (!silt_entry_equal(&entry, &due)) r->wrong = true;
        r->given++;
    }
}

static struct reading read_stream(struct silt_store *store, const char *name)
{
    struct reading r = {.found = false};
    struct silt_stream stream = {0};
    struct silt_buf value = {0};
    struct silt_segment *segment;
    struct silt_segment_info info;
    struct silt_wire_id id = SILT_WIRE_ID_MIN;
    if (silt_segment_new(&segment) != SILT_OK) test_die("no memory");
    enum silt_status status = silt_store_stream(store, silt_view_str(name), &stream, NULL);
    r.found = status == SILT_OK;
    while (status == SILT_OK) {
        status = silt_store_segment(store, stream.row.life, stream.row.ns, id, SILT_SEEK_FORWARD,
                                    &value, &info, NULL);
        if (status == SILT_END) break;
        if (status == SILT_OK) status = silt_segment_open(segment, silt_buf_view(&value), NULL);
        if (status == SILT_OK) {
            take(&r, segment);
        } else {
            if (silt_wire_id_less(info.first, id)) info.first = id;
            r.reported += entries_between(info.first, info.last);
            r.segments++;
        }
        status = silt_wire_id_next(info.last, &id) ? SILT_OK : SILT_END;
    }
    silt_segment_free(segment);
    silt_stream_release(&stream);
    silt_buf_release(&value);
    return r;
}

struct outcome {
    enum silt_status opened;
    uint64_t findings;
    struct reading a, b;
};

static struct outcome examine(const char *dir)
{
    struct outcome o = {.findings = 0};
    struct silt_store *store;
    struct silt_check_sum sum = {0};
    struct silt_store_options how = SILT_STORE_OPTIONS_DEFAULT;
    struct silt_check_options options = {.range = SILT_RANGE_ALL};
    how.map_initial_bytes = 1 << 20;
    o.opened = silt_store_open(dir, &how, &store, NULL);
    if (o.opened != SILT_OK) return o;
    o.a = read_stream(store, "a");
    o.b = read_stream(store, "b");
    struct silt_err err = {0};
    if (silt_check(store, &options, &sum, &err) != SILT_OK)
        ck_abort_msg("the check did not go through: %s", err.sentence);
    o.findings = sum.findings;
    silt_store_close(store);
    return o;
}

static bool is_whole(const struct reading *r)
{
    return r->found && !r->wrong && r->given == ENTRIES && r->reported == 0;
}

static bool refused_well(enum silt_status status)
{
    return status == SILT_ERR_CORRUPT || status == SILT_ERR_NOT_ARCHIVE ||
           status == SILT_ERR_NEWER_FORMAT;
}

/* The one rule: either everything is there, or somebody says that it is not. */
static void judge(const struct outcome *o, const char *where)
{
    if (o->opened != SILT_OK) {
        ck_assert_msg(refused_well(o->opened), "%s: opening says %s", where,
                      silt_status_name(o->opened));
        return;
    }
    ck_assert_msg(!o->a.wrong && !o->b.wrong, "%s: entries that were never written", where);
    bool whole = is_whole(&o->a) && is_whole(&o->b);
    ck_assert_msg(whole || o->findings > 0, "%s: damage that the check does not see", where);
}

static void flip(int fd, off_t at, unsigned bit)
{
    uint8_t byte;
    if (pread(fd, &byte, 1, at) != 1) test_die("cannot read the file");
    byte ^= (uint8_t)(1u << bit);
    if (pwrite(fd, &byte, 1, at) != 1) test_die("cannot write the file");
}

/* Opens as a writer and folds on; the exit code says how that went. */
static void fold_on(const char *dir)
{
    struct silt_store *store;
    struct silt_batch *batch;
    struct silt_stream stream = {0};
    struct silt_store_options how = SILT_STORE_OPTIONS_DEFAULT;
    how.write = true;
    how.map_initial_bytes = 1 << 20;
    enum silt_status status = silt_store_open(dir, &how, &store, NULL);
    if (status != SILT_OK) _exit(refused_well(status) ? 1 : 2);
    if (silt_batch_new(&batch) != SILT_OK) _exit(2);
    status = silt_store_stream(store, silt_view_str("a"), &stream, NULL);
    for (int i = 0; i < 5 && status == SILT_OK; i++) {
        stream.row.trimmed_entries++;
        silt_batch_clear(batch);
        status = silt_batch_stream(batch, &stream.row);
        if (status == SILT_OK) status = silt_store_commit(store, batch, NULL);
    }
    _exit(status == SILT_OK || refused_well(status) ? 0 : 3);
}

/* All of a page's header and some of the rest; never past a page's first byte. */
static off_t next_place(off_t at)
{
    off_t next = at + (at % PAGE < 24 ? 3 : test_long() ? 11 : 907);
    return next / PAGE == at / PAGE ? next : (at / PAGE + 1) * PAGE;
}

/* LMDB's own reading meets the damage here: it is refused at the start, or it is harmless, but no process ends by it, and what was
 * readable stays so. */
START_TEST(archive_file__a_writer_refuses_or_goes_on)
{
    struct stat st;
    const char *dir = test_path("a"), *copy = test_path("copy"),
               *file = test_path("a/archive-1.mdb");
    uint64_t refused = 0, gone_on = 0;
    make_archive(dir);
    ck_assert_int_eq(stat(file, &st), 0);
    ck_assert_int_eq(mkdir(copy, 0750), 0);
    const char *damaged = test_path("copy/archive-1.mdb");
    for (off_t at = 0; at < st.st_size; at = next_place(at)) {
        int status;
        unsigned bit = (unsigned)(at % 8);
        test_file_copy(file, damaged);
        int fd = open(damaged, O_RDWR);
        flip(fd, at, bit);
        close(fd);
        pid_t pid = fork();
        if (pid == 0) fold_on(copy);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) <= 1,
                      "page %lld byte %lld bit %u: ended with %d", (long long)(at / PAGE),
                      (long long)(at % PAGE), bit, status);
        refused += WEXITSTATUS(status) == 1;
        gone_on += WEXITSTATUS(status) == 0;
    }
    printf("# %llu refused, %llu went on\n", (unsigned long long)refused,
           (unsigned long long)gone_on);
    ck_assert_uint_gt(refused, 20);
    ck_assert_uint_gt(gone_on, 20);
}
END_TEST

START_TEST(archive_file__every_cut_is_refused_or_told)
{
    struct stat st;
    const char *dir = test_path("a"), *file = test_path("a/archive-1.mdb");
    size_t len;
    make_archive(dir);
    ck_assert_int_eq(stat(file, &st), 0);
    char *bytes = test_file_read(file, &len);
    for (off_t size = 0; size < st.st_size; size += size < 3 * PAGE ? 509 : PAGE - 1) {
        char where[64];
        snprintf(where, sizeof where, "cut to %lld bytes", (long long)size);
        test_file_write(file, bytes, (size_t)size);
        struct outcome o = examine(dir);
        judge(&o, where);
        /* LMDB's writer reads through its map: behind the end of the file the process would be ended. */
        int status;
        pid_t pid = fork();
        if (pid == 0) fold_on(dir);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) <= 1, "%s: a writer ended with %d",
                      where, status);
    }
    free(bytes);
}
END_TEST

/* What an opener leaves that was killed while it set up LMDB's lock file, to one that waited for it: the file reads as if nothing had ever been committed.
 * A writer that believed it would commit below the newest commit, and lose that at the next start. */
START_TEST(archive_file__a_lock_file_set_up_by_half_is_not_believed)
{
    enum { LAST_TXN = 48 }; /* magic, format, a mutex */
    const char *dir = test_path("a"), *lock = test_path("a/archive-1.mdb-lock");
    struct silt_store_options how = SILT_STORE_OPTIONS_DEFAULT;
    struct silt_store *store = NULL;
    struct silt_err err = {0};
    uint64_t last = 0;
    make_archive(dir);
    how.write = true;
    int fd = open(lock, O_RDWR);
    ck_assert_int_eq(pread(fd, &last, 8, LAST_TXN), 8);
    ck_assert_uint_gt(last, 2);
    ck_assert_uint_lt(last, 1000);
    close(fd);
    int go[2];
    ck_assert_int_eq(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) { /* one that waited, and now has the file open */
        struct flock shared = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
        uint64_t none = 0;
        int held = open(lock, O_RDWR);
        bool well = fcntl(held, F_SETLK, &shared) == 0 && pwrite(held, &none, 8, LAST_TXN) == 8;
        if (write(go[1], well ? "y" : "n", 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    char answer = 0;
    ck_assert_int_eq(read(go[0], &answer, 1), 1);
    ck_assert_int_eq(answer, 'y');
    ck_assert_int_eq(silt_store_open(dir, &how, &store, &err), SILT_ERR_CORRUPT);
    how.write = false;
    ck_assert_int_eq(silt_store_open(dir, &how, &store, &err), SILT_ERR_CORRUPT);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(go[0]);
    close(go[1]);
    struct outcome o = examine(dir);
    ck_assert(is_whole(&o.a) && is_whole(&o.b));
}
END_TEST

START_TEST(archive_file__pages_of_zeros_are_refused_or_told)
{
    struct stat st;
    static const uint8_t zeros[PAGE];
    uint8_t page[PAGE];
    const char *dir = test_path("a");
    make_archive(dir);
    int fd = open(test_path("a/archive-1.mdb"), O_RDWR);
    ck_assert_int_eq(fstat(fd, &st), 0);
    for (off_t at = 0; at + PAGE <= st.st_size; at += PAGE) {
        char where[64];
        snprintf(where, sizeof where, "page %lld is zeros", (long long)(at / PAGE));
        ck_assert_int_eq(pread(fd, page, PAGE, at), PAGE);
        ck_assert_int_eq(pwrite(fd, zeros, PAGE, at), PAGE);
        struct outcome o = examine(dir);
        ck_assert_int_eq(pwrite(fd, page, PAGE, at), PAGE);
        judge(&o, where);
    }
    close(fd);
}
END_TEST

/* Commits five times for each byte that comes, so that a copy made meanwhile meets them. */
static pid_t start_writer(const char *dir, int go, int done)
{
    struct test_archive archive;
    struct test_stream a;
    char byte;
    pid_t pid = fork();
    if (pid != 0) return pid;
    test_archive_open(&archive, dir, true, 0);
    test_stream_new(&archive, &a, "a", "EVT");
    for (uint64_t n = 1;; n += 20) {
        if (n % 100 == 1 && (write(done, "x", 1) != 1 || read(go, &byte, 1) != 1)) _exit(0);
        test_fold(&archive, &a, n, n + 19);
    }
}

/* F8: copies of the file while a writer commits: whole, or refused, or told; never a crash. */
START_TEST(archive_file__copies_of_a_live_file_are_whole_or_told)
{
    const char *copy = test_path("copy"), *from = test_path("live/archive-1.mdb");
    int go[2], done[2], rounds = test_long() ? 200 : 40;
    char byte;
    ck_assert_int_eq(mkdir(copy, 0750), 0);
    test_file_write(test_path("copy/current"), "archive-1.mdb\n", 14);
    ck_assert(pipe(go) == 0 && pipe(done) == 0);
    pid_t pid = start_writer(test_path("live"), go[0], done[1]);
    for (int i = 0; i < rounds; i++) {
        char wrong[200];
        struct silt_check_sum sum;
        struct silt_store *store;
        struct silt_store_options how = SILT_STORE_OPTIONS_DEFAULT;
        struct silt_check_options options = {.range = SILT_RANGE_ALL};
        ck_assert_int_eq(read(done[0], &byte, 1), 1);
        ck_assert_int_eq(write(go[1], "x", 1), 1);
        test_file_copy(from, test_path("copy/archive-1.mdb"));
        enum silt_status status = silt_store_open(copy, &how, &store, NULL);
        if (status != SILT_OK) {
            ck_assert_msg(refused_well(status), "%s", silt_status_name(status));
            continue;
        }
        ck_assert_int_eq(silt_check(store, &options, &sum, NULL), SILT_OK);
        (void)test_archive_count(store, "a", wrong);
        if (sum.findings == 0 && sum.streams > 0) ck_assert_str_eq(wrong, "");
        silt_store_close(store);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *tests[] = {archive_file__a_writer_refuses_or_goes_on,
                            archive_file__every_cut_is_refused_or_told,
                            archive_file__a_lock_file_set_up_by_half_is_not_believed,
                            archive_file__pages_of_zeros_are_refused_or_told,
                            archive_file__copies_of_a_live_file_are_whole_or_told};
    setenv("CK_DEFAULT_TIMEOUT", "280", 0);
    return test_run(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
