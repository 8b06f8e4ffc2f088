/* A go-between: passes commands to a real server and its replies back, and answers one of them itself, as told. So every refusal, cut and silence can be
 * had at every command of a real conversation. A child process on a UNIX socket; one connection at a time; dies with the test. */
#ifndef TEST_MEDDLER_H
#define TEST_MEDDLER_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

enum test_meddle {
    TEST_MEDDLE_REFUSE, /* the bytes instead of the command's answer; the server never gets it. Within MULTI as a server does it: EXEC is aborted */
    TEST_MEDDLE_BREAK,  /* the bytes instead, then the connection ends */
    TEST_MEDDLE_CUT,    /* the server does it; half of the answer, then the connection ends */
    TEST_MEDDLE_LOSE,   /* the server does it; no answer, the connection ends */
    TEST_MEDDLE_SILENT  /* the server never gets it; no answer until the other side gives up */
};

struct test_meddler_state {
    atomic_uint seen; /* commands since the last test_meddler_set */
    atomic_uint at;   /* which of them is met, from 1; 0: none */
    atomic_uint on;   /* not 0: and every one after it */
    enum test_meddle how;
    char bytes[512];
    size_t len;
    char command[64]; /* the one that was met, its first words; "": none yet */
};

struct test_meddler {
    pid_t pid;
    char address[120];
    struct test_meddler_state *state; /* shared with the child */
};

/* upstream: path of the server's socket. */
void test_meddler_start(struct test_meddler *meddler, const char *upstream);
/* From now on: the at-th command is met so (0: none). Call while nothing is under way. */
void test_meddler_set(struct test_meddler *meddler, unsigned at, enum test_meddle how,
                      const char *bytes);
void test_meddler_go_on(
    struct test_meddler *meddler); /* not that command alone: every one from there on */
void test_meddler_release(struct test_meddler *meddler); /* {0} is fine */

#endif
