/* One stream record: an id and an ordered list of (name, value) byte strings, all of any bytes, names may repeat or be empty. */
#ifndef SILT_ENTRY_H
#define SILT_ENTRY_H

#include "branded_id.h"

#ifdef __cplusplus
extern "C" {
#endif

struct silt_field {
    struct silt_view name;
    struct silt_view value;
};

/* Borrowed: fields and their bytes belong to whoever gave the entry. */
struct silt_entry {
    struct silt_wire_id id;
    const struct silt_field *fields;
    size_t field_count;
};

/* Limits enforced on write and on read (format/README.md). */
#define SILT_ENTRY_FIELDS_MAX (1u << 20)
#define SILT_ENTRY_BYTES_MAX (512u << 20) /* names and values of one entry */

bool silt_entry_equal(const struct silt_entry *a, const struct silt_entry *b);
/* Names and values, as `keep: bytes` counts them. */
uint64_t silt_entry_bytes(const struct silt_entry *entry);
/* XXH64 over a length-prefixed form of id, names and values, chained: digest of a run of entries = the last call's result. */
uint64_t silt_entry_digest(const struct silt_entry *entry, uint64_t so_far);

/* The rule of contract.md §1.5: ours when the first `id` pair's value is a valid id of the namespace and names this wire id. Gives that
 * pair's index; false: a foreign entry. Always false for a namespace of none. */
bool silt_entry_is_ours(const struct silt_entry *entry, struct silt_namespace ns,
                        size_t *ret_id_field);

/* Entries one owner keeps: an arena and arrays, reused. {0} is empty. */
struct silt_entry_list {
    struct silt_entry *entries;
    size_t count;
    size_t cap;
    struct silt_buf fields; /* silt_field structs */
    struct silt_buf bytes;
};
/* Copies the entry in. Earlier entries' views are re-based by silt_entry_list_seal, so views are valid only after sealing. */
SILT_MUST_USE enum silt_status silt_entry_list_add(struct silt_entry_list *list,
                                                   const struct silt_entry *entry);
void silt_entry_list_seal(struct silt_entry_list *list);
void silt_entry_list_clear(struct silt_entry_list *list);
void silt_entry_list_release(struct silt_entry_list *list);

/* An owned copy in one block; freed with silt_entry_free. */
SILT_MUST_USE enum silt_status silt_entry_copy(const struct silt_entry *entry,
                                               struct silt_entry **ret);
void silt_entry_free(struct silt_entry *entry);

#ifdef __cplusplus
}
#endif

#endif
