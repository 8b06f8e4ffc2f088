/* A look: one MULTI of facts about a stream (protocol.md §2), and a page: a look with a range of entries in the same MULTI. */
#ifndef SILT_LOOK_H
#define SILT_LOOK_H

#include "conn.h"
#include "entry.h"
#include "rows.h"

struct silt_look_group {
    struct silt_view name;
    struct silt_wire_id last_delivered;
    uint64_t pending;
    uint64_t entries_read; /* UINT64_MAX: unknown */
    uint64_t consumers;
    bool is_silt; /* named silt:... */
};

enum silt_look_state { SILT_LOOK_STREAM, SILT_LOOK_GONE, SILT_LOOK_WRONG_TYPE };

/* Views point into `reply`; valid until the next look or page with this object. {0}, reused, released. */
struct silt_look {
    enum silt_look_state state;
    struct silt_facts facts;
    struct silt_entry first; /* field_count 0 and id 0-0 where there is none */
    struct silt_entry last;
    const struct silt_look_group *groups;
    size_t group_count;
    uint64_t
        node_count; /* of the server's tree, each with up to 100 entries and their remains; 0: unknown */
    bool groups_denied; /* NOPERM on XINFO GROUPS */
    bool is_master;
    bool replication_known; /* INFO replication was part of the look and answered */
    uint64_t generation;    /* of the connection that it was made on */
    struct silt_reply reply;
    struct silt_buf fields_mem;
    struct silt_buf groups_mem;
};
void silt_look_release(struct silt_look *look);
/* At most so many entries are to be asked for in one range. Where most were deleted the server steps over their remains, node by node, and holds everybody
 * up meanwhile: 1,000 entries of a stream that has lost 99 of 100 take it 20 ms (field report A10). */
uint32_t silt_look_page_cap(const struct silt_look *look);

/* What a MULTI asks for. The archiver asks INFO replication, a reader need not. */
enum silt_look_what { SILT_LOOK_READER = 0, SILT_LOOK_ARCHIVER = 1 };

SILT_MUST_USE enum silt_status silt_look_append(struct silt_conn *conn, struct silt_view key,
                                                enum silt_look_what what, struct silt_err *err);
/* Receives the replies of one silt_look_append. A missing key or another type is a state, not a failure. */
SILT_MUST_USE enum silt_status silt_look_receive(struct silt_conn *conn, enum silt_look_what what,
                                                 struct silt_look *look, struct silt_err *err);
SILT_MUST_USE enum silt_status silt_look_call(struct silt_conn *conn, struct silt_view key,
                                              enum silt_look_what what, struct silt_look *look,
                                              struct silt_err *err);

/* A page of entries with the look of the same MULTI. Reused. */
struct silt_page {
    struct silt_look look;      /* its reply holds the entries too */
    struct silt_entry *entries; /* in the order asked for: ascending, or descending for reverse */
    size_t entry_count;
    bool full; /* the server gave as many as were asked for */
    uint64_t values_bytes;
    struct silt_buf entries_mem;
    struct silt_buf fields_mem;
};
void silt_page_release(struct silt_page *page);

struct silt_page_request {
    struct silt_view key;
    struct silt_wire_id from; /* inclusive, the lower end */
    struct silt_wire_id to;   /* inclusive, the upper end */
    uint32_t count;
    bool reverse;
    enum silt_look_what what;
};
SILT_MUST_USE enum silt_status silt_page_append(struct silt_conn *conn,
                                                const struct silt_page_request *request,
                                                struct silt_err *err);
/* Checks shape, order and bounds of what came: ids strictly ascending (descending), inside the range, field lists even. Fails with SILT_ERR_SERVER_NONSENSE. */
SILT_MUST_USE enum silt_status silt_page_receive(struct silt_conn *conn,
                                                 const struct silt_page_request *request,
                                                 struct silt_page *page, struct silt_err *err);

/* The oldest pending id of a group (XPENDING summary); SILT_END: none pending. */
SILT_MUST_USE enum silt_status silt_look_oldest_pending(
    struct silt_conn *conn, struct silt_view key, struct silt_view group,
    struct silt_reply *scratch, struct silt_wire_id *ret, struct silt_err *err);
/* TIME of the server in ms. */
SILT_MUST_USE enum silt_status silt_look_time(struct silt_conn *conn, struct silt_reply *scratch,
                                              uint64_t *ret_ms, struct silt_err *err);

/* A marker's name, silt:<uuid>:<epoch>:<number>. */
struct silt_marker {
    char uuid[SILT_UUID_TEXT];
    uint64_t epoch;
    uint64_t number;
};
#define SILT_MARKER_TEXT 96
size_t silt_marker_format(const struct silt_marker *marker, char ret[SILT_MARKER_TEXT]);
bool silt_marker_parse(struct silt_view name, struct silt_marker *ret);

#endif
