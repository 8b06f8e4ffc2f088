/* From entries to proven segments: the open tail grows, full ones are closed, damage between encoding and storing is noticed. */
#include <stdlib.h>

#include "format/fold.h"
#include "harness/feed.h"
#include "harness/harness.h"
#include "harness/heap.h"

static const struct silt_namespace evt = {"EVT"}, plain = {{0}};

struct kept { /* a store in small: the last values of one life */
    struct silt_buf values[64];
    struct silt_segment_info infos[64];
    size_t count;
};

static void keep(struct kept *kept, const struct silt_fold *fold)
{
    size_t count;
    const struct silt_fold_segment *segments = silt_fold_segments(fold, &count);
    for (size_t i = 0; i < count; i++) {
        if (segments[i].replaces_tail) {
            ck_assert_uint_eq(i, 0);
            ck_assert_uint_gt(kept->count, 0);
            kept->count--;
            ck_assert(silt_wire_id_equal(kept->infos[kept->count].first, segments[i].info.first));
        }
        ck_assert_uint_lt(kept->count, 64);
        struct silt_buf *value = &kept->values[kept->count];
        silt_buf_clear(value);
        ck_assert_int_eq(silt_buf_put(value, segments[i].value.at, segments[i].value.len), SILT_OK);
        kept->infos[kept->count++] = segments[i].info;
    }
}

static struct silt_view tail_of(const struct kept *kept)
{
    return kept->count ? silt_buf_view(&kept->values[kept->count - 1]) : silt_view(NULL, 0);
}

static void fold_range(struct silt_fold *fold, struct kept *kept, const struct silt_entry *entries,
                       size_t count, struct silt_namespace ns)
{
    struct silt_err err = {0};
    ck_assert_int_eq(silt_fold_begin(fold, 3, ns, tail_of(kept), &err), SILT_OK);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(silt_fold_add(fold, &entries[i], &err) == SILT_OK, "%s", err.sentence);
    ck_assert_msg(silt_fold_finish(fold, &err) == SILT_OK, "%s", err.sentence);
    keep(kept, fold);
}

static void check_kept(struct kept *kept, const struct silt_entry *entries, size_t count)
{
    struct silt_segment *segment;
    size_t at = 0;
    ck_assert_int_eq(silt_segment_new(&segment), SILT_OK);
    for (size_t s = 0; s < kept->count; s++) {
        ck_assert_int_eq(silt_segment_open(segment, silt_buf_view(&kept->values[s]), NULL),
                         SILT_OK);
        for (size_t i = 0; i < silt_segment_count(segment); i++, at++) {
            struct silt_entry entry;
            silt_segment_entry(segment, i, &entry);
            ck_assert_uint_lt(at, count);
            ck_assert_msg(silt_entry_equal(&entry, &entries[at]), "entry %zu differs", at);
        }
    }
    ck_assert_uint_eq(at, count);
    silt_segment_free(segment);
}

static void release(struct kept *kept)
{
    for (size_t i = 0; i < 64; i++)
        silt_buf_release(&kept->values[i]);
}

struct sample {
    struct test_feed *feed;
    struct silt_entry_list list;
    struct silt_fold *fold;
};

static void sample_new(struct sample *sample, struct test_feed *feed)
{
    sample->feed = feed;
    test_feed_list(feed, &sample->list);
    ck_assert_int_eq(silt_fold_new(3, &sample->fold), SILT_OK);
}

static void sample_free(struct sample *sample)
{
    silt_fold_free(sample->fold);
    silt_entry_list_release(&sample->list);
    test_feed_free(sample->feed);
}

