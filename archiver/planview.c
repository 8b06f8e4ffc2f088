/* See planview.h. */
#include "planview.h"

#include <inttypes.h>
#include <jansson.h>

#include "alloc.h"
#include "control.h"
#include "roster.h"

struct row {
    const struct silt_roster_stream *stream;
    struct silt_preview preview;
    struct silt_err err; /* code 0: planned */
};

struct view {
    struct silt_archiver *archiver;
    struct silt_roster roster;
    struct row *rows;
    uint64_t live, fold, trim, freed;
    bool finding;
};

static bool never(void *ctx)
{
    (void)ctx;
    return false; /* the signals' own effect ends a plan */
}

static void release(struct view *view)
{
    silt_roster_drop_works(&view->roster);
    silt_roster_release(&view->roster);
    silt_archiver_free(view->archiver);
    silt_free(view->rows);
}

static enum silt_status find_streams(struct view *view, const struct silt_config *config,
                                     struct silt_err *err)
{
    if (silt_roster_init(&view->roster, config) != SILT_OK ||
        silt_roster_add_exact(&view->roster) != SILT_OK)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    enum silt_status status = SILT_OK;
    while (status == SILT_OK)
        status = silt_roster_scan(&view->roster, silt_archiver_conn(view->archiver), 64, err);
    return status == SILT_END ? SILT_OK : status;
}

/* The server being away is everybody's failure; anything else is the stream's own. */
static enum silt_status plan_stream(struct view *view, struct silt_roster_stream *stream,
                                    struct row *row, struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    row->stream = stream;
    if (stream->other) {
        silt_fail(&row->err, SILT_ERR_CONFIG, "two patterns match; the stream is left alone");
    } else {
        status = silt_archiver_work(view->archiver, silt_buf_view(&stream->key), stream->config,
                                    &stream->work, &row->err);
        if (status == SILT_OK)
            status = silt_archiver_preview(view->archiver, stream->work, &row->preview, &row->err);
        if (status != SILT_OK && row->err.code == SILT_OK) silt_fail(&row->err, status, NULL);
        /* What went well after all has left its words: a stream without a row, a key that is not there. */
        if (status == SILT_OK) row->err = (struct silt_err){0};
    }
    view->finding = view->finding || row->err.code != SILT_OK ||
                    (row->preview.held_by == SILT_HELD_VERDICT && !row->preview.awaited);
    view->live += row->preview.live_entries;
    view->fold += row->preview.fold_entries;
    view->trim += row->preview.trim_entries;
    view->freed += row->preview.trim_memory_bytes;
    enum silt_class class = silt_status_class(status);
    if (class != SILT_CLASS_RETRY && class != SILT_CLASS_FULL) return SILT_OK;
    if (err) *err = row->err;
    return status;
}

/* ---- JSON ---- */

static json_t *number(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *row_json(const struct row *row)
{
    const struct silt_preview *p = &row->preview;
    bool cut = !silt_wire_id_is_zero(p->threshold);
    struct silt_report_error error = {.is_set = row->err.code != SILT_OK, .err = row->err};
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:s,s:o,s:o,s:o,s:o}", "key",
                     silt_json_bytes(silt_buf_view(&row->stream->key)), "match",
                     silt_json_bytes(row->stream->config->match), "live_entries",
                     number(p->live_entries), "fold_entries", number(p->fold_entries), "segments",
                     number(p->segments), "trim_entries", number(p->trim_entries), "threshold",
                     cut ? silt_report_id(p->threshold, row->stream->config->ns) : json_null(),
                     "held_by", silt_held_by_name(p->held_by), "held_name",
                     p->held_name[0] ? silt_json_bytes(silt_view_str(p->held_name)) : json_null(),
                     "memory_bytes", number(p->memory_bytes), "trim_memory_bytes",
                     number(p->trim_memory_bytes), "error", silt_report_error_json(&error, 0));
}

static enum silt_status print_json(const struct view *view, FILE *out)
{
    json_t *list = json_array();
    for (size_t i = 0; i < view->roster.count; i++)
        json_array_append_new(list, row_json(&view->rows[i]));
    json_t *all = json_pack("{s:o,s:o,s:o,s:o,s:o}", "streams", list, "live_entries",
                            number(view->live), "fold_entries", number(view->fold), "trim_entries",
                            number(view->trim), "trim_memory_bytes", number(view->freed));
    int failed = !all || json_dumpf(all, out, JSON_COMPACT) != 0 || fputc('\n', out) == EOF;
    json_decref(all);
    return failed ? SILT_ERR_MEMORY : SILT_OK;
}

/* ---- table ---- */

static void show_bytes(uint64_t bytes, char ret[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double shown = (double)bytes;
    size_t unit = 0;
    while (shown >= 1024 && unit < 4) {
        shown /= 1024;
        unit++;
    }
    snprintf(ret, 24, unit && shown < 10 ? "%.1f %s" : "%.0f %s", shown, units[unit]);
}

static void print_table(const struct view *view, FILE *out)
{
    size_t width = 6;
    char key[80], freed[24], from[SILT_WIRE_ID_TEXT];
    for (size_t i = 0; i < view->roster.count; i++) {
        silt_escape(silt_buf_view(&view->roster.streams[i]->key), key, sizeof key);
        if (strlen(key) > width) width = strlen(key);
    }
    fprintf(out, "%-*s %12s %12s %12s %10s  %-26s %s\n", (int)width, "STREAM", "LIVE", "TO FOLD",
            "TO TRIM", "FREES", "STAYS FROM", "HELD BY");
    for (size_t i = 0; i < view->roster.count; i++) {
        const struct row *row = &view->rows[i];
        const struct silt_preview *p = &row->preview;
        silt_escape(silt_buf_view(&row->stream->key), key, sizeof key);
        if (row->err.code != SILT_OK) {
            fprintf(out, "%-*s %s\n", (int)width, key, row->err.sentence);
            continue;
        }
        show_bytes(p->trim_memory_bytes, freed);
        silt_wire_id_format(p->threshold, from);
        fprintf(out, "%-*s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %10s  %-26s %s%s%s\n",
                (int)width, key, p->live_entries, p->fold_entries, p->trim_entries, freed,
                silt_wire_id_is_zero(p->threshold) ? "-" : from, silt_held_by_name(p->held_by),
                p->held_name[0] ? " " : "", p->held_name);
    }
    show_bytes(view->freed, freed);
    fprintf(out, "%-*s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %10s\n", (int)width, "in all",
            view->live, view->fold, view->trim, freed);
}

int silt_planview_run(const struct silt_config *config, bool json, FILE *out, struct silt_err *err)
{
    SILT_CLEANUP(release) struct view view = {0};
    enum silt_status status = silt_archiver_new_preview(config, never, NULL, &view.archiver, err);
    if (status == SILT_OK) status = find_streams(&view, config, err);
    if (status == SILT_OK) {
        view.rows = silt_calloc(view.roster.count ? view.roster.count : 1, sizeof *view.rows);
        if (!view.rows) status = silt_fail(err, SILT_ERR_MEMORY, NULL);
    }
    for (size_t i = 0; i < view.roster.count && status == SILT_OK; i++)
        status = plan_stream(&view, view.roster.streams[i], &view.rows[i], err);
    if (status == SILT_OK) {
        if (json)
            status = print_json(&view, out);
        else
            print_table(&view, out);
    }
    if (status != SILT_OK) return silt_status_exit_code(status);
    return view.finding ? 1 : 0;
}
