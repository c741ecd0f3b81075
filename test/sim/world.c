#include "sim/world.h"

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

// ---- the world

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
    // A budget, and stores that take nothing for longer than that: half of them fail open.
    uint32_t budget = calm ? 0 : choice_pick(choice, STREAM_BUDGET, 4);
    w->budget_ms = budget >= 2 ? 150 : 0;
    w->fail_open = budget == 3;
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
        const char *expected = w->budget_ms > 0 || run->swayed || any_child_swayed(w, run) ? NULL : calm_end(id, w->inline_max);
        if (expected) checker_net_same(&w->checker, run, str_from(expected));
    }
}

// What is still in the inbox is answered, then everything must agree with the model one last time.
static void finish(struct world *w)
{
    for (int i = 0; i < 8 && !w->checker.failed; i++) {
        while (!w->engine && !w->checker.failed) process_restart(w); // it may die even now
        if (w->engine) world_poll(w);
        if (w->engine) process_turn(w);
    }
    if (w->checker.failed) return;
    checker_outbox_end(&w->checker);
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
    while (more && !w->checker.failed && w->result.acts < ACTS_MAX) world_act(w, &more);
    if (!w->checker.failed && w->engine) {
        w->healing = true;
        if (!world_settled(w))
            checker_fail(&w->checker, "I17",
                         more ? "the runs have not ended after %d acts"
                              : "a run waits for nothing and has not ended (%d)",
                         ACTS_MAX);
        else
            finish(w);
    }
    if (w->checker.failed) world_trace(w, "FAILED %s: %s", w->checker.failed, w->checker.message);
    process_stop(w);
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
