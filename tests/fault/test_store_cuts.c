/* E1 to E5 for the store: power is cut at random moments of folding, rewriting of open tails, growing and replacing the file; what is left is
 * opened again. Every entry that might have been trimmed is there, once, byte for byte, the archive is a prefix of the history, verify finds
 * nothing, folding goes on. Some of what is left is worked on until the next cut. SILT_SEED and SILT_FAULT_CASE replay one. */
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"
#include "image.h"
#include "replay.h"

#define LINKS 3 /* of a chain: each begins with what a cut left of the one before */

struct plan {
    uint64_t chain;
    size_t cuts; /* of one link */
    uint64_t steps, most;
    bool lies;
    size_t *done, *lost; /* counted here; shared */
    const char *root, *image, *next, *journal, *store_work;
};

struct link {
    const struct plan *plan;
    int number;
    uint64_t trimmed[WORK_STREAMS];
    uint64_t next_trimmed[WORK_STREAMS];
    size_t next_base; /* the cut that the next link begins with */
    struct test_rng rng;
};

/* ---- cutting ---- */

static void cut(struct link *link, const struct replay *replay, size_t number, size_t at)
{
    static const unsigned percents[] = {0, 5, 30, 50, 70, 95, 100};
    const struct plan *plan = link->plan;
    /* Of its own, so that a case can be had again without those before it. */
    struct test_rng rng =
        test_rng((plan->chain << 32) ^ ((uint64_t)link->number << 24) ^ (number << 2) ^ 3);
    unsigned percent = percents[test_rng_below(&rng, sizeof percents / sizeof percents[0])];
    char name[64];
    snprintf(name, sizeof name, "%" PRIu64 ":%d:%zu", plan->chain, link->number, number);
    bool is_next = number == link->next_base;
    if (is_next) {
        replay_cut(replay, plan->next, percent, &rng);
        memcpy(link->next_trimmed, link->trimmed, sizeof link->trimmed);
    }
    if (!case_wanted(name)) return;
    case_note("SILT_FAULT_CASE=%s: a cut at record %zu, %u%% of the rest kept", name, at, percent);
    replay_cut(replay, plan->image, percent, &rng);
    const char *wrong = image_wrong(plan->image, link->trimmed, &rng);
    ++*plan->done;
    if (!wrong) return;
    ++*plan->lost;
    if (plan->lies) return;
    case_note("SILT_FAULT_CASE=%s: a cut at record %zu, %u%% of the rest kept: %.200s", name, at,
              percent, wrong);
    _exit(1);
}

