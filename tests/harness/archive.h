/* An archive for tests, made without a server: streams, folds of plain entries, what must be in it. It checks nothing itself.
 * For programs that link silt_format. */
#ifndef TEST_ARCHIVE_H
#define TEST_ARCHIVE_H

#include "format/store.h"

/* A stream being written by a test. Set number, life, name, ns through test_stream_new; W and counters follow the folds. */
struct test_stream {
    struct silt_stream_row row;
    char name[64];
};

struct test_archive {
    struct silt_store *store;
    struct silt_batch *batch;
    struct silt_segment_builder *builder;
    struct silt_buf value; /* the segment added last */
    struct silt_segment_info info;
};

/* Opens (write: and creates) the archive in dir; ends the test where that fails. map_bytes 0: the default. */
void test_archive_open(struct test_archive *archive, const char *dir, bool write,
                       uint64_t map_bytes);
void test_archive_close(struct test_archive *archive);
/* A reader's handle of its own. */
struct silt_store *test_store_reader(const char *dir);

/* Numbers for a new stream; nothing is written yet. namespace NULL: plain. */
void test_stream_new(struct test_archive *archive, struct test_stream *stream, const char *name,
                     const char *ns);
/* Entry n of any test stream: id <n>-1 (branded: in the 2030s) and fields that follow from n alone. Borrowed until the next call in
 * this thread. */
struct silt_entry test_entry(uint64_t n);
struct silt_wire_id test_entry_id(uint64_t n);
/* Encodes entries first..last (by n) as one segment into archive->value and ->info. */
void test_segment_make(struct test_archive *archive, const struct test_stream *stream,
                       uint64_t first, uint64_t last);
/* Adds a segment of entries first..last and the stream's row, with W at the last entry, to the batch. replaces: it takes the place of
 * the one with the same first entry. Counters count what was not there before. */
void test_fold_add(struct test_archive *archive, struct test_stream *stream, uint64_t first,
                   uint64_t last, bool replaces);
/* The same and commits; ends the test where that fails. */
void test_fold(struct test_archive *archive, struct test_stream *stream, uint64_t first,
               uint64_t last);
/* Walks the stream's newest life in a reader's way and says how many of the entries 1..count are there, each equal to test_entry,
 * in order, nothing else; stops at the first thing that is wrong. Gives a sentence in *ret_wrong, or "". */
uint64_t test_archive_count(struct silt_store *store, const char *name, char ret_wrong[200]);

#endif
