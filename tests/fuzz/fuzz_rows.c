/* The store's rows: the first byte chooses which; the checksum is made right. What decodes must encode to the same bytes. */
#include "fuzz.h"

#include "format/rows.h"

#define FUZZ_ROW_SEED 0x73696c7420726f77ULL /* of format/rows.c */

static const struct silt_view key = {(const uint8_t *)"key", 3};
static struct silt_buf row, again;

static void same(enum silt_status status)
{
    if (status != SILT_OK || !silt_view_equal(silt_buf_view(&row), silt_buf_view(&again))) abort();
}

static void stream_row(void)
{
    static struct silt_buf groups;
    struct silt_stream_row stream;
    if (silt_stream_row_decode(silt_buf_view(&row), key, &groups, &stream, NULL) == SILT_OK)
        same(silt_stream_row_encode(&stream, key, &again));
}

static void gap_row(void)
{
    struct silt_gap_row gap;
    if (silt_gap_row_decode(silt_buf_view(&row), key, &gap, NULL) == SILT_OK)
        same(silt_gap_row_encode(&gap, key, &again));
}

static void fork_row(void)
{
    struct silt_fork_row fork;
    if (silt_fork_row_decode(silt_buf_view(&row), key, &fork, NULL) == SILT_OK)
        same(silt_fork_row_encode(&fork, key, &again));
}

static void late_row(void)
{
    struct silt_late_row late;
    if (silt_late_row_decode(silt_buf_view(&row), key, &late, NULL) == SILT_OK)
        same(silt_late_row_encode(&late, key, &again));
}

static void meta_row(void)
{
    struct silt_meta_row meta;
    if (silt_meta_row_decode(silt_buf_view(&row), key, &meta, NULL) == SILT_OK)
        same(silt_meta_row_encode(&meta, key, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const rows[])(void) = {stream_row, gap_row, fork_row, late_row, meta_row};
    if (size == 0) return 0;
    silt_buf_clear(&row);
    silt_buf_clear(&again);
    struct silt_view body = {data + 1, size - 1};
    if (silt_buf_put(&row, body.at, body.len) != SILT_OK ||
        silt_buf_put_u64(&row, silt_checksum(body, silt_checksum(key, FUZZ_ROW_SEED))) != SILT_OK)
        abort();
    rows[data[0] % 5]();
    return 0;
}
