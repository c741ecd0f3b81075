// The walk through the tasks of a step: begin one, take what came out, let its policy say how it goes on.
#include "kernel/net_inside.h"

#include "base/civil.h"
#include "json/make.h"

enum { VALUE_MAX = 48 * 1024 }; // of what a moment carries beside inputs and results: more is kept beside the log

const struct fault timeout_fault = {
    .code = STR_INIT("TIMEOUT"),
    .message = STR_INIT("the step took longer than timeout_s or deadline_s of its spec.policy.lifecycle"),
    .category = STR_INIT("timeout")};

enum code keep_apart(struct decide *d, struct moment *m)
{
    struct outcome *out = d->out;
    struct str kept = json_canon_kept(out->turn, &m->value, (size_t)64 << 20);
    struct made_blob *grown =
        arena_grow(out->turn, out->blobs, out->blob_count, out->blob_count + 1, sizeof(*grown), &out->blob_capacity);
    if (!kept.ptr || !grown) return error_nomem(d->err);
    out->blobs = grown;
    m->blob = sha256(kept);
    m->has_blob = true;
    m->blob_size = kept.len;
    out->blobs[out->blob_count++] = (struct made_blob){.sha256 = m->blob, .bytes = kept};
    return OK;
}

// What is left in the event of a value that is kept apart: of decisions what was decided, without what was passed on and set.
static struct json outline(struct arena *arena, const struct moment *m)
{
    if (m->kind != MOMENT_ROUTED && m->kind != MOMENT_TASK_DECIDED) return json_none();
    struct json out = json_object();
    for (uint32_t i = 0; i < m->value.count; i++) {
        const struct json_member *member = &m->value.members[i];
        struct json value = member->value;
        if (str_is(member->key, "set")) continue;
        bool selected = str_is(member->key, "selected");
        if (selected) value = json_array();
        for (uint32_t k = 0; selected && k < member->value.count; k++) {
            const struct json *from = &member->value.items[k];
            struct json one = json_object();
            for (uint32_t n = 0; n < from->count; n++)
                if (!str_is(from->members[n].key, "args"))
                    json_set(arena, &one, from->members[n].key, from->members[n].value);
            json_append(arena, &value, one);
        }
        json_set(arena, &out, member->key, value);
    }
    return out;
}

enum code net_emit(struct decide *d, struct moment *m)
{
    uint32_t place = m->step.len > 0 ? program_find(d->run->program, PROGRAM_TOP, m->step) : PROGRAM_TOP;
    bool small = m->value.type == 0 || net_weight(&m->value, VALUE_MAX) < VALUE_MAX;
    if (small || m->has_blob || net_is_result(m->kind)) return emit(d, m, place); // results have a limit of their own
    struct moment recorded = *m;
    enum code rc = keep_apart(d, &recorded);
    recorded.value = outline(d->out->turn, m);
    if (!rc) rc = json_made(&recorded.value, d->err);
    if (!rc) rc = emit(d, m, place); // folded as it is, recorded with the reference
    if (!rc) d->out->moments[d->out->moment_count - 1] = recorded;
    return rc;
}

struct moment lane_moment(const struct decide *d, enum moment_kind kind, uint32_t index)
{
    const struct run *run = d->run;
    const struct walk *lane = walk_at(run, index);
    const struct net_step *ns = &net_of_run(run)->steps[lane->place];
    struct moment m = {.kind = kind,
                       .by = moment_emitter(kind),
                       .step = run->program->steps[lane->place].id,
                       .visit = run->net->places[lane->place].visit,
                       .iteration = lane->iteration,
                       .logical = lane->attempt ? lane->attempt : 1,
                       .engine = lane_ref(run, index)->engine ? lane_ref(run, index)->engine : 1,
                       .at_ms = d->input->now_ms};
    if (!lane->taken) m.visit = 0; // nobody's: of a late result
    if (lane->pc >= ns->task_count) return m;
    m.task = ns->tasks[lane->pc].label;
    m.task_run = lane->runs[lane->pc] ? lane->runs[lane->pc] : 1;
    return m;
}

