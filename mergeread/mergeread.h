/* libmergeread: archive and live stream as one history, in mint order, across the watermark.
 *
 *     struct silt_history *history = NULL;
 *     struct silt_history_options where = {.archive_path = "/var/lib/silt", .server_address = "unix:/run/valkey/valkey.sock"};
 *     if (silt_history_open(&where, &history, &err) != SILT_OK) ...
 *     struct silt_cursor_options what = SILT_CURSOR_OPTIONS_DEFAULT;
 *     what.key = "orders";
 *     silt_cursor_open(history, &what, &cursor, &err);
 *     while ((status = silt_cursor_next(cursor, &item, &err)) == SILT_OK) ...
 *
 * Promise (design.md §2, 4): from any id to any other, in either direction, every entry that is in the history when the cursor passes is given once,
 * in mint order, while writers append, the archiver folds and trims and segments are rewritten. "End" and "broken" are never the same answer.
 * Threads: one history handle and its cursors belong to one thread at a time; handles of many threads share one archive environment. */
#ifndef SILT_MERGEREAD_H
#define SILT_MERGEREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entry.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct silt_history;
struct silt_cursor;

enum silt_when_away {
    SILT_AWAY_FAIL = 0,    /* the server cannot be reached: the call fails */
    SILT_AWAY_ARCHIVE_ONLY /* go on with the archive alone, and say so: silt_cursor_is_archive_only */
};

struct silt_history_options {
    const char *archive_path;   /* NULL: live only (a stream that was never archived) */
    const char *server_address; /* NULL: archive only */
    unsigned database;
    const char *user;
    const char *password_file;
    uint64_t connect_timeout_ms; /* 0: 5000 */
    uint64_t command_timeout_ms; /* 0: 10000 */
    enum silt_when_away when_away;
    /* For tls: addresses; read at every connect. */
    const char *tls_ca_file;   /* NULL: the certificates that the system trusts */
    const char *tls_cert_file; /* ours, for a server that asks for one; NULL: none */
    const char *tls_key_file;  /* its key; NULL: in the same file */
};

/* Opens the archive; connects to the server only when a cursor needs it. Owns: *ret, silt_history_close.
 * Fails with SILT_ERR_USAGE (neither archive nor server), the store's codes, SILT_ERR_ADDRESS, SILT_ERR_MEMORY. A missing archive is SILT_ERR_NO_ARCHIVE. */
SILT_MUST_USE enum silt_status silt_history_open(const struct silt_history_options *options,
                                                 struct silt_history **ret, struct silt_err *err);
void silt_history_close(struct silt_history *history); /* close its cursors first; NULL is fine */

enum silt_ids { SILT_IDS_LEARN = 0, SILT_IDS_WIRE, SILT_IDS_BRANDED };

struct silt_cursor_options {
    const char *key;
    size_t key_len;    /* 0: strlen(key) */
    enum silt_ids ids; /* LEARN: from the archive's row, else plain; with BRANDED also ns */
    char ns[4];
    const char *
        from; /* any bound of bound.h: wire id (also -, +, short, exclusive), branded id, instant; NULL: the beginning */
    const char *to; /* NULL: the end */
    const char
        *resume; /* a position: goes on behind it; NULL: none. With from, the later of the two */
    bool reverse;
    bool follow; /* at the end wait for more; not with reverse or to */
    uint64_t
        follow_wait_ms; /* with follow: next gives SILT_END after so long without an entry; 0: wait for ever */
    uint64_t limit; /* entries; 0: all */
    uint64_t life;  /* 0: the newest life; another one reads the archive only */
    bool
        late; /* only the life's late entries, in the order in which they came: the archive alone; not with reverse or follow. With resume: those behind that
                  position that it had not been told of; a position of such a walk goes on in it */
    uint64_t late_after; /* with late: only those numbered above it */
    bool
        skip_damaged; /* give damage as an item and go on; else next fails with SILT_ERR_CORRUPT (calling it again goes on, too) */
    uint32_t page_entries;        /* one XRANGE; 0: 1000 */
    bool (*cancelled)(void *ctx); /* asked while waiting; NULL: never */
    void *cancelled_ctx;
};
#define SILT_CURSOR_OPTIONS_DEFAULT ((struct silt_cursor_options){0})

