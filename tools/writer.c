/* Appends that know what became of them. Must not know where entries come from. */
#include "writer.h"

#include "look.h"
#include "stream_key.h"

#define SETTLE_TRIES 3

enum silt_status silt_writer_init(struct silt_writer *writer, struct silt_conn *conn,
                                  struct silt_view key, struct silt_namespace ns, uint32_t node,
                                  struct silt_err *err)
{
    struct silt_stream_key parts;
    enum silt_status status;
    *writer = (struct silt_writer){.conn = conn, .key = key, .ns = ns};
    if ((status = silt_mint_init(&writer->mint, node, err)) != SILT_OK) return status;
    return silt_namespace_is_none(ns) ? SILT_OK : silt_stream_key_parse(key, &parts, err);
}

void silt_writer_release(struct silt_writer *writer)
{
    silt_buf_release(&writer->argv);
    silt_reply_release(&writer->reply);
}

enum silt_status silt_writer_seed(struct silt_writer *writer, struct silt_err *err)
{
    struct silt_look look = {0};
    enum silt_status status =
        silt_look_call(writer->conn, writer->key, SILT_LOOK_READER, &look, err);
    if (status == SILT_OK && look.state == SILT_LOOK_WRONG_TYPE)
        status = silt_fail(err, SILT_ERR_WRONG_TYPE,
                           "WRONGTYPE: the key holds another type than a stream");
    if (status == SILT_OK && look.state == SILT_LOOK_STREAM &&
        !silt_wire_id_is_zero(look.facts.last)) {
        if (look.facts.last.ms > SILT_LAST_MS) {
            char last[SILT_WIRE_ID_TEXT];
            silt_wire_id_format(look.facts.last, last);
            status = silt_fail(err, SILT_ERR_ID_RANGE,
                               "no branded id lies above the stream's last id %s", last);
        } else if (look.facts.last.ms >= SILT_EPOCH_MS) {
            /* A last id with a tail above any snowflake's: the next millisecond. */
            silt_mint_seed(&writer->mint, silt_snowflake_floor(look.facts.last));
        }
    }
    silt_look_release(&look);
    return status;
}

static enum silt_status push(struct silt_buf *argv, struct silt_view word)
{
    return silt_buf_put(argv, &word, sizeof word);
}

static const struct silt_view *words(const struct silt_buf *argv)
{
    return (const struct silt_view *)(const void *)argv->at; /* from the heap: aligned */
}

enum silt_status silt_writer_send(struct silt_writer *writer, const struct silt_entry *entry,
                                  bool server_id, struct silt_err *err)
{
    struct silt_buf *argv = &writer->argv;
    enum silt_status status;
    silt_buf_clear(argv);
    silt_wire_id_format(entry->id, writer->id_text);
    if ((status = push(argv, silt_view_str("XADD"))) || (status = push(argv, writer->key)) ||
        (status = push(argv, silt_view_str(server_id ? "*" : writer->id_text))))
        return silt_fail(err, status, NULL);
    for (size_t i = 0; i < entry->field_count; i++)
        if ((status = push(argv, entry->fields[i].name)) ||
            (status = push(argv, entry->fields[i].value)))
            return silt_fail(err, status, NULL);
    return silt_conn_append(writer->conn, words(argv), argv->len / sizeof(struct silt_view), err);
}

enum silt_status silt_writer_receive(struct silt_writer *writer, struct silt_wire_id *ret_id,
                                     struct silt_err *err)
{
    enum silt_status status = silt_conn_receive(writer->conn, &writer->reply, err);
    if (status != SILT_OK) return status;
    if (!silt_reply_is_text(&writer->reply, 0) ||
        silt_wire_id_parse(silt_reply_text(&writer->reply, 0), ret_id, NULL) != SILT_OK)
        return silt_conn_nonsense(writer->conn, err, "the id of the new entry");
    return SILT_OK;
}

bool silt_writer_is_open_outcome(enum silt_status status)
{
    return status == SILT_ERR_SERVER_AWAY || status == SILT_ERR_SERVER_TIMEOUT ||
           status == SILT_ERR_SERVER_NONSENSE || status == SILT_ERR_CANCELLED;
}

