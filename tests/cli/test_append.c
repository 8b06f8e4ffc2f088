/* silt append against the wire contract's scenarios. */
#include "cli.h"

#define KEY "emq:{t}:stream:s"
#define BRANDED "--ids", "branded EVT"

static struct cli cli;

static void start(void)
{
    cli_start(&cli, "  - match: orders\n");
}

static char *append(const char *value)
{
    char *id = SILT_OUTPUT("append", KEY, BRANDED, "seq", value);
    id[strcspn(id, "\n")] = '\0';
    return id;
}

static const char *exists(void)
{
    return test_cmd_int(&cli.server, "EXISTS " KEY) ? "yes" : "no";
}

START_TEST(append__receipts_ascend_and_are_the_first_field)
{
    char *receipts[5];
    char value[8];
    start();
    for (int i = 0; i < 5; i++) {
        snprintf(value, sizeof value, "v%d", i + 1);
        receipts[i] = append(value);
        ck_assert_int_eq(strncmp(receipts[i], "EVT", 3), 0);
        if (i > 0) ck_assert_int_lt(strcmp(receipts[i - 1], receipts[i]), 0);
    }
    redisReply *reply = test_cmd(&cli.server, "XRANGE " KEY " - +");
    ck_assert_uint_eq(reply->elements, 5);
    for (size_t i = 0; i < 5; i++) {
        redisReply *fields = reply->element[i]->element[1];
        snprintf(value, sizeof value, "v%zu", i + 1);
        ck_assert_uint_eq(fields->elements, 4);
        ck_assert_str_eq(fields->element[0]->str, "id");
        ck_assert_str_eq(fields->element[1]->str, receipts[i]);
        ck_assert_str_eq(fields->element[3]->str, value);
        free(receipts[i]);
    }
    test_server_release(&cli.server);
}
END_TEST

START_TEST(append__same_millisecond_ids_in_their_order)
{
    static const char *const ids[] = {"EVT0LA1WsaHPk0", "EVT0LA1WsaHQo3", "EVT0LA1WsaHQo4",
                                      "EVT0LA1WsaHYGV", "EVT0LA1WsaHYGW", "EVT0LA1WsaZ0s3",
                                      "EVT0LA1WsaZ0s4"};
    start();
    for (size_t i = 0; i < 7; i++)
        CK_SILT(0, ids[i], "", "append", KEY, BRANDED, "--id", ids[i], "a", "b");
    ck_assert_int_eq(test_cmd_int(&cli.server, "XLEN " KEY), 7);
    test_server_release(&cli.server);
}
END_TEST

