/* Segments that no builder writes: any raw columns under a header whose checksums are right, for tests of the decoder behind the checksums. */
#ifndef TEST_FORGE_H
#define TEST_FORGE_H

#include "format/segment.h"

/* The raw columns of a value; SILT_ERR_CORRUPT where its body does not decompress. Replaces *ret. */
enum silt_status test_forge_raw(struct silt_view value, struct silt_buf *ret);
/* A whole value of these columns: packed, lengths and checksums made right, everything else as info says. Replaces *ret. */
void test_forge(const struct silt_segment_info *info, struct silt_view raw, struct silt_buf *ret);
/* Makes the header's checksum right again. */
void test_forge_header(struct silt_buf *value);

#endif
