/* archiver/conclude.c: what an audit's findings mean, each row of protocol.md §3 that audits, without a server. */
#include "../harness/harness.h"
#include "conclude.h"

static struct silt_wire_id id(uint64_t ms)
{
    return (struct silt_wire_id){ms, 0};
}

struct scene {
    struct silt_stream_row row;
    struct silt_facts closing;
    struct silt_audit_input input;
};

/* Ten folded of a plain stream (1-0 to 10-0), all of them live, all found equal, twelve added by now. */
static void calm(struct scene *scene, enum silt_audit_cause cause)
{
    *scene = (struct scene){0};
    struct silt_facts facts = {
        .entries_added = 12, .length = 12, .last = {12, 0}, .has_first = true, .first = {1, 0}};
    scene->closing = facts;
    scene->row = (struct silt_stream_row){.number = 1,
                                          .life = 4,
                                          .folded_any = true,
                                          .watermark = {10, 0},
                                          .custody = {10, 0},
                                          .custody_added = 10,
                                          .has_facts = true};
    scene->row.audit = (struct silt_audit){.cause = cause,
                                           .added_seen = 10,
                                           .last_seen = {10, 0},
                                           .opened = true,
                                           .opening_added = 12,
                                           .opening_length = 12,
                                           .through = {10, 0},
                                           .position = {10, 0},
                                           .equal = 10,
                                           .prefix = 10};
    scene->input.still = 10;
    scene->input.now_ms = 77;
}

static struct silt_audit_conclusion conclude(struct scene *scene)
{
    scene->input.row = &scene->row;
    scene->input.closing = &scene->closing;
    return silt_audit_conclude(&scene->input);
}

/* The n-th live entry of the ten is not as archived. */
static void differ(struct scene *scene, uint64_t n, uint64_t absent, uint64_t conflict)
{
    struct silt_audit *audit = &scene->row.audit;
    audit->has_difference = true;
    audit->difference = id(n);
    audit->prefix = scene->input.still = n - 1;
    audit->absent = absent;
    audit->conflict = conflict;
    audit->equal = 10 - absent - conflict;
}

static void check_end(struct scene *scene, enum silt_audit_end end)
{
    struct silt_audit_conclusion got = conclude(scene);
    ck_assert_msg(got.end == end, "%s, should be %s", silt_audit_end_name(got.end),
                  silt_audit_end_name(end));
}

START_TEST(conclude__all_equal_is_the_same_life)
{
    struct scene scene;
    for (int cause = SILT_AUDIT_OURS_REPL; cause <= SILT_AUDIT_FOLD_CONFLICT; cause++) {
        calm(&scene, (enum silt_audit_cause)cause);
        struct silt_audit_conclusion got = conclude(&scene);
        ck_assert_int_eq(got.end, SILT_AUDIT_SAME);
        ck_assert(silt_wire_id_equal(got.custody, id(10)));
        ck_assert(silt_wire_id_equal(got.watermark, id(10)));
        ck_assert_uint_eq(got.custody_added, 10);
        ck_assert(!got.has_gap);
        ck_assert_ptr_nonnull(strstr(got.sentence, "10 live entries as archived"));
    }
}
END_TEST

/* Failover to a replica that ends at 6-0: C goes back with it, W stays. */
START_TEST(conclude__custody_is_that_of_the_opening_look)
{
    struct scene scene;
    calm(&scene, SILT_AUDIT_OURS_BACK);
    scene.row.audit.through = id(6);
    scene.row.audit.equal = scene.row.audit.prefix = scene.input.still = 6;
    scene.row.audit.opening_added = scene.row.audit.opening_length = 6;
    scene.row.audit.went_back = true;
    scene.closing.entries_added = scene.closing.length = 8; /* two more arrived meanwhile */
    struct silt_audit_conclusion got = conclude(&scene);
    ck_assert_int_eq(got.end, SILT_AUDIT_SAME);
    ck_assert(silt_wire_id_equal(got.custody, id(6)));
    ck_assert(silt_wire_id_equal(got.watermark, id(10)));
    ck_assert_uint_eq(got.custody_added, 6);
    ck_assert(got.added_estimated && !got.has_gap);
}
END_TEST

