/* siltd as its operator meets it: once, plan, running, signals, the socket. */
#include "siltd_help.h"

#include <dirent.h>
#include <sys/stat.h>

static bool has_group(struct daemon *d, const char *key)
{
    return test_cmd(&d->server, "XINFO GROUPS %s", key)->elements > 0;
}

START_TEST(siltd__once_folds_and_trims_until_all_are_within_keep)
{
    struct daemon d;
    struct test_outcome o;
    start_server(&d, "page: { entries: 100 }\n",
                 "- { match: a, keep: { entries: 10 } }\n- { match: b }\n");
    add_entries(&d, "a", 950);
    add_entries(&d, "b", 50);
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_msg(o.code == 0, "%d: %s", o.code, o.err);
    ck_assert_str_eq(o.out, "");
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN a"), 10);
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN b"), 50); /* no keep: nothing is trimmed */
    test_outcome_release(&o);
    run_siltd(&d, "--once", NULL, &o); /* nothing to do: nothing done */
    ck_assert_int_eq(o.code, 0);
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN a"), 10);
    ck_assert_ptr_null(strstr(o.err, "event=folded"));
    test_outcome_release(&o);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__once_without_a_server_ends_with_4)
{
    struct daemon d;
    struct test_outcome o;
    start_server(&d, "", "- { match: a }\n");
    test_server_stop(&d.server);
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_int_eq(o.code, 4);
    ck_assert_ptr_nonnull(strstr(o.err, "siltd: "));
    test_outcome_release(&o);
    run_siltd(&d, "--plan", NULL, &o);
    ck_assert_int_eq(o.code, 4);
    ck_assert_str_eq(o.out, "");
    test_outcome_release(&o);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__a_stream_that_two_patterns_match_is_left_alone)
{
    struct daemon d;
    struct test_outcome o;
    start_server(
        &d, "",
        "- { match: 'a*', keep: { entries: 1 } }\n- { match: '*z', keep: { entries: 1 } }\n");
    add_entries(&d, "az", 5);
    add_entries(&d, "ab", 5);
    add_entries(&d, "bz", 5);
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_int_eq(o.code, 1);
    ck_assert_ptr_nonnull(strstr(o.err, "event=ambiguous stream=az match=a* other=*z"));
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN az"), 5);
    ck_assert(!has_group(&d, "az"));
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN ab"), 1);
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN bz"), 1);
    test_outcome_release(&o);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__keys_of_another_type_and_silts_own_keys_are_not_touched)
{
    struct daemon d;
    struct test_outcome o;
    start_server(&d, "", "- { match: wrong }\n- { match: '*', keep: { entries: 1 } }\n");
    test_cmd(&d.server, "SET wrong text");
    test_cmd(&d.server, "SET other text");
    add_entries(&d, "{x}:archived", 3);
    add_entries(&d, "good", 3);
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_int_eq(o.code, 1); /* `wrong` is named, and no stream */
    ck_assert_ptr_nonnull(strstr(o.err, "stream=wrong"));
    ck_assert_str_eq(test_cmd_text(&d.server, "GET wrong"), "text");
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN {x}:archived"), 3);
    ck_assert(!has_group(&d, "{x}:archived"));
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN good"), 1);
    test_outcome_release(&o);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__a_key_that_is_not_there_is_told_and_served_when_it_comes)
{
    struct daemon d;
    struct test_outcome o;
    start_server(&d, "", "- { match: later, fold-delay: 20ms }\n");
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_msg(o.code == 0, "%d: %s", o.code, o.err);
    ck_assert_ptr_nonnull(
        strstr(o.err, "event=waiting stream=later reason=\"the key is not there yet\""));
    test_outcome_release(&o);
    start_siltd(&d);
    TEST_WAIT(strcmp(stream_text("later", "state"), "waiting") == 0, 10000);
    ck_assert_str_eq(stream_text("later", "verdict"), "waiting");
    ck_assert_str_ne(stream_text("later", "reason"), "");
    add_entries(&d, "later", 4);
    TEST_WAIT(stream_number("later", "folded_entries") == 4, 20000);
    ck_assert_str_eq(stream_text("later", "state"), "ok");
    ck_assert_str_eq(stream_text("later", "verdict"), "clear");
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__plan_changes_nothing)
{
    struct daemon d;
    struct test_outcome o;
    struct stat st;
    start_server(&d, "", "- { match: 'a*', keep: { entries: 30 } }\n");
    add_entries(&d, "a", 100);
    run_siltd(&d, "--plan", "--json", &o);
    ck_assert_msg(o.code == 0, "%d: %s", o.code, o.err);
    json_t *plan = json_loads(o.out, 0, NULL);
    ck_assert_ptr_nonnull(plan);
    const json_t *stream = json_array_get(json_object_get(plan, "streams"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(stream, "key")), "a");
    ck_assert_int_eq(json_integer_value(json_object_get(stream, "live_entries")), 100);
    ck_assert_int_eq(json_integer_value(json_object_get(stream, "fold_entries")), 100);
    ck_assert_int_eq(json_integer_value(json_object_get(stream, "trim_entries")), 70);
    ck_assert_str_eq(json_string_value(json_object_get(stream, "held_by")), "retention");
    ck_assert_int_gt(json_integer_value(json_object_get(plan, "trim_memory_bytes")), 0);
    json_decref(plan);
    test_outcome_release(&o);
    run_siltd(&d, "--plan", NULL, &o);
    ck_assert_int_eq(o.code, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "TO TRIM"));
    ck_assert_ptr_nonnull(strstr(o.out, "retention"));
    test_outcome_release(&o);
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN a"), 100);
    ck_assert(!has_group(&d, "a"));
    ck_assert_int_eq(stat(test_path("archive"), &st), -1);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__a_key_that_was_archived_and_is_gone_is_a_finding)
{
    struct daemon d;
    struct test_outcome o;
    start_server(&d, "", "- { match: a }\n");
    add_entries(&d, "a", 10);
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_msg(o.code == 0, "%d: %s", o.code, o.err);
    test_outcome_release(&o);
    test_cmd(&d.server, "DEL a");
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_msg(o.code == 1, "%d: %s", o.code, o.err);
    ck_assert_ptr_nonnull(strstr(o.err, "the key is gone"));
    test_outcome_release(&o);
    run_siltd(&d, "--plan", NULL, &o);
    ck_assert_msg(o.code == 1, "%d: %s", o.code, o.out);
    ck_assert_ptr_nonnull(strstr(o.out, "verdict the key is gone"));
    test_outcome_release(&o);
    test_server_release(&d.server);
}
END_TEST

