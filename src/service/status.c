// RunStatusSnapshot (WE-2.1.2) and who may see it.
#include "service/inside.h"

#include "base/civil.h"

#include <stdio.h>

static bool put(struct arena *arena, struct json *object, const char *key, struct str text)
{
    return text.len == 0 || json_put(arena, object, str_from(key), json_string(text));
}

bool json_time(struct arena *arena, struct json *object, const char *key, int64_t ms)
{
    char text[CIVIL_SIZE];
    if (ms == 0) return true;
    civil_format(ms, text);
    struct str copy = arena_copy(arena, str_from(text));
    return copy.ptr && json_put(arena, object, str_from(key), json_string(copy));
}

// A word of ours that the contract does not have says whose it is (WE-2.1.2h).
static struct str told_substatus(const struct run_summary *summary, struct arena *arena)
{
    static const char *const canonical[] = {"",          "DRAINING", "RETRYING", "CONTINUE_AS_NEW", "WAITING_APPROVAL",
                                            "RECOVERING"};
    struct str word = str_from(summary->substatus);
    for (size_t i = 0; i < ARRAY_COUNT(canonical); i++)
        if (str_is(word, canonical[i])) return arena_copy(arena, word);
    char text[sizeof("cairn/") + sizeof(summary->substatus)];
    snprintf(text, sizeof(text), "cairn/%.*s", STR_ARG(word));
    return arena_copy(arena, str_from(text));
}

static struct str message_of(const struct run_summary *summary, struct arena *arena)
{
    char text[64];
    if (str_is(str_from(summary->substatus), "DRAINING")) {
        struct buf buf;
        buf_init(&buf, sizeof(text));
        buf_printf(&buf, "waiting for %u step%s in flight", summary->running, summary->running == 1 ? "" : "s");
        struct str copy = arena_copy(arena, buf_str(&buf));
        buf_release(&buf);
        return copy;
    }
    bool waits = summary->status == RUN_STATUS_PENDING || summary->status == RUN_STATUS_APPROVED;
    if (waits && str_is(str_from(summary->substatus), "WAITING_APPROVAL"))
        return STR("waiting for the approval of its start");
    if (waits && !summary->substatus[0]) return STR("in the queue");
    if (summary_goes_on(summary)) return STR("a step waits for its next attempt");
    if (!summary->cause[0] && str_is(str_from(summary->substatus), "WAITING_APPROVAL"))
        return STR("waiting for an approval");
    return arena_copy(arena, str_from(summary->cause));
}

bool status_json(const struct run_ids *ids, const struct run_summary *summary, uint64_t seq, struct arena *arena,
                 struct json *out)
{
    struct str run = arena_copy(arena, ids->run), substatus = told_substatus(summary, arena);
    struct str reference = contract_run_ref(ids, arena), message = message_of(summary, arena);
    return run.ptr && substatus.ptr && reference.ptr && message.ptr && json_object_with(arena, 9, out) &&
           put(arena, out, "runId", run) && put(arena, out, "status", str_from(run_status_name(summary->status))) &&
           put(arena, out, "substatus", substatus) && put(arena, out, "message", message) &&
           json_time(arena, out, "startedAt", summary->started_ms) &&
           json_time(arena, out, "completedAt", summary->ended_ms) && put(arena, out, "engineRunRef", reference) &&
           (seq == 0 || json_put(arena, out, STR("lastEventSeq"), json_int((int64_t)seq)));
}

bool service_recovers(const struct run_head *head)
{
    bool moves = !head->summary.substatus[0] || summary_goes_on(&head->summary); // and does not wait for a person
    return head->summary.status == RUN_STATUS_RUNNING && !head->owned && moves;
}

bool service_status(const struct run_head *head, struct arena *arena, struct json *out)
{
    struct run_summary summary = head->summary;
    if (service_recovers(head)) {
        snprintf(summary.substatus, sizeof(summary.substatus), "RECOVERING");
        snprintf(summary.cause, sizeof(summary.cause), "the process that had it is gone; it waits to be taken up");
    }
    return status_json(&head->ids, &summary, head->last_seq, arena, out);
}
