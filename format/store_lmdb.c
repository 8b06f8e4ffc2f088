/* The one file that knows LMDB: an ordered key-value file with snapshots and one synced write transaction at a time.
 * It must not know what the keys and values mean.
 *
 * LMDB keeps the snapshots apart and writes; reading its pages is done by store_page.c, through a map of our own, because LMDB
 * believes whatever a page says. */
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "faultpoint.h"
#include "store_page.h"
#include "store_priv.h"

/* Durability is not an option: none of MDB_NOSYNC, MDB_NOMETASYNC, MDB_MAPASYNC, MDB_WRITEMAP stands here or anywhere. */
#define ENV_FLAGS (MDB_NOSUBDIR | MDB_NOTLS)
#define READERS_MAX 1022u
#define MAP_LEAST (1ULL << 20)
#define MODE 0640
#define LMDB_MAGIC 0xBEEFC0DEu
#define LMDB_MAGIC_AT 16u
#define HEAD_BYTES (65536u + 4096u) /* both meta pages of the largest pages */
#define META_KEPT 256u              /* more than a meta page's header and content */
#define OPEN_TRIES 10
#define OPEN_PAUSE_NS 5000000L
#define BEGIN_TRIES 1000 /* a writer must overtake us twice each time */

static const char *const db_names[SILT_DB_COUNT] = {
    "meta", "streams", "names", "segments", "gaps", "forks", "late", "tombstones",
};

const char *silt_db_name(enum silt_db db)
{
    return db_names[db];
}

/* A database as a snapshot sees it, looked up when it is first needed. */
struct view {
    bool known;
    struct silt_tree tree;
    struct silt_page_cursor cursor;
};

struct silt_kv_txn {
    struct silt_kv *kv;
    struct silt_kv_txn *next; /* in the pool */
    MDB_txn *txn;
    bool write;
    /* of a snapshot */
    struct silt_pages pages;
    struct view views[SILT_DB_COUNT];
    /* of the writer */
    MDB_cursor *cursors[SILT_DB_COUNT];
    uint64_t put_bytes;
};

struct silt_kv {
    MDB_env *env;
    MDB_dbi dbi[SILT_DB_COUNT];
    bool write;
    const uint8_t *map; /* our own, as long as LMDB's */
    uint64_t map_bytes;
    uint64_t page_bytes;
    pthread_mutex_t lock;     /* protects the pool */
    struct silt_kv_txn *pool; /* snapshots that were let go (no slot's transaction is active) */
    struct silt_roots roots;  /* as they were at the opening */
    char *file;
};

/* ---- results ---- */

static enum silt_status kv_code(int rc)
{
    switch (rc) {
    case MDB_MAP_FULL: return SILT_ERR_MAP_FULL;
    case MDB_READERS_FULL: return SILT_ERR_READER_SLOTS;
    case MDB_VERSION_MISMATCH: return SILT_ERR_NEWER_FORMAT;
    case MDB_INVALID: return SILT_ERR_NOT_ARCHIVE;
    case MDB_PANIC: return SILT_ERR_STORE_LOST;
    case MDB_TXN_FULL: return SILT_ERR_LIMIT;
    default: return SILT_ERR_CORRUPT;
    }
}

static enum silt_status kv_fail(const struct silt_kv *kv, int rc, const char *what,
                                struct silt_err *err)
{
    const char *file = kv && kv->file ? kv->file : "the archive";
    if (rc > 0) return silt_fail_errno(err, rc, "%s: %s", file, what);
    return silt_fail(err, kv_code(rc), "%s: %s: %s", file, what, mdb_strerror(rc));
}

/* ---- opening ---- */

static enum silt_status not_archive(const char *file, struct silt_err *err)
{
    return silt_fail(err, SILT_ERR_NOT_ARCHIVE, "%s is not a silt archive file", file);
}

/* LMDB takes an empty file for a new one and believes both meta pages: look first. A writer may be at work, so what does not fit is
 * read again. */
