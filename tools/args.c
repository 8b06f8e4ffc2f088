/* Arguments into a call, by the verb's table. Must not know what any option means. */
#include <string.h>

#include "command.h"

static const struct silt_option shared[] = {
    {"config", "FILE", "the settings; else $SILT_CONFIG, else /etc/silt/silt.yaml"},
    {"archive", "DIR", "the archive's directory; wins over the settings"},
    {"valkey", "ADDRESS",
     "the server: unix:PATH, tcp:HOST:PORT, tls:HOST:PORT; wins over the settings"},
    {"ids", "KIND",
     "'branded NS' or 'wire'; needed where neither archive nor settings tell the stream's kind"},
    {"json", NULL, "results as JSON, one object a line"},
    {"help", NULL, "this text"},
};
static const unsigned shared_uses[] = {
    SILT_USES_CONFIG, SILT_USES_ARCHIVE, SILT_USES_SERVER, SILT_USES_IDS, 0, 0};

size_t silt_verb_options(const struct silt_verb *verb,
                         const struct silt_option *ret[SILT_CALL_OPTIONS_MAX])
{
    size_t count = 0;
    const struct silt_option *own = verb->text->options;
    for (; own != NULL && own->name != NULL && count < SILT_CALL_OPTIONS_MAX; own++)
        ret[count++] = own;
    for (size_t i = 0; i < sizeof shared / sizeof shared[0] && count < SILT_CALL_OPTIONS_MAX; i++)
        if ((verb->uses & shared_uses[i]) == shared_uses[i]) ret[count++] = &shared[i];
    return count;
}

const char *silt_call_option(const struct silt_call *call, const char *name)
{
    for (size_t i = 0; i < call->option_count; i++)
        if (strcmp(call->options[i]->name, name) == 0) return call->values[i];
    return NULL;
}

static enum silt_status refuse(struct silt_call *call, const char *what, const char *value,
                               const char *why)
{
    silt_fail(&call->err, SILT_ERR_USAGE, "%s: %s '%s' %s", call->verb->name, what, value, why);
    silt_hint(&call->err, "silt %s --help", call->verb->name);
    return SILT_ERR_USAGE;
}

/* One "--name", "--name=value" or "--name value"; *at is moved behind what was used. */
static enum silt_status take_option(struct silt_call *call, int argc, char **argv, int *at)
{
    const char *name = argv[*at] + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    size_t index = 0;
    while (index < call->option_count && (strlen(call->options[index]->name) != len ||
                                          memcmp(call->options[index]->name, name, len) != 0))
        index++;
    if (index == call->option_count) return refuse(call, "option", argv[*at], "is not known");
    const struct silt_option *option = call->options[index];
    if (call->values[index] != NULL) return refuse(call, "option", option->name, "stands twice");
    ++*at;
    if (option->value == NULL) {
        if (equals != NULL) return refuse(call, "option", option->name, "takes no value");
        call->values[index] = "";
    } else if (equals != NULL) {
        call->values[index] = equals + 1;
    } else {
        if (*at >= argc) return refuse(call, "option", option->name, "needs a value");
        call->values[index] = argv[(*at)++];
    }
    return SILT_OK;
}

/* Everything else keeps its order at the front of argv; gives how many. */
static enum silt_status sort_out(struct silt_call *call, int argc, char **argv, int *ret_count)
{
    int count = 0;
    bool only_arguments = false;
    for (int at = 0; at < argc;) {
        char *word = argv[at];
        if (only_arguments || strncmp(word, "--", 2) != 0) {
            if (!only_arguments && strcmp(word, "-h") == 0) return SILT_END;
            argv[count++] = word;
            at++;
        } else if (word[2] == '\0') {
            only_arguments = true;
            at++;
        } else {
            enum silt_status status = take_option(call, argc, argv, &at);
            if (status != SILT_OK) return status;
        }
    }
    *ret_count = count;
    return SILT_OK;
}

enum silt_status silt_call_parse(struct silt_call *call, const struct silt_verb *verb, int argc,
                                 char **argv)
{
    int count;
    call->verb = verb;
    call->option_count = silt_verb_options(verb, call->options);
    enum silt_status status = sort_out(call, argc, argv, &count);
    if (status != SILT_OK) return status;
    if (silt_call_option(call, "help") != NULL) return SILT_END;
    call->json = silt_call_option(call, "json") != NULL;
    call->args = (const char *const *)argv;
    call->arg_count = (size_t)count;
    if (count >= verb->least && (verb->most < 0 || count <= verb->most)) return SILT_OK;
    if (count > verb->least) return refuse(call, "argument", argv[count - 1], "is one too many");
    silt_fail(&call->err, SILT_ERR_USAGE, "%s needs %s", verb->name, verb->arguments);
    silt_hint(&call->err, "silt %s --help", verb->name);
    return SILT_ERR_USAGE;
}
