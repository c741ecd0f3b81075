// Workflows that Conductor lists and this host has no place for: each is looked at when its time has come, those that have waited
// longest first, so that many of others' never hide one of ours.
#include "conductor/inside.h"

#include <string.h>

void strangers_open(struct strangers *strangers)
{
    *strangers = (struct strangers){0};
    for (size_t i = 0; i < ARRAY_COUNT(strangers->rooms); i++) {
        arena_init(&strangers->rooms[i].arena, 16384, (size_t)64 << 20);
        map_init(&strangers->rooms[i].index, &strangers->rooms[i].arena);
    }
    strangers->now = &strangers->rooms[0];
}

void strangers_close(struct strangers *strangers)
{
    for (size_t i = 0; i < ARRAY_COUNT(strangers->rooms); i++) arena_release(&strangers->rooms[i].arena);
}

void strangers_list(struct strangers *strangers)
{
    strangers->before = strangers->now;
    strangers->now = strangers->before == &strangers->rooms[0] ? &strangers->rooms[1] : &strangers->rooms[0];
    struct strangers_room *room = strangers->now;
    arena_reset(&room->arena);
    map_init(&room->index, &room->arena);
    room->items = NULL;
    room->count = room->capacity = 0;
}

void strangers_add(struct strangers *strangers, struct str id, int64_t since_ms, int64_t look_ms)
{
    struct strangers_room *room = strangers->now, *before = strangers->before;
    uint32_t at = map_get(&before->index, id), existing;
    struct stranger one = {.since_ms = since_ms, .look_ms = look_ms};
    if (at != MAP_NONE) one = before->items[at];
    id_copy(one.workflow, id);
    // What is too much for this table comes when others have gone.
    if (!one.workflow[0] || room->count == STRANGERS_MAX || !ARENA_ROOM(&room->arena, room->items, room->count, &room->capacity)) return;
    struct str key = arena_copy(&room->arena, id);
    if (!key.ptr || !map_put(&room->index, key, (uint32_t)room->count, &existing) || existing != MAP_NONE) return;
    room->items[room->count++] = one;
}

struct stranger *strangers_due(struct strangers *strangers, int64_t now)
{
    struct stranger *due = NULL;
    for (size_t i = 0; i < strangers->now->count; i++) {
        struct stranger *one = &strangers->now->items[i];
        if (one->look_ms <= now && (!due || one->look_ms < due->look_ms)) due = one;
    }
    return due;
}
