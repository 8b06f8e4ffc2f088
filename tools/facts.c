/* Facts of a stream for `silt status`. Must not know how they are shown. */
#include "facts.h"

#include "look.h"

static void set(char *ret, size_t size, const char *text)
{
    snprintf(ret, size, "%s", text);
}
#define SET(field, text) set(field, sizeof(field), text)

static void set_kind(struct silt_seen *seen, struct silt_namespace ns)
{
    if (silt_namespace_is_none(ns))
        SET(seen->kind, "plain");
    else
        snprintf(seen->kind, sizeof seen->kind, "branded %s", ns.letters);
}

struct progress {
    const char *cause;
    bool opened;
    char position[SILT_WIRE_ID_TEXT], through[SILT_WIRE_ID_TEXT];
    uint64_t equal, absent, conflict;
};

static void set_audit(struct silt_seen *seen, const struct progress *p)
{
    if (!p->opened)
        snprintf(seen->audit, sizeof seen->audit, "%s; not begun", p->cause);
    else
        snprintf(seen->audit, sizeof seen->audit,
                 "%s; compared up to %s of %s: %llu as archived, %llu late, %llu in conflict",
                 p->cause, p->position, p->through, (unsigned long long)p->equal,
                 (unsigned long long)p->absent, (unsigned long long)p->conflict);
}

/* ---- from siltd ---- */

static uint64_t number(const struct silt_json *stream, const char *name)
{
    uint64_t value = SILT_UNKNOWN;
    silt_json_get_u64(silt_json_get(stream, name), &value);
    return value;
}

static const char *text(const struct silt_json *stream, const char *name)
{
    return silt_json_get_str(silt_json_get(stream, name));
}

static void audit_of_json(struct silt_seen *seen, const struct silt_json *audit)
{
    struct progress p = {.cause = text(audit, "cause"),
                         .equal = number(audit, "equal"),
                         .absent = number(audit, "absent"),
                         .conflict = number(audit, "conflict")};
    if (silt_json_kind(audit) != SILT_JSON_OBJECT) return;
    p.opened = silt_json_is_true(silt_json_get(audit, "opened"));
    SET(p.position, text(silt_json_get(audit, "position"), "id"));
    SET(p.through, text(silt_json_get(audit, "through"), "id"));
    set_audit(seen, &p);
}

void silt_seen_of_json(struct silt_seen *seen, const struct silt_json *stream)
{
    struct silt_buf mem = {0};
    struct silt_view key = {0};
    const struct silt_json *watermark = silt_json_get(stream, "watermark");
    const struct silt_json *error = silt_json_get(stream, "error");
    struct silt_namespace ns = {0};
    *seen = (struct silt_seen){0};
    if (silt_json_get_bytes(silt_json_get(stream, "key"), &mem, &key))
        silt_escape(key, seen->key, sizeof seen->key);
    silt_buf_release(&mem);
    snprintf(ns.letters, sizeof ns.letters, "%s", text(stream, "ns"));
    set_kind(seen, ns);
    SET(seen->state, text(stream, "state"));
    SET(seen->watermark,
        *text(watermark, "branded") ? text(watermark, "branded") : text(watermark, "id"));
    SET(seen->watermark_instant, text(watermark, "instant"));
    SET(seen->held_by, text(stream, "held_by"));
    SET(seen->held_name, text(stream, "held_name"));
    SET(seen->verdict, text(stream, "verdict"));
    SET(seen->reason, text(stream, "reason"));
    SET(seen->error, text(error, "sentence"));
    SET(seen->hint, text(error, "hint"));
    SET(seen->folded_at, text(stream, "folded_at"));
    SET(seen->trimmed_at, text(stream, "trimmed_at"));
    seen->life = number(stream, "life");
    seen->live_entries = number(stream, "live_entries");
    seen->lag_entries = number(stream, "lag_entries");
    seen->lag_ms = number(stream, "lag_ms");
    seen->looked_ms_ago = number(stream, "looked_ms_ago");
    seen->next_look_ms = number(stream, "next_look_ms");
    seen->folded_entries = number(stream, "folded_entries");
    seen->trimmed_entries = number(stream, "trimmed_entries");
    seen->foreign_entries = number(stream, "foreign_entries");
    seen->gap_entries = number(stream, "gap_entries");
    seen->late_entries = number(stream, "late_entries");
    seen->lives = SILT_UNKNOWN;
    seen->epoch = number(stream, "epoch");
    if (seen->epoch == SILT_UNKNOWN) seen->epoch = 0;
    audit_of_json(seen, silt_json_get(stream, "audit"));
}

/* ---- from archive and server ---- */

