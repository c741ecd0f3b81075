// Queues and limits of a tenant.
#include "api/inside.h"

bool handle_queue_list(struct ask *ask)
{
    return service_queue_list(ask->call);
}

bool handle_queue_get(struct ask *ask)
{
    return service_queue_get(ask->call, ask->params[0]);
}

bool handle_queue_put(struct ask *ask)
{
    return service_queue_put(ask->call, ask->params[0], ask->body);
}

bool handle_queue_delete(struct ask *ask)
{
    return service_queue_delete(ask->call, ask->params[0]);
}

bool handle_queue_pause(struct ask *ask)
{
    return service_queue_pause(ask->call, ask->params[0], true);
}

bool handle_queue_resume(struct ask *ask)
{
    return service_queue_pause(ask->call, ask->params[0], false);
}

bool handle_queue_reconcile(struct ask *ask)
{
    return service_queue_reconcile(ask->call);
}

bool handle_limits_get(struct ask *ask)
{
    return service_limits_get(ask->call);
}

bool handle_limits_put(struct ask *ask)
{
    return service_limits_put(ask->call, ask->body);
}

bool handle_step_limit_list(struct ask *ask)
{
    return service_step_limit_list(ask->call);
}

bool handle_step_limit_get(struct ask *ask)
{
    return service_step_limit_get(ask->call, ask->params[0]);
}

bool handle_step_limit_put(struct ask *ask)
{
    return service_step_limit_put(ask->call, ask->params[0], ask->body);
}

bool handle_step_limit_delete(struct ask *ask)
{
    return service_step_limit_delete(ask->call, ask->params[0]);
}
