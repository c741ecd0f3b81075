// Files of a run beside its log. Names come from far away (a server's clients), and what stands in the directory of artifacts was put
// there by steps: nothing outside the directory is opened, whatever a name says and wherever a link points.
#include "store/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum code missing(struct str name, struct error *err)
{
    return error_set(err, E_NOT_FOUND, "there is no file %.*s", STR_ARG(name));
}

// One name of a path at a time, links not followed. -1: it is not there.
static int open_below(int dir, struct str name)
{
    char part[256];
    while (dir >= 0) {
        struct str one = str_cut(name, '/', &name);
        bool last = name.len == 0;
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
        bool good = one.len > 0 && one.len < sizeof(part) && !str_is(one, ".") && !str_is(one, "..") &&
                    !memchr(one.ptr, '\0', one.len);
        if (good) {
            memcpy(part, one.ptr, one.len);
            part[one.len] = '\0';
        }
        int next = good ? openat(dir, part, flags) : -1;
        close(dir);
        dir = next;
        if (last) break;
    }
    return dir;
}

static enum code read_part(int fd, uint64_t offset, size_t limit, struct arena *arena, struct file_piece *out,
                           struct error *err)
{
    struct stat about;
    if (fstat(fd, &about)) return os_errno(err, "look at", "a file of the run");
    if (!S_ISREG(about.st_mode)) return error_set(err, E_NOT_FOUND, "it is no file");
    out->size = (uint64_t)about.st_size;
    if (offset == FILE_TAIL) offset = out->size > limit ? out->size - limit : 0;
    if (offset >= out->size) return OK;
    if (limit > out->size - offset) limit = (size_t)(out->size - offset);
    char *room = arena_alloc(arena, limit + 1);
    if (!room) return error_nomem(err);
    while (out->bytes.len < limit) {
        ssize_t got = pread(fd, room + out->bytes.len, limit - out->bytes.len, (off_t)(offset + out->bytes.len));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return os_errno(err, "read", "a file of the run");
        if (got == 0) break; // it was cut meanwhile
        out->bytes = (struct str){room, out->bytes.len + (size_t)got};
    }
    return OK;
}

static enum code read_below(struct str dir, const struct file_range *range, struct arena *arena, struct file_piece *out,
                            struct error *err)
{
    if (dir.len == 0) return missing(range->name, err);
    struct str path = arena_copy(arena, dir);
    if (!path.ptr) return error_nomem(err);
    int fd = open_below(open(path.ptr, O_RDONLY | O_CLOEXEC | O_DIRECTORY), range->name);
    if (fd < 0) return missing(range->name, err);
    enum code rc = read_part(fd, range->offset, range->limit, arena, out, err);
    close(fd);
    return rc;
}

enum code store_run_file(struct store *store, const struct file_range *range, struct arena *arena,
                         struct file_piece *out, struct error *err)
{
    *out = (struct file_piece){.bytes = STR("")};
    return store->ops->admin.file(store, range, arena, out, err);
}

enum code store_local_file(struct store *store, const struct file_range *range, struct arena *arena,
                           struct file_piece *out, struct error *err)
{
    struct str dir = {0};
    bool logs = strcmp(range->what, "logs") == 0;
    enum code rc = (logs ? store_logs_dir : store_artifacts_dir)(store, range->ids, arena, &dir);
    return rc ? error_nomem(err) : read_below(dir, range, arena, out, err);
}

enum code store_left_file(struct store *store, const struct file_range *range, struct str said, struct arena *arena,
                          struct file_piece *out, struct error *err)
{
    struct str dir = {0};
    *out = (struct file_piece){.bytes = STR("")};
    if (store->ops->remote) { // a server gives one byte at least
        struct file_range some = *range;
        if (some.limit == 0) some.limit = 1;
        enum code rc = store->ops->admin.file(store, &some, arena, out, err);
        if (range->limit == 0) out->bytes = STR("");
        return rc;
    }
    enum code rc = store_files_dir(store, range->ids, said, arena, &dir);
    return rc ? error_nomem(err) : read_below(dir, range, arena, out, err);
}
