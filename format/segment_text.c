/* Texts that the segment codec makes from numbers, in bulk, and the memory they live in. */
#include "alloc.h"
#include "segment_priv.h"

/* The letters and the five digits of the highest weight: 62^6 is some 13 seconds, so they are mostly those of the id before. */
static uint64_t branded_front(const char letters[4], uint32_t high)
{
    uint8_t front[8];
    uint64_t ret;
    uint32_t top = high / 3844;
    memcpy(front, letters, 3);
    front[3] = silt_base62_pairs[top / 3844][1];
    memcpy(front + 4, silt_base62_pairs[top % 3844], 2);
    memcpy(front + 6, silt_base62_pairs[high % 3844], 2);
    memcpy(&ret, front, 8);
    return ret;
}

void silt_branded_texts(const char letters[4], const uint64_t *snowflakes, size_t count,
                        uint8_t *ret)
{
    const uint64_t pow6 = 56800235584ULL; /* 62^6 */
    uint32_t before = 0;
    uint64_t front = branded_front(letters, 0);
    for (size_t i = 0; i < count; i++, ret += SILT_BRANDED_STRIDE) {
        uint32_t high = (uint32_t)(snowflakes[i] / pow6);
        uint64_t rest = snowflakes[i] - high * pow6;
        uint32_t middle = (uint32_t)(rest / 14776336u); /* 62^4 */
        uint32_t low = (uint32_t)(rest - (uint64_t)middle * 14776336u);
        if (high != before) {
            front = branded_front(letters, high);
            before = high;
        }
        memcpy(ret, &front, 8);
        memcpy(ret + 8, silt_base62_pairs[middle], 2);
        memcpy(ret + 10, silt_base62_pairs[low / 3844], 2);
        memcpy(ret + 12, silt_base62_pairs[low % 3844], 2);
    }
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
