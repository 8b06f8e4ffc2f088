/* siltd: arguments and exit codes, nothing else. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"
#include "loop.h"
#include "planview.h"

struct flags {
    const char *config, *archive, *valkey;
    int once, plan, check, json, help, version;
};

/* Each flag once: parser, --help; tests/cli compares the man page. */
enum { FLAG_CONFIG = 256, FLAG_ARCHIVE, FLAG_VALKEY, FLAG_ONCE, FLAG_PLAN, FLAG_CHECK, FLAG_JSON };
static const struct flag {
    int code;
    const char *name, *argument, *help;
} flag_table[] = {
    {FLAG_CONFIG, "config", "FILE", "the settings; else $SILT_CONFIG, else /etc/silt/silt.yaml"},
    {FLAG_ARCHIVE, "archive", "DIR", "the archive's directory, whatever the settings say"},
    {FLAG_VALKEY, "valkey", "ADDRESS", "the server: unix:PATH, tcp:HOST:PORT or tls:HOST:PORT"},
    {FLAG_ONCE, "once", NULL, "work until every stream is within keep or held, then exit"},
    {FLAG_PLAN, "plan", NULL, "show what would be folded and trimmed; change nothing"},
    {FLAG_CHECK, "check-config", NULL, "check the settings; touch nothing else"},
    {FLAG_JSON, "json", NULL, "with --plan or --check-config: JSON"},
    {'h', "help", NULL, "this text"},
    {'V', "version", NULL, "the version"},
};
#define FLAG_COUNT (sizeof flag_table / sizeof flag_table[0])

static void print_help(void)
{
    puts(
        "usage: siltd [--config FILE] [--once | --plan | --check-config]\n\n"
        "Keeps streams short and their history long: folds old entries into an archive, then trims them.\n");
    for (size_t i = 0; i < FLAG_COUNT; i++)
        printf("  --%s%s%-*s %s\n", flag_table[i].name, flag_table[i].argument ? " " : "",
               (int)(20 - strlen(flag_table[i].name) - (flag_table[i].argument ? 1 : 0)),
               flag_table[i].argument ? flag_table[i].argument : "", flag_table[i].help);
    puts(
        "\nexit: 0 done · 1 done, with a finding · 2 usage · 3 configuration · 4 server away or refusing · 5 archive\n"
        "damaged or not an archive · 6 held by another · 7 full · 8 refused to protect data");
}

static int usage(const char *text)
{
    fprintf(stderr, "siltd: %s\nhint: siltd --help lists the flags\n", text);
    return silt_status_exit_code(SILT_ERR_USAGE);
}

static int fail(const struct silt_err *err, enum silt_status status)
{
    fprintf(stderr, "siltd: %s%s%s\n", err->stream, err->stream[0] ? ": " : "",
            err->sentence[0] ? err->sentence : silt_status_sentence(status));
    if (err->hint[0]) fprintf(stderr, "hint: %s\n", err->hint);
    return silt_status_exit_code(status);
}

static bool parse_flags(int argc, char **argv, struct flags *ret)
{
    struct option options[FLAG_COUNT + 1] = {{0}};
    for (size_t i = 0; i < FLAG_COUNT; i++)
        options[i] = (struct option){flag_table[i].name,
                                     flag_table[i].argument ? required_argument : no_argument, NULL,
                                     flag_table[i].code};
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, ":hV", options, NULL)) != -1;) {
        switch (code) {
        case FLAG_CONFIG: ret->config = optarg; break;
        case FLAG_ARCHIVE: ret->archive = optarg; break;
        case FLAG_VALKEY: ret->valkey = optarg; break;
        case FLAG_ONCE: ret->once = 1; break;
        case FLAG_PLAN: ret->plan = 1; break;
        case FLAG_CHECK: ret->check = 1; break;
        case FLAG_JSON: ret->json = 1; break;
        case 'h': ret->help = 1; break;
        case 'V': ret->version = 1; break;
        default: {
            char text[120];
            snprintf(text, sizeof text,
                     code == ':' ? "%.80s needs a value" : "there is no flag %.80s",
                     argv[optind - 1]);
            usage(text);
            return false;
        }
        }
    }
    return true;
}

static int check_only(const struct silt_config *config, bool json)
{
    const char *path = config->path ? config->path : "";
    size_t patterns = 0;
    for (size_t i = 0; i < config->stream_count; i++)
        patterns += config->streams[i].is_pattern;
    if (json)
        printf("{\"ok\":true,\"keys\":%zu,\"patterns\":%zu}\n", config->stream_count - patterns,
               patterns);
    else
        printf("%s: well; %zu keys and %zu patterns\n", path, config->stream_count - patterns,
               patterns);
    return fflush(stdout) == 0 ? 0 : silt_status_exit_code(SILT_ERR_IO);
}

/* An address that no connection could be made of is a mistake of the configuration, found before anything is touched. */
static enum silt_status check_address(const struct silt_config *config, struct silt_err *err)
{
    struct silt_conn_options options;
    struct silt_conn *conn = NULL;
    silt_config_conn_options(config, &options);
    enum silt_status status = silt_conn_new(&options, &conn, err);
    silt_conn_free(conn);
    return status;
}

static int run(struct silt_config *config, const struct flags *flags)
{
    struct silt_loop_options options = {flags->config, flags->archive, flags->valkey, flags->once};
    struct silt_loop *loop = NULL;
    struct silt_err err = {0};
    silt_log_init(config->log_json, (enum silt_log_level)config->log_level);
    enum silt_status status = silt_loop_new(config, &options, &loop, &err);
    if (status != SILT_OK) {
        silt_config_free(config);
        return fail(&err, status);
    }
    int code = silt_loop_run(loop, &err);
    silt_loop_free(loop);
    if (code > 1) fail(&err, err.code);
    return code;
}

/* A reload asked for before the loop listens waits for it, instead of ending us. A file that may not grow (ulimit -f) is told as a full one. */
static void settle_signals(void)
{
    sigset_t early;
    sigemptyset(&early);
    sigaddset(&early, SIGHUP);
    sigprocmask(SIG_BLOCK, &early, NULL);
    signal(SIGXFSZ, SIG_IGN);
}

int main(int argc, char **argv)
{
    settle_signals();
    struct flags flags = {0};
    struct silt_config *config = NULL;
    struct silt_err err = {0};
    if (!parse_flags(argc, argv, &flags)) return silt_status_exit_code(SILT_ERR_USAGE);
    if (flags.help) {
        print_help();
        return 0;
    }
    if (flags.version) {
        puts("siltd " SILT_VERSION);
        return 0;
    }
    if (optind < argc) return usage("it takes flags only");
    if (flags.once + flags.plan + flags.check > 1)
        return usage("--once, --plan and --check-config exclude each other");
    if (flags.json && !flags.plan && !flags.check)
        return usage("--json goes with --plan or --check-config");
    enum silt_status status = silt_config_load(flags.config, &config, &err);
    if (status == SILT_OK) status = silt_config_override(config, flags.archive, flags.valkey, &err);
    if (status == SILT_OK) status = silt_config_check_archiver(config, &err);
    if (status == SILT_OK) status = check_address(config, &err);
    if (status != SILT_OK) {
        silt_config_free(config);
        return fail(&err, status);
    }
    int code;
    if (!flags.check && !flags.plan) return run(config, &flags);
    if (flags.check) {
        code = check_only(config, flags.json);
    } else {
        code = silt_planview_run(config, flags.json, stdout, &err);
        if (code > 1) fail(&err, err.code);
    }
    silt_config_free(config);
    return code;
}
