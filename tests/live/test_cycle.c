/* The cycle on a real server: fold, commit, read back, trim, and what others do in between. */
#include "stand.h"

#include <stdlib.h>
#include <string.h>

#define PLAIN5 "- { match: s, ids: wire, keep: { entries: 5 } }"

static struct stand stand;
static struct test_oracle oracle;

static void check_ok(enum silt_status status)
{
    ck_assert_msg(status == SILT_OK, "%s: %s", silt_status_name(status), stand.err.sentence);
}

static void check_run(void)
{
    check_ok(stand_run(&stand));
    for (size_t i = 0; i < stand.work_count; i++)
        ck_assert_msg(stand.works[i]->status == SILT_OK, "%s: %s",
                      silt_status_name(stand.works[i]->status), stand.works[i]->err.sentence);
}

static void check_doubt(const char *word)
{
    check_ok(stand_run(&stand));
    ck_assert_msg(stand.works[0]->status == SILT_ERR_DOUBT, "%s: %s",
                  silt_status_name(stand.works[0]->status), stand.works[0]->err.sentence);
    ck_assert_msg(strstr(stand.works[0]->err.sentence, word) != NULL, "'%s' has no '%s'",
                  stand.works[0]->err.sentence, word);
    ck_assert_int_eq(stand_row(&stand, "s")->verdict, SILT_VERDICT_AUDIT_PENDING);
}

static void finish(void)
{
    test_oracle_release(&oracle);
    stand_release(&stand);
}

START_TEST(cycle__folds_trims_and_keeps_the_newest)
{
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", &oracle, 1, 60);
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 60);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    char at[SILT_WIRE_ID_TEXT];
    ck_assert(stand_marker(&stand, "s", at)[0] != 0);
    ck_assert_str_eq(at, "60-0");
    const struct silt_stream_row *row = stand_row(&stand, "s");
    ck_assert_uint_eq(row->watermark.ms, 60);
    ck_assert_uint_eq(row->folded_entries, 60);
    ck_assert_uint_eq(row->trimmed_entries, 55);
    ck_assert_uint_eq(row->gap_entries, 0);
    finish();
}
END_TEST

START_TEST(cycle__a_second_run_does_nothing)
{
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", &oracle, 1, 20);
    check_run();
    check_ok(stand_pass(&stand));
    ck_assert(!stand.works[0]->changed && stand.works[0]->settled);
    stand_close(&stand);
    stand_open(&stand, NULL);
    check_ok(stand_pass(&stand));
    ck_assert(!stand.works[0]->changed && stand.works[0]->settled);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 20);
    finish();
}
END_TEST

START_TEST(cycle__goes_on_after_more_entries_and_a_restart)
{
    stand_start(&stand, PLAIN5);
    for (uint64_t n = 1; n <= 6; n++) {
        stand_add(&stand, "s", &oracle, n * 100, n * 100 + 30);
        check_run();
        if (n % 2 == 0) {
            stand_close(&stand);
            stand_open(&stand, NULL);
        }
        ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
        ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    }
    finish();
}
END_TEST

START_TEST(cycle__without_keep_only_folds)
{
    stand_start(&stand, "- { match: s, ids: wire }");
    stand_add(&stand, "s", &oracle, 1, 30);
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 30);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 30);
    ck_assert_int_eq(stand.works[0]->held_by, SILT_HELD_SHADOW);
    char at[SILT_WIRE_ID_TEXT];
    stand_marker(&stand, "s", at);
    ck_assert_str_eq(at, "30-0");
    finish();
}
END_TEST

START_TEST(cycle__on_trim_folds_only_what_must_go)
{
    stand_start(&stand, "- { match: s, ids: wire, fold: on-trim, keep: { entries: 8 } }");
    stand_add(&stand, "s", &oracle, 1, 30);
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 8);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 22);
    stand_add(&stand, "s", &oracle, 31, 33);
    check_run();
    ck_assert_uint_eq(stand_archived(&stand, "s"), 25);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    ck_assert_uint_eq(stand_row(&stand, "s")->gap_entries, 0);
    finish();
}
END_TEST

