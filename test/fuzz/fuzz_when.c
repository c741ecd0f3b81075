// Any bytes as a condition, as a text with references and as a shell script. A condition that parses has its atoms inside
// the text and in order; what is listed as a known reference is what gets replaced; a script keeps the rule that values are
// never part of its text, except where the header says so.
#include "expr/expr.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char marked[] = "\xF0\x9F\x94\xA5marked value; touch pwned";

static bool known(void *context, struct str name)
{
    (void)context;
    return str_is(name, "a") || str_is(name, "a.b") || str_is(name, "n") || str_is(name, "parse-args");
}

static enum code lookup(void *context, const struct ref *ref, struct arena *arena, struct json *out, struct error *err)
{
    (void)context;
    struct json value = json_string(str_from(marked));
    if (ref->kind == REF_OUTPUT && str_is(ref->node, "n")) value = json_int(-7);
    if (ref->kind == REF_OUTPUT && str_is(ref->node, "a.b")) value = json_string(STR("{\"x\":1.5,\"y\":[true,null]}"));
    if (ref->kind != REF_OUTPUT) {
        *out = value;
        return OK;
    }
    return expr_field(&value, ref->path, arena, out, err);
}

static const struct scope scope = {.known = known, .lookup = lookup};

static void check_when(struct str text, struct arena *arena)
{
    const struct when *when = NULL;
    struct error err = {0};
    enum code rc = when_parse(text, &scope, arena, &when, &err);
    if (rc) {
        INVARIANT(rc == E_INVALID);
        INVARIANT(err.column >= 1 && err.column <= text.len + 1);
        return;
    }
    size_t count, at = 0;
    const struct when_atom *atoms = when_atoms(when, &count);
    INVARIANT(count > 0);
    for (size_t i = 0; i < count; i++) {
        INVARIANT(atoms[i].offset >= at);
        at = atoms[i].offset + atoms[i].text.len;
        INVARIANT(at <= text.len);
        INVARIANT(atoms[i].text.ptr == text.ptr + atoms[i].offset);
    }
    bool result = false;
    const struct when_step *trace = NULL;
    rc = when_eval(when, &scope, arena, &result, &trace, &err);
    INVARIANT(rc == OK || rc == E_NOT_FOUND);
    if (rc) return;
    bool any = false, all = true;
    for (size_t i = 0; i < count; i++) {
        any |= atoms[i].or_before && all;
        all = trace[i].result && (all || atoms[i].or_before);
    }
    INVARIANT(result == (any || all));
}

struct count {
    struct str text;
    size_t known;
};

static void visit(void *context, const struct ref *ref, size_t offset, bool is_known)
{
    struct count *count = context;
    INVARIANT(offset + ref->text.len <= count->text.len);
    INVARIANT(!memcmp(count->text.ptr + offset, ref->text.ptr, ref->text.len));
    INVARIANT(ref->text.len > 1 && ref->text.ptr[0] == '$');
    count->known += is_known;
}

static bool contains(struct str text, struct str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++)
        if (str_starts(str_slice(text, i, text.len), part)) return true;
    return false;
}

static void check_texts(struct str text, struct arena *arena)
{
    struct count count = {.text = text};
    struct error err = {0};
    struct str filled;
    expr_refs(text, &scope, visit, &count);
    enum code rc = subst_text(text, &scope, arena, &filled, &err);
    INVARIANT(rc == OK || rc == E_NOT_FOUND);
    if (!rc && !count.known) INVARIANT(str_eq(filled, text));
    struct subst script;
    err = (struct error){0};
    rc = subst_shell(text, &scope, arena, &script, &err);
    INVARIANT(rc == OK || rc == E_NOT_FOUND || rc == E_INVALID || rc == E_LIMIT);
    if (rc) return;
    if (!count.known && !contains(text, STR("${"))) INVARIANT(str_eq(script.text, text) && script.env_count == 0);
    // Only here-documents with quoted delimiters take text.
    if (!contains(text, STR("<<")) && !contains(text, str_from(marked)))
        INVARIANT(!contains(script.text, str_from(marked)));
    for (size_t i = 0; i < script.env_count; i++)
        INVARIANT(script.env[i].name.len && !contains(script.env[i].value, (struct str){"\0", 1}));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct arena arena;
    if (size > 16 * 1024) return 0;
    arena_init(&arena, 64 * 1024, 256 * 1024 * 1024);
    check_when(text, &arena);
    check_texts(text, &arena);
    arena_release(&arena);
    return 0;
}
