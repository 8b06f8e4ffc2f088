/* What others do to a stream, and what the audit concludes (protocol.md §3, §6, §7): on a real server, with the merged history of each life as the proof. */
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
static void add_to(struct test_server *server, const char *key, unsigned from, unsigned to,
                   unsigned step, const char *value)
{
    for (unsigned ms = from; ms <= to; ms += step)
        test_cmd(server, "XADD %s %u-0 n %s", key, ms, value);
}

static void add(unsigned from, unsigned to, const char *value)
{
    add_to(&stand.server, "s", from, to, 10, value);
}

static void run(void)
{
    enum silt_status status = stand_run(&stand);
    ck_assert_msg(status == SILT_OK, "%s: %s", silt_status_name(status), stand.err.sentence);
    for (size_t i = 0; i < stand.work_count; i++)
        ck_assert_msg(stand.works[i]->status == SILT_OK, "%s: %s",
                      silt_status_name(stand.works[i]->status), stand.works[i]->err.sentence);
}

static void restart(void)
{
    stand_close(&stand);
    stand_open(&stand, NULL);
}

static void finish(void)
{
    stand_release(&stand);
    test_server_release(&other);
}

/* The merged history of a life (0: the newest, with what is live) as text: "10a 20a 30b", gaps as "gap:3" or, where that is the least, "gap:3+". */
static const char *walk(uint64_t life)
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
static const char *expect(unsigned from, unsigned to, const char *value)
{
    size_t at = strlen(expected);
    for (unsigned ms = from; ms <= to; ms += 10)
        at += (size_t)snprintf(expected + at, sizeof expected - at, "%s%u%s", at > 0 ? " " : "", ms,
                               value);
    return expected;
}

static const struct silt_stream_row *row(void)
{
    return stand_row(&stand, "s");
}

/* The newest life reads as expected, now and after a restart; the verdict is clear. */
static void check_walk(void)
{
    ck_assert_str_eq(walk(0), expected);
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_CLEAR);
    restart();
    run();
    ck_assert_str_eq(walk(0), expected);
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_CLEAR);
}

static void check_life(uint64_t life, unsigned from, unsigned to, const char *value)
{
    expected[0] = '\0';
    ck_assert_str_eq(walk(life), expect(from, to, value));
}

/* DUMP of the key, kept; put back later with everything that belongs to it, our marker too. */
static struct {
    char bytes[60000];
    size_t len;
} dump;

static void take_dump(void)
{
    const redisReply *reply = test_cmd(&stand.server, "DUMP s");
    if (reply->len > sizeof dump.bytes) test_die("a large dump");
    memcpy(dump.bytes, reply->str, reply->len);
    dump.len = reply->len;
}

static void put_back(struct test_server *server)
{
    test_cmd(server, "RESTORE s 0 %b REPLACE", dump.bytes, dump.len);
}

/* The stand's server takes the place of a primary's lagging replica: its data is replaced by the dump's state, while its clients stay connected. */
static void fail_over(void)
{
    test_server_start_tcp(&other, NULL);
    put_back(&other);
    test_cmd(&stand.server, "REPLICAOF 127.0.0.1 %d", other.port);
    TEST_WAIT(strcmp(test_server_info(&stand.server, "replication", "master_link_status"), "up") ==
                  0,
              20000);
    test_server_promote(&stand.server);
}

static void change_replid(void)
{
    test_cmd(&stand.server, "DEBUG CHANGE-REPL-ID");
}

/* ---- our marker survived ---- */

START_TEST(audit__a_restart_without_loss_goes_on)
{
    stand_start(&stand, KEEP5);
    add(10, 200, "a");
    run();
    change_replid();
    add(210, 300, "a");
    run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    ck_assert_uint_eq(row()->life, 1);
    ck_assert_uint_eq(row()->gap_entries, 0);
    expect(10, 300, "a");
    check_walk();
    finish();
}
END_TEST

