// Any bytes as a template and as an expression: a fault has its place in the text, what compiles ends within its limits, a
// result is a plain value, and rendering twice gives the same.
#include "template/template.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct json vars;

static enum code lookup(void *context, struct str name, struct json *out, struct error *err)
{
    (void)context;
    (void)err;
    const struct json *found = json_get(&vars, name);
    if (found) *out = *found;
    return OK;
}

static void check(struct str text, bool expression, enum template_undefined undefined, struct arena *arena)
{
    const struct template *t = NULL;
    struct error err = {0};
    struct json value, again;
    struct template_scope scope = {.lookup = lookup};
    struct template_limits limits = {20000, 1000, 256 * 1024, undefined};
    enum code rc = expression ? template_expression(text, arena, &t, &err) : template_compile(text, arena, &t, &err);
    INVARIANT(rc == OK || rc == E_INVALID || rc == E_UNSUPPORTED || rc == E_LIMIT);
    if (rc) {
        INVARIANT(err.line >= 1 && err.column >= 1 && err.column <= text.len + 1);
        return;
    }
    rc = template_render(t, &scope, &limits, arena, &value, &err);
    INVARIANT(rc == OK || rc == E_INVALID || rc == E_UNSUPPORTED || rc == E_LIMIT || rc == E_NOT_FOUND);
    if (rc) return;
    if (value.type == JSON_STRING)
        INVARIANT(value.text.len <= (text.len > limits.output_size_max ? text.len : limits.output_size_max));
    INVARIANT(template_render(t, &scope, &limits, arena, &again, NULL) == OK);
    INVARIANT(json_equal(&value, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char document[] = "{\"n\":7,\"f\":2.5,\"s\":\"h\xC3\xA9llo\",\"l\":[3,1,2],\"m\":[1,\"a\",null,true,2."
                                   "5],\"d\":{\"a\":1,\"b\":{\"c\":[]}},"
                                   "\"r\":[{\"k\":1,\"v\":\"x\"},{\"k\":2,\"v\":\"Y\"}],\"x\":null,\"y\":true}";
    struct str text = {(const char *)data, size};
    struct arena arena;
    if (size > 16 * 1024 || !str_utf8(text)) return 0;
    arena_init(&arena, 64 * 1024, 1024 * 1024 * 1024);
    INVARIANT(json_parse(str_from(document), NULL, &arena, &vars, NULL) == OK);
    check(text, false, TEMPLATE_LENIENT, &arena);
    check(text, false, TEMPLATE_STRICT, &arena);
    check(text, true, TEMPLATE_CHAIN, &arena);
    arena_release(&arena);
    return 0;
}
