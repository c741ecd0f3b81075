#include "executor/executor.h"

static bool fits(struct str wanted, struct str given)
{
    return wanted.len == 0 || str_eq(wanted, given);
}

static struct str pool_of(const struct executor_request *request, const struct executor_routes *routes)
{
    if (request->pool.len > 0) return request->pool;
    for (size_t i = 0; i < routes->count; i++) {
        const struct executor_route *route = &routes->at[i];
        if (fits(route->tenant, request->tenant) && fits(route->environment, request->environment) &&
            fits(route->kind, request->kind) && (route->pool.len > 0 || !routes->only_pools))
            return route->pool;
    }
    return routes->only_pools ? STR("default") : (struct str){0};
}

struct executor_choice executor_choose(const struct executor_request *request, const struct executor_routes *routes)
{
    struct str pool = routes ? pool_of(request, routes) : (struct str){0};
    if (pool.len > 0) return (struct executor_choice){.executor = EXECUTOR_POOL, .pool = pool};
    return (struct executor_choice){.executor = request->here ? request->form : EXECUTOR_NONE};
}

enum executor executor_of_step(enum step_kind kind)
{
    switch (kind) {
    case STEP_EXEC:
    case STEP_SHELL:
    case STEP_SCRIPT:
        return EXECUTOR_PROCESS;
    case STEP_TASKS:
        return EXECUTOR_TASK;
    case STEP_HOST:
        return EXECUTOR_FUNCTION;
    case STEP_KIND_FIRST_UNUSED:
    case STEP_NOOP:
    case STEP_ECHO:
    case STEP_MERGE:
    case STEP_WAIT:
    case STEP_APPROVAL:
    case STEP_EVENT:
    case STEP_SUBRUN:
    case STEP_CANCEL:
    case STEP_LOOP:
        return EXECUTOR_NONE;
    }
    return EXECUTOR_NONE;
}
