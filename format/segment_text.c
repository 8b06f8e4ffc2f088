/* Texts that the segment codec makes from numbers, in bulk, and the memory they live in. */
#include "alloc.h"
#include "segment_priv.h"

void silt_branded_text(const char letters[4], uint64_t snowflake, uint8_t ret[SILT_BRANDED_STRIDE])
{
    memcpy(ret, letters, 3);
    silt_base62_encode(snowflake, ret + 3);
}

size_t silt_decimal_text(uint64_t value, uint8_t ret[20])
{
    uint8_t text[20];
    size_t at = sizeof text;
    do {
        text[--at] = (uint8_t)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    memcpy(ret, text + at, sizeof text - at);
    return sizeof text - at;
}

bool silt_decimal_value(struct silt_view text, uint64_t *ret)
{
    if (text.len > 1 && text.at[0] == '0') return false; /* a leading zero would be lost */
    return silt_parse_u64(text, ret);
}

struct silt_arena_block {
    struct silt_arena_block *next;
    size_t size;
    _Alignas(16) uint8_t bytes[];
};

static bool arena_add(struct silt_arena *arena, size_t size)
{
    struct silt_arena_block *block = silt_alloc(sizeof *block + size);
    if (!block) return false;
    block->next = arena->blocks;
    block->size = size;
    arena->blocks = block;
    arena->used = 0;
    arena->total += size;
    return true;
}

void *silt_arena_take(struct silt_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 4) return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    if (!arena->blocks || arena->blocks->size - arena->used < bytes) {
        size_t more = arena->total < 65536 ? 65536 : arena->total;
        if (!arena_add(arena, bytes > more ? bytes : more)) return NULL;
    }
    void *at = arena->blocks->bytes + arena->used;
    arena->used += bytes;
    return at;
}

void silt_arena_release(struct silt_arena *arena)
{
    while (arena->blocks) {
        struct silt_arena_block *next = arena->blocks->next;
        silt_free(arena->blocks);
        arena->blocks = next;
    }
    *arena = (struct silt_arena){0};
}

void silt_arena_reset(struct silt_arena *arena)
{
    size_t total = arena->total;
    if (arena->blocks && arena->blocks->next) {
        silt_arena_release(arena);
        (void)arena_add(arena, total); /* without it the next take asks again */
    }
    arena->used = 0;
}
