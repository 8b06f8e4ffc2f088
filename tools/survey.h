/* What the archive holds of one stream, from headers and rows alone: its newest life and, below the forks, the parents'. */
#ifndef SILT_SURVEY_H
#define SILT_SURVEY_H

#include "session.h"

struct silt_survey {
    const struct silt_stream_row *row; /* borrowed */
    uint64_t segments, entries, foreign, values_bytes, stored_bytes, damaged;
    uint64_t lives; /* the newest one and its parents */
    bool any;
    struct silt_wire_id first, last;
    struct silt_buf
        list; /* silt_segment_info structs, ascending; first only where damaged (count 0) */
    struct silt_buf gaps; /* silt_gap_row structs of these lives */
};
static inline const struct silt_segment_info *silt_survey_segments(const struct silt_survey *survey)
{
    return (const struct silt_segment_info *)(const void *)survey->list.at;
}
static inline const struct silt_gap_row *silt_survey_gaps(const struct silt_survey *survey,
                                                          size_t *ret_count)
{
    *ret_count = survey->gaps.len / sizeof(struct silt_gap_row);
    return (const struct silt_gap_row *)(const void *)survey->gaps.at;
}
/* Owns: silt_survey_release, also after a failure. */
SILT_MUST_USE enum silt_status silt_survey_take(struct silt_store *store,
                                                const struct silt_stream_row *row,
                                                struct silt_survey *ret, struct silt_err *err);
void silt_survey_release(struct silt_survey *survey);

#endif
