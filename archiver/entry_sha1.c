/* SHA-1 of scripts and entries. Must not know what they are for. */
#include "entry_sha1.h"

#include <sha1.h>
#include <stdio.h>

static void finish(SHA1_CTX *ctx, char ret[SILT_SHA1_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t sum[SHA1_DIGEST_LENGTH];
    SHA1Final(sum, ctx);
    for (size_t i = 0; i < sizeof sum; i++) {
        ret[2 * i] = digits[sum[i] >> 4];
        ret[2 * i + 1] = digits[sum[i] & 15];
    }
    ret[SILT_SHA1_TEXT - 1] = 0;
}

void silt_sha1_hex(struct silt_view bytes, char ret[SILT_SHA1_TEXT])
{
    SHA1_CTX ctx;
    SHA1Init(&ctx);
    if (bytes.len > 0) SHA1Update(&ctx, bytes.at, bytes.len);
    finish(&ctx, ret);
}

static void add(SHA1_CTX *ctx, struct silt_view text)
{
    char prefix[24];
    int len = snprintf(prefix, sizeof prefix, ",%zu:", text.len);
    SHA1Update(ctx, (const uint8_t *)prefix, (size_t)len);
    if (text.len > 0) SHA1Update(ctx, text.at, text.len);
}

void silt_sha1_entry(const struct silt_entry *entry, char ret[SILT_SHA1_TEXT])
{
    SHA1_CTX ctx;
    char id[SILT_WIRE_ID_TEXT];
    size_t len = silt_wire_id_format(entry->id, id);
    SHA1Init(&ctx);
    SHA1Update(&ctx, (const uint8_t *)id, len);
    for (size_t i = 0; i < entry->field_count; i++) {
        add(&ctx, entry->fields[i].name);
        add(&ctx, entry->fields[i].value);
    }
    finish(&ctx, ret);
}
