/* See report.h. */
#include "report.h"

#include <stdio.h>

#include "control.h"
#include "instant.h"

static void copy_text(char *ret, size_t size, const char *text)
{
    snprintf(ret, size, "%.*s", (int)(size - 1), text);
}

void silt_report_take(struct silt_report *report, const struct silt_work *work, uint64_t now_ms)
{
    const struct silt_stream_row *row = &work->stream.row;
    report->looked = true;
    report->looked_ms = now_ms;
    report->live_length = work->live_length;
    report->lag_entries = work->lag_entries;
    report->lag_ms = work->lag_ms;
    report->threshold = work->threshold;
    report->held_by = work->held_by;
    copy_text(report->held_name, sizeof report->held_name, work->held_name);
    report->ns = work->config->ns;
    report->verdict = SILT_VERDICT_CLEAR;
    report->reason[0] = '\0';
    if (row->number) {
        report->ns = row->ns;
        report->life = row->life;
        report->incarnation = row->incarnation;
        report->folded_any = row->folded_any;
        report->watermark = row->watermark;
        report->custody = row->custody;
        report->folded_entries = row->folded_entries;
        report->folded_bytes = row->folded_bytes;
        report->trimmed_entries = row->trimmed_entries;
        report->foreign_entries = row->foreign_entries;
        report->gap_entries = row->gap_entries;
        report->late_entries = row->late_entries;
        report->folded_at_ms = row->folded_at_ms;
        report->trimmed_at_ms = row->trimmed_at_ms;
        report->verdict = row->verdict;
        report->verdict_at_ms = row->verdict_at_ms;
        report->audit = row->audit;
        report->epoch = row->epoch;
        snprintf(report->reason, sizeof report->reason, "%.*s", (int)row->verdict_reason.len,
                 row->verdict_reason.len ? (const char *)row->verdict_reason.at : "");
    }
    report->awaited = work->awaited;
    report->held = report->verdict != SILT_VERDICT_CLEAR || work->held_by == SILT_HELD_VERDICT;
    if (!report->held || report->reason[0]) return;
    /* A stream that the archive has no row for yet: the verdict is nowhere but in the pass. */
    if (report->verdict == SILT_VERDICT_CLEAR) report->verdict = SILT_VERDICT_WAITING;
    copy_text(report->reason, sizeof report->reason,
              work->held_name[0] ? work->held_name : work->err.sentence);
}

bool silt_report_fail(struct silt_report_error *error, enum silt_status status,
                      const struct silt_err *err, uint64_t now_ms)
{
    bool is_new = !error->is_set || error->err.code != status ||
                  strcmp(error->err.sentence, err->sentence) != 0;
    if (!error->is_set) error->since_ms = now_ms;
    error->is_set = true;
    error->err = *err;
    error->err.code = status;
    if (!error->err.sentence[0])
        copy_text(error->err.sentence, sizeof error->err.sentence, silt_status_sentence(status));
    return is_new;
}

/* json_object_set_new with a NULL value fails, and then frees nothing of the object: the callers look once, at the end. */
static int set(json_t *object, const char *name, json_t *value)
{
    return json_object_set_new(object, name, value);
}

