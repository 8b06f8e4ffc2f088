/* Views, buffers, bounded integers, display. */
#include <string.h>

#include "format/bytes.h"
#include "harness/harness.h"
#include "harness/heap.h"

#define TEXT(literal) silt_view(literal, sizeof(literal) - 1)

START_TEST(view__compares_as_memcmp_the_shorter_first)
{
    ck_assert_int_eq(silt_view_compare(TEXT("a"), TEXT("b")), -1);
    ck_assert_int_eq(silt_view_compare(TEXT("b"), TEXT("a")), 1);
    ck_assert_int_eq(silt_view_compare(TEXT("a"), TEXT("a\0")), -1);
    ck_assert_int_eq(silt_view_compare(TEXT("ab"), TEXT("a")), 1);
    ck_assert_int_eq(silt_view_compare(TEXT("\x7f"), TEXT("\x80")), -1);
    ck_assert_int_eq(silt_view_compare(silt_view(NULL, 0), TEXT("")), 0);
    ck_assert(silt_view_equal(silt_view(NULL, 0), TEXT("")));
    ck_assert(!silt_view_equal(TEXT("a\0b"), TEXT("a\0c")));
}
END_TEST

static enum silt_status put_all(struct silt_buf *buf)
{
    enum silt_status status;
    if ((status = silt_buf_put_u8(buf, 0x01)) || (status = silt_buf_put_u16(buf, 0x0203)) ||
        (status = silt_buf_put_u32(buf, 0x04050607)) ||
        (status = silt_buf_put_u64(buf, 0x08090a0b0c0d0e0fULL)) ||
        (status = silt_buf_put_varint(buf, 300)) || (status = silt_buf_put(buf, NULL, 0)) ||
        (status = silt_buf_put(buf, "xyz", 3)) ||
        (status = silt_buf_printf(buf, "%0200d|%s", 1, "end")))
        return status;
    return SILT_OK;
}

START_TEST(buf__writes_little_endian)
{
    static const uint8_t want[] = {1,    3,    2,    7,    6,    5,    4,    0x0f, 0x0e, 0x0d,
                                   0x0c, 0x0b, 0x0a, 0x09, 0x08, 0xac, 0x02, 'x',  'y',  'z'};
    struct silt_buf buf = {0};
    ck_assert_int_eq(put_all(&buf), SILT_OK);
    ck_assert_mem_eq(buf.at, want, sizeof want);
    ck_assert_uint_eq(buf.len, sizeof want + 204);
    ck_assert_mem_eq(buf.at + buf.len - 5, "1|end", 5);
    silt_buf_clear(&buf);
    ck_assert_uint_eq(buf.len, 0);
    ck_assert_uint_gt(buf.cap, 0);
    silt_buf_release(&buf);
    ck_assert_ptr_null(buf.at);
    silt_buf_release(NULL);
}
END_TEST

START_TEST(buf__refused_memory_is_told_and_changes_nothing)
{
    struct test_heap heap;
    for (size_t n = 1;; n++) {
        struct silt_buf buf = {0};
        test_heap_start(&heap, n);
        enum silt_status status = put_all(&buf);
        size_t len = buf.len;
        if (status != SILT_OK) {
            ck_assert_int_eq(silt_buf_reserve(&buf, SIZE_MAX), SILT_ERR_MEMORY);
            ck_assert_uint_eq(buf.len, len);
        }
        silt_buf_release(&buf);
        test_heap_stop();
        ck_assert_uint_eq(heap.live_count, 0);
        if (heap.failed_count == 0) break;
        ck_assert_int_eq(status, SILT_ERR_MEMORY);
    }
}
END_TEST

