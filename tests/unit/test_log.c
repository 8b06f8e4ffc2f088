/* archiver/log.c: lines that a machine reads back. */
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/harness.h"
#include "log.h"

/* What one call writes to stderr. Freed with free(). */
static char *written(bool json, enum silt_log_level level, const struct silt_log_field *fields,
                     size_t count)
{
    const char *path = test_path("log");
    int kept = dup(STDERR_FILENO);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || kept < 0) test_die("cannot redirect stderr");
    dup2(fd, STDERR_FILENO);
    silt_log_init(json, SILT_LOG_INFO);
    silt_log_fields(level, "folded", fields, count);
    dup2(kept, STDERR_FILENO);
    close(fd);
    close(kept);
    return test_file_read(path, NULL);
}

#define WRITTEN(json, ...)                                                     \
    written(json, SILT_LOG_INFO, (const struct silt_log_field[]){__VA_ARGS__}, \
            sizeof((const struct silt_log_field[]){__VA_ARGS__}) / sizeof(struct silt_log_field))

START_TEST(log__a_logfmt_line_has_time_level_event_and_fields)
{
    char *line = WRITTEN(false, SILT_STR("stream", "orders"), SILT_NUM("entries", 12),
                         SILT_ID("through", ((struct silt_wire_id){1767225600002, 7})));
    ck_assert_int_eq(strncmp(line, "ts=20", 5), 0);
    const char *rest = strchr(line, ' ');
    ck_assert_ptr_nonnull(rest);
    ck_assert_str_eq(rest,
                     " level=info event=folded stream=orders entries=12 through=1767225600002-7\n");
    free(line);
}
END_TEST

START_TEST(log__logfmt_quotes_what_would_be_misread)
{
    char *line =
        WRITTEN(false, SILT_STR("a", "two words"), SILT_STR("b", ""), SILT_STR("c", "x=y"),
                SILT_STR("d", "say \"no\"\\\n"), SILT_KEY("e", silt_view("\0\xff\xc3\xa9", 4)));
    ck_assert_ptr_nonnull(strstr(line,
                                 " a=\"two words\" b=\"\" c=\"x=y\" d=\"say \\\"no\\\"\\\\\\n\""
                                 " e=\"\\x00\\xff\xc3\xa9\"\n"));
    free(line);
}
END_TEST

START_TEST(log__json_is_json_whatever_the_bytes)
{
    uint8_t all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    char *line = WRITTEN(true, SILT_KEY("stream", silt_view(all, sizeof all)),
                         SILT_NUM("n", UINT64_MAX / 2), SILT_STR("word", "a \"b\" \\ c"));
    json_error_t why;
    json_t *read = json_loads(line, 0, &why);
    ck_assert_msg(read != NULL, "%s in %s", why.text, line);
    ck_assert_str_eq(json_string_value(json_object_get(read, "event")), "folded");
    ck_assert_str_eq(json_string_value(json_object_get(read, "level")), "info");
    ck_assert_str_eq(json_string_value(json_object_get(read, "word")), "a \"b\" \\ c");
    ck_assert_int_eq(json_integer_value(json_object_get(read, "n")), INT64_MAX);
    const char *shown = json_string_value(json_object_get(read, "stream"));
    ck_assert_ptr_nonnull(strstr(shown, "ABCXYZ") ? shown : strstr(shown, "ABCDEFG"));
    ck_assert_ptr_nonnull(strstr(shown, "\\x80"));
    json_decref(read);
    free(line);
}
END_TEST

START_TEST(log__a_level_below_is_silent)
{
    char *line = written(false, SILT_LOG_DEBUG, NULL, 0);
    ck_assert_str_eq(line, "");
    free(line);
    line = written(false, SILT_LOG_ERROR, NULL, 0);
    ck_assert_ptr_nonnull(strstr(line, "level=error event=folded\n"));
    free(line);
}
END_TEST

START_TEST(log__a_long_line_is_cut_between_fields_and_says_so)
{
    struct silt_log_field fields[40];
    char long_text[700];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    for (size_t i = 0; i < 40; i++)
        fields[i] = SILT_STR("name", long_text);
    char *line = written(true, SILT_LOG_INFO, fields, 40);
    json_t *read = json_loads(line, 0, NULL);
    ck_assert_ptr_nonnull(read);
    ck_assert(json_is_true(json_object_get(read, "cut")));
    ck_assert_uint_lt(strlen(line), 8193);
    json_decref(read);
    free(line);
}
END_TEST

TEST_MAIN(log__a_logfmt_line_has_time_level_event_and_fields,
          log__logfmt_quotes_what_would_be_misread, log__json_is_json_whatever_the_bytes,
          log__a_level_below_is_silent, log__a_long_line_is_cut_between_fields_and_says_so)
