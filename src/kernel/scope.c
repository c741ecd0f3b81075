// What a step may refer to: outputs of steps it can see, inputs of the run, a few names. Also the values others read.
#include "kernel/route.h"

const struct json *kernel_input(const struct run *run, struct str path)
{
    struct str rest;
    bool changed = run->params.type != 0 && json_get(&run->params, str_cut(path, '.', &rest));
    return json_at(changed ? &run->params : &run->start.inputs, path);
}

static const struct json *override_of(const struct run *run, uint32_t step)
{
    uint32_t attempt = kernel_attempt(run, step).logical + (kernel_state(run, step) != NODE_RUNNING);
    for (const struct run_change *c = run->changes; c; c = c->next)
        if (c->step == step) return c->override && c->logical == attempt ? c->override : NULL;
    return NULL;
}

const struct json *kernel_member(const struct run *run, uint32_t step, const char *key)
{
    const struct json *override = override_of(run, step);
    const struct json *member = override ? json_key(override, key) : NULL;
    return member ? member : json_key(&run->program->steps[step].with, key);
}

struct str kernel_queue(const struct run *run, uint32_t step)
{
    for (const struct run_change *c = run->changes; c; c = c->next)
        if (c->step == step) return c->target ? json_text(json_key(c->target, "queue")) : (struct str){0};
    return (struct str){0};
}

bool merge_values(struct arena *arena, const struct json *under, const struct json *over, struct json *out)
{
    if (!json_is(under, JSON_OBJECT) || !json_is(over, JSON_OBJECT)) {
        *out = *over;
        return true;
    }
    if (!json_object_with(arena, under->count + over->count, out)) return false;
    for (uint32_t i = 0; i < under->count; i++) {
        struct json value = under->members[i].value;
        const struct json *instead = json_get(over, under->members[i].key);
        if (instead && !merge_values(arena, &under->members[i].value, instead, &value)) return false;
        if (!json_put(arena, out, under->members[i].key, value)) return false;
    }
    for (uint32_t i = 0; i < over->count; i++)
        if (!json_get(under, over->members[i].key) &&
            !json_put(arena, out, over->members[i].key, over->members[i].value))
            return false;
    return true;
}

static uint32_t visible(const struct run *run, uint32_t from, struct str name)
{
    uint32_t scope = run->program->steps[from].scope;
    for (;;) {
        uint32_t found = program_find(run->program, scope, name);
        if (found != PROGRAM_TOP || scope == PROGRAM_TOP) return found;
        scope = run->program->steps[scope].scope;
    }
}

static bool known(void *context, struct str name)
{
    const struct kernel_scope *scope = context;
    return visible(scope->run, scope->step, name) != PROGRAM_TOP;
}

enum code kernel_output(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                        struct json *out, struct error *err)
{
    return run->route->output(run, step, env, arena, out, err);
}

enum code dag_output(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                     struct json *out, struct error *err)
{
    const struct run_node *node = &run->nodes[step];
    *out = (struct json){0};
    if (node->value) *out = *node->value;
    if (!node->blob) return OK;
    struct str bytes;
    enum code rc = env->blob(env->context, &node->blob->sha256, arena, &bytes, err);
    if (rc) return rc;
    return json_parse(bytes, &json_limits_result, arena, out, err);
}

bool kernel_output_fits(const struct run *run, uint32_t step, uint64_t *total)
{
    if (kernel_blob(run, step)) *total += kernel_blob(run, step)->size;
    return *total <= RESULT_MAX;
}

// Reading is work, and counts for the turns of tenants as templates do (ADR 0031).
static enum code charge(struct kernel_scope *scope, const struct ref *ref, uint64_t bytes, struct error *err)
{
    enum { BYTES_A_STEP = 256 };
    scope->read_bytes += bytes;
    if (scope->env && scope->env->spent) *scope->env->spent += bytes / BYTES_A_STEP;
    if (scope->read_bytes <= REFERENCES_MAX) return OK;
    return error_set(err, E_LIMIT, "with %.*s the references of this step read more than %d MiB: name fewer, or read a file of an artifact",
                     STR_ARG(ref->text), (int)(REFERENCES_MAX >> 20));
}

// The whole output of a step, read once as long as no other is asked for.
static enum code read_output(struct kernel_scope *scope, uint32_t step, const struct ref *ref, struct arena *arena,
                             struct json *out, struct error *err)
{
    const struct run_blob *blob = kernel_blob(scope->run, step);
    bool again = scope->read_in == arena && scope->read_step == step;
    enum code rc = OK;
    if (!again) {
        rc = charge(scope, ref, blob ? blob->size : 0, err);
        if (!rc) rc = kernel_output(scope->run, step, scope->env, arena, &scope->read_value, err);
        scope->read_in = rc ? NULL : arena;
        scope->read_step = step;
    }
    *out = scope->read_value;
    // what is no text is written as one each time, and a text with a path is read as JSON
    bool is_text = out->type == JSON_STRING;
    uint64_t size = is_text ? (ref->path.len ? out->text.len : 0) : blob ? blob->size : 0;
    return rc ? rc : charge(scope, ref, size, err);
}

