/* The decision table of protocol.md §3 and the gap arithmetic of §6. Pure: facts in, a conclusion out. Must not know server, store or clock. */
#include "custody.h"

#include <stdio.h>

/* Everything silt's own groups in a stream say. */
struct claims {
    bool ours; /* the row's uuid, epoch and number */
    struct silt_wire_id at;
    const struct silt_look_group *foreign; /* another archive's, or unreadable */
    const struct silt_look_group *other;   /* our uuid, higher epoch or another number */
    const struct silt_look_group *earlier; /* our uuid, a lower epoch */
};

static struct claims read_claims(const struct silt_custody_input *input)
{
    struct claims claims = {0};
    for (size_t i = 0; i < input->look->group_count; i++) {
        const struct silt_look_group *group = &input->look->groups[i];
        if (!group->is_silt) continue;
        struct silt_marker marker;
        if (!silt_marker_parse(group->name, &marker) || strcmp(marker.uuid, input->uuid) != 0)
            claims.foreign = group;
        else if (marker.epoch < input->epoch && input->row)
            claims.earlier = group;
        else if (marker.epoch != input->epoch || !input->row ||
                 marker.number != input->row->marker_number)
            claims.other = group;
        else {
            claims.ours = true;
            claims.at = group->last_delivered;
        }
    }
    return claims;
}

static void conclude(struct silt_custody *ret, enum silt_custody_row row, const char *format, ...)
    SILT_PRINTF(3, 4);
static void conclude(struct silt_custody *ret, enum silt_custody_row row, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(ret->reason, sizeof ret->reason, format, args);
    va_end(args);
    ret->row = row;
}

static void doubt(struct silt_custody *ret, enum silt_audit_cause cause)
{
    ret->row = SILT_CUSTODY_DOUBT;
    ret->cause = cause;
}

static void conclude_group(struct silt_custody *ret, enum silt_custody_row row, const char *what,
                           const struct silt_look_group *group)
{
    char name[120], at[SILT_WIRE_ID_TEXT];
    silt_escape(group->name, name, sizeof name);
    silt_wire_id_format(group->last_delivered, at);
    conclude(ret, row, "%s: %s at %s", what, name, at);
}

/* Both are named: who holds the stream, and who may not. */
static void conclude_claim(struct silt_custody *ret, const struct silt_look_group *group,
                           const char *uuid)
{
    char name[100], at[SILT_WIRE_ID_TEXT];
    silt_escape(group->name, name, sizeof name);
    silt_wire_id_format(group->last_delivered, at);
    conclude(ret, SILT_CUSTODY_CLAIMED, "claimed by another archive: %s at %s; this one is %s",
             name, at, uuid[0] ? uuid : "new");
}

/* Text of a fact that broke, with both values. */
static void describe_break(struct silt_custody *ret, const char *fact,
                           const struct silt_facts *earlier, const struct silt_facts *later)
{
    char before[SILT_WIRE_ID_TEXT], now[SILT_WIRE_ID_TEXT];
    const struct {
        const char *name;
        uint64_t before, now;
    } numbers[] = {{"entries-added", earlier->entries_added, later->entries_added},
                   {"length", earlier->length, later->length}};
    const struct {
        const char *name;
        struct silt_wire_id before, now;
    } ids[] = {{"last-generated-id", earlier->last, later->last},
               {"max-deleted-entry-id", earlier->max_deleted, later->max_deleted},
               {"first-entry", earlier->first, later->first}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(fact, numbers[i].name) != 0) continue;
        conclude(ret, SILT_CUSTODY_DOUBT, "%s was %llu, is %llu", fact,
                 (unsigned long long)numbers[i].before, (unsigned long long)numbers[i].now);
        return;
    }
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        if (strcmp(fact, ids[i].name) != 0) continue;
        silt_wire_id_format(ids[i].before, before);
        silt_wire_id_format(ids[i].now, now);
        conclude(ret, SILT_CUSTODY_DOUBT, "%s was %s, is %s", fact, before, now);
        return;
    }
    if (strcmp(fact, "master_replid") == 0)
        conclude(ret, SILT_CUSTODY_DOUBT, "master_replid was %s, is %s: failover or restart",
                 earlier->replid, later->replid);
    else
        conclude(ret, SILT_CUSTODY_DOUBT, "the %s changed", fact);
}

const char *silt_custody_break(const struct silt_facts *earlier, const struct silt_facts *later)
{
    if (strcmp(earlier->replid, later->replid) != 0) return "master_replid";
    if (later->entries_added < earlier->entries_added) return "entries-added";
    uint64_t added = later->entries_added - earlier->entries_added;
    int last = silt_wire_id_compare(later->last, earlier->last);
    if (last < 0 || (added > 0 && last == 0)) return "last-generated-id";
    /* LEN <= LEN0 + (EA - EA0), without overflow */
    if (later->length > earlier->length && later->length - earlier->length > added) return "length";
    if (silt_wire_id_less(later->max_deleted, earlier->max_deleted)) return "max-deleted-entry-id";
    if (!later->has_first) return NULL;
    /* A stream that was empty can only show entries above its LAST of then. */
    if (!earlier->has_first)
        return silt_wire_id_compare(later->first, earlier->last) > 0 ? NULL : "first-entry";
    int first = silt_wire_id_compare(later->first, earlier->first);
    if (first < 0) return "first-entry";
    if (first == 0 && later->first_digest != earlier->first_digest) return "first entry's bytes";
    return NULL;
}

