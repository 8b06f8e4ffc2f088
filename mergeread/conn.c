/* The one door to the server: sends commands, reads replies into flat pages, gives each failure its name. The bytes are fetched here, not by hiredis,
 * because only so every wait has a deadline. Knows nothing of streams. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "alloc.h"
#include "conn_priv.h"

#define CHUNK_BYTES ((size_t)128 << 10) /* one read */
#define PROGRESS_BYTES \
    ((size_t)64 << 10) /* so much more within the time limit keeps a slow reply alive */
#define OUT_BYTES_MAX ((size_t)1 << 20)   /* appended commands beyond it are sent at once */
#define REPLY_BYTES_MAX ((size_t)1 << 30) /* whatever the options say; hiredis 0.14 counts in int */
#define WORDS_MAX 32
#define NOTE_HEAD 5
#define DENIED_MS 10000

/* ---- life ---- */

static enum silt_status copy_text(const char *from, char **ret)
{
    if (from == NULL) return SILT_OK;
    *ret = silt_strdup(from);
    return *ret == NULL ? SILT_ERR_MEMORY : SILT_OK;
}

enum silt_status silt_conn_new(const struct silt_conn_options *options, struct silt_conn **ret,
                               struct silt_err *err)
{
    const struct silt_conn_options defaults = SILT_CONN_OPTIONS_DEFAULT;
    struct silt_address address;
    enum silt_status status = silt_address_parse(options->address, &address, err);
    if (status != SILT_OK) return status;
    if (address.transport == SILT_TRANSPORT_TLS && !silt_tls_is_built_in()) {
        status = silt_fail(err, SILT_ERR_NOT_BUILT_IN, "cannot use %s: this build has no TLS",
                           address.text);
        silt_hint(
            err,
            "build it with OpenSSL's headers there (-Dtls=enabled), or put a TLS proxy in front of the server");
        return status;
    }
    struct silt_conn *conn = silt_calloc(1, sizeof *conn);
    if (conn == NULL) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    conn->fd = -1;
    conn->address = address;
    conn->options = *options;
    conn->chunk = silt_alloc(CHUNK_BYTES);
    if (conn->chunk == NULL || copy_text(options->user, &conn->user) != SILT_OK ||
        copy_text(options->password_file, &conn->password_file) != SILT_OK ||
        copy_text(options->tls_ca_file, &conn->tls_ca_file) != SILT_OK ||
        copy_text(options->tls_cert_file, &conn->tls_cert_file) != SILT_OK ||
        copy_text(options->tls_key_file, &conn->tls_key_file) != SILT_OK) {
        silt_conn_free(conn);
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    }
    struct silt_conn_options *own = &conn->options;
    own->address = conn->address.text;
    own->user = conn->user;
    own->password_file = conn->password_file;
    own->tls_ca_file = conn->tls_ca_file;
    own->tls_cert_file = conn->tls_cert_file;
    own->tls_key_file = conn->tls_key_file;
    if (own->connect_timeout_ms == 0) own->connect_timeout_ms = defaults.connect_timeout_ms;
    if (own->command_timeout_ms == 0) own->command_timeout_ms = defaults.command_timeout_ms;
    if (own->reply_limit_bytes == 0 || own->reply_limit_bytes > REPLY_BYTES_MAX)
        own->reply_limit_bytes = REPLY_BYTES_MAX;
    snprintf(conn->server, sizeof conn->server, "unknown");
    *ret = conn;
    return SILT_OK;
}

void silt_conn_free(struct silt_conn *conn)
{
    if (conn == NULL) return;
    silt_conn_close(conn);
    silt_buf_release(&conn->out);
    silt_buf_release(&conn->notes);
    silt_free(conn->chunk);
    silt_free(conn->user);
    silt_free(conn->password_file);
    silt_free(conn->tls_ca_file);
    silt_free(conn->tls_cert_file);
    silt_free(conn->tls_key_file);
    silt_free(conn);
}

void silt_conn_close(struct silt_conn *conn)
{
    silt_tls_free(conn->tls);
    conn->tls = NULL;
    if (conn->fd >= 0) close(conn->fd);
    conn->fd = -1;
    silt_parser_free(conn->parser);
    conn->parser = NULL;
    silt_buf_clear(&conn->out);
    conn->out_sent = 0;
    conn->owed = 0;
    silt_buf_clear(&conn->notes);
    conn->note_at = 0;
}

bool silt_conn_is_open(const struct silt_conn *conn)
{
    return conn->fd >= 0;
}

uint64_t silt_conn_generation(const struct silt_conn *conn)
{
    return conn->generation;
}

const char *silt_conn_server(const struct silt_conn *conn)
{
    return conn->server;
}

const char *silt_conn_address(const struct silt_conn *conn)
{
    return conn->address.text;
}

