// Files of a run beside its log. Names come from far away (a server's clients), and what stands in the directory of artifacts was put
// there by steps: nothing outside the directory is opened, whatever a name says and wherever a link points.
#include "reach/reach.h"
#include "store/backend.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static enum code missing(struct str name, struct error *err)
{
    return error_set(err, E_NOT_FOUND, "there is no file %.*s", STR_ARG(name));
}

static enum code read_part(int fd, uint64_t offset, size_t limit, struct arena *arena, struct file_piece *out,
                           struct error *err)
{
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
    int root, fd;
    if (reach_root(path.ptr, &root, NULL)) return missing(range->name, err);
    enum code rc = reach_open(root, range->name, &fd, &out->size, NULL);
    close(root);
    if (rc) return missing(range->name, err);
    rc = read_part(fd, range->offset, range->limit, arena, out, err);
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
