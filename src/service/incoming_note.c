// Events from outside as notes: read and written, by any thread.
#include "service/incoming.h"

#include "base/civil.h"

struct str incoming_slot(struct arena *arena, struct str project, struct str environment, struct str id)
{
    if (str_is(project, "default") && str_is(environment, "default")) return id;
    char hex[SHA256_HEX + 1];
    struct str place = arena_format(arena, "%.*s/%.*s", STR_ARG(project), STR_ARG(environment));
    if (!place.ptr) return place;
    struct digest digest = sha256(place);
    digest_hex(&digest, hex);
    return arena_format(arena, "%.32s/%.*s", hex, STR_ARG(id)); // whole, the names would be longer than a key may be
}

struct str incoming_key(struct arena *arena, struct str tenant, struct str slot)
{
    return arena_format(arena, "%.*s|%.*s", STR_ARG(tenant), STR_ARG(slot));
}

// Names have no '|', but what a correlation has nobody knows: the key holds its hash.
struct str incoming_prefix(struct arena *arena, const struct incoming_event *event)
{
    struct buf text SCOPED(buf_release) = buf_of(4096);
    const struct str parts[] = {event->project, event->environment, event->name, event->correlation};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        buf_add(&text, parts[i]);
        buf_byte(&text, '\0');
    }
    if (!buf_ok(&text)) return (struct str){0};
    char hex[SHA256_HEX + 1];
    struct digest digest = sha256(buf_str(&text));
    digest_hex(&digest, hex);
    return arena_format(arena, "%.*s|%.32s|", STR_ARG(event->tenant), hex);
}

struct str incoming_open_key(struct arena *arena, const struct incoming_event *event)
{
    struct str prefix = incoming_prefix(arena, event);
    if (!prefix.ptr) return prefix;
    return arena_format(arena, "%.*s%015lld|%.*s", STR_ARG(prefix), (long long)event->received_ms, STR_ARG(event->slot));
}

struct json incoming_json(struct arena *arena, const struct incoming_event *event)
{
    return JSON_OF(arena, {"id", json_string(event->id)}, {"name", json_string(event->name)},
                   {"correlation", json_some(event->correlation)}, {"data", event->data},
                   {"source", json_some(event->source)}, {"projectId", json_string(event->project)},
                   {"environmentId", json_string(event->environment)}, {"state", json_string(event->state)},
                   {"runId", json_some(event->run)}, {"stepId", json_some(event->step)},
                   {"tries", json_nonzero(event->tries)}, {"receivedAt", json_time(arena, event->received_ms)},
                   {"changedAt", json_time(arena, event->changed_ms)}, {"receivedBy", json_some(event->by)});
}

static int64_t time_of(const struct json *value, const char *name)
{
    int64_t ms = 0;
    return civil_parse(json_text(json_key(value, name)), &ms) ? ms : 0;
}

enum code incoming_read(const struct note *note, struct arena *arena, struct incoming_event *out, struct error *err)
{
    struct str key = arena_copy(arena, note->key), text = arena_copy(arena, note->value), slot;
    struct json value;
    if (!key.ptr || !text.ptr) return error_nomem(err);
    *out = (struct incoming_event){.tenant = str_cut(key, '|', &slot), .slot = slot};
    size_t id = slot.len;
    while (id > 0 && slot.ptr[id - 1] != '/') id--;
    out->id = str_slice(slot, id, slot.len);
    enum code rc = json_parse(text, &json_limits_record, arena, &value, err);
    if (rc) return rc;
    const struct json *data = json_key(&value, "data");
    if (data) out->data = *data;
    out->project = json_text(json_key(&value, "projectId"));
    out->environment = json_text(json_key(&value, "environmentId"));
    out->name = json_text(json_key(&value, "name"));
    out->correlation = json_text(json_key(&value, "correlation"));
    out->source = json_text(json_key(&value, "source"));
    out->by = json_text(json_key(&value, "receivedBy"));
    out->state = json_text(json_key(&value, "state"));
    out->run = json_text(json_key(&value, "runId"));
    out->step = json_text(json_key(&value, "stepId"));
    out->tries = (uint32_t)json_integer(json_key(&value, "tries"), 0);
    out->received_ms = time_of(&value, "receivedAt");
    out->changed_ms = time_of(&value, "changedAt");
    return out->name.len && out->state.len ? OK : error_set(err, E_CORRUPT, "note of an event %.*s", STR_ARG(slot));
}

struct note_put incoming_note(struct arena *arena, const struct incoming_event *event, uint64_t expect)
{
    struct json value = incoming_json(arena, event);
    struct note_put put = {.space = INCOMING_SPACE, .key = incoming_key(arena, event->tenant, event->slot), .expect = expect};
    if (json_ok(&value) && put.key.ptr) put.value = json_canon_kept(arena, &value, NOTE_VALUE_MAX);
    return put;
}
