// What came out of a task, as it is delivered. Secrets that were used are masked in every text of it, and marks that came from
// outside are made harmless: an author who could bring one in could read any secret of the playbook.
#include "task/kind.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *word;
    bool retryable;
} errors[] = {[TASK_OK] = {"", false},
#define X(name, text, again) [TASK_##name] = {text, again},
              TASK_ERROR_LIST(X)
#undef X
};

const char *task_error_word(enum task_error error)
{
    return errors[error].word;
}

void call_done(struct task_call *call, struct json result)
{
    if (!json_ok(&result)) {
        call_no_memory(call);
        return;
    }
    call->out.error = TASK_OK;
    call->out.said = true;
    call->out.result = result;
}

bool call_fail(struct task_call *call, enum task_error error, const char *code, const char *format, ...)
{
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    struct task_outcome *out = &call->out;
    out->error = error;
    out->said = true;
    out->retryable = errors[error].retryable;
    struct str text = {message, used < 0 ? 0 : (size_t)used < sizeof(message) ? (size_t)used : sizeof(message) - 1};
    out->code = arena_copy(call->arena, str_from(code));
    out->message = arena_copy(call->arena, text);
    if (!out->code.ptr) out->code = STR("OUT_OF_MEMORY");
    if (!out->message.ptr) out->message = STR("out of memory");
    out->message = call_clean(call, out->message); // cut in the middle of a character, perhaps
    return false;
}

bool call_no_memory(struct task_call *call)
{
    call_fail(call, TASK_UNKNOWN, "OUT_OF_MEMORY", "no memory for what the task handles");
    call->out.retryable = true;
    return false;
}

// ---- masking

static bool ready_mask(struct task_call *call)
{
    if (!call->mask && call->secret_count) {
        call->mask = mask_new(call->secrets, call->secret_count, call->arena);
        return call->mask != NULL;
    }
    return true;
}

static struct str masked(struct task_call *call, struct str text)
{
    struct mask_stream stream;
    struct buf out = buf_of(SIZE_MAX / 4);
    mask_stream_init(&stream, call->mask);
    mask_feed(&stream, text, true, &out);
    mask_stream_release(&stream);
    return buf_keep(&out, call->arena);
}

struct str call_mask(struct task_call *call, struct str text)
{
    if (!ready_mask(call)) return (struct str){NULL, 0};
    return call->mask ? masked(call, text) : text;
}

// U+0001 becomes U+FFFD.
static struct str without_marks(struct task_call *call, struct str text)
{
    if (!text.len || !memchr(text.ptr, TASK_SECRET[0], text.len)) return text;
    struct buf out = buf_of(SIZE_MAX / 4);
    for (size_t from = 0; from < text.len;) {
        size_t to = str_find(text, TASK_SECRET[0], from);
        buf_add(&out, str_slice(text, from, to));
        if (to < text.len) buf_text(&out, "\xEF\xBF\xBD");
        from = to + 1;
    }
    return buf_keep(&out, call->arena);
}

static struct str safe_text(struct task_call *call, struct str text, bool marks)
{
    struct str safe = marks ? text : without_marks(call, text);
    if (!safe.ptr || !call->mask) return safe;
    return masked(call, safe);
}

// In place: the values are the task's own. False: no memory.
static bool make_safe(struct task_call *call, struct json *value, bool marks)
{
    bool good = true;
    switch ((enum json_type)value->type) {
    case JSON_STRING:
        value->text = safe_text(call, value->text, marks);
        return value->text.ptr;
    case JSON_INT:
    case JSON_NUMBER: {
        if (!call->mask) return true;
        struct str text = json_as_text(value, call->arena);
        struct str safe = text.ptr ? safe_text(call, text, false) : text;
        if (safe.ptr && !str_eq(safe, text)) *value = json_string(safe);
        return safe.ptr;
    }
    case JSON_ARRAY:
        for (uint32_t i = 0; good && i < value->count; i++) good = make_safe(call, &value->items[i], marks);
        return good;
    case JSON_OBJECT:
        for (uint32_t i = 0; good && i < value->count; i++) {
            struct json_member *member = &value->members[i];
            member->key = safe_text(call, member->key, marks);
            good = member->key.ptr && make_safe(call, &member->value, marks);
        }
        return good;
    case JSON_NULL:
    case JSON_BOOL:
        break;
    }
    return true;
}

// ---- writing

static struct json error_json(struct task_call *call)
{
    const struct task_outcome *outcome = &call->out;
    return JSON_OF(call->arena, {"kind", json_word(task_error_word(outcome->error))},
                   {"code", json_text_made(safe_text(call, outcome->code, false))},
                   {"message", json_text_made(safe_text(call, outcome->message, false))},
                   {"retryable", json_bool(outcome->retryable)});
}

bool outcome_write(struct task_call *call, int64_t duration_ms, struct buf *out)
{
    struct task_outcome *outcome = &call->out;
    int64_t attempt =
        json_integer(json_key(&call->input, "attempt"), 1); // of the task; the request counts those of the run
    struct json *parts[] = {&outcome->result, &outcome->http, &outcome->pg, &outcome->py};
    static const char *const names[] = {"result", "http", "pg", "py"};
    if (!ready_mask(call)) return false;
    if (!outcome->error && !outcome->result.type) outcome->result = json_null();
    struct json whole = JSON_OF(call->arena, {"status", json_word(outcome->error ? "error" : "ok")});
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (parts[i]->type && !make_safe(call, parts[i], i == 0 && outcome->marks)) return false;
        JSON_ADD(call->arena, &whole, {names[i], *parts[i]});
    }
    JSON_ADD(call->arena, &whole, {"error", outcome->error ? error_json(call) : json_none()},
             {"meta", JSON_OF(call->arena, {"attempt", json_int(attempt)}, {"duration_ms", json_int(duration_ms)})});
    if (!json_ok(&whole)) return false;
    json_write(out, &whole);
    return buf_ok(out);
}