START_TEST(audit__d12_a_gap_is_found_over_a_server_restart)
{
    struct silt_gap_row gap;
    stand_start(&stand, KEEP5);
    add(10, 200, "a");
    run();
    stand_close(&stand);
    add(210, 400, "a");
    test_cmd(&stand.server, "XTRIM s MAXLEN = 7");
    change_replid();
    stand_open(&stand, NULL);
    run();
    ck_assert(stand_gap(&stand, "s", 0, &gap));
    ck_assert_uint_eq(gap.count, 13);
    ck_assert_int_eq(gap.cause, SILT_GAP_TRIMMED);
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    restart();
    run();
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    finish();
}
END_TEST

START_TEST(audit__an_older_snapshot_is_the_same_life)
{
    stand_start(&stand, SHADOW);
    add(10, 50, "a");
    run();
    test_cmd(&stand.server, "SAVE");
    add(60, 100, "a");
    run();
    test_server_kill(&stand.server);
    test_server_restart(&stand.server);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    run();
    ck_assert_uint_eq(row()->custody.ms, 50);
    ck_assert_uint_eq(row()->watermark.ms, 100);
    expect(10, 100, "a");
    check_walk();
    add(110, 120, "a");
    run();
    expect(110, 120, "a");
    check_walk();
    ck_assert_uint_eq(row()->custody.ms, 120);
    ck_assert_uint_eq(row()->life, 1);
    ck_assert_uint_eq(row()->gap_entries, 0);
    finish();
}
END_TEST

/* Entries that a lagging replica takes below what is archived: legal, late, numbered, in their place. */
START_TEST(audit__failover_to_a_lagging_replica_takes_late_entries_in)
{
    stand_start(&stand, KEEP5);
    add(10, 50, "a");
    run();
    take_dump();
    add(60, 100, "a");
    run();
    fail_over();
    run();
    ck_assert_uint_eq(row()->custody.ms, 50);
    test_cmd(&stand.server, "XADD s 55-0 n b");
    test_cmd(&stand.server, "XADD s 60-0 n a"); /* the producer sends one again */
    test_cmd(&stand.server, "XADD s 75-0 n b");
    run();
    ck_assert_uint_eq(row()->late_entries, 2);
    test_cmd(&stand.server, "XADD s 110-0 n a");
    run();
    ck_assert_str_eq(walk(0), "10a 20a 30a 40a 50a 55b 60a 70a 75b 80a 90a 100a 110a");
    ck_assert_uint_eq(row()->custody.ms, 110);
    ck_assert_uint_eq(row()->life, 1);
    ck_assert_uint_eq(row()->gap_entries, 0);
    ck_assert_uint_eq(row()->folded_entries, stand_archived(&stand, "s"));
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    snprintf(expected, sizeof expected, "%s", walk(0));
    check_walk();
    finish();
}
END_TEST

START_TEST(audit__c3_the_promoted_replica_takes_the_same_id_again)
{
    for (int audited_between = 0; audited_between < 2; audited_between++) {
        stand_start(&stand, KEEP5);
        add(10, 30, "a");
        run();
        take_dump();
        add(40, 50, "a");
        run();
        fail_over();
        if (audited_between) run();
        add(40, 60, "b");
        run();
        ck_assert_uint_eq(row()->life, 2);
        expected[0] = '\0';
        expect(10, 30, "a");
        expect(40, 60, "b");
        check_walk();
        check_life(1, 10, 50, "a");
        add(70, 100, "b"); /* life 2 is trimmed over its parent's entries */
        run();
        ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
        expected[0] = '\0';
        expect(10, 30, "a");
        expect(40, 100, "b");
        check_walk();
        finish();
        stand = (struct stand){0};
        test_remove_all(test_path("archive"));
    }
}
END_TEST

