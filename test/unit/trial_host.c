// A host behind struct trial_host: an engine that is not the stage's own. Played through the seam, a script comes out as on the stage.
#include "base/text.h"
#include "harness/test.h"
#include "trial/fake_tools.h"
#include "trial/trial.h"

#include <stdio.h>

#define PLAN "metadata: {planId: p, planVersion: '1', schemaVersion: v1.2}\nsteps:\n"
static const char plan[] = PLAN "  - {stepId: a, kind: shell, dependsOn: [], with: {command: a}, retry: {maxAttempts: 2, delay: 1s}}\n"
                                "  - {stepId: b, kind: shell, dependsOn: [], with: {command: b}}\n"
                                "  - {stepId: nap, kind: wait, dependsOn: [a], with: {duration: 2h}}\n"
                                "  - {stepId: c, kind: shell, dependsOn: [nap, b], with: {command: c}}\n";
static const char script[] = "document: d.yaml\n"
                             "mocks: {a#1: {exit: 1}, a#2: {output: x, takes: 3s, lost: 1}, b: {output: y, takes: 3s}, c: {takes: 1h}}\n"
                             "signals: [{after: a failed, send: pause}, {after: run paused, wait: 1s, send: resume},\n"
                             "          {after: c started, wait: 1m, send: cancel}]\n";

// ---- the host: what an engine hands out is kept until it is fetched
enum { NEWS_MAX = 64 };
struct house {
    const struct contract *contract;
    struct store *store;
    struct engine *engine;
    struct tools tools;
    struct arena memory;
    struct tool_request requests[NEWS_MAX];
    uint64_t stops[NEWS_MAX];
    size_t request_count, stop_count;
    struct engine_decision decision; // the last one
    bool decided;
    char code[64];
};
static struct house house;

static enum code take(struct tools *tools, const struct tool_request *request, struct error *err)
{
    (void)tools, (void)err;
    CHECK(house.request_count < NEWS_MAX);
    struct tool_request *kept = &house.requests[house.request_count++];
    *kept = (struct tool_request){.ticket = request->ticket, .logical = request->logical, .engine = request->engine};
    kept->timeout_ms = request->timeout_ms;
    kept->run = arena_copy(&house.memory, request->run);
    kept->step = arena_copy(&house.memory, request->step);
    kept->kind = arena_copy(&house.memory, request->kind);
    return OK;
}

static void stop(struct tools *tools, uint64_t ticket, int64_t grace_ms)
{
    (void)tools, (void)grace_ms;
    CHECK(house.stop_count < NEWS_MAX);
    house.stops[house.stop_count++] = ticket;
}

static void nothing(struct tools *tools)
{
    (void)tools;
}

static const struct tool_ops desk = {.start = take, .cancel = stop, .close = nothing};

static void decided(void *context, const struct engine_decision *decision)
{
    (void)context;
    house.decision = *decision;
    house.decided = true;
    snprintf(house.code, sizeof(house.code), "%.*s", STR_ARG(decision->error_code));
}

static enum code work(struct trial_now now, struct error *err)
{
    bool worked = true;
    enum code rc = OK;
    struct moment_in_time at = {.wall_ms = now.wall_ms, .mono_ms = now.mono_ms};
    while (!rc && worked) rc = engine_turn(house.engine, at, &worked, err);
    return rc;
}

static enum code open_engine(struct error *err)
{
    struct engine_options options = {.store = house.store,
                                     .contract = house.contract,
                                     .entropy = os_entropy(),
                                     .tools = &house.tools,
                                     .no_files = true,
                                     .limits = engine_limits_default,
                                     .observer = {.decision = decided}};
    return engine_open(&options, &house.engine, err);
}

static enum code begin(void *context, const struct start_request *request, struct trial_now now, struct error *err)
{
    (void)context;
    char id[129];
    enum code rc = engine_start(house.engine, request, id, err);
    return rc ? rc : work(now, err);
}

static enum code send_signal(void *context, struct str run, const struct signal *signal, struct trial_now now, struct arena *arena,
                             struct engine_decision *out, struct error *err)
{
    (void)context, (void)arena;
    house.decided = false;
    enum code rc = engine_signal(house.engine, STR("default"), run, signal, err);
    if (!rc) rc = work(now, err);
    CHECK(rc || house.decided);
    out->accepted = house.decision.accepted;
    out->error_code = str_from(house.code);
    return rc;
}

static void deliver(void *context, const struct tool_result *result, struct trial_now now)
{
    (void)context, (void)now;
    struct tool_result copy = *result;
    engine_deliver(house.engine, &copy);
}

