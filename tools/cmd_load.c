/* silt load: many entries from JSON lines, pipelined, each with an answer of its own. */
#include "alloc.h"
#include "command.h"
#include "instant.h"
#include "lines.h"
#include "records.h"
#include "session.h"
#include "writer.h"

#define BATCH_RECORDS 500
#define BATCH_BYTES (1u << 20)
#define REFUSALS_TOLD 20

static const struct silt_option options[] = {
    {"shift", "D", "move every time by a duration, such as 36h or -30d"},
    {"node", "N", "the node of minted ids, 0 to 1023 (0)"},
    {NULL, NULL, NULL},
};

const struct silt_verb_text silt_text_load = {
    .options = options,
    .about =
        "FILE holds one JSON object a line, plain or as zstd (- is the standard input): {\"t\": T, \"fields\": F} or "
        "{\"id\": ID, \"fields\": F}. T is unix milliseconds or an RFC 3339 instant; ID a wire id or branded id; F a list of "
        "[name, value] pairs or an object; a string that is not UTF-8 stands as {\"b64\": \"...\"}. What silt read --json "
        "writes can be loaded again.\n\n"
        "From T a branded stream gets minted ids, a plain one <t>-<seq> with seq counted within the millisecond. A file "
        "is read through once before anything is sent, so a bad line changes nothing (the standard input is "
        "not: what stands before a bad line has been sent).\n\n"
        "Entries are sent many at a time and each one's answer counts: written; there already with the same bytes, so a "
        "load that broke off can be repeated; or refused, which is told with its line and makes the exit code "
        "1, or 8 where the same id holds other bytes. A refusal of the server that concerns all (wrong type, full memory, no right) ends the load.",
    .examples = "silt load quakes earthquakes.jsonl.zst --ids wire\n"
                "silt load 'emq:{game}:stream:feed' feed.jsonl --ids 'branded EVT' --shift 36h",
};

struct load {
    struct silt_call *call;
    struct silt_session session;
    struct silt_writer writer;
    struct silt_lines lines;
    struct silt_record_ids ids;
    struct silt_record records[BATCH_RECORDS];
    enum silt_status outcomes[BATCH_RECORDS];
    size_t count; /* of the present batch */
    uint64_t written, present, refused, conflicts;
    struct silt_progress progress;
};

static enum silt_status parse_shift(struct silt_call *call, int64_t *ret)
{
    const char *text = silt_call_option(call, "shift");
    uint64_t ms = 0;
    *ret = 0;
    if (text == NULL) return SILT_OK;
    bool back = *text == '-';
    enum silt_status status =
        silt_duration_parse(silt_view_str(back || *text == '+' ? text + 1 : text), &ms, &call->err);
    if (status != SILT_OK) return status;
    if (ms > INT64_MAX)
        return silt_fail(&call->err, SILT_ERR_DURATION, "--shift %s is too far", text);
    *ret = back ? -(int64_t)ms : (int64_t)ms;
    return SILT_OK;
}

static bool is_empty(struct silt_view line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.at[i] != ' ' && line.at[i] != '\t') return false;
    return true;
}

/* The next record that is not an empty line. */
static enum silt_status next_record(struct load *load, struct silt_record_ids *ids,
                                    struct silt_record *record)
{
    struct silt_view line;
    enum silt_status status;
    do
        status = silt_lines_next(&load->lines, &line, &load->call->err);
    while (status == SILT_OK && is_empty(line));
    if (status != SILT_OK) return status;
    return silt_record_parse(record, ids, line, load->lines.line, &load->call->err);
}

/* Everything is parsed once before the first word to the server. */
static enum silt_status read_through(struct load *load, const char *path)
{
    struct silt_record_ids ids = load->ids;
    enum silt_status status = silt_lines_open(&load->lines, path, &load->call->err);
    if (status != SILT_OK || load->lines.file_bytes == 0) return status; /* cannot be read twice */
    while ((status = next_record(load, &ids, &load->records[0])) == SILT_OK)
        silt_progress(&load->progress, "checking", load->lines.read_bytes, load->lines.file_bytes);
    if (status != SILT_END) return status;
    silt_lines_close(&load->lines);
    return silt_lines_open(&load->lines, path, &load->call->err);
}

