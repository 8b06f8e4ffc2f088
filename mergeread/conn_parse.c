/* Server bytes into a flat page, by hiredis's parser with callbacks of our own. The only hiredis.h user; knows nothing of sockets and commands. */
#include <hiredis/hiredis.h>

#include "alloc.h"
#include "conn_parse.h"

#define LINE_BYTES_MAX ((size_t)64 << 10)    /* a status, an error, a number */
#define READER_SPARE_BYTES ((size_t)4 << 20) /* an empty reader keeps at most so much */
#define RECENT_REPLIES 64
#define DEPTH_MAX 7 /* of nested arrays; an EXEC of XINFO and XRANGE needs 5 */

enum fault { FAULT_NONE = 0, FAULT_MEMORY, FAULT_LARGE, FAULT_DEEP, FAULT_TYPE, FAULT_END };

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

struct silt_parser {
    redisReader *reader;
    struct sink sink;
    bool midway; /* some of the present reply's bytes have come */
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
    /* hiredis waits for the line end behind a text, but does not look at it. */
    if (text[len] != '\r' || text[len + 1] != '\n') return fail_sink(sink, FAULT_END);
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

/* ---- the parser ---- */

enum silt_status silt_parser_new(size_t limit, struct silt_parser **ret)
{
    struct silt_parser *parser = silt_calloc(1, sizeof *parser);
    if (parser == NULL) return SILT_ERR_MEMORY;
    parser->sink.limit = limit;
    parser->reader = redisReaderCreateWithFunctions(&callbacks);
    if (parser->reader == NULL) {
        silt_free(parser);
        return SILT_ERR_MEMORY;
    }
    parser->reader->privdata = &parser->sink;
    parser->reader->maxbuf = READER_SPARE_BYTES;
    *ret = parser;
    return SILT_OK;
}

void silt_parser_free(struct silt_parser *parser)
{
    if (parser == NULL) return;
    redisReaderFree(parser->reader);
    silt_free(parser);
}

/* One reply of a hundred megabytes must not be kept in mind for ever. */
static void give_back(struct silt_reply *reply)
{
    if (reply->bytes.len > reply->recent_bytes) reply->recent_bytes = reply->bytes.len;
    if (++reply->recent_count < RECENT_REPLIES) return;
    bool much = reply->bytes.cap > READER_SPARE_BYTES && reply->recent_bytes < reply->bytes.cap / 4;
    if (much) silt_buf_release(&reply->bytes);
    reply->recent_bytes = 0;
    reply->recent_count = 0;
}

void silt_parser_begin(struct silt_parser *parser, struct silt_reply *reply)
{
    reply->node_count = 0;
    give_back(reply);
    silt_buf_clear(&reply->bytes);
    parser->sink = (struct sink){.reply = reply, .limit = parser->sink.limit};
    parser->midway = silt_parser_waiting(parser) > 0;
}

/* What hiredis or a callback did not accept. */
static enum silt_status broken(const struct silt_parser *parser)
{
    bool memory = parser->sink.fault == FAULT_MEMORY ||
                  (parser->sink.fault == FAULT_NONE && parser->reader->err == REDIS_ERR_OOM);
    return memory ? SILT_ERR_MEMORY : SILT_ERR_SERVER_NONSENSE;
}

const char *silt_parser_why(const struct silt_parser *parser)
{
    if (parser->sink.fault == FAULT_LARGE) return "it is larger than any reply may be";
    if (parser->sink.fault == FAULT_DEEP) return "arrays in arrays too deep";
    if (parser->sink.fault == FAULT_TYPE) return "a type that RESP2 does not have";
    if (parser->sink.fault == FAULT_END) return "a text does not end where it should";
    return parser->reader->errstr;
}

enum silt_status silt_parser_feed(struct silt_parser *parser, const void *at, size_t len)
{
    parser->midway = true;
    return redisReaderFeed(parser->reader, at, len) == REDIS_OK ? SILT_OK : broken(parser);
}

/* Looks at what the parser holds but cannot finish: an announced or endless item beyond the limit ends here, not when memory does. */
static bool pending_too_large(const struct silt_parser *parser)
{
    const redisReader *reader = parser->reader;
    const struct silt_reply *reply = parser->sink.reply;
    size_t waiting = reader->len - reader->pos;
    size_t held = reply->bytes.len + reply->node_count * sizeof *reply->nodes;
    size_t left = held > parser->sink.limit ? 0 : parser->sink.limit - held;
    const char *at = reader->buf + reader->pos;
    size_t seen = waiting < 24 ? waiting : 24;
    const char *line_end = seen > 0 ? memchr(at, '\r', seen) : NULL;
    if (line_end == NULL) return waiting > LINE_BYTES_MAX;
    /* A line that is there and was not consumed is the length of a string whose bytes are still under way. */
    uint64_t announced = 0;
    return silt_parse_u64(silt_view(at, (size_t)(line_end - at)), &announced) && announced > left;
}

enum silt_status silt_parser_next(struct silt_parser *parser)
{
    void *whole = NULL;
    if (redisReaderGetReply(parser->reader, &whole) != REDIS_OK) return broken(parser);
    if (whole != NULL) {
        parser->midway = false;
        return SILT_OK;
    }
    if (!pending_too_large(parser)) return SILT_END;
    parser->sink.fault = FAULT_LARGE;
    return SILT_ERR_SERVER_NONSENSE;
}

size_t silt_parser_waiting(const struct silt_parser *parser)
{
    return parser->reader->len - parser->reader->pos;
}

bool silt_parser_is_midway(const struct silt_parser *parser)
{
    return parser->midway;
}
