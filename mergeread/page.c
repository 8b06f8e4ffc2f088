/* A page: entries of a range with the look of the same MULTI, checked against it. One round trip, no allocation per entry once warm. */
#include "alloc.h"
#include "look_priv.h"

void silt_page_release(struct silt_page *page)
{
    if (page == NULL) return;
    silt_look_release(&page->look);
    silt_buf_release(&page->entries_mem);
    silt_buf_release(&page->fields_mem);
    *page = (struct silt_page){0};
}

enum silt_status silt_page_append(struct silt_conn *conn, const struct silt_page_request *request,
                                  struct silt_err *err)
{
    if (request->count == 0) return silt_fail(err, SILT_ERR_USAGE, "a page of no entries");
    if (silt_wire_id_less(request->to, request->from)) {
        char from[SILT_WIRE_ID_TEXT], to[SILT_WIRE_ID_TEXT];
        silt_wire_id_format(request->from, from);
        silt_wire_id_format(request->to, to);
        return silt_fail(err, SILT_ERR_WINDOW, "the window is inverted: %s is above %s", from, to);
    }
    return silt_look_send(conn, request->key, request->what, request, err);
}

/* Where the page ends at an end of the stream, the two replies of one transaction must tell the same: a page that is empty or short for any
 * other reason than that there is no more would hide entries. */
static bool agrees(const struct silt_page_request *request, const struct silt_page *page)
{
    const struct silt_look *look = &page->look;
    if (look->state != SILT_LOOK_STREAM || look->facts.length == 0) return page->entry_count == 0;
    if (page->entry_count > look->facts.length) return false;
    bool first_asked = !silt_wire_id_less(look->first.id, request->from) &&
                       !silt_wire_id_less(request->to, look->first.id);
    bool last_asked = !silt_wire_id_less(look->last.id, request->from) &&
                      !silt_wire_id_less(request->to, look->last.id);
    if (page->entry_count == 0) return !first_asked && !last_asked;
    const struct silt_entry *begin = &page->entries[0];
    const struct silt_entry *end = &page->entries[page->entry_count - 1];
    const struct silt_entry *low = request->reverse ? end : begin;
    const struct silt_entry *high = request->reverse ? begin : end;
    if (silt_wire_id_less(low->id, look->first.id) || silt_wire_id_less(look->last.id, high->id))
        return false;
    /* A full page need not have come as far as its far end. */
    bool low_reached = !request->reverse || !page->full;
    bool high_reached = request->reverse || !page->full;
    if (first_asked && low_reached && !silt_wire_id_equal(low->id, look->first.id)) return false;
    return !(last_asked && high_reached && !silt_wire_id_equal(high->id, look->last.id));
}

static bool in_place(const struct silt_page_request *request, const struct silt_entry *entries,
                     size_t i)
{
    struct silt_wire_id id = entries[i].id;
    if (silt_wire_id_less(id, request->from) || silt_wire_id_less(request->to, id)) return false;
    if (i == 0) return true;
    return request->reverse ? silt_wire_id_less(id, entries[i - 1].id)
                            : silt_wire_id_less(entries[i - 1].id, id);
}

static enum silt_status read_entries(struct silt_conn *conn,
                                     const struct silt_page_request *request, size_t node,
                                     struct silt_page *page, struct silt_err *err)
{
    const struct silt_reply *reply = &page->look.reply;
    size_t count = reply->nodes[node].size, used = 0;
    if (count > request->count)
        return silt_conn_nonsense(conn, err, "no more entries than were asked for");
    silt_buf_clear(&page->entries_mem);
    silt_buf_clear(&page->fields_mem);
    size_t room = (size_t)reply->nodes[node].value / 2;
    if (silt_buf_reserve(&page->entries_mem, count * sizeof(struct silt_entry)) != SILT_OK ||
        silt_buf_reserve(&page->fields_mem, room * sizeof(struct silt_field)) != SILT_OK)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    struct silt_entry *entries = (struct silt_entry *)(void *)page->entries_mem.at;
    struct silt_field *fields = (struct silt_field *)(void *)page->fields_mem.at;
    size_t at = node + 1;
    for (size_t i = 0; i < count; i++, at = silt_reply_skip(reply, at)) {
        if (!silt_look_read_entry(reply, at, fields, &used, &entries[i]))
            return silt_conn_nonsense(conn, err, "entries of an id and pairs of names and values");
        if (!in_place(request, entries, i))
            return silt_conn_nonsense(conn, err, "ids in order and within the range asked for");
        page->values_bytes += silt_entry_bytes(&entries[i]);
    }
    page->entries = entries;
    page->entry_count = count;
    page->full = count == request->count;
    return SILT_OK;
}

enum silt_status silt_page_receive(struct silt_conn *conn, const struct silt_page_request *request,
                                   struct silt_page *page, struct silt_err *err)
{
    size_t range = 0;
    page->entries = NULL;
    page->entry_count = 0;
    page->full = false;
    page->values_bytes = 0;
    enum silt_status status = silt_look_take(conn, request, &page->look, &range, err);
    if (status != SILT_OK) return status;
    const struct silt_reply *reply = &page->look.reply;
    if (reply->nodes[range].type == SILT_NODE_ERROR) {
        status = silt_reply_error_class(silt_reply_text(reply, range), err);
        if (status != SILT_ERR_WRONG_TYPE || page->look.state != SILT_LOOK_WRONG_TYPE)
            return status;
        return SILT_OK; /* the look's state says it */
    }
    if (reply->nodes[range].type != SILT_NODE_ARRAY)
        return silt_conn_nonsense(conn, err, "an array of entries");
    status = read_entries(conn, request, range, page, err);
    if (status == SILT_OK && !agrees(request, page))
        status =
            silt_conn_nonsense(conn, err, "a page that agrees with the XINFO STREAM beside it");
    return status;
}
