/* The connection against real servers and against one that follows a script: each answer has its class, nothing waits for ever, and nothing that
 * was cut or made up is taken for a reply. */
#include "conn_help.h"

#include <sys/socket.h>
#include <unistd.h>

static struct test_server server;
static struct test_fake fake;
static struct silt_err err;
static struct silt_reply reply;

#define PLAY(script) test_fake_start(&fake, script, sizeof(script) / sizeof(script)[0])

static void end(struct silt_conn *conn)
{
    silt_conn_free(conn);
    silt_reply_release(&reply);
    test_server_release(&server);
}

/* ---- a real server ---- */

START_TEST(conn__opens_by_socket_and_by_tcp_and_names_the_server)
{
    char tcp[64];
    test_server_start_tcp(&server, NULL);
    snprintf(tcp, sizeof tcp, "tcp:127.0.0.1:%d", server.port);
    const char *const addresses[] = {server.address, server.socket, tcp, tcp + 4};
    for (size_t i = 0; i < 4; i++) {
        struct silt_conn *conn = conn_to(addresses[i]);
        ck_gives(SILT_OK, silt_conn_open(conn, &err));
        const char *name = test_server_is_valkey(&server) ? "valkey " : "redis ";
        ck_assert_int_eq(strncmp(silt_conn_server(conn), name, strlen(name)), 0);
        ck_assert_uint_eq(silt_conn_generation(conn), 1);
        ck_gives(SILT_OK, CALL("PING"));
        ck_assert(text_is(&reply, 0, "PONG"));
        silt_conn_free(conn);
    }
    end(NULL);
}
END_TEST

START_TEST(conn__reads_every_type_of_reply)
{
    test_server_start(&server, NULL);
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK,
             CALL("EVAL", "return {1,{-2,{'a',{}}},'',false,{ok='fine'},{err='NO way'}}", "0"));
    const struct silt_node *nodes = reply.nodes;
    ck_assert_uint_eq(reply.node_count, 11);
    ck_assert_uint_eq(nodes[0].size, 6);
    ck_assert_uint_eq(nodes[0].value, 11);
    ck_assert_uint_eq(nodes[1].value, 1);
    ck_assert_uint_eq(silt_reply_skip(&reply, 2), 7);
    ck_assert_int_eq((int64_t)nodes[3].value, -2);
    ck_assert_uint_eq(nodes[4].value, 3);
    ck_assert(text_is(&reply, 5, "a"));
    ck_assert_int_eq(nodes[6].type, SILT_NODE_ARRAY);
    ck_assert_uint_eq(nodes[6].size, 0);
    ck_assert(text_is(&reply, 7, ""));
    ck_assert_int_eq(nodes[8].type, SILT_NODE_NIL);
    ck_assert_int_eq(nodes[9].type, SILT_NODE_STATUS);
    ck_assert_int_eq(nodes[10].type, SILT_NODE_ERROR);
    end(conn);
}
END_TEST

START_TEST(conn__pipelines_in_order_and_counts_what_is_owed)
{
    test_server_start(&server, NULL);
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    for (int i = 0; i < 50; i++)
        ck_gives(SILT_OK, silt_conn_append_words(conn, &err, "INCR", "n", (char *)NULL));
    ck_assert_uint_eq(silt_conn_owed(conn), 50);
    ck_gives(SILT_ERR_USAGE, CALL("PING"));
    for (unsigned i = 1; i <= 50; i++) {
        ck_gives(SILT_OK, silt_conn_receive(conn, &reply, &err));
        ck_assert_uint_eq(reply.nodes[0].value, i);
    }
    ck_assert_uint_eq(silt_conn_owed(conn), 0);
    ck_gives(SILT_ERR_USAGE, silt_conn_receive(conn, &reply, &err));
    end(conn);
}
END_TEST

START_TEST(conn__an_error_reply_is_a_status_and_leaves_the_connection)
{
    test_server_start(&server, NULL);
    struct silt_conn *conn = conn_to(server.address);
    test_cmd(&server, "SET k v");
    ck_gives(SILT_ERR_WRONG_TYPE, CALL("XLEN", "k"));
    ck_assert_int_eq(reply.nodes[0].type, SILT_NODE_ERROR);
    ck_gives(SILT_ERR_UNKNOWN_STREAM, CALL("XINFO", "STREAM", "none"));
    ck_gives(SILT_ERR_SERVER_REFUSED, CALL("XRANGE", "k"));
    ck_gives(SILT_ERR_NO_SCRIPT, CALL("EVALSHA", "0123456789012345678901234567890123456789", "0"));
    ck_gives(SILT_OK, CALL("PING"));
    ck_assert_uint_eq(silt_conn_generation(conn), 1);
    end(conn);
}
END_TEST

