#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

struct str buf_keep(struct buf *buf, struct arena *arena)
{
    struct str text = buf_ok(buf) ? arena_copy(arena, buf_str(buf)) : (struct str){0};
    buf_release(buf);
    return text;
}

// Short texts are formatted once; a long one again, when its length is known.
struct str arena_format(struct arena *arena, const char *format, ...)
{
    char small[256];
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(small, sizeof(small), format, arguments);
    va_end(arguments);
    struct str text = {0};
    if (size >= 0 && (size_t)size < sizeof(small)) {
        text = arena_copy(arena, (struct str){small, (size_t)size});
    } else if (size >= 0) {
        char *made = arena_alloc(arena, (size_t)size + 1);
        if (made) vsnprintf(made, (size_t)size + 1, format, again);
        text = (struct str){made, made ? (size_t)size : 0};
    }
    va_end(again);
    return text;
}

enum { ESCAPE = 0x1b, BELL = 0x07 };

// Where the sequence that begins at `at` is over.
static size_t sequence_end(struct str text, size_t at)
{
    char kind = at + 1 < text.len ? text.ptr[at + 1] : 0;
    size_t i = at + 2;
    if (kind == '[') {
        while (i < text.len && ((unsigned char)text.ptr[i] < 0x40 || (unsigned char)text.ptr[i] > 0x7e)) i++;
    } else if (kind == ']') {
        while (i < text.len && text.ptr[i] != BELL && text.ptr[i] != ESCAPE) i++;
        if (i + 1 < text.len && text.ptr[i] == ESCAPE) i++; // its other end is ESC and a backslash
    } else {
        return i < text.len ? i : text.len;
    }
    return i < text.len ? i + 1 : text.len;
}

void buf_unstyled(struct buf *out, struct str text)
{
    for (size_t at = 0; at < text.len;) {
        size_t next = str_find(text, ESCAPE, at);
        buf_add(out, str_slice(text, at, next));
        at = next < text.len ? sequence_end(text, next) : next;
    }
}
