/* One line per decision that matters: logfmt or JSON on stderr, with stream, id range, reason, and where the other copy is. */
#ifndef SILT_LOG_H
#define SILT_LOG_H

#include "wire_id.h"

enum silt_log_level { SILT_LOG_ERROR = 0, SILT_LOG_WARN, SILT_LOG_INFO, SILT_LOG_DEBUG };

struct silt_log_field {
    const char *name;
    enum { SILT_LOG_VIEW, SILT_LOG_TEXT, SILT_LOG_U64, SILT_LOG_ID } type;
    struct silt_view view;
    const char *text;
    uint64_t number;
    struct silt_wire_id id;
};
#define SILT_KEY(n, v) ((struct silt_log_field){.name = (n), .type = SILT_LOG_VIEW, .view = (v)})
#define SILT_STR(n, v) ((struct silt_log_field){.name = (n), .type = SILT_LOG_TEXT, .text = (v)})
#define SILT_NUM(n, v) ((struct silt_log_field){.name = (n), .type = SILT_LOG_U64, .number = (v)})
#define SILT_ID(n, v) ((struct silt_log_field){.name = (n), .type = SILT_LOG_ID, .id = (v)})

void silt_log_init(bool json, enum silt_log_level level);
bool silt_log_enabled(enum silt_log_level level);
/* Writes one line with one write(2). Threads: any. */
void silt_log_fields(enum silt_log_level level, const char *event,
                     const struct silt_log_field *fields, size_t count);
#define SILT_LOG(level, event, ...)                                                       \
    do {                                                                                  \
        if (silt_log_enabled(level)) {                                                    \
            const struct silt_log_field fields_[] = {__VA_ARGS__};                        \
            silt_log_fields(level, event, fields_, sizeof(fields_) / sizeof(fields_[0])); \
        }                                                                                 \
    } while (0)

#endif
