/* The archive at rest: a directory that names its current LMDB environment file. Promises streams, lives and segments, not a file, so the
 * file can be replaced beneath its readers. The only lmdb.h user is store.c (and its sibling files through store_priv.h, which hides it).
 *
 * Directory: `current` (one line: the environment file's name), the environment file and its -lock, `lock` (held by the archiver, names
 * its process id). No handle holds an LMDB transaction between calls, so no reader can make the file grow.
 * Never NOSYNC, never WRITEMAP: there is no option for it. A failed sync is final: every later call answers SILT_ERR_STORE_LOST
 * until the store is closed and opened again.
 * Threads: one handle, one thread; any number of handles in a process share one environment (a registry by device, inode and pid). */
#ifndef SILT_STORE_H
#define SILT_STORE_H

#include "bound.h"
#include "rows.h"
#include "segment.h"

struct silt_store;

struct silt_store_options {
    bool write;  /* take the archive's lock; only such a handle commits */
    bool create; /* with write: make directory, files and uuid if there is no archive */
    uint64_t map_initial_bytes; /* address space at open; grows by doubling */
    uint64_t map_limit_bytes;   /* cap of that growth: then SILT_ERR_MAP_FULL */
};
#define SILT_STORE_OPTIONS_DEFAULT \
    ((struct silt_store_options){.map_initial_bytes = 1ULL << 30, .map_limit_bytes = 1ULL << 40})

/* Fails with SILT_ERR_NO_ARCHIVE (nothing there), SILT_ERR_NOT_ARCHIVE, SILT_ERR_NEWER_FORMAT, SILT_ERR_HELD (names the holder's process id),
 * SILT_ERR_PERMISSION, SILT_ERR_DISK_FULL, SILT_ERR_IO, SILT_ERR_CORRUPT, SILT_ERR_READER_SLOTS, SILT_ERR_MEMORY. Files are made 0640, the directory 0750.
 * Creating syncs the files, the directory and its parent before it returns (promise 1: before the first trim). */
SILT_MUST_USE enum silt_status silt_store_open(const char *path,
                                               const struct silt_store_options *options,
                                               struct silt_store **ret, struct silt_err *err);
void silt_store_close(struct silt_store *store);
/* What an operator should know of the file system that path lies on: an archive works there, but may not last. NULL: nothing. */
const char *silt_store_place(const char *path);
SILT_MUST_USE enum silt_status silt_store_meta(struct silt_store *store, struct silt_meta_row *ret,
                                               struct silt_err *err);
/* Bytes of the environment file on disk, pages in use and free, map size, readers. */
struct silt_store_space {
    uint64_t file_bytes;
    uint64_t used_bytes;
    uint64_t free_bytes;
    uint64_t map_bytes;
    uint32_t readers;
};
SILT_MUST_USE enum silt_status silt_store_space(struct silt_store *store,
                                                struct silt_store_space *ret, struct silt_err *err);
/* Clears slots of dead readers; *ret_count: how many. */
SILT_MUST_USE enum silt_status silt_store_clear_dead_readers(struct silt_store *store,
                                                             int *ret_count, struct silt_err *err);

/* ---- reading: each call is one snapshot of its own, copied out ---- */

/* A stream's row, owned. {0}, then reused; released at the end. Its views hold until the next call with it. */
struct silt_stream {
    struct silt_stream_row row;
    struct silt_buf bytes;
    struct silt_buf groups;
};
void silt_stream_release(struct silt_stream *stream);

