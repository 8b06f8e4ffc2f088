/* zstd frames: whole blocks and streams, good and damaged. */
#include <string.h>

#include "format/pack.h"
#include "harness/harness.h"
#include "harness/heap.h"

static void noise_with_repeats(uint8_t *at, size_t len)
{
    struct test_rng rng = test_rng(1);
    for (size_t i = 0; i < len; i++)
        at[i] = i > 50 && test_rng_chance(&rng, 80) ? at[i - 41] : (uint8_t)test_rng_next(&rng);
}

static void pack_once(struct silt_view raw, struct silt_buf *out)
{
    struct silt_packer *packer = NULL;
    if (silt_packer_new(3, &packer) != SILT_OK || silt_pack(packer, raw, out) != SILT_OK)
        test_die("packing failed");
    silt_packer_free(packer);
}

START_TEST(pack__round_trips_any_length)
{
    static uint8_t raw[300000];
    static const size_t lens[] = {0, 1, 2, 100, 65536, sizeof raw};
    struct silt_packer *packer;
    struct silt_unpacker *unpacker;
    struct silt_buf frame = {0}, back = {0};
    noise_with_repeats(raw, sizeof raw);
    ck_assert_int_eq(silt_packer_new(3, &packer), SILT_OK);
    ck_assert_int_eq(silt_unpacker_new(&unpacker), SILT_OK);
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        silt_buf_clear(&frame);
        ck_assert_int_eq(silt_pack(packer, silt_view(lens[i] ? raw : NULL, lens[i]), &frame),
                         SILT_OK);
        ck_assert_int_eq(silt_unpack(unpacker, silt_buf_view(&frame), lens[i], &back), SILT_OK);
        ck_assert(silt_view_equal(silt_buf_view(&back), silt_view(raw, lens[i])));
    }
    ck_assert_uint_lt(frame.len, sizeof raw / 2);
    silt_buf_release(&frame);
    silt_buf_release(&back);
    silt_packer_free(packer);
    silt_unpacker_free(unpacker);
    silt_packer_free(NULL);
    silt_unpacker_free(NULL);
}
END_TEST

START_TEST(pack__appends)
{
    struct silt_buf out = {0}, alone = {0};
    ck_assert_int_eq(silt_buf_put(&out, "head", 4), SILT_OK);
    pack_once(silt_view("body", 4), &out);
    pack_once(silt_view("body", 4), &alone);
    ck_assert_mem_eq(out.at, "head", 4);
    ck_assert_uint_eq(out.len, 4 + alone.len);
    ck_assert_mem_eq(out.at + 4, alone.at, alone.len);
    silt_buf_release(&out);
    silt_buf_release(&alone);
}
END_TEST

START_TEST(unpack__takes_one_whole_frame_of_the_named_length_only)
{
    static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0};
    uint8_t raw[1000];
    struct silt_buf frame = {0}, back = {0};
    struct silt_unpacker *unpacker;
    noise_with_repeats(raw, sizeof raw);
    pack_once(silt_view(raw, sizeof raw), &frame);
    ck_assert_int_eq(silt_unpacker_new(&unpacker), SILT_OK);
    struct silt_view whole = silt_buf_view(&frame);
    ck_assert_int_eq(silt_unpack(unpacker, whole, 999, &back), SILT_ERR_CORRUPT);
    ck_assert_int_eq(silt_unpack(unpacker, whole, 1001, &back), SILT_ERR_CORRUPT);
    ck_assert_int_eq(silt_unpack(unpacker, silt_view(skippable, sizeof skippable), 0, &back),
                     SILT_ERR_CORRUPT);
    for (size_t len = 0; len < whole.len; len++)
        ck_assert_int_eq(silt_unpack(unpacker, silt_view(whole.at, len), 1000, &back),
                         SILT_ERR_CORRUPT);
    ck_assert_int_eq(silt_buf_put_u8(&frame, 0), SILT_OK);
    ck_assert_int_eq(silt_unpack(unpacker, silt_buf_view(&frame), 1000, &back), SILT_ERR_CORRUPT);
    ck_assert_int_eq(silt_unpack(unpacker, silt_view(frame.at, frame.len - 1), 1000, &back),
                     SILT_OK);
    silt_buf_release(&frame);
    silt_buf_release(&back);
    silt_unpacker_free(unpacker);
}
END_TEST

