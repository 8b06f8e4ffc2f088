/* The crossing of the seam, protocol.md §5: a page, after it a fresh snapshot, and the judgement whether the two belong together. Promise 4 (one cursor) hangs
 * on that order: what left the live stream before the page was taken is in the archive that is looked at after it. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cursor_priv.h"
#include "faultpoint.h"

#define WAIT_SLICE_MS \
    1000u /* `cancelled` is asked at least this often by us, and every 100 ms by the connection */
#define NAP_MS 100u
#define JUDGE_ATTEMPTS 3

static enum silt_status about(const struct silt_cursor *cursor, struct silt_err *err,
                              enum silt_status status)
{
    if (status < 0) silt_err_set_stream(err, cursor->key.at, cursor->key.len);
    return status;
}

/* ---- late entries ---- */

/* Was it given out of the segment in hand? That was loaded after the numbers had been looked at, so it may hold what came between. */
static bool was_given(const struct silt_cursor *cursor, struct silt_wire_id id)
{
    const struct silt_archive_source *source = cursor->source;
    if (!cursor->has_copy || source->life != cursor->at.life) return false;
    if (cursor->reverse ? !silt_wire_id_less(id, cursor->copy_from)
                        : !silt_wire_id_less(cursor->copy_from, id))
        return false;
    size_t index = silt_segment_find(source->segment, id);
    return index < silt_segment_count(source->segment) &&
           silt_wire_id_equal(silt_segment_id(source->segment, index), id);
}

/* Entries that came into the archive at a place that was passed already; those ahead are met on the way. */
static enum silt_status look_for_late(struct silt_cursor *cursor, struct silt_err *err)
{
    struct silt_item item = {.kind = SILT_ITEM_LATE, .count_is_exact = true};
    uint64_t number = cursor->late_due ? cursor->late_told : cursor->at.late;
    if (cursor->late_due) item = cursor->late;
    struct silt_late_row row;
    enum silt_status status;
    while ((status = silt_store_late_after(cursor->history->store, cursor->at.life, number, &row,
                                           err)) == SILT_OK) {
        if (row.number <= number) return silt_fail(err, SILT_ERR_CORRUPT, "late numbers go back");
        number = row.number;
        bool behind = cursor->reverse
                          ? !cursor->at.above_all && !silt_wire_id_less(row.id, cursor->at.id)
                          : !silt_wire_id_less(cursor->at.id, row.id);
        if (!behind || was_given(cursor, row.id)) continue;
        item.first = item.count == 0 ? row.id : silt_wire_id_lower(item.first, row.id);
        item.last = item.count == 0 ? row.id : silt_wire_id_higher(item.last, row.id);
        item.count++;
    }
    if (status != SILT_END) return status;
    item.life = cursor->at.life;
    cursor->late = item;
    cursor->late_told = number;
    cursor->late_due = item.count > 0;
    if (!cursor->late_due) cursor->at.late = number;
    return SILT_OK;
}

static enum silt_status late_entries(struct silt_cursor *cursor, bool first, struct silt_err *err)
{
    uint64_t counter = cursor->stream.row.late_entries;
    if (counter == cursor->late_counter || cursor->late_walk) return SILT_OK;
    enum silt_status status = first && !cursor->resumed
                                  ? silt_store_late_highest(cursor->history->store, cursor->at.life,
                                                            &cursor->at.late, err)
                                  : look_for_late(cursor, err);
    if (status == SILT_OK) cursor->late_counter = counter;
    return status;
}

enum silt_status silt_cursor_check_late(struct silt_cursor *cursor, struct silt_err *err)
{
    if (!cursor->known || cursor->older_life || cursor->late_due) return SILT_OK;
    enum silt_status status = silt_store_stream_number(
        cursor->history->store, cursor->stream.row.number, &cursor->glance, err);
    if (status != SILT_OK) return about(cursor, err, status);
    uint64_t counter = cursor->glance.row.late_entries;
    if (counter == cursor->late_counter) return SILT_OK;
    status = look_for_late(cursor, err);
    if (status == SILT_OK) cursor->late_counter = counter;
    return about(cursor, err, status);
}

/* ---- snapshot ---- */

/* The stream's row is there for the first time. */
static void meet(struct silt_cursor *cursor)
{
    const struct silt_stream_row *row = &cursor->stream.row;
    cursor->known = true;
    if (cursor->at.life == 0) cursor->at.life = row->life;
    if (cursor->ids == SILT_IDS_LEARN) cursor->ns = row->ns;
}

static enum silt_status forgotten(const struct silt_cursor *cursor, struct silt_err *err)
{
    silt_fail(err, SILT_ERR_OLDER_COPY,
              "the archive no longer knows the stream: its files were replaced by older ones");
    return about(cursor, err, SILT_ERR_OLDER_COPY);
}

