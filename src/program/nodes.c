// Node workflows: a name and a list of nodes, each with exactly one body. What only a language model could do is
// refused node by node, so that one reading shows all of it.
#include "program/internal.h"

#include "base/civil.h"

#include <string.h>

// ---- fields

enum node_field_class {
    COMMON = 1,
    BODY,
    BODY_AI,    // needs a provider
    SCRIPT_ONLY,
    INPUTS_ONLY, // of a workflow or a function of the host
    WORKFLOW_ONLY,
    AI_ONLY, // no effect on a node that is not for a provider
};

static const struct node_field {
    const char *name;
    enum node_field_class class;
} node_fields[] = {
    {"id", COMMON},
    {"name", COMMON},
    {"description", COMMON},
    {"depends_on", COMMON},
    {"when", COMMON},
    {"trigger_rule", COMMON},
    {"timeout", COMMON},
    {"retry", COMMON},
    {"always_run", COMMON},
    {"env", COMMON},
    {"cwd", COMMON},
    {"secrets", COMMON},
    {"output", COMMON},
    {"limit", COMMON},
    {"output_type", COMMON},
    {"output_format", COMMON},
    {"compensate", COMMON},
    {"bash", BODY},
    {"script", BODY},
    {"approval", BODY},
    {"event", BODY},
    {"cancel", BODY},
    {"workflow", BODY},
    {"loop_group", BODY},
    {"wait", BODY},
    {"noop", BODY},
    {"echo", BODY},
    {"exec", BODY},
    {"merge", BODY},
    {"use", BODY},
    {"command", BODY_AI},
    {"prompt", BODY_AI},
    {"loop", BODY_AI},
    {"include", BODY},
    {"agent", BODY_AI},
    {"runtime", SCRIPT_ONLY},
    {"deps", SCRIPT_ONLY},
    {"with", INPUTS_ONLY},
    {"input", INPUTS_ONLY},
    {"fan_out", WORKFLOW_ONLY},
    {"model", AI_ONLY},
    {"provider", AI_ONLY},
    {"context", AI_ONLY},
    {"allowed_tools", AI_ONLY},
    {"denied_tools", AI_ONLY},
    {"idle_timeout", AI_ONLY},
    {"hooks", AI_ONLY},
    {"mcp", AI_ONLY},
    {"skills", AI_ONLY},
    {"agents", AI_ONLY},
    {"agent_ref", AI_ONLY},
    {"pi", AI_ONLY},
    {"effort", AI_ONLY},
    {"thinking", AI_ONLY},
    {"maxBudgetUsd", AI_ONLY},
    {"systemPrompt", AI_ONLY},
    {"fallbackModel", AI_ONLY},
    {"betas", AI_ONLY},
    {"sandbox", AI_ONLY},
    {"persist_session", AI_ONLY},
};

static const struct node_field *find_node_field(struct str key)
{
    for (size_t i = 0; i < ARRAY_COUNT(node_fields); i++)
        if (str_is(key, node_fields[i].name)) return &node_fields[i];
    return NULL;
}

static bool is_body(const struct node_field *known)
{
    return known && (known->class == BODY || known->class == BODY_AI);
}

static void unknown_node_field(struct reader *r, const struct json_member *member)
{
    struct span at = place_of_key(r, member);
    struct diagnostic *d = ERROR(r, "E0203", at, "unknown field \"%.*s\" in a node", SHOW(member->key));
    if (!d) return;
    struct nearest nearest = nearest_to(member->key);
    for (size_t i = 0; i < ARRAY_COUNT(node_fields); i++) nearest_try(&nearest, str_from(node_fields[i].name));
    hint_nearest(r, d, &nearest);
}

// The one body of the node, or NULL (reported).
static const struct json_member *find_body(struct reader *r, const struct json *object, struct span at)
{
    const struct json_member *body = NULL;
    for (uint32_t i = 0; i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        if (!is_body(find_node_field(member->key))) continue;
        if (body) {
            struct span place = place_of_key(r, member);
            struct diagnostic *d = ERROR(r, "E0215", place,
                                         "a node does one thing, but this one has \"%.*s\" and "
                                         "\"%.*s\"",
                                         SHOW(body->key), SHOW(member->key));
            HINT(r, d, "make two nodes of it");
        } else {
            body = member;
        }
    }
    if (!body) {
        struct diagnostic *d = ERROR(r, "E0215", at, "the node does nothing");
        HINT(r, d,
             "give it bash, script, approval, event, cancel, workflow, loop_group, wait, echo, "
             "exec, merge or noop");
    }
    return body;
}