START_TEST(cycle__keep_bytes_in_both_modes)
{
    /* an entry of stand_add holds n + "value NN" + kind + plain: 18 bytes */
    stand_start(
        &stand,
        "- { match: s, ids: wire, keep: { bytes: 100 } }\n- { match: t, ids: wire, fold: on-trim, keep: { bytes: 100 } }");
    stand_add(&stand, "s", &oracle, 10, 60);
    stand_add(&stand, "t", NULL, 10, 60);
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN t"), 5);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 51);
    ck_assert_uint_eq(stand_archived(&stand, "t"), 46);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    ck_assert_str_eq(stand_difference(&stand, "t", &oracle), "");
    finish();
}
END_TEST

START_TEST(cycle__on_trim_folds_all_where_that_is_asked_for)
{
    stand_start(&stand, "- { match: s, ids: wire, fold: on-trim, keep: { entries: 8 } }");
    stand_add(&stand, "s", &oracle, 1, 20);
    check_run();
    ck_assert_uint_eq(stand_archived(&stand, "s"), 12);
    stand.works[0]->whole = true;
    check_run();
    ck_assert_uint_eq(stand_archived(&stand, "s"), 20);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 8);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

/* On SIGHUP a work gets other settings; what was found out under the old ones must not be used. */
START_TEST(cycle__keep_bytes_may_change_while_running)
{
    stand_start(&stand, "- { match: s, ids: wire, fold: on-trim, keep: { bytes: 100 } }");
    stand_add(&stand, "s", &oracle, 10, 60);
    check_run();
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    struct silt_stream_config other = *stand.works[0]->config;
    other.keep.bytes = 60;
    stand.works[0]->config = &other;
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 3);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

START_TEST(cycle__keep_age_counts_from_the_servers_time)
{
    stand_start(
        &stand,
        "- { match: s, ids: wire, keep: { age: 1h } }\n- { match: t, ids: wire, fold: on-trim, keep: { age: 1h } }");
    const redisReply *reply = test_cmd(&stand.server, "TIME");
    uint64_t now = strtoull(reply->element[0]->str, NULL, 10) * 1000;
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "t" : "s";
        stand_add(&stand, key, i ? NULL : &oracle, now - 7200000,
                  now - 7199980);                                          /* 21 that must go */
        stand_add(&stand, key, i ? NULL : &oracle, now - 1000, now - 991); /* 10 that stay */
    }
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 10);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN t"), 10);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 31);
    ck_assert_uint_eq(stand_archived(&stand, "t"), 21);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    ck_assert_str_eq(stand_difference(&stand, "t", &oracle), "");
    finish();
}
END_TEST

START_TEST(cycle__trims_in_steps)
{
    stand_start(&stand, "- { match: s, ids: wire, keep: { entries: 3 } }");
    stand.archiver->limits.trim_step = 10;
    stand.archiver->limits.fold_entries = 25;
    stand_add(&stand, "s", &oracle, 1, 60);
    test_cmd(&stand.server, "CONFIG RESETSTAT");
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 3);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    ck_assert_ptr_nonnull(
        strstr(test_server_info(&stand.server, "commandstats", "cmdstat_xtrim"), "calls="));
    ck_assert(strncmp(test_server_info(&stand.server, "commandstats", "cmdstat_xtrim"), "calls=1,",
                      8) != 0);
    finish();
}
END_TEST

/* Removed between two partial folds, above C of the one and below C of the other, while older entries stay live: only the count of the fold that reaches LAST knows. */
START_TEST(cycle__a_delete_that_a_partial_fold_overtakes_is_a_gap)
{
    struct silt_gap_row gap;
    stand_start(&stand, "- { match: s, ids: wire }");
    stand.archiver->limits.fold_entries = 2;
    stand_add(&stand, "s", NULL, 1, 8);
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 2);
    test_cmd(&stand.server, "XDEL s 4-0");
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    ck_assert_uint_eq(stand_row(&stand, "s")->custody.ms, 5);
    check_run();
    ck_assert_uint_eq(stand_archived(&stand, "s"), 7);
    ck_assert(stand_gap(&stand, "s", 0, &gap));
    ck_assert_uint_eq(gap.count, 1);
    ck_assert_int_eq(gap.precision, SILT_GAP_EXACT);
    ck_assert(gap.range.after.ms < 4 && gap.range.through.ms >= 4);
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    ck_assert_uint_eq(stand_row(&stand, "s")->gap_entries, 1);
    finish();
}
END_TEST

