// What the tasks of playbooks are given, for readers: what is recorded with their start, what a moment of the past had, and what those
// will be given that have not begun.
#include "json/make.h"
#include "kernel/net_inside.h"

// Marks of secrets are shown as what they stand for.
static enum code unmark(struct arena *arena, const struct json *value, struct json *out, struct error *err)
{
    *out = *value;
    if (value->type == JSON_STRING && str_find(value->text, '\x01', 0) < value->text.len) {
        struct buf text SCOPED(buf_release) = buf_of(value->text.len * 2 + 64);
        bool open = false;
        for (size_t i = 0; i < value->text.len; i++) {
            char c = value->text.ptr[i];
            if (c != '\x01') {
                buf_byte(&text, c);
                continue;
            }
            buf_text(&text, open ? " }}" : "{{ ");
            open = !open;
        }
        *out = buf_ok(&text) ? json_copied(arena, buf_str(&text)) : json_failed();
        return json_made(out, err);
    }
    if (value->type != JSON_ARRAY && value->type != JSON_OBJECT) return OK;
    bool array = value->type == JSON_ARRAY;
    struct json made = array ? json_array() : json_object();
    for (uint32_t i = 0; i < value->count; i++) {
        struct json part;
        enum code rc = unmark(arena, array ? &value->items[i] : &value->members[i].value, &part, err);
        if (rc) return rc;
        if (array)
            json_append(arena, &made, part);
        else
            json_set(arena, &made, value->members[i].key, part);
    }
    *out = made;
    return json_made(out, err);
}

enum code net_record_inputs(const struct net_view *view, const struct net_task *task, struct moment *m, struct error *err)
{
    bool given = task->takes_args && view->run->net->places[view->place].given.count > 0;
    if (task->in_process || (!given && !json_key(template_tree_source(task->with), "input"))) return OK;
    struct json with, recorded;
    struct error local = {0};
    enum code rc = net_with(view, task, &with, &local);
    if (rc == E_NOMEM) return error_nomem(err);
    if (rc) return OK;
    const struct json *inputs = json_key(&with, "input");
    if (!inputs || net_weight(inputs, NET_PART_MAX) >= NET_PART_MAX) {
        m->truncated = true;
        return OK;
    }
    rc = unmark(view->arena, inputs, &recorded, err);
    if (!rc) rc = net_canon(view->arena, &recorded, err);
    if (!rc) m->value = recorded;
    return rc;
}

// ---- for readers of the past and of what is to come

// As the tool has it, or had it; of what could not be rendered what could. In known mode the undefined is noted and stays as written.
static enum code look(struct net_view *view, const struct net_task *task, bool begun, struct kernel_given *out, struct error *err)
{
    struct json seen, known;
    struct error local = {0};
    out->missing = json_array();
    view->missing = NULL;
    enum code rc = begun ? net_with(view, task, &seen, &local) : E_NOT_FOUND;
    if (net_is_grave(rc)) return error_set(err, rc, "%s", local.message);
    bool rendered = rc == OK;
    view->missing = &out->missing;
    rc = net_with(view, task, &known, err);
    return rc ? rc : unmark(view->arena, rendered ? &seen : &known, &out->with, err);
}

enum code kernel_given(const struct run *run, uint32_t lane, const struct kernel_env *env, struct arena *arena,
                       struct kernel_given *out, struct error *err)
{
    const struct walk *walk = walk_at(run, lane);
    struct net_view view = {.run = run, .env = env, .place = walk->place, .lane = lane, .arena = arena};
    *out = (struct kernel_given){.task = walk->pc, .iteration = walk->iteration, .attempt = walk->attempt};
    return look(&view, kernel_task_of(run, lane), true, out, err);
}

enum code kernel_given_ahead(const struct run *run, uint32_t place, uint32_t task, const struct kernel_env *env,
                             struct arena *arena, struct kernel_given *out, struct error *err)
{
    const struct net_step *ns = &net_of_run(run)->steps[place];
    const struct net_place *p = &run->net->places[place];
    INVARIANT(task < ns->task_count);
    // Of a visit under way what its tasks gave so far is known; of iterations it is not said which.
    struct net_view view = {.run = run, .env = env, .place = place, .lane = p->lane, .arena = arena};
    *out = (struct kernel_given){.task = task};
    return look(&view, &ns->tasks[task], false, out, err);
}

enum code kernel_loop_missing(const struct run *run, uint32_t place, const struct kernel_env *env, struct arena *arena,
                              struct json *missing, struct error *err)
{
    struct net_view view = {.run = run, .env = env, .place = place, .lane = NO_LANE, .arena = arena};
    struct template_scope scope = net_scope(&view);
    struct json value;
    *missing = json_array();
    return template_tree_known(net_of_run(run)->steps[place].loop.in, &scope, net_limits(run), arena, &value, missing, err);
}

enum code kernel_suppose(struct run *run, const struct json *inputs, struct arena *arena, struct error *err)
{
    struct fault fault;
    INVARIANT(run->net && run->status == RUN_STATUS_PENDING);
    run->start.inputs = *inputs;
    enum code rc = net_workload_of(run, arena, &run->net->workload, &fault, err);
    if (!rc && fault.code.len > 0) return error_set(err, E_INVALID, "%.*s", STR_ARG(fault.message));
    return rc;
}

bool net_suppose(struct run *run, uint32_t place, enum node_state state, const struct json *value)
{
    struct net_place *p = &run->net->places[place];
    bool loop = net_of_run(run)->steps[place].has_loop;
    p->visit = 1;
    p->failed = state == NODE_FAILED;
    p->skipped = state == NODE_SKIPPED;
    if (!loop) {
        p->value.value = *value;
        return true;
    }
    if (value->type != JSON_ARRAY || !container_make(&p->loop, value->count, value, &run->arena)) return value->type != JSON_ARRAY;
    for (uint32_t i = 0; i < value->count; i++) p->loop.results[i].value = value->items[i];
    p->looped = p->loop_over = true;
    p->loop.begun = p->loop.done = value->count;
    return true;
}
