/* A verb as a table, and one call of it. main.c finds the verb, args.c fills the call, man.c writes the pages. */
#ifndef SILT_COMMAND_H
#define SILT_COMMAND_H

#include "bytes.h"
#include "out.h"

/* Exit code of a verb that did its work and found something (a gap, damage stepped over, a stream that is held). */
#define SILT_EXIT_FINDING 1

/* Which of the options that verbs share it takes. */
enum silt_uses {
    SILT_USES_SERVER = 1,
    SILT_USES_ARCHIVE = 2,
    SILT_USES_IDS = 4,
    SILT_USES_CONFIG = 8,
    SILT_USES_STORES = 1 | 2 | 8,
    SILT_USES_ALL = 15
};

struct silt_option {
    const char *name;  /* without dashes; NULL ends a table */
    const char *value; /* what stands for its value in the help; NULL: a switch */
    const char *help;
};

struct silt_verb_text {
    const struct silt_option *options; /* of this verb alone; NULL: none */
    const char *about;                 /* paragraphs, one empty line between two */
    const char *examples;              /* lines, each a command; NULL: none */
};

struct silt_call;
struct silt_verb {
    const char *name;
    const char *arguments;
    int least, most;
    unsigned uses;
    const char *help;
    const struct silt_verb_text *text;
    /* Gives SILT_OK or SILT_END (exit code call->exit_code, 0 unless it was set), or a failure with call->err. */
    enum silt_status (*run)(struct silt_call *call);
};

#define SILT_CALL_OPTIONS_MAX 32
struct silt_call {
    const struct silt_verb *verb;
    const char *const *args; /* borrowed from argv */
    size_t arg_count;
    const struct silt_option *options[SILT_CALL_OPTIONS_MAX];
    const char *values[SILT_CALL_OPTIONS_MAX]; /* NULL: not given; "" for a switch */
    size_t option_count;
    bool json;
    int exit_code;
    struct silt_out out;
    struct silt_err err;
};

/* The value of an option ("" for a switch), or NULL where it was not given. */
const char *silt_call_option(const struct silt_call *call, const char *name);

#define SILT_VERB(name, arguments, least, most, uses, help) \
    extern const struct silt_verb_text silt_text_##name;    \
    enum silt_status silt_cmd_##name(struct silt_call *call);
#include "commands.def"
#undef SILT_VERB

extern const struct silt_verb silt_verbs[];
extern const size_t silt_verb_count;
const struct silt_verb *silt_verb_find(const char *name); /* NULL: there is none */

/* The verb's options, shared ones first; gives how many. */
size_t silt_verb_options(const struct silt_verb *verb,
                         const struct silt_option *ret[SILT_CALL_OPTIONS_MAX]);
/* argv behind the verb. Fails with SILT_ERR_USAGE. SILT_END: --help was asked for. */
SILT_MUST_USE enum silt_status silt_call_parse(struct silt_call *call, const struct silt_verb *verb,
                                               int argc, char **argv);

/* Help on a terminal and man pages (roff), made from the tables. verb NULL: the program's own. */
SILT_MUST_USE enum silt_status silt_help_text(const struct silt_verb *verb, struct silt_buf *ret);
SILT_MUST_USE enum silt_status silt_help_man(const struct silt_verb *verb, struct silt_buf *ret);

#endif
