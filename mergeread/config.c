/* See config.h. A tree of nodes against the table of settings: every node must be a setting, once, of the right type; then what
 * contradicts each other. Each refusal names file, line and column. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloc.h"
#include "config_table.h"
#include "stream_key.h"

#define SYSTEM_FILE "/etc/silt/silt.yaml"

struct parse {
    const char *name;
    const struct silt_yaml *tree;
    struct silt_config *config;
    struct silt_err *err;
};

static SILT_PRINTF(3, 4) enum silt_status
    refuse(const struct parse *p, size_t node, const char *format, ...)
{
    char text[260];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const struct silt_yaml_node *at = &p->tree->nodes[node];
    return silt_fail(p->err, SILT_ERR_CONFIG, "%s:%u:%u: %s", p->name, at->line, at->column, text);
}

static enum silt_status apply_map(struct parse *p, const char *section, const char *path,
                                  size_t map, void *base);

static bool is_null(const struct parse *p, size_t node)
{
    struct silt_view text = silt_yaml_text(p->tree, node);
    return p->tree->nodes[node].plain &&
           (text.len == 0 || silt_view_equal(text, silt_view_str("~")) ||
            silt_view_equal(text, silt_view_str("null")));
}

/* Wrong kinds are refused where the value stands; a value that is missing, where its name stands. */
static enum silt_status check_kind(const struct parse *p, const struct silt_setting *setting,
                                   const char *path, size_t key, size_t value)
{
    enum silt_yaml_kind kind = p->tree->nodes[value].kind;
    if (kind == SILT_YAML_SCALAR && is_null(p, value))
        return refuse(p, key, "%s has no value", path);
    switch (setting->type) {
    case SILT_SETTING_SECTION:
        if (kind != SILT_YAML_MAP)
            return refuse(p, value, "%s takes settings of its own (name: value)", path);
        return SILT_OK;
    case SILT_SETTING_SECTIONS:
    case SILT_SETTING_TEXTS:
        if (kind != SILT_YAML_LIST) return refuse(p, value, "%s is a list", path);
        return SILT_OK;
    default:
        if (kind != SILT_YAML_SCALAR)
            return refuse(p, value, "%s takes one value, not a %s", path,
                          kind == SILT_YAML_MAP ? "block of settings" : "list");
        return SILT_OK;
    }
}

static enum silt_status apply_value(struct parse *p, const struct silt_setting *setting,
                                    const char *path, size_t value, void *base)
{
    struct silt_err inner = {0};
    enum silt_status status =
        silt_setting_store(setting, silt_yaml_text(p->tree, value), base, &inner);
    if (status == SILT_ERR_MEMORY) return silt_fail(p->err, SILT_ERR_MEMORY, NULL);
    if (status == SILT_OK) return SILT_OK;
    status = refuse(p, value, "%s: %s", path, inner.sentence);
    if (inner.hint[0]) silt_hint(p->err, "%s", inner.hint);
    return status;
}

static enum silt_status apply_texts(struct parse *p, const struct silt_setting *setting,
                                    const char *path, size_t list)
{
    for (size_t at = p->tree->nodes[list].first; at != SILT_YAML_NONE;
         at = p->tree->nodes[at].next) {
        if (p->tree->nodes[at].kind != SILT_YAML_SCALAR)
            return refuse(p, at, "%s is a list of addresses", path);
        enum silt_status status = apply_value(p, setting, path, at, NULL);
        if (status != SILT_OK) return status;
    }
    return SILT_OK;
}

/* What one stream's settings must not say together. */
static enum silt_status check_stream(const struct parse *p, size_t map,
                                     const struct silt_stream_config *stream)
{
    size_t match = silt_yaml_get(p->tree, map, "match");
    size_t fold = silt_yaml_get(p->tree, map, "fold");
    size_t limit = silt_yaml_get(p->tree, map, "group-limit");
    if (match == SILT_YAML_NONE)
        return refuse(p, map, "a stream needs `match`: a key or a pattern");
    if (!stream->is_pattern && silt_key_is_ours(stream->match))
        return refuse(p, match,
                      "streams.match: this is the name of a seam or claim key of silt's own");
    if (stream->fold == SILT_FOLD_ON_TRIM && !stream->keep.has_age && !stream->keep.has_entries &&
        !stream->keep.has_bytes)
        return refuse(p, fold, "fold: on-trim without keep would neither fold nor trim anything");
    if (limit != SILT_YAML_NONE && stream->groups == SILT_GROUPS_IGNORE)
        return refuse(p, limit, "group-limit contradicts groups: ignore, which holds for no group");
    if (stream->seam != SILT_SEAM_OFF && stream->claim == SILT_CLAIM_OFF)
        return refuse(p, silt_yaml_get(p->tree, map, "seam"),
                      "seam contradicts claim: off: without a claim nothing of ours is written");
    if (stream->seam != SILT_SEAM_OFF && stream->claim == SILT_CLAIM_KEY)
        return refuse(p, silt_yaml_get(p->tree, map, "seam"),
                      "seam goes with claim: group alone: the seam is moved by its script");
    if (stream->on_delete != SILT_DELETE_KEEP) {
        enum silt_status status =
            refuse(p, silt_yaml_get(p->tree, map, "on-delete"),
                   "on-delete: mark is not available yet, only on-delete: keep");
        silt_hint(p->err, "marking what others deleted comes with a later version");
        return status;
    }
    return SILT_OK;
}

