// Sessions of browsers: a token, or a ticket that a terminal has bought for one, becomes a cookie and a key.
//
//  T1 A session has two halves. The cookie is sealed by the installation and is sent by the browser to every port of the host; the key is
//     with the page alone, which sends it in a header. Neither is of use without the other.
//  T2 A session has no rights of its own: each request looks its token up again. What the token may not, has lost or outlives, its
//     sessions may not, have lost and do not outlive.
//  T3 A session ends by itself after SESSION_MS, and at once when its owner signs out: its id is noted in the store until then, so
//     that a restart and the other engines of the store know it too.
//  T4 A ticket is good once, for TICKET_MS, in the process that sold it.
#include "service/inside.h"

#include "base/base64.h"

#include <stdlib.h>
#include <string.h>

enum { SESSION_MS = 8 * 3600 * 1000, TICKET_MS = 120 * 1000, TICKETS_EACH = 4 };
enum { SECRET_BYTES = 32, ID_BYTES = 16, HOLDER_MAX = 64 * 1024, ENDED_MAX = 100000 };

struct ticket {
    struct digest hash;
    int64_t expires_ms; // 0: free
    char *holder;
    size_t holder_size;
};

struct ended {
    char id[2 * ID_BYTES];
    int64_t expires_ms;
};

struct sessions {
    pthread_mutex_t mutex;
    struct task_key key;
    struct ticket tickets[256];
    struct ended *ended; // signed out, and not over yet by themselves
    size_t ended_count, ended_capacity;
};

// ---- whose it is: the id of a token that is in the store, or all of a principal that another place has proved

static enum code holder_write(const struct principal *who, struct arena *arena, struct str *out, struct error *err)
{
    struct buf text = buf_of(HOLDER_MAX);
    struct token token = {.id = who->id, .principal = *who};
    enum code rc = OK;
    if (who->is_foreign)
        rc = auth_token_encode(&token, arena, &text, err);
    else
        buf_add(&text, who->id);
    *out = buf_keep(&text, arena);
    return rc ? rc : out->ptr ? OK : error_nomem(err);
}

static enum code holder_read(struct service *service, struct str holder, struct arena *arena, struct principal *out,
                             struct error *err)
{
    struct token token;
    if (holder.len == 0 || holder.ptr[0] != '{') return tokens_principal(service, holder, arena, out, err);
    enum code rc = auth_token_decode(holder, arena, &token, err);
    if (rc) return rc;
    *out = token.principal;
    out->is_foreign = true;
    return OK;
}

static struct digest digest_of(const struct sessions *sessions, const char *what, struct str text)
{
    struct digest parts[2] = {sha256(str_from(what)), sha256(text)};
    return hmac_sha256((struct str){(const char *)sessions->key.b, sizeof(sessions->key.b)},
                       (struct str){(const char *)parts, sizeof(parts)});
}

static struct str random_text(size_t bytes, struct arena *arena)
{
    uint8_t random[SECRET_BYTES];
    struct buf text = buf_of(256);
    os_entropy()->fill(os_entropy(), random, sizeof(random));
    buf_hex(&text, random, bytes);
    return buf_keep(&text, arena);
}

static struct json digest_json(struct arena *arena, const char *what, const struct sessions *sessions, struct str text)
{
    struct digest digest = digest_of(sessions, what, text);
    return json_digest(arena, &digest);
}

// ---- opening and reading

enum code service_session_open(struct service *service, const struct principal *who, struct arena *arena,
                               struct browser_session *out, struct error *err)
{
    const struct sessions *sessions = service->sessions;
    struct str holder, payload;
    *out = (struct browser_session){.expires_ms = os_now().wall_ms + SESSION_MS};
    if (who->expires_ms && who->expires_ms < out->expires_ms) out->expires_ms = who->expires_ms;
    enum code rc = holder_write(who, arena, &holder, err);
    if (rc) return rc;
    out->id = random_text(ID_BYTES, arena);
    out->key = random_text(SECRET_BYTES, arena);
    if (!out->id.ptr || !out->key.ptr) return error_nomem(err);
    struct json value = JSON_OF(arena, {"expires", json_int(out->expires_ms)}, {"holder", json_string(holder)},
                                {"id", json_string(out->id)}, {"key", digest_json(arena, "key", sessions, out->key)});
    if (!json_ok(&value)) return error_nomem(err);
    struct buf text = buf_of(2 * HOLDER_MAX);
    json_canon(&text, &value);
    payload = buf_keep(&text, arena);
    if (!payload.ptr) return error_nomem(err);
    struct digest seal = digest_of(sessions, "cookie", payload);
    text = buf_of(3 * HOLDER_MAX);
    buf_hex(&text, seal.b, sizeof(seal.b));
    buf_add(&text, STR("."));
    buf_base64(&text, payload);
    out->cookie = buf_keep(&text, arena);
    return out->cookie.ptr ? OK : error_nomem(err);
}

