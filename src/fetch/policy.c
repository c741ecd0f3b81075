// Rules from configuration, and the match of a URI against them. Purely textual.
#include "fetch/inside.h"

#include "os/os.h"

#include <stdlib.h>

#define RULES_MAX 4096
#define SECRET_MAX 65536

// ---- reading the configuration

static enum code bad(struct error *err, const struct json *at, const char *where, const char *what)
{
    return error_at(err, E_INVALID, at ? at->line : 0, at ? at->column : 0, "fetch: %s: %s", where, what);
}

// Every member must be one of `known`, a list that ends with NULL.
static enum code members_check(const struct json *object, const char *where, const char *const *known,
                               struct error *err)
{
    if (!json_is(object, JSON_OBJECT)) return bad(err, object, where, "must be an object");
    for (uint32_t i = 0; i < object->count; i++) {
        const char *const *name = known;
        while (*name && !str_is(object->members[i].key, *name)) name++;
        if (*name) continue;
        return error_at(err, E_INVALID, object->members[i].line, object->members[i].column,
                        "fetch: %s: unknown key \"%.*s\"", where, STR_ARG(str_slice(object->members[i].key, 0, 64)));
    }
    return OK;
}

static enum code networks_parse(const struct json *list, const char *where, struct arena *arena, struct rule *out,
                                struct error *err)
{
    if (!list) return OK;
    if (!json_is(list, JSON_ARRAY)) return bad(err, list, where, "\"addresses\" must be a list");
    struct os_network *networks = ARENA_ARRAY(arena, list->count + 1, struct os_network);
    if (!networks) return error_nomem(err);
    for (uint32_t i = 0; i < list->count; i++)
        if (!os_network_parse(json_text(&list->items[i]), &networks[i]))
            return bad(err, &list->items[i], where, "an entry of \"addresses\" is no address or network (10.0.0.0/8)");
    out->networks = networks;
    out->network_count = list->count;
    return OK;
}

// Who may answer for a rule or an endpoint.
static enum code reach_parse(const struct json *object, const char *where, struct arena *arena, struct rule *out,
                             struct error *err)
{
    const struct json *private = json_key(object, "allowPrivate");
    if (private && !json_is(private, JSON_BOOL))
        return bad(err, private, where, "\"allowPrivate\" must be true or false");
    out->allow_private = private && private->boolean;
    enum code rc = networks_parse(json_key(object, "addresses"), where, arena, out, err);
    if (rc) return rc;
    if (out->uri.literal && !out->allow_private) return bad(err, object, where, "an address needs \"allowPrivate\"");
    bool local = out->uri.port && !out->uri.literal && uri_host_local(out->uri.host);
    if (local && !out->allow_private && !out->network_count)
        return bad(err, object, where, "a name of this machine or site needs \"allowPrivate\" or \"addresses\"");
    return OK;
}

static enum code rule_parse(const struct json *entry, struct arena *arena, struct rule *out, struct error *err)
{
    static const char *const known[] = {"uri", "allowPrivate", "addresses", NULL};
    const struct json *text = entry;
    const char *reason;
    enum code rc = OK;
    if (json_is(entry, JSON_OBJECT)) {
        rc = members_check(entry, "allow", known, err);
        text = json_key(entry, "uri");
    }
    if (rc) return rc;
    if (!json_is(text, JSON_STRING)) return bad(err, entry, "allow", "a rule is a URI or an object with \"uri\"");
    if (!uri_parse(json_text(text), true, &out->uri, &reason)) return bad(err, text, "allow", reason);
    if (out->uri.query.len) return bad(err, text, "allow", "a rule has no query");
    if (!out->uri.port && json_is(entry, JSON_OBJECT) && entry->count > 1)
        return bad(err, entry, "allow", "addresses of s3, gs and azure are those of their endpoint");
    return reach_parse(entry, "allow", arena, out, err);
}

static enum code rules_parse(const struct json *list, struct arena *arena, struct fetch_policy *policy,
                             struct error *err)
{
    if (!list) return OK;
    if (!json_is(list, JSON_ARRAY) || list->count > RULES_MAX)
        return bad(err, list, "allow", "must be a list of rules");
    struct rule *rules = ARENA_ARRAY(arena, list->count + 1, struct rule);
    if (!rules) return error_nomem(err);
    for (uint32_t i = 0; i < list->count; i++) {
        enum code rc = rule_parse(&list->items[i], arena, &rules[i], err);
        if (rc) return rc;
    }
    policy->rules = rules;
    policy->rule_count = list->count;
    return OK;
}

static enum code secret_parse(const struct json *value, const char *where, struct secret_ref *out, struct error *err)
{
    static const char *const known[] = {"env", "file", NULL};
    if (!value) return OK;
    if (json_is(value, JSON_STRING))
        return bad(err, value, where, "a credential is given by reference: {\"env\": ...} or {\"file\": ...}");
    enum code rc = members_check(value, where, known, err);
    if (rc) return rc;
    out->variable = json_text(json_key(value, "env"));
    out->file = json_text(json_key(value, "file"));
    if (!out->variable.len == !out->file.len)
        return bad(err, value, where, "a credential has one of \"env\" and \"file\"");
    return OK;
}