static void check_node_fields(struct reader *r, const struct json *object, const struct json_member *body)
{
    const struct node_field *kind = body ? find_node_field(body->key) : NULL;
    bool ai = kind && kind->class == BODY_AI;
    for (uint32_t i = 0; i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        const struct node_field *known = find_node_field(member->key);
        if (!known) {
            unknown_node_field(r, member);
            continue;
        }
        bool idle = (known->class == AI_ONLY && !ai) ||
                    (known->class == SCRIPT_ONLY && kind && strcmp(kind->name, "script") != 0) ||
                    (known->class == WORKFLOW_ONLY && kind && strcmp(kind->name, "workflow") != 0) ||
                    (known->class == INPUTS_ONLY && kind && strcmp(kind->name, "workflow") != 0 &&
                     strcmp(kind->name, "use") != 0);
        bool deps = strcmp(known->name, "deps") == 0;
        if (!(idle && kind) && !deps) continue;
        struct span at = place_of_key(r, member);
        if (known->class == WORKFLOW_ONLY)
            ERROR(r, "E0217", at, "\"%s\" is for workflow nodes", known->name);
        else if (idle && kind)
            WARNING(r, "E0219", at, "\"%s\" has no effect on a %s node", known->name, kind->name);
        else
            WARNING(r, "E0219", at, "\"deps\" has no effect: Cairn does not install packages for scripts");
    }
}

// ---- bodies

static const struct json *not_null(const struct json *value)
{
    return json_is(value, JSON_NULL) ? NULL : value;
}

// A script that is one word is the name of a file.
static bool is_script_name(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool ok = char_is_word(c) || c == '.' ||
                  c == '/' || c == '-';
        if (!ok) return false;
    }
    return text.len > 0;
}

static void read_script(struct reader *r, const struct json *object, const struct json *value, struct draft *draft)
{
    const struct json *runtime = field(object, "runtime", NULL);
    struct str text;
    draft->step.kind = STEP_SCRIPT;
    if (!read_text(r, value, "script", &text)) return;
    if (str_trim(text).len == 0) {
        struct span at = place_of(r, value);
        ERROR(r, "E0206", at, "the script is empty");
        return;
    }
    bool named = is_script_name(text);
    body_script(r, draft, runtime, named ? NULL : value, named ? value : NULL, draft->at);
}

static void read_approval(struct reader *r, const struct json *value, struct draft *draft)
{
    static const struct field fields[] = {
        {"message", NULL}, {"timeout", NULL}, {"on_timeout", NULL}, {"capture_response", NULL}, {"on_reject", NULL},
    };
    draft->step.kind = STEP_APPROVAL;
    if (value->type == JSON_STRING) {
        body_approval(r, draft, value, NULL, NULL);
        return;
    }
    if (value->type != JSON_OBJECT) {
        wrong_type(r, value, "approval", "a message or a mapping");
        return;
    }
    fields_check(r, value, fields, ARRAY_COUNT(fields), "approval");
    for (uint32_t i = 0; i < value->count; i++) {
        const struct json_member *member = &value->members[i];
        struct span at = place_of_key(r, member);
        if (str_is(member->key, "on_reject"))
            WARNING(r, "E0219", at, "\"on_reject\" has no effect: a rejected approval fails");
        bool captures;
        if (str_is(member->key, "capture_response") && read_bool(r, &member->value, "capture_response", &captures) &&
            captures && !json_put(r->arena, &draft->step.with, STR("captureResponse"), json_bool(true)))
            r->failed = true;
    }
    struct span at = place_of(r, value);
    body_approval(r, draft, field_required(r, value, "message", NULL, at, "an approval"), field(value, "timeout", NULL),
                  field(value, "on_timeout", NULL));
}

static void read_event(struct reader *r, const struct json *value, struct draft *draft)
{
    static const struct field fields[] = {{"name", NULL}, {"correlation", NULL}};
    draft->step.kind = STEP_EVENT;
    if (value->type == JSON_STRING) {
        body_event(r, draft, value, NULL);
        return;
    }
    if (value->type != JSON_OBJECT) {
        wrong_type(r, value, "event", "a name or a mapping");
        return;
    }
    fields_check(r, value, fields, ARRAY_COUNT(fields), "event");
    body_event(r, draft, field_required(r, value, "name", NULL, place_of(r, value), "an event"),
               field(value, "correlation", NULL));
}

