/* silt inspect: what is stored, how well it packs, when it happened. */
#include "command.h"
#include "inspect_rows.h"
#include "look.h"
#include "survey.h"
#include "timeline.h"

static const struct silt_option options[] = {
    {"segments", NULL, "each segment on a line of its own"},
    {"timeline", NULL, "entries over time, and where they lie: archive, live or both"},
    {"lives", NULL,
     "every life of a stream: where it forked off, and what the archive holds of it"},
    {"gaps", NULL, "every recorded gap, of all lives"},
    {"forks", NULL, "where a life forked off from which, and when that was noticed"},
    {"late", NULL, "the late entries, by life and number"},
    {NULL, NULL, NULL},
};

const struct silt_verb_text silt_text_inspect = {
    .options = options,
    .about =
        "Tells of the archive and of each stream in it (of one with KEY): segments, entries, bytes of names and values, bytes "
        "stored, the ratio of the two, the first and the last id, from headers and rows.\n\n"
        "--timeline draws how many entries lie in each stretch of time, and where: in the archive, on the server, or in both, "
        "where a server is named. Gaps are marked.\n\n"
        "--lives, --gaps, --forks and --late list what happened to a stream: a life forks off where its key came back with other entries under ids that were archived "
        "already; a gap is a range of which somebody else removed entries before they were archived; a late entry came into the archive below the watermark.\n\n"
        "With --json the archive is one object, and each stream another.",
    .examples = "silt inspect --archive /var/lib/silt\n"
                "silt inspect quakes --timeline\n"
                "silt inspect --lives --gaps",
};

struct inspection {
    struct silt_call *call;
    struct silt_session session;
    bool segments, timeline;
    bool at_length; /* one block a stream, not one line of a table */
    struct silt_rows_wanted rows;
    struct silt_table table;
    uint64_t streams;
};

static void show_archive(struct inspection *in, const struct silt_meta_row *meta,
                         const struct silt_store_space *space)
{
    struct silt_out *out = &in->call->out;
    char file[32], used[32], free_text[32];
    if (in->call->json) {
        silt_json_open(out, '{');
        silt_json_name(out, "archive");
        silt_json_str(out, in->session.config->archive_path);
        silt_json_name(out, "uuid");
        silt_json_str(out, meta->uuid);
        silt_json_name(out, "format");
        silt_json_u64(out, meta->version);
        silt_json_name(out, "epoch");
        silt_json_u64(out, meta->epoch);
        silt_json_name(out, "file_bytes");
        silt_json_u64(out, space->file_bytes);
        silt_json_name(out, "used_bytes");
        silt_json_u64(out, space->used_bytes);
        silt_json_name(out, "free_bytes");
        silt_json_u64(out, space->free_bytes);
        silt_json_name(out, "readers");
        silt_json_u64(out, space->readers);
        silt_json_close(out, '}');
        silt_json_end_line(out);
        return;
    }
    silt_out_printf(out, "archive %s  (format %u, uuid %s, epoch %llu)\n",
                    in->session.config->archive_path, meta->version, meta->uuid,
                    (unsigned long long)meta->epoch);
    silt_out_printf(out, "on disk %s, of which %s in use and %s free\n\n",
                    silt_bytes_text(space->file_bytes, file),
                    silt_bytes_text(space->used_bytes, used),
                    silt_bytes_text(space->free_bytes, free_text));
}

static double ratio_of(const struct silt_survey *survey)
{
    return survey->stored_bytes ? (double)survey->values_bytes / (double)survey->stored_bytes : 0;
}

static void add_row(struct inspection *in, const struct silt_survey *survey)
{
    static const char *const heads[] = {"STREAM", "KIND",  "SEGMENTS", "ENTRIES", "VALUES",
                                        "STORED", "RATIO", "FIRST",    "LAST"};
    struct silt_out *out = &in->call->out;
    char key[200], first[SILT_INSTANT_TEXT] = "-", last[SILT_INSTANT_TEXT] = "-", text[32];
    if (in->streams++ == 0) {
        in->table = (struct silt_table){.column_count = 9, .right = "llrrrrrll"};
        for (size_t i = 0; i < 9; i++)
            silt_table_cell(out, &in->table, "%s", heads[i]);
    }
    silt_escape(survey->row->name, key, sizeof key);
    if (survey->any) {
        silt_id_instant(survey->first, first);
        silt_id_instant(survey->last, last);
    }
    silt_table_cell(out, &in->table, "%s", key);
    silt_table_cell(out, &in->table, "%s",
                    silt_namespace_is_none(survey->row->ns) ? "plain" : survey->row->ns.letters);
    silt_table_cell(out, &in->table, "%s", silt_count_text(survey->segments, text));
    silt_table_cell(out, &in->table, "%s", silt_count_text(survey->entries, text));
    silt_table_cell(out, &in->table, "%s", silt_bytes_text(survey->values_bytes, text));
    silt_table_cell(out, &in->table, "%s", silt_bytes_text(survey->stored_bytes, text));
    silt_table_cell(out, &in->table, "%.1f", ratio_of(survey));
    silt_table_cell(out, &in->table, "%s", first);
    silt_table_cell(out, &in->table, "%s", last);
}