static enum silt_status look_at_head(const char *file, int fd, uint64_t file_bytes,
                                     struct silt_err *err)
{
    uint8_t *head = silt_alloc(HEAD_BYTES);
    enum silt_status status = head ? SILT_ERR_CORRUPT : SILT_ERR_MEMORY;
    if (!head) silt_fail(err, status, NULL);
    for (int i = 0; i < BEGIN_TRIES && status == SILT_ERR_CORRUPT; i++) {
        ssize_t got = pread(fd, head, HEAD_BYTES, 0);
        if (got < 0)
            status = silt_fail_errno(err, errno, "cannot read %s", file);
        else if ((size_t)got < LMDB_MAGIC_AT + 4 ||
                 silt_get_le32(head + LMDB_MAGIC_AT) != LMDB_MAGIC)
            status = not_archive(file, err);
        else if (silt_pages_head_ok(silt_view(head, (size_t)got), file_bytes))
            status = SILT_OK;
    }
    silt_free(head);
    if (status == SILT_ERR_CORRUPT)
        silt_fail(err, status, "%s: the file's first pages are damaged", file);
    return status;
}

static enum silt_status look_at_file(const char *file, struct silt_err *err)
{
    struct stat st;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return silt_fail(err, SILT_ERR_NO_ARCHIVE, "there is no archive file %s", file);
    if (fd < 0) return silt_fail_errno(err, errno, "cannot open %s", file);
    enum silt_status status = fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)
                                  ? not_archive(file, err)
                                  : look_at_head(file, fd, (uint64_t)st.st_size, err);
    close(fd);
    return status;
}

/* Our own map of the file, as large as LMDB's. Only while no transaction is open. */
static int map_again(struct silt_kv *kv)
{
    MDB_envinfo info;
    MDB_stat stat_of;
    int fd;
    if (kv->map) munmap((void *)(uintptr_t)kv->map, kv->map_bytes);
    kv->map = NULL;
    int rc = mdb_env_info(kv->env, &info);
    if (rc == 0) rc = mdb_env_stat(kv->env, &stat_of);
    if (rc == 0) rc = mdb_env_get_fd(kv->env, &fd);
    if (rc != 0) return rc;
    void *map = mmap(NULL, info.me_mapsize, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) return errno;
    kv->map = map;
    kv->map_bytes = info.me_mapsize;
    kv->page_bytes = stat_of.ms_psize;
    return 0;
}

static int open_env(struct silt_kv *kv, const struct silt_kv_options *options, uint64_t map)
{
    unsigned flags = ENV_FLAGS | (options->write ? 0 : MDB_RDONLY);
    int rc = mdb_env_create(&kv->env);
    if (rc != 0) return rc;
    rc = mdb_env_set_maxdbs(kv->env, SILT_DB_COUNT);
    if (rc == 0) rc = mdb_env_set_maxreaders(kv->env, READERS_MAX);
    if (rc == 0) rc = mdb_env_set_mapsize(kv->env, map);
    if (rc == 0) rc = mdb_env_open(kv->env, kv->file, flags, MODE);
    if (rc == 0) rc = map_again(kv);
    if (rc == 0) return 0;
    mdb_env_close(kv->env);
    kv->env = NULL;
    return rc;
}

/* Address space may be scarce (ulimit -v): take half, and half again. */
static int open_env_somehow(struct silt_kv *kv, const struct silt_kv_options *options)
{
    uint64_t map = options->map_bytes > MAP_LEAST ? options->map_bytes : MAP_LEAST;
    for (;;) {
        int rc = open_env(kv, options, map);
        if (rc != ENOMEM || map <= MAP_LEAST) return rc;
        map /= 2;
    }
}

/* Handles for writing; a reader finds its trees by itself. */
static int open_databases(struct silt_kv *kv, bool create)
{
    if (!kv->write) return 0;
    MDB_txn *txn;
    int rc = mdb_txn_begin(kv->env, NULL, create ? 0 : MDB_RDONLY, &txn);
    if (rc == MDB_MAP_RESIZED) {
        rc = mdb_env_set_mapsize(kv->env, 0);
        if (rc == 0) rc = map_again(kv);
        if (rc == 0) rc = mdb_txn_begin(kv->env, NULL, create ? 0 : MDB_RDONLY, &txn);
    }
    if (rc != 0) return rc;
    for (int i = 0; i < SILT_DB_COUNT && rc == 0; i++)
        rc = mdb_dbi_open(txn, db_names[i], create ? MDB_CREATE : 0, &kv->dbi[i]);
    if (rc == 0) return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return rc;
}

