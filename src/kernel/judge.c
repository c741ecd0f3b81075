// What the state says about a step, a failed attempt, a loop, the end. Nothing here changes anything: step*.c act on it, and
// explanations ask again.
#include "json/make.h"
#include "kernel/list.h"
#include "kernel/route.h"

static enum code judge_when(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                            struct join *out, struct error *err)
{
    const struct program_step *ps = &run->program->steps[step];
    struct kernel_scope context = {.run = run, .step = step, .env = env, .strict = true};
    struct scope scope = kernel_scope(&context);
    struct error local = {0};
    bool holds = false;
    enum code code = when_eval(ps->when, &scope, arena, &holds, &out->trace, &local);
    if (code == OK) {
        out->verdict = holds ? JOIN_START : JOIN_FALSE;
        out->skip = holds ? NULL : SKIP_CONDITION_FALSE;
        return OK;
    }
    if (code == E_NOMEM || code == E_IO || code == E_CORRUPT) return error_set(err, code, "%s", local.message);
    struct str message = arena_copy(arena, str_from(local.message));
    if (!message.ptr) return error_nomem(err);
    out->verdict = JOIN_FAULT;
    out->fault =
        (struct fault){.code = STR("REFERENCE_NOT_AVAILABLE"), .message = message, .category = STR("validation")};
    return OK;
}

enum code kernel_join(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                      struct join *out, struct error *err)
{
    const struct program_step *ps = &run->program->steps[step];
    const struct run_node *node = &run->nodes[step];
    *out = (struct join){.verdict = JOIN_START};
    if (node->waiting > 0) {
        out->verdict = JOIN_WAITS;
    } else if (ps->undo && node->success > 0) {
        out->verdict = JOIN_UNDO;
    } else if (!ps->undo && (run->undoing || (run->failing && node->tainted_parents == 0))) {
        // A failing plan starts no unrelated work; what hangs below the failure (handlers, clean-up) is still decided.
        out->verdict = JOIN_WITHHELD;
    } else if (!rule_passes(ps->rule, node->success, node->failed, node->skipped)) {
        out->verdict = JOIN_RULE;
        out->skip = node->tainted_parents > 0 ? SKIP_DEPENDENCY_FAILED : SKIP_TRIGGER_RULE;
    } else if (ps->when_broken) {
        out->verdict = JOIN_BROKEN;
        out->skip = SKIP_CONDITION_BROKEN;
    } else if (ps->when) {
        return judge_when(run, step, env, arena, out, err);
    }
    return OK;
}

enum retry_verdict kernel_retry(const struct run *run, uint32_t step, const struct fault *fault)
{
    const struct retry_policy *retry = &run->program->steps[step].retry;
    const struct run_lane *s = &run->lanes[step];
    INVARIANT(s->logical >= s->base);
    if (run->cancelling) return RETRY_CANCELLING;
    if (s->logical - s->base >= retry->max_attempts) return RETRY_SPENT;
    if (retry->on == RETRY_TRANSIENT && !fault->retryable) return RETRY_PERMANENT;
    for (uint32_t i = 0; i < retry->non_retryable_count; i++)
        if (str_eq(retry->non_retryable[i], fault->code)) return RETRY_NON_RETRYABLE;
    return RETRY_AGAIN;
}

enum loop_verdict kernel_loop(const struct run *run, uint32_t loop)
{
    const struct program_step *ps = &run->program->steps[loop];
    const struct run_node *node = &run->nodes[loop];
    INVARIANT(ps->kind == STEP_LOOP);
    if (node->open_children > 0) return LOOP_OPEN;
    uint32_t failed = 0;
    for (uint32_t i = 0; i < ps->child_count; i++) failed += run->lanes[ps->first_child + i].state == NODE_FAILED;
    if (failed > 0) return LOOP_BODY_FAILED;
    const struct run_node *until = ps->until == PROGRAM_TOP ? NULL : &run->nodes[ps->until];
    bool stop = until && run->lanes[ps->until].state == NODE_SUCCESS && until->value && until->value->type == JSON_BOOL &&
                until->value->boolean;
    if (!until && node->iteration >= ps->max_iterations) stop = true;
    if (stop) return LOOP_DONE;
    return node->iteration >= ps->max_iterations ? LOOP_EXHAUSTED : LOOP_AGAIN;
}

