/* silt id: one place in time, written every way there is. */
#include "bound.h"
#include "command.h"
#include "session.h"

const struct silt_verb_text silt_text_id = {
    .about =
        "Each TEXT is a branded id (14 bytes), a wire id <ms>-<seq>, a bare number of milliseconds, an RFC 3339 "
        "instant, or a snowflake number (a number that would lie after the year 9999 as milliseconds). It is "
        "shown in every other form that it has.\n\n"
        "A wire id or snowflake has a branded form in the namespace that --ids names. An instant and bare "
        "milliseconds name a whole millisecond: its first and its last id are shown.\n\n"
        "A text that is none of these is refused with the gate that it failed at; the others are still shown.",
    .examples = "silt id EVT000xY9Wvvcd\n"
                "silt id --ids 'branded EVT' 1772366400000-45061 2026-03-01T12:00:00Z",
};

struct place {
    const char *kind;
    struct silt_namespace ns; /* none: not known */
    struct silt_wire_id first, last;
};

/* A number too large for milliseconds of our calendar: the snowflake it must be. */
static bool is_snowflake(struct silt_view text, uint64_t *ret)
{
    return silt_parse_u64(text, ret) && *ret > 253402300799999ULL && *ret <= SILT_SNOWFLAKE_MAX;
}

static enum silt_status find_place(struct silt_view text, struct silt_namespace ns,
                                   struct place *ret, struct silt_err *err)
{
    uint64_t snowflake;
    struct silt_branded_id branded;
    struct silt_namespace any = {0};
    *ret = (struct place){.kind = "wire", .ns = ns};
    if (is_snowflake(text, &snowflake)) {
        ret->kind = "snowflake";
        ret->first = ret->last = silt_snowflake_to_wire(snowflake);
        return SILT_OK;
    }
    enum silt_status status = silt_bound_parse(text, SILT_EDGE_FROM, any, &ret->first, err);
    if (status == SILT_OK) status = silt_bound_parse(text, SILT_EDGE_TO, any, &ret->last, err);
    if (status != SILT_OK) return status;
    if (silt_branded_id_parse(text, &branded, NULL) == SILT_OK) {
        ret->kind = "branded";
        ret->ns = branded.ns;
    } else if (!silt_wire_id_equal(ret->first, ret->last)) {
        ret->kind = silt_parse_u64(text, &snowflake) ? "milliseconds" : "instant";
    }
    return SILT_OK;
}

static void json_side(struct silt_out *out, struct silt_wire_id id, struct silt_namespace ns)
{
    uint64_t snowflake;
    bool nameable = silt_snowflake_from_wire(id, &snowflake);
    char branded[SILT_WIRE_ID_TEXT], number[24];
    silt_id_text(id, ns, branded);
    snprintf(number, sizeof number, "%llu", (unsigned long long)snowflake);
    silt_json_name(out, "id");
    silt_json_wire_id(out, id);
    silt_json_name(out, "branded");
    silt_json_str(out, nameable && !silt_namespace_is_none(ns) ? branded : NULL);
    silt_json_name(out, "snowflake"); /* as text: most readers of JSON have 53 bits */
    silt_json_str(out, nameable ? number : NULL);
    if (!nameable) return;
    silt_json_name(out, "node");
    silt_json_u64(out, silt_snowflake_node(snowflake));
    silt_json_name(out, "seq");
    silt_json_u64(out, silt_snowflake_seq(snowflake));
    silt_json_name(out, "hash32");
    silt_json_u64(out, silt_snowflake_hash32(snowflake));
}

static void show_json(struct silt_out *out, const char *text, const struct place *place)
{
    char instant[SILT_INSTANT_TEXT];
    silt_id_instant(place->first, instant);
    silt_json_open(out, '{');
    silt_json_name(out, "text");
    silt_json_str(out, text);
    silt_json_name(out, "kind");
    silt_json_str(out, place->kind);
    silt_json_name(out, "instant");
    silt_json_str(out, *instant ? instant : NULL);
    json_side(out, place->first, place->ns);
    if (!silt_wire_id_equal(place->first, place->last)) {
        silt_json_name(out, "last");
        silt_json_open(out, '{');
        json_side(out, place->last, place->ns);
        silt_json_close(out, '}');
    }
    silt_json_close(out, '}');
    silt_json_end_line(out);
}

static void show_side(struct silt_out *out, const char *label, struct silt_wire_id id,
                      struct silt_namespace ns)
{
    char wire[SILT_WIRE_ID_TEXT], branded[SILT_WIRE_ID_TEXT];
    uint64_t snowflake;
    silt_wire_id_format(id, wire);
    silt_out_printf(out, "  %-11s%s", label, wire);
    if (!silt_snowflake_from_wire(id, &snowflake)) {
        silt_out_text(out, "  (no branded form)\n");
        return;
    }
    silt_id_text(id, ns, branded);
    if (!silt_namespace_is_none(ns)) silt_out_printf(out, "  %s", branded);
    silt_out_printf(out, "\n  %-11s%llu  node %u  sequence %u  hash32 %u\n", "snowflake",
                    (unsigned long long)snowflake, silt_snowflake_node(snowflake),
                    silt_snowflake_seq(snowflake), silt_snowflake_hash32(snowflake));
}

static void show_text(struct silt_out *out, const char *text, const struct place *place)
{
    char instant[SILT_INSTANT_TEXT];
    silt_id_instant(place->first, instant);
    silt_out_bytes(out, silt_view_str(text), false);
    silt_out_printf(out, "  (%s)\n", place->kind);
    silt_out_printf(out, "  %-11s%s\n", "instant", *instant ? instant : "after the year 9999");
    if (silt_wire_id_equal(place->first, place->last)) {
        show_side(out, "wire id", place->first, place->ns);
    } else {
        show_side(out, "first id", place->first, place->ns);
        /* The last id that a mint can make; the server would take higher ones. */
        show_side(out, "last mint", (struct silt_wire_id){place->first.ms, SILT_TAIL_MAX},
                  place->ns);
        show_side(out, "last id", place->last, place->ns);
    }
}

enum silt_status silt_cmd_id(struct silt_call *call)
{
    struct silt_namespace ns = {0};
    const char *ids = silt_call_option(call, "ids");
    if (ids != NULL) {
        enum silt_status status = silt_ids_parse(ids, &ns, &call->err);
        if (status != SILT_OK) return status;
    }
    for (size_t i = 0; i < call->arg_count; i++) {
        struct place place;
        enum silt_status status = find_place(silt_view_str(call->args[i]), ns, &place, &call->err);
        if (status != SILT_OK) {
            silt_say_err(&call->err);
            if (call->exit_code == 0) call->exit_code = silt_status_exit_code(status);
        } else if (call->json) {
            show_json(&call->out, call->args[i], &place);
        } else {
            show_text(&call->out, call->args[i], &place);
        }
    }
    return SILT_OK;
}
