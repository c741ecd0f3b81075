// Collecting diagnostics and writing them for people.
//
// Messages and source lines hold text that a stranger may have written: what could move the cursor or is not UTF-8 is
// shown as '?', long texts are cut, and a place far out on a long line is shown with its surroundings only.
#include "doc/doc.h"
#include "doc/diagnostic_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    COUNT_MAX = 200,
    MESSAGE_SIZE = 640,
    LINE_COLUMNS = 96,    // of a source line that are shown
    CONTEXT_COLUMNS = 32, // before the place, when the line is cut in front
    TAB_COLUMNS = 4,
};

static const struct diagnostic_info infos[] = {
#define X(id, title, explanation) {id, title, explanation},
    DIAGNOSTIC_LIST(X)
#undef X
};

const struct diagnostic_info *diagnostic_info(const char *id)
{
    for (size_t i = 0; i < ARRAY_COUNT(infos); i++)
        if (strcmp(infos[i].id, id) == 0) return &infos[i];
    return NULL;
}

const struct diagnostic_info *diagnostic_info_at(size_t index)
{
    return index < ARRAY_COUNT(infos) ? &infos[index] : NULL;
}

void diagnostics_init(struct diagnostics *diagnostics, struct arena *arena)
{
    *diagnostics = (struct diagnostics){.arena = arena, .count_max = COUNT_MAX};
}

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7F;
}

// Bytes at `at` that are one printable character, or 0 for anything that has to be replaced.
static size_t printable_size(struct str text, size_t at)
{
    size_t size = str_utf8_size(text, at);
    unsigned char lead = (unsigned char)text.ptr[at];
    bool c1 = size == 2 && lead == 0xC2 && (unsigned char)text.ptr[at + 1] < 0xA0;
    return is_control(lead) || c1 ? 0 : size;
}

