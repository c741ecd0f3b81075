// What can never happen, for the author: one diagnostic for each cause, with the outcomes and values that show it.
#include "author/sound.h"

#include "program/net.h"

enum { NAMES_MAX = 6, TEXT_SIZE = 2048 };

struct teller {
    struct sound_scope *s;
    struct diagnostics *diagnostics;
    enum sound_answer *reach; // of the program's steps
    struct str file;          // outlives the program, as the diagnostics do
    struct buf text;
};

// In topological order, so that what is proved of a step narrows what comes after it.
static enum code ask_all(struct sound_scope *s, enum sound_answer *answers)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t step = s->order[i];
        struct sound_goal goal = {step, OUT_RUNS};
        struct sound_step *model = &s->steps[step - s->first];
        sound_estimate(s, step);
        answers[step] = sound_ask(s, &goal, 1);
        if (answers[step] != SOUND_NO) continue;
        model->possible &= (uint8_t)~OUT_SUCCESS;
        if (model->atom_count == 0) model->possible &= (uint8_t)~OUT_FAILED;
    }
    return s->failed ? E_NOMEM : OK;
}

// ---- words

static const struct program_step *step_of(const struct teller *t, uint32_t step)
{
    return &t->s->program->steps[step];
}

static void add_names(struct teller *t, const uint32_t *steps, uint32_t count)
{
    for (uint32_t i = 0; i < count && i < NAMES_MAX; i++)
        buf_printf(&t->text, "%s%.*s", i ? ", " : "", STR_ARG(step_of(t, steps[i])->id));
    if (count > NAMES_MAX) buf_printf(&t->text, " and %u more", count - NAMES_MAX);
}

static const char *outcome_word(uint8_t outcome)
{
    return outcome == OUT_SUCCESS ? "succeeds" : outcome == OUT_FAILED ? "fails" : "is skipped";
}

// "a: success or skipped; b: failed"
static void add_possible(struct teller *t, const struct program_step *ps)
{
    for (uint32_t i = 0; i < ps->dep_count && i < NAMES_MAX; i++) {
        uint8_t possible = t->s->steps[ps->deps[i] - t->s->first].possible;
        if (possible & OUT_TAINTED) possible |= OUT_SKIPPED;
        buf_printf(&t->text, "%s%.*s: ", i ? "; " : "", STR_ARG(step_of(t, ps->deps[i])->id));
        if (step_of(t, ps->deps[i])->kind == STEP_CANCEL)
            buf_printf(&t->text, "ends the run%s", possible ? " or is skipped" : "");
        else
            buf_printf(&t->text, "%s%s%s%s%s", possible & OUT_SUCCESS ? "success" : "",
                       possible & OUT_SUCCESS && possible & (OUT_FAILED | OUT_SKIPPED) ? " or " : "",
                       possible & OUT_FAILED ? "failed" : "",
                       possible & OUT_FAILED && possible & OUT_SKIPPED ? " or " : "",
                       possible & OUT_SKIPPED ? "skipped" : "");
    }
    if (ps->dep_count > NAMES_MAX) buf_printf(&t->text, "; and %u more", ps->dep_count - NAMES_MAX);
}

// Values of the world found that matter: those that are narrowed, one sample each.
static void add_values(struct teller *t)
{
    bool first = true;
    for (uint32_t i = 0; i < t->s->var_count; i++) {
        const struct sound_var *var = &t->s->vars[i];
        uint64_t left = t->s->masks[i];
        if (left == var->mask || var->alone) continue;
        buf_printf(&t->text, "%s%.*s", first ? " (" : ", ", STR_ARG(var->text));
        if (left == VALUE_MISSING)
            buf_text(&t->text, " is missing");
        else
            for (uint32_t k = 0; k < var->value_count; k++)
                if (left & UINT64_C(1) << k) {
                    buf_printf(&t->text, " = '%.*s'", STR_ARG(var->values[k]));
                    break;
                }
        first = false;
    }
    if (!first) buf_byte(&t->text, ')');
}

