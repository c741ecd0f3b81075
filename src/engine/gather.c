// What a turn is made of: results and timers that have come, signals that runs without an owner were sent, and the inputs of the queue.
#include "engine/batch.h"
#include "engine/permits.h"

#include <string.h>

enum code gather(struct engine *engine, struct error *err)
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
            rc = input_from_result(engine, &m->result, m->files, err);
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
    enum code rc = timers_due(engine, err);
    if (!rc) rc = asides_due(engine, err);
    return rc ? rc : permits_turn(engine, err);
}

// What was asked of a run while nobody owned it is decided before the run goes on (ADR 0013).
enum code prepare_adopted(struct engine *engine, struct error *err)
{
    if (engine->adopted == 0) return OK;
    if (engine_away(engine)) return error_set(err, E_NOMEM, "the server of the store is away, runs that were taken up wait for it");
    size_t before = engine->queue.count;
    enum code rc = poll_inbox(engine, err);
    if (!rc) rc = queue_last_first(engine, engine->queue.count - before, err);
    if (rc == E_FULL || rc == E_LOCKED || rc == E_AWAY) rc = E_NOMEM; // tried again in a while, and nothing goes on before
    if (!rc) sweep_orphans(engine);
    return rc;
}

// While the server of the store is away, what may go on without it is taken: starts that are over their budget (failopen.c), of runs whose
// state is known and of which nothing else waits before them. Results that have waited too long become failures where they are.
static bool stays(struct engine *engine, struct queued *queued)
{
    struct resident *resident = queued->resident;
    bool known = resident->begun && !resident->stale && !resident->idle && !resident->terminal;
    if (resident->gone || (known && resident->passed != engine->passes && may_go_on(engine, queued))) return false;
    resident->passed = engine->passes;
    check_budget(engine, queued);
    return true;
}

// Inputs of runs that are gone are dropped.
bool take_inputs(struct batch *batch, size_t max)
{
    struct engine *engine = batch->engine;
    struct queue *q = &engine->queue;
    size_t count = q->count < max || batch->away ? q->count : max;
    engine->passes++;
    batch->decided = ARENA_ARRAY(&batch->engine->turn, 2 * count + 1, struct decided);
    if (!batch->decided) return false;
    for (size_t i = 0; i < count; i++) {
        struct queued *queued = &q->items[q->head];
        INVARIANT(queued->resident);
        q->head = (q->head + 1) & (q->capacity - 1);
        if (queued->since_mono == 0) queued->since_mono = engine->now.mono_ms; // it came before the first turn
        if (batch->away && (batch->count == max || stays(engine, queued))) { // all of the queue is walked, so they keep their order
            struct queued *place = &q->items[(q->head + q->count - 1) & (q->capacity - 1)];
            struct queued kept = *queued;
            memset(queued, 0, sizeof(*queued));
            *place = kept;
            continue;
        }
        q->count--;
        if (is_recovery(queued)) queued->resident->needs_recover = false;
        if (queued->resident->gone)
            queued_release(queued);
        else if (!queued->wanted || !aside_put(engine, queued))
            batch->decided[batch->count++].queued = *queued;
        memset(queued, 0, sizeof(*queued));
    }
    batch->taken = batch->count;
    return true;
}
