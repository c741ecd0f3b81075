// Artifacts that a step declares: once it has ended they are looked for where it was to write them, by the thread that has its result. A
// step may have left anything there; only a regular file counts, and nothing that is there can keep the thread.
#include "engine/inside.h"

#include "reach/reach.h"

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
    for (size_t i = 0; files->names && i < files->count; i++) free(files->names[i]);
    free(files->names);
    free(files->dir);
    free(files->found);
    free(files);
}

struct declared_files *declared_files_new(uint64_t ticket, struct str dir, bool confined,
                                          const struct artifact_decl *decls, size_t count)
{
    struct declared_files *files = calloc(1, sizeof(*files));
    if (!files) return NULL;
    *files = (struct declared_files){.ticket = ticket,
                                     .count = count,
                                     .confined = confined,
                                     .dir = strndup(dir.len ? dir.ptr : "", dir.len),
                                     .found = calloc(count, sizeof(struct found_file)),
                                     .names = calloc(count, sizeof(char *))};
    bool ok = files->dir && files->found && files->names;
    for (size_t i = 0; ok && i < count; i++) {
        files->names[i] = strndup(decls[i].path.len ? decls[i].path.ptr : "", decls[i].path.len);
        ok = files->names[i] != NULL;
    }
    if (ok) return files;
    declared_files_free(files);
    return NULL;
}

// What a function gave is one text already: the thread that delivers it writes the file that a process would have written.
static void spill_value(struct declared_files *files, struct tool_result *result)
{
    struct error err = {0};
    int root;
    if (!files->spill || result->spilled || !result->is_json || result->output.len <= RESULT_MAX) return;
    enum code rc = os_make_dirs(files->dir, &err);
    if (!rc) rc = reach_root(files->dir, &root, &err);
    if (!rc) {
        rc = reach_write(root, str_from(files->names[files->count - 1]), result->output, &err);
        close(root);
    }
    if (rc) os_log(LOG_WARN, "a result was not kept as an artifact why=\"%s\"", err.message);
    result->spilled = rc == OK;
}

// What the descriptor has, up to the size that it had when it was opened. Takes it over.
static bool hash(int fd, uint64_t size, struct digest *out)
{
    char *bytes = malloc((size_t)size + 1);
    size_t done = 0;
    bool whole = bytes && os_read_up_to(fd, bytes, (size_t)size, &done) && done == size;
    if (whole) *out = sha256((struct str){bytes, done});
    free(bytes);
    close(fd);
    return whole;
}

// Confined: only in the directory of its artifacts, whatever links say. Else as the user, whose own steps these are.
static bool open_declared(const struct declared_files *files, const char *name, int *fd, uint64_t *size)
{
    if (!files->confined) {
        struct buf path SCOPED(buf_release) = buf_of(8192);
        bool there = declared_path(str_from(files->dir), str_from(name), &path);
        return there && os_open_regular(path.ptr, fd, size, NULL) == OK;
    }
    struct reach_place place = {str_from(files->dir), true};
    struct str beneath;
    int root;
    if (reach_find(&place, 1, str_from(name), false, &root, &beneath, NULL)) return false;
    bool there = reach_open(root, beneath, fd, size, NULL) == OK;
    close(root);
    return there;
}

void declared_files_look(struct declared_files *files, struct tool_result *result)
{
    spill_value(files, result);
    for (size_t i = 0; i < files->count; i++) {
        struct found_file *found = &files->found[i];
        int fd;
        if (!open_declared(files, files->names[i], &fd, &found->size)) continue;
        found->there = true;
        if (found->size <= HASHED_MAX)
            found->hashed = hash(fd, found->size, &found->sha256);
        else
            close(fd);
    }
}
