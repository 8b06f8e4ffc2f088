/* archiver/plan.c: what may go. */
#include "../harness/harness.h"
#include "plan.h"

static struct silt_wire_id id(uint64_t ms, uint64_t seq)
{
    return (struct silt_wire_id){ms, seq};
}

static void check_plan(const struct silt_plan_input *input, struct silt_wire_id threshold,
                       enum silt_held_by by)
{
    struct silt_plan plan = silt_plan_trim(input);
    ck_assert_uint_eq(plan.threshold.ms, threshold.ms);
    ck_assert_uint_eq(plan.threshold.seq, threshold.seq);
    ck_assert_str_eq(silt_held_by_name(plan.held_by), silt_held_by_name(by));
}

/* Everything folded up to 1000-5, newest live entry there, keep names entries with a floor at 900-0. */
static struct silt_plan_input folded(void)
{
    return (struct silt_plan_input){.keep = {.has_entries = true, .entries = 10},
                                    .now_ms = 5000,
                                    .custody = {1000, 5},
                                    .folded_any = true,
                                    .newest = {1000, 5},
                                    .has_entries_floor = true,
                                    .entries_floor = {900, 0}};
}

START_TEST(plan__without_keep_never_trims)
{
    struct silt_plan_input input = folded();
    input.keep = (struct silt_keep){0};
    check_plan(&input, id(0, 0), SILT_HELD_SHADOW);
}
END_TEST

START_TEST(plan__entries_floor_is_the_threshold)
{
    struct silt_plan_input input = folded();
    check_plan(&input, id(900, 0), SILT_HELD_RETENTION);
    input.has_entries_floor = false; /* fewer than n */
    check_plan(&input, id(0, 0), SILT_HELD_RETENTION);
}
END_TEST

START_TEST(plan__age_counts_back_from_the_servers_time)
{
    struct silt_plan_input input = folded();
    input.keep = (struct silt_keep){.has_age = true, .age_ms = 4400};
    check_plan(&input, id(600, 0), SILT_HELD_RETENTION);
    input.keep.age_ms = 9000; /* older than time itself: nothing goes */
    check_plan(&input, id(0, 0), SILT_HELD_RETENTION);
}
END_TEST

START_TEST(plan__the_strictest_limit_wins)
{
    struct silt_plan_input input = folded();
    input.keep.has_age = input.keep.has_bytes = true;
    input.keep.age_ms = 4400;
    input.has_bytes_floor = true;
    input.bytes_floor = id(950, 3);
    check_plan(&input, id(950, 3), SILT_HELD_RETENTION);
}
END_TEST

START_TEST(plan__never_above_the_successor_of_custody)
{
    struct silt_plan_input input = folded();
    input.newest = id(2000, 0);
    input.keep = (struct silt_keep){.has_age = true, .age_ms = 0};
    check_plan(&input, id(1000, 6), SILT_HELD_ARCHIVE);
    input.custody = id(1000, UINT64_MAX);
    check_plan(&input, id(1001, 0), SILT_HELD_ARCHIVE);
}
END_TEST

START_TEST(plan__nothing_folded_nothing_trimmed)
{
    struct silt_plan_input input = folded();
    input.folded_any = false;
    check_plan(&input, id(0, 0), SILT_HELD_ARCHIVE);
}
END_TEST

START_TEST(plan__the_newest_live_entry_stays)
{
    struct silt_plan_input input = folded();
    input.keep = (struct silt_keep){.has_entries = true, .entries = 0};
    input.entries_floor = id(1000, 6);
    check_plan(&input, id(1000, 5), SILT_HELD_NEWEST);
    input.newest = id(700, 0); /* the entries above it were deleted: A1 */
    check_plan(&input, id(700, 0), SILT_HELD_NEWEST);
    input.newest = id(0, 0);
    check_plan(&input, id(0, 0), SILT_HELD_NEWEST);
}
END_TEST

START_TEST(plan__groups_hold_and_are_named)
{
    const struct silt_plan_floor floors[] = {{silt_view_str("a"), {950, 0}, false},
                                             {silt_view_str("b"), {300, 1}, true},
                                             {silt_view_str("c"), {200, 0}, false}};
    struct silt_plan_input input = folded();
    input.floors = floors;
    input.floor_count = 1;
    check_plan(&input, id(900, 0), SILT_HELD_RETENTION);
    input.floor_count = 2;
    check_plan(&input, id(300, 1), SILT_HELD_PENDING);
    ck_assert_uint_eq(silt_plan_trim(&input).held_floor, 1);
    input.floor_count = 3;
    check_plan(&input, id(200, 0), SILT_HELD_GROUP);
    ck_assert_uint_eq(silt_plan_trim(&input).held_floor, 2);
}
END_TEST

START_TEST(plan__a_floor_above_the_threshold_changes_nothing)
{
    const struct silt_plan_floor floors[] = {{silt_view_str("a"), {900, 0}, true}};
    struct silt_plan_input input = folded();
    input.floors = floors;
    input.floor_count = 1;
    check_plan(&input, id(900, 0), SILT_HELD_RETENTION);
}
END_TEST

START_TEST(plan__group_limit_releases_by_age_and_by_entries)
{
    struct silt_keep limit = {.has_age = true, .age_ms = 1000};
    ck_assert(!silt_plan_releases(&limit, 5000, id(4000, 0), 1u << 30));
    ck_assert(silt_plan_releases(&limit, 5001, id(4000, 0), 0));
    ck_assert(!silt_plan_releases(&limit, 10, id(4000, 0), 0)); /* a clock behind the ids */
    limit = (struct silt_keep){.has_entries = true, .entries = 10};
    ck_assert(!silt_plan_releases(&limit, 1u << 30, id(0, 0), 10));
    ck_assert(silt_plan_releases(&limit, 0, id(0, 0), 11));
    limit = (struct silt_keep){0};
    ck_assert(!silt_plan_releases(&limit, UINT64_MAX, id(0, 0), UINT64_MAX));
}
END_TEST

TEST_MAIN(plan__without_keep_never_trims, plan__entries_floor_is_the_threshold,
          plan__age_counts_back_from_the_servers_time, plan__the_strictest_limit_wins,
          plan__never_above_the_successor_of_custody, plan__nothing_folded_nothing_trimmed,
          plan__the_newest_live_entry_stays, plan__groups_hold_and_are_named,
          plan__a_floor_above_the_threshold_changes_nothing,
          plan__group_limit_releases_by_age_and_by_entries)
