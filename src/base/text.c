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
