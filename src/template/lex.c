// Tokens of expressions. They are read when the parser asks, because what ends an expression depends on where it stands:
// "}}" closes a print only when no bracket is open.
#include "json/integer.h"
#include "template/internal.h"

#include <string.h>

#undef parser_fault // the analyzer's
#undef parser_nomem

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

void text_position(struct str text, size_t at, uint32_t *line, uint32_t *column)
{
    *line = 1;
    size_t start = 0;
    for (size_t i = 0; i < at && i < text.len; i++) {
        if (text.ptr[i] != '\n') continue;
        ++*line;
        start = i + 1;
    }
    *column = (uint32_t)(at - start) + 1;
}

enum code parser_fault(const struct parser *p, enum code code, size_t at, const char *what, struct str name)
{
    uint32_t line, column;
    text_position(p->text, at, &line, &column);
    return error_at(p->err, code, line, column, "template: %s%s%.*s", what, name.len ? ": " : "",
                    name.len > 80 ? 80 : (int)name.len, name.ptr);
}

// ---- numbers

static int digit_value(char c)
{
    if (char_is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'z') return c - 'a' + 10;
    return c >= 'A' && c <= 'Z' ? c - 'A' + 10 : 99;
}

static struct str cut_prefix(struct str text, int *base)
{
    char letter = text.len > 2 && text.ptr[0] == '0' ? text.ptr[1] : 0;
    int meant = letter == 'x' || letter == 'X'   ? 16
                : letter == 'o' || letter == 'O' ? 8
                : letter == 'b' || letter == 'B' ? 2
                                                 : 0;
    if (!meant || (*base && *base != meant)) {
        if (!*base) *base = 10;
        return text;
    }
    *base = meant;
    text = str_slice(text, 2, text.len);
    if (text.ptr[0] == '_') text = str_slice(text, 1, text.len);
    return text;
}

enum code text_int(struct arena *arena, struct str text, int base, struct json *out)
{
    text = text_strip(text, (struct str){0}, true, true, true);
    bool negative = text.len && text.ptr[0] == '-';
    if (text.len && (text.ptr[0] == '-' || text.ptr[0] == '+')) text = str_slice(text, 1, text.len);
    text = cut_prefix(text, &base);
    return integer_read(arena, text, (unsigned)base, negative, out);
}

// Digits with single underscores between them, copied without.
static size_t copy_digits(struct str text, size_t at, char *out, size_t *len, size_t max)
{
    size_t start = at;
    while (at < text.len) {
        if (char_is_digit(text.ptr[at])) {
            if (*len == max) return start;
            out[(*len)++] = text.ptr[at++];
        } else if (text.ptr[at] == '_' && at > start && at + 1 < text.len && char_is_digit(text.ptr[at + 1])) {
            at++;
        } else {
            break;
        }
    }
    return at;
}