START_TEST(conclude__ours_with_absent_ones_is_late)
{
    struct scene scene;
    calm(&scene, SILT_AUDIT_OURS_BACK);
    differ(&scene, 5, 2, 0);
    struct silt_audit_conclusion got = conclude(&scene);
    ck_assert_int_eq(got.end, SILT_AUDIT_LATE);
    ck_assert_uint_eq(got.custody.ms, 4);
    ck_assert(silt_wire_id_less(got.custody, id(5)));
    ck_assert(silt_wire_id_equal(got.watermark, id(10)));
    calm(&scene, SILT_AUDIT_OURS_BACK);
    differ(&scene, 1, 10, 0); /* none known at all: ours all the same */
    check_end(&scene, SILT_AUDIT_LATE);
}
END_TEST

START_TEST(conclude__a_conflict_forks_at_the_first_difference)
{
    static const enum silt_audit_cause causes[] = {SILT_AUDIT_OURS_REPL, SILT_AUDIT_OURS_BACK,
                                                   SILT_AUDIT_MARKER_ABSENT, SILT_AUDIT_BYTES,
                                                   SILT_AUDIT_FOLD_CONFLICT};
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        struct scene scene;
        calm(&scene, causes[i]);
        differ(&scene, 4, 1, 1); /* the absent one comes first */
        struct silt_audit_conclusion got = conclude(&scene);
        ck_assert_int_eq(got.end, SILT_AUDIT_FORK);
        ck_assert(silt_wire_id_equal(got.fork, id(4)));
        ck_assert_uint_eq(got.custody.ms, 3);
        ck_assert_uint_eq(got.custody.seq, UINT64_MAX);
        ck_assert(silt_wire_id_equal(got.watermark, got.custody));
        ck_assert_uint_eq(got.custody_added, 3); /* nine live from the fork on, of twelve added */
    }
}
END_TEST

START_TEST(conclude__what_lies_below_the_lifes_own_fork_forks_again)
{
    struct scene scene;
    calm(&scene, SILT_AUDIT_OURS_BACK);
    differ(&scene, 5, 1, 0);
    scene.input.has_fork = true;
    scene.input.fork = id(5);
    check_end(&scene, SILT_AUDIT_LATE);
    scene.input.fork = id(6);
    check_end(&scene, SILT_AUDIT_FORK);
}
END_TEST

START_TEST(conclude__absent_marker_with_known_entries_is_the_same_life)
{
    struct scene scene;
    calm(&scene, SILT_AUDIT_MARKER_ABSENT);
    check_end(&scene, SILT_AUDIT_SAME);
    differ(&scene, 5, 1, 0);
    check_end(&scene, SILT_AUDIT_LATE);
}
END_TEST

START_TEST(conclude__absent_marker_with_unknown_entries_alone)
{
    struct scene scene;
    for (int branded = 0; branded < 2; branded++) {
        calm(&scene, SILT_AUDIT_MARKER_ABSENT);
        differ(&scene, 1, 10, 0);
        if (branded) memcpy(scene.row.ns.letters, "EVT", 4);
        check_end(&scene, branded ? SILT_AUDIT_LATE : SILT_AUDIT_FORK);
        scene.row.audit.through = id(9); /* LAST below W: begun anew, whatever its ids */
        check_end(&scene, SILT_AUDIT_FORK);
    }
}
END_TEST

static void nothing_read(struct scene *scene)
{
    struct silt_audit *audit = &scene->row.audit;
    audit->equal = audit->prefix = scene->input.still = 0;
}

START_TEST(conclude__absent_marker_and_nothing_up_to_the_watermark)
{
    struct scene scene;
    calm(&scene, SILT_AUDIT_MARKER_ABSENT);
    nothing_read(&scene);
    scene.closing.first = id(11);
    check_end(&scene, SILT_AUDIT_RECREATED);
    scene.closing.has_first = false;
    check_end(&scene, SILT_AUDIT_WAIT);
    /* ids began again below W, and what there was first has been removed meanwhile */
    scene.closing.has_first = true;
    scene.closing.first = id(8);
    scene.row.audit.through = id(7);
    struct silt_audit_conclusion got = conclude(&scene);
    ck_assert_int_eq(got.end, SILT_AUDIT_FORK);
    ck_assert(silt_wire_id_less(id(7), got.fork) && silt_wire_id_less(got.fork, id(8)));
}
END_TEST

