/* The store's rows besides segments: what each holds and its bytes (each row ends with XXH64 of its bytes and key).
 * Pure encoding and decoding; store.c puts them into LMDB. Decoders check every number before use and never trust a length. */
#ifndef SILT_ROWS_H
#define SILT_ROWS_H

#include "branded_id.h"

#define SILT_REPLID_LEN 40
#define SILT_UUID_TEXT 37 /* 36 characters and a terminator */

/* The facts of one look, as stored and compared (protocol.md: EA, LEN, LAST, FIRST, MAXDEL, REPL). */
struct silt_facts {
    char replid[SILT_REPLID_LEN + 1];
    uint64_t entries_added;
    uint64_t length;
    struct silt_wire_id last;
    bool has_first;
    struct silt_wire_id first;
    uint64_t first_digest; /* silt_entry_digest(first entry, 0) */
    struct silt_wire_id max_deleted;
};

/* Another consumer group as of the last look. */
struct silt_group_fact {
    struct silt_view name;
    struct silt_wire_id last_delivered;
    uint64_t entries_read; /* UINT64_MAX: the server does not know */
    uint64_t pending;
};

/* A stream's standing decision. Only these stop it; transient trouble (server away, disk full) is not stored. */
enum silt_verdict {
    SILT_VERDICT_CLEAR = 0,
    SILT_VERDICT_AUDIT_PENDING =
        1, /* continuity in doubt: no fold, no trim, readers hold the live part */
    SILT_VERDICT_CLAIMED = 2,    /* another archive's marker */
    SILT_VERDICT_OTHER_COPY = 3, /* another or newer copy of this archive is at work */
    SILT_VERDICT_WAITING = 4     /* key gone or of another type: wait */
};

struct silt_stream_row {
    uint64_t number;
    struct silt_view name;    /* the whole key, any bytes */
    struct silt_namespace ns; /* none: plain */
    uint64_t life;
    uint64_t incarnation;
    bool folded_any;               /* W, C and A mean something */
    struct silt_wire_id watermark; /* W */
    struct silt_wire_id custody;   /* C */
    uint64_t custody_added;        /* A: entries-added when C was LAST */
    uint64_t marker_number;
    bool marker_seen; /* a look showed the marker of this number */
    struct silt_wire_id
        marker_found; /* where the look of the last commit found it: a marker standing there was not moved after a crash */
    bool has_facts;
    struct silt_facts facts;
    const struct silt_group_fact *groups;
    size_t group_count;
    enum silt_verdict verdict;
    struct silt_view verdict_reason; /* a sentence */
    struct silt_facts verdict_facts; /* of the look that opened it; meaningful for AUDIT_PENDING */
    uint64_t verdict_at_ms;
    /* counters, of this stream for ever */
    uint64_t folded_entries;
    uint64_t folded_bytes; /* names and values */
    uint64_t foreign_entries;
    uint64_t trimmed_entries;
    uint64_t gap_entries; /* counted ones */
    uint64_t late_entries;
    struct silt_wire_id
        trim_threshold; /* the last one that was sent: what our own trims have removed lies below it */
    uint64_t folded_at_ms; /* when the last fold was committed (server time) */
    uint64_t trimmed_at_ms;
};

enum silt_gap_precision { SILT_GAP_EXACT = 0, SILT_GAP_BETWEEN = 1, SILT_GAP_AT_LEAST = 2 };
enum silt_gap_cause {
    SILT_GAP_UNKNOWN = 0,
    SILT_GAP_TRIMMED = 1,
    SILT_GAP_DELETED = 2,
    SILT_GAP_EXPIRED = 3, /* expired or evicted */
    SILT_GAP_ROLLED_BACK = 4
};
struct silt_gap_row {
    uint64_t life;
    struct silt_range_ids {
        struct silt_wire_id after, through;
    } range; /* (after, through] */
    enum silt_gap_precision precision;
    bool has_count;
    uint64_t count;     /* exact, or the least */
    uint64_t count_max; /* BETWEEN */
    enum silt_gap_cause cause;
    uint64_t noticed_ms;
};
const char *silt_gap_cause_name(enum silt_gap_cause cause);
const char *silt_verdict_name(enum silt_verdict verdict);

/* A life that is not a stream's first: where it forked off. */
struct silt_fork_row {
    uint64_t life;
    uint64_t stream;
    uint64_t parent;
    struct silt_wire_id fork; /* from here on everything belongs to the new life */
    uint64_t noticed_ms;
};

struct silt_late_row {
    uint64_t life;
    uint64_t number; /* 1, 2, ... per life */
    struct silt_wire_id id;
};

#define SILT_FORMAT_VERSION 1u
struct silt_meta_row {
    uint32_t version;
    uint32_t must_refuse; /* bits an older silt must refuse */
    uint32_t may_ignore;
    char uuid[SILT_UUID_TEXT];
    uint64_t epoch;
    bool needs_adopt;       /* a restored or imported archive: refuses to fold until `silt adopt` */
    uint64_t pid_namespace; /* inode of the holder's PID namespace */
    uint64_t next_stream;
    uint64_t next_life;
};

/* Encode: append to *out, given the row's key bytes (part of the checksum). Decode: views point into `bytes` (and groups into an array
 * that the caller's scratch buffer owns). Decode fails with SILT_ERR_CORRUPT, SILT_ERR_NEWER_FORMAT (unknown row version). */
SILT_MUST_USE enum silt_status silt_stream_row_encode(const struct silt_stream_row *row,
                                                      struct silt_view key, struct silt_buf *out);
SILT_MUST_USE enum silt_status silt_stream_row_decode(struct silt_view bytes, struct silt_view key,
                                                      struct silt_buf *groups_scratch,
                                                      struct silt_stream_row *ret,
                                                      struct silt_err *err);
SILT_MUST_USE enum silt_status silt_gap_row_encode(const struct silt_gap_row *row,
                                                   struct silt_view key, struct silt_buf *out);
SILT_MUST_USE enum silt_status silt_gap_row_decode(struct silt_view bytes, struct silt_view key,
                                                   struct silt_gap_row *ret, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_fork_row_encode(const struct silt_fork_row *row,
                                                    struct silt_view key, struct silt_buf *out);
SILT_MUST_USE enum silt_status silt_fork_row_decode(struct silt_view bytes, struct silt_view key,
                                                    struct silt_fork_row *ret,
                                                    struct silt_err *err);
SILT_MUST_USE enum silt_status silt_late_row_encode(const struct silt_late_row *row,
                                                    struct silt_view key, struct silt_buf *out);
SILT_MUST_USE enum silt_status silt_late_row_decode(struct silt_view bytes, struct silt_view key,
                                                    struct silt_late_row *ret,
                                                    struct silt_err *err);
SILT_MUST_USE enum silt_status silt_meta_row_encode(const struct silt_meta_row *row,
                                                    struct silt_view key, struct silt_buf *out);
SILT_MUST_USE enum silt_status silt_meta_row_decode(struct silt_view bytes, struct silt_view key,
                                                    struct silt_meta_row *ret,
                                                    struct silt_err *err);

#endif
