// JSON whose failures are seen once, at the end, and the pieces that several answers share.
#include "explain/inside.h"

#include "base/civil.h"

#include <string.h>

void put_value(struct maker *m, struct json *object, const char *key, struct json value)
{
    m->failed = m->failed || !json_put(m->arena, object, str_from(key), value);
}

void push_value(struct maker *m, struct json *array, struct json value)
{
    m->failed = m->failed || !json_push(m->arena, array, value);
}

void put_text(struct maker *m, struct json *object, const char *key, struct str text)
{
    if (text.len > 0) put_value(m, object, key, json_string(text));
}

void put_word(struct maker *m, struct json *object, const char *key, const char *text)
{
    put_text(m, object, key, str_from(text));
}

void put_short(struct maker *m, struct json *object, const char *key, struct str text, size_t max)
{
    struct str shown = shorten(m->arena, text, max);
    m->failed = m->failed || !shown.ptr;
    put_text(m, object, key, shown);
}

void put_int(struct maker *m, struct json *object, const char *key, int64_t value)
{
    put_value(m, object, key, json_int(value));
}

void put_count(struct maker *m, struct json *object, const char *key, int64_t value)
{
    if (value != 0) put_int(m, object, key, value);
}

void put_place(struct maker *m, struct json *object, const char *prefix, struct place place)
{
    struct buf key;
    if (place.seq == 0 && !place.ledger) return;
    buf_init(&key, 64);
    buf_text(&key, prefix);
    buf_text(&key, place.ledger ? (prefix[0] ? "AfterSeq" : "afterSeq") : (prefix[0] ? "Seq" : "seq"));
    struct str name = kept(m, &key);
    if (name.len > 0) m->failed = m->failed || !json_put(m->arena, object, name, json_int((int64_t)place.seq));
}

void put_bool(struct maker *m, struct json *object, const char *key, bool value)
{
    put_value(m, object, key, json_bool(value));
}

void put_time(struct maker *m, struct json *object, const char *key, int64_t ms)
{
    char text[CIVIL_SIZE];
    if (ms == 0) return;
    civil_format(ms, text);
    struct str copy = arena_copy(m->arena, str_from(text));
    m->failed = m->failed || !copy.ptr;
    put_text(m, object, key, copy);
}

struct str shorten(struct arena *arena, struct str text, size_t max)
{
    if (!text.ptr || text.len == 0) return (struct str){"", 0};
    if (text.len <= max) return text;
    size_t end = 0;
    while (end < text.len) {
        size_t size = str_utf8_size(text, end);
        if (end + (size ? size : 1) > max - 3) break;
        end += size ? size : 1;
    }
    char *cut = arena_alloc(arena, end + 4);
    if (!cut) return (struct str){0};
    memcpy(cut, text.ptr, end);
    memcpy(cut + end, "...", 4);
    return (struct str){cut, end + 3};
}

struct str kept(struct maker *m, struct buf *buf)
{
    struct str copy = buf_ok(buf) ? arena_copy(m->arena, buf_str(buf)) : (struct str){0};
    m->failed = m->failed || !copy.ptr;
    buf_release(buf);
    return copy.ptr ? copy : (struct str){"", 0};
}

void message_told(struct buf *out, struct str message)
{
    message = str_trim(message);
    size_t end = str_find(message, '\n', 0);
    struct str shown = str_head(message, end < TEXT_SHORT ? end : TEXT_SHORT);
    buf_add(out, shown);
    buf_text(out, shown.len < message.len ? "..." : "");
}

void fault_told(struct buf *out, const struct fault *fault)
{
    buf_add(out, fault->code.len ? fault->code : STR("an error without a code"));
    if (fault->has_exit) buf_printf(out, " exit %d", fault->exit_code);
    if (fault->has_exit || fault->message.len == 0) return;
    buf_text(out, ": ");
    message_told(out, fault->message);
}

