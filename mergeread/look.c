/* A look at a stream: one MULTI of facts, read by name and checked for agreement with itself (protocol.md §2). Knows the commands, not the socket. */
#include "look.h"

#include <stdio.h>

#include "alloc.h"
#include "conn_priv.h"
#include "look_priv.h"

void silt_look_release(struct silt_look *look)
{
    if (look == NULL) return;
    silt_reply_release(&look->reply);
    silt_buf_release(&look->fields_mem);
    silt_buf_release(&look->groups_mem);
    *look = (struct silt_look){0};
}

/* ---- sending ---- */

/* So many nodes of the server's tree at most in one range: some 20 microseconds each where all 100 entries are remains. */
#define PAGE_NODES 256u

static enum silt_status send_range(struct silt_conn *conn, const struct silt_page_request *range,
                                   struct silt_err *err)
{
    char from[SILT_WIRE_ID_TEXT], to[SILT_WIRE_ID_TEXT], count[16];
    silt_wire_id_format(range->from, from);
    silt_wire_id_format(range->to, to);
    snprintf(count, sizeof count, "%u", (unsigned)range->count);
    const struct silt_view argv[6] = {silt_view_str(range->reverse ? "XREVRANGE" : "XRANGE"),
                                      range->key,
                                      silt_view_str(range->reverse ? to : from),
                                      silt_view_str(range->reverse ? from : to),
                                      silt_view_str("COUNT"),
                                      silt_view_str(count)};
    return silt_conn_append(conn, argv, 6, err);
}

static enum silt_status send_parts(struct silt_conn *conn, struct silt_view key, uint8_t parts,
                                   const struct silt_page_request *range, struct silt_err *err)
{
    struct silt_view argv[3] = {silt_view_str("XINFO"), silt_view_str("STREAM"), key};
    enum silt_status status = silt_conn_append_words(conn, err, "MULTI", (char *)NULL);
    if (status == SILT_OK && range != NULL) status = send_range(conn, range, err);
    if (status == SILT_OK) status = silt_conn_append(conn, argv, 3, err);
    argv[1] = silt_view_str("GROUPS");
    if (status == SILT_OK && (parts & SILT_LOOK_GROUPS) != 0)
        status = silt_conn_append(conn, argv, 3, err);
    if (status == SILT_OK && (parts & SILT_LOOK_REPLICATION) != 0)
        status = silt_conn_append_words(conn, err, "INFO", "replication", (char *)NULL);
    if (status == SILT_OK) status = silt_conn_append_words(conn, err, "EXEC", (char *)NULL);
    return status;
}

/* The same facts as one read-only script: Redis 7.0 queues nothing in a MULTI when its memory is full, which is when looks matter most. */
static enum silt_status send_script(struct silt_conn *conn, struct silt_view key, uint8_t parts,
                                    const struct silt_page_request *range, struct silt_err *err)
{
    static const char script[] =
        "local r, n = {}, tonumber(ARGV[1])\n"
        "if ARGV[2] then r[1] = redis.pcall(ARGV[2], KEYS[1], ARGV[3], ARGV[4], 'COUNT', ARGV[5]) end\n"
        "r[#r + 1] = redis.pcall('XINFO', 'STREAM', KEYS[1])\n"
        "if n % 2 == 1 then r[#r + 1] = redis.pcall('XINFO', 'GROUPS', KEYS[1]) end\n"
        "if n > 1 then r[#r + 1] = redis.pcall('INFO', 'replication') end\n"
        "return r";
    char from[SILT_WIRE_ID_TEXT], to[SILT_WIRE_ID_TEXT], count[16], what[4];
    struct silt_view argv[9] = {silt_view_str("EVAL"), silt_view_str(script), silt_view_str("1"),
                                key};
    size_t argc = 4;
    snprintf(what, sizeof what, "%u",
             (unsigned)(parts & (SILT_LOOK_GROUPS | SILT_LOOK_REPLICATION)));
    argv[argc++] = silt_view_str(what);
    if (range != NULL) {
        silt_wire_id_format(range->from, from);
        silt_wire_id_format(range->to, to);
        snprintf(count, sizeof count, "%u", (unsigned)range->count);
        argv[argc++] = silt_view_str(range->reverse ? "XREVRANGE" : "XRANGE");
        argv[argc++] = silt_view_str(range->reverse ? to : from);
        argv[argc++] = silt_view_str(range->reverse ? from : to);
        argv[argc++] = silt_view_str(count);
    }
    return silt_conn_append(conn, argv, argc, err);
}

