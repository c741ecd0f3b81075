// Files that steps left: which there are, and their bytes.
#include "api/inside.h"

#include "base/civil.h"

#define SLICE_MAX ((uint64_t)32 << 20) // bytes of one answer

bool tell_artifacts(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct artifacts all;
    struct error err = {0};
    struct json items;
    if (reading_artifacts(store, head, &call->arena, &all, &err)) return call_failed(call, &err);
    if (!artifacts_json(&all, os_now().wall_ms, &call->arena, &items)) return call_nomem(ask->call);
    return answer_page(ask, items, (struct str){0});
}

static bool gone(struct call *call)
{
    return call_problem(call, 404, "ARTIFACT_MISSING", "the file is not there any more");
}

static bool expired(struct call *call, const struct artifact *artifact)
{
    char since[CIVIL_SIZE];
    civil_format(artifact->expires_ms, since);
    return call_problem(call, 410, "ARTIFACT_EXPIRED",
                        "its time was over at %s: artifacts of kind %.*s are kept no longer", since,
                        STR_ARG(artifact->kind));
}

static bool send(struct ask *ask, const struct artifacts *all, const struct artifact *artifact)
{
    struct call *call = ask->call;
    struct byte_range range;
    struct file_piece piece;
    if (artifact_read(all, artifact, 0, 0, &call->arena, &piece, NULL)) return gone(call);
    if (!range_of(ask, piece.size, &range)) return false;
    if (range.size > SLICE_MAX) {
        call->answer.hint = STR("ask for it in parts, with Range: bytes=FIRST-LAST");
        return call_problem(call, 413, "ARTIFACT_TOO_LARGE", "an answer has %llu bytes at most",
                            (unsigned long long)SLICE_MAX);
    }
    if (artifact_read(all, artifact, range.from, range.size, &call->arena, &piece, NULL)) return gone(call);
    if (piece.bytes.len != range.size)
        return call_problem(call, 409, "ARTIFACT_CHANGED", "the file changes while it is read");
    if (!range.partial && !artifact_is_whole(artifact, piece.bytes))
        return call_problem(call, 409, "ARTIFACT_CHANGED", "the file is not what the step left");
    size_t slash = 0;
    for (size_t i = 0; i < artifact->name.len; i++)
        if (artifact->name.ptr[i] == '/') slash = i + 1;
    return answer_slice(ask, "application/octet-stream", piece.bytes, &range,
                        str_slice(artifact->name, slash, artifact->name.len));
}

bool tell_content(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct artifacts all;
    struct error err = {0};
    struct str name, step;
    if (!query_text(ask, "name", &name) || !query_text(ask, "step", &step)) return false;
    if (name.len == 0) return call_problem(call, 400, "INVALID_REQUEST", "parameter name is needed");
    if (reading_artifacts(store, head, &call->arena, &all, &err)) return call_failed(call, &err);
    const struct artifact *artifact = artifact_find(&all, name, step);
    if (artifact && artifact_expired(artifact, os_now().wall_ms)) return expired(call, artifact);
    if (artifact) return send(ask, &all, artifact);
    return call_problem(call, 404, "ARTIFACT_NOT_FOUND", "no step has left a file of this name");
}

