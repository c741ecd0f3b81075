#include "sim/world.h"

#include "trial/disk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACTS_MAX 4000
#define START_WALL_MS 1800000000000

void world_trace(struct world *w, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    for (int i = 0; i < len && i < (int)sizeof(line) - 1; i++) w->hash = (w->hash ^ (uint8_t)line[i]) * 1099511628211u;
    if (w->options.trace) fprintf(stderr, "%8lld %s\n", (long long)w->mono_ms, line);
}

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
static void on_refused(void *context, struct str tenant, struct str run, const struct error *why)
{
    (void)tenant;
    struct world *w = context;
    world_trace(w, "  %.*s refused: %s", STR_ARG(run), why->message);
    if (w->zombie_acts && why->code == E_LOCKED) return; // it was taken for dead, and says so
    if (w->rivalled && why->code == E_EXISTS) {          // the other's run is taken up when the other is gone
        w->orphaned = true;
        return;
    }
    checker_fail(&w->checker, "S15", "the start of %.*s was refused: %s", STR_ARG(run), why->message);
}

// Looking at the platter is dear: now and then is enough, since a crash looks at it, too.
static void on_start(void *context, const struct tool_request *request)
{
    struct world *w = context;
    uint64_t every = w->options.store == SIM_SQLITE ? 32 : 8;
    if ((w->tools[0].fake.start_count + w->tools[1].fake.start_count) % every == 1) world_check_platter(w, request);
}

static void fill(struct entropy *entropy, void *bytes, size_t size)
{
    struct world *w = CONTAINER_OF(entropy, struct world, entropy);
    choice_bytes(w->choice, bytes, size);
}

// ---- crash and restart

static void stop_engines(struct world *w)
{
    engine_close(w->zombie);
    engine_close(w->engine);
    w->zombie = w->engine = NULL;
    w->tools[0].fake.count = w->tools[1].fake.count = 0;
    w->zombie_tool = NULL;
}

static void crash(struct world *w, const char *why)
{
    world_trace(w, "crash: %s", why);
    w->died = true;
    stop_engines(w);
    world_store_close(w);
    world_power_cut(w);
    w->died = false;
    w->rivalled = w->orphaned = false;
    w->full_left = 0;
    w->result.crashes++;
}

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
        .observer = {.context = w, .event = on_event, .decision = on_decision, .refused = on_refused}};
    options.limits.inputs_per_turn_max = w->batch_max;
    options.limits.inline_max = w->inline_max;
    return engine_open(&options, out, err);
}

static bool open_engine(struct world *w, bool only_signals)
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

static void adopt_all(struct world *w)
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
            request.cancel_on_pause = true;
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

static void put_note(struct world *w, bool fits)
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

static void turn(struct world *w)
{
    struct moment_in_time now = {.wall_ms = w->wall_ms, .mono_ms = w->mono_ms};
    struct error err = {0};
    bool worked = false;
    enum code rc = engine_turn(w->engine, now, &worked, &err);
    w->result.turns++;
    w->idle = !worked;
    if (rc == E_IO || w->died) {
        if (rc != E_IO) checker_fail(&w->checker, "I8", "the store failed and the engine went on: %s", code_name(rc));
        crash(w, "in a turn");
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
        if (!w->died && choice_pick(w->choice, STREAM_CLIENT, 2) == 1) turn(w);
    }
    while (w->engine && !w->died && !w->checker.failed && !w->idle) turn(w);
    w->checker.visited = false;
    if (w->died) crash(w, "while a visitor was there");
    if (!w->engine || stays) return;
    engine_close(w->engine);
    w->engine = NULL;
    open_engine(w, false);
}

static void restart(struct world *w)
{
    w->mono_ms += 20;
    w->wall_ms += 20;
    if (!world_store_open(w)) {
        if (!w->checker.failed) crash(w, "while the store was opened");
        return;
    }
    checker_reopened(&w->checker, w->store);
    bool visitor = !w->options.calm && w->checker.run_count > 0 && choice_pick(w->choice, STREAM_CLIENT, 4) == 3;
    bool stays = visitor && choice_pick(w->choice, STREAM_CLIENT, 2) == 1;
    if (w->checker.failed || !open_engine(w, visitor && !stays)) return;
    if (visitor) visit(w, stays);
    if (!w->engine || w->checker.failed) return;
    adopt_all(w);
    if (!w->died) start_missing(w);
    bool alone = w->options.calm || w->options.store == SIM_SHARDS || w->zombie || w->healing;
    if (!w->died && !alone && choice_pick(w->choice, STREAM_CLIENT, 6) == 5) rival(w);
    if (w->died) crash(w, "while runs were taken up");
}

