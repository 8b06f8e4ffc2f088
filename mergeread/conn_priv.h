/* What conn's own files and look.c share: the address, the socket's way in, the waiting, and what a connection has learnt about the user's rights. */
#ifndef SILT_CONN_PRIV_H
#define SILT_CONN_PRIV_H

#include <sys/types.h>

#include "conn.h"
#include "conn_parse.h"

enum silt_transport { SILT_TRANSPORT_UNIX, SILT_TRANSPORT_TCP, SILT_TRANSPORT_TLS };

struct silt_address {
    enum silt_transport transport;
    char text[300]; /* as shown: "unix:/run/valkey.sock", "tcp:host:6379" */
    char host[256]; /* tcp, tls */
    char port[6];
    char path[108]; /* unix; sun_path's size on Linux */
};
/* Fails with SILT_ERR_ADDRESS. */
SILT_MUST_USE enum silt_status silt_address_parse(const char *text, struct silt_address *ret,
                                                  struct silt_err *err);

/* One wait: until when, and whether somebody asks to stop. */
struct silt_waiter {
    int64_t deadline_ms; /* monotonic */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
};
int64_t silt_now_ms(void); /* monotonic */
/* Waits for poll(2) events on fd; fd -1: for at most 10 ms. SILT_OK: look again (something came, or a signal, or a slice of time has passed).
 * SILT_ERR_SERVER_TIMEOUT, SILT_ERR_CANCELLED: without a sentence, the caller has it. */
SILT_MUST_USE enum silt_status silt_wait(const struct silt_waiter *waiter, int fd, short events);

/* The addresses of a host, found within the time limit; freed with freeaddrinfo. Fails with SILT_ERR_SERVER_AWAY, SILT_ERR_CANCELLED, SILT_ERR_LIMIT,
 * SILT_ERR_MEMORY. */
struct addrinfo;
SILT_MUST_USE enum silt_status silt_resolve(const struct silt_address *address,
                                            const struct silt_waiter *waiter, struct addrinfo **ret,
                                            struct silt_err *err);

/* A connected non-blocking socket. Fails with SILT_ERR_SERVER_AWAY, SILT_ERR_CANCELLED, SILT_ERR_LIMIT. */
SILT_MUST_USE enum silt_status silt_socket_connect(const struct silt_address *address,
                                                   const struct silt_waiter *waiter, int *ret_fd,
                                                   struct silt_err *err);

/* The file's bytes without the line end at their end. The caller wipes. Fails with SILT_ERR_SERVER_DENIED, SILT_ERR_MEMORY. */
SILT_MUST_USE enum silt_status silt_password_read(const char *path, struct silt_buf *ret,
                                                  struct silt_err *err);
void silt_buf_wipe(struct silt_buf *buf);

/* TLS over a connected socket. */
struct silt_tls;
bool silt_tls_is_built_in(void);
/* Reads the files that the options name, shakes hands and checks the server's certificate and name. Fails with SILT_ERR_SERVER_AWAY, SILT_ERR_SERVER_DENIED (certificates), SILT_ERR_CANCELLED. */
SILT_MUST_USE enum silt_status silt_tls_open(int fd, const struct silt_address *address,
                                             const struct silt_conn_options *options,
                                             const struct silt_waiter *waiter,
                                             struct silt_tls **ret, struct silt_err *err);
void silt_tls_free(struct silt_tls *tls);
/* After a call that failed with EPROTO: OpenSSL's words, such as the alert that the server sent. */
const char *silt_tls_why(void);
/* As recv and send: bytes moved; 0: the other side has closed (read); -1 with errno EAGAIN and the poll events to wait for, or another errno. */
ssize_t silt_tls_read(struct silt_tls *tls, void *at, size_t len, short *ret_events);
ssize_t silt_tls_peek(struct silt_tls *tls, void *at, size_t len); /* reads without taking */
ssize_t silt_tls_write(struct silt_tls *tls, const void *at, size_t len, short *ret_events);

struct silt_conn {
    struct silt_conn_options options; /* its strings are ours */
    char *user, *password_file, *tls_ca_file, *tls_cert_file, *tls_key_file;
    struct silt_address address;
    int fd; /* -1: closed */
    struct silt_tls *tls;
    struct silt_parser *parser;
    uint8_t *chunk;
    struct silt_buf out;
    size_t out_sent;
    size_t owed;
    uint64_t generation;
    char server[64];
    unsigned denied;
    int64_t denied_at_ms;
    struct silt_buf notes;
    size_t note_at;
};
/* As silt_conn_append, without a look at what may have come unasked. */
SILT_MUST_USE enum silt_status silt_conn_put(struct silt_conn *conn, const struct silt_view *argv,
                                             size_t argc, struct silt_err *err);
/* With nothing owed nothing may have come: bytes that nobody asked for would be taken for the answer to the next command. Closes on
 * SILT_ERR_SERVER_AWAY (the server has closed) and SILT_ERR_SERVER_NONSENSE. */
SILT_MUST_USE enum silt_status silt_conn_check_idle(struct silt_conn *conn, struct silt_err *err);
enum silt_status silt_conn_no_memory(struct silt_conn *conn, struct silt_err *err); /* closes */
struct silt_waiter silt_conn_waiter(const struct silt_conn *conn, uint64_t ms);

/* Commands of a look that this connection's user may not send; forgotten at the next connect, and after ten seconds. */
enum silt_look_part { SILT_LOOK_GROUPS = 1, SILT_LOOK_REPLICATION = 2, SILT_LOOK_RANGE = 4 };
unsigned silt_conn_denied(const struct silt_conn *conn);
void silt_conn_set_denied(struct silt_conn *conn, unsigned parts);
/* What each look that is still owed was made of, first in first out: its replies are read by this, and asked for again. Forgotten at a close. */
SILT_MUST_USE enum silt_status silt_conn_note(struct silt_conn *conn, uint8_t parts,
                                              struct silt_view key);
/* The oldest note; its key is valid until the next silt_conn_note. */
bool silt_conn_first_note(const struct silt_conn *conn, uint8_t *ret_parts,
                          struct silt_view *ret_key);
void silt_conn_change_note(struct silt_conn *conn, uint8_t parts);
void silt_conn_drop_note(struct silt_conn *conn);

#endif
