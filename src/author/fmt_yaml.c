// YAML, line by line, because the comments must stay: indentation by two, lists two deeper than their key, one blank after a
// dash and after a colon, no blanks at line ends, no two empty lines. Inside of texts and of {...} and [...] nothing is
// touched. The reader of the result decides whether the meaning stayed; this file need not know all of YAML.
#include "author/fmt.h"

#include <string.h>

enum { LEVELS_MAX = 80 };

struct level {
    size_t old, new; // columns
    bool list;
};

struct layout_state {
    struct buf *out;
    struct str text; // what is left
    struct level levels[LEVELS_MAX];
    size_t depth;
    bool held_blank; // an empty line waits to be written
    bool any;
};

static size_t lead(struct str line)
{
    size_t i = 0;
    while (i < line.len && line.ptr[i] == ' ') i++;
    return i;
}

static struct str trim_end(struct str line)
{
    while (line.len > 0 && strchr(" \t\r", line.ptr[line.len - 1])) line.len--;
    return line;
}

static bool next_line(struct layout_state *s, struct str *line)
{
    if (s->text.len == 0) return false;
    *line = str_cut(s->text, '\n', &s->text);
    return true;
}

static bool peek_line(const struct layout_state *s, struct str *line)
{
    struct str rest;
    if (s->text.len == 0) return false;
    *line = str_cut(s->text, '\n', &rest);
    return true;
}

static void put_line(struct layout_state *s, size_t column, struct str line)
{
    if (s->held_blank && s->any) buf_byte(s->out, '\n');
    s->held_blank = false;
    s->any = true;
    for (size_t i = 0; i < column; i++) buf_byte(s->out, ' ');
    buf_add(s->out, line);
    buf_byte(s->out, '\n');
}

static bool ends_word(struct str text, size_t at)
{
    return at >= text.len || text.ptr[at] == ' ' || text.ptr[at] == '\t';
}

// Past the end of a quoted text that starts at `at`, or text.len when it goes on in the next line.
static size_t skip_quoted(struct str text, size_t at, bool *closed)
{
    char quote = text.ptr[at++];
    for (; at < text.len; at++) {
        if (quote == '"' && text.ptr[at] == '\\')
            at++;
        else if (text.ptr[at] == quote && quote == '\'' && at + 1 < text.len && text.ptr[at + 1] == quote)
            at++;
        else if (text.ptr[at] == quote) {
            *closed = true;
            return at + 1;
        }
    }
    *closed = false;
    return text.len;
}

// The colon that ends a key at the start of `text`, or text.len when there is no key.
static size_t find_colon(struct str text)
{
    size_t at = 0;
    bool closed = true;
    if (text.len > 0 && (text.ptr[0] == '"' || text.ptr[0] == '\'')) {
        at = skip_quoted(text, 0, &closed);
        return closed && at < text.len && text.ptr[at] == ':' && ends_word(text, at + 1) ? at : text.len;
    }
    if (text.len > 0 && strchr("{[|>#&*!%@`", text.ptr[0])) return text.len;
    for (; at < text.len; at++) {
        if (text.ptr[at] == '#' && at > 0 && text.ptr[at - 1] == ' ') return text.len;
        if (text.ptr[at] == ':' && ends_word(text, at + 1)) return at;
    }
    return text.len;
}

// ---- values that go on in the next lines

enum inside { PLAIN = 1, FLOW, QUOTED, BLOCK, NOTHING };

static struct str skip_properties(struct str value)
{
    while (value.len > 0 && (value.ptr[0] == '&' || value.ptr[0] == '!')) {
        size_t end = str_find(value, ' ', 0);
        value = str_trim(str_slice(value, end, value.len));
    }
    return value;
}

static enum inside kind_of(struct str value)
{
    value = skip_properties(value);
    if (value.len == 0 || value.ptr[0] == '#') return NOTHING;
    if (value.ptr[0] == '|' || value.ptr[0] == '>') return BLOCK;
    if (value.ptr[0] == '{' || value.ptr[0] == '[') return FLOW;
    if (value.ptr[0] == '"' || value.ptr[0] == '\'') return QUOTED;
    return PLAIN;
}

struct flow {
    int depth;
    char quote; // open quote, 0 = none
};

