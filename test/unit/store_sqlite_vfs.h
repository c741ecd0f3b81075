// A VFS that passes everything on to the system's and counts, refuses and fails on demand, one per process; and stores on it.
#ifndef CAIRN_TEST_UNIT_STORE_SQLITE_VFS_H
#define CAIRN_TEST_UNIT_STORE_SQLITE_VFS_H

#include "conformance/store_kit.h"

#include <sqlite3.h>
#include <string.h>

struct shim {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    int syncs, writes;
    int fail_sync_in;    // the n-th sync from now fails with an input/output error; 0 = never
    sqlite3_int64 quota; // writes beyond this size of a file meet a full disk; 0 = none
    int refuse_database; // writes to the database file itself end with this; 0 = they do not
    int database_writes;
};

struct shim_file {
    sqlite3_file base;
    sqlite3_file *real; // directly behind this struct
    bool database;      // not its log
};

static struct shim shim;

static sqlite3_file *shim_real(sqlite3_file *file)
{
    return ((struct shim_file *)file)->real;
}

static int shim_close(sqlite3_file *file)
{
    return shim_real(file)->pMethods->xClose(shim_real(file));
}

static int shim_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 at)
{
    return shim_real(file)->pMethods->xRead(shim_real(file), bytes, size, at);
}

static int shim_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
    shim.writes++;
    bool database = ((struct shim_file *)file)->database;
    shim.database_writes += database;
    if (database && shim.refuse_database) return shim.refuse_database;
    if (shim.quota && at + size > shim.quota) return SQLITE_FULL;
    return shim_real(file)->pMethods->xWrite(shim_real(file), bytes, size, at);
}

static int shim_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return shim_real(file)->pMethods->xTruncate(shim_real(file), size);
}

static int shim_sync(sqlite3_file *file, int flags)
{
    shim.syncs++;
    if (shim.fail_sync_in && --shim.fail_sync_in == 0) return SQLITE_IOERR_FSYNC;
    return shim_real(file)->pMethods->xSync(shim_real(file), flags);
}

static int shim_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return shim_real(file)->pMethods->xFileSize(shim_real(file), size);
}

static int shim_lock(sqlite3_file *file, int lock)
{
    return shim_real(file)->pMethods->xLock(shim_real(file), lock);
}

static int shim_unlock(sqlite3_file *file, int lock)
{
    return shim_real(file)->pMethods->xUnlock(shim_real(file), lock);
}

static int shim_check_lock(sqlite3_file *file, int *out)
{
    return shim_real(file)->pMethods->xCheckReservedLock(shim_real(file), out);
}

static int shim_control(sqlite3_file *file, int op, void *argument)
{
    return shim_real(file)->pMethods->xFileControl(shim_real(file), op, argument);
}

static int shim_sector(sqlite3_file *file)
{
    return shim_real(file)->pMethods->xSectorSize(shim_real(file));
}

static int shim_traits(sqlite3_file *file)
{
    return shim_real(file)->pMethods->xDeviceCharacteristics(shim_real(file));
}

static int shim_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return shim_real(file)->pMethods->xShmMap(shim_real(file), page, size, extend, out);
}

static int shim_shm_lock(sqlite3_file *file, int from, int count, int flags)
{
    return shim_real(file)->pMethods->xShmLock(shim_real(file), from, count, flags);
}

static void shim_shm_barrier(sqlite3_file *file)
{
    shim_real(file)->pMethods->xShmBarrier(shim_real(file));
}

static int shim_shm_unmap(sqlite3_file *file, int remove)
{
    return shim_real(file)->pMethods->xShmUnmap(shim_real(file), remove);
}

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    static const sqlite3_io_methods methods = {
        2,           shim_close,   shim_read,     shim_write,       shim_truncate,  shim_sync,
        shim_size,   shim_lock,    shim_unlock,   shim_check_lock,  shim_control,   shim_sector,
        shim_traits, shim_shm_map, shim_shm_lock, shim_shm_barrier, shim_shm_unmap, NULL,
        NULL};
    (void)vfs;
    struct shim_file *own = (struct shim_file *)file;
    own->real = (sqlite3_file *)(own + 1);
    own->database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
    int rc = shim.real->xOpen(shim.real, name, own->real, flags, out_flags);
    own->base.pMethods = rc == SQLITE_OK ? &methods : NULL;
    return rc;
}

static inline const char *shim_register(void)
{
    shim = (struct shim){.real = sqlite3_vfs_find(NULL)};
    shim.vfs = *shim.real;
    shim.vfs.zName = "shim";
    shim.vfs.szOsFile = (int)sizeof(struct shim_file) + shim.real->szOsFile;
    shim.vfs.xOpen = shim_open;
    shim.vfs.pNext = NULL;
    CHECK_INT(sqlite3_vfs_register(&shim.vfs, 0), SQLITE_OK);
    return "shim";
}

static inline char *scratch_path(void)
{
    static char path[512];
    static unsigned count;
    snprintf(path, sizeof(path), "%s/store-%u.db", test_dir(), count++);
    return path;
}

static inline enum code try_open(struct kit *kit, const char *path, enum store_mode mode, const char *vfs)
{
    char url[600];
    snprintf(url, sizeof(url), "sqlite:%s", path);
    struct store_options options = kit_options(kit, mode);
    options.vfs = vfs;
    kit->err = (struct error){0};
    return store_open(str_from(url), &options, &kit->store, &kit->err);
}

static inline void start(struct kit *kit, const char *path, const char *vfs)
{
    kit_init(kit);
    CHECK_OK(try_open(kit, path, STORE_WRITE, vfs), &kit->err);
}

#endif
