/* Stands between a program and the file system (LD_PRELOAD): writes down what is done to files, and fails calls on demand. Offline, replay.c makes
 * from the journal what a power cut at any record may have left. Uses bare system calls, so that nothing here comes back to it.
 * See shim.h for how it is told what to do. */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define FDS 4096
#define INODES 4096
#define JOURNAL_FD 3000
#define PARTS 1100 /* of one record: IOV_MAX and a head */
#define SEND_MAX (64u << 10)

enum call { WRITE, SYNC, OPEN, TRUNCATE, RENAME, UNLINK, MMAP, CALLS };
static const char *const call_names[CALLS] = {"write",  "sync",   "open", "truncate",
                                              "rename", "unlink", "mmap"};

struct rule {
    bool set;
    enum call call;
    int error; /* 0: short */
    unsigned long nth;
    bool on;
    char path[PATH_MAX]; /* not empty: while this exists */
};

struct handle {
    bool watched, is_dir, dsync;
    uint64_t file;
    char path[256];
};

static struct {
    pthread_mutex_t lock;
    bool ready, lies;
    int journal;
    size_t root_len;
    unsigned long records, kill_at, calls[CALLS];
    uint64_t files;
    struct rule nth, condition;
    char root[PATH_MAX];
    struct handle handles[FDS];
    struct {
        uint64_t inode, file;
    } inodes[INODES];
    size_t inode_count;
} shim = {.lock = PTHREAD_MUTEX_INITIALIZER, .journal = -1};

/* ---- setting up ---- */

static const struct {
    const char *name;
    int error;
} errors[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EMFILE", EMFILE},
              {"ENOMEM", ENOMEM}, {"EDQUOT", EDQUOT}, {"short", 0}};

static void rule_how(struct rule *rule, const char *call, size_t call_len, const char *how)
{
    bool known_call = false, known_error = false;
    for (int i = 0; i < CALLS; i++)
        if (strlen(call_names[i]) == call_len && strncmp(call, call_names[i], call_len) == 0) {
            rule->call = (enum call)i;
            known_call = true;
        }
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        size_t len = strlen(errors[i].name);
        if (strncmp(how, errors[i].name, len) != 0) continue;
        rule->error = errors[i].error;
        rule->on = how[len] == '+';
        known_error = true;
    }
    rule->set = known_call && known_error;
    if (!rule->set) abort(); /* a test that misspells a fault would pass for nothing */
}

static void read_rules(void)
{
    const char *nth = getenv("SILT_SHIM_FAIL"), *condition = getenv("SILT_SHIM_WHILE");
    const char *colon = nth ? strchr(nth, ':') : NULL;
    if (colon) {
        char *end;
        shim.nth.nth = strtoul(colon + 1, &end, 10);
        rule_how(&shim.nth, nth, (size_t)(colon - nth), end + 1);
    }
    colon = condition ? strchr(condition, ':') : NULL;
    if (colon) {
        const char *how = strchr(colon + 1, ':');
        if (!how) abort();
        memcpy(shim.condition.path, condition, (size_t)(colon - condition));
        rule_how(&shim.condition, colon + 1, (size_t)(how - colon - 1), how + 1);
    }
}

static void after_fork_child(void)
{
    shim.ready = false; /* two processes would not agree on numbers */
}

__attribute__((constructor)) static void set_up(void)
{
    const char *root = getenv("SILT_SHIM_ROOT"), *journal = getenv("SILT_SHIM_JOURNAL");
    const char *kill_at = getenv("SILT_SHIM_KILL");
    if (!root) return;
    snprintf(shim.root, sizeof shim.root, "%s", root);
    shim.root_len = strlen(shim.root);
    if (journal) {
        int fd = (int)syscall(SYS_openat, AT_FDCWD, journal,
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        int high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, JOURNAL_FD);
        if (high >= 0) syscall(SYS_close, fd);
        shim.journal = high >= 0 ? high : fd;
        if (shim.journal < 0) abort();
    }
    if (kill_at) shim.kill_at = strtoul(kill_at, NULL, 10);
    shim.lies = getenv("SILT_SHIM_LIE") != NULL;
    read_rules();
    pthread_atfork(NULL, NULL, after_fork_child);
    shim.ready = true;
}

/* ---- the journal; all with the lock held ---- */

