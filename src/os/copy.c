// A directory to another place. Not durable and not atomic: for files that belong to steps, not to the store.
#include "os/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 64, CHUNK = 1 << 20 };

// What is left of what may be copied.
struct allowance {
    const struct copy_most *most;
    uint64_t bytes, entries;
};

static enum code spend(struct allowance *left, uint64_t bytes, uint64_t entries, struct error *err)
{
    left->bytes += bytes;
    left->entries += entries;
    if (!left->most || (left->bytes <= left->most->bytes && left->entries <= left->most->entries)) return OK;
    return error_set(err, E_LIMIT, "there are more than %llu bytes or %llu files to copy", (unsigned long long)left->most->bytes,
                     (unsigned long long)left->most->entries);
}

// `size` bytes from `at` on, in both files.
static enum code copy_range(int from, int to, off_t at, off_t size, const char *name, struct error *err)
{
    char bytes[64 * 1024];
    off_t in = at, out = at, end = at + size;
    while (in < end) {
        ssize_t moved = copy_file_range(from, &in, to, &out, (size_t)(end - in < CHUNK ? end - in : CHUNK), 0);
        if (moved == 0) return OK; // a step has cut it meanwhile
        if (moved < 0) break;      // another file system, or one that cannot: by hand
    }
    while (in < end) {
        ssize_t got = pread(from, bytes, end - in < (off_t)sizeof(bytes) ? (size_t)(end - in) : sizeof(bytes), in);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return os_errno(err, "read", name);
        if (got == 0) return OK;
        for (ssize_t done = 0; done < got;) {
            ssize_t put = pwrite(to, bytes + done, (size_t)(got - done), in + done);
            if (put < 0 && errno != EINTR) return os_errno(err, "write", name);
            if (put > 0) done += put;
        }
        in += got;
    }
    return OK;
}

// Holes stay holes: a file that takes no room takes none as a copy, and no time.
static enum code copy_bytes(int from, int to, off_t size, struct allowance *left, const char *name, struct error *err)
{
    enum code rc = OK;
    for (off_t at = 0; !rc && at < size;) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO) break;
        off_t hole = data < 0 ? size : lseek(from, data, SEEK_HOLE);
        if (data < 0) data = at; // this file system does not tell
        if (hole < 0 || hole > size) hole = size;
        if (hole - data > CHUNK) hole = data + CHUNK;
        if (hole <= data) break;
        rc = spend(left, (uint64_t)(hole - data), 0, err);
        if (!rc) rc = copy_range(from, to, data, hole - data, name, err);
        at = hole;
    }
    if (!rc && ftruncate(to, size) != 0) rc = os_errno(err, "write", name);
    return rc;
}

// Root copies for others.
static void give(int fd, const struct stat *to)
{
    if (geteuid() == 0 && (to->st_uid != 0 || to->st_gid != 0)) (void)!fchown(fd, to->st_uid, to->st_gid);
}

static enum code copy_file(int from, int to, const char *name, struct allowance *left, struct error *err)
{
    struct stat st;
    int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (in < 0) return os_errno(err, "open", name);
    if (fstat(in, &st) != 0 || !S_ISREG(st.st_mode)) { // a step has put something else there meanwhile
        close(in);
        return OK;
    }
    int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777);
    enum code rc = out < 0 ? os_errno(err, "create", name) : copy_bytes(in, out, st.st_size, left, name, err);
    if (out >= 0) give(out, &st);
    if (out >= 0 && close(out) != 0 && !rc) rc = os_errno(err, "close", name);
    close(in);
    return rc;
}

static enum code copy_link(int from, int to, const char *name, struct error *err)
{
    char target[4096];
    ssize_t len = readlinkat(from, name, target, sizeof(target) - 1);
    if (len < 0) return os_errno(err, "read link", name);
    target[len] = '\0';
    return symlinkat(target, to, name) == 0 ? OK : os_errno(err, "link", name);
}

static enum code copy_dir(int from, int to, unsigned depth, struct allowance *left, struct error *err);

static enum code copy_below(int from, int to, const char *name, const struct stat *st, unsigned depth, struct allowance *left,
                            struct error *err)
{
    if (depth >= DEPTH_MAX) return error_set(err, E_LIMIT, "%s: directories are nested too deeply", name);
    if (mkdirat(to, name, 0700) != 0) return os_errno(err, "make directory", name);
    int out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int in = out < 0 ? -1 : openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    enum code rc = in < 0 ? os_errno(err, "open", name) : copy_dir(in, out, depth + 1, left, err); // closes `in`
    if (!rc && fchmod(out, st->st_mode & 0777) != 0) rc = os_errno(err, "set mode of", name);
    if (out >= 0) give(out, st);
    if (out >= 0) close(out);
    return rc;
}

static enum code copy_entry(int from, int to, const char *name, unsigned depth, struct allowance *left, struct error *err)
{
    struct stat st;
    enum code rc = spend(left, 0, 1, err);
    if (rc) return rc;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? OK : os_errno(err, "look at", name); // a step has just removed it
    if (S_ISDIR(st.st_mode)) return copy_below(from, to, name, &st, depth, left, err);
    if (S_ISREG(st.st_mode)) return copy_file(from, to, name, left, err);
    return S_ISLNK(st.st_mode) ? copy_link(from, to, name, err) : OK;
}

// Takes `from` over.
static enum code copy_dir(int from, int to, unsigned depth, struct allowance *left, struct error *err)
{
    DIR *dir = fdopendir(from);
    if (!dir) {
        enum code rc = os_errno(err, "read", "directory");
        close(from);
        return rc;
    }
    enum code rc = OK;
    for (const struct dirent *entry = readdir(dir); !rc && entry; entry = readdir(dir))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = copy_entry(dirfd(dir), to, entry->d_name, depth, left, err);
    closedir(dir);
    return rc;
}

enum code os_copy_some(const char *from, const char *to, const struct copy_most *most, struct error *err)
{
    int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in < 0) return errno == ENOENT ? OK : os_errno(err, "open", from);
    struct stat st;
    struct allowance left = {.most = most};
    if (lstat(to, &st) == 0) {
        close(in);
        return error_set(err, E_EXISTS, "%s is there already", to);
    }
    enum code rc = os_make_dirs(to, err);
    int out = rc ? -1 : open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!rc && out < 0) rc = os_errno(err, "open", to);
    if (rc)
        close(in);
    else
        rc = copy_dir(in, out, 0, &left, err);
    if (out >= 0) close(out);
    if (rc == E_LIMIT) os_remove_tree(to);
    return rc;
}

enum code os_set_aside(const char *path, const char *ending, struct error *err)
{
    char to[4096];
    if (snprintf(to, sizeof(to), "%s.%s", path, ending) >= (int)sizeof(to))
        return error_set(err, E_LIMIT, "%s: the path is too long", path);
    return rename(path, to) == 0 || errno == ENOENT ? OK : os_errno(err, "rename", path);
}
