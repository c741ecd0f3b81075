// The table of places: which run stands in which queue, and which is next.
#include "service/queue.h"

#include <stdlib.h>
#include <string.h>

enum { TABLE_FIRST = 256 };
#define ARRIVING ((uint64_t)1 << 62) // runs that arrive are younger than all that were found in the store

struct queued_run {
    struct queued_run *chain;
    struct queued_run *next, *previous; // in its queue, when it waits for a place
    struct run_queue *queue;
    enum queue_state place;
    bool stored;
    uint64_t order, hash;
    int64_t at_ms;
    struct run_slots slots;
    struct str run;
    char bytes[];
};

const struct queue_config queue_config_default = {.policy = POLICY_QUEUE, .max_queued = 10000, .delay_ms = 1000};

// ---- tenants and queues

static struct queue_tenant *tenant_find(const struct queues *queues, struct str name)
{
    struct queue_tenant *tenant = queues->tenants;
    while (tenant && !str_eq(tenant->name, name)) tenant = tenant->next;
    return tenant;
}

struct queue_tenant *queues_tenant(struct queues *queues, struct str name)
{
    struct queue_tenant *tenant = tenant_find(queues, name);
    if (tenant) return tenant;
    tenant = calloc(1, sizeof(*tenant) + name.len + 1);
    if (!tenant) return NULL;
    memcpy(tenant->bytes, name.ptr, name.len);
    tenant->name = (struct str){tenant->bytes, name.len};
    tenant->next = queues->tenants;
    queues->tenants = tenant;
    return tenant;
}

static struct run_queue *queue_in(const struct queue_tenant *tenant, struct str name)
{
    struct run_queue *queue = tenant ? tenant->queues : NULL;
    while (queue && !str_eq(queue->name, name)) queue = queue->next;
    return queue;
}

static struct str queue_named(struct str name)
{
    return name.len ? name : QUEUE_DEFAULT;
}

struct run_queue *queues_find(const struct queues *queues, struct str tenant, struct str name)
{
    return queue_in(tenant_find(queues, tenant), queue_named(name));
}

bool queues_known(const struct queues *queues, struct str tenant, struct str name)
{
    name = queue_named(name);
    const struct run_queue *queue = queues_find(queues, tenant, name);
    return str_eq(name, QUEUE_DEFAULT) || (queue && queue->configured);
}

static struct run_queue *queue_get(struct queues *queues, struct str tenant_name, struct str name)
{
    struct queue_tenant *tenant = queues_tenant(queues, tenant_name);
    name = queue_named(name);
    struct run_queue *queue = queue_in(tenant, name);
    if (queue || !tenant) return queue;
    queue = calloc(1, sizeof(*queue) + name.len + 1);
    if (!queue) return NULL;
    memcpy(queue->bytes, name.ptr, name.len);
    queue->name = (struct str){queue->bytes, name.len};
    queue->tenant = tenant;
    queue->config = queue_config_default;
    queue->next = tenant->queues;
    tenant->queues = queue;
    return queue;
}

enum code queues_configure(struct queues *queues, struct str tenant, struct str name, const struct queue_config *config,
                           struct error *err)
{
    struct run_queue *queue = queue_get(queues, tenant, name);
    if (!queue) return error_nomem(err);
    uint32_t before = queue->config.max_running;
    queue->config = config ? *config : queue_config_default;
    if (queue->config.max_running && !before) queue->share.unsettled = true;
    queue->configured = queue->listed = config != NULL;
    queues->changed = true;
    return OK;
}

void queues_limit(struct queues *queues, struct queue_tenant *tenant, const struct tenant_limits *limits)
{
    if (limits->runs_in_flight && !tenant->limits.runs_in_flight) tenant->share.unsettled = true;
    tenant->limits = *limits;
    queues->changed = true;
}

void queues_list_begin(struct queues *queues)
{
    for (struct queue_tenant *tenant = queues->tenants; tenant; tenant = tenant->next)
        for (struct run_queue *queue = tenant->queues; queue; queue = queue->next) queue->listed = false;
}

