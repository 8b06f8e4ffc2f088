/* Addresses, password files, and sockets that connect within a time limit. Knows nothing of what is said over them. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "conn_priv.h"

#define PASSWORD_BYTES_MAX 4096
#define CANCEL_SLICE_MS 100

static const char address_hint[] =
    "an address is unix:/path/to/socket, tcp:HOST:PORT or tls:HOST:PORT; brackets around an IPv6 host";

static enum silt_status refuse(struct silt_err *err, const char *text, const char *why)
{
    char shown[160];
    silt_escape(silt_view_str(text), shown, sizeof shown);
    enum silt_status status =
        silt_fail(err, SILT_ERR_ADDRESS, "not a server address: %s: %s", shown, why);
    silt_hint(err, "%s", address_hint);
    return status;
}

static bool is_port(const char *text)
{
    uint64_t number = 0;
    return silt_parse_u64(silt_view_str(text), &number) && number >= 1 && number <= 65535 &&
           strlen(text) < sizeof((struct silt_address *)0)->port;
}

static enum silt_status parse_unix(const char *text, const char *path, struct silt_address *ret,
                                   struct silt_err *err)
{
    if (path[0] == '\0') return refuse(err, text, "the path is empty");
    if (strlen(path) >= sizeof ret->path)
        return refuse(err, text, "the path is longer than the 107 bytes of a socket");
    memcpy(ret->path, path, strlen(path) + 1);
    ret->transport = SILT_TRANSPORT_UNIX;
    snprintf(ret->text, sizeof ret->text, "unix:%s", ret->path);
    return SILT_OK;
}

static enum silt_status parse_host_port(const char *text, const char *rest,
                                        struct silt_address *ret, struct silt_err *err)
{
    const char *colon = strrchr(rest, ':');
    if (colon == NULL || colon[1] == '\0' || strchr(colon, ']') != NULL)
        return refuse(err, text, "the port is missing");
    if (!is_port(colon + 1)) return refuse(err, text, "the port is not a number from 1 to 65535");
    const char *host = rest;
    size_t len = (size_t)(colon - rest);
    bool bracketed = len >= 2 && host[0] == '[' && host[len - 1] == ']';
    if (bracketed) {
        host++;
        len -= 2;
    } else if (memchr(host, ':', len) != NULL) {
        return refuse(err, text, "more than one colon");
    }
    if (len == 0) return refuse(err, text, "the host is empty");
    if (len >= sizeof ret->host) return refuse(err, text, "the host's name is too long");
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)host[i] <= ' ' || strchr("/@?#[]", host[i]) != NULL)
            return refuse(err, text, "not the name of a host");
    memcpy(ret->host, host, len);
    ret->host[len] = '\0';
    memcpy(ret->port, colon + 1, strlen(colon + 1) + 1);
    snprintf(ret->text, sizeof ret->text, bracketed ? "%s:[%s]:%s" : "%s:%s:%s",
             ret->transport == SILT_TRANSPORT_TLS ? "tls" : "tcp", ret->host, ret->port);
    return SILT_OK;
}

enum silt_status silt_address_parse(const char *text, struct silt_address *ret,
                                    struct silt_err *err)
{
    struct silt_address address = {0};
    enum silt_status status;
    if (text == NULL || text[0] == '\0') return refuse(err, "", "it is empty");
    if (text[0] == '/') {
        status = parse_unix(text, text, &address, err);
    } else if (strncmp(text, "unix:", 5) == 0) {
        status = parse_unix(text, text + 5, &address, err);
    } else if (strstr(text, "://") != NULL) {
        return refuse(err, text, "a URL");
    } else if (strncmp(text, "tls:", 4) == 0) {
        address.transport = SILT_TRANSPORT_TLS;
        status = parse_host_port(text, text + 4, &address, err);
    } else {
        address.transport = SILT_TRANSPORT_TCP;
        status =
            parse_host_port(text, strncmp(text, "tcp:", 4) == 0 ? text + 4 : text, &address, err);
    }
    if (status == SILT_OK) *ret = address;
    return status;
}

int64_t silt_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum silt_status silt_wait(const struct silt_waiter *waiter, int fd, short events)
{
    if (waiter->cancelled != NULL && waiter->cancelled(waiter->cancelled_ctx))
        return SILT_ERR_CANCELLED;
    int64_t left = waiter->deadline_ms - silt_now_ms();
    if (left <= 0) return SILT_ERR_SERVER_TIMEOUT;
    int slice = left > 60000 ? 60000 : (int)left;
    if (waiter->cancelled != NULL && slice > CANCEL_SLICE_MS) slice = CANCEL_SLICE_MS;
    if (fd < 0 && slice > 10) slice = 10;
    /* An error or a signal is a reason to look again: the next call on fd says what is the matter. */
    struct pollfd wanted = {.fd = fd, .events = events};
    (void)poll(&wanted, fd < 0 ? 0 : 1, slice);
    return SILT_OK;
}

