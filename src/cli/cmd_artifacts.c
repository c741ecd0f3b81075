// Files that steps left behind: what the log says about them, and whether they are still what they were.
#include "cli/card.h"
#include "cli/commands.h"
#include "term/text.h"

#include "base/civil.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 256 * 1024 };

#define HASHED_MAX ((size_t)16 << 20) // larger ones have no hash in the log

static const struct column columns[] = {
    {"name", "NAME", CELL_TEXT, false, 60},   {"stepId", "STEP", CELL_TEXT, false, 32},
    {"kind", "KIND", CELL_TEXT, false, 16},   {"sizeBytes", "BYTES", CELL_NUMBER, false, 0},
    {"state", "STATE", CELL_TEXT, false, 0},  {"expiresAt", "EXPIRES", CELL_TIME, false, 0},
    {"path", "PATH", CELL_TEXT, true, 0},     {"sha256", "SHA256", CELL_TEXT, true, 0},
};

struct artifact {
    const struct step_view *step;
    const struct json *ref; // of the log
    struct str path, name;
    const char *state; // "ok", "changed", "missing", "expired"
};

struct artifacts {
    struct session session;
    struct card card;
    struct artifact *items;
    size_t count, capacity;
};

// ---- reading one, here or at the server

struct reading {
    struct session *session;
    const struct artifact *artifact;
    const struct run_ids *ids;
    int fd; // -1: it is at the server
    uint64_t at;
    struct arena scratch;
};

static enum code open_file(struct reading *reading, struct session *session, const struct run_ids *ids,
                           const struct artifact *artifact, struct error *err)
{
    *reading = (struct reading){.session = session, .artifact = artifact, .ids = ids, .fd = -1};
    arena_init(&reading->scratch, 4096, 8 * (size_t)CHUNK);
    if (session->remote) return OK;
    uint64_t size;
    return os_open_regular(artifact->path.ptr, &reading->fd, &size, err);
}

static void close_file(struct reading *reading)
{
    if (reading->fd >= 0) close(reading->fd);
    arena_release(&reading->scratch);
}

// The next bytes; none at the end.
static enum code next_bytes(struct reading *reading, struct str *out, struct error *err)
{
    struct file_piece piece;
    arena_reset(&reading->scratch);
    if (reading->session->remote) {
        struct file_range range = {.ids = reading->ids,
                                   .what = "artifacts",
                                   .name = reading->artifact->name,
                                   .offset = reading->at,
                                   .limit = CHUNK};
        enum code rc = store_run_file(reading->session->store, &range, &reading->scratch, &piece, err);
        *out = rc ? STR("") : piece.bytes;
        reading->at += out->len;
        return rc;
    }
    char *room = arena_alloc(&reading->scratch, CHUNK);
    if (!room) return error_nomem(err);
    size_t got;
    if (!os_read_up_to(reading->fd, room, CHUNK, &got)) return os_errno(err, "read", reading->artifact->path.ptr);
    *out = (struct str){room, got};
    return OK;
}

static enum code size_of(struct session *session, const struct run_ids *ids, const struct artifact *artifact,
                         int64_t *size, struct error *err)
{
    struct stat status;
    struct file_piece piece;
    if (session->remote) {
        struct file_range first = {.ids = ids, .what = "artifacts", .name = artifact->name, .limit = 1};
        enum code rc = store_run_file(session->store, &first, &session->cli->io.arena, &piece, err);
        *size = (int64_t)piece.size;
        return rc;
    }
    if (stat(artifact->path.ptr, &status) || !S_ISREG(status.st_mode)) return E_NOT_FOUND;
    *size = status.st_size;
    return OK;
}

