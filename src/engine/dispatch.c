// Effects, carried out once the moments that ordered them are durable (E1).
#include "engine/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- tickets: attempts that are with a tool
struct ticket *ticket_find(struct engine *engine, uint64_t id)
{
    size_t index = (size_t)(id & UINT32_MAX);
    if (index >= engine->ticket_count) return NULL;
    struct ticket *ticket = &engine->tickets[index];
    return ticket->generation == (uint32_t)(id >> 32) ? ticket : NULL;
}

static uint64_t ticket_open(struct engine *engine, struct resident *resident, const struct effect *effect,
                            struct tools *with)
{
    uint32_t index = engine->free_ticket;
    if (index != UINT32_MAX) {
        engine->free_ticket = engine->tickets[index].next_free;
    } else {
        if (engine->ticket_count == engine->ticket_capacity) {
            size_t capacity = engine->ticket_capacity ? engine->ticket_capacity * 2 : 32;
            struct ticket *grown = realloc(engine->tickets, capacity * sizeof(*grown));
            if (!grown) return 0;
            engine->tickets = grown;
            engine->ticket_capacity = capacity;
        }
        index = (uint32_t)engine->ticket_count++;
        engine->tickets[index].generation = 0;
    }
    struct ticket *ticket = &engine->tickets[index];
    uint32_t generation = ticket->generation + 1;
    *ticket = (struct ticket){.resident = resident,
                              .step = effect->step,
                              .logical = effect->logical,
                              .engine = effect->engine,
                              .generation = generation,
                              .with = with};
    resident->tickets++;
    engine->live_tickets++;
    return ((uint64_t)generation << 32) | index;
}

void ticket_close(struct engine *engine, uint64_t id)
{
    struct ticket *ticket = ticket_find(engine, id);
    if (!ticket) return;
    if (ticket->resident) ticket->resident->tickets--;
    engine->live_tickets--;
    ticket->resident = NULL;
    ticket->late = false;
    ticket->generation++;
    ticket->next_free = engine->free_ticket;
    engine->free_ticket = (uint32_t)(id & UINT32_MAX);
}

void ticket_cancel(struct engine *engine, size_t index, int64_t grace_ms)
{
    const struct ticket *ticket = &engine->tickets[index];
    struct tools *tools = ticket->with;
    if (tools) tools->ops->cancel(tools, ((uint64_t)ticket->generation << 32) | index, grace_ms);
}

static bool is_lane(const struct run *run, uint32_t step)
{
    return step >= run->program->step_count;
}

static bool is_subrun(const struct run *run, uint32_t step)
{
    if (!run->net) return run->program->steps[step].kind == STEP_SUBRUN;
    return is_lane(run, step) && str_is(kernel_task_of(run, step)->kind, "playbook");
}

void relive(struct engine *engine, struct resident *resident)
{
    for (size_t i = 0; resident->tickets > 0 && i < engine->ticket_count; i++) {
        const struct ticket *ticket = &engine->tickets[i];
        if (ticket->resident != resident) continue;
        if (ticket->step >= run_step_count(resident->run)) continue; // a lane that the log does not know
        struct run_step *step = &resident->run->steps[ticket->step];
        if (step->state != NODE_RUNNING || step->logical != ticket->logical || step->engine != ticket->engine) continue;
        step->live = true;
        step->stopping = ticket->stopping;
    }
    for (uint32_t i = 0; i < run_step_count(resident->run); i++) {
        struct run_step *step = &resident->run->steps[i];
        if (step->state != NODE_RUNNING || !is_subrun(resident->run, i)) continue;
        struct str id = kernel_child_id(resident->run, i, &engine->turn);
        const struct resident *child = id.ptr ? resident_find(engine, resident->ids.tenant, id) : NULL;
        step->live = child && !child->terminal;
    }
    // Results that are already on their way in the queue count as live too.
    const struct queue *q = &engine->queue;
    for (size_t i = 0; i < q->count; i++) {
        const struct queued *queued = &q->items[(q->head + i) & (q->capacity - 1)];
        if (queued->resident == resident) relive_input(queued);
    }
    const struct aside *at = NULL;
    for (const struct queued *queued = aside_next(engine, &at); queued; queued = aside_next(engine, &at))
        if (queued->resident == resident) relive_input(queued);
}