/* The group whose first wanted entry is lowest, where that lies at or below C: it holds the floor, not the archive. */
static enum silt_status find_holder(struct silt_seen *seen, const struct silt_stream_row *row,
                                    const struct silt_look *look, struct silt_conn *conn,
                                    struct silt_err *err)
{
    struct silt_reply scratch = {0};
    struct silt_wire_id floor = row->custody;
    enum silt_status status = SILT_OK;
    SET(seen->held_by, "archive");
    if (look->groups_denied) SET(seen->held_name, "groups cannot be read");
    for (size_t i = 0; i < look->group_count && status >= 0; i++) {
        const struct silt_look_group *group = &look->groups[i];
        struct silt_wire_id wants;
        bool pending = false;
        if (group->is_silt) continue;
        if (group->pending > 0) {
            status = silt_look_oldest_pending(conn, row->name, group->name, &scratch, &wants, err);
            pending = status == SILT_OK;
        }
        if (status < 0) break;
        if (!pending && !silt_wire_id_next(group->last_delivered, &wants)) continue;
        if (silt_wire_id_less(floor, wants)) continue;
        floor = wants;
        SET(seen->held_by, pending ? "pending" : "group");
        silt_escape(group->name, seen->held_name, sizeof seen->held_name);
    }
    silt_reply_release(&scratch);
    return status < 0 ? status : SILT_OK;
}

/* How many live entries lie above W, and how old the first of them is. Counted by the server's own numbers, not by reading. */
static enum silt_status find_lag(struct silt_seen *seen, const struct silt_stream_row *row,
                                 const struct silt_look *look, struct silt_conn *conn,
                                 struct silt_err *err)
{
    const struct silt_facts *facts = &look->facts;
    struct silt_wire_id from = SILT_WIRE_ID_MIN;
    uint64_t now_ms;
    seen->live_entries = facts->length;
    seen->lag_entries = seen->lag_ms = 0;
    if (row->folded_any && (!silt_wire_id_less(row->watermark, facts->last) ||
                            !silt_wire_id_next(row->watermark, &from)))
        return SILT_OK;
    uint64_t added = facts->entries_added - (row->folded_any ? row->custody_added : 0);
    seen->lag_entries = added < facts->length ? added : facts->length;
    struct silt_page page = {0};
    struct silt_page_request request = {
        .key = row->name, .from = from, .to = SILT_WIRE_ID_MAX, .count = 1};
    enum silt_status status = silt_page_append(conn, &request, err);
    if (status == SILT_OK) status = silt_page_receive(conn, &request, &page, err);
    bool any = status == SILT_OK && page.entry_count > 0;
    uint64_t oldest_ms = any ? page.entries[0].id.ms : 0;
    if (status == SILT_OK && !any) seen->lag_entries = 0;
    if (any && (status = silt_look_time(conn, &page.look.reply, &now_ms, err)) == SILT_OK)
        seen->lag_ms = now_ms > oldest_ms ? now_ms - oldest_ms : 0;
    silt_page_release(&page);
    return status;
}

static void from_row(struct silt_seen *seen, const struct silt_stream_row *row)
{
    *seen = (struct silt_seen){.life = row->life,
                               .live_entries = SILT_UNKNOWN,
                               .lag_entries = SILT_UNKNOWN,
                               .lag_ms = SILT_UNKNOWN,
                               .looked_ms_ago = SILT_UNKNOWN,
                               .next_look_ms = SILT_UNKNOWN,
                               .folded_entries = row->folded_entries,
                               .trimmed_entries = row->trimmed_entries,
                               .foreign_entries = row->foreign_entries,
                               .gap_entries = row->gap_entries,
                               .late_entries = row->late_entries,
                               .lives = SILT_UNKNOWN,
                               .epoch = row->epoch};
    silt_escape(row->name, seen->key, sizeof seen->key);
    set_kind(seen, row->ns);
    SET(seen->state, row->verdict == SILT_VERDICT_CLEAR ? row->folded_any ? "ok" : "new" : "held");
    SET(seen->verdict, silt_verdict_name(row->verdict));
    silt_escape(row->verdict_reason, seen->reason, sizeof seen->reason);
    if (row->folded_any) {
        silt_id_text(row->watermark, row->ns, seen->watermark);
        silt_id_instant(row->watermark, seen->watermark_instant);
    }
    if (row->verdict == SILT_VERDICT_AUDIT_PENDING) {
        struct progress p = {.cause = silt_audit_cause_name(row->audit.cause),
                             .opened = row->audit.opened,
                             .equal = row->audit.equal,
                             .absent = row->audit.absent,
                             .conflict = row->audit.conflict};
        silt_wire_id_format(row->audit.position, p.position);
        silt_wire_id_format(row->audit.through, p.through);
        set_audit(seen, &p);
    }
    if (row->folded_at_ms)
        silt_id_instant((struct silt_wire_id){row->folded_at_ms, 0}, seen->folded_at);
    if (row->trimmed_at_ms)
        silt_id_instant((struct silt_wire_id){row->trimmed_at_ms, 0}, seen->trimmed_at);
}

enum silt_status silt_seen_lives(struct silt_seen *seen, struct silt_store *store, uint64_t stream,
                                 struct silt_err *err)
{
    struct silt_fork_row fork;
    enum silt_status status;
    uint64_t count = 1;
    for (uint64_t after = 0;
         (status = silt_store_fork_after(store, stream, after, &fork, err)) == SILT_OK;
         after = fork.life)
        count++;
    if (status < 0) return status;
    seen->lives = count;
    return SILT_OK;
}

