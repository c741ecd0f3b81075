#include "temporal/value.h"

#include "base/uuid.h"
#include "json/make.h"

#include <string.h>

#define KEPT "cairn.value"
#define DAY_MS ((int64_t)86400 * 1000)
enum { PUT_BUDGET_MS = 60000, GET_BUDGET_MS = 30000, LEFT_DAYS = 100 };

static struct str piece_id(struct arena *arena, struct str workflow, const struct digest *digest, size_t piece)
{
    char hex[SHA256_HEX + 1];
    digest_hex(digest, hex);
    return arena_format(arena, "%.*s#%s.%zu", STR_ARG(workflow), hex, piece);
}

bool temporal_value_parse(struct str id, struct str *workflow)
{
    size_t at = id.len;
    struct digest digest;
    while (at > 0 && id.ptr[at - 1] != '#') at--;
    if (at < 2 || id.len - at <= SHA256_HEX || !digest_parse(str_slice(id, at, at + SHA256_HEX), &digest)) return false;
    *workflow = str_slice(id, 0, at - 1);
    return true;
}

static size_t pieces_of(uint64_t size)
{
    return size == 0 ? 1 : (size_t)((size + TEMPORAL_VALUE_MAX - 1) / TEMPORAL_VALUE_MAX);
}

// A workflow of that id is the piece, also when another process has started it.
static enum code put_piece(struct temporal *temporal, struct str id, struct str bytes, struct arena *arena, struct error *err)
{
    const struct temporal_settings *settings = temporal_settings_of(temporal);
    char request_id[UUID_SIZE];
    uuid_named(id, request_id);
    struct temporal_entry encoding = {STR("encoding"), STR("binary/plain")};
    struct temporal_payload payload = {.metadata = &encoding, .metadata_count = 1, .data = bytes};
    struct temporal_payloads input = {.payloads = &payload, .payloads_count = 1};
    struct temporal_name type = {STR(TEMPORAL_VALUE)};
    struct temporal_queue queue = {.name = temporal_runs_queue(settings->queue, 0, arena), .kind = TEMPORAL_QUEUE_NORMAL};
    struct temporal_duration delay = temporal_duration_of((LEFT_DAYS + 1) * DAY_MS), timeout = temporal_duration_of(LEFT_DAYS * DAY_MS);
    struct temporal_start request = {.namespace = settings->namespace,
                                     .workflow_id = id,
                                     .workflow_type = &type,
                                     .task_queue = &queue,
                                     .input = &input,
                                     .execution_timeout = &timeout,
                                     .identity = temporal_identity(temporal),
                                     .request_id = str_from(request_id),
                                     .reuse_policy = TEMPORAL_REUSE_REJECT,
                                     .start_delay = &delay,
                                     .conflict_policy = TEMPORAL_CONFLICT_USE_EXISTING};
    struct temporal_call call = {.method = TEMPORAL_METHOD("StartWorkflowExecution"),
                                 .in = &temporal_start,
                                 .request = &request,
                                 .retry = GRPC_SAFE,
                                 .budget_ms = PUT_BUDGET_MS};
    if (!queue.name.ptr) return error_nomem(err);
    enum code rc = temporal_ask(temporal, &call, arena, NULL, err);
    if (rc != E_EXISTS) return rc;
    *err = (struct error){0};
    return OK;
}

enum code temporal_value_put(struct temporal *temporal, struct str workflow, struct str bytes, struct digest *digest,
                             struct error *err)
{
    *digest = sha256(bytes);
    if (bytes.len > TEMPORAL_LARGE_MAX)
        return error_set(err, E_LIMIT, "PAYLOAD_TOO_LARGE: a value of %zu bytes; at most %d go to a Temporal server", bytes.len,
                         TEMPORAL_LARGE_MAX);
    enum code rc = OK;
    for (size_t i = 0; !rc && i < pieces_of(bytes.len); i++) {
        struct arena arena = arena_of(4096, 1 << 20);
        size_t from = i * TEMPORAL_VALUE_MAX, to = from + TEMPORAL_VALUE_MAX < bytes.len ? from + TEMPORAL_VALUE_MAX : bytes.len;
        struct str id = piece_id(&arena, workflow, digest, i);
        rc = id.ptr ? put_piece(temporal, id, str_slice(bytes, from, to), &arena, err) : error_nomem(err);
        arena_release(&arena);
    }
    return rc;
}

