/* Stream keys: the grammar for keys silt itself writes, hash tag and slot as the server computes them, seam and claim keys. */
#ifndef SILT_STREAM_KEY_H
#define SILT_STREAM_KEY_H

#include "bytes.h"

/* emq:{<queue>}:stream:<name>, both 1 to 128 bytes of [A-Za-z0-9._-]. Needed only for branded streams that silt writes; reading
 * and archiving take any key. Fails with SILT_ERR_KEY, naming the part. */
struct silt_stream_key {
    struct silt_view queue;
    struct silt_view name;
};
SILT_MUST_USE enum silt_status silt_stream_key_parse(struct silt_view key,
                                                     struct silt_stream_key *ret,
                                                     struct silt_err *err);
SILT_MUST_USE enum silt_status silt_stream_key_build(struct silt_view queue, struct silt_view name,
                                                     struct silt_buf *ret, struct silt_err *err);

/* The part the server hashes: between the first { and the next } if that is not empty, else the whole key. */
struct silt_view silt_key_hash_part(struct silt_view key);
bool silt_key_has_tag(struct silt_view key);
uint16_t silt_key_slot(struct silt_view key); /* CRC16-XMODEM of the hash part, mod 16384 */

/* <key>:archived where the key has a hash tag, else {<key>}:archived; appended to *ret. Fails with SILT_ERR_KEY where no such name
 * shares the key's slot (a key without tag that contains '}'). */
SILT_MUST_USE enum silt_status silt_key_seam(struct silt_view key, struct silt_buf *ret,
                                             struct silt_err *err);
/* {<hash part>}:silt-claim; the same refusal. */
SILT_MUST_USE enum silt_status silt_key_claim(struct silt_view key, struct silt_buf *ret,
                                              struct silt_err *err);
/* Is this the name of a seam or claim key? Patterns never match these. */
bool silt_key_is_ours(struct silt_view key);

/* The server's glob (as SCAN MATCH): * ? [a-c] [^a] and backslash; braces are literal. */
bool silt_glob_match(struct silt_view pattern, struct silt_view key);

#endif
