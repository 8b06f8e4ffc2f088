/* Cursors on a quiet server: bounds, windows, directions, positions, one entry, counts, damage; the contract's scenarios 17 to 29 and 70 to 75. */
#include "cursor_help.h"
#include "mergeread/cursor_priv.h"

/* ---- what exists ---- */

START_TEST(cursor__unknown_key_is_said)
{
    start();
    what.key = "{t}:none";
    ck_assert_str_eq(walk(), "SILT_ERR_UNKNOWN_STREAM");
    test_cmd(&server, "SET {t}:none x");
    ck_assert_str_eq(walk(), "SILT_ERR_WRONG_TYPE");
    reopen(archive_path(), NULL, SILT_AWAY_FAIL);
    ck_assert_str_eq(walk(), "SILT_ERR_UNKNOWN_STREAM");
    stop();
}
END_TEST

START_TEST(cursor__options_that_exclude_each_other_are_refused)
{
    start();
    what.follow = what.reverse = true;
    ck_assert_str_eq(walk(), "SILT_ERR_USAGE");
    what.reverse = false;
    what.to = "+";
    ck_assert_str_eq(walk(), "SILT_ERR_USAGE");
    what = (struct silt_cursor_options){.key = NULL};
    ck_assert_str_eq(walk(), "SILT_ERR_USAGE");
    what = (struct silt_cursor_options){.key = KEY, .ids = SILT_IDS_BRANDED, .ns = "EVT"};
    ck_assert_str_eq(walk(), "SILT_ERR_USAGE"); /* the archive keeps it as plain */
    what = (struct silt_cursor_options){.key = KEY, .life = 99};
    ck_assert_str_eq(walk(), "SILT_ERR_UNKNOWN_STREAM");
    struct silt_history_options nothing = {0};
    ck_assert_int_eq(silt_history_open(&nothing, &history, &err), SILT_ERR_USAGE);
    stop();
}
END_TEST

