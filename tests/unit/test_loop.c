/* archiver/loop*.c beside a cycle that follows a script: when streams are looked at, what is said, how it ends. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "adopt.h"
#include "alloc.h"
#include "harness/harness.h"
#include "log.h"
#include "loop_priv.h"

/* ---- the scripted cycle ---- */

struct part {
    const char *key;
    enum silt_status status; /* of its passes from `from` on, below `until` */
    unsigned from, until;
    unsigned more;    /* so many passes stop with work left */
    unsigned changes; /* so many passes change something */
    enum silt_verdict verdict;
    unsigned gaps_at; /* the pass that finds a gap */
    unsigned passes;  /* so far */
    unsigned wholes;  /* of them, that were to fold all */
    long long at[64]; /* when */
};
static struct part parts[8];
static struct {
    unsigned passes, sizes[256], opened;
    enum silt_status fails; /* passes in [fails_from, fails_until) */
    unsigned fails_from, fails_until;
    unsigned signal_at, signal; /* raised in that pass */
    bool waits;                 /* the pass waits until it is cancelled */
    enum silt_status open_fails;
    unsigned open_fails_at;
    unsigned rows_fail_at, row_walks; /* of walks over the rows */
    bool damaged_row; /* the archive has two: one that cannot be read, and known:1 */
} script;

struct silt_archiver {
    bool (*cancelled)(void *);
    void *ctx;
};

enum silt_status silt_archiver_new(const struct silt_config *config, bool (*cancelled)(void *),
                                   void *ctx, struct silt_archiver **ret, struct silt_err *err)
{
    (void)config;
    if (++script.opened == script.open_fails_at) return silt_fail(err, script.open_fails, NULL);
    *ret = silt_calloc(1, sizeof **ret);
    **ret = (struct silt_archiver){cancelled, ctx};
    return SILT_OK;
}
void silt_archiver_free(struct silt_archiver *archiver)
{
    silt_free(archiver);
}
void silt_archiver_set_config(struct silt_archiver *archiver, const struct silt_config *config)
{
    (void)archiver;
    (void)config;
}
struct silt_store *silt_archiver_store(struct silt_archiver *archiver)
{
    (void)archiver;
    return NULL;
}
struct silt_conn *silt_archiver_conn(struct silt_archiver *archiver)
{
    static struct silt_conn *conn; /* never connected */
    struct silt_conn_options options = SILT_CONN_OPTIONS_DEFAULT;
    (void)archiver;
    options.address = "unix:/nowhere";
    if (!conn && silt_conn_new(&options, &conn, NULL) != SILT_OK) test_die("no connection object");
    return conn;
}
enum silt_status silt_archiver_work(struct silt_archiver *archiver, struct silt_view key,
                                    const struct silt_stream_config *config, struct silt_work **ret,
                                    struct silt_err *err)
{
    (void)archiver;
    (void)err;
    *ret = silt_calloc(1, sizeof **ret);
    (*ret)->config = config;
    return silt_buf_put(&(*ret)->key, key.at, key.len);
}
enum silt_status silt_archiver_adopt(struct silt_archiver *archiver, struct silt_work *work,
                                     bool dry, struct silt_adoption *ret, struct silt_err *err)
{
    (void)archiver;
    (void)dry;
    if (silt_view_equal(silt_buf_view(&work->key), silt_view_str("held")))
        return silt_fail(err, SILT_ERR_CLAIMED, "a test holds it");
    *ret = (struct silt_adoption){.epoch = 7, .uuid = "u", .marker_count = 1};
    return SILT_OK;
}
enum silt_status silt_archiver_release(struct silt_archiver *archiver, struct silt_work *work,
                                       bool dry, struct silt_adoption *ret, struct silt_err *err)
{
    return silt_archiver_adopt(archiver, work, dry, ret, err);
}
void silt_work_free(struct silt_work *work)
{
    if (work) silt_buf_release(&work->key);
    silt_free(work);
}
const char *silt_held_by_name(enum silt_held_by by)
{
    return by == SILT_HELD_VERDICT ? "verdict" : "nothing";
}
enum silt_status silt_store_stream_after(struct silt_store *store, uint64_t after,
                                         struct silt_stream *ret, struct silt_err *err)
{
    (void)store;
    if (after == 0 && ++script.row_walks == script.rows_fail_at)
        return silt_fail(err, SILT_ERR_IO, NULL);
    if (!script.damaged_row || after > 1) return SILT_END;
    ret->row = (struct silt_stream_row){.number = after + 1, .name = silt_view_str("known:1")};
    return after == 0 ? silt_fail(err, SILT_ERR_CORRUPT, NULL) : SILT_OK;
}
void silt_stream_release(struct silt_stream *stream)
{
    (void)stream;
}

