/* A history over time as a histogram: entries per bucket, where they lie, gaps. Pure: entries in, lines out. */
#ifndef SILT_TIMELINE_H
#define SILT_TIMELINE_H

#include "out.h"

#define SILT_TIMELINE_BUCKETS_MAX 32

struct silt_bucket {
    uint64_t from_ms;
    uint64_t archive; /* entries in the archive, those that are live as well among them */
    uint64_t live;    /* entries that only the server has */
    uint64_t gap;     /* entries known to be missing (at least) */
    bool has_gap;
};
struct silt_timeline {
    uint64_t width_ms;
    struct silt_bucket buckets[SILT_TIMELINE_BUCKETS_MAX];
    size_t count;
    uint64_t
        live_from_ms; /* the server still has what is at or after this; UINT64_MAX: nothing, or not asked */
};

/* Buckets of a round width over first_ms..last_ms. */
void silt_timeline_init(struct silt_timeline *timeline, uint64_t first_ms, uint64_t last_ms);
/* Entries spread evenly over first_ms..last_ms (a segment's header says no more); none is lost to rounding. */
void silt_timeline_add(struct silt_timeline *timeline, uint64_t first_ms, uint64_t last_ms,
                       uint64_t entries, bool live);
void silt_timeline_add_gap(struct silt_timeline *timeline, uint64_t first_ms, uint64_t last_ms,
                           uint64_t entries);
void silt_timeline_show(struct silt_out *out, const struct silt_timeline *timeline);
void silt_timeline_json(struct silt_out *out, const struct silt_timeline *timeline);

#endif
