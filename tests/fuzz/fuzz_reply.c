/* Bytes of a server. The first byte chooses who reads them: the parser, in pieces (what comes out is walked like a page and like a map), or a connection on a
 * socket, on which a look, a page, a group's oldest pending id or the time was asked for. */
#include "fuzz.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn_priv.h"
#include "look.h"

static volatile uint64_t sink;

static void touch(struct silt_view bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        sink += bytes.at[i];
}

/* ---- the parser alone ---- */

static void walk(const struct silt_reply *reply)
{
    size_t node = 0, value;
    for (size_t i = 0; i < reply->node_count; i++) {
        if (reply->nodes[i].type == SILT_NODE_ARRAY &&
            (reply->nodes[i].value == 0 || reply->nodes[i].value > reply->node_count - i))
            abort();
        if (silt_reply_is_text(reply, i)) {
            struct silt_view text = silt_reply_text(reply, i);
            if (text.len > reply->bytes.len) abort();
            touch(text);
        }
        if (reply->nodes[i].type == SILT_NODE_ERROR)
            (void)silt_reply_error_class(silt_reply_text(reply, i), NULL);
        if (reply->nodes[i].type == SILT_NODE_ARRAY)
            (void)silt_reply_map_get(reply, i, "length", &value);
    }
    if (reply->node_count != 0) node = silt_reply_skip(reply, 0);
    if (node != reply->node_count) abort();
}

static void parse(struct silt_view body)
{
    static struct silt_reply reply;
    struct silt_parser *parser;
    if (body.len == 0) return;
    if (silt_parser_new(1 << 20, &parser) != SILT_OK) abort();
    size_t piece = 1 + body.at[0], at = 1;
    silt_parser_begin(parser, &reply);
    for (;;) {
        enum silt_status status = silt_parser_next(parser);
        if (status == SILT_OK) {
            walk(&reply);
            silt_parser_begin(parser, &reply);
        } else if (status == SILT_END && at < body.len) {
            size_t more = piece < body.len - at ? piece : body.len - at;
            if (silt_parser_feed(parser, body.at + at, more) != SILT_OK) break;
            at += more;
        } else {
            break;
        }
    }
    silt_parser_free(parser);
}

/* ---- what reads a connection ---- */

/* The other side: it answers when somebody waits for it, and hangs up behind its last byte. */
struct server {
    int fd;
    struct silt_view answer;
};

static bool answer(void *ctx)
{
    struct server *server = ctx;
    if (server->fd < 0) return false;
    if (write(server->fd, server->answer.at, server->answer.len) != (ssize_t)server->answer.len)
        abort();
    shutdown(server->fd, SHUT_WR);
    close(server->fd);
    server->fd = -1;
    return false;
}

static void check_entry(const struct silt_entry *entry)
{
    sink += silt_entry_digest(entry, 0) + silt_entry_bytes(entry);
}

static void check_look(const struct silt_look *look)
{
    if (look->facts.has_first) {
        check_entry(&look->first);
        check_entry(&look->last);
        if (silt_wire_id_less(look->facts.last, look->first.id)) abort();
    }
    for (size_t i = 0; i < look->group_count; i++) {
        struct silt_marker marker;
        touch(look->groups[i].name);
        (void)silt_marker_parse(look->groups[i].name, &marker);
    }
}

static void check_page(const struct silt_page *page, const struct silt_page_request *request)
{
    uint64_t bytes = 0;
    check_look(&page->look);
    for (size_t i = 0; i < page->entry_count; i++) {
        const struct silt_entry *entry = &page->entries[i];
        check_entry(entry);
        bytes += silt_entry_bytes(entry);
        if (silt_wire_id_less(entry->id, request->from) ||
            silt_wire_id_less(request->to, entry->id) ||
            (i > 0 && silt_wire_id_less(entry->id, entry[-1].id) != request->reverse))
            abort();
    }
    if (bytes != page->values_bytes || page->entry_count > request->count) abort();
}

static void ask(struct silt_conn *conn, unsigned which)
{
    static struct silt_look look;
    static struct silt_page page;
    static struct silt_reply reply;
    struct silt_view key = silt_view_str("s");
    struct silt_page_request request = {.key = key,
                                        .from = {5, 0},
                                        .to = {90, 0},
                                        .count = 4,
                                        .reverse = which == 4,
                                        .what = SILT_LOOK_READER};
    struct silt_wire_id id;
    uint64_t ms;
    struct silt_err err = {0};
    enum silt_status status;
    if (which < 3) {
        enum silt_look_what what = which == 2 ? SILT_LOOK_ARCHIVER : SILT_LOOK_READER;
        status = silt_look_append(conn, key, what, &err);
        if (status == SILT_OK) status = silt_look_receive(conn, what, &look, &err);
        if (status == SILT_OK) check_look(&look);
    } else if (which < 5) {
        status = silt_page_append(conn, &request, &err);
        if (status == SILT_OK) status = silt_page_receive(conn, &request, &page, &err);
        if (status == SILT_OK) check_page(&page, &request);
    } else if (which == 5) {
        status = silt_look_oldest_pending(conn, key, key, &reply, &id, &err);
    } else {
        status = silt_look_time(conn, &reply, &ms, &err);
    }
    if (status < 0 && err.sentence[0] == '\0') abort();
}

static void converse(struct silt_view body, unsigned which)
{
    int pair[2];
    struct server server = {.answer = body};
    struct silt_conn *conn;
    struct silt_conn_options options = SILT_CONN_OPTIONS_DEFAULT;
    options.address = "unix:/nowhere";
    options.reply_limit_bytes = 1 << 20;
    options.cancelled = answer;
    options.cancelled_ctx = &server;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0 ||
        silt_conn_new(&options, &conn, NULL) != SILT_OK ||
        silt_parser_new(1 << 20, &conn->parser) != SILT_OK)
        abort();
    conn->fd = pair[0];
    server.fd = pair[1];
    ask(conn, which);
    silt_conn_free(conn);
    if (server.fd >= 0) close(server.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    unsigned which = data[0] % 8;
    if (which == 0 || which == 7)
        parse(silt_view(data + 1, size - 1));
    else
        converse(silt_view(data + 1, size - 1), which);
    return 0;
}
