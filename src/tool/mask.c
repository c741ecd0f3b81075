// A secret is looked for in the forms in which programs print it. A form is a row of units (bytes, characters, nibbles) and
// a way to recognise the next unit in the text:
//
//   plain   the bytes              url     each byte as itself or %XX, a space also as +; also twice
//   hex     two digits a byte      json    each character as itself, \n, \" ... or \uXXXX; also twice
//   utf-16  two bytes a byte       base64  what is certain of the code at each of the three positions, both alphabets
//
// Base64 and hex may be wrapped over lines. Matches may overlap; what any of them covers becomes one ***.
// A form that runs past the end of the text seen so far is held back until more is known, so it does not matter how the
// text was cut into reads.
#include "tool/internal.h"

#include <string.h>

enum form_kind { FORM_PLAIN = 1, FORM_URL, FORM_JSON, FORM_HEX, FORM_BASE64, FORM_UTF16_LE, FORM_UTF16_BE };

enum {
    VALUE_MIN = 4,       // shorter values would mask half of every text
    LINE_MIN = 8,        // of a value with several lines
    LINES_MAX = 1024,    // of one value that are masked on their own
    WRAP_AFTER = 4,      // units; a line break before that is not seen as a wrap
    TAIL_MIN = 8,        // units of a form without its first WRAP_AFTER - 1
    WRAP_SIZE_MAX = 20,  // line break and indentation
    UNKNOWN_YET = -1,    // the text ends before the form does
    HELD_MAX = 16 << 20, // more than any form can hold back
};

struct form {
    enum form_kind kind;
    size_t from; // units left out at the beginning
    struct str text;
};

struct mask {
    struct form *forms;
    size_t count, capacity;
    // Forms that can begin with byte b are by_first[first[b]] .. by_first[first[b + 1] - 1].
    uint32_t first[257];
    uint32_t *by_first;
    struct arena *arena;
    bool failed;
};

// Whether the text at `at` is `want`, hex digits in any case.
static int take_text(struct str text, size_t at, const char *want, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (at + i >= text.len) return UNKNOWN_YET;
        char c = text.ptr[at + i];
        if (c != want[i] && (char_hex(c) < 0 || char_hex(c) != char_hex(want[i]))) return 0;
    }
    return (int)size;
}

static const char digits[] = "0123456789abcdef";

static int take_url(struct str text, size_t at, char c)
{
    char t = text.ptr[at];
    if (t == '%') {
        const char want[3] = {'%', digits[(unsigned char)c >> 4], digits[c & 15]};
        return take_text(text, at, want, sizeof(want));
    }
    return t == c || (t == '+' && c == ' ');
}

static size_t put_utf16(char *out, uint32_t unit)
{
    out[0] = '\\';
    out[1] = 'u';
    for (unsigned i = 0; i < 4; i++) out[2 + i] = digits[unit >> (12 - 4 * i) & 15];
    return 6;
}

// "\uXXXX", or two of them, for the character of `size` bytes at `at`.
static size_t json_escape(struct str value, size_t at, size_t size, char out[12])
{
    const unsigned char *p = (const unsigned char *)value.ptr + at;
    uint32_t c = p[0];
    if (size > 1) c &= 0x7Fu >> size;
    for (size_t i = 1; i < size; i++) c = c << 6 | (p[i] & 0x3F);
    if (c < 0x10000) return put_utf16(out, c);
    size_t used = put_utf16(out, 0xD800 + ((c - 0x10000) >> 10));
    return used + put_utf16(out + used, 0xDC00 + ((c - 0x10000) & 0x3FF));
}

static int take_json(struct str text, size_t at, struct str value, size_t *unit)
{
    static const char escapes[] = "n\nt\tr\rb\bf\f\"\"\\\\//";
    char c = value.ptr[*unit];
    if (text.ptr[at] != '\\') {
        ++*unit;
        return text.ptr[at] == c;
    }
    if (at + 1 >= text.len) return UNKNOWN_YET;
    if (text.ptr[at + 1] == 'u') {
        char want[12];
        size_t size = str_utf8_size(value, *unit);
        size = size ? size : 1;
        size_t length = json_escape(value, *unit, size, want);
        *unit += size;
        return take_text(text, at, want, length);
    }
    ++*unit;
    for (size_t i = 0; escapes[i]; i += 2) {
        if (escapes[i] == text.ptr[at + 1]) return escapes[i + 1] == c ? 2 : 0;
    }
    return 0;
}