static struct diagnostic *tell(struct teller *t, enum severity severity, const char *id, uint32_t step)
{
    const struct program_step *ps = step_of(t, step);
    struct diagnostic *d = diagnose(t->diagnostics, severity, id, "", t->file, ps->line, ps->column,
                                    (uint32_t)ps->id.len, "%s", t->text.ptr);
    buf_clear(&t->text);
    return d;
}

static void note(struct teller *t, struct diagnostic *d)
{
    if (t->text.len > 0) diagnostic_note(t->diagnostics, d, "%s", t->text.ptr);
    buf_clear(&t->text);
}

// ---- why a step can never run

// Two dependencies that never succeed in the same run, though each can: the world of the first and what the other does there.
static bool tell_exclusive(struct teller *t, const struct program_step *ps)
{
    struct sound_scope *s = t->s;
    for (uint32_t i = 0; i < ps->dep_count; i++)
        for (uint32_t k = i + 1; k < ps->dep_count && k < 64; k++) {
            struct sound_goal both[] = {{ps->deps[i], OUT_SUCCESS}, {ps->deps[k], OUT_SUCCESS}};
            if (sound_ask(s, both, 2) != SOUND_NO) continue;
            for (unsigned bit = OUT_FAILED; bit <= OUT_TAINTED; bit <<= 1) {
                both[1].outcome = (uint8_t)bit;
                if (sound_ask(s, both, 2) != SOUND_YES) continue;
                buf_printf(&t->text, "when %.*s succeeds", STR_ARG(step_of(t, ps->deps[i])->id));
                add_values(t);
                buf_printf(&t->text, ", %.*s %s", STR_ARG(step_of(t, ps->deps[k])->id), outcome_word((uint8_t)bit));
                return true;
            }
        }
    return false;
}

// "when a succeeds, b is skipped ($x = '1'), the condition is false"
static void add_world(struct teller *t, const struct program_step *ps)
{
    for (uint32_t i = 0; i < ps->dep_count && i < NAMES_MAX; i++)
        buf_printf(&t->text, "%s%.*s %s", i ? ", " : "when ", STR_ARG(step_of(t, ps->deps[i])->id),
                   outcome_word(t->s->outcome[ps->deps[i] - t->s->first]));
    add_values(t);
    buf_printf(&t->text, "%sthe condition is false", t->text.len > 0 ? ", " : "");
}

static void join_cause(struct teller *t, uint32_t step)
{
    const struct program_step *ps = step_of(t, step);
    if (ps->rule != RULE_ALL_SUCCESS || !tell_exclusive(t, ps)) {
        buf_text(&t->text, "no assignment of outcomes of ");
        add_names(t, ps->deps, ps->dep_count);
        buf_text(&t->text, " reaches it: ");
        add_possible(t, ps);
    }
}

static bool has_cancel(const struct teller *t, const struct program_step *ps)
{
    for (uint32_t i = 0; i < ps->dep_count; i++)
        if (step_of(t, ps->deps[i])->kind == STEP_CANCEL && !t->s->steps[ps->deps[i] - t->s->first].possible)
            return true;
    return false;
}

static const char *what_it_is(const struct program_step *ps)
{
    return ps->kind == STEP_APPROVAL ? "nobody is ever asked for" : "can never run:";
}

static struct diagnostic *tell_dead_as(struct teller *t, const char *id, uint32_t step, const char *why)
{
    const struct program_step *ps = step_of(t, step);
    if (ps->kind == STEP_APPROVAL) {
        buf_printf(&t->text, "%s the approval \"%.*s\": %s", what_it_is(ps), STR_ARG(ps->id), why);
        id = "E0604";
    } else {
        buf_printf(&t->text, "\"%.*s\" %s %s", STR_ARG(ps->id), what_it_is(ps), why);
    }
    return tell(t, SEVERITY_ERROR, id, step);
}

// Steps that are dead because this one is: reported with it.
static void add_followers(struct teller *t, uint32_t step)
{
    const struct program_step *ps = step_of(t, step);
    uint32_t dead[64], count = 0;
    for (uint32_t i = 0; i < ps->dependent_count && count < ARRAY_COUNT(dead); i++)
        if (t->reach[ps->dependents[i]] == SOUND_NO) dead[count++] = ps->dependents[i];
    if (count == 0) return;
    buf_text(&t->text, t->text.len ? "; so these can never run either: " : "these can never run either: ");
    add_names(t, dead, count);
}

