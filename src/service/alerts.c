// Alerts of the service: folded from what is stored, as it is stored.
#include "service/inside.h"

enum { ALERTS_MAX = 2000 };

enum code alerts_open(struct service *service, struct error *err)
{
    pthread_mutex_init(&service->alarm.mutex, NULL);
    return alerts_init(&service->alarm.alerts, &service->arena, ALERTS_MAX) ? OK
                                                                            : error_set(err, E_NOMEM, "out of memory");
}

void service_alert(struct service *service, const struct alert_fact *fact)
{
    pthread_mutex_lock(&service->alarm.mutex);
    alerts_raise(&service->alarm.alerts, fact);
    pthread_mutex_unlock(&service->alarm.mutex);
}

void alerts_event(struct service *service, const struct engine_event *event)
{
    enum moment_kind kind = event->moment->kind;
    if (kind != MOMENT_SIGNAL_ACCEPTED && kind != MOMENT_RUN_FAILED) return;
    pthread_mutex_lock(&service->alarm.mutex);
    alerts_moment(&service->alarm.alerts, &event->state->ids, event->moment, event->item->seq);
    pthread_mutex_unlock(&service->alarm.mutex);
}

bool service_alerts(struct service *service, const struct alert_filter *filter, struct arena *arena, struct json *out)
{
    pthread_mutex_lock(&service->alarm.mutex);
    bool ok = alerts_json(&service->alarm.alerts, filter, arena, out);
    pthread_mutex_unlock(&service->alarm.mutex);
    return ok;
}

bool service_acknowledge(struct service *service, struct str id, struct str by)
{
    pthread_mutex_lock(&service->alarm.mutex);
    bool ok = alerts_acknowledge(&service->alarm.alerts, id, by, os_now().wall_ms);
    pthread_mutex_unlock(&service->alarm.mutex);
    return ok;
}
