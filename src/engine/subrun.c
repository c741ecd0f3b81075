// Child runs: a step of one run is a run of its own, with its own log. The parent waits for its end.
#include "engine/inside.h"

#include "json/make.h"

// The id alone does not make a run a child: anybody may start a run under it.
static bool is_child(struct engine *engine, const struct resident *child, const struct resident *parent, uint32_t step)
{
    const struct start_facts *start = &child->run->start;
    const struct queue *q = &engine->queue;
    for (size_t i = 0; run_log_last_seq(child->log) == 0 && i < q->count; i++) { // its start is on the way
        const struct queued *queued = &q->items[(q->head + i) & (q->capacity - 1)];
        if (queued->resident == child && queued->input.kind == INPUT_START) start = queued->facts;
    }
    // The id names attempt and iteration, which the parent may have left behind since.
    return str_eq(start->parent_run, parent->ids.run) && kernel_find(parent->run, start->parent_step) == step;
}

// What the child gave: one step without dependents gives its output as it is, several give an object by id.
static enum code child_outputs(struct engine *engine, const struct run *run, struct json *out, uint64_t *total,
                               struct error *err)
{
    struct arena *arena = &engine->turn;
    struct json all = json_object();
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->program->top_count; i++) {
        if (run->program->steps[i].dependent_count > 0 || kernel_state(run, i) != NODE_SUCCESS) continue;
        struct json value;
        if (!kernel_output_fits(run, i, total)) return error_set(err, E_LIMIT, RESULT_TOO_LARGE);
        enum code rc = kernel_output(run, i, &engine->env, arena, &value, err);
        if (rc) return rc;
        if (value.type == 0) value = json_null();
        json_set(arena, &all, run->program->steps[i].id, value);
        count++;
    }
    if (!json_ok(&all)) return error_nomem(err);
    *out = count == 1 ? all.members[0].value : all;
    return OK;
}

static int64_t lifetime_ms(const struct run *child)
{
    return child->ended_ms > child->started_ms && child->started_ms > 0 ? child->ended_ms - child->started_ms : 0;
}

// Of a child whose child failed: what went wrong there, without the way to it.
static struct str root_cause(struct str message)
{
    struct str rest = message;
    while (str_starts(rest, STR("child run "))) {
        size_t at = str_find(rest, ':', 0);
        if (at + 2 >= rest.len || rest.ptr[at + 1] != ' ') break;
        rest = str_slice(rest, at + 2, rest.len);
    }
    return rest;
}

// ---- results for the parent. `whose` names the child: the attempt of its step, and its place in the list.

static enum code tell_fault(struct engine *engine, struct resident *parent, const struct run_hold *whose,
                            struct fault fault, struct error *err)
{
    enum code rc = input_fault(engine, parent, whose->lane, whose->logical, whose->engine, fault, err);
    if (rc == OK) queue_last(engine)->input.member = whose->member;
    return rc;
}

static enum code tell_cancelled(struct engine *engine, struct resident *parent, const struct run_hold *whose,
                                struct error *err)
{
    struct fault fault = {.code = STR("CANCELLED"),
                          .message = whose->member ? STR("it had not begun") : STR("the run was cancelled"),
                          .category = STR("")};
    return tell_fault(engine, parent, whose, fault, err);
}

static enum code tell_not_started(struct engine *engine, struct resident *parent, const struct run_hold *whose,
                                  struct str why, struct error *err)
{
    return tell_fault(
        engine, parent, whose,
        (struct fault){.code = STR("CHILD_NOT_STARTED"), .message = why, .category = STR("validation")}, err);
}

// The entry of a list names the step that failed; a step that has one child names the child.
static void why_failed(const struct run *child, bool listed, struct buf *text)
{
    bool cancelled = child->status == RUN_STATUS_CANCELLED;
    struct str why = child->fault.message;
    if (listed && child->failed_step.len > 0) {
        buf_printf(text, "%.*s: %.*s", STR_ARG(child->failed_step), STR_ARG(why));
        return;
    }
    if (listed)
        buf_printf(text, "the child run %s", cancelled ? "was cancelled" : "failed");
    else
        buf_printf(text, "child run %.*s %s", STR_ARG(child->ids.run), cancelled ? "was cancelled" : "failed");
    if (child->failed_step.len > 0) {
        struct str cause = root_cause(why);
        buf_printf(text, " at %.*s%s: %.*s", STR_ARG(child->failed_step),
                   cause.len < why.len ? ", in a run below it" : "", STR_ARG(cause));
    } else if (why.len > 0) {
        buf_printf(text, ": %.*s", STR_ARG(why));
    }
}