START_TEST(conclude__recreated_where_a_fact_went_back_counts_from_zero)
{
    struct scene scene;
    calm(&scene, SILT_AUDIT_MARKER_ABSENT);
    nothing_read(&scene);
    scene.row.audit.went_back = true;
    scene.row.audit.added_seen = 13; /* three seen above W, never folded */
    scene.row.audit.last_seen = id(13);
    scene.closing.entries_added = scene.closing.length = 2;
    scene.closing.first = id(20);
    struct silt_audit_conclusion got = conclude(&scene);
    ck_assert_uint_eq(got.custody_added, 0);
    ck_assert(silt_wire_id_equal(got.custody, id(10)) && !got.added_estimated);
    ck_assert(got.has_gap);
    ck_assert_int_eq(got.gap.precision, SILT_GAP_AT_LEAST);
    ck_assert_uint_eq(got.gap.count, 3);
    ck_assert_uint_eq(got.gap.life, 4);
    ck_assert_uint_eq(got.gap.range.after.ms, 10);
    ck_assert_uint_eq(got.gap.range.through.ms, 13);
    scene.row.lost_added = 13; /* booked when the key went */
    ck_assert(!conclude(&scene).has_gap);
}
END_TEST

START_TEST(conclude__recreated_or_marker_removed_is_a_gap_between)
{
    struct scene scene;
    calm(&scene, SILT_AUDIT_MARKER_ABSENT);
    nothing_read(&scene);
    scene.closing = (struct silt_facts){
        .entries_added = 20, .length = 4, .last = {30, 0}, .has_first = true, .first = {27, 0}};
    struct silt_audit_conclusion got = conclude(&scene);
    ck_assert_uint_eq(got.custody_added, 16); /* so the next fold books none of it again */
    ck_assert(got.has_gap);
    ck_assert_int_eq(got.gap.precision, SILT_GAP_BETWEEN);
    ck_assert_uint_eq(got.gap.count, 6);
    ck_assert_uint_eq(got.gap.count_max, 16);
    ck_assert_uint_eq(got.gap.range.through.ms, 26);
    /* fewer went than A: the old object cannot be this one */
    scene.closing.length = 15;
    got = conclude(&scene);
    ck_assert_uint_eq(got.custody_added, 0);
    ck_assert(!got.has_gap);
}
END_TEST

START_TEST(conclude__rolled_back_as_the_numbers_allow)
{
    static const struct {
        uint64_t seen, opening_added, opening_length; /* ten of the length are archived */
        bool gap;
        uint64_t least, most;
    } rows[] = {
        {15, 10, 10, true, 5, 5}, /* all five are gone */
        {15, 12, 12, true, 3, 5}, /* two above W: survivors, or new ones */
        {15, 14, 14, true, 1, 5}, {15, 15, 15, false, 0, 0}, /* EA not back: nothing shows a loss */
        {10, 8, 8, false, 0, 0},                             /* everything seen had been folded */
        {15, 4, 4, true, 5, 5},                              /* folded ones rolled back too */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene scene;
        calm(&scene, SILT_AUDIT_OURS_REPL);
        scene.row.audit.added_seen = rows[i].seen;
        scene.row.audit.last_seen = id(rows[i].seen);
        scene.row.audit.opening_added = scene.closing.entries_added = rows[i].opening_added;
        scene.row.audit.opening_length = scene.closing.length = rows[i].opening_length;
        struct silt_audit_conclusion got = conclude(&scene);
        ck_assert_msg(got.has_gap == rows[i].gap, "row %zu", i);
        if (!got.has_gap) continue;
        ck_assert_int_eq(got.gap.cause, SILT_GAP_ROLLED_BACK);
        ck_assert_msg(got.gap.count == rows[i].least && got.gap.count_max == rows[i].most,
                      "row %zu: %llu to %llu", i, (unsigned long long)got.gap.count,
                      (unsigned long long)got.gap.count_max);
        ck_assert_int_eq(got.gap.precision,
                         rows[i].least == rows[i].most ? SILT_GAP_AT_LEAST : SILT_GAP_BETWEEN);
    }
}
END_TEST

