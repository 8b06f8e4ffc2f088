/* One stream record and lists of them. Must not know where entries come from or go to. */
#include "entry.h"

#include "alloc.h"

bool silt_entry_equal(const struct silt_entry *a, const struct silt_entry *b)
{
    if (!silt_wire_id_equal(a->id, b->id) || a->field_count != b->field_count) return false;
    for (size_t i = 0; i < a->field_count; i++)
        if (!silt_view_equal(a->fields[i].name, b->fields[i].name) ||
            !silt_view_equal(a->fields[i].value, b->fields[i].value))
            return false;
    return true;
}

uint64_t silt_entry_bytes(const struct silt_entry *entry)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < entry->field_count; i++)
        bytes += entry->fields[i].name.len + entry->fields[i].value.len;
    return bytes;
}

/* The digest's input, gathered so that a usual entry is hashed in one call. Where it is cut follows from the lengths
 * alone, and every length is in it before its bytes: equal digests need equal boundaries. */
struct gather {
    uint64_t digest;
    size_t len;
    uint8_t bytes[2048];
};

static void gather_flush(struct gather *gather)
{
    gather->digest = silt_checksum(silt_view(gather->bytes, gather->len), gather->digest);
    gather->len = 0;
}

/* Most names and values are short, and a call of memcpy for each costs more than their hash: pieces of fixed length that may
 * overlap need none. */
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t len)
{
    if (len >= 8 && len <= 16) {
        memcpy(to, from, 8);
        memcpy(to + len - 8, from + len - 8, 8);
    } else if (len >= 4 && len < 8) {
        memcpy(to, from, 4);
        memcpy(to + len - 4, from + len - 4, 4);
    } else if (len > 16) {
        memcpy(to, from, len);
    } else {
        for (size_t i = 0; i < len; i++)
            to[i] = from[i];
    }
}

static void gather_put(struct gather *gather, struct silt_view view)
{
    if (view.len > sizeof gather->bytes - gather->len) {
        gather_flush(gather);
        if (view.len > sizeof gather->bytes / 2) {
            gather->digest = silt_checksum(view, gather->digest);
            return;
        }
    }
    copy_short(gather->bytes + gather->len, view.at, view.len);
    gather->len += view.len;
}

uint64_t silt_entry_digest(const struct silt_entry *entry, uint64_t so_far)
{
    struct gather gather;
    gather.digest = so_far;
    gather.len = 24;
    silt_put_le64(gather.bytes, entry->id.ms);
    silt_put_le64(gather.bytes + 8, entry->id.seq);
    silt_put_le64(gather.bytes + 16, entry->field_count);
    for (size_t i = 0; i < entry->field_count; i++) {
        const struct silt_field *field = &entry->fields[i];
        if (sizeof gather.bytes - gather.len < 16) gather_flush(&gather);
        silt_put_le64(gather.bytes + gather.len, field->name.len);
        silt_put_le64(gather.bytes + gather.len + 8, field->value.len);
        gather.len += 16;
        gather_put(&gather, field->name);
        gather_put(&gather, field->value);
    }
    if (gather.len > 0) gather_flush(&gather);
    return gather.digest;
}

bool silt_entry_is_ours(const struct silt_entry *entry, struct silt_namespace ns,
                        size_t *ret_id_field)
{
    if (silt_namespace_is_none(ns)) return false;
    for (size_t i = 0; i < entry->field_count; i++) {
        const struct silt_field *field = &entry->fields[i];
        if (field->name.len != 2 || memcmp(field->name.at, "id", 2) != 0) continue;
        uint64_t snowflake;
        if (field->value.len != SILT_BRANDED_ID_LEN ||
            memcmp(field->value.at, ns.letters, 3) != 0 ||
            !silt_base62_decode(field->value.at + 3, &snowflake) ||
            !silt_wire_id_equal(silt_snowflake_to_wire(snowflake), entry->id))
            return false; /* only the first id pair counts */
        *ret_id_field = i;
        return true;
    }
    return false;
}

enum silt_status silt_entry_list_add(struct silt_entry_list *list, const struct silt_entry *entry)
{
    void *entries = list->entries;
    if (silt_grow(&entries, &list->cap, list->count + 1, sizeof *list->entries) != 0)
        return SILT_ERR_MEMORY;
    list->entries = entries;
    enum silt_status status;
    if ((status = silt_buf_reserve(&list->bytes, silt_entry_bytes(entry))) != SILT_OK ||
        (status = silt_buf_put(&list->fields, entry->fields,
                               entry->field_count * sizeof *entry->fields)) != SILT_OK)
        return status;
    struct silt_buf *bytes = &list->bytes;
    for (size_t i = 0; i < entry->field_count; i++) {
        struct silt_view parts[2] = {entry->fields[i].name, entry->fields[i].value};
        for (int part = 0; part < 2; part++) {
            if (parts[part].len == 0) continue;
            memcpy(bytes->at + bytes->len, parts[part].at, parts[part].len); /* reserved above */
            bytes->len += parts[part].len;
        }
    }
    list->entries[list->count] = *entry;
    list->entries[list->count++].fields = NULL; /* nothing borrowed stays */
    return SILT_OK;
}

/* Fields and bytes lie in the order they were added, so the lengths alone tell every place. */
void silt_entry_list_seal(struct silt_entry_list *list)
{
    /* The buffer came from the heap: aligned for any type. */
    struct silt_field *field = (struct silt_field *)(void *)list->fields.at;
    const uint8_t *at = list->bytes.at;
    for (size_t i = 0; i < list->count; i++) {
        struct silt_entry *entry = &list->entries[i];
        entry->fields = field;
        for (size_t j = 0; j < entry->field_count; j++, field++) {
            field->name.at = at;
            if (field->name.len) at += field->name.len;
            field->value.at = at;
            if (field->value.len) at += field->value.len;
        }
    }
}

void silt_entry_list_clear(struct silt_entry_list *list)
{
    list->count = 0;
    silt_buf_clear(&list->fields);
    silt_buf_clear(&list->bytes);
}

void silt_entry_list_release(struct silt_entry_list *list)
{
    if (list == NULL) return;
    silt_free(list->entries);
    silt_buf_release(&list->fields);
    silt_buf_release(&list->bytes);
    *list = (struct silt_entry_list){0};
}

enum silt_status silt_entry_copy(const struct silt_entry *entry, struct silt_entry **ret)
{
    size_t head = sizeof *entry + entry->field_count * sizeof *entry->fields;
    struct silt_entry *copy = silt_alloc(head + silt_entry_bytes(entry));
    if (copy == NULL) return SILT_ERR_MEMORY;
    struct silt_field *fields = (struct silt_field *)(void *)(copy + 1);
    uint8_t *to = (uint8_t *)copy + head;
    for (size_t i = 0; i < entry->field_count; i++) {
        struct silt_view parts[2] = {entry->fields[i].name, entry->fields[i].value};
        for (int part = 0; part < 2; part++) {
            if (parts[part].len > 0) memcpy(to, parts[part].at, parts[part].len);
            parts[part].at = to;
            to += parts[part].len;
        }
        fields[i] = (struct silt_field){parts[0], parts[1]};
    }
    *copy = (struct silt_entry){entry->id, fields, entry->field_count};
    *ret = copy;
    return SILT_OK;
}

void silt_entry_free(struct silt_entry *entry)
{
    silt_free(entry);
}