/* Scenarios 21 and 26: refused before anything is sent, not even a connection is made. */
START_TEST(cursor__refused_bounds_send_nothing)
{
    static const struct {
        const char *from, *to;
        enum silt_status due;
    } rows[] = {
        {"20", "10", SILT_ERR_WINDOW},
        {"2026-03-01T00:00:00.001Z", "2026-03-01T00:00:00.000Z", SILT_ERR_WINDOW},
        {"1969-12-31T00:00:00Z", NULL, SILT_ERR_INSTANT},
        {"7209071209119879168", NULL, SILT_ERR_BARE_SNOWFLAKE},
        {"1-x", NULL, SILT_ERR_WIRE_ID},
        {"EVT0LA1WsaHPk", NULL, SILT_ERR_ID_LENGTH},
        {"EVT~LA1WsaHPk0", NULL, SILT_ERR_ID_CHARSET},
        {"EVTLygHa16AHYL", NULL, SILT_ERR_ID_RANGE},
        {"(+", NULL, SILT_ERR_WIRE_ID},
    };
    start();
    long long before = atoll(test_server_info(&server, "stats", "total_connections_received"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        what.from = rows[i].from;
        what.to = rows[i].to;
        enum silt_status status = open_cursor();
        ck_assert_msg(status < 0 && status != SILT_ERR_UNKNOWN_STREAM, "row %zu was taken", i);
        if (rows[i].due != SILT_ERR_WIRE_ID)
            ck_assert_msg(status == rows[i].due, "row %zu: %s", i, silt_status_name(status));
        ck_assert_ptr_null(cursor);
    }
    ck_assert_int_eq(atoll(test_server_info(&server, "stats", "total_connections_received")),
                     before);
    stop();
}
END_TEST

/* ---- reading ---- */

START_TEST(cursor__live_only_reads_in_order_and_changes_nothing)
{
    start();
    reopen(NULL, server.address, SILT_AWAY_FAIL);
    add(10, 50);
    char *info = strdup(test_stream_text(&server, KEY, "last-generated-id"));
    ck_assert_str_eq(walk(), "10l 20l 30l 40l 50l .");
    what.reverse = true;
    ck_assert_str_eq(walk(), "50l 40l 30l 20l 10l .");
    ck_assert_int_eq(test_cmd_int(&server, "XLEN %s", KEY), 5);
    ck_assert_str_eq(test_stream_text(&server, KEY, "last-generated-id"), info);
    ck_assert_int_eq(test_stream_int(&server, KEY, "groups"), 0);
    free(info);
    stop();
}
END_TEST

/* Scenarios 70 and 71, and every range in both directions at every place of the seam. */
START_TEST(cursor__archive_and_live_are_one_history)
{
    char from[24], to[24], due[400];
    start();
    add(10, 90);
    ck_assert_str_eq(walk(), "10l 20l 30l 40l 50l 60l 70l 80l 90l .");
    for (unsigned seam = 10; seam <= 90; seam += 20) {
        fold_to(seam);
        test_mini_trim_all(&mini);
        for (unsigned low = 5; low <= 95; low += 10)
            for (unsigned high = low; high <= 95; high += 15)
                for (int reverse = 0; reverse < 2; reverse++) {
                    size_t at = 0;
                    due[0] = '\0';
                    for (unsigned i = 0; i < 9; i++) {
                        unsigned ms = reverse ? 90 - 10 * i : 10 + 10 * i;
                        if (ms < low || ms > high) continue;
                        at += (size_t)snprintf(due + at, sizeof due - at, "%u%s ", ms,
                                               ms <= seam ? "a" : "l");
                    }
                    snprintf(due + at, sizeof due - at, ".");
                    snprintf(from, sizeof from, "%u", low);
                    snprintf(to, sizeof to, "%u", high);
                    what = (struct silt_cursor_options){
                        .key = KEY, .from = from, .to = to, .reverse = reverse, .page_entries = 2};
                    ck_assert_str_eq(walk(), due);
                }
    }
    stop();
}
END_TEST

/* Scenario 72. */
START_TEST(cursor__asks_the_server_only_above_the_seam)
{
    start();
    add(10, 90);
    fold_to(50);
    test_mini_trim_all(&mini);
    long long before = calls("xrange") + calls("xrevrange") + calls("xinfo|stream");
    what.to = "50-0"; /* "50" would be all of that millisecond */
    ck_assert_str_eq(walk(), "10a 20a 30a 40a 50a .");
    what.reverse = true;
    ck_assert_str_eq(walk(), "50a 40a 30a 20a 10a .");
    ck_assert_int_eq(calls("xrange") + calls("xrevrange") + calls("xinfo|stream"), before);
    long long ranges = calls("xrange");
    what = (struct silt_cursor_options){.key = KEY, .from = "60"};
    ck_assert_str_eq(walk(), "60l 70l 80l 90l .");
    ck_assert_int_eq(calls("xrange"), ranges + 1);
    what.from = NULL;
    ck_assert_str_eq(walk(), "10a 20a 30a 40a 50a 60l 70l 80l 90l .");
    ck_assert_int_eq(calls("xrange"), ranges + 2);
    ck_assert_uint_eq(silt_cursor_watermark(cursor).ms, 50);
    ck_assert(!silt_cursor_is_archive_only(cursor));
    stop();
}
END_TEST

/* Scenario 20. */
START_TEST(cursor__limit_gives_the_first_and_the_rest_is_resumed)
{
    char position[SILT_POSITION_TEXT];
    start();
    add(10, 100);
    for (int folded = 0; folded < 2; folded++) {
        if (folded) fold_to(50);
        what = (struct silt_cursor_options){.key = KEY, .limit = 3};
        const char *tier = folded ? "10a 20a 30a ." : "10l 20l 30l .";
        ck_assert_str_eq(walk(), tier);
        silt_cursor_position(cursor, position);
        what.limit = 0;
        what.resume = position;
        ck_assert_str_eq(walk(), folded ? "40a 50a 60l 70l 80l 90l 100l ."
                                        : "40l 50l 60l 70l 80l 90l 100l .");
    }
    stop();
}
END_TEST

/* ---- windows by instant; branded ids (contract scenarios 22 to 28) ---- */

static void add_branded(const char *brand)
{
    struct silt_branded_id branded;
    char wire[SILT_WIRE_ID_TEXT];
    ck_assert_int_eq(silt_branded_id_parse(silt_view_str(brand), &branded, &err), SILT_OK);
    silt_wire_id_format(silt_snowflake_to_wire(branded.snowflake), wire);
    test_cmd(&server, "XADD %s %s id %s", KEY, wire, brand);
}

/* The ids that a walk gives, by their brands. */
static const char *brands(void)
{
    struct silt_item item;
    size_t at = 0;
    text[0] = '\0';
    ck_assert_int_eq(open_cursor(), SILT_OK);
    while (silt_cursor_next(cursor, &item, &err) == SILT_OK) {
        if (item.kind != SILT_ITEM_ENTRY) continue;
        ck_assert_uint_eq(item.entry.fields[0].value.len, 14);
        ck_assert(!item.foreign);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.14s", at > 0 ? " " : "",
                               (const char *)item.entry.fields[0].value.at);
    }
    return text;
}