void relive_input(const struct queued *queued)
{
    if (queued->input.kind != INPUT_RESULT) return;
    if (queued->input.step >= run_step_count(queued->resident->run)) return; // a lane that the log does not know
    struct run_step *step = &queued->resident->run->steps[queued->input.step];
    if (step->state != NODE_RUNNING || step->logical != queued->input.logical || step->engine != queued->input.engine)
        return;
    step->live = true;
    step->stopping = queued->stopping;
}

// ---- processes
struct command {
    struct str argv[260];
    size_t argc;
    struct tool_env *env;
    size_t env_count, env_capacity;
    struct str input, cwd;
};

static enum code add_env(struct command *command, struct arena *arena, struct str name, struct str value)
{
    struct tool_env *grown = arena_grow(arena, command->env, command->env_count, command->env_count + 1, sizeof(*grown),
                                        &command->env_capacity);
    if (!grown) return E_NOMEM;
    command->env = grown;
    command->env[command->env_count++] = (struct tool_env){name, value};
    return OK;
}

static enum code add_arg(struct command *command, struct arena *arena, const struct json *value, struct error *err)
{
    if (command->argc >= ARRAY_COUNT(command->argv))
        return error_set(err, E_LIMIT, "more than %zu arguments", ARRAY_COUNT(command->argv));
    enum code rc = expr_text(value, arena, &command->argv[command->argc]);
    if (!rc) command->argc++;
    return rc;
}

static enum code common_env(struct command *command, const struct run *run, const struct json *with,
                            struct arena *arena)
{
    enum code rc = OK;
    if (run->start.arguments.len > 0) rc = add_env(command, arena, STR("ARGUMENTS"), run->start.arguments);
    if (!rc) rc = add_env(command, arena, STR("WORKFLOW_ID"), run->ids.run);
    if (!rc) rc = add_env(command, arena, STR("ARTIFACTS_DIR"), run_artifacts_dir(run));
    const struct json *env = json_key(with, "env");
    for (uint32_t i = 0; !rc && json_is(env, JSON_OBJECT) && i < env->count; i++) {
        struct str value;
        rc = expr_text(&env->members[i].value, arena, &value);
        if (!rc) rc = add_env(command, arena, env->members[i].key, value);
    }
    return rc;
}

// References become expansions of variables, which hold the values.
static enum code shell_text(struct engine *engine, struct resident *resident, uint32_t step, struct str text,
                            struct command *command, struct error *err)
{
    struct kernel_scope context = {.run = resident->run, .step = step, .env = &engine->env};
    struct scope scope = kernel_scope(&context);
    struct subst subst;
    enum code rc = subst_shell(text, &scope, &engine->turn, &subst, err);
    if (rc) return rc;
    for (size_t i = 0; !rc && i < subst.env_count; i++)
        rc = add_env(command, &engine->turn, subst.env[i].name, subst.env[i].value);
    command->input = subst.text;
    return rc;
}

static enum code command_of(struct engine *engine, struct resident *resident, uint32_t step, struct command *command,
                            struct error *err)
{
    const struct run *run = resident->run;
    const struct program_step *ps = &run->program->steps[step];
    struct arena *arena = &engine->turn;
    struct json with;
    enum code rc = kernel_render(run, step, &engine->env, arena, &with, err);
    if (!rc) rc = common_env(command, run, &with, arena);
    if (rc) return rc;
    struct str cwd = json_text(json_key(&with, "cwd"));
    command->cwd = cwd.len > 0 ? cwd : run->start.work_dir;
    if (ps->kind == STEP_SHELL) {
        rc = shell_text(engine, resident, step, json_text(json_key(&with, "command")), command, err);
        command->argv[command->argc++] = STR("bash");
        command->argv[command->argc++] = STR("-c");
        command->argv[command->argc++] = command->input;
        command->input = (struct str){0};
        return rc;
    }
    if (ps->kind == STEP_EXEC) {
        const struct json *argv = json_key(&with, "argv");
        for (uint32_t i = 0; !rc && i < argv->count; i++) rc = add_arg(command, arena, &argv->items[i], err);
        const struct json *input = json_key(&with, "stdin");
        if (!rc && input) rc = expr_text(input, arena, &command->input);
        return rc;
    }
    struct str runtime = json_text(json_key(&with, "runtime"));
    struct str code = json_text(json_key(&with, "code"));
    command->argv[command->argc++] = runtime;
    bool shell = str_is(runtime, "sh") || str_is(runtime, "bash");
    if (shell) {
        rc = shell_text(engine, resident, step, code, command, err);
    } else {
        command->input = code;
        if (str_is(runtime, "node"))
            command->argv[command->argc++] = str_find(code, '\n', 0) < code.len && strstr(code.ptr, "import ")
                                                 ? STR("--input-type=module")
                                                 : STR("--input-type=commonjs");
    }
    command->argv[command->argc++] = shell ? STR("-s") : STR("-");
    const struct json *args = json_key(&with, "args");
    for (uint32_t i = 0; !rc && json_is(args, JSON_ARRAY) && i < args->count; i++)
        rc = add_arg(command, arena, &args->items[i], err);
    return rc;
}

