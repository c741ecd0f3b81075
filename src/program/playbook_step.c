// A step of a playbook: what it admits, what it repeats, where it leads.
#include "program/playbook.h"

// ---- admission

struct admit_list {
    struct net_admit *items;
    uint32_t count;
};

static void add_admit(struct playbook *pb, void *context, const struct json *rule, struct net_when when, bool otherwise,
                      const struct json *then)
{
    (void)otherwise;
    struct admit_list *list = context;
    struct net_admit *admit = &list->items[list->count++];
    *admit = (struct net_admit){when, true};
    const struct json *allow = json_is(then, JSON_OBJECT) ? field(then, "allow", NULL) : then;
    if (allow) {
        read_bool(pb->r, allow, "allow", &admit->allow);
        return;
    }
    struct span at = place_of(pb->r, rule);
    struct diagnostic *d = ERROR(pb->r, "E0204", at, "a rule of admission needs \"then\" with \"allow\"");
    HINT(pb->r, d, "then: {allow: true}");
}

static void read_admission(struct playbook *pb, const struct json *admit, struct net_step *step)
{
    struct reader *r = pb->r;
    if (!admit || !read_object(r, admit, "admit")) return;
    const struct json *rules = field(admit, "rules", NULL);
    if (!rules || (rules->type == JSON_ARRAY && rules->count == 0)) {
        struct span at = place_of(r, admit);
        ERROR(r, "E0226", at, "the admission policy has no rules");
        return;
    }
    uint32_t room = rules->type == JSON_ARRAY ? rules->count : 1;
    struct admit_list list = {ARENA_ARRAY(r->arena, room, struct net_admit), 0};
    if (!list.items) {
        r->failed = true;
        return;
    }
    read_rules(pb, rules, add_admit, &list);
    step->admit = list.items;
    step->admit_count = list.count;
}

static void read_step_policy(struct playbook *pb, const struct json *policy, struct net_step *step)
{
    static const char *const known[] = {"admit", "lifecycle", "failure", "emit", "rules", "on_unmatched", "limit", NULL};
    static const char *const of_lifecycle[] = {"timeout_s", "timeout", "deadline_s", "deadline", NULL};
    struct reader *r = pb->r;
    if (!policy || !read_object(r, policy, "policy")) return;
    for (uint32_t i = 0; i < policy->count; i++)
        unknown_member(pb, &policy->members[i], known, "a step's policy", false);
    read_admission(pb, field(policy, "admit", NULL), step);
    const struct json *lifecycle = field(policy, "lifecycle", NULL);
    if (lifecycle && read_object(r, lifecycle, "lifecycle"))
        useless_members(pb, lifecycle, of_lifecycle, "a lifecycle");
}

// What the innermost `spec` says that says it: the loop's, the step's, the executor's.
static const struct json *policy_of(const struct task_site *site, const char *part, const char *name, const char *other)
{
    for (size_t i = 0; i < ARRAY_COUNT(site->specs); i++) {
        const struct json *policy = site->specs[i] ? field(site->specs[i], "policy", NULL) : NULL;
        const struct json *found = json_is(policy, JSON_OBJECT) ? field(policy, part, NULL) : NULL;
        if (json_is(found, JSON_OBJECT)) found = field(found, name, other);
        if (found) return found;
    }
    return NULL;
}

static void read_layers(struct playbook *pb, const struct task_site *site, struct net_step *step)
{
    static const char *const modes[] = {"fail_fast", "best_effort", NULL};
    const struct json *timeout = policy_of(site, "lifecycle", "timeout_s", "timeout");
    const struct json *deadline = policy_of(site, "lifecycle", "deadline_s", "deadline");
    const struct json *mode = policy_of(site, "failure", "mode", NULL);
    size_t index;
    if (timeout) read_seconds(pb, timeout, "timeout_s", &step->timeout_ms, &step->timeout_of);
    if (deadline) read_seconds(pb, deadline, "deadline_s", &step->deadline_ms, &step->deadline_of);
    if (mode && read_choice(pb->r, mode, "mode", modes, &index)) step->best_effort = index == 1;
}

// ---- loops

static bool is_name(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9')) return false;
    }
    return text.len > 0;
}

static void read_loop_mode(struct playbook *pb, const struct json *loop, const struct json *spec, struct net_loop *out)
{
    static const char *const modes[] = {"sequential", "parallel", "async", "fanout", NULL};
    size_t index = 0;
    const struct json *mode = spec ? field(spec, "mode", NULL) : NULL;
    if (!mode) mode = field(loop, "mode", NULL);
    if (mode && !read_word(pb, mode, "mode", modes, &index)) index = 0;
    out->parallel = index > 0;
    out->max_in_flight = out->parallel ? IN_FLIGHT_DEFAULT : 1;
    const struct json *most = spec ? field(spec, "max_in_flight", NULL) : NULL;
    if (!most) most = field(loop, "max_in_flight", NULL);
    struct net_loop read = *out;
    if (most) read_many(pb, most, "max_in_flight", NET_IN_FLIGHT_MAX, &read.max_in_flight, &read.max_of);
    if (out->parallel) *out = read;
}

