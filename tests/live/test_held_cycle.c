/* A cycle held at each of its points while somebody does something to the stream. What comes out must be whole, or said. */
#include "stand.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mergeread/mergeread.h"

static struct stand stand;
static struct test_oracle oracle;

/* Every point of a cycle that folds and trims; the number: which passage. */
static const char *const points[] = {
    "after-look:1",    "after-look:2",      "after-first-row:1",  "after-marker-made:1",
    "after-page:1",    "after-page:2",      "after-page:4",       "after-prove:1",
    "before-commit:1", "after-commit:1",    "before-read-back:1", "after-read-back:1",
    "before-trim:1",   "after-trim-step:1", "before-trim:2",      "after-trim:1",
    "after-commit:2",  "before-trim:4"};

static void start(void)
{
    stand_start(&stand, "- { match: s, ids: wire, keep: { entries: 4 } }");
    stand_close(&stand);
    stand_add(&stand, "s", &oracle, 1, 40);
}

/* Everything as on the first day, but for the server. */
static void restart(void)
{
    test_cmd(&stand.server, "FLUSHALL");
    test_oracle_release(&oracle);
    test_remove_all(stand.archive);
    stand_add(&stand, "s", &oracle, 1, 40);
}

static void finish(void)
{
    test_oracle_release(&oracle);
    stand_release(&stand);
}

/* Runs the archiver, calls `meanwhile` while it stands at the point, and lets it end. Gives its exit code; ends the test if the point was not reached. */
static int run_held(const char *point, void (*meanwhile)(void))
{
    char setting[200];
    const char *gate = test_path("gate");
    snprintf(setting, sizeof setting, "SILT_FAULT=%s=pause:%s", point, gate);
    pid_t pid = stand_child_start(&stand, setting);
    TEST_WAIT(access(gate, F_OK) == 0, 20000);
    meanwhile();
    unlink(gate);
    int status = stand_child_wait(pid);
    if (!WIFEXITED(status)) test_die("%s: the archiver ended with %x", point, status);
    return WEXITSTATUS(status);
}

static void nothing(void)
{
}

/* ---- scenario 64: a writer ---- */

static void append_seven(void)
{
    stand_add(&stand, "s", &oracle, 101, 107);
}

START_TEST(held_cycle__scenario_64_entries_that_arrive_survive)
{
    if (!test_faults_built_in()) return;
    start();
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        struct silt_gap_row gap;
        restart();
        ck_assert_msg(run_held(points[i], append_seven) == 0, "%s", points[i]);
        ck_assert_int_eq(stand_child(&stand, NULL), 0);
        const char *difference = stand_difference(&stand, "s", &oracle);
        ck_assert_msg(!difference[0], "%s: %s", points[i], difference);
        ck_assert_msg(test_cmd_int(&stand.server, "XLEN s") == 4, "%s: %lld live", points[i],
                      test_cmd_int(&stand.server, "XLEN s"));
        ck_assert_msg(!stand_gap(&stand, "s", 0, &gap), "%s: a false gap", points[i]);
    }
    finish();
}
END_TEST

/* ---- another trimmer: archived and missing are together what was added ---- */

static void trim_all_but_five(void)
{
    test_cmd(&stand.server, "XTRIM s MAXLEN = 5");
}

START_TEST(held_cycle__outside_trims_are_counted_exactly)
{
    if (!test_faults_built_in()) return;
    start();
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        restart();
        run_held(points[i], trim_all_but_five);
        ck_assert_msg(stand_child(&stand, NULL) == 0, "%s", points[i]);
        const struct silt_stream_row *row = stand_row(&stand, "s");
        ck_assert_msg(row->gap_entries + row->folded_entries == 40,
                      "%s: %llu missing and %llu folded of 40", points[i],
                      (unsigned long long)row->gap_entries,
                      (unsigned long long)row->folded_entries);
        ck_assert_msg(row->folded_entries == stand_archived(&stand, "s"), "%s", points[i]);
    }
    finish();
}
END_TEST

/* ---- a reader passes while entries are in neither place: it is told that they came in behind it ---- */

static char position[SILT_POSITION_TEXT];

