/* See rig.h. */
#include "rig.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"
#include "format/alloc.h"
#include "format/store.h"

void rig_settings(struct rig *rig, const char *more, const char *streams)
{
    char text[4000];
    int len = snprintf(text, sizeof text,
                       "valkey: { address: \"%s\" }\narchive: { path: %s%s }\ncontrol: %s\n"
                       "streams:\n%s",
                       rig->server.address, rig->archive, more, rig->control, streams);
    test_file_write(rig->config, text, (size_t)len);
}

void rig_start(struct rig *rig, const char *more, const char *streams)
{
    memset(rig, 0, sizeof *rig);
    snprintf(rig->root, sizeof rig->root, "%s", test_path("root"));
    snprintf(rig->archive, sizeof rig->archive, "%s", test_path("root/archive"));
    snprintf(rig->journal, sizeof rig->journal, "%s", test_path("journal"));
    snprintf(rig->config, sizeof rig->config, "%s", test_path("silt.yaml"));
    snprintf(rig->control, sizeof rig->control, "%s", test_path("c.sock"));
    if (mkdir(rig->root, 0755) != 0) test_die("mkdir %s", rig->root);
    test_server_start(&rig->server, NULL);
    rig_settings(rig, more, streams);
}

void rig_release(struct rig *rig)
{
    test_server_release(&rig->server);
}

static const char *const *environment_of(struct rig *rig, bool under, const char *fault)
{
    static const char *bare[2];
    unlink(rig->journal);
    bare[0] = fault;
    if (!under) return bare;
    return case_env(rig->root, rig->journal, fault, (char *)NULL);
}

void rig_siltd(struct rig *rig, bool under, const char *fault)
{
    const char *argv[] = {"siltd", "--config", rig->config, NULL};
    test_child_start(&rig->child, argv, environment_of(rig, under, fault));
}

void rig_once(struct rig *rig, bool under, const char *fault, struct test_outcome *ret)
{
    const char *argv[] = {"siltd", "--config", rig->config, "--once", NULL};
    test_program(ret, argv, environment_of(rig, under, fault), NULL, 60000);
}

int rig_end(struct rig *rig, int signal)
{
    struct test_outcome outcome = {0};
    if (signal) test_child_signal(&rig->child, signal);
    test_child_wait(&rig->child, 20000, &outcome);
    int code = outcome.timed_out ? -2 : outcome.code;
    if (getenv("KEEP")) fprintf(stderr, "%s", outcome.err);
    test_outcome_release(&outcome);
    return code;
}

char *rig_log(const struct rig *rig)
{
    return test_child_err(&rig->child);
}

bool rig_has_said(const struct rig *rig, const char *words)
{
    char *log = rig_log(rig);
    bool said = strstr(log, words) != NULL;
    free(log);
    return said;
}

/* ---- entries ---- */

static const char add_script[] =
    "for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do local n, t = string.format('%d', i), {} "
    "for j = 1, i % 20 do t[j] = string.format('%d,', ((i * 7919 + j * 104729) * 31337) % 1000003) "
    "end redis.call('XADD', KEYS[1], n .. '-1', 'n', n, 'text', table.concat(t)) end";

void rig_add(struct rig *rig, const char *key, uint64_t from, uint64_t to)
{
    test_cmd(&rig->server, "EVAL %s 1 %s %llu %llu", add_script, key, (unsigned long long)from,
             (unsigned long long)to);
}

static void due_text(uint64_t n, char ret_n[24], char ret_text[200])
{
    size_t len = 0;
    snprintf(ret_n, 24, "%" PRIu64, n);
    ret_text[0] = 0;
    for (uint64_t j = 1; j <= n % 20; j++)
        len += (size_t)snprintf(ret_text + len, 200 - len, "%" PRIu64 ",",
                                (n * 7919 + j * 104729) * 31337 % 1000003);
}

static bool is_due(const struct silt_entry *entry, uint64_t n)
{
    char number[24], text[200];
    due_text(n, number, text);
    return entry->id.ms == n && entry->id.seq == 1 && entry->field_count == 2 &&
           silt_view_equal(entry->fields[0].name, silt_view_str("n")) &&
           silt_view_equal(entry->fields[0].value, silt_view_str(number)) &&
           silt_view_equal(entry->fields[1].name, silt_view_str("text")) &&
           silt_view_equal(entry->fields[1].value, silt_view_str(text));
}

long long rig_length(struct rig *rig, const char *key)
{
    return test_cmd_int(&rig->server, "XLEN %s", key);
}

uint64_t rig_first(struct rig *rig, const char *key)
{
    const redisReply *reply = test_cmd(&rig->server, "XRANGE %s - + COUNT 1", key);
    return reply->elements ? strtoull(reply->element[0]->element[0]->str, NULL, 10) : 0;
}

/* ---- what is archived ---- */

static bool take_segment(struct silt_segment *segment, uint64_t *count, char wrong[200])
{
    for (size_t i = 0; i < silt_segment_count(segment); i++) {
        struct silt_entry entry;
        silt_segment_entry(segment, i, &entry);
        if (!is_due(&entry, *count + 1)) {
            snprintf(wrong, 200, "entry %" PRIu64 " was due, %" PRIu64 " came", *count + 1,
                     entry.id.ms);
            return false;
        }
        ++*count;
    }
    return true;
}

