// Earlier generations of the language, written anew in today's before anything else is read: `tool: python` with its fields
// beside it, arcs with then and else, loops over a collection of elements, workbook entries with a type.
#include "program/playbook.h"

static bool put_at(struct playbook *pb, struct json *object, const struct json_member *from, struct str key,
                   struct json value)
{
    if (!json_put(pb->r->arena, object, key, value)) {
        pb->r->failed = true;
        return false;
    }
    object->members[object->count - 1].line = from->line;
    object->members[object->count - 1].column = from->column;
    return true;
}

static struct json *made_at(struct playbook *pb, const struct json *place)
{
    struct json *made = ARENA_NEW(pb->r->arena, struct json);
    if (!made) {
        pb->r->failed = true;
        return NULL;
    }
    *made = json_object();
    made->line = place->line;
    made->column = place->column;
    return made;
}

// ---- steps

static bool is_one_of(struct str key, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        if (str_is(key, names[i])) return true;
    return false;
}

const struct json *step_today(struct playbook *pb, const struct json *object)
{
    // What a step has for itself, whatever its tool is, and what it has given up; the rest tells the tool.
    static const char *const own[] = {"step", "desc",    "description", "spec",  "loop",          "next",
                                      "set",  "set_ctx", "set_iter",    "when",  "case",          "type",
                                      "sink", "vars",    "tool",        "retry", "output_select", NULL};
    const struct json *tool = json_key(object, "tool");
    if (!json_is(tool, JSON_STRING)) return object;
    struct json *step = made_at(pb, object), *task = made_at(pb, tool);
    if (!step || !task) return object;
    uint32_t at = 0;
    for (uint32_t i = 0; i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        if (str_is(member->key, "tool") && !put_at(pb, task, member, STR("kind"), member->value)) return object;
        if (str_is(member->key, "tool")) at = step->count;
        struct json *to = is_one_of(member->key, own) ? step : task;
        if (!put_at(pb, to, member, member->key, member->value)) return object;
    }
    step->members[at].value = *task;
    return step;
}

const struct json *entry_today(struct playbook *pb, const struct json *entry)
{
    const struct json *tool = json_key(entry, "tool");
    bool named = json_is(tool, JSON_STRING);
    if (!named && (tool || !json_is(json_key(entry, "type"), JSON_STRING))) return tool;
    struct json *task = made_at(pb, entry);
    for (uint32_t i = 0; task && i < entry->count; i++) {
        const struct json_member *member = &entry->members[i];
        if (str_is(member->key, "name") || str_is(member->key, "task")) continue;
        bool kind = str_is(member->key, named ? "tool" : "type");
        if (!put_at(pb, task, member, kind ? STR("kind") : member->key, member->value)) return NULL;
    }
    return task;
}

// ---- loops and arcs

const struct json *members_today(struct playbook *pb, const struct json *object, const struct renamed *names,
                                 size_t count)
{
    bool any = false;
    for (uint32_t i = 0; i < object->count; i++)
        for (size_t k = 0; k < count; k++)
            any = any || (str_is(object->members[i].key, names[k].old) && !json_key(object, names[k].now));
    struct json *made = any ? made_at(pb, object) : NULL;
    for (uint32_t i = 0; made && i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        struct str key = member->key;
        for (size_t k = 0; k < count; k++)
            if (str_is(member->key, names[k].old) && !json_key(object, names[k].now) && !json_key(made, names[k].now))
                key = str_from(names[k].now);
        if (!put_at(pb, made, member, key, member->value)) return object;
    }
    return made ? made : object;
}

// {when, then: [a]} and {else: [b]} become arcs; an item that leads to several steps is none, and is left to be refused.
static bool add_branch(struct playbook *pb, struct json *list, const struct json *item)
{
    const struct json *when = json_key(item, "when");
    const struct json *to = json_key(item, when ? "then" : "else");
    if (json_is(to, JSON_ARRAY) && to->count == 1) to = &to->items[0];
    bool named = json_is(to, JSON_STRING), arc = json_is(to, JSON_OBJECT) && json_key(to, "step");
    if (!named && !arc) return false;
    struct json *made = made_at(pb, to);
    if (!made) return false;
    struct json_member self = {.line = to->line, .column = to->column};
    if (named && !put_at(pb, made, &self, STR("step"), *to)) return false;
    for (uint32_t i = 0; arc && i < to->count; i++)
        if (!put_at(pb, made, &to->members[i], to->members[i].key, to->members[i].value)) return false;
    for (uint32_t i = 0; when && i < item->count; i++)
        if (str_is(item->members[i].key, "when") && !json_key(made, "when") &&
            !put_at(pb, made, &item->members[i], STR("when"), *when))
            return false;
    return json_push(pb->r->arena, list, *made);
}

const struct json *arcs_today(struct playbook *pb, const struct json *arcs)
{
    bool old = false;
    for (uint32_t i = 0; arcs->type == JSON_ARRAY && i < arcs->count; i++) {
        const struct json *item = &arcs->items[i];
        bool branch = json_is(item, JSON_OBJECT) && !json_key(item, "step");
        old = old || (branch && (json_key(item, "then") || json_key(item, "else")));
    }
    struct json *list = old ? made_at(pb, arcs) : NULL;
    if (!list) return arcs;
    list->type = JSON_ARRAY;
    for (uint32_t i = 0; i < arcs->count; i++) {
        const struct json *item = &arcs->items[i];
        bool branch = json_is(item, JSON_OBJECT) && !json_key(item, "step");
        if (branch ? !add_branch(pb, list, item) : !json_push(pb->r->arena, list, *item)) return arcs;
    }
    return list;
}