// Where the attempt's output is kept; empty when nowhere.
static struct str log_path(struct engine *engine, const struct run_ids *ids, struct str step,
                           const struct effect *effect)
{
    struct str dir, path = {0};
    char name[TOOL_LOG_NAME_SIZE];
    struct arena *arena = &engine->turn;
    if (store_logs_dir(engine->store, ids, arena, &dir) || dir.len == 0) return path;
    tool_log_name(step, effect->logical, effect->engine, name);
    size_t size = dir.len + strlen(name) + 2;
    char *text = arena_alloc(arena, size);
    if (!text) return path;
    snprintf(text, size, "%.*s/%s", STR_ARG(dir), name);
    return str_from(text);
}

// What every attempt tells its executor, whatever that is.
static struct tool_request request_of(struct engine *engine, const struct resident *resident,
                                      const struct effect *effect, const struct execution *execution)
{
    const struct run *run = resident->run;
    const struct program_step *ps = &run->program->steps[kernel_place(run, effect->step)];
    const struct net_task *task = is_lane(run, effect->step) ? kernel_task_of(run, effect->step) : NULL;
    struct str path = kernel_path(run, effect->step, &engine->turn);
    int64_t timeout_ms = ps->timeout_ms;
    struct error local = {0};
    if (task && kernel_timeout(run, effect->step, &engine->env, &engine->turn, &timeout_ms, &local))
        timeout_ms = task->timeout_ms; // no memory, or a value cannot be read: rendering the inputs reports it
    return (struct tool_request){.ticket = execution->ticket,
                                 .tenant = run->ids.tenant,
                                 .environment = run->ids.environment,
                                 .run = run->ids.run,
                                 .form = execution->form,
                                 .kind = execution->kind,
                                 .artifacts_dir = run_artifacts_dir(run),
                                 .artifacts = ps->artifacts,
                                 .artifact_count = ps->artifact_count,
                                 .epoch = run_log_epoch(resident->log),
                                 .step = path,
                                 .log = log_path(engine, &run->ids, path, effect),
                                 .log_max = engine->options.limits.log_max,
                                 .pool = execution->pool,
                                 .logical = effect->logical,
                                 .engine = effect->engine,
                                 .timeout_ms = timeout_ms};
}

static void make_artifacts_dir(const struct run *run)
{
    struct error err = {0};
    struct str dir = run_artifacts_dir(run);
    if (dir.len > 0 && os_make_dirs(dir.ptr, &err) != OK)
        os_log(LOG_WARN, "no artifacts directory why=\"%s\"", err.message);
}

// The thread that delivers the result looks for them. False: out of memory, and the ticket is closed.
static bool expect_files(struct engine *engine, const struct run *run, const struct program_step *ps, uint64_t ticket)
{
    if (ps->artifact_count == 0) return true;
    struct declared_files *files =
        declared_files_new(ticket, run_artifacts_dir(run), ps->artifacts, ps->artifact_count);
    if (files)
        mailbox_expect(&engine->mailbox, files);
    else
        ticket_close(engine, ticket);
    return files != NULL;
}

