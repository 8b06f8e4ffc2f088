/* Help and man pages out of the tables, so that neither can fall behind the parser. */
#include <string.h>

#include "command.h"

#define HELP_WIDTH 96

static const char program_help[] = "a Valkey stream with a long history: archive and live as one";

static const struct {
    int code;
    const char *meaning;
} exit_codes[] = {
    {0, "done, and all is well"},
    {1,
     "done, with a finding: a gap, damage stepped over, a stream that is behind or held, an entry that is not there"},
    {2, "wrong use: options, ids, bounds, keys"},
    {3, "the configuration is refused"},
    {4, "the server is away, or refuses"},
    {5, "the archive is damaged, missing, or not an archive"},
    {6, "held by another process or archive, which is named"},
    {7, "full: disk, map, memory or a system limit"},
    {8, "refused to protect data"},
};

static enum silt_status put(struct silt_buf *out, const char *text)
{
    return silt_buf_put(out, text, strlen(text));
}

/* Text for roff: no line may begin with a dot or a quote, backslashes and dashes are escaped, an empty line is a paragraph. */
static enum silt_status put_roff(struct silt_buf *out, const char *text)
{
    enum silt_status status = SILT_OK;
    for (bool at_start = true; *text && status == SILT_OK; text++) {
        if (at_start && (*text == '.' || *text == '\'')) status = put(out, "\\&");
        if (status != SILT_OK) return status;
        if (*text == '\\')
            status = put(out, "\\e");
        else if (*text == '-')
            status = put(out, "\\-");
        else if (text[0] == '\n' && text[1] == '\n')
            status = put(out, "\n.PP");
        else
            status = silt_buf_put(out, text, 1);
        at_start = *text == '\n';
    }
    return status;
}

static enum silt_status put_options_man(struct silt_buf *out, const struct silt_verb *verb)
{
    const struct silt_option *options[SILT_CALL_OPTIONS_MAX];
    size_t count = silt_verb_options(verb, options);
    enum silt_status status = put(out, ".SH OPTIONS\n");
    for (size_t i = 0; i < count && status == SILT_OK; i++) {
        if ((status = put(out, ".TP\n\\fB\\-\\-")) || (status = put_roff(out, options[i]->name)) ||
            (status = put(out, "\\fR")))
            return status;
        if (options[i]->value && (status = silt_buf_printf(out, " \\fI%s\\fR", options[i]->value)))
            return status;
        if ((status = put(out, "\n")) || (status = put_roff(out, options[i]->help)) ||
            (status = put(out, ".\n")))
            return status;
    }
    return status;
}

static enum silt_status put_exit_codes_man(struct silt_buf *out)
{
    enum silt_status status = put(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof exit_codes / sizeof exit_codes[0] && status == SILT_OK; i++) {
        status = silt_buf_printf(out, ".TP\n\\fB%d\\fR\n", exit_codes[i].code);
        if (status == SILT_OK) status = put_roff(out, exit_codes[i].meaning);
        if (status == SILT_OK) status = put(out, ".\n");
    }
    return status;
}

static enum silt_status put_examples_man(struct silt_buf *out, const char *examples)
{
    enum silt_status status;
    if (examples == NULL) return SILT_OK;
    if ((status = put(out, ".SH EXAMPLES\n.nf\n")) || (status = put_roff(out, examples)))
        return status;
    return put(out, "\n.fi\n");
}

static enum silt_status man_of_verb(const struct silt_verb *verb, struct silt_buf *out)
{
    enum silt_status status;
    if ((status = silt_buf_printf(out,
                                  ".\\\" Made by silt from its tables; a test compares.\n"
                                  ".TH SILT\\-%s 1 \"\" \"silt\" \"User commands\"\n"
                                  ".SH NAME\nsilt\\-%s \\- ",
                                  verb->name, verb->name)) ||
        (status = put_roff(out, verb->help)) ||
        (status = silt_buf_printf(out, "\n.SH SYNOPSIS\n\\fBsilt %s\\fR [\\fIOPTIONS\\fR] ",
                                  verb->name)) ||
        (status = put_roff(out, verb->arguments)) || (status = put(out, "\n.SH DESCRIPTION\n")) ||
        (status = put_roff(out, verb->text->about)) || (status = put(out, "\n")) ||
        (status = put_options_man(out, verb)) || (status = put_exit_codes_man(out)) ||
        (status = put_examples_man(out, verb->text->examples)))
        return status;
    return put(out, ".SH SEE ALSO\n.BR silt (1),\n.BR silt.yaml (5)\n");
}

