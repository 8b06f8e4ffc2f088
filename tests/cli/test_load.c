/* silt load: records in, one answer each. */
#include "cli.h"

#define KEY "emq:{t}:stream:s"
#define BRANDED "--ids", "branded EVT"

static struct cli cli;

static void start(void)
{
    cli_start(&cli, "  - match: orders\n");
}

static const char *file_of(const char *name, const char *text)
{
    const char *path = test_path("%s", name);
    test_file_write(path, text, strlen(text));
    return path;
}

static const char *entry_text(const char *key, const char *id)
{
    static char text[4096];
    redisReply *reply = test_cmd(&cli.server, "XRANGE %s %s %s", key, id, id);
    size_t len = 0;
    text[0] = '\0';
    if (reply->elements == 0) return text;
    redisReply *fields = reply->element[0]->element[1];
    for (size_t i = 0; i < fields->elements; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? " " : "",
                                fields->element[i]->str);
    return text;
}

START_TEST(load__times_become_wire_ids_counted_within_the_millisecond)
{
    start();
    const char *path =
        file_of("in", "{\"t\":5,\"fields\":[[\"a\",\"1\"]]}\n"
                      "{\"t\":5,\"fields\":[[\"a\",\"2\"],[\"a\",\"3\"]]}\n\n"
                      "{\"t\":\"1970-01-01T00:00:00.006Z\",\"fields\":{\"b\":\"\"}}");
    CK_SILT_OUT(0, "3 written, 0 there already, 0 refused\n", "load", "orders", path);
    ck_assert_str_eq(entry_text("orders", "5-0"), "a 1");
    ck_assert_str_eq(entry_text("orders", "5-1"), "a 2 a 3");
    ck_assert_str_eq(entry_text("orders", "6-0"), "b ");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(load__times_become_minted_ids_on_a_branded_stream)
{
    start();
    const char *path = file_of("in", "{\"t\":1772366400000,\"fields\":[[\"a\",\"1\"]]}\n"
                                     "{\"t\":1772366400000,\"fields\":[]}\n");
    CK_SILT(0, "2 written", "", "load", KEY, path, BRANDED, "--node", "11");
    ck_assert_str_eq(entry_text(KEY, "1772366400000-45056"), "id EVT0LA1WsaHbSi a 1");
    ck_assert_str_eq(entry_text(KEY, "1772366400000-45057"), "id EVT0LA1WsaHbSj");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(load__shift_moves_times_and_ids)
{
    start();
    const char *path = file_of("in", "{\"t\":100000,\"fields\":[[\"a\",\"1\"]]}\n"
                                     "{\"id\":\"100001-7\",\"fields\":[[\"a\",\"2\"]]}\n");
    CK_SILT(0, "2 written", "", "load", "orders", path, "--shift", "-1m");
    CK_SILT(0, "2 written", "", "load", "orders", path, "--shift", "1d");
    ck_assert_str_eq(entry_text("orders", "40001-7"), "a 2");
    ck_assert_str_eq(entry_text("orders", "86500000-0"), "a 1");
    CK_SILT(2, "", "line 1: shifted, its time lies outside", "load", "orders", path, "--shift",
            "-1d");
    CK_SILT(2, "", "not a duration: 'soon'", "load", "orders", path, "--shift", "soon");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(load__can_be_repeated)
{
    start();
    const char *path = file_of("in", "{\"t\":5,\"fields\":[[\"a\",\"1\"]]}\n"
                                     "{\"t\":6,\"fields\":[[\"a\",\"2\"]]}\n");
    CK_SILT(0, "2 written", "", "load", "orders", path);
    path = file_of("more", "{\"t\":5,\"fields\":[[\"a\",\"1\"]]}\n"
                           "{\"t\":6,\"fields\":[[\"a\",\"2\"]]}\n"
                           "{\"t\":7,\"fields\":[[\"a\",\"3\"]]}\n");
    CK_SILT(0, "1 written, 2 there already, 0 refused", "", "load", "orders", path);
    ck_assert_int_eq(test_cmd_int(&cli.server, "XLEN orders"), 3);
    test_server_release(&cli.server);
}
END_TEST

START_TEST(load__each_record_has_its_own_answer)
{
    start();
    test_cmd(&cli.server, "XADD orders 7-0 a 1");
    test_cmd(&cli.server, "XADD orders 10-0 a 1");
    const char *path = file_of("in", "{\"id\":\"8-0\",\"fields\":[[\"a\",\"1\"]]}\n"
                                     "{\"id\":\"7-0\",\"fields\":[[\"a\",\"2\"]]}\n"
                                     "{\"id\":\"10-0\",\"fields\":[[\"a\",\"1\"]]}\n"
                                     "{\"id\":\"11-0\",\"fields\":[[\"a\",\"1\"]]}\n");
    struct test_outcome end;
    TEST_PROGRAM(&end, "silt", "load", "orders", path, "--json");
    CK_RUN(&end, 8, "{\"line\":1,\"id\":\"8-0\",\"branded\":null,\"result\":\"refused\"",
           "line 2: 7-0: the stream holds other bytes");
    ck_assert_ptr_nonnull(strstr(end.out, "\"line\":2,\"id\":\"7-0\",\"branded\":null,\"result\":"
                                          "\"refused\",\"error\":{\"code\":\"SILT_ERR_CONFLICT\""));
    ck_assert_ptr_nonnull(
        strstr(end.out, "\"id\":\"10-0\",\"branded\":null,\"result\":\"present\"}"));
    ck_assert_ptr_nonnull(
        strstr(end.out, "\"id\":\"11-0\",\"branded\":null,\"result\":\"written\"}"));
    ck_assert_ptr_nonnull(
        strstr(end.out, "{\"summary\":{\"written\":1,\"present\":1,\"refused\":2}}"));
    test_outcome_release(&end);
    path = file_of("low", "{\"id\":\"8-0\",\"fields\":[[\"a\",\"1\"]]}\n");
    CK_SILT(1, "1 refused", "line 1: 8-0: the id is not above the stream's top", "load", "orders",
            path);
    test_server_release(&cli.server);
}
END_TEST

START_TEST(load__bad_lines_change_nothing)
{
    static const char *const rows[][2] = {
        {"{", "not JSON"},
        {"[]", "neither t nor id"},
        {"{\"fields\":[]}", "neither t nor id"},
        {"{\"t\":1,\"id\":\"1-1\",\"fields\":[]}", "both t and id"},
        {"{\"t\":1}", "fields is neither"},
        {"{\"t\":-1,\"fields\":[]}", "t is neither milliseconds nor an instant"},
        {"{\"t\":\"1969-12-31\",\"fields\":[]}", "before 1970"},
        {"{\"t\":1,\"fields\":[[\"a\"]]}", "field 1 is not a pair"},
        {"{\"t\":1,\"fields\":[[\"a\",5]]}", "a field's value is neither"},
        {"{\"t\":1,\"fields\":[[\"a\",{\"b64\":\"AB\"}]]}", "a field's value is neither"},
        {"{\"t\":1,\"fields\":[]}", "at least one field"},
        {"{\"t\":1,\"fields\":{\"a\":\"1\",\"a\":\"2\"}}", "not JSON: duplicate"},
        {"{\"id\":\"1-x\",\"fields\":[[\"a\",\"b\"]]}", "not a wire id: '1-x'"},
        {"{\"id\":5,\"fields\":[[\"a\",\"b\"]]}", "id is not a string"},
    };
    start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "{\"t\":1,\"fields\":[[\"a\",\"b\"]]}\n%s\n", rows[i][0]);
        const char *path = file_of("in", text);
        CK_SILT(2, "", rows[i][1], "load", "orders", path);
        CK_SILT(2, "", "line 2: ", "load", "orders", path);
    }
    ck_assert_int_eq(test_cmd_int(&cli.server, "EXISTS orders"), 0);
    test_server_release(&cli.server);
}
END_TEST

START_TEST(load__branded_records_are_refused_like_appends)
{
    static const char *const rows[][2] = {
        {"{\"t\":1772366400000,\"fields\":[[\"id\",\"x\"]]}", "may not be called id"},
        {"{\"t\":5,\"fields\":[]}", "outside what a branded id can name"},
        {"{\"id\":\"5-5\",\"fields\":[]}", "no branded form"},
        {"{\"id\":\"ORD000xY9Wvvcd\",\"fields\":[]}", "of namespace ORD, not EVT"},
        {"{\"id\":\"EVT000xY9Wvvcd\",\"fields\":[[\"id\",\"EVT000xY9Wvvce\"]]}",
         "may not be called id"}};
    start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CK_SILT(2, "", rows[i][1], "load", KEY, file_of("in", rows[i][0]), BRANDED);
    CK_SILT(2, "", "'orders' is not emq:{<queue>}", "load", "orders", file_of("in", ""), BRANDED);
    ck_assert_int_eq(test_cmd_int(&cli.server, "DBSIZE"), 0);
    test_server_release(&cli.server);
}
END_TEST

START_TEST(load__takes_what_read_gives_byte_for_byte)
{
    start();
    test_cmd(&cli.server, "XADD orders 5-1 %b %b a %s", "n\0\xff", (size_t)3, "\n\"\\", (size_t)3,
             "");
    test_cmd(&cli.server, "XADD orders 6-1 a caf\xc3\xa9 a again");
    char *json = SILT_OUTPUT("read", "orders", "--json");
    ck_assert_ptr_nonnull(strstr(json, "{\"b64\":\"bgD/\"}"));
    CK_SILT(0, "2 written", "", "load", "copy", file_of("in", json));
    char *copied = SILT_OUTPUT("read", "copy", "--json");
    ck_assert_str_eq(copied, json);
    free(copied);
    free(json);
    free(SILT_OUTPUT("append", KEY, BRANDED, "kind", "x"));
    json = SILT_OUTPUT("read", KEY, BRANDED, "--json");
    CK_SILT(0, "1 written", "", "load", "emq:{t}:stream:copy", file_of("in", json), BRANDED);
    copied = SILT_OUTPUT("read", "emq:{t}:stream:copy", BRANDED, "--json");
    ck_assert_str_eq(copied, json);
    free(copied);
    free(json);
    test_server_release(&cli.server);
}
END_TEST

START_TEST(load__reads_zstd_and_the_standard_input)
{
    static const char *const argv[] = {"silt", "load", "orders", "-", NULL};
    struct test_outcome end;
    char path[4096];
    start();
    test_program(&end, argv, NULL, "{\"t\":5,\"fields\":[[\"a\",\"1\"]]}\nbad\n", 30000);
    CK_RUN(&end, 2, "1 written", "line 2: not JSON"); /* it cannot be read twice */
    test_outcome_release(&end);
    snprintf(path, sizeof path, "%s/tests/data/earthquakes.jsonl.zst", test_source_root());
    CK_SILT(0, "1,707 written", "", "load", "quakes", path);
    ck_assert_int_eq(test_cmd_int(&cli.server, "XLEN quakes"), 1707);
    size_t len;
    char *whole = test_file_read(path, &len);
    test_file_write(test_path("cut.zst"), whole, len - 5);
    free(whole);
    CK_SILT(2, "", "the file ends inside a zstd frame", "load", "cut", test_path("cut.zst"));
    ck_assert_int_eq(test_cmd_int(&cli.server, "EXISTS cut"), 0);
    CK_SILT(2, "", "cannot open /not/there: No such file", "load", "cut", "/not/there");
    test_server_release(&cli.server);
}
END_TEST

START_TEST(load__refusal_of_the_server_ends_it)
{
    start();
    test_cmd(&cli.server, "SET orders x");
    const char *path = file_of("in", "{\"t\":5,\"fields\":[[\"a\",\"1\"]]}\n");
    CK_SILT(4, "", "WRONGTYPE", "load", "orders", path);
    test_server_kill(&cli.server);
    CK_SILT(4, "", "cannot connect", "load", "orders", path);
    test_server_release(&cli.server);
}
END_TEST

TEST_MAIN(load__times_become_wire_ids_counted_within_the_millisecond,
          load__times_become_minted_ids_on_a_branded_stream, load__shift_moves_times_and_ids,
          load__can_be_repeated, load__each_record_has_its_own_answer,
          load__bad_lines_change_nothing, load__branded_records_are_refused_like_appends,
          load__takes_what_read_gives_byte_for_byte, load__reads_zstd_and_the_standard_input,
          load__refusal_of_the_server_ends_it)
