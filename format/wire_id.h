/* The server's entry id <ms>-<seq> as a type of its own: compared as a pair of numbers, never as text. */
#ifndef SILT_WIRE_ID_H
#define SILT_WIRE_ID_H

#include "bytes.h"

#ifdef __cplusplus
extern "C" {
#endif

struct silt_wire_id {
    uint64_t ms;
    uint64_t seq;
};

#define SILT_WIRE_ID_MIN ((struct silt_wire_id){0, 0})
#define SILT_WIRE_ID_MAX ((struct silt_wire_id){UINT64_MAX, UINT64_MAX})
#define SILT_WIRE_ID_TEXT 42 /* two numbers of 20 digits, dash, terminator */
#define SILT_WIRE_ID_KEY 16  /* big-endian pair: bytes sort as ids */

static inline int silt_wire_id_compare(struct silt_wire_id a, struct silt_wire_id b)
{
    if (a.ms != b.ms) return a.ms < b.ms ? -1 : 1;
    if (a.seq != b.seq) return a.seq < b.seq ? -1 : 1;
    return 0;
}
static inline bool silt_wire_id_equal(struct silt_wire_id a, struct silt_wire_id b)
{
    return a.ms == b.ms && a.seq == b.seq;
}
static inline bool silt_wire_id_less(struct silt_wire_id a, struct silt_wire_id b)
{
    return silt_wire_id_compare(a, b) < 0;
}
static inline bool silt_wire_id_is_zero(struct silt_wire_id id)
{
    return id.ms == 0 && id.seq == 0;
}
static inline struct silt_wire_id silt_wire_id_lower(struct silt_wire_id a, struct silt_wire_id b)
{
    return silt_wire_id_less(a, b) ? a : b;
}
static inline struct silt_wire_id silt_wire_id_higher(struct silt_wire_id a, struct silt_wire_id b)
{
    return silt_wire_id_less(a, b) ? b : a;
}
/* The next / previous id; false at the end of the range (*ret untouched). */
bool silt_wire_id_next(struct silt_wire_id id, struct silt_wire_id *ret);
bool silt_wire_id_prev(struct silt_wire_id id, struct silt_wire_id *ret);

/* Full form only, "1767225600002-28672": decimal, no sign, no spaces; leading zeros are accepted as the server accepts them.
 * Fails with SILT_ERR_WIRE_ID. */
SILT_MUST_USE enum silt_status silt_wire_id_parse(struct silt_view text, struct silt_wire_id *ret,
                                                  struct silt_err *err);
/* Writes the text and its terminator; gives its length without it. */
size_t silt_wire_id_format(struct silt_wire_id id, char ret[SILT_WIRE_ID_TEXT]);

void silt_wire_id_put_key(struct silt_wire_id id, uint8_t ret[SILT_WIRE_ID_KEY]);
struct silt_wire_id silt_wire_id_get_key(const uint8_t key[SILT_WIRE_ID_KEY]);

#ifdef __cplusplus
}
#endif

#endif
