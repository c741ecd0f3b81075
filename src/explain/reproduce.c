// Before a moment is folded, the kernel's functions are asked what they would decide in this state. What they say is held
// against the moment: a decision that comes out the same is reproduced.
#include "explain/inside.h"

static enum code count(struct explain *e, struct step_finding *note, const struct moment *m, bool same,
                       const char *said, struct error *err)
{
    e->checked++;
    e->reproduced += same;
    if (note) note->checked++;
    if (note) note->reproduced += same;
    if (same) return OK;
    struct str doubt = arena_format(&e->arena, "%s of %.*s: %s", moment_name(m->kind),
                                    m->step.len ? (int)m->step.len : 7, m->step.len ? m->step.ptr : "the run", said);
    if (!doubt.ptr) return error_nomem(err);
    if (e->doubt.len == 0) e->doubt = doubt;
    if (note && note->doubt.len == 0) note->doubt = doubt;
    return OK;
}

// ---- conditions

static bool atom_json(const struct when_atom *atom, bool first, enum code rc, const struct when_step *step,
                      const struct error *err, struct arena *arena, struct json *out)
{
    struct str shown = {0};
    if (!rc) shown = shorten(arena, step->left, TEXT_SHORT);
    if (shown.ptr && shown.ptr == step->left.ptr) shown = arena_copy(arena, shown); // an output dies with its iteration
    *out = JSON_OF(arena, {"text", json_string(atom->text)},
                   {"joined", json_when(!first, json_word(atom->or_before ? "||" : "&&"))},
                   {"reference", json_string(atom->left.text)}, {"operator", json_string(atom->operator_text)},
                   {"right", json_string(atom->right)},
                   {"error", rc ? json_copied(arena, str_from(err->message)) : json_none()},
                   {"left", rc ? json_none() : json_text_made(shown)},
                   {"result", json_when(!rc, json_bool(step->result))});
    return json_ok(out);
}

enum code atoms_now(const struct explain *e, uint32_t step, struct arena *arena, struct json *out, struct error *err)
{
    struct kernel_scope context = {.run = e->run, .step = step, .env = &e->env, .strict = true};
    struct scope scope = kernel_scope(&context);
    size_t atom_count;
    const struct when_atom *atoms = when_atoms(e->program->steps[step].when, &atom_count);
    *out = json_array();
    for (size_t i = 0; i < atom_count; i++) {
        struct when_step value = {0};
        struct error local = {0};
        struct json atom;
        enum code rc = when_atom_eval(&atoms[i], &scope, arena, &value, &local);
        if (rc == E_NOMEM) return error_nomem(err);
        if (!atom_json(&atoms[i], i == 0, rc, &value, &local, arena, &atom) || !json_push(arena, out, atom))
            return error_nomem(err);
    }
    return OK;
}

// ---- the decision about a step that waited

static enum code ask_join(struct explain *e, struct step_finding *note, struct log_position at, struct join *join,
                          struct error *err)
{
    struct parents parents = kernel_parents(e->run, note->step);
    struct error local = {0};
    arena_reset(&e->scratch);
    enum code rc = kernel_join(e->run, note->step, &e->env, &e->scratch, join, &local);
    if (rc == E_NOMEM) return error_nomem(err);
    if (rc) *join = (struct join){.verdict = JOIN_FAULT}; // an output is not there any more
    note->join = (struct join_finding){.at = at,
                                       .verdict = join->verdict,
                                       .success = parents.success,
                                       .failed = parents.failed,
                                       .skipped = parents.skipped};
    bool reached = join->verdict == JOIN_START || join->verdict == JOIN_FALSE || join->verdict == JOIN_FAULT;
    if (!reached || !e->program->steps[note->step].when) return OK;
    return atoms_now(e, note->step, &e->arena, &note->join.atoms, err);
}

static enum code judge_start(struct explain *e, const struct moment *m, struct step_finding *note,
                             struct log_position at, struct error *err)
{
    enum node_state state = kernel_state(e->run, note->step);
    struct run_attempt last = kernel_attempt(e->run, note->step);
    bool runs = e->run->status == RUN_STATUS_RUNNING && !e->run->cancelling;
    if (state == NODE_HELD)
        return count(e, note, m, runs && last.base == last.logical, "nobody has asked for another attempt", err);
    if (state == NODE_DELAYED) return count(e, note, m, runs, "the run is not running", err);
    struct join join;
    enum code rc = ask_join(e, note, at, &join, err);
    if (rc) return rc;
    // What a worker starts was let through; what the engine itself starts is the form of a result that is taken over, and
    // nothing but the dependencies is asked (or it starts to fail at once: FAULT).
    if (m->kind == MOMENT_STEP_STARTED && m->by == EMITTER_ENGINE && join.verdict != JOIN_FAULT) {
        note->join = (struct join_finding){.reuse = true};
        return count(e, note, m, runs && kernel_parents(e->run, note->step).waiting == 0, "a dependency has not ended", err);
    }
    if (join.verdict == JOIN_UNDO)
        return count(e, note, m, kernel_undoes_next(e->run, note->step), "it is not its turn to undo", err);
    bool starts = join.verdict == JOIN_START || join.verdict == JOIN_FAULT;
    return count(e, note, m, runs && starts, "its rule and condition do not let it start", err);
}