// The child runs once per item, so many at a time; what they give is a list.
static void read_fan_out(struct reader *r, const struct json *value, struct draft *draft)
{
    static const struct field fields[] = {{"items", NULL}, {"as", NULL}, {"max_parallel", NULL}, {"join", NULL}};
    static const char *const joins[] = {"all_done", "all_success", NULL};
    if (!value || !read_object(r, value, "fan_out")) return;
    struct span at = place_of(r, value);
    fields_check(r, value, fields, ARRAY_COUNT(fields), "fan_out");
    const struct json *items = field_required(r, value, "items", NULL, at, "fan_out");
    const struct json *as = field(value, "as", NULL), *parallel = field(value, "max_parallel", NULL),
                      *join = field(value, "join", NULL);
    struct json how = json_object();
    struct str name;
    int64_t count = FAN_OUT_PARALLEL;
    size_t index = 0;
    bool ok = true;
    if (items && items->type != JSON_STRING && items->type != JSON_ARRAY)
        wrong_type(r, items, "items", "a list, or a reference to one");
    else if (items)
        ok = json_put(r->arena, &how, STR("items"), *items);
    if (as && read_text(r, as, "as", &name)) ok = ok && json_put(r->arena, &how, STR("as"), *as);
    if (parallel) read_count(r, parallel, "max_parallel", 1, FAN_OUT_MAX, &count);
    ok = ok && json_put(r->arena, &how, STR("maxParallel"), json_int(count));
    if (join) read_choice(r, join, "join", joins, &index);
    ok = ok && json_put(r->arena, &how, STR("join"), json_string(str_from(joins[index])));
    if (!ok || !json_put(r->arena, &draft->step.with, STR("fanOut"), how)) r->failed = true;
}

static void read_workflow(struct reader *r, const struct json *object, const struct json *value, struct draft *draft)
{
    static const struct field fields[] = {
        {"name", NULL}, {"path", NULL}, {"document", NULL}, {"inputs", NULL}, {"arguments", NULL}};
    const struct json *inputs = field(object, "with", "input");
    if (json_key(object, "with") && json_key(object, "input"))
        ERROR(r, "E0207", place_of(r, object), "\"input\" is another name of \"with\", and both are given");
    if (value->type == JSON_STRING) {
        body_subrun(r, draft, value, inputs, NULL);
        return;
    }
    draft->step.kind = STEP_SUBRUN;
    if (value->type != JSON_OBJECT) {
        wrong_type(r, value, "workflow", "a name or a mapping");
        return;
    }
    fields_check(r, value, fields, ARRAY_COUNT(fields), "workflow");
    const struct json *names[] = {field(value, "name", NULL), field(value, "path", NULL),
                                  field(value, "document", NULL)};
    const struct json *document = NULL;
    int count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (names[i]) document = names[i];
        count += names[i] != NULL;
    }
    struct span at = place_of(r, value);
    if (count != 1)
        ERROR(r, count ? "E0207" : "E0204", at, "workflow needs exactly one of \"name\", \"path\" and \"document\"");
    const struct json *own = field(value, "inputs", NULL);
    if (own && inputs) ERROR(r, "E0207", at, "the inputs of the workflow are given in \"inputs\" and in \"with\"");
    body_subrun(r, draft, document, own ? own : inputs, field(value, "arguments", NULL));
}

// "5s", 5000, a moment, a reference, or {duration | until}.
static void read_wait(struct reader *r, const struct json *value, struct draft *draft)
{
    static const struct field fields[] = {{"duration", "duration_ms"}, {"until", NULL}};
    if (value->type == JSON_OBJECT) {
        fields_check(r, value, fields, ARRAY_COUNT(fields), "wait");
        body_wait(r, draft, field(value, "duration", "duration_ms"), field(value, "until", NULL), draft->at);
        return;
    }
    int64_t ms;
    bool moment = value->type == JSON_STRING && (str_starts(value->text, STR("$")) || civil_parse(value->text, &ms));
    body_wait(r, draft, moment ? NULL : value, moment ? value : NULL, draft->at);
}