static enum silt_status apply_streams(struct parse *p, const struct silt_setting *setting,
                                      size_t list)
{
    struct silt_config *config = p->config;
    size_t cap = 0;
    for (size_t at = p->tree->nodes[list].first; at != SILT_YAML_NONE;
         at = p->tree->nodes[at].next) {
        if (p->tree->nodes[at].kind != SILT_YAML_MAP)
            return refuse(p, at, "a stream is a block of settings that begins with `match`");
        void *streams = config->streams;
        if (silt_grow(&streams, &cap, config->stream_count + 1, sizeof *config->streams) != 0)
            return silt_fail(p->err, SILT_ERR_MEMORY, NULL);
        config->streams = streams;
        struct silt_stream_config *stream = &config->streams[config->stream_count++];
        memset(stream, 0, sizeof *stream);
        enum silt_status status = silt_settings_defaults(setting->inside, stream, p->err);
        if (status == SILT_OK) status = apply_map(p, setting->inside, setting->inside, at, stream);
        if (status == SILT_OK) status = check_stream(p, at, stream);
        if (status != SILT_OK) return status;
        size_t match = silt_yaml_get(p->tree, at, "match");
        stream->line = (int)p->tree->nodes[match].line;
        for (size_t i = 0; i + 1 < config->stream_count; i++)
            if (silt_view_equal(config->streams[i].match, stream->match))
                return refuse(p, match, "streams.match: the same %s stands in line %d already",
                              stream->is_pattern ? "pattern" : "key", config->streams[i].line);
    }
    return SILT_OK;
}

static enum silt_status apply_setting(struct parse *p, const struct silt_setting *setting,
                                      const char *path, size_t key, size_t value, void *base)
{
    enum silt_status status = check_kind(p, setting, path, key, value);
    if (status != SILT_OK) return status;
    switch (setting->type) {
    case SILT_SETTING_SECTION:
        if (setting->size && p->tree->nodes[value].first == SILT_YAML_NONE) {
            status = refuse(p, value, "%s names no limit", path);
            silt_hint(p->err, "leave the line out for no limit at all");
            return status;
        }
        return apply_map(p, setting->inside, path, value, (uint8_t *)base + setting->at);
    case SILT_SETTING_SECTIONS: return apply_streams(p, setting, value);
    case SILT_SETTING_TEXTS: return apply_texts(p, setting, path, value);
    default: return apply_value(p, setting, path, value, base);
    }
}

static enum silt_status check_twice(const struct parse *p, size_t map, size_t key)
{
    for (size_t at = p->tree->nodes[map].first; at != key;) {
        if (silt_view_equal(silt_yaml_text(p->tree, at), silt_yaml_text(p->tree, key))) {
            char shown[64];
            silt_escape(silt_yaml_text(p->tree, key), shown, sizeof shown);
            return refuse(p, key, "%s stands in line %u already", shown, p->tree->nodes[at].line);
        }
        at = p->tree->nodes[p->tree->nodes[at].next].next;
    }
    return SILT_OK;
}

static enum silt_status refuse_unknown(const struct parse *p, const char *section, const char *path,
                                       size_t key)
{
    char shown[64], known[200] = "";
    silt_escape(silt_yaml_text(p->tree, key), shown, sizeof shown);
    for (size_t i = 0; i < silt_setting_count; i++) {
        if (strcmp(silt_settings[i].section, section) != 0) continue;
        size_t len = strlen(known);
        snprintf(known + len, sizeof known - len, "%s%s", len ? ", " : "", silt_settings[i].name);
    }
    enum silt_status status = *path ? refuse(p, key, "%s has no setting %s", path, shown)
                                    : refuse(p, key, "there is no setting %s", shown);
    silt_hint(p->err, "known here: %s", known);
    return status;
}

