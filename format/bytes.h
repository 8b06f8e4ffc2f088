/* Views (borrowed bytes), buffers (owned bytes), bounded reads and writes of integers. On disk: little-endian fixed width
 * or LEB128 varints inside values, big-endian in keys so that bytes sort as numbers. */
#ifndef SILT_BYTES_H
#define SILT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed bytes. at may be NULL only when len is 0. */
struct silt_view {
    const uint8_t *at;
    size_t len;
};

static inline struct silt_view silt_view(const void *at, size_t len)
{
    return (struct silt_view){(const uint8_t *)at, len};
}
static inline struct silt_view silt_view_str(const char *text)
{
    return (struct silt_view){(const uint8_t *)text, strlen(text)};
}
static inline bool silt_view_equal(struct silt_view a, struct silt_view b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}
/* memcmp order, the shorter first. */
int silt_view_compare(struct silt_view a, struct silt_view b);

/* Owned bytes that grow. {0} is an empty buffer. */
struct silt_buf {
    uint8_t *at;
    size_t len;
    size_t cap;
};
void silt_buf_release(struct silt_buf *buf); /* frees; buf is {0} afterwards */
void silt_buf_clear(struct silt_buf *buf);   /* len = 0, keeps the memory */
/* Room for `more` bytes beyond len. SILT_ERR_MEMORY, nothing changed. */
SILT_MUST_USE enum silt_status silt_buf_reserve(struct silt_buf *buf, size_t more);
SILT_MUST_USE enum silt_status silt_buf_put(struct silt_buf *buf, const void *at, size_t len);
SILT_MUST_USE enum silt_status silt_buf_put_u8(struct silt_buf *buf, uint8_t value);
SILT_MUST_USE enum silt_status silt_buf_put_u16(struct silt_buf *buf,
                                                uint16_t value); /* little-endian */
SILT_MUST_USE enum silt_status silt_buf_put_u32(struct silt_buf *buf, uint32_t value);
SILT_MUST_USE enum silt_status silt_buf_put_u64(struct silt_buf *buf, uint64_t value);
SILT_MUST_USE enum silt_status silt_buf_put_varint(struct silt_buf *buf,
                                                   uint64_t value); /* LEB128, 1 to 10 bytes */
SILT_MUST_USE enum silt_status silt_buf_printf(struct silt_buf *buf, const char *format, ...)
    SILT_PRINTF(2, 3);
static inline struct silt_view silt_buf_view(const struct silt_buf *buf)
{
    return (struct silt_view){buf->at, buf->len};
}

/* A bounded reader: every call checks, then reads, then advances; after the first failure all further calls fail. */
struct silt_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
};
static inline struct silt_reader silt_reader(struct silt_view view)
{
    return (struct silt_reader){view.at, view.at + view.len, false};
}
static inline size_t silt_reader_left(const struct silt_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}
/* true: read. false: too few bytes (or a varint over 64 bits or not in its shortest form); *ret is untouched. */
bool silt_read_u8(struct silt_reader *reader, uint8_t *ret);
bool silt_read_u16(struct silt_reader *reader, uint16_t *ret);
bool silt_read_u32(struct silt_reader *reader, uint32_t *ret);
bool silt_read_u64(struct silt_reader *reader, uint64_t *ret);
bool silt_read_varint(struct silt_reader *reader, uint64_t *ret);
bool silt_read_view(struct silt_reader *reader, size_t len,
                    struct silt_view *ret); /* borrowed from the reader's bytes */

/* Fixed places; the caller has checked the room. */
void silt_put_be64(uint8_t *at, uint64_t value);
uint64_t silt_get_be64(const uint8_t *at);
void silt_put_le64(uint8_t *at, uint64_t value);
uint64_t silt_get_le64(const uint8_t *at);
void silt_put_le32(uint8_t *at, uint32_t value);
uint32_t silt_get_le32(const uint8_t *at);

/* XXH64 of the bytes: the checksum of everything at rest (checksum.c is the only xxhash.h user). */
uint64_t silt_checksum(struct silt_view bytes, uint64_t seed);

/* Decimal text of 1 to 20 digits, nothing else, below 2^64. */
bool silt_parse_u64(struct silt_view text, uint64_t *ret);

/* Escapes any bytes for display: printable ASCII stays, the rest as \xHH, shortened with "..." to fit. Always terminated. */
void silt_escape(struct silt_view bytes, char *ret, size_t size);

#ifdef __cplusplus
}
#endif

#endif
