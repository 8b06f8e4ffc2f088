/* Beside a server that goes, comes, stands still, is demoted or refuses writes (field reports K1, K3, C5, C7, D11): the program waits without a storm of lines, says
 * what is the matter, goes on by itself, and its health tells progress, not that a process is there. */
#include "siltd_help.h"

#include <sys/stat.h>
#include <sys/wait.h>

static unsigned lines_said(const struct daemon *d)
{
    return times_said(d, "\n");
}

/* Exit code of `silt status`; what it says in *ret_out (freed with free). */
static int status_code(const struct daemon *d, char **ret_out)
{
    struct test_outcome o;
    TEST_PROGRAM(&o, "silt", "status", "--config", d->config);
    int code = o.code;
    if (ret_out && asprintf(ret_out, "%s%s", o.out, o.err) < 0) test_die("no memory");
    test_outcome_release(&o);
    return code;
}

static bool status_says(const struct daemon *d, int code, const char *words)
{
    char *out = NULL;
    int got = status_code(d, &out);
    bool says = got == code && strstr(out, words);
    free(out);
    return says;
}

/* The settings with short limits. */
static void write_hasty(struct daemon *d, const char *more, const char *streams)
{
    char text[2000];
    snprintf(d->config, sizeof d->config, "%s", test_path("silt.yaml"));
    int len =
        snprintf(text, sizeof text,
                 "valkey: { address: \"%s\", command-timeout: 300ms, connect-timeout: 300ms }\n"
                 "archive: { path: %s }\ncontrol: %s\n%sstreams:\n%s",
                 d->server.address, test_path("archive"), test_path("c.sock"), more, streams);
    test_file_write(d->config, text, (size_t)len);
}

#define ONE "- { match: a, fold-delay: 20ms, keep: { entries: 5 } }\n"

START_TEST(sidecar__k1_a_starved_loop_is_bad_health_and_heals)
{
    struct daemon d = {0};
    test_server_start(&d.server, NULL);
    write_hasty(&d, "idle-look: 200ms\n", ONE);
    add_entries(&d, "a", 20);
    start_siltd(&d);
    TEST_WAIT(test_cmd_int(&d.server, "XLEN a") == 5, 20000);
    TEST_WAIT(status_code(&d, NULL) == 0, 10000);
    test_server_pause(&d.server);
    TEST_WAIT(status_says(&d, 1, "did not answer within 300 ms") ||
                  status_says(&d, 1, "no answer in time"),
              20000);
    test_server_resume(&d.server);
    add_entries(&d, "a", 20);
    TEST_WAIT(test_cmd_int(&d.server, "XLEN a") == 5, 20000);
    TEST_WAIT(status_code(&d, NULL) == 0, 10000);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

START_TEST(sidecar__k1_a_frozen_siltd_is_bad_health)
{
    struct daemon d;
    start_server(&d, "", ONE);
    start_siltd(&d);
    TEST_WAIT(is_listening(), 10000);
    test_child_signal(&d.child, SIGSTOP);
    ck_assert(status_says(&d, 4, "siltd is there but has not answered within 5000 ms"));
    test_child_signal(&d.child, SIGCONT);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

/* One answer to each that comes, as a siltd would give it whose loop goes round and whose archive does not move. */
static pid_t answer_always(const char *line)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char request[4096];
    pid_t parent = getpid();
    snprintf(address.sun_path, sizeof address.sun_path, "%s/c.sock", test_scratch());
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 4) != 0)
        test_die("cannot listen");
    pid_t pid = fork();
    if (pid != 0) {
        close(listener);
        return pid;
    }
    test_die_with_parent(parent);
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; close(fd))
        if (recv(fd, request, sizeof request, 0) > 0) (void)!write(fd, line, strlen(line));
    _exit(0);
}

