// The answer about a step, put together. docs/format/why.md describes every member.
#include "explain/inside.h"

static void put_gate(struct maker *m, struct json *out, const struct view_of_step *v)
{
    if (v->ps->kind != STEP_APPROVAL) return;
    const struct attempt_finding *attempt = last_attempt(v->note);
    struct json gate = json_object();
    struct str message = v->note ? v->note->message : json_text(json_key(&v->ps->with, "message"));
    JSON_ADD(m->arena, &gate, {"message", json_short(m, message, TEXT_LONG)}, {"role", json_word("Operator")},
             {"since", attempt ? json_time_some(m->arena, attempt->started_ms) : json_none()},
             {"timeoutMs", json_nonzero(json_integer(json_key(&v->ps->with, "timeoutMs"), v->ps->timeout_ms))},
             {"deadline", v->note && v->state == STATE_APPROVAL ? json_time_some(m->arena, v->note->due_ms)
              : json_none()},
             {"onTimeout", json_some(json_text(json_key(&v->ps->with, "onTimeout")))});
    bool answered = attempt && (attempt->end == ATTEMPT_DONE || attempt->end == ATTEMPT_FAILED);
    if (v->note && answered && v->state != STATE_REUSED && !step_given(v)) {
        struct json answer = JSON_OF(m->arena, {"approved", json_bool(attempt->end == ATTEMPT_DONE)},
                                     {"by", json_some(v->note->actor)},
                                     {"at", json_time_some(m->arena, attempt->ended_ms)}, AT(attempt->over));
        JSON_ADD(m->arena, &gate, {"answer", answer});
    }
    JSON_ADD(m->arena, out, {"gate", gate});
}

static void put_children(struct maker *m, struct json *loop, const struct view_of_step *v)
{
    struct json open = json_array();
    for (uint32_t i = 0; i < v->ps->child_count; i++) {
        struct view_of_step child;
        struct str text = child_path(m, v, v->ps->first_child + i);
        if (text.len == 0 || !look_at(m->e, text, &child)) continue;
        if (child.note && child.note->state >= NODE_SUCCESS) continue;
        json_append(m->arena, &open, JSON_OF(m->arena, {"step", json_some(text)},
                                             {"state", json_name(explain_state_name(child.state))}));
    }
    JSON_ADD(m->arena, loop, {"open", open});
}

static void put_until(struct maker *m, struct json *loop, const struct view_of_step *v)
{
    struct view_of_step until;
    if (v->ps->until == PROGRAM_TOP || v->note->iteration == 0) return;
    struct str text = child_path(m, v, v->ps->until);
    if (text.len == 0 || !look_at(m->e, text, &until)) return;
    struct json out = JSON_OF(m->arena, {"step", json_some(text)},
                              {"state", json_name(explain_state_name(until.state))},
                              {"holds", until.note && until.note->value.type == JSON_BOOL ?
                               json_bool(until.note->value.boolean) : json_none()});
    JSON_ADD(m->arena, loop, {"until", out});
}

static void put_loop(struct maker *m, struct json *out, const struct view_of_step *v)
{
    static const char *const verdicts[] = {"", "OPEN", "AGAIN", "DONE", "BODY_FAILED", "EXHAUSTED"};
    if (v->ps->kind != STEP_LOOP) return;
    struct json loop = JSON_OF(m->arena, {"iteration", json_int(v->note ? v->note->iteration : 0)},
                               {"maxIterations", json_int(v->ps->max_iterations)},
                               {"verdict", v->note ? json_name(verdicts[v->note->loop]) : json_none()});
    if (v->note) put_until(m, &loop, v);
    if (v->note && v->state == STATE_RUNNING && v->note->iteration > 0) put_children(m, &loop, v);
    JSON_ADD(m->arena, out, {"loop", loop});
}

