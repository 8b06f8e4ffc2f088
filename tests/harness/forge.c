#include "forge.h"

#include "format/pack.h"
#include "format/segment_header.h"
#include "runner.h"

static struct silt_packer *packer; /* kept for the process: a sweep forges thousands */
static struct silt_unpacker *unpacker;

enum silt_status test_forge_raw(struct silt_view value, struct silt_buf *ret)
{
    struct silt_segment_info info;
    struct silt_view body;
    enum silt_status status = silt_segment_header_get(value, &info, &body, NULL, NULL);
    if (status != SILT_OK) return status;
    if (!unpacker && silt_unpacker_new(&unpacker) != SILT_OK) test_die("forge: out of memory");
    return silt_unpack(unpacker, body, info.raw_bytes, ret);
}

void test_forge(const struct silt_segment_info *info, struct silt_view raw, struct silt_buf *ret)
{
    uint8_t header[SILT_SEGMENT_HEADER] = {0};
    struct silt_segment_info forged = *info;
    if (!packer && silt_packer_new(1, &packer) != SILT_OK) test_die("forge: out of memory");
    silt_buf_clear(ret);
    if (silt_buf_put(ret, header, sizeof header) != SILT_OK ||
        silt_pack(packer, raw, ret) != SILT_OK)
        test_die("forge: cannot pack");
    forged.raw_bytes = raw.len;
    silt_segment_header_put(&forged, silt_view(ret->at + sizeof header, ret->len - sizeof header),
                            ret->at);
}

void test_forge_header(struct silt_buf *value)
{
    size_t at = SILT_SEGMENT_HEADER - 8;
    silt_put_le64(value->at + at, silt_checksum(silt_view(value->at, at), 0));
}
