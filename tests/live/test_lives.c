/* What a reader makes of late entries and of older lives: just the late ones, in the order in which they came; a named older life, out of the archive
 * alone; a life that changed. The lives and late entries are real ones, made through the store's own calls. */
#include "cursor_help.h"

static void insert(unsigned first, unsigned second)
{
    struct silt_field field = {silt_view("late", 4), silt_view("yes", 3)};
    struct silt_entry entries[2] = {{id(first), &field, 1}, {id(second), &field, 1}};
    test_mini_insert(&mini, entries, second == 0 ? 1 : 2);
}

/* 10 to 60, archived up to 40, then 15 and 35 late, then 12. */
static void start_late(void)
{
    start();
    add(10, 60);
    fold_to(40);
    insert(15, 35);
    insert(12, 0);
}

START_TEST(lives__late_entries_alone_in_the_order_they_came)
{
    struct silt_item item;
    start_late();
    what.late = true;
    long long asked = calls("xrange");
    ck_assert_str_eq(walk(), "15a 35a 12a .");
    ck_assert_int_eq(calls("xrange"), asked);
    ck_assert_int_eq(open_cursor(), SILT_OK);
    for (uint64_t number = 1; number <= 3; number++) {
        ck_assert_int_eq(silt_cursor_next(cursor, &item, &err), SILT_OK);
        ck_assert_uint_eq(item.late_number, number);
        ck_assert_uint_eq(item.life, mini.row.life);
        ck_assert_uint_eq(item.entry.field_count, 1);
    }
    what.late_after = 2;
    ck_assert_str_eq(walk(), "12a .");
    what.late_after = 0;
    what.from = "13-0";
    ck_assert_str_eq(walk(), "15a 35a .");
    what.to = "20-0";
    ck_assert_str_eq(walk(), "15a .");
    what.from = what.to = NULL;
    what.limit = 2;
    ck_assert_str_eq(walk(), "15a 35a .");
    what = (struct silt_cursor_options){.key = KEY}; /* and in their place, as all others */
    ck_assert_str_eq(walk(), "10a 12a 15a 20a 30a 35a 40a 50l 60l .");
    stop();
}
END_TEST

START_TEST(lives__a_walk_over_late_entries_goes_on_from_its_position)
{
    char position[SILT_POSITION_TEXT];
    start_late();
    what.late = true;
    for (size_t given = 0; given <= 3; given++) {
        static const char *const rest[] = {"15a 35a 12a .", "35a 12a .", "12a .", "."};
        what.resume = NULL;
        ck_assert_int_eq(open_cursor(), SILT_OK);
        if (given > 0) take(given);
        silt_cursor_position(cursor, position);
        what.resume = position;
        ck_assert_str_eq(walk(), rest[given]);
    }
    insert(17, 0);
    ck_assert_str_eq(walk(), "17a .");
    what.late = false; /* it is no place in the history */
    ck_assert_str_eq(walk(), "SILT_ERR_POSITION");
    ck_assert_ptr_nonnull(strstr(err.hint, "--late"));
    stop();
}
END_TEST

/* "n late entries behind you", and just these: those between its ids that came after its number. */
START_TEST(lives__what_a_reader_is_told_of_can_be_read_alone)
{
    char position[SILT_POSITION_TEXT], from[SILT_WIRE_ID_TEXT], to[SILT_WIRE_ID_TEXT];
    struct silt_item item;
    start();
    add(10, 60);
    fold_to(40);
    insert(11, 0); /* known before the reader begins */
    what.limit = 4;
    ck_assert_str_eq(walk(), "10a 11a 20a 30a .");
    silt_cursor_position(cursor, position);
    insert(15, 35);
    insert(25, 0);
    what.limit = 0;
    what.resume = position;
    ck_assert_int_eq(open_cursor(), SILT_OK);
    ck_assert_int_eq(silt_cursor_next(cursor, &item, &err), SILT_OK);
    ck_assert_int_eq(item.kind, SILT_ITEM_LATE);
    ck_assert_uint_eq(item.count, 2);
    ck_assert_uint_eq(item.late_after, 1);
    ck_assert_uint_eq(item.late_number, 4);
    silt_wire_id_format(item.first, from);
    silt_wire_id_format(item.last, to);
    ck_assert_str_eq(take(SIZE_MAX), "35a 40a 50l 60l .");
    what = (struct silt_cursor_options){
        .key = KEY, .late = true, .late_after = 1, .from = from, .to = to};
    ck_assert_str_eq(walk(), "15a 25a .");
    what = (struct silt_cursor_options){.key = KEY, .late = true, .resume = position};
    ck_assert_str_eq(walk(), "15a 25a .");
    stop();
}
END_TEST

