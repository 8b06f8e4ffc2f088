/* The exact-id way (protocol.md §4): removal of exactly named entries from a stream that carries no marker of ours. Slower than trim.h, and unable to remove
 * anything that is not named. Takes a receipt too (promise 1). */
#ifndef SILT_TRIM_EXACT_H
#define SILT_TRIM_EXACT_H

#include "trim.h"

#define SILT_EXACT_MOST \
    128u /* entries of one step: a fraction of a millisecond of the server's time */

struct silt_exact {
    struct silt_view key;
    uint64_t stream, life;
    uint64_t generation;         /* of the connection that read the entries */
    struct silt_wire_id newest;  /* the newest live entry: it stays */
    struct silt_wire_id custody; /* C: nothing above it goes */
    const struct silt_entry
        *entries; /* as just read from the stream, ascending, equal to the archive's */
    size_t count;
    struct silt_view claim_key; /* empty: none */
    const char *claim;          /* what it must say */
};

/* Compares and removes in one script; where the server allows none, with XDEL on the same connection, right after what was read. *ret_removed: those that were
 * still there. Fails with SILT_ERR_PROTECTED (what the receipt does not prove), SILT_ERR_STALE (the stream or the claim changed: nothing removed), the server's
 * codes. */
SILT_MUST_USE enum silt_status silt_trim_exact(struct silt_trimmer *trimmer, struct silt_conn *conn,
                                               const struct silt_exact *exact,
                                               const struct silt_receipt *receipt,
                                               uint64_t *ret_removed, struct silt_err *err);
extern const char silt_trim_exact_script[];

#endif
