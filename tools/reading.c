/* Settings and flags into a history. Must not know what is read. */
#include "reading.h"

enum silt_status silt_reading_open(struct silt_session *session, struct silt_history **ret,
                                   struct silt_cursor_options *what)
{
    struct silt_call *call = session->call;
    struct silt_view key = silt_view_str(call->args[0]);
    const struct silt_config *config = session->config;
    struct silt_namespace ns;
    bool archive_only = silt_call_option(call, "archive-only") != NULL;
    enum silt_status status = silt_session_kind(session, key, &ns);
    if (status != SILT_OK) return status;
    struct silt_history_options where = {
        .archive_path = config->archive_path,
        .server_address = archive_only ? NULL : config->address,
        .database = config->database,
        .user = config->user,
        .password_file = config->password_file,
        .tls_ca_file = config->tls_ca_file,
        .tls_cert_file = config->tls_cert_file,
        .tls_key_file = config->tls_key_file,
        .connect_timeout_ms = config->connect_timeout_ms,
        .command_timeout_ms = config->command_timeout_ms,
        .when_away =
            silt_call_option(call, "allow-archive-only") ? SILT_AWAY_ARCHIVE_ONLY : SILT_AWAY_FAIL,
    };
    if (where.archive_path == NULL && where.server_address == NULL) {
        silt_fail(&call->err, SILT_ERR_USAGE, "neither an archive nor a server is named");
        silt_hint(&call->err, "--archive DIR and --valkey ADDRESS, or the settings");
        return SILT_ERR_USAGE;
    }
    /* Before the archiver's first run there is a stream but no archive: all of it is live. */
    if (where.archive_path != NULL && session->store == NULL && where.server_address != NULL)
        where.archive_path = NULL;
    what->key = call->args[0];
    what->key_len = key.len;
    what->ids = silt_namespace_is_none(ns) ? SILT_IDS_WIRE : SILT_IDS_BRANDED;
    memcpy(what->ns, ns.letters, sizeof what->ns);
    what->page_entries = config->page_entries;
    return silt_history_open(&where, ret, &call->err);
}

void silt_reading_tell(struct silt_session *session, const struct silt_cursor *cursor)
{
    char watermark[SILT_WIRE_ID_TEXT];
    if (!silt_cursor_is_archive_only(cursor)) return;
    if (silt_call_option(session->call, "archive-only") != NULL) return;
    silt_wire_id_format(silt_cursor_watermark(cursor), watermark);
    silt_say("the archive alone was read, complete up to %s", watermark);
    if (session->config->address != NULL) session->call->exit_code = SILT_EXIT_FINDING;
}

void silt_reading_probe(struct silt_session *session)
{
    struct silt_call *call = session->call;
    if (silt_call_option(call, "allow-archive-only") == NULL || session->config->address == NULL ||
        silt_session_conn(session) == SILT_OK)
        return;
    silt_say("%s; the archive alone was read", call->err.sentence);
    call->exit_code = SILT_EXIT_FINDING;
}