static struct part *part_of(struct silt_view key)
{
    for (size_t i = 0; i < 8; i++)
        if (parts[i].key && silt_view_equal(silt_view_str(parts[i].key), key)) return &parts[i];
    static struct part quiet;
    return &quiet;
}

static void play(struct silt_work *work)
{
    struct part *part = part_of(silt_buf_view(&work->key));
    unsigned n = part->passes++;
    if (n < 64) part->at[n] = test_now_ms();
    part->wholes += work->whole;
    work->looked_at_ms = 1;
    work->status = SILT_OK;
    work->more = n < part->more;
    work->changed = n < part->changes || work->more;
    work->settled = !work->more;
    work->held_by = part->verdict ? SILT_HELD_VERDICT : SILT_HELD_NOTHING;
    work->stream.row.number = 1;
    work->stream.row.verdict = part->verdict;
    work->stream.row.verdict_reason = silt_view_str(part->verdict ? "a fact went back" : "");
    work->stream.row.gap_entries = part->gaps_at && n + 1 >= part->gaps_at ? 5 : 0;
    if (part->status && n >= part->from && n < part->until)
        work->status = silt_fail(&work->err, part->status, "%s is ill", part->key);
}

enum silt_status silt_archiver_pass(struct silt_archiver *archiver, struct silt_work **works,
                                    size_t count, struct silt_err *err)
{
    unsigned n = script.passes++;
    if (n < 256) script.sizes[n] = (unsigned)count;
    if (script.signal && n + 1 == script.signal_at) raise((int)script.signal);
    if (n >= script.fails_from && n < script.fails_until)
        return silt_fail(err, script.fails, "the whole is ill");
    for (size_t i = 0; i < count; i++)
        play(works[i]);
    while (script.waits)
        if (archiver->cancelled(archiver->ctx)) return silt_fail(err, SILT_ERR_CANCELLED, NULL);
    return SILT_OK;
}

/* ---- help ---- */

#define HEAD "valkey: { address: unix:/nowhere }\narchive: { path: /nowhere }\n"

static struct silt_loop *loop_of(const char *text, bool once)
{
    struct silt_config *config = NULL;
    struct silt_loop *loop = NULL;
    struct silt_err err = {0};
    const char *path = test_path("silt.yaml");
    test_file_write(path, text, strlen(text));
    const struct silt_loop_options options = {.config_path = path, .once = once};
    if (silt_config_load(path, &config, &err) != SILT_OK) test_die("%s", err.sentence);
    if (silt_loop_new(config, &options, &loop, &err) != SILT_OK) test_die("%s", err.sentence);
    return loop;
}

