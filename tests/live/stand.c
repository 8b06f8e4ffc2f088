/* The stand of stand.h. */
#include "stand.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool asked_to_stop(void *context)
{
    return ((struct stand *)context)->cancel;
}

static void read_config(struct stand *stand, const char *streams)
{
    char text[8192];
    struct silt_err err = {0};
    snprintf(
        text, sizeof text,
        "valkey: { address: \"%s\" }\narchive: { path: \"%s\" }\npage: { entries: 7 }\nstreams:\n%s\n",
        stand->server.address, stand->archive, streams);
    silt_config_free(stand->config);
    stand->config = NULL;
    if (silt_config_parse("stand", silt_view_str(text), &stand->config, &err) != SILT_OK)
        test_die("%s", err.sentence);
}

void stand_open(struct stand *stand, const char *streams)
{
    struct silt_err err = {0};
    if (streams) read_config(stand, streams);
    if (silt_archiver_new(stand->config, asked_to_stop, stand, &stand->archiver, &err) != SILT_OK)
        test_die("%s", err.sentence);
    for (size_t i = 0; i < stand->config->stream_count; i++) {
        const struct silt_stream_config *stream = &stand->config->streams[i];
        if (stream->is_pattern) continue;
        if (silt_archiver_work(stand->archiver, stream->match, stream,
                               &stand->works[stand->work_count++], &err) != SILT_OK)
            test_die("%s", err.sentence);
    }
}

void stand_close(struct stand *stand)
{
    for (size_t i = 0; i < stand->work_count; i++)
        silt_work_free(stand->works[i]);
    stand->work_count = 0;
    silt_archiver_free(stand->archiver);
    stand->archiver = NULL;
}

void stand_start(struct stand *stand, const char *streams)
{
    if (!stand->archive[0])
        snprintf(stand->archive, sizeof stand->archive, "%s", test_path("archive"));
    test_server_start(&stand->server, "--enable-debug-command", "yes", NULL);
    stand_open(stand, streams);
}

void stand_release(struct stand *stand)
{
    stand_close(stand);
    silt_config_free(stand->config);
    stand->config = NULL;
    test_server_release(&stand->server);
}

enum silt_status stand_pass(struct stand *stand)
{
    stand->err = (struct silt_err){0};
    return silt_archiver_pass(stand->archiver, stand->works, stand->work_count, &stand->err);
}

static bool is_done(const struct stand *stand)
{
    for (size_t i = 0; i < stand->work_count; i++)
        if (stand->works[i]->status == SILT_OK && !stand->works[i]->settled) return false;
    return true;
}

enum silt_status stand_run(struct stand *stand)
{
    for (int i = 0; i < 200; i++) {
        enum silt_status status = stand_pass(stand);
        if (status != SILT_OK || is_done(stand)) return status;
    }
    test_die("200 passes and no end");
}

static void run_as_child(struct stand *stand)
{
    stand->archiver = NULL;
    stand->work_count = 0;
    stand_open(stand, NULL);
    stand->archiver->limits = (struct silt_cycle_limits){.fold_entries = 16,
                                                         .fold_bytes = 1u << 20,
                                                         .trim_step = 6,
                                                         .audit_entries = 5,
                                                         .audit_save = 10};
    enum silt_status status = stand_run(stand);
    for (size_t i = 0; i < stand->work_count && status == SILT_OK; i++)
        status = stand->works[i]->status;
    if (status != SILT_OK) fprintf(stderr, "child: %s\n", silt_status_sentence(status));
    stand_close(stand);
    _exit(status == SILT_OK ? 0 : 3);
}

pid_t stand_child_start(struct stand *stand, const char *setting)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0) test_die("fork failed");
    if (pid > 0) return pid;
    test_die_with_parent(parent);
    if (setting) putenv(strdup(setting));
    run_as_child(stand);
    return 0;
}

int stand_child_wait(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) != pid)
        continue;
    return status;
}

int stand_child(struct stand *stand, const char *setting)
{
    return stand_child_wait(stand_child_start(stand, setting));
}

void stand_add(struct stand *stand, const char *key, struct test_oracle *oracle, uint64_t from,
               uint64_t to)
{
    for (uint64_t ms = from; ms <= to; ms++) {
        char id[32], value[32];
        snprintf(id, sizeof id, "%llu-0", (unsigned long long)ms);
        snprintf(value, sizeof value, "value %llu", (unsigned long long)ms);
        test_cmd(&stand->server, "XADD %s %s n %s kind plain", key, id, value);
        if (oracle)
            test_oracle_add_text(oracle, (struct silt_wire_id){ms, 0}, "n", value, "kind", "plain",
                                 (char *)NULL);
    }
}

/* ---- reading the archive with a handle of its own ---- */

static struct silt_store *open_store(const struct stand *stand)
{
    struct silt_store_options options = SILT_STORE_OPTIONS_DEFAULT;
    struct silt_store *store = NULL;
    struct silt_err err = {0};
    enum silt_status status = silt_store_open(stand->archive, &options, &store, &err);
    if (status == SILT_ERR_NO_ARCHIVE) return NULL;
    if (status != SILT_OK) test_die("%s", err.sentence);
    return store;
}

static bool read_row(struct silt_store *store, const char *key, struct silt_stream *ret)
{
    struct silt_err err = {0};
    enum silt_status status = silt_store_stream(store, silt_view_str(key), ret, &err);
    if (status == SILT_ERR_UNKNOWN_STREAM) return false;
    if (status != SILT_OK) test_die("%s", err.sentence);
    return true;
}

