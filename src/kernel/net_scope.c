// What the templates of a playbook see, and how variables are kept.
#include "json/make.h"
#include "kernel/net_inside.h"

#include "base/civil.h"

#include <string.h>

#define NET_LIMITS(how)                                                                                                \
    {.step_count_max = 100000,                                                                                         \
     .loop_count_max = 1000000,                                                                                        \
     .output_size_max = (size_t)8 << 20,                                                                               \
     .undefined = (how)}

const struct template_limits *net_limits(const struct run *run)
{
    static const struct template_limits usual = NET_LIMITS(TEMPLATE_CHAIN), strict = NET_LIMITS(TEMPLATE_STRICT);
    return net_of_run(run)->strict ? &strict : &usual;
}

// ---- values
// Whether the log gives the value back as it is. The text of a JSON_NUMBER may not be the canonical one.
static bool is_canonical(const struct json *value, uint32_t depth)
{
    bool object = value->type == JSON_OBJECT;
    if (!object && value->type != JSON_ARRAY) return value->type != JSON_NUMBER && value->type != TEMPLATE_UNDEFINED;
    for (uint32_t i = 0; i < value->count; i++) {
        if (depth == 0 || !is_canonical(object ? &value->members[i].value : &value->items[i], depth - 1)) return false;
        if (object && i > 0 && str_cmp(value->members[i - 1].key, value->members[i].key) >= 0) return false;
    }
    return true;
}

enum code net_canon(struct arena *arena, struct json *value, struct error *err)
{
    if (value->type == 0) return OK;
    if (is_canonical(value, 8)) { // what it borrows from, a lane or a place, may end before the event is written
        struct json copy;
        if (!json_copy(arena, value, &copy)) return error_nomem(err);
        *value = copy;
        return OK;
    }
    struct buf bytes SCOPED(buf_release) = buf_of((size_t)64 << 20);
    json_canon(&bytes, value);
    struct str kept = buf_ok(&bytes) ? arena_copy(arena, buf_str(&bytes)) : (struct str){0};
    bool ok = buf_ok(&bytes);
    if (!ok) return error_set(err, E_INVALID, "a value that JSON cannot hold, or one of more than 64 MiB");
    if (!kept.ptr) return error_nomem(err);
    return json_parse(kept, &json_limits_result, arena, value, err);
}

struct fault kernel_template_fault(struct arena *arena, const struct error *why)
{
    const char *gone = strstr(why->message, KERNEL_GONE);
    struct str told = arena_copy(arena, str_from(gone ? gone + strlen(KERNEL_GONE) : why->message));
    return (struct fault){.code = gone ? STR("REFERENCE_NOT_AVAILABLE") : STR("TEMPLATE_ERROR"),
                          .message = told.ptr ? told : STR("a template cannot be rendered"),
                          .category = STR("validation")};
}

enum code net_now(const struct run *run, struct arena *arena, struct json *out, struct error *err)
{
    char text[CIVIL_SIZE];
    civil_format(run->net->now_ms, text);
    struct str kept = arena_copy(arena, str_from(text));
    *out = json_string(kept);
    return kept.ptr ? OK : error_nomem(err);
}

// ---- patches: "a.b.c" makes objects on its way
// The object with this member, in canonical order, so that the state is what the log gives back.
static struct json put_in_order(struct arena *arena, const struct json *object, struct str key, struct json value)
{
    uint32_t count = json_is(object, JSON_OBJECT) ? object->count : 0;
    struct json made = json_object();
    bool placed = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct json_member *member = &object->members[i];
        if (!placed && str_cmp(key, member->key) <= 0) {
            json_set(arena, &made, key, value);
            placed = true;
        }
        if (!str_eq(member->key, key)) json_set(arena, &made, member->key, member->value);
    }
    if (!placed) json_set(arena, &made, key, value);
    return made;
}

static enum code put_path(struct arena *arena, const struct json *object, struct str path, const struct json *value,
                          struct json *out, struct error *err)
{
    struct str rest, key = str_cut(path, '.', &rest);
    bool deeper = key.len < path.len;
    const struct json *have = json_is(object, JSON_OBJECT) ? json_get(object, key) : NULL;
    struct json inner = *value;
    if (deeper) {
        enum code rc = put_path(arena, have, rest, value, &inner, err);
        if (rc) return rc;
    }
    *out = put_in_order(arena, object, key, inner);
    return json_made(out, err);
}

