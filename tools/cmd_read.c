/* silt read: a stream's history in one walk. */
#include <signal.h>

#include "bound.h"
#include "command.h"
#include "reading.h"

#define FOLLOW_WAIT_MS 100

static const struct silt_option options[] = {
    {"from", "X",
     "the first id: wire id (also -, <ms>, and ( before it to leave it out), branded id or instant"},
    {"to", "X", "the last id, written alike; + is the end"},
    {"since", "T", "the same as --from with an instant, or with a duration before now, such as 2h"},
    {"window", "T0..T1", "--from and --to in one"},
    {"limit", "N", "at most so many entries"},
    {"reverse", NULL, "newest first"},
    {"follow", NULL, "at the end wait for new entries; ends with an interrupt"},
    {"resume", "POS", "go on behind a position that an earlier read told"},
    {"life", "N", "this life of the stream; an older one is read out of the archive alone"},
    {"late", NULL,
     "only the life's late entries, in the order in which they came, out of the archive"},
    {"after", "N", "with --late: only those numbered above N"},
    {"count", NULL, "only how many there are"},
    SILT_READING_OPTIONS,
    {"skip-damaged", NULL, "step over a damaged segment, say so, and go on"},
    {NULL, NULL, NULL},
};

const struct silt_verb_text silt_text_read = {
    .options = options,
    .about =
        "Gives every entry of the stream's history from one id to another, each once, in the order of their ids, across "
        "the watermark below which the archive holds them, whatever the archiver does meanwhile.\n\n"
        "An instant or a bare number of milliseconds stands for the whole millisecond. A window whose end lies before its "
        "beginning is refused before anything is sent, and so is a bare snowflake number.\n\n"
        "In text an entry is one line: its id, its instant, its fields; with --json an object "
        "{\"id\", \"branded\", \"fields\", \"tier\"}. A gap (entries that somebody else removed before they were archived) "
        "and a damaged segment stand in their place, on stderr in text, as objects {\"gap\"} and {\"damage\"} in JSON, and make the exit code 1.\n\n"
        "Entries that came into the archive late, below the watermark (after a failover, say), stand in their place like all others. For those that came behind "
        "a reader's place each has a number: a read that meets them tells how many and how to read just these. --late gives them alone, with --resume POS those "
        "behind that position that it had not been told of.\n\n"
        "A stream has several lives when its key came back with other entries under the ids that were archived already: see silt inspect --lives. The newest "
        "one is read, below its fork its parent; --life reads another one.\n\n"
        "When a limit ends the walk, or an interrupt, or a failure, the position to --resume from is told on stderr.",
    .examples = "silt read quakes --window 2018-02-01..2018-02-02\n"
                "silt read 'emq:{game}:stream:feed' --since 2h --follow --json\n"
                "silt read quakes --reverse --limit 10",
};

struct reading {
    struct silt_call *call;
    struct silt_session session;
    struct silt_history *history;
    struct silt_cursor *cursor;
    struct silt_cursor_options what;
    struct silt_namespace ns;
    uint64_t entries;
    long long flushed_ms;
    bool said_held; /* a follower was told that nothing new is given */
    struct silt_progress progress;
    char from_text[SILT_WIRE_ID_TEXT], to_text[SILT_WIRE_ID_TEXT]; /* --window, --since */
};

static volatile sig_atomic_t interrupted; /* a signal handler has no other place to write to */

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static bool is_interrupted(void *ctx)
{
    (void)ctx;
    return interrupted != 0;
}

static enum silt_status clash(struct silt_call *call, const char *a, const char *b)
{
    return silt_fail(&call->err, SILT_ERR_USAGE, "--%s and --%s contradict each other", a, b);
}