START_TEST(conn__nobody_there_is_away)
{
    int holder = socket(AF_UNIX, SOCK_STREAM, 0); /* a socket file that nobody listens at */
    ck_assert_int_ge(holder, 0);
    const char *const addresses[] = {test_path("none.sock"), "tcp:127.0.0.1:1", test_scratch()};
    for (size_t i = 0; i < 3; i++) {
        struct silt_conn *conn = conn_to(addresses[i]);
        ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_open(conn, &err));
        ck_assert_ptr_nonnull(strstr(err.sentence, silt_conn_address(conn)));
        ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_append_words(conn, &err, "PING", (char *)NULL));
        ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_receive(conn, &reply, &err));
        ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_flush(conn, &err));
        silt_conn_free(conn);
    }
    close(holder);
}
END_TEST

START_TEST(conn__a_host_that_does_not_resolve_is_away)
{
    struct silt_conn *conn = conn_to("tcp:no-such-host.invalid:6379");
    ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "no-such-host.invalid"));
    end(conn);
}
END_TEST

START_TEST(conn__a_killed_idle_connection_is_made_again)
{
    test_server_start(&server, NULL);
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK, CALL("PING"));
    test_cmd(&server, "CLIENT KILL TYPE normal SKIPME yes");
    ck_gives(SILT_OK, CALL("PING"));
    ck_assert_uint_eq(silt_conn_generation(conn), 2);
    /* with something under way it must not pass unnoticed */
    ck_gives(SILT_OK, silt_conn_append_words(conn, &err, "BLPOP", "none", "0", (char *)NULL));
    ck_gives(SILT_OK, silt_conn_flush(conn, &err));
    TEST_WAIT(atoi(test_server_info(&server, "clients", "blocked_clients")) == 1, 5000);
    test_cmd(&server, "CLIENT KILL TYPE normal SKIPME yes");
    ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_receive(conn, &reply, &err));
    ck_assert(!silt_conn_is_open(conn));
    ck_assert_uint_eq(silt_conn_owed(conn), 0);
    end(conn);
}
END_TEST

START_TEST(conn__a_server_that_restarts_is_found_again)
{
    test_server_start(&server, NULL);
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_OK, CALL("PING"));
    test_server_kill(&server);
    ck_gives(SILT_ERR_SERVER_AWAY, CALL("PING"));
    test_server_restart(&server);
    ck_gives(SILT_OK, CALL("PING"));
    end(conn);
}
END_TEST

START_TEST(conn__the_time_limit_holds_before_and_after_a_reconnect)
{
    test_server_start(&server, NULL);
    struct silt_conn_options options = options_for(server.address);
    options.command_timeout_ms = 200;
    struct silt_conn *conn = new_conn(&options);
    for (unsigned i = 1; i <= 2; i++) {
        ck_gives(SILT_OK, CALL("PING"));
        test_server_pause(&server);
        long long start = test_now_ms();
        ck_gives(SILT_ERR_SERVER_TIMEOUT, CALL("PING"));
        ck_assert_int_ge(test_now_ms() - start, 200);
        ck_assert_int_lt(test_now_ms() - start, 2000);
        ck_assert(!silt_conn_is_open(conn)); /* its late answer must not meet the next command */
        ck_assert_ptr_nonnull(strstr(err.sentence, "200 ms"));
        ck_gives(SILT_ERR_SERVER_TIMEOUT,
                 silt_conn_open(conn, &err)); /* accepted by the kernel, not by the server */
        test_server_resume(&server);
    }
    ck_gives(SILT_OK, CALL("PING"));
    end(conn);
}
END_TEST

