/* The spawned servers of the harness, on whichever server this run is for. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/harness.h"

static struct test_server server, other;

START_TEST(server__answers_and_keeps_nothing)
{
    test_server_start(&server, NULL);
    test_cmd(&server, "XADD s 1-1 %s %b", "name", "a\0b", (size_t)3);
    redisReply *reply = test_cmd(&server, "XRANGE s - +");
    ck_assert_uint_eq(reply->elements, 1);
    redisReply *value = reply->element[0]->element[1]->element[1];
    ck_assert_uint_eq(value->len, 3);
    ck_assert_mem_eq(value->str, "a\0b", 3);
    ck_assert_int_eq(test_stream_int(&server, "s", "entries-added"), 1);
    ck_assert_str_eq(test_stream_text(&server, "s", "last-generated-id"), "1-1");
    test_server_restart(&server);
    ck_assert_int_eq(test_cmd_int(&server, "XLEN s"), 0);
    test_server_release(&server);
}
END_TEST

START_TEST(server__is_the_chosen_one)
{
    test_server_start(&server, "--maxmemory", "64mb", NULL);
    redisReply *reply = test_cmd(&server, "CONFIG GET maxmemory");
    ck_assert_str_eq(reply->element[1]->str, "67108864");
    bool valkey = *test_server_info(&server, "server", "valkey_version") != '\0';
    ck_assert_int_eq(valkey, test_server_is_valkey(&server));
    ck_assert_int_ge(test_server_version(&server), 70000);
    ck_assert_int_eq(atoi(test_server_info(&server, "server", "process_id")), server.pid);
    test_server_release(&server);
}
END_TEST

START_TEST(server__persists_when_told_to)
{
    test_server_start(&server, "--appendonly", "yes", "--appendfsync", "always", NULL);
    test_cmd(&server, "XADD s 5-0 a b");
    test_server_kill(&server);
    ck_assert_int_eq(server.pid, 0);
    test_server_restart(&server);
    ck_assert_int_eq(test_cmd_int(&server, "XLEN s"), 1);
    test_server_release(&server);
}
END_TEST

START_TEST(server__stands_still_while_paused)
{
    test_server_start(&server, NULL);
    test_cmd(&server, "SET a 1");
    test_server_pause(&server);
    redisContext *link = redisConnectUnix(server.socket); /* the kernel accepts for it */
    ck_assert_ptr_nonnull(link);
    redisSetTimeout(link, (struct timeval){0, 50000});
    ck_assert_ptr_null(redisCommand(link, "PING"));
    redisFree(link);
    test_server_resume(&server);
    ck_assert_str_eq(test_cmd_text(&server, "GET a"), "1");
    test_server_release(&server);
}
END_TEST

START_TEST(server__refusals_are_replies)
{
    test_server_start(&server, NULL);
    redisReply *reply = test_cmd_any(&server, "XADD s 0-0 a b");
    ck_assert_int_eq(reply->type, REDIS_REPLY_ERROR);
    test_server_release(&server);
}
END_TEST

START_TEST(server__replica_follows_and_takes_over)
{
    test_server_start_tcp(&server, "--repl-diskless-sync-delay", "0", NULL);
    test_server_start_tcp(&other, NULL);
    test_cmd(&server, "XADD s 1-1 a b");
    test_server_follow(&other, &server);
    test_cmd(&server, "XADD s 1-2 a b");
    test_server_catch_up(&other, &server);
    ck_assert_int_eq(test_cmd_int(&other, "XLEN s"), 2);
    char *before = strdup(test_server_info(&other, "replication", "master_replid"));
    test_server_kill(&server);
    test_server_promote(&other);
    ck_assert_str_ne(before, test_server_info(&other, "replication", "master_replid"));
    test_cmd(&other, "XADD s 1-3 a b");
    free(before);
    test_server_release(&server);
    test_server_release(&other);
}
END_TEST

START_TEST(server__dies_with_the_test_that_started_it)
{
    int ends[2];
    pid_t spawned = 0;
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* the orphan's end is ours to collect */
    pid_t pid = fork();
    if (pid == 0) {
        test_server_start(&server, NULL);
        if (write(ends[1], &server.pid, sizeof server.pid) < 0) _exit(1);
        raise(SIGKILL);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(read(ends[0], &spawned, sizeof spawned), sizeof spawned);
    TEST_WAIT(waitpid(spawned, &status, WNOHANG) == spawned, 20000);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGKILL);
}
END_TEST

TEST_MAIN(server__answers_and_keeps_nothing, server__is_the_chosen_one,
          server__persists_when_told_to, server__stands_still_while_paused,
          server__refusals_are_replies, server__replica_follows_and_takes_over,
          server__dies_with_the_test_that_started_it)
