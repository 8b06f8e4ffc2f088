/* silt read --life and --late, silt inspect --lives --gaps --forks --late, silt status and silt verify on an archive with two lives, a gap and late
 * entries, made through the store's own calls. */
#include "cli.h"

#include "harness/mini.h"

static struct cli cli;
static struct test_mini mini;

static struct silt_wire_id id(uint64_t ms)
{
    return (struct silt_wire_id){ms, 0};
}

static void entry(struct silt_entry *ret, unsigned ms)
{
    static const struct silt_field field = {{(const uint8_t *)"n", 1}, {(const uint8_t *)"1", 1}};
    *ret = (struct silt_entry){id(ms), &field, 1};
}

static void fold(unsigned from, unsigned to)
{
    struct silt_entry entries[20];
    size_t count = 0;
    for (unsigned ms = from; ms <= to; ms += 10)
        entry(&entries[count++], ms);
    test_mini_fold_entries(&mini, entries, count);
}

/* Life 1: 10 to 40, late 12 and 28, a gap of 2 above 40. Life 2 from 25 on: 25, 35, 45. */
static void start(void)
{
    struct silt_entry late[2];
    cli_start(&cli, "  - match: s\n");
    test_mini_open(&mini, cli.archive, NULL, "s", NULL);
    fold(10, 40);
    entry(&late[0], 12);
    entry(&late[1], 28);
    test_mini_insert(&mini, late, 2);
    mini.row.watermark = mini.row.custody = id(50);
    test_mini_gap(&mini, id(40), id(50), 2, SILT_GAP_TRIMMED);
    test_mini_commit_row(&mini);
    test_mini_fork(&mini, id(25));
    fold(25, 45);
}

static void stop(void)
{
    test_mini_close(&mini);
    test_server_release(&cli.server);
}

START_TEST(lives__inspect_lists_lives_forks_gaps_and_late_entries)
{
    start();
    CK_SILT(0, "newest       1  25-0", "", "inspect", "s", "--lives");
    CK_SILT(0, "life 2  life 1  25-0", "", "inspect", "s", "--forks");
    CK_SILT(0, "life 1  40-0   50-0         2  trimmed", "", "inspect", "s", "--gaps");
    CK_SILT(0, "life 1       2  28-0", "", "inspect", "s", "--late");
    CK_SILT(0, "life 1       1  12-0", "", "inspect", "--late", "--lives"); /* of all streams */
    CK_SILT(
        0,
        "\"life_list\":[{\"life\":1,\"newest\":false,\"parent\":null,\"fork\":null,\"segments\":1,"
        "\"entries\":6,\"first\":\"10-0\",\"last\":\"40-0\"},{\"life\":2,\"newest\":true,"
        "\"parent\":1,\"fork\":\"25-0\",\"segments\":1,\"entries\":3,\"first\":\"25-0\",\"last\":\"45-0\"}]",
        "", "inspect", "s", "--lives", "--json");
    CK_SILT(0, "\"fork_list\":[{\"life\":2,\"parent\":1,\"fork\":\"25-0\",", "", "inspect",
            "--forks", "--json");
    CK_SILT(
        0,
        "\"gap_list\":[{\"life\":1,\"after\":\"40-0\",\"through\":\"50-0\",\"precision\":\"exact\","
        "\"count\":2,\"count_max\":2,\"cause\":\"trimmed\",",
        "", "inspect", "s", "--gaps", "--json");
    CK_SILT(0, "\"late_list\":[{\"life\":1,\"number\":1,\"id\":\"12-0\"},{\"life\":1,\"number\":2,",
            "", "inspect", "s", "--late", "--json");
    stop();
}
END_TEST

START_TEST(lives__inspect_says_when_there_are_none)
{
    cli_start(&cli, "  - match: s\n");
    test_mini_open(&mini, cli.archive, NULL, "s", NULL);
    fold(10, 40);
    CK_SILT(0, "no forks", "", "inspect", "s", "--forks");
    CK_SILT(0, "no gaps", "", "inspect", "s", "--gaps");
    CK_SILT(0, "no late entries", "", "inspect", "s", "--late");
    CK_SILT(0, "\"late_list\":[]", "", "inspect", "s", "--late", "--json");
    stop();
}
END_TEST

START_TEST(lives__read_gives_an_older_life_and_says_so)
{
    start();
    struct test_outcome end;
    TEST_PROGRAM(&end, "silt", "read", "s", "--life", "1");
    CK_RUN(&end, 1, "28-0", "life 1 is not the newest of the stream, that is 2");
    ck_assert_ptr_nonnull(strstr(end.out, "40-0"));
    ck_assert_ptr_nonnull(strstr(end.err, "gap: 2 entries"));
    ck_assert_uint_eq(count_lines(end.out), 6);
    test_outcome_release(&end);
    CK_SILT_OUT(0, "6\n", "read", "s", "--life", "1", "--count");
    CK_SILT(0, "45-0", "", "read", "s", "--archive-only", "--life", "2");
    CK_SILT(2, "", "the stream has no life 9", "read", "s", "--life", "9");
    CK_SILT(2, "", "--life is a number from 1", "read", "s", "--life", "x");
    CK_SILT(2, "", "contradict", "read", "s", "--life", "1", "--follow");
    stop();
}
END_TEST