static enum code hash_of(struct session *session, const struct run_ids *ids, const struct artifact *artifact,
                         struct digest *out, struct error *err)
{
    struct reading reading;
    struct str piece = STR("");
    struct buf text SCOPED(buf_release) = buf_of(HASHED_MAX + 1);
    enum code rc = open_file(&reading, session, ids, artifact, err);
    while (!rc && !(rc = next_bytes(&reading, &piece, err)) && piece.len > 0) buf_add(&text, piece);
    close_file(&reading);
    if (!rc && !buf_ok(&text)) rc = error_set(err, E_LIMIT, "%.*s has grown too large", STR_ARG(artifact->path));
    if (!rc) *out = sha256(buf_str(&text));
    return rc;
}

static const char *state_of(struct artifacts *all, const struct artifact *artifact)
{
    struct session *session = &all->session;
    const struct run_ids *ids = &all->card.head.ids;
    struct str sha = json_text(json_key(artifact->ref, "sha256"));
    struct error err = {0};
    struct digest digest = {0};
    char hex[SHA256_HEX + 1];
    int64_t size = 0, expires_ms = 0;
    if (civil_parse(json_text(json_key(artifact->ref, "expiresAt")), &expires_ms) && expires_ms <= session->cli->io.now_ms)
        return "expired";
    enum code rc = size_of(session, ids, artifact, &size, &err);
    if (rc && rc != E_NOT_FOUND) cli_warn(session->cli, "%s", err.message);
    if (rc) return "missing";
    if (size != json_integer(json_key(artifact->ref, "sizeBytes"), -1)) return "changed";
    if (sha.len == 0) return "ok";
    bool read = hash_of(session, ids, artifact, &digest, &err) == OK;
    digest_hex(&digest, hex);
    if (!read) cli_warn(session->cli, "%s", err.message);
    return read && str_is(sha, hex) ? "ok" : "changed";
}

// Its name in the directory of the run, and the path where it is; at a server only the server knows that.
static bool locate(struct artifacts *all, struct str uri, struct artifact *out)
{
    const struct run_view *view = &all->card.view;
    struct arena *arena = &all->session.cli->io.arena;
    struct str dir, scheme = STR("file://");
    bool inside = artifact_name(uri, view->start.artifacts_dir, &out->name);
    out->path = arena_copy(arena, str_slice(uri, str_starts(uri, scheme) ? scheme.len : 0, uri.len));
    if (!inside) out->name = out->path;
    if (!out->path.ptr || !inside || all->session.remote || !str_starts(uri, STR(FILES_URI))) return out->path.ptr;
    if (store_files_dir(all->session.store, &view->ids, view->start.artifacts_dir, arena, &dir)) return false;
    const char *path = cli_format(all->session.cli, "%.*s/%.*s", STR_ARG(dir), STR_ARG(out->name));
    out->path = str_from(path);
    return true;
}

static bool add(struct artifacts *all, const struct step_view *step, const struct json *ref)
{
    struct cli *cli = all->session.cli;
    if (!ARENA_ROOM(&cli->io.arena, all->items, all->count, &all->capacity)) return false;
    struct artifact *artifact = &all->items[all->count++];
    *artifact = (struct artifact){.step = step, .ref = ref};
    if (!locate(all, json_text(json_key(ref, "uri")), artifact)) return false;
    artifact->state = state_of(all, artifact);
    return true;
}

static int open_artifacts(struct artifacts *all, struct cli *cli)
{
    struct target target = {0};
    *all = (struct artifacts){0};
    int code = session_open(&all->session, cli, STORE_READ);
    if (!code) code = target_find(&all->session, cli->args.words[0], TARGET_STEP | TARGET_MOMENT, &target);
    if (!code) code = card_load(&all->session, &target.head, target.at, &all->card);
    if (!code && target.step.len && !card_has_step(&all->session, &all->card, target.step)) code = EXIT_NOT_FOUND;
    for (size_t i = 0; !code && i < all->card.view.step_count; i++) {
        const struct step_view *step = &all->card.view.steps[i];
        if (target.step.len && !str_eq(step->id, target.step)) continue;
        for (uint32_t k = 0; !code && step->artifacts.type == JSON_ARRAY && k < step->artifacts.count; k++)
            if (!add(all, step, &step->artifacts.items[k])) code = cli_nomem(cli);
    }
    return code;
}

