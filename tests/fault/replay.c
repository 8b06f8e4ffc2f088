/* The disk of replay.h: for each file what the program sees, what is surely on the disk, and in between, in order, every sector written since the
 * last sync as it then was. */
#include "replay.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/runner.h"
#include "harness/scratch.h"

#define SECTOR 512u
#define FILES 512
#define NAMES 64
#define PATH 160

struct bytes {
    uint8_t *at;
    size_t len, cap;
};

/* One sector as it was after a write, or a new size. */
struct pending {
    bool truncate;
    uint64_t sector;
    size_t size; /* of the file, after it */
    uint8_t data[SECTOR];
};

struct disk_file {
    bool used, wild; /* wild: written through a map; any content is possible */
    struct bytes seen, synced;
    struct pending *pending;
    size_t pending_count, pending_cap;
};

struct name {
    char path[PATH];
    int file; /* -1: a directory */
};

struct names {
    struct name at[NAMES];
    size_t count;
};

struct name_change {
    enum shim_kind kind;
    char path[PATH], to[PATH];
    int file;
};

struct replay {
    uint8_t *journal;
    size_t len, at, count;
    struct test_rng *rng;
    struct disk_file files[FILES];
    int file_count;
    int numbers[FILES]; /* the journal's number -> file */
    struct names seen, synced;
    struct name_change *changes;
    size_t change_count, change_cap;
};

static void *grown(void *at, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap) return at;
    size_t more = *cap ? *cap * 2 : 64;
    while (more < need)
        more *= 2;
    at = realloc(at, more * size);
    if (!at) test_die("no memory");
    *cap = more;
    return at;
}

/* ---- bytes ---- */

static void resize(struct bytes *bytes, size_t len)
{
    bytes->at = grown(bytes->at, &bytes->cap, len, 1);
    if (len > bytes->len) memset(bytes->at + bytes->len, 0, len - bytes->len);
    bytes->len = len;
}

static void overwrite(struct bytes *bytes, size_t at, const void *from, size_t len)
{
    if (at + len > bytes->len) resize(bytes, at + len);
    if (len) memcpy(bytes->at + at, from, len);
}

/* A sector lands: not beyond the size that the file had then. */
static void land(struct bytes *bytes, const struct pending *pending)
{
    if (pending->truncate) {
        resize(bytes, pending->size);
        return;
    }
    size_t at = (size_t)pending->sector * SECTOR;
    if (at >= pending->size) return;
    size_t len = pending->size - at < SECTOR ? pending->size - at : SECTOR;
    overwrite(bytes, at, pending->data, len);
}

/* ---- names ---- */

static struct name *find(struct names *names, const char *path)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->at[i].path, path) == 0) return &names->at[i];
    return NULL;
}

static void drop(struct names *names, const char *path)
{
    struct name *name = find(names, path);
    if (name) *name = names->at[--names->count];
}

static void put(struct names *names, const char *path, int file)
{
    struct name *name = find(names, path);
    if (!name && names->count == NAMES) test_die("more than %d names", NAMES);
    if (!name) name = &names->at[names->count++];
    snprintf(name->path, sizeof name->path, "%s", path);
    name->file = file;
}

static void change_names(struct names *names, const struct name_change *change)
{
    switch (change->kind) {
    case SHIM_UNLINK: drop(names, change->path); break;
    case SHIM_RENAME: {
        const struct name *from = find(names, change->path);
        if (from && from->file == change->file) drop(names, change->path);
        put(names, change->to, change->file);
        break;
    }
    default: put(names, change->path, change->file); break;
    }
}

static void note_change(struct replay *replay, enum shim_kind kind, const char *path,
                        const char *to, int file)
{
    replay->changes = grown(replay->changes, &replay->change_cap, replay->change_count + 1,
                            sizeof *replay->changes);
    struct name_change *change = &replay->changes[replay->change_count++];
    *change = (struct name_change){.kind = kind, .file = file};
    snprintf(change->path, sizeof change->path, "%s", path);
    snprintf(change->to, sizeof change->to, "%s", to);
    change_names(&replay->seen, change);
}

