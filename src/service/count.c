// Metrics: what is counted as it happens, and what is looked up when the metrics are read.
#include "service/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { SLOTS_MIN = 1024 };

// ---- as it happens. Engine thread

void count_append(struct service *service, enum code rc, int64_t micros, size_t events)
{
    metric_time(service->metrics, METRIC_APPEND, NULL, micros);
    if (rc == OK) {
        metric_add(service->metrics, METRIC_EVENTS, NULL, (int64_t)events);
        return;
    }
    struct str component = STR("store");
    metric_add(service->metrics, METRIC_SYSTEM_ERRORS, &component, 1);
}

static uint64_t key_of(const struct run_ids *ids)
{
    uint64_t key = str_hash(ids->tenant) * UINT64_C(0x9E3779B97F4A7C15) ^ str_hash(ids->run);
    return key ? key : 1;
}

static struct counted *slot_of(struct counting *counting, uint64_t key)
{
    size_t at = (size_t)(key >> 7) & (counting->size - 1);
    while (counting->slots[at].key && counting->slots[at].key != key) at = (at + 1) & (counting->size - 1);
    return &counting->slots[at];
}

static bool grow(struct counting *counting)
{
    struct counting larger = {.size = counting->size ? counting->size * 2 : SLOTS_MIN, .count = counting->count};
    larger.slots = calloc(larger.size, sizeof(*larger.slots));
    if (!larger.slots) return false;
    for (size_t i = 0; i < counting->size; i++)
        if (counting->slots[i].key) *slot_of(&larger, counting->slots[i].key) = counting->slots[i];
    free(counting->slots);
    *counting = larger;
    return true;
}

// Those behind it move up, so that nothing is lost from its chain.
static void take_out(struct counting *counting, struct counted *slot)
{
    size_t hole = (size_t)(slot - counting->slots), at = hole;
    counting->slots[hole] = (struct counted){0};
    counting->count--;
    for (;;) {
        at = (at + 1) & (counting->size - 1);
        struct counted moved = counting->slots[at];
        if (!moved.key) return;
        counting->slots[at] = (struct counted){0};
        *slot_of(counting, moved.key) = moved;
    }
}

static void moved(struct service *service, const struct run_ids *ids, enum run_status to, struct str code,
                  int64_t duration_ms)
{
    struct counting *counting = &service->counting;
    if (counting->count * 2 >= counting->size && !grow(counting)) return;
    struct counted *slot = slot_of(counting, key_of(ids));
    struct metric_run run = {.plan = ids->plan_id,
                             .code = code,
                             .from = (enum run_status)slot->status,
                             .to = to,
                             .duration_ms = duration_ms};
    if (run.from == to) return;
    metrics_run(service->metrics, &run);
    if (run_status_terminal(to)) {
        if (slot->key) take_out(counting, slot);
        return;
    }
    counting->count += slot->key == 0;
    *slot = (struct counted){key_of(ids), (uint8_t)to};
}

// Every event of a turn comes with the state after all of them: the end is counted with the event of the end.
static bool tells_the_end(enum moment_kind kind)
{
    return kind == MOMENT_RUN_COMPLETED || kind == MOMENT_RUN_FAILED || kind == MOMENT_RUN_CANCELLED;
}

void count_event(struct service *service, const struct engine_event *event)
{
    const struct run *run = event->state;
    if (run_status_terminal(run->status) && !tells_the_end(event->moment->kind)) return;
    int64_t duration_ms = run->started_ms && run->ended_ms ? run->ended_ms - run->started_ms : -1;
    moved(service, &run->ids, run->status, run->fault.code, duration_ms);
}

void count_adopted(struct service *service, const struct run_head *head)
{
    moved(service, &head->ids, head->summary.status, (struct str){0}, -1);
}

