// The process that is tested: opened, driven turn by turn, visited, killed and opened again.
#include "sim/world.h"
#include "trial/disk.h"

#include <stdio.h>

// ---- observers

static void on_event(void *context, const struct engine_event *event)
{
    struct world *w = context;
    world_trace(w, "  %.*s %llu %s %.*s %u.%u %.*s", STR_ARG(event->run), (unsigned long long)event->item->seq,
                moment_name(event->moment->kind), STR_ARG(event->moment->step), event->moment->logical,
                event->moment->engine, STR_ARG(event->moment->fault.message));
    checker_told(&w->checker, event);
}

static void on_decision(void *context, const struct engine_decision *decision)
{
    struct world *w = context;
    world_trace(w, "  %.*s decision %s %s%s %.*s", STR_ARG(decision->run), signal_name(decision->type),
                decision->accepted ? "accepted" : "rejected", decision->duplicate ? " duplicate" : "",
                STR_ARG(decision->error_code));
    checker_decision(&w->checker, decision);
}

// Its notes are new with the run, so they always fit.
static void on_refused(void *context, const struct engine_refusal *refusal)
{
    struct world *w = context;
    const struct error *why = refusal->why;
    world_trace(w, "  %.*s refused: %s", STR_ARG(refusal->run), why->message);
    if (w->zombie_acts && why->code == E_LOCKED) return; // it was taken for dead, and says so
    if (w->rivalled && why->code == E_EXISTS) {          // the other's run is taken up when the other is gone
        w->orphaned = true;
        return;
    }
    checker_fail(&w->checker, "S15", "the start of %.*s was refused: %s", STR_ARG(refusal->run), why->message);
}

static void on_outbox(void *context, const struct engine_outbox *news)
{
    struct world *w = context;
    world_trace(w, "  %.*s outbox %d: %zu", STR_ARG(news->run), (int)news->what, news->count);
    w->result.outboxed += news->what == OUTBOX_WRITTEN;
    checker_outbox(&w->checker, news, w->had_zombie);
}

// ---- crash and restart

void process_stop(struct world *w)
{
    engine_close(w->zombie);
    engine_close(w->engine);
    w->zombie = w->engine = NULL;
    w->tools[0].fake.count = w->tools[1].fake.count = 0;
    w->zombie_tool = NULL;
}

void process_crash(struct world *w, const char *why)
{
    world_trace(w, "crash: %s", why);
    w->died = true;
    process_stop(w);
    world_store_close(w);
    world_power_cut(w);
    w->died = false;
    w->rivalled = w->orphaned = false;
    w->full_left = 0;
    w->result.crashes++;
}

enum { SEGMENT_EVENTS = 8 }; // of runs in the temporal profile: most of them come to a second one

static bool knows_all(void *context, struct str function)
{
    (void)context, (void)function;
    return true;
}

static enum code open_with(struct world *w, struct sim_tool *tool, bool only_signals, struct engine **out,
                           struct error *err)
{
    struct engine_options options = {
        .store = w->store,
        .contract = w->contract,
        .entropy = &w->entropy,
        .tools = &tool->fake.base,
        .host = {.tools = &tool->fake.base, .knows = knows_all},
        .tasks = {.tools = &tool->fake.base, .knows = knows_all},
        .limits = engine_limits_default,
        .only_signals = only_signals,
        .outbox_disk = sim_disk_ops(w->outbox),
        .observer = {.context = w,
                     .event = on_event,
                     .decision = on_decision,
                     .refused = on_refused,
                     .outbox = on_outbox}};
    options.limits.inputs_per_turn_max = w->batch_max;
    options.limits.inline_max = w->inline_max;
    options.limits.write_budget_ms = w->budget_ms;
    options.limits.starts_fail_open = w->fail_open;
    options.limits.segment_events_max = w->checker.segment_events = SEGMENT_EVENTS;
    return engine_open(&options, out, err);
}

bool process_open(struct world *w, bool only_signals)
{
    struct sim_tool *tool = w->zombie_tool == &w->tools[0] ? &w->tools[1] : &w->tools[0];
    struct error err = {0};
    if (open_with(w, tool, only_signals, &w->engine, &err)) {
        checker_fail(&w->checker, "ENGINE", "engine_open: %s", err.message);
        return false;
    }
    w->tool = tool;
    tool->fake.engine = w->engine;
    tool->fenced = false;
    w->idle = w->polled = false;
    return true;
}

