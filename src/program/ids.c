#include "program/program.h"

#include <string.h>

enum { ID_SIZE_MAX = 128 };

// Every byte is a letter, a digit or in `extra`; nothing that could be read as a path goes up, and no dot at the end.
static bool id_bytes(struct str id, const char *first_extra, const char *extra)
{
    if (id.len == 0 || id.len > ID_SIZE_MAX) return false;
    for (size_t i = 0; i < id.len; i++) {
        char c = id.ptr[i];
        const char *allowed = i == 0 ? first_extra : extra;
        if (!char_is_alnum(c) && (c == '\0' || !strchr(allowed, c))) return false;
        if (c == '.' && (i + 1 == id.len || id.ptr[i + 1] == '.')) return false;
    }
    return true;
}

bool run_id_valid(struct str id)
{
    return id_bytes(id, "", "._:-");
}

bool step_id_valid(struct str id)
{
    return id_bytes(id, "_", "._-") && !str_eq(id, STR("RUN"));
}

bool event_name_valid(struct str name)
{
    return id_bytes(name, "_", "._:/-");
}

bool place_id_valid(struct str id)
{
    if (!id_bytes(id, "_", "._-/") || str_eq(id, STR("RUN")) || id.ptr[id.len - 1] == '/') return false;
    for (size_t i = 0; i + 1 < id.len; i++)
        if (id.ptr[i] == '/' && (id.ptr[i + 1] == '/' || id.ptr[i + 1] == '.')) return false;
    return true;
}

bool name_valid(struct str id)
{
    if (id.len == 0 || id.len > ID_SIZE_MAX || !str_utf8(id)) return false;
    for (size_t i = 0; i < id.len; i++) {
        unsigned char c = (unsigned char)id.ptr[i];
        if (c < 0x20 || c == 0x7F || c == '|') return false;
        // U+0080 to U+009F are control characters too.
        if (c == 0xC2 && (unsigned char)id.ptr[i + 1] < 0xA0) return false;
    }
    return true;
}
