/* A server reply as a flat page: nodes in preorder in one array, all bytes in one buffer; both reused from reply to reply, so a page of entries
 * costs no allocation per entry or field. Filled by conn.c; this header only reads. */
#ifndef SILT_REPLY_H
#define SILT_REPLY_H

#include "bytes.h"

enum silt_node_type {
    SILT_NODE_NIL,
    SILT_NODE_STRING,
    SILT_NODE_STATUS,
    SILT_NODE_ERROR,
    SILT_NODE_INTEGER,
    SILT_NODE_ARRAY
};

struct silt_node {
    uint8_t type;
    uint32_t size; /* bytes of a text, children of an array */
    uint64_t
        value; /* text: offset into bytes; integer: two's complement; array: nodes of the whole subtree, itself included */
};

struct silt_reply {
    struct silt_node *nodes;
    size_t node_count;
    size_t node_cap;
    struct silt_buf bytes;
    size_t
        recent_bytes; /* the longest of the last few replies: a buffer much larger than that is given back */
    unsigned recent_count;
};
void silt_reply_release(struct silt_reply *reply);

/* Nodes are named by index; 0 is the root. */
static inline struct silt_view silt_reply_text(const struct silt_reply *reply, size_t node)
{
    return (struct silt_view){reply->bytes.at + reply->nodes[node].value, reply->nodes[node].size};
}
static inline bool silt_reply_is_text(const struct silt_reply *reply, size_t node)
{
    return reply->nodes[node].type == SILT_NODE_STRING ||
           reply->nodes[node].type == SILT_NODE_STATUS;
}
/* The node after this one's subtree: the next sibling, if there is one. */
static inline size_t silt_reply_skip(const struct silt_reply *reply, size_t node)
{
    return node +
           (reply->nodes[node].type == SILT_NODE_ARRAY ? (size_t)reply->nodes[node].value : 1);
}
/* The value after a field name in a flat map (array of name, value, ...); false: not there, or not such an array. */
bool silt_reply_map_get(const struct silt_reply *reply, size_t map, const char *name,
                        size_t *ret_node);

#endif