START_TEST(audit__what_was_seen_and_rolled_back_is_a_gap)
{
    struct silt_gap_row gap;
    stand_start(&stand, ON_TRIM8);
    add(10, 100, "a");
    run();
    take_dump();
    add(110, 300, "a");
    run(); /* 22 folded, 30 seen */
    ck_assert_uint_eq(row()->watermark.ms, 220);
    put_back(&stand.server);
    run();
    ck_assert(stand_gap(&stand, "s", 0, &gap));
    ck_assert_int_eq(gap.cause, SILT_GAP_ROLLED_BACK);
    ck_assert_int_eq(gap.precision, SILT_GAP_AT_LEAST);
    ck_assert_uint_eq(gap.count, 8);
    ck_assert_uint_eq(gap.range.after.ms, 220);
    ck_assert_uint_eq(gap.range.through.ms, 300);
    restart();
    run();
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    add(310, 310, "a");
    run();
    expect(10, 220, "a");
    strcat(expected, " gap:8+ 310a");
    check_walk();
    finish();
}
END_TEST

START_TEST(audit__j5_restore_replace_of_an_older_state)
{
    stand_start(&stand, SHADOW);
    add(10, 50, "a");
    run();
    take_dump();
    add(60, 100, "a");
    run();
    put_back(&stand.server);
    add(60, 80, "a"); /* the same content again: accepted, nothing twice */
    run();
    expect(10, 100, "a");
    check_walk();
    put_back(&stand.server);
    add(60, 70, "a");
    add(80, 90, "b"); /* one entry changed */
    run();
    ck_assert_uint_eq(row()->life, 2);
    expected[0] = '\0';
    expect(10, 70, "a");
    expect(80, 90, "b");
    check_walk();
    check_life(1, 10, 100, "a");
    finish();
}
END_TEST

START_TEST(audit__copy_and_rename_back)
{
    stand_start(&stand, KEEP5);
    add(10, 50, "a");
    run();
    test_cmd(&stand.server, "COPY s c");
    add(60, 100, "a");
    run();
    test_cmd(&stand.server, "RENAME c s");
    run();
    expect(10, 100, "a");
    check_walk();
    add(110, 110, "a");
    run();
    expect(110, 110, "a");
    check_walk();
    finish();
}
END_TEST

START_TEST(audit__a3_the_id_set_back_on_an_emptied_stream)
{
    stand_start(&stand, SHADOW);
    add(10, 40, "a");
    run();
    test_cmd(&stand.server, "XTRIM s MAXLEN 0");
    test_cmd(&stand.server, "XSETID s 1-0");
    test_cmd(&stand.server, "XADD s 20-0 n b");
    run();
    ck_assert_uint_eq(row()->life, 2);
    ck_assert_str_eq(walk(0), "10a 20b");
    check_life(1, 10, 40, "a");
    snprintf(expected, sizeof expected, "10a 20b");
    check_walk();
    finish();
}
END_TEST

START_TEST(audit__a_marker_that_somebody_moved)
{
    char at[SILT_WIRE_ID_TEXT], name[128];
    stand_start(&stand, KEEP5);
    add(10, 100, "a");
    run();
    add(110, 120, "a");
    run();
    snprintf(name, sizeof name, "%s", stand_marker(&stand, "s", at));
    test_cmd(&stand.server, "XGROUP SETID s %s 90-0", name);
    run();
    stand_marker(&stand, "s", at);
    ck_assert_str_eq(at, "120-0");
    expect(10, 120, "a");
    check_walk();
    finish();
}
END_TEST

/* No fact went back: only the archive itself tells. */
START_TEST(audit__other_bytes_under_a_live_id_fork)
{
    char at[SILT_WIRE_ID_TEXT], name[128];
    stand_start(&stand, SHADOW);
    add(10, 40, "a");
    run();
    snprintf(name, sizeof name, "%s", stand_marker(&stand, "s", at));
    test_cmd(&stand.server, "DEL s");
    add(30, 30, "b");
    add(40, 40, "a");
    test_cmd(&stand.server, "XSETID s 40-0 ENTRIESADDED 4 MAXDELETEDID 0-0");
    test_cmd(&stand.server, "XGROUP CREATE s %s %s", name, at);
    run();
    ck_assert_uint_eq(row()->life, 2);
    snprintf(expected, sizeof expected, "10a 20a 30b 40a");
    check_walk();
    check_life(1, 10, 40, "a");
    finish();
}
END_TEST

