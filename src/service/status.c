// RunStatusSnapshot (WE-2.1.2) and who may see it.
#include "service/inside.h"

#include "contract/profile.h"
#include "reading/reading.h"
#include "temporal/host.h"

#include <stdio.h>

// A word of ours that the contract does not have says whose it is (WE-2.1.2h).
static struct str told_substatus(const struct run_summary *summary, enum provider provider, struct arena *arena)
{
    static const char *const canonical[] = {"",          "DRAINING", "RETRYING", "CONTINUE_AS_NEW", "WAITING_APPROVAL",
                                            "RECOVERING"};
    struct str word = str_from(summary->substatus);
    for (size_t i = 0; i < ARRAY_COUNT(canonical); i++)
        if (str_is(word, canonical[i])) return arena_copy(arena, word);
    return arena_format(arena, "%s/%.*s", provider_name(provider), STR_ARG(word));
}

static struct str message_of(const struct run_summary *summary, struct arena *arena)
{
    if (str_is(str_from(summary->substatus), "DRAINING"))
        return arena_format(arena, "waiting for %u step%s in flight", summary->running,
                            summary->running == 1 ? "" : "s");
    if (str_is(str_from(summary->substatus), "CONTINUE_AS_NEW"))
        return STR("a segment of its log is full: it goes on in the next");
    bool waits = summary->status == RUN_STATUS_PENDING || summary->status == RUN_STATUS_APPROVED;
    if (waits && str_is(str_from(summary->substatus), "WAITING_APPROVAL"))
        return STR("waiting for the approval of its start");
    if (waits && !summary->substatus[0]) return STR("in the queue");
    if (summary->goes_on && str_is(str_from(summary->substatus), "RETRYING"))
        return STR("a step waits for its next attempt");
    if (!summary->cause[0] && str_is(str_from(summary->substatus), "WAITING_APPROVAL"))
        return STR("waiting for an approval");
    return arena_copy(arena, str_from(summary->cause));
}

bool status_json(const struct run_ids *ids, const struct start_facts *start, const struct run_summary *summary,
                 uint64_t seq, struct arena *arena, struct json *out)
{
    const struct run_ref ref = run_ref_of(ids, start);
    struct str substatus = told_substatus(summary, ref.provider, arena);
    struct str reference = contract_run_ref(ids, start, arena), message = message_of(summary, arena);
    struct json object;
    bool written = run_ref_write(&ref, arena, &object) && json_copy(arena, &object, &object);
    if (!written || !substatus.ptr || !reference.ptr || !message.ptr) return false;
    *out = JSON_OF(arena, {"runId", json_copied_some(arena, ids->run)},
                   {"status", json_name(run_status_name(summary->status))}, {"substatus", json_some(substatus)},
                   {"message", json_some(message)}, {"startedAt", json_time_some(arena, summary->started_ms)},
                   {"completedAt", json_time_some(arena, summary->ended_ms)}, {"engineRunRef", json_some(reference)},
                   {"ref", object}, {"lastEventSeq", json_nonzero((int64_t)seq)});
    return json_ok(out);
}

bool service_recovers(const struct run_head *head)
{
    return str_is(str_from(head_standing(head).substatus), "RECOVERING");
}

bool service_status(struct service *service, struct store *store, const struct run_head *head, struct arena *arena, struct json *out)
{
    struct run_summary summary = head->summary;
    struct start_facts start;
    struct error err = {0};
    // Of a run whose log cannot be read the head is returned all the same.
    enum code rc = store ? reading_origin(store, head, arena, &start, &err) : E_NOT_FOUND;
    if (rc == E_NOMEM) return false;
    if (rc) start = (struct start_facts){0};
    if (service_recovers(head)) {
        snprintf(summary.substatus, sizeof(summary.substatus), "RECOVERING");
        snprintf(summary.cause, sizeof(summary.cause), "the process that had it is gone; it waits to be taken up");
    }
    if (service && !head->terminal && plans_waiting(service, &head->document, summary.cause, sizeof(summary.cause)))
        snprintf(summary.substatus, sizeof(summary.substatus), "RECOVERING");
    return status_json(&head->ids, &start, &summary, head->last_seq, arena, out);
}

bool service_is_strict(const struct service *service)
{
    return service->settings.adapters.strict;
}

bool service_carrier(const struct service *service, struct service_carrier *out)
{
    if (!service->host) return false;
    const struct temporal_settings *settings = temporal_host_settings(service->host);
    *out = (struct service_carrier){.provider = PROVIDER_TEMPORAL, .space = settings->namespace, .queue = settings->queue};
    return true;
}

enum provider service_usual(const struct service *service)
{
    return adapters_usual(&service->settings.adapters);
}