/* By key. Fails with SILT_ERR_UNKNOWN_STREAM, SILT_ERR_CORRUPT. */
SILT_MUST_USE enum silt_status silt_store_stream(struct silt_store *store, struct silt_view name,
                                                 struct silt_stream *ret, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_store_stream_number(struct silt_store *store, uint64_t number,
                                                        struct silt_stream *ret,
                                                        struct silt_err *err);
/* Walk all: the first row with a number above `after` (start with 0). SILT_END after the last. */
SILT_MUST_USE enum silt_status silt_store_stream_after(struct silt_store *store, uint64_t after,
                                                       struct silt_stream *ret,
                                                       struct silt_err *err);

/* Segments of one life (its own only; silt_store_fork tells where the parent ends). */
enum silt_seek {
    SILT_SEEK_FORWARD, /* the first segment with an entry at or above the id */
    SILT_SEEK_BACKWARD /* the last segment with an entry at or below the id */
};
/* Copies the value into *value (replaced) and gives its header. SILT_END: there is none. A value that fails its header check is
 * SILT_ERR_CORRUPT with ret_info->first (from the key) set and last = the id before the next segment's first (or MAX), so that the
 * caller can step over it; tried once more in a fresh transaction first (protocol.md §10). */
SILT_MUST_USE enum silt_status silt_store_segment(struct silt_store *store, uint64_t life,
                                                  struct silt_namespace ns, struct silt_wire_id id,
                                                  enum silt_seek seek, struct silt_buf *value,
                                                  struct silt_segment_info *ret_info,
                                                  struct silt_err *err);
/* The first id of the life's next segment above the id, by its key alone: how far a damaged one can reach. SILT_END: none. */
SILT_MUST_USE enum silt_status silt_store_segment_above(struct silt_store *store, uint64_t life,
                                                        struct silt_namespace ns,
                                                        struct silt_wire_id id,
                                                        struct silt_wire_id *ret);
/* Headers only, without copying values, within one snapshot, from the segment that silt_store_segment would give, onwards in that direction,
 * until visit returns false. visit must not call the store. A damaged header is passed with status SILT_ERR_CORRUPT and only info->first set. */
typedef bool silt_store_visit(void *ctx, enum silt_status status,
                              const struct silt_segment_info *info);
SILT_MUST_USE enum silt_status silt_store_segments(struct silt_store *store, uint64_t life,
                                                   struct silt_namespace ns, struct silt_wire_id id,
                                                   enum silt_seek seek, silt_store_visit *visit,
                                                   void *ctx, struct silt_err *err);
/* Where a life forked off; SILT_END: it is a first life. */
SILT_MUST_USE enum silt_status silt_store_fork(struct silt_store *store, uint64_t life,
                                               struct silt_fork_row *ret, struct silt_err *err);
/* Walk a stream's forks, a life's gaps (in id order of range.after) and late entries: the first after the given one; SILT_END. */
SILT_MUST_USE enum silt_status silt_store_fork_after(struct silt_store *store, uint64_t stream,
                                                     uint64_t after_life, struct silt_fork_row *ret,
                                                     struct silt_err *err);
SILT_MUST_USE enum silt_status silt_store_gap_after(struct silt_store *store, uint64_t life,
                                                    uint64_t *inout_cursor,
                                                    struct silt_gap_row *ret, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_store_late_after(struct silt_store *store, uint64_t life,
                                                     uint64_t after_number,
                                                     struct silt_late_row *ret,
                                                     struct silt_err *err);

/* The highest late number of a life: 0 where it has none. */
SILT_MUST_USE enum silt_status silt_store_late_highest(struct silt_store *store, uint64_t life,
                                                       uint64_t *ret, struct silt_err *err);

/* ---- writing: everything a fold changes, for any number of streams, in one transaction ---- */

struct silt_batch;
SILT_MUST_USE enum silt_status silt_batch_new(struct silt_batch **ret);
void silt_batch_free(struct silt_batch *batch);
void silt_batch_clear(struct silt_batch *batch);
bool silt_batch_is_empty(const struct silt_batch *batch);
/* Where the batch stands now, and back to there: what belongs together is in it whole or not at all. */
size_t silt_batch_mark(const struct silt_batch *batch);
void silt_batch_undo(struct silt_batch *batch, size_t mark);
/* Copies the value. replaces: the segment with the same life and first id is overwritten, whatever it is by then (silt_batch_replace looks); else it must
 * not exist. */
SILT_MUST_USE enum silt_status silt_batch_segment(struct silt_batch *batch,
                                                  const struct silt_segment_info *info,
                                                  struct silt_view value, bool replaces);
/* One stored segment makes way for 1 or more that together hold at least its entries; the first id, and so the key, may become lower (a late entry
 * before the first). old: as silt_store_segment gave it, checksum: silt_checksum of its value, seed 0; the commit refuses where anything else stands
 * there by then. Copies; after a failure the batch is as before. Fails with SILT_ERR_MEMORY, SILT_ERR_USAGE (no parts). */
struct silt_batch_part {
    struct silt_segment_info info;
    struct silt_view value;
};
SILT_MUST_USE enum silt_status silt_batch_replace(struct silt_batch *batch,
                                                  const struct silt_segment_info *old,
                                                  uint64_t checksum,
                                                  const struct silt_batch_part *parts,
                                                  size_t count);
SILT_MUST_USE enum silt_status silt_batch_stream(
    struct silt_batch *batch, const struct silt_stream_row *row); /* encoded at once */
SILT_MUST_USE enum silt_status silt_batch_gap(struct silt_batch *batch,
                                              const struct silt_gap_row *row);
SILT_MUST_USE enum silt_status silt_batch_fork(struct silt_batch *batch,
                                               const struct silt_fork_row *row);
SILT_MUST_USE enum silt_status silt_batch_late(struct silt_batch *batch,
                                               const struct silt_late_row *row);
/* The highest late number of the life in the batch; 0: none. */
uint64_t silt_batch_late_highest(const struct silt_batch *batch, uint64_t life);

/* Numbers for a new stream row and its first life; used up even if never committed in this process, durable with the first commit. */
SILT_MUST_USE enum silt_status silt_store_new_stream(struct silt_store *store, uint64_t *ret_number,
                                                     uint64_t *ret_life, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_store_new_life(struct silt_store *store, uint64_t *ret_life,
                                                   struct silt_err *err);

/* One synced transaction; all or nothing. Grows the map and tries again where it is full. Refuses (SILT_ERR_PROTECTED, nothing changed): segments
 * of one life that would overlap a neighbour; a replacement whose last id or count is lower than what it replaces, or whose first id is higher, or of a
 * segment that is no longer what it was made from; a watermark that goes back within its life; a segment above its row's watermark; two streams with one name.
 * Fails with SILT_ERR_DISK_FULL, SILT_ERR_MAP_FULL, SILT_ERR_STORE_LOST, SILT_ERR_IO, SILT_ERR_MEMORY: nothing is committed as far as this handle knows. */
SILT_MUST_USE enum silt_status silt_store_commit(struct silt_store *store, struct silt_batch *batch,
                                                 struct silt_err *err);

/* ---- the receipt (promise 1) ---- */

/* Proof that every entry of (after, through] of one life was just now read from a fresh snapshot, checked and decoded. Only
 * silt_store_read_back makes one; archiver/trim takes one. */
struct silt_receipt;
struct silt_receipt_facts {
    uint64_t stream;
    uint64_t life;
    struct silt_wire_id after;
    struct silt_wire_id through; /* the last entry's id; after if count is 0 */
    uint64_t count;
    uint64_t values_bytes;
    uint64_t digest;               /* silt_entry_digest chained from 0 */
    struct silt_wire_id watermark; /* of the same snapshot */
};
/* Reads at most max_entries entries of (after, through]. Fails with SILT_ERR_CORRUPT, SILT_ERR_PROTECTED (through above the watermark). */
SILT_MUST_USE enum silt_status silt_store_read_back(struct silt_store *store, uint64_t stream,
                                                    struct silt_wire_id after,
                                                    struct silt_wire_id through,
                                                    uint64_t max_entries, struct silt_receipt **ret,
                                                    struct silt_err *err);
const struct silt_receipt_facts *silt_receipt_facts(const struct silt_receipt *receipt);
void silt_receipt_free(struct silt_receipt *receipt);

/* ---- the current file ---- */

/* Writes a compacted copy of the environment, syncs it, announces it to readers (they reopen at their next call), makes it current.
 * Only a write handle. A crash at any point leaves one whole current file. */
SILT_MUST_USE enum silt_status silt_store_replace(struct silt_store *store, struct silt_err *err);

#endif