// ---- acts

static void pass(struct world *w, int64_t ms)
{
    w->mono_ms += ms;
    w->wall_ms += ms;
    w->idle = w->polled = false;
}

static void deliver(struct world *w, struct sim_tool *tool)
{
    uint32_t ready = 0;
    for (size_t i = 0; i < tool->fake.count; i++) ready += tool->fake.answers[i].due_ms <= w->mono_ms;
    if (ready == 0) return;
    uint32_t pick = choice_pick(w->choice, STREAM_WORLD, w->options.calm ? 1 : ready);
    for (size_t i = 0; i < tool->fake.count; i++) {
        if (tool->fake.answers[i].due_ms > w->mono_ms || pick-- > 0) continue;
        fake_deliver(&tool->fake, i);
        put_note(w, true);
        if (w->puts % 5 == 0) put_note(w, false);
        break;
    }
    w->idle = w->polled = false;
}

static void poll(struct world *w)
{
    struct error err = {0};
    enum code rc = engine_poll(w->engine, &err);
    w->polled = true;
    w->idle = false;
    if (rc == E_IO)
        crash(w, "while the inbox was read");
    else if (rc && rc != E_FULL)
        checker_fail(&w->checker, "I23", "engine_poll: %s", err.message);
}

static bool step_has_child(const struct program *program, uint32_t step)
{
    bool found = program->steps[step].kind == STEP_SUBRUN;
    for (uint32_t i = 0; program->net && i < program->net->steps[step].task_count; i++)
        found = found || program->net->steps[step].tasks[i].child;
    return found;
}

static bool has_children(const struct world *w)
{
    for (size_t i = 0; i < w->checker.run_count; i++)
        for (uint32_t k = 0; k < w->checker.runs[i]->program->step_count; k++)
            if (step_has_child(w->checker.runs[i]->program, k)) return true;
    return false;
}

static bool roots_stored(const struct world *w)
{
    for (uint32_t i = 0; i < w->root_count; i++) {
        char id[16];
        snprintf(id, sizeof(id), "r%u", i + 1);
        const struct model_run *run = checker_run(&w->checker, str_from(id));
        if (!run || run->events.count == 0) return false;
    }
    return true;
}

// Another engine takes all runs; the first one does not know and goes on for a while.
static void take_over(struct world *w)
{
    bool shards = w->options.store == SIM_SHARDS; // there who lost its runs makes none either
    if (w->zombie || !roots_stored(w) || (!shards && has_children(w))) return;
    if (!world_store_second(w)) {
        if (w->died) crash(w, "while another process opened the store");
        return;
    }
    world_trace(w, "taken over");
    w->zombie = w->engine;
    w->zombie_tool = w->tool;
    w->zombie_tool->fenced = true;
    w->zombie_left = 1 + choice_pick(w->choice, STREAM_WORLD, 6);
    if (open_engine(w, false)) adopt_all(w);
    if (w->died) crash(w, "while runs were taken over");
}

// The engine that was taken for dead has noticed, joins again and takes everything back: now the other one does not know.
static void come_back(struct world *w)
{
    struct engine *engine = w->zombie;
    struct sim_tool *tool = w->zombie_tool;
    struct store *store = w->zombie_store;
    w->zombie_left = 1;
    if (!store_fenced(store)) return; // it has had nothing to say yet
    world_trace(w, "the other engine comes back");
    engine_let_go(engine, UINT64_MAX); // as a service does, which may have heard of it before its engine did
    w->zombie = w->engine;
    w->zombie_tool = w->tool;
    w->zombie_store = w->store;
    w->engine = engine;
    w->tool = tool;
    w->store = store;
    w->zombie_tool->fenced = true;
    w->tool->fenced = false;
    w->zombie_left = 1 + choice_pick(w->choice, STREAM_WORLD, 6);
    w->idle = w->polled = false;
    if (world_store_take(w, w->store)) adopt_all(w);
    if (w->died) crash(w, "while runs were taken back");
}

