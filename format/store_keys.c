/* Keys of the store's rows and the small row that leads from a name to a stream's number. Big-endian numbers, so that LMDB's
 * byte order is the order of numbers and ids. */
#include "store_priv.h"

#define NAME_SEED 0x73696c74206e616dULL /* "silt nam" */
#define NAME_ROW_VERSION 1u
#define NAME_ROW_BYTES 17u
#define SEGMENT_KEY_PLAIN (8 + SILT_WIRE_ID_KEY)
#define SEGMENT_KEY_BRANDED (8 + SILT_BRANDED_ID_LEN + SILT_WIRE_ID_KEY)

static void add(struct silt_key *key, const void *at, size_t len)
{
    memcpy(key->at + key->len, at, len);
    key->len += len;
}

static void add_number(struct silt_key *key, uint64_t number)
{
    silt_put_be64(key->at + key->len, number);
    key->len += 8;
}

static void add_id(struct silt_key *key, struct silt_wire_id id)
{
    silt_wire_id_put_key(id, key->at + key->len);
    key->len += SILT_WIRE_ID_KEY;
}

struct silt_key silt_key_meta(void)
{
    struct silt_key key = {.len = 0};
    add(&key, "meta", 4);
    return key;
}

struct silt_key silt_key_successor(void)
{
    struct silt_key key = {.len = 0};
    add(&key, "successor", 9);
    return key;
}

struct silt_key silt_key_number(uint64_t number)
{
    struct silt_key key = {.len = 0};
    add_number(&key, number);
    return key;
}

struct silt_key silt_key_pair(uint64_t high, uint64_t low)
{
    struct silt_key key = {.len = 0};
    add_number(&key, high);
    add_number(&key, low);
    return key;
}

struct silt_key silt_key_fork_life(uint64_t life)
{
    struct silt_key key = {.len = 0};
    add(&key, "L", 1);
    add_number(&key, life);
    return key;
}

struct silt_key silt_key_fork_stream(uint64_t stream, uint64_t life)
{
    struct silt_key key = {.len = 0};
    add(&key, "S", 1);
    add_number(&key, stream);
    add_number(&key, life);
    return key;
}

struct silt_key silt_key_gap(uint64_t life, struct silt_wire_id after, uint64_t n)
{
    struct silt_key key = {.len = 0};
    add_number(&key, life);
    add_id(&key, after);
    add_number(&key, n);
    return key;
}

/* Branded: the nearest branded id at or below the wire id (eleven zeros where there is none), then the wire id, so that the
 * order is wire-id order also for ids that have no branded form. */
struct silt_key silt_key_segment(uint64_t life, struct silt_namespace ns, struct silt_wire_id id)
{
    struct silt_key key = {.len = 0};
    add_number(&key, life);
    if (!silt_namespace_is_none(ns)) {
        add(&key, ns.letters, 3);
        silt_base62_encode(silt_snowflake_floor(id), key.at + key.len);
        key.len += 11;
    }
    add_id(&key, id);
    return key;
}

bool silt_key_segment_parse(struct silt_view key, uint64_t *ret_life, struct silt_namespace *ret_ns,
                            struct silt_wire_id *ret_id)
{
    if (key.len != SEGMENT_KEY_PLAIN && key.len != SEGMENT_KEY_BRANDED) return false;
    struct silt_namespace ns = {{0}};
    if (key.len == SEGMENT_KEY_BRANDED) memcpy(ns.letters, key.at + 8, 3);
    uint64_t life = silt_get_be64(key.at);
    struct silt_wire_id id = silt_wire_id_get_key(key.at + key.len - SILT_WIRE_ID_KEY);
    struct silt_key again = silt_key_segment(life, ns, id);
    if (!silt_view_equal(silt_key_view(&again), key)) return false;
    *ret_life = life;
    *ret_ns = ns;
    *ret_id = id;
    return true;
}

/* Four XXH64 of different seeds. Nobody's protection against a made collision: the name is compared in full, and who meets
 * another's name goes on to the next round. */
struct silt_key silt_key_name(struct silt_view name, uint64_t round)
{
    struct silt_key key = {.len = 0};
    for (uint64_t i = 0; i < 4; i++)
        add_number(&key, silt_checksum(name, NAME_SEED + 4 * round + i));
    return key;
}

static uint64_t name_row_checksum(const uint8_t *row, struct silt_view key)
{
    return silt_checksum(silt_view(row, NAME_ROW_BYTES - 8), silt_checksum(key, NAME_SEED));
}

enum silt_status silt_name_row_encode(uint64_t number, struct silt_view key, struct silt_buf *out)
{
    uint8_t row[NAME_ROW_BYTES];
    row[0] = NAME_ROW_VERSION;
    silt_put_le64(row + 1, number);
    silt_put_le64(row + 9, name_row_checksum(row, key));
    return silt_buf_put(out, row, sizeof row);
}

enum silt_status silt_name_row_decode(struct silt_view bytes, struct silt_view key, uint64_t *ret,
                                      struct silt_err *err)
{
    if (bytes.len != NAME_ROW_BYTES ||
        silt_get_le64(bytes.at + 9) != name_row_checksum(bytes.at, key))
        return silt_fail(err, SILT_ERR_CORRUPT, "a name row is damaged");
    if (bytes.at[0] != NAME_ROW_VERSION)
        return silt_fail(err, SILT_ERR_NEWER_FORMAT, "a name row has version %u", bytes.at[0]);
    *ret = silt_get_le64(bytes.at + 1);
    return SILT_OK;
}
