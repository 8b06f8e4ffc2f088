/* The one door to the server: connect, send, receive, classify. Blocking with deadlines; the only hiredis.h user. RESP2 only.
 * A command that timed out, a reply cut short or of nonsense closes the connection: none of them means "empty".
 * Threads: one at a time. */
#ifndef SILT_CONN_H
#define SILT_CONN_H

#include "reply.h"

struct silt_conn_options {
    const char *
        address; /* unix:PATH, tcp:HOST:PORT, tls:HOST:PORT; a bare /path or HOST:PORT is taken as meant */
    unsigned database;
    const char *user;          /* NULL: the default user */
    const char *password_file; /* read at every connect; NULL: none */
    /* tls: only; read at every connect */
    const char *tls_ca_file;   /* NULL: the system's */
    const char *tls_cert_file; /* ours, for a server that asks for one; NULL: none */
    const char *tls_key_file;  /* its key; NULL: in the same file */
    uint64_t connect_timeout_ms;
    uint64_t command_timeout_ms;
    size_t reply_limit_bytes; /* a larger reply is SILT_ERR_SERVER_NONSENSE and closes */
    /* Asked while waiting (at least every 100 ms); true: give up with SILT_ERR_CANCELLED (and close). NULL: never. */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
};
#define SILT_CONN_OPTIONS_DEFAULT                            \
    ((struct silt_conn_options){.connect_timeout_ms = 5000,  \
                                .command_timeout_ms = 10000, \
                                .reply_limit_bytes = 1024u << 20})

struct silt_conn;

/* Copies the options; parses the address; does not connect. Fails with SILT_ERR_ADDRESS, SILT_ERR_NOT_BUILT_IN (tls: built without OpenSSL), SILT_ERR_MEMORY. */
SILT_MUST_USE enum silt_status silt_conn_new(const struct silt_conn_options *options,
                                             struct silt_conn **ret, struct silt_err *err);
void silt_conn_free(struct silt_conn *conn);

/* Connects if closed: AUTH, SELECT, then the server's name and version (from INFO server where allowed; below Valkey 7.2 or Redis 7.0: SILT_ERR_SERVER_OLD).
 * Fails with any server code. */
SILT_MUST_USE enum silt_status silt_conn_open(struct silt_conn *conn, struct silt_err *err);
void silt_conn_close(struct silt_conn *conn);
bool silt_conn_is_open(const struct silt_conn *conn);
/* How often this object connected: a compare-and-trim runs on the connection that made its look. */
uint64_t silt_conn_generation(const struct silt_conn *conn);
/* "valkey 8.0.1", "redis 7.0.15", or "unknown"; borrowed until the next connect. */
const char *silt_conn_server(const struct silt_conn *conn);
const char *silt_conn_address(const struct silt_conn *conn);

/* Pipelining: append any number (buffered; flushed at the latest by receive; silt_conn_flush sends now), then receive as many, in order. Replies still
 * owed are counted; a close forgets them. */
SILT_MUST_USE enum silt_status silt_conn_append(struct silt_conn *conn,
                                                const struct silt_view *argv, size_t argc,
                                                struct silt_err *err);
/* A command from words: NULL-terminated C strings. */
SILT_MUST_USE enum silt_status silt_conn_append_words(struct silt_conn *conn, struct silt_err *err,
                                                      ...) __attribute__((sentinel));
SILT_MUST_USE enum silt_status silt_conn_flush(struct silt_conn *conn, struct silt_err *err);
size_t silt_conn_owed(const struct silt_conn *conn);
/* The next reply. A top-level error reply is classified (silt_reply_error_class) and returned as that status, with *reply filled. */
SILT_MUST_USE enum silt_status silt_conn_receive(struct silt_conn *conn, struct silt_reply *reply,
                                                 struct silt_err *err);
/* open, append, receive. Only with nothing owed. */
SILT_MUST_USE enum silt_status silt_conn_call(struct silt_conn *conn, const struct silt_view *argv,
                                              size_t argc, struct silt_reply *reply,
                                              struct silt_err *err);
/* append, receive, on the connection of that generation alone: behind a new one another server may stand than the one that was looked at (protocol §4).
 * SILT_ERR_STALE: it is gone, nothing was sent. */
SILT_MUST_USE enum silt_status silt_conn_call_on(struct silt_conn *conn, uint64_t generation,
                                                 const struct silt_view *argv, size_t argc,
                                                 struct silt_reply *reply, struct silt_err *err);

/* The class of an error text ("LOADING ...", "NOPERM ...", "WRONGTYPE ...", all of protocol.md §9); the sentence names the server's words. Error nodes
 * inside an EXEC reply are classified by their reader with this. "ERR no such key" is SILT_ERR_UNKNOWN_STREAM. */
enum silt_status silt_reply_error_class(struct silt_view text, struct silt_err *err);
/* The server answered something of the wrong shape: SILT_ERR_SERVER_NONSENSE with what was expected; closes the connection. */
enum silt_status silt_conn_nonsense(struct silt_conn *conn, struct silt_err *err,
                                    const char *expected);

#endif
