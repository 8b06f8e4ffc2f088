/* Random histories: a writer, an archiver that folds and trims, strangers that trim and delete, and readers in every direction that stop and go on; all compared
 * with a sorted array. The seed of a failed run stands in its output: SILT_SEED=N repeats it. SILT_TEST_LONG=1 runs for minutes. */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/harness.h"
#include "harness/mini.h"
#include "mergeread/cursor_priv.h"

#define KEY "emq:{t}:stream:s"

static struct test_server server;

/* ---- entries ---- */

struct writer {
    struct test_rng rng;
    bool branded;
    uint64_t ms, tail; /* of the last id */
};

/* Builds a random entry above the last; the arrays are the caller's. */
struct made {
    struct silt_entry entry;
    struct silt_field fields[6];
    char brand[SILT_BRANDED_ID_LEN];
    uint8_t bytes[6][2][24];
};

static void make(struct writer *writer, struct made *made)
{
    struct test_rng *rng = &writer->rng;
    uint64_t step = test_rng_below(rng, 4);
    writer->tail = step == 0 ? writer->tail + 1 + test_rng_below(rng, 3) : test_rng_below(rng, 5);
    writer->ms += step;
    made->entry.id = (struct silt_wire_id){writer->ms, writer->tail};
    size_t count = 0;
    uint64_t snowflake;
    if (writer->branded && !test_rng_chance(rng, 6) &&
        silt_snowflake_from_wire(made->entry.id, &snowflake)) {
        struct silt_branded_id id = {{"EVT"}, snowflake};
        ck_assert_int_eq(silt_branded_id_format(id, made->brand), SILT_OK);
        made->fields[count].name = silt_view_str("id");
        made->fields[count++].value = silt_view(made->brand, sizeof made->brand);
    }
    size_t more = test_rng_below(rng, 4) + (count == 0);
    for (; more > 0; more--, count++) {
        size_t name = test_rng_below(rng, 4), value = test_rng_below(rng, 24);
        test_rng_bytes(rng, made->bytes[count][0], name);
        if (name > 0) made->bytes[count][0][0] = (uint8_t)('a' + test_rng_below(rng, 3));
        test_rng_bytes(rng, made->bytes[count][1], value);
        made->fields[count].name = silt_view(made->bytes[count][0], name);
        made->fields[count].value = silt_view(made->bytes[count][1], value);
    }
    made->entry.fields = made->fields;
    made->entry.field_count = count;
}

static void send_entry(redisContext *link, const struct silt_entry *entry)
{
    const char *argv[16] = {"XADD", KEY};
    size_t lens[16] = {4, strlen(KEY)}, argc = 3;
    char id[SILT_WIRE_ID_TEXT];
    lens[2] = silt_wire_id_format(entry->id, id);
    argv[2] = id;
    for (size_t i = 0; i < entry->field_count; i++) {
        const struct silt_view pair[2] = {entry->fields[i].name, entry->fields[i].value};
        for (int k = 0; k < 2; k++, argc++) {
            argv[argc] = pair[k].len == 0 ? "" : (const char *)pair[k].at;
            lens[argc] = pair[k].len;
        }
    }
    redisReply *reply = redisCommandArgv(link, (int)argc, argv, lens);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        test_die("XADD %s: %s", id, reply == NULL ? link->errstr : reply->str);
    freeReplyObject(reply);
}

/* ---- one thread, random steps, an exact oracle ---- */

static struct test_oracle ever;    /* everything that was ever appended */
static struct test_oracle history; /* what the history is: folded, or live */
static struct test_mini mini;
static struct writer writer;
static char address[120], archive[200];

/* A run in which something never happened proves nothing about it. */
static struct {
    uint64_t given, archived, gaps, told, ends, resumes, reverse_given, trims;
} seen;

struct reader {
    struct silt_history *history;
    struct silt_cursor *cursor;
    struct silt_cursor_options options;
    char from[SILT_WIRE_ID_TEXT], to[SILT_WIRE_ID_TEXT];
    char position[SILT_POSITION_TEXT];
    bool whole; /* from the beginning, without bounds: everything can be accounted for */
    bool begun;
    struct silt_wire_id last; /* given */
    struct silt_wire_id low, high;
    uint64_t given, told;
};

