/* Results on stdout and talk on stderr. Must not know of archives or servers. */
#include "out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "instant.h"

#define WRITE_AT_BYTES 65536

void silt_out_release(struct silt_out *out)
{
    silt_buf_release(&out->buf);
}

static void write_all(struct silt_out *out)
{
    size_t done = 0;
    while (done < out->buf.len && out->write_errno == 0) {
        ssize_t n = write(STDOUT_FILENO, out->buf.at + done, out->buf.len - done);
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EINTR)
            out->write_errno = errno;
    }
    silt_buf_clear(&out->buf);
}

enum silt_status silt_out_flush(struct silt_out *out, struct silt_err *err)
{
    if (out->status != SILT_OK) return silt_fail(err, out->status, NULL);
    write_all(out);
    if (out->write_errno) return silt_fail_errno(err, out->write_errno, "cannot write the results");
    return SILT_OK;
}

void silt_out_catch_up(struct silt_out *out)
{
    if (out->status == SILT_OK && out->write_errno == 0) write_all(out);
}

void silt_out_line_done(struct silt_out *out)
{
    if (out->buf.len >= WRITE_AT_BYTES && out->status == SILT_OK) write_all(out);
}

static void put(struct silt_out *out, const void *at, size_t len)
{
    if (out->status == SILT_OK) out->status = silt_buf_put(&out->buf, at, len);
}

void silt_out_text(struct silt_out *out, const char *text)
{
    put(out, text, strlen(text));
}

void silt_out_printf(struct silt_out *out, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len > 0) put(out, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
}

/* Length of the UTF-8 character at the front; 0: there is none. Source: RFC 3629, table of well-formed sequences. */
static size_t utf8_char(const uint8_t *at, size_t left)
{
    uint8_t a = at[0], low = 0x80, high = 0xBF;
    if (a < 0x80) return 1;
    size_t len = a >= 0xC2 && a <= 0xDF   ? 2
                 : (a & 0xF0) == 0xE0     ? 3
                 : a >= 0xF0 && a <= 0xF4 ? 4
                                          : 0;
    if (len == 0 || len > left) return 0;
    if (a == 0xE0) low = 0xA0;
    if (a == 0xED) high = 0x9F;
    if (a == 0xF0) low = 0x90;
    if (a == 0xF4) high = 0x8F;
    if (at[1] < low || at[1] > high) return 0;
    for (size_t i = 2; i < len; i++)
        if ((at[i] & 0xC0) != 0x80) return 0;
    return len;
}

bool silt_is_utf8(struct silt_view bytes)
{
    for (size_t i = 0, len; i < bytes.len; i += len)
        if ((len = utf8_char(bytes.at + i, bytes.len - i)) == 0) return false;
    return true;
}

/* Control characters, C1 (which terminals obey) and broken bytes are shown, not sent. */
static bool is_shown_as_is(const uint8_t *at, size_t len)
{
    if (len == 1) return at[0] >= 0x20 && at[0] != 0x7F;
    return len > 1 && !(len == 2 && at[0] == 0xC2 && at[1] < 0xA0);
}

static bool reads_as_word(struct silt_view bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (bytes.at[i] <= ' ' || bytes.at[i] == '"' || bytes.at[i] == '=' || bytes.at[i] == '\\')
            return false;
    return bytes.len > 0;
}

void silt_out_bytes(struct silt_out *out, struct silt_view bytes, bool word)
{
    bool quoted = word && !reads_as_word(bytes);
    if (quoted) put(out, "\"", 1);
    for (size_t i = 0, len; i < bytes.len; i += len) {
        len = utf8_char(bytes.at + i, bytes.len - i);
        if (quoted && (bytes.at[i] == '"' || bytes.at[i] == '\\')) put(out, "\\", 1);
        if (is_shown_as_is(bytes.at + i, len)) {
            put(out, bytes.at + i, len);
        } else {
            len = 1;
            silt_out_printf(out, "\\x%02x", bytes.at[i]);
        }
    }
    if (quoted) put(out, "\"", 1);
}

/* ---- JSON ---- */

static void json_value(struct silt_out *out)
{
    if (out->after_value) put(out, ",", 1);
    out->after_value = true;
}

void silt_json_open(struct silt_out *out, char bracket)
{
    json_value(out);
    put(out, &bracket, 1);
    out->after_value = false;
}

void silt_json_close(struct silt_out *out, char bracket)
{
    put(out, &bracket, 1);
    out->after_value = true;
}

