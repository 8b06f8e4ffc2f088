/* From closed to ready: socket, login, database, and which server it is. */
#include <stdio.h>

#include "alloc.h"
#include "conn_priv.h"

/* The login's failure must not carry the password into a log: some refusals repeat the command. */
static enum silt_status login_refused(const struct silt_reply *reply, const struct silt_buf *secret,
                                      struct silt_err *err)
{
    struct silt_view text = silt_reply_text(reply, 0);
    if (secret->len > 0 && memmem(text.at, text.len, secret->at, secret->len) != NULL) {
        const uint8_t *blank = memchr(text.at, ' ', text.len);
        text.len = blank != NULL ? (size_t)(blank - text.at) : 0;
    }
    return silt_reply_error_class(text, err);
}

static enum silt_status log_in(struct silt_conn *conn, const struct silt_buf *secret,
                               struct silt_reply *reply, struct silt_err *err)
{
    struct silt_view argv[3] = {silt_view_str("AUTH")};
    size_t argc = 1;
    if (conn->options.user != NULL) argv[argc++] = silt_view_str(conn->options.user);
    argv[argc++] = silt_buf_view(secret);
    enum silt_status status = silt_conn_put(conn, argv, argc, err);
    if (status == SILT_OK) status = silt_conn_receive(conn, reply, err);
    silt_buf_wipe(&conn->out);
    if (conn->fd < 0 || status == SILT_OK) return status;
    return login_refused(reply, secret, err);
}

static enum silt_status select_database(struct silt_conn *conn, struct silt_reply *reply,
                                        struct silt_err *err)
{
    char number[16];
    snprintf(number, sizeof number, "%u", conn->options.database);
    const struct silt_view argv[2] = {silt_view_str("SELECT"), silt_view_str(number)};
    enum silt_status status = silt_conn_put(conn, argv, 2, err);
    if (status == SILT_OK) status = silt_conn_receive(conn, reply, err);
    return status;
}

/* The rest of the line that begins with name, copied as far as it fits; false: no such line. */
static bool info_line(struct silt_view info, const char *name, char *ret, size_t size)
{
    size_t name_len = strlen(name);
    const uint8_t *at = info.at, *end = info.at + info.len;
    while (at < end) {
        const uint8_t *line_end = memchr(at, '\n', (size_t)(end - at));
        if (line_end == NULL) line_end = end;
        size_t len = (size_t)(line_end - at);
        if (len > name_len && memcmp(at, name, name_len) == 0) {
            size_t n = len - name_len;
            while (n > 0 && at[name_len + n - 1] <= ' ')
                n--;
            if (n >= size) n = size - 1;
            silt_escape(silt_view(at + name_len, n), ret, size);
            return true;
        }
        at = line_end + (line_end < end ? 1 : 0);
    }
    return false;
}

static enum silt_status learn_server(struct silt_conn *conn, struct silt_view info,
                                     struct silt_err *err)
{
    char version[32];
    const char *name = "valkey";
    unsigned major = 0, minor = 0;
    if (!info_line(info, "valkey_version:", version, sizeof version)) {
        name = "redis";
        if (!info_line(info, "redis_version:", version, sizeof version)) return SILT_OK;
    }
    snprintf(conn->server, sizeof conn->server, "%s %s", name, version);
    if (sscanf(version, "%5u.%5u", &major, &minor) != 2) return SILT_OK;
    bool old = name[0] == 'v' ? major < 7 || (major == 7 && minor < 2) : major < 7;
    if (!old) return SILT_OK;
    return silt_fail(err, SILT_ERR_SERVER_OLD,
                     "%s is %s, which is too old: Valkey 7.2 or Redis 7.0 is the least",
                     conn->address.text, conn->server);
}

/* INFO is asked where it is allowed: without the right to it, or under another name, the server stays unknown. */
static bool is_withheld(enum silt_status status, const struct silt_reply *reply)
{
    struct silt_view text = silt_reply_text(reply, 0);
    return status == SILT_ERR_SERVER_REFUSED ||
           (status == SILT_ERR_SERVER_DENIED && text.len >= 6 && memcmp(text.at, "NOPERM", 6) == 0);
}

static enum silt_status ask_server(struct silt_conn *conn, struct silt_reply *reply,
                                   struct silt_err *err)
{
    const struct silt_view argv[2] = {silt_view_str("INFO"), silt_view_str("server")};
    struct silt_err told = {0};
    enum silt_status status = silt_conn_put(conn, argv, 2, err);
    if (status != SILT_OK) return status;
    status = silt_conn_receive(conn, reply, &told);
    if (status == SILT_OK && reply->nodes[0].type != SILT_NODE_STRING)
        return silt_conn_nonsense(conn, err, "INFO to answer with a text");
    if (status == SILT_OK) return learn_server(conn, silt_reply_text(reply, 0), err);
    bool withheld = conn->fd >= 0 && is_withheld(status, reply);
    if (withheld) return SILT_OK;
    if (err != NULL) *err = told;
    return status;
}

static enum silt_status start_transport(struct silt_conn *conn, struct silt_err *err)
{
    struct silt_waiter waiter = silt_conn_waiter(conn, conn->options.connect_timeout_ms);
    int fd = -1;
    enum silt_status status = silt_socket_connect(&conn->address, &waiter, &fd, err);
    if (status != SILT_OK) return status;
    conn->fd = fd;
    conn->generation++;
    conn->denied = 0;
    snprintf(conn->server, sizeof conn->server, "unknown");
    if (silt_parser_new(conn->options.reply_limit_bytes, &conn->parser) != SILT_OK)
        return silt_conn_no_memory(conn, err);
    if (conn->address.transport != SILT_TRANSPORT_TLS) return SILT_OK;
    status = silt_tls_open(fd, &conn->address, &conn->options, &waiter, &conn->tls, err);
    if (status != SILT_OK) silt_conn_close(conn);
    return status;
}

enum silt_status silt_conn_open(struct silt_conn *conn, struct silt_err *err)
{
    if (conn->fd >= 0) {
        if (conn->owed != 0) return SILT_OK;
        enum silt_status status = silt_conn_check_idle(conn, err);
        /* A server may close an idle connection (timeout, CLIENT KILL): nothing was under way, so connecting again loses nothing. */
        if (status != SILT_ERR_SERVER_AWAY) return status;
    }
    SILT_CLEANUP(silt_reply_release) struct silt_reply reply = {0};
    struct silt_buf secret = {0};
    enum silt_status status = SILT_OK;
    /* Read at every connect: a changed password needs no restart. */
    if (conn->options.password_file != NULL)
        status = silt_password_read(conn->options.password_file, &secret, err);
    if (status == SILT_OK) status = start_transport(conn, err);
    if (status == SILT_OK && (conn->options.password_file != NULL || conn->options.user != NULL))
        status = log_in(conn, &secret, &reply, err);
    silt_buf_wipe(&secret);
    silt_buf_release(&secret);
    if (status == SILT_OK && conn->options.database != 0)
        status = select_database(conn, &reply, err);
    if (status == SILT_OK) status = ask_server(conn, &reply, err);
    if (status != SILT_OK && conn->fd >= 0) silt_conn_close(conn);
    return status;
}
