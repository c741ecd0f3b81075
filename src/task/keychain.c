// Secrets take the places of their marks here, just before they are used, and nowhere earlier.
//
//   \1keychain:NAME.FIELD\1   a field of an entry of the playbook's keychain, or of a credential of that name
//   \1secret:REF\1            what kind `secrets` gave: env:NAME, file:/path, secret://PROVIDER/NAME
//
// Every value that is put somewhere is remembered, so that it is masked in everything the task says.
#include "reach/reach.h"
#include "task/kind.h"

#include <string.h>

enum { DEPTH_MAX = 8 };

bool call_hide(struct task_call *call, struct str value)
{
    if (value.len < 4) return true;
    for (size_t i = 0; i < call->secret_count; i++)
        if (str_eq(call->secrets[i].value, value)) return true;
    struct str copy = arena_copy(call->arena, value);
    if (!copy.ptr || !ARENA_ROOM(call->arena, call->secrets, call->secret_count, &call->secret_capacity))
        return call_no_memory(call);
    call->secrets[call->secret_count++] = (struct secret_value){STR(""), copy};
    mask_wipe(call->mask);
    call->mask = NULL; // made again, with this one
    return true;
}

static bool hide_json(struct task_call *call, const struct json *value)
{
    if (json_is(value, JSON_STRING) || json_is(value, JSON_INT) || json_is(value, JSON_NUMBER))
        return call_hide(call, json_as_text(value, call->arena));
    for (uint32_t i = 0; json_is(value, JSON_OBJECT) && i < value->count; i++)
        if (!hide_json(call, &value->members[i].value)) return false;
    for (uint32_t i = 0; json_is(value, JSON_ARRAY) && i < value->count; i++)
        if (!hide_json(call, &value->items[i])) return false;
    return true;
}

#define MISSING(call, ...) (call_fail((call), TASK_AUTH, "SECRET_NOT_FOUND", __VA_ARGS__), false)

static bool read_reference(struct task_call *call, struct str reference, bool own, struct json *out)
{
    const struct tool_request *request = call_request(call);
    struct secret_scope scope = {tasks_options(call->tasks)->secrets, request->tenant, request->environment, own};
    struct secret_ref ref = {.name = STR("of the task"), .ref = reference};
    struct str value;
    struct error why = {0};
    if (!secret_read(&scope, &ref, call->arena, &value, &why))
        return call_fail(call, TASK_AUTH, "SECRET_NOT_FOUND", "%s", why.message);
    *out = json_string(call_clean(call, value));
    return call_hide(call, value);
}

static bool resolve(struct task_call *call, const struct json *value, unsigned depth, struct json *out);

// ---- entries of the keychain

static const struct json *find_entry(const struct task_call *call, struct str name)
{
    const struct json *keychain = json_key(&call->input, "keychain");
    for (uint32_t i = 0; json_is(keychain, JSON_ARRAY) && i < keychain->count; i++)
        if (str_eq(json_text(json_key(&keychain->items[i], "name")), name)) return &keychain->items[i];
    return NULL;
}

static struct str bound_to(const struct json *credential, const char *name, const char *otherwise)
{
    const struct json *said = json_key(credential, name);
    struct str text = json_is(said, JSON_STRING) ? said->text : str_from(otherwise);
    return !str_is(text, "*") ? text : (struct str){0};
}

// Whose a credential is. In a service and a worker one that does not say is the default tenant's; "*" is everybody's.
static bool is_ours(const struct task_call *call, const struct json *credential)
{
    const struct tool_request *request = call_request(call);
    struct reach_whose whose = {request->tenant, request->project, request->environment};
    struct reach_whose bound = {bound_to(credential, "tenant", call_strict(call) ? "default" : "*"),
                                bound_to(credential, "project", "*"), bound_to(credential, "environment", "*")};
    return reach_fits(&bound, &whose);
}

static const struct json *find_credential(const struct task_call *call, struct str name)
{
    const struct json *all = &tasks_options(call->tasks)->credentials;
    for (uint32_t i = 0; json_is(all, JSON_ARRAY) && i < all->count; i++)
        if (str_eq(json_text(json_key(&all->items[i], "name")), name) && is_ours(call, &all->items[i]))
            return &all->items[i];
    const struct json *named = json_is(all, JSON_OBJECT) ? json_get(all, name) : NULL;
    return named && is_ours(call, named) ? named : NULL;
}

