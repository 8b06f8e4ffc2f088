/* Looks and pages on a real server: facts by name, exact bytes, states that are no failures, fewer rights. */
#include "conn_help.h"

static struct test_server server;
static struct silt_err err;
static struct silt_look look;
static struct silt_page page;

static void end(struct silt_conn *conn)
{
    silt_conn_free(conn);
    silt_look_release(&look);
    silt_page_release(&page);
    test_server_release(&server);
}

static struct silt_wire_id id(uint64_t ms, uint64_t seq)
{
    return (struct silt_wire_id){ms, seq};
}

#define ck_id_eq(a, b) ck_assert_int_eq(silt_wire_id_compare(a, b), 0)
#define LOOK(key, what) silt_look_call(conn, silt_view_str(key), what, &look, &err)

static struct silt_page_request request_for(const char *key, uint32_t count, bool reverse)
{
    return (struct silt_page_request){.key = silt_view_str(key),
                                      .from = SILT_WIRE_ID_MIN,
                                      .to = SILT_WIRE_ID_MAX,
                                      .count = count,
                                      .reverse = reverse};
}

static enum silt_status take_page(struct silt_conn *conn, const struct silt_page_request *request)
{
    enum silt_status status = silt_conn_open(conn, &err);
    if (status == SILT_OK) status = silt_page_append(conn, request, &err);
    if (status == SILT_OK) status = silt_page_receive(conn, request, &page, &err);
    return status;
}

/* ---- looks ---- */

START_TEST(look__tells_what_a_stream_holds)
{
    test_server_start(&server, NULL);
    test_cmd(&server, "XADD s 5-1 a 1 b 2");
    test_cmd(&server, "XADD s 5-2 c 3");
    test_cmd(&server, "XADD s 7-0 d 4");
    test_cmd(&server, "XADD s 8-0 e 5");
    test_cmd(&server, "XDEL s 5-2 8-0");
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK, LOOK("s", SILT_LOOK_ARCHIVER));
    ck_assert_int_eq(look.state, SILT_LOOK_STREAM);
    ck_assert_uint_eq(look.facts.length, 2);
    ck_assert_uint_eq(look.facts.entries_added, 4);
    ck_id_eq(look.facts.last, id(8, 0));
    ck_id_eq(look.facts.max_deleted, id(8, 0));
    ck_assert(look.facts.has_first);
    ck_id_eq(look.facts.first, id(5, 1));
    ck_id_eq(look.first.id, id(5, 1));
    ck_assert_uint_eq(look.first.field_count, 2);
    ck_assert(silt_view_equal(look.first.fields[1].name, silt_view_str("b")));
    ck_assert(silt_view_equal(look.first.fields[1].value, silt_view_str("2")));
    ck_assert(look.facts.first_digest == silt_entry_digest(&look.first, 0));
    ck_id_eq(look.last.id, id(7, 0));
    ck_assert_str_eq(look.facts.replid, test_server_info(&server, "replication", "master_replid"));
    ck_assert(look.replication_known && look.is_master && !look.groups_denied);
    end(conn);
}
END_TEST

START_TEST(look__tells_the_groups_and_knows_a_marker)
{
    test_server_start(&server, NULL);
    for (int i = 1; i <= 5; i++)
        test_cmd(&server, "XADD s %d-0 a %d", i, i);
    test_cmd(&server, "XGROUP CREATE s readers 0 ENTRIESREAD 0");
    test_cmd(&server, "XREADGROUP GROUP readers me COUNT 3 STREAMS s >");
    test_cmd(&server, "XACK s readers 1-0");
    test_cmd(&server, "XGROUP CREATE s silt:0f1e2d3c-4b5a-4697-8899-aabbccddeeff:1:2 4-0");
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK, LOOK("s", SILT_LOOK_READER));
    ck_assert_uint_eq(look.group_count, 2);
    const struct silt_look_group *group = &look.groups[0];
    ck_assert(silt_view_equal(group->name, silt_view_str("readers")));
    ck_id_eq(group->last_delivered, id(3, 0));
    ck_assert_uint_eq(group->pending, 2);
    ck_assert_uint_eq(group->consumers, 1);
    ck_assert_uint_eq(group->entries_read, 3);
    ck_assert(!group->is_silt);
    ck_assert(look.groups[1].is_silt);
    ck_assert(look.groups[1].entries_read == UINT64_MAX); /* the server cannot know */
    ck_id_eq(look.groups[1].last_delivered, id(4, 0));
    ck_assert(!look.replication_known); /* a reader does not ask */
    end(conn);
}
END_TEST

