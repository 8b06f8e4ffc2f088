/* The trim script against whatever happens between the look and the trim (protocol.md §4), its refusals, marker and seam. */
#include "stand.h"

#include <string.h>

static struct stand stand;
static struct test_oracle oracle;
static struct silt_stream_config
    config; /* the work's, so that a test may change it after the fold */
static struct silt_custody custody;

/* 1-0 to 20-0, all folded, nothing trimmed, our marker at 20-0; from now on only five entries are to stay. */
static void fold_all(const char *stream)
{
    stand = (struct stand){0};
    stand_start(&stand, stream);
    stand_add(&stand, "s", &oracle, 1, 20);
    ck_assert_int_eq(stand_run(&stand), SILT_OK);
    ck_assert_msg(stand.works[0]->status == SILT_OK, "%s", stand.works[0]->err.sentence);
    config = *stand.works[0]->config;
    config.keep = (struct silt_keep){.has_entries = true, .entries = 5};
    stand.works[0]->config = &config;
}

static void look(void)
{
    bool go = false;
    struct silt_err err = {0};
    ck_assert_msg(silt_judge(stand.archiver, stand.works[0], &custody, &go, &err) == SILT_OK, "%s",
                  err.sentence);
    ck_assert_msg(go, "%s", stand.works[0]->err.sentence);
}

static enum silt_status shed(void)
{
    stand.err = (struct silt_err){0};
    return silt_shed(stand.archiver, stand.works[0], &custody, &stand.err);
}

static void ready(void)
{
    fold_all("- { match: s, ids: wire }");
    look();
}

static void finish(void)
{
    test_oracle_release(&oracle);
    stand_release(&stand);
}

/* The trim was refused for this fact, and what is in the stream now stayed as it is. */
static void check_stale(const char *fact, long long length)
{
    enum silt_status status = shed();
    ck_assert_msg(status == SILT_ERR_STALE, "%s: %s", silt_status_name(status), stand.err.sentence);
    ck_assert_msg(strstr(stand.err.sentence, fact) != NULL, "'%s' has no '%s'", stand.err.sentence,
                  fact);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), length);
    ck_assert_uint_eq(stand.works[0]->trimmed, 0);
}

/* Makes the stream again, ids, counters and our marker as they were; n_0 is the value of the first entry. */
static void make_again(const char *n_0)
{
    char at[SILT_WIRE_ID_TEXT], name[128];
    snprintf(name, sizeof name, "%s", stand_marker(&stand, "s", at));
    test_cmd(&stand.server, "DEL s");
    test_cmd(&stand.server, "XADD s 1-0 n %s kind plain", n_0);
    stand_add(&stand, "s", NULL, 2, 20);
    test_cmd(&stand.server, "XGROUP CREATE s %s %s", name, at);
}