static struct fault spawn_fault(const struct error *why)
{
    return (struct fault){.code = STR("SPAWN_FAILED"),
                          .message = str_from(why->message),
                          .category = STR("infrastructure"),
                          .retryable = true};
}

static enum code start_process(struct engine *engine, struct resident *resident, const struct effect *effect,
                               struct execution *execution, struct error *err)
{
    const struct run *run = resident->run;
    const struct program_step *ps = &run->program->steps[effect->step];
    struct command command = {0};
    struct error local = {0};
    enum code rc = command_of(engine, resident, effect->step, &command, &local);
    if (rc)
        return input_unavailable(engine, resident, effect->step, effect->logical, effect->engine, rc, local.message,
                                 err);
    execution->ticket = ticket_open(engine, resident, effect, execution->with);
    if (execution->ticket == 0) return error_nomem(err);
    make_artifacts_dir(run);
    if (!expect_files(engine, run, ps, execution->ticket)) return error_nomem(err);
    struct tool_request request = request_of(engine, resident, effect, execution);
    request.argv = command.argv;
    request.argc = command.argc;
    request.input = command.input;
    request.env = command.env;
    request.env_count = command.env_count;
    request.secrets = ps->secrets;
    request.secret_count = ps->secret_count;
    request.cwd = command.cwd;
    request.output_max = engine->options.limits.output_max;
    rc = execution->with->ops->start(execution->with, &request, &local);
    if (rc == OK) return OK;
    mailbox_forget(&engine->mailbox, execution->ticket);
    ticket_close(engine, execution->ticket);
    return input_fault(engine, resident, effect->step, effect->logical, effect->engine, spawn_fault(&local), err);
}

// A function of the host gets its `with` as JSON text, a task what task/task.h says.
static enum code start_function(struct engine *engine, struct resident *resident, const struct effect *effect,
                                struct execution *execution, struct error *err)
{
    const struct run *run = resident->run;
    bool lane = is_lane(run, effect->step);
    const struct program_step *ps = &run->program->steps[kernel_place(run, effect->step)];
    struct json with;
    struct error local = {0};
    enum code rc = lane ? kernel_task(run, effect->step, &engine->env, &engine->turn, &with, &local)
                        : kernel_render(run, effect->step, &engine->env, &engine->turn, &with, &local);
    if (rc && lane && rc != E_NOMEM && rc != E_IO && rc != E_UNREACHABLE) {
        struct fault broken = kernel_template_fault(&engine->turn, &local);
        return input_fault(engine, resident, effect->step, effect->logical, effect->engine, broken, err);
    }
    if (rc)
        return input_unavailable(engine, resident, effect->step, effect->logical, effect->engine, rc, local.message,
                                 err);
    struct buf input;
    buf_init(&input, RESULT_MAX);
    json_canon(&input, &with);
    execution->ticket = buf_ok(&input) ? ticket_open(engine, resident, effect, execution->with) : 0;
    struct fault fault = {.code = STR("PAYLOAD_TOO_LARGE"),
                          .message = STR("the inputs of the step are larger than 32 MiB"),
                          .category = STR("validation")};
    if (execution->ticket != 0) {
        if (ps->artifact_count > 0) make_artifacts_dir(run);
        if (!expect_files(engine, run, ps, execution->ticket)) {
            buf_release(&input);
            return error_nomem(err);
        }
        struct tool_request request = request_of(engine, resident, effect, execution);
        request.function = execution->kind;
        request.input = buf_str(&input);
        rc = execution->with->ops->start(execution->with, &request, &local);
        if (rc) {
            mailbox_forget(&engine->mailbox, execution->ticket);
            ticket_close(engine, execution->ticket);
        }
        fault = spawn_fault(&local);
    } else if (buf_ok(&input)) {
        rc = E_NOMEM;
    } else {
        rc = E_LIMIT;
    }
    buf_release(&input);
    if (rc == OK || (rc == E_NOMEM && execution->ticket == 0)) return rc ? error_nomem(err) : OK;
    return input_fault(engine, resident, effect->step, effect->logical, effect->engine, fault, err);
}

