// OpenAPI 3.1, made from the table of routes, so that it cannot say anything else.
#include "api/inside.h"

#include "contract/profile.h"
#include "schema/schema.h"

static struct json reference(struct ask *ask, const char *name)
{
    struct str path = call_text(ask->call, "#/components/schemas/%s", name);
    return JSON_OF(&ask->call->arena, {"$ref", json_text_made(path)});
}

// {"application/json": {"schema": ...}}
static struct json content_json(struct ask *ask, const char *type, const char *schema)
{
    struct arena *arena = &ask->call->arena;
    return JSON_OF(arena, {type, JSON_OF(arena, {"schema", reference(ask, schema)})});
}

// What is answered as asked; the forms that a caller may choose with Accept.
static struct json answer_json(struct ask *ask, const struct route *route)
{
    struct arena *arena = &ask->call->arena;
    bool stream = route->flags & ROUTE_STREAM;
    struct json content = json_none();
    if (route->answer) content = content_json(ask, "application/json", route->answer);
    if (stream && !route->answer) content = content_json(ask, "text/plain", "Text");
    if (stream)
        JSON_ADD(arena, &content, {"application/x-ndjson", JSON_OF(arena, {"schema", reference(ask, "Text")})},
                 {"text/event-stream", JSON_OF(arena, {"schema", reference(ask, "Text")})});
    return JSON_OF(arena, {"description", json_word("as asked")}, {"content", content});
}

static struct json parameter_json(struct ask *ask, struct str name, bool path)
{
    struct arena *arena = &ask->call->arena;
    const char *schema = path ? "Name" : str_is(name, "limit") ? "Limit" : "Parameter";
    return JSON_OF(arena, {"name", json_string(name)}, {"in", json_word(path ? "path" : "query")},
                   {"required", json_bool(path)}, {"schema", reference(ask, schema)});
}

