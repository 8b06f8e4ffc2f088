/* The inside of history and cursor: siblings only. cursor.c deals out, cursor_open.c checks what was asked, cursor_forward.c and cursor_reverse.c walk,
 * crossing.c fetches pages and judges them, gaps.c keeps what is missing, position.c is the text form of a place. */
#ifndef SILT_CURSOR_PRIV_H
#define SILT_CURSOR_PRIV_H

#include "archive_source_priv.h"
#include "conn_priv.h"
#include "look.h"
#include "mergeread.h"

struct silt_history {
    struct silt_store *store; /* NULL: live only */
    struct silt_conn *conn;   /* NULL: archive only */
    enum silt_when_away when_away;
    uint64_t block_ms;         /* longest XREAD BLOCK, well inside the command timeout */
    struct silt_meta_row meta; /* uuid and epoch as last read */
    uint64_t archive_hash;     /* of the uuid; 0: no archive */
    /* Of the call in progress: asked while the connection waits. */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    struct silt_reply scratch;
    bool went_without; /* the last get or count used the archive alone */
};

/* A place in a stream's history, as its text form carries it. */
struct silt_position {
    bool
        late_walk; /* over late entries alone, up to number `late`; of those, id bounds what lay behind (above_all: all of them did) */
    bool reverse;
    bool above_all;         /* a reverse walk that has not begun */
    struct silt_wire_id id; /* forward: all up to it is passed; reverse: all from it on */
    uint64_t gaps_given;    /* of the gaps that begin (reverse: end) exactly at this place */
    uint64_t life;          /* 0: the stream was not in the archive yet */
    uint64_t changed_to;    /* the life that was met instead; 0: none */
    uint64_t late;          /* highest late number known */
    bool saw_marker;
    bool has_base;
    struct silt_wire_id
        base;             /* gaps above the watermark are counted from here on (protocol.md §5) */
    uint64_t accounted;   /* entries-added there, and the entries given or told missing since */
    uint32_t fingerprint; /* of the object that these counts are of */
    uint64_t key_hash;
    uint64_t archive_hash;
};
size_t silt_position_format(const struct silt_position *position, char ret[SILT_POSITION_TEXT]);
SILT_MUST_USE enum silt_status silt_position_parse(struct silt_view text, struct silt_position *ret,
                                                   struct silt_err *err);

/* The recorded gaps of a life and its parents, in the order of a walk, and how far the walk has told them. */
struct silt_gaps {
    struct silt_gap_row *rows; /* forward: by range.after; reverse: by range.through, descending */
    size_t count;
    size_t cap;
    size_t next;           /* the first not yet told */
    uint64_t store_cursor; /* of the cursor's life: where its next rows will be found */
    bool loaded;           /* once: from here on only new rows of that life are fetched */
    bool has_last;
    struct silt_gap_row last; /* the last row of that life that was fetched */
};

enum silt_cursor_state {
    SILT_AT_LOOKUP,  /* decide where to read on */
    SILT_AT_ARCHIVE, /* out of segments, up to the watermark known before */
    SILT_AT_TAIL,    /* out of segments, between place and W2, with a page in hand */
    SILT_AT_PAGE,    /* out of the page */
    SILT_AT_END
};

struct silt_cursor {
    struct silt_history *history;
    struct silt_buf key;
    enum silt_ids ids;
    struct silt_namespace ns; /* as used for marking and bounds */
    struct silt_range range;
    bool reverse, follow, skip_damaged, limited;
    uint64_t limit_left;
    uint64_t follow_wait_ms;
    uint32_t page_entries;
    bool resumed;
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
    int64_t deadline_ms; /* of the call in progress, following; 0: none */

    /* what the last snapshot said */
    struct silt_stream stream;
    bool known;                    /* the archive has a row */
    struct silt_wire_id watermark; /* W; 0-0 while nothing was folded */
    bool older_life;               /* a named life that is not the newest: the archive alone */
    bool archive_only;             /* no server named, or away and allowed to be */
    bool held;                     /* an audit is pending: no live part */
    bool behind;                   /* the server's newest entry lies below the watermark */
    struct silt_err away;          /* why archive_only, when a server was named */

    /* the walk */
    enum silt_cursor_state state;
    struct silt_position at;
    bool exhausted; /* reverse: nothing lies below the place */
    struct silt_archive_source *source;
    size_t fast; /* entries that may be given from the loaded segment without another check */
    struct silt_wire_id tail_to; /* bound of the seek in hand */
    struct silt_page page;
    size_t page_index;
    size_t page_split; /* forward: entries from here on lie above W2; reverse: those before it do */
    bool rebased;      /* the page's base is set */
    bool whole;        /* the page stands for the tail of the archive, too */
    struct silt_wire_id fetched_from; /* the place when the page was asked for */
    struct silt_gaps gaps;
    bool wait_by_polling; /* no right to XREAD */

