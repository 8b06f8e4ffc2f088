/* See loop.h. This file decides when; what a pass does is the cycle's. */
#include "loop_priv.h"

#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "log.h"

#define PUMP_MS 10     /* the event loop gets a turn at most so often while a pass waits */
#define COMPANY_PART 4 /* what is due within a quarter of its own interval goes along, */
#define COMPANY_MOST_MS \
    250 /* but not much sooner than it would: quiet streams are to be left in peace */
#define PASS_STREAMS 512    /* of one pass: their statuses become visible between passes */
#define INTERVAL_MIN_MS 20  /* with fold-delay 0 */
#define SCAN_CALLS 4        /* in one step */
#define SCAN_STEP_MS 50     /* between the steps of a sweep */
#define SWEEP_PAUSE_MS 5000 /* between sweeps, at least; and four times what the last one took */
#define SCAN_DENIED_MS 30000
#define TROUBLE_FIRST_MS 250
#define TROUBLE_MOST_MS 10000
#define STREAM_FIRST_MS 500
#define STREAM_MOST_MS 60000
#define ONCE_TRIES 5 /* of a stream that fails in a way that may pass */
#define ONCE_IDLE 3  /* passes without change that count as an end */

uint64_t silt_loop_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t silt_backoff_ms(unsigned failures, uint64_t first_ms, uint64_t most_ms)
{
    unsigned doublings = failures > 0 ? failures - 1 : 0;
    uint64_t pause = doublings < 32 ? first_ms << doublings : most_ms;
    return pause < most_ms ? pause : most_ms;
}

/* Between nine tenths of it and all of it: streams and archivers that began together drift apart. */
static uint64_t jitter(struct silt_loop *loop, uint64_t ms)
{
    loop->random ^= loop->random << 13;
    loop->random ^= loop->random >> 7;
    loop->random ^= loop->random << 17;
    return ms - (ms / 10 ? loop->random % (ms / 10) : 0);
}

bool silt_loop_cancelled(void *ctx)
{
    struct silt_loop *loop = ctx;
    if (!pthread_equal(pthread_self(), loop->thread)) return false;
    uint64_t now = silt_loop_now();
    if (now - loop->pumped_ms >= PUMP_MS) {
        loop->pumped_ms = now;
        event_base_loop(loop->base, EVLOOP_NONBLOCK);
    }
    return loop->stopping;
}

/* ---- trouble of all streams ---- */

void silt_loop_trouble(struct silt_loop *loop, enum silt_status status, const struct silt_err *err)
{
    uint64_t now = silt_loop_now();
    bool is_new = silt_report_fail(&loop->trouble, status, err, now);
    loop->trouble_count++;
    uint64_t pause =
        jitter(loop, silt_backoff_ms(loop->trouble_count, TROUBLE_FIRST_MS, TROUBLE_MOST_MS));
    loop->retry_ms = now + pause;
    if (is_new && !loop->options.once)
        SILT_LOG(SILT_LOG_WARN, "waiting", SILT_STR("code", silt_status_name(status)),
                 SILT_STR("reason", loop->trouble.err.sentence),
                 SILT_STR("hint", loop->trouble.err.hint), SILT_NUM("retry_ms", pause));
    if (status == SILT_ERR_STORE_LOST || status == SILT_ERR_IO) loop->store_suspect = true;
    silt_loop_fail_waiters(loop, status, &loop->trouble.err);
    if (loop->options.once) {
        loop->ended = true;
        loop->exit_code = silt_status_exit_code(status);
        loop->end_err = loop->trouble.err;
    }
}

static void trouble_over(struct silt_loop *loop)
{
    if (loop->trouble.is_set)
        SILT_LOG(SILT_LOG_INFO, "back", SILT_STR("after", silt_status_name(loop->trouble.err.code)),
                 SILT_NUM("away_ms", silt_loop_now() - loop->trouble.since_ms),
                 SILT_STR("server", silt_conn_server(silt_archiver_conn(loop->archiver))));
    loop->trouble.is_set = false;
    loop->trouble_count = 0;
}

