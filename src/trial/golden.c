// The golden log: one line of JSON per moment, told without hashes, ids and dates, so that it changes when the behaviour
// does and not when a comment in the document does.
#include "trial/inside.h"

struct line {
    struct arena *arena;
    struct json object;
    bool ok;
};

static void put(struct line *line, const char *key, struct json value)
{
    line->ok = line->ok && json_put(line->arena, &line->object, str_from(key), value);
}

static void put_text(struct line *line, const char *key, struct str text)
{
    if (text.len) put(line, key, json_string(text));
}

static void put_fault(struct line *line, const struct fault *fault)
{
    if (fault->code.len == 0) return;
    put_text(line, "error", fault->code);
    put_text(line, "message", fault->message);
    if (fault->has_exit) put(line, "exit", json_int(fault->exit_code));
}

static bool is_named_by_signal(enum moment_kind kind)
{
    return kind == MOMENT_SIGNAL_ACCEPTED || kind == MOMENT_SIGNAL_REJECTED;
}

static void tell(struct line *line, const struct story *story, const struct story_event *event)
{
    const struct moment *m = &event->moment;
    const struct story_run *run = &story->runs[event->run];
    int64_t from = story->runs[0].queued_ms;
    const char *word = moment_word(m->kind, run->vocabulary);
    put(line, "at", json_int(m->at_ms - from));
    if (run->prefix.len) put_text(line, "run", str_slice(run->prefix, 0, run->prefix.len - 1));
    put_text(line, event->seq ? "event" : "ledger", str_from(word ? word : moment_name(m->kind)));
    put_text(line, "step", m->step);
    if (m->step.len && (m->logical > 1 || m->engine > 1)) put(line, "attempt", json_int(m->logical));
    if (m->value.type) put(line, "value", m->value);
    if (m->has_blob) put(line, "bytes", json_int((int64_t)m->blob_size));
    put_fault(line, &m->fault);
    if (m->due_ms) put(line, "due", json_int(m->due_ms - from));
    put_text(line, "reason", m->reason);
    put_text(line, "detail", m->detail);
    if (is_named_by_signal(m->kind)) {
        put_text(line, "signal", m->signal_type);
        put_text(line, "target", m->signal_step);
    }
    put_text(line, "actor", m->actor);
    if (moment_is_terminal(m->kind)) put(line, "took", json_int(m->duration_ms));
}

bool story_golden(const struct story *story, struct buf *out)
{
    for (size_t i = 0; i < story->event_count; i++) {
        struct line line = {.arena = story->arena, .object = json_object(), .ok = true};
        tell(&line, story, &story->events[i]);
        if (!line.ok) return false;
        json_write(out, &line.object);
        buf_byte(out, '\n');
    }
    return buf_ok(out);
}
