/* The sample file and the settings' part of the man page, made from the table of settings. */
#include <inttypes.h>
#include <stdio.h>

#include "alloc.h"
#include "config_table.h"

static enum silt_status put(struct silt_buf *out, const char *text)
{
    return silt_buf_put(out, text, strlen(text));
}

/* "logfmt or json", "a, b or c". */
static void list_words(const struct silt_setting *setting, char *ret, size_t size)
{
    ret[0] = '\0';
    for (size_t i = 0; setting->words[i]; i++) {
        size_t len = strlen(ret);
        const char *between = i == 0 ? "" : setting->words[i + 1] ? ", " : " or ";
        snprintf(ret + len, size - len, "%s%s", between, setting->words[i]);
    }
}

/* ---- the sample file ---- */

static const char sample_head[] =
    "# The settings of silt. Every program reads this file: the one named with --config, else $SILT_CONFIG, else\n"
    "# /etc/silt/silt.yaml. What stands here, comments aside, is the default where there is one; silt.yaml(5) says more.\n"
    "# Made from the table of settings; `siltd --check-config` tells whether a file is well.\n";

static enum silt_status sample_comment(struct silt_buf *out, const char *indent,
                                       const struct silt_setting *setting)
{
    char words[96];
    enum silt_status status = silt_buf_printf(out, "%s# %s", indent, setting->help);
    if (status == SILT_OK && setting->type == SILT_SETTING_WORD) {
        list_words(setting, words, sizeof words);
        status = silt_buf_printf(out, " (%s)", words);
    }
    if (status == SILT_OK && setting->type == SILT_SETTING_SECTION && setting->size)
        for (size_t i = 0; i < silt_setting_count && status == SILT_OK; i++)
            if (strcmp(silt_settings[i].section, setting->inside) == 0)
                status = silt_buf_printf(out, "\n%s#   %s: %s", indent, silt_settings[i].name,
                                         silt_settings[i].help);
    return status == SILT_OK ? put(out, "\n") : status;
}

static enum silt_status sample_section(struct silt_buf *out, const char *section,
                                       const char *indent, const char *first);

/* The setting itself, and what stands inside it. */
static enum silt_status sample_setting(struct silt_buf *out, const struct silt_setting *setting,
                                       const char *lead, const char *mark)
{
    const char *value = setting->sample ? setting->sample : setting->fallback;
    enum silt_status status =
        silt_buf_printf(out, "%s%s%s:%s%s\n", lead, setting->sample_off ? "# " : mark,
                        setting->name, value ? " " : "", value ? value : "");
    if (status == SILT_OK && !value && setting->type == SILT_SETTING_SECTION)
        status = sample_section(out, setting->inside, "  ", NULL);
    if (status == SILT_OK && setting->type == SILT_SETTING_SECTIONS)
        status = sample_section(out, setting->inside, "    ", "  ");
    return status;
}

/* first: the indentation of a list item's first setting, which carries the dash; NULL: no list. */
static enum silt_status sample_section(struct silt_buf *out, const char *section,
                                       const char *indent, const char *first)
{
    enum silt_status status = SILT_OK;
    for (size_t i = 0; i < silt_setting_count && status == SILT_OK; i++) {
        const struct silt_setting *setting = &silt_settings[i];
        const char *lead = first ? first : indent;
        if (strcmp(setting->section, section) != 0 || (setting->sample && !*setting->sample))
            continue;
        if (*section == '\0') status = put(out, "\n");
        if (status == SILT_OK) status = sample_comment(out, lead, setting);
        if (status == SILT_OK) status = sample_setting(out, setting, lead, first ? "- " : "");
        first = NULL;
    }
    return status;
}

enum silt_status silt_config_sample(struct silt_buf *ret)
{
    enum silt_status status = put(ret, sample_head);
    return status == SILT_OK ? sample_section(ret, "", "", NULL) : status;
}

/* ---- the man page ---- */

static const char man_head[] =
    ".\\\" Made from the table of settings in mergeread/config_table.c; a test compares.\n"
    ".TH SILT.YAML 5 \"\" \"silt\" \"File formats\"\n"
    ".SH NAME\n"
    "silt.yaml \\- the settings of silt\n"
    ".SH DESCRIPTION\n"
    "Every program of silt reads the same YAML file: the one named with\n"
    ".BR \\-\\-config ,\n"
    "else the one in the environment variable\n"
    ".BR SILT_CONFIG ,\n"
    "else\n"
    ".IR /etc/silt/silt.yaml .\n"
    "It is one document of plain maps, lists and values; anchors, aliases, tags and tabs for indentation are refused.\n"
    "A setting that is not known, of the wrong type, out of range, given twice or contradicting another is refused with\n"
    "file, line and column, and nothing is changed.\n"
    ".PP\n"
    "Durations are written\n"
    ".BR 250ms ,\n"
    ".BR 90s ,\n"
    ".BR 15m ,\n"
    ".BR 36h ,\n"
    ".B 30d\n"
    "or sums such as\n"
    ".BR 1d12h ;\n"
    "sizes as whole numbers with\n"
    ".BR B ,\n"
    ".BR KiB ,\n"
    ".BR MiB ,\n"
    ".B GiB\n"
    "or\n"
    ".BR TiB .\n";

