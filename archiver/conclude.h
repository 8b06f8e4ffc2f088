/* What an audit's findings mean: the rows of protocol.md §3 that audit, decided at its end. A pure function; knows no server and no store. */
#ifndef SILT_CONCLUDE_H
#define SILT_CONCLUDE_H

#include "rows.h"

/* Can comparing the live part with the archive settle it? Where the archive itself is in doubt, or a trim removed too much, somebody has to look. */
bool silt_audit_settles(enum silt_audit_cause cause);

enum silt_audit_end {
    SILT_AUDIT_WAIT, /* marker absent and nothing live: the next entry decides */
    SILT_AUDIT_SAME, /* the same life, everything live up to C is archived */
    SILT_AUDIT_LATE, /* the same life; from the first absent entry on it is folded again, absent ones as late */
    SILT_AUDIT_FORK,     /* a new life from the first entry that is not as archived */
    SILT_AUDIT_RECREATED /* the same life, another object with ids above W */
};
const char *silt_audit_end_name(enum silt_audit_end end);

struct silt_audit_input {
    const struct silt_stream_row
        *row; /* with the verdict: W, C, A and stored facts of before, and the finished audit */
    const struct silt_facts *closing; /* of the look that ended it */
    bool has_fork;                    /* the life forked off, here: nothing can be put in below */
    struct silt_wire_id fork;
    uint64_t still;          /* of the audit's prefix, entries still live in the closing look */
    uint64_t archived_above; /* archived entries in (C, W] of before the verdict */
    uint64_t now_ms;
};
struct silt_audit_conclusion {
    enum silt_audit_end end;
    struct silt_wire_id watermark, custody; /* of the life that goes on */
    uint64_t custody_added;
    bool added_estimated;
    struct silt_wire_id fork; /* FORK */
    bool has_gap;             /* of the life as it was before */
    struct silt_gap_row gap;
    char sentence[200];
};
struct silt_audit_conclusion silt_audit_conclude(const struct silt_audit_input *input);

#endif
