// Files that the steps of a run left: which the log tells of, and what is there of them.
#include "reading/reading.h"

#include "base/civil.h"
#include "json/make.h"

static bool add(struct artifacts *all, struct str artifacts_dir, const struct step_view *step, const struct json *ref,
                struct arena *arena)
{
    struct str name;
    if (!artifact_name(json_text(json_key(ref, "uri")), artifacts_dir, &name))
        return true; // elsewhere: not ours to read
    if (!ARENA_ROOM(arena, all->items, all->count, &all->capacity)) return false;
    struct artifact *one = &all->items[all->count++];
    int64_t expires_ms = 0;
    (void)!civil_parse(json_text(json_key(ref, "expiresAt")), &expires_ms);
    *one = (struct artifact){.name = name,
                             .step = step->id,
                             .kind = json_text(json_key(ref, "kind")),
                             .sha256 = json_text(json_key(ref, "sha256")),
                             .size = json_integer(json_key(ref, "sizeBytes"), -1),
                             .at_ms = step->ended_ms,
                             .expires_ms = expires_ms};
    return ARENA_KEEP(arena, &one->name, &one->step, &one->kind, &one->sha256);
}

enum code reading_artifacts(struct store *store, const struct run_head *head, struct arena *arena,
                            struct artifacts *out, struct error *err)
{
    struct folded folded SCOPED(folded_release) = {0};
    *out = (struct artifacts){.store = store, .ids = &head->ids};
    enum code rc = reading_fold(store, head, READING_NOW, arena, &folded, err);
    bool ok = !rc;
    if (ok) out->dir = arena_copy(arena, folded.view.start.artifacts_dir);
    ok = ok && out->dir.ptr;
    for (size_t i = 0; ok && i < folded.view.step_count; i++) {
        const struct step_view *step = &folded.view.steps[i];
        for (uint32_t k = 0; ok && step->artifacts.type == JSON_ARRAY && k < step->artifacts.count; k++)
            ok = add(out, out->dir, step, &step->artifacts.items[k], arena);
    }
    return rc ? rc : ok ? OK : error_nomem(err);
}

const struct artifact *artifact_find(const struct artifacts *all, struct str name, struct str step)
{
    for (size_t i = all->count; i > 0; i--) {
        const struct artifact *one = &all->items[i - 1];
        if (str_eq(one->name, name) && (step.len == 0 || str_eq(one->step, step))) return one;
    }
    return NULL;
}

enum code artifact_read(const struct artifacts *all, const struct artifact *artifact, uint64_t offset, size_t limit,
                        struct arena *arena, struct file_piece *out, struct error *err)
{
    struct file_range range = {
        .ids = all->ids, .what = "artifacts", .name = artifact->name, .offset = offset, .limit = limit};
    return store_left_file(all->store, &range, all->dir, arena, out, err);
}

bool artifact_is_whole(const struct artifact *artifact, struct str bytes)
{
    struct digest digest = sha256(bytes);
    char hex[SHA256_HEX + 1];
    digest_hex(&digest, hex);
    return artifact->sha256.len == 0 || str_is(artifact->sha256, hex);
}

bool artifact_expired(const struct artifact *artifact, int64_t now_ms)
{
    return artifact->expires_ms > 0 && artifact->expires_ms <= now_ms;
}

static const char *state_of(const struct artifacts *all, const struct artifact *artifact, int64_t now_ms,
                            struct arena *arena)
{
    struct file_piece piece;
    if (artifact_expired(artifact, now_ms)) return "expired";
    if (artifact_read(all, artifact, 0, 0, arena, &piece, NULL)) return "missing";
    return (int64_t)piece.size == artifact->size ? "ok" : "changed";
}

bool artifacts_json(const struct artifacts *all, int64_t now_ms, struct arena *arena, struct json *out)
{
    *out = json_array();
    for (size_t i = 0; i < all->count; i++) {
        const struct artifact *one = &all->items[i];
        json_append(arena, out, JSON_OF(arena, {"name", json_some(one->name)}, {"stepId", json_some(one->step)},
                                        {"kind", json_some(one->kind)},
                                        {"sizeBytes", json_int(one->size < 0 ? 0 : one->size)},
                                        {"sha256", json_some(one->sha256)},
                                        {"expiresAt", json_time_some(arena, one->expires_ms)},
                                        {"state", json_name(state_of(all, one, now_ms, arena))}));
    }
    return json_ok(out);
}
