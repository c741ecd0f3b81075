// Tasks of playbooks. Four shapes are read: a single mapping, named, labelled and unnamed items of a list.
#include "program/playbook.h"

// ---- merging

static const struct json *member_of(const struct json *object, struct str key)
{
    return object && object->type == JSON_OBJECT ? json_get(object, key) : NULL;
}

struct json merged(struct playbook *pb, const struct json *inner, const struct json *outer)
{
    struct reader *r = pb->r;
    const struct json *both[] = {inner, outer};
    struct json out = json_object();
    for (size_t side = 0; side < 2; side++) {
        const struct json *from = both[side];
        for (uint32_t i = 0; json_is(from, JSON_OBJECT) && i < from->count; i++) {
            const struct json_member *member = &from->members[i];
            const struct json *other = side == 0 ? member_of(outer, member->key) : NULL;
            struct json value = member->value;
            if (side == 1 && member_of(inner, member->key)) continue;
            if (json_is(other, JSON_OBJECT) && value.type == JSON_OBJECT) value = merged(pb, &member->value, other);
            if (!json_put(r->arena, &out, member->key, value)) r->failed = true;
        }
    }
    const struct json *place = inner ? inner : outer;
    if (place) {
        out.line = place->line;
        out.column = place->column;
    }
    return out;
}

// ---- what the tool gets

