/* siltd's life: which streams are due, passes over them, waiting, back-off, reload, orderly stop. Passes run outside of the event loop; while one
 * waits for the server it lets the loop run (silt_archiver_new's `cancelled`), so signals and the control socket are served meanwhile.
 *
 * How often a stream is looked at: `fold-delay` after a pass that changed something, then doubling up to `idle-look`; at once if a pass stopped
 * with work left; a failing stream backs off by itself. All streams that are due go into one pass, so their folds share a sync. */
#ifndef SILT_LOOP_H
#define SILT_LOOP_H

#include "config.h"

struct silt_loop;

struct silt_loop_options {
    const char
        *config_path;    /* --config: read again at SIGHUP; NULL: as silt_config_load finds it */
    const char *archive; /* --archive, --valkey: win over the file, at a reload too */
    const char *address;
    bool once; /* until every stream is within keep or held */
};

/* Opens the archive (and, unless once, the control socket); does not connect. Owns: *ret, silt_loop_free; takes the config when it succeeds.
 * Fails with the codes of silt_archiver_new and silt_control_open. */
SILT_MUST_USE enum silt_status silt_loop_new(struct silt_config *config,
                                             const struct silt_loop_options *options,
                                             struct silt_loop **ret, struct silt_err *err);
/* Runs until SIGTERM or SIGINT, or with `once` until all is done. Gives the exit code of design.md §8; *err has a sentence unless it is 0 or 1. */
int silt_loop_run(struct silt_loop *loop, struct silt_err *err);
void silt_loop_free(struct silt_loop *loop);

/* The pause after the n-th failure in a row (from 1), before jitter: doubles from `first_ms` up to `most_ms`. */
uint64_t silt_backoff_ms(unsigned failures, uint64_t first_ms, uint64_t most_ms);

#endif
