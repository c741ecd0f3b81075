#include "store/keep.h"

#include "json/make.h"
#include "store/backend.h"

bool store_kept_note(const struct keep *keep, const struct digest *sha256, uint64_t bytes, struct arena *arena,
                     struct note_put *out)
{
    char hex[SHA256_HEX + 1];
    digest_hex(sha256, hex);
    struct json value = JSON_OF(arena, {"bytes", json_count(bytes)}, {"place", json_string(keep->place)},
                                {"store", json_word(keep->ops->name)});
    *out = (struct note_put){.space = KEEP_SPACE,
                             .key = arena_copy(arena, str_from(hex)),
                             .value = json_canon_kept(arena, &value, 4096),
                             .expect = NOTE_ANY};
    return out->key.ptr && out->value.ptr;
}

enum code store_kept_read(const struct note *note, struct arena *arena, struct kept_note *out, struct error *err)
{
    struct json value;
    enum code rc = json_parse(note->value, NULL, arena, &value, err);
    if (rc) return rc;
    *out = (struct kept_note){.place = json_text(json_key(&value, "place")),
                              .store = json_text(json_key(&value, "store")),
                              .bytes = (uint64_t)json_integer(json_key(&value, "bytes"), 0),
                              .version = note->version};
    bool good = out->store.len && digest_parse(note->key, &out->sha256);
    return good ? OK : error_set(err, E_CORRUPT, "the note of a result kept elsewhere cannot be read");
}

enum code store_keep_blob(struct store *store, const struct digest *sha256, struct arena *arena, struct str *out,
                          struct error *err)
{
    char hex[SHA256_HEX + 1];
    struct note note;
    struct kept_note kept;
    struct keep *keep = store->options.keep;
    struct error why = {0};
    digest_hex(sha256, hex);
    enum code rc = store->ops->notes.note(store, KEEP_SPACE, str_from(hex), arena, &note, &why);
    if (rc == E_NOT_FOUND || rc == E_UNSUPPORTED) return E_NOT_FOUND;
    if (!rc) rc = store_kept_read(&note, arena, &kept, &why);
    if (rc) return error_set(err, rc, "%s", why.message);
    if (!keep || !str_is(kept.store, keep->ops->name))
        return error_set(err, E_UNREACHABLE,
                         "result %.12s is kept in %.*s %.*s, which is not configured here (--results)", hex,
                         STR_ARG(kept.store), STR_ARG(kept.place));
    rc = store_keep_get(store, kept.place, sha256, arena, out, &why);
    if (!rc) return OK;
    // Nobody is to take it for damage of the store itself.
    return error_set(err, rc == E_CORRUPT ? E_NOT_FOUND : rc, "result %.12s in %.*s %.*s: %s", hex, STR_ARG(kept.store),
                     STR_ARG(kept.place), why.message);
}