/* Scenario 61: an outside trim of what was not folded is a gap, exact, for ever. */
START_TEST(cycle__scenario_61_outside_trim_is_a_gap_of_15)
{
    struct silt_gap_row gap;
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", NULL, 1, 10);
    check_run();
    stand_add(&stand, "s", NULL, 11, 30);
    test_cmd(&stand.server, "XTRIM s MAXLEN = 5");
    check_run();
    ck_assert(stand_gap(&stand, "s", 0, &gap));
    ck_assert_uint_eq(gap.count, 15);
    ck_assert_int_eq(gap.precision, SILT_GAP_EXACT);
    ck_assert_int_eq(gap.cause, SILT_GAP_TRIMMED);
    ck_assert_uint_eq(gap.range.after.ms, 10);
    ck_assert_uint_eq(gap.range.through.ms, 25);
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    ck_assert_uint_eq(stand_row(&stand, "s")->gap_entries, 15);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 15);
    finish();
}
END_TEST

/* Field report A2, both halves, with the archiver away. */
START_TEST(cycle__a2_trim_and_delete_while_away)
{
    struct silt_gap_row gap;
    stand_start(&stand, "- { match: s, ids: wire }\n- { match: t, ids: wire }");
    stand_add(&stand, "s", NULL, 1, 10);
    stand_add(&stand, "t", NULL, 1, 10);
    test_cmd(&stand.server, "XTRIM s MINID 6");
    test_cmd(&stand.server, "XDEL t 1-0 2-0");
    check_run();
    ck_assert(stand_gap(&stand, "s", 0, &gap));
    ck_assert_uint_eq(gap.count, 5);
    ck_assert_uint_eq(gap.range.through.ms, 5);
    ck_assert(stand_gap(&stand, "t", 0, &gap));
    ck_assert_uint_eq(gap.count, 2);
    stand_close(&stand);
    stand_open(&stand, NULL);
    check_run();
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    ck_assert(!stand_gap(&stand, "t", 1, &gap));
    finish();
}
END_TEST

START_TEST(cycle__on_trim_books_a_gap_though_it_never_reaches_the_end)
{
    struct silt_gap_row gap;
    stand_start(&stand, "- { match: s, ids: wire, fold: on-trim, keep: { entries: 8 } }");
    stand_add(&stand, "s", NULL, 1, 30); /* folds 22, keeps 8 */
    check_run();
    stand_add(&stand, "s", NULL, 31, 40);
    test_cmd(&stand.server, "XTRIM s MINID 31"); /* 8 go unfolded */
    check_run();
    ck_assert(stand_gap(&stand, "s", 0, &gap));
    ck_assert_uint_eq(gap.count, 8);
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    check_run();
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 8);
    finish();
}
END_TEST

/* An outside trim of folded entries alone is nobody's loss. */
START_TEST(cycle__outside_trim_of_folded_entries_is_no_gap)
{
    struct silt_gap_row gap;
    stand_start(&stand, "- { match: s, ids: wire }");
    stand_add(&stand, "s", &oracle, 1, 30);
    check_run();
    test_cmd(&stand.server, "XTRIM s MAXLEN = 3");
    stand_add(&stand, "s", &oracle, 31, 40);
    check_run();
    ck_assert(!stand_gap(&stand, "s", 0, &gap));
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

/* W2: a writer whose clock is behind the retention's horizon. */
START_TEST(cycle__w2_an_entry_below_the_horizon_survives)
{
    stand_start(&stand, "- { match: s, ids: wire, keep: { age: 1s } }");
    stand_add(&stand, "s", &oracle, 100, 105); /* all far older than a second */
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 1);
    stand_add(&stand, "s", &oracle, 106, 106); /* still below the horizon, not yet folded */
    check_run();
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    ck_assert_uint_eq(stand_archived(&stand, "s"), 7);
    finish();
}
END_TEST

