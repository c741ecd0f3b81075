// when = and { "||" and }; and = atom { "&&" atom }. Kept as a flat list of atoms, each with the joint before it: the value
// is an or over runs of ands.
#include "expr/internal.h"

#include <string.h>

enum { ATOM_COUNT_MAX = 256 };

struct when {
    struct when_atom *atoms;
    size_t count;
};

struct parser {
    struct str text;
    size_t at;
    const struct scope *scope;
    struct error *err;
};

static enum code trouble(const struct parser *p, size_t at, const char *what)
{
    return error_at(p->err, E_INVALID, 1, (uint32_t)at + 1, "condition: %s, at offset %zu: %.*s", what, at,
                    STR_ARG(str_slice(p->text, at, p->text.len)));
}

static void skip_blanks(struct parser *p)
{
    while (p->at < p->text.len && strchr(" \t\r\n", p->text.ptr[p->at]) && p->text.ptr[p->at]) p->at++;
}

static bool accept(struct parser *p, const char *token)
{
    if (!str_starts(str_slice(p->text, p->at, p->text.len), str_from(token))) return false;
    p->at += strlen(token);
    return true;
}

// A number is what JSON says a number is.
static bool number_of(struct str text, struct arena *arena, struct json *out)
{
    text = str_trim(text);
    bool plausible = text.len && (text.ptr[0] == '-' || (text.ptr[0] >= '0' && text.ptr[0] <= '9'));
    return plausible && json_parse(text, &json_limits_default, arena, out, NULL) == OK;
}

static enum code parse_reference(struct parser *p, struct when_atom *atom)
{
    size_t start = p->at;
    struct ref_match match;
    if (p->at == p->text.len || p->text.ptr[p->at] != '$')
        return trouble(p, start, "a reference must stand here ($node.output, $INPUTS.name)");
    if (!ref_at(p->text, p->at, p->scope, REF_IN_WHEN, &match)) return trouble(p, start, "not a reference");
    p->at += match.len;
    if (p->at < p->text.len && !strchr(" \t\r\n=!<>", p->text.ptr[p->at]))
        return trouble(p, p->at, "unexpected character after a reference");
    atom->left = match.ref;
    return OK;
}

static enum code parse_operator(struct parser *p, struct when_atom *atom)
{
    static const char *const operators[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < ARRAY_COUNT(operators); i++) {
        size_t start = p->at;
        if (accept(p, operators[i])) {
            atom->operator_text = str_slice(p->text, start, p->at);
            return OK;
        }
    }
    return trouble(p, p->at, "an operator must stand here (== != < > <= >=)");
}

static enum code parse_right(struct parser *p, struct arena *arena, struct when_atom *atom)
{
    size_t start = p->at;
    if (accept(p, "'")) {
        size_t end = str_find(p->text, '\'', p->at);
        if (end == p->text.len) return trouble(p, start, "a text without its closing quote");
        atom->right = str_slice(p->text, p->at, end);
        p->at = end + 1;
        return OK;
    }
    while (p->at < p->text.len && (char_is_word(p->text.ptr[p->at]) || strchr("+-.", p->text.ptr[p->at]))) p->at++;
    struct json unused;
    atom->right = str_slice(p->text, start, p->at);
    if (!str_is(atom->right, "true") && !str_is(atom->right, "false") && !number_of(atom->right, arena, &unused))
        return trouble(p, start, "a 'text', a number, true or false must stand here");
    return OK;
}

static enum code parse_atom(struct parser *p, struct arena *arena, struct when_atom *atom)
{
    skip_blanks(p);
    atom->offset = p->at;
    enum code rc = parse_reference(p, atom);
    if (rc) return rc;
    skip_blanks(p);
    rc = parse_operator(p, atom);
    if (rc) return rc;
    skip_blanks(p);
    rc = parse_right(p, arena, atom);
    atom->text = str_slice(p->text, atom->offset, p->at);
    skip_blanks(p);
    return rc;
}

enum code when_parse(struct str text, const struct scope *scope, struct arena *arena, const struct when **out,
                     struct error *err)
{
    struct parser p = {.text = text, .scope = scope, .err = err};
    struct when *when = ARENA_NEW(arena, struct when);
    size_t capacity = 0;
    bool or_before = false;
    if (!when) return error_nomem(err);
    for (;;) {
        if (when->count == ATOM_COUNT_MAX) return trouble(&p, p.at, "more than 256 comparisons");
        if (!ARENA_ROOM(arena, when->atoms, when->count, &capacity)) return error_nomem(err);
        struct when_atom *atom = &when->atoms[when->count];
        *atom = (struct when_atom){.or_before = or_before};
        enum code rc = parse_atom(&p, arena, atom);
        if (rc) return rc;
        when->count++;
        if (p.at == text.len) break;
        or_before = accept(&p, "||");
        if (!or_before && !accept(&p, "&&")) return trouble(&p, p.at, "&& or || must stand here");
    }
    *out = when;
    return OK;
}

const struct when_atom *when_atoms(const struct when *when, size_t *count)
{
    *count = when->count;
    return when->atoms;
}

// Equality is one of texts. A real that is whole has two of them, 7.0 and 7: what made it may not know the difference.
static bool equal(const struct json *value, struct str left, struct str right)
{
    if (str_eq(left, right)) return true;
    return json_is(value, JSON_NUMBER) && str_ends(left, STR(".0")) && str_eq(str_slice(left, 0, left.len - 2), right);
}

static bool compare(const struct when_atom *atom, const struct json *value, struct str left, struct arena *arena)
{
    if (str_is(atom->operator_text, "==")) return equal(value, left, atom->right);
    if (str_is(atom->operator_text, "!=")) return !equal(value, left, atom->right);
    struct json a, b;
    if (!number_of(left, arena, &a) || !number_of(atom->right, arena, &b)) return false;
    int order = json_number_cmp(&a, &b);
    if (str_is(atom->operator_text, "<")) return order < 0;
    if (str_is(atom->operator_text, ">")) return order > 0;
    return str_is(atom->operator_text, "<=") ? order <= 0 : order >= 0;
}

enum code when_atom_eval(const struct when_atom *atom, const struct scope *scope, struct arena *arena,
                         struct when_step *out, struct error *err)
{
    struct json value;
    enum code rc = ref_value(&atom->left, scope, arena, &value, err);
    if (rc) return rc;
    if (expr_text(&value, arena, &out->left)) return error_nomem(err);
    out->atom = atom;
    out->result = compare(atom, &value, out->left, arena);
    return OK;
}

enum code when_eval(const struct when *when, const struct scope *scope, struct arena *arena, bool *result,
                    const struct when_step **trace, struct error *err)
{
    struct when_step *steps = ARENA_ARRAY(arena, when->count, struct when_step);
    if (!steps) return error_nomem(err);
    bool any = false, all = true;
    if (trace) *trace = steps;
    for (size_t i = 0; i < when->count; i++) {
        const struct when_atom *atom = &when->atoms[i];
        enum code rc = when_atom_eval(atom, scope, arena, &steps[i], err);
        if (rc) return rc;
        if (atom->or_before) {
            any |= all;
            all = true;
        }
        all &= steps[i].result;
    }
    *result = any | all;
    return OK;
}
