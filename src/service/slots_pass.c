// Limits that hold for all engines together, in each round: what others have given back is seen, runs that wait get numbers and go on when
// these are stored, other engines learn which runs wait here (slots.h).
#include "service/slots.h"

#include <stdio.h>
#include <stdlib.h>

enum { LOOK_MS = 50, SAY_MS = 1000, SAY_AGAIN_MS = 200, YIELD_MS = 300, ASKED_MAX = 256 };

// ---- runs that are to go on, and wait for their numbers to be stored

struct asked_run {
    struct limits limits;
    struct run_slots slots; // as picked
    struct str run;
};
struct slot_asking {
    struct slot_asking *next;
    struct service *service;
    enum code rc; // what became of it
    struct arena arena;
    struct asked_run runs[ASKED_MAX];
    size_t count;
    struct note_put puts[ASKED_MAX * SLOTS_MAX];
    size_t put_count;
};

static void asking_free(struct slot_asking *asking)
{
    arena_release(&asking->arena);
    free(asking);
}

static struct slot_asking *asking_now(struct service *service)
{
    struct slot_asking *asking = service->slots.asking;
    if (asking) return asking->count < ASKED_MAX ? asking : NULL;
    asking = calloc(1, sizeof(*asking));
    if (!asking) return NULL;
    asking->service = service;
    arena_init(&asking->arena, 16 * 1024, (size_t)16 << 20);
    return service->slots.asking = asking;
}

enum code slots_admit(struct service *service, struct str tenant, struct str run, struct error *err)
{
    struct run_queue *queue = NULL;
    struct run_slots *slots = queues_slots(&service->queues, tenant, run, &queue, NULL);
    struct limits limits = {0};
    if (slots && service->members.several) limits = slots_limits(queue->tenant, queue);
    if (!limits.of_queue && !limits.of_tenant) return engine_admit(service->engine, tenant, run, err);
    struct slot_asking *asking = asking_now(service);
    if (!asking || !slots_pick(&limits, slots)) return E_NOMEM; // another time
    struct note_put *puts = &asking->puts[asking->put_count];
    struct asked_run *asked = &asking->runs[asking->count];
    *asked = (struct asked_run){.limits = limits, .slots = *slots, .run = arena_copy(&asking->arena, run)};
    size_t count = slots_notes(&limits, run, slots, true, false, &asking->arena, puts);
    if (!asked->run.ptr || count == 0) {
        slots_settled(&limits, slots, false);
        return E_NOMEM;
    }
    asking->put_count += count;
    asking->count++;
    return OK;
}

// Called within a turn of the engine: what follows from it waits for the turn's end.
static void asking_done(void *context, enum code rc, const struct error *why)
{
    struct slot_asking *asking = context;
    (void)why;
    asking->rc = rc;
    asking->next = asking->service->slots.answered;
    asking->service->slots.answered = asking;
}

static void send(struct service *service)
{
    struct slot_asking *asking = service->slots.asking;
    struct error err = {0};
    service->slots.asking = NULL;
    if (!asking) return;
    enum code rc = engine_put(service->engine, asking->puts, asking->put_count, asking_done, asking, &err);
    if (rc) asking_done(asking, rc, &err);
}

static void give_back(struct service *service, const struct limits *limits, struct str run, struct run_slots *slots)
{
    struct note_put puts[SLOTS_MAX];
    struct error err = {0};
    struct arena arena SCOPED(arena_release) = arena_of(4096, 1 << 20);
    size_t count = slots_notes(limits, run, slots, false, true, &arena, puts);
    if (count > 0 && engine_put(service->engine, puts, count, NULL, NULL, &err))
        os_log(LOG_WARN, "slot not given back run=%.*s why=\"%s\"", STR_ARG(run), err.message);
    *slots = (struct run_slots){0};
}

static void go_on(struct service *service, const struct asked_run *asked, struct run_slots *slots)
{
    struct str tenant = asked->limits.tenant->name;
    struct error err = {0};
    enum code rc = engine_admit(service->engine, tenant, asked->run, &err);
    enum queue_state place = rc == E_NOMEM ? QUEUE_WAITING : QUEUE_GATED; // E_NOMEM: with its number, which it keeps
    if (!rc) return;
    if (rc != E_CONFLICT && rc != E_TERMINAL)
        os_log(LOG_WARN, "run not started from its queue run=%.*s why=\"%s\"", STR_ARG(asked->run), err.message);
    if (rc != E_NOMEM) give_back(service, &asked->limits, asked->run, slots);
    if (rc == E_TERMINAL || rc == E_NOT_FOUND || rc == E_LOCKED)
        queues_remove(&service->queues, tenant, asked->run);
    else if (queues_place(&service->queues, tenant, (struct str){0}, asked->run, place, 0, 0, &err))
        os_log(LOG_ERROR, "run not counted run=%.*s", STR_ARG(asked->run));
}

