// Those who execute attempts: which of them it is (executor/executor.h decides), and opening them when the first attempt needs them.
#include "engine/permits.h"

#include <stdatomic.h>

static const char *mark_of(struct engine *engine)
{
    if (!engine->mark.store[0]) engine_mark(engine->store, true, &engine->mark);
    return engine->mark.store;
}

static enum code open_processes(struct engine *engine, struct error *err)
{
    if (engine->tools) return OK;
    struct tool_options options = {.mark = mark_of(engine),
                                   .process_max = engine->options.limits.process_max,
                                   .deliver = mailbox_result,
                                   .output = engine->options.observer.output ? mailbox_line : NULL,
                                   .context = &engine->mailbox,
                                   .confinement = engine->options.confinement,
                                   .secrets = engine->options.secrets};
    engine->own_tools = true;
    enum code rc = tools_open(&options, &engine->tools, err);
    if (!rc) atomic_store(&engine->told[0], engine->tools);
    return rc;
}

// A handle of its own: tasks run in threads of theirs.
static enum code read_result(void *context, const struct tool_request *request, struct str ref, struct arena *arena,
                             struct str *out, struct error *err)
{
    const struct engine *engine = context;
    struct store_options options = {.mode = STORE_READ, .keep = store_keep(engine->store)};
    struct store *store = NULL;
    enum code rc = store_open(store_url(engine->store), &options, &store, err);
    if (rc) return rc;
    rc = store_result(store, request->tenant, request->run, ref, arena, out, err);
    store_close(store);
    return rc;
}

static enum code open_tasks(struct engine *engine, struct error *err)
{
    if (engine->tasks || engine->options.tasks.tools) return OK;
    struct task_options options = engine->options.task ? *engine->options.task : (struct task_options){0};
    options.mark = mark_of(engine);
    options.process_max = engine->options.limits.process_max;
    options.confinement = engine->options.confinement;
    options.secrets = engine->options.secrets;
    options.results = (struct task_results){.read = read_result, .context = engine};
    enum code rc = tasks_open(&options, &engine->tasks, err);
    if (rc) return rc;
    tasks_connect(engine->tasks, mailbox_result, engine->options.observer.output ? mailbox_line : NULL,
                  &engine->mailbox);
    atomic_store(&engine->told[1], tasks_tools(engine->tasks));
    return OK;
}

// ---- which one
static bool host_knows(const struct engine_host *host, struct str kind)
{
    return host->tools && host->knows && host->knows(host->context, kind);
}

// Any thread: only what engine_open was given is looked at.
static bool is_here(const struct engine *engine, enum executor form, struct str kind)
{
    const struct engine_options *options = &engine->options;
    if (form == EXECUTOR_PROCESS) return options->tools || !options->no_processes;
    if (form == EXECUTOR_FUNCTION) return host_knows(&options->host, kind);
    if (options->tasks.tools) return host_knows(&options->tasks, kind);
    return !options->no_processes && task_kind_known(options->task ? options->task->plugins : NULL, kind);
}

static struct executor_choice choose(const struct engine *engine, const struct run_ids *ids, enum executor form,
                                     struct str kind, struct str pool)
{
    struct executor_request request = {.form = form,
                                       .here = is_here(engine, form, kind),
                                       .kind = kind,
                                       .tenant = ids->tenant,
                                       .environment = ids->environment,
                                       .pool = pool};
    return executor_choose(&request, engine->options.pools ? &engine->options.routes : NULL);
}

struct str step_executes(const struct program_step *ps)
{
    return ps->kind == STEP_HOST ? ps->function : str_from(step_kind_name(ps->kind));
}

enum code execution_open(struct engine *engine, const struct run_ids *ids, struct execution *execution,
                         struct error *err)
{
    INVARIANT(execution->form != EXECUTOR_NONE);
    struct executor_choice choice = choose(engine, ids, execution->form, execution->kind, execution->pool);
    enum code rc = OK;
    execution->pool = choice.pool;
    switch (choice.executor) {
    case EXECUTOR_NONE:
        return E_UNSUPPORTED;
    case EXECUTOR_PROCESS:
        rc = open_processes(engine, err);
        execution->with = engine->tools;
        return rc;
    case EXECUTOR_TASK:
        rc = open_tasks(engine, err);
        execution->with = engine->tasks ? tasks_tools(engine->tasks) : engine->options.tasks.tools;
        return rc;
    case EXECUTOR_FUNCTION:
        execution->with = engine->options.host.tools;
        return OK;
    case EXECUTOR_POOL:
        execution->with = engine->options.pools;
        return OK;
    }
    return E_UNSUPPORTED;
}

void executors_flush(const struct engine *engine)
{
    struct tools *pools = engine->options.pools;
    if (pools && pools->ops->flush) pools->ops->flush(pools);
}