static struct net_view view_of(const struct decide *d, uint32_t index)
{
    return (struct net_view){
        .run = d->run, .env = d->env, .place = walk_at(d->run, index)->place, .lane = index, .arena = d->out->turn};
}

// ---- what a task is given
// The keychain's own texts may refer to other entries: marks again.
enum code kernel_task(const struct run *run, uint32_t index, const struct kernel_env *env, struct arena *arena,
                      struct json *out, struct error *err)
{
    const struct walk *lane = walk_at(run, index);
    const struct net_task *task = kernel_task_of(run, index);
    struct net_view view = {.run = run, .env = env, .place = lane->place, .lane = index, .arena = arena};
    struct template_scope scope = net_scope(&view);
    struct json with, iter = json_object();
    enum code rc = net_with(&view, task, &with, err);
    if (rc) return rc;
    struct json chain = net_of_run(run)->keychain;
    if (chain.type != 0) {
        const struct template_tree *tree;
        const struct json *where;
        rc = template_tree_compile(&chain, arena, &tree, &where, err);
        if (!rc) rc = template_tree_render(tree, &scope, net_limits(run), arena, &chain, err);
        if (rc) return rc;
    }
    if (str_is(task->kind, "playbook") && !net_iter(&view, &iter)) return error_nomem(err);
    bool shown = iter.count > 0 && net_weight(&iter, VALUE_MAX) < VALUE_MAX;
    *out = JSON_OF(arena, {"attempt", json_int(lane->attempt)}, {"document", json_string(run->program->file)},
                   {"execution_id", json_string(run->ids.run)}, {"iter", json_when(shown, iter)}, {"keychain", chain},
                   {"step", json_string(run->program->steps[lane->place].id)}, {"task", json_string(task->label)},
                   {"with", with});
    return json_made(out, err);
}

enum code kernel_return_step(const struct run *run, uint32_t index, const struct kernel_env *env, struct arena *arena,
                             struct str *out, struct error *err)
{
    const struct net_task *task = kernel_task_of(run, index);
    struct net_view view = {.run = run, .env = env, .place = walk_at(run, index)->place, .lane = index, .arena = arena};
    struct json with;
    *out = task->return_step;
    if (!task->return_rendered) return OK;
    enum code rc = net_with(&view, task, &with, err);
    if (!rc) *out = str_trim(json_text(json_key(&with, "return_step")));
    return rc;
}

// ---- attempts
static struct json gave(struct arena *arena, struct json result)
{
    return JSON_OF(arena, {"result", result}, {"status", json_word("ok")});
}

static struct json went_well(struct arena *arena)
{
    return gave(arena, json_null());
}

static struct json went_wrong(struct arena *arena, const char *kind, const struct fault *fault)
{
    struct fault seen = *fault;
    seen.category = str_from(kind);
    return JSON_OF(arena, {"error", net_fault_value(&seen, arena)}, {"status", json_word("error")});
}

static enum code answer_made(struct decide *d, uint32_t lane, const struct json *outcome)
{
    return json_ok(outcome) ? lane_answer(d, lane, outcome) : error_nomem(d->err);
}

enum code lane_fault(struct decide *d, uint32_t lane, const struct fault *fault)
{
    static const struct {
        const char *code, *kind;
    } kinds[] = {{"TIMEOUT", "timeout"},
                 {"CANCELLED", "cancelled"},
                 {"PAYLOAD_TOO_LARGE", "schema"},
                 {"OUTPUT_NOT_JSON", "parse"},
                 {"TEMPLATE_ERROR", "transform"},
                 {"CHILD_FAILED", "playbook"},
                 {"REFERENCE_NOT_AVAILABLE", "not_found"},
                 {"CHILD_CANCELLED", "cancelled"},
                 {"CHILD_NOT_STARTED", "playbook"},
                 {ASSERT_EXPECTS, "schema"}};
    const char *kind = "unknown";
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (str_is(fault->code, kinds[i].code)) kind = kinds[i].kind;
    struct json outcome = went_wrong(d->out->turn, kind, fault);
    return answer_made(d, lane, &outcome);
}

static enum code render_with(struct decide *d, uint32_t index, const struct net_task *task, struct json *out,
                             struct error *err)
{
    struct net_view view = view_of(d, index);
    return net_with(&view, task, out, err);
}

