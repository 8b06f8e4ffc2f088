/* Names of keys: the grammar of those we write, slots, our own keys beside a stream, the server's glob. No server here. */
#include "stream_key.h"

#define PREFIX "emq:{"
#define MIDDLE "}:stream:"
#define SEAM_END ":archived"
#define CLAIM_END ":silt-claim"
#define PART_MAX_BYTES 128
#define SLOTS 16384

static bool is_part_byte(uint8_t byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

static enum silt_status check_part(struct silt_view part, const char *what, struct silt_err *err)
{
    char shown[64];
    bool good = part.len >= 1 && part.len <= PART_MAX_BYTES;
    for (size_t i = 0; good && i < part.len; i++)
        good = is_part_byte(part.at[i]);
    if (good) return SILT_OK;
    silt_escape(part, shown, sizeof shown);
    silt_fail(err, SILT_ERR_KEY, "the %s '%s' is not 1 to 128 bytes of A-Z a-z 0-9 . _ -", what,
              shown);
    silt_hint(err, "a branded stream's key is emq:{<queue>}:stream:<name>");
    return SILT_ERR_KEY;
}

enum silt_status silt_stream_key_parse(struct silt_view key, struct silt_stream_key *ret,
                                       struct silt_err *err)
{
    const size_t prefix = sizeof PREFIX - 1, middle = sizeof MIDDLE - 1;
    const uint8_t *cut = NULL;
    if (key.len > prefix && memcmp(key.at, PREFIX, prefix) == 0)
        cut = memmem(key.at + prefix, key.len - prefix, MIDDLE, middle);
    if (cut == NULL) {
        char shown[64];
        silt_escape(key, shown, sizeof shown);
        return silt_fail(err, SILT_ERR_KEY,
                         "not a branded stream's key: '%s' is not emq:{<queue>}:stream:<name>",
                         shown);
    }
    size_t queue_len = (size_t)(cut - key.at) - prefix;
    struct silt_stream_key parts = {silt_view(key.at + prefix, queue_len),
                                    silt_view(cut + middle, key.len - prefix - queue_len - middle)};
    enum silt_status status;
    if ((status = check_part(parts.queue, "queue", err)) != SILT_OK ||
        (status = check_part(parts.name, "name", err)) != SILT_OK)
        return status;
    *ret = parts;
    return SILT_OK;
}

/* Three pieces, appended whole or not at all. */
static enum silt_status put_pieces(struct silt_buf *buf, const struct silt_view *pieces,
                                   size_t count, struct silt_err *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += pieces[i].len;
    if (silt_buf_reserve(buf, bytes) != SILT_OK) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len > 0) memcpy(buf->at + buf->len, pieces[i].at, pieces[i].len);
        buf->len += pieces[i].len;
    }
    return SILT_OK;
}

enum silt_status silt_stream_key_build(struct silt_view queue, struct silt_view name,
                                       struct silt_buf *ret, struct silt_err *err)
{
    enum silt_status status;
    if ((status = check_part(queue, "queue", err)) != SILT_OK ||
        (status = check_part(name, "name", err)) != SILT_OK)
        return status;
    struct silt_view pieces[] = {silt_view_str(PREFIX), queue, silt_view_str(MIDDLE), name};
    return put_pieces(ret, pieces, 4, err);
}

struct silt_view silt_key_hash_part(struct silt_view key)
{
    const uint8_t *open = key.len ? memchr(key.at, '{', key.len) : NULL;
    if (open == NULL) return key;
    size_t left = key.len - (size_t)(open - key.at) - 1;
    const uint8_t *close = memchr(open + 1, '}', left);
    if (close == NULL || close == open + 1) return key;
    return silt_view(open + 1, (size_t)(close - open) - 1);
}

bool silt_key_has_tag(struct silt_view key)
{
    return silt_key_hash_part(key).len != key.len;
}