START_TEST(audit__deletes_below_custody_are_neither_gap_nor_loss)
{
    stand_start(&stand, SHADOW);
    add(10, 100, "a");
    run();
    test_cmd(&stand.server, "XDEL s 30-0 50-0 100-0");
    change_replid();
    run();
    add(110, 130, "a");
    test_cmd(&stand.server, "XDEL s 120-0"); /* before the fold: a gap of one */
    run();
    ck_assert_uint_eq(row()->gap_entries, 1);
    expect(10, 110, "a");
    strcat(expected, " gap:1 130a");
    check_walk();
    finish();
}
END_TEST

/* ---- the marker is gone ---- */

START_TEST(audit__c1_delete_and_recreate_with_the_same_ids)
{
    stand_start(&stand, KEEP5);
    add(10, 300, "a");
    run();
    test_cmd(&stand.server, "DEL s");
    add(30, 30, "b");
    run();
    ck_assert_uint_eq(row()->life, 2);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 1);
    snprintf(expected, sizeof expected, "10a 20a 30b");
    check_walk();
    check_life(1, 10, 300, "a");
    /* and a third time */
    test_cmd(&stand.server, "DEL s");
    add(20, 40, "c");
    run();
    ck_assert_uint_eq(row()->life, 3);
    snprintf(expected, sizeof expected, "10a 20c 30c 40c");
    check_walk();
    ck_assert_str_eq(walk(2), "10a 20a 30b");
    finish();
}
END_TEST

START_TEST(audit__flushall_and_the_same_entries_again)
{
    stand_start(&stand, SHADOW);
    add(10, 100, "a");
    run();
    test_cmd(&stand.server, "FLUSHALL");
    run();
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_WAITING);
    add(10, 120, "a");
    run();
    ck_assert_uint_eq(row()->life, 1);
    ck_assert_uint_eq(row()->late_entries, 0);
    expect(10, 120, "a");
    check_walk();
    finish();
}
END_TEST

START_TEST(audit__delete_and_recreate_with_later_ids)
{
    stand_start(&stand, KEEP5);
    add(10, 100, "a");
    run();
    test_cmd(&stand.server, "DEL s");
    add(210, 300, "b");
    run();
    ck_assert_uint_eq(row()->life, 1);
    ck_assert_uint_eq(row()->incarnation, 1);
    ck_assert_uint_eq(row()->gap_entries, 0);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    expect(10, 100, "a");
    expect(210, 300, "b");
    check_walk();
    finish();
}
END_TEST

/* What had been seen, and was not folded, is booked once: however the key comes and goes. */
START_TEST(audit__a_key_gone_unfolded_is_booked_once)
{
    struct silt_gap_row gap;
    stand_start(&stand, ON_TRIM8);
    add(10, 300, "a");
    run();
    test_cmd(&stand.server, "RENAME s away");
    run();
    ck_assert(stand_gap(&stand, "s", 0, &gap));
    ck_assert_uint_eq(gap.count, 8);
    test_cmd(&stand.server, "RENAME away s");
    run();
    test_cmd(&stand.server, "RENAME s away");
    run();
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    add(310, 330, "b");
    run();
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    ck_assert_uint_eq(row()->incarnation, 1);
    ck_assert_uint_eq(row()->gap_entries, 8);
    finish();
}
END_TEST

START_TEST(audit__delete_and_make_empty_books_what_was_seen)
{
    struct silt_gap_row gap;
    stand_start(&stand, ON_TRIM8);
    add(10, 300, "a");
    run();
    test_cmd(&stand.server, "DEL s");
    test_cmd(&stand.server, "XGROUP CREATE s g 0 MKSTREAM");
    run();
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_WAITING);
    ck_assert(stand_gap(&stand, "s", 0, &gap));
    ck_assert_uint_eq(gap.count, 8);
    add(310, 330, "b");
    run();
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    finish();
}
END_TEST

