/* zstd behind one door: whole blocks with a known raw size, and a stream for reading .zst input. The only zstd.h user. */
#ifndef SILT_PACK_H
#define SILT_PACK_H

#include "bytes.h"

struct silt_packer;   /* a compression context, reused. Threads: one at a time */
struct silt_unpacker; /* a decompression context, reused. Threads: one at a time */

SILT_MUST_USE enum silt_status silt_packer_new(int level, struct silt_packer **ret);
void silt_packer_free(struct silt_packer *packer);
/* Appends one frame (content size stored) to *out. */
SILT_MUST_USE enum silt_status silt_pack(struct silt_packer *packer, struct silt_view raw,
                                         struct silt_buf *out);

SILT_MUST_USE enum silt_status silt_unpacker_new(struct silt_unpacker **ret);
void silt_unpacker_free(struct silt_unpacker *unpacker);
/* One frame, nothing after it, exactly raw_len bytes: anything else is SILT_ERR_CORRUPT. Replaces *out. raw_len is checked by the
 * caller against its limit and against the frame's own size here, before memory is taken. */
SILT_MUST_USE enum silt_status silt_unpack(struct silt_unpacker *unpacker, struct silt_view frame,
                                           size_t raw_len, struct silt_buf *out);

/* Streaming, for files of many frames: appends what `in` yields to *out; *ret_need_more is false at a frame's end. */
SILT_MUST_USE enum silt_status silt_unpack_stream(struct silt_unpacker *unpacker,
                                                  struct silt_view in, struct silt_buf *out,
                                                  bool *ret_need_more);

#endif
