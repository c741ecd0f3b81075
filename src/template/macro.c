// Macros, blocks that call them, names for a block, and namespaces: what a template defines for itself.
#include "template/internal.h"

enum { CALL_DEPTH_MAX = 32 }; // macros within macros

// ---- namespaces: the only values that change

enum code run_namespace(struct eval *e, struct function_call *call, struct json *out)
{
    struct json *members = ARENA_NEW(e->arena, struct json);
    if (!members) return error_nomem(e->err);
    enum code rc = run_dict(e, call, members);
    *out = (struct json){.type = VALUE_NAMESPACE, .text = {(const char *)members, 0}};
    return rc;
}

const struct json *namespace_members(const struct json *value)
{
    return (const struct json *)(const void *)value->text.ptr;
}

// {% set name.member = value %}: the namespace that the template has made under the name.
enum code namespace_set(struct eval *e, struct str name, struct str member, struct json value)
{
    for (const struct local *l = e->locals; l; l = l->next) {
        if (!str_eq(l->name, name)) continue;
        if (l->value.type != VALUE_NAMESPACE) break;
        if (value.type == VALUE_NAMESPACE || value.type == VALUE_MACRO)
            return eval_fault(e, E_UNSUPPORTED, "a namespace holds values only");
        union {
            const char *text;
            struct json *members;
        } handle = {l->value.text.ptr};
        return value_put(e, handle.members, member, value);
    }
    return eval_fault(e, E_INVALID, "%.*s is no namespace: values do not change", STR_ARG(name));
}

// ---- with

enum code eval_with(struct eval *e, const struct block *b)
{
    const struct local *outside = e->locals;
    const struct local *inside = outside;
    enum code rc = OK;
    for (const struct arg *arg = b->params; arg && !rc; arg = arg->next) {
        struct json value;
        e->locals = outside; // values do not see each other
        rc = eval_node(e, arg->value, &value);
        e->locals = inside;
        if (!rc && !eval_push_local(e, arg->name, value)) rc = error_nomem(e->err);
        inside = e->locals;
    }
    if (!rc) rc = eval_blocks(e, b->body);
    e->locals = outside;
    return rc;
}

// ---- macros

struct macro {
    const struct block *block;
    const struct local *locals; // where it was defined, with itself
};

enum code define_macro(struct eval *e, const struct block *b, struct str name)
{
    struct macro *macro = ARENA_NEW(e->arena, struct macro);
    struct json value = {.type = VALUE_MACRO, .text = {(const char *)macro, 0}};
    if (!macro || !eval_push_local(e, name, value)) return error_nomem(e->err);
    *macro = (struct macro){b, e->locals};
    return OK;
}

// By position, then by name, then what is usual, which sees the parameters before it.
static enum code bind_macro(struct eval *e, const struct macro *macro, const struct function_call *call)
{
    const struct block *b = macro->block;
    uint32_t index = 0, used = 0;
    for (const struct arg *p = b->params; p; p = p->next, index++) {
        struct json value = value_undefined();
        bool given = index < call->count && !call->names[index].len;
        if (given) value = call->args[index];
        used += given;
        for (uint32_t i = 0; i < call->count; i++) {
            if (!str_eq(call->names[i], p->name)) continue;
            if (given) return eval_fault(e, E_INVALID, "%.*s: an argument twice", STR_ARG(b->text));
            value = call->args[i];
            given = true;
            used++;
        }
        enum code rc = !given && p->value ? eval_node(e, p->value, &value) : OK;
        if (rc) return rc;
        if (!eval_push_local(e, p->name, value)) return error_nomem(e->err);
    }
    return used == call->count ? OK : eval_fault(e, E_INVALID, "%.*s: too many arguments", STR_ARG(b->text));
}

static enum code run_macro(struct eval *e, const struct macro *macro, const struct function_call *call,
                           struct json *out)
{
    struct buf buf, *outer = e->out;
    const struct local *outside = e->locals;
    if (e->calls == CALL_DEPTH_MAX) return eval_fault(e, E_LIMIT, "macros within more than %d macros", CALL_DEPTH_MAX);
    e->calls++;
    eval_buf(e, &buf);
    e->locals = macro->locals;
    struct json caller = e->caller;
    e->caller = value_undefined();
    enum code rc = OK;
    if (!eval_push_local(e, STR("caller"), caller)) rc = error_nomem(e->err);
    if (!rc) rc = bind_macro(e, macro, call);
    e->out = &buf;
    if (!rc) rc = eval_blocks(e, macro->block->body);
    e->out = outer;
    e->locals = outside;
    e->calls--;
    return eval_take(e, &buf, rc, out);
}

enum code eval_macro(struct eval *e, const struct node *n, struct json *out)
{
    struct json value = value_undefined(), caller = e->caller;
    struct function_call call;
    e->caller = value_undefined(); // of this call, not of those in its arguments
    enum code rc = eval_arguments(e, n, &call);
    e->caller = caller;
    if (rc) return rc;
    for (const struct local *l = e->locals; l && value.type == TEMPLATE_UNDEFINED; l = l->next)
        if (str_eq(l->name, n->text)) value = l->value;
    if (value.type != VALUE_MACRO) return eval_fault(e, E_INVALID, "%.*s is no macro here", STR_ARG(n->text));
    return run_macro(e, (const struct macro *)(const void *)value.text.ptr, &call, out);
}

// {% call(x) name() %}: what the macro prints, with the body as its caller().
enum code eval_caller(struct eval *e, const struct block *b)
{
    struct json value;
    const struct local *outside = e->locals;
    enum code rc = define_macro(e, b, STR("{%call%}"));
    if (rc) return rc;
    e->caller = e->locals->value;
    e->locals = outside;
    rc = eval_node(e, b->expression, &value);
    e->caller = value_undefined();
    return rc ? rc : value_write(e, &value, e->out);
}
