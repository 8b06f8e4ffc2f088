/* The crossing of the seam while things move: what happens between a page and its snapshot, every reason to stop, following, a server that is away, gaps and late
 * entries; protocol.md §5 rule by rule, conventions.md §3, field reports C2, D5, D6. */
#include <pthread.h>
#include <unistd.h>

#include "cursor_help.h"

/* ---- between page and snapshot ---- */

static void fold_and_trim(void)
{
    test_mini_fold(&mini, 0);
    test_mini_trim_all(&mini);
}

/* Waits until the reader stands between its page and its snapshot, lets the archiver fold and trim, lets the reader go on. */
static void *archiver_in_between(void *path)
{
    TEST_WAIT(access(path, F_OK) == 0, 20000);
    fold_and_trim();
    unlink(path);
    free(path);
    return NULL;
}

static void arm(pthread_t *thread)
{
    static char setting[300];
    snprintf(setting, sizeof setting, "reader-page=pause:%s", test_path("between"));
    setenv("SILT_FAULT", setting, 1);
    void *path = strdup(test_path("between"));
    ck_assert_int_eq(pthread_create(thread, NULL, archiver_in_between, path), 0);
}

START_TEST(crossing__folded_and_trimmed_between_page_and_snapshot)
{
    pthread_t thread;
    if (!test_faults_built_in()) return;
    start();
    add(10, 90);
    fold_to(30);
    test_mini_trim_all(
        &mini); /* FIRST above the place: the page may not stand for the archive's tail */
    arm(&thread);
    what.page_entries = 4;
    ck_assert_str_eq(walk(), "10a 20a 30a 40a 50a 60a 70a 80a 90a .");
    pthread_join(thread, NULL);
    ck_assert_int_eq(test_cmd_int(&server, "XLEN %s", KEY), 1);
    stop();
}
END_TEST

/* The one optimisation of protocol §5: nothing is missing from such a page, so the tail need not be decoded. */
START_TEST(crossing__a_page_that_lacks_nothing_is_given_as_it_is)
{
    pthread_t thread;
    if (!test_faults_built_in()) return;
    start();
    add(10, 90);
    fold_to(30);
    arm(&thread);
    what.page_entries = 4;
    ck_assert_str_eq(walk(), "10a 20a 30a 40l 50l 60l 70l 80a 90a .");
    pthread_join(thread, NULL);
    stop();
}
END_TEST

START_TEST(crossing__folded_and_trimmed_between_page_and_snapshot_backwards)
{
    pthread_t thread;
    if (!test_faults_built_in()) return;
    start();
    add(10, 90);
    fold_to(30);
    arm(&thread);
    what.reverse = true;
    what.page_entries = 2;
    ck_assert_str_eq(walk(), "90a 80a 70a 60a 50a 40a 30a 20a 10a .");
    pthread_join(thread, NULL);
    stop();
}
END_TEST

START_TEST(crossing__get_finds_what_is_trimmed_between_two_looks)
{
    pthread_t thread;
    struct silt_entry *entry = NULL;
    enum silt_tier tier = SILT_TIER_LIVE;
    if (!test_faults_built_in()) return;
    start();
    add(10, 90);
    fold_to(30);
    test_mini_trim_all(&mini);
    arm(&thread);
    ck_assert_int_eq(silt_history_get(history, &what, "40-0", &entry, &tier, &err), SILT_OK);
    ck_assert_uint_eq(entry->id.ms, 40);
    ck_assert_int_eq(tier, SILT_TIER_ARCHIVE);
    silt_entry_free(entry);
    pthread_join(thread, NULL);
    stop();
}
END_TEST

/* First contact and first fold in that moment: the page has no marker, the snapshot demands one. Not a changed life. */
START_TEST(crossing__first_fold_between_page_and_snapshot)
{
    pthread_t thread;
    if (!test_faults_built_in()) return;
    start();
    add(10, 40);
    arm(&thread);
    ck_assert_str_eq(walk(), "10a 20a 30a 40a .");
    pthread_join(thread, NULL);
    stop();
}
END_TEST

