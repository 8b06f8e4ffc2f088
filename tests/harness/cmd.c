/* Commands to a spawned server, and what tests ask of it again and again. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runner.h"
#include "server.h"

#define CONNECT_S 10
#define REPLY_S 60

static redisContext *link_of(struct test_server *server)
{
    if (server->reply) freeReplyObject(server->reply);
    server->reply = NULL;
    if (server->link) return server->link;
    server->link = redisConnectUnixWithTimeout(server->socket, (struct timeval){CONNECT_S, 0});
    if (!server->link || server->link->err)
        test_die("cannot connect to %s: %s", server->socket,
                 server->link ? server->link->errstr : "out of memory");
    redisSetTimeout(server->link, (struct timeval){REPLY_S, 0});
    return server->link;
}

static redisReply *keep(struct test_server *server, redisReply *reply, const char *what,
                        bool errors_too)
{
    server->reply = reply;
    if (!reply) test_die("%s: no reply: %s", what, server->link->errstr);
    if (!errors_too && reply->type == REDIS_REPLY_ERROR) test_die("%s: %s", what, reply->str);
    return reply;
}

static redisReply *send_format(struct test_server *server, const char *format, va_list args,
                               bool errors_too)
{
    redisContext *link = link_of(server);
    return keep(server, redisvCommand(link, format, args), format, errors_too);
}

redisReply *test_cmd(struct test_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = send_format(server, format, args, false);
    va_end(args);
    return reply;
}

redisReply *test_cmd_any(struct test_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = send_format(server, format, args, true);
    va_end(args);
    return reply;
}

redisReply *test_cmd_argv(struct test_server *server, size_t count, const char **args,
                          const size_t *lens)
{
    redisContext *link = link_of(server);
    return keep(server, redisCommandArgv(link, (int)count, args, lens), args[0], false);
}

long long test_cmd_int(struct test_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = send_format(server, format, args, false);
    va_end(args);
    if (reply->type != REDIS_REPLY_INTEGER)
        test_die("%s: not an integer reply (type %d)", format, reply->type);
    return reply->integer;
}

const char *test_cmd_text(struct test_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = send_format(server, format, args, false);
    va_end(args);
    if (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS)
        test_die("%s: not a text reply (type %d)", format, reply->type);
    return reply->str;
}

const char *test_server_info(struct test_server *server, const char *section, const char *name)
{
    char *text = test_cmd(server, "INFO %s", section)->str;
    size_t len = strlen(name);
    for (char *line; (line = strsep(&text, "\n"));) {
        if (strncmp(line, name, len) != 0 || line[len] != ':') continue;
        line[strcspn(line, "\r")] = '\0';
        return line + len + 1;
    }
    return "";
}

int test_server_version(struct test_server *server)
{
    const char *text = test_server_info(server, "server", "valkey_version");
    if (!*text) text = test_server_info(server, "server", "redis_version");
    int part[3] = {0};
    if (sscanf(text, "%d.%d.%d", &part[0], &part[1], &part[2]) != 3)
        test_die("not a version: %s", text);
    return part[0] * 10000 + part[1] * 100 + part[2];
}

static redisReply *stream_field(struct test_server *server, const char *key, const char *field)
{
    redisReply *reply = test_cmd(server, "XINFO STREAM %s", key);
    for (size_t i = 0; i + 1 < reply->elements; i += 2)
        if (strcmp(reply->element[i]->str, field) == 0) return reply->element[i + 1];
    test_die("XINFO STREAM %s has no field %s", key, field);
}

long long test_stream_int(struct test_server *server, const char *key, const char *field)
{
    redisReply *value = stream_field(server, key, field);
    if (value->type != REDIS_REPLY_INTEGER)
        test_die("XINFO STREAM %s: %s is not a number", key, field);
    return value->integer;
}

const char *test_stream_text(struct test_server *server, const char *key, const char *field)
{
    redisReply *value = stream_field(server, key, field);
    if (value->type != REDIS_REPLY_STRING)
        test_die("XINFO STREAM %s: %s is not a string", key, field);
    return value->str;
}

static long long offset_of(struct test_server *server, const char *name)
{
    return atoll(test_server_info(server, "replication", name));
}

void test_server_catch_up(struct test_server *replica, struct test_server *of)
{
    long long written = offset_of(of, "master_repl_offset");
    TEST_WAIT(offset_of(replica, "slave_repl_offset") >= written, 20000);
}

void test_server_follow(struct test_server *replica, struct test_server *of)
{
    if (!of->port || !replica->port)
        test_die("replication needs servers started with test_server_start_tcp");
    test_cmd(replica, "REPLICAOF 127.0.0.1 %d", of->port);
    TEST_WAIT(strcmp(test_server_info(replica, "replication", "master_link_status"), "up") == 0,
              20000);
    test_server_catch_up(replica, of);
}

void test_server_promote(struct test_server *replica)
{
    test_cmd(replica, "REPLICAOF NO ONE");
    TEST_WAIT(strcmp(test_server_info(replica, "replication", "role"), "master") == 0, 20000);
}
