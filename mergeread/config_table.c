/* See config_table.h. Here stand all settings, and how a value of each type is read from its text. */
#include "config_table.h"

#include <inttypes.h>
#include <stdio.h>

#include "alloc.h"
#include "instant.h"

static const char *const fold_words[] = {"continuous", "on-trim", NULL};
static const char *const groups_words[] = {"hold", "ignore", NULL};
static const char *const foreign_words[] = {"keep", "hold", NULL};
static const char *const delete_words[] = {"keep", "mark", NULL};
static const char *const seam_words[] = {"off", "best-effort", "strict", NULL};
static const char *const claim_words[] = {"group", "key", "off", NULL};
static const char *const format_words[] = {"logfmt", "json", NULL};
static const char *const level_words[] = {"error", "warn", "info", "debug", NULL};

#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)
#define SECOND 1000ULL
#define HOUR (3600 * SECOND)
#define EVER (100ULL * 366 * 24 * HOUR)
#define LARGE (UINT64_MAX / 2)

#define IN(type, member) \
    .at = offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)
#define FLAG(member) .flag = offsetof(struct silt_keep, member) + 1

/* The order is that of the sample file and the man page. */
const struct silt_setting silt_settings[] = {
    {"", "valkey", SILT_SETTING_SECTION, "valkey", .help = "the server, and how to reach it"},
    {"valkey", "address", SILT_SETTING_TEXT, IN(silt_config, address),
     .sample = "unix:/run/valkey/valkey.sock",
     .help = "unix:PATH, tcp:HOST:PORT or tls:HOST:PORT (tls: where silt was built with OpenSSL)"},
    {"valkey", "database", SILT_SETTING_COUNT, IN(silt_config, database), .fallback = "0",
     .max = INT32_MAX, .help = "the number of the database"},
    {"valkey", "user", SILT_SETTING_TEXT, IN(silt_config, user), .sample = "silt",
     .sample_off = true,
     .help = "the user to authenticate as; without it the server's default user"},
    {"valkey", "password-file", SILT_SETTING_TEXT, IN(silt_config, password_file),
     .sample = "/etc/silt/password", .sample_off = true,
     .help = "a file with the password alone; read again at every connect"},
    {"valkey", "tls-ca-file", SILT_SETTING_TEXT, IN(silt_config, tls_ca_file),
     .sample = "/etc/silt/ca.pem", .sample_off = true,
     .help =
         "the certificates to trust, for tls: addresses; without it the system's; read again at every connect"},
    {"valkey", "tls-cert-file", SILT_SETTING_TEXT, IN(silt_config, tls_cert_file),
     .sample = "/etc/silt/silt.pem", .sample_off = true,
     .help =
         "a certificate of our own, for a server that asks its clients for one; read again at every connect"},
    {"valkey", "tls-key-file", SILT_SETTING_TEXT, IN(silt_config, tls_key_file),
     .sample = "/etc/silt/silt.key", .sample_off = true,
     .help = "the key of that certificate; without it in the same file"},
    {"valkey", "connect-timeout", SILT_SETTING_DURATION, IN(silt_config, connect_timeout_ms),
     .fallback = "5s", .min = 1, .max = HOUR, .help = "how long connecting may take"},
    {"valkey", "command-timeout", SILT_SETTING_DURATION, IN(silt_config, command_timeout_ms),
     .fallback = "10s", .min = 1, .max = HOUR,
     .help = "how long an answer may take; then the connection is closed"},

    {"", "archive", SILT_SETTING_SECTION, "archive", .help = "where the history is kept"},
    {"archive", "path", SILT_SETTING_TEXT, IN(silt_config, archive_path), .sample = "/var/lib/silt",
     .help = "the directory of the archive"},
    {"archive", "map-limit", SILT_SETTING_BYTES, IN(silt_config, map_limit_bytes),
     .fallback = "1TiB", .min = MIB, .max = 64 * TIB,
     .help = "address space the archive may grow to; reserves no disk"},
    {"archive", "keep", SILT_SETTING_SECTION, "keep", IN(silt_config, archive_keep),
     .sample = "{ age: 365d }", .sample_off = true,
     .help =
         "how much history is to be kept; without it all of it (nothing is expired yet: only checked)"},
    {"archive", "level", SILT_SETTING_COUNT, IN(silt_config, level), .fallback = "3", .min = 1,
     .max = 19, .help = "the level of zstd"},

    {"", "page", SILT_SETTING_SECTION, "page", .help = "how much one XRANGE may fetch"},
    {"page", "entries", SILT_SETTING_COUNT, IN(silt_config, page_entries), .fallback = "1000",
     .min = 1, .max = 100000, .help = "at most so many entries"},
    {"page", "bytes", SILT_SETTING_BYTES, IN(silt_config, page_bytes), .fallback = "4MiB",
     .min = 4 * KIB, .max = GIB, .help = "and about so many bytes"},

    {"", "control", SILT_SETTING_TEXT, IN(silt_config, control), .sample = "/run/silt/control.sock",
     .help =
         "the socket on which silt asks siltd: status, sync, adopt, release (mode 0600); without it none"},
    {"", "idle-look", SILT_SETTING_DURATION, IN(silt_config, idle_look_ms), .fallback = "30s",
     .min = 100, .max = 24 * HOUR,
     .help = "a quiet stream is looked at less and less often, up to this"},

    {"", "log", SILT_SETTING_SECTION, "log", .help = "what siltd says on stderr"},
    {"log", "format", SILT_SETTING_WORD, IN(silt_config, log_json), .fallback = "logfmt",
     .words = format_words, .help = "one line an event"},
    {"log", "level", SILT_SETTING_WORD, IN(silt_config, log_level), .fallback = "info",
     .words = level_words, .help = "the least that is written"},

    {"", "streams", SILT_SETTING_SECTIONS, "streams", IN(silt_config, streams),
     .help =
         "what to archive; an exact key beats a pattern, and a stream that two patterns match is left alone"},
    {"streams", "match", SILT_SETTING_MATCH, IN(silt_stream_config, match),
     .sample = "\"emq:{*}:stream:*\"",
     .help =
         "a key, or a pattern as the server's SCAN knows them (* ? [a-c] \\; braces are literal)"},
    {"streams", "ids", SILT_SETTING_IDS, IN(silt_stream_config, ns), .fallback = "wire",
     .sample = "branded EVT",
     .help =
         "branded NS: entries carry a branded id of that namespace as their id field; wire: any other stream"},
    {"streams", "keep", SILT_SETTING_SECTION, "keep", IN(silt_stream_config, keep),
     .sample = "{ age: 7d, entries: 1000000 }",
     .help =
         "what stays live: an entry stays while every limit given allows it; without it nothing is ever trimmed"},
    {"streams", "fold", SILT_SETTING_WORD, IN(silt_stream_config, fold), .fallback = "continuous",
     .words = fold_words,
     .help = "continuous: everything is archived within fold-delay; on-trim: only what must go"},
    {"streams", "fold-delay", SILT_SETTING_DURATION, IN(silt_stream_config, fold_delay_ms),
     .fallback = "1s", .max = HOUR,
     .help = "how long news may wait for company before it is folded"},
    {"streams", "groups", SILT_SETTING_WORD, IN(silt_stream_config, groups), .fallback = "hold",
     .words = groups_words,
     .help = "hold: nothing is trimmed that a consumer group has not acknowledged"},
    {"streams", "group-limit", SILT_SETTING_SECTION, "group-limit",
     IN(silt_stream_config, group_limit), .sample = "{ age: 7d }", .sample_off = true,
     .help = "how far behind a group may be before it no longer holds"},
    {"streams", "on-foreign", SILT_SETTING_WORD, IN(silt_stream_config, on_foreign),
     .fallback = "keep", .words = foreign_words,
     .help =
         "an entry of a branded stream without a valid id field; keep: archived and marked; hold: the stream stops there"},
    {"streams", "on-delete", SILT_SETTING_WORD, IN(silt_stream_config, on_delete),
     .fallback = "keep", .words = delete_words,
     .help =
         "an entry deleted by others after it was archived; keep: it stays in the history; mark: not available yet"},
    {"streams", "seam", SILT_SETTING_WORD, IN(silt_stream_config, seam), .fallback = "off",
     .words = seam_words,
     .help =
         "whether the watermark is written beside the stream, for readers without the archive; strict: else no trim"},
    {"streams", "claim", SILT_SETTING_WORD, IN(silt_stream_config, claim), .fallback = "group",
     .words = claim_words,
     .help =
         "how the stream is marked as ours; group: an empty consumer group in it; key: a key beside it; off: not at all; "
         "key and off need neither scripts nor xgroup, and are slower: every step is audited"},

    {"keep", "age", SILT_SETTING_DURATION, IN(silt_keep, age_ms), FLAG(has_age), .min = 1,
     .max = EVER, .help = "not older than this"},
    {"keep", "entries", SILT_SETTING_COUNT, IN(silt_keep, entries), FLAG(has_entries), .min = 1,
     .max = LARGE,
     .help =
         "not more than so many archived ones; those that others deleted since count, so fewer may be live"},
    {"keep", "bytes", SILT_SETTING_BYTES, IN(silt_keep, bytes), FLAG(has_bytes), .min = 1,
     .max = LARGE, .help = "not more than so many bytes of names and values"},
    {"group-limit", "age", SILT_SETTING_DURATION, IN(silt_keep, age_ms), FLAG(has_age), .min = 1,
     .max = EVER, .help = "its first wanted entry is not older than this"},
    {"group-limit", "entries", SILT_SETTING_COUNT, IN(silt_keep, entries), FLAG(has_entries),
     .min = 1, .max = LARGE, .help = "it wants not more than so many"},

    {"", "serve", SILT_SETTING_SECTION, "serve", .sample = "",
     .help = "for silt-serve; siltd only checks its shape"},
    {"serve", "resp", SILT_SETTING_TEXTS, .sample = "",
     .help = "addresses to serve the server's own protocol on"},
    {"serve", "http", SILT_SETTING_TEXTS, .sample = "", .help = "addresses to serve HTTP on"},
};
const size_t silt_setting_count = sizeof silt_settings / sizeof silt_settings[0];

