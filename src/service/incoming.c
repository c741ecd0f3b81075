// Who waits for an event gets it, on the engine thread of the engine that drives the run.
//
//   look     what runs here wait for, held against the index of what nobody has taken
//   give     one batch: the event is promised to the run, out of the index. Then DELIVER_EVENT is sent
//   settle   the run has decided: one batch makes it DELIVERED, or KEPT again
//   seek     promises that nobody here follows (a crash, another engine): the log of the run says what became of them
#include "service/incoming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEK_MS = 2000, SWEEP_MS = 60000, POLL_SEVERAL_MS = 1000, WAITERS_MAX = 100000, ASK_MAX = 512, GIVE_MAX = 256 };
enum { SWEEP_PAGE = 32, REST_OF_WORK = 4 }; // the thread of all tenants does this for a fifth of its time at most

// A promise that this process follows.
struct giving {
    struct giving *next;
    struct service *service;
    struct arena arena;
    struct incoming_event event;
    char signal[UUID_SIZE];
    bool sent;
    bool settled; // its last batch is on its way
};

static void forget(struct giving *giving)
{
    struct giving **at = &giving->service->incoming.giving;
    while (*at && *at != giving) at = &(*at)->next;
    if (*at) *at = giving->next;
    arena_release(&giving->arena);
    free(giving);
}

// The id of the signal follows from the event and the try: sent again after a crash it is the same one.
static void name_signal(struct giving *giving)
{
    char text[1024];
    snprintf(text, sizeof(text), "event|%.*s|%.*s|%u", STR_ARG(giving->event.tenant), STR_ARG(giving->event.slot),
             giving->event.tries);
    uuid_named(str_from(text), giving->signal);
}

static struct giving *giving_new(struct service *service, const struct note *note, struct error *err)
{
    struct giving *giving = calloc(1, sizeof(*giving));
    if (!giving) return NULL;
    giving->service = service;
    arena_init(&giving->arena, 4096, (size_t)4 << 20);
    if (incoming_read(note, &giving->arena, &giving->event, err)) {
        arena_release(&giving->arena);
        free(giving);
        return NULL;
    }
    giving->next = service->incoming.giving;
    service->incoming.giving = giving;
    return giving;
}

static struct giving *find_giving(struct service *service, struct str tenant, struct str slot)
{
    struct giving *at = service->incoming.giving;
    while (at && !(str_eq(at->event.tenant, tenant) && str_eq(at->event.slot, slot))) at = at->next;
    return at;
}

// ---- settle

static void settled(void *context, enum code rc, const struct error *why)
{
    struct giving *giving = context;
    if (rc && rc != E_CANCELLED && rc != E_CONFLICT)
        os_log(LOG_WARN, "event not settled id=%.*s why=\"%s\"", STR_ARG(giving->event.id), why->message);
    giving->service->incoming.look = true;
    forget(giving);
}

static void settle(struct giving *giving, bool accepted)
{
    struct arena *arena = &giving->arena;
    struct incoming_event *event = &giving->event;
    struct error err = {0};
    if (giving->settled) return;
    giving->settled = true;
    event->state = accepted ? STR("DELIVERED") : STR("KEPT");
    event->changed_ms = os_now().wall_ms;
    if (!accepted) event->run = event->step = (struct str){0};
    struct note_put puts[3] = {
        {.space = INCOMING_GIVEN_SPACE, .key = incoming_key(arena, event->tenant, event->slot), .remove = true, .expect = 1},
        incoming_note(arena, event, NOTE_ANY)};
    size_t count = 2;
    if (!accepted)
        puts[count++] = (struct note_put){
            .space = INCOMING_OPEN_SPACE, .key = incoming_open_key(arena, event), .value = STR("{}"), .expect = NOTE_ANY};
    bool ok = puts[0].key.ptr && puts[1].value.ptr && (accepted || puts[2].key.ptr);
    enum code rc = ok ? engine_put(giving->service->engine, puts, count, settled, giving, &err) : error_nomem(&err);
    if (rc) settled(giving, rc, &err);
}

// ---- send