// Returns the loop's spec, or NULL.
static const struct json *read_net_loop(struct playbook *pb, const struct json *loop, struct net_step *step)
{
    static const char *const known[] = {"in", "iterator", "spec", "mode", "max_in_flight", "desc", NULL};
    static const struct deprecated gone[] = {
        {"until", "repeat with an arc back to an earlier step, or with do: jump"},
        {"while", "repeat with an arc back to an earlier step, or with do: jump"},
        {"pagination", "ask for the next page with a rule of the task that jumps back while there is one: do: jump"},
        {"where", "leave items out with a filter: in: \"{{ items | selectattr('ok') | list }}\""},
    };
    static const struct renamed names[] = {
        {"collection", "in"}, {"items", "in"}, {"element", "iterator"}, {"as", "iterator"}};
    struct reader *r = pb->r;
    if (!loop || !read_object(r, loop, "loop")) return NULL;
    loop = members_today(pb, loop, names, ARRAY_COUNT(names));
    step->has_loop = true;
    for (uint32_t i = 0; i < loop->count; i++)
        if (!refuse_deprecated(pb, &loop->members[i], gone, ARRAY_COUNT(gone), "loops"))
            unknown_member(pb, &loop->members[i], known, "a loop", false);
    struct span at = place_of(r, loop);
    const struct json *in = field_required(r, loop, "in", NULL, at, "a loop");
    const struct json *iterator = field_required(r, loop, "iterator", NULL, at, "a loop");
    if (in) step->loop.in = tree_of(pb, in);
    if (iterator && read_text(r, iterator, "iterator", &step->loop.iterator) && !is_name(step->loop.iterator)) {
        struct span place = place_of(r, iterator);
        ERROR(r, "E0208", place, "\"%.*s\" cannot be the name of an iterator: letters, digits and '_'",
              SHOW(step->loop.iterator));
    }
    static const char *const of_spec[] = {"mode",   "max_in_flight", "policy",        "timeout", "timeout_s",
                                          "result", "output",        "output_select", "frame",   NULL};
    const struct json *spec = field(loop, "spec", NULL);
    if (spec && !read_object(r, spec, "spec")) spec = NULL;
    if (spec) useless_members(pb, spec, of_spec, "a loop's spec");
    read_loop_mode(pb, loop, spec, &step->loop);
    return spec;
}

// ---- arcs

static void add_arc(struct playbook *pb, const struct json *item, struct net_arc *arc)
{
    static const char *const known[] = {"step",     "when", "args", "input",       "set",  "set_ctx",
                                        "set_iter", "spec", "desc", "description", "name", NULL};
    static const struct deprecated gone[] = {
        {"then", "an arc leads to one step: {step: name, when: \"{{ ... }}\"}"},
        {"else", "an arc without when is always true; put it last"},
        {"if", "write the condition under when"},
        {"expr", "write the condition under when"},
        {"condition", "write the condition under when"},
    };
    static const struct renamed names[] = {{"with", "args"}, {"data", "args"}};
    struct reader *r = pb->r;
    *arc = (struct net_arc){.step = PROGRAM_TOP, .line = item->line, .column = item->column};
    if (item->type == JSON_OBJECT) item = members_today(pb, item, names, ARRAY_COUNT(names));
    const struct json *name = item;
    if (item->type == JSON_OBJECT) {
        for (uint32_t i = 0; i < item->count; i++)
            if (!refuse_deprecated(pb, &item->members[i], gone, ARRAY_COUNT(gone), "arcs"))
                unknown_member(pb, &item->members[i], known, "an arc", false);
        struct span at = place_of(r, item);
        name = field_required(r, item, "step", NULL, at, "an arc");
        const struct json *when = field(item, "when", NULL);
        if (when) read_condition(pb, when, WHEN_ARC, &arc->when);
        const struct json *args = field(item, "args", "input");
        bool whole = json_is(args, JSON_STRING) && template_is_dynamic(args->text); // a mapping when it is rendered
        if (args && (whole || read_object(r, args, "args"))) arc->args = tree_of(pb, args);
        read_sets(pb, item, SET_STEP, &arc->sets);
    }
    if (!name) return;
    if (!ARENA_ROOM(r->scratch, pb->arcs, pb->arc_count, &pb->arc_capacity)) {
        r->failed = true;
        return;
    }
    pb->arcs[pb->arc_count++] = (struct arc_wanted){arc, name};
}

