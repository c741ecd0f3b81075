// The tags macro, call and with.
#include "template/internal.h"

// name = value, ...: `macro`: between parentheses, and values may be left out.
static enum code parse_params(struct parser *p, bool macro, struct block *b)
{
    struct arg **end = &b->params;
    uint32_t count = 0;
    enum code rc = macro ? token_expect(p, "(") : OK;
    while (!rc && p->token.kind == TOKEN_NAME) {
        struct arg *arg = ARENA_NEW(p->arena, struct arg);
        struct node *value = NULL;
        bool assigns = false, comma = false;
        if (!arg) return error_nomem(p->err);
        if (count++ == ARG_COUNT_MAX)
            return parser_fault(p, E_LIMIT, p->token.at, "more than 32 names", (struct str){0});
        arg->name = p->token.text;
        for (const struct arg *other = b->params; other; other = other->next)
            if (macro && str_eq(other->name, arg->name))
                return parser_fault(p, E_INVALID, p->token.at, "a parameter twice", arg->name);
        rc = token_next(p);
        if (!rc) rc = token_accept(p, "=", &assigns);
        if (!rc && !assigns && !macro) return parser_fault(p, E_INVALID, p->token.at, "expected =", p->token.text);
        if (!rc && assigns) rc = parse_expression(p, true, &value);
        arg->value = value;
        *end = arg;
        end = &arg->next;
        if (!rc) rc = token_accept(p, ",", &comma);
        if (!comma) break;
    }
    return rc || !macro ? rc : token_expect(p, ")");
}

static bool add_macro(struct parser *p, struct str name)
{
    struct known_macro *known = ARENA_NEW(p->arena, struct known_macro);
    if (!known) return false;
    *known = (struct known_macro){name, p->macros};
    p->macros = known;
    return true;
}

bool parser_knows_macro(const struct parser *p, struct str name)
{
    for (const struct known_macro *m = p->macros; m; m = m->next)
        if (str_eq(m->name, name)) return true;
    return p->in_macro && str_is(name, "caller");
}

enum code parse_macro(struct parser *p, struct blocks *list, size_t at)
{
    static const char *const ends[] = {"endmacro", NULL};
    struct block *b = block_add(p, list, BLOCK_MACRO, at);
    if (!b) return error_nomem(p->err);
    enum code rc = token_next(p);
    if (!rc && p->token.kind != TOKEN_NAME)
        return parser_fault(p, E_INVALID, p->token.at, "expected the name of a macro and found", p->token.text);
    b->text = p->token.text;
    if (!rc && !add_macro(p, b->text)) return error_nomem(p->err); // it may call itself
    if (!rc) rc = token_next(p);
    if (!rc) rc = parse_params(p, true, b);
    if (!rc) rc = close_braces(p);
    p->in_macro++;
    if (!rc) rc = parse_body(p, &b->body, ends);
    p->in_macro--;
    return rc ? rc : end_tag(p);
}

enum code parse_call_block(struct parser *p, struct blocks *list, size_t at)
{
    static const char *const ends[] = {"endcall", NULL};
    struct block *b = block_add(p, list, BLOCK_CALL, at);
    if (!b) return error_nomem(p->err);
    b->text = STR("caller");
    enum code rc = token_next(p);
    if (!rc && token_is(p, "(")) rc = parse_params(p, true, b);
    size_t from = p->token.at;
    if (!rc) rc = parse_expression(p, true, &b->expression);
    if (!rc && (b->expression->kind != NODE_CALL || b->expression->function))
        return parser_fault(p, E_INVALID, from, "a block can only call a macro", (struct str){0});
    if (!rc) rc = close_braces(p);
    if (!rc) rc = parse_body(p, &b->body, ends);
    return rc ? rc : end_tag(p);
}

enum code parse_with(struct parser *p, struct blocks *list, size_t at)
{
    static const char *const ends[] = {"endwith", NULL};
    struct block *b = block_add(p, list, BLOCK_WITH, at);
    if (!b) return error_nomem(p->err);
    enum code rc = token_next(p);
    if (!rc) rc = parse_params(p, false, b);
    if (!rc) rc = close_braces(p);
    if (!rc) rc = parse_body(p, &b->body, ends);
    return rc ? rc : end_tag(p);
}
