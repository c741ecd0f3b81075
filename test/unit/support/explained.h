// Every run that a test makes must be explainable: for every step at every moment there is an answer with a reason, asking
// the decisions again gives what is recorded, and what the answer shows about rule and condition is what was decided.
// A projector must have nothing to say against it either (C-15, C-56).
// story_close, kit_close and rig_close call this for all their runs. Header-only.
#ifndef CAIRN_TEST_UNIT_SUPPORT_EXPLAINED_H
#define CAIRN_TEST_UNIT_SUPPORT_EXPLAINED_H

#include "explain/explain.h"
#include "explain/inside.h"
#include "harness/test.h"
#include "view/project_inside.h"

#include <string.h>

#define EXPLAINED_WORK_MAX 40000 // answers for one run; beyond that only the step of the moment is asked for

// States that were answered with, by all runs of the program.
UNUSED static bool explained_seen[STATE_NOT_RUN + 1];

struct explained {
    struct explain *explain;
    const struct program *program;
    struct snapshot *draft;
    struct arena arena;
    size_t moment_count, answer_count;
    bool big;
};

UNUSED static _Noreturn void explained_fail(const struct explained *x, struct str path, const struct json *answer,
                                            const char *why)
{
    struct buf text;
    buf_init(&text, 1 << 22);
    json_write_pretty(&text, answer);
    test_fail(__FILE__, __LINE__, "%.*s after moment %zu: %s\n%s", STR_ARG(path), x->moment_count, why, text.ptr);
}

UNUSED static void explained_open(struct explained *x, const struct program *program, const struct run_ids *ids,
                                  const struct kernel_env *env)
{
    struct error err = {0};
    *x = (struct explained){.program = program};
    arena_init(&x->arena, 64 * 1024, SIZE_MAX);
    CHECK_OK(explain_open(program, ids, env, &x->explain, &err), &err);
    x->draft = draft_new(ids, program);
    CHECK(x->draft);
}

UNUSED static void explained_close(struct explained *x)
{
    explain_close(x->explain);
    snapshot_release(x->draft);
    arena_release(&x->arena);
}

UNUSED static bool explained_is(const struct json *answer, const char *path, const char *text)
{
    return str_is(json_text(json_at(answer, str_from(path))), text);
}

UNUSED static bool explained_true(const struct json *value)
{
    return json_is(value, JSON_BOOL) && value->boolean;
}

// The kernel's own word for the state, when the step is of the iteration that the run is in.
UNUSED static bool explained_state_fits(const struct explained *x, struct str path, const struct json *answer)
{
    static const char *const fits[] = {[NODE_WAITING] = "waiting cancelled not_run",
                                       [NODE_DELAYED] = "retrying cancelled",
                                       [NODE_RUNNING] = "running approval",
                                       [NODE_HELD] = "held failed",
                                       [NODE_SUCCESS] = "done reused",
                                       [NODE_FAILED] = "failed cancelled",
                                       [NODE_SKIPPED] = "skipped"};
    const struct run *run = x->explain->run;
    uint32_t step = kernel_find(run, path);
    struct view_of_step v;
    CHECK(look_at(x->explain, path, &v));
    if (!v.current) return true;
    char state[32];
    struct str text = json_text(json_key(answer, "state"));
    CHECK(text.len < sizeof(state));
    memcpy(state, text.ptr, text.len);
    state[text.len] = '\0';
    bool to_come = kernel_state(run, step) == NODE_DELAYED && kernel_attempt(run, step).logical == 0; // not before a given time
    return strstr(fits[to_come ? NODE_WAITING : kernel_state(run, step)], state) != NULL;
}

// The value that is shown is the one that was compared.
UNUSED static bool explained_values_fit(const struct json *answer)
{
    const struct json *atoms = json_at(answer, STR("when.atoms"));
    for (uint32_t i = 0; atoms && i < atoms->count; i++) {
        const struct json *atom = &atoms->items[i], *result = json_key(atom, "result");
        bool same = str_eq(json_text(json_key(atom, "left")), json_text(json_key(atom, "right")));
        if (result && explained_is(atom, "operator", "==") && result->boolean != same) return false;
        if (result && explained_is(atom, "operator", "!=") && result->boolean == same) return false;
    }
    return true;
}

