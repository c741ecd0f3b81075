// Webhooks that come in: whose they are, and what event each becomes. A hook is bound to a tenant by the settings, and who sends to it is
// known by a secret: an HMAC-SHA256 over the body, as the sender writes it.
#include "service/inside.h"

#include "base/base64.h"
#include "base/civil.h"
#include "base/text.h"
#include "json/form.h"

#include <stdlib.h>

enum { HOOK_BODY_MAX = 256 << 10, HOOK_HEAD_MAX = 64 << 10, HOOKS_MAX = 256, SECRET_MAX_BYTES = 4096, SIGNATURES_MAX = 8 };
#define HOOK_SKEW_S ((int64_t)300) // how old, or how far ahead, a signed time may be

static void read_secret(struct form *form, struct hook *hook)
{
    const struct json *value = form_any(form, "secret");
    hook->variable = json_text(json_key(value, "env"));
    hook->file = json_text(json_key(value, "file"));
    if (!json_is(value, JSON_OBJECT) || value->count != 1 || hook->variable.len + hook->file.len == 0)
        form_fail(form, "secret", "is given by reference: {env = NAME} or {file = PATH}");
}

static enum code read_hook(struct form *form, struct hook *hook)
{
    static const char *const ways[] = {
        [SIGNED_GITHUB] = "github", [SIGNED_TIMED] = "timed", [SIGNED_STANDARD] = "standard"};
    struct str way = STR("github");
    hook->tenant = hook->project = hook->environment = STR("default");
    hook->unread = ARENA_NEW(form->arena, atomic_bool);
    if (!hook->unread) return error_nomem(form->err);
    form_text(form, "name", &hook->name);
    form_text(form, "event", &hook->event);
    form_text(form, "tenant", &hook->tenant);
    form_text(form, "project", &hook->project);
    form_text(form, "environment", &hook->environment);
    form_text(form, "correlation", &hook->correlation);
    form_text(form, "id", &hook->id);
    form_text(form, "signature", &way);
    read_secret(form, hook);
    bool known = false;
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        if (!str_is(way, ways[i])) continue;
        hook->way = (enum signed_how)i;
        known = true;
    }
    if (!known) form_fail(form, "signature", "is github, timed or standard");
    if (!run_id_valid(hook->name)) form_fail(form, "name", "has letters, digits, '.', '_', ':' and '-'");
    if (!event_name_valid(hook->event)) form_fail(form, "event", "is the name of an event");
    return form_end(form);
}

enum code service_events_parse(struct form *form, struct service_settings *out)
{
    int64_t days = 0;
    const struct json *hooks = form_take(form, "hooks", JSON_ARRAY);
    struct str keep = {0};
    form_text(form, "keep", &keep);
    if (keep.len > 0 && (!duration_parse(keep, &days) || days < 1000))
        form_fail(form, "keep", "is a duration of at least a second, such as 7d");
    if (days > 0) out->events_keep_ms = days;
    form_count(form, "max", 1, 1000000, &out->events_max);
    if (hooks && hooks->count > HOOKS_MAX) form_fail(form, "hooks", "has more than 256 elements");
    if (form->rc || !hooks) return form_end(form);
    struct hook *made = ARENA_ARRAY(form->arena, hooks->count + 1, struct hook);
    if (!made) return error_nomem(form->err);
    for (uint32_t i = 0; !form->rc && i < hooks->count; i++) {
        struct form one;
        form_begin(&one, "events.hooks", &hooks->items[i], form->arena, form->err);
        form->rc = read_hook(&one, &made[i]);
    }
    out->hooks = made;
    out->hook_count = hooks->count;
    return form_end(form);
}

const struct hook *service_hook(const struct service *service, struct str name)
{
    for (size_t i = 0; i < service->settings.hook_count; i++)
        if (str_eq(service->settings.hooks[i].name, name)) return &service->settings.hooks[i];
    return NULL;
}

// ---- signatures

static enum code read_secret_of(const struct hook *hook, struct arena *arena, struct str *out, struct error *err)
{
    struct str name = arena_copy(arena, hook->variable.len ? hook->variable : hook->file), text = {0};
    if (!name.ptr) return error_nomem(err);
    enum code rc = OK;
    if (hook->variable.len)
        text = str_from(getenv(name.ptr));
    else
        rc = os_read_file(name.ptr, SECRET_MAX_BYTES, arena, &text, err);
    if (rc) return rc;
    *out = str_trim(text);
    if (str_starts(*out, STR("whsec_"))) *out = base64_read(str_slice(*out, 6, out->len), arena);
    return out->len > 0 ? OK : error_set(err, E_NOT_FOUND, "the secret of hook %.*s is not there", STR_ARG(hook->name));
}