static enum code endpoint_parse(const struct json *object, const char *where, struct arena *arena, struct cloud *out,
                                struct error *err)
{
    const struct json *text = json_key(object, "endpoint");
    const char *reason;
    if (text) {
        struct uri *uri = &out->endpoint.uri;
        if (!uri_parse(json_text(text), true, uri, &reason)) return bad(err, text, where, reason);
        if (!uri->port || uri->host[0] == '.') return bad(err, text, where, "the endpoint must be https://HOST[:PORT]");
        if (uri->path.len > 1 || uri->query.len)
            return bad(err, text, where, "the endpoint has neither path nor query");
        out->custom = true;
    }
    return reach_parse(object, where, arena, &out->endpoint, err);
}

bool region_valid(struct str region)
{
    if (region.len == 0 || region.len > 32) return false;
    for (size_t i = 0; i < region.len; i++) {
        char c = region.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) return false;
    }
    return true;
}

static enum code bucket_cloud_parse(const struct json *object, const char *where, const char *region,
                                    struct arena *arena, struct cloud *out, struct error *err)
{
    static const char *const known[] = {"endpoint",    "region",          "allowPrivate", "addresses",
                                        "accessKeyId", "secretAccessKey", "sessionToken", NULL};
    out->region = str_from(region);
    if (!object) return OK;
    enum code rc = members_check(object, where, known, err);
    if (!rc) rc = endpoint_parse(object, where, arena, out, err);
    if (rc) return rc;
    const struct json *given = json_key(object, "region");
    if (given) out->region = json_text(given);
    if (!region_valid(out->region)) return bad(err, given, where, "\"region\" is not a plain word");
    rc = secret_parse(json_key(object, "accessKeyId"), where, &out->key_id, err);
    if (!rc) rc = secret_parse(json_key(object, "secretAccessKey"), where, &out->secret, err);
    if (!rc) rc = secret_parse(json_key(object, "sessionToken"), where, &out->token, err);
    bool id = out->key_id.variable.len || out->key_id.file.len, key = out->secret.variable.len || out->secret.file.len;
    if (!rc && id != key) return bad(err, object, where, "\"accessKeyId\" and \"secretAccessKey\" go together");
    return rc;
}

static enum code account_parse(const struct json_member *member, struct account *out, struct error *err)
{
    static const char *const known[] = {"key", "sas", NULL};
    enum code rc = members_check(&member->value, "azure.accounts", known, err);
    out->name = member->key;
    if (!rc) rc = secret_parse(json_key(&member->value, "key"), "azure.accounts", &out->key, err);
    if (!rc) rc = secret_parse(json_key(&member->value, "sas"), "azure.accounts", &out->sas, err);
    if (!rc && member->value.count != 1)
        return bad(err, &member->value, "azure.accounts", "give one of \"key\" and \"sas\"");
    return rc;
}

static enum code azure_parse(const struct json *object, struct arena *arena, struct cloud *out, struct error *err)
{
    static const char *const known[] = {"endpoint", "allowPrivate", "addresses", "accounts", NULL};
    if (!object) return OK;
    enum code rc = members_check(object, "azure", known, err);
    if (!rc) rc = endpoint_parse(object, "azure", arena, out, err);
    const struct json *accounts = json_key(object, "accounts");
    if (rc || !accounts) return rc;
    if (!json_is(accounts, JSON_OBJECT)) return bad(err, accounts, "azure", "\"accounts\" must be an object");
    struct account *list = ARENA_ARRAY(arena, accounts->count + 1, struct account);
    if (!list) return error_nomem(err);
    for (uint32_t i = 0; !rc && i < accounts->count; i++) rc = account_parse(&accounts->members[i], &list[i], err);
    out->accounts = list;
    out->account_count = accounts->count;
    return rc;
}

// A limit may be lowered, never raised.
static enum code limit_parse(const struct json *limits, const char *name, int64_t ceiling, int64_t *out,
                             struct error *err)
{
    const struct json *value = json_key(limits, name);
    *out = ceiling;
    if (!value) return OK;
    *out = json_integer(value, 0);
    if (*out < 1 || *out > ceiling)
        return error_at(err, E_INVALID, value->line, value->column, "fetch: limits: \"%s\" must be 1 to %lld", name,
                        (long long)ceiling);
    return OK;
}

static enum code limits_parse(const struct json *limits, struct fetch_policy *policy, struct error *err)
{
    static const char *const known[] = {"bodyBytes", "timeoutMs", NULL};
    int64_t body = FETCH_BODY_MAX;
    enum code rc = limits ? members_check(limits, "limits", known, err) : OK;
    if (!rc) rc = limit_parse(limits, "bodyBytes", FETCH_BODY_MAX, &body, err);
    if (!rc) rc = limit_parse(limits, "timeoutMs", FETCH_TIMEOUT_MS, &policy->timeout_ms, err);
    policy->body_max = (size_t)body;
    return rc;
}

