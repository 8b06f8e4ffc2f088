/* Pages of one stream into the worker: each page one MULTI with a look, the next requested before the present one is encoded. */
#ifndef SILT_FETCH_H
#define SILT_FETCH_H

#include "custody.h"
#include "worker.h"

/* What a page may weigh: learned from what came, halved when the connection broke under it (field report A10). */
struct silt_page_size {
    uint64_t entry_bytes; /* average of the last page; 0: not known */
    uint32_t count_cap;   /* 0: none */
    uint32_t sparse_cap;  /* by the last look (silt_look_page_cap); 0: none made yet */
};

struct silt_fetch_request {
    struct silt_view key;
    struct silt_view marker; /* its name, and where it stood in the opening look */
    struct silt_wire_id marker_at;
    const struct silt_facts *opening; /* of the look that set the target */
    struct silt_wire_id after;        /* C */
    struct silt_wire_id target;       /* inclusive */
    uint64_t max_entries;
    uint64_t max_bytes;
    uint32_t page_entries;
    uint64_t page_bytes;
    bool stop_at_foreign; /* on-foreign: hold */
    struct silt_namespace ns;
};
/* A look of the fetch that showed every live entry above all that was fetched before it: from there the missing ones can be counted without reaching LAST. */
struct silt_fetch_count {
    bool is_set;
    uint64_t added, length; /* EA and LEN of that look */
    uint64_t fetched;       /* entries before it */
    struct silt_gap_evidence evidence;
};
struct silt_fetch {
    uint64_t count; /* entries given to the worker: all of (after, through] that were live */
    uint64_t bytes;
    struct silt_wire_id through; /* the last one's id; after: none */
    bool reached;                /* nothing more up to the target */
    bool met_foreign;            /* stopped before one, at: */
    struct silt_wire_id foreign_at;
    const char *broken; /* a page's look did not continue: this fact; the page was not folded */
    struct silt_gap_evidence evidence;   /* of the looks that continued, the opening one included */
    struct silt_fetch_count count_known; /* the last such look */
};

/* The worker has begun and is not finished here. On failure *ret says what was given before it: that much is whole and may be finished and committed
 * (protocol §2 step 3: the pages up to the last whose look still continues). Fails with the server's codes, SILT_ERR_CANCELLED. */
SILT_MUST_USE enum silt_status silt_fetch_run(struct silt_conn *conn, struct silt_worker *worker,
                                              const struct silt_fetch_request *request,
                                              struct silt_page_size *size, struct silt_fetch *ret,
                                              struct silt_err *err);
/* The same bookkeeping for whoever reads pages by itself: what the opening look says, and then each page of which `count` entries are taken (*fetch as for
 * silt_fetch_run). True: another page is to be read. */
void silt_fetch_begin(const struct silt_fetch_request *request, struct silt_fetch *ret);
bool silt_fetch_take(const struct silt_fetch_request *request, const struct silt_page *page,
                     size_t count, struct silt_fetch *fetch);
/* After a page that came whole: what the next one may ask for. */
void silt_page_learn(struct silt_page_size *size, const struct silt_page *page, uint32_t asked);
uint32_t silt_page_count(const struct silt_page_size *size, uint32_t page_entries,
                         uint64_t page_bytes);
/* Why a page's look does not go on from the opening one; NULL: it does. */
const char *silt_fetch_break(const struct silt_facts *opening, const struct silt_look *look,
                             struct silt_view marker, struct silt_wire_id marker_at);

#endif
