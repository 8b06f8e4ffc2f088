/* Groups and the trim (field reports B1, B2): whose entries stay, who is let go, and how a consumer gets back what was trimmed while it was pending. */
#include "siltd_help.h"
#include "stand.h"

#include <inttypes.h>
#include <time.h>

static struct stand stand;

static void run(void)
{
    ck_assert_msg(stand_run(&stand) == SILT_OK, "%s", stand.err.sentence);
    for (size_t i = 0; i < stand.work_count; i++)
        ck_assert_msg(stand.works[i]->status == SILT_OK, "%s", stand.works[i]->err.sentence);
}

static void finish(void)
{
    stand_release(&stand);
}

static const char *first_live(const char *key)
{
    return test_stream_text(&stand.server, key, "recorded-first-entry-id");
}

/* group-limit: age goes by the oldest entry that a group holds: the abandoned group is let go, pending entries and all, the others hold as before. */
START_TEST(groups__an_age_limit_frees_the_abandoned_group_alone)
{
    stand_start(&stand,
                "- { match: s, ids: wire, keep: { entries: 1 }, group-limit: { age: 1h } }");
    uint64_t now = (uint64_t)time(NULL) * 1000, minute = 60000;
    for (uint64_t i = 0; i < 12; i++) /* two hours ago .. ten minutes ago */
        test_cmd(&stand.server, "XADD s %" PRIu64 "-0 n %" PRIu64, now - (120 - 10 * i) * minute,
                 i);
    test_cmd(&stand.server, "XGROUP CREATE s abandoned 0");
    test_cmd(&stand.server, "XREADGROUP GROUP abandoned c COUNT 3 STREAMS s >");
    test_cmd(&stand.server, "XGROUP CREATE s near %" PRIu64 "-0", now - 30 * minute);
    run();
    ck_assert_uint_eq(strtoull(first_live("s"), NULL, 10), now - 20 * minute);
    ck_assert_int_eq(stand.works[0]->held_by, SILT_HELD_GROUP);
    ck_assert_str_eq(stand.works[0]->held_name, "near");
    ck_assert_uint_eq(stand_archived(&stand, "s"), 12);
    finish();
}
END_TEST

/* group-limit: entries, and a pending entry as the holder: named as such until it is acknowledged. */
START_TEST(groups__an_entries_limit_frees_the_abandoned_group_alone)
{
    stand_start(&stand,
                "- { match: s, ids: wire, keep: { entries: 1 }, group-limit: { entries: 20 } }");
    stand_add(&stand, "s", NULL, 1, 40);
    test_cmd(&stand.server, "XGROUP CREATE s abandoned 3-0");
    test_cmd(&stand.server, "XGROUP CREATE s busy 30-0");
    test_cmd(&stand.server, "XREADGROUP GROUP busy c COUNT 5 STREAMS s >");
    test_cmd(&stand.server, "XACK s busy 31-0 32-0");
    run();
    ck_assert_str_eq(first_live("s"), "33-0");
    ck_assert_int_eq(stand.works[0]->held_by, SILT_HELD_PENDING);
    ck_assert_str_eq(stand.works[0]->held_name, "busy");
    /* What is left is within the bound: 8 entries may be held by anybody. */
    test_cmd(&stand.server, "XGROUP DESTROY s abandoned");
    test_cmd(&stand.server, "XACK s busy 33-0 34-0");
    run();
    ck_assert_str_eq(first_live("s"), "35-0");
    test_cmd(&stand.server, "XACK s busy 35-0"); /* now it holds by what it was not given */
    run();
    ck_assert_str_eq(first_live("s"), "36-0");
    ck_assert_int_eq(stand.works[0]->held_by, SILT_HELD_GROUP);
    finish();
}
END_TEST

/* silt get KEY ID beside the daemon's archive; its standard output is in *ret. */
static void silt_get(const struct daemon *d, const char *id, struct test_outcome *ret)
{
    const char *argv[] = {"silt", "get", "s", id, "--config", d->config, NULL};
    test_program(ret, argv, NULL, NULL, 60000);
}

