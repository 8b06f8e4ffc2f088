/* The client's end of siltd's control socket. Must not know what the answers mean. */
#include "control_client.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "out.h"

#define PATIENCE_MS \
    5000 /* siltd answers out of its memory, also in the middle of a pass; only `sync` is to wait */
#define ANSWER_MAX_BYTES (256u << 20)

static enum silt_status code_of_name(const char *name)
{
    static const enum silt_status codes[] = {
#define SILT_X(code, value, class, exit, sentence) code,
        SILT_STATUS_TABLE(SILT_X)
#undef SILT_X
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(silt_status_name(codes[i]), name) == 0) return codes[i];
    return SILT_ERR_SERVER_NONSENSE;
}

/* SILT_END: nobody listens. */
static enum silt_status connect_to(const char *path, int *ret_fd, struct silt_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return silt_fail(err, SILT_ERR_CONFIG, "the control socket's path is too long: %s", path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return silt_fail_errno(err, errno, "cannot make a socket");
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        *ret_fd = fd;
        return SILT_OK;
    }
    int number = errno;
    close(fd);
    if (number == ENOENT || number == ECONNREFUSED || number == ENOTDIR) return SILT_END;
    return silt_fail_errno(err, number, "cannot reach siltd on %s", path);
}

static enum silt_status send_all(int fd, struct silt_view bytes, struct silt_err *err)
{
    for (size_t done = 0; done < bytes.len;) {
        ssize_t n = send(fd, bytes.at + done, bytes.len - done, MSG_NOSIGNAL);
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EINTR)
            return silt_fail_errno(err, errno, "siltd closed its control socket");
    }
    return SILT_OK;
}

/* Up to the end of line, which is cut off. */
static enum silt_status receive_line(int fd, struct silt_buf *line, struct silt_err *err)
{
    for (;;) {
        uint8_t piece[16384];
        ssize_t n = recv(fd, piece, sizeof piece, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            silt_fail(err, SILT_ERR_SERVER_TIMEOUT,
                      "siltd is there but has not answered within %d ms", PATIENCE_MS);
            silt_hint(err, "is its disk stuck, is it stopped? It may still do it: see silt status");
            return SILT_ERR_SERVER_TIMEOUT;
        }
        if (n <= 0 || line->len > ANSWER_MAX_BYTES)
            return silt_fail(err, SILT_ERR_SERVER_NONSENSE,
                             "siltd closed its control socket without an answer");
        const uint8_t *end = memchr(piece, '\n', (size_t)n);
        if (silt_buf_put(line, piece, end ? (size_t)(end - piece) : (size_t)n) != SILT_OK)
            return silt_fail(err, SILT_ERR_MEMORY, NULL);
        if (end != NULL) return SILT_OK;
    }
}

static enum silt_status failed(const struct silt_json *answer, struct silt_err *err)
{
    const struct silt_json *error = silt_json_get(answer, "error");
    const char *hint = silt_json_get_str(silt_json_get(error, "hint"));
    const char *stream = silt_json_get_str(silt_json_get(error, "stream"));
    enum silt_status code = code_of_name(silt_json_get_str(silt_json_get(error, "code")));
    if (code >= 0) code = SILT_ERR_SERVER_NONSENSE;
    silt_fail(err, code, "%s", silt_json_get_str(silt_json_get(error, "sentence")));
    if (*hint) silt_hint(err, "%s", hint);
    silt_err_set_stream(err, stream, strlen(stream));
    return code;
}

static enum silt_status ask(int fd, struct silt_view request, struct silt_buf *line,
                            struct silt_json **ret, struct silt_err *err)
{
    enum silt_status status;
    if ((status = send_all(fd, request, err)) != SILT_OK ||
        (status = receive_line(fd, line, err)) != SILT_OK)
        return status;
    if (silt_json_parse(silt_buf_view(line), ret, NULL) != SILT_OK ||
        silt_json_kind(*ret) != SILT_JSON_OBJECT)
        return silt_fail(err, SILT_ERR_SERVER_NONSENSE, "siltd's answer is not a JSON object");
    return silt_json_is_true(silt_json_get(*ret, "ok")) ? SILT_OK : failed(*ret, err);
}

enum silt_status silt_control_ask(const char *path, const char *verb, const char *key,
                                  const char *flag, struct silt_buf *line, struct silt_json **ret,
                                  struct silt_err *err)
{
    struct silt_out request = {0};
    int fd = -1;
    enum silt_status status = connect_to(path, &fd, err);
    if (status != SILT_OK) return status;
    struct timeval patience = {PATIENCE_MS / 1000, 0};
    if (strcmp(verb, "sync") != 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    silt_json_open(&request, '{');
    silt_json_name(&request, "verb");
    silt_json_str(&request, verb);
    if (key != NULL) {
        silt_json_name(&request, "key");
        silt_json_str(&request, key);
    }
    if (flag != NULL) {
        silt_json_name(&request, flag);
        silt_json_bool(&request, true);
    }
    silt_json_close(&request, '}');
    silt_json_end_line(&request);
    *ret = NULL;
    status = request.status != SILT_OK ? silt_fail(err, request.status, NULL)
                                       : ask(fd, silt_buf_view(&request.buf), line, ret, err);
    silt_out_release(&request);
    close(fd);
    if (status != SILT_OK) {
        silt_json_free(*ret);
        *ret = NULL;
    }
    return status;
}
