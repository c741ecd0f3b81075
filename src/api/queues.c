// Queues and limits of a tenant.
#include "api/inside.h"

void handle_queue_list(struct ask *ask)
{
    service_queue_list(ask->call);
}

void handle_queue_get(struct ask *ask)
{
    service_queue_get(ask->call, ask->params[0]);
}

void handle_queue_put(struct ask *ask)
{
    service_queue_put(ask->call, ask->params[0], ask->body);
}

void handle_queue_delete(struct ask *ask)
{
    service_queue_delete(ask->call, ask->params[0]);
}

void handle_queue_pause(struct ask *ask)
{
    service_queue_pause(ask->call, ask->params[0], true);
}

void handle_queue_resume(struct ask *ask)
{
    service_queue_pause(ask->call, ask->params[0], false);
}

void handle_queue_reconcile(struct ask *ask)
{
    service_queue_reconcile(ask->call);
}

void handle_limits_get(struct ask *ask)
{
    service_limits_get(ask->call);
}

void handle_limits_put(struct ask *ask)
{
    service_limits_put(ask->call, ask->body);
}
