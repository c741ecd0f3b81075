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
    struct parser p = {.text = text, .arena = arena, .err = err, .place = END_EXPRESSION};
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

static enum code render(struct eval *e, const struct template *t, struct json *out)
{
    if (t->lone) return render_lone(e, out);
    if (!t->blocks || (t->blocks->kind == BLOCK_TEXT && !t->blocks->next)) {
        *out = json_string(t->blocks ? t->blocks->text : STR(""));
        return OK;
    }
    struct buf buf = buf_of(e->limits.output_size_max);
    e->out = &buf;
    enum code rc = eval_blocks(e, t->blocks);
    e->out = NULL;
    return eval_take(e, &buf, rc, out);
}

enum code render_within(const struct template *t, const struct template_scope *scope,
                        const struct template_limits *limits, struct tree_steps *tree, struct arena *arena,
                        struct json *out, struct error *err)
{
    static const struct template_scope nothing;
    struct eval e = {
        .template = t, .scope = scope ? scope : &nothing, .arena = arena, .err = err, .caller = value_undefined()};
    e.limits = limits ? *limits : template_limits_default;
    if (tree && tree->max - tree->taken < e.limits.step_count_max) {
        e.limits.step_count_max = tree->max - tree->taken;
        e.shared_max = tree->max;
        e.shared_by = "one value";
    }
    struct template_meter *meter = e.scope->meter;
    if (meter && meter->max - meter->taken < e.limits.step_count_max) {
        e.limits.step_count_max = meter->max - meter->taken;
        e.shared_max = meter->max;
        e.shared_by = meter->of;
    }
    enum code rc = render(&e, t, out);
    uint32_t taken = e.steps < e.limits.step_count_max ? e.steps : e.limits.step_count_max;
    if (tree) tree->taken += taken;
    if (meter) meter->taken += taken;
    if (e.scope->spent) *e.scope->spent += taken;
    return rc;
}

enum code template_render(const struct template *t, const struct template_scope *scope,
                          const struct template_limits *limits, struct arena *arena, struct json *out,
                          struct error *err)
{
    return render_within(t, scope, limits, NULL, arena, out, err);
}

static bool is_no(struct str text)
{
    static const char *const words[] = {"false", "0", "no", "none"};
    if (text.len == 0) return true;
    text = str_trim(text); // blanks around a word do not change it; blanks alone are no word
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

typedef void (*visit_name)(void *context, struct str name);
typedef void (*walk_node)(const struct node *n, visit_name visit, void *context);

static void walk_blocks(const struct block *b, walk_node walk, visit_name visit, void *context)
{
    for (; b; b = b->next) {
        walk(b->expression, visit, context);
        walk(b->condition, visit, context);
        for (const struct arg *arg = b->params; arg; arg = arg->next) walk(arg->value, visit, context);
        walk_blocks(b->body, walk, visit, context);
        walk_blocks(b->otherwise, walk, visit, context);
    }
}

bool node_path(const struct node *n, struct buf *out)
{
    const struct json *key = n->kind == NODE_ITEM && n->b->kind == NODE_CONST ? &n->b->value : NULL;
    if (n->kind == NODE_NAME && n->text.ptr[0] != '{') {
        buf_add(out, n->text);
    } else if (n->kind == NODE_MEMBER) {
        if (!node_path(n->a, out)) return false;
        buf_byte(out, '.');
        buf_add(out, n->text);
    } else if (json_is(key, JSON_INT)) {
        if (!node_path(n->a, out)) return false;
        buf_printf(out, "[%lld]", (long long)key->integer);
    } else if (json_is(key, JSON_STRING) && str_find(key->text, '\'', 0) == key->text.len &&
               str_find(key->text, '\\', 0) == key->text.len) {
        if (!node_path(n->a, out)) return false;
        buf_printf(out, "['%.*s']", STR_ARG(key->text));
    } else {
        return false;
    }
    return buf_ok(out);
}

static void node_paths(const struct node *n, visit_name visit, void *context)
{
    if (!n) return;
    struct buf path SCOPED(buf_release) = buf_of(4096);
    bool whole = node_path(n, &path);
    if (whole) visit(context, buf_str(&path));
    if (whole) return;
    node_paths(n->a, visit, context);
    node_paths(n->b, visit, context);
    node_paths(n->c, visit, context);
    for (const struct arg *arg = n->args; arg; arg = arg->next) node_paths(arg->value, visit, context);
}

static void walk_template(const struct template *t, walk_node walk, visit_name visit, void *context)
{
    if (t->blocks)
        walk_blocks(t->blocks, walk, visit, context);
    else
        walk(t->lone, visit, context);
}

void template_names(const struct template *t, visit_name visit, void *context)
{
    walk_template(t, node_names, visit, context);
}

void template_paths(const struct template *t, visit_name visit, void *context)
{
    walk_template(t, node_paths, visit, context);
}