/* The way that silt-get(1) shows: the server answers nil for what was trimmed while pending, XPENDING names it, the archive has it. */
START_TEST(groups__b1_a_pending_entry_that_was_trimmed_is_got_from_the_archive)
{
    struct daemon d;
    struct test_outcome o;
    start_server(&d, "", "- { match: s, ids: wire, keep: { entries: 1 }, groups: ignore }\n");
    for (int i = 1; i <= 9; i++)
        test_cmd(&d.server, "XADD s %d-0 n v%d", i, i);
    test_cmd(&d.server, "XGROUP CREATE s g 0");
    test_cmd(&d.server, "XREADGROUP GROUP g c COUNT 5 STREAMS s >");
    test_cmd(&d.server, "XACK s g 1-0 2-0 4-0");
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_msg(o.code == 0, "%s", o.err);
    test_outcome_release(&o);
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN s"), 1);

    redisReply *reply = test_cmd(&d.server, "XREADGROUP GROUP g c STREAMS s 0");
    redisReply *entries = reply->element[0]->element[1];
    ck_assert_uint_eq(entries->elements, 2);
    ck_assert_str_eq(entries->element[0]->element[0]->str, "3-0");
    ck_assert_int_eq(entries->element[0]->element[1]->type, REDIS_REPLY_NIL);
    reply = test_cmd(&d.server, "XPENDING s g - + 10 c");
    ck_assert_uint_eq(reply->elements, 2);
    ck_assert_str_eq(reply->element[0]->element[0]->str, "3-0");
    ck_assert_str_eq(reply->element[1]->element[0]->str, "5-0");
    const char *ids[] = {"3-0", "5-0"};
    for (size_t i = 0; i < 2; i++) {
        char want[64];
        const char *id = ids[i];
        snprintf(want, sizeof want, "n = v%c\n", id[0]);
        silt_get(&d, id, &o);
        ck_assert_msg(o.code == 0 && strstr(o.out, want) && strstr(o.out, "(archive)"), "%s: %s%s",
                      id, o.out, o.err);
        test_outcome_release(&o);
        test_cmd(&d.server, "XACK s g %s", id);
    }
    ck_assert_int_eq(test_cmd(&d.server, "XPENDING s g - + 10 c")->elements, 0);
    test_server_release(&d.server);
}
END_TEST

/* A group created below the first live entry, after a trim, is given nothing of what lies between: siltd says so, with the number; a group that keeps pace is not named. */
START_TEST(groups__b2_a_group_created_at_0_after_a_trim_is_reported)
{
    struct daemon d;
    struct test_outcome o;
    start_server(&d, "", "- { match: s, ids: wire, keep: { entries: 4 } }\n");
    for (int i = 1; i <= 9; i++)
        test_cmd(&d.server, "XADD s %d-0 n v", i);
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_msg(o.code == 0 && !strstr(o.err, "group behind"), "%s", o.err);
    test_outcome_release(&o);
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN s"), 4);
    test_cmd(&d.server, "XGROUP CREATE s pace 5-0");
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_msg(!strstr(o.err, "group behind"), "%s", o.err);
    test_outcome_release(&o);
    test_cmd(&d.server, "XGROUP CREATE s late 0");
    run_siltd(&d, "--once", NULL, &o);
    const char *said = strstr(o.err, "group behind");
    ck_assert_msg(said && strstr(said, "group=late") && strstr(said, "entries=5") &&
                      strstr(said, "first_live=6-0") && !strstr(said, "group=pace"),
                  "%s", o.err);
    ck_assert_msg(!strstr(said + 1, "group behind"), "%s", o.err); /* once */
    test_outcome_release(&o);
    test_server_release(&d.server);
}
END_TEST

TEST_MAIN(groups__an_age_limit_frees_the_abandoned_group_alone,
          groups__an_entries_limit_frees_the_abandoned_group_alone,
          groups__b1_a_pending_entry_that_was_trimmed_is_got_from_the_archive,
          groups__b2_a_group_created_at_0_after_a_trim_is_reported)
