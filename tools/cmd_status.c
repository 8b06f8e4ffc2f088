/* silt status: can I trim? */
#include "command.h"
#include "control_client.h"
#include "facts.h"
#include "instant.h"

#define BEHIND_MS 60000 /* a running siltd folds within a second or so */

const struct silt_verb_text silt_text_status = {
    .about =
        "Tells of each stream (of one with KEY): whether it can be trimmed and up to where, how far the archive is behind, "
        "its watermark as id and instant, who holds the floor, gaps, late entries, and the last error; of a "
        "stream in doubt why, and how far its audit is.\n\n"
        "A running siltd is asked over the control socket of the settings; otherwise the archive and the server are "
        "read, and that is said. The exit code is 1 when something is found: a gap, a stream that is held, failing, "
        "left alone, behind, or not looked at for a minute.",
    .examples = "silt status\n"
                "silt status 'emq:{game}:stream:feed' --json",
};

struct board {
    struct silt_call *call;
    struct silt_session session;
    struct silt_table table;
    uint64_t streams;
    struct silt_buf notes; /* lines that follow the table */
    bool asked;            /* siltd, and it does not run */
    enum silt_status server;
    struct silt_err server_err;
};

static bool is_state(const struct silt_seen *seen, const char *state)
{
    return strcmp(seen->state, state) == 0;
}

static void judge(struct board *board, struct silt_seen *seen, bool siltd_runs)
{
    /* Progress is what counts, not that somebody answers (field report K1): what siltd saw long ago has grown older since, and a look long overdue is none. */
    uint64_t ago = seen->looked_ms_ago != SILT_UNKNOWN ? seen->looked_ms_ago : 0;
    bool slow = siltd_runs && seen->lag_ms != SILT_UNKNOWN && seen->lag_ms + ago > BEHIND_MS &&
                seen->lag_entries > 0;
    bool stalled = siltd_runs && seen->next_look_ms == 0 && ago > BEHIND_MS;
    if (slow && is_state(seen, "ok")) snprintf(seen->state, sizeof seen->state, "behind");
    if (stalled && is_state(seen, "ok")) snprintf(seen->state, sizeof seen->state, "stalled");
    seen->finding = is_state(seen, "held") || is_state(seen, "failing") ||
                    is_state(seen, "ambiguous") || is_state(seen, "behind") ||
                    is_state(seen, "stalled") ||
                    (seen->gap_entries != SILT_UNKNOWN && seen->gap_entries > 0) || seen->error[0];
    if (seen->finding) board->call->exit_code = SILT_EXIT_FINDING;
}

static const char *can_trim(const struct silt_seen *seen)
{
    if (is_state(seen, "held") || is_state(seen, "failing") || is_state(seen, "ambiguous"))
        return "no";
    return seen->watermark[0] ? "yes" : "not yet";
}

static const char *or_dash(const char *text)
{
    return *text ? text : "-";
}

static const char *count_or_dash(uint64_t value, char ret[32])
{
    return value == SILT_UNKNOWN ? "-" : silt_count_text(value, ret);
}

static const char *lag_text(const struct silt_seen *seen, char ret[80])
{
    char count[32], age[SILT_INSTANT_TEXT];
    if (seen->lag_entries == SILT_UNKNOWN) return "-";
    if (seen->lag_entries == 0) return "0";
    silt_count_text(seen->lag_entries, count);
    uint64_t ms = seen->lag_ms;
    silt_duration_format(ms < 60000 ? ms : ms / 1000 * 1000, age);
    snprintf(ret, 80, "%s, %s", count, age);
    return ret;
}

static void note(struct board *board, const struct silt_seen *seen, const char *what)
{
    if (!*what) return;
    if (silt_buf_printf(&board->notes, "%s: %s\n", seen->key, what) != SILT_OK)
        board->call->out.status = SILT_ERR_MEMORY;
}

