// Fan-out of child runs: a workflow step of node workflows runs its child once per item of a list, so many at a time, and gives
// the list of what they gave.
//
// The log knows the step and nothing of its items: they are rendered again from what the log has, and the ids of the children
// name their place in the list. So whoever takes the parent up finds the children that are there and starts those that are not.
// What is kept here (struct fan) saves that work, and may be thrown away at any time.
#include "engine/inside.h"

#include <stdlib.h>
#include <string.h>

enum slot_state {
    SLOT_TO_COME = 0,
    SLOT_OPEN,
    SLOT_ELSEWHERE, // another process has the child: nobody tells us when it ends
    SLOT_OVER,
};

struct slot {
    enum slot_state state;
    bool ok;
    struct json value; // what it gave, or what the list tells of it
};

struct fan {
    struct fan *next;
    uint32_t step, logical;
    struct str group; // id of the only child that the attempt would have without a list
    struct arena arena;
    struct json items; // an array
    struct slot *slots;
    uint32_t parallel, over, failed;
    uint64_t size; // of the values
    bool all_success, cancelled;
};

static struct fan *find_fan(const struct resident *parent, uint32_t step, uint32_t logical)
{
    for (struct fan *fan = parent->fans; fan; fan = fan->next)
        if (fan->step == step && fan->logical == logical) return fan;
    return NULL;
}

static void drop_fan(struct resident *parent, struct fan *fan)
{
    struct fan **at = &parent->fans;
    while (*at && *at != fan) at = &(*at)->next;
    if (*at) *at = fan->next;
    arena_release(&fan->arena);
    free(fan);
}

void fans_release(struct resident *parent)
{
    while (parent->fans) drop_fan(parent, parent->fans);
}

static enum code fail(struct engine *engine, struct resident *parent, uint32_t step, struct fault fault,
                      struct error *err)
{
    struct run_attempt now = kernel_attempt(parent->run, step);
    return input_fault(engine, parent, step, now.logical, now.engine, fault, err);
}

// ---- opening

// A list, or the text of one: what a shell prints is text.
static enum code read_items(const struct json *given, struct arena *arena, struct json *out, struct error *err)
{
    struct json parsed;
    struct error local = {0};
    if (json_is(given, JSON_STRING)) {
        if (json_parse(given->text, &json_limits_default, arena, &parsed, &local) == E_NOMEM) return error_nomem(err);
        given = local.code ? NULL : &parsed;
    }
    if (!json_is(given, JSON_ARRAY))
        return error_set(err, E_INVALID, "the items of fan_out are no JSON list%s%s", local.code ? ": " : "",
                         local.code ? local.message : "");
    if (given->count > FAN_OUT_MAX)
        return error_set(err, E_LIMIT, "fan_out has %u items; %d are the most", given->count, FAN_OUT_MAX);
    return json_copy(arena, given, out) ? OK : error_nomem(err);
}

static enum code open_fan(struct engine *engine, struct resident *parent, uint32_t step, uint32_t logical,
                          struct fan **out, struct error *err)
{
    struct json with;
    struct str path = kernel_path(parent->run, step, &engine->turn);
    if (!path.ptr) return error_nomem(err);
    enum code rc = kernel_render(parent->run, step, &engine->env, &engine->turn, &with, err);
    if (rc) return rc;
    const struct json *how = json_key(&with, "fanOut");
    struct fan *fan = calloc(1, sizeof(*fan));
    if (!fan) return error_nomem(err);
    arena_init(&fan->arena, 4096, (size_t)256 << 20);
    fan->step = step;
    fan->logical = logical;
    fan->group = kernel_child_name(parent->ids.run, path, logical, &fan->arena);
    fan->parallel = (uint32_t)json_integer(json_key(how, "maxParallel"), FAN_OUT_PARALLEL);
    fan->all_success = str_is(json_text(json_key(how, "join")), "all_success");
    rc = read_items(json_key(how, "items"), &fan->arena, &fan->items, err);
    if (!rc && !fan->group.ptr) rc = error_nomem(err);
    if (!rc && !(fan->slots = ARENA_ARRAY(&fan->arena, fan->items.count + 1, struct slot))) rc = error_nomem(err);
    if (rc) {
        arena_release(&fan->arena);
        free(fan);
        return rc;
    }
    fan->next = parent->fans;
    parent->fans = fan;
    *out = fan;
    return OK;
}

// ---- children that have ended

