/* E3, D1: each call that writes, syncs, opens, renames, removes or maps fails once, and each from there on. Nothing is trimmed that is not on the disk, a
 * failed sync is final for the environment, the next start finds the whole history. What a failed sync covered is lost at random: a later one does
 * not bring it back. SILT_SEED and SILT_FAULT_CASE replay one. */
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"
#include "image.h"
#include "replay.h"

struct sweep {
    const char *call, *how;
    char name[64];
    unsigned nth;
    uint64_t steps;
    const char *root, *image, *journal;
};

/* What the journal tells, record by record. */
struct story {
    uint64_t trimmed[WORK_STREAMS];
    bool sync_failed; /* of an environment, and nobody has noticed yet */
    size_t errors;
};

static void give_up(const struct sweep *sweep, const char *why)
{
    case_note("SILT_FAULT_CASE=%s: %.250s", sweep->name, why);
    _exit(1);
}

static void hear(struct story *story, const struct sweep *sweep, const struct shim_record *record,
                 const char *bytes)
{
    if (record->error) story->errors++;
    if (record->kind == SHIM_SYNC && record->error) story->sync_failed = true;
    if (record->kind != SHIM_NOTE) return;
    bool trims = image_take_note(bytes, story->trimmed);
    if (trims && story->sync_failed) give_up(sweep, "a trim after a sync that failed");
    if (strncmp(bytes, "failed", 6) == 0) story->sync_failed = false;
}

static void work_with_fault(const struct sweep *sweep)
{
    char archive[300], program[400], steps[32], fault[96];
    struct test_outcome outcome;
    snprintf(program, sizeof program, "%s/tests/fault/store_work", test_build_root());
    snprintf(archive, sizeof archive, "%s/archive", sweep->root);
    snprintf(steps, sizeof steps, "%" PRIu64, sweep->steps);
    snprintf(fault, sizeof fault, "SILT_SHIM_FAIL=%s:%u:%s", sweep->call, sweep->nth, sweep->how);
    test_remove_all(sweep->root);
    unlink(sweep->journal);
    if (mkdir(sweep->root, 0755) != 0) test_die("mkdir %s", sweep->root);
    const char *argv[] = {program, archive, "5", steps, "40", "lossy", NULL};
    test_program(&outcome, argv, case_env(sweep->root, sweep->journal, fault, (char *)NULL), NULL,
                 60000);
    bool lasting = strchr(sweep->how, '+') != NULL;
    if (outcome.code != 0 && (outcome.code != 1 || !lasting)) {
        case_note("SILT_FAULT_CASE=%s: the work ended with %d, signal %d: %.200s", sweep->name,
                  outcome.code, outcome.signal, outcome.err);
        _exit(1);
    }
    test_outcome_release(&outcome);
}

static void run_one(void *context)
{
    const struct sweep *sweep = context;
    static const unsigned percents[] = {0, 50, 100};
    struct test_rng rng = test_rng(sweep->nth * 31u);
    struct story story = {.errors = 0};
    struct shim_record record;
    const char *bytes;
    work_with_fault(sweep);
    struct replay *replay = replay_new(sweep->journal, NULL, &rng);
    while (replay_next(replay, &record, &bytes))
        hear(&story, sweep, &record, bytes);
    for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++) {
        replay_cut(replay, sweep->image, percents[i], &rng);
        const char *wrong = image_wrong(sweep->image, story.trimmed, &rng);
        if (wrong) give_up(sweep, wrong);
    }
    replay_free(replay);
}

/* How often a run without faults makes the call: the sweep's end. */
static unsigned calls_of_good_run(struct sweep *sweep)
{
    char word[32];
    unsigned count = 0;
    struct shim_record record;
    const char *bytes;
    struct test_rng rng = test_rng(1);
    sweep->nth = 1000000;
    work_with_fault(sweep);
    struct replay *replay = replay_new(sweep->journal, NULL, &rng);
    snprintf(word, sizeof word, " %s=", sweep->call);
    while (replay_next(replay, &record, &bytes))
        if (record.kind == SHIM_CALLS && strstr(bytes, word))
            count = (unsigned)strtoul(strstr(bytes, word) + strlen(word), NULL, 10);
    replay_free(replay);
    return count;
}

static size_t run_sweep(const char *call, const char *how, uint64_t steps, unsigned stride)
{
    struct sweep sweep = {.call = call, .how = how, .steps = steps};
    char root[200], image[200], journal[200], note[400];
    size_t done = 0;
    snprintf(root, sizeof root, "%s", test_path("root"));
    snprintf(image, sizeof image, "%s", test_path("image"));
    snprintf(journal, sizeof journal, "%s", test_path("journal"));
    sweep.root = root;
    sweep.image = image;
    sweep.journal = journal;
    unsigned last = calls_of_good_run(&sweep);
    ck_assert_uint_gt(last, 0);
    struct test_rng rng = test_rng(99);
    unsigned first = 1 + (unsigned)test_rng_below(&rng, stride < last ? stride : last);
    for (sweep.nth = first; sweep.nth <= last; sweep.nth += stride) {
        snprintf(sweep.name, sizeof sweep.name, "%s:%u:%s", call, sweep.nth, how);
        if (!case_wanted(sweep.name)) continue;
        bool fine = case_isolated(run_one, &sweep, note);
        ck_assert_msg(fine, "%s", note);
        done++;
    }
    fprintf(stderr, "# %s fails with %s: %zu of %u calls\n", call, how, done, last);
    return done;
}

/* The bounded form takes a share of the calls, chosen anew each time; the long form all of them. */
static void sweeps(const char *call, const char *const *hows)
{
    size_t done = 0;
    for (; *hows; hows++)
        done += run_sweep(call, *hows, test_long() ? 30 : 10, test_long() ? 1 : 17 * case_price());
    ck_assert(done > 0 || getenv("SILT_FAULT_CASE"));
}

#define SWEEP(call, ...) sweeps(call, (const char *const[]){__VA_ARGS__, NULL})

START_TEST(store_calls__a_failed_sync_is_final)
{
    SWEEP("sync", "EIO", "EIO+", "ENOSPC");
}
END_TEST

START_TEST(store_calls__a_failed_write_loses_nothing)
{
    SWEEP("write", "EIO", "ENOSPC", "ENOSPC+", "short", "EDQUOT");
}
END_TEST

START_TEST(store_calls__a_failed_open_loses_nothing)
{
    SWEEP("open", "EMFILE", "EMFILE+", "EIO");
}
END_TEST

START_TEST(store_calls__a_name_that_cannot_be_changed_loses_nothing)
{
    SWEEP("rename", "EIO", "ENOSPC+");
    SWEEP("unlink", "EIO", "EIO+");
}
END_TEST

START_TEST(store_calls__a_file_that_cannot_be_sized_or_mapped_loses_nothing)
{
    SWEEP("truncate", "ENOSPC", "EIO+");
    SWEEP("mmap", "ENOMEM", "ENOMEM+");
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *tests[] = {
        store_calls__a_failed_sync_is_final,
        store_calls__a_failed_write_loses_nothing,
        store_calls__a_failed_open_loses_nothing,
        store_calls__a_name_that_cannot_be_changed_loses_nothing,
        store_calls__a_file_that_cannot_be_sized_or_mapped_loses_nothing,
    };
    return case_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