static void add_row(struct board *board, const struct silt_seen *seen)
{
    struct silt_out *out = &board->call->out;
    struct silt_table *table = &board->table;
    char lag[80], gaps[32], late[32], live[32];
    if (board->streams++ == 0) {
        static const char *const heads[] = {"STREAM",    "TRIM?", "STATE",   "LIVE", "LAG",
                                            "WATERMARK", "AS OF", "HELD BY", "GAPS", "LATE"};
        *table = (struct silt_table){.column_count = 10, .right = "lllrllllrr"};
        for (size_t i = 0; i < 10; i++)
            silt_table_cell(out, table, "%s", heads[i]);
    }
    silt_table_cell(out, table, "%s", seen->key);
    silt_table_cell(out, table, "%s", can_trim(seen));
    silt_table_cell(out, table, "%s", seen->state);
    silt_table_cell(out, table, "%s", count_or_dash(seen->live_entries, live));
    silt_table_cell(out, table, "%s", lag_text(seen, lag));
    silt_table_cell(out, table, "%s", or_dash(seen->watermark));
    silt_table_cell(out, table, "%s", or_dash(seen->watermark_instant));
    /* A verdict's name is its reason, a whole sentence: that stands below the table. */
    bool named = seen->held_name[0] && strcmp(seen->held_by, "verdict") != 0;
    silt_table_cell(out, table, "%s%s%s", or_dash(seen->held_by), named ? " " : "",
                    named ? seen->held_name : "");
    silt_table_cell(out, table, "%s", count_or_dash(seen->gap_entries, gaps));
    silt_table_cell(out, table, "%s", count_or_dash(seen->late_entries, late));
    note(board, seen, seen->reason);
    if (seen->audit[0]) note(board, seen, seen->audit);
    if (strcmp(seen->reason, seen->error) != 0) note(board, seen, seen->error);
}

/* One stream at length. */
static void show_block(struct board *board, const struct silt_seen *seen)
{
    struct silt_out *out = &board->call->out;
    char a[80], b[32], c[32], d[32];
    silt_out_printf(out, "%s (%s, life %llu", seen->key, seen->kind,
                    (unsigned long long)seen->life);
    if (seen->lives != SILT_UNKNOWN && seen->lives > 1)
        silt_out_printf(out, ", the newest of %llu", (unsigned long long)seen->lives);
    if (seen->epoch != 0) silt_out_printf(out, ", epoch %llu", (unsigned long long)seen->epoch);
    silt_out_text(out, ")\n");
    silt_out_printf(out, "  can be trimmed  %s%s%s\n", can_trim(seen),
                    seen->watermark[0] && strcmp(can_trim(seen), "yes") == 0 ? ", up to " : "",
                    strcmp(can_trim(seen), "yes") == 0 ? seen->watermark : "");
    silt_out_printf(out, "  state           %s\n", seen->state);
    silt_out_printf(out, "  watermark       %s  %s\n", or_dash(seen->watermark),
                    seen->watermark_instant);
    silt_out_printf(out, "  floor held by   %s%s%s\n", or_dash(seen->held_by),
                    seen->held_name[0] ? " " : "", seen->held_name);
    silt_out_printf(out, "  lag             %s\n", lag_text(seen, a));
    silt_out_printf(out, "  live            %s entries\n", count_or_dash(seen->live_entries, b));
    silt_out_printf(out, "  folded          %s entries, last %s\n",
                    count_or_dash(seen->folded_entries, b), or_dash(seen->folded_at));
    silt_out_printf(out, "  trimmed         %s entries, last %s\n",
                    count_or_dash(seen->trimmed_entries, b), or_dash(seen->trimmed_at));
    silt_out_printf(out, "  gaps            %s entries missing; %s late, %s foreign\n",
                    count_or_dash(seen->gap_entries, b), count_or_dash(seen->late_entries, c),
                    count_or_dash(seen->foreign_entries, d));
    if (seen->verdict[0])
        silt_out_printf(out, "  verdict         %s%s%s\n", seen->verdict,
                        seen->reason[0] ? ": " : "", seen->reason);
    if (seen->audit[0]) silt_out_printf(out, "  audit           %s\n", seen->audit);
    silt_out_printf(out, "  last error      %s\n", or_dash(seen->error));
    if (seen->hint[0]) silt_out_printf(out, "  hint            %s\n", seen->hint);
}

static void show(struct board *board, const struct silt_seen *seen)
{
    if (board->call->arg_count > 0)
        show_block(board, seen);
    else
        add_row(board, seen);
}

static void finish(struct board *board)
{
    struct silt_out *out = &board->call->out;
    if (board->streams > 0) silt_table_print(out, &board->table);
    if (board->notes.len > 0)
        silt_out_printf(out, "\n%.*s", (int)board->notes.len, (const char *)board->notes.at);
    silt_buf_release(&board->notes);
}

/* ---- siltd runs ---- */

