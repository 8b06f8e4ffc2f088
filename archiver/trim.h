/* Compare, tell, trim, in one script on the server (protocol.md §1, §4; trim.lua is its source). Entries are removed here and in trim_exact.c, nowhere else, and
 * each removal takes a receipt, which only silt_store_read_back makes (promise 1). Markers are made and moved here; adopt.c exchanges and destroys them. */
#ifndef SILT_TRIM_H
#define SILT_TRIM_H

#include "config.h"
#include "entry_sha1.h"
#include "look.h"
#include "store.h"

/* A stream as its last look, or the last answer of the script, said: what the script compares before it changes anything. */
struct silt_trim_target {
    struct silt_view key;
    uint64_t stream; /* row number and life: a receipt of another one is refused */
    uint64_t life;
    uint64_t generation; /* silt_conn_generation when the look was made */
    struct silt_facts facts;
    struct silt_wire_id newest;      /* the newest live entry */
    char first_sha1[SILT_SHA1_TEXT]; /* of the first live entry; "": none */
    char marker[SILT_MARKER_TEXT];
    bool marker_present; /* false: the script creates it at 0-0 */
    struct silt_wire_id marker_at;
    struct silt_wire_id marker_to; /* C; when creating: 0-0 */
    bool hold_groups;
    const struct silt_view *released; /* groups that group-limit lets go */
    size_t released_count;
    enum silt_seam_mode seam;
    struct silt_view seam_key; /* with its value: W as branded or wire id */
    struct silt_view seam_value;
    bool seam_branded;
};
struct silt_trim_answer {
    uint64_t removed;
    char alarm
        [160]; /* silt_trim: the answer shows that more was removed than the receipt covers, or that entries below the threshold remain; "": all well */
    char seam_trouble[120]; /* why the seam could not be written; "": it was, or there is none */
};

/* Sent once per connection by its text, then by its SHA-1. */
struct silt_trimmer {
    char script_sha1[SILT_SHA1_TEXT], exact_sha1[SILT_SHA1_TEXT];
    uint64_t
        scriptless; /* the connection on which scripts were refused to the exact-id way; 0: none */
    struct silt_reply reply;
    struct silt_buf words;
};
void silt_trimmer_init(struct silt_trimmer *trimmer);
void silt_trimmer_release(struct silt_trimmer *trimmer);

/* What trim.c and its siblings share. A script by its SHA-1, by its text where the server does not know it; argv[0] and argv[1] are filled in. The answer is in
 * trimmer->reply. On the connection of that generation alone. */
struct silt_script {
    const char *text, *sha1;
};
SILT_MUST_USE enum silt_status silt_trimmer_script(struct silt_trimmer *trimmer,
                                                   struct silt_conn *conn, uint64_t generation,
                                                   struct silt_script script,
                                                   struct silt_view *argv, size_t argc,
                                                   struct silt_err *err);
/* {'STALE', fact, value}: fails with SILT_ERR_STALE and both in the sentence. SILT_OK: the answer says something else. */
SILT_MUST_USE enum silt_status silt_script_stale(const struct silt_reply *reply,
                                                 struct silt_err *err);

/* Compares, creates or moves the marker to target->marker_to, moves the seam; removes nothing. On success *target says what the server said after it.
 * Fails with SILT_ERR_STALE (a fact differs, named in err; nothing was changed: look again), the server's codes (READONLY, OOM, MISCONF ...: nothing trimmed). */
SILT_MUST_USE enum silt_status silt_trim_mark(struct silt_trimmer *trimmer, struct silt_conn *conn,
                                              struct silt_trim_target *target,
                                              struct silt_trim_answer *ret, struct silt_err *err);

/* The removal: the same, then everything below the threshold goes. Refuses with SILT_ERR_PROTECTED, before anything is sent: a threshold above the successor of
 * the receipt's last id, a first live entry at or below the receipt's start, a receipt of another stream or of nothing, a threshold above the newest live entry
 * or at or below the first. SILT_ERR_STALE for a look made on an earlier connection. */
SILT_MUST_USE enum silt_status silt_trim(struct silt_trimmer *trimmer, struct silt_conn *conn,
                                         struct silt_trim_target *target,
                                         const struct silt_receipt *receipt,
                                         struct silt_wire_id threshold,
                                         struct silt_trim_answer *ret, struct silt_err *err);

extern const char silt_trim_script[]; /* the text of trim.lua, put in when built */

#endif