static enum silt_status open_failed(struct silt_kv *kv, int rc, struct silt_err *err)
{
    if (rc == MDB_NOTFOUND || rc == MDB_INCOMPATIBLE)
        return silt_fail(err, SILT_ERR_NOT_ARCHIVE, "%s is an LMDB file but not a silt archive",
                         kv->file);
    if (rc == ENOENT)
        return silt_fail(err, SILT_ERR_NO_ARCHIVE, "there is no archive file %s", kv->file);
    return kv_fail(kv, rc, "cannot open", err);
}

static void note_damage(void *ctx, const struct silt_page_fault *fault)
{
    (void)fault;
    *(bool *)ctx = true;
}

/* LMDB's writer reads pages through its map, and behind the end of the file the kernel ends the process. The last pages of a transaction may rightly
 * be missing, so where the file is shorter than it says its structure decides. */
static enum silt_status look_at_length(struct silt_kv *kv, struct silt_err *err)
{
    struct silt_kv_txn *txn = NULL;
    bool resized, damaged = false;
    enum silt_status status = silt_kv_read_begin(kv, &txn, &resized, err);
    if (status != SILT_OK || resized)
        return status; /* the map is too small to tell; so is the file not */
    if (txn->pages.last_page >= txn->pages.bytes / txn->pages.page_bytes)
        status = silt_kv_audit(txn, note_damage, &damaged, err);
    silt_kv_end(txn);
    if (damaged)
        status = silt_fail(err, SILT_ERR_CORRUPT, "%s is shorter than it says: cut off", kv->file);
    return status;
}

static void txn_free(struct silt_kv_txn *txn)
{
    if (txn->txn) mdb_txn_abort(txn->txn);
    silt_free(txn);
}

/* Promise 5: an older state, however whole, is not taken for the newest. */
static enum silt_status look_at_roots(struct silt_kv_txn *txn, struct silt_err *err)
{
    struct silt_kv *kv = txn->kv;
    silt_pages_roots(&txn->pages, &kv->roots);
    if (kv->roots.newest) return SILT_OK;
    return silt_fail(err, SILT_ERR_CORRUPT,
                     "%s: damaged: its first pages do not lead to the last commit", kv->file);
}

/* Whoever opens a file that nobody has open sets up LMDB's lock file in two steps. Killed between them it leaves "nothing was ever committed" to those who
 * waited for it, and a writer that believed this would commit below the newest commit: lost at the next start (promise 1). Such a snapshot
 * has no meta page of its own. When all who met it have let go, the next to open sets it up whole. */
static enum silt_status open_once(struct silt_kv *kv, const struct silt_kv_options *options,
                                  bool *ret_again, struct silt_err *err)
{
    struct silt_kv_txn *txn = NULL;
    bool resized = false;
    int rc = open_env_somehow(kv, options);
    if (rc != 0) return open_failed(kv, rc, err);
    if (!options->create) {
        enum silt_status status = silt_kv_read_begin(kv, &txn, &resized, err);
        *ret_again = silt_status_class(status) == SILT_CLASS_CORRUPT;
        if (status == SILT_OK && txn) status = look_at_roots(txn, err);
        silt_kv_end(txn);
        if (status == SILT_OK && kv->write) status = look_at_length(kv, err);
        if (status != SILT_OK) return status;
    }
    rc = open_databases(kv, options->create);
    return rc != 0 ? open_failed(kv, rc, err) : SILT_OK;
}

static void close_env(struct silt_kv *kv)
{
    while (kv->pool) {
        struct silt_kv_txn *txn = kv->pool;
        kv->pool = txn->next;
        txn_free(txn);
    }
    if (kv->env) mdb_env_close(kv->env);
    if (kv->map) munmap((void *)(uintptr_t)kv->map, kv->map_bytes);
    kv->env = NULL;
    kv->map = NULL;
}