static json_t *number(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *text_or_null(const char *text)
{
    return *text ? silt_json_bytes(silt_view_str(text)) : json_null();
}

static json_t *moment(uint64_t ms)
{
    char text[SILT_INSTANT_TEXT];
    if (ms == 0 || ms > INT64_MAX) return json_null();
    silt_instant_format((struct silt_instant){(int64_t)ms}, text);
    return json_string(text);
}

json_t *silt_report_id(struct silt_wire_id id, struct silt_namespace ns)
{
    char text[SILT_WIRE_ID_TEXT], branded[SILT_BRANDED_ID_LEN + 1] = "";
    uint64_t snowflake;
    json_t *object = json_object();
    silt_wire_id_format(id, text);
    if (!silt_namespace_is_none(ns) && silt_snowflake_from_wire(id, &snowflake))
        if (silt_branded_id_format((struct silt_branded_id){ns, snowflake}, branded) != SILT_OK)
            branded[0] = '\0';
    int failed = set(object, "id", json_string(text)) |
                 set(object, "branded", text_or_null(branded)) |
                 set(object, "instant", moment(id.ms));
    if (!failed) return object;
    json_decref(object);
    return NULL;
}

json_t *silt_report_error_json(const struct silt_report_error *error, uint64_t now_ms)
{
    if (!error->is_set) return json_null();
    json_t *object = json_object();
    int failed = set(object, "code", json_string(silt_status_name(error->err.code))) |
                 set(object, "sentence", text_or_null(error->err.sentence)) |
                 set(object, "hint", text_or_null(error->err.hint)) |
                 set(object, "ms_ago", number(now_ms - error->since_ms));
    if (!failed) return object;
    json_decref(object);
    return NULL;
}

static const char *state_of(const struct silt_report *report)
{
    if (report->ambiguous) return "ambiguous";
    if (report->error.is_set) return "failing";
    if (!report->looked) return "new";
    if (report->awaited) return "waiting";
    return report->held ? "held" : "ok";
}

static int set_place(json_t *object, const struct silt_report *report)
{
    bool has = report->folded_any, cut = !silt_wire_id_is_zero(report->threshold);
    return set(object, "life", number(report->life)) |
           set(object, "incarnation", number(report->incarnation)) |
           set(object, "watermark",
               has ? silt_report_id(report->watermark, report->ns) : json_null()) |
           set(object, "custody", has ? silt_report_id(report->custody, report->ns) : json_null()) |
           set(object, "threshold",
               cut ? silt_report_id(report->threshold, report->ns) : json_null()) |
           set(object, "held_by", json_string(silt_held_by_name(report->held_by))) |
           set(object, "held_name", text_or_null(report->held_name));
}

static int set_counts(json_t *object, const struct silt_report *report)
{
    return set(object, "live_entries", number(report->live_length)) |
           set(object, "lag_entries", number(report->lag_entries)) |
           set(object, "lag_ms", number(report->lag_ms)) |
           set(object, "folded_entries", number(report->folded_entries)) |
           set(object, "folded_bytes", number(report->folded_bytes)) |
           set(object, "trimmed_entries", number(report->trimmed_entries)) |
           set(object, "foreign_entries", number(report->foreign_entries)) |
           set(object, "gap_entries", number(report->gap_entries)) |
           set(object, "late_entries", number(report->late_entries)) |
           set(object, "folded_at", moment(report->folded_at_ms)) |
           set(object, "trimmed_at", moment(report->trimmed_at_ms));
}

static json_t *audit_json(const struct silt_report *report)
{
    const struct silt_audit *audit = &report->audit;
    if (report->verdict != SILT_VERDICT_AUDIT_PENDING) return json_null();
    json_t *object = json_object();
    int failed = set(object, "cause", json_string(silt_audit_cause_name(audit->cause))) |
                 set(object, "since", moment(report->verdict_at_ms)) |
                 set(object, "opened", json_boolean(audit->opened)) |
                 set(object, "position", silt_report_id(audit->position, report->ns)) |
                 set(object, "through", silt_report_id(audit->through, report->ns)) |
                 set(object, "equal", number(audit->equal)) |
                 set(object, "absent", number(audit->absent)) |
                 set(object, "conflict", number(audit->conflict));
    if (!failed) return object;
    json_decref(object);
    return NULL;
}

json_t *silt_report_json(const struct silt_report *report, struct silt_view key,
                         const struct silt_stream_config *config, uint64_t now_ms,
                         uint64_t next_look_ms)
{
    struct silt_namespace ns = report->looked ? report->ns : config->ns;
    bool plain = silt_namespace_is_none(ns);
    json_t *object = json_object();
    int failed = set(object, "key", silt_json_bytes(key)) |
                 set(object, "match", silt_json_bytes(config->match)) |
                 set(object, "kind", json_string(plain ? "plain" : "branded")) |
                 set(object, "ns", plain ? json_null() : json_string(ns.letters)) |
                 set(object, "state", json_string(state_of(report))) | set_place(object, report) |
                 set_counts(object, report) |
                 set(object, "epoch", report->epoch ? number(report->epoch) : json_null()) |
                 set(object, "audit", audit_json(report)) |
                 set(object, "verdict", json_string(silt_verdict_name(report->verdict))) |
                 set(object, "reason", text_or_null(report->reason)) |
                 set(object, "error", silt_report_error_json(&report->error, now_ms)) |
                 set(object, "looked_ms_ago",
                     report->looked ? number(now_ms - report->looked_ms) : json_null()) |
                 set(object, "next_look_ms", number(next_look_ms));
    if (!failed) return object;
    json_decref(object);
    return NULL;
}