static enum code wait_until(struct decide *d, uint32_t index, const struct net_task *task, int64_t *due,
                            struct fault *fault)
{
    struct json with;
    struct error local = {0};
    enum code rc = render_with(d, index, task, &with, &local);
    if (net_is_grave(rc)) return error_set(d->err, rc, "%s", local.message);
    static const char *const names[] = {"duration", "seconds", "delay", "duration_s"};
    const struct json *until = json_key(&with, "until"), *length = NULL;
    for (size_t i = 0; !length && i < ARRAY_COUNT(names); i++) length = json_key(&with, names[i]);
    double seconds = 0;
    bool ok = rc == OK;
    if (ok && until) {
        ok = civil_parse(str_trim(json_text(until)), due);
        if (ok && *due < WAIT_OVER_MS) *due = WAIT_OVER_MS;
    } else if (ok && length && length->type == JSON_STRING) {
        int64_t ms = 0;
        ok = duration_parse(str_trim(length->text), &ms);
        *due = d->input->now_ms + ms;
    } else if (ok) {
        ok = length && json_double(length, &seconds) && seconds >= 0 && seconds < 1e9;
        *due = d->input->now_ms + (int64_t)(seconds * 1000);
    }
    if (ok) return OK;
    if (!rc) (void)error_set(&local, E_INVALID, "a wait needs `seconds`, `duration` or `until`");
    *fault = kernel_template_fault(d->out->turn, &local);
    return OK;
}

// What cannot be rendered fails when it is executed, with the reason.
static enum code expected(struct decide *d, uint32_t index, const struct net_task *task, struct fault *fault)
{
    if (task->expects.count == 0) return OK;
    struct json with;
    struct error local = {0};
    enum code rc = render_with(d, index, task, &with, &local);
    if (net_is_grave(rc)) return error_set(d->err, rc, "%s", local.message);
    return rc ? OK : assert_inputs(task, &with, d->out->turn, fault, d->err);
}

static enum code await_begin(struct decide *d, uint32_t index, const struct net_task *task)
{
    struct json with;
    struct error local = {0};
    enum code rc = render_with(d, index, task, &with, &local);
    if (net_is_grave(rc)) return error_set(d->err, rc, "%s", local.message);
    if (!rc) return await_start(d, index, &with);
    struct fault fault = kernel_template_fault(d->out->turn, &local);
    return lane_fault(d, index, &fault);
}

enum code lane_begin(struct decide *d, uint32_t index)
{
    INVARIANT(lane_phase(d->run, index) == LANE_READY || lane_phase(d->run, index) == LANE_DELAYED);
    const struct net_task *task = kernel_task_of(d->run, index);
    struct moment m = lane_moment(d, MOMENT_ATTEMPT_STARTED, index);
    m.logical = walk_at(d->run, index)->attempt + 1;
    m.engine = 1;
    struct fault fault = {0};
    enum body body = d->run->route->body(d->run, index);
    bool waits = body == BODY_WAIT, child = body == BODY_CHILD, awaits = body == BODY_EVENT;
    if (waits) {
        enum code rc = wait_until(d, index, task, &m.due_ms, &fault);
        if (rc) return rc;
    } else if (child) {
        struct str path = net_path(d->run, index, d->out->turn);
        if (path.ptr) m.run_ref = net_child_name(d->run->ids.run, path, d->run->net->serial + 1, d->out->turn);
        if (!m.run_ref.ptr) return error_nomem(d->err);
    }
    int64_t timeout_ms;
    struct net_view view = view_of(d, index);
    enum code rc = task_timeout(&view, task, &timeout_ms, &fault, d->err);
    if ((child || awaits) && timeout_ms > 0) m.due_ms = d->input->now_ms + timeout_ms;
    if (!rc && fault.code.len == 0) rc = expected(d, index, task, &fault);
    if (!rc) rc = net_emit(d, &m);
    if (rc) return rc;
    if (fault.code.len > 0) return lane_fault(d, index, &fault);
    if (task->in_process) {
        struct json outcome = went_well(d->out->turn);
        return answer_made(d, index, &outcome);
    }
    return awaits ? await_begin(d, index, task) : attempt_order(d, index);
}

