/* Fold and trim, synced: siltd --once from its start to its end, on a stream that it folds and trims to the newest entry, beside the rate at which the
 * server produces the same entries' XRANGE replies at all: all pages asked for ahead, bytes drained, not parsed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench.h"

/* The commands that fetch all pages of 1000, and a PING whose answer marks the end. */
static void page_commands(struct test_feed *feed, struct silt_buf *ret)
{
    struct silt_entry entry;
    for (uint64_t n = 0; test_feed_next(feed, &entry); n++) {
        char id[SILT_WIRE_ID_TEXT];
        if (n % 1000 != 0) continue;
        size_t len = silt_wire_id_format(entry.id, id);
        if (silt_buf_printf(
                ret,
                "*6\r\n$6\r\nXRANGE\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n$1\r\n+\r\n$5\r\nCOUNT\r\n$4\r\n1000\r\n",
                strlen(TEST_FEED_KEY), TEST_FEED_KEY, len, id) != SILT_OK)
            test_die("bench: out of memory");
    }
    if (silt_buf_printf(ret, "*1\r\n$4\r\nPING\r\n") != SILT_OK) test_die("bench: out of memory");
    test_feed_free(feed);
}

static int connect_to(const struct test_server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", server->socket);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        test_die("bench: cannot connect");
    return fd;
}

/* Bytes of all replies. */
static uint64_t drain(const struct test_server *server, const struct silt_buf *commands)
{
    static char bytes[1 << 20];
    static const char end[] = "+PONG\r\n";
    int fd = connect_to(server);
    uint64_t total = 0;
    char tail[8] = {0};
    for (size_t sent = 0;
         sent < commands->len;) { /* some 90 KB: it fits the socket's buffers and the server's */
        ssize_t n = write(fd, commands->at + sent, commands->len - sent);
        if (n <= 0) test_die("bench: write failed");
        sent += (size_t)n;
    }
    while (memcmp(tail, end, 7) != 0) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n <= 0) test_die("bench: read failed");
        total += (uint64_t)n;
        if (n >= 7) {
            memcpy(tail, bytes + n - 7, 7);
        } else {
            memmove(tail, tail + n, 7 - (size_t)n);
            memcpy(tail + 7 - n, bytes, (size_t)n);
        }
    }
    close(fd);
    return total;
}

static double run_siltd(struct test_server *server, const char *config, const char *dir)
{
    static char text[1024];
    struct test_outcome end = {0};
    int len =
        snprintf(text, sizeof text,
                 "valkey: { address: \"%s\" }\narchive: { path: \"%s\" }\n"
                 "streams:\n  - match: \"%s\"\n    ids: branded EVT\n    keep: { entries: 1 }\n",
                 server->address, dir, TEST_FEED_KEY);
    test_file_write(config, text, (size_t)len);
    double start = bench_now();
    const char *const argv[] = {"siltd", "--config", config, "--once", NULL};
    test_program(&end, argv, NULL, NULL, 600000);
    double took = bench_now() - start;
    if (end.code != 0) test_die("bench: siltd ended with %d: %s%s", end.code, end.out, end.err);
    test_outcome_release(&end);
    return took;
}

void bench_fold(const struct bench_options *options)
{
    static struct test_server server;
    struct silt_buf commands = {0};
    double ours[99], peer[99];
    uint64_t bytes = 0;
    const char *config = test_path("fold.yaml"), *dir = test_path("fold");
    page_commands(test_feed_new(options->seed, options->count), &commands);
    test_server_start(&server, "--client-output-buffer-limit", "normal 0 0 0", NULL);
    for (size_t run = 0; run < options->runs; run++) {
        bench_load(&server, test_feed_new(options->seed, options->count));
        double start = bench_now();
        bytes = drain(&server, &commands);
        peer[run] = bench_now() - start;
        ours[run] = run_siltd(&server, config, dir);
        if (test_cmd_int(&server, "XLEN %s", TEST_FEED_KEY) != 1)
            test_die("bench: siltd left %lld entries",
                     test_cmd_int(&server, "XLEN %s", TEST_FEED_KEY));
        test_cmd(&server, "FLUSHALL");
        test_remove_all(dir);
    }
    double a = bench_median(ours, options->runs), b = bench_median(peer, options->runs);
    printf("{\"case\":\"fold\",\"entries\":%" PRIu64 ",\"runs\":%zu,\"reply_bytes\":%" PRIu64
           ",\"entries_per_s\":%.0f,\"bytes_per_s\":%.0f,\"peer\":\"XRANGE drained unparsed\","
           "\"peer_bytes_per_s\":%.0f,\"ratio\":%.3f}\n",
           options->count, options->runs, bytes, (double)options->count / a, (double)bytes / a,
           (double)bytes / b, b / a);
    fflush(stdout);
    silt_buf_release(&commands);
    test_server_release(&server);
}
