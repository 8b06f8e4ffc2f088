/* See trim_exact.h. Sends trim_exact.lua, or XDEL where scripts are refused. Must not know plans, pages or the loop. */
#include "trim_exact.h"

#include <inttypes.h>

enum { WORDS = 6 + 2 * SILT_EXACT_MOST };

/* Promise 1: each of them is named by what was just read back, none above custody, and never the newest. */
static enum silt_status check(const struct silt_exact *exact, const struct silt_receipt *receipt,
                              struct silt_err *err)
{
    if (!receipt) return silt_fail(err, SILT_ERR_PROTECTED, "no receipt for a removal");
    const struct silt_receipt_facts *proof = silt_receipt_facts(receipt);
    if (proof->stream != exact->stream || proof->life != exact->life)
        return silt_fail(err, SILT_ERR_PROTECTED,
                         "the receipt is of another stream or life: %" PRIu64 ", %" PRIu64,
                         proof->stream, proof->life);
    if (exact->count == 0 || exact->count > SILT_EXACT_MOST || exact->count > proof->count)
        return silt_fail(err, SILT_ERR_PROTECTED,
                         "%zu entries are to go where the receipt proves %" PRIu64, exact->count,
                         proof->count);
    for (size_t i = 0; i < exact->count; i++) {
        char text[SILT_WIRE_ID_TEXT];
        struct silt_wire_id id = exact->entries[i].id;
        bool proven = silt_wire_id_less(proof->after, id) && !silt_wire_id_less(proof->through, id);
        if (proven && !silt_wire_id_less(exact->custody, id) &&
            silt_wire_id_less(id, exact->newest) &&
            (i == 0 || silt_wire_id_less(exact->entries[i - 1].id, id)))
            continue;
        silt_wire_id_format(id, text);
        return silt_fail(err, SILT_ERR_PROTECTED, "entry %s is not one of those that may go", text);
    }
    return SILT_OK;
}

static bool has_claim(const struct silt_exact *exact)
{
    return exact->claim_key.len > 0;
}

static enum silt_status read_answer(struct silt_conn *conn, const struct silt_reply *reply,
                                    uint64_t *ret_removed, struct silt_err *err)
{
    bool list = reply->node_count >= 3 && reply->nodes[0].type == SILT_NODE_ARRAY &&
                silt_reply_is_text(reply, 1);
    if (list && silt_view_equal(silt_reply_text(reply, 1), silt_view_str("OK")) &&
        reply->nodes[0].size == 2 && reply->nodes[2].type == SILT_NODE_INTEGER) {
        *ret_removed = reply->nodes[2].value;
        return SILT_OK;
    }
    enum silt_status stale = silt_script_stale(reply, err);
    return stale != SILT_OK ? stale : silt_conn_nonsense(conn, err, "the removing script's answer");
}

static enum silt_status by_script(struct silt_trimmer *trimmer, struct silt_conn *conn,
                                  const struct silt_exact *exact, uint64_t *ret_removed,
                                  struct silt_err *err)
{
    struct silt_view argv[WORDS];
    char ids[SILT_EXACT_MOST][SILT_WIRE_ID_TEXT], sums[SILT_EXACT_MOST][SILT_SHA1_TEXT];
    size_t argc = 2; /* command and script are silt_trimmer_script's */
    argv[argc++] = silt_view_str(has_claim(exact) ? "2" : "1");
    argv[argc++] = exact->key;
    if (has_claim(exact)) argv[argc++] = exact->claim_key;
    argv[argc++] = silt_view_str(has_claim(exact) ? exact->claim : "");
    for (size_t i = 0; i < exact->count; i++) {
        silt_wire_id_format(exact->entries[i].id, ids[i]);
        silt_sha1_entry(&exact->entries[i], sums[i]);
        argv[argc++] = silt_view_str(ids[i]);
        argv[argc++] = silt_view_str(sums[i]);
    }
    enum silt_status status = silt_trimmer_script(
        trimmer, conn, exact->generation,
        (struct silt_script){silt_trim_exact_script, trimmer->exact_sha1}, argv, argc, err);
    return status == SILT_OK ? read_answer(conn, &trimmer->reply, ret_removed, err) : status;
}

/* Without scripts the claim is read right before, too. */
static enum silt_status check_claim(struct silt_trimmer *trimmer, struct silt_conn *conn,
                                    const struct silt_exact *exact, struct silt_err *err)
{
    const struct silt_view argv[] = {silt_view_str("GET"), exact->claim_key};
    enum silt_status status =
        silt_conn_call_on(conn, exact->generation, argv, 2, &trimmer->reply, err);
    if (status != SILT_OK) return status;
    if (silt_reply_is_text(&trimmer->reply, 0) &&
        silt_view_equal(silt_reply_text(&trimmer->reply, 0), silt_view_str(exact->claim)))
        return SILT_OK;
    return silt_fail(err, SILT_ERR_STALE, "the claim key changed since it was read");
}

static enum silt_status by_command(struct silt_trimmer *trimmer, struct silt_conn *conn,
                                   const struct silt_exact *exact, uint64_t *ret_removed,
                                   struct silt_err *err)
{
    struct silt_view argv[WORDS];
    char ids[SILT_EXACT_MOST][SILT_WIRE_ID_TEXT];
    size_t argc = 0;
    enum silt_status status = has_claim(exact) ? check_claim(trimmer, conn, exact, err) : SILT_OK;
    if (status != SILT_OK) return status;
    argv[argc++] = silt_view_str("XDEL");
    argv[argc++] = exact->key;
    for (size_t i = 0; i < exact->count; i++) {
        silt_wire_id_format(exact->entries[i].id, ids[i]);
        argv[argc++] = silt_view_str(ids[i]);
    }
    status = silt_conn_call_on(conn, exact->generation, argv, argc, &trimmer->reply, err);
    if (status != SILT_OK) return status;
    if (trimmer->reply.nodes[0].type != SILT_NODE_INTEGER)
        return silt_conn_nonsense(conn, err, "XDEL to answer with a number");
    *ret_removed = trimmer->reply.nodes[0].value;
    return SILT_OK;
}

enum silt_status silt_trim_exact(struct silt_trimmer *trimmer, struct silt_conn *conn,
                                 const struct silt_exact *exact, const struct silt_receipt *receipt,
                                 uint64_t *ret_removed, struct silt_err *err)
{
    enum silt_status status = check(exact, receipt, err);
    if (status != SILT_OK) return status;
    if (trimmer->scriptless != exact->generation) {
        status = by_script(trimmer, conn, exact, ret_removed, err);
        bool refused = status == SILT_ERR_SERVER_DENIED || status == SILT_ERR_SERVER_REFUSED;
        if (!refused || !silt_conn_is_open(conn)) return status;
        trimmer->scriptless = exact->generation; /* asked again behind the next connection */
    }
    return by_command(trimmer, conn, exact, ret_removed, err);
}
