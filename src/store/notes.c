// S15 and S16, as far as they are the same for all backends. A put is held against the store and against the puts before it in the
// same batch; the backend gets the version that it must find, and looks again inside its own transaction.
#include "store/backend.h"

#include <string.h>

enum code note_missing(struct str space, struct str key, struct error *err)
{
    return error_set(err, E_NOT_FOUND, "there is no note %.*s/%.*s", STR_ARG(space), STR_ARG(key));
}

enum code note_conflict(const struct note_change *note, struct error *err)
{
    return error_set(err, E_CONFLICT, "note %.*s/%.*s is not at version %llu", STR_ARG(note->space), STR_ARG(note->key),
                     (unsigned long long)note->before);
}

static bool space_valid(struct str space)
{
    if (space.len == 0 || space.len > NOTE_SPACE_MAX) return false;
    for (size_t i = 0; i < space.len; i++) {
        char c = space.ptr[i];
        bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (!fits) return false;
    }
    return true;
}

static bool key_valid(struct str key)
{
    return key.len > 0 && key.len <= NOTE_KEY_MAX && !memchr(key.ptr, '\0', key.len);
}

static enum code check_name(struct str space, struct str key, struct error *err)
{
    if (!space_valid(space)) return error_set(err, E_INVALID, "\"%.*s\" is not a space of notes", STR_ARG(space));
    if (!key_valid(key)) return error_set(err, E_INVALID, "a key in %.*s is not valid", STR_ARG(space));
    return OK;
}

// ---- drafts

void note_draft_init(struct note_draft *draft, struct store *store, struct arena *arena)
{
    *draft = (struct note_draft){.store = store, .arena = arena};
    map_init(&draft->names, arena);
}

// The state of the note as the batch will find it when it comes to this put.
static enum code state_of(struct note_draft *draft, const struct note_put *put, struct note_state **out,
                          struct error *err)
{
    char text[NOTE_SPACE_MAX + 1 + NOTE_KEY_MAX];
    memcpy(text, put->space.ptr, put->space.len);
    text[put->space.len] = '\0';
    memcpy(text + put->space.len + 1, put->key.ptr, put->key.len);
    struct str name = {text, put->space.len + 1 + put->key.len};
    uint32_t at = map_get(&draft->names, name);
    if (at != MAP_NONE) {
        *out = &draft->states[at];
        return OK;
    }
    struct note note = {0};
    struct error told = {0};
    enum code rc = draft->store->ops->notes.note(draft->store, put->space, put->key, NULL, &note, &told);
    if (rc && rc != E_NOT_FOUND) return error_set(err, rc, "%s", told.message);
    if (!ARENA_ROOM(draft->arena, draft->states, draft->state_count, &draft->state_capacity)) return error_nomem(err);
    name = arena_copy(draft->arena, name);
    if (!name.ptr || !map_put(&draft->names, name, (uint32_t)draft->state_count, NULL)) return error_nomem(err);
    *out = &draft->states[draft->state_count++];
    **out = (struct note_state){.version = rc ? 0 : note.version};
    return OK;
}

static enum code check_put(const struct note_put *put, uint64_t version, struct error *err)
{
    INVARIANT(put->space.len > 0 && put->key.len > 0);
    bool audit = str_is(put->space, NOTE_AUDIT);
    if (audit && put->remove) return error_set(err, E_DENIED, "AUDIT_APPEND_ONLY: audit records are not removed");
    if (audit && version > 0)
        return error_set(err, E_CONFLICT, "AUDIT_APPEND_ONLY: audit record %.*s is there, and is not changed",
                         STR_ARG(put->key));
    if (put->expect != NOTE_ANY && put->expect != version)
        return error_set(err, E_CONFLICT, "note %.*s/%.*s is at version %llu, not %llu", STR_ARG(put->space),
                         STR_ARG(put->key), (unsigned long long)version, (unsigned long long)put->expect);
    return OK;
}

static enum code draft_one(struct note_draft *draft, const struct note_put *put, struct error *err)
{
    enum code rc = check_name(put->space, put->key, err);
    if (!rc && put->value.len > NOTE_VALUE_MAX)
        rc =
            error_set(err, E_LIMIT, "the value of note %.*s/%.*s is too large", STR_ARG(put->space), STR_ARG(put->key));
    struct note_state *state = NULL;
    if (!rc) rc = state_of(draft, put, &state, err);
    if (!rc) rc = check_put(put, state->version, err);
    if (rc || (put->remove && state->version == 0)) return rc;
    if (!ARENA_ROOM(draft->arena, draft->changes, draft->change_count, &draft->change_capacity))
        return error_nomem(err);
    struct note_change *change = &draft->changes[draft->change_count++];
    *change = (struct note_change){.space = put->space,
                                   .key = put->key,
                                   .value = put->remove ? STR("") : put->value,
                                   .before = state->version,
                                   .after = put->remove ? 0 : state->version + 1};
    state->version = change->after;
    return OK;
}