enum silt_status silt_look_send(struct silt_conn *conn, struct silt_view key,
                                enum silt_look_what what, const struct silt_page_request *range,
                                struct silt_err *err)
{
    unsigned parts = SILT_LOOK_GROUPS;
    if (what == SILT_LOOK_ARCHIVER) parts |= SILT_LOOK_REPLICATION;
    if (range != NULL) parts |= SILT_LOOK_RANGE;
    parts &= ~silt_conn_denied(conn);
    enum silt_status status = send_parts(conn, key, (uint8_t)parts, range, err);
    if (status != SILT_OK) return status;
    if (silt_conn_note(conn, (uint8_t)parts, key) == SILT_OK) return SILT_OK;
    silt_conn_close(conn);
    return silt_fail(err, SILT_ERR_MEMORY, NULL);
}

/* ---- receiving the transaction ---- */

static bool is_status(const struct silt_reply *reply, const char *text)
{
    return reply->nodes[0].type == SILT_NODE_STATUS &&
           silt_view_equal(silt_reply_text(reply, 0), silt_view_str(text));
}

static bool is_no_permission(struct silt_view text)
{
    return text.len >= 6 && memcmp(text.at, "NOPERM", 6) == 0;
}

/* The commands between MULTI and EXEC, in the order in which they were sent. */
static size_t list_parts(uint8_t parts, uint8_t ret[4])
{
    size_t count = 0;
    if ((parts & SILT_LOOK_RANGE) != 0) ret[count++] = SILT_LOOK_RANGE;
    ret[count++] = 0; /* XINFO STREAM */
    if ((parts & SILT_LOOK_GROUPS) != 0) ret[count++] = SILT_LOOK_GROUPS;
    if ((parts & SILT_LOOK_REPLICATION) != 0) ret[count++] = SILT_LOOK_REPLICATION;
    return count;
}

/* The outcome of a transaction while its replies come in. */
struct outcome {
    enum silt_status status; /* the first refusal; the others follow from it */
    struct silt_err err;
    uint8_t denied; /* parts that this user may not ask for */
};

static void refused(struct outcome *outcome, enum silt_status status, const struct silt_err *err)
{
    if (outcome->status != SILT_OK) return;
    outcome->status = status;
    outcome->err = *err;
}

/* Receives one reply that must be this status; an error reply is given as its class. */
static enum silt_status take_status(struct silt_conn *conn, struct silt_reply *reply,
                                    const char *text, const char *expected, struct silt_err *err)
{
    enum silt_status status = silt_conn_receive(conn, reply, err);
    if (status == SILT_OK && !is_status(reply, text))
        return silt_conn_nonsense(conn, err, expected);
    return status;
}

/* The answer to one queued command. A part that may be missing and that this user may not ask for is no refusal of the whole. */
static void take_queued(struct silt_conn *conn, uint8_t part, struct silt_reply *reply,
                        struct outcome *outcome)
{
    struct silt_err err = {0};
    enum silt_status status = take_status(conn, reply, "QUEUED", "QUEUED within MULTI", &err);
    bool optional = part == SILT_LOOK_GROUPS || part == SILT_LOOK_REPLICATION;
    if (status == SILT_OK) return;
    if (optional && status == SILT_ERR_SERVER_DENIED && is_no_permission(silt_reply_text(reply, 0)))
        outcome->denied |= part;
    else
        refused(outcome, status, &err);
}

/* MULTI and what was queued; false: the connection is closed, outcome says why. */
static bool take_queue(struct silt_conn *conn, const uint8_t *list, size_t count,
                       struct silt_reply *reply, struct outcome *outcome)
{
    struct silt_err err = {0};
    enum silt_status status = take_status(conn, reply, "OK", "OK to MULTI", &err);
    if (status != SILT_OK) refused(outcome, status, &err);
    bool began = status == SILT_OK;
    for (size_t i = 0; i < count && silt_conn_is_open(conn); i++) {
        if (began) {
            take_queued(conn, list[i], reply, outcome);
            continue;
        }
        /* Without MULTI the commands ran one by one; their answers are of no use. */
        status = silt_conn_receive(conn, reply, &err);
        if (!silt_conn_is_open(conn)) refused(outcome, status, &err);
    }
    return silt_conn_is_open(conn);
}

