// Files that steps left: which there are, and their bytes.
#include "api/inside.h"

#include "base/civil.h"

#define SLICE_MAX ((uint64_t)32 << 20) // bytes of one answer

void tell_artifacts(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct artifacts all;
    struct error err = {0};
    struct json items;
    if (reading_artifacts(store, head, &call->arena, &all, &err))
        call_failed(call, &err);
    else if (!artifacts_json(&all, os_now().wall_ms, &call->arena, &items))
        call_nomem(ask->call);
    else
        answer_page(ask, items, (struct str){0});
}

static void gone(struct call *call)
{
    call_problem(call, 404, "ARTIFACT_MISSING", "the file is not there any more");
}

static void expired(struct call *call, const struct artifact *artifact)
{
    char since[CIVIL_SIZE];
    civil_format(artifact->expires_ms, since);
    call_problem(call, 410, "ARTIFACT_EXPIRED", "its time was over at %s: artifacts of kind %.*s are kept no longer", since,
                 STR_ARG(artifact->kind));
}

static void send(struct ask *ask, const struct artifacts *all, const struct artifact *artifact)
{
    struct call *call = ask->call;
    struct byte_range range;
    struct file_piece piece;
    if (artifact_read(all, artifact, 0, 0, &call->arena, &piece, NULL)) {
        gone(call);
        return;
    }
    if (!range_of(ask, piece.size, &range)) return;
    if (range.size > SLICE_MAX) {
        call->answer.hint = STR("ask for it in parts, with Range: bytes=FIRST-LAST");
        call_problem(call, 413, "ARTIFACT_TOO_LARGE", "an answer has %llu bytes at most",
                     (unsigned long long)SLICE_MAX);
    } else if (artifact_read(all, artifact, range.from, range.size, &call->arena, &piece, NULL)) {
        gone(call);
    } else if (piece.bytes.len != range.size) {
        call_problem(call, 409, "ARTIFACT_CHANGED", "the file changes while it is read");
    } else if (!range.partial && !artifact_is_whole(artifact, piece.bytes)) {
        call_problem(call, 409, "ARTIFACT_CHANGED", "the file is not what the step left");
    } else {
        size_t slash = 0;
        for (size_t i = 0; i < artifact->name.len; i++)
            if (artifact->name.ptr[i] == '/') slash = i + 1;
        answer_slice(ask, "application/octet-stream", piece.bytes, &range,
                     str_slice(artifact->name, slash, artifact->name.len));
    }
}

void tell_content(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct artifacts all;
    struct error err = {0};
    struct str name, step;
    if (!query_text(ask, "name", &name) || !query_text(ask, "step", &step)) return;
    if (name.len == 0) {
        call_problem(call, 400, "INVALID_REQUEST", "parameter name is needed");
        return;
    }
    if (reading_artifacts(store, head, &call->arena, &all, &err)) {
        call_failed(call, &err);
        return;
    }
    const struct artifact *artifact = artifact_find(&all, name, step);
    if (artifact && artifact_expired(artifact, os_now().wall_ms))
        expired(call, artifact);
    else if (artifact)
        send(ask, &all, artifact);
    else
        call_problem(call, 404, "ARTIFACT_NOT_FOUND", "no step has left a file of this name");
}

