// Expressions, one function a level of precedence, the levels being Jinja's: if, or, and, not, comparison, + -, ~, * / // %,
// ** (which leans to the left), sign, then members, calls, filters and tests.
#include "template/internal.h"

#include <string.h>

struct node *node_new(struct parser *p, enum node_kind kind, size_t at)
{
    struct node *n = ARENA_NEW(p->arena, struct node);
    if (!n) return NULL;
    n->kind = (uint8_t)kind;
    n->at = (uint32_t)at;
    n->depth = 1;
    return n;
}

static enum code deepen(struct parser *p, struct node *n, const struct node *child)
{
    if (child && child->depth >= n->depth) n->depth = (uint16_t)(child->depth + 1);
    if (n->depth <= DEPTH_MAX) return OK;
    return parser_fault(p, E_LIMIT, n->at, "an expression of more than 200 levels", (struct str){0});
}

static enum code enter(struct parser *p)
{
    if (p->nesting++ < NESTING_MAX) return OK;
    return parser_fault(p, E_LIMIT, p->token.at, "more than 32 levels of nesting", (struct str){0});
}

static enum code make(struct parser *p, enum node_kind kind, size_t at, struct node *a, struct node *b,
                      struct node **out)
{
    struct node *n = node_new(p, kind, at);
    if (!n) return error_nomem(p->err);
    n->a = a;
    n->b = b;
    enum code rc = deepen(p, n, a);
    if (!rc) rc = deepen(p, n, b);
    *out = n;
    return rc;
}

static enum code append(struct parser *p, struct node *n, struct str name, struct node *value, enum operator op)
{
    struct arg *arg = ARENA_NEW(p->arena, struct arg);
    if (!arg) return error_nomem(p->err);
    *arg = (struct arg){.name = name, .value = value, .op = op};
    if (n->args)
        n->last->next = arg;
    else
        n->args = arg;
    n->last = arg;
    n->arg_count++;
    return value ? deepen(p, n, value) : OK;
}

// ---- primaries

static enum code parse_items(struct parser *p, const char *close, struct node *n)
{
    enum code rc = OK;
    while (!rc && !token_is(p, close)) {
        if (n->arg_count && (rc = token_expect(p, ","))) break;
        if (token_is(p, close)) break;
        struct node *item = NULL;
        rc = parse_expression(p, true, &item);
        if (!rc) rc = append(p, n, (struct str){0}, item, 0);
        if (rc || n->kind != NODE_DICT) continue;
        struct node *value = NULL;
        rc = token_expect(p, ":");
        if (!rc) rc = parse_expression(p, true, &value);
        if (!rc) rc = append(p, n, (struct str){0}, value, 0);
    }
    return rc ? rc : token_expect(p, close);
}

static enum code parse_bracket(struct parser *p, struct node **out)
{
    size_t at = p->token.at;
    bool paren = token_is(p, "("), list = token_is(p, "[");
    enum code rc = enter(p);
    if (!rc) rc = token_next(p);
    if (rc) return rc;
    if (paren && !token_is(p, ")")) {
        rc = parse_tuple(p, true, out);
        if (!rc) rc = token_expect(p, ")");
    } else {
        struct node *n = node_new(p, paren ? NODE_TUPLE : list ? NODE_LIST : NODE_DICT, at);
        if (!n) return error_nomem(p->err);
        rc = parse_items(p, paren ? ")" : list ? "]" : "}", n);
        *out = n;
    }
    p->nesting--;
    return rc;
}

static enum code parse_strings(struct parser *p, struct node *n)
{
    struct str text = n->value.text;
    enum code rc;
    while (!(rc = token_next(p)) && p->token.kind == TOKEN_STRING) { // "a" "b"
        struct str more = p->token.value.text;
        char *joined = ARENA_ARRAY(p->arena, text.len + more.len + 1, char);
        if (!joined) return error_nomem(p->err);
        memcpy(joined, text.ptr, text.len);
        memcpy(joined + text.len, more.ptr, more.len);
        text = (struct str){joined, text.len + more.len};
        n->value = json_string(text);
    }
    return rc;
}