static void open_reader(struct reader *reader, const char *resume)
{
    struct silt_err err = {0};
    reader->options.resume = resume;
    enum silt_status status =
        silt_cursor_open(reader->history, &reader->options, &reader->cursor, &err);
    ck_assert_msg(status == SILT_OK, "open: %s", err.sentence);
}

static struct silt_wire_id random_id(struct test_rng *rng)
{
    if (ever.count == 0) return SILT_WIRE_ID_MIN;
    struct silt_wire_id id = ever.entries[test_rng_below(rng, ever.count)]->id;
    if (test_rng_chance(rng, 30)) id.seq += test_rng_below(rng, 2);
    return id;
}

static void new_walk(struct reader *reader, struct test_rng *rng)
{
    silt_cursor_close(reader->cursor);
    struct silt_history *keep = reader->history;
    *reader = (struct reader){.history = keep, .high = SILT_WIRE_ID_MAX};
    struct silt_cursor_options *options = &reader->options;
    options->key = KEY;
    options->reverse = test_rng_chance(rng, 35);
    options->page_entries = 1 + (uint32_t)test_rng_below(rng, 40);
    if (test_rng_chance(rng, 40)) {
        reader->low = random_id(rng);
        silt_wire_id_format(reader->low, reader->from);
        options->from = reader->from;
    }
    if (test_rng_chance(rng, 25)) {
        reader->high = random_id(rng);
        if (silt_wire_id_less(reader->high, reader->low)) reader->high = reader->low;
        silt_wire_id_format(reader->high, reader->to);
        options->to = reader->to;
    }
    options->follow = !options->reverse && options->to == NULL && test_rng_chance(rng, 50);
    options->follow_wait_ms = 1;
    reader->whole = !options->reverse && options->from == NULL && options->to == NULL;
    open_reader(reader, NULL);
}

/* Is anything of the history in the open interval (after, before)? */
static const struct silt_entry *between(struct silt_wire_id after, struct silt_wire_id before)
{
    if (!silt_wire_id_next(after, &after)) return NULL;
    size_t low = 0, high = history.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (silt_wire_id_less(history.entries[middle]->id, after))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == history.count || !silt_wire_id_less(history.entries[low]->id, before)) return NULL;
    return history.entries[low];
}

static void missed(const struct reader *reader, const struct silt_entry *entry, const char *when)
{
    char id[SILT_WIRE_ID_TEXT], last[SILT_WIRE_ID_TEXT];
    if (entry == NULL) return;
    silt_wire_id_format(entry->id, id);
    silt_wire_id_format(reader->last, last);
    ck_abort_msg("%s was not given (%s, last given %s, %s, page %u)", id, when, last,
                 reader->options.reverse ? "reverse" : "forward", reader->options.page_entries);
}

static void take_entry(struct reader *reader, const struct silt_item *item)
{
    struct silt_wire_id id = item->entry.id;
    char text[SILT_WIRE_ID_TEXT];
    silt_wire_id_format(id, text);
    ck_assert_msg(!silt_wire_id_less(id, reader->low) && !silt_wire_id_less(reader->high, id),
                  "%s lies outside the bounds", text);
    if (reader->begun)
        ck_assert_msg(reader->options.reverse ? silt_wire_id_less(id, reader->last)
                                              : silt_wire_id_less(reader->last, id),
                      "%s came out of order", text);
    const struct silt_entry *original = test_oracle_find(&ever, id);
    ck_assert_msg(original != NULL && silt_entry_equal(original, &item->entry),
                  "%s came with other bytes", text);
    size_t index;
    /* Before the archive knows the stream nobody knows its brand. */
    ck_assert_int_eq(item->foreign, writer.branded && reader->cursor->known &&
                                        !silt_entry_is_ours(&item->entry, mini.row.ns, &index));
    if (reader->options.reverse) {
        if (reader->begun) missed(reader, between(id, reader->last), "before the next");
    } else {
        struct silt_wire_id after = reader->low;
        bool from_low = !reader->begun && silt_wire_id_prev(reader->low, &after);
        if (reader->begun) after = reader->last;
        if (reader->begun || from_low || reader->options.from == NULL)
            missed(reader, between(after, id), "before the next");
    }
    reader->last = id;
    reader->begun = true;
    reader->given++;
    seen.given++;
    seen.archived += item->tier == SILT_TIER_ARCHIVE;
    seen.reverse_given += reader->options.reverse;
}