// {"secret": "env:NAME"} in a credential is looked up, so that its file need hold no secret.
static bool credential_value(struct task_call *call, const struct json *value, struct json *out)
{
    struct str reference = json_text(json_key(value, "secret"));
    if (json_is(value, JSON_OBJECT) && value->count == 1 && reference.len)
        return read_reference(call, reference, true, out);
    *out = *value;
    return true;
}

static bool is_secret_name(struct str name)
{
    static const char *const words[] = {"password", "passwd", "secret", "token", "key", "dsn", "private", "credential"};
    char lower[64];
    if (name.len >= sizeof(lower)) return true;
    for (size_t i = 0; i < name.len; i++)
        lower[i] = (char)(name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? name.ptr[i] | 0x20 : name.ptr[i]);
    lower[name.len] = '\0';
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (strstr(lower, words[i])) return true;
    return false;
}

// A credential as one flat object; its "data" is what counts where there is one.
static bool credential_object(struct task_call *call, const struct json *given, struct json *out)
{
    const struct json *data = json_key(given, "data");
    const struct json *from = json_is(data, JSON_OBJECT) ? data : given;
    *out = json_object();
    if (json_is(given, JSON_STRING)) return call_put(call, out, "value", *given) && hide_json(call, given);
    for (uint32_t i = 0; json_is(from, JSON_OBJECT) && i < from->count; i++) {
        struct json value = {0};
        const struct json_member *member = &from->members[i];
        if (!credential_value(call, &member->value, &value)) return false;
        if (!json_put(call->arena, out, member->key, value)) return call_no_memory(call);
        if (is_secret_name(member->key) && !hide_json(call, &value)) return false;
    }
    const struct json *type = json_key(given, "type");
    if (type && from != given && !json_key(out, "type")) return call_put(call, out, "type", *type);
    return true;
}

static bool is_any(struct str text, const char *const *words)
{
    for (; *words; words++)
        if (str_is(text, *words)) return true;
    return false;
}

// What stands in a secret manager: names of fields to names of secrets.
static bool managed_value(struct task_call *call, const struct json *entry, struct str provider, struct str name,
                          struct json *out)
{
    struct str reference;
    if (str_is(provider, "env"))
        reference = call_printf(call, "env:%.*s", STR_ARG(name));
    else if (str_is(provider, "file"))
        reference = call_printf(call, "file:%.*s", STR_ARG(name));
    else
        reference = call_printf(call, "secret://%.*s/%.*s", STR_ARG(provider), STR_ARG(name));
    if (str_starts(name, STR("env:")) || str_starts(name, STR("file:")) || str_starts(name, STR("secret://")))
        reference = name;
    if (read_reference(call, reference, false, out)) return true;
    static const char *const clouds[] = {"gcp", "google", "aws", "azure", NULL};
    if (is_any(provider, clouds))
        call_fail(call, TASK_AUTH, "SECRET_MANAGER_NOT_REACHABLE",
                  "keychain %.*s: the secret manager of %.*s is not asked from here; a provider of that name in the "
                  "configuration of secrets can bring its values",
                  STR_ARG(json_text(json_key(entry, "name"))), STR_ARG(provider));
    return false;
}

static bool managed_object(struct task_call *call, const struct json *entry, struct str provider, struct json *out)
{
    static const char *const maps[] = {"map", "fields", "secrets", "data"};
    const struct json *map = NULL;
    for (size_t i = 0; !map && i < ARRAY_COUNT(maps); i++) map = json_key(entry, maps[i]);
    *out = json_object();
    for (uint32_t i = 0; json_is(map, JSON_OBJECT) && i < map->count; i++) {
        struct json value;
        struct str name = json_as_text(&map->members[i].value, call->arena);
        if (!managed_value(call, entry, provider, name, &value)) return false;
        if (!json_put(call->arena, out, map->members[i].key, value)) return call_no_memory(call);
    }
    static const char *const singles[] = {"variable", "var", "secret", "path", "ref"};
    for (size_t i = 0; !json_is(map, JSON_OBJECT) && i < ARRAY_COUNT(singles); i++) {
        struct str name = json_text(json_key(entry, singles[i]));
        struct json value;
        if (!name.len) continue;
        return managed_value(call, entry, provider, name, &value) && call_put(call, out, "value", value);
    }
    return true;
}

