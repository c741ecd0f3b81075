// An iterative reader, so that depth costs no C stack. Every value gets a slot on a stack of slots;
// an open container's slot lies below those of its children. When it closes, the children move to
// an array of exactly their size in the arena and only the container's slot stays:
//
//     [ | "a" | { | x: 1 | y: 2        the second container closes,
//     [ | "a" | {x: 1, y: 2}           and is one more child of the first
//
// The stack starts in a local array and spills into a buf; the arena holds results only.
#include "json/decimal.h"
#include "json/internal.h"

enum { SLOT_COUNT = 48, PAIRWISE_MAX = 16, SHOWN_MAX = 64 };

#define NO_SLOT UINT32_MAX

struct reader {
    const char *p, *end;
    const char *line_start;
    uint32_t line;
    const struct json_limits *limits;
    struct arena *arena;
    struct error *err;
    struct json_member key; // of the next value, when that is a member
    struct json_member *slots;
    uint32_t slot_count, slot_capacity;
    struct buf spill;
    uint32_t open; // slot of the innermost open container, whose value.count is that of the next
    uint32_t depth;
    uint32_t node_count;
};

static uint32_t column_of(const struct reader *r, const char *p)
{
    size_t column = (size_t)(p - r->line_start) + 1;
    return column < UINT32_MAX ? (uint32_t)column : UINT32_MAX;
}

static enum code no_memory(const struct reader *r)
{
    return error_at(r->err, E_NOMEM, r->line, column_of(r, r->p), "out of memory reading JSON");
}

static enum code over_limit(const struct reader *r, const char *at, const char *what, size_t limit)
{
    return error_at(r->err, E_LIMIT, r->line, column_of(r, at), "%s (limit %zu)", what, limit);
}

static enum code invalid(const struct reader *r, const char *at, const char *what)
{
    return error_at(r->err, E_INVALID, r->line, column_of(r, at), "%s", what);
}

// "expected a value, found ']'"
static enum code expected(const struct reader *r, const char *what)
{
    uint32_t column = column_of(r, r->p);
    if (r->p == r->end) return error_at(r->err, E_INVALID, r->line, column, "expected %s, but the text ends", what);
    unsigned char c = (unsigned char)*r->p;
    if (c > 0x20 && c < 0x7F) return error_at(r->err, E_INVALID, r->line, column, "expected %s, found '%c'", what, c);
    return error_at(r->err, E_INVALID, r->line, column, "expected %s, found byte 0x%02X", what, c);
}

static void skip_space(struct reader *r)
{
    const char *p = r->p;
    for (; p < r->end; p++) {
        if (*p == '\n') {
            r->line += r->line < UINT32_MAX;
            r->line_start = p + 1;
        } else if (*p != ' ' && *p != '\t' && *p != '\r') {
            break;
        }
    }
    r->p = p;
}

// The code unit of "\uXXXX" at p, or -1.
static int32_t code_unit(const char *p, const char *end)
{
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u') return -1;
    int32_t unit = 0;
    for (int i = 2; i < 6; i++) {
        int digit = char_hex(p[i]);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

static char *put_utf8(char *to, int32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3F));
        *to++ = (char)(0x80 | (c >> 6 & 0x3F));
        *to++ = (char)(0x80 | (c & 0x3F));
    }
    return to;
}

// Decodes the escape at *from and moves it behind.
static enum code decode_escape(const struct reader *r, const char **from, const char *end, char **to)
{
    static const char shorts[] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t',
    };
    const char *p = *from;
    INVARIANT(end - p >= 2);
    unsigned char c = (unsigned char)p[1];
    if (c < sizeof(shorts) && shorts[c]) {
        *(*to)++ = shorts[c];
        *from = p + 2;
        return OK;
    }
    if (c != 'u') return invalid(r, p, "unknown escape in a string");
    int32_t unit = code_unit(p, end);
    if (unit < 0) return invalid(r, p, "\\u must be followed by four hex digits");
    p += 6;
    if (unit >= 0xD800 && unit <= 0xDFFF) {
        int32_t low = unit < 0xDC00 ? code_unit(p, end) : -1;
        if (low < 0xDC00 || low > 0xDFFF) return invalid(r, *from, "half of a surrogate pair in a string");
        p += 6;
        unit = 0x10000 + (unit - 0xD800) * 0x400 + (low - 0xDC00);
    }
    *to = put_utf8(*to, unit);
    *from = p;
    return OK;
}