// Headers that mean something on this route; all of them may be left out.
static void add_headers(struct ask *ask, const struct route *route, struct json *list)
{
    struct arena *arena = &ask->call->arena;
    const struct {
        bool here;
        const char *name, *about;
    } headers[] = {
        {route->flags & ROUTE_AGAIN, "Idempotency-Key", "the same request again is answered as before"},
        {(route->flags & ROUTE_AGAIN) || route->tell == tell_run, "Prefer", "wait=SECONDS: answer when the run has ended, or moved"},
        {route->tell != NULL, "Cairn-Min-Seq", "answer when the run has this event"},
        {route->tell == tell_run, "If-None-Match", "304 when nothing has happened since this ETag"},
        {route->flags & ROUTE_STREAM, "Last-Event-ID", "go on behind this event"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(headers); i++)
        if (headers[i].here)
            json_append(arena, list,
                        JSON_OF(arena, {"name", json_word(headers[i].name)}, {"in", json_word("header")},
                                {"required", json_bool(false)}, {"description", json_word(headers[i].about)},
                                {"schema", reference(ask, "Parameter")}));
}

static struct json parameters_json(struct ask *ask, const struct route *route)
{
    struct arena *arena = &ask->call->arena;
    struct str pattern = str_from(route->pattern), rest = str_from(route->query ? route->query : "");
    struct json list = json_array();
    for (size_t at = str_find(pattern, '{', 0); at < pattern.len; at = str_find(pattern, '{', at + 1))
        json_append(arena, &list,
                    parameter_json(ask, str_slice(pattern, at + 1, str_find(pattern, '}', at)), true));
    while (rest.len > 0) json_append(arena, &list, parameter_json(ask, str_cut(rest, ' ', &rest), false));
    add_headers(ask, route, &list);
    return list;
}

static struct json body_json(struct ask *ask, const struct route *route)
{
    if (!route->body) return json_none();
    return JSON_OF(&ask->call->arena, {"required", json_bool(true)},
                   {"content", content_json(ask, "application/json", route->body)});
}

static struct json responses_json(struct ask *ask, const struct route *route)
{
    struct arena *arena = &ask->call->arena;
    struct str status = call_text(ask->call, "%d", route->status ? route->status : 200);
    struct json good = answer_json(ask, route), over = json_none();
    if (route->flags & ROUTE_STREAM)
        over = JSON_OF(arena,
                       {"description", json_word("Last-Event-ID is that of the end: there is no more to come")});
    if (!status.ptr) return json_failed();
    return JSON_OF(arena, {"200", json_when(route->flags & ROUTE_AGAIN, good)}, {status.ptr, good}, {"204", over},
                   {"default", JSON_OF(arena, {"description", json_word("a problem")},
                                       {"content", content_json(ask, "application/problem+json", "Problem")})});
}

// "getRunsByRunWhy" of GET /v1/runs/{run}/why: what generators call their functions. It follows from the route, and so stays.
static struct json operation_id(struct ask *ask, const struct route *route)
{
    struct buf name = buf_of(256);
    const char *at = route->pattern;
    bool upper = true;
    for (const char *c = route->method; *c; c++) buf_byte(&name, (char)(*c + ('a' - 'A')));
    if (str_starts(str_from(at), STR("/v1/"))) at += 3;
    for (; *at; at++) {
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9');
        if (*at == '{') buf_text(&name, "By");
        if (letter) buf_byte(&name, (char)(upper && *at >= 'a' && *at <= 'z' ? *at - ('a' - 'A') : *at));
        upper = !letter;
    }
    return json_text_made(buf_keep(&name, &ask->call->arena));
}

static void add_route(struct ask *ask, struct json *paths, const struct route *route)
{
    struct arena *arena = &ask->call->arena;
    struct json operation = JSON_OF(arena, {"operationId", operation_id(ask, route)}, {"summary", json_word(route->summary)},
                                    {"parameters", parameters_json(ask, route)}, {"requestBody", body_json(ask, route)},
                                    {"security", json_when(route->flags & ROUTE_OPEN, json_array())},
                                    {"responses", responses_json(ask, route)});
    char method[16] = "";
    for (size_t i = 0; i < sizeof(method) - 1 && route->method[i]; i++)
        method[i] = (char)(route->method[i] + ('a' - 'A'));
    struct str key = arena_copy(arena, str_from(method));
    if (!key.ptr) *paths = json_failed();
    for (uint32_t i = 0; i < paths->count; i++)
        if (str_is(paths->members[i].key, route->pattern)) {
            json_set(arena, &paths->members[i].value, key, operation);
            if (!json_ok(&paths->members[i].value)) *paths = json_failed();
            return;
        }
    JSON_ADD(arena, paths, {route->pattern, JSON_OF(arena, {key.ptr, operation})});
}

// Where the providers are those of the contract alone, ours is no value that a member may have (C-07).
static void without_own_provider(struct json *schema)
{
    bool list = schema->type == JSON_ARRAY;
    for (uint32_t i = 0; i < schema->count && (list || schema->type == JSON_OBJECT); i++) {
        struct json *one = list ? &schema->items[i] : &schema->members[i].value;
        bool words = !list && one->type == JSON_ARRAY && str_is(schema->members[i].key, "enum");
        if (!words) without_own_provider(one);
        for (uint32_t k = 0; words && k < one->count; k++)
            if (str_is(json_text(&one->items[k]), provider_name(PROVIDER_CAIRN))) one->items[k--] = one->items[--one->count];
    }
}

static struct json description_json(struct ask *ask)
{
    struct arena *arena = &ask->call->arena;
    struct json paths = json_object(), security = json_array(), components;
    const struct route *route;
    struct error err = {0};
    for (size_t i = 0; (route = route_at(i)); i++) add_route(ask, &paths, route);
    if (json_parse(schema_components(), NULL, arena, &components, &err)) components = json_failed();
    if (service_is_strict(ask->call->service)) without_own_provider(&components);
    json_append(arena, &security, JSON_OF(arena, {"token", json_array()}));
    json_append(arena, &security, JSON_OF(arena, {"session", json_array()}));
    struct json servers = json_array();
    json_append(arena, &servers, JSON_OF(arena, {"url", json_word("/")}, {"description", json_word("this service")}));
    struct json info = JSON_OF(arena, {"title", json_word("Cairn")}, {"version", json_word("1")});
    return JSON_OF(arena, {"openapi", json_word("3.1.0")}, {"info", info}, {"servers", servers}, {"security", security},
                   {"paths", paths}, {"components", components});
}

// Everybody may ask, and it is always the same: it is made once.
bool handle_openapi(struct ask *ask)
{
    struct api *api = ask->api;
    if (!api->description.ptr) {
        struct json made = description_json(ask);
        struct buf text = buf_of((size_t)8 << 20);
        if (json_ok(&made)) json_write(&text, &made);
        api->description = json_ok(&made) ? buf_keep(&text, &api->arena) : (struct str){0};
        if (!json_ok(&made)) buf_release(&text);
    }
    if (api->description.ptr) return answer_text(ask, 200, "application/json", api->description);
    return call_nomem(ask->call);
}
