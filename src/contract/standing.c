#include "contract/standing.h"

// An approval does not drain: it waits for a person, paused or not.
static struct standing of_paused(const struct standing_in *in)
{
    if (in->busy > 0 && in->drains)
        return (struct standing){.substatus = "DRAINING", .need = in->driven ? NEED_NOTHING : NEED_PERSON};
    return (struct standing){.substatus = in->gates > 0 && in->busy == 0 ? "WAITING_APPROVAL" : "", .need = NEED_PERSON};
}

static struct standing of_waiting(const struct standing_in *in)
{
    if (in->status == RUN_STATUS_PENDING && in->requires_approval)
        return (struct standing){.substatus = "WAITING_APPROVAL", .need = NEED_PERSON};
    return (struct standing){.substatus = "", .goes_on = true};
}

static struct standing of_running(const struct standing_in *in)
{
    if (in->rotating) return (struct standing){.substatus = "CONTINUE_AS_NEW", .goes_on = true};
    if (in->held + in->retrying > 0) {
        bool again = in->retrying > 0;
        return (struct standing){
            .substatus = "RETRYING", .need = again ? NEED_NOTHING : NEED_PERSON, .goes_on = again};
    }
    if (in->gates > 0 && in->busy + in->delayed + in->events == 0)
        return (struct standing){.substatus = "WAITING_APPROVAL", .need = NEED_PERSON};
    return (struct standing){.substatus = "", .goes_on = true};
}

static struct standing of_open(const struct standing_in *in)
{
    if (in->cancelling) return (struct standing){.substatus = "CANCELLING", .goes_on = true};
    if (in->imported) return (struct standing){.substatus = STANDING_IMPORTED};
    if (in->status == RUN_STATUS_PAUSED) return of_paused(in);
    return in->status == RUN_STATUS_RUNNING ? of_running(in) : of_waiting(in);
}

struct standing standing_of(const struct standing_in *in)
{
    if (run_status_terminal(in->status)) return (struct standing){.substatus = ""};
    struct standing s = of_open(in);
    bool taken_up = !in->driven && in->status == RUN_STATUS_RUNNING && s.goes_on && !in->cancelling; // waits for it
    if (in->recovering || taken_up) s.substatus = "RECOVERING";
    if (!in->driven && s.need != NEED_PERSON) s.need = NEED_OWNER;
    return s;
}

struct standing_in standing_stored(enum run_status status, struct str substatus, bool cause)
{
    struct standing_in in = {.status = status, .driven = true};
    bool retrying = str_is(substatus, "RETRYING"), draining = str_is(substatus, "DRAINING");
    bool approval = str_is(substatus, "WAITING_APPROVAL");
    in.cancelling = str_is(substatus, "CANCELLING");
    in.imported = str_is(substatus, STANDING_IMPORTED);
    in.rotating = str_is(substatus, "CONTINUE_AS_NEW");
    in.drains = draining;
    in.requires_approval = approval && status == RUN_STATUS_PENDING;
    in.gates = approval;
    in.held = retrying && cause;
    in.retrying = in.delayed = retrying && !cause;
    in.busy = draining || (substatus.len == 0 && status == RUN_STATUS_RUNNING);
    return in;
}
