// Private to src/program: what the two readers, the compiler and the loader share.
//
//   program.c  loads: one `load` per call of program_load, one `reader` per document of it
//   plan.c, nodes.c  tree to drafts;  fields.c, bodies.c  the fields both have;  playbook*.c  playbooks (playbook.h)
//   compile.c  drafts to numbered steps, dependencies, order;  refs.c  conditions and references
//   parts.c  other files: named scripts and child documents
//
// Faults are reported and reading goes on; only memory ends it, through the sticky `failed`.
#ifndef CAIRN_PROGRAM_INTERNAL_H
#define CAIRN_PROGRAM_INTERNAL_H

#include "json/make.h"
#include "program/program.h"

enum {
    EDGE_COUNT_MAX = 50000,   // dependencies, times program_scale
    NESTING_MAX = 16,         // loops in loops, documents in documents
    ITERATION_MAX = 10000,    // max_iterations
    ARTIFACT_COUNT_MAX = 1000, // of one step, times program_scale
};

#define DURATION_MAX_MS INT64_C(315360000000) // ten years

struct span {
    uint32_t line, column, width;
};

// A step as written: the step itself and what its place in the graph is made from.
struct draft {
    struct program_step step;
    const struct json *deps;     // list of ids; NULL when not given
    const struct json *when;     // text
    const struct json *document; // SUBRUN: what it asks for
    struct span at;              // of its id, or of itself when it has none
    bool outside;                // its code comes from a file: references in it are not ours to check
    struct draft *children;      // LOOP
    uint32_t child_count;
};

struct draft_list {
    struct draft *items;
    size_t count, capacity;
};

// Test seams and the ceiling of one program's memory.
struct load_options {
    size_t size_max;
    int64_t fail_in;
    bool fail_sticky;
};

struct loaded { // a child document that was read in this call of program_load
    struct str file;
    struct program *program; // NULL: it has errors
    uint32_t height;         // levels of documents, its own included
};

struct chain { // the documents being read, innermost first
    struct str file;
    const struct chain *outer;
    uint32_t depth;
};

struct load {
    const struct program_loader *loader;
    struct diagnostics *diagnostics;
    const struct load_options *options;
    uint32_t steps_max, edges_max;
    struct arena scratch;
    struct loaded *loaded;
    size_t loaded_count, loaded_capacity;
    struct map loaded_by_file;
};

struct reader {
    struct load *load;
    struct program *program;
    struct arena *arena;   // the program's
    struct arena *scratch; // dies with the call of program_load
    struct diagnostics *diagnostics;
    struct str file;    // outlives the program
    struct str text;    // of the document
    const char *code;   // contract code for what is being read
    bool failed;        // out of memory
    bool full;          // no room for more steps (reported)
    bool implied_order; // no step of the plan has dependencies: each one follows the one before
    enum on_failure on_failure;
    uint32_t step_count;  // read so far, loops included
    uint32_t *line_start; // offsets of lines, made when first needed
    uint32_t line_count;
    struct program_part *parts;
    size_t part_count, part_capacity;
    struct map part_by_key;
    uint32_t height;
};

// ---- program.c
enum code program_load_with(struct str text, struct str file, const struct program_loader *loader,
                            const struct load_options *options, struct diagnostics *diagnostics, struct program **out,
                            struct error *err) MUST_CHECK;
enum code load_document(struct load *load, struct str text, struct str file, const struct chain *outer,
                        struct program **out, uint32_t *height) MUST_CHECK;
// Writes the key of (scope, id) in program->ids into `out`; empty when the id is too long to exist.
struct str id_key(uint32_t scope, struct str id, char out[static 160]);

// ---- schedule.c
void schedule_field_read(struct reader *r, const struct json *value); // NULL: there is none

// ---- limits.c; NULL: there is none
void document_limits_read(struct reader *r, const struct json *value); // before the steps
void limit_of_read(struct reader *r, const struct json *value, const struct step_limit **out);
void step_limit_of_read(struct reader *r, const struct json *value, struct program_step *step); // after its kind is known

