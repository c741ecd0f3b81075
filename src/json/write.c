#include "json/internal.h"

enum { ESCAPE_MAX = 6 };

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

// Copies the plain bytes at the front of `text` and returns how many there were. The text is read
// and written a word at a time; `to` has room for all of it.
static size_t copy_plain(char *to, struct str text)
{
    size_t i = 0;
    while (text.len - i >= sizeof(uint64_t)) {
        uint64_t word = word_load(text.ptr + i);
        if (word_below(word, 0x20) | word_equal(word, '"') | word_equal(word, '\\')) break;
        memcpy(to + i, &word, sizeof(word));
        i += sizeof(word);
    }
    for (; i < text.len && is_plain(text.ptr[i]); i++) to[i] = text.ptr[i];
    return i;
}

static size_t write_escape(char *to, char c)
{
    static const char digits[] = "0123456789abcdef";
    static const char shorts[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\',
    };
    unsigned char byte = (unsigned char)c;
    to[0] = '\\';
    if (byte < sizeof(shorts) && shorts[byte]) {
        to[1] = shorts[byte];
        return 2;
    }
    to[1] = 'u';
    to[2] = '0';
    to[3] = '0';
    to[4] = digits[byte >> 4];
    to[5] = digits[byte & 15];
    return 6;
}

void json_write_string(struct buf *out, struct str text)
{
    // Each reservation is the least that the rest can take, so a ceiling is met to the byte.
    char *to = buf_reserve(out, text.len + 2);
    if (!to) return;
    to[0] = '"';
    out->len++;
    for (;;) {
        size_t plain = copy_plain(out->ptr + out->len, text);
        out->len += plain;
        if (plain == text.len) break;
        char escape[ESCAPE_MAX];
        size_t size = write_escape(escape, text.ptr[plain]);
        text = str_slice(text, plain + 1, text.len);
        out->ptr[out->len] = '\0';
        to = buf_reserve(out, size + text.len + 1);
        if (!to) return;
        memcpy(to, escape, size);
        out->len += size;
    }
    out->ptr[out->len++] = '"';
    out->ptr[out->len] = '\0';
}

// One writer for all forms: pretty is compact plus line breaks, canonical is compact in order.
enum form { COMPACT, PRETTY, CANONICAL };

struct writer {
    struct buf *out;
    enum form form;
};

static void write_break(const struct writer *writer, uint32_t depth)
{
    if (writer->form != PRETTY) return;
    char *to = buf_reserve(writer->out, (size_t)depth * 2 + 1);
    if (!to) return;
    to[0] = '\n';
    memset(to + 1, ' ', (size_t)depth * 2);
    writer->out->len += (size_t)depth * 2 + 1;
    writer->out->ptr[writer->out->len] = '\0';
}

static void write_value(const struct writer *writer, const struct json *value, uint32_t depth);

static void write_array(const struct writer *writer, const struct json *array, uint32_t depth)
{
    struct buf *out = writer->out;
    buf_byte(out, '[');
    for (uint32_t i = 0; i < array->count && buf_ok(out); i++) {
        if (i) buf_byte(out, ',');
        write_break(writer, depth + 1);
        write_value(writer, &array->items[i], depth + 1);
    }
    if (array->count) write_break(writer, depth);
    buf_byte(out, ']');
}

// `order` may be NULL: as they are.
static void write_members(const struct writer *writer, const struct json *object, const uint32_t *order, uint32_t depth)
{
    struct buf *out = writer->out;
    for (uint32_t i = 0; i < object->count && buf_ok(out); i++) {
        const struct json_member *member = &object->members[order ? order[i] : i];
        if (i) buf_byte(out, ',');
        write_break(writer, depth + 1);
        json_write_string(out, member->key);
        buf_byte(out, ':');
        if (writer->form == PRETTY) buf_byte(out, ' ');
        write_value(writer, &member->value, depth + 1);
    }
}

// A function of its own, so that the common path does not carry the index on its stack.
static __attribute__((noinline)) void write_sorted(const struct writer *writer, const struct json *object,
                                                   uint32_t depth)
{
    struct json_order order;
    if (!json_order_init(&order, object->members, object->count)) {
        writer->out->failed = true;
        return;
    }
    write_members(writer, object, order.index, depth);
    json_order_release(&order);
}

static void write_object(const struct writer *writer, const struct json *object, uint32_t depth)
{
    buf_byte(writer->out, '{');
    if (writer->form == CANONICAL && !json_in_order(object->members, object->count))
        write_sorted(writer, object, depth);
    else
        write_members(writer, object, NULL, depth);
    if (object->count) write_break(writer, depth);
    buf_byte(writer->out, '}');
}

static void write_value(const struct writer *writer, const struct json *value, uint32_t depth)
{
    struct buf *out = writer->out;
    if (depth > JSON_DEPTH_MAX || value->type == JSON_FAILED) {
        out->failed = true;
        return;
    }
    switch ((enum json_type)value->type) {
    case JSON_NULL:
        buf_add(out, STR("null"));
        return;
    case JSON_BOOL:
        buf_add(out, value->boolean ? STR("true") : STR("false"));
        return;
    case JSON_INT:
    case JSON_NUMBER:
        if (writer->form == CANONICAL)
            json_canon_number(out, value);
        else if (value->type == JSON_INT)
            buf_int(out, value->integer);
        else
            buf_add(out, value->text);
        return;
    case JSON_STRING:
        json_write_string(out, value->text);
        return;
    case JSON_ARRAY:
        write_array(writer, value, depth);
        return;
    case JSON_OBJECT:
        write_object(writer, value, depth);
        return;
    }
    INVARIANT(value->type >= JSON_NULL && value->type <= JSON_OBJECT);
}

void json_write(struct buf *out, const struct json *value)
{
    write_value(&(struct writer){.out = out, .form = COMPACT}, value, 0);
}

void json_write_pretty(struct buf *out, const struct json *value)
{
    write_value(&(struct writer){.out = out, .form = PRETTY}, value, 0);
}

void json_canon(struct buf *out, const struct json *value)
{
    write_value(&(struct writer){.out = out, .form = CANONICAL}, value, 0);
}