/* The same answer from the live stream, from both tiers, and from the archive. */
static void expect_window(const char *from, const char *to, const char *due)
{
    what = (struct silt_cursor_options){.key = KEY, .from = from, .to = to};
    ck_assert_str_eq(brands(), due);
    test_mini_fold(&mini, 2);
    ck_assert_str_eq(brands(), due);
    test_mini_trim_all(&mini);
    ck_assert_str_eq(brands(), due);
    test_mini_fold(&mini, 0);
    ck_assert_str_eq(brands(), due);
    ck_assert_str_eq(silt_cursor_namespace(cursor), "EVT");
}

START_TEST(cursor__since_has_an_exact_lower_edge)
{
    start_as("EVT");
    add_branded("EVT0EdsQl57MnI");
    add_branded("EVT0EdsQl5OxvM");
    add_branded("EVT0EdsQl5gZ3Q");
    add_branded("EVT0EdsQlJsVYe");
    add_branded("EVT0EdsQm0SL4K");
    expect_window("2025-07-01T00:00:00.100Z", NULL, "EVT0EdsQl5gZ3Q EVT0EdsQlJsVYe EVT0EdsQm0SL4K");
    what.from = "EVT0EdsQlJsVYe";
    ck_assert_str_eq(brands(), "EVT0EdsQlJsVYe EVT0EdsQm0SL4K");
    what.from = "(EVT0EdsQlJsVYe";
    ck_assert_str_eq(brands(), "EVT0EdsQm0SL4K");
    what.from = "ORD0EdsQlJsVYe";
    ck_assert_int_eq(open_cursor(), SILT_ERR_ID_KIND);
    stop();
}
END_TEST

START_TEST(cursor__window_edges_are_exact_and_inclusive)
{
    static const char *const ids[] = {"EVT0E5TJo0Jh3o", "EVT0E5TJo0bIBs", "EVT0E5TJp9Z0i0",
                                      "EVT0E5TJp9qbq4"};
    start_as("EVT");
    for (size_t i = 0; i < 4; i++)
        add_branded(ids[i]);
    expect_window("2025-06-10T06:30:00.000Z", "2025-06-10T06:30:00.250Z",
                  "EVT0E5TJo0bIBs EVT0E5TJp9Z0i0");
    what.from = what.to = "2025-06-10T06:30:00.250Z"; /* t0 = t1 is a window of one millisecond */
    ck_assert_str_eq(brands(), "EVT0E5TJp9Z0i0");
    what.from = "2025-06-10T06:30:00.300Z";
    what.to = "2025-06-10T06:30:00.400Z";
    ck_assert_str_eq(brands(), "");
    what.from = "2025-06-10T00:00:00Z";
    what.to = "2025-06-11T00:00:00Z";
    ck_assert_str_eq(brands(), "EVT0E5TJo0Jh3o EVT0E5TJo0bIBs EVT0E5TJp9Z0i0 EVT0E5TJp9qbq4");
    stop();
}
END_TEST

/* Scenarios 24, 25 and 28: any tail at t1 is in, and what is sent is a wire id, up to the last of that millisecond. */
START_TEST(cursor__bounds_on_the_wire_are_wire_ids)
{
    start();
    test_cmd(&server, "CONFIG SET slowlog-log-slower-than 0");
    test_cmd(&server, "XADD %s 1749537000250-4194303 a b", KEY);
    test_cmd(&server, "XADD %s 1749537000250-4194304 a b", KEY);
    test_cmd(&server, "SLOWLOG RESET");
    what.from = "2025-06-10T06:30:00.000Z";
    what.to = "2025-06-10T06:30:00.250Z";
    ck_assert_str_eq(walk(), "1749537000250l 1749537000250l .");
    redisReply *log = test_cmd(&server, "SLOWLOG GET 128");
    size_t seen = 0;
    for (size_t i = 0; i < log->elements; i++) {
        redisReply *argv = log->element[i]->element[3];
        if (strcasecmp(argv->element[0]->str, "xrange") != 0) continue;
        ck_assert_str_eq(argv->element[2]->str, "1749537000000-0");
        ck_assert_str_eq(argv->element[3]->str, "1749537000250-18446744073709551615");
        seen++;
    }
    ck_assert_uint_eq(seen, 1);
    stop();
}
END_TEST