/* siltd tells of the newest life; how many there are stands in the archive, where that can be read. */
static void count_lives(struct board *board, struct silt_seen *seen)
{
    SILT_CLEANUP(silt_stream_release) struct silt_stream stream = {0};
    struct silt_err kept = board->call->err;
    if (silt_session_store(&board->session) == SILT_OK &&
        silt_store_stream(board->session.store, silt_view_str(board->call->args[0]), &stream,
                          NULL) == SILT_OK &&
        silt_seen_lives(seen, board->session.store, stream.row.number, NULL) != SILT_OK)
        seen->lives = SILT_UNKNOWN;
    board->call->err = kept;
}

static void show_answer(struct board *board, const struct silt_json *answer,
                        const struct silt_buf *line)
{
    struct silt_call *call = board->call;
    const struct silt_json *streams = silt_json_get(answer, "streams");
    const struct silt_json *error = silt_json_get(answer, "error");
    for (size_t i = 0; i < silt_json_size(streams); i++) {
        struct silt_seen seen;
        silt_seen_of_json(&seen, silt_json_at(streams, i));
        judge(board, &seen, true);
        if (call->arg_count > 0) count_lives(board, &seen);
        if (!call->json) show(board, &seen);
    }
    if (silt_json_kind(error) == SILT_JSON_OBJECT) call->exit_code = SILT_EXIT_FINDING;
    if (call->json) {
        silt_out_text(&call->out, "");
        if (call->out.status == SILT_OK)
            call->out.status = silt_buf_put(&call->out.buf, line->at, line->len);
        silt_out_text(&call->out, "\n");
        return;
    }
    finish(board);
    if (call->arg_count == 0 && silt_json_size(streams) == 0)
        silt_out_text(&call->out, "siltd runs and has no streams yet\n");
    if (silt_json_kind(error) == SILT_JSON_OBJECT)
        silt_out_printf(&call->out, "siltd: %s\n",
                        silt_json_get_str(silt_json_get(error, "sentence")));
}

/* SILT_END: siltd is not running. */
static enum silt_status ask_siltd(struct board *board)
{
    struct silt_call *call = board->call;
    const char *key = call->arg_count > 0 ? call->args[0] : NULL;
    struct silt_buf line = {0};
    struct silt_json *answer = NULL;
    if (board->session.config->control == NULL) return SILT_END;
    board->asked = true;
    enum silt_status status = silt_control_ask(board->session.config->control, "status", key, NULL,
                                               &line, &answer, &call->err);
    if (status == SILT_OK) show_answer(board, answer, &line);
    silt_json_free(answer);
    silt_buf_release(&line);
    return status;
}

/* ---- siltd does not run ---- */

/* With everything folded and no group behind, what is left to hold the floor is the settings' keep. */
static void consult_settings(struct board *board, struct silt_view key, struct silt_seen *seen)
{
    const struct silt_stream_config *match, *other;
    bool settled = strcmp(seen->held_by, "archive") == 0 && seen->lag_entries == 0;
    enum silt_match found = silt_config_match(board->session.config, key, &match, &other);
    if (found == SILT_MATCH_AMBIGUOUS) {
        snprintf(seen->state, sizeof seen->state, "ambiguous");
        snprintf(seen->reason, sizeof seen->reason,
                 "two patterns of the settings match this key; it is left alone");
    } else if (found == SILT_MATCH_ONE && settled) {
        bool keeps = match->keep.has_age || match->keep.has_entries || match->keep.has_bytes;
        snprintf(seen->held_by, sizeof seen->held_by, keeps ? "retention" : "shadow");
    }
}

static void add_row_stream(struct board *board, const struct silt_stream_row *row,
                           enum silt_status looked, struct silt_seen *seen,
                           const struct silt_err *err)
{
    if (looked != SILT_OK) {
        snprintf(seen->error, sizeof seen->error, "%s", err->sentence);
        snprintf(seen->hint, sizeof seen->hint, "%s", err->hint);
        snprintf(seen->state, sizeof seen->state, "failing");
    }
    if (board->session.store != NULL && row->number != 0 &&
        silt_seen_lives(seen, board->session.store, row->number, NULL) != SILT_OK)
        seen->lives = SILT_UNKNOWN;
    consult_settings(board, row->name, seen);
    judge(board, seen, false);
    if (board->call->json)
        silt_seen_json(&board->call->out, seen, row->name, row);
    else
        show(board, seen);
}

