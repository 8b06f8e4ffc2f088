/* The program's help and its man pages. */
#include "cli.h"

static const char *const verbs[] = {"id",     "append",  "load",   "read", "get",
                                    "status", "inspect", "verify", "sync"};
#define VERBS (sizeof verbs / sizeof verbs[0])

static void check_page(const char *verb, const char *file)
{
    char path[4096];
    struct test_outcome end;
    snprintf(path, sizeof path, "%s/docs/man/%s", test_source_root(), file);
    char *committed = test_file_read(path, NULL);
    if (verb)
        TEST_PROGRAM(&end, "silt", "--man", verb);
    else
        TEST_PROGRAM(&end, "silt", "--man");
    ck_assert_int_eq(end.code, 0);
    ck_assert_msg(strcmp(end.out, committed) == 0, "%s is not what the program writes; tools/pages",
                  file);
    test_outcome_release(&end);
    free(committed);
}

START_TEST(pages__are_what_the_program_writes)
{
    check_page(NULL, "silt.1");
    for (size_t i = 0; i < VERBS; i++) {
        char file[64];
        snprintf(file, sizeof file, "silt-%s.1", verbs[i]);
        check_page(verbs[i], file);
    }
}
END_TEST

START_TEST(help__of_each_verb_names_its_options)
{
    for (size_t i = 0; i < VERBS; i++) {
        CK_SILT(0, "usage: silt ", "", verbs[i], "--help");
        CK_SILT(0, "--json", "", verbs[i], "-h");
        CK_SILT(0, verbs[i], "", "--help");
        CK_SILT(0, "usage: silt ", "", "help", verbs[i]);
    }
}
END_TEST

START_TEST(help__has_no_line_that_a_terminal_must_break)
{
    for (size_t i = 0; i < VERBS; i++) {
        char *text = SILT_OUTPUT(verbs[i], "--help"), *rest = text;
        for (char *line; (line = strsep(&rest, "\n")) != NULL;)
            ck_assert_msg(strlen(line) <= 110, "%s", line);
        free(text);
    }
}
END_TEST

START_TEST(program__names_its_version)
{
    CK_SILT(0, "silt 0.", "", "--version");
}
END_TEST

START_TEST(program__refuses_what_it_does_not_know)
{
    struct test_outcome end;
    TEST_PROGRAM(&end, "silt");
    CK_RUN(&end, 2, "", "usage: silt VERB");
    test_outcome_release(&end);
    CK_SILT(2, "", "no such verb: 'frobnicate'\nhint: silt --help", "frobnicate");
    CK_SILT(2, "", "no such verb: 'frobnicate'", "--man", "frobnicate");
    CK_SILT(2, "", "option '--frob' is not known\nhint: silt read --help", "read", "k", "--frob");
    CK_SILT(2, "", "option 'limit' needs a value", "read", "k", "--limit");
    CK_SILT(2, "", "option 'limit' stands twice", "read", "k", "--limit", "1", "--limit=2");
    CK_SILT(2, "", "option 'count' takes no value", "read", "k", "--count=1");
    CK_SILT(2, "", "silt: read needs KEY", "read");
    CK_SILT(2, "", "argument 'j' is one too many", "read", "k", "j");
    CK_SILT(2, "", "silt: get needs KEY ID", "get", "k");
}
END_TEST

START_TEST(program__tells_when_its_results_cannot_be_written)
{
    struct test_outcome end;
    char *path = strdup(test_program_path("silt"));
    TEST_PROGRAM(&end, "sh", "-c", "exec \"$0\" id 1-1 >/dev/full", path);
    free(path);
    CK_RUN(&end, 7, "", "cannot write the results: No space left on device");
    test_outcome_release(&end);
}
END_TEST

START_TEST(program__refuses_bad_settings_with_their_place)
{
    static const char text[] = "# a comment\n\nvalkey:\n  adress: unix:/s\n";
    test_file_write(test_path("bad.yaml"), text, sizeof text - 1);
    CK_SILT(3, "", "bad.yaml:4:3: ", "read", "k", "--config", test_path("bad.yaml"));
    CK_SILT(3, "", "not-there.yaml", "read", "k", "--config", test_path("not-there.yaml"));
}
END_TEST

TEST_MAIN(pages__are_what_the_program_writes, help__of_each_verb_names_its_options,
          help__has_no_line_that_a_terminal_must_break, program__names_its_version,
          program__refuses_what_it_does_not_know, program__tells_when_its_results_cannot_be_written,
          program__refuses_bad_settings_with_their_place)
