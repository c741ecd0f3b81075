// Tokens: a table in memory of what the notes of space "token" say. The secret itself is nowhere but with its owner.
#include "service/inside.h"

#include <stdlib.h>
#include <string.h>

static size_t place_of(const struct tokens *tokens, struct str id, bool *found)
{
    size_t low = 0, high = tokens->count;
    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_cmp(tokens->rows[middle]->token.id, id);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void row_free(struct token_row *row)
{
    if (!row) return;
    arena_release(&row->memory);
    free(row);
}

// Takes the row; one of the same id gives way.
static bool put_row(struct tokens *tokens, struct token_row *row)
{
    bool found;
    pthread_rwlock_wrlock(&tokens->lock);
    size_t at = place_of(tokens, row->token.id, &found);
    struct token_row *old = NULL;
    bool ok = found || LIST_ROOM(tokens->rows, tokens->count, &tokens->capacity);
    if (found) {
        old = tokens->rows[at];
        tokens->rows[at] = row;
    } else if (ok) {
        memmove(&tokens->rows[at + 1], &tokens->rows[at], (tokens->count - at) * sizeof(struct token_row *));
        tokens->rows[at] = row;
        tokens->count++;
    }
    pthread_rwlock_unlock(&tokens->lock);
    row_free(old);
    return ok;
}

enum code tokens_put(struct tokens *tokens, struct str bytes, struct error *err)
{
    struct token_row *row = calloc(1, sizeof(*row));
    if (!row) return error_nomem(err);
    arena_init(&row->memory, 1024, 1 << 20);
    struct str copy = arena_copy(&row->memory, bytes);
    enum code rc = copy.ptr ? auth_token_decode(copy, &row->memory, &row->token, err) : error_nomem(err);
    if (!rc && !put_row(tokens, row)) rc = error_nomem(err);
    if (rc) row_free(row);
    return rc;
}

static enum code load(void *context, const struct note *note, struct arena *scratch UNUSED, struct error *err)
{
    return tokens_put(context, note->value, err);
}

enum code tokens_load(struct service *service, struct store *store, struct error *err)
{
    return store_each_note(store, STR("token"), STR(""), load, &service->tokens, err);
}

struct reloading {
    void (*done)(void *context, enum code rc);
    void *context;
};

static void reloaded(struct call *call, enum code rc)
{
    const struct reloading *reloading = call->state;
    if (reloading->done) reloading->done(reloading->context, rc);
    call_free(call);
}

static bool load_again(struct call *call, struct store *store)
{
    struct error err = {0};
    enum code rc = tokens_load(call->service, store, &err);
    if (!rc) rc = sessions_load(call->service, store, &err);
    if (rc) os_log(LOG_ERROR, "tokens not read again why=\"%s\"", err.message);
    reloaded(call, rc);
    return true;
}

// Too many calls wait, or the service is stopping. An engine among others comes again by itself.
static void not_read(struct call *call)
{
    const struct reloading *reloading = call->state;
    if (reloading->done) os_log(LOG_ERROR, "tokens not read again why=\"the service is full or stopping\"");
    reloaded(call, E_LIMIT);
}

void service_reload(struct service *service, void (*done)(void *context, enum code rc), void *context)
{
    struct call *call = call_new(service, 4096);
    struct reloading *reloading = call ? ARENA_NEW(&call->arena, struct reloading) : NULL;
    if (!reloading) {
        call_free(call);
        if (done) done(context, E_NOMEM);
        return;
    }
    *reloading = (struct reloading){done, context};
    call->state = reloading;
    call->done = not_read;
    service_read(call, load_again);
}

void tokens_release(struct tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++) row_free(tokens->rows[i]);
    free(tokens->rows);
    tokens->rows = NULL;
    tokens->count = 0;
}

static const struct token *find(const struct tokens *tokens, struct str id)
{
    bool found;
    size_t at = place_of(tokens, id, &found);
    return found ? &tokens->rows[at]->token : NULL;
}

// Older notes do not say whose a token is: then it is its maker's, as principal_passes_on would have it.
static struct str person_of(const struct tokens *tokens, const struct token *token)
{
    for (size_t i = 0; i < tokens->count && !token->principal.person.len; i++) {
        if (!token->created_by.len || str_is(token->created_by, FIRST_MAKER)) break;
        const struct token *maker = find(tokens, token->created_by);
        if (!maker) return token->created_by; // of an identity provider
        if (!principal_passes_on(&maker->principal).len) break;
        token = maker;
    }
    return principal_person(&token->principal);
}

enum code tokens_person(struct service *service, struct store *store, struct str id, struct arena *arena, struct str *out,
                        struct error *err)
{
    struct note note;
    struct token token;
    enum code rc = store_note(store, STR("token"), id, arena, &note, err);
    if (!rc) rc = auth_token_decode(note.value, arena, &token, err);
    if (rc && rc != E_NOT_FOUND) return rc;
    pthread_rwlock_rdlock(&service->tokens.lock);
    *out = arena_copy(arena, rc ? id : person_of(&service->tokens, &token));
    pthread_rwlock_unlock(&service->tokens.lock);
    return out->ptr ? OK : error_nomem(err);
}

