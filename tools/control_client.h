/* One question to a running siltd over its control socket: a JSON object a line each way. */
#ifndef SILT_CONTROL_CLIENT_H
#define SILT_CONTROL_CLIENT_H

#include "json_read.h"

/* verb and, if not NULL, key are asked; flag, if not NULL, is a field that is true. Gives the whole answer line in *line and its tree; both owned. SILT_END: nobody listens there (siltd is not running).
 * Fails with what siltd answered (its code, sentence and hint), SILT_ERR_SERVER_NONSENSE, SILT_ERR_PERMISSION, SILT_ERR_IO, SILT_ERR_MEMORY. Waits as long as siltd does. */
SILT_MUST_USE enum silt_status silt_control_ask(const char *path, const char *verb, const char *key,
                                                const char *flag, struct silt_buf *line,
                                                struct silt_json **ret, struct silt_err *err);

#endif