enum silt_status silt_kv_open(const char *file, const struct silt_kv_options *options,
                              struct silt_kv **ret, struct silt_err *err)
{
    enum silt_status status = options->create ? SILT_OK : look_at_file(file, err);
    if (status != SILT_OK) return status;
    struct silt_kv *kv = silt_calloc(1, sizeof *kv);
    if (!kv) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    pthread_mutex_init(&kv->lock, NULL);
    kv->write = options->write;
    kv->file = silt_strdup(file);
    bool again = kv->file != NULL;
    status = again ? SILT_OK : silt_fail(err, SILT_ERR_MEMORY, NULL);
    for (long i = 0; i < OPEN_TRIES && again; i++) {
        if (i > 0) nanosleep(&(struct timespec){0, OPEN_PAUSE_NS * i}, NULL);
        again = false;
        status = open_once(kv, options, &again, err);
        if (status != SILT_OK) close_env(kv);
    }
    if (status != SILT_OK) {
        silt_kv_close(kv);
        return status;
    }
    *ret = kv;
    return SILT_OK;
}

enum silt_status silt_kv_named(const struct silt_kv *kv, struct silt_err *err)
{
    struct stat opened, named;
    int fd;
    bool same = mdb_env_get_fd(kv->env, &fd) == 0 && fstat(fd, &opened) == 0 &&
                stat(kv->file, &named) == 0 && opened.st_dev == named.st_dev &&
                opened.st_ino == named.st_ino;
    if (same) return SILT_OK;
    silt_fail(err, SILT_ERR_STORE_LOST, "%s was moved or removed while it was open", kv->file);
    silt_hint(err, "nothing more is written or trimmed; put it back, or begin a new archive");
    return SILT_ERR_STORE_LOST;
}

void silt_kv_close(struct silt_kv *kv)
{
    if (!kv) return;
    close_env(kv);
    pthread_mutex_destroy(&kv->lock);
    silt_free(kv->file);
    silt_free(kv);
}

/* ---- transactions ---- */

static struct silt_kv_txn *pool_take(struct silt_kv *kv)
{
    pthread_mutex_lock(&kv->lock);
    struct silt_kv_txn *txn = kv->pool;
    if (txn) kv->pool = txn->next;
    pthread_mutex_unlock(&kv->lock);
    return txn;
}

static int begin_new_read(struct silt_kv_txn *txn)
{
    int rc = mdb_txn_begin(txn->kv->env, NULL, MDB_RDONLY, &txn->txn);
    /* LMDB 0.9.31 destroys the lock file's mutexes when the last user closes; whoever opens while somebody else holds that file finds them so. Like a lock
     * file set up by half: it says nothing of the archive, and passes when all who met it have let go. */
    if (rc == EINVAL) return MDB_CORRUPTED;
    if (rc != MDB_READERS_FULL) return rc;
    int dead = 0; /* slots of killed readers are given back before anybody is refused */
    rc = mdb_reader_check(txn->kv->env, &dead);
    if (rc != 0) return rc;
    return mdb_txn_begin(txn->kv->env, NULL, MDB_RDONLY, &txn->txn);
}

/* The roots of the snapshot's trees. 0, or an errno, or MDB_CORRUPTED. */
static int find_pages(struct silt_kv_txn *txn)
{
    struct silt_kv *kv = txn->kv;
    struct stat st;
    int fd;
    int rc = mdb_env_get_fd(kv->env, &fd);
    for (int i = 0; rc == 0 && i < BEGIN_TRIES; i++) {
        if (fstat(fd, &st) != 0) return errno;
        uint64_t size = (uint64_t)st.st_size < kv->map_bytes ? (uint64_t)st.st_size : kv->map_bytes;
        if (silt_pages_begin(&txn->pages, kv->map, size, kv->page_bytes, mdb_txn_id(txn->txn)))
            return 0;
        mdb_txn_reset(txn->txn); /* the writer was two commits ahead already: a fresher one */
        rc = mdb_txn_renew(txn->txn);
    }
    return rc == 0 ? MDB_CORRUPTED : rc;
}

enum silt_status silt_kv_read_begin(struct silt_kv *kv, struct silt_kv_txn **ret, bool *ret_resized,
                                    struct silt_err *err)
{
    *ret_resized = false;
    struct silt_kv_txn *txn = pool_take(kv);
    int rc;
    if (txn) {
        rc = mdb_txn_renew(txn->txn);
    } else {
        txn = silt_calloc(1, sizeof *txn);
        if (!txn) return silt_fail(err, SILT_ERR_MEMORY, NULL);
        txn->kv = kv;
        rc = begin_new_read(txn);
    }
    for (int i = 0; i < SILT_DB_COUNT; i++)
        txn->views[i].known = false;
    if (rc == 0) rc = find_pages(txn);
    if (rc == 0) {
        *ret = txn;
        return SILT_OK;
    }
    txn_free(txn);
    if (rc == MDB_MAP_RESIZED) {
        *ret_resized = true;
        return SILT_OK;
    }
    enum silt_status status = kv_fail(kv, rc, "cannot begin to read", err);
    if (status == SILT_ERR_READER_SLOTS)
        silt_hint(err, "%u readers have the archive open at this moment; try again", READERS_MAX);
    return status;
}