static int take_hex(struct str text, size_t at, struct str value, size_t unit)
{
    unsigned char byte = (unsigned char)value.ptr[unit / 2];
    int nibble = unit % 2 ? byte & 15 : byte >> 4;
    // 73:65:63, 73 65 63
    if (unit % 2 == 0 && unit && (text.ptr[at] == ':' || text.ptr[at] == ' ')) {
        if (at + 1 >= text.len) return UNKNOWN_YET;
        return char_hex(text.ptr[at + 1]) == nibble ? 2 : 0;
    }
    return char_hex(text.ptr[at]) == nibble;
}

static int take_base64(struct str text, size_t at, char c)
{
    char t = text.ptr[at];
    t = t == '-' ? '+' : t == '_' ? '/' : t;
    return t == c;
}

static int take_utf16(struct str text, size_t at, char c, bool little)
{
    const char want[2] = {little ? c : '\0', little ? '\0' : c};
    for (size_t i = 0; i < 2; i++) {
        if (at + i >= text.len) return UNKNOWN_YET;
        if (text.ptr[at + i] != want[i]) return 0;
    }
    return 2;
}

// Bytes of the text that are the next unit, 0 when it is something else, UNKNOWN_YET. Advances *unit.
static int take(const struct form *form, struct str text, size_t at, size_t *unit)
{
    if (at >= text.len) return UNKNOWN_YET;
    size_t here = *unit;
    if (form->kind == FORM_JSON) return take_json(text, at, form->text, unit);
    ++*unit;
    switch (form->kind) {
    case FORM_PLAIN:
        return text.ptr[at] == form->text.ptr[here];
    case FORM_URL:
        return take_url(text, at, form->text.ptr[here]);
    case FORM_HEX:
        return take_hex(text, at, form->text, here);
    case FORM_BASE64:
        return take_base64(text, at, form->text.ptr[here]);
    case FORM_UTF16_LE:
    case FORM_UTF16_BE:
        return take_utf16(text, at, form->text.ptr[here], form->kind == FORM_UTF16_LE);
    case FORM_JSON:
        break;
    }
    return 0;
}

static size_t wrap_size(struct str text, size_t at)
{
    size_t i = at;
    while (i < text.len && (text.ptr[i] == '\r' || text.ptr[i] == '\n')) i++;
    if (i == at) return 0;
    while (i < text.len && (text.ptr[i] == ' ' || text.ptr[i] == '\t')) i++;
    return i - at <= WRAP_SIZE_MAX ? i - at : 0;
}

// Length of the match at `at`, 0 when there is none, UNKNOWN_YET when more text could make one.
static ptrdiff_t match(const struct form *form, struct str text, size_t start)
{
    bool wraps = form->kind == FORM_BASE64 || form->kind == FORM_HEX;
    size_t units = form->kind == FORM_HEX ? form->text.len * 2 : form->text.len;
    size_t at = start;
    for (size_t unit = form->from; unit < units;) {
        if (wraps && unit >= form->from + WRAP_AFTER) at += wrap_size(text, at);
        int size = take(form, text, at, &unit);
        if (size <= 0) return size;
        at += (size_t)size;
    }
    return (ptrdiff_t)(at - start);
}

static void add_form(struct mask *mask, enum form_kind kind, size_t from, struct str text)
{
    struct form *forms = mask->failed ? NULL
                                      : arena_grow(mask->arena, mask->forms, mask->count, mask->count + 1,
                                                   sizeof(*forms), &mask->capacity);
    mask->failed = !forms;
    if (!forms) return;
    mask->forms = forms;
    forms[mask->count++] = (struct form){kind, from, text};
}

// A wrapped form, and once more without its first units, for a line break among them.
static void add_wrapped(struct mask *mask, enum form_kind kind, struct str text, size_t units)
{
    add_form(mask, kind, 0, text);
    if (units >= TAIL_MIN + WRAP_AFTER - 1) add_form(mask, kind, WRAP_AFTER - 1, text);
}

