// JSON documents: the order of the fields as docs/format lists them, two blanks, short values on one line.
#include "author/fmt.h"

enum { LINE_MAX = 100 };

static const char *const top_keys[] = {"$schema",
                                       "apiVersion",
                                       "kind",
                                       "metadata",
                                       "planId",
                                       "planVersion",
                                       "schemaVersion",
                                       "targetAdapter",
                                       "requiresCapabilities",
                                       "fallbackBehavior",
                                       "requiresApproval",
                                       "onStepFailure",
                                       "name",
                                       "path",
                                       "description",
                                       "version",
                                       "tags",
                                       "executor",
                                       "keychain",
                                       "workload",
                                       "inputs",
                                       "triggers",
                                       NULL};
static const char *const last_keys[] = {"steps", "nodes", "workbook", "workflow", NULL};
static const char *const book_keys[] = {"step", "desc", "spec", "loop", "input", "args", "tool", NULL};
static const char *const book_last_keys[] = {"set", "set_ctx", "set_iter", "next", NULL};
static const char *const step_keys[] = {"stepId",
                                        "id",
                                        "name",
                                        "description",
                                        "kind",
                                        "type",
                                        "with",
                                        "config",
                                        "bash",
                                        "script",
                                        "runtime",
                                        "approval",
                                        "cancel",
                                        "workflow",
                                        "loop_group",
                                        "wait",
                                        "exec",
                                        "echo",
                                        "merge",
                                        "noop",
                                        "use",
                                        "env",
                                        "cwd",
                                        "dependsOn",
                                        "dependencies",
                                        "depends_on",
                                        "triggerRule",
                                        "trigger_rule",
                                        "when",
                                        "retry",
                                        "retryPolicy",
                                        "timeout",
                                        "timeoutMs",
                                        "onStepFailure",
                                        "always_run",
                                        "secrets",
                                        "artifacts",
                                        "output",
                                        "compensate",
                                        "simulateError",
                                        NULL};
static const char *const retry_keys[] = {"maxAttempts", "max_attempts", "delay",         "delayMs", "delay_ms",
                                         "backoff",     "maxDelay",     "maxDelayMs",    "jitter",  "on",
                                         "on_error",    "nonRetryable", "non_retryable", NULL};
static const char *const loop_keys[] = {"max_iterations", "until_bash", NULL};

static uint32_t place_in(const char *const *keys, struct str key)
{
    uint32_t i = 0;
    while (keys[i] && !str_is(key, keys[i])) i++;
    return i;
}

// Stable: what the list does not know stays where it is among its like, before what comes last.
static bool sort_keys(struct json *object, const char *const *keys, const char *const *last, struct arena *arena)
{
    struct json_member *sorted = ARENA_ARRAY(arena, object->count + 1, struct json_member);
    uint32_t count = 0;
    if (!sorted) return false;
    for (uint32_t k = 0; keys[k]; k++)
        for (uint32_t i = 0; i < object->count; i++)
            if (str_is(object->members[i].key, keys[k])) sorted[count++] = object->members[i];
    for (uint32_t i = 0; i < object->count; i++) {
        bool known = keys[place_in(keys, object->members[i].key)] != NULL;
        bool late = last && last[place_in(last, object->members[i].key)] != NULL;
        if (!known && !late) sorted[count++] = object->members[i];
    }
    for (uint32_t k = 0; last && last[k]; k++)
        for (uint32_t i = 0; i < object->count; i++)
            if (str_is(object->members[i].key, last[k])) sorted[count++] = object->members[i];
    INVARIANT(count == object->count);
    object->members = sorted;
    return true;
}

static struct json *member(struct json *object, const char *key)
{
    for (uint32_t i = 0; object->type == JSON_OBJECT && i < object->count; i++)
        if (str_is(object->members[i].key, key)) return &object->members[i].value;
    return NULL;
}