// The last bytes of a long text: what a step wrote last says most.
static struct str tail_of(struct str text, size_t max)
{
    text = str_trim(text);
    if (text.len <= max) return text;
    size_t from = text.len - max;
    while (from < text.len && ((unsigned char)text.ptr[from] & 0xC0) == 0x80) from++;
    return str_slice(text, from, text.len);
}

void put_fault(struct maker *m, struct json *object, const char *key, const struct fault *fault)
{
    struct json out = json_object();
    put_text(m, &out, "code", fault->code);
    put_short(m, &out, "message", fault->message, TEXT_LONG);
    put_text(m, &out, "category", fault->category);
    put_bool(m, &out, "retryable", fault->retryable);
    if (fault->has_exit) put_int(m, &out, "exitCode", fault->exit_code);
    put_text(m, &out, "detail", tail_of(fault->detail, TEXT_TAIL));
    put_value(m, object, key, out);
}

void put_signal(struct maker *m, struct json *array, const struct signal_note *signal)
{
    struct json out = json_object();
    put_text(m, &out, "type", signal->type);
    put_text(m, &out, "step", signal->step);
    put_word(m, &out, "decision", signal->accepted ? "ACCEPTED" : "REJECTED");
    put_text(m, &out, "by", signal->actor);
    put_text(m, &out, "role", signal->role);
    put_short(m, &out, "reason", signal->reason, TEXT_LONG);
    put_time(m, &out, "at", signal->at_ms);
    put_place(m, &out, "", signal->at);
    put_text(m, &out, "errorCode", signal->error_code);
    put_text(m, &out, "errorMessage", signal->error_message);
    put_text(m, &out, "decisionId", signal->decision_id);
    put_text(m, &out, "signalId", signal->id);
    push_value(m, array, out);
}

void put_pause(struct maker *m, struct json *object)
{
    const struct explain *e = m->e;
    if (e->run->status != RUN_STATUS_PAUSED) return;
    const struct signal_note *signal = signal_find(e, e->pause_signal);
    struct json out = json_object();
    put_int(m, &out, "cycle", e->run->pause_cycle);
    put_time(m, &out, "since", e->pause_ms);
    put_place(m, &out, "", e->pause);
    if (signal) put_text(m, &out, "by", signal->actor);
    put_short(m, &out, "reason", e->pause_reason, TEXT_LONG);
    put_int(m, &out, "inFlight", e->run->in_flight);
    put_value(m, object, "pause", out);
}

void put_at(struct maker *m, struct json *out)
{
    struct json at = json_object();
    put_int(m, &at, "seq", (int64_t)m->e->seq);
    put_time(m, &at, "time", m->e->at_ms);
    put_value(m, out, "at", at);
}

void put_proof(struct maker *m, struct json *out, uint32_t checked, uint32_t reproduced, struct str doubt)
{
    struct json proof = json_object();
    put_int(m, &proof, "checked", checked);
    put_int(m, &proof, "reproduced", reproduced);
    put_text(m, &proof, "doubt", doubt);
    put_bool(m, out, "reproduced", checked == reproduced);
    put_value(m, out, "decisions", proof);
}

void next_command(struct maker *m, struct json *list, const char *verb, struct str step, const char *more)
{
    struct buf line;
    buf_init(&line, 4096);
    const char *quote = str_find(step, '[', 0) < step.len ? "'" : ""; // shells take loop[2] for a pattern
    buf_printf(&line, "%s %s%.*s%s%.*s%s%s", verb, quote, STR_ARG(m->e->run->ids.run), step.len ? "/" : "",
               STR_ARG(step), quote, more);
    push_value(m, list, json_string(kept(m, &line)));
}

void next_why(struct maker *m, struct json *list, struct str run)
{
    struct buf line;
    buf_init(&line, 4096);
    buf_printf(&line, "why %.*s", STR_ARG(run));
    push_value(m, list, json_string(kept(m, &line)));
}
