// F1: what a fork must begin with, worked out from the source's log alone and apart from src/kernel/past.c.
#include "sim/checker.h"

#include <string.h>

static bool cancels(const struct moment *m)
{
    enum signal_type type = signal_parse(m->signal_type);
    return m->kind == MOMENT_SIGNAL_ACCEPTED && (type == SIGNAL_CANCEL || type == SIGNAL_EMERGENCY_STOP);
}

static bool is_again(const struct model_run *source, uint64_t again, struct str path)
{
    uint32_t top = program_find(source->program, PROGRAM_TOP, str_slice(path, 0, str_find(path, '[', 0)));
    return path.len > 0 && top != PROGRAM_TOP && (again >> top & 1) != 0;
}

// A start that the fork may decide anew: nothing outside knows of it.
static bool may_miss(const struct model_run *source, const struct moment *m)
{
    uint32_t step = kernel_find(source->shadow, m->step);
    if (m->kind != MOMENT_STEP_STARTED || step == PROGRAM_TOP) return false;
    enum step_kind kind = source->program->steps[step].kind;
    return m->by == EMITTER_ENGINE || kind == STEP_CANCEL || kind == STEP_WAIT || kind == STEP_EVENT ||
           kind == STEP_LOOP;
}

static void add(struct checker *checker, struct model_fork *fork, const struct moment *m)
{
    fork->items =
        arena_grow(&checker->arena, fork->items, fork->count, fork->count + 1, sizeof(*fork->items), &fork->capacity);
    INVARIANT(fork->items);
    fork->items[fork->count++] = (struct model_past){.moment = *m};
}

// What is said of a step after its start, in the iteration of that start.
static void mark_open(const struct model_run *source, struct model_fork *fork)
{
    for (size_t i = 0; i < fork->count; i++) {
        struct model_past *past = &fork->items[i];
        bool delay = past->moment.kind == MOMENT_STEP_DELAYED;
        past->open = delay || past->moment.kind == MOMENT_STEP_STARTED;
        bool alone = true;
        for (size_t k = i + 1; k < fork->count && past->open; k++) {
            const struct moment *later = &fork->items[k].moment;
            if (!str_eq(later->step, past->moment.step)) continue;
            alone = false;
            past->open = later->kind == MOMENT_STEP_REDISPATCHED || later->kind == MOMENT_ITERATION_STARTED ||
                         later->kind == MOMENT_EVENT_AWAITED;
        }
        past->may_miss = past->open && alone && may_miss(source, &past->moment);
    }
}

struct model_fork *checker_fork(struct checker *checker, struct str run, const struct model_run *source, uint64_t at,
                                uint64_t again)
{
    struct model_fork *fork = ARENA_NEW(&checker->arena, struct model_fork);
    INVARIANT(fork);
    *fork = (struct model_fork){.run = run, .source = source->ids.run, .at = at, .next_fork = checker->forks};
    checker->forks = fork;
    size_t e = 0, l = 0;
    bool lifted = false;
    while (e < source->events.count || l < source->ledger.count) {
        bool ledger = l < source->ledger.count &&
                      (e >= source->events.count || source->ledger.items[l].after < source->events.items[e].seq);
        const struct model_record *record = ledger ? &source->ledger.items[l++] : &source->events.items[e++];
        if ((ledger ? record->after : record->seq) > at) break;
        if (at == 0 || (ledger && !str_is(record->kind, "moment"))) continue;
        struct moment m;
        struct seal seal;
        struct error err = {0};
        enum code rc = ledger
                           ? contract_decode_ledger(record->bytes, &checker->arena, &m, &err)
                           : contract_decode(source->vocabulary, record->bytes, &checker->arena, &m, &seal, NULL, &err);
        INVARIANT(rc == OK);
        if (moment_is_terminal(m.kind)) break;
        lifted = lifted || cancels(&m);
        bool own = m.kind == MOMENT_LATE_RESULT || m.kind == MOMENT_ATTEMPT_RESTS || m.kind == MOMENT_SIGNAL_DEFERRED ||
                   m.kind == MOMENT_SIGNAL_SETTLED || m.kind == MOMENT_LIST_STARTED || m.kind == MOMENT_CHILD_ENDED ||
                   m.kind == MOMENT_SEGMENT_FULL || m.kind == MOMENT_SEGMENT_STARTED ||
                   cancels(&m) || (lifted && m.kind == MOMENT_STEP_FAILED);
        if (own || is_again(source, again, m.step) || is_again(source, again, m.signal_step)) continue;
        add(checker, fork, &m);
    }
    mark_open(source, fork);
    return fork;
}