START_TEST(sidecar__k1_progress_is_judged_not_that_somebody_answers)
{
    static const struct {
        const char *numbers, *says;
        int code;
    } cases[] = {
        {"\"lag_entries\":0,\"lag_ms\":0,\"looked_ms_ago\":1000,\"next_look_ms\":500", " ok ", 0},
        {"\"lag_entries\":3,\"lag_ms\":30000,\"looked_ms_ago\":1000,\"next_look_ms\":500", " ok ",
         0},
        {"\"lag_entries\":3,\"lag_ms\":30000,\"looked_ms_ago\":31000,\"next_look_ms\":0", "behind",
         1},
        {"\"lag_entries\":0,\"lag_ms\":0,\"looked_ms_ago\":61000,\"next_look_ms\":0", "stalled", 1},
        {"\"lag_entries\":0,\"lag_ms\":0,\"looked_ms_ago\":3000000,\"next_look_ms\":600000", " ok ",
         0},
    };
    struct daemon d = {.server = {.address = "unix:/nowhere"}};
    write_config(&d, "", ONE);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[600];
        snprintf(line, sizeof line,
                 "{\"ok\":true,\"error\":null,\"streams\":[{\"key\":\"a\",\"kind\":\"plain\","
                 "\"state\":\"ok\",\"verdict\":\"clear\",\"gap_entries\":0,%s}]}\n",
                 cases[i].numbers);
        unlink(test_path("c.sock"));
        pid_t pid = answer_always(line);
        char *out = NULL;
        int code = status_code(&d, &out);
        ck_assert_msg(code == cases[i].code && strstr(out, cases[i].says), "%s: %d, %s",
                      cases[i].numbers, code, out);
        free(out);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}
END_TEST

START_TEST(sidecar__k3_a_server_that_goes_first_is_no_storm_and_no_failure)
{
    struct daemon d = {0};
    test_server_start(&d.server, NULL);
    write_hasty(&d, "idle-look: 100ms\n", ONE);
    add_entries(&d, "a", 20);
    start_siltd(&d);
    TEST_WAIT(test_cmd_int(&d.server, "XLEN a") == 5, 20000);
    unsigned before = lines_said(&d);
    test_server_kill(&d.server);
    TEST_WAIT(has_said(&d, "event=waiting"), 20000);
    long long began = test_now_ms();
    TEST_WAIT(test_now_ms() - began > 2500, 20000); /* four tries and more */
    ck_assert_uint_le(lines_said(&d) - before, 3);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    /* and the other way round: it comes later, siltd waits for it */
    start_siltd(&d);
    TEST_WAIT(has_said(&d, "event=waiting"), 20000);
    test_server_restart(&d.server);
    TEST_WAIT(has_said(&d, "event=back"), 30000);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

/* The address names the new primary only after a while, as a name or a proxy does. */
START_TEST(sidecar__c5_a_demoted_server_moves_nothing_and_the_next_one_is_found)
{
    struct daemon d = {0};
    struct test_server other = {0};
    const char *link = test_path("valkey.sock");
    test_server_start_tcp(&d.server, NULL);
    test_server_start_tcp(&other, NULL);
    test_server_follow(&other, &d.server);
    ck_assert_int_eq(symlink(d.server.socket, link), 0);
    snprintf(d.server.address, sizeof d.server.address, "unix:%s", link);
    write_hasty(&d, "idle-look: 200ms\n", "- { match: a, fold-delay: 20ms }\n");
    add_entries(&d, "a", 20);
    start_siltd(&d);
    TEST_WAIT(stream_number("a", "folded_entries") == 20, 20000);
    test_server_catch_up(&other, &d.server);
    test_server_promote(&other);
    test_server_follow(&d.server, &other);
    test_cmd(&other, "XADD a * n more text x");
    test_server_catch_up(&d.server, &other);
    TEST_WAIT(strcmp(stream_text("a", "state"), "failing") == 0, 20000);
    ck_assert(status_says(&d, 1, "replica"));
    ck_assert_int_eq(stream_number("a", "folded_entries"), 20);
    ck_assert_int_eq(unlink(link), 0);
    ck_assert_int_eq(symlink(other.socket, link), 0);
    /* found by itself: a failover without visible loss, audited or about to be */
    TEST_WAIT(strstr(test_server_info(&other, "commandstats", "cmdstat_xinfo|stream"), "calls="),
              20000);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&other);
    test_server_release(&d.server);
}
END_TEST

/* MISCONF: a directory stands where the snapshot is to go. */
static void break_saving(struct daemon *d)
{
    char path[200];
    const char *words[] = {"CONFIG", "SET", "save", "3600 1000000"};
    snprintf(path, sizeof path, "%s/dump.rdb", d->server.dir);
    if (mkdir(path, 0700) != 0) test_die("mkdir %s", path);
    test_cmd_argv(&d->server, 4, words, NULL);
    test_cmd(&d->server, "BGSAVE");
    TEST_WAIT(
        strcmp(test_server_info(&d->server, "persistence", "rdb_last_bgsave_status"), "err") == 0,
        20000);
}

static void mend_saving(struct daemon *d)
{
    char path[200];
    snprintf(path, sizeof path, "%s/dump.rdb", d->server.dir);
    if (rmdir(path) != 0) test_die("rmdir %s", path);
    test_cmd(&d->server, "BGSAVE");
}