/* D6 (Pulsar 21737, 24432): a reader that stands still at a live entry while it is archived and trimmed. */
START_TEST(crossing__reader_that_paused_goes_on_from_the_archive)
{
    start();
    add(10, 90);
    what.page_entries = 3;
    ck_assert_int_eq(open_cursor(), SILT_OK);
    ck_assert_str_eq(take(2), "10l 20l");
    fold_and_trim();
    add(100, 120);
    ck_assert_str_eq(take(SIZE_MAX), "30l 40a 50a 60a 70a 80a 90a 100l 110l 120l .");
    what.reverse = true;
    ck_assert_int_eq(open_cursor(), SILT_OK);
    ck_assert_str_eq(take(2), "120l 110l");
    add(130, 130);
    fold_and_trim();
    ck_assert_str_eq(take(SIZE_MAX), "100l 90a 80a 70a 60a 50a 40a 30a 20a 10a .");
    stop();
}
END_TEST

/* Model: after a foreign trim of folded entries no end may be reported while the archive has more. */
START_TEST(crossing__foreign_trim_of_folded_entries_hides_nothing)
{
    start();
    add(10, 90);
    what.page_entries = 2;
    ck_assert_int_eq(open_cursor(), SILT_OK);
    ck_assert_str_eq(take(2), "10l 20l");
    test_mini_fold(&mini, 0);
    test_cmd(&server, "XTRIM %s MAXLEN 0", KEY);
    ck_assert_str_eq(take(SIZE_MAX), "30a 40a 50a 60a 70a 80a 90a .");
    stop();
}
END_TEST

/* ---- reasons to stop ---- */

static void copy_archive(void)
{
    test_dir_copy(archive_path(), test_path("older"));
    reopen(test_path("older"), server.address, SILT_AWAY_FAIL);
}

START_TEST(crossing__older_copy_of_the_archive_stops)
{
    start();
    add(10, 90);
    fold_to(30);
    copy_archive();
    ck_assert_str_eq(walk(), "10a 20a 30a 40l 50l 60l 70l 80l 90l ."); /* not older yet */
    fold_to(60);
    test_mini_trim_all(&mini);
    ck_assert_str_eq(walk(), "10a 20a 30a SILT_ERR_OLDER_COPY");
    ck_assert_ptr_nonnull(strstr(err.sentence, "above its watermark"));
    what.reverse = true;
    ck_assert_str_eq(walk(), "SILT_ERR_OLDER_COPY");
    what.reverse = false;
    what.to = "25"; /* what lies below its own watermark it knows */
    ck_assert_str_eq(walk(), "10a 20a .");
    stop();
}
END_TEST

START_TEST(crossing__marker_of_a_higher_epoch_or_another_number_stops)
{
    char name[SILT_MARKER_TEXT];
    struct silt_marker marker;
    start();
    add(10, 60);
    fold_to(30);
    for (int round = 0; round < 2; round++) {
        marker.epoch = mini.meta.epoch + (round == 0);
        marker.number = mini.row.marker_number + (uint64_t)round;
        memcpy(marker.uuid, mini.meta.uuid, sizeof marker.uuid);
        silt_marker_format(&marker, name);
        test_cmd(&server, "XGROUP CREATE %s %s 0", KEY, name);
        ck_assert_str_eq(walk(), "10a 20a 30a SILT_ERR_OLDER_COPY");
        ck_assert_ptr_nonnull(strstr(err.sentence, round == 0 ? "epoch" : "number"));
        test_cmd(&server, "XGROUP DESTROY %s %s", KEY, name);
    }
    test_cmd(&server, "XGROUP CREATE %s silt:00000000-0000-4000-8000-000000000000:1:5 60", KEY);
    ck_assert_str_eq(walk(),
                     "10a 20a 30a 40l 50l 60l ."); /* another archive's is not ours to judge */
    stop();
}
END_TEST

/* An archive that does not know the stream at all, though its marker is there. */
START_TEST(crossing__archive_from_before_the_stream_stops)
{
    test_server_start(&server, NULL);
    test_mini_open(&mini, archive_path(), server.address, KEY, NULL);
    struct silt_history_options where = {.archive_path = test_path("older"),
                                         .server_address = server.address};
    test_dir_copy(archive_path(), test_path("older"));
    ck_assert_int_eq(silt_history_open(&where, &history, &err), SILT_OK);
    what = (struct silt_cursor_options){.key = KEY};
    add(10, 30);
    ck_assert_str_eq(walk(), "10l 20l 30l .");
    test_mini_fold(&mini, 0);
    ck_assert_str_eq(walk(), "SILT_ERR_OLDER_COPY");
    stop();
}
END_TEST

