/* The snowflake generator under clocks that race, stand still and step back. */
#include <string.h>

#include "format/mint.h"
#include "harness/harness.h"

#define NOW (SILT_EPOCH_MS + 100000000)

static uint64_t mint_at(struct silt_mint *mint, uint64_t now_ms)
{
    uint64_t snowflake;
    if (silt_mint_next(mint, now_ms, &snowflake, NULL) != SILT_OK) test_die("mint refused");
    return snowflake;
}

static struct silt_mint mint_of(uint32_t node)
{
    struct silt_mint mint;
    if (silt_mint_init(&mint, node, NULL) != SILT_OK) test_die("node refused");
    return mint;
}

START_TEST(mint__first_is_the_clocks_millisecond)
{
    struct silt_mint mint = mint_of(7);
    uint64_t id = mint_at(&mint, NOW);
    ck_assert_uint_eq(silt_snowflake_ms(id), NOW);
    ck_assert_uint_eq(silt_snowflake_node(id), 7);
    ck_assert_uint_eq(silt_snowflake_seq(id), 0);
    ck_assert_uint_eq(silt_snowflake_seq(mint_at(&mint, NOW)), 1);
    ck_assert_uint_eq(silt_snowflake_seq(mint_at(&mint, NOW + 1)), 0);
}
END_TEST

START_TEST(mint__borrows_from_following_milliseconds)
{
    struct silt_mint mint = mint_of(1023);
    uint64_t last = 0;
    for (int i = 0; i < 3 * 4096; i++) {
        uint64_t id = mint_at(&mint, NOW);
        ck_assert_uint_gt(id, last);
        ck_assert_uint_eq(silt_snowflake_ms(id), NOW + (uint64_t)i / 4096);
        ck_assert_uint_eq(silt_snowflake_node(id), 1023);
        last = id;
    }
    /* The clock catches up only when it has passed what was borrowed. */
    ck_assert_uint_eq(silt_snowflake_ms(mint_at(&mint, NOW + 1)), NOW + 3);
    ck_assert_uint_eq(silt_snowflake_ms(mint_at(&mint, NOW + 4)), NOW + 4);
}
END_TEST

START_TEST(mint__goes_on_when_the_clock_steps_back)
{
    struct silt_mint mint = mint_of(0);
    uint64_t first = mint_at(&mint, NOW + 500), second = mint_at(&mint, NOW);
    ck_assert_uint_eq(second, first + 1);
    ck_assert_uint_eq(silt_snowflake_ms(mint_at(&mint, NOW + 501)), NOW + 501);
}
END_TEST

START_TEST(mint__ascends_under_any_clock)
{
    struct test_rng rng = test_rng(1);
    struct silt_mint mint = mint_of(512);
    uint64_t last = 0, now = NOW;
    for (int i = 0; i < 100000; i++) {
        now += test_rng_below(&rng, 3);
        if (test_rng_chance(&rng, 1)) now -= test_rng_below(&rng, 900);
        uint64_t id = mint_at(&mint, now);
        ck_assert_uint_gt(id, last);
        last = id;
    }
}
END_TEST

START_TEST(seed__makes_every_later_mint_greater)
{
    struct test_rng rng = test_rng(2);
    for (int i = 0; i < 20000; i++) {
        struct silt_mint mint = mint_of((uint32_t)test_rng_below(&rng, 1024));
        uint64_t top = ((NOW - SILT_EPOCH_MS) << 22) + test_rng_below(&rng, 3 * SILT_TAIL_MAX);
        if (test_rng_chance(&rng, 20)) mint_at(&mint, NOW + test_rng_below(&rng, 4));
        silt_mint_seed(&mint, top);
        ck_assert_uint_gt(mint_at(&mint, NOW), top);
    }
}
END_TEST

START_TEST(seed__below_what_was_minted_changes_nothing)
{
    struct silt_mint mint = mint_of(3);
    uint64_t id = mint_at(&mint, NOW);
    silt_mint_seed(&mint, id - 4096 * 1024);
    ck_assert_uint_eq(mint_at(&mint, NOW), id + 1);
}
END_TEST

START_TEST(seed__at_zero_still_ascends)
{
    struct silt_mint mint = mint_of(0);
    silt_mint_seed(&mint, 0);
    ck_assert_uint_eq(mint_at(&mint, SILT_EPOCH_MS), 1);
}
END_TEST

START_TEST(mint__refuses_what_no_id_can_name)
{
    struct silt_mint mint = mint_of(1023);
    uint64_t id = 77;
    struct silt_err err;
    ck_assert_int_eq(silt_mint_next(&mint, SILT_EPOCH_MS - 1, &id, &err), SILT_ERR_ID_RANGE);
    ck_assert_int_eq(silt_mint_next(&mint, SILT_LAST_MS + 1, &id, &err), SILT_ERR_ID_RANGE);
    ck_assert_uint_eq(id, 77);
    for (int i = 0; i < 4096; i++)
        ck_assert_uint_le(mint_at(&mint, SILT_LAST_MS), SILT_SNOWFLAKE_MAX);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(silt_mint_next(&mint, SILT_LAST_MS, &id, &err), SILT_ERR_ID_RANGE);
        ck_assert_ptr_nonnull(strstr(err.sentence, "no id is left"));
    }
}
END_TEST

START_TEST(init__refuses_a_node_above_1023)
{
    struct silt_mint mint;
    struct silt_err err;
    ck_assert_int_eq(silt_mint_init(&mint, 1023, &err), SILT_OK);
    ck_assert_int_eq(silt_mint_init(&mint, 1024, &err), SILT_ERR_USAGE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "1024"));
}
END_TEST

TEST_MAIN(mint__first_is_the_clocks_millisecond, mint__borrows_from_following_milliseconds,
          mint__goes_on_when_the_clock_steps_back, mint__ascends_under_any_clock,
          seed__makes_every_later_mint_greater, seed__below_what_was_minted_changes_nothing,
          seed__at_zero_still_ascends, mint__refuses_what_no_id_can_name,
          init__refuses_a_node_above_1023)
