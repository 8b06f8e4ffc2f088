/* What a verb works on: settings, archive, server, the kind of a stream. Opened when first asked for. */
#ifndef SILT_SESSION_H
#define SILT_SESSION_H

#include "alloc.h"
#include "command.h"
#include "config.h"
#include "conn.h"
#include "mergeread.h"
#include "store.h"

struct silt_session {
    struct silt_call *call;
    struct silt_config *config;
    struct silt_store *store;
    struct silt_conn *conn;
    bool ids_given; /* --ids */
    struct silt_namespace ids;
};
/* Settings and flags. Fails with SILT_ERR_CONFIG, SILT_ERR_ADDRESS, SILT_ERR_USAGE, SILT_ERR_ID_NAMESPACE. Owns: silt_session_release, also after a failure. */
SILT_MUST_USE enum silt_status silt_session_init(struct silt_session *session,
                                                 struct silt_call *call);
void silt_session_release(struct silt_session *session);

/* The archive, read only. Fails with SILT_ERR_USAGE (none is named) and the store's codes. */
SILT_MUST_USE enum silt_status silt_session_store(struct silt_session *session);
/* The server, connected. Fails with SILT_ERR_USAGE (none is named) and the server's codes. */
SILT_MUST_USE enum silt_status silt_session_conn(struct silt_session *session);

/* The stream's kind: the archive's row where there is an archive, else --ids, else the settings' stream that matches, else plain. --ids against the
 * row is refused: SILT_ERR_USAGE. */
SILT_MUST_USE enum silt_status silt_session_kind(struct silt_session *session, struct silt_view key,
                                                 struct silt_namespace *ret);

/* "branded NS" or "wire". */
SILT_MUST_USE enum silt_status silt_ids_parse(const char *text, struct silt_namespace *ret,
                                              struct silt_err *err);

#define SILT_SESSION_CLEANUP SILT_CLEANUP(silt_session_release) struct silt_session

#endif
