/* The histogram of `silt inspect --timeline`. Must not know of stores or servers. */
#include "timeline.h"

#include <stdlib.h>

#include "instant.h"

#define BAR_CHARS 40
#define EMPTY_RUN 4 /* so many empty buckets in a row become one line */

static const uint64_t widths[] = {
    1,         2,          5,          10,          20,           50,           100,
    200,       500,        1000,       2000,        5000,         10000,        15000,
    30000,     60000,      120000,     300000,      600000,       900000,       1800000,
    3600000,   7200000,    10800000,   21600000,    43200000,     86400000,     172800000,
    604800000, 2592000000, 7776000000, 31536000000, 315360000000, 3153600000000};

void silt_timeline_init(struct silt_timeline *timeline, uint64_t first_ms, uint64_t last_ms)
{
    size_t i = 0;
    while (i + 1 < sizeof widths / sizeof widths[0] &&
           last_ms / widths[i] - first_ms / widths[i] >= SILT_TIMELINE_BUCKETS_MAX)
        i++;
    uint64_t width = widths[i];
    while (last_ms / width - first_ms / width >= SILT_TIMELINE_BUCKETS_MAX)
        width *= 10;
    *timeline = (struct silt_timeline){.width_ms = width, .live_from_ms = UINT64_MAX};
    timeline->count = (size_t)(last_ms / width - first_ms / width) + 1;
    for (size_t b = 0; b < timeline->count; b++)
        timeline->buckets[b].from_ms = (first_ms / width + b) * width;
}

static size_t bucket_of(const struct silt_timeline *timeline, uint64_t ms)
{
    uint64_t start = timeline->buckets[0].from_ms;
    if (ms <= start) return 0;
    uint64_t at = (ms - start) / timeline->width_ms;
    return at < timeline->count ? (size_t)at : timeline->count - 1;
}

void silt_timeline_add(struct silt_timeline *timeline, uint64_t first_ms, uint64_t last_ms,
                       uint64_t entries, bool live)
{
    size_t from = bucket_of(timeline, first_ms), to = bucket_of(timeline, last_ms);
    double span = (double)(last_ms - first_ms) + 1;
    uint64_t given = 0;
    for (size_t b = from; b <= to; b++) {
        /* What lies before the bucket's end, less what was given already: the sum is exact. */
        double before =
            b == to ? span : (double)(timeline->buckets[b].from_ms + timeline->width_ms - first_ms);
        uint64_t due = b == to ? entries : (uint64_t)((double)entries * (before / span));
        uint64_t part = due > given ? due - given : 0;
        *(live ? &timeline->buckets[b].live : &timeline->buckets[b].archive) += part;
        given += part;
    }
}

void silt_timeline_add_gap(struct silt_timeline *timeline, uint64_t first_ms, uint64_t last_ms,
                           uint64_t entries)
{
    size_t from = bucket_of(timeline, first_ms), to = bucket_of(timeline, last_ms);
    for (size_t b = from; b <= to; b++)
        timeline->buckets[b].has_gap = true;
    timeline->buckets[to].gap += entries; /* where in its range they lay is not known */
}

static bool terminal_has_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value == NULL || *value == '\0') continue;
        return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

static void label_of(const struct silt_timeline *timeline, size_t b, char ret[32])
{
    uint64_t ms = timeline->buckets[b].from_ms;
    if (ms > 253402300799999ULL) {
        snprintf(ret, 32, "%llu", (unsigned long long)ms);
        return;
    }
    silt_instant_format((struct silt_instant){(int64_t)ms}, ret);
    ret[10] = ' ';
    ret[timeline->width_ms % 86400000 == 0 ? 10
        : timeline->width_ms % 60000 == 0  ? 16
        : timeline->width_ms % 1000 == 0   ? 19
                                           : 23] = '\0';
}

static void bar(struct silt_out *out, const char *mark, size_t count)
{
    for (size_t i = 0; i < count; i++)
        silt_out_text(out, mark);
}