static void record_parts(enum shim_kind kind, int error, uint64_t file, uint64_t at,
                         const struct iovec *parts, int count, size_t len)
{
    struct shim_record head = {.kind = kind,
                               .error = error,
                               .file = file,
                               .at = at,
                               .len = (uint32_t)len,
                               .magic = SHIM_MAGIC};
    struct iovec all[PARTS] = {{&head, sizeof head}};
    size_t left = len;
    int n = 1;
    for (int i = 0; i < count && left > 0 && n < PARTS; i++) {
        size_t part = parts[i].iov_len < left ? parts[i].iov_len : left;
        all[n++] = (struct iovec){parts[i].iov_base, part};
        left -= part;
    }
    if (shim.journal >= 0) {
        long wrote = syscall(SYS_writev, shim.journal, all, n);
        if (left > 0 || wrote != (long)(sizeof head + len)) abort();
    }
    shim.records++;
    if (shim.kill_at && shim.records >= shim.kill_at)
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
}

static void record(enum shim_kind kind, int error, uint64_t file, uint64_t at, const void *bytes,
                   size_t len)
{
    struct iovec part = {(void *)(uintptr_t)bytes, len};
    record_parts(kind, error, file, at, &part, 1, len);
}

static void record_text(enum shim_kind kind, int error, uint64_t file, const char *text)
{
    record(kind, error, file, 0, text, strlen(text));
}

EXPORT void silt_shim_note(const char *text)
{
    if (!shim.ready) return;
    pthread_mutex_lock(&shim.lock);
    record_text(SHIM_NOTE, 0, 0, text);
    pthread_mutex_unlock(&shim.lock);
}

__attribute__((destructor)) static void tell_calls(void)
{
    char text[400];
    int len = 0;
    if (!shim.ready) return;
    for (int i = 0; i < CALLS; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, " %s=%lu", call_names[i],
                        shim.calls[i]);
    pthread_mutex_lock(&shim.lock);
    record_text(SHIM_CALLS, 0, 0, text);
    pthread_mutex_unlock(&shim.lock);
}

/* How this call is to fail: an errno; 0: not at all; -1: half of it. */
static int verdict(enum call call)
{
    int found = 0;
    shim.calls[call]++;
    const struct rule *rule = &shim.nth;
    if (rule->set && rule->call == call &&
        (shim.calls[call] == rule->nth || (rule->on && shim.calls[call] > rule->nth)))
        found = rule->error ? rule->error : -1;
    rule = &shim.condition;
    if (rule->set && rule->call == call && syscall(SYS_faccessat, AT_FDCWD, rule->path, F_OK) == 0)
        found = rule->error ? rule->error : -1;
    return found;
}

/* ---- paths and handles ---- */

/* The path below the root, or NULL. */
static const char *below(const char *path, char full[PATH_MAX])
{
    if (!shim.ready || !path) return NULL;
    if (path[0] != '/') {
        long len = syscall(SYS_getcwd, full, PATH_MAX);
        if (len <= 0 || (size_t)len + strlen(path) + 1 > PATH_MAX) return NULL;
        full[len - 1] = '/';
        memcpy(full + len, path, strlen(path) + 1);
        path = full;
    }
    if (strncmp(path, shim.root, shim.root_len) != 0) return NULL;
    if (path[shim.root_len] == 0) return path + shim.root_len;
    return path[shim.root_len] == '/' ? path + shim.root_len + 1 : NULL;
}

static struct handle *handle_of(int fd)
{
    return shim.ready && fd >= 0 && fd < FDS && shim.handles[fd].watched ? &shim.handles[fd] : NULL;
}

static uint64_t number_inode(uint64_t inode, bool is_new, bool *ret_known)
{
    size_t i = 0;
    while (i < shim.inode_count && shim.inodes[i].inode != inode)
        i++;
    *ret_known = i < shim.inode_count && !is_new;
    if (*ret_known) return shim.inodes[i].file;
    if (i == INODES) abort();
    if (i == shim.inode_count) shim.inode_count++;
    shim.inodes[i].inode = inode;
    shim.inodes[i].file = ++shim.files;
    return shim.files;
}

static void watch(int fd, const char *path, int flags, bool created)
{
    struct stat st;
    bool known;
    if (fd >= FDS || syscall(SYS_fstat, fd, &st) != 0) return;
    struct handle *handle = &shim.handles[fd];
    *handle = (struct handle){
        .watched = true, .is_dir = S_ISDIR(st.st_mode), .dsync = (flags & O_DSYNC) != 0};
    snprintf(handle->path, sizeof handle->path, "%s", path);
    if (handle->is_dir) return;
    handle->file = number_inode((uint64_t)st.st_ino, created, &known);
    if (!known) record_text(created ? SHIM_CREATE : SHIM_OPEN, 0, handle->file, path);
    if ((flags & O_TRUNC) && !created) record(SHIM_TRUNCATE, 0, handle->file, 0, NULL, 0);
}