START_TEST(trim__calm_stream_is_trimmed)
{
    ready();
    ck_assert_msg(shed() == SILT_OK, "%s", stand.err.sentence);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    ck_assert_uint_eq(stand.works[0]->trimmed, 15);
    ck_assert_uint_eq(stand.works[0]->asked, 15);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

/* Scenario 64: what arrives between look and trim survives. */
START_TEST(trim__entries_that_arrive_survive)
{
    ready();
    stand_add(&stand, "s", &oracle, 21, 70);
    ck_assert_msg(shed() == SILT_OK, "%s", stand.err.sentence);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 55);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

START_TEST(trim__deleted_key)
{
    ready();
    test_cmd(&stand.server, "DEL s");
    check_stale("key", 0);
    finish();
}
END_TEST

START_TEST(trim__another_type)
{
    ready();
    test_cmd(&stand.server, "DEL s");
    test_cmd(&stand.server, "SET s 1");
    ck_assert_int_eq(shed(), SILT_ERR_STALE);
    ck_assert_str_eq(test_cmd_text(&stand.server, "GET s"), "1");
    finish();
}
END_TEST

START_TEST(trim__deleted_and_recreated)
{
    ready();
    test_cmd(&stand.server, "DEL s");
    stand_add(&stand, "s", NULL, 1, 20);
    check_stale("marker", 20);
    finish();
}
END_TEST

START_TEST(trim__renamed_over)
{
    ready();
    stand_add(&stand, "other", NULL, 1, 30);
    test_cmd(&stand.server, "RENAME other s");
    check_stale("marker", 30);
    finish();
}
END_TEST

START_TEST(trim__same_ids_other_bytes_marker_and_all)
{
    ready();
    make_again("another value");
    check_stale("first entry's bytes", 20);
    finish();
}
END_TEST

START_TEST(trim__counters_set_back)
{
    ready();
    test_cmd(&stand.server, "XTRIM s MINID 10");
    test_cmd(&stand.server, "XSETID s 20-0 ENTRIESADDED 19 MAXDELETEDID 0-0");
    check_stale("entries-added", 11);
    finish();
}
END_TEST

START_TEST(trim__max_deleted_set_back)
{
    fold_all("- { match: s, ids: wire }");
    test_cmd(&stand.server, "XDEL s 7-0");
    look();
    test_cmd(&stand.server, "XSETID s 20-0 ENTRIESADDED 20 MAXDELETEDID 3-0");
    check_stale("max-deleted-entry-id", 19);
    finish();
}
END_TEST

START_TEST(trim__last_id_moved_without_entries)
{
    ready();
    test_cmd(&stand.server,
             "XSETID s 20-0 ENTRIESADDED 25 MAXDELETEDID 0-0"); /* five added, and no higher id */
    check_stale("last-generated-id", 20);
    finish();
}
END_TEST

START_TEST(trim__longer_than_was_added)
{
    fold_all("- { match: s, ids: wire }");
    test_cmd(&stand.server, "XTRIM s MINID 6");
    look();
    stand_add(&stand, "s", NULL, 21, 22); /* two more, and a counter that knows of one */
    test_cmd(&stand.server, "XSETID s 22-0 ENTRIESADDED 21 MAXDELETEDID 0-0");
    check_stale("length", 17);
    finish();
}
END_TEST

START_TEST(trim__first_entry_deleted)
{
    ready();
    test_cmd(&stand.server, "XDEL s 1-0");
    check_stale("first-entry", 19);
    finish();
}
END_TEST

START_TEST(trim__trimmed_by_others)
{
    ready();
    test_cmd(&stand.server, "XTRIM s MAXLEN 3");
    check_stale("first-entry", 3);
    look();
    ck_assert_int_eq(shed(), SILT_OK); /* seen anew: nothing more is due */
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 3);
    finish();
}
END_TEST

START_TEST(trim__emptied_by_others)
{
    ready();
    test_cmd(&stand.server, "XTRIM s MAXLEN 0");
    check_stale("first-entry", 0);
    finish();
}
END_TEST

START_TEST(trim__another_archives_marker)
{
    ready();
    test_cmd(&stand.server, "XGROUP CREATE s silt:0190c4a2-0000-7000-8000-000000000002:1:4 $");
    check_stale("claim", 20);
    finish();
}
END_TEST

START_TEST(trim__marker_moved)
{
    char at[SILT_WIRE_ID_TEXT];
    ready();
    test_cmd(&stand.server, "XGROUP SETID s %s 19-0", stand_marker(&stand, "s", at));
    check_stale("marker is 19-0", 20);
    finish();
}
END_TEST

START_TEST(trim__marker_destroyed)
{
    char at[SILT_WIRE_ID_TEXT];
    ready();
    test_cmd(&stand.server, "XGROUP DESTROY s %s", stand_marker(&stand, "s", at));
    check_stale("marker is none", 20);
    finish();
}
END_TEST

START_TEST(trim__another_replication_history)
{
    ready();
    test_cmd(&stand.server, "REPLICAOF 127.0.0.1 1");
    test_cmd(&stand.server, "REPLICAOF NO ONE");
    check_stale("master_replid", 20);
    finish();
}
END_TEST

START_TEST(trim__on_a_replica_nothing_is_removed)
{
    ready();
    test_cmd(&stand.server, "CONFIG SET replica-serve-stale-data yes");
    test_cmd(&stand.server, "REPLICAOF 127.0.0.1 1");
    ck_assert_int_ne(shed(), SILT_OK);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 20);
    finish();
}
END_TEST

START_TEST(trim__a_group_created_at_0)
{
    ready();
    test_cmd(&stand.server, "XGROUP CREATE s late 0");
    check_stale("group is late", 20);
    finish();
}
END_TEST

