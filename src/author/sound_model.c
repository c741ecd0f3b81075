// Samples of values, conditions as sets of samples, and what each step can do by itself.
#include "author/sound.h"

#include <string.h>

static bool add_value(struct sound_scope *s, struct sound_var *var, struct str text)
{
    for (uint32_t i = 0; i < var->value_count; i++)
        if (str_eq(var->values[i], text)) return true;
    if (var->value_count == VALUES_MAX) return false;
    struct str copy = arena_copy(s->arena, text);
    if (!copy.ptr) return false;
    var->values[var->value_count++] = copy;
    return true;
}

static bool number_of(struct sound_scope *s, struct str text, double *out)
{
    struct json value;
    return json_parse(text, NULL, s->arena, &value, NULL) == OK && json_double(&value, out);
}

static bool add_number(struct sound_scope *s, struct sound_var *var, double value)
{
    char text[32];
    size_t len = json_double_format(value, text);
    return add_value(s, var, (struct str){text, len});
}

// The same number in other letters: equal to the numeric operators, different to == and !=.
static bool add_spelling(struct sound_scope *s, struct sound_var *var, struct str text)
{
    struct buf other SCOPED(buf_release) = buf_of(256);
    buf_add(&other, text);
    bool plain = !memchr(text.ptr, 'e', text.len) && !memchr(text.ptr, 'E', text.len);
    buf_text(&other, !plain ? "" : memchr(text.ptr, '.', text.len) ? "00" : ".000");
    return buf_ok(&other) && add_value(s, var, buf_str(&other));
}

// Every constant the reference is compared with, the numbers between and around them, and a text that is none of them.
static bool sample(struct sound_scope *s, struct sound_var *var, const struct str *constants, uint32_t count)
{
    double *numbers = ARENA_ARRAY(s->arena, count + 1, double);
    uint32_t number_count = 0;
    if (!numbers || !add_value(s, var, STR("(other)")) || !add_value(s, var, STR(""))) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!add_value(s, var, constants[i])) return false;
        double value;
        if (!number_of(s, constants[i], &value)) continue;
        uint32_t at = number_count++;
        for (; at > 0 && numbers[at - 1] > value; at--) numbers[at] = numbers[at - 1];
        numbers[at] = value;
    }
    for (uint32_t i = 0; i + 1 < number_count; i++)
        if (!add_number(s, var, numbers[i] / 2 + numbers[i + 1] / 2)) return false;
    if (number_count > 0 && (!add_number(s, var, numbers[0] - 1) || !add_number(s, var, numbers[number_count - 1] + 1)))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        double value;
        if (number_of(s, constants[i], &value) && !add_spelling(s, var, constants[i])) return false;
    }
    return true;
}

static bool has_reference(const struct json *value)
{
    if (value->type == JSON_STRING) return memchr(value->text.ptr, '$', value->text.len) != NULL;
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->count; i++)
        if (has_reference(&value->items[i])) return true;
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->count; i++)
        if (has_reference(&value->members[i].value)) return true;
    return false;
}

// Outputs that are known beforehand: of echo without references, noop and wait.
static bool known_output(const struct program_step *ps, struct json *out)
{
    const struct json *message = json_key(&ps->with, "message");
    *out = json_null();
    if (ps->kind == STEP_NOOP || ps->kind == STEP_WAIT) return true;
    if (ps->kind != STEP_ECHO || !message || has_reference(message)) return false;
    *out = *message;
    return true;
}

static bool fix_value(struct sound_scope *s, struct sound_var *var, const struct ref *ref, const struct json *output)
{
    struct json field = *output;
    struct str text;
    if (ref->path.len > 0 && expr_field(output, ref->path, s->arena, &field, NULL)) {
        var->mask = VALUE_MISSING;
        return true;
    }
    if (expr_text(&field, s->arena, &text)) return false;
    if (!add_value(s, var, text)) return true; // too many: any of them
    for (uint32_t i = 0; i < var->value_count; i++)
        if (str_eq(var->values[i], text)) var->mask = UINT64_C(1) << i;
    return true;
}

static uint32_t producer_of(const struct sound_scope *s, const struct ref *ref)
{
    if (ref->kind != REF_OUTPUT) return PROGRAM_TOP;
    uint32_t scope = s->program->steps[s->first].scope;
    return program_find(s->program, scope, ref->node);
}

static bool same_ref(const struct ref *a, const struct ref *b)
{
    return a->kind == b->kind && str_eq(a->node, b->node) && str_eq(a->path, b->path);
}

