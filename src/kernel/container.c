// What loops of playbooks and lists of child runs share: which member begins next, and when the last one has ended.
#include "kernel/container.h"

enum container_next container_next(const struct container *c, uint32_t most, bool stop)
{
    uint32_t open = container_open(c);
    if (!stop && c->begun < c->total && open < most) return CONTAINER_BEGIN;
    return open == 0 ? CONTAINER_END : CONTAINER_WAIT;
}

bool container_make(struct container *c, uint32_t total, const struct json *items, struct arena *memory)
{
    INVARIANT(items->type != JSON_ARRAY || items->count >= total || items->count == 0);
    *c = (struct container){.total = total};
    c->results = ARENA_ARRAY(memory, (size_t)total + 1, struct net_value);
    return c->results && (items->type != JSON_ARRAY || json_copy(memory, items, &c->items));
}

bool loop_items(struct arena *arena, const struct json *value, struct json *out)
{
    *out = json_array();
    if (value->type == JSON_ARRAY) {
        *out = *value;
        return true;
    }
    struct json parsed;
    bool text = value->type == JSON_STRING && str_starts(str_trim(value->text), STR("["));
    if (text && json_parse(value->text, &json_limits_result, arena, &parsed, NULL) == OK && parsed.type == JSON_ARRAY) {
        *out = parsed; // of a list that was written as JSON on its way here
        return true;
    }
    if (value->type == JSON_NULL || value->type == 0 || (value->type == JSON_STRING && str_trim(value->text).len == 0))
        return true;
    return json_push(arena, out, *value);
}
