/* What the files of the cycle share: the archiver, a work's memory between passes, and the steps in their order (README.md). */
#ifndef SILT_CYCLE_PRIV_H
#define SILT_CYCLE_PRIV_H

#include "archive_source.h"
#include "custody.h"
#include "cycle.h"
#include "fetch.h"
#include "insert.h"
#include "plan.h"
#include "trim.h"
#include "worker.h"

/* Bounds of a pass. One stream's share of a commit; a commit is made when the streams before it have gathered as much. */
struct silt_cycle_limits {
    uint64_t fold_entries, fold_bytes;
    uint64_t trim_step; /* entries of one XTRIM at most (protocol §2 step 7) */
    uint64_t
        audit_entries; /* that an audit reads of one stream in one pass: it never holds up the others */
    uint64_t
        audit_save; /* entries after which, or after AUDIT_SAVE_MS, its progress is committed */
};
#define SILT_CYCLE_LIMITS_DEFAULT \
    ((struct silt_cycle_limits){100000, 64u << 20, 10000, 10000, 100000})

/* An entry that a look showed and that was found in the archive, bytes and all. */
struct silt_compared {
    bool is_set;
    struct silt_wire_id id;
    uint64_t digest;
};

struct silt_work_state {
    struct silt_page_size page_size;
    struct silt_compared first, last;
    uint64_t
        added_seen; /* the highest EA and LAST of any look that continued: what is lost when the key goes */
    struct silt_wire_id last_seen;

    struct silt_audit audit; /* how far the pending audit is; the row may be behind */
    bool audit_loaded;
    uint64_t audit_unsaved, audit_saved_ms;
    bool number_fresh; /* the row's marker number was never sent to the server */
    bool auditing;     /* this pass met or left an audit that goes on in the next */

    bool pending; /* folded, not yet committed and read back */
    struct silt_wire_id pending_after;
    bool
        pending_late; /* late entries, put into segments of before: proven there, and by the receipt of each trim */
    struct silt_fold_sum sum;

    bool
        counted; /* the entries up to C are accounted for: no more were added than were folded or booked (protocol §3, last sentence) */
    bool met_foreign; /* on-foreign: hold stopped the last fold */
    bool partial;     /* the last fold stopped at a limit of the pass */

    bool has_fresh; /* folded and committed, and no look has shown it since: */
    struct silt_range fresh;

    bool has_bytes_floor; /* on-trim: found by reading backwards from the newest, as of: */
    struct silt_wire_id bytes_floor;
    uint64_t bytes_floor_added, bytes_floor_length, bytes_floor_limit;

    uint64_t
        behind_counted; /* which groups stood where, when it was counted what the server cannot give them any more */
    uint64_t behind_told; /* the groups of which that stands in the log */

    bool seam_said; /* that the seam cannot be written stands in the log */
    bool
        stale; /* a commit's outcome is not known: the row is read again before anything is done with it */
    bool
        alone; /* a commit that it shared was refused: it commits by itself, so that a bad stream spoils no other */

