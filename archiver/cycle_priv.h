/* What the files of the cycle share: the archiver, a work's memory between passes, and the steps in their order (README.md). */
#ifndef SILT_CYCLE_PRIV_H
#define SILT_CYCLE_PRIV_H

#include "archive_source.h"
#include "custody.h"
#include "cycle.h"
#include "fetch.h"
#include "plan.h"
#include "trim.h"
#include "worker.h"

/* Bounds of a pass. One stream's share of a commit; a commit is made when the streams before it have gathered as much. */
struct silt_cycle_limits {
    uint64_t fold_entries, fold_bytes;
    uint64_t trim_step; /* entries of one XTRIM at most (protocol §2 step 7) */
};
#define SILT_CYCLE_LIMITS_DEFAULT ((struct silt_cycle_limits){100000, 64u << 20, 10000})

/* An entry that a look showed and that was found in the archive, bytes and all. */
struct silt_compared {
    bool is_set;
    struct silt_wire_id id;
    uint64_t digest;
};

struct silt_work_state {
    struct silt_page_size page_size;
    struct silt_compared first, last;
    uint64_t added_seen; /* the highest EA of any look: what is lost when the key goes */

    bool pending; /* folded, not yet committed and read back */
    struct silt_wire_id pending_after;
    struct silt_fold_sum sum;

    bool
        counted; /* the entries up to C are accounted for: no more were added than were folded or booked (protocol §3, last sentence) */
    bool met_foreign; /* on-foreign: hold stopped the last fold */
    bool partial;     /* the last fold stopped at a limit of the pass */

    bool has_bytes_floor; /* on-trim: found by reading backwards from the newest, as of: */
    struct silt_wire_id bytes_floor;
    uint64_t bytes_floor_added, bytes_floor_length, bytes_floor_limit;

    bool seam_said; /* that the seam cannot be written stands in the log */
    bool dirty;     /* counters of trims that no commit has stored yet */
    uint64_t trimmed_unsaved;
    struct silt_wire_id threshold_sent;
};

struct silt_archiver {
    const struct silt_config *config;
    struct silt_cycle_limits limits; /* a test may set smaller ones */
    bool preview;                    /* reads only */
    struct silt_store *store;        /* NULL: a preview without an archive */
    struct silt_meta_row meta;
    struct silt_conn *conn;
    struct silt_worker *worker;
    struct silt_trimmer trimmer;
    struct silt_batch *batch;   /* folds of this pass */
    struct silt_batch *verdict; /* a verdict or a new row, committed at once */
    struct silt_archive_source *source;
    struct silt_segment *segment;
    struct silt_buf value; /* a segment's bytes */
    struct silt_look look; /* the look that is being acted on */
    struct silt_page page; /* pages that are compared, not folded */
    struct silt_reply scratch;
    bool (*cancelled)(void *);
    void *cancelled_ctx;
    uint64_t now_ms; /* the server's TIME as of this pass */
    char seam_denied
        [120]; /* the refusal of a right to write seams that stands in the log: it meets all streams */
    struct silt_work **pending;
    size_t pending_count, pending_cap;
    uint64_t pending_entries, pending_bytes;
};

bool silt_archiver_cancelled(const struct silt_archiver *archiver);
/* Does this failure stop the whole pass (the server, the store, memory, a signal), or its stream alone? */
bool silt_archiver_stops(const struct silt_archiver *archiver, enum silt_status status);
struct silt_view silt_work_key(const struct silt_work *work);
/* NULL: no row yet. */
const struct silt_stream_row *silt_work_row(const struct silt_work *work);
void silt_work_marker(const struct silt_archiver *archiver, const struct silt_work *work,
                      char ret[SILT_MARKER_TEXT]);

/* ---- judge.c: a look, and what may be done after it ---- */

/* Looks (into archiver->look) and decides. *ret_go false: nothing more is to be done to this stream in this pass; work->status, held_by and, where there is
 * doubt, the row say why. First contact: makes row and marker, and looks again. Fails with the server's and the store's codes. */
SILT_MUST_USE enum silt_status silt_judge(struct silt_archiver *archiver, struct silt_work *work,
                                          struct silt_custody *ret, bool *ret_go,
                                          struct silt_err *err);
/* Commits `audit pending` with its reason and the facts of archiver->look, before anything else is touched (protocol §3). */
SILT_MUST_USE enum silt_status silt_judge_doubt(struct silt_archiver *archiver,
                                                struct silt_work *work, const char *reason,
                                                struct silt_err *err);
/* The archive's entry of that id. Valid until the next call. SILT_END: none. */
SILT_MUST_USE enum silt_status silt_archived(struct silt_archiver *archiver,
                                             const struct silt_stream_row *row,
                                             struct silt_wire_id id, struct silt_entry *ret,
                                             struct silt_err *err);
/* Compares the live entries up to `through` with the archive, page by page. *ret_reason[0]: what differs. */
SILT_MUST_USE enum silt_status silt_judge_live(struct silt_archiver *archiver,
                                               struct silt_work *work,
                                               const struct silt_custody *custody,
                                               struct silt_wire_id through, char ret_reason[200],
                                               struct silt_err *err);

/* ---- fold_stream.c: (C, target] into archiver->batch ---- */

/* After a look that continues. Sets work->state->pending when the batch has something of this stream. */
SILT_MUST_USE enum silt_status silt_fold_stream(struct silt_archiver *archiver,
                                                struct silt_work *work,
                                                const struct silt_custody *custody,
                                                struct silt_err *err);

/* ---- floors.c: what the plan needs to know ---- */

struct silt_floors {
    struct silt_plan_input plan;
    struct silt_buf floors;   /* struct silt_plan_floor */
    struct silt_buf released; /* struct silt_view: groups that group-limit lets go */
    size_t released_count;
};
void silt_floors_release(struct silt_floors *floors);
/* From archiver->look; group names point into it. Groups are asked for pending entries only where something would go without them. */
SILT_MUST_USE enum silt_status silt_floors_gather(struct silt_archiver *archiver,
                                                  struct silt_work *work, struct silt_floors *ret,
                                                  struct silt_err *err);
/* The groups alone: which hold, from where on, and which group-limit lets go. */
SILT_MUST_USE enum silt_status silt_floors_groups(struct silt_archiver *archiver,
                                                  struct silt_work *work,
                                                  struct silt_floors *floors, struct silt_err *err);
/* keep: bytes under on-trim: the id from which on the live entries hold at most that much; reads backwards from the newest. */
SILT_MUST_USE enum silt_status silt_floors_live_bytes(struct silt_archiver *archiver,
                                                      struct silt_work *work, struct silt_err *err);

/* ---- shed.c: marker and trim ---- */

/* After a look that continues: moves the marker to C, trims what the plan lets go, looks again. Fails with SILT_ERR_STALE: look and come again. */
SILT_MUST_USE enum silt_status silt_shed(struct silt_archiver *archiver, struct silt_work *work,
                                         const struct silt_custody *custody, struct silt_err *err);

#endif
