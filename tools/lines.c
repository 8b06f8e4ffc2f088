/* Lines of a file. Must not know what stands in them. */
#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES 65536

enum silt_status silt_lines_open(struct silt_lines *lines, const char *path, struct silt_err *err)
{
    struct stat st;
    *lines = (struct silt_lines){.path = path, .fd = STDIN_FILENO};
    if (strcmp(path, "-") == 0) return SILT_OK;
    lines->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (lines->fd < 0)
        return silt_fail(err, SILT_ERR_USAGE, "cannot open %s: %s", path, strerror(errno));
    if (fstat(lines->fd, &st) == 0 && S_ISREG(st.st_mode)) lines->file_bytes = (uint64_t)st.st_size;
    return SILT_OK;
}

void silt_lines_close(struct silt_lines *lines)
{
    if (lines->fd > STDIN_FILENO) close(lines->fd);
    silt_unpacker_free(lines->unpacker);
    silt_buf_release(&lines->text);
    *lines = (struct silt_lines){.fd = -1};
}

static enum silt_status take(struct silt_lines *lines, struct silt_view piece, struct silt_err *err)
{
    static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    enum silt_status status;
    if (!lines->begun && piece.len >= 4 && memcmp(piece.at, magic, 4) == 0 &&
        (status = silt_unpacker_new(&lines->unpacker)) != SILT_OK)
        return silt_fail(err, status, NULL);
    lines->begun = true;
    if (lines->unpacker == NULL)
        status = silt_buf_put(&lines->text, piece.at, piece.len);
    else
        status = silt_unpack_stream(lines->unpacker, piece, &lines->text, &lines->in_frame);
    if (status == SILT_ERR_CORRUPT)
        return silt_fail(err, SILT_ERR_USAGE, "%s: not whole zstd frames", lines->path);
    return status == SILT_OK ? SILT_OK : silt_fail(err, status, NULL);
}

/* One read more. SILT_END at the end of the file. */
static enum silt_status fill(struct silt_lines *lines, struct silt_err *err)
{
    uint8_t piece[READ_BYTES];
    size_t got = 0;
    ssize_t n = 1;
    /* The first four bytes decide, so a short first read is completed. */
    while (n > 0 && got < (lines->begun ? 1 : 4)) {
        do
            n = read(lines->fd, piece + got, sizeof piece - got);
        while (n < 0 && errno == EINTR);
        if (n > 0) got += (size_t)n;
    }
    if (n < 0) return silt_fail_errno(err, errno, "cannot read %s", lines->path);
    lines->read_bytes += got;
    if (got > 0) return take(lines, silt_view(piece, got), err);
    lines->ended = true;
    if (lines->in_frame)
        return silt_fail(err, SILT_ERR_USAGE, "%s: the file ends inside a zstd frame", lines->path);
    return SILT_END;
}

enum silt_status silt_lines_next(struct silt_lines *lines, struct silt_view *ret,
                                 struct silt_err *err)
{
    size_t looked = 0;            /* bytes behind `at` without an end of line */
    if (lines->at > READ_BYTES) { /* what was given is let go now and then */
        memmove(lines->text.at, lines->text.at + lines->at, lines->text.len - lines->at);
        lines->text.len -= lines->at;
        lines->at = 0;
    }
    for (;;) {
        size_t left = lines->text.len - lines->at;
        const uint8_t *from = lines->text.at + lines->at;
        const uint8_t *end = left > looked ? memchr(from + looked, '\n', left - looked) : NULL;
        if (end != NULL || (lines->ended && left > 0)) {
            size_t len = end ? (size_t)(end - from) : left;
            lines->at += len + (end ? 1 : 0);
            lines->line++;
            *ret = silt_view(from, len > 0 && from[len - 1] == '\r' ? len - 1 : len);
            return SILT_OK;
        }
        if (lines->ended) return SILT_END;
        looked = left;
        enum silt_status status = fill(lines, err);
        if (status != SILT_OK && status != SILT_END) return status;
    }
}
