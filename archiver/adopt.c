/* Taking a stream over, and letting it go: see adopt.h. Removes no entry; must not know plans, pages or the loop. */
#include "adopt.h"

#include <stdio.h>

#include "cycle_priv.h"
#include "faultpoint.h"
#include "log.h"

enum { TRIES = 8, FIXED_WORDS = 6 };

static enum silt_status of_stream(const struct silt_work *work, struct silt_err *err,
                                  enum silt_status status)
{
    if (status < 0) silt_err_set_stream(err, work->key.at, work->key.len);
    return status;
}

/* Both work on markers, and such a stream has none. */
static enum silt_status check_marked(const struct silt_work *work, struct silt_err *err)
{
    bool key = work->config->claim == SILT_CLAIM_KEY;
    if (!silt_work_claimless(work)) return SILT_OK;
    silt_fail(err, SILT_ERR_PROTECTED,
              "the settings say claim: %s: there is no marker to take over or to let go",
              key ? "key" : "off");
    silt_hint(err,
              key ? "delete its claim key by hand, and siltd makes its own; or set claim: group"
                  : "set claim: group for it, or take it out of the settings");
    return SILT_ERR_PROTECTED;
}

/* Where a commit's outcome is not known, the row in memory may be older than the store's: it must not be written over that. */
static enum silt_status prepare(struct silt_archiver *archiver, struct silt_work *work,
                                struct silt_err *err)
{
    enum silt_status status = check_marked(work, err);
    if (status != SILT_OK || !work->state->stale) return status;
    return silt_work_load(archiver, work, err);
}

/* ---- the look ---- */

static enum silt_status check_look(const struct silt_look *look, struct silt_err *err)
{
    if (look->state == SILT_LOOK_GONE)
        return silt_fail(err, SILT_ERR_UNKNOWN_STREAM,
                         "the key is not there: there is no marker to take over or to let go");
    if (look->state != SILT_LOOK_STREAM)
        return silt_fail(err, SILT_ERR_WRONG_TYPE, "the key holds another type than a stream");
    if (look->groups_denied || !look->replication_known)
        return silt_fail(err, SILT_ERR_SERVER_DENIED,
                         "%s is denied: whose stream it is cannot be seen",
                         look->groups_denied ? "XINFO GROUPS" : "INFO");
    if (!look->is_master)
        return silt_fail(err, SILT_ERR_SERVER_READONLY, "the server is a replica");
    return SILT_OK;
}

static enum silt_status look(struct silt_archiver *archiver, struct silt_work *work,
                             struct silt_adoption *ret, struct silt_err *err)
{
    enum silt_status status = silt_conn_open(archiver->conn, err);
    if (status == SILT_OK)
        status = silt_look_time(archiver->conn, &archiver->scratch, &archiver->now_ms, err);
    if (status == SILT_OK)
        status = silt_look_call(archiver->conn, silt_work_key(work), SILT_LOOK_ARCHIVER,
                                &archiver->look, err);
    if (status == SILT_OK) status = check_look(&archiver->look, err);
    if (status != SILT_OK) return status;
    *ret = (struct silt_adoption){0};
    memcpy(ret->uuid, archiver->meta.uuid, sizeof ret->uuid);
    for (size_t i = 0; i < archiver->look.group_count; i++) {
        const struct silt_look_group *group = &archiver->look.groups[i];
        if (!group->is_silt) continue;
        if (ret->marker_count == SILT_ADOPT_MARKERS_MAX)
            return silt_fail(err, SILT_ERR_PROTECTED,
                             "more than %u groups here are named silt:, as a marker is",
                             SILT_ADOPT_MARKERS_MAX);
        struct silt_adopt_marker *marker = &ret->markers[ret->marker_count++];
        silt_escape(group->name, marker->name, sizeof marker->name);
        marker->parsed = silt_marker_parse(group->name, &marker->marker);
        marker->at = group->last_delivered;
    }
    return SILT_OK;
}

