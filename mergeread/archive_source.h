/* Entries out of the store, one at a time, in either direction, across the lives of a key: below a fork the parent's entries are read. Holds no
 * transaction between calls; seeks its position afresh whenever a new segment is needed, never remembers a segment's key. */
#ifndef SILT_ARCHIVE_SOURCE_H
#define SILT_ARCHIVE_SOURCE_H

#include "store.h"

struct silt_archive_source;
/* The store is borrowed and must outlive the source. */
SILT_MUST_USE enum silt_status silt_archive_source_new(struct silt_store *store,
                                                       struct silt_archive_source **ret);
void silt_archive_source_free(struct silt_archive_source *source);

/* Reads one life (and its parents below the forks) of a namespace within an inclusive range. Forgets everything read ahead. */
SILT_MUST_USE enum silt_status silt_archive_source_seek(struct silt_archive_source *source,
                                                        uint64_t life, struct silt_namespace ns,
                                                        struct silt_range range, bool reverse,
                                                        struct silt_err *err);
/* The next entry; SILT_END: nothing more in the range. SILT_ERR_CORRUPT: a segment is damaged; *ret_damaged says its id range (clipped to what this walk
 * would have read), and the next call goes on behind it. Valid until the next call. foreign and segment_first are provenance. */
struct silt_archive_entry {
    struct silt_entry entry;
    bool foreign;
    uint64_t life;
    struct silt_wire_id segment_first;
};
SILT_MUST_USE enum silt_status silt_archive_source_next(struct silt_archive_source *source,
                                                        struct silt_archive_entry *ret,
                                                        struct silt_range *ret_damaged,
                                                        struct silt_err *err);

/* Entries of a life's range without giving them: whole segments by their headers, the edges decoded. Damaged segments as above. */
SILT_MUST_USE enum silt_status silt_archive_count(struct silt_archive_source *source, uint64_t life,
                                                  struct silt_namespace ns, struct silt_range range,
                                                  uint64_t *ret_count,
                                                  struct silt_range *ret_damaged,
                                                  struct silt_err *err);
/* The id of the n-th newest entry (n >= 1) of a life at or below `top`; SILT_END: fewer. By headers, one segment decoded. */
SILT_MUST_USE enum silt_status silt_archive_nth_newest(struct silt_archive_source *source,
                                                       uint64_t life, struct silt_namespace ns,
                                                       struct silt_wire_id top, uint64_t n,
                                                       struct silt_wire_id *ret,
                                                       struct silt_err *err);
/* The lowest id such that the entries from it to top hold at most `bytes` of names and values; the newest entry's id at the most. */
SILT_MUST_USE enum silt_status silt_archive_newest_bytes(struct silt_archive_source *source,
                                                         uint64_t life, struct silt_namespace ns,
                                                         struct silt_wire_id top, uint64_t bytes,
                                                         struct silt_wire_id *ret,
                                                         struct silt_err *err);

#endif
