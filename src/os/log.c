// One line, one write(2): lines of several threads and processes do not mix. Control characters and quotes are escaped and
// lines are cut at 4 KiB, so nothing that a document or a tool says can look like another line (P3).
#include "os/os.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_SIZE 4096
#define EXIT_DISK 74 // EX_IOERR

static atomic_int level_max = LOG_INFO;

static _Thread_local struct os_log_route route;

struct line {
    char text[LINE_SIZE];
    size_t len;
};

static void add_text(struct line *line, const char *text)
{
    size_t len = strlen(text);
    if (len > LINE_SIZE - 1 - line->len) len = LINE_SIZE - 1 - line->len;
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

static void add_escaped(struct line *line, const char *text, size_t len, bool quoted)
{
    for (size_t i = 0; i < len && line->len + 8 < LINE_SIZE; i++) {
        unsigned char c = (unsigned char)text[i];
        char escape[8];
        if (c < 0x20 || c == 0x7F) {
            snprintf(escape, sizeof(escape), "\\x%02x", c);
            add_text(line, escape);
        } else {
            if (quoted && (c == '"' || c == '\\')) line->text[line->len++] = '\\';
            line->text[line->len++] = (char)c;
        }
    }
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_ERROR:
        return "error";
    case LOG_WARN:
        return "warn";
    case LOG_INFO:
        return "info";
    case LOG_DEBUG:
        return "debug";
    }
    return "error";
}

// The first " key=" of the format, with its '='; it divides the words from the fields. Empty when there are no fields.
static struct str first_field(const char *format)
{
    for (const char *at = strchr(format, ' '); at; at = strchr(at + 1, ' ')) {
        const char *end = at + 1;
        while (islower((unsigned char)*end) || *end == '_') end++;
        if (end > at + 1 && *end == '=') return (struct str){at, (size_t)(end + 1 - at)};
    }
    return (struct str){"", 0};
}

void os_log_level(enum log_level level)
{
    atomic_store(&level_max, (int)level);
}

struct os_log_route os_log_through(struct os_log_route other)
{
    struct os_log_route before = route;
    route = other;
    return before;
}

void os_log(enum log_level level, const char *format, ...)
{
    if (!route.fn && (int)level > atomic_load(&level_max)) return;
    char text[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (written < 0) return;
    size_t len = (size_t)written < sizeof(text) ? (size_t)written : sizeof(text) - 1;
    struct str field = first_field(format);
    const char *rest = field.len > 0 ? memmem(text, len, field.ptr, field.len) : NULL;
    size_t words = rest ? (size_t)(rest - text) : len;

    struct line line = {.len = 0};
    if (!route.fn) {
        add_text(&line, "level=");
        add_text(&line, level_name(level));
        add_text(&line, " ");
    }
    add_text(&line, "msg=\"");
    add_escaped(&line, text, words, true);
    add_text(&line, "\"");
    add_escaped(&line, text + words, len - words, false);
    if (route.fn) {
        line.text[line.len] = '\0';
        route.fn(route.context, level, line.text);
        return;
    }
    line.text[line.len++] = '\n';
    // Diagnostics have nowhere to report their own failure.
    ssize_t ignored = write(STDERR_FILENO, line.text, line.len);
    (void)ignored;
}

static os_ending ending;

void os_die_with(os_ending other)
{
    ending = other;
}

void os_die_of_disk(const char *what)
{
    os_log(LOG_ERROR, "the disk failed; what was being stored may or may not be there what=%s", what);
    if (ending) ending(what);
    _exit(EXIT_DISK);
}
