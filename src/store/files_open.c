// Files of runs: their names, the few that are kept open, and what happens to those that are not what they should be.
#include "store/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const file_names[] = {[RUN_EVENTS] = "events.jsonl", [RUN_LEDGER] = "ledger.jsonl"};

// store.c lets no other id in; a slot on a damaged disk might (I39).
static bool safe_name(struct str name)
{
    return name.len > 0 && name.len <= 200 && name.ptr[0] != '.' && name.ptr[0] != '@' &&
           !memchr(name.ptr, '/', name.len) && !memchr(name.ptr, '\0', name.len);
}

enum code files_run_path(struct str tenant, struct str run, const char *name, char path[PATH_SIZE], struct error *err)
{
    if (!safe_name(tenant) || !safe_name(run))
        return error_set(err, E_INVALID, "run %.*s of tenant %.*s cannot be the name of a directory", STR_ARG(run),
                         STR_ARG(tenant));
    const char *slash = name[0] ? "/" : "";
    int len = str_is(tenant, "default")
                  ? snprintf(path, PATH_SIZE, "%.*s%s%s", STR_ARG(run), slash, name)
                  : snprintf(path, PATH_SIZE, "@%.*s/%.*s%s%s", STR_ARG(tenant), STR_ARG(run), slash, name);
    INVARIANT(len > 0 && len < PATH_SIZE);
    return OK;
}

// ---- cache

static uint16_t *bucket_of(struct file_cache *cache, uint64_t position, uint8_t kind)
{
    return &cache->buckets[(position * 2 + kind) % CACHE_BUCKETS];
}

static void unlink_used(struct file_cache *cache, uint16_t at)
{
    struct cached_file *file = &cache->files[at - 1];
    *(file->newer ? &cache->files[file->newer - 1].older : &cache->newest) = file->older;
    *(file->older ? &cache->files[file->older - 1].newer : &cache->oldest) = file->newer;
}

static void link_newest(struct file_cache *cache, uint16_t at)
{
    struct cached_file *file = &cache->files[at - 1];
    file->newer = 0;
    file->older = cache->newest;
    *(cache->newest ? &cache->files[cache->newest - 1].newer : &cache->oldest) = at;
    cache->newest = at;
}

static struct file *cache_get(struct file_cache *cache, uint64_t position, uint8_t kind)
{
    uint16_t at = *bucket_of(cache, position, kind);
    while (at && (cache->files[at - 1].position != position || cache->files[at - 1].kind != kind))
        at = cache->files[at - 1].next;
    if (!at) return NULL;
    unlink_used(cache, at);
    link_newest(cache, at);
    return cache->files[at - 1].file;
}

static void cache_drop(struct files_store *files, uint16_t at)
{
    INVARIANT(at >= 1 && at <= OPEN_FILES_MAX);
    struct file_cache *cache = &files->cache;
    struct cached_file *file = &cache->files[at - 1];
    uint16_t *chain = bucket_of(cache, file->position, file->kind);
    while (*chain != at) chain = &cache->files[*chain - 1].next;
    *chain = file->next;
    unlink_used(cache, at);
    files->disk->ops->close(file->file);
    *file = (struct cached_file){.next = cache->free};
    cache->free = at;
}

static void cache_put(struct files_store *files, uint64_t position, uint8_t kind, struct file *file)
{
    INVARIANT(file && position >= 1);
    struct file_cache *cache = &files->cache;
    if (!cache->free && cache->count == OPEN_FILES_MAX) cache_drop(files, cache->oldest);
    uint16_t at = cache->free;
    if (at)
        cache->free = cache->files[at - 1].next;
    else
        at = ++cache->count;
    uint16_t *bucket = bucket_of(cache, position, kind);
    cache->files[at - 1] = (struct cached_file){.file = file, .position = position, .kind = kind, .next = *bucket};
    *bucket = at;
    link_newest(cache, at);
}

void files_close_cached(struct files_store *files, uint64_t above)
{
    for (uint16_t at = 1; at <= files->cache.count; at++)
        if (files->cache.files[at - 1].file && files->cache.files[at - 1].position > above) cache_drop(files, at);
}

static enum code make_run_dir(struct files_store *files, struct str tenant, struct str run, struct error *err)
{
    INVARIANT(files->writer);
    char path[PATH_SIZE];
    enum code rc = OK;
    if (!str_is(tenant, "default")) {
        snprintf(path, sizeof(path), "@%.*s", STR_ARG(tenant));
        rc = files->disk->ops->make_dir(files->disk, path, err);
    }
    if (rc == OK) rc = files_run_path(tenant, run, "", path, err);
    return rc == OK ? files->disk->ops->make_dir(files->disk, path, err) : rc;
}

static enum code open_uncached(struct files_store *files, struct str tenant, struct str run, enum run_file kind,
                               bool create, bool fresh, struct file **out, struct error *err)
{
    char path[PATH_SIZE];
    struct error told = {.code = OK};
    enum code rc = files_run_path(tenant, run, file_names[kind], path, &told);
    if (rc != OK) return error_set(err, E_CORRUPT, "%s", told.message);
    unsigned flags = files->writer ? OPEN_READ | OPEN_WRITE : OPEN_READ;
    rc = fresh ? E_NOT_FOUND : files->disk->ops->open(files->disk, path, flags, out, &told);
    if (rc == E_NOT_FOUND && create) {
        told.code = OK;
        rc = make_run_dir(files, tenant, run, &told);
        if (rc == OK) rc = files->disk->ops->open(files->disk, path, flags | OPEN_CREATE, out, &told);
    }
    // A link, a device or a directory in its place: no engine makes one, and this run is not to be trusted (P1).
    if (rc == E_INVALID) rc = E_CORRUPT;
    return rc == OK ? OK : error_set(err, rc, "%s", told.message);
}

