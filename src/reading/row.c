// A run as a row of a list.
#include "reading/reading.h"

#include "json/make.h"

bool reading_row(const struct run_head *head, int64_t now_ms, struct arena *arena, struct json *out)
{
    const struct run_summary *s = &head->summary;
    const struct run_counts *n = &s->counts;
    int64_t until = s->ended_ms ? s->ended_ms : now_ms;
    int64_t took = s->started_ms && until >= s->started_ms ? until - s->started_ms : 0;
    struct str progress = arena_format(arena, "%u/%u", n->completed + n->failed + n->skipped, n->total);
    *out = JSON_OF(
        arena, {"runId", json_string(head->ids.run)}, {"status", json_word(run_status_name(s->status))},
        {"substatus", json_or_null(str_from(s->substatus))}, {"planId", json_string(head->ids.plan_id)},
        {"planVersion", json_string(head->ids.plan_version)}, {"name", json_or_null(head->name)},
        {"progress", json_text_made(progress)}, {"completed", json_int(n->completed)}, {"failed", json_int(n->failed)},
        {"skipped", json_int(n->skipped)}, {"total", json_int(n->total)}, {"running", json_int(s->running)},
        {"createdAt", json_time_or_null(arena, s->created_ms)}, {"startedAt", json_time_or_null(arena, s->started_ms)},
        {"endedAt", json_time_or_null(arena, s->ended_ms)},
        {"durationMs", s->started_ms ? json_int(took) : json_null()}, {"cause", json_or_null(str_from(s->cause))},
        {"lastSeq", json_count(head->last_seq)}, {"tenantId", json_string(head->ids.tenant)},
        {"projectId", json_string(head->ids.project)}, {"environmentId", json_string(head->ids.environment)},
        {"parentRunId", json_or_null(head->parent_run)}, {"originalRunId", json_or_null(head->original_run)},
        {"ownerPid", head->owned ? json_int(head->owner_pid) : json_null()});
    return json_ok(out);
}