/* Contract §4.2 and §4.6, scenario 29: the round's window is ten entries wherever the seam stands. */
START_TEST(cursor__round_is_whole_at_every_seam)
{
    static const char *const feed[12] = {"EVT03FpXdlDxdw", "EVT03FpXdlVYm0", "EVT03FpY1njdei",
                                         "EVT03FpY1rQQLY", "EVT03FpafVSVfc", "EVT03FpafVSVfd",
                                         "EVT03FpafZ9IMS", "EVT03FpafZ9IMT", "EVT03FpgV70EDI",
                                         "EVT03FpgV9qDVw", "EVT03FpgV9qDVx", "EVT03FpgVA7oe0"};
    char due[200] = "";
    start_as("EVT");
    for (size_t i = 0; i < 12; i++)
        add_branded(feed[i]);
    for (size_t i = 1; i <= 10; i++)
        snprintf(due + strlen(due), sizeof due - strlen(due), "%s%s", i > 1 ? " " : "", feed[i]);
    what.from = "2024-05-01T14:30:00.000Z";
    what.to = "2024-05-01T14:32:00.000Z";
    for (size_t seam = 0; seam <= 12; seam++) {
        if (seam > 0) test_mini_fold(&mini, 1);
        test_mini_trim_all(&mini);
        ck_assert_str_eq(brands(), due);
        uint64_t count = 0;
        ck_assert_int_eq(silt_history_count(history, &what, &count, &err), SILT_OK);
        ck_assert_uint_eq(count, 10);
    }
    stop();
}
END_TEST

START_TEST(cursor__foreign_entries_are_marked_in_both_tiers)
{
    start_as("EVT");
    test_cmd(&server, "XADD %s 1714573800000-45056 id EVT03FpXdlVYm0", KEY);
    test_cmd(&server, "XADD %s 1714573800001-1 no brand", KEY);
    test_cmd(&server, "XADD %s 1714573800002-1 id EVT03FpXdlVYm0", KEY);
    ck_assert_str_eq(walk(), "1714573800000l 1714573800001lf 1714573800002lf .");
    test_mini_fold(&mini, 0);
    ck_assert_str_eq(walk(), "1714573800000a 1714573800001af 1714573800002af .");
    stop();
}
END_TEST

/* ---- positions ---- */

START_TEST(cursor__goes_on_from_every_position)
{
    start();
    add(10, 60);
    fold_to(30);
    test_mini_trim(&mini, id(25));
    test_cmd(&server, "XDEL %s 50-0", KEY);
    resume_everywhere();
    stop();
}
END_TEST

START_TEST(cursor__position_of_another_stream_or_archive_is_refused)
{
    char position[SILT_POSITION_TEXT], other[SILT_POSITION_TEXT];
    start();
    add(10, 40);
    fold_to(20);
    ck_assert_int_eq(open_cursor(), SILT_OK);
    take(2);
    silt_cursor_position(cursor, position);
    what.resume = position;
    test_cmd(&server, "XADD {t}:other 5-0 a b");
    what.key = "{t}:other";
    ck_assert_str_eq(walk(), "SILT_ERR_POSITION");
    what.key = KEY;
    what.resume = "10-0";
    ck_assert_str_eq(walk(), "SILT_ERR_POSITION");
    what.resume = position;
    snprintf(other, sizeof other, "%s", position);
    other[strlen(other) / 2] ^= 1;
    what.resume = other;
    ck_assert_str_eq(walk(), "SILT_ERR_POSITION");
    what.resume = position;
    reopen(NULL, server.address, SILT_AWAY_FAIL); /* without the archive it was taken from */
    ck_assert_str_eq(walk(), "SILT_ERR_POSITION");
    stop();
}
END_TEST