enum code queues_list_end(struct queues *queues, struct error *err)
{
    enum code rc = OK;
    for (struct queue_tenant *tenant = queues->tenants; tenant; tenant = tenant->next)
        for (struct run_queue *queue = tenant->queues; queue && !rc; queue = queue->next)
            if (queue->configured && !queue->listed)
                rc = queues_configure(queues, tenant->name, queue->name, NULL, err);
    return rc;
}

struct queue_config queues_config(const struct queues *queues, struct str tenant, struct str name)
{
    const struct run_queue *queue = queues_find(queues, tenant, name);
    return queue ? queue->config : queue_config_default;
}

void queues_release(struct queues *queues)
{
    for (size_t i = 0; i < queues->size; i++)
        while (queues->table[i]) {
            struct queued_run *placed = queues->table[i];
            queues->table[i] = placed->chain;
            free(placed);
        }
    free(queues->table);
    while (queues->tenants) {
        struct queue_tenant *tenant = queues->tenants;
        queues->tenants = tenant->next;
        while (tenant->queues) {
            struct run_queue *queue = tenant->queues;
            tenant->queues = queue->next;
            shared_limit_release(&queue->share);
            free(queue);
        }
        shared_limit_release(&tenant->share);
        free(tenant);
    }
    *queues = (struct queues){0};
}

// ---- is there a place?

static bool room_beside(const struct queues *queues, const struct queue_tenant *tenant)
{
    if (queues->running_max && queues->running >= queues->running_max) return false;
    if (!tenant || !tenant->limits.runs_in_flight) return true;
    return tenant->running + tenant->share.elsewhere < tenant->limits.runs_in_flight;
}

static bool room_in(const struct run_queue *queue)
{
    if (queue->config.paused) return false;
    return !queue->config.max_running || queue->running + queue->share.elsewhere < queue->config.max_running;
}

enum queue_verdict queues_ask(const struct queues *queues, struct str tenant_name, struct str name, bool gated)
{
    const struct queue_tenant *tenant = tenant_find(queues, tenant_name);
    const struct run_queue *queue = queue_in(tenant, queue_named(name));
    struct queue_config config = queue ? queue->config : queue_config_default;
    bool limited =
        queues->running_max || config.max_running || config.paused || (tenant && tenant->limits.runs_in_flight);
    // Nobody overtakes those that wait, here or elsewhere.
    bool behind = tenant && tenant->limits.runs_in_flight && tenant->share.oldest_ms;
    bool room = room_beside(queues, tenant) && !behind &&
                (!queue || (room_in(queue) && !queue->first && !queue->share.oldest_ms));
    if (room) return gated && limited ? VERDICT_QUEUE : VERDICT_START;
    if (config.policy == POLICY_REJECT) return VERDICT_REJECT;
    if (config.policy == POLICY_DELAY) return VERDICT_DELAY;
    return queue && queue->waiting + queue->share.waiting >= config.max_queued ? VERDICT_FULL : VERDICT_QUEUE;
}

// ---- places

static uint64_t hash_of(struct str tenant, struct str run)
{
    return str_hash(tenant) * 31 + str_hash(run);
}

static struct queued_run **slot_of(const struct queues *queues, struct str tenant, struct str run)
{
    uint64_t hash = hash_of(tenant, run);
    if (!queues->size) return NULL;
    struct queued_run **at = &queues->table[hash & (queues->size - 1)];
    for (; *at; at = &(*at)->chain)
        if ((*at)->hash == hash && str_eq((*at)->run, run) && str_eq((*at)->queue->tenant->name, tenant)) return at;
    return NULL;
}

static bool grow(struct queues *queues)
{
    if (queues->count < queues->size) return true;
    size_t size = queues->size ? queues->size * 2 : TABLE_FIRST;
    struct queued_run **table = calloc(size, sizeof(struct queued_run *));
    if (!table) return false;
    for (size_t i = 0; i < queues->size; i++)
        while (queues->table[i]) {
            struct queued_run *placed = queues->table[i];
            queues->table[i] = placed->chain;
            placed->chain = table[placed->hash & (size - 1)];
            table[placed->hash & (size - 1)] = placed;
        }
    free(queues->table);
    queues->table = table;
    queues->size = size;
    return true;
}

