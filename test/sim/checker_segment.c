// G1: segments (ADR 0035), from the log alone. They are numbered 1, 2, 3, only of runs whose profile rotates; one is full when it
// comes to its limit or, by a quarter at most, before it, and not long after; nothing begins and nothing ends between a full one and
// the next, unless the run is cancelled.
#include "sim/checker.h"

enum { SEGMENT_SLACK = 400 }; // events that one turn may add to a segment that is full

static bool begins_something(enum moment_kind kind)
{
    return kind == MOMENT_STEP_STARTED || kind == MOMENT_STEP_REDISPATCHED || kind == MOMENT_ATTEMPT_STARTED ||
           kind == MOMENT_LIST_STARTED;
}

static void segment_full(struct checker *checker, struct model_run *run, const struct moment *m, uint64_t events)
{
    if (!str_is(run->shadow->start.profile, "temporal"))
        checker_fail(checker, "G1", "%.*s: its profile does not rotate", STR_ARG(run->ids.run));
    if (run->segment_full || m->logical != run->segment + 1)
        checker_fail(checker, "G1", "%.*s: segment %u is full after %u", STR_ARG(run->ids.run), m->logical,
                     run->segment);
    if (events < checker->segment_events - checker->segment_events / 4)
        checker_fail(checker, "G1", "%.*s: segment %u is full with %llu events", STR_ARG(run->ids.run), m->logical,
                     (unsigned long long)events);
    run->segment_full = true;
}

void model_segment(struct checker *checker, struct model_run *run, const struct moment *m)
{
    uint64_t events = run->events.count - run->segment_after;
    bool rotates = str_is(run->shadow->start.profile, "temporal");
    if (m->kind == MOMENT_SEGMENT_FULL) {
        segment_full(checker, run, m, events);
        return;
    }
    if (m->kind == MOMENT_SEGMENT_STARTED) {
        if (!run->segment_full || m->logical != run->segment + 2)
            checker_fail(checker, "G1", "%.*s: segment %u begins after %u", STR_ARG(run->ids.run), m->logical,
                         run->segment + 1);
        run->segment_full = false;
        run->segment++;
        run->segment_after = run->events.count;
        checker->rotations++;
        return;
    }
    if (run->segment_full && begins_something(m->kind))
        checker_fail(checker, "G1", "%.*s: %s %.*s in a segment that is full", STR_ARG(run->ids.run),
                     moment_name(m->kind), STR_ARG(m->step));
    bool ends = moment_is_terminal(m->kind);
    if (run->segment_full && ends && !run->shadow->cancelling)
        checker_fail(checker, "G1", "%.*s: %s in a segment that is full", STR_ARG(run->ids.run), moment_name(m->kind));
    if (ends && m->engine != run->segment + 1)
        checker_fail(checker, "RE-5", "%.*s: %s is of execution %u, and the run is in segment %u", STR_ARG(run->ids.run),
                     moment_name(m->kind), m->engine, run->segment + 1);
    if (rotates && !run->segment_full && events > checker->segment_events + SEGMENT_SLACK)
        checker_fail(checker, "G1", "%.*s: segment %u has %llu events and is not full", STR_ARG(run->ids.run),
                     run->segment + 1, (unsigned long long)events);
}
