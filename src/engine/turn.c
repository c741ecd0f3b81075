// One turn: inputs in, one batch to the store, effects out. The order is law:
//
//   step each input  ->  append ONE batch (one sync)  ->  tell observers  ->  dispatch effects
//
// Nothing is dispatched or answered before it is durable. When the append fails, the runs it touched are ahead of the log:
// they are folded again from the store and their inputs go back to the queue.
#include "engine/inside.h"

#include <stdlib.h>
#include <string.h>

struct decided { // one input and what it led to
    struct queued queued;
    struct outcome outcome;
    size_t first_item, item_count;
    struct resident *made;       // RETRY_RUN: the new run, whose start is stored in the same batch
    bool was_idle;               // the run, before this input
    bool done;                   // settled, one way or the other: never to be tried again
    const struct error *refused; // START: its notes do not fit; nothing of it is in the batch
};

struct turn {
    struct engine *engine;
    struct decided *decided; // with room for one more run per input
    size_t count;
    size_t taken; // of the queue; the rest was made on the way
    struct append_item *items;
    size_t item_count, item_capacity;
    struct append_summary *summaries;
    size_t summary_count;
    struct append_blob *blobs;
    size_t blob_count;
    int64_t *inbox;
    size_t inbox_count;
    struct note_draft notes;
    struct put *puts; // that ride in this batch
    bool waits;       // for a result that is elsewhere and cannot be had: nothing was stored
};

static struct append_item *item_add(struct turn *turn, struct resident *resident)
{
    struct append_item *grown = arena_grow(&turn->engine->turn, turn->items, turn->item_count, turn->item_count + 1,
                                           sizeof(*grown), &turn->item_capacity);
    if (!grown) return NULL;
    turn->items = grown;
    struct append_item *item = &turn->items[turn->item_count++];
    memset(item, 0, sizeof(*item));
    item->log = resident->log;
    return item;
}

// The decision record stands before what the decision causes.
static enum code collect_decision(struct turn *turn, struct decided *decided, const struct effect *effect,
                                  struct error *err)
{
    if (decided->queued.inbox_id != 0) turn->inbox[turn->inbox_count++] = decided->queued.inbox_id;
    if (effect->duplicate) return OK;
    struct append_item *item = item_add(turn, decided->queued.resident);
    if (!item) return error_nomem(err);
    item->ledger_kind = STR("decision");
    if (!effect->settled) item->signal_id = effect->signal->id; // the first one has it
    struct str new_run = decided->made ? decided->made->ids.run : (struct str){0};
    enum code rc = decision_body(turn->engine, &decided->queued, effect, new_run, &item->ledger_body);
    return rc ? error_nomem(err) : OK;
}

static enum code collect_notes(struct turn *turn, const struct queued *queued, struct error *err)
{
    for (size_t i = 0; i < queued->note_count; i++) {
        struct append_item *item = item_add(turn, queued->resident);
        if (!item) return error_nomem(err);
        item->ledger_kind = queued->notes[i].kind;
        item->ledger_body = queued->notes[i].body;
        item->signal_id = queued->notes[i].signal_id;
    }
    return OK;
}

static enum code collect(struct turn *turn, struct decided *decided, struct error *err)
{
    struct resident *resident = decided->queued.resident;
    decided->first_item = turn->item_count;
    enum code noted = collect_notes(turn, &decided->queued, err);
    if (noted) return noted;
    for (size_t i = 0; i < decided->outcome.effect_count; i++) {
        if (decided->outcome.effects[i].kind != EFFECT_DECISION) continue;
        enum code rc = collect_decision(turn, decided, &decided->outcome.effects[i], err);
        if (rc) return rc;
    }
    for (size_t i = 0; i < decided->outcome.moment_count; i++) {
        struct append_item *item = item_add(turn, resident);
        if (!item) return error_nomem(err);
        item->moment = &decided->outcome.moments[i];
    }
    decided->item_count = turn->item_count - decided->first_item;
    for (size_t i = 0; !decided->queued.elsewhere && i < decided->queued.blob_count; i++)
        turn->blobs[turn->blob_count++] = decided->queued.blobs[i];
    for (size_t i = 0; i < decided->outcome.blob_count; i++)
        turn->blobs[turn->blob_count++] =
            (struct append_blob){.sha256 = decided->outcome.blobs[i].sha256, .bytes = decided->outcome.blobs[i].bytes};
    if (decided->item_count == 0 || resident->turn == turn->engine->turn_number) return OK;
    resident->turn = turn->engine->turn_number;
    resident->summary = turn->summary_count;
    turn->summaries[turn->summary_count++].log = resident->log;
    return OK;
}

