/* Archives without a server. Every entry follows from its number, so any reader can be checked against nothing but numbers. */
#include "archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runner.h"

#define BASE_MS 1893456000000ULL /* 2030-01-01: has a branded form */

static void must(enum silt_status status, const struct silt_err *err, const char *what)
{
    if (status != SILT_OK) test_die("%s: %s: %s", what, silt_status_name(status), err->sentence);
}

void test_archive_open(struct test_archive *archive, const char *dir, bool write,
                       uint64_t map_bytes)
{
    struct silt_err err = {0};
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    memset(archive, 0, sizeof *archive);
    options.write = options.create = write;
    if (map_bytes) options.map_initial_bytes = map_bytes;
    must(silt_store_open(dir, &options, &archive->store, &err), &err, "open");
    must(silt_batch_new(&archive->batch), &err, "batch");
    must(silt_segment_builder_new(3, &archive->builder), &err, "builder");
}

void test_archive_close(struct test_archive *archive)
{
    silt_store_close(archive->store);
    silt_batch_free(archive->batch);
    silt_segment_builder_free(archive->builder);
    silt_buf_release(&archive->value);
    memset(archive, 0, sizeof *archive);
}

struct silt_store *test_store_reader(const char *dir)
{
    struct silt_err err = {0};
    struct silt_store *store = NULL;
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    must(silt_store_open(dir, &options, &store, &err), &err, "open for reading");
    return store;
}

void test_stream_new(struct test_archive *archive, struct test_stream *stream, const char *name,
                     const char *ns)
{
    struct silt_err err = {0};
    memset(stream, 0, sizeof *stream);
    snprintf(stream->name, sizeof stream->name, "%s", name);
    stream->row.name = silt_view_str(stream->name);
    if (ns) memcpy(stream->row.ns.letters, ns, 3);
    must(silt_store_new_stream(archive->store, &stream->row.number, &stream->row.life, &err), &err,
         "new stream");
}

struct silt_wire_id test_entry_id(uint64_t n)
{
    return (struct silt_wire_id){BASE_MS + n, 1};
}

struct silt_entry test_entry(uint64_t n)
{
    static _Thread_local struct silt_field fields[3];
    static _Thread_local char number[32], text[512];
    int len = snprintf(number, sizeof number, "%" PRIu64, n);
    size_t more = (size_t)(n * 2654435761u % 200);
    for (size_t i = 0; i < more; i++)
        text[i] = (char)((n * 31 + i * i * 7) >> 2);
    fields[0] = (struct silt_field){silt_view("n", 1), silt_view(number, (size_t)len)};
    fields[1] = (struct silt_field){silt_view("text", 4), silt_view(text, more)};
    fields[2] = (struct silt_field){silt_view("n", 1), silt_view("", 0)};
    return (struct silt_entry){test_entry_id(n), fields, 3};
}

void test_segment_make(struct test_archive *archive, const struct test_stream *stream,
                       uint64_t first, uint64_t last)
{
    struct silt_err err = {0};
    silt_segment_builder_begin(archive->builder, stream->row.life, stream->row.ns);
    for (uint64_t n = first; n <= last; n++) {
        struct silt_entry entry = test_entry(n);
        must(silt_segment_builder_add(archive->builder, &entry), &err, "add to a segment");
    }
    silt_buf_clear(&archive->value);
    must(silt_segment_builder_finish(archive->builder, &archive->value, &archive->info), &err,
         "finish a segment");
}

void test_fold_add(struct test_archive *archive, struct test_stream *stream, uint64_t first,
                   uint64_t last, bool replaces)
{
    struct silt_err err = {0};
    test_segment_make(archive, stream, first, last);
    for (uint64_t n = first; n <= last; n++) {
        struct silt_entry entry = test_entry(n);
        if (stream->row.folded_any && !silt_wire_id_less(stream->row.watermark, entry.id)) continue;
        stream->row.folded_entries++;
        stream->row.folded_bytes += silt_entry_bytes(&entry);
        if (!silt_namespace_is_none(stream->row.ns)) stream->row.foreign_entries++;
    }
    stream->row.folded_any = true;
    if (silt_wire_id_less(stream->row.watermark, test_entry_id(last)))
        stream->row.watermark = stream->row.custody = test_entry_id(last);
    must(silt_batch_stream(archive->batch, &stream->row), &err, "add a row");
    must(silt_batch_segment(archive->batch, &archive->info, silt_buf_view(&archive->value),
                            replaces),
         &err, "add a segment to the batch");
}

void test_fold(struct test_archive *archive, struct test_stream *stream, uint64_t first,
               uint64_t last)
{
    struct silt_err err = {0};
    silt_batch_clear(archive->batch);
    test_fold_add(archive, stream, first, last, false);
    must(silt_store_commit(archive->store, archive->batch, &err), &err, "commit");
}

struct walk {
    struct silt_segment *segment;
    uint64_t count;
    char *wrong;
};

static void say(struct walk *walk, const char *what, const struct silt_err *err)
{
    snprintf(walk->wrong, 200, "after entry %" PRIu64 ": %s %.120s", walk->count, what,
             err ? err->sentence : "");
}

/* From the id on: an open tail that was rewritten since holds what was given already. */
static bool take_segment(struct walk *walk, struct silt_view value, struct silt_wire_id from)
{
    struct silt_err err = {0};
    if (silt_segment_open(walk->segment, value, &err) != SILT_OK) {
        say(walk, "a segment cannot be opened:", &err);
        return false;
    }
    size_t count = silt_segment_count(walk->segment);
    for (size_t i = silt_segment_find(walk->segment, from); i < count; i++) {
        struct silt_entry got, due = test_entry(walk->count + 1);
        silt_segment_entry(walk->segment, i, &got);
        if (!silt_entry_equal(&got, &due)) {
            say(walk, "another entry was due", NULL);
            return false;
        }
        walk->count++;
    }
    return true;
}

uint64_t test_archive_count(struct silt_store *store, const char *name, char ret_wrong[200])
{
    struct silt_err err = {0};
    struct walk walk = {.wrong = ret_wrong};
    struct silt_stream stream = {0};
    struct silt_buf value = {0};
    struct silt_segment_info info;
    struct silt_wire_id id = SILT_WIRE_ID_MIN;
    ret_wrong[0] = '\0';
    enum silt_status status = silt_segment_new(&walk.segment);
    if (status == SILT_OK) status = silt_store_stream(store, silt_view_str(name), &stream, &err);
    while (status == SILT_OK) {
        status = silt_store_segment(store, stream.row.life, stream.row.ns, id, SILT_SEEK_FORWARD,
                                    &value, &info, &err);
        if (status == SILT_OK && !take_segment(&walk, silt_buf_view(&value), id)) break;
        if (status == SILT_OK && !silt_wire_id_next(info.last, &id)) break;
    }
    if (status != SILT_OK && status != SILT_END) say(&walk, silt_status_name(status), &err);
    /* A writer may have gone on since the row was read; what the row promised must be there. */
    if (status == SILT_END && silt_wire_id_less(test_entry_id(walk.count), stream.row.watermark))
        say(&walk, "the watermark promises more", NULL);
    silt_segment_free(walk.segment);
    silt_stream_release(&stream);
    silt_buf_release(&value);
    return walk.count;
}