// Between two tries, or between two tasks, when the time of the visit is over.
enum code lane_timeout(struct decide *d, uint32_t index)
{
    const struct walk *lane = walk_at(d->run, index);
    struct moment m = lane_moment(d, lane->iteration > 0 ? MOMENT_ITERATION_FAILED : MOMENT_STEP_FAILED, index);
    m.task = (struct str){0};
    m.task_run = 0;
    m.logical = m.engine = 1;
    m.fault = timeout_fault;
    m.duration_ms = elapsed_ms(d, lane->started_ms);
    return net_emit(d, &m);
}

enum code lane_go(struct decide *d, uint32_t index)
{
    const struct walk *lane = walk_at(d->run, index);
    const struct net_step *ns = &net_of_run(d->run)->steps[lane->place];
    INVARIANT(lane_phase(d->run, index) == LANE_READY);
    if (d->run->net->places[lane->place].overdue) return lane_timeout(d, index);
    struct moment m = lane_moment(d, MOMENT_TASK_STARTED, index);
    m.task_run = lane->runs[lane->pc] + 1;
    m.logical = 1;
    struct net_view view = view_of(d, index);
    enum code rc = net_record_inputs(&view, &ns->tasks[lane->pc], &m, d->err);
    if (!rc) rc = net_emit(d, &m);
    return rc ? rc : lane_begin(d, index);
}

// What the result says of the task that is in flight.
enum code lane_done(struct decide *d, uint32_t index)
{
    if (d->run->route->body(d->run, index) == BODY_EVENT) {
        struct json outcome = gave(d->out->turn, d->input->value);
        return answer_made(d, index, &outcome);
    }
    return lane_answer(d, index, &d->input->value);
}

// The time of a wait has come.
enum code lane_wake(struct decide *d, uint32_t index)
{
    if (d->run->route->body(d->run, index) == BODY_EVENT) return await_late(d, index);
    struct json outcome = went_well(d->out->turn);
    return answer_made(d, index, &outcome);
}

// ---- what came out
// What rules see: `result` as it is, and under its other names; http: there with the members of the body beside those of the answer.
enum code net_outcome_seen(struct arena *arena, const struct json *outcome, struct json *out, struct error *err)
{
    struct json data = json_null(), made = json_object();
    const struct json *result = json_key(outcome, "result");
    if (result) data = *result;
    enum code rc = net_sql_seen(arena, &data, err);
    if (rc) return rc;
    struct json whole = data;
    const struct json *body = json_key(outcome, "http") ? json_key(&data, "data") : NULL;
    if (json_is(body, JSON_OBJECT)) data = json_joined(arena, body, &data);
    for (uint32_t i = 0; i < outcome->count; i++)
        if (!STR_AMONG(outcome->members[i].key, "data", "response", "result"))
            json_set(arena, &made, outcome->members[i].key, outcome->members[i].value);
    JSON_ADD(arena, &made, {"data", data}, {"response", data}, {"result", json_when(result, whole)},
             {"http", json_when(!json_key(outcome, "http"), json_object())});
    *out = made;
    return json_made(out, err);
}

// The outcome as it is recorded, without its result; `small`: a result that is a small object stays.
static enum code without_result(struct arena *arena, const struct json *outcome, bool small, struct json *out,
                                struct error *err)
{
    struct json made = json_object();
    const struct json *result = json_key(outcome, "result");
    bool kept = small && json_is(result, JSON_OBJECT) && net_weight(result, NET_PART_MAX) < NET_PART_MAX;
    for (uint32_t i = 0; i < outcome->count; i++)
        if (kept || !str_is(outcome->members[i].key, "result"))
            json_set(arena, &made, outcome->members[i].key, outcome->members[i].value);
    *out = made;
    return json_ok(out) ? net_canon(arena, out, err) : error_nomem(err);
}

