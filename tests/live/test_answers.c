/* Every answer a server may give (protocol.md §9), at every command of a cycle: none means "empty", none trims what is not archived, each has its class and
 * sentence, and afterwards the cycle goes on as if nothing had been. */
#include "meddler.h"
#include "mergeread.h"
#include "stand.h"

#include <string.h>
#include <unistd.h>

#define STREAM "- { match: s, ids: wire, keep: { entries: 5 } }"
enum { ENTRIES = 30, MORE = 12 };

static struct stand stand;
static struct test_oracle oracle;
static struct test_meddler meddler;

static const struct answer {
    enum test_meddle how;
    const char *bytes;
    bool is_line; /* the connection's failure, not an answer */
} answers[] = {
    {TEST_MEDDLE_REFUSE, "-NOSCRIPT No matching script.\r\n", false},
    {TEST_MEDDLE_REFUSE, "-BUSY a script runs\r\n", false},
    {TEST_MEDDLE_REFUSE, "-NOPERM no permissions\r\n", false},
    {TEST_MEDDLE_REFUSE, "-NOAUTH Authentication required.\r\n", false},
    {TEST_MEDDLE_REFUSE, "-WRONGPASS invalid\r\n", false},
    {TEST_MEDDLE_REFUSE, "-LOADING the dataset\r\n", false},
    {TEST_MEDDLE_REFUSE, "-READONLY You can't write against a read only replica.\r\n", false},
    {TEST_MEDDLE_REFUSE, "-MASTERDOWN Link with MASTER is down\r\n", false},
    {TEST_MEDDLE_REFUSE, "-MISCONF cannot save\r\n", false},
    {TEST_MEDDLE_REFUSE, "-NOREPLICAS Not enough good replicas to write.\r\n", false},
    {TEST_MEDDLE_REFUSE, "-OOM command not allowed\r\n", false},
    {TEST_MEDDLE_REFUSE, "-MOVED 1 127.0.0.1:1\r\n", false},
    {TEST_MEDDLE_REFUSE, "-ASK 1 127.0.0.1:1\r\n", false},
    {TEST_MEDDLE_REFUSE, "-TRYAGAIN later\r\n", false},
    {TEST_MEDDLE_REFUSE, "-CLUSTERDOWN Hash slot not served\r\n", false},
    {TEST_MEDDLE_REFUSE, "-CROSSSLOT Keys in request\r\n", false},
    {TEST_MEDDLE_REFUSE, "-EXECABORT Transaction discarded\r\n", false},
    {TEST_MEDDLE_REFUSE, "-BUSYGROUP Consumer Group name already exists\r\n", false},
    {TEST_MEDDLE_REFUSE, "-WRONGTYPE Operation against a key\r\n", false},
    {TEST_MEDDLE_REFUSE, "-ERR whatever\r\n", false},
    {TEST_MEDDLE_REFUSE, "$-1\r\n", true},
    {TEST_MEDDLE_REFUSE, "*-1\r\n", true},
    {TEST_MEDDLE_REFUSE, "*0\r\n", true},
    {TEST_MEDDLE_REFUSE, ":0\r\n", true},
    {TEST_MEDDLE_REFUSE, "+OK\r\n", true},
    {TEST_MEDDLE_REFUSE, "*1\r\n*1\r\n*1\r\n*0\r\n", true},
    {TEST_MEDDLE_REFUSE, "*2\r\n+OK\r\n:5\r\n", true},
    {TEST_MEDDLE_BREAK, "*2147483647\r\n", true},
    {TEST_MEDDLE_BREAK, "$999999999999\r\nx", true},
    {TEST_MEDDLE_BREAK, "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", true},
    {TEST_MEDDLE_BREAK, ">2\r\n+message\r\n+x\r\n", true},
    {TEST_MEDDLE_BREAK, "%1\r\n+a\r\n:1\r\n", true},
    {TEST_MEDDLE_BREAK, "rubbish\r\n", true},
    {TEST_MEDDLE_BREAK, "", true},
    {TEST_MEDDLE_CUT, NULL, true},
    {TEST_MEDDLE_LOSE, NULL, true},
    {TEST_MEDDLE_SILENT, NULL, true},
};
enum { ANSWERS = sizeof answers / sizeof answers[0] };

