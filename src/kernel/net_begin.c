// How a playbook's run begins: its workload, which the start may change, and whose values may be made of each other.
#include "json/make.h"
#include "kernel/net_inside.h"

struct beginning {
    const struct run *run;
    struct arena *arena;
    struct json known; // what came of the workload so far; type 0: nothing
};

// A value of the workload, which may be a template itself: then what came of it so far, or NULL.
static const struct json *settled(const struct beginning *beginning, struct str name, const struct json *written)
{
    const struct json *known = json_get(&beginning->known, name);
    bool template = json_is(written, JSON_STRING) && template_is_dynamic(written->text);
    return known || template ? known : written;
}

// What the start gave over what the workload has.
static enum code known_workload(const struct beginning *beginning, struct json *out, struct error *err)
{
    const struct run *run = beginning->run;
    struct arena *arena = beginning->arena;
    struct json plain = json_object();
    for (uint32_t i = 0; i < run->program->inputs.count; i++) {
        const struct json_member *member = &run->program->inputs.members[i];
        const struct json *value = settled(beginning, member->key, &member->value);
        if (value && !json_put(arena, &plain, member->key, *value)) return error_nomem(err);
    }
    return merge_values(arena, &plain, &run->start.inputs, out) ? OK : error_nomem(err);
}

static enum code look_input(void *context, struct str name, struct json *out, struct error *err)
{
    const struct beginning *beginning = context;
    const struct run *run = beginning->run;
    const struct json *given = &run->start.inputs;
    if (str_is(name, "input") || str_is(name, "payload") || str_is(name, "request")) *out = *given;
    if (str_is(name, "execution_id")) *out = json_string(run->ids.run);
    if (str_is(name, "job") || str_is(name, "execution")) *out = net_job(run, beginning->arena);
    if (!json_ok(out)) return error_nomem(err);
    if (str_is(name, TEMPLATE_NOW)) return net_now(run, beginning->arena, out, err);
    if (str_is(name, "workload") && !json_get(given, name) && !json_get(&run->program->inputs, name))
        return known_workload(beginning, out, err);
    const struct json *value = json_get(given, name);
    if (!value) value = settled(beginning, name, json_get(&run->program->inputs, name)); // one beside it
    if (value && !(value->type == JSON_STRING && template_is_dynamic(value->text))) *out = *value;
    return OK;
}

// Values that are made of others that are templates come out in the next round, a few levels deep.
static enum code render_workload(struct beginning *beginning, struct json *out, struct error *err)
{
    enum { ROUNDS_MAX = 8 };
    const struct kernel_env *env = beginning->run->env;
    struct template_scope scope = {.context = beginning, .lookup = look_input, .spent = env ? env->spent : NULL};
    const struct template_tree *workload = net_of_run(beginning->run)->workload;
    for (int i = 0; i < ROUNDS_MAX; i++) {
        enum code rc = template_tree_render(workload, &scope, &net_limits, beginning->arena, out, err);
        if (rc || !template_tree_dynamic(workload)) return rc;
        if (beginning->known.type != 0 && json_equal(&beginning->known, out)) break;
        beginning->known = *out;
    }
    return OK;
}

// Marks of secrets come of templates alone: the caller that starts a run cannot ask for one by writing it into an input.
static bool without_marks(struct arena *arena, const struct json *value, struct json *out)
{
    *out = *value;
    if (value->type == JSON_STRING) {
        if (str_find(value->text, '\x01', 0) == value->text.len) return true;
        char *text = arena_alloc(arena, value->text.len);
        for (size_t i = 0; text && i < value->text.len; i++) {
            char c = value->text.ptr[i];
            text[i] = c == '\x01' ? ' ' : c;
        }
        *out = json_string((struct str){text, value->text.len});
        return text != NULL;
    }
    bool array = value->type == JSON_ARRAY;
    if (!array && value->type != JSON_OBJECT) return true;
    struct json made = array ? json_array() : json_object();
    for (uint32_t i = 0; i < value->count; i++) {
        struct json part;
        if (!without_marks(arena, array ? &value->items[i] : &value->members[i].value, &part)) return false;
        if (!(array ? json_push(arena, &made, part) : json_put(arena, &made, value->members[i].key, part)))
            return false;
    }
    *out = made;
    return true;
}

// `out` is empty when there is a fault.
static enum code make_workload(const struct run *run, struct arena *arena, struct json *out, struct fault *fault,
                               struct error *err)
{
    struct beginning beginning = {.run = run, .arena = arena};
    struct error local = {0};
    *fault = (struct fault){0};
    enum code rc = render_workload(&beginning, out, &local);
    if (net_is_grave(rc)) return error_set(err, rc, "%s", local.message);
    if (!rc) return OK;
    *fault = kernel_template_fault(arena, &local);
    *out = json_object();
    return OK;
}

enum code kernel_workload_fault(const struct run *run, struct arena *arena, struct fault *out, struct error *err)
{
    struct json made;
    *out = (struct fault){0};
    return run->program->net ? make_workload(run, arena, &made, out, err) : OK;
}

enum code net_begin(struct decide *d)
{
    struct run *run = d->run;
    struct moment m = moment_of(d, MOMENT_RUN_STARTED, PROGRAM_TOP);
    struct json rendered, given, whole;
    struct fault fault;
    enum code rc = make_workload(run, d->out->turn, &rendered, &fault, d->err);
    if (rc) return rc;
    if (!merge_values(d->out->turn, &rendered, &run->start.inputs, &given) ||
        !without_marks(d->out->turn, &given, &whole))
        return error_nomem(d->err);
    rc = net_canon(d->out->turn, &whole, d->err);
    m.value = whole;
    if (!rc) rc = net_emit(d, &m);
    m = moment_of(d, MOMENT_WORKFLOW_STARTED, PROGRAM_TOP);
    if (!rc) rc = net_emit(d, &m);
    if (rc || fault.code.len == 0) return rc;
    return run_end(d, MOMENT_RUN_FAILED, &(struct cause){.name = STR(NET_WORKLOAD), .fault = fault});
}
