/* A server of the test's own: started on a UNIX socket in the scratch directory, dead at the latest with the process that
 * started it. Which server: SILT_TEST_SERVER (a path), else valkey-server, else redis-server.
 * Threads: one server handle, one thread; the thread that starts a server must outlive it (the kernel ties the two). */
#ifndef TEST_SERVER_H
#define TEST_SERVER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TEST_SERVER_ARGS_MAX 48

struct test_server {
    pid_t pid; /* 0: not running */
    char dir[96];
    char socket[108];
    char address[120]; /* "unix:<socket>", as configurations say it */
    int port;          /* 0: no TCP */
    char log[128];
    const char *binary;
    char *args[TEST_SERVER_ARGS_MAX + 1];
    size_t arg_count;
    redisContext *link; /* for test_cmd; connects when needed */
    redisReply *reply;  /* of the last command */
};

/* Starts with no persistence and, besides, the arguments up to NULL: test_server_start(&s, "--maxmemory", "10mb", NULL).
 * Later arguments win over earlier ones. Gives up (test_die, with the end of the log) if it does not answer in time. */
void test_server_start(struct test_server *server, ...) __attribute__((sentinel));
/* The same, listening also on a free TCP port of 127.0.0.1 (server->port): replicas need one. */
void test_server_start_tcp(struct test_server *server, ...) __attribute__((sentinel));
void test_server_stop(
    struct test_server *server); /* SIGTERM: saves if told to; waits for its end */
void test_server_kill(struct test_server *server); /* SIGKILL: waits for its end */
void test_server_restart(
    struct test_server *server); /* same directory, socket, port and arguments; running or not */
void test_server_pause(struct test_server *server);   /* SIGSTOP; returns when it stands still */
void test_server_resume(struct test_server *server);  /* SIGCONT */
void test_server_release(struct test_server *server); /* kills if running, frees; {0} is fine */

const char *test_server_binary(void);
bool test_server_is_valkey(const struct test_server *server);
/* major * 10000 + minor * 100 + patch of the server's own numbering (Valkey's for Valkey). */
int test_server_version(struct test_server *server);

/* Sends one command (printf-like as hiredis has it: %s a string, %b bytes and size_t) and gives its reply. Errors end the
 * test. Valid until the next command on this server. */
redisReply *test_cmd(struct test_server *server, const char *format, ...);
redisReply *test_cmd_argv(struct test_server *server, size_t count, const char **args,
                          const size_t *lens);
/* The same, but an error reply is given like any other. */
redisReply *test_cmd_any(struct test_server *server, const char *format, ...);
long long test_cmd_int(struct test_server *server, const char *format, ...);
const char *test_cmd_text(struct test_server *server, const char *format,
                          ...); /* string or status */
/* One line of INFO <section>, "" where there is none. Valid until the next command. */
const char *test_server_info(struct test_server *server, const char *section, const char *name);
/* One field of XINFO STREAM, as number or text. */
long long test_stream_int(struct test_server *server, const char *key, const char *field);
const char *test_stream_text(struct test_server *server, const char *key, const char *field);

/* Makes `replica` (started with _tcp, as `of` was) follow `of`; returns when it is in step. */
void test_server_follow(struct test_server *replica, struct test_server *of);
void test_server_catch_up(struct test_server *replica,
                          struct test_server *of);     /* all of `of`'s writes have arrived */
void test_server_promote(struct test_server *replica); /* REPLICAOF NO ONE */

/* For whoever forks a helper process: call first in the child, with the parent's pid from before the fork. */
void test_die_with_parent(pid_t parent);

#endif