START_TEST(reader__reads_what_was_written)
{
    struct silt_buf buf = {0};
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64, varint;
    struct silt_view view;
    ck_assert_int_eq(put_all(&buf), SILT_OK);
    struct silt_reader reader = silt_reader(silt_buf_view(&buf));
    ck_assert(silt_read_u8(&reader, &u8) && silt_read_u16(&reader, &u16) &&
              silt_read_u32(&reader, &u32) && silt_read_u64(&reader, &u64) &&
              silt_read_varint(&reader, &varint) && silt_read_view(&reader, 3, &view));
    ck_assert_uint_eq(u8, 1);
    ck_assert_uint_eq(u16, 0x0203);
    ck_assert_uint_eq(u32, 0x04050607);
    ck_assert_uint_eq(u64, 0x08090a0b0c0d0e0fULL);
    ck_assert_uint_eq(varint, 300);
    ck_assert(silt_view_equal(view, TEXT("xyz")));
    ck_assert_uint_eq(silt_reader_left(&reader), 204);
    silt_buf_release(&buf);
}
END_TEST

static bool read_kind(struct silt_reader *reader, int kind)
{
    uint8_t u8 = 9;
    uint16_t u16 = 9;
    uint32_t u32 = 9;
    uint64_t u64 = 9;
    struct silt_view view = {0};
    switch (kind) {
    case 0: return silt_read_u8(reader, &u8) || u8 != 9;
    case 1: return silt_read_u16(reader, &u16) || u16 != 9;
    case 2: return silt_read_u32(reader, &u32) || u32 != 9;
    case 3: return silt_read_u64(reader, &u64) || u64 != 9;
    case 4: return silt_read_varint(reader, &u64) || u64 != 9;
    default: return silt_read_view(reader, 5, &view) || view.len != 0;
    }
}

/* The bytes lie at the end of a heap block, so that the sanitizer sees one byte too many. */
START_TEST(reader__never_goes_past_the_end)
{
    static const size_t needs[] = {1, 2, 4, 8, 4, 5};
    for (int kind = 0; kind < 6; kind++) {
        for (size_t len = 0; len <= needs[kind]; len++) {
            uint8_t *block = malloc(len + 1);
            memset(block, 0x81, len + 1);
            if (len == 4) block[4] = 0x01;
            struct silt_reader reader = silt_reader(silt_view(block + 1, len));
            bool good = read_kind(&reader, kind);
            ck_assert_int_eq(good, len == needs[kind]);
            ck_assert_int_eq(reader.failed, !good);
            if (!good) ck_assert(!read_kind(&reader, 0)); /* failed for good */
            free(block);
        }
    }
    struct silt_reader empty = silt_reader(silt_view(NULL, 0));
    struct silt_view view;
    ck_assert(silt_read_view(&empty, 0, &view));
    ck_assert_uint_eq(view.len, 0);
    ck_assert(!silt_read_view(&empty, SIZE_MAX, &view));
}
END_TEST

START_TEST(varint__round_trips_at_every_edge)
{
    for (unsigned bit = 0; bit <= 64; bit++) {
        for (int delta = -1; delta <= 1; delta++) {
            uint64_t value = (bit == 64 ? 0 : (uint64_t)1 << bit) + (uint64_t)delta, back;
            struct silt_buf buf = {0};
            ck_assert_int_eq(silt_buf_put_varint(&buf, value), SILT_OK);
            size_t bits = value ? 64 - (size_t)__builtin_clzll(value) : 1;
            ck_assert_uint_eq(buf.len, (bits + 6) / 7);
            struct silt_reader reader = silt_reader(silt_buf_view(&buf));
            ck_assert(silt_read_varint(&reader, &back));
            ck_assert_uint_eq(back, value);
            ck_assert_uint_eq(silt_reader_left(&reader), 0);
            silt_buf_release(&buf);
        }
    }
}
END_TEST