static void show_bucket(struct silt_out *out, const struct silt_timeline *timeline, size_t b,
                        uint64_t most, bool utf8)
{
    const struct silt_bucket *bucket = &timeline->buckets[b];
    char label[32], count[32];
    uint64_t all = bucket->archive + bucket->live;
    size_t len = most ? (size_t)((double)all / (double)most * BAR_CHARS + 0.5) : 0;
    if (all > 0 && len == 0) len = 1;
    size_t live = all ? (size_t)((double)bucket->live / (double)all * (double)len + 0.5) : 0;
    bool both = bucket->from_ms + timeline->width_ms > timeline->live_from_ms;
    label_of(timeline, b, label);
    silt_out_printf(out, "%s  ", label);
    bar(out, utf8 ? both ? "▓" : "█" : both ? "+" : "#", len - live);
    bar(out, utf8 ? "░" : ".", live);
    silt_out_printf(out, "%*s %10s", (int)(BAR_CHARS - len), "", silt_count_text(all, count));
    if (bucket->has_gap && bucket->gap)
        silt_out_printf(out, "  %s %s missing", utf8 ? "╳" : "X",
                        silt_count_text(bucket->gap, count));
    else if (bucket->has_gap)
        silt_out_printf(out, "  %s gap", utf8 ? "╳" : "X");
    silt_out_text(out, "\n");
}

static bool is_empty(const struct silt_bucket *bucket)
{
    return bucket->archive + bucket->live == 0 && !bucket->has_gap;
}

void silt_timeline_show(struct silt_out *out, const struct silt_timeline *timeline)
{
    uint64_t most = 0;
    bool utf8 = terminal_has_utf8();
    char width[SILT_INSTANT_TEXT];
    for (size_t b = 0; b < timeline->count; b++) {
        uint64_t all = timeline->buckets[b].archive + timeline->buckets[b].live;
        if (all > most) most = all;
    }
    silt_duration_format(timeline->width_ms, width);
    for (size_t b = 0; b < timeline->count; b++) {
        size_t run = 0;
        while (b + run < timeline->count && is_empty(&timeline->buckets[b + run]))
            run++;
        if (run >= EMPTY_RUN) {
            silt_out_printf(out, "%s (%zu empty)\n", utf8 ? "⋮" : ":", run);
            b += run - 1;
        } else {
            show_bucket(out, timeline, b, most, utf8);
        }
    }
    if (utf8)
        silt_out_printf(
            out, "each line %s   █ archive   ▓ archive and live   ░ live only   ╳ gap\n", width);
    else
        silt_out_printf(
            out, "each line %s   # archive   + archive and live   . live only   X gap\n", width);
}

void silt_timeline_json(struct silt_out *out, const struct silt_timeline *timeline)
{
    silt_json_open(out, '{');
    silt_json_name(out, "width_ms");
    silt_json_u64(out, timeline->width_ms);
    silt_json_name(out, "buckets");
    silt_json_open(out, '[');
    for (size_t b = 0; b < timeline->count; b++) {
        const struct silt_bucket *bucket = &timeline->buckets[b];
        silt_json_open(out, '{');
        silt_json_name(out, "from_ms");
        silt_json_u64(out, bucket->from_ms);
        silt_json_name(out, "archive");
        silt_json_u64(out, bucket->archive);
        silt_json_name(out, "live_only");
        silt_json_u64(out, bucket->live);
        silt_json_name(out, "still_live");
        silt_json_bool(out, bucket->from_ms + timeline->width_ms > timeline->live_from_ms);
        silt_json_name(out, "gap");
        silt_json_bool(out, bucket->has_gap);
        silt_json_name(out, "missing");
        silt_json_u64(out, bucket->gap);
        silt_json_close(out, '}');
    }
    silt_json_close(out, ']');
    silt_json_close(out, '}');
}
