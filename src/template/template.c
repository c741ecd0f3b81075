// The entry points.
#include "template/internal.h"

#include <string.h>

const struct template_limits template_limits_default = {
    .step_count_max = 100000,
    .loop_count_max = 10000,
    .output_size_max = 1024 * 1024,
    .undefined = TEMPLATE_LENIENT,
};

bool template_is_dynamic(struct str text)
{
    for (size_t at = 0; (at = str_find(text, '{', at)) + 1 < text.len; at++)
        if (strchr("{%#", text.ptr[at + 1]) && text.ptr[at + 1]) return true;
    return false;
}

// Jinja reads every kind of line end as \n.
static enum code normalise(struct parser *p)
{
    if (!p->text.len || !memchr(p->text.ptr, '\r', p->text.len)) return OK;
    char *copy = ARENA_ARRAY(p->arena, p->text.len + 1, char);
    size_t len = 0;
    if (!copy) return error_nomem(p->err);
    for (size_t i = 0; i < p->text.len; i++) {
        char c = p->text.ptr[i];
        if (c == '\r' && i + 1 < p->text.len && p->text.ptr[i + 1] == '\n') continue;
        copy[len++] = c == '\r' ? '\n' : c;
    }
    p->text = (struct str){copy, len};
    return OK;
}

static enum code begin(struct parser *p, struct template **out)
{
    if (p->text.len > UINT32_MAX / 2) return error_set(p->err, E_LIMIT, "template: the text is too long");
    *out = ARENA_NEW(p->arena, struct template);
    return *out ? normalise(p) : error_nomem(p->err);
}

// One print and white space around it.
static const struct node *lone(const struct block *b)
{
    const struct node *found = NULL;
    for (; b; b = b->next) {
        bool blank = b->kind == BLOCK_TEXT && !text_strip(b->text, (struct str){0}, true, true, false).len;
        if (blank) continue;
        if (b->kind != BLOCK_PRINT || found) return NULL;
        found = b->expression;
    }
    return found;
}

enum code template_compile(struct str text, struct arena *arena, const struct template **out, struct error *err)
{
    struct parser p = {.text = text, .arena = arena, .err = err};
    struct template *t;
    enum code rc = begin(&p, &t);
    if (rc) return rc;
    if (p.text.len && p.text.ptr[p.text.len - 1] == '\n') p.text.len--; // as Jinja does
    rc = parse_blocks(&p, &t->blocks);
    if (rc) return rc;
    t->text = p.text;
    t->lone = p.has_comment ? NULL : lone(t->blocks);
    *out = t;
    return OK;
}

enum code template_expression(struct str text, struct arena *arena, const struct template **out, struct error *err)
{
    struct parser p = {.text = text, .arena = arena, .err = err, .place = PLACE_EXPRESSION};
    struct template *t;
    struct node *n = NULL;
    enum code rc = begin(&p, &t);
    if (!rc) rc = token_next(&p);
    if (!rc) rc = parse_expression(&p, true, &n);
    if (rc) return rc;
    if (p.token.kind != TOKEN_END) return parser_fault(&p, E_INVALID, p.token.at, "unexpected", p.token.text);
    t->text = p.text;
    t->lone = n;
    *out = t;
    return OK;
}

static enum code render_lone(struct eval *e, struct json *out)
{
    struct json value = value_undefined();
    enum code rc = eval_node(e, e->template->lone, &value);
    if (rc) return rc;
    if (value.type != TEMPLATE_UNDEFINED) return value_plain(e, &value, out);
    if (e->limits.undefined == TEMPLATE_STRICT) return eval_undefined(e, "the value");
    *out = json_string(STR(""));
    return OK;
}

enum code template_render(const struct template *t, const struct template_scope *scope,
                          const struct template_limits *limits, struct arena *arena, struct json *out,
                          struct error *err)
{
    static const struct template_scope nothing;
    struct eval e = {
        .template = t, .scope = scope ? scope : &nothing, .arena = arena, .err = err, .caller = value_undefined()};
    e.limits = limits ? *limits : template_limits_default;
    if (t->lone) return render_lone(&e, out);
    if (!t->blocks || (t->blocks->kind == BLOCK_TEXT && !t->blocks->next)) {
        *out = json_string(t->blocks ? t->blocks->text : STR(""));
        return OK;
    }
    struct buf buf;
    buf_init(&buf, e.limits.output_size_max);
    e.out = &buf;
    enum code rc = eval_blocks(&e, t->blocks);
    return eval_take(&e, &buf, rc, out);
}

static bool is_no(struct str text)
{
    static const char *const words[] = {"", "false", "0", "no", "none"};
    text = str_trim(text);
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        size_t len = strlen(words[i]), same = 0;
        while (same < len && same < text.len &&
               code_lower((unsigned char)text.ptr[same]) == (unsigned char)words[i][same])
            same++;
        if (same == len && text.len == len) return true;
    }
    return false;
}

enum code template_condition(const struct template *t, const struct template_scope *scope,
                             const struct template_limits *limits, struct arena *arena, bool *out, struct error *err)
{
    struct json value;
    enum code rc = template_render(t, scope, limits, arena, &value, err);
    if (rc) return rc;
    *out = value.type == JSON_STRING ? !is_no(value.text) : value_truth(&value);
    return OK;
}

static void block_names(const struct block *b, void (*visit)(void *context, struct str name), void *context)
{
    for (; b; b = b->next) {
        node_names(b->expression, visit, context);
        node_names(b->condition, visit, context);
        for (const struct arg *arg = b->params; arg; arg = arg->next) node_names(arg->value, visit, context);
        block_names(b->body, visit, context);
        block_names(b->otherwise, visit, context);
    }
}

void template_names(const struct template *t, void (*visit)(void *context, struct str name), void *context)
{
    if (t->blocks)
        block_names(t->blocks, visit, context);
    else
        node_names(t->lone, visit, context);
}
