/* A guest in the server's house (promise 7, field reports A7, A10, A11, D3): what is sent over a busy time with restarts, a failover and every tool is on the page of
 * rights and bounded; no command holds the server up; a thousand quiet streams are left in peace. */
#include "sent.h"
#include "siltd_help.h"

/* ---- MONITOR ----
 * siltd and the tools come over TCP, the test itself over the server's UNIX socket: that is how the lines are told apart. */

struct ear {
    redisContext *link;
    unsigned lines, trims, scripts;
};

static void listen_to(struct ear *ear, struct test_server *server)
{
    memset(ear, 0, sizeof *ear);
    ear->link = redisConnectUnix(server->socket);
    redisReply *reply = redisCommand(ear->link, "MONITOR");
    if (reply == NULL || reply->type != REDIS_REPLY_STATUS) test_die("no MONITOR");
    freeReplyObject(reply);
}

static void hear(struct ear *ear, const char *line)
{
    struct sent sent;
    if (strstr(line, " unix:") != NULL) return;
    parse_line(line, &sent);
    check_line(line, &sent);
    ear->trims += strcasecmp(sent.words[0], "xtrim") == 0;
    ear->scripts += sent.by_script;
    ear->lines++;
}

/* Everything up to now. */
static void stop_listening(struct ear *ear, struct test_server *server)
{
    test_cmd(server, "ECHO the-end");
    for (bool more = true; more;) {
        void *next = NULL;
        if (redisGetReply(ear->link, &next) != REDIS_OK) test_die("MONITOR: %s", ear->link->errstr);
        redisReply *reply = next;
        more = strstr(reply->str, "\"the-end\"") == NULL;
        if (more) hear(ear, reply->str);
        freeReplyObject(reply);
    }
    redisFree(ear->link);
}

/* So many looks were made at this server. */
static long long looks(struct test_server *server)
{
    const char *line = test_server_info(server, "commandstats", "cmdstat_xinfo|stream");
    const char *calls = strstr(line, "calls=");
    return calls ? atoll(calls + 6) : 0;
}

static void start_over_tcp(struct daemon *d, struct test_server *server, const char *more,
                           const char *streams)
{
    snprintf(d->server.address, sizeof d->server.address, "tcp:127.0.0.1:%d", server->port);
    write_config(d, more, streams);
}

/* Writers and a group's reader for so long; gives how many entries were written to each of the three streams. */
static int be_busy(struct test_server *server, int ms)
{
    int count = 0;
    for (struct test_deadline end = test_deadline(ms); test_deadline_left(&end) > 0; count++) {
        for (int i = 0; i < 3; i++)
            test_cmd(server, "XADD s%d * n %d kind scored", i, count);
        if (count % 10 == 9) {
            test_cmd(server, "XREADGROUP GROUP readers me COUNT 30 STREAMS s0 >");
            test_cmd(server, "XADD s1 MAXLEN ~ 100000 * n extra kind scored");
            count++;
            for (int i = 0; i < 3; i += 2)
                test_cmd(server, "XADD s%d * n %d kind scored", i, count);
        }
    }
    return count;
}

/* silt with these words; exit 0, or 1: done, with a finding. */
#define RUN_SILT(d_, ...)                                                       \
    do {                                                                        \
        struct test_outcome o_;                                                 \
        TEST_PROGRAM(&o_, "silt", __VA_ARGS__, "--config", (d_)->config);       \
        ck_assert_msg(o_.code == 0 || o_.code == 1, "%d: %s", o_.code, o_.err); \
        test_outcome_release(&o_);                                              \
    } while (0)

static void use_every_tool(const struct daemon *d)
{
    struct test_outcome o;
    RUN_SILT(d, "status");
    RUN_SILT(d, "inspect", "s0", "--timeline");
    RUN_SILT(d, "read", "s0", "--from", "-");
    RUN_SILT(d, "read", "s1", "--reverse");
    RUN_SILT(d, "verify", "s0");
    RUN_SILT(d, "sync", "s2");
    run_siltd(d, "--plan", "--json", &o);
    ck_assert_msg(o.code == 0, "%s", o.err);
    test_outcome_release(&o);
}

static void check_count(const struct daemon *d, const char *key, int count)
{
    struct test_outcome o;
    TEST_PROGRAM(&o, "silt", "read", key, "--count", "--config", d->config);
    ck_assert_msg(o.code == 0 && atoi(o.out) == count, "%s: %s, not %d %s", key, o.out, count,
                  o.err);
    test_outcome_release(&o);
}

#define STREAMS \
    "- { match: 's*', keep: { entries: 50, bytes: 1MiB }, seam: best-effort, fold-delay: 20ms }\n"