size_t silt_conn_owed(const struct silt_conn *conn)
{
    return conn->owed;
}

/* ---- failures: all of them close, because what comes next on the wire is no longer known ---- */

enum silt_status silt_conn_nonsense(struct silt_conn *conn, struct silt_err *err,
                                    const char *expected)
{
    silt_conn_close(conn);
    return silt_fail(err, SILT_ERR_SERVER_NONSENSE, "the reply of %s makes no sense: expected %s",
                     conn->address.text, expected);
}

enum silt_status silt_conn_no_memory(struct silt_conn *conn, struct silt_err *err)
{
    silt_conn_close(conn);
    return silt_fail(err, SILT_ERR_MEMORY, "out of memory for a reply of %s", conn->address.text);
}

static enum silt_status lost(struct silt_conn *conn, struct silt_err *err, const char *what)
{
    bool midway = conn->parser != NULL && silt_parser_is_midway(conn->parser);
    silt_conn_close(conn);
    return silt_fail(err, SILT_ERR_SERVER_AWAY, "lost the connection to %s%s: %s",
                     conn->address.text, midway ? " in the middle of a reply" : "", what);
}

static enum silt_status gave_up(struct silt_conn *conn, struct silt_err *err,
                                enum silt_status status, const char *doing)
{
    silt_conn_close(conn);
    if (status == SILT_ERR_CANCELLED)
        return silt_fail(err, status, "asked to stop while %s %s", doing, conn->address.text);
    return silt_fail(err, status, "%s did not answer within %llu ms", conn->address.text,
                     (unsigned long long)conn->options.command_timeout_ms);
}

static enum silt_status not_connected(const struct silt_conn *conn, struct silt_err *err)
{
    return silt_fail(err, SILT_ERR_SERVER_AWAY, "not connected to %s", conn->address.text);
}

/* What the parser did not accept. */
static enum silt_status broken(struct silt_conn *conn, enum silt_status status,
                               struct silt_err *err)
{
    char why[160];
    if (status == SILT_ERR_MEMORY) return silt_conn_no_memory(conn, err);
    snprintf(why, sizeof why, "%s", silt_parser_why(conn->parser));
    silt_conn_close(conn);
    return silt_fail(err, status, "the reply of %s makes no sense: %s", conn->address.text, why);
}

/* ---- bytes in, bytes out ---- */

struct silt_waiter silt_conn_waiter(const struct silt_conn *conn, uint64_t ms)
{
    int64_t now = silt_now_ms();
    return (struct silt_waiter){.deadline_ms = ms > (uint64_t)(INT64_MAX - now) ? INT64_MAX
                                                                                : now + (int64_t)ms,
                                .cancelled = conn->options.cancelled,
                                .cancelled_ctx = conn->options.cancelled_ctx};
}

/* One read into the parser. SILT_OK with *ret_got 0: nothing there now, wait for *ret_events. */
static enum silt_status feed(struct silt_conn *conn, size_t *ret_got, short *ret_events,
                             struct silt_err *err)
{
    *ret_events = POLLIN;
    *ret_got = 0;
    ssize_t got = conn->tls != NULL ? silt_tls_read(conn->tls, conn->chunk, CHUNK_BYTES, ret_events)
                                    : recv(conn->fd, conn->chunk, CHUNK_BYTES, 0);
    if (got == 0) return lost(conn, err, "the server closed it");
    if (got < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return SILT_OK;
        bool alert = conn->tls != NULL && errno == EPROTO;
        return lost(conn, err, alert ? silt_tls_why() : strerror(errno));
    }
    enum silt_status status = silt_parser_feed(conn->parser, conn->chunk, (size_t)got);
    if (status != SILT_OK) return broken(conn, status, err);
    *ret_got = (size_t)got;
    return SILT_OK;
}

/* A trickle must not keep us for ever, a large transfer over a slow line must be able to end: so much progress starts the time anew. */
struct patience {
    struct silt_waiter waiter;
    size_t progress;
};

static struct patience patience_of(const struct silt_conn *conn)
{
    return (struct patience){.waiter = silt_conn_waiter(conn, conn->options.command_timeout_ms)};
}

/* Bytes have moved: go on at once? Not when none did, nor when the time is over: then the wait says so. */
static bool moved(const struct silt_conn *conn, struct patience *patience, size_t bytes)
{
    patience->progress += bytes;
    if (patience->progress >= PROGRESS_BYTES) *patience = patience_of(conn);
    return bytes > 0 && silt_now_ms() < patience->waiter.deadline_ms;
}

