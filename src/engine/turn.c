// One turn: inputs in, one batch to the store, effects out. The order is law:
//
//   batch_decide     each input is stepped, what came of it is collected
//   batch_store      ONE append, one sync
//   batch_carry_out  observers are notified, effects are dispatched, signals are answered
//
// Nothing is dispatched or answered before it is durable. When the append fails, the runs it touched are ahead of the log:
// batch_take_back folds them again from the store, and settle.c decides what becomes of their inputs.
#include "engine/batch.h"
#include "engine/permits.h"

#include <stdlib.h>
#include <string.h>

// Of templates, and of memory: after so many the other inputs wait for the next turn.
enum { TURN_STEPS = 200000, TURN_BYTES = 64 << 20 };

// ---- decide

// The group of the input's run, which is the one that the run was seen in last when that was in this batch.
static enum code group_add(struct batch *batch, struct decided *decided, struct error *err)
{
    struct resident *resident = decided->queued.resident;
    if (resident->turn != batch->engine->turn_number) {
        resident->turn = batch->engine->turn_number;
        resident->group = batch->group_count;
        struct group *made = &batch->groups[batch->group_count++];
        *made = (struct group){.resident = resident, .was_idle = resident->idle};
        made->held = holds_copy(&resident->holds, &batch->engine->turn, &made->held_count);
        if (!made->held) return error_nomem(err);
    }
    decided->group = resident->group;
    struct group *group = &batch->groups[resident->group];
    group->count++;
    group->starts = group->starts || decided->queued.input.kind == INPUT_START;
    return OK;
}

struct append_item *item_add(struct batch *batch, struct resident *resident)
{
    struct store_batch *sealed = &batch->sealed;
    if (!ARENA_ROOM(&batch->engine->turn, sealed->items, sealed->item_count, &batch->item_capacity)) return NULL;
    struct append_item *item = &sealed->items[sealed->item_count++];
    memset(item, 0, sizeof(*item));
    item->log = resident->log;
    return item;
}

// The decision record stands before what the decision causes.
static enum code collect_decision(struct batch *batch, struct decided *decided, const struct effect *effect,
                                  struct error *err)
{
    if (decided->queued.inbox_id != 0) batch->inbox[batch->sealed.inbox_count++] = decided->queued.inbox_id;
    // A sender elsewhere reads in the ledger that its condition did not hold; one here is answered.
    if (effect->duplicate || (effect->moved && decided->queued.inbox_id == 0)) return OK;
    struct append_item *item = item_add(batch, decided->queued.resident);
    if (!item) return error_nomem(err);
    item->ledger_kind = STR("decision");
    // The first decision has it; where nothing was decided the id is still free.
    if (!effect->settled && !effect->moved) item->signal_id = effect->signal->id;
    struct str new_run = decided->made ? decided->made->ids.run : (struct str){0};
    enum code rc = decision_body(batch->engine, &decided->queued, effect, new_run, &item->ledger_body);
    return rc ? error_nomem(err) : OK;
}

static enum code collect_notes(struct batch *batch, const struct queued *queued, struct error *err)
{
    for (size_t i = 0; i < queued->note_count; i++) {
        struct append_item *item = item_add(batch, queued->resident);
        if (!item) return error_nomem(err);
        item->ledger_kind = queued->notes[i].kind;
        item->ledger_body = queued->notes[i].body;
        item->signal_id = queued->notes[i].signal_id;
    }
    return OK;
}