// ---- readers
void plan_read(struct reader *r, const struct json *root, struct draft_list *list);
void nodes_read(struct reader *r, const struct json *root, struct draft_list *list);

// ---- places (place.c)
struct span place_of(struct reader *r, const struct json *value);
struct span place_of_key(struct reader *r, const struct json_member *member);
// Of `part`, which stands somewhere inside the text `value`; *from (may be NULL) says where to go on looking and is moved.
struct span place_inside(struct reader *r, const struct json *value, struct str part, size_t *from);

#define PLACE_ARG(r, at) (r)->file, (at).line, (at).column, (at).width
// The first bytes of a text of the user, for "%.*s".
#define SHOW(s) (int)((s).len > 72 ? 72 : (s).len), (s).ptr
#define ERROR(r, id, at, ...) diagnose((r)->diagnostics, SEVERITY_ERROR, id, (r)->code, PLACE_ARG(r, at), __VA_ARGS__)
#define WARNING(r, id, at, ...)                                                                                        \
    diagnose((r)->diagnostics, SEVERITY_WARNING, id, (r)->code, PLACE_ARG(r, at), __VA_ARGS__)
#define HINT(r, d, ...) diagnostic_hint((r)->diagnostics, d, __VA_ARGS__)

// ---- fields (fields.c)
struct nearest {
    struct str name;
    struct str best; // empty: nothing is near
    size_t distance;
};
struct nearest nearest_to(struct str name);
void nearest_try(struct nearest *nearest, struct str candidate);
void hint_nearest(struct reader *r, struct diagnostic *d, const struct nearest *nearest);

struct field {
    const char *name, *other; // two spellings of one field; `other` may be NULL
};
// Reports members that are in no row and fields given in both spellings. `what` names the object in messages.
// The version of a document: a text or a number; without one the beginning of its hash (C-64).
void version_read(struct reader *r, const struct json *version);
void fields_check(struct reader *r, const struct json *object, const struct field *fields, size_t count,
                  const char *what);
// NULL when absent or null.
const struct json *field(const struct json *object, const char *name, const char *other);
// As field(), but reports its absence at `at`.
const struct json *field_required(struct reader *r, const struct json *object, const char *name, const char *other,
                                  struct span at, const char *what);

bool wrong_type(struct reader *r, const struct json *value, const char *name, const char *wanted);
bool read_text(struct reader *r, const struct json *value, const char *name, struct str *out);
bool read_bool(struct reader *r, const struct json *value, const char *name, bool *out);
bool read_count(struct reader *r, const struct json *value, const char *name, int64_t min, int64_t max, int64_t *out);
bool read_ms(struct reader *r, const struct json *value, const char *name, int64_t *out);
// `choices` ends with NULL; *out is the index.
bool read_choice(struct reader *r, const struct json *value, const char *name, const char *const *choices, size_t *out);
bool read_texts(struct reader *r, const struct json *value, const char *name, const struct str **out, uint32_t *count);
bool read_object(struct reader *r, const struct json *value, const char *name);
bool read_item(struct reader *r, const struct json *value, const char *what); // "a step", of a list
void read_tags(struct reader *r, const struct json *value);
void read_inputs(struct reader *r, const struct json *value);
void read_rule(struct reader *r, const struct json *value, const char *name, enum trigger_rule *out);
void read_secrets(struct reader *r, const struct json *value, struct program_step *step);
void read_artifacts(struct reader *r, const struct json *value, struct program_step *step);
void read_overflow(struct reader *r, const struct json *value, enum overflow *out);
// After the kind of the step is known.
void read_output(struct reader *r, const struct json *value, struct program_step *step);
void read_when(struct reader *r, const struct json *value, struct draft *draft);
void read_deps(struct reader *r, const struct json *value, const char *name, struct draft *draft);
void read_retry_plan(struct reader *r, const struct json *value, struct retry_policy *retry);
void read_retry_nodes(struct reader *r, const struct json *value, struct retry_policy *retry);

