// Audit records: canonical JSON, each with its number and the hash of the one before.
#include "auth/internal.h"

#include <string.h>

enum { TEXT_MAX = 4096, AGENT_MAX = 256, NAME_MAX = 512 };

static const char *audit_outcome_name(enum audit_outcome outcome)
{
    static const char *const names[] = {"", "GRANTED", "DENIED", "COMPLETED", "FAILED"};
    return (size_t)outcome < ARRAY_COUNT(names) ? names[outcome] : "";
}

static enum audit_outcome outcome_parse(struct str text)
{
    for (int i = AUDIT_GRANTED; i <= AUDIT_FAILED; i++)
        if (str_is(text, audit_outcome_name((enum audit_outcome)i))) return (enum audit_outcome)i;
    return (enum audit_outcome)0;
}

const char *audit_fault_name(enum audit_fault fault)
{
    static const char *const names[] = {"intact", "malformed", "changed", "missing", "order"};
    return (size_t)fault < ARRAY_COUNT(names) ? names[fault] : "";
}

void audit_key(struct str tenant, uint64_t seq, struct buf *out)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < 8; i++) bytes[i] = (uint8_t)(seq >> 8 * (7 - i));
    buf_add(out, tenant);
    buf_byte(out, '/');
    buf_hex(out, bytes, sizeof(bytes));
}

struct audit_record audit_of(const struct auth_ask *ask, const struct decision *decision)
{
    struct audit_record record = {.action = str_from(operation_name(ask->operation)),
                                  .outcome = decision->allowed ? AUDIT_GRANTED : AUDIT_DENIED,
                                  .code = str_from(decision->audit_code),
                                  .reason = ask->reason,
                                  .actor_type = STR("none")};
    if (!ask->principal) return record;
    record.tenant = ask->principal->tenant;
    record.actor = ask->principal->id;
    record.actor_type = ask->internal                          ? STR("system")
                        : ask->principal->roles == ROLE_WORKER ? STR("worker")
                        : ask->principal->roles == ROLE_HOST   ? STR("host")
                        : ask->principal->is_foreign           ? STR("user")
                                                               : STR("token");
    if (decision->effective) record.actor_role = str_from(role_word(decision->effective));
    return record;
}

// UTF-8 of at most `max` bytes, whatever came; '?' stands for what is none. NULL ptr: out of memory.
static struct str clean(struct arena *arena, struct str text, size_t max)
{
    size_t len = 0;
    if (text.len <= max && str_utf8(text)) return text.ptr ? text : STR("");
    char *to = arena_alloc(arena, max + 1);
    if (!to) return (struct str){NULL, 0};
    for (size_t i = 0; i < text.len;) {
        size_t size = str_utf8_size(text, i), wide = size ? size : 1;
        if (len + wide > max) break;
        if (size)
            memcpy(to + len, text.ptr + i, size);
        else
            to[len] = '?';
        len += wide;
        i += wide;
    }
    return (struct str){to, len};
}

// What is left of it is what is hashed.
static struct json clean_json(struct arena *arena, struct str *text, size_t max)
{
    *text = clean(arena, *text, max);
    return text->ptr ? json_some(*text) : json_failed();
}