static enum code collect(struct batch *batch, struct decided *decided, struct error *err)
{
    struct resident *resident = decided->queued.resident;
    struct group *group = &batch->groups[decided->group];
    enum code noted = resident->outbox && group->outbox_count == 0 ? outbox_collect(batch, group, err) : OK;
    decided->first_item = batch->sealed.item_count;
    INVARIANT(!decided->done && decided->group < batch->group_count);
    if (!noted) noted = collect_notes(batch, &decided->queued, err);
    if (noted) return noted;
    for (size_t i = 0; i < decided->outcome.effect_count; i++) {
        if (decided->outcome.effects[i].kind != EFFECT_DECISION) continue;
        enum code rc = collect_decision(batch, decided, &decided->outcome.effects[i], err);
        if (rc) return rc;
    }
    for (size_t i = 0; i < decided->outcome.moment_count; i++) {
        struct append_item *item = item_add(batch, resident);
        if (!item) return error_nomem(err);
        item->moment = &decided->outcome.moments[i];
    }
    decided->item_count = batch->sealed.item_count - decided->first_item;
    for (size_t i = 0; !decided->queued.elsewhere && i < decided->queued.blob_count; i++)
        batch->blobs[batch->sealed.blob_count++] = decided->queued.blobs[i];
    for (size_t i = 0; i < decided->outcome.blob_count; i++)
        batch->blobs[batch->sealed.blob_count++] =
            (struct append_blob){.sha256 = decided->outcome.blobs[i].sha256, .bytes = decided->outcome.blobs[i].bytes};
    if (decided->item_count + group->outbox_count == 0 || group->summary > 0) return OK;
    INVARIANT(group->resident == resident && batch->sealed.summary_count < batch->count);
    batch->summaries[batch->sealed.summary_count++].log = resident->log;
    group->summary = (uint32_t)batch->sealed.summary_count;
    return OK;
}

// The run's last event, with those that this turn has decided and not stored yet.
static uint64_t seq_now(const struct batch *batch, const struct decided *decided)
{
    const struct resident *resident = decided->queued.resident;
    enum vocabulary vocabulary = program_vocabulary(resident->run->program);
    uint64_t seq = run_log_last_seq(resident->log);
    for (size_t i = 0; resident->outbox && i < resident->outbox->count; i++)
        seq += moment_word(resident->outbox->moments[i].kind, vocabulary) != NULL;
    for (const struct decided *at = batch->decided; at < batch->decided + batch->count; at++)
        for (size_t i = 0; at != decided && !at->done && at->queued.resident == resident && i < at->outcome.moment_count; i++)
            seq += moment_word(at->outcome.moments[i].kind, vocabulary) != NULL;
    return seq;
}

static enum code step_one(struct batch *batch, struct decided *decided, struct error *err)
{
    struct engine *engine = batch->engine;
    struct queued *queued = &decided->queued;
    struct input *input = &queued->input;
    INVARIANT(queued->resident);
    if (input->kind == INPUT_RECOVER) queued->resident->idle = false;
    input->idle = queued->resident->idle;
    input->now_ms = engine->now.wall_ms;
    input->random = queued->storage_tries == 0 && !queued->second_chance ? entropy_number(engine->options.entropy) : input->random;
    input->start = queued->facts;
    input->signal = queued->signal;
    if (input->kind == INPUT_SIGNAL) {
        entropy_uuid(engine->options.entropy, queued->decision_id);
        input->decision_id = str_from(queued->decision_id);
        if (queued->signal->if_seq > 0) input->seq = seq_now(batch, decided);
    }
    enum code rc = reuse_at_the_gate(engine, queued, err);
    if (rc) return rc;
    input->reuse = queued->reuse;
    decided->outcome = (struct outcome){.turn = &engine->turn};
    engine->deciding = batch;
    rc = kernel_step(queued->resident->run, &queued->resident->holds, input, &engine->env, &decided->outcome, err);
    if (!rc && queued->ordered.kind) rc = order_again(queued->resident, queued, &decided->outcome, err);
    if (!rc) rc = orders_render(engine, queued->resident, &decided->outcome, &decided->orders, err);
    engine->deciding = NULL;
    return rc;
}

