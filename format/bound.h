/* The ends of a range as people write them: wire ids with XRANGE's short forms, branded ids, instants. Turns text into an
 * inclusive pair of wire ids before anything is sent or read. */
#ifndef SILT_BOUND_H
#define SILT_BOUND_H

#include "branded_id.h"
#include "instant.h"

enum silt_edge { SILT_EDGE_FROM, SILT_EDGE_TO };

/* "-", "+", "<ms>", "<ms>-<seq>", "(<id>" (exclusive), a branded id (of namespace ns if that is set), "(" before a branded id, an instant.
 * A bare <ms> or an instant is the first id of its millisecond as FROM, the last as TO; exclusive steps over the id (or, for a bare <ms> or instant, as the server does: over <ms>-0 / <ms>-max).
 * Fails with: the id codes, SILT_ERR_INSTANT, SILT_ERR_WIRE_ID, SILT_ERR_BARE_SNOWFLAKE (a bare number that would be a year above 9999 as
 * milliseconds, with a hint naming the wire id it stands for), SILT_ERR_ID_KIND, SILT_ERR_WINDOW (an exclusive end beyond the range). */
SILT_MUST_USE enum silt_status silt_bound_parse(struct silt_view text, enum silt_edge edge,
                                                struct silt_namespace ns, struct silt_wire_id *ret,
                                                struct silt_err *err);

/* An inclusive range; from > to is refused by silt_range_check with SILT_ERR_WINDOW. */
struct silt_range {
    struct silt_wire_id from;
    struct silt_wire_id to;
};
#define SILT_RANGE_ALL ((struct silt_range){SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX})
SILT_MUST_USE enum silt_status silt_range_check(struct silt_range range, struct silt_err *err);
/* "T0..T1", each end as above. */
SILT_MUST_USE enum silt_status silt_window_parse(struct silt_view text, struct silt_namespace ns,
                                                 struct silt_range *ret, struct silt_err *err);

#endif
