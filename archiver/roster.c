/* See roster.h. A table of streams by key; SCAN in small steps. */
#include "roster.h"

#include "alloc.h"
#include "log.h"

#define SCAN_COUNT \
    "250" /* keys the server looks at in one call: well under a millisecond of its time */

static void free_stream(struct silt_roster_stream *stream)
{
    if (!stream) return;
    silt_work_free(stream->work);
    silt_buf_release(&stream->key);
    silt_free(stream);
}

enum silt_status silt_roster_init(struct silt_roster *roster, const struct silt_config *config)
{
    memset(roster, 0, sizeof *roster);
    roster->config = config;
    roster->reply = silt_calloc(1, sizeof *roster->reply);
    return roster->reply ? SILT_OK : SILT_ERR_MEMORY;
}

void silt_roster_release(struct silt_roster *roster)
{
    for (size_t i = 0; i < roster->count; i++)
        free_stream(roster->streams[i]);
    silt_free(roster->streams);
    silt_free(roster->slots);
    silt_buf_release(&roster->cursor);
    if (roster->reply) silt_reply_release(roster->reply);
    silt_free(roster->reply);
    memset(roster, 0, sizeof *roster);
}

/* The slot that holds the key, or the free one where it would go. The table is never full. */
static size_t slot_of(const struct silt_roster *roster, struct silt_view key)
{
    size_t slot = silt_checksum(key, 0) & (roster->slot_count - 1);
    while (roster->slots[slot] &&
           !silt_view_equal(silt_buf_view(&roster->streams[roster->slots[slot] - 1]->key), key))
        slot = (slot + 1) & (roster->slot_count - 1);
    return slot;
}

static void fill_slots(struct silt_roster *roster)
{
    memset(roster->slots, 0, roster->slot_count * sizeof *roster->slots);
    for (size_t i = 0; i < roster->count; i++)
        roster->slots[slot_of(roster, silt_buf_view(&roster->streams[i]->key))] = i + 1;
}

static enum silt_status reserve(struct silt_roster *roster)
{
    void *streams = roster->streams;
    if (silt_grow(&streams, &roster->cap, roster->count + 1, sizeof(void *)) != 0)
        return SILT_ERR_MEMORY;
    roster->streams = streams;
    if ((roster->count + 1) * 2 <= roster->slot_count) return SILT_OK;
    size_t wanted = roster->slot_count ? roster->slot_count * 2 : 64;
    size_t *slots = silt_calloc(wanted, sizeof *slots);
    if (!slots) return SILT_ERR_MEMORY;
    silt_free(roster->slots);
    roster->slots = slots;
    roster->slot_count = wanted;
    fill_slots(roster);
    return SILT_OK;
}

struct silt_roster_stream *silt_roster_find(const struct silt_roster *roster, struct silt_view key)
{
    if (roster->slot_count == 0) return NULL;
    size_t index = roster->slots[slot_of(roster, key)];
    return index ? roster->streams[index - 1] : NULL;
}

/* What the configuration says of the key; false: nothing. */
static bool settle_config(const struct silt_roster *roster, struct silt_roster_stream *stream)
{
    const struct silt_stream_config *one = NULL, *other = NULL;
    enum silt_match match =
        silt_config_match(roster->config, silt_buf_view(&stream->key), &one, &other);
    stream->config = one;
    stream->other = match == SILT_MATCH_AMBIGUOUS ? other : NULL;
    stream->report.ambiguous = match == SILT_MATCH_AMBIGUOUS;
    return match != SILT_MATCH_NONE;
}

enum silt_status silt_roster_add(struct silt_roster *roster, struct silt_view key,
                                 struct silt_roster_stream **ret)
{
    struct silt_roster_stream *stream = silt_roster_find(roster, key);
    if (stream) {
        *ret = stream;
        return SILT_OK;
    }
    if (reserve(roster) != SILT_OK) return SILT_ERR_MEMORY;
    stream = silt_calloc(1, sizeof *stream);
    if (!stream || silt_buf_put(&stream->key, key.at, key.len) != SILT_OK) {
        free_stream(stream);
        return SILT_ERR_MEMORY;
    }
    if (!settle_config(roster, stream)) {
        free_stream(stream);
        stream = NULL;
    } else {
        size_t slot = slot_of(roster, key);
        roster->streams[roster->count++] = stream;
        roster->slots[slot] = roster->count;
    }
    *ret = stream;
    return SILT_OK;
}

enum silt_status silt_roster_add_exact(struct silt_roster *roster)
{
    struct silt_roster_stream *stream;
    enum silt_status status = SILT_OK;
    for (size_t i = 0; i < roster->config->stream_count && status == SILT_OK; i++)
        if (!roster->config->streams[i].is_pattern)
            status = silt_roster_add(roster, roster->config->streams[i].match, &stream);
    return status;
}

