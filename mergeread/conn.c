/* The one door to the server: sends commands, reads replies into flat pages, gives each failure its name. The only hiredis.h user: hiredis parses, the
 * bytes are fetched here, because only so every wait has a deadline. Knows nothing of streams. */
#include <errno.h>
#include <hiredis/hiredis.h>
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
#define LINE_BYTES_MAX ((size_t)64 << 10) /* a status, an error, a number */
#define OUT_BYTES_MAX ((size_t)1 << 20)   /* appended commands beyond it are sent at once */
#define REPLY_BYTES_MAX ((size_t)1 << 30) /* whatever the options say; hiredis 0.14 counts in int */
#define READER_SPARE_BYTES ((size_t)4 << 20) /* an empty reader keeps at most so much */
#define DEPTH_MAX 7 /* of nested arrays; an EXEC of XINFO and XRANGE needs 5 */
#define WORDS_MAX 32
#define NOTE_HEAD 5

enum fault { FAULT_NONE = 0, FAULT_MEMORY, FAULT_LARGE, FAULT_DEEP, FAULT_TYPE };

/* Where hiredis puts what it parses. */
struct sink {
    struct silt_reply *reply;
    size_t limit;
    struct {
        size_t node;
        uint64_t left; /* children still to come */
    } open[DEPTH_MAX];
    int depth;
    enum fault fault;
};

struct silt_conn {
    struct silt_conn_options options; /* its strings are ours */
    char *user, *password_file, *tls_ca_file;
    struct silt_address address;
    int fd; /* -1: closed */
    struct silt_tls *tls;
    redisReader *reader;
    struct sink sink;
    uint8_t *chunk;
    struct silt_buf out;
    size_t out_sent;
    size_t owed;
    uint64_t generation;
    char server[64];
    unsigned denied;
    struct silt_buf notes;
    size_t note_at;
};

/* ---- hiredis's callbacks: a node each, no allocation but the page's growth ---- */

static void *fail_sink(struct sink *sink, enum fault fault)
{
    sink->fault = fault;
    return NULL;
}

/* The node after the last; NULL with sink->fault set. */
static struct silt_node *add_node(struct sink *sink, uint8_t type, size_t more_bytes)
{
    struct silt_reply *reply = sink->reply;
    size_t held = reply->bytes.len + (reply->node_count + 1) * sizeof *reply->nodes;
    if (held > sink->limit || more_bytes > sink->limit - held) return fail_sink(sink, FAULT_LARGE);
    if (reply->node_count == reply->node_cap) {
        void *nodes = reply->nodes;
        if (silt_grow(&nodes, &reply->node_cap, reply->node_count + 1, sizeof *reply->nodes) != 0)
            return fail_sink(sink, FAULT_MEMORY);
        reply->nodes = nodes;
    }
    struct silt_node *node = &reply->nodes[reply->node_count++];
    *node = (struct silt_node){.type = type};
    return node;
}

/* One item is whole: closes the arrays that end with it. */
static void *item_done(struct sink *sink)
{
    while (sink->depth > 0 && --sink->open[sink->depth - 1].left == 0) {
        size_t at = sink->open[--sink->depth].node;
        sink->reply->nodes[at].value = sink->reply->node_count - at;
    }
    return sink; /* hiredis only wants to see that it is not NULL */
}

static void *on_string(const redisReadTask *task, char *text, size_t len)
{
    struct sink *sink = task->privdata;
    uint8_t type = SILT_NODE_STRING;
    if (task->type == REDIS_REPLY_STATUS)
        type = SILT_NODE_STATUS;
    else if (task->type == REDIS_REPLY_ERROR)
        type = SILT_NODE_ERROR;
    else if (task->type != REDIS_REPLY_STRING)
        return fail_sink(sink, FAULT_TYPE);
    struct silt_node *node = add_node(sink, type, len);
    if (node == NULL) return NULL;
    node->size = (uint32_t)len;
    node->value = sink->reply->bytes.len;
    if (silt_buf_put(&sink->reply->bytes, text, len) != SILT_OK)
        return fail_sink(sink, FAULT_MEMORY);
    return item_done(sink);
}

