// Texts of tasks that stand elsewhere: `script`, a place or {uri, source: {type, endpoint, bucket, headers, timeout}}.
#include "task/kind.h"

enum { HEADERS_MAX = 16 };

static bool is_address(struct str uri)
{
    static const char *const schemes[] = {"http://", "https://", "s3://", "gs://", "azure://"};
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++)
        if (str_starts(uri, str_from(schemes[i]))) return true;
    return false;
}

// With one slash between them.
static struct str below(struct task_call *call, struct str place, struct str name)
{
    bool slash = str_ends(place, STR("/")) || str_starts(name, STR("/")) || !name.len;
    return call_printf(call, "%.*s%s%.*s", STR_ARG(place), slash ? "" : "/", STR_ARG(name));
}

bool script_find(struct task_call *call, const struct json *script, struct script_place *out)
{
    const struct json *source = json_key(script, "source");
    struct str uri = json_is(script, JSON_STRING) ? script->text : json_text(json_key(script, "uri"));
    struct str type = json_text(json_key(source, "type")), bucket = json_text(json_key(source, "bucket"));
    struct str endpoint = json_text(json_key(source, "endpoint"));
    if (!uri.len) uri = json_text(json_key(script, "path"));
    if (!is_address(uri) && str_is(type, "http") && endpoint.len)
        uri = !uri.len || str_ends(endpoint, uri) ? endpoint : below(call, endpoint, uri); // it may name the file, too
    else if (!is_address(uri) && bucket.len && STR_AMONG(type, "gcs", "gs"))
        uri = below(call, call_printf(call, "gs://%.*s", STR_ARG(bucket)), uri);
    else if (!is_address(uri) && bucket.len && str_is(type, "s3"))
        uri = below(call, call_printf(call, "s3://%.*s", STR_ARG(bucket)), uri);
    *out = (struct script_place){.uri = uri, .web = is_address(uri), .source = source};
    return uri.len || call_fail(call, TASK_CLIENT, "SCRIPT_MISSING", "the script has no uri");
}

bool script_fetch(struct task_call *call, const struct script_place *place, struct str *text)
{
    const struct json *headers = json_key(place->source, "headers");
    struct http_header list[HEADERS_MAX];
    struct fetch_answer answer;
    struct web_call request = {.method = STR("GET"),
                               .url = place->uri,
                               .headers = list,
                               .timeout_ms = seconds_ms(json_key(place->source, "timeout"), 0)};
    for (uint32_t i = 0; json_is(headers, JSON_OBJECT) && i < headers->count && request.header_count < HEADERS_MAX; i++)
        list[request.header_count++] =
            (struct http_header){headers->members[i].key, json_as_text(&headers->members[i].value, call->arena)};
    if (!web_call(call, &request, &answer)) return false;
    if (answer.status != 200) {
        call_fail(call, TASK_NOT_FOUND, "SCRIPT_NOT_FOUND", "%.*s answered %d", STR_ARG(place->uri), answer.status);
        call->out.retryable = answer.status >= 500;
        return false;
    }
    *text = call_clean(call, answer.body);
    return true;
}
