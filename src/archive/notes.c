// Notes of a store beside its runs: mirrored into a backup, put back as the next life of a store (I46).
#include "archive/archive.h"
#include "auth/auth.h"
#include "os/os.h"

#include <string.h>

enum { PAGE = 200 };

#define MARK_SPACE STR("store")
#define MARK_KEY STR("backup") // of a copy, not of what it is a copy of
#define BEGUN "begun"
#define WHOLE "whole"

struct carry {
    struct store *from, *to;
    enum notes_how how;
    int64_t now_ms;
    struct arena page;
    struct note_put puts[PAGE];
    size_t put_count;
    struct notes_report *report;
    struct error *err;
};

static enum code flush(struct carry *carry)
{
    struct store_batch batch = {.notes = carry->puts, .note_count = carry->put_count};
    struct arena turn SCOPED(arena_release) = arena_of(64 * 1024, SIZE_MAX);
    enum code rc = carry->put_count ? store_append(carry->to, &batch, carry->now_ms, &turn, carry->err) : OK;
    carry->put_count = 0;
    return rc;
}

static bool is_mark(const struct note *note)
{
    return str_eq(note->space, MARK_SPACE) && str_eq(note->key, MARK_KEY);
}

// ---- what does not go into the next life

// The positions of a feed are those of its store, and keys of tokens and of pages are what makes old ones void.
static bool is_void(const struct note *note)
{
    static const char *const spaces[] = {"sink", "dlq", "otlp", "projector", "health", "store"};
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++)
        if (str_is(note->space, spaces[i])) return true;
    return str_is(note->space, "key") && !str_is(note->key, "bundle");
}

// A token may have been revoked after the backup was made: all are, and the next start of the service makes a first one.
static enum code revoke(struct carry *carry, struct note *note)
{
    struct token token;
    enum code rc = auth_token_decode(note->value, &carry->page, &token, carry->err);
    if (rc || token.revoked_ms) return rc;
    token.revoked_ms = carry->now_ms;
    token.principal.revoked = true;
    struct buf text SCOPED(buf_release) = buf_of(64 * 1024);
    rc = auth_token_encode(&token, &carry->page, &text, carry->err);
    if (!rc && !(note->value = arena_copy(&carry->page, buf_str(&text))).ptr) rc = error_nomem(carry->err);
    carry->report->void_count += !rc;
    return rc;
}

// ---- one note, one space

static bool is_wanted(struct carry *carry, const struct note *note)
{
    if (is_mark(note)) return false;
    // What is elsewhere is fetched into the copy; the objects are for the store that put them to clear up.
    if (str_eq(note->space, KEEP_SPACE)) return false;
    if (carry->how == NOTES_NEXT_LIFE && is_void(note)) {
        carry->report->void_count += !str_is(note->space, "health") && !str_is(note->space, "store");
        return false;
    }
    return true;
}

static enum code put_note(struct carry *carry, struct note *note)
{
    struct note there;
    enum code rc = store_note(carry->to, note->space, note->key, &carry->page, &there, NULL);
    if (rc && rc != E_NOT_FOUND) return error_set(carry->err, rc, "cannot read a note: %s", code_text(rc));
    if (rc == OK && (carry->how == NOTES_DEFINITIONS || str_eq(there.value, note->value))) return OK;
    rc = carry->how == NOTES_NEXT_LIFE && str_is(note->space, "token") ? revoke(carry, note) : OK;
    if (rc) return rc;
    carry->puts[carry->put_count++] =
        (struct note_put){.space = note->space, .key = note->key, .value = note->value, .expect = NOTE_ANY};
    carry->report->put_count++;
    return OK;
}

static enum code carry_space(struct carry *carry, struct str space)
{
    char last[NOTE_KEY_MAX];
    struct str after = {last, 0};
    for (;;) {
        struct notes notes;
        arena_reset(&carry->page);
        enum code rc = store_notes(carry->from, space, after, PAGE, &carry->page, &notes, carry->err);
        for (size_t i = 0; !rc && i < notes.count; i++)
            if (is_wanted(carry, &notes.items[i])) rc = put_note(carry, &notes.items[i]);
        if (!rc && notes.count) {
            struct str key = notes.items[notes.count - 1].key;
            memcpy(last, key.ptr, key.len);
            after.len = key.len;
        }
        if (!rc) rc = flush(carry); // before the page goes
        if (rc || notes.count == 0) return rc;
    }
}