/* The one entry of an XRANGE reply against what was sent. */
static bool reply_is_entry(const struct silt_reply *reply, const struct silt_entry *entry)
{
    /* 0: the list, 1: the entry, 2: its id, 3: its fields, 4...: names and values. */
    if (reply->node_count != 4 + 2 * entry->field_count ||
        reply->nodes[1].type != SILT_NODE_ARRAY || reply->nodes[3].type != SILT_NODE_ARRAY)
        return false;
    for (size_t i = 0; i < entry->field_count; i++) {
        size_t node = 4 + 2 * i;
        if (!silt_reply_is_text(reply, node) || !silt_reply_is_text(reply, node + 1) ||
            !silt_view_equal(silt_reply_text(reply, node), entry->fields[i].name) ||
            !silt_view_equal(silt_reply_text(reply, node + 1), entry->fields[i].value))
            return false;
    }
    return true;
}

enum silt_status silt_writer_look_back(struct silt_writer *writer, const struct silt_entry *entry,
                                       struct silt_err *err)
{
    silt_wire_id_format(entry->id, writer->id_text);
    struct silt_view id = silt_view_str(writer->id_text);
    struct silt_view argv[] = {silt_view_str("XRANGE"), writer->key, id, id};
    enum silt_status status = silt_conn_call(writer->conn, argv, 4, &writer->reply, err);
    if (status != SILT_OK) return status;
    if (writer->reply.nodes[0].type != SILT_NODE_ARRAY)
        return silt_conn_nonsense(writer->conn, err, "a list of entries");
    if (writer->reply.nodes[0].size == 0) return SILT_END;
    if (reply_is_entry(&writer->reply, entry)) return SILT_OK;
    return silt_fail(err, SILT_ERR_CONFLICT, "the stream holds other bytes under the id %s",
                     writer->id_text);
}

static enum silt_status send_and_receive(struct silt_writer *writer, const struct silt_entry *entry,
                                         struct silt_err *err)
{
    struct silt_wire_id id;
    enum silt_status status = silt_conn_open(writer->conn, err);
    if (status == SILT_OK) status = silt_writer_send(writer, entry, false, err);
    if (status == SILT_OK) status = silt_writer_receive(writer, &id, err);
    if (status == SILT_OK && !silt_wire_id_equal(id, entry->id))
        return silt_conn_nonsense(writer->conn, err, "the id that was sent");
    return status;
}

/* Sending the same id again is safe whatever became of the first: one of the two is refused. */
enum silt_status silt_writer_settle(struct silt_writer *writer, const struct silt_entry *entry,
                                    struct silt_err *err)
{
    enum silt_status status = SILT_ERR_SERVER_AWAY;
    for (int i = 0; i < SETTLE_TRIES; i++) {
        status = silt_writer_look_back(writer, entry, err);
        if (status == SILT_END) {
            status = send_and_receive(writer, entry, err);
            /* Refused: either the first one has landed in between, or the top is above it. */
            if (status == SILT_ERR_NONMONOTONIC) {
                struct silt_err told = *err;
                status = silt_writer_look_back(writer, entry, err);
                if (status == SILT_END) {
                    *err = told;
                    return SILT_ERR_NONMONOTONIC;
                }
            }
        }
        if (!silt_writer_is_open_outcome(status)) return status;
    }
    silt_wire_id_format(entry->id, writer->id_text);
    silt_hint(err, "whether %s was written is not known; the same id again is safe",
              writer->id_text);
    return status;
}

enum silt_status silt_writer_put(struct silt_writer *writer, const struct silt_entry *entry,
                                 struct silt_err *err)
{
    enum silt_status status = silt_conn_open(writer->conn, err);
    if (status != SILT_OK) return status; /* nothing was sent */
    status = send_and_receive(writer, entry, err);
    return silt_writer_is_open_outcome(status) ? silt_writer_settle(writer, entry, err) : status;
}