static void check_end(struct reader *reader)
{
    struct silt_wire_id top = reader->cursor->page.look.facts.last, low;
    if (silt_wire_id_less(top, reader->cursor->watermark)) top = reader->cursor->watermark;
    if (silt_wire_id_less(reader->high, top)) top = reader->high;
    if (reader->options.reverse) {
        struct silt_wire_id before = reader->begun ? reader->last : top;
        if (!silt_wire_id_prev(reader->low, &low))
            missed(reader, between(SILT_WIRE_ID_MIN, before), "at the end");
        else
            missed(reader, between(low, before), "at the end");
        return;
    }
    struct silt_wire_id after = reader->last;
    if (!reader->begun && !silt_wire_id_prev(reader->low, &after)) after = SILT_WIRE_ID_MIN;
    if (silt_wire_id_next(top, &top)) missed(reader, between(after, top), "at the end");
    /* Every entry that was ever added was given, or told missing, exactly once. */
    if (reader->whole)
        ck_assert_msg(reader->given + reader->told == reader->cursor->page.look.facts.entries_added,
                      "%llu given and %llu told missing of %llu added",
                      (unsigned long long)reader->given, (unsigned long long)reader->told,
                      (unsigned long long)reader->cursor->page.look.facts.entries_added);
}

static void step_reader(struct reader *reader, struct test_rng *rng)
{
    struct silt_err err = {0};
    struct silt_item item;
    for (uint64_t n = 1 + test_rng_below(rng, test_rng_chance(rng, 20) ? 400 : 30); n > 0; n--) {
        if (test_rng_chance(rng, 2)) { /* stop, and go on as another program would */
            silt_cursor_position(reader->cursor, reader->position);
            silt_cursor_close(reader->cursor);
            reader->cursor = NULL;
            open_reader(reader, reader->position);
            seen.resumes++;
        }
        enum silt_status status = silt_cursor_next(reader->cursor, &item, &err);
        if (status == SILT_OK && item.kind == SILT_ITEM_ENTRY) {
            take_entry(reader, &item);
        } else if (status == SILT_OK) {
            ck_assert_int_eq(item.kind, SILT_ITEM_GAP);
            ck_assert(item.count > 0 && item.count_is_exact);
            reader->told += item.count;
            seen.gaps++;
            seen.told += item.count;
        } else {
            ck_assert_msg(status == SILT_END, "%s: %s", silt_status_name(status), err.sentence);
            check_end(reader);
            seen.ends++;
            if (!reader->options.follow || test_rng_chance(rng, 20)) new_walk(reader, rng);
            return;
        }
    }
}

static void step_append(struct test_rng *rng)
{
    uint64_t count = 1 + test_rng_below(rng, test_rng_chance(rng, 10) ? 300 : 30);
    test_cmd(&server, "PING");
    for (; count > 0; count--) {
        struct made made;
        make(&writer, &made);
        send_entry(server.link, &made.entry);
        test_oracle_add(&ever, &made.entry);
        test_oracle_add(&history, &made.entry);
    }
}

/* Somebody else removes: what was not folded yet leaves the history. */
static void step_stranger(struct test_rng *rng)
{
    char text[SILT_WIRE_ID_TEXT];
    if (ever.count == 0) return;
    size_t back = test_rng_below(rng, ever.count < 60 ? ever.count : 60);
    size_t at = ever.count - 1 - back;
    struct silt_wire_id id = ever.entries[at]->id;
    silt_wire_id_format(id, text);
    if (test_rng_chance(rng, 50)) {
        test_cmd(&server, "XDEL %s %s", KEY, text);
        if (silt_wire_id_less(mini.row.watermark, id)) test_oracle_remove(&history, id);
        return;
    }
    test_cmd(&server, "XTRIM %s MINID = %s", KEY, text);
    for (size_t i = at; i-- > 0 && silt_wire_id_less(mini.row.watermark, ever.entries[i]->id);)
        test_oracle_remove(&history, ever.entries[i]->id);
}