/* Runs to the end with stderr in a file; gives the exit code. */
static int run(const char *text, bool once, struct silt_err *err, char **ret_log)
{
    int kept = dup(STDERR_FILENO),
        fd = open(test_path("log"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    dup2(fd, STDERR_FILENO);
    struct silt_loop *loop = loop_of(text, once);
    silt_log_init(false, SILT_LOG_INFO);
    int code = silt_loop_run(loop, err);
    silt_loop_free(loop);
    dup2(kept, STDERR_FILENO);
    close(fd);
    close(kept);
    *ret_log = test_file_read(test_path("log"), NULL);
    return code;
}

static unsigned times(const char *text, const char *word)
{
    unsigned count = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        count++;
    return count;
}

static void end_after(unsigned passes)
{
    script.signal = SIGTERM;
    script.signal_at = passes;
}

/* ---- tests ---- */

START_TEST(loop__once_goes_on_while_there_is_more_and_then_ends)
{
    char *log;
    struct silt_err err = {0};
    parts[0] = (struct part){.key = "a", .more = 5};
    parts[1] = (struct part){.key = "b"};
    ck_assert_int_eq(run(HEAD "streams: [ { match: a }, { match: b } ]\n", true, &err, &log), 0);
    ck_assert_uint_eq(parts[0].passes, 6);
    ck_assert_uint_eq(parts[1].passes, 1); /* settled: not asked again */
    ck_assert_uint_eq(script.sizes[0], 2);
    free(log);
}
END_TEST

START_TEST(loop__once_ends_with_1_where_something_is_found)
{
    static const struct part found[] = {{.key = "a", .verdict = SILT_VERDICT_AUDIT_PENDING},
                                        {.key = "a", .gaps_at = 1},
                                        {.key = "a", .status = SILT_ERR_CONFLICT, .until = 99}};
    for (size_t i = 0; i < 3; i++) {
        char *log;
        struct silt_err err = {0};
        memset(parts, 0, sizeof parts);
        parts[0] = found[i];
        ck_assert_int_eq(run(HEAD "streams: [ { match: a }, { match: b } ]\n", true, &err, &log),
                         1);
        free(log);
    }
}
END_TEST

START_TEST(loop__once_ends_with_the_code_of_what_stops_it)
{
    static const struct {
        enum silt_status status;
        int code;
    } rows[] = {{SILT_ERR_SERVER_AWAY, 4}, {SILT_ERR_DISK_FULL, 7}, {SILT_ERR_STORE_LOST, 5}};
    for (size_t i = 0; i < 3; i++) {
        char *log;
        struct silt_err err = {0};
        memset(&script, 0, sizeof script);
        script.fails = rows[i].status;
        script.fails_until = 99;
        ck_assert_int_eq(run(HEAD "streams: [ { match: a } ]\n", true, &err, &log), rows[i].code);
        ck_assert_str_eq(err.sentence, "the whole is ill");
        ck_assert_uint_eq(script.passes, 1);
        free(log);
    }
}
END_TEST

START_TEST(loop__once_ends_with_the_servers_code_when_no_stream_can_be_served)
{
    char *log;
    struct silt_err err = {0};
    parts[0] = (struct part){.key = "a", .status = SILT_ERR_SERVER_DENIED, .until = 99};
    ck_assert_int_eq(run(HEAD "streams: [ { match: a } ]\n", true, &err, &log), 4);
    ck_assert_str_eq(err.sentence, "a is ill");
    free(log);
}
END_TEST

START_TEST(loop__once_tries_a_passing_failure_again)
{
    char *log;
    struct silt_err err = {0};
    parts[0] = (struct part){.key = "a", .status = SILT_ERR_STALE, .until = 1};
    ck_assert_int_eq(run(HEAD "streams: [ { match: a } ]\n", true, &err, &log), 0);
    ck_assert_uint_eq(parts[0].passes, 2);
    ck_assert_uint_eq(times(log, "event=failing"), 1);
    ck_assert_uint_eq(times(log, "event=recovered"), 1);
    free(log);
}
END_TEST

START_TEST(loop__a_quiet_stream_is_looked_at_less_and_less_up_to_idle_look)
{
    char *log;
    struct silt_err err = {0};
    parts[0] = (struct part){.key = "a"};
    end_after(7);
    ck_assert_int_eq(run(HEAD "idle-look: 160ms\nstreams: [ { match: a, fold-delay: 20ms } ]\n",
                         false, &err, &log),
                     0);
    /* 20, 40, 80, 160, 160: each at most a tenth shorter */
    static const long long least[] = {18, 36, 72, 144, 144};
    for (size_t i = 0; i < 5; i++) {
        long long gap = parts[0].at[i + 1] - parts[0].at[i];
        ck_assert_msg(gap >= least[i] - 1, "%lld ms after look %zu", gap, i);
    }
    free(log);
}
END_TEST

START_TEST(loop__a_busy_stream_is_looked_at_every_fold_delay)
{
    char *log;
    struct silt_err err = {0};
    parts[0] = (struct part){.key = "a", .changes = 99};
    end_after(8);
    long long began = test_now_ms();
    ck_assert_int_eq(run(HEAD "streams: [ { match: a, fold-delay: 30ms } ]\n", false, &err, &log),
                     0);
    ck_assert_int_ge(test_now_ms() - began, 7 * 26);
    for (size_t i = 0; i + 1 < 7; i++)
        ck_assert_int_ge(parts[0].at[i + 1] - parts[0].at[i], 26);
    free(log);
}
END_TEST

START_TEST(loop__streams_that_are_due_share_a_pass)
{
    char *log;
    struct silt_err err = {0};
    parts[0] = (struct part){.key = "a", .changes = 99};
    parts[1] = (struct part){.key = "b", .changes = 99};
    parts[2] = (struct part){.key = "c", .changes = 99};
    end_after(6);
    ck_assert_int_eq(
        run(HEAD "streams: [ { match: a, fold-delay: 40ms }, { match: b, fold-delay: 40ms },"
                 " { match: c, fold-delay: 40ms } ]\n",
            false, &err, &log),
        0);
    for (size_t i = 0; i < 6; i++)
        ck_assert_uint_eq(script.sizes[i], 3);
    free(log);
}
END_TEST

START_TEST(loop__a_failing_stream_backs_off_alone)
{
    char *log;
    struct silt_err err = {0};
    parts[0] = (struct part){.key = "a", .status = SILT_ERR_SERVER_DENIED, .until = 99};
    parts[1] = (struct part){.key = "b", .changes = 99};
    end_after(15);
    ck_assert_int_eq(
        run(HEAD "streams: [ { match: a }, { match: b, fold-delay: 20ms } ]\n", false, &err, &log),
        0);
    ck_assert_uint_ge(parts[1].passes, 14);
    ck_assert_uint_eq(parts[0].passes, 1); /* the next try is half a second away */
    ck_assert_uint_eq(times(log, "event=failing stream=a code=SILT_ERR_SERVER_DENIED"), 1);
    free(log);
}
END_TEST

START_TEST(loop__an_absent_server_is_said_once_and_its_return)
{
    char *log;
    struct silt_err err = {0};
    parts[0] = (struct part){.key = "a"};
    script.fails = SILT_ERR_SERVER_AWAY;
    script.fails_until = 3;
    end_after(4);
    ck_assert_int_eq(run(HEAD "streams: [ { match: a } ]\n", false, &err, &log), 0);
    ck_assert_uint_eq(times(log, "event=waiting code=SILT_ERR_SERVER_AWAY"), 1);
    ck_assert_uint_eq(times(log, "event=back after=SILT_ERR_SERVER_AWAY"), 1);
    ck_assert_uint_eq(script.opened, 1);
    free(log);
}
END_TEST

START_TEST(loop__a_lost_store_is_opened_again)
{
    char *log;
    struct silt_err err = {0};
    parts[0] = (struct part){.key = "a"};
    script.fails = SILT_ERR_STORE_LOST;
    script.fails_until = 1;
    script.open_fails_at = 2; /* the first try to reopen fails, too */
    script.open_fails = SILT_ERR_DISK_FULL;
    end_after(2);
    ck_assert_int_eq(run(HEAD "streams: [ { match: a } ]\n", false, &err, &log), 0);
    ck_assert_uint_eq(script.opened, 3);
    ck_assert_uint_eq(times(log, "event=waiting"), 2);
    free(log);
}
END_TEST

START_TEST(loop__a_signal_ends_a_pass_that_waits)
{
    char *log;
    struct silt_err err = {0};
    parts[0] = (struct part){.key = "a"};
    script.waits = true;
    end_after(1);
    ck_assert_int_eq(run(HEAD "streams: [ { match: a } ]\n", false, &err, &log), 0);
    ck_assert_ptr_nonnull(strstr(log, "event=stopped reason=signal exit=0"));
    free(log);
}
END_TEST

static void change_config(const char *text, const char *words, const char *other)
{
    struct silt_err err = {0};
    struct silt_loop *loop = loop_of(HEAD "streams: [ { match: a }, { match: b } ]\n", false);
    int kept = dup(STDERR_FILENO),
        fd = open(test_path("log"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    dup2(fd, STDERR_FILENO);
    test_file_write(test_path("silt.yaml"), text, strlen(text));
    raise(SIGHUP);
    script.signal = SIGTERM;
    script.signal_at = 1;
    silt_log_init(false, SILT_LOG_INFO);
    int code = silt_loop_run(loop, &err);
    size_t count = loop->roster.count;
    silt_loop_free(loop);
    dup2(kept, STDERR_FILENO);
    char *log = test_file_read(test_path("log"), NULL);
    ck_assert_int_eq(code, 0);
    ck_assert_msg(strstr(log, words) != NULL, "no %s in %s", words, log);
    ck_assert_msg(strstr(log, other) != NULL, "no %s in %s", other, log);
    ck_assert_uint_eq(count, 2);
    free(log);
}

START_TEST(loop__a_damaged_row_keeps_no_other_stream_waiting)
{
    script.damaged_row = true;
    struct silt_loop *loop = loop_of(HEAD "streams: [ { match: 'known:*' } ]\n", false);
    ck_assert_uint_eq(loop->roster.count, 1);
    ck_assert(silt_roster_find(&loop->roster, silt_view_str("known:1")) != NULL);
    silt_loop_free(loop);
}
END_TEST

START_TEST(loop__a_reload_finds_what_the_archive_knows)
{
    static const char text[] = HEAD "streams: [ { match: b }, { match: 'known:*' } ]\n";
    script.damaged_row = true;
    struct silt_loop *loop = loop_of(HEAD "streams: [ { match: a }, { match: b } ]\n", false);
    ck_assert(silt_roster_find(&loop->roster, silt_view_str("known:1")) == NULL);
    test_file_write(test_path("silt.yaml"), text, strlen(text));
    silt_loop_reload(loop);
    ck_assert_uint_eq(loop->roster.count, 2);
    ck_assert(silt_roster_find(&loop->roster, silt_view_str("known:1")) != NULL);
    silt_loop_free(loop);
}
END_TEST

START_TEST(loop__a_failed_look_at_the_archives_rows_is_made_again)
{
    script.rows_fail_at = 2; /* at the second opening, after the store had to be opened again */
    script.fails = SILT_ERR_STORE_LOST;
    script.fails_until = 1; /* the first pass */
    script.signal = SIGTERM;
    script.signal_at = 2;
    struct silt_err err = {0};
    struct silt_loop *loop = loop_of(HEAD "streams: [ { match: a } ]\n", false);
    ck_assert_int_eq(silt_loop_run(loop, &err), 0);
    silt_loop_free(loop);
    ck_assert_uint_eq(script.opened, 3);
}
END_TEST

START_TEST(loop__a_reload_takes_a_good_configuration)
{
    change_config(HEAD "streams: [ { match: b, keep: { entries: 1 } }, { match: c } ]\n",
                  "event=reloaded", "streams=2");
    ck_assert_uint_eq(script.opened, 1);
}
END_TEST

START_TEST(loop__a_reload_with_another_server_opens_the_archive_again)
{
    change_config(
        "valkey: { address: unix:/other }\narchive: { path: /nowhere }\nstreams: [ { match: b }, { match: c } ]\n",
        "event=reloaded", "streams=2");
    ck_assert_uint_eq(script.opened, 2);
}
END_TEST

START_TEST(loop__a_reload_refuses_a_bad_configuration_and_keeps_the_old)
{
    change_config(HEAD "streams:\n  - match: a\n    kep: 1\n", "event=reload-refused",
                  "silt.yaml:5:5: ");
    ck_assert_uint_eq(parts[0].passes, 0);
}
END_TEST

START_TEST(loop__a_reload_cannot_move_the_archive)
{
    change_config(
        "valkey: { address: unix:/nowhere }\narchive: { path: /else }\nstreams: [ { match: a } ]\n",
        "event=reload-refused", "only with a restart");
}
END_TEST

START_TEST(loop__pauses_double_up_to_their_limit)
{
    ck_assert_uint_eq(silt_backoff_ms(1, 250, 10000), 250);
    ck_assert_uint_eq(silt_backoff_ms(2, 250, 10000), 500);
    ck_assert_uint_eq(silt_backoff_ms(6, 250, 10000), 8000);
    ck_assert_uint_eq(silt_backoff_ms(7, 250, 10000), 10000);
    ck_assert_uint_eq(silt_backoff_ms(4000000000u, 250, 10000), 10000);
}
END_TEST

/* ---- through the socket: a child process asks while the loop runs ---- */

/* One connection, one request; its answer replaces what stood at answer_path. False: none came in time. */
static bool ask_once(const struct sockaddr_un *address, const char *request,
                     const char *answer_path)
{
    const struct timeval limit = {20, 0};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0),
        out = open(answer_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    bool well = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 &&
                write(fd, request, strlen(request)) > 0;
    for (char byte = 0; well && byte != '\n';)
        well = read(fd, &byte, 1) == 1 && write(out, &byte, 1) == 1;
    close(out);
    close(fd);
    return well;
}

static pid_t ask(const char *request, unsigned times, const char *answer_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", test_path("c.sock"));
    pid_t parent = getpid(), pid = fork();
    if (pid != 0) return pid;
    test_die_with_parent(parent);
    while (times > 0 && ask_once(&address, request, answer_path))
        times--;
    if (times > 0) unlink(answer_path);
    kill(parent, SIGTERM);
    _exit(0);
}

/* The last answer to a request put so many times to a running loop. Owns: json_decref. */
static json_t *asked_often(const char *streams, const char *request, unsigned times)
{
    char text[600];
    struct silt_err err = {0};
    const char *path = test_path("answer");
    snprintf(text, sizeof text, "%scontrol: %s\nstreams: [ %s ]\n", HEAD, test_path("c.sock"),
             streams);
    struct silt_loop *loop = loop_of(text, false);
    silt_log_init(false, SILT_LOG_ERROR);
    pid_t pid = ask(request, times, path);
    int code = silt_loop_run(loop, &err);
    silt_loop_free(loop);
    ck_assert_int_eq(code, 0);
    ck_assert_int_gt(pid, 0);
    char *line = test_file_read(path, NULL);
    json_t *answer = json_loads(line, 0, NULL);
    if (!answer) test_die("no JSON: %s", line);
    free(line);
    return answer;
}

static json_t *asked(const char *streams, const char *request)
{
    return asked_often(streams, request, 1);
}

static const char *error_code(const json_t *answer)
{
    return json_string_value(json_object_get(json_object_get(answer, "error"), "code"));
}

START_TEST(loop__sync_answers_after_a_pass_that_began_later)
{
    parts[0] = (struct part){.key = "a", .more = 3};
    json_t *answer = asked("{ match: a }", "{\"verb\":\"sync\",\"key\":\"a\"}\n");
    ck_assert(json_is_true(json_object_get(answer, "ok")));
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(answer, "stream"), "key")),
                     "a");
    ck_assert_uint_ge(parts[0].passes, 4);
    ck_assert_uint_ge(parts[0].wholes, 1); /* fold: on-trim would leave the live window unfolded */
    json_decref(answer);
}
END_TEST

/* A request is read in one round of events or in the next, as its bytes come: either way it is heard before the idle loop sleeps again. */
START_TEST(loop__an_idle_loop_hears_each_request)
{
    parts[0] = (struct part){.key = "a"};
    json_t *answer =
        asked_often("{ match: a, fold-delay: 60s }", "{\"verb\":\"sync\",\"key\":\"a\"}\n", 16);
    ck_assert(json_is_true(json_object_get(answer, "ok")));
    ck_assert_uint_ge(parts[0].passes, 16);
    json_decref(answer);
}
END_TEST

START_TEST(loop__sync_of_all_lists_those_that_are_held)
{
    parts[0] = (struct part){.key = "a"};
    parts[1] = (struct part){.key = "b", .verdict = SILT_VERDICT_AUDIT_PENDING};
    json_t *answer = asked("{ match: a }, { match: b }", "{\"verb\":\"sync\"}\n");
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "synced")), 1);
    const json_t *left = json_array_get(json_object_get(answer, "not_synced"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(left, "key")), "b");
    ck_assert_str_eq(json_string_value(json_object_get(left, "code")), "SILT_ERR_DOUBT");
    json_decref(answer);
}
END_TEST