static bool is_ended(struct sessions *sessions, struct str id)
{
    bool ended = false;
    LOCKED(&sessions->mutex);
    for (size_t i = 0; i < sessions->ended_count && !ended; i++)
        ended = str_eq(id, (struct str){sessions->ended[i].id, sizeof(sessions->ended[i].id)});
    return ended;
}

bool service_session_valid(struct service *service, struct str id, int64_t expires_ms)
{
    return os_now().wall_ms < expires_ms && !is_ended(service->sessions, id);
}

// What is not sealed here is not even parsed.
static bool unseal(const struct sessions *sessions, struct str cookie, struct arena *arena, struct json *out)
{
    struct str coded, hex = str_cut(cookie, '.', &coded);
    struct digest seal;
    if (!digest_parse(hex, &seal) || coded.len > 2 * HOLDER_MAX) return false;
    struct str payload = base64_read(coded, arena);
    if (!payload.ptr) return false;
    struct digest wanted = digest_of(sessions, "cookie", payload);
    return digest_same(&seal, &wanted) && json_parse(payload, NULL, arena, out, NULL) == OK;
}

enum code service_session_read(struct service *service, struct str cookie, struct str key, struct arena *arena,
                               struct principal *out, struct error *err)
{
    struct sessions *sessions = service->sessions;
    struct json value;
    struct digest kept;
    if (!unseal(sessions, cookie, arena, &value)) return error_set(err, E_DENIED, "%s", "");
    struct digest shown = digest_of(sessions, "key", key);
    struct str id = json_text(json_key(&value, "id"));
    int64_t expires = json_integer(json_key(&value, "expires"), 0);
    if (!digest_parse(json_text(json_key(&value, "key")), &kept) || !digest_same(&kept, &shown))
        return error_set(err, E_DENIED, "the key is not that of the session");
    if (!service_session_valid(service, id, expires)) return error_set(err, E_DENIED, "%s", "");
    enum code rc = holder_read(service, json_text(json_key(&value, "holder")), arena, out, err);
    out->session = id;
    out->session_ms = expires;
    return rc;
}

// ---- tickets

// Of one holder a few are good at a time: a holder who opens many gives up older ones of their own, and of no other holder.
static struct ticket *ticket_to_give_up(struct sessions *sessions, struct str holder)
{
    struct ticket *oldest = &sessions->tickets[0], *own = NULL;
    size_t own_count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(sessions->tickets); i++) {
        struct ticket *ticket = &sessions->tickets[i];
        if (ticket->expires_ms < oldest->expires_ms) oldest = ticket;
        if (!ticket->holder || !str_eq((struct str){ticket->holder, ticket->holder_size}, holder)) continue;
        if (!own || ticket->expires_ms < own->expires_ms) own = ticket;
        own_count++;
    }
    return own_count >= TICKETS_EACH ? own : oldest;
}

enum code service_ticket(struct service *service, const struct principal *who, struct arena *arena, struct str *text,
                         int64_t *expires_ms, struct error *err)
{
    struct sessions *sessions = service->sessions;
    struct str holder;
    enum code rc = holder_write(who, arena, &holder, err);
    if (rc) return rc;
    *text = random_text(SECRET_BYTES, arena);
    char *copy = malloc(holder.len + 1);
    if (!text->ptr || !copy) {
        free(copy);
        return error_nomem(err);
    }
    memcpy(copy, holder.ptr, holder.len);
    *expires_ms = os_now().wall_ms + TICKET_MS;
    LOCKED(&sessions->mutex);
    struct ticket *oldest = ticket_to_give_up(sessions, holder);
    free(oldest->holder);
    *oldest = (struct ticket){digest_of(sessions, "ticket", *text), *expires_ms, copy, holder.len};
    // cppcheck-suppress memleak ; the ticket has it
    return OK;
}

enum code service_ticket_use(struct service *service, struct str text, struct arena *arena, struct principal *out,
                             struct error *err)
{
    struct sessions *sessions = service->sessions;
    struct digest hash = digest_of(sessions, "ticket", text);
    struct str holder = {0};
    int64_t now = os_now().wall_ms;
    pthread_mutex_lock(&sessions->mutex);
    for (size_t i = 0; i < ARRAY_COUNT(sessions->tickets); i++) {
        struct ticket *ticket = &sessions->tickets[i];
        if (!ticket->holder || !digest_same(&ticket->hash, &hash)) continue;
        if (now < ticket->expires_ms) holder = arena_copy(arena, (struct str){ticket->holder, ticket->holder_size});
        free(ticket->holder);
        *ticket = (struct ticket){.holder = NULL};
    }
    pthread_mutex_unlock(&sessions->mutex);
    if (!holder.ptr) return error_set(err, E_DENIED, "the ticket is used, too old, or of another server");
    return holder_read(service, holder, arena, out, err);
}

// ---- what is recorded

static enum code record(struct call *call, const char *action, struct str id, struct error *err)
{
    struct auth_ask ask = {.principal = &call->who, .operation = OPERATION_DISCOVERY};
    struct audit_record made = audit_of(&ask, &call->decision);
    made.tenant = call->who.tenant;
    made.action = str_from(action);
    made.resource_type = STR("session");
    made.resource = id;
    made.ip = call->source_ip;
    made.user_agent = call->user_agent;
    made.request = call->request_id;
    return audit_add(call->service, &made, err);
}

