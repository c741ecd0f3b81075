// What an effect that starts something says: command, JSON of a task, inputs of a child. It is rendered right after the input that
// ordered it was decided, so that what comes later in the same batch does not change it, and carried out when the batch is durable.
#include "engine/inside.h"

#include <string.h>

struct command {
    struct str argv[260];
    size_t argc;
    struct tool_env *env;
    size_t env_count, env_capacity;
    struct str input, cwd;
};

static enum code add_env(struct command *command, struct arena *arena, struct str name, struct str value)
{
    if (!ARENA_ROOM(arena, command->env, command->env_count, &command->env_capacity)) return E_NOMEM;
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
    command->cwd = cwd;
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

static bool is_lane(const struct run *run, uint32_t step)
{
    return step >= run->program->step_count;
}

enum executor order_form(const struct run *run, uint32_t step, struct str *kind)
{
    const struct program_step *ps = &run->program->steps[kernel_place(run, step)];
    *kind = is_lane(run, step) ? kernel_task_of(run, step)->kind : step_executes(ps);
    return is_lane(run, step) ? EXECUTOR_TASK : executor_of_step(ps->kind);
}

// Only memory and the store itself are worth another try of the whole batch.
static enum code unavailable(enum code why, const struct error *told, struct arena *arena, struct order *out,
                             struct error *err)
{
    if (code_is_outage(why)) return error_set(err, why, "%s", told->message);
    struct str message = arena_copy(arena, str_from(told->message));
    if (!message.ptr) return error_nomem(err);
    out->failed = true;
    out->fault = kernel_unavailable(why, message);
    return OK;
}

static enum code render_process(struct engine *engine, struct resident *resident, uint32_t step, struct order *out,
                                struct error *err)
{
    struct command command = {0};
    struct error local = {0};
    enum code rc = command_of(engine, resident, step, &command, &local);
    if (rc) return unavailable(rc, &local, &engine->turn, out, err);
    struct str *argv = ARENA_ARRAY(&engine->turn, command.argc + 1, struct str);
    if (!argv) return error_nomem(err);
    memcpy(argv, command.argv, command.argc * sizeof(*argv));
    out->argv = argv;
    out->argc = command.argc;
    out->env = command.env;
    out->env_count = command.env_count;
    out->input = command.input;
    out->cwd = command.cwd;
    return OK;
}

// A function of the host gets its `with` as JSON text, a task what task/task.h says.
static enum code render_function(struct engine *engine, struct resident *resident, uint32_t step, struct order *out,
                                 struct error *err)
{
    const struct run *run = resident->run;
    bool lane = is_lane(run, step);
    struct json with;
    struct error local = {0};
    enum code rc = lane ? kernel_task(run, step, &engine->env, &engine->turn, &with, &local)
                        : kernel_render(run, step, &engine->env, &engine->turn, &with, &local);
    if (rc && lane && !code_is_outage(rc) && rc != E_UNREACHABLE) {
        out->failed = true;
        out->fault = kernel_template_fault(&engine->turn, &local);
        return OK;
    }
    if (rc) return unavailable(rc, &local, &engine->turn, out, err);
    if (lane && kernel_timeout(run, step, &engine->env, &engine->turn, &out->timeout_ms, &local))
        out->timeout_ms = kernel_task_of(run, step)->timeout_ms; // no memory, or a value cannot be read
    struct buf text SCOPED(buf_release) = buf_of(RESULT_MAX);
    json_canon(&text, &with);
    out->failed = !buf_ok(&text);
    out->fault = (struct fault){.code = STR("PAYLOAD_TOO_LARGE"),
                                .message = STR("the inputs of the step are larger than 32 MiB"),
                                .category = STR("validation")};
    if (!out->failed) out->input = arena_copy(&engine->turn, buf_str(&text));
    return out->failed || out->input.ptr ? OK : error_nomem(err);
}

static enum code render_attempt(struct engine *engine, struct resident *resident, uint32_t step, struct order *out,
                                struct error *err)
{
    const struct run *run = resident->run;
    struct str kind;
    enum executor form = order_form(run, step, &kind);
    INVARIANT(kernel_state(run, step) == NODE_RUNNING);
    out->timeout_ms = run->program->steps[kernel_place(run, step)].timeout_ms;
    out->limit = is_lane(run, step) ? kernel_task_of(run, step)->limit : run->program->steps[step].limit;
    out->pool = kernel_queue(run, step);
    out->path = kernel_path(run, step, &engine->turn);
    if (!out->path.ptr) return error_nomem(err);
    if (form == EXECUTOR_PROCESS) return render_process(engine, resident, step, out, err);
    if (form != EXECUTOR_NONE) return render_function(engine, resident, step, out, err);
    enum code rc = kernel_instant(run, step, &engine->env, &engine->turn, &out->answer, err);
    if (rc) return rc;
    out->failed = !out->answer.ok;
    out->fault = out->answer.fault;
    return OK;
}

// Of the orders of one input, rendered in one go: a loop may begin a hundred thousand iterations at once.
enum { ORDER_STEPS = 100000, ORDER_BYTES = 64 << 20 };

enum code order_later(struct engine *engine, struct resident *resident, const struct effect *effect, struct error *err)
{
    struct queued *queued = queue_add(engine, resident, INPUT_NOTE);
    if (!queued) return error_nomem(err);
    INVARIANT(effect->kind == EFFECT_EXECUTE);
    queued->ordered = *effect;
    COVER(order_is_rendered_later);
    return OK;
}

bool attempt_flies(const struct run *run, const struct effect *effect)
{
    if (effect->step >= run_step_count(run) || kernel_state(run, effect->step) != NODE_RUNNING) return false;
    struct run_attempt now = kernel_attempt(run, effect->step);
    return now.logical == effect->logical && now.engine == effect->engine;
}

// Since then the run has gone on: the inputs of the attempt are what the run knows now, as after a crash.
enum code order_again(const struct resident *resident, const struct queued *queued, struct outcome *outcome,
                      struct error *err)
{
    struct run_hold whose = whose_of(&queued->ordered), *hold = hold_find(&resident->holds, &whose);
    if (!hold || !attempt_flies(resident->run, &queued->ordered)) return OK; // it has ended meanwhile, perhaps under another owner
    outcome->effects = ARENA_NEW(outcome->turn, struct effect);
    if (!outcome->effects) return error_nomem(err);
    outcome->effects[0] = queued->ordered;
    outcome->effect_count = outcome->effect_capacity = 1;
    hold->state = HOLD_ORDERED;
    return OK;
}

enum code orders_render(struct engine *engine, struct resident *resident, const struct outcome *outcome,
                        struct order **out, struct error *err)
{
    enum code rc = OK;
    uint64_t first = engine->spent;
    size_t size = engine->turn.size;
    *out = NULL;
    for (size_t i = 0; !rc && i < outcome->effect_count; i++) {
        const struct effect *effect = &outcome->effects[i];
        bool starts = effect->kind == EFFECT_EXECUTE || effect->kind == EFFECT_SUBRUN;
        INVARIANT(effect->kind >= EFFECT_EXECUTE && effect->kind <= EFFECT_CONTINUE_AS_NEW);
        if (!starts || effect_is_stale(resident, effect)) continue;
        if (!*out) *out = ARENA_ARRAY(&engine->turn, outcome->effect_count, struct order);
        if (!*out) return error_nomem(err);
        bool much = engine->spent - first >= ORDER_STEPS || engine->turn.size - size >= ORDER_BYTES;
        (*out)[i].later = much && effect->kind == EFFECT_EXECUTE;
        if ((*out)[i].later) continue;
        rc = effect->kind == EFFECT_EXECUTE ? render_attempt(engine, resident, effect->step, &(*out)[i], err)
                                            : subrun_render(engine, resident, effect, &(*out)[i], err);
    }
    return rc;
}
