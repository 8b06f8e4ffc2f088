/* The archive read entry by entry through the library's cursor, each name's and value's pointer and length read, beside a plain hiredis loop of XRANGE
 * COUNT 1000 over the same entries. */
#include <inttypes.h>
#include <stdio.h>

#include "bench.h"
#include "mergeread.h"

struct scanned {
    uint64_t entries;
    uint64_t bytes; /* of names and values */
    uintptr_t sum;  /* of the pointers, so that they are produced */
};

static struct scanned scan_archive(const char *dir)
{
    struct silt_history_options where = {.archive_path = dir};
    struct silt_cursor_options what = SILT_CURSOR_OPTIONS_DEFAULT;
    struct silt_history *history = NULL;
    struct silt_cursor *cursor = NULL;
    struct silt_item item;
    struct silt_err err = {0};
    struct scanned ret = {0};
    enum silt_status status;
    what.key = TEST_FEED_KEY;
    bench_must(silt_history_open(&where, &history, &err), &err, "open");
    bench_must(silt_cursor_open(history, &what, &cursor, &err), &err, "cursor");
    while ((status = silt_cursor_next(cursor, &item, &err)) == SILT_OK) {
        for (size_t f = 0; f < item.entry.field_count; f++) {
            const struct silt_field *field = &item.entry.fields[f];
            ret.bytes += field->name.len + field->value.len;
            ret.sum += (uintptr_t)field->name.at + (uintptr_t)field->value.at;
        }
        ret.entries++;
    }
    bench_must(status, &err, "next");
    silt_cursor_close(cursor);
    silt_history_close(history);
    return ret;
}

static struct scanned scan_server(struct test_server *server)
{
    struct scanned ret = {0};
    char from[SILT_WIRE_ID_TEXT + 1] = "-";
    redisContext *link = redisConnectUnix(server->socket);
    if (!link || link->err) test_die("bench: cannot connect");
    for (size_t given = 1000; given == 1000;) {
        redisReply *reply = redisCommand(link, "XRANGE %s %s + COUNT 1000", TEST_FEED_KEY, from);
        if (!reply || reply->type != REDIS_REPLY_ARRAY) test_die("bench: XRANGE failed");
        given = reply->elements;
        for (size_t i = 0; i < given; i++) {
            const redisReply *fields = reply->element[i]->element[1];
            for (size_t f = 0; f < fields->elements; f++) {
                ret.bytes += fields->element[f]->len;
                ret.sum += (uintptr_t)fields->element[f]->str;
            }
        }
        if (given != 0)
            snprintf(from, sizeof from, "(%s", reply->element[given - 1]->element[0]->str);
        ret.entries += given;
        freeReplyObject(reply);
    }
    redisFree(link);
    return ret;
}

void bench_scan(const struct bench_options *options)
{
    static struct test_server server;
    struct test_filled filled;
    double ours[99], peer[99];
    const char *dir = test_path("scan");
    test_fill(dir, test_feed_new(options->seed, options->count), 20000, &filled);
    test_server_start(&server, NULL);
    bench_load(&server, test_feed_new(options->seed, options->count));
    for (size_t run = 0; run < options->runs; run++) {
        double start = bench_now();
        struct scanned a = scan_archive(dir);
        ours[run] = bench_now() - start;
        start = bench_now();
        struct scanned b = scan_server(&server);
        peer[run] = bench_now() - start;
        if (a.entries != options->count || b.entries != options->count || a.bytes != b.bytes)
            test_die("bench: the two sides read different things");
    }
    double a = bench_median(ours, options->runs), b = bench_median(peer, options->runs);
    printf("{\"case\":\"scan\",\"entries\":%" PRIu64 ",\"runs\":%zu,\"entries_per_s\":%.0f,"
           "\"peer\":\"hiredis XRANGE COUNT 1000\",\"peer_entries_per_s\":%.0f,\"ratio\":%.1f}\n",
           options->count, options->runs, (double)options->count / a, (double)options->count / b,
           b / a);
    fflush(stdout);
    test_server_release(&server);
    test_remove_all(dir);
}
