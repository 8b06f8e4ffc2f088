/* TLS over a connected socket. Without hiredis_ssl at build time there is none, and that is said before anything is sent. */
#include "conn_priv.h"

#ifndef SILT_HAVE_TLS

bool silt_tls_is_built_in(void)
{
    return false;
}

enum silt_status silt_tls_open(int fd, const struct silt_address *address, const char *ca_file,
                               const struct silt_waiter *waiter, struct silt_tls **ret,
                               struct silt_err *err)
{
    (void)fd, (void)ca_file, (void)waiter, (void)ret;
    return silt_fail(err, SILT_ERR_NOT_BUILT_IN, "cannot use %s: this build has no TLS",
                     address->text);
}

void silt_tls_free(struct silt_tls *tls)
{
    (void)tls;
}

ssize_t silt_tls_read(struct silt_tls *tls, void *at, size_t len, short *ret_events)
{
    (void)tls, (void)at, (void)len, (void)ret_events;
    return 0;
}

ssize_t silt_tls_write(struct silt_tls *tls, const void *at, size_t len, short *ret_events)
{
    (void)tls, (void)at, (void)len, (void)ret_events;
    return 0;
}

#endif