static bool is_word(struct str name, struct json *out)
{
    if (str_is(name, "true") || str_is(name, "True"))
        *out = json_bool(true);
    else if (str_is(name, "false") || str_is(name, "False"))
        *out = json_bool(false);
    else if (str_is(name, "none") || str_is(name, "None"))
        *out = json_null();
    else
        return false;
    return true;
}

static bool is_reserved(struct str name)
{
    return STR_AMONG(name, "and", "or", "not", "if", "else", "elif", "in", "is");
}

static enum code parse_primary(struct parser *p, struct node **out)
{
    if (token_is(p, "(") || token_is(p, "[") || token_is(p, "{")) return parse_bracket(p, out);
    struct lexeme token = p->token;
    struct node *n = node_new(p, NODE_CONST, token.at);
    if (!n) return error_nomem(p->err);
    *out = n;
    switch ((enum token_kind)token.kind) {
    case TOKEN_INT:
    case TOKEN_FLOAT:
        n->value = token.value;
        return token_next(p);
    case TOKEN_STRING:
        n->value = token.value;
        return parse_strings(p, n);
    case TOKEN_NAME:
        if (is_reserved(token.text)) break;
        if (!is_word(token.text, &n->value)) {
            n->kind = NODE_NAME;
            n->text = token.text;
        }
        return token_next(p);
    case TOKEN_END:
    case TOKEN_OPERATOR:
    case TOKEN_BLOCK_END:
    case TOKEN_PRINT_END:
        break;
    }
    return parser_fault(p, E_INVALID, token.at, "expected a value and found",
                        token.text.len ? token.text : STR("the end"));
}

// ---- members, calls, filters, tests

// "(" is the token.
static enum code parse_arguments(struct parser *p, struct node *n)
{
    enum code rc = enter(p);
    if (!rc) rc = token_next(p);
    bool named = false;
    while (!rc && !token_is(p, ")")) {
        if (n->arg_count && (rc = token_expect(p, ","))) break;
        if (token_is(p, ")")) break;
        if (token_is(p, "*") || token_is(p, "**"))
            return parser_fault(p, E_UNSUPPORTED, p->token.at, "* and ** in a call", (struct str){0});
        if (n->arg_count == ARG_COUNT_MAX)
            return parser_fault(p, E_LIMIT, p->token.at, "more than 32 arguments", (struct str){0});
        struct node *value = NULL;
        struct str name = {0};
        size_t at = p->token.at;
        rc = parse_expression(p, true, &value);
        if (!rc && token_is(p, "=") && value->kind == NODE_NAME && value->at == at) {
            name = value->text;
            rc = token_next(p);
            if (!rc) rc = parse_expression(p, true, &value);
            named = true;
        } else if (!rc && named) {
            return parser_fault(p, E_INVALID, at, "an argument by position behind one by name", (struct str){0});
        }
        if (!rc) rc = append(p, n, name, value, 0);
    }
    p->nesting--;
    return rc ? rc : token_expect(p, ")");
}

static enum code parse_subscript(struct parser *p, struct node **value)
{
    struct node *n = NULL, *part;
    size_t at = p->token.at;
    enum code rc = make(p, NODE_ITEM, at, *value, NULL, &n);
    if (!rc) rc = enter(p);
    if (!rc) rc = token_next(p);
    for (int parts = 0; !rc; parts++) {
        part = NULL;
        if (!token_is(p, ":") && !token_is(p, "]")) {
            rc = parse_expression(p, true, &part);
            if (rc) return rc;
        }
        if (!parts && part && token_is(p, "]")) {
            n->b = part;
            rc = deepen(p, n, part);
            break;
        }
        n->kind = NODE_SLICE;
        rc = append(p, n, (struct str){0}, part, 0);
        if (!rc && token_is(p, "]") && parts) break;
        if (!rc && parts == 2) break;
        if (!rc) rc = token_expect(p, ":");
    }
    p->nesting--;
    *value = n;
    return rc ? rc : token_expect(p, "]");
}

