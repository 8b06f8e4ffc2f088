/* Looks and pages on a real server. */
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>

#include "look.h"

static struct test_server server;

static struct silt_conn *connect_to(const struct test_server *to)
{
    struct silt_conn_options options = SILT_CONN_OPTIONS_DEFAULT;
    struct silt_conn *conn = NULL;
    struct silt_err err = {0};
    options.address = to->address;
    if (silt_conn_new(&options, &conn, &err) != SILT_OK) test_die("%s", err.sentence);
    return conn;
}

#define OK(call)                                                                               \
    do {                                                                                       \
        struct silt_err err_ = {0};                                                            \
        struct silt_err *err = &err_;                                                          \
        enum silt_status status_ = (call);                                                     \
        ck_assert_msg(status_ == SILT_OK, "%s: %s", silt_status_name(status_), err_.sentence); \
    } while (0)

START_TEST(look__tells_what_a_stream_holds)
{
    test_server_start(&server, NULL);
    test_cmd(&server, "XADD s 5-1 a 1 b 2");
    test_cmd(&server, "XADD s 5-2 c 3");
    test_cmd(&server, "XADD s 7-0 d 4");
    test_cmd(&server, "XDEL s 5-2");
    test_cmd(&server, "XGROUP CREATE s g 5-1");
    struct silt_conn *conn = connect_to(&server);
    struct silt_look look = {0};
    OK(silt_look_call(conn, silt_view_str("s"), SILT_LOOK_ARCHIVER, &look, err));
    ck_assert_int_eq(look.state, SILT_LOOK_STREAM);
    ck_assert_uint_eq(look.facts.length, 2);
    ck_assert_uint_eq(look.facts.entries_added, 3);
    ck_assert_uint_eq(look.first.id.ms, 5);
    ck_assert_uint_eq(look.first.field_count, 2);
    ck_assert_uint_eq(look.last.id.ms, 7);
    ck_assert_uint_eq(look.facts.max_deleted.seq, 2);
    ck_assert_uint_eq(look.group_count, 1);
    ck_assert_str_eq(look.facts.replid, test_server_info(&server, "replication", "master_replid"));
    ck_assert(look.replication_known && look.is_master && !look.groups_denied);
    puts(silt_conn_server(conn));
    silt_look_release(&look);
    silt_conn_free(conn);
    test_server_release(&server);
}
END_TEST

TEST_MAIN(look__tells_what_a_stream_holds)