const struct silt_stream_row *stand_row(struct stand *stand, const char *key)
{
    static struct silt_stream stream;
    struct silt_store *store = open_store(stand);
    if (!store) return NULL;
    bool found = read_row(store, key, &stream);
    silt_store_close(store);
    return found ? &stream.row : NULL;
}

typedef void each_entry(void *context, const struct silt_entry *entry);

/* Segment by segment, as stored. Gives how many. */
static size_t each_archived(struct stand *stand, const char *key, each_entry *each, void *context)
{
    struct silt_store *store = open_store(stand);
    struct silt_stream stream = {0};
    struct silt_segment *segment = NULL;
    struct silt_buf value = {0};
    struct silt_segment_info info;
    struct silt_wire_id at = SILT_WIRE_ID_MIN;
    struct silt_err err = {0};
    size_t count = 0;
    if (!store) return 0;
    if (silt_segment_new(&segment) != SILT_OK) test_die("no memory");
    bool more = read_row(store, key, &stream);
    while (more && silt_store_segment(store, stream.row.life, stream.row.ns, at, SILT_SEEK_FORWARD,
                                      &value, &info, &err) == SILT_OK) {
        if (silt_segment_open(segment, silt_buf_view(&value), &err) != SILT_OK)
            test_die("%s", err.sentence);
        for (size_t i = 0; i < silt_segment_count(segment); i++, count++) {
            struct silt_entry entry;
            silt_segment_entry(segment, i, &entry);
            if (each) each(context, &entry);
        }
        more = silt_wire_id_next(info.last, &at);
    }
    if (err.code != SILT_OK) test_die("%s", err.sentence);
    silt_segment_free(segment);
    silt_buf_release(&value);
    silt_stream_release(&stream);
    silt_store_close(store);
    return count;
}

size_t stand_archived(struct stand *stand, const char *key)
{
    return each_archived(stand, key, NULL, NULL);
}

struct merge {
    struct test_walk walk;
    struct silt_wire_id last;
};

static void take(void *context, const struct silt_entry *entry)
{
    struct merge *merge = context;
    test_walk_take(&merge->walk, entry);
    merge->last = entry->id;
}

static void take_live(struct stand *stand, const char *key, struct merge *merge)
{
    char from[SILT_WIRE_ID_TEXT + 1] = "-";
    if (!silt_wire_id_is_zero(merge->last)) {
        from[0] = '(';
        silt_wire_id_format(merge->last, from + 1);
    }
    const redisReply *reply = test_cmd(&stand->server, "XRANGE %s %s +", key, from);
    for (size_t i = 0; i < reply->elements; i++) {
        struct silt_field fields[64];
        const redisReply *id = reply->element[i]->element[0],
                         *pairs = reply->element[i]->element[1];
        struct silt_entry entry = {.fields = fields, .field_count = pairs->elements / 2};
        if (entry.field_count > 64 ||
            silt_wire_id_parse(silt_view(id->str, id->len), &entry.id, NULL) != SILT_OK)
            test_die("not an entry");
        for (size_t j = 0; j < entry.field_count; j++)
            fields[j] = (struct silt_field){
                silt_view(pairs->element[2 * j]->str, pairs->element[2 * j]->len),
                silt_view(pairs->element[2 * j + 1]->str, pairs->element[2 * j + 1]->len)};
        take(merge, &entry);
    }
}

static const char *compare(struct stand *stand, const char *key, const struct test_oracle *oracle,
                           bool live)
{
    static struct merge merge;
    merge = (struct merge){0};
    test_walk_start(&merge.walk, oracle, SILT_WIRE_ID_MIN, SILT_WIRE_ID_MAX, false);
    each_archived(stand, key, take, &merge);
    if (live) take_live(stand, key, &merge);
    test_walk_finish(&merge.walk, 0);
    return merge.walk.difference;
}

const char *stand_difference(struct stand *stand, const char *key, const struct test_oracle *oracle)
{
    return compare(stand, key, oracle, true);
}

const char *stand_archive_difference(struct stand *stand, const char *key,
                                     const struct test_oracle *oracle)
{
    return compare(stand, key, oracle, false);
}

bool stand_gap(struct stand *stand, const char *key, size_t n, struct silt_gap_row *ret)
{
    struct silt_store *store = open_store(stand);
    struct silt_stream stream = {0};
    struct silt_err err = {0};
    uint64_t cursor = 0;
    enum silt_status status = SILT_END;
    if (!store) return false;
    if (read_row(store, key, &stream)) {
        status = SILT_OK;
        for (size_t i = 0; i <= n && status == SILT_OK; i++)
            status = silt_store_gap_after(store, stream.row.life, &cursor, ret, &err);
    }
    silt_stream_release(&stream);
    silt_store_close(store);
    if (status != SILT_OK && status != SILT_END) test_die("%s", err.sentence);
    return status == SILT_OK;
}

const char *stand_marker(struct stand *stand, const char *key, char ret_at[SILT_WIRE_ID_TEXT])
{
    static char name[128];
    const redisReply *reply = test_cmd(&stand->server, "XINFO GROUPS %s", key);
    name[0] = ret_at[0] = 0;
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *group = reply->element[i];
        for (size_t j = 0; j + 1 < group->elements; j += 2) {
            const char *field = group->element[j]->str, *value = group->element[j + 1]->str;
            if (strcmp(field, "name") == 0 && strncmp(value, "silt:", 5) != 0) break;
            if (strcmp(field, "name") == 0) snprintf(name, sizeof name, "%s", value);
            if (strcmp(field, "last-delivered-id") == 0)
                snprintf(ret_at, SILT_WIRE_ID_TEXT, "%s", value);
        }
    }
    return name;
}