START_TEST(look__a_missing_key_and_another_type_are_states)
{
    test_server_start(&server, NULL);
    test_cmd(&server, "SET text v");
    test_cmd(&server, "XADD s 1-0 a 1");
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK, LOOK("none", SILT_LOOK_ARCHIVER));
    ck_assert_int_eq(look.state, SILT_LOOK_GONE);
    ck_assert_uint_eq(look.facts.length, 0);
    ck_assert(look.replication_known);
    ck_gives(SILT_OK, LOOK("text", SILT_LOOK_ARCHIVER));
    ck_assert_int_eq(look.state, SILT_LOOK_WRONG_TYPE);
    ck_gives(SILT_OK, LOOK("s", SILT_LOOK_ARCHIVER)); /* nothing of the last look stays */
    ck_assert_int_eq(look.state, SILT_LOOK_STREAM);
    ck_assert_uint_eq(look.facts.length, 1);
    ck_gives(SILT_OK, LOOK("none", SILT_LOOK_READER));
    ck_assert(!look.facts.has_first && look.first.field_count == 0 && look.group_count == 0);
    ck_assert_uint_eq(silt_conn_generation(conn), 1);
    end(conn);
}
END_TEST

START_TEST(look__names_the_connection_it_was_made_on)
{
    test_server_start(&server, NULL);
    test_cmd(&server, "XADD s 1-0 a 1");
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK, LOOK("s", SILT_LOOK_ARCHIVER));
    ck_assert_uint_eq(look.generation, silt_conn_generation(conn));
    silt_conn_close(conn);
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    ck_assert_uint_ne(look.generation, silt_conn_generation(conn)); /* it does not follow */
    ck_gives(SILT_OK, LOOK("s", SILT_LOOK_READER));
    ck_assert_uint_eq(look.generation, silt_conn_generation(conn));
    end(conn);
}
END_TEST

START_TEST(look__an_empty_stream_is_a_stream)
{
    test_server_start(&server, NULL);
    test_cmd(&server, "XADD s 3-4 a 1");
    test_cmd(&server, "XDEL s 3-4");
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK, LOOK("s", SILT_LOOK_ARCHIVER));
    ck_assert_int_eq(look.state, SILT_LOOK_STREAM);
    ck_assert_uint_eq(look.facts.length, 0);
    ck_assert_uint_eq(look.facts.entries_added, 1);
    ck_id_eq(look.facts.last, id(3, 4));
    ck_assert(!look.facts.has_first);
    ck_assert(silt_wire_id_is_zero(look.first.id));
    end(conn);
}
END_TEST

START_TEST(look__a_replica_says_so_and_has_its_masters_replid)
{
    struct test_server replica = {0};
    test_server_start_tcp(&server, NULL);
    test_server_start_tcp(&replica, NULL);
    test_server_follow(&replica, &server);
    test_cmd(&server, "XADD s 1-0 a 1");
    test_server_catch_up(&replica, &server);
    struct silt_conn *conn = conn_to(replica.address);
    ck_gives(SILT_OK, LOOK("s", SILT_LOOK_ARCHIVER));
    ck_assert(look.replication_known && !look.is_master);
    ck_assert_str_eq(look.facts.replid, test_server_info(&server, "replication", "master_replid"));
    ck_assert_uint_eq(look.facts.entries_added, 1);
    test_server_promote(&replica);
    ck_gives(SILT_OK, LOOK("s", SILT_LOOK_ARCHIVER));
    ck_assert(look.is_master);
    ck_assert_str_ne(look.facts.replid, test_server_info(&server, "replication", "master_replid"));
    test_server_release(&replica);
    end(conn);
}
END_TEST

START_TEST(look__keys_and_names_of_any_bytes)
{
    static const char key[] = "k\0\r\n\xff", group[] = "g\r\n\0";
    test_server_start(&server, NULL);
    test_cmd(&server, "XADD %b 1-0 %b %b", key, sizeof key, "\0n", (size_t)2, "\r\n\0", (size_t)3);
    test_cmd(&server, "XGROUP CREATE %b %b 0", key, sizeof key, group, sizeof group);
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK,
             silt_look_call(conn, silt_view(key, sizeof key), SILT_LOOK_READER, &look, &err));
    ck_assert_uint_eq(look.facts.length, 1);
    ck_assert(silt_view_equal(look.groups[0].name, silt_view(group, sizeof group)));
    ck_assert(silt_view_equal(look.first.fields[0].name, silt_view("\0n", 2)));
    ck_assert(silt_view_equal(look.first.fields[0].value, silt_view("\r\n\0", 3)));
    end(conn);
}
END_TEST

