/* The archive's directory: which file is the current one, how a file becomes it, who may write. Must not know what is inside
 * the environment files.
 *
 * archive-<n>.mdb   an environment file; whole from the moment it has this name (it is made under another and renamed)
 * current           the name of the one that readers open; the writer can always tell it from the files alone
 * lock              held by the writer; its process id and PID namespace in it */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "alloc.h"
#include "faultpoint.h"
#include "store_priv.h"

#define DIR_MODE 0750
#define FILE_MODE 0640
#define FILE_PREFIX "archive-"
#define FILE_SUFFIX ".mdb"
#define CURRENT "current"
#define LOCK "lock"

/* ---- names ---- */

char *silt_path_join(const char *dir, const char *name, const char *suffix)
{
    size_t size = strlen(dir) + strlen(name) + (suffix ? strlen(suffix) : 0) + 2;
    char *path = silt_alloc(size);
    if (path) snprintf(path, size, "%s/%s%s", dir, name, suffix ? suffix : "");
    return path;
}

void silt_file_name(uint64_t number, char ret[SILT_FILE_NAME_MAX])
{
    snprintf(ret, SILT_FILE_NAME_MAX, FILE_PREFIX "%" PRIu64 FILE_SUFFIX, number);
}

/* Exactly the names that silt_file_name makes: nobody else's file is ever taken for ours. */
bool silt_file_number(const char *name, uint64_t *ret)
{
    char again[SILT_FILE_NAME_MAX];
    size_t len = strlen(name), prefix = strlen(FILE_PREFIX), suffix = strlen(FILE_SUFFIX);
    if (len <= prefix + suffix || strncmp(name, FILE_PREFIX, prefix) != 0) return false;
    if (!silt_parse_u64(silt_view(name + prefix, len - prefix - suffix), ret)) return false;
    silt_file_name(*ret, again);
    return strcmp(name, again) == 0;
}

/* ---- the file system ---- */

const char *silt_fs_refused(long magic)
{
    switch ((unsigned long)magic & 0xFFFFFFFFul) {
    case 0x6969: return "NFS";
    case 0xFF534D42: return "CIFS";
    case 0x517B: return "SMB";
    case 0xFE534D42: return "SMB2";
    case 0x01021997: return "9p";
    case 0x00C36400: return "Ceph";
    case 0x5346414F: return "AFS";
    case 0x564C: return "NCP";
    case 0x73757245: return "Coda";
    case 0x0BD00BD0: return "Lustre";
    case 0x47504653: return "GPFS";
    case 0x786F4256: return "a VirtualBox shared folder";
    default: return NULL;
    }
}

const char *silt_fs_doubtful(long magic)
{
    switch ((unsigned long)magic & 0xFFFFFFFFul) {
    case 0x794C7630: return "an overlay, as a container's own disk is: it goes with the container";
    case 0x65735546:
        return "FUSE: whether locks, maps and syncs can be trusted is up to its driver";
    case 0x01021994: return "tmpfs: it goes with the power";
    case 0x858458F6: return "ramfs: it goes with the power";
    default: return NULL;
    }
}

const char *silt_store_place(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 ? silt_fs_doubtful((long)fs.f_type) : NULL;
}

enum silt_status silt_dir_check(const char *dir, struct silt_err *err)
{
    struct stat st;
    struct statfs fs;
    struct statvfs mount;
    if (stat(dir, &st) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        silt_fail(err, SILT_ERR_NO_ARCHIVE, "there is no archive at %s", dir);
        silt_hint(err, "siltd makes it when it starts");
        return SILT_ERR_NO_ARCHIVE;
    }
    if (stat(dir, &st) != 0 || statfs(dir, &fs) != 0 || statvfs(dir, &mount) != 0)
        return silt_fail_errno(err, errno, "cannot look at %s", dir);
    if (!S_ISDIR(st.st_mode))
        return silt_fail(err, SILT_ERR_NOT_ARCHIVE, "%s is not a directory, so not an archive",
                         dir);
    const char *refused = silt_fs_refused((long)fs.f_type);
    if (refused) {
        silt_fail(err, SILT_ERR_PROTECTED, "%s lies on %s, where locks and maps cannot be trusted",
                  dir, refused);
        silt_hint(err, "put the archive on a local disk");
        return SILT_ERR_PROTECTED;
    }
    if (mount.f_flag & ST_RDONLY) {
        silt_fail(err, SILT_ERR_PERMISSION, "%s is mounted read-only", dir);
        silt_hint(err, "a reader must be able to write the lock file; copy the archive elsewhere");
        return SILT_ERR_PERMISSION;
    }
    return SILT_OK;
}

