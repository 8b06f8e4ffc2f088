/* See log.h. A line is put together on the stack and handed to the system whole, so lines of threads and processes that share a
 * stderr never mix. */
#include "log.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "instant.h"

#define LINE_MAX_BYTES 8192 /* a longer line is cut; the cut is marked */
#define VALUE_MAX_BYTES 512 /* of one value, before escaping */

static bool log_json;
static enum silt_log_level log_level = SILT_LOG_INFO;

struct line {
    char at[LINE_MAX_BYTES];
    size_t len;
    bool full;
};

void silt_log_init(bool json, enum silt_log_level level)
{
    log_json = json;
    log_level = level;
}

bool silt_log_enabled(enum silt_log_level level)
{
    return level <= log_level;
}

/* All or nothing, so that no escape is ever cut in half; room for the ending stays. */
static void put(struct line *line, const char *text, size_t len)
{
    if (line->full || line->len + len > sizeof line->at - 32) {
        line->full = true;
        return;
    }
    memcpy(line->at + line->len, text, len);
    line->len += len;
}

static void put_text(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* Bytes of the UTF-8 character at `at`, 0 if there is none: overlong forms, surrogates and what lies above U+10FFFF are none. */
static size_t utf8_length(const uint8_t *at, size_t left)
{
    uint32_t point;
    size_t len;
    if (at[0] < 0x80) return 1;
    if (at[0] >= 0xC2 && at[0] < 0xE0)
        len = 2, point = at[0] & 0x1F;
    else if ((at[0] & 0xF0) == 0xE0)
        len = 3, point = at[0] & 0x0F;
    else if (at[0] >= 0xF0 && at[0] < 0xF5)
        len = 4, point = at[0] & 0x07;
    else
        return 0;
    if (len > left) return 0;
    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xC0) != 0x80) return 0;
        point = point << 6 | (at[i] & 0x3F);
    }
    if (len == 3 && (point < 0x800 || (point >= 0xD800 && point < 0xE000))) return 0;
    if (len == 4 && (point < 0x10000 || point > 0x10FFFF)) return 0;
    return len;
}

/* Inside quotes. What is not text shows as \xHH; in JSON the backslash itself is escaped, so that the line stays JSON. */
static void put_escaped(struct line *line, struct silt_view text)
{
    size_t len = text.len < VALUE_MAX_BYTES ? text.len : VALUE_MAX_BYTES;
    for (size_t i = 0; i < len;) {
        uint8_t c = text.at[i];
        size_t step = utf8_length(text.at + i, text.len - i);
        char shown[8];
        if (c == '"' || c == '\\')
            snprintf(shown, sizeof shown, "\\%c", c);
        else if (c == '\n' || c == '\t' || c == '\r')
            snprintf(shown, sizeof shown, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        else if (step == 0 || c == 0x7F || c == 0 || (c < 0x20 && !log_json))
            snprintf(shown, sizeof shown, "%s\\x%02x", log_json ? "\\" : "", c);
        else if (c < 0x20)
            snprintf(shown, sizeof shown, "\\u%04x", c);
        else {
            put(line, (const char *)text.at + i, step);
            i += step;
            continue;
        }
        put_text(line, shown);
        i++;
    }
    if (len < text.len) put_text(line, "...");
}

/* Without quotes where a reader of logfmt needs none. */
static bool is_bare(struct silt_view text)
{
    if (text.len == 0 || text.len > VALUE_MAX_BYTES) return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] <= ' ' || text.at[i] >= 0x7F || strchr("\"=\\", text.at[i])) return false;
    return true;
}

static void put_name(struct line *line, const char *name)
{
    put_text(line, log_json ? (line->len > 1 ? ",\"" : "\"") : (line->len > 0 ? " " : ""));
    put_text(line, name);
    put_text(line, log_json ? "\":" : "=");
}

static void put_string(struct line *line, const char *name, struct silt_view value)
{
    put_name(line, name);
    if (!log_json && is_bare(value)) {
        put(line, (const char *)value.at, value.len);
        return;
    }
    put_text(line, "\"");
    put_escaped(line, value);
    put_text(line, "\"");
}

static void put_field(struct line *line, const struct silt_log_field *field)
{
    char text[SILT_WIRE_ID_TEXT + 24];
    size_t before = line->len;
    switch (field->type) {
    case SILT_LOG_VIEW: put_string(line, field->name, field->view); break;
    case SILT_LOG_TEXT:
        put_string(line, field->name, silt_view_str(field->text ? field->text : ""));
        break;
    case SILT_LOG_U64:
        put_name(line, field->name);
        snprintf(text, sizeof text, "%llu", (unsigned long long)field->number);
        put_text(line, text);
        break;
    case SILT_LOG_ID:
        silt_wire_id_format(field->id, text);
        put_string(line, field->name, silt_view_str(text));
        break;
    }
    if (line->full) line->len = before; /* a field is there whole or not at all */
}

void silt_log_fields(enum silt_log_level level, const char *event,
                     const struct silt_log_field *fields, size_t count)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    struct line line = {.len = 0, .full = false};
    struct timespec now;
    char when[SILT_INSTANT_TEXT];
    if (!silt_log_enabled(level)) return;
    clock_gettime(CLOCK_REALTIME, &now);
    silt_instant_format((struct silt_instant){(int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000},
                        when);
    if (log_json) put_text(&line, "{");
    put_string(&line, "ts", silt_view_str(when));
    put_string(&line, "level", silt_view_str(levels[level]));
    put_string(&line, "event", silt_view_str(event));
    for (size_t i = 0; i < count && !line.full; i++)
        put_field(&line, &fields[i]);
    const char *end = line.full  ? (log_json ? ",\"cut\":true}\n" : " cut=true\n")
                      : log_json ? "}\n"
                                 : "\n";
    size_t len = strlen(end);
    memcpy(line.at + line.len, end, len);
    /* A log that cannot be written (a full disk, a closed pipe) must not stop the archiver. */
    if (write(STDERR_FILENO, line.at, line.len + len) < 0) return;
}
