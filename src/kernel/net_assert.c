// What a task says about itself: the inputs that it needs, and the members that its result has.
#include "kernel/net_inside.h"

enum { SHOWN_MAX = 20 }; // names in a message

static bool has_input(const struct json *with, struct str name)
{
    const struct json *input = json_key(with, "input");
    return json_get(with, name) || (json_is(input, JSON_OBJECT) && json_get(input, name));
}

// As references find it: in the result, in what it wraps, in the first row of a table, or of a path.
static bool has_member(const struct json *result, struct str name, uint32_t depth)
{
    static const char *const wraps[] = {"data", "result", "output"};
    if (json_is(result, JSON_ARRAY)) return result->count > 0 && has_member(&result->items[0], name, depth);
    if (!json_is(result, JSON_OBJECT)) return false;
    if (json_get(result, name) || json_at(result, name)) return true;
    for (size_t i = 0; depth > 0 && i < ARRAY_COUNT(wraps); i++)
        if (has_member(json_key(result, wraps[i]), name, depth - 1)) return true;
    for (uint32_t i = 0; depth > 0 && json_key(result, "command_0") && i < result->count; i++) // statements of SQL
        if (has_member(&result->members[i].value, name, depth - 1)) return true;
    return false;
}

static void tell_names(struct buf *out, const struct json *object)
{
    bool any = json_is(object, JSON_OBJECT) && object->count > 0;
    for (uint32_t i = 0; any && i < object->count && i < SHOWN_MAX; i++)
        buf_printf(out, "%s%.*s", i ? ", " : "", STR_ARG(object->members[i].key));
    if (any && object->count > SHOWN_MAX) buf_text(out, ", ...");
    if (!any) buf_text(out, "none");
}

static const char *word(const struct json *value)
{
    switch (value ? (int)value->type : JSON_NULL) {
    case JSON_ARRAY:
        return value->count == 0 ? "an empty list" : "a list";
    case JSON_OBJECT:
        return "a mapping";
    case JSON_STRING:
        return "a text";
    case JSON_BOOL:
        return "true or false";
    case JSON_NULL:
        return "nothing";
    default:
        return "a number";
    }
}

static enum code made_fault(struct arena *arena, const char *code, struct buf *message, struct fault *out,
                            struct error *err)
{
    struct str text = buf_ok(message) ? arena_copy(arena, buf_str(message)) : (struct str){0};
    buf_release(message);
    *out = (struct fault){.code = str_from(code), .message = text, .category = STR("schema")};
    return text.ptr ? OK : error_nomem(err);
}

static void tell_missing(struct buf *out, const char *what, struct str name)
{
    buf_printf(out, "%s%.*s", buf_str(out).len > 0 ? ", " : what, STR_ARG(name));
}

enum code assert_inputs(const struct net_task *task, const struct json *with, struct arena *arena, struct fault *out,
                        struct error *err)
{
    struct buf message SCOPED(buf_release) = buf_of(64 * 1024);
    for (uint32_t i = 0; i < task->expects.count; i++)
        if (!has_input(with, task->expects.items[i]))
            tell_missing(&message, "the task expects inputs that it was not given: ", task->expects.items[i]);
    if (buf_str(&message).len == 0) return OK;
    buf_text(&message, "; its inputs are: ");
    tell_names(&message, json_key(with, "input"));
    return made_fault(arena, ASSERT_EXPECTS, &message, out, err);
}

enum code assert_result(const struct net_task *task, const struct json *result, struct arena *arena, struct fault *out,
                        struct error *err)
{
    struct buf message SCOPED(buf_release) = buf_of(64 * 1024);
    for (uint32_t i = 0; i < task->returns.count; i++)
        if (!has_member(result, task->returns.items[i], 2))
            tell_missing(&message, "the result lacks what the task says it returns: ", task->returns.items[i]);
    if (buf_str(&message).len == 0) return OK;
    if (json_is(result, JSON_OBJECT)) {
        buf_text(&message, "; its members are: ");
        tell_names(&message, result);
    } else {
        buf_printf(&message, "; it is %s", word(result));
    }
    return made_fault(arena, ASSERT_RETURNS, &message, out, err);
}