/* W3: two streams that interleave in one archive. */
START_TEST(cycle__w3_two_streams_share_an_archive)
{
    struct test_oracle other = {0};
    stand_start(
        &stand,
        "- { match: s, ids: wire, keep: { entries: 2 } }\n- { match: t, ids: wire, keep: { entries: 2 } }");
    for (uint64_t ms = 1; ms <= 20; ms++) {
        stand_add(&stand, ms % 2 ? "s" : "t", ms % 2 ? &oracle : &other, ms, ms);
    }
    check_run();
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    ck_assert_str_eq(stand_difference(&stand, "t", &other), "");
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 2);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN t"), 2);
    test_oracle_release(&other);
    finish();
}
END_TEST

/* Field report A1: the top was deleted; the trim must not leave a node with nothing alive. */
START_TEST(cycle__a1_threshold_is_never_above_a_live_entry)
{
    stand_start(&stand, "- { match: s, ids: wire, keep: { age: 1s } }");
    test_cmd(&stand.server, "XADD s 11-4 f v");
    test_cmd(&stand.server, "XADD s 20-0 f v");
    test_cmd(&stand.server, "XDEL s 20-0");
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 1);
    ck_assert_int_eq(stand.works[0]->held_by, SILT_HELD_NEWEST);
    test_cmd(&stand.server, "DEBUG RELOAD");
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 1);
    finish();
}
END_TEST

/* Field report B2: groups hold; a destroyed one lets go. */
START_TEST(cycle__b2_groups_hold_the_trim)
{
    stand_start(&stand, "- { match: s, ids: wire, keep: { entries: 1 } }");
    stand_add(&stand, "s", &oracle, 1, 40);
    test_cmd(&stand.server, "XGROUP CREATE s slow 10-0");
    test_cmd(&stand.server, "XGROUP CREATE s fast 30-0");
    check_run();
    ck_assert_str_eq(test_stream_text(&stand.server, "s", "recorded-first-entry-id"), "11-0");
    ck_assert_int_eq(stand.works[0]->held_by, SILT_HELD_GROUP);
    ck_assert_str_eq(stand.works[0]->held_name, "slow");
    test_cmd(&stand.server, "XGROUP DESTROY s slow");
    check_run();
    ck_assert_str_eq(test_stream_text(&stand.server, "s", "recorded-first-entry-id"), "31-0");
    ck_assert_str_eq(stand.works[0]->held_name, "fast");
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

/* Field report B1: what a group has not acknowledged stays. */
START_TEST(cycle__b1_pending_entries_hold_the_trim)
{
    stand_start(&stand, "- { match: s, ids: wire, keep: { entries: 1 } }");
    stand_add(&stand, "s", &oracle, 1, 40);
    test_cmd(&stand.server, "XGROUP CREATE s g 4-0");
    test_cmd(&stand.server, "XREADGROUP GROUP g c COUNT 20 STREAMS s >");
    test_cmd(&stand.server, "XACK s g 5-0 6-0 8-0");
    check_run();
    ck_assert_str_eq(test_stream_text(&stand.server, "s", "recorded-first-entry-id"), "7-0");
    ck_assert_int_eq(stand.works[0]->held_by, SILT_HELD_PENDING);
    finish();
}
END_TEST

START_TEST(cycle__groups_ignore_and_group_limit_let_go)
{
    stand_start(&stand,
                "- { match: s, ids: wire, keep: { entries: 1 }, groups: ignore }\n"
                "- { match: t, ids: wire, keep: { entries: 1 }, group-limit: { entries: 10 } }\n"
                "- { match: u, ids: wire, keep: { entries: 1 }, group-limit: { age: 1h } }");
    const char *keys[] = {"s", "t", "u"};
    for (int i = 0; i < 3; i++) {
        stand_add(&stand, keys[i], NULL, 1, 40);
        test_cmd(&stand.server, "XGROUP CREATE %s abandoned 10-0", keys[i]);
        test_cmd(&stand.server, "XGROUP CREATE %s near 35-0", keys[i]);
    }
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 1);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN t"), 5); /* only `near` holds */
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN u"), 1); /* both hold entries of 1970 */
    finish();
}
END_TEST