/* An archiver that reaches the server through the go-between. */
static void start(const char *streams)
{
    stand_start(&stand, streams);
    stand_close(&stand);
    test_meddler_start(&meddler, stand.server.socket);
    snprintf(stand.server.address, sizeof stand.server.address, "%s", meddler.address);
    stand_open(&stand, streams);
    stand_close(&stand);
}

/* A new stream and a new archive; the script is not yet on the server. */
static void begin(enum test_meddle how)
{
    test_oracle_release(&oracle);
    test_cmd(&stand.server, "FLUSHALL");
    test_cmd(&stand.server, "SCRIPT FLUSH");
    stand.config->command_timeout_ms = how == TEST_MEDDLE_SILENT ? 400 : 20000;
    test_remove_all(stand.archive);
    stand_add(&stand, "s", &oracle, 1, ENTRIES);
    stand_open(&stand, NULL);
}

static void finish(void)
{
    test_oracle_release(&oracle);
    test_meddler_release(&meddler);
    stand_release(&stand);
}

/* A failure must be classed and said; a success must be one. */
static void check_outcome(enum silt_status status, const struct answer *answer, unsigned at)
{
    const struct silt_work *work = stand.works[0];
    const struct silt_err *err = status != SILT_OK ? &stand.err : &work->err;
    enum silt_status what = status != SILT_OK ? status : work->status;
    if (what == SILT_OK) return;
    ck_assert_msg(silt_status_class(what) != SILT_CLASS_NONE &&
                      silt_status_class(what) != SILT_CLASS_CORRUPT &&
                      silt_status_class(what) != SILT_CLASS_MISUSE && err->sentence[0] != 0,
                  "%s at %s (%u): %s, '%s'", answer->bytes ? answer->bytes : "silence",
                  meddler.state->command, at, silt_status_name(what), err->sentence);
}

/* What is no longer live must be in the archive. */
static void check_kept(const struct answer *answer, unsigned at)
{
    const char *difference = stand_difference(&stand, "s", &oracle);
    ck_assert_msg(difference[0] == 0, "%s at %s (%u): %s",
                  answer->bytes ? answer->bytes : "silence", meddler.state->command, at,
                  difference);
}

/* One answer at one command of the first cycle, then a cycle undisturbed. False: the cycle has no such command. */
static bool disturb(const struct answer *answer, unsigned at)
{
    begin(answer->how);
    test_meddler_set(&meddler, at, answer->how, answer->bytes);
    enum silt_status status = stand_pass(&stand);
    bool met = meddler.state->command[0] != 0;
    check_outcome(status, answer, at);
    check_kept(answer, at);
    test_meddler_set(&meddler, 0, TEST_MEDDLE_REFUSE, NULL);
    /* A right that was missing is asked for again at the next connect (or after a while). */
    if (answer->bytes && strncmp(answer->bytes, "-NOPERM", 7) == 0)
        silt_conn_close(silt_archiver_conn(stand.archiver));
    if (answer->how == TEST_MEDDLE_SILENT) { /* a short limit was for the silence only */
        stand_close(&stand);
        stand.config->command_timeout_ms = 20000;
        stand_open(&stand, NULL);
    }
    stand_add(&stand, "s", &oracle, ENTRIES + 1, ENTRIES + MORE);
    status = stand_run(&stand);
    ck_assert_msg(status == SILT_OK && stand.works[0]->status == SILT_OK,
                  "after %s at %s (%u): %s, %s", answer->bytes ? answer->bytes : "silence",
                  meddler.state->command, at, stand.err.sentence, stand.works[0]->err.sentence);
    check_kept(answer, at);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    ck_assert_uint_eq(stand_archived(&stand, "s"), ENTRIES + MORE);
    ck_assert_uint_eq(stand_row(&stand, "s")->gap_entries, 0);
    stand_close(&stand);
    return met ||
           answer->how ==
               TEST_MEDDLE_SILENT; /* its short limit may end the pass before, on a slow machine */
}

/* Commands of an undisturbed first pass, from the opening of the connection on. */
static unsigned count_commands(void)
{
    begin(TEST_MEDDLE_REFUSE);
    test_meddler_set(&meddler, 0, TEST_MEDDLE_REFUSE, NULL);
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    unsigned count = atomic_load(&meddler.state->seen);
    stand_close(&stand);
    return count;
}