static bool is_control(struct str key, const struct json *value)
{
    static const char *const names[] = {"name",   "kind", "spec",        "set",    "set_ctx",   "set_iter",
                                        "policy", "desc", "description", "assert", "timeout_s", "vars"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (str_is(key, names[i])) return true;
    bool controls = STR_AMONG(key, "result", "output", "output_select");
    if (controls) return value->type == JSON_OBJECT || value->type == JSON_ARRAY || value->type == JSON_NULL;
    // A timeout of the task as a whole; of the parts of a request it is a mapping, which is the tool's.
    if (!str_is(key, "timeout")) return false;
    return value->type != JSON_OBJECT && !(value->type == JSON_STRING && template_is_dynamic(value->text));
}

static struct str canonical_key(struct str kind, struct str key)
{
    static const char *const sql[] = {"query", "commands", "sql", "statement", "statements"};
    // Arguments of a program, the address of a store: words of these tools.
    bool own = str_is(key, "args") ? STR_AMONG(kind, "container", "mcp")
                                   : str_is(key, "endpoint") && STR_AMONG(kind, "s3", "gcs", "azure");
    if (str_is(key, "args") && !own) return STR("input");
    if (str_is(key, "endpoint") && !own) return STR("url");
    if (str_is(kind, "playbook") && str_is(key, "payload")) return STR("input");
    if (str_is(kind, "playbook") && str_is(key, "result_step")) return STR("return_step");
    if (!str_is(kind, "postgres") && !str_is(kind, "sqlite") && !str_is(kind, "duckdb")) return key;
    for (size_t i = 0; i < ARRAY_COUNT(sql); i++)
        if (str_is(key, sql[i])) return STR("command");
    return key;
}

// The tool's fields of one object, under their own names.
static struct json tool_fields(struct playbook *pb, struct str kind, const struct json *object)
{
    struct reader *r = pb->r;
    struct json out = json_object();
    for (uint32_t i = 0; json_is(object, JSON_OBJECT) && i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        if (is_control(member->key, &member->value)) continue;
        struct str key = canonical_key(kind, member->key);
        if (json_get(&out, key)) {
            struct str other = member->key;
            for (uint32_t k = 0; k < i && str_eq(other, key); k++) // the other one was first
                if (str_eq(canonical_key(kind, object->members[k].key), key)) other = object->members[k].key;
            struct span at = place_of_key(r, member);
            struct diagnostic *d = ERROR(r, "E0207", at, "\"%.*s\" is another name of \"%.*s\", and both are given",
                                         SHOW(other), SHOW(key));
            HINT(r, d, "keep \"%.*s\"", SHOW(key));
            continue;
        }
        if (!json_put(r->arena, &out, key, member->value)) {
            r->failed = true;
            return out;
        }
        out.members[out.count - 1].line = member->line;
        out.members[out.count - 1].column = member->column;
    }
    return out;
}

// ---- timeouts and results

struct layers { // innermost first; NULL where there is nothing
    const struct json *items[8];
    size_t count;
};

static void layer_add(struct layers *layers, const struct json *object)
{
    if (json_is(object, JSON_OBJECT)) layers->items[layers->count++] = object;
}

static void read_timeout(struct playbook *pb, const struct layers *layers, struct net_task *task)
{
    for (size_t i = 0; i < layers->count; i++) {
        const struct json *value = field(layers->items[i], "timeout_s", "timeout");
        if (!value || value->type == JSON_OBJECT) continue; // a mapping is the tool's
        read_seconds(pb, value, "timeout", &task->timeout_ms, &task->timeout_of);
        return;
    }
    const struct json *defaults = pb->profile ? field(pb->profile, "defaults", NULL) : NULL;
    const struct json *value = json_is(defaults, JSON_OBJECT) ? field(defaults, "timeout_s", "timeout") : NULL;
    const struct json *timeouts = json_is(defaults, JSON_OBJECT) ? field(defaults, "timeouts", NULL) : NULL;
    if (!value && json_is(timeouts, JSON_OBJECT)) value = field(timeouts, "task_s", "task");
    if (value && value->type != JSON_OBJECT) read_seconds(pb, value, "timeout_s", &task->timeout_ms, &task->timeout_of);
}

// Of the policy, the task's own or that of what is around it: elsewhere `limit` may be a field of the tool.
static void read_limit(struct playbook *pb, const struct layers *layers, size_t own, struct net_task *task)
{
    const struct json *found = NULL;
    size_t at = 0;
    for (; at < layers->count && !found; at++) {
        const struct json *policy = field(layers->items[at], "policy", NULL);
        if (json_is(policy, JSON_OBJECT)) found = field(policy, "limit", NULL);
    }
    if (!found) return;
    if (!task->in_process && !STR_AMONG(task->kind, "playbook", "wait", "event"))
        limit_of_read(pb->r, found, &task->limit);
    else if (at <= own)
        ERROR(pb->r, "E0217", place_of(pb->r, found), "\"limit\" is not supported on a task of kind %.*s", SHOW(task->kind));
}

static bool only_limits(const struct json *policy)
{
    return json_is(policy, JSON_OBJECT) && policy->count == 1 && json_key(policy, "limit");
}

// Decisions about tasks without a policy are recorded, but for noop; policy.emit.events of what is around the task is the switch.
static void read_quiet(const struct layers *layers, struct net_task *task)
{
    task->quiet = task->in_process; // nothing can follow from a noop but that it goes on
    for (size_t i = 0; i < layers->count; i++) {
        const struct json *policy = field(layers->items[i], "policy", NULL);
        const struct json *emit = json_is(policy, JSON_OBJECT) ? field(policy, "emit", NULL) : NULL;
        const struct json *events = json_is(emit, JSON_OBJECT) ? field(emit, "events", NULL) : NULL;
        if (!json_is(events, JSON_ARRAY)) continue;
        task->quiet = true;
        for (uint32_t k = 0; k < events->count; k++)
            if (str_is(json_text(&events->items[k]), "policy.task.evaluated")) task->quiet = false;
        return;
    }
}

// "a[0].b" is a.0.b
static struct str dotted(struct playbook *pb, struct str path)
{
    char *to = arena_alloc(pb->r->arena, path.len + 1);
    size_t len = 0;
    for (size_t i = 0; to && i < path.len; i++) {
        char c = path.ptr[i];
        if (c == '[' && len > 0) to[len++] = '.';
        if (c != '[' && c != ']' && c != '\'' && c != '"') to[len++] = c;
    }
    if (!to) pb->r->failed = true;
    return to ? (struct str){to, len} : path;
}

// "$.a.b" and "a.b" are the same path; its last part is the name unless there is another.
static bool select_path(struct playbook *pb, const struct json *value, struct net_select *out)
{
    struct str path = json_text(value);
    if (str_starts(path, STR("$."))) path = str_slice(path, 2, path.len);
    if (str_find(path, '[', 0) < path.len) path = dotted(pb, path);
    if (path.len == 0 || str_is(path, "$")) {
        struct span at = place_of(pb->r, value);
        struct diagnostic *d =
            value->type != JSON_STRING
                ? ERROR(pb->r, "E0206", at, "what is selected of a result is a path, and this is of type %s",
                        json_type_name((enum json_type)value->type))
                : ERROR(pb->r, "E0206", at, "\"%.*s\" is no path into a result", SHOW(json_text(value)));
        HINT(pb->r, d, "write the members on the way: rows[0].id, or $.rows[0].id; without select all of it is kept");
        return false;
    }
    size_t start = path.len;
    while (start > 0 && path.ptr[start - 1] != '.') start--;
    *out = (struct net_select){path, str_slice(path, start, path.len)};
    return true;
}

// {strategy, fields}: what is kept is named by fields, or paths; how it is chosen is not a matter of choice here.
static const struct json *selected_by_strategy(struct playbook *pb, const struct json *object)
{
    static const char *const lists[] = {"fields", "paths", "select", "include"};
    static const char *const known[] = {"strategy", "fields", "paths", "select", "include", NULL};
    useless_members(pb, object, known, "output_select");
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
        const struct json *list = field(object, lists[i], NULL);
        if (json_is(list, JSON_ARRAY) || json_is(list, JSON_OBJECT)) return list;
        if (list) wrong_type(pb->r, list, lists[i], "a list of paths");
    }
    return NULL;
}