static void step_archiver(struct test_rng *rng)
{
    mini.seal = test_rng_chance(rng, 10);
    size_t max = test_rng_chance(rng, 50) ? 0 : 1 + test_rng_below(rng, 80);
    if (test_rng_chance(rng, 60)) {
        if (test_rng_chance(rng, 20))
            test_mini_fold_unmarked(&mini, max);
        else
            test_mini_fold(&mini, max);
    } else if (mini.has_marker) {
        test_mini_mark(&mini);
        seen.trims +=
            test_mini_trim(&mini, test_rng_chance(rng, 50) ? SILT_WIRE_ID_MAX : random_id(rng)) > 0;
    }
}

static void step_ask(struct reader *reader, struct test_rng *rng)
{
    struct silt_err err = {0};
    struct silt_cursor_options which = {.key = KEY, .page_entries = 7};
    char from[SILT_WIRE_ID_TEXT], to[SILT_WIRE_ID_TEXT];
    struct silt_wire_id a = random_id(rng), b = random_id(rng);
    if (silt_wire_id_less(b, a)) b = a;
    silt_wire_id_format(a, from);
    silt_wire_id_format(b, to);
    which.from = from;
    which.to = to;
    uint64_t count = 0;
    ck_assert_int_eq(silt_history_count(reader->history, &which, &count, &err), SILT_OK);
    ck_assert_uint_eq(count, test_oracle_count(&history, a, b));
    struct silt_entry *entry = NULL;
    enum silt_tier tier;
    enum silt_status status = silt_history_get(reader->history, &which, from, &entry, &tier, &err);
    const struct silt_entry *due = test_oracle_find(&history, a);
    ck_assert_int_eq(status, due != NULL ? SILT_OK : SILT_END);
    if (due != NULL) ck_assert(silt_entry_equal(due, entry));
    silt_entry_free(entry);
}

static void one_history(uint64_t salt)
{
    struct test_rng rng = test_rng(salt);
    struct silt_err err = {0};
    struct reader readers[4] = {0};
    writer = (struct writer){.rng = rng, .ms = 1767225600000};
    writer.rng.state ^= 0x5eed;
    writer.branded = test_rng_chance(&rng, 50);
    test_cmd(&server, "FLUSHALL");
    snprintf(archive, sizeof archive, "%s", test_path("archive-%llu", (unsigned long long)salt));
    test_mini_open(&mini, archive, address, KEY, writer.branded ? "EVT" : NULL);
    if (test_rng_chance(&rng, 80)) test_mini_commit_row(&mini);
    step_append(&rng);
    struct silt_history_options where = {.archive_path = archive, .server_address = address};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(silt_history_open(&where, &readers[i].history, &err), SILT_OK);
        new_walk(&readers[i], &rng);
    }
    for (uint64_t steps = 150 + test_rng_below(&rng, 150); steps > 0; steps--) {
        uint64_t what = test_rng_below(&rng, 100);
        struct reader *reader = &readers[test_rng_below(&rng, 4)];
        if (what < 20)
            step_append(&rng);
        else if (what < 45)
            step_archiver(&rng);
        else if (what < 49)
            step_stranger(&rng);
        else if (what < 53)
            step_ask(reader, &rng);
        else
            step_reader(reader, &rng);
    }
    for (size_t i = 0; i < 4; i++) {
        silt_cursor_close(readers[i].cursor);
        silt_history_close(readers[i].history);
    }
    test_mini_close(&mini);
    test_oracle_release(&ever);
    test_oracle_release(&history);
    test_remove_all(archive);
}

START_TEST(random_history__every_entry_once_in_order_in_both_directions)
{
    test_server_start(&server, NULL);
    snprintf(address, sizeof address, "%s", server.address);
    struct test_deadline deadline = test_deadline(test_long() ? 50000 : 6000);
    uint64_t salt = 0;
    do
        one_history(salt++);
    while (test_deadline_left(&deadline) > 0);
    printf(
        "# %llu histories: %llu entries given, %llu of them archived, %llu in reverse; %llu gaps of %llu entries, "
        "%llu ends, %llu resumed, %llu trims\n",
        (unsigned long long)salt, (unsigned long long)seen.given, (unsigned long long)seen.archived,
        (unsigned long long)seen.reverse_given, (unsigned long long)seen.gaps,
        (unsigned long long)seen.told, (unsigned long long)seen.ends,
        (unsigned long long)seen.resumes, (unsigned long long)seen.trims);
    ck_assert(seen.archived > 0 && seen.given > seen.archived && seen.reverse_given > 0 &&
              seen.gaps > 0 && seen.resumes > 0 && seen.trims > 0 && seen.ends > 0);
    test_server_release(&server);
}
END_TEST