enum code net_patched(struct arena *arena, const struct json *object, const struct json *patches, struct json *out,
                      struct error *err)
{
    *out = *object;
    for (uint32_t i = 0; json_is(patches, JSON_OBJECT) && i < patches->count; i++) {
        struct json next;
        enum code rc = put_path(arena, out, patches->members[i].key, &patches->members[i].value, &next, err);
        if (rc) return rc;
        *out = next;
    }
    return OK;
}

enum code net_patches(struct net_view *view, const struct net_sets *sets, struct json *out, struct error *err)
{
    static const char *const scopes[] = {[NET_CTX] = "ctx", [NET_ITER] = "iter"};
    struct json groups[] = {[NET_CTX] = json_object(), [NET_ITER] = json_object()};
    for (int k = NET_CTX; k <= NET_ITER; k++) {
        const struct json *have = json_key(out, scopes[k]);
        if (have) groups[k] = *have;
    }
    struct json ctx = view->ctx ? *view->ctx : view->run->net->ctx;
    const struct json *outer = view->ctx;
    enum code rc = OK;
    for (uint32_t i = 0; !rc && i < sets->count; i++) {
        const struct net_set *set = &sets->items[i];
        view->ctx = &ctx;
        struct template_scope scope = net_scope(view);
        struct json value;
        rc = template_tree_render(set->value, &scope, net_limits(view->run), view->arena, &value, err);
        if (!rc) rc = net_canon(view->arena, &value, err);
        if (!rc) groups[set->scope] = put_in_order(view->arena, &groups[set->scope], set->path, value);
        if (!rc) rc = json_made(&groups[set->scope], err);
        if (!rc && set->scope == NET_CTX) {
            struct json next;
            rc = put_path(view->arena, &ctx, set->path, &value, &next, err);
            if (!rc) ctx = next;
        }
        if (rc && rc != E_NOMEM) error_wrap(err, "set %s.%.*s", scopes[set->scope], STR_ARG(set->path));
    }
    view->ctx = outer;
    if (rc) return rc;
    *out = JSON_OF(view->arena, {scopes[NET_CTX], json_filled(groups[NET_CTX])},
                   {scopes[NET_ITER], json_filled(groups[NET_ITER])});
    return json_made(out, err);
}

// ---- names
#define KEYCHAIN_WHOLE                                                                                                 \
    "__entry__" // of the object that an entry is in templates: stands for all of it (task/keychain.c)

static enum code keychain_mark(struct arena *arena, struct str name, struct str field, struct json *entry,
                               struct error *err)
{
    if (json_get(entry, field)) return OK;
    struct buf text = buf_of(1024);
    bool whole = str_is(field, KEYCHAIN_WHOLE);
    buf_printf(&text, "\x01keychain:%.*s%s%.*s\x01", STR_ARG(name), whole ? "" : ".", whole ? 0 : (int)field.len,
               field.ptr);
    struct str mark = buf_keep(&text, arena);
    return mark.ptr && json_put(arena, entry, field, json_string(mark)) ? OK : error_nomem(err);
}

// Credentials and answers of token endpoints have fields that only those know who execute tasks.
static enum code keychain_field(const struct net_view *view, const struct json *entry, struct str field,
                                struct json *out, struct error *err)
{
    static const char *const known[] = {"static", "bearer", "env", "file", "secret_manager"};
    struct str whole = json_text(json_key(entry, KEYCHAIN_WHOLE)), prefix = STR("\x01keychain:");
    const struct json *entries = &net_of_run(view->run)->keychain;
    if (whole.len <= prefix.len + 1) return OK;
    struct str name = str_slice(whole, prefix.len, whole.len - 1);
    for (uint32_t i = 0; json_is(entries, JSON_ARRAY) && i < entries->count; i++) {
        const struct json *one = &entries->items[i];
        if (!str_eq(json_text(json_key(one, "name")), name)) continue;
        bool closed = json_is(json_key(one, "map"), JSON_OBJECT);
        for (size_t k = 0; k < ARRAY_COUNT(known); k++) closed |= str_is(json_text(json_key(one, "kind")), known[k]);
        if (closed) return OK;
        struct json made = json_object();
        enum code rc = keychain_mark(view->arena, name, field, &made, err);
        if (!rc) *out = made.members[0].value;
        return rc;
    }
    return OK;
}