static enum code deliver_failure(struct engine *engine, struct resident *parent, const struct run_hold *whose,
                                 const struct run *child, struct error *err)
{
    bool cancelled = child->status == RUN_STATUS_CANCELLED;
    struct buf text SCOPED(buf_release) = buf_of(8192);
    INVARIANT(run_status_terminal(child->status));
    why_failed(child, whose->member > 0, &text);
    struct fault fault = {.code = cancelled ? STR("CHILD_CANCELLED") : STR("CHILD_FAILED"),
                          .message = buf_str(&text),
                          .category = STR("business"),
                          .retryable = !cancelled};
    return tell_fault(engine, parent, whose, fault, err);
}

static enum code outputs_of(struct engine *engine, struct resident *parent, const struct run_hold *whose,
                            const struct run *child, struct json *out, struct error *err)
{
    bool lane = whose->lane >= parent->run->program->step_count;
    struct str wanted = {0};
    uint64_t size = whose->member ? kernel_list_size(parent->run, whose->lane) : 0;
    enum code rc = lane ? kernel_return_step(parent->run, whose->lane, &engine->env, &engine->turn, &wanted, err) : OK;
    if (rc) return rc;
    return child->net ? kernel_net_result(child, wanted, &engine->env, &engine->turn, out, err)
                      : child_outputs(engine, child, out, &size, err);
}

static enum code deliver_value(struct engine *engine, struct resident *parent, const struct run_hold *whose,
                               const struct run *child, const struct json *outputs, struct error *err)
{
    struct json value = *outputs;
    if (whose->lane >= parent->run->program->step_count)
        return input_outcome(engine, parent, whose->lane, whose->logical, whose->engine, outputs, err);
    if (parent->run->program->kind == DOCUMENT_PLAN)
        value = JSON_OF(&engine->turn, {"outputs", *outputs}, {"runId", json_string(child->ids.run)},
                        {"status", json_word("COMPLETED")});
    return json_ok(&value) ? input_given(engine, parent, whose, &value, err) : error_nomem(err);
}

static enum code deliver(struct engine *engine, struct resident *parent, const struct run_hold *whose,
                         const struct run *child, struct error *err)
{
    struct json outputs;
    struct error local = {0};
    enum code rc = OK;
    if (child->status != RUN_STATUS_COMPLETED) {
        rc = deliver_failure(engine, parent, whose, child, err);
    } else {
        rc = outputs_of(engine, parent, whose, child, &outputs, &local);
        if (code_is_outage(rc)) return error_set(err, rc, "%s", local.message);
        if (rc) return tell_fault(engine, parent, whose, kernel_unavailable(rc, str_from(local.message)), err);
        rc = deliver_value(engine, parent, whose, child, &outputs, err);
    }
    if (rc == OK) queue_last(engine)->input.duration_ms = lifetime_ms(child);
    return rc;
}

// *path is that of the playbook that a task names.
static enum code inputs_of(struct engine *engine, struct resident *parent, uint32_t step, struct start_request *request,
                           struct str *path, struct error *err)
{
    struct json with;
    if (step >= parent->run->program->step_count) {
        enum code rc = kernel_task(parent->run, step, &engine->env, &engine->turn, &with, err);
        if (rc) return rc;
        const struct json *told = json_key(&with, "with");
        const struct json *given = json_key(told, "input") ? json_key(told, "input") : json_key(told, "args");
        if (json_is(given, JSON_OBJECT)) request->inputs = *given;
        *path = json_text(json_key(told, "path"));
        // What was read of the environment is theirs, too.
        const struct json *env =
            parent->run->program->net->env.count > 0 ? json_get(&parent->run->start.inputs, STR("env")) : NULL;
        // The loop around a child is `iter.parent` of its own: an input of a name that no playbook uses.
        struct json more = JSON_OF(&engine->turn, {"env", json_ref(env)}, {"_iter", json_ref(json_key(&with, "iter"))});
        request->inputs = json_joined(&engine->turn, &request->inputs, &more);
        return json_ok(&more) ? json_made(&request->inputs, err) : error_nomem(err);
    }
    enum code rc = kernel_render(parent->run, step, &engine->env, &engine->turn, &with, err);
    if (rc) return rc;
    const struct json *inputs = json_key(&with, "inputs");
    if (json_is(inputs, JSON_OBJECT)) request->inputs = *inputs;
    const struct json *arguments = json_key(&with, "arguments");
    return arguments ? expr_text(arguments, &engine->turn, &request->arguments) : OK;
}

