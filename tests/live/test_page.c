/* Pages from a server that follows a script: whatever it answers instead of a page, no entry is hidden, none is made up, and an empty page is
 * believed only where the facts beside it agree. */
#include "conn_help.h"

static struct test_fake fake;
static struct silt_err err;
static struct silt_page page;

#define E(id, value) "*2\r\n$3\r\n" id "\r\n*2\r\n$1\r\na\r\n$1\r\n" value "\r\n"
#define NAME(len, name) "$" #len "\r\n" name "\r\n"
#define STREAM(length, last, first_entry, last_entry)                                                  \
    "*14\r\n" NAME(6, "length") ":" length "\r\n" NAME(                                                \
        17,                                                                                            \
        "last-generated-id") "$3\r\n" last                                                             \
                             "\r\n" NAME(20, "max-deleted-entry-id") "$3\r\n0-0\r\n" NAME(             \
                                 13,                                                                   \
                                 "entries-added") ":5\r\n" NAME(6,                                     \
                                                                "groups") ":0\r\n" NAME(11,            \
                                                                                        "first-entry") \
                                 first_entry NAME(10, "last-entry") last_entry
#define TWO STREAM("2", "2-2", E("1-1", "x"), E("2-2", "y"))
#define FOUR STREAM("4", "5-5", E("1-1", "x"), E("4-4", "z"))
#define NONE STREAM("0", "2-2", "$-1\r\n", "$-1\r\n")
#define NOGROUPS "*0\r\n"
#define PAGE(range, stream) "*3\r\n" range stream NOGROUPS
#define GOOD PAGE("*2\r\n" E("1-1", "x") E("2-2", "y"), TWO)

enum { STEPS = 11, FIRST = 1 };

/* One transaction: greeting, then MULTI, XRANGE, XINFO STREAM, XINFO GROUPS and EXEC with their answers, then the end. */
static struct test_step *transaction(struct test_step *step, const struct silt_view answers[5])
{
    static const char *const commands[5] = {"MULTI", "X*RANGE s **", "XINFO STREAM s",
                                            "XINFO GROUPS s", "EXEC"};
    for (size_t i = 0; i < 5; i++) {
        *step++ = (struct test_step)TEST_EXPECT(commands[i]);
        *step++ =
            (struct test_step){TEST_STEP_ANSWER, NULL, (const char *)answers[i].at, answers[i].len};
    }
    return step;
}

static const struct silt_view queued[4] = {
    {(const uint8_t *)"+OK\r\n", 5},
    {(const uint8_t *)"+QUEUED\r\n", 9},
    {(const uint8_t *)"+QUEUED\r\n", 9},
    {(const uint8_t *)"+QUEUED\r\n", 9},
};

static struct silt_page_request request_for(uint32_t count, bool reverse)
{
    return (struct silt_page_request){.key = silt_view_str("s"),
                                      .from = {1, 0},
                                      .to = {9, 9},
                                      .count = count,
                                      .reverse = reverse};
}

static enum silt_status take(struct silt_conn *conn, const struct silt_page_request *request)
{
    enum silt_status status = silt_conn_open(conn, &err);
    if (status == SILT_OK) status = silt_page_append(conn, request, &err);
    if (status == SILT_OK) status = silt_page_receive(conn, request, &page, &err);
    return status;
}

