#include "temporal/parcel.h"

#include "base/base64.h"
#include "json/make.h"
#include "reach/reach.h"
#include "tool/tool.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONTENT_MAX = 4 << 10, DEPTH_MAX = 32, PATH_BYTES = 4096 };

// ---- the files of a directory

struct walk {
    struct temporal *temporal;
    struct str workflow;
    const struct json *known;
    int root;
    struct buf *out; // NULL: only whether there is one
    size_t count, seen;
    uint64_t bytes;
    struct error *err;
};

static const struct json *known_file(const struct json *known, struct str path)
{
    for (uint32_t i = 0; json_is(known, JSON_ARRAY) && i < known->count; i++)
        if (str_eq(json_text(json_key(&known->items[i], "path")), path)) return &known->items[i];
    return NULL;
}

static void write_file(struct walk *walk, struct str path, const char *hex, struct str bytes, bool executable, struct arena *arena)
{
    struct buf content = buf_of(2 * CONTENT_MAX);
    bool inside = bytes.len <= CONTENT_MAX;
    if (inside) buf_base64(&content, bytes);
    struct json file = JSON_OF(arena, {"path", json_string(path)}, {"sha256", json_word(hex)}, {"bytes", json_count(bytes.len)},
                               {"executable", json_flag(executable)}, {"content", json_when(inside, json_string(buf_str(&content)))});
    if (walk->count++ > 0) buf_byte(walk->out, ',');
    json_write(walk->out, &file);
    buf_release(&content);
}

static enum code pack_file(struct walk *walk, struct str path, bool executable)
{
    struct arena arena = arena_of(65536, (size_t)PARCEL_FILE_MAX + (1 << 20));
    struct str bytes;
    char hex[SHA256_HEX + 1];
    enum code rc = reach_read(walk->root, path, PARCEL_FILE_MAX, &arena, &bytes, walk->err);
    bool gone = rc == E_NOT_FOUND || rc == E_DENIED || rc == E_INVALID; // it is no file any more
    if (!rc) {
        struct digest digest = sha256(bytes);
        digest_hex(&digest, hex);
        walk->bytes += bytes.len;
        const struct json *known = known_file(walk->known, path);
        bool same = known && str_is(json_text(json_key(known, "sha256")), hex) && (json_key(known, "executable") != NULL) == executable;
        if (walk->bytes > PARCEL_MAX)
            rc = error_set(walk->err, E_LIMIT, "the artifacts directory has more than %d MiB", PARCEL_MAX >> 20);
        else if (!same && bytes.len > CONTENT_MAX)
            rc = temporal_value_put(walk->temporal, walk->workflow, bytes, &digest, walk->err);
        if (!rc && !same) write_file(walk, path, hex, bytes, executable, &arena);
    } else if (rc == E_LIMIT) {
        error_wrap(walk->err, "the file %.*s of the artifacts directory", STR_ARG(path));
    }
    arena_release(&arena);
    if (!gone) return rc;
    *walk->err = (struct error){0};
    return OK;
}

static enum code walk_dir(struct walk *walk, struct str path, int depth);

static enum code walk_entry(struct walk *walk, int dir, struct str path, const char *name, int depth)
{
    struct stat info;
    char text[PATH_BYTES];
    struct buf inner = buf_of(PATH_BYTES);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || !str_utf8(str_from(name))) return OK;
    if (path.len > 0) buf_printf(&inner, "%.*s/", STR_ARG(path));
    buf_text(&inner, name);
    bool fits = buf_ok(&inner) && inner.len < sizeof(text);
    if (fits) memcpy(text, inner.ptr, inner.len + 1);
    struct str at = {text, inner.len};
    buf_release(&inner);
    if (!fits || fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return OK;
    if (S_ISDIR(info.st_mode)) return depth < DEPTH_MAX ? walk_dir(walk, at, depth + 1) : OK;
    if (!S_ISREG(info.st_mode)) return OK;
    if (++walk->seen > PARCEL_FILES_MAX)
        return error_set(walk->err, E_LIMIT, "the artifacts directory has more than %d files", PARCEL_FILES_MAX);
    return walk->out ? pack_file(walk, at, (info.st_mode & S_IXUSR) != 0) : OK;
}

