// What those get to see who may know how a run went but not what it was about (the matrix: "redacted").
#include "api/inside.h"

// Names of members that hold what a step was given, gave, or wrote.
static bool is_hidden(struct str key)
{
    static const char *const hidden[] = {"inputs",  "input",     "value",  "result",    "results",  "output",
                                         "outputs", "arguments", "params", "detail",    "override", "stdout",
                                         "stderr",  "env",       "data",   "iterations"};
    for (size_t i = 0; i < ARRAY_COUNT(hidden); i++)
        if (str_is(key, hidden[i])) return true;
    return false;
}

void redact(struct json *value)
{
    for (uint32_t i = 0; value->type == JSON_OBJECT && i < value->count; i++) {
        struct json_member *member = &value->members[i];
        if (is_hidden(member->key))
            member->value = json_string(STR("(redacted)"));
        else
            redact(&member->value);
    }
    for (uint32_t i = 0; value->type == JSON_ARRAY && i < value->count; i++) redact(&value->items[i]);
}

// Of a payload only numbers, truth values and a few words are let through: what is not known to be harmless stays behind.
static void redact_payload(struct json *payload)
{
    static const char *const harmless[] = {"errorCode", "failedStepId", "signalType",
                                           "signalId",  "status",       "substatus"};
    uint32_t kept = 0;
    for (uint32_t i = 0; payload->type == JSON_OBJECT && i < payload->count; i++) {
        const struct json_member *member = &payload->members[i];
        bool keep = member->value.type == JSON_INT || member->value.type == JSON_BOOL;
        for (size_t k = 0; k < ARRAY_COUNT(harmless); k++) keep = keep || str_is(member->key, harmless[k]);
        if (keep) payload->members[kept++] = *member;
    }
    if (payload->type == JSON_OBJECT) payload->count = kept;
}

enum code redact_event(struct str *text, struct arena *arena, struct error *err)
{
    struct json event;
    struct buf out;
    enum code rc = json_parse(*text, NULL, arena, &event, err);
    if (rc) return rc;
    for (uint32_t i = 0; event.type == JSON_OBJECT && i < event.count; i++)
        if (str_is(event.members[i].key, "payload")) redact_payload(&event.members[i].value);
    redact(&event);
    buf_init(&out, RECORD_SIZE_MAX * 2);
    json_write(&out, &event);
    struct str copy = buf_keep(&out, arena);
    *text = copy;
    return copy.ptr ? OK : error_nomem(err);
}