static enum code step_one(struct turn *turn, struct decided *decided, struct error *err)
{
    struct engine *engine = turn->engine;
    struct queued *queued = &decided->queued;
    struct input *input = &queued->input;
    INVARIANT(queued->resident);
    decided->was_idle = queued->resident->idle;
    if (input->kind == INPUT_RECOVER) queued->resident->idle = false;
    input->idle = queued->resident->idle;
    input->now_ms = engine->now.wall_ms;
    input->random = queued->tries == 0 ? new_random(engine) : input->random;
    input->start = queued->facts;
    input->signal = queued->signal;
    if (input->kind == INPUT_SIGNAL) {
        new_uuid(engine, queued->decision_id);
        input->decision_id = str_from(queued->decision_id);
    }
    enum code rc = reuse_at_the_gate(engine, queued, err);
    if (rc) return rc;
    input->reuse = queued->reuse;
    decided->outcome = (struct outcome){.turn = &engine->turn};
    engine->deciding = turn;
    rc = kernel_step(queued->resident->run, input, &engine->env, &decided->outcome, err);
    engine->deciding = NULL;
    return rc;
}

// What this turn will store: a result is read by what is decided about it before it is there.
bool turn_blob(const struct engine *engine, const struct digest *sha256, struct str *out)
{
    const struct turn *turn = engine->deciding;
    for (size_t i = 0; turn && i < turn->count; i++) {
        const struct decided *decided = &turn->decided[i];
        for (size_t k = 0; k < decided->queued.blob_count; k++) {
            if (!digest_eq(&decided->queued.blobs[k].sha256, sha256)) continue;
            *out = decided->queued.blobs[k].bytes;
            return true;
        }
        for (size_t k = 0; k < decided->outcome.blob_count; k++) {
            if (!digest_eq(&decided->outcome.blobs[k].sha256, sha256)) continue;
            *out = decided->outcome.blobs[k].bytes;
            return true;
        }
    }
    return false;
}

// An accepted RETRY_RUN and the start of the new run are one batch: who is told of the new run will find it (E2).
static enum code make_runs(struct turn *turn, struct decided *decided, struct error *err)
{
    struct engine *engine = turn->engine;
    for (size_t i = 0; i < decided->outcome.effect_count; i++) {
        if (decided->outcome.effects[i].kind != EFFECT_RETRY_RUN) continue;
        char id[129];
        enum code rc = retry_run(engine, decided->queued.resident, decided->outcome.effects[i].signal, id, err);
        if (rc) return rc;
        struct decided *start = &turn->decided[turn->count++];
        memset(start, 0, sizeof(*start));
        start->queued = queue_take_last(engine);
        decided->made = start->queued.resident;
        decided->made->idle = engine->options.only_signals;
        rc = step_one(turn, start, err);
        if (rc) return rc;
    }
    return OK;
}

// Room for everything that has one entry per input, so that collecting cannot fail half way.
static enum code make_room(struct turn *turn, struct error *err)
{
    size_t blobs = 0;
    for (size_t i = 0; i < turn->count; i++)
        blobs += turn->decided[i].queued.blob_count + turn->decided[i].outcome.blob_count;
    struct arena *arena = &turn->engine->turn;
    turn->summaries = ARENA_ARRAY(arena, turn->count + 1, struct append_summary);
    turn->blobs = ARENA_ARRAY(arena, blobs + 1, struct append_blob);
    turn->inbox = ARENA_ARRAY(arena, turn->count + 1, int64_t);
    return turn->summaries && turn->blobs && turn->inbox ? OK : error_nomem(err);
}

