// Is there a world with these outcomes? Backward: the last step of the cone first, each step choosing outcomes for its
// parents and values for its condition that explain its own outcome.
#include "author/sound.h"

#include <string.h>

enum { CONE_MAX = 400, BUDGET = 60000 };

// How a step came to its outcome.
enum way { WAY_RUN = 1, WAY_FALSE, WAY_ERROR, WAY_RULE, WAY_BROKEN };

struct choice {
    struct sound_scope *s;
    uint32_t position; // in the cone
    uint32_t step;
    enum way way;
};

static bool solve(struct sound_scope *s, uint32_t position);

static const struct program_step *program_step(const struct choice *c)
{
    return &c->s->program->steps[c->step];
}

static uint8_t *outcome_of(struct sound_scope *s, uint32_t step)
{
    return &s->outcome[step - s->first];
}

static bool is_failure(uint8_t outcome)
{
    return outcome == OUT_FAILED || outcome == OUT_TAINTED;
}

// ---- the condition

// Value of an atom's reference: OUT_SUCCESS from the producer's output, OUT_SKIPPED empty, OUT_FAILED none.
static uint8_t source_of(struct sound_scope *s, const struct sound_atom *atom)
{
    uint32_t producer = s->vars[atom->var].producer;
    if (producer == PROGRAM_TOP || !s->in_cone[producer - s->first]) return OUT_SUCCESS;
    uint8_t outcome = *outcome_of(s, producer);
    return outcome == OUT_TAINTED ? OUT_SKIPPED : outcome;
}

static bool narrow(struct sound_scope *s, const struct sound_atom *atom, uint64_t allowed)
{
    if (!ARENA_ROOM(s->arena, s->trail, s->trail_count, &s->trail_capacity)) {
        s->failed = true;
        return false;
    }
    s->trail[s->trail_count++] = (struct sound_trail){atom->var, s->masks[atom->var]};
    s->masks[atom->var] &= allowed;
    return s->masks[atom->var] != 0;
}

// The atom is evaluated, and comes out like this.
static bool require(struct sound_scope *s, const struct sound_atom *atom, bool holds)
{
    uint8_t source = source_of(s, atom);
    if (source == OUT_SKIPPED) return atom->holds_empty == holds;
    return narrow(s, atom, (holds ? atom->holds : ~atom->holds) & ~VALUE_MISSING);
}

// Goes on with what narrows values; takes that back when it led nowhere.
static bool trying(const struct choice *c, uint32_t group, bool (*then)(const struct choice *, uint32_t))
{
    struct sound_scope *s = c->s;
    size_t mark = s->trail_count;
    if (then(c, group)) return true;
    while (s->trail_count > mark) {
        s->trail_count--;
        s->masks[s->trail[s->trail_count].var] = s->trail[s->trail_count].mask;
    }
    return false;
}

static uint32_t group_end(const struct sound_step *step, uint32_t from)
{
    uint32_t i = from + 1;
    while (i < step->atom_count && !step->atoms[i].atom->or_before) i++;
    return i;
}

static bool next_step(const struct choice *c)
{
    return solve(c->s, c->position);
}

static bool hold_group(const struct choice *c, uint32_t from)
{
    const struct sound_step *step = &c->s->steps[c->step - c->s->first];
    for (uint32_t i = from; i < group_end(step, from); i++)
        if (!require(c->s, &step->atoms[i], true)) return false;
    return next_step(c);
}

// Every group from `from` on has an atom that is false.
static bool break_groups(const struct choice *c, uint32_t from);

static bool break_at(const struct choice *c, uint32_t atom)
{
    const struct sound_step *step = &c->s->steps[c->step - c->s->first];
    if (!require(c->s, &step->atoms[atom], false)) return false;
    return break_groups(c, group_end(step, atom));
}

static bool break_groups(const struct choice *c, uint32_t from)
{
    const struct sound_step *step = &c->s->steps[c->step - c->s->first];
    if (from >= step->atom_count) return next_step(c);
    for (uint32_t i = from; i < group_end(step, from); i++)
        if (trying(c, i, break_at)) return true;
    return false;
}

static bool miss_at(const struct choice *c, uint32_t atom)
{
    const struct sound_step *step = &c->s->steps[c->step - c->s->first];
    return narrow(c->s, &step->atoms[atom], VALUE_MISSING) && next_step(c);
}