START_TEST(neighbour__a11_d3_a_busy_time_shows_only_documented_commands)
{
    struct daemon d = {0};
    struct test_server other = {0}, *server = &d.server;
    struct ear ear;
    int ms = test_long() ? 60000 : 1500, written = 0;
    test_server_start_tcp(server, NULL);
    test_server_start_tcp(&other, NULL);
    test_server_follow(&other, server);
    start_over_tcp(&d, server, "idle-look: 200ms\npage: { entries: 50 }\n", STREAMS);
    test_cmd(server, "XGROUP CREATE s0 readers 0 MKSTREAM");
    listen_to(&ear, server);
    for (int round = 0; round < 3; round++) { /* a start, a restart, one after a kill */
        start_siltd(&d);
        written += be_busy(server, ms / 3);
        TEST_WAIT(stream_number("s1", "folded_entries") >= written, 20000);
        if (round == 2) use_every_tool(&d);
        if (round < 2) end_siltd(&d, round == 0 ? SIGTERM : SIGKILL);
    }
    for (int i = 0; i < 3; i++) {
        char key[8];
        snprintf(key, sizeof key, "s%d", i);
        check_count(&d, key, written);
    }
    TEST_WAIT(test_cmd_int(server, "XLEN s1") == 50, 20000);
    stop_listening(&ear, server);
    ck_assert_uint_gt(ear.lines, 100);
    ck_assert_uint_gt(ear.trims, 3);
    /* a failover: the replica is primary, the archiver is sent to it */
    test_server_catch_up(&other, server);
    listen_to(&ear, &other);
    test_server_promote(&other);
    start_over_tcp(&d, &other, "idle-look: 200ms\n", STREAMS);
    test_child_signal(&d.child, SIGHUP);
    be_busy(&other, ms / 3);
    /* audited, or waiting to be: either way it looks again and again */
    TEST_WAIT(looks(&other) > 8, 20000);
    RUN_SILT(&d, "status");
    RUN_SILT(&d, "inspect", "s1");
    stop_listening(&ear, &other);
    ck_assert_uint_gt(ear.lines, 10);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&other);
    test_server_release(server);
}
END_TEST

/* ---- how long one command holds everybody else up ---- */

static void add_many(struct test_server *server, unsigned from, unsigned to)
{
    enum { AT_ONCE = 1000 };
    void *reply = NULL;
    test_cmd(server, "PING"); /* connected */
    for (unsigned i = from; i <= to; i += AT_ONCE) {
        unsigned n = to - i + 1 < AT_ONCE ? to - i + 1 : AT_ONCE;
        for (unsigned j = i; j < i + n; j++)
            redisAppendCommand(server->link, "XADD big %u-0 n %u kind scored user u%u", j, j,
                               j % 977);
        for (unsigned j = 0; j < n; j++) {
            if (redisGetReply(server->link, &reply) != REDIS_OK) test_die("XADD");
            freeReplyObject(reply);
        }
    }
}

/* All but every hundredth. */
static void delete_most(struct test_server *server, unsigned to)
{
    const char *words[102] = {"XDEL", "big"};
    char ids[100][16];
    for (unsigned i = 0; i < to; i += 100) {
        for (unsigned j = 1; j < 100; j++) {
            snprintf(ids[j], sizeof ids[j], "%u-0", i + j);
            words[1 + j] = ids[j];
        }
        test_cmd_argv(server, 101, words, NULL);
    }
}

/* The slowest command that came over TCP, in microseconds; its first words into ret. */
static long long slowest(struct test_server *server, char ret[100])
{
    const redisReply *log = test_cmd(server, "SLOWLOG GET 1000");
    long long most = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *entry = log->element[i], *words = entry->element[3];
        if (strncmp(entry->element[4]->str, "unix:", 5) == 0 || strstr(entry->element[4]->str, "/"))
            continue;
        if (entry->element[2]->integer <= most) continue;
        most = entry->element[2]->integer;
        snprintf(ret, 100, "%.30s %.30s", words->element[0]->str,
                 words->elements > 1 ? words->element[1]->str : "");
    }
    return most;
}

/* The same work up to four times, each time from the start: a machine that has stopped the server for a moment does not do so at every try. */
static void check_never_slow(struct daemon *d, const char *streams, int live)
{
    char what[100];
    long long most = 0;
    struct test_outcome o;
    for (int attempt = 0; attempt < 4; attempt++) {
        test_remove_all(test_path("archive"));
        const redisReply *groups = test_cmd(&d->server, "XINFO GROUPS big");
        if (groups->elements > 0) {
            char name[128];
            snprintf(name, sizeof name, "%s", groups->element[0]->element[1]->str);
            test_cmd(&d->server, "XGROUP DESTROY big %s", name);
        }
        start_over_tcp(d, &d->server, "", streams);
        test_cmd(&d->server, "SLOWLOG RESET");
        run_siltd(d, "--once", NULL, &o);
        ck_assert_msg(o.code == 1, "%s", o.err); /* what was deleted is a gap */
        test_outcome_release(&o);
        ck_assert_int_eq(test_cmd_int(&d->server, "XLEN big"), live);
        TEST_PROGRAM(&o, "silt", "read", "big", "--count", "--config", d->config);
        ck_assert_msg((o.code == 0 || o.code == 1) && atoi(o.out) == live, "%s", o.out);
        test_outcome_release(&o);
        most = slowest(&d->server, what);
        if (most <= 10000) return;
    }
    ck_abort_msg("%s held the server up for %lld us", what, most);
}

