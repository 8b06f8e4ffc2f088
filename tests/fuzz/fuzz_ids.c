/* Ids, bounds, windows, instants, durations, keys: texts that people type. */
#include "fuzz.h"

#include "format/bound.h"
#include "format/instant.h"
#include "format/stream_key.h"

static void wire(struct silt_view text)
{
    struct silt_wire_id id, again;
    char shown[SILT_WIRE_ID_TEXT];
    if (silt_wire_id_parse(text, &id, NULL) != SILT_OK) return;
    size_t len = silt_wire_id_format(id, shown);
    if (silt_wire_id_parse(silt_view(shown, len), &again, NULL) != SILT_OK ||
        !silt_wire_id_equal(id, again))
        abort();
}

static void branded(struct silt_view text)
{
    struct silt_branded_id id;
    char shown[SILT_BRANDED_ID_LEN];
    uint64_t back;
    if (silt_branded_id_parse(text, &id, NULL) != SILT_OK) return;
    if (silt_branded_id_format(id, shown) != SILT_OK || memcmp(shown, text.at, sizeof shown) != 0)
        abort();
    if (!silt_snowflake_from_wire(silt_snowflake_to_wire(id.snowflake), &back) ||
        back != id.snowflake)
        abort();
}

static void bounds(struct silt_view text)
{
    static const struct silt_namespace evt = {"EVT"}, none = {{0}};
    struct silt_wire_id from, to;
    struct silt_range range;
    bool a = silt_bound_parse(text, SILT_EDGE_FROM, evt, &from, NULL) == SILT_OK;
    bool b = silt_bound_parse(text, SILT_EDGE_TO, none, &to, NULL) == SILT_OK;
    if (a && b && text.len != 0 && text.at[0] != '(' && silt_wire_id_less(to, from)) abort();
    if (silt_window_parse(text, evt, &range, NULL) == SILT_OK &&
        silt_wire_id_less(range.to, range.from))
        abort();
}

static void keys(struct silt_view text)
{
    struct silt_stream_key key;
    static struct silt_buf seam, claim;
    silt_buf_clear(&seam);
    silt_buf_clear(&claim);
    (void)silt_stream_key_parse(text, &key, NULL);
    (void)silt_glob_match(text, text);
    if (silt_key_seam(text, &seam, NULL) == SILT_OK &&
        (silt_key_slot(silt_buf_view(&seam)) != silt_key_slot(text) ||
         !silt_key_is_ours(silt_buf_view(&seam))))
        abort();
    if (silt_key_claim(text, &claim, NULL) == SILT_OK &&
        silt_key_slot(silt_buf_view(&claim)) != silt_key_slot(text))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct silt_view text = silt_view(data, size);
    struct silt_instant instant;
    uint64_t ms;
    char shown[64];
    wire(text);
    branded(text);
    bounds(text);
    keys(text);
    (void)silt_instant_parse(text, &instant, NULL);
    (void)silt_duration_parse(text, &ms, NULL);
    silt_escape(text, shown, sizeof shown);
    if (strlen(shown) >= sizeof shown) abort();
    return 0;
}
