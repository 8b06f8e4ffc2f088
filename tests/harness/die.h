/* How a set-up that went wrong ends. Apart from runner.h, so that what needs no Check can be built without it. */
#ifndef TEST_DIE_H
#define TEST_DIE_H

/* The set-up of a test went wrong (no server, no scratch directory): ends the test, which fails with this text. */
void test_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
