/* Runs the tests of one file under Check and says in TAP what came of each: one line per test, `ok N - name` or
 * `not ok N - name`, then the plan `1..N`. tests/run counts those lines, so this is the one door for C tests.
 *
 *     START_TEST(bytes__reads_u32) { ... } END_TEST
 *     TEST_MAIN(bytes__reads_u32, bytes__refuses_short_input)
 *
 * The three standard headers that no test can do without come with it: some releases of Check bring them, some do not.
 *
 * Run by hand: `test_bytes [TEXT]` runs the tests whose name contains TEXT; CK_FORK=no keeps them in one process for a
 * debugger; KEEP=1 keeps the scratch directories; SILT_SEED=N repeats a random test. */
#ifndef TEST_RUNNER_H
#define TEST_RUNNER_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

#include "die.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gives the exit code of the program: 0 when all passed, 1 when some failed, 2 when none ran. */
int test_run(int argc, char **argv, const TTest *const *tests, size_t count);
/* The same for a suite put together by hand (fixtures, loops, timeouts). Owns: takes the suite. */
int test_run_suite(Suite *suite);

#define TEST_MAIN(...)                                                         \
    int main(int argc, char **argv)                                            \
    {                                                                          \
        const TTest *tests_[] = {__VA_ARGS__};                                 \
        return test_run(argc, argv, tests_, sizeof tests_ / sizeof tests_[0]); \
    }

/* Ends the test here as skipped, for a reason that this machine gives ("the server has no TLS"): it is named in the tally and is no pass. */
#define TEST_SKIP(reason)            \
    do {                             \
        test_skip(__func__, reason); \
        return;                      \
    } while (0)
void test_skip(const char *function, const char *reason);

/* True when long forms of random and endurance tests are wanted (SILT_TEST_LONG=1). */
bool test_long(void);

/* Directories of the source tree and of this build; borrowed. */
const char *test_source_root(void);
const char *test_build_root(void);

/* Waits until the condition holds, looking every few milliseconds, and ends the test after ms (stretched under the
 * sanitizers). The condition may be evaluated many times. */
#define TEST_WAIT(condition, ms)                                                               \
    do {                                                                                       \
        struct test_deadline deadline_ = test_deadline(ms);                                    \
        while (!(condition))                                                                   \
            if (!test_deadline_poll(&deadline_))                                               \
                test_die("%s:%d: waited %d ms in vain for: %s", __FILE__, __LINE__, (int)(ms), \
                         #condition);                                                          \
    } while (0)

struct test_deadline {
    long long end_ms;
    int step_ms;
};
struct test_deadline test_deadline(int ms);
bool test_deadline_poll(struct test_deadline *deadline);      /* false: over */
int test_deadline_left(const struct test_deadline *deadline); /* ms, 0: over */
long long test_now_ms(void);                                  /* monotonic */

#endif