// Rewritten as JSON has numbers, so that there is one reader of doubles.
bool text_float(struct str text, double *out)
{
    char number[JSON_NUMBER_SIZE_MAX];
    size_t len = 0, max = sizeof(number) - 16;
    text = text_strip(text, (struct str){0}, true, true, true);
    size_t at = 0;
    if (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+')) {
        if (text.ptr[at] == '-') number[len++] = '-';
        at++;
    }
    size_t start = at;
    for (;;) { // JSON has no zeros in front, with or without an underscore behind them
        size_t next = at + 1 < text.len && text.ptr[at + 1] == '_' ? at + 2 : at + 1;
        if (next >= text.len || text.ptr[at] != '0' || !char_is_digit(text.ptr[next])) break;
        at = next;
    }
    size_t whole = at;
    at = copy_digits(text, at, number, &len, max);
    bool any = at > start;
    if (at == whole) number[len++] = '0';
    if (at < text.len && text.ptr[at] == '.') {
        number[len++] = '.';
        size_t before = len;
        at = copy_digits(text, at + 1, number, &len, max);
        any |= len > before;
        if (len == before) number[len++] = '0';
    }
    if (!any) return false;
    if (at < text.len && (text.ptr[at] == 'e' || text.ptr[at] == 'E')) {
        number[len++] = 'e';
        at++;
        if (at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+')) number[len++] = text.ptr[at++];
        size_t before = len;
        at = copy_digits(text, at, number, &len, sizeof(number) - 1);
        if (len == before) return false;
    }
    if (at != text.len) return false;
    struct json lexeme = json_number((struct str){number, len});
    return json_double(&lexeme, out);
}

static size_t skip_digits(struct str text, size_t at)
{
    while (at < text.len &&
           (char_is_digit(text.ptr[at]) || (text.ptr[at] == '_' && at + 1 < text.len && char_is_digit(text.ptr[at + 1]))))
        at++;
    return at;
}

// Where a number ends, and whether it has a fraction or an exponent.
static size_t number_end(struct str text, size_t at, bool after_dot, bool *is_float)
{
    *is_float = false;
    char second = at + 1 < text.len ? text.ptr[at + 1] : 0;
    if (text.ptr[at] == '0' && second && strchr("xXoObB", second)) {
        size_t end = at + 2;
        while (end < text.len && (digit_value(text.ptr[end]) < 16 || text.ptr[end] == '_')) end++;
        return end;
    }
    size_t end = skip_digits(text, at);
    if (after_dot) return end; // x.0.1
    if (end + 1 < text.len && text.ptr[end] == '.' && char_is_digit(text.ptr[end + 1])) {
        end = skip_digits(text, end + 1);
        *is_float = true;
    }
    if (end < text.len && (text.ptr[end] == 'e' || text.ptr[end] == 'E')) {
        size_t digits = end + 1;
        if (digits < text.len && (text.ptr[digits] == '+' || text.ptr[digits] == '-')) digits++;
        if (digits < text.len && char_is_digit(text.ptr[digits])) {
            end = skip_digits(text, digits);
            *is_float = true;
        }
    }
    return end;
}

static enum code read_number(struct parser *p)
{
    bool is_float;
    size_t start = p->at;
    size_t end = number_end(p->text, start, start && p->text.ptr[start - 1] == '.', &is_float);
    struct str text = str_slice(p->text, start, end);
    p->token.text = text;
    p->at = end;
    if (is_float) {
        double value;
        p->token.kind = TOKEN_FLOAT;
        if (!text_float(text, &value)) return parser_fault(p, E_LIMIT, start, "a number beyond a double", text);
        p->token.value = value_float(value);
        return OK;
    }
    p->token.kind = TOKEN_INT;
    enum code rc = text_int(p->arena, text, 0, &p->token.value);
    if (rc == E_NOMEM) return error_nomem(p->err);
    if (rc == E_LIMIT) return parser_fault(p, rc, start, "an integer of too many digits", text);
    bool padded = text.len > 1 && text.ptr[0] == '0' && char_is_digit(text.ptr[1]);
    if (rc || (padded && integer_sign(&p->token.value)))
        return parser_fault(p, E_INVALID, start, "not a number", text);
    return OK;
}

// ---- strings

static size_t hex_escape(struct str s, size_t at, size_t count, uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        if (at + i >= s.len || digit_value(s.ptr[at + i]) > 15) return 0;
        *out = *out * 16 + (uint32_t)digit_value(s.ptr[at + i]);
    }
    return count;
}