/* ---- finding streams ---- */

static void announce(struct silt_loop *loop)
{
    for (; loop->announced < loop->roster.count; loop->announced++) {
        const struct silt_roster_stream *stream = loop->roster.streams[loop->announced];
        struct silt_view key = silt_buf_view(&stream->key);
        if (stream->other)
            SILT_LOG(SILT_LOG_WARN, "ambiguous", SILT_KEY("stream", key),
                     SILT_KEY("match", stream->config->match),
                     SILT_KEY("other", stream->other->match),
                     SILT_STR("reason", "two patterns match; the stream is left alone"),
                     SILT_STR("hint", "name the key itself in the configuration"));
        else
            SILT_LOG(SILT_LOG_DEBUG, "found", SILT_KEY("stream", key),
                     SILT_KEY("match", stream->config->match));
    }
}

static void scan(struct silt_loop *loop)
{
    struct silt_err err = {0};
    uint64_t now = silt_loop_now();
    bool hurry = !loop->swept; /* the first sweep: nothing is known yet */
    if (now < loop->scan_due_ms || !silt_roster_has_patterns(&loop->roster)) return;
    if (!loop->sweeping) loop->sweep_began_ms = now;
    loop->sweeping = true;
    enum silt_status status = silt_roster_scan(&loop->roster, silt_archiver_conn(loop->archiver),
                                               hurry ? SCAN_CALLS * 16 : SCAN_CALLS, &err);
    announce(loop);
    now = silt_loop_now();
    loop->scan_due_ms = hurry ? now : now + SCAN_STEP_MS;
    if (status == SILT_OK) return;
    loop->sweeping = false;
    if (status == SILT_END) {
        uint64_t pause = 4 * (now - loop->sweep_began_ms);
        loop->swept = true;
        loop->scan_error.is_set = false;
        loop->scan_due_ms = now + jitter(loop, pause > SWEEP_PAUSE_MS ? pause : SWEEP_PAUSE_MS);
    } else if (status == SILT_ERR_SERVER_DENIED || status == SILT_ERR_SERVER_REFUSED) {
        /* The exact keys go on. */
        loop->swept = true;
        loop->scan_due_ms = now + SCAN_DENIED_MS;
        if (silt_report_fail(&loop->scan_error, status, &err, now))
            SILT_LOG(SILT_LOG_WARN, "patterns-not-searched", SILT_STR("reason", err.sentence),
                     SILT_STR("hint", "allow scan, or name the keys themselves"));
    } else if (status != SILT_ERR_CANCELLED) {
        silt_loop_trouble(loop, status, &err);
    }
}

/* ---- after a pass ---- */

/* Folds, trims, gaps and verdicts the cycle has told itself; not the state of a stream that the archive has no row for. */
static void say_work(const struct silt_roster_stream *stream, const struct silt_report *before)
{
    const struct silt_report *after = &stream->report;
    struct silt_view key = silt_buf_view(&stream->key);
    if (after->awaited && !before->awaited)
        SILT_LOG(SILT_LOG_INFO, "waiting", SILT_KEY("stream", key),
                 SILT_STR("reason", after->reason));
    else if (after->held && !before->held && after->life == 0 && !stream->report.error.is_set &&
             stream->work->status == SILT_OK) /* a failure is told as one */
        SILT_LOG(SILT_LOG_WARN, "held", SILT_KEY("stream", key), SILT_STR("reason", after->reason));
    if (after->held_by != before->held_by || strcmp(after->held_name, before->held_name) != 0)
        SILT_LOG(SILT_LOG_DEBUG, "held-by", SILT_KEY("stream", key),
                 SILT_STR("by", silt_held_by_name(after->held_by)),
                 SILT_STR("name", after->held_name), SILT_ID("threshold", after->threshold));
}

static bool has_said(const struct silt_roster_stream *stream, uint64_t cause)
{
    for (size_t i = 0; i < sizeof stream->said / sizeof stream->said[0]; i++)
        if (stream->said[i] == cause) return true;
    return false;
}

