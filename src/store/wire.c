#include "store/wire.h"

#include "json/make.h"

#include "store/backend.h"

#include <stdio.h>

// ---- heads

enum { FIELD_TEXT = 1, FIELD_NUMBER, FIELD_HASH };

struct head_field {
    const char *name;
    int kind;
    size_t offset;
};

// In canonical order. What is not a text, a 64-bit number or a hash is written by hand below.
static const struct head_field head_fields[] = {
    {"createdMs", FIELD_NUMBER, offsetof(struct run_head, summary.created_ms)},
    {"document", FIELD_HASH, offsetof(struct run_head, document)},
    {"endedMs", FIELD_NUMBER, offsetof(struct run_head, summary.ended_ms)},
    {"environmentId", FIELD_TEXT, offsetof(struct run_head, ids.environment)},
    {"head", FIELD_HASH, offsetof(struct run_head, head)},
    {"lastSeq", FIELD_NUMBER, offsetof(struct run_head, last_seq)},
    {"ledgerHead", FIELD_HASH, offsetof(struct run_head, ledger_head)},
    {"ledgerSeq", FIELD_NUMBER, offsetof(struct run_head, last_ledger_seq)},
    {"name", FIELD_TEXT, offsetof(struct run_head, name)},
    {"originalRunId", FIELD_TEXT, offsetof(struct run_head, original_run)},
    {"parentRunId", FIELD_TEXT, offsetof(struct run_head, parent_run)},
    {"planId", FIELD_TEXT, offsetof(struct run_head, ids.plan_id)},
    {"planVersion", FIELD_TEXT, offsetof(struct run_head, ids.plan_version)},
    {"projectId", FIELD_TEXT, offsetof(struct run_head, ids.project)},
    {"runId", FIELD_TEXT, offsetof(struct run_head, ids.run)},
    {"startedMs", FIELD_NUMBER, offsetof(struct run_head, summary.started_ms)},
    {"tenantId", FIELD_TEXT, offsetof(struct run_head, ids.tenant)},
    {"updatedMs", FIELD_NUMBER, offsetof(struct run_head, updated_ms)},
};

static struct json field_json(const struct head_field *field, const struct run_head *head, struct arena *arena)
{
    const void *at = (const char *)head + field->offset;
    if (field->kind == FIELD_HASH) return json_digest(arena, at);
    return field->kind == FIELD_TEXT ? json_string(*(const struct str *)at) : json_int(*(const int64_t *)at);
}

bool run_head_json(const struct run_head *head, struct arena *arena, struct json *out)
{
    const struct run_summary *summary = &head->summary;
    if (!json_object_with(arena, ARRAY_COUNT(head_fields) + 10, out)) return false;
    for (size_t i = 0; i < ARRAY_COUNT(head_fields); i++)
        json_set(arena, out, str_from(head_fields[i].name), field_json(&head_fields[i], head, arena));
    struct json steps =
        JSON_OF(arena, {"completed", json_int(summary->counts.completed)}, {"failed", json_int(summary->counts.failed)},
                {"running", json_int(summary->running)}, {"skipped", json_int(summary->counts.skipped)},
                {"total", json_int(summary->counts.total)});
    JSON_ADD(arena, out, {"cause", json_word(summary->cause)}, {"status", json_word(run_status_name(summary->status))},
             {"steps", steps}, {"substatus", json_word(summary->substatus)}, {"terminal", json_bool(head->terminal)},
             {"vocabulary", json_word(vocabulary_name(head->vocabulary))});
    return json_ok(out);
}

bool run_head_json_live(const struct run_head *head, struct arena *arena, struct json *out)
{
    if (!run_head_json(head, arena, out)) return false;
    JSON_ADD(arena, out, {"epoch", json_count(head->epoch)}, {"owned", json_bool(head->owned)},
             {"ownerPid", json_int(head->owner_pid)}, {"position", json_count(head->position)});
    return json_ok(out);
}

static bool take_field(const struct head_field *field, const struct json *line, struct run_head *out)
{
    const struct json *value = json_key(line, field->name);
    void *at = (char *)out + field->offset;
    if (field->kind == FIELD_HASH) return digest_parse(json_text(value), at);
    if (!json_is(value, field->kind == FIELD_TEXT ? JSON_STRING : JSON_INT)) return false;
    if (field->kind == FIELD_TEXT)
        *(struct str *)at = value->text;
    else
        *(int64_t *)at = value->integer;
    return true;
}

static void take_text(const struct json *value, char *out, size_t size)
{
    struct str text = json_text(value);
    snprintf(out, size, "%.*s", STR_ARG(text));
}

bool run_head_read(const struct json *line, struct run_head *out)
{
    *out = (struct run_head){0};
    for (size_t i = 0; i < ARRAY_COUNT(head_fields); i++)
        if (!take_field(&head_fields[i], line, out)) return false;
    const struct json *steps = json_key(line, "steps");
    struct run_summary *summary = &out->summary;
    summary->counts.completed = (uint32_t)json_integer(json_key(steps, "completed"), 0);
    summary->counts.failed = (uint32_t)json_integer(json_key(steps, "failed"), 0);
    summary->counts.skipped = (uint32_t)json_integer(json_key(steps, "skipped"), 0);
    summary->counts.total = (uint32_t)json_integer(json_key(steps, "total"), 0);
    summary->running = (uint32_t)json_integer(json_key(steps, "running"), 0);
    take_text(json_key(line, "cause"), summary->cause, sizeof(summary->cause));
    take_text(json_key(line, "substatus"), summary->substatus, sizeof(summary->substatus));
    summary->status = run_status_parse(json_text(json_key(line, "status")));
    summary_read(summary);
    out->vocabulary = vocabulary_parse(json_text(json_key(line, "vocabulary")));
    out->terminal = json_true(json_key(line, "terminal"));
    out->epoch = (uint64_t)json_integer(json_key(line, "epoch"), 0);
    out->owned = json_true(json_key(line, "owned"));
    out->owner_pid = json_integer(json_key(line, "ownerPid"), 0);
    out->position = (uint64_t)json_integer(json_key(line, "position"), 0);
    return summary->status && out->vocabulary && json_is(json_key(line, "terminal"), JSON_BOOL) && out->ids.run.len &&
           out->last_seq <= RUN_EVENTS_MAX && out->last_ledger_seq <= RUN_EVENTS_MAX;
}

