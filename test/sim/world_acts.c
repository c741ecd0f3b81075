// What happens next, picked among everything that may: time passes, results come, people and faults disturb.
#include "sim/world.h"

#include "trial/disk.h"

#include <stdio.h>

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
        process_note(w, true);
        if (w->puts % 5 == 0) process_note(w, false);
        break;
    }
    w->idle = w->polled = false;
}

void world_poll(struct world *w)
{
    struct error err = {0};
    enum code rc = engine_poll(w->engine, &err);
    w->polled = true;
    w->idle = false;
    if (rc == E_IO)
        process_crash(w, "while the inbox was read");
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
        if (w->died) process_crash(w, "while another process opened the store");
        return;
    }
    world_trace(w, "taken over");
    w->had_zombie = true;
    w->zombie = w->engine;
    w->zombie_tool = w->tool;
    w->zombie_tool->fenced = true;
    w->zombie_left = 1 + choice_pick(w->choice, STREAM_WORLD, 6);
    if (process_open(w, false)) process_adopt(w);
    if (w->died) process_crash(w, "while runs were taken over");
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
    if (world_store_take(w, w->store)) process_adopt(w);
    if (w->died) process_crash(w, "while runs were taken back");
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
        process_crash(w, "while the other engine turned");
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
    process_adopt(w); // what it made meanwhile has no owner now
    w->idle = false;
    if (w->died) process_crash(w, "while its runs were taken up");
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
        process_crash(w, "between two acts");
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
        world_poll(w);
        return;
    default:
        client_disturb(w);
        if (w->died) process_crash(w, "while a signal was taken");
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
        process_turn(w);
        pass(w, 200);
        if (w->engine && engine_activity(w->engine).queued > most)
            checker_fail(&w->checker, "I9", "%zu inputs wait for space after %u turns",
                         engine_activity(w->engine).queued, i + 1);
    }
    w->full_left = 0;
}

bool world_settled(const struct world *w)
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
        process_turn(w);
        return true;
    }
    int64_t due = fake_due(&w->tool->fake), deadline = engine_deadline(w->engine);
    if (!w->polled) {
        world_poll(w);
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
        process_adopt(w);
    } else if (world_settled(w)) {
        if (w->forks_left == 0 || !client_fork(w, false)) return false;
        w->forks_left--;
    } else if (!client_answer(w)) {
        return false;
    }
    if (w->died) process_crash(w, "while an answer was taken");
    w->idle = w->polled = false;
    return true;
}

void world_act(struct world *w, bool *more)
{
    w->result.acts++;
    if (w->disturbs_left == 0 && w->crashes_left == 0 && !w->options.calm && !w->healing) {
        w->healing = true;
        w->tools[0].fault_rate = w->tools[1].fault_rate = 0;
        world_trace(w, "healed");
    }
    if (!w->engine)
        process_restart(w);
    else if (w->crash_at > 0 && w->result.acts >= w->crash_at) {
        w->crash_at = 0;
        process_crash(w, "between two acts");
    } else if (w->full_at > 0 && w->result.acts >= w->full_at)
        no_space(w);
    else if (!w->healing && w->disturbs_left > 0 && choice_once_in(w->choice, STREAM_WORLD, w->disturb_rate))
        disturb(w);
    else
        *more = natural(w);
}