enum code note_draft_add(struct note_draft *draft, const struct note_put *notes, size_t count, struct error *err)
{
    size_t before = draft->change_count;
    enum code rc = OK;
    for (size_t i = 0; i < count && !rc; i++) rc = draft_one(draft, &notes[i], err);
    while (rc && draft->change_count > before) { // what was drafted of these is taken back, last one first
        const struct note_change *change = &draft->changes[--draft->change_count];
        struct note_state *state = NULL;
        struct note_put put = {.space = change->space, .key = change->key};
        if (state_of(draft, &put, &state, NULL) == OK) state->version = change->before;
    }
    return rc;
}

// ---- reading

enum code store_note(struct store *store, struct str space, struct str key, struct arena *arena, struct note *out,
                     struct error *err)
{
    *out = (struct note){0};
    enum code rc = check_name(space, key, err);
    return rc ? rc : store->ops->notes.note(store, space, key, arena, out, err);
}

enum code store_notes(struct store *store, struct str space, struct str after, size_t limit, struct arena *arena,
                      struct notes *out, struct error *err)
{
    *out = (struct notes){0};
    enum code rc = check_name(space, STR("-"), err);
    return rc || limit == 0 ? rc : store->ops->notes.notes(store, space, after, limit, arena, out, err);
}

static enum code visit_page(const struct notes *page, struct str prefix, note_visit visit, void *context,
                            struct arena *scratch, bool *more, struct error *err)
{
    enum code rc = OK;
    for (size_t i = 0; !rc && *more && i < page->count; i++) {
        *more = str_starts(page->items[i].key, prefix);
        if (*more) rc = visit(context, &page->items[i], scratch, err);
    }
    return rc;
}

enum code store_each_note(struct store *store, struct str space, struct str prefix, note_visit visit, void *context,
                          struct error *err)
{
    enum { PAGE = 500 };
    char last[NOTE_KEY_MAX];
    struct str after = prefix;
    enum code rc = OK;
    struct arena arena SCOPED(arena_release) = arena_of(64 * 1024, SIZE_MAX);
    for (bool more = true; !rc && more;) {
        struct notes page;
        arena_reset(&arena);
        rc = store_notes(store, space, after, PAGE, &arena, &page, err);
        if (!rc) rc = visit_page(&page, prefix, visit, context, &arena, &more, err);
        more = more && page.count == PAGE;
        if (rc || !more) break;
        struct str key = page.items[PAGE - 1].key; // it goes with the page
        memcpy(last, key.ptr, key.len);
        after = (struct str){last, key.len};
    }
    return rc;
}

enum code store_note_spaces(struct store *store, struct arena *arena, struct note_spaces *out, struct error *err)
{
    *out = (struct note_spaces){0};
    struct str after = STR("");
    size_t capacity = 0;
    for (;;) {
        enum code rc = store->ops->notes.next_space(store, after, arena, &after, err);
        if (rc || after.len == 0) return rc;
        if (!ARENA_ROOM(arena, out->items, out->count, &capacity)) return error_nomem(err);
        out->items[out->count++] = after;
    }
}

enum code store_freeze(struct store *store, struct error *err)
{
    return store->ops->admin.freeze(store, err);
}

enum code store_feed(struct store *store, uint64_t after, size_t limit, struct arena *arena, struct feed *out,
                     struct error *err)
{
    *out = (struct feed){.next = after};
    if (limit == 0) return OK;
    enum code rc = store->ops->feed.read(store, after, limit, arena, out, err);
    for (size_t i = 0; i < out->count && !rc; i++) out->items[i].record.hash = sha256(out->items[i].record.bytes);
    if (!rc && out->count && out->items[out->count - 1].position > out->next)
        out->next = out->items[out->count - 1].position;
    return rc;
}

enum code store_feed_end(struct store *store, uint64_t *out, struct error *err)
{
    *out = 0;
    return store->ops->feed.end(store, out, err);
}