// ---- records

static struct json columns_json(const struct record *record, struct arena *arena)
{
    const struct record_columns *columns = record->columns;
    if (!columns) return json_none();
    char hex[2 * SHA256_SIZE + 1] = "";
    size_t len = columns->key.len < SHA256_SIZE ? columns->key.len : SHA256_SIZE;
    for (size_t i = 0; i < len; i++) snprintf(hex + 2 * i, 3, "%02x", (unsigned char)columns->key.ptr[i]);
    size_t at = (size_t)(columns->payload.ptr - record->bytes.ptr); // a piece of the record
    return JSON_OF(arena, {"key", json_copied(arena, str_from(hex))}, {"payloadAt", json_count(at)},
                   {"payloadSize", json_count(columns->payload.len)}, {"runId", json_string(columns->run)},
                   {"timestamp", json_string(columns->timestamp)});
}

bool record_wire_write(struct buf *out, const struct record *record, struct arena *scratch)
{
    INVARIANT(record->bytes.ptr);
    bool hashed = record->ledger_seq || record->redacted;
    struct json line =
        JSON_OF(scratch, {"bytes", json_count(record->bytes.len)}, {"seq", json_count(record->seq)},
                {"type", json_string(record->type)}, {"ledgerSeq", json_nonzero((int64_t)record->ledger_seq)},
                {"signalId", json_some(record->signal_id)},
                {"hash", hashed ? json_digest(scratch, &record->hash) : json_none()},
                {"redacted", json_flag(record->redacted)}, {"columns", columns_json(record, scratch)});
    json_write(out, &line); // what could not be made fails the buf
    buf_byte(out, '\n');
    buf_add(out, record->bytes);
    buf_byte(out, '\n');
    return buf_ok(out);
}

bool records_wire_end(struct buf *out, bool more, struct arena *scratch)
{
    struct json line = JSON_OF(scratch, {"more", json_bool(more)});
    json_write(out, &line);
    return buf_ok(out);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static enum code take_columns(const struct json *value, struct arena *arena, struct record *out)
{
    struct record_columns *columns = ARENA_NEW(arena, struct record_columns);
    struct str hex = json_text(json_key(value, "key"));
    int64_t at = json_integer(json_key(value, "payloadAt"), -1),
            size = json_integer(json_key(value, "payloadSize"), -1);
    char *key = arena_alloc(arena, hex.len / 2 + 1);
    if (!columns || !key) return E_NOMEM;
    if (at < 0 || size < 0 || (uint64_t)at > out->bytes.len || (uint64_t)size > out->bytes.len - (uint64_t)at)
        return E_CORRUPT;
    for (size_t i = 0; i + 1 < hex.len; i += 2) {
        int high = hex_digit(hex.ptr[i]), low = hex_digit(hex.ptr[i + 1]);
        if (high < 0 || low < 0) return E_CORRUPT;
        key[i / 2] = (char)(high << 4 | low);
    }
    *columns = (struct record_columns){.run = json_text(json_key(value, "runId")),
                                       .timestamp = json_text(json_key(value, "timestamp")),
                                       .payload = str_slice(out->bytes, (size_t)at, (size_t)(at + size)),
                                       .key = {key, hex.len / 2}};
    out->columns = columns;
    return OK;
}

enum code record_wire_read(struct str *rest, struct arena *arena, struct record *out, bool *more)
{
    struct json line;
    struct error err = {0};
    struct str bytes;
    struct str head = str_cut(*rest, '\n', &bytes);
    enum code rc = json_parse(head, NULL, arena, &line, &err);
    if (rc) return rc == E_NOMEM ? rc : E_CORRUPT;
    *out = (struct record){0};
    if (json_is(json_key(&line, "more"), JSON_BOOL)) {
        *more = json_key(&line, "more")->boolean;
        *rest = bytes;
        return OK;
    }
    int64_t size = json_integer(json_key(&line, "bytes"), -1), seq = json_integer(json_key(&line, "seq"), -1);
    int64_t ledger_seq = json_integer(json_key(&line, "ledgerSeq"), 0);
    if (size < 0 || seq < 0 || ledger_seq < 0 || (uint64_t)size >= bytes.len || bytes.ptr[size] != '\n')
        return E_CORRUPT;
    *out = (struct record){.seq = (uint64_t)seq,
                           .ledger_seq = (uint64_t)ledger_seq,
                           .type = json_text(json_key(&line, "type")),
                           .signal_id = json_text(json_key(&line, "signalId")),
                           .bytes = str_slice(bytes, 0, (size_t)size),
                           .redacted = json_true(json_key(&line, "redacted"))};
    const struct json *hash = json_key(&line, "hash"), *columns = json_key(&line, "columns");
    if (hash && !digest_parse(json_text(hash), &out->hash)) return E_CORRUPT;
    *rest = str_slice(bytes, (size_t)size + 1, bytes.len);
    return columns ? take_columns(columns, arena, out) : OK;
}