static enum code decode_string(const struct reader *r, struct str raw, struct str *out)
{
    char *text = arena_alloc(r->arena, raw.len);
    if (!text) return no_memory(r);
    const char *from = raw.ptr;
    const char *end = raw.ptr + raw.len;
    char *to = text;
    while (from < end) {
        const char *escape = memchr(from, '\\', (size_t)(end - from));
        size_t plain = (size_t)((escape ? escape : end) - from);
        memcpy(to, from, plain);
        to += plain;
        from += plain;
        if (!escape) break;
        enum code rc = decode_escape(r, &from, end, &to);
        if (rc) return rc;
    }
    *out = (struct str){text, (size_t)(to - text)};
    INVARIANT(out->len < raw.len);
    return OK;
}

// Moves r->p from behind the opening quote to the closing one.
static enum code find_quote(struct reader *r, bool *escaped)
{
    const char *p = r->p;
    *escaped = false;
    for (;;) {
        while ((size_t)(r->end - p) >= sizeof(uint64_t)) {
            uint64_t word = word_load(p);
            uint64_t found =
                (word & WORD_HIGHS) | word_below(word, 0x20) | word_equal(word, '"') | word_equal(word, '\\');
            if (found) {
                p += word_first(found);
                break;
            }
            p += sizeof(word);
        }
        if (p == r->end) return invalid(r, p, "the text ends inside a string");
        unsigned char c = (unsigned char)*p;
        if (c == '"') break;
        if (c == '\\') {
            if (r->end - p < 2) return invalid(r, p, "the text ends inside a string");
            *escaped = true;
            p++;
            c = (unsigned char)*p;
        }
        if (c < 0x20) return invalid(r, p, "control character in a string; write it as an escape");
        size_t size = c < 0x80 ? 1 : str_utf8_size((struct str){p, (size_t)(r->end - p)}, 0);
        if (size == 0) return invalid(r, p, "malformed UTF-8");
        p += size;
    }
    r->p = p;
    return OK;
}

static enum code read_string(struct reader *r, struct str *out)
{
    INVARIANT(*r->p == '"');
    const char *start = r->p++;
    bool escaped;
    enum code rc = find_quote(r, &escaped);
    if (rc) return rc;
    *out = (struct str){start + 1, (size_t)(r->p - start - 1)};
    if (escaped) rc = decode_string(r, *out, out);
    if (rc) return rc;
    if (out->len > r->limits->string_size_max)
        return over_limit(r, start, "string too long", r->limits->string_size_max);
    r->p++;
    return OK;
}

// Only a long number or one with an exponent can be beyond the limits.
static enum code check_number(const struct reader *r, struct str lexeme)
{
    if (lexeme.len > JSON_NUMBER_SIZE_MAX) return over_limit(r, r->p, "number too long", JSON_NUMBER_SIZE_MAX);
    bool power = str_find(lexeme, 'e', 0) < lexeme.len || str_find(lexeme, 'E', 0) < lexeme.len;
    if (!power && lexeme.len <= JSON_NUMBER_DIGITS_MAX) return OK;
    struct decimal d = decimal_text(lexeme);
    int64_t exponent = d.digit_count ? d.exponent - 1 : 0;
    bool integer = json_is_integer(&(struct json){.type = JSON_NUMBER, .text = lexeme});
    if (d.digit_count > JSON_NUMBER_DIGITS_MAX || (integer && exponent >= JSON_NUMBER_DIGITS_MAX))
        return over_limit(r, r->p, "number of too many digits", JSON_NUMBER_DIGITS_MAX);
    if (exponent < -JSON_EXPONENT_MAX || exponent > JSON_EXPONENT_MAX)
        return over_limit(r, r->p, "number with too large an exponent", JSON_EXPONENT_MAX);
    return OK;
}