START_TEST(conclude__archived_ones_above_custody_are_not_rolled_back)
{
    struct scene scene;
    calm(&scene, SILT_AUDIT_OURS_BACK);
    scene.row.custody = id(8); /* after an earlier audit: 9-0 and 10-0 are archived */
    scene.row.custody_added = 8;
    scene.row.audit.opening_added = scene.row.audit.opening_length = 8;
    scene.input.archived_above = 2;
    ck_assert(!conclude(&scene).has_gap);
    scene.row.audit.added_seen = 11;
    ck_assert_uint_eq(conclude(&scene).gap.count, 1);
}
END_TEST

/* Others trimmed what was not folded, and the server was restarted: the old A still promises it, and the next fold finds it missing. */
START_TEST(conclude__where_nothing_went_back_the_count_is_kept)
{
    struct scene scene;
    calm(&scene, SILT_AUDIT_OURS_REPL);
    scene.row.audit.opening_added = scene.closing.entries_added = 30;
    scene.closing.length = 12; /* 18 of the 20 above C have gone */
    ck_assert_uint_eq(conclude(&scene).custody_added, 10);
    scene.row.audit.cause = SILT_AUDIT_FOLD_COUNT; /* unless the count itself is in doubt */
    ck_assert_uint_eq(conclude(&scene).custody_added, 28);
    scene.row.audit.cause = SILT_AUDIT_OURS_BACK; /* or the look showed another history */
    scene.row.audit.went_back = true;
    ck_assert_uint_eq(conclude(&scene).custody_added, 28);
    calm(&scene, SILT_AUDIT_OURS_REPL);
    scene.row.custody_added = 14; /* another history's: what is there counts */
    ck_assert_uint_eq(conclude(&scene).custody_added, 10);
}
END_TEST

START_TEST(conclude__what_the_head_lost_meanwhile_is_not_counted)
{
    struct scene scene;
    calm(&scene, SILT_AUDIT_OURS_BACK);
    scene.row.audit.went_back = true;
    scene.closing.first = id(8);
    scene.closing.length = 5; /* 8-0 to 12-0 */
    scene.input.still = 3;
    ck_assert_uint_eq(conclude(&scene).custody_added, 10);
    scene.input.still = 99; /* more than there are: no number may wrap */
    ck_assert_uint_eq(conclude(&scene).custody_added, 12);
}
END_TEST

START_TEST(conclude__what_comparing_cannot_settle)
{
    ck_assert(silt_audit_settles(SILT_AUDIT_OURS_REPL));
    ck_assert(silt_audit_settles(SILT_AUDIT_UNKNOWN)); /* a verdict of an earlier silt */
    ck_assert(!silt_audit_settles(SILT_AUDIT_READ_BACK));
    ck_assert(!silt_audit_settles(SILT_AUDIT_TRIM_ALARM));
}
END_TEST

TEST_MAIN(conclude__all_equal_is_the_same_life, conclude__custody_is_that_of_the_opening_look,
          conclude__ours_with_absent_ones_is_late,
          conclude__a_conflict_forks_at_the_first_difference,
          conclude__what_lies_below_the_lifes_own_fork_forks_again,
          conclude__absent_marker_with_known_entries_is_the_same_life,
          conclude__absent_marker_with_unknown_entries_alone,
          conclude__absent_marker_and_nothing_up_to_the_watermark,
          conclude__recreated_where_a_fact_went_back_counts_from_zero,
          conclude__recreated_or_marker_removed_is_a_gap_between,
          conclude__rolled_back_as_the_numbers_allow,
          conclude__archived_ones_above_custody_are_not_rolled_back,
          conclude__where_nothing_went_back_the_count_is_kept,
          conclude__what_the_head_lost_meanwhile_is_not_counted,
          conclude__what_comparing_cannot_settle)
