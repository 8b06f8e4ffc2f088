/* Every result once: code, name, class, exit code, sentence. Callers branch on a named code or on its class, never on
 * text. 0 is done, SILT_END comes only from a walk that reached its end, negatives are failures. */
#ifndef SILT_STATUS_H
#define SILT_STATUS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the caller should do. */
enum silt_class {
    SILT_CLASS_NONE = 0, /* done, end */
    SILT_CLASS_RETRY,    /* the same call may work later: back off, try again */
    SILT_CLASS_FULL, /* disk, map, memory, descriptors: nothing changed; works again when there is room */
    SILT_CLASS_CORRUPT, /* bytes at rest are not what was written */
    SILT_CLASS_CONFLICT, /* somebody else, or another state, stands in the way; a person or a fresh look decides */
    SILT_CLASS_MISUSE, /* the call or the input is wrong; the same input never works */
    SILT_CLASS_SYSTEM  /* the system or the operator must change something */
};

/* X(code, value, class, exit code of a program that ends with it, sentence) */
#define SILT_STATUS_TABLE(X)                                                                      \
    X(SILT_OK, 0, NONE, 0, "done")                                                                \
    X(SILT_END, 1, NONE, 0, "end reached")                                                        \
    /* misuse: ids, bounds, names */                                                              \
    X(SILT_ERR_USAGE, -1, MISUSE, 2, "wrong use of the command or call")                          \
    X(SILT_ERR_ID_LENGTH, -2, MISUSE, 2, "a branded id is exactly 14 bytes")                      \
    X(SILT_ERR_ID_NAMESPACE, -3, MISUSE, 2, "a branded id starts with three letters A-Z")         \
    X(SILT_ERR_ID_CHARSET, -4, MISUSE, 2, "a branded id's last 11 bytes are digits of 0-9A-Za-z") \
    X(SILT_ERR_ID_RANGE, -5, MISUSE, 2, "a branded id's number is at most AzL8n0Y58m7")           \
    X(SILT_ERR_ID_KIND, -6, MISUSE, 2, "the branded id belongs to another namespace")             \
    X(SILT_ERR_ID_UNNAMEABLE, -7, MISUSE, 2, "the wire id has no branded form")                   \
    X(SILT_ERR_WIRE_ID, -8, MISUSE, 2, "a wire id is <ms>-<seq>, two decimal numbers below 2^64") \
    X(SILT_ERR_BARE_SNOWFLAKE, -9, MISUSE, 2, "a bare snowflake number is not a bound")           \
    X(SILT_ERR_INSTANT, -10, MISUSE, 2,                                                           \
      "an instant is RFC 3339, such as 2026-03-01T12:00:00.000Z")                                 \
    X(SILT_ERR_DURATION, -11, MISUSE, 2, "a duration is a number with ms, s, m, h or d")          \
    X(SILT_ERR_WINDOW, -12, MISUSE, 2, "the window is inverted")                                  \
    X(SILT_ERR_POSITION, -13, MISUSE, 2, "not a cursor position of this stream")                  \
    X(SILT_ERR_KEY, -14, MISUSE, 2, "not a key that silt writes to")                              \
    X(SILT_ERR_UNKNOWN_STREAM, -15, MISUSE, 2, "no such stream")                                  \
    X(SILT_ERR_ENTRY_SHAPE, -16, MISUSE, 2, "the entry cannot be stored")                         \
    X(SILT_ERR_ORDER, -17, MISUSE, 2, "ids are not ascending")                                    \
    X(SILT_ERR_CONFIG, -18, MISUSE, 3, "the configuration is refused")                            \
    X(SILT_ERR_ADDRESS, -19, MISUSE, 3, "not a server address")                                   \
    X(SILT_ERR_NOT_BUILT_IN, -20, SYSTEM, 3, "this build does not have that feature")             \
    /* the server */                                                                              \
    X(SILT_ERR_SERVER_AWAY, -30, RETRY, 4, "the server cannot be reached")                        \
    X(SILT_ERR_SERVER_TIMEOUT, -31, RETRY, 4, "the server did not answer in time")                \
    X(SILT_ERR_SERVER_BUSY, -32, RETRY, 4, "the server asks to try again later")                  \
    X(SILT_ERR_SERVER_NONSENSE, -33, RETRY, 4, "the server's reply makes no sense")               \
    X(SILT_ERR_SERVER_REFUSED, -34, SYSTEM, 4, "the server refuses the command")                  \
    X(SILT_ERR_SERVER_DENIED, -35, SYSTEM, 4, "the server denies access")                         \
    X(SILT_ERR_SERVER_READONLY, -36, RETRY, 4, "the server is a read-only replica")               \
    X(SILT_ERR_SERVER_OOM, -37, RETRY, 4, "the server's memory is full")                          \
    X(SILT_ERR_SERVER_MOVED, -38, SYSTEM, 4, "the key's slot lives on another node")              \
    X(SILT_ERR_SERVER_OLD, -39, SYSTEM, 4,                                                        \
      "the server is too old: Valkey 7.2 or Redis 7.0 is the least")                              \
    X(SILT_ERR_WRONG_TYPE, -40, CONFLICT, 4, "the key holds another type")                        \
    X(SILT_ERR_NO_SCRIPT, -41, RETRY, 4, "the server does not know the script")                   \
    X(SILT_ERR_NONMONOTONIC, -42, CONFLICT, 4, "the id is not above the stream's top")            \
    X(SILT_ERR_STALE, -43, RETRY, 4, "the stream changed since the look")                         \
    X(SILT_ERR_CANCELLED, -44, RETRY, 4, "asked to stop")                                         \
    /* the archive */                                                                             \
    X(SILT_ERR_CORRUPT, -50, CORRUPT, 5, "the archive is damaged")                                \
    X(SILT_ERR_NOT_ARCHIVE, -51, CORRUPT, 5, "not a silt archive")                                \
    X(SILT_ERR_NEWER_FORMAT, -52, SYSTEM, 5, "the archive was written by a newer silt")           \
    X(SILT_ERR_NO_ARCHIVE, -53, MISUSE, 5, "there is no archive")                                 \
    X(SILT_ERR_HELD, -54, CONFLICT, 6, "held by another process")                                 \
    X(SILT_ERR_CLAIMED, -55, CONFLICT, 6, "the stream is claimed by another archive")             \
    X(SILT_ERR_DISK_FULL, -56, FULL, 7, "no space left on the disk")                              \
    X(SILT_ERR_MAP_FULL, -57, FULL, 7, "the archive reached its map-limit")                       \
    X(SILT_ERR_MEMORY, -58, FULL, 7, "out of memory")                                             \
    X(SILT_ERR_LIMIT, -59, FULL, 7, "a system limit is reached")                                  \
    X(SILT_ERR_IO, -60, SYSTEM, 5, "the file system answers with an error")                       \
    X(SILT_ERR_PERMISSION, -61, SYSTEM, 5, "no permission for the archive's files")               \
    X(SILT_ERR_STORE_LOST, -62, SYSTEM, 5, "a sync failed; the archive must be reopened")         \
    X(SILT_ERR_READER_SLOTS, -63, FULL, 7, "all reader slots of the archive are taken")           \
    /* protection */                                                                              \
    X(SILT_ERR_CONFLICT, -70, CONFLICT, 8, "the same id holds other bytes")                       \
    X(SILT_ERR_PROOF, -71, CORRUPT, 8, "what was encoded does not decode to what was read")       \
    X(SILT_ERR_DOUBT, -72, CONFLICT, 8, "the stream's continuity is in doubt")                    \
    X(SILT_ERR_OLDER_COPY, -73, CONFLICT, 8, "this is an older copy of the archive")              \
    X(SILT_ERR_LIFE_CHANGED, -74, CONFLICT, 8, "the stream's life changed")                       \
    X(SILT_ERR_PROTECTED, -75, CONFLICT, 8, "refused to protect data")