/* As text 9-0 would lie above 15-0. */
START_TEST(trim__ids_are_compared_as_numbers)
{
    ready();
    test_cmd(&stand.server, "XGROUP CREATE s late 9-0");
    check_stale("group is late", 20);
    finish();
}
END_TEST

START_TEST(trim__a_group_that_received_and_did_not_acknowledge)
{
    ready();
    test_cmd(&stand.server, "XGROUP CREATE s late 0");
    test_cmd(&stand.server, "XREADGROUP GROUP late c COUNT 100 STREAMS s >");
    check_stale("pending is late", 20);
    finish();
}
END_TEST

START_TEST(trim__groups_that_are_ignored_hold_nothing)
{
    ready();
    config.groups = SILT_GROUPS_IGNORE;
    test_cmd(&stand.server, "XGROUP CREATE s late 0");
    ck_assert_int_eq(shed(), SILT_OK);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    finish();
}
END_TEST

START_TEST(trim__script_unknown_to_the_server)
{
    ready();
    test_cmd(&stand.server, "SCRIPT FLUSH");
    ck_assert_int_eq(shed(), SILT_OK);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    finish();
}
END_TEST

/* Ids beyond 2^53 are compared as ids. */
START_TEST(trim__ids_beyond_a_lua_number)
{
    stand = (struct stand){0};
    stand_start(&stand, "- { match: s, ids: wire, keep: { entries: 2 } }");
    const char *ids[] = {"9007199254740992-18446744073709551614",
                         "9007199254740992-18446744073709551615", "9007199254740993-0",
                         "18446744073709551614-9007199254740993",
                         "18446744073709551614-9007199254740994"};
    for (size_t i = 0; i < 5; i++)
        test_cmd(&stand.server, "XADD s %s f %d", ids[i], (int)i);
    ck_assert_int_eq(stand_run(&stand), SILT_OK);
    ck_assert_msg(stand.works[0]->status == SILT_OK, "%s", stand.works[0]->err.sentence);
    ck_assert_str_eq(test_stream_text(&stand.server, "s", "recorded-first-entry-id"), ids[3]);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 5);
    finish();
}
END_TEST

/* ---- what silt_trim refuses before it sends anything ---- */

static struct silt_trim_target target;

static void aim(void)
{
    const struct silt_stream_row *row = &stand.works[0]->stream.row;
    const struct silt_look *seen = &stand.archiver->look;
    target = (struct silt_trim_target){.key = silt_view_str("s"),
                                       .stream = row->number,
                                       .life = row->life,
                                       .generation = silt_conn_generation(stand.archiver->conn),
                                       .facts = seen->facts,
                                       .newest = seen->last.id,
                                       .marker_present = true,
                                       .marker_at = custody.marker_at,
                                       .marker_to = row->custody};
    silt_sha1_entry(&seen->first, target.first_sha1);
    silt_work_marker(stand.archiver, stand.works[0], target.marker);
}

/* A receipt of (after, through], and a trim with it. */
static enum silt_status trim_with(uint64_t after, uint64_t through, uint64_t threshold_ms,
                                  uint64_t threshold_seq)
{
    struct silt_receipt *receipt = NULL;
    struct silt_trim_answer answer;
    struct silt_err err = {0};
    ck_assert_int_eq(silt_store_read_back(stand.archiver->store, stand.works[0]->stream.row.number,
                                          (struct silt_wire_id){after, 0},
                                          (struct silt_wire_id){through, 0}, UINT64_MAX, &receipt,
                                          &err),
                     SILT_OK);
    enum silt_status status =
        silt_trim(&stand.archiver->trimmer, stand.archiver->conn, &target, receipt,
                  (struct silt_wire_id){threshold_ms, threshold_seq}, &answer, &err);
    silt_receipt_free(receipt);
    if (status != SILT_OK) ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 20);
    return status;
}