static void read_selects(struct playbook *pb, const struct json *list, struct net_task *task)
{
    struct reader *r = pb->r;
    if (!list) return;
    if (list->type != JSON_ARRAY && list->type != JSON_OBJECT) {
        wrong_type(r, list, "output_select", "a list of paths");
        return;
    }
    if (list->type == JSON_OBJECT && json_key(list, "strategy")) {
        list = selected_by_strategy(pb, list);
        if (!list) return;
    }
    struct net_select *selects = ARENA_ARRAY(r->arena, list->count, struct net_select);
    uint32_t count = 0;
    for (uint32_t i = 0; selects && i < list->count; i++) {
        if (list->type == JSON_OBJECT) { // name: path
            if (!select_path(pb, &list->members[i].value, &selects[count])) continue;
            selects[count++].name = list->members[i].key;
            continue;
        }
        const struct json *item = &list->items[i];
        const struct json *path = item->type == JSON_OBJECT ? field(item, "path", NULL) : item;
        const struct json *as = item->type == JSON_OBJECT ? field(item, "as", "name") : NULL;
        if (!select_path(pb, path ? path : item, &selects[count])) continue;
        if (as) read_text(r, as, "as", &selects[count].name);
        count++;
    }
    if (!selects) r->failed = true;
    task->selects = selects;
    task->select_count = count;
}

// What of `store` nothing is done about: results are kept as they are, as long as the run is.
static void check_store_field(struct playbook *pb, const struct json_member *member)
{
    struct str text = json_text(&member->value);
    bool same = str_is(member->key, "scope") && (str_is(text, "execution") || str_is(text, "workflow"));
    if (same || STR_AMONG(member->key, "kind", "driver", "tier")) return;
    struct span at = place_of(pb->r, &member->value);
    struct diagnostic *d =
        WARNING(pb->r, "E0219", at, "\"%.*s\" of a result's store has no effect", STR_ARG(member->key));
    HINT(pb->r, d, "a result is kept as it is, and as long as its run is kept");
}