static void show_block(struct inspection *in, const struct silt_survey *survey)
{
    struct silt_out *out = &in->call->out;
    const struct silt_stream_row *row = survey->row;
    char id[SILT_WIRE_ID_TEXT], instant[SILT_INSTANT_TEXT], a[32], b[32];
    silt_out_bytes(out, row->name, false);
    silt_out_printf(out, "  (%s%s, life %llu",
                    silt_namespace_is_none(row->ns) ? "plain" : "branded ", row->ns.letters,
                    (unsigned long long)row->life);
    if (survey->lives > 1)
        silt_out_printf(out, ", the newest of %llu", (unsigned long long)survey->lives);
    silt_out_text(out, ")\n");
    silt_out_printf(out, "  entries    %s in %s segments, %llu foreign\n",
                    silt_count_text(survey->entries, a), silt_count_text(survey->segments, b),
                    (unsigned long long)survey->foreign);
    silt_out_printf(out, "  bytes      %s of names and values in %s stored: %.1f to 1",
                    silt_bytes_text(survey->values_bytes, a),
                    silt_bytes_text(survey->stored_bytes, b), ratio_of(survey));
    silt_out_printf(out, ", %.1f bytes an entry\n",
                    survey->entries ? (double)survey->stored_bytes / (double)survey->entries : 0.0);
    if (survey->any) {
        silt_id_text(survey->first, row->ns, id);
        silt_id_instant(survey->first, instant);
        silt_out_printf(out, "  first      %s  %s\n", id, instant);
        silt_id_text(survey->last, row->ns, id);
        silt_id_instant(survey->last, instant);
        silt_out_printf(out, "  last       %s  %s\n", id, instant);
    }
    if (row->folded_any) {
        silt_id_text(row->watermark, row->ns, id);
        silt_id_instant(row->watermark, instant);
        silt_out_printf(out, "  watermark  %s  %s\n", id, instant);
    }
}

static void show_segments(struct inspection *in, const struct silt_survey *survey)
{
    static const char *const heads[] = {"SEGMENT", "LIFE",  "ENTRIES", "VALUES",
                                        "STORED",  "FIRST", "LAST"};
    struct silt_out *out = &in->call->out;
    struct silt_table table = {.column_count = 7, .right = "lrrrrll"};
    const struct silt_segment_info *info = silt_survey_segments(survey);
    for (size_t i = 0; i < 7; i++)
        silt_table_cell(out, &table, "%s", heads[i]);
    for (size_t i = 0; i < survey->segments; i++, info++) {
        char id[SILT_WIRE_ID_TEXT], first[SILT_INSTANT_TEXT], last[SILT_INSTANT_TEXT] = "damaged",
                                                              text[32];
        silt_id_text(info->first, survey->row->ns, id);
        silt_id_instant(info->first, first);
        if (info->count > 0) silt_id_instant(info->last, last);
        silt_table_cell(out, &table, "%s", id);
        silt_table_cell(out, &table, "%llu", (unsigned long long)info->life);
        silt_table_cell(out, &table, "%s", silt_count_text(info->count, text));
        silt_table_cell(out, &table, "%s", silt_bytes_text(info->values_bytes, text));
        silt_table_cell(out, &table, "%s", silt_bytes_text(info->stored_bytes, text));
        silt_table_cell(out, &table, "%s", first);
        silt_table_cell(out, &table, "%s", last);
    }
    silt_out_text(out, "\n");
    silt_table_print(out, &table);
}

static void show_gaps(struct inspection *in, const struct silt_survey *survey)
{
    size_t count;
    const struct silt_gap_row *gaps = silt_survey_gaps(survey, &count);
    struct silt_out *out = &in->call->out;
    for (size_t i = 0; i < count; i++) {
        char after[SILT_WIRE_ID_TEXT], through[SILT_WIRE_ID_TEXT], noticed[SILT_INSTANT_TEXT];
        silt_wire_id_format(gaps[i].range.after, after);
        silt_wire_id_format(gaps[i].range.through, through);
        silt_id_instant((struct silt_wire_id){gaps[i].noticed_ms, 0}, noticed);
        silt_out_printf(out, "  gap        above %s up to %s: %s", after, through,
                        gaps[i].precision == SILT_GAP_EXACT ? "" : "at least ");
        if (gaps[i].has_count)
            silt_out_printf(out, "%llu entries", (unsigned long long)gaps[i].count);
        else
            silt_out_text(out, "an unknown number");
        silt_out_printf(out, ", %s, noticed %s\n", silt_gap_cause_name(gaps[i].cause), noticed);
    }
}

