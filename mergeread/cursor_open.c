/* Opening a cursor: everything that can be refused is refused here, before anything is sent (contract scenario 26); then, only for a stream that the archive does
 * not know, the server is asked whether the key exists. */
#include <string.h>

#include "alloc.h"
#include "bound.h"
#include "cursor_priv.h"

#define PAGE_ENTRIES_DEFAULT 1000u
#define PAGE_ENTRIES_MAX 1000000u
#define HASH_SEED 0x73696c746b657973ULL /* "siltkeys" */

static enum silt_status check_options(const struct silt_cursor_options *options,
                                      struct silt_err *err)
{
    if (options->key == NULL) return silt_fail(err, SILT_ERR_USAGE, "a cursor needs a key");
    if (options->follow && options->reverse)
        return silt_fail(err, SILT_ERR_USAGE, "follow and reverse exclude each other");
    if (options->follow && options->to != NULL)
        return silt_fail(err, SILT_ERR_USAGE, "follow has no end: leave out \"to\"");
    if (options->late && (options->follow || options->reverse))
        return silt_fail(err, SILT_ERR_USAGE,
                         "late entries are given in the order in which they came: not with %s",
                         options->follow ? "follow" : "reverse");
    if (options->page_entries > PAGE_ENTRIES_MAX)
        return silt_fail(err, SILT_ERR_USAGE, "a page has at most %u entries", PAGE_ENTRIES_MAX);
    if (options->ids != SILT_IDS_LEARN && options->ids != SILT_IDS_WIRE &&
        options->ids != SILT_IDS_BRANDED)
        return silt_fail(err, SILT_ERR_USAGE, "ids is neither learn, wire nor branded");
    return SILT_OK;
}

static enum silt_status take_options(struct silt_cursor *cursor,
                                     const struct silt_cursor_options *options,
                                     struct silt_err *err)
{
    size_t len = options->key_len != 0 ? options->key_len : strlen(options->key);
    if (silt_buf_put(&cursor->key, options->key, len) != SILT_OK)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    cursor->ids = options->ids;
    cursor->reverse = options->reverse;
    cursor->follow = options->follow;
    cursor->follow_wait_ms = silt_min_u64(options->follow_wait_ms, INT32_MAX);
    cursor->skip_damaged = options->skip_damaged;
    cursor->limited = options->limit != 0;
    cursor->limit_left = options->limit;
    cursor->page_entries =
        options->page_entries != 0 ? options->page_entries : PAGE_ENTRIES_DEFAULT;
    cursor->cancelled = options->cancelled;
    cursor->cancelled_ctx = options->cancelled_ctx;
    cursor->late_walk = cursor->at.late_walk = cursor->at.above_all = options->late;
    cursor->archive_only = cursor->history->conn == NULL || options->late;
    cursor->at.reverse = options->reverse;
    cursor->at.key_hash = silt_checksum(silt_buf_view(&cursor->key), HASH_SEED);
    cursor->at.archive_hash = cursor->history->archive_hash;
    if (options->ids != SILT_IDS_BRANDED) return SILT_OK;
    return silt_namespace_parse(silt_view(options->ns, strnlen(options->ns, sizeof options->ns)),
                                &cursor->ns, err);
}

/* The row, without which bounds in branded ids could not be checked against the stream's own namespace. */
static enum silt_status learn(struct silt_cursor *cursor, struct silt_err *err)
{
    struct silt_store *store = cursor->history->store;
    if (store == NULL) return SILT_OK;
    enum silt_status status =
        silt_store_stream(store, silt_buf_view(&cursor->key), &cursor->stream, err);
    if (status == SILT_ERR_UNKNOWN_STREAM) return SILT_OK;
    if (status != SILT_OK) return status;
    struct silt_namespace kept = cursor->stream.row.ns;
    if (cursor->ids == SILT_IDS_LEARN) cursor->ns = kept;
    if (cursor->ids == SILT_IDS_BRANDED && !silt_namespace_equal(kept, cursor->ns))
        return silt_fail(err, SILT_ERR_USAGE,
                         "the archive keeps the stream as %s, not as branded %s",
                         silt_namespace_is_none(kept) ? "plain" : kept.letters, cursor->ns.letters);
    return SILT_OK;
}

