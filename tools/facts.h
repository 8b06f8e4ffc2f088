/* What `silt status` tells of one stream, from siltd's answer or from archive and server when siltd is not running. */
#ifndef SILT_FACTS_H
#define SILT_FACTS_H

#include "json_read.h"
#include "session.h"

#define SILT_UNKNOWN UINT64_MAX

struct silt_seen {
    char key[200];                             /* escaped for display */
    char state[16];                            /* ok, new, held, failing, ambiguous, behind */
    char kind[16];                             /* "plain", "branded EVT" */
    char watermark[64], watermark_instant[32]; /* "": nothing folded yet */
    char held_by[24], held_name[128];
    char verdict[32], reason[240];
    char error[400], hint[240];
    uint64_t life;
    uint64_t live_entries, lag_entries, lag_ms; /* SILT_UNKNOWN */
    uint64_t looked_ms_ago, next_look_ms;       /* of siltd; SILT_UNKNOWN */
    uint64_t folded_entries, trimmed_entries, foreign_entries, gap_entries, late_entries;
    uint64_t lives; /* SILT_UNKNOWN: nobody looked into the archive */
    uint64_t epoch; /* 0: the archive's */
    char folded_at[32], trimmed_at[32];
    char audit[300]; /* how far the pending one is; "": none */
    bool finding;
};

/* From one STREAM object of siltd's answer. */
void silt_seen_of_json(struct silt_seen *seen, const struct silt_json *stream);
/* From the archive's row and, with conn not NULL, a look. Fails with the server's codes; the archive's part is filled then. */
SILT_MUST_USE enum silt_status silt_seen_of_row(struct silt_seen *seen,
                                                const struct silt_stream_row *row,
                                                struct silt_conn *conn, struct silt_err *err);
/* How many lives the stream of this number has. */
SILT_MUST_USE enum silt_status silt_seen_lives(struct silt_seen *seen, struct silt_store *store,
                                               uint64_t stream, struct silt_err *err);
/* A key that the archive does not know, but the server does. SILT_ERR_UNKNOWN_STREAM: neither. */
SILT_MUST_USE enum silt_status silt_seen_of_key(struct silt_seen *seen, struct silt_view key,
                                                struct silt_conn *conn, struct silt_err *err);

/* The STREAM object in siltd's shape. */
void silt_seen_json(struct silt_out *out, const struct silt_seen *seen, struct silt_view key,
                    const struct silt_stream_row *row);

#endif