const char *silt_custody_went_back(const struct silt_facts *earlier, const struct silt_facts *later)
{
    struct silt_facts same = *later;
    memcpy(same.replid, earlier->replid, sizeof same.replid);
    return silt_custody_break(earlier, &same);
}

/* Rows for a marker that is not there. */
static void decide_absent(const struct silt_custody_input *input, struct silt_custody *ret)
{
    char w[SILT_WIRE_ID_TEXT], first[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(input->row->watermark, w);
    if (!input->look->facts.has_first) {
        conclude(ret, SILT_CUSTODY_WAIT,
                 "the marker is gone and the stream is empty: the next entry decides");
        return;
    }
    silt_wire_id_format(input->look->facts.first, first);
    doubt(ret, SILT_AUDIT_MARKER_ABSENT);
    if (silt_wire_id_less(input->row->watermark, input->look->facts.first))
        conclude(
            ret, SILT_CUSTODY_DOUBT,
            "the marker is gone and the first entry %s lies above the watermark %s: recreated, or removed by hand",
            first, w);
    else
        conclude(ret, SILT_CUSTODY_DOUBT,
                 "the marker is gone and live entries from %s lie at or below the watermark %s",
                 first, w);
}

/* Rows for our own marker on a stream that was folded before. */
static void decide_ours(const struct silt_custody_input *input, struct silt_custody *ret)
{
    const struct silt_stream_row *row = input->row;
    char at[SILT_WIRE_ID_TEXT], other[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(ret->marker_at, at);
    if (silt_wire_id_less(input->highest_watermark, ret->marker_at)) {
        silt_wire_id_format(input->highest_watermark, other);
        conclude(
            ret, SILT_CUSTODY_OTHER_COPY,
            "the marker stands at %s, above this archive's watermark %s: a newer copy of this archive is at work",
            at, other);
        return;
    }
    const char *broken =
        row->has_facts ? silt_custody_break(&row->facts, &input->look->facts) : NULL;
    if (broken) {
        describe_break(ret, broken, &row->facts, &input->look->facts);
        doubt(ret, silt_custody_went_back(&row->facts, &input->look->facts) ? SILT_AUDIT_OURS_BACK
                                                                            : SILT_AUDIT_OURS_REPL);
        return;
    }
    if (silt_wire_id_equal(ret->marker_at, row->custody)) {
        conclude(ret, SILT_CUSTODY_CONTINUES, "continues");
    } else if (silt_wire_id_equal(ret->marker_at, row->marker_found)) {
        conclude(ret, SILT_CUSTODY_MOVE_MARKER,
                 "the marker stands where the last commit found it, at %s", at);
    } else {
        silt_wire_id_format(row->custody, other);
        conclude(ret, SILT_CUSTODY_DOUBT, "the marker stands at %s, should be at %s", at, other);
        doubt(ret, SILT_AUDIT_OURS_ELSEWHERE);
    }
}

static void decide_pending(const struct silt_custody_input *input, const struct claims *claims,
                           struct silt_custody *ret)
{
    const struct silt_stream_row *row = input->row;
    const struct silt_look_group *stranger = claims->foreign ? claims->foreign
                                             : claims->other ? claims->other
                                                             : claims->earlier;
    conclude(ret, SILT_CUSTODY_AUDIT, "%.*s",
             (int)(row->verdict_reason.len < 190 ? row->verdict_reason.len : 190),
             row->verdict_reason.len ? (const char *)row->verdict_reason.at : "");
    if (claims->ours && row->folded_any &&
        silt_wire_id_less(input->highest_watermark, claims->at)) {
        char at[SILT_WIRE_ID_TEXT];
        silt_wire_id_format(claims->at, at);
        snprintf(
            ret->claim, sizeof ret->claim,
            "the audit waits: the marker stands at %s, above this archive's watermark: a newer copy of this archive is at work",
            at);
    }
    if (!stranger) return;
    char name[120];
    silt_escape(stranger->name, name, sizeof name);
    snprintf(ret->claim, sizeof ret->claim, "the audit waits: another marker stands here: %s",
             name);
}

struct silt_custody silt_custody_decide(const struct silt_custody_input *input)
{
    struct silt_custody ret = {.row = SILT_CUSTODY_WAIT};
    const struct silt_stream_row *row = input->row;
    bool stream = input->look->state == SILT_LOOK_STREAM;
    struct claims claims = stream ? read_claims(input) : (struct claims){0};
    if (stream && input->claimless) {
        claims.ours = row != NULL;
        claims.at = row && row->folded_any ? row->custody : SILT_WIRE_ID_MIN;
    }
    ret.marker_present = claims.ours;
    ret.marker_at = claims.at;

    /* The order is the table's. While an audit is pending no later row applies, whatever the facts say by accident (promise 5). */
    if (row && row->verdict == SILT_VERDICT_AUDIT_PENDING)
        decide_pending(input, &claims, &ret);
    else if (!stream)
        conclude(&ret, SILT_CUSTODY_WAIT,
                 input->look->state != SILT_LOOK_GONE ? "the key holds another type"
                 : row                                ? "the key is gone"
                                                      : "the key is not there yet");
    else if (claims.foreign)
        conclude_claim(&ret, claims.foreign, input->uuid);
    else if (claims.other)
        conclude_group(&ret, SILT_CUSTODY_OTHER_COPY,
                       "another or newer copy of this archive is at work", claims.other);
    else if (claims.earlier)
        /* left by an adoption, or brought back with an older state: the creating script would refuse beside it */
        conclude_group(&ret, SILT_CUSTODY_OTHER_COPY, "a marker of an earlier epoch",
                       claims.earlier);
    else if (!row || !row->folded_any) {
        if (claims.ours && !silt_wire_id_is_zero(claims.at))
            conclude(
                &ret, SILT_CUSTODY_OTHER_COPY,
                "our marker has moved although nothing was folded: another copy of this archive is at work");
        else
            conclude(&ret, SILT_CUSTODY_FIRST_CONTACT, "first contact");
    } else if (claims.ours)
        decide_ours(input, &ret);
    else
        decide_absent(input, &ret);
    return ret;
}

struct silt_gap_sum silt_gap_count(const struct silt_gap_input *input)
{
    struct silt_gap_sum ret = {.custody_added = input->custody_added};
    uint64_t promised =
        input->added_now < input->custody_added ? 0 : input->added_now - input->custody_added;
    if (input->added_now < input->custody_added || input->fetched > promised) {
        /* Short of LAST the entries above P are not counted; EA is then the most that A can be, and the next fold sets it right. */
        ret.rebased = input->may_rebase;
        ret.breaks = !input->may_rebase;
        if (ret.rebased) ret.custody_added = input->added_now;
        return ret;
    }
    if (input->reached_last) {
        /* counts what was fetched, never LEN: that would miss what went between look and fetch */
        ret.missing = promised - input->fetched;
        ret.custody_added = input->added_now;
        return ret;
    }
    if (input->all_above_custody) {
        if (input->fetched > input->length_now ||
            (input->length_now > promised && !input->may_rebase)) {
            ret.breaks = true;
            return ret;
        }
        if (input->length_now > promised) {
            /* every live entry lies above C: A was EA - LEN */
            ret.rebased = true;
            ret.custody_added = input->added_now - input->length_now + input->fetched;
            return ret;
        }
        ret.missing = promised - input->length_now;
    }
    ret.custody_added = input->custody_added + input->fetched + ret.missing;
    return ret;
}

bool silt_gap_is_explained(const struct silt_gap_evidence *evidence)
{
    return !evidence->has_first || silt_wire_id_less(evidence->custody, evidence->first) ||
           silt_wire_id_less(evidence->custody, evidence->max_deleted);
}

struct silt_gap_row silt_gap_describe(const struct silt_gap_evidence *evidence, uint64_t missing)
{
    struct silt_gap_row row = {
        .precision = SILT_GAP_EXACT, .has_count = true, .count = missing, .count_max = missing};
    bool head = !evidence->has_first || silt_wire_id_less(evidence->custody, evidence->first);
    bool deleted = silt_wire_id_less(evidence->custody, evidence->max_deleted);
    bool beyond = silt_wire_id_less(evidence->last,
                                    evidence->max_deleted); /* says nothing about ids up to LAST */
    struct silt_wire_id before_first = evidence->last;
    if (evidence->has_first && head && !silt_wire_id_prev(evidence->first, &before_first))
        before_first = evidence->custody;

    row.range.after = evidence->custody;
    if (deleted && !beyond && missing == 1) {
        /* an id above C was deleted for certain, and only one is missing */
        row.cause = SILT_GAP_DELETED;
        if (!silt_wire_id_prev(evidence->max_deleted, &row.range.after))
            row.range.after = evidence->custody;
        row.range.through = evidence->max_deleted;
    } else if (deleted && !head) {
        row.cause = SILT_GAP_DELETED;
        row.range.through = evidence->max_deleted;
    } else if (deleted) {
        row.cause =
            SILT_GAP_UNKNOWN; /* at least one was deleted; the others may have been trimmed */
        row.range.through = silt_wire_id_less(before_first, evidence->max_deleted)
                                ? evidence->max_deleted
                                : before_first;
    } else {
        row.cause = SILT_GAP_TRIMMED;
        row.range.through = before_first;
    }
    if (silt_wire_id_less(evidence->last, row.range.through)) row.range.through = evidence->last;
    return row;
}
