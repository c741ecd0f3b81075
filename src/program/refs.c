// Conditions and references: do they name something, and will it be there in time?
#include "program/internal.h"

#include <string.h>

struct ref_context {
    struct compiler *c;
    uint32_t step;
    const struct json *value; // the text that holds the reference
    size_t from;              // where to look for the next one in the source
};

// ---- names

// The step that `name` means for a step in `scope`: of the same scope, else of the ones around it.
static uint32_t find_visible(const struct program *program, uint32_t scope, struct str name)
{
    for (;;) {
        uint32_t found = program_find(program, scope, name);
        if (found != PROGRAM_TOP && !program->steps[found].condition) return found;
        if (scope == PROGRAM_TOP) return PROGRAM_TOP;
        scope = program->steps[scope].scope;
    }
}

static bool is_known(void *context, struct str name)
{
    const struct ref_context *at = context;
    const struct program *program = at->c->program;
    return find_visible(program, program->steps[at->step].scope, name) != PROGRAM_TOP;
}

static void hint_step(struct ref_context *at, struct diagnostic *d, struct str name)
{
    const struct program *program = at->c->program;
    struct nearest nearest = nearest_to(name);
    for (uint32_t i = 0; d && i < program->step_count; i++) {
        const struct program_step *step = &program->steps[i];
        if (!step->condition && is_known(at, step->id)) nearest_try(&nearest, step->id);
    }
    hint_nearest(at->c->r, d, &nearest);
}

// ---- ancestors

// Does `step` wait for `other`, directly or not? Both are in one scope. Levels cut the walk short, and the whole document
// has one budget for walking: the answer only decides about a warning, so an exhausted budget says yes.
static bool waits_for(struct compiler *c, uint32_t step, uint32_t other)
{
    const struct program_step *steps = c->program->steps;
    for (uint32_t k = 0; k < steps[step].dep_count; k++)
        if (steps[step].deps[k] == other) return true;
    if (c->walk_budget == 0) return true;
    c->stamp++;
    uint32_t head = 0;
    uint32_t tail = 0;
    c->queue[tail++] = step;
    while (head < tail) {
        uint32_t at = c->queue[head++];
        for (uint32_t k = 0; k < steps[at].dep_count; k++) {
            uint32_t dep = steps[at].deps[k];
            if (dep == other || c->walk_budget == 0) return true;
            c->walk_budget--;
            if (c->level[dep] > c->level[other] && c->mark[dep] != c->stamp) {
                c->mark[dep] = c->stamp;
                c->queue[tail++] = dep;
            }
        }
    }
    return false;
}

// A step inside a loop may use what its loop waits for.
static bool is_there_in_time(struct compiler *c, uint32_t step, uint32_t other)
{
    const struct program_step *steps = c->program->steps;
    while (steps[step].scope != steps[other].scope) step = steps[step].scope;
    return step != other && waits_for(c, step, other);
}

static struct span ref_place(struct ref_context *at, const struct ref *ref)
{
    return place_inside(at->c->r, at->value, ref->text, &at->from);
}

static void check_output(struct ref_context *at, const struct ref *ref, uint32_t producer)
{
    struct compiler *c = at->c;
    if (is_there_in_time(c, at->step, producer)) return;
    struct span place = ref_place(at, ref);
    struct diagnostic *d = WARNING(c->r, "E0403", place,
                                   "\"%.*s\" is not a dependency of \"%.*s\", so it may not "
                                   "have run when %.*s is needed",
                                   SHOW(ref->node), SHOW(c->program->steps[at->step].id), SHOW(ref->text));
    if (c->program->steps[at->step].scope == c->program->steps[producer].scope && producer != at->step)
        HINT(c->r, d, "add \"%.*s\" to its dependencies", SHOW(ref->node));
}

static void check_input(struct ref_context *at, const struct ref *ref)
{
    struct reader *r = at->c->r;
    const struct json *inputs = &r->program->inputs;
    struct str rest;
    struct str name = str_cut(ref->path, '.', &rest);
    if (json_get(inputs, name)) return;
    struct span place = ref_place(at, ref);
    struct diagnostic *d = WARNING(r, "E0405", place, "the input \"%.*s\" is not declared", SHOW(name));
    struct nearest nearest = nearest_to(name);
    for (uint32_t i = 0; d && i < inputs->count; i++) nearest_try(&nearest, inputs->members[i].key);
    if (nearest.best.len)
        hint_nearest(r, d, &nearest);
    else
        HINT(r, d, "declare it: inputs: {%.*s: DEFAULT}", SHOW(name));
}

// ---- conditions

static const char *step_word(const struct compiler *c)
{
    return c->program->kind == DOCUMENT_NODES ? "node" : "step";
}