    bool dirty; /* counters of trims that no commit has stored yet */
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
    struct silt_insert *insert; /* late entries of a fold below W */
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
/* The row as the store has it; none: {0}. */
SILT_MUST_USE enum silt_status silt_work_load(struct silt_archiver *archiver,
                                              struct silt_work *work, struct silt_err *err);
struct silt_view silt_work_key(const struct silt_work *work);
/* NULL: no row yet. */
const struct silt_stream_row *silt_work_row(const struct silt_work *work);
/* claim: key and claim: off: no marker stands in the stream. */
bool silt_work_claimless(const struct silt_work *work);
/* The marker's name; "" for a stream without one. */
/* The log's line of a gap that was just booked: what is lost, and that there is no other copy. */
void silt_work_tell_gap(const struct silt_work *work, const struct silt_gap_row *gap);
void silt_work_marker(const struct silt_archiver *archiver, const struct silt_work *work,
                      char ret[SILT_MARKER_TEXT]);

/* ---- judge.c: a look, and what may be done after it ---- */

/* What the table of custody.h says of archiver->look: the archiver's judgement, and the preview's, which must not differ. */
struct silt_custody silt_judge_table(const struct silt_archiver *archiver,
                                     const struct silt_work *work);

/* Looks (into archiver->look) and decides. *ret_go false: nothing more is to be done to this stream in this pass; work->status, held_by and, where there is
 * doubt, the row say why. First contact: makes row and marker, and looks again. Fails with the server's and the store's codes. */
SILT_MUST_USE enum silt_status silt_judge(struct silt_archiver *archiver, struct silt_work *work,
                                          struct silt_custody *ret, bool *ret_go,
                                          struct silt_err *err);
/* Commits `audit pending` with its cause, its reason and the facts of archiver->look, before anything else is touched (protocol §3); the audit begins with the next
 * silt_judge. Where comparing cannot settle it, work->status says so and the stream stops. */
SILT_MUST_USE enum silt_status silt_judge_doubt(struct silt_archiver *archiver,
                                                struct silt_work *work, enum silt_audit_cause cause,
                                                const char *reason, struct silt_err *err);
/* What a pending audit has to remember of the time before it, into *row: the next look may show a fresh marker, and facts that continue by accident. */
void silt_begin_audit(const struct silt_archiver *archiver, const struct silt_work *work,
                      enum silt_audit_cause cause, struct silt_stream_row *row);
/* A restored or imported archive folds a stream only once that was adopted: a test restore must not take over production. row NULL: none yet. */
bool silt_needs_adopt(const struct silt_archiver *archiver, const struct silt_stream_row *row);
/* One row of its own commit, read again after it; fork and gap may be NULL. A gap is told in the log. */
SILT_MUST_USE enum silt_status silt_commit_row(
    struct silt_archiver *archiver, struct silt_work *work, const struct silt_stream_row *row,
    const struct silt_fork_row *fork, const struct silt_gap_row *gap, struct silt_err *err);
/* The marker of the row's number at 0-0, by the script. SILT_ERR_STALE: the stream changed, look again. */
SILT_MUST_USE enum silt_status silt_judge_mark(struct silt_archiver *archiver,
                                               struct silt_work *work, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_marker_number(uint64_t *ret, struct silt_err *err);
void silt_hold(struct silt_work *work, const char *reason);
/* W of any life: our marker stands nowhere above it. */
struct silt_wire_id silt_highest_watermark(const struct silt_stream_row *row);
/* Archived entries in (C, W]. */
SILT_MUST_USE enum silt_status silt_archived_above(struct silt_archiver *archiver,
                                                   const struct silt_stream_row *row, uint64_t *ret,
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

/* ---- exact.c: streams without a marker ---- */

/* claim: key. What the claim key says; it is made where it is missing. CLEAR: it is ours, or there is none to hold. */
struct silt_claim {
    enum silt_verdict verdict;
    char reason[200];
};
SILT_MUST_USE enum silt_status silt_claim_hold(struct silt_archiver *archiver,
                                               struct silt_work *work, struct silt_claim *ret,
                                               struct silt_err *err);
/* What the claim key says when it is ours. */
void silt_work_claim(const struct silt_archiver *archiver, const struct silt_work *work,
                     char ret[SILT_MARKER_TEXT]);
/* Removes what lies below the threshold, audited step by step. Fails with SILT_ERR_STALE: look and come again. */
SILT_MUST_USE enum silt_status silt_shed_exact(struct silt_archiver *archiver,
                                               struct silt_work *work,
                                               const struct silt_custody *custody,
                                               struct silt_wire_id threshold, struct silt_err *err);

/* ---- audit.c: the live part up to C against the archive ---- */

/* Goes on with the pending audit of this look: makes the marker, opens, reads a pass's share, concludes. *ret_again: the verdict fell or the stream changed; look again. */
SILT_MUST_USE enum silt_status silt_audit_run(struct silt_archiver *archiver,
                                              struct silt_work *work,
                                              const struct silt_custody *custody, bool *ret_again,
                                              struct silt_err *err);

/* Live entries, in order, against the archive's; made by a seek of archiver->source. */
enum silt_comparison { SILT_COMPARED_EQUAL, SILT_COMPARED_ABSENT, SILT_COMPARED_CONFLICT };
struct silt_compare {
    struct silt_archiver *archiver;
    bool has_next, ended;
    struct silt_archive_entry next;
};
/* A page's entries; ret_reason[0]: the first that differs. */
SILT_MUST_USE enum silt_status silt_compare_page(struct silt_compare *compare,
                                                 const struct silt_page *page, char ret_reason[200],
                                                 struct silt_err *err);
SILT_MUST_USE enum silt_status silt_compare_next(struct silt_compare *compare,
                                                 const struct silt_entry *live,
                                                 enum silt_comparison *ret, struct silt_err *err);

/* ---- fold_stream.c: (C, target] into archiver->batch ---- */

struct silt_outcome {
    bool doubt;
    enum silt_audit_cause cause;
    char reason[200];
    bool reached;
    struct silt_gap_sum gap;
    struct silt_gap_row gap_row;
    bool
        overtaken; /* only a partial fold explains the gap: the live part up to C is compared first */
    struct silt_wire_id custody;
};

/* After a look that continues. Sets work->state->pending when the batch has something of this stream. */
SILT_MUST_USE enum silt_status silt_fold_stream(struct silt_archiver *archiver,
                                                struct silt_work *work,
                                                const struct silt_custody *custody,
                                                struct silt_err *err);

/* Shared with refold.c: what was fetched against what the looks promise, and the row, gap and segments of it into the batch. */
void silt_fold_settle(const struct silt_archiver *archiver, const struct silt_work *work,
                      const struct silt_fetch *fetch, struct silt_outcome *ret);
/* late: NULL for what the worker folded. Sets work->state->pending. */
SILT_MUST_USE enum silt_status silt_fold_put(struct silt_archiver *archiver, struct silt_work *work,
                                             const struct silt_custody *custody,
                                             const struct silt_outcome *outcome,
                                             struct silt_insert *late, struct silt_wire_id after,
                                             struct silt_err *err);

/* ---- refold.c: (C, W] after an audit, compared ---- */

SILT_MUST_USE enum silt_status silt_refold(struct silt_archiver *archiver, struct silt_work *work,
                                           const struct silt_custody *custody,
                                           const struct silt_fetch_request *request,
                                           struct silt_err *err);

/* ---- late.c ---- */

/* With the first look after a commit, before our own trim: numbers what that look no longer shows of the fold. */
SILT_MUST_USE enum silt_status silt_late_overtaken(struct silt_archiver *archiver,
                                                   struct silt_work *work, struct silt_err *err);

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
