/* Makes of a journal (shim.h) what a power cut may have left: what was synced, and of the rest a random part, torn at sectors of 512 bytes; of names
 * made, changed and removed, what a sync of the directory covered, and of the rest a random part. For a file of LMDB's locks: anything. Sets up; checks nothing. */
#ifndef TEST_REPLAY_H
#define TEST_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/rng.h"
#include "shim.h"

struct replay;

/* A journal, and what lay below the root before it began (base: a directory; NULL: nothing). The root's own directories are one level deep. The rng decides
 * what a failed sync lost. Owns: replay_free. A journal with a record that has no model here ends the test. */
struct replay *replay_new(const char *journal, const char *base, struct test_rng *rng);
void replay_free(struct replay *replay);

/* Bytes that end in the middle of a record (a kill) count as no record. */
size_t replay_count(const struct replay *replay);
/* The next record, applied; false: that was all. *ret_bytes (borrowed, with a NUL behind them) and ret_bytes may be NULL. */
bool replay_next(struct replay *replay, struct shim_record *ret, const char **ret_bytes);

/* How much of what was not synced survives, in percent: 0 is the least that the disk may keep, 100 nothing lost at all. */
void replay_cut(const struct replay *replay, const char *dir, unsigned percent,
                struct test_rng *rng);
/* The first file whose bytes in `dir` are not what the journal says, or NULL: the library saw everything. Valid until the next call. */
const char *replay_difference(const struct replay *replay, const char *dir);
/* Writes that no sync covers yet, in files with this ending. */
size_t replay_pending(const struct replay *replay, const char *suffix);

#endif
