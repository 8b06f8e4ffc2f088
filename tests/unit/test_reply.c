/* Flat replies, error texts, markers and addresses: what needs no server. */
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>

#include "look.h"

/* name -> 1, list -> [a, b], last -> nil; then a name without a value */
static void build(struct silt_reply *reply)
{
    static struct silt_node nodes[] = {
        {SILT_NODE_ARRAY, 7, 10},  {SILT_NODE_STRING, 4, 0},  {SILT_NODE_INTEGER, 0, 1},
        {SILT_NODE_STRING, 4, 4},  {SILT_NODE_ARRAY, 2, 3},   {SILT_NODE_STRING, 1, 8},
        {SILT_NODE_STRING, 1, 9},  {SILT_NODE_STRING, 4, 10}, {SILT_NODE_NIL, 0, 0},
        {SILT_NODE_STRING, 4, 14},
    };
    static uint8_t bytes[] = "namelistablastlone";
    *reply = (struct silt_reply){.nodes = nodes, .node_count = 10, .bytes = {bytes, 18, 18}};
}

START_TEST(reply__map_get_finds_each_name)
{
    struct silt_reply reply;
    size_t node = 0;
    build(&reply);
    ck_assert(silt_reply_map_get(&reply, 0, "name", &node));
    ck_assert_uint_eq(node, 2);
    ck_assert(silt_reply_map_get(&reply, 0, "list", &node));
    ck_assert_uint_eq(node, 4);
    ck_assert(silt_reply_map_get(&reply, 0, "last", &node));
    ck_assert_uint_eq(node, 8);
}
END_TEST

START_TEST(reply__map_get_takes_values_and_lone_names_for_nothing)
{
    struct silt_reply reply;
    size_t node = 77;
    build(&reply);
    ck_assert(!silt_reply_map_get(&reply, 0, "a", &node));
    ck_assert(!silt_reply_map_get(&reply, 0, "lone", &node));
    ck_assert(!silt_reply_map_get(&reply, 0, "nam", &node));
    ck_assert(!silt_reply_map_get(&reply, 1, "name", &node));  /* not an array */
    ck_assert(!silt_reply_map_get(&reply, 10, "name", &node)); /* not a node */
    ck_assert_uint_eq(node, 77);
}
END_TEST

static const struct {
    const char *text;
    enum silt_status status;
    const char *says;
} answers[] = {
    {"NOSCRIPT No matching script. Please use EVAL.", SILT_ERR_NO_SCRIPT,
     "does not know the script"},
    {"BUSY Valkey is busy running a script.", SILT_ERR_SERVER_BUSY, "busy with a script"},
    {"NOPERM this user has no permissions to run the 'xtrim' command", SILT_ERR_SERVER_DENIED,
     "no right"},
    {"NOAUTH Authentication required.", SILT_ERR_SERVER_DENIED, "wants a password"},
    {"WRONGPASS invalid username-password pair or user is disabled.", SILT_ERR_SERVER_DENIED,
     "user or the password"},
    {"LOADING Redis is loading the dataset in memory", SILT_ERR_SERVER_BUSY, "loading its data"},
    {"READONLY You can't write against a read only replica.", SILT_ERR_SERVER_READONLY,
     "read-only replica"},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
     SILT_ERR_SERVER_BUSY, "lost its master"},
    {"MISCONF Redis is configured to save RDB snapshots", SILT_ERR_SERVER_REFUSED,
     "cannot save its own data"},
    {"NOREPLICAS Not enough good replicas to write.", SILT_ERR_SERVER_BUSY, "fewer replicas"},
    {"OOM command not allowed when used memory > 'maxmemory'.", SILT_ERR_SERVER_OOM,
     "memory is full"},
    {"MOVED 3999 127.0.0.1:6381", SILT_ERR_SERVER_MOVED, "127.0.0.1:6381"},
    {"ASK 3999 127.0.0.1:6381", SILT_ERR_SERVER_MOVED, "on its way"},
    {"TRYAGAIN Multiple keys request during rehashing of slot", SILT_ERR_SERVER_BUSY,
     "being moved"},
    {"CLUSTERDOWN Hash slot not served", SILT_ERR_SERVER_BUSY, "cluster is down"},
    {"CROSSSLOT Keys in request don't hash to the same slot", SILT_ERR_SERVER_REFUSED,
     "different slots"},
    {"EXECABORT Transaction discarded because of previous errors.", SILT_ERR_SERVER_REFUSED,
     "dropped a transaction"},
    {"EXECABORT Transaction discarded because of: OOM command not allowed when used memory",
     SILT_ERR_SERVER_OOM, "memory is full"},
    {"EXECABORT Transaction discarded because of: ", SILT_ERR_SERVER_REFUSED, "without a word"},
    {"BUSYGROUP Consumer Group name already exists", SILT_ERR_STALE, "is there already"},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", SILT_ERR_WRONG_TYPE,
     "another type"},
    {"NOGROUP No such key 's' or consumer group 'g'", SILT_ERR_STALE, "gone"},
    {"STALE entries-added", SILT_ERR_STALE, "entries-added"},
    {"DENIED Redis is running in protected mode", SILT_ERR_SERVER_DENIED, "protected mode"},
    {"ERR ACL failure in script: User silt has no permissions to run the 'xtrim' command",
     SILT_ERR_SERVER_DENIED, "xtrim"},
    {"ERR The user executing the script can't run this command or subcommand",
     SILT_ERR_SERVER_DENIED, "no right"},
    {"ERR no such key", SILT_ERR_UNKNOWN_STREAM, "no such key"},
    {"ERR The ID specified in XADD is equal or smaller than the target stream top item",
     SILT_ERR_NONMONOTONIC, "not above"},
    {"ERR max number of clients reached", SILT_ERR_SERVER_BUSY, "another client"},
    {"ERR unknown command 'XRANGE', with args beginning with: 'secret' ", SILT_ERR_SERVER_REFUSED,
     "XRANGE"},
    {"ERR syntax error", SILT_ERR_SERVER_REFUSED, "syntax error"},
    {"BUSYBODY of a module", SILT_ERR_SERVER_REFUSED, "BUSYBODY"},
    {"OOMPH", SILT_ERR_SERVER_REFUSED, "OOMPH"},
    {"", SILT_ERR_SERVER_REFUSED, "without a word"},
};