START_TEST(conn__a_server_that_does_not_read_does_not_keep_us)
{
    static char value[8 << 20];
    test_server_start(&server, NULL);
    struct silt_conn_options options = options_for(server.address);
    options.command_timeout_ms = 200;
    struct silt_conn *conn = new_conn(&options);
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    test_server_pause(&server);
    memset(value, 'x', sizeof value);
    struct silt_view argv[3] = {silt_view_str("SET"), silt_view_str("k"),
                                silt_view(value, sizeof value)};
    ck_gives(SILT_ERR_SERVER_TIMEOUT,
             silt_conn_append(conn, argv, 3, &err)); /* large: sent at once */
    ck_assert(!silt_conn_is_open(conn));
    test_server_resume(&server);
    ck_gives(SILT_OK, silt_conn_call(conn, argv, 3, &reply, &err));
    ck_gives(SILT_OK, CALL("STRLEN", "k"));
    ck_assert_uint_eq(reply.nodes[0].value, sizeof value);
    end(conn);
}
END_TEST

static bool at_the_third(void *ctx)
{
    unsigned *asked = ctx;
    return ++*asked >= 3;
}

START_TEST(conn__whoever_waits_can_be_called_off)
{
    unsigned asked = 0;
    test_server_start(&server, NULL);
    struct silt_conn_options options = options_for(server.address);
    options.command_timeout_ms = 600000;
    options.cancelled = at_the_third;
    options.cancelled_ctx = &asked;
    struct silt_conn *conn = new_conn(&options);
    test_server_pause(&server);
    long long start = test_now_ms();
    ck_gives(SILT_ERR_CANCELLED, silt_conn_open(conn, &err));
    ck_assert_int_lt(test_now_ms() - start, 5000);
    ck_assert(!silt_conn_is_open(conn));
    test_server_resume(&server);
    end(conn);
}
END_TEST

START_TEST(conn__selects_the_database)
{
    test_server_start(&server, NULL);
    struct silt_conn_options options = options_for(server.address);
    options.database = 5;
    struct silt_conn *conn = new_conn(&options);
    ck_gives(SILT_OK, CALL("SET", "k", "five"));
    test_cmd(&server, "CLIENT KILL TYPE normal SKIPME yes");
    ck_gives(SILT_OK, CALL("GET", "k"));
    ck_assert(text_is(&reply, 0, "five"));
    silt_conn_free(conn);
    options.database = 99;
    conn = new_conn(&options);
    ck_gives(SILT_ERR_SERVER_REFUSED, silt_conn_open(conn, &err));
    ck_assert(!silt_conn_is_open(conn));
    end(conn);
}
END_TEST

/* ---- passwords and rights ---- */

START_TEST(conn__the_password_is_read_at_every_connect)
{
    const char *file = test_path("password");
    test_server_start(&server, NULL);
    test_cmd(&server, "ACL SETUSER silt on >first ~* +@all");
    test_file_write(file, "first\n", 6);
    struct silt_conn_options options = options_for(server.address);
    options.user = "silt";
    options.password_file = file;
    struct silt_conn *conn = new_conn(&options);
    ck_gives(SILT_OK, CALL("ACL", "WHOAMI"));
    ck_assert(text_is(&reply, 0, "silt"));
    test_cmd(&server, "ACL SETUSER silt resetpass >second");
    test_cmd(&server, "CLIENT KILL USER silt");
    ck_gives(SILT_ERR_SERVER_DENIED, CALL("PING"));
    ck_assert_ptr_null(strstr(err.sentence, "first"));
    test_file_write(file, "second\r\n", 8);
    ck_gives(SILT_OK, CALL("ACL", "WHOAMI"));
    test_file_write(file, "sec", 3);
    ck_gives(SILT_OK, CALL("PING")); /* still connected */
    end(conn);
}
END_TEST

START_TEST(conn__a_password_file_that_cannot_serve_is_named)
{
    const char *file = test_path("password");
    static char much[5000];
    test_server_start(&server, NULL);
    struct silt_conn_options options = options_for(server.address);
    options.password_file = file;
    struct silt_conn *conn = new_conn(&options);
    ck_gives(SILT_ERR_SERVER_DENIED, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "No such file"));
    test_file_write(file, "\n", 1);
    ck_gives(SILT_ERR_SERVER_DENIED, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "is empty"));
    memset(much, 'x', sizeof much);
    test_file_write(file, much, sizeof much);
    ck_gives(SILT_ERR_SERVER_DENIED, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, file));
    ck_assert_uint_eq(silt_conn_generation(conn), 0); /* nothing was even connected */
    end(conn);
}
END_TEST

