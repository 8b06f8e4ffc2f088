/* The branded id: three letters A-Z and 11 base-62 digits of a 63-bit snowflake (contract.md §1.1 to §1.3).
 * Within one namespace byte order is mint order is wire-id order. */
#ifndef SILT_BRANDED_ID_H
#define SILT_BRANDED_ID_H

#include "wire_id.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SILT_BRANDED_ID_LEN 14
#define SILT_EPOCH_MS 1704067200000ULL /* 2024-01-01T00:00:00Z */
#define SILT_LAST_MS 3903090455551ULL  /* the last millisecond a snowflake can name */
#define SILT_TAIL_MAX 4194303ULL       /* node (10 bits) and sequence (12 bits) */
#define SILT_SNOWFLAKE_MAX 9223372036854775807ULL

struct silt_namespace {
    char letters[4]; /* three letters and a terminator; all zero: none (a plain stream) */
};

struct silt_branded_id {
    struct silt_namespace ns;
    uint64_t snowflake;
};

/* The four gates in their order: ID_LENGTH, ID_NAMESPACE, ID_CHARSET, ID_RANGE; each refusal its own code. */
SILT_MUST_USE enum silt_status silt_branded_id_parse(struct silt_view text,
                                                     struct silt_branded_id *ret,
                                                     struct silt_err *err);
/* The same and then ID_KIND when the namespace is another one. */
SILT_MUST_USE enum silt_status silt_branded_id_parse_kind(struct silt_view text,
                                                          struct silt_namespace ns,
                                                          struct silt_branded_id *ret,
                                                          struct silt_err *err);
/* Hot form of the gates without text: true and the number when the 11 digits are valid and in range. */
bool silt_base62_decode(const uint8_t digits[11], uint64_t *ret);
/* Two digits for each number below 62 * 62: for whoever writes many at once. */
extern const uint8_t silt_base62_pairs[62 * 62][2];
void silt_base62_encode(uint64_t snowflake, uint8_t ret[11]); /* snowflake <= SILT_SNOWFLAKE_MAX */
/* Writes 14 bytes, no terminator. Fails with ID_RANGE (tested first) or ID_NAMESPACE as encoding does upstream in C: namespace. */
SILT_MUST_USE enum silt_status silt_branded_id_format(struct silt_branded_id id,
                                                      char ret[SILT_BRANDED_ID_LEN]);

SILT_MUST_USE enum silt_status silt_namespace_parse(struct silt_view text,
                                                    struct silt_namespace *ret,
                                                    struct silt_err *err);
bool silt_namespace_equal(struct silt_namespace a, struct silt_namespace b);
bool silt_namespace_is_none(struct silt_namespace ns);

/* One number written two ways. From a wire id: false when it lies outside (ms before the epoch or after the last, seq above the tail). */
static inline struct silt_wire_id silt_snowflake_to_wire(uint64_t snowflake)
{
    return (struct silt_wire_id){(snowflake >> 22) + SILT_EPOCH_MS, snowflake & SILT_TAIL_MAX};
}
bool silt_snowflake_from_wire(struct silt_wire_id id, uint64_t *ret);
/* The nearest snowflake at or below the wire id; 0 where there is none below. */
uint64_t silt_snowflake_floor(struct silt_wire_id id);

static inline uint64_t silt_snowflake_ms(uint64_t snowflake)
{
    return (snowflake >> 22) + SILT_EPOCH_MS;
}
static inline uint32_t silt_snowflake_node(uint64_t snowflake)
{
    return (uint32_t)(snowflake >> 12) & 0x3FF;
}
static inline uint32_t silt_snowflake_seq(uint64_t snowflake)
{
    return (uint32_t)snowflake & 0xFFF;
}
uint32_t silt_snowflake_hash32(
    uint64_t snowflake); /* placement hash of the contract; explained by `silt id` */

#ifdef __cplusplus
}
#endif

#endif