static void zombie_turn(struct world *w)
{
    world_trace(w, "the other engine turns");
    w->zombie_acts = true;
    if (w->zombie_tool->fake.count > 0)
        fake_deliver(&w->zombie_tool->fake, choice_pick(w->choice, STREAM_WORLD, (uint32_t)w->zombie_tool->fake.count));
    struct moment_in_time now = {.wall_ms = w->wall_ms, .mono_ms = w->mono_ms};
    struct error err = {0};
    bool worked;
    enum code rc = engine_turn(w->zombie, now, &worked, &err);
    w->zombie_acts = false;
    if (rc == E_IO && w->disk && sim_disk_stopped(w->disk)) {
        crash(w, "while the other engine turned");
        return;
    }
    if (rc) checker_fail(&w->checker, "S6", "the engine that lost its runs: %s", err.message);
    if (--w->zombie_left > 0 && !w->healing) return;
    if (w->options.store == SIM_SHARDS && !w->healing && choice_pick(w->choice, STREAM_WORLD, 2) == 1) {
        come_back(w);
        return;
    }
    engine_close(w->zombie);
    w->zombie = NULL;
    world_store_zombie_gone(w);
    w->zombie_tool->fake.count = 0;
    w->zombie_tool = NULL;
    adopt_all(w); // what it made meanwhile has no owner now
    w->idle = false;
    if (w->died) crash(w, "while its runs were taken up");
}

static void disturb(struct world *w)
{
    static const int64_t jumps[] = {3600000, -3600000, 86400000, -86400000, 1500, -1500};
    w->disturbs_left--;
    w->idle = w->polled = false;
    switch (choice_pick(w->choice, STREAM_WORLD, 8)) {
    case 5:
        if (w->crashes_left == 0) return;
        w->crashes_left--;
        crash(w, "between two acts");
        return;
    case 4:
        w->wall_ms += jumps[choice_pick(w->choice, STREAM_WORLD, ARRAY_COUNT(jumps))];
        world_trace(w, "clock set");
        return;
    case 3:
        pass(w, 1 + 900 * (int64_t)choice_pick(w->choice, STREAM_WORLD, 50));
        world_trace(w, "stall");
        return;
    case 6:
        take_over(w);
        return;
    case 7:
        poll(w);
        return;
    default:
        client_disturb(w);
        if (w->died) crash(w, "while a signal was taken");
        return;
    }
}

// No space for minutes. What waits for it is kept, and does not grow: what was there, what comes meanwhile, and a recovery of each run.
static void no_space(struct world *w)
{
    enum { TURNS = 1000, TIMERS = 16 };
    struct engine_activity before = engine_activity(w->engine);
    size_t most = before.queued + TIMERS * (before.resident + 1);
    world_trace(w, "no space");
    w->full_at = 0;
    w->full_left = UINT32_MAX;
    for (uint32_t i = 0; i < TURNS && w->engine && !w->checker.failed; i++) {
        most += fake_due(&w->tool->fake) <= w->mono_ms;
        deliver(w, w->tool);
        turn(w);
        pass(w, 200);
        if (w->engine && engine_activity(w->engine).queued > most)
            checker_fail(&w->checker, "I9", "%zu inputs wait for space after %u turns",
                         engine_activity(w->engine).queued, i + 1);
    }
    w->full_left = 0;
}

static bool settled(const struct world *w)
{
    if (!roots_stored(w)) return false;
    for (size_t i = 0; i < w->checker.run_count; i++)
        if (w->checker.runs[i]->events.count > 0 && !w->checker.runs[i]->terminal) return false;
    return true;
}

// The next thing that happens by itself. False when nothing does any more.
static bool natural(struct world *w)
{
    if (w->zombie && (w->healing || choice_pick(w->choice, STREAM_WORLD, 2) == 1)) {
        zombie_turn(w);
        return true;
    }
    if (!w->idle) {
        turn(w);
        return true;
    }
    int64_t due = fake_due(&w->tool->fake), deadline = engine_deadline(w->engine);
    if (!w->polled) {
        poll(w);
        return true;
    }
    if (due < INT64_MAX && due <= deadline) {
        if (due > w->mono_ms) pass(w, due - w->mono_ms);
        deliver(w, w->tool);
        while (!w->options.calm && fake_due(&w->tool->fake) <= w->mono_ms &&
               choice_pick(w->choice, STREAM_WORLD, 2) == 1)
            deliver(w, w->tool);
        return true;
    }
    if (deadline < INT64_MAX) {
        pass(w, deadline > w->mono_ms ? deadline - w->mono_ms : 1);
        return true;
    }
    if (w->zombie) { // what it has made waits for it
        zombie_turn(w);
        return true;
    }
    if (w->fork_idle || w->orphaned) {
        w->fork_idle = w->orphaned = false;
        adopt_all(w);
    } else if (settled(w)) {
        if (w->forks_left == 0 || !client_fork(w, false)) return false;
        w->forks_left--;
    } else if (!client_answer(w)) {
        return false;
    }
    if (w->died) crash(w, "while an answer was taken");
    w->idle = w->polled = false;
    return true;
}