/* ---- over time ---- */

struct drawing {
    struct inspection *in;
    const struct silt_survey *survey;
    struct silt_timeline *timeline;
    struct silt_buf value;
    struct silt_segment *segment;
    struct silt_progress progress;
    uint64_t done;
};

static bool live_facts(struct inspection *in, const struct silt_stream_row *row,
                       struct silt_facts *ret)
{
    struct silt_look look = {0};
    bool known =
        in->session.conn != NULL &&
        silt_look_call(in->session.conn, row->name, SILT_LOOK_READER, &look, NULL) == SILT_OK &&
        look.state == SILT_LOOK_STREAM && look.facts.has_first;
    if (known) *ret = look.facts;
    silt_look_release(&look);
    return known;
}

/* A segment within one bucket is told by its header; one that spans several is decoded, and spread evenly only where that fails. */
static void draw_segment(struct drawing *drawing, const struct silt_segment_info *info)
{
    struct silt_timeline *timeline = drawing->timeline;
    struct silt_segment_info found;
    uint64_t width = timeline->width_ms;
    bool one = info->first.ms / width == info->last.ms / width;
    if (one ||
        silt_store_segment(drawing->in->session.store, info->life, info->ns, info->first,
                           SILT_SEEK_FORWARD, &drawing->value, &found, NULL) != SILT_OK ||
        silt_segment_open(drawing->segment, silt_buf_view(&drawing->value), NULL) != SILT_OK) {
        silt_timeline_add(timeline, info->first.ms, info->last.ms, info->count, false);
        return;
    }
    for (size_t i = 0; i < silt_segment_count(drawing->segment); i++) {
        uint64_t ms = silt_segment_id(drawing->segment, i).ms;
        silt_timeline_add(timeline, ms, ms, 1, false);
    }
}

static enum silt_status draw_archive(struct drawing *drawing)
{
    const struct silt_segment_info *info = silt_survey_segments(drawing->survey);
    if (silt_segment_new(&drawing->segment) != SILT_OK) return SILT_ERR_MEMORY;
    for (size_t i = 0; i < drawing->survey->segments; i++) {
        if (info[i].count > 0) draw_segment(drawing, &info[i]);
        drawing->done += info[i].count;
        silt_progress(&drawing->progress, "drawing", drawing->done, drawing->survey->entries);
    }
    silt_progress_end(&drawing->progress);
    return SILT_OK;
}

/* What only the server has, page by page. */
static enum silt_status draw_live(struct drawing *drawing, struct silt_wire_id last)
{
    const struct silt_stream_row *row = drawing->survey->row;
    struct silt_page_request request = {.key = row->name, .to = last};
    struct silt_page page = {0};
    enum silt_status status = SILT_OK;
    bool more = !row->folded_any || silt_wire_id_next(row->watermark, &request.from);
    while (more && status == SILT_OK) {
        uint32_t cap = silt_look_page_cap(&page.look);
        request.count = drawing->in->session.config->page_entries;
        if (request.count > cap) request.count = cap;
        status = silt_page_append(drawing->in->session.conn, &request, &drawing->in->call->err);
        if (status == SILT_OK)
            status = silt_page_receive(drawing->in->session.conn, &request, &page,
                                       &drawing->in->call->err);
        if (status != SILT_OK) break;
        for (size_t i = 0; i < page.entry_count; i++)
            silt_timeline_add(drawing->timeline, page.entries[i].id.ms, page.entries[i].id.ms, 1,
                              true);
        more = page.full && page.entry_count > 0 &&
               silt_wire_id_next(page.entries[page.entry_count - 1].id, &request.from);
        drawing->done += page.entry_count;
        silt_progress(&drawing->progress, "drawing", drawing->done, 0);
    }
    silt_progress_end(&drawing->progress);
    silt_page_release(&page);
    return status;
}