static void read_merge(struct reader *r, const struct json *value, struct draft *draft)
{
    static const struct field fields[] = {{"message", NULL}};
    draft->step.kind = STEP_MERGE;
    if (value->type == JSON_OBJECT) {
        fields_check(r, value, fields, ARRAY_COUNT(fields), "merge");
        body_message(r, draft, STEP_MERGE, field(value, "message", NULL));
    } else if (value->type == JSON_STRING) {
        body_message(r, draft, STEP_MERGE, value);
    } else if (not_null(value) && (value->type != JSON_BOOL || !value->boolean)) {
        wrong_type(r, value, "merge", "true, a message or a mapping");
    }
}

static void read_cancel(struct reader *r, const struct json *value, struct draft *draft)
{
    draft->step.kind = STEP_CANCEL;
    struct str text;
    if (read_text(r, value, "cancel", &text)) put(r, &draft->step.with, "reason", *value);
}

static void read_use(struct reader *r, const struct json *object, const struct json *value, struct draft *draft)
{
    draft->step.kind = STEP_HOST;
    if (!read_text(r, value, "use", &draft->step.function)) return;
    if (is_host_kind(r, draft->step.function)) {
        body_host(r, draft, field(object, "with", NULL));
        return;
    }
    struct span at = place_of(r, value);
    struct diagnostic *d = ERROR(r, "E0206", at, "there is no function \"%.*s\"", SHOW(draft->step.function));
    HINT(r, d, "functions come from a plugin (--plugin FILE) or from the program that embeds Cairn");
}

static void read_list(struct reader *r, const struct json *nodes, uint32_t depth, struct draft_list *list);

// NULL when there is no room for one more; said once.
static struct draft *add_node(struct reader *r, const struct json *value, struct draft_list *list)
{
    if (r->step_count < r->load->steps_max) return draft_add(r, list);
    struct span at = place_of(r, value);
    if (!r->full) HINT(r, ERROR(r, "E0505", at, "the workflow has more than %u nodes", r->load->steps_max), DOC_MORE_STEPS);
    r->full = true;
    return NULL;
}

static void add_until(struct reader *r, const struct json *until, const struct draft *loop, struct draft_list *children)
{
    struct str text;
    if (!until || !read_text(r, until, "until_bash", &text)) return;
    struct draft *draft = add_node(r, until, children);
    if (!draft) return;
    struct str id = loop->step.id;
    char *name = arena_alloc(r->arena, id.len + sizeof(".until"));
    if (!name) {
        r->failed = true;
        return;
    }
    if (id.len) memcpy(name, id.ptr, id.len);
    memcpy(name + id.len, ".until", sizeof(".until"));
    draft->step.id = (struct str){name, id.len + sizeof(".until") - 1};
    draft->step.name = draft->step.id;
    draft->step.condition = true;
    draft->step.rule = RULE_NONE_FAILED;
    draft->step.line = until->line;
    draft->step.column = until->column;
    draft->at = place_of(r, until);
    body_shell(r, draft, until);
}

static void read_loop(struct reader *r, const struct json *value, uint32_t depth, struct draft *draft)
{
    static const struct field fields[] = {
        {"max_iterations", NULL}, {"until_bash", NULL}, {"nodes", NULL}, {"until", NULL}, {"fresh_context", NULL}};
    draft->step.kind = STEP_LOOP;
    if (!read_object(r, value, "loop_group")) return;
    fields_check(r, value, fields, ARRAY_COUNT(fields), "loop_group");
    struct span at = place_of(r, value);
    for (uint32_t i = 0; i < value->count; i++) {
        struct span key = place_of_key(r, &value->members[i]);
        if (str_is(value->members[i].key, "until")) {
            struct diagnostic *d = ERROR(r, "E0216", key,
                                         "\"until\" waits for words of a language model, which Cairn does "
                                         "not run");
            HINT(r, d, "use until_bash: a command that exits with 0 when the loop is done");
        }
        if (str_is(value->members[i].key, "fresh_context")) WARNING(r, "E0219", key, "\"fresh_context\" has no effect");
    }
    const struct json *iterations = field_required(r, value, "max_iterations", NULL, at, "loop_group");
    int64_t count = 1;
    if (iterations) read_count(r, iterations, "max_iterations", 1, ITERATION_MAX, &count);
    draft->step.max_iterations = (uint32_t)count;
    const struct json *nodes = field_required(r, value, "nodes", NULL, at, "loop_group");
    if (!nodes) return;
    struct draft_list children = {0};
    read_list(r, nodes, depth + 1, &children);
    add_until(r, field(value, "until_bash", NULL), draft, &children);
    draft->children = children.items;
    draft->child_count = (uint32_t)children.count;
}