static void act(struct world *w, bool *more)
{
    w->result.acts++;
    if (w->disturbs_left == 0 && w->crashes_left == 0 && !w->options.calm && !w->healing) {
        w->healing = true;
        w->tools[0].fault_rate = w->tools[1].fault_rate = 0;
        world_trace(w, "healed");
    }
    if (!w->engine)
        restart(w);
    else if (w->crash_at > 0 && w->result.acts >= w->crash_at) {
        w->crash_at = 0;
        crash(w, "between two acts");
    } else if (w->full_at > 0 && w->result.acts >= w->full_at)
        no_space(w);
    else if (!w->healing && w->disturbs_left > 0 && choice_once_in(w->choice, STREAM_WORLD, w->disturb_rate))
        disturb(w);
    else
        *more = natural(w);
}

// ---- the world

static void draw_options(struct world *w)
{
    static const uint32_t batch[] = {4096, 1, 2, 3}, rates[] = {40, 20, 10, 5}, disturb_rates[] = {0, 16, 8, 4},
                          fault_rates[] = {0, 12, 5, 2};
    struct choice *choice = w->choice;
    bool calm = w->options.calm;
    w->root_count = calm ? 1 : 1 + choice_pick(choice, STREAM_OPTIONS, WORLD_RUNS_MAX);
    for (uint32_t i = 0; i < w->root_count; i++)
        w->root_workload[i] = w->options.workload < WORKLOAD_COUNT
                                  ? w->options.workload
                                  : (enum workload_id)choice_pick(choice, STREAM_OPTIONS, WORKLOAD_COUNT);
    w->batch_max = calm ? 4096 : batch[choice_pick(choice, STREAM_OPTIONS, ARRAY_COUNT(batch))];
    w->inline_max = w->options.inline_max                                  ? w->options.inline_max
                    : !calm && choice_pick(choice, STREAM_OPTIONS, 4) == 3 ? 1
                                                                           : 65536;
    w->commit_fault_rate = calm ? 1 : rates[choice_pick(choice, STREAM_OPTIONS, ARRAY_COUNT(rates))];
    w->disturb_rate = calm ? 0 : disturb_rates[choice_pick(choice, STREAM_OPTIONS, ARRAY_COUNT(disturb_rates))];
    static const uint64_t journals[] = {256 << 10, 32 << 10, 64 << 10, 1 << 20};
    w->journal_size = journals[calm ? 0 : choice_pick(choice, STREAM_OPTIONS, ARRAY_COUNT(journals))];
    bool net = workload_program(w->root_workload[0])->net != NULL; // many commits, and failures of their own
    bool twice = !net && (w->options.store == SIM_MEMORY || w->options.store == SIM_SHARDS);
    w->crashes_left = 1 + (calm ? (uint32_t)twice : choice_pick(choice, STREAM_OPTIONS, 5));
    w->crash_at = calm ? 0 : 1 + choice_pick(choice, STREAM_OPTIONS, 48);
    w->full_at = !calm && choice_pick(choice, STREAM_OPTIONS, 24) == 23 ? 1 + choice_pick(choice, STREAM_OPTIONS, 48) : 0;
    w->disturbs_left = calm ? 0 : choice_pick(choice, STREAM_OPTIONS, 16);
    w->forks_left = !calm && choice_pick(choice, STREAM_FORK, 4) == 3; // each makes the world longer by a run
    uint32_t faults = calm ? 1 : fault_rates[choice_pick(choice, STREAM_OPTIONS, ARRAY_COUNT(fault_rates))];
    for (int i = 0; i < 2; i++) {
        w->tools[i].fault_rate = faults;
        bool none = w->options.store == SIM_SQLITE || net; // its worlds take longest
        w->tools[i].faults_left = !calm ? 1000 : none ? 0 : 1;
    }
    world_trace(w,
                "world: %u runs, first %s, batch %u, commit faults 1/%u, disturbed 1/%u, crashes %u, tool faults 1/%u",
                w->root_count, workload_at(w->root_workload[0])->name, w->batch_max, w->commit_fault_rate,
                w->disturb_rate, w->crashes_left, faults);
}

