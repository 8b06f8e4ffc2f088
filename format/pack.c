/* zstd behind one door. Must not know what it packs. The only user of zstd. */
#include "pack.h"

#include <zstd.h>
#include <zstd_errors.h>

#include "alloc.h"

enum { BLOCK_RLE = 1, BLOCK_COMPRESSED = 2, BLOCK_BYTES_MAX = 128 << 10 };
#define FRAME_MAGIC 0xFD2FB528u

struct silt_packer {
    ZSTD_CCtx *context;
};

struct silt_unpacker {
    ZSTD_DCtx *context;
    bool in_frame; /* streaming: the last frame is not whole yet */
};

static enum silt_status status_of(size_t code, enum silt_status otherwise)
{
    return ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation ? SILT_ERR_MEMORY : otherwise;
}

enum silt_status silt_packer_new(int level, struct silt_packer **ret)
{
    struct silt_packer *packer = silt_calloc(1, sizeof *packer);
    if (packer == NULL) return SILT_ERR_MEMORY;
    packer->context = ZSTD_createCCtx();
    if (packer->context == NULL) {
        silt_packer_free(packer);
        return SILT_ERR_MEMORY;
    }
    size_t code = ZSTD_CCtx_setParameter(packer->context, ZSTD_c_compressionLevel, level);
    if (ZSTD_isError(code)) {
        silt_packer_free(packer);
        return status_of(code, SILT_ERR_USAGE);
    }
    *ret = packer;
    return SILT_OK;
}

void silt_packer_free(struct silt_packer *packer)
{
    if (packer == NULL) return;
    ZSTD_freeCCtx(packer->context);
    silt_free(packer);
}

enum silt_status silt_pack(struct silt_packer *packer, struct silt_view raw, struct silt_buf *out)
{
    size_t bound = ZSTD_compressBound(raw.len);
    if (ZSTD_isError(bound)) return SILT_ERR_MEMORY;
    enum silt_status status = silt_buf_reserve(out, bound);
    if (status != SILT_OK) return status;
    size_t len = ZSTD_compress2(packer->context, out->at + out->len, bound, raw.at, raw.len);
    if (ZSTD_isError(len)) return status_of(len, SILT_ERR_PROOF);
    out->len += len;
    return SILT_OK;
}

enum silt_status silt_unpacker_new(struct silt_unpacker **ret)
{
    struct silt_unpacker *unpacker = silt_calloc(1, sizeof *unpacker);
    if (unpacker == NULL) return SILT_ERR_MEMORY;
    unpacker->context = ZSTD_createDCtx();
    if (unpacker->context == NULL) {
        silt_unpacker_free(unpacker);
        return SILT_ERR_MEMORY;
    }
    *ret = unpacker;
    return SILT_OK;
}

void silt_unpacker_free(struct silt_unpacker *unpacker)
{
    if (unpacker == NULL) return;
    ZSTD_freeDCtx(unpacker->context);
    silt_free(unpacker);
}

/* What the blocks of a frame can hold at most: a frame that claims more is refused before memory is taken for it. Source: RFC 8878, 3.1.1. */
static uint64_t most_bytes(struct silt_view frame)
{
    static const uint8_t size_bytes[4] = {0, 2, 4, 8}, dictionary_bytes[4] = {0, 1, 2, 4};
    if (frame.len < 6) return 0;
    unsigned descriptor = frame.at[4];
    bool single = descriptor & 0x20;
    size_t at = 5 + (single ? 0 : 1) + dictionary_bytes[descriptor & 3] +
                (single && descriptor >> 6 == 0 ? 1 : size_bytes[descriptor >> 6]);
    uint64_t most = 0;
    while (at + 3 <= frame.len) {
        uint32_t block =
            frame.at[at] | (uint32_t)frame.at[at + 1] << 8 | (uint32_t)frame.at[at + 2] << 16;
        uint32_t size = block >> 3, type = block >> 1 & 3;
        most += type == BLOCK_COMPRESSED ? BLOCK_BYTES_MAX : size;
        at += 3 + (type == BLOCK_RLE ? 1 : (size_t)size);
        if (block & 1) break;
    }
    return most;
}

enum silt_status silt_unpack(struct silt_unpacker *unpacker, struct silt_view frame, size_t raw_len,
                             struct silt_buf *out)
{
    /* A skippable frame would count as one of no content. */
    if (frame.len < 4 || silt_get_le32(frame.at) != FRAME_MAGIC ||
        ZSTD_getFrameContentSize(frame.at, frame.len) != raw_len ||
        ZSTD_findFrameCompressedSize(frame.at, frame.len) != frame.len ||
        most_bytes(frame) < raw_len)
        return SILT_ERR_CORRUPT;
    silt_buf_clear(out);
    enum silt_status status = silt_buf_reserve(out, raw_len);
    if (status != SILT_OK) return status;
    unpacker->in_frame = false;
    size_t len = ZSTD_decompressDCtx(unpacker->context, out->at, raw_len, frame.at, frame.len);
    if (ZSTD_isError(len)) return status_of(len, SILT_ERR_CORRUPT);
    if (len != raw_len) return SILT_ERR_CORRUPT;
    out->len = len;
    return SILT_OK;
}

enum silt_status silt_unpack_stream(struct silt_unpacker *unpacker, struct silt_view in,
                                    struct silt_buf *out, bool *ret_need_more)
{
    ZSTD_inBuffer from = {in.at, in.len, 0};
    for (bool pending = false; from.pos < from.size || pending;) {
        enum silt_status status = silt_buf_reserve(out, ZSTD_DStreamOutSize());
        if (status != SILT_OK) return status;
        ZSTD_outBuffer to = {out->at, out->cap, out->len};
        size_t code = ZSTD_decompressStream(unpacker->context, &to, &from);
        if (ZSTD_isError(code)) return status_of(code, SILT_ERR_CORRUPT);
        out->len = to.pos;
        unpacker->in_frame = code != 0;
        pending = code != 0 && to.pos == to.size; /* the room ran out, not the input */
    }
    *ret_need_more = unpacker->in_frame;
    return SILT_OK;
}
