// Telling what does not fit. Everything here runs only after a failure, into arrays of fixed size.
#include "schema/internal.h"

#include <string.h>

enum { TEXT_SHOWN_MAX = 48, OPTIONS_SHOWN_MAX = 8 };

struct writer {
    char *out;
    size_t size, len; // room with the NUL; written
};

// Cut between characters, never inside one.
static void put(struct writer *w, struct str s)
{
    size_t count = str_head(s, w->size - 1 - w->len).len;
    if (count) memcpy(w->out + w->len, s.ptr, count);
    w->len += count;
    if (count < s.len) w->size = w->len + 1; // full: nothing may follow a cut
    w->out[w->len] = '\0';
}

static void put_text(struct writer *w, const char *text)
{
    put(w, str_from(text));
}

static void put_count(struct writer *w, uint64_t n)
{
    char text[20];
    size_t at = sizeof(text);
    do {
        text[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    put(w, (struct str){text + at, sizeof(text) - at});
}

static void put_int(struct writer *w, int64_t n)
{
    put_text(w, n < 0 ? "-" : "");
    put_count(w, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

static void put_quoted(struct writer *w, struct str text)
{
    size_t shown = str_head(text, TEXT_SHOWN_MAX).len;
    put_text(w, "\"");
    for (size_t i = 0; i < shown; i++) {
        char c = text.ptr[i];
        if (c == '"' || c == '\\') put_text(w, "\\");
        if ((unsigned char)c < 0x20)
            put_text(w, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "?");
        else if ((unsigned char)c < 0x80)
            put(w, (struct str){&c, 1});
        else {
            size_t size = str_utf8_size(text, i);
            put(w, size ? str_slice(text, i, i + size) : STR("?"));
            i += size ? size - 1 : 0;
        }
    }
    put_text(w, shown < text.len ? "...\"" : "\"");
}

static void put_value(struct writer *w, const struct json *value)
{
    switch ((enum json_type)value->type) {
    case JSON_NULL:
        put_text(w, "null");
        return;
    case JSON_BOOL:
        put_text(w, value->boolean ? "true" : "false");
        return;
    case JSON_INT:
        put_int(w, value->integer);
        return;
    case JSON_NUMBER:
        put(w, str_slice(value->text, 0, value->text.len < TEXT_SHOWN_MAX ? value->text.len : TEXT_SHOWN_MAX));
        return;
    case JSON_STRING:
        put_quoted(w, value->text);
        return;
    case JSON_ARRAY:
        put_text(w, "an array of ");
        put_int(w, value->count);
        return;
    case JSON_OBJECT:
        put_text(w, "an object");
        return;
    }
}

static void put_pointer(struct writer *w, const struct step *at)
{
    if (!at->above) return;
    put_pointer(w, at->above);
    put_text(w, "/");
    if (!at->key.ptr) {
        put_int(w, (int64_t)at->index);
        return;
    }
    size_t from = 0;
    for (size_t i = 0; i < at->key.len; i++) {
        char c = at->key.ptr[i];
        if (c != '~' && c != '/') continue;
        put(w, str_slice(at->key, from, i));
        put_text(w, c == '~' ? "~0" : "~1");
        from = i + 1;
    }
    put(w, str_slice(at->key, from, at->key.len));
}

// True when this fault is to be reported: no deeper one has been.
static bool fault_open(struct check *c, const struct step *at, struct writer *message)
{
    if (!c->fault || at->depth + 1 <= c->fault_depth) return false;
    c->fault_depth = at->depth + 1;
    c->fault->value = at->value;
    struct writer pointer = {c->fault->pointer, sizeof(c->fault->pointer), 0};
    pointer.out[0] = '\0';
    put_pointer(&pointer, at);
    *message = (struct writer){c->fault->message, sizeof(c->fault->message), 0};
    message->out[0] = '\0';
    return true;
}

bool fault_text(struct check *c, const struct step *at, const char *text)
{
    struct writer w;
    if (fault_open(c, at, &w)) put_text(&w, text);
    return false;
}

bool fault_count(struct check *c, const struct step *at, const char *verb, const char *things, struct count_range limits,
                 uint64_t found)
{
    struct writer w;
    if (!fault_open(c, at, &w)) return false;
    bool low = found < limits.min;
    put_text(&w, verb);
    put_text(&w, low ? " at least " : " at most ");
    put_count(&w, low ? limits.min : limits.max);
    put_text(&w, things);
    put_count(&w, found);
    return false;
}

bool fault_pair(struct check *c, const struct step *at, const char *before, uint64_t a, uint64_t b, const char *after)
{
    struct writer w;
    if (!fault_open(c, at, &w)) return false;
    put_text(&w, before);
    put_count(&w, a);
    put_text(&w, " and ");
    put_count(&w, b);
    put_text(&w, after);
    return false;
}

void fault_none(struct check *c, const struct step *at, uint64_t count)
{
    struct writer w;
    char first[sizeof(c->fault->message)];
    memcpy(first, c->fault->message, sizeof(first));
    c->fault_depth = 0;
    if (!fault_open(c, at, &w)) return;
    put_text(&w, "fits none of the ");
    put_count(&w, count);
    put_text(&w, " allowed forms (one of them: ");
    put_text(&w, first);
    put_text(&w, ")");
}

void fault_type(struct check *c, const struct step *at, uint8_t types)
{
    static const struct {
        uint8_t bits;
        const char *name;
    } names[] = {
        {TYPE_NUMBER, "number"}, {TYPE_INTEGER, "integer"}, {TYPE_STRING, "string"}, {TYPE_BOOLEAN, "boolean"},
        {TYPE_OBJECT, "object"}, {TYPE_ARRAY, "array"},     {TYPE_NULL, "null"},
    };
    struct writer w;
    if (!fault_open(c, at, &w)) return;
    put_text(&w, "must be ");
    bool first = true;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if ((types & names[i].bits) != names[i].bits) continue;
        put_text(&w, first ? "" : " or ");
        put_text(&w, names[i].name);
        types = (uint8_t)(types & ~names[i].bits);
        first = false;
    }
    put_text(&w, ", found ");
    put_value(&w, at->value);
}

bool fault_value(struct check *c, const struct step *at, const char *demand, const struct json *wanted)
{
    struct writer w;
    if (!fault_open(c, at, &w)) return false;
    put_text(&w, demand);
    bool list = wanted->type == JSON_ARRAY;
    for (uint32_t i = 0; list && i < wanted->count && i < OPTIONS_SHOWN_MAX; i++) {
        put_text(&w, i ? ", " : " ");
        put_value(&w, &wanted->items[i]);
    }
    if (list && wanted->count > OPTIONS_SHOWN_MAX) put_text(&w, ", ...");
    if (!list) {
        put_text(&w, " ");
        put_value(&w, wanted);
    }
    put_text(&w, "; found ");
    put_value(&w, at->value);
    return false;
}

bool fault_key(struct check *c, const struct step *at, const char *demand, struct str key)
{
    struct writer w;
    if (!fault_open(c, at, &w)) return false;
    put_text(&w, demand);
    put_text(&w, " ");
    put_quoted(&w, key);
    return false;
}

void fault_unknown(struct check *c, const struct step *at, const struct object_rules *rules)
{
    struct writer w;
    if (!fault_open(c, at, &w)) return;
    put_text(&w, "unknown property ");
    put_quoted(&w, at->key);
    const struct name_rule *nearest = NULL;
    size_t limit = at->key.len < 5 ? 1 : 2;
    for (uint32_t i = 0; i < rules->name_count && at->key.len <= TEXT_SHOWN_MAX; i++) {
        size_t distance = str_distance(at->key, rules->names[i].key, limit);
        if (distance > limit) continue;
        nearest = &rules->names[i];
        limit = distance;
    }
    if (nearest) {
        put_text(&w, "; did you mean ");
        put_quoted(&w, nearest->key);
        put_text(&w, "?");
    }
}
