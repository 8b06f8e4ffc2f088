/* A siltd as a child process beside a server of the test's own, for the live tests of the program. Sets up; checks nothing. */
#ifndef TEST_SILTD_HELP_H
#define TEST_SILTD_HELP_H

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/harness.h"

struct daemon {
    struct test_server server;
    struct test_child child;
    char config[200];
};

/* The settings file; `streams` is the YAML list, one item a line; `more` further lines. */
static inline void write_config(struct daemon *d, const char *more, const char *streams)
{
    char text[2000];
    snprintf(d->config, sizeof d->config, "%s", test_path("silt.yaml"));
    int len =
        snprintf(text, sizeof text,
                 "valkey: { address: \"%s\" }\narchive: { path: %s }\ncontrol: %s\n%sstreams:\n%s",
                 d->server.address, test_path("archive"), test_path("c.sock"), more, streams);
    test_file_write(d->config, text, (size_t)len);
}

static inline void start_server(struct daemon *d, const char *more, const char *streams)
{
    memset(d, 0, sizeof *d);
    test_server_start(&d->server, NULL);
    write_config(d, more, streams);
}

static inline void start_siltd(struct daemon *d)
{
    const char *argv[] = {"siltd", "--config", d->config, NULL};
    test_child_start(&d->child, argv, NULL);
}

/* One run of siltd with a flag; freed with test_outcome_release. */
static inline void run_siltd(const struct daemon *d, const char *flag, const char *flag2,
                             struct test_outcome *ret)
{
    const char *argv[] = {"siltd", "--config", d->config, flag, flag2, NULL};
    test_program(ret, argv, NULL, NULL, 60000);
}

/* The answer to one request, or NULL when nobody listens. Owns: json_decref. */
static inline json_t *ask(const char *request)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {60, 0};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/c.sock", test_scratch());
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return NULL;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char *line = calloc(1, 1u << 20);
    size_t len = 0;
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0) test_die("send: %s", strerror(errno));
    for (ssize_t got; (len == 0 || line[len - 1] != '\n') &&
                      (got = recv(fd, line + len, (1u << 20) - 1 - len, 0)) > 0;)
        len += (size_t)got;
    close(fd);
    json_t *answer = json_loads(line, 0, NULL);
    if (!answer && len) test_die("not JSON: %s", line);
    free(line);
    return answer;
}

/* A number of the first stream that status tells of the key; -1: nothing (yet). */
static inline long long stream_number(const char *key, const char *field)
{
    char request[200];
    snprintf(request, sizeof request, "{\"verb\":\"status\",\"key\":\"%s\"}\n", key);
    json_t *answer = ask(request);
    const json_t *stream = json_array_get(json_object_get(answer, "streams"), 0);
    const json_t *value = json_object_get(stream, field);
    long long number = json_is_integer(value) ? json_integer_value(value) : -1;
    json_decref(answer);
    return number;
}

/* The same of a text; "" : nothing. Valid until the next call. */
static inline const char *stream_text(const char *key, const char *field)
{
    static char text[256];
    char request[200];
    snprintf(request, sizeof request, "{\"verb\":\"status\",\"key\":\"%s\"}\n", key);
    json_t *answer = ask(request);
    const json_t *stream = json_array_get(json_object_get(answer, "streams"), 0);
    const char *value = json_string_value(json_object_get(stream, field));
    snprintf(text, sizeof text, "%s", value ? value : "");
    json_decref(answer);
    return text;
}

static inline bool is_listening(void)
{
    json_t *answer = ask("{\"verb\":\"ping\"}\n");
    bool listening = answer != NULL;
    json_decref(answer);
    return listening;
}

static inline void add_entries(struct daemon *d, const char *key, int count)
{
    for (int i = 0; i < count; i++)
        test_cmd(&d->server, "XADD %s * n %d text some-value-%d", key, i, i);
}

static inline bool has_said(const struct daemon *d, const char *words)
{
    char *err = test_child_err(&d->child);
    bool said = strstr(err, words) != NULL;
    free(err);
    return said;
}

static inline unsigned times_said(const struct daemon *d, const char *words)
{
    char *err = test_child_err(&d->child);
    unsigned count = 0;
    for (const char *at = err; (at = strstr(at, words)); at += strlen(words))
        count++;
    free(err);
    return count;
}

/* Ends siltd with a signal; gives its exit code. */
static inline int end_siltd(struct daemon *d, int number)
{
    struct test_outcome outcome;
    test_child_signal(&d->child, number);
    test_child_wait(&d->child, 10000, &outcome);
    int code = outcome.timed_out ? -2 : outcome.code;
    test_outcome_release(&outcome);
    return code;
}

#endif