/* ---- threads: writer, archiver and four readers at once, on one archive environment ---- */

static struct silt_entry **log_of_all; /* filled by the writer; read up to `published` */
static atomic_size_t published;
static atomic_bool over;
static size_t total;

static void *write_all(void *unused)
{
    (void)unused;
    struct test_oracle mine = {0};
    struct writer own = {.rng = test_rng(77), .branded = true, .ms = 1767225600000};
    redisContext *link = redisConnectUnix(server.socket);
    for (size_t i = 0; i < total; i++) {
        struct made made;
        make(&own, &made);
        test_oracle_add(&mine, &made.entry);
        log_of_all[i] = mine.entries[i];
        send_entry(link, &made.entry);
        atomic_store(&published, i + 1);
    }
    redisFree(link);
    atomic_store(&over, true);
    free(mine.entries); /* the entries stay, the log has them */
    return NULL;
}

static void *archive_all(void *unused)
{
    struct test_rng rng = test_rng(78);
    (void)unused;
    while (!atomic_load(&over)) {
        mini.seal = test_rng_chance(&rng, 5);
        test_mini_fold(&mini, test_rng_chance(&rng, 50) ? 0 : 1 + test_rng_below(&rng, 300));
        if (test_rng_chance(&rng, 60)) test_mini_trim_all(&mini);
    }
    test_mini_fold(&mini, 0);
    return NULL;
}

struct scan {
    pthread_t thread;
    bool reverse, follow;
    uint64_t scans;
    char trouble[400];
};

static bool scan_once(struct scan *scan, struct silt_history *from, uint32_t page)
{
    struct silt_err err = {0};
    struct silt_cursor_options options = {.key = KEY,
                                          .reverse = scan->reverse,
                                          .follow = scan->follow,
                                          .follow_wait_ms = 20,
                                          .page_entries = page};
    struct silt_cursor *cursor = NULL;
    size_t floor = atomic_load(&published), at = 0;
    enum silt_status status = silt_cursor_open(from, &options, &cursor, &err);
    struct silt_item item;
    bool first = true;
    while (status == SILT_OK || (status == SILT_END && scan->follow && !atomic_load(&over))) {
        status = silt_cursor_next(cursor, &item, &err);
        if (status != SILT_OK) continue;
        if (item.kind != SILT_ITEM_ENTRY) {
            snprintf(scan->trouble, sizeof scan->trouble, "an item of kind %d", (int)item.kind);
            break;
        }
        if (scan->reverse && first) { /* where does it begin? */
            size_t top = atomic_load(&published) + 1;
            for (at = floor; at <= top && at <= total; at++)
                if (at > 0 && log_of_all[at - 1] != NULL &&
                    silt_wire_id_equal(log_of_all[at - 1]->id, item.entry.id))
                    break;
            at++;
        }
        first = false;
        size_t due = scan->reverse ? --at : ++at;
        if (due == 0 || due > total || !silt_entry_equal(log_of_all[due - 1], &item.entry)) {
            snprintf(scan->trouble, sizeof scan->trouble,
                     "not entry %zu of %zu came, but %llu-%llu (%s)", due, floor,
                     (unsigned long long)item.entry.id.ms, (unsigned long long)item.entry.id.seq,
                     item.tier == SILT_TIER_LIVE ? "live" : "archive");
            break;
        }
    }
    silt_cursor_close(cursor);
    if (scan->trouble[0] != '\0') return false;
    if (status != SILT_END)
        snprintf(scan->trouble, sizeof scan->trouble, "%s: %s", silt_status_name(status),
                 err.sentence);
    else if (scan->reverse ? at != 1 && floor > 0 : at < floor)
        snprintf(scan->trouble, sizeof scan->trouble, "ended at %zu, %zu were sent before", at,
                 floor);
    scan->scans++;
    return scan->trouble[0] == '\0';
}

