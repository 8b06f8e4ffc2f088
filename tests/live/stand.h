/* A server, an archive and an archiver in this process, for the live tests of the cycle. Sets up; checks nothing. */
#ifndef TEST_STAND_H
#define TEST_STAND_H

#include "cycle_priv.h"
#include "harness/harness.h"
#include "harness/oracle.h"

#define STAND_WORKS_MAX 64

struct stand {
    struct test_server server;
    char archive[160];
    struct silt_config *config;
    struct silt_archiver *archiver; /* NULL: closed */
    struct silt_work *works[STAND_WORKS_MAX];
    size_t work_count;
    bool cancel;         /* what `cancelled` answers */
    struct silt_err err; /* of the last pass */
};

/* Starts the server and opens an archiver in stand->archive ("": in the scratch directory); the stand is {0} otherwise. streams: the YAML list under `streams:`, one item a line, such as "- { match: s, ids: wire, keep: { entries: 5 } }".
 * Each exact key becomes a work, in order. */
void stand_start(struct stand *stand, const char *streams);
void stand_release(struct stand *stand);
/* The archiver alone: as a process that ends, and one that starts. Other settings may come with it (NULL: as before). */
void stand_close(struct stand *stand);
void stand_open(struct stand *stand, const char *streams);
/* One pass over all works. */
enum silt_status stand_pass(struct stand *stand);
/* Passes until every work is settled or has failed, 200 at most. */
enum silt_status stand_run(struct stand *stand);

/* The archiver in a child process (the stand's own is closed): runs until all is settled, in small batches (16 entries a commit, 6 a trim), so that one run passes
 * each fault point several times. setting: one more variable of its environment, NULL: none. Ends with 0 when all went well, 3 otherwise. */
pid_t stand_child_start(struct stand *stand, const char *setting);
int stand_child_wait(pid_t pid);                           /* the wait status */
int stand_child(struct stand *stand, const char *setting); /* both */

/* XADD of ms-0 for each ms from..to with two fields; into the oracle too if there is one. */
void stand_add(struct stand *stand, const char *key, struct test_oracle *oracle, uint64_t from,
               uint64_t to);
/* Archive of the key, then the live entries above the last archived one, against the oracle: "" when it is exactly that. */
const char *stand_difference(struct stand *stand, const char *key,
                             const struct test_oracle *oracle);
/* The archive alone. */
const char *stand_archive_difference(struct stand *stand, const char *key,
                                     const struct test_oracle *oracle);
/* Entries in the archive of the key's newest life. */
size_t stand_archived(struct stand *stand, const char *key);
/* The n-th gap (from 0) of the key's life; false: fewer. */
bool stand_gap(struct stand *stand, const char *key, size_t n, struct silt_gap_row *ret);
/* Row as stored; borrowed until the next call. */
const struct silt_stream_row *stand_row(struct stand *stand, const char *key);
/* Name of our marker in the stream and where it stands ("" : none), borrowed until the next call. */
const char *stand_marker(struct stand *stand, const char *key, char ret_at[SILT_WIRE_ID_TEXT]);

#endif
