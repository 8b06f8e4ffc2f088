/* Inside of a batch: store_batch.c gathers, store_commit.c applies. */
#ifndef SILT_STORE_BATCH_H
#define SILT_STORE_BATCH_H

#include "store_priv.h"

enum silt_change_kind {
    SILT_CHANGE_STREAM,
    SILT_CHANGE_SEGMENT,
    SILT_CHANGE_REPLACE, /* followed by its parts */
    SILT_CHANGE_PART,
    SILT_CHANGE_GAP,
    SILT_CHANGE_FORK,
    SILT_CHANGE_LATE
};

struct silt_change {
    enum silt_change_kind kind;
    bool replaces;
    uint64_t number; /* of the stream */
    size_t offset;   /* of the value or the encoded row in batch->bytes */
    size_t len;
    union {
        struct silt_segment_info info; /* SEGMENT, PART */
        struct {
            struct silt_segment_info info;
            uint64_t checksum; /* of the whole value that is replaced */
            size_t parts;
        } replaced;
        struct silt_gap_row gap;
        struct silt_fork_row fork;
        struct silt_late_row late;
    };
};

/* What the batch says of the stream that a life belongs to. */
struct silt_batch_life {
    uint64_t life;
    size_t order; /* of two rows of one stream the later one holds */
    struct silt_namespace ns;
    bool folded_any;
    struct silt_wire_id watermark;
    bool had_watermark;
    struct silt_wire_id old_watermark; /* before this commit */
    char name[96];                     /* for messages, escaped */
};

struct silt_batch {
    struct silt_change *changes;
    size_t count;
    size_t cap;
    struct silt_buf bytes;

    /* scratch of a commit */
    struct silt_batch_life *lives;
    size_t life_count;
    size_t life_cap;
    struct silt_buf row;
    struct silt_stream before;
    struct silt_stream after;
};

/* store_commit.c: what the batch's rows say of a life; NULL: nothing. */
const struct silt_batch_life *silt_batch_find_life(const struct silt_batch *batch, uint64_t life);
/* store_commit_segments.c: one change of kind SEGMENT; one of kind REPLACE with the parts behind it. */
SILT_MUST_USE enum silt_status silt_commit_segment(struct silt_batch *batch,
                                                   struct silt_kv_txn *txn,
                                                   const struct silt_change *change,
                                                   struct silt_err *err);
SILT_MUST_USE enum silt_status silt_commit_replace(struct silt_batch *batch,
                                                   struct silt_kv_txn *txn,
                                                   const struct silt_change *change,
                                                   struct silt_err *err);

#endif