START_TEST(crossing__made_anew_under_a_reader_stops)
{
    char position[SILT_POSITION_TEXT];
    start();
    add(10, 60);
    fold_to(30);
    ck_assert_int_eq(open_cursor(), SILT_OK);
    take(5);
    silt_cursor_position(cursor, position);
    test_cmd(&server, "DEL %s", KEY);
    what.resume = position;
    ck_assert_str_eq(walk(), "SILT_ERR_LIFE_CHANGED");
    ck_assert_ptr_nonnull(strstr(err.sentence, "gone"));
    add(55, 95);
    ck_assert_str_eq(walk(), "SILT_ERR_LIFE_CHANGED");
    ck_assert_ptr_nonnull(strstr(err.sentence, "marker"));
    what.resume = NULL;
    ck_assert_str_eq(walk(), "10a 20a 30a SILT_ERR_LIFE_CHANGED");
    what.reverse = true;
    ck_assert_str_eq(walk(), "SILT_ERR_LIFE_CHANGED");
    reopen(archive_path(), NULL, SILT_AWAY_FAIL); /* the archive alone can always be read */
    ck_assert_str_eq(walk(), "30a 20a 10a .");
    ck_assert(silt_cursor_is_archive_only(cursor));
    stop();
}
END_TEST

/* Nothing was ever folded: without a marker it is read, but not by a position that has seen one. */
START_TEST(crossing__marker_seen_once_is_demanded_ever_after)
{
    char position[SILT_POSITION_TEXT], name[SILT_MARKER_TEXT];
    struct silt_marker marker = {.epoch = 0};
    start();
    add(10, 40);
    ck_assert_str_eq(walk(), "10l 20l 30l 40l .");
    marker.epoch = mini.meta.epoch;
    marker.number = mini.row.marker_number;
    memcpy(marker.uuid, mini.meta.uuid, sizeof marker.uuid);
    silt_marker_format(&marker, name);
    test_cmd(&server, "XGROUP CREATE %s %s 0", KEY, name);
    what.limit = 2;
    ck_assert_str_eq(walk(), "10l 20l .");
    silt_cursor_position(cursor, position);
    test_cmd(&server, "XGROUP DESTROY %s %s", KEY, name);
    what.limit = 0;
    ck_assert_str_eq(walk(), "10l 20l 30l 40l .");
    what.resume = position;
    ck_assert_str_eq(walk(), "SILT_ERR_LIFE_CHANGED");
    stop();
}
END_TEST

START_TEST(crossing__a_new_life_stops_the_old_cursor_and_is_read_by_a_new_one)
{
    char position[SILT_POSITION_TEXT];
    start();
    add(10, 60);
    fold_to(40);
    uint64_t old = mini.row.life;
    what.page_entries = 1;
    ck_assert_int_eq(open_cursor(), SILT_OK);
    take(5);
    silt_cursor_position(cursor, position);
    test_mini_fork(&mini, id(25)); /* from 25 on everything belongs to the new life */
    test_mini_mark(&mini);
    ck_assert_str_eq(take(SIZE_MAX), "SILT_ERR_LIFE_CHANGED");
    what.resume = position;
    ck_assert_str_eq(walk(), "SILT_ERR_LIFE_CHANGED");
    what.resume = NULL;
    ck_assert_str_eq(walk(), "10a 20a 30l 40l 50l 60l .");
    what.life = old;
    ck_assert_str_eq(walk(), "10a 20a 30a 40a .");
    ck_assert(silt_cursor_is_archive_only(cursor));
    what.reverse = true;
    ck_assert_str_eq(walk(), "40a 30a 20a 10a .");
    stop();
}
END_TEST

static void verdict(enum silt_verdict verdict)
{
    mini.row.verdict = verdict;
    mini.row.verdict_reason = silt_view_str("a test");
    test_mini_commit_row(&mini);
}