static enum silt_status man_of_program(struct silt_buf *out)
{
    enum silt_status status;
    if ((status =
             silt_buf_printf(out,
                             ".\\\" Made by silt from its tables; a test compares.\n"
                             ".TH SILT 1 \"\" \"silt\" \"User commands\"\n"
                             ".SH NAME\nsilt \\- %s\n"
                             ".SH SYNOPSIS\n\\fBsilt\\fR \\fIVERB\\fR [\\fIOPTIONS\\fR] "
                             "[\\fIARGUMENTS\\fR]\n.SH DESCRIPTION\n"
                             "Results go to the standard output, talk to the standard error. "
                             "With \\-\\-json every verb gives JSON, one object a line, whose "
                             "fields are only ever added to; a string that is not valid UTF\\-8 "
                             "stands as {\"b64\": \"...\"}.\n.SH VERBS\n",
                             program_help)))
        return status;
    for (size_t i = 0; i < silt_verb_count && status == SILT_OK; i++) {
        status = silt_buf_printf(out, ".TP\n\\fB%s\\fR ", silt_verbs[i].name);
        if (status == SILT_OK) status = put_roff(out, silt_verbs[i].arguments);
        if (status == SILT_OK) status = put(out, "\n");
        if (status == SILT_OK) status = put_roff(out, silt_verbs[i].help);
        if (status == SILT_OK)
            status = silt_buf_printf(out, "; see\n.BR silt\\-%s (1).\n", silt_verbs[i].name);
    }
    if (status == SILT_OK) status = put_exit_codes_man(out);
    return status == SILT_OK ? put(out, ".SH SEE ALSO\n.BR silt.yaml (5)\n") : status;
}

enum silt_status silt_help_man(const struct silt_verb *verb, struct silt_buf *ret)
{
    return verb != NULL ? man_of_verb(verb, ret) : man_of_program(ret);
}

/* A paragraph in lines of at most `width` bytes, each after the first indented. */
static enum silt_status put_wrapped(struct silt_buf *out, const char *text, size_t indent,
                                    size_t width)
{
    enum silt_status status = SILT_OK;
    size_t column = indent;
    bool first = true; /* in its line */
    while (*text && status == SILT_OK) {
        size_t word = strcspn(text, " \n");
        bool breaks = !first && column + 1 + word > width;
        if (breaks) {
            status = silt_buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            status = put(out, " ");
            column++;
        }
        if (status == SILT_OK) status = silt_buf_put(out, text, word);
        column += word;
        first = false;
        text += word;
        text += strspn(text, " ");
        for (; *text == '\n' && status == SILT_OK; text++) {
            status = put(out, "\n");
            column = indent;
            first = true;
        }
    }
    return status == SILT_OK ? put(out, "\n") : status;
}

static enum silt_status help_of_program(struct silt_buf *out)
{
    enum silt_status status = silt_buf_printf(
        out, "silt %s: %s\nusage: silt VERB [OPTIONS] [ARGUMENTS]\n\n", SILT_VERSION, program_help);
    for (size_t i = 0; i < silt_verb_count && status == SILT_OK; i++)
        status = silt_buf_printf(out, "  %-8s %-20s %s\n", silt_verbs[i].name,
                                 silt_verbs[i].arguments, silt_verbs[i].help);
    return status == SILT_OK
               ? put(out, "\nsilt VERB --help tells more; silt --version names the version\n")
               : status;
}

enum silt_status silt_help_text(const struct silt_verb *verb, struct silt_buf *ret)
{
    const struct silt_option *options[SILT_CALL_OPTIONS_MAX];
    enum silt_status status;
    if (verb == NULL) return help_of_program(ret);
    size_t count = silt_verb_options(verb, options);
    if ((status = silt_buf_printf(ret, "usage: silt %s [OPTIONS] %s\n%s\n\n", verb->name,
                                  verb->arguments, verb->help)) ||
        (status = put_wrapped(ret, verb->text->about, 0, HELP_WIDTH)) || (status = put(ret, "\n")))
        return status;
    for (size_t i = 0; i < count && status == SILT_OK; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", options[i]->name, options[i]->value ? " " : "",
                 options[i]->value ? options[i]->value : "");
        status = silt_buf_printf(ret, "  %-22s ", left);
        if (status == SILT_OK) status = put_wrapped(ret, options[i]->help, 25, HELP_WIDTH);
    }
    if (status == SILT_OK && verb->text->examples)
        status = silt_buf_printf(ret, "\n%s\n", verb->text->examples);
    return status;
}
