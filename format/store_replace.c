/* A new environment file takes the place of the old one: the one mechanism behind giving space back and erasing (protocol.md §10).
 *
 *   1. copy every pair into archive-<n+1>.mdb.new; open that again and compare it pair by pair; sync it; rename it to archive-<n+1>.mdb; sync the directory
 *   2. one commit in the old file names the successor: from here on the new file is the current one, for readers at their next
 *      call and for the next start
 *   3. `current` is renamed into place; the directory is synced
 *   4. the old file is removed; who still has it open follows the successor at the next call, and the last one gives the space back
 *
 * A crash before 2 leaves the old file current and a stray copy that the next start removes; after 2 the chain of successors,
 * walked from the lowest file, leads to the new one whatever `current` says. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "alloc.h"
#include "faultpoint.h"
#include "store_priv.h"

#define COPY_BYTES (32u << 20) /* of one transaction of the copy */

struct paths {
    char name[SILT_FILE_NAME_MAX];
    char *path;
    char *made;
    char *made_lock;
};

static void paths_release(struct paths *paths)
{
    silt_free(paths->path);
    silt_free(paths->made);
    silt_free(paths->made_lock);
}

static enum silt_status make_paths(const struct silt_env *env, struct paths *ret,
                                   struct silt_err *err)
{
    uint64_t number;
    if (!silt_file_number(env->file, &number) || number == UINT64_MAX)
        return silt_fail(err, SILT_ERR_CORRUPT, "%s/%s has no number", env->dir, env->file);
    silt_file_name(number + 1, ret->name);
    ret->path = silt_path_join(env->dir, ret->name, NULL);
    ret->made = silt_path_join(env->dir, ret->name, ".new");
    ret->made_lock = silt_path_join(env->dir, ret->name, ".new-lock");
    if (ret->path && ret->made && ret->made_lock) return SILT_OK;
    return silt_fail(err, SILT_ERR_MEMORY, NULL);
}

/* ---- the copy ---- */

struct copy {
    struct silt_kv_txn *from;
    struct silt_kv *to;
    uint64_t limit;
    enum silt_db db;
    struct silt_buf after; /* the last key that is committed in the copy */
    struct silt_buf last;  /* the last key put */
};

static enum silt_status first_pair(struct copy *copy, struct silt_kv_pair *ret,
                                   struct silt_err *err)
{
    static const uint8_t least[1] = {0};
    struct silt_view after = silt_buf_view(&copy->after);
    struct silt_view from = after.len > 0 ? after : silt_view(least, 1);
    enum silt_status status = silt_kv_at_or_above(copy->from, copy->db, from, ret, err);
    if (status == SILT_OK && after.len > 0 && silt_view_equal(ret->key, after))
        status = silt_kv_next(copy->from, copy->db, ret, err);
    return status;
}

/* One transaction's worth of one database. SILT_END: that was the last of it. */
static enum silt_status copy_some(struct copy *copy, struct silt_kv_txn *txn, struct silt_err *err)
{
    struct silt_kv_pair pair;
    size_t bytes = 0;
    enum silt_status status = first_pair(copy, &pair, err);
    for (; status == SILT_OK && bytes < COPY_BYTES;
         status = silt_kv_next(copy->from, copy->db, &pair, err)) {
        if (pair.damaged)
            return silt_fail(err, SILT_ERR_CORRUPT, "a value of %s is damaged: not copied",
                             silt_db_name(copy->db));
        status = silt_kv_put(txn, copy->db, pair.key, pair.value, err);
        if (status != SILT_OK) return status;
        bytes += pair.value.len;
        silt_buf_clear(&copy->last);
        status = silt_buf_put(&copy->last, pair.key.at, pair.key.len);
        if (status != SILT_OK) return silt_fail(err, status, NULL);
    }
    return status;
}

static enum silt_status copy_database(struct copy *copy, struct silt_err *err)
{
    silt_buf_clear(&copy->after);
    silt_buf_clear(&copy->last);
    for (;;) {
        bool resized;
        struct silt_kv_txn *txn = NULL;
        enum silt_status status = silt_kv_write_begin(copy->to, &txn, &resized, err);
        if (status != SILT_OK) return status;
        enum silt_status some = copy_some(copy, txn, err);
        if (some == SILT_OK || some == SILT_END) {
            status = silt_kv_commit(txn, err);
        } else {
            silt_kv_end(txn);
            status = some;
        }
        if (status == SILT_ERR_MAP_FULL) {
            status = silt_kv_grow(copy->to, copy->limit, err);
            if (status != SILT_OK) return status;
            continue; /* the same part again */
        }
        if (status != SILT_OK || some == SILT_END) return status;
        silt_buf_clear(&copy->after);
        status = silt_buf_put(&copy->after, copy->last.at, copy->last.len);
        if (status != SILT_OK) return silt_fail(err, status, NULL);
    }
}

static enum silt_status copy_all(struct silt_store *store, struct silt_kv *to, struct silt_err *err)
{
    struct copy copy = {.to = to, .limit = store->env->options.map_limit_bytes};
    enum silt_status status = silt_env_read(store, &copy.from, err);
    if (status != SILT_OK) return status;
    for (copy.db = 0; copy.db < SILT_DB_COUNT && status == SILT_OK; copy.db++)
        status = copy_database(&copy, err);
    silt_env_read_end(store, copy.from);
    silt_buf_release(&copy.after);
    silt_buf_release(&copy.last);
    return status;
}