START_TEST(fold__bulk_closes_segments_near_full)
{
    struct sample sample;
    struct kept kept = {0};
    sample_new(&sample, test_feed_new(1, 60000));
    fold_range(sample.fold, &kept, sample.list.entries, 60000, evt);
    check_kept(&kept, sample.list.entries, 60000);
    ck_assert_uint_gt(kept.count, 2);
    for (size_t i = 0; i + 1 < kept.count; i++) {
        ck_assert_uint_gt(kept.infos[i].stored_bytes, SILT_SEGMENT_FULL_BYTES * 3 / 4);
        ck_assert_uint_lt(kept.infos[i].stored_bytes, SILT_SEGMENT_FULL_BYTES * 3 / 2);
    }
    const struct silt_fold_sum *sum = silt_fold_sum(sample.fold);
    ck_assert_uint_eq(sum->count, 60000);
    ck_assert_uint_eq(sum->foreign_count, 0);
    uint64_t digest = 0, bytes = 0;
    for (size_t i = 0; i < 60000; i++) {
        digest = silt_entry_digest(&sample.list.entries[i], digest);
        bytes += silt_entry_bytes(&sample.list.entries[i]);
    }
    ck_assert_uint_eq(sum->digest, digest);
    ck_assert_uint_eq(sum->values_bytes, bytes);
    release(&kept);
    sample_free(&sample);
}
END_TEST

START_TEST(fold__tail_grows_until_it_is_full)
{
    struct sample sample;
    struct kept kept = {0};
    sample_new(&sample, test_feed_new(2, 21000));
    for (size_t at = 0; at < 21000; at += 300)
        fold_range(sample.fold, &kept, sample.list.entries + at, 300, evt);
    check_kept(&kept, sample.list.entries, 21000);
    ck_assert_uint_gt(kept.count, 1);
    for (size_t i = 0; i + 1 < kept.count; i++)
        ck_assert_uint_ge(kept.infos[i].stored_bytes, SILT_SEGMENT_FULL_BYTES * 7 / 8);
    release(&kept);
    sample_free(&sample);
}
END_TEST

START_TEST(fold__random_sizes_of_odd_entries)
{
    struct sample sample;
    struct kept kept = {0};
    struct test_rng rng = test_rng(1);
    sample_new(&sample, test_feed_new_odd(test_seed()));
    for (size_t at = 0; at < 5000;) {
        size_t count = test_rng_below(&rng, 300);
        if (count > 5000 - at) count = 5000 - at;
        fold_range(sample.fold, &kept, sample.list.entries + at, count, evt);
        at += count;
    }
    check_kept(&kept, sample.list.entries, 5000);
    release(&kept);
    sample_free(&sample);
}
END_TEST

START_TEST(fold__nothing_added_changes_nothing)
{
    struct sample sample;
    struct kept kept = {0};
    size_t count;
    sample_new(&sample, test_feed_new(3, 100));
    fold_range(sample.fold, &kept, sample.list.entries, 100, evt);
    ck_assert_int_eq(silt_fold_begin(sample.fold, 3, evt, tail_of(&kept), NULL), SILT_OK);
    ck_assert_int_eq(silt_fold_finish(sample.fold, NULL), SILT_OK);
    silt_fold_segments(sample.fold, &count);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(silt_fold_begin(sample.fold, 4, evt, silt_view(NULL, 0), NULL), SILT_OK);
    ck_assert_int_eq(silt_fold_finish(sample.fold, NULL), SILT_OK);
    silt_fold_segments(sample.fold, &count);
    ck_assert_uint_eq(count, 0);
    release(&kept);
    sample_free(&sample);
}
END_TEST

START_TEST(fold__refuses_what_is_not_above)
{
    struct sample sample;
    struct kept kept = {0};
    struct silt_err err = {0};
    sample_new(&sample, test_feed_new(4, 100));
    fold_range(sample.fold, &kept, sample.list.entries, 50, evt);
    ck_assert_int_eq(silt_fold_begin(sample.fold, 3, evt, tail_of(&kept), &err), SILT_OK);
    ck_assert_int_eq(silt_fold_add(sample.fold, &sample.list.entries[49], &err), SILT_ERR_ORDER);
    ck_assert_ptr_nonnull(strstr(err.sentence, "is not above"));
    release(&kept);
    sample_free(&sample);
}
END_TEST