static void refuse_ai(struct reader *r, const struct json_member *body, const struct draft *draft)
{
    struct span at = place_of_key(r, body);
    struct diagnostic *d = ERROR(r, "E0216", at,
                                 "node \"%.*s\" needs an AI provider for its \"%.*s\", which Cairn "
                                 "does not run",
                                 SHOW(draft->step.id), SHOW(body->key));
    HINT(r, d, "call the model from a bash or script node instead");
}

static void read_body(struct reader *r, const struct json *object, const struct json_member *body, uint32_t depth,
                      struct draft *draft)
{
    const struct json *value = &body->value;
    struct str key = body->key;
    const struct node_field *known = find_node_field(key);
    INVARIANT(known);
    enum node_field_class class = known->class;
    if (class == BODY_AI) {
        refuse_ai(r, body, draft);
    } else if (str_is(key, "bash")) {
        struct str text;
        if (read_text(r, value, "bash", &text)) body_shell(r, draft, value);
    } else if (str_is(key, "script")) {
        read_script(r, object, value, draft);
    } else if (str_is(key, "approval")) {
        read_approval(r, value, draft);
    } else if (str_is(key, "event")) {
        read_event(r, value, draft);
    } else if (str_is(key, "cancel")) {
        read_cancel(r, value, draft);
    } else if (str_is(key, "workflow") || str_is(key, "include")) { // the other document is a run of its own
        read_workflow(r, object, value, draft);
        read_fan_out(r, field(object, "fan_out", NULL), draft);
    } else if (str_is(key, "loop_group")) {
        read_loop(r, value, depth, draft);
    } else if (str_is(key, "wait")) {
        read_wait(r, value, draft);
    } else if (str_is(key, "echo")) {
        body_message(r, draft, STEP_ECHO, value);
    } else if (str_is(key, "exec")) {
        body_argv(r, draft, value, "exec");
    } else if (str_is(key, "merge")) {
        read_merge(r, value, draft);
    } else if (str_is(key, "use")) {
        read_use(r, object, value, draft);
    } else if (not_null(value) && (value->type != JSON_BOOL || !value->boolean)) {
        wrong_type(r, value, "noop", "true");
    }
}

// ---- nodes

static bool is_node_id(struct str id)
{
    if (!step_id_valid(id) || (id.ptr[0] >= '0' && id.ptr[0] <= '9')) return false;
    // The condition of a loop is called ID.until, which has to be an id as well.
    return !memchr(id.ptr, '.', id.len) && id.len + sizeof(".until") - 1 <= 128;
}

static void read_node_id(struct reader *r, const struct json *object, struct draft *draft)
{
    const struct json *id = field_required(r, object, "id", NULL, draft->at, "a node");
    struct str text;
    if (!id || !read_text(r, id, "id", &text)) return;
    draft->at = place_of(r, id);
    draft->step.line = id->line;
    draft->step.column = id->column;
    if (is_node_id(text)) {
        draft->step.id = text;
        return;
    }
    struct diagnostic *d = ERROR(r, "E0208", draft->at, "\"%.*s\" cannot be a node id", SHOW(text));
    if (str_eq(text, STR("RUN")))
        HINT(r, d, "RUN stands for the run itself in event keys");
    else
        HINT(r, d, "a letter or '_', then up to 121 letters, digits, '_' and '-'");
}

// What a node and what undoes it have both.
static void read_work(struct reader *r, const struct json *object, const struct json_member *body, uint32_t depth, struct draft *draft)
{
    struct program_step *step = &draft->step;
    const struct json *name = field(object, "name", NULL);
    if (name) read_text(r, name, "name", &step->name);
    read_retry_nodes(r, field(object, "retry", NULL), &step->retry);
    read_secrets(r, field(object, "secrets", NULL), step);
    if (body) read_body(r, object, body, depth, draft);
    if (body) read_output(r, field(object, "output", NULL), step);
    if (body) step_limit_of_read(r, field(object, "limit", NULL), step);
    const struct json *timeout = field(object, "timeout", NULL);
    if (timeout) read_ms(r, timeout, "timeout", &step->timeout_ms);
    if (step->kind == STEP_SHELL || step->kind == STEP_SCRIPT || step->kind == STEP_EXEC) {
        body_env(r, draft, field(object, "env", NULL));
        body_text(r, draft, "cwd", field(object, "cwd", NULL));
    }
}