START_TEST(append__wire_id_is_the_fields_correspondence)
{
    start();
    CK_SILT_OUT(
        0,
        "{\"id\":\"1704117200000-1620567\",\"branded\":\"EVT000xY9Wvvcd\",\"instant\":\"2024-01-"
        "01T13:53:20.000Z\"}\n",
        "append", KEY, BRANDED, "--json", "--id", "EVT000xY9Wvvcd", "a", "b");
    redisReply *reply = test_cmd(&cli.server, "XRANGE " KEY " - +");
    ck_assert_str_eq(reply->element[0]->element[0]->str, "1704117200000-1620567");
    ck_assert_str_eq(reply->element[0]->element[1]->element[1]->str, "EVT000xY9Wvvcd");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(append__bad_ids_are_refused_before_any_wire)
{
    static const char *const rows[][2] = {{"ORD000xY9Wvvcd", "is of namespace ORD, not EVT"},
                                          {"EVT0KHTOWnGLu", "has 13 bytes"},
                                          {"usr0KHTOWnGLuC", "three letters A-Z"},
                                          {"EVT0KHTO/nGLuC", "digits of"},
                                          {"EVTLygHa16AHYL", "at most AzL8n0Y58m7"},
                                          {"5-1", "has no branded form"},
                                          {"1704117200000-4194304", "has no branded form"},
                                          {"", "has 0 bytes"}};
    start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CK_SILT(2, "", rows[i][1], "append", KEY, BRANDED, "--id", rows[i][0], "a", "b");
    ck_assert_str_eq(exists(), "no");
    free(append("v"));
    test_server_release(&cli.server);
}
END_TEST

START_TEST(append__other_refusals_come_before_any_wire)
{
    start();
    CK_SILT(2, "", "may not be called id", "append", KEY, BRANDED, "a", "b", "id", "x");
    CK_SILT(2, "", "the field 'c' has no value", "append", KEY, BRANDED, "a", "b", "c");
    CK_SILT(2, "", "'orders' is not emq:{<queue>}:stream:<name>", "append", "orders", BRANDED, "a",
            "b");
    CK_SILT(2, "", "the name 's:archived'", "append", KEY ":archived", BRANDED, "a", "b");
    CK_SILT(2, "", "the queue ''", "append", "emq:{}:stream:s", BRANDED, "a", "b");
    CK_SILT(2, "", "--node is a number from 0 to 1023", "append", KEY, BRANDED, "--node", "1024",
            "a", "b");
    ck_assert_int_eq(test_cmd_int(&cli.server, "DBSIZE"), 0);
    test_server_release(&cli.server);
}
END_TEST

START_TEST(append__id_not_above_the_top_is_told_and_nothing_written)
{
    start();
    CK_SILT(0, "", "", "append", KEY, BRANDED, "--id", "EVT0LA1WsaHYGW", "a", "b");
    CK_SILT(4, "", "nothing was written", "append", KEY, BRANDED, "--id", "EVT0LA1WsaHYGV", "a",
            "b");
    CK_SILT(4, "", "not above the stream's top", "append", KEY, BRANDED, "--id", "EVT0LA1WsaHYGW",
            "a", "b");
    ck_assert_int_eq(test_cmd_int(&cli.server, "XLEN " KEY), 1);
    test_server_release(&cli.server);
}
END_TEST

START_TEST(append__mints_above_a_stream_that_is_ahead_of_the_clock)
{
    start();
    /* 2058, a high node, and a tail that no snowflake has. */
    CK_SILT(0, "", "", "append", KEY, BRANDED, "--id", "EVT5UfZOVH2ZO4", "a", "b");
    test_cmd(&cli.server, "XADD " KEY " 2803578827776-99999999 a b");
    char *id = append("v");
    ck_assert_int_gt(strcmp(id, "EVT5UfZOVH2ZO4"), 0);
    free(id);
    ck_assert_int_eq(test_cmd_int(&cli.server, "XLEN " KEY), 3);
    test_cmd(&cli.server, "XADD " KEY " 3903090455552-0 a b");
    CK_SILT(2, "", "no branded id lies above the stream's last id 3903090455552-0", "append", KEY,
            BRANDED, "a", "b");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(append__server_errors_pass_through)
{
    start();
    test_cmd(&cli.server, "SET " KEY " x");
    CK_SILT(4, "", "WRONGTYPE", "append", KEY, BRANDED, "a", "b");
    CK_SILT(4, "", "WRONGTYPE", "append", KEY, BRANDED, "--id", "EVT000xY9Wvvcd", "a", "b");
    test_cmd(&cli.server, "CONFIG SET maxmemory 1");
    CK_SILT(4, "", "OOM", "append", "emq:{t}:stream:o", BRANDED, "a", "b");
    test_cmd(&cli.server, "CONFIG SET maxmemory 0");
    test_cmd(&cli.server, "REPLICAOF 127.0.0.1 1");
    CK_SILT(4, "", "READONLY", "append", "emq:{t}:stream:o", BRANDED, "a", "b");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(append__plain_streams_take_the_servers_id)
{
    start();
    char *id = SILT_OUTPUT("append", "orders", "id", "is just a field", "a", "");
    ck_assert_ptr_nonnull(strchr(id, '-'));
    CK_SILT_OUT(0, "18446744073709551615-5\n", "append", "orders", "--id", "18446744073709551615-5",
                "a", "b");
    ck_assert_int_eq(test_cmd_int(&cli.server, "XLEN orders"), 2);
    free(id);
    test_server_release(&cli.server);
}
END_TEST

START_TEST(append__without_a_server_is_refused)
{
    start();
    test_server_kill(&cli.server);
    CK_SILT(4, "", "cannot connect to unix:", "append", "orders", "a", "b");
    unsetenv("SILT_CONFIG");
    CK_SILT(2, "", "no server is named\nhint: --valkey", "append", "orders", "a", "b");
    CK_SILT(3, "", "nonsense", "append", "orders", "--valkey", "nonsense", "a", "b");
    test_server_release(&cli.server);
}
END_TEST

#define GREETING TEST_ALWAYS("INFO server", "$22\r\nredis_version:7.0.15\r\n\r\n")
#define XADD "XADD " KEY " 1704117200000-1620567 id EVT000xY9Wvvcd a b"
#define XRANGE "XRANGE " KEY " 1704117200000-1620567 1704117200000-1620567"
#define THERE                                                                                   \
    "*1\r\n*2\r\n$21\r\n1704117200000-1620567\r\n*4\r\n$2\r\nid\r\n$14\r\nEVT000xY9Wvvcd\r\n$1" \
    "\r\na\r\n$1\r\nb\r\n"
#define ID_REPLY "$21\r\n1704117200000-1620567\r\n"
#define TOO_LOW \
    "-ERR The ID specified in XADD is equal or smaller than the target stream top item\r\n"

static void against(const struct test_step *steps, size_t count, int code, const char *out,
                    const char *err)
{
    struct test_fake fake;
    test_fake_start(&fake, steps, count);
    unsetenv("SILT_CONFIG");
    CK_SILT(code, out, err, "append", KEY, BRANDED, "--valkey", fake.address, "--id",
            "EVT000xY9Wvvcd", "a", "b");
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
#define AGAINST(code, out, err, ...)                                       \
    do {                                                                   \
        static const struct test_step steps_[] = {GREETING, __VA_ARGS__};  \
        against(steps_, sizeof steps_ / sizeof steps_[0], code, out, err); \
    } while (0)

START_TEST(append__lost_reply_is_settled_by_reading_back)
{
    AGAINST(0, "EVT000xY9Wvvcd", "", TEST_EXPECT(XADD), TEST_CLOSE, TEST_EXPECT(XRANGE),
            TEST_ANSWER(THERE));
}
END_TEST

START_TEST(append__lost_request_is_sent_again_under_the_same_id)
{
    AGAINST(0, "EVT000xY9Wvvcd", "", TEST_EXPECT(XADD), TEST_CLOSE, TEST_EXPECT(XRANGE),
            TEST_ANSWER("*0\r\n"), TEST_EXPECT(XADD), TEST_ANSWER(ID_REPLY));
}
END_TEST

START_TEST(append__late_first_request_is_found_out)
{
    AGAINST(0, "EVT000xY9Wvvcd", "", TEST_EXPECT(XADD), TEST_CLOSE, TEST_EXPECT(XRANGE),
            TEST_ANSWER("*0\r\n"), TEST_EXPECT(XADD), TEST_ANSWER(TOO_LOW), TEST_EXPECT(XRANGE),
            TEST_ANSWER(THERE));
}
END_TEST

START_TEST(append__lost_request_below_the_top_is_refused)
{
    AGAINST(4, "", "not above the stream's top", TEST_EXPECT(XADD), TEST_CLOSE, TEST_EXPECT(XRANGE),
            TEST_ANSWER("*0\r\n"), TEST_EXPECT(XADD), TEST_ANSWER(TOO_LOW), TEST_EXPECT(XRANGE),
            TEST_ANSWER("*0\r\n"));
}
END_TEST

START_TEST(append__other_bytes_under_the_id_are_a_conflict)
{
    AGAINST(
        8, "", "other bytes under the id 1704117200000-1620567", TEST_EXPECT(XADD), TEST_CLOSE,
        TEST_EXPECT(XRANGE),
        TEST_ANSWER("*1\r\n*2\r\n$21\r\n1704117200000-1620567\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"));
}
END_TEST

START_TEST(append__nonsense_is_never_taken_for_yes)
{
    AGAINST(4, "", "is not known", TEST_EXPECT(XADD), TEST_ANSWER(":7\r\n"), TEST_CLOSE,
            TEST_EXPECT(XRANGE), TEST_ANSWER("+OK\r\n"), TEST_CLOSE, TEST_EXPECT(XRANGE),
            TEST_CLOSE, TEST_EXPECT(XRANGE), TEST_CLOSE);
}
END_TEST

TEST_MAIN(append__receipts_ascend_and_are_the_first_field,
          append__same_millisecond_ids_in_their_order, append__wire_id_is_the_fields_correspondence,
          append__bad_ids_are_refused_before_any_wire, append__other_refusals_come_before_any_wire,
          append__id_not_above_the_top_is_told_and_nothing_written,
          append__mints_above_a_stream_that_is_ahead_of_the_clock,
          append__server_errors_pass_through, append__plain_streams_take_the_servers_id,
          append__without_a_server_is_refused, append__lost_reply_is_settled_by_reading_back,
          append__lost_request_is_sent_again_under_the_same_id,
          append__late_first_request_is_found_out, append__lost_request_below_the_top_is_refused,
          append__other_bytes_under_the_id_are_a_conflict, append__nonsense_is_never_taken_for_yes)