static void read_store(struct playbook *pb, const struct json *store, struct net_task *task)
{
    const struct json *kind = store;
    if (json_is(store, JSON_OBJECT)) {
        kind = field(store, "kind", "driver");
        if (!kind) kind = field(store, "tier", NULL);
        for (uint32_t i = 0; i < store->count; i++) check_store_field(pb, &store->members[i]);
    }
    if (!kind || str_is(json_text(kind), "auto")) return;
    if (str_is(json_text(kind), "object") || str_is(json_text(kind), "nats_object")) {
        task->store = NET_STORE_OBJECT;
        return;
    }
    task->store = NET_STORE_RUN;
    struct span at = place_of(pb->r, kind);
    struct diagnostic *d =
        WARNING(pb->r, "E0219", at, "\"store\" has no effect: there is no such place for results here");
    HINT(pb->r, d, "`object` is one where NATS is configured (--results); the store of the run keeps everything else");
}

static void read_results(struct playbook *pb, const struct layers *layers, const struct task_site *site,
                         struct net_task *task)
{
    int64_t number;
    struct json controls = json_object();
    for (size_t i = 0; i < layers->count; i++) {
        const struct json *found = field(layers->items[i], "result", "output");
        controls = merged(pb, &controls, json_is(found, JSON_OBJECT) ? found : NULL);
        const struct json *beside = field(layers->items[i], "output_select", NULL);
        if (beside && !json_key(&controls, "output_select") &&
            !json_put(pb->r->arena, &controls, STR("output_select"), *beside))
            pb->r->failed = true;
    }
    controls = merged(pb, &controls, site->controls);
    task->inline_max = INLINE_MAX_DEFAULT;
    task->preview_max = PREVIEW_MAX_DEFAULT;
    const struct json *limits = pb->profile ? field(pb->profile, "limits", NULL) : NULL;
    const struct json *most = json_is(limits, JSON_OBJECT) ? field(limits, "max_payload_bytes", NULL) : NULL;
    if (most && read_number(pb, most, "max_payload_bytes", 0, INT32_MAX, &number)) task->inline_max = (uint64_t)number;
    const struct json *inline_max = field(&controls, "inline_max_bytes", NULL);
    if (inline_max && read_number(pb, inline_max, "inline_max_bytes", 0, INT32_MAX, &number))
        task->inline_max = (uint64_t)number;
    const struct json *preview = field(&controls, "preview_max_bytes", NULL);
    if (preview && read_number(pb, preview, "preview_max_bytes", 0, INT32_MAX, &number))
        task->preview_max = (uint64_t)number;
    read_selects(pb, field(&controls, "select", "output_select"), task);
    read_store(pb, field(&controls, "store", NULL), task);
    read_overflow(pb->r, field(&controls, "on_overflow", NULL), &task->overflow);
}

// ---- kinds

bool net_kind_known(struct str kind)
{
#define X(name, what)                                                                                                  \
    if (str_is(kind, name)) return true;
    NET_KIND_LIST(X)
#undef X
    return false;
}

bool is_task_kind(const struct reader *r, struct str name)
{
    const struct program_loader *loader = r->load->loader;
    if (!loader || name.len == 0 || name.len > 64) return false;
    if (loader->task_kind) return loader->task_kind(loader->context, name);
    return loader->host_kind && loader->host_kind(loader->context, name);
}

// Kinds of the language that no tool here has: those of clouds, clusters and runtimes. A plug-in may, where the task is run.
static bool is_elsewhere(struct str name)
{
    return STR_AMONG(name, "snowflake_transfer", "ducklake", "gateway", "agent",
                     "script", "rhai", "subscription", "auth", "sink");
}