static bool lies_in(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    const char *rest = path;
    if (len > 0) {
        if (strncmp(path, dir, len) != 0 || path[len] != '/') return false;
        rest = path + len + 1;
    }
    return strchr(rest, '/') == NULL;
}

static void sync_dir(struct replay *replay, const char *dir)
{
    size_t left = 0;
    for (size_t i = 0; i < replay->change_count; i++) {
        if (lies_in(replay->changes[i].path, dir))
            change_names(&replay->synced, &replay->changes[i]);
        else
            replay->changes[left++] = replay->changes[i];
    }
    replay->change_count = left;
}

/* ---- files ---- */

static int new_file(struct replay *replay)
{
    if (replay->file_count == FILES) test_die("more than %d files", FILES);
    replay->files[replay->file_count].used = true;
    return replay->file_count++;
}

static struct disk_file *file_of(struct replay *replay, const struct shim_record *record)
{
    if (record->file >= FILES || replay->numbers[record->file] < 0)
        test_die("the journal writes to a file that it never opened");
    return &replay->files[replay->numbers[record->file]];
}

static struct pending *add_pending(struct disk_file *file)
{
    file->pending =
        grown(file->pending, &file->pending_cap, file->pending_count + 1, sizeof *file->pending);
    struct pending *pending = &file->pending[file->pending_count++];
    memset(pending, 0, sizeof *pending);
    return pending;
}

static void take_sector(const struct disk_file *file, uint64_t sector, struct pending *ret)
{
    size_t at = (size_t)sector * SECTOR;
    size_t len = file->seen.len - at < SECTOR ? file->seen.len - at : SECTOR;
    *ret = (struct pending){.sector = sector, .size = file->seen.len};
    memcpy(ret->data, file->seen.at + at, len);
}

static void forget_sector(struct disk_file *file, uint64_t sector)
{
    size_t left = 0;
    for (size_t i = 0; i < file->pending_count; i++)
        if (file->pending[i].truncate || file->pending[i].sector != sector)
            file->pending[left++] = file->pending[i];
    file->pending_count = left;
}

static void write_file(struct disk_file *file, const struct shim_record *record, const char *bytes)
{
    if (record->len == 0) return;
    overwrite(&file->seen, (size_t)record->at, bytes, record->len);
    uint64_t last = (record->at + record->len - 1) / SECTOR;
    for (uint64_t sector = record->at / SECTOR; sector <= last; sector++) {
        if (record->kind == SHIM_WRITE) {
            take_sector(file, sector, add_pending(file));
            continue;
        }
        /* Synced by itself, and nothing else with it. */
        struct pending now;
        take_sector(file, sector, &now);
        forget_sector(file, sector);
        land(&file->synced, &now);
    }
}

/* A failed sync: the kernel calls everything clean that it could not write, so no later sync brings it. */
static void sync_file(struct replay *replay, struct disk_file *file, bool failed)
{
    for (size_t i = 0; i < file->pending_count; i++)
        if (!failed || test_rng_chance(replay->rng, 50)) land(&file->synced, &file->pending[i]);
    file->pending_count = 0;
}

static void truncate_file(struct disk_file *file, size_t size)
{
    resize(&file->seen, size);
    struct pending *pending = add_pending(file);
    pending->truncate = true;
    pending->size = size;
}

/* ---- the journal ---- */

static bool ends_with(const char *text, const char *suffix)
{
    size_t len = strlen(text), tail = strlen(suffix);
    return len >= tail && strcmp(text + len - tail, suffix) == 0;
}

static void open_known(struct replay *replay, const struct shim_record *record, const char *path)
{
    const struct name *name = find(&replay->seen, path);
    if (!name) test_die("the journal opens %s, which is not there", path);
    replay->numbers[record->file] = name->file;
}

static void create(struct replay *replay, const struct shim_record *record, const char *path)
{
    int file = new_file(replay);
    replay->numbers[record->file] = file;
    note_change(replay, SHIM_CREATE, path, "", file);
}