static void send(struct giving *giving)
{
    struct service *service = giving->service;
    const struct incoming_event *event = &giving->event;
    struct error err = {0};
    struct signal signal = {.type = SIGNAL_DELIVER_EVENT,
                            .id = str_from(giving->signal),
                            .actor = event->by,
                            .role = STR("System"),
                            .payload = JSON_OF(&giving->arena, {"event", json_string(event->name)},
                                               {"id", json_string(event->id)},
                                               {"correlation", json_some(event->correlation)}, {"data", event->data},
                                               {"source", json_some(event->source)})};
    if (!json_ok(&signal.payload)) return; // the seek finds it again
    enum code rc = engine_signal(service->engine, event->tenant, event->run, &signal, &err);
    giving->sent = rc == OK;
    if (rc == OK) return;
    if (rc != E_LOCKED && rc != E_NOT_FOUND && rc != E_TERMINAL)
        os_log(LOG_WARN, "event not delivered id=%.*s run=%.*s why=\"%s\"", STR_ARG(event->id), STR_ARG(event->run),
               err.message);
    if (rc == E_NOT_FOUND || rc == E_TERMINAL)
        settle(giving, false);
    else
        forget(giving); // who drives the run now finds the promise
}

static void gave(void *context, enum code rc, const struct error *why)
{
    struct giving *giving = context;
    (void)why;
    if (rc == OK) {
        send(giving);
        return;
    }
    giving->service->incoming.look = rc == E_CONFLICT; // another engine was faster
    forget(giving);
}

void incoming_decision(struct service *service, const struct engine_decision *decision)
{
    if (decision->type != SIGNAL_DELIVER_EVENT) return;
    struct giving *giving = service->incoming.giving;
    while (giving && !(giving->sent && str_eq(str_from(giving->signal), decision->signal_id) &&
                       str_eq(giving->event.tenant, decision->tenant)))
        giving = giving->next;
    if (!giving) return;
    if (!decision->duplicate) {
        settle(giving, decision->accepted);
        return;
    }
    forget(giving); // decided before: the seek reads what was said then
    service->incoming.next_seek_ms = 0;
}

// ---- look

struct waiter {
    struct str tenant, run, step, prefix;
};
struct looking {
    struct service *service;
    struct arena *arena;
    struct waiter *waiters; // by prefix, which is by tenant
    size_t count, capacity;
    size_t asked, given; // of the store, and to runs: both have an end
};

static bool is_promised(const struct service *service, struct str tenant, struct str run)
{
    for (const struct giving *g = service->incoming.giving; g; g = g->next)
        if (str_eq(g->event.run, run) && str_eq(g->event.tenant, tenant)) return true;
    return false;
}

static bool add_waiter(void *context, const struct run *run)
{
    struct looking *l = context;
    if (l->count >= WAITERS_MAX) return true;
    for (const struct run_await *a = kernel_await(run, NULL); a; a = kernel_await(run, a)) {
        struct incoming_event wanted = {.tenant = run->ids.tenant,
                                        .project = run->ids.project,
                                        .environment = run->ids.environment,
                                        .name = a->name,
                                        .correlation = a->correlation};
        if (!ARENA_ROOM(l->arena, l->waiters, l->count, &l->capacity)) return false;
        struct waiter *w = &l->waiters[l->count++];
        *w = (struct waiter){.tenant = run->ids.tenant,
                             .run = run->ids.run,
                             .step = kernel_path(run, kernel_place(run, a->lane), l->arena),
                             .prefix = incoming_prefix(l->arena, &wanted)};
        if (!w->step.ptr || !w->prefix.ptr) return false;
    }
    return true;
}

static int by_prefix(const void *a, const void *b)
{
    const struct waiter *left = a, *right = b;
    int order = str_cmp(left->prefix, right->prefix);
    if (order == 0) order = str_cmp(left->run, right->run);
    return order ? order : (left > right) - (left < right);
}

static struct str prefix_of(struct str key)
{
    size_t first = str_find(key, '|', 0);
    return str_slice(key, 0, str_find(key, '|', first + 1) + 1);
}