/* SILT_END: there is nothing to draw. */
static enum silt_status draw(struct inspection *in, const struct silt_survey *survey,
                             struct silt_timeline *timeline)
{
    const struct silt_stream_row *row = survey->row;
    struct drawing drawing = {.in = in, .survey = survey, .timeline = timeline};
    struct silt_facts facts = {0};
    size_t gap_count;
    const struct silt_gap_row *gaps = silt_survey_gaps(survey, &gap_count);
    bool live = live_facts(in, row, &facts);
    bool above = live && (!row->folded_any || silt_wire_id_less(row->watermark, facts.last));
    uint64_t from = survey->any ? survey->first.ms : UINT64_MAX;
    uint64_t to = survey->any ? survey->last.ms : 0;
    if (live && facts.first.ms < from) from = facts.first.ms;
    if (above && facts.last.ms > to) to = facts.last.ms;
    if (from == UINT64_MAX) return SILT_END;
    silt_timeline_init(timeline, from, to < from ? from : to);
    if (live) timeline->live_from_ms = facts.first.ms;
    enum silt_status status = draw_archive(&drawing);
    if (status == SILT_OK && above) status = draw_live(&drawing, facts.last);
    for (size_t i = 0; i < gap_count; i++)
        silt_timeline_add_gap(timeline, gaps[i].range.after.ms, gaps[i].range.through.ms,
                              gaps[i].has_count ? gaps[i].count : 0);
    silt_buf_release(&drawing.value);
    silt_segment_free(drawing.segment);
    return status;
}

/* ---- JSON ---- */

static void json_segments(struct silt_out *out, const struct silt_survey *survey)
{
    const struct silt_segment_info *info = silt_survey_segments(survey);
    silt_json_name(out, "segment_list");
    silt_json_open(out, '[');
    for (size_t i = 0; i < survey->segments; i++, info++) {
        silt_json_open(out, '{');
        silt_json_name(out, "life");
        silt_json_u64(out, info->life);
        silt_json_name(out, "first");
        silt_json_wire_id(out, info->first);
        silt_json_name(out, "damaged");
        silt_json_bool(out, info->count == 0);
        if (info->count > 0) {
            silt_json_name(out, "last");
            silt_json_wire_id(out, info->last);
            silt_json_name(out, "entries");
            silt_json_u64(out, info->count);
            silt_json_name(out, "values_bytes");
            silt_json_u64(out, info->values_bytes);
            silt_json_name(out, "stored_bytes");
            silt_json_u64(out, info->stored_bytes);
        }
        silt_json_close(out, '}');
    }
    silt_json_close(out, ']');
}

static void json_gaps(struct silt_out *out, const struct silt_survey *survey)
{
    size_t count;
    const struct silt_gap_row *gaps = silt_survey_gaps(survey, &count);
    silt_json_name(out, "gaps");
    silt_json_open(out, '[');
    for (size_t i = 0; i < count; i++) {
        silt_json_open(out, '{');
        silt_json_name(out, "after");
        silt_json_wire_id(out, gaps[i].range.after);
        silt_json_name(out, "through");
        silt_json_wire_id(out, gaps[i].range.through);
        silt_json_name(out, "count");
        if (gaps[i].has_count)
            silt_json_u64(out, gaps[i].count);
        else
            silt_json_null(out);
        silt_json_name(out, "count_is_exact");
        silt_json_bool(out, gaps[i].precision == SILT_GAP_EXACT);
        silt_json_name(out, "cause");
        silt_json_str(out, silt_gap_cause_name(gaps[i].cause));
        silt_json_name(out, "noticed_ms");
        silt_json_u64(out, gaps[i].noticed_ms);
        silt_json_close(out, '}');
    }
    silt_json_close(out, ']');
}

static enum silt_status show_json(struct inspection *in, const struct silt_survey *survey)
{
    struct silt_out *out = &in->call->out;
    const struct silt_stream_row *row = survey->row;
    struct silt_timeline timeline;
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"life", row->life},
                {"lives", survey->lives},
                {"segments", survey->segments},
                {"entries", survey->entries},
                {"foreign_entries", survey->foreign},
                {"values_bytes", survey->values_bytes},
                {"stored_bytes", survey->stored_bytes},
                {"damaged_segments", survey->damaged}};
    const struct silt_wire_id *ids[] = {survey->any ? &survey->first : NULL,
                                        survey->any ? &survey->last : NULL,
                                        row->folded_any ? &row->watermark : NULL};
    static const char *const id_names[] = {"first", "last", "watermark"};
    silt_json_open(out, '{');
    silt_json_name(out, "key");
    silt_json_bytes(out, row->name);
    silt_json_name(out, "kind");
    silt_json_str(out, silt_namespace_is_none(row->ns) ? "plain" : "branded");
    silt_json_name(out, "ns");
    silt_json_str(out, silt_namespace_is_none(row->ns) ? NULL : row->ns.letters);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        silt_json_name(out, rows[i].name);
        silt_json_u64(out, rows[i].value);
    }
    for (size_t i = 0; i < 3; i++) {
        silt_json_name(out, id_names[i]);
        if (ids[i])
            silt_json_id(out, *ids[i], row->ns);
        else
            silt_json_null(out);
    }
    json_gaps(out, survey);
    if (in->segments) json_segments(out, survey);
    enum silt_status status =
        silt_rows_json(out, in->session.store, row, &in->rows, &in->call->err);
    if (status != SILT_OK) return status;
    status = in->timeline ? draw(in, survey, &timeline) : SILT_END;
    if (status == SILT_OK) {
        silt_json_name(out, "timeline");
        silt_timeline_json(out, &timeline);
    }
    silt_json_close(out, '}');
    silt_json_end_line(out);
    return status == SILT_END ? SILT_OK : status;
}