START_TEST(audit__expired_and_begun_again)
{
    stand_start(&stand, KEEP5);
    add(10, 100, "a");
    run();
    test_cmd(&stand.server, "PEXPIRE s 1");
    TEST_WAIT(test_cmd_int(&stand.server, "EXISTS s") == 0, 5000);
    run();
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_WAITING);
    add(110, 120, "a");
    run();
    ck_assert_uint_eq(row()->incarnation, 1);
    expect(10, 120, "a");
    check_walk();
    finish();
}
END_TEST

/* Marker removed by hand, the rest as it was. */
START_TEST(audit__a_marker_removed_by_hand)
{
    char at[SILT_WIRE_ID_TEXT], name[128];
    stand_start(&stand, KEEP5);
    add(10, 100, "a");
    run();
    snprintf(name, sizeof name, "%s", stand_marker(&stand, "s", at));
    test_cmd(&stand.server, "XGROUP DESTROY s %s", name);
    add(110, 120, "a");
    run();
    ck_assert_str_ne(stand_marker(&stand, "s", at), name);
    ck_assert_str_eq(at, "120-0");
    ck_assert_uint_eq(row()->incarnation, 0);
    expect(10, 120, "a");
    check_walk();
    finish();
}
END_TEST

START_TEST(audit__another_stream_renamed_over_the_key)
{
    stand_start(&stand, SHADOW);
    add(10, 100, "a");
    run();
    add_to(&stand.server, "x", 50, 80, 10, "b");
    test_cmd(&stand.server, "RENAME x s");
    run();
    ck_assert_uint_eq(row()->life, 2);
    expect(10, 40, "a");
    expect(50, 80, "b");
    check_walk();
    check_life(1, 10, 100, "a");
    finish();
}
END_TEST

START_TEST(audit__swapdb_there_and_back)
{
    stand_start(&stand, SHADOW);
    add(10, 50, "a");
    run();
    test_cmd(&stand.server, "SELECT 1");
    add(110, 130, "b");
    test_cmd(&stand.server, "SELECT 0");
    test_cmd(&stand.server, "SWAPDB 0 1");
    run();
    ck_assert_uint_eq(row()->incarnation, 1);
    expect(10, 50, "a");
    expect(110, 130, "b");
    check_walk();
    /* the first object again: its marker has the old number, and that may be another copy's */
    test_cmd(&stand.server, "SWAPDB 0 1");
    stand_run(&stand);
    ck_assert_int_eq(stand.works[0]->status, SILT_ERR_OLDER_COPY);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    finish();
}
END_TEST

/* Only unknown ids between archived ones: a plain stream began anew, branded ids are late. */
START_TEST(audit__only_unknown_ids)
{
    stand_start(&stand, "- { match: s, ids: wire }\n- { match: t, ids: branded EVT }");
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "t" : "s";
        add_to(&stand.server, key, 10, 100, 10, "a");
        if (i == 0) continue;
        run();
        test_cmd(&stand.server, "DEL s t");
    }
    for (int i = 0; i < 2; i++) {
        add_to(&stand.server, i ? "t" : "s", 55, 55, 10, "b");
        add_to(&stand.server, i ? "t" : "s", 110, 110, 10, "b");
    }
    run();
    ck_assert_uint_gt(row()->life, 2);
    ck_assert_uint_eq(row()->late_entries, 0);
    ck_assert_str_eq(walk(0), "10a 20a 30a 40a 50a 55b 110b");
    ck_assert_uint_eq(stand_row(&stand, "t")->life, 2);
    ck_assert_uint_eq(stand_row(&stand, "t")->late_entries, 1);
    ck_assert_uint_eq(stand_archived(&stand, "t"), 12);
    finish();
}
END_TEST

/* ---- the audit itself ---- */

