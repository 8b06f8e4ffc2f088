/* Named points where a test may fail, pause or kill. Compiled away unless meson is given -Dfaultpoints=true.
 *
 * SILT_FAULT="name[:n]=action[,...]": at the n-th (default first) passage of `name`: action is `kill` (SIGKILL to ourselves),
 * `fail` (silt_faultpoint returns 1 and the caller fails as it would for the real fault), `pause:PATH` (creates PATH,
 * then waits until it is removed) or `hold:PATH` (waits while PATH exists, without creating it).
 * SILT_FAULT_LOG=PATH: appends one line per passage, "name n", so that a sweep can learn all points and counts. */
#ifndef SILT_FAULTPOINT_H
#define SILT_FAULTPOINT_H

#ifdef SILT_FAULTPOINTS
int silt_faultpoint(const char *name); /* 1: fail here. Threads: any */
#define SILT_FAULTPOINT(name) silt_faultpoint(name)
#else
#define SILT_FAULTPOINT(name) 0
#endif

#endif