/* ---- fewer rights ---- */

static struct silt_conn *conn_of_user(const char *rights)
{
    test_server_start(&server, NULL);
    for (int i = 1; i <= 3; i++)
        test_cmd(&server, "XADD s %d-0 a %d", i, i);
    test_cmd(&server, "XGROUP CREATE s g 0");
    char line[300];
    snprintf(line, sizeof line, "ACL SETUSER silt on nopass ~s %s", rights);
    test_cmd(&server, line);
    struct silt_conn_options options = options_for(server.address);
    options.user = "silt";
    return new_conn(&options);
}

START_TEST(look__without_the_right_to_groups_says_so)
{
    struct silt_conn *conn = conn_of_user("+multi +exec +xinfo|stream +info +xrange");
    for (int i = 0; i < 2; i++) {
        ck_gives(SILT_OK, LOOK("s", SILT_LOOK_ARCHIVER));
        ck_assert(look.groups_denied);
        ck_assert_uint_eq(look.group_count, 0);
        ck_assert_uint_eq(look.facts.length, 3);
        ck_assert(look.replication_known);
    }
    struct silt_page_request request = request_for("s", 2, false);
    ck_gives(SILT_OK, take_page(conn, &request));
    ck_assert(page.look.groups_denied);
    ck_assert_uint_eq(page.entry_count, 2);
    ck_assert_uint_eq(silt_conn_generation(conn), 1);
    /* the server denied it once; after that it was not asked again on this connection */
    const char *stats = test_server_info(&server, "errorstats", "errorstat_NOPERM");
    ck_assert_str_eq(stats, "count=1");
    end(conn);
}
END_TEST

START_TEST(look__without_the_right_to_info_does_not_know_replication)
{
    struct silt_conn *conn = conn_of_user("+multi +exec +xinfo|stream");
    ck_gives(SILT_OK, LOOK("s", SILT_LOOK_ARCHIVER));
    ck_assert(look.groups_denied && !look.replication_known && !look.is_master);
    ck_assert_uint_eq(look.facts.length, 3);
    end(conn);
}
END_TEST

START_TEST(look__pages_already_under_way_when_a_right_is_missing_are_asked_again)
{
    struct silt_conn *conn = conn_of_user("+multi +exec +xinfo|stream +xrange");
    struct silt_page_request request = request_for("s", 2, false);
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    ck_gives(SILT_OK, silt_page_append(conn, &request, &err));
    ck_gives(SILT_OK, silt_page_append(conn, &request, &err));
    ck_gives(SILT_ERR_SERVER_BUSY, silt_page_receive(conn, &request, &page, &err));
    ck_assert_uint_eq(page.entry_count, 0);
    ck_gives(SILT_OK, silt_page_receive(conn, &request, &page,
                                        &err)); /* the last one can be sent again in place */
    ck_assert_uint_eq(page.entry_count, 2);
    ck_gives(SILT_OK, take_page(conn, &request));
    end(conn);
}
END_TEST

START_TEST(look__a_denied_stream_is_an_error_not_an_empty_one)
{
    static const char *const rights[] = {
        "+multi +exec +info +xrange +xinfo|groups",         /* no XINFO STREAM */
        "+xinfo|stream +xinfo|groups +info +xrange +exec",  /* no MULTI */
        "+multi +xinfo|stream +xinfo|groups +info +xrange", /* no EXEC */
        "+multi +exec +xinfo|stream +xinfo|groups +info"};  /* no XRANGE */
    struct silt_page_request request = request_for("s", 2, false);
    for (size_t i = 0; i < 4; i++) {
        struct silt_conn *conn = conn_of_user(rights[i]);
        ck_gives(SILT_ERR_SERVER_DENIED, take_page(conn, &request));
        ck_assert_ptr_nonnull(strstr(err.sentence, "NOPERM"));
        ck_assert_uint_eq(page.entry_count, 0);
        ck_assert_uint_eq(silt_conn_owed(conn), 0);
        end(conn);
    }
}
END_TEST

