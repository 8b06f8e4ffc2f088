/* Streams without a marker (claim: key, claim: off; protocol §1, §4), with scripts and without: nothing is trimmed that was not compared byte for byte right before,
 * nothing is written into the stream, groups hold, and another's claim is respected. */
#include "adopt.h"
#include "alloc.h"
#include "stand.h"

#include <string.h>

#define KEEP5(claim) "- { match: s, ids: wire, keep: { entries: 5 }, claim: " claim " }"

static struct stand stand;
static struct test_oracle oracle;

static void start(const char *streams)
{
    stand_start(&stand, streams);
    stand_add(&stand, "s", &oracle, 1, 40);
}

static void finish(void)
{
    test_oracle_release(&oracle);
    stand_release(&stand);
    test_remove_all(stand.archive);
    stand = (struct stand){0};
}

static void check_run(void)
{
    enum silt_status status = stand_run(&stand);
    ck_assert_msg(status == SILT_OK && stand.works[0]->status == SILT_OK, "%s, %s",
                  stand.err.sentence, stand.works[0]->err.sentence);
}

static bool was_sent(const char *command)
{
    char name[64];
    snprintf(name, sizeof name, "cmdstat_%s", command);
    return test_server_info(&stand.server, "commandstats", name)[0] != 0;
}

/* The user without scripts and without XGROUP, as some services give it. */
static void log_in_without_scripts(void)
{
    const char *file = test_path("password");
    test_file_write(file, "sesame\n", 7);
    test_cmd(&stand.server,
             "ACL SETUSER silt reset on >sesame ~s ~{s}:silt-claim +xrange +xrevrange +xdel "
             "+xinfo|stream +xinfo|groups +xpending +info +time +get +set +multi +exec");
    stand_close(&stand);
    stand.config->user = silt_strdup("silt");
    stand.config->password_file = silt_strdup(file);
    stand_open(&stand, NULL);
}

static void check_whole_life(bool key)
{
    for (uint64_t from = 41; from <= 81; from += 20) {
        check_run();
        ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
        ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
        stand_add(&stand, "s", &oracle, from, from + 19);
        stand_close(&stand); /* a restart between two */
        stand_open(&stand, NULL);
    }
    check_run();
    ck_assert_uint_eq(stand_archived(&stand, "s"), 100);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    ck_assert_uint_eq(test_cmd(&stand.server, "XINFO GROUPS s")->elements, 0);
    ck_assert_int_eq(test_cmd_int(&stand.server, "EXISTS {s}:silt-claim"), key);
    ck_assert_int_eq(test_cmd_int(&stand.server, "DBSIZE"), key ? 2 : 1);
    ck_assert_uint_eq(stand_row(&stand, "s")->gap_entries, 0);
    ck_assert_uint_eq(stand_row(&stand, "s")->late_entries, 0);
    ck_assert(was_sent("xdel"));
    ck_assert(!was_sent("xtrim") && !was_sent("xgroup|create"));
}

START_TEST(claims__off_by_a_script)
{
    start(KEEP5("off"));
    check_whole_life(false);
    ck_assert(was_sent("evalsha"));
    finish();
}
END_TEST

START_TEST(claims__key_by_a_script)
{
    start(KEEP5("key"));
    check_whole_life(true);
    finish();
}
END_TEST

START_TEST(claims__off_without_scripts)
{
    start(KEEP5("off"));
    log_in_without_scripts();
    check_whole_life(false);
    ck_assert_ptr_null(
        strstr(test_server_info(&stand.server, "commandstats", "cmdstat_evalsha"), "calls=1"));
    finish();
}
END_TEST

START_TEST(claims__key_without_scripts)
{
    start(KEEP5("key"));
    log_in_without_scripts();
    check_whole_life(true);
    finish();
}
END_TEST

/* A reader asks for a marker only where one was. */
START_TEST(claims__a_reader_reads_across_the_seam)
{
    struct test_outcome o;
    start(KEEP5("off"));
    check_run();
    stand_add(&stand, "s", &oracle, 41, 50);
    TEST_PROGRAM(&o, "silt", "read", "s", "--count", "--archive", stand.archive, "--valkey",
                 stand.server.address);
    ck_assert_msg(o.code == 0 && atoi(o.out) == 50, "%s%s", o.out, o.err);
    test_outcome_release(&o);
    finish();
}
END_TEST

/* The same id with other bytes, and nothing else to show it: DEL, and as many entries as before. Found before anything is removed. */
static void check_other_bytes(bool scripts)
{
    start("- { match: s, ids: wire, claim: off }");
    if (!scripts) log_in_without_scripts();
    check_run();
    /* an entry in the middle: its neighbours at both edges are as they were */
    test_cmd(&stand.server, "DEL s");
    for (int i = 1; i <= 40; i++)
        test_cmd(&stand.server, "XADD s %d-0 n %s%d kind plain", i, i == 10 ? "other " : "value ",
                 i);
    stand_close(&stand);
    stand_open(&stand, KEEP5("off"));
    if (!scripts) log_in_without_scripts();
    enum silt_status status = SILT_OK;
    for (int i = 0; i < 20 && status == SILT_OK; i++)
        status = stand_pass(&stand);
    /* a fork: both are kept, each whole, and the new one is trimmed under its own life */
    ck_assert_int_ge(test_cmd_int(&stand.server, "XLEN s"), 5);
    ck_assert_uint_gt(stand_row(&stand, "s")->life, 1);
    finish();
}

START_TEST(claims__other_bytes_under_the_same_id_are_never_removed_by_script)
{
    check_other_bytes(true);
}
END_TEST

START_TEST(claims__other_bytes_under_the_same_id_are_never_removed_without_scripts)
{
    check_other_bytes(false);
}
END_TEST