static void settle(struct service *service, struct asked_run *asked, enum code rc)
{
    enum queue_state place = QUEUE_NONE;
    struct str tenant = asked->limits.tenant->name;
    struct run_slots *slots = queues_slots(&service->queues, tenant, asked->run, NULL, &place);
    struct error err = {0};
    slots_settled(&asked->limits, &asked->slots, rc == OK);
    if (!slots) return; // it left, or is over; what it got goes with it, or is found to be over
    *slots = asked->slots;
    if (place != QUEUE_RUNNING) return;
    if (rc == OK)
        go_on(service, asked, slots);
    else if (queues_place(&service->queues, tenant, (struct str){0}, asked->run, QUEUE_WAITING, 0, 0, &err))
        os_log(LOG_ERROR, "run not counted run=%.*s", STR_ARG(asked->run));
}

static void take_answers(struct service *service)
{
    while (service->slots.answered) {
        struct slot_asking *asking = service->slots.answered;
        service->slots.answered = asking->next;
        for (size_t i = 0; i < asking->count; i++) settle(service, &asking->runs[i], asking->rc);
        service->queues.changed = true;
        asking_free(asking);
    }
}

void slots_release(struct service *service)
{
    if (service->slots.asking) asking_free(service->slots.asking);
    for (struct slot_asking *next, *asking = service->slots.answered; asking; asking = next) {
        next = asking->next;
        asking_free(asking);
    }
    service->slots.asking = service->slots.answered = NULL;
}

// ---- starts

void slots_stored(struct service *service, struct str tenant, struct str run, bool stored)
{
    struct run_queue *queue = NULL;
    struct run_slots *slots = queues_slots(&service->queues, tenant, run, &queue, NULL);
    if (!slots) return;
    struct limits limits = slots_limits(queue->tenant, queue);
    slots_settled(&limits, slots, stored);
}

size_t slots_ending(void *context, struct str tenant, struct str run, struct arena *arena, struct note_put *out)
{
    struct service *service = context;
    struct run_queue *queue = NULL;
    const struct run_slots *slots = queues_slots(&service->queues, tenant, run, &queue, NULL);
    if (!slots) return 0;
    struct limits limits = slots_limits(queue->tenant, queue);
    return slots_notes(&limits, run, slots, false, true, arena, out);
}

// ---- runs that count and are not in the store: they were there before the limit, or nobody asked for them (forks)

static void count_beside(void *context, struct run_queue *queue, struct str run, enum queue_state place,
                         struct run_slots *slots)
{
    struct service *service = context;
    struct limits limits = slots_limits(queue->tenant, queue);
    bool counted = (!limits.of_queue || slots->of_queue.hold) && (!limits.of_tenant || slots->of_tenant.hold);
    struct note_put puts[SLOTS_MAX];
    struct error err = {0};
    if (place != QUEUE_RUNNING || counted) return;
    slots_beside(&limits, slots);
    struct arena arena SCOPED(arena_release) = arena_of(4096, 1 << 20);
    size_t count = slots_notes(&limits, run, slots, true, false, &arena, puts);
    if (count > 0 && engine_put(service->engine, puts, count, NULL, NULL, &err))
        os_log(LOG_WARN, "run not counted run=%.*s why=\"%s\"", STR_ARG(run), err.message);
    for (struct slot *slot = &slots->of_queue; slot <= &slots->of_tenant; slot++)
        if (slot->hold == HOLD_OVER) slot->asked = false;
}

void slots_unsettled(struct service *service, struct str tenant, struct str queue)
{
    struct limits limits;
    if (!slots_apply(service, tenant, queue, &limits)) return;
    if (limits.of_queue) limits.queue->share.unsettled = true;
    if (limits.of_tenant) limits.tenant->share.unsettled = true;
}

// ---- who is next, of all engines

static int64_t oldest_of(const struct limits *limits, bool of_tenant, size_t *waiting)
{
    int64_t oldest = 0;
    *waiting = 0;
    for (const struct run_queue *queue = limits->tenant->queues; queue; queue = queue->next) {
        int64_t first = queue_oldest_ms(queue);
        if ((!of_tenant && queue != limits->queue) || !first) continue;
        *waiting += queue->waiting;
        if (!oldest || first < oldest) oldest = first;
    }
    return oldest;
}

// The oldest of all goes first, wherever it waits. Who does not take what is his turn within a while is passed over: it may have its own
// reasons, or be dead.
static void find_turn(const struct limits *limits, bool of_tenant, int64_t mono_ms)
{
    size_t waiting;
    struct shared_limit *share = slots_share(limits, of_tenant);
    size_t running = of_tenant ? limits->tenant->running : limits->queue->running;
    uint32_t limit = of_tenant ? limits->of_tenant : limits->of_queue;
    int64_t ours = oldest_of(limits, of_tenant, &waiting);
    bool theirs = ours && share->oldest_ms && share->oldest_ms < ours && running + share->elsewhere < limit;
    if (!theirs)
        share->yields_since_ms = 0;
    else if (!share->yields_since_ms)
        share->yields_since_ms = mono_ms;
    share->yields = theirs && mono_ms - share->yields_since_ms < YIELD_MS;
}