static enum code read_number(struct reader *r, struct json *out)
{
    struct str rest = {r->p, (size_t)(r->end - r->p)};
    bool integral;
    size_t len = json_number_scan(rest, &integral);
    if (len == 0) return invalid(r, r->p, "malformed number");
    struct str lexeme = {r->p, len};
    int64_t integer;
    if (integral && str_int64(lexeme, &integer)) {
        out->type = JSON_INT;
        out->integer = integer;
    } else {
        enum code rc = check_number(r, lexeme);
        if (rc) return rc;
        out->type = JSON_NUMBER;
        out->text = lexeme;
    }
    r->p += len;
    return OK;
}

static enum code read_word(struct reader *r, struct json *out)
{
    struct str rest = {r->p, (size_t)(r->end - r->p)};
    size_t len = 4;
    if (str_starts(rest, STR("null"))) {
        out->type = JSON_NULL;
    } else if (str_starts(rest, STR("true"))) {
        out->type = JSON_BOOL;
        out->boolean = true;
    } else if (str_starts(rest, STR("false"))) {
        out->type = JSON_BOOL;
        len = 5;
    } else {
        return expected(r, "a value");
    }
    r->p += len;
    return OK;
}

static enum code push_slot(struct reader *r, const struct json *value)
{
    if (r->node_count == r->limits->node_count_max)
        return over_limit(r, r->p, "too many values", r->limits->node_count_max);
    r->node_count++;
    if (r->slot_count == r->slot_capacity) {
        size_t size = r->slot_count * sizeof(*r->slots);
        bool local = r->spill.capacity == 0;
        char *room = buf_reserve(&r->spill, local ? size * 2 : size);
        if (!room) return no_memory(r);
        if (local) memcpy(room, r->slots, size);
        r->slots = (struct json_member *)(void *)r->spill.ptr;
        r->spill.len = size * 2;
        r->slot_capacity *= 2;
    }
    struct json_member *slot = &r->slots[r->slot_count++];
    *slot = r->key;
    slot->value = *value;
    r->key = (struct json_member){0};
    return OK;
}

// Sorting, not hashing: no choice of keys makes it slow, and keys in canonical order are found to
// differ without it.
static enum code check_keys(const struct reader *r, const struct json_member *members, uint32_t count)
{
    const struct json_member *twin = NULL;
    if (count <= PAIRWISE_MAX) {
        for (uint32_t i = 1; i < count && !twin; i++) {
            for (uint32_t j = 0; j < i && !twin; j++)
                twin = str_eq(members[i].key, members[j].key) ? &members[i] : NULL;
        }
    } else {
        struct json_order order;
        if (!json_order_init(&order, members, count)) return no_memory(r);
        for (uint32_t i = 1; order.index && i < count && !twin; i++) {
            uint32_t a = order.index[i - 1];
            uint32_t b = order.index[i];
            if (str_eq(members[a].key, members[b].key)) twin = &members[a > b ? a : b];
        }
        json_order_release(&order);
    }
    if (!twin) return OK;
    struct str shown = str_head(twin->key, SHOWN_MAX);
    return error_at(r->err, E_INVALID, twin->line, twin->column, "duplicate key \"%.*s\"", STR_ARG(shown));
}

// Turns the slots above the innermost open container into its array.
static enum code close_container(struct reader *r)
{
    uint32_t at = r->open;
    struct json *container = &r->slots[at].value;
    struct json_member *children = &r->slots[at + 1];
    uint32_t count = r->slot_count - at - 1;
    uint32_t outer = container->count;
    if (container->type == JSON_OBJECT) {
        enum code rc = check_keys(r, children, count);
        if (rc) return rc;
    }
    container->members = NULL;
    if (count && container->type == JSON_OBJECT) {
        container->members = ARENA_ARRAY(r->arena, count, struct json_member);
        if (!container->members) return no_memory(r);
        memcpy(container->members, children, count * sizeof(*children));
    } else if (count) {
        container->items = ARENA_ARRAY(r->arena, count, struct json);
        if (!container->items) return no_memory(r);
        for (uint32_t i = 0; i < count; i++) container->items[i] = children[i].value;
    }
    container->count = count;
    container->capacity = count;
    r->slot_count = at + 1;
    r->open = outer;
    r->depth--;
    return OK;
}