void count_left(struct service *service, const struct run *run)
{
    struct counting *counting = &service->counting;
    if (counting->size == 0) return;
    struct counted *slot = slot_of(counting, key_of(&run->ids));
    if (!slot->key) return;
    metrics_run(
        service->metrics,
        &(struct metric_run){.plan = run->ids.plan_id, .from = (enum run_status)slot->status, .duration_ms = -1});
    take_out(counting, slot);
}

void count_release(struct service *service)
{
    free(service->counting.slots);
    service->counting = (struct counting){0};
}

// ---- when the metrics are read. Any thread

static void set_one(struct service *service, enum metric metric, struct str label, int64_t value)
{
    metric_set(service->metrics, metric, &label, value);
}

static void look_at_alerts(struct service *service)
{
    static const char *const names[] = {"P1", "P2", "P3"};
    int64_t open[ARRAY_COUNT(names)] = {0};
    pthread_mutex_lock(&service->alarm.mutex);
    for (size_t i = 0; i < service->alarm.alerts.count; i++) {
        const struct alert *alert = &service->alarm.alerts.items[i];
        if (alert->open && alert->priority >= 1 && alert->priority <= 3) open[alert->priority - 1]++;
    }
    pthread_mutex_unlock(&service->alarm.mutex);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) set_one(service, METRIC_ALERTS_OPEN, str_from(names[i]), open[i]);
}

static void look_at_log(struct service *service)
{
    struct str path, kind = str_cut(service->settings.store, ':', &path);
    struct stat about, wal;
    char name[4096];
    if (!str_is(kind, "sqlite")) return; // a directory would have to be walked
    snprintf(name, sizeof(name), "%.*s", STR_ARG(path));
    if (stat(name, &about)) return;
    snprintf(name, sizeof(name), "%.*s-wal", STR_ARG(path));
    if (stat(name, &wal)) wal.st_size = 0;
    metric_set(service->metrics, METRIC_LOG_BYTES, NULL, (int64_t)(about.st_size + wal.st_size));
}

static void look_at_pools(struct service *service)
{
    struct remote_pool *pools;
    size_t count = 0;
    struct arena arena SCOPED(arena_release) = arena_of(4096, 1 << 20);
    if (!remote_pools(service->remote, &arena, &pools, &count)) count = 0;
    for (size_t i = 0; i < count; i++) {
        set_one(service, METRIC_QUEUE_DEPTH, pools[i].name, (int64_t)pools[i].waiting);
        set_one(service, METRIC_QUEUE_AGE, pools[i].name, pools[i].oldest_ms * 1000);
        set_one(service, METRIC_WORKERS, pools[i].name, (int64_t)pools[i].workers);
    }
}

void service_look(struct service *service)
{
    struct remote_counts counts = remote_counts(service->remote);
    set_one(service, METRIC_QUEUE_DEPTH, STR("all"), (int64_t)counts.waiting);
    set_one(service, METRIC_WORKERS, STR("all"), (int64_t)counts.workers);
    look_at_pools(service);
    metric_set(service->metrics, METRIC_LEASES, NULL, (int64_t)counts.leased);
    metric_set(service->metrics, METRIC_CALLS_WAITING, NULL, (int64_t)service_health(service).waiting);
    metric_set(service->metrics, METRIC_UPTIME, NULL, (os_now().wall_ms - service->started_ms) * 1000);
    struct service_projection projection = service_projection(service);
    metric_set(service->metrics, METRIC_PROJECTOR_LAG, NULL, projection.lag_ms * 1000);
    metric_set(service->metrics, METRIC_WATERMARK_AGE, NULL, projection.age_ms * 1000);
    metric_set(service->metrics, METRIC_PROJECTOR_WAITING, NULL, (int64_t)projection.waiting);
    metric_set(service->metrics, METRIC_PROJECTOR_RUNS, NULL, (int64_t)projection.runs);
    metric_set(service->metrics, METRIC_PROJECTOR_STALE, NULL, (int64_t)projection.stale);
    look_at_alerts(service);
    look_at_log(service);
}