static enum silt_status bounds(struct silt_cursor *cursor,
                               const struct silt_cursor_options *options, struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    cursor->range = SILT_RANGE_ALL;
    if (options->from != NULL)
        status = silt_bound_parse(silt_view_str(options->from), SILT_EDGE_FROM, cursor->ns,
                                  &cursor->range.from, err);
    if (status == SILT_OK && options->to != NULL)
        status = silt_bound_parse(silt_view_str(options->to), SILT_EDGE_TO, cursor->ns,
                                  &cursor->range.to, err);
    if (status == SILT_OK) status = silt_range_check(cursor->range, err);
    if (status != SILT_OK) return status;
    if (cursor->late_walk) return SILT_OK; /* only a position says what lay behind */
    /* The place is exclusive: all below `from`, or all above `to`, counts as passed. */
    if (cursor->reverse)
        cursor->at.above_all = !silt_wire_id_next(cursor->range.to, &cursor->at.id);
    else
        (void)silt_wire_id_prev(cursor->range.from, &cursor->at.id);
    return SILT_OK;
}

static enum silt_status another(struct silt_err *err, const char *what)
{
    silt_fail(err, SILT_ERR_POSITION, "the position belongs to another %s", what);
    silt_hint(err, "a position is good for the stream and the archive that it was taken from");
    return SILT_ERR_POSITION;
}

/* What lay behind the place when the position was taken; a backward walk that had not begun had passed nothing. */
static void resume_late(struct silt_position *at, const struct silt_position *old)
{
    at->reverse = old->reverse;
    at->id = old->id;
    at->above_all = old->above_all;
    if (!old->late_walk && old->reverse && old->above_all) {
        at->id = SILT_WIRE_ID_MAX;
        at->above_all = false;
    }
}

/* Goes on behind the position, unless the bounds begin later still. */
static enum silt_status resume(struct silt_cursor *cursor, const char *text, struct silt_err *err)
{
    struct silt_position old, *at = &cursor->at;
    enum silt_status status = silt_position_parse(silt_view_str(text), &old, err);
    if (status != SILT_OK) return status;
    if (old.key_hash != at->key_hash) return another(err, "stream");
    if (old.archive_hash != at->archive_hash && old.archive_hash != 0)
        return another(err, "archive");
    if (old.late_walk && !cursor->late_walk) {
        silt_fail(err, SILT_ERR_POSITION, "the position is one of a walk over late entries alone");
        silt_hint(err, "it goes on in such a walk: silt read --late");
        return SILT_ERR_POSITION;
    }
    cursor->resumed = true;
    at->life = old.life;
    at->changed_to = old.changed_to;
    at->late = old.late;
    at->saw_marker = old.saw_marker;
    if (cursor->late_walk) {
        resume_late(at, &old);
        return SILT_OK;
    }
    bool later;
    if (cursor->reverse)
        later = !old.above_all && (at->above_all || !silt_wire_id_less(at->id, old.id));
    else
        later = old.above_all || !silt_wire_id_less(old.id, at->id);
    if (!later)
        return SILT_OK; /* what lies between is not given: nothing can be counted across it */
    at->id = old.above_all ? SILT_WIRE_ID_MAX : old.id;
    at->above_all = false;
    if (old.reverse != cursor->reverse) return SILT_OK;
    at->gaps_given = old.gaps_given;
    at->has_base = old.has_base;
    at->base = old.base;
    at->accounted = old.accounted;
    at->fingerprint = old.fingerprint;
    return SILT_OK;
}

/* Is it one of the lives of this stream? */
static enum silt_status find_life(struct silt_cursor *cursor, uint64_t life, struct silt_err *err)
{
    struct silt_store *store = cursor->history->store;
    struct silt_fork_row fork = {0};
    enum silt_status status = SILT_END;
    if (store != NULL && cursor->stream.row.number != 0)
        for (uint64_t after = 0; (status = silt_store_fork_after(store, cursor->stream.row.number,
                                                                 after, &fork, err)) == SILT_OK;
             after = fork.life)
            if (fork.life == life || fork.parent == life) return SILT_OK;
    if (status != SILT_END) return status;
    silt_fail(err, SILT_ERR_UNKNOWN_STREAM, "the stream has no life %llu",
              (unsigned long long)life);
    silt_hint(err, "silt inspect --lives lists them");
    return SILT_ERR_UNKNOWN_STREAM;
}

