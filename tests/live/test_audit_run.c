/* The audit itself: a share a pass, stored and resumed, begun again, in the face of others and of kill -9. */
#include <sys/wait.h>

#include "adopt.h"
#include "audit_help.h"

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

/* A restart loses nothing and is being audited; then an older state is put back and its counters run past what was seen: what went with the newer state is told. */
START_TEST(audit__rolled_back_in_the_middle)
{
    struct silt_gap_row gap;
    stand_start(&stand, ON_TRIM8);
    add(10, 220, "a");
    test_cmd(&stand.server, "XGROUP CREATE s g 0");
    run();
    take_dump();
    add(230, 240, "a");
    test_cmd(&stand.server, "XGROUP SETID s g 100-0");
    run(); /* 16 folded, 24 seen */
    ck_assert_uint_eq(row()->custody.ms, 160);
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 14);
    change_replid();
    stand.archiver->limits.audit_entries = 1;
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_AUDIT_PENDING);
    put_back(&stand.server); /* 230 and 240 are gone */
    add(310, 340, "b");
    stand.archiver->limits.audit_entries = 10000;
    run();
    ck_assert(stand_gap(&stand, "s", 0, &gap));
    ck_assert_int_eq(gap.cause, SILT_GAP_ROLLED_BACK);
    ck_assert_int_eq(gap.precision, SILT_GAP_BETWEEN);
    ck_assert_uint_eq(gap.count_max, 8);
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    ck_assert_uint_eq(row()->life, 1);
    finish();
}
END_TEST

/* A rollback is being audited when the stream is adopted, and by then its counters have run past what was seen: what went is told all the same. */
static void roll_back_and_adopt(bool release_first)
{
    char at[SILT_WIRE_ID_TEXT], name[128];
    struct silt_gap_row gap;
    struct silt_adoption adoption;
    stand_start(&stand, ON_TRIM8);
    add(10, 220, "a");
    test_cmd(&stand.server, "XGROUP CREATE s g 0");
    run();
    take_dump();
    add(230, 240, "a");
    test_cmd(&stand.server, "XGROUP SETID s g 100-0");
    run(); /* 16 folded, 24 seen, 14 live */
    put_back(&stand.server);
    stand.archiver->limits.audit_entries = 1;
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    ck_assert(row()->audit.went_back);
    add(310, 400, "b");
    test_cmd(&stand.server, "XTRIM s MINID = 110");
    if (release_first) {
        ck_assert_int_eq(
            silt_archiver_release(stand.archiver, stand.works[0], false, &adoption, &stand.err),
            SILT_OK);
    } else {
        snprintf(name, sizeof name, "%s", stand_marker(&stand, "s", at));
        test_cmd(&stand.server, "XGROUP DESTROY s %s", name);
    }
    ck_assert_int_eq(
        silt_archiver_adopt(stand.archiver, stand.works[0], false, &adoption, &stand.err), SILT_OK);
    restart();
    run();
    ck_assert(stand_gap(&stand, "s", 0, &gap));
    ck_assert_int_eq(gap.precision, SILT_GAP_BETWEEN);
    ck_assert_uint_eq(gap.count_max, 8);
    ck_assert(!stand_gap(&stand, "s", 1, &gap));
    ck_assert_uint_eq(row()->life, 1);
    finish();
}

START_TEST(audit__rolled_back_and_adopted_in_the_middle)
{
    roll_back_and_adopt(false);
}
END_TEST

START_TEST(audit__rolled_back_and_released_in_the_middle)
{
    roll_back_and_adopt(true);
}
END_TEST

