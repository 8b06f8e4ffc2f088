/* Memory that runs out: the n-th request of a process fails, whoever makes it, the libraries too. In a program of ours by linking scarce.c; in any
 * other by LD_PRELOAD of libsilt_fault_scarce.so with SILT_SCARCE=<n> (<n>+: and every later one) and, for the
 * number of requests in all, SILT_SCARCE_TELL=<file>. Under a sanitizer, which owns malloc, only our own door to the
 * heap (format/alloc.h) is counted. */
#ifndef TEST_SCARCE_H
#define TEST_SCARCE_H

#include <stdbool.h>
#include <stddef.h>

/* From here to scarce_stop. nth 0: only counted. on: every one after it as well. Threads: any may ask for memory meanwhile. */
void scarce_start(size_t nth, bool on);
/* Gives how many requests were refused; *ret_requests (may be NULL): how many there were. */
size_t scarce_stop(size_t *ret_requests);

#endif
