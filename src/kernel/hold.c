// Who has what outside: a table of the run's driver, by open addressing. It knows no run: the same attempt is held or it is not.
#include "kernel/inside.h"

static uint32_t slot_of(const struct run_holds *holds, const struct run_hold *hold)
{
    return (hold->lane + hold->member * 40503u) * 2654435769u & (holds->capacity - 1);
}

static bool is_same(const struct run_hold *a, const struct run_hold *b)
{
    return a->lane == b->lane && a->logical == b->logical && a->engine == b->engine && a->member == b->member;
}

struct run_hold *hold_find(const struct run_holds *holds, const struct run_hold *of)
{
    if (!holds || holds->count == 0) return NULL;
    for (uint32_t i = slot_of(holds, of); holds->items[i].state; i = (i + 1) & (holds->capacity - 1))
        if (is_same(&holds->items[i], of)) return &holds->items[i];
    return NULL;
}

static void put(struct run_holds *holds, const struct run_hold *hold)
{
    INVARIANT(hold->state && holds->count < holds->capacity); // a free place ends every search
    uint32_t i = slot_of(holds, hold);
    while (holds->items[i].state) i = (i + 1) & (holds->capacity - 1);
    holds->items[i] = *hold;
    holds->count++;
}

// One block of memory, that goes when nothing is held: a parked run has none.
static bool grow(struct run_holds *holds)
{
    uint32_t capacity = holds->capacity ? holds->capacity * 2 : 8;
    INVARIANT((capacity & (capacity - 1)) == 0);
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
    struct run_hold *found = hold_find(holds, hold);
    if (found) {
        *found = *hold;
        return true;
    }
    if (holds->count * 4 >= holds->capacity * 3 && !grow(holds)) return false;
    put(holds, hold);
    return true;
}

void hold_drop(struct run_holds *holds, const struct run_hold *of)
{
    const struct run_hold *found = hold_find(holds, of);
    if (!found) return;
    INVARIANT(holds->count > 0);
    uint32_t mask = holds->capacity - 1, gap = (uint32_t)(found - holds->items);
    holds->items[gap].state = 0;
    holds->count--;
    for (uint32_t i = (gap + 1) & mask; holds->items[i].state; i = (i + 1) & mask) { // what stands behind moves up
        uint32_t home = slot_of(holds, &holds->items[i]);
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
            hold_drop(holds, &(struct run_hold){hold->lane, hold->logical, hold->engine, hold->member, 0, 0});
            i = 0; // another may stand here now
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

void holds_drop_list(struct run_holds *holds, uint32_t lane)
{
    for (uint32_t i = 0; holds && i < holds->capacity;) {
        struct run_hold hold = holds->items[i];
        bool drop = hold.state && hold.lane == lane;
        if (drop) hold_drop(holds, &hold);
        i = drop ? 0 : i + 1; // another may stand here now
    }
}

// ---- of the attempt that a lane has in flight, or of a member of its list

struct run_hold hold_now(const struct run *run, uint32_t lane, uint32_t member)
{
    struct run_attempt now = kernel_attempt(run, lane);
    return (struct run_hold){.lane = lane, .logical = now.logical, .engine = now.engine, .member = member};
}

bool is_held(const struct decide *d, uint32_t lane, uint32_t member)
{
    struct run_hold now = hold_now(d->run, lane, member);
    return d->holds && (d->holds->all || hold_find(d->holds, &now));
}

bool is_stopping(const struct decide *d, uint32_t lane, uint32_t member)
{
    struct run_hold now = hold_now(d->run, lane, member);
    const struct run_hold *hold = hold_find(d->holds, &now);
    return hold && hold->stop != STOP_NOT;
}

static enum code put_hold(struct decide *d, uint32_t lane, uint32_t member, enum hold_stop stop)
{
    struct run_hold hold = hold_now(d->run, lane, member);
    const struct run_hold *old = hold_find(d->holds, &hold);
    hold.state = stop && old ? old->state : HOLD_ORDERED;
    hold.stop = (uint8_t)stop;
    return !d->holds || hold_put(d->holds, &hold) ? OK : error_nomem(d->err);
}

enum code order(struct decide *d, enum effect_kind kind, uint32_t lane)
{
    INVARIANT(kind == EFFECT_EXECUTE);
    INVARIANT(lane_ref(d->run, lane)->state == NODE_RUNNING && !run_status_terminal(d->run->status));
    if (!effect_add(d, kind, lane)) return E_NOMEM;
    return put_hold(d, lane, 0, STOP_NOT);
}

static struct effect *child_effect(struct decide *d, enum effect_kind kind, uint32_t lane, uint32_t member)
{
    struct str child = kernel_child(d->run, lane, member, d->out->turn);
    struct effect *effect = child.ptr ? effect_add(d, kind, lane) : NULL;
    if (!effect) return NULL;
    effect->child = child;
    effect->member = member;
    return effect;
}

enum code order_child(struct decide *d, uint32_t lane, uint32_t member)
{
    INVARIANT(kernel_runs_child(d->run, lane) && kernel_fans_out(d->run, lane) == (member > 0));
    return child_effect(d, EFFECT_SUBRUN, lane, member) ? put_hold(d, lane, member, STOP_NOT) : error_nomem(d->err);
}

enum code cancel_child(struct decide *d, uint32_t lane, uint32_t member)
{
    return child_effect(d, EFFECT_SUBRUN_CANCEL, lane, member) ? OK : error_nomem(d->err);
}

enum code ask_to_stop(struct decide *d, uint32_t lane, uint32_t member)
{
    INVARIANT(lane_ref(d->run, lane)->state == NODE_RUNNING);
    return put_hold(d, lane, member, STOP_ORDERED);
}

void let_go(struct decide *d, uint32_t lane, uint32_t member)
{
    struct run_hold now = hold_now(d->run, lane, member);
    hold_drop(d->holds, &now);
}
