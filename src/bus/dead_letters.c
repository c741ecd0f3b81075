// What operators do: look at dead letters, send them again, give them up, move a sink. All of it is notes; the sink's thread hears of
// it afterwards.
#include "bus/inside.h"

#include <stdio.h>
#include <stdlib.h>

#define LETTERS_PAGE 500
#define FEED_PAGE 1000

static enum code no_sink(struct str name, struct error *err)
{
    return error_set(err, E_NOT_FOUND, "there is no sink \"%.*s\"", STR_ARG(name));
}

// Calls `visit` for each letter of the sink above `after`, until it is false. Letters live in `arena`.
typedef bool (*letter_visit)(void *context, const struct letter *letter);

static enum code each_letter(struct store *store, struct str sink, struct str after, struct arena *arena,
                             letter_visit visit, void *context, struct error *err)
{
    char first[BUS_SINK_NAME_MAX + 2];
    snprintf(first, sizeof(first), "%.*s/", STR_ARG(sink));
    struct str prefix = str_from(first);
    if (!str_starts(after, prefix)) after = prefix;
    for (;;) {
        struct notes notes;
        enum code rc = store_notes(store, LETTER_SPACE, after, LETTERS_PAGE, arena, &notes, err);
        if (rc) return rc;
        for (size_t i = 0; i < notes.count; i++) {
            struct letter letter;
            after = notes.items[i].key;
            if (!str_starts(after, prefix)) return OK;
            rc = letter_read(&notes.items[i], arena, &letter, err);
            if (rc) return rc;
            if (!visit(context, &letter)) return OK;
        }
        if (notes.count < LETTERS_PAGE) return OK;
    }
}

// ---- looking

struct listing {
    struct arena *arena;
    const struct letter_range *range;
    struct str last;
    struct json items;
    bool more, ok;
};

static bool list_one(void *context, const struct letter *letter)
{
    struct listing *list = context;
    struct json one;
    if (list->range->tenant.len && !str_eq(list->range->tenant, letter->tenant)) return true;
    if (list->items.count == list->range->limit) {
        list->more = true;
        return false;
    }
    list->ok = letter_json(letter, list->arena, &one) && json_push(list->arena, &list->items, one);
    list->last = letter->id;
    return list->ok;
}

enum code bus_dead_letters(struct bus *bus, struct store *reader, const struct letter_range *range, struct arena *arena,
                           struct json *out, struct error *err)
{
    if (!bus_find(bus, range->sink)) return no_sink(range->sink, err);
    struct listing list = {.arena = arena, .range = range, .items = json_array(), .ok = true};
    enum code rc = each_letter(reader, range->sink, range->after, arena, list_one, &list, err);
    if (rc) return rc;
    *out = json_object();
    bool ok = list.ok && json_put(arena, out, STR("items"), list.items) &&
              (!list.more || json_put(arena, out, STR("next"), json_string(list.last)));
    return ok ? OK : error_nomem(err);
}

// ---- acting

struct gate *gate_make(void)
{
    struct gate *gate = calloc(1, sizeof(*gate));
    if (!gate) return NULL;
    pthread_mutex_init(&gate->mutex, NULL);
    gate->holders = 1;
    return gate;
}

void gate_leave(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    bool last = --gate->holders == 0;
    pthread_mutex_unlock(&gate->mutex);
    if (!last) return;
    pthread_mutex_destroy(&gate->mutex);
    free(gate);
}

// Reports to the sink that its notes have changed, and to the caller that they are stored.
struct order {
    struct gate *gate;
    struct sink *sink; // while the gate is open
    bool reload;
    bus_done done;
    void *context;
};

static void order_done(void *context, enum code rc, const struct error *why)
{
    struct order *order = context;
    pthread_mutex_lock(&order->gate->mutex);
    if (!rc && !order->gate->closed) {
        atomic_store(order->reload ? &order->sink->reload : &order->sink->redrive, true);
        sink_poke(order->sink);
    }
    pthread_mutex_unlock(&order->gate->mutex);
    if (order->done) order->done(order->context, rc, why);
    gate_leave(order->gate);
    free(order);
}

static enum code give(struct sink *sink, const struct note_put *notes, size_t count, bool reload, bus_done done,
                      void *context, struct error *err)
{
    const struct bus *bus = sink->bus;
    struct order *order = malloc(sizeof(*order));
    if (!order) return error_nomem(err);
    *order = (struct order){.gate = bus->gate, .sink = sink, .reload = reload, .done = done, .context = context};
    pthread_mutex_lock(&bus->gate->mutex);
    bus->gate->holders++;
    pthread_mutex_unlock(&bus->gate->mutex);
    bus->options.put(bus->options.context, notes, count, order_done, order);
    return OK;
}

// The engine that carries learns of it by a note that moves with these.
static enum code give_elsewhere(struct sink *sink, const struct note_put *notes, size_t count, bool reload,
                                bus_done done, void *context, struct error *err)
{
    if (!sink->bus->options.idle) return give(sink, notes, count, reload, done, context, err);
    struct arena arena SCOPED(arena_release) = arena_of(16 * 1024, SIZE_MAX);
    struct note_put *all = ARENA_ARRAY(&arena, count + 1, struct note_put);
    struct note_put order = {.space = CURSOR_SPACE, .value = STR("1"), .expect = NOTE_ANY};
    enum code rc = all && order_key(sink->config.name, &arena, &order.key) ? OK : error_nomem(err);
    for (size_t i = 0; !rc && i < count; i++) all[i] = notes[i];
    if (!rc) all[count] = order;
    if (!rc) rc = give(sink, all, count + 1, reload, done, context, err);
    return rc;
}

struct picking {
    struct arena *arena;
    const struct dead_letter_choice *which;
    bool remove, ok;
    struct note_put *notes;
    size_t count, capacity;
};