static enum code lookup_output(struct kernel_scope *scope, const struct ref *ref, struct arena *arena,
                               struct json *out, struct error *err)
{
    const struct run *run = scope->run;
    uint32_t step = visible(run, scope->step, ref->node);
    if (step == PROGRAM_TOP)
        return error_set(err, E_NOT_FOUND, "%.*s: there is no step \"%.*s\"", STR_ARG(ref->text), STR_ARG(ref->node));
    switch ((int)kernel_state(run, step)) {
    case NODE_SUCCESS:
        break;
    case NODE_SKIPPED:
        *out = json_null();
        return OK;
    case NODE_FAILED:
        if (!scope->strict) {
            *out = json_null();
            return OK;
        }
        return error_set(err, E_CONFLICT, "%.*s: step \"%.*s\" failed and has no output", STR_ARG(ref->text),
                         STR_ARG(ref->node));
    default:
        return error_set(err, E_CONFLICT, "%.*s: step \"%.*s\" has not ended; depend on it to use its output",
                         STR_ARG(ref->text), STR_ARG(ref->node));
    }
    struct json whole;
    enum code rc = read_output(scope, step, ref, arena, &whole, err);
    if (rc) return rc;
    if (whole.type == 0) whole = json_null();
    if (ref->path.len == 0) {
        *out = whole;
        return OK;
    }
    rc = expr_field(&whole, ref->path, arena, out, err);
    if (rc == E_NOT_FOUND) error_wrap(err, "%.*s", STR_ARG(ref->text));
    return rc;
}

static enum code lookup(void *context, const struct ref *ref, struct arena *arena, struct json *out, struct error *err)
{
    struct kernel_scope *scope = context;
    const struct run *run = scope->run;
    switch (ref->kind) {
    case REF_OUTPUT:
        return lookup_output(scope, ref, arena, out, err);
    case REF_INPUT: {
        const struct json *value = kernel_input(run, ref->path);
        if (!value)
            return error_set(err, E_NOT_FOUND, "%.*s: the run has no such input; give it with --set %.*s=VALUE",
                             STR_ARG(ref->text), STR_ARG(ref->path));
        *out = *value;
        return OK;
    }
    case REF_ARGUMENTS:
        *out = json_string(run->start.arguments);
        return OK;
    case REF_WORKFLOW_ID:
        *out = json_string(run->ids.run);
        return OK;
    case REF_ARTIFACTS_DIR:
        *out = json_string(run_artifacts_dir(run));
        return OK;
    }
    return error_set(err, E_NOT_FOUND, "%.*s: unknown reference", STR_ARG(ref->text));
}

struct scope kernel_scope(struct kernel_scope *scope)
{
    return (struct scope){.context = scope, .known = known, .lookup = lookup};
}

enum code kernel_render(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                        struct json *out, struct error *err)
{
    const struct program_step *ps = &run->program->steps[step];
    struct kernel_scope context = {.run = run, .step = step, .env = env};
    struct scope scope = kernel_scope(&context);
    struct error local = {0};
    if (!err) err = &local;
    struct json with = ps->with;
    const struct json *override = override_of(run, step);
    if (override && !merge_values(arena, &ps->with, override, &with)) return error_nomem(err);
    if (!json_object_with(arena, with.count + 1, out)) return error_nomem(err);
    for (uint32_t i = 0; i < with.count; i++) {
        const struct json_member *member = &with.members[i];
        struct json value = member->value;
        if (!step_is_shell_text(ps, &with, member->key)) {
            // Code in other languages is one text: a lone reference in it must not become a JSON value.
            bool text = ps->kind == STEP_SCRIPT && str_is(member->key, "code");
            enum code rc;
            if (text) {
                struct str rendered;
                rc = subst_text(json_text(&value), &scope, arena, &rendered, err);
                if (!rc) value = json_string(rendered);
            } else {
                rc = subst_json(&member->value, &scope, arena, &value, err);
            }
            if (rc) return rc;
        }
        if (!json_put(arena, out, member->key, value)) return error_nomem(err);
    }
    return OK;
}

enum { VALUE_TOLD_MAX = 80 };

struct str when_told(struct decide *d, uint32_t step, const struct when_step *trace)
{
    const struct program_step *ps = &d->run->program->steps[step];
    size_t count;
    (void)when_atoms(ps->when, &count);
    struct buf buf SCOPED(buf_release) = buf_of(4096);
    buf_add(&buf, ps->when_text);
    for (size_t i = 0; i < count; i++) {
        buf_text(&buf, i == 0 ? " with " : ", ");
        struct str left = str_head(trace[i].left, VALUE_TOLD_MAX);
        buf_printf(&buf, "%.*s = '%.*s'", STR_ARG(trace[i].atom->left.text), (int)left.len, left.ptr ? left.ptr : "");
    }
    struct str told = ps->when_text;
    if (buf_ok(&buf) && str_utf8(buf_str(&buf))) {
        struct str copy = arena_copy(d->out->turn, buf_str(&buf));
        if (copy.ptr) told = copy;
    }
    return told;
}
