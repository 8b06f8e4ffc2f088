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
    SILT_VERDICT_WAITING = 4,    /* key gone or of another type: wait */
    SILT_VERDICT_RELEASED = 5,   /* let go by `silt release`: left alone until `silt adopt` */
    SILT_VERDICT_LAST = SILT_VERDICT_RELEASED
};

/* What opened an audit: a row of protocol.md §3's table, or what a later step found. With the audit's findings it decides what is concluded. */
enum silt_audit_cause {
    SILT_AUDIT_UNKNOWN = 0,        /* of a row that an earlier silt wrote */
    SILT_AUDIT_OURS_REPL = 1,      /* our marker; the replication id alone is another */
    SILT_AUDIT_OURS_BACK = 2,      /* our marker; a fact went back */
    SILT_AUDIT_OURS_ELSEWHERE = 3, /* our marker, neither at C nor where the last commit found it */
    SILT_AUDIT_MARKER_ABSENT = 4,
    SILT_AUDIT_BYTES = 5,         /* a live entry up to C is not as it is in the archive */
    SILT_AUDIT_FOLD_COUNT = 6,    /* more entries than were added, or fewer without a trace */
    SILT_AUDIT_FOLD_CONFLICT = 7, /* a fold below W met what its life cannot take in */
    SILT_AUDIT_READ_BACK =
        8, /* the archive is in doubt, not the stream: comparing settles nothing */
    SILT_AUDIT_TRIM_ALARM = 9, /* a trim removed more than was archived: somebody has to look */
    SILT_AUDIT_ADOPTED =
        10, /* taken over by `silt adopt`: whatever the stream holds is compared first */
    SILT_AUDIT_CAUSE_LAST = SILT_AUDIT_ADOPTED
};
/* How far the audit is. Meaningful for AUDIT_PENDING; stored, so that a kill repeats little and what was seen before stays known. */
struct silt_audit {
    enum silt_audit_cause cause;
    bool went_back;      /* the look that opened the verdict showed a fact lower than before */
    uint64_t added_seen; /* the highest EA and LAST of any look before the verdict */
    struct silt_wire_id last_seen; /* .. what has gone with an object, once seen */
    bool opened;                   /* a look opened the audit: what follows means something */
    struct silt_facts
        facts; /* of the last look that continued it: the next one is compared with them */
    uint64_t opening_added, opening_length; /* EA and LEN of the look that opened it */
    struct silt_wire_id marker_at;          /* where that look saw the marker */
    struct silt_wire_id through;            /* min(W, LAST) of that look: C of the audit */
    struct silt_wire_id position;           /* compared up to here */
    uint64_t equal, absent, conflict; /* live entries: as archived, not there, with other bytes */
    uint64_t prefix;                  /* equal ones before the first that is not */
    bool has_difference;
    struct silt_wire_id difference; /* the first live entry that is not as archived */
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
    /* since row version 2 */
    struct silt_audit audit;
    struct silt_wire_id
        top_watermark;   /* the highest W of an earlier life: our marker may still stand there */
    uint64_t lost_added; /* entries up to this EA are booked as gone with their key */
    bool
        added_estimated; /* A comes from an audit and may be too large (protocol.md §3): a fold may re-base it */
    uint64_t
        epoch; /* of its marker; raised by `silt adopt`. 0: the archive's, see silt_stream_epoch */
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
/* The epoch that this stream's marker has: its own since an adoption, else the archive's. */
static inline uint64_t silt_stream_epoch(const struct silt_stream_row *row, uint64_t archive_epoch)
{
    return row && row->epoch != 0 ? row->epoch : archive_epoch;
}
const char *silt_gap_cause_name(enum silt_gap_cause cause);
const char *silt_verdict_name(enum silt_verdict verdict);
const char *silt_audit_cause_name(enum silt_audit_cause cause);

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
