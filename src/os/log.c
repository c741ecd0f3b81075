// One line, one write(2): lines of several threads and processes do not mix. Control characters and quotes are escaped and
// lines are cut at 4 KiB, so nothing that a document or a tool says can look like another line or another field (P3).
//
// Where a field begins is read off the format, never off what was put into it: the text before each " key=" of the format is
// formatted once more for its length.
#include "os/os.h"

#include "base/civil.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_SIZE 4096
#define LINE_END 40 // room for what closes a line
#define FIELDS_MAX 16
#define FORMAT_MAX 512

static atomic_int level_max = LOG_INFO;
static atomic_int shape = LOG_TEXT;

static _Thread_local struct os_log_route route;

struct log_text {
    char text[LINE_SIZE];
    size_t len;
    bool cut;
};

struct field {
    struct str key;  // in the format
    size_t from, to; // of its value, in the formatted text
};

// What was logged, taken apart: `words` are the first bytes of the text, the fields follow.
struct entry {
    char text[LINE_SIZE];
    size_t len, words;
    struct field fields[FIELDS_MAX];
    size_t count;
    bool cut;
};

// ---- escaping

static void add_text(struct log_text *line, const char *text)
{
    size_t len = strlen(text);
    if (len > LINE_SIZE - 1 - line->len) len = LINE_SIZE - 1 - line->len;
    memcpy(line->text + line->len, text, len);
    line->len += len;
}

// Length of the UTF-8 character at `text` that may stand as it is; 0: the byte must be escaped. The control characters
// behind 0x7F count: a terminal may obey them.
static size_t plain(const char *text, size_t len)
{
    const unsigned char *c = (const unsigned char *)text;
    if (c[0] < 0x80) return c[0] >= 0x20 && c[0] != 0x7F ? 1 : 0;
    size_t size = c[0] >= 0xC2 && c[0] < 0xE0   ? 2
                  : c[0] >= 0xE0 && c[0] < 0xF0 ? 3
                  : c[0] >= 0xF0 && c[0] < 0xF5 ? 4
                                                : 0;
    if (size == 0 || size > len) return 0;
    for (size_t i = 1; i < size; i++) {
        if ((c[i] & 0xC0) != 0x80) return 0;
    }
    bool control = c[0] == 0xC2 && c[1] < 0xA0;
    bool overlong = (c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xF0 && c[1] < 0x90);
    bool surrogate = c[0] == 0xED && c[1] >= 0xA0, beyond = c[0] == 0xF4 && c[1] >= 0x90;
    return control || overlong || surrogate || beyond ? 0 : size;
}

static void add_escaped(struct log_text *line, const char *text, size_t len, bool json)
{
    for (size_t i = 0; i < len;) {
        char escape[16] = "";
        size_t size = plain(text + i, len - i);
        unsigned char c = (unsigned char)text[i];
        if (line->len + LINE_END + 8 > LINE_SIZE) {
            line->cut = true;
            return;
        }
        if (size == 0 && json)
            snprintf(escape, sizeof(escape), "\\u%04x", c < 0x80 ? c : 0xFFFDu);
        else if (size == 0)
            snprintf(escape, sizeof(escape), "\\x%02x", c);
        else if (c == '"' || c == '\\')
            snprintf(escape, sizeof(escape), "\\%c", c);
        if (escape[0]) {
            add_text(line, escape);
        } else {
            memcpy(line->text + line->len, text + i, size);
            line->len += size;
        }
        i += size ? size : 1;
    }
}

static void add_quoted(struct log_text *line, struct str text, bool json)
{
    add_text(line, "\"");
    add_escaped(line, text.ptr, text.len, json);
    add_text(line, "\"");
}

// ---- taking apart

// The next " key=" of the format at or behind `at`; NULL when there is none.
static const char *next_field(const char *at, struct str *key)
{
    for (at = strchr(at, ' '); at; at = strchr(at + 1, ' ')) {
        const char *end = at + 1;
        while (islower((unsigned char)*end) || *end == '_') end++;
        if (end == at + 1 || *end != '=') continue;
        *key = (struct str){at + 1, (size_t)(end - at - 1)};
        return at;
    }
    return NULL;
}

// How long the formatted text is up to `end` of the format.
static size_t length_until(const char *format, const char *end, va_list arguments)
{
    char part[FORMAT_MAX];
    va_list copy;
    size_t len = (size_t)(end - format);
    if (len >= sizeof(part)) return SIZE_MAX;
    memcpy(part, format, len);
    part[len] = '\0';
    va_copy(copy, arguments);
    int written = vsnprintf(NULL, 0, part, copy);
    va_end(copy);
    return written < 0 ? SIZE_MAX : (size_t)written;
}