static enum code slot_failed(struct fan *fan, struct slot *slot, struct str status, struct str why, struct error *err)
{
    struct arena *arena = &fan->arena;
    struct str told = arena_copy(arena, why);
    bool ok = told.ptr && json_object_with(arena, 3, &slot->value) &&
              json_put(arena, &slot->value, STR("archon_failed"), json_bool(true)) &&
              json_put(arena, &slot->value, STR("error"), json_string(told)) &&
              json_put(arena, &slot->value, STR("status"), json_string(status));
    if (!ok) return error_nomem(err);
    slot->state = SLOT_OVER;
    slot->ok = false;
    fan->over++;
    fan->failed++;
    return OK;
}

static enum code slot_ended(struct engine *engine, struct fan *fan, struct slot *slot, const struct run *child,
                            struct error *err)
{
    if (slot->state == SLOT_OVER) return OK;
    if (child->status != RUN_STATUS_COMPLETED) {
        bool cancelled = child->status == RUN_STATUS_CANCELLED;
        struct buf text;
        buf_init(&text, 8192);
        if (child->failed_step.len > 0)
            buf_printf(&text, "%.*s: %.*s", STR_ARG(child->failed_step), STR_ARG(child->fault.message));
        else
            buf_printf(&text, "the child run %s%s%.*s", cancelled ? "was cancelled" : "failed",
                       child->fault.message.len ? ": " : "", STR_ARG(child->fault.message));
        enum code rc = slot_failed(fan, slot, cancelled ? STR("cancelled") : STR("failed"), buf_str(&text), err);
        buf_release(&text);
        return rc;
    }
    struct json outputs;
    struct error local = {0};
    enum code rc = subrun_outputs(engine, child, &outputs, &fan->size, &local);
    if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
    if (rc) return slot_failed(fan, slot, STR("failed"), str_from(local.message), err);
    if (!json_copy(&fan->arena, &outputs, &slot->value)) return error_nomem(err);
    slot->state = SLOT_OVER;
    slot->ok = true;
    fan->over++;
    return OK;
}

// ---- children that begin

static enum code start_slot(struct engine *engine, struct resident *parent, struct fan *fan, uint32_t index,
                            struct str id, struct error *err)
{
    const struct run *run = parent->run;
    struct arena *arena = &engine->turn;
    struct start_request request = {0};
    struct error local = {0};
    char ignored[129];
    struct str as = json_text(json_key(json_key(&run->program->steps[fan->step].with, "fanOut"), "as"));
    enum code rc = subrun_request(engine, parent, fan->step, id, &request, &local);
    if (!rc && request.arguments.len == 0) rc = expr_text(&fan->items.items[index], arena, &request.arguments);
    if (!rc && as.len > 0) {
        struct json inputs, item;
        bool ok = json_object_with(arena, request.inputs.count + 1, &inputs) &&
                  json_copy(arena, &fan->items.items[index], &item);
        for (uint32_t i = 0; ok && i < request.inputs.count; i++)
            ok = json_put(arena, &inputs, request.inputs.members[i].key, request.inputs.members[i].value);
        ok = ok && json_put(arena, &inputs, as, item);
        if (!ok) return error_nomem(err);
        request.inputs = inputs;
    }
    if (!rc) rc = engine_start(engine, &request, ignored, &local);
    if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
    if (rc) return slot_failed(fan, &fan->slots[index], STR("failed"), str_from(local.message), err);
    fan->slots[index].state = SLOT_OPEN;
    return OK;
}

// Takes up the child of a place in the list, wherever it stands; starts it when it is nowhere.
static enum code begin_slot(struct engine *engine, struct resident *parent, struct fan *fan, uint32_t index,
                            struct error *err)
{
    struct slot *slot = &fan->slots[index];
    struct str id = kernel_fan_child(fan->group, index, &engine->turn);
    if (!id.ptr) return error_nomem(err);
    struct resident *child = resident_find(engine, parent->ids.tenant, id);
    bool here = child != NULL;
    struct error local = {0};
    enum code rc = here ? OK : load_resident(engine, parent->ids.tenant, id, true, &child, &local);
    if (rc == E_NOT_FOUND && !fan->cancelled) return start_slot(engine, parent, fan, index, id, err);
    if (rc == E_NOT_FOUND) return slot_failed(fan, slot, STR("cancelled"), STR("it had not begun"), err);
    if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
    if (rc == E_LOCKED) {
        slot->state = SLOT_ELSEWHERE;
        return OK;
    }
    if (rc) return slot_failed(fan, slot, STR("failed"), str_from(local.message), err);
    if (!subrun_is_child(engine, child, parent, fan->step)) {
        if (!here) resident_remove(engine, child);
        return slot_failed(fan, slot, STR("failed"), STR("another run has the id of this child"), err);
    }
    if (child->terminal) {
        rc = slot_ended(engine, fan, slot, child->run, err);
        if (!here) resident_gone(engine, child);
        return rc;
    }
    slot->state = SLOT_OPEN;
    if (fan->cancelled) return OK; // cancel_slot asks it to end
    rc = take_up(engine, child, &local);
    if (rc == OK) return OK;
    if (!here) resident_remove(engine, child);
    slot->state = SLOT_ELSEWHERE;
    return rc == E_NOMEM || rc == E_IO ? error_set(err, rc, "%s", local.message) : OK;
}

