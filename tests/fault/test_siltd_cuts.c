/* E1 and E3 to E5 with the real archiver beside a real server: the sync that covers a threshold has returned before the trim leaves; a sync that fails
 * stops all trims until the archive was opened again; power cuts at random records, the server going on, lose nothing and double nothing. */
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>

#include "case.h"
#include "replay.h"
#include "rig.h"

/* ---- E1 ---- */

#define STREAMS 50

struct trims {
    struct replay *replay;
    struct test_rng *rng;
    uint64_t count;
    char wrong[300];
};

static void look_at_trim(void *context, const char *key, uint64_t threshold)
{
    struct trims *trims = context;
    char text[200];
    trims->count++;
    if (trims->wrong[0]) return;
    if (replay_pending(trims->replay, ".mdb") > 0)
        snprintf(trims->wrong, sizeof trims->wrong, "%s below %" PRIu64 " with unsynced writes",
                 key, threshold);
    /* The whole proof for some of them: nothing but what was synced, and all that goes is there. */
    if (trims->count % 10 != 0) return;
    replay_cut(trims->replay, test_path("image"), 0, trims->rng);
    uint64_t held = rig_archived(test_path("image/archive"), key, text);
    if (text[0] || held + 1 < threshold)
        snprintf(trims->wrong, sizeof trims->wrong,
                 "%s below %" PRIu64 ": the disk held %" PRIu64 " %s", key, threshold, held, text);
}

/* All trims of the journal. */
static struct trims walk_journal(struct rig *rig, struct test_rng *rng)
{
    struct trims trims = {.rng = rng};
    struct shim_record record;
    const char *bytes;
    trims.replay = replay_new(rig->journal, NULL, rng);
    while (replay_next(trims.replay, &record, &bytes))
        if (record.kind == SHIM_SEND) rig_trims(bytes, record.len, look_at_trim, &trims);
    replay_free(trims.replay);
    return trims;
}

static void name_of(char ret[16], int stream)
{
    snprintf(ret, 16, "s%d", stream);
}

static bool all_are_short(struct rig *rig)
{
    char key[16];
    for (int i = 0; i < STREAMS; i++) {
        name_of(key, i);
        if (rig_length(rig, key) > 5) return false;
    }
    return true;
}

START_TEST(siltd_cuts__E1_a_thousand_trims_each_after_its_sync)
{
    static struct rig rig;
    struct test_rng rng = test_rng(1);
    char key[16];
    uint64_t rounds = 1100 / STREAMS, n = 0;
    rig_start(&rig, "", "- { match: 's*', ids: wire, keep: { entries: 5 }, fold-delay: 0s }\n");
    rig_siltd(&rig, true, NULL);
    for (uint64_t round = 0; round < rounds; round++, n += 10) {
        for (int i = 0; i < STREAMS; i++) {
            name_of(key, i);
            rig_add(&rig, key, n + 1, n + 10);
        }
        if (round == 0) TEST_WAIT(all_are_short(&rig), 30000); /* they have to be found */
        TEST_WAIT(all_are_short(&rig), 30000);
    }
    ck_assert_int_eq(rig_end(&rig, SIGTERM), 0);
    struct trims trims = walk_journal(&rig, &rng);
    ck_assert_msg(!trims.wrong[0], "%s", trims.wrong);
    ck_assert_uint_ge(trims.count, 1000);
    fprintf(stderr, "# trims seen to leave behind their sync: %" PRIu64 "\n", trims.count);
    for (int i = 0; i < STREAMS; i++) {
        name_of(key, i);
        ck_assert_str_eq(rig_history(&rig, key, n), "");
    }
    rig_release(&rig);
}
END_TEST

/* ---- E3 ---- */

struct faithful {
    bool failed; /* a sync, and the archive was not opened again since */
    unsigned failures, trims_between;
};

static void count_trim(void *context, const char *key, uint64_t threshold)
{
    struct faithful *state = context;
    (void)key;
    (void)threshold;
    if (state->failed) state->trims_between++;
}