/* A cause is said once until the stream is well again, also where two of them take turns. One that lies with the server or its user meets every stream
 * at once: then one line, not one for each. What concerns one key is always said. */
static bool is_said(const struct silt_loop *loop, const struct silt_roster_stream *stream,
                    uint64_t cause)
{
    const struct silt_err *err = &stream->report.error.err;
    bool common = err->code == SILT_ERR_SERVER_DENIED || err->code == SILT_ERR_SERVER_READONLY ||
                  err->code == SILT_ERR_SERVER_OOM || err->code == SILT_ERR_SERVER_BUSY ||
                  err->code == SILT_ERR_SERVER_REFUSED || err->code == SILT_ERR_SERVER_AWAY;
    if (has_said(stream, cause)) return true;
    if (!common || strstr(err->sentence, "access a key")) return false;
    for (size_t i = 0; i < loop->roster.count; i++) {
        const struct silt_roster_stream *other = loop->roster.streams[i];
        if (other->report.error.is_set && has_said(other, cause)) return true;
    }
    return false;
}

static void say_failure(struct silt_loop *loop, struct silt_roster_stream *stream)
{
    const struct silt_err *err = &stream->report.error.err;
    uint64_t cause = silt_checksum(silt_view_str(err->sentence), (uint64_t)err->code) | 1;
    bool said = is_said(loop, stream, cause);
    if (!said) stream->said[stream->said_count++ % 4] = cause;
    SILT_LOG(said ? SILT_LOG_DEBUG : SILT_LOG_WARN, "failing",
             SILT_KEY("stream", silt_buf_view(&stream->key)),
             SILT_STR("code", silt_status_name(err->code)), SILT_STR("reason", err->sentence),
             SILT_STR("hint", err->hint));
}

static void stream_failed(struct silt_loop *loop, struct silt_roster_stream *stream,
                          enum silt_status status, const struct silt_err *err)
{
    uint64_t now = silt_loop_now();
    bool is_new = silt_report_fail(&stream->report.error, status, err, now);
    stream->ended_pass = loop->pass_number;
    stream->failures++;
    stream->due_ms =
        now + jitter(loop, silt_backoff_ms(stream->failures, STREAM_FIRST_MS, STREAM_MOST_MS));
    if (silt_status_class(status) != SILT_CLASS_RETRY || stream->failures >= ONCE_TRIES)
        stream->done = true;
    if (is_new) say_failure(loop, stream);
}

static void stream_well(struct silt_loop *loop, struct silt_roster_stream *stream)
{
    const struct silt_work *work = stream->work;
    uint64_t now = silt_loop_now(), idle = loop->config->idle_look_ms;
    uint64_t least = stream->config->fold_delay_ms;
    if (least < INTERVAL_MIN_MS) least = INTERVAL_MIN_MS;
    if (stream->report.error.is_set)
        SILT_LOG(stream->said_count ? SILT_LOG_INFO : SILT_LOG_DEBUG, "recovered",
                 SILT_KEY("stream", silt_buf_view(&stream->key)),
                 SILT_NUM("after_ms", now - stream->report.error.since_ms));
    stream->report.error.is_set = false;
    stream->said_count = 0;
    memset(stream->said, 0, sizeof stream->said);
    stream->failures = 0;
    if (work->more) {
        stream->interval_ms = least;
        stream->due_ms = now;
        return;
    }
    stream->synced_pass = loop->pass_number;
    if (stream->whole_from <= loop->pass_number) stream->whole_from = 0;
    if (work->changed || stream->interval_ms == 0)
        stream->interval_ms = least;
    else
        stream->interval_ms *= 2;
    if (stream->interval_ms > idle) stream->interval_ms = idle > least ? idle : least;
    stream->due_ms = now + jitter(loop, stream->interval_ms);
    stream->idle_passes = work->changed ? 0 : stream->idle_passes + 1;
    if (work->settled || stream->report.held || stream->idle_passes >= ONCE_IDLE)
        stream->done = true;
    if (loop->options.once) stream->due_ms = now;
}

