// Walks the tree. Every node is a step; making strings or lists costs their size (eval_charge), so that the number
// of steps bounds time and memory alike.
#include "template/internal.h"

#include <string.h>

#undef eval_nomem // the analyzer's
#undef eval_undefined

uint32_t eval_line(const struct eval *e)
{
    uint32_t line, column;
    text_position(e->template->text, e->at, &line, &column);
    return line;
}

uint32_t eval_column(const struct eval *e)
{
    uint32_t line, column;
    text_position(e->template->text, e->at, &line, &column);
    return column;
}

enum code eval_undefined(struct eval *e, const char *what)
{
    struct buf path SCOPED(buf_release) = buf_of(256);
    bool told = e->missing && node_path(e->missing, &path);
    enum code rc = told ? eval_fault(e, E_NOT_FOUND, "%s is undefined: %.*s", what, STR_ARG(buf_str(&path)))
                        : eval_fault(e, E_NOT_FOUND, "%s is undefined", what);
    return rc;
}

static enum code spent(struct eval *e)
{
    e->steps = e->limits.step_count_max;
    if (e->shared_max)
        return eval_fault(e, E_LIMIT, "more than %u steps in all templates of %s", e->shared_max, e->shared_by);
    return eval_fault(e, E_LIMIT, "more than %u steps", e->limits.step_count_max);
}

enum code eval_charge(struct eval *e, size_t steps)
{
    if (steps > e->limits.step_count_max - e->steps) return spent(e);
    e->steps += (uint32_t)steps;
    return OK;
}

enum code eval_walk(struct eval *e, struct str s)
{
    return eval_charge(e, s.len / BYTES_WALKED);
}

enum code eval_use(struct eval *e, const struct json *v)
{
    if (v->type != TEMPLATE_UNDEFINED || e->limits.undefined != TEMPLATE_STRICT) return OK;
    return eval_undefined(e, "a value that is used");
}

void eval_buf(struct eval *e, struct buf *buf)
{
    buf_init(buf, e->limits.output_size_max);
}

enum code eval_take(struct eval *e, struct buf *buf, enum code rc, struct json *out)
{
    if (!buf_ok(buf) && !rc)
        rc = buf->full ? eval_fault(e, E_LIMIT, "more than %zu bytes of text", e->limits.output_size_max)
                       : error_nomem(e->err);
    if (!rc && e->out != buf) rc = eval_charge(e, buf->len / BYTES_PER_STEP);
    if (!rc) {
        *out = json_string(arena_copy(e->arena, buf_str(buf)));
        if (!out->text.ptr) rc = error_nomem(e->err);
    }
    buf_release(buf);
    return rc;
}

bool eval_push_local(struct eval *e, struct str name, struct json value)
{
    struct local *local = ARENA_NEW(e->arena, struct local);
    if (!local) return false;
    *local = (struct local){name, value, e->locals};
    e->locals = local;
    return true;
}

static enum code eval_name(struct eval *e, struct str name, struct json *out)
{
    for (const struct local *l = e->locals; l; l = l->next) {
        if (!str_eq(l->name, name)) continue;
        *out = l->value;
        return OK;
    }
    for (size_t i = 0; i < e->scope->local_count; i++) {
        if (!str_eq(e->scope->locals[i].name, name)) continue;
        *out = e->scope->locals[i].value;
        return OK;
    }
    *out = value_undefined();
    return e->scope->lookup ? e->scope->lookup(e->scope->context, name, out, e->err) : OK;
}

// ---- calls

static enum code call_fault(struct eval *e, const struct function_call *call, const char *what, struct str name)
{
    return eval_fault(e, E_INVALID, "%s: %s%s%.*s", call->function->name, what, name.len ? ": " : "", STR_ARG(name));
}

// Which parameter has this name?
static bool find_parameter(const char *parameters, struct str name, uint32_t *index)
{
    struct str rest = str_from(parameters);
    for (*index = 0; rest.len; ++*index)
        if (str_eq(str_cut(rest, ',', &rest), name)) return true;
    return false;
}