// A stranger can send to a hook, so an unreadable secret is logged when that begins and when it ends, not for each request.
static enum code secret_of(const struct hook *hook, struct arena *arena, struct str *out, struct error *err)
{
    enum code rc = read_secret_of(hook, arena, out, err);
    bool unread = rc && rc != E_NOMEM;
    if (atomic_exchange(hook->unread, unread) == unread) return rc;
    if (unread)
        os_log(LOG_ERROR, "secret of a hook not read hook=%.*s why=\"%s\"", STR_ARG(hook->name), err->message);
    else
        os_log(LOG_INFO, "secret of a hook is read again hook=%.*s", STR_ARG(hook->name));
    return rc;
}

static bool same_hex(struct str hex, const struct digest *wanted)
{
    struct digest given;
    return hex.len == SHA256_HEX && digest_parse(hex, &given) && digest_same(&given, wanted);
}

static bool is_now(struct str seconds, int64_t now_s)
{
    int64_t at;
    return str_int64(seconds, &at) && at >= now_s - HOOK_SKEW_S && at <= now_s + HOOK_SKEW_S;
}

// False: out of memory.
static bool mac_of(struct str secret, struct str a, struct str b, struct str body, struct arena *arena, struct digest *out)
{
    struct buf text = buf_of(HOOK_BODY_MAX + 2 * HOOK_HEAD_MAX);
    const struct str parts[] = {a, b};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        buf_add(&text, parts[i]);
        if (parts[i].len > 0) buf_byte(&text, '.');
    }
    buf_add(&text, body);
    struct str kept = buf_keep(&text, arena);
    if (kept.ptr) *out = hmac_sha256(secret, kept);
    return kept.ptr != NULL;
}

// "t=SECONDS,v1=HEX", perhaps with more signatures: a sender whose secret changes sends two. Strangers send what they like, so the body is
// read once, however many there are, and not at all when the time is none of now.
static bool is_timed(const struct hook_request *request, struct str secret, int64_t now_s, struct arena *arena)
{
    struct str at = {0};
    struct digest mac = {0};
    bool good = false, known = false;
    size_t tried = 0;
    for (struct str rest = request->timed_signature; rest.len > 0 && tried < SIGNATURES_MAX;) {
        struct str value, name = str_cut(str_trim(str_cut(rest, ',', &rest)), '=', &value);
        if (str_is(name, "t")) {
            if (at.len > 0) return false;
            at = value;
            known = is_now(at, now_s) && mac_of(secret, (struct str){0}, at, request->body, arena, &mac);
        }
        if (!str_is(name, "v1") || !known) continue;
        good = same_hex(value, &mac) || good;
        tried++;
    }
    return good;
}

// standardwebhooks.com: "v1,BASE64 v1,BASE64"
static bool is_standard(const struct hook_request *request, struct str secret, int64_t now_s, struct arena *arena)
{
    struct digest mac;
    bool good = false;
    size_t tried = 0;
    if (request->webhook_id.len == 0 || !is_now(request->webhook_timestamp, now_s) ||
        !mac_of(secret, request->webhook_id, request->webhook_timestamp, request->body, arena, &mac))
        return false;
    for (struct str rest = request->webhook_signature; rest.len > 0 && tried < SIGNATURES_MAX; tried++) {
        struct str text, version = str_cut(str_cut(rest, ' ', &rest), ',', &text);
        struct str bytes = str_is(version, "v1") ? base64_read(text, arena) : (struct str){0};
        struct digest given = {0};
        if (bytes.len != sizeof(given.b)) continue;
        for (size_t i = 0; i < sizeof(given.b); i++) given.b[i] = (uint8_t)bytes.ptr[i];
        good = digest_same(&given, &mac) || good;
    }
    return good;
}

enum code service_hook_check(const struct hook *hook, const struct hook_request *request, int64_t now_ms,
                             struct arena *arena, struct error *err)
{
    struct str secret, hex;
    enum code rc = secret_of(hook, arena, &secret, err);
    if (rc) return rc;
    bool good = false;
    switch (hook->way) {
    case SIGNED_GITHUB: {
        struct str way = str_cut(request->hub_signature, '=', &hex);
        struct digest mac = hmac_sha256(secret, request->body);
        good = str_is(way, "sha256") && same_hex(hex, &mac);
        break;
    }
    case SIGNED_TIMED:
        good = is_timed(request, secret, now_ms / 1000, arena);
        break;
    case SIGNED_STANDARD:
        good = is_standard(request, secret, now_ms / 1000, arena);
        break;
    }
    return good ? OK : error_set(err, E_DENIED, "the signature does not fit");
}