static enum silt_status life_changed(struct silt_cursor *cursor, struct silt_err *err)
{
    cursor->at.changed_to = cursor->stream.row.life;
    silt_fail(err, SILT_ERR_LIFE_CHANGED,
              "the stream's life changed: this cursor reads life %llu, the newest is %llu",
              (unsigned long long)cursor->at.life, (unsigned long long)cursor->at.changed_to);
    silt_hint(err, "read the new life from its fork, or the old one by its number");
    return about(cursor, err, SILT_ERR_LIFE_CHANGED);
}

enum silt_status silt_cursor_snapshot(struct silt_cursor *cursor, struct silt_err *err)
{
    struct silt_store *store = cursor->history->store;
    if (store == NULL || cursor->older_life) return SILT_OK;
    const struct silt_stream_row *row = &cursor->stream.row;
    struct silt_wire_id watermark = cursor->watermark;
    uint64_t gap_entries = row->gap_entries, incarnation = row->incarnation;
    enum silt_verdict verdict = row->verdict;
    bool first = !cursor->known;
    enum silt_status status =
        silt_store_stream(store, silt_buf_view(&cursor->key), &cursor->stream, err);
    if (status == SILT_ERR_UNKNOWN_STREAM) return first ? SILT_OK : forgotten(cursor, err);
    if (status != SILT_OK) return about(cursor, err, status);
    if (first) meet(cursor);
    if (row->life != cursor->at.life) return life_changed(cursor, err);
    cursor->watermark = row->folded_any ? row->watermark : SILT_WIRE_ID_MIN;
    cursor->held = row->verdict == SILT_VERDICT_AUDIT_PENDING;
    if (first || row->gap_entries != gap_entries || row->incarnation != incarnation ||
        row->verdict != verdict || !silt_wire_id_equal(watermark, cursor->watermark)) {
        status = silt_cursor_load_gaps(cursor, err);
        if (status != SILT_OK) return about(cursor, err, status);
    }
    return about(cursor, err, late_entries(cursor, first, err));
}

/* ---- the judgement ---- */

static enum silt_status older_copy(const struct silt_cursor *cursor, struct silt_err *err,
                                   const struct silt_look_group *group, const char *why)
{
    char at[SILT_WIRE_ID_TEXT], name[SILT_MARKER_TEXT];
    silt_wire_id_format(group->last_delivered, at);
    silt_escape(group->name, name, sizeof name);
    silt_fail(err, SILT_ERR_OLDER_COPY,
              "this is an older copy of the archive: its marker %s at %s %s", name, at, why);
    silt_hint(err, "read with the archive that is in use; silt adopt makes this one the archive");
    return about(cursor, err, SILT_ERR_OLDER_COPY);
}

static enum silt_status judge_marker(struct silt_cursor *cursor,
                                     const struct silt_look_group *group,
                                     const struct silt_marker *marker, struct silt_err *err)
{
    if (!cursor->known)
        return older_copy(cursor, err, group, "is of a stream that it does not know");
    /* After a fork the marker stays where the life before had it, until the next cycle moves it. */
    if (silt_wire_id_less(silt_wire_id_higher(cursor->watermark, cursor->stream.row.top_watermark),
                          group->last_delivered))
        return older_copy(cursor, err, group, "stands above its watermark");
    if (marker->epoch > silt_stream_epoch(&cursor->stream.row, cursor->history->meta.epoch))
        return older_copy(cursor, err, group, "is of a higher epoch");
    if (marker->number != cursor->stream.row.marker_number)
        return older_copy(cursor, err, group, "has another number");
    return SILT_OK;
}

static enum silt_status marker_absent(struct silt_cursor *cursor, struct silt_err *err)
{
    const struct silt_look *look = &cursor->page.look;
    if (look->groups_denied) {
        silt_fail(err, SILT_ERR_SERVER_DENIED,
                  "the server denies XINFO GROUPS, and with it the sight of the archive's marker");
        silt_hint(err,
                  "a reader needs xrange, xrevrange, xread and xinfo on the key, multi and exec");
        return about(cursor, err, SILT_ERR_SERVER_DENIED);
    }
    const char *what =
        look->state == SILT_LOOK_GONE
            ? "the key is gone from the server"
            : "the archive's marker is gone from the stream: it was made anew, or the "
              "marker was removed by hand";
    silt_fail(err, SILT_ERR_LIFE_CHANGED, "the stream's life may have changed: %s", what);
    silt_hint(
        err,
        "silt status says what the archiver concludes; silt read --archive-only gives what is archived");
    return about(cursor, err, SILT_ERR_LIFE_CHANGED);
}