static enum code read_key(struct reader *r)
{
    if (r->p == r->end || *r->p != '"') return expected(r, "a key in double quotes");
    if (r->slot_count - r->open - 1 >= r->limits->key_count_max)
        return over_limit(r, r->p, "too many keys in an object", r->limits->key_count_max);
    r->key.line = r->line;
    r->key.column = column_of(r, r->p);
    enum code rc = read_string(r, &r->key.key);
    if (rc) return rc;
    skip_space(r);
    if (r->p == r->end || *r->p != ':') return expected(r, "':' after a key");
    r->p++;
    skip_space(r);
    return OK;
}

// *complete is false when the container has a first child that is still to be read.
static enum code open_container(struct reader *r, struct json *value, bool *complete)
{
    uint32_t limit = r->limits->depth_max < JSON_DEPTH_MAX ? r->limits->depth_max : JSON_DEPTH_MAX;
    if (r->depth == limit) return over_limit(r, r->p, "nested too deeply", limit);
    char closing = *r->p == '{' ? '}' : ']';
    value->type = closing == '}' ? JSON_OBJECT : JSON_ARRAY;
    value->count = r->open;
    enum code rc = push_slot(r, value);
    if (rc) return rc;
    r->open = r->slot_count - 1;
    r->depth++;
    r->p++;
    skip_space(r);
    if (r->p < r->end && *r->p == closing) {
        r->p++;
        return close_container(r);
    }
    *complete = false;
    return closing == '}' ? read_key(r) : OK;
}

static enum code read_value(struct reader *r, bool *complete)
{
    *complete = true;
    struct json value = {0};
    json_set_place(&value, r->line, column_of(r, r->p));
    if (r->p == r->end) return expected(r, "a value");
    char c = *r->p;
    if (c == '{' || c == '[') return open_container(r, &value, complete);
    enum code rc;
    if (c == '"') {
        value.type = JSON_STRING;
        rc = read_string(r, &value.text);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        rc = read_number(r, &value);
    } else {
        rc = read_word(r, &value);
    }
    return rc ? rc : push_slot(r, &value);
}

// Closes what closes here; OK with open containers means that another value follows.
static enum code finish_value(struct reader *r)
{
    while (r->open != NO_SLOT) {
        bool object = r->slots[r->open].value.type == JSON_OBJECT;
        skip_space(r);
        if (r->p < r->end && *r->p == ',') {
            r->p++;
            skip_space(r);
            return object ? read_key(r) : OK;
        }
        if (r->p == r->end || *r->p != (object ? '}' : ']')) return expected(r, object ? "',' or '}'" : "',' or ']'");
        enum code rc = close_container(r);
        if (rc) return rc;
        r->p++;
    }
    return OK;
}

static enum code read_document(struct reader *r)
{
    skip_space(r);
    do {
        bool complete;
        enum code rc = read_value(r, &complete);
        if (!rc && complete) rc = finish_value(r);
        if (rc) return rc;
    } while (r->open != NO_SLOT);
    skip_space(r);
    if (r->p < r->end) return expected(r, "nothing after the value");
    INVARIANT(r->slot_count == 1);
    INVARIANT(r->depth == 0);
    return OK;
}

enum code json_parse(struct str text, const struct json_limits *limits, struct arena *arena, struct json *out,
                     struct error *err)
{
    if (!limits) limits = &json_limits_default;
    struct json_member local[SLOT_COUNT];
    const char *start = text.ptr ? text.ptr : "";
    struct reader r = {
        .p = start,
        .end = start + text.len,
        .line_start = start,
        .line = 1,
        .limits = limits,
        .arena = arena,
        .err = err,
        .slots = local,
        .slot_capacity = SLOT_COUNT,
        .open = NO_SLOT,
    };
    if (text.len > limits->size_max) return over_limit(&r, start, "text too long", limits->size_max);
    if (str_starts(text, STR("\xEF\xBB\xBF")))
        return invalid(&r, start, "the text begins with a byte order mark; remove it");
    buf_init(&r.spill, SIZE_MAX / 4);
    enum code rc = read_document(&r);
    if (!rc) *out = r.slots[0].value;
    buf_release(&r.spill);
    return rc;
}
