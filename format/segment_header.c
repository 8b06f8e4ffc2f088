/* The header of a segment at rest: written last, read first, checked whole before any number of it is believed. */
#include "segment_header.h"

enum { /* places of a version 1 header */
       AT_VERSION = 4,
       AT_LENGTH = 6,
       AT_MUST_REFUSE = 8,
       AT_MAY_IGNORE = 12,
       AT_LIFE = 16,
       AT_NAMESPACE = 24,
       AT_COUNT = 28,
       AT_FIRST = 32,
       AT_LAST = 48,
       AT_FOREIGN = 64,
       AT_ZERO = 68,
       AT_VALUES = 72,
       AT_RAW = 80,
       AT_BODY = 88,
       AT_BODY_SUM = 96,
       AT_SUM = 104
};
_Static_assert(AT_SUM + 8 == SILT_SEGMENT_HEADER, "the header's checksum is its end");

static uint16_t get_le16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static struct silt_wire_id get_id(const uint8_t *at)
{
    return (struct silt_wire_id){silt_get_le64(at), silt_get_le64(at + 8)};
}

static void put_id(uint8_t *at, struct silt_wire_id id)
{
    silt_put_le64(at, id.ms);
    silt_put_le64(at + 8, id.seq);
}

void silt_segment_header_put(const struct silt_segment_info *info, struct silt_view body,
                             uint8_t ret[SILT_SEGMENT_HEADER])
{
    memset(ret, 0, SILT_SEGMENT_HEADER);
    silt_put_le32(ret, SILT_SEGMENT_MAGIC);
    ret[AT_VERSION] = SILT_SEGMENT_VERSION;
    ret[AT_LENGTH] = SILT_SEGMENT_HEADER;
    silt_put_le64(ret + AT_LIFE, info->life);
    memcpy(ret + AT_NAMESPACE, info->ns.letters, 3);
    silt_put_le32(ret + AT_COUNT, info->count);
    put_id(ret + AT_FIRST, info->first);
    put_id(ret + AT_LAST, info->last);
    silt_put_le32(ret + AT_FOREIGN, info->foreign_count);
    silt_put_le64(ret + AT_VALUES, info->values_bytes);
    silt_put_le64(ret + AT_RAW, info->raw_bytes);
    silt_put_le64(ret + AT_BODY, body.len);
    silt_put_le64(ret + AT_BODY_SUM, silt_checksum(body, 0));
    silt_put_le64(ret + AT_SUM, silt_checksum(silt_view(ret, AT_SUM), 0));
}

/* What is the same in every version, ever: magic, version, length, refuse bits, and the checksum at the end of that length. So a damaged version number is
 * told from a newer one. */
static enum silt_status check_frame(struct silt_view bytes, size_t *ret_length,
                                    struct silt_err *err)
{
    if (bytes.len < SILT_SEGMENT_HEADER)
        return silt_fail(err, SILT_ERR_CORRUPT, "the segment is cut short: %zu bytes", bytes.len);
    if (silt_get_le32(bytes.at) != SILT_SEGMENT_MAGIC)
        return silt_fail(err, SILT_ERR_CORRUPT, "not a segment: wrong magic");
    size_t length = get_le16(bytes.at + AT_LENGTH);
    if (length < SILT_SEGMENT_HEADER || length > SILT_SEGMENT_HEADER_MAX || length > bytes.len)
        return silt_fail(err, SILT_ERR_CORRUPT, "the segment's header claims %zu bytes", length);
    if (silt_get_le64(bytes.at + length - 8) != silt_checksum(silt_view(bytes.at, length - 8), 0))
        return silt_fail(err, SILT_ERR_CORRUPT, "the segment's header has a wrong checksum");
    unsigned version = get_le16(bytes.at + AT_VERSION);
    uint32_t refuse = silt_get_le32(bytes.at + AT_MUST_REFUSE);
    if (version != SILT_SEGMENT_VERSION || (refuse & ~SILT_SEGMENT_MUST_REFUSE) != 0)
        return silt_fail(err, SILT_ERR_NEWER_FORMAT,
                         "the segment has version %u and needs features 0x%x", version, refuse);
    *ret_length = length;
    return SILT_OK;
}

static bool namespace_at(const uint8_t *at, struct silt_namespace *ret)
{
    *ret = (struct silt_namespace){{0}};
    if (at[3] != 0) return false;
    if (at[0] == 0 && at[1] == 0 && at[2] == 0) return true;
    for (int i = 0; i < 3; i++) {
        if (at[i] < 'A' || at[i] > 'Z') return false;
        ret->letters[i] = (char)at[i];
    }
    return true;
}

/* Values that no builder writes, whatever its entries. */
static const char *check_numbers(const struct silt_segment_info *info, uint64_t body_len,
                                 uint64_t room)
{
    if (info->count == 0 || info->count > SILT_SEGMENT_COUNT_MAX) return "count";
    if (info->count == 1 ? !silt_wire_id_equal(info->first, info->last)
                         : !silt_wire_id_less(info->first, info->last))
        return "ids";
    if (info->foreign_count > info->count) return "foreign count";
    if (info->foreign_count != 0 && silt_namespace_is_none(info->ns)) return "foreign count";
    if (info->raw_bytes == 0 || info->raw_bytes > SILT_SEGMENT_RAW_MAX) return "raw length";
    if (body_len == 0 || body_len != room) return "length";
    return NULL;
}

enum silt_status silt_segment_header_get(struct silt_view bytes, struct silt_segment_info *ret,
                                         struct silt_view *ret_body, uint64_t *ret_body_sum,
                                         struct silt_err *err)
{
    size_t length = 0;
    enum silt_status status = check_frame(bytes, &length, err);
    if (status != SILT_OK) return status;
    const uint8_t *at = bytes.at;
    struct silt_segment_info info = {
        .life = silt_get_le64(at + AT_LIFE),
        .first = get_id(at + AT_FIRST),
        .last = get_id(at + AT_LAST),
        .count = silt_get_le32(at + AT_COUNT),
        .foreign_count = silt_get_le32(at + AT_FOREIGN),
        .values_bytes = silt_get_le64(at + AT_VALUES),
        .raw_bytes = silt_get_le64(at + AT_RAW),
        .stored_bytes = bytes.len,
    };
    const char *wrong = NULL;
    if (!namespace_at(at + AT_NAMESPACE, &info.ns)) wrong = "namespace";
    if (!wrong && silt_get_le32(at + AT_ZERO) != 0) wrong = "reserved place";
    if (!wrong) wrong = check_numbers(&info, silt_get_le64(at + AT_BODY), bytes.len - length);
    if (wrong)
        return silt_fail(err, SILT_ERR_CORRUPT, "the segment's header has an impossible %s", wrong);
    *ret = info;
    if (ret_body) *ret_body = silt_view(at + length, bytes.len - length);
    if (ret_body_sum) *ret_body_sum = silt_get_le64(at + AT_BODY_SUM);
    return SILT_OK;
}

enum silt_status silt_segment_peek(struct silt_view bytes, struct silt_segment_info *ret,
                                   struct silt_err *err)
{
    return silt_segment_header_get(bytes, ret, NULL, NULL, err);
}