static void fill_request(struct engine *engine, const struct run *run, uint32_t step, struct str id,
                         struct start_request *out)
{
    *out = (struct start_request){.tenant = run->ids.tenant,
                                  .project = run->ids.project,
                                  .environment = run->ids.environment,
                                  .run = id,
                                  .work_dir = run->start.work_dir,
                                  .triggered_by = run->start.triggered_by,
                                  .trigger_source = STR("api"),
                                  .parent_run = run->ids.run};
    if (step < run->program->step_count) out->program = run->program->steps[step].child;
    out->parent_step = kernel_path(run, step, &engine->turn);
}

// A member of a list has its item as an input, or as its arguments.
static enum code give_item(struct engine *engine, const struct run *run, const struct effect *effect,
                           struct start_request *request, struct error *err)
{
    struct json item, inputs = json_object();
    struct str as;
    struct arena *turn = &engine->turn;
    enum code rc = kernel_item(run, effect->step, effect->member, &engine->env, turn, &item, &as, err);
    if (!rc && request->arguments.len == 0) rc = expr_text(&item, turn, &request->arguments);
    if (rc || as.len == 0) return rc;
    for (uint32_t i = 0; i < request->inputs.count; i++) {
        const struct json_member *member = &request->inputs.members[i];
        if (!str_eq(member->key, as)) json_set(turn, &inputs, member->key, member->value);
    }
    json_set(turn, &inputs, as, item);
    request->inputs = inputs;
    return json_made(&inputs, err);
}

enum code subrun_render(struct engine *engine, struct resident *parent, const struct effect *effect, struct order *out,
                        struct error *err)
{
    struct error local = {0};
    fill_request(engine, parent->run, effect->step, effect->child, &out->child);
    enum code rc = inputs_of(engine, parent, effect->step, &out->child, &out->child_path, &local);
    if (!rc && effect->member > 0) rc = give_item(engine, parent->run, effect, &out->child, &local);
    if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
    if (!rc) return OK;
    out->failed = true;
    out->fault = (struct fault){.code = STR("CHILD_NOT_STARTED"),
                                .message = arena_copy(&engine->turn, str_from(local.message)),
                                .category = STR("validation")};
    return out->fault.message.ptr ? OK : error_nomem(err);
}

// ---- starting, taking up, ending

static enum code start_child(struct engine *engine, struct resident *parent, const struct effect *effect,
                             const struct order *order, struct error *err)
{
    const struct run *run = parent->run;
    const struct run_hold whose = whose_of(effect);
    bool lane = effect->step >= run->program->step_count;
    INVARIANT(order && effect->child.len > 0);
    struct program *program = NULL; // of a task: found now, and held until the run holds it
    struct start_request request = order->child;
    struct error local = {0};
    char ignored[129];
    if (order->failed) return tell_fault(engine, parent, &whose, order->fault, err);
    enum code rc = children_room(engine, run->ids.tenant, &local);
    if (!rc && lane) rc = check_depth(engine, run, &local);
    if (!rc && lane) rc = child_playbook(engine, parent, effect->step, order->child_path, &program, &local);
    if (lane) request.program = program;
    if (!rc) rc = engine_start(engine, &request, ignored, &local);
    if (program) program_release(program);
    if (rc == OK || rc == E_NOMEM || rc == E_IO) return rc ? error_set(err, rc, "%s", local.message) : OK;
    return tell_not_started(engine, parent, &whose, str_from(local.message), err);
}

// Nobody here has the child any more. `even_stopping`: also when it is being asked to end, which the next look does again.
static void let_go(struct resident *parent, const struct run_hold *whose, bool even_stopping)
{
    const struct run_hold *hold = hold_find(&parent->holds, whose);
    if (hold && (even_stopping || hold->stop == STOP_NOT)) hold_drop(&parent->holds, whose);
}

