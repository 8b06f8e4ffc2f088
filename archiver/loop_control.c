/* What the control socket asks of the loop. Called inside event_base_loop, also while a pass is at work: it reads reports, never works. */
#include <stdio.h>
#include <unistd.h>

#include "adopt.h"
#include "alloc.h"
#include "loop_priv.h"

/* ---- status ---- */

static json_t *stream_json(const struct silt_loop *loop, const struct silt_roster_stream *stream)
{
    uint64_t now = silt_loop_now();
    return silt_report_json(&stream->report, silt_buf_view(&stream->key), stream->config, now,
                            stream->due_ms > now && !stream->other ? stream->due_ms - now : 0);
    (void)loop;
}

static json_t *oldest_unarchived(const struct silt_loop *loop)
{
    uint64_t most = 0, now = silt_loop_now();
    for (size_t i = 0; i < loop->roster.count; i++) {
        const struct silt_report *report = &loop->roster.streams[i]->report;
        if (!report->looked || report->lag_entries == 0) continue;
        uint64_t age = report->lag_ms + (now - report->looked_ms);
        if (age > most) most = age;
    }
    return most ? json_integer((json_int_t)most) : json_null();
}

static json_t *streams_json(const struct silt_loop *loop, const struct silt_roster_stream *only)
{
    json_t *list = json_array();
    for (size_t i = 0; i < loop->roster.count && list; i++)
        if ((!only || only == loop->roster.streams[i]) &&
            json_array_append_new(list, stream_json(loop, loop->roster.streams[i])) != 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static enum silt_status unknown(struct silt_view key, struct silt_err *err)
{
    char shown[100];
    silt_escape(key, shown, sizeof shown);
    enum silt_status status =
        silt_fail(err, SILT_ERR_UNKNOWN_STREAM, "siltd does not archive %s", shown);
    silt_hint(err, "the configuration names no such key and has no pattern for it");
    return status;
}

static json_t *answer_status(void *ctx, const struct silt_view *key, struct silt_err *err)
{
    struct silt_loop *loop = ctx;
    struct silt_roster_stream *only = NULL;
    if (key) {
        only = silt_roster_find(&loop->roster, *key);
        if (!only) {
            (void)unknown(*key, err);
            return NULL;
        }
    }
    struct silt_conn *conn = loop->archiver ? silt_archiver_conn(loop->archiver) : NULL;
    bool open = conn && silt_conn_is_open(conn);
    json_t *server = open ? json_string(silt_conn_server(conn)) : NULL;
    uint64_t now = silt_loop_now();
    json_t *answer =
        json_pack("{s:s,s:i,s:I,s:o,s:o,s:o,s:b,s:o,s:o,s:I,s:o,s:o}", "version", SILT_VERSION,
                  "pid", (int)getpid(), "uptime_ms", (json_int_t)(now - loop->started_ms),
                  "archive", silt_json_bytes(silt_view_str(loop->config->archive_path)), "address",
                  silt_json_bytes(silt_view_str(loop->config->address)), "server",
                  server ? server : json_null(), "connected", open, "error",
                  silt_report_error_json(&loop->trouble, now), "patterns_error",
                  silt_report_error_json(&loop->scan_error, now), "stream_count",
                  (json_int_t)loop->roster.count, "oldest_unarchived_ms", oldest_unarchived(loop),
                  "streams", streams_json(loop, only));
    if (!answer) silt_fail(err, SILT_ERR_MEMORY, NULL);
    return answer;
}

/* ---- sync ---- */

static enum silt_status verdict_error(const struct silt_roster_stream *stream, struct silt_err *err)
{
    static const enum silt_status codes[] = {[SILT_VERDICT_CLEAR] = SILT_ERR_PROTECTED,
                                             [SILT_VERDICT_AUDIT_PENDING] = SILT_ERR_DOUBT,
                                             [SILT_VERDICT_CLAIMED] = SILT_ERR_CLAIMED,
                                             [SILT_VERDICT_OTHER_COPY] = SILT_ERR_OLDER_COPY,
                                             [SILT_VERDICT_WAITING] = SILT_ERR_UNKNOWN_STREAM,
                                             [SILT_VERDICT_RELEASED] = SILT_ERR_PROTECTED};
    const struct silt_report *report = &stream->report;
    enum silt_status status = silt_fail(
        err, codes[report->verdict], "%s",
        report->reason[0] ? report->reason : silt_status_sentence(codes[report->verdict]));
    silt_err_set_stream(err, stream->key.at, stream->key.len);
    return status;
}

static enum silt_status ambiguous_error(const struct silt_roster_stream *stream,
                                        struct silt_err *err)
{
    char one[60], other[60];
    silt_escape(stream->config->match, one, sizeof one);
    silt_escape(stream->other->match, other, sizeof other);
    enum silt_status status =
        silt_fail(err, SILT_ERR_CONFIG, "two patterns match, %s and %s; the stream is left alone",
                  one, other);
    silt_hint(err, "name the key itself in the configuration");
    silt_err_set_stream(err, stream->key.at, stream->key.len);
    return status;
}

/* SILT_OK: folded; SILT_END: not yet; else why it will not be. */
static enum silt_status outcome(const struct silt_roster_stream *stream, uint64_t since,
                                struct silt_err *err)
{
    if (stream->other) return ambiguous_error(stream, err);
    if (stream->ended_pass <= since) return SILT_END;
    if (stream->report.error.is_set) {
        *err = stream->report.error.err;
        return err->code;
    }
    if (stream->report.held) return verdict_error(stream, err);
    return stream->synced_pass > since ? SILT_OK : SILT_END;
}

/* ---- adopt, release ---- */

static json_t *marker_json(const struct silt_adopt_marker *marker)
{
    char at[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(marker->at, at);
    if (!marker->parsed)
        return json_pack("{s:n,s:n,s:o,s:s}", "uuid", "epoch", "marker",
                         silt_json_bytes(silt_view_str(marker->name)), "at", at);
    return json_pack("{s:s,s:I,s:o,s:s}", "uuid", marker->marker.uuid, "epoch",
                     (json_int_t)marker->marker.epoch, "marker",
                     silt_json_bytes(silt_view_str(marker->name)), "at", at);
}

static json_t *adoption_json(const struct silt_adoption *adoption, bool dry_run)
{
    json_t *from = json_array();
    for (size_t i = 0; i < adoption->marker_count && from; i++)
        if (json_array_append_new(from, marker_json(&adoption->markers[i])) != 0) {
            json_decref(from);
            from = NULL;
        }
    return json_pack("{s:b,s:b,s:b,s:s,s:I,s:o}", "already", adoption->already, "audit",
                     adoption->audit, "dry_run", dry_run, "uuid", adoption->uuid, "epoch",
                     (json_int_t)adoption->epoch, "from", from);
}

/* Between two passes: nothing of the stream is under way. The next pass begins with it. */
static void decide(struct silt_loop *loop, const struct silt_waiter *waiter)
{
    struct silt_err err = {0};
    struct silt_adoption adoption = {0};
    bool adopts = waiter->verb == SILT_CONTROL_ADOPT;
    struct silt_roster_stream *stream =
        silt_roster_find(&loop->roster, silt_buf_view(&waiter->key));
    enum silt_status status = stream ? SILT_OK : unknown(silt_buf_view(&waiter->key), &err);
    if (status == SILT_OK && stream->other) status = ambiguous_error(stream, &err);
    if (status == SILT_OK && !stream->work)
        status = silt_archiver_work(loop->archiver, silt_buf_view(&stream->key), stream->config,
                                    &stream->work, &err);
    if (status == SILT_OK)
        status = (adopts ? silt_archiver_adopt : silt_archiver_release)(
            loop->archiver, stream->work, waiter->dry_run, &adoption, &err);
    json_t *fields = status == SILT_OK ? adoption_json(&adoption, waiter->dry_run) : NULL;
    if (stream && !waiter->dry_run) {
        stream->due_ms = 0;
        stream->failures = 0;
    }
    silt_control_answer(loop->control, waiter->ticket, status, fields, &err);
}

/* ---- who waits ---- */

/* One stream: the answer has its report. */
static bool serve_one(struct silt_loop *loop, struct silt_waiter *waiter)
{
    struct silt_err err = {0};
    struct silt_roster_stream *stream =
        silt_roster_find(&loop->roster, silt_buf_view(&waiter->key));
    enum silt_status status = stream ? outcome(stream, waiter->since_pass, &err)
                                     : unknown(silt_buf_view(&waiter->key), &err);
    if (status == SILT_END) {
        stream->due_ms = 0;
        return false;
    }
    json_t *fields =
        status == SILT_OK ? json_pack("{s:o}", "stream", stream_json(loop, stream)) : NULL;
    silt_control_answer(loop->control, waiter->ticket, status, fields, &err);
    return true;
}

/* All streams: those that could not be folded are listed, the others are. */
static bool serve_all(struct silt_loop *loop, struct silt_waiter *waiter)
{
    size_t folded = 0;
    bool waits = false;
    json_t *left = json_array();
    for (size_t i = 0; i < loop->roster.count; i++) {
        struct silt_err err = {0};
        struct silt_roster_stream *stream = loop->roster.streams[i];
        enum silt_status status = outcome(stream, waiter->since_pass, &err);
        if (status == SILT_OK) {
            folded++;
        } else if (status == SILT_END) {
            stream->due_ms = 0;
            waits = true;
        } else {
            json_array_append_new(left, json_pack("{s:o,s:s,s:o}", "key",
                                                  silt_json_bytes(silt_buf_view(&stream->key)),
                                                  "code", silt_status_name(status), "sentence",
                                                  silt_json_bytes(silt_view_str(err.sentence))));
        }
    }
    if (waits) {
        json_decref(left);
        return false;
    }
    silt_control_answer(loop->control, waiter->ticket, SILT_OK,
                        json_pack("{s:I,s:o}", "synced", (json_int_t)folded, "not_synced", left),
                        NULL);
    return true;
}

static void free_waiter(struct silt_waiter *waiter)
{
    silt_buf_release(&waiter->key);
    silt_free(waiter);
}

void silt_loop_serve_waiters(struct silt_loop *loop)
{
    for (struct silt_waiter **at = &loop->waiters; *at;) {
        struct silt_waiter *waiter = *at;
        if (waiter->verb != SILT_CONTROL_SYNC) {
            *at = waiter->next; /* off the list first: while it is decided others may join */
            decide(loop, waiter);
            free_waiter(waiter);
            continue;
        }
        if (!(waiter->all ? serve_all(loop, waiter) : serve_one(loop, waiter))) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        free_waiter(waiter);
    }
}

void silt_loop_fail_waiters(struct silt_loop *loop, enum silt_status status,
                            const struct silt_err *err)
{
    while (loop->waiters) {
        struct silt_waiter *waiter = loop->waiters;
        loop->waiters = waiter->next;
        silt_control_answer(loop->control, waiter->ticket, status, NULL, err);
        free_waiter(waiter);
    }
}

void silt_loop_free_waiters(struct silt_loop *loop)
{
    struct silt_err err = {0};
    silt_fail(&err, SILT_ERR_CANCELLED, "siltd stops");
    silt_loop_fail_waiters(loop, SILT_ERR_CANCELLED, &err);
}

static enum silt_status take(void *ctx, const struct silt_control_request *request, uint64_t ticket,
                             struct silt_err *err)
{
    struct silt_loop *loop = ctx;
    const struct silt_view *key = request->key;
    if (!key && request->verb != SILT_CONTROL_SYNC)
        return silt_fail(err, SILT_ERR_USAGE, "which stream? it needs a key");
    struct silt_roster_stream *stream = NULL;
    if (key) {
        /* A key that a pattern matches need not wait until it is found. */
        if (silt_roster_add(&loop->roster, *key, &stream) != SILT_OK)
            return silt_fail(err, SILT_ERR_MEMORY, NULL);
        if (!stream) return unknown(*key, err);
        if (stream->other) return ambiguous_error(stream, err);
    }
    struct silt_waiter *waiter = silt_calloc(1, sizeof *waiter);
    if (!waiter || (key && silt_buf_put(&waiter->key, key->at, key->len) != SILT_OK)) {
        silt_free(waiter);
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    }
    waiter->ticket = ticket;
    waiter->verb = request->verb;
    waiter->dry_run = request->dry_run;
    waiter->all = !key;
    waiter->since_pass = loop->pass_number; /* a pass at work may have looked already */
    waiter->next = loop->waiters;
    loop->waiters = waiter;
    for (size_t i = 0; i < loop->roster.count; i++) {
        if (stream && stream != loop->roster.streams[i]) continue;
        loop->roster.streams[i]->due_ms = 0;
        if (request->verb == SILT_CONTROL_SYNC)
            loop->roster.streams[i]->whole_from = loop->pass_number + 1;
    }
    loop->retry_ms = 0;
    return SILT_OK;
}

const struct silt_control_handler silt_loop_handler = {.status = answer_status, .later = take};
