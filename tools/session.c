/* Settings, archive and server for a verb. Must not know what the verb does with them. */
#include "session.h"

#include "alloc.h"

enum silt_status silt_ids_parse(const char *text, struct silt_namespace *ret, struct silt_err *err)
{
    static const char branded[] = "branded ";
    if (strcmp(text, "wire") == 0) {
        *ret = (struct silt_namespace){0};
        return SILT_OK;
    }
    if (strncmp(text, branded, sizeof branded - 1) == 0)
        return silt_namespace_parse(silt_view_str(text + sizeof branded - 1), ret, err);
    silt_fail(err, SILT_ERR_USAGE, "--ids is 'branded NS' or 'wire', not '%s'", text);
    silt_hint(err, "--ids 'branded EVT'");
    return SILT_ERR_USAGE;
}

enum silt_status silt_session_init(struct silt_session *session, struct silt_call *call)
{
    enum silt_status status;
    const char *ids = silt_call_option(call, "ids");
    *session = (struct silt_session){.call = call, .ids_given = ids != NULL};
    if (ids && (status = silt_ids_parse(ids, &session->ids, &call->err)) != SILT_OK) return status;
    if ((status = silt_config_load(silt_call_option(call, "config"), &session->config,
                                   &call->err)) != SILT_OK)
        return status;
    return silt_config_override(session->config, silt_call_option(call, "archive"),
                                silt_call_option(call, "valkey"), &call->err);
}

void silt_session_release(struct silt_session *session)
{
    silt_store_close(session->store);
    silt_conn_free(session->conn);
    silt_config_free(session->config);
    *session = (struct silt_session){0};
}

enum silt_status silt_session_store(struct silt_session *session)
{
    struct silt_err *err = &session->call->err;
    if (session->store != NULL) return SILT_OK;
    if (session->config->archive_path == NULL) {
        silt_fail(err, SILT_ERR_USAGE, "no archive is named");
        silt_hint(err, "--archive DIR, or archive: path: in the settings");
        return SILT_ERR_USAGE;
    }
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    options.map_limit_bytes = session->config->map_limit_bytes;
    return silt_store_open(session->config->archive_path, &options, &session->store, err);
}

enum silt_status silt_session_conn(struct silt_session *session)
{
    struct silt_err *err = &session->call->err;
    if (session->conn == NULL) {
        if (session->config->address == NULL) {
            silt_fail(err, SILT_ERR_USAGE, "no server is named");
            silt_hint(err, "--valkey unix:PATH or --valkey tcp:HOST:PORT, or valkey: address: in "
                           "the settings");
            return SILT_ERR_USAGE;
        }
        struct silt_conn_options options = SILT_CONN_OPTIONS_DEFAULT;
        silt_config_conn_options(session->config, &options);
        enum silt_status status = silt_conn_new(&options, &session->conn, err);
        if (status != SILT_OK) return status;
    }
    return silt_conn_open(session->conn, err);
}

static const char *kind_name(struct silt_namespace ns, char ret[16])
{
    if (silt_namespace_is_none(ns)) return "wire";
    snprintf(ret, 16, "branded %s", ns.letters);
    return ret;
}

/* The archive's word. SILT_END: it has none (no archive, or not this stream). */
static enum silt_status kind_of_row(struct silt_session *session, struct silt_view key,
                                    struct silt_namespace *ret)
{
    if (session->config->archive_path == NULL) return SILT_END;
    enum silt_status status = silt_session_store(session);
    if (status == SILT_ERR_NO_ARCHIVE) return SILT_END; /* before the archiver's first run */
    if (status != SILT_OK) return status;
    SILT_CLEANUP(silt_stream_release) struct silt_stream stream = {0};
    status = silt_store_stream(session->store, key, &stream, &session->call->err);
    if (status == SILT_ERR_UNKNOWN_STREAM) return SILT_END;
    if (status == SILT_OK) *ret = stream.row.ns;
    return status;
}

enum silt_status silt_session_kind(struct silt_session *session, struct silt_view key,
                                   struct silt_namespace *ret)
{
    struct silt_namespace ns = {0};
    enum silt_status status = kind_of_row(session, key, &ns);
    if (status == SILT_OK && session->ids_given && !silt_namespace_equal(ns, session->ids)) {
        char given[16], known[16];
        silt_fail(&session->call->err, SILT_ERR_USAGE,
                  "--ids '%s', but the archive knows this stream as '%s'",
                  kind_name(session->ids, given), kind_name(ns, known));
        silt_err_set_stream(&session->call->err, key.at, key.len);
        return SILT_ERR_USAGE;
    }
    if (status < 0) return status;
    if (status == SILT_END) {
        const struct silt_stream_config *match = NULL, *other = NULL;
        if (session->ids_given)
            ns = session->ids;
        else if (silt_config_match(session->config, key, &match, &other) == SILT_MATCH_ONE)
            ns = match->ns;
    }
    *ret = ns;
    return SILT_OK;
}