START_TEST(loop__sync_tells_why_it_cannot)
{
    parts[0] = (struct part){.key = "a", .status = SILT_ERR_SERVER_DENIED, .until = 99};
    json_t *answer = asked("{ match: a }", "{\"verb\":\"sync\",\"key\":\"a\"}\n");
    ck_assert_str_eq(error_code(answer), "SILT_ERR_SERVER_DENIED");
    json_decref(answer);
    answer = asked("{ match: a }", "{\"verb\":\"sync\",\"key\":\"other\"}\n");
    ck_assert_str_eq(error_code(answer), "SILT_ERR_UNKNOWN_STREAM");
    json_decref(answer);
    script.fails = SILT_ERR_SERVER_AWAY;
    script.fails_until = 9999;
    answer = asked("{ match: a }", "{\"verb\":\"sync\"}\n");
    ck_assert_str_eq(error_code(answer), "SILT_ERR_SERVER_AWAY");
    json_decref(answer);
}
END_TEST

START_TEST(loop__a_stream_is_adopted_between_two_passes)
{
    parts[0] = (struct part){.key = "a"};
    json_t *answer = asked("{ match: a }", "{\"verb\":\"adopt\",\"key\":\"a\"}\n");
    ck_assert(json_is_true(json_object_get(answer, "ok")));
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "epoch")), 7);
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "from")), 1);
    json_decref(answer);
    answer = asked("{ match: held }", "{\"verb\":\"release\",\"key\":\"held\"}\n");
    ck_assert_str_eq(error_code(answer), "SILT_ERR_CLAIMED");
    json_decref(answer);
    answer = asked("{ match: a }", "{\"verb\":\"adopt\",\"key\":\"other\"}\n");
    ck_assert_str_eq(error_code(answer), "SILT_ERR_UNKNOWN_STREAM");
    json_decref(answer);
    answer = asked("{ match: a }", "{\"verb\":\"adopt\"}\n");
    ck_assert_str_eq(error_code(answer), "SILT_ERR_USAGE");
    json_decref(answer);
}
END_TEST