static enum silt_status away(struct silt_err *err, const struct silt_address *address,
                             int errno_value)
{
    if (errno_value == EMFILE || errno_value == ENFILE)
        return silt_fail_errno(err, errno_value, "a socket for %s", address->text);
    enum silt_status status = silt_fail(err, SILT_ERR_SERVER_AWAY, "cannot connect to %s: %s",
                                        address->text, strerror(errno_value));
    if (errno_value == EACCES || errno_value == EPERM)
        silt_hint(err, "connecting to a socket needs the right to write to it");
    else if (errno_value == ENOENT || errno_value == ECONNREFUSED)
        silt_hint(err, "is the server running, and is this its address?");
    return status;
}

static enum silt_status gave_up(struct silt_err *err, const struct silt_address *address,
                                enum silt_status status)
{
    if (status == SILT_ERR_CANCELLED)
        return silt_fail(err, status, "asked to stop while connecting to %s", address->text);
    return silt_fail(err, SILT_ERR_SERVER_AWAY, "cannot connect to %s: no answer in time",
                     address->text);
}

/* What became of a connection under way; 0: nothing yet, or done. */
static int outcome_of(int fd)
{
    int problem = 0;
    socklen_t len = sizeof problem;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &len) == 0 ? problem : errno;
}

/* Connects one socket address; closes fd on failure. */
static enum silt_status connect_one(int fd, const struct sockaddr *to, socklen_t to_len,
                                    const struct silt_address *address,
                                    const struct silt_waiter *waiter, struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    int problem = 0;
    while (status == SILT_OK && problem == 0 && connect(fd, to, to_len) != 0 && errno != EISCONN) {
        problem = errno;
        if (problem ==
            EAGAIN) { /* UNIX sockets: the listener's queue is full; there is nothing to poll for */
            status = silt_wait(waiter, -1, 0);
            problem = 0;
        } else if (problem == EINPROGRESS || problem == EALREADY || problem == EINTR) {
            status = silt_wait(waiter, fd, POLLOUT);
            problem = outcome_of(fd);
        }
    }
    if (status == SILT_OK && problem == 0) return SILT_OK;
    close(fd);
    return status != SILT_OK ? gave_up(err, address, status) : away(err, address, problem);
}

static enum silt_status connect_unix(const struct silt_address *address,
                                     const struct silt_waiter *waiter, int *ret_fd,
                                     struct silt_err *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    memcpy(to.sun_path, address->path, strlen(address->path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return away(err, address, errno);
    enum silt_status status =
        connect_one(fd, (const struct sockaddr *)&to, sizeof to, address, waiter, err);
    if (status == SILT_OK) *ret_fd = fd;
    return status;
}

static enum silt_status connect_tcp(const struct silt_address *address,
                                    const struct silt_waiter *waiter, int *ret_fd,
                                    struct silt_err *err)
{
    struct addrinfo *found = NULL;
    enum silt_status status = silt_resolve(address, waiter, &found, err);
    if (status != SILT_OK) return status;
    status = SILT_ERR_SERVER_AWAY;
    for (struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) {
            status = away(err, address, errno);
            continue;
        }
        status = connect_one(fd, at->ai_addr, at->ai_addrlen, address, waiter, err);
        if (status == SILT_OK) {
            int on = 1;
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
            *ret_fd = fd;
            break;
        }
        if (status == SILT_ERR_CANCELLED) break;
    }
    freeaddrinfo(found);
    return status;
}

enum silt_status silt_socket_connect(const struct silt_address *address,
                                     const struct silt_waiter *waiter, int *ret_fd,
                                     struct silt_err *err)
{
    if (address->transport == SILT_TRANSPORT_UNIX)
        return connect_unix(address, waiter, ret_fd, err);
    return connect_tcp(address, waiter, ret_fd, err);
}

void silt_buf_wipe(struct silt_buf *buf)
{
    if (buf->at != NULL) explicit_bzero(buf->at, buf->cap);
    buf->len = 0;
}

/* Up to `size` bytes of a file; an errno value, or 0. */
static int read_file(const char *path, char *ret, size_t size, size_t *ret_len)
{
    int problem = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    while (problem == 0 && *ret_len < size) {
        ssize_t got = read(fd, ret + *ret_len, size - *ret_len);
        if (got == 0) break;
        if (got > 0)
            *ret_len += (size_t)got;
        else if (errno != EINTR)
            problem = errno;
    }
    close(fd);
    return problem;
}

static size_t without_line_end(const char *bytes, size_t len)
{
    if (len == 0 || bytes[len - 1] != '\n') return len;
    return len > 1 && bytes[len - 2] == '\r' ? len - 2 : len - 1;
}

enum silt_status silt_password_read(const char *path, struct silt_buf *ret, struct silt_err *err)
{
    char bytes[PASSWORD_BYTES_MAX + 3];
    size_t len = 0;
    enum silt_status status = SILT_ERR_SERVER_DENIED;
    int problem = read_file(path, bytes, sizeof bytes, &len);
    len = without_line_end(bytes, len);
    if (problem != 0)
        silt_fail(err, status, "cannot read the password file %s: %s", path, strerror(problem));
    else if (len == 0)
        silt_fail(err, status, "the password file %s is empty", path);
    else if (len > PASSWORD_BYTES_MAX)
        silt_fail(err, status, "the password file %s holds more than %d bytes", path,
                  PASSWORD_BYTES_MAX);
    else if ((status = silt_buf_put(ret, bytes, len)) != SILT_OK)
        silt_fail(err, status, NULL);
    explicit_bzero(bytes, sizeof bytes);
    return status;
}