// All constants that any condition of the scope compares the reference with.
static uint32_t constants_of(const struct sound_scope *s, const struct ref *ref, struct str *out, uint32_t max)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct program_step *ps = &s->program->steps[s->first + i];
        size_t count = 0;
        const struct when_atom *atoms = ps->when ? when_atoms(ps->when, &count) : NULL;
        for (size_t k = 0; k < count; k++)
            if (same_ref(&atoms[k].left, ref) && found < max) out[found++] = atoms[k].right;
    }
    return found;
}

static uint32_t var_new(struct sound_scope *s, const struct ref *ref)
{
    if (!ARENA_ROOM(s->arena, s->vars, s->var_count, &s->var_capacity)) return UINT32_MAX;
    struct sound_var *var = &s->vars[s->var_count];
    *var = (struct sound_var){.text = ref->text, .producer = producer_of(s, ref)};
    var->values = ARENA_ARRAY(s->arena, VALUES_MAX + 1, struct str);
    struct str constants[VALUES_MAX];
    uint32_t count = constants_of(s, ref, constants, VALUES_MAX);
    struct json output;
    if (!var->values) return UINT32_MAX;
    bool all = count < VALUES_MAX && sample(s, var, constants, count);
    var->mask = (UINT64_C(1) << var->value_count) - 1;
    bool declared =
        ref->kind == REF_INPUT && json_get(&s->program->inputs, ref->path); // has a default or must be given
    if ((ref->kind == REF_INPUT && !declared) || ref->kind == REF_OUTPUT) var->mask |= VALUE_MISSING;
    if (ref->kind == REF_OUTPUT && ref->path.len == 0 && var->producer != PROGRAM_TOP) var->mask &= ~VALUE_MISSING;
    if (all && var->producer != PROGRAM_TOP && known_output(&s->program->steps[var->producer], &output) &&
        !fix_value(s, var, ref, &output))
        return UINT32_MAX;
    var->alone = !all; // too many to tell apart
    return s->var_count++;
}

static bool is_ancestor(struct sound_scope *s, uint32_t step, uint32_t of)
{
    memset(s->in_cone, 0, s->count * sizeof(*s->in_cone));
    s->in_cone[of - s->first] = true;
    for (uint32_t r = s->rank[of - s->first] + 1; r > 0; r--) {
        const struct program_step *ps = &s->program->steps[s->order[r - 1]];
        if (!s->in_cone[s->order[r - 1] - s->first]) continue;
        for (uint32_t k = 0; k < ps->dep_count; k++) s->in_cone[ps->deps[k] - s->first] = true;
    }
    return step != of && s->in_cone[step - s->first];
}

struct given {
    struct str value;
};

static enum code give(void *context, const struct ref *ref, struct arena *arena, struct json *out, struct error *err)
{
    const struct given *given = context;
    (void)ref, (void)arena, (void)err;
    *out = json_string(given->value);
    return OK;
}

static bool knows(void *context, struct str name)
{
    (void)context, (void)name;
    return true;
}

// The engine's own evaluation, with one value for every reference: what the atom says to it.
static bool atom_holds(struct sound_scope *s, const struct when *when, size_t index, struct str value, bool *holds)
{
    struct given given = {value};
    struct scope scope = {.context = &given, .known = knows, .lookup = give};
    const struct when_step *trace = NULL;
    bool result;
    if (when_eval(when, &scope, s->arena, &result, &trace, NULL)) return false;
    *holds = trace[index].result;
    return true;
}

static bool atom_make(struct sound_scope *s, uint32_t step, size_t index, const struct when_atom *atom,
                      struct sound_atom *out)
{
    const struct when *when = s->program->steps[step].when;
    *out = (struct sound_atom){.atom = atom, .var = UINT32_MAX};
    for (uint32_t i = 0; i < s->var_count; i++)
        if (str_eq(s->vars[i].text, atom->left.text) && !s->vars[i].alone) out->var = i;
    uint32_t producer = producer_of(s, &atom->left);
    // A step that may still be running when it is asked: anything can come out.
    bool loose = producer != PROGRAM_TOP && !is_ancestor(s, producer, step);
    if (out->var == UINT32_MAX || loose) out->var = var_new(s, &atom->left);
    if (out->var == UINT32_MAX) return false;
    struct sound_var *var = &s->vars[out->var];
    if (!atom_holds(s, when, index, STR(""), &out->holds_empty)) return false;
    if (var->alone || loose) {
        *var = (struct sound_var){.text = var->text,
                                  .producer = loose ? PROGRAM_TOP : var->producer,
                                  .values = var->values,
                                  .value_count = 2,
                                  .mask = 3 | VALUE_MISSING,
                                  .alone = true};
        var->values[0] = STR("(some value)");
        var->values[1] = STR("(another value)");
        out->holds = 1;
        return true;
    }
    for (uint32_t i = 0; i < var->value_count; i++) {
        bool holds;
        if (!atom_holds(s, when, index, var->values[i], &holds)) return false;
        if (holds) out->holds |= UINT64_C(1) << i;
    }
    return true;
}

