/* A name server that does not answer: the connection's time limit holds, whoever waits can be called off, and the answer that comes too late is let go. */
#include "conn_help.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <unistd.h>

static struct test_server server;
static struct silt_err err;
static struct silt_reply reply;

/* Hosts under .slow are found when the test says so, at the loopback; all others as ever. */
static int gate[2];
static atomic_uint asked, freed;

int getaddrinfo(const char *host, const char *port, const struct addrinfo *wanted,
                struct addrinfo **ret)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    char byte;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    size_t len = strlen(host);
    if (len < 5 || strcmp(host + len - 5, ".slow") != 0 || (wanted->ai_flags & AI_NUMERICHOST))
        return real(host, port, wanted, ret);
    atomic_fetch_add(&asked, 1);
    if (read(gate[0], &byte, 1) != 1) return EAI_FAIL;
    return real("127.0.0.1", port, wanted, ret);
}

void freeaddrinfo(struct addrinfo *found)
{
    void (*real)(struct addrinfo *);
    *(void **)&real = dlsym(RTLD_NEXT, "freeaddrinfo");
    atomic_fetch_add(&freed, 1);
    real(found);
}

static void open_gate(void)
{
    if (write(gate[1], "x", 1) != 1) test_die("the gate does not open");
}

static void start(struct silt_conn_options *ret)
{
    static char address[64];
    if (pipe(gate) != 0) test_die("no pipe");
    test_server_start_tcp(&server, NULL);
    snprintf(address, sizeof address, "tcp:server.slow:%d", server.port);
    *ret = options_for(address);
}

START_TEST(conn_resolve__the_time_limit_holds_while_no_name_server_answers)
{
    struct silt_conn_options options;
    start(&options);
    options.connect_timeout_ms = 200;
    struct silt_conn *conn = new_conn(&options);
    long long began = test_now_ms();
    ck_gives(SILT_ERR_SERVER_AWAY, silt_conn_open(conn, &err));
    ck_assert_ptr_nonnull(strstr(err.sentence, "no answer in time"));
    ck_assert_ptr_nonnull(strstr(err.sentence, "server.slow"));
    ck_assert_int_ge(test_now_ms() - began, 200);
    ck_assert_uint_eq(atomic_load(&asked), 1);
    ck_assert_uint_eq(atomic_load(&freed), 0);
    silt_conn_free(conn); /* what looks is not the connection's any more */
    open_gate();
    TEST_WAIT(atomic_load(&freed) == 1, 10000);
    test_server_release(&server);
}
END_TEST

static bool asked_twice(void *ctx)
{
    unsigned *count = ctx;
    return ++*count > 2;
}

START_TEST(conn_resolve__whoever_waits_can_be_called_off)
{
    struct silt_conn_options options;
    unsigned count = 0;
    start(&options);
    options.connect_timeout_ms = 600000;
    options.cancelled = asked_twice;
    options.cancelled_ctx = &count;
    struct silt_conn *conn = new_conn(&options);
    ck_gives(SILT_ERR_CANCELLED, silt_conn_open(conn, &err));
    silt_conn_free(conn);
    open_gate();
    TEST_WAIT(atomic_load(&freed) == 1, 10000);
    test_server_release(&server);
}
END_TEST

static bool open_it_then_wait(void *ctx)
{
    unsigned *count = ctx;
    if (++*count == 2) open_gate();
    return false;
}

START_TEST(conn_resolve__an_answer_that_takes_its_time_is_used)
{
    struct silt_conn_options options;
    unsigned count = 0;
    start(&options);
    options.cancelled = open_it_then_wait;
    options.cancelled_ctx = &count;
    struct silt_conn *conn = new_conn(&options);
    ck_gives(SILT_OK, CALL("PING"));
    ck_assert_uint_eq(atomic_load(&asked), 1);
    ck_assert_uint_eq(atomic_load(&freed), 1);
    silt_conn_free(conn);
    silt_reply_release(&reply);
    test_server_release(&server);
}
END_TEST

START_TEST(conn_resolve__digits_are_looked_up_nowhere)
{
    struct silt_conn_options options;
    char address[64];
    start(&options);
    snprintf(address, sizeof address, "tcp:127.0.0.1:%d", server.port);
    struct silt_conn *conn = conn_to(address);
    ck_gives(SILT_OK, CALL("PING"));
    ck_assert_uint_eq(atomic_load(&asked), 0);
    silt_conn_free(conn);
    silt_reply_release(&reply);
    test_server_release(&server);
}
END_TEST

TEST_MAIN(conn_resolve__the_time_limit_holds_while_no_name_server_answers,
          conn_resolve__whoever_waits_can_be_called_off,
          conn_resolve__an_answer_that_takes_its_time_is_used,
          conn_resolve__digits_are_looked_up_nowhere)