// The first waiter from `from` on whose prefix is not before this one.
static size_t waiter_at(const struct looking *l, size_t from, struct str prefix)
{
    size_t low = from, high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(l->waiters[middle].prefix, prefix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void give(struct looking *l, const struct waiter *w, struct str open_key)
{
    struct service *service = l->service;
    struct error err = {0};
    struct note note;
    size_t time_end = str_find(open_key, '|', w->prefix.len);
    struct str slot = str_slice(open_key, time_end + 1, open_key.len);
    struct str key = incoming_key(l->arena, w->tenant, slot);
    if (!key.ptr || store_note(service->store, INCOMING_SPACE, key, l->arena, &note, &err)) return;
    struct giving *giving = giving_new(service, &note, &err);
    if (!giving) return;
    struct incoming_event *event = &giving->event;
    event->run = arena_copy(&giving->arena, w->run);
    event->step = arena_copy(&giving->arena, w->step);
    event->state = STR("GIVEN");
    event->tries++;
    event->changed_ms = os_now().wall_ms;
    name_signal(giving);
    struct note_put puts[] = {
        incoming_note(&giving->arena, event, note.version),
        {.space = INCOMING_OPEN_SPACE, .key = open_key, .remove = true, .expect = 1},
        {.space = INCOMING_GIVEN_SPACE, .key = incoming_key(&giving->arena, event->tenant, event->slot), .value = STR("{}")}};
    bool ok = event->run.ptr && event->step.ptr && puts[0].value.ptr && puts[2].key.ptr;
    enum code rc = ok ? engine_put(service->engine, puts, ARRAY_COUNT(puts), gave, giving, &err) : E_NOMEM;
    if (rc) forget(giving);
}

// One at a time for a run: which step takes it is the run's to say.
static void give_all(struct looking *l, size_t from, size_t to, const struct notes *open)
{
    struct str prefix = l->waiters[from].prefix;
    for (size_t i = 0; i < open->count && from < to && str_starts(open->items[i].key, prefix); i++) {
        struct str key = open->items[i].key;
        struct str slot = str_slice(key, str_find(key, '|', prefix.len) + 1, key.len);
        const struct waiter *w = &l->waiters[from];
        if (find_giving(l->service, w->tenant, slot)) continue; // promised a moment ago
        while (from < to && is_promised(l->service, l->waiters[from].tenant, l->waiters[from].run)) from++;
        if (from == to) break;
        give(l, &l->waiters[from++], key);
        l->given++;
    }
}

// Waiters and the index of what nobody has taken stand in the same order. Each question to the store passes over all that is in one of
// them alone, so a tenant that keeps many events, or waits for many that never come, costs the others nothing. A look that would ask for
// too long leaves off behind `passed`, and the next one goes on there: what the first in the order have keeps none of the last waiting.
static enum code match(struct looking *l, size_t from, struct str *passed, struct error *err)
{
    *passed = (struct str){0};
    while (from < l->count) {
        struct str prefix = l->waiters[from].prefix;
        size_t to = from;
        while (to < l->count && str_eq(l->waiters[to].prefix, prefix)) to++;
        if (l->asked == ASK_MAX || l->given >= GIVE_MAX) return OK;
        struct notes open;
        size_t limit = to - from < GIVE_MAX ? to - from : GIVE_MAX;
        l->asked++;
        enum code rc = store_notes(l->service->store, INCOMING_OPEN_SPACE, prefix, limit, l->arena, &open, err);
        if (rc) return rc;
        if (open.count == 0) break;
        if (str_starts(open.items[0].key, prefix)) {
            give_all(l, from, to, &open);
            from = to;
        } else {
            from = waiter_at(l, to, prefix_of(open.items[0].key));
        }
        *passed = prefix;
    }
    *passed = (struct str){0};
    return OK;
}

static enum code look(struct service *service, struct error *err)
{
    struct incoming *in = &service->incoming;
    struct arena arena SCOPED(arena_release) = arena_of(1 << 16, (size_t)256 << 20);
    struct looking l = {.service = service, .arena = &arena};
    struct str passed;
    if (!engine_awaiting(service->engine, add_waiter, &l)) return error_nomem(err);
    if (l.count > 1) qsort(l.waiters, l.count, sizeof(*l.waiters), by_prefix);
    struct str begin = {in->passed, in->passed_len};
    size_t from = begin.len > 0 ? waiter_at(&l, 0, begin) : 0;
    while (from < l.count && str_eq(l.waiters[from].prefix, begin)) from++;
    enum code rc = match(&l, from, &passed, err);
    if (rc) return rc;
    in->look = passed.len > 0 || begin.len > 0; // the first come after the last
    in->passed_len = passed.len <= sizeof(in->passed) ? passed.len : 0;
    if (in->passed_len > 0) memcpy(in->passed, passed.ptr, in->passed_len);
    return OK;
}

// ---- seek

static enum code seek_one(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct service *service = context;
    struct str slot, tenant = str_cut(note->key, '|', &slot);
    struct note stored;
    struct json record;
    struct error why = {0};
    if (find_giving(service, tenant, slot)) return OK;
    enum code rc = store_note(service->store, INCOMING_SPACE, note->key, scratch, &stored, err);
    if (rc && rc != E_NOT_FOUND) return rc;
    *err = (struct error){0};
    if (rc) return OK;
    struct giving *giving = giving_new(service, &stored, &why);
    if (!giving) return OK;
    name_signal(giving);
    struct str run = giving->event.run, signal = str_from(giving->signal);
    rc = engine_find_decision(service->store, tenant, run, signal, scratch, &record, NULL, &why);
    if (!rc) {
        settle(giving, str_is(json_text(json_key(&record, "decision")), "ACCEPTED"));
        return OK;
    }
    if (engine_run(service->engine, tenant, run)) {
        send(giving);
        return OK;
    }
    struct run_head head;
    why = (struct error){0};
    rc = store_head(service->store, tenant, run, scratch, &head, &why);
    if (rc == E_NOT_FOUND || (!rc && head.terminal))
        settle(giving, false);
    else
        forget(giving); // its owner does it
    return OK;
}

// ---- what is too old

struct sweeping {
    struct arena *arena;
    int64_t before_ms;
    struct note_put puts[2 * SWEEP_PAGE];
    size_t count;
};

static enum code sweep_one(struct sweeping *s, const struct note *note, struct error *err)
{
    struct incoming_event event;
    enum code rc = incoming_read(note, s->arena, &event, err);
    if (rc == E_NOMEM) return rc;
    *err = (struct error){0}; // one that cannot be read stays
    if (rc) return OK;
    if (event.changed_ms >= s->before_ms || str_is(event.state, "GIVEN")) return OK;
    s->puts[s->count] = (struct note_put){.space = INCOMING_SPACE,
                                          .key = incoming_key(s->arena, event.tenant, event.slot),
                                          .remove = true,
                                          .expect = note->version};
    if (!s->puts[s->count++].key.ptr) return error_nomem(err);
    if (!str_is(event.state, "KEPT")) return OK;
    s->puts[s->count] = (struct note_put){.space = INCOMING_OPEN_SPACE,
                                          .key = incoming_open_key(s->arena, &event),
                                          .remove = true,
                                          .expect = NOTE_ANY};
    return s->puts[s->count++].key.ptr ? OK : error_nomem(err);
}

// A page of what is kept; *ended: it was the last. Events are of tenants, as many and as large as they send.
static enum code sweep(struct service *service, int64_t now_ms, bool *ended, struct error *err)
{
    struct incoming *in = &service->incoming;
    struct arena arena SCOPED(arena_release) = arena_of(1 << 16, (size_t)256 << 20);
    struct sweeping s = {.arena = &arena, .before_ms = now_ms - service->settings.events_keep_ms};
    struct notes page = {0};
    *ended = true;
    enum code rc = store_notes(service->store, INCOMING_SPACE, (struct str){in->swept, in->swept_len}, SWEEP_PAGE, &arena,
                               &page, err);
    for (size_t i = 0; !rc && i < page.count; i++) rc = sweep_one(&s, &page.items[i], err);
    in->swept_len = 0;
    if (rc) return rc;
    *ended = page.count < SWEEP_PAGE;
    struct str last = !*ended ? page.items[page.count - 1].key : (struct str){0};
    INVARIANT(last.len <= sizeof(in->swept));
    if (last.len > 0) memcpy(in->swept, last.ptr, last.len);
    in->swept_len = last.len;
    return s.count == 0 ? OK : engine_put(service->engine, s.puts, s.count, NULL, NULL, err);
}

// ---- from outside

void incoming_awaited(struct service *service)
{
    service->incoming.look = true;
}

// When work that began then may go on.
static int64_t rested(int64_t began_ms)
{
    int64_t now_ms = os_now().mono_ms;
    return now_ms + REST_OF_WORK * (now_ms - began_ms);
}

void incoming_tick(struct service *service, struct moment_in_time now)
{
    struct incoming *in = &service->incoming;
    struct error err = {0};
    if (service_draining(service)) return;
    if (now.mono_ms >= in->next_poll_ms) { // runs that were taken up, and events that came to other engines
        in->next_poll_ms = now.mono_ms + POLL_SEVERAL_MS;
        in->look = true;
    }
    enum code rc = OK;
    if (in->look && now.mono_ms >= in->next_look_ms) {
        in->look = false;
        rc = look(service, &err);
        in->next_look_ms = rested(now.mono_ms);
    }
    if (!rc && now.mono_ms >= in->next_seek_ms) {
        in->next_seek_ms = now.mono_ms + SEEK_MS;
        rc = store_each_note(service->store, INCOMING_GIVEN_SPACE, STR(""), seek_one, service, &err);
    }
    if (!rc && now.mono_ms >= in->next_sweep_ms && members_have_duty(service)) {
        bool ended;
        int64_t began_ms = os_now().mono_ms;
        rc = sweep(service, now.wall_ms, &ended, &err);
        in->next_sweep_ms = ended ? now.mono_ms + SWEEP_MS : rested(began_ms);
    }
    if (rc && rc != E_UNSUPPORTED) os_log(LOG_WARN, "events from outside not looked at why=\"%s\"", err.message);
}

void incoming_close(struct service *service)
{
    for (struct giving *at = service->incoming.giving, *next; at; at = next) {
        next = at->next;
        forget(at);
    }
}