static uint32_t count_parameters(const char *parameters)
{
    struct str rest = str_from(parameters);
    uint32_t count = 0;
    for (; rest.len; count++) str_cut(rest, ',', &rest);
    return count;
}

static enum code bind(struct eval *e, struct function_call *call)
{
    const char *parameters = call->function->parameters;
    uint32_t count = call->count, index;
    struct json args[ARG_COUNT_MAX];
    if (parameters && !strcmp(parameters, "*")) return OK;
    for (uint32_t i = 0; i < count; i++) {
        args[i] = call->args[i];
        call->given[i] = false;
    }
    for (uint32_t i = 0; i < count; i++) {
        index = i;
        if (call->names[i].len && !find_parameter(parameters, call->names[i], &index))
            return call_fault(e, call, "no such argument", call->names[i]);
        if (index >= count_parameters(parameters)) return call_fault(e, call, "too many arguments", (struct str){0});
        if (call->given[index]) return call_fault(e, call, "an argument twice", call->names[i]);
        call->args[index] = args[i];
        call->given[index] = true;
    }
    for (uint32_t i = 0; i < call->function->required; i++)
        if (!call->given[i]) return call_fault(e, call, "an argument is missing", (struct str){0});
    return OK;
}

enum code eval_call(struct eval *e, const struct function *f, struct function_call *call, struct json *out)
{
    call->function = f;
    enum code rc = bind(e, call);
    return rc ? rc : f->run(e, call, out);
}

enum code eval_named(struct eval *e, bool test, const struct function_call *call, uint32_t from, struct str name,
                     struct json value, struct json *out)
{
    const struct function *f = test ? test_find(name) : filter_find(name);
    if (!f) return eval_fault(e, E_INVALID, "no such %s: %.*s", test ? "test" : "filter", STR_ARG(name));
    struct function_call inner = {.self = value};
    for (uint32_t i = from; i < call->count; i++) {
        inner.args[inner.count] = call->args[i];
        inner.names[inner.count] = call->names[i];
        inner.given[inner.count++] = true;
    }
    enum code rc = eval_charge(e, 1);
    return rc ? rc : eval_call(e, f, &inner, out);
}

enum code eval_arguments(struct eval *e, const struct node *n, struct function_call *call)
{
    call->count = 0;
    memset(call->given, 0, sizeof(call->given));
    for (const struct arg *arg = n->args; arg; arg = arg->next) {
        enum code rc = eval_node(e, arg->value, &call->args[call->count]);
        if (rc) return rc;
        call->names[call->count] = arg->name;
        call->given[call->count++] = true;
    }
    e->at = n->at;
    return OK;
}

static bool sees_undefined(const struct function *f)
{
    return !strcmp(f->name, "default") || !strcmp(f->name, "d") || !strcmp(f->name, "defined") ||
           !strcmp(f->name, "undefined");
}

static enum code eval_function(struct eval *e, const struct node *n, struct json *out)
{
    if (!n->function) return eval_macro(e, n, out);
    struct function_call call;
    enum code rc = OK;
    call.self = value_undefined();
    if (n->a) rc = eval_node(e, n->a, &call.self);
    if (!rc) rc = eval_arguments(e, n, &call);
    if (!rc && n->a && !sees_undefined(n->function)) rc = eval_use(e, &call.self);
    if (!rc && n->kind == NODE_METHOD && call.self.type == TEMPLATE_UNDEFINED)
        return eval_fault(e, E_NOT_FOUND, "%.*s() of something undefined", STR_ARG(n->text));
    return rc ? rc : eval_call(e, n->function, &call, out);
}

// ---- nodes

static enum code eval_list(struct eval *e, const struct node *n, struct json *out)
{
    struct json list = n->kind == NODE_TUPLE ? value_tuple() : json_array();
    for (const struct arg *arg = n->args; arg; arg = arg->next) {
        struct json item = {0};
        enum code rc = eval_node(e, arg->value, &item);
        if (!rc) rc = value_push(e, &list, item);
        if (rc) return rc;
    }
    *out = list;
    return OK;
}