START_TEST(audit__reads_a_share_a_pass_and_resumes)
{
    stand_start(&stand, SHADOW);
    add(10, 500, "a");
    run();
    change_replid();
    stand.archiver->limits.audit_entries = 10;
    stand.archiver->limits.audit_save = 20;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(stand_pass(&stand), SILT_OK);
        ck_assert(stand.works[0]->more && !stand.works[0]->settled);
    }
    ck_assert_uint_eq(stand.works[0]->state->audit.position.ms, 300);
    ck_assert_uint_eq(row()->audit.position.ms, 200);
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_AUDIT_PENDING);
    restart(); /* repeats at most what was not saved */
    stand.archiver->limits.audit_entries = 10;
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    ck_assert_uint_eq(stand.works[0]->state->audit.position.ms, 300);
    ck_assert_uint_eq(stand.works[0]->state->audit.equal, 30);
    run();
    expect(10, 500, "a");
    check_walk();
    finish();
}
END_TEST

START_TEST(audit__begins_again_when_the_chain_breaks_again)
{
    stand_start(&stand, SHADOW);
    add(10, 500, "a");
    run();
    change_replid();
    stand.archiver->limits.audit_entries = 10;
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    change_replid();
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    ck_assert_uint_eq(stand.works[0]->state->audit.position.ms, 100);
    ck_assert_uint_eq(stand.works[0]->state->audit.equal, 10);
    run();
    expect(10, 500, "a");
    check_walk();
    finish();
}
END_TEST

/* The key is replaced while it is being audited: the marker's absence weighs more than what opened the audit. */
START_TEST(audit__recreated_in_the_middle)
{
    stand_start(&stand, SHADOW);
    add(10, 500, "a");
    run();
    change_replid();
    stand.archiver->limits.audit_entries = 10;
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    uint64_t number = row()->marker_number;
    test_cmd(&stand.server, "DEL s");
    run();
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_AUDIT_PENDING);
    add(20, 600, "b");
    run();
    ck_assert_uint_eq(row()->life, 2);
    ck_assert_uint_ne(row()->marker_number, number);
    expect(10, 10, "a");
    expect(20, 600, "b");
    check_walk();
    check_life(1, 10, 500, "a");
    finish();
}
END_TEST

/* B3, D2: a producer that trims all the time never keeps an audit from ending. */
START_TEST(audit__b3_d2_a_producer_that_trims_meanwhile)
{
    stand_start(&stand, SHADOW);
    add(10, 300, "a");
    run();
    change_replid();
    stand.archiver->limits.audit_entries = 6;
    for (unsigned ms = 310; ms <= 400; ms += 10) {
        test_cmd(&stand.server, "XADD s MAXLEN = 30 %u-0 n a", ms);
        ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    }
    run();
    ck_assert_uint_eq(row()->gap_entries, 0);
    expect(10, 400, "a");
    check_walk();
    finish();
}
END_TEST

/* While it is pending nothing is folded, trimmed or given of the live part, and one audited stream holds up no other. */
START_TEST(audit__pending_touches_nothing)
{
    stand_start(&stand, KEEP5 "\n- { match: t, ids: wire, keep: { entries: 2 } }");
    add(10, 300, "a");
    add_to(&stand.server, "t", 10, 300, 10, "a");
    run();
    test_cmd(&stand.server, "XDEL s 300-0");
    change_replid();
    add(310, 350, "b");
    add_to(&stand.server, "t", 310, 350, 10, "b");
    stand.archiver->limits.audit_entries = 1;
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_AUDIT_PENDING);
    ck_assert_int_eq(stand.works[0]->held_by, SILT_HELD_VERDICT);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 9);
    expect(10, 300, "a");
    strcat(expected, " SILT_ERR_DOUBT");
    ck_assert_str_eq(walk(0), expected);
    run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN t"), 2);
    finish();
}
END_TEST