// By age. Those that arrive are the youngest, those found in the store come the youngest first: both ends are near.
static void line_up(struct queued_run *placed)
{
    struct run_queue *queue = placed->queue;
    struct queued_run *after = queue->last;
    if (queue->first && placed->order < queue->first->order) after = NULL;
    while (after && after->order > placed->order) after = after->previous;
    placed->previous = after;
    placed->next = after ? after->next : queue->first;
    *(after ? &after->next : &queue->first) = placed;
    *(placed->next ? &placed->next->previous : &queue->last) = placed;
}

static void step_out(struct queued_run *placed)
{
    struct run_queue *queue = placed->queue;
    *(placed->previous ? &placed->previous->next : &queue->first) = placed->next;
    *(placed->next ? &placed->next->previous : &queue->last) = placed->previous;
    placed->next = placed->previous = NULL;
}

static void leave(struct queues *queues, struct queued_run *placed)
{
    struct run_queue *queue = placed->queue;
    if (placed->place == QUEUE_WAITING) step_out(placed);
    if (placed->place == QUEUE_WAITING || placed->place == QUEUE_GATED) queue->waiting--;
    if (placed->place == QUEUE_RUNNING) {
        queue->running--;
        queue->tenant->running--;
        queues->running--;
        queues->changed = true;
    }
    placed->place = QUEUE_NONE;
}

static void enter(struct queues *queues, struct queued_run *placed, enum queue_state place)
{
    struct run_queue *queue = placed->queue;
    placed->place = place;
    if (place == QUEUE_RUNNING) {
        queue->running++;
        queue->tenant->running++;
        queues->running++;
        return;
    }
    queue->waiting++;
    if (place != QUEUE_WAITING) return;
    line_up(placed);
    queues->changed = true;
}

static struct queued_run *arrive(struct queues *queues, struct str tenant, struct str name, struct str run)
{
    struct run_queue *queue = queue_get(queues, tenant, name);
    struct queued_run *placed = queue && grow(queues) ? calloc(1, sizeof(*placed) + run.len + 1) : NULL;
    if (!placed) return NULL;
    memcpy(placed->bytes, run.ptr, run.len);
    placed->run = (struct str){placed->bytes, run.len};
    placed->queue = queue;
    placed->hash = hash_of(tenant, run);
    placed->chain = queues->table[placed->hash & (queues->size - 1)];
    queues->table[placed->hash & (queues->size - 1)] = placed;
    queues->count++;
    return placed;
}

static void forget(struct queues *queues, struct queued_run **at)
{
    struct queued_run *placed = *at;
    leave(queues, placed);
    *at = placed->chain;
    queues->count--;
    free(placed);
}

enum code queues_place(struct queues *queues, struct str tenant, struct str name, struct str run,
                       enum queue_state place, uint64_t order, int64_t at_ms, struct error *err)
{
    struct queued_run **at = slot_of(queues, tenant, run);
    if (place == QUEUE_NONE) {
        if (at) forget(queues, at);
        return OK;
    }
    struct queued_run *placed = at ? *at : arrive(queues, tenant, name, run);
    if (!placed) return error_nomem(err);
    if (placed->place == place) return OK;
    if (placed->place == QUEUE_NONE) {
        placed->order = order ? order : ARRIVING + queues->order++;
        placed->at_ms = at_ms;
    } else {
        leave(queues, placed);
    }
    enter(queues, placed, place);
    return OK;
}

void queues_remove(struct queues *queues, struct str tenant, struct str run)
{
    struct queued_run **at = slot_of(queues, tenant, run);
    if (at) forget(queues, at);
}

void queues_confirm(struct queues *queues, struct str tenant, struct str run)
{
    struct queued_run **at = slot_of(queues, tenant, run);
    if (at) (*at)->stored = true;
}

void queues_refused(struct queues *queues, struct str tenant, struct str run)
{
    struct queued_run **at = slot_of(queues, tenant, run);
    if (at && !(*at)->stored) forget(queues, at);
}