static struct fault fault_of_outcome(const struct json *outcome)
{
    const struct json *error = json_key(outcome, "error");
    struct str code = json_text(json_key(error, "code")), kind = json_text(json_key(error, "kind"));
    const struct json *retryable = json_key(error, "retryable");
    struct fault fault = {.code = code.len > 0   ? code
                                  : kind.len > 0 ? kind
                                                 : STR("TASK_FAILED"),
                          .message = json_text(json_key(error, "message")),
                          .category = kind,
                          .retryable = json_true(retryable)};
    if (fault.message.len == 0) fault.message = STR("the task failed");
    return fault;
}

struct verdict {
    enum net_do action;
    const struct net_rule *rule; // NULL: none matched
    uint32_t index;
    uint32_t attempts; // retry
    int64_t delay_ms;
    struct json set;
    struct fault fault; // why it fails although its outcome did not
};

static enum code match(struct decide *d, struct net_view *view, const struct net_task *task, struct verdict *v)
{
    const struct net_rule *otherwise = NULL;
    for (uint32_t i = 0; i < task->rule_count && !v->rule; i++) {
        const struct net_rule *rule = &task->rules[i];
        bool holds = false;
        if (rule->otherwise) {
            if (!otherwise) otherwise = rule;
            continue;
        }
        enum code rc = net_holds(view, &rule->when, &holds, d->err);
        if (rc) return rc;
        if (holds) v->rule = rule;
    }
    if (!v->rule) v->rule = otherwise;
    if (v->rule) v->index = (uint32_t)(v->rule - task->rules);
    return OK;
}

// In a parallel loop a key of ctx is written once (C-50).
static bool conflicts(const struct run *run, const struct walk *lane, const struct json *set)
{
    const struct json *ctx = json_key(set, "ctx");
    const struct json *written = &run->net->places[lane->place].written;
    if (lane->iteration == 0 || !net_of_run(run)->steps[lane->place].loop.parallel || !json_is(ctx, JSON_OBJECT))
        return false;
    for (uint32_t i = 0; i < ctx->count; i++) {
        const struct json *before = json_get(written, ctx->members[i].key);
        if (before && !json_equal(before, &ctx->members[i].value)) return true;
    }
    return false;
}

static enum code tries(struct decide *d, struct net_view *view, struct verdict *v, struct fault *fault)
{
    v->attempts = v->rule->attempts;
    v->delay_ms = v->rule->delay_ms;
    enum code rc = net_many(view, v->rule->attempts_of, "attempts", NET_ATTEMPTS_MAX, &v->attempts, fault, d->err);
    return rc ? rc : net_ms(view, v->rule->delay_of, "delay", &v->delay_ms, fault, d->err);
}

static enum code refuse(struct verdict *v, const struct fault *fault)
{
    v->fault = *fault;
    v->action = NET_FAIL;
    v->set = json_object();
    return OK;
}

