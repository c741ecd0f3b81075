// Who has what outside: a table of the run's driver, by open addressing. It knows no run: the same attempt is held or it is not.
#include "kernel/inside.h"

#include <string.h>

static uint32_t slot_of(const struct run_holds *holds, uint32_t lane)
{
    return lane * 2654435769u & (holds->capacity - 1);
}

struct run_hold *hold_find(const struct run_holds *holds, uint32_t lane, uint32_t logical, uint32_t engine)
{
    if (!holds || holds->count == 0) return NULL;
    for (uint32_t i = slot_of(holds, lane); holds->items[i].state; i = (i + 1) & (holds->capacity - 1)) {
        struct run_hold *hold = &holds->items[i];
        if (hold->lane == lane && hold->logical == logical && hold->engine == engine) return hold;
    }
    return NULL;
}

static void put(struct run_holds *holds, const struct run_hold *hold)
{
    uint32_t i = slot_of(holds, hold->lane);
    while (holds->items[i].state) i = (i + 1) & (holds->capacity - 1);
    holds->items[i] = *hold;
    holds->count++;
}

// One block of memory, that goes when nothing is held: a parked run has none.
static bool grow(struct run_holds *holds)
{
    uint32_t capacity = holds->capacity ? holds->capacity * 2 : 8;
    struct run_holds grown = {.capacity = capacity, .all = holds->all};
    arena_init(&grown.memory, capacity * sizeof(struct run_hold), (size_t)1 << 30);
    grown.items = ARENA_ARRAY(&grown.memory, capacity, struct run_hold);
    if (!grown.items) return false;
    for (uint32_t i = 0; i < holds->capacity; i++)
        if (holds->items[i].state) put(&grown, &holds->items[i]);
    holds_release(holds);
    *holds = grown;
    return true;
}

bool hold_put(struct run_holds *holds, const struct run_hold *hold)
{
    struct run_hold *found = hold_find(holds, hold->lane, hold->logical, hold->engine);
    if (found) {
        *found = *hold;
        return true;
    }
    if (holds->count * 4 >= holds->capacity * 3 && !grow(holds)) return false;
    put(holds, hold);
    return true;
}

void hold_drop(struct run_holds *holds, uint32_t lane, uint32_t logical, uint32_t engine)
{
    const struct run_hold *found = hold_find(holds, lane, logical, engine);
    if (!found) return;
    uint32_t mask = holds->capacity - 1, gap = (uint32_t)(found - holds->items);
    holds->items[gap].state = 0;
    holds->count--;
    for (uint32_t i = (gap + 1) & mask; holds->items[i].state; i = (i + 1) & mask) { // what stands behind moves up
        uint32_t home = slot_of(holds, holds->items[i].lane);
        if (((i - home) & mask) < ((i - gap) & mask)) continue;
        holds->items[gap] = holds->items[i];
        holds->items[i].state = 0;
        gap = i;
    }
    if (holds->count == 0) holds_release(holds);
}

void holds_release(struct run_holds *holds)
{
    if (holds->items) arena_release(&holds->memory);
    *holds = (struct run_holds){.all = holds->all};
}

void holds_undo(struct run_holds *holds)
{
    for (uint32_t i = 0; i < holds->capacity;) {
        struct run_hold *hold = &holds->items[i];
        if (hold->stop == STOP_ORDERED) hold->stop = STOP_NOT;
        if (hold->state == HOLD_ORDERED) {
            hold_drop(holds, hold->lane, hold->logical, hold->engine); // another may stand here now
            i = 0;
        } else {
            i++;
        }
    }
}

struct run_hold *holds_copy(const struct run_holds *holds, struct arena *arena, uint32_t *count)
{
    struct run_hold *copy = ARENA_ARRAY(arena, holds->count + 1, struct run_hold);
    *count = 0;
    for (uint32_t i = 0; copy && i < holds->capacity; i++)
        if (holds->items[i].state) copy[(*count)++] = holds->items[i];
    return copy;
}

bool holds_restore(struct run_holds *holds, const struct run_hold *copy, uint32_t count)
{
    holds_release(holds);
    bool ok = true;
    for (uint32_t i = 0; ok && i < count; i++) ok = hold_put(holds, &copy[i]);
    return ok;
}

// ---- of the attempt that a lane has in flight

bool is_held(const struct decide *d, uint32_t lane)
{
    struct run_attempt now = kernel_attempt(d->run, lane);
    return d->holds && (d->holds->all || hold_find(d->holds, lane, now.logical, now.engine));
}

bool is_stopping(const struct decide *d, uint32_t lane)
{
    struct run_attempt now = kernel_attempt(d->run, lane);
    const struct run_hold *hold = hold_find(d->holds, lane, now.logical, now.engine);
    return hold && hold->stop != STOP_NOT;
}

static enum code put_hold(struct decide *d, uint32_t lane, enum hold_stop stop)
{
    struct run_attempt now = kernel_attempt(d->run, lane);
    const struct run_hold *old = hold_find(d->holds, lane, now.logical, now.engine);
    struct run_hold hold = {.lane = lane, .logical = now.logical, .engine = now.engine, .state = HOLD_ORDERED, .stop = stop};
    if (stop && old) hold.state = old->state;
    return !d->holds || hold_put(d->holds, &hold) ? OK : error_nomem(d->err);
}

enum code order(struct decide *d, enum effect_kind kind, uint32_t lane)
{
    if (!effect_add(d, kind, lane)) return E_NOMEM;
    return put_hold(d, lane, STOP_NOT);
}

enum code ask_to_stop(struct decide *d, uint32_t lane)
{
    return put_hold(d, lane, STOP_ORDERED);
}

void let_go(struct decide *d, uint32_t lane)
{
    struct run_attempt now = kernel_attempt(d->run, lane);
    hold_drop(d->holds, lane, now.logical, now.engine);
}
