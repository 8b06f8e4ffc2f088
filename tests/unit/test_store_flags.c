/* E5: what LMDB is asked for, at its own door: no flag that lets a commit return before it is on disk, neither for an environment nor for a transaction. */
#include <dlfcn.h>
#include <lmdb.h>

#include "harness/harness.h"

static unsigned seen, opened, begun, changed;

int mdb_env_open(MDB_env *env, const char *path, unsigned flags, mdb_mode_t mode)
{
    int (*real)(MDB_env *, const char *, unsigned, mdb_mode_t);
    *(void **)&real = dlsym(RTLD_NEXT, "mdb_env_open");
    seen |= flags;
    opened++;
    return real(env, path, flags, mode);
}

int mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **ret)
{
    int (*real)(MDB_env *, MDB_txn *, unsigned, MDB_txn **);
    unsigned now = 0;
    *(void **)&real = dlsym(RTLD_NEXT, "mdb_txn_begin");
    seen |= flags;
    if (mdb_env_get_flags(env, &now) == 0) seen |= now;
    begun++;
    return real(env, parent, flags, ret);
}

int mdb_env_set_flags(MDB_env *env, unsigned flags, int on)
{
    int (*real)(MDB_env *, unsigned, int);
    *(void **)&real = dlsym(RTLD_NEXT, "mdb_env_set_flags");
    changed++;
    return real(env, flags, on);
}

START_TEST(store_flags__e5_every_commit_is_synced)
{
    struct test_archive archive;
    struct test_stream stream;
    char wrong[200];
    test_archive_open(&archive, test_path("a"), true, 1u << 20);
    test_stream_new(&archive, &stream, "s", NULL);
    for (uint64_t i = 0; i < 40; i++) /* the map grows, too */
        test_fold(&archive, &stream, i * 500 + 1, i * 500 + 500);
    test_archive_close(&archive);
    struct silt_store *store = test_store_reader(test_path("a"));
    ck_assert_uint_eq(test_archive_count(store, "s", wrong), 20000);
    silt_store_close(store);
    ck_assert_uint_ge(opened, 2);
    ck_assert_uint_gt(begun, 40);
    ck_assert_uint_eq(changed, 0);
    ck_assert_uint_eq(seen & (MDB_NOSYNC | MDB_NOMETASYNC | MDB_MAPASYNC | MDB_WRITEMAP), 0);
    ck_assert_uint_eq(seen & MDB_NOLOCK, 0); /* F7 */
}
END_TEST

START_TEST(store_flags__e5_no_setting_asks_for_it)
{
    char path[300];
    snprintf(path, sizeof path, "%s/docs/silt.yaml", test_source_root());
    char *sample = test_file_read(path, NULL);
    ck_assert_ptr_nonnull(strstr(sample, "map-limit:"));
    ck_assert_ptr_null(strcasestr(sample, "sync:"));
    ck_assert_ptr_null(strcasestr(sample, "durab"));
    free(sample);
}
END_TEST

TEST_MAIN(store_flags__e5_every_commit_is_synced, store_flags__e5_no_setting_asks_for_it)