START_TEST(loop__a_released_stream_is_not_synced)
{
    parts[0] = (struct part){.key = "a", .verdict = SILT_VERDICT_RELEASED};
    json_t *answer = asked("{ match: a }", "{\"verb\":\"sync\",\"key\":\"a\"}\n");
    ck_assert_str_eq(error_code(answer), "SILT_ERR_PROTECTED");
    json_decref(answer);
}
END_TEST

START_TEST(loop__status_is_answered_while_a_pass_waits)
{
    parts[0] = (struct part){.key = "a"};
    script.waits = true;
    json_t *answer = asked("{ match: a }", "{\"verb\":\"status\"}\n");
    ck_assert(json_is_true(json_object_get(answer, "ok")));
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "stream_count")), 1);
    const json_t *stream = json_array_get(json_object_get(answer, "streams"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(stream, "key")), "a");
    ck_assert_str_eq(json_string_value(json_object_get(stream, "state")), "new");
    ck_assert_str_eq(json_string_value(json_object_get(stream, "kind")), "plain");
    ck_assert(json_is_false(json_object_get(answer, "connected")));
    json_decref(answer);
}
END_TEST

TEST_MAIN(loop__an_idle_loop_hears_each_request, loop__a_damaged_row_keeps_no_other_stream_waiting,
          loop__a_reload_finds_what_the_archive_knows,
          loop__a_failed_look_at_the_archives_rows_is_made_again,
          loop__once_goes_on_while_there_is_more_and_then_ends,
          loop__once_ends_with_1_where_something_is_found,
          loop__once_ends_with_the_code_of_what_stops_it,
          loop__once_ends_with_the_servers_code_when_no_stream_can_be_served,
          loop__once_tries_a_passing_failure_again,
          loop__a_quiet_stream_is_looked_at_less_and_less_up_to_idle_look,
          loop__a_busy_stream_is_looked_at_every_fold_delay,
          loop__streams_that_are_due_share_a_pass, loop__a_failing_stream_backs_off_alone,
          loop__an_absent_server_is_said_once_and_its_return, loop__a_lost_store_is_opened_again,
          loop__a_signal_ends_a_pass_that_waits, loop__a_reload_takes_a_good_configuration,
          loop__a_reload_with_another_server_opens_the_archive_again,
          loop__a_reload_refuses_a_bad_configuration_and_keeps_the_old,
          loop__a_reload_cannot_move_the_archive, loop__pauses_double_up_to_their_limit,
          loop__sync_answers_after_a_pass_that_began_later,
          loop__sync_of_all_lists_those_that_are_held, loop__sync_tells_why_it_cannot,
          loop__a_stream_is_adopted_between_two_passes, loop__a_released_stream_is_not_synced,
          loop__status_is_answered_while_a_pass_waits)
