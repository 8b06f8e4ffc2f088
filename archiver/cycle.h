/* One pass over streams: look -> plan -> fetch -> prove -> commit -> read back -> trim -> look (README.md numbers the steps). Folds of
 * all streams of a pass share commits. One bad stream never holds up another. The loop decides when; this file decides nothing about time. */
#ifndef SILT_CYCLE_H
#define SILT_CYCLE_H

#include "config.h"
#include "store.h"

/* What keeps the trim threshold where it is. */
enum silt_held_by {
    SILT_HELD_NOTHING = 0, /* nothing to trim */
    SILT_HELD_RETENTION,   /* keep */
    SILT_HELD_ARCHIVE,     /* not folded yet */
    SILT_HELD_GROUP,       /* a group has not been given it */
    SILT_HELD_PENDING,     /* a group has not acknowledged it */
    SILT_HELD_NEWEST,      /* at least the newest entry stays */
    SILT_HELD_SHADOW,      /* no keep: never trims */
    SILT_HELD_VERDICT,     /* doubt, another's claim, waiting */
    SILT_HELD_FOREIGN,     /* on-foreign: hold */
    SILT_HELD_DAMAGE /* a damaged piece of the archive that a plan or a receipt needs; held_name says which */
};
const char *silt_held_by_name(enum silt_held_by by);

/* One stream being worked on. Made by silt_archiver_work; the loop owns the list. */
struct silt_work {
    struct silt_buf key;
    const struct silt_stream_config *config;
    struct silt_stream stream; /* the row as last committed; row.number 0: none yet */
    bool whole; /* set by the loop: fold all there is, under fold: on-trim too (silt sync) */

    /* the last pass */
    enum silt_status status; /* SILT_OK, or why it stopped; err has the sentence */
    struct silt_err err;
    bool more;    /* stopped at a pass's limit with work left */
    bool changed; /* folded or trimmed something */
    bool awaited; /* the key is not there, and never was as far as the archive knows: no finding */
    bool settled; /* within keep, or held: a later pass without new facts would do nothing */
    uint64_t folded; /* entries of this pass */
    uint64_t trimmed;
    uint64_t asked; /* entries our trims of this pass should have removed */
    enum silt_held_by held_by;
    char held_name[128];           /* the group, the other archive ... */
    struct silt_wire_id threshold; /* the lowest id our next trim would leave */
    uint64_t live_length;
    uint64_t lag_entries;  /* live entries above W */
    uint64_t lag_ms;       /* server time minus the oldest unfolded entry's ms; 0: none */
    uint64_t looked_at_ms; /* server time of the last look */
    uint64_t memory_bytes; /* MEMORY USAGE with SAMPLES as of --plan and status; 0: not asked */
    struct silt_work_state *state; /* the cycle's own */
};

struct silt_archiver;

/* Opens the store with its lock (creating it) and makes the connection object; does not connect yet. `cancelled` is asked at least every 100 ms, only
 * by the thread that called in and never with a store transaction open: siltd serves its control socket and its signals from it. */
SILT_MUST_USE enum silt_status silt_archiver_new(const struct silt_config *config,
                                                 bool (*cancelled)(void *), void *ctx,
                                                 struct silt_archiver **ret, struct silt_err *err);
/* The same for silt_archiver_work and silt_archiver_preview alone: opens the archive for reading, takes no lock, creates nothing (no archive yet: as
 * an empty one; silt_archiver_store then gives NULL). A pass with it is SILT_ERR_USAGE. */
SILT_MUST_USE enum silt_status silt_archiver_new_preview(const struct silt_config *config,
                                                         bool (*cancelled)(void *), void *ctx,
                                                         struct silt_archiver **ret,
                                                         struct silt_err *err);
void silt_archiver_free(struct silt_archiver *archiver);
/* The configuration may be exchanged between passes (SIGHUP); works must be given new config pointers by the caller. */
void silt_archiver_set_config(struct silt_archiver *archiver, const struct silt_config *config);
struct silt_store *silt_archiver_store(struct silt_archiver *archiver);
struct silt_conn *silt_archiver_conn(struct silt_archiver *archiver);

SILT_MUST_USE enum silt_status silt_archiver_work(struct silt_archiver *archiver,
                                                  struct silt_view key,
                                                  const struct silt_stream_config *config,
                                                  struct silt_work **ret, struct silt_err *err);
void silt_work_free(struct silt_work *work);

/* One pass. Each work gets its outcome; the return value is only what stops all of them: the server away (SILT_CLASS_RETRY of the connection), the
 * store full or lost, out of memory, cancelled. Cancelled still commits what was proven. */
SILT_MUST_USE enum silt_status silt_archiver_pass(struct silt_archiver *archiver,
                                                  struct silt_work **works, size_t count,
                                                  struct silt_err *err);

/* What a pass would do, changing nothing: entries to fold and to trim, bytes, memory that it would free (MEMORY USAGE with SAMPLES, in proportion). */
struct silt_preview {
    uint64_t fold_entries, trim_entries, live_entries;
    uint64_t trim_memory_bytes, memory_bytes;
    uint64_t segments;
    struct silt_wire_id threshold;
    enum silt_held_by held_by;
    char held_name[200];
    bool awaited; /* as in silt_work */
};
SILT_MUST_USE enum silt_status silt_archiver_preview(struct silt_archiver *archiver,
                                                     struct silt_work *work,
                                                     struct silt_preview *ret,
                                                     struct silt_err *err);

#endif