static const char man_tail[] =
    ".SH WHICH SETTINGS A STREAM GETS\n"
    "An exact key beats a pattern. A stream that two patterns match is not touched, and\n"
    ".B silt status\n"
    "says so. The same key or pattern twice is refused. Keys of silt's own (the seam and the claim of a stream) never\n"
    "match a pattern. A limit of zero is refused: leave the line out for no limit. At least the newest entry of a stream\n"
    "stays live in any case.\n"
    ".SH SEE ALSO\n"
    ".BR siltd (8),\n"
    ".BR silt (1)\n";

/* Hyphens that belong to a name are written so that they can be copied from the page; a line never begins with a request. */
static enum silt_status man_text(struct silt_buf *out, const char *text)
{
    enum silt_status status = *text == '.' || *text == '\'' ? put(out, "\\&") : SILT_OK;
    for (; *text && status == SILT_OK; text++) {
        if (*text == '-')
            status = put(out, "\\-");
        else if (*text == '\\')
            status = put(out, "\\e");
        else
            status = silt_buf_put(out, text, 1);
    }
    return status;
}

static enum silt_status man_bound(struct silt_buf *out, const struct silt_setting *setting)
{
    static const char *const kinds[] = {
        [SILT_SETTING_COUNT] = "a number",        [SILT_SETTING_BYTES] = "a size",
        [SILT_SETTING_DURATION] = "a duration",   [SILT_SETTING_TEXT] = "a text",
        [SILT_SETTING_TEXTS] = "a list of texts", [SILT_SETTING_MATCH] = "a text; must be given",
        [SILT_SETTING_IDS] = "wire or branded NS"};
    char words[96] = "";
    if (setting->type == SILT_SETTING_SECTION || setting->type == SILT_SETTING_SECTIONS)
        return SILT_OK;
    if (setting->type == SILT_SETTING_WORD) list_words(setting, words, sizeof words);
    enum silt_status status = put(out, " (");
    if (status == SILT_OK) status = man_text(out, *words ? words : kinds[setting->type]);
    if (status == SILT_OK && setting->fallback) {
        status = put(out, "; default ");
        if (status == SILT_OK) status = man_text(out, setting->fallback);
    }
    return status == SILT_OK ? put(out, ")") : status;
}

static enum silt_status man_section(struct silt_buf *out, const char *section)
{
    enum silt_status status = SILT_OK;
    for (size_t i = 0; i < silt_setting_count && status == SILT_OK; i++) {
        const struct silt_setting *setting = &silt_settings[i];
        bool opens =
            setting->type == SILT_SETTING_SECTION || setting->type == SILT_SETTING_SECTIONS;
        if (strcmp(setting->section, section) != 0) continue;
        status = put(out, ".TP\n.B ");
        if (status == SILT_OK) status = man_text(out, setting->name);
        if (status == SILT_OK) status = put(out, "\n");
        if (status == SILT_OK) status = man_text(out, setting->help);
        if (status == SILT_OK) status = man_bound(out, setting);
        if (status == SILT_OK) status = put(out, ".\n");
        if (status != SILT_OK || !opens) continue;
        status = put(out, ".RS\n");
        if (status == SILT_OK) status = man_section(out, setting->inside);
        if (status == SILT_OK) status = put(out, ".RE\n");
    }
    return status;
}

static enum silt_status man_sample(struct silt_buf *out)
{
    SILT_CLEANUP(silt_buf_release) struct silt_buf sample = {0};
    enum silt_status status = silt_config_sample(&sample);
    if (status == SILT_OK) status = silt_buf_put_u8(&sample, 0);
    if (status == SILT_OK) status = put(out, ".SH EXAMPLE\n.nf\n");
    char *line = status == SILT_OK ? (char *)sample.at : NULL;
    while (line && *line && status == SILT_OK) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        const char *text = line + strspn(line, " ");
        if (*text != '#' && *text) {
            status = man_text(out, line);
            if (status == SILT_OK) status = put(out, "\n");
        }
        line = end ? end + 1 : NULL;
    }
    return status == SILT_OK ? put(out, ".fi\n") : status;
}

enum silt_status silt_config_man(struct silt_buf *ret)
{
    enum silt_status status = put(ret, man_head);
    if (status == SILT_OK) status = put(ret, ".SH SETTINGS\n");
    if (status == SILT_OK) status = man_section(ret, "");
    if (status == SILT_OK) status = man_sample(ret);
    return status == SILT_OK ? put(ret, man_tail) : status;
}