static bool evaluated(const struct choice *c, uint32_t unused)
{
    const struct sound_step *step = &c->s->steps[c->step - c->s->first];
    (void)unused;
    for (uint32_t i = 0; i < step->atom_count; i++)
        if (source_of(c->s, &step->atoms[i]) == OUT_SUCCESS && !narrow(c->s, &step->atoms[i], ~VALUE_MISSING))
            return false;
    if (c->way == WAY_FALSE) return break_groups(c, 0);
    for (uint32_t from = 0; from < step->atom_count; from = group_end(step, from))
        if (trying(c, from, hold_group)) return true;
    return false;
}

static bool condition(const struct choice *c)
{
    struct sound_scope *s = c->s;
    const struct sound_step *step = &s->steps[c->step - s->first];
    bool skipped_for_goal = s->no_when && c->step == s->goal;
    if (c->way == WAY_RULE || c->way == WAY_BROKEN || step->atom_count == 0 || skipped_for_goal) return next_step(c);
    bool failed = false;
    for (uint32_t i = 0; i < step->atom_count; i++) failed |= source_of(s, &step->atoms[i]) == OUT_FAILED;
    if (c->way != WAY_ERROR) return !failed && trying(c, 0, evaluated);
    if (failed) return next_step(c);
    for (uint32_t i = 0; i < step->atom_count; i++)
        if (source_of(s, &step->atoms[i]) == OUT_SUCCESS && trying(c, i, miss_at)) return true;
    return false;
}

// Steps that the condition names and that have no outcome yet get one.
static bool choose_producers(const struct choice *c, uint32_t from)
{
    struct sound_scope *s = c->s;
    const struct sound_step *step = &s->steps[c->step - s->first];
    bool evaluates = c->way != WAY_RULE && c->way != WAY_BROKEN;
    for (uint32_t i = from; evaluates && i < step->atom_count; i++) {
        uint32_t producer = s->vars[step->atoms[i].var].producer;
        if (producer == PROGRAM_TOP || !s->in_cone[producer - s->first] || *outcome_of(s, producer)) continue;
        for (unsigned bit = OUT_SUCCESS; bit <= OUT_TAINTED; bit <<= 1) {
            if (!(s->steps[producer - s->first].possible & bit)) continue;
            *outcome_of(s, producer) = (uint8_t)bit;
            if (choose_producers(c, i + 1)) return true;
        }
        *outcome_of(s, producer) = 0;
        return false;
    }
    return condition(c);
}

// ---- the join

static bool joined(const struct choice *c)
{
    struct sound_scope *s = c->s;
    const struct program_step *ps = program_step(c);
    uint32_t success = 0, failed = 0, skipped = 0, tainted = 0;
    for (uint32_t i = 0; i < ps->dep_count; i++) {
        uint8_t outcome = *outcome_of(s, ps->deps[i]);
        success += outcome == OUT_SUCCESS;
        failed += outcome == OUT_FAILED;
        skipped += outcome == OUT_SKIPPED || outcome == OUT_TAINTED;
        tainted += s->plan && is_failure(outcome);
    }
    enum trigger_rule rule = c->step == s->goal && s->goal_rule != RULE_NONE ? s->goal_rule : ps->rule;
    bool passes = rule_passes(rule, success, failed, skipped);
    if (passes == (c->way == WAY_RULE)) return false;
    if (c->way == WAY_RULE && (tainted > 0) != (*outcome_of(s, c->step) == OUT_TAINTED)) return false;
    return choose_producers(c, 0);
}

static bool choose_parents(const struct choice *c, uint32_t from)
{
    struct sound_scope *s = c->s;
    const struct program_step *ps = program_step(c);
    if (s->budget == 0) return true;
    s->budget--;
    for (uint32_t i = from; i < ps->dep_count; i++) {
        uint32_t parent = ps->deps[i];
        if (*outcome_of(s, parent)) continue;
        for (unsigned bit = OUT_SUCCESS; bit <= OUT_TAINTED; bit <<= 1) {
            if (!(s->steps[parent - s->first].possible & bit)) continue;
            *outcome_of(s, parent) = (uint8_t)bit;
            if (choose_parents(c, i + 1)) return true;
        }
        *outcome_of(s, parent) = 0;
        return false;
    }
    return joined(c);
}

// ---- all of it

