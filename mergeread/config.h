/* The YAML file that every program reads (design.md §8): each setting is one row of a table in config.c (name, type, unit, default, range, help). Unknown keys,
 * contradictions, the same exact key twice: refused with file:line:column. Linked into our programs only, not into libmergeread: a library reads no files of settings. */
#ifndef SILT_CONFIG_H
#define SILT_CONFIG_H

#include "branded_id.h"
#include "conn.h"

struct silt_keep {
    bool has_age, has_entries, has_bytes;
    uint64_t age_ms, entries, bytes;
};
enum silt_fold_mode { SILT_FOLD_CONTINUOUS = 0, SILT_FOLD_ON_TRIM };
enum silt_groups_mode { SILT_GROUPS_HOLD = 0, SILT_GROUPS_IGNORE };
enum silt_foreign_mode { SILT_FOREIGN_KEEP = 0, SILT_FOREIGN_HOLD };
enum silt_delete_mode { SILT_DELETE_KEEP = 0, SILT_DELETE_MARK };
enum silt_seam_mode { SILT_SEAM_OFF = 0, SILT_SEAM_BEST_EFFORT, SILT_SEAM_STRICT };
enum silt_claim_mode { SILT_CLAIM_GROUP = 0, SILT_CLAIM_KEY, SILT_CLAIM_OFF };

struct silt_stream_config {
    struct silt_view match;
    bool is_pattern;
    struct silt_namespace ns; /* ids: branded NS; none: wire */
    struct silt_keep keep;    /* nothing given: fold only, never trim (shadow mode) */
    enum silt_fold_mode fold;
    uint64_t fold_delay_ms;
    enum silt_groups_mode groups;
    struct silt_keep group_limit; /* age and entries only */
    enum silt_foreign_mode on_foreign;
    enum silt_delete_mode on_delete;
    enum silt_seam_mode seam;
    enum silt_claim_mode claim;
    int line;
};

struct silt_config {
    /* valkey: strings owned by the config */
    char *address;
    unsigned database;
    char *user;
    char *password_file;
    char *tls_ca_file, *tls_cert_file, *tls_key_file;
    uint64_t connect_timeout_ms, command_timeout_ms;
    /* archive */
    char *archive_path;
    uint64_t map_limit_bytes;
    struct silt_keep archive_keep; /* parsed and checked; nothing expires the archive yet */
    int level;
    /* page */
    uint32_t page_entries;
    uint64_t page_bytes;
    char *control; /* socket path; NULL: none */
    bool log_json;
    int log_level; /* enum silt_log_level */
    uint64_t idle_look_ms;
    struct silt_stream_config *streams;
    size_t stream_count;
    char *path; /* the file; NULL: made from flags alone */
};

/* path NULL: $SILT_CONFIG, else /etc/silt/silt.yaml if it exists, else the defaults alone. Fails with SILT_ERR_CONFIG ("FILE:LINE:COLUMN: ..."). */
SILT_MUST_USE enum silt_status silt_config_load(const char *path, struct silt_config **ret,
                                                struct silt_err *err);
/* From text, as the fuzzer and the tests use it; `name` stands for the file in messages. */
SILT_MUST_USE enum silt_status silt_config_parse(const char *name, struct silt_view text,
                                                 struct silt_config **ret, struct silt_err *err);
void silt_config_free(struct silt_config *config);
/* The flags --archive and --valkey win over the file. */
SILT_MUST_USE enum silt_status silt_config_override(struct silt_config *config, const char *archive,
                                                    const char *address, struct silt_err *err);
/* What a program that must archive (siltd) needs beyond a well-formed file: address, archive path, at least one stream. */
SILT_MUST_USE enum silt_status silt_config_check_archiver(const struct silt_config *config,
                                                          struct silt_err *err);
void silt_config_conn_options(const struct silt_config *config, struct silt_conn_options *ret);

enum silt_match { SILT_MATCH_NONE, SILT_MATCH_ONE, SILT_MATCH_AMBIGUOUS };
/* An exact key beats a pattern; two patterns: AMBIGUOUS, both given. Seam and claim keys never match a pattern. */
enum silt_match silt_config_match(const struct silt_config *config, struct silt_view key,
                                  const struct silt_stream_config **ret,
                                  const struct silt_stream_config **ret_other);
/* The commented sample file, made from the table. */
SILT_MUST_USE enum silt_status silt_config_sample(struct silt_buf *ret);

#endif