START_TEST(look__a_key_outside_the_users_pattern_is_denied)
{
    struct silt_conn *conn = conn_of_user("+@all");
    test_cmd(&server, "XADD other 1-0 a 1");
    ck_gives(SILT_ERR_SERVER_DENIED, LOOK("other", SILT_LOOK_ARCHIVER));
    ck_gives(SILT_OK, LOOK("s", SILT_LOOK_ARCHIVER));
    ck_assert(!look.groups_denied);
    end(conn);
}
END_TEST

/* ---- pending, time ---- */

START_TEST(look__finds_the_oldest_pending_entry)
{
    struct silt_reply scratch = {0};
    struct silt_wire_id oldest = {9, 9};
    test_server_start(&server, NULL);
    for (int i = 1; i <= 5; i++)
        test_cmd(&server, "XADD s %d-7 a %d", i, i);
    test_cmd(&server, "XGROUP CREATE s g 0");
    struct silt_conn *conn = conn_to(server.address);
    struct silt_view key = silt_view_str("s"), group = silt_view_str("g");
    ck_gives(SILT_END, silt_look_oldest_pending(conn, key, group, &scratch, &oldest, &err));
    ck_id_eq(oldest, id(9, 9));
    test_cmd(&server, "XREADGROUP GROUP g me COUNT 3 STREAMS s >");
    test_cmd(&server, "XACK s g 1-7");
    ck_gives(SILT_OK, silt_look_oldest_pending(conn, key, group, &scratch, &oldest, &err));
    ck_id_eq(oldest, id(2, 7));
    ck_gives(SILT_ERR_STALE,
             silt_look_oldest_pending(conn, key, silt_view_str("no"), &scratch, &oldest, &err));
    silt_reply_release(&scratch);
    end(conn);
}
END_TEST

START_TEST(look__tells_the_servers_time)
{
    struct silt_reply scratch = {0};
    uint64_t before = 0, after = 0;
    test_server_start(&server, NULL);
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK, silt_look_time(conn, &scratch, &before, &err));
    redisReply *now = test_cmd(&server, "TIME");
    uint64_t seconds = strtoull(now->element[0]->str, NULL, 10);
    ck_gives(SILT_OK, silt_look_time(conn, &scratch, &after, &err));
    ck_assert_uint_ge(seconds, before / 1000);
    ck_assert_uint_le(seconds, after / 1000);
    ck_assert_uint_ge(after, before);
    silt_reply_release(&scratch);
    end(conn);
}
END_TEST

/* ---- pages ---- */

START_TEST(page__gives_every_entry_in_either_direction)
{
    test_server_start(&server, NULL);
    for (int i = 1; i <= 25; i++)
        test_cmd(&server, "XADD s %d-%d n %d", i / 3, i, i);
    struct silt_conn *conn = conn_to(server.address);
    for (int reverse = 0; reverse < 2; reverse++) {
        struct silt_page_request request = request_for("s", 10, reverse);
        unsigned seen = 0;
        do {
            ck_gives(SILT_OK, take_page(conn, &request));
            ck_assert_int_eq(page.full, page.entry_count == 10);
            for (size_t i = 0; i < page.entry_count; i++) {
                char text[8];
                snprintf(text, sizeof text, "%u", reverse ? 25 - seen : seen + 1);
                ck_assert(silt_view_equal(page.entries[i].fields[0].value, silt_view_str(text)));
                seen++;
            }
            struct silt_wire_id end_id = page.entries[page.entry_count - 1].id;
            if (reverse)
                silt_wire_id_prev(end_id, &request.to);
            else
                silt_wire_id_next(end_id, &request.from);
        } while (page.full);
        ck_assert_uint_eq(seen, 25);
        ck_assert_uint_eq(page.look.facts.length, 25);
    }
    end(conn);
}
END_TEST