static void close_artifacts(struct artifacts *all)
{
    card_release(&all->card);
    session_close(&all->session);
}

static struct json member(const struct json *object, const char *key)
{
    const struct json *value = json_key(object, key);
    return value ? *value : json_null();
}

static bool row_json(struct cli *cli, const struct artifact *artifact, struct json *row)
{
    *row = JSON_OF(&cli->io.arena, {"name", json_string(artifact->name)}, {"stepId", json_string(artifact->step->id)},
                   {"kind", member(artifact->ref, "kind")}, {"sizeBytes", member(artifact->ref, "sizeBytes")},
                   {"state", json_word(artifact->state)}, {"expiresAt", member(artifact->ref, "expiresAt")},
                   {"path", json_string(artifact->path)},
                   {"sha256", member(artifact->ref, "sha256")});
    return json_ok(row);
}

int command_artifacts_ls(struct cli *cli)
{
    struct artifacts all;
    struct list list;
    struct json rows = json_array();
    bool whole = true;
    int code = open_artifacts(&all, cli);
    if (!code && !list_open(&list, cli, columns, ARRAY_COUNT(columns), "name")) code = EXIT_USAGE;
    for (size_t i = 0; !code && i < all.count; i++) {
        struct json row;
        whole = whole && (strcmp(all.items[i].state, "ok") == 0 || strcmp(all.items[i].state, "expired") == 0);
        if (!row_json(cli, &all.items[i], &row) || !json_push(&cli->io.arena, &rows, row)) code = cli_nomem(cli);
    }
    if (!code) {
        list_page(&list, &rows);
        list_close(&list);
        if (all.count == 0 && cli->io.err.tty) cli_note(cli, "no step has declared artifacts");
        if (!whole) code = cli_fail(cli, EXIT_INTEGRITY, "not all of them are what they were when their step ended");
    }
    close_artifacts(&all);
    return code;
}

// Whole name, or the last part of it when no other artifact ends so.
static const struct artifact *find(struct artifacts *all, struct str name, int *code)
{
    struct cli *cli = all->session.cli;
    const struct artifact *found = NULL;
    const char *names[64];
    size_t count = 0;
    *code = EXIT_NOT_FOUND;
    for (size_t i = 0; i < all->count; i++) {
        const struct artifact *artifact = &all->items[i];
        if (str_eq(artifact->name, name) || str_eq(artifact->path, name)) return artifact;
        bool last = str_ends(artifact->name, name) && artifact->name.len > name.len &&
                    artifact->name.ptr[artifact->name.len - name.len - 1] == '/';
        if (last && found) {
            *code = cli_fail(cli, EXIT_USAGE, "%.*s is more than one artifact: give more of its name", STR_ARG(name));
            return NULL;
        }
        if (last) found = artifact;
        if (count < ARRAY_COUNT(names)) names[count++] = artifact->name.ptr;
    }
    if (found) return found;
    const char *near = nearest_name(name, names, count);
    cli_fail(cli, EXIT_NOT_FOUND, "there is no artifact %.*s", STR_ARG(name));
    if (near) cli_hint(cli, "did you mean %s?", near);
    cli_next(cli, "artifacts ls %s", cli->args.words[0].ptr);
    return NULL;
}

static int check_whole(struct cli *cli, const struct artifact *artifact)
{
    if (strcmp(artifact->state, "expired") == 0)
        return cli_fail(cli, EXIT_NOT_FOUND, "%.*s expired at %.*s: artifacts of kind %.*s are kept no longer", STR_ARG(artifact->name),
                        STR_ARG(json_text(json_key(artifact->ref, "expiresAt"))), STR_ARG(json_text(json_key(artifact->ref, "kind"))));
    if (strcmp(artifact->state, "missing") == 0)
        return cli_fail(cli, EXIT_NOT_FOUND, "%.*s is gone", STR_ARG(artifact->path));
    if (strcmp(artifact->state, "changed") == 0 && !args_has(&cli->args, FLAG_FORCE)) {
        cli_fail(cli, EXIT_INTEGRITY, "%.*s is not what it was when its step ended", STR_ARG(artifact->path));
        return cli_hint(cli, "--force takes it as it is now");
    }
    return EXIT_OK;
}

