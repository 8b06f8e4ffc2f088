/* Named points: each action, at the passage it was asked for. Nothing to test in a build without them. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/faultpoint.h"
#include "harness/harness.h"

#ifdef SILT_FAULTPOINTS
START_TEST(faultpoint__without_orders_nothing_happens)
{
    unsetenv("SILT_FAULT");
    unsetenv("SILT_FAULT_LOG");
    ck_assert_int_eq(SILT_FAULTPOINT("a"), 0);
}
END_TEST

START_TEST(faultpoint__fails_at_the_nth_passage_only)
{
    setenv("SILT_FAULT", "a:3=fail,b=fail", 1);
    for (int i = 1; i <= 5; i++) {
        ck_assert_int_eq(SILT_FAULTPOINT("a"), i == 3);
        ck_assert_int_eq(SILT_FAULTPOINT("b"), i == 1);
        ck_assert_int_eq(SILT_FAULTPOINT("ab"), 0);
    }
}
END_TEST

START_TEST(faultpoint__logs_each_passage)
{
    const char *path = test_path("log");
    setenv("SILT_FAULT_LOG", path, 1);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(SILT_FAULTPOINT("one"), 0);
        ck_assert_int_eq(SILT_FAULTPOINT("two"), 0);
    }
    char *text = test_file_read(path, NULL);
    ck_assert_str_eq(text, "one 1\ntwo 1\none 2\ntwo 2\n");
    free(text);
}
END_TEST

START_TEST(faultpoint__kills)
{
    int status;
    setenv("SILT_FAULT", "a:2=kill", 1);
    pid_t pid = fork();
    if (pid == 0) {
        if (SILT_FAULTPOINT("a") != 0) _exit(1);
        SILT_FAULTPOINT("a");
        _exit(2);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGKILL);
}
END_TEST

/* A child that passes the point once and leaves a file behind it. */
static pid_t pass_in_child(const char *behind)
{
    pid_t pid = fork();
    if (pid != 0) return pid;
    int failed = SILT_FAULTPOINT("a");
    test_file_write(behind, "", 0);
    _exit(failed);
}

static void end_well(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

START_TEST(faultpoint__pauses_until_its_file_goes)
{
    char order[512];
    const char *path = test_path("pause"), *behind = test_path("behind");
    snprintf(order, sizeof order, "a=pause:%s", path);
    setenv("SILT_FAULT", order, 1);
    pid_t pid = pass_in_child(behind);
    TEST_WAIT(access(path, F_OK) == 0, 10000);
    ck_assert_int_ne(access(behind, F_OK), 0);
    ck_assert_int_eq(unlink(path), 0);
    end_well(pid);
    ck_assert_int_eq(access(behind, F_OK), 0);
}
END_TEST

START_TEST(faultpoint__holds_while_a_file_is_there)
{
    char order[512];
    const char *path = test_path("hold"), *behind = test_path("behind");
    snprintf(order, sizeof order, "a=hold:%s", path);
    setenv("SILT_FAULT", order, 1);
    end_well(pass_in_child(behind)); /* no file: no wait, and none is made */
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(unlink(behind), 0);
    test_file_write(path, "", 0);
    pid_t pid = pass_in_child(behind);
    ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
    ck_assert_int_eq(unlink(path), 0);
    end_well(pid);
}
END_TEST

START_TEST(faultpoint__order_it_cannot_follow_ends_the_program)
{
    static const char *const orders[] = {"a", "a=explode", "a:0=fail", "a:x=fail"};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        int status;
        setenv("SILT_FAULT", orders[i], 1);
        pid_t pid = fork();
        if (pid == 0) {
            fclose(stderr);
            _exit(SILT_FAULTPOINT("a") ? 1 : 0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}
END_TEST

TEST_MAIN(faultpoint__without_orders_nothing_happens, faultpoint__fails_at_the_nth_passage_only,
          faultpoint__logs_each_passage, faultpoint__kills, faultpoint__pauses_until_its_file_goes,
          faultpoint__holds_while_a_file_is_there,
          faultpoint__order_it_cannot_follow_ends_the_program)
#else
START_TEST(faultpoint__is_nothing_in_this_build)
{
    setenv("SILT_FAULT", "a=kill", 1);
    ck_assert_int_eq(SILT_FAULTPOINT("a"), 0);
}
END_TEST

TEST_MAIN(faultpoint__is_nothing_in_this_build)
#endif
