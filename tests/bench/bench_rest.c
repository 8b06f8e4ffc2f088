/* Bytes at rest: the archive's file beside row-wise zstd (level 3, blocks of 256 KiB) of the same entries, ids and names included. */
#include <inttypes.h>
#include <stdio.h>

#include "bench.h"
#include "format/pack.h"

/* Rows as one would write them without thinking of columns: varint lengths, the id's two numbers, names and values. */
static void put_row(struct silt_buf *rows, const struct silt_entry *entry)
{
    enum silt_status status = silt_buf_put_varint(rows, entry->id.ms);
    if (status == SILT_OK) status = silt_buf_put_varint(rows, entry->id.seq);
    if (status == SILT_OK) status = silt_buf_put_varint(rows, entry->field_count);
    for (size_t f = 0; f < entry->field_count && status == SILT_OK; f++) {
        struct silt_view parts[2] = {entry->fields[f].name, entry->fields[f].value};
        for (int p = 0; p < 2 && status == SILT_OK; p++) {
            status = silt_buf_put_varint(rows, parts[p].len);
            if (status == SILT_OK) status = silt_buf_put(rows, parts[p].at, parts[p].len);
        }
    }
    if (status != SILT_OK) test_die("bench: out of memory");
}

static uint64_t row_wise(struct test_feed *feed)
{
    enum { BLOCK = 256 << 10 };
    struct silt_packer *packer;
    struct silt_buf rows = {0}, out = {0};
    uint64_t total = 0;
    if (silt_packer_new(3, &packer) != SILT_OK) test_die("bench: out of memory");
    for (bool more = true; more;) {
        struct silt_entry entry;
        more = test_feed_next(feed, &entry);
        if (more) put_row(&rows, &entry);
        if (rows.len < BLOCK && (more || rows.len == 0)) continue;
        silt_buf_clear(&out);
        if (silt_pack(packer, silt_buf_view(&rows), &out) != SILT_OK)
            test_die("bench: cannot pack");
        total += out.len;
        silt_buf_clear(&rows);
    }
    silt_buf_release(&rows);
    silt_buf_release(&out);
    silt_packer_free(packer);
    test_feed_free(feed);
    return total;
}

void bench_rest(const struct bench_options *options)
{
    struct test_filled filled;
    const char *dir = test_path("rest");
    test_fill(dir, test_feed_new(options->seed, options->count), 20000, &filled);
    uint64_t peer = row_wise(test_feed_new(options->seed, options->count));
    double count = (double)options->count;
    printf("{\"case\":\"rest\",\"entries\":%" PRIu64 ",\"values_bytes\":%" PRIu64
           ",\"segments\":%" PRIu64 ",\"segment_bytes\":%" PRIu64 ",\"file_bytes\":%" PRIu64
           ",\"file_bytes_per_entry\":%.2f,"
           "\"peer\":\"row-wise zstd, level 3, 256 KiB\",\"peer_bytes\":%" PRIu64
           ",\"peer_bytes_per_entry\":%.2f,\"ratio\":%.3f}\n",
           options->count, filled.values_bytes, filled.segments, filled.stored_bytes,
           filled.file_bytes, (double)filled.file_bytes / count, peer, (double)peer / count,
           (double)filled.file_bytes / (double)peer);
    fflush(stdout);
    test_remove_all(dir);
}
