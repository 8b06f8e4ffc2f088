/* archiver/custody.c: gap arithmetic (protocol.md §6). */
#include "../harness/harness.h"
#include "custody.h"

static struct silt_wire_id id(uint64_t ms)
{
    return (struct silt_wire_id){ms, 0};
}

static void check_count(struct silt_gap_input input, bool breaks, uint64_t missing,
                        uint64_t custody_added)
{
    struct silt_gap_sum sum = silt_gap_count(&input);
    ck_assert_int_eq(sum.breaks, breaks);
    if (breaks) return;
    ck_assert_uint_eq(sum.missing, missing);
    ck_assert_uint_eq(sum.custody_added, custody_added);
}

START_TEST(gap__a_fold_to_the_last_id_counts_what_it_fetched)
{
    /* scenario 61: 30 added, 10 folded, an outside trim left 5 */
    check_count((struct silt_gap_input){.added_now = 30,
                                        .custody_added = 10,
                                        .length_now = 5,
                                        .fetched = 5,
                                        .reached_last = true,
                                        .all_above_custody = true},
                false, 15, 30);
    /* one more went between look and fetch: LEN does not know */
    check_count((struct silt_gap_input){.added_now = 30,
                                        .custody_added = 10,
                                        .length_now = 5,
                                        .fetched = 4,
                                        .reached_last = true,
                                        .all_above_custody = true},
                false, 16, 30);
    check_count((struct silt_gap_input){.added_now = 30,
                                        .custody_added = 10,
                                        .length_now = 25,
                                        .fetched = 20,
                                        .reached_last = true},
                false, 0, 30);
}
END_TEST

START_TEST(gap__more_than_promised_breaks_the_chain)
{
    check_count((struct silt_gap_input){.added_now = 30,
                                        .custody_added = 10,
                                        .length_now = 25,
                                        .fetched = 21,
                                        .reached_last = true},
                true, 0, 0);
    check_count(
        (struct silt_gap_input){
            .added_now = 30, .custody_added = 10, .length_now = 25, .fetched = 21},
        true, 0, 0);
    check_count(
        (struct silt_gap_input){
            .added_now = 9, .custody_added = 10, .fetched = 0, .reached_last = true},
        true, 0, 0);
    check_count((struct silt_gap_input){.added_now = 30,
                                        .custody_added = 10,
                                        .length_now = 21,
                                        .fetched = 3,
                                        .all_above_custody = true},
                true, 0, 0);
}
END_TEST

START_TEST(gap__a_partial_fold_books_nothing_while_folded_entries_live)
{
    check_count(
        (struct silt_gap_input){
            .added_now = 30, .custody_added = 10, .length_now = 12, .fetched = 6},
        false, 0, 16);
}
END_TEST

START_TEST(gap__a_partial_fold_books_when_everything_lies_above)
{
    /* on-trim never reaches LAST: 20 promised, 12 live, so 8 are missing now */
    check_count((struct silt_gap_input){.added_now = 30,
                                        .custody_added = 10,
                                        .length_now = 12,
                                        .fetched = 6,
                                        .all_above_custody = true},
                false, 8, 24);
    /* and are not booked again: the next look promises 30 - 24 = 6, six are live */
    check_count((struct silt_gap_input){.added_now = 30,
                                        .custody_added = 24,
                                        .length_now = 6,
                                        .fetched = 0,
                                        .all_above_custody = true},
                false, 0, 24);
}
END_TEST

START_TEST(gap__nothing_missing_nothing_booked)
{
    check_count((struct silt_gap_input){.added_now = 10,
                                        .custody_added = 10,
                                        .length_now = 0,
                                        .reached_last = true,
                                        .all_above_custody = true},
                false, 0, 10);
    check_count(
        (struct silt_gap_input){
            .added_now = 10, .custody_added = 10, .length_now = 7, .reached_last = true},
        false, 0, 10);
}
END_TEST

