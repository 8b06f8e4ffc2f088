/* Everything a C test may use to set itself up. Checking is ck_assert's. */
#ifndef TEST_HARNESS_H
#define TEST_HARNESS_H

#include "archive.h"
#include "clock.h"
#include "fake.h"
#include "fault.h"
#include "heap.h"
#include "oracle.h"
#include "program.h"
#include "rng.h"
#include "runner.h"
#include "scratch.h"
#include "server.h"

#endif