/* From the saved position, if there is one, to the end. Gives how many entries came, and how many late ones were told. */
static size_t read_on(size_t *ret_late)
{
    struct silt_history *history = NULL;
    struct silt_cursor *cursor = NULL;
    struct silt_err err = {0};
    struct silt_history_options where = {.archive_path = stand.archive,
                                         .server_address = stand.server.address};
    struct silt_cursor_options what = {.key = "s", .resume = position[0] ? position : NULL};
    size_t given = 0;
    *ret_late = 0;
    if (silt_history_open(&where, &history, &err) != SILT_OK ||
        silt_cursor_open(history, &what, &cursor, &err) != SILT_OK)
        test_die("%s", err.sentence);
    struct silt_item item;
    enum silt_status status;
    while ((status = silt_cursor_next(cursor, &item, &err)) == SILT_OK) {
        given += item.kind == SILT_ITEM_ENTRY;
        if (item.kind == SILT_ITEM_LATE) *ret_late += item.count;
    }
    if (status != SILT_END) test_die("%s", err.sentence);
    silt_cursor_position(cursor, position);
    silt_cursor_close(cursor);
    silt_history_close(history);
    return given;
}

START_TEST(held_cycle__what_was_removed_before_its_commit_is_late)
{
    size_t late;
    char setting[200];
    const char *gate = test_path("gate");
    if (!test_faults_built_in()) return;
    start();
    ck_assert_int_eq(stand_child(&stand, NULL), 0);
    position[0] = '\0';
    ck_assert_uint_eq(read_on(&late), 40);
    stand_add(&stand, "s", NULL, 141, 180);
    /* the first commit of this run takes 16 in; while it is being prepared they go, and the reader passes */
    snprintf(setting, sizeof setting, "SILT_FAULT=before-commit:1=pause:%s", gate);
    pid_t pid = stand_child_start(&stand, setting);
    TEST_WAIT(access(gate, F_OK) == 0, 20000);
    trim_all_but_five();
    ck_assert_uint_eq(read_on(&late), 5);
    ck_assert_uint_eq(late, 0);
    unlink(gate);
    ck_assert_int_eq(stand_child_wait(pid), 0);
    ck_assert_uint_eq(stand_row(&stand, "s")->late_entries, 16);
    ck_assert_uint_eq(read_on(&late), 0);
    ck_assert_uint_eq(late, 16);
    finish();
}
END_TEST

/* ---- somebody deletes single entries ---- */

static void delete_some(void)
{
    test_cmd(&stand.server, "XDEL s 3-0 11-0 20-0 39-0");
}

START_TEST(held_cycle__deletes_are_counted_exactly)
{
    if (!test_faults_built_in()) return;
    start();
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        restart();
        run_held(points[i], delete_some);
        ck_assert_msg(stand_child(&stand, NULL) == 0, "%s", points[i]);
        const struct silt_stream_row *row = stand_row(&stand, "s");
        ck_assert_msg(row->gap_entries + row->folded_entries == 40,
                      "%s: %llu missing and %llu folded of 40", points[i],
                      (unsigned long long)row->gap_entries,
                      (unsigned long long)row->folded_entries);
    }
    finish();
}
END_TEST

/* ---- the object is replaced: two incarnations are never folded as one ---- */

static void recreate(void)
{
    test_cmd(&stand.server, "DEL s");
    for (int ms = 1; ms <= 60; ms++)
        test_cmd(&stand.server, "XADD s %d-0 second life", ms);
}

static void check_one_incarnation(const char *point)
{
    size_t archived = stand_archived(&stand, "s");
    /* What is archived is a prefix of one of the two: the first with value 1 ... or the second with its own. */
    struct test_oracle first = {0}, second = {0};
    for (uint64_t ms = 1; ms <= archived; ms++) {
        char value[32];
        snprintf(value, sizeof value, "value %llu", (unsigned long long)ms);
        test_oracle_add_text(&first, (struct silt_wire_id){ms, 0}, "n", value, "kind", "plain",
                             (char *)NULL);
        test_oracle_add_text(&second, (struct silt_wire_id){ms, 0}, "second", "life", (char *)NULL);
    }
    bool is_first = stand_archive_difference(&stand, "s", &first)[0] == 0;
    bool is_second = stand_archive_difference(&stand, "s", &second)[0] == 0;
    ck_assert_msg(is_first || is_second, "%s: %zu entries of two incarnations", point, archived);
    /* And nothing of the second is gone unless it is archived. */
    long long live = test_cmd_int(&stand.server, "XLEN s");
    ck_assert_msg(is_second || archived == 0 ? live + (long long)archived >= 60 : live == 60,
                  "%s: %lld live, %zu archived", point, live, archived);
    test_oracle_release(&first);
    test_oracle_release(&second);
}