void silt_dir_hint_owner(const char *dir, struct silt_err *err)
{
    struct stat st;
    struct passwd entry, *found = NULL;
    char text[1024], user[64] = "the user it belongs to";
    int rc = stat(dir, &st);
    if (rc != 0 && errno != EACCES) return; /* it is not there */
    if (rc == 0) {
        if (st.st_uid == geteuid()) return; /* not a question of who */
        snprintf(user, sizeof user, "user %lu", (unsigned long)st.st_uid);
        if (getpwuid_r(st.st_uid, &entry, text, sizeof text, &found) == 0 && found != NULL)
            snprintf(user, sizeof user, "%s", entry.pw_name);
    }
    silt_hint(
        err,
        "an archive is opened by the same user who writes it, for reading too, since a reader writes the lock file: "
        "run as %s, or read through silt-serve",
        user);
}

enum silt_status silt_file_sync(const char *path, struct silt_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return silt_fail_errno(err, errno, "cannot open %s", path);
    int rc = SILT_FAULTPOINT("store-file-sync-fails") ? (errno = EIO, -1) : fsync(fd);
    int saved = errno;
    close(fd);
    return rc == 0 ? SILT_OK : silt_fail_errno(err, saved, "cannot sync %s", path);
}

enum silt_status silt_dir_sync(const char *dir, struct silt_err *err)
{
    return silt_file_sync(dir, err);
}

enum silt_status silt_dir_make(const char *dir, struct silt_err *err)
{
    if (mkdir(dir, DIR_MODE) != 0 && errno != EEXIST)
        return silt_fail_errno(err, errno, "cannot make the directory %s", dir);
    return SILT_OK;
}

/* Who may not read the parent can still have all of its file system written. */
static enum silt_status sync_around(const char *dir, struct silt_err *err)
{
    int fd = open(dir, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return silt_fail_errno(err, errno, "cannot open %s", dir);
    int rc = syncfs(fd);
    int saved = errno;
    close(fd);
    return rc == 0 ? SILT_OK : silt_fail_errno(err, saved, "cannot sync %s", dir);
}

enum silt_status silt_dir_sync_name(const char *dir, struct silt_err *err)
{
    char *copy = silt_strdup(dir);
    if (!copy) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    enum silt_status status = silt_dir_sync(dirname(copy), err);
    silt_free(copy);
    return status == SILT_ERR_PERMISSION ? sync_around(dir, err) : status;
}

void silt_file_give(const char *dir, const char *path)
{
    struct stat st;
    if (geteuid() != 0 || stat(dir, &st) != 0 || st.st_uid == 0) return;
    if (lchown(path, st.st_uid, st.st_gid) != 0) return; /* still readable by root: no harm */
}

/* ---- the current file ---- */

enum silt_status silt_dir_lowest(const char *dir, uint64_t at_least, char ret[SILT_FILE_NAME_MAX],
                                 struct silt_err *err)
{
    uint64_t number, lowest = UINT64_MAX;
    bool found = false;
    DIR *entries = opendir(dir);
    if (!entries) return silt_fail_errno(err, errno, "cannot read the directory %s", dir);
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (!silt_file_number(entry->d_name, &number) || number < at_least) continue;
        if (number < lowest) lowest = number;
        found = true;
    }
    closedir(entries);
    if (!found) return SILT_END;
    silt_file_name(lowest, ret);
    return SILT_OK;
}

