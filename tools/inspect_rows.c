/* Lives, forks, gaps and late entries of one stream, as tables and as JSON. Must not know what a reader makes of them. */
#include "inspect_rows.h"

/* A life, and what the archive holds of it. */
struct life {
    uint64_t life;
    bool forked;
    struct silt_fork_row fork;
    uint64_t segments, entries;
    bool any;
    struct silt_wire_id first, last;
};

struct rows {
    struct silt_store *store;
    const struct silt_stream_row *row;
    struct silt_buf lives; /* struct life, ascending */
    struct silt_err *err;
};

static const struct life *lives_of(const struct rows *rows, size_t *ret_count)
{
    *ret_count = rows->lives.len / sizeof(struct life);
    return (const struct life *)(const void *)rows->lives.at;
}

static bool count_segment(void *ctx, enum silt_status status, const struct silt_segment_info *info)
{
    struct life *life = ctx;
    life->segments++;
    if (status != SILT_OK) return true; /* damaged: inspect says so elsewhere */
    life->entries += info->count;
    if (!life->any) life->first = info->first;
    life->last = info->last;
    life->any = true;
    return true;
}

static enum silt_status add_life(struct rows *rows, struct life *life)
{
    enum silt_status status =
        silt_store_segments(rows->store, life->life, rows->row->ns, SILT_WIRE_ID_MIN,
                            SILT_SEEK_FORWARD, count_segment, life, rows->err);
    if (status < 0) return status;
    status = silt_buf_put(&rows->lives, life, sizeof *life);
    return status == SILT_OK ? SILT_OK : silt_fail(rows->err, status, NULL);
}

/* The first life is the parent of the oldest fork, or the only one. */
static enum silt_status take_lives(struct rows *rows)
{
    struct silt_fork_row fork;
    struct life first = {.life = rows->row->life};
    enum silt_status status =
        silt_store_fork_after(rows->store, rows->row->number, 0, &fork, rows->err);
    if (status == SILT_OK) first.life = fork.parent;
    if (status < 0 || (status = add_life(rows, &first)) < 0) return status;
    for (uint64_t after = 0; (status = silt_store_fork_after(rows->store, rows->row->number, after,
                                                             &fork, rows->err)) == SILT_OK;) {
        struct life life = {.life = fork.life, .forked = true, .fork = fork};
        after = fork.life;
        if ((status = add_life(rows, &life)) < 0) return status;
    }
    return status == SILT_END ? SILT_OK : status;
}

static void heads(struct silt_out *out, struct silt_table *table, const char *const *names,
                  size_t count, const char *right)
{
    *table = (struct silt_table){.column_count = count, .right = right};
    for (size_t i = 0; i < count; i++)
        silt_table_cell(out, table, "%s", names[i]);
}

static void finish(struct silt_out *out, struct silt_table *table, uint64_t rows, const char *none)
{
    silt_out_text(out, "\n");
    if (rows > 0)
        silt_table_print(out, table);
    else
        silt_out_printf(out, "  %s\n", none);
    silt_buf_release(&table->cells);
}

static void id_cell(struct silt_out *out, struct silt_table *table, struct silt_wire_id id,
                    struct silt_namespace ns, bool any)
{
    char text[SILT_WIRE_ID_TEXT] = "-";
    if (any) silt_id_text(id, ns, text);
    silt_table_cell(out, table, "%s", text);
}

static void ms_cell(struct silt_out *out, struct silt_table *table, uint64_t ms)
{
    char text[SILT_INSTANT_TEXT] = "-";
    if (ms != 0) silt_id_instant((struct silt_wire_id){ms, 0}, text);
    silt_table_cell(out, table, "%s", text);
}

/* ---- tables ---- */

static void show_lives(struct silt_out *out, const struct rows *rows)
{
    static const char *const names[] = {"LIFE",     "STATE",   "PARENT", "FORKED AT",
                                        "SEGMENTS", "ENTRIES", "FIRST",  "LAST"};
    struct silt_namespace ns = rows->row->ns;
    struct silt_table table;
    size_t count;
    const struct life *life = lives_of(rows, &count);
    heads(out, &table, names, 8, "rlrlrrll");
    for (size_t i = 0; i < count; i++, life++) {
        char text[32];
        silt_table_cell(out, &table, "%llu", (unsigned long long)life->life);
        silt_table_cell(out, &table, "%s", life->life == rows->row->life ? "newest" : "older");
        if (life->forked)
            silt_table_cell(out, &table, "%llu", (unsigned long long)life->fork.parent);
        else
            silt_table_cell(out, &table, "-");
        id_cell(out, &table, life->fork.fork, ns, life->forked);
        silt_table_cell(out, &table, "%s", silt_count_text(life->segments, text));
        silt_table_cell(out, &table, "%s", silt_count_text(life->entries, text));
        id_cell(out, &table, life->first, ns, life->any);
        id_cell(out, &table, life->last, ns, life->any);
    }
    finish(out, &table, count, "no lives");
}