static void *on_array_of(const redisReadTask *task, size_t count)
{
    struct sink *sink = task->privdata;
    if (task->type != REDIS_REPLY_ARRAY) return fail_sink(sink, FAULT_TYPE);
    /* Three bytes are the least that an element takes on the wire: an announcement beyond that is refused before anything is waited for. */
    if (count > sink->limit / 3) return fail_sink(sink, FAULT_LARGE);
    size_t at = sink->reply->node_count;
    struct silt_node *node = add_node(sink, SILT_NODE_ARRAY, 0);
    if (node == NULL) return NULL;
    node->size = (uint32_t)count;
    node->value = 1;
    if (count == 0) return item_done(sink);
    if (sink->depth == DEPTH_MAX) return fail_sink(sink, FAULT_DEEP);
    sink->open[sink->depth].node = at;
    sink->open[sink->depth++].left = count;
    return sink;
}

#if HIREDIS_MAJOR >= 1
static void *on_array(const redisReadTask *task, size_t count)
{
    return on_array_of(task, count);
}
static void *on_double(const redisReadTask *task, double value, char *text, size_t len)
{
    (void)value, (void)text, (void)len;
    return fail_sink(task->privdata, FAULT_TYPE);
}
static void *on_bool(const redisReadTask *task, int value)
{
    (void)value;
    return fail_sink(task->privdata, FAULT_TYPE);
}
#else
static void *on_array(const redisReadTask *task, int count)
{
    return on_array_of(task, (size_t)count);
}
#endif

static void *on_integer(const redisReadTask *task, long long value)
{
    struct sink *sink = task->privdata;
    struct silt_node *node = add_node(sink, SILT_NODE_INTEGER, 0);
    if (node == NULL) return NULL;
    node->value = (uint64_t)value;
    return item_done(sink);
}

static void *on_nil(const redisReadTask *task)
{
    struct sink *sink = task->privdata;
    if (task->type == REDIS_REPLY_NIL) return fail_sink(sink, FAULT_TYPE); /* RESP3's */
    if (add_node(sink, SILT_NODE_NIL, 0) == NULL) return NULL;
    return item_done(sink);
}

static void on_free(void *object)
{
    (void)object; /* the page belongs to the caller */
}

static redisReplyObjectFunctions callbacks = {
    .createString = on_string,
    .createArray = on_array,
    .createInteger = on_integer,
#if HIREDIS_MAJOR >= 1
    .createDouble = on_double,
    .createBool = on_bool,
#endif
    .createNil = on_nil,
    .freeObject = on_free,
};

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
            "build it where hiredis 1.x comes with hiredis_ssl, or put a TLS proxy in front of the server");
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
        copy_text(options->tls_ca_file, &conn->tls_ca_file) != SILT_OK) {
        silt_conn_free(conn);
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    }
    struct silt_conn_options *own = &conn->options;
    own->address = conn->address.text;
    own->user = conn->user;
    own->password_file = conn->password_file;
    own->tls_ca_file = conn->tls_ca_file;
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
    silt_free(conn);
}