/* W5, W4: foreign entries are folded in their place, a forged id moves nothing. */
START_TEST(cycle__w4_w5_foreign_entries_stop_nobody)
{
    stand_start(
        &stand,
        "- { match: s, ids: branded EVT, keep: { entries: 2 } }\n- { match: t, ids: wire, keep: { entries: 2 } }");
    stand_add(&stand, "s", &oracle, 1, 5);                             /* no id field at all */
    test_cmd(&stand.server, "XADD s 6-0 id %s n 1", "EVTAzL8n0Y58m7"); /* the last id there is */
    test_oracle_add_text(&oracle, (struct silt_wire_id){6, 0}, "id", "EVTAzL8n0Y58m7", "n", "1",
                         (char *)NULL);
    stand_add(&stand, "s", &oracle, 7, 9);
    stand_add(&stand, "t", NULL, 1, 9);
    check_run();
    ck_assert_uint_eq(stand_row(&stand, "s")->watermark.ms, 9);
    ck_assert_uint_eq(stand_row(&stand, "s")->foreign_entries, 9);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 2);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN t"), 2);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

START_TEST(cycle__on_foreign_hold_stops_before_the_first)
{
    stand_start(&stand, "- { match: s, ids: branded EVT, keep: { age: 1s }, on-foreign: hold }");
    for (uint64_t i = 0; i < 10; i++) {
        char branded[SILT_BRANDED_ID_LEN + 1] = "", wire[SILT_WIRE_ID_TEXT];
        struct silt_branded_id id = {{"EVT"}, ((uint64_t)1000 + i) << 22};
        ck_assert_int_eq(silt_branded_id_format(id, branded), SILT_OK);
        silt_wire_id_format(silt_snowflake_to_wire(id.snowflake), wire);
        test_cmd(&stand.server, "XADD s %s id %s n x", wire, i == 6 ? "not one" : branded);
        test_oracle_add_text(&oracle, silt_snowflake_to_wire(id.snowflake), "id",
                             i == 6 ? "not one" : branded, "n", "x", (char *)NULL);
    }
    check_run();
    ck_assert_uint_eq(stand_archived(&stand, "s"), 6);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 4);
    ck_assert_int_eq(stand.works[0]->held_by, SILT_HELD_FOREIGN);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    check_run();
    ck_assert_uint_eq(stand_archived(&stand, "s"), 6);
    finish();
}
END_TEST

/* Adversarial shapes go through whole. */
START_TEST(cycle__odd_entries_come_back_byte_for_byte)
{
    stand_start(&stand, "- { match: s, ids: wire, keep: { entries: 1 } }");
    test_cmd(&stand.server, "XADD s 9-2 a 1 a 2 b 3 a 1");
    test_oracle_add_text(&oracle, (struct silt_wire_id){9, 2}, "a", "1", "a", "2", "b", "3", "a",
                         "1", (char *)NULL);
    test_cmd(&stand.server, "XADD s 9-10 %s %s", "", "");
    test_oracle_add_text(&oracle, (struct silt_wire_id){9, 10}, "", "", (char *)NULL);
    test_cmd(&stand.server, "XADD s 9-18446744073709551615 \xff\xfe \xc3");
    test_oracle_add_text(&oracle, (struct silt_wire_id){9, UINT64_MAX}, "\xff\xfe", "\xc3",
                         (char *)NULL);
    test_cmd(&stand.server, "XADD s 10-0 id id");
    test_oracle_add_text(&oracle, (struct silt_wire_id){10, 0}, "id", "id", (char *)NULL);
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 1);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

/* ---- doubt ---- */

