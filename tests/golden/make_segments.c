/* make-segments DIR SEED [COUNT]: writes segments and their dumps. The committed ones were made with DIR segments, SEED 1; they are never made again,
 * since every later version must read what this one wrote. Tests make others, for the second decoder. */
#include <stdio.h>
#include <stdlib.h>

#include "dump.h"
#include "harness/feed.h"
#include "harness/harness.h"

static const struct silt_namespace evt = {"EVT"}, plain = {{0}};
static const char *directory;

static void save(const char *name, const char *kind, const struct silt_buf *bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", directory, name, kind);
    test_file_write(path, bytes->at, bytes->len);
}

static void make(const char *name, const struct silt_entry *entries, size_t count,
                 struct silt_namespace ns)
{
    struct silt_segment_builder *builder;
    struct silt_segment *segment;
    struct silt_segment_info info;
    struct silt_buf value = {0}, dump = {0};
    if (silt_segment_builder_new(3, &builder) != SILT_OK || silt_segment_new(&segment) != SILT_OK)
        test_die("make: out of memory");
    silt_segment_builder_begin(builder, 42, ns);
    for (size_t i = 0; i < count; i++)
        if (silt_segment_builder_add(builder, &entries[i]) != SILT_OK)
            test_die("make: %s: entry %zu is refused", name, i);
    if (silt_segment_builder_finish(builder, &value, &info) != SILT_OK ||
        silt_segment_open(segment, silt_buf_view(&value), NULL) != SILT_OK)
        test_die("make: %s does not encode", name);
    golden_dump(segment, &dump);
    save(name, "segment", &value);
    save(name, "txt", &dump);
    silt_buf_release(&value);
    silt_buf_release(&dump);
    silt_segment_free(segment);
    silt_segment_builder_free(builder);
}

static void make_feed(const char *name, struct test_feed *feed, size_t from, size_t count,
                      struct silt_namespace ns)
{
    struct silt_entry_list list;
    test_feed_list(feed, &list);
    make(name, list.entries + from, count < list.count - from ? count : list.count - from, ns);
    silt_entry_list_release(&list);
    test_feed_free(feed);
}

/* Numbers of every form, times near the entry's own, columns that follow from others with exceptions, tokens asked and answered. */
static void make_sheet(uint64_t seed)
{
    enum { COUNT = 400, FIELDS = 7 };
    static struct silt_field fields[COUNT][FIELDS];
    static char text[COUNT][FIELDS][32];
    static struct silt_entry entries[COUNT];
    static const char *const asked[FIELDS] = {"at", "n", "who", "name", "token", "steady", "job"};
    static const char *const done[FIELDS] = {"token", "at", "n", "who", "name", "seen", "job"};
    struct test_rng rng = test_rng_fixed(seed);
    for (uint64_t i = 0; i < COUNT; i++) {
        bool is_done = i % 2 && i > 20;
        uint64_t ms = 1767225600000 + 777 * i, who = test_rng_below(&rng, 9);
        char job[16] = "JOB";
        silt_base62_encode((ms - SILT_EPOCH_MS + 2 - i % 7) << 22 | 9 << 12 | i % 2,
                           (uint8_t *)job + 3);
        for (size_t f = 0; f < FIELDS; f++) {
            char *to = text[i][f];
            const char *name = (is_done ? done : asked)[f];
            size_t size = sizeof text[i][f];
            switch (name[0]) {
            case 'a':
                snprintf(to, size, "%llu",
                         (unsigned long long)(ms - 3 + i % 5 * 2) %
                             (i % 90 == 89 ? 1000 : UINT64_MAX));
                break;
            case 'w': snprintf(to, size, "player %llu", (unsigned long long)who); break;
            case 't':
                snprintf(to, size, "%016llx",
                         (unsigned long long)(i / 2 + seed + (i % 50 == 49) * 1000) *
                             0x9e3779b97f4a7c15ULL);
                break;
            case 'j': snprintf(to, size, "%s", i % 60 == 59 ? "JOB of nobody" : job); break;
            case 's': snprintf(to, size, "%s", "always"); break;
            default:
                if (name[1] == 'a')
                    snprintf(to, size, "name %llu%s", (unsigned long long)who * who,
                             i == 300 ? "!" : "");
                else
                    snprintf(to, size, i % 40 == 39 ? "%09llu" : "%llu",
                             (unsigned long long)(i * i * 31));
            }
            fields[i][f] = (struct silt_field){silt_view_str(name), silt_view_str(to)};
        }
        entries[i] = (struct silt_entry){{ms, i % 3}, fields[i], FIELDS};
    }
    make("columns", entries, COUNT, plain);
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    directory = argv[1];
    uint64_t seed = strtoull(argv[2], NULL, 10);
    make_feed("feed", test_feed_new(seed, 400), 0, 400, evt);
    make_feed("feed-plain", test_feed_new(seed + 1, 150), 0, 150, plain);
    make_feed("odd", test_feed_new_odd(seed), 120, 160, evt);
    make_feed("one", test_feed_new(seed + 2, 30), 29, 1, evt);
    make_sheet(seed);
    struct silt_entry bare = {{UINT64_MAX, UINT64_MAX}, NULL, 0};
    make("bare", &bare, 1, evt);
    return 0;
}
