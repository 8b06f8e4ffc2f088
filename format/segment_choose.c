/* How one column is best written by itself: text, numbers or branded ids, judged by what each is likely to come to after compression.
 * A guess may be wrong about size, never about bytes: a form is a candidate only for the values that it gives back exactly. */
#include "segment_write.h"

/* A form with more than one exception in so many values is no candidate. */
#define EXCEPTION_SHARE 8u

/* One value read as a number, or not at all. */
struct parsed {
    uint64_t a; /* number, or distance of a branded id */
    uint64_t b; /* tail of a branded id */
};
typedef bool parse_value(struct silt_view value, uint64_t time, const char letters[4],
                         struct parsed *ret);

static bool parse_number(struct silt_view value, uint64_t time, const char letters[4],
                         struct parsed *ret)
{
    (void)time;
    (void)letters;
    return value.len != 0 && value.at[0] <= '9' && silt_decimal_value(value, &ret->a);
}

static bool parse_near(struct silt_view value, uint64_t time, const char letters[4],
                       struct parsed *ret)
{
    if (!parse_number(value, time, letters, ret)) return false;
    ret->a -= time;
    return true;
}

static bool parse_branded(struct silt_view value, uint64_t time, const char letters[4],
                          struct parsed *ret)
{
    uint64_t snowflake;
    if (value.len != SILT_BRANDED_ID_LEN || memcmp(value.at, letters, 3) != 0 ||
        !silt_base62_decode(value.at + 3, &snowflake))
        return false;
    ret->a = time - SILT_EPOCH_MS - (snowflake >> 22);
    ret->b = snowflake & SILT_TAIL_MAX;
    return true;
}

static const struct {
    parse_value *parse;
    bool two;
} forms[] = {[SILT_COLUMN_NUMBER] = {parse_number, false},
             [SILT_COLUMN_NEAR] = {parse_near, false},
             [SILT_COLUMN_BRANDED] = {parse_branded, true}};

/* All values into scratch[1] and [2], the exceptions' positions into scratch[3]; false: too many exceptions. The place of an exception
 * is filled with what came before it. */
static bool parse_all(struct silt_segment_builder *builder, const struct silt_values *values,
                      struct silt_choice *choice)
{
    uint64_t *a = builder->scratch[1], *b = builder->scratch[2], *odd = builder->scratch[3];
    const uint32_t limit = values->count / EXCEPTION_SHARE;
    struct parsed last = {0, 0};
    parse_value *parse = forms[choice->kind].parse;
    choice->exceptions = 0;
    for (uint32_t i = 0; i < values->count; i++) {
        struct parsed now;
        if (parse(silt_ref_view(builder, values->refs[i]), values->times[i], choice->letters,
                  &now)) {
            last = now;
        } else {
            if (choice->exceptions == limit) return false;
            odd[choice->exceptions++] = i;
        }
        a[i] = last.a;
        b[i] = last.b;
    }
    return true;
}

static void consider(struct silt_segment_builder *builder, const struct silt_values *values,
                     struct silt_choice candidate, struct silt_choice *best)
{
    if (!parse_all(builder, values, &candidate)) return;
    uint64_t cost = silt_ints_cost(builder->scratch[1], values->count);
    if (forms[candidate.kind].two) cost += silt_ints_cost(builder->scratch[2], values->count);
    for (uint32_t i = 0; i < candidate.exceptions; i++)
        cost += 24 + 8 * (uint64_t)values->refs[builder->scratch[3][i]].len;
    candidate.cost = cost;
    if (cost < best->cost) *best = candidate;
}

static uint64_t text_cost(struct silt_segment_builder *builder, const struct silt_values *values)
{
    enum { SAMPLE = 1 << 16, VALUE_SAMPLE = 1 << 12 };
    uint32_t counts[256] = {0};
    uint64_t total = 0, sampled = 0;
    for (uint32_t i = 0; i < values->count; i++) {
        struct silt_view text = silt_ref_view(builder, values->refs[i]);
        size_t take = text.len < VALUE_SAMPLE ? text.len : VALUE_SAMPLE;
        builder->scratch[0][i] = text.len;
        total += text.len;
        if (sampled >= SAMPLE) continue;
        for (size_t k = 0; k < take; k++)
            counts[text.at[k]]++;
        sampled += take;
    }
    uint64_t bits = sampled < 32 ? 8 * sampled : silt_histogram_bits(counts, sampled) + 64;
    if (sampled != 0 && total > sampled) bits += bits / sampled * (total - sampled);
    return bits + silt_ints_cost(builder->scratch[0], values->count);
}