START_TEST(cursor__the_later_of_position_and_bound_counts)
{
    char position[SILT_POSITION_TEXT];
    start();
    add(10, 60);
    fold_to(30);
    ck_assert_int_eq(open_cursor(), SILT_OK);
    take(4);
    silt_cursor_position(cursor, position);
    what.resume = position;
    what.from = "20";
    ck_assert_str_eq(walk(), "50l 60l .");
    what.from = "60";
    ck_assert_str_eq(walk(), "60l .");
    what.from = NULL;
    what.to = "30";
    ck_assert_str_eq(walk(), ".");
    what.to = NULL;
    what.reverse = true; /* a position is a place: back from there */
    ck_assert_str_eq(walk(), "30a 20a 10a .");
    stop();
}
END_TEST

/* ---- get and count ---- */

static const char *get(const char *which)
{
    static char shown[80];
    struct silt_entry *entry = NULL;
    enum silt_tier tier = SILT_TIER_LIVE;
    enum silt_status status = silt_history_get(history, &what, which, &entry, &tier, &err);
    if (status != SILT_OK) return silt_status_name(status);
    snprintf(shown, sizeof shown, "%llu %s", (unsigned long long)entry->id.ms,
             tier == SILT_TIER_LIVE ? "live" : "archive");
    silt_entry_free(entry);
    return shown;
}

START_TEST(cursor__get_finds_one_entry_wherever_it_lives)
{
    start();
    add(10, 60);
    test_cmd(&server, "XGROUP CREATE %s workers 0", KEY);
    test_cmd(&server, "XREADGROUP GROUP workers w COUNT 3 STREAMS %s >", KEY);
    fold_to(30);
    test_mini_trim_all(&mini);
    ck_assert_str_eq(get("10-0"), "10 archive"); /* pending, trimmed, and still there */
    ck_assert_str_eq(get("30-0"), "30 archive");
    ck_assert_str_eq(get("40-0"), "40 live");
    ck_assert_str_eq(get("35-0"), "SILT_END");
    ck_assert_str_eq(get("15-0"), "SILT_END");
    ck_assert_str_eq(get("0-0"), "SILT_END");
    ck_assert_str_eq(get("10"), "SILT_ERR_WIRE_ID");
    ck_assert_str_eq(get("-"), "SILT_ERR_ID_LENGTH");
    what.key = "{t}:none";
    ck_assert_str_eq(get("10-0"), "SILT_ERR_UNKNOWN_STREAM");
    stop();
}
END_TEST

START_TEST(cursor__get_takes_branded_ids)
{
    start_as("EVT");
    add_branded("EVT03FpXdlVYm0");
    add_branded("EVT03FpY1njdei");
    test_mini_fold(&mini, 1);
    test_mini_trim_all(&mini);
    ck_assert_str_eq(get("EVT03FpXdlVYm0"), "1714573800000 archive");
    ck_assert_str_eq(get("EVT03FpY1njdei"), "1714573805250 live");
    ck_assert_str_eq(get("ORD03FpY1njdei"), "SILT_ERR_ID_KIND");
    ck_assert_str_eq(get("EVT03FpY1njde!"), "SILT_ERR_ID_CHARSET");
    stop();
}
END_TEST

START_TEST(cursor__counts_what_it_would_give)
{
    start();
    for (unsigned ms = 10; ms <= 400; ms += 10)
        add(ms, ms);
    for (unsigned seam = 0; seam <= 400; seam += 100) {
        if (seam > 0) fold_to(seam);
        mini.seal = true;
        test_mini_trim_all(&mini);
        for (unsigned low = 5; low < 400; low += 35)
            for (unsigned high = low; high < 420; high += 55) {
                char from[24], to[24];
                uint64_t count = UINT64_MAX;
                snprintf(from, sizeof from, "%u", low);
                snprintf(to, sizeof to, "%u", high);
                what = (struct silt_cursor_options){
                    .key = KEY, .from = from, .to = to, .page_entries = 7};
                ck_assert_int_eq(silt_history_count(history, &what, &count, &err), SILT_OK);
                unsigned top = high > 400 ? 400 : high;
                ck_assert_uint_eq(count, top / 10 - (low - 1) / 10);
            }
    }
    ck_assert(!silt_history_was_archive_only(history));
    stop();
}
END_TEST

/* ---- damage ---- */