/* Pairs of answer and command, a few of the many in each run; SILT_TEST_LONG=1 takes them all. */
static void sweep(unsigned share)
{
    struct test_rng rng = test_rng(share);
    unsigned step = test_long() ? 4 : 48, met = 0, tried = 0;
    start(STREAM);
    unsigned pairs = count_commands() * ANSWERS;
    unsigned first = test_long() ? share : (unsigned)test_rng_below(&rng, step);
    for (unsigned pair = first; pair < pairs; pair += step, tried++)
        met += disturb(&answers[pair % ANSWERS], pair / ANSWERS + 1);
    ck_assert_uint_gt(tried, 10);
    ck_assert_uint_eq(met, tried);
    finish();
}

START_TEST(answers__at_any_command_of_a_cycle_first_share)
{
    sweep(0);
}
END_TEST

START_TEST(answers__at_any_command_of_a_cycle_second_share)
{
    sweep(1);
}
END_TEST

START_TEST(answers__at_any_command_of_a_cycle_third_share)
{
    sweep(2);
}
END_TEST

START_TEST(answers__at_any_command_of_a_cycle_fourth_share)
{
    sweep(3);
}
END_TEST

/* ---- readers ---- */

/* A cursor's failure is classed and said, and the next call may go on: at most a few times. */
static void check_failure(enum silt_status status, const struct silt_err *err,
                          const struct answer *answer, unsigned *failures)
{
    ck_assert_msg(err->sentence[0] && silt_status_class(status) != SILT_CLASS_NONE &&
                      silt_status_class(status) != SILT_CLASS_CORRUPT &&
                      ++*failures < (answer->how == TEST_MEDDLE_SILENT ? 50 : 4),
                  "%s at %s: %s, %s", answer->bytes ? answer->bytes : "silence",
                  meddler.state->command, silt_status_name(status), err->sentence);
}

/* A right that is missing is not asked for again at once. */
static bool is_lasting(const struct answer *answer)
{
    return strcmp(meddler.state->command, "XINFO GROUPS s") == 0 && answer->bytes &&
           strncmp(answer->bytes, "-NOPERM", 7) == 0;
}

/* One cursor over everything: whatever is answered, at its end every entry was given once, in order. */
static void read_all(bool reverse, const struct answer *answer)
{
    struct silt_err err = {0};
    struct silt_history *history = NULL;
    struct silt_history_options where = {.archive_path = stand.archive,
                                         .server_address = meddler.address,
                                         .command_timeout_ms = 20000};
    if (answer->how == TEST_MEDDLE_SILENT) where.command_timeout_ms = 400;
    ck_assert_int_eq(silt_history_open(&where, &history, &err), SILT_OK);
    struct silt_cursor_options what = SILT_CURSOR_OPTIONS_DEFAULT;
    what.key = "s";
    what.reverse = reverse;
    what.page_entries = 4;
    struct silt_cursor *cursor = NULL;
    struct test_walk walk;
    struct silt_item item;
    unsigned failures = 0;
    enum silt_status status;
    while ((status = silt_cursor_open(history, &what, &cursor, &err)) != SILT_OK)
        check_failure(status, &err, answer, &failures);
    test_walk_start(&walk, &oracle, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, reverse);
    while ((status = silt_cursor_next(cursor, &item, &err)) != SILT_END) {
        if (status != SILT_OK)
            check_failure(status, &err, answer, &failures);
        else if (item.kind != SILT_ITEM_ENTRY || !test_walk_take(&walk, &item.entry))
            break;
        if (status != SILT_OK && is_lasting(answer)) break;
    }
    ck_assert_msg((status == SILT_END && test_walk_finish(&walk, 0)) ||
                      (is_lasting(answer) && status == SILT_ERR_SERVER_DENIED),
                  "%s at %s, %s: %s", answer->bytes ? answer->bytes : "silence",
                  meddler.state->command, reverse ? "reverse" : "forward", walk.difference);
    silt_cursor_close(cursor);
    silt_history_close(history);
}

