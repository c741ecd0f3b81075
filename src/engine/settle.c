// A batch that was not stored. What is wrong with one run must not touch another: after a particular error the batch is taken back
// and stored run by run, and inside the run that fails, input by input. What is wrong with the store itself (no room, no memory,
// locked) puts off all of it: the inputs go back to the queue in their order.
#include "engine/batch.h"

#include <string.h>

static bool is_particular(enum code rc)
{
    return rc == E_CONFLICT || rc == E_SCHEMA || rc == E_LIMIT || rc == E_TERMINAL || rc == E_CORRUPT ||
           rc == E_EXISTS || rc == E_INVALID;
}

bool is_lost(const struct engine *engine, enum code rc)
{
    return rc == E_CONFLICT && store_fenced(engine->store);
}

void tell_refused(struct engine *engine, const struct queued *queued, const struct error *why)
{
    const struct engine_observer *observer = &engine->options.observer;
    const struct run_ids *ids = &queued->resident->ids;
    struct engine_refusal refusal = {.tenant = ids->tenant, .run = ids->run, .why = why};
    if (queued->facts) refusal.parent = queued->facts->parent_run;
    if (observer->refused) observer->refused(observer->context, &refusal);
}

enum code refuse_start(struct engine *engine, const struct queued *queued, const struct error *why,
                       struct error *err)
{
    struct resident *resident = queued->resident;
    resident_gone(engine, resident);
    INVARIANT(queued->input.kind == INPUT_START && queued->facts);
    tell_refused(engine, queued, why);
    return subrun_refused(engine, &resident->ids, queued->facts, why, err);
}

// A signal that cannot be stored is refused; the run has nothing to do with it.
static enum code refuse_signal(struct engine *engine, const struct queued *queued, struct error *err)
{
    os_log(LOG_WARN, "signal refused run=%.*s why=\"%s\"", STR_ARG(queued->resident->ids.run), err->message);
    struct engine_decision decision = {.tenant = queued->resident->ids.tenant,
                                       .run = queued->resident->ids.run,
                                       .signal_id = queued->signal->id,
                                       .type = queued->signal->type,
                                       .error_code = STR("SIGNAL_INVALID_PAYLOAD"),
                                       .error_message = str_from(err->message)};
    if (engine->options.observer.decision)
        engine->options.observer.decision(engine->options.observer.context, &decision);
    if (queued->inbox_id == 0) return OK;
    struct store_batch batch = {.inbox_done = &queued->inbox_id, .inbox_count = 1};
    struct error local = {0};
    enum code rc = store_append(engine->store, &batch, engine->now.wall_ms, &engine->turn, &local);
    return rc == E_IO ? error_set(err, rc, "%s", local.message) : OK;
}

static enum code drop_run(struct engine *engine, struct resident *resident, struct error *err)
{
    COVER(run_dropped);
    os_log(LOG_WARN, "run dropped run=%.*s why=\"%s\"", STR_ARG(resident->ids.run), err->message);
    resident_gone(engine, resident);
    *err = (struct error){0};
    return OK;
}

// A result that does not fit into an event: the step fails instead, with the reason. That is its second and last chance; how often
// the store had no room before has nothing to do with it.
static bool fails_instead(struct batch *batch, enum code why)
{
    INVARIANT(batch->taken == 1 && batch->count == 1);
    struct queued *queued = &batch->decided[0].queued;
    bool unfit = !batch->waits && why != E_CONFLICT && why != E_TERMINAL && why != E_CORRUPT;
    if (!unfit || queued->input.kind != INPUT_RESULT || queued->second_chance) return false;
    struct fault fault = {.code = STR("PAYLOAD_TOO_LARGE"),
                          .message = STR("the result cannot be stored as an event"),
                          .category = STR("validation")};
    if (why == E_SCHEMA)
        fault.message = STR(RESULT_UNFIT);
    COVER(result_cannot_be_an_event);
    queued_fail(queued, fault);
    queued->second_chance = true;
    return true;
}

// One input alone cannot be stored: what becomes of it depends on why.
static enum code give_up(struct batch *batch, enum code why, struct error *err)
{
    struct engine *engine = batch->engine;
    struct queued *queued = &batch->decided[0].queued;
    struct resident *resident = queued->resident;
    if (batch->waits) {
        bool waits = aside_wait(engine, queued, err->message);
        *err = (struct error){0};
        return waits ? OK : error_nomem(err);
    }
    if (queued->input.kind == INPUT_NOTE && (why == E_LIMIT || why == E_INVALID || why == E_SCHEMA)) {
        *err = (struct error){0}; // it is not kept, which its sender learns; the run has nothing to do with it
        return OK;
    }
    bool fenced = why == E_CONFLICT && queued->input.kind != INPUT_START; // a new run is nobody's yet: it was a note
    if (fenced || why == E_TERMINAL || why == E_CORRUPT)
        return drop_run(engine, resident, err); // fenced: another process owns it, its log goes on there
    if (queued->input.kind == INPUT_SIGNAL) return refuse_signal(engine, queued, err);
    if (queued->input.kind == INPUT_START) {
        struct error told = *err;
        return refuse_start(engine, queued, &told, err);
    }
    return drop_run(engine, resident, err);
}