static void read_undo(struct reader *r, const struct json *object, struct draft_list *list)
{
    static const char *const never[] = {"id", "depends_on", "trigger_rule", "when", "always_run", "compensate", "loop_group", "cancel"};
    struct undo_at at = {field(object, "compensate", NULL), field(object, "id", NULL)};
    if (!at.value || !json_is(at.id, JSON_STRING) || !read_object(r, at.value, "compensate")) return;
    bool fine = true;
    for (size_t i = 0; i < ARRAY_COUNT(never); i++) {
        const struct json *odd = json_key(at.value, never[i]);
        if (!odd) continue;
        fine = false;
        struct span place = place_of(r, odd);
        ERROR(r, "E0217", place, "\"%s\" cannot stand in \"compensate\"", never[i]);
    }
    const struct json_member *body = fine ? find_body(r, at.value, place_of(r, at.value)) : NULL;
    if (!body) return;
    check_node_fields(r, at.value, body);
    struct draft *draft = undo_draft(r, &at, list);
    if (draft) read_work(r, at.value, body, 0, draft);
}

static void read_node(struct reader *r, const struct json *object, uint32_t depth, struct draft *draft)
{
    struct program_step *step = &draft->step;
    draft->at = place_of(r, object);
    step->line = object->line;
    step->column = object->column;
    if (!read_item(r, object, "a node")) return;
    read_node_id(r, object, draft);
    step->name = step->id;
    const struct json_member *body = find_body(r, object, draft->at);
    check_node_fields(r, object, body);
    const struct json *undo = field(object, "compensate", NULL);
    if (undo && depth > 0) {
        struct span at = place_of(r, undo);
        struct diagnostic *d = ERROR(r, "E0217", at, "\"compensate\" is not supported inside of a loop_group");
        HINT(r, d, "give it to the loop_group, or to a node behind it");
    }
    read_deps(r, field(object, "depends_on", NULL), "depends_on", draft);
    read_rule(r, field(object, "trigger_rule", NULL), "trigger_rule", &step->rule);
    read_when(r, field(object, "when", NULL), draft);
    const struct json *always = field(object, "always_run", NULL);
    if (always) read_bool(r, always, "always_run", &step->always_run);
    read_work(r, object, body, depth, draft);
    const struct json *retry = field(object, "retry", NULL), *timeout = field(object, "timeout", NULL);
    if (step->kind == STEP_LOOP && timeout) {
        struct span at = place_of(r, timeout);
        struct diagnostic *d = WARNING(r, "E0219", at, "\"timeout\" has no effect on a loop_group");
        HINT(r, d, "give the nodes inside it a timeout");
    }
    if (step->kind == STEP_LOOP && retry) {
        struct span at = place_of(r, retry);
        ERROR(r, "E0217", at, "\"retry\" is not supported on a loop_group: the loop repeats");
    }
}

static void read_list(struct reader *r, const struct json *nodes, uint32_t depth, struct draft_list *list)
{
    if (nodes->type != JSON_ARRAY) {
        wrong_type(r, nodes, "nodes", "a list");
        return;
    }
    struct span at = place_of(r, nodes);
    if (nodes->count == 0) ERROR(r, "E0214", at, "there are no nodes");
    if (depth > NESTING_MAX) {
        ERROR(r, "E0507", at, "loops nest more than %d deep", NESTING_MAX);
        return;
    }
    if (depth == 0)
        drafts_reserve_undo(r, list, nodes);
    else
        drafts_reserve(r, list, nodes->count + 1); // one more for the condition of a loop
    for (uint32_t i = 0; i < nodes->count && !r->failed && !r->full; i++) {
        struct draft *draft = add_node(r, &nodes->items[i], list);
        if (draft) read_node(r, &nodes->items[i], depth, draft);
    }
    for (uint32_t i = 0; depth == 0 && i < nodes->count && !r->failed && !r->full; i++) read_undo(r, &nodes->items[i], list);
}

// ---- the workflow

enum top_class { TOP_KNOWN = 1, TOP_IDLE };