START_TEST(trim__refuses_what_the_receipt_does_not_prove)
{
    struct silt_trim_answer answer;
    ready();
    aim();
    ck_assert_int_eq(silt_trim(&stand.archiver->trimmer, stand.archiver->conn, &target, NULL,
                               (struct silt_wire_id){5, 0}, &answer, NULL),
                     SILT_ERR_PROTECTED);
    ck_assert_int_eq(trim_with(0, 10, 10, 2), SILT_ERR_PROTECTED); /* above succ(10-0) */
    ck_assert_int_eq(trim_with(0, 10, 11, 0), SILT_ERR_PROTECTED);
    ck_assert_int_eq(trim_with(1, 10, 10, 1),
                     SILT_ERR_PROTECTED); /* FIRST is 1-0, the receipt begins after it */
    ck_assert_int_eq(trim_with(0, 20, 20, 1), SILT_ERR_PROTECTED); /* above the newest live entry */
    ck_assert_int_eq(trim_with(0, 0, 1, 0), SILT_ERR_PROTECTED);   /* proves nothing */
    target.stream++;
    ck_assert_int_eq(trim_with(0, 10, 10, 1), SILT_ERR_PROTECTED);
    target.stream--;
    target.marker_to = (struct silt_wire_id){9, 0}; /* custody ends before the receipt does */
    ck_assert_int_eq(trim_with(0, 10, 10, 1), SILT_ERR_PROTECTED);
    aim();
    target.generation++;
    ck_assert_int_eq(trim_with(0, 10, 10, 1), SILT_ERR_STALE);
    target.generation--;
    ck_assert_int_eq(trim_with(0, 10, 10, 1), SILT_OK);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 10);
    finish();
}
END_TEST

/* More live below the threshold than was archived: it is told after the fact, and the stream stops. */
START_TEST(trim__more_removed_than_archived_is_an_alarm)
{
    struct silt_receipt *receipt = NULL;
    struct silt_trim_answer answer = {0};
    struct silt_err err = {0};
    ready();
    char at[SILT_WIRE_ID_TEXT], name[128];
    snprintf(name, sizeof name, "%s", stand_marker(&stand, "s", at));
    /* the known hole: the same object put back by hand with one entry more below */
    test_cmd(&stand.server, "DEL s");
    stand_add(&stand, "s", NULL, 1, 1);
    test_cmd(&stand.server, "XADD s 1-5 unseen entry");
    stand_add(&stand, "s", NULL, 2, 20);
    test_cmd(&stand.server, "XGROUP CREATE s %s %s", name, at);
    test_cmd(&stand.server, "XADD s 21-0 n x kind y");
    aim();
    ck_assert_int_eq(silt_store_read_back(stand.archiver->store, target.stream, SILT_WIRE_ID_MIN,
                                          (struct silt_wire_id){10, 0}, UINT64_MAX, &receipt, &err),
                     SILT_OK);
    ck_assert_msg(silt_trim(&stand.archiver->trimmer, stand.archiver->conn, &target, receipt,
                            (struct silt_wire_id){10, 1}, &answer, &err) == SILT_OK,
                  "%s", err.sentence);
    ck_assert_uint_eq(answer.removed, 11);
    ck_assert_ptr_nonnull(strstr(answer.alarm, "11"));
    silt_receipt_free(receipt);
    finish();
}
END_TEST

/* ---- the marker ---- */

START_TEST(trim__marker_is_not_made_where_one_stands)
{
    struct silt_trim_answer answer;
    struct silt_err err;
    char at[SILT_WIRE_ID_TEXT];
    ready();
    aim();
    target.marker_present = false;
    target.marker_to = SILT_WIRE_ID_MIN;
    ck_assert_int_eq(
        silt_trim_mark(&stand.archiver->trimmer, stand.archiver->conn, &target, &answer, &err),
        SILT_ERR_STALE);
    target.marker[strlen(target.marker) - 1] ^=
        1; /* another number: the one that stands is a claim */
    ck_assert_int_eq(
        silt_trim_mark(&stand.archiver->trimmer, stand.archiver->conn, &target, &answer, &err),
        SILT_ERR_STALE);
    stand_marker(&stand, "s", at);
    ck_assert_str_eq(at, "20-0");
    finish();
}
END_TEST

/* ---- the seam ---- */

static void ready_seam(enum silt_seam_mode mode)
{
    ready();
    config.seam = mode;
}

