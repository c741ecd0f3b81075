// What a run looks like to people who look at it in Conductor.
#include "conductor/inside.h"

enum { STEPS_MAX = 200, STEPS_SIZE_MAX = 40 << 10 };

static struct json step_of(const struct json *step, struct arena *arena)
{
    return JSON_OF(arena, {"step", json_some(json_text(json_key(step, "stepId")))},
                   {"status", json_some(json_text(json_key(step, "status")))},
                   {"attempt", json_ref(json_key(step, "logicalAttemptId"))},
                   {"engineAttempt", json_integer(json_key(step, "engineAttemptId"), 1) > 1
                                         ? json_ref(json_key(step, "engineAttemptId"))
                                         : json_none()});
}

static bool is_done(const struct json *step)
{
    struct str status = json_text(json_key(step, "status"));
    return str_is(status, "SUCCESS") || str_is(status, "SKIPPED");
}

// As many as fit: first those that are not done, then the rest. What is left out is counted.
static struct json steps_of(const struct json *run, struct arena *arena, uint32_t *left_out)
{
    const struct json *steps = json_key(run, "steps");
    struct json list = json_array();
    size_t size = 0;
    *left_out = 0;
    for (int pass = 0; pass < 2 && json_is(steps, JSON_ARRAY); pass++)
        for (uint32_t i = 0; i < steps->count; i++) {
            if (is_done(&steps->items[i]) != (pass == 1)) continue;
            size += json_text(json_key(&steps->items[i], "stepId")).len + 80;
            if (list.count < STEPS_MAX && size < STEPS_SIZE_MAX)
                json_append(arena, &list, step_of(&steps->items[i], arena));
            else
                (*left_out)++;
        }
    return list;
}

struct json picture_of(const struct json *run, struct str status, struct str substatus, struct str message,
                       struct str link, struct json hosts, struct arena *arena)
{
    uint32_t left_out;
    struct json steps = steps_of(run, arena, &left_out);
    struct json counts = JSON_OF(
        arena, {"total", json_ref(json_key(run, "totalSteps"))}, {"done", json_ref(json_key(run, "completedSteps"))},
        {"running", json_ref(json_key(run, "runningSteps"))}, {"failed", json_ref(json_key(run, "failedSteps"))},
        {"skipped", json_ref(json_key(run, "skippedSteps"))});
    return JSON_OF(arena, {"run", json_ref(json_key(run, "runId"))}, {"plan", json_ref(json_key(run, "planId"))},
                   {"planVersion", json_ref(json_key(run, "planVersion"))}, {"status", json_some(status)},
                   {"substatus", json_some(substatus)}, {"message", json_some(message)}, {"counts", counts},
                   {"steps", steps}, {"stepsLeftOut", left_out ? json_int(left_out) : json_none()},
                   {"startedAt", json_ref(json_key(run, "startedAt"))},
                   {"completedAt", json_ref(json_key(run, "completedAt"))},
                   {"engineRunRef", json_ref(json_key(run, "engineRunRef"))}, {"link", json_some(link)},
                   {"hosts", hosts});
}
