/* The archiver's look, from a server that follows a script: facts that contradict each other or are not there are nonsense, never a fact. */
#include "conn_help.h"

static struct test_fake fake;
static struct silt_err err;
static struct silt_look look;
static struct silt_reply scratch;

#define E(id) "*2\r\n$3\r\n" id "\r\n*2\r\n$1\r\na\r\n$1\r\nx\r\n"
#define NAME(len, name) "$" #len "\r\n" name "\r\n"
#define HEAD                                                     \
    NAME(6, "length")                                            \
    ":2\r\n" NAME(17, "last-generated-id") "$3\r\n2-2\r\n" NAME( \
        20, "max-deleted-entry-id") "$3\r\n0-0\r\n" NAME(13, "entries-added") ":5\r\n"
#define FACTS "*12\r\n" HEAD NAME(11, "first-entry") E("1-1") NAME(10, "last-entry") E("2-2")
#define GROUP                                                                   \
    "*10\r\n" NAME(4, "name") "$1\r\ng\r\n" NAME(9, "consumers") ":1\r\n" NAME( \
        7,                                                                      \
        "pending") ":3\r\n" NAME(17,                                            \
                                 "last-delivered-id") "$3\r\n1-1\r\n" NAME(12,  \
                                                                           "entries-read") "$-1\r\n"
#define GROUPS "*1\r\n" GROUP
#define REPLID "0123456789abcdef0123456789abcdef01234567"
#define REPLICATION "$72\r\nrole:master\r\nmaster_replid:" REPLID "\r\nx\r\n\r\n"
#define LOOK(facts, groups, replication) "*3\r\n" facts groups replication

static const char *const ok = "+OK\r\n", *const queued = "+QUEUED\r\n";