// ---- the end

static int64_t elapsed_ms(const struct engine *engine, const struct resident *parent, const struct fan *fan)
{
    int64_t started = kernel_attempt(parent->run, fan->step).started_ms;
    return engine->now.wall_ms > started ? engine->now.wall_ms - started : 0;
}

static enum code tell_list(struct engine *engine, struct resident *parent, const struct fan *fan, struct error *err)
{
    struct run_attempt now = kernel_attempt(parent->run, fan->step);
    struct json list = json_array();
    for (uint32_t i = 0; i < fan->items.count; i++)
        if (!json_push(&engine->turn, &list, fan->slots[i].value)) return error_nomem(err);
    struct queued *queued = queue_add(engine, parent, INPUT_RESULT);
    if (!queued) return error_nomem(err);
    queued->input.step = fan->step;
    queued->input.logical = now.logical;
    queued->input.engine = now.engine;
    queued->input.duration_ms = elapsed_ms(engine, parent, fan);
    enum code rc = input_value(engine, queued, &list, err);
    if (rc == OK) return OK;
    struct queued undone = queue_take_last(engine);
    queued_release(&undone);
    return rc;
}

static enum code tell_failure(struct engine *engine, struct resident *parent, const struct fan *fan, struct error *err)
{
    struct buf text;
    uint32_t first = 0;
    while (fan->slots[first].ok) first++;
    buf_init(&text, 8192);
    buf_printf(&text, "%u of %u children failed; item %u: %.*s", fan->failed, fan->items.count, first + 1,
               STR_ARG(json_text(json_key(&fan->slots[first].value, "error"))));
    struct fault fault = {
        .code = STR("CHILD_FAILED"), .message = buf_str(&text), .category = STR("business"), .retryable = true};
    enum code rc = fail(engine, parent, fan->step, fault, err);
    if (rc == OK) queue_last(engine)->input.duration_ms = elapsed_ms(engine, parent, fan);
    buf_release(&text);
    return rc;
}

static enum code finish(struct engine *engine, struct resident *parent, struct fan *fan, struct error *err)
{
    enum code rc;
    if (fan->cancelled)
        rc =
            fail(engine, parent, fan->step,
                 (struct fault){.code = STR("CANCELLED"), .message = STR("the run was cancelled"), .category = STR("")},
                 err);
    else if (fan->all_success && fan->failed > 0)
        rc = tell_failure(engine, parent, fan, err);
    else
        rc = tell_list(engine, parent, fan, err);
    if (rc == OK) drop_fan(parent, fan);
    return rc;
}

// As many as may run at once, in the order of the list. While the parent is paused nothing begins: RESUME comes here again. What
// others have is looked at again in a second.
static enum code go_on(struct engine *engine, struct resident *parent, struct fan *fan, struct error *err)
{
    bool paused = parent->run->status == RUN_STATUS_PAUSED, later = false;
    uint32_t busy = 0;
    for (uint32_t i = 0; i < fan->items.count; i++)
        busy += fan->slots[i].state == SLOT_OPEN || fan->slots[i].state == SLOT_ELSEWHERE;
    for (uint32_t i = 0; i < fan->items.count; i++) {
        struct slot *slot = &fan->slots[i];
        later = later || slot->state == SLOT_ELSEWHERE;
        if (slot->state != SLOT_TO_COME || paused || fan->cancelled || busy >= fan->parallel) continue;
        enum code rc = begin_slot(engine, parent, fan, i, err);
        if (rc) return rc;
        busy += slot->state != SLOT_OVER;
        later = later || slot->state == SLOT_ELSEWHERE;
    }
    if (fan->over == fan->items.count) return finish(engine, parent, fan, err);
    return later ? subrun_look_again(engine, parent, fan->step, err) : OK;
}

// ---- what others call

struct str engine_child(const struct engine *engine, struct str tenant, struct str run, uint32_t step, uint32_t index,
                        struct arena *arena)
{
    const struct resident *parent = resident_find(engine, tenant, run);
    const struct str none = {0};
    if (!parent) return none;
    if (!kernel_fans_out(parent->run, step)) return index ? none : kernel_child_id(parent->run, step, arena);
    const struct fan *fan = find_fan(parent, step, kernel_attempt(parent->run, step).logical);
    return fan && index < fan->items.count ? kernel_fan_child(fan->group, index, arena) : none;
}