void engine_places(const struct engine *engine, tool_place_visit visit, void *context)
{
    struct tools *all[] = {atomic_load(&engine->told[0]), atomic_load(&engine->told[1]), engine->options.tools,
                           engine->options.tasks.tools, engine->options.pools};
    for (size_t i = 0; i < ARRAY_COUNT(all); i++)
        if (all[i] && all[i]->ops->places) all[i]->ops->places(all[i], visit, context);
    permits_visit(atomic_load(&engine->permits_shown), true, visit, context);
}

void engine_limit_holders(const struct engine *engine, tool_place_visit visit, void *context)
{
    permits_visit(atomic_load(&engine->permits_shown), false, visit, context);
}

void executors_close(struct engine *engine)
{
    if (engine->own_tools && engine->tools) engine->tools->ops->close(engine->tools);
    tasks_close(engine->tasks);
}

// ---- whether there is one for everything
static bool has_executor(const struct engine *engine, const struct run_ids *ids, enum executor form, struct str kind)
{
    return choose(engine, ids, form, kind, (struct str){0}).executor != EXECUTOR_NONE;
}

static enum code supports_step(const struct engine *engine, const struct run_ids *ids, const struct program_step *ps,
                               struct error *err)
{
    enum executor form = executor_of_step(ps->kind);
    bool lacks = (form == EXECUTOR_PROCESS || form == EXECUTOR_FUNCTION) &&
                 !has_executor(engine, ids, form, step_executes(ps));
    if (lacks && form == EXECUTOR_PROCESS)
        return error_set(err, E_UNSUPPORTED, "step %.*s (%s) needs a process, and this engine starts none",
                         STR_ARG(ps->id), step_kind_name(ps->kind));
    if (lacks)
        return error_set(err, E_UNSUPPORTED, "step %.*s needs the function \"%.*s\", which is not registered here",
                         STR_ARG(ps->id), STR_ARG(ps->function));
    return ps->child ? engine_supports(engine, ids, ps->child, err) : OK;
}

static enum code supports_task(const struct engine *engine, const struct run_ids *ids, const struct net_task *task,
                               struct error *err)
{
    bool own = task->in_process || str_is(task->kind, "playbook") || str_is(task->kind, "wait") ||
               str_is(task->kind, "event");
    if (own) return task->child ? engine_supports(engine, ids, task->child, err) : OK;
    if (has_executor(engine, ids, EXECUTOR_TASK, task->kind)) return OK;
    return error_set(err, E_UNSUPPORTED, "task %.*s needs the tool \"%.*s\", which is not there", STR_ARG(task->label),
                     STR_ARG(task->kind));
}

// ---- playbooks: a task may lie on a way that is never taken. A run is refused for those alone that it cannot miss.
static bool may_leave(const struct net_task *task)
{
    return task->rule_count > 0; // a rule may break, jump or fail before the next one
}

static enum code supports_visit(const struct engine *engine, const struct run_ids *ids, const struct net_step *step,
                                struct error *err)
{
    bool certain = !step->has_loop; // which may have nothing to go round for
    enum code rc = OK;
    for (uint32_t i = 0; !rc && certain && i < step->task_count; i++) {
        rc = supports_task(engine, ids, &step->tasks[i], err);
        certain = !may_leave(&step->tasks[i]);
    }
    return rc;
}

// The steps that a token comes to whatever happens, but for failures: from the entry along arcs without conditions.
static enum code supports_net(const struct engine *engine, const struct run_ids *ids, const struct program *program,
                              struct error *err)
{
    const struct net *net = program->net;
    struct arena scratch SCOPED(arena_release) = arena_of(4096, (size_t)64 << 20);
    uint32_t *todo = ARENA_ARRAY(&scratch, (size_t)program->step_count + 1, uint32_t);
    bool *seen = ARENA_ARRAY(&scratch, (size_t)program->step_count + 1, bool);
    if (!todo || !seen) return error_nomem(err);
    uint32_t count = 0;
    enum code rc = OK;
    if (program->step_count > 0) todo[count++] = net->entry;
    if (program->step_count > 0) seen[net->entry] = true;
    while (!rc && count > 0) {
        const struct net_step *step = &net->steps[todo[--count]];
        if (step->admit_count > 0) continue;
        rc = supports_visit(engine, ids, step, err);
        for (uint32_t i = 0; i < step->arc_count; i++) {
            const struct net_arc *arc = &step->arcs[i];
            bool taken = !arc->when.test;
            if (taken && !seen[arc->step]) todo[count++] = arc->step;
            seen[arc->step] = seen[arc->step] || taken;
            if (!step->inclusive) break; // the first one that holds is the only one
        }
    }
    return rc;
}

enum code engine_supports(const struct engine *engine, const struct run_ids *ids, const struct program *program,
                          struct error *err)
{
    if (program->net) return supports_net(engine, ids, program, err);
    enum code rc = OK;
    for (uint32_t i = 0; !rc && i < program->step_count; i++) rc = supports_step(engine, ids, &program->steps[i], err);
    return rc;
}