/* The server's newest entry lies below what is known to exist: a replica that is behind, or a server that was set back. That is not an end. */
static enum silt_status set_back(struct silt_cursor *cursor, struct silt_wire_id known,
                                 const char *what, struct silt_err *err)
{
    char last[SILT_WIRE_ID_TEXT], top[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(cursor->page.look.facts.last, last);
    silt_wire_id_format(known, top);
    silt_fail(
        err, SILT_ERR_STALE,
        "the server's newest entry %s lies below %s %s: a replica that is behind, or a server that was set back",
        last, what, top);
    silt_hint(err,
              "try again, or read from the primary; silt status tells when continuity is in doubt");
    return about(cursor, err, SILT_ERR_STALE);
}

/* *ret_present: a marker of this archive stands in the stream, and it is no newer than what was read. */
static enum silt_status judge_markers(struct silt_cursor *cursor, bool *ret_present,
                                      struct silt_err *err)
{
    const struct silt_look *look = &cursor->page.look;
    const struct silt_stream_row *row = &cursor->stream.row;
    *ret_present = false;
    for (size_t i = 0; cursor->history->store != NULL && i < look->group_count; i++) {
        struct silt_marker marker;
        if (!look->groups[i].is_silt || !silt_marker_parse(look->groups[i].name, &marker) ||
            strcmp(marker.uuid, cursor->history->meta.uuid) != 0)
            continue;
        /* An adoption commits its epoch first and replaces the marker after: this one is on its way out. */
        if (cursor->known && marker.epoch < silt_stream_epoch(row, cursor->history->meta.epoch))
            continue;
        enum silt_status status = judge_marker(cursor, &look->groups[i], &marker, err);
        if (status != SILT_OK) return status;
        *ret_present = true;
    }
    if (*ret_present) cursor->at.saw_marker = true;
    return SILT_OK;
}

/* A position that saw a marker demands one even where nothing was folded: the object may be another one. A stream without one (claim: key, off) shows none, and one that was let go has none and is read on: what
 * is above W is what lives. */
static bool demands_marker(const struct silt_cursor *cursor)
{
    const struct silt_stream_row *row = &cursor->stream.row;
    if (!cursor->known || row->verdict == SILT_VERDICT_RELEASED) return false;
    return cursor->at.saw_marker ||
           (row->folded_any && row->marker_number != 0 && row->marker_seen);
}

static enum silt_status judge(struct silt_cursor *cursor, struct silt_wire_id watermark_before,
                              struct silt_err *err)
{
    const struct silt_look *look = &cursor->page.look;
    const struct silt_stream_row *row = &cursor->stream.row;
    bool present;
    enum silt_status status = judge_markers(cursor, &present, err);
    if (status != SILT_OK) return status;
    if (cursor->held) return SILT_OK; /* no live part is given, so nothing of it needs judging */
    if (!present && demands_marker(cursor)) return marker_absent(cursor, err);
    if (look->state == SILT_LOOK_GONE && cursor->at.has_base &&
        !silt_wire_id_is_zero(cursor->at.base))
        return marker_absent(cursor, err);
    cursor->behind = false;
    if (look->state == SILT_LOOK_STREAM) {
        if (cursor->at.has_base && silt_wire_id_less(look->facts.last, cursor->at.base))
            return set_back(cursor, cursor->at.base, "the place", err);
        /* After an audit C may lie below W: then the archiver has seen the server set back, and it need not reach W. */
        struct silt_wire_id known =
            cursor->known && row->folded_any && silt_wire_id_less(row->custody, row->watermark)
                ? silt_wire_id_lower(watermark_before, row->custody)
                : watermark_before;
        if (silt_wire_id_less(look->facts.last, known)) {
            cursor->behind = true;
            return set_back(cursor, known, "the watermark", err);
        }
    }
    return SILT_OK;
}

/* ---- the page ---- */

static enum silt_status request(struct silt_cursor *cursor, const struct silt_page_request *request,
                                struct silt_err *err)
{
    struct silt_conn *conn = cursor->history->conn;
    cursor->history->cancelled = cursor->cancelled;
    cursor->history->cancelled_ctx = cursor->cancelled_ctx;
    enum silt_status status;
    bool again =
        silt_conn_is_open(conn); /* a link that lay idle may have been closed by the server */
    do {
        status = silt_conn_open(conn, err);
        if (status == SILT_OK) status = silt_page_append(conn, request, err);
        if (status == SILT_OK) status = silt_page_receive(conn, request, &cursor->page, err);
        if (status != SILT_ERR_SERVER_AWAY) break;
        silt_conn_close(conn);
        if (!again) break;
        again = false;
    } while (true);
    cursor->history->cancelled = NULL;
    return about(cursor, err, status);
}

static bool may_go_without(const struct silt_cursor *cursor, enum silt_status status)
{
    return cursor->history->when_away == SILT_AWAY_ARCHIVE_ONLY && cursor->known &&
           (status == SILT_ERR_SERVER_AWAY || status == SILT_ERR_SERVER_TIMEOUT ||
            status == SILT_ERR_SERVER_BUSY);
}

static enum silt_status wrong_type(struct silt_cursor *cursor, struct silt_err *err)
{
    silt_fail(err, SILT_ERR_WRONG_TYPE, "the key holds another type than a stream");
    return about(cursor, err, SILT_ERR_WRONG_TYPE);
}

enum silt_status silt_cursor_fetch(struct silt_cursor *cursor, struct silt_range range,
                                   uint32_t count, struct silt_err *err)
{
    struct silt_page_request want = {.key = silt_buf_view(&cursor->key),
                                     .from = range.from,
                                     .to = range.to,
                                     .count = count,
                                     .reverse = cursor->reverse,
                                     .what = SILT_LOOK_READER};
    enum silt_status status = SILT_OK;
    for (int attempt = 0; attempt < JUDGE_ATTEMPTS; attempt++) {
        struct silt_wire_id before = cursor->watermark;
        struct silt_err local;
        status = request(cursor, &want, err == NULL ? &local : err);
        if (status != SILT_OK) {
            if (!may_go_without(cursor, status)) return status;
            cursor->away = err == NULL ? local : *err;
            cursor->archive_only = true;
            return silt_cursor_snapshot(cursor, err);
        }
        cursor->archive_only = false;
        if (cursor->page.look.state == SILT_LOOK_WRONG_TYPE) return wrong_type(cursor, err);
        (void)SILT_FAULTPOINT("reader-page");
        /* Promise 4: the snapshot comes after the page. The other way round an entry that was folded and trimmed between the two is in neither. */
        status = silt_cursor_snapshot(cursor, err);
        if (status != SILT_OK) return status;
        status = judge(cursor, before, err);
        /* The page may be from before a first fold, a new marker or an adoption that the snapshot shows: only a second page is proof. */
        if (status != SILT_ERR_OLDER_COPY && status != SILT_ERR_LIFE_CHANGED) return status;
    }
    return status;
}

/* ---- waiting ---- */

static bool denied(enum silt_status status)
{
    return status == SILT_ERR_SERVER_DENIED || status == SILT_ERR_SERVER_REFUSED;
}

static enum silt_status block(struct silt_cursor *cursor, uint64_t ms, struct silt_err *err)
{
    struct silt_history *history = cursor->history;
    char after[SILT_WIRE_ID_TEXT], wait[24];
    silt_wire_id_format(cursor->at.id, after);
    snprintf(wait, sizeof wait, "%llu", (unsigned long long)ms);
    struct silt_view argv[] = {silt_view_str("XREAD"),      silt_view_str("COUNT"),
                               silt_view_str("1"),          silt_view_str("BLOCK"),
                               silt_view_str(wait),         silt_view_str("STREAMS"),
                               silt_buf_view(&cursor->key), silt_view_str(after)};
    history->cancelled = cursor->cancelled;
    history->cancelled_ctx = cursor->cancelled_ctx;
    enum silt_status status =
        silt_conn_call(history->conn, argv, sizeof argv / sizeof *argv, &history->scratch, err);
    history->cancelled = NULL;
    return status;
}

enum silt_status silt_cursor_wait(struct silt_cursor *cursor, struct silt_err *err)
{
    int64_t now = silt_now_ms();
    uint64_t slice = silt_min_u64(WAIT_SLICE_MS, cursor->history->block_ms);
    if (cursor->cancelled != NULL && cursor->cancelled(cursor->cancelled_ctx))
        return silt_fail(err, SILT_ERR_CANCELLED, NULL);
    if (cursor->deadline_ms != 0) {
        if (now >= cursor->deadline_ms) return SILT_END;
        slice = silt_min_u64(slice, (uint64_t)(cursor->deadline_ms - now));
    }
    /* XREAD would return at once where entries stand above the place that must not be given yet. */
    if (cursor->history->conn != NULL && !cursor->archive_only && !cursor->held &&
        !cursor->behind && !cursor->wait_by_polling) {
        enum silt_status status = block(cursor, slice, err);
        if (status == SILT_ERR_CANCELLED || status == SILT_ERR_MEMORY) return status;
        if (status == SILT_OK)
            return SILT_OK; /* its entry is not used: the next page brings it, with its look */
        if (denied(status)) cursor->wait_by_polling = true;
        /* Any other trouble shows again with the next page, which knows what to do about it. */
    }
    poll(NULL, 0, (int)silt_min_u64(slice, NAP_MS));
    return SILT_OK;
}
