/* silt verify: proves the archive and tells each finding with its range. */
#include "check.h"
#include "command.h"
#include "session.h"

static const struct silt_option options[] = {
    {"from", "X", "the first id, as silt read takes it; needs KEY"},
    {"to", "X", "the last id; needs KEY"},
    {NULL, NULL, NULL},
};

const struct silt_verb_text silt_text_verify = {
    .options = options,
    .about =
        "Reads the whole archive (one stream with KEY), verifies every checksum, decodes every segment, compares what is "
        "found with what headers and rows say, and goes on behind each finding. Damage is named with the ids that it "
        "costs and makes the exit code 5; a recorded gap is no damage and makes it 1.\n\n"
        "siltd may run meanwhile.",
    .examples = "silt verify --archive /var/lib/silt\n"
                "silt verify quakes --from 2018-02-01 --json",
};

struct survey {
    struct silt_call *call;
    struct silt_progress progress;
    uint64_t damage, gaps;
    uint64_t total_bytes;
};

static void found(void *ctx, const struct silt_finding *finding)
{
    struct survey *survey = ctx;
    struct silt_out *out = &survey->call->out;
    char first[SILT_WIRE_ID_TEXT], last[SILT_WIRE_ID_TEXT];
    bool gap = finding->kind == SILT_FINDING_GAP;
    *(gap ? &survey->gaps : &survey->damage) += 1;
    silt_wire_id_format(finding->first, first);
    silt_wire_id_format(finding->last, last);
    silt_progress_end(&survey->progress);
    if (!survey->call->json) {
        silt_out_printf(out, "%-10s", silt_finding_name(finding->kind));
        silt_out_bytes(out, finding->stream, false);
        silt_out_printf(out, "  life %llu  %s to %s  %s\n", (unsigned long long)finding->life,
                        first, last, finding->text);
        return;
    }
    silt_json_open(out, '{');
    silt_json_name(out, "finding");
    silt_json_str(out, silt_finding_name(finding->kind));
    silt_json_name(out, "damage");
    silt_json_bool(out, !gap);
    silt_json_name(out, "stream");
    if (finding->stream.len)
        silt_json_bytes(out, finding->stream);
    else
        silt_json_null(out);
    silt_json_name(out, "life");
    silt_json_u64(out, finding->life);
    silt_json_name(out, "first");
    silt_json_str(out, first);
    silt_json_name(out, "last");
    silt_json_str(out, last);
    silt_json_name(out, "text");
    silt_json_str(out, finding->text);
    silt_json_close(out, '}');
    silt_json_end_line(out);
}

static void progressed(void *ctx, const struct silt_check_sum *so_far)
{
    struct survey *survey = ctx;
    silt_progress(&survey->progress, "verifying", so_far->stored_bytes, survey->total_bytes);
}

static void summarise(struct survey *survey, const struct silt_check_sum *sum)
{
    struct silt_out *out = &survey->call->out;
    char a[32], b[32], c[32], d[32];
    if (!survey->call->json) {
        silt_out_printf(out, "%s entries in %s segments of %s streams read and decoded, %s\n",
                        silt_count_text(sum->entries, a), silt_count_text(sum->segments, b),
                        silt_count_text(sum->streams, c), silt_bytes_text(sum->stored_bytes, d));
        if (survey->damage > 0)
            silt_out_printf(out, "damage found: %llu", (unsigned long long)survey->damage);
        else
            silt_out_text(out, "no damage");
        silt_out_printf(out, "; recorded gaps: %llu\n", (unsigned long long)survey->gaps);
        return;
    }
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"streams", sum->streams},           {"segments", sum->segments},
                {"entries", sum->entries},           {"values_bytes", sum->values_bytes},
                {"stored_bytes", sum->stored_bytes}, {"damaged_segments", sum->damaged_segments},
                {"damage", survey->damage},          {"gaps", survey->gaps}};
    silt_json_open(out, '{');
    silt_json_name(out, "summary");
    silt_json_open(out, '{');
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        silt_json_name(out, rows[i].name);
        silt_json_u64(out, rows[i].value);
    }
    silt_json_close(out, '}');
    silt_json_close(out, '}');
    silt_json_end_line(out);
}

static enum silt_status parse_range(struct silt_call *call, struct silt_session *session,
                                    struct silt_range *ret)
{
    const char *from = silt_call_option(call, "from"), *to = silt_call_option(call, "to");
    struct silt_stream stream = {0};
    enum silt_status status = SILT_OK;
    *ret = SILT_RANGE_ALL;
    if (call->arg_count == 0) {
        if (from || to) return silt_fail(&call->err, SILT_ERR_USAGE, "--from and --to need a KEY");
        return SILT_OK;
    }
    status = silt_store_stream(session->store, silt_view_str(call->args[0]), &stream, &call->err);
    struct silt_namespace ns = stream.row.ns;
    silt_stream_release(&stream);
    if (status == SILT_OK && from)
        status = silt_bound_parse(silt_view_str(from), SILT_EDGE_FROM, ns, &ret->from, &call->err);
    if (status == SILT_OK && to)
        status = silt_bound_parse(silt_view_str(to), SILT_EDGE_TO, ns, &ret->to, &call->err);
    return status == SILT_OK ? silt_range_check(*ret, &call->err) : status;
}

enum silt_status silt_cmd_verify(struct silt_call *call)
{
    SILT_SESSION_CLEANUP session = {0};
    struct survey survey = {.call = call};
    struct silt_check_sum sum;
    struct silt_store_space space;
    struct silt_check_options what = {.found = found, .progress = progressed, .ctx = &survey};
    enum silt_status status;
    if ((status = silt_session_init(&session, call)) != SILT_OK ||
        (status = silt_session_store(&session)) != SILT_OK ||
        (status = parse_range(call, &session, &what.range)) != SILT_OK)
        return status;
    if (call->arg_count > 0)
        what.stream = silt_view_str(call->args[0]);
    else if (silt_store_space(session.store, &space, NULL) == SILT_OK)
        survey.total_bytes = space.used_bytes;
    status = silt_check(session.store, &what, &sum, &call->err);
    silt_progress_end(&survey.progress);
    if (status != SILT_OK) return status;
    summarise(&survey, &sum);
    if (survey.damage > 0)
        call->exit_code = silt_status_exit_code(SILT_ERR_CORRUPT);
    else if (survey.gaps > 0)
        call->exit_code = SILT_EXIT_FINDING;
    return SILT_OK;
}