START_TEST(crossing__audit_pending_holds_the_live_part)
{
    start();
    add(10, 60);
    fold_to(30);
    verdict(SILT_VERDICT_AUDIT_PENDING);
    ck_assert_str_eq(walk(), "10a 20a 30a SILT_ERR_DOUBT");
    ck_assert_str_eq(take(1), "SILT_ERR_DOUBT"); /* and again */
    what.to = "30-0";
    ck_assert_str_eq(walk(), "10a 20a 30a .");
    what.to = NULL;
    what.reverse = true;
    ck_assert_str_eq(walk(), "30a 20a 10a SILT_ERR_DOUBT");
    what.limit = 2; /* the newest two are others */
    ck_assert_str_eq(walk(), "30a 20a SILT_ERR_DOUBT");
    what.to = "30-0";
    ck_assert_str_eq(walk(), "30a 20a .");
    what.to = NULL;
    what.reverse = false;
    ck_assert_str_eq(walk(), "10a 20a .");
    what.limit = 0;
    what.follow = true;
    what.follow_wait_ms = 30;
    ck_assert_str_eq(walk(), "10a 20a 30a .");
    ck_assert(silt_cursor_is_held(cursor));
    verdict(SILT_VERDICT_CLEAR);
    ck_assert_str_eq(take(SIZE_MAX), "40l 50l 60l .");
    ck_assert(!silt_cursor_is_held(cursor));
    stop();
}
END_TEST

/* LAST below W: a replica that is behind, or a server that was set back. Not an end. */
START_TEST(crossing__a_server_behind_the_archive_is_no_end)
{
    start();
    add(10, 60);
    test_mini_fold(&mini, 0);
    test_cmd(&server, "XTRIM %s MAXLEN 0", KEY);
    test_cmd(&server, "XSETID %s 40-0", KEY);
    ck_assert_str_eq(walk(), "10a 20a 30a 40a 50a 60a SILT_ERR_STALE");
    ck_assert_int_eq(silt_status_class(SILT_ERR_STALE), SILT_CLASS_RETRY);
    what.reverse = true;
    ck_assert_str_eq(walk(), "SILT_ERR_STALE");
    what.reverse = false;
    what.follow = true; /* waits for the replica to catch up */
    what.follow_wait_ms = 30;
    ck_assert_str_eq(walk(), "10a 20a 30a 40a 50a 60a .");
    add(70, 70);
    ck_assert_str_eq(take(SIZE_MAX), "70l .");
    stop();
}
END_TEST

/* ---- gaps ---- */

/* C2: the stream is empty, its top is known and lies far ahead. */
START_TEST(crossing__removed_above_the_watermark_is_a_gap_and_then_the_end)
{
    char position[SILT_POSITION_TEXT];
    start();
    add(10, 60);
    fold_to(20);
    test_cmd(&server, "XTRIM %s MAXLEN 0", KEY);
    ck_assert_str_eq(walk(), "10a 20a gap:20-60x4 .");
    silt_cursor_position(cursor, position);
    what.resume = position;
    ck_assert_str_eq(walk(), "."); /* told once */
    add(70, 90);
    test_cmd(&server, "XDEL %s 80-0", KEY);
    ck_assert_str_eq(walk(), "70l 90l gap:60-90x1 .");
    /* Whoever starts anew hears of both, and when the archiver has booked them, of the same. */
    what.resume = NULL;
    ck_assert_str_eq(walk(), "10a 20a 70l 90l gap:20-90x5 .");
    test_mini_fold(&mini, 0);
    ck_assert_str_eq(walk(), "10a 20a gap:20-90x5 70a 90a .");
    what.resume = position;
    ck_assert_str_eq(walk(), "70a 90a gap:60-90x1 .");
    stop();
}
END_TEST