/* What will be the only copy is read again, byte for byte, before the old one may go (promise 1). */
static enum silt_status compare_database(struct silt_kv_txn *a, struct silt_kv_txn *b,
                                         enum silt_db db, struct silt_err *err)
{
    static const uint8_t least[1] = {0};
    struct silt_kv_pair x, y;
    enum silt_status one = silt_kv_at_or_above(a, db, silt_view(least, 1), &x, err);
    enum silt_status other = silt_kv_at_or_above(b, db, silt_view(least, 1), &y, err);
    while (one == SILT_OK && other == SILT_OK) {
        if (!silt_view_equal(x.key, y.key) || !silt_view_equal(x.value, y.value)) break;
        one = silt_kv_next(a, db, &x, err);
        other = silt_kv_next(b, db, &y, err);
    }
    if (one == SILT_END && other == SILT_END) return SILT_OK;
    if (one != SILT_OK && one != SILT_END) return one;
    if (other != SILT_OK && other != SILT_END) return other;
    return silt_fail(err, SILT_ERR_PROOF, "the copy's %s are not the original's", silt_db_name(db));
}

static enum silt_status compare_copy(struct silt_store *store, const struct paths *paths,
                                     struct silt_err *err)
{
    struct silt_kv *kv = NULL;
    struct silt_kv_txn *a = NULL, *b = NULL;
    bool resized = false;
    struct silt_kv_options options = {.map_bytes = store->env->options.map_initial_bytes};
    enum silt_status status = silt_kv_open(paths->made, &options, &kv, err);
    if (status == SILT_OK) status = silt_kv_read_begin(kv, &b, &resized, err);
    if (status == SILT_OK) status = silt_env_read(store, &a, err);
    if (a) {
        for (int db = 0; db < SILT_DB_COUNT && status == SILT_OK; db++)
            status = compare_database(a, b, (enum silt_db)db, err);
        silt_env_read_end(store, a);
    }
    silt_kv_end(b);
    silt_kv_close(kv);
    return status;
}

/* Step 1. One snapshot serves the whole copy: nobody else writes, and our own thread is here. */
static enum silt_status make_copy(struct silt_store *store, const struct paths *paths,
                                  struct silt_err *err)
{
    struct silt_kv *to = NULL;
    struct silt_kv_options options = {
        .write = true, .create = true, .map_bytes = store->env->options.map_initial_bytes};
    unlink(paths->made);
    unlink(paths->made_lock);
    enum silt_status status = silt_kv_open(paths->made, &options, &to, err);
    if (status == SILT_OK) status = copy_all(store, to, err);
    silt_kv_close(to);
    if (status == SILT_OK) status = compare_copy(store, paths, err);
    unlink(paths->made_lock);
    silt_file_give(store->env->dir, paths->made);
    if (status == SILT_OK && SILT_FAULTPOINT("store-replace-copied"))
        status = silt_fail(err, SILT_ERR_DISK_FULL, NULL);
    if (status == SILT_OK) status = silt_file_sync(paths->made, err);
    if (status == SILT_OK && rename(paths->made, paths->path) != 0)
        status = silt_fail_errno(err, errno, "cannot rename %s", paths->made);
    if (status == SILT_OK) status = silt_dir_sync(store->env->dir, err);
    if (status != SILT_OK) {
        unlink(paths->made);
        unlink(paths->path);
    }
    return status;
}

/* ---- the change ---- */

static enum silt_status put_successor(void *ctx, struct silt_kv_txn *txn, struct silt_err *err)
{
    const struct paths *paths = ctx;
    struct silt_key key = silt_key_successor();
    return silt_kv_put(txn, SILT_DB_META, silt_key_view(&key), silt_view_str(paths->name), err);
}

/* Step 2. */
static enum silt_status announce(struct silt_store *store, struct paths *paths,
                                 struct silt_err *err)
{
    if (SILT_FAULTPOINT("store-replace-before-announce")) {
        unlink(paths->path);
        return silt_fail(err, SILT_ERR_DISK_FULL, NULL);
    }
    enum silt_status status = silt_env_write(store, put_successor, paths, err);
    if (status != SILT_OK && status != SILT_ERR_STORE_LOST)
        unlink(paths->path); /* surely not announced; a lost store must find both files */
    return status;
}

enum silt_status silt_store_replace(struct silt_store *store, struct silt_err *err)
{
    SILT_CLEANUP(paths_release) struct paths paths = {.path = NULL};
    struct silt_meta_row meta;
    if (!store->write)
        return silt_fail(err, SILT_ERR_USAGE, "the archive was opened for reading only");
    enum silt_status status = silt_store_meta(store, &meta, err); /* follows an earlier one first */
    if (status == SILT_OK) status = make_paths(store->env, &paths, err);
    if (status == SILT_OK) status = make_copy(store, &paths, err);
    if (status == SILT_OK) status = announce(store, &paths, err);
    if (status != SILT_OK) return status;
    if (SILT_FAULTPOINT("store-replace-announced")) return silt_fail(err, SILT_ERR_IO, NULL);
    /* Our own process follows as any other: at its next call. */
    status = silt_store_meta(store, &meta, err);
    if (status == SILT_OK) status = silt_dir_set_current(store->env->dir, paths.name, err);
    if (status != SILT_OK) return status;
    if (SILT_FAULTPOINT("store-replace-before-remove")) return silt_fail(err, SILT_ERR_IO, NULL);
    silt_dir_clean(store->env->dir, paths.name);
    return SILT_OK;
}
