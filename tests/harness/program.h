/* Runs one of our programs, or any other, and tells what it said. A child dies with the process that started it. */
#ifndef TEST_PROGRAM_H
#define TEST_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct test_outcome {
    int code;   /* exit code; -1: ended by a signal */
    int signal; /* that signal; SIGKILL and timed_out when it did not end in time */
    bool timed_out;
    char *out; /* what stands on stdout, terminated */
    size_t out_len;
    char *err;
    size_t err_len;
};
/* {0} is fine. */
void test_outcome_release(struct test_outcome *result);

struct test_child {
    pid_t pid; /* 0: not running */
    int in; /* its stdin, write end; -1: closed. Others may write while it runs; test_child_wait closes it */
    char out_path[128];
    char err_path[128];
};

/* Starts argv (NULL at its end). argv[0] without a slash is one of ours (siltd, silt: from the build directory), else from PATH.
 * env: NULL, or "NAME=value" strings ending with NULL that are added to ours ("NAME" alone takes one away). */
void test_child_start(struct test_child *child, const char *const *argv, const char *const *env);
void test_child_signal(struct test_child *child, int signal_number);
/* Waits up to ms (stretched under the sanitizers), then SIGKILL. A sanitizer's report ends the test. */
void test_child_wait(struct test_child *child, int ms, struct test_outcome *ret);
bool test_child_running(struct test_child *child); /* does not collect its end */
/* What it has said so far, terminated; freed with free(). */
char *test_child_out(const struct test_child *child);
char *test_child_err(const struct test_child *child);

/* All in one: starts, writes input (may be NULL) to its stdin, waits. */
void test_program(struct test_outcome *ret, const char *const *argv, const char *const *env,
                  const char *input, int ms);
/* TEST_PROGRAM(&result, "silt", "id", "1-1"): no input, 30 seconds. */
#define TEST_PROGRAM(ret, ...) \
    test_program(ret, (const char *const[]){__VA_ARGS__, NULL}, NULL, NULL, 30000)

/* Path of one of our programs in the build directory. Valid until the next call. */
const char *test_program_path(const char *name);

#endif
