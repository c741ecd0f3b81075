// Text, prints and tags. White space control is done here: what runs knows nothing of it.
#include "template/internal.h"

#include <string.h>

struct block *block_add(struct parser *p, struct blocks *list, enum block_kind kind, size_t at)
{
    struct block *b = ARENA_NEW(p->arena, struct block);
    if (!b) return NULL;
    b->kind = (uint8_t)kind;
    b->at = (uint32_t)at;
    *list->end = b;
    list->end = &b->next;
    return b;
}

static enum code add_text(struct parser *p, struct blocks *list, size_t from, size_t to, bool trim_end)
{
    struct str text = str_slice(p->text, from, to);
    text = text_strip(text, (struct str){0}, true, p->trim_next, trim_end);
    p->trim_next = false;
    if (!text.len) return OK;
    struct block *b = block_add(p, list, BLOCK_TEXT, from);
    if (!b) return error_nomem(p->err);
    b->text = text;
    return OK;
}

// {{ .Name }}: no expression begins with a dot. Other languages have such templates (docker --format), and theirs is left alone.
static bool is_foreign(struct str text, size_t at)
{
    if (text.ptr[at + 1] != '{') return false;
    at += 2;
    if (at < text.len && text.ptr[at] == '-') at++;
    while (at < text.len && text.ptr[at] == ' ') at++;
    return at < text.len && text.ptr[at] == '.';
}

// The next "{{", "{%" or "{#", or the end.
static size_t find_open(struct str text, size_t at)
{
    for (; (at = str_find(text, '{', at)) < text.len; at++) {
        bool opens = at + 1 < text.len && (text.ptr[at + 1] == '{' || text.ptr[at + 1] == '%' || text.ptr[at + 1] == '#');
        if (opens && !is_foreign(text, at)) return at;
        if (opens) at++;
    }
    return text.len;
}

static size_t find_text(struct str text, size_t at, struct str part)
{
    for (; at + part.len <= text.len; at++)
        if (!memcmp(text.ptr + at, part.ptr, part.len)) return at;
    return SIZE_MAX;
}

// Behind the end of the braces.
enum code close_braces(struct parser *p)
{
    if (p->token.kind == TOKEN_BLOCK_END || p->token.kind == TOKEN_PRINT_END) {
        p->trim_next = p->token.trims;
        return OK;
    }
    if (p->token.kind == TOKEN_END)
        return parser_fault(p, E_INVALID, p->token.at, p->place == END_PRINT ? "no closing }}" : "no closing %}",
                            (struct str){0});
    return parser_fault(p, E_INVALID, p->token.at, "unexpected", p->token.text);
}

static enum code parse_comment(struct parser *p, size_t at)
{
    size_t end = find_text(p->text, at + 2, STR("#}"));
    if (end == SIZE_MAX) return parser_fault(p, E_INVALID, at, "a comment without its #}", (struct str){0});
    p->has_comment = true;
    p->trim_next = end > at + 2 && p->text.ptr[end - 1] == '-';
    p->at = end + 2;
    return OK;
}

static enum code parse_print(struct parser *p, struct blocks *list, size_t at)
{
    p->place = END_PRINT;
    p->open = 0;
    struct block *b = block_add(p, list, BLOCK_PRINT, at);
    if (!b) return error_nomem(p->err);
    enum code rc = token_next(p);
    if (!rc) rc = parse_tuple(p, true, &b->expression);
    return rc ? rc : close_braces(p);
}

// ---- raw

static size_t skip_blanks(struct str text, size_t at)
{
    while (at < text.len && strchr(" \t\n\v\f", text.ptr[at]) && text.ptr[at]) at++;
    return at;
}

// "{% endraw %}" at `at`? Where it ends, and its trims.
static size_t endraw(struct str text, size_t at, bool *before, bool *after)
{
    size_t i = at + 2;
    *before = i < text.len && text.ptr[i] == '-';
    if (i < text.len && (text.ptr[i] == '-' || text.ptr[i] == '+')) i++;
    i = skip_blanks(text, i);
    if (!str_starts(str_slice(text, i, text.len), STR("endraw"))) return 0;
    i = skip_blanks(text, i + 6);
    *after = i < text.len && text.ptr[i] == '-';
    if (i < text.len && (text.ptr[i] == '-' || text.ptr[i] == '+')) i++;
    return str_starts(str_slice(text, i, text.len), STR("%}")) ? i + 2 : 0;
}