static void scan_flow(struct flow *f, struct str line)
{
    for (size_t i = 0; i < line.len; i++) {
        char c = line.ptr[i];
        if (f->quote) {
            if (c == '\\' && f->quote == '"')
                i++;
            else if (c == f->quote)
                f->quote = 0; // '' opens again at once
        } else if (c == '"' || c == '\'') {
            bool word = i > 0 && !strchr(" ,:[{", line.ptr[i - 1]);
            if (!word) f->quote = c;
        } else if (c == '#' && (i == 0 || line.ptr[i - 1] == ' ')) {
            return;
        } else if (c == '{' || c == '[') {
            f->depth++;
        } else if (c == '}' || c == ']') {
            f->depth--;
        }
    }
}

// Lines that belong to a value move as far as the line that began it.
static void put_moved(struct layout_state *s, struct str line, size_t old, size_t new, bool trim)
{
    size_t from = lead(line);
    if (trim) line = trim_end(line);
    if (str_trim(line).len == 0) {
        put_line(s, 0, STR(""));
        return;
    }
    size_t column = from + new > old ? from + new - old : 0;
    put_line(s, column, str_slice(line, from, line.len));
}

// A block text: its lines go where its first line goes, two deeper than its owner. Line ends are part of it.
static void put_block(struct layout_state *s, struct str header, size_t old, size_t new)
{
    struct str line;
    bool found = false, fixed = false;
    size_t first = 0;
    header = skip_properties(header);
    for (size_t i = 1; i < header.len && header.ptr[i] != ' '; i++)
        fixed |= header.ptr[i] >= '1' && header.ptr[i] <= '9';
    while (peek_line(s, &line)) {
        bool blank = str_trim(line).len == 0;
        if (!blank && lead(line) <= old) return;
        if (!blank && !found) {
            first = fixed ? old + 2 : lead(line);
            found = true;
        }
        if (blank) {
            // Empty lines at the end belong to what follows; only the reader knows, so they stay as they are.
            struct layout_state ahead = *s;
            struct str next;
            bool more = false;
            while (next_line(&ahead, &next))
                if (str_trim(next).len > 0) {
                    more = lead(next) > old;
                    break;
                }
            if (!more) return;
        }
        (void)next_line(s, &line);
        if (str_ends(line, STR("\r"))) line.len--;
        if (blank && line.len <= first)
            put_line(s, 0, STR(""));
        else if (lead(line) >= first)
            put_line(s, new + 2 + lead(line) - first, str_slice(line, lead(line), line.len));
        else
            put_moved(s, line, first, new + 2, false);
    }
}

static void put_rest(struct layout_state *s, struct str value, size_t old, size_t new)
{
    struct str line;
    struct flow flow = {0};
    bool closed = true;
    switch (kind_of(value)) {
    case BLOCK:
        put_block(s, value, old, new);
        break;
    case FLOW:
        scan_flow(&flow, value);
        while ((flow.depth > 0 || flow.quote) && next_line(s, &line)) {
            scan_flow(&flow, line);
            put_moved(s, line, old, new, true);
        }
        break;
    case QUOTED: {
        struct str open = skip_properties(value);
        (void)skip_quoted(open, 0, &closed);
        char quote[2] = {open.ptr[0], 0};
        while (!closed && next_line(s, &line)) {
            struct buf joined SCOPED(buf_release) = buf_of((size_t)2 << 20);
            buf_text(&joined, quote);
            buf_add(&joined, line);
            (void)skip_quoted(buf_str(&joined), 0, &closed);
            if (!buf_ok(&joined)) closed = true;
            put_moved(s, line, old, new, true);
        }
        break;
    }
    case PLAIN:
        while (peek_line(s, &line) && str_trim(line).len > 0 && lead(line) > old && str_trim(line).ptr[0] != '#') {
            (void)next_line(s, &line);
            put_moved(s, line, old, new, true);
        }
        break;
    case NOTHING:
        break;
    }
}

// ---- structure

