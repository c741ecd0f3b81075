// Lists of child runs, by what their logs say and nothing else.
//  L1 the list of an attempt is recorded once, while the attempt is in flight, and before any of its children begins;
//  L2 a child ends once for its parent, and as its own log says;
//  L3 no more children of an attempt are under way than the list allows.
#include "sim/checker.h"

#include <stdio.h>
#include <string.h>

enum { ID_MAX = 300 };

static void member_id(const struct model_run *run, const struct model_step *step, uint32_t member, char id[ID_MAX])
{
    snprintf(id, ID_MAX, "%.*s.%.*s.%u.%u", STR_ARG(run->ids.run), STR_ARG(step->path), step->logical, member);
}

void model_list_started(struct checker *checker, const struct model_run *run, struct model_step *step,
                        const struct moment *m)
{
    if (step->state != NODE_RUNNING || step->logical != m->logical || step->outcome == m->logical)
        checker_fail(checker, "L1", "%.*s: a list of %.*s, attempt %u, which is not in flight", STR_ARG(run->ids.run),
                     STR_ARG(m->step), m->logical);
    if (step->list_logical == m->logical)
        checker_fail(checker, "L1", "%.*s: the list of %.*s, attempt %u, was recorded twice", STR_ARG(run->ids.run),
                     STR_ARG(m->step), m->logical);
    step->list_logical = m->logical;
    step->list_total = m->counts.total;
    step->list_most = (uint32_t)json_integer(json_key(&m->value, "most"), 0);
    step->list_ended = 0;
    INVARIANT(step->list_total <= 64);
}

void model_child_ended(struct checker *checker, const struct model_run *run, struct model_step *step,
                       const struct moment *m)
{
    uint64_t bit = m->iteration >= 1 && m->iteration <= 64 ? UINT64_C(1) << (m->iteration - 1) : 0;
    if (step->list_logical != m->logical || m->iteration > step->list_total || bit == 0)
        checker_fail(checker, "L1", "%.*s: a child of %.*s, attempt %u, ended that its list does not have",
                     STR_ARG(run->ids.run), STR_ARG(m->step), m->logical);
    if (step->list_ended & bit)
        checker_fail(checker, "L2", "%.*s: child %u of %.*s, attempt %u, ended twice", STR_ARG(run->ids.run),
                     m->iteration, STR_ARG(m->step), m->logical);
    step->list_ended |= bit;
    char id[ID_MAX];
    member_id(run, step, m->iteration, id);
    const struct model_run *child = checker_run(checker, str_from(id));
    bool begun = child && child->events.count > 0;
    const char *said = !begun                                       ? "cancelled"
                       : !child->terminal                           ? "goes on"
                       : child->status == RUN_STATUS_COMPLETED      ? "completed"
                       : child->status == RUN_STATUS_CANCELLED      ? "cancelled"
                                                                    : "failed";
    if (str_is(m->reason, said) || (!begun && str_is(m->reason, "failed"))) return; // its start may be refused
    checker_fail(checker, "L2", "%.*s: %s ended as %.*s, its log says %s", STR_ARG(run->ids.run), id,
                 STR_ARG(m->reason), said);
}

// A run begins.
void model_check_member(struct checker *checker, const struct model_run *child)
{
    const struct model_run *run = child->parent_run.len > 0 ? checker_run(checker, child->parent_run) : NULL;
    for (size_t i = 0; run && i < run->step_count; i++) {
        const struct model_step *step = &run->steps[i];
        char id[ID_MAX];
        uint32_t index = kernel_find(run->shadow, step->path), open = 0;
        if (index == PROGRAM_TOP || !kernel_fans_out(run->shadow, index)) continue;
        snprintf(id, sizeof(id), "%.*s.%.*s.%u.", STR_ARG(run->ids.run), STR_ARG(step->path), step->logical);
        if (!str_starts(child->ids.run, str_from(id))) continue;
        if (step->list_logical != step->logical) {
            checker_fail(checker, "L1", "%.*s began before its list was recorded", STR_ARG(child->ids.run));
            return;
        }
        for (uint32_t k = 1; k <= step->list_total; k++) {
            member_id(run, step, k, id);
            const struct model_run *other = checker_run(checker, str_from(id));
            open += other && other->events.count > 0 && !other->terminal;
        }
        if (open > step->list_most)
            checker_fail(checker, "L3", "%.*s: %u children of %.*s are under way, %u at most", STR_ARG(run->ids.run),
                         open, STR_ARG(step->path), step->list_most);
    }
}
