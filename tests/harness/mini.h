/* An archiver small enough to read in one go, for the tests of readers: it folds, commits, moves its marker and trims in the order of protocol.md §2, one step at
 * a time, so that a test decides what happens between two pages. It keeps no promise against a hostile server; siltd does. For programs that link
 * silt_mergeread. Threads: one at a time. */
#ifndef TEST_MINI_H
#define TEST_MINI_H

#include "format/fold.h"
#include "format/store.h"
#include "mergeread/look.h"

struct test_mini {
    struct silt_store *store;
    struct silt_conn *conn; /* NULL: no server */
    struct silt_fold *fold;
    struct silt_batch *batch;
    struct silt_stream_row row; /* as last committed; its name is `key` */
    char key[128];
    struct silt_meta_row meta;
    struct silt_look look;
    struct silt_page page;
    struct silt_reply reply;
    struct silt_buf tail;
    bool seal;       /* the next fold begins a segment of its own */
    bool has_marker; /* the group exists */
};

/* Opens (makes) the archive in `dir` for writing, and the stream's row; ns NULL: a plain stream; address NULL: no server. */
void test_mini_open(struct test_mini *mini, const char *dir, const char *address, const char *key,
                    const char *ns);
void test_mini_close(struct test_mini *mini);
/* Folds what the server has above C, at most `max` entries (0: all), books gaps, moves the marker. Gives how many were folded. */
size_t test_mini_fold(struct test_mini *mini, size_t max);
/* The same in two halves, so that a test can stand between commit and marker. */
size_t test_mini_fold_unmarked(struct test_mini *mini, size_t max);
void test_mini_mark(struct test_mini *mini);
/* Folds these, without a server. */
void test_mini_fold_entries(struct test_mini *mini, const struct silt_entry *entries, size_t count);
/* XTRIM MINID: leaves ids from `id` on, but never beyond succ(C), and always the newest. Gives how many went. */
long long test_mini_trim(struct test_mini *mini, struct silt_wire_id id);
long long test_mini_trim_all(struct test_mini *mini);
/* Commits the row as it is in mini->row. */
void test_mini_commit_row(struct test_mini *mini);
void test_mini_gap(struct test_mini *mini, struct silt_wire_id after, struct silt_wire_id through,
                   uint64_t count, enum silt_gap_cause cause);
void test_mini_late(struct test_mini *mini, uint64_t number, struct silt_wire_id id);
/* Late entries into their place, numbered, without a server; ascending, none of them archived yet. */
void test_mini_insert(struct test_mini *mini, const struct silt_entry *entries, size_t count);
/* A new life that forks off at this id; its watermark is the id before. */
void test_mini_fork(struct test_mini *mini, struct silt_wire_id fork);

#endif