static void json_quoted(struct silt_out *out, struct silt_view text)
{
    put(out, "\"", 1);
    for (size_t i = 0, from = 0; i <= text.len; i++) {
        if (i < text.len && text.at[i] >= 0x20 && text.at[i] != '"' && text.at[i] != '\\') continue;
        if (i > from) put(out, text.at + from, i - from);
        from = i + 1;
        if (i == text.len) break;
        if (text.at[i] < 0x20)
            silt_out_printf(out, "\\u%04x", text.at[i]);
        else
            silt_out_printf(out, "\\%c", text.at[i]);
    }
    put(out, "\"", 1);
}

void silt_json_name(struct silt_out *out, const char *name)
{
    json_value(out);
    json_quoted(out, silt_view_str(name));
    put(out, ":", 1);
    out->after_value = false;
}

static void put_base64(struct silt_out *out, struct silt_view bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t three = (uint32_t)bytes.at[i] << 16 |
                         (left > 1 ? (uint32_t)bytes.at[i + 1] << 8 : 0) |
                         (left > 2 ? bytes.at[i + 2] : 0u);
        char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
                        left > 1 ? digits[three >> 6 & 63] : '=',
                        left > 2 ? digits[three & 63] : '='};
        put(out, four, 4);
    }
}

void silt_json_bytes(struct silt_out *out, struct silt_view bytes)
{
    json_value(out);
    if (silt_is_utf8(bytes)) {
        json_quoted(out, bytes);
        return;
    }
    silt_out_text(out, "{\"b64\":\"");
    put_base64(out, bytes);
    silt_out_text(out, "\"}");
}

void silt_json_str(struct silt_out *out, const char *text)
{
    if (text == NULL)
        silt_json_null(out);
    else
        silt_json_bytes(out, silt_view_str(text));
}

void silt_json_u64(struct silt_out *out, uint64_t value)
{
    json_value(out);
    silt_out_printf(out, "%" PRIu64, value);
}

void silt_json_bool(struct silt_out *out, bool value)
{
    json_value(out);
    silt_out_text(out, value ? "true" : "false");
}

void silt_json_null(struct silt_out *out)
{
    json_value(out);
    silt_out_text(out, "null");
}

void silt_json_wire_id(struct silt_out *out, struct silt_wire_id id)
{
    char text[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(id, text);
    silt_json_str(out, text);
}

void silt_json_end_line(struct silt_out *out)
{
    put(out, "\n", 1);
    out->after_value = false;
    silt_out_line_done(out);
}

/* ---- ids and entries ---- */

static bool branded_text(struct silt_wire_id id, struct silt_namespace ns, char ret[15])
{
    struct silt_branded_id branded = {.ns = ns};
    ret[SILT_BRANDED_ID_LEN] = '\0';
    return !silt_namespace_is_none(ns) && silt_snowflake_from_wire(id, &branded.snowflake) &&
           silt_branded_id_format(branded, ret) == SILT_OK;
}

void silt_id_text(struct silt_wire_id id, struct silt_namespace ns, char ret[SILT_WIRE_ID_TEXT])
{
    if (!branded_text(id, ns, ret)) silt_wire_id_format(id, ret);
}

void silt_id_instant(struct silt_wire_id id, char ret[32])
{
    ret[0] = '\0';
    if (id.ms <= 253402300799999ULL)
        silt_instant_format((struct silt_instant){(int64_t)id.ms}, ret);
}

void silt_json_id(struct silt_out *out, struct silt_wire_id id, struct silt_namespace ns)
{
    char branded[SILT_BRANDED_ID_LEN + 1], instant[SILT_INSTANT_TEXT];
    bool has_branded = branded_text(id, ns, branded);
    silt_id_instant(id, instant);
    silt_json_open(out, '{');
    silt_json_name(out, "id");
    silt_json_wire_id(out, id);
    silt_json_name(out, "branded");
    silt_json_str(out, has_branded ? branded : NULL);
    silt_json_name(out, "instant");
    silt_json_str(out, *instant ? instant : NULL);
    silt_json_close(out, '}');
}

void silt_json_entry(struct silt_out *out, const struct silt_entry *entry, struct silt_namespace ns)
{
    char branded[SILT_BRANDED_ID_LEN + 1];
    size_t id_field;
    bool ours = silt_entry_is_ours(entry, ns, &id_field) && branded_text(entry->id, ns, branded);
    silt_json_open(out, '{');
    silt_json_name(out, "id");
    silt_json_wire_id(out, entry->id);
    silt_json_name(out, "branded");
    silt_json_str(out, ours ? branded : NULL);
    silt_json_name(out, "fields");
    silt_json_open(out, '[');
    for (size_t i = 0; i < entry->field_count; i++) {
        silt_json_open(out, '[');
        silt_json_bytes(out, entry->fields[i].name);
        silt_json_bytes(out, entry->fields[i].value);
        silt_json_close(out, ']');
    }
    silt_json_close(out, ']');
}

void silt_out_entry(struct silt_out *out, const struct silt_entry *entry, struct silt_namespace ns)
{
    char id[SILT_WIRE_ID_TEXT], instant[SILT_INSTANT_TEXT];
    size_t id_field = SIZE_MAX;
    bool ours = silt_entry_is_ours(entry, ns, &id_field);
    silt_id_text(entry->id, ours ? ns : (struct silt_namespace){0}, id);
    silt_id_instant(entry->id, instant);
    silt_out_printf(out, "%s  %s ", id, instant);
    for (size_t i = 0; i < entry->field_count; i++) {
        if (ours && i == id_field) continue; /* it stands in front already */
        put(out, " ", 1);
        silt_out_bytes(out, entry->fields[i].name, true);
        put(out, "=", 1);
        silt_out_bytes(out, entry->fields[i].value, true);
    }
    put(out, "\n", 1);
    silt_out_line_done(out);
}

const char *silt_count_text(uint64_t count, char ret[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t used = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) ret[used++] = ',';
        ret[used++] = digits[i];
    }
    ret[used] = '\0';
    return ret;
}

