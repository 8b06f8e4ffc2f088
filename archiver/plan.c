/* Which ids may go (protocol.md §2 step 7): pure arithmetic, no I/O, no clock. */
#include "plan.h"

const char *silt_held_by_name(enum silt_held_by by)
{
    switch (by) {
    case SILT_HELD_NOTHING: return "nothing";
    case SILT_HELD_RETENTION: return "retention";
    case SILT_HELD_ARCHIVE: return "archive";
    case SILT_HELD_GROUP: return "group";
    case SILT_HELD_PENDING: return "pending";
    case SILT_HELD_NEWEST: return "newest";
    case SILT_HELD_SHADOW: return "shadow";
    case SILT_HELD_VERDICT: return "verdict";
    case SILT_HELD_FOREIGN: return "foreign";
    case SILT_HELD_DAMAGE: return "damage";
    }
    return "unknown";
}

bool silt_plan_releases(const struct silt_keep *limit, uint64_t now_ms,
                        struct silt_wire_id oldest_held, uint64_t behind)
{
    if (limit->has_age && now_ms > oldest_held.ms && now_ms - oldest_held.ms > limit->age_ms)
        return true;
    return limit->has_entries && behind > limit->entries;
}

static void raise_to(struct silt_wire_id *at, struct silt_wire_id id)
{
    if (silt_wire_id_less(*at, id)) *at = id;
}

/* What retention asks to remove: everything below the highest of its limits' floors. */
static struct silt_wire_id retention_floor(const struct silt_plan_input *input)
{
    struct silt_wire_id floor = SILT_WIRE_ID_MIN;
    if (input->keep.has_age && input->now_ms > input->keep.age_ms)
        raise_to(&floor, (struct silt_wire_id){input->now_ms - input->keep.age_ms, 0});
    if (input->keep.has_entries && input->has_entries_floor) raise_to(&floor, input->entries_floor);
    if (input->keep.has_bytes && input->has_bytes_floor) raise_to(&floor, input->bytes_floor);
    return floor;
}

static void lower_to(struct silt_plan *plan, struct silt_wire_id id, enum silt_held_by by)
{
    if (!silt_wire_id_less(id, plan->threshold)) return;
    plan->threshold = id;
    plan->held_by = by;
}

struct silt_plan silt_plan_trim(const struct silt_plan_input *input)
{
    struct silt_plan plan = {.held_by = SILT_HELD_NOTHING};
    const struct silt_keep *keep = &input->keep;
    if (!keep->has_age && !keep->has_entries && !keep->has_bytes) {
        plan.held_by = SILT_HELD_SHADOW;
        return plan;
    }
    plan.held_by = SILT_HELD_RETENTION;
    plan.threshold = retention_floor(input);

    /* Promise 1: nothing above C is ever named; promise 2: what follows only ever lowers. */
    struct silt_wire_id after_custody = SILT_WIRE_ID_MIN;
    if (input->folded_any && !silt_wire_id_next(input->custody, &after_custody))
        after_custody = input->custody;
    lower_to(&plan, after_custody, SILT_HELD_ARCHIVE);
    for (size_t i = 0; i < input->floor_count; i++) {
        if (!silt_wire_id_less(input->floors[i].floor, plan.threshold)) continue;
        lower_to(&plan, input->floors[i].floor,
                 input->floors[i].pending ? SILT_HELD_PENDING : SILT_HELD_GROUP);
        plan.held_floor = i;
    }
    /* At least the newest entry stays (protocol §2), and the threshold is never above a live entry's id (field report A1). */
    lower_to(&plan, input->newest, SILT_HELD_NEWEST);
    return plan;
}
