// The workbook: tasks by name. An entry with several tasks is a pipeline: they stand in the step in place of the task that runs it.
#include "program/playbook.h"

bool is_labelled(const struct json *object)
{
    if (object->type != JSON_OBJECT || object->count == 0 || json_key(object, "kind")) return false;
    for (uint32_t i = 0; i < object->count; i++) {
        const struct json *value = &object->members[i].value;
        if (value->type != JSON_OBJECT || !json_key(value, "kind")) return false;
    }
    return true;
}

static bool is_pipeline(const struct json *tool)
{
    return tool->type == JSON_ARRAY || is_labelled(tool);
}

// What an entry says beside its tool is said of the tool.
static const struct json *with_assert(struct playbook *pb, const struct json *tool, const struct json *asserted)
{
    struct json claim = json_object();
    struct json *made = ARENA_NEW(pb->r->arena, struct json);
    if (!made || !json_put(pb->r->arena, &claim, STR("assert"), *asserted)) {
        pb->r->failed = true;
        return tool;
    }
    *made = merged(pb, tool, &claim);
    return made;
}

static void add_entry(struct playbook *pb, struct str name, struct span at, const struct json *value)
{
    struct reader *r = pb->r;
    if (!read_object(r, value, "workbook")) return;
    const struct json *tool = entry_today(pb, value);
    if (!tool && json_key(value, "kind")) tool = value;
    if (!tool) tool = field(value, "tasks", "pipeline");
    if (name.len == 0) {
        ERROR(r, "E0204", at, "an entry of the workbook needs \"name\"");
        return;
    }
    if (!tool) {
        ERROR(r, "E0204", at, "entry \"%.*s\" of the workbook: \"tool\" is required", SHOW(name));
        return;
    }
    if (tool->type == JSON_ARRAY && tool->count == 1) tool = &tool->items[0];
    if (tool->type == JSON_ARRAY && tool->count == 0) {
        ERROR(r, "E0214", at, "entry \"%.*s\" of the workbook has an empty list of tasks", SHOW(name));
        return;
    }
    if (tool->type != JSON_ARRAY && !read_object(r, tool, "tool")) return;
    for (uint32_t i = 0; i < pb->workbook_count; i++) {
        if (!str_eq(pb->workbook[i].name, name)) continue;
        ERROR(r, "E0301", at, "the workbook has two entries \"%.*s\"", SHOW(name));
        return;
    }
    const struct json *asserted = tool == value ? NULL : field(value, "assert", NULL);
    struct workbook_entry *entry = &pb->workbook[pb->workbook_count++];
    *entry = (struct workbook_entry){.name = name, .tool = tool, .asserted = asserted};
    if (asserted && !is_pipeline(tool)) entry->tool = with_assert(pb, tool, asserted);
}

void read_workbook(struct playbook *pb, const struct json *workbook)
{
    struct reader *r = pb->r;
    if (!workbook) return;
    if (workbook->type != JSON_ARRAY && workbook->type != JSON_OBJECT) {
        wrong_type(r, workbook, "workbook", "a list of entries");
        return;
    }
    const struct json *tasks =
        workbook->type == JSON_OBJECT && workbook->count == 1 ? json_key(workbook, "tasks") : NULL;
    if (tasks && (tasks->type == JSON_ARRAY || (tasks->type == JSON_OBJECT && !json_key(tasks, "kind"))))
        workbook = tasks;
    pb->workbook = ARENA_ARRAY(r->scratch, workbook->count, struct workbook_entry);
    if (!pb->workbook) {
        r->failed = true;
        return;
    }
    for (uint32_t i = 0; i < workbook->count; i++) {
        if (workbook->type == JSON_OBJECT) {
            const struct json_member *member = &workbook->members[i];
            add_entry(pb, member->key, place_of_key(r, member), &member->value);
        } else {
            const struct json *entry = &workbook->items[i];
            const struct json *name = field(entry, "name", "task");
            add_entry(pb, json_text(name), place_of(r, entry), entry);
        }
    }
}

// The entry that a task of kind workbook runs, or NULL (reported).
const struct json *find_entry(struct playbook *pb, const struct json *body, struct str label)
{
    struct reader *r = pb->r;
    const struct json *named = field(body, "task", NULL);
    if (!named) named = field(body, "name", NULL);
    struct str name = named ? json_text(named) : label;
    struct nearest nearest = nearest_to(name);
    for (uint32_t i = 0; i < pb->workbook_count; i++) {
        nearest_try(&nearest, pb->workbook[i].name);
        if (!str_eq(pb->workbook[i].name, name)) continue;
        if (!is_pipeline(pb->workbook[i].tool)) return pb->workbook[i].tool;
        struct span twice = place_of(r, named ? named : body);
        ERROR(r, "E0311", twice, "entry \"%.*s\" has several tasks: a step runs it, not another entry", SHOW(name));
        return NULL;
    }
    struct span at = place_of(r, named ? named : body);
    struct diagnostic *d = ERROR(r, "E0311", at, "the workbook has no entry \"%.*s\"", SHOW(name));
    hint_nearest(r, d, &nearest);
    return NULL;
}

// ---- pipelines

// The body of the task that `item` of a list, or the only task of a step, is, and the label that it is given.
static const struct json *body_of(const struct json *item, struct str *label)
{
    if (!is_labelled(item) || item->count != 1) return item;
    *label = item->members[0].key;
    return &item->members[0].value;
}

