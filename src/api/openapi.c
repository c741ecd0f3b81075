// OpenAPI 3.1, made from the table of routes, so that it cannot say anything else.
#include "api/inside.h"

static struct json reference(struct ask *ask, const char *name)
{
    struct json object = json_object();
    struct str path = call_text(ask->call, "#/components/schemas/%s", name);
    return ask_text(ask, &object, "$ref", path) ? object : json_null();
}

// "application/json": {"schema": ...}
static bool add_type(struct ask *ask, struct json *content, const char *type, const char *schema)
{
    struct json media = json_object();
    return ask_json(ask, &media, "schema", reference(ask, schema)) && ask_json(ask, content, type, media);
}

static bool put_content(struct ask *ask, struct json *object, const char *type, const char *schema)
{
    struct json content = json_object();
    return add_type(ask, &content, type, schema) && ask_json(ask, object, "content", content);
}

// The forms that a caller may choose with Accept.
static bool put_forms(struct ask *ask, struct json *object, const struct route *route)
{
    struct json content = json_object();
    return add_type(ask, &content, route->answer ? "application/json" : "text/plain",
                    route->answer ? route->answer : "Text") &&
           add_type(ask, &content, "application/x-ndjson", "Text") &&
           add_type(ask, &content, "text/event-stream", "Text") && ask_json(ask, object, "content", content);
}

static bool add_parameter(struct ask *ask, struct json *list, struct str name, bool path)
{
    struct json one = json_object();
    const char *schema = path ? "Name" : str_is(name, "limit") ? "Limit" : "Parameter";
    return ask_text(ask, &one, "name", name) && ask_text(ask, &one, "in", path ? STR("path") : STR("query")) &&
           ask_json(ask, &one, "required", json_bool(path)) && ask_json(ask, &one, "schema", reference(ask, schema)) &&
           json_push(&ask->call->arena, list, one);
}

static bool put_parameters(struct ask *ask, struct json *operation, const struct route *route)
{
    struct str pattern = str_from(route->pattern), rest = str_from(route->query);
    struct json list = json_array();
    bool ok = true;
    for (size_t at = str_find(pattern, '{', 0); ok && at < pattern.len; at = str_find(pattern, '{', at + 1))
        ok = add_parameter(ask, &list, str_slice(pattern, at + 1, str_find(pattern, '}', at)), true);
    while (ok && rest.len > 0) ok = add_parameter(ask, &list, str_cut(rest, ' ', &rest), false);
    return ok && ask_json(ask, operation, "parameters", list);
}

static bool put_body(struct ask *ask, struct json *operation, const struct route *route)
{
    struct json body = json_object();
    if (!route->body) return true;
    return ask_json(ask, &body, "required", json_bool(true)) &&
           put_content(ask, &body, "application/json", route->body) && ask_json(ask, operation, "requestBody", body);
}

static bool put_responses(struct ask *ask, struct json *operation, const struct route *route)
{
    struct json responses = json_object(), good = json_object(), over = json_object(), bad = json_object();
    struct str status = call_text(ask->call, "%d", route->status);
    bool stream = route->flags & ROUTE_STREAM, again = route->flags & ROUTE_AGAIN;
    return ask_text(ask, &good, "description", STR("as asked")) &&
           (stream ? put_forms(ask, &good, route)
                   : !route->answer || put_content(ask, &good, "application/json", route->answer)) &&
           ask_text(ask, &over, "description", STR("Last-Event-ID is that of the end: there is no more to come")) &&
           ask_text(ask, &bad, "description", STR("a problem")) &&
           put_content(ask, &bad, "application/problem+json", "Problem") && status.ptr &&
           (!again || ask_json(ask, &responses, "200", good)) &&
           json_put(&ask->call->arena, &responses, status, good) &&
           (!stream || ask_json(ask, &responses, "204", over)) && ask_json(ask, &responses, "default", bad) &&
           ask_json(ask, operation, "responses", responses);
}

static bool put_route(struct ask *ask, struct json *paths, const struct route *route)
{
    struct json operation = json_object(), *path = NULL;
    char method[16] = "";
    for (size_t i = 0; i < sizeof(method) - 1 && route->method[i]; i++)
        method[i] = (char)(route->method[i] + ('a' - 'A'));
    bool ok = ask_text(ask, &operation, "summary", str_from(route->summary)) &&
              put_parameters(ask, &operation, route) && put_body(ask, &operation, route) &&
              (!(route->flags & ROUTE_OPEN) || ask_json(ask, &operation, "security", json_array())) &&
              put_responses(ask, &operation, route);
    for (uint32_t i = 0; i < paths->count; i++)
        if (str_is(paths->members[i].key, route->pattern)) path = &paths->members[i].value;
    struct str key = arena_copy(&ask->call->arena, str_from(method));
    if (ok && path) return key.ptr && json_put(&ask->call->arena, path, key, operation);
    struct json made = json_object();
    return ok && key.ptr && json_put(&ask->call->arena, &made, key, operation) &&
           ask_json(ask, paths, route->pattern, made);
}

static bool whole(struct ask *ask, struct json *out)
{
    struct json info = json_object(), paths = json_object(), security = json_array(), token = json_object();
    struct json components;
    struct error err = {0};
    const struct route *route;
    bool ok = true;
    for (size_t i = 0; ok && (route = route_at(i)); i++) ok = put_route(ask, &paths, route);
    *out = json_object();
    return ok && json_parse(components_text(), NULL, &ask->call->arena, &components, &err) == OK &&
           ask_text(ask, &info, "title", STR("Cairn")) && ask_text(ask, &info, "version", STR("1")) &&
           ask_json(ask, &token, "token", json_array()) && json_push(&ask->call->arena, &security, token) &&
           ask_text(ask, out, "openapi", STR("3.1.0")) && ask_json(ask, out, "info", info) &&
           ask_json(ask, out, "security", security) && ask_json(ask, out, "paths", paths) &&
           ask_json(ask, out, "components", components);
}

void handle_openapi(struct ask *ask)
{
    struct json description;
    if (!service_may(ask->call, OPERATION_DISCOVERY, NULL, (struct str){0})) return;
    if (whole(ask, &description))
        call_answer(ask->call, 200, description);
    else
        call_nomem(ask->call);
}
