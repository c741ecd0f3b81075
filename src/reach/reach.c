#include "reach/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READING (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW)

bool reach_fits(const struct reach_whose *bound, const struct reach_whose *whose)
{
    return (!bound->tenant.len || str_eq(bound->tenant, whose->tenant)) &&
           (!bound->project.len || str_eq(bound->project, whose->project)) &&
           (!bound->environment.len || str_eq(bound->environment, whose->environment));
}

enum code reach_root(const char *path, int *fd, struct error *err)
{
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY);
    return *fd < 0 ? os_errno(err, "open", path) : OK;
}

// ---- names

// One part of a name: "" when it is none that may stand there.
static bool is_part(struct str part)
{
    return part.len > 0 && part.len <= NAME_MAX && !str_is(part, ".") && !str_is(part, "..") &&
           !memchr(part.ptr, '\0', part.len);
}

// The last part of a name; *parent gets what is before it.
static struct str last_part(struct str name, struct str *parent)
{
    size_t slash = name.len;
    while (slash > 0 && name.ptr[slash - 1] != '/') slash--;
    *parent = str_slice(name, 0, slash > 0 ? slash - 1 : 0);
    return str_slice(name, slash, name.len);
}

// Where a directory is wanted, the kernel says of a link what it says of a file.
static bool is_link(int dir, const char *part)
{
    struct stat about;
    return fstatat(dir, part, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(about.st_mode);
}

// For kernels and container filters that do not know openat2: one part at a time, none of them a link.
static int walk(int root, struct str name, int flags)
{
    char part[NAME_MAX + 1];
    if (str_is(name, ".")) return openat(root, ".", flags);
    int dir = fcntl(root, F_DUPFD_CLOEXEC, 3);
    while (dir >= 0 && name.len > 0) {
        struct str one = str_cut(name, '/', &name);
        if (!is_part(one)) {
            close(dir);
            errno = EXDEV;
            return -1;
        }
        memcpy(part, one.ptr, one.len);
        part[one.len] = '\0';
        int next = openat(dir, part, name.len > 0 ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags | O_NOFOLLOW);
        bool link = next < 0 && errno == ENOTDIR && is_link(dir, part);
        int reason = link ? ELOOP : errno;
        close(dir);
        errno = reason;
        dir = next;
    }
    return dir;
}

static int open_beneath(int root, struct str name, int flags)
{
    char path[PATH_MAX];
    if (name.len == 0 || name.len >= sizeof(path) || memchr(name.ptr, '\0', name.len)) {
        errno = name.len >= sizeof(path) ? ENAMETOOLONG : ENOENT;
        return -1;
    }
    memcpy(path, name.ptr, name.len);
    path[name.len] = '\0';
    struct open_how how = {.flags = (uint32_t)flags,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    for (int tries = 0; tries < 100; tries++) {
        int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
        if (fd >= 0 || errno != EAGAIN) {
            if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return fd;
            return walk(root, name, flags);
        }
    }
    return -1; // something is renamed all the time: EAGAIN
}

static enum code refused(struct str name, struct error *err)
{
    int reason = errno;
    if (reason == EXDEV || reason == ELOOP || reason == EAGAIN)
        return error_set(err, E_DENIED, "%.*s leads outside of its directory, or is a link", STR_ARG(name));
    if (reason == ENXIO || reason == ENODEV)
        return error_set(err, E_INVALID, "%.*s is not a regular file", STR_ARG(name));
    if (reason == ENOENT || reason == ENOTDIR)
        return error_set(err, E_NOT_FOUND, "there is no file %.*s", STR_ARG(name));
    return os_errno(err, "open", "a file of a step");
}

enum code reach_dir(int root, struct str name, int *fd, struct error *err)
{
    *fd = open_beneath(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY);
    return *fd < 0 ? refused(name, err) : OK;
}

enum code reach_open(int root, struct str name, int *fd, uint64_t *size, struct error *err)
{
    struct stat about;
    *fd = open_beneath(root, name, READING);
    if (*fd < 0) return refused(name, err);
    if (fstat(*fd, &about) == 0 && S_ISREG(about.st_mode)) {
        *size = (uint64_t)about.st_size;
        return OK;
    }
    close(*fd);
    *fd = -1;
    return error_set(err, E_INVALID, "%.*s is not a regular file", STR_ARG(name));
}

enum code reach_read(int root, struct str name, size_t max, struct arena *arena, struct str *out, struct error *err)
{
    int fd = -1;
    uint64_t size = 0;
    enum code rc = reach_open(root, name, &fd, &size, err);
    if (rc) return rc;
    char *bytes = size <= max ? arena_alloc(arena, (size_t)size + 1) : NULL;
    if (!bytes)
        rc = size > max ? error_set(err, E_LIMIT, "%.*s is larger than %zu bytes", STR_ARG(name), max)
                        : error_nomem(err);
    size_t done = 0;
    // One that grows meanwhile is read as it was; one that shrinks, as it is.
    if (!rc && !os_read_up_to(fd, bytes, (size_t)size, &done)) rc = os_errno(err, "read", "a file of a step");
    close(fd);
    if (!rc) *out = (struct str){bytes, done};
    return rc;
}

// ---- writing

// The directory that the name is in, made where it is missing.
static enum code make_parents(int root, struct str parents, int *out, struct error *err)
{
    char part[NAME_MAX + 1];
    int dir = fcntl(root, F_DUPFD_CLOEXEC, 3);
    while (dir >= 0 && parents.len > 0) {
        struct str one = str_cut(parents, '/', &parents);
        int next = -1;
        errno = EXDEV;
        if (is_part(one)) {
            memcpy(part, one.ptr, one.len);
            part[one.len] = '\0';
            if (mkdirat(dir, part, 0755) == 0 || errno == EEXIST)
                next = openat(dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        int reason = errno == ENOTDIR ? ELOOP : errno;
        close(dir);
        errno = reason;
        dir = next;
    }
    *out = dir;
    return dir < 0 ? refused(parents, err) : OK;
}

static enum code put(int fd, struct str bytes, struct error *err)
{
    while (bytes.len) {
        ssize_t done = write(fd, bytes.ptr, bytes.len);
        if (done < 0 && errno != EINTR) return os_errno(err, "write", "a file of a step");
        if (done > 0) bytes = str_slice(bytes, (size_t)done, bytes.len);
    }
    return OK;
}

enum code reach_begin(int root, struct str name, struct reach_draft *out, struct error *err)
{
    struct str parents, last = last_part(name, &parents);
    *out = (struct reach_draft){.dir = -1, .fd = -1};
    if (name.len > 0 && name.ptr[0] == '/') return error_set(err, E_DENIED, "%.*s is an absolute path", STR_ARG(name));
    enum code rc = make_parents(root, parents, &out->dir, err);
    if (rc) return rc;
    if (!is_part(last)) {
        reach_drop(out);
        return error_set(err, E_DENIED, "\"%.*s\" is no name of a file", STR_ARG(last));
    }
    memcpy(out->name, last.ptr, last.len);
    out->name[last.len] = '\0';
    snprintf(out->draft, sizeof(out->draft), ".new-%016" PRIx64, entropy_number(os_entropy()));
    out->fd = openat(out->dir, out->draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (out->fd >= 0) return OK;
    rc = os_errno(err, "write", "a file of a step");
    reach_drop(out);
    return rc;
}

enum code reach_add(struct reach_draft *draft, struct str bytes, struct error *err)
{
    return put(draft->fd, bytes, err);
}

void reach_drop(struct reach_draft *draft)
{
    if (draft->fd >= 0) {
        close(draft->fd);
        unlinkat(draft->dir, draft->draft, 0);
    }
    if (draft->dir >= 0) close(draft->dir);
    *draft = (struct reach_draft){.dir = -1, .fd = -1};
}

enum code reach_keep(struct reach_draft *draft, struct error *err)
{
    enum code rc = fsync(draft->fd) == 0 ? OK : os_errno(err, "write", "a file of a step");
    // A rename replaces a link, and never what it names.
    if (!rc && renameat(draft->dir, draft->draft, draft->dir, draft->name) != 0)
        rc = os_errno(err, "write", "a file of a step");
    if (!rc && fsync(draft->dir) != 0 && errno != EACCES) rc = os_errno(err, "write", "a file of a step");
    if (!rc) {
        close(draft->fd);
        draft->fd = -1; // it has its name: there is no draft any more
    }
    reach_drop(draft);
    return rc;
}

enum code reach_write(int root, struct str name, struct str bytes, struct error *err)
{
    struct reach_draft draft;
    enum code rc = reach_begin(root, name, &draft, err);
    if (rc) return rc;
    rc = reach_add(&draft, bytes, err);
    if (!rc) return reach_keep(&draft, err);
    reach_drop(&draft);
    return rc;
}

enum code reach_remove(int root, struct str name, int64_t until_ms, bool dry, uint64_t *size, struct error *err)
{
    char last[NAME_MAX + 1];
    struct stat about;
    size_t slash = 0;
    int dir = -1, fd;
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] == '/') slash = i + 1;
    struct str base = str_slice(name, slash, name.len);
    if (base.len == 0 || base.len >= sizeof(last)) return error_set(err, E_INVALID, "%.*s is no name", STR_ARG(name));
    memcpy(last, base.ptr, base.len);
    last[base.len] = '\0';
    enum code rc = reach_open(root, name, &fd, size, err);
    if (rc) return rc;
    bool newer = fstat(fd, &about) || about.st_mtim.tv_sec * INT64_C(1000) + about.st_mtim.tv_nsec / 1000000 > until_ms;
    close(fd);
    if (newer) return error_set(err, E_EXISTS, "%.*s was written anew", STR_ARG(name));
    if (!dry && slash > 0) rc = reach_dir(root, str_slice(name, 0, slash - 1), &dir, err);
    if (!dry && !rc && unlinkat(slash > 0 ? dir : root, last, 0)) rc = refused(name, err);
    if (dir >= 0) close(dir);
    return rc;
}

// ---- places

// Whether `path` is the place or beneath it; *rest gets what is behind it.
static bool is_in(struct str path, struct str place, struct str *rest)
{
    while (place.len > 1 && place.ptr[place.len - 1] == '/') place.len--;
    if (place.len == 0 || !str_starts(path, place)) return false;
    size_t at = place.len;
    if (at < path.len && path.ptr[at] != '/' && place.ptr[at - 1] != '/') return false;
    while (at < path.len && path.ptr[at] == '/') at++;
    *rest = str_slice(path, at, path.len);
    return true;
}

enum code reach_find(const struct reach_place *places, size_t count, struct str path, bool writes, int *root,
                     struct str *name, struct error *err)
{
    char text[PATH_MAX];
    const struct reach_place *best = NULL;
    bool absolute = path.len > 0 && path.ptr[0] == '/';
    *name = path;
    if (!absolute && count > 0 && places[0].path.len) best = &places[0];
    for (size_t i = 0; absolute && i < count; i++) {
        struct str rest;
        bool fits = is_in(path, places[i].path, &rest) && (places[i].writes || !writes);
        if (!fits || (best && best->path.len >= places[i].path.len)) continue;
        best = &places[i];
        *name = rest;
    }
    if (!best || path.len == 0 || best->path.len >= sizeof(text))
        return error_set(err, E_DENIED, "%.*s is outside of what a step may %s here", STR_ARG(path),
                         writes ? "write" : "use");
    memcpy(text, best->path.ptr, best->path.len);
    text[best->path.len] = '\0';
    if (name->len == 0) *name = STR(".");
    return reach_root(text, root, err);
}
