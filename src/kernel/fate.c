// What becomes of each step of a run in a new run that takes over from it: another document, other inputs or other outputs
// make some results stale, and with them everything that was decided or computed from them.
#include "kernel/route.h"

struct fates {
    const struct revision *revision;
    struct step_fate *items; // by step of the top scope
    uint32_t top;            // the step in question
    uint32_t at;             // itself or, for a loop, a step inside it: whose texts are being read
    struct str input;        // found: an input that differs
    uint32_t cause;          // found: a step whose result will be another one; PROGRAM_TOP = none
};

static bool input_differs(const struct revision *revision, struct str name)
{
    const struct json *before = json_get(&revision->source->start.inputs, name);
    const struct json *after = json_get(revision->inputs, name);
    // Changed while the source ran: which step saw which of its values is not recorded. A past is taken over with the change in
    // it, unless the new run was given another value.
    const struct json *params = &revision->source->params;
    if (params->type != 0 && json_get(params, name) && (revision->results_only || json_get(revision->set, name)))
        return true;
    return before && after ? !json_equal(before, after) : before != after;
}

// Also of one that had not begun, but hangs on such a one: a person may have skipped what hangs on it.
static bool result_differs(const struct step_fate *fate)
{
    return fate->fate == FORK_AGAIN || fate->fate == FORK_NEW || fate->fate == FORK_GIVEN || fate->why != AGAIN_NOTHING;
}

// ---- what a step refers to
static uint32_t find_visible(const struct fates *f, struct str name)
{
    const struct program *program = f->revision->program;
    uint32_t scope = program->steps[f->at].scope;
    for (;;) {
        uint32_t found = program_find(program, scope, name);
        if (found != PROGRAM_TOP || scope == PROGRAM_TOP) return found;
        scope = program->steps[scope].scope;
    }
}

static bool is_known(void *context, struct str name)
{
    return find_visible(context, name) != PROGRAM_TOP;
}

static void look_at_ref(void *context, const struct ref *ref, size_t offset, bool known)
{
    struct fates *f = context;
    (void)offset;
    if (ref->kind == REF_INPUT) {
        struct str rest;
        struct str name = str_cut(ref->path, '.', &rest);
        if (f->input.len == 0 && input_differs(f->revision, name)) f->input = name;
    }
    if (ref->kind != REF_OUTPUT || !known) return;
    const struct program *program = f->revision->program;
    uint32_t step = find_visible(f, ref->node);
    while (step != PROGRAM_TOP && program->steps[step].scope != PROGRAM_TOP) step = program->steps[step].scope;
    if (step == PROGRAM_TOP || step == f->top || f->cause != PROGRAM_TOP) return;
    if (result_differs(&f->items[step])) f->cause = step;
}

// Depth is bounded by the reader of the document.
static void look_at_texts(struct fates *f, const struct scope *scope, const struct json *value)
{
    if (value->type == JSON_STRING) expr_refs(value->text, scope, look_at_ref, f);
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->count; i++) look_at_texts(f, scope, &value->items[i]);
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->count; i++)
        look_at_texts(f, scope, &value->members[i].value);
}

static void look_at_step(struct fates *f, uint32_t step)
{
    const struct program_step *ps = &f->revision->program->steps[step];
    struct scope scope = {.context = f, .known = is_known};
    f->at = step;
    look_at_texts(f, &scope, &ps->with);
    const struct run *source = f->revision->source;
    uint32_t before = ps->scope == PROGRAM_TOP ? program_find(source->program, PROGRAM_TOP, ps->id) : PROGRAM_TOP;
    for (const struct run_change *c = source->changes; before != PROGRAM_TOP && c; c = c->next)
        if (c->step == before && c->override) look_at_texts(f, &scope, c->override);
    size_t count = 0;
    const struct when_atom *atoms = ps->when ? when_atoms(ps->when, &count) : NULL;
    for (size_t i = 0; i < count; i++)
        look_at_ref(f, &atoms[i].left, 0, atoms[i].left.kind == REF_OUTPUT && is_known(f, atoms[i].left.node));
    for (uint32_t i = 0; i < ps->child_count; i++) look_at_step(f, ps->first_child + i);
}

// ---- fates
// By what is known of the step alone.
static struct step_fate own_fate(const struct revision *revision, uint32_t step)
{
    const struct run *source = revision->source;
    const struct program_step *ps = &revision->program->steps[step];
    if (revision->given && revision->given[step]) return (struct step_fate){.fate = FORK_GIVEN};
    uint32_t before = program_find(source->program, PROGRAM_TOP, ps->id);
    if (before == PROGRAM_TOP) return (struct step_fate){.fate = FORK_NEW};
    if (!source->route->by_hand) return (struct step_fate){.fate = FORK_TO_COME}; // a playbook begins anew
    if (ps->undo) return (struct step_fate){.fate = FORK_TO_COME};
    const struct run_lane *s = &source->lanes[before];
    const struct run_node *node = &source->nodes[before];
    bool asked = revision->asked && revision->asked[step];
    if (s->state == NODE_WAITING)
        return (struct step_fate){.fate = FORK_TO_COME, .why = asked ? AGAIN_ASKED : AGAIN_NOTHING};
    struct step_fate again = {.fate = FORK_AGAIN};
    bool good = s->state == NODE_SUCCESS || s->state == NODE_SKIPPED;
    if (asked)
        again.why = AGAIN_ASKED;
    else if (source->program != revision->program &&
             !program_same_step(source->program, before, revision->program, step, !good))
        again.why = AGAIN_BODY;
    else if (revision->results_only && (!good || node->by_hand))
        again.why = AGAIN_NO_RESULT;
    else if (revision->results_only && s->state == NODE_SUCCESS && ps->always_run)
        again.why = AGAIN_ALWAYS_RUN;
    if (!again.why && kernel_undone(source, before)) again.why = AGAIN_UNDONE;
    if (again.why) return again;
    return (struct step_fate){.fate = good || s->state == NODE_FAILED ? FORK_KEPT : FORK_GOES_ON};
}

