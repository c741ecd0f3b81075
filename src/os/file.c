#include "os/os.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_SIZE 65536

static enum code read_all(int fd, const char *path, size_t max, struct buf *into, struct error *err)
{
    for (;;) {
        char *room = buf_reserve(into, READ_SIZE);
        if (!room) return error_set(err, E_NOMEM, "cannot read %s: out of memory", path);
        ssize_t got = read(fd, room, READ_SIZE);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return os_errno(err, "read", path);
        if (got == 0) return OK;
        into->len += (size_t)got;
        if (into->len > max) return error_set(err, E_LIMIT, "%s is larger than %zu bytes", path, max);
    }
}

// Takes `fd` over.
static enum code read_open(int fd, const char *path, size_t max, struct arena *arena, struct str *out,
                           struct error *err)
{
    struct buf bytes SCOPED(buf_release) = buf_of(max + 2 * READ_SIZE);
    enum code rc = read_all(fd, path, max, &bytes, err);
    close(fd);
    if (rc == OK) {
        *out = arena_copy(arena, (struct str){bytes.ptr, bytes.len});
        if (!out->ptr) rc = error_set(err, E_NOMEM, "cannot read %s: out of memory", path);
    }
    return rc;
}

enum code os_read_file(const char *path, size_t max, struct arena *arena, struct str *out, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? os_errno(err, "open", path) : read_open(fd, path, max, arena, out, err);
}

enum code os_open_regular(const char *path, int *fd, uint64_t *size, struct error *err)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
    if (*fd < 0 && errno != ELOOP && errno != ENXIO) return os_errno(err, "open", path);
    bool looked = *fd >= 0 && fstat(*fd, &st) == 0;
    if (looked && S_ISREG(st.st_mode)) {
        *size = (uint64_t)st.st_size;
        return OK;
    }
    if (*fd >= 0) close(*fd);
    *fd = -1;
    return error_set(err, E_INVALID, "%s is not a regular file", path);
}

enum code os_read_regular(const char *path, size_t max, struct arena *arena, struct str *out, struct error *err)
{
    int fd;
    uint64_t size;
    enum code rc = os_open_regular(path, &fd, &size, err);
    return rc ? rc : read_open(fd, path, max, arena, out, err);
}

bool os_write_all(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t put = write(fd, bytes.ptr, bytes.len);
        if (put < 0 && errno != EINTR) return false;
        if (put > 0) bytes = str_slice(bytes, (size_t)put, bytes.len);
    }
    return true;
}

bool os_read_up_to(int fd, void *bytes, size_t size, size_t *got)
{
    for (*got = 0; *got < size;) {
        ssize_t part = read(fd, (char *)bytes + *got, size - *got);
        if (part < 0 && errno != EINTR) return false;
        if (part == 0) break;
        if (part > 0) *got += (size_t)part;
    }
    return true;
}

static enum code write_all(int fd, const char *path, struct str text, struct error *err)
{
    return os_write_all(fd, text) ? OK : os_errno(err, "write", path);
}

// A pipe, a terminal, /dev/stdout.
static enum code write_through(const char *path, struct str text, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return os_errno(err, "open", path);
    enum code rc = write_all(fd, path, text, err);
    close(fd);
    return rc;
}

// The draft beside `path`, written and synced; gone again when that fails. `old`: whose mode it gets, or NULL.
static enum code write_draft(const char *draft, const char *path, struct str text, unsigned mode, const struct stat *old,
                             struct error *err)
{
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, mode);
    if (fd < 0) return os_errno(err, "write", path);
    enum code rc = old && fchmod(fd, old->st_mode & 07777) != 0 ? os_errno(err, "write", path) : OK;
    if (!rc) rc = write_all(fd, path, text, err);
    if (!rc && fsync(fd) != 0) rc = os_errno(err, "write", path);
    if (close(fd) != 0 && !rc) rc = os_errno(err, "write", path);
    if (rc) unlink(draft);
    return rc;
}

static enum code name_draft(char draft[PATH_MAX], const char *path, struct error *err)
{
    // Not the process: two of its threads may write one file, and in a container the next process has the number of one that died here.
    int length = snprintf(draft, PATH_MAX, "%s.new-%016" PRIx64, path, entropy_number(os_entropy()));
    return length < 0 || length >= PATH_MAX ? error_set(err, E_INVALID, "the path is too long") : OK;
}

// A directory that may be written and not read cannot be synced; the file is in its place all the same.
static enum code sync_name(const char *path, struct error *err)
{
    struct error told = {0};
    enum code rc = os_sync_parent(path, &told);
    return rc && rc != E_DENIED ? error_set(err, rc, "%s", told.message) : OK;
}

