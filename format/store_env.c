/* What the handles of one process share. LMDB must not be opened twice on one file in one process and does not notice it, and
 * its map may change only while no transaction is open: a registry gives each archive one environment, a lock keeps apart
 * transactions (shared) and changes of the map or the file (alone). A child after a fork starts with an empty registry. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "faultpoint.h"
#include "store_priv.h"

#define CLEAR_EVERY 64 /* commits */
#define FOLLOW_MAX 64  /* files replaced while we try to open one: then something is badly wrong */

static struct {
    pthread_mutex_t lock;
    struct silt_env *first;
    struct silt_env *
        inherited; /* of the process that forked us: never touched again, LMDB would clear the parent's slots */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void before_fork(void)
{
    pthread_mutex_lock(&registry.lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&registry.lock);
}

static void after_fork_child(void)
{
    struct silt_env **end = &registry.first;
    while (*end)
        end = &(*end)->next;
    *end = registry.inherited;
    registry.inherited = registry.first;
    registry.first = NULL;
    pthread_mutex_unlock(&registry.lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* ---- the current file ---- */

/* The name that a replaced file gives to those who still have it open. SILT_END: it is the current one. */
static enum silt_status successor_of(struct silt_kv_txn *txn, const char *file,
                                     char ret[SILT_FILE_NAME_MAX], struct silt_err *err)
{
    struct silt_key key = silt_key_successor();
    struct silt_view value;
    uint64_t number, before = 0;
    enum silt_status status = silt_kv_get(txn, SILT_DB_META, silt_key_view(&key), &value, err);
    if (status != SILT_OK) return status;
    char name[SILT_FILE_NAME_MAX] = {0};
    if (value.len < sizeof name) memcpy(name, value.at, value.len);
    bool numbered = silt_file_number(file, &before);
    if (!numbered || !silt_file_number(name, &number) || number <= before)
        return silt_fail(err, SILT_ERR_CORRUPT, "%s names a successor that cannot be one", file);
    memcpy(ret, name, sizeof name);
    return SILT_OK;
}

/* A first snapshot, with the map as large as the file wants it. */
static enum silt_status begin_alone(struct silt_kv *kv, struct silt_kv_txn **ret,
                                    struct silt_err *err)
{
    bool resized = false;
    enum silt_status status = silt_kv_read_begin(kv, ret, &resized, err);
    while (status == SILT_OK && resized) {
        status = silt_kv_remap(kv, err);
        if (status == SILT_OK) status = silt_kv_read_begin(kv, ret, &resized, err);
    }
    return status;
}

static enum silt_status open_file(const struct silt_env *env, const char *file, bool write,
                                  struct silt_kv **ret, struct silt_err *err)
{
    struct silt_kv_options options = {.write = write, .map_bytes = env->options.map_initial_bytes};
    SILT_CLEANUP(silt_free_p) char *path = silt_path_join(env->dir, file, NULL);
    SILT_CLEANUP(silt_free_p) char *lock = silt_path_join(env->dir, file, "-lock");
    if (!path || !lock) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    enum silt_status status = silt_kv_open(path, &options, ret, err);
    silt_file_give(env->dir, lock);
    return status;
}

/* The file was replaced and removed since its name was read: what took its place has a higher number. A name that never was
 * one (a damaged `current`) has nothing above it: then the lowest file begins the chain. */
static enum silt_status next_name(const char *dir, char file[SILT_FILE_NAME_MAX],
                                  struct silt_err *err)
{
    uint64_t number = 0;
    (void)silt_file_number(file, &number);
    enum silt_status status = silt_dir_lowest(dir, number, file, err);
    return status == SILT_END ? silt_dir_lowest(dir, 0, file, err) : status;
}

/* Opens `file` or, where it has been replaced, what took its place. file: in, the name to start with; out, the name opened. */
static enum silt_status open_current(const struct silt_env *env, char file[SILT_FILE_NAME_MAX],
                                     bool write, struct silt_kv **ret, struct silt_err *err)
{
    for (int i = 0; i < FOLLOW_MAX; i++) {
        struct silt_kv *kv = NULL;
        struct silt_kv_txn *txn = NULL;
        enum silt_status status = open_file(env, file, write, &kv, err);
        if (status == SILT_ERR_NO_ARCHIVE) {
            status = next_name(env->dir, file, err);
            if (status == SILT_OK) continue;
        }
        if (status == SILT_OK) status = begin_alone(kv, &txn, err);
        if (status == SILT_OK) status = successor_of(txn, file, file, err);
        silt_kv_end(txn);
        if (status == SILT_END && kv) {
            *ret = kv;
            return SILT_OK;
        }
        silt_kv_close(kv);
        if (status == SILT_END)
            return silt_fail(err, SILT_ERR_NO_ARCHIVE, "there is no archive in %s", env->dir);
        if (status != SILT_OK) return status;
    }
    return silt_fail(err, SILT_ERR_CORRUPT, "%s: the files that replace each other have no end",
                     env->dir);
}

static enum silt_status first_name(const char *dir, bool write, char ret[SILT_FILE_NAME_MAX],
                                   struct silt_err *err)
{
    enum silt_status status =
        write ? silt_dir_lowest(dir, 0, ret, err) : silt_dir_current(dir, ret, err);
    if (status == SILT_END)
        return silt_fail(err, SILT_ERR_NO_ARCHIVE, "there is no archive in %s", dir);
    return status;
}

/* Alone. The same file must be closed before it is opened again. */
static enum silt_status reopen(struct silt_env *env, bool write, struct silt_err *err)
{
    silt_kv_close(SILT_TAKE(env->kv));
    env->lost = true;
    enum silt_status status = first_name(env->dir, write, env->file, err);
    if (status == SILT_OK) status = open_current(env, env->file, write, &env->kv, err);
    if (status != SILT_OK) return status;
    env->writable = write;
    env->lost = false;
    return SILT_OK;
}

/* ---- the registry ---- */

static void env_free(struct silt_env *env)
{
    if (!env) return;
    silt_kv_close(env->kv);
    pthread_rwlock_destroy(&env->lock);
    silt_free(env->dir);
    silt_free(env);
}

/* Writers first: a stream of readers must not keep a growing map waiting for ever. */
static void init_lock(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(lock, &attr);
    pthread_rwlockattr_destroy(&attr);
}

static enum silt_status env_new(const char *dir, const struct stat *st,
                                const struct silt_store_options *options, struct silt_env **ret,
                                struct silt_err *err)
{
    struct silt_env *env = silt_calloc(1, sizeof *env);
    if (!env) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    init_lock(&env->lock);
    env->pid = getpid();
    env->device = st->st_dev;
    env->inode = st->st_ino;
    env->options = *options;
    env->generation = 1;
    char full[PATH_MAX]; /* a later chdir must not lead us elsewhere */
    env->dir = silt_strdup(realpath(dir, full) ? full : dir);
    enum silt_status status = env->dir ? SILT_OK : silt_fail(err, SILT_ERR_MEMORY, NULL);
    if (status == SILT_OK) status = reopen(env, options->write, err);
    if (status != SILT_OK) {
        env_free(env);
        return status;
    }
    *ret = env;
    return SILT_OK;
}

/* Another handle of this process has it open: as a reader only, perhaps, or lost. */
static enum silt_status env_share(struct silt_env *env, const struct silt_store_options *options,
                                  struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    pthread_rwlock_wrlock(&env->lock);
    bool was_lost = env->lost;
    if (options->map_limit_bytes > env->options.map_limit_bytes)
        env->options.map_limit_bytes = options->map_limit_bytes;
    if (was_lost || (options->write && !env->writable))
        status = reopen(env, options->write || env->writable, err);
    if (was_lost && status == SILT_OK) env->generation++;
    pthread_rwlock_unlock(&env->lock);
    return status;
}

static enum silt_status acquire(const char *dir, const struct silt_store_options *options,
                                struct silt_env **ret, struct silt_err *err)
{
    struct stat st;
    enum silt_status status;
    if (stat(dir, &st) != 0) return silt_fail_errno(err, errno, "cannot look at %s", dir);
    struct silt_env *env = registry.first;
    while (env && (env->device != st.st_dev || env->inode != st.st_ino))
        env = env->next;
    if (env) {
        status = env_share(env, options, err);
    } else {
        status = env_new(dir, &st, options, &env, err);
        if (status == SILT_OK) {
            env->next = registry.first;
            registry.first = env;
        }
    }
    if (status != SILT_OK) return status;
    env->refs++;
    *ret = env;
    return SILT_OK;
}

enum silt_status silt_env_acquire(const char *dir, const struct silt_store_options *options,
                                  struct silt_env **ret, struct silt_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&registry.lock);
    enum silt_status status = acquire(dir, options, ret, err);
    pthread_mutex_unlock(&registry.lock);
    return status;
}

void silt_env_release(struct silt_env *env)
{
    if (!env || env->pid != getpid()) return; /* a forked child lets the parent's alone */
    pthread_mutex_lock(&registry.lock);
    if (--env->refs == 0) {
        struct silt_env **at = &registry.first;
        while (*at != env)
            at = &(*at)->next;
        *at = env->next;
        env_free(env);
    }
    pthread_mutex_unlock(&registry.lock);
}

/* ---- transactions ---- */

static enum silt_status usable(const struct silt_store *store, struct silt_err *err)
{
    if (store->env->lost || store->generation != store->env->generation)
        return silt_fail(err, SILT_ERR_STORE_LOST, "%s was lost; close it and open it again",
                         store->env->dir);
    return SILT_OK;
}

static enum silt_status enter(struct silt_store *store, struct silt_err *err)
{
    if (store->env->pid != getpid())
        return silt_fail(err, SILT_ERR_USAGE, "%s was opened before a fork; open it in the child",
                         store->env->dir);
    pthread_rwlock_rdlock(&store->env->lock);
    enum silt_status status = usable(store, err);
    if (status != SILT_OK) pthread_rwlock_unlock(&store->env->lock);
    return status;
}

static enum silt_status remap(struct silt_env *env, struct silt_err *err)
{
    pthread_rwlock_wrlock(&env->lock);
    enum silt_status status = env->kv ? silt_kv_remap(env->kv, err) : SILT_OK;
    if (status != SILT_OK) env->lost = true;
    pthread_rwlock_unlock(&env->lock);
    return status;
}

/* Another process replaced the file. The new one is opened before the old one is let go, so a failure changes nothing. */
static enum silt_status follow(struct silt_env *env, const char *from, const char *to,
                               struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    pthread_rwlock_wrlock(&env->lock);
    if (env->kv && strcmp(env->file, from) == 0) { /* else another thread has done it */
        struct silt_kv *kv = NULL;
        char file[SILT_FILE_NAME_MAX];
        memcpy(file, to, sizeof file);
        status = open_current(env, file, env->writable, &kv, err);
        if (status == SILT_OK) {
            silt_kv_close(env->kv);
            env->kv = kv;
            memcpy(env->file, file, sizeof file);
        }
    }
    pthread_rwlock_unlock(&env->lock);
    return status;
}

enum silt_status silt_env_read(struct silt_store *store, struct silt_kv_txn **ret,
                               struct silt_err *err)
{
    struct silt_env *env = store->env;
    for (;;) {
        char from[SILT_FILE_NAME_MAX], to[SILT_FILE_NAME_MAX];
        bool resized = false;
        struct silt_kv_txn *txn = NULL;
        enum silt_status status = enter(store, err);
        if (status != SILT_OK) return status;
        memcpy(from, env->file, sizeof from);
        status = silt_kv_read_begin(env->kv, &txn, &resized, err);
        if (status == SILT_OK && !resized) {
            status = successor_of(txn, from, to, err);
            if (status == SILT_END) {
                *ret = txn;
                return SILT_OK;
            }
            silt_kv_end(txn);
        }
        pthread_rwlock_unlock(&env->lock);
        if (status == SILT_OK) status = resized ? remap(env, err) : follow(env, from, to, err);
        if (status != SILT_OK) return status;
    }
}

void silt_env_read_end(struct silt_store *store, struct silt_kv_txn *txn)
{
    silt_kv_end(txn);
    pthread_rwlock_unlock(&store->env->lock);
}

void silt_env_lose(struct silt_env *env)
{
    pthread_rwlock_wrlock(&env->lock);
    env->lost = true;
    pthread_rwlock_unlock(&env->lock);
}

/* What one attempt to write came upon before it could do its work. */
struct obstacle {
    bool resized;
    bool replaced;
    char from[SILT_FILE_NAME_MAX];
    char to[SILT_FILE_NAME_MAX];
};

static enum silt_status write_in(struct silt_store *store, silt_apply *apply, void *ctx,
                                 struct silt_kv_txn *txn, struct obstacle *ret,
                                 struct silt_err *err)
{
    /* Promise 1: nothing may be written to a file that has been replaced; it is about to be removed. */
    memcpy(ret->from, store->env->file, sizeof ret->from);
    enum silt_status status = successor_of(txn, ret->from, ret->to, err);
    ret->replaced = status == SILT_OK;
    if (status == SILT_END) status = apply(ctx, txn, err);
    if (status == SILT_OK && !ret->replaced) return silt_kv_commit(txn, err);
    silt_kv_end(txn);
    return status;
}

/* The snapshot of a killed reader keeps every page that is freed after it: the file would grow with each commit until our next start. */
static void clear_dead_readers(struct silt_env *env)
{
    int cleared;
    if (++env->writes % CLEAR_EVERY != 0) return;
    if (silt_kv_clear_dead_readers(env->kv, &cleared, NULL) != SILT_OK)
        return; /* the commit itself will tell what is wrong */
}

static enum silt_status write_once(struct silt_store *store, silt_apply *apply, void *ctx,
                                   struct obstacle *ret, struct silt_err *err)
{
    struct silt_kv_txn *txn = NULL;
    memset(ret, 0, sizeof *ret);
    enum silt_status status = enter(store, err);
    if (status != SILT_OK) return status;
    clear_dead_readers(store->env);
    status = silt_kv_named(store->env->kv, err);
    if (status == SILT_OK) status = silt_kv_write_begin(store->env->kv, &txn, &ret->resized, err);
    if (status == SILT_OK && !ret->resized) status = write_in(store, apply, ctx, txn, ret, err);
    pthread_rwlock_unlock(&store->env->lock);
    if (status == SILT_ERR_STORE_LOST) silt_env_lose(store->env);
    return status;
}

static enum silt_status grow(struct silt_env *env, struct silt_err *err)
{
    pthread_rwlock_wrlock(&env->lock);
    enum silt_status status = silt_kv_grow(env->kv, env->options.map_limit_bytes, err);
    if (status == SILT_ERR_STORE_LOST) env->lost = true;
    pthread_rwlock_unlock(&env->lock);
    return status;
}

enum silt_status silt_env_write(struct silt_store *store, silt_apply *apply, void *ctx,
                                struct silt_err *err)
{
    if (!store->write)
        return silt_fail(err, SILT_ERR_USAGE, "%s was opened for reading only", store->env->dir);
    for (;;) {
        struct obstacle obstacle;
        enum silt_status status = write_once(store, apply, ctx, &obstacle, err);
        if (status == SILT_OK && obstacle.resized)
            status = remap(store->env, err);
        else if (status == SILT_OK && obstacle.replaced)
            status = follow(store->env, obstacle.from, obstacle.to, err);
        else if (status == SILT_ERR_MAP_FULL)
            status = grow(store->env, err);
        else
            return status;
        if (status != SILT_OK) return status;
    }
}