START_TEST(reply__each_error_text_has_its_class_and_sentence)
{
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct silt_err err = {0};
        enum silt_status status = silt_reply_error_class(silt_view_str(answers[i].text), &err);
        ck_assert_msg(status == answers[i].status, "%s: %s", answers[i].text,
                      silt_status_name(status));
        ck_assert_int_eq(err.code, answers[i].status);
        ck_assert_msg(strstr(err.sentence, answers[i].says) != NULL, "%s: %s", answers[i].text,
                      err.sentence);
        ck_assert_int_ne(silt_status_class(status), SILT_CLASS_NONE);
    }
}
END_TEST

START_TEST(reply__what_a_command_carried_is_not_repeated)
{
    struct silt_err err = {0};
    silt_reply_error_class(
        silt_view_str(
            "ERR unknown command 'AUTH', with args beginning with: 'silt' 'open sesame' "),
        &err);
    ck_assert_ptr_null(strstr(err.sentence, "sesame"));
    ck_assert_ptr_nonnull(strstr(err.sentence, "AUTH"));
}
END_TEST

START_TEST(reply__an_error_of_any_bytes_is_escaped_and_cut)
{
    struct silt_err err = {0};
    char text[5000];
    memset(text, 7, sizeof text);
    memcpy(text, "ERR ", 4);
    ck_assert_int_eq(silt_reply_error_class(silt_view(text, sizeof text), &err),
                     SILT_ERR_SERVER_REFUSED);
    ck_assert_ptr_null(strchr(err.sentence, 7));
    ck_assert_ptr_nonnull(strstr(err.sentence, "\\x07"));
}
END_TEST

static const char uuid[] = "0f1e2d3c-4b5a-4697-8899-aabbccddeeff";

START_TEST(reply__marker_there_and_back)
{
    struct silt_marker marker = {.epoch = 3, .number = UINT64_MAX}, back = {0};
    memcpy(marker.uuid, uuid, sizeof uuid);
    char text[SILT_MARKER_TEXT];
    size_t len = silt_marker_format(&marker, text);
    ck_assert_str_eq(text, "silt:0f1e2d3c-4b5a-4697-8899-aabbccddeeff:3:18446744073709551615");
    ck_assert(silt_marker_parse(silt_view(text, len), &back));
    ck_assert_str_eq(back.uuid, uuid);
    ck_assert_uint_eq(back.epoch, 3);
    ck_assert(back.number == UINT64_MAX);
}
END_TEST

