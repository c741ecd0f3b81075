// The substatus of a snapshot and the line that it has for people.
#include "view/internal.h"

static const struct step_view *find_held(const struct run_view *view, bool *held)
{
    for (size_t i = 0; i < view->step_count; i++) {
        *held = view->steps[i].held;
        if (view->steps[i].held || view->steps[i].retrying) return &view->steps[i];
    }
    return NULL;
}

static uint32_t in_flight(const struct run_view *view)
{
    uint32_t count = 0;
    for (size_t i = 0; i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        count += step->status == STEP_STATUS_RUNNING && !step->gate && step->iteration == 0;
    }
    return count;
}

const char *view_status_detail(const struct run_view *view)
{
    const char *substatus = view_substatus(view);
    bool held;
    if (substatus[0] || view->status != RUN_STATUS_RUNNING) return substatus;
    return find_held(view, &held) ? "RETRYING" : "";
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
    bool held;
    const struct step_view *step = find_held(view, &held);
    if (str_is(substatus, "RETRYING") && step)
        buf_printf(out,
                   held ? "step %.*s failed and waits for RETRY_STEP or SKIP_STEP" : "step %.*s will be tried again",
                   STR_ARG(step->id));
    if (!str_is(substatus, "WAITING_APPROVAL")) return;
    buf_text(out, "waiting for an approval: ");
    name_gates(view, out);
}

static void tell(const struct run_view *view, struct str substatus, struct buf *out)
{
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
            buf_printf(out, "waiting for %u step%s in flight", in_flight(view), in_flight(view) == 1 ? "" : "s");
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
    struct buf message;
    buf_init(&message, 4096);
    tell(view, substatus, &message);
    *out = message.len > 0 ? arena_copy(arena, buf_str(&message)) : (struct str){"", 0};
    bool ok = buf_ok(&message) && out->ptr;
    buf_release(&message);
    return ok;
}