static enum silt_status look_at(struct silt_seen *seen, const struct silt_stream_row *row,
                                struct silt_conn *conn, struct silt_err *err)
{
    struct silt_look look = {0};
    enum silt_status status = silt_look_call(conn, row->name, SILT_LOOK_READER, &look, err);
    if (status == SILT_OK && look.state == SILT_LOOK_GONE) {
        seen->live_entries = seen->lag_entries = seen->lag_ms = 0;
        if (row->verdict != SILT_VERDICT_WAITING) /* else the row says it */
            SET(seen->error, "the key is gone from the server");
    } else if (status == SILT_OK && look.state == SILT_LOOK_WRONG_TYPE) {
        SET(seen->error, "the key holds another type than a stream");
    } else if (status == SILT_OK) {
        status = find_holder(seen, row, &look, conn, err);
        if (status == SILT_OK) status = find_lag(seen, row, &look, conn, err);
    }
    silt_look_release(&look);
    return status;
}

enum silt_status silt_seen_of_row(struct silt_seen *seen, const struct silt_stream_row *row,
                                  struct silt_conn *conn, struct silt_err *err)
{
    from_row(seen, row);
    enum silt_status status = conn ? look_at(seen, row, conn, err) : SILT_OK;
    if (strcmp(seen->state, "ok") == 0 && seen->lag_entries != SILT_UNKNOWN &&
        seen->lag_entries > 0)
        SET(seen->state, "behind"); /* nobody is folding */
    if (seen->error[0]) SET(seen->state, "failing");
    return status;
}

enum silt_status silt_seen_of_key(struct silt_seen *seen, struct silt_view key,
                                  struct silt_conn *conn, struct silt_err *err)
{
    struct silt_look look = {0};
    struct silt_stream_row row = {.name = key};
    enum silt_status status = silt_look_call(conn, key, SILT_LOOK_READER, &look, err);
    enum silt_look_state state = look.state;
    silt_look_release(&look);
    if (status != SILT_OK) return status;
    if (state == SILT_LOOK_GONE)
        status = silt_fail(err, SILT_ERR_UNKNOWN_STREAM,
                           "neither the archive nor the server knows this key");
    if (state == SILT_LOOK_WRONG_TYPE)
        status = silt_fail(err, SILT_ERR_WRONG_TYPE, "the key holds another type than a stream");
    silt_err_set_stream(status == SILT_OK ? NULL : err, key.at, key.len);
    return status == SILT_OK ? silt_seen_of_row(seen, &row, conn, err) : status;
}

static void maybe(struct silt_out *out, const char *name, uint64_t value)
{
    silt_json_name(out, name);
    if (value == SILT_UNKNOWN)
        silt_json_null(out);
    else
        silt_json_u64(out, value);
}

static void maybe_text(struct silt_out *out, const char *name, const char *value)
{
    silt_json_name(out, name);
    silt_json_str(out, *value ? value : NULL);
}

void silt_seen_json(struct silt_out *out, const struct silt_seen *seen, struct silt_view key,
                    const struct silt_stream_row *row)
{
    bool branded = !silt_namespace_is_none(row->ns);
    silt_json_open(out, '{');
    silt_json_name(out, "key");
    silt_json_bytes(out, key);
    maybe_text(out, "kind", branded ? "branded" : "plain");
    maybe_text(out, "ns", row->ns.letters);
    maybe_text(out, "state", seen->state);
    maybe(out, "life", seen->life);
    maybe(out, "incarnation", row->incarnation);
    silt_json_name(out, "watermark");
    if (row->folded_any)
        silt_json_id(out, row->watermark, row->ns);
    else
        silt_json_null(out);
    silt_json_name(out, "custody");
    if (row->folded_any)
        silt_json_id(out, row->custody, row->ns);
    else
        silt_json_null(out);
    maybe(out, "live_entries", seen->live_entries);
    maybe(out, "lag_entries", seen->lag_entries);
    maybe(out, "lag_ms", seen->lag_ms);
    maybe_text(out, "held_by", seen->held_by);
    maybe_text(out, "held_name", seen->held_name);
    maybe(out, "folded_entries", seen->folded_entries);
    maybe(out, "folded_bytes", row->folded_bytes);
    maybe(out, "trimmed_entries", seen->trimmed_entries);
    maybe(out, "foreign_entries", seen->foreign_entries);
    maybe(out, "gap_entries", seen->gap_entries);
    maybe(out, "late_entries", seen->late_entries);
    maybe(out, "lives", seen->lives);
    maybe(out, "epoch", seen->epoch ? seen->epoch : SILT_UNKNOWN);
    maybe_text(out, "audit_progress", seen->audit);
    maybe_text(out, "verdict", seen->verdict);
    maybe_text(out, "reason", seen->reason);
    silt_json_name(out, "error");
    if (seen->error[0]) {
        silt_json_open(out, '{');
        maybe_text(out, "sentence", seen->error);
        maybe_text(out, "hint", seen->hint);
        silt_json_close(out, '}');
    } else {
        silt_json_null(out);
    }
    maybe_text(out, "folded_at", seen->folded_at);
    maybe_text(out, "trimmed_at", seen->trimmed_at);
    silt_json_close(out, '}');
}