static bool record_json(struct audit_record *record, struct arena *arena, struct json *out)
{
    struct json actor = JSON_OF(arena, {"id", clean_json(arena, &record->actor, NAME_MAX)},
                                {"role", clean_json(arena, &record->actor_role, NAME_MAX)},
                                {"type", clean_json(arena, &record->actor_type, NAME_MAX)});
    struct json context = JSON_OF(arena, {"ip", clean_json(arena, &record->ip, NAME_MAX)},
                                  {"requestId", clean_json(arena, &record->request, NAME_MAX)},
                                  {"userAgent", clean_json(arena, &record->user_agent, AGENT_MAX)});
    struct json reason = JSON_OF(arena, {"code", clean_json(arena, &record->code, NAME_MAX)},
                                 {"message", clean_json(arena, &record->reason, TEXT_MAX)});
    struct json resource = JSON_OF(arena, {"id", clean_json(arena, &record->resource, NAME_MAX)},
                                   {"type", clean_json(arena, &record->resource_type, NAME_MAX)});
    *out = JSON_OF(arena, {"action", clean_json(arena, &record->action, NAME_MAX)}, {"actor", json_filled(actor)},
                   {"auditId", clean_json(arena, &record->id, NAME_MAX)}, {"context", json_filled(context)},
                   {"decision", json_word(audit_outcome_name(record->outcome))}, {"details", record->details},
                   {"engineAttemptId", json_when(record->engine_attempt > 0, json_int(record->engine_attempt))},
                   {"environmentId", clean_json(arena, &record->environment, NAME_MAX)},
                   {"logicalAttemptId", json_when(record->logical_attempt > 0, json_int(record->logical_attempt))},
                   {"previousHash", json_digest(arena, &record->previous)},
                   {"projectId", clean_json(arena, &record->project, NAME_MAX)}, {"reason", json_filled(reason)},
                   {"resource", json_filled(resource)}, {"seq", json_count(record->seq)},
                   {"tenantId", clean_json(arena, &record->tenant, NAME_MAX)},
                   {"timestamp", json_time_some(arena, record->at_ms)});
    return json_ok(out);
}

enum code audit_encode(struct audit_record *record, struct audit_head *head, struct arena *arena, struct buf *out,
                       struct error *err)
{
    struct json object;
    size_t start = out->len;
    record->seq = head->seq + 1;
    record->previous = head->hash;
    if (!record_json(record, arena, &object)) return error_nomem(err);
    json_canon(out, &object);
    if (!buf_ok(out)) return error_set(err, E_LIMIT, "an audit record does not fit its buffer");
    *head = (struct audit_head){record->seq, sha256(str_slice(buf_str(out), start, out->len))};
    return OK;
}

static struct reading inner_of(struct reading *outer, const char *key, struct json *empty)
{
    *empty = json_object();
    const struct json *value = auth_take(outer, key, JSON_OBJECT);
    return auth_reading_of(value ? value : empty, outer->arena);
}

static uint32_t take_attempt(struct reading *reading, const char *key)
{
    int64_t attempt = json_integer(auth_take(reading, key, JSON_INT), 0);
    return attempt > 0 && attempt <= UINT32_MAX ? (uint32_t)attempt : 0;
}

static void take_record(struct reading *reading, struct audit_record *record)
{
    struct json none[4];
    struct reading actor = inner_of(reading, "actor", &none[0]), context = inner_of(reading, "context", &none[1]);
    struct reading reason = inner_of(reading, "reason", &none[2]), resource = inner_of(reading, "resource", &none[3]);
    record->actor = auth_take_text(&actor, "id");
    record->actor_role = auth_take_text(&actor, "role");
    record->actor_type = auth_take_text(&actor, "type");
    record->ip = auth_take_text(&context, "ip");
    record->request = auth_take_text(&context, "requestId");
    record->user_agent = auth_take_text(&context, "userAgent");
    record->code = auth_take_text(&reason, "code");
    record->reason = auth_take_text(&reason, "message");
    record->resource = auth_take_text(&resource, "id");
    record->resource_type = auth_take_text(&resource, "type");
    record->action = auth_take_text(reading, "action");
    record->id = auth_take_text(reading, "auditId");
    record->outcome = outcome_parse(auth_take_text(reading, "decision"));
    const struct json *details = auth_take(reading, "details", JSON_OBJECT);
    if (details) record->details = *details;
    record->engine_attempt = take_attempt(reading, "engineAttemptId");
    record->logical_attempt = take_attempt(reading, "logicalAttemptId");
    record->previous = auth_take_digest(reading, "previousHash");
    int64_t seq = json_integer(auth_take(reading, "seq", JSON_INT), 0);
    record->seq = seq > 0 ? (uint64_t)seq : 0;
    record->tenant = auth_take_text(reading, "tenantId");
    record->project = auth_take_text(reading, "projectId"); // of records that are about a place within the tenant
    record->environment = auth_take_text(reading, "environmentId");
    record->at_ms = auth_take_time(reading, "timestamp");
    reading->fits = reading->fits && auth_reading_done(&actor) && auth_reading_done(&context) &&
                    auth_reading_done(&reason) && auth_reading_done(&resource) && record->outcome && record->seq;
}

