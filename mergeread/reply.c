/* Reading a flat reply. Knows nothing of sockets and commands. */
#include "reply.h"

#include "alloc.h"

void silt_reply_release(struct silt_reply *reply)
{
    if (reply == NULL) return;
    silt_free(reply->nodes);
    silt_buf_release(&reply->bytes);
    *reply = (struct silt_reply){0};
}

bool silt_reply_map_get(const struct silt_reply *reply, size_t map, const char *name,
                        size_t *ret_node)
{
    if (map >= reply->node_count || reply->nodes[map].type != SILT_NODE_ARRAY) return false;
    struct silt_view wanted = silt_view_str(name);
    size_t end = silt_reply_skip(reply, map);
    for (size_t at = map + 1; at < end;) {
        size_t value = silt_reply_skip(reply, at);
        if (value >= end) return false; /* a name without a value */
        if (silt_reply_is_text(reply, at) && silt_view_equal(silt_reply_text(reply, at), wanted)) {
            *ret_node = value;
            return true;
        }
        at = silt_reply_skip(reply, value);
    }
    return false;
}
