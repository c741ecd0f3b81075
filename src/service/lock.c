// One service a store: beside the store stands a file that the service holds locked, with the number of its process in it. That file can be
// removed, and a store has it once for each name: a database, without which there is no store, is locked as well.
#include "service/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static int64_t holder_of(struct file *file)
{
    char text[24] = "";
    struct error err = {0};
    size_t got = 0;
    if (file->disk->ops->read(file, 0, text, sizeof(text) - 1, &got, &err)) return 0;
    return strtoll(text, NULL, 10);
}

// Of an SQLite database itself: one that SQLite never locks. A database is locked by whatever path or link it is reached.
enum { DATABASE_BYTE = 0x40000000 + 1024 };

static enum code lock_database(struct service *service, struct error *err)
{
    char file[PATH_SIZE];
    struct str path, kind = str_cut(service->settings.store, ':', &path);
    if (!str_is(kind, "sqlite")) return OK; // a files store has a lock of that kind itself
    int len = snprintf(file, sizeof(file), "%.*s", STR_ARG(path));
    if (len < 0 || (size_t)len >= sizeof(file)) return error_set(err, E_INVALID, "the path of the store is too long");
    return os_lock_byte(file, DATABASE_BYTE, &service->lock.database, err);
}

// The database goes first, as a process that ends may let the two go in any order. What is wrong with it besides is for the store to say.
static enum code lock_both(struct service *service, struct error *err)
{
    struct file *file = service->lock.file;
    *err = (struct error){0};
    if (lock_database(service, err) == E_LOCKED) return E_LOCKED;
    *err = (struct error){0};
    return file->disk->ops->lock(file, 0, err);
}

static enum code refuse(struct service *service, struct error *err)
{
    int64_t holder = holder_of(service->lock.file);
    *err = (struct error){0};
    if (holder <= 0 || holder == getpid()) return error_set(err, E_LOCKED, "another process serves this store already");
    return error_set(err, E_LOCKED, "process %lld serves this store already", (long long)holder);
}

enum code lock_take(struct service *service, struct error *err)
{
    char directory[PATH_SIZE], text[24];
    struct str path, url = service->settings.store;
    struct str kind = str_cut(url, ':', &path);
    if (!str_is(kind, "sqlite") && !str_is(kind, "files")) return OK; // nobody else can open it
    while (path.len > 1 && path.ptr[path.len - 1] == '/') path.len--;
    size_t slash = path.len;
    while (slash > 0 && path.ptr[slash - 1] != '/') slash--;
    snprintf(directory, sizeof(directory), "%.*s", slash ? (int)slash : 1, slash ? path.ptr : ".");
    struct str name = str_slice(path, slash, path.len);
    enum code rc = os_disk_open(directory, &service->lock.disk, err);
    if (rc) return rc;
    char file[PATH_SIZE];
    snprintf(file, sizeof(file), "%.*s.serve", STR_ARG(name));
    struct disk *disk = service->lock.disk;
    rc = disk->ops->open(disk, file, OPEN_READ | OPEN_WRITE | OPEN_CREATE, &service->lock.file, err);
    if (rc) return rc;
    unsigned tries = 0;
    do rc = lock_both(service, err);
    while (rc == E_LOCKED && os_lock_lingers(holder_of(service->lock.file), &tries));
    if (rc == E_LOCKED) return refuse(service, err);
    snprintf(text, sizeof(text), "%-20lld\n", (long long)getpid());
    return rc ? rc : disk->ops->write(service->lock.file, 0, text, strlen(text), err);
}

enum code lock_made(struct service *service, struct error *err)
{
    enum code rc = lock_database(service, err);
    return rc == E_LOCKED ? refuse(service, err) : rc;
}

// In the line below the number of the process.
enum { ADDRESS_AT = 21 };

void service_address(struct service *service, const char *url)
{
    char text[1024];
    struct error err = {0};
    struct file *file = service->lock.file;
    if (!file) return; // stores that others may serve too say nothing
    int len = snprintf(text, sizeof(text), "%s\n", url);
    if (len <= 0 || (size_t)len >= sizeof(text)) return;
    if (file->disk->ops->write(file, ADDRESS_AT, text, (size_t)len, &err))
        os_log(LOG_WARN, "the address of the service is not noted why=\"%s\"", err.message);
}

void lock_release(struct service *service)
{
    if (service->lock.file) service->lock.disk->ops->close(service->lock.file);
    if (service->lock.disk) os_disk_close(service->lock.disk);
    if (service->lock.database >= 0) close(service->lock.database);
}