START_TEST(reply__other_names_are_no_markers)
{
    static const char *const names[] = {
        "silt:0f1e2d3c-4b5a-4697-8899-aabbccddeeff:3",
        "silt:0f1e2d3c-4b5a-4697-8899-aabbccddeeff:3:",
        "silt:0f1e2d3c-4b5a-4697-8899-aabbccddeeff::4",
        "silt:0f1e2d3c-4b5a-4697-8899-aabbccddeeff:03:4",
        "silt:0f1e2d3c-4b5a-4697-8899-aabbccddeeff:3:04",
        "silt:0f1e2d3c-4b5a-4697-8899-aabbccddeeff:3:4:5",
        "silt:0f1e2d3c-4b5a-4697-8899-aabbccddeeff:3:18446744073709551616",
        "silt:0F1E2D3C-4B5A-4697-8899-AABBCCDDEEFF:3:4",
        "silt:0f1e2d3c+4b5a-4697-8899-aabbccddeeff:3:4",
        "salt:0f1e2d3c-4b5a-4697-8899-aabbccddeeff:3:4",
        "silt:",
        "silt",
        ""};
    struct silt_marker marker;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_msg(!silt_marker_parse(silt_view_str(names[i]), &marker), "%s", names[i]);
}
END_TEST

START_TEST(reply__addresses_as_people_write_them)
{
    static const struct {
        const char *written, *meant;
    } cases[] = {
        {"unix:/run/valkey.sock", "unix:/run/valkey.sock"},
        {"/run/valkey.sock", "unix:/run/valkey.sock"},
        {"tcp:localhost:6379", "tcp:localhost:6379"},
        {"localhost:6379", "tcp:localhost:6379"},
        {"tcp:[::1]:6379", "tcp:[::1]:6379"},
        {"[::1]:1", "tcp:[::1]:1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct silt_conn_options options = SILT_CONN_OPTIONS_DEFAULT;
        struct silt_conn *conn = NULL;
        options.address = cases[i].written;
        ck_assert_int_eq(silt_conn_new(&options, &conn, NULL), SILT_OK);
        ck_assert_str_eq(silt_conn_address(conn), cases[i].meant);
        ck_assert(!silt_conn_is_open(conn));
        ck_assert_str_eq(silt_conn_server(conn), "unknown");
        silt_conn_free(conn);
    }
}
END_TEST

START_TEST(reply__other_addresses_are_refused_with_a_reason)
{
    static const struct {
        const char *written, *says;
    } cases[] = {
        {"", "empty"},
        {"unix:", "the path is empty"},
        {"localhost", "the port is missing"},
        {"tcp:localhost", "the port is missing"},
        {"tcp:localhost:", "the port is missing"},
        {"tcp:localhost:0", "1 to 65535"},
        {"tcp:localhost:65536", "1 to 65535"},
        {"tcp:localhost:6379x", "1 to 65535"},
        {"tcp:localhost:-1", "1 to 65535"},
        {"tcp::6379", "the host is empty"},
        {"tcp:::1:6379", "more than one colon"},
        {"tcp:[::1]", "the port is missing"},
        {"tcp:two words:6379", "not the name of a host"},
        {"user@host:6379", "not the name of a host"},
        {"redis://localhost:6379", "a URL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct silt_conn_options options = SILT_CONN_OPTIONS_DEFAULT;
        struct silt_conn *conn = NULL;
        struct silt_err err = {0};
        options.address = cases[i].written;
        ck_assert_int_eq(silt_conn_new(&options, &conn, &err), SILT_ERR_ADDRESS);
        ck_assert_ptr_null(conn);
        ck_assert_msg(strstr(err.sentence, cases[i].says) != NULL, "%s: %s", cases[i].written,
                      err.sentence);
        ck_assert_ptr_nonnull(strstr(err.hint, "tcp:HOST:PORT"));
    }
}
END_TEST

START_TEST(reply__a_socket_path_that_no_socket_can_have_is_refused)
{
    struct silt_conn_options options = SILT_CONN_OPTIONS_DEFAULT;
    struct silt_conn *conn = NULL;
    char path[109];
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[107] = '\0';
    options.address = path;
    ck_assert_int_eq(silt_conn_new(&options, &conn, NULL), SILT_OK);
    silt_conn_free(conn);
    path[107] = 'x';
    path[108] = '\0';
    ck_assert_int_eq(silt_conn_new(&options, &conn, NULL), SILT_ERR_ADDRESS);
}
END_TEST

TEST_MAIN(reply__map_get_finds_each_name, reply__map_get_takes_values_and_lone_names_for_nothing,
          reply__each_error_text_has_its_class_and_sentence,
          reply__what_a_command_carried_is_not_repeated,
          reply__an_error_of_any_bytes_is_escaped_and_cut, reply__marker_there_and_back,
          reply__other_names_are_no_markers, reply__addresses_as_people_write_them,
          reply__other_addresses_are_refused_with_a_reason,
          reply__a_socket_path_that_no_socket_can_have_is_refused)
