#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#undef error_set // the analyzer's
#undef error_at
#undef error_nomem

// A message cut at the end of its array must not end in half a character: it is shown as JSON.
static void trim_partial_utf8(char *text, size_t len)
{
    size_t back = 0;
    while (back < len && back < 3 && ((unsigned char)text[len - 1 - back] & 0xC0) == 0x80) back++;
    if (back == len) return;
    unsigned char lead = (unsigned char)text[len - 1 - back];
    size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (want > 1 && want > back + 1) text[len - 1 - back] = '\0';
}

static void format_message(char *out, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

static void format_message(char *out, size_t size, const char *format, va_list arguments)
{
    int written = vsnprintf(out, size, format, arguments);
    if (written < 0)
        out[0] = '\0';
    else if ((size_t)written >= size)
        trim_partial_utf8(out, size - 1);
}

static void set_error(struct error *err, enum code code, uint32_t line, uint32_t column, const char *format,
                      va_list arguments) __attribute__((format(printf, 5, 0)));

// The first one counts.
static void set_error(struct error *err, enum code code, uint32_t line, uint32_t column, const char *format,
                      va_list arguments)
{
    INVARIANT(code != OK);
    if (!err || err->code != OK) return;
    format_message(err->message, sizeof(err->message), format, arguments);
    err->code = code;
    err->line = line;
    err->column = column;
}

enum code error_set(struct error *err, enum code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(err, code, 0, 0, format, arguments);
    va_end(arguments);
    return code;
}

enum code error_at(struct error *err, enum code code, uint32_t line, uint32_t column, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(err, code, line, column, format, arguments);
    va_end(arguments);
    return code;
}

enum code error_nomem(struct error *err)
{
    return error_set(err, E_NOMEM, "%s", code_text(E_NOMEM));
}

void error_wrap(struct error *err, const char *format, ...)
{
    if (!err || err->code == OK) return;
    char inner[sizeof(err->message)];
    memcpy(inner, err->message, sizeof(inner));
    inner[sizeof(inner) - 1] = '\0';

    va_list arguments;
    va_start(arguments, format);
    format_message(err->message, sizeof(err->message), format, arguments);
    va_end(arguments);

    static const char separator[] = ": ";
    const char *parts[] = {separator, inner};
    size_t len = strlen(err->message);
    size_t room = sizeof(err->message) - 1;
    bool cut = false;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        size_t part = strlen(parts[i]);
        cut = cut || part > room - len;
        if (part > room - len) part = room - len;
        memcpy(err->message + len, parts[i], part);
        len += part;
    }
    err->message[len] = '\0';
    if (cut) trim_partial_utf8(err->message, len);
}

const char *code_name(enum code code)
{
    switch (code) {
    case OK:
        return "OK";
#define X(name, number, text)                                                                                          \
    case E_##name:                                                                                                     \
        return #name;
        CODE_LIST(X)
#undef X
    }
    return "UNKNOWN";
}

const char *code_text(enum code code)
{
    switch (code) {
    case OK:
        return "success";
#define X(name, number, text)                                                                                          \
    case E_##name:                                                                                                     \
        return text;
        CODE_LIST(X)
#undef X
    }
    return "unknown code";
}

static _Thread_local uint64_t ceilings;

uint64_t memory_ceilings(void)
{
    return ceilings;
}

void memory_ceiling_hit(void)
{
    ceilings++;
}
