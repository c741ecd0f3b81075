// Numbers of a net that are templates: rendered where they apply. What renders to nothing is as if it was not given.
#include "kernel/net_inside.h"

static enum code render(struct net_view *view, const struct template_tree *made, const char *name, struct json *out,
                        struct fault *fault, struct error *err)
{
    struct template_scope scope = net_scope(view);
    struct error local = {0};
    enum code rc = template_tree_render(made, &scope, net_limits(view->run), view->arena, out, &local);
    if (net_is_grave(rc)) return error_set(err, rc, "%s", local.message);
    if (!rc) return OK;
    *out = json_null();
    error_wrap(&local, "\"%s\"", name);
    *fault = kernel_template_fault(view->arena, &local);
    return OK;
}

static bool is_nothing(const struct json *value)
{
    return value->type == JSON_NULL || (value->type == JSON_STRING && str_trim(value->text).len == 0);
}

static enum code wrong(struct net_view *view, const char *name, struct str what, const struct json *value,
                       struct fault *fault, struct error *err)
{
    enum { SHOWN_MAX = 80 };
    struct buf shown SCOPED(buf_release) = buf_of(1 << 20);
    struct buf text SCOPED(buf_release) = buf_of(1024);
    json_write(&shown, value);
    struct str seen = buf_ok(&shown) ? str_slice(buf_str(&shown), 0, SHOWN_MAX) : STR("something large");
    while (seen.len > 0 && !str_utf8(seen)) seen.len--; // cut in the middle of a character, perhaps
    buf_printf(&text, "\"%s\" must be %.*s, and it is %.*s", name, STR_ARG(what), STR_ARG(seen));
    struct str why = buf_ok(&text) ? arena_copy(view->arena, buf_str(&text)) : (struct str){0};
    *fault = (struct fault){.code = STR("TEMPLATE_ERROR"), .message = why, .category = STR("validation")};
    return why.ptr ? OK : error_nomem(err);
}

enum code net_ms(struct net_view *view, const struct template_tree *made, const char *name, int64_t *ms,
                 struct fault *fault, struct error *err)
{
    struct json value;
    if (!made) return OK;
    enum code rc = render(view, made, name, &value, fault, err);
    if (rc || is_nothing(&value) || net_seconds(&value, ms) == OK) return rc;
    return wrong(view, name, STR("a number of seconds from 0 to ten years"), &value, fault, err);
}

enum code net_many(struct net_view *view, const struct template_tree *made, const char *name, uint32_t max,
                   uint32_t *count, struct fault *fault, struct error *err)
{
    struct json value;
    int64_t number;
    if (!made) return OK;
    enum code rc = render(view, made, name, &value, fault, err);
    if (rc || is_nothing(&value)) return rc;
    if (net_count(&value, 1, max, &number) == OK) {
        *count = (uint32_t)number;
        return OK;
    }
    struct buf what SCOPED(buf_release) = buf_of(64);
    buf_printf(&what, "a whole number from 1 to %u", max);
    return wrong(view, name, buf_str(&what), &value, fault, err);
}

// A mapping is of the parts of a request: the tool's.
enum code task_timeout(struct net_view *view, const struct net_task *task, int64_t *ms, struct fault *fault,
                       struct error *err)
{
    struct json value;
    *ms = task->timeout_ms;
    if (!task->timeout_of) return OK;
    enum code rc = render(view, task->timeout_of, "timeout", &value, fault, err);
    if (rc || is_nothing(&value) || value.type == JSON_OBJECT || net_seconds(&value, ms) == OK) return rc;
    return wrong(view, "timeout", STR("a number of seconds from 0 to ten years"), &value, fault, err);
}

enum code kernel_timeout(const struct run *run, uint32_t index, const struct kernel_env *env, struct arena *arena,
                         int64_t *ms, struct error *err)
{
    const struct net_task *task = kernel_task_of(run, index);
    struct net_view view = {.run = run, .env = env, .place = walk_at(run, index)->place, .lane = index, .arena = arena};
    struct fault fault = {0}; // recorded when the attempt was started
    return task_timeout(&view, task, ms, &fault, err);
}

bool net_as_seconds(struct arena *arena, int64_t ms, struct json *out)
{
    char text[32];
    size_t len = json_double_format((double)ms / 1000.0, text);
    struct str kept = arena_copy(arena, (struct str){text, len});
    *out = ms % 1000 == 0 ? json_int(ms / 1000) : json_number(kept);
    return kept.ptr;
}