enum silt_status silt_kv_write_begin(struct silt_kv *kv, struct silt_kv_txn **ret,
                                     bool *ret_resized, struct silt_err *err)
{
    *ret_resized = false;
    struct silt_kv_txn *txn = silt_calloc(1, sizeof *txn);
    if (!txn) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    txn->kv = kv;
    txn->write = true;
    int rc = mdb_txn_begin(kv->env, NULL, 0, &txn->txn);
    if (rc == 0) {
        *ret = txn;
        return SILT_OK;
    }
    silt_free(txn);
    if (rc == MDB_MAP_RESIZED) {
        *ret_resized = true;
        return SILT_OK;
    }
    return kv_fail(kv, rc, "cannot begin to write", err);
}

void silt_kv_end(struct silt_kv_txn *txn)
{
    if (!txn) return;
    struct silt_kv *kv = txn->kv;
    if (txn->write) {
        mdb_txn_abort(txn->txn); /* closes its cursors */
        silt_free(txn);
        return;
    }
    mdb_txn_reset(txn->txn);
    pthread_mutex_lock(&kv->lock);
    txn->next = kv->pool;
    kv->pool = txn;
    pthread_mutex_unlock(&kv->lock);
}

/* LMDB 0.9.24 answers a short write with EIO: was it the disk, the quota of file size, or real damage? */
static bool ran_out_of_room(struct silt_kv *kv, int rc, uint64_t wanted)
{
    if (rc == ENOSPC || rc == EDQUOT || rc == EFBIG) return true;
    if (rc != EIO) return false;
    uint64_t need = wanted * 2 + (1u << 20);
    struct statvfs room;
    struct rlimit limit;
    struct stat st;
    if (statvfs(kv->file, &room) == 0 && (uint64_t)room.f_bavail * room.f_frsize < need)
        return true;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           stat(kv->file, &st) == 0 && (uint64_t)st.st_size + need > limit.rlim_cur;
}

static enum silt_status commit_failed(struct silt_kv *kv, int rc, uint64_t wanted,
                                      struct silt_err *err)
{
    if (ran_out_of_room(kv, rc, wanted))
        return silt_fail(err, SILT_ERR_DISK_FULL, "no space left for %s", kv->file);
    if (rc == MDB_MAP_FULL || rc == MDB_TXN_FULL || rc == ENOMEM)
        return kv_fail(kv, rc, "cannot commit", err);
    /* Promise 1: what the kernel may have dropped must not be counted as written by a later, lucky sync. */
    return silt_fail(err, SILT_ERR_STORE_LOST, "%s: a write or sync failed: %s", kv->file,
                     mdb_strerror(rc));
}

/* A meta page that could not be written is put back by LMDB with its old number and the new roots: a page that no commit ever made, which a
 * look at the next start cannot tell from damage (store_roots.c). So it gets back all of its bytes. Where that fails too, the commit is as
 * lost as it was. */
struct meta_slot {
    uint8_t bytes[META_KEPT];
    uint64_t at;
};

static void keep_meta(const struct silt_kv_txn *txn, struct meta_slot *ret)
{
    ret->at = mdb_txn_id(txn->txn) % 2 * txn->kv->page_bytes;
    memcpy(ret->bytes, txn->kv->map + ret->at, sizeof ret->bytes);
}

static void restore_meta(struct silt_kv *kv, const struct meta_slot *slot)
{
    int fd;
    if (memcmp(kv->map + slot->at, slot->bytes, sizeof slot->bytes) == 0) return;
    if (mdb_env_get_fd(kv->env, &fd) != 0) return;
    if (pwrite(fd, slot->bytes, sizeof slot->bytes, (off_t)slot->at) == (ssize_t)sizeof slot->bytes)
        (void)fdatasync(fd);
}