bool kernel_too_many(const struct kernel_env *env, uint64_t wanted, struct arena *arena, struct fault *out)
{
    uint32_t most = env && env->iterations_max ? env->iterations_max : KERNEL_ITERATIONS_MAX;
    if (wanted <= most) return false;
    struct str message = arena_format(arena,
                                      "the loop wants %llu iterations, and the setting limits.iterations allows %u: let it "
                                      "handle several items at once, divide it among child runs, or raise the setting",
                                      (unsigned long long)wanted, most);
    *out = (struct fault){.code = STR(FAULT_ITERATIONS),
                          .message = message.ptr ? message : STR("more iterations than limits.iterations allows"),
                          .category = STR("validation")};
    return true;
}

enum moment_kind kernel_end(const struct run *run)
{
    if (run_status_terminal(run->status)) return MOMENT_UNKNOWN;
    if (run->cancelling && run->in_flight > 0) return MOMENT_UNKNOWN;
    if (run->undoing && !run->cancelling) {
        bool goes_on = !run_goes(run) || run->in_flight > 0 || undo_open(run);
        return goes_on ? MOMENT_UNKNOWN : run->undoing == UNDO_CANCELLED ? MOMENT_RUN_CANCELLED : MOMENT_RUN_FAILED;
    }
    if (run->cancelling) return run->limited ? MOMENT_RUN_FAILED : MOMENT_RUN_CANCELLED;
    if (run->start.refusal.type) return MOMENT_RUN_FAILED;        // it was queued, and never begins (C-37)
    if (!run_goes(run)) return MOMENT_UNKNOWN; // PAUSED: the end is withheld until RESUME (C-15); K8
    if (run->in_flight + run->delayed + run->held > 0) return MOMENT_UNKNOWN;
    if (run->route->is_busy(run)) return MOMENT_UNKNOWN;
    return run->route->has_failed(run) ? MOMENT_RUN_FAILED : MOMENT_RUN_COMPLETED;
}

// ---- kinds without a tool

static enum code merge_value(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                             struct json *out, struct error *err)
{
    const struct program_step *ps = &run->program->steps[step];
    uint64_t total = 0;
    *out = json_object();
    for (uint32_t i = 0; i < ps->dep_count; i++) {
        struct json value;
        if (!kernel_output_fits(run, ps->deps[i], &total)) return error_set(err, E_LIMIT, RESULT_TOO_LARGE);
        enum code rc = kernel_output(run, ps->deps[i], env, arena, &value, err);
        if (rc) return rc;
        if (value.type == 0) value = json_null();
        json_set(arena, out, run->program->steps[ps->deps[i]].id, value);
    }
    return json_made(out, err);
}

struct fault kernel_unavailable(enum code why, struct str message)
{
    struct fault fault = {.code = STR("REFERENCE_NOT_AVAILABLE"), .message = message, .category = STR("validation")};
    if (why == E_LIMIT) fault.code = STR("PAYLOAD_TOO_LARGE");
    if (why == E_CORRUPT) fault.code = STR("OUTPUT_DAMAGED");
    if (why == E_CORRUPT || why == E_UNREACHABLE) fault.category = STR("infrastructure");
    fault.retryable = why == E_UNREACHABLE; // it is there, and may be had later
    return fault;
}

enum code kernel_instant(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                         struct instant *out, struct error *err)
{
    const struct program_step *ps = &run->program->steps[step];
    struct str wanted = json_text(json_key(&ps->with, "simulateError"));
    *out = (struct instant){.ok = wanted.len == 0, .value = json_null()};
    if (kernel_fans_out(run, step)) return list_instant(run, step, env, arena, out, err);
    if (!out->ok) {
        out->fault = (struct fault){.code = STR("SIMULATED_ERROR"),
                                    .message = STR("simulateError in the plan"),
                                    .category = STR("business"),
                                    .retryable = str_is(wanted, "transient")};
        return OK;
    }
    struct error local = {0};
    struct json with;
    enum code rc = OK;
    if (ps->kind == STEP_MERGE) {
        rc = merge_value(run, step, env, arena, &out->value, &local);
    } else if (ps->kind == STEP_ECHO) {
        rc = kernel_render(run, step, env, arena, &with, &local);
        const struct json *message = rc ? NULL : json_key(&with, "message");
        if (message) out->value = *message;
    }
    if (!rc) return OK;
    if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
    struct str told = arena_copy(arena, str_from(local.message));
    if (!told.ptr) return error_nomem(err);
    out->ok = false;
    out->fault = kernel_unavailable(rc, told);
    return OK;
}

bool kernel_condition(const struct run *run, uint32_t step)
{
    return run->program->steps[kernel_place(run, step)].condition;
}
