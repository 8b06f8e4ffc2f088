/* Instants (RFC 3339) and durations (90s, 36h, 30d) as text. An instant is a type of its own: milliseconds since 1970, an
 * address on a stream, never a wire id by accident. No clock here. */
#ifndef SILT_INSTANT_H
#define SILT_INSTANT_H

#include "bytes.h"

struct silt_instant {
    int64_t ms; /* since 1970-01-01T00:00:00Z; fractions of a millisecond are floored */
};
#define SILT_INSTANT_TEXT 32

/* "2026-03-01T12:00:00.123Z", with offset, with or without fraction, space or t for T; a bare date "2026-03-01" is its midnight UTC.
 * Fails with SILT_ERR_INSTANT. Before 1970 parses; a stream bound refuses it. */
SILT_MUST_USE enum silt_status silt_instant_parse(struct silt_view text, struct silt_instant *ret,
                                                  struct silt_err *err);
/* Always UTC with three decimals: "2026-03-01T12:00:00.123Z". Years above 9999 are written with their digits. */
size_t silt_instant_format(struct silt_instant instant, char ret[SILT_INSTANT_TEXT]);

/* "250ms", "90s", "15m", "36h", "30d", sums such as "1d12h"; not negative. Fails with SILT_ERR_DURATION. */
SILT_MUST_USE enum silt_status silt_duration_parse(struct silt_view text, uint64_t *ret_ms,
                                                   struct silt_err *err);
/* The shortest exact form, "1d12h". */
size_t silt_duration_format(uint64_t ms, char ret[SILT_INSTANT_TEXT]);

#endif