// The first event of a workflow is its start, and has its input.
static enum code get_piece(struct temporal *temporal, struct str id, struct arena *arena, struct str *out, struct error *err)
{
    struct temporal_execution execution = {.workflow_id = id};
    struct temporal_get_history request = {
        .namespace = temporal_settings_of(temporal)->namespace, .execution = &execution, .maximum_page_size = 1};
    struct temporal_history_page page = {0};
    struct temporal_history raw;
    struct temporal_call call = {.method = TEMPORAL_METHOD("GetWorkflowExecutionHistory"),
                                 .in = &temporal_get_history,
                                 .request = &request,
                                 .out = &temporal_history_page,
                                 .answer = &page,
                                 .retry = GRPC_SAFE,
                                 .budget_ms = GET_BUDGET_MS};
    enum code rc = temporal_ask(temporal, &call, arena, NULL, err);
    if (!rc && page.raw_count > 0) {
        rc = proto_read(&temporal_history, page.raw[0].data, arena, &raw, err);
        page.history = &raw;
    }
    if (rc) return rc;
    const struct temporal_event *first = page.history && page.history->events_count > 0 ? &page.history->events[0] : NULL;
    const struct temporal_payloads *input = first && first->started ? first->started->input : NULL;
    if (!input || input->payloads_count == 0) return error_set(err, E_INVALID, "the workflow %.*s is no value", STR_ARG(id));
    *out = input->payloads[0].data;
    return OK;
}

enum code temporal_value_get(struct temporal *temporal, struct str workflow, const struct digest *digest, uint64_t size,
                             struct arena *arena, struct str *out, struct error *err)
{
    if (size > TEMPORAL_LARGE_MAX) return error_set(err, E_INVALID, "a value of %llu bytes", (unsigned long long)size);
    char *bytes = arena_alloc(arena, (size_t)size + 1);
    if (!bytes) return error_nomem(err);
    enum code rc = OK;
    size_t used = 0;
    for (size_t i = 0; !rc && i < pieces_of(size); i++) {
        struct arena room = arena_of(65536, (size_t)16 << 20);
        struct str id = piece_id(&room, workflow, digest, i), piece = {0};
        rc = id.ptr ? get_piece(temporal, id, &room, &piece, err) : error_nomem(err);
        if (!rc && piece.len > size - used) rc = error_set(err, E_INVALID, "a value at Temporal is longer than it should be");
        if (!rc && piece.len > 0) memcpy(bytes + used, piece.ptr, piece.len);
        if (!rc) used += piece.len;
        arena_release(&room);
    }
    if (rc) return rc;
    bytes[used] = '\0';
    *out = (struct str){bytes, used};
    struct digest got = sha256(*out);
    if (used != size || memcmp(&got, digest, sizeof(got)) != 0)
        return error_set(err, E_INVALID, "a value at Temporal does not have the digest that names it");
    return OK;
}

enum code temporal_text_put(struct temporal *temporal, struct str workflow, struct str text, struct arena *arena,
                            struct str *out, struct error *err)
{
    struct digest digest;
    char hex[SHA256_HEX + 1];
    *out = text;
    if (text.len <= TEMPORAL_INLINE_MAX) return OK;
    enum code rc = temporal_value_put(temporal, workflow, text, &digest, err);
    if (rc) return rc;
    digest_hex(&digest, hex);
    struct json value = JSON_OF(arena, {KEPT, JSON_OF(arena, {"sha256", json_word(hex)}, {"bytes", json_count(text.len)})});
    struct buf json = buf_of(4096);
    json_write(&json, &value);
    *out = buf_keep(&json, arena);
    return out->ptr ? OK : error_nomem(err);
}

bool temporal_text_is_kept(struct str sent)
{
    return sent.len > 1 && str_starts(str_slice(sent, 1, sent.len), STR("\"" KEPT "\":"));
}

enum code temporal_text_get(struct temporal *temporal, struct str workflow, struct str sent, struct arena *arena,
                            struct str *out, struct error *err)
{
    struct json given;
    struct digest digest;
    *out = sent;
    if (!temporal_text_is_kept(sent)) return OK;
    enum code rc = json_parse(sent, NULL, arena, &given, err);
    const struct json *value = rc ? NULL : json_key(&given, KEPT);
    int64_t size = json_integer(json_key(value, "bytes"), -1);
    if (!rc && (size < 0 || !digest_parse(json_text(json_key(value, "sha256")), &digest)))
        rc = error_set(err, E_INVALID, "a value without a digest");
    return rc ? rc : temporal_value_get(temporal, workflow, &digest, (uint64_t)size, arena, out, err);
}