static enum code eval_dict(struct eval *e, const struct node *n, struct json *out)
{
    struct json dict = json_object();
    for (const struct arg *arg = n->args; arg; arg = arg->next->next) {
        struct json key, value;
        enum code rc = eval_node(e, arg->value, &key);
        if (!rc) rc = eval_node(e, arg->next->value, &value);
        if (rc) return rc;
        e->at = arg->value->at;
        if (key.type != JSON_STRING)
            return eval_fault(e, E_UNSUPPORTED, "keys are texts, and this is of type %s", value_type_name(&key));
        rc = value_put(e, &dict, key.text, value);
        if (rc) return rc;
    }
    *out = dict;
    return OK;
}

static enum code eval_concat(struct eval *e, const struct node *n, struct json *out)
{
    struct buf buf;
    eval_buf(e, &buf);
    enum code rc = OK;
    for (const struct arg *arg = n->args; arg && !rc; arg = arg->next) {
        struct json part = {0};
        rc = eval_node(e, arg->value, &part);
        if (!rc) rc = eval_use(e, &part);
        if (!rc) rc = value_write(e, &part, &buf);
    }
    return eval_take(e, &buf, rc, out);
}

static enum code compare(struct eval *e, enum operator op, const struct json *a, const struct json *b, bool *out)
{
    int order = 0;
    enum code rc;
    if (op == OPERATOR_EQ || op == OPERATOR_NE) {
        rc = value_equal(e, a, b, out);
        *out ^= op == OPERATOR_NE;
        return rc;
    }
    if (op == OPERATOR_IN || op == OPERATOR_NOT_IN) {
        rc = value_in(e, a, b, out);
        *out ^= op == OPERATOR_NOT_IN;
        return rc;
    }
    rc = value_compare(e, a, b, &order);
    *out = op == OPERATOR_LT ? order < 0 : op == OPERATOR_LE ? order <= 0 : op == OPERATOR_GT ? order > 0 : order >= 0;
    return rc;
}

// `a`, `a.b.c`: what the author called it. False: it is something else.
static bool name_of(const struct node *n, struct buf *out)
{
    if (n->kind == NODE_MEMBER && !name_of(n->a, out)) return false;
    if (n->kind != NODE_NAME && n->kind != NODE_MEMBER) return false;
    if (n->kind == NODE_MEMBER) buf_byte(out, '.');
    buf_add(out, n->text);
    return buf_ok(out);
}

// That something is undefined is said with its name, where it has one.
static enum code undefined_of(struct eval *e, enum code rc, const struct node *n, const struct json *value)
{
    if (rc != E_NOT_FOUND || value->type != TEMPLATE_UNDEFINED) return rc;
    struct buf name SCOPED(buf_release) = buf_of(200);
    bool named = name_of(n, &name);
    if (named && e->err) *e->err = (struct error){0}; // it says the same without the name
    if (named) rc = eval_fault(e, rc, "%.*s is undefined", STR_ARG(buf_str(&name)));
    return rc;
}

static enum code eval_compare(struct eval *e, const struct node *n, struct json *out)
{
    struct json left = {0}, right = {0};
    bool result = true;
    const struct node *of_left = n->a;
    enum code rc = eval_node(e, n->a, &left);
    if (!rc) rc = eval_use(e, &left);
    for (const struct arg *arg = n->args; arg && !rc && result; arg = arg->next) {
        rc = eval_node(e, arg->value, &right);
        if (!rc) rc = eval_use(e, &right);
        if (rc) break;
        e->at = n->at;
        rc = compare(e, arg->op, &left, &right, &result);
        rc = undefined_of(e, rc, arg->value, &right);
        rc = undefined_of(e, rc, of_left, &left);
        left = right;
        of_left = arg->value;
    }
    *out = json_bool(result);
    return rc;
}

static enum code eval_truth(struct eval *e, const struct node *n, bool *out)
{
    struct json value = {0};
    enum code rc = eval_node(e, n, &value);
    if (!rc) rc = eval_use(e, &value);
    if (!rc) *out = value_truth(&value);
    return rc;
}

