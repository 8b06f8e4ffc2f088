/* Whose stream it is (protocol.md §1): `silt adopt` takes a stream over from another archive, another copy of this one, or nobody; `silt release` lets it go.
 * Both in one go between two passes: look, row, then one script (adopt.lua). What the stream then is, an audit decides. */
#ifndef SILT_ADOPT_H
#define SILT_ADOPT_H

#include "cycle.h"
#include "look.h"

#define SILT_ADOPT_MARKERS_MAX 16u

struct silt_adopt_marker {
    char name[SILT_MARKER_TEXT]; /* as it stands there, shortened */
    bool parsed;                 /* uuid, epoch and number mean something */
    struct silt_marker marker;
    struct silt_wire_id at;
};
struct silt_adoption {
    bool already; /* nothing to do: it is this archive's, or was let go, as asked */
    bool
        audit; /* an audit decides next; false: nothing was ever folded, it begins at the first entry */
    char uuid[SILT_UUID_TEXT];
    uint64_t epoch; /* of this archive's marker: the new one's, or of the one that went */
    size_t marker_count;
    struct silt_adopt_marker markers[SILT_ADOPT_MARKERS_MAX]; /* that went, or would go */
};

/* Takes the stream over: row.epoch = 1 + the highest of the row's and of any marker of our uuid, committed with the verdict (audit pending, cause adopted) before the
 * script creates the new marker and destroys the others. dry: looks and says, changes nothing. A kill between row and script leaves the old marker: the
 * stream stays refused, and the same call goes on. Fails with SILT_ERR_UNKNOWN_STREAM (the key is not there), SILT_ERR_WRONG_TYPE, SILT_ERR_STALE (it does not stand
 * still), the server's and the store's codes. */
SILT_MUST_USE enum silt_status silt_archiver_adopt(struct silt_archiver *archiver,
                                                   struct silt_work *work, bool dry,
                                                   struct silt_adoption *ret, struct silt_err *err);
/* Lets it go: the row says released, durably, then the script destroys our marker. Left alone from then on until it is adopted. Fails with SILT_ERR_CLAIMED (another
 * archive's marker stands there), SILT_ERR_UNKNOWN_STREAM (this archive has never had it), and as above. */
SILT_MUST_USE enum silt_status silt_archiver_release(struct silt_archiver *archiver,
                                                     struct silt_work *work, bool dry,
                                                     struct silt_adoption *ret,
                                                     struct silt_err *err);

extern const char silt_adopt_script[]; /* the text of adopt.lua, put in when built */

#endif
