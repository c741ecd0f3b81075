// Playbooks by their path in a catalog ("tests/pagination/basic"): as a file of that path here or further up, or as a playbook nearby
// whose metadata has that path: in the same folder, and in a repository around it.
#include "engine/catalog.h"

#include "os/os.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 4096, LEVELS_MAX = 16, SCAN_MAX = 2000, SCAN_DEPTH = 4 };
#define PLAYBOOK_SIZE_MAX ((size_t)1 << 20)

static const char *const extensions[] = {".yaml", ".yml", ".json"};

struct catalog {
    struct str path; // without a leading slash
    struct arena *arena;
    struct str file, text;
    uint32_t scanned;
    struct error *err;
};

static enum code take(struct catalog *c, const char *file)
{
    struct stat info;
    if (stat(file, &info) != 0 || !S_ISREG(info.st_mode)) return E_NOT_FOUND;
    c->file = arena_copy(c->arena, str_from(file));
    if (!c->file.ptr) return error_nomem(c->err);
    return os_read_file(file, PLAYBOOK_SIZE_MAX, c->arena, &c->text, c->err);
}

static bool is_repository(const char *directory)
{
    char path[PATH_SIZE];
    struct stat info;
    int len = snprintf(path, sizeof(path), "%s/.git", directory);
    return len > 0 && (size_t)len < sizeof(path) && stat(path, &info) == 0;
}

// DIRECTORY/PATH.yaml and DIRECTORY/PATH/NAME.yaml
static enum code try_files(struct catalog *c, const char *directory)
{
    char file[PATH_SIZE];
    size_t start = c->path.len;
    while (start > 0 && c->path.ptr[start - 1] != '/') start--;
    struct str name = str_slice(c->path, start, c->path.len);
    for (size_t i = 0; i < ARRAY_COUNT(extensions) * 2; i++) {
        const char *extension = extensions[i / 2];
        int len = i % 2 ? snprintf(file, sizeof(file), "%s/%.*s/%.*s%s", directory, STR_ARG(c->path), STR_ARG(name),
                                   extension)
                        : snprintf(file, sizeof(file), "%s/%.*s%s", directory, STR_ARG(c->path), extension);
        if (len <= 0 || (size_t)len >= sizeof(file)) continue;
        enum code rc = take(c, file);
        if (rc != E_NOT_FOUND) return rc;
    }
    return E_NOT_FOUND;
}

static bool has_path(struct str text, struct str path);

// The beginning of the path may be that of a tree which was put elsewhere: a file under the rest of it that says that it is the one.
static enum code try_rest(struct catalog *c, const char *directory)
{
    char file[PATH_SIZE];
    struct str rest = c->path;
    for (size_t slash = str_find(rest, '/', 0); slash < rest.len; slash = str_find(rest, '/', 0)) {
        rest = str_slice(rest, slash + 1, rest.len);
        for (size_t i = 0; i < ARRAY_COUNT(extensions); i++) {
            int len = snprintf(file, sizeof(file), "%s/%.*s%s", directory, STR_ARG(rest), extensions[i]);
            if (len <= 0 || (size_t)len >= sizeof(file)) continue;
            enum code rc = take(c, file);
            if (rc == E_NOMEM || (rc == OK && has_path(c->text, c->path))) return rc;
        }
    }
    return E_NOT_FOUND;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '"' || c == '\'' || c == '/';
}

// Where the key stands, in YAML or JSON; not the same word in a comment or a description.
static size_t find_key(struct str text, const char *key)
{
    size_t len = strlen(key);
    for (size_t at = str_find(text, key[0], 0); at + len < text.len; at = str_find(text, key[0], at + 1)) {
        size_t end = at + len;
        if (memcmp(text.ptr + at, key, len) != 0 || (at > 0 && !strchr("\n\"'{,", text.ptr[at - 1]))) continue;
        while (end < text.len && is_blank(text.ptr[end])) end++;
        if (end < text.len && text.ptr[end] == ':') return at;
    }
    return text.len;
}

// Whether its metadata say "path: PATH", in YAML or JSON, with or without quotes and a leading slash. Tasks have paths, too: those of
// the playbooks they run.
static bool has_path(struct str text, struct str path)
{
    text = str_slice(text, find_key(text, "metadata"), text.len);
    text = str_slice(text, 0, find_key(text, "workflow"));
    for (size_t at = str_find(text, ':', 0); at < text.len; at = str_find(text, ':', at + 1)) {
        size_t key = at, value = at + 1;
        while (key > 0 && is_blank(text.ptr[key - 1])) key--;
        if (key < 4 || memcmp(text.ptr + key - 4, "path", 4) != 0) continue;
        while (value < text.len && is_blank(text.ptr[value])) value++;
        if (!str_starts(str_slice(text, value, text.len), path)) continue;
        size_t end = value + path.len;
        if (end == text.len || strchr(" \t\r\n\"',}#", text.ptr[end])) return true;
    }
    return false;
}

static bool is_document(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(extensions); i++)
        if (str_ends(name, str_from(extensions[i]))) return true;
    return false;
}

static enum code look_into(struct catalog *c, const char *file)
{
    struct str text;
    struct arena arena SCOPED(arena_release) = arena_of(65536, PLAYBOOK_SIZE_MAX * 4);
    bool found = os_read_file(file, PLAYBOOK_SIZE_MAX, &arena, &text, NULL) == OK && has_path(text, c->path);
    return found ? take(c, file) : E_NOT_FOUND;
}

static enum code scan(struct catalog *c, const char *directory, uint32_t depth)
{
    char file[PATH_SIZE];
    DIR *open = opendir(directory);
    enum code rc = E_NOT_FOUND;
    if (!open) return rc;
    for (struct dirent *entry = readdir(open); entry && rc == E_NOT_FOUND && c->scanned < SCAN_MAX;
         entry = readdir(open)) {
        struct stat info;
        int len = snprintf(file, sizeof(file), "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] == '.' || len <= 0 || (size_t)len >= sizeof(file) || lstat(file, &info) != 0) continue;
        c->scanned++;
        if (S_ISREG(info.st_mode) && is_document(str_from(entry->d_name))) rc = look_into(c, file);
        if (S_ISDIR(info.st_mode) && depth < SCAN_DEPTH) rc = scan(c, file, depth + 1);
    }
    closedir(open);
    return rc;
}

enum code catalog_find(const char *directory, struct str path, struct arena *arena, struct str *file, struct str *text,
                       struct error *err)
{
    char at[PATH_SIZE];
    struct catalog c = {.path = path, .arena = arena, .err = err};
    if (str_starts(c.path, STR("/"))) c.path = str_slice(c.path, 1, c.path.len);
    if (!realpath(directory, at)) return E_NOT_FOUND;
    enum code rc = E_NOT_FOUND;
    bool repository = false;
    for (uint32_t level = 0; rc == E_NOT_FOUND && level < LEVELS_MAX && at[0]; level++) {
        rc = try_files(&c, at);
        if (rc == E_NOT_FOUND) rc = try_rest(&c, at);
        repository = repository || is_repository(at);
        *strrchr(at, '/') = '\0';
    }
    if (rc == E_NOT_FOUND) rc = scan(&c, directory, SCAN_DEPTH); // beside it
    if (rc == E_NOT_FOUND && repository) {
        int len = snprintf(at, sizeof(at), "%s/..", directory);
        if (len > 0 && (size_t)len < sizeof(at)) rc = scan(&c, at, 0);
    }
    *file = c.file;
    *text = c.text;
    return rc;
}
