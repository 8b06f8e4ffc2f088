/* The fetching side of a fold. Must not know store or plan; what it gives to the worker is contiguous. */
#include "fetch.h"

#include "faultpoint.h"

enum { FIRST_PAGE = 100 }; /* entries, when nothing is known of their size */

uint32_t silt_page_count(const struct silt_page_size *size, uint32_t page_entries,
                         uint64_t page_bytes)
{
    uint64_t count = page_entries;
    if (size->entry_bytes > 0 && page_bytes / size->entry_bytes < count)
        count = page_bytes / size->entry_bytes;
    if (size->entry_bytes == 0 && count > FIRST_PAGE) count = FIRST_PAGE;
    if (size->count_cap > 0 && count > size->count_cap) count = size->count_cap;
    if (size->sparse_cap > 0 && count > size->sparse_cap) count = size->sparse_cap;
    return count > 0 ? (uint32_t)count : 1;
}

void silt_page_learn(struct silt_page_size *size, const struct silt_page *page, uint32_t asked)
{
    size->sparse_cap = silt_look_page_cap(&page->look);
    if (page->entry_count > 0) size->entry_bytes = page->values_bytes / page->entry_count + 1;
    if (size->count_cap > 0 && page->entry_count == asked)
        size->count_cap = size->count_cap > UINT32_MAX / 2 ? 0 : size->count_cap * 2;
}

const char *silt_fetch_break(const struct silt_facts *opening, const struct silt_look *look,
                             struct silt_view marker, struct silt_wire_id marker_at)
{
    if (look->state != SILT_LOOK_STREAM) return "key";
    const char *broken = silt_custody_break(opening, &look->facts);
    if (broken) return broken;
    if (marker.len == 0) return NULL; /* a stream without one: the judgement looks for others' */
    bool stands = false;
    for (size_t i = 0; i < look->group_count; i++) {
        if (!look->groups[i].is_silt) continue;
        if (!silt_view_equal(look->groups[i].name, marker)) return "claim";
        stands = silt_wire_id_equal(look->groups[i].last_delivered, marker_at);
    }
    return stands ? NULL : "marker";
}

static void note_evidence(struct silt_gap_evidence *evidence, const struct silt_facts *facts)
{
    evidence->has_first = facts->has_first;
    evidence->first = facts->first;
    if (silt_wire_id_less(evidence->max_deleted, facts->max_deleted))
        evidence->max_deleted = facts->max_deleted;
}

/* A trim by others in the middle of a fetch leaves no other trace once C has moved past it. */
static void note_count(const struct silt_facts *facts, struct silt_fetch *fetch)
{
    if (facts->has_first && !silt_wire_id_less(fetch->through, facts->first)) return;
    fetch->count_known = (struct silt_fetch_count){.is_set = true,
                                                   .added = facts->entries_added,
                                                   .length = facts->length,
                                                   .fetched = fetch->count};
    fetch->count_known.evidence = fetch->evidence;
    fetch->count_known.evidence.has_first = facts->has_first;
    fetch->count_known.evidence.first = facts->first;
}

/* How many of the page's entries may be folded: all, or those before the first foreign one. */
static size_t fold_count(const struct silt_fetch_request *request, const struct silt_page *page,
                         struct silt_fetch *fetch)
{
    if (!request->stop_at_foreign) return page->entry_count;
    for (size_t i = 0; i < page->entry_count; i++) {
        size_t index;
        if (silt_entry_is_ours(&page->entries[i], request->ns, &index)) continue;
        fetch->met_foreign = true;
        fetch->foreign_at = page->entries[i].id;
        return i;
    }
    return page->entry_count;
}

bool silt_fetch_take(const struct silt_fetch_request *request, const struct silt_page *page,
                     size_t count, struct silt_fetch *fetch)
{
    note_evidence(&fetch->evidence, &page->look.facts);
    note_count(&page->look.facts, fetch);
    fetch->count += count;
    if (count == page->entry_count) {
        fetch->bytes += page->values_bytes;
    } else {
        for (size_t i = 0; i < count; i++)
            fetch->bytes += silt_entry_bytes(&page->entries[i]);
    }
    if (count > 0) fetch->through = page->entries[count - 1].id;
    if (fetch->met_foreign) return false;
    fetch->reached = !page->full || silt_wire_id_compare(fetch->through, request->target) >= 0;
    return !fetch->reached && fetch->count < request->max_entries &&
           fetch->bytes < request->max_bytes;
}