static struct faithful watch_syncs(struct rig *rig, struct test_rng *rng)
{
    struct faithful state = {.failed = false};
    struct shim_record record;
    const char *bytes;
    struct replay *replay = replay_new(rig->journal, NULL, rng);
    while (replay_next(replay, &record, &bytes)) {
        if ((record.kind == SHIM_SYNC || record.kind == SHIM_DSYNC) && record.error) {
            state.failed = true;
            state.failures++;
        }
        /* The lock file of an environment is mapped when it is opened. */
        if (record.kind == SHIM_MAPPED) state.failed = false;
        if (record.kind == SHIM_SEND) rig_trims(bytes, record.len, count_trim, &state);
    }
    replay_cut(replay, test_path("image"), 0, rng);
    replay_free(replay);
    return state;
}

/* At its start it may also end, with a word and a code; its supervisor starts it again. */
static bool ended_clearly(struct rig *rig)
{
    if (test_child_running(&rig->child)) return false;
    char *log = rig_log(rig);
    int code = rig_end(rig, 0);
    ck_assert_msg(strstr(log, "siltd: ") && (code == 5 || code == 7), "%d: %s", code, log);
    free(log);
    rig_siltd(rig, false, NULL);
    return true;
}

/* What the failed sync lost stays lost: the disk alone has all that is not live. */
static void look_at_disk(struct rig *rig, const char *fault, struct test_rng *rng)
{
    char wrong[200];
    struct faithful state = watch_syncs(rig, rng);
    ck_assert_msg(state.trims_between == 0, "%s: %u trims after a failed sync", fault,
                  state.trims_between);
    uint64_t held = rig_archived(test_path("image/archive"), "s", wrong);
    ck_assert_msg(!wrong[0] && held + 1 >= rig_first(rig, "s"), "%s: %s", fault, wrong);
}

static void fail_one(struct rig *rig, const char *call, unsigned nth, struct test_rng *rng)
{
    char fault[64];
    uint64_t n = 0;
    bool ended = false;
    test_cmd(&rig->server, "FLUSHALL");
    test_remove_all(rig->root);
    ck_assert_int_eq(mkdir(rig->root, 0755), 0);
    snprintf(fault, sizeof fault, "SILT_SHIM_FAIL=%s:%u:EIO", call, nth);
    rig_siltd(rig, true, fault);
    for (int round = 0; round < 4; round++, n += 50) {
        rig_add(rig, "s", n + 1, n + 50);
        struct test_deadline deadline = test_deadline(30000);
        while (rig_length(rig, "s") != 5) {
            ended |= ended_clearly(rig);
            if (test_deadline_poll(&deadline)) continue;
            char *log = rig_log(rig);
            ck_abort_msg("%s: round %d, %lld live: %s", fault, round, rig_length(rig, "s"), log);
        }
    }
    ck_assert_int_eq(rig_end(rig, SIGTERM), 0);
    if (!ended) look_at_disk(rig, fault, rng);
    const char *wrong = rig_history(rig, "s", n);
    ck_assert_msg(!wrong[0], "%s: %s", fault, wrong);
}

START_TEST(siltd_cuts__E3_a_failed_sync_stops_trims_until_the_archive_is_opened_again)
{
    static struct rig rig;
    struct test_rng rng = test_rng(3);
    size_t done = 0;
    rig_start(&rig, "", "- { match: s, ids: wire, keep: { entries: 5 }, fold-delay: 0s }\n");
    unsigned stride = test_long() ? 1 : 4;
    for (unsigned nth = 1 + (unsigned)test_rng_below(&rng, stride); nth <= 12; nth += stride)
        fail_one(&rig, "sync", nth, &rng), done++;
    for (unsigned nth = 3; nth <= 24; nth += test_long() ? 1 : 11)
        fail_one(&rig, "write", nth, &rng), done++;
    fprintf(stderr, "# syncs and writes failed under siltd: %zu\n", done);
    rig_release(&rig);
}
END_TEST

