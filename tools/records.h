/* One line of `silt load` into an entry: {"t": ms or instant, "fields": ...} or {"id": wire or branded id, "fields": ...}; fields is a list of
 * [name, value] pairs, or an object where names do not repeat. Gives each record its id. */
#ifndef SILT_RECORDS_H
#define SILT_RECORDS_H

#include "entry.h"
#include "json_read.h"
#include "mint.h"

/* How ids are made; copied to try a file out before it is sent. */
struct silt_record_ids {
    struct silt_namespace ns; /* none: wire ids */
    struct silt_mint mint;
    bool begun;
    struct silt_wire_id last; /* plain: the last one made from {t} */
    int64_t shift_ms;
};

/* Views point into the document and the two buffers. Reused; {0} is empty. */
struct silt_record {
    uint64_t line;
    struct silt_entry entry;
    struct silt_json *document;
    struct silt_buf fields; /* silt_field structs */
    struct silt_buf bytes;  /* what was base64, and the branded id */
};
void silt_record_release(struct silt_record *record);
/* Fails with SILT_ERR_USAGE, the id codes, SILT_ERR_INSTANT, SILT_ERR_ENTRY_SHAPE, SILT_ERR_MEMORY; the sentence names the line. */
SILT_MUST_USE enum silt_status silt_record_parse(struct silt_record *record,
                                                 struct silt_record_ids *ids, struct silt_view line,
                                                 uint64_t number, struct silt_err *err);

#endif