// What is shown must lead to what was decided.
UNUSED static const char *explained_join_fits(const struct json *answer)
{
    const struct json *passes = json_at(answer, STR("rule.passes")), *holds = json_at(answer, STR("when.result"));
    bool skipped = explained_is(answer, "state", "skipped");
    const struct json *attempts = json_key(answer, "attempts");
    if (skipped &&
        (explained_is(answer, "reason", SKIP_TRIGGER_RULE) || explained_is(answer, "reason", SKIP_DEPENDENCY_FAILED)))
        return passes && !explained_true(passes) ? NULL : "skipped by its rule, which passes";
    if (skipped && explained_is(answer, "reason", SKIP_CONDITION_FALSE)) {
        if (passes && !explained_true(passes)) return "skipped by its condition, which was not reached";
        return holds && holds->type == JSON_BOOL && !holds->boolean ? NULL : "skipped by its condition, which holds";
    }
    bool reuse = attempts && explained_is(&attempts->items[0], "startedBy", "reuse");
    if (!attempts || reuse || explained_is(answer, "state", "reused")) return NULL;
    if (passes && !explained_true(passes)) return "started, but its rule does not pass";
    bool fault = explained_is(answer, "reason", "CONDITION_FAULT") || json_is(holds, JSON_NULL);
    return !holds || fault || explained_true(holds) ? NULL : "started, but its condition does not hold";
}

UNUSED static void explained_answer(struct explained *x, struct str path)
{
    struct error err = {0};
    struct json answer;
    CHECK_OK(explain_step(x->explain, path, (int64_t)x->moment_count * 1000, &x->arena, &answer, &err), &err);
    x->answer_count++;
    struct str verdict = json_text(json_key(&answer, "verdict")), state = json_text(json_key(&answer, "state"));
    if (!explained_true(json_key(&answer, "reproduced"))) explained_fail(x, path, &answer, "not reproduced");
    if (!str_starts(verdict, path) || !str_ends(verdict, STR(".")) || verdict.len < path.len + 8 || !str_utf8(verdict))
        explained_fail(x, path, &answer, "no verdict");
    if (json_text(json_key(&answer, "reason")).len == 0 || state.len == 0 || str_is(state, "?"))
        explained_fail(x, path, &answer, "no state or reason");
    if (!explained_state_fits(x, path, &answer)) explained_fail(x, path, &answer, "not the state that the kernel has");
    for (int i = 1; i <= STATE_NOT_RUN; i++)
        if (str_is(state, explain_state_name((enum explain_state)i))) explained_seen[i] = true;
    if (!explained_values_fit(&answer)) explained_fail(x, path, &answer, "not the values that were compared");
    const char *why = explained_join_fits(&answer);
    if (why) explained_fail(x, path, &answer, why);
}

UNUSED static void explained_everything(struct explained *x)
{
    struct error err = {0};
    struct json answer;
    struct str path;
    for (size_t cursor = 0; (path = explain_path(x->explain, &cursor, &x->arena)).ptr;) explained_answer(x, path);
    CHECK_OK(explain_run(x->explain, (int64_t)x->moment_count * 1000, &x->arena, &answer, &err), &err);
    if (!explained_true(json_key(&answer, "reproduced"))) explained_fail(x, STR("the run"), &answer, "not reproduced");
    if (json_text(json_key(&answer, "reason")).len == 0 || json_text(json_key(&answer, "verdict")).len < 8)
        explained_fail(x, STR("the run"), &answer, "no verdict");
    arena_reset(&x->arena);
}

UNUSED static void explained_project(struct explained *x, const struct moment *moment, uint64_t seq)
{
    struct applied applied;
    bool ledger = !moment_word(moment->kind, view_vocabulary(&x->draft->view));
    CHECK(draft_apply(x->draft, &(struct project_event){.seq = seq, .ledger = ledger, .moment = *moment}, &applied));
    if (applied.refused || applied.early)
        test_fail(__FILE__, __LINE__, "moment %zu, %s of %.*s: %s", x->moment_count, moment_name(moment->kind),
                  STR_ARG(moment->step), applied.refused ? "not allowed" : "before its cause");
}

// One more moment of the run, and every question that can be asked after it.
UNUSED static void explained_moment(struct explained *x, const struct moment *moment, uint64_t seq)
{
    struct error err = {0};
    if (x->moment_count == 0) explained_everything(x);
    x->moment_count++;
    CHECK_OK(explain_fold(x->explain, moment, seq, &err), &err);
    explained_project(x, moment, seq);
    x->big = x->big || x->answer_count > EXPLAINED_WORK_MAX;
    if (!x->big)
        explained_everything(x);
    else if (moment_is_step(moment->kind) && moment->kind != MOMENT_LATE_RESULT)
        explained_answer(x, moment->step);
    arena_reset(&x->arena);
}

#endif