static void after_pass(struct silt_loop *loop, struct silt_roster_stream *stream, bool whole)
{
    struct silt_work *work = stream->work;
    struct silt_report before = stream->report;
    if (work->looked_at_ms || work->status != SILT_OK)
        silt_report_take(&stream->report, work, silt_loop_now());
    say_work(stream, &before);
    if (!whole) return; /* the pass was stopped: how far it came with this one is not known */
    stream->ended_pass = loop->pass_number;
    if (work->status == SILT_OK)
        stream_well(loop, stream);
    else
        stream_failed(loop, stream, work->status, &work->err);
}

/* ---- a pass ---- */

static bool is_due(const struct silt_loop *loop, const struct silt_roster_stream *stream,
                   uint64_t now, bool with_company)
{
    if (stream->other || (loop->options.once && stream->done)) return false;
    uint64_t company = stream->interval_ms / COMPANY_PART;
    if (company > COMPANY_MOST_MS) company = COMPANY_MOST_MS;
    return stream->due_ms <= now + (with_company ? company : 0);
}

static enum silt_status reserve_works(struct silt_loop *loop)
{
    void *works = loop->works, *due = loop->due;
    if (silt_grow(&works, &loop->works_cap, PASS_STREAMS, sizeof *loop->works) != 0)
        return SILT_ERR_MEMORY;
    loop->works = works;
    if (silt_grow(&due, &loop->due_cap, PASS_STREAMS, sizeof *loop->due) != 0)
        return SILT_ERR_MEMORY;
    loop->due = due;
    return SILT_OK;
}

/* SILT_END: there is no work to be had; the stream has failed. */
static enum silt_status make_work(struct silt_loop *loop, struct silt_roster_stream *stream,
                                  struct silt_err *err)
{
    if (stream->work) return SILT_OK;
    enum silt_status status = silt_archiver_work(loop->archiver, silt_buf_view(&stream->key),
                                                 stream->config, &stream->work, err);
    if (status == SILT_ERR_MEMORY) return status;
    if (status != SILT_OK) {
        stream_failed(loop, stream, status, err);
        return SILT_END;
    }
    stream->gaps_before = stream->work->stream.row.gap_entries;
    stream->report.gap_entries = stream->gaps_before;
    return SILT_OK;
}

/* Those overdue first, then company. The turn goes round, so that a crowd never shuts anybody out. */
static enum silt_status gather(struct silt_loop *loop, size_t *ret, struct silt_err *err)
{
    struct silt_roster *roster = &loop->roster;
    uint64_t now = silt_loop_now();
    size_t overdue = 0;
    *ret = 0;
    for (size_t i = 0; i < roster->count; i++)
        overdue += is_due(loop, roster->streams[i], now, false);
    if (overdue == 0) return SILT_OK;
    loop->pass_number++;
    if (reserve_works(loop) != SILT_OK) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    size_t begin = loop->turn % roster->count;
    for (size_t i = 0; i < 2 * roster->count && *ret < PASS_STREAMS; i++) {
        bool company = i >= roster->count;
        size_t index = (begin + i) % roster->count;
        struct silt_roster_stream *stream = roster->streams[index];
        if (!is_due(loop, stream, now, company) || (company && is_due(loop, stream, now, false)))
            continue;
        enum silt_status status = make_work(loop, stream, err);
        if (status == SILT_END) continue;
        if (status != SILT_OK) return status;
        stream->work->whole = stream->whole_from > 0;
        loop->due[*ret] = stream;
        loop->works[(*ret)++] = stream->work;
        if (!company) loop->turn = index + 1;
    }
    return SILT_OK;
}

static void pass(struct silt_loop *loop)
{
    struct silt_err err = {0};
    size_t count;
    enum silt_status status = gather(loop, &count, &err);
    if (status == SILT_OK && count == 0) return;
    if (status == SILT_OK) {
        status = silt_archiver_pass(loop->archiver, loop->works, count, &err);
        for (size_t i = 0; i < count; i++)
            after_pass(loop, loop->due[i], status == SILT_OK);
    }
    if (status == SILT_OK)
        trouble_over(loop);
    else if (status != SILT_ERR_CANCELLED || !loop->stopping)
        silt_loop_trouble(loop, status, &err);
}

