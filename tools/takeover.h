/* What `adopt` and `release` share: a running siltd is asked, since it alone holds the archive and compares on the server. */
#ifndef SILT_TAKEOVER_H
#define SILT_TAKEOVER_H

#include "command.h"

/* Asks siltd, shows its answer. Fails with SILT_ERR_SERVER_AWAY (siltd is not running), SILT_ERR_USAGE (no control socket is named), and what siltd answers. */
SILT_MUST_USE enum silt_status silt_takeover(struct silt_call *call, const char *verb);

#endif