START_TEST(page__keeps_within_its_range)
{
    test_server_start(&server, NULL);
    for (int i = 1; i <= 9; i++)
        test_cmd(&server, "XADD s %d-0 n %d", i, i);
    struct silt_conn *conn = conn_to(server.address);
    struct silt_page_request request = request_for("s", 100, false);
    request.from = id(3, 0);
    request.to = id(6, 0);
    for (int reverse = 0; reverse < 2; reverse++) {
        request.reverse = reverse;
        ck_gives(SILT_OK, take_page(conn, &request));
        ck_assert_uint_eq(page.entry_count, 4);
        ck_assert(!page.full);
        ck_id_eq(page.entries[0].id, id(reverse ? 6 : 3, 0));
    }
    request.from = id(3, 1);
    request.to = id(3, 9);
    ck_gives(SILT_OK, take_page(conn, &request));
    ck_assert_uint_eq(page.entry_count, 0);
    request.from = id(10, 0);
    request.to = SILT_WIRE_ID_MAX;
    ck_gives(SILT_OK, take_page(conn, &request));
    ck_assert_uint_eq(page.entry_count, 0);
    end(conn);
}
END_TEST

START_TEST(page__a_missing_key_another_type_and_an_empty_stream_have_none)
{
    test_server_start(&server, NULL);
    test_cmd(&server, "SET text v");
    test_cmd(&server, "XGROUP CREATE empty g 0 MKSTREAM");
    struct silt_conn *conn = conn_to(server.address);
    static const struct {
        const char *key;
        enum silt_look_state state;
    } cases[] = {
        {"none", SILT_LOOK_GONE}, {"text", SILT_LOOK_WRONG_TYPE}, {"empty", SILT_LOOK_STREAM}};
    for (size_t i = 0; i < 3; i++) {
        struct silt_page_request request = request_for(cases[i].key, 10, i == 1);
        ck_gives(SILT_OK, take_page(conn, &request));
        ck_assert_int_eq(page.look.state, cases[i].state);
        ck_assert_uint_eq(page.entry_count, 0);
        ck_assert(!page.full);
    }
    end(conn);
}
END_TEST

START_TEST(page__what_cannot_be_asked_is_refused_before_anything_is_sent)
{
    test_server_start(&server, NULL);
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    struct silt_page_request request = request_for("s", 0, false);
    ck_gives(SILT_ERR_USAGE, silt_page_append(conn, &request, &err));
    request.count = 1;
    request.from = id(5, 1);
    request.to = id(5, 0);
    ck_gives(SILT_ERR_WINDOW, silt_page_append(conn, &request, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "5-1"));
    ck_assert_uint_eq(silt_conn_owed(conn), 0);
    end(conn);
}
END_TEST

START_TEST(page__entries_of_odd_shapes_come_byte_by_byte)
{
    test_server_start(&server, NULL);
    test_cmd(&server, "XADD s 1-0 %b %b a 1 a 2", "", (size_t)0, "", (size_t)0);
    test_cmd(&server, "XADD s 1-18446744073709551615 %b %b", "n\0\r\n", (size_t)4, "\xff\0",
             (size_t)2);
    test_cmd(&server, "XADD s 18446744073709551615-18446744073709551615 x y");
    struct silt_conn *conn = conn_to(server.address);
    struct silt_page_request request = request_for("s", 10, false);
    ck_gives(SILT_OK, take_page(conn, &request));
    ck_assert_uint_eq(page.entry_count, 3);
    const struct silt_entry *entries = page.entries;
    ck_assert_uint_eq(entries[0].field_count, 3);
    ck_assert_uint_eq(entries[0].fields[0].name.len, 0);
    ck_assert(silt_view_equal(entries[0].fields[2].value, silt_view_str("2")));
    ck_id_eq(entries[1].id, id(1, UINT64_MAX));
    ck_assert(silt_view_equal(entries[1].fields[0].name, silt_view("n\0\r\n", 4)));
    ck_assert(silt_view_equal(entries[1].fields[0].value, silt_view("\xff\0", 2)));
    ck_id_eq(entries[2].id, SILT_WIRE_ID_MAX);
    ck_assert_uint_eq(page.values_bytes, 4 + 6 + 2);
    end(conn);
}
END_TEST