static enum silt_status read_reply(struct silt_conn *conn, struct silt_reply *reply,
                                   struct silt_err *err)
{
    silt_parser_begin(conn->parser, reply);
    struct patience patience = patience_of(conn);
    for (;;) {
        enum silt_status status = silt_parser_next(conn->parser);
        if (status == SILT_OK) return SILT_OK;
        if (status != SILT_END) return broken(conn, status, err);
        size_t got = 0;
        short events = POLLIN;
        status = feed(conn, &got, &events, err);
        if (status != SILT_OK) return status;
        if (moved(conn, &patience, got)) continue;
        status = silt_wait(&patience.waiter, conn->fd, events);
        if (status != SILT_OK) return gave_up(conn, err, status, "waiting for");
    }
}

/* One write. SILT_OK with *ret_sent 0: there is no room now, wait for *ret_events. */
static enum silt_status send_some(struct silt_conn *conn, size_t *ret_sent, short *ret_events,
                                  struct silt_err *err)
{
    const uint8_t *at = conn->out.at + conn->out_sent;
    size_t len = conn->out.len - conn->out_sent;
    *ret_events = POLLOUT;
    *ret_sent = 0;
    ssize_t sent = conn->tls != NULL ? silt_tls_write(conn->tls, at, len, ret_events)
                                     : send(conn->fd, at, len, MSG_NOSIGNAL);
    if (sent >= 0)
        *ret_sent = (size_t)sent;
    else if (errno == EPIPE || errno == ECONNRESET)
        /* The server has hung up. Its last words (too many clients, protected mode) may still be there to be read: the next receive tells. */
        *ret_sent = len;
    else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return lost(conn, err, strerror(errno));
    conn->out_sent += *ret_sent;
    return SILT_OK;
}

enum silt_status silt_conn_flush(struct silt_conn *conn, struct silt_err *err)
{
    if (conn->fd < 0) return not_connected(conn, err);
    struct patience patience = patience_of(conn);
    while (conn->out_sent < conn->out.len) {
        size_t sent = 0, got = 0;
        short events = 0, in_events = POLLIN;
        enum silt_status status = send_some(conn, &sent, &events, err);
        if (status != SILT_OK) return status;
        /* With no room left it may be waiting for us to take its replies before it reads on. */
        bool take =
            sent == 0 && silt_parser_waiting(conn->parser) < conn->options.reply_limit_bytes;
        if (take) status = feed(conn, &got, &in_events, err);
        if (status != SILT_OK) return status;
        if (moved(conn, &patience, sent + got)) continue;
        status = silt_wait(&patience.waiter, conn->fd, (short)(events | (take ? POLLIN : 0)));
        if (status != SILT_OK) return gave_up(conn, err, status, "sending to");
    }
    silt_buf_clear(&conn->out);
    conn->out_sent = 0;
    return SILT_OK;
}

/* ---- commands ---- */

/* "<sign><number>\r\n" */
static size_t put_count(uint8_t *at, char sign, uint64_t number)
{
    char digits[20];
    size_t count = 0, len = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    at[len++] = (uint8_t)sign;
    while (count > 0)
        at[len++] = (uint8_t)digits[--count];
    at[len++] = '\r';
    at[len++] = '\n';
    return len;
}

enum silt_status silt_conn_put(struct silt_conn *conn, const struct silt_view *argv, size_t argc,
                               struct silt_err *err)
{
    size_t need = 24;
    for (size_t i = 0; i < argc; i++)
        need += argv[i].len + 26;
    if (silt_buf_reserve(&conn->out, need) != SILT_OK) return silt_conn_no_memory(conn, err);
    uint8_t *at = conn->out.at + conn->out.len;
    at += put_count(at, '*', argc);
    for (size_t i = 0; i < argc; i++) {
        at += put_count(at, '$', argv[i].len);
        if (argv[i].len > 0) memcpy(at, argv[i].at, argv[i].len);
        at += argv[i].len;
        *at++ = '\r';
        *at++ = '\n';
    }
    conn->out.len = (size_t)(at - conn->out.at);
    conn->owed++;
    if (conn->out.len - conn->out_sent > OUT_BYTES_MAX) return silt_conn_flush(conn, err);
    return SILT_OK;
}

/* With nothing owed nothing may have come: bytes that nobody asked for would be taken for the answer to the next command. */
enum silt_status silt_conn_check_idle(struct silt_conn *conn, struct silt_err *err)
{
    uint8_t byte;
    bool unasked = silt_parser_waiting(conn->parser) > 0;
    if (!unasked) {
        ssize_t got = conn->tls != NULL ? silt_tls_peek(conn->tls, &byte, 1)
                                        : recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (got == 0) return lost(conn, err, "the server closed it");
        if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return lost(conn, err, strerror(errno));
        unasked = got > 0;
    }
    return unasked ? silt_conn_nonsense(conn, err, "nothing, as nothing was asked") : SILT_OK;
}

