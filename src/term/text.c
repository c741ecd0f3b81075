#include "term/text.h"

static uint32_t decode(struct str text, size_t at, size_t size)
{
    const unsigned char *p = (const unsigned char *)text.ptr + at;
    if (size == 1) return p[0];
    uint32_t c = p[0] & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++) c = c << 6 | (p[i] & 0x3Fu);
    return c;
}

static bool is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2028 && c <= 0x2029) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF ||
           (c >= 0xE0000 && c <= 0xE007F);
}

static void add_escape(struct buf *out, uint32_t c, bool is_byte)
{
    if (c == '\n' && !is_byte)
        buf_text(out, "\\n");
    else if (c == '\t' && !is_byte)
        buf_text(out, "\\t");
    else if (c == '\r' && !is_byte)
        buf_text(out, "\\r");
    else if (c < 0x100)
        buf_printf(out, "\\x%02x", (unsigned)c);
    else
        buf_printf(out, "\\u%04x", (unsigned)c);
}

static void add_safe(struct buf *out, struct str text, bool lines)
{
    size_t from = 0;
    for (size_t i = 0; i < text.len;) {
        size_t size = str_utf8_size(text, i);
        uint32_t c = size ? decode(text, i, size) : (unsigned char)text.ptr[i];
        bool keep = size && (!is_hidden(c) || (lines && (c == '\n' || c == '\t')));
        if (!keep) {
            buf_add(out, str_slice(text, from, i));
            add_escape(out, c, size == 0);
            from = i + (size ? size : 1);
        }
        i += size ? size : 1;
    }
    buf_add(out, str_slice(text, from, text.len));
}

void text_safe(struct buf *out, struct str text)
{
    add_safe(out, text, false);
}

void text_safe_lines(struct buf *out, struct str text)
{
    add_safe(out, text, true);
}

void text_safe_json(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len;) {
        size_t size = str_utf8_size(text, i);
        uint32_t c = size ? decode(text, i, size) : 0xFFFD;
        if (c == '\n' || (size && !is_hidden(c)))
            buf_add(out, str_slice(text, i, i + size));
        else if (c < 0x10000)
            buf_printf(out, "\\u%04x", (unsigned)c);
        else
            buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xD7C0 + (c >> 10)), (unsigned)(0xDC00 | (c & 0x3FF)));
        i += size ? size : 1;
    }
}

struct range {
    uint32_t first, last;
};

static bool in_ranges(uint32_t c, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (c >= ranges[i].first && c <= ranges[i].last) return true;
    return false;
}

static size_t char_width(uint32_t c)
{
    static const struct range zero[] = {{0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},
                                        {0x64B, 0x65F},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF},
                                        {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
    static const struct range wide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},  {0x3400, 0x4DBF},
                                        {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},
                                        {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F},
                                        {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
    if (c < 0x300) return 1;
    if (in_ranges(c, zero, ARRAY_COUNT(zero))) return 0;
    return in_ranges(c, wide, ARRAY_COUNT(wide)) ? 2 : 1;
}

// Bytes of the colour sequence at `at`, or 0.
static size_t color_size(struct str text, size_t at)
{
    if (text.len - at < 3 || text.ptr[at] != '\x1b' || text.ptr[at + 1] != '[') return 0;
    size_t end = str_find(text, 'm', at);
    return end < text.len ? end + 1 - at : 0;
}

size_t text_width(struct str text)
{
    size_t width = 0;
    for (size_t i = 0; i < text.len;) {
        size_t color = color_size(text, i);
        size_t size = str_utf8_size(text, i);
        if (color == 0) width += size ? char_width(decode(text, i, size)) : 1;
        i += color ? color : size ? size : 1;
    }
    return width;
}

void text_cut(struct buf *out, struct str text, size_t columns, bool utf8)
{
    if (text_width(text) <= columns) {
        buf_add(out, text);
        return;
    }
    size_t width = 0, i = 0;
    bool colored = false;
    while (i < text.len) {
        size_t color = color_size(text, i);
        size_t size = str_utf8_size(text, i);
        size_t step = color ? 0 : size ? char_width(decode(text, i, size)) : 1;
        if (width + step + 1 > columns) break;
        width += step;
        colored = colored || color > 0;
        i += color ? color : size ? size : 1;
    }
    buf_add(out, str_slice(text, 0, i));
    if (columns > 0) buf_text(out, utf8 ? "…" : "~");
    if (colored) buf_text(out, "\x1b[0m");
}

void text_pad(struct buf *out, size_t width, size_t columns)
{
    for (; width < columns; width++) buf_byte(out, ' ');
}

void text_trim(struct buf *out)
{
    while (out->len > 0 && out->ptr[out->len - 1] == ' ') out->ptr[--out->len] = '\0';
}

static void wrap_paragraph(struct buf *out, struct str text, size_t indent, size_t columns)
{
    size_t at = 0;
    while (text.len > 0) {
        struct str word = str_cut(text, ' ', &text);
        if (word.len == 0) continue;
        size_t width = text_width(word);
        if (at > 0 && at + 1 + width > columns) {
            buf_byte(out, '\n');
            at = 0;
        }
        if (at == 0)
            text_pad(out, 0, indent);
        else
            buf_byte(out, ' ');
        buf_add(out, word);
        at = (at ? at + 1 : indent) + width;
    }
    buf_byte(out, '\n');
}

void text_wrap(struct buf *out, struct str text, size_t indent, size_t columns)
{
    while (text.len > 0) wrap_paragraph(out, str_cut(text, '\n', &text), indent, columns);
}

const char *nearest_name(struct str text, const char *const *names, size_t count)
{
    size_t limit = text.len < 4 ? 1 : text.len < 8 ? 2 : 3;
    const char *best = NULL;
    size_t best_distance = limit + 1;
    for (size_t i = 0; i < count; i++) {
        size_t distance = str_distance(text, str_from(names[i]), limit);
        if (distance < best_distance) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}