enum code os_write_file(const char *path, struct str text, unsigned mode, bool replace, struct error *err)
{
    char draft[PATH_MAX], real[PATH_MAX];
    struct stat old;
    if (replace && realpath(path, real)) path = real; // what a link names, not the link
    bool there = stat(path, &old) == 0;
    if (there && replace && !S_ISREG(old.st_mode)) return write_through(path, text, err);
    enum code rc = name_draft(draft, path, err);
    if (!rc) rc = write_draft(draft, path, text, mode, there && replace ? &old : NULL, err);
    if (rc) return rc;
    // A link does not overwrite: of two that make the same file, one gets E_EXISTS.
    if (!replace && link(draft, path) != 0)
        rc = errno == EEXIST ? error_set(err, E_EXISTS, "%s is there already", path) : os_errno(err, "write", path);
    if (replace && rename(draft, path) != 0) rc = os_errno(err, "write", path);
    if (rc || !replace) unlink(draft);
    return rc ? rc : sync_name(path, err);
}

enum code os_write_secret(const char *path, struct str text, struct error *err)
{
    char draft[PATH_MAX];
    struct stat old;
    // A link gives way to the file; a pipe, a device or what a link of the system leads to (/dev/stdout) is not replaced.
    if (stat(path, &old) == 0 && !S_ISREG(old.st_mode))
        return error_set(err, E_INVALID, "%s is not a regular file, and is not replaced by one", path);
    enum code rc = name_draft(draft, path, err);
    if (!rc) rc = write_draft(draft, path, text, 0600, NULL, err);
    if (!rc && rename(draft, path) != 0) {
        rc = os_errno(err, "write", path);
        unlink(draft);
    }
    return rc ? rc : sync_name(path, err);
}

bool os_directory_is_ours(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) return true;
    return !(status.st_mode & S_IWOTH) || (status.st_mode & S_ISVTX); // sticky: everybody adds, and removes only what is theirs
}

enum code os_map_file(const char *path, struct str *out, struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return os_errno(err, "open", path);
    enum code rc = OK;
    *out = (struct str){"", 0};
    if (fstat(fd, &status) != 0)
        rc = os_errno(err, "read", path);
    else if (!S_ISREG(status.st_mode))
        rc = error_set(err, E_INVALID, "%s is not a file", path);
    if (!rc && status.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED)
            rc = os_errno(err, "read", path);
        else
            *out = (struct str){bytes, (size_t)status.st_size};
    }
    close(fd);
    return rc;
}

void os_unmap(struct str bytes)
{
    if (bytes.len) munmap((void *)(uintptr_t)bytes.ptr, bytes.len);
}

bool os_is_dir(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    remove(path);
    return 0;
}

void os_remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static enum code make_dirs(const char *path, bool kept, struct error *err)
{
    char part[PATH_MAX];
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof(part))
        return error_set(err, E_INVALID, "cannot make directory: the path is %s", len == 0 ? "empty" : "too long");
    for (size_t end = 1; end <= len; end++) {
        if (end < len && path[end] != '/') continue;
        memcpy(part, path, end);
        part[end] = '\0';
        bool made = mkdir(part, 0700) == 0;
        if (made && kept) {
            enum code rc = os_sync_parent(part, err);
            if (rc) return rc;
        }
        if (made || errno == EEXIST || errno == EISDIR) continue;
        int reason = errno;
        if (!os_is_dir(part)) { // EROFS and EACCES do not matter when the parent is there
            errno = reason;
            return os_errno(err, "make directory", part);
        }
    }
    if (!os_is_dir(path)) return error_set(err, E_DENIED, "cannot make directory %s: it is something else", path);
    return OK;
}

enum code os_make_dirs(const char *path, struct error *err)
{
    return make_dirs(path, false, err);
}

enum code os_make_kept_dirs(const char *path, struct error *err)
{
    return make_dirs(path, true, err);
}

enum code os_absolute(const char *path, struct arena *arena, struct str *out, struct error *err)
{
    char here[PATH_MAX];
    struct buf whole SCOPED(buf_release) = buf_of(2 * PATH_MAX);
    if (path[0] != '/') {
        if (!getcwd(here, sizeof(here))) return os_errno(err, "tell the working directory", NULL);
        buf_text(&whole, here);
        buf_byte(&whole, '/');
    }
    buf_text(&whole, path);
    *out = buf_keep(&whole, arena);
    return out->ptr ? OK : error_set(err, E_NOMEM, "cannot name %s: out of memory", path);
}

bool os_file_identity(const char *path, char out[64])
{
    struct stat st;
    if (stat(path, &st) != 0) return false;
    (void)snprintf(out, 64, "%llx:%llx", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    return true;
}
