/* Trims of streams without a marker (claim: key, claim: off): nothing says that the object is still the one that was archived, so every step is audited before it.
 * What would go is read, compared with the archive byte for byte, and then exactly these ids are removed (trim_exact.h). */
#include <stdio.h>

#include "alloc.h"
#include "cycle_priv.h"
#include "faultpoint.h"
#include "log.h"
#include "stream_key.h"
#include "trim_exact.h"

bool silt_work_claimless(const struct silt_work *work)
{
    return work->config->claim != SILT_CLAIM_GROUP;
}

/* ---- claim: key ---- */

static void refuse_claim(struct silt_claim *ret, enum silt_verdict verdict, const char *what,
                         struct silt_view value)
{
    char shown[120];
    silt_escape(value, shown, sizeof shown);
    ret->verdict = verdict;
    snprintf(ret->reason, sizeof ret->reason, "%s: the claim key says %s", what, shown);
}

static void judge_claim(const struct silt_archiver *archiver, const char *ours,
                        struct silt_view value, struct silt_claim *ret)
{
    struct silt_marker marker;
    if (silt_view_equal(value, silt_view_str(ours))) return;
    if (!silt_marker_parse(value, &marker) || strcmp(marker.uuid, archiver->meta.uuid) != 0)
        refuse_claim(ret, SILT_VERDICT_CLAIMED, "claimed by another archive", value);
    else
        refuse_claim(ret, SILT_VERDICT_OTHER_COPY,
                     "another or newer copy of this archive is at work", value);
}

enum silt_status silt_claim_hold(struct silt_archiver *archiver, struct silt_work *work,
                                 struct silt_claim *ret, struct silt_err *err)
{
    struct silt_reply *reply = &archiver->scratch;
    SILT_CLEANUP(silt_buf_release) struct silt_buf key = {0};
    char ours[SILT_MARKER_TEXT];
    *ret = (struct silt_claim){.verdict = SILT_VERDICT_CLEAR};
    if (work->config->claim != SILT_CLAIM_KEY) return SILT_OK;
    silt_work_claim(archiver, work, ours);
    enum silt_status status = silt_key_claim(silt_work_key(work), &key, err);
    if (status != SILT_OK) return status;
    const struct silt_view get[] = {silt_view_str("GET"), silt_buf_view(&key)};
    const struct silt_view set[] = {silt_view_str("SET"), silt_buf_view(&key), silt_view_str(ours),
                                    silt_view_str("NX")};
    for (int i = 0; i < 2; i++) {
        status = silt_conn_call(archiver->conn, get, 2, reply, err);
        if (status != SILT_OK) return status;
        if (silt_reply_is_text(reply, 0)) {
            judge_claim(archiver, ours, silt_reply_text(reply, 0), ret);
            return SILT_OK;
        }
        if (reply->nodes[0].type != SILT_NODE_NIL)
            return silt_conn_nonsense(archiver->conn, err, "GET to answer with a text or nothing");
        /* Only where nobody else was faster; whether we were, the next GET tells. */
        status = silt_conn_call(archiver->conn, set, 4, reply, err);
        if (status != SILT_OK) return status;
    }
    return silt_fail(err, SILT_ERR_STALE, "the claim key does not stay: something removes it");
}

/* ---- the trim ---- */

struct exact_trim {
    struct silt_archiver *archiver;
    struct silt_work *work;
    const struct silt_custody *custody;
    struct silt_facts facts;  /* of the last page */
    struct silt_wire_id from; /* where the next one begins */
    struct silt_buf claim_key;
    char claim[SILT_MARKER_TEXT];
};

static void release_exact(struct exact_trim *trim)
{
    silt_buf_release(&trim->claim_key);
}

/* The floors were made from the opening look's groups: another group, or one set back, may want what would go. */
static bool groups_stand(const struct silt_look *opening, const struct silt_look *now)
{
    for (size_t i = 0; i < now->group_count; i++) {
        const struct silt_look_group *group = &now->groups[i], *before = NULL;
        if (group->is_silt) continue;
        for (size_t j = 0; j < opening->group_count && !before; j++)
            if (silt_view_equal(opening->groups[j].name, group->name)) before = &opening->groups[j];
        if (!before || silt_wire_id_less(group->last_delivered, before->last_delivered))
            return false;
    }
    return true;
}

static enum silt_status read_page(struct exact_trim *trim, struct silt_wire_id last,
                                  struct silt_err *err)
{
    struct silt_archiver *archiver = trim->archiver;
    uint32_t most = silt_page_count(&trim->work->state->page_size, archiver->config->page_entries,
                                    archiver->config->page_bytes);
    struct silt_page_request ask = {.key = silt_work_key(trim->work),
                                    .from = trim->from,
                                    .to = last,
                                    .count = most < SILT_EXACT_MOST ? most : SILT_EXACT_MOST,
                                    .what = SILT_LOOK_ARCHIVER};
    if (silt_conn_generation(archiver->conn) != archiver->look.generation)
        return silt_fail(err, SILT_ERR_STALE, "the connection that made the look is gone");
    enum silt_status status = silt_page_append(archiver->conn, &ask, err);
    if (status == SILT_OK) status = silt_page_receive(archiver->conn, &ask, &archiver->page, err);
    if (status != SILT_OK) return status;
    const char *broken = silt_fetch_break(&trim->facts, &archiver->page.look, silt_view(NULL, 0),
                                          trim->custody->marker_at);
    if (!broken && !groups_stand(&archiver->look, &archiver->page.look)) broken = "groups";
    if (broken)
        return silt_fail(err, SILT_ERR_STALE, "the stream changed since the look: %s", broken);
    trim->facts = archiver->page.look.facts;
    return SILT_OK;
}