static bool is_ours(const struct silt_adoption *adoption, const struct silt_adopt_marker *marker)
{
    return marker->parsed && strcmp(marker->marker.uuid, adoption->uuid) == 0;
}

/* One marker, of the row's epoch and number, and nothing against it. */
static bool is_held(const struct silt_archiver *archiver, const struct silt_work *work,
                    const struct silt_adoption *adoption)
{
    const struct silt_stream_row *row = silt_work_row(work);
    const struct silt_adopt_marker *marker = &adoption->markers[0];
    return row && adoption->marker_count == 1 && is_ours(adoption, marker) &&
           marker->marker.number == row->marker_number &&
           marker->marker.epoch == silt_stream_epoch(row, archiver->meta.epoch) &&
           row->verdict != SILT_VERDICT_OTHER_COPY && row->verdict != SILT_VERDICT_RELEASED &&
           !silt_needs_adopt(archiver, row) &&
           !silt_wire_id_less(silt_highest_watermark(row), marker->at);
}

/* ---- the script ---- */

static enum silt_status read_answer(struct silt_archiver *archiver, size_t due,
                                    struct silt_err *err)
{
    const struct silt_reply *reply = &archiver->scratch;
    bool shaped = reply->node_count >= 3 && reply->nodes[0].type == SILT_NODE_ARRAY &&
                  silt_reply_is_text(reply, 1);
    if (!shaped) return silt_conn_nonsense(archiver->conn, err, "the adopting script's answer");
    struct silt_view word = silt_reply_text(reply, 1);
    if (silt_view_equal(word, silt_view_str("OK")) && reply->nodes[2].type == SILT_NODE_INTEGER &&
        reply->nodes[2].value == due)
        return SILT_OK;
    if (silt_view_equal(word, silt_view_str("ERR")) && silt_reply_is_text(reply, 2)) {
        enum silt_status status = silt_reply_error_class(silt_reply_text(reply, 2), err);
        return status == SILT_OK ? SILT_ERR_SERVER_REFUSED : status;
    }
    enum silt_status stale = silt_script_stale(reply, err);
    return stale != SILT_OK
               ? stale
               : silt_conn_nonsense(archiver->conn, err, "the adopting script's answer");
}

/* All markers that the look showed go; `name`, where it is not empty, comes. */
static enum silt_status run_script(struct silt_archiver *archiver, struct silt_work *work,
                                   const char *name, const struct silt_adoption *adoption,
                                   struct silt_err *err)
{
    struct silt_view argv[FIXED_WORDS + 2 * SILT_ADOPT_MARKERS_MAX];
    char places[SILT_ADOPT_MARKERS_MAX][SILT_WIRE_ID_TEXT];
    size_t n = 0, markers = 0;
    argv[n++] = silt_view_str("EVAL");
    argv[n++] = silt_view_str(silt_adopt_script);
    argv[n++] = silt_view_str("1");
    argv[n++] = silt_work_key(work);
    argv[n++] = silt_view_str(archiver->look.facts.replid);
    argv[n++] = silt_view_str(name);
    for (size_t i = 0; i < archiver->look.group_count && markers < adoption->marker_count; i++) {
        const struct silt_look_group *group = &archiver->look.groups[i];
        if (!group->is_silt) continue;
        silt_wire_id_format(group->last_delivered, places[markers]);
        argv[n++] = group->name;
        argv[n++] = silt_view_str(places[markers++]);
    }
    enum silt_status status = silt_conn_call_on(archiver->conn, archiver->look.generation, argv, n,
                                                &archiver->scratch, err);
    return status == SILT_OK ? read_answer(archiver, markers, err) : status;
}

/* ---- adopt ---- */

static uint64_t next_epoch(const struct silt_archiver *archiver, const struct silt_work *work,
                           const struct silt_adoption *adoption)
{
    uint64_t epoch = silt_stream_epoch(silt_work_row(work), archiver->meta.epoch);
    if (epoch < archiver->meta.epoch) epoch = archiver->meta.epoch;
    for (size_t i = 0; i < adoption->marker_count; i++)
        if (is_ours(adoption, &adoption->markers[i]) && adoption->markers[i].marker.epoch > epoch)
            epoch = adoption->markers[i].marker.epoch;
    return epoch + 1;
}

