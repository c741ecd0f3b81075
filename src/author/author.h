// What helps to write documents: pictures of them, proofs about them. Everything is a function of the program or its text:
// the same document gives the same bytes, whatever the machine.
#ifndef CAIRN_AUTHOR_AUTHOR_H
#define CAIRN_AUTHOR_AUTHOR_H

#include "contract/contract.h"
#include "program/program.h"

// ---- graph: layers by longest path, crossings reduced by barycenters, loops as boxes around their children

enum graph_format { GRAPH_TEXT = 1, GRAPH_DOT, GRAPH_MERMAID, GRAPH_SVG };

// The state of a step in a run, as the caller shows states: glyph and word always, colour besides.
struct graph_mark {
    const char *glyph, *word;
    const char *paint; // GRAPH_TEXT: sequence that begins the colour; NULL = none
    struct str note;   // how long it took, why it failed; may be empty
};

struct graph_options {
    enum graph_format format;
    size_t columns; // GRAPH_TEXT: of the terminal
    bool utf8;      // GRAPH_TEXT: box drawing characters, else ASCII
    bool all;       // GRAPH_TEXT: show every step of a fan-out instead of "997 more like load-3"
    void *context;
    // Of a run: the mark of a step. NULL: a document, nothing has happened. False: the step was not reached.
    bool (*mark)(void *context, uint32_t step, struct graph_mark *out);
};

// GRAPH_TEXT falls back to a list when the graph does not fit the columns. E_LIMIT: too many long edges for an
// SVG that anybody could read; E_NOMEM.
enum code graph_write(struct buf *out, const struct program *program, const struct graph_options *options,
                      struct arena *arena, struct error *err) MUST_CHECK;
// The same for programs that draw it themselves: {planId, planVersion, documentKind, steps, arcs}. Borrows the program.
enum code graph_json(const struct program *program, struct arena *arena, struct json *out,
                     struct error *err) MUST_CHECK;

// ---- soundness: what can never happen, with the reason

enum sound_answer { SOUND_NO = 1, SOUND_YES, SOUND_UNKNOWN };

// For every step of the program whether its body can ever be started. NO is a proof; UNKNOWN: too many steps before it.
enum code sound_reach(const struct program *program, struct arena *arena, enum sound_answer *answers,
                      struct error *err) MUST_CHECK;
// The same as diagnostics (E06xx): dead steps, joins that never fire, conditions that never hold, approvals that nobody is
// asked for, results that nobody can use, retries and loops that cannot be. Each with what shows it. Child documents are
// looked at too.
enum code sound_check(const struct program *program, struct diagnostics *diagnostics, struct error *err) MUST_CHECK;

// ---- layout

// The program's document in its canonical layout: JSON with the fields in the order of docs/format, YAML indented by two with
// its comments. E_UNSUPPORTED: no layout was found that provably means the same. Formatting the result changes nothing.
enum code author_format(const struct program *program, const struct program_loader *loader, struct arena *arena,
                        struct str *out, struct error *err) MUST_CHECK;
// The document of a plan as canonical JSON, whatever it was written in.
enum code author_canonical(const struct program *program, const struct program_loader *loader, struct arena *arena,
                           struct str *out, struct error *err) MUST_CHECK;
// The compiled program as text, without places in the document and hashes of it.
enum code author_meaning(struct buf *out, const struct program *program, struct error *err) MUST_CHECK;
// Whether `text`, read in place of the program's document, compiles to the same program.
enum code author_same(const struct program *program, struct str text, const struct program_loader *loader,
                      struct arena *arena, bool *same, struct error *err) MUST_CHECK;
// Unified differences of two texts.
enum code author_diff(struct buf *out, struct str name, struct str before, struct str after, struct arena *arena,
                      struct error *err) MUST_CHECK;

// A value as YAML in block style, for people and for programs that read YAML.
void yaml_write(struct buf *out, const struct json *value);

// ---- conversion

// The program's document in the other format: plans as JSON, node workflows as YAML. E_UNSUPPORTED: it says something that the
// other format cannot say; every such thing is a diagnostic (E0801) with its place, and nothing is written.
enum code author_convert(const struct program *program, enum document_kind to, struct diagnostics *diagnostics,
                         struct arena *arena, struct buf *out, struct error *err) MUST_CHECK;

// ---- what a document will do

// planRef, inputs, approvals, secrets, files, steps in the order they can start, the longest way through by declared limits.
enum code author_plan(const struct program *program, struct str uri, struct arena *arena, struct json *out,
                      struct error *err) MUST_CHECK;

struct render_result { // how a step came out, or is assumed to
    uint32_t step;
    bool failed, skipped;
    struct json value;
};

struct render_facts {
    struct run_ids ids; // run empty: not known yet
    struct json inputs; // an object; defaults included
    struct str arguments, artifacts_dir;
    const struct render_result *results;
    uint32_t result_count;
};

// One step: stepId, kind, when (with every comparison), with, referenceEnvironment (values that a shell gets as variables),
// secrets, unknown (references without a value, shown as <reference>), error (the step would fail with it). Of a playbook: stepId and
// `ahead`, for each task {task, kind, with, unknown?}; E_INVALID when its workload cannot be made.
enum code author_render(const struct program *program, uint32_t step, const struct render_facts *facts,
                        struct arena *arena, struct json *out, struct error *err) MUST_CHECK;

// ---- schemas

// What an embedded schema ("plan.json", "signals/PAUSE.json") says at a path of field names, lists passed through:
// "steps.retry.backoff". *out: path, types, itemTypes, allowed, default, description, examples, limits, fields (each the same
// with name and required); *raw: the schema itself. E_NOT_FOUND: *nearest (may be NULL) is the field that may be meant.
enum code author_schema(struct str file, struct str path, struct arena *arena, struct json *out, struct json *raw,
                        const char **nearest, struct error *err) MUST_CHECK;

// ---- examples, carried in the binary

struct example {
    struct str id, file; // "joins", "joins.yaml"
    struct str what;     // one line
    struct str text;
    struct str needs; // another embedded file that has to stand beside it, or empty
};
bool example_at(size_t index, struct example *out); // false past the end
bool example_find(struct str id, struct example *out);
struct str example_file(struct str name); // any embedded file, also "scripts/count-words.py"; empty when absent
// The example with another name: its planId or name. False: memory ran out.
bool example_named(struct buf *out, const struct example *from, struct str name) MUST_CHECK;

#endif