static enum silt_status ask(struct silt_conn *conn, const struct silt_fetch_request *request,
                            const struct silt_page_size *size, const struct silt_fetch *fetch,
                            struct silt_page_request *page, struct silt_err *err)
{
    uint64_t left = request->max_entries - fetch->count;
    uint32_t count = silt_page_count(size, request->page_entries, request->page_bytes);
    *page = (struct silt_page_request){.key = request->key,
                                       .to = request->target,
                                       .count = left < count ? (uint32_t)left : count,
                                       .what = SILT_LOOK_ARCHIVER};
    if (!silt_wire_id_next(fetch->through, &page->from)) page->from = SILT_WIRE_ID_MAX;
    enum silt_status status = silt_page_append(conn, page, err);
    return status == SILT_OK ? silt_conn_flush(conn, err) : status;
}

/* One page: received, judged, the next one asked for, given. *ret_more: another reply is owed. */
static enum silt_status step(struct silt_conn *conn, struct silt_worker *worker,
                             const struct silt_fetch_request *request, struct silt_page_size *size,
                             struct silt_page_request *asked, struct silt_fetch *fetch,
                             bool *ret_more, struct silt_err *err)
{
    struct silt_page *page = silt_worker_page(worker);
    *ret_more = false;
    enum silt_status status = silt_page_receive(conn, asked, page, err);
    if (status == SILT_OK && SILT_FAULTPOINT("after-page"))
        status = silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection");
    if (status != SILT_OK) {
        silt_worker_give(worker, page, 0);
        return status;
    }
    fetch->broken =
        silt_fetch_break(request->opening, &page->look, request->marker, request->marker_at);
    if (fetch->broken) {
        silt_worker_give(worker, page, 0);
        return SILT_OK;
    }
    silt_page_learn(size, page, asked->count);
    size_t count = fold_count(request, page, fetch);
    if (silt_fetch_take(request, page, count, fetch)) {
        status = ask(conn, request, size, fetch, asked, err);
        *ret_more = status == SILT_OK;
    }
    if (!silt_worker_give(worker, page, count)) {
        /* finish will say why; a page still owed must not be taken for an answer to the next command */
        if (*ret_more) silt_conn_close(conn);
        *ret_more = false;
    }
    return status;
}

void silt_fetch_begin(const struct silt_fetch_request *request, struct silt_fetch *ret)
{
    *ret = (struct silt_fetch){
        .through = request->after,
        .evidence = {.custody = request->after, .last = request->opening->last}};
    note_evidence(&ret->evidence, request->opening);
    note_count(request->opening, ret);
}

enum silt_status silt_fetch_run(struct silt_conn *conn, struct silt_worker *worker,
                                const struct silt_fetch_request *request,
                                struct silt_page_size *size, struct silt_fetch *ret,
                                struct silt_err *err)
{
    silt_fetch_begin(request, ret);
    if (silt_wire_id_compare(request->after, request->target) >= 0) {
        ret->reached = true;
        return SILT_OK;
    }
    if (request->max_entries == 0 || request->max_bytes == 0) return SILT_OK;
    struct silt_page_request asked;
    enum silt_status status = ask(conn, request, size, ret, &asked, err);
    bool more = status == SILT_OK;
    while (more)
        status = step(conn, worker, request, size, &asked, ret, &more, err);
    if (status != SILT_OK && !silt_conn_is_open(conn)) {
        /* a page the server or the line would not carry: smaller ones, until one passes */
        uint32_t count = silt_page_count(size, request->page_entries, request->page_bytes);
        if (silt_status_class(status) == SILT_CLASS_RETRY && status != SILT_ERR_CANCELLED)
            size->count_cap = count > 1 ? count / 2 : 1;
    }
    return status;
}
