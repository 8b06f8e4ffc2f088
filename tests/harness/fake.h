/* A server that follows a script, for every answer a real one gives too rarely: refusals, garbage, silence, half a reply. It is a
 * child process on a UNIX socket in the scratch directory and dies with the test.
 *
 *     static const struct test_step script[] = {
 *         TEST_EXPECT("XLEN s"), TEST_ANSWER(":5\r\n"),
 *         TEST_EXPECT("XRANGE s *"), TEST_ANSWER("*1\r\n*2\r\n$3\r\n1-"), TEST_CLOSE,
 *     };
 *     test_fake_start(&fake, script, sizeof script / sizeof script[0]);
 *     ... connect to fake.socket ...
 *     ck_assert_str_eq(test_fake_finish(&fake), "");
 */
#ifndef TEST_FAKE_H
#define TEST_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum test_step_kind {
    TEST_STEP_EXPECT,
    TEST_STEP_ANSWER,
    TEST_STEP_SLOWLY,
    TEST_STEP_HOLD,
    TEST_STEP_SILENCE,
    TEST_STEP_CLOSE,
    TEST_STEP_ALWAYS,
    TEST_STEP_AGAIN
};

struct test_step {
    enum test_step_kind kind;
    const char *
        pattern; /* words of the command; each a glob (fnmatch), the command's name in any case; a last "**" takes the rest */
    const char *bytes;
    size_t len;
};

/* Reads one whole command, which must match. Accepts a connection first if there is none. */
#define TEST_EXPECT(pattern_)               \
    {                                       \
        TEST_STEP_EXPECT, pattern_, NULL, 0 \
    }
/* Sends the bytes of a string literal (NULs included). */
#define TEST_ANSWER(bytes_)                                \
    {                                                      \
        TEST_STEP_ANSWER, NULL, bytes_, sizeof(bytes_) - 1 \
    }
/* Sends them one at a time, so that every reply is met half-read. */
#define TEST_SLOWLY(bytes_)                                \
    {                                                      \
        TEST_STEP_SLOWLY, NULL, bytes_, sizeof(bytes_) - 1 \
    }
/* Waits until the test calls test_fake_go. */
#define TEST_HOLD                     \
    {                                 \
        TEST_STEP_HOLD, NULL, NULL, 0 \
    }
/* Says nothing until the other side gives up and closes. */
#define TEST_SILENCE                     \
    {                                    \
        TEST_STEP_SILENCE, NULL, NULL, 0 \
    }
/* Closes the connection. */
#define TEST_CLOSE                     \
    {                                  \
        TEST_STEP_CLOSE, NULL, NULL, 0 \
    }
/* From here on such a command gets this answer wherever it comes and no step is used up (greetings: HELLO, CLIENT, SELECT). */
#define TEST_ALWAYS(pattern_, bytes_)                          \
    {                                                          \
        TEST_STEP_ALWAYS, pattern_, bytes_, sizeof(bytes_) - 1 \
    }
/* Starts again from the first step, for ever. */
#define TEST_AGAIN                     \
    {                                  \
        TEST_STEP_AGAIN, NULL, NULL, 0 \
    }

struct test_fake {
    pid_t pid;
    char socket[108];
    char address[120]; /* "unix:<socket>" */
    int go;            /* write end: test_fake_go */
    int told;          /* read end: what went wrong */
    unsigned *step;    /* being played, from 1 */
    bool for_ever;
    char trouble[1100];
};

void test_fake_start(struct test_fake *fake, const struct test_step *steps, size_t count);
void test_fake_go(struct test_fake *fake);
/* Ends it. "": the whole script was played (with TEST_AGAIN: as far as it went) and nothing else came. Otherwise what was due and
 * what came. Valid until the next start. */
const char *test_fake_finish(struct test_fake *fake);

#endif