// What people expect of other languages, by what stands where the condition could not be read.
static const char *when_advice(struct str text, size_t offset)
{
    struct str rest = str_slice(text, offset, text.len), before = str_trim(str_slice(text, 0, offset));
    bool right = before.len > 0 && strchr("=<>", before.ptr[before.len - 1]); // of an operator
    static const struct {
        const char *start, *advice;
    } known[] = {
        {"(", "there are no parentheses: && binds tighter than ||"},
        {")", "there are no parentheses: && binds tighter than ||"},
        {"=", "write =="},
        {"\"", "texts stand in 'single quotes'"},
        {"$", "the right side is a 'text', a number, true or false, not a reference"},
        {"and ", "write &&"},
        {"or ", "write ||"},
        {"AND ", "write &&"},
        {"OR ", "write ||"},
        {"{{", "write references without braces: $node.output"},
        {"!", "there is no negation: compare with !="},
        {"not ", "there is no negation: compare with !="},
    };
    if (str_ends(before, STR("!=")) && str_starts(rest, STR("="))) return "write !=";
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (str_starts(rest, str_from(known[i].start)) && (right || known[i].start[0] != '$')) return known[i].advice;
    return "for example: $build.output.status == 'ok' && $INPUTS.count > 3";
}

static void broken_when(struct ref_context *at, const struct error *err)
{
    struct reader *r = at->c->r;
    struct program_step *step = &at->c->program->steps[at->step];
    struct str text = step->when_text;
    size_t offset = err->column ? err->column - 1 : 0;
    struct span place = place_inside(r, at->value, str_slice(text, offset, text.len), NULL);
    bool plan = at->c->program->kind == DOCUMENT_PLAN;
    struct diagnostic *d = diagnose(r->diagnostics, plan ? SEVERITY_ERROR : SEVERITY_WARNING, "E0401", r->code,
                                    PLACE_ARG(r, place), "%s%s", err->message, plan ? "" : " (it counts as false)");
    HINT(r, d, "%s", when_advice(text, offset));
    step->when_broken = !plan;
}

static void check_when(struct ref_context *at, const struct scope *scope)
{
    struct compiler *c = at->c;
    struct program_step *step = &c->program->steps[at->step];
    struct error err = {0};
    at->value = c->drafts[at->step]->when;
    at->from = 0;
    enum code rc = when_parse(step->when_text, scope, c->r->arena, &step->when, &err);
    if (rc == E_NOMEM) {
        c->r->failed = true;
        return;
    }
    if (rc) {
        step->when = NULL;
        broken_when(at, &err);
        return;
    }
    size_t count;
    const struct when_atom *atoms = when_atoms(step->when, &count);
    for (size_t i = 0; i < count; i++) {
        const struct ref *ref = &atoms[i].left;
        if (ref->kind == REF_INPUT) check_input(at, ref);
        if (ref->kind != REF_OUTPUT) continue;
        uint32_t producer = find_visible(c->program, step->scope, ref->node);
        if (producer != PROGRAM_TOP) {
            check_output(at, ref, producer);
            continue;
        }
        struct span place = ref_place(at, ref);
        struct diagnostic *d = ERROR(c->r, "E0402", place, "there is no %s \"%.*s\"", step_word(c), SHOW(ref->node));
        hint_step(at, d, ref->node);
    }
}

// ---- texts

static void check_ref(void *context, const struct ref *ref, size_t offset, bool known)
{
    (void)offset;
    struct ref_context *at = context;
    struct compiler *c = at->c;
    if (ref->kind == REF_INPUT) check_input(at, ref);
    if (ref->kind != REF_OUTPUT) return;
    if (known) {
        uint32_t scope = c->program->steps[at->step].scope;
        check_output(at, ref, find_visible(c->program, scope, ref->node));
        return;
    }
    struct span place = ref_place(at, ref);
    struct diagnostic *d = WARNING(c->r, "E0404", place, "%.*s looks like a reference, but there is no %s \"%.*s\"",
                                   SHOW(ref->text), step_word(c), SHOW(ref->node));
    hint_step(at, d, ref->node);
}

// Depth is bounded by the reader of the document.
static void check_texts(struct ref_context *at, const struct scope *scope, const struct json *value)
{
    if (value->type == JSON_STRING) {
        at->value = value;
        at->from = 0;
        expr_refs(value->text, scope, check_ref, at);
    }
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->count; i++) check_texts(at, scope, &value->items[i]);
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->count; i++)
        check_texts(at, scope, &value->members[i].value);
}

void refs_check(struct compiler *c, uint32_t index)
{
    struct program_step *step = &c->program->steps[index];
    struct ref_context at = {.c = c, .step = index};
    struct scope scope = {.context = &at, .known = is_known};
    if (c->drafts[index]->when) check_when(&at, &scope);
    for (uint32_t i = 0; i < step->with.count; i++) {
        const struct json_member *member = &step->with.members[i];
        bool ours = step->kind == STEP_HOST || (!str_is(member->key, "document") && !str_is(member->key, "file") &&
                                                !(c->drafts[index]->outside && str_is(member->key, "code")));
        if (ours) check_texts(&at, &scope, &member->value);
    }
}