enum code fan_start(struct engine *engine, struct resident *parent, const struct effect *effect, struct error *err)
{
    uint32_t step = effect->step;
    if (kernel_state(parent->run, step) != NODE_RUNNING || kernel_attempt(parent->run, step).logical != effect->logical)
        return OK; // its list came in the same turn
    struct fan *fan = find_fan(parent, step, effect->logical);
    struct error local = {0};
    enum code rc = fan ? OK : open_fan(engine, parent, step, effect->logical, &fan, &local);
    if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
    if (rc) {
        struct fault fault = {.code = rc == E_INVALID ? STR("INVALID_ITEMS")
                                      : rc == E_LIMIT ? STR("LIMIT_EXCEEDED")
                                                      : STR("REFERENCE_NOT_AVAILABLE"),
                              .message = str_from(local.message),
                              .category = STR("validation")};
        return fail(engine, parent, step, fault, err);
    }
    // Children that were lost on the way, and those that others had, are looked for again.
    for (uint32_t i = 0; i < fan->items.count; i++) {
        struct str id = kernel_fan_child(fan->group, i, &engine->turn);
        if (!id.ptr) return error_nomem(err);
        bool gone = fan->slots[i].state == SLOT_OPEN && !resident_find(engine, parent->ids.tenant, id);
        if (gone || fan->slots[i].state == SLOT_ELSEWHERE) fan->slots[i].state = SLOT_TO_COME;
    }
    return go_on(engine, parent, fan, err);
}

static enum code cancel_slot(struct engine *engine, struct resident *parent, struct fan *fan, uint32_t index,
                             struct error *err)
{
    struct slot *slot = &fan->slots[index];
    if (slot->state == SLOT_OVER) return OK;
    struct str id = kernel_fan_child(fan->group, index, &engine->turn);
    if (!id.ptr) return error_nomem(err);
    enum code rc = begin_slot(engine, parent, fan, index, err); // found, not begun
    if (rc || slot->state == SLOT_OVER) return rc;
    bool here = slot->state == SLOT_OPEN;
    return subrun_ask_to_end(engine, parent, here ? resident_find(engine, parent->ids.tenant, id) : NULL, id, err);
}

enum code fan_cancel(struct engine *engine, struct resident *parent, const struct effect *effect, struct error *err)
{
    bool waits = kernel_state(parent->run, effect->step) == NODE_RUNNING &&
                 kernel_attempt(parent->run, effect->step).logical == effect->logical;
    bool later = false;
    struct fan *fan = find_fan(parent, effect->step, effect->logical);
    struct error local = {0};
    enum code rc = fan ? OK : open_fan(engine, parent, effect->step, effect->logical, &fan, &local);
    if (rc == E_NOMEM || rc == E_IO) return error_set(err, rc, "%s", local.message);
    if (rc) {
        struct fault fault = {.code = STR("CANCELLED"), .message = STR("the run was cancelled"), .category = STR("")};
        return waits ? fail(engine, parent, effect->step, fault, err) : OK;
    }
    fan->cancelled = true;
    for (uint32_t i = 0; !rc && i < fan->items.count; i++) {
        rc = cancel_slot(engine, parent, fan, i, err);
        later = later || fan->slots[i].state == SLOT_ELSEWHERE;
    }
    if (rc) return rc;
    if (!waits) {
        drop_fan(parent, fan);
        return OK;
    }
    if (fan->over == fan->items.count) return finish(engine, parent, fan, err);
    return later ? subrun_look_again(engine, parent, effect->step, err) : OK;
}

enum code fan_ended(struct engine *engine, struct resident *parent, uint32_t step, const struct resident *child,
                    struct error *err)
{
    struct fan *fan = find_fan(parent, step, kernel_attempt(parent->run, step).logical);
    for (uint32_t i = 0; fan && i < fan->items.count; i++) {
        if (fan->slots[i].state != SLOT_OPEN && fan->slots[i].state != SLOT_ELSEWHERE) continue;
        struct str id = kernel_fan_child(fan->group, i, &engine->turn);
        if (!id.ptr) return error_nomem(err);
        if (!str_eq(id, child->ids.run)) continue;
        enum code rc = slot_ended(engine, fan, &fan->slots[i], child->run, err);
        return rc ? rc : go_on(engine, parent, fan, err);
    }
    return OK; // of an older attempt, or the parent asks when it is taken up
}