static void tell_json(struct silt_out *out, const struct silt_record *record,
                      struct silt_namespace ns, const char *result, const struct silt_err *err)
{
    char branded[SILT_WIRE_ID_TEXT];
    silt_id_text(record->entry.id, ns, branded);
    silt_json_open(out, '{');
    silt_json_name(out, "line");
    silt_json_u64(out, record->line);
    silt_json_name(out, "id");
    silt_json_wire_id(out, record->entry.id);
    silt_json_name(out, "branded");
    silt_json_str(out, silt_namespace_is_none(ns) ? NULL : branded);
    silt_json_name(out, "result");
    silt_json_str(out, result);
    if (err != NULL) {
        silt_json_name(out, "error");
        silt_json_open(out, '{');
        silt_json_name(out, "code");
        silt_json_str(out, silt_status_name(err->code));
        silt_json_name(out, "sentence");
        silt_json_str(out, err->sentence);
        silt_json_close(out, '}');
    }
    silt_json_close(out, '}');
    silt_json_end_line(out);
}

/* What became of one record. Gives what must end the load. */
static enum silt_status account(struct load *load, const struct silt_record *record,
                                enum silt_status outcome, bool was_there, struct silt_err *err)
{
    bool refused = outcome == SILT_ERR_NONMONOTONIC || outcome == SILT_ERR_CONFLICT;
    if (outcome != SILT_OK && !refused) return outcome;
    load->written += outcome == SILT_OK && !was_there;
    load->present += outcome == SILT_OK && was_there;
    load->refused += refused;
    load->conflicts += outcome == SILT_ERR_CONFLICT;
    if (load->call->json)
        tell_json(&load->call->out, record, load->ids.ns,
                  refused     ? "refused"
                  : was_there ? "present"
                              : "written",
                  refused ? err : NULL);
    if (refused && load->refused <= REFUSALS_TOLD) {
        char id[SILT_WIRE_ID_TEXT];
        silt_id_text(record->entry.id, load->ids.ns, id);
        silt_progress_end(&load->progress);
        silt_say("line %llu: %s: %s", (unsigned long long)record->line, id, err->sentence);
    }
    return SILT_OK;
}

/* One answer that was not a plain yes. */
static enum silt_status settle(struct load *load, const struct silt_record *record,
                               enum silt_status outcome)
{
    struct silt_err *err = &load->call->err;
    if (silt_writer_is_open_outcome(outcome))
        return account(load, record, silt_writer_settle(&load->writer, &record->entry, err), false,
                       err);
    if (outcome != SILT_ERR_NONMONOTONIC) return outcome;
    /* Refused as too low: there already, or really too low. */
    struct silt_err told = *err;
    enum silt_status back = silt_writer_look_back(&load->writer, &record->entry, err);
    if (back == SILT_END) {
        silt_fail(&told, SILT_ERR_NONMONOTONIC, "the id is not above the stream's top");
        *err = told;
        back = SILT_ERR_NONMONOTONIC;
    }
    return account(load, record, back, back == SILT_OK, err);
}

/* Sends the batch, takes all its answers, then settles those that were no plain yes: with nothing owed. */
static enum silt_status send_batch(struct load *load)
{
    struct silt_err *err = &load->call->err;
    enum silt_status status = silt_conn_open(load->session.conn, err);
    if (status != SILT_OK) return status;
    size_t sent = 0;
    while (sent < load->count && status == SILT_OK) {
        status = silt_writer_send(&load->writer, &load->records[sent].entry, false, err);
        if (status == SILT_OK) sent++;
    }
    if (status != SILT_OK && !silt_writer_is_open_outcome(status)) return status;
    for (size_t i = 0; i < load->count; i++) {
        struct silt_wire_id id;
        struct silt_err told = {0};
        if (status == SILT_OK)
            load->outcomes[i] = silt_writer_receive(&load->writer, &id, &told);
        else
            load->outcomes[i] = status;
        /* From a broken connection on, all outcomes are open. */
        if (silt_writer_is_open_outcome(load->outcomes[i])) status = load->outcomes[i];
        if (load->outcomes[i] < 0 && !silt_writer_is_open_outcome(load->outcomes[i]) &&
            load->outcomes[i] != SILT_ERR_NONMONOTONIC)
            *err = told;
    }
    /* A refusal that ends the load must not hide what else of the batch was written. */
    enum silt_status ends = SILT_OK;
    for (size_t i = 0; i < load->count; i++) {
        enum silt_status outcome = load->outcomes[i];
        if (outcome == SILT_OK)
            status = account(load, &load->records[i], SILT_OK, false, NULL);
        else
            status = ends == SILT_OK ? settle(load, &load->records[i], outcome) : SILT_OK;
        if (status != SILT_OK) ends = status;
    }
    return ends;
}