enum silt_status silt_kv_commit(struct silt_kv_txn *txn, struct silt_err *err)
{
    struct silt_kv *kv = txn->kv;
    struct meta_slot slot;
    uint64_t wanted = txn->put_bytes;
    if (SILT_FAULTPOINT("store-sync-fails")) {
        silt_kv_end(txn);
        return commit_failed(kv, EIO, 0, err);
    }
    keep_meta(txn, &slot);
    int rc = mdb_txn_commit(txn->txn);
    silt_free(txn);
    if (rc == 0) return SILT_OK;
    restore_meta(kv, &slot);
    return commit_failed(kv, rc, wanted, err);
}

/* ---- reading and writing ---- */

static MDB_val to_val(struct silt_view view)
{
    return (MDB_val){view.len, (void *)(uintptr_t)view.at};
}

static enum silt_status damaged(const struct silt_kv_txn *txn, enum silt_db db,
                                struct silt_err *err)
{
    return silt_fail(err, SILT_ERR_CORRUPT, "%s: an index page of %s is damaged", txn->kv->file,
                     db_names[db]);
}

static enum silt_status view_of(struct silt_kv_txn *txn, enum silt_db db, struct view **ret,
                                struct silt_err *err)
{
    struct view *view = &txn->views[db];
    *ret = view;
    if (view->known) return SILT_OK;
    enum silt_status status = silt_pages_tree(&txn->pages, db_names[db], &view->tree);
    if (status == SILT_END)
        return silt_fail(err, SILT_ERR_NOT_ARCHIVE, "%s is an LMDB file but not a silt archive",
                         txn->kv->file);
    if (status != SILT_OK) return damaged(txn, db, err);
    for (size_t i = 0; i < txn->kv->roots.wrong_count; i++)
        if (txn->kv->roots.wrong[i] == view->tree.root) return damaged(txn, db, err);
    view->known = true;
    return SILT_OK;
}

/* The pair at the place of a snapshot's cursor, after `status`. A value that cannot be reached does not hide its key. */
static enum silt_status give(struct silt_kv_txn *txn, enum silt_db db, enum silt_status status,
                             struct silt_kv_pair *ret, struct silt_err *err)
{
    struct silt_kv_pair pair = {.damaged = false};
    if (status == SILT_END) return SILT_END;
    if (status != SILT_OK) return damaged(txn, db, err);
    pair.damaged = silt_page_pair(&txn->views[db].cursor, &pair.key, &pair.value) != SILT_OK;
    if (pair.damaged) pair.value = silt_view("", 0);
    *ret = pair;
    return SILT_OK;
}

static enum silt_status give_written(struct silt_kv_txn *txn, enum silt_db db, int rc, MDB_val k,
                                     MDB_val v, struct silt_kv_pair *ret, struct silt_err *err)
{
    if (rc == MDB_NOTFOUND) return SILT_END;
    if (rc != 0) return kv_fail(txn->kv, rc, db_names[db], err);
    *ret = (struct silt_kv_pair){.key = silt_view(k.mv_data, k.mv_size),
                                 .value = silt_view(v.mv_data, v.mv_size)};
    return SILT_OK;
}

static int writer_cursor(struct silt_kv_txn *txn, enum silt_db db, MDB_cursor **ret)
{
    int rc = 0;
    if (!txn->cursors[db]) rc = mdb_cursor_open(txn->txn, txn->kv->dbi[db], &txn->cursors[db]);
    *ret = txn->cursors[db];
    return rc;
}

static enum silt_status get_written(struct silt_kv_txn *txn, enum silt_db db, struct silt_view key,
                                    struct silt_view *ret, struct silt_err *err)
{
    MDB_val k = to_val(key), v = {0, NULL};
    struct silt_kv_pair pair;
    int rc = mdb_get(txn->txn, txn->kv->dbi[db], &k, &v);
    enum silt_status status = give_written(txn, db, rc, k, v, &pair, err);
    if (status == SILT_OK) *ret = pair.value;
    return status;
}

