// The golden log: one line of JSON per moment, written without hashes, ids and dates, so that it changes when the behaviour
// does and not when a comment in the document does.
#include "trial/inside.h"

static bool is_named_by_signal(enum moment_kind kind)
{
    return kind == MOMENT_SIGNAL_ACCEPTED || kind == MOMENT_SIGNAL_REJECTED;
}

static struct json line_json(const struct story *story, const struct story_event *event)
{
    const struct moment *m = &event->moment;
    const struct story_run *run = &story->runs[event->run];
    int64_t from = story->runs[0].queued_ms;
    const char *word = moment_word(m->kind, run->vocabulary);
    bool failed = m->fault.code.len > 0, signal = is_named_by_signal(m->kind);
    bool counted = m->step.len && (m->logical > 1 || m->engine > 1);
    return JSON_OF(
        story->arena, {"at", json_int(m->at_ms - from)},
        {"run", run->prefix.len ? json_some(str_slice(run->prefix, 0, run->prefix.len - 1)) : json_none()},
        {event->seq ? "event" : "ledger", json_name(word ? word : moment_name(m->kind))}, {"step", json_some(m->step)},
        {"attempt", json_when(counted, json_int(m->logical))}, {"value", m->value},
        {"bytes", json_when(m->has_blob, json_count(m->blob_size))}, {"error", json_some(m->fault.code)},
        {"message", json_when(failed, json_some(m->fault.message))},
        {"exit", json_when(failed && m->fault.has_exit, json_int(m->fault.exit_code))},
        {"due", json_when(m->due_ms, json_int(m->due_ms - from))}, {"reason", json_some(m->reason)},
        {"detail", json_some(m->detail)}, {"signal", json_when(signal, json_some(m->signal_type))},
        {"target", json_when(signal, json_some(m->signal_step))}, {"actor", json_some(m->actor)},
        {"took", json_when(moment_is_terminal(m->kind), json_int(m->duration_ms))});
}

bool story_golden(const struct story *story, struct buf *out)
{
    for (size_t i = 0; i < story->event_count; i++) {
        struct json line = line_json(story, &story->events[i]);
        json_write(out, &line);
        buf_byte(out, '\n');
    }
    return buf_ok(out);
}
