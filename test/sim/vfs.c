#include "sim/vfs.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_MAX_LEN = 512, SECTOR_SIZE = 512, REGIONS_MAX = 64 };

struct vfs_file;

struct sim_vfs {
    sqlite3_vfs base;
    struct disk *disk;
    uint64_t random, time_ms;
    char name[64];
    // One database, opened by as many processes as the world has.
    struct vfs_file *databases;
    void *regions[REGIONS_MAX];
    uint32_t mapped; // handles that have the memory
};

struct vfs_file {
    sqlite3_file base;
    struct sim_vfs *vfs;
    struct file *file;
    bool fresh;         // made by us: its directory is synced with it, as SQLite's own VFS does
    bool remove_at_end; // SQLITE_OPEN_DELETEONCLOSE
    bool is_database, maps;
    int level;                  // SQLITE_LOCK_*
    uint16_t shared, exclusive; // slots of the shared memory that this handle has locked
    struct vfs_file *next;
    char path[PATH_MAX_LEN];
};

static struct sim_vfs *vfs_of(sqlite3_vfs *vfs)
{
    return CONTAINER_OF(vfs, struct sim_vfs, base);
}

static struct vfs_file *vfs_file_of(sqlite3_file *file)
{
    return CONTAINER_OF(file, struct vfs_file, base);
}

static int code_for(enum code code, int otherwise)
{
    if (code == OK) return SQLITE_OK;
    return code == E_FULL ? SQLITE_FULL : code == E_NOMEM ? SQLITE_NOMEM : otherwise;
}

static void parent_of(const char *path, char out[PATH_MAX_LEN])
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    memcpy(out, path, len);
    out[len] = '\0';
}

// ---- files

static int vfs_close(sqlite3_file *file)
{
    struct vfs_file *f = vfs_file_of(file);
    for (struct vfs_file **link = &f->vfs->databases; *link && f->is_database; link = &(*link)->next) {
        if (*link != f) continue;
        *link = f->next;
        break;
    }
    f->vfs->disk->ops->close(f->file);
    if (f->remove_at_end) (void)!f->vfs->disk->ops->remove(f->vfs->disk, f->path, NULL);
    return SQLITE_OK;
}

static int vfs_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset)
{
    struct vfs_file *f = vfs_file_of(file);
    size_t got = 0;
    enum code code = f->vfs->disk->ops->read(f->file, (uint64_t)offset, bytes, (size_t)size, &got, NULL);
    if (code != OK) return SQLITE_IOERR_READ;
    if (got == (size_t)size) return SQLITE_OK;
    memset((char *)bytes + got, 0, (size_t)size - got);
    return SQLITE_IOERR_SHORT_READ;
}

static int vfs_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    struct vfs_file *f = vfs_file_of(file);
    return code_for(f->vfs->disk->ops->write(f->file, (uint64_t)offset, bytes, (size_t)size, NULL), SQLITE_IOERR_WRITE);
}

static int vfs_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct vfs_file *f = vfs_file_of(file);
    return code_for(f->vfs->disk->ops->truncate(f->file, (uint64_t)size, NULL), SQLITE_IOERR_TRUNCATE);
}

static int vfs_sync(sqlite3_file *file, int flags UNUSED)
{
    struct vfs_file *f = vfs_file_of(file);
    enum code code = f->vfs->disk->ops->sync(f->file, NULL);
    if (code != OK) return SQLITE_IOERR_FSYNC;
    if (f->fresh) {
        char parent[PATH_MAX_LEN];
        parent_of(f->path, parent);
        if (f->vfs->disk->ops->sync_dir(f->vfs->disk, parent, NULL) != OK) return SQLITE_IOERR_DIR_FSYNC;
        f->fresh = false;
    }
    return SQLITE_OK;
}

static int vfs_file_size(sqlite3_file *file, sqlite3_int64 *out)
{
    struct vfs_file *f = vfs_file_of(file);
    uint64_t size = 0;
    enum code code = f->vfs->disk->ops->size(f->file, &size, NULL);
    *out = (sqlite3_int64)size;
    return code_for(code, SQLITE_IOERR_FSTAT);
}

// ---- locks: processes take turns, but each may hold something while the other one acts

static int highest_of_others(const struct vfs_file *f)
{
    int highest = SQLITE_LOCK_NONE;
    for (const struct vfs_file *other = f->vfs->databases; other; other = other->next)
        if (other != f && other->level > highest) highest = other->level;
    return highest;
}

