/* Encoding beside fetching: one thread that takes pages in order and folds their entries, while the caller receives the next page. A small ring of page objects
 * goes round between the two, so a fold of any length holds three pages.
 * Threads: one caller; the fold belongs to the worker from begin to finish. */
#ifndef SILT_WORKER_H
#define SILT_WORKER_H

#include "fold.h"
#include "look.h"

struct silt_worker;
SILT_MUST_USE enum silt_status silt_worker_new(int level, struct silt_worker **ret,
                                               struct silt_err *err);
void silt_worker_free(struct silt_worker *worker); /* ends the thread; what was given is dropped */

/* As silt_fold_begin; the worker is idle (begin, or finish and then begin). */
SILT_MUST_USE enum silt_status silt_worker_begin(struct silt_worker *worker, uint64_t life,
                                                 struct silt_namespace ns, struct silt_view tail,
                                                 struct silt_err *err);
/* A page object to receive into; waits until one is free. Borrowed: hand it back with give (or give with count 0). */
struct silt_page *silt_worker_page(struct silt_worker *worker);
/* Folds the page's first `count` entries, later, in the order of the calls. False: an earlier page failed, finish will say how; the page is free again. */
bool silt_worker_give(struct silt_worker *worker, struct silt_page *page, size_t count);
/* Waits for all pages, then finishes the fold. Fails as silt_fold_begin, _add and _finish do. After success silt_worker_fold holds until the next begin. */
SILT_MUST_USE enum silt_status silt_worker_finish(struct silt_worker *worker, struct silt_err *err);
const struct silt_fold *silt_worker_fold(const struct silt_worker *worker);

#endif