static enum code append_batch(struct turn *turn, struct error *err)
{
    for (size_t i = 0; i < turn->count; i++) {
        const struct resident *r = turn->decided[i].queued.resident;
        if (turn->decided[i].item_count > 0) engine_summary(r->run, &turn->summaries[r->summary].summary);
    }
    if (turn->item_count == 0 && turn->inbox_count == 0 && turn->notes.change_count == 0) return OK;
    struct store_batch batch = {.items = turn->items,
                                .item_count = turn->item_count,
                                .summaries = turn->summaries,
                                .summary_count = turn->summary_count,
                                .blobs = turn->blobs,
                                .blob_count = turn->blob_count,
                                .inbox_done = turn->inbox,
                                .inbox_count = turn->inbox_count,
                                .drafted = &turn->notes};
    return append_in_time(turn->engine, &batch, err);
}

static void tell_decision(struct engine *engine, const struct turn *turn, const struct decided *decided,
                          const struct effect *effect, struct str new_run)
{
    if (!engine->options.observer.decision) return;
    struct engine_decision decision = {.tenant = decided->queued.resident->ids.tenant,
                                       .run = decided->queued.resident->ids.run,
                                       .signal_id = effect->signal->id,
                                       .type = effect->signal->type,
                                       .accepted = effect->accepted,
                                       .duplicate = effect->duplicate,
                                       .deferred = effect->deferred,
                                       .decision_id = effect->decision_id,
                                       .error_code = str_from(effect->error_code),
                                       .error_message = effect->error_message,
                                       .new_run = new_run};
    for (size_t i = 0; i < decided->item_count; i++) {
        const struct append_item *item = &turn->items[decided->first_item + i];
        if (item->in_log) decision.seq = item->seq;
    }
    engine->options.observer.decision(engine->options.observer.context, &decision);
}

static void tell_events(struct engine *engine, const struct turn *turn, const struct decided *decided)
{
    const struct resident *resident = decided->queued.resident;
    const struct past *past = decided->queued.input.past;
    uint32_t old = past ? past->count : 0; // the first moments of the outcome
    for (size_t i = 0; i < decided->item_count; i++) {
        const struct append_item *item = &turn->items[decided->first_item + i];
        if (!item->moment) continue;
        struct engine_event event = {.run = resident->ids.run,
                                     .state = resident->run,
                                     .program = resident->entry->program,
                                     .moment = item->moment,
                                     .past = old > 0,
                                     .item = item};
        old -= old > 0;
        if (item->moment->kind == MOMENT_DRAIN_TIMEOUT)
            os_log(LOG_WARN, "PAUSE_DRAIN_TIMEOUT run=%.*s left=\"%.*s\"", STR_ARG(resident->ids.run),
                   STR_ARG(item->moment->detail));
        if (engine->options.observer.event) engine->options.observer.event(engine->options.observer.context, &event);
    }
}

// A run has an end even if its document has none: past the limit it is stopped, with the reason in its log (I21).
static enum code bound_run(struct engine *engine, struct resident *resident, struct error *err)
{
    if (resident->gone || resident->idle || resident->limit_hit ||
        run_log_last_seq(resident->log) < engine->options.limits.events_per_run_max * (resident->run->net ? 20 : 1))
        return OK; // a task of a playbook is four events and more
    resident->limit_hit = true;
    char id[UUID_SIZE];
    new_uuid(engine, id);
    struct signal signal = {.type = SIGNAL_EMERGENCY_STOP,
                            .id = str_from(id),
                            .reason = STR("RUN_LIMIT: the run has too many events"),
                            .actor = STR("cairn"),
                            .role = STR("System")};
    return queue_signal(engine, resident, &signal, 0, err);
}

static enum code carry_out(struct turn *turn, struct decided *decided, struct error *err)
{
    struct engine *engine = turn->engine;
    struct resident *resident = decided->queued.resident;
    tell_events(engine, turn, decided);
    struct str new_run = decided->made ? decided->made->ids.run : (struct str){0};
    for (size_t i = 0; i < decided->outcome.effect_count; i++) {
        const struct effect *effect = &decided->outcome.effects[i];
        if (effect->kind == EFFECT_DECISION) tell_decision(engine, turn, decided, effect, new_run);
        enum code rc = dispatch(engine, resident, effect, err);
        if (rc) return rc;
    }
    if (resident->terminal) resident_gone(engine, resident);
    return bound_run(engine, resident, err);
}