static enum code parse_raw(struct parser *p, struct blocks *list, size_t at)
{
    enum code rc = token_next(p);
    if (!rc) rc = close_braces(p);
    if (rc) return rc;
    size_t start = p->at;
    for (size_t i = start; (i = find_text(p->text, i, STR("{%"))) != SIZE_MAX; i++) {
        bool before, after;
        size_t end = endraw(p->text, i, &before, &after);
        if (!end) continue;
        rc = add_text(p, list, start, i, before);
        p->trim_next = after;
        p->at = end;
        return rc;
    }
    return parser_fault(p, E_INVALID, at, "raw without its endraw", (struct str){0});
}

// ---- tags

static enum code parse_targets(struct parser *p, bool set, struct block *b)
{
    struct str *names = ARENA_ARRAY(p->arena, TARGET_COUNT_MAX, struct str);
    bool paren = false, comma = true;
    if (!names) return error_nomem(p->err);
    enum code rc = token_accept(p, "(", &paren);
    while (!rc && comma) {
        if (p->token.kind != TOKEN_NAME || token_is(p, "in")) {
            if (b->target_count) break; // a, = ...
            return parser_fault(p, E_INVALID, p->token.at, "expected a name and found", p->token.text);
        }
        if (b->target_count == TARGET_COUNT_MAX)
            return parser_fault(p, E_LIMIT, p->token.at, "more than 8 names", (struct str){0});
        names[b->target_count++] = p->token.text;
        rc = token_next(p);
        bool member = false;
        if (!rc && set && b->target_count == 1) rc = token_accept(p, ".", &member);
        if (!rc && member) { // of a namespace
            if (p->token.kind != TOKEN_NAME)
                return parser_fault(p, E_INVALID, p->token.at, "expected a name behind the dot", p->token.text);
            b->text = p->token.text;
            rc = token_next(p);
            break;
        }
        if (!rc) rc = token_accept(p, ",", &comma);
        b->unpacks |= comma;
    }
    b->targets = names;
    return rc || !paren ? rc : token_expect(p, ")");
}

// The tag that ends a body is the token; it takes nothing more.
enum code end_tag(struct parser *p)
{
    enum code rc = token_next(p);
    return rc ? rc : close_braces(p);
}

static enum code parse_if(struct parser *p, struct blocks *list, size_t at)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    static const char *const last[] = {"endif", NULL};
    struct block *b = block_add(p, list, BLOCK_IF, at);
    if (!b) return error_nomem(p->err);
    for (int branches = 0;; branches++) { // elif is an if in the else
        enum code rc = token_next(p);
        if (!rc) rc = parse_tuple(p, true, &b->expression);
        if (!rc) rc = close_braces(p);
        if (!rc) rc = parse_body(p, &b->body, ends);
        if (rc) return rc;
        if (!token_is(p, "elif")) break;
        if (branches == BRANCH_COUNT_MAX)
            return parser_fault(p, E_LIMIT, p->token.at, "more than 200 branches", (struct str){0});
        struct blocks rest = {&b->otherwise};
        b = block_add(p, &rest, BLOCK_IF, p->token.at);
        if (!b) return error_nomem(p->err);
    }
    if (!token_is(p, "else")) return end_tag(p);
    enum code rc = end_tag(p);
    if (!rc) rc = parse_body(p, &b->otherwise, last);
    return rc ? rc : end_tag(p);
}

static enum code parse_for(struct parser *p, struct blocks *list, size_t at)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    struct block *b = block_add(p, list, BLOCK_FOR, at);
    bool filtered = false;
    if (!b) return error_nomem(p->err);
    enum code rc = token_next(p);
    if (!rc) rc = parse_targets(p, false, b);
    if (!rc) rc = token_expect(p, "in");
    if (!rc) rc = parse_tuple(p, false, &b->expression);
    if (!rc) rc = token_accept(p, "if", &filtered);
    if (!rc && filtered) rc = parse_expression(p, true, &b->condition);
    if (!rc && token_is(p, "recursive"))
        return parser_fault(p, E_UNSUPPORTED, p->token.at, "recursive loops", (struct str){0});
    if (!rc) rc = close_braces(p);
    if (!rc) rc = parse_body(p, &b->body, ends);
    if (!rc && token_is(p, "else")) {
        rc = end_tag(p);
        if (!rc) rc = parse_body(p, &b->otherwise, ends + 1);
    }
    return rc ? rc : end_tag(p);
}