static int open_watched(int dir, const char *path, const char *relative, int flags, mode_t mode)
{
    pthread_mutex_lock(&shim.lock);
    int error = verdict(OPEN);
    long fd = -1;
    if (error == 0) {
        bool created = (flags & O_CREAT) && syscall(SYS_faccessat, dir, path, F_OK) != 0;
        fd = syscall(SYS_openat, dir, path, flags, mode);
        error = fd < 0 ? errno : 0;
        if (fd >= 0) watch((int)fd, relative, flags, created);
    }
    pthread_mutex_unlock(&shim.lock);
    errno = error;
    return (int)fd;
}

static int open_any(int dir, const char *path, int flags, mode_t mode)
{
    char full[PATH_MAX];
    const char *relative = dir == AT_FDCWD || (path && path[0] == '/') ? below(path, full) : NULL;
    if (relative) return open_watched(dir, path, relative, flags, mode);
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

#define TAKE_MODE(flags, mode)                 \
    mode_t mode = 0;                           \
    if ((flags) & (O_CREAT | O_TMPFILE)) {     \
        va_list more;                          \
        va_start(more, flags);                 \
        mode = (mode_t)va_arg(more, unsigned); \
        va_end(more);                          \
    }

#define DEFINE_OPEN(name)                              \
    EXPORT int name(const char *path, int flags, ...); \
    EXPORT int name(const char *path, int flags, ...)  \
    {                                                  \
        TAKE_MODE(flags, mode)                         \
        return open_any(AT_FDCWD, path, flags, mode);  \
    }
#define DEFINE_OPENAT(name)                                     \
    EXPORT int name(int dir, const char *path, int flags, ...); \
    EXPORT int name(int dir, const char *path, int flags, ...)  \
    {                                                           \
        TAKE_MODE(flags, mode)                                  \
        return open_any(dir, path, flags, mode);                \
    }
#undef open
#undef open64
#undef openat
#undef openat64
DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPEN(__open_2)
DEFINE_OPEN(__open64_2)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)
DEFINE_OPENAT(__openat_2)
DEFINE_OPENAT(__openat64_2)

EXPORT int close(int fd)
{
    if (shim.ready && fd >= 0 && fd < FDS) {
        pthread_mutex_lock(&shim.lock);
        shim.handles[fd].watched = false;
        pthread_mutex_unlock(&shim.lock);
    }
    return (int)syscall(SYS_close, fd);
}

static int duplicated(int from, int to)
{
    if (shim.ready && to >= 0 && to < FDS && from >= 0 && from < FDS) {
        pthread_mutex_lock(&shim.lock);
        shim.handles[to] = shim.handles[from];
        pthread_mutex_unlock(&shim.lock);
    }
    return to;
}

EXPORT int dup(int fd)
{
    return duplicated(fd, (int)syscall(SYS_dup, fd));
}

EXPORT int dup2(int from, int to)
{
    if (from == to) return to;
    return duplicated(from, (int)syscall(SYS_dup3, from, to, 0));
}

EXPORT int dup3(int from, int to, int flags)
{
    return duplicated(from, (int)syscall(SYS_dup3, from, to, flags));
}

/* ---- writing ---- */

static bool removes_entries(const struct iovec *parts, int count)
{
    static const char *const words[] = {"EVALSHA", "EVAL", "XTRIM", "XDEL"};
    for (int i = 0; i < count; i++)
        for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
            if (memmem(parts[i].iov_base, parts[i].iov_len, words[w], strlen(words[w])))
                return true;
    return false;
}

/* Written down before it leaves. */
static void sending(const struct iovec *parts, int count)
{
    size_t len = 0;
    if (!shim.ready || !removes_entries(parts, count)) return;
    for (int i = 0; i < count; i++)
        len += parts[i].iov_len;
    pthread_mutex_lock(&shim.lock);
    record_parts(SHIM_SEND, 0, 0, 0, parts, count, len < SEND_MAX ? len : SEND_MAX);
    pthread_mutex_unlock(&shim.lock);
}

static ssize_t bare_write(int fd, const struct iovec *parts, int count, off_t at)
{
    if (at < 0) return syscall(SYS_writev, fd, parts, count);
    return syscall(SYS_pwritev, fd, parts, count, (long)at, 0L);
}

static ssize_t half(int fd, const struct iovec *parts, off_t at)
{
    struct iovec part = {parts[0].iov_base, (parts[0].iov_len + 1) / 2};
    return bare_write(fd, &part, 1, at);
}

