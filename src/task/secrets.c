// Kind secrets: makes a secret known to the tasks after it. What it gives back is a mark; the value is put in its place by whichever task
// uses it, on the machine where that runs, and stands in no event.
#include "task/kind.h"

static bool reference_of(struct task_call *call, struct str *out)
{
    struct str provider = call_string(call, "provider", "env"), name = STR(""), version;
    // `name` last: it may be the task's own.
    static const char *const names[] = {"secret_name", "secret", "key", "variable", "path", "ref", "name"};
    for (size_t i = 0; !name.len && i < ARRAY_COUNT(names); i++) name = call_string(call, names[i], "");
    if (!name.len) return call_fail(call, TASK_CLIENT, "SECRET_NAME_MISSING", "secrets needs the name of the secret");
    version = call_string(call, "version", "");
    if (str_starts(name, STR("secret://")) || str_starts(name, STR("env:")) || str_starts(name, STR("file:")))
        *out = name;
    else if (str_is(provider, "env") || str_is(provider, "file"))
        *out = call_printf(call, "%.*s:%.*s", STR_ARG(provider), STR_ARG(name));
    else
        *out = call_printf(call, "secret://%.*s/%.*s%s%.*s", STR_ARG(provider), STR_ARG(name), version.len ? "@" : "",
                           STR_ARG(version));
    return true;
}

static void run(struct task_call *call)
{
    struct str reference;
    struct json value, result = json_object();
    if (!reference_of(call, &reference)) return;
    // Read now, so that a missing one fails here and not in the middle of what needs it.
    struct json mark = json_string(call_printf(call, TASK_SECRET "secret:%.*s" TASK_SECRET, STR_ARG(reference)));
    if (!call_resolve(call, &mark, &value)) return;
    struct json again = mark;
    if (!call_put(call, &result, "value", mark) || !call_put(call, &result, "secret_value", again) ||
        !call_put(call, &result, "ref", json_string(reference)))
        return;
    call->out.marks = true;
    call_done(call, result);
}

static const char *const fields[] = {"provider", "name", "secret_name", "secret",     "key", "variable",
                                     "path",     "ref",  "version",     "project_id", NULL};
const struct task_kind kind_secrets = {.name = "secrets", .fields = fields, .run = run};