START_TEST(conn__no_password_and_a_wrong_one_are_told_apart)
{
    const char *file = test_path("password");
    test_server_start(&server, "--requirepass", "open sesame", NULL);
    struct silt_conn_options options = options_for(server.address);
    struct silt_conn *conn = new_conn(&options);
    ck_gives(SILT_ERR_SERVER_DENIED, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "NOAUTH"));
    ck_assert_ptr_nonnull(strstr(err.hint, "password-file"));
    silt_conn_free(conn);
    test_file_write(file, "open says me", 12);
    options.password_file = file;
    conn = new_conn(&options);
    ck_gives(SILT_ERR_SERVER_DENIED, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "WRONGPASS"));
    test_file_write(file, "open sesame", 11);
    ck_gives(SILT_OK, CALL("PING"));
    end(conn);
}
END_TEST

START_TEST(conn__a_password_is_not_repeated_in_a_refusal)
{
    static const struct test_step script[] = {
        TEST_EXPECT("AUTH sesame"),
        TEST_ANSWER("-ERR unknown command 'AUTH', with args beginning with: 'sesame' \r\n"),
        TEST_EXPECT("AUTH sesame"),
        TEST_ANSWER("-WHAT sesame is no password of mine\r\n"),
    };
    const char *file = test_path("password");
    test_file_write(file, "sesame\n", 7);
    PLAY(script);
    struct silt_conn_options options = options_for(fake.address);
    options.password_file = file;
    struct silt_conn *conn = new_conn(&options);
    for (int i = 0; i < 2; i++) {
        ck_gives(SILT_ERR_SERVER_REFUSED, silt_conn_open(conn, &err));
        ck_assert_ptr_null(strstr(err.sentence, "sesame"));
    }
    end(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

START_TEST(conn__a_user_without_info_finds_an_unknown_server)
{
    test_server_start(&server, NULL);
    test_cmd(&server, "ACL SETUSER silt on nopass ~* +ping");
    struct silt_conn_options options = options_for(server.address);
    options.user = "silt";
    struct silt_conn *conn = new_conn(&options);
    ck_gives(SILT_OK, CALL("PING"));
    ck_assert_str_eq(silt_conn_server(conn), "unknown");
    ck_gives(SILT_ERR_SERVER_DENIED, CALL("XLEN", "s"));
    end(conn);
}
END_TEST

START_TEST(conn__too_many_clients_is_busy)
{
    test_server_start(&server, "--maxclients", "1", NULL);
    test_cmd(&server, "PING"); /* the harness holds the only place */
    struct silt_conn *conn = conn_to(server.address);
    ck_gives(SILT_ERR_SERVER_BUSY, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "max number of clients"));
    end(conn);
}
END_TEST

/* ---- which server ---- */

START_TEST(conn__an_old_server_is_refused_by_name)
{
    static const struct test_step script[] = {
        TEST_EXPECT("INFO server"),
        TEST_ANSWER("$22\r\nredis_version:6.2.14\r\n\r\n"),
        TEST_EXPECT("INFO server"),
        TEST_ANSWER("$45\r\nredis_version:7.2.4\r\nvalkey_version:7.1.255\r\n\r\n"),
        TEST_EXPECT("INFO server"),
        TEST_ANSWER("$43\r\nredis_version:7.2.4\r\nvalkey_version:9.0.0\r\n\r\n"),
        TEST_CLOSE,
        TEST_EXPECT("INFO server"),
        TEST_ANSWER("$22\r\nredis_version:tomorrow\r\n"),
        TEST_CLOSE,
        TEST_EXPECT("INFO server"),
        TEST_ANSWER("$9\r\nverbiage\n\r\n"),
        TEST_CLOSE,
        TEST_EXPECT("INFO server"),
        TEST_ANSWER(":7\r\n"),
    };
    PLAY(script);
    struct silt_conn *conn = conn_to(fake.address);
    ck_gives(SILT_ERR_SERVER_OLD, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "redis 6.2.14"));
    ck_gives(SILT_ERR_SERVER_OLD, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "valkey 7.1.255"));
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    ck_assert_str_eq(silt_conn_server(conn), "valkey 9.0.0");
    silt_conn_close(conn);
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    ck_assert_str_eq(silt_conn_server(conn), "redis tomorrow");
    silt_conn_close(conn);
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    ck_assert_str_eq(silt_conn_server(conn), "unknown");
    silt_conn_close(conn);
    ck_gives(SILT_ERR_SERVER_NONSENSE, silt_conn_open(conn, &err));
    end(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

/* ---- what is on the wire ---- */

/* One connection per answer: PING, the answer, the end. */
static struct test_step *one_each(const struct silt_view *answers, size_t count)
{
    static const struct test_step greeting = GREETING;
    struct test_step *steps = calloc(1 + count * 3, sizeof *steps);
    steps[0] = greeting;
    for (size_t i = 0; i < count; i++) {
        struct test_step *step = &steps[1 + i * 3];
        step[0] = (struct test_step)TEST_EXPECT("PING");
        step[1] =
            (struct test_step){TEST_STEP_ANSWER, NULL, (const char *)answers[i].at, answers[i].len};
        step[2] = (struct test_step)TEST_CLOSE;
    }
    return steps;
}

START_TEST(conn__a_reply_cut_at_any_byte_is_no_reply)
{
    static const char whole[] =
        "*4\r\n$3\r\nabc\r\n*2\r\n:-17\r\n$-1\r\n+fine\r\n$12\r\n0123456789\r\n\r\n";
    struct silt_view answers[sizeof whole];
    for (size_t i = 0; i < sizeof whole; i++)
        answers[i] = silt_view(whole, i);
    struct test_step *steps = one_each(answers, sizeof whole);
    test_fake_start(&fake, steps, 1 + sizeof whole * 3);
    struct silt_conn *conn = conn_to(fake.address);
    for (size_t i = 0; i + 1 < sizeof whole; i++) {
        ck_gives(SILT_ERR_SERVER_AWAY, CALL("PING"));
        ck_assert(!silt_conn_is_open(conn));
        ck_assert_int_eq(strstr(err.sentence, "in the middle of a reply") != NULL, i > 0);
    }
    ck_gives(SILT_OK, CALL("PING"));
    ck_assert_uint_eq(reply.node_count, 7);
    end(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
    free(steps);
}
END_TEST

#define V(text)                                   \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

START_TEST(conn__nonsense_is_nonsense)
{
    static const struct silt_view answers[] = {
        V("*2147483647\r\n"),
        V("*999999999999\r\n:1\r\n"),
        V("*400000000\r\n:1\r\n"),
        V("*-2\r\n"),
        V("$999999999999\r\nab"),
        V("$1073741825\r\nab"),
        V("$-2\r\n"),
        V("$abc\r\n"),
        V("*abc\r\n"),
        V(":12x\r\n"),
        V(">2\r\n+a\r\n+b\r\n"),
        V("%1\r\n+a\r\n+b\r\n"),
        V("~1\r\n+a\r\n"),
        V(",1.5\r\n"),
        V("#t\r\n"),
        V("_\r\n"),
        V("(12345678901234567890\r\n"),
        V("=5\r\ntxt:a\r\n"),
        V("|1\r\n+a\r\n+b\r\n+c\r\n"),
        V("\r\n"),
        V("\0\0\0\0"),
        V("HTTP/1.1 400 Bad Request\r\n"),
        V("*1\r\n%1\r\n+a\r\n+b\r\n"),
        V("*1\r\n,1\r\n"),
        V("*1\r\n_\r\n"),
        V("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"),
    };
    enum { COUNT = sizeof answers / sizeof answers[0] };
    struct test_step *steps = one_each(answers, COUNT);
    test_fake_start(&fake, steps, 1 + COUNT * 3);
    struct silt_conn *conn = conn_to(fake.address);
    struct test_heap heap;
    test_heap_start(&heap, 0);
    for (size_t i = 0; i < COUNT; i++) {
        enum silt_status status = CALL("PING");
        ck_assert_msg(status == SILT_ERR_SERVER_NONSENSE, "%zu %.*s: %s (%s)", i,
                      (int)answers[i].len, (const char *)answers[i].at, silt_status_name(status),
                      err.sentence);
        ck_assert(!silt_conn_is_open(conn));
    }
    test_heap_stop();
    ck_assert_uint_lt(heap.peak_bytes, 1 << 20);
    end(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
    free(steps);
}
END_TEST

START_TEST(conn__nesting_without_end_is_nonsense)
{
    enum { TIMES = 100000 };
    char *deep = malloc(TIMES * 4);
    for (size_t i = 0; i < TIMES; i++)
        memcpy(deep + i * 4, "*1\r\n", 4);
    struct silt_view answer = silt_view(deep, TIMES * 4);
    struct test_step *steps = one_each(&answer, 1);
    test_fake_start(&fake, steps, 4);
    struct silt_conn *conn = conn_to(fake.address);
    ck_gives(SILT_ERR_SERVER_NONSENSE, CALL("PING"));
    end(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
    free(steps);
    free(deep);
}
END_TEST

START_TEST(conn__a_line_or_a_reply_beyond_the_limit_is_nonsense)
{
    enum { BYTES = 3 << 20 };
    char *line = malloc(BYTES), *many = malloc(BYTES);
    memset(line, 'x', BYTES);
    line[0] = '+';
    size_t len =
        (size_t)snprintf(many, 32, "*300000\r\n"); /* three bytes each would fit, nodes do not */
    for (; len + 4 <= BYTES; len += 4)
        memcpy(many + len, ":1\r\n", 4);
    struct silt_view answers[2] = {silt_view(line, BYTES), silt_view(many, len)};
    struct test_step *steps = one_each(answers, 2);
    test_fake_start(&fake, steps, 7);
    struct silt_conn_options options = options_for(fake.address);
    options.reply_limit_bytes = 1 << 20;
    struct silt_conn *conn = new_conn(&options);
    struct test_heap heap;
    test_heap_start(&heap, 0);
    for (int i = 0; i < 2; i++)
        ck_gives(SILT_ERR_SERVER_NONSENSE, CALL("PING"));
    test_heap_stop();
    ck_assert_uint_lt(heap.peak_bytes, 3 << 20);
    end(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
    free(steps);
    free(line);
    free(many);
}
END_TEST

START_TEST(conn__bytes_that_nobody_asked_for_are_not_the_next_answer)
{
    static const struct test_step script[] = {GREETING,
                                              TEST_EXPECT("PING"),
                                              TEST_ANSWER("+PONG\r\n+SURPRISE\r\n"),
                                              TEST_EXPECT("PING"),
                                              TEST_ANSWER("+PONG\r\n"),
                                              TEST_EXPECT("PING"),
                                              TEST_ANSWER("+PONG\r\n"),
                                              TEST_HOLD,
                                              TEST_ANSWER("+SURPRISE\r\n"),
                                              TEST_HOLD};
    PLAY(script);
    struct silt_conn *conn = conn_to(fake.address);
    ck_gives(SILT_OK, CALL("PING"));
    ck_gives(SILT_ERR_SERVER_NONSENSE, CALL("PING")); /* already read */
    ck_gives(SILT_OK, CALL("PING"));
    ck_gives(SILT_OK, CALL("PING"));
    test_fake_go(&fake);
    TEST_WAIT(*fake.step == 10, 5000);
    ck_gives(SILT_ERR_SERVER_NONSENSE, silt_conn_open(conn, &err)); /* still in the socket */
    end(conn);
    test_fake_go(&fake);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

START_TEST(conn__a_reply_in_single_bytes_is_read)
{
    static const struct test_step script[] = {GREETING, TEST_EXPECT("PING"),
                                              TEST_SLOWLY("*2\r\n$5\r\nab\r\nc\r\n*1\r\n:123\r\n")};
    PLAY(script);
    struct silt_conn *conn = conn_to(fake.address);
    ck_gives(SILT_OK, CALL("PING"));
    ck_assert(text_is(&reply, 1, "ab\r\nc"));
    ck_assert_uint_eq(reply.nodes[3].value, 123);
    end(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

static bool go_on(void *ctx)
{
    long long *last = ctx;
    if (test_now_ms() - *last >= 90) { /* the next piece; it is asked every 100 ms */
        test_fake_go(&fake);
        *last = test_now_ms();
    }
    return false;
}

/* A reply in pieces, one each time that the reader asks whether to stop. */
static struct silt_conn *in_pieces(struct test_step *steps, size_t pieces, const char *head,
                                   const char *piece, size_t piece_len)
{
    static const struct test_step greeting = GREETING;
    static long long last;
    size_t at = 0;
    steps[at++] = greeting;
    steps[at++] = (struct test_step)TEST_EXPECT("PING");
    steps[at++] = (struct test_step){TEST_STEP_ANSWER, NULL, head, strlen(head)};
    for (size_t i = 0; i < pieces; i++) {
        steps[at++] = (struct test_step)TEST_HOLD;
        steps[at++] = (struct test_step){TEST_STEP_ANSWER, NULL, piece, piece_len};
    }
    test_fake_start(&fake, steps, at);
    struct silt_conn_options options = options_for(fake.address);
    options.command_timeout_ms = 400;
    options.cancelled = go_on;
    options.cancelled_ctx = &last;
    return new_conn(&options);
}

START_TEST(conn__a_trickle_does_not_keep_us)
{
    static struct test_step steps[3 + 2 * 200];
    struct silt_conn *conn = in_pieces(steps, 200, "$200\r\n", "x", 1);
    long long start = test_now_ms();
    ck_gives(SILT_ERR_SERVER_TIMEOUT, CALL("PING"));
    ck_assert_int_lt(test_now_ms() - start, 4000);
    ck_assert(!silt_conn_is_open(conn));
    end(conn);
    for (int i = 0; i < 200; i++)
        test_fake_go(&fake); /* to the end of its script */
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

START_TEST(conn__a_large_reply_may_take_longer_than_the_limit)
{
    enum { PIECE = 70000, PIECES = 12 };
    static struct test_step steps[3 + 2 * PIECES];
    static char piece[PIECE + 32];
    memset(piece, 'x', sizeof piece);
    int head = snprintf(piece, 16, "$%d\r\n", PIECE);
    piece[head] = 'x';
    memcpy(piece + head + PIECE, "\r\n", 2);
    struct silt_conn *conn = in_pieces(steps, PIECES, "*12\r\n", piece, (size_t)head + PIECE + 2);
    long long start = test_now_ms();
    ck_gives(SILT_OK, CALL("PING"));
    ck_assert_int_gt(test_now_ms() - start, 400);
    ck_assert_uint_eq(reply.bytes.len, PIECE * PIECES);
    end(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

START_TEST(conn__both_sides_may_have_much_to_say_at_once)
{
    enum { BYTES = 4 << 20 };
    char *answer = malloc(BYTES + 32), *value = malloc(BYTES);
    int head = snprintf(answer, 32, "$%d\r\n", BYTES);
    memset(answer + head, 'a', BYTES);
    memcpy(answer + head + BYTES, "\r\n", 2);
    memset(value, 'v', BYTES);
    struct test_step script[] = {
        GREETING,
        TEST_EXPECT("GET k"),
        {TEST_STEP_ANSWER, NULL, answer,
         (size_t)head + BYTES + 2}, /* it reads on only when this is taken */
        TEST_EXPECT("SET k *"),
        TEST_ANSWER("+OK\r\n"),
    };
    PLAY(script);
    struct silt_conn *conn = conn_to(fake.address);
    struct silt_view set[3] = {silt_view_str("SET"), silt_view_str("k"), silt_view(value, BYTES)};
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    ck_gives(SILT_OK, silt_conn_append_words(conn, &err, "GET", "k", (char *)NULL));
    ck_gives(SILT_OK, silt_conn_flush(conn, &err));
    ck_gives(SILT_OK, silt_conn_append(conn, set, 3, &err));
    ck_gives(SILT_OK, silt_conn_receive(conn, &reply, &err));
    ck_assert_uint_eq(reply.nodes[0].size, BYTES);
    ck_gives(SILT_OK, silt_conn_receive(conn, &reply, &err));
    ck_assert(text_is(&reply, 0, "OK"));
    end(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
    free(answer);
    free(value);
}
END_TEST

START_TEST(conn__mangled_replies_never_pass_for_success_of_another_shape)
{
    static const char whole[] = "*3\r\n$3\r\nabc\r\n*2\r\n:17\r\n$-1\r\n$12\r\n0123456789ab\r\n";
    enum { COUNT = 400 };
    static char mangled[COUNT][sizeof whole];
    struct silt_view answers[COUNT];
    struct test_rng rng = test_rng(1);
    for (size_t i = 0; i < COUNT; i++) {
        memcpy(mangled[i], whole, sizeof whole);
        for (uint64_t n = 1 + test_rng_below(&rng, 3); n > 0; n--)
            mangled[i][test_rng_below(&rng, sizeof whole - 1)] =
                "\r\n*$:+-0123456789\0a>%"[test_rng_below(&rng, 21)];
        answers[i] = silt_view(mangled[i], sizeof whole - 1);
    }
    struct test_step *steps = one_each(answers, COUNT);
    test_fake_start(&fake, steps, 1 + COUNT * 3);
    struct silt_conn *conn = conn_to(fake.address);
    for (size_t i = 0; i < COUNT; i++) {
        enum silt_status status = CALL("PING");
        /* An open connection holds a whole reply, whatever it says; the rest is away or nonsense. */
        bool refused = reply.node_count == 1 && reply.nodes[0].type == SILT_NODE_ERROR;
        ck_assert(status == SILT_OK || refused || status == SILT_ERR_SERVER_AWAY ||
                  status == SILT_ERR_SERVER_NONSENSE);
        ck_assert_int_eq(silt_conn_is_open(conn), status == SILT_OK || refused);
        if (status == SILT_OK) ck_assert_uint_eq(silt_reply_skip(&reply, 0), reply.node_count);
        silt_conn_close(conn); /* what may follow is not looked at here */
    }
    end(conn);
    ck_assert_str_eq(test_fake_finish(&fake), "");
    free(steps);
}
END_TEST

START_TEST(conn__the_nth_refusal_of_memory_is_said_and_leaks_nothing)
{
    struct test_heap heap;
    test_server_start(&server, NULL);
    const char *file = test_path("password");
    test_file_write(file, "x", 1);
    test_cmd(&server, "ACL SETUSER default nopass");
    test_cmd(&server, "ACL SETUSER silt on >x ~* +@all");
    struct silt_conn_options options = options_for(server.address);
    options.user = "silt";
    options.password_file = file;
    for (size_t n = 1;; n++) {
        struct silt_conn *conn = NULL;
        test_heap_start(&heap, n);
        enum silt_status status = silt_conn_new(&options, &conn, &err);
        if (status == SILT_OK) status = CALL("CONFIG", "GET", "*");
        silt_conn_free(conn);
        silt_reply_release(&reply);
        test_heap_stop();
        ck_assert_uint_eq(heap.live_count, 0);
        ck_assert_int_eq(status, heap.failed_count > 0 ? SILT_ERR_MEMORY : SILT_OK);
        if (heap.failed_count == 0) break;
    }
    end(NULL);
}
END_TEST

TEST_MAIN(conn__opens_by_socket_and_by_tcp_and_names_the_server, conn__reads_every_type_of_reply,
          conn__pipelines_in_order_and_counts_what_is_owed,
          conn__an_error_reply_is_a_status_and_leaves_the_connection, conn__nobody_there_is_away,
          conn__a_host_that_does_not_resolve_is_away, conn__a_killed_idle_connection_is_made_again,
          conn__a_server_that_restarts_is_found_again,
          conn__the_time_limit_holds_before_and_after_a_reconnect,
          conn__a_server_that_does_not_read_does_not_keep_us, conn__whoever_waits_can_be_called_off,
          conn__selects_the_database, conn__the_password_is_read_at_every_connect,
          conn__a_password_file_that_cannot_serve_is_named,
          conn__no_password_and_a_wrong_one_are_told_apart,
          conn__a_password_is_not_repeated_in_a_refusal,
          conn__a_user_without_info_finds_an_unknown_server, conn__too_many_clients_is_busy,
          conn__an_old_server_is_refused_by_name, conn__a_reply_cut_at_any_byte_is_no_reply,
          conn__nonsense_is_nonsense, conn__nesting_without_end_is_nonsense,
          conn__a_line_or_a_reply_beyond_the_limit_is_nonsense,
          conn__bytes_that_nobody_asked_for_are_not_the_next_answer,
          conn__a_reply_in_single_bytes_is_read, conn__a_trickle_does_not_keep_us,
          conn__a_large_reply_may_take_longer_than_the_limit,
          conn__both_sides_may_have_much_to_say_at_once,
          conn__mangled_replies_never_pass_for_success_of_another_shape,
          conn__the_nth_refusal_of_memory_is_said_and_leaks_nothing)
