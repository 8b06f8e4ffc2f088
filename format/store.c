/* An archive opened and closed: the directory, the lock, the first environment file, the meta row. Reading is store_read.c,
 * writing store_commit.c. */
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "alloc.h"
#include "faultpoint.h"
#include "store_priv.h"

#define NEW_SUFFIX ".new"

/* ---- a new archive ---- */

/* A random (version 4) UUID. */
static enum silt_status make_uuid(char ret[SILT_UUID_TEXT], struct silt_err *err)
{
    uint8_t b[16];
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        return silt_fail_errno(err, errno, "no random numbers");
    b[6] = (uint8_t)((b[6] & 0x0F) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3F) | 0x80);
    snprintf(ret, SILT_UUID_TEXT,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    return SILT_OK;
}

enum silt_status silt_txn_put_meta(struct silt_kv_txn *txn, const struct silt_meta_row *row,
                                   struct silt_err *err)
{
    SILT_CLEANUP(silt_buf_release) struct silt_buf bytes = {0};
    struct silt_key key = silt_key_meta();
    enum silt_status status = silt_meta_row_encode(row, silt_key_view(&key), &bytes);
    if (status != SILT_OK) return silt_fail(err, status, NULL);
    return silt_kv_put(txn, SILT_DB_META, silt_key_view(&key), silt_buf_view(&bytes), err);
}

static enum silt_status fill_new(struct silt_kv *kv, struct silt_err *err)
{
    bool resized;
    struct silt_kv_txn *txn = NULL;
    struct silt_meta_row meta = {.version = SILT_FORMAT_VERSION,
                                 .epoch = 1,
                                 .pid_namespace = silt_pid_namespace(),
                                 .next_stream = 1,
                                 .next_life = 1};
    enum silt_status status = make_uuid(meta.uuid, err);
    if (status == SILT_OK) status = silt_kv_write_begin(kv, &txn, &resized, err);
    if (status != SILT_OK) return status;
    status = silt_txn_put_meta(txn, &meta, err);
    if (status == SILT_OK) return silt_kv_commit(txn, err);
    silt_kv_end(txn);
    return status;
}

/* Makes a file under a name that nobody opens. */
static enum silt_status make_new_file(const char *dir, const char *path, const char *lock_path,
                                      const struct silt_store_options *options,
                                      struct silt_err *err)
{
    struct silt_kv *kv = NULL;
    struct silt_kv_options kv_options = {
        .write = true, .create = true, .map_bytes = options->map_initial_bytes};
    unlink(path); /* what a crash left half-made */
    unlink(lock_path);
    enum silt_status status = silt_kv_open(path, &kv_options, &kv, err);
    if (status == SILT_OK) status = fill_new(kv, err);
    silt_kv_close(kv);
    unlink(lock_path);
    if (status == SILT_OK) status = silt_file_sync(path, err);
    silt_file_give(dir, path);
    return status;
}

/* The first file: made under another name, synced, renamed, named by `current`; synced at each step. A crash leaves either no
 * environment file or a whole one. */
static enum silt_status create_archive(const char *dir, const struct silt_store_options *options,
                                       struct silt_err *err)
{
    char name[SILT_FILE_NAME_MAX];
    silt_file_name(1, name);
    SILT_CLEANUP(silt_free_p) char *path = silt_path_join(dir, name, NULL);
    SILT_CLEANUP(silt_free_p) char *made = silt_path_join(dir, name, NEW_SUFFIX);
    SILT_CLEANUP(silt_free_p) char *lock = silt_path_join(dir, name, NEW_SUFFIX "-lock");
    if (!path || !made || !lock) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    /* Promise 1: a directory that a power cut forgets is no archive. Here, and not where it is made: who made it may have come no further. */
    enum silt_status status = silt_dir_sync_name(dir, err);
    if (status == SILT_OK) status = make_new_file(dir, made, lock, options, err);
    if (status != SILT_OK) return status;
    if (SILT_FAULTPOINT("store-create-before-rename"))
        return silt_fail(err, SILT_ERR_IO, "cannot rename %s", made);
    if (rename(made, path) != 0) return silt_fail_errno(err, errno, "cannot rename %s", made);
    status = silt_dir_sync(dir, err);
    if (status != SILT_OK) return status;
    if (SILT_FAULTPOINT("store-create-before-current"))
        return silt_fail(err, SILT_ERR_IO, "cannot make %s/current", dir);
    return silt_dir_set_current(dir, name, err);
}