static enum silt_status apply_map(struct parse *p, const char *section, const char *path,
                                  size_t map, void *base)
{
    for (size_t key = p->tree->nodes[map].first; key != SILT_YAML_NONE;) {
        size_t value = p->tree->nodes[key].next;
        char inner[96];
        if (p->tree->nodes[key].kind != SILT_YAML_SCALAR)
            return refuse(p, key, "the name of a setting is a word");
        enum silt_status status = check_twice(p, map, key);
        if (status != SILT_OK) return status;
        const struct silt_setting *setting =
            silt_setting_find(section, silt_yaml_text(p->tree, key));
        if (!setting) return refuse_unknown(p, section, path, key);
        snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "", setting->name);
        status = apply_setting(p, setting, inner, key, value, base);
        if (status != SILT_OK) return status;
        key = p->tree->nodes[value].next;
    }
    return SILT_OK;
}

static bool address_is_shaped(const char *address)
{
    static const char *const prefixes[] = {"tcp:", "tls:"};
    uint64_t port;
    if (strncmp(address, "unix:", 5) == 0) return address[5] != '\0';
    if (address[0] == '/') return true;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(address, prefixes[i], 4) == 0) address += 4;
    const char *colon = strrchr(address, ':');
    return colon && colon != address && silt_parse_u64(silt_view_str(colon + 1), &port) &&
           port > 0 && port < 65536;
}

static enum silt_status check_address(const struct parse *p)
{
    const struct silt_config *config = p->config;
    if (!config->address || address_is_shaped(config->address)) return SILT_OK;
    size_t valkey = silt_yaml_get(p->tree, p->tree->root, "valkey");
    enum silt_status status = refuse(p, silt_yaml_get(p->tree, valkey, "address"),
                                     "valkey.address: %.100s is not an address", config->address);
    silt_hint(p->err, "write unix:PATH, tcp:HOST:PORT or tls:HOST:PORT");
    return status;
}

static enum silt_status parse_tree(struct parse *p)
{
    enum silt_status status = silt_settings_defaults("", p->config, p->err);
    size_t root = p->tree->root;
    if (status != SILT_OK || root == SILT_YAML_NONE) return status;
    if (p->tree->nodes[root].kind == SILT_YAML_SCALAR && is_null(p, root)) return SILT_OK;
    if (p->tree->nodes[root].kind != SILT_YAML_MAP)
        return refuse(p, root, "a settings file consists of `name: value`");
    status = apply_map(p, "", "", root, p->config);
    return status == SILT_OK ? check_address(p) : status;
}

static void free_config(struct silt_config **config)
{
    silt_config_free(*config);
}

enum silt_status silt_config_parse(const char *name, struct silt_view text,
                                   struct silt_config **ret, struct silt_err *err)
{
    SILT_CLEANUP(silt_yaml_release) struct silt_yaml tree = {0};
    SILT_CLEANUP(free_config) struct silt_config *config = silt_calloc(1, sizeof *config);
    if (!config) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    struct parse p = {.name = name, .tree = &tree, .config = config, .err = err};
    enum silt_status status = silt_yaml_parse(name, text, &tree, err);
    if (status == SILT_OK) status = parse_tree(&p);
    if (status != SILT_OK) return status;
    *ret = SILT_TAKE(config);
    return SILT_OK;
}

static enum silt_status read_file(const char *path, struct silt_buf *ret, struct silt_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && ret->len <= SILT_YAML_TEXT_MAX) {
        if (silt_buf_reserve(ret, 65536) != SILT_OK) {
            close(fd);
            return silt_fail(err, SILT_ERR_MEMORY, NULL);
        }
        got = read(fd, ret->at + ret->len, 65536);
        if (got > 0) ret->len += (size_t)got;
    }
    int why = errno;
    if (fd >= 0) close(fd);
    if (got >= 0) return SILT_OK;
    enum silt_status status =
        silt_fail(err, SILT_ERR_CONFIG, "%s: cannot be read: %s", path,
                  strerror(why)); /* a configuration that is not there: exit 3 */
    silt_hint(err, "name another file with --config or SILT_CONFIG");
    return status;
}

