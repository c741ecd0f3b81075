#include "cli/help_text.h"

#include "base/buf.h"
#include "schema/embedded.h"

#include <string.h>

bool help_each(struct help_cursor *cursor, struct str *name, struct str *section)
{
    while (cursor->rest.len == 0) {
        if (cursor->file == embedded_help_count) return false;
        const struct embedded_file *file = &embedded_helps[cursor->file++];
        cursor->rest = (struct str){(const char *)file->bytes, file->size};
    }
    struct str line = str_cut(cursor->rest, '\n', &cursor->rest);
    *name = str_slice(line, 2, line.len);
    *section = cursor->rest;
    while (cursor->rest.len > 0 && !str_starts(cursor->rest, STR("= "))) str_cut(cursor->rest, '\n', &cursor->rest);
    section->len -= cursor->rest.len;
    return true;
}

struct str help_section(struct str name)
{
    struct help_cursor cursor = {0};
    struct str found, section;
    while (help_each(&cursor, &found, &section))
        if (str_eq(found, name)) return section;
    return (struct str){0};
}

static enum help_kind kind_of(struct str line)
{
    if (str_starts(line, STR("# "))) return HELP_HEADING;
    if (str_starts(line, STR("- "))) return HELP_ROW;
    return str_starts(line, STR("$ ")) ? HELP_EXAMPLE : HELP_PARAGRAPH;
}

// Whether the next line belongs to a part of that kind.
static bool goes_on(enum help_kind kind, struct str rest)
{
    bool empty = rest.len == 0 || rest.ptr[0] == '\n';
    return (kind == HELP_PARAGRAPH && !empty) || (kind == HELP_ROW && rest.len > 0 && rest.ptr[0] == ' ');
}

bool help_next(struct str *section, struct arena *arena, struct help_part *out)
{
    while (section->len > 0 && section->ptr[0] == '\n') *section = str_slice(*section, 1, section->len);
    if (section->len == 0) return false;
    struct buf text = buf_of(1 << 16);
    struct str line = str_cut(*section, '\n', section);
    *out = (struct help_part){.kind = kind_of(line)};
    if (out->kind != HELP_PARAGRAPH) line = str_slice(line, 2, line.len);
    buf_add(&text, line);
    while (goes_on(out->kind, *section)) {
        buf_byte(&text, ' ');
        buf_add(&text, str_trim(str_cut(*section, '\n', section)));
    }
    struct str copy = arena_copy(arena, buf_str(&text));
    buf_release(&text);
    if (!copy.ptr) return false;
    const char *colon = out->kind == HELP_ROW ? strstr(copy.ptr, ": ") : NULL;
    out->text = colon ? colon + 2 : copy.ptr;
    out->name = colon ? arena_copy(arena, str_slice(copy, 0, (size_t)(colon - copy.ptr))).ptr : "";
    return out->name != NULL;
}