START_TEST(page__asked_ahead_comes_in_order)
{
    test_server_start(&server, NULL);
    for (int i = 1; i <= 30; i++)
        test_cmd(&server, "XADD s %d-0 n %d", i, i);
    struct silt_conn *conn = conn_to(server.address);
    struct silt_page_request requests[3];
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    for (unsigned i = 0; i < 3; i++) {
        requests[i] = request_for("s", 10, false);
        requests[i].from = id(i * 10 + 1, 0);
        ck_gives(SILT_OK, silt_page_append(conn, &requests[i], &err));
    }
    ck_gives(SILT_OK, silt_look_append(conn, silt_view_str("s"), SILT_LOOK_ARCHIVER, &err));
    for (unsigned i = 0; i < 3; i++) {
        ck_gives(SILT_OK, silt_page_receive(conn, &requests[i], &page, &err));
        ck_id_eq(page.entries[0].id, id(i * 10 + 1, 0));
        ck_assert_uint_eq(page.entry_count, 10);
    }
    ck_gives(SILT_OK, silt_look_receive(conn, SILT_LOOK_ARCHIVER, &look, &err));
    ck_assert_uint_eq(look.facts.length, 30);
    ck_gives(SILT_ERR_USAGE, silt_look_receive(conn, SILT_LOOK_ARCHIVER, &look, &err));
    end(conn);
}
END_TEST

START_TEST(page__once_warm_it_takes_no_memory)
{
    struct test_heap heap;
    test_server_start(&server, NULL);
    test_cmd(
        &server, "EVAL %s 0",
        "for i = 1, 3000 do redis.call('XADD', 's', i .. '-0', 'kind', 'k' .. i % 7, 'v', i, 'text', ('x'):rep(i % 50)) end");
    struct silt_conn *conn = conn_to(server.address);
    struct silt_page_request request = request_for("s", 1000, false);
    request.what = SILT_LOOK_ARCHIVER;
    request.from = id(2001, 0); /* the largest page first */
    ck_gives(SILT_OK, take_page(conn, &request));
    size_t entries = 0;
    test_heap_start(&heap, 0);
    for (unsigned i = 0; i < 3; i++) {
        request.from = id(i * 1000 + 1, 0);
        ck_gives(SILT_OK, silt_page_append(conn, &request, &err));
        ck_gives(SILT_OK, silt_page_receive(conn, &request, &page, &err));
        entries += page.entry_count;
    }
    test_heap_stop();
    ck_assert_uint_eq(entries, 3000);
    ck_assert_uint_eq(heap.request_count, 0);
    end(conn);
}
END_TEST

START_TEST(page__the_nth_refusal_of_memory_is_said_and_leaks_nothing)
{
    struct test_heap heap;
    test_server_start(&server, NULL);
    for (int i = 1; i <= 40; i++)
        test_cmd(&server, "XADD s %d-0 n %d", i, i);
    test_cmd(&server, "XGROUP CREATE s g 0");
    struct silt_page_request request = request_for("s", 1000, false);
    request.what = SILT_LOOK_ARCHIVER;
    for (size_t n = 1;; n++) {
        test_heap_start(&heap, n);
        struct silt_conn *conn = NULL;
        struct silt_conn_options options = options_for(server.address);
        enum silt_status status = silt_conn_new(&options, &conn, &err);
        if (status == SILT_OK) status = take_page(conn, &request);
        ck_assert_uint_eq(page.entry_count, status == SILT_OK ? 40 : 0);
        silt_conn_free(conn);
        silt_page_release(&page);
        test_heap_stop();
        ck_assert_uint_eq(heap.live_count, 0);
        ck_assert_int_eq(status, heap.failed_count > 0 ? SILT_ERR_MEMORY : SILT_OK);
        if (heap.failed_count == 0) break;
    }
    end(NULL);
}
END_TEST

TEST_MAIN(look__tells_what_a_stream_holds, look__tells_the_groups_and_knows_a_marker,
          look__a_missing_key_and_another_type_are_states,
          look__names_the_connection_it_was_made_on, look__an_empty_stream_is_a_stream,
          look__a_replica_says_so_and_has_its_masters_replid, look__keys_and_names_of_any_bytes,
          look__without_the_right_to_groups_says_so,
          look__without_the_right_to_info_does_not_know_replication,
          look__pages_already_under_way_when_a_right_is_missing_are_asked_again,
          look__a_denied_stream_is_an_error_not_an_empty_one,
          look__a_key_outside_the_users_pattern_is_denied, look__finds_the_oldest_pending_entry,
          look__tells_the_servers_time, page__gives_every_entry_in_either_direction,
          page__keeps_within_its_range,
          page__a_missing_key_another_type_and_an_empty_stream_have_none,
          page__what_cannot_be_asked_is_refused_before_anything_is_sent,
          page__entries_of_odd_shapes_come_byte_by_byte, page__asked_ahead_comes_in_order,
          page__once_warm_it_takes_no_memory,
          page__the_nth_refusal_of_memory_is_said_and_leaks_nothing)
