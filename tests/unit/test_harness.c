/* The harness tested like anything else: a set-up that lies would make every other test lie. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/harness.h"

START_TEST(scratch__is_an_empty_directory_of_its_own)
{
    struct stat st;
    const char *dir = test_scratch();
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert(S_ISDIR(st.st_mode));
    ck_assert_int_eq(rmdir(dir), 0); /* only an empty one can be removed */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_ptr_eq(test_scratch(), dir);
}
END_TEST

START_TEST(scratch__goes_with_its_process)
{
    int ends[2];
    char name[4096] = {0};
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const char *dir = test_scratch();
        test_file_write(test_path("file"), "x", 1);
        mkdir(test_path("closed"), 0);
        exit(write(ends[1], dir, strlen(dir)) > 0 ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_gt(read(ends[0], name, sizeof name - 1), 0);
    ck_assert_str_ne(name, test_scratch());
    ck_assert_int_eq(access(name, F_OK), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(scratch__files_come_back_as_written)
{
    char bytes[20000];
    size_t len;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    test_file_write(test_path("a"), bytes, sizeof bytes);
    test_dir_copy(test_scratch(), test_path("copy"));
    char *back = test_file_read(test_path("copy/a"), &len);
    ck_assert_uint_eq(len, sizeof bytes);
    ck_assert_mem_eq(back, bytes, len);
    free(back);
}
END_TEST

START_TEST(rng__repeats_with_its_seed)
{
    struct test_rng a = test_rng(1), b = test_rng(1), c = test_rng(2);
    uint64_t first = test_rng_next(&a);
    ck_assert_uint_eq(first, test_rng_next(&b));
    ck_assert_uint_ne(first, test_rng_next(&c));
    /* The published first value of splitmix64 for seed 0. */
    struct test_rng zero = test_rng_fixed(0);
    ck_assert_uint_eq(test_rng_next(&zero), 0xe220a8397b1dcdafULL);
}
END_TEST

START_TEST(rng__stays_below_its_limit)
{
    struct test_rng rng = test_rng(3);
    unsigned seen[5] = {0};
    for (int i = 0; i < 1000; i++)
        seen[test_rng_below(&rng, 5)]++;
    for (int i = 0; i < 5; i++)
        ck_assert_uint_gt(seen[i], 100);
}
END_TEST

START_TEST(program__tells_output_and_exit_code)
{
    struct test_outcome end;
    TEST_PROGRAM(&end, "sh", "-c", "echo said; echo told >&2; exit 7");
    ck_assert_int_eq(end.code, 7);
    ck_assert_str_eq(end.out, "said\n");
    ck_assert_str_eq(end.err, "told\n");
    test_outcome_release(&end);
}
END_TEST

START_TEST(program__gets_its_input_and_environment)
{
    struct test_outcome end;
    const char *const argv[] = {"sh", "-c", "cat; echo \"$WORD${GONE-none}\"", NULL};
    const char *const env[] = {"WORD=here ", "GONE", NULL};
    setenv("GONE", "no", 1);
    test_program(&end, argv, env, "line\n", 30000);
    ck_assert_str_eq(end.out, "line\nhere none\n");
    ck_assert_int_eq(end.code, 0);
    test_outcome_release(&end);
}
END_TEST

START_TEST(program__that_hangs_is_ended)
{
    struct test_outcome end;
    const char *const argv[] = {"sh", "-c", "echo begun; exec sleep 1000", NULL};
    struct test_child child;
    test_child_start(&child, argv, NULL);
    for (char *out = NULL;; free(out)) {
        out = test_child_out(&child);
        if (*out) {
            free(out);
            break;
        }
    }
    test_child_wait(&child, 1, &end);
    ck_assert(end.timed_out);
    ck_assert_int_eq(end.signal, SIGKILL);
    ck_assert_str_eq(end.out, "begun\n");
    test_outcome_release(&end);
}
END_TEST

START_TEST(program__that_is_missing_is_told)
{
    struct test_outcome end;
    TEST_PROGRAM(&end, "no-such-program-anywhere");
    ck_assert_int_eq(end.code, 127);
    ck_assert_ptr_nonnull(strstr(end.err, "cannot run no-such-program-anywhere"));
    test_outcome_release(&end);
}
END_TEST

TEST_MAIN(scratch__is_an_empty_directory_of_its_own, scratch__goes_with_its_process,
          scratch__files_come_back_as_written, rng__repeats_with_its_seed,
          rng__stays_below_its_limit, program__tells_output_and_exit_code,
          program__gets_its_input_and_environment, program__that_hangs_is_ended,
          program__that_is_missing_is_told)
