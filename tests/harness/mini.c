#include "mini.h"

#include <stdio.h>
#include <string.h>

#include "format/insert.h"
#include "runner.h"

#define LEVEL 1

static void must(enum silt_status status, const struct silt_err *err, const char *what)
{
    if (status != SILT_OK)
        test_die("mini archiver: %s: %s: %s", what, silt_status_name(status), err->sentence);
}

void test_mini_open(struct test_mini *mini, const char *dir, const char *address, const char *key,
                    const char *ns)
{
    struct silt_err err = {0};
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    options.write = options.create = true;
    options.map_initial_bytes = 16u << 20;
    *mini = (struct test_mini){0};
    must(silt_store_open(dir, &options, &mini->store, &err), &err, "open");
    must(silt_store_meta(mini->store, &mini->meta, &err), &err, "meta");
    must(silt_fold_new(LEVEL, &mini->fold), &err, "fold");
    must(silt_batch_new(&mini->batch), &err, "batch");
    snprintf(mini->key, sizeof mini->key, "%s", key);
    mini->row.name = silt_view_str(mini->key);
    if (ns != NULL) snprintf(mini->row.ns.letters, sizeof mini->row.ns.letters, "%s", ns);
    must(silt_store_new_stream(mini->store, &mini->row.number, &mini->row.life, &err), &err,
         "new stream");
    mini->row.marker_number = 7700 + mini->row.number;
    if (address == NULL) return;
    struct silt_conn_options conn = SILT_CONN_OPTIONS_DEFAULT;
    conn.address = address;
    must(silt_conn_new(&conn, &mini->conn, &err), &err, "connection");
}

void test_mini_close(struct test_mini *mini)
{
    silt_look_release(&mini->look);
    silt_page_release(&mini->page);
    silt_reply_release(&mini->reply);
    silt_buf_release(&mini->tail);
    silt_conn_free(mini->conn);
    silt_fold_free(mini->fold);
    silt_batch_free(mini->batch);
    silt_store_close(mini->store);
    *mini = (struct test_mini){0};
}