enum silt_status silt_roster_add_known(struct silt_roster *roster, struct silt_store *store,
                                       struct silt_err *err)
{
    SILT_CLEANUP(silt_stream_release) struct silt_stream row = {0};
    struct silt_roster_stream *stream;
    for (uint64_t after = 0;;) {
        struct silt_err why = {0};
        enum silt_status status = silt_store_stream_after(store, after, &row, &why);
        if (status == SILT_END) return SILT_OK;
        if (silt_status_class(status) == SILT_CLASS_CORRUPT && row.row.number > after) {
            /* Promise 5: damage is told, and keeps nobody else waiting. */
            after = row.row.number;
            SILT_LOG(SILT_LOG_ERROR, "row-damaged", SILT_NUM("number", after),
                     SILT_STR("reason", why.sentence),
                     SILT_STR("hint", "silt verify shows the extent"));
            continue;
        }
        if (status != SILT_OK) {
            if (err) *err = why;
            return status;
        }
        after = row.row.number;
        if (silt_roster_add(roster, row.row.name, &stream) != SILT_OK)
            return silt_fail(err, SILT_ERR_MEMORY, NULL);
    }
}

static bool next_pattern(struct silt_roster *roster)
{
    while (roster->pattern < roster->config->stream_count &&
           !roster->config->streams[roster->pattern].is_pattern)
        roster->pattern++;
    return roster->pattern < roster->config->stream_count;
}

bool silt_roster_has_patterns(const struct silt_roster *roster)
{
    for (size_t i = 0; i < roster->config->stream_count; i++)
        if (roster->config->streams[i].is_pattern) return true;
    return false;
}

static enum silt_status take_keys(struct silt_roster *roster, size_t list, struct silt_err *err)
{
    const struct silt_reply *reply = roster->reply;
    struct silt_roster_stream *stream;
    size_t node = list + 1;
    for (uint32_t i = 0; i < reply->nodes[list].size; i++, node = silt_reply_skip(reply, node))
        if (silt_reply_is_text(reply, node) &&
            silt_roster_add(roster, silt_reply_text(reply, node), &stream) != SILT_OK)
            return silt_fail(err, SILT_ERR_MEMORY, NULL);
    return SILT_OK;
}

static enum silt_status scan_once(struct silt_roster *roster, struct silt_conn *conn,
                                  struct silt_err *err)
{
    struct silt_reply *reply = roster->reply;
    const struct silt_view words[] = {
        silt_view_str("SCAN"),
        roster->cursor.len ? silt_buf_view(&roster->cursor) : silt_view_str("0"),
        silt_view_str("MATCH"),
        roster->config->streams[roster->pattern].match,
        silt_view_str("COUNT"),
        silt_view_str(SCAN_COUNT),
        silt_view_str("TYPE"),
        silt_view_str("stream")};
    enum silt_status status =
        silt_conn_call(conn, words, sizeof words / sizeof words[0], reply, err);
    if (status != SILT_OK) return status;
    if (reply->node_count < 3 || reply->nodes[0].type != SILT_NODE_ARRAY ||
        reply->nodes[0].size != 2 || !silt_reply_is_text(reply, 1) ||
        reply->nodes[2].type != SILT_NODE_ARRAY)
        return silt_conn_nonsense(conn, err, "SCAN: a cursor and a list of keys");
    struct silt_view cursor = silt_reply_text(reply, 1);
    silt_buf_clear(&roster->cursor);
    if (!silt_view_equal(cursor, silt_view_str("0")) &&
        silt_buf_put(&roster->cursor, cursor.at, cursor.len) != SILT_OK)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    return take_keys(roster, 2, err);
}

enum silt_status silt_roster_scan(struct silt_roster *roster, struct silt_conn *conn,
                                  unsigned calls, struct silt_err *err)
{
    for (unsigned i = 0; i < calls; i++) {
        if (!next_pattern(roster)) break;
        enum silt_status status = scan_once(roster, conn, err);
        if (status != SILT_OK) return status;
        if (roster->cursor.len == 0) roster->pattern++; /* this pattern's sweep is through */
    }
    if (next_pattern(roster)) return SILT_OK;
    roster->pattern = 0;
    return SILT_END;
}

void silt_roster_reconfigure(struct silt_roster *roster, const struct silt_config *config)
{
    size_t kept = 0;
    roster->config = config;
    roster->pattern = 0;
    silt_buf_clear(&roster->cursor);
    for (size_t i = 0; i < roster->count; i++) {
        struct silt_roster_stream *stream = roster->streams[i];
        if (!settle_config(roster, stream)) {
            free_stream(stream);
            continue;
        }
        if (stream->other) {
            silt_work_free(stream->work);
            stream->work = NULL;
        }
        if (stream->work) stream->work->config = stream->config;
        stream->due_ms = 0;
        stream->interval_ms = 0;
        roster->streams[kept++] = stream;
    }
    roster->count = kept;
    if (roster->slot_count) fill_slots(roster);
}

void silt_roster_drop_works(struct silt_roster *roster)
{
    for (size_t i = 0; i < roster->count; i++) {
        silt_work_free(roster->streams[i]->work);
        roster->streams[i]->work = NULL;
    }
}
