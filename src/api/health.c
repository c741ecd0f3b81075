// Is it there, who am I, what can it do, what does it count.
#include "api/inside.h"

#include "schema/embedded.h"

void handle_live(struct ask *ask)
{
    answer_text(ask, 200, "text/plain", STR("ok\n"));
}

void handle_ready(struct ask *ask)
{
    struct error err = {0};
    if (service_failed(ask->call->service, &err))
        answer_text(ask, 503, "text/plain", STR("not ready\n"));
    else
        answer_text(ask, 200, "text/plain", STR("ok\n"));
}

void handle_metrics(struct ask *ask)
{
    struct buf text;
    if (!service_may(ask->call, OPERATION_METRICS, NULL, (struct str){0})) return;
    buf_init(&text, (size_t)16 << 20);
    metrics_write(service_metrics(ask->call->service), METRICS_PROMETHEUS, &text);
    struct str copy = buf_ok(&text) ? arena_copy(&ask->call->arena, buf_str(&text)) : (struct str){0};
    buf_release(&text);
    if (copy.ptr)
        answer_text(ask, 200, metrics_content_type(METRICS_PROMETHEUS), copy);
    else
        no_memory(ask);
}

static bool put_names(struct ask *ask, struct json *object, const char *key, struct names names)
{
    struct json list = json_array();
    for (size_t i = 0; i < names.count; i++)
        if (!json_push(&ask->call->arena, &list, json_string(names.at[i]))) return false;
    return names.count == 0 || ask_json(ask, object, key, list);
}

void handle_whoami(struct ask *ask)
{
    const struct principal *who = &ask->call->who;
    struct json body = json_object(), roles = json_array();
    if (!service_may(ask->call, OPERATION_DISCOVERY, NULL, (struct str){0})) return;
    bool ok = ask_text(ask, &body, "id", who->id) && ask_text(ask, &body, "tenantId", who->tenant);
    for (unsigned role = 1; ok && role <= ROLE_ALL; role <<= 1)
        if (who->roles & role)
            ok = json_push(&ask->call->arena, &roles, json_string(str_from(role_word((enum role)role))));
    ok = ok && ask_json(ask, &body, "roles", roles) && put_names(ask, &body, "projects", who->projects) &&
         put_names(ask, &body, "environments", who->environments) && ask_text(ask, &body, "pool", who->pool) &&
         ask_time(ask, &body, "expiresAt", who->expires_ms);
    if (ok)
        call_answer(ask->call, 200, body);
    else
        no_memory(ask);
}

void handle_capabilities(struct ask *ask)
{
    struct json body = json_object();
    if (!service_may(ask->call, OPERATION_DISCOVERY, NULL, (struct str){0})) return;
    struct json versions = json_array(), kinds = json_array();
    static const char *const schema[] = {"v1.0", "v1.1", "v1.2"};
    bool ok = true;
    for (size_t i = 0; ok && i < ARRAY_COUNT(schema); i++)
        ok = json_push(&ask->call->arena, &versions, json_string(str_from(schema[i])));
    ok = ok && json_push(&ask->call->arena, &kinds, json_string(STR("plan"))) &&
         json_push(&ask->call->arena, &kinds, json_string(STR("nodes")));
    ok = ok && ask_text(ask, &body, "provider", STR("cairn")) && ask_json(ask, &body, "documents", kinds) &&
         ask_json(ask, &body, "schemaVersions", versions) &&
         ask_time(ask, &body, "startedAt", service_started_ms(ask->call->service));
    if (ok)
        call_answer(ask->call, 200, body);
    else
        no_memory(ask);
}

// /schemas/run-snapshot.json: as they are carried in the binary.
void handle_schema_get(struct ask *ask)
{
    if (!service_may(ask->call, OPERATION_DISCOVERY, NULL, (struct str){0})) return;
    for (size_t i = 0; i < embedded_file_count; i++) {
        const struct embedded_file *file = &embedded_files[i];
        struct str name = str_from(file->name);
        size_t slash = name.len;
        while (slash > 0 && name.ptr[slash - 1] != '/') slash--;
        if (!str_eq(ask->params[0], name) && !str_eq(ask->params[0], str_slice(name, slash, name.len))) continue;
        answer_text(ask, 200, "application/schema+json", (struct str){(const char *)file->bytes, file->size});
        return;
    }
    call_problem(ask->call, 404, "NOT_FOUND", "there is no such schema");
}
