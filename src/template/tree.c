// JSON with templates in its texts. A part that holds none is a constant and is handed out as it is.
#include "json/make.h"
#include "template/internal.h"

#include <string.h>

struct template_tree {
    struct json source;
    const struct template *text;        // of a dynamic text; NULL otherwise
    const struct template_tree **parts; // of an object or array that holds one; NULL: all of it is constant
};

static bool is_constant(const struct json *object, uint32_t i, struct str constant)
{
    return constant.len > 0 && object->type == JSON_OBJECT && str_eq(object->members[i].key, constant);
}

static bool is_dynamic(const struct json *value, struct str constant)
{
    if (value->type == JSON_STRING) return template_is_dynamic(json_text(value));
    if (value->type == JSON_ARRAY) {
        for (uint32_t i = 0; i < value->count; i++)
            if (is_dynamic(&value->items[i], STR(""))) return true;
    } else if (value->type == JSON_OBJECT) {
        for (uint32_t i = 0; i < value->count; i++)
            if (!is_constant(value, i, constant) && is_dynamic(&value->members[i].value, STR(""))) return true;
    }
    return false;
}

static const struct json *part_of(const struct json *value, uint32_t i)
{
    return value->type == JSON_ARRAY ? &value->items[i] : &value->members[i].value;
}

enum code template_tree_compile(const struct json *value, struct arena *arena, const struct template_tree **out,
                                const struct json **where, struct error *err)
{
    return template_tree_compile_but(value, STR(""), arena, out, where, err);
}

enum code template_tree_compile_but(const struct json *value, struct str constant, struct arena *arena,
                                    const struct template_tree **out, const struct json **where, struct error *err)
{
    struct template_tree *tree = ARENA_NEW(arena, struct template_tree);
    if (!tree) return error_nomem(err);
    *tree = (struct template_tree){.source = *value};
    *out = tree;
    if (!is_dynamic(value, constant)) return OK;
    if (value->type == JSON_STRING) {
        enum code rc = template_compile(json_text(value), arena, &tree->text, err);
        if (rc) *where = value;
        return rc;
    }
    tree->parts = arena_alloc(arena, value->count * sizeof(*tree->parts));
    if (!tree->parts) return error_nomem(err);
    for (uint32_t i = 0; i < value->count; i++) {
        if (is_constant(value, i, constant)) {
            struct template_tree *kept = ARENA_NEW(arena, struct template_tree);
            if (!kept) return error_nomem(err);
            *kept = (struct template_tree){.source = *part_of(value, i)};
            tree->parts[i] = kept;
            continue;
        }
        enum code rc = template_tree_compile(part_of(value, i), arena, &tree->parts[i], where, err);
        if (rc) return rc;
    }
    return OK;
}

struct tree_place { // of a part in the tree
    const struct tree_place *above;
    struct str key; // empty: an item
    uint32_t index;
};

struct tree_run {
    const struct template_scope *scope;
    const struct template_limits *limits;
    struct tree_steps steps;
    struct arena *arena;
    struct json *missing; // NULL: what is undefined is as `limits` say
};

static void add_place(struct buf *out, const struct tree_place *place)
{
    if (!place) return;
    add_place(out, place->above);
    if (place->key.len > 0 && out->len > 0) buf_byte(out, '.');
    buf_add(out, place->key);
    if (place->key.len == 0) buf_printf(out, "[%u]", place->index);
}

static enum code keep_missing(struct tree_run *run, const struct tree_place *place, struct str text, const struct error *why,
                              struct error *err)
{
    struct buf path = buf_of(1024);
    add_place(&path, place);
    const char *message = why->message, prefix[] = "template: ";
    if (strncmp(message, prefix, sizeof(prefix) - 1) == 0) message += sizeof(prefix) - 1;
    struct str where = buf_keep(&path, run->arena), told = arena_copy(run->arena, str_from(message));
    if (!where.ptr || !told.ptr) return error_nomem(err);
    json_append(run->arena, run->missing,
                JSON_OF(run->arena, {"path", json_some(where)}, {"text", json_string(text)}, {"why", json_string(told)}));
    return json_made(run->missing, err);
}

static enum code render(struct tree_run *run, const struct template_tree *tree, const struct tree_place *place, struct json *out,
                        struct error *err)
{
    struct error why = {0};
    if (tree->text) {
        enum code rc = render_within(tree->text, run->scope, run->limits, &run->steps, run->arena, out, run->missing ? &why : err);
        if (!run->missing || !rc) return rc;
        *out = tree->source;
        bool here = rc == E_NOT_FOUND || rc == E_INVALID || rc == E_LIMIT || rc == E_UNSUPPORTED; // not what stops all rendering
        return here ? keep_missing(run, place, tree->source.text, &why, err) : error_set(err, rc, "%s", why.message);
    }
    *out = tree->source;
    if (!tree->parts) return OK;
    uint32_t count = tree->source.count;
    bool array = tree->source.type == JSON_ARRAY;
    struct json made = array ? json_array() : json_object();
    if (!array && !json_object_with(run->arena, count, &made)) return error_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        struct json part;
        struct tree_place inner = {place, array ? STR("") : tree->source.members[i].key, i};
        enum code rc = render(run, tree->parts[i], &inner, &part, err);
        if (rc) {
            if (rc != E_NOMEM && !array) error_wrap(err, "%.*s", STR_ARG(tree->source.members[i].key));
            return rc;
        }
        bool ok = array ? json_push(run->arena, &made, part) : json_put(run->arena, &made, tree->source.members[i].key, part);
        if (!ok) return error_nomem(err);
    }
    *out = made;
    return OK;
}

enum { TREE_TIMES = 2 };

enum code template_tree_render(const struct template_tree *tree, const struct template_scope *scope,
                               const struct template_limits *limits, struct arena *arena, struct json *out,
                               struct error *err)
{
    if (!limits) limits = &template_limits_default;
    struct tree_run run = {.scope = scope, .limits = limits, .steps.max = TREE_TIMES * limits->step_count_max, .arena = arena};
    return render(&run, tree, NULL, out, err);
}

enum code template_tree_known(const struct template_tree *tree, const struct template_scope *scope,
                              const struct template_limits *limits, struct arena *arena, struct json *out,
                              struct json *missing, struct error *err)
{
    struct template_limits strict = *(limits ? limits : &template_limits_default);
    strict.undefined = TEMPLATE_STRICT;
    struct tree_run run = {.scope = scope, .limits = &strict, .steps.max = TREE_TIMES * strict.step_count_max, .arena = arena,
                           .missing = missing};
    return render(&run, tree, NULL, out, err);
}

const struct json *template_tree_source(const struct template_tree *tree)
{
    return &tree->source;
}

bool template_tree_dynamic(const struct template_tree *tree)
{
    return tree->text || tree->parts;
}

void template_tree_names(const struct template_tree *tree, void (*visit)(void *context, struct str name), void *context)
{
    if (tree->text) template_names(tree->text, visit, context);
    for (uint32_t i = 0; tree->parts && i < tree->source.count; i++)
        template_tree_names(tree->parts[i], visit, context);
}