/* SILT_OK: *reply is EXEC's array of `count` elements. */
static void take_exec(struct silt_conn *conn, uint8_t parts, struct silt_reply *reply,
                      struct outcome *outcome)
{
    uint8_t list[4];
    size_t count = list_parts(parts, list);
    struct silt_err err = {0};
    if (!take_queue(conn, list, count, reply, outcome)) return;
    bool doomed = outcome->status != SILT_OK || outcome->denied != 0;
    enum silt_status status = silt_conn_receive(conn, reply, &err);
    bool is_error = status != SILT_OK && silt_conn_is_open(conn);
    if (status == SILT_OK && doomed)
        status = silt_conn_nonsense(conn, &err, "EXECABORT after a refused command");
    else if (status == SILT_OK &&
             (reply->nodes[0].type != SILT_NODE_ARRAY || reply->nodes[0].size != count))
        status = silt_conn_nonsense(conn, &err, "EXEC to answer with one element for each command");
    if (status != SILT_OK && !(is_error && doomed)) {
        outcome->status = SILT_OK; /* this one counts */
        refused(outcome, status, &err);
    }
}

/* Asks once more, without what this user may not ask for. */
static enum silt_status ask_again(struct silt_conn *conn, struct silt_view key, uint8_t parts,
                                  uint8_t denied, const struct silt_page_request *range,
                                  struct silt_err *err)
{
    silt_conn_set_denied(conn, denied);
    if (silt_conn_owed(conn) != 0) /* the answer would come behind those of others */
        return silt_fail(err, SILT_ERR_SERVER_BUSY,
                         "the rights at %s are fewer than thought: look again",
                         silt_conn_address(conn));
    parts = (uint8_t)(parts & ~denied);
    silt_conn_change_note(conn, parts);
    return send_parts(conn, key, parts, range, err);
}

/* After a MULTI that a full memory refused: the script instead, once. Its refusal is told as the full memory that it stands for. */
static enum silt_status ask_script(struct silt_conn *conn, struct silt_view key, uint8_t parts,
                                   const struct silt_page_request *range, struct silt_reply *reply,
                                   struct silt_err *err)
{
    uint8_t list[4];
    struct silt_err why = {0};
    if (silt_conn_owed(conn) != 0) return SILT_ERR_SERVER_OOM;
    enum silt_status status = send_script(conn, key, parts, range, &why);
    if (status == SILT_OK) status = silt_conn_receive(conn, reply, &why);
    if (status == SILT_ERR_SERVER_DENIED) return SILT_ERR_SERVER_OOM;
    if (status == SILT_OK && (reply->nodes[0].type != SILT_NODE_ARRAY ||
                              reply->nodes[0].size != list_parts(parts, list)))
        status = silt_conn_nonsense(
            conn, &why, "the look's script to answer with one element for each command");
    if (status != SILT_OK && err != NULL) *err = why;
    return status;
}

static enum silt_status take_transaction(struct silt_conn *conn,
                                         const struct silt_page_request *range,
                                         struct silt_reply *reply, uint8_t *ret_parts,
                                         struct silt_err *err)
{
    enum silt_status status;
    struct silt_view key;
    do {
        struct outcome outcome = {0};
        if (!silt_conn_first_note(conn, ret_parts, &key)) /* a close forgets what was owed */
            return silt_fail(err, silt_conn_is_open(conn) ? SILT_ERR_USAGE : SILT_ERR_SERVER_AWAY,
                             "no look at %s is owed", silt_conn_address(conn));
        if (((*ret_parts & SILT_LOOK_RANGE) != 0) != (range != NULL)) {
            silt_conn_close(conn);
            return silt_fail(err, SILT_ERR_USAGE, "a page and a look were taken for each other");
        }
        take_exec(conn, *ret_parts, reply, &outcome);
        if (outcome.status != SILT_OK && err != NULL) *err = outcome.err;
        if (outcome.status == SILT_ERR_SERVER_OOM && silt_conn_is_open(conn))
            return ask_script(conn, key, *ret_parts, range, reply, err);
        if (outcome.status != SILT_OK || outcome.denied == 0) return outcome.status;
        status = ask_again(conn, key, *ret_parts, outcome.denied, range, err);
    } while (status == SILT_OK);
    return status;
}

