// Limits that hold for all engines together: what the store says of them, and the notes that say so (slots.h).
#include "service/slots.h"

#include <stdarg.h>
#include <stdio.h>

enum { PAGE = 64, REAP = 32, REAP_MS = 1000, SILENT_MS = 3000, KEY_MAX = NOTE_KEY_MAX };

struct limits slots_limits(const struct queue_tenant *tenant, const struct run_queue *queue)
{
    return (struct limits){.tenant = (struct queue_tenant *)(uintptr_t)tenant,
                           .queue = (struct run_queue *)(uintptr_t)queue,
                           .of_queue = queue ? queue->config.max_running : 0,
                           .of_tenant = tenant ? tenant->limits.runs_in_flight : 0};
}

bool slots_apply(const struct service *service, struct str tenant_name, struct str name, struct limits *out)
{
    *out = (struct limits){0};
    if (!service->members.several) return false;
    const struct queue_tenant *tenant = service->queues.tenants;
    while (tenant && !str_eq(tenant->name, tenant_name)) tenant = tenant->next;
    *out = slots_limits(tenant, queues_find(&service->queues, tenant_name, name));
    return out->of_queue || out->of_tenant;
}

// ---- keys

struct str slots_key(const struct limits *limits, bool of_tenant, struct arena *arena, const char *format, ...)
{
    struct str tenant = limits->tenant->name, queue = {0};
    if (!of_tenant) queue = limits->queue->name;
    char kind[KEY_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(kind, sizeof(kind), format, list);
    va_end(list);
    struct buf text = buf_of(KEY_MAX);
    buf_printf(&text, "%.*s|%.*s|%s", STR_ARG(tenant), STR_ARG(queue), kind);
    return buf_keep(&text, arena);
}

static struct slot *slot_at(struct run_slots *slots, bool of_tenant)
{
    return of_tenant ? &slots->of_tenant : &slots->of_queue;
}

struct shared_limit *slots_share(const struct limits *limits, bool of_tenant)
{
    return of_tenant ? &limits->tenant->share : &limits->queue->share;
}

static uint32_t limit_at(const struct limits *limits, bool of_tenant)
{
    return of_tenant ? limits->of_tenant : limits->of_queue;
}

size_t slots_notes(const struct limits *limits, struct str run, const struct run_slots *slots, bool asked, bool remove,
                   struct arena *arena, struct note_put out[SLOTS_MAX])
{
    const struct slot *both[] = {&slots->of_queue, &slots->of_tenant};
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(both); i++) {
        if (both[i]->hold == HOLD_NONE || (asked && !both[i]->asked)) continue;
        struct note_put *put = &out[count++];
        *put = (struct note_put){.space = SLOT_SPACE, .remove = remove, .expect = remove ? NOTE_ANY : 0};
        put->key = both[i]->hold == HOLD_NUMBER ? slots_key(limits, i == 1, arena, "s%u", both[i]->number)
                                                : slots_key(limits, i == 1, arena, "x%.*s", STR_ARG(run));
        put->value = arena_copy(arena, run);
        if (both[i]->hold == HOLD_OVER) put->expect = NOTE_ANY;
        if (!put->key.ptr || !put->value.ptr) return 0;
    }
    return count;
}

// ---- numbers

static bool pick(struct shared_limit *share, uint32_t limit, struct slot *slot)
{
    if (limit == 0 || slot->hold != HOLD_NONE) return true;
    *slot = (struct slot){.hold = HOLD_NUMBER, .asked = true};
    if (shared_limit_pick(share, limit, entropy_number(os_entropy()), &slot->number)) return true;
    *slot = (struct slot){0};
    share->elsewhere += limit; // until the next look
    return false;
}

bool slots_pick(const struct limits *limits, struct run_slots *slots)
{
    bool picked = !limits->of_queue || pick(&limits->queue->share, limits->of_queue, &slots->of_queue);
    if (picked && limits->of_tenant) picked = pick(&limits->tenant->share, limits->of_tenant, &slots->of_tenant);
    if (!picked) slots_settled(limits, slots, false);
    return picked;
}

void slots_beside(const struct limits *limits, struct run_slots *slots)
{
    for (int i = 0; i < SLOTS_MAX; i++) {
        struct slot *slot = slot_at(slots, i == 1);
        if (limit_at(limits, i == 1) && slot->hold == HOLD_NONE)
            *slot = (struct slot){.hold = HOLD_OVER, .asked = true};
    }
}

void slots_settled(const struct limits *limits, struct run_slots *slots, bool stored)
{
    for (int i = 0; i < SLOTS_MAX; i++) {
        struct slot *slot = slot_at(slots, i == 1);
        if (!slot->asked) continue;
        if (slot->hold == HOLD_NUMBER) shared_limit_asked(slots_share(limits, i == 1), slot->number);
        slot->asked = false;
        if (!stored) *slot = (struct slot){0};
    }
}

// ---- what the store says

struct look {
    struct service *service;
    const struct limits *limits;
    struct shared_limit *share;
    bool of_tenant;
    uint32_t limit;
    int64_t now_ms;
    bool reaps;     // those that are over are looked for
    size_t holders; // elsewhere, so far
    struct arena *arena;
};

// A run that ended at an engine without slots, or is removed, holds nothing any more.
static bool is_over(struct look *look, struct str run)
{
    struct run_head head;
    struct error err = {0};
    enum code rc = store_head(look->service->store, look->limits->tenant->name, run, look->arena, &head, &err);
    return rc == E_NOT_FOUND || (rc == OK && head.terminal);
}

