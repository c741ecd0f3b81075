// Rules from configuration, and the match of a URI against them. Purely textual.
#include "fetch/inside.h"

#include "json/form.h"
#include "json/make.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

#define RULES_MAX 4096
#define SECRET_MAX 65536

// ---- reading the configuration

static void read_networks(struct form *form, struct rule *out)
{
    const struct json *list = form_take(form, "addresses", JSON_ARRAY);
    if (!list) return;
    struct os_network *networks = ARENA_ARRAY(form->arena, list->count + 1, struct os_network);
    if (!networks) form_nomem(form);
    for (uint32_t i = 0; networks && i < list->count; i++)
        if (!os_network_parse(json_text(&list->items[i]), &networks[i]))
            form_fail(form, "addresses", "an entry is no address or network (10.0.0.0/8)");
    out->networks = networks;
    out->network_count = list->count;
}

// Who may answer for a rule or an endpoint.
static void read_reach(struct form *form, struct rule *out)
{
    form_flag(form, "allowPrivate", &out->allow_private);
    read_networks(form, out);
    if (out->uri.literal && !out->allow_private) form_fail(form, NULL, "an address needs \"allowPrivate\"");
    bool local = out->uri.port && !out->uri.literal && uri_host_local(out->uri.host);
    if (local && !out->allow_private && !out->network_count)
        form_fail(form, NULL, "a name of this machine or site needs \"allowPrivate\" or \"addresses\"");
}

static enum code rule_parse(const struct json *entry, struct arena *arena, struct rule *out, struct error *err)
{
    struct json plain = JSON_OF(arena, {"uri", *entry});
    const char *reason;
    struct form form;
    json_set_place(&plain, entry->line, entry->column);
    form_begin(&form, "fetch.allow", json_is(entry, JSON_OBJECT) ? entry : &plain, arena, err);
    const struct json *text = form_take(&form, "uri", JSON_STRING);
    if (!text) return form_fail(&form, NULL, "a rule is a URI or an object with \"uri\"");
    if (!uri_parse(json_text(text), true, &out->uri, &reason)) form_fail(&form, "uri", reason);
    if (out->uri.query.len) form_fail(&form, "uri", "a rule has no query");
    if (!out->uri.port && form.object->count > 1)
        form_fail(&form, NULL, "addresses of s3, gs and azure are those of their endpoint");
    read_reach(&form, out);
    return form_end(&form);
}

static void read_rules(struct form *form, struct fetch_policy *policy)
{
    const struct json *list = form_take(form, "allow", JSON_ARRAY);
    if (list && list->count > RULES_MAX) form_fail(form, "allow", "has too many rules");
    if (!list || form->rc) return;
    struct rule *rules = ARENA_ARRAY(form->arena, list->count + 1, struct rule);
    if (!rules) form_nomem(form);
    for (uint32_t i = 0; !form->rc && i < list->count; i++)
        form->rc = rule_parse(&list->items[i], form->arena, &rules[i], form->err);
    policy->rules = rules;
    policy->rule_count = list->count;
}

static void read_secret(struct form *form, const char *name, struct secret_source *out)
{
    const struct json *value = form_any(form, name);
    if (!value) return;
    out->variable = json_text(json_key(value, "env"));
    out->file = json_text(json_key(value, "file"));
    if (value->count != 1 || !out->variable.len == !out->file.len)
        form_fail(form, name, "a credential is given by reference: {\"env\": ...} or {\"file\": ...}");
}

