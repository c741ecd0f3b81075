// JSON whose failures are seen once, at the end, and the pieces that several answers share.
#include "explain/inside.h"

#include <string.h>

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

struct json json_short(struct maker *m, struct str text, size_t max)
{
    struct str shown = shorten(m->arena, text, max);
    return shown.ptr ? json_some(shown) : json_failed();
}

struct str kept(struct maker *m, struct buf *buf)
{
    struct str copy = buf_keep(buf, m->arena);
    m->failed = m->failed || !copy.ptr;
    return copy.ptr ? copy : (struct str){"", 0};
}

void message_told(struct buf *out, struct str message)
{
    message = str_trim(message);
    size_t end = str_find(message, '\n', 0);
    struct str shown = str_head(message, end < TEXT_SHORT ? end : TEXT_SHORT);
    part_told(out, PART_SAID, shown);
    buf_text(out, shown.len < message.len ? "..." : "");
}

void fault_told(struct buf *out, const struct fault *fault)
{
    if (fault->code.len > 0)
        part_told(out, PART_CODE, fault->code);
    else
        buf_text(out, "an error without a code");
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

struct json fault_json(struct maker *m, const struct fault *fault)
{
    return JSON_OF(m->arena, {"code", json_some(fault->code)}, {"message", json_short(m, fault->message, TEXT_LONG)},
                   {"category", json_some(fault->category)}, {"retryable", json_bool(fault->retryable)},
                   {"exitCode", json_when(fault->has_exit, json_int(fault->exit_code))},
                   {"detail", json_some(tail_of(fault->detail, TEXT_TAIL))});
}

struct json signal_json(struct maker *m, const struct signal_finding *signal)
{
    return JSON_OF(m->arena, {"type", json_some(signal->type)}, {"step", json_some(signal->step)},
                   {"decision", json_word(signal->accepted ? "ACCEPTED" : "REJECTED")},
                   {"by", json_some(signal->actor)}, {"role", json_some(signal->role)},
                   {"reason", json_short(m, signal->reason, TEXT_LONG)}, {"at", json_time_some(m->arena, signal->at_ms)},
                   AT(signal->at), {"errorCode", json_some(signal->error_code)},
                   {"errorMessage", json_some(signal->error_message)}, {"decisionId", json_some(signal->decision_id)},
                   {"signalId", json_some(signal->id)});
}

void put_pause(struct maker *m, struct json *object)
{
    const struct explain *e = m->e;
    if (e->run->status != RUN_STATUS_PAUSED) return;
    const struct signal_finding *signal = signal_find(e, e->pause_signal);
    JSON_ADD(m->arena, object, {"pause", JSON_OF(m->arena, {"cycle", json_int(e->run->pause_cycle)},
                                                 {"since", json_time_some(m->arena, e->pause_ms)}, AT(e->pause),
                                                 {"by", signal ? json_some(signal->actor) : json_none()},
                                                 {"reason", json_short(m, e->pause_reason, TEXT_LONG)},
                                                 {"inFlight", json_int(e->run->in_flight)})});
}

void put_proof(struct maker *m, struct json *out, uint32_t checked, uint32_t reproduced, struct str doubt)
{
    JSON_ADD(m->arena, out, {"reproduced", json_bool(checked == reproduced)},
             {"decisions", JSON_OF(m->arena, {"checked", json_int(checked)}, {"reproduced", json_int(reproduced)},
                                   {"doubt", json_some(doubt)})});
}

void next_command(struct maker *m, struct json *list, const char *verb, struct str step, const char *more)
{
    const char *quote = str_find(step, '[', 0) < step.len ? "'" : ""; // shells take loop[2] for a pattern
    struct str line = arena_format(m->arena, "%s %s%.*s%s%.*s%s%s", verb, quote, STR_ARG(m->e->run->ids.run),
                                   step.len ? "/" : "", STR_ARG(step), quote, more);
    json_append(m->arena, list, json_text_made(line));
}

void next_why(struct maker *m, struct json *list, struct str run)
{
    json_append(m->arena, list, json_text_made(arena_format(m->arena, "why %.*s", STR_ARG(run))));
}
