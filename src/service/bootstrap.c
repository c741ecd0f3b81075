// Tokens made by who has the store itself: the first one (A8), and another when all were lost. Nobody is asked over HTTP for these.
#include "service/inside.h"

#include <string.h>

enum { VALUE_MAX = 64 * 1024, AUDIT_MAX = 64 * 1024 };

struct str directory_of(struct str path, struct arena *arena)
{
    size_t slash = path.len;
    while (slash > 0 && path.ptr[slash - 1] != '/') slash--;
    return slash < 2 ? STR(".") : arena_copy(arena, str_slice(path, 0, slash - 1));
}

enum code token_keep(const struct token_made *made, struct store *store, struct str path, const struct note_put *more,
                     size_t more_count, struct arena *arena, struct error *err)
{
    char line[TOKEN_SIZE + 2];
    struct note_put *puts = ARENA_ARRAY(arena, more_count + 1, struct note_put);
    if (!puts) return error_nomem(err);
    puts[0] = (struct note_put){.space = STR("token"), .key = made->token.id, .value = made->value, .expect = 0};
    for (size_t i = 0; i < more_count; i++) puts[i + 1] = more[i];
    memcpy(line, made->text, TOKEN_SIZE);
    line[TOKEN_SIZE] = '\n';
    line[TOKEN_SIZE + 1] = '\0';
    // The file first: a token that nobody has is of no use, one that opens nothing does no harm.
    enum code rc = os_write_secret(path.ptr, (struct str){line, TOKEN_SIZE + 1}, err);
    struct store_batch batch = {.notes = puts, .note_count = more_count + 1};
    return rc ? rc : store_append(store, &batch, made->token.created_ms, arena, err);
}

enum code token_make(const char *name, struct arena *arena, struct token_made *out, struct error *err)
{
    uint8_t entropy[TOKEN_ENTROPY];
    struct str id;
    *out = (struct token_made){.token = {.name = str_from(name), .created_by = STR(FIRST_MAKER)}};
    out->token.created_ms = os_now().wall_ms;
    os_entropy()->fill(os_entropy(), entropy, sizeof(entropy));
    auth_token_make(entropy, out->text, &id, &out->token.secret);
    out->token.id = arena_copy(arena, id);
    out->token.principal = (struct principal){.id = out->token.id,
                                              .tenant = STR("default"),
                                              .pool = STR("default"),
                                              .roles = ROLE_ADMIN | ROLE_PLATFORM | ROLE_ENGINEER | ROLE_WORKER};
    struct buf value = buf_of(VALUE_MAX);
    enum code rc = out->token.id.ptr ? auth_token_encode(&out->token, arena, &value, err) : error_nomem(err);
    out->value = buf_keep(&value, arena);
    return !rc && !out->value.ptr ? error_nomem(err) : rc;
}

// The record has a chain of its own, which no engine writes: one that runs on the same database meanwhile is not in its way.
#define BOOTSTRAP_CHAIN "default~0"

static enum code audit_puts(struct store *store, const struct token *token, struct arena *arena, struct note_put puts[2],
                            struct error *err)
{
    struct buf head_key = buf_of(1024), key = buf_of(1024), bytes = buf_of(AUDIT_MAX), end = buf_of(1024);
    struct audit_head head = {0};
    struct note note;
    char id[UUID_SIZE];
    audit_head_key(STR(BOOTSTRAP_CHAIN), &head_key);
    enum code rc = store_note(store, STR("audit.head"), buf_str(&head_key), arena, &note, err);
    if (!rc) rc = audit_head_decode(note.value, arena, &head, err);
    if (rc == E_NOT_FOUND) rc = OK;
    entropy_uuid(os_entropy(), id);
    struct audit_record record = {.id = str_from(id),
                                  .at_ms = token->created_ms,
                                  .tenant = STR("default"),
                                  .actor = STR(FIRST_MAKER),
                                  .actor_type = STR("system"),
                                  .action = STR("token.bootstrap"),
                                  .resource_type = STR("token"),
                                  .resource = token->id,
                                  .outcome = AUDIT_GRANTED,
                                  .reason = STR("made with access to the store")};
    if (!rc) rc = audit_encode(&record, &head, arena, &bytes, err);
    if (!rc) audit_key(STR(BOOTSTRAP_CHAIN), head.seq, &key);
    if (!rc && !audit_head_encode(&head, arena, &end)) rc = error_nomem(err);
    puts[0] = (struct note_put){.space = STR("audit"), .key = buf_keep(&key, arena), .value = buf_keep(&bytes, arena)};
    puts[1] = (struct note_put){.space = STR("audit.head"),
                                .key = buf_keep(&head_key, arena),
                                .value = buf_keep(&end, arena),
                                .expect = NOTE_ANY};
    for (size_t i = 0; !rc && i < 2; i++)
        if (!puts[i].key.ptr || !puts[i].value.ptr) rc = error_nomem(err);
    return rc;
}

// A file whose token still opens the service is not written over: it may be all that its owner has.
static enum code check_file(struct store *store, struct str path, struct arena *arena, struct error *err)
{
    enum { FILE_MAX_SIZE = 4096 };
    struct str text, id;
    struct digest secret;
    struct note note;
    struct token token;
    struct error local = {0};
    if (os_read_regular(path.ptr, FILE_MAX_SIZE, arena, &text, &local)) return OK;
    if (!auth_token_parse(str_trim(text), &id, &secret) || store_note(store, STR("token"), id, arena, &note, &local) ||
        auth_token_decode(note.value, arena, &token, &local))
        return OK;
    const struct principal *who = &token.principal;
    bool good = auth_token_matches(&token, &secret) && !who->revoked &&
                (who->expires_ms == 0 || who->expires_ms > os_now().wall_ms);
    return good ? error_set(err, E_EXISTS, "%s has a token that is good; --out FILE puts another one elsewhere", path.ptr)
                : OK;
}

enum code service_token_bootstrap(struct store *store, struct str file, struct arena *arena, struct str *path,
                                  struct str *id, struct error *err)
{
    struct token_made made;
    struct note_put puts[2];
    *path = file.len ? file : arena_format(arena, "%.*s.token", STR_ARG(store_beside(store)));
    if (!path->ptr) return error_nomem(err);
    struct str directory = directory_of(*path, arena);
    enum code rc = directory.ptr ? os_make_dirs(directory.ptr, err) : error_nomem(err);
    if (!rc && !os_directory_is_ours(directory.ptr))
        rc = error_set(err, E_DENIED, "everybody may write to the directory of %s, and so exchange the token", path->ptr);
    if (!rc) rc = check_file(store, *path, arena, err);
    if (!rc) rc = token_make("bootstrap", arena, &made, err);
    if (!rc) rc = audit_puts(store, &made.token, arena, puts, err);
    if (!rc) rc = token_keep(&made, store, *path, puts, ARRAY_COUNT(puts), arena, err);
    if (!rc) *id = made.token.id;
    return rc;
}
