/* What the store's files share: a small ordered key-value interface that hides LMDB (store_lmdb.c), the directory that names
 * its current file (store_file.c), the environment that all handles of a process share (store_env.c). */
#ifndef SILT_STORE_PRIV_H
#define SILT_STORE_PRIV_H

#include <pthread.h>
#include <sys/types.h>

#include "store.h"
#include "store_page.h"

/* ---- store_lmdb.c: one opened LMDB file ---- */

/* Named databases; the order is the order of their names' table. */
enum silt_db {
    SILT_DB_META,       /* "meta", "successor" */
    SILT_DB_STREAMS,    /* number -> stream row */
    SILT_DB_NAMES,      /* 32-byte hash -> number */
    SILT_DB_SEGMENTS,   /* life, first id -> segment */
    SILT_DB_GAPS,       /* life, after, n -> gap row */
    SILT_DB_FORKS,      /* 'L', life and 'S', stream, life -> fork row */
    SILT_DB_LATE,       /* life, number -> late row */
    SILT_DB_TOMBSTONES, /* empty so far: what `silt erase` will leave */
    SILT_DB_COUNT
};
const char *silt_db_name(enum silt_db db);

struct silt_kv;     /* an opened file */
struct silt_kv_txn; /* a snapshot, or the write transaction */

struct silt_kv_options {
    bool write;
    bool create; /* with write: the file must not exist yet; makes all databases */
    uint64_t map_bytes;
};
/* Never sets NOSYNC, NOMETASYNC, MAPASYNC or WRITEMAP. Where the address space cannot be had it takes less.
 * Fails with SILT_ERR_NO_ARCHIVE (no such file), _NOT_ARCHIVE, _NEWER_FORMAT, _CORRUPT, _PERMISSION, _MEMORY, _IO. */
SILT_MUST_USE enum silt_status silt_kv_open(const char *file, const struct silt_kv_options *options,
                                            struct silt_kv **ret, struct silt_err *err);
/* No transaction may be open. */
void silt_kv_close(struct silt_kv *kv);
/* Does the file's name still lead to the file that is open? What a nameless file holds is gone with the process. Fails with
 * SILT_ERR_STORE_LOST. */
SILT_MUST_USE enum silt_status silt_kv_named(const struct silt_kv *kv, struct silt_err *err);

/* A fresh snapshot. *ret_resized: another process enlarged the file beyond our map; nothing was begun: close all transactions
 * of this process, call silt_kv_remap, begin again. Threads: any. */