static void check_gap(struct silt_gap_evidence evidence, uint64_t missing,
                      struct silt_wire_id after, struct silt_wire_id through,
                      enum silt_gap_cause cause)
{
    ck_assert(silt_gap_is_explained(&evidence));
    struct silt_gap_row row = silt_gap_describe(&evidence, missing);
    ck_assert_uint_eq(row.range.after.ms, after.ms);
    ck_assert_uint_eq(row.range.after.seq, after.seq);
    ck_assert_uint_eq(row.range.through.ms, through.ms);
    ck_assert_uint_eq(row.range.through.seq, through.seq);
    ck_assert_str_eq(silt_gap_cause_name(row.cause), silt_gap_cause_name(cause));
    ck_assert(row.has_count);
    ck_assert_int_eq(row.precision, SILT_GAP_EXACT);
    ck_assert_uint_eq(row.count, missing);
}

START_TEST(gap__trimmed_ends_before_the_first_live_entry)
{
    check_gap(
        (struct silt_gap_evidence){
            .custody = id(10), .last = id(30), .has_first = true, .first = id(26)},
        15, id(10), (struct silt_wire_id){25, UINT64_MAX}, SILT_GAP_TRIMMED);
    check_gap((struct silt_gap_evidence){.custody = id(10), .last = id(30)}, 20, id(10), id(30),
              SILT_GAP_TRIMMED); /* emptied */
}
END_TEST

START_TEST(gap__deleted_ends_at_the_highest_deleted_id)
{
    check_gap((struct silt_gap_evidence){.custody = id(10),
                                         .last = id(30),
                                         .has_first = true,
                                         .first = id(3),
                                         .max_deleted = id(20)},
              2, id(10), id(20), SILT_GAP_DELETED);
    check_gap((struct silt_gap_evidence){.custody = id(10),
                                         .last = id(30),
                                         .has_first = true,
                                         .first = id(3),
                                         .max_deleted = id(99)},
              2, id(10), id(30), SILT_GAP_DELETED);
}
END_TEST

START_TEST(gap__one_deleted_entry_is_known_exactly)
{
    check_gap((struct silt_gap_evidence){.custody = id(10),
                                         .last = id(30),
                                         .has_first = true,
                                         .first = id(11),
                                         .max_deleted = id(15)},
              1, (struct silt_wire_id){14, UINT64_MAX}, id(15), SILT_GAP_DELETED);
    /* deleted above LAST says nothing about the one that is missing below */
    check_gap((struct silt_gap_evidence){.custody = id(10),
                                         .last = id(30),
                                         .has_first = true,
                                         .first = id(12),
                                         .max_deleted = id(35)},
              1, id(10), id(30), SILT_GAP_UNKNOWN);
}
END_TEST

START_TEST(gap__trims_and_deletes_together_have_no_known_cause)
{
    check_gap((struct silt_gap_evidence){.custody = id(10),
                                         .last = id(30),
                                         .has_first = true,
                                         .first = id(20),
                                         .max_deleted = id(25)},
              8, id(10), id(25), SILT_GAP_UNKNOWN);
}
END_TEST

START_TEST(gap__missing_without_a_sign_is_not_explained)
{
    ck_assert(!silt_gap_is_explained(&(struct silt_gap_evidence){.custody = id(10),
                                                                 .last = id(30),
                                                                 .has_first = true,
                                                                 .first = id(3),
                                                                 .max_deleted = id(10)}));
}
END_TEST

TEST_MAIN(gap__a_fold_to_the_last_id_counts_what_it_fetched,
          gap__more_than_promised_breaks_the_chain,
          gap__a_partial_fold_books_nothing_while_folded_entries_live,
          gap__a_partial_fold_books_when_everything_lies_above, gap__nothing_missing_nothing_booked,
          gap__trimmed_ends_before_the_first_live_entry,
          gap__deleted_ends_at_the_highest_deleted_id, gap__one_deleted_entry_is_known_exactly,
          gap__trims_and_deletes_together_have_no_known_cause,
          gap__missing_without_a_sign_is_not_explained)