void hint_kinds(struct reader *r, struct diagnostic *d, struct str name)
{
    struct nearest nearest = nearest_to(name);
#define X(kind, what) nearest_try(&nearest, STR(kind));
    NET_KIND_LIST(X)
#undef X
#define X(kind, what) kind ", "
    static const char all[] = NET_KIND_LIST(X);
#undef X
    int len = (int)sizeof(all) - 3; // without the last comma
    if (is_elsewhere(name))
        HINT(r, d, "it needs a cloud, a cluster or a runtime that is not here. There are %.*s, and those of plug-ins",
             len, all);
    else if (str_is(name, "iterator"))
        HINT(r, d, "a step with loop: {in: ..., iterator: ...} runs its tool once for every item");
    else if (str_is(name, "task_sequence"))
        HINT(r, d, "tasks that run one after the other are a list under tool");
    else if (nearest.best.len)
        HINT(r, d, "did you mean \"%.*s\"? There are %.*s, and those of plug-ins", SHOW(nearest.best), len, all);
    else
        HINT(r, d, "there are %.*s, and those of plug-ins", len, all);
}

static const struct json *read_kind(struct playbook *pb, const struct json *body, struct str *kind)
{
    struct reader *r = pb->r;
    struct span at = place_of(r, body);
    const struct json *value = field(body, "kind", NULL);
    if (!value) {
        struct diagnostic *d = ERROR(r, "E0204", at, "a task needs \"kind\"");
        if (json_key(body, "type")) HINT(r, d, "what was type is now kind");
        return NULL;
    }
    if (!read_text(r, value, "kind", kind)) return NULL;
    if (net_kind_known(*kind) || is_task_kind(r, *kind)) return value;
    at = place_of(r, value);
    bool elsewhere = is_elsewhere(*kind); // the document is right: where it is run there may be a plug-in
    struct diagnostic *d =
        elsewhere
            ? WARNING(r, "E0223", at, "there is no tool of kind \"%.*s\" here: a run that comes to it fails", SHOW(*kind))
            : ERROR(r, "E0223", at, "there is no tool of kind \"%.*s\"", SHOW(*kind));
    hint_kinds(r, d, *kind);
    return elsewhere ? value : NULL;
}

// ---- a task

static const struct deprecated task_deprecated[] = {
    {"eval", "decide what to do with an outcome under spec.policy.rules"},
    {"expr", "conditions are written under when, in spec.policy.rules"},
    {"retry",
     "write spec: {policy: {rules: [{when: \"{{ output.status == 'error' }}\", then: {do: retry, attempts: 3}}]}}"},
    {"sink", "store a result with a task of its own, after this one"},
    {"case", "decide under spec.policy.rules, and route under the step's next.arcs"},
    {"when", "a task runs when it is its turn; skip it with a rule of the task before, or with an arc"},
    {"next", "arcs belong to the step: next stands beside tool"},
};

bool task_field_gone(struct str key)
{
    for (size_t i = 0; i < ARRAY_COUNT(task_deprecated); i++)
        if (str_is(key, task_deprecated[i].name)) return true;
    return false;
}

static const struct deprecated spec_deprecated[] = {
    {"eval", "decide what to do with an outcome under spec.policy.rules"},
    {"expr", "conditions are written under when, in spec.policy.rules"},
    {"set", "set stands beside spec"},
};

// The input of the step is also that of its tasks, under their own.
bool takes_input(struct str kind)
{
    return STR_AMONG(kind, "python", "playbook", "artifact", "s3", "gcs", "azure", "mcp") || !net_kind_known(kind);
}