/* kill -9 at every fault point of a run that audits, forks and takes late entries in. */
static void prepare_kill(void)
{
    test_cmd(&stand.server, "FLUSHALL");
    test_remove_all(stand.archive);
    add(10, 150, "a");
    ck_assert_int_eq(stand_child(&stand, NULL),
                     0); /* not in this process: it would pass the points */
    take_dump();
    add(160, 250, "a");
    ck_assert_int_eq(stand_child(&stand, NULL), 0);
    put_back(&stand.server);
    test_cmd(&stand.server, "XADD s 155-0 n b");
    test_cmd(&stand.server, "XADD s 170-0 n a");
}

static void check_killed(const char *setting)
{
    ck_assert_msg(stand_child(&stand, NULL) == 0, "%s", setting);
    test_cmd(&stand.server, "XADD s 200-0 n b"); /* below W, with other bytes */
    int status = stand_child(&stand, NULL);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %x", setting, status);
    expected[0] = '\0';
    expect(10, 150, "a");
    strcat(expected, " 155b");
    expect(160, 190, "a");
    strcat(expected, " 200b");
    ck_assert_msg(strcmp(walk(0), expected) == 0, "%s: %s", setting, walk(0));
    ck_assert_msg(row()->late_entries == 1, "%s: %llu late", setting,
                  (unsigned long long)row()->late_entries);
    ck_assert_msg(row()->gap_entries == 0, "%s", setting);
    ck_assert_msg(row()->life == 2, "%s: life %llu", setting, (unsigned long long)row()->life);
}

START_TEST(audit__killed_anywhere_loses_no_work_twice)
{
    struct test_faults faults;
    char setting[200];
    if (!test_faults_built_in()) return;
    stand_start(&stand, KEEP5);
    stand_close(&stand);
    prepare_kill();
    const char *log = test_path("faults");
    snprintf(setting, sizeof setting, "SILT_FAULT_LOG=%s", log);
    ck_assert_int_eq(stand_child(&stand, setting), 0);
    check_killed("no fault");
    test_faults_learn(&faults, log, test_long() ? 0 : 1);
    for (size_t i = 0; i < faults.count; i++) {
        prepare_kill();
        snprintf(setting, sizeof setting, "%s", test_faults_setting(&faults, i, "kill"));
        ck_assert_msg(WIFSIGNALED(stand_child(&stand, setting)), "%s was not reached", setting);
        check_killed(setting);
    }
    ck_assert_uint_gt(faults.count, 15);
    test_faults_release(&faults);
    finish();
}
END_TEST

TEST_MAIN(audit__a_restart_without_loss_goes_on, audit__d12_a_gap_is_found_over_a_server_restart,
          audit__an_older_snapshot_is_the_same_life,
          audit__failover_to_a_lagging_replica_takes_late_entries_in,
          audit__c3_the_promoted_replica_takes_the_same_id_again,
          audit__what_was_seen_and_rolled_back_is_a_gap,
          audit__j5_restore_replace_of_an_older_state, audit__copy_and_rename_back,
          audit__a3_the_id_set_back_on_an_emptied_stream, audit__a_marker_that_somebody_moved,
          audit__other_bytes_under_a_live_id_fork,
          audit__deletes_below_custody_are_neither_gap_nor_loss,
          audit__c1_delete_and_recreate_with_the_same_ids,
          audit__flushall_and_the_same_entries_again, audit__delete_and_recreate_with_later_ids,
          audit__a_key_gone_unfolded_is_booked_once,
          audit__delete_and_make_empty_books_what_was_seen, audit__expired_and_begun_again,
          audit__a_marker_removed_by_hand, audit__another_stream_renamed_over_the_key,
          audit__swapdb_there_and_back, audit__only_unknown_ids,
          audit__reads_a_share_a_pass_and_resumes, audit__begins_again_when_the_chain_breaks_again,
          audit__recreated_in_the_middle, audit__b3_d2_a_producer_that_trims_meanwhile,
          audit__pending_touches_nothing, audit__killed_anywhere_loses_no_work_twice)
