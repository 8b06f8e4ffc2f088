/* Deep check of a store: reads everything (or one stream, one range), decodes everything, and tells each finding. Never stops at the first. */
#ifndef SILT_CHECK_H
#define SILT_CHECK_H

#include "store.h"

enum silt_finding_kind {
    SILT_FINDING_CHECKSUM,  /* bytes are not what was written */
    SILT_FINDING_DECODE,    /* checksum right, content not well formed */
    SILT_FINDING_KEY,       /* key and header disagree */
    SILT_FINDING_OVERLAP,   /* two segments hold the same range */
    SILT_FINDING_COUNT,     /* header's count, foreign count or bytes are not what is there */
    SILT_FINDING_ORDER,     /* ids not ascending */
    SILT_FINDING_WATERMARK, /* W is below the last archived id, or counters disagree */
    SILT_FINDING_ROW,       /* a stream, gap, fork, late or name row is damaged or points nowhere */
    SILT_FINDING_GAP        /* not damage: a recorded gap in the range */
};
struct silt_finding {
    enum silt_finding_kind kind;
    struct silt_view stream; /* key; empty where unknown */
    uint64_t life;
    struct silt_wire_id first; /* the id range that is affected */
    struct silt_wire_id last;
    char text[240];
};
const char *silt_finding_name(enum silt_finding_kind kind);

struct silt_check_sum {
    uint64_t streams, segments, entries, values_bytes, stored_bytes, damaged_segments, findings;
};
/* found and progress may be NULL; progress is told the sum so far now and then. stream: empty view for all. Gives SILT_OK when the walk
 * itself worked, whatever it found. */
struct silt_check_options {
    struct silt_view stream;
    struct silt_range range;
    void (*found)(void *ctx, const struct silt_finding *finding);
    void (*progress)(void *ctx, const struct silt_check_sum *so_far);
    void *ctx;
};
SILT_MUST_USE enum silt_status silt_check(struct silt_store *store,
                                          const struct silt_check_options *options,
                                          struct silt_check_sum *ret, struct silt_err *err);

#endif