/* What a flip gives is for the caller's checksum to tell; here it must only stay inside its memory. */
START_TEST(unpack__survives_every_single_bit_flip)
{
    uint8_t raw[300];
    struct silt_buf frame = {0}, back = {0};
    struct silt_unpacker *unpacker;
    size_t refused = 0;
    noise_with_repeats(raw, sizeof raw);
    pack_once(silt_view(raw, sizeof raw), &frame);
    ck_assert_int_eq(silt_unpacker_new(&unpacker), SILT_OK);
    for (size_t bit = 0; bit < frame.len * 8; bit++) {
        frame.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        enum silt_status status = silt_unpack(unpacker, silt_buf_view(&frame), sizeof raw, &back);
        if (status == SILT_OK)
            ck_assert_uint_eq(back.len, sizeof raw);
        else
            ck_assert_int_eq(status, SILT_ERR_CORRUPT);
        refused += status != SILT_OK;
        frame.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ck_assert_uint_gt(refused, 0);
    silt_buf_release(&frame);
    silt_buf_release(&back);
    silt_unpacker_free(unpacker);
}
END_TEST

START_TEST(stream__takes_many_frames_in_any_pieces)
{
    static uint8_t raw[400000];
    struct silt_buf frames = {0};
    noise_with_repeats(raw, sizeof raw);
    pack_once(silt_view(raw, 100), &frames);
    size_t first_len = frames.len;
    pack_once(silt_view(raw + 100, sizeof raw - 100), &frames);
    static const size_t pieces[] = {1, 7, 1000, sizeof raw};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct silt_unpacker *unpacker;
        struct silt_buf out = {0};
        bool need_more = true;
        ck_assert_int_eq(silt_unpacker_new(&unpacker), SILT_OK);
        for (size_t at = 0; at < frames.len; at += pieces[i]) {
            size_t len = frames.len - at < pieces[i] ? frames.len - at : pieces[i];
            ck_assert_int_eq(
                silt_unpack_stream(unpacker, silt_view(frames.at + at, len), &out, &need_more),
                SILT_OK);
            size_t end = at + len;
            ck_assert_int_eq(need_more, end != first_len && end != frames.len);
        }
        ck_assert(!need_more);
        ck_assert(silt_view_equal(silt_buf_view(&out), silt_view(raw, sizeof raw)));
        silt_buf_release(&out);
        silt_unpacker_free(unpacker);
    }
    silt_buf_release(&frames);
}
END_TEST

START_TEST(stream__tells_damage_and_a_cut_end)
{
    struct silt_unpacker *unpacker;
    struct silt_buf frame = {0}, out = {0};
    bool need_more = false;
    pack_once(silt_view("hello hello hello hello", 23), &frame);
    ck_assert_int_eq(silt_unpacker_new(&unpacker), SILT_OK);
    ck_assert_int_eq(
        silt_unpack_stream(unpacker, silt_view(frame.at, frame.len - 1), &out, &need_more),
        SILT_OK);
    ck_assert(need_more);
    silt_unpacker_free(unpacker);
    ck_assert_int_eq(silt_unpacker_new(&unpacker), SILT_OK);
    ck_assert_int_eq(silt_unpack_stream(unpacker, silt_view_str("not a frame"), &out, &need_more),
                     SILT_ERR_CORRUPT);
    silt_unpacker_free(unpacker);
    silt_buf_release(&frame);
    silt_buf_release(&out);
}
END_TEST

START_TEST(pack__refused_memory_is_told)
{
    struct test_heap heap;
    for (size_t n = 1;; n++) {
        struct silt_packer *packer = NULL;
        struct silt_unpacker *unpacker = NULL;
        struct silt_buf frame = {0}, back = {0};
        bool need_more;
        test_heap_start(&heap, n);
        enum silt_status status = silt_packer_new(3, &packer);
        if (status == SILT_OK) status = silt_unpacker_new(&unpacker);
        if (status == SILT_OK) status = silt_pack(packer, silt_view("abc", 3), &frame);
        if (status == SILT_OK) status = silt_unpack(unpacker, silt_buf_view(&frame), 3, &back);
        if (status == SILT_OK)
            status = silt_unpack_stream(unpacker, silt_buf_view(&frame), &back, &need_more);
        silt_packer_free(packer);
        silt_unpacker_free(unpacker);
        silt_buf_release(&frame);
        silt_buf_release(&back);
        test_heap_stop();
        ck_assert_uint_eq(heap.live_count, 0);
        if (heap.failed_count == 0) break;
        ck_assert_int_eq(status, SILT_ERR_MEMORY);
    }
}
END_TEST

TEST_MAIN(pack__round_trips_any_length, pack__appends,
          unpack__takes_one_whole_frame_of_the_named_length_only,
          unpack__survives_every_single_bit_flip, stream__takes_many_frames_in_any_pieces,
          stream__tells_damage_and_a_cut_end, pack__refused_memory_is_told)