// Cut off from the store: somebody else may have the run by now. When nobody does, it is looked at again in a while.
static enum code put_off_start(struct engine *engine, struct resident *resident, const struct effect *effect,
                               struct error *err)
{
    enum { AGAIN_MS = 500 };
    struct effect later = {
        .kind = EFFECT_TIMER, .step = effect->step, .timer = TIMER_LOOK, .lasts_ms = AGAIN_MS};
    later.due_ms = engine->now.wall_ms + AGAIN_MS;
    resident->run->steps[effect->step].live = false;
    return set_timer(engine, resident, &later, err);
}

// Routes may have changed since the run was taken up, and a person may have sent the step elsewhere.
static enum code no_executor(struct engine *engine, struct resident *resident, const struct effect *effect,
                             const struct execution *execution, struct error *err)
{
    struct error why = {0};
    (void)error_set(&why, E_UNSUPPORTED, "nobody here executes \"%.*s\", and no route sends it to workers",
                    STR_ARG(execution->kind));
    return input_fault(engine, resident, effect->step, effect->logical, effect->engine, spawn_fault(&why), err);
}

static enum code execute(struct engine *engine, struct resident *resident, const struct effect *effect,
                         struct error *err)
{
    const struct run *run = resident->run;
    const struct program_step *ps = &run->program->steps[kernel_place(run, effect->step)];
    const struct net_task *task = is_lane(run, effect->step) ? kernel_task_of(run, effect->step) : NULL;
    struct execution execution = {.form = task ? EXECUTOR_TASK : executor_of_step(ps->kind),
                                  .kind = task ? task->kind : step_executes(ps)};
    if (execution.form == EXECUTOR_NONE)
        return input_instant(engine, resident, effect->step, effect->logical, effect->engine, err);
    if (engine->holding) {
        resident->run->steps[effect->step].live = false;
        return OK;
    }
    if (engine->options.may_start && !engine->options.may_start(engine->options.may_start_context))
        return put_off_start(engine, resident, effect, err);
    execution.pool = kernel_queue(run, effect->step);
    enum code rc = execution_open(engine, &run->ids, &execution, err);
    if (rc == E_UNSUPPORTED) return no_executor(engine, resident, effect, &execution, err);
    if (rc) return rc;
    return execution.form == EXECUTOR_PROCESS ? start_process(engine, resident, effect, &execution, err)
                                              : start_function(engine, resident, effect, &execution, err);
}

static void cancel_attempt(struct engine *engine, struct resident *resident, const struct effect *effect)
{
    for (size_t i = 0; resident->tickets > 0 && i < engine->ticket_count; i++) {
        struct ticket *ticket = &engine->tickets[i];
        if (ticket->resident != resident || ticket->step != effect->step) continue;
        ticket->stopping = true;
        ticket_cancel(engine, i, effect->grace_ms);
    }
}

// A lane that went on within the batch that ordered this: what it does now was ordered by what came later.
static bool is_stale(const struct run *run, const struct effect *effect)
{
    if (effect->step == PROGRAM_TOP || !is_lane(run, effect->step)) return false;
    const struct run_step *s = &run->steps[effect->step];
    return s->state != NODE_RUNNING || s->logical != effect->logical || s->engine != effect->engine;
}

enum code dispatch(struct engine *engine, struct resident *resident, const struct effect *effect, struct error *err)
{
    bool starts = effect->kind == EFFECT_EXECUTE || effect->kind == EFFECT_SUBRUN;
    if (starts && is_stale(resident->run, effect)) return OK;
    switch (effect->kind) {
    case EFFECT_EXECUTE:
        return execute(engine, resident, effect, err);
    case EFFECT_TIMER:
        return set_timer(engine, resident, effect, err);
    case EFFECT_CANCEL:
        cancel_attempt(engine, resident, effect);
        return OK;
    case EFFECT_SUBRUN:
        return subrun_start(engine, resident, effect, err);
    case EFFECT_SUBRUN_CANCEL:
        return subrun_cancel(engine, resident, effect, err);
    case EFFECT_ENDED: {
        enum code rc = subrun_ended(engine, resident, err);
        resident_gone(engine, resident);
        return rc;
    }
    case EFFECT_RETRY_RUN:
    case EFFECT_DECISION:
        return OK; // turn.c
    }
    return OK;
}
