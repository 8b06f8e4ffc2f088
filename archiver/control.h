/* The control socket of siltd: a UNIX stream socket of mode 0600. One JSON object a line each way; a client may send any number of requests, one
 * after the other, and each gets one line. Fields are only ever added; unknown ones are ignored.
 *
 *     {"verb":"status"}  {"verb":"status","key":KEY}      answered at once, from what the last pass of each stream found
 *     {"verb":"sync"}    {"verb":"sync","key":KEY}        answered when the stream (each stream) is folded and durable up to what it held at the request
 *     {"verb":"adopt","key":KEY,"dry_run":bool}   {"verb":"release",...}   whose stream it is: answered when it is done, or when it is known that it is not
 *       -> {"ok":true,"already":bool,"audit":bool,"dry_run":bool,"uuid":"...","epoch":N,"from":[{"uuid":"..."|null,"epoch":N|null,"marker":"...","at":ID}, ...]}
 *     {"verb":"ping"}
 *     -> {"ok":true,...}
 *     -> {"ok":false,"error":{"code":"SILT_ERR_...","exit":N,"sentence":"...","hint":"..."|null,"stream":"..."|null}}
 *
 * KEY is a string, or {"b64":"..."} for a key that is not UTF-8. What status answers: report.h.
 * Threads: one; everything happens inside event_base_loop. */
#ifndef SILT_CONTROL_H
#define SILT_CONTROL_H

#include <event2/event.h>
#include <jansson.h>

#include "bytes.h"

#define SILT_CONTROL_REQUEST_MAX \
    65536u /* bytes of one request line; a longer one is refused and the client closed */
#define SILT_CONTROL_CLIENTS_MAX 64u /* more wait in the kernel's queue */

struct silt_control;

enum silt_control_verb { SILT_CONTROL_SYNC, SILT_CONTROL_ADOPT, SILT_CONTROL_RELEASE };
struct silt_control_request {
    enum silt_control_verb verb;
    const struct silt_view *key; /* NULL: all streams (sync alone) */
    bool dry_run;
};

/* What is asked. `key` is NULL for all streams. Neither may wait. */
struct silt_control_handler {
    void *ctx;
    /* Gives the answer's fields (a new reference; "ok" is added), or NULL with *err. */
    json_t *(*status)(void *ctx, const struct silt_view *key, struct silt_err *err);
    /* Notes the ticket and gives SILT_OK, to be answered later with silt_control_answer; anything else is answered at once. */
    enum silt_status (*later)(void *ctx, const struct silt_control_request *request,
                              uint64_t ticket, struct silt_err *err);
};

/* Makes the socket. A socket file that nobody listens on is replaced; SILT_ERR_HELD if somebody does. Fails with SILT_ERR_CONFIG (the path cannot
 * be used), SILT_ERR_MEMORY. Owns: *ret, silt_control_close, which removes the file if it is still ours. */
SILT_MUST_USE enum silt_status silt_control_open(struct event_base *base, const char *path,
                                                 const struct silt_control_handler *handler,
                                                 struct silt_control **ret, struct silt_err *err);
void silt_control_close(struct silt_control *control);

/* The late answer: `fields` (taken) when status is SILT_OK, else *err. A client that has gone is no mistake. */
void silt_control_answer(struct silt_control *control, uint64_t ticket, enum silt_status status,
                         json_t *fields, const struct silt_err *err);

/* Bytes as they stand in JSON: a string where they are UTF-8, else {"b64":"..."}. NULL: out of memory. */
json_t *silt_json_bytes(struct silt_view bytes);

#endif