static const struct {
    const char *name;
    enum top_class class;
} top_fields[] = {
    {"name", TOP_KNOWN},
    {"description", TOP_KNOWN},
    {"nodes", TOP_KNOWN},
    {"inputs", TOP_KNOWN},
    {"schedule", TOP_KNOWN},
    {"limits", TOP_KNOWN},
    {"tags", TOP_KNOWN},
    {"version", TOP_KNOWN},
    {"metadata", TOP_KNOWN},
    {"provider", TOP_KNOWN},
    {"model", TOP_KNOWN},
    {"modelReasoningEffort", TOP_KNOWN},
    {"webSearchMode", TOP_KNOWN},
    {"additionalDirectories", TOP_KNOWN},
    {"interactive", TOP_KNOWN},
    {"effort", TOP_KNOWN},
    {"thinking", TOP_KNOWN},
    {"fallbackModel", TOP_KNOWN},
    {"betas", TOP_KNOWN},
    {"sandbox", TOP_IDLE},
    {"worktree", TOP_KNOWN},
    {"mutates_checkout", TOP_KNOWN},
    {"persist_sessions", TOP_KNOWN},
    {"container", TOP_IDLE},
    {"evidence_policy", TOP_IDLE},
    {"budget", TOP_IDLE},
    {"requires", TOP_IDLE},
    {"returns", TOP_IDLE},
    {"outcome_field", TOP_IDLE},
};

static void check_top_fields(struct reader *r, const struct json *root)
{
    for (uint32_t i = 0; i < root->count; i++) {
        const struct json_member *member = &root->members[i];
        if (str_starts(member->key, STR("x-")) || str_starts(member->key, STR("$"))) continue;
        struct nearest nearest = nearest_to(member->key);
        enum top_class class = TOP_KNOWN;
        for (size_t k = 0; k < ARRAY_COUNT(top_fields) && nearest.distance > 0; k++) {
            nearest_try(&nearest, str_from(top_fields[k].name));
            class = top_fields[k].class;
        }
        struct span at = place_of_key(r, member);
        if (nearest.distance > 0) {
            struct diagnostic *d = WARNING(r, "E0203", at, "unknown field \"%.*s\" in a workflow", SHOW(member->key));
            hint_nearest(r, d, &nearest);
        } else if (class == TOP_IDLE) {
            struct diagnostic *d = WARNING(r, "E0219", at, "\"%.*s\" has no effect", SHOW(member->key));
            if (str_is(member->key, "sandbox")) HINT(r, d, "steps are kept from files and network by --confine: `cairn help run`");
        }
    }
}

// "flows/release.yaml" is called "release".
static struct str base_name(struct str file)
{
    size_t start = file.len;
    while (start > 0 && file.ptr[start - 1] != '/') start--;
    struct str name = str_slice(file, start, file.len);
    static const char *const extensions[] = {".yaml", ".yml", ".json"};
    for (size_t i = 0; i < ARRAY_COUNT(extensions); i++)
        if (name.len > strlen(extensions[i]) && str_ends(name, str_from(extensions[i])))
            return str_slice(name, 0, name.len - strlen(extensions[i]));
    return name;
}

static void read_version(struct reader *r, const struct json *root)
{
    const struct json *version = field(root, "version", NULL);
    const struct json *metadata = field(root, "metadata", NULL);
    if (metadata && read_object(r, metadata, "metadata") && field(metadata, "version", NULL))
        version = field(metadata, "version", NULL);
    version_read(r, version);
}

void nodes_read(struct reader *r, const struct json *root, struct draft_list *list)
{
    struct program *program = r->program;
    r->code = "";
    program->schema_version = STR("");
    check_top_fields(r, root);
    const struct json *name = field(root, "name", NULL);
    program->name = base_name(program->file);
    if (name) read_text(r, name, "name", &program->name);
    program->plan_id = program->name;
    if (!name_valid(program->name)) {
        struct span at = place_of(r, name ? name : root);
        ERROR(r, "E0208", at,
              "the name of a workflow has 1 to 128 bytes without '|' and control "
              "characters");
    }
    const struct json *description = field(root, "description", NULL);
    if (description) read_text(r, description, "description", &program->description);
    read_version(r, root);
    read_tags(r, field(root, "tags", NULL));
    read_inputs(r, field(root, "inputs", NULL));
    schedule_field_read(r, field(root, "schedule", NULL));
    document_limits_read(r, field(root, "limits", NULL));
    read_list(r, json_key(root, "nodes"), 0, list);
}
