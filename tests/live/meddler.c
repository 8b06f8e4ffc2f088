/* The go-between of meddler.h. */
#include "meddler.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/harness.h"

struct stream {
    int fd;
    char *bytes;
    size_t len, cap;
};

struct link {
    struct stream client, server;
    bool in_multi, aborted;
};

static bool read_more(struct stream *stream)
{
    if (stream->cap - stream->len < 65536) {
        stream->cap = stream->cap * 2 + 131072;
        stream->bytes = realloc(stream->bytes, stream->cap);
        if (!stream->bytes) _exit(1);
    }
    ssize_t got;
    do
        got = read(stream->fd, stream->bytes + stream->len, stream->cap - stream->len - 1);
    while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    stream->len += (size_t)got;
    stream->bytes[stream->len] = '\0'; /* item() reads numbers as text */
    return true;
}

static bool write_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t done = send(fd, at, len, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return false;
        at += done;
        len -= (size_t)done;
    }
    return true;
}

static void drop(struct stream *stream, size_t len)
{
    memmove(stream->bytes, stream->bytes + len, stream->len - len);
    stream->len -= len;
}

/* Length of the whole item (command or reply) at the front; 0: not all there. */
static size_t item(const char *at, size_t len)
{
    const char *line = len ? memchr(at, '\n', len) : NULL;
    if (!line) return 0;
    size_t used = (size_t)(line - at) + 1;
    long long count = strtoll(at + 1, NULL, 10);
    if (*at == '$') {
        if (count < 0) return used;
        return len - used >= (size_t)count + 2 ? used + (size_t)count + 2 : 0;
    }
    for (long long i = 0; *at == '*' && i < count; i++) {
        size_t one = item(at + used, len - used);
        if (!one) return 0;
        used += one;
    }
    return used;
}

/* A whole item at the front, read if need be; 0: the other side has closed. */
static size_t next_item(struct stream *stream)
{
    size_t len;
    while ((len = item(stream->bytes, stream->len)) == 0)
        if (!read_more(stream)) return 0;
    return len;
}

/* "XINFO STREAM s": the first words of a command. */
static void name_command(const char *at, size_t len, char *ret, size_t size)
{
    const char *end = at + len;
    size_t used = 0;
    ret[0] = 0;
    at = memchr(at, '\n', len);
    for (int i = 0; i < 3 && at && at + 1 < end; i++) {
        int word = atoi(at + 2);
        at = memchr(at + 1, '\n', (size_t)(end - at - 1));
        if (!at) break;
        int most = word > 20 ? 20 : word;
        used += (size_t)snprintf(ret + used, size - used, "%s%.*s", i ? " " : "", most, at + 1);
        at += word + 2;
    }
}

static bool ask_server(struct link *link, const char *at, size_t len, size_t *ret_len)
{
    if (!write_all(link->server.fd, at, len)) return false;
    *ret_len = next_item(&link->server);
    return *ret_len > 0;
}

static void discard(struct link *link)
{
    size_t len;
    static const char words[] = "*1\r\n$7\r\nDISCARD\r\n";
    if (ask_server(link, words, sizeof words - 1, &len)) drop(&link->server, len);
    link->in_multi = link->aborted = false;
}

static void wait_for_close(const struct link *link)
{
    char byte[4096];
    ssize_t got;
    do
        got = read(link->client.fd, byte, sizeof byte);
    while (got > 0 || (got < 0 && errno == EINTR));
}

/* The command that is met. False: the connection is to end. */
static bool meddle(struct link *link, const struct test_meddler_state *state, size_t command_len,
                   bool is_exec)
{
    size_t len;
    switch (state->how) {
    case TEST_MEDDLE_REFUSE:
        if (is_exec && link->in_multi)
            discard(link);
        else if (link->in_multi)
            link->aborted = true;
        return write_all(link->client.fd, state->bytes, state->len);
    case TEST_MEDDLE_BREAK: write_all(link->client.fd, state->bytes, state->len); return false;
    case TEST_MEDDLE_CUT:
        if (ask_server(link, link->client.bytes, command_len, &len))
            write_all(link->client.fd, link->server.bytes, len / 2);
        return false;
    case TEST_MEDDLE_LOSE: ask_server(link, link->client.bytes, command_len, &len); return false;
    case TEST_MEDDLE_SILENT: wait_for_close(link); return false;
    }
    return false;
}