uint16_t silt_key_slot(struct silt_view key)
{
    static const uint16_t nibble[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5,
                                        0x60c6, 0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b,
                                        0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
    struct silt_view part = silt_key_hash_part(key);
    uint16_t crc = 0;
    for (size_t i = 0; i < part.len; i++) {
        crc = (uint16_t)(crc << 4) ^ nibble[crc >> 12 ^ part.at[i] >> 4];
        crc = (uint16_t)(crc << 4) ^ nibble[crc >> 12 ^ (part.at[i] & 15)];
    }
    return crc % SLOTS;
}

/* A name in braces shares the slot only if the server reads exactly these bytes as the tag. */
static enum silt_status check_taggable(struct silt_view key, const char *what, struct silt_err *err)
{
    if (silt_key_has_tag(key) || (key.len > 0 && memchr(key.at, '}', key.len) == NULL))
        return SILT_OK;
    silt_fail(err, SILT_ERR_KEY, "no %s key can share the slot of this key: %s", what,
              key.len == 0 ? "its name is empty" : "it has no hash tag and contains '}'");
    silt_err_set_stream(err, key.at, key.len);
    return SILT_ERR_KEY;
}

enum silt_status silt_key_seam(struct silt_view key, struct silt_buf *ret, struct silt_err *err)
{
    enum silt_status status = check_taggable(key, "seam", err);
    if (status != SILT_OK) return status;
    bool tagged = silt_key_has_tag(key);
    struct silt_view pieces[] = {silt_view_str(tagged ? "" : "{"), key,
                                 silt_view_str(tagged ? "" : "}"), silt_view_str(SEAM_END)};
    return put_pieces(ret, pieces, 4, err);
}

enum silt_status silt_key_claim(struct silt_view key, struct silt_buf *ret, struct silt_err *err)
{
    enum silt_status status = check_taggable(key, "claim", err);
    if (status != SILT_OK) return status;
    struct silt_view pieces[] = {silt_view_str("{"), silt_key_hash_part(key), silt_view_str("}"),
                                 silt_view_str(CLAIM_END)};
    return put_pieces(ret, pieces, 4, err);
}

/* True when the key ends so; what stands before in *ret_stem. */
static bool ends_with(struct silt_view key, const char *end, struct silt_view *ret_stem)
{
    size_t len = strlen(end);
    if (key.len < len || memcmp(key.at + key.len - len, end, len) != 0) return false;
    *ret_stem = silt_view(key.at, key.len - len);
    return true;
}

bool silt_key_is_ours(struct silt_view key)
{
    struct silt_view stem;
    if (ends_with(key, SEAM_END, &stem)) return silt_key_has_tag(stem);
    if (!ends_with(key, CLAIM_END, &stem) || !silt_key_has_tag(stem)) return false;
    return stem.at[0] == '{' && silt_key_hash_part(stem).len == stem.len - 2;
}

/* One byte against a class whose '[' is behind *pattern; leaves *pattern behind its ']'. Source: the server's
 * stringmatchlen, odd ends too: a class that is never closed ends with the pattern, [z-a] is [a-z]. */
static bool class_match(struct silt_view *pattern, uint8_t byte)
{
    const uint8_t *at = pattern->at, *end = pattern->at + pattern->len;
    bool inverted = at < end && *at == '^', found = false;
    if (inverted) at++;
    for (; at < end && *at != ']'; at++) {
        uint8_t low = *at, high = *at;
        if (*at == '\\' && end - at >= 2) {
            low = high = *++at;
        } else if (end - at >= 3 && at[1] == '-') {
            high = at[2];
            at += 2;
        }
        if (low > high) {
            uint8_t swap = low;
            low = high;
            high = swap;
        }
        if (byte >= low && byte <= high) found = true;
    }
    if (at < end) at++;
    *pattern = silt_view(at, (size_t)(end - at));
    return found != inverted;
}

/* One byte against the pattern's first item (not a star), which is taken off. */
static bool item_match(struct silt_view *pattern, uint8_t byte)
{
    uint8_t item = pattern->at[0];
    *pattern = silt_view(pattern->at + 1, pattern->len - 1);
    if (item == '?') return true;
    if (item == '[') return class_match(pattern, byte);
    if (item == '\\' && pattern->len > 0) {
        item = pattern->at[0];
        *pattern = silt_view(pattern->at + 1, pattern->len - 1);
    }
    return item == byte;
}

/* On a mismatch only the last star takes one byte more: earlier ones cannot help, so no pattern is exponential. */
bool silt_glob_match(struct silt_view pattern, struct silt_view key)
{
    struct silt_view after_star = {0};
    size_t at = 0, star_at = 0;
    bool starred = false;
    for (;;) {
        if (pattern.len > 0 && pattern.at[0] == '*') {
            pattern = silt_view(pattern.at + 1, pattern.len - 1);
            after_star = pattern;
            star_at = at;
            starred = true;
        } else if (at < key.len && pattern.len > 0 && item_match(&pattern, key.at[at])) {
            at++;
        } else if (at == key.len && pattern.len == 0) {
            return true;
        } else if (starred && star_at < key.len) {
            pattern = after_star;
            at = ++star_at;
        } else {
            return false;
        }
    }
}
