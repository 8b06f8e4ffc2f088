/* splitmix64: small, good enough to choose test cases. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", 2014. */
#include "rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "die.h"

uint64_t test_seed(void)
{
    const char *text = getenv("SILT_SEED");
    if (!text || !*text) {
        struct timespec now;
        char made[24];
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(made, sizeof made, "%llu",
                 (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
        setenv("SILT_SEED", made, 1);
        text = getenv("SILT_SEED");
    }
    return strtoull(text, NULL, 0);
}

struct test_rng test_rng_fixed(uint64_t seed)
{
    return (struct test_rng){seed};
}

struct test_rng test_rng(uint64_t salt)
{
    struct test_rng rng = {test_seed()};
    rng.state ^= salt * 0x9e3779b97f4a7c15ULL;
    return rng;
}

uint64_t test_rng_next(struct test_rng *rng)
{
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

uint64_t test_rng_below(struct test_rng *rng, uint64_t limit)
{
    if (limit == 0) test_die("test_rng_below: the limit is 0");
    return test_rng_next(rng) % limit;
}

bool test_rng_chance(struct test_rng *rng, unsigned percent)
{
    return test_rng_below(rng, 100) < percent;
}

void test_rng_bytes(struct test_rng *rng, void *ret, size_t len)
{
    unsigned char *at = ret;
    while (len-- > 0)
        *at++ = (unsigned char)test_rng_next(rng);
}