static void *scan_all(void *arg)
{
    struct scan *scan = arg;
    struct silt_err err = {0};
    struct silt_history *from = NULL;
    struct silt_history_options where = {.archive_path = archive, .server_address = address};
    if (silt_history_open(&where, &from, &err) != SILT_OK) {
        snprintf(scan->trouble, sizeof scan->trouble, "%s", err.sentence);
        return NULL;
    }
    uint32_t page = 1000;
    while (scan_once(scan, from, page) && !atomic_load(&over))
        page = page == 1000 ? 20 : 1000;
    /* once more over all of it, now that it stands still */
    if (scan->trouble[0] == '\0') scan_once(scan, from, 100);
    silt_history_close(from);
    return NULL;
}

/* Four readers, each with its own handle, while the writer writes; then whatever they had to complain about. */
static void read_beside(void *(*archiver)(void *))
{
    pthread_t threads[2];
    struct scan scans[4] = {{.scans = 0}, {.reverse = true}, {.follow = true}, {.scans = 0}};
    log_of_all = calloc(total, sizeof *log_of_all);
    pthread_create(&threads[0], NULL, write_all, NULL);
    if (archiver != NULL) pthread_create(&threads[1], NULL, archiver, NULL);
    TEST_WAIT(atomic_load(&published) > 0, 20000);
    for (size_t i = 0; i < 4; i++)
        pthread_create(&scans[i].thread, NULL, scan_all, &scans[i]);
    for (size_t i = 0; i < 4; i++)
        pthread_join(scans[i].thread, NULL);
    pthread_join(threads[0], NULL);
    if (archiver != NULL) pthread_join(threads[1], NULL);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_msg(scans[i].trouble[0] == '\0', "reader %zu: %s", i, scans[i].trouble);
        ck_assert_uint_ge(scans[i].scans, 2);
    }
    for (size_t i = 0; i < total; i++)
        silt_entry_free(log_of_all[i]);
    free(log_of_all);
}

START_TEST(random_history__four_threads_share_one_environment)
{
    total = test_long() ? 200000 : 20000;
    test_server_start(&server, NULL);
    snprintf(address, sizeof address, "%s", server.address);
    snprintf(archive, sizeof archive, "%s", test_path("archive"));
    test_cmd(&server, "XADD %s 1-1 first entry", KEY);
    test_cmd(&server, "XTRIM %s MAXLEN 0", KEY);
    test_cmd(&server, "XSETID %s 1-1 ENTRIESADDED 0", KEY);
    test_mini_open(&mini, archive, address, KEY, "EVT");
    test_mini_commit_row(&mini);
    test_mini_fold(&mini, 0);
    read_beside(archive_all);
    test_mini_close(&mini);
    test_server_release(&server);
}
END_TEST

/* The same with siltd itself, a process of its own. */
START_TEST(random_history__beside_the_real_archiver)
{
    struct test_child siltd = {0};
    struct test_outcome outcome = {0};
    char yaml[800];
    total = test_long() ? 100000 : 10000;
    test_server_start(&server, NULL);
    snprintf(address, sizeof address, "%s", server.address);
    snprintf(archive, sizeof archive, "%s", test_path("archive"));
    int len = snprintf(
        yaml, sizeof yaml,
        "valkey:\n  address: %s\narchive:\n  path: %s\nlog: { level: warn }\nstreams:\n"
        "  - match: \"%s\"\n    ids: branded EVT\n    keep: { entries: 50 }\n    fold-delay: 10ms\n",
        address, archive, KEY);
    test_file_write(test_path("silt.yaml"), yaml, (size_t)len);
    const char *const argv[] = {"siltd", "--config", test_path("silt.yaml"), NULL};
    test_child_start(&siltd, argv, NULL);
    struct silt_history_options where = {.archive_path = archive};
    struct silt_history *opened = NULL;
    struct silt_err err = {0};
    TEST_WAIT(silt_history_open(&where, &opened, &err) == SILT_OK, 20000);
    silt_history_close(opened);
    read_beside(NULL);
    ck_assert_int_lt(test_cmd_int(&server, "XLEN %s", KEY), (long long)total); /* it did trim */
    test_child_signal(&siltd, SIGTERM);
    test_child_wait(&siltd, 20000, &outcome);
    ck_assert_msg(outcome.code == 0, "siltd ended with %d: %s", outcome.code, outcome.err);
    test_outcome_release(&outcome);
    test_server_release(&server);
}
END_TEST

TEST_MAIN(random_history__every_entry_once_in_order_in_both_directions,
          random_history__four_threads_share_one_environment,
          random_history__beside_the_real_archiver)