static bool all_equal(const struct silt_segment_builder *builder, const struct silt_values *values)
{
    struct silt_view first = silt_ref_view(builder, values->refs[0]);
    for (uint32_t i = 1; i < values->count; i++)
        if (!silt_view_equal(first, silt_ref_view(builder, values->refs[i]))) return false;
    return true;
}

enum silt_status silt_choose(struct silt_segment_builder *builder, const struct silt_values *values,
                             struct silt_choice *ret)
{
    struct silt_view first = silt_ref_view(builder, values->refs[0]);
    if (all_equal(builder, values)) {
        *ret = (struct silt_choice){.kind = SILT_COLUMN_CONST, .cost = 16 + 8 * first.len};
        return SILT_OK;
    }
    enum silt_status status = silt_scratch_reserve(builder, values->count);
    if (status != SILT_OK) return status;
    struct silt_choice best = {.kind = SILT_COLUMN_TEXT, .cost = text_cost(builder, values)};
    struct silt_view like = first;
    if (first.len != SILT_BRANDED_ID_LEN) like = silt_ref_view(builder, values->refs[1]);
    if (like.len == SILT_BRANDED_ID_LEN) {
        struct silt_choice branded = {.kind = SILT_COLUMN_BRANDED};
        memcpy(branded.letters, like.at, 3);
        consider(builder, values, branded, &best);
    }
    if (first.len <= 20) {
        consider(builder, values, (struct silt_choice){.kind = SILT_COLUMN_NUMBER}, &best);
        if (first.len >= 12 && first.len <= 14)
            consider(builder, values, (struct silt_choice){.kind = SILT_COLUMN_NEAR}, &best);
    }
    *ret = best;
    return SILT_OK;
}

/* ---- writing ---- */

/* Lengths, then bytes, of the values at `positions` (NULL: all). */
static enum silt_status put_texts(struct silt_segment_builder *builder, const struct silt_ref *refs,
                                  const uint64_t *positions, uint32_t count)
{
    struct silt_buf *out = &builder->bodies;
    uint64_t *lengths = builder->scratch[0];
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        lengths[i] = refs[positions ? positions[i] : i].len;
        total += lengths[i];
    }
    enum silt_status status = silt_ints_put(out, lengths, count);
    if (status == SILT_OK) status = silt_buf_reserve(out, total);
    for (uint32_t i = 0; i < count && status == SILT_OK; i++) {
        struct silt_view text = silt_ref_view(builder, refs[positions ? positions[i] : i]);
        status = silt_buf_put(out, text.at, text.len);
    }
    return status;
}

enum silt_status silt_put_exceptions(struct silt_segment_builder *builder,
                                     const struct silt_ref *refs, const uint64_t *positions,
                                     uint32_t count)
{
    if (count == 0) return SILT_OK;
    enum silt_status status = silt_buf_put_varint(&builder->bodies, count);
    if (status == SILT_OK) status = silt_ints_put(&builder->bodies, positions, count);
    if (status == SILT_OK) status = put_texts(builder, refs, positions, count);
    return status;
}

static enum silt_status put_parsed(struct silt_segment_builder *builder,
                                   const struct silt_values *values,
                                   const struct silt_choice *choice)
{
    struct silt_buf *out = &builder->bodies;
    struct silt_choice again = *choice;
    enum silt_status status = SILT_OK;
    (void)parse_all(builder, values, &again); /* it did when it was chosen */
    if (choice->kind == SILT_COLUMN_BRANDED) status = silt_buf_put(out, choice->letters, 3);
    if (status == SILT_OK) status = silt_ints_put(out, builder->scratch[1], values->count);
    if (status == SILT_OK && forms[choice->kind].two)
        status = silt_ints_put(out, builder->scratch[2], values->count);
    if (status != SILT_OK) return status;
    return silt_put_exceptions(builder, values->refs, builder->scratch[3], again.exceptions);
}

enum silt_status silt_put_chosen(struct silt_segment_builder *builder,
                                 const struct silt_values *values, const struct silt_choice *choice)
{
    struct silt_buf *out = &builder->bodies;
    unsigned form = choice->kind | (choice->exceptions ? SILT_COLUMN_EXCEPTIONS : 0);
    enum silt_status status = silt_scratch_reserve(builder, values->count);
    if (status == SILT_OK) status = silt_buf_put_u8(out, (uint8_t)form);
    if (status != SILT_OK) return status;
    if (choice->kind == SILT_COLUMN_TEXT)
        return put_texts(builder, values->refs, NULL, values->count);
    if (choice->kind != SILT_COLUMN_CONST) return put_parsed(builder, values, choice);
    struct silt_view value = silt_ref_view(builder, values->refs[0]);
    status = silt_buf_put_varint(out, value.len);
    if (status == SILT_OK) status = silt_buf_put(out, value.at, value.len);
    return status;
}
