/* The harness tested like anything else: a set-up that lies would make every other test lie. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/alloc.h"
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

static struct silt_wire_id wire(uint64_t ms, uint64_t seq)
{
    return (struct silt_wire_id){ms, seq};
}

START_TEST(oracle__keeps_entries_in_order)
{
    struct test_oracle oracle = {0};
    test_oracle_add_text(&oracle, wire(2, 0), "b", "2", NULL);
    test_oracle_add_text(&oracle, wire(1, 5), "a", "1", NULL);
    test_oracle_add_text(&oracle, wire(2, 1), NULL);
    test_oracle_add_text(&oracle, wire(1, 5), "a", "1", NULL);
    ck_assert_uint_eq(oracle.count, 3);
    ck_assert_uint_eq(test_oracle_count(&oracle, wire(1, 6), wire(2, 0)), 1);
    ck_assert_uint_eq(test_oracle_count(&oracle, wire(3, 0), wire(1, 0)), 0);
    ck_assert_uint_eq(test_oracle_find(&oracle, wire(2, 0))->field_count, 1);
    ck_assert_ptr_null(test_oracle_find(&oracle, wire(2, 2)));
    ck_assert(test_oracle_remove(&oracle, wire(2, 0)));
    ck_assert(!test_oracle_remove(&oracle, wire(2, 0)));
    ck_assert_uint_eq(oracle.entries[1]->id.seq, 1);
    test_oracle_release(&oracle);
}
END_TEST

START_TEST(oracle__walks_both_ways)
{
    struct test_oracle oracle = {0};
    struct test_walk walk;
    for (uint64_t i = 1; i <= 9; i++)
        test_oracle_add_text(&oracle, wire(i, 0), "n", "v", NULL);
    for (int reverse = 0; reverse <= 1; reverse++) {
        test_walk_start(&walk, &oracle, wire(3, 0), wire(6, 9), reverse);
        for (int i = 0; i < 4; i++)
            ck_assert(test_walk_take(&walk, oracle.entries[reverse ? 5 - i : 2 + i]));
        ck_assert(test_walk_finish(&walk, 0));
        ck_assert_str_eq(walk.difference, "");
    }
    test_oracle_release(&oracle);
}
END_TEST

START_TEST(oracle__tells_the_first_difference)
{
    struct test_oracle oracle = {0};
    struct test_oracle wrong = {0};
    struct test_walk walk;
    test_oracle_add_text(&oracle, wire(1, 1), "name", "value", NULL);
    test_oracle_add_text(&oracle, wire(1, 2), "name", "value", NULL);
    test_oracle_add_text(&wrong, wire(1, 2), "name", "val\nue", NULL);
    test_walk_start(&walk, &oracle, wire(0, 0), wire(9, 0), false);
    ck_assert(test_walk_take(&walk, oracle.entries[0]));
    ck_assert(!test_walk_finish(&walk, 0));
    ck_assert_str_eq(walk.difference, "after 1 entries came the end, due was 1-2 {name=value}");
    test_walk_start(&walk, &oracle, wire(1, 2), wire(9, 0), false);
    ck_assert(!test_walk_take(&walk, wrong.entries[0]));
    ck_assert_str_eq(walk.difference,
                     "after 0 entries came 1-2 {name=val\\x0aue}, due was 1-2 {name=value}");
    test_walk_start(&walk, &oracle, wire(2, 0), wire(9, 0), true);
    ck_assert(!test_walk_take(&walk, wrong.entries[0])); /* one too many */
    test_walk_start(&walk, &oracle, wire(0, 0), wire(9, 0), false);
    ck_assert(!test_walk_take(&walk, oracle.entries[1])); /* one left out */
    ck_assert(!test_walk_take(&walk, oracle.entries[0])); /* once wrong, wrong */
    test_oracle_release(&oracle);
    test_oracle_release(&wrong);
}
END_TEST