START_TEST(lives__behind_a_backward_position_lies_what_is_above_it)
{
    char position[SILT_POSITION_TEXT];
    start();
    add(10, 60);
    fold_to(40);
    what.reverse = true;
    ck_assert_int_eq(open_cursor(), SILT_OK);
    silt_cursor_position(cursor, position);
    insert(11, 35);
    what = (struct silt_cursor_options){.key = KEY, .late = true, .resume = position};
    ck_assert_str_eq(walk(), "."); /* nothing was passed yet */
    what = (struct silt_cursor_options){.key = KEY, .reverse = true, .limit = 5};
    ck_assert_str_eq(walk(), "60l 50l 40a 35a 30a .");
    silt_cursor_position(cursor, position);
    insert(33, 37);
    insert(12, 0);
    what = (struct silt_cursor_options){.key = KEY, .late = true, .resume = position};
    ck_assert_str_eq(walk(), "33a 37a .");
    ck_assert_int_eq(open_cursor(), SILT_OK);
    ck_assert_str_eq(take(1), "33a");
    silt_cursor_position(cursor, position);
    ck_assert_str_eq(walk(), "37a .");
    stop();
}
END_TEST

START_TEST(lives__late_refusals)
{
    start_late();
    what = (struct silt_cursor_options){.key = KEY, .late = true, .follow = true};
    ck_assert_str_eq(walk(), "SILT_ERR_USAGE");
    what = (struct silt_cursor_options){.key = KEY, .late = true, .reverse = true};
    ck_assert_str_eq(walk(), "SILT_ERR_USAGE");
    stop();
}
END_TEST

START_TEST(lives__a_late_number_that_leads_nowhere_is_damage_and_not_the_end)
{
    start_late();
    test_mini_late(&mini, 4, id(38));
    test_mini_late(&mini, 5, id(40));
    test_mini_commit_row(&mini);
    what.late = true;
    ck_assert_str_eq(walk(), "15a 35a 12a SILT_ERR_CORRUPT");
    ck_assert_ptr_nonnull(strstr(err.sentence, "late entry number 4, 38-0, is not in the archive"));
    ck_assert_str_eq(take(2), "40a .");
    what.skip_damaged = true;
    ck_assert_str_eq(walk(), "15a 35a 12a damage:38-38 40a .");
    stop();
}
END_TEST

/* Life 1: 10 to 40. Life 2 forks at 25 and goes on live. */
static uint64_t start_forked(void)
{
    start();
    add(10, 60);
    fold_to(40);
    insert(12, 28);
    uint64_t old = mini.row.life;
    test_mini_fork(&mini, id(25));
    test_mini_mark(&mini);
    return old;
}

START_TEST(lives__an_older_life_is_read_out_of_the_archive_alone)
{
    uint64_t old = start_forked();
    what.life = old;
    long long asked = calls("xrange") + calls("exec");
    ck_assert_str_eq(walk(), "10a 12a 20a 28a 30a 40a .");
    ck_assert(silt_cursor_is_archive_only(cursor));
    ck_assert_int_eq(calls("xrange") + calls("exec"), asked);
    what.late = true;
    ck_assert_str_eq(walk(), "12a 28a .");
    what.life = 0;
    ck_assert_str_eq(walk(), "."); /* the numbers of the newest life begin anew */
    what = (struct silt_cursor_options){.key = KEY, .life = mini.row.life};
    ck_assert_str_eq(walk(), "10a 12a 20a 30l 40l 50l 60l .");
    what.life = 99;
    ck_assert_str_eq(walk(), "SILT_ERR_UNKNOWN_STREAM");
    stop();
}
END_TEST

START_TEST(lives__a_position_of_the_old_life_says_that_it_changed)
{
    char position[SILT_POSITION_TEXT];
    start();
    add(10, 60);
    fold_to(40);
    what.limit = 3;
    walk();
    silt_cursor_position(cursor, position);
    uint64_t old = mini.row.life;
    test_mini_fork(&mini, id(25));
    test_mini_mark(&mini);
    what = (struct silt_cursor_options){.key = KEY, .resume = position};
    ck_assert_str_eq(walk(), "SILT_ERR_LIFE_CHANGED");
    ck_assert_ptr_nonnull(strstr(err.sentence, "life changed"));
    what.life = old; /* by its number the rest of it is still there */
    ck_assert_str_eq(walk(), "40a .");
    what.late = true;
    ck_assert_str_eq(walk(), ".");
    what.life = mini.row.life;
    ck_assert_str_eq(walk(), "SILT_ERR_LIFE_CHANGED");
    stop();
}
END_TEST

