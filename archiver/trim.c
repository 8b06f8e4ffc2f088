/* Sends trim.lua and checks what may be sent. Must not know plans, pages or the loop. */
#include "trim.h"
#include "trim_exact.h"

#include <inttypes.h>
#include <stdio.h>

#include "alloc.h"

enum { FIXED_ARGS = 16, COMMAND_ARGS = 3 };
#define COUNTER_LIMIT (1ULL << 53) /* above, a Lua number rounds */

void silt_trimmer_init(struct silt_trimmer *trimmer)
{
    *trimmer = (struct silt_trimmer){0};
    silt_sha1_hex(silt_view_str(silt_trim_script), trimmer->script_sha1);
    silt_sha1_hex(silt_view_str(silt_trim_exact_script), trimmer->exact_sha1);
}

void silt_trimmer_release(struct silt_trimmer *trimmer)
{
    silt_reply_release(&trimmer->reply);
    silt_buf_release(&trimmer->words);
}

/* The script's arguments as text; views point into this. */
struct words {
    char threshold[SILT_WIRE_ID_TEXT], before_threshold[SILT_WIRE_ID_TEXT], last[SILT_WIRE_ID_TEXT],
        max_deleted[SILT_WIRE_ID_TEXT], marker_at[SILT_WIRE_ID_TEXT], marker_to[SILT_WIRE_ID_TEXT],
        first[SILT_WIRE_ID_TEXT], added[24], length[24], keys[4];
};

static void spell(const struct silt_trim_target *target, struct silt_wire_id threshold,
                  struct words *words)
{
    const struct silt_facts *facts = &target->facts;
    struct silt_wire_id before = SILT_WIRE_ID_MIN;
    if (!silt_wire_id_prev(threshold, &before)) before = SILT_WIRE_ID_MIN;
    silt_wire_id_format(threshold, words->threshold);
    silt_wire_id_format(before, words->before_threshold);
    silt_wire_id_format(facts->last, words->last);
    silt_wire_id_format(facts->max_deleted, words->max_deleted);
    silt_wire_id_format(target->marker_at, words->marker_at);
    silt_wire_id_format(target->marker_to, words->marker_to);
    silt_wire_id_format(facts->has_first ? facts->first : SILT_WIRE_ID_MIN, words->first);
    snprintf(words->added, sizeof words->added, "%" PRIu64, facts->entries_added);
    snprintf(words->length, sizeof words->length, "%" PRIu64, facts->length);
    if (!target->marker_present) words->marker_at[0] = 0;
}

/* From the third word on: count of keys, keys, then trim.lua's ARGV. */
static size_t arguments(const struct silt_trim_target *target, const struct words *words,
                        struct silt_view *argv)
{
    static const char *const seams[] = {"off", "best-effort", "strict"};
    bool seam = target->seam != SILT_SEAM_OFF;
    size_t n = 2; /* command and script are silt_trimmer_script's */
    argv[n++] = silt_view_str(seam ? "2" : "1");
    argv[n++] = target->key;
    if (seam) argv[n++] = target->seam_key;
    const char *fixed[] = {target->facts.replid,
                           words->threshold,
                           words->added,
                           words->length,
                           words->last,
                           words->max_deleted,
                           target->marker,
                           words->marker_at,
                           words->marker_to,
                           words->first,
                           target->first_sha1,
                           target->hold_groups ? "hold" : "ignore",
                           words->before_threshold,
                           seams[target->seam]};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        argv[n++] = silt_view_str(fixed[i]);
    argv[n++] = target->seam_value;
    argv[n++] = silt_view_str(target->seam_branded ? "branded" : "wire");
    for (size_t i = 0; i < target->released_count; i++)
        argv[n++] = target->released[i];
    return n;
}

enum silt_status silt_trimmer_script(struct silt_trimmer *trimmer, struct silt_conn *conn,
                                     uint64_t generation, struct silt_script script,
                                     struct silt_view *argv, size_t argc, struct silt_err *err)
{
    argv[0] = silt_view_str("EVALSHA");
    argv[1] = silt_view_str(script.sha1);
    enum silt_status status = silt_conn_call_on(conn, generation, argv, argc, &trimmer->reply, err);
    if (status != SILT_ERR_NO_SCRIPT) return status;
    argv[0] = silt_view_str("EVAL");
    argv[1] = silt_view_str(script.text);
    return silt_conn_call_on(conn, generation, argv, argc, &trimmer->reply, err);
}

