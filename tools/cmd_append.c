/* silt append: one entry, with a minted id on a branded stream. */
#include "alloc.h"
#include "command.h"
#include "session.h"
#include "writer.h"

static const struct silt_option options[] = {
    {"id", "ID", "append under this id (branded or wire) instead of a new one"},
    {"node", "N", "the node of minted ids, 0 to 1023 (0)"},
    {NULL, NULL, NULL},
};

const struct silt_verb_text silt_text_append = {
    .options = options,
    .about =
        "On a branded stream a new id is minted above the stream's last one and sent with the entry, as its id and as "
        "its first field `id`; the key must be emq:{<queue>}:stream:<name>, and no field may be called id. On a plain "
        "stream the server makes the id.\n\n"
        "An id that is not above the stream's top is refused (nothing is written, and it is not tried again under "
        "another id). When the answer is lost, the exact id is read back before anything is said.\n\n"
        "The stream's kind is what the archive says, else --ids, else the settings, else plain.",
    .examples = "silt append --ids 'branded EVT' 'emq:{game}:stream:feed' kind scored user 42",
};

static enum silt_status parse_node(struct silt_call *call, uint32_t *ret)
{
    const char *text = silt_call_option(call, "node");
    uint64_t node = 0;
    if (text != NULL && (!silt_parse_u64(silt_view_str(text), &node) || node > 1023))
        return silt_fail(&call->err, SILT_ERR_USAGE, "--node is a number from 0 to 1023, not '%s'",
                         text);
    *ret = (uint32_t)node;
    return SILT_OK;
}

/* Field names and values behind KEY; slot 0 is left for the id pair. */
static enum silt_status collect(struct silt_call *call, bool branded, struct silt_field *fields,
                                size_t *ret_count)
{
    if (call->arg_count % 2 == 0)
        return silt_fail(&call->err, SILT_ERR_USAGE, "the field '%s' has no value",
                         call->args[call->arg_count - 1]);
    size_t count = 0;
    for (size_t i = 1; i < call->arg_count; i += 2) {
        if (branded && strcmp(call->args[i], "id") == 0)
            return silt_fail(&call->err, SILT_ERR_USAGE,
                             "a field may not be called id: it holds the branded id");
        fields[count++] =
            (struct silt_field){silt_view_str(call->args[i]), silt_view_str(call->args[i + 1])};
    }
    *ret_count = count;
    return SILT_OK;
}

static enum silt_status parse_id(struct silt_call *call, struct silt_namespace ns,
                                 struct silt_wire_id *ret)
{
    struct silt_view text = silt_view_str(silt_call_option(call, "id"));
    struct silt_branded_id branded;
    uint64_t snowflake;
    if (memchr(text.at, '-', text.len) == NULL) {
        enum silt_status status = silt_namespace_is_none(ns)
                                      ? silt_branded_id_parse(text, &branded, &call->err)
                                      : silt_branded_id_parse_kind(text, ns, &branded, &call->err);
        if (status == SILT_OK) *ret = silt_snowflake_to_wire(branded.snowflake);
        return status;
    }
    enum silt_status status = silt_wire_id_parse(text, ret, &call->err);
    if (status == SILT_OK && !silt_namespace_is_none(ns) &&
        !silt_snowflake_from_wire(*ret, &snowflake))
        return silt_fail(&call->err, SILT_ERR_ID_UNNAMEABLE, "the wire id %s has no branded form",
                         silt_call_option(call, "id"));
    return status;
}