const struct silt_setting *silt_setting_find(const char *section, struct silt_view name)
{
    for (size_t i = 0; i < silt_setting_count; i++)
        if (strcmp(silt_settings[i].section, section) == 0 &&
            silt_view_equal(silt_view_str(silt_settings[i].name), name))
            return &silt_settings[i];
    return NULL;
}

static void put_number(const struct silt_setting *setting, uint64_t value, void *base)
{
    uint8_t *at = (uint8_t *)base + setting->at;
    uint32_t narrow = (uint32_t)value;
    if (setting->size == sizeof(bool))
        *(bool *)(void *)at = value != 0;
    else if (setting->size == sizeof narrow)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &value, sizeof value);
    if (setting->flag) *((bool *)base + setting->flag - 1) = true;
}

static bool parse_bytes(struct silt_view text, uint64_t *ret)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"KiB", KIB},
                 {"MiB", MIB},
                 {"GiB", GIB},
                 {"TiB", TIB},
                 {"kB", 1000},
                 {"KB", 1000},
                 {"MB", 1000000},
                 {"GB", 1000000000},
                 {"TB", 1000000000000ULL}};
    size_t digits = 0;
    uint64_t number;
    while (digits < text.len && text.at[digits] >= '0' && text.at[digits] <= '9')
        digits++;
    if (!silt_parse_u64(silt_view(text.at, digits), &number)) return false;
    while (digits < text.len && text.at[digits] == ' ')
        digits++;
    struct silt_view unit = silt_view(text.at + digits, text.len - digits);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (silt_view_equal(unit, silt_view_str(units[i].name)))
            return !__builtin_mul_overflow(number, units[i].factor, ret);
    return false;
}