/* "archive <uuid> epoch <e>", the first of them. */
static void name_holder(const struct silt_adoption *adoption, char *ret, size_t size)
{
    const struct silt_adopt_marker *marker = &adoption->markers[0];
    if (adoption->marker_count == 0)
        snprintf(ret, size, "nobody");
    else if (marker->parsed)
        snprintf(ret, size, "archive %s epoch %llu", marker->marker.uuid,
                 (unsigned long long)marker->marker.epoch);
    else
        snprintf(ret, size, "%s", marker->name);
}

/* The verdict is durable before the marker is: a look that shows the new marker beside the old facts must not continue by accident (protocol §3). A row that never
 * folded has no facts that could: its stream is met as for the first time. */
static enum silt_status commit_adopted(struct silt_archiver *archiver, struct silt_work *work,
                                       struct silt_adoption *adoption, struct silt_err *err)
{
    char reason[200], holder[120];
    struct silt_stream_row row = work->stream.row;
    bool folded = row.folded_any;
    enum silt_status status = silt_marker_number(&row.marker_number, err);
    if (status == SILT_OK && row.number == 0) {
        row.name = silt_work_key(work);
        row.ns = work->config->ns;
        status = silt_store_new_stream(archiver->store, &row.number, &row.life, err);
    }
    if (status != SILT_OK) return status;
    name_holder(adoption, holder, sizeof holder);
    snprintf(reason, sizeof reason, "adopted from %s", holder);
    row.epoch = adoption->epoch;
    row.marker_seen = false;
    row.verdict = folded ? SILT_VERDICT_AUDIT_PENDING : SILT_VERDICT_CLEAR;
    row.verdict_reason = silt_view_str(folded ? reason : "");
    row.verdict_facts = archiver->look.facts;
    row.verdict_at_ms = archiver->now_ms;
    row.audit = (struct silt_audit){0};
    if (folded) silt_begin_audit(archiver, work, SILT_AUDIT_ADOPTED, &row);
    status = silt_commit_row(archiver, work, &row, NULL, NULL, err);
    if (status == SILT_OK && SILT_FAULTPOINT("adopt-after-row"))
        status = silt_fail(err, SILT_ERR_IO, "a test failed after the adopted row");
    return status;
}

static void forget(struct silt_work *work)
{
    struct silt_work_state *state = work->state;
    state->audit_loaded = state->number_fresh = state->has_bytes_floor = state->counted = false;
    state->first.is_set = state->last.is_set = false;
}

static enum silt_status adopt(struct silt_archiver *archiver, struct silt_work *work, bool dry,
                              struct silt_adoption *ret, struct silt_err *err)
{
    char marker[SILT_MARKER_TEXT], holder[120];
    const struct silt_stream_row *row = silt_work_row(work);
    enum silt_status status = look(archiver, work, ret, err);
    if (status != SILT_OK) return status;
    ret->audit = row && row->folded_any;
    if (row && !silt_namespace_equal(row->ns, work->config->ns))
        return silt_fail(
            err, SILT_ERR_CONFIG,
            "the archive holds this stream with another kind of ids than the configuration says");
    ret->already = is_held(archiver, work, ret);
    ret->epoch = ret->already ? silt_stream_epoch(row, archiver->meta.epoch)
                              : next_epoch(archiver, work, ret);
    if (ret->already || dry) return SILT_OK;
    status = commit_adopted(archiver, work, ret, err);
    if (status != SILT_OK) return status;
    forget(work);
    silt_work_marker(archiver, work, marker);
    status = run_script(archiver, work, marker, ret, err);
    if (status != SILT_OK) return status;
    name_holder(ret, holder, sizeof holder);
    SILT_LOG(SILT_LOG_WARN, "adopted", SILT_KEY("stream", silt_work_key(work)),
             SILT_STR("from", holder), SILT_STR("archive", ret->uuid),
             SILT_NUM("epoch", ret->epoch));
    return SILT_OK;
}

