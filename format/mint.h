/* The snowflake generator of contract.md §1.2: strictly ascending, borrows from following milliseconds, survives a clock that steps back. */
#ifndef SILT_MINT_H
#define SILT_MINT_H

#include "branded_id.h"

struct silt_mint {
    uint64_t cell; /* ms since SILT_EPOCH_MS << 12 | sequence of the last mint */
    uint32_t node; /* 0 to 1023 */
    bool minted;   /* false: nothing minted or seeded yet */
};

/* Fails with SILT_ERR_USAGE (node above 1023). */
SILT_MUST_USE enum silt_status silt_mint_init(struct silt_mint *mint, uint32_t node,
                                              struct silt_err *err);
/* Makes every later mint greater than this snowflake (a stream's last id), whatever the clock says. */
void silt_mint_seed(struct silt_mint *mint, uint64_t snowflake);
/* The next snowflake: max(now, last + 1). now_ms is handed in. Threads: the caller serialises mint and send.
 * Fails with SILT_ERR_ID_RANGE outside 2024-01-01 to 2093-09-06. */
SILT_MUST_USE enum silt_status silt_mint_next(struct silt_mint *mint, uint64_t now_ms,
                                              uint64_t *ret_snowflake, struct silt_err *err);

#endif
