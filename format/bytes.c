/* Views, buffers, bounded integers. Must not know what the bytes mean. */
#include "bytes.h"

#include <stdio.h>

#include "alloc.h"

int silt_view_compare(struct silt_view a, struct silt_view b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter ? memcmp(a.at, b.at, shorter) : 0;
    if (order != 0) return order < 0 ? -1 : 1;
    return a.len == b.len ? 0 : a.len < b.len ? -1 : 1;
}

void silt_buf_release(struct silt_buf *buf)
{
    if (buf == NULL) return;
    silt_free(buf->at);
    *buf = (struct silt_buf){0};
}

void silt_buf_clear(struct silt_buf *buf)
{
    buf->len = 0;
}

enum silt_status silt_buf_reserve(struct silt_buf *buf, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(buf->len, more, &need) || need > PTRDIFF_MAX) return SILT_ERR_MEMORY;
    if (need <= buf->cap) return SILT_OK;
    if (need < 64) need = 64;
    void *at = buf->at;
    if (silt_grow(&at, &buf->cap, need, 1) != 0) return SILT_ERR_MEMORY;
    buf->at = at;
    return SILT_OK;
}

enum silt_status silt_buf_put(struct silt_buf *buf, const void *at, size_t len)
{
    if (len == 0) return SILT_OK;
    enum silt_status status = silt_buf_reserve(buf, len);
    if (status != SILT_OK) return status;
    memcpy(buf->at + buf->len, at, len);
    buf->len += len;
    return SILT_OK;
}

enum silt_status silt_buf_put_u8(struct silt_buf *buf, uint8_t value)
{
    return silt_buf_put(buf, &value, 1);
}

enum silt_status silt_buf_put_u16(struct silt_buf *buf, uint16_t value)
{
    uint8_t bytes[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
    return silt_buf_put(buf, bytes, sizeof bytes);
}

enum silt_status silt_buf_put_u32(struct silt_buf *buf, uint32_t value)
{
    uint8_t bytes[4];
    silt_put_le32(bytes, value);
    return silt_buf_put(buf, bytes, sizeof bytes);
}

enum silt_status silt_buf_put_u64(struct silt_buf *buf, uint64_t value)
{
    uint8_t bytes[8];
    silt_put_le64(bytes, value);
    return silt_buf_put(buf, bytes, sizeof bytes);
}

enum silt_status silt_buf_put_varint(struct silt_buf *buf, uint64_t value)
{
    uint8_t bytes[10];
    size_t len = 0;
    while (value >= 0x80) {
        bytes[len++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    bytes[len++] = (uint8_t)value;
    return silt_buf_put(buf, bytes, len);
}

enum silt_status silt_buf_printf(struct silt_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) return SILT_ERR_MEMORY;
    /* Room for the terminator that vsnprintf writes; it does not count. */
    enum silt_status status = silt_buf_reserve(buf, (size_t)len + 1);
    if (status != SILT_OK) return status;
    va_start(args, format);
    vsnprintf((char *)buf->at + buf->len, (size_t)len + 1, format, args);
    va_end(args);
    buf->len += (size_t)len;
    return SILT_OK;
}

/* The next len bytes, or NULL and failed for good. */
static const uint8_t *take(struct silt_reader *reader, size_t len)
{
    if (reader->failed || silt_reader_left(reader) < len) {
        reader->failed = true;
        return NULL;
    }
    const uint8_t *at = reader->at;
    if (len > 0) reader->at += len; /* at may be NULL when there is nothing */
    return at;
}

bool silt_read_u8(struct silt_reader *reader, uint8_t *ret)
{
    const uint8_t *at = take(reader, 1);
    if (at == NULL) return false;
    *ret = at[0];
    return true;
}

bool silt_read_u16(struct silt_reader *reader, uint16_t *ret)
{
    const uint8_t *at = take(reader, 2);
    if (at == NULL) return false;
    *ret = (uint16_t)(at[0] | at[1] << 8);
    return true;
}

bool silt_read_u32(struct silt_reader *reader, uint32_t *ret)
{
    const uint8_t *at = take(reader, 4);
    if (at == NULL) return false;
    *ret = silt_get_le32(at);
    return true;
}

bool silt_read_u64(struct silt_reader *reader, uint64_t *ret)
{
    const uint8_t *at = take(reader, 8);
    if (at == NULL) return false;
    *ret = silt_get_le64(at);
    return true;
}

bool silt_read_varint(struct silt_reader *reader, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        const uint8_t *at = take(reader, 1);
        if (at == NULL) return false;
        uint8_t byte = *at;
        /* The tenth byte holds one bit; a last byte of zero is a longer form of a shorter number. */
        if ((shift == 63 && byte > 1) || (shift > 0 && byte == 0)) break;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *ret = value;
            return true;
        }
    }
    reader->failed = true;
    return false;
}

bool silt_read_view(struct silt_reader *reader, size_t len, struct silt_view *ret)
{
    const uint8_t *at = take(reader, len);
    if (reader->failed) return false;
    *ret = silt_view(at, len);
    return true;
}

void silt_put_be64(uint8_t *at, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        at[i] = (uint8_t)value;
}

uint64_t silt_get_be64(const uint8_t *at)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | at[i];
    return value;
}

void silt_put_le64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++, value >>= 8)
        at[i] = (uint8_t)value;
}

uint64_t silt_get_le64(const uint8_t *at)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

void silt_put_le32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++, value >>= 8)
        at[i] = (uint8_t)value;
}

uint32_t silt_get_le32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

bool silt_parse_u64(struct silt_view text, uint64_t *ret)
{
    uint64_t value = 0;
    if (text.len < 1 || text.len > 20) return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)text.at[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret = value;
    return true;
}

static size_t escaped_len(uint8_t byte)
{
    return byte >= 0x20 && byte <= 0x7E ? 1 : 4;
}

void silt_escape(struct silt_view bytes, char *ret, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    if (size == 0) return;
    size_t whole = 0, used = 0;
    for (size_t i = 0; i < bytes.len && whole < size; i++)
        whole += escaped_len(bytes.at[i]);
    bool fits = whole < size;
    size_t dots = fits ? 0 : size - 1 < 3 ? size - 1 : 3;
    size_t room = size - 1 - dots;
    for (size_t i = 0; i < bytes.len && used + escaped_len(bytes.at[i]) <= room; i++) {
        uint8_t byte = bytes.at[i];
        if (escaped_len(byte) == 1) {
            ret[used++] = (char)byte;
        } else {
            ret[used++] = '\\';
            ret[used++] = 'x';
            ret[used++] = hex[byte >> 4];
            ret[used++] = hex[byte & 15];
        }
    }
    memset(ret + used, '.', dots);
    ret[used + dots] = '\0';
}