enum silt_status silt_conn_append(struct silt_conn *conn, const struct silt_view *argv, size_t argc,
                                  struct silt_err *err)
{
    if (conn->fd < 0) return not_connected(conn, err);
    if (conn->owed == 0) {
        enum silt_status status = silt_conn_check_idle(conn, err);
        if (status != SILT_OK) return status;
    }
    return silt_conn_put(conn, argv, argc, err);
}

enum silt_status silt_conn_append_words(struct silt_conn *conn, struct silt_err *err, ...)
{
    struct silt_view argv[WORDS_MAX];
    size_t argc = 0;
    va_list words;
    va_start(words, err);
    for (const char *word; argc < WORDS_MAX && (word = va_arg(words, const char *)) != NULL;)
        argv[argc++] = silt_view_str(word);
    va_end(words);
    return silt_conn_append(conn, argv, argc, err);
}

enum silt_status silt_conn_receive(struct silt_conn *conn, struct silt_reply *reply,
                                   struct silt_err *err)
{
    if (conn->fd < 0) return not_connected(conn, err);
    if (conn->owed == 0)
        return silt_fail(err, SILT_ERR_USAGE, "no reply is owed by %s", conn->address.text);
    enum silt_status status = silt_conn_flush(conn, err);
    if (status == SILT_OK) status = read_reply(conn, reply, err);
    if (status != SILT_OK) return status;
    conn->owed--;
    if (reply->nodes[0].type != SILT_NODE_ERROR) return SILT_OK;
    return silt_reply_error_class(silt_reply_text(reply, 0), err);
}

enum silt_status silt_conn_call(struct silt_conn *conn, const struct silt_view *argv, size_t argc,
                                struct silt_reply *reply, struct silt_err *err)
{
    if (conn->owed != 0)
        return silt_fail(err, SILT_ERR_USAGE, "%zu replies of %s are still owed", conn->owed,
                         conn->address.text);
    enum silt_status status = silt_conn_open(conn, err);
    if (status == SILT_OK) status = silt_conn_put(conn, argv, argc, err);
    if (status == SILT_OK) status = silt_conn_receive(conn, reply, err);
    return status;
}

enum silt_status silt_conn_call_on(struct silt_conn *conn, uint64_t generation,
                                   const struct silt_view *argv, size_t argc,
                                   struct silt_reply *reply, struct silt_err *err)
{
    if (!silt_conn_is_open(conn) || silt_conn_generation(conn) != generation)
        return silt_fail(err, SILT_ERR_STALE, "the connection that made the look is gone");
    enum silt_status status = silt_conn_append(conn, argv, argc, err);
    return status == SILT_OK ? silt_conn_receive(conn, reply, err) : status;
}

/* ---- for look.c ---- */

unsigned silt_conn_denied(const struct silt_conn *conn)
{
    /* Rights may be granted while we are connected: from time to time it is asked again. */
    return silt_now_ms() - conn->denied_at_ms < DENIED_MS ? conn->denied : 0;
}

void silt_conn_set_denied(struct silt_conn *conn, unsigned parts)
{
    conn->denied = silt_conn_denied(conn) | parts;
    conn->denied_at_ms = silt_now_ms();
}

/* A note: one byte of parts, four of the key's length, the key. */
enum silt_status silt_conn_note(struct silt_conn *conn, uint8_t parts, struct silt_view key)
{
    if (conn->note_at == conn->notes.len) {
        silt_buf_clear(&conn->notes);
        conn->note_at = 0;
    }
    if (silt_buf_reserve(&conn->notes, NOTE_HEAD + key.len) != SILT_OK) return SILT_ERR_MEMORY;
    uint8_t *at = conn->notes.at + conn->notes.len;
    at[0] = parts;
    silt_put_le32(at + 1, (uint32_t)key.len);
    if (key.len > 0) memcpy(at + NOTE_HEAD, key.at, key.len);
    conn->notes.len += NOTE_HEAD + key.len;
    return SILT_OK;
}

bool silt_conn_first_note(const struct silt_conn *conn, uint8_t *ret_parts,
                          struct silt_view *ret_key)
{
    if (conn->note_at == conn->notes.len) return false;
    const uint8_t *at = conn->notes.at + conn->note_at;
    *ret_parts = at[0];
    *ret_key = silt_view(at + NOTE_HEAD, silt_get_le32(at + 1));
    return true;
}

void silt_conn_change_note(struct silt_conn *conn, uint8_t parts)
{
    if (conn->note_at < conn->notes.len) conn->notes.at[conn->note_at] = parts;
}

void silt_conn_drop_note(struct silt_conn *conn)
{
    if (conn->note_at < conn->notes.len)
        conn->note_at += NOTE_HEAD + silt_get_le32(conn->notes.at + conn->note_at + 1);
}