static void show_number(const struct silt_setting *setting, uint64_t value, char ret[48])
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    if (setting->type == SILT_SETTING_DURATION) {
        silt_duration_format(value, ret);
        return;
    }
    while (setting->type == SILT_SETTING_BYTES && unit < 4 && value >= KIB && value % KIB == 0) {
        value /= KIB;
        unit++;
    }
    snprintf(ret, 48, "%" PRIu64 "%s", value, units[unit]);
}

static enum silt_status store_number(const struct silt_setting *setting, struct silt_view text,
                                     void *base, struct silt_err *err)
{
    static const char *const kinds[] = {[SILT_SETTING_COUNT] = "a whole number",
                                        [SILT_SETTING_BYTES] = "a size such as 512MiB",
                                        [SILT_SETTING_DURATION] =
                                            "a duration such as 90s, 36h or 7d"};
    char shown[64], low[48], high[48];
    uint64_t value = 0;
    bool good = false;
    silt_escape(text, shown, sizeof shown);
    if (text.len > 1 && text.at[0] == '-' && text.at[1] >= '0' && text.at[1] <= '9')
        return silt_fail(err, SILT_ERR_CONFIG, "%s is negative", shown);
    switch (setting->type) {
    case SILT_SETTING_COUNT: good = silt_parse_u64(text, &value); break;
    case SILT_SETTING_BYTES: good = parse_bytes(text, &value); break;
    default: good = silt_duration_parse(text, &value, NULL) == SILT_OK; break;
    }
    if (!good) return silt_fail(err, SILT_ERR_CONFIG, "%s is not %s", shown, kinds[setting->type]);
    if (value < setting->min || value > setting->max) {
        show_number(setting, setting->min, low);
        show_number(setting, setting->max, high);
        enum silt_status status =
            setting->max >= LARGE || setting->max == EVER
                ? silt_fail(err, SILT_ERR_CONFIG, "%s is out of range, %s is the least", shown, low)
                : silt_fail(err, SILT_ERR_CONFIG, "%s is out of range, %s to %s", shown, low, high);
        if (value == 0 && setting->flag)
            silt_hint(err,
                      "leave the line out for no limit; the newest entry stays live in any case");
        return status;
    }
    put_number(setting, value, base);
    return SILT_OK;
}