static void remove_note(struct look *look, const struct note *note)
{
    struct note_put put = {.space = SLOT_SPACE, .key = note->key, .remove = true, .expect = note->version};
    struct error err = {0};
    if (engine_put(look->service->engine, &put, 1, NULL, NULL, &err))
        os_log(LOG_WARN, "slot not given back key=\"%.*s\" why=\"%s\"", STR_ARG(note->key), err.message);
}

static void see_elsewhere(struct look *look, const struct note *note)
{
    struct shared_limit *share = look->share;
    size_t at = look->holders++;
    share->elsewhere++;
    if (look->reaps && at >= share->reaped && at < share->reaped + REAP && is_over(look, note->value))
        remove_note(look, note);
}

// Ours is known again by its value: also after it came to us with its run.
static void see_holder(struct look *look, const struct note *note, enum hold hold, uint32_t number)
{
    enum queue_state place;
    struct queues *queues = &look->service->queues;
    struct str tenant = look->limits->tenant->name;
    struct run_slots *slots = queues_slots(queues, tenant, note->value, NULL, &place);
    if (hold == HOLD_NUMBER) shared_limit_mark(look->share, look->limit, number);
    if (hold == HOLD_OVER || number >= look->limit) look->share->over++;
    if (!slots) {
        see_elsewhere(look, note);
        return;
    }
    struct slot *slot = slot_at(slots, look->of_tenant);
    if (slot->hold == HOLD_NONE) *slot = (struct slot){.hold = hold, .number = number};
    if (place != QUEUE_WAITING) return;
    // It has its place and has not gone on: the engine that had it died in between.
    struct error err = {0};
    enum code rc = engine_admit(look->service->engine, tenant, note->value, &err);
    if (!rc) rc = queues_place(queues, tenant, (struct str){0}, note->value, QUEUE_RUNNING, 0, 0, &err);
    if (rc) os_log(LOG_WARN, "run not started from its queue run=%.*s why=\"%s\"", STR_ARG(note->value), err.message);
}

// Whether that engine is still there: it says something every second.
static bool is_heard(struct look *look, uint64_t engine, uint64_t version)
{
    struct shared_limit *share = look->share;
    size_t i = 0;
    while (i < share->other_count && share->others[i].engine != engine) i++;
    if (i == OTHERS_MAX) i = 0;
    if (i == share->other_count) share->other_count++;
    struct waiting_elsewhere *other = &share->others[i];
    if (other->engine != engine || other->version != version)
        *other = (struct waiting_elsewhere){engine, version, look->now_ms};
    return look->now_ms - other->heard_ms < SILENT_MS;
}

static void see_waiting(struct look *look, const struct note *note, struct str number)
{
    struct str count, oldest = str_cut(note->value, ' ', &count);
    int64_t engine = 0, oldest_ms = 0, waiting = 0;
    if (!str_int64(number, &engine) || !str_int64(oldest, &oldest_ms) || !str_int64(count, &waiting)) return;
    if ((uint64_t)engine == look->service->members.self) return;
    if (!is_heard(look, (uint64_t)engine, note->version)) {
        remove_note(look, note);
        return;
    }
    struct shared_limit *share = look->share;
    share->waiting += (size_t)waiting;
    if (!share->oldest_ms || oldest_ms < share->oldest_ms) share->oldest_ms = oldest_ms;
}

static void see(struct look *look, const struct note *note, size_t prefix)
{
    int64_t number = 0;
    char kind = note->key.len > prefix ? note->key.ptr[prefix] : '\0';
    struct str rest = str_slice(note->key, prefix + 1, note->key.len);
    if (kind == 's' && str_int64(rest, &number) && number >= 0 && number < UINT32_MAX)
        see_holder(look, note, HOLD_NUMBER, (uint32_t)number);
    else if (kind == 'x')
        see_holder(look, note, HOLD_OVER, 0);
    else if (kind == 'w')
        see_waiting(look, note, rest);
}

static enum code look_at(struct look *look, struct error *err)
{
    struct str prefix = slots_key(look->limits, look->of_tenant, look->arena, "%s", ""), after = prefix;
    struct store *store = look->service->store;
    if (!prefix.ptr || !shared_limit_begin(look->share, look->limit)) return error_nomem(err);
    for (;;) {
        struct notes page;
        enum code rc = store_notes(store, SLOT_SPACE, after, PAGE, look->arena, &page, err);
        if (rc) return rc;
        for (size_t i = 0; i < page.count; i++) {
            if (!str_starts(page.items[i].key, prefix)) return OK;
            see(look, &page.items[i], prefix.len);
        }
        if (page.count < PAGE) return OK;
        after = page.items[PAGE - 1].key;
    }
}

static enum code look_one(struct service *service, const struct limits *limits, bool of_tenant, struct error *err)
{
    struct shared_limit *share = slots_share(limits, of_tenant);
    int64_t now_ms = os_now().mono_ms;
    struct arena arena SCOPED(arena_release) = arena_of(16 * 1024, (size_t)256 << 20);
    struct look look = {.service = service,
                        .limits = limits,
                        .share = share,
                        .of_tenant = of_tenant,
                        .limit = limit_at(limits, of_tenant),
                        .now_ms = now_ms,
                        .reaps = share->elsewhere > 0 && now_ms >= share->next_reap_ms,
                        .arena = &arena};
    enum code rc = look_at(&look, err);
    if (look.reaps) {
        share->next_reap_ms = now_ms + REAP_MS;
        share->reaped = share->reaped + REAP < look.holders ? share->reaped + REAP : 0;
    }
    if (rc) share->elsewhere = limit_at(limits, of_tenant); // no run goes on while the number is not known
    return rc;
}

enum code slots_look(struct service *service, const struct limits *limits, struct error *err)
{
    enum code rc = limits->of_queue ? look_one(service, limits, false, err) : OK;
    return rc || !limits->of_tenant ? rc : look_one(service, limits, true, err);
}