static int vfs_lock(sqlite3_file *file, int level)
{
    struct vfs_file *f = vfs_file_of(file);
    int others = f->is_database ? highest_of_others(f) : SQLITE_LOCK_NONE;
    if (level <= f->level) return SQLITE_OK;
    if (level == SQLITE_LOCK_SHARED && others >= SQLITE_LOCK_PENDING) return SQLITE_BUSY;
    if (level == SQLITE_LOCK_RESERVED && others >= SQLITE_LOCK_RESERVED) return SQLITE_BUSY;
    if (level == SQLITE_LOCK_EXCLUSIVE && others >= SQLITE_LOCK_SHARED) {
        if (others < SQLITE_LOCK_PENDING) f->level = SQLITE_LOCK_PENDING;
        return SQLITE_BUSY;
    }
    f->level = level;
    return SQLITE_OK;
}

static int vfs_unlock(sqlite3_file *file, int level)
{
    struct vfs_file *f = vfs_file_of(file);
    if (level < f->level) f->level = level;
    return SQLITE_OK;
}

static int vfs_check_lock(sqlite3_file *file, int *reserved)
{
    struct vfs_file *f = vfs_file_of(file);
    *reserved = f->level >= SQLITE_LOCK_RESERVED || highest_of_others(f) >= SQLITE_LOCK_RESERVED;
    return SQLITE_OK;
}

// ---- shared memory: it dies with the last process that has it

static int vfs_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **out)
{
    struct vfs_file *f = vfs_file_of(file);
    struct sim_vfs *vfs = f->vfs;
    INVARIANT(region >= 0 && region < REGIONS_MAX);
    if (!f->maps) vfs->mapped++;
    f->maps = true;
    if (!vfs->regions[region] && extend) {
        vfs->regions[region] = calloc(1, (size_t)size);
        if (!vfs->regions[region]) return SQLITE_NOMEM;
    }
    *out = vfs->regions[region];
    return SQLITE_OK;
}

static int vfs_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    struct vfs_file *f = vfs_file_of(file);
    uint16_t slots = (uint16_t)(((1u << count) - 1u) << offset);
    if (flags & SQLITE_SHM_UNLOCK) {
        f->shared &= (uint16_t)~slots;
        f->exclusive &= (uint16_t)~slots;
        return SQLITE_OK;
    }
    bool alone = flags & SQLITE_SHM_EXCLUSIVE;
    for (const struct vfs_file *other = f->vfs->databases; other; other = other->next)
        if (other != f && ((other->exclusive & slots) || (alone && (other->shared & slots)))) return SQLITE_BUSY;
    if (alone)
        f->exclusive |= slots;
    else
        f->shared |= slots;
    return SQLITE_OK;
}

static void vfs_shm_barrier(sqlite3_file *file UNUSED)
{
}

static int vfs_shm_unmap(sqlite3_file *file, int remove UNUSED)
{
    struct vfs_file *f = vfs_file_of(file);
    f->shared = f->exclusive = 0;
    if (!f->maps) return SQLITE_OK;
    f->maps = false;
    if (--f->vfs->mapped > 0) return SQLITE_OK;
    for (int i = 0; i < REGIONS_MAX; i++) {
        free(f->vfs->regions[i]);
        f->vfs->regions[i] = NULL;
    }
    return SQLITE_OK;
}

static int vfs_control(sqlite3_file *file UNUSED, int operation UNUSED, void *argument UNUSED)
{
    return SQLITE_NOTFOUND;
}

static int vfs_sector_size(sqlite3_file *file UNUSED)
{
    return SECTOR_SIZE;
}

// Promises nothing: no atomic writes, no safe append, no powersafe overwrite.
static int vfs_characteristics(sqlite3_file *file UNUSED)
{
    return 0;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = vfs_close,
    .xRead = vfs_read,
    .xWrite = vfs_write,
    .xTruncate = vfs_truncate,
    .xSync = vfs_sync,
    .xFileSize = vfs_file_size,
    .xLock = vfs_lock,
    .xUnlock = vfs_unlock,
    .xCheckReservedLock = vfs_check_lock,
    .xFileControl = vfs_control,
    .xSectorSize = vfs_sector_size,
    .xDeviceCharacteristics = vfs_characteristics,
    .xShmMap = vfs_shm_map,
    .xShmLock = vfs_shm_lock,
    .xShmBarrier = vfs_shm_barrier,
    .xShmUnmap = vfs_shm_unmap,
};

// ---- the file system

static bool exists(struct sim_vfs *vfs, const char *path, enum code *code)
{
    struct file *file;
    *code = vfs->disk->ops->open(vfs->disk, path, OPEN_READ, &file, NULL);
    if (*code != OK) return false;
    vfs->disk->ops->close(file);
    return true;
}

