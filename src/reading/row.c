// A run as a row of a list.
#include "reading/reading.h"

#include "base/civil.h"

static struct json text_json(struct str text)
{
    return text.len ? json_string(text) : json_null();
}

static bool put(struct arena *arena, struct json *object, const char *key, struct json value)
{
    return json_put(arena, object, str_from(key), value);
}

static bool put_time(struct arena *arena, struct json *object, const char *key, int64_t ms)
{
    char text[CIVIL_SIZE];
    if (ms == 0) return put(arena, object, key, json_null());
    civil_format(ms, text);
    struct str copy = arena_copy(arena, str_from(text));
    return copy.ptr && put(arena, object, key, json_string(copy));
}

static bool put_progress(struct arena *arena, struct json *object, const struct run_counts *counts)
{
    struct buf text;
    buf_init(&text, 64);
    buf_printf(&text, "%u/%u", counts->completed + counts->failed + counts->skipped, counts->total);
    struct str copy = arena_copy(arena, buf_str(&text));
    buf_release(&text);
    return copy.ptr && put(arena, object, "progress", json_string(copy));
}

static bool put_summary(struct arena *arena, struct json *out, const struct run_summary *s, int64_t now_ms)
{
    int64_t until = s->ended_ms ? s->ended_ms : now_ms;
    int64_t took = s->started_ms && until >= s->started_ms ? until - s->started_ms : 0;
    return put_progress(arena, out, &s->counts) && put(arena, out, "completed", json_int(s->counts.completed)) &&
           put(arena, out, "failed", json_int(s->counts.failed)) &&
           put(arena, out, "skipped", json_int(s->counts.skipped)) &&
           put(arena, out, "total", json_int(s->counts.total)) && put(arena, out, "running", json_int(s->running)) &&
           put_time(arena, out, "createdAt", s->created_ms) && put_time(arena, out, "startedAt", s->started_ms) &&
           put_time(arena, out, "endedAt", s->ended_ms) &&
           put(arena, out, "durationMs", s->started_ms ? json_int(took) : json_null()) &&
           put(arena, out, "cause", text_json(str_from(s->cause)));
}

bool reading_row(const struct run_head *head, int64_t now_ms, struct arena *arena, struct json *out)
{
    const struct run_summary *s = &head->summary;
    return json_object_with(arena, 26, out) && put(arena, out, "runId", json_string(head->ids.run)) &&
           put(arena, out, "status", json_string(str_from(run_status_name(s->status)))) &&
           put(arena, out, "substatus", text_json(str_from(s->substatus))) &&
           put(arena, out, "planId", json_string(head->ids.plan_id)) &&
           put(arena, out, "planVersion", json_string(head->ids.plan_version)) &&
           put(arena, out, "name", text_json(head->name)) && put_summary(arena, out, s, now_ms) &&
           put(arena, out, "lastSeq", json_int((int64_t)head->last_seq)) &&
           put(arena, out, "tenantId", json_string(head->ids.tenant)) &&
           put(arena, out, "projectId", json_string(head->ids.project)) &&
           put(arena, out, "environmentId", json_string(head->ids.environment)) &&
           put(arena, out, "parentRunId", text_json(head->parent_run)) &&
           put(arena, out, "originalRunId", text_json(head->original_run)) &&
           put(arena, out, "ownerPid", head->owned ? json_int(head->owner_pid) : json_null());
}
