// Directory trees beside a store. Everything goes through the disk seam, whose root nothing leads out of: a step may have left links.
#include "archive/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, COPY_SIZE = 1 << 16 };

struct name {
    struct name *next;
    bool directory;
    char text[];
};

struct names {
    struct name *first;
};

struct walk {
    struct disk *from, *to; // to: NULL when nothing is copied
    bool remove;
    uint64_t *file_count, *bytes;
    char *buffer; // COPY_SIZE
};

static enum code see(void *context, struct str text, bool directory)
{
    struct names *names = context;
    struct name *name = malloc(sizeof(*name) + text.len + 1);
    if (!name) return E_NOMEM;
    name->directory = directory;
    memcpy(name->text, text.ptr, text.len);
    name->text[text.len] = '\0';
    name->next = names->first;
    names->first = name;
    return OK;
}

static void names_free(struct names *names)
{
    while (names->first) {
        struct name *next = names->first->next;
        free(names->first);
        names->first = next;
    }
}

static enum code copy_bytes(struct walk *walk, struct file *from, struct file *to, uint64_t *size, struct error *err)
{
    enum code rc = OK;
    for (size_t got = 1; !rc && got > 0; *size += got) {
        rc = walk->from->ops->read(from, *size, walk->buffer, COPY_SIZE, &got, err);
        if (!rc && got > 0 && to) rc = walk->to->ops->write(to, *size, walk->buffer, got, err);
    }
    return rc;
}

// A link or a device is not opened (E_INVALID): it is passed over.
static enum code visit_file(struct walk *walk, const char *path, struct error *err)
{
    struct file *from = NULL, *to = NULL;
    struct error why = {0};
    uint64_t size = 0;
    enum code rc = walk->from->ops->open(walk->from, path, OPEN_READ, &from, &why);
    if (rc == E_INVALID || rc == E_NOT_FOUND) return OK;
    if (rc) return error_set(err, rc, "%s", why.message);
    if (walk->to) {
        rc = walk->to->ops->open(walk->to, path, OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE, &to, err);
        if (!rc) rc = copy_bytes(walk, from, to, &size, err);
    } else {
        rc = walk->from->ops->size(from, &size, err);
    }
    if (to) walk->to->ops->close(to);
    walk->from->ops->close(from);
    if (rc) return rc;
    ++*walk->file_count;
    *walk->bytes += size;
    return OK;
}

static enum code visit_dir(struct walk *walk, const char *path, unsigned depth, struct error *err);

static enum code visit(struct walk *walk, const char *dir, const struct name *name, unsigned depth, struct error *err)
{
    size_t size = strlen(dir) + strlen(name->text) + 2;
    char *path = malloc(size);
    if (!path) return error_nomem(err);
    snprintf(path, size, "%s%s%s", dir, dir[0] ? "/" : "", name->text);
    enum code rc = OK;
    if (name->directory && walk->to) rc = walk->to->ops->make_dir(walk->to, path, err);
    if (!rc) rc = name->directory ? visit_dir(walk, path, depth + 1, err) : visit_file(walk, path, err);
    if (!rc && walk->remove) {
        rc = walk->from->ops->remove(walk->from, path, err);
        if (rc == E_NOT_FOUND) rc = OK;
    }
    free(path);
    return rc;
}

static enum code visit_dir(struct walk *walk, const char *path, unsigned depth, struct error *err)
{
    struct names names = {0};
    if (depth > DEPTH_MAX) return error_set(err, E_LIMIT, "%s: nested too deeply", path);
    enum code rc = walk->from->ops->list(walk->from, path, see, &names, err);
    for (const struct name *name = names.first; !rc && name; name = name->next)
        rc = visit(walk, path, name, depth, err);
    names_free(&names);
    return rc;
}

static enum code walk_tree(const char *from, const char *to, bool remove, uint64_t *file_count, uint64_t *bytes,
                           struct error *err)
{
    if (!os_is_dir(from)) return OK;
    struct walk walk = {
        .remove = remove, .file_count = file_count, .bytes = bytes, .buffer = malloc(to ? COPY_SIZE : 1)};
    enum code rc = walk.buffer ? os_disk_open(from, &walk.from, err) : error_nomem(err);
    if (!rc && to) rc = os_make_dirs(to, err);
    if (!rc && to) rc = os_disk_open(to, &walk.to, err);
    if (!rc) rc = visit_dir(&walk, "", 0, err);
    if (walk.to) os_disk_close(walk.to);
    if (walk.from) os_disk_close(walk.from);
    free(walk.buffer);
    return rc;
}

enum code tree_copy(const char *from, const char *to, uint64_t *file_count, uint64_t *bytes, struct error *err)
{
    return walk_tree(from, to, false, file_count, bytes, err);
}

enum code tree_size(const char *path, uint64_t *file_count, uint64_t *bytes, struct error *err)
{
    return walk_tree(path, NULL, false, file_count, bytes, err);
}

enum code tree_remove(const char *path, uint64_t *file_count, uint64_t *bytes, struct error *err)
{
    enum code rc = walk_tree(path, NULL, true, file_count, bytes, err);
    if (rc || !os_is_dir(path)) return rc;
    const char *slash = strrchr(path, '/');
    struct disk *parent = NULL;
    char *dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    rc = dir ? os_disk_open(dir, &parent, err) : error_nomem(err);
    free(dir);
    if (rc) return rc;
    rc = parent->ops->remove(parent, slash ? slash + 1 : path, err);
    os_disk_close(parent);
    return rc == E_NOT_FOUND ? OK : rc;
}