START_TEST(cycle__a_gone_key_waits_and_says_so)
{
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", NULL, 1, 10);
    check_run();
    test_cmd(&stand.server, "DEL s");
    check_run();
    ck_assert_int_eq(stand.works[0]->held_by, SILT_HELD_VERDICT);
    ck_assert_int_eq(stand_row(&stand, "s")->verdict, SILT_VERDICT_WAITING);
    test_cmd(&stand.server, "SET s text");
    check_ok(stand_run(&stand));
    ck_assert_int_eq(stand.works[0]->status, SILT_ERR_WRONG_TYPE);
    ck_assert_str_eq(test_cmd_text(&stand.server, "GET s"), "text");
    finish();
}
END_TEST

START_TEST(cycle__a_key_gone_unfolded_is_a_gap_of_at_least)
{
    struct silt_gap_row gap;
    stand_start(&stand, "- { match: s, ids: wire, fold: on-trim, keep: { entries: 8 } }");
    stand_add(&stand, "s", NULL, 1, 30);
    check_run();
    test_cmd(&stand.server, "DEL s");
    check_run();
    check_run();
    ck_assert(stand_gap(&stand, "s", 0, &gap));
    ck_assert_int_eq(gap.precision, SILT_GAP_AT_LEAST);
    ck_assert_uint_eq(gap.count, 8);
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    finish();
}
END_TEST

START_TEST(cycle__another_archives_marker_is_refused_by_name)
{
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", NULL, 1, 10);
    test_cmd(&stand.server, "XGROUP CREATE s silt:0190c4a2-0000-7000-8000-000000000002:1:77 3-0");
    check_ok(stand_run(&stand));
    ck_assert_int_eq(stand.works[0]->status, SILT_ERR_CLAIMED);
    ck_assert_ptr_nonnull(strstr(stand.works[0]->err.sentence, "000000000002"));
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 10);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 0);
    test_cmd(&stand.server, "XGROUP DESTROY s silt:0190c4a2-0000-7000-8000-000000000002:1:77");
    check_run(); /* released: first contact */
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    finish();
}
END_TEST

/* Two copies of one archive directory: the number tells them apart after the key was made anew. */
START_TEST(cycle__an_older_copy_of_the_archive_refuses)
{
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", NULL, 1, 10);
    check_run();
    stand_close(&stand);
    test_dir_copy(stand.archive, test_path("copy"));
    stand_open(&stand, NULL);
    stand_add(&stand, "s", NULL, 11, 20);
    check_run();
    stand_close(&stand);
    snprintf(stand.archive, sizeof stand.archive, "%s", test_path("copy"));
    stand_open(&stand, PLAIN5);
    check_ok(stand_run(&stand));
    ck_assert_int_eq(stand.works[0]->status, SILT_ERR_OLDER_COPY);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 10);
    finish();
}
END_TEST

/* ---- several streams, errors, stopping ---- */

START_TEST(cycle__one_bad_stream_never_holds_up_another)
{
    stand_start(
        &stand,
        "- { match: bad, ids: wire, keep: { entries: 1 } }\n- { match: s, ids: wire, keep: { entries: 1 } }");
    test_cmd(&stand.server, "SET bad text");
    stand_add(&stand, "s", &oracle, 1, 20);
    check_ok(stand_run(&stand));
    ck_assert_int_eq(stand.works[0]->status, SILT_ERR_WRONG_TYPE);
    ck_assert_int_eq(stand.works[1]->status, SILT_OK);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 1);
    finish();
}
END_TEST

START_TEST(cycle__many_streams_share_a_commit)
{
    char yaml[4096] = "";
    for (int i = 0; i < 40; i++)
        snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml),
                 "- { match: s%d, ids: wire, keep: { entries: 3 } }\n", i);
    stand_start(&stand, yaml);
    for (int i = 0; i < 40; i++) {
        char key[8];
        snprintf(key, sizeof key, "s%d", i);
        stand_add(&stand, key, i == 17 ? &oracle : NULL, 1, 10);
    }
    check_run();
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s%d", i), 3);
    ck_assert_str_eq(stand_difference(&stand, "s17", &oracle), "");
    finish();
}
END_TEST