// Copies to `to`, or to stdout when it is -1.
static int copy_bytes(struct artifacts *all, const struct artifact *artifact, int to, const char *name)
{
    struct cli *cli = all->session.cli;
    struct error err = {0};
    struct reading reading;
    struct str piece = STR("");
    struct buf bytes SCOPED(buf_release) = buf_of(2 * (size_t)CHUNK);
    enum code rc = open_file(&reading, &all->session, &all->card.head.ids, artifact, &err);
    while (!rc && !cli->io.out_closed) {
        rc = next_bytes(&reading, &piece, &err);
        if (rc || piece.len == 0) break;
        if (to >= 0) {
            if (!os_write_all(to, piece)) rc = os_errno(&err, "write", name);
        } else {
            buf_add(&bytes, piece);
            cli_print(cli, &bytes);
        }
    }
    close_file(&reading);
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

int command_artifacts_cat(struct cli *cli)
{
    struct artifacts all;
    int code = open_artifacts(&all, cli);
    for (size_t i = 1; !code && i < cli->args.word_count; i++) {
        const struct artifact *artifact = find(&all, cli->args.words[i], &code);
        if (!artifact) break;
        code = check_whole(cli, artifact);
        if (!code) code = copy_bytes(&all, artifact, -1, "");
    }
    close_artifacts(&all);
    return code;
}

static int save(struct artifacts *all, const struct artifact *artifact, struct str dir)
{
    struct cli *cli = all->session.cli;
    struct error err = {0};
    size_t from = artifact->name.len;
    while (from > 0 && artifact->name.ptr[from - 1] != '/') from--;
    struct str base = str_slice(artifact->name, from, artifact->name.len);
    const char *name = cli_format(cli, "%.*s/%.*s", STR_ARG(dir), STR_ARG(base));
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (args_has(&cli->args, FLAG_FORCE) ? O_TRUNC : O_EXCL);
    int to = open(name, flags, 0666);
    if (to < 0) {
        bool exists = errno == EEXIST;
        os_errno(&err, "make", name);
        int code = cli_error(cli, &err);
        if (exists) cli_hint(cli, "--force writes over it");
        return code;
    }
    int code = copy_bytes(all, artifact, to, name);
    if (close(to) && !code) {
        os_errno(&err, "write", name);
        code = cli_error(cli, &err);
    }
    if (code) return code;
    struct buf line SCOPED(buf_release) = buf_of(1 << 16);
    text_safe(&line, str_from(name));
    buf_byte(&line, '\n');
    cli_print(cli, &line);
    return EXIT_OK;
}

int command_artifacts_get(struct cli *cli)
{
    struct artifacts all;
    struct error err = {0};
    struct str dir = args_text(&cli->args, FLAG_OUT, ".");
    int code = open_artifacts(&all, cli);
    if (!code && os_make_dirs(dir.ptr, &err)) code = cli_error(cli, &err);
    bool every = cli->args.word_count == 1;
    size_t count = every ? all.count : cli->args.word_count - 1;
    for (size_t i = 0; !code && i < count; i++) {
        const struct artifact *artifact = every ? &all.items[i] : find(&all, cli->args.words[i + 1], &code);
        if (!artifact) break;
        if (every && strcmp(artifact->state, "expired") == 0) { // the others are meant
            cli_note(cli, "%.*s expired at %.*s", STR_ARG(artifact->name), STR_ARG(json_text(json_key(artifact->ref, "expiresAt"))));
            continue;
        }
        code = check_whole(cli, artifact);
        if (!code) code = save(&all, artifact, dir);
    }
    close_artifacts(&all);
    return code;
}