/* ---- reading it ---- */

static bool read_count(const struct silt_reply *reply, size_t map, const char *name, uint64_t *ret)
{
    size_t node;
    if (!silt_reply_map_get(reply, map, name, &node)) return false;
    if (reply->nodes[node].type != SILT_NODE_INTEGER || (int64_t)reply->nodes[node].value < 0)
        return false;
    *ret = reply->nodes[node].value;
    return true;
}

static bool read_id(const struct silt_reply *reply, size_t map, const char *name,
                    struct silt_wire_id *ret)
{
    size_t node;
    return silt_reply_map_get(reply, map, name, &node) && silt_reply_is_text(reply, node) &&
           silt_wire_id_parse(silt_reply_text(reply, node), ret, NULL) == SILT_OK;
}

bool silt_look_read_entry(const struct silt_reply *reply, size_t node, struct silt_field *fields,
                          size_t *used, struct silt_entry *ret)
{
    const struct silt_node *nodes = reply->nodes;
    if (nodes[node].type != SILT_NODE_ARRAY || nodes[node].size != 2) return false;
    size_t id = node + 1, list = node + 2;
    if (!silt_reply_is_text(reply, id) || nodes[list].type != SILT_NODE_ARRAY ||
        nodes[list].size % 2 != 0 || nodes[list].value != (uint64_t)nodes[list].size + 1)
        return false;
    if (silt_wire_id_parse(silt_reply_text(reply, id), &ret->id, NULL) != SILT_OK) return false;
    struct silt_field *field = fields + *used;
    ret->fields = field;
    ret->field_count = nodes[list].size / 2;
    for (size_t at = list + 1; at <= list + nodes[list].size; at += 2, field++) {
        if (nodes[at].type != SILT_NODE_STRING || nodes[at + 1].type != SILT_NODE_STRING)
            return false;
        field->name = silt_reply_text(reply, at);
        field->value = silt_reply_text(reply, at + 1);
    }
    *used += ret->field_count;
    return true;
}

static enum silt_status read_ends(struct silt_conn *conn, struct silt_look *look, size_t map,
                                  struct silt_err *err)
{
    const struct silt_reply *reply = &look->reply;
    struct silt_facts *facts = &look->facts;
    size_t first, last, used = 0;
    if (!silt_reply_map_get(reply, map, "first-entry", &first) ||
        !silt_reply_map_get(reply, map, "last-entry", &last))
        return silt_conn_nonsense(conn, err, "first-entry and last-entry in XINFO STREAM");
    bool none = reply->nodes[first].type == SILT_NODE_NIL;
    if (none != (facts->length == 0) || none != (reply->nodes[last].type == SILT_NODE_NIL))
        return silt_conn_nonsense(conn, err,
                                  "a first and a last entry exactly where length is not 0");
    if (none) return SILT_OK;
    size_t room = (silt_reply_skip(reply, first) - first + silt_reply_skip(reply, last) - last) / 2;
    silt_buf_clear(&look->fields_mem);
    if (silt_buf_reserve(&look->fields_mem, room * sizeof(struct silt_field)) != SILT_OK)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    struct silt_field *fields = (struct silt_field *)(void *)look->fields_mem.at;
    if (!silt_look_read_entry(reply, first, fields, &used, &look->first) ||
        !silt_look_read_entry(reply, last, fields, &used, &look->last))
        return silt_conn_nonsense(conn, err, "entries as first-entry and last-entry");
    int order = silt_wire_id_compare(look->first.id, look->last.id);
    if (order > 0 || (order == 0) != (facts->length == 1) ||
        silt_wire_id_less(facts->last, look->last.id))
        return silt_conn_nonsense(conn, err,
                                  "first-entry, last-entry and last-generated-id in this order");
    facts->has_first = true;
    facts->first = look->first.id;
    facts->first_digest = silt_entry_digest(&look->first, 0);
    return SILT_OK;
}