/* The wish to trim comes with new settings, since while writes are refused nothing else can change. */
static void check_blocked(bool misconf)
{
    struct daemon d = {0};
    test_server_start(&d.server, NULL);
    write_hasty(&d, "idle-look: 200ms\n", "- { match: a, fold-delay: 20ms }\n");
    add_entries(&d, "a", 20);
    start_siltd(&d);
    TEST_WAIT(stream_number("a", "folded_entries") == 20, 20000);
    add_entries(&d, "a", 20);
    if (misconf)
        break_saving(&d);
    else
        test_cmd(&d.server, "CONFIG SET min-replicas-to-write 1");
    write_hasty(&d, "idle-look: 200ms\n", ONE);
    test_child_signal(&d.child, SIGHUP);
    TEST_WAIT(status_says(&d, 1, misconf ? "MISCONF" : "NOREPLICAS"), 20000);
    /* archiving has gone on, once */
    ck_assert_int_eq(stream_number("a", "folded_entries"), 40);
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN a"), 40);
    ck_assert_uint_eq(times_said(&d, "event=failing"), 1);
    if (misconf)
        mend_saving(&d);
    else
        test_cmd(&d.server, "CONFIG SET min-replicas-to-write 0");
    TEST_WAIT(test_cmd_int(&d.server, "XLEN a") == 5, 30000);
    TEST_WAIT(status_code(&d, NULL) == 0, 10000);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}

START_TEST(sidecar__c7_no_replicas_blocks_the_trim_and_is_said)
{
    check_blocked(false);
}
END_TEST

START_TEST(sidecar__c7_misconf_blocks_the_trim_and_is_said)
{
    check_blocked(true);
}
END_TEST

/* Many streams; one of another type for ever; connections cut again and again; the server stopped for a while. */
START_TEST(sidecar__d11_one_bad_stream_and_a_bad_line_hold_up_nobody)
{
    enum { STREAMS = 60 };
    struct daemon d = {0};
    char key[16];
    struct test_rng rng = test_rng(11);
    int rounds = test_long() ? 40 : 6, added = 0;
    test_server_start(&d.server, NULL);
    write_hasty(&d, "idle-look: 500ms\nlog: { level: warn }\n",
                "- { match: 's*', fold-delay: 50ms, keep: { entries: 3 } }\n"
                "- { match: bad, fold-delay: 50ms }\n");
    test_cmd(&d.server, "SET bad text");
    start_siltd(&d);
    TEST_WAIT(is_listening(), 10000);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < STREAMS; i++, added++) {
            snprintf(key, sizeof key, "s%d", i);
            test_cmd(&d.server, "XADD %s * n %d", key, round);
            if (test_rng_below(&rng, 25) == 0)
                test_cmd(&d.server, "CLIENT KILL TYPE normal SKIPME yes");
        }
        if (round != rounds / 2) continue;
        test_server_pause(&d.server);
        TEST_WAIT(has_said(&d, "event=waiting"), 20000);
        test_server_resume(&d.server);
    }
    for (int i = 0; i < STREAMS; i++) {
        snprintf(key, sizeof key, "s%d", i);
        TEST_WAIT(stream_number(key, "folded_entries") == rounds, 30000);
        TEST_WAIT(stream_number(key, "lag_entries") == 0, 20000);
        ck_assert_str_eq(stream_text(key, "state"), "ok");
    }
    char *out = NULL;
    ck_assert_int_eq(status_code(&d, &out), 1);
    const char *about = strstr(out, "\nbad");
    ck_assert_msg(strstr(out, "another type") != NULL, "%.900s", about ? about : out);
    free(out);
    ck_assert_uint_eq(times_said(&d, "stream=bad"), 1); /* named once, with its reason */
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

TEST_MAIN(sidecar__k1_a_starved_loop_is_bad_health_and_heals,
          sidecar__k1_a_frozen_siltd_is_bad_health,
          sidecar__k1_progress_is_judged_not_that_somebody_answers,
          sidecar__k3_a_server_that_goes_first_is_no_storm_and_no_failure,
          sidecar__c5_a_demoted_server_moves_nothing_and_the_next_one_is_found,
          sidecar__c7_no_replicas_blocks_the_trim_and_is_said,
          sidecar__c7_misconf_blocks_the_trim_and_is_said,
          sidecar__d11_one_bad_stream_and_a_bad_line_hold_up_nobody)
