/* What the targets share. */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stdlib.h>

#include "format/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every byte that the segment says it holds, up to a bound that keeps a run fast. */
static inline void fuzz_walk(struct silt_segment *segment)
{
    uint64_t digest = 0, bytes = 0;
    for (size_t i = 0; i < silt_segment_count(segment) && bytes < 1 << 24; i++) {
        struct silt_entry entry;
        silt_segment_entry(segment, i, &entry);
        digest = silt_entry_digest(&entry, digest);
        bytes += silt_entry_bytes(&entry) + 16 * entry.field_count;
    }
    volatile uint64_t sink = digest;
    (void)sink;
}

#endif
