/* Sweeps over the named points of format/faultpoint.h: learn from one good run which points are passed and how often, then make
 * a run for each of them. The programs must be built with -Dfaultpoints=true; test_faults_built_in says whether they are.
 *
 *     test_faults_learn(&faults, log, 3);  // after a run with SILT_FAULT_LOG=<log>
 *     for (size_t i = 0; i < faults.count; i++)
 *         ... run with test_faults_setting(&faults, i, "kill") in its environment, start again, compare with the oracle ...
 */
#ifndef TEST_FAULT_H
#define TEST_FAULT_H

#include <stdbool.h>
#include <stddef.h>

struct test_fault {
    char name[64];
    unsigned passage; /* 1: the first time it is passed */
};

struct test_faults {
    struct test_fault *points; /* in the order they were passed */
    size_t count;
};

bool test_faults_built_in(void);
/* Reads the log of a run. At most `passages` of each name are kept (0: all). An empty or missing log ends the test: a sweep over
 * nothing proves nothing. */
void test_faults_learn(struct test_faults *faults, const char *log, unsigned passages);
void test_faults_release(struct test_faults *faults);
/* "SILT_FAULT=<name>:<passage>=<action>", for a program's environment. Valid until the next call. */
const char *test_faults_setting(const struct test_faults *faults, size_t index, const char *action);

#endif