static bool copy_names(struct arena *arena, struct names *names)
{
    struct str *copy = names->count ? ARENA_ARRAY(arena, names->count, struct str) : NULL;
    if (names->count && !copy) return false;
    for (size_t i = 0; i < names->count; i++)
        if (!(copy[i] = arena_copy(arena, names->at[i])).ptr) return false;
    names->at = copy;
    return true;
}

static bool copy_principal(struct arena *arena, const struct principal *from, struct principal *out)
{
    *out = *from;
    if (!ARENA_KEEP(arena, &out->id, &out->person, &out->tenant, &out->pool, &out->audience)) return false;
    if (out->operation_count > 0) {
        enum operation *operations = ARENA_ARRAY(arena, out->operation_count, enum operation);
        if (!operations) return false;
        memcpy(operations, from->operations, out->operation_count * sizeof(*operations));
        out->operations = operations;
    }
    return copy_names(arena, &out->projects) && copy_names(arena, &out->environments);
}

// `secret` NULL: it was proved before.
static enum code stand_for(struct service *service, struct str id, const struct digest *secret, struct arena *arena,
                           struct principal *out, struct error *err)
{
    struct tokens *tokens = &service->tokens;
    pthread_rwlock_rdlock(&tokens->lock);
    const struct token *stored = find(tokens, id);
    bool ok = (!secret || auth_token_matches(stored, secret)) && stored;
    if (ok) {
        struct principal who = stored->principal;
        who.person = person_of(tokens, stored);
        ok = copy_principal(arena, &who, out);
    }
    pthread_rwlock_unlock(&tokens->lock);
    return ok ? OK : error_set(err, E_DENIED, "%s", "");
}

enum code tokens_principal(struct service *service, struct str id, struct arena *arena, struct principal *out,
                           struct error *err)
{
    return stand_for(service, id, NULL, arena, out, err);
}

enum code service_authenticate(struct service *service, struct str token, struct arena *arena, struct principal *out,
                               struct error *err)
{
    struct str id;
    struct digest secret;
    if (!auth_token_parse(token, &id, &secret)) return oidc_authenticate(service, token, arena, out, err);
    return stand_for(service, id, &secret, arena, out, err);
}

bool service_could(struct service *service, const struct principal *who, enum operation operation)
{
    struct auth_ask ask = {.principal = who, .operation = operation, .now_ms = os_now().wall_ms};
    return auth_precheck(service->auth, &ask).allowed;
}

// ---- the first token (A8): no installation begins with a known one

static struct str token_path(struct service *service, struct arena *arena)
{
    if (service->settings.token_file.len) return service->settings.token_file;
    return arena_format(arena, "%.*s.token", STR_ARG(store_beside(service->store)));
}

// In a directory that every user may write to, another user could put another token, or another store, in place.
static enum code check_place(struct service *service, struct str path, struct error *err)
{
    struct str directory = directory_of(path, &service->arena), whole = arena_copy(&service->arena, path);
    if (!directory.ptr || !whole.ptr) return error_nomem(err);
    if (service->settings.shared_directory || (os_directory_is_ours(directory.ptr) && os_directory_is_ours(whole.ptr)))
        return OK;
    return error_set(err, E_DENIED,
                     "everybody may write to the directory of %s, and so exchange it: chmod o-w, or [serve] sharedDirectory = true",
                     whole.ptr);
}

const char *service_token_file(const struct service *service)
{
    return service->settings.token_file.ptr;
}

// After a restore all tokens are revoked (I46), and an operator must be able to come in.
static bool any_valid(const struct tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++)
        if (!tokens->rows[i]->token.principal.revoked) return true;
    return false;
}

enum code tokens_first(struct service *service, struct error *err)
{
    struct token_made made;
    struct str path = token_path(service, &service->arena);
    if (!path.ptr) return error_nomem(err);
    service->settings.token_file = path;
    // Beside a database there may be nothing yet.
    struct str directory = directory_of(path, &service->arena);
    enum code rc = directory.ptr ? os_make_dirs(directory.ptr, err) : error_nomem(err);
    if (!rc) rc = check_place(service, store_beside(service->store), err);
    if (!rc) rc = check_place(service, path, err);
    if (rc || any_valid(&service->tokens)) return rc;
    rc = token_make("first", &service->arena, &made, err);
    if (!rc) rc = token_keep(&made, service->store, path, NULL, 0, &service->arena, err);
    if (!rc) rc = tokens_put(&service->tokens, made.value, err);
    if (!rc) os_log(LOG_INFO, "first token written file=%.*s", STR_ARG(path));
    return rc;
}

bool service_token_valid(struct service *service, struct str id)
{
    struct tokens *tokens = &service->tokens;
    pthread_rwlock_rdlock(&tokens->lock);
    const struct token *token = find(tokens, id);
    const struct principal *who = token ? &token->principal : NULL;
    bool valid = who && !who->revoked && (who->expires_ms == 0 || who->expires_ms > os_now().wall_ms);
    pthread_rwlock_unlock(&tokens->lock);
    return valid;
}