static void call(struct test_mini *mini, const char *const *words, size_t count)
{
    struct silt_err err = {0};
    struct silt_view argv[8];
    for (size_t i = 0; i < count; i++)
        argv[i] = silt_view_str(words[i]);
    must(silt_conn_call(mini->conn, argv, count, &mini->reply, &err), &err, words[0]);
}
#define CALL(mini, ...)                            \
    call(mini, (const char *const[]){__VA_ARGS__}, \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void marker_name(const struct test_mini *mini, char ret[SILT_MARKER_TEXT])
{
    struct silt_marker marker = {.epoch = silt_stream_epoch(&mini->row, mini->meta.epoch),
                                 .number = mini->row.marker_number};
    memcpy(marker.uuid, mini->meta.uuid, sizeof marker.uuid);
    silt_marker_format(&marker, ret);
}

static void commit(struct test_mini *mini)
{
    struct silt_err err = {0};
    must(silt_batch_stream(mini->batch, &mini->row), &err, "row");
    must(silt_store_commit(mini->store, mini->batch, &err), &err, "commit");
    silt_batch_clear(mini->batch);
}

void test_mini_commit_row(struct test_mini *mini)
{
    commit(mini);
}

void test_mini_mark(struct test_mini *mini)
{
    char name[SILT_MARKER_TEXT], at[SILT_WIRE_ID_TEXT];
    marker_name(mini, name);
    silt_wire_id_format(mini->row.custody, at);
    CALL(mini, "XGROUP", "SETID", mini->key, name, at);
}

/* The number is committed before the marker is made, and a look shows the marker before anything is fetched (protocol.md §1). */
static void claim(struct test_mini *mini)
{
    char name[SILT_MARKER_TEXT];
    if (mini->has_marker) return;
    marker_name(mini, name);
    commit(mini);
    CALL(mini, "XGROUP", "CREATE", mini->key, name, "0");
    mini->row.marker_seen = true;
    mini->has_marker = true;
}

static void begin(struct test_mini *mini)
{
    struct silt_err err = {0};
    struct silt_segment_info info;
    silt_buf_clear(&mini->tail);
    if (!mini->seal) {
        enum silt_status status =
            silt_store_segment(mini->store, mini->row.life, mini->row.ns, SILT_WIRE_ID_MAX,
                               SILT_SEEK_BACKWARD, &mini->tail, &info, &err);
        if (status == SILT_END) silt_buf_clear(&mini->tail);
        if (status != SILT_END) must(status, &err, "tail");
    }
    mini->seal = false;
    must(
        silt_fold_begin(mini->fold, mini->row.life, mini->row.ns, silt_buf_view(&mini->tail), &err),
        &err, "begin");
}

static void finish(struct test_mini *mini)
{
    struct silt_err err = {0};
    size_t count;
    must(silt_fold_finish(mini->fold, &err), &err, "finish");
    const struct silt_fold_segment *segments = silt_fold_segments(mini->fold, &count);
    for (size_t i = 0; i < count; i++)
        must(silt_batch_segment(mini->batch, &segments[i].info, segments[i].value,
                                segments[i].replaces_tail),
             &err, "segment");
    const struct silt_fold_sum *sum = silt_fold_sum(mini->fold);
    mini->row.folded_entries += sum->count;
    mini->row.folded_bytes += sum->values_bytes;
    mini->row.foreign_entries += sum->foreign_count;
}

void test_mini_fold_entries(struct test_mini *mini, const struct silt_entry *entries, size_t count)
{
    struct silt_err err = {0};
    if (count == 0) return;
    begin(mini);
    for (size_t i = 0; i < count; i++)
        must(silt_fold_add(mini->fold, &entries[i], &err), &err, "add");
    finish(mini);
    mini->row.folded_any = true;
    mini->row.watermark = mini->row.custody = entries[count - 1].id;
    mini->row.custody_added += count;
    commit(mini);
}

/* Fetches (C, LAST] in pages. Gives how many came; *ret_last: the last of them, or C. */
static size_t fetch(struct test_mini *mini, size_t max, struct silt_wire_id *ret_last,
                    bool *ret_all)
{
    struct silt_err err = {0};
    size_t count = 0;
    struct silt_page_request request = {
        .key = silt_view_str(mini->key), .to = mini->look.facts.last, .what = SILT_LOOK_ARCHIVER};
    *ret_last = mini->row.custody;
    *ret_all = true;
    while (silt_wire_id_next(*ret_last, &request.from) &&
           !silt_wire_id_less(request.to, request.from)) {
        request.count = max != 0 && max - count < 300 ? (uint32_t)(max - count) : 300;
        if (request.count == 0) {
            *ret_all = false;
            break;
        }
        must(silt_page_append(mini->conn, &request, &err), &err, "page");
        must(silt_page_receive(mini->conn, &request, &mini->page, &err), &err, "page");
        for (size_t i = 0; i < mini->page.entry_count; i++)
            must(silt_fold_add(mini->fold, &mini->page.entries[i], &err), &err, "add");
        count += mini->page.entry_count;
        if (mini->page.entry_count > 0)
            *ret_last = mini->page.entries[mini->page.entry_count - 1].id;
        if (!mini->page.full) break;
    }
    return count;
}

static void book(struct test_mini *mini, uint64_t missing, struct silt_wire_id through)
{
    if (missing == 0) return;
    test_mini_gap(mini, mini->row.custody, through, missing, SILT_GAP_TRIMMED);
}

size_t test_mini_fold_unmarked(struct test_mini *mini, size_t max)
{
    struct silt_err err = {0};
    struct silt_facts *facts = &mini->look.facts;
    claim(mini);
    must(
        silt_look_call(mini->conn, silt_view_str(mini->key), SILT_LOOK_ARCHIVER, &mini->look, &err),
        &err, "look");
    if (!silt_wire_id_less(mini->row.custody, facts->last)) return 0;
    begin(mini);
    struct silt_wire_id last;
    bool all;
    size_t count = fetch(mini, max, &last, &all);
    uint64_t promised = facts->entries_added - mini->row.custody_added;
    if (count > 0) finish(mini);
    if (all) {
        last = facts->last;
        book(mini, promised > count ? promised - count : 0, last);
        mini->row.custody_added = facts->entries_added;
    } else {
        /* Short of LAST a gap can only be counted where everything that lives lies above C (protocol.md §6). */
        uint64_t missing = 0;
        if (!facts->has_first || silt_wire_id_less(mini->row.custody, facts->first))
            missing = promised > facts->length ? promised - facts->length : 0;
        book(mini, missing, last);
        mini->row.custody_added += count + missing;
    }
    mini->row.folded_any = true;
    mini->row.watermark = mini->row.custody = last;
    mini->row.has_facts = true;
    mini->row.facts = *facts;
    commit(mini);
    return count;
}

size_t test_mini_fold(struct test_mini *mini, size_t max)
{
    size_t count = test_mini_fold_unmarked(mini, max);
    test_mini_mark(mini);
    return count;
}

long long test_mini_trim(struct test_mini *mini, struct silt_wire_id id)
{
    struct silt_err err = {0};
    struct silt_wire_id top;
    char text[SILT_WIRE_ID_TEXT];
    must(
        silt_look_call(mini->conn, silt_view_str(mini->key), SILT_LOOK_ARCHIVER, &mini->look, &err),
        &err, "look");
    if (mini->look.facts.length == 0 || !silt_wire_id_next(mini->row.custody, &top)) return 0;
    if (silt_wire_id_less(top, id)) id = top;
    if (silt_wire_id_less(mini->look.last.id, id)) id = mini->look.last.id;
    silt_wire_id_format(id, text);
    CALL(mini, "XTRIM", mini->key, "MINID", "=", text);
    mini->row.trim_threshold = id;
    return (long long)mini->reply.nodes[0].value;
}

long long test_mini_trim_all(struct test_mini *mini)
{
    return test_mini_trim(mini, SILT_WIRE_ID_MAX);
}

void test_mini_gap(struct test_mini *mini, struct silt_wire_id after, struct silt_wire_id through,
                   uint64_t count, enum silt_gap_cause cause)
{
    struct silt_err err = {0};
    struct silt_gap_row gap = {.life = mini->row.life,
                               .range = {after, through},
                               .precision = SILT_GAP_EXACT,
                               .has_count = true,
                               .count = count,
                               .cause = cause,
                               .noticed_ms = 1};
    must(silt_batch_gap(mini->batch, &gap), &err, "gap");
    mini->row.gap_entries += count;
}

void test_mini_late(struct test_mini *mini, uint64_t number, struct silt_wire_id id)
{
    struct silt_err err = {0};
    struct silt_late_row late = {.life = mini->row.life, .number = number, .id = id};
    must(silt_batch_late(mini->batch, &late), &err, "late");
    mini->row.late_entries++;
}

void test_mini_insert(struct test_mini *mini, const struct silt_entry *entries, size_t count)
{
    struct silt_err err = {0};
    struct silt_insert *insert;
    must(silt_insert_new(LEVEL, &insert), &err, "insert");
    silt_insert_begin(insert, mini->row.life, mini->row.ns);
    for (size_t i = 0; i < count; i++)
        must(silt_insert_add(insert, &entries[i], &err), &err, "late entry");
    must(silt_insert_apply(insert, mini->store, mini->batch, &err), &err, "apply");
    const struct silt_insert_sum *sum = silt_insert_sum(insert);
    mini->row.late_entries += sum->count;
    mini->row.folded_entries += sum->count;
    mini->row.folded_bytes += sum->values_bytes;
    mini->row.foreign_entries += sum->foreign_count;
    silt_insert_free(insert);
    commit(mini);
}

void test_mini_fork(struct test_mini *mini, struct silt_wire_id fork)
{
    struct silt_err err = {0};
    struct silt_fork_row row = {.stream = mini->row.number, .parent = mini->row.life, .fork = fork};
    must(silt_store_new_life(mini->store, &row.life, &err), &err, "life");
    must(silt_batch_fork(mini->batch, &row), &err, "fork");
    mini->row.life = row.life;
    if (!silt_wire_id_prev(fork, &mini->row.watermark)) mini->row.watermark = fork;
    mini->row.custody = mini->row.watermark;
    commit(mini);
}