static bool asked_to_skip(const struct explain *e, struct str path)
{
    for (size_t i = 0; i < e->signal_count; i++)
        if (e->signals[i].accepted && str_is(e->signals[i].type, "SKIP_STEP") && str_eq(e->signals[i].step, path))
            return true;
    return false;
}

static enum code judge_skip(struct explain *e, const struct moment *m, struct step_finding *note,
                            struct log_position at, struct error *err)
{
    if (str_is(m->reason, SKIP_OPERATOR))
        return count(e, note, m, asked_to_skip(e, m->step), "nobody has asked to skip it", err);
    struct join join;
    enum code rc = ask_join(e, note, at, &join, err);
    if (rc) return rc;
    if (str_is(m->reason, SKIP_NOTHING_TO_UNDO))
        return count(e, note, m, join.verdict == JOIN_UNDO && kernel_end(e->run) == MOMENT_RUN_COMPLETED, "the run has not come out well",
                     err);
    return count(e, note, m, join.skip && str_is(m->reason, join.skip), "its rule and condition say otherwise", err);
}

// ---- the decision about a failed attempt, a loop, the end

static bool loop_agrees(const struct explain *e, const struct moment *m, uint32_t step)
{
    if (e->program->steps[step].kind != STEP_LOOP || e->run->cancelling) return true;
    enum loop_verdict verdict = kernel_loop(e->run, step);
    if (str_is(m->fault.code, FAULT_ITERATIONS)) return verdict == LOOP_AGAIN; // the limit of then is in the log
    return verdict == (str_is(m->fault.code, "LOOP_EXHAUSTED") ? LOOP_EXHAUSTED : LOOP_BODY_FAILED);
}

static enum code judge_failure(struct explain *e, const struct moment *m, struct step_finding *note, struct error *err)
{
    struct attempt_finding *attempt = note->attempt_count ? &note->attempts[note->attempt_count - 1] : NULL;
    bool last = m->kind == MOMENT_STEP_FAILED;
    bool first = attempt && attempt->cause == START_JOIN;
    if (first && note->join.verdict == JOIN_FAULT) // the condition could not be evaluated: no policy is asked
        return count(e, note, m, last && str_is(m->fault.code, "REFERENCE_NOT_AVAILABLE"), "its condition is fine",
                     err);
    enum retry_verdict verdict = kernel_retry(e->run, note->step, &m->fault);
    if (attempt) attempt->retry = verdict;
    note->loop = e->program->steps[note->step].kind == STEP_LOOP ? kernel_loop(e->run, note->step) : 0;
    if (!loop_agrees(e, m, note->step)) return count(e, note, m, false, "the loop did not fail", err);
    return count(e, note, m, (verdict == RETRY_AGAIN) != last, "the retry policy says otherwise", err);
}

static enum code judge_loop(struct explain *e, const struct moment *m, struct step_finding *note,
                            enum loop_verdict want, struct error *err)
{
    note->loop = want;
    if (want == LOOP_AGAIN && kernel_iteration(e->run, note->step) == 0) return OK; // the first is not decided by anything
    return count(e, note, m, kernel_loop(e->run, note->step) == want, "the loop's condition says otherwise", err);
}

static bool rejected_start(const struct explain *e)
{
    const struct signal_finding *last = e->signal_count ? &e->signals[e->signal_count - 1] : NULL;
    return e->run->status == RUN_STATUS_PENDING && last && last->accepted && str_is(last->type, "REJECT");
}

static enum code judge_end(struct explain *e, const struct moment *m, struct error *err)
{
    bool same = kernel_end(e->run) == m->kind || (m->kind == MOMENT_RUN_CANCELLED && rejected_start(e));
    if (!same && m->kind == MOMENT_RUN_FAILED) {
        struct fault fault;
        arena_reset(&e->scratch);
        enum code rc = kernel_workload_fault(e->run, &e->scratch, &fault, err);
        if (rc) return rc;
        same = fault.code.len > 0 && str_eq(fault.code, m->fault.code) && str_eq(fault.message, m->fault.message);
    }
    return count(e, NULL, m, same, "the run would not end like this", err);
}

enum code judge_moment(struct explain *e, const struct moment *m, struct step_finding *note, struct log_position at,
                       struct error *err)
{
    if (moment_is_terminal(m->kind)) return judge_end(e, m, err);
    if (!note || m->visit) return OK; // a playbook's log has its decisions itself
    bool is_loop = e->program->steps[note->step].kind == STEP_LOOP;
    switch ((int)m->kind) {
    case MOMENT_STEP_STARTED:
        return judge_start(e, m, note, at, err);
    case MOMENT_STEP_DELAYED: // the first attempt: it was let through, but not yet
        return kernel_state(e->run, note->step) == NODE_WAITING ? judge_start(e, m, note, at, err) : OK;
    case MOMENT_STEP_SKIPPED:
        return judge_skip(e, m, note, at, err);
    case MOMENT_ATTEMPT_FAILED:
    case MOMENT_STEP_FAILED:
        return judge_failure(e, m, note, err);
    case MOMENT_ITERATION_STARTED:
        return judge_loop(e, m, note, LOOP_AGAIN, err);
    case MOMENT_STEP_COMPLETED:
        // What another run gave, or a person, was not decided here.
        return is_loop && m->run_ref.len == 0 && m->actor.len == 0 ? judge_loop(e, m, note, LOOP_DONE, err) : OK;
    default:
        return OK;
    }
}
