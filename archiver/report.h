/* What siltd tells about its streams: kept after each pass, so that a status can be answered while the next pass runs, and written as JSON.
 *
 *     {"ok":true, "version":"0.1.0", "pid":1, "uptime_ms":N, "archive":"/var/lib/silt", "address":"unix:...", "server":"valkey 8.0.1"|null,
 *      "connected":bool, "error":ERROR|null, "stream_count":N, "oldest_unarchived_ms":N|null, "streams":[STREAM, ...]}
 *
 *     STREAM: {"key":KEY, "match":"pattern or key of the configuration", "kind":"branded"|"plain", "ns":"EVT"|null, "state":STATE,
 *      "life":N, "incarnation":N, "watermark":ID|null, "custody":ID|null, "live_entries":N, "lag_entries":N, "lag_ms":N,
 *      "threshold":ID|null, "held_by":"nothing"|"retention"|"archive"|"group"|..., "held_name":"..."|null,
 *      "folded_entries":N, "folded_bytes":N, "trimmed_entries":N, "foreign_entries":N, "gap_entries":N, "late_entries":N,
 *      "epoch":N|null (of its marker, where an adoption raised it), "audit":AUDIT|null,
 *      "verdict":"clear"|..., "reason":"..."|null, "error":ERROR|null, "looked_ms_ago":N|null, "next_look_ms":N,
 *      "folded_at":INSTANT|null, "trimmed_at":INSTANT|null}
 *
 *     STATE is one of "new" (not looked at yet), "ok", "held" (the verdict stops it), "waiting" (its key is not there yet), "failing" (error says why), "ambiguous" (two patterns match; left alone).
 *     AUDIT, while one is pending: {"cause":"...", "since":INSTANT, "opened":bool, "position":ID, "through":ID, "equal":N, "absent":N, "conflict":N}
 *     ID: {"id":"1767225600002-7", "branded":"EVT..."|null, "instant":"2026-01-01T00:00:00.002Z"}
 *     ERROR: {"code":"SILT_ERR_...", "sentence":"...", "hint":"..."|null, "ms_ago":N (since when)} */
#ifndef SILT_REPORT_H
#define SILT_REPORT_H

#include <jansson.h>

#include "cycle.h"

struct silt_report_error {
    bool is_set;
    struct silt_err err;
    uint64_t since_ms; /* monotonic: when it began */
};

/* Copied out of a silt_work after a pass: values only, nothing borrowed. */
struct silt_report {
    bool looked; /* a pass has been here */
    bool ambiguous;
    bool held;    /* verdict not clear */
    bool awaited; /* held only because the key never was there: no finding */
    char reason[200];
    struct silt_namespace ns;
    uint64_t life, incarnation;
    bool folded_any;
    struct silt_wire_id watermark, custody, threshold;
    uint64_t live_length, lag_entries, lag_ms;
    enum silt_held_by held_by;
    char held_name[128];
    uint64_t folded_entries, folded_bytes, trimmed_entries, foreign_entries, gap_entries,
        late_entries;
    uint64_t folded_at_ms, trimmed_at_ms; /* server time; 0: never */
    enum silt_verdict verdict;
    struct silt_audit audit; /* while its verdict is pending */
    uint64_t verdict_at_ms;
    uint64_t epoch;
    uint64_t looked_ms; /* monotonic */
    struct silt_report_error error;
};

void silt_report_take(struct silt_report *report, const struct silt_work *work, uint64_t now_ms);
/* A failure that is new, or another than before: gives true (it is to be said). */
bool silt_report_fail(struct silt_report_error *error, enum silt_status status,
                      const struct silt_err *err, uint64_t now_ms);

/* New references, or NULL: out of memory. */
json_t *silt_report_json(const struct silt_report *report, struct silt_view key,
                         const struct silt_stream_config *config, uint64_t now_ms,
                         uint64_t next_look_ms);
json_t *silt_report_error_json(const struct silt_report_error *error, uint64_t now_ms);
json_t *silt_report_id(struct silt_wire_id id, struct silt_namespace ns);

#endif