// The child is owned by another process, whose end nobody tells us: the parent looks again every second.
static enum code look_again(struct engine *engine, struct resident *parent, const struct run_hold *whose,
                            struct error *err)
{
    let_go(parent, whose, false);
    struct effect later = {.kind = EFFECT_TIMER,
                           .step = whose->lane,
                           .logical = whose->member,
                           .timer = TIMER_LOOK,
                           .due_ms = engine->now.wall_ms + 1000,
                           .lasts_ms = 1000};
    return set_timer(engine, parent, &later, err);
}

static enum code taken(struct engine *engine, struct resident *parent, const struct run_hold *whose, struct str id,
                       struct error *err)
{
    if (whose->member) return tell_not_started(engine, parent, whose, STR("another run has the id of this child"), err);
    struct buf text SCOPED(buf_release) = buf_of(1024);
    buf_printf(&text, "the run %.*s is not a child of this step, and has the id that its child would have",
               STR_ARG(id));
    return tell_not_started(engine, parent, whose, buf_str(&text), err);
}

// The child wherever it stands. E_NOT_FOUND, E_LOCKED: another process has it. *here: it was in memory before.
static enum code find_child(struct engine *engine, struct resident *parent, struct str id, struct resident **out,
                            bool *here, struct error *err)
{
    *out = resident_find(engine, parent->ids.tenant, id);
    *here = *out != NULL;
    return *here ? OK : load_resident(engine, parent->ids.tenant, id, true, out, err);
}

static enum code unreadable(struct engine *engine, struct resident *parent, const struct run_hold *whose, enum code rc,
                            const struct error *why, struct error *err)
{
    if (code_is_outage(rc)) return error_set(err, rc, "%s", why->message);
    struct fault fault = {
        .code = STR("CHILD_UNREADABLE"), .message = str_from(why->message), .category = STR("infrastructure")};
    return tell_fault(engine, parent, whose, fault, err);
}

// Starts the child, or takes up the one that an earlier owner of the parent started.
enum code subrun_start(struct engine *engine, struct resident *parent, const struct effect *effect,
                       const struct order *order, struct error *err)
{
    const struct run_hold whose = whose_of(effect);
    struct resident *child;
    struct error local = {0};
    bool here;
    enum code rc = find_child(engine, parent, effect->child, &child, &here, &local);
    if (rc == E_NOT_FOUND) return start_child(engine, parent, effect, order, err);
    if (!rc && !is_child(engine, child, parent, effect->step)) {
        if (!here) resident_remove(engine, child);
        return taken(engine, parent, &whose, effect->child, err);
    }
    if (!rc && child->terminal) {
        rc = deliver(engine, parent, &whose, child->run, err);
        if (!here) resident_gone(engine, child);
        return rc;
    }
    if (!rc) {
        rc = take_up(engine, child, &local);
        if (!rc) return OK;
        if (!here) resident_remove(engine, child);
    }
    if (rc == E_LOCKED) return look_again(engine, parent, &whose, err); // it lives in another process
    return unreadable(engine, parent, &whose, rc, &local, err);
}

// The child lives in another process: the wish goes to its inbox, under an id made from the child's, so that asking again is
// no second signal.
static enum code post_cancel(struct engine *engine, struct resident *parent, struct str child, struct signal *signal,
                             struct error *err)
{
    const struct str asked[] = {str_from(signal_name(signal->type)), child};
    struct digest digest = sha256_parts(asked, ARRAY_COUNT(asked));
    char uuid[UUID_SIZE];
    uuid_format(digest.b, uuid);
    signal->id = str_from(uuid);
    struct str bytes;
    enum code rc = signal_encode(signal, &engine->turn, &bytes, err);
    return rc ? rc : store_post(engine->store, parent->ids.tenant, child, signal->id, bytes, err);
}