static enum code eval_logic(struct eval *e, const struct node *n, struct json *out)
{
    bool truth;
    enum code rc = eval_node(e, n->a, out);
    if (!rc) rc = eval_use(e, out);
    if (rc) return rc;
    truth = value_truth(out);
    return truth == (n->kind == NODE_OR) ? OK : eval_node(e, n->b, out);
}

static enum code eval_if(struct eval *e, const struct node *n, struct json *out)
{
    bool truth;
    enum code rc = eval_truth(e, n->b, &truth);
    if (rc) return rc;
    if (truth) return eval_node(e, n->a, out);
    if (n->c) return eval_node(e, n->c, out);
    *out = value_undefined();
    return OK;
}

// Whose member is asked for: `name` itself, one of its results, or an entry of the keychain.
static const struct node *owner_of(const struct node *n)
{
    bool one = n->kind == NODE_ITEM && n->a->kind == NODE_MEMBER && str_is(n->a->text, "results");
    bool entry = n->kind == NODE_MEMBER && n->a->kind == NODE_NAME && str_is(n->a->text, "keychain");
    return one ? n->a->a : entry ? n->a : n;
}

// A name that the template itself has given a value.
static bool is_local(const struct eval *e, struct str name)
{
    for (const struct local *l = e->locals; l; l = l->next)
        if (str_eq(l->name, name)) return true;
    for (size_t i = 0; i < e->scope->local_count; i++)
        if (str_eq(e->scope->locals[i].name, name)) return true;
    return false;
}

// What stands before the members of a name.
static enum code over(struct eval *e, const struct node *n, struct json *out)
{
    const struct json *key = n->kind == NODE_ITEM && n->b->kind == NODE_CONST ? &n->b->value : NULL;
    struct str member = n->kind == NODE_MEMBER ? n->text : json_is(key, JSON_STRING) ? key->text : (struct str){0};
    *out = value_undefined();
    if (member.len == 0 || n->a->kind != NODE_NAME || is_local(e, n->a->text)) return OK;
    return e->scope->over(e->scope->context, n->a->text, member, out, e->err);
}

static enum code instead(struct eval *e, const struct node *n, const struct json *value, struct str member,
                         struct json *out)
{
    const struct node *owner = owner_of(n->a);
    if (owner->kind != NODE_NAME || !e->scope->instead || is_local(e, owner->text)) return OK;
    return e->scope->instead(e->scope->context, owner->text, value, member, out, e->err);
}

static enum code eval_member(struct eval *e, const struct node *n, struct json *out)
{
    struct json value = {0}, key = {0};
    enum code rc = e->scope->over ? over(e, n, out) : OK;
    if (rc || (e->scope->over && out->type != TEMPLATE_UNDEFINED)) return rc;
    rc = eval_node(e, n->a, &value);
    if (rc) return rc;
    e->at = n->at;
    if (value.type == TEMPLATE_UNDEFINED) {
        *out = value;
        if (e->limits.undefined == TEMPLATE_CHAIN) return OK;
        struct buf path SCOPED(buf_release) = buf_of(256);
        struct str name = node_path(n->a, &path) ? buf_str(&path) : STR("this");
        return eval_fault(e, E_NOT_FOUND, "%.*s is undefined, and a member of it is asked for", STR_ARG(name));
    }
    if (n->kind == NODE_MEMBER) {
        key = json_string(n->text);
        rc = value_member(e, &value, n->text, out);
    } else {
        rc = eval_node(e, n->b, &key);
        e->at = n->at;
        if (!rc) rc = value_item(e, &value, &key, out);
    }
    bool missing = !rc && out->type == TEMPLATE_UNDEFINED && key.type == JSON_STRING;
    if (missing) rc = instead(e, n, &value, key.text, out);
    if (!rc && out->type == TEMPLATE_UNDEFINED) e->missing = n;
    return rc;
}