static void note_stored(struct turn *turn)
{
    for (size_t i = 0; i < turn->count; i++)
        if (turn->decided[i].queued.input.kind == INPUT_START && !turn->decided[i].refused)
            turn->decided[i].queued.resident->entry->stored = true;
}

// The moments are durable, but not all that they order could be carried out. Nothing may be decided twice, so the run goes
// on as after a crash: what is not with a tool is not live, and recovery names it anew before it starts.
static enum code owe(struct engine *engine, struct resident *resident, enum code why, struct error *err)
{
    if (why == E_IO) return why;
    os_log(LOG_WARN, "effects put off run=%.*s why=\"%s\"", STR_ARG(resident->ids.run), err->message);
    *err = (struct error){0};
    engine->full_until_mono = engine->now.mono_ms + 200;
    for (uint32_t i = 0; i < run_step_count(resident->run); i++)
        resident->run->steps[i].live = resident->run->steps[i].stopping = false;
    relive(engine, resident);
    return queue_add(engine, resident, INPUT_RECOVER) ? OK : error_nomem(err);
}

// The runs of a failed batch are folded again from the store; those that were made in it have never been.
static enum code take_back(struct turn *turn, struct error *err)
{
    struct engine *engine = turn->engine;
    for (size_t i = turn->taken; i < turn->count; i++) {
        resident_gone(engine, turn->decided[i].queued.resident);
        queued_release(&turn->decided[i].queued);
    }
    turn->count = turn->taken;
    for (size_t i = 0; i < turn->count; i++) {
        struct resident *resident = turn->decided[i].queued.resident;
        turn->decided[i].made = NULL;
        if (turn->decided[i].done || resident->gone) continue;
        enum code rc = reload(engine, resident, err);
        if (rc) return rc;
        if (turn->decided[i].was_idle) resident->idle = true;
    }
    // Results that are about to be tried again are as good as in flight.
    for (size_t i = 0; i < turn->count; i++) {
        const struct queued *queued = &turn->decided[i].queued;
        if (!turn->decided[i].done && !queued->resident->gone) relive_input(queued);
    }
    return OK;
}

// A start whose notes do not fit is left out of the batch, and refused when the batch, which may be why, is durable.
static enum code draft_start(struct turn *turn, struct decided *decided, struct error *err)
{
    struct queued *queued = &decided->queued;
    decided->refused = NULL;
    if (queued->put_count == 0) return OK;
    struct error why = {0};
    enum code rc = note_draft_add(&turn->notes, queued->puts, queued->put_count, &why);
    if (!put_is_refused(rc)) return rc ? error_set(err, rc, "%s", why.message) : OK;
    struct error *kept = ARENA_NEW(&turn->engine->turn, struct error);
    if (!kept) return error_nomem(err);
    *kept = why;
    decided->refused = kept;
    return OK;
}

static enum code refuse_start(struct engine *engine, const struct queued *queued, const struct error *why,
                              struct error *err)
{
    struct resident *resident = queued->resident;
    const struct engine_observer *observer = &engine->options.observer;
    resident_gone(engine, resident);
    if (observer->refused) observer->refused(observer->context, resident->ids.tenant, resident->ids.run, why);
    return subrun_refused(engine, resident->ids.tenant, queued->facts, why->code, err);
}

static enum code step_all(struct turn *turn, struct error *err)
{
    enum code rc = OK;
    for (size_t i = 0; !rc && i < turn->taken; i++) {
        rc = draft_start(turn, &turn->decided[i], err);
        if (rc || turn->decided[i].refused) continue;
        rc = step_one(turn, &turn->decided[i], err);
        if (!rc) rc = make_runs(turn, &turn->decided[i], err);
    }
    return rc;
}

