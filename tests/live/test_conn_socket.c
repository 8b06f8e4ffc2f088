/* Connecting where it is hard: no place in the queue, no right, no descriptor; and a server that hangs up while we are still talking. */
#include "conn_help.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct test_fake fake;
static struct silt_err err;
static struct silt_reply reply;

static int unix_socket(const char *path, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(ret->sun_path, sizeof ret->sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) test_die("no socket");
    return fd;
}

/* A listener whose queue is full: whoever connects has to wait. */
static void listen_full(const char *path)
{
    struct sockaddr_un address;
    int listener = unix_socket(path, &address);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 0) != 0)
        test_die("cannot listen");
    int fd;
    do
        fd = unix_socket(path, &address);
    while (connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
}

static bool asked_twice(void *ctx)
{
    unsigned *asked = ctx;
    return ++*asked > 2;
}

START_TEST(conn_socket__a_full_queue_is_waited_for_but_not_for_ever)
{
    const char *path = test_path("full.sock");
    unsigned asked = 0;
    listen_full(path);
    struct silt_conn_options options = options_for(path);
    options.connect_timeout_ms = 200;
    struct silt_conn *conn = new_conn(&options);
    long long start = test_now_ms();
    ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "no answer in time"));
    ck_assert_int_ge(test_now_ms() - start, 200);
    silt_conn_free(conn);
    options.connect_timeout_ms = 600000;
    options.cancelled = asked_twice;
    options.cancelled_ctx = &asked;
    conn = new_conn(&options);
    ck_gives(SILT_ERR_CANCELLED, silt_conn_open(conn, &err));
    silt_conn_free(conn);
}
END_TEST

START_TEST(conn_socket__a_socket_that_we_may_not_write_to_is_away_with_a_hint)
{
    struct sockaddr_un address;
    const char *path = test_path("private.sock");
    int listener = unix_socket(path, &address);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 4), 0);
    ck_assert_int_eq(chmod(path, 0), 0);
    struct silt_conn *conn = conn_to(path);
    if (geteuid() == 0) ck_assert_int_eq(seteuid(65534), 0); /* root may everything */
    enum silt_status status = silt_conn_open(conn, &err);
    if (getuid() == 0) ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(status, SILT_ERR_SERVER_AWAY);
    ck_assert_ptr_nonnull(strstr(err.sentence, "Permission denied"));
    ck_assert_ptr_nonnull(strstr(err.hint, "right to write"));
    silt_conn_free(conn);
}
END_TEST

START_TEST(conn_socket__no_descriptor_left_is_a_limit)
{
    const char *const addresses[] = {test_path("some.sock"), "tcp:127.0.0.1:1"};
    for (size_t i = 0; i < 2; i++) {
        struct silt_conn *conn = conn_to(addresses[i]);
        struct rlimit before, none;
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
        int next = dup(0);
        none = before;
        none.rlim_cur = (rlim_t)next;
        close(next);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
        enum silt_status status = silt_conn_open(conn, &err);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        /* resolving a host may itself want a descriptor */
        ck_assert_msg(status == SILT_ERR_LIMIT || (i == 1 && status == SILT_ERR_SERVER_AWAY), "%s",
                      err.sentence);
        silt_conn_free(conn);
    }
}
END_TEST

START_TEST(conn_socket__the_last_words_of_a_server_that_hangs_up_are_heard)
{
    static const struct test_step script[] = {
        GREETING,   TEST_EXPECT("PING"), TEST_ANSWER("-ERR max number of clients reached\r\n"),
        TEST_CLOSE, TEST_EXPECT("PING"), TEST_ANSWER("+PONG\r\n")};
    enum { BYTES = 8 << 20 };
    char *value = calloc(1, BYTES);
    test_fake_start(&fake, script, sizeof script / sizeof script[0]);
    struct silt_conn *conn = conn_to(fake.address);
    struct silt_view set[3] = {silt_view_str("SET"), silt_view_str("k"), silt_view(value, BYTES)};
    ck_gives(SILT_OK, silt_conn_open(conn, &err));
    ck_gives(SILT_OK, silt_conn_append_words(conn, &err, "PING", (char *)NULL));
    /* sent at once, and met by a closed door: now or at the first reply that does not come */
    enum silt_status status = silt_conn_append(conn, set, 3, &err);
    if (status == SILT_OK) {
        status = silt_conn_receive(conn, &reply, &err);
        if (status == SILT_ERR_SERVER_BUSY) status = silt_conn_receive(conn, &reply, &err);
    }
    ck_assert_int_eq(status, SILT_ERR_SERVER_AWAY);
    ck_assert(!silt_conn_is_open(conn));
    ck_gives(SILT_OK, CALL("PING"));
    silt_conn_free(conn);
    silt_reply_release(&reply);
    ck_assert_str_eq(test_fake_finish(&fake), "");
    free(value);
}
END_TEST

START_TEST(conn_socket__limits_of_nothing_and_of_too_much_become_the_usual_ones)
{
    static const struct test_step script[] = {GREETING, TEST_EXPECT("PING"),
                                              TEST_ANSWER("+PONG\r\n"), TEST_EXPECT("PING"),
                                              TEST_ANSWER("+PONG\r\n")};
    test_fake_start(&fake, script, sizeof script / sizeof script[0]);
    struct silt_conn_options options = {.address = fake.address};
    for (int i = 0; i < 2; i++) {
        struct silt_conn *conn = new_conn(&options);
        ck_gives(SILT_OK, CALL("PING"));
        silt_conn_free(conn);
        options.reply_limit_bytes = SIZE_MAX;
        options.command_timeout_ms = options.connect_timeout_ms = UINT64_MAX;
    }
    silt_reply_release(&reply);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

START_TEST(conn_socket__a_huge_reply_is_not_kept_in_mind_for_ever)
{
    struct test_server server = {0};
    struct test_heap heap;
    test_server_start(&server, NULL);
    test_cmd(&server, "SETRANGE k 20000000 x");
    struct silt_conn *conn = conn_to(server.address);
    test_heap_start(&heap, 0);
    for (int i = 0; i < 3; i++) {
        ck_gives(SILT_OK, CALL("GET", "k"));
        ck_assert_uint_eq(reply.nodes[0].size, 20000001);
        ck_gives(SILT_OK, CALL("PING"));
    }
    ck_assert_uint_ge(heap.live_bytes, 20000000); /* warm, while such replies go on */
    for (int i = 0; i < 200; i++)
        ck_gives(SILT_OK, CALL("PING"));
    ck_assert_uint_lt(heap.live_bytes, 2 << 20);
    test_heap_stop();
    silt_conn_free(conn);
    silt_reply_release(&reply);
    test_server_release(&server);
}
END_TEST

TEST_MAIN(conn_socket__a_huge_reply_is_not_kept_in_mind_for_ever,
          conn_socket__a_full_queue_is_waited_for_but_not_for_ever,
          conn_socket__a_socket_that_we_may_not_write_to_is_away_with_a_hint,
          conn_socket__no_descriptor_left_is_a_limit,
          conn_socket__the_last_words_of_a_server_that_hangs_up_are_heard,
          conn_socket__limits_of_nothing_and_of_too_much_become_the_usual_ones)