/* Byte for byte; ret_reason: what differs. */
static enum silt_status compare(struct exact_trim *trim, char ret_reason[200], struct silt_err *err)
{
    struct silt_archiver *archiver = trim->archiver;
    const struct silt_page *page = &archiver->page;
    const struct silt_stream_row *row = &trim->work->stream.row;
    struct silt_compare with = {.archiver = archiver};
    ret_reason[0] = 0;
    enum silt_status status = silt_archive_source_seek(
        archiver->source, row->life, row->ns,
        (struct silt_range){page->entries[0].id, page->entries[page->entry_count - 1].id}, false,
        err);
    if (status == SILT_OK) status = silt_compare_page(&with, page, ret_reason, err);
    return status;
}

static enum silt_status remove_page(struct exact_trim *trim, uint64_t *ret_removed,
                                    struct silt_err *err)
{
    struct silt_archiver *archiver = trim->archiver;
    const struct silt_page *page = &archiver->page;
    const struct silt_stream_row *row = &trim->work->stream.row;
    struct silt_wire_id before;
    struct silt_receipt *receipt = NULL;
    struct silt_exact exact = {.key = silt_work_key(trim->work),
                               .stream = row->number,
                               .life = row->life,
                               .generation = page->look.generation,
                               .newest = page->look.last.id,
                               .custody = row->custody,
                               .entries = page->entries,
                               .count = page->entry_count,
                               .claim_key = silt_buf_view(&trim->claim_key),
                               .claim = trim->claim};
    if (!silt_wire_id_prev(page->entries[0].id, &before)) return SILT_OK;
    enum silt_status status =
        silt_store_read_back(archiver->store, row->number, before,
                             page->entries[page->entry_count - 1].id, UINT64_MAX, &receipt, err);
    if (status == SILT_OK && SILT_FAULTPOINT("before-trim"))
        status = silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection");
    if (status == SILT_OK)
        status =
            silt_trim_exact(&archiver->trimmer, archiver->conn, &exact, receipt, ret_removed, err);
    silt_receipt_free(receipt);
    return status;
}

static void book(struct exact_trim *trim, uint64_t removed)
{
    struct silt_work *work = trim->work;
    const struct silt_page *page = &trim->archiver->page;
    struct silt_wire_id end = page->entries[page->entry_count - 1].id;
    (void)silt_wire_id_next(end, &work->state->threshold_sent);
    work->asked += page->entry_count;
    work->trimmed += removed;
    work->changed = work->changed || removed > 0;
    work->state->dirty = true;
    work->state->trimmed_unsaved += removed;
}

static enum silt_status step(struct exact_trim *trim, struct silt_wire_id last, bool *ret_more,
                             struct silt_err *err)
{
    char reason[200];
    uint64_t removed = 0;
    *ret_more = false;
    enum silt_status status = read_page(trim, last, err);
    const struct silt_page *page = &trim->archiver->page;
    if (status != SILT_OK || page->entry_count == 0) return status;
    status = compare(trim, reason, err);
    if (status == SILT_OK && reason[0])
        return silt_judge_doubt(trim->archiver, trim->work, SILT_AUDIT_BYTES, reason, err);
    if (status == SILT_OK) status = remove_page(trim, &removed, err);
    if (status != SILT_OK) return status;
    book(trim, removed);
    *ret_more = page->full && removed > 0;
    if (!silt_wire_id_next(page->entries[page->entry_count - 1].id, &trim->from)) *ret_more = false;
    return SILT_FAULTPOINT("after-trim-step")
               ? silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection")
               : SILT_OK;
}

enum silt_status silt_shed_exact(struct silt_archiver *archiver, struct silt_work *work,
                                 const struct silt_custody *custody, struct silt_wire_id threshold,
                                 struct silt_err *err)
{
    SILT_CLEANUP(release_exact)
    struct exact_trim trim = {.archiver = archiver,
                              .work = work,
                              .custody = custody,
                              .facts = archiver->look.facts,
                              .from = archiver->look.facts.first};
    struct silt_wire_id last;
    enum silt_status status = SILT_OK;
    if (!silt_wire_id_prev(threshold, &last)) return SILT_OK;
    last = silt_wire_id_lower(last, work->stream.row.custody);
    if (work->config->claim == SILT_CLAIM_KEY) {
        silt_work_claim(archiver, work, trim.claim);
        status = silt_key_claim(silt_work_key(work), &trim.claim_key, err);
    }
    uint64_t before = work->trimmed;
    for (bool more = status == SILT_OK; more && !silt_wire_id_less(last, trim.from);) {
        if (silt_archiver_cancelled(archiver)) return silt_fail(err, SILT_ERR_CANCELLED, NULL);
        status = step(&trim, last, &more, err);
        if (status != SILT_OK) break;
    }
    if (work->trimmed > before)
        SILT_LOG(SILT_LOG_INFO, "trimmed", SILT_KEY("stream", silt_work_key(work)),
                 SILT_ID("below", work->state->threshold_sent),
                 SILT_NUM("removed", work->trimmed - before), SILT_STR("way", "exact ids"),
                 SILT_STR("copy", archiver->config->archive_path));
    return status;
}
