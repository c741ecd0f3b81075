// Which store it is, and its lives: how often it was put back from a backup, and where in its feed.
#include "store/backend.h"

#include "json/make.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

#define LIFE_SPACE STR("store")
#define LIFE_KEY STR("life")
#define NAME_KEY STR("uuid")

enum code store_name(struct store *store, struct arena *arena, struct str *out, struct error *err)
{
    struct note note;
    enum code rc = store_note(store, LIFE_SPACE, NAME_KEY, arena, &note, err);
    if (!rc && note.value.len != UUID_SIZE - 1)
        rc = error_set(err, E_CORRUPT, "the note with the name of this store is damaged");
    if (!rc) *out = note.value;
    return rc;
}

enum code store_give_name(struct store *store, int64_t now_ms, struct arena *arena, struct str *out, struct error *err)
{
    char name[UUID_SIZE];
    enum code rc = store_name(store, arena, out, err);
    bool simulated = store->options.vfs || store->options.disk; // the same bytes must come out every time
    if (rc != E_NOT_FOUND || simulated) return rc;
    if (err) *err = (struct error){0};
    entropy_uuid(os_entropy(), name);
    struct note_put put = {.space = LIFE_SPACE, .key = NAME_KEY, .value = {name, UUID_SIZE - 1}};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    rc = store_append(store, &batch, now_ms, arena, err);
    if (rc && rc != E_CONFLICT) return rc; // another engine was faster
    if (err) *err = (struct error){0};
    return store_name(store, arena, out, err);
}

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

enum code life_next(const struct store_lives *lives, uint64_t position, int64_t now_ms, struct entropy *entropy,
                    struct arena *arena, struct note_put *out, struct error *err)
{
    struct store_lives next = *lives;
    struct json restored = json_array();
    uint8_t bytes[16];
    if (next.number++ > 0) {
        if (next.position_count == LIVES_KEPT)
            memmove(next.positions, next.positions + 1, --next.position_count * sizeof(next.positions[0]));
        next.positions[next.position_count++] = position;
    }
    entropy->fill(entropy, bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) snprintf(next.id + 2 * i, 3, "%02x", bytes[i]);
    for (size_t i = 0; i < next.position_count; i++)
        json_append(arena, &restored, JSON_OF(arena, {"position", json_count(next.positions[i])}));
    struct json value = JSON_OF(arena, {"id", json_word(next.id)}, {"number", json_int(next.number)},
                                {"restored", restored}, {"since", json_time(arena, now_ms)});
    *out = (struct note_put){.space = LIFE_SPACE,
                             .key = LIFE_KEY,
                             .value = json_canon_kept(arena, &value, 64 * 1024),
                             .expect = NOTE_ANY};
    return out->value.ptr ? OK : error_nomem(err);
}
