/* See control.h. A client that does not read keeps its answers in our memory, so it gets one answer at a time: its next request is
 * read only when the last answer has left. */
#include "control.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "alloc.h"

#define IDLE_SECONDS 300 /* a client that says nothing is closed */

struct client {
    struct silt_control *control;
    struct bufferevent *link;
    uint64_t ticket; /* of the sync that it waits for; 0: none */
    bool last;       /* close when the answer has left */
    bool ended;      /* it will ask no more, but may still read */
    struct client *next;
};

struct silt_control {
    struct event_base *base;
    struct evconnlistener *listener;
    struct silt_control_handler handler;
    struct sockaddr_un address;
    dev_t device;
    ino_t inode;
    struct client *clients;
    unsigned client_count;
    uint64_t last_ticket;
};

/* ---- JSON ---- */

static json_t *base64(struct silt_view bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = (bytes.len + 2) / 3 * 4;
    char *text = silt_alloc(len + 1);
    if (!text) return NULL;
    for (size_t i = 0, at = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t three = (uint32_t)bytes.at[i] << 16;
        if (left > 1) three |= (uint32_t)bytes.at[i + 1] << 8;
        if (left > 2) three |= bytes.at[i + 2];
        text[at++] = digits[three >> 18];
        text[at++] = digits[three >> 12 & 63];
        text[at++] = left > 1 ? digits[three >> 6 & 63] : '=';
        text[at++] = left > 2 ? digits[three & 63] : '=';
    }
    json_t *object = json_pack("{s:s#}", "b64", text, (int)len);
    silt_free(text);
    return object;
}

json_t *silt_json_bytes(struct silt_view bytes)
{
    json_t *text = json_stringn((const char *)bytes.at, bytes.len); /* refuses what is not UTF-8 */
    return text || bytes.len == 0 ? text : base64(bytes);
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static enum silt_status from_base64(const char *text, size_t len, struct silt_buf *ret)
{
    uint32_t bits = 0;
    unsigned held = 0;
    if (len % 4) return SILT_ERR_USAGE;
    while (len > 0 && text[len - 1] == '=')
        len--;
    for (size_t i = 0; i < len; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0) return SILT_ERR_USAGE;
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        if (silt_buf_put_u8(ret, (uint8_t)(bits >> held)) != SILT_OK) return SILT_ERR_MEMORY;
    }
    return SILT_OK;
}

/* The request's key; SILT_END: it names none. */
static enum silt_status key_of(const json_t *request, struct silt_buf *ret)
{
    const json_t *key = json_object_get(request, "key");
    if (!key || json_is_null(key)) return SILT_END;
    if (json_is_string(key))
        return silt_buf_put(ret, json_string_value(key), json_string_length(key));
    const json_t *coded = json_object_get(key, "b64");
    if (!json_is_string(coded)) return SILT_ERR_USAGE;
    return from_base64(json_string_value(coded), json_string_length(coded), ret);
}

/* ---- answers ---- */

static void answer_json(struct client *client, json_t *answer)
{
    char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    if (!text || bufferevent_write(client->link, text, strlen(text)) != 0 ||
        bufferevent_write(client->link, "\n", 1) != 0)
        client->last =
            true; /* no memory for an answer: the client sees the end instead of silence */
    free(text);
    json_decref(answer);
}

static json_t *text_or_null(const char *text)
{
    json_t *made = *text ? json_string(text) : NULL;
    return made ? made : json_null();
}

static void answer_error(struct client *client, enum silt_status status, const struct silt_err *err)
{
    const char *sentence = err && err->sentence[0] ? err->sentence : silt_status_sentence(status);
    answer_json(client, json_pack("{s:b,s:{s:s,s:i,s:o,s:o,s:o}}", "ok", 0, "error", "code",
                                  silt_status_name(status), "exit", silt_status_exit_code(status),
                                  "sentence", silt_json_bytes(silt_view_str(sentence)), "hint",
                                  text_or_null(err ? err->hint : ""), "stream",
                                  text_or_null(err ? err->stream : "")));
}

static void answer_fields(struct client *client, json_t *fields)
{
    if (fields && json_object_set_new(fields, "ok", json_true()) == 0) {
        answer_json(client, fields);
        return;
    }
    json_decref(fields);
    answer_error(client, SILT_ERR_MEMORY, NULL);
}

/* ---- clients ---- */

static void free_client(struct client *client)
{
    struct client **at = &client->control->clients;
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    if (client->control->client_count-- == SILT_CONTROL_CLIENTS_MAX)
        evconnlistener_enable(client->control->listener);
    bufferevent_free(client->link);
    silt_free(client);
}

static void serve_later(struct client *client, const struct silt_control_request *request)
{
    struct silt_control *control = client->control;
    struct silt_err err = {0};
    client->ticket = ++control->last_ticket;
    enum silt_status status =
        control->handler.later(control->handler.ctx, request, client->ticket, &err);
    if (status == SILT_OK) {
        bufferevent_set_timeouts(client->link, NULL, NULL); /* however long the fold takes */
        return;
    }
    client->ticket = 0;
    answer_error(client, status, &err);
}

