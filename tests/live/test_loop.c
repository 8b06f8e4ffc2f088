/* The loop on a real server: streams that come while it runs, a server that goes and comes back, thousands of quiet ones. */
#include "siltd_help.h"

START_TEST(loop__a_stream_that_comes_while_it_runs_is_found)
{
    struct daemon d;
    start_server(&d, "",
                 "- { match: 'emq:{*}:stream:*', fold-delay: 20ms, keep: { entries: 1 } }\n");
    start_siltd(&d);
    TEST_WAIT(is_listening(), 10000);
    for (int i = 0; i < 300; i++) /* keys to look through */
        test_cmd(&d.server, "SET other:%d x", i);
    add_entries(&d, "emq:{q}:stream:late", 7);
    TEST_WAIT(stream_number("emq:{q}:stream:late", "folded_entries") == 7, 20000);
    TEST_WAIT(test_cmd_int(&d.server, "XLEN emq:{q}:stream:late") == 1, 10000);
    ck_assert_int_eq(stream_number("other:1", "folded_entries"), -1);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

START_TEST(loop__it_waits_for_a_server_that_is_not_there_yet)
{
    struct daemon d;
    start_server(&d, "", "- { match: a, fold-delay: 20ms }\n");
    test_server_stop(&d.server);
    start_siltd(&d);
    TEST_WAIT(has_said(&d, "event=waiting"), 10000);
    json_t *answer = ask("{\"verb\":\"status\"}\n");
    ck_assert(json_is_false(json_object_get(answer, "connected")));
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(answer, "error"), "code")),
                     "SILT_ERR_SERVER_AWAY");
    json_decref(answer);
    test_server_restart(&d.server);
    add_entries(&d, "a", 5);
    TEST_WAIT(stream_number("a", "folded_entries") == 5, 20000);
    ck_assert_uint_eq(times_said(&d, "event=waiting"), 1);
    ck_assert_uint_eq(times_said(&d, "event=back"), 1);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

START_TEST(loop__a_server_that_goes_and_comes_back_is_gone_on_with)
{
    struct daemon d;
    memset(&d, 0, sizeof d);
    test_server_start(&d.server, "--appendonly", "yes", NULL);
    write_config(&d, "", "- { match: a, fold-delay: 20ms, keep: { entries: 3 } }\n");
    start_siltd(&d);
    add_entries(&d, "a", 10);
    TEST_WAIT(stream_number("a", "folded_entries") == 10, 10000);
    TEST_WAIT(test_cmd_int(&d.server, "XLEN a") == 3, 10000);
    test_server_stop(&d.server);
    TEST_WAIT(has_said(&d, "event=waiting"), 10000);
    test_server_restart(&d.server);
    TEST_WAIT(has_said(&d, "event=back"), 20000);
    ck_assert(test_child_running(&d.child));
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

START_TEST(loop__one_bad_stream_does_not_hold_up_the_others)
{
    struct daemon d;
    start_server(&d, "",
                 "- { match: bad, fold-delay: 20ms }\n- { match: good, fold-delay: 20ms }\n");
    test_cmd(&d.server, "SET bad text");
    start_siltd(&d);
    for (int round = 1; round <= 5; round++) {
        add_entries(&d, "good", 2);
        TEST_WAIT(stream_number("good", "folded_entries") == 2 * round, 10000);
    }
    ck_assert_str_ne(stream_text("bad", "state"), "ok");
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

static long long looks(struct daemon *d)
{
    const char *line = test_server_info(&d->server, "commandstats", "cmdstat_xinfo|stream");
    const char *calls = strstr(line, "calls=");
    return calls ? atoll(calls + 6) : 0;
}

/* At rest a stream is looked at again after nine tenths of idle-look at the soonest, less a quarter of a second of company: here 2450 ms; with a
 * thousand streams and 30s fewer than 40 looks a second. */
START_TEST(loop__quiet_streams_are_hardly_looked_at)
{
    struct daemon d;
    start_server(&d, "idle-look: 3s\n",
                 "- { match: 's*', fold-delay: 100ms, keep: { entries: 5 } }\n");
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof key, "s%d", i);
        add_entries(&d, key, 2);
    }
    start_siltd(&d);
    TEST_WAIT(stream_number("s99", "folded_entries") == 2, 20000);
    /* All have come to rest when the pauses have doubled to the limit. */
    TEST_WAIT(stream_number("s0", "next_look_ms") > 2400, 30000);
    TEST_WAIT(stream_number("s99", "looked_ms_ago") > 1500, 30000);
    long long before = looks(&d), began = test_now_ms();
    TEST_WAIT(test_now_ms() - began >= 5000, 20000);
    long long made = looks(&d) - before, took = test_now_ms() - began;
    ck_assert_msg(made > 0 && made <= 100 * (took / 2450 + 1), "%lld looks in %lld ms", made, took);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

TEST_MAIN(loop__a_stream_that_comes_while_it_runs_is_found,
          loop__it_waits_for_a_server_that_is_not_there_yet,
          loop__a_server_that_goes_and_comes_back_is_gone_on_with,
          loop__one_bad_stream_does_not_hold_up_the_others,
          loop__quiet_streams_are_hardly_looked_at)
