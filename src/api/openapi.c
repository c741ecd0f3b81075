// OpenAPI 3.1, made from the table of routes, so that it cannot say anything else.
#include "api/inside.h"

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

static struct json parameters_json(struct ask *ask, const struct route *route)
{
    struct arena *arena = &ask->call->arena;
    struct str pattern = str_from(route->pattern), rest = str_from(route->query ? route->query : "");
    struct json list = json_array();
    for (size_t at = str_find(pattern, '{', 0); at < pattern.len; at = str_find(pattern, '{', at + 1))
        json_append(arena, &list,
                    parameter_json(ask, str_slice(pattern, at + 1, str_find(pattern, '}', at)), true));
    while (rest.len > 0) json_append(arena, &list, parameter_json(ask, str_cut(rest, ' ', &rest), false));
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

static void add_route(struct ask *ask, struct json *paths, const struct route *route)
{
    struct arena *arena = &ask->call->arena;
    struct json operation = JSON_OF(arena, {"summary", json_word(route->summary)},
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

void handle_openapi(struct ask *ask)
{
    struct arena *arena = &ask->call->arena;
    struct json paths = json_object(), security = json_array(), components;
    const struct route *route;
    struct error err = {0};
    if (!service_may(ask->call, OPERATION_DISCOVERY, NULL, (struct str){0})) return;
    for (size_t i = 0; (route = route_at(i)); i++) add_route(ask, &paths, route);
    if (json_parse(schema_components(), NULL, arena, &components, &err)) components = json_failed();
    json_append(arena, &security, JSON_OF(arena, {"token", json_array()}));
    json_append(arena, &security, JSON_OF(arena, {"session", json_array()}));
    struct json info = JSON_OF(arena, {"title", json_word("Cairn")}, {"version", json_word("1")});
    call_answer(ask->call, 200,
                JSON_OF(arena, {"openapi", json_word("3.1.0")}, {"info", info}, {"security", security},
                        {"paths", paths}, {"components", components}));
}