// Marks instead of values: the executor of the task puts the secrets in their places.
static enum code keychain(const struct net_view *view, struct json *out, struct error *err)
{
    static const char *const fields[] = {"token", "access_token", "value", "id_token", "username", "password"};
    const struct json *entries = &net_of_run(view->run)->keychain;
    struct json made = json_object();
    for (uint32_t i = 0; json_is(entries, JSON_ARRAY) && i < entries->count; i++) {
        struct str name = json_text(json_key(&entries->items[i], "name"));
        const struct json *map = json_key(&entries->items[i], "map");
        struct json entry = json_object();
        enum code rc = OK;
        for (uint32_t k = 0; !rc && json_is(map, JSON_OBJECT) && k < map->count; k++)
            rc = keychain_mark(view->arena, name, map->members[k].key, &entry, err);
        for (size_t k = 0; !rc && k < ARRAY_COUNT(fields); k++)
            rc = keychain_mark(view->arena, name, str_from(fields[k]), &entry, err);
        if (!rc) rc = keychain_mark(view->arena, name, STR(KEYCHAIN_WHOLE), &entry, err);
        if (rc) return rc;
        if (!json_put(view->arena, &made, name, entry)) return error_nomem(err);
    }
    *out = made;
    return OK;
}

#define ITER_ABOVE "_iter" // an input of a child: `iter` of what runs it

bool net_iter(const struct net_view *view, struct json *out)
{
    const struct run *run = view->run;
    const struct walk *lane = view->lane == NO_LANE ? NULL : walk_at(run, view->lane);
    if (!lane) return false;
    *out = lane->iter;
    const struct json *above = json_get(&run->net->workload, STR(ITER_ABOVE));
    if (lane->iteration == 0 && !json_is(above, JSON_OBJECT)) return true;
    const struct net_place *p = &run->net->places[lane->place];
    const struct net_loop *loop = &net_of_run(run)->steps[lane->place].loop;
    struct json made = json_object();
    bool known = lane->iteration > 0 && lane->iteration <= p->loop.items.count;
    struct json item = known ? p->loop.items.items[lane->iteration - 1] : json_null();
    const struct json_member given[] = {
        {.key = loop->iterator, .value = item},
        {.key = STR("index"), .value = json_int((int64_t)lane->iteration - 1)},
        {.key = STR("_index"), .value = json_int((int64_t)lane->iteration - 1)},
        {.key = STR("_first"), .value = json_bool(lane->iteration == 1)},
        {.key = STR("_last"), .value = json_bool(lane->iteration == p->loop.items.count)},
    };
    for (size_t i = 0; lane->iteration > 0 && json_ok(&made) && i < ARRAY_COUNT(given); i++)
        if (!json_get(&lane->iter, given[i].key) && !json_get(&made, given[i].key))
            json_set(view->arena, &made, given[i].key, given[i].value);
    json_fill(view->arena, &made, &lane->iter);
    if (json_is(above, JSON_OBJECT) && json_ok(&made) && !json_get(&made, STR("parent")))
        json_set(view->arena, &made, STR("parent"), *above);
    *out = made;
    return json_ok(out);
}