static enum silt_status read_stream(struct silt_conn *conn, struct silt_look *look, size_t node,
                                    struct silt_err *err)
{
    const struct silt_reply *reply = &look->reply;
    struct silt_facts *facts = &look->facts;
    size_t unused;
    if (reply->nodes[node].type == SILT_NODE_ERROR) {
        enum silt_status status = silt_reply_error_class(silt_reply_text(reply, node), err);
        if (status == SILT_ERR_UNKNOWN_STREAM)
            look->state = SILT_LOOK_GONE;
        else if (status == SILT_ERR_WRONG_TYPE)
            look->state = SILT_LOOK_WRONG_TYPE;
        else
            return status;
        return SILT_OK;
    }
    if (reply->nodes[node].type != SILT_NODE_ARRAY ||
        !read_count(reply, node, "length", &facts->length) ||
        !read_id(reply, node, "last-generated-id", &facts->last))
        return silt_conn_nonsense(conn, err, "length and last-generated-id in XINFO STREAM");
    if (!silt_reply_map_get(reply, node, "entries-added", &unused))
        return silt_fail(
            err, SILT_ERR_SERVER_OLD,
            "%s (%s) does not count entries-added: Valkey 7.2 or Redis 7.0 is the least",
            silt_conn_address(conn), silt_conn_server(conn));
    if (!read_count(reply, node, "entries-added", &facts->entries_added) ||
        !read_id(reply, node, "max-deleted-entry-id", &facts->max_deleted))
        return silt_conn_nonsense(conn, err,
                                  "entries-added and max-deleted-entry-id in XINFO STREAM");
    /* Only an aid: a server that does not tell is not asked for less. */
    if (!read_count(reply, node, "radix-tree-keys", &look->node_count)) look->node_count = 0;
    return read_ends(conn, look, node, err);
}

uint32_t silt_look_page_cap(const struct silt_look *look)
{
    if (look->generation == 0) return PAGE_NODES; /* none made yet: there may be one entry a node */
    if (look->state != SILT_LOOK_STREAM || look->node_count <= PAGE_NODES) return UINT32_MAX;
    uint64_t per_node = look->facts.length / look->node_count + 1;
    return per_node > UINT32_MAX / PAGE_NODES ? UINT32_MAX : (uint32_t)per_node * PAGE_NODES;
}

static bool read_group(const struct silt_reply *reply, size_t node, struct silt_look_group *ret)
{
    size_t name, seen;
    if (!silt_reply_map_get(reply, node, "name", &name) || !silt_reply_is_text(reply, name))
        return false;
    if (!read_id(reply, node, "last-delivered-id", &ret->last_delivered) ||
        !read_count(reply, node, "pending", &ret->pending) ||
        !read_count(reply, node, "consumers", &ret->consumers))
        return false;
    /* nil: the server cannot say, for example after XGROUP SETID into the middle */
    if (!read_count(reply, node, "entries-read", &ret->entries_read)) {
        if (silt_reply_map_get(reply, node, "entries-read", &seen) &&
            reply->nodes[seen].type != SILT_NODE_NIL)
            return false;
        ret->entries_read = UINT64_MAX;
    }
    ret->name = silt_reply_text(reply, name);
    ret->is_silt = ret->name.len >= 5 && memcmp(ret->name.at, "silt:", 5) == 0;
    return true;
}

static enum silt_status read_groups(struct silt_conn *conn, struct silt_look *look, size_t node,
                                    struct silt_err *err)
{
    const struct silt_reply *reply = &look->reply;
    if (reply->nodes[node].type == SILT_NODE_ERROR) {
        if (!is_no_permission(silt_reply_text(reply, node)))
            return silt_reply_error_class(silt_reply_text(reply, node), err);
        look->groups_denied = true; /* the right was taken away between queue and EXEC */
        return SILT_OK;
    }
    if (reply->nodes[node].type != SILT_NODE_ARRAY)
        return silt_conn_nonsense(conn, err, "an array from XINFO GROUPS");
    size_t count = reply->nodes[node].size;
    silt_buf_clear(&look->groups_mem);
    if (silt_buf_reserve(&look->groups_mem, count * sizeof(struct silt_look_group)) != SILT_OK)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    struct silt_look_group *groups = (struct silt_look_group *)(void *)look->groups_mem.at;
    size_t at = node + 1;
    for (size_t i = 0; i < count; i++, at = silt_reply_skip(reply, at))
        if (!read_group(reply, at, &groups[i]))
            return silt_conn_nonsense(
                conn, err, "name, last-delivered-id, pending and consumers of each group");
    look->groups = groups;
    look->group_count = count;
    return SILT_OK;
}

