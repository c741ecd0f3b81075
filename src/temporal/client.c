#include "temporal/temporal.h"

#include "cairn/cairn.h"
#include "json/form.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct temporal {
    struct grpc *grpc;
    struct temporal_settings settings;
    char identity[320];
};

enum { REQUEST_MAX = 16 << 20 };

enum code temporal_open(const struct temporal_settings *settings, struct temporal **out, struct error *err)
{
    struct temporal *temporal = calloc(1, sizeof(*temporal));
    char host[256] = "";
    if (!temporal) return error_nomem(err);
    temporal->settings = *settings;
    if (settings->namespace.len == 0) temporal->settings.namespace = STR(TEMPORAL_NAMESPACE);
    if (settings->queue.len == 0) temporal->settings.queue = STR(TEMPORAL_QUEUE);
    gethostname(host, sizeof(host) - 1);
    snprintf(temporal->identity, sizeof(temporal->identity), "cairn@%s:%ld", host, (long)getpid());
    struct grpc_header headers[] = {{STR("client-name"), STR("cairn")},
                                    {STR("client-version"), STR(CAIRN_VERSION)},
                                    {STR("temporal-namespace"), temporal->settings.namespace},
                                    {STR("user-agent"), STR("cairn/" CAIRN_VERSION)}};
    struct grpc_options options = {.address = settings->address,
                                   .tls = settings->tls,
                                   .ca_file = settings->ca_file,
                                   .cert_file = settings->cert_file,
                                   .key_file = settings->key_file,
                                   .server_name = settings->server_name,
                                   .token_variable = settings->key_variable,
                                   .token_file = settings->key_file_path,
                                   .headers = headers,
                                   .header_count = ARRAY_COUNT(headers)};
    enum code rc = grpc_open(&options, &temporal->grpc, err);
    if (rc) {
        free(temporal);
        return rc;
    }
    *out = temporal;
    return OK;
}

void temporal_shut(struct temporal *temporal)
{
    grpc_shut(temporal->grpc);
}

void temporal_shut_polls(struct temporal *temporal)
{
    grpc_shut_polls(temporal->grpc);
}

void temporal_close(struct temporal *temporal)
{
    if (!temporal) return;
    grpc_close(temporal->grpc);
    free(temporal);
}

const struct temporal_settings *temporal_settings_of(const struct temporal *temporal)
{
    return &temporal->settings;
}

struct str temporal_identity(const struct temporal *temporal)
{
    return str_from(temporal->identity);
}

bool temporal_is_away(struct temporal *temporal, struct error *why)
{
    return grpc_is_away(temporal->grpc, why);
}

static struct grpc_call call_of(const struct temporal_call *call, const struct buf *body)
{
    return (struct grpc_call){.path = call->method,
                              .body = buf_str(body),
                              .timeout_ms = call->timeout_ms ? call->timeout_ms : TEMPORAL_CALL_MS,
                              .retry = call->retry,
                              .budget_ms = call->budget_ms};
}

enum code temporal_ask(struct temporal *temporal, const struct temporal_call *call, struct arena *arena, int *status,
                       struct error *err)
{
    struct buf body = buf_of(REQUEST_MAX);
    struct grpc_answer answer = {.status = GRPC_UNKNOWN};
    proto_write(&body, call->in, call->request);
    struct grpc_call ask = call_of(call, &body);
    enum code rc = buf_ok(&body) ? grpc_call(temporal->grpc, &ask, arena, &answer, err) : error_nomem(err);
    buf_release(&body);
    if (status) *status = answer.status;
    if (rc || !call->out) return rc;
    rc = proto_read(call->out, answer.body, arena, call->answer, err);
    if (rc) error_wrap(err, "Temporal's answer");
    return rc;
}

enum code temporal_send(struct temporal *temporal, const struct temporal_call *call, grpc_done done, void *context, uint64_t *id,
                        struct error *err)
{
    struct buf body = buf_of(REQUEST_MAX);
    proto_write(&body, call->in, call->request);
    struct grpc_call ask = call_of(call, &body);
    enum code rc = buf_ok(&body) ? grpc_send(temporal->grpc, &ask, done, context, id, err) : error_nomem(err);
    buf_release(&body);
    return rc;
}

void temporal_cancel(struct temporal *temporal, uint64_t id)
{
    grpc_cancel(temporal->grpc, id);
}

enum code temporal_attributes_look(struct temporal *temporal, struct error *err)
{
    static const char *const names[] = TEMPORAL_ATTRIBUTES;
    struct arena arena SCOPED(arena_release) = arena_of(4096, 1 << 20);
    struct temporal_list_attributes request = {.namespace = temporal->settings.namespace};
    struct temporal_attributes answer = {0};
    struct temporal_call call = {.method = TEMPORAL_OPERATOR("ListSearchAttributes"),
                                 .in = &temporal_list_attributes,
                                 .request = &request,
                                 .out = &temporal_attributes,
                                 .answer = &answer,
                                 .retry = GRPC_SAFE};
    enum code rc = temporal_ask(temporal, &call, &arena, NULL, err);
    for (size_t i = 0; !rc && i < ARRAY_COUNT(names); i++) {
        bool found = false;
        for (size_t k = 0; k < answer.custom_count; k++)
            found = found || (str_is(answer.custom[k].key, names[i]) && answer.custom[k].value == TEMPORAL_KEYWORD);
        if (!found) rc = error_set(err, E_NOT_FOUND, "the namespace has no search attribute %s of type Keyword", names[i]);
    }
    return rc;
}

