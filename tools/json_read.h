/* JSON in: a tree that is walked by name and index. Hides the JSON library. */
#ifndef SILT_JSON_READ_H
#define SILT_JSON_READ_H

#include "bytes.h"

struct silt_json; /* a value; borrowed from its document */

/* The library takes its memory from our heap from here on; call once, before all else. */
void silt_json_init(void);
/* Owns: *ret, silt_json_free. Fails with SILT_ERR_USAGE (the sentence says what is wrong and where), SILT_ERR_MEMORY. */
SILT_MUST_USE enum silt_status silt_json_parse(struct silt_view text, struct silt_json **ret,
                                               struct silt_err *err);
void silt_json_free(struct silt_json *document);

enum silt_json_kind {
    SILT_JSON_NULL,
    SILT_JSON_BOOL,
    SILT_JSON_NUMBER,
    SILT_JSON_STRING,
    SILT_JSON_ARRAY,
    SILT_JSON_OBJECT
};
enum silt_json_kind silt_json_kind(const struct silt_json *value); /* NULL counts as null */
const struct silt_json *silt_json_get(const struct silt_json *object,
                                      const char *name); /* or NULL */
size_t silt_json_size(const struct silt_json *array);    /* 0 for anything else */
const struct silt_json *silt_json_at(const struct silt_json *array, size_t index);
/* Walks an object's members in the order they stand: *state NULL to begin; false at the end. */
bool silt_json_member(const struct silt_json *object, void **state, struct silt_view *ret_name,
                      const struct silt_json **ret_value);
bool silt_json_is_true(const struct silt_json *value);
bool silt_json_get_u64(const struct silt_json *value, uint64_t *ret); /* a whole number from 0 */
/* A string, or {"b64": ...}: its bytes. The decoded form of the latter is appended to *mem, which must not move before the view is
 * used: reserve room for it first. False: neither. */
bool silt_json_get_bytes(const struct silt_json *value, struct silt_buf *mem,
                         struct silt_view *ret);
const char *silt_json_get_str(const struct silt_json *value); /* "" for anything but a string */

#endif