/* The value of "name:" at the start of a line of INFO; len 0: not there. */
static struct silt_view info_value(struct silt_view info, const char *name)
{
    size_t name_len = strlen(name);
    const uint8_t *at = info.at, *end = info.at + info.len;
    while (at < end) {
        const uint8_t *line_end = memchr(at, '\r', (size_t)(end - at));
        if (line_end == NULL) line_end = end;
        if ((size_t)(line_end - at) > name_len && memcmp(at, name, name_len) == 0)
            return silt_view(at + name_len, (size_t)(line_end - at) - name_len);
        at = line_end;
        while (at < end && (*at == '\r' || *at == '\n'))
            at++;
    }
    return silt_view(NULL, 0);
}

static enum silt_status read_replication(struct silt_conn *conn, struct silt_look *look,
                                         size_t node, struct silt_err *err)
{
    const struct silt_reply *reply = &look->reply;
    if (reply->nodes[node].type == SILT_NODE_ERROR) {
        if (is_no_permission(silt_reply_text(reply, node))) return SILT_OK;
        return silt_reply_error_class(silt_reply_text(reply, node), err);
    }
    if (!silt_reply_is_text(reply, node))
        return silt_conn_nonsense(conn, err, "a text from INFO replication");
    struct silt_view info = silt_reply_text(reply, node);
    struct silt_view role = info_value(info, "role:");
    struct silt_view replid = info_value(info, "master_replid:");
    if (role.len == 0 || replid.len != SILT_REPLID_LEN)
        return silt_conn_nonsense(conn, err, "role and master_replid in INFO replication");
    memcpy(look->facts.replid, replid.at, SILT_REPLID_LEN);
    look->facts.replid[SILT_REPLID_LEN] = '\0';
    look->is_master = silt_view_equal(role, silt_view_str("master"));
    look->replication_known = true;
    return SILT_OK;
}

static void clear(struct silt_look *look)
{
    look->state = SILT_LOOK_STREAM;
    look->facts = (struct silt_facts){0};
    look->first = look->last = (struct silt_entry){0};
    look->groups = NULL;
    look->group_count = 0;
    look->groups_denied = look->is_master = look->replication_known = false;
}

enum silt_status silt_look_take(struct silt_conn *conn, const struct silt_page_request *range,
                                struct silt_look *look, size_t *ret_range, struct silt_err *err)
{
    uint8_t parts = 0;
    clear(look);
    enum silt_status status = take_transaction(conn, range, &look->reply, &parts, err);
    silt_conn_drop_note(conn);
    if (status != SILT_OK) return status;
    look->generation = silt_conn_generation(conn);
    const struct silt_reply *reply = &look->reply;
    size_t node = 1;
    *ret_range = 0;
    if ((parts & SILT_LOOK_RANGE) != 0) {
        *ret_range = node;
        node = silt_reply_skip(reply, node);
    }
    status = read_stream(conn, look, node, err);
    node = silt_reply_skip(reply, node);
    look->groups_denied = (parts & SILT_LOOK_GROUPS) == 0;
    if (!look->groups_denied) {
        if (status == SILT_OK && look->state == SILT_LOOK_STREAM)
            status = read_groups(conn, look, node, err);
        node = silt_reply_skip(reply, node);
    }
    if (status == SILT_OK && (parts & SILT_LOOK_REPLICATION) != 0)
        status = read_replication(conn, look, node, err);
    return status;
}

/* ---- public ---- */

enum silt_status silt_look_append(struct silt_conn *conn, struct silt_view key,
                                  enum silt_look_what what, struct silt_err *err)
{
    return silt_look_send(conn, key, what, NULL, err);
}

enum silt_status silt_look_receive(struct silt_conn *conn, enum silt_look_what what,
                                   struct silt_look *look, struct silt_err *err)
{
    size_t no_range;
    (void)what; /* the connection knows what it has sent */
    return silt_look_take(conn, NULL, look, &no_range, err);
}

