/* Which streams there are to work on: the exact keys of the configuration, the keys that its patterns match (found with SCAN, a few calls at a
 * time, the cursor kept between rounds), and those the archive knows from before. It knows nothing of passes and time. */
#ifndef SILT_ROSTER_H
#define SILT_ROSTER_H

#include "report.h"

struct silt_roster_stream {
    struct silt_buf key;
    const struct silt_stream_config *config;
    const struct silt_stream_config *other; /* a second pattern that matches: left alone */
    struct silt_work *work;                 /* NULL: not made yet, or ambiguous */
    struct silt_report report;
    /* the loop's own */
    uint64_t due_ms;      /* monotonic */
    uint64_t interval_ms; /* doubles while nothing changes */
    unsigned failures;    /* in a row */
    uint64_t said[4];     /* causes of its present failure that stand in the log */
    unsigned said_count;
    uint64_t
        synced_pass; /* number of the last pass after which it was folded up to that pass's look */
    uint64_t whole_from; /* a sync wants all of it folded, by this pass or a later one; 0: none */
    uint64_t ended_pass; /* number of the last pass that ended here, well or not */
    uint64_t
        gaps_before; /* counted gap entries when the work was made: what is above came while we look on */
    unsigned idle_passes; /* in a row that changed nothing (--once) */
    bool done;            /* --once: within keep or held */
};

struct silt_roster {
    struct silt_roster_stream **streams; /* in the order found */
    size_t count, cap;
    size_t *slots; /* hash table of index + 1 */
    size_t slot_count;
    const struct silt_config *config;
    size_t pattern;         /* the one being swept: index into config->streams */
    struct silt_buf cursor; /* decimal text; empty: at the beginning of a sweep */
    struct silt_reply *reply;
};

SILT_MUST_USE enum silt_status silt_roster_init(struct silt_roster *roster,
                                                const struct silt_config *config);
void silt_roster_release(struct silt_roster *roster);

struct silt_roster_stream *silt_roster_find(const struct silt_roster *roster, struct silt_view key);
/* Adds the key as the configuration has it; *ret NULL: it is not named there. Already there: that one. */
SILT_MUST_USE enum silt_status silt_roster_add(struct silt_roster *roster, struct silt_view key,
                                               struct silt_roster_stream **ret);
/* The exact keys of the configuration. */
SILT_MUST_USE enum silt_status silt_roster_add_exact(struct silt_roster *roster);
/* Streams in the archive that the configuration still names. A damaged row is logged and stepped over. */
SILT_MUST_USE enum silt_status silt_roster_add_known(struct silt_roster *roster,
                                                     struct silt_store *store,
                                                     struct silt_err *err);
bool silt_roster_has_patterns(const struct silt_roster *roster);
/* At most `calls` SCANs. SILT_OK: goes on with the next call; SILT_END: a sweep over all patterns has ended (the next call begins another). */
SILT_MUST_USE enum silt_status silt_roster_scan(struct silt_roster *roster, struct silt_conn *conn,
                                                unsigned calls, struct silt_err *err);
/* Another configuration: streams that it does not name are dropped, the others get their new settings; a sweep begins anew. */
void silt_roster_reconfigure(struct silt_roster *roster, const struct silt_config *config);
/* Frees every work (the archiver is about to be closed). */
void silt_roster_drop_works(struct silt_roster *roster);

#endif