static enum code judge_task(struct decide *d, uint32_t index, const struct json *outcome, bool ok, struct verdict *v)
{
    const struct net_task *task = kernel_task_of(d->run, index);
    const struct walk *lane = walk_at(d->run, index);
    struct json seen;
    enum code rc = net_outcome_seen(d->out->turn, outcome, &seen, d->err);
    if (rc) return rc;
    if (d->input->kind == INPUT_RESULT && d->input->step == index && d->input->has_blob) {
        struct json ref = net_reference(d->out->turn, &d->input->blob, d->input->blob_size, d->input->store);
        JSON_ADD(d->out->turn, &seen, {"ref", ref});
        if (!json_ok(&seen)) return error_nomem(d->err);
    }
    struct net_view view = view_of(d, index);
    view.outcome = &seen;
    struct error why = {0}, *err = d->err;
    d->err = &why;
    rc = match(d, &view, task, v);
    d->err = err;
    if (rc == E_LIMIT || rc == E_NOT_FOUND) {
        struct fault fault = kernel_template_fault(d->out->turn, &why);
        return refuse(v, &fault);
    }
    if (rc) return error_set(d->err, rc, "%s", why.message);
    v->action = ok ? NET_CONTINUE : NET_FAIL;
    if (d->run->net->places[lane->place].overdue) { // nothing begins any more
        v->rule = NULL;
        v->action = NET_FAIL;
        v->set = json_object();
        v->fault = timeout_fault;
        return OK;
    }
    if (task->has_policy && !v->rule && !task->unmatched_fails) v->action = NET_CONTINUE; // C-46
    if (task->has_policy && !v->rule && task->unmatched_fails) v->action = NET_FAIL;
    if (v->rule) v->action = v->rule->action;
    if (v->action == NET_RETRY) {
        struct fault wrong = {0};
        rc = tries(d, &view, v, &wrong);
        if (rc || wrong.code.len > 0) return rc ? rc : refuse(v, &wrong);
    }
    if (v->action == NET_RETRY && lane->attempt >= v->attempts) v->action = ok ? NET_CONTINUE : NET_FAIL;
    if (v->action == NET_JUMP && v->rule->target == PROGRAM_TOP && lane->pc == 0) v->action = NET_FAIL;
    if (v->action == NET_FAIL && ok)
        v->fault = (struct fault){
            .code = STR("POLICY_FAIL"), .message = STR("the task's policy says fail"), .category = STR("business")};
    struct error local = {0};
    v->set = json_object();
    if (v->rule) rc = net_patches(&view, &v->rule->sets, &v->set, &local);
    view.result = true;
    if (!rc && v->action != NET_RETRY && v->action != NET_FAIL) rc = net_patches(&view, &task->sets, &v->set, &local);
    if (net_is_grave(rc)) return error_set(d->err, rc, "%s", local.message);
    bool clash = !rc && !net_of_run(d->run)->as_noetl && conflicts(d->run, lane, &v->set);
    if (!rc && !clash) return OK;
    static const struct fault twice = {
        .code = STR_INIT("ctx_conflict"),
        .message = STR_INIT("another iteration of the parallel loop has set the same variable of ctx to another value"),
        .category = STR_INIT("ctx_conflict")};
    struct fault wrong = clash ? twice : kernel_template_fault(d->out->turn, &local);
    return refuse(v, &wrong);
}

static const char *const action_words[] = {[NET_CONTINUE] = "continue",
                                           [NET_RETRY] = "retry",
                                           [NET_JUMP] = "jump",
                                           [NET_BREAK] = "break",
                                           [NET_FAIL] = "fail"};

static enum code record_decision(struct decide *d, uint32_t index, const struct verdict *v)
{
    const struct walk *lane = walk_at(d->run, index);
    const struct net_step *ns = &net_of_run(d->run)->steps[lane->place];
    struct arena *turn = d->out->turn;
    struct moment m = lane_moment(d, MOMENT_TASK_DECIDED, index);
    struct json action = json_object(), delay;
    if (v->action == NET_RETRY) {
        struct retry_policy policy = {.delay_ms = v->delay_ms, .backoff = v->rule->backoff};
        m.due_ms = d->input->now_ms + retry_delay_ms(&policy, lane->attempt, d->input->random);
        if (!net_as_seconds(turn, v->delay_ms, &delay)) return error_nomem(d->err);
        JSON_ADD(turn, &action, {"attempts", json_int(v->attempts)},
                 {"backoff", json_word(backoff_name(v->rule->backoff))}, {"delay", delay});
    }
    JSON_ADD(turn, &action, {"do", json_word(action_words[v->action])});
    if (v->action == NET_JUMP) {
        uint32_t to = v->rule->target == PROGRAM_TOP ? lane->pc - 1 : v->rule->target;
        JSON_ADD(turn, &action, {"to", json_string(ns->tasks[to].label)});
    }
    m.value = JSON_OF(turn, {"action", action}, {"matched_rule_index", v->rule ? json_int(v->index) : json_null()},
                      {"set", json_filled(v->set)});
    if (!json_ok(&m.value)) return error_nomem(d->err);
    enum code rc = net_emit(d, &m);
    if (rc || v->action != NET_RETRY || d->input->idle || !run_goes(d->run)) return rc;
    return lane_timer(d, index);
}

// Whether the input is what came out of the attempt in flight: of one that began since, on the same lane, it is not.
static bool is_its_result(const struct decide *d, uint32_t index)
{
    return d->input->kind == INPUT_RESULT && d->input->step == index &&
           d->input->logical == lane_ref(d->run, index)->logical;
}