static void read_next(struct playbook *pb, const struct json *next, struct net_step *step)
{
    static const char *const modes[] = {"exclusive", "inclusive", NULL};
    static const char *const known[] = {"spec", "arcs", "mode", NULL};
    struct reader *r = pb->r;
    const struct json *arcs = next;
    if (!next) return;
    if (next->type == JSON_OBJECT && !json_key(next, "step")) {
        for (uint32_t i = 0; i < next->count; i++) unknown_member(pb, &next->members[i], known, "next", false);
        const struct json *spec = field(next, "spec", NULL);
        const struct json *mode = field(next, "mode", NULL);
        size_t index;
        if (spec && read_object(r, spec, "spec") && field(spec, "mode", NULL)) mode = field(spec, "mode", NULL);
        if (mode && read_word(pb, mode, "mode", modes, &index)) step->inclusive = index == 1;
        struct span at = place_of(r, next);
        arcs = field_required(r, next, "arcs", NULL, at, "next");
        if (!arcs) return;
    }
    arcs = arcs_today(pb, arcs);
    bool one = arcs->type == JSON_OBJECT || arcs->type == JSON_STRING;
    if (!one && arcs->type != JSON_ARRAY) {
        wrong_type(r, arcs, "next", "a list of arcs");
        return;
    }
    uint32_t count = one ? 1 : arcs->count;
    if (pb->arc_count + count > r->load->edges_max) {
        struct span at = place_of(r, arcs);
        ERROR(r, "E0506", at, "the workflow has more than %u arcs", r->load->edges_max);
        return;
    }
    struct net_arc *made = ARENA_ARRAY(r->arena, count, struct net_arc);
    if (!made) {
        r->failed = true;
        return;
    }
    for (uint32_t i = 0; i < count && !r->failed; i++) add_arc(pb, one ? arcs : &arcs->items[i], &made[i]);
    step->arcs = made;
    step->arc_count = count;
    // A plain list of steps without a condition is for all of them: with the first alone the others would never be reached.
    bool all = arcs == next && count > 1;
    for (uint32_t i = 0; i < count; i++) all = all && made[i].when.text.len == 0;
    step->inclusive = step->inclusive || all;
}

// ---- the step

static const struct deprecated step_deprecated[] = {
    {"when", "say when a step may run under spec.policy.admit.rules, or route to it with a condition on the arc"},
    {"case", "route under next.arcs, each with its when"},
    {"retry", "try again with a rule of the task: tool.spec.policy.rules, do: retry"},
    {"sink", "store a result with a task of its own, after the one that made it"},
    {"type", "what a step does is its tool: tool: {kind: python, ...}"},
};

static const struct deprecated spec_deprecated[] = {
    {"next_mode", "write next: {spec: {mode: inclusive}, arcs: [...]}"},
    {"set", "set stands beside spec"},
};

static void read_step_name(struct playbook *pb, const struct json *object, struct draft *draft)
{
    struct reader *r = pb->r;
    const struct json *name = field_required(r, object, "step", NULL, draft->at, "a step");
    struct str text;
    if (!name || !read_text(r, name, "step", &text)) return;
    draft->at = place_of(r, name);
    draft->step.line = name->line;
    draft->step.column = name->column;
    if (place_id_valid(text)) {
        draft->step.id = draft->step.name = text;
        return;
    }
    struct diagnostic *d = ERROR(r, "E0208", draft->at, "\"%.*s\" cannot be the name of a step", SHOW(text));
    HINT(r, d, "a letter, a digit or '_', then up to 127 letters, digits, '_', '-', '.' and '/'");
}

static const struct json *read_step_spec(struct playbook *pb, const struct json *object, struct net_step *step)
{
    const struct json *spec = field(object, "spec", NULL);
    if (!spec || !read_object(pb->r, spec, "spec")) return NULL;
    static const char *const known[] = {"policy",        "timeout",   "timeout_s", "result", "output",
                                        "output_select", "next_mode", "set",       NULL};
    for (uint32_t i = 0; i < spec->count; i++)
        refuse_deprecated(pb, &spec->members[i], spec_deprecated, ARRAY_COUNT(spec_deprecated), "a step's spec");
    useless_members(pb, spec, known, "a step's spec");
    read_step_policy(pb, field(spec, "policy", NULL), step);
    return spec;
}

struct iterator_use {
    struct str iterator;
    bool used;
};

static void see_iterator(void *context, struct str name)
{
    struct iterator_use *use = context;
    if (str_eq(name, use->iterator) || str_is(name, "iter")) use->used = true;
}

// The step's own input. In a loop it may read the item, and then it is another one in every iteration.
static void read_step_input(struct playbook *pb, const struct json *input, struct net_step *step)
{
    step->args = tree_of(pb, input);
    if (!step->has_loop || !step->args) return;
    struct iterator_use use = {step->loop.iterator, false};
    template_tree_names(step->args, see_iterator, &use);
    if (!use.used) return;
    step->item_args = step->args;
    step->args = NULL;
}

