// What a task says about itself under `assert`: the inputs that it expects and the members that its result has. Names are written
// as a list, as one text, or as a mapping from names to what they are, of which only the names count.
#include "program/playbook.h"

void name_list_add(struct playbook *pb, struct name_list *list, struct str name)
{
    for (size_t i = 0; i < list->count; i++)
        if (str_eq(list->items[i], name)) return;
    if (!ARENA_ROOM(pb->r->arena, list->items, list->count, &list->capacity)) {
        pb->r->failed = true;
        return;
    }
    list->items[list->count++] = name;
}

static void add_name(struct playbook *pb, const struct json *at, struct str name, struct name_list *list)
{
    struct reader *r = pb->r;
    if (name.len == 0 || template_is_dynamic(name)) {
        struct span place = place_of(r, at);
        struct diagnostic *d = ERROR(r, "E0206", place, "a name is needed, which is no template");
        HINT(r, d, "assert: {expects: [a, b], returns: [c]}");
        return;
    }
    name_list_add(pb, list, name);
}

// An item of a list: a name, {name: a, type: int}, or {a: int}.
static void add_item(struct playbook *pb, const struct json *item, struct name_list *list)
{
    const struct json *name = json_is(item, JSON_OBJECT) ? json_key(item, "name") : NULL;
    if (json_is(name, JSON_STRING)) item = name;
    if (item->type == JSON_STRING) {
        add_name(pb, item, item->text, list);
    } else if (item->type == JSON_OBJECT) {
        for (uint32_t i = 0; i < item->count; i++) add_name(pb, item, item->members[i].key, list);
    } else {
        wrong_type(pb->r, item, "assert", "names");
    }
}

static void add_names(struct playbook *pb, const struct json *value, struct name_list *list)
{
    if (!value || value->type == JSON_NULL) return;
    if (value->type != JSON_ARRAY) {
        if (value->type == JSON_OBJECT) {
            for (uint32_t i = 0; i < value->count; i++) add_name(pb, value, value->members[i].key, list);
            return;
        }
        add_item(pb, value, list);
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) add_item(pb, &value->items[i], list);
}

void read_assert(struct playbook *pb, const struct json *const *layers, size_t count, struct net_task *task)
{
    static const char *const known[] = {"expects", "expect", "returns", "return", NULL};
    struct name_list expects = {0}, returns = {0};
    for (size_t i = 0; i < count; i++) {
        const struct json *given = field(layers[i], "assert", NULL);
        if (!given || given->type == JSON_NULL || !read_object(pb->r, given, "assert")) continue;
        for (uint32_t k = 0; k < given->count; k++)
            unknown_member(pb, &given->members[k], known, "what a task asserts", false);
        add_names(pb, field(given, "expects", "expect"), &expects);
        add_names(pb, field(given, "returns", "return"), &returns);
    }
    task->expects = (struct net_names){expects.items, (uint32_t)expects.count};
    task->returns = (struct net_names){returns.items, (uint32_t)returns.count};
}