static bool same_moment(const struct model_past *past, const struct moment *m)
{
    const struct moment *a = &past->moment;
    if (a->kind != m->kind || !str_eq(a->step, m->step) || a->logical != m->logical || a->engine != m->engine)
        return false;
    if (!str_eq(a->signal_id, m->signal_id) || !str_eq(a->fault.code, m->fault.code) || !str_eq(a->reason, m->reason))
        return false;
    if (a->has_blob != m->has_blob || (a->has_blob && !digest_eq(&a->blob, &m->blob))) return false;
    if (a->value.type != m->value.type || (a->value.type != 0 && !json_equal(&a->value, &m->value))) return false;
    return past->open || a->start || (a->due_ms == m->due_ms && a->at_ms == m->at_ms);
}

bool model_check_past(struct checker *checker, const struct model_run *run, const struct moment *m)
{
    struct model_fork *fork = run->fork;
    if (!fork) return false;
    if (m->start && run->events.count <= 1 &&
        (!m->start->forked || m->start->forked_seq != fork->at || !str_eq(m->start->forked_run, fork->source)))
        checker_fail(checker, "F1", "%.*s: it does not say where it was forked from", STR_ARG(run->ids.run));
    while (fork->next < fork->count && fork->items[fork->next].may_miss && !same_moment(&fork->items[fork->next], m))
        fork->next++;
    if (fork->next == fork->count) return false;
    const struct model_past *past = &fork->items[fork->next++];
    if (same_moment(past, m)) return true;
    checker_fail(checker, "F1", "%.*s: %s of %.*s %u.%u stands where %.*s has %s of %.*s %u.%u", STR_ARG(run->ids.run),
                 moment_name(m->kind), STR_ARG(m->step), m->logical, m->engine, STR_ARG(fork->source),
                 moment_name(past->moment.kind), STR_ARG(past->moment.step), past->moment.logical, past->moment.engine);
    return true;
}

// Here, or in the run that it was taken over from.
bool model_given(const struct checker *checker, const struct model_run *run, const struct moment *m)
{
    if (run->fork && str_eq(run->fork->given, m->step)) return true;
    const struct model_run *source = m->run_ref.len > 0 ? checker_run(checker, run->original_run) : NULL;
    const struct model_step *before = source ? model_step(source, m->step) : NULL;
    return before && before->given;
}

void model_check_forked(struct checker *checker)
{
    for (struct model_fork *fork = checker->forks; fork; fork = fork->next_fork) {
        const struct model_run *run = checker_run(checker, fork->run);
        if (!run || run->events.count == 0) continue;
        while (fork->next < fork->count && fork->items[fork->next].may_miss) fork->next++;
        if (fork->next < fork->count)
            checker_fail(checker, "F1", "%.*s: %s of %.*s is missing from what it took over", STR_ARG(fork->run),
                         moment_name(fork->items[fork->next].moment.kind),
                         STR_ARG(fork->items[fork->next].moment.step));
    }
}

void model_check_fork_start(struct checker *checker, const struct model_run *run, const struct tool_request *request)
{
    const struct model_fork *fork = run->fork;
    for (size_t i = 0; fork && i < fork->count; i++) {
        const struct moment *m = &fork->items[i].moment;
        bool began =
            (m->kind == MOMENT_STEP_STARTED && !fork->items[i].may_miss) || m->kind == MOMENT_STEP_REDISPATCHED;
        if (began && str_eq(m->step, request->step) && m->logical == request->logical && m->engine == request->engine)
            checker_fail(checker, "F1", "%.*s: %.*s %u.%u is an attempt of %.*s and was handed to a tool again",
                         STR_ARG(run->ids.run), STR_ARG(m->step), m->logical, m->engine, STR_ARG(fork->source));
    }
}
