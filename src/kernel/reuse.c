// Which results of an ended run a new run of the same document may take over: a step that succeeded, whose dependencies are
// all taken over too, and that does not insist on running (C-22). A rule or a condition that skipped a step will skip it
// again when nothing above it runs again; what hangs below such a step is not stale.
#include "kernel/inside.h"

static bool may_reuse(const struct run *source, uint32_t step, const bool *reused)
{
    const struct program_step *ps = &source->program->steps[step];
    const struct run_step *s = &source->steps[step];
    bool skipped = s->state == NODE_SKIPPED && !s->by_hand;
    if (!skipped && (s->state != NODE_SUCCESS || ps->always_run)) return false;
    for (uint32_t i = 0; i < ps->dep_count; i++)
        if (!reused[ps->deps[i]]) return false;
    return true;
}

enum code kernel_reusable(const struct run *source, struct arena *arena, struct reuse **out, uint32_t *count)
{
    const struct program *program = source->program;
    bool *reused = ARENA_ARRAY(arena, program->step_count, bool);
    *out = ARENA_ARRAY(arena, program->top_count, struct reuse);
    *count = 0;
    if (!reused || !*out) return E_NOMEM;
    for (uint32_t i = 0; i < program->top_count; i++) {
        uint32_t step = program->order[i];
        if (!may_reuse(source, step, reused)) continue;
        reused[step] = true;
        struct reuse *reuse = &(*out)[(*count)++];
        *reuse = (struct reuse){.step = step, .from_run = source->ids.run};
        reuse->skipped = source->steps[step].state == NODE_SKIPPED;
        if (source->steps[step].value) reuse->value = *source->steps[step].value;
        reuse->has_blob = source->steps[step].blob != NULL;
        if (!reuse->has_blob) continue;
        reuse->blob = source->steps[step].blob->sha256;
        reuse->blob_size = source->steps[step].blob->size;
    }
    return OK;
}