static void check_step_fields(struct playbook *pb, const struct json *object)
{
    static const char *const known[] = {"step",   "desc",   "description",   "spec", "loop",    "tool",
                                        "next",   "args",   "input",         "set",  "set_ctx", "set_iter",
                                        "result", "output", "output_select", "name", "vars",    NULL};
    for (uint32_t i = 0; i < object->count; i++)
        if (!refuse_deprecated(pb, &object->members[i], step_deprecated, ARRAY_COUNT(step_deprecated), "steps"))
            unknown_member(pb, &object->members[i], known, "a step", false);
}

// What its only tool cannot do without stands beside the tool: nobody would look at it there.
static bool is_misplaced(const struct json *tool, struct str key)
{
    static const struct {
        const char *kind, *key;
    } needed[] = {{"postgres", "command"}, {"postgres", "query"}, {"sqlite", "command"}, {"sqlite", "query"},
                  {"duckdb", "command"},   {"duckdb", "query"},   {"python", "code"},    {"shell", "cmds"},
                  {"http", "url"},         {"http", "endpoint"}};
    struct str kind = json_is(tool, JSON_OBJECT) ? json_text(json_key(tool, "kind")) : (struct str){0};
    for (size_t i = 0; i < ARRAY_COUNT(needed); i++) {
        if (!str_is(kind, needed[i].kind) || !str_is(key, needed[i].key)) continue;
        const struct json *spec = json_key(tool, "spec");
        return !json_get(tool, key) && !(json_is(spec, JSON_OBJECT) && json_get(spec, key)) &&
               !json_key(tool, "script");
    }
    return false;
}

static void refuse_misplaced(struct playbook *pb, const struct json *object)
{
    const struct json *tool = field(object, "tool", NULL);
    for (uint32_t i = 0; i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        if (!is_misplaced(tool, member->key)) continue;
        struct diagnostic *d = ERROR(pb->r, "E0227", place_of_key(pb->r, member),
                                     "\"%.*s\" of the \"tool\" is required, and stands beside it", SHOW(member->key));
        HINT(pb->r, d, "indent it as \"kind\" is");
    }
}

void read_playbook_step(struct playbook *pb, const struct json *object, struct draft *draft, struct net_step *step)
{
    struct reader *r = pb->r;
    draft->step.kind = STEP_TASKS;
    draft->at = place_of(r, object);
    draft->step.line = object->line;
    draft->step.column = object->column;
    if (!read_object(r, object, "workflow")) return;
    object = step_today(pb, object);
    read_step_name(pb, object, draft);
    check_step_fields(pb, object);
    refuse_misplaced(pb, object);
    const struct json *desc = field(object, "desc", "description");
    if (desc) read_text(r, desc, "desc", &draft->step.name);
    struct task_site site = {.step = draft->step.id};
    site.specs[1] = read_step_spec(pb, object, step);
    site.specs[0] = read_net_loop(pb, field(object, "loop", NULL), step);
    site.specs[2] = pb->spec;
    read_layers(pb, &site, step);
    site.sets = step->has_loop ? SET_ITERATION : SET_VISIT;
    const struct json *tool = field(object, "tool", NULL), *next = field(object, "next", NULL), *passed = NULL;
    if (tool) tool = pipelines_today(pb, tool, &passed);
    const struct json *input = field(object, "input", "args");
    struct json both = merged(pb, json_is(passed, JSON_OBJECT) ? passed : NULL, input);
    if (json_is(passed, JSON_OBJECT) && (!input || input->type == JSON_OBJECT)) input = &both;
    if (input && read_object(r, input, "input")) {
        site.input = input;
        read_step_input(pb, input, step);
    }
    const struct json *controls = field(object, "output", "result");
    struct json selected = json_object();
    const struct json *select = field(object, "output_select", NULL);
    if (select && !json_put(r->arena, &selected, STR("output_select"), *select)) r->failed = true;
    selected = merged(pb, controls, &selected);
    site.controls = &selected;
    if (tool) read_tasks(pb, tool, &site, step);
    if (!tool && !next && step == pb->steps) { // the entry; later ones end a branch by being reached
        struct diagnostic *d =
            ERROR(r, "E0227", draft->at, "step \"%.*s\": \"tool\" is required, or \"next\"", SHOW(draft->step.id));
        HINT(r, d, "only a step that ends a branch may have neither");
    }
    if (step->has_loop && !tool) {
        struct span at = place_of(r, field(object, "loop", NULL));
        ERROR(r, "E0227", at, "step \"%.*s\" has a loop, so a \"tool\" is required", SHOW(draft->step.id));
    }
    read_sets(pb, object, SET_STEP, &step->sets);
    read_next(pb, next, step);
    draft->step.timeout_ms = step->timeout_ms;
}