// The code of `value` behind `before` unknown bytes. Characters that also hold bits of neighbours are left out, but for the
// last one when the value is the end of what was encoded: that is a form of its own, with and without its padding.
static void add_base64(struct mask *mask, struct str value, size_t before)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t bits = (before + value.len) * 8;
    size_t first = (before * 8 + 5) / 6, certain = bits / 6, last = (bits + 5) / 6;
    char *code = mask->failed ? NULL : arena_alloc(mask->arena, last + 3);
    if (!code) {
        mask->failed = true;
        return;
    }
    for (size_t i = 0; i < last; i++) {
        unsigned group = 0;
        for (size_t bit = i * 6; bit < i * 6 + 6; bit++) {
            bool known = bit >= before * 8 && bit < bits;
            unsigned byte = known ? (unsigned char)value.ptr[bit / 8 - before] : 0;
            group = group << 1 | (byte >> (7 - bit % 8) & 1);
        }
        code[i] = alphabet[group];
    }
    size_t padded = last + (4 - last % 4) % 4;
    memset(code + last, '=', padded - last);
    if (certain - first >= VALUE_MIN)
        add_wrapped(mask, FORM_BASE64, (struct str){code + first, certain - first}, certain - first);
    if (last > certain) {
        add_wrapped(mask, FORM_BASE64, (struct str){code + first, last - first}, last - first);
        add_wrapped(mask, FORM_BASE64, (struct str){code + first, padded - first}, padded - first);
    }
}

static void add_lines(struct mask *mask, struct str value)
{
    struct str rest = value;
    for (size_t i = 0; i < LINES_MAX && rest.len; i++) {
        struct str line = str_trim(str_cut(rest, '\n', &rest));
        if (line.len >= LINE_MIN && line.len < value.len) add_form(mask, FORM_PLAIN, 0, line);
    }
}

static bool is_ascii(struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.ptr[i] >= 0x80) return false;
    }
    return true;
}

// JSON in JSON and an address in an address: the value escaped once, in every way that it can be escaped again. What needs no escape has
// the same form in both.
static void add_escaped_twice(struct mask *mask, struct str value)
{
    struct buf json SCOPED(buf_release) = buf_of(8 * SECRET_SIZE_MAX),
                    url SCOPED(buf_release) = buf_of(8 * SECRET_SIZE_MAX);
    json_write_string(&json, value);
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        if (char_is_word(c) || strchr("-.~", c))
            buf_byte(&url, c);
        else
            buf_printf(&url, "%%%02X", (unsigned char)c);
    }
    bool good = buf_ok(&json) && buf_ok(&url);
    struct str once = good ? arena_copy(mask->arena, str_slice(buf_str(&json), 1, json.len - 1)) : (struct str){NULL, 0};
    struct str address = good ? arena_copy(mask->arena, buf_str(&url)) : (struct str){NULL, 0};
    mask->failed |= !once.ptr || !address.ptr;
    if (once.ptr && once.len != value.len) add_form(mask, FORM_JSON, 0, once);
    if (address.ptr && address.len != value.len) add_form(mask, FORM_URL, 0, address);
    secret_wipe(buf_str(&json));
    secret_wipe(buf_str(&url));
}

static void add_value(struct mask *mask, struct str value)
{
    add_form(mask, FORM_PLAIN, 0, value);
    add_form(mask, FORM_URL, 0, value);
    add_form(mask, FORM_JSON, 0, value);
    if (str_utf8(value)) add_escaped_twice(mask, value);
    add_wrapped(mask, FORM_HEX, value, value.len * 2);
    for (size_t before = 0; before < 3; before++) add_base64(mask, value, before);
    if (is_ascii(value)) {
        add_form(mask, FORM_UTF16_LE, 0, value);
        add_form(mask, FORM_UTF16_BE, 0, value);
    }
    if (str_find(value, '\n', 0) < value.len) add_lines(mask, value);
}

static bool can_begin(const struct form *form, unsigned byte)
{
    char c = (char)byte;
    return match(form, (struct str){&c, 1}, 0) != 0;
}