/* A copy from before the fork sees a marker with another number, or above its own watermark: it gives nothing live, and says why. */
START_TEST(lives__a_copy_from_before_the_fork_is_an_older_copy)
{
    start();
    add(10, 60);
    fold_to(40);
    test_dir_copy(archive_path(), test_path("older"));
    test_mini_fork(&mini, id(25));
    test_mini_fold(&mini, 0);
    reopen(test_path("older"), server.address, SILT_AWAY_FAIL);
    ck_assert_str_eq(walk(), "10a 20a 30a 40a SILT_ERR_OLDER_COPY");
    reopen(archive_path(), server.address, SILT_AWAY_FAIL);
    ck_assert_str_eq(walk(), "10a 20a 30a 40a 50a 60a .");
    stop();
}
END_TEST

/* An adoption commits its epoch before the marker is replaced: the one on its way out is no older copy; a higher one is. */
START_TEST(lives__a_marker_of_a_higher_epoch_is_an_older_copy)
{
    start();
    add(10, 60);
    fold_to(40);
    mini.row.epoch = 5;
    mini.has_marker = false;
    test_mini_fold(&mini, 1);
    ck_assert_str_eq(walk(), "10a 20a 30a 40a 50a 60l .");
    mini.row.epoch = 4;
    test_mini_commit_row(&mini);
    ck_assert_str_eq(walk(), "10a 20a 30a 40a 50a SILT_ERR_OLDER_COPY");
    ck_assert_ptr_nonnull(strstr(err.sentence, "higher epoch"));
    stop();
}
END_TEST

/* Late entries come into segments before, at and behind the place of a walk, which are split and get other keys beneath it. Whatever was there when the walk began is given
 * once and in its place; of what came late each one is given in its place or counted, never both (promise 4). */
static void walk_while_late_ones_come(bool reverse)
{
    static bool original[2001], late[2001];
    struct test_rng rng = test_rng(5);
    uint64_t inserted = 0, met = 0, told = 0, given = 0, last = reverse ? 2001 : 0;
    struct silt_item item;
    enum silt_status status;
    start();
    for (unsigned ms = 10; ms <= 2000; ms += 10) {
        struct silt_field field = {silt_view("n", 1), silt_view("value", 5)};
        struct silt_entry entry = {id(ms), &field, 1};
        mini.seal = ms % 100 == 10;
        test_mini_fold_entries(&mini, &entry, 1);
        original[ms] = true;
    }
    what.reverse = reverse;
    reopen(archive_path(), NULL, SILT_AWAY_FAIL);
    ck_assert_int_eq(open_cursor(), SILT_OK);
    while ((status = silt_cursor_next(cursor, &item, &err)) == SILT_OK) {
        char position[SILT_POSITION_TEXT];
        if (item.kind == SILT_ITEM_LATE) {
            told += item.count;
            continue;
        }
        uint64_t at = item.entry.id.ms;
        ck_assert(reverse ? at < last : at > last);
        ck_assert(original[at] || late[at]);
        last = at;
        *(original[at] ? &given : &met) += 1;
        unsigned ms = 1 + (unsigned)test_rng_below(&rng, 1999);
        if (original[ms] || late[ms] || !test_rng_chance(&rng, 30)) continue;
        late[ms] = true;
        inserted++;
        insert(ms, 0);
        if (test_rng_chance(&rng, 50)) continue;
        silt_cursor_position(cursor, position); /* another walk goes on from there */
        what.resume = position;
        ck_assert_int_eq(open_cursor(), SILT_OK);
    }
    ck_assert_int_eq(status, SILT_END);
    ck_assert_uint_eq(given, 200);
    ck_assert_uint_gt(met, 0);
    ck_assert_uint_gt(told, 0);
    ck_assert_uint_eq(met + told, inserted);
    stop();
}

START_TEST(lives__a_walk_meets_each_entry_once_while_late_ones_come)
{
    walk_while_late_ones_come(false);
}
END_TEST

START_TEST(lives__a_backward_walk_meets_each_entry_once_while_late_ones_come)
{
    walk_while_late_ones_come(true);
}
END_TEST

TEST_MAIN(lives__late_entries_alone_in_the_order_they_came,
          lives__a_walk_over_late_entries_goes_on_from_its_position,
          lives__what_a_reader_is_told_of_can_be_read_alone,
          lives__behind_a_backward_position_lies_what_is_above_it, lives__late_refusals,
          lives__a_late_number_that_leads_nowhere_is_damage_and_not_the_end,
          lives__an_older_life_is_read_out_of_the_archive_alone,
          lives__a_position_of_the_old_life_says_that_it_changed,
          lives__a_copy_from_before_the_fork_is_an_older_copy,
          lives__a_marker_of_a_higher_epoch_is_an_older_copy,
          lives__a_walk_meets_each_entry_once_while_late_ones_come,
          lives__a_backward_walk_meets_each_entry_once_while_late_ones_come)
