/* Random numbers that can be had again: the seed comes from SILT_SEED, else from the clock, and stands in the output of a
 * run that failed. */
#ifndef TEST_RNG_H
#define TEST_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct test_rng {
    uint64_t state;
};

uint64_t test_seed(void);                      /* of this run */
struct test_rng test_rng(uint64_t salt);       /* seeded from test_seed() and the salt */
struct test_rng test_rng_fixed(uint64_t seed); /* the same numbers in every run: for golden data */
uint64_t test_rng_next(struct test_rng *rng);
uint64_t test_rng_below(struct test_rng *rng, uint64_t limit); /* 0 to limit - 1; limit above 0 */
bool test_rng_chance(struct test_rng *rng, unsigned percent);
void test_rng_bytes(struct test_rng *rng, void *ret, size_t len);

#endif