static enum silt_status check_clashes(struct silt_call *call)
{
    static const char *const pairs[][2] = {{"from", "since"},
                                           {"from", "window"},
                                           {"to", "window"},
                                           {"since", "window"},
                                           {"follow", "to"},
                                           {"follow", "window"},
                                           {"follow", "reverse"},
                                           {"follow", "count"},
                                           {"follow", "archive-only"},
                                           {"limit", "count"},
                                           {"resume", "count"},
                                           {"reverse", "count"},
                                           {"late", "follow"},
                                           {"late", "reverse"},
                                           {"late", "count"},
                                           {"life", "follow"},
                                           {"archive-only", "allow-archive-only"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (silt_call_option(call, pairs[i][0]) && silt_call_option(call, pairs[i][1]))
            return clash(call, pairs[i][0], pairs[i][1]);
    return SILT_OK;
}

/* "2h" before now, or whatever --from takes. */
static enum silt_status parse_since(struct reading *reading, const char *text)
{
    uint64_t ago;
    reading->what.from = text;
    if (silt_duration_parse(silt_view_str(text), &ago, NULL) != SILT_OK) return SILT_OK;
    uint64_t now = silt_wall_ms();
    struct silt_wire_id id = {ago < now ? now - ago : 0, 0};
    silt_wire_id_format(id, reading->from_text);
    reading->what.from = reading->from_text;
    return SILT_OK;
}

static enum silt_status parse_window(struct reading *reading, const char *text)
{
    struct silt_range range;
    enum silt_status status =
        silt_window_parse(silt_view_str(text), reading->ns, &range, &reading->call->err);
    if (status != SILT_OK) return status;
    silt_wire_id_format(range.from, reading->from_text);
    silt_wire_id_format(range.to, reading->to_text);
    reading->what.from = reading->from_text;
    reading->what.to = reading->to_text;
    return SILT_OK;
}

/* --life, --late and --after. */
static enum silt_status parse_lives(struct silt_call *call, struct silt_cursor_options *what)
{
    const char *life = silt_call_option(call, "life"), *after = silt_call_option(call, "after");
    what->late = silt_call_option(call, "late") != NULL;
    if (life && (!silt_parse_u64(silt_view_str(life), &what->life) || what->life == 0))
        return silt_fail(&call->err, SILT_ERR_USAGE, "--life is a number from 1, not '%s'", life);
    if (after && !what->late)
        return silt_fail(&call->err, SILT_ERR_USAGE, "--after goes with --late");
    if (after && !silt_parse_u64(silt_view_str(after), &what->late_after))
        return silt_fail(&call->err, SILT_ERR_USAGE, "--after is a number, not '%s'", after);
    return SILT_OK;
}

static enum silt_status parse_options(struct reading *reading)
{
    struct silt_call *call = reading->call;
    struct silt_cursor_options *what = &reading->what;
    const char *limit = silt_call_option(call, "limit"), *window = silt_call_option(call, "window"),
               *since = silt_call_option(call, "since");
    what->from = silt_call_option(call, "from");
    what->to = silt_call_option(call, "to");
    what->resume = silt_call_option(call, "resume");
    what->reverse = silt_call_option(call, "reverse") != NULL;
    what->follow = silt_call_option(call, "follow") != NULL;
    what->skip_damaged = silt_call_option(call, "skip-damaged") != NULL;
    what->follow_wait_ms = FOLLOW_WAIT_MS;
    what->cancelled = is_interrupted;
    if (limit && (!silt_parse_u64(silt_view_str(limit), &what->limit) || what->limit == 0))
        return silt_fail(&call->err, SILT_ERR_USAGE, "--limit is a number from 1, not '%s'", limit);
    enum silt_status status = parse_lives(call, what);
    if (status != SILT_OK) return status;
    if (window) return parse_window(reading, window);
    return since ? parse_since(reading, since) : SILT_OK;
}

static void give_range(struct silt_out *out, const struct silt_item *item)
{
    silt_json_name(out, "first");
    silt_json_wire_id(out, item->first);
    silt_json_name(out, "last");
    silt_json_wire_id(out, item->last);
}

static void give_gap(struct reading *reading, const struct silt_item *item)
{
    char first[SILT_WIRE_ID_TEXT], last[SILT_WIRE_ID_TEXT];
    struct silt_out *out = &reading->call->out;
    silt_wire_id_format(item->first, first);
    silt_wire_id_format(item->last, last);
    if (!reading->call->json) {
        bool one = item->count == 1;
        silt_say("gap: %s%llu %s of %s to %s %s not in the history (%s)",
                 item->count_is_exact ? "" : "at least ", (unsigned long long)item->count,
                 one ? "entry" : "entries", first, last, one ? "is" : "are", item->cause);
        return;
    }
    silt_json_open(out, '{');
    silt_json_name(out, "gap");
    silt_json_open(out, '{');
    give_range(out, item);
    silt_json_name(out, "count");
    silt_json_u64(out, item->count);
    silt_json_name(out, "count_is_exact");
    silt_json_bool(out, item->count_is_exact);
    silt_json_name(out, "cause");
    silt_json_str(out, item->cause);
    silt_json_close(out, '}');
    silt_json_close(out, '}');
    silt_json_end_line(out);
}

/* Just these are the ones between the two ids that came after the number. */
static void tell_late(const struct reading *reading, const struct silt_item *item)
{
    char first[SILT_WIRE_ID_TEXT], last[SILT_WIRE_ID_TEXT];
    bool one = item->count == 1;
    silt_wire_id_format(item->first, first);
    silt_wire_id_format(item->last, last);
    silt_say("%llu late %s behind this place", (unsigned long long)item->count,
             one ? "entry lies" : "entries lie");
    fprintf(stderr, "hint: silt read '%s' --late --after %llu --from %s --to %s\n",
            reading->call->args[0], (unsigned long long)item->late_after, first, last);
}

static void give_finding(struct reading *reading, const struct silt_item *item)
{
    char first[SILT_WIRE_ID_TEXT], last[SILT_WIRE_ID_TEXT];
    struct silt_out *out = &reading->call->out;
    bool damage = item->kind == SILT_ITEM_DAMAGE;
    silt_wire_id_format(item->first, first);
    silt_wire_id_format(item->last, last);
    if (!reading->call->json) {
        if (damage)
            silt_say("damage: the segment of %s to %s cannot be read and was stepped over", first,
                     last);
        else
            tell_late(reading, item);
        return;
    }
    silt_json_open(out, '{');
    silt_json_name(out, damage ? "damage" : "late");
    silt_json_open(out, '{');
    if (damage) {
        give_range(out, item);
    } else {
        silt_json_name(out, "count");
        silt_json_u64(out, item->count);
        give_range(out, item);
        silt_json_name(out, "after");
        silt_json_u64(out, item->late_after);
    }
    silt_json_close(out, '}');
    silt_json_close(out, '}');
    silt_json_end_line(out);
}

static void give(struct reading *reading, const struct silt_item *item)
{
    struct silt_out *out = &reading->call->out;
    if (item->kind != SILT_ITEM_ENTRY) {
        reading->call->exit_code = SILT_EXIT_FINDING;
        if (!reading->call->json) silt_out_catch_up(out); /* in its place also on a terminal */
        if (item->kind == SILT_ITEM_GAP)
            give_gap(reading, item);
        else
            give_finding(reading, item);
        return;
    }
    reading->entries++;
    if (!reading->call->json) {
        silt_out_entry(out, &item->entry, reading->ns);
        return;
    }
    silt_json_entry(out, &item->entry, reading->ns);
    silt_json_name(out, "tier");
    silt_json_str(out, item->tier == SILT_TIER_ARCHIVE ? "archive" : "live");
    if (item->late_number != 0) {
        silt_json_name(out, "late_number");
        silt_json_u64(out, item->late_number);
    }
    silt_json_close(out, '}');
    silt_json_end_line(out);
}

/* A follower's lines must not wait for a full buffer. */
static enum silt_status flush_now_and_then(struct reading *reading, bool quiet)
{
    long long now = silt_clock_ms();
    if (!quiet && now - reading->flushed_ms < FOLLOW_WAIT_MS) return SILT_OK;
    reading->flushed_ms = now;
    return silt_out_flush(&reading->call->out, &reading->call->err);
}

/* A follower in doubt would wait in silence. */
static void tell_held(struct reading *reading)
{
    bool held = silt_cursor_is_held(reading->cursor);
    if (held && !reading->said_held) {
        silt_out_catch_up(&reading->call->out);
        silt_say(
            "the stream's continuity is in doubt: what is live is held back until that is decided");
        fputs("hint: silt status gives the reason\n", stderr);
        reading->call->exit_code = SILT_EXIT_FINDING;
    }
    reading->said_held = held;
}

/* Where to go on, if the walk was cut short. */
static void tell_position(struct reading *reading, enum silt_status status)
{
    char position[SILT_POSITION_TEXT];
    bool cut = reading->what.limit && reading->entries >= reading->what.limit;
    if (status >= 0 && !interrupted && !cut) return;
    silt_cursor_position(reading->cursor, position);
    silt_out_catch_up(
        &reading->call->out); /* behind the entries, where both are read on one terminal */
    if (*position) fprintf(stderr, "position: %s\n", position);
}

static enum silt_status walk(struct reading *reading)
{
    struct silt_call *call = reading->call;
    enum silt_status status;
    for (;;) {
        struct silt_item item;
        status = silt_cursor_next(reading->cursor, &item, &call->err);
        bool limit_reached = reading->what.limit && reading->entries >= reading->what.limit;
        bool waiting = status == SILT_END && reading->what.follow && !limit_reached;
        if (status == SILT_OK) give(reading, &item);
        if (waiting) tell_held(reading);
        if (reading->what.follow && (status == SILT_OK || waiting)) {
            enum silt_status flushed = flush_now_and_then(reading, waiting);
            if (flushed != SILT_OK) return flushed;
        }
        if ((status != SILT_OK && !waiting) || interrupted) break;
        if (!reading->what.follow)
            silt_progress(&reading->progress, "reading", reading->entries, 0);
        if (call->out.write_errno) break; /* nobody takes it: told by the flush */
    }
    silt_progress_end(&reading->progress);
    tell_position(reading, status);
    if (status == SILT_ERR_CANCELLED && interrupted) return SILT_OK;
    return status < 0 ? status : SILT_OK;
}

/* An older life is closed: all of it is in the archive, and nothing of it is asked of the server. */
static bool is_older_life(struct reading *reading)
{
    SILT_CLEANUP(silt_stream_release) struct silt_stream stream = {0};
    if (reading->what.life == 0 || reading->session.store == NULL) return false;
    if (silt_store_stream(reading->session.store, silt_view_str(reading->call->args[0]), &stream,
                          NULL) != SILT_OK ||
        stream.row.life == reading->what.life)
        return false;
    silt_say("life %llu is not the newest of the stream, that is %llu: the archive alone is read",
             (unsigned long long)reading->what.life, (unsigned long long)stream.row.life);
    return true;
}

static enum silt_status count(struct reading *reading)
{
    uint64_t entries;
    struct silt_out *out = &reading->call->out;
    enum silt_status status =
        silt_history_count(reading->history, &reading->what, &entries, &reading->call->err);
    if (status != SILT_OK) return status;
    if (!is_older_life(reading)) silt_reading_probe(&reading->session);
    if (reading->call->json) {
        silt_json_open(out, '{');
        silt_json_name(out, "count");
        silt_json_u64(out, entries);
        silt_json_close(out, '}');
        silt_json_end_line(out);
    } else {
        silt_out_printf(out, "%llu\n", (unsigned long long)entries);
    }
    return SILT_OK;
}

static enum silt_status read_history(struct reading *reading)
{
    struct silt_call *call = reading->call;
    enum silt_status status;
    if ((status = check_clashes(call)) != SILT_OK ||
        (status = silt_session_init(&reading->session, call)) != SILT_OK ||
        (status = silt_session_kind(&reading->session, silt_view_str(call->args[0]),
                                    &reading->ns)) != SILT_OK ||
        (status = parse_options(reading)) != SILT_OK ||
        (status = silt_reading_open(&reading->session, &reading->history, &reading->what)) !=
            SILT_OK)
        return status;
    if (silt_call_option(call, "count")) return count(reading);
    if (reading->what.follow || reading->what.limit) {
        signal(SIGINT, on_interrupt);
        signal(SIGTERM, on_interrupt);
    }
    status = silt_cursor_open(reading->history, &reading->what, &reading->cursor, &call->err);
    if (status != SILT_OK) return status;
    bool asked_for = is_older_life(reading) || reading->what.late;
    status = walk(reading);
    if (!asked_for) silt_reading_tell(&reading->session, reading->cursor);
    return status;
}

enum silt_status silt_cmd_read(struct silt_call *call)
{
    struct reading reading = {.call = call, .what = SILT_CURSOR_OPTIONS_DEFAULT};
    enum silt_status status = read_history(&reading);
    silt_cursor_close(reading.cursor);
    silt_history_close(reading.history);
    silt_session_release(&reading.session);
    return status;
}
