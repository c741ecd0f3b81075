// noetl:// references: where a result is that is not in its event.
#include "contract/internal.h"

#include "base/text.h"

#include <string.h>

#define SCHEME "noetl://execution/"

struct result_place result_place(struct str execution, const struct moment *moment)
{
    bool task = moment->task.len > 0;
    return (struct result_place){.execution = execution,
                                 .step = moment->step,
                                 .task = moment->task,
                                 .visit = moment->visit,
                                 .iteration = moment->iteration,
                                 .task_run = task ? moment->task_run : 0,
                                 .attempt = task ? moment->logical : 0};
}

static bool is_plain(unsigned char c)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || (c && strchr("-._~:", c));
}

static void add_name(struct buf *out, const char *before, struct str name)
{
    buf_text(out, before);
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (is_plain(c))
            buf_byte(out, (char)c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

static void add_number(struct buf *out, const char *before, uint32_t n)
{
    buf_text(out, before);
    buf_int(out, n);
}

struct str result_ref_format(const struct result_place *place, struct arena *arena)
{
    enum { REF_SIZE_MAX = 16384 };
    struct buf out = buf_of(REF_SIZE_MAX);
    add_name(&out, SCHEME, place->execution);
    add_name(&out, "/step/", place->step);
    if (place->visit > 1) add_number(&out, "/visit/", place->visit);
    if (place->iteration) add_number(&out, "/iteration/", place->iteration - 1);
    if (place->task.len) {
        add_name(&out, "/task/", place->task);
        add_number(&out, "/run/", place->task_run);
        add_number(&out, "/attempt/", place->attempt);
    }
    return buf_keep(&out, arena);
}

static bool read_name(struct str text, struct arena *arena, struct str *out)
{
    char *to = arena_alloc(arena, text.len + 1);
    if (!to) return false;
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            if (text.len - i < 3) return false;
            int high = char_hex(text.ptr[i + 1]), low = char_hex(text.ptr[i + 2]);
            if (high < 0 || low < 0) return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        to[len++] = c;
    }
    *out = (struct str){to, len};
    return len > 0;
}

static bool read_number(struct str text, uint32_t min, uint32_t *out)
{
    int64_t n;
    if (!str_int64(text, &n) || n < min || n >= UINT32_MAX) return false;
    *out = (uint32_t)n;
    return true;
}

// The word that comes next, when it is `word`: then its value is cut off too.
static bool take(struct str *rest, const char *word, struct str *value)
{
    struct str after = *rest;
    if (!str_is(str_cut(after, '/', &after), word)) return false;
    *value = str_cut(after, '/', &after);
    *rest = after;
    return true;
}

bool result_ref_parse(struct str ref, struct arena *arena, struct result_place *out)
{
    *out = (struct result_place){.visit = 1};
    if (!str_starts(ref, STR(SCHEME))) return false;
    struct str rest = str_slice(ref, sizeof(SCHEME) - 1, ref.len), value;
    if (!read_name(str_cut(rest, '/', &rest), arena, &out->execution)) return false;
    if (!take(&rest, "step", &value) || !read_name(value, arena, &out->step)) return false;
    if (take(&rest, "visit", &value) && !read_number(value, 2, &out->visit)) return false;
    if (take(&rest, "iteration", &value)) {
        if (!read_number(value, 0, &out->iteration)) return false;
        out->iteration++;
    }
    if (!rest.len) return true;
    return take(&rest, "task", &value) && read_name(value, arena, &out->task) && take(&rest, "run", &value) &&
           read_number(value, 1, &out->task_run) && take(&rest, "attempt", &value) &&
           read_number(value, 1, &out->attempt) && !rest.len;
}
