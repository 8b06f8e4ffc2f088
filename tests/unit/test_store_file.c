/* The directory: names, leftovers, the current file, file systems that are refused. */
#include <sys/stat.h>
#include <unistd.h>

#include "format/store_priv.h"
#include "harness/harness.h"

START_TEST(store_file__only_its_own_names)
{
    uint64_t number;
    char name[SILT_FILE_NAME_MAX];
    ck_assert(silt_file_number("archive-1.mdb", &number));
    ck_assert_uint_eq(number, 1);
    silt_file_name(UINT64_MAX, name);
    ck_assert_str_eq(name, "archive-18446744073709551615.mdb");
    ck_assert(silt_file_number(name, &number));
    static const char *const others[] = {"",
                                         "archive-.mdb",
                                         "archive-01.mdb",
                                         "archive-1.mdb.new",
                                         "archive-1.mdb-lock",
                                         "archive-+1.mdb",
                                         "archive-18446744073709551616.mdb",
                                         "Archive-1.mdb",
                                         "archive-1.mdbx",
                                         "../archive-1.mdb",
                                         "data.mdb",
                                         "current"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(!silt_file_number(others[i], &number), "%s", others[i]);
}
END_TEST

START_TEST(store_file__current_falls_back_to_the_lowest)
{
    char name[SILT_FILE_NAME_MAX];
    const char *dir = test_scratch();
    ck_assert_int_eq(silt_dir_current(dir, name, NULL), SILT_END);
    test_file_write(test_path("archive-12.mdb"), "x", 1);
    test_file_write(test_path("archive-3.mdb"), "x", 1);
    ck_assert_int_eq(silt_dir_current(dir, name, NULL), SILT_OK);
    ck_assert_str_eq(name, "archive-3.mdb");
    ck_assert(!silt_dir_has_current(dir));
    static const char *const texts[] = {"",
                                        "\n",
                                        "archive-12.mdb",
                                        "archive-1x.mdb\n",
                                        "../archive-12.mdb\n",
                                        "archive-12.mdb\narchive-3.mdb\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        test_file_write(test_path("current"), texts[i], strlen(texts[i]));
        ck_assert(!silt_dir_has_current(dir));
        ck_assert_int_eq(silt_dir_current(dir, name, NULL), SILT_OK);
        ck_assert_str_eq(name, "archive-3.mdb");
    }
    ck_assert_int_eq(silt_dir_set_current(dir, "archive-12.mdb", NULL), SILT_OK);
    ck_assert(silt_dir_has_current(dir));
    ck_assert_int_eq(silt_dir_current(dir, name, NULL), SILT_OK);
    ck_assert_str_eq(name, "archive-12.mdb");
    ck_assert_int_eq(access(test_path("current.new"), F_OK), -1);
}
END_TEST

START_TEST(store_file__cleans_leftovers_and_nothing_else)
{
    static const char *const gone[] = {"archive-1.mdb",     "archive-1.mdb-lock",
                                       "archive-3.mdb",     "archive-3.mdb.new",
                                       "archive-2.mdb.new", "archive-2.mdb.new-lock"};
    static const char *const kept[] = {
        "archive-2.mdb", "archive-2.mdb-lock", "current",          "lock",
        "archive-x.mdb", "archive-1.mdb.bak",  "my-archive-1.mdb", "archive-1"};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        test_file_write(test_path("%s", gone[i]), "x", 1);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        test_file_write(test_path("%s", kept[i]), "x", 1);
    silt_dir_clean(test_scratch(), "archive-2.mdb");
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        ck_assert_msg(access(test_path("%s", gone[i]), F_OK) != 0, "%s", gone[i]);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        ck_assert_msg(access(test_path("%s", kept[i]), F_OK) == 0, "%s", kept[i]);
}
END_TEST

/* F12. Mounting one takes rights that a test does not have: the decision is tested by number. */
START_TEST(store_file__network_file_systems_are_refused_by_name)
{
    ck_assert_str_eq(silt_fs_refused(0x6969), "NFS");
    ck_assert_str_eq(silt_fs_refused((long)0xFF534D42), "CIFS");
    ck_assert_str_eq(silt_fs_refused(-0xACB2BEL), "CIFS"); /* as a 32-bit long would hold it */
    ck_assert_str_eq(silt_fs_refused((long)0xFE534D42), "SMB2");
    ck_assert_str_eq(silt_fs_refused(0x01021997), "9p");
    ck_assert_ptr_null(silt_fs_refused(0xEF53));     /* ext4 */
    ck_assert_ptr_null(silt_fs_refused(0x01021994)); /* tmpfs */
    ck_assert_ptr_null(silt_fs_refused(0x794C7630)); /* overlay: works, and is spoken of */
    ck_assert_ptr_nonnull(strstr(silt_fs_doubtful(0x794C7630), "goes with the container"));
    ck_assert_ptr_nonnull(strstr(silt_fs_doubtful(0x01021994), "goes with the power"));
    ck_assert_ptr_nonnull(strstr(silt_fs_doubtful(0x65735546), "FUSE"));
    ck_assert_ptr_null(silt_fs_doubtful(0xEF53));
    ck_assert_ptr_null(silt_store_place(test_path("nowhere")));
    ck_assert_int_eq(silt_dir_check(test_scratch(), NULL), SILT_OK);
}
END_TEST

START_TEST(store_file__making_a_directory_twice_is_fine)
{
    struct stat st;
    ck_assert_int_eq(silt_dir_make(test_path("d"), NULL), SILT_OK);
    ck_assert_int_eq(silt_dir_make(test_path("d"), NULL), SILT_OK);
    ck_assert_int_eq(stat(test_path("d"), &st), 0);
    ck_assert(S_ISDIR(st.st_mode));
}
END_TEST

TEST_MAIN(store_file__only_its_own_names, store_file__current_falls_back_to_the_lowest,
          store_file__cleans_leftovers_and_nothing_else,
          store_file__network_file_systems_are_refused_by_name,
          store_file__making_a_directory_twice_is_fine)