enum silt_status silt_config_load(const char *path, struct silt_config **ret, struct silt_err *err)
{
    SILT_CLEANUP(silt_buf_release) struct silt_buf text = {0};
    SILT_CLEANUP(free_config) struct silt_config *config = NULL;
    const char *named = getenv("SILT_CONFIG");
    if (!path && named && *named) path = named;
    if (!path && access(SYSTEM_FILE, F_OK) == 0) path = SYSTEM_FILE;
    enum silt_status status = path ? read_file(path, &text, err) : SILT_OK;
    if (status == SILT_OK)
        status = silt_config_parse(path ? path : "defaults", silt_buf_view(&text), &config, err);
    if (status != SILT_OK) return status;
    if (path && !(config->path = silt_strdup(path))) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    *ret = SILT_TAKE(config);
    return SILT_OK;
}

void silt_config_free(struct silt_config *config)
{
    if (!config) return;
    for (size_t i = 0; i < config->stream_count; i++) {
        const uint8_t *match = config->streams[i].match.at;
        silt_free((void *)(uintptr_t)match);
    }
    silt_free(config->streams);
    silt_free(config->address);
    silt_free(config->user);
    silt_free(config->password_file);
    silt_free(config->tls_ca_file);
    silt_free(config->tls_cert_file);
    silt_free(config->tls_key_file);
    silt_free(config->archive_path);
    silt_free(config->control);
    silt_free(config->path);
    silt_free(config);
}

static enum silt_status replace_text(char **at, const char *text, struct silt_err *err)
{
    char *copy = silt_strdup(text);
    if (!copy) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    silt_free(*at);
    *at = copy;
    return SILT_OK;
}

enum silt_status silt_config_override(struct silt_config *config, const char *archive,
                                      const char *address, struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    if (archive && !*archive) return silt_fail(err, SILT_ERR_USAGE, "--archive: the path is empty");
    if (address && !address_is_shaped(address)) {
        status = silt_fail(err, SILT_ERR_ADDRESS, "--valkey: %.100s is not an address", address);
        silt_hint(err, "write unix:PATH, tcp:HOST:PORT or tls:HOST:PORT");
        return status;
    }
    if (archive) status = replace_text(&config->archive_path, archive, err);
    if (status == SILT_OK && address) status = replace_text(&config->address, address, err);
    return status;
}

enum silt_status silt_config_check_archiver(const struct silt_config *config, struct silt_err *err)
{
    const char *name = config->path ? config->path : "no configuration file";
    const char *what = NULL, *hint = NULL;
    if (!config->address) {
        what = "no server is named";
        hint = "write `address` under `valkey`, or use --valkey";
    } else if (!config->archive_path) {
        what = "no archive is named";
        hint = "write `path` under `archive`, or use --archive";
    } else if (config->stream_count == 0) {
        what = "no stream is named";
        hint = "write at least one `match` under `streams`";
    }
    if (!what) return SILT_OK;
    enum silt_status status = silt_fail(err, SILT_ERR_CONFIG, "%s: %s", name, what);
    silt_hint(err, "%s", hint);
    return status;
}

void silt_config_conn_options(const struct silt_config *config, struct silt_conn_options *ret)
{
    *ret = SILT_CONN_OPTIONS_DEFAULT;
    ret->address = config->address;
    ret->database = config->database;
    ret->user = config->user;
    ret->password_file = config->password_file;
    ret->tls_ca_file = config->tls_ca_file;
    ret->tls_cert_file = config->tls_cert_file;
    ret->tls_key_file = config->tls_key_file;
    ret->connect_timeout_ms = config->connect_timeout_ms;
    ret->command_timeout_ms = config->command_timeout_ms;
}

enum silt_match silt_config_match(const struct silt_config *config, struct silt_view key,
                                  const struct silt_stream_config **ret,
                                  const struct silt_stream_config **ret_other)
{
    const struct silt_stream_config *found = NULL;
    for (size_t i = 0; i < config->stream_count; i++)
        if (!config->streams[i].is_pattern && silt_view_equal(config->streams[i].match, key)) {
            *ret = &config->streams[i];
            return SILT_MATCH_ONE;
        }
    if (silt_key_is_ours(key)) return SILT_MATCH_NONE;
    for (size_t i = 0; i < config->stream_count; i++) {
        if (!config->streams[i].is_pattern || !silt_glob_match(config->streams[i].match, key))
            continue;
        if (found) {
            *ret = found;
            *ret_other = &config->streams[i];
            return SILT_MATCH_AMBIGUOUS;
        }
        found = &config->streams[i];
    }
    if (!found) return SILT_MATCH_NONE;
    *ret = found;
    return SILT_MATCH_ONE;
}