/* SILT_END: it is not there or names no environment file. */
static enum silt_status read_current(const char *dir, char ret[SILT_FILE_NAME_MAX],
                                     struct silt_err *err)
{
    char text[SILT_FILE_NAME_MAX + 1] = {0};
    uint64_t number;
    char *path = silt_path_join(dir, CURRENT, NULL);
    if (!path) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int saved = errno;
    silt_free(path);
    if (fd < 0 && saved == ENOENT) return SILT_END;
    if (fd < 0) return silt_fail_errno(err, saved, "cannot read %s/" CURRENT, dir);
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0 || text[got - 1] != '\n') return SILT_END;
    text[got - 1] = '\0';
    if (!silt_file_number(text, &number)) return SILT_END;
    silt_file_name(number, ret);
    return SILT_OK;
}

bool silt_dir_has_current(const char *dir)
{
    char name[SILT_FILE_NAME_MAX];
    return read_current(dir, name, NULL) == SILT_OK;
}

enum silt_status silt_dir_current(const char *dir, char ret[SILT_FILE_NAME_MAX],
                                  struct silt_err *err)
{
    enum silt_status status = read_current(dir, ret, err);
    if (status != SILT_END) return status;
    return silt_dir_lowest(dir, 0, ret, err); /* lost or damaged: the files themselves tell */
}

static enum silt_status write_new(const char *dir, const char *path, const char *text,
                                  struct silt_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
    if (fd < 0) return silt_fail_errno(err, errno, "cannot make %s", path);
    ssize_t len = (ssize_t)strlen(text);
    ssize_t wrote = write(fd, text, (size_t)len);
    int rc = wrote != len ? -1 : fsync(fd);
    int saved = wrote >= 0 && wrote != len ? ENOSPC : errno;
    close(fd);
    silt_file_give(dir, path);
    return rc == 0 ? SILT_OK : silt_fail_errno(err, saved, "cannot write %s", path);
}

enum silt_status silt_dir_set_current(const char *dir, const char *file, struct silt_err *err)
{
    char line[SILT_FILE_NAME_MAX + 1];
    SILT_CLEANUP(silt_free_p) char *path = silt_path_join(dir, CURRENT, NULL);
    SILT_CLEANUP(silt_free_p) char *made = silt_path_join(dir, CURRENT, ".new");
    if (!path || !made) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    snprintf(line, sizeof line, "%s\n", file);
    enum silt_status status = write_new(dir, made, line, err);
    if (status != SILT_OK) return status;
    if (SILT_FAULTPOINT("store-before-current"))
        return silt_fail(err, SILT_ERR_IO, "cannot rename %s", made);
    if (rename(made, path) != 0) return silt_fail_errno(err, errno, "cannot rename %s", made);
    return silt_dir_sync(dir, err);
}

/* Ours, not `keep`, and neither its lock file nor a file that LMDB may have open there. */
static bool is_leftover(const char *name, const char *keep)
{
    char base[SILT_FILE_NAME_MAX];
    uint64_t number;
    size_t len = strlen(name), stem = 0;
    static const char *const suffixes[] = {".new-lock", ".new", "-lock", ""};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        size_t more = strlen(suffixes[i]);
        if (len <= more || strcmp(name + len - more, suffixes[i]) != 0) continue;
        stem = len - more;
        break;
    }
    if (stem == 0 || stem >= sizeof base) return false;
    memcpy(base, name, stem);
    base[stem] = '\0';
    if (!silt_file_number(base, &number)) return false;
    return strcmp(base, keep) != 0 || strncmp(name + stem, ".new", 4) == 0;
}

static bool remove_file(const char *dir, const char *name)
{
    char *path = silt_path_join(dir, name, NULL);
    bool removed = path && unlink(path) == 0;
    silt_free(path);
    return removed;
}

/* Replaced files go from the lowest on, so that the lowest that is left always begins the chain of successors. What cannot be
 * removed now can be at the next start. */
void silt_dir_clean(const char *dir, const char *keep)
{
    char lowest[SILT_FILE_NAME_MAX];
    uint64_t number = 0, kept;
    if (!silt_file_number(keep, &kept)) return;
    while (silt_dir_lowest(dir, 0, lowest, NULL) == SILT_OK && silt_file_number(lowest, &number) &&
           number < kept)
        if (!remove_file(dir, lowest)) return;
    if (number != kept) return; /* what should be kept is not there: nothing is a leftover */
    DIR *entries = opendir(dir);
    if (!entries) return;
    for (struct dirent *entry; (entry = readdir(entries));)
        if (is_leftover(entry->d_name, keep)) (void)remove_file(dir, entry->d_name);
    closedir(entries);
}