static void index_forms(struct mask *mask)
{
    size_t total = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        for (size_t i = 0; i < mask->count; i++) total += can_begin(&mask->forms[i], byte);
    }
    mask->by_first = ARENA_ARRAY(mask->arena, total + 1, uint32_t);
    mask->failed = !mask->by_first;
    uint32_t used = 0;
    for (unsigned byte = 0; byte < 256 && !mask->failed; byte++) {
        mask->first[byte] = used;
        for (size_t i = 0; i < mask->count; i++) {
            if (can_begin(&mask->forms[i], byte)) mask->by_first[used++] = (uint32_t)i;
        }
    }
    mask->first[256] = used;
}

struct mask *mask_new(const struct secret_value *values, size_t count, struct arena *arena)
{
    struct mask *mask = ARENA_NEW(arena, struct mask);
    if (!mask) return NULL;
    mask->arena = arena;
    for (size_t i = 0; i < count && !mask->failed; i++) {
        struct str copy = values[i].value.len >= VALUE_MIN ? arena_copy(arena, values[i].value) : STR("");
        if (!copy.ptr)
            mask->failed = true;
        else if (copy.len)
            add_value(mask, copy);
    }
    if (!mask->failed) index_forms(mask);
    if (!mask->failed) return mask;
    mask_wipe(mask);
    return NULL;
}

void mask_wipe(struct mask *mask)
{
    for (size_t i = 0; mask && i < mask->count; i++) secret_wipe(mask->forms[i].text);
    if (mask) mask->count = 0;
}

void mask_stream_init(struct mask_stream *stream, const struct mask *mask)
{
    *stream = (struct mask_stream){.mask = mask};
    buf_init(&stream->held, HELD_MAX);
}

void mask_stream_release(struct mask_stream *stream)
{
    secret_wipe(buf_str(&stream->held));
    buf_release(&stream->held);
}

// The longest match at `at`, or UNKNOWN_YET.
static ptrdiff_t longest(const struct mask *mask, struct str text, size_t at, bool end)
{
    unsigned byte = (unsigned char)text.ptr[at];
    ptrdiff_t best = 0;
    for (uint32_t i = mask->first[byte]; i < mask->first[byte + 1]; i++) {
        ptrdiff_t size = match(&mask->forms[mask->by_first[i]], text, at);
        if (size == UNKNOWN_YET && !end) return UNKNOWN_YET;
        if (size > best) best = size;
    }
    return best;
}

// Bytes of `text` that are settled; what is to be seen of them is appended to `out`.
static size_t replace(struct mask_stream *stream, struct str text, bool end, struct buf *out)
{
    size_t at = 0, shown = 0;
    size_t covered_to = stream->covered;
    for (; at < text.len; at++) {
        ptrdiff_t size = longest(stream->mask, text, at, end);
        if (size == UNKNOWN_YET) break;
        if (size == 0) continue;
        if (at >= covered_to) {
            size_t from = shown > covered_to ? shown : covered_to;
            buf_add(out, str_slice(text, from, at));
            buf_add(out, STR("***"));
            shown = at;
        }
        if (at + (size_t)size > covered_to) covered_to = at + (size_t)size;
    }
    size_t from = shown > covered_to ? shown : covered_to;
    if (from < at) buf_add(out, str_slice(text, from, at));
    stream->covered = covered_to > at ? covered_to - at : 0;
    return at;
}

void mask_feed(struct mask_stream *stream, struct str bytes, bool end, struct buf *out)
{
    if (!stream->mask || stream->mask->count == 0) {
        buf_add(out, bytes);
        return;
    }
    buf_add(&stream->held, bytes);
    if (!buf_ok(&stream->held)) {
        // From here on nobody knows whether a secret has begun: the buffer stays failed and nothing more is shown.
        out->failed = true;
        return;
    }
    struct str text = buf_str(&stream->held);
    size_t settled = replace(stream, text, end, out);
    memmove(stream->held.ptr, stream->held.ptr + settled, text.len - settled);
    stream->held.len = text.len - settled;
    // What has moved down is still behind the end.
    explicit_bzero(stream->held.ptr + stream->held.len, settled);
}