// The level that a line at this column belongs to; a new one when it is deeper than all.
static struct level *enter(struct layout_state *s, size_t old, bool list)
{
    while (s->depth > 0 && s->levels[s->depth - 1].old > old) s->depth--;
    struct level *top = s->depth > 0 ? &s->levels[s->depth - 1] : NULL;
    // A list may stand at the column of its key.
    if (top && top->old == old && top->list && !list) {
        s->depth--;
        top = s->depth > 0 ? &s->levels[s->depth - 1] : NULL;
    }
    if (top && top->old == old && top->list == list) return top;
    size_t new = top ? top->new + 2 : 0;
    if (s->depth == LEVELS_MAX) return top;
    s->levels[s->depth] = (struct level){old, new, list};
    return &s->levels[s->depth++];
}

static struct str one_blank_after(struct str content, size_t colon, struct buf *scratch)
{
    struct str value = str_trim(str_slice(content, colon + 1, content.len));
    if (value.len == 0 || value.ptr[0] == '#') return content;
    buf_clear(scratch);
    buf_add(scratch, str_slice(content, 0, colon + 1));
    buf_byte(scratch, ' ');
    buf_add(scratch, value);
    return buf_str(scratch);
}

// A line of structure: dashes, then a key, then a value, each of which may be missing.
static void put_structure(struct layout_state *s, struct str line, struct buf *scratch)
{
    size_t old = lead(line);
    struct str content = trim_end(str_slice(line, old, line.len));
    size_t column = SIZE_MAX;
    struct level *level = NULL;
    struct buf dashes SCOPED(buf_release) = buf_of(256);
    while (content.ptr[0] == '-' && ends_word(content, 1)) {
        level = enter(s, old, true);
        if (column == SIZE_MAX) column = level->new;
        struct str after = str_slice(content, 1, content.len);
        size_t blanks = lead(after);
        old += 1 + blanks;
        content = str_slice(after, blanks, after.len);
        buf_text(&dashes, content.len ? "- " : "-");
        if (content.len == 0) break;
    }
    size_t colon = find_colon(content);
    struct str value = content;
    size_t owner_old = level ? level->old : 0, owner_new = level ? level->new : 0;
    if (colon < content.len) {
        level = enter(s, old, false);
        if (column == SIZE_MAX) column = level->new;
        owner_old = level->old;
        owner_new = level->new;
        value = str_trim(str_slice(content, colon + 1, content.len));
        content = one_blank_after(content, colon, scratch);
    } else if (column == SIZE_MAX) {
        column = s->depth > 0 && old > s->levels[s->depth - 1].old ? s->levels[s->depth - 1].new + 2 : old;
        owner_old = old;
        owner_new = column;
    }
    buf_add(&dashes, content);
    put_line(s, column, buf_str(&dashes));
    put_rest(s, value, owner_old, owner_new);
}

// A comment goes with the next line of structure when it stands like it, else with what is around it.
static size_t comment_column(const struct layout_state *s, size_t old)
{
    struct layout_state ahead = *s;
    struct str line;
    while (next_line(&ahead, &line)) {
        struct str content = str_trim(line);
        if (content.len == 0 || content.ptr[0] == '#') continue;
        if (lead(line) != old) break;
        bool list = content.ptr[0] == '-' && ends_word(content, 1);
        return enter(&ahead, old, list)->new;
    }
    for (size_t i = s->depth; i > 0; i--)
        if (s->levels[i - 1].old <= old) return s->levels[i - 1].new + (old - s->levels[i - 1].old);
    return old;
}

void fmt_yaml(struct str text, struct buf *out)
{
    static const char bom[] = "\xEF\xBB\xBF";
    struct layout_state s = {.out = out, .text = text};
    struct str line;
    if (str_starts(s.text, str_from(bom))) s.text = str_slice(s.text, 3, s.text.len);
    struct buf scratch SCOPED(buf_release) = buf_of((size_t)2 << 20);
    while (next_line(&s, &line)) {
        struct str content = str_trim(line);
        if (content.len == 0)
            s.held_blank = true;
        else if (content.ptr[0] == '#')
            put_line(&s, comment_column(&s, lead(line)), content);
        else if (lead(line) == 0 && (str_starts(content, STR("---")) || content.ptr[0] == '%'))
            put_line(&s, 0, content);
        else
            put_structure(&s, line, &scratch);
    }
    if (!buf_ok(&scratch)) out->failed = true;
}
