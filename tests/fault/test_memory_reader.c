/* The n-th request for memory fails, without holes, whoever makes it (hiredis, LMDB, zstd too), while a history is opened and read forward, backward, followed, or one
 * entry is fetched: what was given is right as far as it goes, the failure is said and is never an end, and from the position the rest is given once. */
#include "case.h"
#include "live/cursor_help.h"
#include "scarce.h"

#define ENTRIES 40

static char test_path_archive[200];
static unsigned given[2 * ENTRIES];
static size_t given_count;

/* Reads on until the end or a failure; the position goes to `position`. */
static enum silt_status read_on(struct silt_history *from, struct silt_cursor_options how,
                                char position[SILT_POSITION_TEXT])
{
    struct silt_cursor *walk = NULL;
    struct silt_item item;
    enum silt_status status = silt_cursor_open(from, &how, &walk, &err);
    if (status != SILT_OK) return status;
    while ((status = silt_cursor_next(walk, &item, &err)) == SILT_OK) {
        /* Check's own asserts ask for memory. */
        if (item.kind != SILT_ITEM_ENTRY || given_count == 2 * ENTRIES) abort();
        given[given_count++] = (unsigned)item.entry.id.ms;
        silt_cursor_position(walk, position);
    }
    silt_cursor_close(walk);
    return status;
}

static enum silt_status open_and_read(struct silt_cursor_options how,
                                      char position[SILT_POSITION_TEXT])
{
    struct silt_history *own = NULL;
    struct silt_history_options where = {.archive_path = test_path_archive,
                                         .server_address = server.address};
    enum silt_status status = silt_history_open(&where, &own, &err);
    if (status == SILT_OK) status = read_on(own, how, position);
    silt_history_close(own);
    return status;
}

static void sweep(const char *name, struct silt_cursor_options how, bool on)
{
    size_t refused = 0, requests = 0;
    how.key = KEY;
    for (size_t n = 1;; n++) {
        char position[SILT_POSITION_TEXT] = "";
        given_count = 0;
        scarce_start(n, on);
        enum silt_status status = open_and_read(how, position);
        size_t failed = scarce_stop(&requests);
        if (failed == 0) {
            ck_assert_int_eq(status, SILT_END);
            break;
        }
        refused++;
        ck_assert_msg(silt_status_class(status) != SILT_CLASS_CORRUPT, "%s, request %zu: %s", name,
                      n, err.sentence);
        if (status != SILT_END) {
            if (position[0]) how.resume = position;
            status = open_and_read(how, position);
            how.resume = NULL;
        }
        ck_assert_msg(status == SILT_END, "%s, request %zu: %s", name, n, err.sentence);
        ck_assert_msg(given_count == ENTRIES, "%s, request %zu: %zu entries", name, n, given_count);
        for (unsigned i = 0; i < ENTRIES; i++)
            ck_assert_uint_eq(given[i], how.reverse ? (ENTRIES - i) * 10 : (i + 1) * 10);
    }
    ck_assert_uint_gt(refused, 0);
    fprintf(stderr, "# %s%s: %zu of %zu requests refused\n", name, on ? ", and all later ones" : "",
            refused, requests);
}

/* Two segments archived, half of the second still live too, the rest live only. */
static void begin(void)
{
    start();
    snprintf(test_path_archive, sizeof test_path_archive, "%s", archive_path());
    add(10, 200);
    mini.seal = true;
    test_mini_fold(&mini, 10);
    mini.seal = true;
    test_mini_fold(&mini, 0);
    test_mini_trim(&mini, id(150));
    add(210, ENTRIES * 10);
}

static void sweeps(const char *name, struct silt_cursor_options how)
{
    begin();
    sweep(name, how, false);
    sweep(name, how, true);
    stop();
}

START_TEST(memory_reader__forward)
{
    sweeps("forward", (struct silt_cursor_options){.page_entries = 7});
}
END_TEST

START_TEST(memory_reader__backward)
{
    sweeps("backward", (struct silt_cursor_options){.page_entries = 7, .reverse = true});
}
END_TEST

START_TEST(memory_reader__following)
{
    sweeps("follow",
           (struct silt_cursor_options){.page_entries = 7, .follow = true, .follow_wait_ms = 1});
}
END_TEST

static enum silt_status get_once(const char *which, struct silt_entry **ret)
{
    struct silt_history *own = NULL;
    enum silt_tier tier;
    struct silt_cursor_options how = {.key = KEY};
    struct silt_history_options where = {.archive_path = test_path_archive,
                                         .server_address = server.address};
    enum silt_status status = silt_history_open(&where, &own, &err);
    if (status == SILT_OK) status = silt_history_get(own, &how, which, ret, &tier, &err);
    silt_history_close(own);
    return status;
}

/* "Not there" is never what lacking memory is called. */
START_TEST(memory_reader__get)
{
    static const char *const ids[] = {"50-0", "390-0"};
    begin();
    for (size_t i = 0; i < 2; i++)
        for (size_t n = 1, failed = 1; failed > 0; n++) {
            struct silt_entry *entry = NULL;
            scarce_start(n, false);
            enum silt_status status = get_once(ids[i], &entry);
            failed = scarce_stop(NULL);
            ck_assert_msg(status != SILT_END, "get %s, request %zu: not there", ids[i], n);
            ck_assert((status == SILT_OK) == (entry != NULL));
            ck_assert(status == SILT_OK || failed > 0);
            silt_entry_free(entry);
        }
    stop();
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *tests[] = {memory_reader__forward, memory_reader__backward,
                            memory_reader__following, memory_reader__get};
    return case_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