/* The archive is there, from another stream, and has no row for this one. */
START_TEST(siltd__plan_shows_streams_that_the_archive_does_not_know)
{
    struct daemon d;
    struct test_outcome o;
    start_server(&d, "", "- { match: a }\n- { match: b, keep: { entries: 4 } }\n- { match: c }\n");
    add_entries(&d, "a", 10);
    run_siltd(&d, "--once", NULL, &o);
    test_outcome_release(&o);
    add_entries(&d, "b", 10);
    run_siltd(&d, "--plan", "--json", &o);
    ck_assert_msg(o.code == 0, "%d: %s", o.code, o.out);
    json_t *plan = json_loads(o.out, 0, NULL);
    const json_t *b = json_array_get(json_object_get(plan, "streams"), 1);
    ck_assert(json_is_null(json_object_get(b, "error")));
    ck_assert_int_eq(json_integer_value(json_object_get(b, "fold_entries")), 10);
    ck_assert_int_eq(json_integer_value(json_object_get(b, "trim_entries")), 6);
    json_decref(plan);
    test_outcome_release(&o);
    run_siltd(&d, "--plan", NULL, &o);
    ck_assert_int_eq(o.code, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "verdict the key is not there yet"));
    test_outcome_release(&o);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__plan_works_beside_a_running_siltd)
{
    struct daemon d;
    struct test_outcome o;
    start_server(&d, "", "- { match: a, keep: { entries: 30 } }\n");
    add_entries(&d, "a", 100);
    start_siltd(&d);
    TEST_WAIT(test_cmd_int(&d.server, "XLEN a") == 30, 10000);
    run_siltd(&d, "--plan", "--json", &o);
    ck_assert_msg(o.code == 0, "%d: %s", o.code, o.err);
    ck_assert_ptr_nonnull(strstr(o.out, "\"trim_entries\":0"));
    test_outcome_release(&o);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__runs_until_sigterm_and_leaves_nothing_unfolded)
{
    struct daemon d;
    struct test_outcome o;
    start_server(&d, "", "- { match: a, fold-delay: 50ms, keep: { entries: 5 } }\n");
    start_siltd(&d);
    TEST_WAIT(is_listening(), 10000);
    add_entries(&d, "a", 40);
    TEST_WAIT(stream_number("a", "folded_entries") == 40, 10000);
    TEST_WAIT(test_cmd_int(&d.server, "XLEN a") == 5, 10000);
    ck_assert_str_eq(stream_text("a", "state"), "ok");
    ck_assert_int_eq(stream_number("a", "lag_entries"), 0);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    ck_assert(!is_listening());
    run_siltd(&d, "--plan", "--json", &o);
    ck_assert_ptr_nonnull(strstr(o.out, "\"fold_entries\":0"));
    test_outcome_release(&o);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__sigint_ends_it_as_sigterm_does)
{
    struct daemon d;
    start_server(&d, "", "- { match: a }\n");
    start_siltd(&d);
    TEST_WAIT(is_listening(), 10000);
    ck_assert_int_eq(end_siltd(&d, SIGINT), 0);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__ends_in_time_while_the_server_does_not_answer)
{
    struct daemon d;
    start_server(&d, "", "- { match: a, fold-delay: 20ms }\n");
    add_entries(&d, "a", 5);
    start_siltd(&d);
    TEST_WAIT(stream_number("a", "folded_entries") == 5, 10000);
    test_server_pause(&d.server);
    TEST_WAIT(stream_number("a", "looked_ms_ago") > 200,
              20000); /* it waits; the socket is served all the same */
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_resume(&d.server);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__a_second_one_on_the_same_archive_is_refused)
{
    struct daemon d;
    struct test_outcome o;
    char pid[32];
    start_server(&d, "", "- { match: a }\n");
    start_siltd(&d);
    TEST_WAIT(is_listening(), 10000);
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_int_eq(o.code, 6);
    snprintf(pid, sizeof pid, "%d", (int)d.child.pid);
    ck_assert_msg(strstr(o.err, pid) != NULL, "%s does not name %s", o.err, pid);
    test_outcome_release(&o);
    ck_assert(is_listening());
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__after_kill_9_it_starts_as_if_nothing_had_been)
{
    struct daemon d;
    start_server(&d, "", "- { match: a, fold-delay: 20ms, keep: { entries: 2 } }\n");
    start_siltd(&d);
    add_entries(&d, "a", 20);
    TEST_WAIT(stream_number("a", "folded_entries") == 20, 10000);
    ck_assert_int_eq(end_siltd(&d, SIGKILL), -1);
    add_entries(&d, "a", 20);
    start_siltd(&d); /* the socket file of the dead one is in the way */
    TEST_WAIT(stream_number("a", "folded_entries") == 40, 10000);
    TEST_WAIT(test_cmd_int(&d.server, "XLEN a") == 2, 10000);
    ck_assert_str_eq(stream_text("a", "state"), "ok");
    ck_assert_int_eq(stream_number("a", "gap_entries"), 0);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__an_archive_removed_beneath_it_ends_all_trimming)
{
    struct daemon d;
    start_server(&d, "", "- { match: a, fold-delay: 20ms, keep: { entries: 2 } }\n");
    start_siltd(&d);
    add_entries(&d, "a", 20);
    TEST_WAIT(test_cmd_int(&d.server, "XLEN a") == 2, 10000);
    ck_assert_int_eq(unlink(test_path("archive/archive-1.mdb")), 0);
    add_entries(&d, "a", 20);
    TEST_WAIT(has_said(&d, "moved or removed"), 10000);
    /* it begins another archive there, and finds that the stream is not that one's */
    TEST_WAIT(has_said(&d, "claimed by another archive"), 20000);
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN a"), 22);
    end_siltd(&d, SIGTERM);
    ck_assert_int_eq(test_cmd_int(&d.server, "XLEN a"), 22);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__sync_returns_when_it_is_durable)
{
    struct daemon d;
    start_server(&d, "", "- { match: a, fold-delay: 1h }\n- { match: 'p*', fold-delay: 1h }\n");
    start_siltd(&d);
    TEST_WAIT(stream_text("a", "state")[0], 10000);
    TEST_WAIT(strcmp(stream_text("a", "state"), "new") != 0, 10000);
    for (int round = 1; round <= 3; round++) {
        add_entries(&d, "a", 10);
        json_t *answer = ask("{\"verb\":\"sync\",\"key\":\"a\"}\n");
        char *text = json_dumps(answer, JSON_COMPACT);
        ck_assert_msg(json_is_true(json_object_get(answer, "ok")), "%s", text);
        const json_t *stream = json_object_get(answer, "stream");
        const char *id =
            json_string_value(json_object_get(json_object_get(stream, "watermark"), "id"));
        ck_assert_str_eq(id, test_stream_text(&d.server, "a", "last-generated-id"));
        ck_assert_int_eq(json_integer_value(json_object_get(stream, "folded_entries")), round * 10);
        free(text);
        json_decref(answer);
    }
    add_entries(&d, "p1", 3); /* no sweep has found it yet, perhaps */
    json_t *answer = ask("{\"verb\":\"sync\",\"key\":\"p1\"}\n");
    ck_assert(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    ck_assert_int_eq(stream_number("p1", "folded_entries"), 3);
    answer = ask("{\"verb\":\"sync\"}\n");
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "synced")), 2);
    json_decref(answer);
    answer = ask("{\"verb\":\"sync\",\"key\":\"nobody\"}\n");
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(answer, "error"), "exit")),
                     2);
    json_decref(answer);
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__sighup_takes_up_new_settings_and_refuses_bad_ones)
{
    struct daemon d;
    start_server(&d, "", "- { match: a, fold-delay: 20ms }\n");
    start_siltd(&d);
    add_entries(&d, "a", 10);
    add_entries(&d, "b", 10);
    TEST_WAIT(stream_number("a", "folded_entries") == 10, 10000);
    write_config(
        &d, "",
        "- { match: a, fold-delay: 20ms, keep: { entries: 3 } }\n- { match: b, fold-delay: 20ms }\n");
    test_child_signal(&d.child, SIGHUP);
    TEST_WAIT(stream_number("b", "folded_entries") == 10, 10000);
    TEST_WAIT(test_cmd_int(&d.server, "XLEN a") == 3, 10000);
    write_config(&d, "", "- { match: a, keep: { entries: -3 } }\n");
    test_child_signal(&d.child, SIGHUP);
    TEST_WAIT(has_said(&d, "event=reload-refused"), 10000);
    ck_assert(has_said(&d, "silt.yaml:5:32: "));
    add_entries(&d, "b", 1);
    TEST_WAIT(stream_number("b", "folded_entries") == 11,
              10000); /* the settings from before go on */
    ck_assert_int_eq(end_siltd(&d, SIGTERM), 0);
    test_server_release(&d.server);
}
END_TEST