START_TEST(trim__seam_is_set_and_moves_forward_only)
{
    ready_seam(SILT_SEAM_BEST_EFFORT);
    ck_assert_int_eq(shed(), SILT_OK);
    ck_assert_str_eq(test_cmd_text(&stand.server, "GET {s}:archived"), "20-0");
    test_cmd(&stand.server, "SET {s}:archived 99-0"); /* a newer archiver's */
    stand_add(&stand, "s", NULL, 21, 25);
    ck_assert_int_eq(stand_run(&stand), SILT_OK);
    ck_assert_str_eq(test_cmd_text(&stand.server, "GET {s}:archived"), "99-0");
    test_cmd(&stand.server, "SET {s}:archived junk"); /* a cache: what is no seam is replaced */
    stand_add(&stand, "s", NULL, 26, 30);
    ck_assert_int_eq(stand_run(&stand), SILT_OK);
    ck_assert_str_eq(test_cmd_text(&stand.server, "GET {s}:archived"), "30-0");
    finish();
}
END_TEST

START_TEST(trim__seam_never_over_another_type)
{
    ready_seam(SILT_SEAM_STRICT);
    test_cmd(&stand.server, "XADD {s}:archived 1-0 a b");
    ck_assert_int_eq(shed(), SILT_ERR_SERVER_REFUSED);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 20);
    config.seam = SILT_SEAM_BEST_EFFORT;
    look();
    ck_assert_int_eq(shed(), SILT_OK);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN {s}:archived"), 1);
    finish();
}
END_TEST

START_TEST(trim__a_seam_that_cannot_be_written_stops_a_strict_trim)
{
    ready_seam(SILT_SEAM_STRICT);
    test_cmd(&stand.server, "CONFIG SET maxmemory 1");
    ck_assert_int_eq(shed(), SILT_ERR_SERVER_REFUSED);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 20);
    test_cmd(&stand.server, "CONFIG SET maxmemory 0");
    look();
    ck_assert_int_eq(shed(), SILT_OK);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    finish();
}
END_TEST

START_TEST(trim__seam_of_a_branded_stream_is_a_branded_id)
{
    char branded[4][SILT_BRANDED_ID_LEN + 1];
    stand = (struct stand){0};
    stand_start(
        &stand,
        "- { match: \"emq:{q}:stream:s\", ids: branded EVT, keep: { entries: 1 }, seam: strict }");
    for (uint64_t i = 0; i < 4; i++) {
        char wire[SILT_WIRE_ID_TEXT];
        /* from 9 to A to a: byte order, not any locale's */
        struct silt_branded_id id = {{"EVT"}, 4194304ULL * 1000 + (i < 2 ? 9 + i : 33 + i)};
        branded[i][SILT_BRANDED_ID_LEN] = 0;
        ck_assert_int_eq(silt_branded_id_format(id, branded[i]), SILT_OK);
        silt_wire_id_format(silt_snowflake_to_wire(id.snowflake), wire);
        test_cmd(&stand.server, "XADD emq:{q}:stream:s %s id %s", wire, branded[i]);
        ck_assert_int_eq(stand_run(&stand), SILT_OK);
        ck_assert_msg(stand.works[0]->status == SILT_OK, "%s", stand.works[0]->err.sentence);
        if (i > 0)
            ck_assert_str_eq(test_cmd_text(&stand.server, "GET emq:{q}:stream:s:archived"),
                             branded[i]);
    }
    finish();
}
END_TEST

TEST_MAIN(trim__ids_are_compared_as_numbers, trim__calm_stream_is_trimmed,
          trim__entries_that_arrive_survive, trim__deleted_key, trim__another_type,
          trim__deleted_and_recreated, trim__renamed_over,
          trim__same_ids_other_bytes_marker_and_all, trim__counters_set_back,
          trim__max_deleted_set_back, trim__last_id_moved_without_entries,
          trim__longer_than_was_added, trim__first_entry_deleted, trim__trimmed_by_others,
          trim__emptied_by_others, trim__another_archives_marker, trim__marker_moved,
          trim__marker_destroyed, trim__another_replication_history,
          trim__on_a_replica_nothing_is_removed, trim__a_group_created_at_0,
          trim__a_group_that_received_and_did_not_acknowledge,
          trim__groups_that_are_ignored_hold_nothing, trim__script_unknown_to_the_server,
          trim__ids_beyond_a_lua_number, trim__refuses_what_the_receipt_does_not_prove,
          trim__more_removed_than_archived_is_an_alarm, trim__marker_is_not_made_where_one_stands,
          trim__seam_is_set_and_moves_forward_only, trim__seam_never_over_another_type,
          trim__a_seam_that_cannot_be_written_stops_a_strict_trim,
          trim__seam_of_a_branded_stream_is_a_branded_id)
