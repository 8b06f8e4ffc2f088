/* The n-th request for memory fails, whoever makes it, in a whole pass of the archiver beside a real server: connecting, looking, fetching, folding on the second thread,
 * committing, reading back, trimming. It is said, nothing is lost or doubled, and the next pass does the work. Then the same for siltd itself. */
#include <inttypes.h>
#include <unistd.h>

#include "case.h"
#include "live/stand.h"
#include "rig.h"
#include "scarce.h"

static struct stand stand;
static struct test_oracle oracle;

/* A whole life of an archiver: opened, worked until all is settled, closed. Everything may fail. */
static enum silt_status live_once(struct silt_err *err)
{
    struct silt_archiver *archiver = NULL;
    struct silt_work *work = NULL;
    const struct silt_stream_config *stream = &stand.config->streams[0];
    enum silt_status status = silt_archiver_new(stand.config, NULL, NULL, &archiver, err);
    if (status == SILT_OK) status = silt_archiver_work(archiver, stream->match, stream, &work, err);
    for (int i = 0; i < 4 && status == SILT_OK; i++) {
        status = silt_archiver_pass(archiver, &work, 1, err);
        if (status == SILT_OK) status = work->status;
        if (status != SILT_OK && work->status == status) *err = work->err;
        if (work->settled) break;
    }
    silt_work_free(work);
    silt_archiver_free(archiver);
    return status;
}

static void refuse_one(size_t n, bool on, size_t *refused, bool *over)
{
    static uint64_t at = 1;
    struct silt_err err = {0};
    stand_add(&stand, "s", &oracle, at, at + 2);
    at += 3;
    scarce_start(n, on);
    enum silt_status status = live_once(&err);
    size_t failed = scarce_stop(NULL);
    ck_assert_msg(status == SILT_OK || failed > 0, "request %zu: %s", n, err.sentence);
    ck_assert_msg(silt_status_class(status) != SILT_CLASS_CORRUPT &&
                      silt_status_class(status) != SILT_CLASS_CONFLICT,
                  "request %zu: %s: %s", n, silt_status_name(status), err.sentence);
    *over = failed == 0;
    if (failed) ++*refused;
    if (n % 8 == 1 || status == SILT_OK)
        ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    err = (struct silt_err){0};
    status = live_once(&err);
    ck_assert_msg(status == SILT_OK, "after request %zu: %s", n, err.sentence);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 2);
}

static void sweep(bool on)
{
    size_t refused = 0, stride = test_long() ? 1 : 5;
    bool over = false;
    struct test_rng rng = test_rng(5);
    size_t n = 1 + (size_t)test_rng_below(&rng, stride);
    for (; !over; n += stride)
        refuse_one(n, on, &refused, &over);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    ck_assert_uint_gt(refused, 0);
    fprintf(stderr, "# a pass%s: %zu requests refused, of %zu\n", on ? ", and all later ones" : "",
            refused, n - stride);
}

static void begin(void)
{
    stand_start(&stand, "- { match: s, ids: wire, keep: { entries: 2 } }");
    stand_close(&stand);
    stand_add(&stand, "s", &oracle, 1, 0);
}

START_TEST(memory_pass__every_request_of_a_pass)
{
    begin();
    sweep(false);
    stand_release(&stand);
}
END_TEST

START_TEST(memory_pass__every_request_from_one_on)
{
    begin();
    sweep(true);
    stand_release(&stand);
}
END_TEST

/* One run of siltd with the request refused (0: none); gives the number of requests. */
static size_t run_siltd(struct rig *rig, size_t request, bool on, struct test_outcome *ret)
{
    char library[500], scarce[40], told[300];
    const char *argv[] = {"siltd", "--config", rig->config, "--once", NULL};
    const char *env[] = {library, scarce, told, NULL};
    snprintf(library, sizeof library, "LD_PRELOAD=%s/tests/fault/libsilt_fault_scarce.so",
             test_build_root());
    snprintf(scarce, sizeof scarce, "SILT_SCARCE=%zu%s", request, on ? "+" : "");
    snprintf(told, sizeof told, "SILT_SCARCE_TELL=%s/told", rig->root);
    const char *file = strchr(told, '=') + 1;
    unlink(file);
    test_program(ret, argv, env, NULL, 60000);
    if (access(file, R_OK) != 0) return 0;
    char *text = test_file_read(file, NULL);
    size_t count = strtoul(text, NULL, 10);
    free(text);
    return count;
}

/* The program: libevent, the settings, the log. */
START_TEST(memory_pass__every_request_of_siltd)
{
    static struct rig rig;
    struct test_outcome outcome;
    size_t refused = 0, stride = test_long() ? 1 : 41;
    uint64_t n = 10;
    struct test_rng rng = test_rng(6);
    if (case_price() > 1)
        return; /* the sanitizer owns malloc; the two tests above go through our own door there */
    rig_start(&rig, "", "- { match: s, ids: wire, keep: { entries: 5 } }\n");
    rig_add(&rig, "s", 1, n);
    size_t last = run_siltd(&rig, 0, false, &outcome);
    ck_assert_int_eq(outcome.code, 0);
    ck_assert_uint_gt(last, 100);
    test_outcome_release(&outcome);
    for (size_t request = 1 + (size_t)test_rng_below(&rng, stride); request <= last;
         request += stride) {
        rig_add(&rig, "s", n + 1, n + 4);
        n += 4;
        run_siltd(&rig, request, request % 2 == 0, &outcome);
        /* 127: the dynamic loader. 5 and 8 would blame the archive. */
        ck_assert_msg(outcome.code >= 0 && outcome.code != 5 && outcome.code != 8 &&
                          (outcome.code == 0 || outcome.err_len > 0),
                      "request %zu: %d, signal %d: %s", request, outcome.code, outcome.signal,
                      outcome.err);
        const char *wrong = rig_history(&rig, "s", n);
        ck_assert_msg(!wrong[0], "request %zu: %s", request, wrong);
        refused++;
        test_outcome_release(&outcome);
    }
    fprintf(stderr, "# siltd: %zu of %zu requests refused\n", refused, last);
    rig_release(&rig);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *tests[] = {
        memory_pass__every_request_of_a_pass,
        memory_pass__every_request_from_one_on,
        memory_pass__every_request_of_siltd,
    };
    return case_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
