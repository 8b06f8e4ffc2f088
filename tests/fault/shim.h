/* The journal of the preload library (shim.c): what a program did to the files below one directory, in order, and what it was about to send. */
#ifndef TEST_SHIM_H
#define TEST_SHIM_H

#include <stdint.h>

/* Set for the program besides LD_PRELOAD; all but the first may be missing.
 *   SILT_SHIM_ROOT     the directory; only what lies below it is watched (a real path, absolute)
 *   SILT_SHIM_JOURNAL  a file to append records to
 *   SILT_SHIM_FAIL     "<call>:<n>:<how>[+]": the n-th such call on a watched file fails (+: and every later one); call: write sync open truncate
 *                      rename unlink mmap; how: the name of an errno (EIO ENOSPC EMFILE ENOMEM EDQUOT), or "short" (half is written)
 *   SILT_SHIM_WHILE    "<path>:<call>:<how>": as long as that file exists, all such calls fail
 *   SILT_SHIM_KILL     SIGKILL as soon as the n-th record is in the journal
 *   SILT_SHIM_LIE      any value: syncs are not done, not recorded, and succeed */

enum shim_kind {
    SHIM_OPEN = 1, /* an existing file gets its number: file; text: path */
    SHIM_CREATE,   /* a new one */
    SHIM_WRITE,    /* file, at; the bytes */
    SHIM_DSYNC,    /* the same, synced by itself (O_DSYNC, O_SYNC) */
    SHIM_TRUNCATE, /* file, at: size */
    SHIM_SYNC,     /* file */
    SHIM_SYNC_DIR, /* text: path */
    SHIM_RENAME,   /* text: from, NUL, to */
    SHIM_UNLINK,   /* text: path */
    SHIM_MKDIR,    /* text: path */
    SHIM_MAPPED,   /* file: a shared map to write through */
    SHIM_UNKNOWN,  /* something that this library has no model of; text: its name */
    SHIM_SEND,     /* the bytes of a command that may remove entries, about to leave */
    SHIM_NOTE,     /* text: the program's own */
    SHIM_CALLS     /* at an orderly end; text: " write=<calls> sync=<calls> ..." */
};

/* Followed by `len` bytes. Paths are relative to the root; the root itself is "". */
struct shim_record {
    uint32_t kind;
    int32_t
        error; /* errno; 0: it succeeded. What failed changed nothing, but for a sync that failed: what it covered may be lost for good */
    uint64_t file;
    uint64_t at;
    uint32_t len;
    uint32_t magic;
};
#define SHIM_MAGIC 0x5348494Du

/* For programs made for this: weak, so that they run without the library too. */
__attribute__((weak)) void silt_shim_note(const char *text);

#endif
