// Calls: their memory and their answers.
#include "service/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct call *call_new(struct service *service, size_t limit)
{
    struct call *call = calloc(1, sizeof(*call));
    if (!call) return NULL;
    call->service = service;
    arena_init(&call->arena, 4096, limit);
    return call;
}

void call_free(struct call *call)
{
    if (!call) return;
    if (call->program) program_release(call->program);
    arena_release(&call->arena);
    free(call);
}

static struct str format_text(struct call *call, const char *format, va_list args)
{
    char text[1024];
    int len = vsnprintf(text, sizeof(text), format, args);
    if (len < 0) return (struct str){0};
    if ((size_t)len >= sizeof(text)) len = sizeof(text) - 1;
    return arena_copy(&call->arena, (struct str){text, (size_t)len});
}

struct str call_text(struct call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct str text = format_text(call, format, args);
    va_end(args);
    return text;
}

bool call_problem(struct call *call, int status, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    call->answer.detail = format_text(call, format, args);
    va_end(args);
    call->answer.status = status;
    call->answer.code = code;
    call->done(call);
    return false;
}

bool call_answer(struct call *call, int status, struct json body)
{
    if (!json_ok(&body)) return call_nomem(call);
    call->answer.status = status;
    call->answer.body = body;
    call->done(call);
    return true;
}

// What a code of ours means to a caller far away. The text of E_IO may name files: it stays in our log.
static const struct {
    enum code code;
    int status;
    const char *name;
    bool retryable;
} meanings[] = {
    {E_NOMEM, 503, "OVERLOADED", true},
    {E_LIMIT, 413, "LIMIT_EXCEEDED", false},
    {E_INVALID, 400, "INVALID_REQUEST", false},
    {E_NOT_FOUND, 404, "RUN_NOT_FOUND", false},
    {E_EXISTS, 409, "RUN_ALREADY_EXISTS", false},
    {E_CONFLICT, 409, "CONFLICT", false},
    {E_LOCKED, 409, "RUN_OWNED_ELSEWHERE", true},
    {E_IO, 503, "STORE_FAILED", true},
    {E_FULL, 507, "STORE_FULL", true},
    {E_CORRUPT, 500, "LOG_CORRUPT", false},
    {E_VERSION, 500, "STORE_VERSION", false},
    {E_TIMEOUT, 504, "TIMEOUT", true},
    {E_CANCELLED, 503, "SHUTTING_DOWN", true},
    {E_DENIED, 403, "AUTHZ_DENIED", false},
    {E_SCHEMA, 400, "SCHEMA_VALIDATION_FAILED", false},
    {E_TERMINAL, 409, "RUN_TERMINAL", false},
    {E_UNSUPPORTED, 422, "UNSUPPORTED", false},
    {E_UNREACHABLE, 503, "UNREACHABLE", true},
    {E_AWAY, 503, "STORE_FAILED", true},
};

bool call_failed(struct call *call, const struct error *err)
{
    enum code code = err->code;
    // Nothing is wrong with what was asked: the runs of this engine go on elsewhere, and in a moment it is one of them again.
    if (code == E_CONFLICT && call->service->members.several && store_fenced(call->service->store)) code = E_LOCKED;
    bool ours = err->code == E_IO || err->code == E_CORRUPT || err->code == E_VERSION || err->code == E_NOMEM;
    if (ours) os_log(LOG_ERROR, "call failed request=%.*s why=\"%s\"", STR_ARG(call->request_id), err->message);
    for (size_t i = 0; i < ARRAY_COUNT(meanings); i++) {
        if (meanings[i].code != code) continue;
        call->answer.retryable = meanings[i].retryable;
        if (meanings[i].retryable) call->answer.retry_after_ms = 1000;
        call_problem(call, meanings[i].status, meanings[i].name, "%s", ours ? code_text(err->code) : err->message);
        return false;
    }
    call_problem(call, 500, "INTERNAL", "something went wrong");
    return false;
}

bool call_nomem(struct call *call)
{
    struct error err = {0};
    (void)error_nomem(&err);
    call_failed(call, &err);
    return false;
}

void *call_alloc(struct call *call, size_t size)
{
    void *made = arena_alloc(&call->arena, size);
    if (!made) call_nomem(call);
    return made;
}
