#include "fill.h"

#include "format/fold.h"
#include "runner.h"

struct filling {
    struct silt_store *store;
    struct silt_batch *batch;
    struct silt_fold *fold;
    struct silt_stream_row row;
    struct silt_buf tail;
    struct silt_err err;
};

static void must(enum silt_status status, const struct silt_err *err, const char *what)
{
    if (status != SILT_OK)
        test_die("fill: %s: %s: %s", what, silt_status_name(status), err->sentence);
}

static void open_all(struct filling *self, const char *dir)
{
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    options.write = options.create = true;
    must(silt_store_open(dir, &options, &self->store, &self->err), &self->err, "open");
    must(silt_batch_new(&self->batch), &self->err, "batch");
    must(silt_fold_new(3, &self->fold), &self->err, "fold");
    self->row.name = silt_view_str(TEST_FEED_KEY);
    self->row.ns = TEST_FEED_NAMESPACE;
    must(silt_store_new_stream(self->store, &self->row.number, &self->row.life, &self->err),
         &self->err, "new stream");
}

static void begin(struct filling *self)
{
    must(silt_fold_begin(self->fold, self->row.life, self->row.ns, silt_buf_view(&self->tail),
                         &self->err),
         &self->err, "begin");
}

static void commit(struct filling *self)
{
    size_t count;
    must(silt_fold_finish(self->fold, &self->err), &self->err, "finish");
    const struct silt_fold_segment *segments = silt_fold_segments(self->fold, &count);
    const struct silt_fold_sum *sum = silt_fold_sum(self->fold);
    silt_batch_clear(self->batch);
    for (size_t i = 0; i < count; i++)
        must(silt_batch_segment(self->batch, &segments[i].info, segments[i].value,
                                segments[i].replaces_tail),
             &self->err, "segment");
    self->row.folded_any = true;
    self->row.watermark = self->row.custody = sum->last;
    self->row.custody_added += sum->count;
    self->row.folded_entries += sum->count;
    self->row.folded_bytes += sum->values_bytes;
    self->row.foreign_entries += sum->foreign_count;
    must(silt_batch_stream(self->batch, &self->row), &self->err, "row");
    must(silt_store_commit(self->store, self->batch, &self->err), &self->err, "commit");
    silt_buf_clear(&self->tail);
    const struct silt_view last = segments[count - 1].value;
    must(silt_buf_put(&self->tail, last.at, last.len), &self->err, "tail");
}

static bool count_segment(void *ctx, enum silt_status status, const struct silt_segment_info *info)
{
    struct test_filled *filled = ctx;
    if (status != SILT_OK) test_die("fill: a segment is damaged");
    filled->segments++;
    filled->stored_bytes += info->stored_bytes;
    return true;
}

static void measure(struct filling *self, struct test_filled *ret)
{
    struct silt_store_space space;
    enum silt_status status =
        silt_store_segments(self->store, self->row.life, self->row.ns, SILT_WIRE_ID_MIN,
                            SILT_SEEK_FORWARD, count_segment, ret, &self->err);
    if (status != SILT_END) must(status, &self->err, "segments");
    must(silt_store_space(self->store, &space, &self->err), &self->err, "space");
    ret->file_bytes = space.file_bytes;
}

void test_fill(const char *dir, struct test_feed *feed, uint64_t per_fold, struct test_filled *ret)
{
    struct filling self = {0};
    struct silt_entry entry;
    *ret = (struct test_filled){0};
    open_all(&self, dir);
    begin(&self);
    while (test_feed_next(feed, &entry)) {
        must(silt_fold_add(self.fold, &entry, &self.err), &self.err, "add");
        ret->values_bytes += silt_entry_bytes(&entry);
        ret->digest = silt_entry_digest(&entry, ret->digest);
        if (++ret->entries % per_fold != 0) continue;
        commit(&self);
        ret->commits++;
        begin(&self);
    }
    if (ret->entries % per_fold != 0) {
        commit(&self);
        ret->commits++;
    }
    measure(&self, ret);
    silt_store_close(self.store);
    silt_batch_free(self.batch);
    silt_fold_free(self.fold);
    silt_buf_release(&self.tail);
    test_feed_free(feed);
}
