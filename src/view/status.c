// The substatus of a snapshot and the line that it has for people.
#include "view/internal.h"

#include "contract/profile.h"

bool view_tried_again(const struct step_view *step)
{
    return step->retrying || (step->status == STEP_STATUS_RUNNING && step->wait_count > 0);
}

// The failure that is held comes first: it is the one that a person must do something about.
static const struct step_view *find_retried(const struct run_view *view)
{
    const struct step_view *found = NULL;
    for (size_t i = 0; i < view->step_count; i++) {
        if (view->steps[i].held) return &view->steps[i];
        if (!found && view_tried_again(&view->steps[i])) found = &view->steps[i];
    }
    return found;
}

static uint32_t awaited(const struct step_view *step)
{
    uint32_t count = step->event;
    if (step->status != STEP_STATUS_RUNNING) return 0;
    for (size_t i = 0; i < step->task_count; i++) count += step->tasks[i].events;
    return count;
}

// Attempts of it: a loop is a container of what runs in it, and so is a step of a playbook.
static uint32_t in_flight(const struct step_view *step)
{
    uint32_t count = step->visit == 0 && step->iteration == 0 && !step->gate && !step->event && !step->around;
    if (step->status != STEP_STATUS_RUNNING) return 0;
    for (size_t i = 0; i < step->task_count; i++) count += step->tasks[i].in_flight - step->tasks[i].events;
    return count;
}

struct standing_in view_standing_in(const struct run_view *view)
{
    struct standing_in in = {
        .status = view->status,
        .requires_approval = view->start.requires_approval,
        .cancelling = view->cancelling,
        .drains = behaviour_of(view->start.profile)->drains && view->drain_over != view->pause_cycle,
        .driven = true, // a log does not say
        .rotating = view->rotating,
    };
    for (size_t i = 0; !run_status_terminal(view->status) && i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        in.held += step->held;
        in.retrying += !step->held && view_tried_again(step);
        in.delayed += step->status == STEP_STATUS_PENDING && step->due_ms > 0;
        in.gates += step->status == STEP_STATUS_RUNNING && step->gate;
        in.events += awaited(step);
        in.busy += in_flight(step);
    }
    return in;
}

// A step that was stopped by the end of its run has FAILED by the contract, with a code that says why; it is none that went wrong.
uint32_t view_failed_count(const struct run_view *view)
{
    uint32_t count = view->failed_count;
    for (size_t i = 0; view->status == RUN_STATUS_CANCELLED && i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        count -= step->status == STEP_STATUS_FAILED && str_is(step->fault.code, FAULT_CANCELLED);
    }
    return count;
}

const char *view_substatus(const struct run_view *view)
{
    struct standing_in in = view_standing_in(view);
    return standing_of(&in).substatus;
}

static void name_gates(const struct run_view *view, struct buf *out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        if (!step->gate || step->status != STEP_STATUS_RUNNING) continue;
        if (count < 3) buf_printf(out, "%s%.*s", count ? ", " : "", STR_ARG(step->id));
        count++;
    }
    if (count > 3) buf_printf(out, " and %u more", count - 3);
}

static void tell_running(const struct run_view *view, struct str substatus, struct buf *out)
{
    const struct step_view *step = find_retried(view);
    if (str_is(substatus, "CONTINUE_AS_NEW"))
        buf_printf(out, "segment %u of its log is full: it goes on in the next", view->segment);
    if (str_is(substatus, "RETRYING") && step)
        buf_printf(out,
                   step->held ? "step %.*s failed and waits for RETRY_STEP or SKIP_STEP"
                              : "step %.*s will be tried again",
                   STR_ARG(step->id));
    if (!str_is(substatus, "WAITING_APPROVAL")) return;
    buf_text(out, "waiting for an approval: ");
    name_gates(view, out);
}

static void tell_draining(uint32_t busy, struct buf *out)
{
    buf_printf(out, "waiting for %u step%s in flight", busy, busy == 1 ? "" : "s");
}

static void tell(const struct run_view *view, struct str substatus, struct buf *out)
{
    if (str_is(substatus, "CANCELLING")) {
        buf_add(out, view->cancel_reason);
        return;
    }
    switch (view->status) {
    case RUN_STATUS_PENDING:
    case RUN_STATUS_APPROVED:
        buf_text(out, str_is(substatus, "WAITING_APPROVAL")    ? "waiting for the approval of its start"
                      : str_is(view->start.admission, "QUEUE") ? "in the queue"
                                                               : "");
        break;
    case RUN_STATUS_RUNNING:
        tell_running(view, substatus, out);
        break;
    case RUN_STATUS_PAUSED:
        if (str_is(substatus, "DRAINING"))
            tell_draining(view_standing_in(view).busy, out);
        else if (str_is(substatus, "WAITING_APPROVAL"))
            tell_running(view, substatus, out);
        else
            buf_add(out, view->pause_reason);
        break;
    case RUN_STATUS_FAILED:
        failure_told(out, view->failed_step, &view->fault);
        break;
    case RUN_STATUS_CANCELLED:
        buf_add(out, view->cancel_reason);
        break;
    case RUN_STATUS_COMPLETED:
        break;
    }
}

bool view_message(const struct run_view *view, struct str substatus, struct arena *arena, struct str *out)
{
    struct buf message SCOPED(buf_release) = buf_of(4096);
    tell(view, substatus, &message);
    *out = message.len > 0 ? arena_copy(arena, buf_str(&message)) : (struct str){"", 0};
    return buf_ok(&message) && out->ptr;
}