void silt_conn_close(struct silt_conn *conn)
{
    silt_tls_free(conn->tls);
    conn->tls = NULL;
    if (conn->fd >= 0) close(conn->fd);
    conn->fd = -1;
    if (conn->reader != NULL) redisReaderFree(conn->reader);
    conn->reader = NULL;
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

static enum silt_status no_memory(struct silt_conn *conn, struct silt_err *err)
{
    silt_conn_close(conn);
    return silt_fail(err, SILT_ERR_MEMORY, "out of memory for a reply of %s", conn->address.text);
}

static enum silt_status lost(struct silt_conn *conn, struct silt_err *err, const char *what)
{
    bool midway = conn->reader != NULL && conn->reader->ridx >= 0;
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

/* What hiredis or a callback did not accept. */
static enum silt_status broken(struct silt_conn *conn, struct silt_err *err)
{
    char detail[sizeof conn->reader->errstr + 1];
    snprintf(detail, sizeof detail, "%s", conn->reader->errstr);
    bool memory = conn->sink.fault == FAULT_MEMORY ||
                  (conn->sink.fault == FAULT_NONE && conn->reader->err == REDIS_ERR_OOM);
    if (memory) return no_memory(conn, err);
    const char *why = detail;
    if (conn->sink.fault == FAULT_LARGE) why = "it is larger than any reply may be";
    if (conn->sink.fault == FAULT_DEEP) why = "arrays in arrays too deep";
    if (conn->sink.fault == FAULT_TYPE) why = "a type that RESP2 does not have";
    silt_conn_close(conn);
    return silt_fail(err, SILT_ERR_SERVER_NONSENSE, "the reply of %s makes no sense: %s",
                     conn->address.text, why);
}

/* ---- bytes in, bytes out ---- */

static struct silt_waiter waiter_of(const struct silt_conn *conn, uint64_t ms)
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
        return lost(conn, err, strerror(errno));
    }
    if (redisReaderFeed(conn->reader, (const char *)conn->chunk, (size_t)got) != REDIS_OK)
        return broken(conn, err);
    *ret_got = (size_t)got;
    return SILT_OK;
}

/* Looks at what the parser holds but cannot finish: an announced or endless item beyond the limit ends here, not when memory does. */
static bool pending_too_large(const struct silt_conn *conn)
{
    const redisReader *reader = conn->reader;
    size_t waiting = reader->len - reader->pos;
    size_t held = conn->sink.reply->bytes.len +
                  conn->sink.reply->node_count * sizeof *conn->sink.reply->nodes;
    size_t left = held > conn->sink.limit ? 0 : conn->sink.limit - held;
    const char *at = reader->buf + reader->pos;
    size_t seen = waiting < 24 ? waiting : 24;
    const char *line_end = seen > 0 ? memchr(at, '\r', seen) : NULL;
    if (line_end == NULL) return waiting > LINE_BYTES_MAX;
    /* A line that is there and was not consumed is the length of a string whose bytes are still under way. */
    uint64_t announced = 0;
    return silt_parse_u64(silt_view(at, (size_t)(line_end - at)), &announced) && announced > left;
}

static enum silt_status read_reply(struct silt_conn *conn, struct silt_reply *reply,
                                   struct silt_err *err)
{
    reply->node_count = 0;
    silt_buf_clear(&reply->bytes);
    conn->sink = (struct sink){.reply = reply, .limit = conn->options.reply_limit_bytes};
    struct silt_waiter waiter = waiter_of(conn, conn->options.command_timeout_ms);
    size_t progress = 0;
    for (;;) {
        void *whole = NULL;
        if (redisReaderGetReply(conn->reader, &whole) != REDIS_OK) return broken(conn, err);
        if (whole != NULL) return SILT_OK;
        if (pending_too_large(conn)) {
            conn->sink.fault = FAULT_LARGE;
            return broken(conn, err);
        }
        size_t got = 0;
        short events = POLLIN;
        enum silt_status status = feed(conn, &got, &events, err);
        if (status != SILT_OK) return status;
        /* A trickle must not keep us for ever, a large reply over a slow line must be able to come. */
        progress += got;
        if (progress >= PROGRESS_BYTES) {
            progress = 0;
            waiter.deadline_ms = waiter_of(conn, conn->options.command_timeout_ms).deadline_ms;
        }
        if (got > 0 && silt_now_ms() < waiter.deadline_ms) continue;
        status = silt_wait(&waiter, conn->fd, events);
        if (status != SILT_OK) return gave_up(conn, err, status, "waiting for");
    }
}

