/* What the tests of audits share: a stand with one stream `s`, entries of one short value, and the merged history of a life as text. */
#ifndef AUDIT_HELP_H
#define AUDIT_HELP_H

#include "stand.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "mergeread/mergeread.h"

#define KEEP5 "- { match: s, ids: wire, keep: { entries: 5 } }"
#define SHADOW "- { match: s, ids: wire }"
#define ON_TRIM8 "- { match: s, ids: wire, fold: on-trim, keep: { entries: 8 } }"

static struct stand stand;
static struct test_server other;

/* from, from + step, ... up to to; each holds one short value. */
static inline void add_to(struct test_server *server, const char *key, unsigned from, unsigned to,
                          unsigned step, const char *value)
{
    for (unsigned ms = from; ms <= to; ms += step)
        test_cmd(server, "XADD %s %u-0 n %s", key, ms, value);
}

static inline void add(unsigned from, unsigned to, const char *value)
{
    add_to(&stand.server, "s", from, to, 10, value);
}

static inline void run(void)
{
    enum silt_status status = stand_run(&stand);
    ck_assert_msg(status == SILT_OK, "%s: %s", silt_status_name(status), stand.err.sentence);
    for (size_t i = 0; i < stand.work_count; i++)
        ck_assert_msg(stand.works[i]->status == SILT_OK, "%s: %s",
                      silt_status_name(stand.works[i]->status), stand.works[i]->err.sentence);
}

static inline void restart(void)
{
    stand_close(&stand);
    stand_open(&stand, NULL);
}

static inline void finish(void)
{
    stand_release(&stand);
    test_server_release(&other);
}

/* The merged history of a life (0: the newest, with what is live) as text: "10a 20a 30b", gaps as "gap:3" or, where that is the least, "gap:3+". */
static inline const char *walk(uint64_t life)
{
    static char text[8000];
    struct silt_history *history = NULL;
    struct silt_cursor *cursor = NULL;
    struct silt_err err = {0};
    struct silt_history_options where = {.archive_path = stand.archive,
                                         .server_address = stand.server.address};
    struct silt_cursor_options what = {.key = "s", .life = life, .page_entries = 3};
    if (silt_history_open(&where, &history, &err) != SILT_OK) test_die("%s", err.sentence);
    enum silt_status status = silt_cursor_open(history, &what, &cursor, &err);
    struct silt_item item;
    size_t at = 0;
    text[0] = '\0';
    while (status == SILT_OK && (status = silt_cursor_next(cursor, &item, &err)) == SILT_OK) {
        const char *space = at > 0 ? " " : "";
        if (item.kind == SILT_ITEM_ENTRY)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%llu%.*s", space,
                                   (unsigned long long)item.entry.id.ms,
                                   (int)item.entry.fields[0].value.len,
                                   (const char *)item.entry.fields[0].value.at);
        else if (item.kind == SILT_ITEM_GAP)
            at += (size_t)snprintf(text + at, sizeof text - at, "%sgap:%llu%s", space,
                                   (unsigned long long)item.count, item.count_is_exact ? "" : "+");
    }
    if (status != SILT_END) snprintf(text + at, sizeof text - at, " %s", silt_status_name(status));
    silt_cursor_close(cursor);
    silt_history_close(history);
    return text;
}

/* "10a 20a ...": appended to, for expectations. */
static char expected[8000];
static inline const char *expect(unsigned from, unsigned to, const char *value)
{
    size_t at = strlen(expected);
    for (unsigned ms = from; ms <= to; ms += 10)
        at += (size_t)snprintf(expected + at, sizeof expected - at, "%s%u%s", at > 0 ? " " : "", ms,
                               value);
    return expected;
}

/* A piece of an expectation that is no row of entries. */
static inline const char *expect_text(const char *text)
{
    size_t at = strlen(expected);
    snprintf(expected + at, sizeof expected - at, "%s%s", at > 0 ? " " : "", text);
    return expected;
}

static inline const struct silt_stream_row *row(void)
{
    return stand_row(&stand, "s");
}

/* The newest life reads as expected, now and after a restart; the verdict is clear. */
static inline void check_walk(void)
{
    ck_assert_str_eq(walk(0), expected);
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_CLEAR);
    restart();
    run();
    ck_assert_str_eq(walk(0), expected);
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_CLEAR);
}

static inline void check_life(uint64_t life, unsigned from, unsigned to, const char *value)
{
    expected[0] = '\0';
    ck_assert_str_eq(walk(life), expect(from, to, value));
}

/* DUMP of the key, kept; put back later with everything that belongs to it, our marker too. */
static struct {
    char bytes[60000];
    size_t len;
} dump;

static inline void take_dump(void)
{
    const redisReply *reply = test_cmd(&stand.server, "DUMP s");
    if (reply->len > sizeof dump.bytes) test_die("a large dump");
    memcpy(dump.bytes, reply->str, reply->len);
    dump.len = reply->len;
}

static inline void put_back(struct test_server *server)
{
    test_cmd(server, "RESTORE s 0 %b REPLACE", dump.bytes, dump.len);
}

/* The stand's server takes the place of a primary's lagging replica: its data is replaced by the dump's state, while its clients stay connected. */
static inline void fail_over(void)
{
    test_server_start_tcp(&other, NULL);
    put_back(&other);
    test_cmd(&stand.server, "REPLICAOF 127.0.0.1 %d", other.port);
    TEST_WAIT(strcmp(test_server_info(&stand.server, "replication", "master_link_status"), "up") ==
                  0,
              20000);
    test_server_promote(&stand.server);
}

static inline void change_replid(void)
{
    test_cmd(&stand.server, "DEBUG CHANGE-REPL-ID");
}

#endif