START_TEST(siltd__logs_are_json_if_asked)
{
    struct daemon d;
    struct test_outcome o;
    start_server(&d, "log: { format: json, level: debug }\n",
                 "- { match: \"a \\\"b\\\"\", keep: { entries: 1 } }\n");
    test_cmd(&d.server, "XADD %s * f v", "a \"b\"");
    run_siltd(&d, "--once", NULL, &o);
    ck_assert_int_eq(o.code, 0);
    unsigned lines = 0;
    char *rest;
    for (char *line = strtok_r(o.err, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest), lines++) {
        json_t *read = json_loads(line, 0, NULL);
        ck_assert_msg(read != NULL, "not JSON: %s", line);
        ck_assert(json_is_string(json_object_get(read, "event")));
        json_decref(read);
    }
    ck_assert_uint_ge(lines, 3);
    test_outcome_release(&o);
    test_server_release(&d.server);
}
END_TEST

TEST_MAIN(
    siltd__once_folds_and_trims_until_all_are_within_keep, siltd__once_without_a_server_ends_with_4,
    siltd__a_stream_that_two_patterns_match_is_left_alone,
    siltd__keys_of_another_type_and_silts_own_keys_are_not_touched,
    siltd__a_key_that_is_not_there_is_told_and_served_when_it_comes,
    siltd__a_key_that_was_archived_and_is_gone_is_a_finding,
    siltd__plan_shows_streams_that_the_archive_does_not_know, siltd__plan_changes_nothing,
    siltd__plan_works_beside_a_running_siltd, siltd__runs_until_sigterm_and_leaves_nothing_unfolded,
    siltd__sigint_ends_it_as_sigterm_does, siltd__ends_in_time_while_the_server_does_not_answer,
    siltd__a_second_one_on_the_same_archive_is_refused,
    siltd__after_kill_9_it_starts_as_if_nothing_had_been,
    siltd__an_archive_removed_beneath_it_ends_all_trimming, siltd__sync_returns_when_it_is_durable,
    siltd__sighup_takes_up_new_settings_and_refuses_bad_ones, siltd__logs_are_json_if_asked)
