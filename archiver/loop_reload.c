/* SIGHUP: the configuration is read again. A bad one is refused whole and the old one stays. Also here: opening and closing the archiver. */
#include <stdio.h>

#include "alloc.h"
#include "log.h"
#include "loop_priv.h"

enum silt_status silt_loop_open_archiver(struct silt_loop *loop, struct silt_err *err)
{
    enum silt_status status =
        silt_archiver_new(loop->config, silt_loop_cancelled, loop, &loop->archiver, err);
    if (status != SILT_OK) {
        loop->archiver = NULL;
        return status;
    }
    /* What the archive knows from before is looked at even if its key is gone: that is how a loss while nobody watched is noticed (promise 5). Without it
     * the archiver is not open: the next try must ask again. */
    status = silt_roster_add_known(&loop->roster, silt_archiver_store(loop->archiver), err);
    if (status != SILT_OK) silt_loop_close_archiver(loop);
    return status;
}

void silt_loop_close_archiver(struct silt_loop *loop)
{
    silt_roster_drop_works(&loop->roster);
    silt_archiver_free(loop->archiver);
    loop->archiver = NULL;
    loop->store_suspect = false;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_server(const struct silt_config *a, const struct silt_config *b)
{
    return same_text(a->address, b->address) && same_text(a->user, b->user) &&
           same_text(a->password_file, b->password_file) &&
           same_text(a->tls_ca_file, b->tls_ca_file) &&
           same_text(a->tls_cert_file, b->tls_cert_file) &&
           same_text(a->tls_key_file, b->tls_key_file) && a->database == b->database &&
           a->connect_timeout_ms == b->connect_timeout_ms &&
           a->command_timeout_ms == b->command_timeout_ms;
}

static bool same_archive(const struct silt_config *a, const struct silt_config *b)
{
    return same_text(a->archive_path, b->archive_path) && a->map_limit_bytes == b->map_limit_bytes;
}

/* Another socket is opened before the old one is let go. */
static enum silt_status move_control(struct silt_loop *loop, const struct silt_config *config,
                                     struct silt_err *err)
{
    struct silt_control *control = NULL;
    struct silt_control_handler handler = silt_loop_handler;
    if (same_text(loop->config->control, config->control)) return SILT_OK;
    handler.ctx = loop;
    if (config->control) {
        enum silt_status status =
            silt_control_open(loop->base, config->control, &handler, &control, err);
        if (status != SILT_OK) return status;
    }
    struct silt_err moved = {0};
    silt_fail(&moved, SILT_ERR_CANCELLED, "siltd moves to another control socket");
    silt_loop_fail_waiters(loop, SILT_ERR_CANCELLED, &moved);
    silt_control_close(loop->control);
    loop->control = control;
    return SILT_OK;
}

static enum silt_status read_config(struct silt_loop *loop, struct silt_config **ret,
                                    struct silt_err *err)
{
    enum silt_status status = silt_config_load(loop->options.config_path, ret, err);
    if (status == SILT_OK)
        status = silt_config_override(*ret, loop->options.archive, loop->options.address, err);
    if (status == SILT_OK) status = silt_config_check_archiver(*ret, err);
    if (status == SILT_OK && !same_archive(loop->config, *ret)) {
        status = silt_fail(err, SILT_ERR_CONFIG,
                           "archive.path and archive.map-limit change only with a restart");
        silt_hint(err, "stop siltd and start it again");
    }
    return status;
}

void silt_loop_reload(struct silt_loop *loop)
{
    struct silt_config *config = NULL;
    struct silt_err err = {0};
    loop->reload_asked = false;
    enum silt_status status = read_config(loop, &config, &err);
    if (status == SILT_OK) status = move_control(loop, config, &err);
    if (status != SILT_OK) {
        silt_config_free(config);
        SILT_LOG(SILT_LOG_ERROR, "reload-refused", SILT_STR("reason", err.sentence),
                 SILT_STR("hint", err.hint), SILT_STR("now", "the settings from before go on"));
        return;
    }
    struct silt_config *before = loop->config;
    bool other_server = !same_server(before, config);
    loop->config = config;
    silt_log_init(config->log_json, (enum silt_log_level)config->log_level);
    silt_roster_reconfigure(&loop->roster, config);
    loop->announced = 0;
    loop->swept = false;
    loop->sweeping = false;
    loop->scan_due_ms = 0;
    loop->retry_ms = 0;
    if (other_server)
        silt_loop_close_archiver(loop); /* opened again, with the new address, by the next step */
    else if (loop->archiver)
        silt_archiver_set_config(loop->archiver, config);
    silt_config_free(before);
    status = silt_roster_add_exact(&loop->roster);
    if (status != SILT_OK) silt_fail(&err, status, NULL);
    /* A new pattern may match what the archive knows and the server has lost. */
    if (status == SILT_OK && loop->archiver)
        status = silt_roster_add_known(&loop->roster, silt_archiver_store(loop->archiver), &err);
    if (status != SILT_OK)
        SILT_LOG(SILT_LOG_ERROR, "reload-incomplete",
                 SILT_STR("reason", err.sentence[0] ? err.sentence : silt_status_sentence(status)));
    SILT_LOG(SILT_LOG_INFO, "reloaded", SILT_STR("config", config->path ? config->path : ""),
             SILT_NUM("streams", config->stream_count));
}
