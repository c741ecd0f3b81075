// Where root starts the engine, and what a step needs lies behind directories that are closed to the step's user: the step gets a
// mount namespace of its own in which each of those directories is covered by an empty one. What the step needs is put back in its
// place, and everything else behind them is not there: no name, no size, no socket. Otherwise the step would need the right to pass
// closed directories, of all the machine (ADR 0038).
//
// The parent works everything out; the child only mounts, with raw system calls (process.c).
#include "tool/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_SANITIZE __attribute__((no_sanitize("address", "thread", "undefined"), noinline))
enum { PLACES_MAX = 64, PATH_SIZE = 4096 };
enum { KERNEL_MS_REC = 16384, KERNEL_MS_PRIVATE = 1 << 18, KERNEL_MS_NOSUID = 2, KERNEL_MS_NODEV = 4 };
enum { KERNEL_AT_RECURSIVE = 0x8000, KERNEL_AT_EMPTY_PATH = 0x1000 };

// In the order in which the child goes through them.
enum veil_act { VEIL_COVER, VEIL_MAKE_DIR, VEIL_MAKE_FILE, VEIL_PUT_BACK };
struct veil_step {
    enum veil_act act;
    const char *path;
    int tree; // VEIL_PUT_BACK
};

struct veil {
    struct arena *arena;
    struct veil_step *steps;
    size_t count, capacity;
    struct str put[2 * PLACES_MAX]; // what is back in its place: all beneath it is there, too
    size_t put_count;
    const char *cwd;
    bool failed; // no memory, or more than fits
};

// ---- the child

NO_SANITIZE static long call5(long number, long a, long b, long c, long d, long e)
{
    return syscall(number, a, b, c, d, e, 0L);
}

NO_SANITIZE static long act(const struct veil_step *step)
{
    static const char tmpfs[] = "tmpfs", how[] = "mode=0711,size=1m", nothing[] = "";
    long path = (long)step->path;
    switch (step->act) {
    case VEIL_COVER:
        return call5(SYS_mount, (long)tmpfs, path, (long)tmpfs, KERNEL_MS_NOSUID | KERNEL_MS_NODEV, (long)how);
    case VEIL_MAKE_DIR:
        return call5(SYS_mkdirat, AT_FDCWD, path, 0711, 0, 0) < 0 && errno != EEXIST ? -1 : 0;
    case VEIL_MAKE_FILE:
        return call5(SYS_mknodat, AT_FDCWD, path, S_IFREG | 0444, 0, 0) < 0 && errno != EEXIST ? -1 : 0;
    case VEIL_PUT_BACK:
        return call5(SYS_move_mount, step->tree, (long)nothing, AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
    }
    return -1;
}

NO_SANITIZE int veil_draw(const struct veil *veil)
{
    static const char none[] = "none", root[] = "/";
    if (call5(SYS_unshare, CLONE_NEWNS, 0, 0, 0, 0) < 0) return errno;
    if (call5(SYS_mount, (long)none, (long)root, 0, KERNEL_MS_REC | KERNEL_MS_PRIVATE, 0) < 0) return errno;
    long before = call5(SYS_umask, 0, 0, 0, 0, 0);
    int error = 0;
    for (size_t i = 0; !error && i < veil->count; i++)
        if (act(&veil->steps[i]) < 0) error = errno;
    call5(SYS_umask, before, 0, 0, 0, 0);
    return error;
}

NO_SANITIZE int veil_enter_cwd(const struct veil *veil)
{
    return call5(SYS_chdir, (long)veil->cwd, 0, 0, 0, 0) < 0 ? errno : 0;
}

// ---- the parent

static void add(struct veil *veil, enum veil_act act, struct str path, int tree)
{
    char *text = arena_alloc(veil->arena, path.len + 1);
    veil->failed = veil->failed || !text || !ARENA_ROOM(veil->arena, veil->steps, veil->count, &veil->capacity);
    if (veil->failed) return;
    memcpy(text, path.ptr, path.len);
    text[path.len] = '\0';
    veil->steps[veil->count++] = (struct veil_step){act, text, tree};
}

// The first directory on the way to the path that others may not pass; 0: none. The last part is the step's own.
static size_t closed_part(struct str path)
{
    char part[PATH_SIZE];
    struct stat about;
    for (size_t end = 1; end < path.len && end < sizeof(part); end++) {
        if (path.ptr[end] != '/') continue;
        memcpy(part, path.ptr, end);
        part[end] = '\0';
        if (stat(part, &about) == 0 && !(about.st_mode & S_IXOTH)) return end;
    }
    return 0;
}

static bool is_beneath(struct str path, struct str dir)
{
    return str_starts(path, dir) && (path.len == dir.len || path.ptr[dir.len] == '/');
}

static bool is_put(const struct veil *veil, struct str path)
{
    for (size_t i = 0; i < veil->put_count; i++)
        if (is_beneath(path, veil->put[i])) return true;
    return false;
}

static bool is_covered(const struct veil *veil, struct str path)
{
    for (size_t i = 0; i < veil->count; i++)
        if (veil->steps[i].act == VEIL_COVER && str_is(path, veil->steps[i].path)) return true;
    return false;
}

// Where the descriptor leads, without links.
static struct str place_of(int fd, struct arena *arena)
{
    char link[64], path[PATH_SIZE];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof(path));
    bool whole = size > 0 && (size_t)size < sizeof(path) && path[0] == '/';
    return whole ? arena_copy(arena, (struct str){path, (size_t)size}) : (struct str){0};
}