// In rules: what the task gave. In what a step sets and in its arcs: what the step gave.
static enum code outcome_value(const struct net_view *view, struct json *out, struct error *err)
{
    if (view->outcome) {
        *out = *view->outcome;
        return OK;
    }
    const struct net_place *p = &view->run->net->places[view->place];
    struct arena *arena = view->arena;
    struct json made, part;
    enum code rc = p->failed ? net_failed_outcome(p, arena, &made, err)
                             : net_place_value(view->run, view->place, view->env, arena, &part, err);
    if (rc) return rc;
    if (p->failed) return net_outcome_seen(arena, &made, out, err);
    const struct json *ref = p->value.has_blob ? json_key(&part, "_ref") : NULL;
    const struct json *code = json_key(&part, "status_code"), *headers = json_key(&part, "headers");
    struct json http = code && headers ? JSON_OF(arena, {"headers", *headers}, {"status", *code}) : json_none();
    made = JSON_OF(arena, {"ref", json_ref(ref)}, {"http", http} /* as rules see it */,
                   {"result", part.type == 0 ? json_null() : part}, {"status", json_word("ok")});
    return json_ok(&made) ? net_outcome_seen(arena, &made, out, err) : error_nomem(err);
}

// With what came out, unless that is large: then the step's name has it.
static enum code event_value(const struct net_view *view, struct json *out, struct error *err)
{
    const struct net_place *p = &view->run->net->places[view->place];
    *out = *view->event;
    if (net_of_run(view->run)->steps[view->place].has_loop || (!p->failed && p->value.has_blob)) return OK;
    struct json result = p->value.value.type == 0 || p->failed ? json_null() : p->value.value;
    const struct json *error = json_key(view->event, "error");
    struct json payload = JSON_OF(view->arena, {"error", json_ref(error)}, {"result", result});
    struct json more = JSON_OF(view->arena, {"payload", payload}, {"data", result}, {"result", result});
    *out = json_joined(view->arena, view->event, &more);
    return json_ok(&more) ? json_made(out, err) : error_nomem(err);
}

// Names that earlier generations of the language had for ctx and for parts of the outcome; anything else of that name wins.
static enum code look_outcome(const struct net_view *view, struct str name, struct json *out, struct error *err)
{
    if (str_is(name, "vars")) *out = view->ctx ? *view->ctx : view->run->net->ctx;
    const char *part = str_is(name, "error") ? "error" : NULL;
    if (str_is(name, "result") || str_is(name, "response")) part = "data";
    if (str_is(name, "status_code")) part = "http"; // as conditions of `retry` have it
    if (!part || (!view->outcome && !view->ended)) return OK;
    struct json outcome;
    enum code rc = outcome_value(view, &outcome, err);
    const struct json *found = rc ? NULL : json_key(&outcome, part);
    if (str_is(name, "status_code") && found) found = json_key(found, "status");
    if (found) *out = *found;
    return rc;
}

// The arguments of the place; in an iteration those that read the item are under them. `name`: all of them are not needed, but
// whether this one is there.
static enum code look_args(const struct net_view *view, struct str name, struct json *out, struct error *err)
{
    static const struct json none = {.type = JSON_OBJECT};
    const struct run *run = view->run;
    const struct json *args = view->args                   ? view->args
                              : view->place == PROGRAM_TOP ? &none
                                                           : &run->net->places[view->place].args;
    const struct walk *lane = view->lane == NO_LANE || view->args ? NULL : walk_at(run, view->lane);
    const struct template_tree *own =
        lane && lane->iteration > 0 ? net_of_run(run)->steps[lane->place].item_args : NULL;
    *out = *args;
    if (!own || (name.len > 0 && (json_get(args, name) || !json_get(template_tree_source(own), name)))) return OK;
    struct net_view inner = *view;
    inner.args = args; // what it reads itself is not of it
    struct template_scope scope = net_scope(&inner);
    struct json made;
    enum code rc = template_tree_render(own, &scope, net_limits(view->run), view->arena, &made, err);
    if (rc) return rc;
    *out = json_joined(view->arena, args, &made);
    return json_made(out, err);
}

// All of them: those that the task has itself are over the step's.
static enum code all_args(const struct net_view *view, struct json *out, struct error *err)
{
    struct json under;
    enum code rc = look_args(view, (struct str){0}, &under, err);
    if (rc) return rc;
    *out = view->own ? json_joined(view->arena, view->own, &under) : under;
    return json_made(out, err);
}