static bool order_steps(struct json *steps, struct arena *arena)
{
    for (uint32_t i = 0; steps && steps->type == JSON_ARRAY && i < steps->count; i++) {
        struct json *step = &steps->items[i];
        if (step->type != JSON_OBJECT) continue;
        if (!sort_keys(step, step_keys, NULL, arena)) return false;
        struct json *retry = member(step, "retry");
        if (!retry) retry = member(step, "retryPolicy");
        if (retry && retry->type == JSON_OBJECT && !sort_keys(retry, retry_keys, NULL, arena)) return false;
        struct json *loop = member(step, "loop_group");
        if (!loop || loop->type != JSON_OBJECT) continue;
        if (!sort_keys(loop, loop_keys, last_keys, arena) || !order_steps(member(loop, "nodes"), arena)) return false;
    }
    return true;
}

static bool order_workflow(struct json *steps, struct arena *arena)
{
    for (uint32_t i = 0; steps && steps->type == JSON_ARRAY && i < steps->count; i++)
        if (steps->items[i].type == JSON_OBJECT && !sort_keys(&steps->items[i], book_keys, book_last_keys, arena))
            return false;
    return true;
}

static void write_flat(struct buf *out, const struct json *value)
{
    if (value->type == JSON_OBJECT && value->count > 0) {
        buf_text(out, "{ ");
        for (uint32_t i = 0; i < value->count; i++) {
            if (i) buf_text(out, ", ");
            json_write_string(out, value->members[i].key);
            buf_text(out, ": ");
            write_flat(out, &value->members[i].value);
        }
        buf_text(out, " }");
    } else if (value->type == JSON_ARRAY) {
        buf_byte(out, '[');
        for (uint32_t i = 0; i < value->count; i++) {
            if (i) buf_text(out, ", ");
            write_flat(out, &value->items[i]);
        }
        buf_byte(out, ']');
    } else {
        json_write(out, value);
    }
}

static void indent(struct buf *out, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++) buf_text(out, "  ");
}

// `column`: where the value starts; `always_open`: the document and its list of steps.
static void write_value(struct buf *out, const struct json *value, uint32_t depth, size_t line_start, bool always_open)
{
    bool holds = (value->type == JSON_OBJECT || value->type == JSON_ARRAY) && value->count > 0;
    size_t start = out->len;
    if (!holds || !always_open) {
        write_flat(out, value);
        if (!holds || out->len - line_start <= LINE_MAX) return;
        out->len = start; // too long: again, on several lines
    }
    bool object = value->type == JSON_OBJECT;
    buf_text(out, object ? "{\n" : "[\n");
    for (uint32_t i = 0; i < value->count; i++) {
        size_t line = out->len;
        indent(out, depth + 1);
        const struct json *child = object ? &value->members[i].value : &value->items[i];
        bool list = false;
        if (object) {
            json_write_string(out, value->members[i].key);
            buf_text(out, ": ");
            list = depth == 0 && (str_is(value->members[i].key, "metadata") ||
                                  last_keys[place_in(last_keys, value->members[i].key)] != NULL);
        }
        write_value(out, child, depth + 1, line, list);
        buf_text(out, i + 1 < value->count ? ",\n" : "\n");
    }
    indent(out, depth);
    buf_byte(out, object ? '}' : ']');
}

enum code fmt_json(struct str text, struct arena *arena, struct buf *out, struct error *err)
{
    struct json tree, copy;
    enum code rc = json_parse(text, NULL, arena, &tree, err);
    if (rc) return rc;
    if (!json_copy(arena, &tree, &copy)) return error_nomem(err);
    bool ok = copy.type != JSON_OBJECT || sort_keys(&copy, top_keys, last_keys, arena);
    struct json *metadata = member(&copy, "metadata");
    if (ok && metadata && metadata->type == JSON_OBJECT) ok = sort_keys(metadata, top_keys, NULL, arena);
    ok = ok && order_steps(member(&copy, "steps"), arena) && order_steps(member(&copy, "nodes"), arena) &&
         order_workflow(member(&copy, "workflow"), arena);
    write_value(out, &copy, 0, 0, true);
    buf_byte(out, '\n');
    return ok && buf_ok(out) ? OK : error_nomem(err);
}
