/* Records of `silt load`. Must not know of servers. */
#include "records.h"

#include <stdio.h>

#include "instant.h"

void silt_record_release(struct silt_record *record)
{
    silt_json_free(record->document);
    silt_buf_release(&record->fields);
    silt_buf_release(&record->bytes);
    *record = (struct silt_record){0};
}

static enum silt_status shift(struct silt_record_ids *ids, uint64_t ms, uint64_t *ret,
                              struct silt_err *err)
{
    int64_t shifted;
    if (ms > INT64_MAX || __builtin_add_overflow((int64_t)ms, ids->shift_ms, &shifted) ||
        shifted < 0)
        return silt_fail(err, SILT_ERR_USAGE, "shifted, its time lies outside what an id can name");
    *ret = (uint64_t)shifted;
    return SILT_OK;
}

/* {"t"}: the record's time in, its id out. */
static enum silt_status id_of_time(struct silt_record_ids *ids, const struct silt_json *t,
                                   struct silt_wire_id *ret, struct silt_err *err)
{
    uint64_t ms, snowflake;
    enum silt_status status;
    if (!silt_json_get_u64(t, &ms)) {
        struct silt_instant instant;
        if (silt_json_kind(t) != SILT_JSON_STRING)
            return silt_fail(err, SILT_ERR_USAGE, "t is neither milliseconds nor an instant");
        status = silt_instant_parse(silt_view_str(silt_json_get_str(t)), &instant, err);
        if (status != SILT_OK) return status;
        if (instant.ms < 0)
            return silt_fail(err, SILT_ERR_INSTANT, "no id can lie before 1970: '%s'",
                             silt_json_get_str(t));
        ms = (uint64_t)instant.ms;
    }
    if ((status = shift(ids, ms, &ms, err)) != SILT_OK) return status;
    if (!silt_namespace_is_none(ids->ns)) {
        if ((status = silt_mint_next(&ids->mint, ms, &snowflake, err)) == SILT_OK)
            *ret = silt_snowflake_to_wire(snowflake);
        return status;
    }
    /* Counted within the millisecond; 0-0 is no id for the server. */
    bool same = ids->begun && ids->last.ms == ms;
    *ret = (struct silt_wire_id){ms, same ? ids->last.seq + 1 : ms == 0 ? 1 : 0};
    ids->last = *ret;
    ids->begun = true;
    return SILT_OK;
}

/* {"id"}: as it stands, shifted. */
static enum silt_status id_of_text(struct silt_record_ids *ids, const struct silt_json *id,
                                   struct silt_wire_id *ret, struct silt_err *err)
{
    struct silt_view text = silt_view_str(silt_json_get_str(id));
    struct silt_branded_id branded;
    uint64_t snowflake;
    enum silt_status status;
    if (silt_json_kind(id) != SILT_JSON_STRING)
        return silt_fail(err, SILT_ERR_USAGE, "id is not a string");
    if (text.len > 0 && memchr(text.at, '-', text.len) != NULL) {
        status = silt_wire_id_parse(text, ret, err);
    } else {
        status = silt_namespace_is_none(ids->ns)
                     ? silt_branded_id_parse(text, &branded, err)
                     : silt_branded_id_parse_kind(text, ids->ns, &branded, err);
        if (status == SILT_OK) *ret = silt_snowflake_to_wire(branded.snowflake);
    }
    if (status == SILT_OK && ids->shift_ms != 0) status = shift(ids, ret->ms, &ret->ms, err);
    if (status != SILT_OK) return status;
    if (!silt_namespace_is_none(ids->ns) && !silt_snowflake_from_wire(*ret, &snowflake))
        return silt_fail(err, SILT_ERR_ID_UNNAMEABLE,
                         "its id has no branded form, and the stream is branded");
    return SILT_OK;
}

static enum silt_status push(struct silt_record *record, struct silt_view name,
                             const struct silt_json *value, struct silt_err *err)
{
    struct silt_field field = {.name = name};
    if (!silt_json_get_bytes(value, &record->bytes, &field.value))
        return silt_fail(err, SILT_ERR_USAGE, "a field's value is neither a string nor {\"b64\"}");
    if (silt_buf_put(&record->fields, &field, sizeof field) != SILT_OK)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    return SILT_OK;
}

static enum silt_status push_pairs(struct silt_record *record, const struct silt_json *list,
                                   struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    for (size_t i = 0; i < silt_json_size(list) && status == SILT_OK; i++) {
        const struct silt_json *pair = silt_json_at(list, i);
        struct silt_view name;
        if (silt_json_size(pair) != 2 ||
            !silt_json_get_bytes(silt_json_at(pair, 0), &record->bytes, &name))
            return silt_fail(err, SILT_ERR_USAGE, "field %zu is not a pair of name and value",
                             i + 1);
        status = push(record, name, silt_json_at(pair, 1), err);
    }
    return status;
}