/* Mint, then send at once: ids of one process ascend on the wire as they were made. */
static enum silt_status append_branded(struct silt_call *call, struct silt_writer *writer,
                                       struct silt_field *fields, struct silt_entry *entry)
{
    char text[SILT_BRANDED_ID_LEN];
    struct silt_branded_id id = {.ns = writer->ns};
    enum silt_status status;
    if (silt_call_option(call, "id") != NULL) {
        if (!silt_snowflake_from_wire(entry->id, &id.snowflake)) return SILT_ERR_ID_UNNAMEABLE;
    } else if ((status = silt_writer_seed(writer, &call->err)) != SILT_OK ||
               (status = silt_mint_next(&writer->mint, silt_wall_ms(), &id.snowflake,
                                        &call->err)) != SILT_OK) {
        return status;
    }
    if ((status = silt_branded_id_format(id, text)) != SILT_OK)
        return silt_fail(&call->err, status, NULL);
    fields[0] = (struct silt_field){silt_view_str("id"), silt_view(text, sizeof text)};
    entry->id = silt_snowflake_to_wire(id.snowflake);
    entry->fields = fields;
    entry->field_count++;
    return silt_writer_put(writer, entry, &call->err);
}

static enum silt_status append_plain(struct silt_call *call, struct silt_writer *writer,
                                     struct silt_entry *entry)
{
    struct silt_wire_id id;
    if (silt_call_option(call, "id") != NULL) return silt_writer_put(writer, entry, &call->err);
    enum silt_status status = silt_writer_send(writer, entry, true, &call->err);
    if (status == SILT_OK) status = silt_writer_receive(writer, &id, &call->err);
    if (status == SILT_OK) entry->id = id;
    if (silt_writer_is_open_outcome(status))
        silt_hint(&call->err,
                  "whether the entry was written is not known: the server makes the ids "
                  "of this stream, so nothing can be read back; --id makes it safe");
    return status;
}

static void tell(struct silt_call *call, const struct silt_entry *entry, struct silt_namespace ns)
{
    char id[SILT_WIRE_ID_TEXT];
    if (call->json) {
        silt_json_id(&call->out, entry->id, ns);
        silt_json_end_line(&call->out);
        return;
    }
    silt_id_text(entry->id, ns, id);
    silt_out_printf(&call->out, "%s\n", id);
}

static enum silt_status append(struct silt_call *call, struct silt_session *session,
                               struct silt_writer *writer, struct silt_field *fields)
{
    struct silt_view key = silt_view_str(call->args[0]);
    struct silt_entry entry = {.fields = fields + 1};
    struct silt_namespace ns;
    uint32_t node = 0;
    enum silt_status status;
    if ((status = parse_node(call, &node)) != SILT_OK ||
        (status = silt_session_kind(session, key, &ns)) != SILT_OK)
        return status;
    bool branded = !silt_namespace_is_none(ns);
    /* All that can be refused is refused before the first word to the server. */
    if ((status = collect(call, branded, fields + 1, &entry.field_count)) != SILT_OK ||
        (silt_call_option(call, "id") && (status = parse_id(call, ns, &entry.id)) != SILT_OK) ||
        (status = silt_writer_init(writer, NULL, key, ns, node, &call->err)) != SILT_OK ||
        (status = silt_session_conn(session)) != SILT_OK)
        return status;
    writer->conn = session->conn;
    status =
        branded ? append_branded(call, writer, fields, &entry) : append_plain(call, writer, &entry);
    if (status == SILT_OK) tell(call, &entry, ns);
    if (status == SILT_ERR_NONMONOTONIC && !call->err.hint[0])
        silt_hint(&call->err, "nothing was written; another writer may be ahead of this one");
    return status;
}

enum silt_status silt_cmd_append(struct silt_call *call)
{
    SILT_SESSION_CLEANUP session;
    struct silt_writer writer = {0};
    enum silt_status status = silt_session_init(&session, call);
    if (status != SILT_OK) return status;
    SILT_CLEANUP(silt_free_p)
    struct silt_field *fields = silt_calloc(call->arg_count + 1, sizeof *fields);
    if (fields == NULL) return silt_fail(&call->err, SILT_ERR_MEMORY, NULL);
    status = append(call, &session, &writer, fields);
    silt_writer_release(&writer);
    return status;
}