static void say(struct service *service, const struct limits *limits, bool of_tenant, int64_t mono_ms)
{
    struct shared_limit *share = slots_share(limits, of_tenant);
    size_t waiting;
    int64_t oldest = oldest_of(limits, of_tenant, &waiting), silent = mono_ms - share->said_at_ms;
    bool more = waiting != share->said_waiting && silent >= SAY_AGAIN_MS;
    if (oldest ? share->said && oldest == share->said_oldest_ms && !more && silent < SAY_MS : !share->said) return;
    struct error err = {0};
    char text[64];
    struct arena arena SCOPED(arena_release) = arena_of(4096, 1 << 20);
    snprintf(text, sizeof(text), "%lld %zu", (long long)oldest, waiting);
    struct note_put put = {.space = SLOT_SPACE, .value = str_from(text), .remove = !oldest, .expect = NOTE_ANY};
    put.key = slots_key(limits, of_tenant, &arena, "w%llu", (unsigned long long)service->members.self);
    if (put.key.ptr && !engine_put(service->engine, &put, 1, NULL, NULL, &err)) {
        share->said = oldest != 0;
        share->said_oldest_ms = oldest;
        share->said_waiting = waiting;
        share->said_at_ms = mono_ms;
    }
}

// ---- in each round

static bool wants_look(const struct service *service, const struct shared_limit *share, bool waits, int64_t mono_ms)
{
    return share->unsettled || (waits && (service->queues.changed || mono_ms >= share->next_look_ms));
}

static void look_at(struct service *service, const struct limits *limits, bool of_tenant, bool *unsettled,
                    int64_t mono_ms)
{
    struct shared_limit *share = slots_share(limits, of_tenant);
    struct limits one = *limits;
    struct error err = {0};
    size_t waiting;
    bool waits = oldest_of(limits, of_tenant, &waiting) != 0;
    *(of_tenant ? &one.of_queue : &one.of_tenant) = 0;
    if (!wants_look(service, share, waits, mono_ms)) return;
    share->next_look_ms = mono_ms + LOOK_MS;
    enum code rc = slots_look(service, &one, &err);
    if (rc) {
        os_log(LOG_WARN, "limits not read tenant=%.*s why=\"%s\"", STR_ARG(limits->tenant->name), err.message);
        return;
    }
    *unsettled |= share->unsettled;
    share->unsettled = false;
    find_turn(limits, of_tenant, mono_ms);
    if (waits) service->queues.changed = true;
}

static void each_limit(struct service *service,
                       void (*visit)(struct service *, const struct limits *, bool, int64_t, bool *), int64_t mono_ms,
                       bool *found)
{
    service->slots.limited = false;
    for (struct queue_tenant *tenant = service->queues.tenants; tenant; tenant = tenant->next) {
        struct limits limits = slots_limits(tenant, tenant->queues);
        if (limits.of_tenant || tenant->share.said) visit(service, &limits, true, mono_ms, found);
        service->slots.limited |= limits.of_tenant > 0;
        for (struct run_queue *queue = tenant->queues; queue; queue = queue->next) {
            limits = slots_limits(tenant, queue);
            if (limits.of_queue || queue->share.said) visit(service, &limits, false, mono_ms, found);
            service->slots.limited |= limits.of_queue > 0;
        }
    }
}

static void visit_look(struct service *service, const struct limits *limits, bool of_tenant, int64_t mono_ms,
                       bool *found)
{
    if (of_tenant ? limits->of_tenant : limits->of_queue) look_at(service, limits, of_tenant, found, mono_ms);
}

static void visit_say(struct service *service, const struct limits *limits, bool of_tenant, int64_t mono_ms,
                      bool *found)
{
    (void)found;
    say(service, limits, of_tenant, mono_ms);
}

void slots_before(struct service *service, int64_t mono_ms)
{
    bool unsettled = false;
    if (!service->members.several) return;
    take_answers(service);
    if (!service->slots.limited && mono_ms < service->slots.next_walk_ms) return;
    service->slots.next_walk_ms = mono_ms + LOOK_MS;
    each_limit(service, visit_look, mono_ms, &unsettled);
    if (unsettled) queues_each(&service->queues, service, count_beside);
}

void slots_after(struct service *service, int64_t mono_ms)
{
    if (!service->members.several || !service->slots.limited) return;
    send(service);
    each_limit(service, visit_say, mono_ms, NULL);
}
