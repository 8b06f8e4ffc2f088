/* What the tests of cursors share: one server, one stream, one small archiver, one history, and walks that become text: "10a 20a 30l" is two entries out of the
 * archive and a live one by their milliseconds, "gap:5-7x3" three missing, "damage:5-7", "late:2". */
#ifndef CURSOR_HELP_H
#define CURSOR_HELP_H

#include <stdio.h>
#include <stdlib.h>

#include "harness/harness.h"
#include "harness/mini.h"
#include "mergeread/mergeread.h"

#define KEY "{t}:s"

static struct test_server server;
static struct test_mini mini;
static struct silt_history *history;
static struct silt_cursor *cursor;
static struct silt_cursor_options what;
static struct silt_err err;
static char text[60000];

static inline const char *archive_path(void)
{
    return test_path("archive");
}

/* Server, archive with the stream's row, history over both. */
static inline void start_as(const char *ns)
{
    test_server_start(&server, NULL);
    test_mini_open(&mini, archive_path(), server.address, KEY, ns);
    test_mini_commit_row(&mini);
    struct silt_history_options where = {.archive_path = archive_path(),
                                         .server_address = server.address};
    ck_assert_int_eq(silt_history_open(&where, &history, &err), SILT_OK);
    what = (struct silt_cursor_options){.key = KEY};
}

static inline void start(void)
{
    start_as(NULL);
}

static inline void close_cursor(void)
{
    silt_cursor_close(cursor);
    cursor = NULL;
}

static inline void stop(void)
{
    close_cursor();
    silt_history_close(history);
    history = NULL;
    test_mini_close(&mini);
    test_server_release(&server);
}

/* Another handle over the same places. */
static inline void reopen(const char *archive, const char *address, enum silt_when_away when_away)
{
    close_cursor();
    silt_history_close(history);
    history = NULL;
    struct silt_history_options where = {.archive_path = archive,
                                         .server_address = address,
                                         .when_away = when_away,
                                         .command_timeout_ms = 2000};
    ck_assert_int_eq(silt_history_open(&where, &history, &err), SILT_OK);
}

static inline struct silt_wire_id id(uint64_t ms)
{
    return (struct silt_wire_id){ms, 0};
}

/* from, from + 10, ... up to to */
static inline void add(unsigned from, unsigned to)
{
    for (unsigned ms = from; ms <= to; ms += 10)
        test_cmd(&server, "XADD %s %u-0 n %u", KEY, ms, ms);
}

/* Folds up to this id, and trims what was folded. */
static inline void fold_to(unsigned ms)
{
    long long count = 0;
    redisReply *reply =
        test_cmd(&server, "XRANGE %s (%llu-%llu %u", KEY, (unsigned long long)mini.row.custody.ms,
                 (unsigned long long)mini.row.custody.seq, ms);
    count = (long long)reply->elements;
    if (count > 0) test_mini_fold(&mini, (size_t)count);
    ck_assert_uint_eq(mini.row.watermark.ms, ms);
}

static inline enum silt_status open_cursor(void)
{
    close_cursor();
    return silt_cursor_open(history, &what, &cursor, &err);
}

static inline void show(const struct silt_item *item, char *ret, size_t size)
{
    unsigned long long first = item->first.ms, last = item->last.ms, count = item->count;
    if (item->kind == SILT_ITEM_ENTRY)
        snprintf(ret, size, "%llu%s%s", (unsigned long long)item->entry.id.ms,
                 item->tier == SILT_TIER_LIVE ? "l" : "a", item->foreign ? "f" : "");
    else if (item->kind == SILT_ITEM_GAP)
        snprintf(ret, size, "gap:%llu-%llux%llu", first, last, count);
    else if (item->kind == SILT_ITEM_DAMAGE)
        snprintf(ret, size, "damage:%llu-%llu", first, last);
    else
        snprintf(ret, size, "late:%llu", count);
}

/* Up to `most` items; then, or at a status other than SILT_OK, the text so far ends with "." for SILT_END or the status's name. */
static inline const char *take(size_t most)
{
    size_t at = 0;
    text[0] = '\0';
    for (size_t n = 0; n < most; n++) {
        struct silt_item item;
        char shown[64];
        enum silt_status status = silt_cursor_next(cursor, &item, &err);
        if (status == SILT_OK)
            show(&item, shown, sizeof shown);
        else
            snprintf(shown, sizeof shown, "%s",
                     status == SILT_END ? "." : silt_status_name(status));
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at > 0 ? " " : "", shown);
        if (status != SILT_OK) break;
    }
    return text;
}

static inline const char *walk(void)
{
    enum silt_status status = open_cursor();
    return status == SILT_OK ? take(SIZE_MAX) : silt_status_name(status);
}

/* From every place of the walk, in both directions and with every small page, the rest is what the walk itself would have given. */
static inline void resume_everywhere(void)
{
    char position[SILT_POSITION_TEXT], rest[400], whole[400];
    for (int reverse = 0; reverse < 2; reverse++)
        for (uint32_t page = 1; page <= 4; page++) {
            what =
                (struct silt_cursor_options){.key = KEY, .reverse = reverse, .page_entries = page};
            snprintf(whole, sizeof whole, "%s", walk());
            const char *at = whole;
            for (size_t given = 0;; given++) {
                what.resume = NULL;
                ck_assert_int_eq(open_cursor(), SILT_OK);
                if (given > 0) take(given);
                silt_cursor_position(cursor, position);
                what.resume = position;
                snprintf(rest, sizeof rest, "%s", walk());
                ck_assert_str_eq(rest, at);
                if (strcmp(at, ".") == 0) break;
                at = strchr(at, ' ') + 1;
            }
            ck_assert_int_gt(at - whole, 3);
        }
}

static inline long long calls(const char *command)
{
    char name[40];
    snprintf(name, sizeof name, "cmdstat_%s", command);
    const char *line = test_server_info(&server, "commandstats", name);
    const char *at = strstr(line, "calls=");
    return at == NULL ? 0 : atoll(at + 6);
}

#endif