static void put_at(struct veil *veil, int fd, struct str path, bool is_dir)
{
    size_t closed = closed_part(path);
    if (closed == 0 || is_put(veil, path)) return;
    struct str cover = str_slice(path, 0, closed);
    // A tree of its own for each: what the child moves into place is used up.
    int tree = (int)syscall(SYS_open_tree, fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | KERNEL_AT_RECURSIVE | KERNEL_AT_EMPTY_PATH);
    veil->failed = veil->failed || tree < 0 || veil->put_count == ARRAY_COUNT(veil->put);
    if (!veil->failed && !is_covered(veil, cover)) add(veil, VEIL_COVER, cover, -1);
    for (size_t end = closed + 1; end < path.len; end++)
        if (path.ptr[end] == '/') add(veil, VEIL_MAKE_DIR, str_slice(path, 0, end), -1);
    add(veil, is_dir ? VEIL_MAKE_DIR : VEIL_MAKE_FILE, path, -1);
    add(veil, VEIL_PUT_BACK, path, tree);
    if (!veil->failed)
        veil->put[veil->put_count++] = path;
    else if (tree >= 0 && (veil->count == 0 || veil->steps[veil->count - 1].tree != tree))
        close(tree);
}

// Under its own name, and under the one that it is known by, which may lead through links.
static void put_back(struct veil *veil, struct str said)
{
    struct stat about;
    struct str name = arena_copy(veil->arena, said);
    int fd = name.ptr ? open(name.ptr, O_PATH | O_CLOEXEC) : -1;
    if (fd < 0) return; // what is not there need not be put back
    struct str real = place_of(fd, veil->arena);
    veil->failed = veil->failed || !real.ptr || fstat(fd, &about) != 0;
    if (!veil->failed) put_at(veil, fd, real, S_ISDIR(about.st_mode));
    if (!veil->failed && !str_eq(real, name)) put_at(veil, fd, name, S_ISDIR(about.st_mode));
    close(fd);
}

static struct veil *make(const struct str *paths, size_t count, struct arena *arena)
{
    const struct str *sorted[PLACES_MAX];
    struct veil *veil = count <= PLACES_MAX ? ARENA_NEW(arena, struct veil) : NULL;
    if (!veil) return NULL;
    veil->arena = arena;
    // The shorter first: what lies in another place is there with it.
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at > 0 && sorted[at - 1]->len > paths[i].len; at--) sorted[at] = sorted[at - 1];
        sorted[at] = &paths[i];
    }
    for (size_t i = 0; i < count && !veil->failed; i++)
        if (sorted[i]->len > 1 && sorted[i]->ptr[0] == '/') put_back(veil, *sorted[i]);
    if (!veil->failed) return veil;
    veil_close(veil);
    return NULL;
}

NO_SANITIZE static int rehearse(void *context)
{
    return veil_draw(context);
}

// A kernel or a container may refuse to mount. That is tried once, with all that is to be done, which is used up by it.
struct veil *veil_make(const struct str *paths, size_t count, struct arena *arena)
{
    static atomic_int known; // 1: it can be done, 2: it cannot
    struct veil *veil = atomic_load(&known) == 2 ? NULL : make(paths, count, arena);
    if (!veil || atomic_load(&known) == 1) return veil;
    bool possible = process_rehearse(rehearse, veil);
    atomic_store(&known, possible ? 1 : 2);
    veil_close(veil);
    return possible ? make(paths, count, arena) : NULL;
}

bool veil_start_in(struct veil *veil, int cwd)
{
    veil->cwd = place_of(cwd, veil->arena).ptr;
    return veil->cwd;
}

void veil_close(struct veil *veil)
{
    for (size_t i = 0; veil && i < veil->count; i++)
        if (veil->steps[i].tree >= 0) close(veil->steps[i].tree);
    if (veil) veil->count = 0;
}