// The inputs of a batch whose run has the number `group`, from `first` on, at most `count` of them, in a batch of their own.
static bool part_of(const struct batch *whole, uint32_t group, size_t first, size_t count, struct batch *part)
{
    INVARIANT(group < whole->group_count && count > 0);
    *part = (struct batch){.engine = whole->engine};
    part->decided = ARENA_ARRAY(&whole->engine->turn, 2 * count + 1, struct decided);
    for (size_t i = first; part->decided && i < whole->count && part->count < count; i++)
        if (whole->decided[i].group == group && !whole->decided[i].done)
            part->decided[part->count++].queued = whole->decided[i].queued;
    part->taken = part->count;
    return part->decided != NULL;
}

// What became of the inputs of a part is the whole's to know.
static void part_back(struct batch *whole, uint32_t group, size_t first, struct batch *part)
{
    size_t k = 0;
    for (size_t i = first; i < whole->count && k < part->taken; i++) {
        struct decided *decided = &whole->decided[i];
        if (decided->group != group || decided->done) continue;
        decided->queued = part->decided[k].queued;
        decided->done = part->decided[k++].done;
    }
    for (size_t i = part->taken; i < part->count; i++) {
        if (!part->decided[i].done) resident_gone(part->engine, part->decided[i].queued.resident);
        queued_release(&part->decided[i].queued);
    }
}

static bool is_apart(const struct batch *batch, enum code rc)
{
    return batch->waits || (is_particular(rc) && !is_lost(batch->engine, rc));
}

static enum code take_part_back(struct batch *part, struct error *err)
{
    struct error local = {0};
    enum code rc = batch_take_back(part, &local);
    return rc ? error_set(err, rc, "%s", local.message) : OK;
}

// Each input of one run in a batch of its own.
static enum code one_by_one(struct batch *whole, uint32_t group, struct error *err)
{
    enum code rc = OK;
    const struct resident *resident = whole->groups[group].resident;
    for (size_t i = 0; !rc && i < whole->count && !resident->gone; i++) {
        struct batch one;
        if (whole->decided[i].group != group || whole->decided[i].done) continue;
        if (!part_of(whole, group, i, 1, &one)) return error_nomem(err);
        bool again = true;
        while (again) {
            *err = (struct error){0};
            enum code why = rc = batch_run(&one, err);
            again = is_apart(&one, why);
            if (!again) break;
            rc = take_part_back(&one, err);
            again = !rc && fails_instead(&one, why);
            if (!rc && !again) rc = give_up(&one, why, err);
            one.decided[0].done = !rc && !again;
        }
        part_back(whole, group, i, &one);
    }
    return rc;
}

// The id of a new run was taken meanwhile: the run in the store is another's, and nothing of it is read here.
static enum code refuse_taken(struct batch *part, struct error *err)
{
    COVER(start_of_an_id_that_was_taken);
    struct error told = *err;
    enum code rc = OK;
    for (size_t i = 0; !rc && i < part->taken; i++) {
        part->decided[i].done = true;
        if (part->decided[i].queued.input.kind == INPUT_START)
            rc = refuse_start(part->engine, &part->decided[i].queued, &told, err);
    }
    return rc;
}

// The inputs of each run in a batch of their own.
static enum code run_by_run(struct batch *whole, struct error *err)
{
    enum code rc = OK;
    for (uint32_t i = 0; !rc && i < whole->group_count; i++) {
        const struct group *group = &whole->groups[i];
        struct batch part;
        if (group->count == 0 || group->resident->gone) continue;
        if (group->count > 1 || group->starts) {
            if (!part_of(whole, i, 0, group->count, &part)) return error_nomem(err);
            *err = (struct error){0};
            rc = batch_run(&part, err);
            bool apart = is_apart(&part, rc), taken = rc == E_EXISTS && group->starts;
            if (taken) rc = refuse_taken(&part, err);
            if (apart && !taken) rc = take_part_back(&part, err);
            part_back(whole, i, 0, &part);
            if (rc || !apart || taken) continue;
        }
        rc = one_by_one(whole, i, err);
    }
    return rc;
}