static uint64_t count_entries(struct silt_store *store, const struct silt_stream *stream,
                              char wrong[200])
{
    uint64_t count = 0;
    SILT_CLEANUP(silt_buf_release) struct silt_buf value = {0};
    struct silt_segment_info info;
    struct silt_segment *segment = NULL;
    struct silt_wire_id at = SILT_WIRE_ID_MIN;
    struct silt_err err = {0};
    enum silt_status status = silt_segment_new(&segment);
    while (status == SILT_OK) {
        status = silt_store_segment(store, stream->row.life, stream->row.ns, at, SILT_SEEK_FORWARD,
                                    &value, &info, &err);
        if (status == SILT_OK) status = silt_segment_open(segment, silt_buf_view(&value), &err);
        if (status == SILT_OK && !take_segment(segment, &count, wrong)) break;
        if (status == SILT_OK && !silt_wire_id_next(info.last, &at)) break;
    }
    if (status != SILT_OK && status != SILT_END) snprintf(wrong, 200, "%.190s", err.sentence);
    silt_segment_free(segment);
    if (!wrong[0] && stream->row.folded_any && stream->row.watermark.ms > count)
        snprintf(wrong, 200, "the watermark promises %" PRIu64 ", there are %" PRIu64,
                 stream->row.watermark.ms, count);
    return count;
}

uint64_t rig_archived(const char *archive, const char *key, char ret_wrong[200])
{
    struct silt_store *store = NULL;
    SILT_CLEANUP(silt_stream_release) struct silt_stream stream = {0};
    struct silt_err err = {0};
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    uint64_t count = 0;
    ret_wrong[0] = 0;
    enum silt_status status = silt_store_open(archive, &options, &store, &err);
    if (status == SILT_ERR_NO_ARCHIVE) return 0;
    if (status == SILT_OK) status = silt_store_stream(store, silt_view_str(key), &stream, &err);
    if (status == SILT_OK)
        count = count_entries(store, &stream, ret_wrong);
    else if (status != SILT_ERR_UNKNOWN_STREAM)
        snprintf(ret_wrong, 200, "%.190s", err.sentence);
    silt_store_close(store);
    return count;
}

const char *rig_history(struct rig *rig, const char *key, uint64_t n)
{
    static char wrong[300];
    uint64_t count = rig_archived(rig->archive, key, wrong);
    if (wrong[0]) return wrong;
    const redisReply *reply = test_cmd(&rig->server, "XRANGE %s - +", key);
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *pairs = reply->element[i]->element[1];
        uint64_t number = strtoull(reply->element[i]->element[0]->str, NULL, 10);
        if (number <= count) continue;
        struct silt_field fields[2];
        struct silt_entry entry = {{number, 1}, fields, pairs->elements / 2};
        for (size_t f = 0; f < 2 && f < entry.field_count; f++)
            fields[f] = (struct silt_field){
                silt_view(pairs->element[2 * f]->str, pairs->element[2 * f]->len),
                silt_view(pairs->element[2 * f + 1]->str, pairs->element[2 * f + 1]->len)};
        if (!is_due(&entry, count + 1)) {
            snprintf(wrong, sizeof wrong, "%s: entry %" PRIu64 " is due, %" PRIu64 " is live", key,
                     count + 1, number);
            return wrong;
        }
        count++;
    }
    if (count != n)
        snprintf(wrong, sizeof wrong, "%s: %" PRIu64 " of %" PRIu64 " entries", key, count, n);
    return wrong;
}

/* ---- commands ---- */

#define WORDS 8

/* One command in the server's form: its first words. Gives its length; 0: it is not whole. */
static size_t read_command(const char *bytes, size_t len, char words[WORDS][256])
{
    size_t at = 0, count = 0;
    for (size_t i = 0; i < WORDS; i++)
        words[i][0] = 0;
    if (len == 0 || bytes[0] != '*') return 0;
    count = strtoul(bytes + 1, NULL, 10);
    for (size_t i = 0; i <= count; i++) {
        const char *end = memchr(bytes + at, '\n', len - at);
        if (!end) return 0;
        size_t size = i == 0 ? 0 : strtoul(bytes + at + 1, NULL, 10);
        at = (size_t)(end - bytes) + 1;
        if (i == 0) continue;
        if (len - at < size + 2) return 0;
        if (i <= WORDS)
            snprintf(words[i - 1], 256, "%.*s", (int)(size < 255 ? size : 255), bytes + at);
        at += size + 2;
    }
    return at;
}

void rig_trims(const char *bytes, size_t len, rig_trim *take, void *context)
{
    static char words[WORDS][256];
    for (size_t size; (size = read_command(bytes, len, words)) > 0; bytes += size, len -= size) {
        if (strcmp(words[0], "XTRIM") == 0 || strcmp(words[0], "XDEL") == 0)
            test_die("a bare %s", words[0]); /* not in these tests' configurations */
        if (strcmp(words[0], "EVALSHA") != 0 && strcmp(words[0], "EVAL") != 0) continue;
        uint64_t threshold = strtoull(words[5], NULL, 10);
        if (strcmp(words[5], "0-0") != 0) take(context, words[3], threshold);
    }
}