// What a secret manager is asked for: what stands in `map` are names there, never the secrets. A credential that the entry names may have
// the values itself; one that is not there is what is missing.
static bool manager_object(struct task_call *call, const struct json *entry, struct str provider, struct json *out)
{
    static const char *const names[] = {"credential", "credential_name", "auth"};
    struct str wanted = {0};
    for (size_t i = 0; !wanted.len && i < ARRAY_COUNT(names); i++) wanted = json_text(json_key(entry, names[i]));
    const struct json *found = find_credential(call, wanted.len ? wanted : json_text(json_key(entry, "name")));
    const struct json *map = json_key(entry, "map");
    if (found) {
        if (!credential_object(call, found, out)) return false;
        bool all = true;
        for (uint32_t i = 0; json_is(map, JSON_OBJECT) && i < map->count; i++)
            all = all && json_get(out, map->members[i].key);
        if (all) return true; // it has what the entry is to give
    }
    if (wanted.len && !found)
        return MISSING(call, "keychain %.*s: there is no credential %.*s (--credentials FILE), and without it the secrets of %.*s "
                             "cannot be had",
                       STR_ARG(json_text(json_key(entry, "name"))), STR_ARG(wanted), STR_ARG(provider));
    return managed_object(call, entry, provider, out);
}

static bool oauth_object(struct task_call *call, const struct json *entry, struct json *out)
{
    struct json answer;
    if (!oauth_answer(call, entry, &answer) || !hide_json(call, &answer)) return false;
    struct str field = json_text(json_key(entry, "token_field"));
    const struct json *token = json_at(&answer, field.len ? field : STR("access_token"));
    if (!json_is(token, JSON_STRING))
        return MISSING(call, "keychain %.*s: the token endpoint gave no token",
                       STR_ARG(json_text(json_key(entry, "name"))));
    *out = json_object();
    if (!call_put(call, out, "type", json_string(STR("bearer"))) || !call_put(call, out, "token", *token)) return false;
    for (uint32_t i = 0; json_is(&answer, JSON_OBJECT) && i < answer.count; i++) {
        struct str key = answer.members[i].key;
        if (str_is(key, "token") || str_is(key, "type")) continue;
        if (!json_put(call->arena, out, key, answer.members[i].value)) return call_no_memory(call);
    }
    return true;
}

// Everything of an entry, as one flat object.
static bool entry_object(struct task_call *call, const struct json *written, unsigned depth, struct json *out)
{
    struct json entry;
    if (depth > DEPTH_MAX)
        return MISSING(call, "keychain %.*s: its entries refer to each other",
                       STR_ARG(json_text(json_key(written, "name"))));
    if (!resolve(call, written, depth, &entry)) return false;
    struct str kind = json_text(json_key(&entry, "kind")), name = json_text(json_key(&entry, "name"));
    if (!kind.len) kind = json_text(json_key(&entry, "type"));
    struct str provider = json_text(json_key(&entry, "provider"));
    static const char *const oauths[] = {"oauth2", "oauth2_client_credentials", "oauth", "token", NULL};
    if (str_is(kind, "bearer")) {
        const struct json *token = json_key(&entry, "token");
        *out = json_object();
        if (!json_is(token, JSON_STRING)) return MISSING(call, "keychain %.*s: it has no token", STR_ARG(name));
        return call_put(call, out, "type", json_string(STR("bearer"))) && call_put(call, out, "token", *token) &&
               hide_json(call, token);
    }
    if (str_is(kind, "static")) {
        const struct json *map = json_key(&entry, "map");
        *out = json_is(map, JSON_OBJECT) ? *map : json_object();
        return hide_json(call, out);
    }
    if (is_any(kind, oauths)) return oauth_object(call, &entry, out);
    if (str_is(kind, "env") || str_is(kind, "file")) return managed_object(call, &entry, kind, out);
    static const char *const managers[] = {"secret_manager", "secrets", "secret", NULL};
    if (is_any(kind, managers)) return manager_object(call, &entry, provider.len ? provider : STR("env"), out);
    // Credentials by type: "postgres_credential", "credential" and their like.
    static const char *const names[] = {"credential", "credential_name", "auth", "key", "name"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const struct json *found = find_credential(call, json_text(json_key(&entry, names[i])));
        if (found) return credential_object(call, found, out);
    }
    if (provider.len) return managed_object(call, &entry, provider, out);
    const struct json *map = json_key(&entry, "map");
    if (json_is(map, JSON_OBJECT)) {
        *out = *map;
        return hide_json(call, map);
    }
    return MISSING(call, "keychain %.*s: there is no credential of that name (--credentials FILE)", STR_ARG(name));
}