// In their order, before what came meanwhile. A recovery may have been asked for since; one is enough.
static enum code requeue(struct batch *batch, struct error *err)
{
    struct queue *q = &batch->engine->queue;
    if (!queue_reserve(batch->engine, batch->count)) return error_nomem(err);
    INVARIANT(batch->count == batch->taken); // runs that were made in it are gone
    for (size_t i = batch->count; i > 0; i--) {
        struct queued *queued = &batch->decided[i - 1].queued;
        if (batch->decided[i - 1].done || queued->resident->gone) continue;
        if (is_recovery(queued)) {
            if (queued->resident->needs_recover && !queued->resident->idle) continue;
            queued->resident->needs_recover = true;
        }
        check_budget(batch->engine, queued);
        queued->storage_tries++;
        q->head = (q->head - 1) & (q->capacity - 1);
        q->items[q->head] = *queued;
        q->count++;
        memset(queued, 0, sizeof(*queued));
    }
    return OK;
}

void put_off(struct engine *engine, struct error *err)
{
    int64_t now = engine->now.mono_ms;
    bool told = engine->stalled_mono != 0 && now - engine->told_mono < 10000; // it is tried five times a second
    if (!told) os_log(LOG_WARN, "turn put off why=\"%s\"", err->message);
    if (!told) engine->told_mono = now;
    if (engine->stalled_mono == 0) engine->stalled_mono = now;
    engine->full_until_mono = engine->now.mono_ms + 200;
    *err = (struct error){0};
}

// Nothing of this engine is stored any more, whatever run it is of (S17).
static enum code settle_lost(struct batch *batch, struct error *err)
{
    struct error why = *err;
    enum code rc = OK;
    puts_tell(batch->puts, E_CANCELLED, &why);
    for (size_t i = 0; !rc && i < batch->count; i++)
        if (!batch->decided[i].done) rc = refuse_lost(batch->engine, &batch->decided[i].queued, NULL);
    if (!rc) rc = lose_all(batch->engine, err);
    for (size_t i = 0; i < batch->count; i++) queued_release(&batch->decided[i].queued);
    return rc;
}

// One input that cannot be decided within the memory of a turn, though it is alone in it: no other waits for it any longer.
static enum code too_large(struct batch *batch, struct error *err)
{
    struct engine *engine = batch->engine;
    struct queued *queued = &batch->decided[0].queued;
    struct resident *resident = queued->resident;
    struct error told = {0};
    struct fault large = {.code = STR("PAYLOAD_TOO_LARGE"),
                          .message = STR("deciding about it takes more memory than a turn has"),
                          .category = STR("validation")};
    COVER(input_takes_more_than_a_turn_has);
    (void)error_set(&told, E_LIMIT, "deciding takes more memory than a turn has: its values are too large, or too many");
    *err = (struct error){0};
    if (queued->input.kind == INPUT_RESULT && !queued->second_chance) {
        queued_fail(queued, large);
        queued->second_chance = true;
        engine->take_max = 1;
        return OK;
    }
    batch->decided[0].done = true;
    const struct effect *ordered = &queued->ordered;
    if (ordered->kind)
        return input_fault(engine, resident, ordered->step, ordered->logical, ordered->engine, large, err);
    if (queued->input.kind == INPUT_NOTE) return OK;
    if (queued->input.kind == INPUT_START) return refuse_start(engine, queued, &told, err);
    if (resident->limit_hit || !resident->begun) return drop_run(engine, resident, &told);
    if (queued->input.kind == INPUT_SIGNAL) return refuse_signal(engine, queued, &told);
    return stop_too_large(engine, resident, err);
}

enum code batch_settle(struct batch *batch, enum code rc, struct error *err)
{
    struct engine *engine = batch->engine;
    if (is_apart(batch, rc)) {
        rc = take_part_back(batch, err);
        if (!rc) rc = run_by_run(batch, err);
        if (!rc) rc = puts_one_by_one(engine, &batch->puts, err);
    }
    if (is_lost(engine, rc)) return settle_lost(batch, err);
    if (rc == E_FULL || rc == E_NOMEM || rc == E_LOCKED || rc == E_AWAY) {
        // Nothing was stored and nothing was done. Try again when there may be room: with fewer inputs, where these alone have come
        // to a ceiling. The one that does is alone before long.
        bool ceiling = rc == E_NOMEM && memory_ceilings() != batch->ceilings;
        struct error why = *err;
        enum code taken = rc == E_NOMEM ? OK : batch_fail_open(batch, err);
        if (!taken) *err = why;
        if (!taken) taken = take_part_back(batch, err);
        if (taken) return taken;
        size_t before = batch->at < batch->taken ? batch->at : batch->taken / 2;
        if (ceiling && batch->taken > 1) engine->take_max = before > 0 ? before : 1;
        rc = ceiling && batch->taken == 1 ? too_large(batch, err) : OK;
        if (!rc) rc = requeue(batch, err);
        if (!rc && !ceiling) put_off(engine, err);
        if (!rc) *err = (struct error){0};
    }
    if (rc)
        puts_tell(batch->puts, rc, err);
    else
        puts_return(engine, batch->puts);
    for (size_t i = 0; i < batch->count; i++) queued_release(&batch->decided[i].queued);
    if (engine->gone) bury(engine);
    return rc;
}
