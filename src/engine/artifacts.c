// Artifacts that a step declares: once it has ended they are looked for where it was to write them, by the thread that has its result. A
// step may have left anything there; only a regular file counts, and nothing that is there can keep the thread.
#include "engine/inside.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASHED_MAX ((size_t)16 << 20) // larger ones are named without a hash

bool declared_path(struct str dir, struct str path, struct buf *out)
{
    if (path.len > 0 && path.ptr[0] != '/') {
        buf_add(out, dir);
        buf_byte(out, '/');
    }
    buf_add(out, path);
    return buf_ok(out);
}

void declared_files_free(struct declared_files *files)
{
    if (!files) return;
    for (size_t i = 0; files->paths && i < files->count; i++) free(files->paths[i]);
    free(files->paths);
    free(files->found);
    free(files);
}

struct declared_files *declared_files_new(uint64_t ticket, struct str dir, const struct artifact_decl *decls,
                                          size_t count)
{
    struct declared_files *files = calloc(1, sizeof(*files));
    if (!files) return NULL;
    *files = (struct declared_files){.ticket = ticket,
                                     .count = count,
                                     .found = calloc(count, sizeof(struct found_file)),
                                     .paths = calloc(count, sizeof(char *))};
    bool ok = files->found && files->paths;
    for (size_t i = 0; ok && i < count; i++) {
        struct buf path;
        buf_init(&path, 8192);
        ok = declared_path(dir, decls[i].path, &path);
        files->paths[i] = ok ? strndup(path.ptr, path.len) : NULL;
        buf_release(&path);
        ok = files->paths[i] != NULL;
    }
    if (ok) return files;
    declared_files_free(files);
    return NULL;
}

static bool hash(const char *path, struct digest *out)
{
    struct arena arena;
    struct str bytes;
    arena_init(&arena, 4096, SIZE_MAX);
    bool ok = os_read_regular(path, HASHED_MAX, &arena, &bytes, NULL) == OK;
    if (ok) *out = sha256(bytes);
    arena_release(&arena);
    return ok;
}

void declared_files_look(struct declared_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        struct found_file *found = &files->found[i];
        int fd;
        if (os_open_regular(files->paths[i], &fd, &found->size, NULL) != OK) continue;
        close(fd);
        found->there = true;
        found->hashed = found->size <= HASHED_MAX && hash(files->paths[i], &found->sha256);
    }
}
