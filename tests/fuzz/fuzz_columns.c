/* Raw columns, past compression: 112 bytes of header, then the columns. Where only the sum of the bytes is wrong, which no fuzzer gets right, the
 * entries are walked all the same. */
#include "fuzz.h"

#include "format/segment_header.h"
#include "format/segment_read.h"
#include "harness/forge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct silt_segment *segment;
    static struct silt_buf value, header;
    struct silt_segment_info info;
    struct silt_err err = {0};
    if (!segment && silt_segment_new(&segment) != SILT_OK) abort();
    if (size <= SILT_SEGMENT_HEADER) return 0;
    silt_buf_clear(&header);
    if (silt_buf_put(&header, data, SILT_SEGMENT_HEADER + 1) != SILT_OK) abort();
    silt_put_le64(header.at + 80, size - SILT_SEGMENT_HEADER);
    silt_put_le64(header.at + 88, 1);
    test_forge_header(&header);
    if (silt_segment_peek(silt_buf_view(&header), &info, NULL) != SILT_OK) return 0;
    test_forge(&info, silt_view(data + SILT_SEGMENT_HEADER, size - SILT_SEGMENT_HEADER), &value);
    enum silt_status status = silt_segment_open(segment, silt_buf_view(&value), &err);
    if (status != SILT_OK && strstr(err.sentence, "segment's bytes are")) {
        segment->info.count = info.count; /* everything is decoded; only the sum differs */
        status = SILT_OK;
    }
    if (status == SILT_OK) fuzz_walk(segment);
    return 0;
}
