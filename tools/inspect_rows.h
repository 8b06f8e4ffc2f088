/* What `silt inspect` tells of a stream's lives, forks, gaps and late entries: all lives, not only those that the newest is made of. */
#ifndef SILT_INSPECT_ROWS_H
#define SILT_INSPECT_ROWS_H

#include "session.h"

struct silt_rows_wanted {
    bool lives, forks, gaps, late;
};
/* Tables, each behind an empty line. Fails with the store's codes. */
SILT_MUST_USE enum silt_status silt_rows_show(struct silt_out *out, struct silt_store *store,
                                              const struct silt_stream_row *row,
                                              const struct silt_rows_wanted *wanted,
                                              struct silt_err *err);
/* Fields life_list, fork_list, gap_list and late_list of an open object. */
SILT_MUST_USE enum silt_status silt_rows_json(struct silt_out *out, struct silt_store *store,
                                              const struct silt_stream_row *row,
                                              const struct silt_rows_wanted *wanted,
                                              struct silt_err *err);

#endif