START_TEST(neighbour__a10_no_command_is_slow_where_most_was_deleted)
{
    struct daemon d = {0};
    unsigned count = test_long() ? 1000000 : 200000;
    test_server_start_tcp(&d.server, "--slowlog-log-slower-than", "10000", "--slowlog-max-len",
                          "1000", NULL);
    add_many(&d.server, 1, count);
    delete_most(&d.server, count);
    /* nothing is trimmed, so that it can be done again */
    check_never_slow(&d, "- { match: big }\n", (int)(count / 100));
    test_server_release(&d.server);
}
END_TEST

START_TEST(neighbour__a7_a_long_stream_is_trimmed_without_a_slow_command)
{
    struct daemon d = {0};
    struct test_outcome o;
    char what[100];
    unsigned count = test_long() ? 1000000 : 60000;
    long long most = 0;
    test_server_start_tcp(&d.server, "--slowlog-log-slower-than", "10000", "--slowlog-max-len",
                          "1000", NULL);
    for (int attempt = 0; attempt < 4; attempt++) {
        test_cmd(&d.server, "DEL big");
        test_remove_all(test_path("archive"));
        add_many(&d.server, 1, count);
        start_over_tcp(&d, &d.server, "", "- { match: big, keep: { entries: 1000 } }\n");
        test_cmd(&d.server, "SLOWLOG RESET");
        run_siltd(&d, "--once", NULL, &o);
        ck_assert_msg(o.code == 0, "%s", o.err);
        test_outcome_release(&o);
        /* it converges in one run, without new traffic */
        ck_assert_int_eq(test_cmd_int(&d.server, "XLEN big"), 1000);
        most = slowest(&d.server, what);
        if (most <= 10000) break;
    }
    ck_assert_msg(most <= 10000, "%s held the server up for %lld us", what, most);
    test_server_release(&d.server);
}
END_TEST

/* ---- quiet streams ---- */

/* User and system time of a process, in clock ticks. */
static long long cpu_ticks(pid_t pid)
{
    char path[40];
    long long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld",
                        &user, &system) != 2)
        test_die("%s", path);
    fclose(file);
    return user + system;
}

/* At rest a stream is looked at again after nine tenths of idle-look at the soonest, less a quarter of a second of company. With 1,000 streams and 30 s
 * (the long form) that is fewer than 40 looks a second; the short form has as many looks a second from fewer streams. */
START_TEST(neighbour__a_thousand_quiet_streams_are_left_in_peace)
{
    struct daemon d = {0};
    int streams = test_long() ? 1000 : 100, idle_ms = test_long() ? 30000 : 3200;
    int window_ms = test_long() ? 60000 : 4000;
    char more[64];
    snprintf(more, sizeof more, "idle-look: %dms\nlog: { level: warn }\n", idle_ms);
    start_server(&d, more, "- { match: 's*', fold-delay: 100ms, keep: { entries: 5 } }\n");
    for (int i = 0; i < streams; i++) {
        char key[16];
        snprintf(key, sizeof key, "s%d", i);
        add_entries(&d, key, 2);
    }
    start_siltd(&d);
    char last[16];
    snprintf(last, sizeof last, "s%d", streams - 1);
    TEST_WAIT(stream_number(last, "folded_entries") == 2, 30000);
    /* All have come to rest when the pauses have doubled to the limit. */
    TEST_WAIT(stream_number("s0", "next_look_ms") > idle_ms * 3 / 4, 3 * idle_ms + 10000);
    TEST_WAIT(stream_number(last, "looked_ms_ago") > idle_ms / 2, 3 * idle_ms + 10000);
    long long before = looks(&d.server), began = test_now_ms(), ticks = cpu_ticks(d.child.pid);
    TEST_WAIT(test_now_ms() - began >= window_ms, window_ms + 20000);
    long long made = looks(&d.server) - before, took = test_now_ms() - began;
    ticks = cpu_ticks(d.child.pid) - ticks;
    ck_assert_int_gt(made, 0);
    ck_assert_msg(made * 1000 < 40 * took, "%lld looks in %lld ms", made, took);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    double share = (double)ticks / (double)sysconf(_SC_CLK_TCK) * 1000 / (double)took;
    ck_assert_msg(share < (test_long() ? 0.01 : 0.02), "%.1f %% of a core", share * 100);
#endif
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

TEST_MAIN(neighbour__a11_d3_a_busy_time_shows_only_documented_commands,
          neighbour__a10_no_command_is_slow_where_most_was_deleted,
          neighbour__a7_a_long_stream_is_trimmed_without_a_slow_command,
          neighbour__a_thousand_quiet_streams_are_left_in_peace)