// Whether `name` is a step, or a task before this one, and not something that was set.
static bool is_result(const struct net_view *view, struct str name)
{
    const struct run *run = view->run;
    const struct walk *lane = view->lane == NO_LANE ? NULL : walk_at(run, view->lane);
    const struct json *args = view->place == PROGRAM_TOP ? NULL : &run->net->places[view->place].args;
    const struct template_tree *of_item = lane ? net_of_run(run)->steps[lane->place].item_args : NULL;
    const struct json *named[] = {view->own, lane ? &lane->iter : NULL, view->args ? view->args : args,
                                  of_item ? template_tree_source(of_item) : NULL,
                                  view->ctx ? view->ctx : &run->net->ctx};
    for (size_t i = 0; i < ARRAY_COUNT(named); i++)
        if (json_is(named[i], JSON_OBJECT) && json_get(named[i], name)) return false;
    const struct net_step *ns = lane ? &net_of_run(run)->steps[lane->place] : NULL;
    if (lane && lane->iteration > 0 && str_eq(name, ns->loop.iterator)) return false;
    for (uint32_t i = 0; ns && i < ns->task_count; i++)
        if (str_eq(name, ns->tasks[i].label)) return true;
    return str_is(name, "_prev") || program_find(run->program, PROGRAM_TOP, name) != PROGRAM_TOP;
}

// What the task, or the step, gave.
static bool is_outcome(struct str name)
{
    return STR_AMONG(name, "output", "outcome");
}

static enum code tasks_of(const struct net_view *view, struct str name, struct json *out, struct error *err)
{
    uint32_t place = program_find(view->run->program, PROGRAM_TOP, name);
    return place == PROGRAM_TOP ? OK : net_tasks_value(view->run, place, view->env, view->arena, out, err);
}

// A result that has no member data, result or output is that itself; of an answer over HTTP its body has what is missing; results are
// those of the tasks.
static enum code instead(void *context, struct str name, const struct json *value, struct str member, struct json *out,
                         struct error *err)
{
    if (str_is(name, "keychain")) return keychain_field(context, value, member, out, err);
    const struct json *found = NULL;
    const struct json *body =
        json_key(value, "status_code") && json_key(value, "headers") ? json_key(value, "data") : NULL;
    bool whole = STR_AMONG(member, "data", "result", "output");
    if (json_is(body, JSON_OBJECT) && !whole) found = json_get(body, member);
    if (whole) found = value;
    bool tasks = !found && str_is(member, "results"), own = ((const struct net_view *)context)->result && is_outcome(name) && !whole;
    if ((!found && !tasks) || (!own && !is_result(context, name))) return OK;
    if (tasks) return tasks_of(context, name, out, err);
    *out = *found;
    return OK;
}

// The run itself, under the names that earlier generations of the language had.
struct json net_job(const struct run *run, struct arena *arena)
{
    struct json id = json_string(run->ids.run);
    return JSON_OF(arena, {"execution_id", id}, {"id", id}, {"uuid", id});
}

static enum code look_special(const struct net_view *view, struct str name, struct json *out, bool *found,
                              struct error *err)
{
    const struct run *run = view->run;
    const struct walk *lane = view->lane == NO_LANE ? NULL : walk_at(run, view->lane);
    *found = true;
    if (str_is(name, "workload")) {
        *out = run->net->workload;
    } else if (str_is(name, "ctx")) {
        *out = view->ctx ? *view->ctx : run->net->ctx;
    } else if (str_is(name, "iter") && lane) {
        return net_iter(view, out) ? OK : error_nomem(err);
    } else if (str_is(name, "args") || str_is(name, "input")) {
        return all_args(view, out, err);
    } else if (str_is(name, "execution_id")) {
        *out = json_string(run->ids.run);
    } else if (str_is(name, "job") || str_is(name, "execution")) {
        *out = net_job(run, view->arena);
        return json_made(out, err);
    } else if (str_is(name, "keychain")) {
        return keychain(view, out, err);
    } else if (is_outcome(name) && (view->outcome || view->ended)) {
        enum code rc = outcome_value(view, out, err);
        const struct json *result = rc || !view->result ? NULL : json_key(out, "result");
        if (view->result && !rc) *out = result ? *result : json_null();
        return rc;
    } else if (str_is(name, "event") && view->event) {
        return event_value(view, out, err);
    } else if (str_is(name, TEMPLATE_NOW)) {
        return net_now(run, view->arena, out, err);
    } else if (str_starts(name, STR(TEMPLATE_TOKEN))) {
        struct json entry = json_object();
        struct str of = str_slice(name, sizeof(TEMPLATE_TOKEN) - 1, name.len);
        if (str_find(of, '\x01', 0) < of.len || str_find(of, '.', 0) < of.len) return OK;
        enum code rc = keychain_mark(view->arena, of, STR("token"), &entry, err);
        if (!rc) *out = entry.members[0].value;
        return rc;
    } else if (str_is(name, "_prev") && lane) {
        *out = json_null();
        if (lane->last > 0)
            return net_value_get(run, &lane->results[lane->last - 1], PROGRAM_TOP, 0, view->env, view->arena, out, err);
    } else if (str_is(name, "_task") && lane && lane->pc < net_of_run(run)->steps[lane->place].task_count) {
        *out = json_string(net_of_run(run)->steps[lane->place].tasks[lane->pc].label);
    } else if (str_is(name, "_attempt") && lane) {
        *out = json_int(lane->attempt ? lane->attempt : 1);
    } else {
        *found = false;
    }
    return OK;
}

