/* Late behind a cursor (protocol.md §5): entries that a fold took and that others removed before its commit. A reader may have passed their place in between, when
 * they were in neither; so they are numbered, and readers are told. Which of them were removed only after the commit no look can say: those are numbered, too. */
#include "cycle_priv.h"
#include "log.h"

static enum silt_status gather(struct silt_archiver *archiver, const struct silt_stream_row *row,
                               struct silt_range range, uint64_t *ret_count, struct silt_err *err)
{
    struct silt_archive_entry found;
    struct silt_range damaged;
    uint64_t number;
    *ret_count = 0;
    silt_batch_clear(archiver->verdict);
    enum silt_status status = silt_store_late_highest(archiver->store, row->life, &number, err);
    if (status == SILT_OK)
        status = silt_archive_source_seek(archiver->source, row->life, row->ns, range, false, err);
    while (status == SILT_OK) {
        status = silt_archive_source_next(archiver->source, &found, &damaged, err);
        if (status != SILT_OK) break;
        struct silt_late_row late = {row->life, ++number, found.entry.id};
        ++*ret_count;
        if (silt_batch_late(archiver->verdict, &late) != SILT_OK)
            return silt_fail(err, SILT_ERR_MEMORY, NULL);
    }
    return status == SILT_END ? SILT_OK : status;
}

enum silt_status silt_late_overtaken(struct silt_archiver *archiver, struct silt_work *work,
                                     struct silt_err *err)
{
    struct silt_work_state *state = work->state;
    const struct silt_facts *facts = &archiver->look.facts;
    struct silt_range range = state->fresh;
    if (!state->has_fresh) return SILT_OK;
    if (facts->has_first && !silt_wire_id_less(range.from, facts->first)) {
        state->has_fresh = false;
        return SILT_OK;
    }
    if (facts->has_first && !silt_wire_id_less(range.to, facts->first))
        silt_wire_id_prev(facts->first, &range.to);
    struct silt_stream_row row = work->stream.row;
    uint64_t count, number = row.number;
    enum silt_status status = gather(archiver, &row, range, &count, err);
    if (status != SILT_OK) return status;
    state->has_fresh = false;
    if (count == 0) return SILT_OK;
    row.late_entries += count;
    if (silt_batch_stream(archiver->verdict, &row) != SILT_OK)
        return silt_fail(err, SILT_ERR_MEMORY, NULL);
    state->stale = true;
    status = silt_store_commit(archiver->store, archiver->verdict, err);
    if (status == SILT_OK)
        status = silt_store_stream_number(archiver->store, number, &work->stream, err);
    if (status != SILT_OK) return status;
    state->stale = false;
    SILT_LOG(SILT_LOG_INFO, "late", SILT_KEY("stream", silt_work_key(work)),
             SILT_ID("after", range.from), SILT_ID("through", range.to), SILT_NUM("entries", count),
             SILT_STR("reason", "others removed them while they were being folded"));
    return SILT_OK;
}