/* A fold stopped short, and what lay above it is gone: no reason to pass by an entry that was put in below. */
START_TEST(audit__put_in_below_a_fold_that_stopped_short)
{
    stand_start(&stand, "- { match: s, ids: wire, keep: { entries: 8 } }");
    add(10, 100, "a");
    stand.archiver->limits.fold_entries = 5;
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    ck_assert_uint_eq(row()->custody.ms, 50);
    test_cmd(&stand.server, "XTRIM s MAXLEN 0");
    test_cmd(&stand.server, "XSETID s 1-0");
    add(40, 40, "a");
    test_cmd(&stand.server, "XADD s 45-0 n b");
    add(50, 50, "a");
    test_cmd(&stand.server, "XSETID s 200-0");
    stand.archiver->limits.fold_entries = 100;
    run();
    ck_assert_uint_eq(row()->late_entries, 1);
    add(210, 330, "a");
    run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 8);
    ck_assert_uint_eq(stand_archived(&stand, "s"), 19);
    ck_assert_ptr_nonnull(strstr(walk(0), "40a 45b 50a"));
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_CLEAR);
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
    expect_text("SILT_ERR_DOUBT");
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
    expect_text("155b");
    expect(160, 190, "a");
    expect_text("200b");
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

/* After a failover LAST may lie below W, and entries arrive between the two while the audit reads: C of the audit is LAST of its opening look, or they would lie at or
 * below C unseen (protocol §3; found by tests/model/custody.pml). */
START_TEST(audit__entries_that_arrive_below_w_while_it_reads)
{
    stand_start(&stand, SHADOW);
    add(10, 300, "a");
    run();
    take_dump();
    add(310, 400, "a");
    run();
    put_back(&stand.server);
    stand.archiver->limits.audit_entries = 10;
    ck_assert_int_eq(stand_pass(&stand), SILT_OK);
    ck_assert_uint_eq(row()->audit.through.ms, 300);
    test_cmd(&stand.server, "XADD s 305-0 n b");
    /* Neither the count (one read already goes) nor the last entry (it lies above W) would show it afterwards. */
    test_cmd(&stand.server, "XDEL s 20-0");
    test_cmd(&stand.server, "XADD s 500-0 n a");
    run();
    ck_assert_uint_eq(row()->life, 1);
    ck_assert_uint_eq(row()->late_entries, 1);
    expect(10, 300, "a");
    expect_text("305b");
    expect(310, 400, "a");
    expect(500, 500, "a");
    check_walk();
    finish();
}
END_TEST

/* Killed with the verdict committed and no marker made, then with the marker made: each start draws a number of its own, durable before its marker is made
 * (protocol §1), so the next start knows it for ours. */
START_TEST(audit__killed_twice_knows_its_own_marker)
{
    char at[SILT_WIRE_ID_TEXT];
    if (!test_faults_built_in()) return;
    stand_start(&stand, KEEP5);
    stand_close(&stand);
    add(10, 150, "a");
    ck_assert_int_eq(stand_child(&stand, NULL), 0); /* not in this process: see above */
    test_cmd(&stand.server, "XGROUP DESTROY s %s", stand_marker(&stand, "s", at));
    ck_assert(WIFSIGNALED(stand_child(&stand, "SILT_FAULT=after-verdict=kill")));
    ck_assert(WIFSIGNALED(stand_child(&stand, "SILT_FAULT=after-marker-made=kill")));
    ck_assert_int_eq(stand_child(&stand, NULL), 0);
    expected[0] = '\0';
    expect(10, 150, "a");
    ck_assert_str_eq(walk(0), expected);
    ck_assert_int_eq(row()->verdict, SILT_VERDICT_CLEAR);
    ck_assert_uint_eq(row()->life, 1);
    finish();
}
END_TEST

TEST_MAIN(audit__entries_that_arrive_below_w_while_it_reads,
          audit__killed_twice_knows_its_own_marker, audit__put_in_below_a_fold_that_stopped_short,
          audit__reads_a_share_a_pass_and_resumes, audit__begins_again_when_the_chain_breaks_again,
          audit__recreated_in_the_middle, audit__rolled_back_in_the_middle,
          audit__rolled_back_and_adopted_in_the_middle,
          audit__rolled_back_and_released_in_the_middle,
          audit__b3_d2_a_producer_that_trims_meanwhile, audit__pending_touches_nothing,
          audit__killed_anywhere_loses_no_work_twice)