enum silt_status silt_conn_flush(struct silt_conn *conn, struct silt_err *err)
{
    if (conn->fd < 0) return not_connected(conn, err);
    struct silt_waiter waiter = waiter_of(conn, conn->options.command_timeout_ms);
    size_t progress = 0;
    while (conn->out_sent < conn->out.len) {
        short events = POLLOUT;
        const uint8_t *at = conn->out.at + conn->out_sent;
        size_t len = conn->out.len - conn->out_sent;
        ssize_t sent = conn->tls != NULL ? silt_tls_write(conn->tls, at, len, &events)
                                         : send(conn->fd, at, len, MSG_NOSIGNAL);
        if (sent >= 0) {
            conn->out_sent += (size_t)sent;
            progress += (size_t)sent;
            if (progress < PROGRESS_BYTES) continue;
            progress = 0;
            waiter.deadline_ms = waiter_of(conn, conn->options.command_timeout_ms).deadline_ms;
            continue;
        }
        /* The server has hung up. Its last words (too many clients, protected mode) may still be there to be read, so the next receive tells. */
        if (errno == EPIPE || errno == ECONNRESET) break;
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return lost(conn, err, strerror(errno));
        /* It may be waiting for us to take its replies before it reads on. */
        size_t got = 0;
        short in_events = POLLIN;
        bool room = conn->reader->len - conn->reader->pos < conn->options.reply_limit_bytes;
        if (room) {
            enum silt_status status = feed(conn, &got, &in_events, err);
            if (status != SILT_OK) return status;
        }
        if (got > 0 && silt_now_ms() < waiter.deadline_ms) continue;
        enum silt_status status =
            silt_wait(&waiter, conn->fd, (short)(events | (room ? POLLIN : 0)));
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

static enum silt_status append(struct silt_conn *conn, const struct silt_view *argv, size_t argc,
                               struct silt_err *err)
{
    size_t need = 24;
    for (size_t i = 0; i < argc; i++)
        need += argv[i].len + 26;
    if (silt_buf_reserve(&conn->out, need) != SILT_OK) return no_memory(conn, err);
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
static enum silt_status check_idle(struct silt_conn *conn, struct silt_err *err)
{
    uint8_t byte;
    bool unasked = conn->reader->len > conn->reader->pos;
    if (!unasked && conn->tls == NULL) {
        ssize_t got = recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
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
        enum silt_status status = check_idle(conn, err);
        if (status != SILT_OK) return status;
    }
    return append(conn, argv, argc, err);
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
    if (status == SILT_OK) status = append(conn, argv, argc, err);
    if (status == SILT_OK) status = silt_conn_receive(conn, reply, err);
    return status;
}

/* ---- opening ---- */

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
    enum silt_status status = append(conn, argv, argc, err);
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
    enum silt_status status = append(conn, argv, 2, err);
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
    enum silt_status status = append(conn, argv, 2, err);
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
    struct silt_waiter waiter = waiter_of(conn, conn->options.connect_timeout_ms);
    int fd = -1;
    enum silt_status status = silt_socket_connect(&conn->address, &waiter, &fd, err);
    if (status != SILT_OK) return status;
    conn->fd = fd;
    conn->generation++;
    conn->denied = 0;
    snprintf(conn->server, sizeof conn->server, "unknown");
    conn->reader = redisReaderCreateWithFunctions(&callbacks);
    if (conn->reader == NULL) return no_memory(conn, err);
    conn->reader->privdata = &conn->sink;
    conn->reader->maxbuf = READER_SPARE_BYTES;
    if (conn->address.transport != SILT_TRANSPORT_TLS) return SILT_OK;
    status = silt_tls_open(fd, &conn->address, conn->options.tls_ca_file, &waiter, &conn->tls, err);
    if (status != SILT_OK) silt_conn_close(conn);
    return status;
}

enum silt_status silt_conn_open(struct silt_conn *conn, struct silt_err *err)
{
    if (conn->fd >= 0) {
        if (conn->owed != 0) return SILT_OK;
        enum silt_status status = check_idle(conn, err);
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

/* ---- for look.c ---- */

unsigned silt_conn_denied(const struct silt_conn *conn)
{
    return conn->denied;
}

void silt_conn_set_denied(struct silt_conn *conn, unsigned parts)
{
    conn->denied |= parts;
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