/* at < 0: where the file stands. */
static ssize_t write_watched(int fd, const struct handle *handle, const struct iovec *parts,
                             int count, off_t at)
{
    pthread_mutex_lock(&shim.lock);
    off_t where = at;
    if (at < 0) where = syscall(SYS_lseek, fd, 0L, SEEK_CUR);
    if (at < 0 && (syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND))
        where = syscall(SYS_lseek, fd, 0L, SEEK_END);
    int error = verdict(WRITE);
    ssize_t wrote = -1;
    if (error <= 0) {
        wrote = error ? half(fd, parts, at) : bare_write(fd, parts, count, at);
        error = wrote < 0 ? errno : 0;
    }
    record_parts(handle->dsync && !shim.lies ? SHIM_DSYNC : SHIM_WRITE, error, handle->file,
                 (uint64_t)where, parts, count, wrote > 0 ? (size_t)wrote : 0);
    pthread_mutex_unlock(&shim.lock);
    errno = error;
    return wrote;
}

static ssize_t write_any(int fd, const struct iovec *parts, int count, off_t at)
{
    const struct handle *handle = handle_of(fd);
    if (handle) return write_watched(fd, handle, parts, count, at);
    sending(parts, count);
    return bare_write(fd, parts, count, at);
}

EXPORT ssize_t write(int fd, const void *at, size_t len)
{
    struct iovec part = {(void *)(uintptr_t)at, len};
    return write_any(fd, &part, 1, -1);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return write_any(fd, parts, count, -1);
}

#define DEFINE_PWRITE(name)                                            \
    EXPORT ssize_t name(int fd, const void *at, size_t len, off_t to); \
    EXPORT ssize_t name(int fd, const void *at, size_t len, off_t to)  \
    {                                                                  \
        struct iovec part = {(void *)(uintptr_t)at, len};              \
        return write_any(fd, &part, 1, to);                            \
    }
#define DEFINE_PWRITEV(name)                                                     \
    EXPORT ssize_t name(int fd, const struct iovec *parts, int count, off_t to); \
    EXPORT ssize_t name(int fd, const struct iovec *parts, int count, off_t to)  \
    {                                                                            \
        return write_any(fd, parts, count, to);                                  \
    }
DEFINE_PWRITE(pwrite)
DEFINE_PWRITE(pwrite64)
DEFINE_PWRITEV(pwritev)
DEFINE_PWRITEV(pwritev64)

EXPORT ssize_t send(int fd, const void *at, size_t len, int flags)
{
    struct iovec part = {(void *)(uintptr_t)at, len};
    sending(&part, 1);
    return syscall(SYS_sendto, fd, at, len, flags, NULL, 0);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    sending(message->msg_iov, (int)message->msg_iovlen);
    return syscall(SYS_sendmsg, fd, message, flags);
}

/* ---- syncing and size ---- */

static int sync_any(int fd, long number)
{
    const struct handle *handle = handle_of(fd);
    if (!handle) return (int)syscall(number, fd);
    if (shim.lies) return 0;
    pthread_mutex_lock(&shim.lock);
    int error = verdict(SYNC);
    if (error < 0) error = EIO;
    if (error == 0 && syscall(number, fd) != 0) error = errno;
    if (handle->is_dir)
        record_text(SHIM_SYNC_DIR, error, 0, handle->path);
    else
        record(SHIM_SYNC, error, handle->file, 0, NULL, 0);
    pthread_mutex_unlock(&shim.lock);
    errno = error;
    return error ? -1 : 0;
}

EXPORT int fsync(int fd)
{
    return sync_any(fd, SYS_fsync);
}

EXPORT int fdatasync(int fd)
{
    return sync_any(fd, SYS_fdatasync);
}

#define DEFINE_FTRUNCATE(name)                                                  \
    EXPORT int name(int fd, off_t size);                                        \
    EXPORT int name(int fd, off_t size)                                         \
    {                                                                           \
        const struct handle *handle = handle_of(fd);                            \
        if (!handle) return (int)syscall(SYS_ftruncate, fd, size);              \
        pthread_mutex_lock(&shim.lock);                                         \
        int error = verdict(TRUNCATE);                                          \
        if (error < 0) error = EIO;                                             \
        if (error == 0 && syscall(SYS_ftruncate, fd, size) != 0) error = errno; \
        record(SHIM_TRUNCATE, error, handle->file, (uint64_t)size, NULL, 0);    \
        pthread_mutex_unlock(&shim.lock);                                       \
        errno = error;                                                          \
        return error ? -1 : 0;                                                  \
    }