static enum code end_task(struct decide *d, uint32_t index, const struct json *outcome, const struct fault *fault)
{
    INVARIANT(lane_phase(d->run, index) == LANE_ANSWERED);
    struct moment m = lane_moment(d, fault->code.len > 0 ? MOMENT_TASK_FAILED : MOMENT_TASK_DONE, index);
    m.duration_ms = elapsed_ms(d, walk_at(d->run, index)->task_ms);
    m.fault = *fault;
    if (m.kind == MOMENT_TASK_FAILED) {
        bool apart = d->input->kind == INPUT_RESULT && d->input->step == index && d->input->has_blob;
        enum code rc = without_result(d->out->turn, outcome, !apart, &m.value, d->err);
        return rc ? rc : net_emit(d, &m);
    }
    const struct json *result = json_key(outcome, "result");
    bool apart = is_its_result(d, index) && d->input->has_blob;
    if (result) m.value = *result;
    if (is_its_result(d, index)) m.artifacts = d->input->artifacts;
    if (apart) {
        m.has_blob = true;
        m.blob = d->input->blob;
        m.blob_size = d->input->blob_size;
        m.store = d->input->store;
        m.value = (struct json){0};
        const struct net_task *task = kernel_task_of(d->run, index);
        enum code rc = net_extract(d->out->turn, task, result, &m.extracted, d->err);
        if (rc) return rc;
        struct moment stored = m;
        if (result && !net_preview(d->out->turn, result, task->preview_max, &stored.preview))
            return error_nomem(d->err);
        stored.kind = MOMENT_RESULT_STORED;
        stored.by = moment_emitter(stored.kind);
        stored.duration_ms = 0;
        stored.artifacts = json_none();
        stored.reason = d->input->elsewhere;
        rc = net_emit(d, &stored);
        if (rc) return rc;
    }
    return net_emit(d, &m);
}

// An outcome that went well without what the task says it returns has not: its result stays beside the error.
static enum code returned(struct decide *d, const struct net_task *task, const struct json *outcome, struct json *made)
{
    struct fault fault = {0};
    struct arena *turn = d->out->turn;
    const struct json *result = json_key(outcome, "result");
    *made = *outcome;
    if (task->returns.count == 0 || !str_is(json_text(json_key(outcome, "status")), "ok")) return OK;
    enum code rc = assert_result(task, result, turn, &fault, d->err);
    if (rc || fault.code.len == 0) return rc;
    *made = went_wrong(turn, "schema", &fault);
    json_fill(turn, made, outcome);
    return json_ok(made) ? net_canon(turn, made, d->err) : error_nomem(d->err);
}

enum code lane_answer(struct decide *d, uint32_t index, const struct json *given)
{
    INVARIANT(lane_phase(d->run, index) == LANE_FLIGHT);
    const struct net_task *task = kernel_task_of(d->run, index);
    struct json seen;
    const struct json *outcome = &seen;
    enum code rc = returned(d, task, given, &seen);
    if (rc) return rc;
    bool ok = str_is(json_text(json_key(outcome, "status")), "ok");
    struct fault fault = {0};
    if (!ok) fault = fault_of_outcome(outcome);
    struct moment m = lane_moment(d, ok ? MOMENT_ATTEMPT_DONE : MOMENT_ATTEMPT_FAILED, index);
    m.duration_ms = is_its_result(d, index) ? d->input->duration_ms : elapsed_ms(d, lane_ref(d->run, index)->started_ms);
    m.fault = fault;
    if (!task->in_process || !ok) rc = without_result(d->out->turn, outcome, false, &m.value, d->err);
    if (!rc) rc = net_emit(d, &m);
    struct verdict v = {.action = ok ? NET_CONTINUE : NET_FAIL};
    if (!rc && !d->run->cancelling) rc = judge_task(d, index, outcome, ok, &v);
    if (rc) return rc;
    bool told_of = task->has_policy || v.set.count > 0 || !task->quiet; // C-28
    if (!d->run->cancelling && told_of) rc = record_decision(d, index, &v);
    if (rc || v.action == NET_RETRY) return rc;
    return end_task(d, index, outcome, v.fault.code.len > 0 ? &v.fault : &fault);
}