static enum code eval_slice(struct eval *e, const struct node *n, struct json *out)
{
    struct json value, bounds[3] = {json_null(), json_null(), json_null()};
    enum code rc = eval_node(e, n->a, &value);
    const struct arg *arg = n->args;
    for (size_t i = 0; arg && !rc; arg = arg->next, i++)
        if (arg->value) rc = eval_node(e, arg->value, &bounds[i]);
    e->at = n->at;
    return rc ? rc : value_slice(e, &value, bounds, out);
}

static enum code eval_binary(struct eval *e, const struct node *n, struct json *out)
{
    struct json a, b;
    enum code rc = eval_node(e, n->a, &a);
    if (!rc) rc = eval_node(e, n->b, &b);
    e->at = n->at;
    if (rc) return rc;
    rc = arithmetic(e, n->op, &a, &b, out);
    rc = undefined_of(e, rc, n->b, &b);
    return undefined_of(e, rc, n->a, &a);
}

static enum code eval_sign(struct eval *e, const struct node *n, struct json *out)
{
    struct json value;
    bool truth = false;
    enum code rc;
    if (n->kind == NODE_NOT) {
        rc = eval_truth(e, n->a, &truth);
        *out = json_bool(!truth);
        return rc;
    }
    rc = eval_node(e, n->a, &value);
    e->at = n->at;
    if (!rc) rc = number_negate(e, &value, out);
    return rc || n->kind == NODE_NEGATE ? rc : number_negate(e, out, out);
}

enum code eval_node(struct eval *e, const struct node *n, struct json *out)
{
    e->at = n->at;
    if (e->steps++ >= e->limits.step_count_max) return spent(e);
    switch ((enum node_kind)n->kind) {
    case NODE_CONST:
        *out = n->value;
        return OK;
    case NODE_NAME: {
        enum code rc = eval_name(e, n->text, out);
        if (!rc && out->type == TEMPLATE_UNDEFINED) e->missing = n;
        return rc;
    }
    case NODE_LIST:
    case NODE_TUPLE:
        return eval_list(e, n, out);
    case NODE_DICT:
        return eval_dict(e, n, out);
    case NODE_BINARY:
        return eval_binary(e, n, out);
    case NODE_NEGATE:
    case NODE_PLUS:
    case NODE_NOT:
        return eval_sign(e, n, out);
    case NODE_AND:
    case NODE_OR:
        return eval_logic(e, n, out);
    case NODE_CONCAT:
        return eval_concat(e, n, out);
    case NODE_COMPARE:
        return eval_compare(e, n, out);
    case NODE_IF:
        return eval_if(e, n, out);
    case NODE_MEMBER:
    case NODE_ITEM:
        return eval_member(e, n, out);
    case NODE_SLICE:
        return eval_slice(e, n, out);
    case NODE_METHOD:
    case NODE_CALL:
    case NODE_FILTER:
    case NODE_TEST:
        return eval_function(e, n, out);
    }
    return eval_fault(e, E_INVALID, "unknown node");
}

// ---- blocks

static enum code assign(struct eval *e, const struct block *b, struct json value)
{
    if (b->kind == BLOCK_SET && b->text.len) return namespace_set(e, b->targets[0], b->text, value);
    if (!b->unpacks) return eval_push_local(e, b->targets[0], value) ? OK : error_nomem(e->err);
    struct json items;
    enum code rc = value_items(e, &value, &items);
    if (rc) return rc;
    if (items.count != b->target_count)
        return eval_fault(e, E_INVALID, "%u values for %u names", items.count, b->target_count);
    for (uint32_t i = 0; i < items.count; i++)
        if (!eval_push_local(e, b->targets[i], items.items[i])) return error_nomem(e->err);
    return OK;
}

// The items that the condition of the loop lets through.
static enum code loop_items(struct eval *e, const struct block *b, struct json *items)
{
    struct json all = {0}, kept = json_array();
    enum code rc = eval_node(e, b->expression, &all);
    if (!rc) rc = eval_use(e, &all);
    e->at = b->expression->at;
    if (!rc) rc = value_items(e, &all, items);
    if (rc || !b->condition) return rc;
    const struct local *outside = e->locals;
    for (uint32_t i = 0; i < items->count; i++) {
        bool keep = false;
        rc = assign(e, b, items->items[i]);
        if (!rc) rc = eval_truth(e, b->condition, &keep);
        if (!rc && keep) rc = value_push(e, &kept, items->items[i]);
        e->locals = outside;
        if (rc) return rc;
    }
    *items = kept;
    return OK;
}