DEFINE_FTRUNCATE(ftruncate)
DEFINE_FTRUNCATE(ftruncate64)

/* What the replay has no model of must not pass unseen. */
static void unknown(int fd, const char *name)
{
    if (!handle_of(fd)) return;
    pthread_mutex_lock(&shim.lock);
    record_text(SHIM_UNKNOWN, 0, 0, name);
    pthread_mutex_unlock(&shim.lock);
}

#define DEFINE_FALLOCATE(name)                                 \
    EXPORT int name(int fd, int mode, off_t at, off_t len);    \
    EXPORT int name(int fd, int mode, off_t at, off_t len)     \
    {                                                          \
        unknown(fd, #name);                                    \
        return (int)syscall(SYS_fallocate, fd, mode, at, len); \
    }
DEFINE_FALLOCATE(fallocate)
DEFINE_FALLOCATE(fallocate64)

EXPORT int sync_file_range(int fd, off_t at, off_t len, unsigned flags)
{
    unknown(fd, "sync_file_range");
    return (int)syscall(SYS_sync_file_range, fd, at, len, flags);
}

#define DEFINE_MMAP(name)                                                             \
    EXPORT void *name(void *at, size_t len, int prot, int flags, int fd, off_t from); \
    EXPORT void *name(void *at, size_t len, int prot, int flags, int fd, off_t from)  \
    {                                                                                 \
        const struct handle *handle = handle_of(fd);                                  \
        if (handle) {                                                                 \
            pthread_mutex_lock(&shim.lock);                                           \
            int error = verdict(MMAP);                                                \
            if (error == 0 && (prot & PROT_WRITE) && (flags & MAP_SHARED))            \
                record_text(SHIM_MAPPED, 0, handle->file, handle->path);              \
            pthread_mutex_unlock(&shim.lock);                                         \
            errno = error > 0 ? error : EIO;                                          \
            if (error != 0) return MAP_FAILED;                                        \
        }                                                                             \
        return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, from);             \
    }
DEFINE_MMAP(mmap)
DEFINE_MMAP(mmap64)

/* ---- names ---- */

EXPORT int rename(const char *from, const char *to)
{
    char full_from[PATH_MAX], full_to[PATH_MAX], both[2 * 256];
    const char *a = below(from, full_from), *b = below(to, full_to);
    if (!a || !b) return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    int len = snprintf(both, sizeof both, "%s%c%s", a, 0, b);
    pthread_mutex_lock(&shim.lock);
    int error = verdict(RENAME);
    if (error < 0) error = EIO;
    if (error == 0 && syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0) != 0) error = errno;
    record(SHIM_RENAME, error, 0, 0, both, (size_t)len);
    pthread_mutex_unlock(&shim.lock);
    errno = error;
    return error ? -1 : 0;
}

EXPORT int unlink(const char *path)
{
    char full[PATH_MAX];
    const char *relative = below(path, full);
    if (!relative) return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    pthread_mutex_lock(&shim.lock);
    int error = verdict(UNLINK);
    if (error < 0) error = EIO;
    if (error == 0 && syscall(SYS_unlinkat, AT_FDCWD, path, 0) != 0) error = errno;
    record_text(SHIM_UNLINK, error, 0, relative);
    pthread_mutex_unlock(&shim.lock);
    errno = error;
    return error ? -1 : 0;
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    char full[PATH_MAX];
    const char *relative = below(path, full);
    if (!relative) return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    pthread_mutex_lock(&shim.lock);
    int error = syscall(SYS_mkdirat, AT_FDCWD, path, mode) != 0 ? errno : 0;
    record_text(SHIM_MKDIR, error, 0, relative);
    pthread_mutex_unlock(&shim.lock);
    errno = error;
    return error ? -1 : 0;
}

#define DEFINE_UNKNOWN_NAME(name, call, ...)          \
    EXPORT int name(const char *from, const char *to) \
    {                                                 \
        char full[PATH_MAX];                          \
        if (below(to, full)) {                        \
            pthread_mutex_lock(&shim.lock);           \
            record_text(SHIM_UNKNOWN, 0, 0, #name);   \
            pthread_mutex_unlock(&shim.lock);         \
        }                                             \
        return (int)syscall(call, __VA_ARGS__);       \
    }
DEFINE_UNKNOWN_NAME(link, SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0)
DEFINE_UNKNOWN_NAME(symlink, SYS_symlinkat, from, AT_FDCWD, to)
