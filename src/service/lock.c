// One service a store: beside the store stands a file that the service holds locked, with the number of its process in it.
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

static enum code take(struct file *file, struct error *err)
{
    enum code rc;
    unsigned tries = 0;
    do {
        *err = (struct error){0};
        rc = file->disk->ops->lock(file, 0, err);
    } while (rc == E_LOCKED && os_lock_lingers(holder_of(file), &tries));
    return rc;
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
    rc = take(service->lock.file, err);
    if (rc == E_LOCKED) {
        *err = (struct error){0};
        return error_set(err, E_LOCKED, "process %lld serves this store already",
                         (long long)holder_of(service->lock.file));
    }
    snprintf(text, sizeof(text), "%-20lld\n", (long long)getpid());
    return rc ? rc : disk->ops->write(service->lock.file, 0, text, strlen(text), err);
}

void lock_release(struct service *service)
{
    if (service->lock.file) service->lock.disk->ops->close(service->lock.file);
    if (service->lock.disk) os_disk_close(service->lock.disk);
}