static void read_endpoint(struct form *form, struct cloud *out)
{
    const struct json *text = form_take(form, "endpoint", JSON_STRING);
    struct uri *uri = &out->endpoint.uri;
    const char *reason;
    if (text && !uri_parse(json_text(text), true, uri, &reason)) form_fail(form, "endpoint", reason);
    if (text && !form->rc) {
        if (!uri->port || uri->host[0] == '.') form_fail(form, "endpoint", "must be https://HOST[:PORT]");
        if (uri->path.len > 1 || uri->query.len) form_fail(form, "endpoint", "has neither path nor query");
        out->custom = true;
    }
    read_reach(form, &out->endpoint);
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

// The key travels with each request: not where others can read along.
static void read_customer(struct form *form, const struct cloud *cloud, struct secret_source *out)
{
    read_secret(form, "customerKey", out);
    if ((out->variable.len || out->file.len) && cloud->endpoint.uri.scheme == SCHEME_HTTP && !cloud->endpoint.allow_private)
        form_fail(form, "customerKey", "needs an endpoint of https");
}

static void read_buckets(struct form *form, const char *name, const char *region, struct cloud *out)
{
    struct form part;
    out->region = str_from(region);
    if (!form_part(form, name, &part)) return;
    read_endpoint(&part, out);
    form_text(&part, "region", &out->region);
    if (!region_valid(out->region)) form_fail(&part, "region", "is not a plain word");
    read_secret(&part, "accessKeyId", &out->key_id);
    read_secret(&part, "secretAccessKey", &out->secret);
    read_secret(&part, "sessionToken", &out->token);
    if (strcmp(name, "s3") == 0) read_customer(&part, out, &out->customer);
    bool id = out->key_id.variable.len || out->key_id.file.len, key = out->secret.variable.len || out->secret.file.len;
    if (id != key) form_fail(&part, NULL, "\"accessKeyId\" and \"secretAccessKey\" go together");
    form->rc = form_end(&part);
}

static enum code account_parse(const struct json_member *member, const struct cloud *cloud, struct account *out,
                               struct error *err)
{
    struct form form;
    form_begin(&form, "azure.accounts", &member->value, NULL, err);
    out->name = member->key;
    read_secret(&form, "key", &out->key);
    read_secret(&form, "sas", &out->sas);
    read_customer(&form, cloud, &out->customer);
    bool keyed = out->key.variable.len || out->key.file.len, shared = out->sas.variable.len || out->sas.file.len;
    if (keyed == shared) form_fail(&form, NULL, "give one of \"key\" and \"sas\"");
    return form_end(&form);
}

static void read_azure(struct form *form, struct cloud *out)
{
    struct form part;
    if (!form_part(form, "azure", &part)) return;
    read_endpoint(&part, out);
    const struct json *accounts = form_take(&part, "accounts", JSON_OBJECT);
    size_t count = accounts ? accounts->count : 0;
    struct account *list = ARENA_ARRAY(form->arena, count + 1, struct account);
    if (!list) form_nomem(&part);
    for (size_t i = 0; !part.rc && i < count; i++)
        part.rc = account_parse(&accounts->members[i], out, &list[i], form->err);
    out->accounts = list;
    out->account_count = count;
    form->rc = form_end(&part);
}

// A limit may be lowered, never raised.
static void read_limits(struct form *form, struct fetch_policy *policy)
{
    int64_t body = FETCH_BODY_MAX;
    struct form part;
    policy->timeout_ms = FETCH_TIMEOUT_MS;
    if (form_part(form, "limits", &part)) {
        form_number(&part, "bodyBytes", 1, FETCH_BODY_MAX, &body);
        form_number(&part, "timeoutMs", 1, FETCH_TIMEOUT_MS, &policy->timeout_ms);
        form->rc = form_end(&part);
    }
    policy->body_max = (size_t)body;
}

enum code fetch_policy_parse(const struct json *config, struct arena *arena, struct fetch_policy **out,
                             struct error *err)
{
    struct fetch_policy *policy = ARENA_NEW(arena, struct fetch_policy);
    struct form form;
    if (!policy) return error_nomem(err);
    form_begin(&form, "fetch", config, arena, err);
    read_rules(&form, policy);
    read_buckets(&form, "s3", "us-east-1", &policy->s3);
    read_buckets(&form, "gs", "auto", &policy->gs);
    read_azure(&form, &policy->azure);
    read_limits(&form, policy);
    form_text(&form, "caFile", &policy->ca_file);
    enum code rc = form_end(&form);
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

enum code credential_read(const struct secret_source *ref, struct arena *arena, struct str *out, struct error *err)
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
