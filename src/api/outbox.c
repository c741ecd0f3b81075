// Sinks, dead letters, alerts that a person has seen.
#include "api/inside.h"

bool handle_alert_ack(struct ask *ask)
{
    return service_acknowledge(ask->call, ask->params[0]);
}

bool handle_outbox_list(struct ask *ask)
{
    return service_sinks(ask->call);
}

// {"position": N}, {"runId": R, "seq": N}, or nothing but a reason: where it is (a sink that was switched off is on again).
bool handle_outbox_rewind(struct ask *ask)
{
    const struct json *position = json_key(&ask->body, "position"), *seq = json_key(&ask->body, "seq");
    struct bus_place place = {.here = !position && !seq,
                              .position = (uint64_t)json_integer(position, 0),
                              .tenant = ask->call->who.tenant,
                              .run = json_text(json_key(&ask->body, "runId")),
                              .seq = (uint64_t)json_integer(seq, 0)};
    if (seq && place.run.len == 0) return call_problem(ask->call, 400, "INVALID_REQUEST", "seq needs runId");
    return service_rewind(ask->call, ask->params[0], &place, json_text(json_key(&ask->body, "reason")));
}

bool handle_dlq_list(struct ask *ask)
{
    struct str sink, after;
    int64_t limit;
    return query_text(ask, "sink", &sink) && query_text(ask, "cursor", &after) &&
           query_number(ask, "limit", 1, PAGE_MAX, PAGE_DEFAULT, &limit) &&
           service_dead_letters(ask->call, sink, after, (size_t)limit);
}

bool handle_dlq_redrive(struct ask *ask)
{
    struct dead_letter_choice which = {.id = ask->params[0]};
    return service_dead_letters_act(ask->call, LETTERS_REDRIVE, &which, json_text(json_key(&ask->body, "reason")));
}

// Many at once: all of a sink, or those of a run.
bool handle_dlq_redrive_all(struct ask *ask)
{
    struct dead_letter_choice which = {.sink = json_text(json_key(&ask->body, "sink")),
                                       .run = json_text(json_key(&ask->body, "runId"))};
    return service_dead_letters_act(ask->call, LETTERS_REDRIVE, &which, json_text(json_key(&ask->body, "reason")));
}

bool handle_dlq_drop(struct ask *ask)
{
    struct dead_letter_choice which = {.id = ask->params[0]};
    struct str reason;
    return query_text(ask, "reason", &reason) && service_dead_letters_act(ask->call, LETTERS_DROP, &which, reason);
}