static struct str format_text(struct arena *arena, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static struct str format_text(struct arena *arena, const char *format, va_list arguments)
{
    char text[MESSAGE_SIZE];
    int written = vsnprintf(text, sizeof(text), format, arguments);
    size_t len = written < 0 ? 0 : (size_t)written;
    if (len > sizeof(text) - 1) len = sizeof(text) - 1;
    for (size_t i = 0; i < len;) {
        size_t size = printable_size((struct str){text, len}, i);
        if (size == 0) text[i] = '?';
        i += size ? size : 1;
    }
    return arena_copy(arena, (struct str){text, len});
}

struct diagnostic *diagnose(struct diagnostics *diagnostics, enum severity severity, const char *id, const char *code,
                            struct str file, uint32_t line, uint32_t column, uint32_t width, const char *format, ...)
{
    INVARIANT(diagnostic_info(id));
    if (severity == SEVERITY_ERROR)
        diagnostics->error_count++;
    else
        diagnostics->warning_count++;
    if (diagnostics->count >= diagnostics->count_max) return NULL;
    struct diagnostic *grown = arena_grow(diagnostics->arena, diagnostics->items, diagnostics->count,
                                          diagnostics->count + 1, sizeof(struct diagnostic), &diagnostics->capacity);
    if (grown) diagnostics->items = grown;
    va_list arguments;
    va_start(arguments, format);
    struct str message = format_text(diagnostics->arena, format, arguments);
    va_end(arguments);
    if (!grown || !message.ptr) {
        diagnostics->failed = true;
        return NULL;
    }
    struct diagnostic *d = &diagnostics->items[diagnostics->count++];
    *d = (struct diagnostic){
        .severity = severity,
        .id = id,
        .code = code,
        .file = file,
        .source = diagnostics->source,
        .line = line,
        .column = column,
        .width = width ? width : 1,
        .message = message,
        .note = {"", 0},
        .hint = {"", 0},
    };
    return d;
}

void diagnostic_note(struct diagnostics *diagnostics, struct diagnostic *diagnostic, const char *format, ...)
{
    if (!diagnostic) return;
    va_list arguments;
    va_start(arguments, format);
    struct str note = format_text(diagnostics->arena, format, arguments);
    va_end(arguments);
    if (note.ptr)
        diagnostic->note = note;
    else
        diagnostics->failed = true;
}

void diagnostic_hint(struct diagnostics *diagnostics, struct diagnostic *diagnostic, const char *format, ...)
{
    if (!diagnostic) return;
    va_list arguments;
    va_start(arguments, format);
    struct str hint = format_text(diagnostics->arena, format, arguments);
    va_end(arguments);
    if (hint.ptr)
        diagnostic->hint = hint;
    else
        diagnostics->failed = true;
}

static bool comes_after(const struct diagnostic *a, const struct diagnostic *b)
{
    return a->line != b->line ? a->line > b->line : a->column > b->column;
}

// Insertion, because what was found is nearly in order and count_max is small. Files stay together, in the order in
// which they first appear.
void diagnostics_sort(struct diagnostics *diagnostics)
{
    for (size_t i = 1; i < diagnostics->count; i++) {
        struct diagnostic moving = diagnostics->items[i];
        size_t last = i; // one past the last entry of the same file
        while (last > 0 && !str_eq(diagnostics->items[last - 1].file, moving.file)) last--;
        if (last == 0) continue;
        size_t at = last;
        while (at > 0 && str_eq(diagnostics->items[at - 1].file, moving.file) &&
               comes_after(&diagnostics->items[at - 1], &moving))
            at--;
        memmove(&diagnostics->items[at + 1], &diagnostics->items[at], (i - at) * sizeof(struct diagnostic));
        diagnostics->items[at] = moving;
    }
}

// ---- writing

static uint32_t code_point(struct str text, size_t at, size_t size)
{
    const unsigned char *p = (const unsigned char *)text.ptr + at;
    if (size == 1) return p[0];
    if (size == 2) return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
    if (size == 3) return (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    return (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

// Terminal columns of a character: the large blocks of wide and of combining characters, not every exception.
static unsigned columns_of(uint32_t c)
{
    static const struct {
        uint32_t first, last;
        unsigned columns;
    } ranges[] = {
        {0x0300, 0x036F, 0}, {0x1100, 0x115F, 2},   {0x200B, 0x200F, 0},   {0x2E80, 0xA4CF, 2},
        {0xAC00, 0xD7A3, 2}, {0xF900, 0xFAFF, 2},   {0xFE00, 0xFE0F, 0},   {0xFE30, 0xFE6F, 2},
        {0xFF00, 0xFF60, 2}, {0x1F300, 0x1FAFF, 2}, {0x20000, 0x3FFFD, 2},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ranges); i++)
        if (c >= ranges[i].first && c <= ranges[i].last) return ranges[i].columns;
    return 1;
}

// Writes the character at `at` (unless out is NULL) and says how many bytes and columns it took.
static unsigned write_char(struct buf *out, struct str line, size_t at, size_t *size)
{
    *size = 1;
    if (line.ptr[at] == '\t') {
        for (int i = 0; out && i < TAB_COLUMNS; i++) buf_byte(out, ' ');
        return TAB_COLUMNS;
    }
    size_t printable = printable_size(line, at);
    if (printable == 0) {
        if (out) buf_byte(out, '?');
        return 1;
    }
    *size = printable;
    if (out) buf_add(out, str_slice(line, at, at + printable));
    return columns_of(code_point(line, at, printable));
}

static bool source_line(struct str text, uint32_t number, struct str *line)
{
    if (str_starts(text, STR("\xEF\xBB\xBF"))) text = str_slice(text, 3, text.len);
    size_t start = 0;
    for (uint32_t n = 1; n < number; n++) {
        start = str_find(text, '\n', start);
        if (start == text.len) return false;
        start++;
    }
    *line = str_slice(text, start, str_find(text, '\n', start));
    if (str_ends(*line, STR("\r"))) line->len--;
    return true;
}

// Columns of line[0, end), or more than LINE_COLUMNS.
static unsigned columns_until(struct str line, size_t end)
{
    unsigned columns = 0;
    for (size_t at = 0, size; at < end && columns <= LINE_COLUMNS; at += size)
        columns += write_char(NULL, line, at, &size);
    return columns;
}

// Where to begin so that the place is seen: the start of the line when it fits, else a little before the place.
static size_t window_start(struct str line, size_t place)
{
    if (columns_until(line, line.len) <= LINE_COLUMNS || columns_until(line, place) <= LINE_COLUMNS - CONTEXT_COLUMNS)
        return 0;
    size_t start = place;
    for (unsigned back = 0; start > 0 && back < CONTEXT_COLUMNS; back++) {
        start--;
        while (start > 0 && ((unsigned char)line.ptr[start] & 0xC0) == 0x80) start--;
    }
    return start;
}

static void repeat(struct buf *out, char c, unsigned count)
{
    while (count-- > 0) buf_byte(out, c);
}

static void write_source(struct buf *out, const struct diagnostic *d, struct str line, bool color)
{
    size_t place = d->column ? d->column - 1 : 0;
    if (place > line.len) place = line.len;
    size_t place_end = d->width > line.len - place ? line.len : place + d->width;
    size_t at = window_start(line, place);
    unsigned columns = 0;
    unsigned before = 0;
    unsigned marked = 0;
    buf_printf(out, "%5u | ", d->line);
    if (at > 0) {
        buf_text(out, "...");
        columns = before = 3;
    }
    for (size_t size; at < line.len && columns < LINE_COLUMNS; at += size) {
        bool inside = at >= place && at < place_end;
        if (color && at == place) buf_text(out, "\033[1m");
        unsigned taken = write_char(out, line, at, &size);
        if (color && inside && at + size >= place_end) buf_text(out, "\033[0m");
        columns += taken;
        if (at < place)
            before += taken;
        else if (inside)
            marked += taken;
    }
    if (color) buf_text(out, "\033[0m");
    if (at < line.len) buf_text(out, "...");
    buf_text(out, "\n      | ");
    repeat(out, ' ', before);
    if (color) buf_text(out, "\033[1;31m");
    repeat(out, '^', marked ? marked : 1);
    if (color) buf_text(out, "\033[0m");
    buf_byte(out, '\n');
}

static void write_clean(struct buf *out, struct str text)
{
    for (size_t at = 0, size; at < text.len; at += size) write_char(out, text, at, &size);
}

void diagnostic_write(struct buf *out, const struct diagnostic *diagnostic, struct str text, bool color)
{
    bool error = diagnostic->severity == SEVERITY_ERROR;
    if (diagnostic->source.ptr) text = diagnostic->source;
    if (color) buf_text(out, "\033[1m");
    write_clean(out, diagnostic->file);
    if (diagnostic->line) buf_printf(out, ":%u:%u", diagnostic->line, diagnostic->column);
    buf_text(out, ": ");
    if (color) buf_text(out, error ? "\033[0m\033[1;31m" : "\033[0m\033[1;33m");
    buf_printf(out, "%s[%s]", error ? "error" : "warning", diagnostic->id);
    buf_text(out, color ? "\033[0m " : " ");
    write_clean(out, diagnostic->message);
    if (diagnostic->code[0]) buf_printf(out, " (%s)", diagnostic->code);
    buf_byte(out, '\n');
    struct str line;
    if (diagnostic->line && !diagnostic->hidden && source_line(text, diagnostic->line, &line))
        write_source(out, diagnostic, line, color);
    if (diagnostic->note.len) {
        buf_text(out, "  note: ");
        write_clean(out, diagnostic->note);
        buf_byte(out, '\n');
    }
    if (diagnostic->hint.len) {
        buf_text(out, "  hint: ");
        write_clean(out, diagnostic->hint);
        buf_byte(out, '\n');
    }
}