struct run_slots *queues_slots(const struct queues *queues, struct str tenant, struct str run, struct run_queue **queue,
                               enum queue_state *place)
{
    struct queued_run **at = slot_of(queues, tenant, run);
    if (!at) return NULL;
    if (queue) *queue = (*at)->queue;
    if (place) *place = (*at)->place;
    return &(*at)->slots;
}

void queues_each(const struct queues *queues, void *context,
                 void (*visit)(void *context, struct run_queue *queue, struct str run, enum queue_state place,
                               struct run_slots *slots))
{
    for (size_t i = 0; i < queues->size; i++)
        for (struct queued_run *placed = queues->table[i]; placed; placed = placed->chain)
            visit(context, placed->queue, placed->run, placed->place, &placed->slots);
}

size_t queues_position(const struct queues *queues, struct str tenant, struct str run)
{
    struct queued_run **at = slot_of(queues, tenant, run);
    size_t position = 1;
    if (!at || (*at)->place != QUEUE_WAITING) return 0;
    for (const struct queued_run *before = (*at)->queue->first; before && before != *at; before = before->next)
        position++;
    return position;
}

int64_t queue_oldest_ms(const struct run_queue *queue)
{
    return queue->first ? queue->first->at_ms : 0;
}

// ---- dequeueAndStart

static struct run_queue *next_of(const struct queues *queues, const struct queue_tenant *tenant)
{
    struct run_queue *best = NULL;
    if (!room_beside(queues, tenant) || tenant->share.yields) return NULL;
    for (struct run_queue *queue = tenant->queues; queue; queue = queue->next) {
        if (!queue->first || queue->stuck || queue->share.yields || !room_in(queue)) continue;
        bool before = !best || queue->config.priority > best->config.priority ||
                      (queue->config.priority == best->config.priority && queue->first->order < best->first->order);
        if (before) best = queue;
    }
    return best;
}

// Round robin: the first tenant after the one that was served last.
static struct run_queue *next_in_turn(struct queues *queues)
{
    const struct queue_tenant *served = queues->served, *end = served ? served->next : NULL;
    struct run_queue *queue = NULL;
    for (const struct queue_tenant *tenant = end; !queue && tenant; tenant = tenant->next)
        queue = next_of(queues, tenant);
    for (const struct queue_tenant *tenant = queues->tenants; !queue && tenant && tenant != end; tenant = tenant->next)
        queue = next_of(queues, tenant);
    return queue;
}

static void move(struct queues *queues, struct queued_run *placed, enum queue_state place)
{
    leave(queues, placed);
    if (place != QUEUE_NONE) enter(queues, placed, place);
}

static const char *settle(struct queues *queues, struct queued_run *placed, enum code rc)
{
    if (rc == OK) {
        move(queues, placed, QUEUE_RUNNING);
        return "STARTED";
    }
    if (rc == E_NOMEM) { // another time
        placed->queue->stuck = true;
        return "FAILED";
    }
    if (rc == E_TERMINAL || rc == E_NOT_FOUND || rc == E_LOCKED) { // over, or another engine's
        move(queues, placed, QUEUE_NONE);
        return "SKIPPED";
    }
    // It waits for its approval after all, or cannot go on here. The others can.
    move(queues, placed, QUEUE_GATED);
    return rc == E_CONFLICT ? "SKIPPED" : "FAILED";
}

size_t queues_reconcile(struct queues *queues, const struct queue_pass *pass)
{
    struct run_queue *queue;
    size_t started = 0;
    queues->changed = false;
    for (struct queue_tenant *tenant = queues->tenants; tenant; tenant = tenant->next)
        for (queue = tenant->queues; queue; queue = queue->next) queue->stuck = false;
    while ((queue = next_in_turn(queues))) {
        struct queued_run *placed = queue->first;
        struct str tenant = queue->tenant->name;
        queues->served = queue->tenant;
        enum code rc = pass->admit(pass->context, tenant, placed->run);
        const char *status = settle(queues, placed, rc);
        if (rc == OK) started++;
        if (pass->told) pass->told(pass->context, tenant, placed->run, status);
        if (placed->place == QUEUE_NONE) queues_remove(queues, tenant, placed->run);
    }
    return started;
}
