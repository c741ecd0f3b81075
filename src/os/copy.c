// A directory to another place. Not durable and not atomic: for files that belong to steps, not to the store.
#include "os/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 64, CHUNK = 1 << 20 };

static enum code copy_bytes(int from, int to, const char *name, struct error *err)
{
    char bytes[64 * 1024];
    for (;;) {
        ssize_t moved = copy_file_range(from, NULL, to, NULL, CHUNK, 0);
        if (moved == 0) return OK;
        if (moved < 0) break; // another file system, or one that cannot: by hand
    }
    for (size_t got = 1; got > 0;) {
        if (!os_read_up_to(from, bytes, sizeof(bytes), &got)) return os_errno(err, "read", name);
        if (!os_write_all(to, (struct str){bytes, got})) return os_errno(err, "write", name);
    }
    return OK;
}

static enum code copy_file(int from, int to, const char *name, mode_t mode, struct error *err)
{
    struct stat st;
    int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (in < 0) return os_errno(err, "open", name);
    if (fstat(in, &st) != 0 || !S_ISREG(st.st_mode)) { // a step has put something else there meanwhile
        close(in);
        return OK;
    }
    int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0777);
    enum code rc = out < 0 ? os_errno(err, "create", name) : copy_bytes(in, out, name, err);
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

static enum code copy_dir(int from, int to, unsigned depth, struct error *err);

static enum code copy_below(int from, int to, const char *name, mode_t mode, unsigned depth, struct error *err)
{
    if (depth >= DEPTH_MAX) return error_set(err, E_LIMIT, "%s: directories are nested too deeply", name);
    if (mkdirat(to, name, 0700) != 0) return os_errno(err, "make directory", name);
    int out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int in = out < 0 ? -1 : openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    enum code rc = in < 0 ? os_errno(err, "open", name) : copy_dir(in, out, depth + 1, err); // closes `in`
    if (!rc && fchmod(out, mode & 0777) != 0) rc = os_errno(err, "set mode of", name);
    if (out >= 0) close(out);
    return rc;
}

static enum code copy_entry(int from, int to, const char *name, unsigned depth, struct error *err)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? OK : os_errno(err, "look at", name); // a step has just removed it
    if (S_ISDIR(st.st_mode)) return copy_below(from, to, name, st.st_mode, depth, err);
    if (S_ISREG(st.st_mode)) return copy_file(from, to, name, st.st_mode, err);
    return S_ISLNK(st.st_mode) ? copy_link(from, to, name, err) : OK;
}

// Takes `from` over.
static enum code copy_dir(int from, int to, unsigned depth, struct error *err)
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
            rc = copy_entry(dirfd(dir), to, entry->d_name, depth, err);
    closedir(dir);
    return rc;
}

enum code os_copy_tree(const char *from, const char *to, struct error *err)
{
    int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in < 0) return errno == ENOENT ? OK : os_errno(err, "open", from);
    struct stat st;
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
        rc = copy_dir(in, out, 0, err);
    if (out >= 0) close(out);
    return rc;
}

enum code os_set_aside(const char *path, const char *ending, struct error *err)
{
    char to[4096];
    if (snprintf(to, sizeof(to), "%s.%s", path, ending) >= (int)sizeof(to))
        return error_set(err, E_LIMIT, "%s: the path is too long", path);
    return rename(path, to) == 0 || errno == ENOENT ? OK : os_errno(err, "rename", path);
}
