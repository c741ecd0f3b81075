// What a command says and prints.
#include "term/term.h"
#include "term/text.h"

#include "author/author.h"
#include "base/civil.h"
#include "os/os.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_MAX (64 * 1024)

void print_data(struct console *console, struct buf *text)
{
    if (console->out.tty) {
        struct buf safe SCOPED(buf_release) = buf_of(TEXT_MAX);
        text_safe_json(&safe, buf_str(text));
        console_print(console, &safe);
        buf_clear(text);
    } else {
        console_print(console, text);
    }
}

void print_json(struct console *console, enum format format, const struct json *value)
{
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (format == FORMAT_YAML) {
        yaml_write(&text, value);
    } else {
        if (format == FORMAT_JSON)
            json_write_pretty(&text, value);
        else
            json_write(&text, value);
        buf_byte(&text, '\n');
    }
    print_data(console, &text);
}

void time_text(struct buf *out, const struct console *console, int64_t ms)
{
    char text[CIVIL_SIZE];
    civil_format(ms, text);
    if (console->time == TIME_UNIX) {
        buf_printf(out, "%lld", (long long)(ms / 1000));
    } else if (console->time == TIME_ISO) {
        buf_text(out, text);
    } else if (console->now_ms - ms > 30 * 86400000LL || ms - console->now_ms > 30 * 86400000LL) {
        buf_printf(out, "%.10s %.8s", text, text + 11);
    } else {
        static const struct {
            int64_t seconds;
            const char *unit;
        } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
        int64_t seconds = (console->now_ms - ms) / 1000;
        bool future = seconds < 0;
        if (future) seconds = -seconds;
        size_t i = 0;
        while (i < ARRAY_COUNT(units) && seconds < units[i].seconds) i++;
        if (i == ARRAY_COUNT(units))
            buf_text(out, "just now");
        else
            buf_printf(out, "%s%lld%s%s", future ? "in " : "", (long long)(seconds / units[i].seconds), units[i].unit,
                       future ? "" : " ago");
    }
}

void console_print(struct console *console, struct buf *text)
{
    if (!console->out_closed && !os_write_all(STDOUT_FILENO, buf_str(text))) {
        console->out_closed = true;
        if (errno != EPIPE) { // a reader that has seen enough is no error
            console->out_failed = true;
            console_fail(console, EXIT_ERROR, "cannot write to stdout: %s", strerror(errno));
        }
    }
    buf_clear(text);
}

void console_talk(struct console *console, struct buf *text)
{
    (void)console;
    (void)!os_write_all(STDERR_FILENO, buf_str(text));
    buf_clear(text);
}

static void say(struct console *console, enum tone tone, const char *head, const char *format, va_list list)
    __attribute__((format(printf, 4, 0)));

static void say(struct console *console, enum tone tone, const char *head, const char *format, va_list list)
{
    char message[2048];
    struct buf line SCOPED(buf_release) = buf_of(MESSAGE_MAX);
    vsnprintf(message, sizeof(message), format, list);
    tone_text(&line, &console->err, tone, head);
    text_safe_lines(&line, str_from(message));
    buf_byte(&line, '\n');
    console_talk(console, &line);
}

int console_fail(struct console *console, enum exit_code code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(console, TONE_BAD, "error: ", format, list);
    va_end(list);
    console->failed = code;
    return (int)code;
}

static enum exit_code exit_from_code(enum code code)
{
    switch (code) {
    case OK:
        return EXIT_OK;
    case E_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case E_EXISTS:
    case E_CONFLICT:
    case E_LOCKED:
    case E_TERMINAL:
        return EXIT_CONFLICT;
    case E_CORRUPT:
        return EXIT_INTEGRITY;
    case E_TIMEOUT:
        return EXIT_TIMEOUT;
    case E_UNREACHABLE:
    case E_AWAY:
        return EXIT_UNREACHABLE;
    case E_CANCELLED:
        return EXIT_RUN_CANCELLED;
    case E_DENIED:
        return EXIT_DENIED;
    case E_UNSUPPORTED:
    case E_INVALID:
        return EXIT_USAGE;
    case E_NOMEM:
    case E_LIMIT:
    case E_IO:
    case E_FULL:
    case E_VERSION:
    case E_SCHEMA:
        return EXIT_ERROR;
    }
    return EXIT_ERROR;
}

int console_error(struct console *console, const struct error *err)
{
    return console_fail(console, exit_from_code(err->code), "%s", err->message);
}

int console_nomem(struct console *console)
{
    return console_fail(console, EXIT_ERROR, "out of memory");
}

int console_hint(struct console *console, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (!console->quiet) say(console, TONE_DIM, "  hint: ", format, list);
    va_end(list);
    return (int)console->failed;
}

static const char *command_line(struct console *console, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));

static const char *command_line(struct console *console, const char *format, va_list list)
{
    char words[2048];
    vsnprintf(words, sizeof(words), format, list);
    return console_format(console, "%s %s%s", console->self, words, console->tail);
}

const char *console_command(struct console *console, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *line = command_line(console, format, list);
    va_end(list);
    return line;
}

int console_next(struct console *console, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *line = command_line(console, format, list);
    va_end(list);
    if (!console->quiet) console_note(console, "  next: %s", line);
    return (int)console->failed;
}

void console_note(struct console *console, const char *format, ...)
{
    if (console->quiet) return;
    va_list list;
    va_start(list, format);
    say(console, TONE_NONE, "", format, list);
    va_end(list);
}

void console_warn(struct console *console, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(console, TONE_WARN, "warning: ", format, list);
    va_end(list);
}

const char *console_format(struct console *console, const char *format, ...)
{
    char text[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    struct str copy = arena_copy(&console->arena, str_from(text));
    return copy.ptr ? copy.ptr : "";
}