static void sweep_readers(bool reverse)
{
    unsigned commands = 0;
    start(STREAM);
    begin(TEST_MEDDLE_REFUSE);
    test_meddler_set(&meddler, 0, TEST_MEDDLE_REFUSE, NULL);
    ck_assert_int_eq(stand_run(&stand), SILT_OK);
    stand_add(&stand, "s", &oracle, ENTRIES + 1, ENTRIES + MORE);
    stand_close(&stand);
    test_meddler_set(&meddler, 0, TEST_MEDDLE_REFUSE, NULL);
    read_all(reverse, &answers[0]);
    commands = atomic_load(&meddler.state->seen);
    struct test_rng rng = test_rng(reverse);
    unsigned step = test_long() ? 1 : 4;
    for (unsigned pair = (unsigned)test_rng_below(&rng, step); pair < commands * ANSWERS;
         pair += step) {
        const struct answer *answer = &answers[pair % ANSWERS];
        test_meddler_set(&meddler, pair / ANSWERS + 1, answer->how, answer->bytes);
        read_all(reverse, answer);
        ck_assert(meddler.state->command[0] != 0 || answer->how == TEST_MEDDLE_SILENT);
    }
    ck_assert_uint_gt(commands, 15);
    finish();
}

START_TEST(answers__at_any_command_of_a_reader_forward)
{
    sweep_readers(false);
}
END_TEST

START_TEST(answers__at_any_command_of_a_reader_in_reverse)
{
    sweep_readers(true);
}
END_TEST

/* ---- another server behind the address ---- */

START_TEST(answers__a_demoted_server_is_left_for_the_one_that_the_address_names)
{
    struct test_server other = {0};
    const char *link = test_path("valkey.sock");
    stand = (struct stand){0};
    snprintf(stand.archive, sizeof stand.archive, "%s", test_path("archive"));
    test_server_start_tcp(&stand.server, NULL);
    test_server_start_tcp(&other, NULL);
    test_server_follow(&other, &stand.server);
    ck_assert_int_eq(symlink(stand.server.socket, link), 0);
    snprintf(stand.server.address, sizeof stand.server.address, "unix:%s", link);
    stand_open(&stand, STREAM);
    stand_add(&stand, "s", &oracle, 1, ENTRIES);
    ck_assert_int_eq(stand_run(&stand), SILT_OK);
    test_server_catch_up(&other, &stand.server);

    test_server_promote(&other);
    test_server_follow(&stand.server, &other);
    test_cmd(&other, "XADD s 100-0 n after kind failover");
    test_server_catch_up(&stand.server, &other);
    struct silt_conn *conn = silt_archiver_conn(stand.archiver);
    for (int i = 0; i < 2; i++) { /* the address still names the demoted one */
        ck_assert_int_eq(stand_pass(&stand), SILT_OK);
        ck_assert_int_eq(stand.works[0]->status, SILT_ERR_SERVER_READONLY);
        ck_assert(!silt_conn_is_open(conn));
        ck_assert_uint_eq(stand_row(&stand, "s")->watermark.ms,
                          ENTRIES); /* what a replica says moves nothing */
    }
    ck_assert_int_eq(unlink(link), 0);
    ck_assert_int_eq(symlink(other.socket, link), 0);
    ck_assert_int_eq(stand_run(&stand), SILT_OK); /* a failover is audited, and then goes on */
    ck_assert_msg(stand.works[0]->status == SILT_OK, "%s", stand.works[0]->err.sentence);
    ck_assert_int_eq(stand_row(&stand, "s")->verdict, SILT_VERDICT_CLEAR);
    ck_assert_uint_eq(stand_row(&stand, "s")->watermark.ms, 100);
    ck_assert_uint_eq(stand_archived(&stand, "s"), ENTRIES + 1);
    ck_assert_int_eq(test_cmd_int(&other, "XLEN s"), 5);
    test_server_release(&other);
    finish();
}
END_TEST

TEST_MAIN(answers__a_demoted_server_is_left_for_the_one_that_the_address_names,
          answers__at_any_command_of_a_cycle_first_share,
          answers__at_any_command_of_a_cycle_second_share,
          answers__at_any_command_of_a_cycle_third_share,
          answers__at_any_command_of_a_cycle_fourth_share,
          answers__at_any_command_of_a_reader_forward,
          answers__at_any_command_of_a_reader_in_reverse)
