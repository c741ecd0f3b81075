// The working directory of one attempt.
#include "tool/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGINNING "cairn-step-"

static const char *root_of(const struct tool_confinement *confinement)
{
    const char *root = confinement->work_root.len ? confinement->work_root.ptr : getenv("TMPDIR");
    return root && root[0] == '/' ? root : "/tmp";
}

enum code workdir_make(const struct tool_confinement *confinement, struct arena *arena, struct str *out,
                       struct error *err)
{
    char identity[OS_IDENTITY_SIZE];
    const char *root = root_of(confinement);
    size_t size = strlen(root) + sizeof(BEGINNING) + OS_IDENTITY_SIZE + 16;
    char *path = arena_alloc(arena, size);
    if (!path) return error_nomem(err);
    os_identity(identity);
    snprintf(path, size, "%s/" BEGINNING "%s-XXXXXX", root, identity); // whose it is, should this process be killed
    if (!mkdtemp(path)) return os_errno(err, "make a working directory in", root);
    *out = str_from(path);
    if (confinement->run_as && lchown(path, confinement->uid, confinement->gid) < 0) {
        enum code rc = os_errno(err, "give away", path);
        (void)workdir_remove(*out, WORKDIR_ALL, NULL);
        *out = STR("");
        return rc;
    }
    return OK;
}

// A directory in `parent`, whatever its mode was, never through a link. -1 when it is none.
static int enter(int parent, const char *name)
{
    char path[64];
    int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    (void)!chmod(path, 0700);
    int opened = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(fd);
    return opened;
}

struct removal {
    int top;
    uint64_t moved;
    size_t left; // so much may still be done
    const atomic_bool *stop;
};

static bool may_go_on(struct removal *removal)
{
    if (removal->stop && atomic_load(removal->stop)) removal->left = 0;
    if (removal->left == 0) return false;
    removal->left--;
    return true;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

// Empties one directory below the top. Directories in it move up to the top, so a tree of any depth needs two descriptors.
static void empty(struct removal *removal, int fd)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(dir)) && may_go_on(removal)) {
        if (is_dots(entry->d_name) || unlinkat(fd, entry->d_name, 0) == 0) continue;
        char name[48];
        snprintf(name, sizeof(name), ".cairn-removed-%llu", (unsigned long long)removal->moved++);
        int inner = enter(fd, entry->d_name); // its mode must let it be moved
        if (inner >= 0) close(inner);
        (void)!renameat(fd, entry->d_name, removal->top, name);
    }
    closedir(dir);
}

// One pass over the top. True: something was removed, so another pass may find more.
static bool remove_once(struct removal *removal, DIR *top)
{
    bool removed = false;
    struct dirent *entry;
    rewinddir(top);
    while ((entry = readdir(top)) && may_go_on(removal)) {
        if (is_dots(entry->d_name)) continue;
        if (unlinkat(removal->top, entry->d_name, 0) == 0) {
            removed = true;
            continue;
        }
        int fd = enter(removal->top, entry->d_name);
        if (fd >= 0) empty(removal, fd);
        removed |= unlinkat(removal->top, entry->d_name, AT_REMOVEDIR) == 0;
    }
    return removed;
}

bool workdir_remove(struct str path, size_t most, const atomic_bool *stop)
{
    int fd = enter(AT_FDCWD, path.ptr);
    DIR *top = fd >= 0 ? fdopendir(fd) : NULL;
    struct removal removal = {.top = fd, .left = most, .stop = stop};
    while (top && remove_once(&removal, top)) {
    }
    if (top)
        closedir(top);
    else if (fd >= 0)
        close(fd);
    if (removal.left == 0 && most > 0) return false;
    if (rmdir(path.ptr) < 0)
        os_log(LOG_WARN, "a working directory stays dir=%.*s why=\"%s\"", STR_ARG(path), strerrordesc_np(errno));
    return true;
}

// "cairn-step-IDENTITY-XXXXXX" of a process that is gone.
static bool is_left(const char *name)
{
    struct str rest = str_from(name);
    size_t tail = strlen("-XXXXXX");
    if (!str_starts(rest, STR(BEGINNING)) || rest.len <= strlen(BEGINNING) + tail) return false;
    struct str identity = str_slice(rest, strlen(BEGINNING), rest.len - tail);
    return str_find(identity, '-', 0) < identity.len && os_identity_alive(identity) == LIVE_NO;
}

void workdir_sweep(const struct tool_confinement *confinement, const atomic_bool *stop)
{
    char path[4096];
    const char *root = root_of(confinement);
    DIR *dir = opendir(root);
    for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry && !atomic_load(stop); entry = readdir(dir)) {
        struct stat about;
        int size = snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);
        if (!is_left(entry->d_name) || size >= (int)sizeof(path) || lstat(path, &about) != 0) continue;
        // Where root runs the engine they belong to the users of steps.
        if (S_ISDIR(about.st_mode) && (about.st_uid == geteuid() || geteuid() == 0))
            (void)workdir_remove(str_from(path), WORKDIR_ALL, stop);
    }
    if (dir) closedir(dir);
}