static bool begin_on_engine(struct call *call)
{
    struct error err = {0};
    if (record(call, "session.open", call->resource, &err))
        call_failed(call, &err);
    else
        call->done(call);
    return true;
}

bool service_session_begin(struct call *call, struct str id)
{
    call->resource = id;
    return service_post(call, begin_on_engine);
}

static enum code remember(struct sessions *sessions, struct str id, int64_t expires_ms, struct error *err)
{
    int64_t now = os_now().wall_ms;
    size_t kept = 0;
    enum code rc = OK;
    if (id.len != 2 * ID_BYTES || expires_ms <= now || is_ended(sessions, id)) return OK;
    LOCKED(&sessions->mutex);
    for (size_t i = 0; i < sessions->ended_count; i++)
        if (sessions->ended[i].expires_ms > now) sessions->ended[kept++] = sessions->ended[i];
    sessions->ended_count = kept;
    if (kept == ENDED_MAX || !LIST_ROOM(sessions->ended, sessions->ended_count, &sessions->ended_capacity))
        rc = error_nomem(err);
    else {
        struct ended *made = &sessions->ended[sessions->ended_count++];
        memcpy(made->id, id.ptr, sizeof(made->id));
        made->expires_ms = expires_ms;
    }
    return rc;
}

static void told_end(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    struct error err = {0};
    if (rc)
        call_failed(call, why);
    else if (remember(call->service->sessions, call->who.session, call->who.session_ms, &err))
        call_failed(call, &err);
    else {
        call->answer.status = 204;
        call->done(call);
    }
}

static bool end_on_engine(struct call *call)
{
    struct error err = {0};
    struct note_put put = {.space = STR("session"),
                           .key = call->who.session,
                           .value = call_text(call, "%lld", (long long)call->who.session_ms),
                           .expect = NOTE_ANY};
    enum code rc = put.value.ptr ? record(call, "session.close", call->who.session, &err) : error_nomem(&err);
    if (!rc) rc = engine_put(call->service->engine, &put, 1, told_end, call, &err);
    if (rc) return call_failed(call, &err);
    return true;
}

bool service_session_end(struct call *call)
{
    return service_post(call, end_on_engine);
}

// ---- life

static enum code load(void *context, const struct note *note, struct arena *scratch UNUSED, struct error *err)
{
    int64_t expires;
    return str_int64(note->value, &expires) ? remember(context, note->key, expires, err) : OK;
}

enum code sessions_load(struct service *service, struct store *store, struct error *err)
{
    return store_each_note(store, STR("session"), STR(""), load, service->sessions, err);
}

enum { SWEEP_MAX = 1000 }; // at one start; the rest goes at the next

struct sweep {
    struct arena *arena;
    struct note_put puts[SWEEP_MAX];
    size_t count;
};

static enum code gather_old(void *context, const struct note *note, struct arena *scratch UNUSED, struct error *err)
{
    struct sweep *sweep = context;
    int64_t expires;
    if (sweep->count == SWEEP_MAX || (str_int64(note->value, &expires) && expires > os_now().wall_ms)) return OK;
    struct str key = arena_copy(sweep->arena, note->key);
    if (!key.ptr) return error_nomem(err);
    sweep->puts[sweep->count++] = (struct note_put){.space = STR("session"), .key = key, .remove = true, .expect = NOTE_ANY};
    return OK;
}

static enum code sweep_old(struct service *service, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(64 * 1024, 16 << 20);
    struct sweep *sweep = ARENA_NEW(&arena, struct sweep);
    enum code rc = sweep ? OK : error_nomem(err);
    if (sweep) sweep->arena = &arena;
    if (!rc) rc = store_each_note(service->store, STR("session"), STR(""), gather_old, sweep, err);
    struct store_batch batch = {.notes = sweep ? sweep->puts : NULL, .note_count = sweep ? sweep->count : 0};
    if (!rc && batch.note_count) rc = store_append(service->store, &batch, os_now().wall_ms, &arena, err);
    return rc;
}

enum code sessions_open(struct service *service, const struct task_key *key, struct error *err)
{
    struct sessions *sessions = service->sessions = calloc(1, sizeof(*sessions));
    if (!sessions) return error_nomem(err);
    pthread_mutex_init(&sessions->mutex, NULL);
    sessions->key = *key;
    enum code rc = sweep_old(service, err);
    return rc ? rc : sessions_load(service, service->store, err);
}

void sessions_close(struct service *service)
{
    struct sessions *sessions = service->sessions;
    if (!sessions) return;
    for (size_t i = 0; i < ARRAY_COUNT(sessions->tickets); i++) free(sessions->tickets[i].holder);
    free(sessions->ended);
    pthread_mutex_destroy(&sessions->mutex);
    free(sessions);
    service->sessions = NULL;
}