enum code files_open_run(struct files_store *files, const struct disk_slot *slot, enum run_file kind, bool create,
                         struct file **out, struct error *err)
{
    *out = cache_get(&files->cache, slot->position, (uint8_t)kind);
    if (*out) return OK;
    struct run_head head;
    struct arena names SCOPED(arena_release) = arena_of(1024, SIZE_MAX);
    bool fresh =
        create && !files->recovering && slot->position > files->run_count; // do not ask for what cannot be there
    enum code rc = files_decode_slot(files, slot, &names, &head, err);
    if (rc == OK) rc = open_uncached(files, head.ids.tenant, head.ids.run, kind, create, fresh, out, err);
    if (rc == OK) cache_put(files, slot->position, (uint8_t)kind, *out);
    return rc;
}

// ---- what is not as it should be

static enum code keep_bytes(struct files_store *files, const char *name, struct str bytes, struct error *err)
{
    const struct disk_ops *ops = files->disk->ops;
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), ".cairn/quarantine/%s", name);
    struct file *file;
    enum code rc = ops->make_dir(files->disk, ".cairn/quarantine", err);
    if (rc == OK) rc = ops->open(files->disk, path, OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE, &file, err);
    if (rc != OK) return rc;
    rc = ops->write(file, 0, bytes.ptr, bytes.len, err);
    if (rc == OK) rc = ops->sync(file, err);
    ops->close(file);
    if (rc == OK) rc = ops->sync_dir(files->disk, ".cairn/quarantine", err);
    return rc == OK ? ops->sync_dir(files->disk, ".cairn", err) : rc;
}

// Bytes that recovery takes away are kept and reported.
enum code files_keep_torn(struct files_store *files, const char *name, struct str bytes, struct error *err)
{
    INVARIANT(files->writer);
    snprintf(files->side_file, sizeof(files->side_file), "%s/.cairn/quarantine/%s", files->dir, name);
    files->base.recovery.side_file = str_from(files->side_file);
    files->base.recovery.torn_bytes += bytes.len;
    return keep_bytes(files, name, bytes, err);
}

enum code files_quarantine(struct files_store *files, uint64_t position, const char *reason, struct error *err)
{
    INVARIANT(files->writer && position >= 1 && position <= files->run_count);
    struct run_entry *entry = &files->entries[position - 1];
    if (entry->bad) return OK;
    char name[40];
    snprintf(name, sizeof(name), "run-%" PRIu64, position);
    entry->bad = true;
    files->base.recovery.quarantined_runs++;
    os_log(LOG_WARN, "a run was quarantined position=%" PRIu64 " reason=\"%s\"", position, reason);
    return keep_bytes(files, name, str_from(reason), err);
}

static enum code see_marker(void *context, struct str name, bool directory UNUSED)
{
    struct files_store *files = context;
    int64_t position;
    if (!str_starts(name, STR("run-")) || !str_int64(str_slice(name, 4, name.len), &position)) return OK;
    if (position < 1 || (uint64_t)position > files->run_count || files->entries[position - 1].bad) return OK;
    files->entries[position - 1].bad = true;
    files->base.recovery.quarantined_runs++;
    return OK;
}

enum code files_load_quarantine(struct files_store *files, struct error *err)
{
    struct error told = {.code = OK};
    enum code rc = files->disk->ops->list(files->disk, ".cairn/quarantine", see_marker, files, &told);
    return rc == OK || rc == E_NOT_FOUND ? OK : error_set(err, rc, "%s", told.message);
}

static enum code keep_tail(struct files_store *files, struct file *file, uint64_t from, uint64_t to, const char *name,
                           struct error *err)
{
    INVARIANT(to > from);
    size_t size = (size_t)(to - from), got = 0;
    char *bytes = malloc(size);
    if (!bytes) return error_nomem(err);
    enum code rc = files->disk->ops->read(file, from, bytes, size, &got, err);
    if (rc == OK) rc = files_keep_torn(files, name, (struct str){bytes, got}, err);
    free(bytes);
    return rc;
}

enum code files_cut_tail(struct files_store *files, const struct disk_slot *slot, enum run_file kind, struct error *err)
{
    INVARIANT(files->writer);
    uint64_t size = kind == RUN_EVENTS ? slot->events_size : slot->ledger_size;
    uint64_t have = 0;
    struct file *file;
    struct error told = {.code = OK};
    enum code rc = files_open_run(files, slot, kind, false, &file, &told);
    if (rc == E_NOT_FOUND && size == 0) return OK;
    if (rc == OK) rc = files->disk->ops->size(file, &have, &told);
    if (rc == E_NOT_FOUND || (rc == OK && have < size))
        return error_set(err, E_CORRUPT, "%s has %" PRIu64 " bytes instead of %" PRIu64, file_names[kind], have, size);
    if (rc == OK && have > size) {
        char name[80];
        snprintf(name, sizeof(name), "torn-%" PRIu64 "-%" PRIu64 "-%s", slot->position, size, file_names[kind]);
        rc = keep_tail(files, file, size, have, name, &told);
        if (rc == OK) rc = files->disk->ops->truncate(file, size, &told);
        os_log(LOG_WARN, "bytes after the last record were cut off position=%" PRIu64 " bytes=%" PRIu64, slot->position,
               have - size);
    }
    return rc == OK ? OK : error_set(err, rc, "%s", told.message);
}