static enum code settle(void *context, struct trial_now now, size_t held, size_t stopping, struct trial_news *out, struct error *err)
{
    (void)context, (void)stopping;
    enum code rc = work(now, err);
    *out = (struct trial_news){.requests = house.requests,
                               .request_count = house.request_count,
                               .stops = house.stops,
                               .stop_count = house.stop_count,
                               .deadline_ms = engine_deadline(house.engine)};
    CHECK(rc || engine_activity(house.engine).in_flight == held + house.request_count); // all that is out is with the player
    house.request_count = house.stop_count = 0;
    return rc;
}

static enum code die(void *context, struct error *err)
{
    (void)context;
    engine_close(house.engine);
    house.request_count = house.stop_count = 0;
    enum code rc = open_engine(err);
    struct run_filter filter = {.limit = 10, .unfinished = true};
    struct run_heads heads = {0};
    if (!rc) rc = store_list(house.store, &filter, &house.memory, &heads, err);
    for (size_t i = 0; !rc && i < heads.count; i++) rc = engine_adopt(house.engine, heads.items[i].ids.tenant, heads.items[i].ids.run, err);
    return rc;
}

static struct store *its_store(void *context)
{
    (void)context;
    return house.store;
}

static const struct trial_host host = {
    .start = begin, .signal = send_signal, .deliver = deliver, .settle = settle, .kill = die, .store = its_store};

static void open_house(void)
{
    struct error err = {0};
    house.tools.ops = &desk;
    house.request_count = house.stop_count = 0;
    arena_init(&house.memory, 4096, (size_t)64 << 20);
    struct store_options options = {
        .mode = STORE_WRITE, .create = true, .contract = house.contract, .entropy = os_entropy(), .artifacts = test_dir()};
    CHECK_OK(store_open(STR("memory:"), &options, &house.store, &err), &err);
    CHECK_OK(open_engine(&err), &err);
}

static void close_house(void)
{
    engine_close(house.engine);
    store_close(house.store);
    arena_release(&house.memory);
}

// ---- plays
static struct arena arena;
static struct program *program;
static struct trial_file file;

static void prepare(void)
{
    struct diagnostics diagnostics;
    struct error err = {0};
    arena_init(&arena, 65536, (size_t)1 << 30);
    diagnostics_init(&diagnostics, &arena);
    CHECK_OK(contract_open(&arena, &house.contract, &err), &err);
    CHECK_OK(program_load(str_from(plan), STR("d.yaml"), NULL, &diagnostics, &program, &err), &err);
    CHECK(trial_parse(str_from(script), STR("d.test.yaml"), &arena, &diagnostics, &file) == OK);
}

static void finish(void)
{
    program_release(program);
    arena_release(&arena);
}

static struct str golden_of(const struct trial_options *options, struct trial_result *result)
{
    struct error err = {0};
    CHECK_OK(trial_play(options, &arena, result, &err), &err);
    struct buf text = buf_of((size_t)16 << 20);
    CHECK(story_golden(&result->story, &text));
    return buf_keep(&text, &arena);
}

static void a_script_comes_out_as_on_the_stage(void)
{
    prepare();
    struct trial_options options = {.contract = house.contract, .program = program, .script = &file.scripts[0], .scratch = test_dir()};
    struct trial_result here, there;
    struct str on_stage = golden_of(&options, &here);
    open_house();
    options.host = &host;
    options.order = &here.order;
    struct str outside = golden_of(&options, &there);
    if (!str_eq(on_stage, outside)) test_fail(__FILE__, __LINE__, "on the stage\n%.*s\noutside\n%.*s", STR_ARG(on_stage), STR_ARG(outside));
    CHECK(here.fault_count == 0 && there.fault_count == 0 && there.order.count == here.order.count);
    close_house();
    finish();
}

static void a_host_that_is_killed_goes_on(void)
{
    prepare();
    static const uint64_t kills[] = {4, 11};
    struct trial_options options = {.contract = house.contract, .program = program, .script = &file.scripts[0], .scratch = test_dir()};
    struct trial_result calm, killed;
    (void)golden_of(&options, &calm);
    open_house();
    options.host = &host;
    options.order = &calm.order;
    options.kills = kills;
    options.kill_count = ARRAY_COUNT(kills);
    (void)golden_of(&options, &killed);
    struct story_parting parting;
    if (!story_same_end(&calm.story, &killed.story, &parting)) test_fail(__FILE__, __LINE__, "%s: %s", parting.rule, parting.message);
    CHECK(killed.kills == ARRAY_COUNT(kills));
    close_house();
    finish();
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(a_script_comes_out_as_on_the_stage), TEST(a_host_that_is_killed_goes_on)};
    return test_main("trial_host", tests, ARRAY_COUNT(tests), argc, argv);
}
