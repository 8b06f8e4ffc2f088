/* silt sync: siltd, fold now. */
#include "command.h"
#include "control_client.h"
#include "session.h"

const struct silt_verb_text silt_text_sync = {
    .about =
        "Asks the running siltd, over the control socket that the settings name, to fold what the stream (without KEY: "
        "every stream) holds at this moment, and returns when it is durable.\n\n"
        "Without a running siltd nothing is done; siltd --once is the way then.",
    .examples = "silt sync && silt status",
};

/* siltd answers for all streams at once; those that could not be folded are listed. */
static void tell(struct silt_call *call, const char *key, const struct silt_json *answer,
                 const struct silt_buf *line)
{
    const struct silt_json *left = silt_json_get(answer, "not_synced");
    uint64_t synced = 0;
    if (silt_json_size(left) > 0) call->exit_code = SILT_EXIT_FINDING;
    if (call->json) {
        if (call->out.status == SILT_OK)
            call->out.status = silt_buf_put(&call->out.buf, line->at, line->len);
        silt_out_text(&call->out, "\n");
        return;
    }
    for (size_t i = 0; i < silt_json_size(left); i++) {
        struct silt_buf mem = {0};
        struct silt_view name = {0};
        char shown[200];
        const struct silt_json *one = silt_json_at(left, i);
        silt_json_get_bytes(silt_json_get(one, "key"), &mem, &name);
        silt_escape(name, shown, sizeof shown);
        silt_say("%s: %s", shown, silt_json_get_str(silt_json_get(one, "sentence")));
        silt_buf_release(&mem);
    }
    if (key != NULL)
        silt_out_printf(&call->out, "%s: folded, and durable\n", key);
    else if (silt_json_get_u64(silt_json_get(answer, "synced"), &synced))
        silt_out_printf(&call->out, "%llu streams folded, and durable\n",
                        (unsigned long long)synced);
}

enum silt_status silt_cmd_sync(struct silt_call *call)
{
    SILT_SESSION_CLEANUP session = {0};
    struct silt_buf line = {0};
    struct silt_json *answer = NULL;
    const char *key = call->arg_count > 0 ? call->args[0] : NULL;
    enum silt_status status = silt_session_init(&session, call);
    if (status != SILT_OK) return status;
    if (session.config->control == NULL) {
        silt_fail(&call->err, SILT_ERR_USAGE, "the settings name no control socket");
        silt_hint(&call->err, "control: PATH in the settings of siltd and silt");
        return SILT_ERR_USAGE;
    }
    status =
        silt_control_ask(session.config->control, "sync", key, NULL, &line, &answer, &call->err);
    if (status == SILT_END) {
        silt_fail(&call->err, SILT_ERR_SERVER_AWAY, "siltd is not running: nobody listens on %s",
                  session.config->control);
        silt_hint(&call->err, "siltd --once folds and ends");
        status = SILT_ERR_SERVER_AWAY;
    }
    if (status == SILT_OK) tell(call, key, answer, &line);
    silt_json_free(answer);
    silt_buf_release(&line);
    return status;
}
