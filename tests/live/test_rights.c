/* What the server must allow (docs/rights.md): a user with exactly these rights gets a whole cycle; with one fewer, what the table says, and never a trim of
 * what is not archived. And what silt sends: nothing but the commands of that table, each of them bounded. */
#include "alloc.h"
#include "mergeread.h"
#include "sent.h"
#include "stand.h"

#include <ctype.h>
#include <string.h>

#define STREAM "- { match: s, ids: wire, keep: { entries: 5 }, seam: best-effort }"

static struct stand stand;
static struct test_oracle oracle;

/* The user anew, with all rights of the table but one (RIGHTS: with all). */
static void make_user(struct test_server *server, size_t without)
{
    char line[1200] = "ACL SETUSER silt reset on >sesame ~s ~{s}:archived";
    for (size_t i = 0; i < RIGHTS; i++)
        if (i != without)
            snprintf(line + strlen(line), sizeof line - strlen(line), " +%s", rights[i].name);
    test_cmd(server, line);
}

/* An archiver that logs in as that user; a stream with a consumer group that has entries pending. */
static void start(size_t without)
{
    const char *file = test_path("password");
    test_file_write(file, "sesame\n", 7);
    stand_start(&stand, STREAM);
    stand_close(&stand);
    make_user(&stand.server, without);
    stand.config->user = silt_strdup("silt");
    stand.config->password_file = silt_strdup(file);
    stand_add(&stand, "s", &oracle, 1, 40);
    test_cmd(&stand.server, "XGROUP CREATE s readers 0");
    test_cmd(&stand.server, "XREADGROUP GROUP readers me COUNT 38 STREAMS s >");
    for (int i = 1; i <= 20; i++)
        test_cmd(&stand.server, "XACK s readers %d-0", i);
    stand_open(&stand, NULL);
}

static void finish(void)
{
    test_oracle_release(&oracle);
    stand_release(&stand);
    test_remove_all(stand.archive);
}

START_TEST(rights__the_documented_ones_are_enough_for_a_whole_cycle)
{
    start(RIGHTS);
    ck_assert_msg(stand_run(&stand) == SILT_OK && stand.works[0]->status == SILT_OK, "%s, %s",
                  stand.err.sentence, stand.works[0]->err.sentence);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 20); /* 21-0 is pending */
    ck_assert_int_eq(test_cmd_int(&stand.server, "EXISTS {s}:archived"), 1);
    ck_assert_str_eq(test_server_info(&stand.server, "errorstats", "errorstat_NOPERM"), "");
    finish();
}
END_TEST

START_TEST(rights__with_one_fewer_what_the_table_says)
{
    for (size_t i = 0; i < RIGHTS; i++) {
        start(i);
        enum silt_status status = stand_run(&stand);
        const struct silt_err *err = &stand.err;
        if (status == SILT_OK) {
            status = stand.works[0]->status;
            err = &stand.works[0]->err;
        }
        ck_assert_msg(status == rights[i].without, "without %s: %s, '%s'", rights[i].name,
                      silt_status_name(status), err->sentence);
        if (status != SILT_OK) {
            ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 40);
        }
        ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
        /* The right is granted: the next connection goes on. */
        make_user(&stand.server, RIGHTS);
        silt_conn_close(silt_archiver_conn(stand.archiver));
        ck_assert_msg(stand_run(&stand) == SILT_OK && stand.works[0]->status == SILT_OK,
                      "after %s was granted: %s, %s", rights[i].name, stand.err.sentence,
                      stand.works[0]->err.sentence);
        ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 20);
        ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
        finish();
    }
}
END_TEST
START_TEST(rights__the_page_names_exactly_these)
{
    char path[300], named[64];
    snprintf(path, sizeof path, "%s/docs/rights.md", test_source_root());
    char *page = test_file_read(path, NULL);
    size_t rows = 0;
    for (size_t i = 0; i < RIGHTS; i++) {
        snprintf(named, sizeof named, "\n| `%s` |", rights[i].name);
        for (char *bar = strchr(named + 3, '|'); bar != NULL && bar < strrchr(named, '`');
             bar = strchr(bar + 1, '|'))
            *bar = ' '; /* a table has no room for a bar: "xinfo stream" */
        ck_assert_msg(strstr(page, named) != NULL, "docs/rights.md has no row%s", named);
    }
    for (const char *at = page; (at = strstr(at, "\n| `")) != NULL; at++)
        rows++;
    for (size_t i = 0; i < RIGHTS_BESIDE; i++) {
        snprintf(named, sizeof named, "\n| `%s` |", rights_beside[i]);
        for (char *bar = strchr(named + 3, '|'); bar != NULL && bar < strrchr(named, '`');
             bar = strchr(bar + 1, '|'))
            *bar = ' ';
        ck_assert_msg(strstr(page, named) != NULL, "docs/rights.md has no row%s", named);
    }
    ck_assert_uint_eq(rows, RIGHTS + RIGHTS_BESIDE);
    free(page);
}
END_TEST