/* What a page of that request comes to when EXEC answers so. */
static enum silt_status exec_gives(const char *exec, const struct silt_page_request *request)
{
    static const struct test_step greeting = GREETING;
    struct test_step steps[STEPS + 1] = {greeting};
    struct silt_view answers[5] = {queued[0], queued[1], queued[2], queued[3], silt_view_str(exec)};
    struct test_step *end = transaction(steps + FIRST, answers);
    *end++ = (struct test_step)TEST_CLOSE;
    test_fake_start(&fake, steps, (size_t)(end - steps));
    struct silt_conn *conn = conn_to(fake.address);
    enum silt_status status = take(conn, request);
    ck_assert(status == SILT_OK || page.entry_count == 0 || status == SILT_ERR_SERVER_NONSENSE);
    if (status == SILT_ERR_SERVER_NONSENSE) ck_assert(!silt_conn_is_open(conn));
    silt_conn_free(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
    return status;
}

START_TEST(page__good_answers_of_a_script_are_good)
{
    struct silt_page_request request = request_for(2, false);
    ck_gives(SILT_OK, exec_gives(GOOD, &request));
    ck_assert_uint_eq(page.entry_count, 2);
    ck_assert(page.full);
    ck_gives(SILT_OK, exec_gives(PAGE("*0\r\n", NONE), &request));
    ck_assert_uint_eq(page.entry_count, 0);
    ck_gives(SILT_OK, exec_gives(PAGE("*2\r\n" E("1-1", "x") E("2-2", "y"), FOUR), &request));
    request.reverse = true;
    ck_gives(SILT_OK, exec_gives(PAGE("*2\r\n" E("4-4", "z") E("3-3", "y"), FOUR), &request));
    request.from = (struct silt_wire_id){5, 0};
    ck_gives(SILT_OK, exec_gives(PAGE("*0\r\n", FOUR), &request));
    silt_page_release(&page);
}
END_TEST

START_TEST(page__entries_that_the_facts_deny_or_miss_are_nonsense)
{
    static const struct {
        bool reverse;
        uint32_t count;
        const char *exec;
    } cases[] = {
        {false, 2, PAGE("*0\r\n", TWO)}, /* empty beside a stream of two */
        {true, 2, PAGE("*0\r\n", TWO)},
        {false, 2, PAGE("*1\r\n" E("1-1", "x"), TWO)}, /* short before the last */
        {false, 2, PAGE("*1\r\n" E("2-2", "y"), TWO)}, /* not from the first */
        {true, 2, PAGE("*1\r\n" E("2-2", "y"), TWO)},
        {true, 2, PAGE("*1\r\n" E("1-1", "x"), TWO)},
        {false, 2,
         PAGE("*2\r\n" E("2-2", "y") E("3-3", "y"), FOUR)}, /* full, but not from the first */
        {true, 2, PAGE("*2\r\n" E("3-3", "z") E("2-2", "y"), FOUR)},
        {false, 2, PAGE("*1\r\n" E("1-1", "x"), NONE)}, /* an entry of an empty stream */
        {false, 3,
         PAGE("*3\r\n" E("1-1", "x") E("2-1", "y") E("2-2", "y"), TWO)}, /* more than there are */
        {false, 2, PAGE("*2\r\n" E("1-1", "x") E("5-5", "y"), FOUR)},    /* above the last */
        {false, 2, PAGE("*1\r\n" E("1-1", "x"), "-ERR no such key\r\n")},
        {false, 2, PAGE("*2\r\n" E("2-2", "y") E("1-1", "x"), TWO)}, /* order */
        {true, 2, PAGE("*2\r\n" E("1-1", "x") E("2-2", "y"), TWO)},
        {false, 2, PAGE("*2\r\n" E("1-1", "x") E("1-1", "x"), TWO)}, /* twice */
        {false, 2, PAGE("*1\r\n" E("0-1", "x"), TWO)},               /* outside the range */
        {false, 2, PAGE("*1\r\n" E("9-a", "x"), TWO)},               /* not an id */
        {false, 1, PAGE("*2\r\n" E("1-1", "x") E("2-2", "y"), TWO)}, /* more than asked */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct silt_page_request request = request_for(cases[i].count, cases[i].reverse);
        enum silt_status status = exec_gives(cases[i].exec, &request);
        ck_assert_msg(status == SILT_ERR_SERVER_NONSENSE, "%zu: %s", i, silt_status_name(status));
    }
    silt_page_release(&page);
}
END_TEST

START_TEST(page__replies_of_another_shape_are_nonsense)
{
    static const char *const execs[] = {
        "*-1\r\n", /* EXEC answers nil */
        ":1\r\n",
        "+OK\r\n",
        "$2\r\nOK\r\n",
        "*0\r\n",
        "*2\r\n"
        "*0\r\n" NONE, /* an element is missing */
        "*4\r\n"
        "*0\r\n" NONE NOGROUPS NOGROUPS,
        PAGE("*-1\r\n", NONE),
        PAGE("$-1\r\n", NONE),
        PAGE(":0\r\n", NONE),
        PAGE("+\r\n", NONE),
        PAGE("*1\r\n:1\r\n", TWO),
        PAGE("*1\r\n*1\r\n$3\r\n1-1\r\n", TWO),
        PAGE("*1\r\n*2\r\n$3\r\n1-1\r\n$-1\r\n", TWO),
        PAGE("*1\r\n*2\r\n$3\r\n1-1\r\n*1\r\n$1\r\na\r\n", TWO),       /* a name without a value */
        PAGE("*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n:1\r\n", TWO), /* a number for a value */
        PAGE("*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n", TWO),
        PAGE("*1\r\n*2\r\n:1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n", TWO),
        PAGE("*0\r\n", "*0\r\n"),
        PAGE("*0\r\n", "$-1\r\n"),
        PAGE("*0\r\n", STREAM("-1", "2-2", "$-1\r\n", "$-1\r\n")),
        PAGE("*0\r\n", STREAM("1", "2-2", "$-1\r\n", "$-1\r\n")),
        PAGE("*0\r\n", STREAM("0", "2-2", E("1-1", "x"), E("2-2", "y"))),
        PAGE("*0\r\n", STREAM("2", "2-2", E("1-1", "x"), "$-1\r\n")),
        PAGE("*0\r\n", STREAM("2", "2-2", E("2-2", "x"), E("1-1", "x"))),
        PAGE("*0\r\n", STREAM("2", "2-2", E("1-1", "x"), E("1-1", "x"))),
        PAGE("*0\r\n", STREAM("2", "1-9", E("1-1", "x"),
                              E("2-2", "x"))), /* last-generated-id below the last */
        PAGE("*0\r\n", STREAM("0", "x-2", "$-1\r\n", "$-1\r\n")),
        "*3\r\n"
        "*0\r\n" NONE "$-1\r\n",
        "*3\r\n"
        "*0\r\n" NONE "*1\r\n:1\r\n",
        "*3\r\n"
        "*0\r\n" NONE "*1\r\n*2\r\n$4\r\nname\r\n$1\r\ng\r\n",
    };
    struct silt_page_request request = request_for(2, false);
    for (size_t i = 0; i < sizeof execs / sizeof execs[0]; i++) {
        enum silt_status status = exec_gives(execs[i], &request);
        ck_assert_msg(status == SILT_ERR_SERVER_NONSENSE, "%zu: %s", i, silt_status_name(status));
    }
    silt_page_release(&page);
}
END_TEST

START_TEST(page__a_server_that_does_not_count_entries_is_too_old)
{
    struct silt_page_request request = request_for(2, false);
    ck_gives(
        SILT_ERR_SERVER_OLD,
        exec_gives(
            PAGE(
                "*0\r\n",
                "*8\r\n" NAME(6, "length") ":0\r\n" NAME(17, "last-generated-id") "$3\r\n0-0\r\n" NAME(
                    11, "first-entry") "$-1\r\n" NAME(10, "last-entry") "$-1\r\n"),
            &request));
    ck_assert_ptr_nonnull(strstr(err.sentence, "entries-added"));
    silt_page_release(&page);
}
END_TEST

static const struct {
    const char *text;
    enum silt_status status;
} refusals[] = {
    {"-NOSCRIPT x\r\n", SILT_ERR_NO_SCRIPT},
    {"-BUSY x\r\n", SILT_ERR_SERVER_BUSY},
    {"-NOPERM x\r\n", SILT_ERR_SERVER_DENIED},
    {"-NOAUTH x\r\n", SILT_ERR_SERVER_DENIED},
    {"-WRONGPASS x\r\n", SILT_ERR_SERVER_DENIED},
    {"-LOADING x\r\n", SILT_ERR_SERVER_BUSY},
    {"-READONLY x\r\n", SILT_ERR_SERVER_READONLY},
    {"-MASTERDOWN x\r\n", SILT_ERR_SERVER_BUSY},
    {"-MISCONF x\r\n", SILT_ERR_SERVER_REFUSED},
    {"-NOREPLICAS x\r\n", SILT_ERR_SERVER_BUSY},
    {"-OOM x\r\n", SILT_ERR_SERVER_OOM},
    {"-MOVED 1 h:1\r\n", SILT_ERR_SERVER_MOVED},
    {"-ASK 1 h:1\r\n", SILT_ERR_SERVER_MOVED},
    {"-TRYAGAIN x\r\n", SILT_ERR_SERVER_BUSY},
    {"-CLUSTERDOWN x\r\n", SILT_ERR_SERVER_BUSY},
    {"-CROSSSLOT x\r\n", SILT_ERR_SERVER_REFUSED},
    {"-EXECABORT x\r\n", SILT_ERR_SERVER_REFUSED},
    {"-BUSYGROUP x\r\n", SILT_ERR_STALE},
    {"-ERR whatever\r\n", SILT_ERR_SERVER_REFUSED},
};
enum { REFUSALS = sizeof refusals / sizeof refusals[0] };

static const char *first_word(const char *text)
{
    static char word[32];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(text, " "), text);
    return word;
}

