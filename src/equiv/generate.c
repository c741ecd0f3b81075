// A script out of a seed. What steps give back is drawn by attempt, so that retries see both sides of a policy; people answer and send at
// events that the document can have. A draw that the document makes impossible (a signal that comes after what does not happen) is no
// mistake here: it happens on no host.
#include "equiv/inside.h"

#include "program/net.h"

enum { ATTEMPTS_MAX = 3, SIGNALS_MAX = 3, TAKES_MAX = 40, OFTEN = 100 };

struct drawing {
    struct arena *arena;
    uint64_t state;
    struct trial_script *out;
    size_t mock_capacity, gate_capacity, signal_capacity;
    bool nomem;
    bool killed; // hosts are
};

static uint64_t draw(struct drawing *d, uint64_t below)
{
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static bool chance(struct drawing *d, uint64_t percent)
{
    return draw(d, OFTEN) < percent;
}

// What the document wants to read of it stays; how it ends, how long it takes and how often its executor is lost are drawn.
static void draw_mock(struct drawing *d, const struct trial_mock *from, uint32_t attempt)
{
    struct trial_script *out = d->out;
    if (!ARENA_ROOM(d->arena, out->mocks, out->mock_count, &d->mock_capacity)) {
        d->nomem = true;
        return;
    }
    struct trial_mock *mock = &out->mocks[out->mock_count++];
    *mock = *from;
    mock->key = arena_format(d->arena, "%.*s#%u", STR_ARG(from->key), attempt);
    mock->takes_ms = (int64_t)draw(d, TAKES_MAX) * 50;
    mock->late = chance(d, 10) && !d->killed;
    mock->lost = chance(d, 10) ? 1 + (uint32_t)draw(d, 2) : 0;
    d->nomem |= mock->key.ptr == NULL;
    if (!chance(d, attempt == 1 ? 45 : 35)) return;
    static const struct {
        const char *code, *category;
        bool retryable;
    } faults[] = {{"EXIT_NONZERO", "", true},
                  {"TIMEOUT", "timeout", true},
                  {"COMMAND_NOT_FOUND", "", false},
                  {"SPAWN_FAILED", "infrastructure", true}};
    size_t which = draw(d, ARRAY_COUNT(faults));
    mock->fails = true;
    mock->fault = (struct fault){.code = str_from(faults[which].code),
                                 .category = str_from(faults[which].category),
                                 .message = STR("drawn"),
                                 .retryable = faults[which].retryable};
    if (which > 0) return;
    mock->fault.has_exit = true;
    mock->fault.exit_code = 1 + (int32_t)draw(d, 3);
}

// Tasks of playbooks that act outside.
static void draw_tasks(struct drawing *d, const struct program *program)
{
    for (uint32_t i = 0; program->net && i < program->step_count; i++) {
        const struct net_step *step = &program->net->steps[i];
        for (uint32_t k = 0; k < step->task_count; k++) {
            if (step->tasks[k].child) continue;
            struct trial_mock mock = {.is_json = true, .output = STR("0")};
            mock.key = step->has_loop ? arena_format(d->arena, "%.*s[*]/%.*s", STR_ARG(program->steps[i].id), STR_ARG(step->tasks[k].label))
                                  : arena_format(d->arena, "%.*s/%.*s", STR_ARG(program->steps[i].id), STR_ARG(step->tasks[k].label));
            for (uint32_t attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) draw_mock(d, &mock, attempt);
        }
    }
}

static void draw_signal(struct drawing *d, const struct program *program)
{
    static const struct {
        enum signal_type type;
        bool of_step;
    } kinds[] = {{SIGNAL_PAUSE, false},     {SIGNAL_RESUME, false},   {SIGNAL_CANCEL, false},
                 {SIGNAL_RETRY_STEP, true}, {SIGNAL_SKIP_STEP, true}, {SIGNAL_EMERGENCY_STOP, false}};
    static const uint8_t weights[] = {30, 55, 65, 80, 95, OFTEN}; // sums
    struct trial_script *out = d->out;
    if (!ARENA_ROOM(d->arena, out->signals, out->signal_count, &d->signal_capacity)) {
        d->nomem = true;
        return;
    }
    struct trial_signal *signal = &out->signals[out->signal_count++];
    uint64_t ball = d->killed ? weights[1] + draw(d, OFTEN - weights[1]) : draw(d, OFTEN); // a pause is the first, then its end
    size_t kind = 0;
    while (ball >= weights[kind]) kind++;
    const struct program_step *at = &program->steps[draw(d, program->step_count)], *about = &program->steps[draw(d, program->step_count)];
    *signal = (struct trial_signal){.type = kinds[kind].type, .by = STR("tester"), .reason = STR("drawn")};
    signal->wait_ms = (int64_t)draw(d, TAKES_MAX) * 25;
    if (kinds[kind].of_step) signal->step = about->id;
    if (at->scope == PROGRAM_TOP && chance(d, 70)) {
        signal->after = (enum trial_occasion)(AFTER_STARTED + draw(d, AFTER_SKIPPED - AFTER_STARTED + 1));
        signal->key = at->id;
    }
}

// A pause is followed by a resume some time, or nothing would ever end.
static void draw_resume(struct drawing *d)
{
    struct trial_script *out = d->out;
    if (!ARENA_ROOM(d->arena, out->signals, out->signal_count, &d->signal_capacity)) {
        d->nomem = true;
        return;
    }
    out->signals[out->signal_count++] = (struct trial_signal){
        .type = SIGNAL_RESUME, .by = STR("tester"), .after = AFTER_RUN_PAUSED, .wait_ms = 1000 + (int64_t)draw(d, TAKES_MAX) * 25};
}

static void draw_gates(struct drawing *d, const struct program *program, struct str prefix)
{
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct program_step *step = &program->steps[i];
        if (step->child) draw_gates(d, step->child, arena_format(d->arena, "%.*s%.*s/", STR_ARG(prefix), STR_ARG(step->id)));
        if (step->kind != STEP_APPROVAL || step->scope != PROGRAM_TOP || chance(d, 15)) continue; // nobody answers
        if (!ARENA_ROOM(d->arena, d->out->gates, d->out->gate_count, &d->gate_capacity)) {
            d->nomem = true;
            return;
        }
        struct str key = arena_format(d->arena, "%.*s%.*s", STR_ARG(prefix), STR_ARG(step->id));
        d->nomem |= !key.ptr;
        d->out->gates[d->out->gate_count++] = (struct trial_gate){
            .key = key, .yes = chance(d, 75), .by = STR("tester"), .reason = STR("drawn"), .takes_ms = (int64_t)draw(d, TAKES_MAX) * 50};
    }
}

enum code equiv_generate(const struct program *program, uint64_t seed, bool killed, struct arena *arena, struct trial_script *out)
{
    struct trial_script plain;
    enum code rc = trial_script_default(program, arena, &plain);
    if (rc) return rc;
    *out = plain;
    out->mocks = NULL;
    out->mock_count = 0;
    out->seed = seed;
    struct drawing d = {.arena = arena, .state = seed * 0x2545f4914f6cdd1du + 7, .out = out, .killed = killed};
    for (size_t i = 0; !d.nomem && i < plain.mock_count; i++)
        for (uint32_t attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) draw_mock(&d, &plain.mocks[i], attempt);
    draw_tasks(&d, program);
    draw_gates(&d, program, (struct str){0});
    uint64_t signals = program->step_count ? draw(&d, SIGNALS_MAX + 1) : 0;
    for (uint64_t i = 0; !d.nomem && i < signals; i++) draw_signal(&d, program);
    if (!killed) draw_resume(&d);
    out->lenient = true;
    return d.nomem ? E_NOMEM : OK;
}
