// Of a result that is kept beside the log: what was selected, and its beginning.
#include "json/make.h"
#include "kernel/net_inside.h"

enum { PREVIEW_MAX = 16 * 1024 }; // whatever the playbook says: it is part of an event

// At least this many bytes when written; stops counting at `max`.
size_t net_weight(const struct json *value, size_t max)
{
    size_t sum = 8;
    if (value->type == JSON_STRING || value->type == JSON_NUMBER) return sum + value->text.len;
    if (value->type == JSON_ARRAY) {
        for (uint32_t i = 0; i < value->count && sum < max; i++) sum += net_weight(&value->items[i], max - sum);
    } else if (value->type == JSON_OBJECT) {
        for (uint32_t i = 0; i < value->count && sum < max; i++)
            sum += value->members[i].key.len + 4 + net_weight(&value->members[i].value, max - sum);
    }
    return sum;
}

enum code net_extract(struct arena *turn, const struct net_task *task, const struct json *result, struct json *out,
                      struct error *err)
{
    if (task->select_count == 0 || !json_is(result, JSON_OBJECT)) return OK;
    *out = json_object();
    for (uint32_t i = 0; i < task->select_count; i++) {
        const struct json *part = json_at(result, task->selects[i].path);
        if (part && !json_get(out, task->selects[i].name) && net_weight(part, NET_PART_MAX) < NET_PART_MAX &&
            !json_put(turn, out, task->selects[i].name, *part))
            return error_nomem(err);
    }
    return net_canon(turn, out, err);
}

// So much of the value that its text begins as that of the whole for at least `room` bytes.
static bool head_of(struct arena *arena, const struct json *value, size_t *room, struct json *out)
{
    bool object = value->type == JSON_OBJECT, ok = true;
    *out = *value;
    if (!object && value->type != JSON_ARRAY) {
        size_t len = value->type == JSON_STRING && value->text.len > *room ? *room : value->text.len;
        while (value->type == JSON_STRING && len < value->text.len &&
               ((unsigned char)value->text.ptr[len] & 0xC0) == 0x80)
            len++; // never half a character
        if (value->type == JSON_STRING) out->text.len = len;
        size_t used = value->type == JSON_STRING ? len + 1 : 1;
        *room = *room > used ? *room - used : 0;
        return true;
    }
    *out = object ? json_object() : json_array();
    for (uint32_t i = 0; ok && i<value->count && * room> 0; i++) {
        struct json part;
        *room -= 1;
        ok = head_of(arena, object ? &value->members[i].value : &value->items[i], room, &part) &&
             (object ? json_put(arena, out, value->members[i].key, part) : json_push(arena, out, part));
    }
    return ok;
}

bool net_preview(struct arena *arena, const struct json *result, uint64_t max, struct json *out)
{
    struct json head;
    size_t most = max < PREVIEW_MAX ? (size_t)max : PREVIEW_MAX, room = most;
    if (most == 0) return true;
    if (!head_of(arena, result, &room, &head)) return false;
    struct buf text SCOPED(buf_release) = buf_of((size_t)64 << 20);
    json_canon(&text, &head);
    struct str sample = buf_str(&text);
    if (sample.len > most) {
        while (most > 0 && ((unsigned char)sample.ptr[most] & 0xC0) == 0x80) most--;
        sample.len = most;
    }
    struct str kept = buf_ok(&text) ? arena_copy(arena, sample) : (struct str){0};
    *out = JSON_OF(arena, {"bytes", json_count(kept.len)}, {"sample", json_text_made(kept)},
                   {"truncated", json_bool(true)});
    return json_ok(out);
}
