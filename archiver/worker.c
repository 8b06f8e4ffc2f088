/* The encoding thread and its ring of pages. Must not know server, store or plan. */
#include "worker.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

#include "alloc.h"

enum { PAGES = 3 }; /* one being received, one waiting, one being encoded */

struct silt_worker {
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards all below but the fold, which changes hands with the queue */
    pthread_cond_t work;  /* something for the thread */
    pthread_cond_t room;  /* a page came back, or the thread is idle */
    struct silt_page pages[PAGES];
    bool taken[PAGES];
    struct {
        struct silt_page *page;
        size_t count;
    } queue[PAGES];
    size_t head, queued;
    bool busy; /* the thread works outside the lock */
    bool quit;
    enum silt_status status; /* of the pages since begin */
    struct silt_err err;
    struct silt_fold *fold;
};

static enum silt_status fold_page(struct silt_fold *fold, const struct silt_page *page,
                                  size_t count, struct silt_err *err)
{
    for (size_t i = 0; i < count; i++) {
        enum silt_status status = silt_fold_add(fold, &page->entries[i], err);
        if (status != SILT_OK) return status;
    }
    return SILT_OK;
}

static void free_page(struct silt_worker *worker, const struct silt_page *page)
{
    worker->taken[page - worker->pages] = false;
    pthread_cond_signal(&worker->room);
}

static void *run(void *context)
{
    struct silt_worker *worker = context;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (!worker->quit && worker->queued == 0)
            pthread_cond_wait(&worker->work, &worker->lock);
        if (worker->quit) break;
        struct silt_page *page = worker->queue[worker->head].page;
        size_t count = worker->queue[worker->head].count;
        worker->head = (worker->head + 1) % PAGES;
        worker->queued--;
        enum silt_status status = worker->status;
        struct silt_err err = {0};
        worker->busy = true;
        pthread_mutex_unlock(&worker->lock);
        if (status == SILT_OK) status = fold_page(worker->fold, page, count, &err);
        pthread_mutex_lock(&worker->lock);
        worker->busy = false;
        if (status != SILT_OK && worker->status == SILT_OK) {
            worker->status = status;
            worker->err = err;
        }
        free_page(worker, page);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

enum silt_status silt_worker_new(int level, struct silt_worker **ret, struct silt_err *err)
{
    struct silt_worker *worker = silt_calloc(1, sizeof *worker);
    if (!worker) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->work, NULL);
    pthread_cond_init(&worker->room, NULL);
    enum silt_status status = silt_fold_new(level, &worker->fold);
    if (status != SILT_OK) {
        silt_worker_free(worker);
        return silt_fail(err, status, NULL);
    }
    int failed = pthread_create(&worker->thread, NULL, run, worker);
    if (failed) {
        silt_worker_free(worker);
        /* EAGAIN here is a limit (threads, address space for its stack), not the archive's trouble. */
        if (failed == EAGAIN)
            return silt_fail(err, SILT_ERR_LIMIT, "no room for the encoding thread");
        return silt_fail_errno(err, failed, "cannot start the encoding thread");
    }
    worker->started = true;
    *ret = worker;
    return SILT_OK;
}

void silt_worker_free(struct silt_worker *worker)
{
    if (!worker) return;
    if (worker->started) {
        pthread_mutex_lock(&worker->lock);
        worker->quit = true;
        pthread_cond_signal(&worker->work);
        pthread_mutex_unlock(&worker->lock);
        pthread_join(worker->thread, NULL);
    }
    for (size_t i = 0; i < PAGES; i++)
        silt_page_release(&worker->pages[i]);
    silt_fold_free(worker->fold);
    pthread_cond_destroy(&worker->work);
    pthread_cond_destroy(&worker->room);
    pthread_mutex_destroy(&worker->lock);
    silt_free(worker);
}

/* With the lock held: until the thread has nothing left. */
static void wait_idle(struct silt_worker *worker)
{
    while (worker->queued > 0 || worker->busy)
        pthread_cond_wait(&worker->room, &worker->lock);
}

enum silt_status silt_worker_begin(struct silt_worker *worker, uint64_t life,
                                   struct silt_namespace ns, struct silt_view tail,
                                   struct silt_err *err)
{
    pthread_mutex_lock(&worker->lock);
    wait_idle(worker);
    worker->status = SILT_OK;
    enum silt_status status = silt_fold_begin(worker->fold, life, ns, tail, err);
    worker->status = status;
    pthread_mutex_unlock(&worker->lock);
    return status;
}

struct silt_page *silt_worker_page(struct silt_worker *worker)
{
    struct silt_page *page = NULL;
    pthread_mutex_lock(&worker->lock);
    while (!page) {
        for (size_t i = 0; i < PAGES && !page; i++)
            if (!worker->taken[i]) {
                worker->taken[i] = true;
                page = &worker->pages[i];
            }
        if (!page) pthread_cond_wait(&worker->room, &worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return page;
}

bool silt_worker_give(struct silt_worker *worker, struct silt_page *page, size_t count)
{
    pthread_mutex_lock(&worker->lock);
    bool fine = worker->status == SILT_OK;
    if (!fine || count == 0) {
        free_page(worker, page);
    } else {
        assert(worker->queued < PAGES);
        size_t at = (worker->head + worker->queued) % PAGES;
        worker->queue[at].page = page;
        worker->queue[at].count = count;
        worker->queued++;
        pthread_cond_signal(&worker->work);
    }
    pthread_mutex_unlock(&worker->lock);
    return fine;
}

enum silt_status silt_worker_finish(struct silt_worker *worker, struct silt_err *err)
{
    pthread_mutex_lock(&worker->lock);
    wait_idle(worker);
    enum silt_status status = worker->status;
    if (status == SILT_OK)
        status = silt_fold_finish(worker->fold, err);
    else if (err)
        *err = worker->err;
    worker->status = status;
    pthread_mutex_unlock(&worker->lock);
    return status;
}

const struct silt_fold *silt_worker_fold(const struct silt_worker *worker)
{
    return worker->fold;
}