static bool pick_one(void *context, const struct letter *letter)
{
    struct picking *pick = context;
    const struct dead_letter_choice *which = pick->which;
    if (which->tenant.len && !str_eq(which->tenant, letter->tenant)) return true;
    if (which->id.len && !str_eq(which->id, letter->id)) return true;
    if (which->run.len && !str_eq(which->run, letter->run)) return true;
    struct letter marked = *letter;
    marked.redrive = true;
    struct note_put note = {
        .space = LETTER_SPACE, .key = letter->id, .remove = pick->remove, .expect = letter->version};
    struct note_put *more =
        arena_grow(pick->arena, pick->notes, pick->count, pick->count + 1, sizeof(*more), &pick->capacity);
    pick->ok = more && (pick->remove || letter_value(&marked, pick->arena, &note.value));
    if (!pick->ok) return false;
    pick->notes = more;
    more[pick->count++] = note;
    return pick->count < BUS_LETTERS_MAX && !which->id.len;
}

static enum code act(struct bus *bus, struct store *reader, const struct dead_letter_choice *which, bool remove,
                     bus_done done, void *context, size_t *count, struct error *err)
{
    struct sink *sink = bus_find(bus, which->sink);
    *count = 0;
    bool foreign = sink && !which->id.len && !sink_carries(&sink->config, which->tenant);
    if (!sink || foreign) return no_sink(which->sink, err);
    struct arena arena SCOPED(arena_release) = arena_of(64 * 1024, SIZE_MAX);
    struct picking pick = {.arena = &arena, .which = which, .remove = remove, .ok = true};
    enum code rc = each_letter(reader, which->sink, (struct str){0}, &arena, pick_one, &pick, err);
    if (!rc && !pick.ok) rc = error_nomem(err);
    if (!rc && !pick.count && which->id.len) rc = error_set(err, E_NOT_FOUND, "there is no such dead letter");
    if (!rc) *count = pick.count; // before `done` can be called
    if (!rc && pick.count)
        rc = give_elsewhere(sink, pick.notes, pick.count, false, done, context, err);
    else if (!rc && done)
        done(context, OK, NULL); // all of them, and there are none
    return rc;
}

enum code bus_redrive(struct bus *bus, struct store *reader, const struct dead_letter_choice *which, bus_done done,
                      void *done_context, size_t *count, struct error *err)
{
    return act(bus, reader, which, false, done, done_context, count, err);
}

enum code bus_drop(struct bus *bus, struct store *reader, const struct dead_letter_choice *which, bus_done done,
                   void *done_context, size_t *count, struct error *err)
{
    return act(bus, reader, which, true, done, done_context, count, err);
}

// ---- moving

// The position before event `seq` of a run. Nothing leads from a run to the feed, so the feed is read through.
static enum code find_event(struct store *store, const struct bus_place *place, uint64_t *position, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(256 * 1024, SIZE_MAX);
    enum code rc = OK;
    for (uint64_t after = 0;;) {
        struct feed feed;
        arena_reset(&arena);
        rc = store_feed(store, after, FEED_PAGE, &arena, &feed, err);
        for (size_t i = 0; !rc && i < feed.count; i++) {
            const struct feed_item *item = &feed.items[i];
            if (item->record.seq != place->seq || !str_eq(item->run, place->run) ||
                !str_eq(item->tenant, place->tenant))
                continue;
            *position = item->position - 1;
            return OK;
        }
        if (rc || feed.next == after) break;
        after = feed.next;
    }
    return rc ? rc
              : error_set(err, E_NOT_FOUND, "there is no event %llu of run %.*s", (unsigned long long)place->seq,
                          STR_ARG(place->run));
}

// Behind the end of the log a sink would pass over what is still to come.
static enum code find_place(struct store *store, const struct bus_place *place, uint64_t *position, struct error *err)
{
    uint64_t end;
    if (place->here) return OK;
    if (place->run.len) return find_event(store, place, position, err);
    enum code rc = store_feed_end(store, &end, err);
    if (!rc && place->position > end)
        rc = error_set(err, E_INVALID, "the log ends at position %llu", (unsigned long long)end);
    *position = place->position;
    return rc;
}

enum code bus_rewind(struct bus *bus, struct store *reader, struct str name, const struct bus_place *place,
                     bus_done done, void *done_context, struct error *err)
{
    struct sink *sink = bus_find(bus, name);
    if (!sink || !sink_carries(&sink->config, place->asker)) return no_sink(name, err);
    bool careful = place->asker.len > 0 && !place->may_skip && !sink_is_only_of(&sink->config, place->asker);
    struct sink_cursor *cursor = calloc(1, sizeof(*cursor));
    if (!cursor) return error_nomem(err);
    struct arena arena SCOPED(arena_release) = arena_of(16 * 1024, SIZE_MAX);
    enum code rc = cursor_load(reader, name, &arena, cursor, err);
    if (rc == E_NOT_FOUND) rc = OK;
    uint64_t before = cursor->position;
    if (!rc) rc = find_place(reader, place, &cursor->position, err);
    if (!rc && careful && cursor->position > before)
        rc = error_set(err, E_DENIED, "sink %.*s carries events of other tenants, which would be skipped: a Platform token may do that",
                       STR_ARG(name));
    cursor->disabled = false;
    cursor->retry_count = 0;
    struct note_put note = {.space = CURSOR_SPACE, .key = sink->config.name, .expect = NOTE_ANY};
    if (!rc && !cursor_value(cursor, &arena, &note.value)) rc = error_nomem(err);
    if (!rc) rc = give_elsewhere(sink, &note, 1, true, done, done_context, err);
    free(cursor);
    return rc;
}