    /* late entries that came behind the place */
    uint64_t late_counter; /* the row's counter as last looked at */
    uint64_t late_told;    /* highest number that the pending item will have told */
    struct silt_item late;
    bool late_due;
    struct silt_stream glance;     /* the row, for its counter of late entries alone */
    bool has_copy;                 /* the source has loaded a segment */
    struct silt_wire_id copy_from; /* the place at that moment */
    bool
        late_walk; /* nothing but late entries is given, in the order of their numbers; late_told: how far the walk is */
    struct silt_late_segment *late_segment; /* the one that the last of them was in */
};

/* ---- crossing.c ---- */

/* A fresh snapshot of the stream's row: watermark, life, verdict; gaps and late entries that are new with it. */
SILT_MUST_USE enum silt_status silt_cursor_snapshot(struct silt_cursor *cursor,
                                                    struct silt_err *err);
/* What came late since the last look, before another segment is loaded and at the end of a walk: what lies ahead then is in what is loaded next, what lies behind is counted. */
SILT_MUST_USE enum silt_status silt_cursor_check_late(struct silt_cursor *cursor,
                                                      struct silt_err *err);
/* An audit is pending and entries within the bounds are held back: SILT_ERR_DOUBT, said. */
enum silt_status silt_cursor_doubt(const struct silt_cursor *cursor, struct silt_err *err);
/* A page of `range` and after it a snapshot, judged: the page is fit to be given when this is SILT_OK and !cursor->held && !cursor->archive_only. */
SILT_MUST_USE enum silt_status silt_cursor_fetch(struct silt_cursor *cursor,
                                                 struct silt_range range, uint32_t count,
                                                 struct silt_err *err);
/* Waits until there may be more, at most until cursor->deadline_ms. SILT_END: the deadline passed. */
SILT_MUST_USE enum silt_status silt_cursor_wait(struct silt_cursor *cursor, struct silt_err *err);

/* ---- cursor_late.c ---- */

/* One step of the walk over late entries. */
SILT_MUST_USE enum silt_status silt_cursor_late_next(struct silt_cursor *cursor,
                                                     struct silt_item *ret, struct silt_err *err);
void silt_late_segment_free(struct silt_late_segment *segment);

/* ---- gaps.c ---- */

void silt_gaps_release(struct silt_gaps *gaps);
/* Loads what is new; rows behind the place are passed over. */
SILT_MUST_USE enum silt_status silt_cursor_load_gaps(struct silt_cursor *cursor,
                                                     struct silt_err *err);
/* The first gap to tell, or NULL. */
const struct silt_gap_row *silt_cursor_next_gap(const struct silt_cursor *cursor);
/* Must it be told before the entry of this id? */
bool silt_cursor_gap_before(const struct silt_cursor *cursor, struct silt_wire_id id);
/* Tells it: fills the item, moves the place. */
void silt_cursor_tell_gap(struct silt_cursor *cursor, struct silt_item *ret);
/* The arithmetic above the watermark. Forward only. True: *ret is a gap to tell. */
bool silt_cursor_rebase(struct silt_cursor *cursor, struct silt_item *ret);
bool silt_cursor_count_short_page(struct silt_cursor *cursor, struct silt_item *ret);

/* ---- cursor.c ---- */

/* Places an entry in the item and moves the place onto it. */
void silt_cursor_give_live(struct silt_cursor *cursor, const struct silt_entry *entry,
                           struct silt_item *ret);
/* The namespace that live entries are marked by: the archive's, else the one asked for. */
struct silt_namespace silt_cursor_brand(const struct silt_cursor *cursor);
/* Out of the archive source: gives, tells gaps and damage on the way. SILT_END: no more up to the bound of the seek. */
SILT_MUST_USE enum silt_status silt_cursor_archive_step(struct silt_cursor *cursor,
                                                        struct silt_item *ret,
                                                        struct silt_err *err);
SILT_MUST_USE enum silt_status silt_cursor_seek(struct silt_cursor *cursor, struct silt_range range,
                                                struct silt_err *err);

/* One step of a walk: SILT_OK with *ret_given true: an item; false: go on. */
SILT_MUST_USE enum silt_status silt_cursor_forward(struct silt_cursor *cursor,
                                                   struct silt_item *ret, bool *ret_given,
                                                   struct silt_err *err);
SILT_MUST_USE enum silt_status silt_cursor_reverse(struct silt_cursor *cursor,
                                                   struct silt_item *ret, bool *ret_given,
                                                   struct silt_err *err);

static inline uint64_t silt_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