static void apply_name(struct replay *replay, const struct shim_record *record, const char *text)
{
    const char *to = text + strlen(text) + 1;
    const struct name *name = find(&replay->seen, text);
    if (record->error) return;
    if (record->kind == SHIM_MKDIR)
        note_change(replay, SHIM_MKDIR, text, "", -1);
    else if (!name)
        test_die("the journal changes %s, which is not there", text);
    else
        note_change(replay, record->kind, text, record->kind == SHIM_RENAME ? to : "", name->file);
}

static void apply(struct replay *replay, const struct shim_record *record, const char *bytes)
{
    switch ((enum shim_kind)record->kind) {
    case SHIM_OPEN: open_known(replay, record, bytes); break;
    case SHIM_CREATE: create(replay, record, bytes); break;
    case SHIM_WRITE:
    case SHIM_DSYNC: write_file(file_of(replay, record), record, bytes); break;
    case SHIM_TRUNCATE:
        if (!record->error) truncate_file(file_of(replay, record), (size_t)record->at);
        break;
    case SHIM_SYNC: sync_file(replay, file_of(replay, record), record->error != 0); break;
    case SHIM_SYNC_DIR:
        if (!record->error) sync_dir(replay, bytes);
        break;
    case SHIM_RENAME:
    case SHIM_UNLINK:
    case SHIM_MKDIR: apply_name(replay, record, bytes); break;
    case SHIM_MAPPED:
        /* E5: nothing but LMDB's table of locks and readers is ever written through a map. */
        if (!ends_with(bytes, "-lock")) test_die("%s is written through a map", bytes);
        file_of(replay, record)->wild = true;
        break;
    case SHIM_SEND:
    case SHIM_NOTE:
    case SHIM_CALLS: break;
    default: test_die("the program did what there is no model of: %s", bytes);
    }
}

static bool head_at(const struct replay *replay, size_t at, struct shim_record *ret)
{
    if (replay->len - at < sizeof *ret) return false;
    memcpy(ret, replay->journal + at, sizeof *ret);
    if (ret->magic != SHIM_MAGIC) test_die("the journal is no journal at %zu", at);
    return replay->len - at - sizeof *ret >= ret->len;
}

bool replay_next(struct replay *replay, struct shim_record *ret, const char **ret_bytes)
{
    static char *bytes;
    static size_t cap;
    if (!head_at(replay, replay->at, ret)) return false;
    bytes = grown(bytes, &cap, ret->len + 2u, 1);
    memcpy(bytes, replay->journal + replay->at + sizeof *ret, ret->len);
    bytes[ret->len] = bytes[ret->len + 1] = 0;
    replay->at += sizeof *ret + ret->len;
    apply(replay, ret, bytes);
    if (ret_bytes) *ret_bytes = bytes;
    return true;
}

size_t replay_count(const struct replay *replay)
{
    return replay->count;
}

/* ---- from and to a real directory ---- */

static void load_file(struct replay *replay, const char *base, const char *path)
{
    char full[512];
    size_t len;
    snprintf(full, sizeof full, "%s/%s", base, path);
    char *text = test_file_read(full, &len);
    int file = new_file(replay);
    overwrite(&replay->files[file].seen, 0, text, len);
    overwrite(&replay->files[file].synced, 0, text, len);
    put(&replay->seen, path, file);
    put(&replay->synced, path, file);
    free(text);
}

static void load(struct replay *replay, const char *base, const char *inner)
{
    char full[400], path[PATH + 300];
    snprintf(full, sizeof full, "%s/%s", base, inner);
    DIR *dir = opendir(full);
    if (!dir) test_die("cannot read %s", full);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s%s%s", inner, inner[0] ? "/" : "", entry->d_name);
        if (strlen(path) >= PATH) test_die("a long name: %s", path);
        if (entry->d_type != DT_DIR) {
            load_file(replay, base, path);
            continue;
        }
        put(&replay->seen, path, -1);
        put(&replay->synced, path, -1);
        load(replay, base, path);
    }
    closedir(dir);
}