START_TEST(cycle__a_full_server_memory_does_not_stop_folding)
{
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", &oracle, 1, 10);
    check_run();
    stand_add(&stand, "s", &oracle, 11, 30);
    test_cmd(&stand.server, "CONFIG SET maxmemory 1");
    check_run(); /* XTRIM and XGROUP SETID work when memory is full */
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

/* Field report C7: the server refuses writes; folding goes on, nothing is trimmed, and it recovers by itself. */
START_TEST(cycle__c7_refused_writes_leave_the_stream_longer)
{
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", &oracle, 1, 10);
    check_run();
    stand_add(&stand, "s", &oracle, 11, 30);
    test_cmd(&stand.server, "CONFIG SET min-replicas-to-write 1");
    check_ok(stand_pass(&stand));
    ck_assert_int_ne(stand.works[0]->status, SILT_OK);
    ck_assert_ptr_nonnull(strstr(stand.works[0]->err.sentence, "NOREPLICAS"));
    ck_assert_uint_eq(stand_archived(&stand, "s"), 30);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 25);
    test_cmd(&stand.server, "CONFIG SET min-replicas-to-write 0");
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

START_TEST(cycle__a_server_gone_stops_the_pass_and_changes_nothing)
{
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", NULL, 1, 10);
    check_run();
    test_server_kill(&stand.server);
    enum silt_status status = stand_pass(&stand);
    ck_assert_int_eq(silt_status_class(status), SILT_CLASS_RETRY);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 10);
    finish();
}
END_TEST

START_TEST(cycle__cancelled_commits_what_was_proven)
{
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", &oracle, 1, 10);
    check_run();
    stand.cancel = true;
    ck_assert_int_eq(stand_pass(&stand), SILT_ERR_CANCELLED);
    stand.cancel = false;
    check_run();
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

/* D1: a value that does not decode to what came in is never stored, and nothing is trimmed. */
START_TEST(cycle__d1_a_damaged_encoding_is_never_stored)
{
    if (!test_faults_built_in()) return;
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", &oracle, 1, 20);
    setenv("SILT_FAULT", "segment-corrupt-columns=fail", 1);
    check_ok(stand_pass(&stand));
    ck_assert_int_ne(stand.works[0]->status, SILT_OK);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 0);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 20);
    unsetenv("SILT_FAULT");
    check_run();
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

START_TEST(cycle__a_read_back_that_differs_stops_the_stream_for_good)
{
    if (!test_faults_built_in()) return;
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", &oracle, 1, 20);
    setenv("SILT_FAULT", "read-back-differs=fail", 1);
    check_doubt("read back");
    unsetenv("SILT_FAULT");
    stand_close(&stand);
    stand_open(&stand, NULL);
    check_doubt("read back");
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 20);
    finish();
}
END_TEST

/* A row that the store refuses: its stream is named, the others of the same commit go on. */
START_TEST(cycle__a_refused_commit_refuses_one_stream)
{
    stand_start(&stand,
                "- { match: s, ids: wire }\n- { match: t, ids: wire }\n- { match: u, ids: wire }");
    const char *keys[] = {"s", "t", "u"};
    for (int i = 0; i < 3; i++)
        stand_add(&stand, keys[i], NULL, 1, 10);
    check_run();
    for (int i = 0; i < 3; i++)
        stand_add(&stand, keys[i], NULL, 11, 20);
    stand.works[1]->stream.row.life = 99; /* never given out */
    check_ok(stand_run(&stand));
    ck_assert_int_eq(stand.works[0]->status, SILT_OK);
    ck_assert_int_eq(stand.works[1]->status, SILT_ERR_PROTECTED);
    ck_assert_ptr_nonnull(strstr(stand.works[1]->err.sentence, "never given out"));
    ck_assert_int_eq(stand.works[2]->status, SILT_OK);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 20);
    ck_assert_uint_eq(stand_archived(&stand, "t"), 10);
    ck_assert_uint_eq(stand_archived(&stand, "u"), 20);
    check_run(); /* the row is read again: what was wrong lay in memory alone */
    ck_assert_uint_eq(stand_archived(&stand, "t"), 20);
    finish();
}
END_TEST