START_TEST(crossing__recorded_gap_is_told_in_its_place_once)
{
    char position[SILT_POSITION_TEXT];
    start();
    add(10, 30);
    fold_to(30);
    add(40, 60);
    test_cmd(&server, "XTRIM %s MINID 60", KEY);
    test_mini_fold(&mini, 0);
    add(70, 70);
    ck_assert_str_eq(walk(), "10a 20a 30a gap:30-60x2 60a 70l .");
    what.reverse = true;
    ck_assert_str_eq(walk(), "70l gap:30-60x2 60a 30a 20a 10a .");
    what.reverse = false;
    for (size_t given = 3; given <= 5; given++) {
        what.resume = NULL;
        ck_assert_int_eq(open_cursor(), SILT_OK);
        take(given);
        silt_cursor_position(cursor, position);
        what.resume = position;
        ck_assert_str_eq(walk(), given == 3   ? "gap:30-60x2 60a 70l ."
                                 : given == 4 ? "60a 70l ."
                                              : "70l .");
    }
    what.resume = NULL;
    what.from = "45"; /* inside it */
    ck_assert_str_eq(walk(), "gap:30-60x2 60a 70l .");
    what.from = "65";
    ck_assert_str_eq(walk(), "70l .");
    what.from = NULL;
    what.to = "30-0";
    ck_assert_str_eq(walk(), "10a 20a 30a .");
    what.to = "40";
    ck_assert_str_eq(walk(), "10a 20a 30a gap:30-60x2 .");
    stop();
}
END_TEST

/* Gaps at the edges of segments, and one whose edge is no entry. */
START_TEST(crossing__gaps_are_told_once_from_every_position)
{
    start();
    add(10, 40);
    fold_to(20);
    mini.seal = true;
    fold_to(30);
    test_cmd(&server, "XDEL %s 40-0", KEY);
    test_mini_fold(&mini, 0); /* up to 40, which is gone */
    add(50, 60);
    test_cmd(&server, "XDEL %s 50-0", KEY);
    mini.seal = true;
    test_mini_fold(&mini, 0);
    add(70, 80);
    ck_assert_str_eq(walk(), "10a 20a 30a gap:30-40x1 gap:40-60x1 60a 70l 80l .");
    what.reverse = true;
    ck_assert_str_eq(walk(), "80l 70l gap:40-60x1 60a gap:30-40x1 30a 20a 10a .");
    resume_everywhere();
    stop();
}
END_TEST

/* A position above W carries its base: no false gap, and none twice, when the archiver moves W past it (model: EA0 - A taken literally). */
START_TEST(crossing__base_travels_with_the_position)
{
    char position[SILT_POSITION_TEXT];
    start();
    add(10, 60);
    fold_to(20);
    test_cmd(&server, "XDEL %s 40-0", KEY);
    ck_assert_str_eq(walk(), "10a 20a 30l 50l 60l gap:20-60x1 .");
    silt_cursor_position(cursor, position);
    add(70, 100);
    test_mini_fold(&mini, 3); /* 30 50 60: short of LAST, books nothing */
    what.resume = position;
    ck_assert_str_eq(walk(), "70l 80l 90l 100l .");
    test_mini_fold(&mini, 2); /* beyond the base, still unbooked */
    ck_assert_str_eq(walk(), "70a 80a 90l 100l .");
    test_mini_fold(&mini, 0);
    ck_assert_uint_eq(mini.row.gap_entries, 1);
    ck_assert_str_eq(walk(), "70a 80a 90a 100a .");
    stop();
}
END_TEST

/* ---- late entries ---- */

START_TEST(crossing__late_entries_behind_a_position_are_counted)
{
    char position[SILT_POSITION_TEXT];
    start();
    add(10, 60);
    fold_to(40);
    what.limit = 3;
    ck_assert_str_eq(walk(), "10a 20a 30a .");
    silt_cursor_position(cursor, position);
    what.limit = 0;
    test_mini_late(&mini, 1, id(15));
    test_mini_late(&mini, 2, id(35)); /* ahead: it will be met on the way */
    test_mini_late(&mini, 3, id(25));
    test_mini_commit_row(&mini);
    what.resume = position;
    ck_assert_int_eq(open_cursor(), SILT_OK);
    ck_assert_str_eq(take(2), "late:2 40a");
    silt_cursor_position(cursor, position);
    ck_assert_str_eq(walk(), "50l 60l ."); /* told once */
    what.resume = NULL;
    ck_assert_str_eq(walk(), "10a 20a 30a 40a 50l 60l .");
    stop();
}
END_TEST

/* ---- the server is away ---- */