/* What a look comes to when the transaction's replies are these. */
static enum silt_status look_gives(const char *const answers[5])
{
    static const char *const commands[5] = {"MULTI", "XINFO STREAM s", "XINFO GROUPS s",
                                            "INFO replication", "EXEC"};
    static const struct test_step greeting = GREETING;
    struct test_step steps[12] = {greeting}, *at = steps + 1;
    for (size_t i = 0; i < 5; i++) {
        *at++ = (struct test_step)TEST_EXPECT(commands[i]);
        *at++ = (struct test_step){TEST_STEP_ANSWER, NULL, answers[i], strlen(answers[i])};
    }
    test_fake_start(&fake, steps, (size_t)(at - steps));
    struct silt_conn *conn = conn_to(fake.address);
    enum silt_status status =
        silt_look_call(conn, silt_view_str("s"), SILT_LOOK_ARCHIVER, &look, &err);
    silt_conn_free(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
    return status;
}

static enum silt_status exec_gives(const char *exec)
{
    const char *const answers[5] = {ok, queued, queued, queued, exec};
    return look_gives(answers);
}

START_TEST(look_script__a_good_answer_is_read)
{
    ck_gives(SILT_OK, exec_gives(LOOK(FACTS, GROUPS, REPLICATION)));
    ck_assert_uint_eq(look.facts.length, 2);
    ck_assert_str_eq(look.facts.replid, REPLID);
    ck_assert(look.is_master && look.group_count == 1);
    ck_assert(look.groups[0].entries_read == UINT64_MAX);
    ck_assert_uint_eq(look.groups[0].pending, 3);
    silt_look_release(&look);
}
END_TEST

START_TEST(look_script__facts_that_cannot_be_are_nonsense)
{
    static const char *const execs[] = {
        LOOK("*8\r\n" HEAD, GROUPS, REPLICATION), /* no first and last entry */
        LOOK("*12\r\n" HEAD NAME(11, "first-entry") ":1\r\n" NAME(10, "last-entry") E("2-2"),
             GROUPS, REPLICATION),
        LOOK("*12\r\n" HEAD NAME(11, "first-entry") E("2-2") NAME(10, "last-entry") E("1-1"),
             GROUPS, REPLICATION),
        LOOK("*12\r\n" HEAD NAME(11, "first-entry") E("1-1") NAME(10, "last-entry") E("3-3"),
             GROUPS, REPLICATION),
        LOOK(
            "*12\r\n" NAME(6, "length") "$1\r\n2\r\n" NAME(17, "last-generated-id") "$3\r\n2-2\r\n" NAME(
                20,
                "max-deleted-entry-id") "$3\r\n0-0\r\n" NAME(13,
                                                             "entries-added") ":5\r\n" NAME(11,
                                                                                            "first-entry")
                E("1-1") NAME(10, "last-entry") E("2-2"),
            GROUPS, REPLICATION), /* a text for a number */
        LOOK(
            "*12\r\n" NAME(6, "length") ":2\r\n" NAME(17, "last-generated-id") "$3\r\n2-2\r\n" NAME(
                20,
                "max-deleted-entry-id") "$3\r\nno!\r\n" NAME(13,
                                                             "entries-added") ":5\r\n" NAME(11,
                                                                                            "first-entry")
                E("1-1") NAME(10, "last-entry") E("2-2"),
            GROUPS, REPLICATION),
        LOOK(FACTS, "*1\r\n*2\r\n" NAME(4, "name") ":7\r\n", REPLICATION),
        LOOK(
            FACTS,
            "*1\r\n*10\r\n" NAME(4, "name") "$1\r\ng\r\n" NAME(9, "consumers") ":1\r\n" NAME(
                7,
                "pending") ":-3\r\n" NAME(17,
                                          "last-delivered-id") "$3\r\n1-1\r\n" NAME(12,
                                                                                    "entries-read") "$-1\r\n",
            REPLICATION),
        LOOK(
            FACTS,
            "*1\r\n*10\r\n" NAME(4, "name") "$1\r\ng\r\n" NAME(9, "consumers") ":1\r\n" NAME(
                7,
                "pending") ":3\r\n" NAME(17,
                                         "last-delivered-id") "$3\r\n1-1\r\n" NAME(12,
                                                                                   "entries-read") "$2\r\nxx\r\n",
            REPLICATION),
        LOOK(FACTS, "+OK\r\n", REPLICATION),
        LOOK(FACTS, GROUPS, ":1\r\n"),
        LOOK(FACTS, GROUPS, "$-1\r\n"),
        LOOK(FACTS, GROUPS, "*0\r\n"),
        LOOK(FACTS, GROUPS, "$0\r\n\r\n"),
        LOOK(FACTS, GROUPS, "$11\r\nrole:master\r\n"), /* whose history? */
        LOOK(FACTS, GROUPS, "$32\r\nrole:master\r\nmaster_replid:0123\r\n\r\n"),
        LOOK(FACTS, GROUPS, "$56\r\nmaster_replid:" REPLID "\r\n\r\n"),
    };
    for (size_t i = 0; i < sizeof execs / sizeof execs[0]; i++) {
        enum silt_status status = exec_gives(execs[i]);
        ck_assert_msg(status == SILT_ERR_SERVER_NONSENSE, "%zu: %s %s", i, silt_status_name(status),
                      err.sentence);
    }
    silt_look_release(&look);
}
END_TEST

START_TEST(look_script__rights_taken_away_between_queue_and_exec)
{
    ck_gives(SILT_OK, exec_gives(LOOK(FACTS, "-NOPERM no\r\n", REPLICATION)));
    ck_assert(look.groups_denied && look.group_count == 0);
    ck_gives(SILT_OK, exec_gives(LOOK(FACTS, GROUPS, "-NOPERM no\r\n")));
    ck_assert(!look.replication_known && !look.is_master);
    ck_gives(SILT_ERR_SERVER_DENIED, exec_gives(LOOK("-NOPERM no\r\n", GROUPS, REPLICATION)));
    silt_look_release(&look);
}
END_TEST

START_TEST(look_script__other_refusals_within_exec_are_failures)
{
    ck_gives(SILT_ERR_SERVER_BUSY, exec_gives(LOOK("-LOADING x\r\n", GROUPS, REPLICATION)));
    ck_gives(SILT_ERR_SERVER_BUSY, exec_gives(LOOK(FACTS, "-BUSY x\r\n", REPLICATION)));
    ck_gives(SILT_ERR_SERVER_REFUSED, exec_gives(LOOK(FACTS, GROUPS, "-ERR x\r\n")));
    silt_look_release(&look);
}
END_TEST

START_TEST(look_script__a_full_memory_asks_by_script_and_reads_it_as_strictly)
{
    static const struct {
        const char *answer;
        enum silt_status status;
    } cases[] = {{LOOK(FACTS, GROUPS, REPLICATION), SILT_OK},
                 {"-OOM x\r\n", SILT_ERR_SERVER_OOM},
                 {"-NOPERM no eval\r\n", SILT_ERR_SERVER_OOM},
                 {"*2\r\n" FACTS GROUPS, SILT_ERR_SERVER_NONSENSE},
                 {"$-1\r\n", SILT_ERR_SERVER_NONSENSE},
                 {"*0\r\n", SILT_ERR_SERVER_NONSENSE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct test_step steps[] = {
            GREETING,
            TEST_EXPECT("MULTI"),
            TEST_ANSWER("+OK\r\n"),
            TEST_EXPECT("XINFO STREAM s"),
            TEST_ANSWER("-OOM x\r\n"),
            TEST_EXPECT("XINFO GROUPS s"),
            TEST_ANSWER("-OOM x\r\n"),
            TEST_EXPECT("INFO replication"),
            TEST_ANSWER("-OOM x\r\n"),
            TEST_EXPECT("EXEC"),
            TEST_ANSWER("-EXECABORT x\r\n"),
            TEST_EXPECT("EVAL **"),
            {TEST_STEP_ANSWER, NULL, cases[i].answer, strlen(cases[i].answer)}};
        test_fake_start(&fake, steps, sizeof steps / sizeof steps[0]);
        struct silt_conn *conn = conn_to(fake.address);
        ck_gives(cases[i].status,
                 silt_look_call(conn, silt_view_str("s"), SILT_LOOK_ARCHIVER, &look, &err));
        silt_conn_free(conn);
        ck_assert_str_eq(test_fake_finish(&fake), "");
    }
    silt_look_release(&look);
}
END_TEST

START_TEST(look_script__a_look_is_not_taken_for_a_page)
{
    static const struct test_step script[] = {GREETING, TEST_EXPECT("PING"),
                                              TEST_ANSWER("+PONG\r\n"), TEST_SILENCE};
    struct silt_page page = {0};
    struct silt_page_request request = {
        .key = silt_view_str("s"), .to = SILT_WIRE_ID_MAX, .count = 1};
    test_fake_start(&fake, script, sizeof script / sizeof script[0]);
    struct silt_conn *conn = conn_to(fake.address);
    ck_gives(SILT_OK, call_words(conn, &scratch, &err, "PING", (char *)NULL));
    ck_gives(SILT_OK, silt_look_append(conn, silt_view_str("s"), SILT_LOOK_READER, &err));
    ck_gives(SILT_ERR_USAGE, silt_page_receive(conn, &request, &page, &err));
    ck_assert(!silt_conn_is_open(conn)); /* what would come next is not known */
    silt_conn_free(conn);
    silt_page_release(&page);
    silt_reply_release(&scratch);
    test_fake_finish(&fake);
}
END_TEST

START_TEST(look_script__xpending_and_time_of_another_shape_are_nonsense)
{
    static const char *const pending[] = {"*0\r\n",
                                          "$-1\r\n",
                                          "*3\r\n:0\r\n$-1\r\n$-1\r\n",
                                          "*4\r\n$1\r\n0\r\n$-1\r\n$-1\r\n$-1\r\n",
                                          "*4\r\n:0\r\n$3\r\n1-1\r\n$3\r\n1-1\r\n$-1\r\n",
                                          "*4\r\n:1\r\n$-1\r\n$-1\r\n$-1\r\n",
                                          "*4\r\n:1\r\n$3\r\n1+1\r\n$3\r\n1-1\r\n*0\r\n"};
    static const char *const times[] = {"*0\r\n",
                                        ":1\r\n",
                                        "*2\r\n:1\r\n:1\r\n",
                                        "*2\r\n$1\r\n1\r\n$2\r\n-1\r\n",
                                        "*2\r\n$1\r\n1\r\n$7\r\n1000000\r\n",
                                        "*2\r\n$20\r\n18446744073709551615\r\n$1\r\n1\r\n"};
    enum { PENDING = sizeof pending / sizeof pending[0], TIMES = sizeof times / sizeof times[0] };
    static const struct test_step greeting = GREETING;
    struct test_step steps[1 + 3 * (PENDING + TIMES)] = {greeting}, *at = steps + 1;
    for (size_t i = 0; i < PENDING + TIMES; i++) {
        const char *answer = i < PENDING ? pending[i] : times[i - PENDING];
        *at++ = i < PENDING ? (struct test_step)TEST_EXPECT("XPENDING s g")
                            : (struct test_step)TEST_EXPECT("TIME");
        *at++ = (struct test_step){TEST_STEP_ANSWER, NULL, answer, strlen(answer)};
        *at++ = (struct test_step)TEST_CLOSE;
    }
    test_fake_start(&fake, steps, (size_t)(at - steps));
    struct silt_conn *conn = conn_to(fake.address);
    for (size_t i = 0; i < PENDING + TIMES; i++) {
        struct silt_wire_id id = {7, 7};
        uint64_t ms = 7;
        enum silt_status status =
            i < PENDING ? silt_look_oldest_pending(conn, silt_view_str("s"), silt_view_str("g"),
                                                   &scratch, &id, &err)
                        : silt_look_time(conn, &scratch, &ms, &err);
        ck_assert_msg(status == SILT_ERR_SERVER_NONSENSE, "%zu: %s", i, silt_status_name(status));
        ck_assert(id.ms == 7 && ms == 7);
    }
    silt_conn_free(conn);
    silt_reply_release(&scratch);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

TEST_MAIN(look_script__a_good_answer_is_read, look_script__facts_that_cannot_be_are_nonsense,
          look_script__rights_taken_away_between_queue_and_exec,
          look_script__other_refusals_within_exec_are_failures,
          look_script__a_full_memory_asks_by_script_and_reads_it_as_strictly,
          look_script__a_look_is_not_taken_for_a_page,
          look_script__xpending_and_time_of_another_shape_are_nonsense)
