// One batch of a turn. Private to turn.c, gather.c and settle.c. owner: engine thread.
#ifndef CAIRN_ENGINE_BATCH_H
#define CAIRN_ENGINE_BATCH_H

#include "engine/inside.h"

struct decided { // one input and what it led to
    struct queued queued;
    struct outcome outcome;
    struct order *orders; // what the effects that start something say; NULL: none does
    size_t first_item, item_count;
    uint32_t group;
    struct resident *made;       // RETRY_RUN: the new run, whose start is stored in the same batch
    uint64_t spent;              // steps of templates that it took
    bool done;                   // settled, one way or the other: never to be tried again
    const struct error *refused; // START: its notes do not fit; nothing of it is in the batch
};

// The inputs of one run. They are stepped in the order of the queue, among those of other runs.
struct group {
    struct resident *resident;
    uint32_t count;   // those that are not done
    uint32_t summary; // its place in the summaries + 1; 0: nothing of the run is stored
    bool was_idle;    // before the first of them
    struct run_hold *held; // likewise: what was outside
    uint32_t held_count;
    bool starts;      // INPUT_START is one of them
    size_t outbox_first, outbox_count; // items that its outbox has given, before all others; 0: none
};

struct batch {
    struct engine *engine;
    struct decided *decided; // with room for one more run per input
    size_t count;
    size_t taken; // of the queue; the rest was made on the way
    struct group *groups;
    uint32_t group_count;
    size_t item_capacity; // of those of `sealed`
    struct store_batch sealed; // what is appended: items, summaries, blobs, ids of the inbox
    struct append_summary *summaries;
    struct append_blob *blobs;
    int64_t *inbox;
    struct note_draft notes;
    struct put *puts; // that ride in this batch
    bool together;    // of all runs; else of one of a batch that could not be stored
    size_t at;        // the input that is decided now; `taken`: all are
    uint64_t ceilings; // memory_ceilings before it
    bool waits;       // for a result that is elsewhere and cannot be had: nothing was stored
    bool ahead;       // its append failed, and its runs have not been taken back
    bool away;        // the server of the store is: nothing of it can be stored, and starts may go on (failopen.c)
};

// fair.c: inputs from this one on are left for the next turn, where tenants take turns
enum code leave_rest(struct batch *batch, size_t from, struct error *err) MUST_CHECK;
// turn.c
enum code batch_decide(struct batch *batch, struct error *err) MUST_CHECK;    // inputs to moments and effects, in memory
enum code batch_store(struct batch *batch, struct error *err) MUST_CHECK;     // THE append
enum code batch_carry_out(struct batch *batch, struct error *err) MUST_CHECK; // effects and answers, once it is durable
enum code batch_run(struct batch *batch, struct error *err) MUST_CHECK;       // the three of them
// Nothing of the batch that is not done was stored: each of its runs is folded again, once, and runs made in it are gone.
enum code batch_take_back(struct batch *batch, struct error *err) MUST_CHECK;

// turn.c, for failopen.c
struct append_item *item_add(struct batch *batch, struct resident *resident) MUST_CHECK; // NULL: out of memory
// The observer learns of items that are stored, and the run of their size. `old`: so many of the first happened in another run.
void tell_items(const struct batch *batch, struct resident *resident, size_t first, size_t count, uint32_t old);
enum code carry_out_effects(const struct batch *batch, const struct decided *decided, struct error *err) MUST_CHECK;
enum code owe(struct engine *engine, struct resident *resident, enum code why, struct error *err) MUST_CHECK;

// budget.c: how long the append of the batch may wait for others; 0 = there is no budget
int64_t budget_left(const struct batch *batch);
// Nothing but a start may come of it, which has waited too long, and starts may fail open.
bool may_go_on(const struct engine *engine, const struct queued *queued);

// failopen.c. Runs of a batch that was not stored whose starts may go on without the store, and have waited long enough: they are in
// the outbox, their inputs are done. Nothing happens where there are none.
enum code batch_fail_open(struct batch *batch, struct error *err) MUST_CHECK;
enum code outbox_collect(struct batch *batch, struct group *group, struct error *err) MUST_CHECK; // before all else of the run
void outbox_logged(struct batch *batch, struct group *group);                                     // they are durable

// gather.c
enum code gather(struct engine *engine, struct error *err) MUST_CHECK; // results and timers into the queue
enum code prepare_adopted(struct engine *engine, struct error *err) MUST_CHECK;
bool take_inputs(struct batch *batch, size_t max) MUST_CHECK; // out of the queue; false: out of memory

// settle.c
enum code batch_settle(struct batch *batch, enum code rc, struct error *err) MUST_CHECK; // rc: what came of batch_run
enum code refuse_start(struct engine *engine, const struct queued *queued, const struct error *why,
                       struct error *err) MUST_CHECK;
bool is_lost(const struct engine *engine, enum code rc); // this engine was taken for dead (S17): nothing else is stored either
void put_off(struct engine *engine, struct error *err);  // nothing was stored and nothing was done: there may be room later

#endif
