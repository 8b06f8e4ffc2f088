/* silt-feed [--count N] [--seed S] [--odd]: the sample feed, or the adversarial shard, on stdout, one JSON object a line:
 * {"id": "<ms>-<seq>", "fields": [[name, value], ...]}; a string that is not valid UTF-8 is {"b64": "..."}. */
#include <getopt.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "die.h"
#include "feed.h"

/* Built without Check and the rest of the harness, so that quickstart needs neither. */
void test_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static json_t *base64(struct silt_view bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc(bytes.len / 3 * 4 + 5), *to = text;
    if (!text) return NULL;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t word = (uint32_t)bytes.at[i] << 16;
        if (left > 1) word |= (uint32_t)bytes.at[i + 1] << 8;
        if (left > 2) word |= bytes.at[i + 2];
        *to++ = digits[word >> 18];
        *to++ = digits[word >> 12 & 63];
        *to++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[word & 63] : '=';
    }
    json_t *json = json_pack("{s:s#}", "b64", text, (int)(to - text));
    free(text);
    return json;
}

static json_t *string(struct silt_view bytes)
{
    json_t *json = json_stringn((const char *)bytes.at, bytes.len); /* NULL: not UTF-8 */
    return json ? json : base64(bytes);
}

static int put_entry(const struct silt_entry *entry)
{
    char id[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(entry->id, id);
    json_t *fields = json_array();
    for (size_t f = 0; f < entry->field_count; f++)
        json_array_append_new(fields, json_pack("[o,o]", string(entry->fields[f].name),
                                                string(entry->fields[f].value)));
    json_t *line = json_pack("{s:s,s:o}", "id", id, "fields", fields);
    if (!line || json_dumpf(line, stdout, JSON_COMPACT) != 0 || putchar('\n') == EOF) return -1;
    json_decref(line);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"count", required_argument, NULL, 'c'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"odd", no_argument, NULL, 'o'},
                                            {NULL, 0, NULL, 0}};
    uint64_t count = 100000, seed = 1;
    bool odd = false;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'c')
            count = strtoull(optarg, NULL, 10);
        else if (c == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (c == 'o')
            odd = true;
        else
            return 2;
    }
    struct test_feed *feed = odd ? test_feed_new_odd(seed) : test_feed_new(seed, count);
    struct silt_entry entry;
    int code = 0;
    while (code == 0 && test_feed_next(feed, &entry))
        code = put_entry(&entry);
    test_feed_free(feed);
    if (code != 0 || fflush(stdout) != 0) {
        perror("silt-feed");
        return 1;
    }
    return 0;
}
