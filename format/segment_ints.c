/* Integer arrays of the segment codec: bytes of one weight lie together (planes), so that the compressor sees columns of like bytes
 * and decoding is a few plain loops. Knows nothing of entries. */
#include "segment_priv.h"

static uint64_t zigzag(uint64_t value)
{
    return (value << 1) ^ (uint64_t)((int64_t)value >> 63);
}

static uint64_t unzigzag(uint64_t value)
{
    return (value >> 1) ^ (0 - (value & 1));
}

bool silt_ints_read(struct silt_reader *reader, size_t count, struct silt_ints *ret)
{
    uint8_t form;
    uint64_t base, first = 0;
    struct silt_view planes;
    if (!silt_read_u8(reader, &form) || !silt_read_varint(reader, &base)) return false;
    uint8_t width = form & SILT_INTS_WIDTH_MASK;
    bool delta = (form & SILT_INTS_DELTA) != 0;
    if (width > 8 || (form & ~(SILT_INTS_WIDTH_MASK | SILT_INTS_DELTA)) != 0) return false;
    if (delta && !silt_read_varint(reader, &first)) return false;
    size_t stride = delta ? count - 1 : count;
    if (width != 0 && stride > silt_reader_left(reader) / width) return false;
    if (!silt_read_view(reader, stride * width, &planes)) return false;
    *ret = (struct silt_ints){width, delta, unzigzag(base), first, planes.at, stride};
    return true;
}

/* Offsets + base, without the running sum. Each width has its own loop so that the compiler can vectorise it. */
static void read_planes(const struct silt_ints *ints, size_t count, uint64_t *restrict ret)
{
    const uint8_t *restrict p = ints->planes;
    const size_t s = ints->stride;
    const uint64_t base = ints->base;
    switch (ints->width) {
    case 0:
        for (size_t i = 0; i < count; i++)
            ret[i] = base;
        return;
    case 1:
        for (size_t i = 0; i < count; i++)
            ret[i] = base + p[i];
        return;
    case 2:
        for (size_t i = 0; i < count; i++)
            ret[i] = base + (p[i] | (uint32_t)p[s + i] << 8);
        return;
    case 3:
        for (size_t i = 0; i < count; i++)
            ret[i] = base + (p[i] | (uint32_t)p[s + i] << 8 | (uint32_t)p[2 * s + i] << 16);
        return;
    default:
        for (size_t i = 0; i < count; i++)
            ret[i] = base + (p[i] | (uint32_t)p[s + i] << 8 | (uint32_t)p[2 * s + i] << 16 |
                             (uint32_t)p[3 * s + i] << 24);
        for (unsigned w = 4; w < ints->width; w++)
            for (size_t i = 0; i < count; i++)
                ret[i] += (uint64_t)p[w * s + i] << (8 * w);
        return;
    }
}

void silt_ints_u64(const struct silt_ints *ints, size_t count, uint64_t *ret)
{
    if (!ints->delta) {
        read_planes(ints, count, ret);
        return;
    }
    ret[0] = ints->first;
    read_planes(ints, count - 1, ret + 1);
    for (size_t i = 1; i < count; i++)
        ret[i] += ret[i - 1];
}

bool silt_ints_u16(const struct silt_ints *ints, size_t count, uint32_t limit, uint64_t *scratch,
                   uint16_t *restrict ret)
{
    const uint8_t *restrict p = ints->planes;
    uint32_t top = 0;
    if (ints->delta || ints->width > 2 || ints->base >= limit) {
        uint64_t high = 0;
        silt_ints_u64(ints, count, scratch);
        for (size_t i = 0; i < count; i++) {
            high = scratch[i] > high ? scratch[i] : high;
            ret[i] = (uint16_t)scratch[i];
        }
        return high < limit;
    }
    uint32_t base = (uint32_t)ints->base;
    if (ints->width == 0) {
        for (size_t i = 0; i < count; i++)
            ret[i] = (uint16_t)base;
        return true;
    }
    if (ints->width == 1) {
        uint8_t high = 0;
        for (size_t i = 0; i < count; i++) {
            high = p[i] > high ? p[i] : high;
            ret[i] = (uint16_t)(base + p[i]);
        }
        return base + high < limit;
    }
    const uint8_t *restrict q = p + ints->stride;
    for (size_t i = 0; i < count; i++) {
        uint32_t value = base + (p[i] | (uint32_t)q[i] << 8);
        top = value > top ? value : top;
        ret[i] = (uint16_t)value;
    }
    return top < limit;
}

