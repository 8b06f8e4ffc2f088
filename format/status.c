/* Results and their details. Must not know who fails, nor print anything. */
#include "status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bytes.h"

struct row {
    enum silt_status code;
    enum silt_class class;
    int exit_code;
    const char *name;
    const char *sentence;
};

static const struct row rows[] = {
#define SILT_X(code, value, class, exit, sentence) \
    {code, SILT_CLASS_##class, exit, #code, sentence},
    SILT_STATUS_TABLE(SILT_X)
#undef SILT_X
};

/* A value outside the table is our own mistake; it must still be told, and never as success. */
static const struct row unknown = {SILT_ERR_USAGE, SILT_CLASS_SYSTEM, 1, "unknown",
                                   "unknown result"};

static const struct row *find(enum silt_status code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code) return &rows[i];
    return &unknown;
}

const char *silt_status_name(enum silt_status code)
{
    return find(code)->name;
}

enum silt_class silt_status_class(enum silt_status code)
{
    return find(code)->class;
}

int silt_status_exit_code(enum silt_status code)
{
    return find(code)->exit_code;
}

const char *silt_status_sentence(enum silt_status code)
{
    return find(code)->sentence;
}

static void start(struct silt_err *err, enum silt_status code)
{
    err->code = code;
    err->stream[0] = '\0';
    err->hint[0] = '\0';
}

enum silt_status silt_fail(struct silt_err *err, enum silt_status code, const char *format, ...)
{
    int saved = errno;
    if (err == NULL) return code;
    start(err, code);
    if (format == NULL) {
        snprintf(err->sentence, sizeof err->sentence, "%s", silt_status_sentence(code));
    } else {
        va_list args;
        va_start(args, format);
        vsnprintf(err->sentence, sizeof err->sentence, format, args);
        va_end(args);
    }
    errno = saved;
    return code;
}

void silt_hint(struct silt_err *err, const char *format, ...)
{
    int saved = errno;
    if (err == NULL) return;
    va_list args;
    va_start(args, format);
    vsnprintf(err->hint, sizeof err->hint, format, args);
    va_end(args);
    errno = saved;
}

void silt_err_set_stream(struct silt_err *err, const void *key, size_t len)
{
    if (err != NULL) silt_escape(silt_view(key, len), err->stream, sizeof err->stream);
}

static enum silt_status status_of_errno(int errno_value)
{
    switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return SILT_ERR_DISK_FULL;
    case ENOMEM: return SILT_ERR_MEMORY;
    case EMFILE:
    case ENFILE: return SILT_ERR_LIMIT;
    case EACCES:
    case EPERM:
    case EROFS: return SILT_ERR_PERMISSION;
    default: return SILT_ERR_IO;
    }
}

enum silt_status silt_fail_errno(struct silt_err *err, int errno_value, const char *format, ...)
{
    int saved = errno;
    enum silt_status code = status_of_errno(errno_value);
    if (err == NULL) return code;
    start(err, code);
    va_list args;
    va_start(args, format);
    vsnprintf(err->sentence, sizeof err->sentence, format, args);
    va_end(args);
    size_t len = strlen(err->sentence);
    char text[128];
    /* The GNU form: what it returns need not be the buffer. */
    snprintf(err->sentence + len, sizeof err->sentence - len, ": %s",
             strerror_r(errno_value, text, sizeof text));
    errno = saved;
    return code;
}