static enum silt_status read_one(struct board *board, struct silt_stream *stream)
{
    struct silt_call *call = board->call;
    struct silt_view key = silt_view_str(call->args[0]);
    struct silt_seen seen;
    struct silt_err err;
    struct silt_conn *conn = board->server == SILT_OK ? board->session.conn : NULL;
    enum silt_status status = board->session.store
                                  ? silt_store_stream(board->session.store, key, stream, &call->err)
                                  : SILT_ERR_UNKNOWN_STREAM;
    if (status == SILT_OK) {
        enum silt_status looked = silt_seen_of_row(&seen, &stream->row, conn, &err);
        add_row_stream(board, &stream->row, looked, &seen, &err);
    } else if (status == SILT_ERR_UNKNOWN_STREAM && conn != NULL) {
        struct silt_stream_row row = {.name = key};
        status = silt_seen_of_key(&seen, key, conn, &call->err);
        if (status == SILT_OK) add_row_stream(board, &row, SILT_OK, &seen, NULL);
    }
    return status;
}

static enum silt_status read_all(struct board *board, struct silt_stream *stream)
{
    struct silt_err *err = &board->call->err;
    struct silt_conn *conn = board->server == SILT_OK ? board->session.conn : NULL;
    enum silt_status status = SILT_END;
    uint64_t after = 0;
    while (board->session.store != NULL &&
           (status = silt_store_stream_after(board->session.store, after, stream, err)) ==
               SILT_OK) {
        struct silt_seen seen;
        struct silt_err told;
        enum silt_status looked = silt_seen_of_row(&seen, &stream->row, conn, &told);
        add_row_stream(board, &stream->row, looked, &seen, &told);
        after = stream->row.number;
    }
    return status == SILT_END ? SILT_OK : status;
}

static enum silt_status read_stores(struct board *board)
{
    struct silt_call *call = board->call;
    struct silt_session *session = &board->session;
    SILT_CLEANUP(silt_stream_release) struct silt_stream stream = {0};
    enum silt_status status = silt_session_store(session);
    if (status != SILT_OK && !(status == SILT_ERR_NO_ARCHIVE && call->arg_count > 0)) return status;
    board->server = SILT_END; /* none is named */
    if (session->config->address != NULL) {
        struct silt_err archive_err = call->err;
        board->server = silt_session_conn(session);
        board->server_err = call->err;
        call->err = archive_err;
    }
    if (call->json) {
        silt_json_open(&call->out, '{');
        silt_json_name(&call->out, "ok");
        silt_json_bool(&call->out, true);
        silt_json_name(&call->out, "siltd");
        silt_json_bool(&call->out, false);
        silt_json_name(&call->out, "archive");
        silt_json_str(&call->out, session->config->archive_path);
        silt_json_name(&call->out, "connected");
        silt_json_bool(&call->out, board->server == SILT_OK);
        silt_json_name(&call->out, "streams");
        silt_json_open(&call->out, '[');
    }
    status = call->arg_count > 0 ? read_one(board, &stream) : read_all(board, &stream);
    if (status != SILT_OK) {
        if (call->json) silt_buf_clear(&call->out.buf); /* half an object is none */
        return status;
    }
    if (call->json) {
        silt_json_close(&call->out, ']');
        silt_json_close(&call->out, '}');
        silt_json_end_line(&call->out);
    } else {
        if (call->arg_count == 0 && board->streams == 0)
            silt_out_text(&call->out,
                          "the archive holds no stream yet; siltd --plan tells what it would take "
                          "up, or why not\n");
        finish(board);
        silt_say("siltd %s; this is what the archive%s",
                 board->asked ? "does not run" : "was not asked",
                 board->server == SILT_OK ? " and the server say" : " says");
    }
    if (board->server < 0) {
        call->err = board->server_err;
        return board->server;
    }
    return SILT_OK;
}

enum silt_status silt_cmd_status(struct silt_call *call)
{
    struct board board = {.call = call};
    enum silt_status status = silt_session_init(&board.session, call);
    if (status == SILT_OK) {
        /* A named archive or server is looked at itself. */
        bool named = silt_call_option(call, "archive") || silt_call_option(call, "valkey");
        status = named ? SILT_END : ask_siltd(&board);
        if (status == SILT_END) status = read_stores(&board);
    }
    silt_buf_release(&board.table.cells);
    silt_buf_release(&board.notes);
    silt_session_release(&board.session);
    return status;
}