static void damage(unsigned ms)
{
    struct silt_buf value = {0};
    struct silt_segment_info info;
    ck_assert_int_eq(silt_store_segment(mini.store, mini.row.life, mini.row.ns, id(ms),
                                        SILT_SEEK_FORWARD, &value, &info, &err),
                     SILT_OK);
    value.at[value.len - 3] ^= 4;
    ck_assert_int_eq(silt_batch_segment(mini.batch, &info, silt_buf_view(&value), true), SILT_OK);
    test_mini_commit_row(&mini);
    silt_buf_release(&value);
}

START_TEST(cursor__damage_is_an_item_and_its_neighbours_are_readable)
{
    char position[SILT_POSITION_TEXT];
    start();
    add(10, 80);
    for (unsigned ms = 20; ms <= 60; ms += 20) {
        fold_to(ms);
        mini.seal = true;
    }
    test_mini_trim_all(&mini);
    damage(30); /* 30 and 40 */
    what.skip_damaged = true;
    ck_assert_str_eq(walk(), "10a 20a damage:30-40 50a 60a 70l 80l .");
    what.reverse = true;
    ck_assert_str_eq(walk(), "80l 70l 60a 50a damage:30-40 20a 10a .");
    what = (struct silt_cursor_options){.key = KEY, .from = "35", .to = "38", .skip_damaged = true};
    ck_assert_str_eq(walk(), "damage:35-38 .");
    what = (struct silt_cursor_options){.key = KEY};
    ck_assert_str_eq(walk(), "10a 20a SILT_ERR_CORRUPT");
    ck_assert_ptr_nonnull(strstr(err.sentence, "between 30-0 and 40-0"));
    ck_assert_str_eq(err.stream, KEY);
    silt_cursor_position(cursor, position);
    ck_assert_str_eq(take(SIZE_MAX), "50a 60a 70l 80l .");
    what.resume = position; /* from before the damage: it is met again */
    ck_assert_str_eq(walk(), "SILT_ERR_CORRUPT");
    what.resume = NULL;
    ck_assert_str_eq(get("40-0"), "SILT_ERR_CORRUPT");
    ck_assert_str_eq(get("50-0"), "50 archive");
    stop();
}
END_TEST

/* ---- memory ---- */

/* Scenario 75 in small: nothing is allocated per entry, in neither tier. */
START_TEST(cursor__a_scan_allocates_nothing_per_entry)
{
    struct test_heap heap;
    struct silt_item item;
    start();
    for (unsigned i = 0; i < 6000; i++)
        test_cmd(&server, "XADD %s %u-1 name value%u other %u", KEY, i + 1, i, i * 7);
    for (int i = 0; i < 30; i++) {
        mini.seal = true;
        test_mini_fold(&mini, 100);
    }
    test_mini_trim_all(&mini);
    for (int reverse = 0; reverse < 2; reverse++) {
        what = (struct silt_cursor_options){.key = KEY, .page_entries = 500, .reverse = reverse};
        ck_assert_int_eq(open_cursor(), SILT_OK);
        test_heap_start(&heap, 0);
        size_t given = 0;
        while (silt_cursor_next(cursor, &item, &err) == SILT_OK)
            given++;
        test_heap_stop();
        ck_assert_uint_eq(given, 6000);
        /* some for each of 30 segments and 6 pages, not for each of 6000 entries */
        ck_assert_uint_le(atomic_load(&heap.request_count), 600);
    }
    stop();
}
END_TEST

TEST_MAIN(cursor__unknown_key_is_said, cursor__options_that_exclude_each_other_are_refused,
          cursor__refused_bounds_send_nothing, cursor__live_only_reads_in_order_and_changes_nothing,
          cursor__archive_and_live_are_one_history, cursor__asks_the_server_only_above_the_seam,
          cursor__limit_gives_the_first_and_the_rest_is_resumed,
          cursor__since_has_an_exact_lower_edge, cursor__window_edges_are_exact_and_inclusive,
          cursor__bounds_on_the_wire_are_wire_ids, cursor__round_is_whole_at_every_seam,
          cursor__foreign_entries_are_marked_in_both_tiers, cursor__goes_on_from_every_position,
          cursor__position_of_another_stream_or_archive_is_refused,
          cursor__the_later_of_position_and_bound_counts,
          cursor__get_finds_one_entry_wherever_it_lives, cursor__get_takes_branded_ids,
          cursor__counts_what_it_would_give,
          cursor__damage_is_an_item_and_its_neighbours_are_readable,
          cursor__a_scan_allocates_nothing_per_entry)
