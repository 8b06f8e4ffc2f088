/* Scratch directories. The program's main process makes one root; each test (a process of its own under Check) makes its own
 * directory inside and removes it when it ends; what a crashed test leaves goes with the root. */
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runner.h"

#define PATHS_MAX 256

static char root[PATH_MAX];
static pid_t root_owner;
static char dir[PATH_MAX];
static pid_t dir_owner;
static char *paths[PATHS_MAX];
static size_t path_count;

static bool kept(void)
{
    const char *text = getenv("KEEP");
    return text && *text && strcmp(text, "0") != 0;
}

static void remove_tree(char *path, size_t len)
{
    struct stat st;
    if (lstat(path, &st) != 0) return;
    if (!S_ISDIR(st.st_mode)) {
        unlink(path);
        return;
    }
    chmod(path, 0700); /* a test may have taken the rights away */
    DIR *entries = opendir(path);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        int more = snprintf(path + len, PATH_MAX - len, "/%s", entry->d_name);
        if (more > 0 && len + (size_t)more < PATH_MAX) remove_tree(path, len + (size_t)more);
        path[len] = '\0';
    }
    if (entries) closedir(entries);
    rmdir(path);
}

void test_remove_all(const char *path)
{
    char copy[PATH_MAX];
    int len = snprintf(copy, sizeof copy, "%s", path);
    if (len > 0 && (size_t)len < sizeof copy) remove_tree(copy, (size_t)len);
}

static void clean_up(void)
{
    for (size_t i = 0; i < path_count && dir_owner == getpid(); i++)
        free(paths[i]);
    if (kept()) {
        if (dir_owner == getpid()) fprintf(stderr, "kept: %s\n", dir);
        return;
    }
    if (dir_owner == getpid()) test_remove_all(dir);
    if (root_owner == getpid()) test_remove_all(root);
}

/* Short names: the path of a UNIX socket holds 107 bytes. */
static void make_dir(char *ret, size_t size, const char *parent, const char *name)
{
    int len = snprintf(ret, size, "%s/%s-XXXXXX", parent, name);
    if (len < 0 || (size_t)len >= size)
        test_die("the path of the scratch directory is too long: %s", parent);
    if (!mkdtemp(ret)) test_die("cannot make a directory in %s: %s", parent, strerror(errno));
}

/* In memory where there is such a place: a sync that waits for a disk proves nothing here and takes most of the time. Some machines
 * give it a few megabytes only, too few for a million entries. */
static bool has_room(const char *path)
{
    struct statvfs fs;
    return access(path, W_OK | X_OK) == 0 && statvfs(path, &fs) == 0 &&
           (unsigned long long)fs.f_bavail * fs.f_frsize >= 2ULL << 30;
}

void test_scratch_root_start(void)
{
    if (root_owner) return;
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent) parent = has_room("/dev/shm") ? "/dev/shm" : "/tmp";
    make_dir(root, sizeof root, parent, "silt");
    root_owner = getpid();
    atexit(clean_up);
}

const char *test_scratch(void)
{
    if (dir_owner == getpid()) return dir;
    test_scratch_root_start();
    path_count = 0; /* of the process this one was forked from */
    make_dir(dir, sizeof dir, root, "t");
    dir_owner = getpid();
    return dir;
}

void test_become_nobody(void)
{
    const uid_t nobody = 65534;
    if (geteuid() != 0) return;
    /* The way down to the directory must be open, the rest stays closed. */
    if (chmod(root, 0711) != 0 || chown(test_scratch(), nobody, nobody) != 0 ||
        setgroups(0, NULL) != 0 || setresgid(nobody, nobody, nobody) != 0 ||
        setresuid(nobody, nobody, nobody) != 0)
        test_die("cannot become nobody: %s", strerror(errno));
}

const char *test_path(const char *format, ...)
{
    char name[PATH_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    const char *parent = test_scratch();
    if (path_count == PATHS_MAX) test_die("test_path: more than %d paths in one test", PATHS_MAX);
    char *path = NULL;
    if (asprintf(&path, "%s/%s", parent, name) < 0) test_die("out of memory");
    paths[path_count++] = path;
    return path;
}

char *test_file_read(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    if (!file) test_die("cannot open %s: %s", path, strerror(errno));
    char *text = NULL;
    size_t len = 0;
    size_t cap = 0;
    do {
        if (cap - len < 4096) text = realloc(text, cap = cap * 2 + 8192);
        if (!text) test_die("out of memory");
        len += fread(text + len, 1, cap - len - 1, file);
    } while (!feof(file) && !ferror(file));
    if (ferror(file)) test_die("cannot read %s: %s", path, strerror(errno));
    fclose(file);
    text[len] = '\0';
    if (ret_len) *ret_len = len;
    return text;
}

void test_file_write(const char *path, const void *at, size_t len)
{
    FILE *file = fopen(path, "wb");
    if (!file) test_die("cannot make %s: %s", path, strerror(errno));
    bool good = fwrite(at, 1, len, file) == len;
    if (fclose(file) != 0 || !good) test_die("cannot write %s: %s", path, strerror(errno));
}

void test_file_copy(const char *from, const char *to)
{
    size_t len;
    char *text = test_file_read(from, &len);
    test_file_write(to, text, len);
    free(text);
}

void test_dir_copy(const char *from, const char *to)
{
    DIR *entries = opendir(from);
    if (!entries) test_die("cannot open %s: %s", from, strerror(errno));
    if (mkdir(to, 0700) != 0 && errno != EEXIST)
        test_die("cannot make %s: %s", to, strerror(errno));
    for (struct dirent *entry; (entry = readdir(entries));) {
        char source[PATH_MAX];
        char target[PATH_MAX];
        struct stat st;
        int len = snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
        int len2 = snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
        if (len >= PATH_MAX || len2 >= PATH_MAX) test_die("path too long: %s", from);
        if (lstat(source, &st) == 0 && S_ISREG(st.st_mode)) test_file_copy(source, target);
    }
    closedir(entries);
}
