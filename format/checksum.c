/* The checksum of everything at rest. The only user of xxhash. */
#include <xxhash.h>

#include "bytes.h"

uint64_t silt_checksum(struct silt_view bytes, uint64_t seed)
{
    return XXH64(bytes.at, bytes.len, seed);
}