void process_adopt(struct world *w)
{
    struct arena arena;
    arena_init(&arena, 4096, (size_t)16 << 20);
    struct run_filter filter = {.unfinished = true, .limit = 1000};
    struct run_heads heads = {0};
    struct error err = {0};
    enum code rc = store_list(w->store, &filter, &arena, &heads, &err);
    bool oldest_first = heads.count > 1 && choice_pick(w->choice, STREAM_WORLD, 2) == 1;
    for (size_t i = 0; !rc && i < heads.count; i++) {
        const struct run_head *head = &heads.items[oldest_first ? heads.count - 1 - i : i];
        rc = engine_adopt(w->engine, head->ids.tenant, head->ids.run, &err);
        world_trace(w, "adopt %.*s: %s", STR_ARG(head->ids.run), code_name(rc));
    }
    if (rc == E_IO)
        w->died = true;
    else if (rc)
        checker_fail(&w->checker, "I17", "a run cannot be taken up again: %s", err.message);
    arena_release(&arena);
}

// Whoever wanted a run and got no answer asks again, under the same id.
static void start_missing(struct world *w)
{
    for (uint32_t i = 0; i < w->root_count && !w->died; i++) {
        char id[16], out[129];
        snprintf(id, sizeof(id), "r%u", i + 1);
        const struct model_run *run = checker_run(&w->checker, str_from(id));
        if (run && run->events.count > 0) continue;
        struct note_put note = {.space = STR("start"), .key = str_from(id), .value = STR("wanted"), .expect = 0};
        struct start_request request = {.program = workload_program(w->root_workload[i]),
                                        .run = str_from(id),
                                        .triggered_by = STR("sim"),
                                        .notes = &note,
                                        .note_count = 1};
        // A node workflow in the queue has no event yet, and the checker counts events.
        uint32_t how = choice_pick(w->choice, STREAM_CLIENT, 6);
        if (how == 4 && request.program->kind == DOCUMENT_PLAN) request.mode = MODE_QUEUE;
        if (how == 5) request.mode = MODE_DELAY;
        request.not_before_ms = w->wall_ms + 1500;
        if (choice_pick(w->choice, STREAM_CLIENT, 4) == 3) {
            request.target_adapter = STR("temporal");
            request.cancel_on_pause = WISH_YES;
        }
        request.drain_timeout_ms = 1000;
        struct error err = {0};
        enum code rc = engine_start(w->engine, &request, out, &err);
        world_trace(w, "start %s %s: %s", id, workload_at(w->root_workload[i])->name, code_name(rc));
        if (rc == E_IO)
            w->died = true;
        else if (rc)
            checker_fail(&w->checker, "I24", "engine_start: %s", err.message);
    }
}

// Another process starts the same runs after this one has found their ids free and before it stores anything; then it goes away.
static void rival(struct world *w)
{
    struct sim_tool *tool = w->tool == &w->tools[0] ? &w->tools[1] : &w->tools[0];
    struct moment_in_time now = {.wall_ms = w->wall_ms, .mono_ms = w->mono_ms};
    struct engine *engine = NULL;
    struct error err = {0};
    bool worked;
    world_trace(w, "rivalled");
    w->rivalled = true;
    enum code rc = open_with(w, tool, false, &engine, &err);
    if (!rc) tool->fake.engine = engine;
    for (uint32_t i = 0; !rc && i < w->root_count; i++) {
        char id[16], out[129];
        snprintf(id, sizeof(id), "r%u", i + 1);
        struct start_request request = {
            .program = workload_program(w->root_workload[i]), .run = str_from(id), .triggered_by = STR("sim")};
        rc = engine_start(engine, &request, out, &err);
        if (rc == E_EXISTS) rc = OK; // stored before
    }
    if (!rc) rc = engine_turn(engine, now, &worked, &err);
    if (rc && rc != E_IO) checker_fail(&w->checker, "I24", "another process: %s", err.message);
    engine_close(engine);
    tool->fake.count = 0;
}

// ---- notes: one counts results, each time with a version that must fit; now and then one comes that does not

struct sim_put {
    struct world *w;
    uint32_t number;
    bool fits;
};