// Decisions by people that bear on the step: about it, or about the run when that is why.
static bool bears_on(const struct view_of_step *v, const struct signal_finding *signal)
{
    if (signal->step.len > 0) return str_eq(signal->step, v->path);
    enum signal_type type = signal_parse(signal->type);
    struct str reason = str_from(v->reason);
    if (type == SIGNAL_PAUSE) return str_is(reason, "RUN_PAUSED") && str_eq(signal->id, v->e->pause_signal);
    bool cancels = type == SIGNAL_CANCEL || type == SIGNAL_EMERGENCY_STOP || type == SIGNAL_REJECT;
    return cancels && signal->accepted && (v->state == STATE_CANCELLED || str_is(reason, "RUN_CANCELLING"));
}

static void put_signals(struct maker *m, struct json *out, const struct view_of_step *v)
{
    struct json list = json_array();
    for (size_t i = 0; i < m->e->signal_count; i++)
        if (bears_on(v, &m->e->signals[i])) json_append(m->arena, &list, signal_json(m, &m->e->signals[i]));
    JSON_ADD(m->arena, out, {"signals", json_filled(list)});
}

static void put_cause(struct maker *m, struct json *out, const struct view_of_step *v)
{
    struct view_of_step root;
    if (!root_of(m, v, &root)) return;
    struct str verdict = verdict_told(m, &root);
    struct json cause = JSON_OF(m->arena, {"step", json_some(root.path)},
                                {"state", json_name(explain_state_name(root.state))}, AT(state_place(&root)),
                                VERDICT(m, verdict));
    JSON_ADD(m->arena, out, {"cause", cause});
}

static void put_next(struct maker *m, struct json *out, const struct view_of_step *v)
{
    struct json list = json_array();
    struct str nothing = {"", 0};
    struct view_of_step root;
    const struct run *run = m->e->run;
    root_of(m, v, &root);
    if (root.state == STATE_APPROVAL && !run->cancelling) {
        next_command(m, &list, "approve", root.path, "");
        next_command(m, &list, "reject", root.path, " --reason WHY");
    }
    if (root.state == STATE_HELD && !run->cancelling) {
        next_command(m, &list, "retry", root.path, "");
        next_command(m, &list, "skip", root.path, " --reason WHY");
    }
    if (root.note && root.note->child_run.len > 0 && root.state != STATE_DONE && root.state != STATE_REUSED)
        next_why(m, &list, root.note->child_run);
    if (root.note && root.state == STATE_REUSED) next_why(m, &list, root.note->reused_from);
    if (run->status == RUN_STATUS_PENDING && run->start.requires_approval)
        next_command(m, &list, "approve", nothing, "");
    if (run->status == RUN_STATUS_PAUSED && !run->cancelling) next_command(m, &list, "resume", nothing, "");
    if (!str_eq(root.path, v->path)) next_command(m, &list, "why", root.path, "");
    if (root.state == STATE_FAILED || root.state == STATE_CANCELLED || root.state == STATE_NOT_RUN) {
        if (root.state == STATE_NOT_RUN) next_command(m, &list, "why", nothing, "");
        bool failed = run->status == RUN_STATUS_FAILED || run->status == RUN_STATUS_CANCELLED;
        if (failed) next_command(m, &list, "retry", nothing, "");
    }
    JSON_ADD(m->arena, out, {"next", json_filled(list)});
}

static struct json event_json(struct maker *m, const struct view_of_step *v)
{
    const struct run_await *wait = awaited_now(v);
    if (!wait) return json_none();
    return JSON_OF(m->arena, {"name", json_string(wait->name)}, {"correlation", json_some(wait->correlation)});
}

static struct json due_json(struct maker *m, const struct view_of_step *v)
{
    if (!v->note || v->note->state != NODE_RUNNING || v->state == STATE_APPROVAL) return json_none();
    uint32_t losses;
    bool rests = str_is(str_from(v->reason), "RESTS");
    return json_time_some(m->arena, rests ? kernel_rests(m->e->run, v->step, &losses) : v->note->due_ms);
}

