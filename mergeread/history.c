/* A history: one handle of the archive and one connection, which its cursors use one after the other; and the single entry. */
#include "alloc.h"
#include "cursor_priv.h"

#define UUID_SEED 0x73696c7475756964ULL /* "siltuuid" */
#define CONNECT_TIMEOUT_MS 5000u
#define COMMAND_TIMEOUT_MS 10000u
#define BLOCK_MS 1000u

static bool ask_cancelled(void *ctx)
{
    const struct silt_history *history = ctx;
    return history->cancelled != NULL && history->cancelled(history->cancelled_ctx);
}

static enum silt_status open_archive(struct silt_history *history, const char *path,
                                     struct silt_err *err)
{
    enum silt_status status =
        silt_store_open(path, &SILT_STORE_OPTIONS_DEFAULT, &history->store, err);
    if (status == SILT_OK) status = silt_store_meta(history->store, &history->meta, err);
    if (status != SILT_OK) return status;
    history->archive_hash = silt_checksum(silt_view_str(history->meta.uuid), UUID_SEED);
    if (history->archive_hash == 0) history->archive_hash = 1; /* 0 stands for none */
    return SILT_OK;
}

static enum silt_status name_server(struct silt_history *history,
                                    const struct silt_history_options *options,
                                    struct silt_err *err)
{
    struct silt_conn_options conn = SILT_CONN_OPTIONS_DEFAULT;
    conn.address = options->server_address;
    conn.database = options->database;
    conn.user = options->user;
    conn.password_file = options->password_file;
    conn.tls_ca_file = options->tls_ca_file;
    conn.tls_cert_file = options->tls_cert_file;
    conn.tls_key_file = options->tls_key_file;
    conn.connect_timeout_ms =
        options->connect_timeout_ms != 0 ? options->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    conn.command_timeout_ms =
        options->command_timeout_ms != 0 ? options->command_timeout_ms : COMMAND_TIMEOUT_MS;
    conn.cancelled = ask_cancelled;
    conn.cancelled_ctx = history;
    /* A blocking read must end well before the connection takes its silence for a fault. */
    history->block_ms = silt_min_u64(BLOCK_MS, conn.command_timeout_ms / 2 + 1);
    return silt_conn_new(&conn, &history->conn, err);
}

enum silt_status silt_history_open(const struct silt_history_options *options,
                                   struct silt_history **ret, struct silt_err *err)
{
    if (options->archive_path == NULL && options->server_address == NULL)
        return silt_fail(err, SILT_ERR_USAGE, "a history needs an archive, a server or both");
    struct silt_history *history = silt_calloc(1, sizeof *history);
    if (history == NULL) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    history->when_away = options->when_away;
    history->block_ms = BLOCK_MS;
    enum silt_status status = SILT_OK;
    if (options->server_address != NULL) status = name_server(history, options, err);
    if (status == SILT_OK && options->archive_path != NULL)
        status = open_archive(history, options->archive_path, err);
    if (status != SILT_OK) {
        silt_history_close(history);
        return status;
    }
    *ret = history;
    return SILT_OK;
}

void silt_history_close(struct silt_history *history)
{
    if (history == NULL) return;
    silt_conn_free(history->conn);
    silt_store_close(history->store);
    silt_reply_release(&history->scratch);
    silt_free(history);
}

bool silt_history_was_archive_only(const struct silt_history *history)
{
    return history->went_without;
}

/* ---- one entry ---- */

/* Exactly one id: a wire id in full form, or a branded id. */
static enum silt_status check_id(const char *id, struct silt_err *err)
{
    struct silt_view text = silt_view_str(id);
    struct silt_branded_id branded;
    struct silt_wire_id wire;
    if (text.len > 0 && text.at[0] >= '0' && text.at[0] <= '9' &&
        silt_wire_id_parse(text, &wire, NULL) == SILT_OK)
        return SILT_OK;
    if (text.len == SILT_BRANDED_ID_LEN && silt_branded_id_parse(text, &branded, NULL) == SILT_OK)
        return SILT_OK;
    if (text.len > 0 && text.at[0] >= '0' && text.at[0] <= '9')
        return silt_wire_id_parse(text, &wire, err);
    return silt_branded_id_parse(text, &branded, err);
}

/* A walk over one id: up to the watermark out of the archive, above it a page and then the archive as of after it, so what was folded and trimmed meanwhile is
 * found. */
static enum silt_status walk_one(struct silt_cursor *cursor, struct silt_entry **ret,
                                 enum silt_tier *ret_tier, struct silt_err *err)
{
    struct silt_item item;
    enum silt_status status;
    while ((status = silt_cursor_next(cursor, &item, err)) == SILT_OK) {
        if (item.kind != SILT_ITEM_ENTRY) continue;
        struct silt_entry *copy;
        status = silt_entry_copy(&item.entry, &copy);
        if (status != SILT_OK) return silt_fail(err, status, NULL);
        *ret = copy;
        *ret_tier = item.tier;
        return SILT_OK;
    }
    /* Where the server was not asked, an id above the watermark may well be there. */
    if (status == SILT_END && cursor->archive_only && cursor->history->conn != NULL &&
        !cursor->older_life) {
        if (err != NULL) *err = cursor->away;
        return cursor->away.code;
    }
    /* In doubt the server may hold an entry also at or below the watermark: "there is none" cannot be said. */
    if (status == SILT_END && cursor->known && !cursor->archive_only && !cursor->older_life &&
        cursor->stream.row.verdict == SILT_VERDICT_AUDIT_PENDING)
        return silt_cursor_doubt(cursor, err);
    return status;
}

enum silt_status silt_history_get(struct silt_history *history,
                                  const struct silt_cursor_options *which, const char *id,
                                  struct silt_entry **ret, enum silt_tier *ret_tier,
                                  struct silt_err *err)
{
    struct silt_cursor_options options = *which;
    enum silt_tier tier = SILT_TIER_ARCHIVE;
    enum silt_status status = check_id(id, err);
    if (status != SILT_OK) return status;
    options.from = options.to = id;
    options.resume = NULL;
    options.reverse = options.follow = options.skip_damaged = false;
    options.limit = 0;
    options.page_entries = 1;
    struct silt_cursor *cursor = NULL;
    status = silt_cursor_open(history, &options, &cursor, err);
    if (status != SILT_OK) return status;
    status = walk_one(cursor, ret, &tier, err);
    history->went_without = cursor->archive_only;
    silt_cursor_close(cursor);
    if (status == SILT_OK && ret_tier != NULL) *ret_tier = tier;
    return status;
}