enum code audit_decode(struct str bytes, struct arena *arena, struct audit_record *out, struct error *err)
{
    struct json object;
    struct audit_record record = {0};
    enum code rc = json_parse(bytes, NULL, arena, &object, NULL);
    if (rc == E_NOMEM) return error_nomem(err);
    if (rc) return error_set(err, E_CORRUPT, "an audit record is not JSON");
    struct reading reading = auth_reading_of(&object, arena);
    if (reading.fits) take_record(&reading, &record);
    if (!auth_reading_done(&reading)) return error_set(err, E_CORRUPT, "an audit record is not in its form");
    *out = record;
    return OK;
}

void audit_head_key(struct str tenant, struct buf *out)
{
    buf_printf(out, "t/%.*s", STR_ARG(tenant)); // a key is never empty, a tenant may be
}

bool audit_head_encode(const struct audit_head *head, struct arena *arena, struct buf *out)
{
    struct json end = JSON_OF(arena, {"hash", json_digest(arena, &head->hash)}, {"seq", json_count(head->seq)});
    json_canon(out, &end);
    return buf_ok(out);
}

enum code audit_head_decode(struct str bytes, struct arena *arena, struct audit_head *out, struct error *err)
{
    struct json object;
    enum code rc = json_parse(bytes, NULL, arena, &object, NULL);
    if (rc == E_NOMEM) return error_nomem(err);
    int64_t seq = rc ? 0 : json_integer(json_key(&object, "seq"), 0);
    *out = (struct audit_head){.seq = seq > 0 ? (uint64_t)seq : 0};
    if (rc || !out->seq || !digest_parse(json_text(json_key(&object, "hash")), &out->hash))
        return error_set(err, E_CORRUPT, "the end of an audit is not in its form");
    return OK;
}

// Is the record with this number somewhere behind? Then they were put in another order; else it is gone.
static enum code later(const struct str *records, size_t count, uint64_t seq, struct arena *arena, bool *out)
{
    *out = false;
    for (size_t i = 0; i < count && !*out; i++) {
        struct audit_record record;
        enum code rc = audit_decode(records[i], arena, &record, NULL);
        if (rc == E_NOMEM) return rc;
        *out = !rc && record.seq == seq;
    }
    return OK;
}

static enum code follow(const struct str *records, size_t count, struct arena *arena, struct audit_verdict *verdict)
{
    struct audit_record record;
    bool behind = false;
    enum code rc = audit_decode(records[verdict->at], arena, &record, NULL);
    if (rc == E_NOMEM) return rc;
    if (rc) {
        verdict->fault = AUDIT_MALFORMED;
    } else if (record.seq > verdict->seq) {
        rc = later(records + verdict->at, count - verdict->at, verdict->seq, arena, &behind);
        verdict->fault = behind ? AUDIT_ORDER : AUDIT_MISSING;
    } else if (record.seq < verdict->seq) {
        verdict->fault = AUDIT_ORDER;
    } else if (!digest_eq(&record.previous, &verdict->head.hash)) {
        verdict->fault = AUDIT_CHANGED;
    } else {
        verdict->head = (struct audit_head){record.seq, sha256(records[verdict->at])};
    }
    return rc == E_NOMEM ? rc : OK;
}

enum code audit_verify(const struct str *records, size_t count, const struct audit_head *from,
                       const struct audit_head *to, struct arena *arena, struct audit_verdict *out, struct error *err)
{
    struct audit_verdict verdict = {.head = *from, .seq = from->seq + 1};
    while (!verdict.fault && verdict.at < count) {
        if (follow(records, count, arena, &verdict)) return error_nomem(err);
        if (verdict.fault) break;
        verdict.at++;
        verdict.seq++;
    }
    if (!verdict.fault && to) {
        if (verdict.head.seq < to->seq)
            verdict.fault = AUDIT_MISSING;
        else if (verdict.head.seq > to->seq || !digest_eq(&verdict.head.hash, &to->hash))
            verdict.fault = AUDIT_CHANGED;
    }
    *out = verdict;
    return OK;
}