START_TEST(clock__moves_when_told)
{
    struct test_clock clock = {.now_ms = 5};
    ck_assert_uint_eq(test_clock_read(&clock), 5);
    ck_assert_uint_eq(test_clock_read(&clock), 5);
    clock.step_ms = 2;
    test_clock_read(&clock);
    ck_assert_uint_eq(test_clock_read(&clock), 7);
    ck_assert_uint_eq(clock.read_count, 4);
}
END_TEST

static redisContext *meet(const struct test_fake *fake)
{
    redisContext *link = redisConnectUnix(fake->socket);
    if (!link || link->err) test_die("cannot connect to the fake server");
    redisSetTimeout(link, (struct timeval){20, 0});
    return link;
}

static const struct test_step greeting_script[] = {
    TEST_ALWAYS("HELLO **", "+OK\r\n"),
    TEST_EXPECT("xlen s?"),
    TEST_ANSWER(":5\r\n"),
    TEST_EXPECT("XADD s \\* **"),
    TEST_SLOWLY("$3\r\n1-1\r\n"),
    TEST_CLOSE,
    TEST_EXPECT("PING"),
    TEST_HOLD,
    TEST_ANSWER("+PO\0NG\r\n"),
    TEST_EXPECT("PING"),
    TEST_ANSWER("?garbage\r\n"),
};