// One escape, `at` behind the backslash. Returns its size, 0 when it is malformed.
static size_t escape(struct str s, size_t at, struct buf *out)
{
    static const char plain[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    char c = s.ptr[at];
    uint32_t code = 0;
    size_t size = 1;
    if (c == '\n') return 1;
    for (size_t i = 0; i + 1 < sizeof(plain); i += 2) {
        if (plain[i] != c) continue;
        buf_byte(out, plain[i + 1]);
        return 1;
    }
    if (c == 'x' || c == 'u' || c == 'U') {
        size_t digits = hex_escape(s, at + 1, c == 'x' ? 2 : c == 'u' ? 4 : 8, &code);
        if (!digits) return 0;
        size += digits;
    } else if (c >= '0' && c <= '7') {
        for (size = 0; size < 3 && at + size < s.len && s.ptr[at + size] >= '0' && s.ptr[at + size] <= '7'; size++)
            code = code * 8 + (uint32_t)(s.ptr[at + size] - '0');
    } else if (c == 'N') {
        return 0;
    } else {
        buf_byte(out, '\\');
        buf_byte(out, c);
        return 1;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0;
    buf_code_point(out, code);
    return size;
}

static enum code unescape(struct parser *p, struct str s, struct str *out)
{
    struct buf buf SCOPED(buf_release) = buf_of(s.len + 16);
    size_t fault = SIZE_MAX;
    for (size_t i = 0; i < s.len && fault == SIZE_MAX;) {
        if (s.ptr[i] != '\\') {
            buf_byte(&buf, s.ptr[i++]);
        } else {
            size_t size = escape(s, i + 1, &buf);
            if (!size) fault = i;
            i += 1 + size;
        }
    }
    bool ok = buf_ok(&buf);
    *out = arena_copy(p->arena, buf_str(&buf));
    if (fault != SIZE_MAX)
        return parser_fault(p, E_INVALID, (size_t)(s.ptr - p->text.ptr) + fault, "an escape that is not known", s);
    return ok && out->ptr ? OK : error_nomem(p->err);
}

static enum code read_string(struct parser *p)
{
    size_t start = p->at, end = start + 1;
    char quote = p->text.ptr[start];
    bool plain = true;
    while (end < p->text.len && p->text.ptr[end] != quote) {
        plain &= p->text.ptr[end] != '\\';
        end += p->text.ptr[end] == '\\' ? 2 : 1;
    }
    if (end >= p->text.len)
        return parser_fault(p, E_INVALID, start, "a text without its closing quote", (struct str){0});
    struct str inside = str_slice(p->text, start + 1, end);
    p->at = end + 1;
    p->token.kind = TOKEN_STRING;
    p->token.text = str_slice(p->text, start, p->at);
    enum code rc = plain ? OK : unescape(p, inside, &inside);
    p->token.value = json_string(inside);
    return rc;
}

// ---- tokens

static enum code read_operator(struct parser *p)
{
    static const char *const operators[] = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "(",
                                            ")",  "[",  "]",  "{",  "}",  "<",  ">", "=", ".", ":", "|", ","};
    struct str rest = str_slice(p->text, p->at, p->text.len);
    for (size_t i = 0; i < ARRAY_COUNT(operators); i++) {
        struct str text = str_from(operators[i]);
        if (!str_starts(rest, text)) continue;
        p->token.kind = TOKEN_OPERATOR;
        p->token.text = text;
        p->at += text.len;
        if (strchr("([{", text.ptr[0])) p->open++;
        if (strchr(")]}", text.ptr[0]) && p->open) p->open--;
        return OK;
    }
    return parser_fault(p, E_INVALID, p->at, "unexpected character", str_slice(rest, 0, 1));
}

// Is here the end of the braces that the expression stands in?
static bool read_end(struct parser *p)
{
    if (p->place == END_EXPRESSION || p->open) return false;
    struct str end = p->place == END_PRINT ? STR("}}") : STR("%}");
    struct str rest = str_slice(p->text, p->at, p->text.len);
    bool trims = rest.len && (rest.ptr[0] == '-' || (rest.ptr[0] == '+' && p->place == END_BLOCK));
    if (!str_starts(str_slice(rest, trims, rest.len), end)) return false;
    p->token.kind = p->place == END_PRINT ? TOKEN_PRINT_END : TOKEN_BLOCK_END;
    p->token.trims = trims && rest.ptr[0] == '-';
    p->token.text = str_slice(rest, 0, end.len + trims);
    p->at += p->token.text.len;
    return true;
}

enum code token_next(struct parser *p)
{
    while (p->at < p->text.len && strchr(" \t\r\n\v\f", p->text.ptr[p->at]) && p->text.ptr[p->at]) p->at++;
    p->token = (struct lexeme){.at = (uint32_t)p->at};
    if (p->at >= p->text.len) {
        p->token.kind = TOKEN_END;
        return OK;
    }
    char c = p->text.ptr[p->at];
    if (read_end(p)) return OK;
    if (char_is_digit(c)) return read_number(p);
    if (c == '\'' || c == '"') return read_string(p);
    if (!is_letter(c)) return read_operator(p);
    size_t end = p->at;
    while (end < p->text.len && (is_letter(p->text.ptr[end]) || char_is_digit(p->text.ptr[end]))) end++;
    p->token.kind = TOKEN_NAME;
    p->token.text = str_slice(p->text, p->at, end);
    p->at = end;
    return OK;
}

bool token_is(const struct parser *p, const char *text)
{
    return (p->token.kind == TOKEN_NAME || p->token.kind == TOKEN_OPERATOR) && str_is(p->token.text, text);
}

enum code token_accept(struct parser *p, const char *text, bool *accepted)
{
    *accepted = token_is(p, text);
    return *accepted ? token_next(p) : OK;
}

enum code token_expect(struct parser *p, const char *text)
{
    if (token_is(p, text)) return token_next(p);
    char what[64] = "expected ";
    size_t len = strlen(text);
    memcpy(what + 9, text, len < 20 ? len : 20);
    memcpy(what + 9 + (len < 20 ? len : 20), " and found", 11);
    return parser_fault(p, E_INVALID, p->token.at, what, p->token.text.len ? p->token.text : STR("the end"));
}