// ---- payloads

const struct temporal_payloads *temporal_json(struct temporal_json *room, struct str json)
{
    room->encoding = (struct temporal_entry){STR("encoding"), STR("json/plain")};
    room->payload = (struct temporal_payload){.metadata = &room->encoding, .metadata_count = 1, .data = json};
    room->payloads = (struct temporal_payloads){.payloads = &room->payload, .payloads_count = 1};
    return &room->payloads;
}

bool temporal_json_read(const struct temporal_payloads *payloads, struct str *out)
{
    *out = STR("null");
    if (!payloads || payloads->payloads_count == 0) return true;
    const struct temporal_payload *first = &payloads->payloads[0];
    struct str encoding = {0};
    for (size_t i = 0; i < first->metadata_count; i++)
        if (str_is(first->metadata[i].key, "encoding")) encoding = first->metadata[i].value;
    if (str_is(encoding, "binary/null")) return true;
    if (!str_is(encoding, "json/plain")) return false;
    *out = first->data;
    return true;
}

struct temporal_duration temporal_duration_of(int64_t ms)
{
    return (struct temporal_duration){.seconds = ms / 1000, .nanos = ms % 1000 * 1000000};
}

int64_t temporal_duration_ms(const struct temporal_duration *duration)
{
    return duration ? duration->seconds * 1000 + duration->nanos / 1000000 : 0;
}

// ---- names

struct str temporal_activity_queue(struct str base, struct str pool, struct arena *arena)
{
    if (pool.len == 0 || str_is(pool, "default")) return arena_copy(arena, base);
    return arena_format(arena, "%.*s.%.*s", STR_ARG(base), STR_ARG(pool));
}

struct str temporal_runs_queue(struct str base, uint32_t shard, struct arena *arena)
{
    if (shard > 0) return arena_format(arena, "%.*s.runs.%u", STR_ARG(base), shard);
    return arena_format(arena, "%.*s.runs", STR_ARG(base));
}

bool temporal_workflow_parse(struct str id, struct str *tenant, struct str *run)
{
    size_t slash = str_find(id, '/', 0);
    if (slash == 0 || slash + 1 >= id.len) return false;
    *tenant = str_slice(id, 0, slash);
    *run = str_slice(id, slash + 1, id.len);
    return true;
}

static bool last_number(struct str *text, uint32_t *out)
{
    size_t at = text->len;
    int64_t number;
    while (at > 0 && text->ptr[at - 1] != ':') at--;
    if (at == 0 || !str_int64(str_slice(*text, at, text->len), &number) || number < 1 || number > UINT32_MAX)
        return false;
    *out = (uint32_t)number;
    *text = str_slice(*text, 0, at - 1);
    return true;
}

bool temporal_activity_parse(struct str id, struct str *step, uint32_t *logical, uint32_t *engine)
{
    *step = id;
    return last_number(step, engine) && last_number(step, logical) && step->len > 0;
}

// ---- settings

static void read_tls(struct form *form, struct temporal_settings *out)
{
    form_path(form, "caFile", &out->ca_file);
    form_path(form, "certFile", &out->cert_file);
    form_path(form, "keyFile", &out->key_file);
    form_text(form, "serverName", &out->server_name);
    if (!form->rc && (out->cert_file.len > 0) != (out->key_file.len > 0))
        form_fail(form, "certFile", "and keyFile go together");
}

enum code temporal_settings_parse(const struct json *config, struct arena *arena, struct temporal_settings *out,
                                  struct error *err)
{
    struct form form, tls;
    form_begin(&form, "temporal", config, arena, err);
    form_text(&form, "address", &out->address);
    form_text(&form, "namespace", &out->namespace);
    form_text(&form, "queue", &out->queue);
    form_text(&form, "apiKeyVariable", &out->key_variable);
    form_path(&form, "apiKeyFile", &out->key_file_path);
    form_count(&form, "heartbeatSeconds", 1, 3600, &out->heartbeat_s);
    form_count(&form, "historyEvents", 20, 4000, &out->history_events);
    form_flag(&form, "searchAttributes", &out->searchable);
    out->cached_runs = TEMPORAL_CACHED_RUNS;
    form_count(&form, "cachedRuns", 0, 100000, &out->cached_runs);
    if (form_part(&form, "tls", &tls)) {
        out->tls = true;
        read_tls(&tls, out);
        form.rc = form_end(&tls);
    }
    if (!form.rc && out->address.len == 0) form_fail(&form, "address", "is missing: HOST:PORT of Temporal's frontend");
    return form_end(&form);
}
