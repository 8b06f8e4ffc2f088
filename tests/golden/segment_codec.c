/* The C codec for tests in other languages. Entries as text, one a line: `<ms>-<seq> <name>=<value> ...`, names and values in hex.
 *     segment-codec pack NAMESPACE|- LIFE    entries in, an empty line after each segment's; out, for each: 8 bytes of length, the segment
 *     segment-codec open                     such a file in; out, for each: `open` and its entries, or the name of the refusal; an empty line
 * It must not know the layout of a segment. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/segment.h"
#include "harness/runner.h"

static void must(enum silt_status code, const char *what)
{
    if (code != SILT_OK) test_die("segment-codec: %s: %s", what, silt_status_name(code));
}

static uint8_t nibble(char digit)
{
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* The bytes of the hex digits at *at, decoded in place; *at moves behind them. */
static struct silt_view unhex(char **at)
{
    uint8_t *bytes = (uint8_t *)*at;
    size_t len = 0;
    for (char *from = *at;; from += 2) {
        if (*from < '0' || *from == '=') {
            *at = from;
            return silt_view(bytes, len);
        }
        bytes[len++] = (uint8_t)(nibble(from[0]) << 4 | nibble(from[1]));
    }
}

/* Views into the line, which is overwritten. */
static void parse_entry(char *line, struct silt_entry *ret, struct silt_buf *fields)
{
    char *at = strchr(line, ' ');
    silt_buf_clear(fields);
    ret->field_count = 0;
    size_t id_len = at ? (size_t)(at - line) : strcspn(line, "\n");
    must(silt_wire_id_parse(silt_view(line, id_len), &ret->id, NULL), line);
    while (at && *at == ' ') {
        struct silt_field field;
        at++;
        field.name = unhex(&at);
        at++;
        field.value = unhex(&at);
        must(silt_buf_put(fields, &field, sizeof field), "a field");
        ret->field_count++;
    }
    ret->fields = (const struct silt_field *)(const void *)fields->at;
}

static void put_segment(struct silt_segment_builder *builder)
{
    struct silt_buf value = {0}, out = {0};
    struct silt_segment_info info;
    must(silt_segment_builder_finish(builder, &value, &info), "finish");
    must(silt_buf_put_u64(&out, value.len), "length");
    must(silt_buf_put(&out, value.at, value.len), "value");
    fwrite(out.at, 1, out.len, stdout);
    silt_buf_release(&value);
    silt_buf_release(&out);
}

static void pack(const char *letters, const char *life_text)
{
    struct silt_namespace ns = {{0}};
    struct silt_segment_builder *builder;
    struct silt_buf fields = {0};
    uint64_t life = strtoull(life_text, NULL, 10);
    char *line = NULL;
    size_t cap = 0;
    if (strcmp(letters, "-") != 0)
        must(silt_namespace_parse(silt_view_str(letters), &ns, NULL), letters);
    must(silt_segment_builder_new(3, &builder), "builder");
    silt_segment_builder_begin(builder, life, ns);
    while (getline(&line, &cap, stdin) > 0) {
        struct silt_entry entry;
        if (line[0] == '\n') {
            put_segment(builder);
            silt_segment_builder_begin(builder, life, ns);
            continue;
        }
        parse_entry(line, &entry, &fields);
        must(silt_segment_builder_add(builder, &entry), "add");
    }
    free(line);
    silt_buf_release(&fields);
    silt_segment_builder_free(builder);
}

static void put_hex(struct silt_view bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        printf("%02x", bytes.at[i]);
}

static void put_entries(struct silt_segment *segment)
{
    puts("open");
    for (size_t i = 0; i < silt_segment_count(segment); i++) {
        struct silt_entry entry;
        silt_segment_entry(segment, i, &entry);
        printf("%" PRIu64 "-%" PRIu64, entry.id.ms, entry.id.seq);
        for (size_t f = 0; f < entry.field_count; f++) {
            putchar(' ');
            put_hex(entry.fields[f].name);
            putchar('=');
            put_hex(entry.fields[f].value);
        }
        putchar('\n');
    }
    putchar('\n');
}

static void open_all(void)
{
    struct silt_segment *segment;
    uint8_t prefix[8];
    must(silt_segment_new(&segment), "segment");
    while (fread(prefix, sizeof prefix, 1, stdin) == 1) {
        struct silt_reader reader = silt_reader(silt_view(prefix, sizeof prefix));
        uint64_t len;
        if (!silt_read_u64(&reader, &len)) test_die("segment-codec: no length");
        /* Just as long as it is, so that the sanitizers see a read behind the end. */
        uint8_t *bytes = malloc(len ? len : 1);
        if (!bytes || fread(bytes, 1, len, stdin) != len) test_die("segment-codec: cut input");
        enum silt_status code = silt_segment_open(segment, silt_view(bytes, len), NULL);
        if (code == SILT_OK)
            put_entries(segment);
        else
            printf("%s\n\n", silt_status_name(code));
        free(bytes);
    }
    silt_segment_free(segment);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "pack") == 0)
        pack(argv[2], argv[3]);
    else if (argc == 2 && strcmp(argv[1], "open") == 0)
        open_all();
    else
        return 2;
    return fflush(stdout) == 0 ? 0 : 1;
}
