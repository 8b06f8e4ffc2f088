/* Prints a stream's whole history, archived and live: read_history ARCHIVE SERVER KEY
 * ("-" for ARCHIVE or SERVER: without). Build: cc read_history.c $(pkg-config --cflags --libs mergeread) */
#include <silt/mergeread.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct silt_err err = {0};
    struct silt_history *history = NULL;
    struct silt_cursor *cursor = NULL;
    struct silt_item item;
    if (argc != 4) return fprintf(stderr, "usage: %s ARCHIVE SERVER KEY\n", argv[0]), 2;
    struct silt_history_options where = {.archive_path = strcmp(argv[1], "-") ? argv[1] : NULL,
                                         .server_address = strcmp(argv[2], "-") ? argv[2] : NULL};
    struct silt_cursor_options what = {.key = argv[3]};
    enum silt_status status = silt_history_open(&where, &history, &err);
    if (status == SILT_OK) status = silt_cursor_open(history, &what, &cursor, &err);
    while (status == SILT_OK && (status = silt_cursor_next(cursor, &item, &err)) == SILT_OK) {
        char id[SILT_WIRE_ID_TEXT];
        if (item.kind != SILT_ITEM_ENTRY) continue;
        silt_wire_id_format(item.entry.id, id);
        printf("%s %s %zu fields\n", id, item.tier == SILT_TIER_LIVE ? "live" : "archive",
               item.entry.field_count);
    }
    if (status != SILT_END) fprintf(stderr, "%s\n", err.sentence);
    silt_cursor_close(cursor);
    silt_history_close(history);
    return silt_status_exit_code(status);
}
