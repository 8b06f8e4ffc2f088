/* Cursor positions behind a right checksum: the input is the text before it. What is accepted is written again to a text that reads the same. */
#include "fuzz.h"

#include <inttypes.h>
#include <stdio.h>

#include "cursor_priv.h"

#define CHECK_SEED 0x73696c74706f7331ULL /* of mergeread/position.c */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct silt_buf text;
    struct silt_position position, back;
    char shown[SILT_POSITION_TEXT], again[SILT_POSITION_TEXT];
    (void)!silt_position_parse(silt_view(data, size), &position, NULL);
    silt_buf_clear(&text);
    if (silt_buf_put(&text, data, size) != SILT_OK ||
        silt_buf_printf(&text, "%016" PRIx64, silt_checksum(silt_view(data, size), CHECK_SEED)) !=
            SILT_OK)
        abort();
    if (silt_position_parse(silt_buf_view(&text), &position, NULL) != SILT_OK) return 0;
    size_t len = silt_position_format(&position, shown);
    if (len >= sizeof shown) abort();
    if (silt_position_parse(silt_view(shown, len), &back, NULL) != SILT_OK) abort();
    if (silt_position_format(&back, again) != len || memcmp(shown, again, len) != 0) abort();
    return 0;
}