static enum silt_status push_members(struct silt_record *record, const struct silt_json *object,
                                     struct silt_err *err)
{
    void *state = NULL;
    struct silt_view name;
    const struct silt_json *value;
    enum silt_status status = SILT_OK;
    while (status == SILT_OK && silt_json_member(object, &state, &name, &value))
        status = push(record, name, value, err);
    return status;
}

/* On a branded stream the first pair is the id: one that names this very id is left in place (as `silt read --json` writes it), any other is refused. */
static enum silt_status brand(struct silt_record *record, struct silt_namespace ns,
                              const char branded[SILT_BRANDED_ID_LEN], struct silt_err *err)
{
    struct silt_field *fields = (struct silt_field *)(void *)record->fields.at;
    size_t count = record->entry.field_count, at;
    fields[0] = (struct silt_field){silt_view_str("id"), silt_view(branded, SILT_BRANDED_ID_LEN)};
    for (size_t i = 1; i <= count; i++) {
        if (!silt_view_equal(fields[i].name, silt_view_str("id"))) continue;
        struct silt_entry as_given = {record->entry.id, fields + 1, count};
        if (silt_entry_is_ours(&as_given, ns, &at)) {
            record->entry.fields = fields + 1;
            return SILT_OK;
        }
        return silt_fail(err, SILT_ERR_USAGE,
                         "a field may not be called id: it holds the branded id");
    }
    record->entry.fields = fields;
    record->entry.field_count = count + 1;
    return SILT_OK;
}

static enum silt_status collect(struct silt_record *record, struct silt_record_ids *ids,
                                struct silt_view line, struct silt_err *err)
{
    const struct silt_json *fields = silt_json_get(record->document, "fields");
    const struct silt_json *t = silt_json_get(record->document, "t");
    const struct silt_json *id = silt_json_get(record->document, "id");
    struct silt_field none = {0};
    enum silt_status status;
    if ((t == NULL) == (id == NULL))
        return silt_fail(err, SILT_ERR_USAGE, "it has %s",
                         t ? "both t and id" : "neither t nor id");
    /* No decoded value is longer than the line, so the views into `bytes` stay where they are. */
    if (silt_buf_reserve(&record->bytes, line.len + SILT_BRANDED_ID_LEN) != SILT_OK ||
        silt_buf_put(&record->fields, &none, sizeof none) != SILT_OK) /* place of the id pair */
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    if (silt_json_kind(fields) == SILT_JSON_ARRAY)
        status = push_pairs(record, fields, err);
    else if (silt_json_kind(fields) == SILT_JSON_OBJECT)
        status = push_members(record, fields, err);
    else
        status = silt_fail(err, SILT_ERR_USAGE, "fields is neither a list of pairs nor an object");
    if (status == SILT_OK)
        status = t ? id_of_time(ids, t, &record->entry.id, err)
                   : id_of_text(ids, id, &record->entry.id, err);
    return status;
}

static enum silt_status parse(struct silt_record *record, struct silt_record_ids *ids,
                              struct silt_view line, struct silt_err *err)
{
    enum silt_status status = silt_json_parse(line, &record->document, err);
    if (status != SILT_OK || (status = collect(record, ids, line, err)) != SILT_OK) return status;
    struct silt_entry *entry = &record->entry;
    const struct silt_field *fields = (const struct silt_field *)(const void *)record->fields.at;
    entry->field_count = record->fields.len / sizeof *fields - 1;
    entry->fields = fields + 1;
    if (!silt_namespace_is_none(ids->ns)) {
        struct silt_branded_id id = {.ns = ids->ns};
        char text[SILT_BRANDED_ID_LEN];
        if (!silt_snowflake_from_wire(entry->id, &id.snowflake) ||
            silt_branded_id_format(id, text) != SILT_OK)
            return silt_fail(err, SILT_ERR_ID_UNNAMEABLE, NULL);
        size_t at = record->bytes.len;
        if ((status = silt_buf_put(&record->bytes, text, sizeof text)) != SILT_OK)
            return silt_fail(err, status, NULL);
        status = brand(record, ids->ns, (const char *)record->bytes.at + at, err);
    } else if (entry->field_count == 0) {
        status = silt_fail(err, SILT_ERR_ENTRY_SHAPE, "an entry needs at least one field");
    }
    return status;
}

enum silt_status silt_record_parse(struct silt_record *record, struct silt_record_ids *ids,
                                   struct silt_view line, uint64_t number, struct silt_err *err)
{
    silt_json_free(record->document);
    record->document = NULL;
    record->line = number;
    silt_buf_clear(&record->fields);
    silt_buf_clear(&record->bytes);
    enum silt_status status = parse(record, ids, line, err);
    if (status != SILT_OK && err != NULL) {
        struct silt_err told = *err;
        silt_fail(err, status, "line %llu: %s", (unsigned long long)number, told.sentence);
        if (told.hint[0]) silt_hint(err, "%s", told.hint);
    }
    return status;
}