START_TEST(lives__read_gives_late_entries_alone)
{
    char *position;
    struct test_outcome end;
    start();
    TEST_PROGRAM(&end, "silt", "read", "s", "--late", "--life", "1", "--json", "--limit", "1");
    CK_RUN(&end, 0, "{\"id\":\"12-0\"", "position: s1.l.");
    ck_assert_ptr_nonnull(strstr(end.out, "\"late_number\":1}"));
    ck_assert_uint_eq(count_lines(end.out), 1);
    position = strstr(end.err, "s1.l.");
    position[strcspn(position, "\n")] = '\0';
    CK_SILT(0, "{\"id\":\"28-0\"", "", "read", "s", "--late", "--life", "1", "--json", "--resume",
            position);
    test_outcome_release(&end);
    CK_SILT_OUT(0, "", "read", "s", "--late");
    CK_SILT(0, "28-0", "", "read", "s", "--late", "--life", "1", "--after", "1");
    CK_SILT(2, "", "--after goes with --late", "read", "s", "--after", "1");
    CK_SILT(2, "", "--after is a number", "read", "s", "--late", "--after", "x");
    CK_SILT(2, "", "contradict", "read", "s", "--late", "--reverse");
    stop();
}
END_TEST

/* A reader that comes back is told, and told how to read just these. */
START_TEST(lives__read_tells_how_to_read_what_came_late)
{
    struct test_outcome end;
    struct silt_entry late;
    cli_start(&cli, "  - match: s\n");
    test_mini_open(&mini, cli.archive, NULL, "s", NULL);
    fold(10, 40);
    TEST_PROGRAM(&end, "silt", "read", "s", "--limit", "3", "--archive-only");
    char *position = strstr(end.err, "s1.f.");
    position[strcspn(position, "\n")] = '\0';
    entry(&late, 15);
    test_mini_insert(&mini, &late, 1);
    CK_SILT(1, "40-0", "hint: silt read 's' --late --after 0 --from 15-0 --to 15-0", "read", "s",
            "--resume", position, "--archive-only");
    CK_SILT(1, "{\"late\":{\"count\":1,\"first\":\"15-0\",\"last\":\"15-0\",\"after\":0}}", "",
            "read", "s", "--resume", position, "--archive-only", "--json");
    CK_SILT(0, "15-0", "", "read", "s", "--late", "--after", "0", "--from", "15-0", "--to", "15-0");
    CK_SILT(0, "15-0", "", "read", "s", "--late", "--resume", position);
    test_outcome_release(&end);
    stop();
}
END_TEST

START_TEST(lives__status_counts_them_and_shows_an_audit)
{
    start();
    CK_SILT(1, "life 2, the newest of 2", "", "status", "s", "--archive", cli.archive);
    CK_SILT(1, "2 entries missing; 2 late", "", "status", "s", "--archive", cli.archive);
    CK_SILT(1, "\"lives\":2", "", "status", "s", "--archive", cli.archive, "--json");
    mini.row.verdict = SILT_VERDICT_AUDIT_PENDING;
    mini.row.verdict_reason = silt_view_str("a test");
    mini.row.audit = (struct silt_audit){.cause = SILT_AUDIT_OURS_REPL,
                                         .opened = true,
                                         .position = id(20),
                                         .through = id(45),
                                         .equal = 2,
                                         .absent = 1};
    test_mini_commit_row(&mini);
    CK_SILT(1,
            "audit           failover or restart; compared up to 20-0 of 45-0: 2 as archived, 1 "
            "late, 0 in conflict",
            "", "status", "s", "--archive", cli.archive);
    stop();
}
END_TEST

START_TEST(lives__verify_proves_late_rows_and_forks)
{
    struct silt_batch *batch;
    start();
    CK_SILT(1, "no damage", "", "verify"); /* a gap is a finding */
    ck_assert_int_eq(silt_batch_new(&batch), SILT_OK);
    struct silt_late_row late = {1, 3, id(33)};
    ck_assert_int_eq(silt_batch_late(batch, &late), SILT_OK);
    late = (struct silt_late_row){1, 5, id(12)};
    ck_assert_int_eq(silt_batch_late(batch, &late), SILT_OK);
    ck_assert_int_eq(silt_store_commit(mini.store, batch, NULL), SILT_OK);
    CK_SILT(5, "late entry number 3 is not in the archive", "", "verify");
    CK_SILT(5, "late entry number 5 stands where number 4 should", "", "verify", "s");
    silt_batch_free(batch);
    stop();
}
END_TEST

START_TEST(lives__verify_finds_a_life_that_begins_below_its_fork)
{
    cli_start(&cli, "  - match: s\n");
    test_mini_open(&mini, cli.archive, NULL, "s", NULL);
    fold(10, 40);
    test_mini_fork(&mini, id(35));
    fold(20, 40); /* nobody but a test would */
    CK_SILT(5, "life 2 holds entries below the fork where it begins", "", "verify");
    stop();
}
END_TEST

TEST_MAIN(lives__inspect_lists_lives_forks_gaps_and_late_entries,
          lives__inspect_says_when_there_are_none, lives__read_gives_an_older_life_and_says_so,
          lives__read_gives_late_entries_alone, lives__read_tells_how_to_read_what_came_late,
          lives__status_counts_them_and_shows_an_audit, lives__verify_proves_late_rows_and_forks,
          lives__verify_finds_a_life_that_begins_below_its_fork)