static void show_forks(struct silt_out *out, const struct rows *rows)
{
    static const char *const names[] = {"FORK", "PARENT", "AT", "INSTANT", "NOTICED"};
    struct silt_table table;
    size_t count;
    uint64_t shown = 0;
    const struct life *life = lives_of(rows, &count);
    heads(out, &table, names, 5, "rrlll");
    for (size_t i = 0; i < count; i++, life++) {
        if (!life->forked) continue;
        silt_table_cell(out, &table, "life %llu", (unsigned long long)life->life);
        silt_table_cell(out, &table, "life %llu", (unsigned long long)life->fork.parent);
        id_cell(out, &table, life->fork.fork, rows->row->ns, true);
        ms_cell(out, &table, life->fork.fork.ms);
        ms_cell(out, &table, life->fork.noticed_ms);
        shown++;
    }
    finish(out, &table, shown, "no forks");
}

static const char *gap_count(const struct silt_gap_row *gap, char ret[80])
{
    char count[32], most[32];
    if (!gap->has_count) return "unknown";
    silt_count_text(gap->count, count);
    if (gap->precision == SILT_GAP_BETWEEN)
        snprintf(ret, 80, "%s to %s", count, silt_count_text(gap->count_max, most));
    else
        snprintf(ret, 80, "%s%s", gap->precision == SILT_GAP_EXACT ? "" : "at least ", count);
    return ret;
}

static enum silt_status show_gaps(struct silt_out *out, const struct rows *rows)
{
    static const char *const names[] = {"GAP", "ABOVE", "UP TO", "MISSING", "CAUSE", "NOTICED"};
    struct silt_table table;
    size_t count;
    uint64_t shown = 0;
    enum silt_status status = SILT_END;
    const struct life *life = lives_of(rows, &count);
    heads(out, &table, names, 6, "rllrll");
    for (size_t i = 0; i < count && status == SILT_END; i++, life++) {
        struct silt_gap_row gap;
        for (uint64_t cursor = 0; (status = silt_store_gap_after(rows->store, life->life, &cursor,
                                                                 &gap, rows->err)) == SILT_OK;
             shown++) {
            char text[80];
            silt_table_cell(out, &table, "life %llu", (unsigned long long)life->life);
            id_cell(out, &table, gap.range.after, rows->row->ns, true);
            id_cell(out, &table, gap.range.through, rows->row->ns, true);
            silt_table_cell(out, &table, "%s", gap_count(&gap, text));
            silt_table_cell(out, &table, "%s", silt_gap_cause_name(gap.cause));
            ms_cell(out, &table, gap.noticed_ms);
        }
    }
    finish(out, &table, shown, "no gaps");
    return status < 0 ? status : SILT_OK;
}

static enum silt_status show_late(struct silt_out *out, const struct rows *rows)
{
    static const char *const names[] = {"LATE", "NUMBER", "ID", "INSTANT"};
    struct silt_table table;
    size_t count;
    uint64_t shown = 0;
    enum silt_status status = SILT_END;
    const struct life *life = lives_of(rows, &count);
    heads(out, &table, names, 4, "rrll");
    for (size_t i = 0; i < count && status == SILT_END; i++, life++) {
        struct silt_late_row late = {0};
        while ((status = silt_store_late_after(rows->store, life->life, late.number, &late,
                                               rows->err)) == SILT_OK) {
            silt_table_cell(out, &table, "life %llu", (unsigned long long)life->life);
            silt_table_cell(out, &table, "%llu", (unsigned long long)late.number);
            id_cell(out, &table, late.id, rows->row->ns, true);
            ms_cell(out, &table, late.id.ms);
            shown++;
        }
    }
    finish(out, &table, shown, "no late entries");
    return status < 0 ? status : SILT_OK;
}

enum silt_status silt_rows_show(struct silt_out *out, struct silt_store *store,
                                const struct silt_stream_row *row,
                                const struct silt_rows_wanted *wanted, struct silt_err *err)
{
    struct rows rows = {.store = store, .row = row, .err = err};
    enum silt_status status = take_lives(&rows);
    if (status == SILT_OK && wanted->lives) show_lives(out, &rows);
    if (status == SILT_OK && wanted->forks) show_forks(out, &rows);
    if (status == SILT_OK && wanted->gaps) status = show_gaps(out, &rows);
    if (status == SILT_OK && wanted->late) status = show_late(out, &rows);
    silt_buf_release(&rows.lives);
    return status;
}

/* ---- JSON ---- */

static void json_number(struct silt_out *out, const char *name, uint64_t value)
{
    silt_json_name(out, name);
    silt_json_u64(out, value);
}

static void json_id(struct silt_out *out, const char *name, struct silt_wire_id id, bool any)
{
    silt_json_name(out, name);
    if (any)
        silt_json_wire_id(out, id);
    else
        silt_json_null(out);
}