static enum silt_status store_word(const struct silt_setting *setting, struct silt_view text,
                                   void *base, struct silt_err *err)
{
    char shown[64], words[96] = "";
    for (size_t i = 0; setting->words[i]; i++) {
        if (silt_view_equal(text, silt_view_str(setting->words[i]))) {
            put_number(setting, i, base);
            return SILT_OK;
        }
        size_t len = strlen(words);
        const char *between = i == 0 ? "" : setting->words[i + 1] ? ", " : " or ";
        snprintf(words + len, sizeof words - len, "%s%s", between, setting->words[i]);
    }
    silt_escape(text, shown, sizeof shown);
    return silt_fail(err, SILT_ERR_CONFIG, "%s is not one of %s", shown, words);
}

static enum silt_status store_ids(struct silt_view text, struct silt_namespace *ret,
                                  struct silt_err *err)
{
    static const char branded[] = "branded ";
    char shown[64];
    memset(ret, 0, sizeof *ret);
    if (silt_view_equal(text, silt_view_str("wire"))) return SILT_OK;
    silt_escape(text, shown, sizeof shown);
    if (text.len > sizeof branded - 1 && memcmp(text.at, branded, sizeof branded - 1) == 0) {
        struct silt_view ns =
            silt_view(text.at + sizeof branded - 1, text.len - (sizeof branded - 1));
        if (silt_namespace_parse(ns, ret, NULL) == SILT_OK) return SILT_OK;
        return silt_fail(err, SILT_ERR_CONFIG, "%s: a namespace is three letters A-Z", shown);
    }
    return silt_fail(err, SILT_ERR_CONFIG, "%s is neither wire nor branded NS", shown);
}

static bool is_pattern(struct silt_view text)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr("*?[\\", text.at[i]) && text.at[i] != 0) return true;
    return false;
}

static enum silt_status store_text(const struct silt_setting *setting, struct silt_view text,
                                   void *base, struct silt_err *err)
{
    if (text.len == 0) return silt_fail(err, SILT_ERR_CONFIG, "the text is empty");
    if (setting->type == SILT_SETTING_TEXT && memchr(text.at, 0, text.len))
        return silt_fail(err, SILT_ERR_CONFIG, "the text contains a zero byte");
    if (setting->type == SILT_SETTING_TEXTS) return SILT_OK;
    char *copy = silt_alloc(text.len + 1);
    if (!copy) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    if (setting->type == SILT_SETTING_MATCH) {
        struct silt_stream_config *stream = base;
        stream->match = silt_view(copy, text.len);
        stream->is_pattern = is_pattern(text);
    } else {
        memcpy((uint8_t *)base + setting->at, &copy, sizeof copy);
    }
    return SILT_OK;
}

enum silt_status silt_setting_store(const struct silt_setting *setting, struct silt_view text,
                                    void *base, struct silt_err *err)
{
    switch (setting->type) {
    case SILT_SETTING_TEXT:
    case SILT_SETTING_TEXTS:
    case SILT_SETTING_MATCH: return store_text(setting, text, base, err);
    case SILT_SETTING_IDS:
        return store_ids(text, (struct silt_namespace *)(void *)((uint8_t *)base + setting->at),
                         err);
    case SILT_SETTING_WORD: return store_word(setting, text, base, err);
    case SILT_SETTING_COUNT:
    case SILT_SETTING_BYTES:
    case SILT_SETTING_DURATION: return store_number(setting, text, base, err);
    default: return silt_fail(err, SILT_ERR_USAGE, "%s takes settings, not a value", setting->name);
    }
}

enum silt_status silt_settings_defaults(const char *section, void *base, struct silt_err *err)
{
    enum silt_status status = SILT_OK;
    for (size_t i = 0; i < silt_setting_count && status == SILT_OK; i++) {
        const struct silt_setting *setting = &silt_settings[i];
        if (strcmp(setting->section, section) != 0) continue;
        /* Sections of the file itself share its struct; keep and group-limit have a struct of their own and no fallbacks. */
        if (setting->type == SILT_SETTING_SECTION && setting->size == 0)
            status = silt_settings_defaults(setting->inside, base, err);
        else if (setting->fallback)
            status = silt_setting_store(setting, silt_view_str(setting->fallback), base, err);
    }
    return status;
}
