// Merge keys of YAML 1.1: `<<: *base`, `<<: [*first, *second]`.
#include "doc/internal.h"

#include "base/map.h"

static bool put_member(struct arena *arena, struct map *names, struct json *out, const struct json_member *member)
{
    uint32_t before;
    if (!map_put(names, member->key, out->count, &before)) return false;
    if (before != MAP_NONE) {
        out->members[before] = *member;
        return true;
    }
    if (!json_put(arena, out, member->key, member->value)) return false;
    out->members[out->count - 1] = *member;
    return true;
}

bool merge_add(struct arena *arena, struct json *merges, const struct json *value, bool *fits)
{
    bool list = value->type == JSON_ARRAY;
    *fits = list || value->type == JSON_OBJECT;
    for (uint32_t i = 0; list && *fits && i < value->count; i++) *fits = value->items[i].type == JSON_OBJECT;
    if (!*fits) return true;
    if (!list) return json_push(arena, merges, *value);
    for (uint32_t i = value->count; i-- > 0;)
        if (!json_push(arena, merges, value->items[i])) return false;
    return true;
}

enum code merge_apply(struct arena *arena, const struct json *merges, uint32_t key_max, struct json *object)
{
    struct map names;
    struct json out = json_object();
    map_init(&names, arena);
    out.line = object->line;
    out.column = object->column;
    for (uint32_t i = 0; i <= merges->count; i++) {
        const struct json *from = i < merges->count ? &merges->items[i] : object;
        for (uint32_t k = 0; k < from->count; k++)
            if (!put_member(arena, &names, &out, &from->members[k])) return E_NOMEM;
        if (out.count > key_max) return E_LIMIT;
    }
    *object = out;
    return OK;
}