// ---- what a body can come to

static bool renders_safely(const struct program_step *ps)
{
    return !has_reference(&ps->with);
}

uint8_t sound_outcomes(const struct program_step *ps)
{
    const struct json *duration = json_key(&ps->with, "durationMs");
    switch (ps->kind) {
    case STEP_NOOP:
        return json_key(&ps->with, "simulateError") ? OUT_FAILED : OUT_SUCCESS;
    case STEP_ECHO:
    case STEP_MERGE:
        return renders_safely(ps) ? OUT_SUCCESS : OUT_SUCCESS | OUT_FAILED;
    case STEP_WAIT:
        if (duration && ps->timeout_ms > 0 && json_integer(duration, 0) > ps->timeout_ms) return OUT_FAILED;
        return duration && renders_safely(ps) ? OUT_SUCCESS : OUT_SUCCESS | OUT_FAILED;
    case STEP_CANCEL:
        return 0;
    case STEP_EXEC:
    case STEP_SHELL:
    case STEP_SCRIPT:
    case STEP_APPROVAL:
    case STEP_EVENT:
    case STEP_SUBRUN:
    case STEP_LOOP:
    case STEP_HOST:
    case STEP_TASKS:
    case STEP_KIND_FIRST_UNUSED:
        return OUT_SUCCESS | OUT_FAILED;
    }
    return OUT_SUCCESS | OUT_FAILED;
}

static bool is_error_possible(const struct sound_scope *s, const struct sound_step *step)
{
    for (uint32_t i = 0; i < step->atom_count; i++) {
        const struct sound_var *var = &s->vars[step->atoms[i].var];
        if (var->mask & VALUE_MISSING) return true;
        if (var->producer != PROGRAM_TOP && s->steps[var->producer - s->first].possible & OUT_FAILED) return true;
    }
    return false;
}

// Can one group of atoms hold, looked at alone?
static bool group_possible(const struct sound_scope *s, const struct sound_step *step, uint32_t from, uint32_t end)
{
    for (uint32_t i = from; i < end; i++) {
        const struct sound_atom *atom = &step->atoms[i];
        const struct sound_var *var = &s->vars[atom->var];
        uint64_t left = var->mask & ~VALUE_MISSING;
        bool empty =
            var->producer != PROGRAM_TOP && s->steps[var->producer - s->first].possible & (OUT_SKIPPED | OUT_TAINTED);
        for (uint32_t k = from; k < end; k++)
            if (step->atoms[k].var == atom->var) {
                left &= step->atoms[k].holds;
                empty &= step->atoms[k].holds_empty;
            }
        if (left == 0 && !empty) return false;
    }
    return true;
}

static bool when_is_possible(const struct sound_scope *s, const struct program_step *ps, const struct sound_step *step)
{
    if (ps->when_broken) return false;
    if (step->atom_count == 0) return true;
    for (uint32_t from = 0, i = 1; i <= step->atom_count; i++) {
        if (i < step->atom_count && !step->atoms[i].atom->or_before) continue;
        if (group_possible(s, step, from, i)) return true;
        from = i;
    }
    return false;
}

// Which combinations of (some succeeded, some failed, some were skipped) the parents can come to: a set of 8 bits.
static unsigned combinations(const struct sound_scope *s, const struct program_step *ps)
{
    unsigned sets = 1;
    for (uint32_t i = 0; i < ps->dep_count; i++) {
        uint8_t possible = s->steps[ps->deps[i] - s->first].possible;
        unsigned next = 0;
        for (unsigned c = 0; c < 8; c++) {
            if (!(sets & 1u << c)) continue;
            if (possible & OUT_SUCCESS) next |= 1u << (c | 1);
            if (possible & OUT_FAILED) next |= 1u << (c | 2);
            if (possible & (OUT_SKIPPED | OUT_TAINTED)) next |= 1u << (c | 4);
        }
        sets = next;
    }
    return sets;
}

