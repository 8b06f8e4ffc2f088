/* Segments behind right checksums: the header's lengths and checksums are set to fit whatever the fuzzer made of the rest. */
#include "fuzz.h"

#include "format/segment_header.h"
#include "format/segment_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct silt_segment *segment;
    static struct silt_buf value;
    struct silt_segment_info info;
    if (!segment && silt_segment_new(&segment) != SILT_OK) abort();
    silt_buf_clear(&value);
    if (silt_buf_put(&value, data, size) != SILT_OK) abort();
    if (size > SILT_SEGMENT_HEADER) {
        size_t body = size - SILT_SEGMENT_HEADER;
        silt_put_le64(value.at + 88, body);
        silt_put_le64(value.at + 96,
                      silt_checksum(silt_view(value.at + SILT_SEGMENT_HEADER, body), 0));
        silt_put_le64(value.at + 104, silt_checksum(silt_view(value.at, 104), 0));
    }
    if (silt_segment_peek(silt_buf_view(&value), &info, NULL) != SILT_OK) return 0;
    if (info.raw_bytes > 1 << 22) return 0; /* memory within limits, but slow */
    if (silt_segment_open(segment, silt_buf_view(&value), NULL) == SILT_OK) fuzz_walk(segment);
    return 0;
}