static void read_with(struct playbook *pb, const struct json *body, const struct json *entry,
                      const struct task_site *site, struct net_task *task)
{
    struct reader *r = pb->r;
    const struct json *objects[] = {body, field(body, "spec", NULL), entry, entry ? field(entry, "spec", NULL) : NULL};
    struct json with = json_object();
    for (size_t i = 0; i < ARRAY_COUNT(objects); i++) {
        struct json fields = tool_fields(pb, task->kind, objects[i]);
        if (entry && i < 2 && json_key(&fields, "task")) { // it named the entry
            struct json rest = json_object();
            for (uint32_t k = 0; k < fields.count; k++)
                if (!str_is(fields.members[k].key, "task") &&
                    !json_put(r->arena, &rest, fields.members[k].key, fields.members[k].value))
                    r->failed = true;
            fields = rest;
        }
        with = merged(pb, &with, &fields);
    }
    // A name that is not the label is the tool's, and that of a secret is always the tool's.
    const struct json *name = field(body, "name", NULL);
    bool told = name && !entry && (str_is(task->kind, "secrets") || !str_eq(json_text(name), task->label));
    if (told && !json_put(r->arena, &with, STR("name"), *name)) r->failed = true;
    const struct json *input = json_key(&with, "input");
    task->takes_args = takes_input(task->kind) && (!input || input->type == JSON_OBJECT || input->type == JSON_NULL);
    task->own_input = json_is(input, JSON_OBJECT) ? input : NULL;
    if (site->input && task->takes_args) {
        struct json under = json_object();
        if (!json_put(r->arena, &under, STR("input"), *site->input)) r->failed = true;
        with = merged(pb, &with, &under);
    }
    with.line = body->line;
    with.column = body->column;
    input = json_key(&with, "input");
    bool read = input && !json_key(&with, "code") && (input->type == JSON_OBJECT || input->type == JSON_STRING);
    task->with = tree_but(pb, &with, read ? "input" : "code");
    task->input = read ? tree_of(pb, input) : NULL;
}

static void read_child(struct playbook *pb, struct net_task *task)
{
    struct reader *r = pb->r;
    if (!str_is(task->kind, "playbook") || !task->with) return;
    const struct json *with = template_tree_source(task->with);
    struct span at = {task->line, task->column, 1};
    const struct json *path = field_required(r, with, "path", NULL, at, "a task of kind playbook");
    const struct json *step = field(with, "return_step", NULL);
    task->return_rendered = json_is(step, JSON_STRING) && template_is_dynamic(step->text);
    if (step && !task->return_rendered) read_text(r, step, "return_step", &task->return_step);
    if (!path || !read_text(r, path, "path", &task->playbook)) return;
    struct json *known = ARENA_NEW(r->arena, struct json);
    task->path_rendered = template_is_dynamic(task->playbook);
    if (task->path_rendered) task->playbook = (struct str){0};
    if (!known) r->failed = true;
    if (!known || (task->path_rendered && !read_known(pb, path, known))) return;
    if (task->path_rendered) {
        task->playbook = json_text(known);
        path = known;
    }
    if (!ARENA_ROOM(r->scratch, pb->children, pb->child_count, &pb->child_capacity)) {
        r->failed = true;
        return;
    }
    pb->children[pb->child_count++] =
        (struct child_wanted){task, path, task->path_rendered ? CHILD_MAYBE : CHILD_LATER};
}

// The task's own policy, or the rules of what is around it; those have more than rules.
static const struct json **read_layered_policy(struct playbook *pb, const struct layers *layers, size_t own,
                                               const struct task_site *site, struct net_task *task)
{
    for (size_t i = 0; i < layers->count; i++) {
        const struct json *policy = field(layers->items[i], "policy", NULL);
        if (!policy || only_limits(policy) || (i >= own && !(json_is(policy, JSON_OBJECT) && json_key(policy, "rules")))) continue;
        if (i < own) return read_policy(pb, policy, site, task);
        struct json rules = json_object();
        for (uint32_t k = 0; k < policy->count; k++) {
            const struct json_member *member = &policy->members[k];
            bool taken = str_is(member->key, "rules") || str_is(member->key, "on_unmatched");
            if (taken && !json_put(pb->r->arena, &rules, member->key, member->value)) pb->r->failed = true;
        }
        rules.line = policy->line;
        rules.column = policy->column;
        return read_policy(pb, &rules, site, task);
    }
    return NULL;
}

