#include "contract/contract.h"

bool ids_keep(struct arena *arena, struct run_ids *ids)
{
    return ARENA_KEEP(arena, &ids->tenant, &ids->project, &ids->environment, &ids->run, &ids->plan_id, &ids->plan_version);
}

bool fault_keep(struct arena *arena, struct fault *fault)
{
    return ARENA_KEEP(arena, &fault->code, &fault->message, &fault->category, &fault->detail);
}

bool start_keep(struct arena *arena, struct start_facts *start, const struct str *shared, size_t count)
{
    struct str *const texts[] = {
        &start->document_sha256, &start->document_kind, &start->document_file, &start->schema_version, &start->name,
        &start->arguments,       &start->work_dir,      &start->artifacts_dir, &start->triggered_by,   &start->trigger_source,
        &start->original_run,    &start->parent_run,    &start->parent_step,   &start->forked_run,     &start->admission,
        &start->queue,           &start->profile,       &start->report,        &start->engine_type,    &start->engine_place,
        &start->plan_uri,        &start->plan_sha256};
    struct json *const values[] = {&start->inputs, &start->parts, &start->reuse, &start->refusal, &start->warnings};
    bool ok = true;
    for (size_t i = 0; ok && i < ARRAY_COUNT(texts); i++) {
        size_t same = 0;
        while (same < count && !str_eq(*texts[i], shared[same])) same++;
        if (same < count)
            *texts[i] = shared[same];
        else
            ok = arena_keep(arena, &texts[i], 1);
    }
    for (size_t i = 0; ok && i < ARRAY_COUNT(values); i++) ok = json_keep(arena, values[i]);
    return ok;
}
