/* The snowflake generator. Must not know what time it is. */
#include "mint.h"

#define SEQ_BITS 12
#define SEQ_MASK 0xFFFu
#define NODE_MAX 1023u

enum silt_status silt_mint_init(struct silt_mint *mint, uint32_t node, struct silt_err *err)
{
    if (node > NODE_MAX)
        return silt_fail(err, SILT_ERR_USAGE, "node %u is not between 0 and 1023", node);
    *mint = (struct silt_mint){.node = node};
    return SILT_OK;
}

void silt_mint_seed(struct silt_mint *mint, uint64_t snowflake)
{
    uint64_t cell = snowflake >> 22 << SEQ_BITS | silt_snowflake_seq(snowflake);
    /* A higher node's id lies above everything we can mint in that millisecond. */
    if (silt_snowflake_node(snowflake) > mint->node) cell |= SEQ_MASK;
    if (!mint->minted || cell > mint->cell) mint->cell = cell;
    mint->minted = true;
}

enum silt_status silt_mint_next(struct silt_mint *mint, uint64_t now_ms, uint64_t *ret_snowflake,
                                struct silt_err *err)
{
    if (now_ms < SILT_EPOCH_MS || now_ms > SILT_LAST_MS)
        return silt_fail(err, SILT_ERR_ID_RANGE,
                         "the time %llu ms lies outside what a branded id can name (2024 to 2093)",
                         (unsigned long long)now_ms);
    uint64_t cell = (now_ms - SILT_EPOCH_MS) << SEQ_BITS;
    if (mint->minted && mint->cell >= cell) cell = mint->cell + 1;
    if (cell >> SEQ_BITS > SILT_LAST_MS - SILT_EPOCH_MS)
        return silt_fail(err, SILT_ERR_ID_RANGE, "no id is left above the stream's last one");
    mint->cell = cell;
    mint->minted = true;
    *ret_snowflake = cell >> SEQ_BITS << 22 | (uint64_t)mint->node << SEQ_BITS | (cell & SEQ_MASK);
    return SILT_OK;
}