START_TEST(fold__refuses_a_tail_that_is_damaged_or_anothers)
{
    struct sample sample;
    struct kept kept = {0};
    struct silt_err err = {0};
    sample_new(&sample, test_feed_new(5, 100));
    fold_range(sample.fold, &kept, sample.list.entries, 50, evt);
    ck_assert_int_eq(silt_fold_begin(sample.fold, 4, evt, tail_of(&kept), &err), SILT_ERR_CORRUPT);
    ck_assert_int_eq(silt_fold_begin(sample.fold, 3, plain, tail_of(&kept), &err),
                     SILT_ERR_CORRUPT);
    kept.values[0].at[kept.values[0].len / 2] ^= 4;
    ck_assert_int_eq(silt_fold_begin(sample.fold, 3, evt, tail_of(&kept), &err), SILT_ERR_CORRUPT);
    release(&kept);
    sample_free(&sample);
}
END_TEST

START_TEST(fold__counts_foreign_entries)
{
    struct sample sample;
    struct kept kept = {0};
    size_t field, foreign = 0;
    sample_new(&sample, test_feed_new_odd(6));
    fold_range(sample.fold, &kept, sample.list.entries, 900, evt);
    for (size_t i = 0; i < 900; i++)
        foreign += !silt_entry_is_ours(&sample.list.entries[i], evt, &field);
    ck_assert_uint_gt(foreign, 100);
    ck_assert_uint_eq(silt_fold_sum(sample.fold)->foreign_count, foreign);
    release(&kept);
    sample_free(&sample);
}
END_TEST

START_TEST(fold__every_refused_allocation_is_survived)
{
    struct sample sample;
    struct kept kept = {0};
    struct test_heap heap;
    sample_new(&sample, test_feed_new(7, 400));
    fold_range(sample.fold, &kept, sample.list.entries, 200, evt);
    for (size_t n = 1;; n++) {
        struct silt_fold *fold = NULL;
        test_heap_start(&heap, n);
        enum silt_status status = silt_fold_new(1, &fold);
        if (status == SILT_OK) status = silt_fold_begin(fold, 3, evt, tail_of(&kept), NULL);
        for (size_t i = 200; status == SILT_OK && i < 400; i++)
            status = silt_fold_add(fold, &sample.list.entries[i], NULL);
        if (status == SILT_OK) status = silt_fold_finish(fold, NULL);
        silt_fold_free(fold);
        test_heap_stop();
        ck_assert_uint_eq(heap.live_count, 0);
        if (heap.failed_count == 0) {
            ck_assert_int_eq(status, SILT_OK);
            break;
        }
        ck_assert_int_eq(status, SILT_ERR_MEMORY);
    }
    release(&kept);
    sample_free(&sample);
}
END_TEST

#ifdef SILT_FAULTPOINTS
static void damaged_at(const char *fault)
{
    struct sample sample;
    struct silt_err err = {0};
    size_t count;
    setenv("SILT_FAULT", fault, 1);
    sample_new(&sample, test_feed_new(8, 400));
    ck_assert_int_eq(silt_fold_begin(sample.fold, 3, evt, silt_view(NULL, 0), &err), SILT_OK);
    for (size_t i = 0; i < 400; i++)
        ck_assert_int_eq(silt_fold_add(sample.fold, &sample.list.entries[i], &err), SILT_OK);
    ck_assert_int_eq(silt_fold_finish(sample.fold, &err), SILT_ERR_PROOF);
    ck_assert_ptr_nonnull(strstr(err.sentence, "does not decode to what was read"));
    silt_fold_segments(sample.fold, &count);
    ck_assert_uint_eq(count, 0);
    sample_free(&sample);
}

START_TEST(fold__proof_notices_damage_after_encoding)
{
    damaged_at("fold-corrupt-encoded=fail");
}
END_TEST

/* Checksums are right, the columns are not: only the comparison with the caller's bytes can tell. */
START_TEST(fold__proof_notices_a_wrong_encoding)
{
    damaged_at("segment-corrupt-columns=fail");
}
END_TEST
#define FAULT_TESTS \
    , fold__proof_notices_damage_after_encoding, fold__proof_notices_a_wrong_encoding
#else
#define FAULT_TESTS
#endif

TEST_MAIN(fold__bulk_closes_segments_near_full, fold__tail_grows_until_it_is_full,
          fold__random_sizes_of_odd_entries, fold__nothing_added_changes_nothing,
          fold__refuses_what_is_not_above, fold__refuses_a_tail_that_is_damaged_or_anothers,
          fold__counts_foreign_entries, fold__every_refused_allocation_is_survived FAULT_TESTS)