START_TEST(rights__of_a_reader_are_enough_to_read_both_ways)
{
    struct silt_err err = {0};
    struct silt_history *history = NULL;
    start(RIGHTS);
    ck_assert_int_eq(stand_run(&stand), SILT_OK);
    test_cmd(&stand.server, "ACL SETUSER reader on >sesame ~s +xrange +xrevrange +xinfo|stream "
                            "+xinfo|groups +multi +exec");
    struct silt_history_options where = {.archive_path = stand.archive,
                                         .server_address = stand.server.address,
                                         .user = "reader",
                                         .password_file = test_path("password")};
    ck_assert_int_eq(silt_history_open(&where, &history, &err), SILT_OK);
    for (int reverse = 0; reverse < 2; reverse++) {
        struct silt_cursor_options what = SILT_CURSOR_OPTIONS_DEFAULT;
        struct silt_cursor *cursor = NULL;
        struct silt_item item;
        struct test_walk walk;
        enum silt_status status;
        what.key = "s";
        what.reverse = reverse;
        test_walk_start(&walk, &oracle, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, reverse);
        ck_assert_int_eq(silt_cursor_open(history, &what, &cursor, &err), SILT_OK);
        while ((status = silt_cursor_next(cursor, &item, &err)) == SILT_OK)
            ck_assert_msg(test_walk_take(&walk, &item.entry), "%s", walk.difference);
        ck_assert_msg(status == SILT_END && test_walk_finish(&walk, 0), "%s %s", err.sentence,
                      walk.difference);
        silt_cursor_close(cursor);
    }
    silt_history_close(history);
    finish();
}
END_TEST

START_TEST(rights__a_cycle_sends_only_bounded_commands_of_the_page)
{
    unsigned lines = 0, trims = 0;
    redisReply *reply = NULL;
    struct sent sent;
    start(RIGHTS);
    redisContext *monitor = redisConnectUnix(stand.server.socket);
    reply = redisCommand(monitor, "MONITOR");
    if (reply == NULL || reply->type != REDIS_REPLY_STATUS) test_die("no MONITOR");
    freeReplyObject(reply);
    ck_assert_int_eq(stand_run(&stand), SILT_OK);
    test_cmd(&stand.server, "ECHO the-end");
    for (bool more = true; more; freeReplyObject(reply)) {
        void *next = NULL;
        if (redisGetReply(monitor, &next) != REDIS_OK) test_die("MONITOR: %s", monitor->errstr);
        reply = next;
        parse_line(reply->str, &sent);
        more = strcmp(sent.words[1], "the-end") != 0;
        if (!more) continue;
        check_line(reply->str, &sent);
        trims += strcasecmp(sent.words[0], "xtrim") == 0;
        lines++;
    }
    redisFree(monitor);
    ck_assert_uint_gt(lines, 30);
    ck_assert_uint_gt(trims, 0);
    finish();
}
END_TEST

TEST_MAIN(rights__the_documented_ones_are_enough_for_a_whole_cycle,
          rights__with_one_fewer_what_the_table_says,
          rights__of_a_reader_are_enough_to_read_both_ways, rights__the_page_names_exactly_these,
          rights__a_cycle_sends_only_bounded_commands_of_the_page)