static enum code run_batch(struct turn *turn, struct error *err)
{
    struct engine *engine = turn->engine;
    engine->turn_number++;
    turn->item_count = turn->summary_count = turn->blob_count = turn->inbox_count = 0;
    turn->items = NULL;
    turn->item_capacity = 0;
    for (size_t i = 0; i < turn->count; i++) turn->decided[i].outcome = (struct outcome){0}; // of a try before this one
    note_draft_init(&turn->notes, engine->store, &engine->turn);
    enum code rc = step_all(turn, err);
    turn->waits = rc == E_UNREACHABLE; // nothing was stored yet: a result that is elsewhere cannot be had
    if (!rc) rc = make_room(turn, err);
    for (size_t i = 0; !rc && i < turn->count; i++)
        if (!turn->decided[i].refused) {
            rc = collect(turn, &turn->decided[i], err);
            if (!rc)
                rc = draft_end(engine, turn->decided[i].queued.resident, &turn->decided[i].outcome, &turn->notes, err);
        }
    if (!rc) rc = puts_draft(turn->puts, &turn->notes, err);
    if (!rc) rc = append_batch(turn, err);
    if (rc) return rc;
    note_stored(turn);
    for (size_t i = 0; !rc && i < turn->count; i++) {
        turn->decided[i].done = true;
        const struct tool_result *result = &turn->decided[i].queued.result;
        if (result->stored) result->stored(result->memory);
        const struct error *refused = turn->decided[i].refused;
        rc = refused ? refuse_start(engine, &turn->decided[i].queued, refused, err)
                     : carry_out(turn, &turn->decided[i], err);
        if (rc) rc = owe(engine, turn->decided[i].queued.resident, rc, err);
    }
    struct put *puts = turn->puts;
    turn->puts = NULL;
    puts_settle(puts);
    return rc;
}

