/* Marker and trim of one stream: the plan carried out in steps, each with a receipt of its own, each answer checked before the next. The removal itself is
 * trim.c's. Must not fold. */
#include <inttypes.h>
#include <stdio.h>

#include "alloc.h"
#include "cycle_priv.h"
#include "faultpoint.h"
#include "log.h"
#include "stream_key.h"

/* A pass over one stream's marker and entries. */
struct shed {
    struct silt_archiver *archiver;
    struct silt_work *work;
    const struct silt_custody *custody;
    struct silt_trim_target target;
    struct silt_buf seam_key;
    char seam_value[SILT_WIRE_ID_TEXT];
};

static void release_shed(struct shed *shed)
{
    silt_buf_release(&shed->seam_key);
}

/* W as readers without the archive see it: the branded id, or the nearest one below; in a plain stream the wire id. False: there is none to tell. */
static bool spell_seam(const struct silt_stream_row *row, char ret[SILT_WIRE_ID_TEXT])
{
    if (silt_namespace_is_none(row->ns)) {
        silt_wire_id_format(row->watermark, ret);
        return !silt_wire_id_is_zero(row->watermark);
    }
    struct silt_branded_id id = {row->ns, silt_snowflake_floor(row->watermark)};
    ret[SILT_BRANDED_ID_LEN] = 0;
    return id.snowflake > 0 && silt_branded_id_format(id, ret) == SILT_OK;
}

static enum silt_status aim(struct shed *shed, const struct silt_floors *floors,
                            struct silt_err *err)
{
    const struct silt_archiver *archiver = shed->archiver;
    const struct silt_work *work = shed->work;
    const struct silt_stream_row *row = &work->stream.row;
    const struct silt_look *look = &archiver->look;
    shed->target = (struct silt_trim_target){
        .key = silt_work_key(work),
        .stream = row->number,
        .life = row->life,
        .generation = look->generation, /* asking for pending entries may have connected anew */
        .facts = look->facts,
        .newest = look->last.id,
        .marker_present = true,
        .marker_at = shed->custody->marker_at,
        .marker_to = row->custody,
        .hold_groups = work->config->groups == SILT_GROUPS_HOLD,
        .released = (const struct silt_view *)(const void *)floors->released.at,
        .released_count = floors->released_count,
        .seam_branded = !silt_namespace_is_none(row->ns)};
    if (look->facts.has_first) silt_sha1_entry(&look->first, shed->target.first_sha1);
    silt_work_marker(archiver, work, shed->target.marker);
    if (work->config->seam == SILT_SEAM_OFF || !spell_seam(row, shed->seam_value)) return SILT_OK;
    enum silt_status status = silt_key_seam(shed->target.key, &shed->seam_key, err);
    if (status == SILT_ERR_KEY && work->config->seam == SILT_SEAM_BEST_EFFORT)
        return SILT_OK; /* the marker's position still tells */
    if (status != SILT_OK) return status;
    shed->target.seam = work->config->seam;
    shed->target.seam_key = silt_buf_view(&shed->seam_key);
    shed->target.seam_value = silt_view_str(shed->seam_value);
    return SILT_OK;
}

/* Once, not at every trim: a stream that is written to is trimmed every second. */
static void tell_seam(const struct shed *shed, const struct silt_trim_answer *answer)
{
    char *denied = shed->archiver->seam_denied;
    bool *said = &shed->work->state->seam_said;
    /* A missing right is the server's user's, not the stream's: said once for all. Redis 7.0 puts it in other words inside a script. */
    bool trouble = answer->seam_trouble[0] != 0,
         right = strstr(answer->seam_trouble, "permissions") ||
                 strstr(answer->seam_trouble, "can't run this command");
    bool is_known = right ? strcmp(denied, answer->seam_trouble) == 0 : *said;
    if (right || (!trouble && shed->target.seam != SILT_SEAM_OFF))
        snprintf(denied, sizeof shed->archiver->seam_denied, "%s", answer->seam_trouble);
    *said = trouble;
    if (trouble && !is_known)
        SILT_LOG(SILT_LOG_WARN, "seam not written", SILT_KEY("stream", shed->target.key),
                 SILT_STR("reason", answer->seam_trouble),
                 SILT_STR("remedy", "the marker's position tells the same"));
}

/* The marker alone: nothing is to be trimmed, but C moved. */
static enum silt_status mark(struct shed *shed, struct silt_err *err)
{
    struct silt_trim_answer answer;
    if (SILT_FAULTPOINT("before-marker"))
        return silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection");
    enum silt_status status =
        silt_trim_mark(&shed->archiver->trimmer, shed->archiver->conn, &shed->target, &answer, err);
    if (status != SILT_OK) return status;
    tell_seam(shed, &answer);
    return SILT_FAULTPOINT("after-marker")
               ? silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection")
               : SILT_OK;
}