static int compare_sizes(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

static void walk(struct link *link, const char *base)
{
    const struct plan *plan = link->plan;
    struct replay *replay = replay_new(plan->journal, base, &link->rng);
    size_t count = replay_count(replay), next = 0, at = 0;
    size_t *points = calloc(plan->cuts, sizeof *points);
    for (size_t i = 0; i < plan->cuts; i++)
        points[i] = test_rng_below(&link->rng, count + 1);
    qsort(points, plan->cuts, sizeof *points, compare_sizes);
    link->next_base = test_rng_below(&link->rng, plan->cuts);
    struct shim_record record;
    const char *bytes;
    for (;; at++) {
        for (; next < plan->cuts && points[next] == at; next++)
            cut(link, replay, next, at);
        if (!replay_next(replay, &record, &bytes)) break;
        if (record.kind == SHIM_NOTE) image_take_note(bytes, link->trimmed);
    }
    const char *other = replay_difference(replay, plan->root);
    if (other) {
        case_note("the journal of chain %" PRIu64 " missed a write to %s", plan->chain, other);
        _exit(1);
    }
    free(points);
    replay_free(replay);
}

static void work_under_shim(struct link *link)
{
    const struct plan *plan = link->plan;
    struct test_outcome outcome;
    char archive[200], seed[32], steps[32], most[32];
    snprintf(archive, sizeof archive, "%s/archive", plan->root);
    snprintf(seed, sizeof seed, "%" PRIu64, test_rng_next(&link->rng));
    snprintf(steps, sizeof steps, "%" PRIu64, plan->steps);
    snprintf(most, sizeof most, "%" PRIu64, plan->most);
    unlink(plan->journal);
    const char *argv[] = {plan->store_work, archive, seed, steps, most, NULL};
    const char *const *env =
        case_env(plan->root, plan->journal, plan->lies ? "SILT_SHIM_LIE=1" : NULL, (char *)NULL);
    test_program(&outcome, argv, env, NULL, 120000);
    if (outcome.code != 0 && plan->lies) {
        ++*plan->lost; /* found out already */
    } else if (outcome.code != 0) {
        case_note("chain %" PRIu64 ": the work failed: %.200s", plan->chain, outcome.err);
        _exit(1);
    }
    test_outcome_release(&outcome);
}

/* What a cut left is where the next work begins, and known to the replay. */
static void begin_with(const char *from, const char *to)
{
    char archive[300], copy[300];
    struct stat st;
    test_remove_all(to);
    if (mkdir(to, 0755) != 0) test_die("mkdir %s", to);
    snprintf(archive, sizeof archive, "%s/archive", from);
    snprintf(copy, sizeof copy, "%s/archive", to);
    if (stat(archive, &st) == 0) test_dir_copy(archive, copy);
}

static void run_chain(void *context)
{
    struct link link = {.plan = context};
    const struct plan *plan = link.plan;
    char base[200];
    snprintf(base, sizeof base, "%s", test_path("base"));
    test_remove_all(plan->next);
    for (; link.number < LINKS; link.number++) {
        link.rng = test_rng((plan->chain << 8) + (uint64_t)link.number + 1);
        begin_with(plan->next, base);
        begin_with(plan->next, plan->root);
        memcpy(link.trimmed, link.next_trimmed, sizeof link.trimmed);
        work_under_shim(&link);
        walk(&link, base);
    }
}

static size_t run_chains(uint64_t chains, struct plan plan, size_t *ret_lost)
{
    size_t *counts = case_shared(2 * sizeof *counts);
    char root[200], image[200], next[200], journal[200], program[400];
    snprintf(root, sizeof root, "%s", test_path("root"));
    snprintf(image, sizeof image, "%s", test_path("image"));
    snprintf(next, sizeof next, "%s", test_path("next"));
    snprintf(journal, sizeof journal, "%s", test_path("journal"));
    snprintf(program, sizeof program, "%s/tests/fault/store_work", test_build_root());
    plan.root = root;
    plan.image = image;
    plan.next = next;
    plan.journal = journal;
    plan.store_work = program;
    plan.done = &counts[0];
    plan.lost = &counts[1];
    for (uint64_t i = 0; i < chains; i++) {
        char note[400];
        struct plan one = plan;
        one.chain = i + 1;
        if (i % 4 == 3) { /* a fat one: the map has to grow */
            one.most *= 30;
            one.steps /= 2;
        }
        bool fine = case_isolated(run_chain, &one, note);
        ck_assert_msg(fine, "%s", note);
    }
    *ret_lost = counts[1];
    return counts[0];
}

START_TEST(store_cuts__no_cut_loses_what_may_have_been_trimmed)
{
    size_t lost;
    uint64_t chains = test_long() ? 60 : 4;
    struct plan plan = {.cuts = test_long() ? 60 : 20 / case_price(), .steps = 30, .most = 40};
    size_t done = run_chains(chains, plan, &lost);
    fprintf(stderr, "# power cuts survived by the store: %zu\n", done);
    ck_assert_uint_eq(lost, 0);
    if (!getenv("SILT_FAULT_CASE")) ck_assert_uint_eq(done, chains * LINKS * plan.cuts);
}
END_TEST

/* A first start that fails or is killed behind mkdir leaves a directory whose name is not on the disk; the next one must see to it. */
START_TEST(store_cuts__a_directory_that_was_left_unsynced_is_synced)
{
    char root[200], note[400], program[400], archive[300];
    struct test_outcome outcome;
    struct shim_record record;
    const char *bytes;
    uint64_t trimmed[WORK_STREAMS] = {0};
    struct test_rng rng = test_rng(7);
    snprintf(root, sizeof root, "%s", test_path("root"));
    snprintf(note, sizeof note, "%s", test_path("journal"));
    snprintf(program, sizeof program, "%s/tests/fault/store_work", test_build_root());
    snprintf(archive, sizeof archive, "%s/archive", root);
    ck_assert_int_eq(mkdir(root, 0755), 0);
    const char *argv[] = {program, archive, "1", "3", "9", "lossy", NULL};
    test_program(&outcome, argv, case_env(root, note, "SILT_SHIM_FAIL=sync:1:EIO", (char *)NULL),
                 NULL, 60000);
    ck_assert_int_eq(outcome.code, 0);
    struct replay *replay = replay_new(note, NULL, &rng);
    while (replay_next(replay, &record, &bytes))
        if (record.kind == SHIM_NOTE) image_take_note(bytes, trimmed);
    ck_assert_uint_gt(trimmed[0] + trimmed[1] + trimmed[2], 0);
    replay_cut(replay, test_path("image"), 0, &rng);
    const char *wrong = image_wrong(test_path("image"), trimmed, &rng);
    ck_assert_msg(!wrong, "%s", wrong);
    replay_free(replay);
    test_outcome_release(&outcome);
}
END_TEST

/* The test bites: the same with syncs that claim success and do nothing. */
START_TEST(store_cuts__a_store_that_does_not_sync_is_found_out)
{
    size_t lost;
    struct plan plan = {.cuts = 12, .steps = 12, .most = 40, .lies = true};
    size_t done = run_chains(1, plan, &lost);
    ck_assert_uint_gt(done, 0);
    ck_assert_msg(lost > 0, "of %zu cuts without any sync none lost anything", done);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *tests[] = {store_cuts__no_cut_loses_what_may_have_been_trimmed,
                            store_cuts__a_directory_that_was_left_unsynced_is_synced,
                            store_cuts__a_store_that_does_not_sync_is_found_out};
    return case_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
