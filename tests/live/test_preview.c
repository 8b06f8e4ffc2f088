/* What --plan says before anything is done. */
#include <string.h>

#include "stand.h"

static struct stand stand;

static void check_run(void)
{
    ck_assert_msg(stand_run(&stand) == SILT_OK, "%s", stand.err.sentence);
    ck_assert_msg(stand.works[0]->status == SILT_OK, "%s", stand.works[0]->err.sentence);
}

static void finish(void)
{
    stand_release(&stand);
}

START_TEST(preview__says_what_a_run_does_and_changes_nothing)
{
    struct silt_archiver *reader = NULL;
    struct silt_work *work = NULL;
    struct silt_preview preview;
    struct silt_err err = {0};
    stand_start(&stand, "- { match: s, ids: wire, keep: { entries: 5 } }");
    stand_add(&stand, "s", NULL, 1, 40);
    test_cmd(&stand.server, "XGROUP CREATE s g 20-0");
    ck_assert_int_eq(silt_archiver_new_preview(stand.config, NULL, NULL, &reader, &err), SILT_OK);
    ck_assert_int_eq(
        silt_archiver_work(reader, silt_view_str("s"), &stand.config->streams[0], &work, &err),
        SILT_OK);
    ck_assert_msg(silt_archiver_preview(reader, work, &preview, &err) == SILT_OK, "%s",
                  err.sentence);
    ck_assert_uint_eq(preview.fold_entries, 40);
    ck_assert_uint_eq(preview.trim_entries, 20);
    ck_assert_int_eq(preview.held_by, SILT_HELD_GROUP);
    ck_assert_str_eq(preview.held_name, "g");
    char at[SILT_WIRE_ID_TEXT];
    ck_assert_str_eq(stand_marker(&stand, "s", at), "");
    silt_work_free(work);
    silt_archiver_free(reader);
    check_run();
    ck_assert_int_eq(test_cmd_int(&stand.server, "XLEN s"), 20);
    finish();
}
END_TEST

TEST_MAIN(preview__says_what_a_run_does_and_changes_nothing)