/* ---- the lock ---- */

uint64_t silt_pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* An OFD lock: it goes with its file description, so neither another open and close in this process nor a fork drops it, and
 * readers can test it without taking it. */
static struct flock whole_file(short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

static void read_holder(int fd, uint64_t *ret_pid, uint64_t *ret_namespace)
{
    char text[64] = {0};
    *ret_pid = *ret_namespace = 0;
    if (pread(fd, text, sizeof text - 1, 0) > 0)
        sscanf(text, "%" SCNu64 " %" SCNu64, ret_pid, ret_namespace);
}

static enum silt_status held(int fd, const char *dir, struct silt_err *err)
{
    uint64_t pid, ns;
    read_holder(fd, &pid, &ns);
    if (pid == (uint64_t)getpid() && ns == silt_pid_namespace())
        silt_fail(err, SILT_ERR_HELD, "%s is already being written by this process (%" PRIu64 ")",
                  dir, pid);
    else if (pid == 0) /* it has the lock and is about to write its name */
        silt_fail(err, SILT_ERR_HELD, "%s is held by another process", dir);
    else
        silt_fail(err, SILT_ERR_HELD, "%s is held by process %" PRIu64 "%s", dir, pid,
                  ns == silt_pid_namespace() ? "" : " of another PID namespace");
    silt_hint(err, "stop that process, or ask it over its control socket");
    return SILT_ERR_HELD;
}

static enum silt_status open_lock(const char *dir, int flags, int *ret, struct silt_err *err)
{
    char *path = silt_path_join(dir, LOCK, NULL);
    if (!path) return silt_fail(err, SILT_ERR_MEMORY, NULL);
    bool made = access(path, F_OK) != 0;
    int fd = open(path, flags | O_CLOEXEC, FILE_MODE);
    int saved = errno;
    if (fd >= 0 && made) silt_file_give(dir, path);
    silt_free(path);
    if (fd < 0 && saved == ENOENT) return SILT_END;
    if (fd < 0) return silt_fail_errno(err, saved, "cannot open %s/" LOCK, dir);
    *ret = fd;
    return SILT_OK;
}

enum silt_status silt_lock_take(const char *dir, int *ret_fd, struct silt_err *err)
{
    char text[64];
    int fd = -1;
    struct flock lock = whole_file(F_WRLCK);
    enum silt_status status = open_lock(dir, O_RDWR | O_CREAT, &fd, err);
    if (status == SILT_END)
        return silt_fail(err, SILT_ERR_NO_ARCHIVE, "there is no directory %s", dir);
    if (status != SILT_OK) return status;
    if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        status = errno == EAGAIN || errno == EACCES
                     ? held(fd, dir, err)
                     : silt_fail_errno(err, errno, "cannot lock %s/" LOCK, dir);
        close(fd);
        return status;
    }
    /* Not synced: after a power cut nobody holds it. Of fixed length, so that no older text shines through. */
    int len =
        snprintf(text, sizeof text, "%10ld %20" PRIu64 "\n", (long)getpid(), silt_pid_namespace());
    if (pwrite(fd, text, (size_t)len, 0) != len) {
        int saved = errno;
        close(fd);
        return silt_fail_errno(err, saved, "cannot write %s/" LOCK, dir);
    }
    *ret_fd = fd;
    return SILT_OK;
}

enum silt_status silt_lock_check(const char *dir, struct silt_err *err)
{
    uint64_t pid, ns;
    int fd = -1;
    struct flock lock = whole_file(F_WRLCK);
    enum silt_status status = open_lock(dir, O_RDWR, &fd, err);
    if (status == SILT_END) return SILT_OK;
    if (status != SILT_OK) return status;
    if (fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) {
        read_holder(fd, &pid, &ns);
        /* Process ids of two namespaces clash in LMDB's reader table: a live reader could look dead (protocol.md §10). */
        if (ns != 0 && ns != silt_pid_namespace()) status = held(fd, dir, err);
    }
    close(fd);
    return status;
}