static int vfs_open(sqlite3_vfs *base, const char *path, sqlite3_file *file, int flags, int *out_flags)
{
    struct sim_vfs *vfs = vfs_of(base);
    struct vfs_file *f = vfs_file_of(file);
    char temporary[32];
    memset(f, 0, sizeof(*f));
    if (!path) {
        sqlite3_snprintf(sizeof(temporary), temporary, "temporary-%llu", (unsigned long long)vfs->random++);
        path = temporary;
    }
    if (strlen(path) >= sizeof(f->path)) return SQLITE_CANTOPEN;
    unsigned how = OPEN_READ;
    if (flags & SQLITE_OPEN_READWRITE) how |= OPEN_WRITE;
    if (flags & SQLITE_OPEN_CREATE) how |= OPEN_CREATE;
    if (flags & SQLITE_OPEN_EXCLUSIVE) how |= OPEN_EXCLUSIVE;
    enum code code;
    f->fresh = (flags & SQLITE_OPEN_CREATE) && !exists(vfs, path, &code);
    code = vfs->disk->ops->open(vfs->disk, path, how, &f->file, NULL);
    if (code != OK) return code == E_FULL ? SQLITE_FULL : SQLITE_CANTOPEN;
    f->base.pMethods = &methods;
    f->vfs = vfs;
    if (flags & SQLITE_OPEN_MAIN_DB) {
        f->is_database = true;
        f->next = vfs->databases;
        vfs->databases = f;
    }
    f->remove_at_end = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    strncpy(f->path, path, sizeof(f->path) - 1);
    if (out_flags) *out_flags = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *base, const char *path, int sync)
{
    struct sim_vfs *vfs = vfs_of(base);
    enum code code = vfs->disk->ops->remove(vfs->disk, path, NULL);
    if (code == E_NOT_FOUND) return SQLITE_IOERR_DELETE_NOENT;
    if (code != OK) return SQLITE_IOERR_DELETE;
    char parent[PATH_MAX_LEN];
    parent_of(path, parent);
    if (sync && vfs->disk->ops->sync_dir(vfs->disk, parent, NULL) != OK) return SQLITE_IOERR_DIR_FSYNC;
    return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *base, const char *path, int flags UNUSED, int *out)
{
    enum code code;
    *out = exists(vfs_of(base), path, &code);
    return *out || code == E_NOT_FOUND ? SQLITE_OK : SQLITE_IOERR_ACCESS;
}

// Paths are relative to the root of the disk; a leading '/' is that root.
static int vfs_full_path(sqlite3_vfs *base UNUSED, const char *path, int size, char *out)
{
    while (*path == '/') path++;
    if (strlen(path) >= (size_t)size) return SQLITE_CANTOPEN;
    sqlite3_snprintf(size, out, "%s", path);
    return SQLITE_OK;
}

static int vfs_randomness(sqlite3_vfs *base, int size, char *out)
{
    struct sim_vfs *vfs = vfs_of(base);
    for (int i = 0; i < size; i++) {
        vfs->random = vfs->random * 6364136223846793005u + 1442695040888963407u;
        out[i] = (char)(vfs->random >> 56);
    }
    return size;
}

static int vfs_sleep(sqlite3_vfs *base, int microseconds)
{
    vfs_of(base)->time_ms += (uint64_t)microseconds / 1000 + 1;
    return microseconds;
}

// Milliseconds since noon of November 24, 4714 BC, starting at 2020-01-01.
static int vfs_time_ms(sqlite3_vfs *base, sqlite3_int64 *out)
{
    *out = 212444596800000 + (sqlite3_int64)vfs_of(base)->time_ms++;
    return SQLITE_OK;
}

static int vfs_time(sqlite3_vfs *base, double *out)
{
    sqlite3_int64 ms;
    vfs_time_ms(base, &ms);
    *out = (double)ms / 86400000.0;
    return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *base UNUSED, int size UNUSED, char *out UNUSED)
{
    return 0;
}

struct sim_vfs *sim_vfs_new(const char *name, struct disk *disk)
{
    struct sim_vfs *vfs = calloc(1, sizeof(*vfs));
    INVARIANT(vfs && strlen(name) < sizeof(vfs->name));
    memcpy(vfs->name, name, strlen(name) + 1);
    vfs->disk = disk;
    vfs->random = 1;
    vfs->base = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = sizeof(struct vfs_file),
        .mxPathname = PATH_MAX_LEN - 1,
        .zName = vfs->name,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time,
        .xGetLastError = vfs_last_error,
        .xCurrentTimeInt64 = vfs_time_ms,
    };
    int rc = sqlite3_vfs_register(&vfs->base, 0);
    INVARIANT(rc == SQLITE_OK);
    return vfs;
}

void sim_vfs_free(struct sim_vfs *vfs)
{
    sqlite3_vfs_unregister(&vfs->base);
    free(vfs);
}

void sim_vfs_seed(struct sim_vfs *vfs, uint64_t seed)
{
    vfs->random = seed;
}
