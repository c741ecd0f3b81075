// References, `when` conditions, substitution, and trigger rules: what a document may say about the results of other steps.
//
// A reference is $<node>.output, $<node>.output.<field>[.<field>...], $<node>.<field> (in `when` only), $INPUTS.<name>,
// $ARGUMENTS, $WORKFLOW_ID or $ARTIFACTS_DIR. Node ids: [A-Za-z_][A-Za-z0-9_-]* in workflows; plan step ids may also hold
// digits first and dots, so a reference is matched against the names the caller knows, longest first.
//
// The language is total and bounded: no loops, no host access, no evaluation of results.
#ifndef CAIRN_EXPR_EXPR_H
#define CAIRN_EXPR_EXPR_H

#include "json/json.h"

enum ref_kind { REF_OUTPUT = 1, REF_INPUT, REF_ARGUMENTS, REF_WORKFLOW_ID, REF_ARTIFACTS_DIR };

struct ref {
    enum ref_kind kind;
    struct str node; // REF_OUTPUT
    struct str path; // dotted field path; empty = the whole output. REF_INPUT: the input's name and path
    struct str text; // as written, for messages
};

// What the caller knows about the scope of an expression.
struct scope {
    void *context;
    // Is `name` a step that a reference here may name?
    bool (*known)(void *context, struct str name);
    // The value of a reference. A skipped step's output is JSON null without error. E_NOT_FOUND: missing field or input
    // (err says which); E_CONFLICT: the producer failed or has not ended.
    enum code (*lookup)(void *context, const struct ref *ref, struct arena *arena, struct json *out, struct error *err);
    bool preview; // what is not known yet is given as "<$reference>", which may stand where only numbers may
};

// The field `path` of an output. An output that is a string holding a JSON object or array is parsed first (shell steps
// print JSON). E_NOT_FOUND when there is no such field.
enum code expr_field(const struct json *output, struct str path, struct arena *arena, struct json *out,
                     struct error *err) MUST_CHECK;
// How a value looks in text: strings bare, everything else as compact JSON; null is empty.
enum code expr_text(const struct json *value, struct arena *arena, struct str *out) MUST_CHECK;

// ---- when: atoms joined by && (tighter) and ||, no parentheses, quotes respected.
// atom = reference operator right; operator == != < > <= >=; right = 'text' or a bare number, true, false.
// == and != compare as text; the others need finite numbers on both sides (else the atom is false).
struct when;

struct when_atom {
    struct ref left;
    struct str operator_text;
    struct str right; // unquoted
    struct str text;  // the whole atom as written
    size_t offset;    // of the atom in the condition
    bool or_before;   // joined to the previous atom by || (else &&; meaningless for the first)
};

struct when_step { // how one atom came out: the trace that `why` shows
    const struct when_atom *atom;
    struct str left; // value as text
    bool result;
};

// E_INVALID: err->column is the 1-based offset of the trouble in `text`.
enum code when_parse(struct str text, const struct scope *scope, struct arena *arena, const struct when **out,
                     struct error *err) MUST_CHECK;
const struct when_atom *when_atoms(const struct when *when, size_t *count);
// One atom; *out is set when it can be had.
enum code when_atom_eval(const struct when_atom *atom, const struct scope *scope, struct arena *arena,
                         struct when_step *out, struct error *err) MUST_CHECK;
// Evaluates every atom (no short cut: a missing field is an error wherever it stands). trace (may be NULL) gets one entry
// per atom, in `arena`. Errors of lookup are passed on: the step then fails, and the atoms from the faulty one on are zero.
enum code when_eval(const struct when *when, const struct scope *scope, struct arena *arena, bool *result,
                    const struct when_step **trace, struct error *err) MUST_CHECK;

// ---- substitution
// Calls `each` for every reference in `text` (offset in bytes); unknown names are reported too, with known = false, when
// the text has the shape $name.output.
typedef void (*ref_visit)(void *context, const struct ref *ref, size_t offset, bool known);
void expr_refs(struct str text, const struct scope *scope, ref_visit each, void *context);

struct subst_env {
    struct str name, value;
};

struct subst {
    struct str text;
    const struct subst_env *env; // to be set for the shell that runs `text`
    size_t env_count;
};

// For shells. The value never becomes program text: it travels in an environment variable and the reference is replaced
// by an expansion that fits its place (bare, inside "...", inside '...', here-document), so no value can inject a command
// and a value always arrives whole. Numbers and booleans are inserted as they are. $ARGUMENTS, $WORKFLOW_ID and
// $ARTIFACTS_DIR are plain variables of the same name: they are left in the text and set in env; bare ones are quoted.
enum code subst_shell(struct str text, const struct scope *scope, struct arena *arena, struct subst *out,
                      struct error *err) MUST_CHECK;
// Plain text, values inserted as they are (scripts in other languages, messages).
enum code subst_text(struct str text, const struct scope *scope, struct arena *arena, struct str *out,
                     struct error *err) MUST_CHECK;
// Every string inside `value`; a string that is exactly one reference becomes the referenced value with its type.
enum code subst_json(const struct json *value, const struct scope *scope, struct arena *arena, struct json *out,
                     struct error *err) MUST_CHECK;

// ---- trigger rules: decided when every dependency is terminal
// X(name, text, aliases..., meaning)
enum parent_state { PARENT_SUCCESS = 1, PARENT_FAILED, PARENT_SKIPPED };

#define TRIGGER_RULE_LIST(X)                                                                                           \
    X(ALL_SUCCESS, "all_success")                                                                                      \
    X(ONE_SUCCESS, "one_success")                                                                                      \
    X(NONE_FAILED_MIN_ONE_SUCCESS, "none_failed_min_one_success")                                                      \
    X(ALL_DONE, "all_done")                                                                                            \
    X(ALL_FAILED, "all_failed")                                                                                        \
    X(ONE_FAILED, "one_failed")                                                                                        \
    X(NONE_FAILED, "none_failed")                                                                                      \
    X(NONE_SKIPPED, "none_skipped")                                                                                    \
    X(ONE_DONE, "one_done")                                                                                            \
    X(ALL_SKIPPED, "all_skipped")                                                                                      \
    X(ALL_DONE_MIN_ONE_SUCCESS, "all_done_min_one_success")                                                            \
    X(ALWAYS, "always")

enum trigger_rule {
    RULE_NONE = 0,
#define X(name, text) RULE_##name,
    TRIGGER_RULE_LIST(X)
#undef X
};

// Accepts the names above and Airflow's aliases ("none_failed_or_skipped" -> none_failed_min_one_success, "dummy" ->
// always). RULE_NONE when unknown.
enum trigger_rule rule_parse(struct str text);
const char *rule_name(enum trigger_rule rule);
// Without parents every rule passes.
bool rule_passes(enum trigger_rule rule, uint32_t success, uint32_t failed, uint32_t skipped);

#endif
