/* Bytes of a server, in pieces: the first byte says how large these are. Whatever comes out is looked at like a page and like a map. */
#include "fuzz.h"

#include "conn_parse.h"

static void look(const struct silt_reply *reply)
{
    uint64_t sum = 0;
    size_t node = 0, value;
    for (size_t i = 0; i < reply->node_count; i++) {
        if (reply->nodes[i].type == SILT_NODE_ARRAY &&
            (reply->nodes[i].value == 0 || reply->nodes[i].value > reply->node_count - i))
            abort();
        if (silt_reply_is_text(reply, i)) {
            struct silt_view text = silt_reply_text(reply, i);
            if (text.len > reply->bytes.len) abort();
            for (size_t k = 0; k < text.len; k++)
                sum += text.at[k];
        }
        if (reply->nodes[i].type == SILT_NODE_ARRAY)
            (void)silt_reply_map_get(reply, i, "length", &value);
    }
    if (reply->node_count != 0) node = silt_reply_skip(reply, 0);
    if (node != reply->node_count) abort();
    volatile uint64_t sink = sum;
    (void)sink;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct silt_reply reply;
    struct silt_parser *parser;
    if (size == 0) return 0;
    if (silt_parser_new(1 << 20, &parser) != SILT_OK) abort();
    size_t piece = 1 + data[0], at = 1;
    silt_parser_begin(parser, &reply);
    for (;;) {
        enum silt_status status = silt_parser_next(parser);
        if (status == SILT_OK) {
            look(&reply);
            silt_parser_begin(parser, &reply);
        } else if (status == SILT_END && at < size) {
            size_t more = piece < size - at ? piece : size - at;
            if (silt_parser_feed(parser, data + at, more) != SILT_OK) break;
            at += more;
        } else {
            break;
        }
    }
    silt_parser_free(parser);
    return 0;
}