// A signal that cannot be stored is refused; the run has nothing to do with it.
static enum code refuse_signal(struct turn *turn, const struct queued *queued, struct error *err)
{
    struct engine *engine = turn->engine;
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

// One input alone cannot be stored: what becomes of it depends on why.
static enum code give_up(struct turn *turn, enum code why, struct error *err)
{
    struct engine *engine = turn->engine;
    struct queued *queued = &turn->decided[0].queued;
    struct resident *resident = queued->resident;
    if (turn->waits) {
        bool waits = aside_wait(engine, queued, err->message);
        *err = (struct error){0};
        return waits ? OK : error_nomem(err);
    }
    bool fenced = why == E_CONFLICT && queued->input.kind != INPUT_START; // a new run is nobody's yet: it was a note
    if (fenced || why == E_TERMINAL || why == E_CORRUPT) {
        os_log(LOG_WARN, "run dropped run=%.*s why=\"%s\"", STR_ARG(resident->ids.run), err->message);
        resident_gone(engine, resident); // fenced: another process owns it, its log goes on there
        return OK;
    }
    if (queued->input.kind == INPUT_SIGNAL) return refuse_signal(turn, queued, err);
    if (queued->input.kind == INPUT_RESULT && queued->tries == 0) {
        // The result does not fit into an event: the step fails instead, once, with the reason.
        struct fault fault = {.code = STR("PAYLOAD_TOO_LARGE"),
                              .message = STR("the result cannot be stored as an event"),
                              .category = STR("validation")};
        if (why == E_SCHEMA)
            fault.message = STR("SCHEMA_VALIDATION_FAILED: the result does not fit its event's schema");
        queued_fail(queued, fault);
        queued->tries = 1;
        *err = (struct error){0};
        enum code rc = run_batch(turn, err);
        if (rc == E_CONFLICT) { // it is not ours any more
            resident_gone(engine, resident);
            return OK;
        }
        if (rc != E_SCHEMA && rc != E_LIMIT) return rc;
    }
    if (queued->input.kind == INPUT_START) {
        struct error told = *err;
        return refuse_start(engine, queued, &told, err);
    }
    resident_gone(engine, resident);
    os_log(LOG_ERROR, "input refused run=%.*s why=\"%s\"", STR_ARG(resident->ids.run), err->message);
    return OK;
}

static bool is_particular(enum code rc)
{
    return rc == E_CONFLICT || rc == E_SCHEMA || rc == E_LIMIT || rc == E_TERMINAL || rc == E_CORRUPT ||
           rc == E_EXISTS || rc == E_INVALID;
}

// This engine was taken for dead (S17): no other input will be stored either.
static bool is_lost(const struct engine *engine, enum code rc)
{
    return rc == E_CONFLICT && store_fenced(engine->store);
}

static enum code one_by_one(struct turn *turn, struct error *err)
{
    struct decided *all = turn->decided;
    size_t count = turn->count;
    enum code rc = OK;
    for (size_t i = 0; !rc && i < count; i++) {
        if (all[i].queued.resident->gone) continue;
        struct decided room[2] = {all[i]};
        struct turn single = {.engine = turn->engine, .decided = room, .count = 1, .taken = 1};
        *err = (struct error){0};
        rc = run_batch(&single, err);
        if (single.waits || (is_particular(rc) && !is_lost(turn->engine, rc))) {
            enum code why = rc;
            struct error local = {0};
            rc = take_back(&single, &local);
            if (rc)
                rc = error_set(err, rc, "%s", local.message);
            else
                rc = give_up(&single, why, err);
            room[0].done = room[0].done || rc == OK;
        }
        for (size_t k = 1; k < single.count; k++) queued_release(&room[k].queued);
        all[i] = room[0];
    }
    return rc;
}

static enum code requeue(struct turn *turn, struct error *err)
{
    struct queue *q = &turn->engine->queue;
    if (!queue_reserve(turn->engine, turn->count)) return error_nomem(err);
    for (size_t i = turn->count; i > 0; i--) {
        if (turn->decided[i - 1].done || turn->decided[i - 1].queued.resident->gone) continue;
        q->head = (q->head - 1) & (q->capacity - 1);
        q->items[q->head] = turn->decided[i - 1].queued;
        check_budget(turn->engine, &q->items[q->head]);
        q->items[q->head].tries++;
        q->count++;
        memset(&turn->decided[i - 1].queued, 0, sizeof(struct queued));
    }
    return OK;
}

// Takes the inputs of a turn from the queue. Those of runs that are gone are dropped.
static bool take_inputs(struct turn *turn, size_t max)
{
    struct queue *q = &turn->engine->queue;
    size_t count = q->count < max ? q->count : max;
    turn->decided = ARENA_ARRAY(&turn->engine->turn, 2 * count + 1, struct decided);
    if (!turn->decided) return false;
    for (size_t i = 0; i < count; i++) {
        struct queued *queued = &q->items[q->head];
        q->head = (q->head + 1) & (q->capacity - 1);
        q->count--;
        if (queued->resident->gone)
            queued_release(queued);
        else if (!queued->wanted || !aside_put(turn->engine, queued))
            turn->decided[turn->count++].queued = *queued;
        memset(queued, 0, sizeof(*queued));
    }
    turn->taken = turn->count;
    return true;
}

void bury(struct engine *engine)
{
    struct queue *q = &engine->queue;
    size_t kept = 0;
    for (size_t k = 0; k < q->count; k++) {
        struct queued *queued = &q->items[(q->head + k) & (q->capacity - 1)];
        if (queued->resident->gone)
            queued_release(queued);
        else
            q->items[(q->head + kept++) & (q->capacity - 1)] = *queued;
    }
    q->count = kept;
    asides_bury(engine);
    while (engine->gone) {
        struct resident *resident = engine->gone;
        engine->gone = resident->next_gone;
        resident_remove(engine, resident);
    }
}

static void put_off(struct engine *engine, struct error *err)
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
static enum code settle_lost(struct turn *turn, struct error *err)
{
    struct error why = *err;
    enum code rc = OK;
    puts_tell(turn->puts, E_CANCELLED, &why);
    for (size_t i = 0; !rc && i < turn->count; i++)
        if (!turn->decided[i].done) rc = refuse_lost(turn->engine, &turn->decided[i].queued, NULL);
    if (!rc) rc = lose_all(turn->engine, err);
    for (size_t i = 0; i < turn->count; i++) queued_release(&turn->decided[i].queued);
    return rc;
}

static enum code settle_turn(struct turn *turn, enum code rc, struct error *err)
{
    struct engine *engine = turn->engine;
    if (turn->waits || (is_particular(rc) && !is_lost(engine, rc))) {
        struct error local = {0};
        enum code taken = take_back(turn, &local);
        rc = taken ? error_set(err, taken, "%s", local.message) : one_by_one(turn, err);
        if (!rc) rc = puts_one_by_one(engine, &turn->puts, err);
    }
    if (is_lost(engine, rc)) return settle_lost(turn, err);
    if (rc == E_FULL || rc == E_NOMEM || rc == E_LOCKED) {
        // Nothing was stored and nothing was done. Try again when there may be room.
        struct error local = {0};
        enum code taken = take_back(turn, &local);
        if (taken) return error_set(err, taken, "%s", local.message);
        rc = requeue(turn, err);
        if (!rc) put_off(engine, err);
    }
    if (rc)
        puts_tell(turn->puts, rc, err);
    else
        puts_return(engine, turn->puts);
    for (size_t i = 0; i < turn->count; i++) queued_release(&turn->decided[i].queued);
    if (engine->gone) bury(engine);
    return rc;
}

static enum code gather(struct engine *engine, struct error *err)
{
    struct message **last = &engine->arrived;
    while (*last) last = &(*last)->next;
    *last = mailbox_take(&engine->mailbox);
    while (engine->arrived) {
        struct message *m = engine->arrived;
        enum code rc = OK;
        if (m->aside) {
            aside_arrived(engine, m->aside);
        } else if (!m->is_line) {
            rc = input_from_result(engine, &m->result, err);
        } else if (engine->options.observer.output) {
            struct ticket *ticket = ticket_find(engine, m->ticket);
            if (ticket && ticket->resident) {
                struct str path = kernel_path(ticket->resident->run, ticket->step, &engine->turn);
                engine->options.observer.output(engine->options.observer.context, ticket->resident->ids.run, path,
                                                m->is_stderr, (struct str){m->text, m->len});
            }
        }
        if (rc) return rc; // it stays the first: no result is ever lost
        engine->arrived = m->next;
        message_free(m);
    }
    for (struct heap_node *node = heap_peek(&engine->timers); node && node->due <= engine->now.mono_ms;
         node = heap_peek(&engine->timers)) {
        struct timer *timer = CONTAINER_OF(node, struct timer, node);
        struct queued *queued =
            queue_add(engine, timer->resident, timer->kind == TIMER_LOOK ? INPUT_RECOVER : INPUT_TIMER);
        if (!queued) return error_nomem(err);
        queued->input.step = timer->step;
        queued->input.logical = timer->logical;
        queued->input.timer = timer->kind;
        queued->input.due_ms = timer->due_ms;
        timer_remove(engine, timer);
    }
    return asides_due(engine, err);
}

// What was asked of a run while nobody owned it is decided before the run goes on (ADR 0013).
static enum code prepare_adopted(struct engine *engine, struct error *err)
{
    if (engine->adopted == 0) return OK;
    size_t before = engine->queue.count;
    enum code rc = poll_inbox(engine, err);
    if (!rc) rc = queue_last_first(engine, engine->queue.count - before, err);
    if (rc == E_FULL || rc == E_LOCKED) rc = E_NOMEM; // tried again in a while, and nothing goes on before
    if (!rc) sweep_orphans(engine);
    return rc;
}

enum code engine_turn(struct engine *engine, struct moment_in_time now, bool *worked, struct error *err)
{
    *worked = false;
    engine->now = now;
    arena_reset(&engine->turn);
    struct turn turn = {.engine = engine};
    enum code rc = gather(engine, err); // also while nothing may be stored, or the mailbox would keep us awake
    if (!rc) rc = prepare_adopted(engine, err);
    if (is_lost(engine, rc)) return lose_all(engine, err);
    bool idle = engine->queue.count == 0 && !engine->puts;
    if (!rc && (idle || now.mono_ms < engine->full_until_mono)) return OK;
    if (!rc && !take_inputs(&turn, engine->options.limits.inputs_per_turn_max)) rc = error_nomem(err);
    if (rc == E_NOMEM) {
        put_off(engine, err);
        return OK;
    }
    if (rc || (turn.count == 0 && !engine->puts)) return rc;
    turn.puts = puts_take(engine);
    rc = run_batch(&turn, err);
    if (!rc) engine->stalled_mono = 0;
    rc = settle_turn(&turn, rc, err);
    executors_flush(engine);
    *worked = true;
    return rc;
}
