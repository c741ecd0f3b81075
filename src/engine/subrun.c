// Child runs: a step of one run is a run of its own, with its own log. The parent waits for its end.
#include "engine/inside.h"

#include <string.h>

// The id alone does not make a run a child: anybody may start a run under it.
bool subrun_is_child(struct engine *engine, const struct resident *child, const struct resident *parent, uint32_t step)
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
    struct json all;
    uint32_t count = 0;
    if (!json_object_with(arena, 4, &all)) return error_nomem(err);
    for (uint32_t i = 0; i < run->program->top_count; i++) {
        if (run->program->steps[i].dependent_count > 0 || kernel_state(run, i) != NODE_SUCCESS) continue;
        struct json value;
        if (!kernel_output_fits(run, i, total)) return error_set(err, E_LIMIT, RESULT_TOO_LARGE);
        enum code rc = kernel_output(run, i, &engine->env, arena, &value, err);
        if (rc) return rc;
        if (value.type == 0) value = json_null();
        if (!json_put(arena, &all, run->program->steps[i].id, value)) return error_nomem(err);
        count++;
    }
    *out = count == 1 ? all.members[0].value : all;
    return OK;
}

enum code subrun_outputs(struct engine *engine, const struct run *child, struct json *out, uint64_t *size,
                         struct error *err)
{
    if (child->net) return kernel_net_result(child, (struct str){0}, &engine->env, &engine->turn, out, err);
    return child_outputs(engine, child, out, size, err);
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

static enum code deliver(struct engine *engine, struct resident *parent, uint32_t step, const struct run *child,
                         struct error *err)
{
    struct run_attempt now = kernel_attempt(parent->run, step);
    if (child->status != RUN_STATUS_COMPLETED) {
        bool cancelled = child->status == RUN_STATUS_CANCELLED;
        struct buf text;
        buf_init(&text, 1024);
        buf_printf(&text, "child run %.*s %s", STR_ARG(child->ids.run), cancelled ? "was cancelled" : "failed");
        if (child->failed_step.len > 0) {
            struct str why = root_cause(child->fault.message);
            bool below = why.len < child->fault.message.len;
            buf_printf(&text, " at %.*s%s: %.*s", STR_ARG(child->failed_step), below ? ", in a run below it" : "",
                       STR_ARG(why));
        } else if (child->fault.message.len > 0) {
            buf_printf(&text, ": %.*s", STR_ARG(child->fault.message));
        }
        struct fault fault = {.code = cancelled ? STR("CHILD_CANCELLED") : STR("CHILD_FAILED"),
                              .message = buf_str(&text),
                              .category = STR("business"),
                              .retryable = !cancelled};
        enum code rc = input_fault(engine, parent, step, now.logical, now.engine, fault, err);
        buf_release(&text);
        if (rc == OK) queue_last(engine)->input.duration_ms = lifetime_ms(child);
        return rc;
    }
    struct json value, outputs;
    struct error local = {0};
    bool lane = step >= parent->run->program->step_count;
    struct str wanted = {0};
    uint64_t size = 0;
    enum code rc = lane ? kernel_return_step(parent->run, step, &engine->env, &engine->turn, &wanted, &local) : OK;
    if (rc) return input_unavailable(engine, parent, step, now.logical, now.engine, rc, local.message, err);
    rc = child->net ? kernel_net_result(child, wanted, &engine->env, &engine->turn, &outputs, &local)
                    : child_outputs(engine, child, &outputs, &size, &local);
    if (rc) return input_unavailable(engine, parent, step, now.logical, now.engine, rc, local.message, err);
    value = outputs;
    if (lane) {
        rc = input_outcome(engine, parent, step, now.logical, now.engine, &value, err);
        if (rc == OK) queue_last(engine)->input.duration_ms = lifetime_ms(child);
        return rc;
    }
    if (parent->run->program->kind == DOCUMENT_PLAN) {
        struct arena *arena = &engine->turn;
        if (!json_object_with(arena, 3, &value) || !json_put(arena, &value, STR("outputs"), outputs))
            return error_nomem(err);
        if (!json_put(arena, &value, STR("runId"), json_string(child->ids.run)) ||
            !json_put(arena, &value, STR("status"), json_string(STR("COMPLETED"))))
            return error_nomem(err);
    }
    struct queued *queued = queue_add(engine, parent, INPUT_RESULT);
    if (!queued) return error_nomem(err);
    queued->input.step = step;
    queued->input.logical = now.logical;
    queued->input.engine = now.engine;
    queued->input.duration_ms = lifetime_ms(child);
    rc = input_value(engine, queued, &value, err);
    if (rc == OK) return OK;
    struct queued undone = queue_take_last(engine);
    queued_release(&undone);
    return rc;
}

// The loop around a child is `iter.parent` of its own: an input of a name that no playbook uses.
static enum code put_input(struct arena *arena, struct str name, const struct json *value, struct json *inputs,
                           struct error *err)
{
    struct json made;
    if (!value || json_get(inputs, name)) return OK;
    bool ok = json_object_with(arena, inputs->count + 1, &made);
    for (uint32_t i = 0; ok && i < inputs->count; i++)
        ok = json_put(arena, &made, inputs->members[i].key, inputs->members[i].value);
    ok = ok && json_put(arena, &made, name, *value);
    *inputs = made;
    return ok ? OK : error_nomem(err);
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
        rc = put_input(&engine->turn, STR("env"), env, &request->inputs, err);
        return rc ? rc : put_input(&engine->turn, STR("_iter"), json_key(&with, "iter"), &request->inputs, err);
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

enum code subrun_request(struct engine *engine, struct resident *parent, uint32_t step, struct str id,
                         struct start_request *out, struct error *err)
{
    struct str ignored;
    fill_request(engine, parent->run, step, id, out);
    return inputs_of(engine, parent, step, out, &ignored, err);
}

enum code subrun_render(struct engine *engine, struct resident *parent, uint32_t step, struct order *out,
                        struct error *err)
{
    if (kernel_fans_out(parent->run, step)) return OK; // each child when it is started
    struct error local = {0};
    struct str id = kernel_child_id(parent->run, step, &engine->turn);
    if (!id.ptr) return error_nomem(err);
    fill_request(engine, parent->run, step, id, &out->child);
    enum code rc = inputs_of(engine, parent, step, &out->child, &out->child_path, &local);
    if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
    if (!rc) return OK;
    out->failed = true;
    out->fault = (struct fault){.code = STR("CHILD_NOT_STARTED"),
                                .message = arena_copy(&engine->turn, str_from(local.message)),
                                .category = STR("validation")};
    return out->fault.message.ptr ? OK : error_nomem(err);
}

static enum code start_child(struct engine *engine, struct resident *parent, const struct effect *effect,
                             const struct order *order, struct error *err)
{
    const struct run *run = parent->run;
    uint32_t step = effect->step;
    bool lane = step >= run->program->step_count;
    struct program *program = NULL; // of a task: found now, and held until the run holds it
    struct start_request request = order->child;
    struct error local = {0};
    char ignored[129];
    if (order->failed) return input_fault(engine, parent, step, effect->logical, effect->engine, order->fault, err);
    enum code rc = lane ? check_depth(engine, run, &local) : OK;
    if (!rc && lane) rc = child_playbook(engine, parent, step, order->child_path, &program, &local);
    if (lane) request.program = program;
    if (!rc) rc = engine_start(engine, &request, ignored, &local);
    if (program) program_release(program);
    if (rc == OK || rc == E_NOMEM || rc == E_IO) return rc ? error_set(err, rc, "%s", local.message) : OK;
    struct fault fault = {
        .code = STR("CHILD_NOT_STARTED"), .message = str_from(local.message), .category = STR("validation")};
    return input_fault(engine, parent, step, effect->logical, effect->engine, fault, err);
}

// Nobody here has the child any more. `even_stopping`: also when it is being asked to end, which the next look does again.
static void let_go(struct resident *parent, uint32_t step, bool even_stopping)
{
    struct run_attempt now = kernel_attempt(parent->run, step);
    const struct run_hold *hold = hold_find(&parent->holds, step, now.logical, now.engine);
    if (hold && (even_stopping || hold->stop == STOP_NOT))
        hold_drop(&parent->holds, step, now.logical, now.engine);
}

// The child is owned by another process, whose end nobody tells us: the parent looks again every second.
enum code subrun_look_again(struct engine *engine, struct resident *parent, uint32_t step, struct error *err)
{
    let_go(parent, step, false);
    struct effect later = {
        .kind = EFFECT_TIMER, .step = step, .timer = TIMER_LOOK, .due_ms = engine->now.wall_ms + 1000, .lasts_ms = 1000};
    return dispatch(engine, parent, &later, NULL, err);
}

static enum code taken(struct engine *engine, struct resident *parent, const struct effect *effect, struct str id,
                       struct error *err)
{
    struct buf text;
    buf_init(&text, 1024);
    buf_printf(&text, "the run %.*s is not a child of this step, and has the id that its child would have",
               STR_ARG(id));
    struct fault fault = {.code = STR("CHILD_NOT_STARTED"), .message = buf_str(&text), .category = STR("validation")};
    enum code rc = input_fault(engine, parent, effect->step, effect->logical, effect->engine, fault, err);
    buf_release(&text);
    return rc;
}

// Starts the child, or takes up the one that an earlier owner of the parent started.
enum code subrun_start(struct engine *engine, struct resident *parent, const struct effect *effect,
                       const struct order *order, struct error *err)
{
    if (kernel_fans_out(parent->run, effect->step)) return fan_start(engine, parent, effect, err);
    struct str id = kernel_child_id(parent->run, effect->step, &engine->turn);
    if (!id.ptr) return error_nomem(err);
    struct resident *child = resident_find(engine, parent->ids.tenant, id);
    bool here = child != NULL;
    struct error local = {0};
    enum code rc = here ? OK : load_resident(engine, parent->ids.tenant, id, true, &child, &local);
    if (!rc && !subrun_is_child(engine, child, parent, effect->step)) {
        if (!here) resident_remove(engine, child);
        return taken(engine, parent, effect, id, err);
    }
    if (here && child->terminal) return deliver(engine, parent, effect->step, child->run, err);
    if (!rc && !child->terminal) {
        rc = take_up(engine, child, &local);
        if (!rc) return OK;
        if (!here) resident_remove(engine, child);
    }
    if (rc == E_NOT_FOUND) return start_child(engine, parent, effect, order, err);
    if (rc == E_LOCKED) return subrun_look_again(engine, parent, effect->step, err); // it lives in another process
    if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
    if (rc) {
        struct fault fault = {
            .code = STR("CHILD_UNREADABLE"), .message = str_from(local.message), .category = STR("infrastructure")};
        return input_fault(engine, parent, effect->step, effect->logical, effect->engine, fault, err);
    }
    rc = deliver(engine, parent, effect->step, child->run, err);
    resident_gone(engine, child);
    return rc;
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

enum code subrun_ask_to_end(struct engine *engine, struct resident *parent, struct resident *child, struct str id,
                            struct error *err)
{
    char uuid[UUID_SIZE];
    new_uuid(engine, uuid);
    struct signal signal = {.type = parent->run->emergency ? SIGNAL_EMERGENCY_STOP : SIGNAL_CANCEL,
                            .id = str_from(uuid),
                            .reason = STR("the parent run was cancelled"),
                            .actor = STR("cairn"),
                            .role = STR("System")};
    if (child) return queue_signal(engine, child, &signal, 0, err);
    enum code rc = post_cancel(engine, parent, id, &signal, err);
    if (rc == E_IO || rc == E_NOMEM) return rc;
    *err = (struct error){0}; // no room for it now: it is asked again
    return OK;
}

// Ends the child wherever it stands: here, in another process, in the log only, ended already, or never stored.
enum code subrun_cancel(struct engine *engine, struct resident *parent, const struct effect *effect, struct error *err)
{
    struct resident *child = resident_find(engine, parent->ids.tenant, effect->child);
    bool waits = kernel_state(parent->run, effect->step) == NODE_RUNNING &&
                 kernel_attempt(parent->run, effect->step).logical == effect->logical;
    if (kernel_fans_out(parent->run, effect->step)) return fan_cancel(engine, parent, effect, err);
    if (!child) {
        struct error local = {0};
        enum code rc = load_resident(engine, parent->ids.tenant, effect->child, true, &child, &local);
        if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
        if (rc == E_LOCKED) {
            rc = subrun_ask_to_end(engine, parent, NULL, effect->child, err);
            // A parent that waits for the end looks again until it sees it.
            return rc || !waits ? rc : subrun_look_again(engine, parent, effect->step, err);
        }
        if (rc) {
            struct fault fault = {
                .code = STR("CANCELLED"), .message = STR("the run was cancelled"), .category = STR("")};
            return waits ? input_fault(engine, parent, effect->step, effect->logical, effect->engine, fault, err) : OK;
        }
        if (child->terminal || !subrun_is_child(engine, child, parent, effect->step)) resident_gone(engine, child);
    }
    if (!subrun_is_child(engine, child, parent, effect->step)) { // somebody else's
        struct fault fault = {.code = STR("CANCELLED"), .message = STR("the run was cancelled"), .category = STR("")};
        return waits ? input_fault(engine, parent, effect->step, effect->logical, effect->engine, fault, err) : OK;
    }
    if (child->terminal) return waits ? deliver(engine, parent, effect->step, child->run, err) : OK;
    return subrun_ask_to_end(engine, parent, child, effect->child, err);
}

// The start of a run could not be stored. When it is a child, its parent must hear of it.
enum code subrun_refused(struct engine *engine, struct str tenant, const struct start_facts *facts, enum code why,
                         struct error *err)
{
    if (facts->parent_run.len == 0) return OK;
    struct resident *parent = resident_find(engine, tenant, facts->parent_run);
    uint32_t step = parent ? kernel_find(parent->run, facts->parent_step) : PROGRAM_TOP;
    if (step == PROGRAM_TOP || kernel_state(parent->run, step) != NODE_RUNNING) return OK;
    struct run_attempt now = kernel_attempt(parent->run, step);
    if (why == E_EXISTS) { // another process was faster: take up what it made
        let_go(parent, step, true);
        return need_recover(engine, parent, err);
    }
    struct fault fault = {.code = STR("CHILD_NOT_STARTED"),
                          .message = STR("the start of the child run could not be stored"),
                          .category = STR("validation")};
    return input_fault(engine, parent, step, now.logical, now.engine, fault, err);
}

enum code subrun_ended(struct engine *engine, struct resident *child, struct error *err)
{
    const struct start_facts *start = &child->run->start;
    if (start->parent_run.len == 0) return OK;
    struct resident *parent = resident_find(engine, child->ids.tenant, start->parent_run);
    if (!parent) return OK; // it asks when it is taken up again
    uint32_t step = kernel_find(parent->run, start->parent_step);
    if (step == PROGRAM_TOP || kernel_state(parent->run, step) != NODE_RUNNING) return OK;
    struct str id = kernel_child_id(parent->run, step, &engine->turn);
    if (!id.ptr) return error_nomem(err);
    bool list = kernel_fans_out(parent->run, step);
    if (!list && !str_eq(id, child->ids.run)) return OK; // of an older attempt
    enum code rc = list ? fan_ended(engine, parent, step, child, err) : deliver(engine, parent, step, child->run, err);
    if (rc != E_NOMEM) return rc;
    // The child will not be heard of again: the parent asks.
    *err = (struct error){0};
    let_go(parent, step, true);
    return need_recover(engine, parent, err);
}