START_TEST(crossing__archive_alone_when_away_and_allowed)
{
    uint64_t count = 0;
    struct silt_entry *entry = NULL;
    enum silt_tier tier;
    start();
    add(10, 60);
    fold_to(30);
    test_server_kill(&server);
    ck_assert_str_eq(walk(), "10a 20a 30a SILT_ERR_SERVER_AWAY");
    reopen(archive_path(), server.address, SILT_AWAY_ARCHIVE_ONLY);
    ck_assert_str_eq(walk(), "10a 20a 30a .");
    ck_assert(silt_cursor_is_archive_only(cursor));
    ck_assert_uint_eq(silt_cursor_watermark(cursor).ms, 30);
    what.reverse = true;
    ck_assert_str_eq(walk(), "30a 20a 10a .");
    ck_assert(silt_cursor_is_archive_only(cursor));
    what.reverse = false;
    ck_assert_int_eq(silt_history_count(history, &what, &count, &err), SILT_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert(silt_history_was_archive_only(history));
    ck_assert_int_eq(silt_history_get(history, &what, "20-0", &entry, &tier, &err), SILT_OK);
    silt_entry_free(entry);
    /* What only the server could know is not answered with "nowhere". */
    ck_assert_int_eq(silt_history_get(history, &what, "50-0", &entry, &tier, &err),
                     SILT_ERR_SERVER_AWAY);
    what.key = "{t}:other";
    ck_assert_str_eq(walk(), "SILT_ERR_SERVER_AWAY");
    stop();
}
END_TEST

START_TEST(crossing__goes_on_when_the_server_comes_back)
{
    start();
    stop();
    test_server_start(&server, "--appendonly", "yes", NULL);
    test_mini_open(&mini, test_path("second"), server.address, KEY, NULL);
    test_mini_commit_row(&mini);
    reopen(test_path("second"), server.address, SILT_AWAY_FAIL);
    what = (struct silt_cursor_options){.key = KEY, .page_entries = 2};
    add(10, 60);
    ck_assert_int_eq(open_cursor(), SILT_OK);
    ck_assert_str_eq(take(2), "10l 20l");
    test_server_stop(&server);
    ck_assert_str_eq(take(1), "SILT_ERR_SERVER_AWAY");
    ck_assert_int_eq(silt_status_class(SILT_ERR_SERVER_AWAY), SILT_CLASS_RETRY);
    test_server_restart(&server);
    ck_assert_str_eq(take(3), "30l 40l 50l");
    test_cmd(&server,
             "CLIENT KILL TYPE normal SKIPME yes"); /* an idle link that the server closed */
    ck_assert_str_eq(take(SIZE_MAX), "60l .");
    stop();
}
END_TEST

/* ---- following ---- */

START_TEST(crossing__follow_gives_history_then_what_arrives)
{
    start();
    add(10, 60);
    fold_to(30);
    what.follow = true;
    what.follow_wait_ms = 30;
    ck_assert_str_eq(walk(), "10a 20a 30a 40l 50l 60l .");
    add(70, 80);
    ck_assert_str_eq(take(SIZE_MAX), "70l 80l .");
    fold_and_trim();
    ck_assert_str_eq(take(SIZE_MAX), ".");
    add(90, 100);
    fold_and_trim();
    ck_assert_str_eq(take(SIZE_MAX), "90a 100a .");
    ck_assert_int_gt(calls("xread"), 0);
    stop();
}
END_TEST

static int asked;

static bool is_cancelled(void *unused)
{
    (void)unused;
    return asked++ >= 2; /* by then it waits for entries */
}

START_TEST(crossing__follow_can_be_cancelled)
{
    start();
    add(10, 20);
    what.follow = true;
    ck_assert_int_eq(open_cursor(), SILT_OK);
    ck_assert_str_eq(take(2), "10l 20l");
    what.cancelled = is_cancelled;
    ck_assert_int_eq(open_cursor(), SILT_OK);
    ck_assert_str_eq(take(2), "10l 20l");
    ck_assert_str_eq(take(1), "SILT_ERR_CANCELLED");
    asked = -1000000;
    add(30, 30);
    ck_assert_str_eq(take(1), "30l"); /* the position stayed */
    stop();
}
END_TEST

/* ---- rights ---- */

static void as_user(const char *rights)
{
    test_cmd(&server, "ACL SETUSER reader reset on nopass ~%s", KEY);
    char command[400];
    snprintf(command, sizeof command, "ACL SETUSER reader %s", rights);
    test_cmd(&server, command);
    close_cursor();
    silt_history_close(history);
    history = NULL;
    test_file_write(test_path("password"), "any\n", 4);
    struct silt_history_options where = {.archive_path = archive_path(),
                                         .server_address = server.address,
                                         .user = "reader",
                                         .password_file = test_path("password")};
    ck_assert_int_eq(silt_history_open(&where, &history, &err), SILT_OK);
}

START_TEST(crossing__reads_with_the_documented_rights_alone)
{
    start();
    add(10, 60);
    fold_to(30);
    as_user("+multi +exec +xrange +xrevrange +xinfo|stream +xinfo|groups");
    ck_assert_str_eq(walk(), "10a 20a 30a 40l 50l 60l .");
    what.reverse = true;
    ck_assert_str_eq(walk(), "60l 50l 40l 30a 20a 10a .");
    what.reverse = false;
    what.follow = true; /* without XREAD it looks again and again */
    what.follow_wait_ms = 30;
    ck_assert_str_eq(walk(), "10a 20a 30a 40l 50l 60l .");
    add(70, 70);
    ck_assert_str_eq(take(SIZE_MAX), "70l .");
    stop();
}
END_TEST

START_TEST(crossing__without_sight_of_the_marker_it_does_not_guess)
{
    start();
    add(10, 60);
    fold_to(30);
    as_user("+multi +exec +xrange +xrevrange +xinfo|stream");
    ck_assert_str_eq(walk(), "10a 20a 30a SILT_ERR_SERVER_DENIED");
    ck_assert_ptr_nonnull(strstr(err.hint, "xinfo"));
    stop();
}
END_TEST

/* ---- two cursors, one connection ---- */

START_TEST(crossing__cursors_of_one_history_take_turns)
{
    struct silt_cursor *second = NULL;
    struct silt_item item;
    start();
    add(10, 60);
    fold_to(20);
    what.page_entries = 1;
    ck_assert_int_eq(open_cursor(), SILT_OK);
    what.reverse = true;
    ck_assert_int_eq(silt_cursor_open(history, &what, &second, &err), SILT_OK);
    for (unsigned i = 1; i <= 6; i++) {
        char due[8];
        snprintf(due, sizeof due, "%u%s", 10 * i, i <= 2 ? "a" : "l");
        ck_assert_str_eq(take(1), due);
        ck_assert_int_eq(silt_cursor_next(second, &item, &err), SILT_OK);
        ck_assert_uint_eq(item.entry.id.ms, 70 - 10 * i);
    }
    silt_cursor_close(second);
    stop();
}
END_TEST

TEST_MAIN(crossing__folded_and_trimmed_between_page_and_snapshot,
          crossing__a_page_that_lacks_nothing_is_given_as_it_is,
          crossing__folded_and_trimmed_between_page_and_snapshot_backwards,
          crossing__get_finds_what_is_trimmed_between_two_looks,
          crossing__first_fold_between_page_and_snapshot,
          crossing__reader_that_paused_goes_on_from_the_archive,
          crossing__foreign_trim_of_folded_entries_hides_nothing,
          crossing__older_copy_of_the_archive_stops,
          crossing__marker_of_a_higher_epoch_or_another_number_stops,
          crossing__archive_from_before_the_stream_stops, crossing__made_anew_under_a_reader_stops,
          crossing__marker_seen_once_is_demanded_ever_after,
          crossing__a_new_life_stops_the_old_cursor_and_is_read_by_a_new_one,
          crossing__audit_pending_holds_the_live_part,
          crossing__a_server_behind_the_archive_is_no_end,
          crossing__removed_above_the_watermark_is_a_gap_and_then_the_end,
          crossing__recorded_gap_is_told_in_its_place_once,
          crossing__gaps_are_told_once_from_every_position,
          crossing__base_travels_with_the_position,
          crossing__late_entries_behind_a_position_are_counted,
          crossing__archive_alone_when_away_and_allowed,
          crossing__goes_on_when_the_server_comes_back,
          crossing__follow_gives_history_then_what_arrives, crossing__follow_can_be_cancelled,
          crossing__reads_with_the_documented_rights_alone,
          crossing__without_sight_of_the_marker_it_does_not_guess,
          crossing__cursors_of_one_history_take_turns)