/* What the script answered, FIRST against the archive, before the next step (protocol §4). More removed than was named is an alarm after the fact: the
 * stream stops until somebody has looked. */
static enum silt_status check_answer(struct shed *shed, const struct silt_trim_answer *answer,
                                     char ret_reason[200], struct silt_err *err)
{
    char id[SILT_WIRE_ID_TEXT], sha1[SILT_SHA1_TEXT];
    struct silt_entry archived;
    const struct silt_facts *facts = &shed->target.facts;
    ret_reason[0] = 0;
    if (answer->alarm[0]) {
        snprintf(ret_reason, 200, "%s", answer->alarm);
        SILT_LOG(SILT_LOG_ERROR, "trim alarm", SILT_KEY("stream", shed->target.key),
                 SILT_STR("reason", answer->alarm));
    }
    if (answer->alarm[0] || !facts->has_first ||
        silt_wire_id_less(shed->work->stream.row.custody, facts->first))
        return SILT_OK;
    silt_wire_id_format(facts->first, id);
    enum silt_status status =
        silt_archived(shed->archiver, &shed->work->stream.row, facts->first, &archived, err);
    if (status == SILT_END) {
        snprintf(
            ret_reason, 200,
            "after a trim the first entry %s lies below the watermark and is not in the archive",
            id);
        return SILT_OK;
    }
    if (status != SILT_OK) return status;
    silt_sha1_entry(&archived, sha1);
    if (strcmp(sha1, shed->target.first_sha1) != 0)
        snprintf(ret_reason, 200,
                 "after a trim the first entry %s holds other bytes than in the archive", id);
    return SILT_OK;
}

static void book(struct shed *shed, const struct silt_receipt_facts *proof,
                 struct silt_wire_id threshold, const struct silt_trim_answer *answer)
{
    struct silt_work *work = shed->work;
    work->asked += proof->count;
    work->trimmed += answer->removed;
    work->changed = work->changed || answer->removed > 0;
    work->state->dirty = true;
    work->state->trimmed_unsaved += answer->removed;
    work->state->threshold_sent = threshold;
    SILT_LOG(answer->removed == proof->count ? SILT_LOG_INFO : SILT_LOG_WARN, "trimmed",
             SILT_KEY("stream", shed->target.key), SILT_ID("below", threshold),
             SILT_NUM("asked", proof->count), SILT_NUM("removed", answer->removed),
             SILT_STR("copy", shed->archiver->config->archive_path));
    tell_seam(shed, answer);
}

/* One step. What is to go is read back and decoded right now: that is the receipt (promise 1, README.md step 7). */
static enum silt_status step(struct shed *shed, struct silt_wire_id end,
                             struct silt_trim_answer *ret, bool *ret_more, struct silt_err *err)
{
    struct silt_archiver *archiver = shed->archiver;
    struct silt_wire_id before_first, last, threshold;
    struct silt_receipt *receipt = NULL;
    *ret_more = false;
    if (!shed->target.facts.has_first || !silt_wire_id_less(shed->target.facts.first, end))
        return SILT_OK;
    if (!silt_wire_id_prev(shed->target.facts.first, &before_first) ||
        !silt_wire_id_prev(end, &last))
        return SILT_OK;
    enum silt_status status =
        silt_store_read_back(archiver->store, shed->target.stream, before_first, last,
                             archiver->limits.trim_step, &receipt, err);
    if (status != SILT_OK) return status;
    const struct silt_receipt_facts proof = *silt_receipt_facts(receipt);
    if (proof.count == 0 || !silt_wire_id_next(proof.through, &threshold)) {
        silt_receipt_free(receipt);
        return SILT_OK;
    }
    if (silt_wire_id_less(end, threshold)) threshold = end;
    status = SILT_FAULTPOINT("before-trim")
                 ? silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection")
                 : silt_trim(&archiver->trimmer, archiver->conn, &shed->target, receipt, threshold,
                             ret, err);
    silt_receipt_free(receipt);
    if (status != SILT_OK) return status;
    book(shed, &proof, threshold, ret);
    if (SILT_FAULTPOINT("after-trim-step"))
        return silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection");
    *ret_more = true;
    return SILT_OK;
}

static enum silt_status trim(struct shed *shed, struct silt_wire_id threshold, struct silt_err *err)
{
    char reason[200];
    struct silt_trim_answer answer;
    for (bool more = true; more;) {
        if (silt_archiver_cancelled(shed->archiver))
            return silt_fail(err, SILT_ERR_CANCELLED, NULL);
        answer = (struct silt_trim_answer){0};
        enum silt_status status = step(shed, threshold, &answer, &more, err);
        if (status == SILT_OK) status = check_answer(shed, &answer, reason, err);
        if (status != SILT_OK) return status;
        if (reason[0])
            return silt_judge_doubt(shed->archiver, shed->work,
                                    answer.alarm[0] ? SILT_AUDIT_TRIM_ALARM : SILT_AUDIT_BYTES,
                                    reason, err);
    }
    return SILT_FAULTPOINT("after-trim")
               ? silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection")
               : SILT_OK;
}

