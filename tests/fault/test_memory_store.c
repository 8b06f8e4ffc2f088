/* The n-th request for memory fails, without holes, whoever makes it (LMDB and zstd too): while an archive is made, opened, folded onto, read back, replaced
 * and verified. What was committed stays, nothing is trimmed that is not there, and the next try works. */
#include <inttypes.h>
#include <sys/stat.h>

#include "case.h"
#include "format/check.h"
#include "image.h"
#include "scarce.h"

struct scene {
    struct work work;
    char image[200], archive[220];
    struct test_rng rng;
};

typedef enum silt_status deed(struct scene *scene, struct silt_err *err);

static enum silt_status act_make(struct scene *scene, struct silt_err *err)
{
    enum silt_status status = work_open(&scene->work, scene->archive, 0, 0, err);
    work_close(&scene->work);
    return status;
}

static enum silt_status act_step(struct scene *scene, struct silt_err *err)
{
    static const uint64_t counts[WORK_STREAMS] = {3, 2, 1};
    return work_step(&scene->work, counts, err);
}

static enum silt_status act_replace(struct scene *scene, struct silt_err *err)
{
    return silt_store_replace(scene->work.store, err);
}

static enum silt_status act_verify(struct scene *scene, struct silt_err *err)
{
    struct silt_check_sum sum = {0};
    struct silt_check_options options = {.range = SILT_RANGE_ALL};
    enum silt_status status = silt_check(scene->work.store, &options, &sum, err);
    if (status == SILT_OK && sum.findings > 0) ck_abort_msg("no memory was taken for damage");
    return status;
}

static void make_scene(struct scene *scene)
{
    struct silt_err err = {0};
    static const uint64_t many[WORK_STREAMS] = {400, 200, 20};
    memset(scene, 0, sizeof *scene);
    scene->rng = test_rng(11);
    snprintf(scene->image, sizeof scene->image, "%s", test_path("image"));
    snprintf(scene->archive, sizeof scene->archive, "%s", test_path("image/archive"));
    test_remove_all(scene->image);
    if (mkdir(scene->image, 0755) != 0) test_die("mkdir %s", scene->image);
    if (work_open(&scene->work, scene->archive, 0, 0, &err) != SILT_OK ||
        work_step(&scene->work, many, &err) != SILT_OK)
        test_die("%s", err.sentence);
}

/* Closed and opened again, as after any failure. */
static void look(struct scene *scene, const char *name, size_t n, bool deep)
{
    struct silt_err err = {0};
    char text[200];
    work_close(&scene->work);
    if (deep) {
        const char *wrong = image_wrong(scene->image, scene->work.trimmed, &scene->rng);
        ck_assert_msg(!wrong, "%s, request %zu: %s", name, n, wrong);
    }
    enum silt_status status = work_open(&scene->work, scene->archive, 0, 0, &err);
    ck_assert_msg(status == SILT_OK, "%s, request %zu: %s", name, n, err.sentence);
    for (size_t i = 0; i < WORK_STREAMS; i++) {
        uint64_t count = work_count(scene->work.store, i, text);
        ck_assert_msg(!text[0] && count >= scene->work.trimmed[i], "%s, request %zu: %s", name, n,
                      text);
    }
}

static size_t sweep(struct scene *scene, const char *name, deed *act, bool opens, bool on)
{
    size_t refused = 0, requests = 0;
    for (size_t n = 1;; n++) {
        struct silt_err err = {0};
        if (opens) work_close(&scene->work);
        scarce_start(n, on);
        enum silt_status status = act(scene, &err);
        size_t failed = scarce_stop(&requests);
        ck_assert_msg(status == SILT_OK || failed > 0, "%s, request %zu: %s", name, n,
                      err.sentence);
        /* A corrupt archive must never be what lacking memory is called. */
        ck_assert_msg(silt_status_class(status) != SILT_CLASS_CORRUPT, "%s, request %zu: %s: %s",
                      name, n, silt_status_name(status), err.sentence);
        look(scene, name, n, n % 16 == 1);
        if (failed == 0) break;
        refused++;
    }
    fprintf(stderr, "# %s%s: %zu of %zu requests refused\n", name, on ? ", and all later ones" : "",
            refused, requests);
    return refused;
}

static void sweeps(const char *name, deed *act, bool opens)
{
    struct scene scene;
    make_scene(&scene);
    size_t refused = sweep(&scene, name, act, opens, false);
    refused += sweep(&scene, name, act, opens, true);
    ck_assert_uint_gt(refused, 0);
    work_close(&scene.work);
}

START_TEST(memory_store__opening)
{
    sweeps("opening", act_make, true);
}
END_TEST

START_TEST(memory_store__making)
{
    struct scene scene;
    size_t refused = 0;
    make_scene(&scene);
    for (size_t n = 1;; n++) {
        struct silt_err err = {0};
        work_close(&scene.work);
        test_remove_all(scene.archive);
        scarce_start(n, false);
        enum silt_status status = act_make(&scene, &err);
        size_t failed = scarce_stop(NULL);
        ck_assert(status == SILT_OK || failed > 0);
        status = act_make(&scene, &err); /* what a failure left is no hindrance */
        ck_assert_msg(status == SILT_OK, "request %zu: %s", n, err.sentence);
        if (failed == 0) break;
        refused++;
    }
    fprintf(stderr, "# making an archive: %zu requests refused\n", refused);
    ck_assert_uint_gt(refused, 0);
}
END_TEST

START_TEST(memory_store__folding_committing_and_reading_back)
{
    sweeps("a fold", act_step, false);
}
END_TEST

START_TEST(memory_store__replacing)
{
    sweeps("a replacement", act_replace, false);
}
END_TEST

START_TEST(memory_store__verifying)
{
    sweeps("verify", act_verify, false);
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *tests[] = {
        memory_store__opening,
        memory_store__making,
        memory_store__folding_committing_and_reading_back,
        memory_store__replacing,
        memory_store__verifying,
    };
    return case_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