static void on_put(void *context, enum code rc, const struct error *why)
{
    const struct sim_put *put = context;
    struct world *w = put->w;
    if (rc == E_CANCELLED || rc == E_IO) return; // the process died
    world_trace(w, "  note %u: %s", put->number, code_name(rc));
    if (put->fits != (rc == OK))
        checker_fail(&w->checker, "S15", "note %u: %s", put->number, why ? why->message : "it should not have fitted");
    const struct model_note *note = checker_note(&w->checker, STR("sim"), STR("results"));
    int64_t stored = 0;
    if (rc == OK && (!note || !str_int64(note->value, &stored) || stored < put->number))
        checker_fail(&w->checker, "E2", "note %u was acknowledged before it was durable", put->number);
}

void process_note(struct world *w, bool fits)
{
    struct sim_put *put = ARENA_NEW(&w->arena, struct sim_put);
    INVARIANT(put);
    *put = (struct sim_put){w, ++w->puts, fits};
    char value[16];
    snprintf(value, sizeof(value), "%u", put->number);
    struct note_put note = {.space = STR("sim"),
                            .key = STR("results"),
                            .value = str_from(value),
                            .expect = fits ? NOTE_ANY : UINT64_MAX - 1};
    struct error err = {0};
    enum code rc = engine_put(w->engine, &note, 1, on_put, put, &err);
    if (rc) checker_fail(&w->checker, "S15", "engine_put: %s", err.message);
}

// The start of a run that is another's waits to be refused: what it is here says nothing about the log.
static bool wants_taken(const struct world *w)
{
    bool any = false;
    for (uint32_t i = 0; w->rivalled && i < w->root_count; i++) {
        char id[16];
        snprintf(id, sizeof(id), "r%u", i + 1);
        any = any || engine_pending(w->engine, STR("default"), str_from(id));
    }
    return any;
}

void process_turn(struct world *w)
{
    struct moment_in_time now = {.wall_ms = w->wall_ms, .mono_ms = w->mono_ms};
    struct error err = {0};
    bool worked = false;
    enum code rc = engine_turn(w->engine, now, &worked, &err);
    w->result.turns++;
    w->idle = !worked;
    if (rc == E_IO || w->died) {
        if (rc != E_IO) checker_fail(&w->checker, "I8", "the store failed and the engine went on: %s", code_name(rc));
        process_crash(w, "in a turn");
        return;
    }
    if (rc) checker_fail(&w->checker, "ENGINE", "engine_turn: %s: %s", code_name(rc), err.message);
    if (!wants_taken(w)) checker_live(&w->checker, w->engine);
}

// Somebody comes to send signals and not to drive anything; then goes, or stays and drives after all. The process may die
// meanwhile.
static void visit(struct world *w, bool stays)
{
    world_trace(w, "visited");
    w->checker.visited = true;
    for (uint32_t i = 0; w->engine && !w->died && i < 3; i++) {
        client_visit(w, !stays);
        if (!w->died && choice_pick(w->choice, STREAM_CLIENT, 2) == 1) process_turn(w);
    }
    while (w->engine && !w->died && !w->checker.failed && !w->idle) process_turn(w);
    w->checker.visited = false;
    if (w->died) process_crash(w, "while a visitor was there");
    if (!w->engine || stays) return;
    engine_close(w->engine);
    w->engine = NULL;
    process_open(w, false);
}

void process_restart(struct world *w)
{
    w->mono_ms += 20;
    w->wall_ms += 20;
    if (!world_store_open(w)) {
        if (!w->checker.failed) process_crash(w, "while the store was opened");
        return;
    }
    checker_reopened(&w->checker, w->store);
    bool visitor = !w->options.calm && w->checker.run_count > 0 && choice_pick(w->choice, STREAM_CLIENT, 4) == 3;
    bool stays = visitor && choice_pick(w->choice, STREAM_CLIENT, 2) == 1;
    if (w->checker.failed || !process_open(w, visitor && !stays)) return;
    if (visitor) visit(w, stays);
    if (!w->engine || w->checker.failed) return;
    process_adopt(w);
    if (!w->died) start_missing(w);
    bool alone = w->options.calm || w->options.store == SIM_SHARDS || w->zombie || w->healing;
    if (!w->died && !alone && choice_pick(w->choice, STREAM_CLIENT, 6) == 5) rival(w);
    if (w->died) process_crash(w, "while runs were taken up");
}
