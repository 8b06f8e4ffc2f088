/* silt get: one entry, wherever it lives. */
#include "command.h"
#include "reading.h"

static const struct silt_option options[] = {
    SILT_READING_OPTIONS,
    {NULL, NULL, NULL},
};

const struct silt_verb_text silt_text_get = {
    .options = options,
    .about =
        "ID is a wire id in full, <ms>-<seq>, or a branded id. The entry is looked for in the archive and on the server; "
        "one that a consumer still has pending after it was trimmed is found in the archive.\n\n"
        "That happens under groups: ignore, past a group-limit, and where others trim. To get such entries back: "
        "XREADGROUP of the consumer's own list (id 0) answers nil in place of their fields; XPENDING names the ids; "
        "silt get KEY ID gives each of them; XACK takes it off the list when it has been dealt with.\n\n"
        "In text each field has a line of its own; with --json the entry is one object with its tier. "
        "An id that is nowhere gives exit code 1.",
    .examples = "silt get 'emq:{game}:stream:feed' EVT0LA1WsaHbSn\n"
                "redis-cli XREADGROUP GROUP g me STREAMS orders 0\n"
                "redis-cli XPENDING orders g - + 10 me\n"
                "silt get orders 1704117200000-0\n"
                "redis-cli XACK orders g 1704117200000-0",
};

static void show(struct silt_call *call, const struct silt_entry *entry, struct silt_namespace ns,
                 enum silt_tier tier)
{
    struct silt_out *out = &call->out;
    const char *tier_name = tier == SILT_TIER_ARCHIVE ? "archive" : "live";
    char id[SILT_WIRE_ID_TEXT], instant[SILT_INSTANT_TEXT];
    size_t at;
    if (call->json) {
        silt_json_entry(out, entry, ns);
        silt_json_name(out, "tier");
        silt_json_str(out, tier_name);
        silt_json_close(out, '}');
        silt_json_end_line(out);
        return;
    }
    bool ours = silt_entry_is_ours(entry, ns, &at);
    silt_id_text(entry->id, ours ? ns : (struct silt_namespace){0}, id);
    silt_id_instant(entry->id, instant);
    silt_out_printf(out, "%s  %s  (%s%s)\n", id, instant, tier_name,
                    !ours && !silt_namespace_is_none(ns) ? ", foreign" : "");
    for (size_t i = 0; i < entry->field_count; i++) {
        silt_out_text(out, "  ");
        silt_out_bytes(out, entry->fields[i].name, true);
        silt_out_text(out, " = ");
        silt_out_bytes(out, entry->fields[i].value, true);
        silt_out_text(out, "\n");
    }
}

enum silt_status silt_cmd_get(struct silt_call *call)
{
    SILT_SESSION_CLEANUP session = {0};
    struct silt_history *history = NULL;
    struct silt_cursor_options what = SILT_CURSOR_OPTIONS_DEFAULT;
    struct silt_entry *entry = NULL;
    struct silt_namespace ns = {0};
    enum silt_tier tier;
    enum silt_status status = silt_session_init(&session, call);
    if (status == SILT_OK) status = silt_reading_open(&session, &history, &what);
    if (status == SILT_OK)
        status = silt_history_get(history, &what, call->args[1], &entry, &tier, &call->err);
    if (status >= 0) silt_reading_probe(&session);
    if (status == SILT_OK) {
        memcpy(ns.letters, what.ns, sizeof ns.letters);
        show(call, entry, ns, tier);
        silt_entry_free(entry);
    } else if (status == SILT_END) {
        silt_say("there is no entry %s in %s", call->args[1], call->args[0]);
        call->exit_code = SILT_EXIT_FINDING;
    }
    silt_history_close(history);
    return status;
}