static const struct json **read_task(struct playbook *pb, const struct json *body, const struct task_site *site,
                                     struct net_task *task)
{
    struct reader *r = pb->r;
    body = task_today(pb, body);
    task->line = body->line;
    task->column = body->column;
    for (uint32_t i = 0; i < body->count; i++)
        refuse_deprecated(pb, &body->members[i], task_deprecated, ARRAY_COUNT(task_deprecated), "tasks");
    const struct json *spec = field(body, "spec", NULL), *entry = NULL;
    if (spec && !read_object(r, spec, "spec")) return NULL;
    for (uint32_t i = 0; spec && i < spec->count; i++)
        refuse_deprecated(pb, &spec->members[i], spec_deprecated, ARRAY_COUNT(spec_deprecated), "a task's spec");
    if (!read_kind(pb, body, &task->kind)) return NULL;
    if (str_is(task->kind, "workbook")) {
        entry = find_entry(pb, body, task->label);
        if (!entry || !read_kind(pb, entry, &task->kind)) return NULL;
        if (str_is(task->kind, "workbook")) {
            struct span at = place_of(r, entry);
            ERROR(r, "E0311", at, "an entry of the workbook cannot run another one");
            return NULL;
        }
    }
    task->in_process = str_is(task->kind, "noop");
    read_with(pb, body, entry, site, task);
    read_child(pb, task);
    advise_task(pb, task);
    const struct json *entry_spec = entry ? field(entry, "spec", NULL) : NULL;
    struct layers layers = {.count = 0};
    layer_add(&layers, body);
    layer_add(&layers, spec);
    layer_add(&layers, entry);
    layer_add(&layers, entry_spec);
    size_t own = layers.count;
    read_assert(pb, layers.items, own, task);
    for (size_t i = 0; i < ARRAY_COUNT(site->specs); i++) layer_add(&layers, site->specs[i]);
    read_timeout(pb, &layers, task);
    read_limit(pb, &layers, own, task);
    read_quiet(&layers, task);
    read_results(pb, &layers, site, task);
    read_sets(pb, body, site->sets, &task->sets);
    return read_layered_policy(pb, &layers, own, site, task);
}

// ---- shapes

static struct str made_label(struct playbook *pb, struct str before, const char *after, int64_t number)
{
    struct buf out = buf_of(512);
    buf_add(&out, before);
    buf_text(&out, after);
    if (number >= 0) buf_int(&out, number);
    struct str label = buf_keep(&out, pb->r->arena);
    if (!label.ptr) pb->r->failed = true;
    return label;
}

struct task_list {
    struct net_task *items;
    const struct json ***jumps; // of each, beside its rules
    uint32_t count, room;
};

static void add_task(struct playbook *pb, const struct json *body, struct str label, struct span at,
                     const struct task_site *site, struct task_list *list)
{
    struct reader *r = pb->r;
    if (!read_object(r, body, "tool")) return;
    if (!name_valid(label)) {
        ERROR(r, "E0208", at, "the label of a task has 1 to 128 bytes without '|' and control characters");
        label = STR("");
    }
    for (uint32_t i = 0; i < list->count && label.len; i++) {
        if (!str_eq(list->items[i].label, label)) continue;
        struct diagnostic *d = ERROR(r, "E0312", at, "the label \"%.*s\" is used twice in this step", SHOW(label));
        HINT(r, d, "the first one is on line %u", list->items[i].line);
    }
    INVARIANT(list->count < list->room);
    struct net_task *task = &list->items[list->count];
    task->label = label;
    list->jumps[list->count++] = read_task(pb, body, site, task);
}

static void add_labelled(struct playbook *pb, const struct json *object, const struct task_site *site,
                         struct task_list *list)
{
    for (uint32_t i = 0; i < object->count && !pb->r->failed; i++) {
        const struct json_member *member = &object->members[i];
        add_task(pb, &member->value, member->key, place_of_key(pb->r, member), site, list);
    }
}