/* Plays all refusals at one place of the transaction on one connection, with a PING after each that shows the replies still in step. */
static void refuse_at(size_t place, const char *exec)
{
    static const struct test_step greeting = GREETING;
    struct test_step steps[1 + REFUSALS * 12 + 2] = {greeting};
    struct test_step *at = steps + 1;
    for (size_t i = 0; i < REFUSALS; i++) {
        struct silt_view answers[5] = {queued[0], queued[1], queued[2], queued[3],
                                       silt_view_str(exec)};
        answers[place] = silt_view_str(refusals[i].text);
        at = transaction(at, answers);
        if (refusals[i].status ==
            SILT_ERR_SERVER_OOM) { /* then a script is tried, which a full memory may allow */
            *at++ = (struct test_step)TEST_EXPECT("EVAL **");
            *at++ = (struct test_step)TEST_ANSWER("-OOM x\r\n");
        }
        *at++ = (struct test_step)TEST_EXPECT("PING");
        *at++ = (struct test_step)TEST_ANSWER("+PONG\r\n");
    }
    test_fake_start(&fake, steps, (size_t)(at - steps));
    struct silt_conn *conn = conn_to(fake.address);
    struct silt_reply reply = {0};
    for (size_t i = 0; i < REFUSALS; i++) {
        struct silt_page_request request = request_for(2, i % 2);
        ck_gives(refusals[i].status, take(conn, &request));
        ck_assert_uint_eq(page.entry_count, 0);
        ck_assert_ptr_nonnull(strstr(err.sentence, first_word(refusals[i].text + 1)));
        ck_gives(SILT_OK, call_words(conn, &reply, &err, "PING", (char *)NULL));
        ck_assert(text_is(&reply, 0, "PONG"));
    }
    ck_assert_uint_eq(silt_conn_generation(conn), 1);
    silt_conn_free(conn);
    silt_reply_release(&reply);
    silt_page_release(&page);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}

