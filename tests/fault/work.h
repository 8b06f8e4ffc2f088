/* Work on an archive as the archiver does it: fold onto the open tail, one commit for several streams, read back, and only then "trim". Every entry follows
 * from its number (harness/archive.h), so what an archive holds can be checked against nothing but numbers. */
#ifndef TEST_WORK_H
#define TEST_WORK_H

#include "format/fold.h"
#include "harness/archive.h"
#include "harness/rng.h"

#define WORK_STREAMS 3

struct work {
    struct silt_store *store;
    struct silt_batch *batch;
    struct silt_fold *fold;
    struct silt_segment_builder *builder;
    struct silt_segment *segment;
    struct silt_buf tail;
    struct test_stream streams[WORK_STREAMS];
    uint64_t held[WORK_STREAMS];    /* entries 1 to n are in the archive */
    uint64_t trimmed[WORK_STREAMS]; /* entries 1 to n may be gone from the server */
    void (*on_trim)(struct work *work, size_t stream);
};

const char *work_stream_name(size_t stream);
/* {0} otherwise, but for on_trim. Opens (and makes) the archive and its streams, as a start of the archiver: what is there is gone on with.
 * map_bytes 0: 1 MiB. Any status may come: nothing ends the test. */
enum silt_status work_open(struct work *work, const char *dir, uint64_t map_bytes,
                           uint64_t map_limit_bytes, struct silt_err *err);
void work_close(struct work *work);
/* Folds `counts[i]` more entries of each stream in one commit, reads back, and calls on_trim with a threshold up to what was read back. A failure leaves
 * what was there; held and trimmed are of what succeeded. */
enum silt_status work_step(struct work *work, const uint64_t counts[WORK_STREAMS],
                           struct silt_err *err);
/* Rewrites the stored segment that holds entry n as two, which hold the same entries, as room for a late entry is made. */
enum silt_status work_split(struct work *work, size_t stream, uint64_t n, struct silt_err *err);
/* A step of random size; now and then a segment makes way for two, the file is replaced, or the archive closed and opened. */
enum silt_status work_random(struct work *work, const char *dir, struct test_rng *rng,
                             uint64_t most, struct silt_err *err);

/* How many entries of the stream the archive holds, all equal to what they should be, in order, and nothing else: "" in ret_wrong. No archive and no
 * stream: 0. */
uint64_t work_count(struct silt_store *store, size_t stream, char ret_wrong[200]);

#endif
