/* JSON in. The only user of jansson in this folder. */
#include "json_read.h"

#include <jansson.h>

#include "alloc.h"

void silt_json_init(void)
{
    json_set_alloc_funcs(silt_alloc, silt_free);
}

static const json_t *in(const struct silt_json *value)
{
    return (const json_t *)(const void *)value;
}

static const struct silt_json *out(const json_t *value)
{
    return (const struct silt_json *)(const void *)value;
}

enum silt_status silt_json_parse(struct silt_view text, struct silt_json **ret,
                                 struct silt_err *err)
{
    json_error_t error;
    json_t *value = json_loadb((const char *)text.at, text.len,
                               JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    if (value == NULL) {
        if (json_error_code(&error) == json_error_out_of_memory)
            return silt_fail(err, SILT_ERR_MEMORY, NULL);
        char shown[200];
        silt_escape(silt_view_str(error.text), shown, sizeof shown);
        return silt_fail(err, SILT_ERR_USAGE, "not JSON: %s (column %d)", shown, error.column);
    }
    *ret = (struct silt_json *)(void *)value;
    return SILT_OK;
}

void silt_json_free(struct silt_json *document)
{
    if (document != NULL) json_decref((json_t *)(void *)document);
}

enum silt_json_kind silt_json_kind(const struct silt_json *value)
{
    if (value == NULL) return SILT_JSON_NULL;
    switch (json_typeof(in(value))) {
    case JSON_OBJECT: return SILT_JSON_OBJECT;
    case JSON_ARRAY: return SILT_JSON_ARRAY;
    case JSON_STRING: return SILT_JSON_STRING;
    case JSON_INTEGER:
    case JSON_REAL: return SILT_JSON_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE: return SILT_JSON_BOOL;
    default: return SILT_JSON_NULL;
    }
}

const struct silt_json *silt_json_get(const struct silt_json *object, const char *name)
{
    return out(json_object_get(in(object), name));
}

size_t silt_json_size(const struct silt_json *array)
{
    return json_array_size(in(array));
}

const struct silt_json *silt_json_at(const struct silt_json *array, size_t index)
{
    return out(json_array_get(in(array), index));
}

/* jansson's walk wants a pointer that is not const, and changes nothing. */
static json_t *walked(const struct silt_json *object)
{
    union {
        const struct silt_json *from;
        json_t *to;
    } cast = {object};
    return cast.to;
}

bool silt_json_member(const struct silt_json *object, void **state, struct silt_view *ret_name,
                      const struct silt_json **ret_value)
{
    json_t *walk = walked(object);
    *state = *state == NULL ? json_object_iter(walk) : json_object_iter_next(walk, *state);
    if (*state == NULL) return false;
    *ret_name = silt_view_str(json_object_iter_key(*state));
    *ret_value = out(json_object_iter_value(*state));
    return true;
}

bool silt_json_is_true(const struct silt_json *value)
{
    return json_is_true(in(value));
}

bool silt_json_get_u64(const struct silt_json *value, uint64_t *ret)
{
    if (!json_is_integer(in(value)) || json_integer_value(in(value)) < 0) return false;
    *ret = (uint64_t)json_integer_value(in(value));
    return true;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Canonical base64 only: padded, and no bits set beyond the end. */
static bool decode_base64(const char *text, size_t len, struct silt_buf *mem)
{
    if (len % 4 != 0) return false;
    for (size_t i = 0; i < len; i += 4) {
        size_t pad =
            i + 4 == len ? (text[i + 3] == '=') + (text[i + 3] == '=' && text[i + 2] == '=') : 0;
        uint32_t value = 0;
        for (size_t j = 0; j < 4; j++) {
            int digit = j >= 4 - pad ? 0 : base64_digit(text[i + j]);
            if (digit < 0) return false;
            value = value << 6 | (uint32_t)digit;
        }
        if ((pad == 1 && (value & 0xFF)) || (pad == 2 && (value & 0xFFFF))) return false;
        uint8_t bytes[3] = {(uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
        if (silt_buf_put(mem, bytes, 3 - pad) != SILT_OK) return false;
    }
    return true;
}

bool silt_json_get_bytes(const struct silt_json *value, struct silt_buf *mem, struct silt_view *ret)
{
    if (json_is_string(in(value))) {
        *ret = silt_view(json_string_value(in(value)), json_string_length(in(value)));
        return true;
    }
    const json_t *coded = json_object_get(in(value), "b64");
    if (!json_is_string(coded) || json_object_size(in(value)) != 1) return false;
    size_t before = mem->len;
    if (!decode_base64(json_string_value(coded), json_string_length(coded), mem)) return false;
    *ret = silt_view(mem->at ? mem->at + before : NULL, mem->len - before);
    return true;
}

const char *silt_json_get_str(const struct silt_json *value)
{
    const char *text = json_string_value(in(value));
    return text ? text : "";
}