/* ---- power ---- */

static void power_cut(struct rig *rig, const char *base, struct test_rng *rng)
{
    static const unsigned percents[] = {0, 20, 50, 80, 100};
    struct shim_record record;
    struct replay *replay = replay_new(rig->journal, base, rng);
    while (replay_next(replay, &record, NULL))
        continue;
    replay_cut(replay, rig->root, percents[test_rng_below(rng, 5)], rng);
    replay_free(replay);
}

/* What the next siltd begins with, after it was looked at: a look leaves a lock file. */
static void keep_base(struct rig *rig, const char *base)
{
    char archive[300];
    struct stat st;
    test_remove_all(base);
    ck_assert_int_eq(mkdir(base, 0755), 0);
    snprintf(archive, sizeof archive, "%s/archive", base);
    if (stat(rig->archive, &st) == 0) test_dir_copy(rig->archive, archive);
}

/* The server goes on; nothing that it no longer has may be missing. */
static void look_after_cut(struct rig *rig, const char *key, uint64_t n, size_t cut)
{
    char wrong[200];
    uint64_t held = rig_archived(rig->archive, key, wrong), first = rig_first(rig, key);
    ck_assert_msg(!wrong[0], "cut %zu: %s (SILT_SEED=%" PRIu64 ")", cut, wrong, test_seed());
    ck_assert_msg(held + 1 >= first && held <= n,
                  "cut %zu: %s: %" PRIu64 " archived, %" PRIu64 " is the first live one "
                  "(SILT_SEED=%" PRIu64 ")",
                  cut, key, held, first, test_seed());
}

START_TEST(siltd_cuts__power_is_cut_while_the_server_goes_on)
{
    static struct rig rig;
    struct test_rng rng = test_rng(4);
    char fault[64], base[200];
    uint64_t n = 0;
    size_t cuts = test_long() ? 400 : 12 / case_price();
    rig_start(&rig, ", map-limit: 64MiB",
              "- { match: a, ids: wire, keep: { entries: 7 }, fold-delay: 0s }\n"
              "- { match: b, ids: wire, keep: { entries: 90 }, fold-delay: 0s }\n");
    snprintf(base, sizeof base, "%s", test_path("base"));
    ck_assert_int_eq(mkdir(base, 0755), 0);
    for (size_t cut = 0; cut < cuts; cut++) {
        snprintf(fault, sizeof fault, "SILT_SHIM_KILL=%u", 2 + (unsigned)test_rng_below(&rng, 90));
        rig_siltd(&rig, true, fault);
        struct test_deadline deadline = test_deadline(30000);
        while (test_child_running(&rig.child) && test_deadline_poll(&deadline)) {
            rig_add(&rig, "a", n + 1, n + 9);
            rig_add(&rig, "b", n + 1, n + 9);
            n += 9;
        }
        ck_assert_int_eq(rig_end(&rig, 0), -1);
        power_cut(&rig, base, &rng);
        look_after_cut(&rig, "a", n, cut);
        look_after_cut(&rig, "b", n, cut);
        keep_base(&rig, base);
    }
    struct test_outcome outcome;
    rig_once(&rig, false, NULL, &outcome);
    ck_assert_msg(outcome.code == 0, "%d: %s", outcome.code, outcome.err);
    ck_assert_int_eq(rig_length(&rig, "a"), 7);
    ck_assert_str_eq(rig_history(&rig, "a", n), "");
    ck_assert_str_eq(rig_history(&rig, "b", n), "");
    fprintf(stderr, "# power cuts survived by siltd: %zu, %" PRIu64 " entries\n", cuts, n);
    test_outcome_release(&outcome);
    rig_release(&rig);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *tests[] = {
        siltd_cuts__E1_a_thousand_trims_each_after_its_sync,
        siltd_cuts__E3_a_failed_sync_stops_trims_until_the_archive_is_opened_again,
        siltd_cuts__power_is_cut_while_the_server_goes_on,
    };
    return case_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
