// Whether two plays of one script came to the same end, whatever happened on the way.
#include "trial/crash_inside.h"

#include <stdarg.h>
#include <stdio.h>

static void part(struct story_parting *out, struct str step, const char *rule, const char *format, ...) PRINTF_LIKE(4, 5);

static void part(struct story_parting *out, struct str step, const char *rule, const char *format, ...)
{
    if (out->rule) return;
    out->rule = rule;
    out->step = step;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out->message, sizeof(out->message), format, arguments);
    va_end(arguments);
}

bool same_value(const struct json *a, const struct json *b)
{
    return a->type == 0 || b->type == 0 ? a->type == b->type : json_equal(a, b);
}

static void compare_step(const struct story_step *calm, const struct story_step *now, struct story_parting *out)
{
    const char *was = step_status_name(calm->status);
    if (!now) {
        part(out, calm->path, "LOST", "%.*s was %s undisturbed and is not in the log at all", STR_ARG(calm->path), was);
        return;
    }
    if (calm->status == STEP_STATUS_SUCCESS && now->status != STEP_STATUS_SUCCESS)
        part(out, calm->path, "LOST", "%.*s was done undisturbed and is %s", STR_ARG(calm->path), step_status_name(now->status));
    else if (calm->status != now->status)
        part(out, calm->path, "PATH", "%.*s was %s undisturbed and is %s", STR_ARG(calm->path), was,
              step_status_name(now->status));
    else if (calm->attempt_count != now->attempt_count)
        part(out, calm->path, "PATH", "%.*s took %zu attempts undisturbed and took %zu", STR_ARG(calm->path), calm->attempt_count,
              now->attempt_count);
    else if (!str_eq(calm->fault.code, now->fault.code) || !str_eq(calm->skip_reason, now->skip_reason))
        part(out, calm->path, "PATH", "%.*s ended for another reason than undisturbed", STR_ARG(calm->path));
    else if (!calm->varies && !same_value(&calm->value, &now->value))
        part(out, calm->path, "OUTPUT", "the output of %.*s is another one than undisturbed", STR_ARG(calm->path));
}

bool story_same_end(const struct story *calm, const struct story *now, struct story_parting *out)
{
    *out = (struct story_parting){0};
    for (size_t i = 0; i < calm->step_count; i++)
        compare_step(&calm->steps[i], story_find(now, calm->steps[i].path), out);
    for (size_t i = 0; i < now->step_count; i++)
        if (!story_find(calm, now->steps[i].path))
            part(out, now->steps[i].path, "PATH", "%.*s is in the log and was not undisturbed", STR_ARG(now->steps[i].path));
    if (calm->run_count != now->run_count)
        part(out, (struct str){0}, "LOST", "there are %zu runs, undisturbed there were %zu", now->run_count, calm->run_count);
    for (size_t i = 0; i < calm->run_count && i < now->run_count; i++)
        if (calm->runs[i].status != now->runs[i].status)
            part(out, (struct str){0}, "PATH", "run %.*s is %s, undisturbed it was %s", STR_ARG(now->runs[i].id),
                  run_status_name(now->runs[i].status), run_status_name(calm->runs[i].status));
    return out->rule == NULL;
}
