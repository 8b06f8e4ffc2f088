/* A host's addresses within the connection's time limit. getaddrinfo has none of its own and cannot be called off: with a dead name server it takes half a
 * minute and longer, in which nothing would be served and no signal heeded. So it runs in a thread of its own, which is left behind when time is up. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "alloc.h"
#include "conn_priv.h"

enum { LOOKING, FOUND, LEFT };

struct lookup {
    char host[sizeof((struct silt_address *)0)->host];
    char port[sizeof((struct silt_address *)0)->port];
    int done; /* an eventfd */
    int code, saved_errno;
    struct addrinfo *found;
    atomic_int state; /* whoever comes second to it frees the lookup */
};

static void lookup_free(struct lookup *lookup)
{
    if (lookup->found != NULL) freeaddrinfo(lookup->found);
    if (lookup->done >= 0) close(lookup->done);
    silt_free(lookup);
}

static int look_up(const char *host, const char *port, int flags, struct addrinfo **ret)
{
    struct addrinfo wanted = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    return getaddrinfo(host, port, &wanted, ret);
}

static void *run(void *context)
{
    struct lookup *lookup = context;
    lookup->code = look_up(lookup->host, lookup->port, 0, &lookup->found);
    /* The loopback by its name, also where no file and no resolver knows it, as in a bare container (RFC 6761 §6.3). */
    if (lookup->code == EAI_NONAME && strcmp(lookup->host, "localhost") == 0)
        lookup->code = look_up("127.0.0.1", lookup->port, AI_NUMERICHOST, &lookup->found);
    lookup->saved_errno = errno;
    if (atomic_exchange(&lookup->state, FOUND) == LEFT)
        lookup_free(lookup);
    else
        (void)eventfd_write(lookup->done, 1);
    return NULL;
}

/* Signals stay with the threads that wait for them. */
static int start_thread(struct lookup *lookup, pthread_t *ret)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int problem = pthread_create(ret, NULL, run, lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}

static enum silt_status begin(const struct silt_address *address, struct lookup **ret,
                              pthread_t *ret_thread, struct silt_err *err)
{
    struct lookup *lookup = silt_calloc(1, sizeof *lookup);
    if (lookup == NULL) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    memcpy(lookup->host, address->host, sizeof lookup->host);
    memcpy(lookup->port, address->port, sizeof lookup->port);
    lookup->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int problem = lookup->done < 0 ? errno : start_thread(lookup, ret_thread);
    if (problem == 0) {
        *ret = lookup;
        return SILT_OK;
    }
    lookup_free(lookup);
    if (problem == EMFILE || problem == ENFILE)
        return silt_fail_errno(err, problem, "a name lookup for %s", address->text);
    return silt_fail(err, SILT_ERR_SERVER_AWAY, "cannot look up the host of %s: %s", address->text,
                     strerror(problem));
}

static enum silt_status too_late(const struct silt_address *address, enum silt_status status,
                                 struct silt_err *err)
{
    if (status == SILT_ERR_CANCELLED)
        return silt_fail(err, status, "asked to stop while connecting to %s", address->text);
    silt_fail(err, SILT_ERR_SERVER_AWAY,
              "cannot connect to %s: no answer in time to what the host's address is",
              address->text);
    silt_hint(err, "the name server does not answer; an address in digits needs none");
    return SILT_ERR_SERVER_AWAY;
}

static enum silt_status answer(int code, int saved_errno, const struct silt_address *address,
                               struct silt_err *err)
{
    if (code == 0) return SILT_OK;
    return silt_fail(err, SILT_ERR_SERVER_AWAY, "cannot connect to %s: %s", address->text,
                     code == EAI_SYSTEM ? strerror(saved_errno) : gai_strerror(code));
}

enum silt_status silt_resolve(const struct silt_address *address, const struct silt_waiter *waiter,
                              struct addrinfo **ret, struct silt_err *err)
{
    struct lookup *lookup = NULL;
    pthread_t thread;
    if (look_up(address->host, address->port, AI_NUMERICHOST, ret) == 0)
        return SILT_OK; /* digits: nobody has to be asked */
    *ret = NULL;
    enum silt_status status = begin(address, &lookup, &thread, err);
    if (status != SILT_OK) return status;
    while (status == SILT_OK && atomic_load(&lookup->state) == LOOKING)
        status = silt_wait(waiter, lookup->done, POLLIN);
    if (status != SILT_OK && atomic_exchange(&lookup->state, LEFT) == LOOKING) {
        pthread_detach(thread); /* the lookup is the thread's now */
        return too_late(address, status, err);
    }
    pthread_join(thread, NULL);
    status = answer(lookup->code, lookup->saved_errno, address, err);
    *ret = lookup->found;
    lookup->found = NULL;
    lookup_free(lookup);
    return status;
}
