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
    status = silt_control_ask(session.config->control, "sync", key, &line, &answer, &call->err);
    if (status == SILT_END) {
        silt_fail(&call->err, SILT_ERR_SERVER_AWAY, "siltd is not running: nobody listens on %s",
                  session.config->control);
        silt_hint(&call->err, "siltd --once folds and ends");
        status = SILT_ERR_SERVER_AWAY;
    }
    if (status == SILT_OK) {
        if (call->json)
            silt_out_printf(&call->out, "%.*s\n", (int)line.len, (const char *)line.at);
        else
            silt_out_printf(&call->out, "%s: folded, and durable\n", key ? key : "every stream");
    }
    silt_json_free(answer);
    silt_buf_release(&line);
    return status;
}
