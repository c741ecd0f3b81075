// Files that steps left: which there are, and their bytes. A step may have put anything into its directory, links too: what is
// read is a regular file below the directory of the run, reached without any link, or nothing.
#include "api/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_MAX ((uint64_t)32 << 20) // bytes of one answer

struct artifact {
    const struct step_view *step;
    const struct json *ref; // of the log
    struct str name;        // below the directory of the run
};

// ---- the file

static int open_below(struct str dir, struct str name)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int top = open(dir.ptr, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0) return -1;
    int fd = (int)syscall(SYS_openat2, top, name.ptr, &how, sizeof(how));
    close(top);
    struct stat status;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static int64_t size_of(int fd)
{
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 ? (int64_t)status.st_size : -1;
}

static bool read_slice(struct ask *ask, int fd, uint64_t from, uint64_t size, struct str *out)
{
    char *bytes = ARENA_ARRAY(&ask->call->arena, size + 1, char);
    uint64_t done = 0;
    while (bytes && done < size) {
        ssize_t got = pread(fd, bytes + done, size - done, (off_t)(from + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += (uint64_t)got;
    }
    *out = (struct str){bytes, done};
    return bytes && done == size;
}

// ---- which there are

static bool take(struct ask *ask, const struct folded *folded, const struct step_view *step, const struct json *ref,
                 struct artifact *out)
{
    struct str name;
    if (!artifact_name(json_text(json_key(ref, "uri")), folded->view.start.artifacts_dir, &name)) return false;
    *out = (struct artifact){.step = step, .ref = ref, .name = arena_copy(&ask->call->arena, name)};
    return out->name.ptr != NULL;
}

static int open_artifact(struct ask *ask, const struct store *store, const struct folded *folded, struct str name)
{
    struct str dir;
    const struct run_view *view = &folded->view;
    enum code rc = store_files_dir(store, &view->ids, view->start.artifacts_dir, &ask->call->arena, &dir);
    return rc ? -1 : open_below(dir, name);
}

static const char *state_of(struct ask *ask, const struct store *store, const struct folded *folded,
                            const struct artifact *artifact)
{
    int fd = open_artifact(ask, store, folded, artifact->name);
    int64_t size = size_of(fd);
    if (fd < 0) return "missing";
    close(fd);
    return size == json_integer(json_key(artifact->ref, "sizeBytes"), -1) ? "ok" : "changed";
}

static bool row(struct ask *ask, const struct store *store, const struct folded *folded,
                const struct artifact *artifact, struct json *out)
{
    *out = json_object();
    int64_t size = json_integer(json_key(artifact->ref, "sizeBytes"), 0);
    return ask_text(ask, out, "name", artifact->name) && ask_text(ask, out, "stepId", artifact->step->id) &&
           ask_text(ask, out, "kind", json_text(json_key(artifact->ref, "kind"))) &&
           ask_json(ask, out, "sizeBytes", json_int(size)) &&
           ask_text(ask, out, "sha256", json_text(json_key(artifact->ref, "sha256"))) &&
           ask_text(ask, out, "state", str_from(state_of(ask, store, folded, artifact)));
}

static void tell_artifacts(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct folded folded;
    struct error err = {0};
    struct json items = json_array();
    enum code rc = reading_fold(store, head, READING_NOW, &call->arena, &folded, &err);
    for (size_t i = 0; !rc && i < folded.view.step_count; i++) {
        const struct step_view *step = &folded.view.steps[i];
        for (uint32_t k = 0; !rc && step->artifacts.type == JSON_ARRAY && k < step->artifacts.count; k++) {
            struct artifact artifact;
            struct json one;
            if (!take(ask, &folded, step, &step->artifacts.items[k], &artifact)) continue;
            if (!row(ask, store, &folded, &artifact, &one) || !json_push(&call->arena, &items, one))
                rc = error_set(&err, E_NOMEM, "out of memory");
        }
    }
    folded_release(&folded);
    if (rc)
        call_failed(call, &err);
    else
        answer_page(ask, items, (struct str){0});
}

void handle_artifact_list(struct ask *ask)
{
    with_run(ask, OPERATION_ARTIFACT_GET, tell_artifacts);
}

// ---- the bytes of one

static bool find(struct ask *ask, const struct folded *folded, struct str name, struct str step_id,
                 struct artifact *out)
{
    bool found = false;
    for (size_t i = 0; i < folded->view.step_count; i++) {
        const struct step_view *step = &folded->view.steps[i];
        if (step_id.len && !str_eq(step->id, step_id)) continue;
        for (uint32_t k = 0; step->artifacts.type == JSON_ARRAY && k < step->artifacts.count; k++) {
            struct artifact artifact;
            if (!take(ask, folded, step, &step->artifacts.items[k], &artifact) || !str_eq(artifact.name, name))
                continue;
            *out = artifact; // the last that was left under this name is what is there
            found = true;
        }
    }
    return found;
}

static bool is_whole(const struct json *ref, struct str bytes)
{
    struct str wanted = json_text(json_key(ref, "sha256"));
    struct digest digest = sha256(bytes);
    char hex[SHA256_HEX + 1];
    digest_hex(&digest, hex);
    return wanted.len == 0 || str_is(wanted, hex);
}

static void send(struct ask *ask, const struct artifact *artifact, int fd)
{
    struct call *call = ask->call;
    struct byte_range range;
    struct str bytes;
    int64_t size = size_of(fd);
    if (size < 0) {
        call_problem(call, 404, "ARTIFACT_MISSING", "the file is not there any more");
        return;
    }
    if (!range_of(ask, (uint64_t)size, &range)) return;
    if (range.size > SLICE_MAX) {
        call->answer.hint = STR("ask for it in parts, with Range: bytes=FIRST-LAST");
        call_problem(call, 413, "ARTIFACT_TOO_LARGE", "an answer has %llu bytes at most",
                     (unsigned long long)SLICE_MAX);
    } else if (!read_slice(ask, fd, range.from, range.size, &bytes)) {
        call_problem(call, 409, "ARTIFACT_CHANGED", "the file changes while it is read");
    } else if (!range.partial && !is_whole(artifact->ref, bytes)) {
        call_problem(call, 409, "ARTIFACT_CHANGED", "the file is not what the step left");
    } else {
        size_t slash = 0;
        for (size_t i = 0; i < artifact->name.len; i++)
            if (artifact->name.ptr[i] == '/') slash = i + 1;
        answer_slice(ask, "application/octet-stream", bytes, &range,
                     str_slice(artifact->name, slash, artifact->name.len));
    }
}

static void tell_content(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct folded folded;
    struct error err = {0};
    struct str name, step;
    struct artifact artifact = {0};
    if (!query_text(ask, "name", &name) || !query_text(ask, "step", &step)) return;
    enum code rc = reading_fold(store, head, READING_NOW, &call->arena, &folded, &err);
    if (rc) {
        call_failed(call, &err);
    } else if (!find(ask, &folded, name, step, &artifact)) {
        call_problem(call, 404, "ARTIFACT_NOT_FOUND", "no step has left a file of this name");
    } else {
        int fd = open_artifact(ask, store, &folded, artifact.name);
        folded_release(&folded);
        send(ask, &artifact, fd);
        if (fd >= 0) close(fd);
        return;
    }
    folded_release(&folded);
}

void handle_artifact_get(struct ask *ask)
{
    with_run(ask, OPERATION_ARTIFACT_GET, tell_content);
}