static void name_holder(struct silt_work *work, const struct silt_plan_input *input,
                        const struct silt_plan *plan)
{
    work->threshold = plan->threshold;
    work->held_by = plan->held_by;
    work->held_name[0] = 0;
    if (plan->held_by == SILT_HELD_GROUP || plan->held_by == SILT_HELD_PENDING)
        silt_escape(input->floors[plan->held_floor].group, work->held_name, sizeof work->held_name);
    if (plan->held_by == SILT_HELD_ARCHIVE && work->state->met_foreign)
        work->held_by = SILT_HELD_FOREIGN;
}

/* Entries up to C are not all accounted for (a crash between commit and trim, a backlog): those that would go are compared first (protocol §3). */
static enum silt_status account(struct shed *shed, struct silt_wire_id threshold, bool *ret_fine,
                                struct silt_err *err)
{
    char reason[200];
    struct silt_wire_id last;
    *ret_fine = true;
    if (shed->work->state->counted || !silt_wire_id_prev(threshold, &last)) return SILT_OK;
    enum silt_status status =
        silt_judge_live(shed->archiver, shed->work, shed->custody, last, reason, err);
    if (status != SILT_OK || !reason[0]) return status;
    *ret_fine = false;
    return silt_judge_doubt(shed->archiver, shed->work, SILT_AUDIT_BYTES, reason, err);
}

static enum silt_status look_again(struct shed *shed, struct silt_err *err)
{
    struct silt_custody custody;
    bool go;
    return silt_judge(shed->archiver, shed->work, &custody, &go, err);
}

/* A stream without a marker: nothing is to be moved, and what goes is audited step by step. */
static enum silt_status carry_out_exactly(struct shed *shed, const struct silt_plan *plan,
                                          struct silt_err *err)
{
    struct silt_work *work = shed->work;
    const struct silt_look *look = &shed->archiver->look;
    if (!look->facts.has_first || !silt_wire_id_less(look->facts.first, plan->threshold))
        return SILT_OK;
    if (look->groups_denied && work->config->groups == SILT_GROUPS_HOLD) {
        silt_fail(
            err, SILT_ERR_SERVER_DENIED,
            "XINFO GROUPS is denied: what groups still need cannot be seen, so nothing is trimmed");
        silt_hint(err, "allow xinfo|groups on this key, or set groups: ignore");
        return SILT_ERR_SERVER_DENIED;
    }
    enum silt_status status =
        silt_shed_exact(shed->archiver, work, shed->custody, plan->threshold, err);
    if (status == SILT_OK && SILT_FAULTPOINT("after-trim"))
        return silt_fail(err, SILT_ERR_SERVER_AWAY, "a test cut the connection");
    return status == SILT_OK && work->status == SILT_OK ? look_again(shed, err) : status;
}

static enum silt_status carry_out(struct shed *shed, struct silt_floors *floors,
                                  struct silt_err *err)
{
    struct silt_work *work = shed->work;
    enum silt_status status = silt_floors_gather(shed->archiver, work, floors, err);
    if (status != SILT_OK) return status;
    struct silt_plan plan = silt_plan_trim(&floors->plan);
    name_holder(work, &floors->plan, &plan);
    if (silt_work_claimless(work)) return carry_out_exactly(shed, &plan, err);
    status = aim(shed, floors, err);
    if (status != SILT_OK) return status;
    const struct silt_facts *facts = &shed->target.facts;
    bool due = facts->has_first && silt_wire_id_less(facts->first, plan.threshold);
    if (!due)
        return silt_wire_id_equal(shed->target.marker_at, shed->target.marker_to) ? SILT_OK
                                                                                  : mark(shed, err);
    bool fine;
    status = account(shed, plan.threshold, &fine, err);
    if (status != SILT_OK || !fine) return status;
    status = trim(shed, plan.threshold, err);
    return status == SILT_OK && work->status == SILT_OK ? look_again(shed, err) : status;
}

enum silt_status silt_shed(struct silt_archiver *archiver, struct silt_work *work,
                           const struct silt_custody *custody, struct silt_err *err)
{
    SILT_CLEANUP(silt_floors_release) struct silt_floors floors = {0};
    SILT_CLEANUP(release_shed)
    struct shed shed = {.archiver = archiver, .work = work, .custody = custody};
    return carry_out(&shed, &floors, err);
}