static enum code parse_member(struct parser *p, struct node **value)
{
    struct node *n;
    size_t at = p->token.at;
    enum code rc = token_next(p);
    if (!rc) rc = make(p, NODE_MEMBER, at, *value, NULL, &n);
    if (rc) return rc;
    if (p->token.kind == TOKEN_INT) {
        n->kind = NODE_ITEM;
        n->b = node_new(p, NODE_CONST, p->token.at);
        if (!n->b) return error_nomem(p->err);
        n->b->value = p->token.value;
    } else if (p->token.kind == TOKEN_NAME) {
        n->text = p->token.text;
    } else {
        return parser_fault(p, E_INVALID, p->token.at, "expected a name behind the dot", p->token.text);
    }
    *value = n;
    return token_next(p);
}

static enum code parse_call(struct parser *p, struct node *n)
{
    if (n->kind == NODE_MEMBER) {
        n->kind = NODE_METHOD;
        n->function = method_find(n->text);
        if (!n->function) return parser_fault(p, E_UNSUPPORTED, n->at, "no such method", n->text);
    } else if (n->kind == NODE_NAME) {
        n->kind = NODE_CALL;
        bool macro = parser_knows_macro(p, n->text);
        n->function = macro ? NULL : global_find(n->text);
        if (!macro && !n->function) return parser_fault(p, E_UNSUPPORTED, n->at, "no such function", n->text);
    } else {
        return parser_fault(p, E_INVALID, p->token.at, "this cannot be called", (struct str){0});
    }
    return parse_arguments(p, n);
}

static enum code parse_postfix(struct parser *p, struct node **value)
{
    enum code rc = OK;
    while (!rc) {
        if (token_is(p, "."))
            rc = parse_member(p, value);
        else if (token_is(p, "["))
            rc = parse_subscript(p, value);
        else if (token_is(p, "("))
            rc = parse_call(p, *value);
        else
            break;
    }
    return rc;
}

static enum code parse_filter(struct parser *p, struct node **value)
{
    struct node *n;
    enum code rc = token_next(p);
    size_t at = p->token.at;
    if (!rc && p->token.kind != TOKEN_NAME)
        return parser_fault(p, E_INVALID, at, "expected the name of a filter and found", p->token.text);
    if (!rc) rc = make(p, NODE_FILTER, at, *value, NULL, &n);
    if (rc) return rc;
    n->text = p->token.text;
    n->function = filter_find(n->text);
    if (!n->function) return parser_fault(p, E_UNSUPPORTED, at, "no such filter", n->text);
    rc = token_next(p);
    if (!rc && token_is(p, "(")) rc = parse_arguments(p, n);
    *value = n;
    return rc;
}

enum code parse_filters(struct parser *p, struct node **value)
{
    enum code rc = OK;
    while (!rc && token_is(p, "|")) rc = parse_filter(p, value);
    return rc;
}

static bool starts_argument(const struct parser *p)
{
    if (p->token.kind == TOKEN_NAME)
        return !token_is(p, "else") && !token_is(p, "or") && !token_is(p, "and") && !token_is(p, "if");
    return p->token.kind == TOKEN_STRING || p->token.kind == TOKEN_INT || p->token.kind == TOKEN_FLOAT ||
           token_is(p, "[") || token_is(p, "{");
}

static enum code parse_test(struct parser *p, struct node **value)
{
    bool negated = false;
    struct node *n, *argument;
    enum code rc = token_next(p);
    if (!rc) rc = token_accept(p, "not", &negated);
    size_t at = p->token.at;
    if (!rc && p->token.kind != TOKEN_NAME)
        return parser_fault(p, E_INVALID, at, "expected the name of a test and found", p->token.text);
    if (!rc) rc = make(p, NODE_TEST, at, *value, NULL, &n);
    if (rc) return rc;
    n->text = p->token.text;
    n->function = test_find(n->text);
    if (!n->function) return parser_fault(p, E_UNSUPPORTED, at, "no such test", n->text);
    rc = token_next(p);
    if (!rc && token_is(p, "(")) {
        rc = parse_arguments(p, n);
    } else if (!rc && starts_argument(p)) {
        if (token_is(p, "is"))
            return parser_fault(p, E_INVALID, p->token.at, "one test behind another", (struct str){0});
        rc = parse_primary(p, &argument);
        if (!rc) rc = parse_postfix(p, &argument);
        if (!rc) rc = append(p, n, (struct str){0}, argument, 0);
    }
    if (!rc && negated) rc = make(p, NODE_NOT, at, n, NULL, &n);
    *value = n;
    return rc;
}