static enum code walk_dir(struct walk *walk, struct str path, int depth)
{
    int fd;
    enum code rc = reach_dir(walk->root, path.len > 0 ? path : STR("."), &fd, walk->err);
    DIR *dir = rc ? NULL : fdopendir(fd);
    if (!dir) {
        if (!rc) close(fd);
        *walk->err = (struct error){0}; // gone meanwhile, or not to be read
        return OK;
    }
    for (struct dirent *entry; !rc && (entry = readdir(dir));) {
        rc = walk_entry(walk, fd, path, entry->d_name, depth);
        if (!walk->out && walk->seen > 0) break;
    }
    closedir(dir);
    return rc;
}

bool parcel_is_empty(const char *dir)
{
    struct error err = {0};
    struct walk walk = {.err = &err};
    if (!dir || !*dir || reach_root(dir, &walk.root, &err)) return true;
    (void)!walk_dir(&walk, STR(""), 0);
    close(walk.root);
    return walk.seen == 0;
}

enum code parcel_pack(struct temporal *temporal, struct str workflow, const char *dir, const struct json *known,
                      struct buf *out, size_t *count, struct error *err)
{
    struct walk walk = {.temporal = temporal, .workflow = workflow, .known = known, .out = out, .err = err};
    buf_byte(out, '[');
    enum code rc = reach_root(dir, &walk.root, err);
    if (rc == E_NOT_FOUND) {
        *err = (struct error){0};
        rc = OK;
    } else if (!rc) {
        rc = walk_dir(&walk, STR(""), 0);
        close(walk.root);
    }
    buf_byte(out, ']');
    *count = walk.count;
    return rc ? rc : buf_ok(out) ? OK : error_nomem(err);
}

// ---- and back

static enum code unpack_file(struct temporal *temporal, struct str workflow, const struct json *file, int root,
                             struct error *err)
{
    struct arena arena = arena_of(65536, (size_t)PARCEL_FILE_MAX + (8 << 20));
    struct str path = json_text(json_key(file, "path")), bytes = {0};
    const struct json *content = json_key(file, "content");
    int64_t size = json_integer(json_key(file, "bytes"), -1);
    struct digest digest;
    enum code rc = OK;
    int fd;
    uint64_t written;
    if (path.len == 0 || size < 0 || size > PARCEL_FILE_MAX || !digest_parse(json_text(json_key(file, "sha256")), &digest)) {
        rc = error_set(err, E_INVALID, "a file without a path or a digest");
    } else if (content) {
        bytes = base64_read(json_text(content), &arena);
        if (!bytes.ptr) rc = error_set(err, E_INVALID, "a file whose content is not base64");
    } else {
        rc = temporal_value_get(temporal, workflow, &digest, (uint64_t)size, &arena, &bytes, err);
    }
    if (!rc) rc = reach_write(root, path, bytes, err);
    if (!rc && json_key(file, "executable") && reach_open(root, path, &fd, &written, err) == OK) {
        (void)!fchmod(fd, S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH);
        close(fd);
    }
    if (rc && path.len > 0) error_wrap(err, "the file %.*s", STR_ARG(path));
    arena_release(&arena);
    return rc;
}

enum code parcel_unpack(struct temporal *temporal, struct str workflow, const struct json *files, const char *dir,
                        struct error *err)
{
    int root;
    if (!json_is(files, JSON_ARRAY) || files->count == 0) return OK;
    if (files->count > PARCEL_FILES_MAX) return error_set(err, E_INVALID, "more than %d files", PARCEL_FILES_MAX);
    enum code rc = os_make_dirs(dir, err);
    if (!rc) rc = reach_root(dir, &root, err);
    if (rc) return rc;
    for (uint32_t i = 0; !rc && i < files->count; i++) rc = unpack_file(temporal, workflow, &files->items[i], root, err);
    close(root);
    return rc;
}

// ---- logs

void parcel_log_write(struct buf *out, struct str stdout_text, struct str stderr_text)
{
    struct arena arena = arena_of(1024, 1 << 16);
    struct json log = JSON_OF(&arena, {"stdout", json_string(stdout_text)}, {"stderr", json_string(stderr_text)});
    json_write(out, &log);
    arena_release(&arena);
}

void parcel_log_keep(const struct json *log, struct str path, size_t max, struct str how)
{
    struct str out = json_text(json_key(log, "stdout")), errors = json_text(json_key(log, "stderr"));
    struct step_log file;
    if (path.len == 0 || out.len + errors.len == 0) return;
    (void)unlink(path.ptr); // of a task that was read before, and did not come to its end
    step_log_init(&file, path, max);
    if (out.len > 0) step_log_take(&file, false, out);
    if (errors.len > 0) step_log_take(&file, true, errors);
    step_log_end(&file, how);
    step_log_release(&file);
}
