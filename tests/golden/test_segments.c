/* Segments that earlier versions wrote and this one must read, and such that every version must refuse. Their names tell what is expected:
 * segments/NAME.segment is NAME.txt; refused/corrupt-NAME and refused/newer-NAME are refused as such. */
#include <dirent.h>
#include <stdlib.h>

#include "dump.h"
#include "harness/harness.h"

static bool ends_with(const char *name, const char *end)
{
    size_t a = strlen(name), b = strlen(end);
    return a >= b && strcmp(name + a - b, end) == 0;
}

/* Calls look for each .segment of the folder; gives how many. */
static size_t each(const char *folder, void (*look)(const char *name, struct silt_view value))
{
    char path[1024];
    size_t count = 0, len;
    snprintf(path, sizeof path, "%s/tests/golden/%s", test_source_root(), folder);
    DIR *dir = opendir(path);
    ck_assert_msg(dir != NULL, "%s is missing", path);
    for (struct dirent *file; (file = readdir(dir)) != NULL;) {
        if (!ends_with(file->d_name, ".segment")) continue;
        snprintf(path, sizeof path, "%s/tests/golden/%s/%s", test_source_root(), folder,
                 file->d_name);
        char *bytes = test_file_read(path, &len);
        look(path, silt_view(bytes, len));
        free(bytes);
        count++;
    }
    closedir(dir);
    return count;
}

static void reads_as_kept(const char *name, struct silt_view value)
{
    char path[1024];
    size_t len;
    struct silt_segment *segment;
    struct silt_err err = {0};
    struct silt_buf dump = {0};
    snprintf(path, sizeof path, "%.*stxt", (int)(strlen(name) - strlen("segment")), name);
    char *want = test_file_read(path, &len);
    ck_assert_int_eq(silt_segment_new(&segment), SILT_OK);
    enum silt_status status = silt_segment_open(segment, value, &err);
    ck_assert_msg(status == SILT_OK, "%s: %s", name, err.sentence);
    golden_dump(segment, &dump);
    ck_assert_msg(silt_view_equal(silt_buf_view(&dump), silt_view(want, len)), "%s reads otherwise",
                  name);
    silt_buf_release(&dump);
    silt_segment_free(segment);
    free(want);
}

static void is_refused(const char *name, struct silt_view value)
{
    struct silt_segment *segment;
    struct silt_err err = {0};
    bool newer = strstr(name, "/newer-") != NULL;
    ck_assert_msg(newer || strstr(name, "/corrupt-"), "%s says not what it is", name);
    ck_assert_int_eq(silt_segment_new(&segment), SILT_OK);
    enum silt_status status = silt_segment_open(segment, value, &err);
    ck_assert_msg(status == (newer ? SILT_ERR_NEWER_FORMAT : SILT_ERR_CORRUPT), "%s: %s", name,
                  silt_status_name(status));
    ck_assert_str_ne(err.sentence, "");
    silt_segment_free(segment);
}

START_TEST(segment__kept_ones_read_as_ever)
{
    ck_assert_uint_ge(each("segments", reads_as_kept), 6);
}
END_TEST

START_TEST(segment__refused_ones_are_refused_as_ever)
{
    ck_assert_uint_ge(each("refused", is_refused), 8);
}
END_TEST

TEST_MAIN(segment__kept_ones_read_as_ever, segment__refused_ones_are_refused_as_ever)