#define ABORT "-EXECABORT Transaction discarded because of previous errors.\r\n"

START_TEST(page__refused_at_multi)
{
    refuse_at(0, "-ERR EXEC without MULTI\r\n");
}
END_TEST

START_TEST(page__refused_at_the_range)
{
    refuse_at(1, ABORT);
}
END_TEST

START_TEST(page__refused_at_the_facts)
{
    refuse_at(2, ABORT);
}
END_TEST

START_TEST(page__refused_at_exec)
{
    refuse_at(4, "");
}
END_TEST

START_TEST(page__refused_within_exec)
{
    for (size_t i = 0; i < REFUSALS; i++) {
        char exec[600];
        struct silt_page_request request = request_for(2, false);
        snprintf(exec, sizeof exec, "*3\r\n%s%s%s", refusals[i].text, TWO, NOGROUPS);
        ck_gives(refusals[i].status, exec_gives(exec, &request));
        ck_assert_uint_eq(page.entry_count, 0);
        snprintf(exec, sizeof exec, "*3\r\n*0\r\n%s%s", refusals[i].text, NOGROUPS);
        ck_gives(refusals[i].status, exec_gives(exec, &request));
        ck_assert_uint_eq(page.entry_count, 0);
    }
    silt_page_release(&page);
}
END_TEST

