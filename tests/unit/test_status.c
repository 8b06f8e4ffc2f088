/* The table of results and the details of a failure. */
#include <errno.h>
#include <string.h>

#include "format/status.h"
#include "harness/harness.h"

static const enum silt_status all[] = {
#define SILT_X(code, value, class, exit, sentence) code,
    SILT_STATUS_TABLE(SILT_X)
#undef SILT_X
};
#define COUNT (sizeof all / sizeof all[0])

START_TEST(status__each_code_is_told_apart)
{
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert_str_ne(silt_status_name(all[i]), "unknown");
        ck_assert_uint_gt(strlen(silt_status_sentence(all[i])), 0);
        for (size_t j = 0; j < i; j++) {
            ck_assert_int_ne(all[i], all[j]);
            ck_assert_str_ne(silt_status_name(all[i]), silt_status_name(all[j]));
            ck_assert_str_ne(silt_status_sentence(all[i]), silt_status_sentence(all[j]));
        }
    }
}
END_TEST

START_TEST(status__success_and_failure_do_not_mix)
{
    for (size_t i = 0; i < COUNT; i++) {
        bool failure = all[i] < 0;
        ck_assert_int_eq(silt_status_exit_code(all[i]) != 0, failure);
        ck_assert_int_eq(silt_status_class(all[i]) != SILT_CLASS_NONE, failure);
        ck_assert_int_ne(silt_status_exit_code(all[i]), 1); /* 1 is a finding, never a failure */
    }
    ck_assert_int_eq(SILT_OK, 0);
    ck_assert_int_eq(SILT_END, 1);
}
END_TEST

START_TEST(status__sentences_are_lower_case_without_stop)
{
    for (size_t i = 0; i < COUNT; i++) {
        const char *text = silt_status_sentence(all[i]);
        ck_assert(text[0] >= 'a' && text[0] <= 'z');
        ck_assert_int_ne(text[strlen(text) - 1], '.');
    }
}
END_TEST

START_TEST(status__value_outside_the_table_is_unknown_and_no_success)
{
    enum silt_status odd = (enum silt_status) - 999;
    ck_assert_str_eq(silt_status_name(odd), "unknown");
    ck_assert_int_ne(silt_status_exit_code(odd), 0);
    ck_assert_int_ne(silt_status_class(odd), SILT_CLASS_NONE);
}
END_TEST

START_TEST(fail__fills_and_returns)
{
    struct silt_err err;
    memset(&err, 'x', sizeof err);
    errno = EAGAIN;
    ck_assert_int_eq(silt_fail(&err, SILT_ERR_KEY, "the key '%s' is %d", "k", 7), SILT_ERR_KEY);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(err.code, SILT_ERR_KEY);
    ck_assert_str_eq(err.sentence, "the key 'k' is 7");
    ck_assert_str_eq(err.hint, "");
    ck_assert_str_eq(err.stream, "");
    silt_hint(&err, "try %d", 8);
    ck_assert_str_eq(err.hint, "try 8");
    silt_err_set_stream(&err, "a\0b", 3);
    ck_assert_str_eq(err.stream, "a\\x00b");
}
END_TEST

START_TEST(fail__without_format_takes_the_general_sentence)
{
    struct silt_err err;
    ck_assert_int_eq(silt_fail(&err, SILT_ERR_MEMORY, NULL), SILT_ERR_MEMORY);
    ck_assert_str_eq(err.sentence, "out of memory");
}
END_TEST

START_TEST(fail__needs_no_place_for_details)
{
    ck_assert_int_eq(silt_fail(NULL, SILT_ERR_KEY, "%d", 1), SILT_ERR_KEY);
    ck_assert_int_eq(silt_fail_errno(NULL, ENOSPC, "write"), SILT_ERR_DISK_FULL);
    silt_hint(NULL, "%d", 1);
    silt_err_set_stream(NULL, "k", 1);
}
END_TEST

START_TEST(fail__cuts_what_does_not_fit)
{
    struct silt_err err;
    char text[1000];
    memset(text, 'a', sizeof text);
    text[999] = '\0';
    silt_fail(&err, SILT_ERR_KEY, "%s", text);
    ck_assert_uint_eq(strlen(err.sentence), sizeof err.sentence - 1);
    silt_fail_errno(&err, EIO, "%s", text);
    ck_assert_uint_eq(strlen(err.sentence), sizeof err.sentence - 1);
    silt_err_set_stream(&err, text, 999);
    ck_assert_uint_eq(strlen(err.stream), sizeof err.stream - 1);
    ck_assert_str_eq(err.stream + strlen(err.stream) - 3, "...");
}
END_TEST

START_TEST(fail_errno__chooses_the_code)
{
    static const struct {
        int number;
        enum silt_status code;
    } rows[] = {{ENOSPC, SILT_ERR_DISK_FULL},  {EDQUOT, SILT_ERR_DISK_FULL},
                {EFBIG, SILT_ERR_DISK_FULL},   {ENOMEM, SILT_ERR_MEMORY},
                {EMFILE, SILT_ERR_LIMIT},      {ENFILE, SILT_ERR_LIMIT},
                {EACCES, SILT_ERR_PERMISSION}, {EPERM, SILT_ERR_PERMISSION},
                {EROFS, SILT_ERR_PERMISSION},  {EIO, SILT_ERR_IO},
                {ENOENT, SILT_ERR_IO}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct silt_err err;
        ck_assert_int_eq(silt_fail_errno(&err, rows[i].number, "open %s", "f"), rows[i].code);
        ck_assert_int_eq(strncmp(err.sentence, "open f: ", 8), 0);
        ck_assert_str_eq(err.sentence + 8, strerror(rows[i].number));
    }
}
END_TEST

TEST_MAIN(status__each_code_is_told_apart, status__success_and_failure_do_not_mix,
          status__sentences_are_lower_case_without_stop,
          status__value_outside_the_table_is_unknown_and_no_success, fail__fills_and_returns,
          fail__without_format_takes_the_general_sentence, fail__needs_no_place_for_details,
          fail__cuts_what_does_not_fit, fail_errno__chooses_the_code)