const char *silt_bytes_text(uint64_t bytes, char ret[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(ret, 32, unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return ret;
}

/* ---- tables ---- */

void silt_table_cell(struct silt_out *out, struct silt_table *table, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (out->status == SILT_OK) out->status = silt_buf_put(&table->cells, text, strlen(text) + 1);
}

/* Columns on a terminal: characters, not bytes. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((uint8_t)*text & 0xC0) != 0x80;
    return width;
}

void silt_table_print(struct silt_out *out, struct silt_table *table)
{
    size_t widths[16] = {0}, column = 0;
    const char *cell = (const char *)table->cells.at;
    const char *end = cell + table->cells.len;
    for (const char *at = cell; at != end && out->status == SILT_OK; at += strlen(at) + 1) {
        if (width_of(at) > widths[column]) widths[column] = width_of(at);
        column = (column + 1) % table->column_count;
    }
    column = 0;
    for (const char *at = cell; at != end && out->status == SILT_OK; at += strlen(at) + 1) {
        int fill = (int)(widths[column] - width_of(at));
        bool last = column + 1 == table->column_count;
        if (table->right[column] == 'r')
            silt_out_printf(out, "%*s%s%s", fill, "", at, last ? "\n" : "  ");
        else
            silt_out_printf(out, "%s%*s%s", at, last ? 0 : fill, "", last ? "\n" : "  ");
        column = (column + 1) % table->column_count;
    }
    silt_buf_release(&table->cells);
}

/* ---- talk ---- */

void silt_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("silt: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

void silt_say_err(const struct silt_err *err)
{
    if (err->stream[0] && strstr(err->sentence, err->stream) == NULL)
        silt_say("%s: %s", err->stream, err->sentence);
    else
        silt_say("%s", err->sentence);
    if (err->hint[0]) fprintf(stderr, "hint: %s\n", err->hint);
}

long long silt_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

uint64_t silt_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void silt_progress(struct silt_progress *progress, const char *what, uint64_t done, uint64_t total)
{
    long long now = silt_clock_ms();
    if (progress->begun_ms == 0) progress->begun_ms = now;
    if (now - progress->begun_ms < 1000 || now - progress->shown_ms < 100 || !isatty(STDERR_FILENO))
        return;
    progress->shown_ms = now;
    progress->what = what;
    char count[32], bar[33] = {0};
    silt_count_text(done, count);
    if (total == 0) {
        fprintf(stderr, "\r%s %s \033[K", what, count);
    } else {
        double part = done < total ? (double)done / (double)total : 1;
        memset(bar, '.', 32);
        memset(bar, '#', (size_t)(part * 32));
        fprintf(stderr, "\r%s [%s] %3.0f%% %s \033[K", what, bar, part * 100, count);
    }
    fflush(stderr);
}

void silt_progress_end(struct silt_progress *progress)
{
    if (progress->shown_ms != 0) fputs("\r\033[K", stderr);
    progress->shown_ms = 0;
}