/* Verbs that are answered when they are done. */
static bool is_later(const char *verb, enum silt_control_verb *ret)
{
    static const char *const verbs[] = {[SILT_CONTROL_SYNC] = "sync",
                                        [SILT_CONTROL_ADOPT] = "adopt",
                                        [SILT_CONTROL_RELEASE] = "release"};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verb, verbs[i]) == 0) {
            *ret = (enum silt_control_verb)i;
            return true;
        }
    return false;
}

static void serve_request(struct client *client, const json_t *request)
{
    struct silt_control *control = client->control;
    SILT_CLEANUP(silt_buf_release) struct silt_buf bytes = {0};
    struct silt_err err = {0};
    const char *verb = json_string_value(json_object_get(request, "verb"));
    enum silt_status status = key_of(request, &bytes);
    struct silt_view view = silt_buf_view(&bytes);
    const struct silt_view *key = status == SILT_END ? NULL : &view;
    struct silt_control_request later;
    if (!verb)
        status = silt_fail(&err, SILT_ERR_USAGE, "a request is {\"verb\": ...}");
    else if (status == SILT_ERR_USAGE)
        status = silt_fail(&err, SILT_ERR_USAGE, "key is a string or {\"b64\": ...}");
    if (status != SILT_OK && status != SILT_END) {
        answer_error(client, status, &err);
    } else if (strcmp(verb, "ping") == 0) {
        answer_fields(client, json_object());
    } else if (strcmp(verb, "status") == 0) {
        json_t *fields = control->handler.status(control->handler.ctx, key, &err);
        if (fields)
            answer_fields(client, fields);
        else
            answer_error(client, err.code ? err.code : SILT_ERR_MEMORY, &err);
    } else if (is_later(verb, &later.verb)) {
        later.key = key;
        later.dry_run = json_is_true(json_object_get(request, "dry_run"));
        serve_later(client, &later);
    } else {
        silt_fail(&err, SILT_ERR_USAGE, "there is no verb %.60s", verb);
        silt_hint(&err, "status, sync, adopt, release and ping are served");
        answer_error(client, SILT_ERR_USAGE, &err);
    }
}

static void serve_line(struct client *client, const char *line, size_t len)
{
    struct silt_err err = {0};
    json_error_t why;
    json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (json_is_object(request)) {
        serve_request(client, request);
    } else {
        silt_fail(&err, SILT_ERR_USAGE, "a request is one JSON object in a line: %s",
                  request ? "this is no object" : why.text);
        answer_error(client, SILT_ERR_USAGE, &err);
    }
    json_decref(request);
}

/* Serves what has come, one request while nothing is owed. */
static void serve(struct client *client)
{
    struct evbuffer *in = bufferevent_get_input(client->link);
    struct evbuffer *out = bufferevent_get_output(client->link);
    while (!client->last && client->ticket == 0 && evbuffer_get_length(out) == 0) {
        size_t len;
        char *line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF);
        if (!line) break;
        serve_line(client, line, len);
        free(line);
    }
    if (client->last || evbuffer_get_length(in) < SILT_CONTROL_REQUEST_MAX) return;
    struct evbuffer_ptr end = evbuffer_search_eol(in, NULL, NULL, EVBUFFER_EOL_LF);
    if (end.pos >= 0) return; /* whole requests that wait for their turn */
    struct silt_err err = {0};
    silt_fail(&err, SILT_ERR_USAGE, "a request has at most %u bytes", SILT_CONTROL_REQUEST_MAX);
    answer_error(client, SILT_ERR_USAGE, &err);
    client->last = true;
    bufferevent_disable(client->link, EV_READ);
}

static void on_read(struct bufferevent *link, void *ctx)
{
    (void)link;
    serve(ctx);
}

/* Nothing is owed to it any more, and nothing is to come. */
static bool is_through(const struct client *client)
{
    if (evbuffer_get_length(bufferevent_get_output(client->link)) > 0) return false;
    return client->last || (client->ended && client->ticket == 0);
}

/* The answer has left. */
static void on_written(struct bufferevent *link, void *ctx)
{
    struct client *client = ctx;
    (void)link;
    serve(client);
    if (is_through(client)) free_client(client);
}

static void on_end(struct bufferevent *link, short what, void *ctx)
{
    struct client *client = ctx;
    (void)link;
    client->ended = true;
    if (what & BEV_EVENT_EOF)
        serve(client); /* it may have closed its writing half only, as nc does */
    if (!(what & BEV_EVENT_EOF) || is_through(client)) free_client(client);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
                      int from_len, void *ctx)
{
    static const struct timeval idle = {IDLE_SECONDS, 0};
    struct silt_control *control = ctx;
    struct client *client = silt_calloc(1, sizeof *client);
    (void)from;
    (void)from_len;
    if (client) client->link = bufferevent_socket_new(control->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!client || !client->link) {
        silt_free(client);
        close(fd);
        return;
    }
    client->control = control;
    client->next = control->clients;
    control->clients = client;
    if (++control->client_count == SILT_CONTROL_CLIENTS_MAX) evconnlistener_disable(listener);
    bufferevent_setcb(client->link, on_read, on_written, on_end, client);
    bufferevent_setwatermark(client->link, EV_READ, 0, SILT_CONTROL_REQUEST_MAX);
    bufferevent_set_timeouts(client->link, &idle, &idle);
    bufferevent_enable(client->link, EV_READ | EV_WRITE);
}