enum silt_item_kind {
    SILT_ITEM_ENTRY = 0,
    SILT_ITEM_GAP, /* entries known to have been removed by somebody else before they were folded */
    SILT_ITEM_DAMAGE, /* a damaged segment was stepped over (skip_damaged) */
    SILT_ITEM_LATE /* count entries entered the history behind this cursor, between first and last: a cursor with late, late_after and these bounds gives them */
};
enum silt_tier { SILT_TIER_ARCHIVE = 0, SILT_TIER_LIVE };

struct silt_item {
    enum silt_item_kind kind;
    struct silt_entry entry; /* ENTRY */
    enum silt_tier tier;
    bool foreign; /* in a branded stream: not an entry of its own brand */
    uint64_t life;
    struct silt_wire_id first; /* GAP, DAMAGE, LATE: the range, inclusive */
    struct silt_wire_id last;
    uint64_t count; /* GAP: how many at least; LATE: how many; 0: unknown */
    bool count_is_exact;
    const char *cause;   /* GAP: trimmed, deleted, ...; static text */
    uint64_t late_after; /* LATE: they are numbered above it */
    uint64_t
        late_number; /* LATE: up to this number; ENTRY of a cursor with late: its number; else 0 */
};

/* Owns: *ret, silt_cursor_close. Sends nothing for a refused bound. Fails with SILT_ERR_WINDOW, the id codes, SILT_ERR_POSITION, SILT_ERR_UNKNOWN_STREAM (neither
 * archive nor server know the key), SILT_ERR_WRONG_TYPE, the server's codes (unless when_away allows the archive alone), the store's codes. */
SILT_MUST_USE enum silt_status silt_cursor_open(struct silt_history *history,
                                                const struct silt_cursor_options *options,
                                                struct silt_cursor **ret, struct silt_err *err);
void silt_cursor_close(struct silt_cursor *cursor);

/* The next item. Valid until the next call on this cursor. SILT_END: the range is exhausted (or the limit reached, or follow_wait_ms passed; follow may be called
 * again). SILT_ERR_OLDER_COPY, SILT_ERR_LIFE_CHANGED, SILT_ERR_DOUBT (an audit is pending: the archive was given, the live part is held back;
 * backward also when the limit is reached, forward not with follow: see silt_cursor_is_held), SILT_ERR_CORRUPT
 * (err names the id range), the server's and store's codes: the position stays; a RETRY class may be called again. */
SILT_MUST_USE enum silt_status silt_cursor_next(struct silt_cursor *cursor, struct silt_item *ret,
                                                struct silt_err *err);

/* Where the cursor stands, as text to resume from, next week too: behind the last item given. At most SILT_POSITION_TEXT bytes with terminator. */
#define SILT_POSITION_TEXT 256
size_t silt_cursor_position(const struct silt_cursor *cursor, char ret[SILT_POSITION_TEXT]);
/* True when this cursor reads the archive alone because the server was away (allowed) or not named; with the watermark up to which it is complete. */
bool silt_cursor_is_archive_only(const struct silt_cursor *cursor);
/* True while entries within the bounds are held back because an audit is pending: a follower gets nothing new until that is decided. */
bool silt_cursor_is_held(const struct silt_cursor *cursor);
struct silt_wire_id silt_cursor_watermark(const struct silt_cursor *cursor);
/* The stream's namespace as used ("EVT"), or "" for a plain stream. Borrowed from the cursor. */
const char *silt_cursor_namespace(const struct silt_cursor *cursor);

/* One entry, wherever it lives: id is a wire id in full form or a branded id. SILT_END: nowhere. Owns: *ret, silt_entry_free.
 * An entry that a consumer still has pending after it was trimmed is found in the archive. */
SILT_MUST_USE enum silt_status silt_history_get(struct silt_history *history,
                                                const struct silt_cursor_options *which,
                                                const char *id, struct silt_entry **ret,
                                                enum silt_tier *ret_tier, struct silt_err *err);
/* How many entries the cursor of these options would give (limit, follow and resume are not looked at), by segment headers where whole segments lie inside. */
SILT_MUST_USE enum silt_status silt_history_count(struct silt_history *history,
                                                  const struct silt_cursor_options *which,
                                                  uint64_t *ret_count, struct silt_err *err);
/* True when the last silt_history_get or _count used the archive alone, because the server was away (allowed) or not named. */
bool silt_history_was_archive_only(const struct silt_history *history);

#ifdef __cplusplus
}
#endif
#endif