// One item of a list, or the only task.
static void add_shape(struct playbook *pb, const struct json *item, struct str otherwise, const struct task_site *site,
                      struct task_list *list)
{
    if (is_labelled(item)) {
        add_labelled(pb, item, site, list);
        return;
    }
    const struct json *name = item->type == JSON_OBJECT ? field(item, "name", NULL) : NULL;
    struct str label = otherwise;
    struct span at = place_of(pb->r, name ? name : item);
    if (name && !read_text(pb->r, name, "name", &label)) return;
    add_task(pb, item, label, at, site, list);
}

static uint32_t count_tasks(const struct json *tool)
{
    if (tool->type == JSON_OBJECT) return is_labelled(tool) ? tool->count : 1;
    uint32_t count = 0;
    for (uint32_t i = 0; i < tool->count; i++) count += is_labelled(&tool->items[i]) ? tool->items[i].count : 1;
    return count;
}

static void find_jump(struct playbook *pb, const struct task_list *list, uint32_t from, struct net_rule *rule,
                      const struct json *target)
{
    struct reader *r = pb->r;
    struct str name;
    if (rule->action != NET_JUMP || !target || !read_text(r, target, "to", &name)) return;
    struct nearest nearest = nearest_to(name);
    for (uint32_t i = 0; i < list->count; i++) {
        nearest_try(&nearest, list->items[i].label);
        if (!str_eq(list->items[i].label, name)) continue;
        rule->target = i;
        return;
    }
    if (str_is(name, "previous") && from > 0) return;
    struct span at = place_of(r, target);
    struct diagnostic *d = ERROR(r, "E0310", at, "there is no task \"%.*s\" in this step to jump to", SHOW(name));
    if (nearest.best.len)
        hint_nearest(r, d, &nearest);
    else
        HINT(r, d, "a jump goes to the label of a task of the same step, or to previous; steps are reached by arcs");
}

static void find_jumps(struct playbook *pb, const struct task_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        // The rules are ours until the step is done.
        union {
            const struct net_rule *given;
            struct net_rule *own;
        } rules = {list->items[i].rules};
        for (uint32_t k = 0; list->jumps[i] && k < list->items[i].rule_count; k++)
            find_jump(pb, list, i, &rules.own[k], list->jumps[i][k]);
    }
}

void read_tasks(struct playbook *pb, const struct json *tool, const struct task_site *site, struct net_step *step)
{
    struct reader *r = pb->r;
    struct span at = place_of(r, tool);
    if (tool->type != JSON_OBJECT && tool->type != JSON_ARRAY) {
        wrong_type(r, tool, "tool", "a task or a list of tasks");
        return;
    }
    if (tool->type == JSON_ARRAY && tool->count == 0) {
        ERROR(r, "E0214", at, "step \"%.*s\" has an empty list of tasks", SHOW(site->step));
        return;
    }
    struct task_list list = {.room = count_tasks(tool)};
    if (list.room > TASK_COUNT_MAX) {
        ERROR(r, "E0505", at, "a step has more than %d tasks", TASK_COUNT_MAX);
        return;
    }
    list.items = ARENA_ARRAY(r->arena, list.room, struct net_task);
    list.jumps = arena_array(r->scratch, list.room, sizeof(*list.jumps));
    if (!list.items || !list.jumps) {
        r->failed = true;
        return;
    }
    if (tool->type == JSON_OBJECT) {
        bool workbook = str_is(json_text(json_key(tool, "kind")), "workbook"); // its name is that of the entry
        struct str label = made_label(pb, site->step, "_task", -1);
        if (workbook)
            add_task(pb, tool, label, at, site, &list);
        else
            add_shape(pb, tool, label, site, &list);
    }
    for (uint32_t i = 0; tool->type == JSON_ARRAY && i < tool->count && !r->failed; i++)
        add_shape(pb, &tool->items[i], made_label(pb, STR(""), "task_", i), site, &list);
    find_jumps(pb, &list);
    step->tasks = list.items;
    step->task_count = list.count;
}