/* ---- opening ---- */

/* The directory, the lock and, where asked, the first file. *ret_fd: the lock, for a writer. */
static enum silt_status prepare(const char *dir, const struct silt_store_options *options,
                                int *ret_fd, struct silt_err *err)
{
    char name[SILT_FILE_NAME_MAX];
    bool create = options->write && options->create;
    enum silt_status status = silt_dir_check(dir, err);
    if (status == SILT_ERR_NO_ARCHIVE && create) {
        status = silt_dir_make(dir, err);
        if (status == SILT_OK) status = silt_dir_check(dir, err);
    }
    if (status != SILT_OK) return status;
    if (!create) {
        status = silt_dir_current(dir, name, err);
        if (status == SILT_END)
            return silt_fail(err, SILT_ERR_NO_ARCHIVE, "there is no archive in %s", dir);
        if (status != SILT_OK) return status;
    }
    if (!options->write) return silt_lock_check(dir, err);
    status = silt_lock_take(dir, ret_fd, err);
    if (status != SILT_OK) return status;
    status = silt_dir_lowest(dir, 0, name, err);
    return status == SILT_END ? create_archive(dir, options, err) : status;
}

/* Processes of two PID namespaces must not share LMDB's reader table while one of them writes: the holder leaves its own. */
static enum silt_status note_namespace(void *ctx, struct silt_kv_txn *txn, struct silt_err *err)
{
    struct silt_meta_row meta;
    (void)ctx;
    enum silt_status status = silt_txn_meta(txn, &meta, err);
    if (status != SILT_OK) return status;
    meta.pid_namespace = silt_pid_namespace();
    return silt_txn_put_meta(txn, &meta, err);
}

struct first_fault {
    bool any;
    struct silt_page_fault fault;
    char tree[32];
};

static void keep_first(void *ctx, const struct silt_page_fault *fault)
{
    struct first_fault *first = ctx;
    if (first->any || !fault->grave) return;
    first->any = true;
    first->fault = *fault;
    snprintf(first->tree, sizeof first->tree, "%s", fault->tree);
}

/* LMDB believes its pages: a flipped bit in the free list would let the next commit write over segments, one in an index page end
 * this process. So a writer looks through the index once, at its start (promise 8; no value is read, only where it lies). */
static enum silt_status look_through(struct silt_store *store, struct silt_err *err)
{
    struct first_fault first = {.any = false};
    struct silt_kv_txn *txn;
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_kv_audit(txn, keep_first, &first, err);
    silt_env_read_end(store, txn);
    if (status != SILT_OK || !first.any) return status;
    silt_fail(err, SILT_ERR_CORRUPT, "%s/%s is not written to: index of %s: %s (page %llu)",
              store->env->dir, store->env->file, first.tree, first.fault.what,
              (unsigned long long)first.fault.page);
    silt_hint(err, "`silt verify` tells what is affected; reading still works");
    return SILT_ERR_CORRUPT;
}

/* What a writer puts right at its start: `current`, leftovers of a replacement, slots of killed readers. */
static enum silt_status tidy(struct silt_store *store, const struct silt_meta_row *meta,
                             struct silt_err *err)
{
    char named[SILT_FILE_NAME_MAX] = "";
    struct silt_env *env = store->env;
    int cleared;
    enum silt_status status = silt_dir_current(env->dir, named, err);
    if (status != SILT_OK && status != SILT_END) return status;
    /* Always written anew where it may be missing: a reader's fallback is no name to rely on. */
    if (strcmp(named, env->file) != 0 || !silt_dir_has_current(env->dir)) {
        status = silt_dir_set_current(env->dir, env->file, err);
        if (status != SILT_OK) return status;
    }
    silt_dir_clean(env->dir,
                   env->file); /* only now: until `current` is right, readers may need the chain */
    status = silt_store_clear_dead_readers(store, &cleared, err);
    if (status != SILT_OK || meta->pid_namespace == silt_pid_namespace()) return status;
    return silt_env_write(store, note_namespace, NULL, err);
}

