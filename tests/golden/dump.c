#include "dump.h"

#include <inttypes.h>

#include "harness/runner.h"

static void put_text(struct silt_buf *out, struct silt_view bytes)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t byte = bytes.at[i];
        uint8_t text[4] = {byte};
        size_t len = 1;
        if (byte < 0x21 || byte > 0x7E || byte == '\\' || byte == '=') {
            text[0] = '\\';
            text[1] = 'x';
            text[2] = (uint8_t)hex[byte >> 4];
            text[3] = (uint8_t)hex[byte & 15];
            len = 4;
        }
        if (silt_buf_put(out, text, len) != SILT_OK) test_die("dump: out of memory");
    }
}

#define PUT(...)                                                                           \
    do {                                                                                   \
        if (silt_buf_printf(out, __VA_ARGS__) != SILT_OK) test_die("dump: out of memory"); \
    } while (0)

void golden_dump(struct silt_segment *segment, struct silt_buf *out)
{
    const struct silt_segment_info *info = silt_segment_info(segment);
    char first[SILT_WIRE_ID_TEXT], last[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(info->first, first);
    silt_wire_id_format(info->last, last);
    PUT("segment life=%" PRIu64 " namespace=%s first=%s last=%s count=%" PRIu32 " foreign=%" PRIu32
        " bytes=%" PRIu64 "\n",
        info->life, silt_namespace_is_none(info->ns) ? "-" : info->ns.letters, first, last,
        info->count, info->foreign_count, info->values_bytes);
    for (size_t i = 0; i < silt_segment_count(segment); i++) {
        struct silt_entry entry;
        silt_segment_entry(segment, i, &entry);
        silt_wire_id_format(entry.id, first);
        PUT("%s %s", first, silt_segment_is_foreign(segment, i) ? "f" : "-");
        for (size_t f = 0; f < entry.field_count; f++) {
            PUT(" ");
            put_text(out, entry.fields[f].name);
            PUT("=");
            put_text(out, entry.fields[f].value);
        }
        PUT("\n");
    }
}