static enum silt_status load_all(struct load *load)
{
    enum silt_status status = SILT_OK;
    while (status == SILT_OK) {
        uint64_t bytes = 0;
        load->count = 0;
        while (load->count < BATCH_RECORDS && bytes < BATCH_BYTES &&
               (status = next_record(load, &load->ids, &load->records[load->count])) == SILT_OK)
            bytes += silt_entry_bytes(&load->records[load->count++].entry);
        if (status < 0) {
            struct silt_err told =
                load->call->err; /* what stands before the bad line is sent first */
            enum silt_status sent = load->count ? send_batch(load) : SILT_OK;
            if (sent == SILT_OK) load->call->err = told;
            return sent == SILT_OK ? status : sent;
        }
        enum silt_status sent = load->count ? send_batch(load) : SILT_OK;
        if (sent != SILT_OK) return sent;
        silt_progress(&load->progress, "loading", load->lines.read_bytes, load->lines.file_bytes);
    }
    return status == SILT_END ? SILT_OK : status;
}

static void summarise(struct load *load)
{
    struct silt_out *out = &load->call->out;
    char a[32], b[32], c[32];
    if (load->call->json) {
        silt_json_open(out, '{');
        silt_json_name(out, "summary");
        silt_json_open(out, '{');
        silt_json_name(out, "written");
        silt_json_u64(out, load->written);
        silt_json_name(out, "present");
        silt_json_u64(out, load->present);
        silt_json_name(out, "refused");
        silt_json_u64(out, load->refused);
        silt_json_close(out, '}');
        silt_json_close(out, '}');
        silt_json_end_line(out);
    } else {
        silt_out_printf(out, "%s written, %s there already, %s refused\n",
                        silt_count_text(load->written, a), silt_count_text(load->present, b),
                        silt_count_text(load->refused, c));
    }
    if (load->refused > REFUSALS_TOLD)
        silt_say("and %llu more refused", (unsigned long long)(load->refused - REFUSALS_TOLD));
}

static enum silt_status prepare(struct load *load)
{
    struct silt_call *call = load->call;
    struct silt_view key = silt_view_str(call->args[0]);
    const char *node_text = silt_call_option(call, "node");
    uint64_t node = 0;
    enum silt_status status;
    if (node_text && (!silt_parse_u64(silt_view_str(node_text), &node) || node > 1023))
        return silt_fail(&call->err, SILT_ERR_USAGE, "--node is a number from 0 to 1023, not '%s'",
                         node_text);
    if ((status = parse_shift(call, &load->ids.shift_ms)) != SILT_OK ||
        (status = silt_session_init(&load->session, call)) != SILT_OK ||
        (status = silt_session_kind(&load->session, key, &load->ids.ns)) != SILT_OK ||
        (status = silt_writer_init(&load->writer, NULL, key, load->ids.ns, (uint32_t)node,
                                   &call->err)) != SILT_OK)
        return status;
    load->ids.mint = load->writer.mint;
    if ((status = read_through(load, call->args[1])) != SILT_OK ||
        (status = silt_session_conn(&load->session)) != SILT_OK)
        return status;
    load->writer.conn = load->session.conn;
    return SILT_OK;
}

enum silt_status silt_cmd_load(struct silt_call *call)
{
    struct load *load = silt_calloc(1, sizeof *load);
    if (load == NULL) return silt_fail(&call->err, SILT_ERR_MEMORY, NULL);
    load->call = call;
    load->lines.fd = -1;
    enum silt_status status = prepare(load);
    if (status == SILT_OK) {
        status = load_all(load);
        silt_progress_end(&load->progress);
        if (status == SILT_OK || load->written > 0) summarise(load);
        if (load->conflicts > 0)
            call->exit_code = silt_status_exit_code(SILT_ERR_CONFLICT);
        else if (load->refused > 0)
            call->exit_code = SILT_EXIT_FINDING;
    }
    silt_progress_end(&load->progress);
    for (size_t i = 0; i < BATCH_RECORDS; i++)
        silt_record_release(&load->records[i]);
    silt_lines_close(&load->lines);
    silt_writer_release(&load->writer);
    silt_session_release(&load->session);
    silt_free(load);
    return status;
}
