/* What `read` and `get` share: a history from settings and flags, and the options of a cursor. */
#ifndef SILT_READING_H
#define SILT_READING_H

#include "session.h"

/* Rows for the verbs' tables of options. */
#define SILT_READING_OPTIONS                                                                 \
    {"archive-only", NULL, "do not ask the server: the archive alone, up to its watermark"}, \
    {                                                                                        \
        "allow-archive-only", NULL,                                                          \
            "go on with the archive alone when the server is away, and say so"               \
    }

/* Opens the history and fills key, kind and skip_damaged of *what. Fails with the codes of silt_session_init, silt_session_kind and silt_history_open. */
SILT_MUST_USE enum silt_status silt_reading_open(struct silt_session *session,
                                                 struct silt_history **ret,
                                                 struct silt_cursor_options *what);
/* After the first answer: says so on stderr where the archive alone was read without being asked for. */
void silt_reading_tell(struct silt_session *session, const struct silt_cursor *cursor);

/* For answers that do not tell where they came from: with --allow-archive-only, says so where the server is away. */
void silt_reading_probe(struct silt_session *session);

#endif
