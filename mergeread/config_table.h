/* The settings as a table, each declared once: the parser, the sample file and the man page are made from it. */
#ifndef SILT_CONFIG_TABLE_H
#define SILT_CONFIG_TABLE_H

#include "config.h"
#include "config_yaml.h"

enum silt_setting_type {
    SILT_SETTING_SECTION,  /* a map of further settings */
    SILT_SETTING_SECTIONS, /* a list of such maps */
    SILT_SETTING_TEXT,
    SILT_SETTING_TEXTS, /* a list of texts; checked for shape, not kept */
    SILT_SETTING_MATCH, /* a key or a pattern */
    SILT_SETTING_IDS,   /* wire, or branded NS */
    SILT_SETTING_COUNT, /* a whole number */
    SILT_SETTING_BYTES, /* a whole number with B, KiB, MiB, GiB, TiB */
    SILT_SETTING_DURATION,
    SILT_SETTING_WORD /* one of `words`, kept as its index */
};

struct silt_setting {
    const char
        *section; /* "" is the file itself; "keep" and "group-limit" stand in several places */
    const char *name;
    enum silt_setting_type type;
    const char *inside; /* SECTION, SECTIONS: the section that this opens */
    size_t at, size; /* where it is kept: in struct silt_config, silt_stream_config or silt_keep */
    size_t flag;     /* limits: where it is noted that it was given; 0: nowhere */
    const char *fallback;     /* as it would be written; NULL: none */
    const char *sample;       /* value in the sample file; NULL: the fallback; "": left out of it */
    bool sample_off;          /* stands in the sample file as a comment */
    uint64_t min, max;        /* in the unit that is kept (bytes, ms) */
    const char *const *words; /* NULL-terminated */
    const char *help;
};
extern const struct silt_setting silt_settings[];
extern const size_t silt_setting_count;

/* NULL: there is no such setting. */
const struct silt_setting *silt_setting_find(const char *section, struct silt_view name);

/* One value from its text into the struct that starts at `base`. The sentence does not name the setting; the caller does. */
SILT_MUST_USE enum silt_status silt_setting_store(const struct silt_setting *setting,
                                                  struct silt_view text, void *base,
                                                  struct silt_err *err);
/* The fallbacks of one section into its struct, sections within it too. */
SILT_MUST_USE enum silt_status silt_settings_defaults(const char *section, void *base,
                                                      struct silt_err *err);

/* The settings as the man page silt.yaml(5) shows them, in troff. The sample file is silt_config_sample. */
SILT_MUST_USE enum silt_status silt_config_man(struct silt_buf *ret);

#endif
