// The lives of a store: how often it was put back from a backup, and where in its feed.
#include "store/store.h"

#include "base/civil.h"

#include <stdio.h>
#include <string.h>

#define LIFE_SPACE STR("store")
#define LIFE_KEY STR("life")

enum code store_lives(struct store *store, struct arena *arena, struct store_lives *out, struct error *err)
{
    struct note note;
    struct json value;
    *out = (struct store_lives){.number = 1};
    enum code rc = store_note(store, LIFE_SPACE, LIFE_KEY, arena, &note, err);
    if (rc == E_NOT_FOUND || rc == E_UNSUPPORTED) {
        if (err) *err = (struct error){0};
        return OK;
    }
    if (!rc) rc = json_parse(note.value, NULL, arena, &value, err);
    if (rc) return rc;
    const struct json *restored = json_key(&value, "restored");
    int64_t number = json_integer(json_key(&value, "number"), 0);
    struct str id = json_text(json_key(&value, "id"));
    if (number < 1 || number > UINT32_MAX || id.len >= sizeof(out->id) || !json_is(restored, JSON_ARRAY) ||
        restored->count > LIVES_KEPT)
        return error_set(err, E_CORRUPT, "the note about the lives of this store is damaged");
    out->number = (uint32_t)number;
    memcpy(out->id, id.ptr, id.len);
    for (; out->position_count < restored->count; out->position_count++)
        out->positions[out->position_count] =
            (uint64_t)json_integer(json_key(&restored->items[out->position_count], "position"), 0);
    return OK;
}

uint32_t life_of(const struct store_lives *lives, uint64_t position)
{
    uint32_t life = lives->number;
    for (size_t i = lives->position_count; i > 0 && lives->positions[i - 1] >= position; i--) life--;
    return life;
}

static bool describe(const struct store_lives *lives, const char *id, struct arena *arena, struct json *out)
{
    struct json restored = json_array();
    for (size_t i = 0; i < lives->position_count; i++) {
        struct json one = json_object();
        if (!json_put(arena, &one, STR("position"), json_int((int64_t)lives->positions[i])) ||
            !json_push(arena, &restored, one))
            return false;
    }
    *out = json_object();
    return json_put(arena, out, STR("id"), json_string(str_from(id))) &&
           json_put(arena, out, STR("number"), json_int(lives->number)) &&
           json_put(arena, out, STR("restored"), restored);
}

enum code life_next(const struct store_lives *lives, uint64_t position, int64_t now_ms, struct entropy *entropy,
                    struct arena *arena, struct note_put *out, struct error *err)
{
    struct store_lives next = *lives;
    struct json value;
    struct buf text;
    uint8_t bytes[16];
    char since[CIVIL_SIZE];
    if (next.number++ > 0) {
        if (next.position_count == LIVES_KEPT)
            memmove(next.positions, next.positions + 1, --next.position_count * sizeof(next.positions[0]));
        next.positions[next.position_count++] = position;
    }
    entropy->fill(entropy, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) snprintf(next.id + 2 * i, 3, "%02x", bytes[i]);
    civil_format(now_ms, since);
    if (!describe(&next, next.id, arena, &value) ||
        !json_put(arena, &value, STR("since"), json_string(str_from(since))))
        return error_nomem(err);
    buf_init(&text, 64 * 1024);
    json_canon(&text, &value);
    *out = (struct note_put){
        .space = LIFE_SPACE, .key = LIFE_KEY, .value = arena_copy(arena, buf_str(&text)), .expect = NOTE_ANY};
    bool good = buf_ok(&text) && out->value.ptr;
    buf_release(&text);
    return good ? OK : error_nomem(err);
}
