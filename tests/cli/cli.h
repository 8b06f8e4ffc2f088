/* Set-up that the tests of the programs share: a server, a settings file that names it, and runs of silt and siltd. */
#ifndef TEST_CLI_H
#define TEST_CLI_H

#include "harness/harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cli {
    struct test_server server;
    char archive[128], control[128], config[128];
};

/* Settings for this server with these streams; every program run from here on reads them. */
static inline void cli_settings(struct cli *cli, const char *streams)
{
    char text[4096];
    snprintf(cli->archive, sizeof cli->archive, "%s", test_path("archive"));
    snprintf(cli->control, sizeof cli->control, "%s", test_path("control"));
    snprintf(cli->config, sizeof cli->config, "%s", test_path("silt.yaml"));
    int len = snprintf(text, sizeof text,
                       "valkey:\n  address: %s\narchive:\n  path: %s\ncontrol: %s\nstreams:\n%s",
                       cli->server.address, cli->archive, cli->control, streams);
    test_file_write(cli->config, text, (size_t)len);
    setenv("SILT_CONFIG", cli->config, 1);
}

static inline void cli_start(struct cli *cli, const char *streams)
{
    test_server_start(&cli->server, NULL);
    cli_settings(cli, streams);
}

/* Folds and trims until all is done; a finding (a gap, a key that is not there) is no failure. */
static inline void cli_fold(void)
{
    struct test_outcome end;
    TEST_PROGRAM(&end, "siltd", "--once");
    if (end.code != 0 && end.code != 1) test_die("siltd --once: exit %d: %s", end.code, end.err);
    test_outcome_release(&end);
}

/* What is not as it should be: the exit code, or a text that must stand on stdout or stderr. NULL: all is well. */
static inline const char *cli_difference(const struct test_outcome *end, int code, const char *out,
                                         const char *err)
{
    static char text[8192];
    if (end->code == code && strstr(end->out, out) && strstr(end->err, err)) return NULL;
    snprintf(text, sizeof text, "wanted exit %d, '%s', '%s'; got exit %d, '%.3000s', '%.3000s'",
             code, out, err, end->code, end->out, end->err);
    return text;
}

#define CK_RUN(end, code_, out_, err_)                                            \
    do {                                                                          \
        const char *difference_ = cli_difference(end, code_, out_, err_);         \
        ck_assert_msg(difference_ == NULL, "%s", difference_ ? difference_ : ""); \
    } while (0)

/* Runs silt, checks, forgets: CK_SILT(0, "out", "err", "id", "1-1"). */
#define CK_SILT(code_, out_, err_, ...)           \
    do {                                          \
        struct test_outcome end_;                 \
        TEST_PROGRAM(&end_, "silt", __VA_ARGS__); \
        CK_RUN(&end_, code_, out_, err_);         \
        test_outcome_release(&end_);              \
    } while (0)

/* The same, and stdout is exactly that. */
#define CK_SILT_OUT(code_, out_, ...)             \
    do {                                          \
        struct test_outcome end_;                 \
        TEST_PROGRAM(&end_, "silt", __VA_ARGS__); \
        CK_RUN(&end_, code_, "", "");             \
        ck_assert_str_eq(end_.out, out_);         \
        test_outcome_release(&end_);              \
    } while (0)

/* What it printed, freed with free(). */
#define SILT_OUTPUT(...)                                                        \
    __extension__({                                                             \
        struct test_outcome end_;                                               \
        TEST_PROGRAM(&end_, "silt", __VA_ARGS__);                               \
        if (end_.code != 0) test_die("silt: exit %d: %s", end_.code, end_.err); \
        char *out_ = strdup(end_.out);                                          \
        test_outcome_release(&end_);                                            \
        out_;                                                                   \
    })

static inline size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* Entries 1-0 to n-0 of a stream with one field, n=<number>. */
static inline void cli_add(struct cli *cli, const char *key, int from, int to)
{
    for (int i = from; i <= to; i++)
        test_cmd(&cli->server, "XADD %s %d-0 n %d", key, i, i);
}

#endif