static void json_lives(struct silt_out *out, const struct rows *rows)
{
    size_t count;
    const struct life *life = lives_of(rows, &count);
    silt_json_name(out, "life_list");
    silt_json_open(out, '[');
    for (size_t i = 0; i < count; i++, life++) {
        silt_json_open(out, '{');
        json_number(out, "life", life->life);
        silt_json_name(out, "newest");
        silt_json_bool(out, life->life == rows->row->life);
        silt_json_name(out, "parent");
        if (life->forked)
            silt_json_u64(out, life->fork.parent);
        else
            silt_json_null(out);
        json_id(out, "fork", life->fork.fork, life->forked);
        json_number(out, "segments", life->segments);
        json_number(out, "entries", life->entries);
        json_id(out, "first", life->first, life->any);
        json_id(out, "last", life->last, life->any);
        silt_json_close(out, '}');
    }
    silt_json_close(out, ']');
}

static void json_forks(struct silt_out *out, const struct rows *rows)
{
    size_t count;
    const struct life *life = lives_of(rows, &count);
    silt_json_name(out, "fork_list");
    silt_json_open(out, '[');
    for (size_t i = 0; i < count; i++, life++) {
        if (!life->forked) continue;
        silt_json_open(out, '{');
        json_number(out, "life", life->life);
        json_number(out, "parent", life->fork.parent);
        json_id(out, "fork", life->fork.fork, true);
        json_number(out, "noticed_ms", life->fork.noticed_ms);
        silt_json_close(out, '}');
    }
    silt_json_close(out, ']');
}

static void json_gap(struct silt_out *out, const struct silt_gap_row *gap)
{
    static const char *const precisions[] = {[SILT_GAP_EXACT] = "exact",
                                             [SILT_GAP_BETWEEN] = "between",
                                             [SILT_GAP_AT_LEAST] = "at least"};
    silt_json_open(out, '{');
    json_number(out, "life", gap->life);
    json_id(out, "after", gap->range.after, true);
    json_id(out, "through", gap->range.through, true);
    silt_json_name(out, "precision");
    silt_json_str(out, precisions[gap->precision]);
    silt_json_name(out, "count");
    if (gap->has_count)
        silt_json_u64(out, gap->count);
    else
        silt_json_null(out);
    silt_json_name(out, "count_max");
    if (gap->has_count && gap->precision != SILT_GAP_AT_LEAST)
        silt_json_u64(out, gap->precision == SILT_GAP_BETWEEN ? gap->count_max : gap->count);
    else
        silt_json_null(out);
    silt_json_name(out, "cause");
    silt_json_str(out, silt_gap_cause_name(gap->cause));
    json_number(out, "noticed_ms", gap->noticed_ms);
    silt_json_close(out, '}');
}

static enum silt_status json_gaps(struct silt_out *out, const struct rows *rows)
{
    size_t count;
    enum silt_status status = SILT_END;
    const struct life *life = lives_of(rows, &count);
    silt_json_name(out, "gap_list");
    silt_json_open(out, '[');
    for (size_t i = 0; i < count && status == SILT_END; i++, life++) {
        struct silt_gap_row gap;
        uint64_t cursor = 0;
        while ((status = silt_store_gap_after(rows->store, life->life, &cursor, &gap, rows->err)) ==
               SILT_OK)
            json_gap(out, &gap);
    }
    silt_json_close(out, ']');
    return status < 0 ? status : SILT_OK;
}

static enum silt_status json_late(struct silt_out *out, const struct rows *rows)
{
    size_t count;
    enum silt_status status = SILT_END;
    const struct life *life = lives_of(rows, &count);
    silt_json_name(out, "late_list");
    silt_json_open(out, '[');
    for (size_t i = 0; i < count && status == SILT_END; i++, life++) {
        struct silt_late_row late = {0};
        while ((status = silt_store_late_after(rows->store, life->life, late.number, &late,
                                               rows->err)) == SILT_OK) {
            silt_json_open(out, '{');
            json_number(out, "life", late.life);
            json_number(out, "number", late.number);
            json_id(out, "id", late.id, true);
            silt_json_close(out, '}');
        }
    }
    silt_json_close(out, ']');
    return status < 0 ? status : SILT_OK;
}

enum silt_status silt_rows_json(struct silt_out *out, struct silt_store *store,
                                const struct silt_stream_row *row,
                                const struct silt_rows_wanted *wanted, struct silt_err *err)
{
    struct rows rows = {.store = store, .row = row, .err = err};
    enum silt_status status = take_lives(&rows);
    if (status == SILT_OK && wanted->lives) json_lives(out, &rows);
    if (status == SILT_OK && wanted->forks) json_forks(out, &rows);
    if (status == SILT_OK && wanted->gaps) status = json_gaps(out, &rows);
    if (status == SILT_OK && wanted->late) status = json_late(out, &rows);
    silt_buf_release(&rows.lives);
    return status;
}
