/* The header of a segment at rest, for the codec's own files. */
#ifndef SILT_SEGMENT_HEADER_H
#define SILT_SEGMENT_HEADER_H

#include "segment_priv.h"

void silt_segment_header_put(const struct silt_segment_info *info, struct silt_view body,
                             uint8_t ret[SILT_SEGMENT_HEADER]);
/* Everything that silt_segment_peek checks; gives the body and the checksum it must have (both may be NULL). */
SILT_MUST_USE enum silt_status silt_segment_header_get(struct silt_view bytes,
                                                       struct silt_segment_info *ret,
                                                       struct silt_view *ret_body,
                                                       uint64_t *ret_body_sum,
                                                       struct silt_err *err);

#endif