// What this turn will store: a result is read by what is decided about it before it is there.
bool turn_blob(const struct engine *engine, const struct digest *sha256, struct str *out)
{
    const struct batch *batch = engine->deciding;
    for (size_t i = 0; batch && i < batch->count; i++) {
        const struct decided *decided = &batch->decided[i];
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

// The start that was queued last comes into this batch.
static enum code take_start(struct batch *batch, struct resident **made, struct error *err)
{
    INVARIANT(batch->count < 2 * batch->taken); // one more run per input
    struct decided *start = &batch->decided[batch->count++];
    memset(start, 0, sizeof(*start));
    start->queued = queue_take_last(batch->engine);
    *made = start->queued.resident;
    (*made)->idle = batch->engine->options.only_signals;
    enum code rc = group_add(batch, start, err);
    return rc ? rc : step_one(batch, start, err);
}

// An accepted RETRY_RUN and the start of the new run are one batch: a client that learns of the new run will find it (E2).
static enum code make_runs(struct batch *batch, struct decided *decided, struct error *err)
{
    enum code rc = OK;
    for (size_t i = 0; !rc && i < decided->outcome.effect_count; i++) {
        if (decided->outcome.effects[i].kind != EFFECT_RETRY_RUN) continue;
        char id[129];
        rc = retry_run(batch->engine, decided->queued.resident, decided->outcome.effects[i].signal, id, err);
        if (!rc) rc = take_start(batch, &decided->made, err);
    }
    return rc;
}

// The child that has room now begins in the batch that records the end of the one before it, and not one sync later: one for each
// input, which is what the batch has room for. One that cannot be started here (it exists, or is refused) is found out when the effect
// is carried out.
static enum code make_child(struct batch *batch, const struct decided *decided, struct error *err)
{
    for (size_t i = 0; batch->together && decided->orders && i < decided->outcome.effect_count; i++) {
        const struct effect *effect = &decided->outcome.effects[i];
        if (effect->kind != EFFECT_SUBRUN || effect->member == 0 || decided->orders[i].failed) continue;
        char id[129];
        struct error local = {0};
        struct resident *child;
        enum code rc = engine_start(batch->engine, &decided->orders[i].child, id, &local);
        if (rc) return rc == E_NOMEM || rc == E_IO ? error_set(err, rc, "%s", local.message) : OK;
        COVER(child_begins_in_its_parents_batch);
        return take_start(batch, &child, err);
    }
    return OK;
}

// Room for everything that has one entry per input, so that collecting cannot fail half way.
static enum code make_room(struct batch *batch, struct error *err)
{
    size_t blobs = 0;
    for (size_t i = 0; i < batch->count; i++)
        blobs += batch->decided[i].queued.blob_count + batch->decided[i].outcome.blob_count;
    struct arena *arena = &batch->engine->turn;
    batch->summaries = ARENA_ARRAY(arena, batch->count + 1, struct append_summary);
    batch->blobs = ARENA_ARRAY(arena, blobs + 1, struct append_blob);
    batch->inbox = ARENA_ARRAY(arena, batch->count + 1, int64_t);
    return batch->summaries && batch->blobs && batch->inbox ? OK : error_nomem(err);
}

// A start whose notes do not fit is left out of the batch, and refused when the batch, which may be why, is durable.
static enum code draft_start(struct batch *batch, struct decided *decided, struct error *err)
{
    struct queued *queued = &decided->queued;
    decided->refused = NULL;
    if (queued->put_count == 0) return OK;
    struct error why = {0};
    enum code rc = note_draft_add(&batch->notes, queued->puts, queued->put_count, &why);
    if (!put_is_refused(rc)) return rc ? error_set(err, rc, "%s", why.message) : OK;
    struct error *kept = ARENA_NEW(&batch->engine->turn, struct error);
    if (!kept) return error_nomem(err);
    *kept = why;
    decided->refused = kept;
    return OK;
}

static enum code step_all(struct batch *batch, struct error *err)
{
    enum code rc = OK;
    uint64_t first = batch->engine->spent;
    for (size_t i = batch->at = 0; !rc && i < batch->taken; i++) {
        uint64_t before = batch->engine->spent;
        batch->at = i;
        rc = draft_start(batch, &batch->decided[i], err);
        if (rc || batch->decided[i].refused) continue;
        rc = step_one(batch, &batch->decided[i], err);
        if (!rc) rc = make_runs(batch, &batch->decided[i], err);
        if (!rc) rc = make_child(batch, &batch->decided[i], err);
        batch->decided[i].spent = batch->engine->spent - before;
        bool much = batch->engine->spent - first >= TURN_STEPS || batch->engine->turn.size >= TURN_BYTES;
        bool full = batch->decided[i].queued.input.kind == INPUT_FULL; // what follows is of the next segment
        bool enough = (much || full) && batch->together;
        if (enough && much) COVER(rendering_leaves_the_rest_of_a_turn);
        if (!rc && enough && i + 1 < batch->taken) rc = leave_rest(batch, i + 1, err);
    }
    if (!rc) batch->at = batch->taken;
    return rc;
}

enum code batch_decide(struct batch *batch, struct error *err)
{
    struct engine *engine = batch->engine;
    engine->turn_number++;
    INVARIANT(batch->count == batch->taken && !engine->deciding);
    batch->sealed = (struct store_batch){0};
    batch->item_capacity = 0;
    batch->group_count = 0;
    batch->groups = ARENA_ARRAY(&engine->turn, 2 * batch->taken + 1, struct group);
    if (!batch->groups) return error_nomem(err);
    for (size_t i = 0; i < batch->taken; i++) {
        batch->decided[i].outcome = (struct outcome){0}; // of a try before this one
        struct resident *resident = batch->decided[i].queued.resident;
        enum code rc = resident->stale ? refold(engine, resident, err) : OK;
        if (!rc) rc = group_add(batch, &batch->decided[i], err);
        if (rc) return rc;
    }
    note_draft_init(&batch->notes, engine->store, &engine->turn);
    enum code rc = step_all(batch, err);
    batch->waits = rc == E_UNREACHABLE; // a result that is elsewhere cannot be had
    if (!rc) rc = make_room(batch, err);
    for (size_t i = 0; !rc && i < batch->count; i++) {
        struct decided *decided = &batch->decided[i];
        if (decided->refused) continue;
        rc = collect(batch, decided, err);
        if (!rc) rc = draft_end(engine, decided->queued.resident, &decided->outcome, &batch->notes, err);
    }
    if (!rc) rc = permits_draft(engine, &batch->notes, err);
    return rc ? rc : puts_draft(batch->puts, &batch->notes, err);
}

// ---- store

enum code batch_store(struct batch *batch, struct error *err)
{
    struct engine *engine = batch->engine;
    struct store_batch *sealed = &batch->sealed;
    for (uint32_t i = 0; i < batch->group_count; i++) {
        const struct group *group = &batch->groups[i];
        if (group->summary > 0) engine_summary(group->resident->run, &batch->summaries[group->summary - 1].summary);
    }
    if (sealed->item_count == 0 && sealed->inbox_count == 0 && batch->notes.change_count == 0) return OK;
    sealed->summaries = batch->summaries;
    sealed->blobs = batch->blobs;
    sealed->inbox_done = batch->inbox;
    sealed->drafted = &batch->notes;
    sealed->wait_ms = batch->away ? 1 : budget_left(batch);
    int64_t before_us = os_mono_us();
    enum code rc = store_append(engine->store, sealed, engine->now.wall_ms, &engine->turn, err);
    append_took(engine, rc, os_mono_us() - before_us, sealed->item_count);
    batch->ahead = rc != OK;
    return rc;
}

// The runs of a failed batch are folded again from the store, each once; those that were made in it have never been.
enum code batch_take_back(struct batch *batch, struct error *err)
{
    struct engine *engine = batch->engine;
    batch->ahead = false;
    for (size_t i = batch->taken; i < batch->count; i++) {
        resident_gone(engine, batch->decided[i].queued.resident);
        queued_release(&batch->decided[i].queued);
    }
    batch->count = batch->taken;
    for (uint32_t i = 0; i < batch->group_count; i++) batch->groups[i].count = 0;
    for (size_t i = 0; batch->group_count > 0 && i < batch->count; i++) {
        struct decided *decided = &batch->decided[i];
        decided->made = NULL;
        if (!decided->done) batch->groups[decided->group].count++;
    }
    for (uint32_t i = 0; i < batch->group_count; i++) {
        const struct group *group = &batch->groups[i];
        struct resident *resident = group->resident;
        if (group->count == 0 || resident->gone) continue;
        bool later = resident->begun && engine_away(engine);
        enum code rc = later ? OK : refold(engine, resident, err);
        later = later || rc == E_AWAY;
        if (rc && !later) return rc;
        if (later) COVER(run_is_folded_later);
        resident->stale = later;
        if (group->was_idle) resident->idle = true;
        if (group->held && !holds_restore(&resident->holds, group->held, group->held_count)) return error_nomem(err);
    }
    return OK;
}

// ---- carry out

static void tell_decision(struct engine *engine, const struct batch *batch, const struct decided *decided,
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
        const struct append_item *item = &batch->sealed.items[decided->first_item + i];
        if (item->in_log) decision.seq = item->seq;
    }
    engine->options.observer.decision(engine->options.observer.context, &decision);
}

void tell_items(const struct batch *batch, struct resident *resident, size_t first, size_t count, uint32_t old)
{
    const struct engine *engine = batch->engine;
    struct extent *extent = &resident->extent;
    for (size_t i = first; i < first + count; i++) {
        const struct append_item *item = &batch->sealed.items[i];
        extent->bytes += item->bytes.len;
        if (!item->moment) continue;
        extent_pass(extent, item->moment, item->seq);
        struct engine_event event = {.run = resident->ids.run,
                                     .state = resident->run,
                                     .last_seq = run_log_last_seq(resident->log),
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

enum code carry_out_effects(const struct batch *batch, const struct decided *decided, struct error *err)
{
    struct engine *engine = batch->engine;
    struct str new_run = decided->made ? decided->made->ids.run : (struct str){0};
    enum code rc = OK;
    for (size_t i = 0; !rc && i < decided->outcome.effect_count; i++) {
        const struct effect *effect = &decided->outcome.effects[i];
        if (effect->kind == EFFECT_DECISION) tell_decision(engine, batch, decided, effect, new_run);
        rc = dispatch(engine, decided->queued.resident, effect, decided->orders ? &decided->orders[i] : NULL, err);
    }
    return rc;
}

static enum code carry_out(struct batch *batch, struct decided *decided, struct error *err)
{
    struct engine *engine = batch->engine;
    struct resident *resident = decided->queued.resident;
    const struct past *past = decided->queued.input.past; // the first moments of the outcome
    struct extent *extent = &resident->extent;
    tell_items(batch, resident, decided->first_item, decided->item_count, past ? past->count : 0);
    for (size_t i = 0; !decided->queued.elsewhere && i < decided->queued.blob_count; i++)
        extent->bytes += decided->queued.blobs[i].bytes.len;
    for (size_t i = 0; i < decided->outcome.blob_count; i++) extent->bytes += decided->outcome.blobs[i].bytes.len;
    enum code rc = carry_out_effects(batch, decided, err);
    if (rc) return rc;
    if (resident->terminal) resident_gone(engine, resident);
    return bound_run(engine, resident, err);
}

// The moments are durable, but not all that they order could be carried out. Nothing may be decided twice, so the run goes
// on as after a crash: what was not handed out is not held, and recovery names it anew before it starts.
enum code owe(struct engine *engine, struct resident *resident, enum code why, struct error *err)
{
    if (why == E_IO) return why;
    INVARIANT(resident->begun);
    os_log(LOG_WARN, "effects put off run=%.*s why=\"%s\"", STR_ARG(resident->ids.run), err->message);
    *err = (struct error){0};
    engine->full_until_mono = engine->now.mono_ms + 200;
    holds_undo(&resident->holds);
    return need_recover(engine, resident, err);
}

enum code batch_carry_out(struct batch *batch, struct error *err)
{
    struct engine *engine = batch->engine;
    enum code rc = OK;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->decided[i].queued.input.kind != INPUT_START || batch->decided[i].refused) continue;
        batch->decided[i].queued.resident->entry->stored = true;
        batch->decided[i].queued.resident->begun = true;
    }
    for (uint32_t i = 0; engine->outboxed > 0 && i < batch->group_count; i++)
        if (batch->groups[i].outbox_count > 0) outbox_logged(batch, &batch->groups[i]);
    for (size_t i = 0; !rc && i < batch->count; i++) {
        struct decided *decided = &batch->decided[i];
        decided->done = true;
        INVARIANT(decided->queued.resident);
        const struct tool_result *result = &decided->queued.result;
        if (result->stored) result->stored(result->memory);
        rc = decided->refused ? refuse_start(engine, &decided->queued, decided->refused, err)
                              : carry_out(batch, decided, err);
        if (rc) rc = owe(engine, decided->queued.resident, rc, err);
    }
    permits_settle(engine);
    struct put *puts = batch->puts;
    batch->puts = NULL;
    puts_settle(puts);
    return rc;
}

enum code batch_run(struct batch *batch, struct error *err)
{
    enum code rc = batch_decide(batch, err);
    if (!rc) rc = batch_store(batch, err);
    if (!rc) rc = batch_carry_out(batch, err);
    return rc;
}

// ---- the turn

#ifdef CAIRN_VERIFY
// H1 of the runs that the turn touched. Of an engine with many that would take longer than what it checks.
static void verify_touched(const struct engine *engine)
{
    enum { RUNS_MAX = 64 };
    for (size_t i = 0; engine->resident_count <= RUNS_MAX && i < engine->table_size; i++)
        for (const struct resident *r = engine->table[i]; r; r = r->next)
            if (r->turn == engine->turn_number && !r->stale) holds_verify(engine, r);
}
#endif

enum code engine_turn(struct engine *engine, struct moment_in_time now, bool *worked, struct error *err)
{
    *worked = false;
    engine->now = now;
    engine->append_ms = 0;
    arena_reset(&engine->turn);
    struct batch batch = {.engine = engine, .together = true, .ceilings = memory_ceilings(), .away = engine_away(engine)};
    enum code rc = gather(engine, err); // also while nothing may be stored, or the mailbox would keep us awake
    if (!rc) rc = prepare_adopted(engine, err);
    if (is_lost(engine, rc)) return lose_all(engine, err);
    bool stored = engine->stalled_mono == 0 && !batch.away;
    if (now.mono_ms >= engine->outbox.next_sweep_mono && stored) outbox_look(engine);
    if (!rc && !batch.away && engine->outboxed > 0 && now.mono_ms >= engine->full_until_mono) rc = outbox_queue(engine, err);
    bool idle = engine->queue.count == 0 && !engine->puts;
    if (!rc && (idle || now.mono_ms < engine->full_until_mono)) return OK;
    size_t most = engine->options.limits.inputs_per_turn_max;
    if (engine->take_max > 0 && engine->take_max < most) most = engine->take_max;
    engine->take_max = 0;
    if (!rc && !take_inputs(&batch, most)) rc = error_nomem(err);
    if (!rc && batch.away && batch.count == 0) rc = error_set(err, E_NOMEM, "the server of the store is away");
    if (rc == E_NOMEM) {
        put_off(engine, err);
        return OK;
    }
    if (rc || (batch.count == 0 && !engine->puts)) return rc;
    batch.puts = batch.away ? NULL : puts_take(engine);
    rc = batch_run(&batch, err);
    if (!rc) engine->stalled_mono = 0;
    rc = batch_settle(&batch, rc, err);
    executors_flush(engine);
#ifdef CAIRN_VERIFY
    if (!rc) verify_touched(engine);
#endif
    *worked = true;
    return rc;
}
