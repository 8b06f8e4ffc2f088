/* See image.h. */
#include "image.h"

#include <inttypes.h>
#include <stdio.h>

#include "format/check.h"

static char wrong[400];

static bool is_wrong(const char *what, const struct silt_err *err)
{
    snprintf(wrong, sizeof wrong, "%.150s: %.200s", what, err ? err->sentence : "");
    return true;
}

static void first_finding(void *ctx, const struct silt_finding *finding)
{
    char *text = ctx;
    if (!text[0])
        snprintf(text, 200, "%s: %.150s", silt_finding_name(finding->kind), finding->text);
}

static bool verify_is_wrong(struct silt_store *store)
{
    char text[200] = "";
    struct silt_err err = {0};
    struct silt_check_sum sum;
    struct silt_check_options options = {
        .range = SILT_RANGE_ALL, .found = first_finding, .ctx = text};
    if (silt_check(store, &options, &sum, &err) != SILT_OK) return is_wrong("verify", &err);
    return text[0] ? is_wrong(text, NULL) : false;
}

/* The archive is a prefix of the history that reaches at least to what may be gone from the server. */
static bool history_is_wrong(struct silt_store *store, const uint64_t least[WORK_STREAMS],
                             uint64_t ret_count[WORK_STREAMS])
{
    for (size_t i = 0; i < WORK_STREAMS; i++) {
        char text[200];
        ret_count[i] = work_count(store, i, text);
        if (text[0]) return is_wrong(text, NULL);
        if (ret_count[i] >= least[i]) continue;
        snprintf(wrong, sizeof wrong,
                 "LOST: stream %zu holds %" PRIu64 " entries, trimmed were %" PRIu64, i,
                 ret_count[i], least[i]);
        return true;
    }
    return false;
}

static bool nothing_was_trimmed(const uint64_t *trimmed)
{
    for (size_t i = 0; i < WORK_STREAMS; i++)
        if (trimmed[i]) return false;
    return true;
}

static bool reader_is_wrong(const char *dir, const uint64_t *trimmed)
{
    struct silt_store *store = NULL;
    struct silt_err err = {0};
    uint64_t counts[WORK_STREAMS];
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    enum silt_status status = silt_store_open(dir, &options, &store, &err);
    if (status == SILT_ERR_NO_ARCHIVE && nothing_was_trimmed(trimmed)) return false;
    if (status != SILT_OK) return is_wrong("a reader cannot open it", &err);
    bool bad = history_is_wrong(store, trimmed, counts);
    silt_store_close(store);
    return bad;
}

static bool writer_is_wrong(const char *dir, const uint64_t *trimmed, struct test_rng *rng)
{
    struct work work = {.on_trim = NULL};
    struct silt_err err = {0};
    static const uint64_t more[WORK_STREAMS] = {5, 3, 1};
    uint64_t counts[WORK_STREAMS], again[WORK_STREAMS];
    if (work_open(&work, dir, 0, 0, &err) != SILT_OK) return is_wrong("it cannot be opened", &err);
    bool bad = history_is_wrong(work.store, trimmed, counts) || verify_is_wrong(work.store);
    if (!bad && work_step(&work, more, &err) != SILT_OK) bad = is_wrong("folding on", &err);
    if (!bad && test_rng_chance(rng, 10) && silt_store_replace(work.store, &err) != SILT_OK)
        bad = is_wrong("replacing", &err);
    if (!bad) bad = history_is_wrong(work.store, counts, again) || verify_is_wrong(work.store);
    for (size_t i = 0; i < WORK_STREAMS && !bad; i++)
        if (again[i] != counts[i] + more[i]) bad = is_wrong("folding on gave another count", NULL);
    work_close(&work);
    return bad;
}

const char *image_wrong(const char *image, const uint64_t trimmed[WORK_STREAMS],
                        struct test_rng *rng)
{
    char dir[300];
    snprintf(dir, sizeof dir, "%s/archive", image);
    wrong[0] = 0;
    bool bad = (test_rng_chance(rng, 30) && reader_is_wrong(dir, trimmed)) ||
               writer_is_wrong(dir, trimmed, rng);
    return bad ? wrong : NULL;
}

bool image_take_note(const char *text, uint64_t trimmed[WORK_STREAMS])
{
    size_t stream;
    uint64_t through;
    if (sscanf(text, "trim %zu %" SCNu64, &stream, &through) != 2 || stream >= WORK_STREAMS)
        return false;
    if (through > trimmed[stream]) trimmed[stream] = through;
    return true;
}