// ---- operators

static enum code parse_unary(struct parser *p, bool with_filter, struct node **out)
{
    size_t at = p->token.at;
    enum code rc;
    bool minus = token_is(p, "-");
    if (minus || token_is(p, "+")) {
        rc = enter(p);
        if (!rc) rc = token_next(p);
        if (!rc) rc = parse_unary(p, false, out);
        if (!rc) rc = make(p, minus ? NODE_NEGATE : NODE_PLUS, at, *out, NULL, out);
        p->nesting--;
    } else {
        rc = parse_primary(p, out);
    }
    if (!rc) rc = parse_postfix(p, out);
    while (!rc && with_filter) {
        if (token_is(p, "|"))
            rc = parse_filter(p, out);
        else if (token_is(p, "is"))
            rc = parse_test(p, out);
        else
            break;
    }
    return rc;
}

struct spelling {
    const char *text;
    enum operator op;
};

static enum operator find_operator(const struct parser *p, const struct spelling *table, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (token_is(p, table[i].text)) return table[i].op;
    return 0;
}

static const struct spelling powers[] = {{"**", OPERATOR_POW}};
static const struct spelling products[] = {
    {"*", OPERATOR_MUL}, {"/", OPERATOR_DIV}, {"//", OPERATOR_FLOOR_DIV}, {"%", OPERATOR_MOD}};
static const struct spelling sums[] = {{"+", OPERATOR_ADD}, {"-", OPERATOR_SUB}};
static const struct spelling comparisons[] = {{"==", OPERATOR_EQ}, {"!=", OPERATOR_NE}, {"<", OPERATOR_LT},
                                              {"<=", OPERATOR_LE}, {">", OPERATOR_GT},  {">=", OPERATOR_GE},
                                              {"in", OPERATOR_IN}};

static enum code parse_concat(struct parser *p, struct node **out);

// 0: powers, 1: products, 2: sums
static enum code parse_binary(struct parser *p, int level, struct node **out)
{
    static const struct {
        const struct spelling *table;
        size_t count;
    } levels[] = {{powers, 1}, {products, ARRAY_COUNT(products)}, {sums, ARRAY_COUNT(sums)}};
    enum code rc = OK;
    struct node *left = NULL;
    enum operator op = 0;
    for (;;) {
        struct node *right = NULL;
        size_t at = p->token.at;
        if (op && (rc = token_next(p))) return rc;
        rc = level == 0   ? parse_unary(p, true, &right)
             : level == 1 ? parse_binary(p, 0, &right)
                          : parse_concat(p, &right);
        if (rc) return rc;
        if (op) {
            rc = make(p, NODE_BINARY, at, left, right, &left);
            if (rc) return rc;
            left->op = (uint8_t)op;
        } else {
            left = right;
        }
        op = find_operator(p, levels[level].table, levels[level].count);
        if (!op) break;
    }
    *out = left;
    return OK;
}

static enum code parse_concat(struct parser *p, struct node **out)
{
    struct node *part = NULL, *n = NULL;
    size_t at = p->token.at;
    enum code rc = parse_binary(p, 1, &part);
    if (rc || !token_is(p, "~")) {
        *out = part;
        return rc;
    }
    n = node_new(p, NODE_CONCAT, at);
    if (!n) return error_nomem(p->err);
    rc = append(p, n, (struct str){0}, part, 0);
    while (!rc && token_is(p, "~")) {
        rc = token_next(p);
        if (!rc) rc = parse_binary(p, 1, &part);
        if (!rc) rc = append(p, n, (struct str){0}, part, 0);
    }
    *out = n;
    return rc;
}