START_TEST(varint__refuses_other_forms)
{
    static const struct silt_view refused[] = {
        {(const uint8_t *)"\x80\x00", 2}, /* longer than need be */
        {(const uint8_t *)"\xff\x80\x00", 3},
        {(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10}, /* 2^64 and more */
        {(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", 11},
        {(const uint8_t *)"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11}};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct silt_reader reader = silt_reader(refused[i]);
        uint64_t value = 7;
        ck_assert(!silt_read_varint(&reader, &value));
        ck_assert(reader.failed);
        ck_assert_uint_eq(value, 7);
    }
}
END_TEST

START_TEST(fixed__places_round_trip)
{
    uint8_t at[8];
    silt_put_be64(at, 0x0102030405060708ULL);
    ck_assert_mem_eq(at, "\1\2\3\4\5\6\7\10", 8);
    ck_assert_uint_eq(silt_get_be64(at), 0x0102030405060708ULL);
    ck_assert_uint_eq(silt_get_le64(at), 0x0807060504030201ULL);
    silt_put_le64(at, 0x0102030405060708ULL);
    ck_assert_mem_eq(at, "\10\7\6\5\4\3\2\1", 8);
    silt_put_le32(at, 0xfffefdfc);
    ck_assert_mem_eq(at, "\xfc\xfd\xfe\xff", 4);
    ck_assert_uint_eq(silt_get_le32(at), 0xfffefdfc);
}
END_TEST

START_TEST(checksum__is_xxh64)
{
    /* The published values of XXH64 for the empty input and for one text. */
    ck_assert_uint_eq(silt_checksum(silt_view(NULL, 0), 0), 0xef46db3751d8e999ULL);
    ck_assert_uint_eq(silt_checksum(TEXT("abc"), 0), 0x44bc2cf5ad770999ULL);
    ck_assert_uint_ne(silt_checksum(TEXT("abc"), 1), silt_checksum(TEXT("abc"), 0));
}
END_TEST

START_TEST(parse_u64__takes_decimal_digits_only)
{
    static const char *const refused[] = {"",
                                          "+1",
                                          "-1",
                                          " 1",
                                          "1 ",
                                          "0x1",
                                          "1a",
                                          "1.0",
                                          "18446744073709551616",
                                          "99999999999999999999",
                                          "000000000000000000001"};
    uint64_t value;
    ck_assert(silt_parse_u64(TEXT("0"), &value) && value == 0);
    ck_assert(silt_parse_u64(TEXT("0007"), &value) && value == 7);
    ck_assert(silt_parse_u64(TEXT("18446744073709551615"), &value) && value == UINT64_MAX);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        ck_assert_msg(!silt_parse_u64(silt_view_str(refused[i]), &value), "%s", refused[i]);
    ck_assert(!silt_parse_u64(silt_view("1\0", 2), &value));
}
END_TEST

START_TEST(escape__shows_any_bytes)
{
    char shown[32];
    silt_escape(TEXT("a b~\n\0\x7f\xc3\xa9"), shown, sizeof shown);
    ck_assert_str_eq(shown, "a b~\\x0a\\x00\\x7f\\xc3\\xa9");
    silt_escape(silt_view(NULL, 0), shown, sizeof shown);
    ck_assert_str_eq(shown, "");
}
END_TEST

START_TEST(escape__shortens_to_fit)
{
    static const char *const plain[] = {"", ".", "..", "...", "a...", "ab...", "abcdef"};
    char shown[8];
    for (size_t size = 1; size <= 7; size++) {
        memset(shown, '#', sizeof shown);
        silt_escape(TEXT("abcdef"), shown, size);
        ck_assert_str_eq(shown, plain[size - 1]);
        ck_assert_int_eq(shown[size], '#');
    }
    silt_escape(TEXT("\n\n"), shown, sizeof shown);
    ck_assert_str_eq(shown, "\\x0a...");
    silt_escape(TEXT("a"), shown, 0); /* no room for anything: nothing is written */
}
END_TEST

TEST_MAIN(view__compares_as_memcmp_the_shorter_first, buf__writes_little_endian,
          buf__refused_memory_is_told_and_changes_nothing, reader__reads_what_was_written,
          reader__never_goes_past_the_end, varint__round_trips_at_every_edge,
          varint__refuses_other_forms, fixed__places_round_trip, checksum__is_xxh64,
          parse_u64__takes_decimal_digits_only, escape__shows_any_bytes, escape__shortens_to_fit)
