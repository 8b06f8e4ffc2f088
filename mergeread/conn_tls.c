/* TLS over a connected socket, by OpenSSL itself: hiredis_ssl has no way to check that a certificate carries the server's name, and our reads and writes
 * need deadlines of their own. The only openssl user. Built without it there is no TLS, and that is said before anything is sent. */
#include "conn_priv.h"

#ifndef SILT_HAVE_TLS

bool silt_tls_is_built_in(void)
{
    return false;
}

enum silt_status silt_tls_open(int fd, const struct silt_address *address,
                               const struct silt_conn_options *options,
                               const struct silt_waiter *waiter, struct silt_tls **ret,
                               struct silt_err *err)
{
    (void)fd, (void)options, (void)waiter, (void)ret;
    return silt_fail(err, SILT_ERR_NOT_BUILT_IN, "cannot use %s: this build has no TLS",
                     address->text);
}

void silt_tls_free(struct silt_tls *tls)
{
    (void)tls;
}

const char *silt_tls_why(void)
{
    return "";
}

ssize_t silt_tls_read(struct silt_tls *tls, void *at, size_t len, short *ret_events)
{
    (void)tls, (void)at, (void)len, (void)ret_events;
    return 0;
}

ssize_t silt_tls_peek(struct silt_tls *tls, void *at, size_t len)
{
    (void)tls, (void)at, (void)len;
    return 0;
}

ssize_t silt_tls_write(struct silt_tls *tls, const void *at, size_t len, short *ret_events)
{
    (void)tls, (void)at, (void)len, (void)ret_events;
    return 0;
}

#else

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "alloc.h"

struct silt_tls {
    SSL_CTX *context;
    SSL *ssl;
};

bool silt_tls_is_built_in(void)
{
    return true;
}

/* OpenSSL writes with write(2), so a server that has hung up would raise SIGPIPE, and a library must not end its program. Held back here, and
 * taken away if it is ours. */
struct pipe_guard {
    sigset_t before;
    bool was_pending;
};

static void guard_begin(struct pipe_guard *guard)
{
    sigset_t pipe_only, pending;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigemptyset(&pending);
    sigpending(&pending);
    guard->was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_only, &guard->before);
}

static void guard_end(const struct pipe_guard *guard)
{
    static const struct timespec at_once = {0, 0};
    int saved = errno;
    sigset_t pipe_only;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    while (!guard->was_pending && sigtimedwait(&pipe_only, NULL, &at_once) < 0 && errno == EINTR)
        continue;
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
    errno = saved;
}

/* What a call that moved nothing means: 0 closed; -1 with errno, EAGAIN with the events to wait for. */
static ssize_t nothing_moved(const struct silt_tls *tls, int code, short *ret_events)
{
    int saved = errno;
    switch (SSL_get_error(tls->ssl, code)) {
    case SSL_ERROR_WANT_READ:
        *ret_events = POLLIN;
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_WANT_WRITE:
        *ret_events = POLLOUT;
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_SYSCALL: /* errno 0: closed without a goodbye, which a protocol with lengths of its own bears */
        errno = saved;
        return saved == 0 ? 0 : -1;
    default: errno = EPROTO;
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
        if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) return 0;
#endif
        return -1;
    }
}

static int as_int(size_t len)
{
    return len > INT_MAX ? INT_MAX : (int)len;
}

ssize_t silt_tls_read(struct silt_tls *tls, void *at, size_t len, short *ret_events)
{
    struct pipe_guard guard;
    guard_begin(&guard); /* a renegotiation or a key update writes, too */
    ERR_clear_error();
    errno = 0;
    int code = SSL_read(tls->ssl, at, as_int(len));
    ssize_t got = code > 0 ? code : nothing_moved(tls, code, ret_events);
    guard_end(&guard);
    return got;
}

ssize_t silt_tls_peek(struct silt_tls *tls, void *at, size_t len)
{
    struct pipe_guard guard;
    short events;
    guard_begin(&guard);
    ERR_clear_error();
    errno = 0;
    int code = SSL_peek(tls->ssl, at, as_int(len));
    ssize_t got = code > 0 ? code : nothing_moved(tls, code, &events);
    guard_end(&guard);
    return got;
}

ssize_t silt_tls_write(struct silt_tls *tls, const void *at, size_t len, short *ret_events)
{
    struct pipe_guard guard;
    guard_begin(&guard);
    ERR_clear_error();
    errno = 0;
    int code = SSL_write(tls->ssl, at, as_int(len));
    ssize_t sent = code > 0 ? code : nothing_moved(tls, code, ret_events);
    if (sent == 0) { /* closed: a write has no other word for it */
        errno = EPIPE;
        sent = -1;
    }
    guard_end(&guard);
    return sent;
}

static const char *reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text != NULL ? text : "no reason given";
}

const char *silt_tls_why(void)
{
    return reason();
}

/* A key locked by a pass phrase: nobody is there to be asked for it, and OpenSSL would wait at the terminal. */
static int no_pass_phrase(char *at, int size, int writing, void *ctx)
{
    (void)at, (void)size, (void)writing, (void)ctx;
    return -1;
}