// A rule with which the step could run, when there is an obvious one.
static void suggest_rule(struct teller *t, uint32_t step, struct diagnostic *d)
{
    static const enum trigger_rule usual[] = {RULE_NONE_FAILED_MIN_ONE_SUCCESS, RULE_ALL_DONE};
    struct sound_scope *s = t->s;
    struct sound_goal goal = {step, OUT_RUNS};
    enum sound_answer answer = SOUND_NO;
    size_t i = 0;
    if (step_of(t, step)->rule != RULE_ALL_SUCCESS || step_of(t, step)->dep_count < 2) return;
    for (; i < ARRAY_COUNT(usual) && answer != SOUND_YES; i++) {
        s->goal = step;
        s->goal_rule = usual[i];
        answer = sound_ask(s, &goal, 1);
    }
    s->goal_rule = RULE_NONE;
    if (answer == SOUND_YES)
        diagnostic_hint(t->diagnostics, d, "with the trigger rule %s it can run", rule_name(usual[i - 1]));
}

static void tell_dead(struct teller *t, uint32_t step)
{
    struct sound_scope *s = t->s;
    const struct program_step *ps = step_of(t, step);
    const struct sound_step *model = &s->steps[step - s->first];
    struct sound_goal goal = {step, OUT_RUNS};
    struct diagnostic *d;
    struct str rule = str_from(rule_name(ps->rule));
    if (ps->when_broken) return; // the reader has reported it
    if (has_cancel(t, ps)) {
        d = tell_dead_as(t, "E0602", step, "it waits for a step that ends the run");
        add_possible(t, ps);
        add_followers(t, step);
        note(t, d);
        return;
    }
    s->goal = step;
    s->no_when = true;
    enum sound_answer joined = sound_ask(s, &goal, 1);
    s->free_of_run = true;
    enum sound_answer unhindered = sound_ask(s, &goal, 1);
    s->no_when = s->free_of_run = false;
    struct buf text SCOPED(buf_release) = buf_of(TEXT_SIZE);
    if (joined == SOUND_NO && unhindered == SOUND_YES) {
        d = tell_dead_as(t, "E0601", step, "by the time it is decided a failure has stopped the run");
        buf_text(&t->text, "a failed plan starts only steps directly below the failure; here ");
        add_possible(t, ps);
    } else if (joined == SOUND_NO) {
        buf_printf(&text, "no run satisfies its trigger rule %.*s", STR_ARG(rule));
        d = tell_dead_as(t, "E0602", step, text.ptr);
        suggest_rule(t, step, d);
        join_cause(t, step);
    } else if (!model->when_possible) {
        d = tell_dead_as(t, "E0603", step, "its condition is never true");
        buf_printf(&t->text, "no value satisfies %.*s", STR_ARG(ps->when_text));
    } else {
        d = tell_dead_as(t, "E0603", step, "its condition is false whenever its trigger rule passes");
        s->no_when = true;
        if (sound_ask(s, &goal, 1) == SOUND_YES) add_world(t, ps);
        s->no_when = false;
    }
    add_followers(t, step);
    note(t, d);
}

// Dead because a dependency that has to run is dead: the cause is reported there.
static bool follows(const struct teller *t, uint32_t step)
{
    const struct program_step *ps = step_of(t, step);
    bool dead = false;
    for (uint32_t i = 0; i < ps->dep_count; i++) dead |= t->reach[ps->deps[i]] == SOUND_NO;
    return dead && ps->kind != STEP_APPROVAL &&
           (ps->rule == RULE_ALL_SUCCESS || !t->s->steps[step - t->s->first].rule_possible);
}

// ---- what else cannot be