START_TEST(claims__groups_hold)
{
    start(KEEP5("off"));
    test_cmd(&stand.server, "XGROUP CREATE s readers 0");
    test_cmd(&stand.server, "XREADGROUP GROUP readers me COUNT 38 STREAMS s >");
    for (int i = 1; i <= 20; i++)
        test_cmd(&stand.server, "XACK s readers %d-0", i);
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 20); /* 21-0 is pending */
    ck_assert_str_eq(test_stream_text(&stand.server, "s", "last-generated-id"), "40-0");
    test_cmd(&stand.server, "XGROUP DESTROY s readers");
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    finish();
}
END_TEST

START_TEST(claims__groups_that_cannot_be_read_hold_the_trim)
{
    start(KEEP5("off"));
    log_in_without_scripts();
    test_cmd(&stand.server, "ACL SETUSER silt -xinfo|groups");
    ck_assert_int_eq(stand_run(&stand), SILT_OK);
    ck_assert_int_eq(stand.works[0]->status, SILT_ERR_SERVER_DENIED);
    ck_assert_ptr_nonnull(strstr(stand.works[0]->err.sentence, "XINFO GROUPS is denied"));
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 40);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 40); /* folded it is */
    finish();
}
END_TEST

START_TEST(claims__another_archives_claim_is_respected)
{
    static const struct {
        const char *command;
        enum silt_status status;
    } cases[] = {
        {"SET {s}:silt-claim silt:01234567-89ab-cdef-0123-456789abcdef:1:7", SILT_ERR_CLAIMED},
        {"SET {s}:silt-claim something-else", SILT_ERR_CLAIMED},
        {"XGROUP CREATE s silt:01234567-89ab-cdef-0123-456789abcdef:1:7 0", SILT_ERR_CLAIMED},
        {"LPUSH {s}:silt-claim x", SILT_ERR_WRONG_TYPE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start(KEEP5("key"));
        test_cmd(&stand.server, cases[i].command);
        ck_assert_int_eq(stand_run(&stand), SILT_OK);
        ck_assert_msg(stand.works[0]->status == cases[i].status, "%s: %s", cases[i].command,
                      stand.works[0]->err.sentence);
        ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 40);
        finish();
    }
}
END_TEST

/* Taken over while we were at work: nothing more is trimmed; lost (evicted, say): it is made again. */
START_TEST(claims__a_claim_key_that_changes_stops_the_trim)
{
    start(KEEP5("key"));
    check_run();
    stand_add(&stand, "s", &oracle, 41, 60);
    test_cmd(&stand.server, "DEL {s}:silt-claim");
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "EXISTS {s}:silt-claim"), 1);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
    stand_add(&stand, "s", &oracle, 61, 80);
    test_cmd(&stand.server, "SET {s}:silt-claim silt:01234567-89ab-cdef-0123-456789abcdef:1:7");
    ck_assert_int_eq(stand_run(&stand), SILT_OK);
    ck_assert_int_eq(stand.works[0]->status, SILT_ERR_CLAIMED);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 25);
    ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    finish();
}
END_TEST

START_TEST(claims__a_key_without_a_slot_of_its_own_is_refused)
{
    stand_start(&stand, "- { match: 'a}b', ids: wire, claim: key }");
    test_cmd(&stand.server, "XADD a}b 1-0 n 1");
    ck_assert_int_eq(stand_run(&stand), SILT_OK);
    ck_assert_int_eq(stand.works[0]->status, SILT_ERR_KEY);
    ck_assert_uint_eq(stand_archived(&stand, "a}b"), 0);
    finish();
}
END_TEST

START_TEST(claims__adopt_and_release_have_nothing_to_work_on)
{
    struct silt_adoption adoption;
    struct silt_err err = {0};
    start(KEEP5("off"));
    check_run();
    ck_assert_int_eq(silt_archiver_adopt(stand.archiver, stand.works[0], false, &adoption, &err),
                     SILT_ERR_PROTECTED);
    ck_assert_int_eq(silt_archiver_release(stand.archiver, stand.works[0], false, &adoption, &err),
                     SILT_ERR_PROTECTED);
    ck_assert_ptr_nonnull(strstr(err.sentence, "claim: off"));
    ck_assert_uint_eq(test_cmd(&stand.server, "XINFO GROUPS s")->elements, 0);
    finish();
}
END_TEST

/* From one claim to another and back: audited, nothing lost, nothing twice. */
START_TEST(claims__settings_may_change)
{
    static const char *const ways[] = {KEEP5("group"), KEEP5("off"), KEEP5("key"), KEEP5("group")};
    uint64_t top = 40;
    start(ways[0]);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        stand_close(&stand);
        stand_open(&stand, ways[i]);
        stand_add(&stand, "s", &oracle, top + 1, top + 20);
        top += 20;
        check_run();
        ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 5);
        ck_assert_str_eq(stand_difference(&stand, "s", &oracle), "");
    }
    ck_assert_uint_eq(stand_row(&stand, "s")->gap_entries, 0);
    finish();
}
END_TEST

TEST_MAIN(claims__off_by_a_script, claims__key_by_a_script, claims__off_without_scripts,
          claims__key_without_scripts, claims__a_reader_reads_across_the_seam,
          claims__other_bytes_under_the_same_id_are_never_removed_by_script,
          claims__other_bytes_under_the_same_id_are_never_removed_without_scripts,
          claims__groups_hold, claims__groups_that_cannot_be_read_hold_the_trim,
          claims__another_archives_claim_is_respected,
          claims__a_claim_key_that_changes_stops_the_trim,
          claims__a_key_without_a_slot_of_its_own_is_refused, claims__settings_may_change,
          claims__adopt_and_release_have_nothing_to_work_on)