// A plan that is failing starts only what hangs directly below a failure (ADR 0011).
static bool starts_in_time(struct sound_scope *s)
{
    if (!s->plan || s->free_of_run) return true;
    bool *below = s->below;
    memset(below, 0, s->count * sizeof(*below));
    for (uint32_t i = 0; i < s->cone_count; i++) {
        uint32_t step = s->order[s->cone[i]];
        const struct program_step *ps = &s->program->steps[step];
        bool tainted = false;
        for (uint32_t k = 0; k < ps->dep_count; k++) {
            uint8_t outcome = *outcome_of(s, ps->deps[k]);
            below[step - s->first] |= outcome == OUT_FAILED || below[ps->deps[k] - s->first];
            tainted |= is_failure(outcome);
        }
        if (below[step - s->first] && !tainted) return false;
    }
    return true;
}

static bool try_way(struct sound_scope *s, uint32_t position, uint32_t step, enum way way)
{
    struct choice c = {.s = s, .position = position, .step = step, .way = way};
    return choose_parents(&c, 0);
}

// Steps of the cone below `position` have their outcome explained; explains the one before.
static bool solve(struct sound_scope *s, uint32_t position)
{
    if (s->budget == 0) return true;
    if (position == 0) return starts_in_time(s);
    position--;
    uint32_t step = s->order[s->cone[position]];
    const struct program_step *ps = &s->program->steps[step];
    const struct sound_step *model = &s->steps[step - s->first];
    uint8_t outcome = *outcome_of(s, step);
    bool hold = ps->on_failure == ON_FAILURE_HOLD;
    bool may_run = !ps->when_broken;
    if (outcome == 0) return solve(s, position); // nothing that matters hangs on it
    if (outcome == OUT_RUNS) return may_run && try_way(s, position, step, WAY_RUN);
    bool by_body = outcome == OUT_SUCCESS  ? (model->can & OUT_SUCCESS) || (hold && model->can & OUT_FAILED)
                   : outcome == OUT_FAILED ? (model->can & OUT_FAILED) && !hold
                                           : outcome == OUT_SKIPPED && hold && model->can & OUT_FAILED;
    if (by_body && may_run && try_way(s, position, step, WAY_RUN)) return true;
    if (outcome == OUT_FAILED && !hold && model->atom_count > 0 && try_way(s, position, step, WAY_ERROR)) return true;
    if (outcome == OUT_SKIPPED && hold && model->atom_count > 0 && try_way(s, position, step, WAY_ERROR)) return true;
    if (outcome == OUT_SKIPPED && model->atom_count > 0 && try_way(s, position, step, WAY_FALSE)) return true;
    if (outcome == OUT_SKIPPED && ps->when_broken && try_way(s, position, step, WAY_BROKEN)) return true;
    return (outcome == OUT_SKIPPED || outcome == OUT_TAINTED) && try_way(s, position, step, WAY_RULE);
}

static bool find_cone(struct sound_scope *s, const struct sound_goal *goals, uint32_t count)
{
    memset(s->in_cone, 0, s->count * sizeof(*s->in_cone));
    memset(s->outcome, 0, s->count * sizeof(*s->outcome));
    for (uint32_t i = 0; i < count; i++) {
        s->in_cone[goals[i].step - s->first] = true;
        s->outcome[goals[i].step - s->first] = goals[i].outcome;
    }
    s->cone_count = 0;
    for (uint32_t r = s->count; r > 0; r--) {
        uint32_t step = s->order[r - 1];
        const struct program_step *ps = &s->program->steps[step];
        if (!s->in_cone[step - s->first]) continue;
        if (++s->cone_count > CONE_MAX) return false;
        for (uint32_t k = 0; k < ps->dep_count; k++) s->in_cone[ps->deps[k] - s->first] = true;
    }
    uint32_t at = 0;
    for (uint32_t r = 0; r < s->count; r++)
        if (s->in_cone[s->order[r] - s->first]) s->cone[at++] = r;
    return true;
}

enum sound_answer sound_ask(struct sound_scope *s, const struct sound_goal *goals, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct sound_step *step = &s->steps[goals[i].step - s->first];
        bool runs = goals[i].outcome == OUT_RUNS;
        bool other_rule = goals[i].step == s->goal && s->goal_rule != RULE_NONE;
        if (runs ? (!step->rule_possible && !other_rule) || (!step->when_possible && !s->no_when)
                 : !(step->possible & goals[i].outcome))
            return SOUND_NO;
    }
    if (!find_cone(s, goals, count)) return SOUND_UNKNOWN;
    for (uint32_t i = 0; i < s->var_count; i++) s->masks[i] = s->vars[i].mask;
    s->budget = BUDGET;
    s->trail_count = 0;
    bool found = solve(s, s->cone_count);
    if (s->budget == 0 || s->failed) return SOUND_UNKNOWN;
    return found ? SOUND_YES : SOUND_NO;
}