static void check_unused(struct teller *t, uint32_t step)
{
    const struct program_step *ps = step_of(t, step);
    if (ps->dependent_count == 0 || t->reach[step] == SOUND_NO || ps->kind == STEP_CANCEL) return;
    for (uint32_t i = 0; i < ps->dependent_count; i++)
        if (t->reach[ps->dependents[i]] != SOUND_NO) return;
    buf_printf(&t->text, "what \"%.*s\" produces reaches nobody: ", STR_ARG(ps->id));
    add_names(t, ps->dependents, ps->dependent_count);
    buf_text(&t->text, " can never run");
    tell(t, SEVERITY_WARNING, "E0605", step);
}

// Failures that a policy for transient ones never sees.
static bool fails_for_good_only(const struct program_step *ps)
{
    if (ps->kind == STEP_NOOP) return !str_is(json_text(json_key(&ps->with, "simulateError")), "transient");
    return ps->kind == STEP_ECHO || ps->kind == STEP_MERGE || ps->kind == STEP_APPROVAL || ps->kind == STEP_CANCEL ||
           (ps->kind == STEP_WAIT && ps->timeout_ms == 0);
}

static void check_retry(struct teller *t, uint32_t step)
{
    const struct program_step *ps = step_of(t, step);
    bool never_fails = !(t->s->steps[step - t->s->first].can & OUT_FAILED);
    if (ps->retry.max_attempts <= 1) return;
    if (!never_fails && !(ps->retry.on == RETRY_TRANSIENT && fails_for_good_only(ps))) return;
    buf_printf(&t->text, "\"%.*s\" is never tried again: %s", STR_ARG(ps->id),
               never_fails ? "it cannot fail" : "no failure of this kind of step is transient");
    struct diagnostic *d = tell(t, SEVERITY_WARNING, "E0606", step);
    diagnostic_hint(t->diagnostics, d, "%s",
                    never_fails ? "leave `retry` out" : "leave `retry` out, or retry on all failures");
}

static void check_timeout(struct teller *t, uint32_t step)
{
    const struct program_step *ps = step_of(t, step);
    const struct json *duration = json_key(&ps->with, "durationMs");
    if (ps->kind != STEP_WAIT || !duration || ps->timeout_ms == 0 || json_integer(duration, 0) <= ps->timeout_ms)
        return;
    buf_printf(&t->text, "\"%.*s\" always fails: it waits %lld ms and is given %lld", STR_ARG(ps->id),
               (long long)json_integer(duration, 0), (long long)ps->timeout_ms);
    struct diagnostic *d = tell(t, SEVERITY_ERROR, "E0607", step);
    diagnostic_hint(t->diagnostics, d, "leave `timeout` out, or make it longer than the wait");
}

// Commands whose exit status is known without running them.
static int constant_status(struct str command)
{
    static const struct {
        const char *text;
        int status;
    } known[] = {{"true", 0}, {":", 0}, {"exit 0", 0}, {"exit", 0}, {"false", 1}, {"! true", 1}, {"! false", 0}};
    command = str_trim(command);
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (str_is(command, known[i].text)) return known[i].status;
    int64_t status;
    if (str_starts(command, STR("exit ")) && str_int64(str_trim(str_slice(command, 5, command.len)), &status))
        return status % 256 ? 1 : 0;
    return -1;
}

static void check_loop(struct teller *t, uint32_t step)
{
    const struct program_step *ps = step_of(t, step);
    if (ps->kind != STEP_LOOP || ps->until == PROGRAM_TOP) return;
    const struct program_step *until = step_of(t, ps->until);
    int status = constant_status(json_text(json_key(&until->with, "command")));
    if (status < 0) return;
    if (status == 0)
        buf_printf(&t->text, "the loop \"%.*s\" never repeats: its condition is true after the first round",
                   STR_ARG(ps->id));
    else
        buf_printf(&t->text,
                   "the loop \"%.*s\" can only fail: its condition is never true, so after %u rounds it is "
                   "exhausted",
                   STR_ARG(ps->id), ps->max_iterations);
    struct diagnostic *d = tell(t, status ? SEVERITY_ERROR : SEVERITY_WARNING, "E0608", ps->until);
    diagnostic_hint(t->diagnostics, d, "leave `until_bash` out to run %u rounds", ps->max_iterations);
}