static enum code look_up(void *context, struct str name, struct json *out, struct error *err)
{
    const struct net_view *view = context;
    const struct run *run = view->run;
    const struct net *net = net_of_run(run);
    bool found;
    enum code rc = look_special(view, name, out, &found, err);
    if (rc || found) return rc;
    const struct json *given = view->own ? json_get(view->own, name) : NULL;
    if (given) {
        *out = *given;
        return OK;
    }
    const struct walk *lane = view->lane == NO_LANE ? NULL : walk_at(run, view->lane);
    if (lane) {
        const struct net_place *p = &run->net->places[lane->place];
        const struct net_step *ns = &net->steps[lane->place];
        if (lane->iteration > 0 && str_eq(name, ns->loop.iterator)) {
            *out = lane->iteration <= p->loop.items.count ? p->loop.items.items[lane->iteration - 1] : json_null();
            return OK;
        }
        const struct json *own = json_get(&lane->iter, name);
        if (own) {
            *out = *own;
            return OK;
        }
        for (uint32_t i = 0; i < ns->task_count; i++) {
            if (!str_eq(name, ns->tasks[i].label) || (lane->results[i].value.type == 0 && !lane->results[i].has_blob))
                continue;
            return net_value_get(run, &lane->results[i], PROGRAM_TOP, 0, view->env, view->arena, out, err);
        }
    }
    struct json args;
    rc = look_args(view, name, &args, err);
    if (rc) return rc;
    const struct json *layers[] = {&args, view->ctx ? view->ctx : &run->net->ctx};
    for (size_t i = 0; i < ARRAY_COUNT(layers); i++) {
        const struct json *member = json_get(layers[i], name);
        if (!member) continue;
        *out = *member;
        return OK;
    }
    uint32_t place = program_find(run->program, PROGRAM_TOP, name);
    if (place != PROGRAM_TOP) {
        struct json value;
        rc = net_place_value(run, place, view->env, view->arena, &value, err);
        if (rc || value.type != 0) {
            *out = value;
            return rc;
        }
    }
    const struct json *member = json_get(&run->net->workload, name);
    if (!member) return look_outcome(view, name, out, err);
    *out = *member;
    return OK;
}

// In `set` of a task the members of the outcome are before those of the result.
static enum code over(void *context, struct str name, struct str member, struct json *out, struct error *err)
{
    static const char *const documented[] = {"status", "result", "data", "response", "error", "http",
                                             "pg",     "py",     "meta", "ref"};
    const struct net_view *view = context;
    struct json outcome;
    if (!view->outcome || !is_outcome(name)) return OK;
    for (size_t i = 0; i < ARRAY_COUNT(documented); i++) {
        if (!str_is(member, documented[i])) continue;
        enum code rc = outcome_value(view, &outcome, err);
        const struct json *found = rc ? NULL : json_get(&outcome, member);
        if (found) *out = *found;
        return rc;
    }
    return OK;
}