enum silt_status silt_look_call(struct silt_conn *conn, struct silt_view key,
                                enum silt_look_what what, struct silt_look *look,
                                struct silt_err *err)
{
    enum silt_status status = silt_conn_open(conn, err);
    if (status == SILT_OK) status = silt_look_append(conn, key, what, err);
    if (status == SILT_OK) status = silt_look_receive(conn, what, look, err);
    return status;
}

enum silt_status silt_look_oldest_pending(struct silt_conn *conn, struct silt_view key,
                                          struct silt_view group, struct silt_reply *scratch,
                                          struct silt_wire_id *ret, struct silt_err *err)
{
    const struct silt_view argv[3] = {silt_view_str("XPENDING"), key, group};
    enum silt_status status = silt_conn_call(conn, argv, 3, scratch, err);
    if (status != SILT_OK) return status;
    const struct silt_node *nodes = scratch->nodes;
    if (nodes[0].type != SILT_NODE_ARRAY || nodes[0].size != 4 ||
        nodes[1].type != SILT_NODE_INTEGER)
        return silt_conn_nonsense(conn, err, "a summary of four from XPENDING");
    bool none = nodes[1].value == 0;
    if (none && nodes[2].type == SILT_NODE_NIL) return SILT_END;
    if (none || !silt_reply_is_text(scratch, 2) ||
        silt_wire_id_parse(silt_reply_text(scratch, 2), ret, NULL) != SILT_OK)
        return silt_conn_nonsense(conn, err, "the oldest pending id from XPENDING");
    return SILT_OK;
}

enum silt_status silt_look_time(struct silt_conn *conn, struct silt_reply *scratch,
                                uint64_t *ret_ms, struct silt_err *err)
{
    const struct silt_view argv[1] = {silt_view_str("TIME")};
    uint64_t seconds = 0, micros = 0;
    enum silt_status status = silt_conn_call(conn, argv, 1, scratch, err);
    if (status != SILT_OK) return status;
    if (scratch->nodes[0].type != SILT_NODE_ARRAY || scratch->nodes[0].size != 2 ||
        !silt_reply_is_text(scratch, 1) || !silt_reply_is_text(scratch, 2) ||
        !silt_parse_u64(silt_reply_text(scratch, 1), &seconds) ||
        !silt_parse_u64(silt_reply_text(scratch, 2), &micros) || micros >= 1000000 ||
        seconds > UINT64_MAX / 1000 - 1)
        return silt_conn_nonsense(conn, err, "seconds and microseconds from TIME");
    *ret_ms = seconds * 1000 + micros / 1000;
    return SILT_OK;
}

size_t silt_marker_format(const struct silt_marker *marker, char ret[SILT_MARKER_TEXT])
{
    return (size_t)snprintf(ret, SILT_MARKER_TEXT, "silt:%.36s:%llu:%llu", marker->uuid,
                            (unsigned long long)marker->epoch, (unsigned long long)marker->number);
}

bool silt_marker_parse(struct silt_view name, struct silt_marker *ret)
{
    enum { UUID = 36, HEAD = 5 };
    struct silt_marker marker = {0};
    char again[SILT_MARKER_TEXT];
    if (name.len < HEAD + UUID + 4 || memcmp(name.at, "silt:", HEAD) != 0) return false;
    memcpy(marker.uuid, name.at + HEAD, UUID);
    for (size_t i = 0; i < UUID; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        char c = marker.uuid[i];
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (dash ? c != '-' : !hex) return false;
    }
    const uint8_t *at = name.at + HEAD + UUID, *end = name.at + name.len;
    if (*at++ != ':') return false;
    const uint8_t *colon = memchr(at, ':', (size_t)(end - at));
    if (colon == NULL || !silt_parse_u64(silt_view(at, (size_t)(colon - at)), &marker.epoch) ||
        !silt_parse_u64(silt_view(colon + 1, (size_t)(end - colon - 1)), &marker.number))
        return false;
    /* One marker, one name: leading zeros would be a second one. */
    size_t len = silt_marker_format(&marker, again);
    if (!silt_view_equal(silt_view(again, len), name)) return false;
    *ret = marker;
    return true;
}
