// Bodies of plans that can be fetched again, apart from the log: BESIDE-plans/SHA256, a file each. A run needs none of them to be
// right: its log has the hash, and where the plan is. A file that was removed costs the service the time to fetch it.
#include "store/backend.h"

#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static enum code body_path(const struct store *store, const struct digest *sha256, struct arena *arena, struct str *dir,
                           struct str *path, struct error *err)
{
    char hex[SHA256_HEX + 1];
    struct str beside = store_beside(store);
    digest_hex(sha256, hex);
    if (!beside.len) return error_set(err, E_NOT_FOUND, "there is no place beside this store");
    *dir = arena_format(arena, "%.*s-plans", STR_ARG(beside));
    *path = arena_format(arena, "%.*s-plans/%s", STR_ARG(beside), hex);
    return dir->ptr && path->ptr ? OK : error_nomem(err);
}

enum code store_plan_keep(const struct store *store, const struct digest *sha256, struct str bytes, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(1024, STORE_PLAN_MAX + 64 * 1024);
    struct str dir, path;
    enum code rc = body_path(store, sha256, &arena, &dir, &path, err);
    struct str there;
    if (!rc && store_shelf_blob(store, sha256, &arena, &there, NULL) != OK) {
        rc = os_make_kept_dirs(dir.ptr, err);
        if (!rc) rc = os_write_secret(path.ptr, bytes, err); // a link in its place gives way
    }
    return rc;
}

bool store_plan_kept(const struct store *store, const struct digest *sha256)
{
    struct arena arena SCOPED(arena_release) = arena_of(1024, 64 * 1024);
    struct str dir, path;
    return body_path(store, sha256, &arena, &dir, &path, NULL) == OK && access(path.ptr, F_OK) == 0;
}

static enum code sweep_dir(const char *path, int fd, struct plan_sweep *sweep, struct error *err)
{
    DIR *dir = fdopendir(fd);
    struct dirent *entry;
    struct stat about;
    struct digest sha256;
    if (!dir) {
        close(fd);
        return os_errno(err, "read", path);
    }
    while ((entry = readdir(dir))) {
        if (!digest_parse(str_from(entry->d_name), &sha256) || sweep->needed(sweep->context, &sha256)) continue;
        if (fstatat(fd, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) || !S_ISREG(about.st_mode)) continue;
        if (!sweep->dry && unlinkat(fd, entry->d_name, 0)) continue; // the next time
        sweep->count++;
        sweep->bytes += (uint64_t)about.st_size;
    }
    closedir(dir);
    return OK;
}

enum code store_plan_sweep(const struct store *store, struct plan_sweep *sweep, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(1024, 64 * 1024);
    struct str dir, path;
    static const struct digest any = {{0}};
    enum code rc = body_path(store, &any, &arena, &dir, &path, err);
    int fd = rc ? -1 : open(dir.ptr, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) rc = sweep_dir(dir.ptr, fd, sweep, err);
    if (rc != E_NOT_FOUND) return rc;
    if (err) *err = (struct error){0}; // no place beside this store: no bodies
    return OK;
}

enum code store_shelf_blob(const struct store *store, const struct digest *wanted, struct arena *arena, struct str *out,
                           struct error *err)
{
    struct str dir, path;
    enum code rc = body_path(store, wanted, arena, &dir, &path, err);
    if (rc) return rc;
    if (access(path.ptr, F_OK) != 0) return error_set(err, E_NOT_FOUND, "there is no such blob");
    rc = os_read_regular(path.ptr, STORE_PLAN_MAX, arena, out, err);
    if (rc == E_INVALID) return error_set(err, E_NOT_FOUND, "%.*s is not a file of ours", STR_ARG(path));
    if (rc) return rc;
    struct digest found = sha256(*out);
    if (digest_eq(&found, wanted)) return OK;
    COVER(shelf_damaged); // as if it were not there: it is fetched again
    return error_set(err, E_NOT_FOUND, "%.*s is not what its name says", STR_ARG(path));
}

enum code store_plan(struct store *store, const struct run_head *head, struct str uri, struct arena *arena, struct str *out,
                     struct error *err)
{
    const struct digest *sha256 = &head->document;
    const struct plan_source *source = store->options.plans;
    struct error missing = {0}, kept = {0};
    enum code rc = store_blob(store, sha256, arena, out, &missing);
    if (rc == E_NOT_FOUND && uri.len && !source)
        return error_set(err, rc, "the body of its plan is not here; `cairn serve` fetches it again from %.*s", STR_ARG(uri));
    if (rc != E_NOT_FOUND || !uri.len || !source) return rc ? error_set(err, rc, "%s", missing.message) : OK;
    rc = source->fetch(source->context, head->ids.tenant, uri, sha256, arena, out, err);
    if (rc) return rc;
    // One that cannot be kept is fetched again the next time.
    if (store_plan_keep(store, sha256, *out, &kept)) os_log(LOG_WARN, "plan not kept why=\"%s\"", kept.message);
    return OK;
}
