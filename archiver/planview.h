/* siltd --plan: what the next passes would fold and trim, and what memory that would free. Changes nothing, here or on the server. */
#ifndef SILT_PLANVIEW_H
#define SILT_PLANVIEW_H

#include <stdio.h>

#include "config.h"

/* Writes a table, or with `json` one object, to `out`. Gives the exit code: 0, 1 when a stream could not be planned (named in the output), else the
 * failure's with *err. */
int silt_planview_run(const struct silt_config *config, bool json, FILE *out, struct silt_err *err);

#endif
