/* The loop on a real server: streams that come while it runs, a server that goes and comes back. */
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

TEST_MAIN(loop__a_stream_that_comes_while_it_runs_is_found,
          loop__it_waits_for_a_server_that_is_not_there_yet,
          loop__a_server_that_goes_and_comes_back_is_gone_on_with,
          loop__one_bad_stream_does_not_hold_up_the_others)