START_TEST(fake__plays_its_script)
{
    struct test_fake fake;
    test_fake_start(&fake, greeting_script, sizeof greeting_script / sizeof greeting_script[0]);
    redisContext *link = meet(&fake);
    redisReply *reply = redisCommand(link, "HELLO 2");
    ck_assert_str_eq(reply->str, "OK");
    freeReplyObject(reply);
    reply = redisCommand(link, "XLEN s1");
    ck_assert_int_eq(reply->integer, 5);
    freeReplyObject(reply);
    reply = redisCommand(link, "XADD s * %b %s", "a\0b", (size_t)3, "");
    ck_assert_str_eq(reply->str, "1-1");
    freeReplyObject(reply);
    ck_assert_ptr_null(redisCommand(link, "PING")); /* it has closed */
    redisFree(link);
    link = meet(&fake);
    redisAppendCommand(link, "PING");
    int sent = 0;
    ck_assert_int_eq(redisBufferWrite(link, &sent), REDIS_OK);
    ck_assert(sent);
    test_fake_go(&fake);
    ck_assert_int_eq(redisGetReply(link, (void **)&reply), REDIS_OK);
    ck_assert_uint_eq(reply->len, 5);
    freeReplyObject(reply);
    ck_assert_ptr_null(redisCommand(link, "PING"));
    ck_assert_int_eq(link->err, REDIS_ERR_PROTOCOL);
    redisFree(link);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

static const struct test_step short_script[] = {TEST_EXPECT("PING"), TEST_ANSWER("+PONG\r\n"),
                                                TEST_SILENCE};

START_TEST(fake__tells_what_was_due)
{
    struct test_fake fake;
    test_fake_start(&fake, short_script, 2);
    redisContext *link = meet(&fake);
    ck_assert_ptr_null(redisCommand(link, "SET a b"));
    ck_assert_str_eq(test_fake_finish(&fake), "step 1: due was \"PING\", came \"SET a b\"");
    redisFree(link);
    test_fake_start(&fake, short_script, 2);
    link = meet(&fake);
    freeReplyObject(redisCommand(link, "PING"));
    ck_assert_ptr_null(redisCommand(link, "DEL a"));
    ck_assert_str_eq(test_fake_finish(&fake), "step 2: after the script came \"DEL a\"");
    redisFree(link);
}
END_TEST

START_TEST(fake__is_silent_until_the_other_gives_up)
{
    struct test_fake fake;
    test_fake_start(&fake, short_script, 3);
    redisContext *link = meet(&fake);
    redisSetTimeout(link, (struct timeval){0, 20000});
    redisReply *reply = redisCommand(link, "PING");
    freeReplyObject(reply);
    ck_assert_ptr_null(redisCommand(link, "PING"));
    redisFree(link);
    ck_assert_str_eq(test_fake_finish(&fake), "");
}
END_TEST

START_TEST(heap__fails_the_request_it_is_told_to)
{
    struct test_heap heap;
    test_heap_start(&heap, 2);
    void *first = silt_alloc(10);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(silt_alloc(10));
    void *third = silt_calloc(2, 10);
    ck_assert_ptr_nonnull(third);
    test_heap_stop();
    ck_assert_uint_eq(heap.request_count, 3);
    ck_assert_uint_eq(heap.failed_count, 1);
    ck_assert_uint_eq(heap.live_count, 2);
    silt_free(first); /* also after the stop */
    silt_free(third);
}
END_TEST

START_TEST(heap__can_fail_from_then_on)
{
    struct test_heap heap;
    test_heap_start(&heap, 1);
    heap.fail_on = true;
    ck_assert_ptr_null(silt_alloc(1));
    ck_assert_ptr_null(silt_strdup("a"));
    test_heap_stop();
    ck_assert_uint_eq(heap.failed_count, 2);
}
END_TEST

START_TEST(heap__counts_what_is_held)
{
    struct test_heap heap;
    test_heap_start(&heap, 0);
    char *block = silt_memdup("0123456789", 10);
    block = silt_realloc(block, 100000);
    ck_assert_mem_eq(block, "0123456789", 10);
    ck_assert_uint_eq(heap.live_count, 1);
    ck_assert_uint_ge(heap.live_bytes, 100000);
    silt_free(block);
    silt_free(NULL);
    test_heap_stop();
    ck_assert_uint_eq(heap.live_count, 0);
    ck_assert_uint_eq(heap.live_bytes, 0);
    ck_assert_uint_ge(heap.peak_bytes, 100000);
    ck_assert_uint_eq(heap.request_count, 2);
}
END_TEST

START_TEST(scratch__is_left_to_nobody)
{
    const char *closed = test_path("closed");
    test_file_write(closed, "x", 1);
    ck_assert_int_eq(chmod(closed, 0600), 0);
    test_become_nobody();
    ck_assert_uint_ne(geteuid(), 0);
    test_file_write(test_path("open"), "x", 1);
    ck_assert_int_eq(chmod(test_scratch(), 0500), 0);
    ck_assert_int_eq(mkdir(test_path("more"), 0700), -1);
    ck_assert_int_eq(errno, EACCES);
}
END_TEST

START_TEST(fault__points_are_learnt_from_a_log)
{
    struct test_faults faults;
    const char *log = test_path("log");
    const char *text = "commit 1\ncommit 2\ntrim-sent 1\ncommit 3\n";
    test_file_write(log, text, strlen(text));
    test_faults_learn(&faults, log, 2);
    ck_assert_uint_eq(faults.count, 3);
    ck_assert_str_eq(test_faults_setting(&faults, 1, "kill"), "SILT_FAULT=commit:2=kill");
    ck_assert_str_eq(test_faults_setting(&faults, 2, "fail"), "SILT_FAULT=trim-sent:1=fail");
    test_faults_release(&faults);
}
END_TEST

TEST_MAIN(scratch__is_an_empty_directory_of_its_own, scratch__goes_with_its_process,
          scratch__files_come_back_as_written, rng__repeats_with_its_seed,
          rng__stays_below_its_limit, program__tells_output_and_exit_code,
          program__gets_its_input_and_environment, program__that_hangs_is_ended,
          program__that_is_missing_is_told, oracle__keeps_entries_in_order, oracle__walks_both_ways,
          oracle__tells_the_first_difference, heap__fails_the_request_it_is_told_to,
          heap__can_fail_from_then_on, heap__counts_what_is_held, scratch__is_left_to_nobody,
          fault__points_are_learnt_from_a_log, clock__moves_when_told, fake__plays_its_script,
          fake__tells_what_was_due, fake__is_silent_until_the_other_gives_up)