enum silt_status silt_archiver_adopt(struct silt_archiver *archiver, struct silt_work *work,
                                     bool dry, struct silt_adoption *ret, struct silt_err *err)
{
    enum silt_status status = prepare(archiver, work, err);
    if (status == SILT_OK) status = SILT_ERR_STALE;
    for (int i = 0; i < TRIES && status == SILT_ERR_STALE; i++)
        status = adopt(archiver, work, dry, ret, err);
    return of_stream(work, err, status);
}

/* ---- release ---- */

static enum silt_status commit_released(struct silt_archiver *archiver, struct silt_work *work,
                                        struct silt_err *err)
{
    struct silt_stream_row row = work->stream.row;
    if (row.verdict == SILT_VERDICT_RELEASED) return SILT_OK;
    row.verdict = SILT_VERDICT_RELEASED;
    row.verdict_reason = silt_view_str("released: left alone until silt adopt takes it up again");
    row.verdict_at_ms = archiver->now_ms;
    /* An audit that was running is over; what it had to remember is the next adoption's. */
    row.audit = (struct silt_audit){.went_back = row.audit.went_back,
                                    .added_seen = row.audit.added_seen,
                                    .last_seen = row.audit.last_seen};
    enum silt_status status = silt_commit_row(archiver, work, &row, NULL, NULL, err);
    if (status == SILT_OK && SILT_FAULTPOINT("release-after-row"))
        status = silt_fail(err, SILT_ERR_IO, "a test failed after the released row");
    return status;
}

static enum silt_status release(struct silt_archiver *archiver, struct silt_work *work, bool dry,
                                struct silt_adoption *ret, struct silt_err *err)
{
    const struct silt_stream_row *row = silt_work_row(work);
    if (!row)
        return silt_fail(err, SILT_ERR_UNKNOWN_STREAM, "this archive has never had the stream");
    enum silt_status status = look(archiver, work, ret, err);
    if (status == SILT_ERR_UNKNOWN_STREAM) { /* no key, no marker: the row alone */
        *ret = (struct silt_adoption){0};
        memcpy(ret->uuid, archiver->meta.uuid, sizeof ret->uuid);
        status = SILT_OK;
    }
    if (status != SILT_OK) return status;
    for (size_t i = 0; i < ret->marker_count; i++)
        if (!is_ours(ret, &ret->markers[i])) {
            silt_fail(err, SILT_ERR_CLAIMED, "the stream is another archive's: %s",
                      ret->markers[i].name);
            silt_hint(err, "the archive that holds it releases it");
            return SILT_ERR_CLAIMED;
        }
    ret->epoch = silt_stream_epoch(row, archiver->meta.epoch);
    ret->already = row->verdict == SILT_VERDICT_RELEASED && ret->marker_count == 0;
    if (ret->already || dry) return SILT_OK;
    status = commit_released(archiver, work, err);
    if (status != SILT_OK) return status;
    forget(work);
    if (ret->marker_count > 0) status = run_script(archiver, work, "", ret, err);
    if (status != SILT_OK) return status;
    SILT_LOG(SILT_LOG_WARN, "released", SILT_KEY("stream", silt_work_key(work)),
             SILT_ID("watermark", work->stream.row.watermark));
    return SILT_OK;
}

enum silt_status silt_archiver_release(struct silt_archiver *archiver, struct silt_work *work,
                                       bool dry, struct silt_adoption *ret, struct silt_err *err)
{
    enum silt_status status = prepare(archiver, work, err);
    if (status == SILT_OK) status = SILT_ERR_STALE;
    for (int i = 0; i < TRIES && status == SILT_ERR_STALE; i++)
        status = release(archiver, work, dry, ret, err);
    return of_stream(work, err, status);
}
