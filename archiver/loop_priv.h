/* What the files of the loop share. */
#ifndef SILT_LOOP_PRIV_H
#define SILT_LOOP_PRIV_H

#include <event2/event.h>
#include <pthread.h>

#include "control.h"
#include "loop.h"
#include "roster.h"

/* Who waits: for a `sync` of one stream, or of all; or for a stream to be taken over or let go. */
struct silt_waiter {
    uint64_t ticket;
    enum silt_control_verb verb;
    bool dry_run;
    bool all;
    struct silt_buf key;
    uint64_t since_pass; /* a pass that began later must end well */
    struct silt_waiter *next;
};

struct silt_loop {
    struct silt_config *config;
    struct silt_loop_options options;
    struct event_base *base;
    struct event *wake;
    struct event *signals[3];
    struct silt_archiver *archiver; /* NULL: has to be opened again */
    struct silt_control *control;
    struct silt_roster roster;
    pthread_t thread;
    bool stopping, reload_asked;
    uint64_t started_ms, pumped_ms;
    uint64_t pass_number; /* of the last pass that began */
    size_t turn;          /* where gathering begins */

    /* what stops all streams: the server away, the disk full */
    struct silt_report_error trouble;
    unsigned trouble_count;
    uint64_t retry_ms;

    /* finding streams */
    size_t announced; /* streams of the roster that were spoken of */
    uint64_t scan_due_ms, sweep_began_ms;
    bool sweeping, swept;
    struct silt_report_error scan_error;

    struct silt_waiter *waiters;
    struct silt_work **works; /* of a pass */
    struct silt_roster_stream **due;
    size_t works_cap, due_cap;
    uint64_t random;
    bool store_suspect; /* reopen before the next pass */
    int exit_code;      /* once */
    bool ended;
    struct silt_err end_err;
};

uint64_t silt_loop_now(void); /* monotonic, ms */
bool silt_loop_cancelled(void *loop);
/* Something that stops all streams. */
void silt_loop_trouble(struct silt_loop *loop, enum silt_status status, const struct silt_err *err);

/* loop_control.c: what the socket asks. */
extern const struct silt_control_handler silt_loop_handler; /* ctx is to be filled in */
void silt_loop_serve_waiters(struct silt_loop *loop);
void silt_loop_fail_waiters(struct silt_loop *loop, enum silt_status status,
                            const struct silt_err *err);
void silt_loop_free_waiters(struct silt_loop *loop);

/* loop_reload.c: another configuration, another archiver. */
void silt_loop_reload(struct silt_loop *loop);
SILT_MUST_USE enum silt_status silt_loop_open_archiver(struct silt_loop *loop,
                                                       struct silt_err *err);
void silt_loop_close_archiver(struct silt_loop *loop);

#endif
