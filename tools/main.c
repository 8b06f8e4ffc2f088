/* silt: finds the verb, runs it, gives its exit code. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "json_read.h"

const struct silt_verb silt_verbs[] = {
#define SILT_VERB(name, arguments, least, most, uses, help) \
    {#name, arguments, least, most, uses, help, &silt_text_##name, silt_cmd_##name},
#include "commands.def"
#undef SILT_VERB
};
const size_t silt_verb_count = sizeof silt_verbs / sizeof silt_verbs[0];

const struct silt_verb *silt_verb_find(const char *name)
{
    for (size_t i = 0; i < silt_verb_count; i++)
        if (strcmp(silt_verbs[i].name, name) == 0) return &silt_verbs[i];
    return NULL;
}

static int print_page(enum silt_status made, struct silt_buf *page, FILE *to)
{
    if (made == SILT_OK) fwrite(page->at, 1, page->len, to);
    silt_buf_release(page);
    return made == SILT_OK && fflush(to) == 0 ? 0 : silt_status_exit_code(SILT_ERR_IO);
}

static int print_help(const struct silt_verb *verb, FILE *to)
{
    struct silt_buf page = {0};
    return print_page(silt_help_text(verb, &page), &page, to);
}

/* silt --man [VERB]: the page as it stands in docs/man. */
static int print_man(const char *name)
{
    struct silt_buf page = {0};
    const struct silt_verb *verb = name ? silt_verb_find(name) : NULL;
    if (name != NULL && verb == NULL) {
        silt_say("no such verb: '%s'", name);
        return silt_status_exit_code(SILT_ERR_USAGE);
    }
    return print_page(silt_help_man(verb, &page), &page, stdout);
}

static int run(struct silt_call *call)
{
    enum silt_status status = call->verb->run(call);
    struct silt_err flush_err;
    enum silt_status flushed = silt_out_flush(&call->out, &flush_err);
    if (status < 0) {
        silt_say_err(&call->err);
        return silt_status_exit_code(status);
    }
    if (flushed != SILT_OK) {
        silt_say_err(&flush_err);
        return silt_status_exit_code(flushed);
    }
    return call->exit_code;
}

static int run_verb(const char *name, int argc, char **argv)
{
    struct silt_call call = {0};
    const struct silt_verb *verb = silt_verb_find(name);
    if (verb == NULL) {
        silt_say("no such verb: '%s'", name);
        fputs(name[0] == '-' ? "hint: options stand behind the verb; silt --help\n"
                             : "hint: silt --help\n",
              stderr);
        return silt_status_exit_code(SILT_ERR_USAGE);
    }
    enum silt_status status = silt_call_parse(&call, verb, argc, argv);
    if (status == SILT_END) return print_help(verb, stdout);
    if (status != SILT_OK) {
        silt_say_err(&call.err);
        return silt_status_exit_code(status);
    }
    int code = run(&call);
    silt_out_release(&call.out);
    return code;
}

int main(int argc, char **argv)
{
    signal(
        SIGPIPE,
        SIG_DFL); /* `silt read ... | head` ends quietly, also where the caller ignored the signal */
    silt_json_init();
    if (argc < 2) {
        print_help(NULL, stderr);
        return silt_status_exit_code(SILT_ERR_USAGE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("silt " SILT_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "--man") == 0) return print_man(argc > 2 ? argv[2] : NULL);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        const struct silt_verb *verb = argc > 2 ? silt_verb_find(argv[2]) : NULL;
        return print_help(verb, stdout);
    }
    return run_verb(argv[1], argc - 2, argv + 2);
}