// By what it hangs on. True: it changed.
static bool spread(struct fates *f, uint32_t step)
{
    struct step_fate *fate = &f->items[step];
    const struct program_step *ps = &f->revision->program->steps[step];
    bool waits = fate->fate == FORK_TO_COME && fate->why == AGAIN_NOTHING;
    if (!waits && fate->fate != FORK_KEPT && fate->fate != FORK_GOES_ON) return false;
    f->top = step;
    f->input = (struct str){0};
    f->cause = PROGRAM_TOP;
    look_at_step(f, step);
    for (uint32_t i = 0; i < ps->dep_count; i++) {
        const struct step_fate *dep = &f->items[ps->deps[i]];
        bool stale = f->revision->results_only && !waits ? dep->fate != FORK_KEPT : result_differs(dep);
        if (stale && f->cause == PROGRAM_TOP) f->cause = ps->deps[i];
    }
    if (f->input.len == 0 && f->cause == PROGRAM_TOP) return false;
    if (!waits) fate->fate = FORK_AGAIN;
    fate->why = f->input.len > 0 ? AGAIN_INPUT : AGAIN_DEPENDENCY;
    fate->input = f->input;
    fate->cause = f->cause;
    return true;
}

enum code kernel_fates(const struct revision *revision, struct arena *arena, struct step_fate **out)
{
    const struct program *program = revision->program;
    struct fates f = {.revision = revision, .items = ARENA_ARRAY(arena, program->top_count, struct step_fate)};
    if (!f.items) return E_NOMEM;
    for (uint32_t i = 0; i < program->top_count; i++) f.items[i] = own_fate(revision, i);
    // One pass suffices unless a step refers to another that it does not depend on.
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < program->top_count; i++) changed = spread(&f, program->order[i]) || changed;
    }
    *out = f.items;
    return OK;
}

enum code kernel_results(const struct revision *revision, const struct step_fate *fates, struct arena *arena,
                         struct reuse **out, uint32_t *count)
{
    const struct program *program = revision->program;
    const struct run *source = revision->source;
    *out = ARENA_ARRAY(arena, program->top_count, struct reuse);
    *count = 0;
    if (!*out) return E_NOMEM;
    for (uint32_t i = 0; i < program->top_count; i++) {
        uint32_t step = program->order[i];
        if (fates[step].fate != FORK_KEPT) continue;
        const struct run_lane *s = &source->lanes[program_find(source->program, PROGRAM_TOP, program->steps[step].id)];
        const struct run_node *node = &source->nodes[program_find(source->program, PROGRAM_TOP, program->steps[step].id)];
        struct reuse *reuse = &(*out)[(*count)++];
        *reuse = (struct reuse){.step = step, .from_run = source->ids.run};
        reuse->skipped = s->state == NODE_SKIPPED;
        if (node->value) reuse->value = *node->value;
        reuse->has_blob = node->blob != NULL;
        if (!reuse->has_blob) continue;
        reuse->blob = node->blob->sha256;
        reuse->blob_size = node->blob->size;
    }
    return OK;
}

enum code kernel_reusable(const struct run *source, struct arena *arena, struct reuse **out, uint32_t *count)
{
    *count = 0;
    *out = NULL;
    if (!source->route->by_hand) return OK; // a playbook begins anew
    struct revision same = {
        .source = source, .program = source->program, .inputs = &source->start.inputs, .results_only = true};
    struct step_fate *fates;
    enum code rc = kernel_fates(&same, arena, &fates);
    return rc ? rc : kernel_results(&same, fates, arena, out, count);
}

const char *fate_name(enum fate_kind fate)
{
    static const char *const names[] = {[FORK_KEPT] = "kept",   [FORK_GOES_ON] = "goes_on", [FORK_GIVEN] = "given",
                                        [FORK_AGAIN] = "again", [FORK_TO_COME] = "to_come", [FORK_NEW] = "new"};
    return names[fate];
}

const char *fate_why_name(enum fate_why why)
{
    static const char *const names[] = {[AGAIN_NOTHING] = "",
                                        [AGAIN_ASKED] = "asked",
                                        [AGAIN_BODY] = "definition",
                                        [AGAIN_INPUT] = "input",
                                        [AGAIN_DEPENDENCY] = "dependency",
                                        [AGAIN_NO_RESULT] = "no_result",
                                        [AGAIN_ALWAYS_RUN] = "always_run",
                                        [AGAIN_UNDONE] = "undone"};
    return names[why];
}