static enum silt_status choose_life(struct silt_cursor *cursor, uint64_t life, struct silt_err *err)
{
    if (life == 0 || life == cursor->stream.row.life) return SILT_OK;
    enum silt_status status = find_life(cursor, life, err);
    if (status != SILT_OK) return status;
    if (cursor->at.life != 0 && cursor->at.life != life)
        return silt_fail(err, SILT_ERR_POSITION, "the position is of life %llu, not of life %llu",
                         (unsigned long long)cursor->at.life, (unsigned long long)life);
    cursor->at.life = life;
    cursor->at.changed_to = 0;
    cursor->known = true;
    cursor->older_life = true;
    cursor->archive_only = true;
    cursor->watermark = SILT_WIRE_ID_MAX; /* it is closed: all of it is in the archive */
    return silt_cursor_load_gaps(cursor, err);
}

/* Only the server can say whether a stream that the archive does not know exists. */
static enum silt_status ask_server(struct silt_cursor *cursor, struct silt_err *err)
{
    struct silt_history *history = cursor->history;
    enum silt_look_state state = SILT_LOOK_GONE;
    if (history->conn != NULL) {
        history->cancelled = cursor->cancelled;
        history->cancelled_ctx = cursor->cancelled_ctx;
        enum silt_status status = silt_look_call(history->conn, silt_buf_view(&cursor->key),
                                                 SILT_LOOK_READER, &cursor->page.look, err);
        if (status == SILT_ERR_SERVER_AWAY) /* perhaps only the idle link was closed */
            status = silt_look_call(history->conn, silt_buf_view(&cursor->key), SILT_LOOK_READER,
                                    &cursor->page.look, err);
        history->cancelled = NULL;
        if (status != SILT_OK) return status;
        state = cursor->page.look.state;
    }
    if (state == SILT_LOOK_STREAM) return SILT_OK;
    char key[64];
    silt_escape(silt_buf_view(&cursor->key), key, sizeof key);
    if (state == SILT_LOOK_WRONG_TYPE)
        return silt_fail(err, SILT_ERR_WRONG_TYPE, "the key %s holds another type than a stream",
                         key);
    return silt_fail(err, SILT_ERR_UNKNOWN_STREAM, "no stream %s: %s", key,
                     history->store == NULL  ? "the server has no such key"
                     : history->conn == NULL ? "the archive does not know it"
                                             : "neither the archive nor the server knows it");
}

static enum silt_status open_cursor(struct silt_cursor *cursor,
                                    const struct silt_cursor_options *options, struct silt_err *err)
{
    enum silt_status status = take_options(cursor, options, err);
    if (status == SILT_OK) status = learn(cursor, err);
    if (status == SILT_OK) status = bounds(cursor, options, err);
    if (status == SILT_OK && options->resume != NULL) status = resume(cursor, options->resume, err);
    if (status == SILT_OK && cursor->history->store != NULL) {
        status = silt_archive_source_new(cursor->history->store, &cursor->source);
        if (status != SILT_OK) silt_fail(err, status, NULL);
    }
    if (status == SILT_OK) status = choose_life(cursor, options->life, err);
    if (status == SILT_OK) status = silt_cursor_snapshot(cursor, err);
    if (cursor->at.late < options->late_after && cursor->late_walk)
        cursor->at.late = options->late_after;
    if (cursor->late_walk) cursor->late_told = cursor->at.late;
    if (status == SILT_OK && !cursor->known) status = ask_server(cursor, err);
    return status;
}

enum silt_status silt_cursor_open(struct silt_history *history,
                                  const struct silt_cursor_options *options,
                                  struct silt_cursor **ret, struct silt_err *err)
{
    enum silt_status status = check_options(options, err);
    if (status != SILT_OK) return status;
    struct silt_cursor *cursor = silt_calloc(1, sizeof *cursor);
    if (cursor == NULL) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    cursor->history = history;
    status = open_cursor(cursor, options, err);
    if (status != SILT_OK) {
        silt_err_set_stream(err, cursor->key.at, cursor->key.len);
        silt_cursor_close(cursor);
        return status;
    }
    *ret = cursor;
    return SILT_OK;
}