struct template_scope net_scope(struct net_view *view)
{
    const struct kernel_env *env = view->env;
    return (struct template_scope){.context = view,
                                   .lookup = look_up,
                                   .over = view->result ? over : NULL,
                                   .instead = instead,
                                   .spent = env ? env->spent : NULL,
                                   .meter = env ? env->meter : NULL};
}

// The input of a task: what it says itself, then what the arc gave, then what the step says.
static enum code with_given(const struct net_view *view, const struct net_task *task, struct json *with,
                            struct error *err)
{
    const struct json *given = view->place == PROGRAM_TOP ? NULL : &view->run->net->places[view->place].given;
    const struct json *input = json_key(with, "input");
    struct json both = json_object(), made = json_object();
    if (!task->takes_args || !given || given->count == 0) return OK;
    for (uint32_t i = 0; json_is(input, JSON_OBJECT) && i < input->count; i++) {
        struct str key = input->members[i].key;
        const struct json *other = json_get(task->own_input, key) ? NULL : json_get(given, key);
        json_set(view->arena, &both, key, other ? *other : input->members[i].value);
    }
    json_fill(view->arena, &both, given);
    for (uint32_t i = 0; i < with->count; i++)
        if (!str_is(with->members[i].key, "input"))
            json_set(view->arena, &made, with->members[i].key, with->members[i].value);
    JSON_ADD(view->arena, &made, {"input", both});
    *with = made;
    return json_made(with, err);
}

static enum code render_tree(struct net_view *view, const struct template_tree *tree, struct json *out, struct error *err)
{
    struct template_scope scope = net_scope(view);
    const struct template_limits *limits = net_limits(view->run);
    return view->missing ? template_tree_known(tree, &scope, limits, view->arena, out, view->missing, err)
                         : template_tree_render(tree, &scope, limits, view->arena, out, err);
}

enum code net_with(const struct net_view *view, const struct net_task *task, struct json *out, struct error *err)
{
    struct net_view inner = *view, apart = *view;
    struct json own, with, made = json_object(), aside = json_array();
    struct error why = {0};
    if (!task->input) {
        enum code plain = render_tree(&inner, task->with, out, err);
        return plain ? plain : with_given(view, task, out, err);
    }
    if (view->missing) apart.missing = &aside; // it is part of `with`, and noted there
    enum code rc = render_tree(&apart, task->input, &own, &why);
    if (rc) return error_set(err, rc, "input: %s", why.message);
    if (own.type == JSON_OBJECT) inner.own = &own;
    rc = render_tree(&inner, task->with, &with, err);
    if (rc) return rc;
    for (uint32_t i = 0; i < with.count; i++) {
        const struct json_member *member = &with.members[i];
        json_set(view->arena, &made, member->key, str_is(member->key, "input") ? own : member->value);
    }
    *out = made;
    return json_ok(out) ? with_given(view, task, out, err) : error_nomem(err);
}

enum code net_holds(struct net_view *view, const struct net_when *when, bool *out, struct error *err)
{
    *out = true;
    if (!when->test) return OK;
    struct template_scope scope = net_scope(view);
    struct error local = {0};
    enum code rc = template_condition(when->test, &scope, net_limits(view->run), view->arena, out, &local);
    bool strict = rc == E_NOT_FOUND && net_of_run(view->run)->strict;
    if (net_is_grave(rc) || rc == E_LIMIT) return error_set(err, rc, "%s", local.message);
    if (strict) return error_set(err, E_NOT_FOUND, "when: %s", local.message);
    if (rc) *out = false;
    return OK;
}

enum code kernel_net_result(const struct run *run, struct str step, const struct kernel_env *env, struct arena *arena,
                            struct json *out, struct error *err)
{
    const struct net *net = net_of_run(run);
    uint32_t place = step.len > 0 ? program_find(run->program, PROGRAM_TOP, step) : PROGRAM_TOP;
    if (place == PROGRAM_TOP && net->final != PROGRAM_TOP && run->net->places[net->final].visit > 0) place = net->final;
    if (place == PROGRAM_TOP) place = run->net->last;
    *out = json_null();
    if (place == PROGRAM_TOP) return OK;
    enum code rc = net_place_value(run, place, env, arena, out, err);
    if (!rc && out->type == 0) *out = json_null();
    return rc;
}