static enum code put_parts(struct maker *m, struct json *out, const struct view_of_step *v, struct error *err)
{
    put_cause(m, out, v);
    put_dependencies(m, out, v);
    put_rule(m, out, v);
    enum code rc = put_when(m, out, v, err);
    if (rc) return rc;
    put_arcs(m, out, v);
    put_gate(m, out, v);
    put_loop(m, out, v);
    put_attempts(m, out, v);
    put_retry(m, out, v);
    put_rules(m, out, v);
    put_undefined(m, out, v);
    JSON_ADD(m->arena, out,
             {"due", due_json(m, v)},
             {"timeoutMs", json_nonzero(v->ps->timeout_ms)},
             {"onFailure", json_name(v->ps->on_failure == ON_FAILURE_HOLD ? "hold" : "fail_run")},
             {"event", event_json(m, v)},
             {"childRun", v->note ? json_some(v->note->child_run) : json_none()},
             {"reusedFrom", v->note ? json_some(v->note->reused_from) : json_none()},
             {"givenBy", v->note && step_given(v) ? json_some(v->note->actor) : json_none()});
    put_pause(m, out);
    put_present(m, out, v);
    put_signals(m, out, v);
    if (m->now_ms > 0) put_next(m, out, v);
    return OK;
}

// A step that has not been decided is in no decision of the log: what is checked is that the kernel would not decide it.
static enum code check_open(struct maker *m, const struct view_of_step *v, bool *same, struct error *err)
{
    struct join join;
    struct error local = {0};
    const struct run *run = m->e->run;
    *same = true;
    if (run->net) return OK; // its arcs were asked when they were
    if (!v->current || v->note || v->state != STATE_WAITING || run->status != RUN_STATUS_RUNNING || run_stops(run))
        return OK;
    enum code rc = kernel_join(run, v->step, &m->e->env, m->arena, &join, &local);
    if (rc == E_NOMEM) return error_nomem(err);
    bool waits = join.verdict == JOIN_WAITS, withheld = join.verdict == JOIN_WITHHELD;
    if (str_is(str_from(v->reason), "DEPENDENCIES")) *same = waits;
    if (str_is(str_from(v->reason), "RUN_FAILING")) *same = withheld;
    if (str_starts(str_from(v->reason), STR("UNDO"))) *same = join.verdict == JOIN_UNDO;
    if (str_is(str_from(v->reason), "DUE")) *same = !waits && !withheld;
    return OK;
}

enum code explain_step(const struct explain *e, struct str path, int64_t now_ms, struct arena *arena, struct json *out,
                       struct error *err)
{
    struct maker m = {.e = e, .arena = arena, .now_ms = now_ms};
    struct view_of_step v;
    if (!look_at(e, path, &v)) return error_set(err, E_NOT_FOUND, "the run has no step \"%.*s\"", STR_ARG(path));
    bool same;
    enum code rc = check_open(&m, &v, &same, err);
    if (rc) return rc;
    uint32_t checked = v.note ? v.note->checked : 1;
    struct str verdict = verdict_told(&m, &v);
    *out = JSON_OF(arena, {"runId", json_some(e->run->ids.run)}, {"step", json_some(path)},
                   {"kind", json_name(step_kind_name(v.ps->kind))}, {"visit", json_nonzero(v.visits > 1 ? v.visit : 0)},
                   {"visits", json_nonzero(v.visits > 1 ? v.visits : 0)},
                   {"at", JSON_OF(arena, {"seq", json_count(e->seq)}, {"time", json_time_some(arena, e->at_ms)})},
                   {"runStatus", json_name(run_status_name(e->run->status))},
                   {"state", json_name(explain_state_name(v.state))}, {"reason", json_name(v.reason)},
                   VERDICT(&m, verdict),
                   {"since", v.note ? json_time_some(arena, v.note->at_ms) : json_none()}, AT(state_place(&v)));
    put_proof(&m, out, checked, v.note ? v.note->reproduced : same, v.note ? v.note->doubt : (struct str){0});
    rc = put_parts(&m, out, &v, err);
    return rc ? rc : m.failed ? error_nomem(err) : json_made(out, err);
}