// What the original has no more.
static enum code clear_space(struct carry *carry, struct str space)
{
    char last[NOTE_KEY_MAX];
    struct str after = {last, 0};
    for (;;) {
        struct notes notes;
        arena_reset(&carry->page);
        enum code rc = store_notes(carry->to, space, after, PAGE, &carry->page, &notes, carry->err);
        for (size_t i = 0; !rc && i < notes.count; i++) {
            struct note there;
            if (is_mark(&notes.items[i])) continue;
            enum code got = store_note(carry->from, space, notes.items[i].key, NULL, &there, NULL);
            if (got == E_NOT_FOUND) {
                carry->puts[carry->put_count++] = (struct note_put){
                    .space = notes.items[i].space, .key = notes.items[i].key, .remove = true, .expect = NOTE_ANY};
                carry->report->removed_count++;
            } else if (got) {
                rc = error_set(carry->err, got, "cannot read a note: %s", code_text(got));
            }
        }
        if (!rc && notes.count) {
            struct str key = notes.items[notes.count - 1].key;
            memcpy(last, key.ptr, key.len);
            after.len = key.len;
        }
        if (!rc) rc = flush(carry);
        if (rc || notes.count == 0) return rc;
    }
}

// ---- all of them

// Two stores whose services have begun their lives apart are not each other's backup.
static enum code check_life(struct carry *carry, struct arena *arena)
{
    struct store_lives ours, theirs;
    enum code rc = store_lives(carry->from, arena, &ours, carry->err);
    if (!rc) rc = store_lives(carry->to, arena, &theirs, carry->err);
    if (rc || !theirs.id[0] || strcmp(ours.id, theirs.id) == 0) return rc;
    return error_set(carry->err, E_CONFLICT, "the copy is of another store, or of another life of this one");
}

static enum code begin_life(struct carry *carry, struct arena *arena)
{
    struct store_lives lives;
    uint64_t end = 0;
    enum code rc = store_lives(carry->from, arena, &lives, carry->err);
    if (!rc) rc = store_feed_end(carry->to, &end, carry->err);
    if (!rc) rc = life_next(&lives, end, carry->now_ms, os_entropy(), arena, &carry->puts[0], carry->err);
    carry->put_count = !rc;
    return rc ? rc : flush(carry);
}

static bool is_definition(struct str space)
{
    return str_is(space, "definition") || str_is(space, "plan");
}

static enum code carry_all(struct carry *carry, struct arena *arena)
{
    struct note_spaces spaces;
    enum code rc = store_note_spaces(carry->from, arena, &spaces, carry->err);
    for (size_t i = 0; !rc && i < spaces.count; i++)
        if (carry->how != NOTES_DEFINITIONS || is_definition(spaces.items[i])) rc = carry_space(carry, spaces.items[i]);
    if (rc || carry->how != NOTES_MIRROR) return rc;
    rc = store_note_spaces(carry->to, arena, &spaces, carry->err);
    for (size_t i = 0; !rc && i < spaces.count; i++) rc = clear_space(carry, spaces.items[i]);
    return rc;
}

enum code archive_notes(struct store *from, struct store *to, enum notes_how how, int64_t now_ms, struct arena *arena,
                        struct notes_report *out, struct error *err)
{
    *out = (struct notes_report){0};
    struct note_spaces spaces;
    struct carry *carry = ARENA_NEW(arena, struct carry);
    if (!carry) return error_nomem(err);
    *carry = (struct carry){.from = from, .to = to, .how = how, .now_ms = now_ms, .report = out, .err = err};
    enum code rc = store_note_spaces(from, arena, &spaces, err);
    if (rc || (spaces.count == 0 && how != NOTES_MIRROR)) return rc; // nobody has remembered anything
    arena_init(&carry->page, 64 * 1024, SIZE_MAX);
    if (how == NOTES_MIRROR) rc = check_life(carry, arena);
    if (!rc) rc = carry_all(carry, arena);
    if (!rc && how == NOTES_NEXT_LIFE) rc = begin_life(carry, arena);
    arena_release(&carry->page);
    return rc;
}

bool archive_has_notes(struct store *store, struct arena *arena)
{
    struct note_spaces spaces;
    struct error err = {0};
    return store_note_spaces(store, arena, &spaces, &err) == OK && spaces.count > 0;
}

// ---- whether a backup is whole

static enum code mark(struct store *to, const char *state, int64_t now_ms, struct error *err)
{
    struct note_put put = {.space = MARK_SPACE, .key = MARK_KEY, .value = str_from(state), .expect = NOTE_ANY};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    struct arena turn SCOPED(arena_release) = arena_of(4096, SIZE_MAX);
    return store_append(to, &batch, now_ms, &turn, err);
}

enum code archive_backup_begin(struct store *to, int64_t now_ms, struct error *err)
{
    return mark(to, BEGUN, now_ms, err);
}

enum code archive_backup_end(struct store *to, int64_t now_ms, struct error *err)
{
    return mark(to, WHOLE, now_ms, err);
}

enum code archive_backup_check(struct store *from, struct error *err)
{
    struct note note;
    struct arena arena SCOPED(arena_release) = arena_of(4096, SIZE_MAX);
    enum code rc = store_note(from, MARK_SPACE, MARK_KEY, &arena, &note, NULL);
    bool begun = rc == OK && str_is(note.value, BEGUN);
    return begun ? error_set(err, E_CONFLICT, "this backup was cut short: it is not whole") : OK;
}