static enum code parse_comparison(struct parser *p, struct node **out)
{
    struct node *n = NULL, *operand;
    enum code rc = parse_binary(p, 2, out);
    while (!rc) {
        size_t at = p->token.at;
        enum operator op = find_operator(p, comparisons, ARRAY_COUNT(comparisons));
        if (!op && token_is(p, "not")) { // "not in"; a lone "not" is nothing here
            rc = token_next(p);
            if (!rc && !token_is(p, "in"))
                return parser_fault(p, E_INVALID, at, "expected in behind not", p->token.text);
            op = OPERATOR_NOT_IN;
        }
        if (!op || rc) break;
        rc = token_next(p);
        if (!rc) rc = parse_binary(p, 2, &operand);
        if (!rc && !n) rc = make(p, NODE_COMPARE, at, *out, NULL, &n);
        if (!rc) rc = append(p, n, (struct str){0}, operand, op);
        if (!rc) *out = n;
    }
    return rc;
}

static enum code parse_not(struct parser *p, struct node **out)
{
    if (!token_is(p, "not")) return parse_comparison(p, out);
    size_t at = p->token.at;
    enum code rc = enter(p);
    if (!rc) rc = token_next(p);
    if (!rc) rc = parse_not(p, out);
    p->nesting--;
    return rc ? rc : make(p, NODE_NOT, at, *out, NULL, out);
}

static enum code parse_logic(struct parser *p, bool is_or, struct node **out)
{
    struct node *left = NULL, *right = NULL;
    enum code rc = is_or ? parse_logic(p, false, &left) : parse_not(p, &left);
    while (!rc && token_is(p, is_or ? "or" : "and")) {
        size_t at = p->token.at;
        rc = token_next(p);
        if (!rc) rc = is_or ? parse_logic(p, false, &right) : parse_not(p, &right);
        if (!rc) rc = make(p, is_or ? NODE_OR : NODE_AND, at, left, right, &left);
    }
    *out = left;
    return rc;
}

enum code parse_expression(struct parser *p, bool with_if, struct node **out)
{
    enum code rc = parse_logic(p, true, out);
    while (!rc && with_if && token_is(p, "if")) {
        struct node *n, *condition, *otherwise = NULL;
        size_t at = p->token.at;
        bool has_else = false;
        rc = token_next(p);
        if (!rc) rc = parse_logic(p, true, &condition);
        if (!rc) rc = make(p, NODE_IF, at, *out, condition, &n);
        if (!rc) rc = token_accept(p, "else", &has_else);
        if (rc) return rc;
        if (has_else) {
            rc = enter(p);
            if (!rc) rc = parse_expression(p, true, &otherwise);
            p->nesting--;
            if (!rc) rc = deepen(p, n, otherwise);
            n->c = otherwise;
        }
        *out = n;
    }
    return rc;
}

static bool tuple_ends(const struct parser *p)
{
    return p->token.kind == TOKEN_END || p->token.kind == TOKEN_BLOCK_END || p->token.kind == TOKEN_PRINT_END ||
           token_is(p, ")") || token_is(p, "in") || token_is(p, "if") || token_is(p, "recursive");
}

enum code parse_tuple(struct parser *p, bool with_if, struct node **out)
{
    struct node *n, *item = NULL;
    size_t at = p->token.at;
    enum code rc = parse_expression(p, with_if, &item);
    *out = item;
    if (rc || !token_is(p, ",")) return rc;
    n = node_new(p, NODE_TUPLE, at);
    if (!n) return error_nomem(p->err);
    rc = append(p, n, (struct str){0}, item, 0);
    while (!rc && token_is(p, ",")) {
        rc = token_next(p);
        if (rc || tuple_ends(p)) break;
        rc = parse_expression(p, with_if, &item);
        if (!rc) rc = append(p, n, (struct str){0}, item, 0);
    }
    *out = n;
    return rc;
}

void node_names(const struct node *n, void (*visit)(void *context, struct str name), void *context)
{
    if (!n) return;
    if (n->kind == NODE_NAME && n->text.ptr[0] != '{') visit(context, n->text);
    node_names(n->a, visit, context);
    node_names(n->b, visit, context);
    node_names(n->c, visit, context);
    for (const struct arg *arg = n->args; arg; arg = arg->next) node_names(arg->value, visit, context);
}