/* Whom we trust, and who we are: the files as they are now, so that a renewed certificate needs no restart. */
static enum silt_status read_files(SSL_CTX *context, const struct silt_conn_options *options,
                                   struct silt_err *err)
{
    const char *ca = options->tls_ca_file, *cert = options->tls_cert_file;
    const char *key = options->tls_key_file != NULL ? options->tls_key_file : cert;
    int loaded = ca != NULL ? SSL_CTX_load_verify_locations(context, ca, NULL)
                            : SSL_CTX_set_default_verify_paths(context);
    if (loaded != 1)
        return silt_fail(err, SILT_ERR_SERVER_DENIED, "cannot read the certificates of %s: %s",
                         ca != NULL ? ca : "the system", reason());
    if (cert == NULL && key == NULL) return SILT_OK;
    if (cert == NULL)
        return silt_fail(err, SILT_ERR_SERVER_DENIED, "tls-key-file %s goes with a tls-cert-file",
                         key);
    if (SSL_CTX_use_certificate_chain_file(context, cert) != 1)
        return silt_fail(err, SILT_ERR_SERVER_DENIED, "cannot read the certificate %s: %s", cert,
                         reason());
    SSL_CTX_set_default_passwd_cb(context, no_pass_phrase);
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        return silt_fail(err, SILT_ERR_SERVER_DENIED, "cannot read the certificate's key %s: %s",
                         key, reason());
    return SILT_OK;
}

static enum silt_status set_up(struct silt_tls *tls, int fd, const struct silt_address *address,
                               const struct silt_conn_options *options, struct silt_err *err)
{
    ERR_clear_error();
    tls->context = SSL_CTX_new(TLS_client_method());
    if (tls->context == NULL) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    enum silt_status status = read_files(tls->context, options, err);
    if (status != SILT_OK) return status;
    tls->ssl = SSL_new(tls->context);
    if (tls->ssl == NULL) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    SSL_set_mode(tls->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* An address in digits is looked for among the certificate's addresses, and is no name to ask a server by. */
    char host[sizeof address->host]; /* the macro below casts const away */
    memcpy(host, address->host, sizeof host);
    bool digits = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), address->host) == 1;
    bool named = digits || (SSL_set1_host(tls->ssl, address->host) == 1 &&
                            SSL_set_tlsext_host_name(tls->ssl, host) == 1);
    if (!named || SSL_set_fd(tls->ssl, fd) != 1)
        return silt_fail(err, SILT_ERR_SERVER_AWAY, "cannot begin TLS with %s: %s", address->text,
                         reason());
    SSL_set_hostflags(tls->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SILT_OK;
}

static enum silt_status refused(const struct silt_tls *tls, const struct silt_address *address,
                                struct silt_err *err)
{
    long verdict = SSL_get_verify_result(tls->ssl);
    if (verdict == X509_V_OK)
        return silt_fail(err, SILT_ERR_SERVER_AWAY, "no TLS with %s: %s", address->text,
                         ERR_peek_last_error() != 0 ? reason()
                                                    : "the server closed the connection");
    enum silt_status status =
        silt_fail(err, SILT_ERR_SERVER_DENIED, "the certificate of %s is not accepted: %s",
                  address->text, X509_verify_cert_error_string(verdict));
    silt_hint(
        err,
        "the authority that signed it is named by tls-ca-file, and it must carry the host of the address");
    return status;
}

static enum silt_status shake_hands(struct silt_tls *tls, int fd,
                                    const struct silt_address *address,
                                    const struct silt_waiter *waiter, struct silt_err *err)
{
    for (;;) {
        struct pipe_guard guard;
        short events = POLLIN;
        guard_begin(&guard);
        ERR_clear_error();
        errno = 0;
        int code = SSL_connect(tls->ssl);
        ssize_t moved = code == 1 ? 1 : nothing_moved(tls, code, &events);
        guard_end(&guard);
        if (moved > 0) return SILT_OK;
        if (moved == 0 || errno != EAGAIN) return refused(tls, address, err);
        enum silt_status status = silt_wait(waiter, fd, events);
        if (status == SILT_ERR_CANCELLED)
            return silt_fail(err, status, "asked to stop while connecting to %s", address->text);
        if (status != SILT_OK)
            return silt_fail(err, SILT_ERR_SERVER_AWAY, "no TLS with %s: no answer in time",
                             address->text);
    }
}

enum silt_status silt_tls_open(int fd, const struct silt_address *address,
                               const struct silt_conn_options *options,
                               const struct silt_waiter *waiter, struct silt_tls **ret,
                               struct silt_err *err)
{
    struct silt_tls *tls = silt_calloc(1, sizeof *tls);
    if (tls == NULL) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    enum silt_status status = set_up(tls, fd, address, options, err);
    if (status == SILT_OK) status = shake_hands(tls, fd, address, waiter, err);
    if (status == SILT_OK)
        *ret = tls;
    else
        silt_tls_free(tls);
    return status;
}

void silt_tls_free(struct silt_tls *tls)
{
    if (tls == NULL) return;
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    silt_free(tls);
}

#endif