// `child` NULL: another process has it.
static enum code ask_to_end(struct engine *engine, struct resident *parent, struct resident *child, struct str id,
                            struct error *err)
{
    char uuid[UUID_SIZE];
    entropy_uuid(engine->options.entropy, uuid);
    struct signal signal = {.type = parent->run->emergency ? SIGNAL_EMERGENCY_STOP : SIGNAL_CANCEL,
                            .id = str_from(uuid),
                            .reason = STR("the parent run was cancelled"),
                            .actor = STR("cairn"),
                            .role = STR("System")};
    if (child) return queue_signal(engine, child, &signal, 0, err);
    enum code rc = post_cancel(engine, parent, id, &signal, err);
    if (code_is_outage(rc)) return rc;
    *err = (struct error){0}; // no room for it now: it is asked again
    return OK;
}

// Ends the child wherever it stands: here, in another process, in the log only, ended already, or never stored.
enum code subrun_cancel(struct engine *engine, struct resident *parent, const struct effect *effect, struct error *err)
{
    const struct run_hold whose = whose_of(effect);
    bool waits = kernel_state(parent->run, effect->step) == NODE_RUNNING &&
                 kernel_attempt(parent->run, effect->step).logical == effect->logical;
    struct resident *child;
    struct error local = {0};
    bool here;
    enum code rc = find_child(engine, parent, effect->child, &child, &here, &local);
    if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
    if (rc == E_LOCKED) {
        rc = ask_to_end(engine, parent, NULL, effect->child, err);
        // A parent that waits for the end looks again until it sees it.
        return rc || !waits ? rc : look_again(engine, parent, &whose, err);
    }
    if (rc) return waits ? tell_cancelled(engine, parent, &whose, err) : OK;
    bool ours = is_child(engine, child, parent, effect->step);
    INVARIANT(child != parent);
    if (!here && (child->terminal || !ours)) resident_gone(engine, child);
    if (!ours) return waits ? tell_cancelled(engine, parent, &whose, err) : OK; // a run of that id that is no child
    if (child->terminal) return waits ? deliver(engine, parent, &whose, child->run, err) : OK;
    return ask_to_end(engine, parent, child, effect->child, err);
}

// ---- what becomes of a child

// The attempt of its parent that waits for the child; *out NULL: none here does.
static enum code find_parent(struct engine *engine, struct str tenant, struct str child,
                             const struct start_facts *facts, struct resident **out, struct run_hold *whose,
                             struct error *err)
{
    *out = NULL;
    struct resident *parent =
        facts->parent_run.len > 0 ? resident_find(engine, tenant, facts->parent_run) : NULL;
    uint32_t step = parent ? kernel_find(parent->run, facts->parent_step) : PROGRAM_TOP, member;
    if (step == PROGRAM_TOP || kernel_state(parent->run, step) != NODE_RUNNING) return OK;
    enum code rc = kernel_is_child(parent->run, step, child, &engine->turn, &member);
    if (rc == E_NOMEM) return error_nomem(err);
    if (rc) return OK; // of an older attempt
    *out = parent;
    *whose = hold_now(parent->run, step, member);
    INVARIANT(kernel_runs_child(parent->run, step));
    return OK;
}

// The start of a run could not be stored. When it is a child, its parent must hear of it.
enum code subrun_refused(struct engine *engine, const struct run_ids *ids, const struct start_facts *facts,
                         const struct error *why, struct error *err)
{
    struct resident *parent;
    struct run_hold whose;
    enum code rc = find_parent(engine, ids->tenant, ids->run, facts, &parent, &whose, err);
    if (rc || !parent) return rc;
    if (why->code == E_EXISTS) { // another process was faster: take up what it made
        let_go(parent, &whose, true);
        return need_recover(engine, parent, err);
    }
    struct str text = arena_format(&engine->turn, "the start of the child run could not be stored: %s", why->message);
    return text.ptr ? tell_not_started(engine, parent, &whose, text, err) : error_nomem(err);
}

enum code subrun_ended(struct engine *engine, struct resident *child, struct error *err)
{
    struct resident *parent;
    struct run_hold whose;
    // A parent that is not here asks when it is taken up again.
    enum code rc =
        find_parent(engine, child->ids.tenant, child->ids.run, &child->run->start, &parent, &whose, err);
    if (rc || !parent) return rc;
    rc = deliver(engine, parent, &whose, child->run, err);
    if (rc != E_NOMEM) return rc;
    // The child will not be heard of again: the parent asks.
    *err = (struct error){0};
    let_go(parent, &whose, true);
    return need_recover(engine, parent, err);
}