enum silt_status silt_kv_get(struct silt_kv_txn *txn, enum silt_db db, struct silt_view key,
                             struct silt_view *ret, struct silt_err *err)
{
    struct silt_kv_pair pair;
    if (txn->write) return get_written(txn, db, key, ret, err);
    enum silt_status status = silt_kv_at_or_above(txn, db, key, &pair, err);
    if (status != SILT_OK) return status;
    if (!silt_view_equal(pair.key, key)) return SILT_END;
    if (pair.damaged) return damaged(txn, db, err);
    *ret = pair.value;
    return SILT_OK;
}

enum silt_status silt_kv_at_or_above(struct silt_kv_txn *txn, enum silt_db db, struct silt_view key,
                                     struct silt_kv_pair *ret, struct silt_err *err)
{
    if (txn->write) {
        MDB_cursor *cursor;
        MDB_val k = to_val(key), v = {0, NULL};
        int rc = writer_cursor(txn, db, &cursor);
        if (rc == 0) rc = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
        return give_written(txn, db, rc, k, v, ret, err);
    }
    struct view *view;
    enum silt_status status = view_of(txn, db, &view, err);
    if (status != SILT_OK) return status;
    status = silt_page_seek(&view->cursor, &txn->pages, &view->tree, key);
    return give(txn, db, status, ret, err);
}

static enum silt_status written_below(struct silt_kv_txn *txn, enum silt_db db,
                                      struct silt_view key, struct silt_kv_pair *ret,
                                      struct silt_err *err)
{
    MDB_cursor *cursor;
    MDB_val k = to_val(key), v = {0, NULL};
    int rc = writer_cursor(txn, db, &cursor);
    if (rc == 0) rc = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
    if (rc == MDB_NOTFOUND)
        rc = mdb_cursor_get(cursor, &k, &v, MDB_LAST);
    else if (rc == 0 && !silt_view_equal(silt_view(k.mv_data, k.mv_size), key))
        rc = mdb_cursor_get(cursor, &k, &v, MDB_PREV);
    return give_written(txn, db, rc, k, v, ret, err);
}

/* A value that cannot be read must not hide the one below it: only the key decides which way to go. */
enum silt_status silt_kv_at_or_below(struct silt_kv_txn *txn, enum silt_db db, struct silt_view key,
                                     struct silt_kv_pair *ret, struct silt_err *err)
{
    if (txn->write) return written_below(txn, db, key, ret, err);
    struct view *view;
    enum silt_status status = view_of(txn, db, &view, err);
    if (status != SILT_OK) return status;
    status = silt_page_seek(&view->cursor, &txn->pages, &view->tree, key);
    if (status == SILT_END && view->cursor.depth > 0)
        status = SILT_OK; /* it stands at the last one */
    else if (status == SILT_OK && !silt_view_equal(silt_page_key(&view->cursor), key))
        status = silt_page_step(&view->cursor, -1);
    while (status == SILT_OK && silt_view_compare(silt_page_key(&view->cursor), key) > 0)
        status = silt_page_step(&view->cursor, -1); /* of a torn tree */
    return give(txn, db, status, ret, err);
}

static enum silt_status step(struct silt_kv_txn *txn, enum silt_db db, int way,
                             struct silt_kv_pair *ret, struct silt_err *err)
{
    MDB_val k = {0, NULL}, v = {0, NULL};
    if (!txn->write) return give(txn, db, silt_page_step(&txn->views[db].cursor, way), ret, err);
    int rc = mdb_cursor_get(txn->cursors[db], &k, &v, way > 0 ? MDB_NEXT : MDB_PREV);
    return give_written(txn, db, rc, k, v, ret, err);
}

enum silt_status silt_kv_next(struct silt_kv_txn *txn, enum silt_db db, struct silt_kv_pair *ret,
                              struct silt_err *err)
{
    return step(txn, db, 1, ret, err);
}

enum silt_status silt_kv_prev(struct silt_kv_txn *txn, enum silt_db db, struct silt_kv_pair *ret,
                              struct silt_err *err)
{
    return step(txn, db, -1, ret, err);
}

enum silt_status silt_kv_put(struct silt_kv_txn *txn, enum silt_db db, struct silt_view key,
                             struct silt_view value, struct silt_err *err)
{
    MDB_val k = to_val(key), v = to_val(value);
    int rc = mdb_put(txn->txn, txn->kv->dbi[db], &k, &v, 0);
    if (rc != 0) return kv_fail(txn->kv, rc, "cannot write", err);
    txn->put_bytes += key.len + value.len;
    return SILT_OK;
}

