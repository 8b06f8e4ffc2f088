/* The end of an audit (protocol.md §3, the rows that audit). Pure: findings in, a conclusion out. Must not know server, store or clock. */
#include "conclude.h"

#include <stdio.h>

bool silt_audit_settles(enum silt_audit_cause cause)
{
    return cause != SILT_AUDIT_READ_BACK && cause != SILT_AUDIT_TRIM_ALARM;
}

const char *silt_audit_end_name(enum silt_audit_end end)
{
    switch (end) {
    case SILT_AUDIT_WAIT: return "wait";
    case SILT_AUDIT_SAME: return "same life";
    case SILT_AUDIT_LATE: return "same life, late entries";
    case SILT_AUDIT_FORK: return "fork";
    case SILT_AUDIT_RECREATED: return "recreated";
    }
    return "unknown";
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static struct silt_wire_id before(struct silt_wire_id id)
{
    struct silt_wire_id ret = SILT_WIRE_ID_MIN;
    return silt_wire_id_prev(id, &ret) ? ret : SILT_WIRE_ID_MIN;
}

static bool is_absent(const struct silt_audit_input *input)
{
    /* An adopted stream had no marker of ours that vouched for the object. */
    return input->row->audit.cause == SILT_AUDIT_MARKER_ABSENT ||
           input->row->audit.cause == SILT_AUDIT_ADOPTED;
}

/* ---- which life ---- */

static enum silt_audit_end decide(const struct silt_audit_input *input)
{
    const struct silt_audit *audit = &input->row->audit;
    const struct silt_stream_row *row = input->row;
    bool absent = is_absent(input);
    bool read = audit->equal + audit->absent + audit->conflict > 0;
    bool short_of_w = silt_wire_id_less(audit->through, row->watermark);
    if (absent && !read) {
        if (!input->closing->has_first) return SILT_AUDIT_WAIT;
        if (silt_wire_id_less(row->watermark, input->closing->first)) return SILT_AUDIT_RECREATED;
        return SILT_AUDIT_FORK; /* ids began again below W, and what was there first has gone */
    }
    if (audit->conflict > 0) return SILT_AUDIT_FORK;
    if (audit->absent == 0) return SILT_AUDIT_SAME;
    /* an entry below the life's own fork belongs into its parent, which is closed */
    if (input->has_fork && silt_wire_id_less(audit->difference, input->fork))
        return SILT_AUDIT_FORK;
    if (!absent || audit->equal > 0) return SILT_AUDIT_LATE;
    /* Marker absent, nothing known: a plain stream began anew; branded ids are minted once, so they may have come late. */
    return short_of_w || silt_namespace_is_none(row->ns) ? SILT_AUDIT_FORK : SILT_AUDIT_LATE;
}

/* ---- what is gone ---- */

static void begin_gap(const struct silt_audit_input *input, struct silt_gap_row *gap)
{
    const struct silt_stream_row *row = input->row;
    *gap = (struct silt_gap_row){.life = row->life,
                                 .range = {row->watermark, row->audit.last_seen},
                                 .has_count = true,
                                 .noticed_ms = input->now_ms};
    if (silt_wire_id_compare(gap->range.through, row->watermark) <= 0 &&
        !silt_wire_id_next(row->watermark, &gap->range.through))
        gap->range.through = row->watermark;
}

/* Entries above W that some look showed and no fold took, and that are not booked as gone with the key already. */
static uint64_t once_seen(const struct silt_audit_input *input)
{
    const struct silt_stream_row *row = input->row;
    uint64_t booked = row->lost_added > row->custody_added ? row->lost_added : row->custody_added;
    return less(less(row->audit.added_seen, booked), input->archived_above);
}

static bool is_back(const struct silt_audit_input *input)
{
    const struct silt_audit *audit = &input->row->audit;
    return audit->went_back || audit->opening_added < audit->added_seen;
}

/* Where no fact went back, the old count still promises what was added above C: what others removed while nobody looked, server restart or not, is then found
 * missing by the next fold. In another history (a failover that lost entries and took as many new ones) it promises too little, never too much. */
static void keep_count(const struct silt_audit_input *input, struct silt_audit_conclusion *ret)
{
    const struct silt_stream_row *row = input->row;
    const struct silt_audit *audit = &row->audit;
    if (is_back(input) || audit->cause == SILT_AUDIT_FOLD_COUNT || !row->folded_any ||
        !silt_wire_id_equal(audit->through, row->custody))
        return;
    uint64_t kept = less(row->custody_added, audit->equal - audit->prefix);
    if (kept < ret->custody_added) ret->custody_added = kept;
}

/* Which of them are live again nobody can say where others were added meanwhile: hence `between`. What rolls back is the end of the history, so at least as
 * many are gone as EA went back. */
static void count_rolled_back(const struct silt_audit_input *input,
                              struct silt_audit_conclusion *ret)
{
    const struct silt_audit *audit = &input->row->audit;
    uint64_t seen = once_seen(input);
    if (!is_back(input) || seen == 0) return;
    uint64_t above = less(audit->opening_length, audit->equal + audit->absent + audit->conflict);
    uint64_t fell = less(audit->added_seen, audit->opening_added);
    uint64_t least = less(seen, above);
    if (fell > seen) fell = seen;
    if (least < fell) least = fell;
    begin_gap(input, &ret->gap);
    ret->gap.cause = is_absent(input) ? SILT_GAP_UNKNOWN : SILT_GAP_ROLLED_BACK;
    ret->gap.precision = least == seen ? SILT_GAP_AT_LEAST : SILT_GAP_BETWEEN;
    ret->gap.count = least;
    ret->gap.count_max = seen;
    ret->has_gap = true;
}

/* Another object under the same key, or the same one without its marker. If EA cannot be the old object's, it began at 0, and the next fold counts the new one
 * from there; else all that ever went from above C is counted here, and nothing of it again. */
static void count_recreated(const struct silt_audit_input *input, struct silt_audit_conclusion *ret)
{
    const struct silt_stream_row *row = input->row;
    const struct silt_facts *now = input->closing;
    bool back = row->audit.went_back || now->entries_added < row->audit.added_seen ||
                less(now->entries_added, now->length) < row->custody_added;
    begin_gap(input, &ret->gap);
    ret->gap.cause = SILT_GAP_UNKNOWN;
    if (back) {
        ret->custody_added = 0;
        ret->gap.precision = SILT_GAP_AT_LEAST;
        ret->gap.count = ret->gap.count_max = once_seen(input);
        ret->has_gap = ret->gap.count > 0;
        return;
    }
    uint64_t booked = less(row->lost_added, row->custody_added);
    ret->custody_added = now->entries_added - now->length;
    ret->gap.count_max = ret->custody_added;
    ret->gap.count = less(ret->custody_added - row->custody_added, booked);
    ret->gap.precision = ret->gap.count == ret->gap.count_max ? SILT_GAP_EXACT : SILT_GAP_BETWEEN;
    ret->gap.range.through = before(now->first);
    ret->has_gap = ret->gap.count_max > 0;
}

/* ---- all of it ---- */

static void spell(const struct silt_audit_input *input, struct silt_audit_conclusion *ret)
{
    char at[SILT_WIRE_ID_TEXT];
    const struct silt_audit *audit = &input->row->audit;
    silt_wire_id_format(ret->end == SILT_AUDIT_FORK ? ret->fork : ret->custody, at);
    snprintf(ret->sentence, sizeof ret->sentence,
             "%s at %s: %llu live entries as archived, %llu absent, %llu with other bytes",
             silt_audit_end_name(ret->end), at, (unsigned long long)audit->equal,
             (unsigned long long)audit->absent, (unsigned long long)audit->conflict);
}

struct silt_audit_conclusion silt_audit_conclude(const struct silt_audit_input *input)
{
    const struct silt_stream_row *row = input->row;
    const struct silt_audit *audit = &row->audit;
    const struct silt_facts *now = input->closing;
    struct silt_audit_conclusion ret = {.end = decide(input), .watermark = row->watermark};
    uint64_t still = input->still < now->length ? input->still : now->length;
    ret.custody = audit->has_difference ? before(audit->difference) : audit->through;
    ret.custody_added = less(now->entries_added, now->length - still);
    ret.added_estimated = true;
    switch (ret.end) {
    case SILT_AUDIT_WAIT: return ret;
    case SILT_AUDIT_RECREATED:
        ret.custody = row->watermark;
        ret.added_estimated = false;
        count_recreated(input, &ret);
        break;
    case SILT_AUDIT_FORK:
        ret.fork = audit->difference;
        if (!audit->has_difference && !silt_wire_id_next(audit->through, &ret.fork))
            ret.fork = audit->through;
        ret.watermark = ret.custody;
        count_rolled_back(input, &ret);
        break;
    case SILT_AUDIT_SAME:
    case SILT_AUDIT_LATE:
        keep_count(input, &ret);
        count_rolled_back(input, &ret);
        break;
    }
    spell(input, &ret);
    return ret;
}