static enum code eval_for(struct eval *e, const struct block *b)
{
    struct json items;
    enum code rc = loop_items(e, b, &items);
    if (rc) return rc;
    if (!items.count) return eval_blocks(e, b->otherwise);
    if (items.count > e->limits.loop_count_max)
        return eval_fault(e, E_LIMIT, "a loop of more than %u rounds", e->limits.loop_count_max);
    struct loop *loop = ARENA_NEW(e->arena, struct loop);
    if (!loop) return error_nomem(e->err);
    *loop = (struct loop){items.items, items.count, 0};
    struct json handle = {.type = VALUE_LOOP, .text = {(const char *)loop, 0}};
    const struct local *outside = e->locals;
    for (; loop->index < loop->count && !rc; loop->index++) {
        if (!eval_push_local(e, STR("loop"), handle)) return error_nomem(e->err);
        rc = assign(e, b, items.items[loop->index]);
        if (!rc) rc = eval_charge(e, 1);
        if (!rc) rc = eval_blocks(e, b->body);
        e->locals = outside;
    }
    return rc;
}

static enum code eval_capture(struct eval *e, const struct block *b)
{
    struct buf buf, *outer = e->out;
    struct json value;
    const struct local *outside = e->locals;
    eval_buf(e, &buf);
    e->out = &buf;
    enum code rc = eval_blocks(e, b->body);
    e->out = outer;
    e->locals = outside;
    rc = eval_take(e, &buf, rc, &value);
    if (!rc && b->expression) {
        if (!eval_push_local(e, STR("{%set%}"), value)) return error_nomem(e->err);
        rc = eval_node(e, b->expression, &value);
        e->locals = outside;
    }
    return rc ? rc : assign(e, b, value);
}

static enum code eval_branch(struct eval *e, const struct block *b)
{
    for (;;) {
        bool truth;
        enum code rc = eval_truth(e, b->expression, &truth);
        if (rc) return rc;
        if (truth) return eval_blocks(e, b->body);
        const struct block *next = b->otherwise;
        if (!next || next->kind != BLOCK_IF || next->next) return eval_blocks(e, next);
        b = next;
    }
}

static enum code eval_print(struct eval *e, const struct block *b)
{
    struct json value = {0};
    enum code rc = eval_node(e, b->expression, &value);
    e->at = b->at;
    if (!rc) rc = eval_use(e, &value);
    return rc ? rc : value_write(e, &value, e->out);
}

enum code eval_blocks(struct eval *e, const struct block *b)
{
    enum code rc = OK;
    for (; b && !rc; b = b->next) {
        struct json value;
        e->at = b->at;
        rc = eval_charge(e, 1);
        if (rc) return rc;
        switch ((enum block_kind)b->kind) {
        case BLOCK_TEXT:
            buf_add(e->out, b->text);
            break;
        case BLOCK_PRINT:
            rc = eval_print(e, b);
            break;
        case BLOCK_IF:
            rc = eval_branch(e, b);
            break;
        case BLOCK_FOR:
            rc = eval_for(e, b);
            break;
        case BLOCK_SET:
            rc = eval_node(e, b->expression, &value);
            e->at = b->at;
            if (!rc) rc = assign(e, b, value);
            break;
        case BLOCK_CAPTURE:
            rc = eval_capture(e, b);
            break;
        case BLOCK_MACRO:
            rc = define_macro(e, b, b->text);
            break;
        case BLOCK_CALL:
            rc = eval_caller(e, b);
            break;
        case BLOCK_WITH:
            rc = eval_with(e, b);
            break;
        }
        if (!rc && e->out->failed)
            return eval_fault(e, E_LIMIT, "more than %zu bytes of text", e->limits.output_size_max);
    }
    return rc;
}
