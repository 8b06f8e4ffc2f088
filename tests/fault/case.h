/* Running programs under the preload library, and cases that can be had again. Sets up; checks nothing. */
#ifndef TEST_CASE_H
#define TEST_CASE_H

#include "harness/harness.h"

/* SILT_FAULT_CASE=<text> runs that case alone; a failure names it, with the seed. */
bool case_wanted(const char *text);

/* How much dearer a case is here than without sanitizers: what a bounded form divides by. */
unsigned case_price(void);

#define CASE_ENV_MAX 12
/* "NAME=value" strings for a program that is watched below `root`, its journal in `journal` (NULL: none), then those given, up to NULL. Valid until the
 * next call. */
const char *const *case_env(const char *root, const char *journal, ...) __attribute__((sentinel));
const char *case_shim(void);

/* Runs the function in a process of its own and waits. What it wrote last with case_note stands in *ret_note when it did not end with 0. */
bool case_isolated(void (*function)(void *context), void *context, char ret_note[400]);
void case_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Zeros that a child's writes show in. */
void *case_shared(size_t size);
/* As TEST_MAIN, with the patience that the long form needs. */
int case_main(int argc, char **argv, const TTest *const *tests, size_t count);

#endif
