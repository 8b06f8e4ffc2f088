/* From facts and marker to a conclusion: the table of protocol.md §3 as a pure function, and the gap arithmetic of §6. Rows that audit conclude SILT_CUSTODY_DOUBT
 * with the cause; what an audit's findings mean is decided in conclude.h. Knows no server and no store. */
#ifndef SILT_CUSTODY_H
#define SILT_CUSTODY_H

#include "look.h"
#include "rows.h"

enum silt_custody_row {
    SILT_CUSTODY_FIRST_CONTACT, /* nothing folded yet; no marker, or the row's at 0-0 */
    SILT_CUSTODY_CONTINUES,     /* fold (C, LAST] */
    SILT_CUSTODY_MOVE_MARKER,   /* crash between commit and marker: move it by the script */
    SILT_CUSTODY_CLAIMED,       /* another archive's marker */
    SILT_CUSTODY_OTHER_COPY, /* ours, but above every W, of a higher epoch, or with another number */
    SILT_CUSTODY_DOUBT,      /* the chain broke: commit the verdict, then audit */
    SILT_CUSTODY_AUDIT,      /* the verdict stands: no other row applies */
    SILT_CUSTODY_WAIT        /* gone, of another type, or empty without marker */
};
struct silt_custody_input {
    const struct silt_stream_row *row;     /* NULL: none in the archive */
    struct silt_wire_id highest_watermark; /* of any life of this stream */
    const struct silt_look *look;
    const char *uuid;
    uint64_t epoch;
    bool
        claimless; /* claim: key, claim: off: as if the marker stood at C; every step is audited before its trim */
};
struct silt_custody {
    enum silt_custody_row row;
    bool marker_present; /* ours, of this number and epoch */
    struct silt_wire_id marker_at;
    enum silt_audit_cause cause; /* of a doubt */
    char reason[200];            /* names the fact and both values */
    char claim
        [200]; /* AUDIT: another marker stands here, and nothing can be decided before it goes; "": none */
};
struct silt_custody silt_custody_decide(const struct silt_custody_input *input);

/* Do later facts continue earlier ones (protocol §3, without the marker)? NULL: yes; else the name of the fact that broke, static text. */
const char *silt_custody_break(const struct silt_facts *earlier, const struct silt_facts *later);

/* The same but for the replication id: was a state shown that this object had left behind? */
const char *silt_custody_went_back(const struct silt_facts *earlier,
                                   const struct silt_facts *later);

/* Gap arithmetic of protocol §6, pure. */
struct silt_gap_input {
    uint64_t added_now;     /* EA of the look that set the target */
    uint64_t custody_added; /* A */
    uint64_t length_now;    /* LEN of that look */
    uint64_t fetched;       /* entries fetched in (C, P] */
    bool reached_last;      /* P is LAST of the look */
    bool all_above_custody; /* FIRST > C, or the stream is empty */
    bool may_rebase; /* A comes from an audit: where it proves too large, EA takes its place */
};
struct silt_gap_sum {
    bool breaks;            /* more entries than the look promises: the chain is broken */
    bool rebased;           /* as above, but A was an estimate and has been set right */
    uint64_t missing;       /* to book now */
    uint64_t custody_added; /* A of the commit */
};
struct silt_gap_sum silt_gap_count(const struct silt_gap_input *input);

/* Where missing entries lay and why, as far as the looks of a fetch tell. */
struct silt_gap_evidence {
    struct silt_wire_id custody; /* C before the fold */
    struct silt_wire_id last;    /* LAST of the look that set the target */
    bool has_first;              /* of the last look of the fetch that still continued */
    struct silt_wire_id first;
    struct silt_wire_id max_deleted; /* the highest of those looks */
};
/* FIRST > C or none, or MAXDEL > C: otherwise missing entries break the chain (protocol §3). */
bool silt_gap_is_explained(const struct silt_gap_evidence *evidence);
/* Range, precision, count and cause; life and time are the caller's. missing > 0 and explained. */
struct silt_gap_row silt_gap_describe(const struct silt_gap_evidence *evidence, uint64_t missing);

#endif