static enum silt_status open_store(struct silt_store *store, const char *dir,
                                   const struct silt_store_options *options, struct silt_err *err)
{
    struct silt_meta_row meta;
    enum silt_status status = prepare(dir, options, &store->lock_fd, err);
    if (status == SILT_OK) status = silt_env_acquire(dir, options, &store->env, err);
    if (status != SILT_OK) return status;
    store->generation = store->env->generation;
    store->write = options->write;
    status = silt_store_meta(store, &meta, err);
    if (status != SILT_OK || !options->write) return status;
    store->next_stream = meta.next_stream;
    store->next_life = meta.next_life;
    status = look_through(store, err);
    return status == SILT_OK ? tidy(store, &meta, err) : status;
}

enum silt_status silt_store_open(const char *path, const struct silt_store_options *options,
                                 struct silt_store **ret, struct silt_err *err)
{
    struct silt_store *store = silt_calloc(1, sizeof *store);
    if (!store) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    store->lock_fd = -1;
    struct silt_err why = {0};
    /* The limit holds from the start: what is reserved at once is only a guess. */
    struct silt_store_options bounded = *options;
    if (bounded.map_initial_bytes > bounded.map_limit_bytes)
        bounded.map_initial_bytes = bounded.map_limit_bytes;
    enum silt_status status = open_store(store, path, &bounded, &why);
    if (status != SILT_OK) {
        if (status == SILT_ERR_PERMISSION && why.hint[0] == '\0') silt_dir_hint_owner(path, &why);
        if (err) *err = why;
        silt_store_close(store);
        return status;
    }
    *ret = store;
    return SILT_OK;
}

void silt_store_close(struct silt_store *store)
{
    if (!store) return;
    silt_env_release(store->env);
    if (store->lock_fd >= 0) close(store->lock_fd); /* last: nobody writes while we still might */
    silt_segment_free(store->segment);
    silt_buf_release(&store->gap_key);
    silt_free(store);
}

/* ---- what it tells about itself ---- */

enum silt_status silt_store_meta(struct silt_store *store, struct silt_meta_row *ret,
                                 struct silt_err *err)
{
    struct silt_kv_txn *txn;
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_txn_meta(txn, ret, err);
    silt_env_read_end(store, txn);
    return status;
}

enum silt_status silt_store_space(struct silt_store *store, struct silt_store_space *ret,
                                  struct silt_err *err)
{
    struct silt_kv_txn *txn;
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_kv_space(store->env->kv, txn, ret, err);
    silt_env_read_end(store, txn);
    return status;
}

enum silt_status silt_store_clear_dead_readers(struct silt_store *store, int *ret_count,
                                               struct silt_err *err)
{
    struct silt_kv_txn *txn;
    enum silt_status status = silt_env_read(store, &txn, err);
    if (status != SILT_OK) return status;
    status = silt_kv_clear_dead_readers(store->env->kv, ret_count, err);
    silt_env_read_end(store, txn);
    return status;
}

/* ---- numbers ---- */

enum silt_status silt_store_new_stream(struct silt_store *store, uint64_t *ret_number,
                                       uint64_t *ret_life, struct silt_err *err)
{
    if (!store->write)
        return silt_fail(err, SILT_ERR_USAGE, "the archive was opened for reading only");
    *ret_number = store->next_stream++;
    *ret_life = store->next_life++;
    return SILT_OK;
}

enum silt_status silt_store_new_life(struct silt_store *store, uint64_t *ret_life,
                                     struct silt_err *err)
{
    if (!store->write)
        return silt_fail(err, SILT_ERR_USAGE, "the archive was opened for reading only");
    *ret_life = store->next_life++;
    return SILT_OK;
}
