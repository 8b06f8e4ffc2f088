/* A place as text: what goes in comes out, and any changed byte is noticed. */
#include "harness/harness.h"
#include "mergeread/cursor_priv.h"

static struct silt_position sample(void)
{
    return (struct silt_position){.id = {1767225600002, 28672},
                                  .gaps_given = 2,
                                  .life = 3,
                                  .changed_to = 4,
                                  .late = 17,
                                  .saw_marker = true,
                                  .has_base = true,
                                  .base = {1767225600001, 5},
                                  .accounted = 123456,
                                  .fingerprint = 0xdeadbeef,
                                  .key_hash = 0x0123456789abcdef,
                                  .archive_hash = 42};
}

static bool same(const struct silt_position *a, const struct silt_position *b)
{
    return a->reverse == b->reverse && a->above_all == b->above_all &&
           (a->above_all || silt_wire_id_equal(a->id, b->id)) && a->gaps_given == b->gaps_given &&
           a->life == b->life && a->changed_to == b->changed_to && a->late == b->late &&
           a->saw_marker == b->saw_marker && a->has_base == b->has_base &&
           (!a->has_base || (silt_wire_id_equal(a->base, b->base) && a->accounted == b->accounted &&
                             a->fingerprint == b->fingerprint)) &&
           a->key_hash == b->key_hash && a->archive_hash == b->archive_hash;
}

static void round_trip(struct silt_position position)
{
    char text[SILT_POSITION_TEXT];
    struct silt_position again;
    struct silt_err err;
    size_t len = silt_position_format(&position, text);
    ck_assert_uint_eq(len, strlen(text));
    ck_assert_uint_lt(len, SILT_POSITION_TEXT);
    ck_assert_int_eq(silt_position_parse(silt_view_str(text), &again, &err), SILT_OK);
    ck_assert(same(&position, &again));
}

START_TEST(position__comes_back_as_it_was)
{
    struct silt_position position = sample();
    round_trip(position);
    position.reverse = true;
    round_trip(position);
    position.above_all = true;
    round_trip(position);
    position.has_base = false;
    round_trip(position);
    round_trip((struct silt_position){0});
}
END_TEST

START_TEST(position__has_room_for_the_largest)
{
    struct silt_position position = {.reverse = true,
                                     .id = SILT_WIRE_ID_MAX,
                                     .gaps_given = UINT64_MAX,
                                     .life = UINT64_MAX,
                                     .changed_to = UINT64_MAX,
                                     .late = UINT64_MAX,
                                     .saw_marker = true,
                                     .has_base = true,
                                     .base = SILT_WIRE_ID_MAX,
                                     .accounted = UINT64_MAX,
                                     .fingerprint = UINT32_MAX,
                                     .key_hash = UINT64_MAX,
                                     .archive_hash = UINT64_MAX};
    round_trip(position);
}
END_TEST

START_TEST(position__notices_any_changed_byte)
{
    struct silt_position position = sample(), again;
    char text[SILT_POSITION_TEXT];
    struct silt_err err;
    size_t len = silt_position_format(&position, text);
    for (size_t i = 0; i < len; i++) {
        char kept = text[i];
        for (int value = 0; value < 256; value++) {
            if ((char)value == kept) continue;
            text[i] = (char)value;
            ck_assert_int_eq(silt_position_parse(silt_view(text, len), &again, &err),
                             SILT_ERR_POSITION);
        }
        text[i] = kept;
    }
    ck_assert_int_eq(silt_position_parse(silt_view(text, len), &again, &err), SILT_OK);
}
END_TEST

START_TEST(position__notices_lost_and_added_bytes)
{
    struct silt_position position = sample(), again;
    char text[SILT_POSITION_TEXT + 8] = "";
    struct silt_err err;
    size_t len = silt_position_format(&position, text);
    for (size_t cut = 0; cut < len; cut++)
        ck_assert_int_eq(silt_position_parse(silt_view(text, cut), &again, &err),
                         SILT_ERR_POSITION);
    ck_assert_int_eq(silt_position_parse(silt_view(text, len + 1), &again, &err),
                     SILT_ERR_POSITION);
    ck_assert_int_eq(silt_position_parse(silt_view(text + 1, len - 1), &again, &err),
                     SILT_ERR_POSITION);
    ck_assert_int_eq(silt_position_parse(silt_view(NULL, 0), &again, &err), SILT_ERR_POSITION);
}
END_TEST

START_TEST(position__says_when_it_is_of_a_newer_version)
{
    struct silt_position again;
    struct silt_err err = {0};
    ck_assert_int_eq(silt_position_parse(silt_view_str("s2.f.0.0"), &again, &err),
                     SILT_ERR_POSITION);
    ck_assert_ptr_nonnull(strstr(err.hint, "newer"));
    ck_assert_int_eq(silt_position_parse(silt_view_str("1-2"), &again, &err), SILT_ERR_POSITION);
    ck_assert_ptr_nonnull(strstr(err.sentence, "\"1-2\""));
}
END_TEST

TEST_MAIN(position__comes_back_as_it_was, position__has_room_for_the_largest,
          position__notices_any_changed_byte, position__notices_lost_and_added_bytes,
          position__says_when_it_is_of_a_newer_version)