/* ---- once ---- */

/* All is done: what came of it. */
static void end_once(struct silt_loop *loop)
{
    const struct silt_report_error *first = NULL;
    bool well = false, finding = loop->scan_error.is_set;
    for (size_t i = 0; i < loop->roster.count; i++) {
        const struct silt_roster_stream *stream = loop->roster.streams[i];
        const struct silt_report *report = &stream->report;
        bool failed = report->error.is_set;
        if (failed && !first) first = &report->error;
        bool held = report->held && !report->awaited;
        if (failed || stream->other || held || report->gap_entries > stream->gaps_before)
            finding = true;
        else if (!report->awaited)
            well = true;
    }
    loop->ended = true;
    loop->exit_code = finding ? 1 : 0;
    /* Nothing worked at all, and the server (or another archiver) is why: that is not a finding but a failure. */
    if (first && !well && silt_status_exit_code(first->err.code) >= 4) {
        loop->exit_code = silt_status_exit_code(first->err.code);
        loop->end_err = first->err;
    }
}

static void check_once(struct silt_loop *loop)
{
    if (!loop->options.once || loop->ended) return;
    if (!loop->swept && silt_roster_has_patterns(&loop->roster)) return;
    for (size_t i = 0; i < loop->roster.count; i++)
        if (!loop->roster.streams[i]->other && !loop->roster.streams[i]->done) return;
    end_once(loop);
}

/* ---- the loop ---- */

static uint64_t next_moment(const struct silt_loop *loop, uint64_t now)
{
    uint64_t next = now + 60000;
    if (loop->trouble.is_set && loop->retry_ms > now) return loop->retry_ms;
    if (silt_roster_has_patterns(&loop->roster) && loop->scan_due_ms < next)
        next = loop->scan_due_ms;
    for (size_t i = 0; i < loop->roster.count; i++) {
        const struct silt_roster_stream *stream = loop->roster.streams[i];
        if (stream->other || (loop->options.once && stream->done)) continue;
        if (stream->due_ms < next) next = stream->due_ms;
    }
    return next;
}

/* What is asked for before the wait (a request read by the first look at the events) counts for how long it is. */
static void wait_for_work(struct silt_loop *loop)
{
    event_base_loop(loop->base, EVLOOP_NONBLOCK); /* signals first, however much is due */
    uint64_t now = silt_loop_now(), moment = next_moment(loop, now);
    uint64_t ms = moment > now ? moment - now : 0;
    struct timeval pause = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
    if (ms == 0 || loop->stopping || loop->reload_asked) return;
    if (evtimer_add(loop->wake, &pause) == 0) event_base_loop(loop->base, EVLOOP_ONCE);
    evtimer_del(loop->wake);
}

static void step(struct silt_loop *loop)
{
    struct silt_err err = {0};
    if (loop->reload_asked) silt_loop_reload(loop);
    if (loop->trouble.is_set && silt_loop_now() < loop->retry_ms) return;
    if (loop->store_suspect) silt_loop_close_archiver(loop);
    if (!loop->archiver) {
        enum silt_status status = silt_loop_open_archiver(loop, &err);
        if (status != SILT_OK) {
            silt_loop_trouble(loop, status, &err);
            return;
        }
    }
    scan(loop);
    if (loop->stopping || (loop->trouble.is_set && silt_loop_now() < loop->retry_ms)) return;
    pass(loop);
    silt_loop_serve_waiters(loop);
    check_once(loop);
}