static void find_fields(struct entry *entry, const char *format, va_list arguments)
{
    struct str key;
    entry->words = entry->len;
    for (const char *at = next_field(format, &key); at && entry->count < FIELDS_MAX; at = next_field(at + 1, &key)) {
        size_t begin = length_until(format, at, arguments);
        if (begin >= entry->len) { // behind the cut
            entry->cut = true;
            return;
        }
        if (entry->count > 0)
            entry->fields[entry->count - 1].to = begin;
        else
            entry->words = begin;
        size_t from = begin + 1 + key.len + 1;
        if (from > entry->len) from = entry->len;
        entry->fields[entry->count++] = (struct field){key, from, entry->len};
    }
}

// Without the quotes that the format put around it.
static struct str value_of(const struct entry *entry, const struct field *field)
{
    struct str value = {entry->text + field->from, field->to - field->from};
    if (value.len == 0 || field->key.ptr[field->key.len + 1] != '"') return value;
    bool closed = value.len > 1 && value.ptr[value.len - 1] == '"'; // else it was cut
    return str_slice(value, 1, value.len - (closed ? 1 : 0));
}

// ---- writing

static const char *level_name(enum log_level level)
{
    static const char *const names[] = {"error", "error", "warn", "info", "debug"};
    return (size_t)level < ARRAY_COUNT(names) ? names[level] : "error";
}

static bool needs_quotes(const struct entry *entry, const struct field *field)
{
    struct str value = {entry->text + field->from, field->to - field->from};
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c >= 0x7F) return true;
    }
    return false;
}

static void write_text(struct log_text *line, const struct entry *entry)
{
    add_text(line, "msg=");
    add_quoted(line, (struct str){entry->text, entry->words}, false);
    for (size_t i = 0; i < entry->count && !line->cut; i++) {
        const struct field *field = &entry->fields[i];
        struct str value = value_of(entry, field);
        add_text(line, " ");
        add_escaped(line, field->key.ptr, field->key.len, false);
        add_text(line, "=");
        if (needs_quotes(entry, field))
            add_quoted(line, value, false);
        else
            add_escaped(line, value.ptr, value.len, false);
    }
    if (line->cut || entry->cut) add_text(line, " truncated=true");
}

static void add_member(struct log_text *line, struct str key, struct str value)
{
    add_text(line, line->len > 1 ? "," : "");
    add_quoted(line, key, true);
    add_text(line, ":");
    add_quoted(line, value, true);
}

static void write_json(struct log_text *line, const struct entry *entry, enum log_level level)
{
    char time[CIVIL_SIZE];
    civil_format(os_now().wall_ms, time);
    add_text(line, "{");
    add_member(line, STR("time"), str_from(time));
    add_member(line, STR("level"), str_from(level_name(level)));
    add_member(line, STR("msg"), (struct str){entry->text, entry->words});
    for (size_t i = 0; i < entry->count && !line->cut; i++)
        add_member(line, entry->fields[i].key, value_of(entry, &entry->fields[i]));
    if (line->cut || entry->cut) add_text(line, ",\"truncated\":true");
    add_text(line, "}");
}

void os_log_level(enum log_level level)
{
    atomic_store(&level_max, (int)level);
}

void os_log_shape(enum log_shape other)
{
    atomic_store(&shape, (int)other);
}

bool os_log_is_json(void)
{
    return atomic_load(&shape) == LOG_JSON;
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
    struct entry entry = {.len = 0};
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int written = vsnprintf(entry.text, sizeof(entry.text), format, again);
    va_end(again);
    entry.cut = written >= (int)sizeof(entry.text);
    entry.len = written < 0 ? 0 : entry.cut ? sizeof(entry.text) - 1 : (size_t)written;
    if (written >= 0) find_fields(&entry, format, arguments);
    va_end(arguments);
    if (written < 0) return;

    struct log_text line = {.len = 0};
    if (route.fn) {
        write_text(&line, &entry);
        line.text[line.len] = '\0';
        route.fn(route.context, level, line.text);
        return;
    }
    if (atomic_load(&shape) == LOG_JSON) {
        write_json(&line, &entry, level);
    } else {
        add_text(&line, "level=");
        add_text(&line, level_name(level));
        add_text(&line, " ");
        write_text(&line, &entry);
    }
    line.text[line.len++] = '\n';
    // Diagnostics have nowhere to report their own failure.
    ssize_t ignored = write(STDERR_FILENO, line.text, line.len);
    (void)ignored;
}