enum code fetch_policy_parse(const struct json *config, struct arena *arena, struct fetch_policy **out,
                             struct error *err)
{
    static const char *const known[] = {"allow", "s3", "gs", "azure", "limits", "caFile", NULL};
    struct fetch_policy *policy = ARENA_NEW(arena, struct fetch_policy);
    if (!policy) return error_nomem(err);
    enum code rc = config ? members_check(config, "the configuration", known, err) : OK;
    if (!rc) rc = rules_parse(json_key(config, "allow"), arena, policy, err);
    if (!rc) rc = bucket_cloud_parse(json_key(config, "s3"), "s3", "us-east-1", arena, &policy->s3, err);
    if (!rc) rc = bucket_cloud_parse(json_key(config, "gs"), "gs", "auto", arena, &policy->gs, err);
    if (!rc) rc = azure_parse(json_key(config, "azure"), arena, &policy->azure, err);
    if (!rc) rc = limits_parse(json_key(config, "limits"), policy, err);
    const struct json *ca_file = json_key(config, "caFile");
    if (!rc && ca_file && !json_text(ca_file).len) rc = bad(err, ca_file, "caFile", "must be the path of a file");
    policy->ca_file = json_text(ca_file);
    if (!rc) *out = policy;
    return rc;
}

void fetch_policy_resolver(struct fetch_policy *policy, struct fetch_resolver resolver)
{
    policy->resolver = resolver;
}

void fetch_policy_plans(struct fetch_policy *policy, struct fetch_plans plans)
{
    policy->plans = plans;
}

enum code credential_read(const struct secret_ref *ref, struct arena *arena, struct str *out, struct error *err)
{
    *out = (struct str){"", 0};
    struct str name = ref->variable.len ? ref->variable : ref->file;
    if (!name.len) return OK;
    name = arena_copy(arena, name);
    if (!name.ptr) return error_nomem(err);
    struct str text = {0};
    if (ref->variable.len) {
        const char *value = getenv(name.ptr);
        if (!value) return error_set(err, E_NOT_FOUND, "a credential is missing: $%s is not set", name.ptr);
        text = str_from(value);
    } else {
        enum code rc = os_read_file(name.ptr, SECRET_MAX, arena, &text, err);
        if (rc) return rc;
    }
    text = str_trim(text);
    if (!text.len) return error_set(err, E_NOT_FOUND, "a credential is missing: %s is empty", name.ptr);
    *out = arena_copy(arena, text);
    return out->ptr ? OK : error_nomem(err);
}

// ---- the match

static bool host_matches(const struct uri *rule, const struct uri *uri)
{
    struct str want = str_from(rule->host), got = str_from(uri->host);
    if (rule->literal != uri->literal) return false;
    // ".example.com" is every name below it, not itself: the dot is the boundary of labels.
    if (want.len && want.ptr[0] == '.') return got.len > want.len && str_ends(got, want);
    return str_eq(want, got);
}

static bool path_matches(struct str prefix, struct str path)
{
    if (!str_starts(path, prefix)) return false;
    return path.len == prefix.len || prefix.ptr[prefix.len - 1] == '/' || path.ptr[prefix.len] == '/';
}

static bool rule_matches(const struct rule *rule, const struct uri *uri)
{
    return rule->uri.scheme == uri->scheme && rule->uri.port == uri->port && host_matches(&rule->uri, uri) &&
           path_matches(rule->uri.path, uri->path);
}

static enum code refuse(struct error *err, const char *reason)
{
    return error_set(err, E_DENIED, NOT_ALLOWED "%s", reason);
}

enum code policy_match(const struct fetch_policy *policy, struct str text, struct uri *uri, const struct rule **rule,
                       struct error *err)
{
    const char *reason;
    // A literal is parsed here and refused below unless a rule names exactly it.
    if (!uri_parse(text, true, uri, &reason)) return refuse(err, reason);
    if (uri->host[0] == '.') return refuse(err, "the host has an empty label");
    if (uri->scheme == SCHEME_AZURE && uri->path.len == 1) return refuse(err, "there is no container");
    if (uri->scheme == SCHEME_CAIRN) {
        struct digest digest;
        if (!digest_parse(str_slice(uri->path, 1, uri->path.len), &digest))
            return refuse(err, "a plan is named by its SHA-256");
    }
    for (size_t i = 0; i < policy->rule_count; i++) {
        if (!rule_matches(&policy->rules[i], uri)) continue;
        // Names below a suffix rule do not get its excuses.
        bool suffix = policy->rules[i].uri.host[0] == '.';
        if (suffix && uri_host_local(uri->host) && !policy->rules[i].allow_private && !policy->rules[i].network_count)
            continue;
        *rule = &policy->rules[i];
        return OK;
    }
    return refuse(err, uri->literal ? "the host is an address" : "no rule allows it");
}

enum code fetch_uri_check(const struct fetch_policy *policy, struct str uri, struct error *err)
{
    struct uri parsed;
    const struct rule *rule;
    return policy_match(policy, uri, &parsed, &rule, err);
}