static void tell_scope(struct teller *t)
{
    for (uint32_t i = 0; i < t->s->count; i++) {
        uint32_t step = t->s->first + i;
        if (t->reach[step] == SOUND_NO && !follows(t, step)) tell_dead(t, step);
        check_unused(t, step);
        check_retry(t, step);
        check_timeout(t, step);
        check_loop(t, step);
    }
}

// ---- all of it

static enum code each_scope(const struct program *program, struct arena *arena, enum sound_answer *answers,
                            struct diagnostics *diagnostics, struct error *err)
{
    for (uint32_t i = 0; i <= program->step_count; i++) {
        uint32_t scope = i == 0 ? PROGRAM_TOP : i - 1;
        if (scope != PROGRAM_TOP && program->steps[scope].kind != STEP_LOOP) continue;
        struct sound_scope s;
        enum code rc = sound_open(&s, program, scope, arena, err);
        if (!rc && ask_all(&s, answers)) rc = error_nomem(err);
        if (rc) return rc;
        if (!diagnostics) continue;
        struct teller t = {.s = &s, .diagnostics = diagnostics, .reach = answers};
        t.file = arena_copy(diagnostics->arena, program->file);
        if (!t.file.ptr) return error_nomem(err);
        buf_init(&t.text, TEXT_SIZE);
        tell_scope(&t);
        buf_release(&t.text);
    }
    return OK;
}

// ---- playbooks: what stands behind something that always holds is never asked

struct net_teller {
    struct diagnostics *diagnostics;
    struct str file;
};

static void tell_behind(const struct net_teller *t, uint32_t line, uint32_t column, const char *what, uint32_t first)
{
    struct diagnostic *d = diagnose(t->diagnostics, SEVERITY_WARNING, "E0603", "", t->file, line, column, 1,
                                    "the %s is never asked: the one on line %u always holds", what, first);
    diagnostic_hint(t->diagnostics, d, "put it before that one, or remove it");
}

static void check_net_step(const struct net_teller *t, const struct net_step *step)
{
    for (uint32_t i = 1; i < step->arc_count && !step->inclusive; i++)
        if (!step->arcs[i - 1].when.test) {
            tell_behind(t, step->arcs[i].line, step->arcs[i].column, "arc", step->arcs[i - 1].line);
            break;
        }
    for (uint32_t i = 0; i < step->task_count; i++)
        for (uint32_t k = 1; k < step->tasks[i].rule_count; k++) {
            const struct net_rule *rules = step->tasks[i].rules;
            if (rules[k - 1].when.test) continue;
            tell_behind(t, rules[k].line, rules[k].column, "rule", rules[k - 1].line);
            break;
        }
}

static enum code check_net(const struct program *program, struct diagnostics *diagnostics, struct error *err)
{
    struct net_teller t = {diagnostics, arena_copy(diagnostics->arena, program->file)};
    if (!t.file.ptr) return error_nomem(err);
    for (uint32_t i = 0; i < program->step_count; i++) check_net_step(&t, &program->net->steps[i]);
    return OK;
}

enum code sound_reach(const struct program *program, struct arena *arena, enum sound_answer *answers, struct error *err)
{
    return each_scope(program, arena, answers, NULL, err);
}

enum code sound_check(const struct program *program, struct diagnostics *diagnostics, struct error *err)
{
    if (program->net) return check_net(program, diagnostics, err);
    struct arena arena SCOPED(arena_release) = arena_of(64 * 1024, (size_t)256 << 20);
    enum sound_answer *answers = ARENA_ARRAY(&arena, program->step_count + 1, enum sound_answer);
    enum code rc = answers ? each_scope(program, &arena, answers, diagnostics, err) : error_nomem(err);
    struct str outer = diagnostics->source;
    for (uint32_t i = 0; !rc && i < program->step_count; i++) {
        const struct program *child = program->steps[i].child;
        bool seen = false;
        for (uint32_t k = 0; k < i; k++) seen |= program->steps[k].child == child;
        if (!child || seen) continue;
        diagnostics->source = arena_copy(diagnostics->arena, child->text);
        if (!diagnostics->source.ptr) rc = error_nomem(err);
        if (!rc) rc = sound_check(child, diagnostics, err);
    }
    diagnostics->source = outer;
    return rc;
}