// The pipeline that `body` runs; NULL: it is another task.
static const struct workbook_entry *pipeline_of(struct playbook *pb, const struct json *body, struct str label)
{
    if (!json_is(body, JSON_OBJECT) || !str_is(json_text(json_key(body, "kind")), "workbook")) return NULL;
    const struct json *named = field(body, "task", "name");
    struct str name = named ? json_text(named) : label;
    for (uint32_t i = 0; i < pb->workbook_count; i++) {
        if (!str_eq(pb->workbook[i].name, name)) continue;
        return is_pipeline(pb->workbook[i].tool) ? &pb->workbook[i] : NULL;
    }
    return NULL;
}

static void give(struct playbook *pb, struct json *object, const char *key, const struct json *value)
{
    if (value && !json_put(pb->r->arena, object, str_from(key), *value)) pb->r->failed = true;
}

// What the task that runs a pipeline says of its tasks: of each its input, spec and policy; of the first what it expects; of the last
// what it returns, sets and keeps.
static struct json said_of(struct playbook *pb, const struct workbook_entry *entry, const struct json *body,
                           struct str kind, bool first, bool last)
{
    static const char *const end[] = {"set", "set_ctx", "set_iter", "vars", "result", "output", "output_select"};
    struct json under = json_object(), spec = json_object(), claims = json_object();
    const struct json *given = field(body, "spec", NULL), *policy = field(body, "policy", NULL);
    const struct json *given_claims = field(body, "assert", NULL);
    struct json asserted = merged(pb, given_claims, entry->asserted);
    give(pb, &spec, "policy", policy);
    spec = merged(pb, &spec, given);
    if (spec.count > 0) give(pb, &under, "spec", &spec);
    if (takes_input(kind)) give(pb, &under, "input", field(body, "input", "args"));
    if (first) give(pb, &claims, "expects", field(&asserted, "expects", "expect"));
    if (last) give(pb, &claims, "returns", field(&asserted, "returns", "return"));
    if (claims.count > 0) give(pb, &under, "assert", &claims);
    for (size_t i = 0; last && i < ARRAY_COUNT(end); i++) give(pb, &under, end[i], field(body, end[i], NULL));
    return under;
}

// The input of the task that runs it counts more than that of the entry; the rest of the entry's task counts more.
static void add_piece(struct playbook *pb, const struct workbook_entry *entry, const struct json *task,
                      struct str label, const struct json *body, bool first, bool last, struct json *list)
{
    struct reader *r = pb->r;
    struct json under = said_of(pb, entry, body, json_text(json_key(task, "kind")), first, last);
    const struct json *input = json_key(&under, "input");
    struct json over = json_object(), own = json_object();
    if (input) give(pb, &over, "input", input);
    struct json name = json_string(label);
    name.line = task->line;
    name.column = task->column;
    if (label.len) give(pb, &own, "name", &name);
    static const struct renamed args[] = {{"args", "input"}};
    struct json made = merged(pb, &over, members_today(pb, task, args, ARRAY_COUNT(args)));
    made = merged(pb, &made, &under);
    made = merged(pb, &own, &made);
    made.line = task->line;
    made.column = task->column;
    if (!json_push(r->arena, list, made)) r->failed = true;
}

static void add_pipeline(struct playbook *pb, const struct workbook_entry *entry, const struct json *body,
                         struct str label, struct json *list)
{
    const struct json *tasks = entry->tool;
    bool mapping = tasks->type == JSON_OBJECT;
    for (uint32_t i = 0; i < tasks->count && !pb->r->failed; i++) {
        bool first = i == 0, last = i + 1 == tasks->count;
        struct str own = mapping ? tasks->members[i].key : (struct str){0};
        const struct json *task = body_of(mapping ? &tasks->members[i].value : &tasks->items[i], &own);
        if (!read_object(pb->r, task, "tool")) continue;
        const struct json *name = field(task, "name", NULL);
        if (own.len == 0 && !str_is(json_text(json_key(task, "kind")), "workbook")) own = json_text(name);
        if (last && label.len) own = label; // it is what the pipeline gives
        add_piece(pb, entry, task, own, body, first, last, list);
    }
}

const struct json *pipelines_today(struct playbook *pb, const struct json *tool, const struct json **input)
{
    struct reader *r = pb->r;
    bool list = tool->type == JSON_ARRAY, any = false;
    uint32_t count = list ? tool->count : 1;
    struct json made = json_array();
    for (uint32_t i = 0; i < count && !r->failed; i++) {
        const struct json *item = list ? &tool->items[i] : tool;
        struct str label = {0};
        const struct json *body = body_of(item, &label);
        if (label.len == 0 && json_is(body, JSON_OBJECT) && json_key(body, "task"))
            label = json_text(field(body, "name", NULL)); // else it is the entry's
        const struct workbook_entry *entry = pipeline_of(pb, body, label);
        if (entry)
            add_pipeline(pb, entry, body, label, &made);
        else if (!json_push(r->arena, &made, *item))
            r->failed = true;
        any = any || entry;
        if (entry && count == 1) *input = field(body, "input", "args");
    }
    if (!any) return tool;
    struct json *kept = ARENA_NEW(r->arena, struct json);
    if (!kept) {
        r->failed = true;
        return tool;
    }
    made.line = tool->line;
    made.column = tool->column;
    *kept = made;
    return kept;
}