START_TEST(held_cycle__a_recreated_key_is_never_mixed_in)
{
    if (!test_faults_built_in()) return;
    start();
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        restart();
        run_held(points[i], recreate);
        stand_child(&stand, NULL);
        check_one_incarnation(points[i]);
    }
    finish();
}
END_TEST

/* ---- a group appears ---- */

static long long live_then;

static void group_at_start(void)
{
    test_cmd(&stand.server, "XGROUP CREATE s g 0");
    live_then = test_cmd_int(&stand.server, "XLEN s");
}

START_TEST(held_cycle__a_group_holds_from_the_moment_it_is_there)
{
    if (!test_faults_built_in()) return;
    start();
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        restart();
        ck_assert_msg(run_held(points[i], group_at_start) == 0, "%s", points[i]);
        ck_assert_int_eq(stand_child(&stand, NULL), 0);
        long long live = test_cmd_int(&stand.server, "XLEN s");
        ck_assert_msg(live == live_then, "%s: %lld live, %lld when the group came", points[i], live,
                      live_then);
        ck_assert_uint_eq(stand_archived(&stand, "s"), 40);
    }
    finish();
}
END_TEST

/* ---- on-trim, killed between commit and trim: what is live below C is compared before it goes ---- */

static void slip_one_in(void)
{
    char at[SILT_WIRE_ID_TEXT], name[128];
    snprintf(name, sizeof name, "%s", stand_marker(&stand, "s", at));
    /* by hand: the same object with one entry more, below what is folded, and the counter that belongs to it */
    test_cmd(&stand.server, "DEL s");
    stand_add(&stand, "s", NULL, 1, 7);
    test_cmd(&stand.server, "XADD s 7-7 slipped in");
    stand_add(&stand, "s", NULL, 8, 41); /* and one at the end, so that no fact goes back */
    test_cmd(&stand.server, "XGROUP CREATE s %s %s", name, at);
}

START_TEST(held_cycle__what_is_not_accounted_for_is_compared_before_it_goes)
{
    char setting[100];
    if (!test_faults_built_in()) return;
    stand_start(&stand, "- { match: s, ids: wire, fold: on-trim, keep: { entries: 4 } }");
    stand_close(&stand);
    stand_add(&stand, "s", &oracle, 1, 40);
    snprintf(setting, sizeof setting, "SILT_FAULT=before-trim:1=kill");
    ck_assert(WIFSIGNALED(stand_child(&stand, setting)));
    slip_one_in();
    test_oracle_add_text(&oracle, (struct silt_wire_id){7, 7}, "slipped", "in", (char *)NULL);
    test_oracle_add_text(&oracle, (struct silt_wire_id){41, 0}, "n", "value 41", "kind", "plain",
                         (char *)NULL);
    ck_assert_int_eq(stand_child(&stand, NULL), 0);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 4);
    ck_assert_uint_eq(stand_row(&stand, "s")->late_entries, 1);
    finish();
}
END_TEST

START_TEST(held_cycle__a_crash_before_the_trim_is_made_good)
{
    char setting[100];
    if (!test_faults_built_in()) return;
    stand_start(&stand, "- { match: s, ids: wire, fold: on-trim, keep: { entries: 4 } }");
    stand_close(&stand);
    stand_add(&stand, "s", &oracle, 1, 40);
    snprintf(setting, sizeof setting, "SILT_FAULT=before-trim:1=kill");
    ck_assert(WIFSIGNALED(stand_child(&stand, setting)));
    ck_assert_int_eq(run_held("after-look:1", nothing), 0);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 4);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

TEST_MAIN(held_cycle__scenario_64_entries_that_arrive_survive,
          held_cycle__what_was_removed_before_its_commit_is_late,
          held_cycle__outside_trims_are_counted_exactly, held_cycle__deletes_are_counted_exactly,
          held_cycle__a_recreated_key_is_never_mixed_in,
          held_cycle__a_group_holds_from_the_moment_it_is_there,
          held_cycle__what_is_not_accounted_for_is_compared_before_it_goes,
          held_cycle__a_crash_before_the_trim_is_made_good)