void silt_control_answer(struct silt_control *control, uint64_t ticket, enum silt_status status,
                         json_t *fields, const struct silt_err *err)
{
    static const struct timeval idle = {IDLE_SECONDS, 0};
    struct client *client = control ? control->clients : NULL;
    while (client && client->ticket != ticket)
        client = client->next;
    if (!client) {
        json_decref(fields);
        return;
    }
    client->ticket = 0;
    bufferevent_set_timeouts(client->link, &idle, &idle);
    if (status == SILT_OK) {
        answer_fields(client, fields);
    } else {
        json_decref(fields);
        answer_error(client, status, err);
    }
}

/* ---- the socket ---- */

static enum silt_status refuse(struct silt_err *err, const char *path, const char *why)
{
    enum silt_status status = silt_fail(err, SILT_ERR_CONFIG, "control: %.200s: %.80s", path, why);
    silt_hint(err, "name another path under `control`, or leave the line out");
    return status;
}

/* A file that a dead siltd left behind is removed; anything else stays. */
static enum silt_status clear_stale(const struct sockaddr_un *address, struct silt_err *err)
{
    struct stat st;
    if (lstat(address->sun_path, &st) != 0)
        return errno == ENOENT ? SILT_OK : refuse(err, address->sun_path, strerror(errno));
    if (!S_ISSOCK(st.st_mode))
        return refuse(err, address->sun_path, "there is a file that is no socket");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return refuse(err, address->sun_path, strerror(errno));
    /* EAGAIN: somebody listens, and has too many callers at the moment. */
    bool alive =
        connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 || errno == EAGAIN;
    bool dead = !alive && errno == ECONNREFUSED;
    int why = errno;
    close(fd);
    if (alive) {
        enum silt_status status = silt_fail(
            err, SILT_ERR_HELD, "control: another process listens on %.200s", address->sun_path);
        silt_hint(err, "is a siltd running already?");
        return status;
    }
    if (!dead) return refuse(err, address->sun_path, strerror(why));
    if (unlink(address->sun_path) != 0 && errno != ENOENT)
        return refuse(err, address->sun_path, strerror(errno));
    return SILT_OK;
}

static enum silt_status bind_socket(struct silt_control *control, int fd, struct silt_err *err)
{
    struct stat st;
    /* The file is never open to others, not even for the moment between bind and chmod. */
    mode_t before = umask(0177);
    int failed = bind(fd, (struct sockaddr *)&control->address, sizeof control->address);
    int why = errno;
    umask(before);
    if (failed) return refuse(err, control->address.sun_path, strerror(why));
    if (lstat(control->address.sun_path, &st) == 0) {
        control->device = st.st_dev;
        control->inode = st.st_ino;
    }
    return SILT_OK;
}

enum silt_status silt_control_open(struct event_base *base, const char *path,
                                   const struct silt_control_handler *handler,
                                   struct silt_control **ret, struct silt_err *err)
{
    struct silt_control *control = silt_calloc(1, sizeof *control);
    if (!control) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    control->base = base;
    control->handler = *handler;
    control->address.sun_family = AF_UNIX;
    int fd = -1;
    enum silt_status status = SILT_OK;
    if (strlen(path) >= sizeof control->address.sun_path)
        status = refuse(err, path, "the path is too long for a socket");
    if (status == SILT_OK) {
        snprintf(control->address.sun_path, sizeof control->address.sun_path, "%s", path);
        status = clear_stale(&control->address, err);
    }
    if (status == SILT_OK) {
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        status = fd < 0 ? refuse(err, path, strerror(errno)) : bind_socket(control, fd, err);
    }
    if (status == SILT_OK) {
        control->listener = evconnlistener_new(
            base, on_accept, control, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 32, fd);
        if (!control->listener) status = refuse(err, path, strerror(errno));
    }
    if (status != SILT_OK) {
        if (fd >= 0) close(fd);
        if (control->inode) unlink(path);
        silt_free(control);
        return status;
    }
    *ret = control;
    return SILT_OK;
}

void silt_control_close(struct silt_control *control)
{
    struct stat st;
    if (!control) return;
    while (control->clients)
        free_client(control->clients);
    evconnlistener_free(control->listener);
    if (lstat(control->address.sun_path, &st) == 0 && st.st_dev == control->device &&
        st.st_ino == control->inode)
        unlink(control->address.sun_path);
    silt_free(control);
}