struct replay *replay_new(const char *journal, const char *base, struct test_rng *rng)
{
    struct replay *replay = calloc(1, sizeof *replay);
    struct shim_record record;
    if (!replay) test_die("no memory");
    replay->rng = rng;
    for (int i = 0; i < FILES; i++)
        replay->numbers[i] = -1;
    replay->journal = (uint8_t *)test_file_read(journal, &replay->len);
    for (size_t at = 0; head_at(replay, at, &record); at += sizeof record + record.len)
        replay->count++;
    if (base) load(replay, base, "");
    return replay;
}

void replay_free(struct replay *replay)
{
    if (!replay) return;
    for (int i = 0; i < replay->file_count; i++) {
        free(replay->files[i].seen.at);
        free(replay->files[i].synced.at);
        free(replay->files[i].pending);
    }
    free(replay->changes);
    free(replay->journal);
    free(replay);
}

static void make_wild(const char *full, struct test_rng *rng)
{
    uint8_t noise[12288];
    size_t len = (size_t)test_rng_below(rng, 4) * 4096;
    test_rng_bytes(rng, noise, len);
    test_file_write(full, noise, len);
}

static void make_file(const struct disk_file *file, const char *full, unsigned percent,
                      struct test_rng *rng)
{
    struct bytes image = {0};
    if (file->wild) {
        make_wild(full, rng);
        return;
    }
    overwrite(&image, 0, file->synced.at, file->synced.len);
    for (size_t i = 0; i < file->pending_count; i++)
        if (test_rng_chance(rng, percent)) land(&image, &file->pending[i]);
    /* The size may have arrived, and what belongs there not. */
    if (percent > 0 && file->pending_count > 0 && image.len < file->seen.len &&
        test_rng_chance(rng, 30))
        resize(&image, file->seen.len);
    test_file_write(full, image.at ? (const void *)image.at : "", image.len);
    free(image.at);
}

static void clear(const char *dir)
{
    test_remove_all(dir);
    if (mkdir(dir, 0750) != 0) test_die("cannot make %s: %s", dir, strerror(errno));
}

void replay_cut(const struct replay *replay, const char *dir, unsigned percent,
                struct test_rng *rng)
{
    static struct names names;
    names = replay->synced;
    for (size_t i = 0; i < replay->change_count; i++)
        if (test_rng_chance(rng, percent)) change_names(&names, &replay->changes[i]);
    clear(dir);
    char full[512];
    for (size_t i = 0; i < names.count; i++) {
        if (names.at[i].file >= 0) continue;
        snprintf(full, sizeof full, "%s/%s", dir, names.at[i].path);
        clear(full);
    }
    for (size_t i = 0; i < names.count; i++) {
        const struct name *name = &names.at[i];
        char parent[PATH];
        snprintf(parent, sizeof parent, "%s", name->path);
        char *slash = strrchr(parent, '/');
        if (slash) *slash = 0;
        if (name->file < 0 || (slash && !find(&names, parent))) continue;
        snprintf(full, sizeof full, "%s/%s", dir, name->path);
        make_file(&replay->files[name->file], full, percent, rng);
    }
}

const char *replay_difference(const struct replay *replay, const char *dir)
{
    static char what[256];
    char full[512];
    for (size_t i = 0; i < replay->seen.count; i++) {
        const struct name *name = &replay->seen.at[i];
        if (name->file < 0 || replay->files[name->file].wild) continue;
        size_t len;
        struct stat st;
        const struct bytes *seen = &replay->files[name->file].seen;
        snprintf(what, sizeof what, "%s", name->path);
        snprintf(full, sizeof full, "%s/%s", dir, name->path);
        if (stat(full, &st) != 0) return what;
        char *text = test_file_read(full, &len);
        bool same = len == seen->len && (len == 0 || memcmp(text, seen->at, len) == 0);
        free(text);
        if (!same) return what;
    }
    return NULL;
}

size_t replay_pending(const struct replay *replay, const char *suffix)
{
    size_t count = 0;
    for (size_t i = 0; i < replay->seen.count; i++) {
        const struct name *name = &replay->seen.at[i];
        if (name->file >= 0 && ends_with(name->path, suffix))
            count += replay->files[name->file].pending_count;
    }
    return count;
}