static enum code parse_set(struct parser *p, struct blocks *list, size_t at)
{
    static const char *const ends[] = {"endset", NULL};
    bool assigns = false;
    struct block *b = block_add(p, list, BLOCK_SET, at);
    if (!b) return error_nomem(p->err);
    enum code rc = token_next(p);
    if (!rc) rc = parse_targets(p, true, b);
    if (!rc) rc = token_accept(p, "=", &assigns);
    if (rc) return rc;
    if (assigns) {
        rc = parse_tuple(p, true, &b->expression);
        return rc ? rc : close_braces(p);
    }
    if (b->unpacks || b->text.len)
        return parser_fault(p, E_INVALID, p->token.at, "expected = and found", p->token.text);
    b->kind = BLOCK_CAPTURE;
    if (token_is(p, "|")) {
        b->expression = node_new(p, NODE_NAME, at); // the captured text, under a name that no template can write
        if (!b->expression) return error_nomem(p->err);
        b->expression->text = STR("{%set%}");
        rc = parse_filters(p, &b->expression);
    }
    if (!rc) rc = close_braces(p);
    if (!rc) rc = parse_body(p, &b->body, ends);
    return rc ? rc : end_tag(p);
}

static enum code parse_tag(struct parser *p, struct blocks *list, const char *const *ends, bool *ended)
{
    static const struct {
        const char *name;
        enum code (*parse)(struct parser *p, struct blocks *list, size_t at);
    } tags[] = {{"if", parse_if},       {"for", parse_for},         {"set", parse_set},  {"raw", parse_raw},
                {"macro", parse_macro}, {"call", parse_call_block}, {"with", parse_with}};
    size_t at = p->token.at;
    for (size_t i = 0; ends && ends[i]; i++) {
        *ended = token_is(p, ends[i]);
        if (*ended) return OK;
    }
    for (size_t i = 0; i < ARRAY_COUNT(tags); i++)
        if (token_is(p, tags[i].name)) return tags[i].parse(p, list, at);
    if (p->token.kind == TOKEN_END || p->token.kind == TOKEN_BLOCK_END)
        return parser_fault(p, E_INVALID, at, "an empty tag", (struct str){0});
    bool closes = str_starts(p->token.text, STR("end")) || token_is(p, "else") || token_is(p, "elif");
    return parser_fault(p, closes ? E_INVALID : E_UNSUPPORTED, at,
                        closes ? "a tag that closes nothing"
                               : "no such tag (if, for, set, raw, macro, call and with are known)",
                        p->token.text);
}

enum code parse_body(struct parser *p, struct block **out, const char *const *ends)
{
    struct blocks list = {out};
    size_t start = p->at;
    bool ended = false;
    enum code rc = OK;
    if (ends && p->nesting++ == NESTING_MAX)
        return parser_fault(p, E_LIMIT, start, "more than 32 levels of nesting", (struct str){0});
    while (!rc && !ended) {
        size_t from = p->at, at = find_open(p->text, from);
        bool trims = at + 2 < p->text.len && p->text.ptr[at + 2] == '-';
        rc = add_text(p, &list, from, at, trims);
        if (rc || at == p->text.len) {
            p->at = at;
            break;
        }
        char brace = p->text.ptr[at + 1];
        p->at = at + 2 + (trims || (at + 2 < p->text.len && p->text.ptr[at + 2] == '+' && brace == '%'));
        if (brace == '#') {
            rc = parse_comment(p, at);
        } else if (brace == '{') {
            rc = parse_print(p, &list, at);
        } else {
            p->place = END_BLOCK;
            p->open = 0;
            rc = token_next(p);
            if (!rc) rc = parse_tag(p, &list, ends, &ended);
        }
    }
    if (ends) p->nesting--;
    if (!rc && ends && !ended)
        return parser_fault(p, E_INVALID, start, "a block that is never closed; expected", str_from(ends[0]));
    return rc;
}

enum code parse_blocks(struct parser *p, struct block **out)
{
    return parse_body(p, out, NULL);
}
