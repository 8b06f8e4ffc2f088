/* Reports from the field that the programs must stand as a user meets them; each test is named after its row (tests/field-reports.md). */
#include <time.h>

#include "cli.h"

static struct cli cli;

static void start(const char *streams)
{
    cli_start(&cli, streams);
}

/* A command of any bytes. */
static void add(size_t count, const char **args, const size_t *lengths)
{
    test_cmd_argv(&cli.server, count, args, lengths);
}

/* I1: repeated names, their order, through everything there is: archive, both ends of the seam, text, JSON, one entry, and back into a stream. */
START_TEST(field__I1_repeated_names_keep_their_order)
{
    static const char json[] =
        "{\"id\":\"1-0\",\"branded\":null,\"fields\":[[\"a\",\"1\"],[\"a\",\"2\"],[\"b\",\"3\"],"
        "[\"a\",\"1\"]],\"tier\":\"%s\"}\n";
    char live[256], archived[256];
    snprintf(live, sizeof live, json, "live");
    snprintf(archived, sizeof archived, json, "archive");
    start("  - match: d\n    keep: { entries: 1 }\n  - match: back\n");
    test_cmd(&cli.server, "XADD d 1-0 a 1 a 2 b 3 a 1");
    CK_SILT_OUT(0, live, "read", "d", "--json", "--to", "1-0");
    test_cmd(&cli.server, "XADD d 2-0 n 2");
    cli_fold();
    ck_assert_int_eq(test_cmd_int(&cli.server, "XLEN d"), 1);
    CK_SILT_OUT(0, archived, "read", "d", "--json", "--to", "1-0");
    CK_SILT_OUT(0, archived, "read", "d", "--json", "--to", "1-0", "--reverse");
    CK_SILT(0, "a=1 a=2 b=3 a=1\n", "", "read", "d", "--limit", "1");
    CK_SILT(0, "a = 1\n  a = 2\n  b = 3\n  a = 1\n", "", "get", "d", "1-0");
    char *kept = SILT_OUTPUT("read", "d", "--json");
    test_file_write(test_path("kept"), kept, strlen(kept));
    free(kept);
    CK_SILT(0, "2 written", "", "load", "back", test_path("kept"));
    CK_SILT_OUT(0, live, "read", "back", "--json", "--to", "1-0");
    cli_fold();
    test_cmd(&cli.server, "XDEL back 1-0");
    CK_SILT_OUT(0, archived, "read", "back", "--json", "--to", "1-0");
    test_server_release(&cli.server);
}
END_TEST

/* A5: ids are numbers wherever they are compared: keys of the archive, the seam, bounds, the cut. */
START_TEST(field__A5_ids_are_compared_as_numbers)
{
    static const char *const ids[] = {"9-2", "9-10", "9-18446744073709551615", "10-0", "100-0"};
    start("  - match: s\n    keep: { entries: 2 }\n");
    for (size_t i = 0; i < 5; i++) {
        test_cmd(&cli.server, "XADD s %s n %d", ids[i], (int)i);
        if (i % 2 == 0) cli_fold(); /* several folds, so that a seam lies between each two */
    }
    cli_fold();
    ck_assert_int_eq(test_cmd_int(&cli.server, "XLEN s"), 2);
    char *all = SILT_OUTPUT("read", "s", "--json");
    const char *at = all;
    for (size_t i = 0; i < 5; i++) {
        char id[64];
        snprintf(id, sizeof id, "\"id\":\"%s\"", ids[i]);
        at = strstr(at, id);
        ck_assert_msg(at != NULL, "%s is not in its place in %s", ids[i], all);
    }
    free(all);
    CK_SILT_OUT(0, "2\n", "read", "s", "--count", "--from", "9-3", "--to", "9");
    CK_SILT_OUT(0, "1\n", "read", "s", "--count", "--from", "(9-18446744073709551615", "--to",
                "10");
    CK_SILT_OUT(0, "2\n", "read", "s", "--count", "--from", "10");
    test_server_release(&cli.server);
}
END_TEST

/* ---- B4 ---- */

static void add_empty(void)
{
    const char *args[] = {"XADD", "s", "1-0", "", "", "a", ""};
    const size_t lengths[] = {4, 1, 3, 0, 0, 1, 0};
    add(7, args, lengths);
}

static void add_wide(size_t fields)
{
    const char **args = calloc(3 + 2 * fields, sizeof *args);
    size_t *lengths = calloc(3 + 2 * fields, sizeof *lengths);
    char *text = malloc(16 * fields);
    args[0] = "XADD", args[1] = "s", args[2] = "2-0";
    for (size_t i = 0; i < fields; i++) {
        args[3 + 2 * i] = text + 16 * i;
        args[4 + 2 * i] = text + 16 * i;
        snprintf(text + 16 * i, 16, "field-%zu", i);
    }
    for (size_t i = 0; i < 3 + 2 * fields; i++)
        lengths[i] = strlen(args[i]);
    add(3 + 2 * fields, args, lengths);
    free(args);
    free(lengths);
    free(text);
}