SILT_MUST_USE enum silt_status silt_kv_read_begin(struct silt_kv *kv, struct silt_kv_txn **ret,
                                                  bool *ret_resized, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_kv_write_begin(struct silt_kv *kv, struct silt_kv_txn **ret,
                                                   bool *ret_resized, struct silt_err *err);
/* Ends a snapshot, or drops a write transaction. NULL is fine. */
void silt_kv_end(struct silt_kv_txn *txn);
/* Synced when it returns SILT_OK. The transaction is gone in any case. Fails with SILT_ERR_DISK_FULL and SILT_ERR_MAP_FULL (nothing
 * was written; works again when there is room), SILT_ERR_STORE_LOST (a write or sync failed: final). */
SILT_MUST_USE enum silt_status silt_kv_commit(struct silt_kv_txn *txn, struct silt_err *err);

/* SILT_END: no such key. Views hold until the transaction ends or, in a write transaction, until its next put. */
SILT_MUST_USE enum silt_status silt_kv_get(struct silt_kv_txn *txn, enum silt_db db,
                                           struct silt_view key, struct silt_view *ret,
                                           struct silt_err *err);
struct silt_kv_pair {
    struct silt_view key;
    struct silt_view value;
    bool damaged; /* the key is there, its value's pages are damaged: value is empty */
};
/* The first pair with a key at or above / the last at or below the given one, then its neighbours. SILT_END: none. One place per database and
 * transaction; a put forgets it. */
SILT_MUST_USE enum silt_status silt_kv_at_or_above(struct silt_kv_txn *txn, enum silt_db db,
                                                   struct silt_view key, struct silt_kv_pair *ret,
                                                   struct silt_err *err);
SILT_MUST_USE enum silt_status silt_kv_at_or_below(struct silt_kv_txn *txn, enum silt_db db,
                                                   struct silt_view key, struct silt_kv_pair *ret,
                                                   struct silt_err *err);
/* After SILT_ERR_CORRUPT of a snapshot's search or step, these go on behind (before) the damaged page. */
SILT_MUST_USE enum silt_status silt_kv_next(struct silt_kv_txn *txn, enum silt_db db,
                                            struct silt_kv_pair *ret, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_kv_prev(struct silt_kv_txn *txn, enum silt_db db,
                                            struct silt_kv_pair *ret, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_kv_put(struct silt_kv_txn *txn, enum silt_db db,
                                           struct silt_view key, struct silt_view value,
                                           struct silt_err *err);
/* SILT_END: no such key. Forgets places as a put does. */
SILT_MUST_USE enum silt_status silt_kv_delete(struct silt_kv_txn *txn, enum silt_db db,
                                              struct silt_view key, struct silt_err *err);

/* No transaction of this process may be open for the next two. A failure to map again is final: SILT_ERR_STORE_LOST. */
SILT_MUST_USE enum silt_status silt_kv_remap(struct silt_kv *kv, struct silt_err *err);
/* Doubles the map. SILT_ERR_MAP_FULL at the limit. */
SILT_MUST_USE enum silt_status silt_kv_grow(struct silt_kv *kv, uint64_t limit,
                                            struct silt_err *err);
SILT_MUST_USE enum silt_status silt_kv_space(struct silt_kv *kv, struct silt_kv_txn *txn,
                                             struct silt_store_space *ret, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_kv_clear_dead_readers(struct silt_kv *kv, int *ret_count,
                                                          struct silt_err *err);

/* The file's own structure, in one snapshot: see store_audit.c. */
SILT_MUST_USE enum silt_status silt_kv_audit(struct silt_kv_txn *txn, silt_page_found *found,
                                             void *ctx, struct silt_err *err);

/* ---- store_file.c: the directory ---- */

#define SILT_FILE_NAME_MAX 40u /* archive-<number>.mdb */

/* Is this file system one that LMDB's locks and maps cannot be trusted on (statfs magic)? Names it, else NULL. */
const char *silt_fs_refused(long magic);
/* One that works but on which an archive may not last as long as its owner thinks: what to know of it, else NULL. */
const char *silt_fs_doubtful(long magic);
/* A directory where an archive can live. Fails with SILT_ERR_NO_ARCHIVE, _NOT_ARCHIVE (a file), _PROTECTED (network file system),
 * _PERMISSION (read-only mount). */
SILT_MUST_USE enum silt_status silt_dir_check(const char *dir, struct silt_err *err);
/* After a refusal for lack of rights: the same-user rule, and whose the archive is. */
void silt_dir_hint_owner(const char *dir, struct silt_err *err);
/* Makes the last component (0750); fine if it is there. */
SILT_MUST_USE enum silt_status silt_dir_make(const char *dir, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_dir_sync(const char *dir, struct silt_err *err);
/* The directory's own name, in its parent. */
SILT_MUST_USE enum silt_status silt_dir_sync_name(const char *dir, struct silt_err *err);
/* Does `current` itself name a file? */
bool silt_dir_has_current(const char *dir);
/* What `current` names, else the lowest environment file there is. SILT_END: none. */
SILT_MUST_USE enum silt_status silt_dir_current(const char *dir, char ret[SILT_FILE_NAME_MAX],
                                                struct silt_err *err);
/* The lowest environment file with at least that number, whatever `current` says. The lowest of all is always on the chain of
 * successors. SILT_END: none. */
SILT_MUST_USE enum silt_status silt_dir_lowest(const char *dir, uint64_t at_least,
                                               char ret[SILT_FILE_NAME_MAX], struct silt_err *err);
/* Makes `current` name the file, durably. */
SILT_MUST_USE enum silt_status silt_dir_set_current(const char *dir, const char *file,
                                                    struct silt_err *err);
/* Removes environment files and half-made ones other than `keep`. Only with the archive's lock. */
void silt_dir_clean(const char *dir, const char *keep);
/* Is it the name of an environment file, and which number? */
bool silt_file_number(const char *name, uint64_t *ret);
void silt_file_name(uint64_t number, char ret[SILT_FILE_NAME_MAX]);
/* dir/name with an optional suffix, owned. NULL: out of memory. */
char *silt_path_join(const char *dir, const char *name, const char *suffix);
SILT_MUST_USE enum silt_status silt_file_sync(const char *path, struct silt_err *err);
/* When root works on somebody's archive, what it makes belongs to the directory's owner. */
void silt_file_give(const char *dir, const char *path);

/* The archive's lock: one writer. *ret_fd: close it to let go. SILT_ERR_HELD names the holder's process id. */
SILT_MUST_USE enum silt_status silt_lock_take(const char *dir, int *ret_fd, struct silt_err *err);
/* For readers: is it held by a process of another PID namespace? Then SILT_ERR_HELD. */
SILT_MUST_USE enum silt_status silt_lock_check(const char *dir, struct silt_err *err);
uint64_t silt_pid_namespace(void); /* inode; 0: the system does not tell */

/* ---- store_env.c: what the handles of one process share ---- */

struct silt_env {
    struct silt_env *next; /* in the registry */
    size_t refs;
    pid_t pid;
    dev_t device; /* of the directory */
    ino_t inode;
    char *dir;
    struct silt_store_options options;

    /* Transactions hold it shared; remap, growth, reopening and replacing hold it alone. */
    pthread_rwlock_t lock;
    struct silt_kv *kv; /* NULL: lost */
    char file[SILT_FILE_NAME_MAX];
    bool writable;
    uint64_t
        generation; /* raised when a lost environment is opened again: older handles stay lost */
    bool lost;
    unsigned writes; /* since slots of dead readers were last cleared; the one writer's */
};

struct silt_store {
    struct silt_env *env;
    uint64_t generation;
    bool write;
    int lock_fd;
    /* numbers for new streams and lives; only grow, so a failed commit costs numbers, never gives one twice */
    uint64_t next_stream;
    uint64_t next_life;
    struct silt_segment *segment; /* for reading back */
    /* where the last gap that was given lies, so that a walk does not start over */
    uint64_t gap_life;
    uint64_t gap_cursor;
    struct silt_buf gap_key;
};

SILT_MUST_USE enum silt_status silt_env_acquire(const char *dir,
                                                const struct silt_store_options *options,
                                                struct silt_env **ret, struct silt_err *err);
void silt_env_release(struct silt_env *env);
/* A snapshot of the current file, following a replacement; holds the lock shared until silt_env_read_end. */
SILT_MUST_USE enum silt_status silt_env_read(struct silt_store *store, struct silt_kv_txn **ret,
                                             struct silt_err *err);
void silt_env_read_end(struct silt_store *store, struct silt_kv_txn *txn);

/* From now on every handle answers SILT_ERR_STORE_LOST until it is closed and opened again. */
void silt_env_lose(struct silt_env *env);
/* Runs `apply` in one write transaction and commits it; grows the map and runs it again where that is full. */
typedef enum silt_status silt_apply(void *ctx, struct silt_kv_txn *txn, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_env_write(struct silt_store *store, silt_apply *apply,
                                              void *ctx, struct silt_err *err);

/* ---- store_keys.c: keys ---- */

#define SILT_KEY_MAX 48u
struct silt_key {
    uint8_t at[SILT_KEY_MAX];
    size_t len;
};
static inline struct silt_view silt_key_view(const struct silt_key *key)
{
    return (struct silt_view){key->at, key->len};
}
struct silt_key silt_key_meta(void);
struct silt_key silt_key_successor(void);
struct silt_key silt_key_number(uint64_t number);           /* streams */
struct silt_key silt_key_pair(uint64_t high, uint64_t low); /* late: life, number */
struct silt_key silt_key_fork_life(uint64_t life);          /* forks by life */
struct silt_key silt_key_fork_stream(uint64_t stream, uint64_t life);
struct silt_key silt_key_gap(uint64_t life, struct silt_wire_id after, uint64_t n);
struct silt_key silt_key_segment(uint64_t life, struct silt_namespace ns, struct silt_wire_id id);
/* Life and first id of a segment's key; false: it is none. */
bool silt_key_segment_parse(struct silt_view key, uint64_t *ret_life, struct silt_namespace *ret_ns,
                            struct silt_wire_id *ret_id);
/* The hash of a name. Names that collide take the next free round: a look-up goes on from round to round until it meets the
 * name or a round that nobody has. */
struct silt_key silt_key_name(struct silt_view name, uint64_t round);
SILT_MUST_USE enum silt_status silt_name_row_encode(uint64_t number, struct silt_view key,
                                                    struct silt_buf *out);
SILT_MUST_USE enum silt_status silt_name_row_decode(struct silt_view bytes, struct silt_view key,
                                                    uint64_t *ret, struct silt_err *err);

/* ---- reading inside a transaction (store_read.c) ---- */

SILT_MUST_USE enum silt_status silt_txn_meta(struct silt_kv_txn *txn, struct silt_meta_row *ret,
                                             struct silt_err *err);
/* store.c */
SILT_MUST_USE enum silt_status silt_txn_put_meta(struct silt_kv_txn *txn,
                                                 const struct silt_meta_row *row,
                                                 struct silt_err *err);
SILT_MUST_USE enum silt_status silt_txn_stream(struct silt_kv_txn *txn, uint64_t number,
                                               struct silt_stream *ret, struct silt_err *err);
/* The number under a name. SILT_END: none; then *ret_round is the first free round. */
SILT_MUST_USE enum silt_status silt_txn_name(struct silt_kv_txn *txn, struct silt_view name,
                                             struct silt_stream *scratch, uint64_t *ret_number,
                                             uint64_t *ret_round, struct silt_err *err);
/* Walking a life's segments: pair is the value in the map, info its header; see silt_store_segment for damage. */
struct silt_segment_place {
    struct silt_kv_pair pair;
    struct silt_segment_info info;
};
SILT_MUST_USE enum silt_status silt_txn_segment(struct silt_kv_txn *txn, uint64_t life,
                                                struct silt_namespace ns, struct silt_wire_id id,
                                                enum silt_seek seek, struct silt_segment_place *ret,
                                                struct silt_err *err);

#endif
