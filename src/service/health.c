// Whether it turns and whether it stores: taken from what really happened, not from a probe.
#include "service/inside.h"

enum { TURN_MAX_MS = 10000, STORE_MAX_MS = 15000, PROBE_MS = 5000, ASKED_MS = 60000 };

static int64_t get(const int64_t *value)
{
    return __atomic_load_n(value, __ATOMIC_RELAXED);
}

static void set(int64_t *value, int64_t to)
{
    __atomic_store_n(value, to, __ATOMIC_RELAXED);
}

void health_start(struct service *service)
{
    int64_t now = os_now().mono_ms;
    service->health = (struct health){.turned_ms = now, .stored_ms = now};
}

void health_turned(struct service *service, int64_t mono_ms)
{
    set(&service->health.turned_ms, mono_ms);
}

// A run id that another process took first, or a note that changed meanwhile: the store has read, compared and answered. It takes the
// next batch; a service that lost such a race is as ready as before.
static bool store_works(enum code rc)
{
    return rc == OK || rc == E_EXISTS || rc == E_CONFLICT;
}

// What is wrong with one input alone tells nothing about the store, which may not even have been asked.
static bool is_of_input(enum code rc)
{
    return rc == E_SCHEMA || rc == E_LIMIT || rc == E_INVALID || rc == E_TERMINAL || rc == E_DENIED;
}

void health_stored(struct service *service, enum code rc)
{
    if (is_of_input(rc)) return;
    bool works = store_works(rc);
    __atomic_store_n(&service->health.refused, !works, __ATOMIC_RELAXED);
    if (works) set(&service->health.stored_ms, os_now().mono_ms);
}

static void probed(void *context, enum code rc, const struct error *why)
{
    struct service *service = context;
    (void)why;
    set(&service->health.probing_ms, 0);
    if (rc != E_CANCELLED) health_stored(service, rc);
}

// An idle service stores nothing. While its health is read, it stores a note every few seconds.
void health_tick(struct service *service, int64_t mono_ms)
{
    struct health *health = &service->health;
    struct error err = {0};
    int64_t asked = get(&health->asked_ms);
    bool wanted = asked && mono_ms - asked < ASKED_MS && mono_ms - get(&health->stored_ms) >= PROBE_MS;
    if (!wanted || get(&health->probing_ms)) return;
    struct note_put put = {.space = STR("health"), .key = STR("probe"), .value = STR("1"), .expect = NOTE_ANY};
    if (engine_put(service->engine, &put, 1, probed, service, &err) == OK) set(&health->probing_ms, mono_ms);
}

struct service_health service_health(struct service *service)
{
    struct service_health health;
    int64_t now = os_now().mono_ms;
    set(&service->health.asked_ms, now);
    health.turned_ms = now - get(&service->health.turned_ms);
    health.stored_ms = now - get(&service->health.stored_ms);
    health.refused = __atomic_load_n(&service->health.refused, __ATOMIC_RELAXED);
    pthread_mutex_lock(&service->mutex);
    health.stopping = service->stopping || service->draining;
    health.failed = service->failed != OK;
    health.waiting = service->posted_count;
    pthread_mutex_unlock(&service->mutex);
    // The first questions after a quiet hour must not find that nothing was stored for an hour: what they caused to be stored has its
    // time from when it was given to the engine.
    int64_t probing = get(&service->health.probing_ms);
    health.turns = !health.failed && health.turned_ms <= TURN_MAX_MS;
    bool late = health.stored_ms > STORE_MAX_MS && probing && now - probing > STORE_MAX_MS;
    health.writes = !health.failed && !health.refused && !late;
    return health;
}