static void add_large(size_t bytes)
{
    char *value = malloc(bytes);
    struct test_rng rng = test_rng_fixed(4);
    test_rng_bytes(&rng, value, bytes);
    const char *args[] = {"XADD", "s", "3-0", "v", value};
    const size_t lengths[] = {4, 1, 3, 1, bytes};
    add(5, args, lengths);
    free(value);
}

/* Each look carries the large entry, and the script that trims reads it: minutes on a machine with much else to do. */
static void fold_patiently(void)
{
    struct test_outcome end;
    test_program(&end, (const char *const[]){"siltd", "--once", NULL}, NULL, NULL, 280000);
    ck_assert_msg(end.code == 0, "siltd --once: exit %d: %s", end.code, end.err);
    test_outcome_release(&end);
}

/* B4: no entry of an odd shape stalls the stream: no bytes, 10,000 fields, one very large value. It is the first or the last of a look for a while, so it
 * travels with each of them. */
START_TEST(field__B4_odd_shapes_stall_nothing)
{
    size_t large = (size_t)(test_long() ? 64 : 4) << 20;
    struct timespec before, after;
    start("  - match: s\n    keep: { entries: 2 }\n");
    add_empty();
    add_wide(10000);
    add_large(large);
    clock_gettime(CLOCK_MONOTONIC, &before);
    fold_patiently(); /* the large one stays live, as the last */
    for (int i = 4; i < 9; i++)
        test_cmd(&cli.server, "XADD s %d-0 n %d", i, i);
    fold_patiently(); /* and was the first of a look, and goes */
    clock_gettime(CLOCK_MONOTONIC, &after);
    ck_assert_int_eq(test_cmd_int(&cli.server, "XLEN s"), 2);
    CK_SILT_OUT(0, "8\n", "read", "s", "--count");
    CK_SILT(0, "\"fields\":[[\"\",\"\"],[\"a\",\"\"]]", "", "get", "s", "1-0", "--json");
    char *wide = SILT_OUTPUT("get", "s", "2-0", "--json");
    ck_assert_ptr_nonnull(strstr(wide, "[\"field-0\",\"field-0\"],[\"field-1\",\"field-1\"]"));
    ck_assert_ptr_nonnull(strstr(wide, "[\"field-9999\",\"field-9999\"]]"));
    free(wide);
    /* Byte for byte: written back from what was read, it is the same entry. */
    char *whole = SILT_OUTPUT("get", "s", "3-0", "--json");
    ck_assert_uint_gt(strlen(whole), large);
    free(whole);
    CK_SILT(0, "no damage", "", "verify");
    printf("# two runs of siltd --once over an entry of %zu MB took %lld ms\n", large >> 20,
           (long long)(after.tv_sec - before.tv_sec) * 1000 +
               (after.tv_nsec - before.tv_nsec) / 1000000);
    test_server_release(&cli.server);
}
END_TEST

/* ---- contract.md, scenario 9 ---- */

/* So many records of one millisecond through one writer: none is refused, and the ids ascend. */
START_TEST(field__scenario_9_a_single_writer_is_never_refused)
{
    int count = test_long() ? 100000 : 5000;
    char said[64], *text = malloc((size_t)count * 64), *at = text;
    start("  - match: s\n");
    for (int i = 0; i < count; i++)
        at += snprintf(at, 64, "{\"t\":1772366400000,\"fields\":[[\"n\",\"%d\"]]}\n", i);
    test_file_write(test_path("in"), text, (size_t)(at - text));
    free(text);
    snprintf(said, sizeof said, "%d,000 written, 0 there already, 0 refused", count / 1000);
    CK_SILT(0, said, "", "load", "emq:{t}:stream:s", test_path("in"), "--ids", "branded EVT");
    ck_assert_int_eq(test_cmd_int(&cli.server, "XLEN emq:{t}:stream:s"), count);
    test_server_release(&cli.server);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create(argv[0]);
    TCase *tcase = tcase_create("all");
    (void)argc;
    tcase_set_timeout(tcase, test_long() ? 600.0 : 100.0);
    tcase_add_test(tcase, field__I1_repeated_names_keep_their_order);
    tcase_add_test(tcase, field__A5_ids_are_compared_as_numbers);
    tcase_add_test(tcase, field__B4_odd_shapes_stall_nothing);
    tcase_add_test(tcase, field__scenario_9_a_single_writer_is_never_refused);
    suite_add_tcase(suite, tcase);
    return test_run_suite(suite);
}
