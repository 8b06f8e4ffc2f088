/* One question to siltd and what came of it. Must not know how a stream is taken over. */
#include "takeover.h"

#include "control_client.h"
#include "session.h"

static const char *text(const struct silt_json *object, const char *name)
{
    return silt_json_get_str(silt_json_get(object, name));
}

static unsigned long long number(const struct silt_json *object, const char *name)
{
    uint64_t value = 0;
    (void)silt_json_get_u64(silt_json_get(object, name), &value);
    return value;
}

/* "archive <uuid> epoch <e>", or the bare name of a group that is called like a marker and is none. */
static void put_marker(struct silt_out *out, const struct silt_json *marker)
{
    if (*text(marker, "uuid"))
        silt_out_printf(out, "archive %s epoch %llu (marker at %s)", text(marker, "uuid"),
                        number(marker, "epoch"), text(marker, "at"));
    else
        silt_out_printf(out, "the group %s at %s", text(marker, "marker"), text(marker, "at"));
}

static void put_from(struct silt_out *out, const struct silt_json *answer)
{
    const struct silt_json *from = silt_json_get(answer, "from");
    for (size_t i = 0; i < silt_json_size(from); i++) {
        silt_out_text(out, i == 0 ? "" : " and ");
        put_marker(out, silt_json_at(from, i));
    }
    if (silt_json_size(from) == 0) silt_out_text(out, "nobody");
}

static void tell_adopted(struct silt_out *out, const char *key, const struct silt_json *answer,
                         bool dry)
{
    if (silt_json_is_true(silt_json_get(answer, "already"))) {
        silt_out_printf(out, "%s: is archive %s's already, epoch %llu\n", key, text(answer, "uuid"),
                        number(answer, "epoch"));
        return;
    }
    silt_out_printf(out, "%s: %s from ", key, dry ? "would be taken over" : "took over");
    put_from(out, answer);
    silt_out_printf(out, "; %s archive %s epoch %llu\n", dry ? "it would be" : "it is now",
                    text(answer, "uuid"), number(answer, "epoch"));
    if (silt_json_is_true(silt_json_get(answer, "audit")))
        silt_out_text(out, "before anything is folded or trimmed an audit compares what is live "
                           "with the archive: silt status\n");
}

static void tell_released(struct silt_out *out, const char *key, const struct silt_json *answer,
                          bool dry)
{
    if (silt_json_is_true(silt_json_get(answer, "already"))) {
        silt_out_printf(out, "%s: was released already\n", key);
        return;
    }
    silt_out_printf(out, "%s: %s by archive %s epoch %llu; %s until silt adopt takes it up again\n",
                    key, dry ? "would be released" : "released", text(answer, "uuid"),
                    number(answer, "epoch"), dry ? "it would be left alone" : "it is left alone");
}

static enum silt_status ask(struct silt_call *call, const struct silt_config *config,
                            const char *verb, struct silt_buf *line, struct silt_json **ret)
{
    const char *flag = silt_call_option(call, "dry-run") ? "dry_run" : NULL;
    if (config->control == NULL) {
        silt_fail(&call->err, SILT_ERR_USAGE, "the settings name no control socket");
        silt_hint(&call->err, "control: PATH in the settings of siltd and silt");
        return SILT_ERR_USAGE;
    }
    enum silt_status status =
        silt_control_ask(config->control, verb, call->args[0], flag, line, ret, &call->err);
    if (status != SILT_END) return status;
    silt_fail(&call->err, SILT_ERR_SERVER_AWAY, "siltd is not running: nobody listens on %s",
              config->control);
    silt_hint(&call->err,
              "start siltd with these settings (or name others with --config), then silt %s again",
              verb);
    return SILT_ERR_SERVER_AWAY;
}

enum silt_status silt_takeover(struct silt_call *call, const char *verb)
{
    SILT_SESSION_CLEANUP session = {0};
    struct silt_buf line = {0};
    struct silt_json *answer = NULL;
    bool dry = silt_call_option(call, "dry-run") != NULL;
    enum silt_status status = silt_session_init(&session, call);
    if (status == SILT_OK) status = ask(call, session.config, verb, &line, &answer);
    if (status == SILT_OK && call->json) {
        if (call->out.status == SILT_OK)
            call->out.status = silt_buf_put(&call->out.buf, line.at, line.len);
        silt_out_text(&call->out, "\n");
    } else if (status == SILT_OK) {
        char key[200];
        silt_escape(silt_view_str(call->args[0]), key, sizeof key);
        (strcmp(verb, "adopt") == 0 ? tell_adopted : tell_released)(&call->out, key, answer, dry);
    }
    silt_json_free(answer);
    silt_buf_release(&line);
    return status;
}