static bool named_object(struct task_call *call, struct str name, unsigned depth, struct json *out)
{
    const struct json *entry = find_entry(call, name);
    if (entry) return entry_object(call, entry, depth + 1, out);
    const struct json *credential = find_credential(call, name);
    if (credential) return credential_object(call, credential, out);
    return MISSING(call,
                   "nothing is called %.*s: neither an entry of the keychain nor a credential (--credentials FILE)",
                   STR_ARG(name));
}

bool call_named(struct task_call *call, struct str name, struct json *out, bool *trusted)
{
    *out = (struct json){0};
    *trusted = !find_entry(call, name);
    if (*trusted && !find_credential(call, name)) return true;
    return named_object(call, name, 0, out);
}

// ---- marks

// The names of what there is, not their values.
static bool no_field(struct task_call *call, struct str name, struct str field, const struct json *object)
{
    enum { SHOWN_MAX = 20 };
    struct buf has SCOPED(buf_release) = buf_of(2048);
    for (uint32_t i = 0; i < object->count && i < SHOWN_MAX; i++)
        buf_printf(&has, "%s%.*s", i ? ", " : "", STR_ARG(object->members[i].key));
    struct str shown = object->count && buf_ok(&has) ? buf_str(&has) : STR("nothing");
    if (field.len)
        call_fail(call, TASK_AUTH, "SECRET_NOT_FOUND", "keychain %.*s has no field %.*s: it has %.*s", STR_ARG(name),
                  STR_ARG(field), STR_ARG(shown));
    else
        call_fail(call, TASK_AUTH, "SECRET_NOT_FOUND",
                  "keychain %.*s is several values, and one of them is needed: keychain.%.*s.FIELD, of %.*s", STR_ARG(name),
                  STR_ARG(name), STR_ARG(shown));
    return false;
}

static bool mark_value(struct task_call *call, struct str mark, unsigned depth, struct json *out)
{
    static const char *const usual[] = {"token", "access_token", "value", "password", "secret", "api_key", "key"};
    struct str kind, rest, field = {0};
    kind = str_cut(mark, ':', &rest);
    if (str_is(kind, "secret")) return read_reference(call, rest, false, out);
    if (!str_is(kind, "keychain")) return MISSING(call, "a secret of the kind %.*s is not known", STR_ARG(kind));
    struct str name = str_cut(rest, '.', &field);
    struct json object;
    if (!named_object(call, name, depth, &object)) return false;
    const struct json *found = field.len ? json_at(&object, field) : NULL;
    if (!found && (!field.len || STR_AMONG(field, "token", "access_token", "value")))
        for (size_t i = 0; !found && i < ARRAY_COUNT(usual); i++) found = json_key(&object, usual[i]);
    if (!found && !field.len && object.count == 1) found = &object.members[0].value;
    if (!found) return no_field(call, name, field, &object);
    *out = *found;
    return hide_json(call, found);
}

static bool resolve_text(struct task_call *call, struct str text, unsigned depth, struct json *out)
{
    const char mark = TASK_SECRET[0];
    struct buf whole = buf_of(TASK_BODY_MAX);
    size_t from = 0;
    bool good = true;
    for (size_t open; good && (open = str_find(text, mark, from)) < text.len;) {
        size_t close = str_find(text, mark, open + 1);
        if (close >= text.len) break;
        struct json value;
        good = mark_value(call, str_slice(text, open + 1, close), depth, &value);
        if (good && open == 0 && close + 1 == text.len) {
            buf_release(&whole);
            *out = value;
            return true;
        }
        struct str word = good ? json_as_text(&value, call->arena) : STR("");
        buf_add(&whole, str_slice(text, from, open));
        buf_add(&whole, word);
        from = close + 1;
    }
    buf_add(&whole, str_slice(text, from, text.len));
    struct str copy = good && buf_ok(&whole) ? arena_copy(call->arena, buf_str(&whole)) : (struct str){NULL, 0};
    secret_wipe(buf_str(&whole));
    buf_release(&whole);
    if (good && !copy.ptr) call_no_memory(call);
    *out = json_string(copy);
    return copy.ptr;
}

