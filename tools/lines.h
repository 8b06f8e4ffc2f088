/* A file, plain or zstd (told by its first bytes), line by line. "-": the standard input. */
#ifndef SILT_LINES_H
#define SILT_LINES_H

#include "pack.h"

struct silt_lines {
    const char *path;
    int fd;
    struct silt_unpacker *unpacker; /* NULL: plain */
    bool begun, ended, in_frame;
    struct silt_buf text; /* what is not given yet begins at `at` */
    size_t at;
    uint64_t line;                   /* number of the line last given, from 1 */
    uint64_t file_bytes, read_bytes; /* 0: size unknown */
};

/* Fails with SILT_ERR_USAGE (the file cannot be opened), SILT_ERR_MEMORY. Owns: silt_lines_close, also after a failure. */
SILT_MUST_USE enum silt_status silt_lines_open(struct silt_lines *lines, const char *path,
                                               struct silt_err *err);
void silt_lines_close(struct silt_lines *lines);
/* Without its end of line; empty lines are given, too. SILT_END: no more. Valid until the next call. Fails with SILT_ERR_USAGE (the file is cut or damaged),
 * SILT_ERR_IO, SILT_ERR_MEMORY. */
SILT_MUST_USE enum silt_status silt_lines_next(struct silt_lines *lines, struct silt_view *ret,
                                               struct silt_err *err);

#endif