enum silt_status silt_script_stale(const struct silt_reply *reply, struct silt_err *err)
{
    char fact[40], value[160];
    if (reply->node_count < 4 || reply->nodes[0].type != SILT_NODE_ARRAY ||
        reply->nodes[0].size != 3 || !silt_reply_is_text(reply, 1) ||
        !silt_view_equal(silt_reply_text(reply, 1), silt_view_str("STALE")) ||
        !silt_reply_is_text(reply, 2) || !silt_reply_is_text(reply, 3))
        return SILT_OK;
    silt_escape(silt_reply_text(reply, 2), fact, sizeof fact);
    silt_escape(silt_reply_text(reply, 3), value, sizeof value);
    return silt_fail(err, SILT_ERR_STALE, "the stream changed since the look: %s is %s", fact,
                     value[0] ? value : "none");
}

static enum silt_status call(struct silt_trimmer *trimmer, struct silt_conn *conn,
                             const struct silt_trim_target *target, struct silt_wire_id threshold,
                             struct silt_err *err)
{
    struct words words;
    spell(target, threshold, &words);
    silt_buf_clear(&trimmer->words);
    size_t cap = COMMAND_ARGS + 2 + FIXED_ARGS + target->released_count;
    enum silt_status status = silt_buf_reserve(&trimmer->words, cap * sizeof(struct silt_view));
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    struct silt_view *argv = (struct silt_view *)(void *)trimmer->words.at;
    size_t argc = arguments(target, &words, argv);
    return silt_trimmer_script(trimmer, conn, target->generation,
                               (struct silt_script){silt_trim_script, trimmer->script_sha1}, argv,
                               argc, err);
}

static bool read_id(const struct silt_reply *reply, size_t node, struct silt_wire_id *ret)
{
    return silt_reply_is_text(reply, node) &&
           silt_wire_id_parse(silt_reply_text(reply, node), ret, NULL) == SILT_OK;
}

/* {'OK', removed, entries-added, length, last, max-deleted, first, its SHA-1, seam trouble} */
static bool read_ok(const struct silt_reply *reply, struct silt_trim_target *target,
                    struct silt_trim_answer *ret)
{
    if (reply->nodes[0].size != 9) return false;
    for (size_t i = 2; i <= 4; i++)
        if (reply->nodes[i].type != SILT_NODE_INTEGER || (int64_t)reply->nodes[i].value < 0)
            return false;
    struct silt_facts facts = target->facts;
    facts.entries_added = reply->nodes[3].value;
    facts.length = reply->nodes[4].value;
    if (!read_id(reply, 5, &facts.last) || !read_id(reply, 6, &facts.max_deleted) ||
        !read_id(reply, 7, &facts.first))
        return false;
    if (!silt_reply_is_text(reply, 8) || !silt_reply_is_text(reply, 9)) return false;
    struct silt_view sha1 = silt_reply_text(reply, 8);
    facts.has_first = sha1.len > 0;
    if (facts.has_first && sha1.len != SILT_SHA1_TEXT - 1) return false;
    ret->removed = reply->nodes[2].value;
    silt_escape(silt_reply_text(reply, 9), ret->seam_trouble, sizeof ret->seam_trouble);
    target->facts = facts;
    memcpy(target->first_sha1, sha1.len ? (const char *)sha1.at : "", sha1.len);
    target->first_sha1[sha1.len] = 0;
    target->marker_present = true;
    target->marker_at = target->marker_to;
    return true;
}

static enum silt_status refused(const struct silt_reply *reply, struct silt_view word,
                                struct silt_err *err)
{
    char value[120];
    enum silt_status stale = silt_script_stale(reply, err);
    if (stale != SILT_OK) return stale;
    if (reply->nodes[0].size < 2 || !silt_reply_is_text(reply, 2)) return SILT_OK;
    if (silt_view_equal(word, silt_view_str("ERR"))) {
        enum silt_status status = silt_reply_error_class(silt_reply_text(reply, 2), err);
        return status == SILT_OK ? SILT_ERR_SERVER_REFUSED : status;
    }
    if (silt_view_equal(word, silt_view_str("SEAM"))) {
        silt_escape(silt_reply_text(reply, 2), value, sizeof value);
        silt_fail(err, SILT_ERR_SERVER_REFUSED,
                  "the seam cannot be written, so nothing is trimmed: %s", value);
        silt_hint(err, "seam: best-effort trims all the same");
        return SILT_ERR_SERVER_REFUSED;
    }
    return SILT_OK;
}