static bool any_child_swayed(const struct world *w, const struct model_run *run)
{
    bool any = run->original_run.len > 0;
    for (size_t i = 0; i < w->checker.run_count; i++)
        any = any || (str_eq(w->checker.runs[i]->parent_run, run->ids.run) && w->checker.runs[i]->swayed);
    return any;
}

// The end of a workload without crashes and without anything else; NULL: it has no one end.
static const char *calm_end(enum workload_id id, uint32_t inline_max)
{
    static char *all[2][WORKLOAD_COUNT];
    char **ends = all[inline_max == 1]; // templates see references in place of what is kept beside the log
    if (ends[id] || !workload_at(id)->steady) return ends[id];
    struct choice choice;
    choice_init(&choice);
    choice_replay(&choice, 1, NULL, 0);
    struct world_options options = {
        .store = SIM_MEMORY, .workload = id, .calm = true, .inline_max = inline_max, .end = &ends[id]};
    struct world_result result;
    world_run(&choice, &options, &result);
    choice_release(&choice);
    INVARIANT(ends[id] && !result.failed);
    return ends[id];
}

static void check_ends(struct world *w)
{
    for (size_t i = 0; i < w->checker.run_count; i++) {
        const struct model_run *run = w->checker.runs[i];
        enum workload_id id = workload_of(run->program);
        if (!run->net || id == WORKLOAD_COUNT || !run->terminal) continue;
        struct str end = checker_net_end(&w->checker, run, &w->arena);
        if (w->options.end) {
            *w->options.end = strndup(end.ptr, end.len);
            continue;
        }
        const char *expected = run->swayed || any_child_swayed(w, run) ? NULL : calm_end(id, w->inline_max);
        if (expected) checker_net_same(&w->checker, run, str_from(expected));
    }
}

// What is still in the inbox is answered, then everything must agree with the model one last time.
static void finish(struct world *w)
{
    for (int i = 0; i < 8 && !w->checker.failed; i++) {
        while (!w->engine && !w->checker.failed) restart(w); // it may die even now
        if (w->engine) poll(w);
        if (w->engine) turn(w);
    }
    if (w->checker.failed) return;
    client_check(w);
    check_ends(w);
    if (w->store) checker_end(&w->checker, w->store, true);
}

static const struct contract *shared_contract(void)
{
    static struct arena arena;
    static const struct contract *contract;
    if (contract) return contract;
    arena_init(&arena, 64 * 1024, (size_t)256 << 20);
    struct error err = {0};
    enum code rc = contract_open(&arena, &contract, &err);
    INVARIANT(rc == OK);
    return contract;
}

void world_run(struct choice *choice, const struct world_options *options, struct world_result *result)
{
    struct world *w = calloc(1, sizeof(*w));
    INVARIANT(w);
    w->options = *options;
    w->choice = choice;
    w->entropy.fill = fill;
    w->contract = shared_contract();
    w->mono_ms = 1000;
    w->wall_ms = START_WALL_MS;
    w->hash = 14695981039346656037u;
    arena_init(&w->arena, 4096, (size_t)64 << 20);
    checker_init(&w->checker);
    for (int i = 0; i < 2; i++) {
        sim_tool_init(&w->tools[i], choice, &w->checker, &w->mono_ms);
        w->tools[i].started = on_start;
        w->tools[i].context = w;
    }
    draw_options(w);
    bool more = true;
    while (more && !w->checker.failed && w->result.acts < ACTS_MAX) act(w, &more);
    if (!w->checker.failed && w->engine) {
        w->healing = true;
        if (!settled(w))
            checker_fail(&w->checker, "I17",
                         more ? "the runs have not ended after %d acts"
                              : "a run waits for nothing and has not ended (%d)",
                         ACTS_MAX);
        else
            finish(w);
    }
    if (w->checker.failed) world_trace(w, "FAILED %s: %s", w->checker.failed, w->checker.message);
    stop_engines(w);
    world_store_forget(w);
    w->result.failed = w->checker.failed;
    memcpy(w->result.message, w->checker.message, sizeof(w->result.message));
    w->result.trace_hash = w->hash;
    w->result.checks = w->checker.checks;
    w->result.starts = w->tools[0].fake.start_count + w->tools[1].fake.start_count;
    *result = w->result;
    for (int i = 0; i < 2; i++) sim_tool_release(&w->tools[i]);
    checker_release(&w->checker);
    arena_release(&w->arena);
    free(w);
}