enum silt_status silt_kv_delete(struct silt_kv_txn *txn, enum silt_db db, struct silt_view key,
                                struct silt_err *err)
{
    MDB_val k = to_val(key);
    int rc = mdb_del(txn->txn, txn->kv->dbi[db], &k, NULL);
    if (rc == MDB_NOTFOUND) return SILT_END;
    return rc == 0 ? SILT_OK : kv_fail(txn->kv, rc, "cannot write", err);
}

/* ---- size ---- */

static enum silt_status set_map(struct silt_kv *kv, uint64_t bytes, struct silt_err *err)
{
    int rc = mdb_env_set_mapsize(kv->env, bytes);
    if (rc == 0) rc = map_again(kv);
    if (rc == 0) return SILT_OK;
    return silt_fail(err, SILT_ERR_STORE_LOST, "%s cannot be mapped: %s", kv->file,
                     mdb_strerror(rc));
}

enum silt_status silt_kv_remap(struct silt_kv *kv, struct silt_err *err)
{
    if (set_map(kv, 0, NULL) == SILT_OK) return SILT_OK; /* as large as the writer says */
    return set_map(kv, MAP_LEAST, err);                  /* LMDB raises it to what the file needs */
}

enum silt_status silt_kv_grow(struct silt_kv *kv, uint64_t limit, struct silt_err *err)
{
    MDB_envinfo info;
    int rc = mdb_env_info(kv->env, &info);
    if (rc != 0) return kv_fail(kv, rc, "cannot tell its size", err);
    if (info.me_mapsize >= limit) {
        silt_fail(err, SILT_ERR_MAP_FULL, "%s reached its limit of %llu bytes", kv->file,
                  (unsigned long long)limit);
        silt_hint(err, "raise archive: map-limit");
        return SILT_ERR_MAP_FULL;
    }
    uint64_t more = info.me_mapsize > limit / 2 ? limit : info.me_mapsize * 2;
    if (set_map(kv, more, NULL) == SILT_OK) return SILT_OK;
    enum silt_status status = set_map(kv, info.me_mapsize, err);
    if (status != SILT_OK) return status;
    return silt_fail(err, SILT_ERR_MAP_FULL, "no address space to map %llu bytes of %s",
                     (unsigned long long)more, kv->file);
}

enum silt_status silt_kv_space(struct silt_kv *kv, struct silt_kv_txn *txn,
                               struct silt_store_space *ret, struct silt_err *err)
{
    MDB_envinfo info;
    MDB_stat stat_of;
    struct stat st;
    uint64_t free_pages = 0;
    int rc = mdb_env_info(kv->env, &info);
    if (rc == 0) rc = mdb_env_stat(kv->env, &stat_of);
    if (rc == 0 && silt_pages_free(&txn->pages, &free_pages) != SILT_OK) rc = MDB_CORRUPTED;
    if (rc == 0 && stat(kv->file, &st) != 0) rc = errno;
    if (rc != 0) return kv_fail(kv, rc, "cannot tell its size", err);
    uint64_t pages = (uint64_t)info.me_last_pgno + 1;
    if (free_pages > pages) free_pages = pages;
    *ret = (struct silt_store_space){
        .file_bytes = (uint64_t)st.st_size,
        .used_bytes = (pages - free_pages) * stat_of.ms_psize,
        .free_bytes = free_pages * stat_of.ms_psize,
        .map_bytes = info.me_mapsize,
        .readers = info.me_numreaders,
    };
    return SILT_OK;
}

enum silt_status silt_kv_clear_dead_readers(struct silt_kv *kv, int *ret_count,
                                            struct silt_err *err)
{
    int dead = 0;
    int rc = mdb_reader_check(kv->env, &dead);
    if (rc != 0) return kv_fail(kv, rc, "cannot look through its readers", err);
    *ret_count = dead;
    return SILT_OK;
}

enum silt_status silt_kv_audit(struct silt_kv_txn *txn, silt_page_found *found, void *ctx,
                               struct silt_err *err)
{
    enum silt_status status = silt_pages_audit(&txn->pages, found, ctx);
    return status == SILT_OK ? SILT_OK : silt_fail(err, status, NULL);
}