static enum silt_status run(struct silt_trimmer *trimmer, struct silt_conn *conn,
                            struct silt_trim_target *target, struct silt_wire_id threshold,
                            struct silt_trim_answer *ret, struct silt_err *err)
{
    if (target->facts.entries_added >= COUNTER_LIMIT)
        return silt_fail(err, SILT_ERR_PROTECTED,
                         "entries-added %" PRIu64 " is too large for the script to compare",
                         target->facts.entries_added);
    enum silt_status status = call(trimmer, conn, target, threshold, err);
    if (status != SILT_OK) return status;
    const struct silt_reply *reply = &trimmer->reply;
    if (reply->node_count < 2 || reply->nodes[0].type != SILT_NODE_ARRAY ||
        !silt_reply_is_text(reply, 1))
        return silt_conn_nonsense(conn, err, "the trim script's answer");
    struct silt_view word = silt_reply_text(reply, 1);
    if (!silt_view_equal(word, silt_view_str("OK"))) {
        status = refused(reply, word, err);
        return status != SILT_OK ? status
                                 : silt_conn_nonsense(conn, err, "the trim script's answer");
    }
    *ret = (struct silt_trim_answer){0};
    if (!read_ok(reply, target, ret))
        return silt_conn_nonsense(conn, err, "the trim script's facts");
    return SILT_OK;
}

enum silt_status silt_trim_mark(struct silt_trimmer *trimmer, struct silt_conn *conn,
                                struct silt_trim_target *target, struct silt_trim_answer *ret,
                                struct silt_err *err)
{
    return run(trimmer, conn, target, SILT_WIRE_ID_MIN, ret, err);
}

/* Promise 1: what the receipt proves, and nothing else, may go. */
static enum silt_status check_receipt(const struct silt_trim_target *target,
                                      const struct silt_receipt *receipt,
                                      struct silt_wire_id threshold, struct silt_err *err)
{
    char at[SILT_WIRE_ID_TEXT], limit[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(threshold, at);
    if (!receipt) return silt_fail(err, SILT_ERR_PROTECTED, "no receipt for a trim below %s", at);
    const struct silt_receipt_facts *proof = silt_receipt_facts(receipt);
    if (proof->stream != target->stream || proof->life != target->life)
        return silt_fail(err, SILT_ERR_PROTECTED,
                         "the receipt is of stream %" PRIu64 " life %" PRIu64 ", not of %" PRIu64
                         " life %" PRIu64,
                         proof->stream, proof->life, target->stream, target->life);
    if (proof->count == 0) return silt_fail(err, SILT_ERR_PROTECTED, "the receipt proves no entry");
    struct silt_wire_id end = proof->through;
    bool bounded = silt_wire_id_next(proof->through, &end);
    silt_wire_id_format(end, limit);
    if (bounded && silt_wire_id_less(end, threshold))
        return silt_fail(err, SILT_ERR_PROTECTED,
                         "threshold %s lies above %s, the end of what was read back", at, limit);
    silt_wire_id_format(proof->after, limit);
    if (!target->facts.has_first || silt_wire_id_compare(target->facts.first, proof->after) <= 0)
        return silt_fail(
            err, SILT_ERR_PROTECTED,
            "the first live entry lies at or below %s, where what was read back begins", limit);
    if (silt_wire_id_compare(threshold, target->facts.first) <= 0)
        return silt_fail(err, SILT_ERR_PROTECTED, "threshold %s removes nothing", at);
    silt_wire_id_format(target->newest, limit);
    if (silt_wire_id_less(target->newest, threshold))
        return silt_fail(err, SILT_ERR_PROTECTED,
                         "threshold %s lies above the newest live entry %s", at, limit);
    if (silt_wire_id_less(target->marker_to, proof->through))
        return silt_fail(err, SILT_ERR_PROTECTED, "the receipt reaches beyond custody");
    return SILT_OK;
}

enum silt_status silt_trim(struct silt_trimmer *trimmer, struct silt_conn *conn,
                           struct silt_trim_target *target, const struct silt_receipt *receipt,
                           struct silt_wire_id threshold, struct silt_trim_answer *ret,
                           struct silt_err *err)
{
    enum silt_status status = check_receipt(target, receipt, threshold, err);
    if (status != SILT_OK) return status;
    status = run(trimmer, conn, target, threshold, ret, err);
    if (status != SILT_OK) return status;
    uint64_t named = silt_receipt_facts(receipt)->count;
    if (ret->removed > named)
        snprintf(ret->alarm, sizeof ret->alarm,
                 "a trim removed %" PRIu64 " entries where %" PRIu64 " were archived", ret->removed,
                 named);
    else if (target->facts.has_first && silt_wire_id_less(target->facts.first, threshold))
        snprintf(ret->alarm, sizeof ret->alarm, "a trim left entries below its threshold");
    return SILT_OK;
}