enum silt_status {
#define SILT_X(code, value, class, exit, sentence) code = value,
    SILT_STATUS_TABLE(SILT_X)
#undef SILT_X
};

#define SILT_MUST_USE __attribute__((warn_unused_result))
#define SILT_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Details of a failure: fixed size, no allocation, may be passed as NULL everywhere. Written only on failure. */
struct silt_err {
    enum silt_status code;
    char stream[128];   /* the key, shortened and escaped for display; empty: none */
    char sentence[320]; /* lower case, no final stop: names the thing and the value */
    char hint[240];     /* what to do; empty: none */
};

/* Name of a code, "SILT_ERR_ID_RANGE" (never NULL; "unknown" for a value outside the table), its class, the exit code
 * and the general sentence. */
const char *silt_status_name(enum silt_status code);
enum silt_class silt_status_class(enum silt_status code);
int silt_status_exit_code(enum silt_status code);
const char *silt_status_sentence(enum silt_status code);

/* Fills *err (if not NULL) and returns code, so that a failure is one statement:
 *     return silt_fail(err, SILT_ERR_WIRE_ID, "not a wire id: %s", text);
 * Clears stream and hint. A NULL format takes the general sentence. Keeps errno. */
enum silt_status silt_fail(struct silt_err *err, enum silt_status code, const char *format, ...)
    SILT_PRINTF(3, 4);

/* Adds the second line to *err (if not NULL). */
void silt_hint(struct silt_err *err, const char *format, ...) SILT_PRINTF(2, 3);

/* Sets err->stream (if err is not NULL) from a key of any bytes, shortened and escaped. */
void silt_err_set_stream(struct silt_err *err, const void *key, size_t len);

/* A failed system call: chooses the code from errno_value (ENOSPC, EDQUOT, EFBIG: DISK_FULL; ENOMEM: MEMORY; EMFILE, ENFILE: LIMIT;
 * EACCES, EPERM, EROFS: PERMISSION; else IO) and writes "<what>: <strerror>". */
enum silt_status silt_fail_errno(struct silt_err *err, int errno_value, const char *format, ...)
    SILT_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif

#endif
