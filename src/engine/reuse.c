// Results of an ended run that count in a new one. A plan that waits for its approval keeps the ids of those steps in its
// first event, and looks their results up again in the log of the ended run when it is approved: that log does not change.
#include "engine/inside.h"

struct recall {
    const struct run *source;
    struct arena *arena;
    struct reuse *reuse;
    uint32_t count;
};

static enum code recall_one(void *context, const struct record *record, const struct moment *moment,
                            const struct seal *seal)
{
    (void)record;
    (void)seal;
    const struct recall *recall = context;
    if (!moment || moment->kind != MOMENT_STEP_COMPLETED || (moment->artifacts.type == 0 && !moment->truncated))
        return OK;
    uint32_t step = kernel_find(recall->source, moment->step);
    for (uint32_t i = 0; i < recall->count; i++) {
        struct reuse *reuse = &recall->reuse[i];
        if (reuse->step != step || reuse->skipped) continue;
        reuse->truncated = moment->truncated;
        if (moment->artifacts.type != 0 && !json_copy(recall->arena, &moment->artifacts, &reuse->artifacts))
            return E_NOMEM;
    }
    return OK;
}

enum code engine_reusable(struct store *store, const struct run *source, struct arena *arena, struct reuse **out,
                          uint32_t *count, struct error *err)
{
    if (kernel_reusable(source, arena, out, count)) return error_nomem(err);
    struct recall recall = {.source = source, .arena = arena, .reuse = *out, .count = *count};
    if (*count == 0) return OK;
    return store_replay(store, source->ids.tenant, source->ids.run, recall_one, &recall, err);
}

// The ids for the first event of a run that waits at its gate.
static bool name_reused(struct queued *queued, const struct program *program)
{
    queued->facts->reuse = json_array();
    for (uint32_t i = 0; i < queued->input.reuse_count; i++)
        if (!json_push(queued->arena, &queued->facts->reuse, json_string(program->steps[queued->reuse[i].step].id)))
            return false;
    return true;
}

enum code queue_reuse(struct queued *queued, const struct reuse *reuse, uint32_t count, struct error *err)
{
    if (count == 0) return OK;
    struct arena *arena = queued->arena;
    INVARIANT(arena && reuse);
    struct reuse *kept = ARENA_ARRAY(arena, count, struct reuse);
    if (!kept) return error_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        kept[i] = reuse[i];
        if (!ARENA_KEEP(arena, &kept[i].from_run, &kept[i].actor)) return error_nomem(err);
        if (!json_keep(arena, &kept[i].value) || !json_keep(arena, &kept[i].artifacts)) return error_nomem(err);
    }
    queued->reuse = kept;
    queued->input.reuse_count = count;
    bool waits = queued->facts && (queued->facts->requires_approval || str_is(queued->facts->admission, "QUEUE"));
    return !waits || name_reused(queued, queued->resident->entry->program) ? OK : error_nomem(err);
}

static bool is_named(const struct json *names, struct str id)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (str_eq(json_text(&names->items[i]), id)) return true;
    return false;
}

static enum code look_up(struct engine *engine, struct queued *queued, struct error *err)
{
    const struct run *run = queued->resident->run;
    struct run_head head;
    struct run *source = NULL;
    struct reuse *reuse = NULL;
    uint32_t count = 0, kept = 0;
    enum code rc = store_head(engine->store, run->ids.tenant, run->start.original_run, &engine->turn, &head, err);
    if (!rc && !digest_eq(&head.document, &run->program->sha256))
        rc = error_set(err, E_NOT_FOUND, "it was started from another document");
    if (!rc) rc = fold_stored(engine->store, run->program, &head.ids, &source, err);
    if (!rc) rc = engine_reusable(engine->store, source, &engine->turn, &reuse, &count, err);
    for (uint32_t i = 0; !rc && i < count; i++)
        if (is_named(&run->start.reuse, run->program->steps[reuse[i].step].id)) reuse[kept++] = reuse[i];
    if (!rc && !queued->arena && !(queued->arena = arena_make((size_t)64 << 20))) rc = error_nomem(err);
    if (!rc) rc = queue_reuse(queued, reuse, kept, err);
    run_free(source);
    return rc;
}

enum code reuse_at_the_gate(struct engine *engine, struct queued *queued, struct error *err)
{
    const struct run *run = queued->resident->run;
    const struct input *input = &queued->input;
    bool approves = input->kind == INPUT_SIGNAL && queued->signal->type == SIGNAL_APPROVE;
    if (run->start.reuse.type != JSON_ARRAY || queued->reuse || input->idle || run->started_ms > 0) return OK;
    if (!approves && input->kind != INPUT_RECOVER && input->kind != INPUT_ADMIT) return OK;
    enum code rc = look_up(engine, queued, err);
    if (rc == OK || code_is_outage(rc)) return rc;
    // The ended run is gone or cannot be read: its steps run again.
    os_log(LOG_WARN, "nothing is reused run=%.*s from=%.*s why=\"%s\"", STR_ARG(run->ids.run),
           STR_ARG(run->start.original_run), err ? err->message : "");
    if (err) *err = (struct error){0};
    return OK;
}
