/* Which ids may go: pure arithmetic, no I/O, no clock. */
#ifndef SILT_PLAN_H
#define SILT_PLAN_H

#include "cycle.h"

struct silt_plan_floor { /* a group under `hold` that still wants entries */
    struct silt_view group;
    struct silt_wire_id
        floor; /* first id it wants: oldest pending, else successor of last-delivered */
    bool pending;
};
struct silt_plan_input {
    struct silt_keep keep;
    uint64_t now_ms;             /* the server's TIME */
    struct silt_wire_id custody; /* C */
    bool folded_any;
    struct silt_wire_id newest; /* the newest live entry; 0-0: the stream is empty */
    bool has_entries_floor; /* keep.entries: the id of the n-th newest entry; false: fewer than n */
    struct silt_wire_id entries_floor;
    bool has_bytes_floor;
    struct silt_wire_id bytes_floor;
    const struct silt_plan_floor *floors;
    size_t floor_count;
};
struct silt_plan {
    struct silt_wire_id threshold; /* the first id that the next trim leaves; 0-0: trim nothing */
    enum silt_held_by held_by;
    size_t held_floor; /* index into floors for GROUP and PENDING */
};
/* Is a group that wants entries from `floor` on so far behind that group-limit no longer lets it hold (protocol §4)? oldest_held: the oldest live entry it
 * holds; behind: entries from its floor on. */
bool silt_plan_releases(const struct silt_keep *limit, uint64_t now_ms,
                        struct silt_wire_id oldest_held, uint64_t behind);

/* The lowest of: what keep asks to remove (an entry stays only while every limit given allows it), succ(C), the group floors, the newest entry. */
struct silt_plan silt_plan_trim(const struct silt_plan_input *input);

#endif