int silt_loop_run(struct silt_loop *loop, struct silt_err *err)
{
    loop->thread = pthread_self();
    SILT_LOG(SILT_LOG_INFO, "started", SILT_STR("version", SILT_VERSION),
             SILT_NUM("pid", (uint64_t)getpid()), SILT_STR("archive", loop->config->archive_path),
             SILT_STR("server", loop->config->address),
             SILT_NUM("streams", loop->config->stream_count));
    const char *place = silt_store_place(loop->config->archive_path);
    if (place)
        SILT_LOG(SILT_LOG_WARN, "archive-place", SILT_STR("archive", loop->config->archive_path),
                 SILT_STR("lies-on", place), SILT_STR("hint", "put the archive on a local disk"));
    while (!loop->stopping && !loop->ended) {
        wait_for_work(loop);
        if (!loop->stopping) step(loop);
    }
    SILT_LOG(SILT_LOG_INFO, "stopped", SILT_STR("reason", loop->ended ? "done" : "signal"),
             SILT_NUM("exit", (uint64_t)loop->exit_code));
    if (loop->exit_code > 1 && err) *err = loop->end_err;
    return loop->exit_code;
}

static void on_signal(evutil_socket_t number, short what, void *ctx)
{
    struct silt_loop *loop = ctx;
    (void)what;
    if (number == SIGHUP)
        loop->reload_asked = true;
    else
        loop->stopping = true;
}

static void on_wake(evutil_socket_t fd, short what, void *ctx)
{
    (void)fd;
    (void)what;
    (void)ctx;
}

static enum silt_status set_up(struct silt_loop *loop, struct silt_err *err)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    signal(SIGPIPE, SIG_IGN);
    if (getpid() == 1)
        signal(SIGCHLD,
               SIG_IGN); /* as the first process of a container: orphans leave no zombies */
    loop->base = event_base_new();
    if (loop->base) loop->wake = evtimer_new(loop->base, on_wake, loop);
    if (!loop->wake) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    for (size_t i = 0; i < 3; i++) {
        loop->signals[i] = evsignal_new(loop->base, numbers[i], on_signal, loop);
        if (!loop->signals[i] || evsignal_add(loop->signals[i], NULL) != 0)
            return silt_fail(err, SILT_ERR_MEMORY, NULL);
    }
    sigset_t early; /* main.c held it back until somebody listens */
    sigemptyset(&early);
    sigaddset(&early, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &early, NULL);
    if (silt_roster_init(&loop->roster, loop->config) != SILT_OK ||
        silt_roster_add_exact(&loop->roster) != SILT_OK)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    enum silt_status status = silt_loop_open_archiver(loop, err);
    if (status != SILT_OK || loop->options.once || !loop->config->control) return status;
    struct silt_control_handler handler = silt_loop_handler;
    handler.ctx = loop;
    return silt_control_open(loop->base, loop->config->control, &handler, &loop->control, err);
}

enum silt_status silt_loop_new(struct silt_config *config, const struct silt_loop_options *options,
                               struct silt_loop **ret, struct silt_err *err)
{
    struct silt_loop *loop = silt_calloc(1, sizeof *loop);
    if (!loop) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    loop->config = config;
    loop->options = *options;
    loop->thread = pthread_self();
    loop->started_ms = silt_loop_now();
    if (getrandom(&loop->random, sizeof loop->random, GRND_NONBLOCK) < 0)
        loop->random = loop->started_ms;
    loop->random |= 1;
    enum silt_status status = set_up(loop, err);
    if (status != SILT_OK) {
        loop->config = NULL; /* stays the caller's */
        silt_loop_free(loop);
        return status;
    }
    announce(loop);
    *ret = loop;
    return SILT_OK;
}

void silt_loop_free(struct silt_loop *loop)
{
    if (!loop) return;
    silt_loop_free_waiters(loop);
    silt_control_close(loop->control);
    silt_loop_close_archiver(loop);
    silt_roster_release(&loop->roster);
    for (size_t i = 0; i < 3; i++)
        if (loop->signals[i]) event_free(loop->signals[i]);
    if (loop->wake) event_free(loop->wake);
    if (loop->base) event_base_free(loop->base);
    silt_free(loop->works);
    silt_free(loop->due);
    silt_config_free(loop->config);
    silt_free(loop);
}
