/* The program under the preload library: works on an archive for a number of steps and notes in the journal what may be trimmed.
 *     store_work DIR SEED STEPS MOST [lossy]
 * MOST: entries of one stream in one step. lossy: a failure is not the end; the archive is closed and opened again, as siltd does. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"
#include "work.h"

static void on_trim(struct work *work, size_t stream)
{
    char text[64];
    snprintf(text, sizeof text, "trim %zu %" PRIu64, stream, work->trimmed[stream]);
    if (silt_shim_note) silt_shim_note(text);
}

static void note_failure(enum silt_status status)
{
    char text[64];
    snprintf(text, sizeof text, "failed %s", silt_status_name(status));
    if (silt_shim_note) silt_shim_note(text);
}

/* What a failure leaves is not believed: all is read anew. */
static enum silt_status begin_again(struct work *work, const char *dir, struct silt_err *err)
{
    enum silt_status status = SILT_ERR_IO;
    for (int tries = 0; tries < 5 && status != SILT_OK; tries++) {
        work_close(work);
        status = work_open(work, dir, 0, 0, err);
        if (status != SILT_OK) note_failure(status);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct work work = {.on_trim = on_trim};
    struct silt_err err = {0};
    if (argc < 5) return 2;
    struct test_rng rng = test_rng_fixed(strtoull(argv[2], NULL, 10));
    uint64_t steps = strtoull(argv[3], NULL, 10), most = strtoull(argv[4], NULL, 10);
    bool lossy = argc > 5;
    enum silt_status status = work_open(&work, argv[1], 0, 0, &err);
    if (status != SILT_OK) note_failure(status);
    if (status != SILT_OK && lossy) status = begin_again(&work, argv[1], &err);
    for (uint64_t i = 0; i < steps && status == SILT_OK; i++) {
        status = work_random(&work, argv[1], &rng, most, &err);
        if (status == SILT_OK || !lossy) continue;
        note_failure(status);
        status = begin_again(&work, argv[1], &err);
    }
    work_close(&work);
    if (status != SILT_OK) fprintf(stderr, "%s: %s\n", silt_status_name(status), err.sentence);
    return status == SILT_OK ? 0 : 1;
}