/* A commit that became durable although it failed: nothing is taken for another copy, nothing folded twice. */
START_TEST(cycle__a_commit_of_unknown_outcome_is_read_again)
{
    if (!test_faults_built_in()) return;
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", &oracle, 1, 20);
    setenv("SILT_FAULT", "after-commit:1=fail", 1);
    ck_assert_int_ne(stand_pass(&stand), SILT_OK);
    unsetenv("SILT_FAULT");
    ck_assert(stand.works[0]->state->stale);
    check_run();
    ck_assert_uint_eq(stand_archived(&stand, "s"), 20);
    ck_assert_uint_eq(stand_row(&stand, "s")->folded_entries, 20);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    finish();
}
END_TEST

/* Damage in what a trim needs is named as what stops it. */
START_TEST(cycle__damage_is_named_as_what_stops_the_trim)
{
    if (!test_faults_built_in()) return;
    stand_start(&stand, PLAIN5);
    stand_add(&stand, "s", &oracle, 1, 20);
    setenv("SILT_FAULT", "store-before-read-back=fail", 1);
    check_ok(stand_pass(&stand));
    ck_assert_int_eq(silt_status_class(stand.works[0]->status), SILT_CLASS_CORRUPT);
    ck_assert_int_eq(stand.works[0]->held_by, SILT_HELD_DAMAGE);
    ck_assert_str_eq(silt_held_by_name(stand.works[0]->held_by), "damage");
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 20);
    unsetenv("SILT_FAULT");
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    finish();
}
END_TEST

TEST_MAIN(cycle__damage_is_named_as_what_stops_the_trim, cycle__a_refused_commit_refuses_one_stream,
          cycle__a_commit_of_unknown_outcome_is_read_again,
          cycle__d1_a_damaged_encoding_is_never_stored,
          cycle__a_read_back_that_differs_stops_the_stream_for_good,
          cycle__folds_trims_and_keeps_the_newest, cycle__a_second_run_does_nothing,
          cycle__goes_on_after_more_entries_and_a_restart, cycle__without_keep_only_folds,
          cycle__on_trim_folds_only_what_must_go, cycle__keep_bytes_in_both_modes,
          cycle__on_trim_folds_all_where_that_is_asked_for,
          cycle__keep_bytes_may_change_while_running, cycle__keep_age_counts_from_the_servers_time,
          cycle__trims_in_steps, cycle__a_delete_that_a_partial_fold_overtakes_is_a_gap,
          cycle__scenario_61_outside_trim_is_a_gap_of_15, cycle__a2_trim_and_delete_while_away,
          cycle__on_trim_books_a_gap_though_it_never_reaches_the_end,
          cycle__outside_trim_of_folded_entries_is_no_gap,
          cycle__w2_an_entry_below_the_horizon_survives, cycle__w3_two_streams_share_an_archive,
          cycle__a1_threshold_is_never_above_a_live_entry, cycle__b2_groups_hold_the_trim,
          cycle__b1_pending_entries_hold_the_trim, cycle__groups_ignore_and_group_limit_let_go,
          cycle__w4_w5_foreign_entries_stop_nobody, cycle__on_foreign_hold_stops_before_the_first,
          cycle__odd_entries_come_back_byte_for_byte, cycle__a_gone_key_waits_and_says_so,
          cycle__a_key_gone_unfolded_is_a_gap_of_at_least,
          cycle__another_archives_marker_is_refused_by_name,
          cycle__an_older_copy_of_the_archive_refuses, cycle__one_bad_stream_never_holds_up_another,
          cycle__many_streams_share_a_commit, cycle__a_full_server_memory_does_not_stop_folding,
          cycle__c7_refused_writes_leave_the_stream_longer,
          cycle__a_server_gone_stops_the_pass_and_changes_nothing,
          cycle__cancelled_commits_what_was_proven)
