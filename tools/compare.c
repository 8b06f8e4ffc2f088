/* silt-compare KEY FILE IDS: reads a stream's whole history through libmergeread and compares it, entry by entry, with the records that were loaded
 * into it: count, order, ids, names and values. For quickstart; not installed. What it counted stands on stdout, `name value` a line; exit 0 only if everything matched. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "alloc.h"
#include "instant.h"
#include "lines.h"
#include "mergeread.h"
#include "records.h"

struct sums {
    uint64_t entries, archived, live, bytes;
    struct silt_wire_id watermark;
    char branded[SILT_BRANDED_ID_LEN + 1]; /* of the watermark */
};

static int say(const struct silt_err *err)
{
    fprintf(stderr, "silt-compare: %s\n", err->sentence);
    if (err->hint[0]) fprintf(stderr, "hint: %s\n", err->hint);
    return 1;
}

static int differ(uint64_t number, struct silt_wire_id id, const char *what)
{
    char text[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(id, text);
    fprintf(stderr, "silt-compare: entry %" PRIu64 " (%s): %s\n", number, text, what);
    return 1;
}

/* The next record of the file; SILT_END after the last. */
static enum silt_status next_record(struct silt_lines *lines, struct silt_record_ids *ids,
                                    struct silt_record *record, struct silt_err *err)
{
    struct silt_view line;
    enum silt_status status = silt_lines_next(lines, &line, err);
    if (status != SILT_OK) return status;
    return silt_record_parse(record, ids, line, lines->line, err);
}

/* One entry of the history beside one record; 0: the same. */
static int compare_entry(const struct silt_item *item, const struct silt_entry *want,
                         struct sums *sums)
{
    const struct silt_entry *got = &item->entry;
    uint64_t number = sums->entries + 1;
    if (item->kind != SILT_ITEM_ENTRY)
        return differ(number, item->first, "a gap or damage is told here");
    if (!silt_wire_id_equal(got->id, want->id))
        return differ(number, got->id, "another id was written here");
    if (got->field_count != want->field_count)
        return differ(number, got->id, "another number of fields was written");
    for (size_t i = 0; i < want->field_count; i++) {
        if (!silt_view_equal(got->fields[i].name, want->fields[i].name) ||
            !silt_view_equal(got->fields[i].value, want->fields[i].value))
            return differ(number, got->id, "other bytes were written");
        sums->bytes += want->fields[i].name.len + want->fields[i].value.len;
    }
    sums->entries++;
    if (item->tier == SILT_TIER_ARCHIVE)
        sums->archived++;
    else
        sums->live++;
    return 0;
}

static int compare(struct silt_cursor *cursor, struct silt_lines *lines, struct silt_namespace ns,
                   struct sums *sums)
{
    SILT_CLEANUP(silt_record_release) struct silt_record record = {0};
    struct silt_record_ids ids = {.ns = ns};
    struct silt_err err = {0};
    struct silt_item item;
    for (;;) {
        enum silt_status have = silt_cursor_next(cursor, &item, &err);
        if (have < 0) return say(&err);
        enum silt_status want = next_record(lines, &ids, &record, &err);
        if (want < 0) return say(&err);
        if (have == SILT_END && want == SILT_END) break;
        if (have == SILT_END)
            return differ(sums->entries + 1, record.entry.id,
                          "missing: the history ends before it");
        if (want == SILT_END)
            return differ(sums->entries + 1, item.entry.id, "nobody wrote this one");
        if (compare_entry(&item, &record.entry, sums) != 0) return 1;
    }
    uint64_t snowflake;
    sums->watermark = silt_cursor_watermark(cursor);
    if (!silt_namespace_is_none(ns) && silt_snowflake_from_wire(sums->watermark, &snowflake) &&
        silt_branded_id_format((struct silt_branded_id){ns, snowflake}, sums->branded) != SILT_OK)
        sums->branded[0] = '\0';
    return 0;
}

static int print(const struct sums *sums)
{
    char watermark[SILT_WIRE_ID_TEXT], instant[SILT_INSTANT_TEXT];
    silt_wire_id_format(sums->watermark, watermark);
    silt_instant_format((struct silt_instant){(int64_t)sums->watermark.ms}, instant);
    printf("entries %" PRIu64 "\narchived %" PRIu64 "\nlive %" PRIu64 "\nbytes %" PRIu64
           "\nwatermark %s\nbranded %s\ninstant %s\n",
           sums->entries, sums->archived, sums->live, sums->bytes, watermark,
           sums->branded[0] ? sums->branded : "-", instant);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int run(const char *key, const char *file, const char *ns)
{
    struct silt_history_options where = {.archive_path = getenv("SILT_ARCHIVE"),
                                         .server_address = getenv("SILT_VALKEY")};
    struct silt_cursor_options what = SILT_CURSOR_OPTIONS_DEFAULT;
    SILT_CLEANUP(silt_lines_close) struct silt_lines lines = {.fd = -1};
    struct silt_history *history = NULL;
    struct silt_cursor *cursor = NULL;
    struct silt_namespace brand = {0};
    struct silt_err err = {0};
    struct sums sums = {0};
    what.key = key;
    enum silt_status status = SILT_OK;
    if (ns) status = silt_namespace_parse(silt_view_str(ns), &brand, &err);
    if (status == SILT_OK) status = silt_lines_open(&lines, file, &err);
    if (status == SILT_OK) status = silt_history_open(&where, &history, &err);
    if (status == SILT_OK) status = silt_cursor_open(history, &what, &cursor, &err);
    int code = status == SILT_OK ? compare(cursor, &lines, brand, &sums) : say(&err);
    silt_cursor_close(cursor);
    silt_history_close(history);
    return code == 0 ? print(&sums) : code;
}

int main(int argc, char **argv)
{
    silt_json_init();
    if (argc != 3 && argc != 4) {
        fputs("usage: SILT_ARCHIVE=DIR SILT_VALKEY=ADDRESS silt-compare KEY FILE [NAMESPACE]\n",
              stderr);
        return 2;
    }
    return run(argv[1], argv[2], argv[3]);
}
