// Files that documents name: child documents and scripts, looked for near the document.
#include "engine/catalog.h"
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_SIZE_MAX ((size_t)8 << 20)
#define PATH_LENGTH_MAX 4096

struct search {
    struct arena *arena;
    struct str request;
    const char *const *extensions; // ends in NULL; "" is the bare name
    const char *const *folders;    // of every directory on the way up; ends in NULL
    struct buf places;             // directories looked at
    size_t place_count;
    struct str file, text; // what was found
    struct error *err;
};

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static bool exists(const char *directory, const char *name)
{
    char path[PATH_LENGTH_MAX];
    int len = snprintf(path, sizeof(path), "%s/%s", directory, name);
    return len > 0 && (size_t)len < sizeof(path) && access(path, F_OK) == 0;
}

// OK: found and read. E_NOT_FOUND: not in this directory. Anything else ends the search.
static enum code try_directory(struct search *search, const char *directory)
{
    char path[PATH_LENGTH_MAX];
    bool here = strcmp(directory, ".") == 0 || search->request.ptr[0] == '/';
    if (search->place_count++ < 6)
        buf_printf(&search->places, "%s%s", search->place_count > 1 ? ", " : "",
                   search->request.ptr[0] == '/' ? "/" : directory);
    for (size_t i = 0; search->extensions[i]; i++) {
        int len = snprintf(path, sizeof(path), "%s%s%.*s%s", here ? "" : directory, here ? "" : "/",
                           STR_ARG(search->request), search->extensions[i]);
        if (len <= 0 || (size_t)len >= sizeof(path) || !is_file(path)) continue;
        search->file = arena_copy(search->arena, str_from(path));
        if (!search->file.ptr) return error_nomem(search->err);
        return os_read_file(path, PART_SIZE_MAX, search->arena, &search->text, search->err);
    }
    return E_NOT_FOUND;
}

static enum code try_below(struct search *search, const char *directory, const char *folder)
{
    char path[PATH_LENGTH_MAX];
    int len = snprintf(path, sizeof(path), "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, folder);
    if (len <= 0 || (size_t)len >= sizeof(path) || access(path, X_OK) != 0) return E_NOT_FOUND;
    return try_directory(search, path);
}

// From `directory` up to the root of its repository. Outside of a repository only folders that are meant for us
// (.archon, .cairn) are taken from above.
static enum code try_upward(struct search *search, const char *directory)
{
    char path[PATH_LENGTH_MAX];
    if (!realpath(directory, path)) return E_NOT_FOUND;
    bool in_repository = false;
    char walk[PATH_LENGTH_MAX];
    memcpy(walk, path, sizeof(walk));
    for (char *slash = walk + strlen(walk); slash && !in_repository; slash = strrchr(walk, '/')) {
        *slash = '\0';
        in_repository = exists(walk, ".git");
    }
    for (bool first = true;; first = false) {
        const char *at = path[0] ? path : "/";
        for (size_t i = 0; search->folders[i]; i++) {
            if (!first && !in_repository && search->folders[i][0] != '.') continue;
            enum code rc = try_below(search, at, search->folders[i]);
            if (rc != E_NOT_FOUND) return rc;
        }
        char *slash = strrchr(path, '/');
        if (exists(at, ".git") || !slash || path[0] == '\0') return E_NOT_FOUND;
        *slash = '\0';
    }
}

// Of the file; "." when it has none.
static void directory_of(struct str from, char directory[static PATH_LENGTH_MAX])
{
    size_t end = from.len;
    while (end > 0 && from.ptr[end - 1] != '/') end--;
    directory[0] = '.';
    directory[1] = '\0';
    if (end > 0 && end < PATH_LENGTH_MAX) {
        memcpy(directory, from.ptr, end);
        directory[end > 1 ? end - 1 : 1] = '\0';
    }
}

static enum code search_all(struct search *search, struct str from)
{
    char directory[PATH_LENGTH_MAX];
    directory_of(from, directory);
    enum code rc = try_directory(search, directory);
    if (rc != E_NOT_FOUND || search->request.ptr[0] == '/') return rc;
    rc = try_upward(search, directory);
    if (rc == E_NOT_FOUND && strcmp(directory, ".") != 0) rc = try_directory(search, ".");
    if (rc == E_NOT_FOUND && strcmp(directory, ".") != 0) rc = try_upward(search, ".");
    return rc;
}

static const char *const *script_extensions(struct str runtime)
{
    static const char *const node[] = {"", ".ts", ".js", ".mjs", ".cjs", NULL};
    static const char *const python[] = {"", ".py", NULL};
    static const char *const shell[] = {"", ".sh", ".bash", NULL};
    return str_is(runtime, "node") ? node : str_is(runtime, "python3") ? python : shell;
}

// Where it could be put, and under which name.
static void tell_places(const struct search *search, enum part_kind kind)
{
    struct buf names SCOPED(buf_release) = buf_of(256);
    struct buf folders SCOPED(buf_release) = buf_of(256);
    for (size_t i = 1; search->extensions[i]; i++) buf_printf(&names, "%s%s", i > 1 ? ", " : "", search->extensions[i]);
    for (size_t i = 0; search->folders[i]; i++)
        buf_printf(&folders, "%s%s", i == 0 ? "" : search->folders[i + 1] ? ", " : " or ", search->folders[i]);
    error_set(search->err, E_NOT_FOUND,
              "there is no %s \"%.*s\" (or with %.*s) in %s%s, nor in %.*s from there upwards%s",
              kind == PART_SCRIPT ? "script" : "document", STR_ARG(search->request), STR_ARG(buf_str(&names)),
              search->places.ptr, search->place_count > 6 ? ", ..." : "", STR_ARG(buf_str(&folders)),
              kind == PART_SCRIPT ? "" : ", and no playbook around has that metadata.path");
}

enum code engine_find_part(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    static const char *const document_extensions[] = {"", ".yaml", ".yml", ".json", NULL};
    static const char *const document_folders[] = {".archon/workflows", ".cairn/workflows", NULL};
    static const char *const script_folders[] = {"scripts", ".archon/scripts", ".cairn/scripts", NULL};
    (void)context;
    bool script = part->kind == PART_SCRIPT;
    struct str request = part->request;
    struct search search = {.arena = arena, .request = request, .err = err};
    search.extensions = script ? script_extensions(part->runtime) : document_extensions;
    search.folders = script ? script_folders : document_folders;
    if (request.len == 0 || memchr(request.ptr, '\0', request.len)) return error_set(err, E_NOT_FOUND, "an empty name");
    buf_init(&search.places, 4096);
    enum code rc = search_all(&search, part->from);
    // It may be the path of a playbook in a catalog.
    if (rc == E_NOT_FOUND && err->code == OK && !script) {
        char directory[PATH_LENGTH_MAX];
        directory_of(part->from, directory);
        rc = catalog_find(directory, request, arena, &search.file, &search.text, err);
    }
    if (rc == E_NOT_FOUND && err->code == OK) tell_places(&search, part->kind);
    buf_release(&search.places);
    part->file = search.file;
    part->text = search.text;
    return rc;
}
