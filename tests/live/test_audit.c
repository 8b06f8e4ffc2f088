/* What others do to a stream, and what the audit concludes (protocol.md §3, §6, §7): on a real server, with the merged history of each life as the proof. */
#include "audit_help.h"

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
    expect_text("gap:8+ 310a");
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
    expect_text("gap:1 130a");
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
          audit__swapdb_there_and_back, audit__only_unknown_ids)
