// Templates: the part of Jinja that playbooks use, with Python's meaning of values and operators. Pure and bounded.
//
//  - A text that is one `{{ expression }}` and white space around it gives the value with its type; every other text gives
//    a string, with values written as Python's str() writes them.
//  - A result is data: nothing here ever reads a result as a template again.
//  - Values are struct json, plus "undefined": a struct json whose type is TEMPLATE_UNDEFINED.
//  - docs/format/template.md has the language and everything in which it differs from Jinja2.
//  - A compiled template is immutable and may be rendered by many threads at once, each with its own arena.
#ifndef CAIRN_TEMPLATE_TEMPLATE_H
#define CAIRN_TEMPLATE_TEMPLATE_H

#include "base/arena.h"
#include "base/error.h"
#include "json/json.h"

enum { TEMPLATE_UNDEFINED = 31 }; // struct json.type

struct template;

// What an undefined value may be used for.
enum template_undefined {
    TEMPLATE_LENIENT = 0, // as Jinja: it is false, empty and prints as nothing; its members and arithmetic are errors
    TEMPLATE_CHAIN,       // as LENIENT, and its members are undefined too
    TEMPLATE_STRICT,      // only `is defined`, `is undefined` and default() may see it
};

struct template_limits {
    uint32_t step_count_max; // of one template; twice as many are for all templates of one tree
    uint32_t loop_count_max; // rounds of one {% for %}
    size_t output_size_max;  // of the result and of every string on the way to it
    enum template_undefined undefined;
};
extern const struct template_limits template_limits_default; // reliability §4.4, lenient

struct template_local {
    struct str name;
    struct json value;
};

struct template_meter {
    uint32_t taken, max; // steps
    const char *of;      // "one decision": what has as many, in messages
};

#define TEMPLATE_NOW "{now}"
#define TEMPLATE_TOKEN "{token}" // and a name behind it: what token(name) gives

struct template_scope {
    void *context;
    // The value of a free name, asked for when it is needed, maybe more than once. OK with *out untouched: there is none.
    // May be NULL. Values must live as long as the arena of the rendering. TEMPLATE_NOW, which no template can write, is the
    // time that now() tells, as RFC 3339 text.
    enum code (*lookup)(void *context, struct str name, struct json *out, struct error *err);
    // The same for the member `member` of the name `name` itself, asked before its value is looked at. May be NULL.
    enum code (*over)(void *context, struct str name, struct str member, struct json *out, struct error *err);
    // What stands for the member `member` of `value`, which is what `name`, `name.results[i]` or, of the keychain, `name.x`
    // has, when it has no such member. OK with *out untouched: nothing. May be NULL.
    enum code (*instead)(void *context, struct str name, const struct json *value, struct str member, struct json *out,
                         struct error *err);
    uint64_t *spent; // the steps that renderings take are added here; may be NULL
    struct template_meter *meter; // what several renderings share; NULL: nothing
    const struct template_local *locals; // seen before `lookup` is asked
    size_t local_count;
};

// `text` is borrowed and must outlive the template. E_INVALID, E_UNSUPPORTED (known to Jinja, or an unknown filter, test or
// function), E_LIMIT (nesting), E_NOMEM; err has line and column within the text.
enum code template_compile(struct str text, struct arena *arena, const struct template **out,
                           struct error *err) MUST_CHECK;
// The same for one expression without its braces, as conditions have it.
enum code template_expression(struct str text, struct arena *arena, const struct template **out,
                              struct error *err) MUST_CHECK;
// Does the text hold anything but plain text?
bool template_is_dynamic(struct str text);

// E_NOT_FOUND: something undefined was used. E_INVALID: a type or a value does not fit. E_LIMIT, E_NOMEM, and what `lookup`
// returns. A lone expression that is undefined gives the empty string, as Jinja prints it. The result borrows from the
// template, the scope and `arena`. `limits` may be NULL: the defaults.
enum code template_render(const struct template *t, const struct template_scope *scope,
                          const struct template_limits *limits, struct arena *arena, struct json *out,
                          struct error *err) MUST_CHECK;
// The same, read as a condition: false are what Python takes for false and the texts "", "false", "0", "no" and "none" in
// any case.
enum code template_condition(const struct template *t, const struct template_scope *scope,
                             const struct template_limits *limits, struct arena *arena, bool *out,
                             struct error *err) MUST_CHECK;

// JSON with templates in its texts: what a task gets. Keys are never templates; other values stay as they are.
struct template_tree;
// `value` is borrowed. When a text is no template, *where is it (for its place). Errors as of template_compile.
enum code template_tree_compile(const struct json *value, struct arena *arena, const struct template_tree **out,
                                const struct json **where, struct error *err) MUST_CHECK;
// The same, but what the object has under the key `constant` is never read as a template.
enum code template_tree_compile_but(const struct json *value, struct str constant, struct arena *arena,
                                    const struct template_tree **out, const struct json **where,
                                    struct error *err) MUST_CHECK;
// The same shape with every text rendered; constant parts are borrowed, not copied. Errors as of template_render.
enum code template_tree_render(const struct template_tree *tree, const struct template_scope *scope,
                               const struct template_limits *limits, struct arena *arena, struct json *out,
                               struct error *err) MUST_CHECK;
// The same for readers: a text that uses something undefined, or cannot be rendered, stays as it is written, and {path, text, why} of it
// is added to the array *missing. What `lookup` returns, E_NOMEM.
enum code template_tree_known(const struct template_tree *tree, const struct template_scope *scope,
                              const struct template_limits *limits, struct arena *arena, struct json *out,
                              struct json *missing, struct error *err) MUST_CHECK;
// The value as it was compiled from.
const struct json *template_tree_source(const struct template_tree *tree);
// Is there anything to render?
bool template_tree_dynamic(const struct template_tree *tree);
// template_names of all its texts.
void template_tree_names(const struct template_tree *tree, void (*visit)(void *context, struct str name),
                         void *context);

// Calls `visit` for every name that the template reads, its own (set, for) included; a name may come twice.
void template_names(const struct template *t, void (*visit)(void *context, struct str name), void *context);
// The same for what it reads of them, each as an expression: `a.b['c'][0]`, of `a.b.get(x)` `a.b` and `x`. Valid during the call.
void template_paths(const struct template *t, void (*visit)(void *context, struct str path), void *context);

#endif