// Room for `count` drafts, so that the list is not copied while it grows.
void drafts_reserve(struct reader *r, struct draft_list *list, size_t count);
// Where `compensate` of a step stands: it becomes a step of its own behind all others, ID.undo.
struct undo_at {
    const struct json *value;
    const struct json *id; // of the step that it undoes
};
// The draft for it, or NULL; its body and the rest are read by the caller.
struct draft *undo_draft(struct reader *r, const struct undo_at *at, struct draft_list *list);
// Room for so many drafts and for those that undo them.
void drafts_reserve_undo(struct reader *r, struct draft_list *list, const struct json *steps);
// A new draft with everything at its default, or NULL.
struct draft *draft_add(struct reader *r, struct draft_list *list);

// ---- bodies (bodies.c): each fills step.kind and step.with. `at` is where to point when something is missing.
void put(struct reader *r, struct json *object, const char *key, struct json value);
void body_plan(struct reader *r, struct draft *draft, enum step_kind kind, const struct json *with, struct span at);
void body_message(struct reader *r, struct draft *draft, enum step_kind kind, const struct json *message);
void body_argv(struct reader *r, struct draft *draft, const struct json *argv, const char *name);
void body_shell(struct reader *r, struct draft *draft, const struct json *command);
// Exactly one of code and file is given.
void body_script(struct reader *r, struct draft *draft, const struct json *runtime, const struct json *code,
                 const struct json *file, struct span at);
void body_wait(struct reader *r, struct draft *draft, const struct json *duration, const struct json *until,
               struct span at);
void body_approval(struct reader *r, struct draft *draft, const struct json *message, const struct json *timeout,
                   const struct json *on_timeout);
void body_event(struct reader *r, struct draft *draft, const struct json *name, const struct json *correlation);
void body_subrun(struct reader *r, struct draft *draft, const struct json *document, const struct json *inputs,
                 const struct json *arguments);
// env and cwd, and stdin and args where the kind has them; NULL is absent.
void body_env(struct reader *r, struct draft *draft, const struct json *env);
void body_text(struct reader *r, struct draft *draft, const char *name, const struct json *value);
bool is_host_kind(const struct reader *r, struct str name); // a function that the program that loads the document has
bool is_task_kind(const struct reader *r, struct str name); // a tool of playbooks that is not our own
void hint_kinds(struct reader *r, struct diagnostic *d, struct str name); // the kinds there are, the nearest first
void body_host(struct reader *r, struct draft *draft, const struct json *with);

// ---- compile.c, refs.c, parts.c
struct compiler {
    struct reader *r;
    struct program *program;
    struct draft **drafts; // by step index
    uint32_t *level;       // in the order of its scope; 0 for steps without dependencies
    uint32_t *mark;        // stamps for walks
    uint32_t *queue;
    uint32_t stamp;
    uint32_t walk_budget;
};
// The draft of every step by index, or NULL when memory ran out or there is nothing to compile.
struct draft **compile(struct reader *r, const struct draft_list *list);
void refs_check(struct compiler *c, uint32_t step);

bool part_load(struct reader *r, enum part_kind kind, const struct json *request, struct str runtime, struct str *file,
               struct str *text);
void children_load(struct reader *r, struct draft **drafts, const struct chain *chain);
// The program that `document` names, retained, or NULL (reported). `later`: what cannot be had now may be there when it is
// needed, so that everything wrong with it is a warning.
// REQUIRED: what is not there is a mistake. LATER: a warning; it is looked for again when it is needed. MAYBE: not a word.
enum child_need { CHILD_REQUIRED, CHILD_LATER, CHILD_MAYBE };
// NULL when there is none; *file (may be NULL) is then that of the document around this one that it would be, if it is one.
const struct program *child_of(struct reader *r, const struct json *document, const struct chain *chain,
                               enum child_need need, struct str *around);
void parts_finish(struct reader *r);

#endif