static bool pass_on(struct link *link, size_t command_len, bool is_exec)
{
    static const char abort_text[] =
        "-EXECABORT Transaction discarded because of previous errors.\r\n";
    size_t len;
    if (is_exec && link->aborted) {
        discard(link);
        return write_all(link->client.fd, abort_text, sizeof abort_text - 1);
    }
    if (!ask_server(link, link->client.bytes, command_len, &len)) return false;
    bool fine = write_all(link->client.fd, link->server.bytes, len);
    drop(&link->server, len);
    return fine;
}

static void serve(struct link *link, struct test_meddler_state *state)
{
    for (bool goes_on = true; goes_on;) {
        char name[sizeof state->command];
        size_t len = next_item(&link->client);
        if (len == 0) return;
        name_command(link->client.bytes, len, name, sizeof name);
        bool is_exec = strcmp(name, "EXEC") == 0;
        unsigned number = atomic_fetch_add(&state->seen, 1) + 1;
        unsigned at = atomic_load(&state->at);
        if (number == at || (at > 0 && number > at && atomic_load(&state->on))) {
            memcpy(state->command, name, sizeof name);
            goes_on = meddle(link, state, len, is_exec);
        } else {
            goes_on = pass_on(link, len, is_exec);
            if (strcmp(name, "MULTI") == 0) link->in_multi = true;
        }
        if (is_exec) link->in_multi = link->aborted = false;
        if (goes_on) drop(&link->client, len);
    }
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static void play(int listener, const char *upstream, struct test_meddler_state *state)
{
    for (;;) {
        struct link link = {.client.fd = accept(listener, NULL, NULL)};
        if (link.client.fd < 0) continue;
        link.server.fd = connect_to(upstream);
        if (link.server.fd >= 0) {
            serve(&link, state);
            close(link.server.fd);
        }
        close(link.client.fd);
        free(link.client.bytes);
        free(link.server.bytes);
    }
}

void test_meddler_start(struct test_meddler *meddler, const char *upstream)
{
    static unsigned number;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = test_path("m%u.sock", ++number);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    snprintf(meddler->address, sizeof meddler->address, "unix:%s", path);
    meddler->state = mmap(NULL, sizeof *meddler->state, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (meddler->state == MAP_FAILED || listener < 0 ||
        bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 16) != 0)
        test_die("no go-between at %s: %s", path, strerror(errno));
    pid_t parent = getpid();
    meddler->pid = fork();
    if (meddler->pid < 0) test_die("fork: %s", strerror(errno));
    if (meddler->pid == 0) {
        test_die_with_parent(parent);
        play(listener, upstream, meddler->state);
    }
    close(listener);
}

void test_meddler_set(struct test_meddler *meddler, unsigned at, enum test_meddle how,
                      const char *bytes)
{
    struct test_meddler_state *state = meddler->state;
    atomic_store(&state->at, 0);
    atomic_store(&state->on, 0);
    state->how = how;
    state->len = bytes ? strlen(bytes) : 0;
    if (state->len > sizeof state->bytes) test_die("too many bytes for the go-between");
    if (bytes) memcpy(state->bytes, bytes, state->len);
    state->command[0] = 0;
    atomic_store(&state->seen, 0);
    atomic_store(&state->at, at);
}

void test_meddler_go_on(struct test_meddler *meddler)
{
    atomic_store(&meddler->state->on, 1);
}

void test_meddler_release(struct test_meddler *meddler)
{
    if (meddler->pid > 0) {
        kill(meddler->pid, SIGKILL);
        waitpid(meddler->pid, NULL, 0);
        munmap(meddler->state, sizeof *meddler->state);
    }
    *meddler = (struct test_meddler){0};
}