static bool holds_mark(const struct json *value)
{
    if (json_is(value, JSON_STRING)) return value->text.len && memchr(value->text.ptr, TASK_SECRET[0], value->text.len);
    for (uint32_t i = 0; json_is(value, JSON_ARRAY) && i < value->count; i++)
        if (holds_mark(&value->items[i])) return true;
    for (uint32_t i = 0; json_is(value, JSON_OBJECT) && i < value->count; i++)
        if (holds_mark(&value->members[i].value)) return true;
    return false;
}

// The mark of a whole entry: the object around it is what a template saw of that entry (kernel/net_scope.c).
static bool is_whole(struct str mark)
{
    return str_starts(mark, STR("\x01keychain:")) && str_find(mark, '.', 0) == mark.len &&
           str_find(mark, '\x01', 1) == mark.len - 1;
}

static bool resolve(struct task_call *call, const struct json *value, unsigned depth, struct json *out)
{
    *out = *value;
    if (!holds_mark(value)) return true;
    if (value->type == JSON_STRING) return resolve_text(call, value->text, depth, out);
    struct str whole = json_is(value, JSON_OBJECT) ? json_text(json_key(value, "__entry__")) : (struct str){0};
    if (is_whole(whole)) return named_object(call, str_slice(whole, 10, whole.len - 1), depth, out);
    bool object = value->type == JSON_OBJECT, good = true;
    *out = object ? json_object() : json_array();
    for (uint32_t i = 0; good && i < value->count; i++) {
        struct json part;
        good = resolve(call, object ? &value->members[i].value : &value->items[i], depth, &part);
        if (!good) break;
        good = object ? json_put(call->arena, out, value->members[i].key, part) : json_push(call->arena, out, part);
        if (!good) call_no_memory(call);
    }
    return good;
}

bool call_resolve(struct task_call *call, const struct json *value, struct json *out)
{
    return resolve(call, value, 0, out);
}

// ---- credentials

static bool merge(struct task_call *call, const struct json *over, struct json *into)
{
    *into = json_joined(call->arena, over, into);
    return json_ok(into) || call_no_memory(call);
}

bool call_credential(struct task_call *call, const struct json *auth, struct json *out, bool *trusted)
{
    *out = (struct json){0};
    *trusted = false;
    if (json_is(auth, JSON_STRING)) {
        if (!auth->text.len) return true;
        *trusted = !find_entry(call, auth->text);
        return named_object(call, auth->text, 0, out);
    }
    if (!json_is(auth, JSON_OBJECT)) return true;
    if (auth->count == 1 && auth->members[0].value.type == JSON_OBJECT && auth->members[0].value.count > 0)
        return call_credential(call, &auth->members[0].value, out, trusted); // {alias: {type, key, ...}}
    static const char *const names[] = {"credential", "credential_name", "key", "name"};
    *out = json_object();
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct str name = json_text(json_key(auth, names[i]));
        if (!name.len || (!find_entry(call, name) && !find_credential(call, name))) continue;
        if (!named_object(call, name, 0, out)) return false;
        break;
    }
    struct str wanted = json_text(json_key(auth, "credential"));
    if (wanted.len && out->count == 0)
        return MISSING(call, "no credential is called %.*s (--credentials FILE)", STR_ARG(wanted));
    for (uint32_t i = 0; i < auth->count; i++)
        if (is_secret_name(auth->members[i].key) && !str_is(auth->members[i].key, "key") &&
            !str_is(auth->members[i].key, "credential") && !str_is(auth->members[i].key, "credential_name") &&
            !hide_json(call, &auth->members[i].value))
            return false;
    return merge(call, auth, out);
}

struct str credential_field(struct task_call *call, const struct json *credential, const char *names)
{
    struct str rest = str_from(names);
    while (rest.len) {
        const struct json *value = json_get(credential, str_cut(rest, '|', &rest));
        if (!value || value->type == JSON_NULL) continue;
        struct str text = json_as_text(value, call->arena);
        if (text.ptr && text.len) return text;
    }
    return STR("");
}