START_TEST(page__a_refused_command_whose_transaction_runs_all_the_same_is_nonsense)
{
    static const struct test_step greeting = GREETING;
    struct test_step steps[STEPS] = {greeting};
    struct silt_view answers[5] = {queued[0], silt_view_str("-OOM x\r\n"), queued[2], queued[3],
                                   silt_view_str(GOOD)};
    transaction(steps + FIRST, answers);
    test_fake_start(&fake, steps, STEPS);
    struct silt_conn *conn = conn_to(fake.address);
    struct silt_page_request request = request_for(2, false);
    ck_gives(SILT_ERR_SERVER_NONSENSE, take(conn, &request));
    silt_conn_free(conn);
    silt_page_release(&page);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

START_TEST(page__cut_at_any_byte_is_no_page)
{
    static const char whole[] = GOOD;
    enum { CUTS = sizeof whole };
    static const struct test_step greeting = GREETING;
    struct test_step *steps = calloc(1 + CUTS * 11, sizeof *steps), *at = steps;
    *at++ = greeting;
    for (size_t i = 0; i < CUTS; i++) {
        struct silt_view answers[5] = {queued[0], queued[1], queued[2], queued[3],
                                       silt_view(whole, i)};
        at = transaction(at, answers);
        *at++ = (struct test_step)TEST_CLOSE;
    }
    test_fake_start(&fake, steps, (size_t)(at - steps));
    struct silt_conn *conn = conn_to(fake.address);
    struct silt_page_request request = request_for(2, false);
    for (size_t i = 0; i + 1 < CUTS; i++) {
        ck_gives(SILT_ERR_SERVER_AWAY, take(conn, &request));
        ck_assert_uint_eq(page.entry_count, 0);
    }
    ck_gives(SILT_OK, take(conn, &request));
    ck_assert_uint_eq(page.entry_count, 2);
    silt_conn_free(conn);
    silt_page_release(&page);
    ck_assert_str_eq(test_fake_finish(&fake), "");
    free(steps);
}
END_TEST

START_TEST(page__silence_within_a_transaction_is_a_timeout)
{
    static const struct test_step script[] = {GREETING,
                                              TEST_EXPECT("MULTI"),
                                              TEST_ANSWER("+OK\r\n"),
                                              TEST_EXPECT("XRANGE s **"),
                                              TEST_ANSWER("+QUEUED\r\n"),
                                              TEST_SILENCE};
    test_fake_start(&fake, script, sizeof script / sizeof script[0]);
    struct silt_conn_options options = options_for(fake.address);
    options.command_timeout_ms = 100;
    struct silt_conn *conn = new_conn(&options);
    struct silt_page_request request = request_for(2, false);
    ck_gives(SILT_ERR_SERVER_TIMEOUT, take(conn, &request));
    ck_assert(!silt_conn_is_open(conn));
    ck_gives(SILT_ERR_SERVER_AWAY,
             silt_page_receive(conn, &request, &page, &err)); /* nothing is owed any more */
    silt_conn_free(conn);
    silt_page_release(&page);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

TEST_MAIN(page__good_answers_of_a_script_are_good,
          page__entries_that_the_facts_deny_or_miss_are_nonsense,
          page__replies_of_another_shape_are_nonsense,
          page__a_server_that_does_not_count_entries_is_too_old, page__refused_at_multi,
          page__refused_at_the_range, page__refused_at_the_facts, page__refused_at_exec,
          page__refused_within_exec,
          page__a_refused_command_whose_transaction_runs_all_the_same_is_nonsense,
          page__cut_at_any_byte_is_no_page, page__silence_within_a_transaction_is_a_timeout)
