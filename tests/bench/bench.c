/* silt-bench [--count N] [--seed S] [--runs R] [CASE...]: figures of the codec and of the paths, on private servers.
 * Cases: scan, rest, fold, growth; without any, all. */
#include "bench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

void bench_must(enum silt_status status, const struct silt_err *err, const char *what)
{
    if (status != SILT_OK && status != SILT_END)
        test_die("bench: %s: %s: %s", what, silt_status_name(status), err->sentence);
}

static void collect(redisContext *link, size_t *waiting)
{
    for (; *waiting > 0; --*waiting) {
        void *reply = NULL;
        if (redisGetReply(link, &reply) != REDIS_OK) test_die("bench: %s", link->errstr);
        if (((redisReply *)reply)->type == REDIS_REPLY_ERROR)
            test_die("bench: %s", ((redisReply *)reply)->str);
        freeReplyObject(reply);
    }
}

void bench_load(struct test_server *server, struct test_feed *feed)
{
    enum { FIELDS = 16 };
    const char *args[3 + 2 * FIELDS] = {"XADD", TEST_FEED_KEY};
    size_t lens[3 + 2 * FIELDS] = {4, strlen(TEST_FEED_KEY)}, waiting = 0;
    redisContext *link = redisConnectUnix(server->socket);
    if (!link || link->err) test_die("bench: cannot connect");
    for (struct silt_entry entry; test_feed_next(feed, &entry);) {
        char id[SILT_WIRE_ID_TEXT];
        args[2] = id;
        lens[2] = silt_wire_id_format(entry.id, id);
        for (size_t f = 0; f < entry.field_count; f++) {
            args[3 + 2 * f] = (const char *)entry.fields[f].name.at;
            lens[3 + 2 * f] = entry.fields[f].name.len;
            args[4 + 2 * f] = (const char *)entry.fields[f].value.at;
            lens[4 + 2 * f] = entry.fields[f].value.len;
        }
        redisAppendCommandArgv(link, (int)(3 + 2 * entry.field_count), args, lens);
        if (++waiting == 2000) collect(link, &waiting);
    }
    collect(link, &waiting);
    redisFree(link);
    test_feed_free(feed);
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"count", required_argument, NULL, 'c'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"runs", required_argument, NULL, 'r'},
                                          {NULL, 0, NULL, 0}};
    static const struct {
        const char *name;
        void (*run)(const struct bench_options *options);
    } cases[] = {
        {"rest", bench_rest}, {"scan", bench_scan}, {"fold", bench_fold}, {"growth", bench_growth}};
    struct bench_options options = {.count = 1000000, .seed = 1, .runs = 5};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c == 'c')
            options.count = strtoull(optarg, NULL, 10);
        else if (c == 's')
            options.seed = strtoull(optarg, NULL, 10);
        else if (c == 'r')
            options.runs = strtoull(optarg, NULL, 10);
        else
            return 2;
    }
    if (options.count < 1000 || options.runs < 1 || options.runs > 99) return 2;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool wanted = optind == argc;
        for (int a = optind; a < argc; a++)
            wanted |= strcmp(argv[a], cases[i].name) == 0;
        if (wanted) cases[i].run(&options);
    }
    return 0;
}