void sound_estimate(struct sound_scope *s, uint32_t index)
{
    const struct program_step *ps = &s->program->steps[index];
    struct sound_step *step = &s->steps[index - s->first];
    unsigned sets = combinations(s, ps);
    bool fails = false;
    step->possible = 0;
    step->rule_possible = false;
    for (unsigned c = 0; c < 8; c++) {
        if (!(sets & 1u << c)) continue;
        bool passes = rule_passes(ps->rule, c & 1, c >> 1 & 1, c >> 2 & 1);
        step->rule_possible |= passes;
        fails |= !passes;
    }
    bool tainted = false;
    for (uint32_t i = 0; i < ps->dep_count; i++)
        tainted |= (s->steps[ps->deps[i] - s->first].possible & (OUT_FAILED | OUT_TAINTED)) != 0;
    step->when_possible = when_is_possible(s, ps, step);
    if (fails) step->possible |= OUT_SKIPPED;
    if (fails && tainted && s->plan) step->possible |= OUT_TAINTED;
    if (!step->rule_possible) return;
    if (step->atom_count > 0 || ps->when_broken) step->possible |= OUT_SKIPPED;
    bool hold = ps->on_failure == ON_FAILURE_HOLD;
    uint8_t body = step->when_possible ? step->can : 0;
    if (is_error_possible(s, step)) body |= OUT_FAILED;
    if (hold && body & OUT_FAILED) body = (uint8_t)((body & ~OUT_FAILED) | OUT_SKIPPED | OUT_SUCCESS);
    step->possible |= body;
}

static bool sort_scope(struct sound_scope *s)
{
    uint32_t *left = ARENA_ARRAY(s->arena, s->count + 1, uint32_t);
    uint32_t head = 0, tail = 0;
    if (!left) return false;
    for (uint32_t i = 0; i < s->count; i++) {
        left[i] = s->program->steps[s->first + i].dep_count;
        if (left[i] == 0) s->order[tail++] = s->first + i;
    }
    while (head < tail) {
        const struct program_step *ps = &s->program->steps[s->order[head]];
        s->rank[s->order[head] - s->first] = head;
        head++;
        for (uint32_t k = 0; k < ps->dependent_count; k++)
            if (--left[ps->dependents[k] - s->first] == 0) s->order[tail++] = ps->dependents[k];
    }
    return tail == s->count;
}

enum code sound_open(struct sound_scope *s, const struct program *program, uint32_t scope, struct arena *arena,
                     struct error *err)
{
    uint32_t first;
    uint32_t count = program_scope(program, scope, &first);
    *s = (struct sound_scope){.program = program, .arena = arena, .first = first, .count = count, .goal = PROGRAM_TOP};
    s->plan = program->kind == DOCUMENT_PLAN;
    s->order = ARENA_ARRAY(arena, count + 1, uint32_t);
    s->rank = ARENA_ARRAY(arena, count + 1, uint32_t);
    s->steps = ARENA_ARRAY(arena, count + 1, struct sound_step);
    s->outcome = ARENA_ARRAY(arena, count + 1, uint8_t);
    s->in_cone = ARENA_ARRAY(arena, count + 1, bool);
    s->cone = ARENA_ARRAY(arena, count + 1, uint32_t);
    s->below = ARENA_ARRAY(arena, count + 1, bool);
    bool ok = s->below && s->order && s->rank && s->steps && s->outcome && s->in_cone && s->cone && sort_scope(s);
    for (uint32_t i = 0; ok && i < count; i++) {
        const struct program_step *ps = &program->steps[first + i];
        struct sound_step *step = &s->steps[i];
        size_t atom_count = 0;
        const struct when_atom *atoms = ps->when ? when_atoms(ps->when, &atom_count) : NULL;
        step->can = sound_outcomes(ps);
        step->atoms = ARENA_ARRAY(arena, atom_count + 1, struct sound_atom);
        ok = step->atoms != NULL;
        for (size_t k = 0; ok && k < atom_count; k++)
            ok = atom_make(s, first + i, k, &atoms[k], &step->atoms[step->atom_count++]);
    }
    s->masks = ARENA_ARRAY(arena, s->var_count + 1, uint64_t);
    if (!ok || !s->masks) return error_nomem(err);
    for (uint32_t i = 0; i < count; i++) sound_estimate(s, s->order[i]);
    return OK;
}