/* ---- writing ---- */

/* log2 in 1/256: exact at powers of two, a little low between them. */
static uint32_t log2_fixed(uint64_t value)
{
    unsigned whole = 63u - (unsigned)__builtin_clzll(value);
    uint64_t rest = whole >= 8 ? (value >> (whole - 8)) & 0xFF : (value << (8 - whole)) & 0xFF;
    /* log2(1+x) is nearly x + 0.343 x (1-x) */
    return (whole << 8) + (uint32_t)(rest + ((rest * (256 - rest) * 88) >> 16));
}

uint64_t silt_histogram_bits(const uint32_t counts[256], uint64_t total)
{
    uint64_t sum = 0;
    if (total == 0) return 0;
    uint32_t all = log2_fixed(total);
    for (size_t i = 0; i < 256; i++)
        if (counts[i] != 0) sum += (uint64_t)counts[i] * (all - log2_fixed(counts[i]));
    return sum >> 8;
}

/* How the array is to be written. */
struct form {
    uint8_t width;
    bool delta;
    uint64_t base;
    uint64_t cost;
};

static uint64_t at(const uint64_t *values, size_t index, bool delta)
{
    return delta ? values[index + 1] - values[index] : values[index];
}

/* Base and width: the lower end as signed or as unsigned numbers, whichever spans less (distances may be a little negative). */
static void form_span(const uint64_t *values, size_t count, bool delta, struct form *ret)
{
    uint64_t low = UINT64_MAX, high = 0, span;
    int64_t slow = INT64_MAX, shigh = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = at(values, i, delta);
        low = value < low ? value : low;
        high = value > high ? value : high;
        slow = (int64_t)value < slow ? (int64_t)value : slow;
        shigh = (int64_t)value > shigh ? (int64_t)value : shigh;
    }
    *ret = (struct form){.delta = delta};
    if (count == 0) return;
    span = high - low;
    ret->base = low;
    if ((uint64_t)shigh - (uint64_t)slow < span) {
        span = (uint64_t)shigh - (uint64_t)slow;
        ret->base = (uint64_t)slow;
    }
    while (ret->width < 8 && span >> (8 * ret->width) != 0)
        ret->width++;
}

static struct form form_of(const uint64_t *values, size_t count, bool delta)
{
    struct form form;
    uint32_t counts[256];
    if (delta) count--;
    form_span(values, count, delta, &form);
    form.cost = 24u + (delta ? 16u : 0u); /* the few bytes in front */
    for (unsigned w = 0; w < form.width; w++) {
        if (count < 64) {
            form.cost += 8 * count;
            continue;
        }
        memset(counts, 0, sizeof counts);
        for (size_t i = 0; i < count; i++)
            counts[(at(values, i, delta) - form.base) >> (8 * w) & 0xFF]++;
        form.cost += silt_histogram_bits(counts, count) + 8;
    }
    return form;
}

static struct form form_choose(const uint64_t *values, size_t count)
{
    struct form plain = form_of(values, count, false);
    if (plain.width == 0 || count < 3) return plain;
    struct form delta = form_of(values, count, true);
    return delta.cost < plain.cost ? delta : plain;
}

uint64_t silt_ints_cost(const uint64_t *values, size_t count)
{
    return form_choose(values, count).cost;
}

enum silt_status silt_ints_put(struct silt_buf *out, const uint64_t *values, size_t count)
{
    struct form form = form_choose(values, count);
    size_t stride = form.delta ? count - 1 : count;
    enum silt_status status = silt_buf_reserve(out, 1 + 20 + stride * form.width);
    if (status == SILT_OK)
        status = silt_buf_put_u8(out, (uint8_t)(form.width | (form.delta ? SILT_INTS_DELTA : 0)));
    if (status == SILT_OK) status = silt_buf_put_varint(out, zigzag(form.base));
    if (status == SILT_OK && form.delta) status = silt_buf_put_varint(out, values[0]);
    if (status != SILT_OK) return status;
    for (unsigned w = 0; w < form.width; w++) {
        uint8_t *plane = out->at + out->len;
        for (size_t i = 0; i < stride; i++)
            plane[i] = (uint8_t)((at(values, i, form.delta) - form.base) >> (8 * w));
        out->len += stride;
    }
    return SILT_OK;
}
