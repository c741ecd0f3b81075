// The tools of playbooks in a service: those that a route sends to workers go there, the others run here. With the service's policy of
// what may be fetched, its confinement and its credentials.
#include "service/inside.h"

struct toolset {
    struct tools base;
    struct tasks *tasks;
    struct remote *remote;
};

static struct toolset *of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct toolset, base);
}

static enum code start(struct tools *base, const struct tool_request *request, struct error *err)
{
    struct toolset *toolset = of(base);
    bool elsewhere = request->queue.len > 0 || remote_knows(toolset->remote, request->function);
    struct tools *tools = elsewhere ? remote_tools(toolset->remote) : tasks_tools(toolset->tasks);
    return tools->ops->start(tools, request, err);
}

static void cancel(struct tools *base, uint64_t ticket, int64_t grace_ms)
{
    struct toolset *toolset = of(base);
    struct tools *tools[] = {remote_tools(toolset->remote), tasks_tools(toolset->tasks)};
    for (size_t i = 0; i < ARRAY_COUNT(tools); i++) tools[i]->ops->cancel(tools[i], ticket, grace_ms);
}

static void flush(struct tools *base)
{
    struct tools *tools = remote_tools(of(base)->remote);
    if (tools->ops->flush) tools->ops->flush(tools);
}

static void close_tools(struct tools *base)
{
    toolset_close(of(base));
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .flush = flush, .close = close_tools};

enum code toolset_open(struct service *service, struct error *err)
{
    struct toolset *toolset = ARENA_NEW(&service->arena, struct toolset);
    if (!toolset) return error_nomem(err);
    engine_mark(service->store, service->mark);
    const struct service_settings *settings = &service->settings;
    struct fetch_policy *policy = settings->fetch;
    // Without a word nothing may be fetched.
    enum code rc = policy ? OK : fetch_policy_parse(NULL, &service->arena, &policy, err);
    struct task_options options = {.mark = service->mark,
                                   .process_max = settings->processes,
                                   .confinement = settings->confinement,
                                   .secrets = settings->secrets,
                                   .policy = policy,
                                   .plugins = settings->tools_dir.len ? settings->tools_dir.ptr : NULL,
                                   .credentials = settings->credentials};
    if (!rc) rc = tasks_open(&options, &toolset->tasks, err);
    if (rc) return rc;
    toolset->base.ops = &ops;
    toolset->remote = service->remote;
    service->toolset = toolset;
    return OK;
}

static void to_engine(void *engine, struct tool_result *result)
{
    engine_deliver(engine, result);
}

static void line_to_engine(void *engine, uint64_t ticket, bool is_stderr, struct str line)
{
    engine_line(engine, ticket, is_stderr, line);
}

void toolset_attach(struct toolset *toolset, struct engine *engine)
{
    tasks_connect(toolset->tasks, to_engine, line_to_engine, engine);
    tasks_read_with(toolset->tasks, engine_results(engine));
}

static bool knows(void *context, struct str kind)
{
    const struct toolset *toolset = context;
    return tasks_know(toolset->tasks, kind) || remote_knows(toolset->remote, kind);
}

struct engine_host toolset_host(struct toolset *toolset)
{
    return (struct engine_host){.tools = &toolset->base, .context = toolset, .knows = knows};
}

void toolset_close(struct toolset *toolset)
{
    if (!toolset) return;
    tasks_close(toolset->tasks);
    toolset->tasks = NULL;
}