static enum silt_status show_alone(struct inspection *in, const struct silt_survey *survey)
{
    struct silt_timeline timeline;
    show_block(in, survey);
    show_gaps(in, survey);
    if (in->segments) show_segments(in, survey);
    enum silt_status status =
        silt_rows_show(&in->call->out, in->session.store, survey->row, &in->rows, &in->call->err);
    if (status != SILT_OK) return status;
    status = in->timeline ? draw(in, survey, &timeline) : SILT_END;
    if (status == SILT_OK) {
        silt_out_text(&in->call->out, "\n");
        silt_timeline_show(&in->call->out, &timeline);
    }
    silt_out_text(&in->call->out, "\n");
    return status == SILT_END ? SILT_OK : status;
}

static enum silt_status inspect_stream(struct inspection *in, const struct silt_stream_row *row)
{
    struct silt_survey survey;
    enum silt_status status = silt_survey_take(in->session.store, row, &survey, &in->call->err);
    if (status == SILT_OK && in->call->json)
        status = show_json(in, &survey);
    else if (status == SILT_OK && in->at_length)
        status = show_alone(in, &survey);
    else if (status == SILT_OK)
        add_row(in, &survey);
    if (status == SILT_OK && survey.damaged > 0)
        in->call->exit_code = silt_status_exit_code(SILT_ERR_CORRUPT);
    silt_survey_release(&survey);
    return status;
}

static enum silt_status inspect(struct inspection *in)
{
    struct silt_call *call = in->call;
    struct silt_session *session = &in->session;
    struct silt_meta_row meta;
    struct silt_store_space space;
    SILT_CLEANUP(silt_stream_release) struct silt_stream stream = {0};
    enum silt_status status;
    if ((status = silt_session_init(session, call)) != SILT_OK ||
        (status = silt_session_store(session)) != SILT_OK)
        return status;
    if (in->timeline && session->config->address != NULL &&
        (status = silt_session_conn(session)) != SILT_OK)
        return status;
    if (call->arg_count > 0) {
        status =
            silt_store_stream(session->store, silt_view_str(call->args[0]), &stream, &call->err);
        return status == SILT_OK ? inspect_stream(in, &stream.row) : status;
    }
    if ((status = silt_store_meta(session->store, &meta, &call->err)) != SILT_OK ||
        (status = silt_store_space(session->store, &space, &call->err)) != SILT_OK)
        return status;
    show_archive(in, &meta, &space);
    for (uint64_t after = 0; (status = silt_store_stream_after(session->store, after, &stream,
                                                               &call->err)) == SILT_OK;) {
        after = stream.row.number;
        if ((status = inspect_stream(in, &stream.row)) != SILT_OK) return status;
    }
    if (in->streams > 0) silt_table_print(&call->out, &in->table);
    return status == SILT_END ? SILT_OK : status;
}

enum silt_status silt_cmd_inspect(struct silt_call *call)
{
    struct inspection in = {.call = call,
                            .segments = silt_call_option(call, "segments") != NULL,
                            .timeline = silt_call_option(call, "timeline") != NULL};
    in.rows = (struct silt_rows_wanted){.lives = silt_call_option(call, "lives") != NULL,
                                        .forks = silt_call_option(call, "forks") != NULL,
                                        .gaps = silt_call_option(call, "gaps") != NULL,
                                        .late = silt_call_option(call, "late") != NULL};
    in.at_length = call->arg_count > 0 || in.segments || in.timeline || in.rows.lives ||
                   in.rows.forks || in.rows.gaps || in.rows.late;
    enum silt_status status = inspect(&in);
    silt_buf_release(&in.table.cells);
    silt_session_release(&in.session);
    return status;
}
