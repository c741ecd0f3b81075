// Text to a tree with positions, and what is wrong with it.
//
// doc_tree reads JSON or YAML (1.2 core schema: `no` is a string, `0o17` an integer) into the same struct json, every value and key with
// its line and column. YAML comes through libyaml's events in yaml.c and nowhere else: tags and multiple documents are
// refused, anchors and merge keys (<<) expand within limits, duplicate keys are an error.
//
// Diagnostics are collected, never thrown: a reader that can go on goes on, so a user sees all mistakes at once.
#ifndef CAIRN_DOC_DOC_H
#define CAIRN_DOC_DOC_H

#include "json/json.h"

enum severity { SEVERITY_ERROR = 1, SEVERITY_WARNING };

struct diagnostic {
    enum severity severity;
    const char *id;   // "E0203", explained by `cairn help E0203`
    const char *code; // contract code when there is one: "INVALID_STEP_SCHEMA", "INVALID_PLAN_SCHEMA", ... or ""
    struct str file;
    struct str source;            // contents of `file` when it is not the main document (a child); else ptr is NULL
    uint32_t line, column, width; // 1-based; width in bytes of what is marked, at least 1
    struct str message;
    struct str note; // what shows it: a counterexample; mostly empty
    struct str hint; // empty when there is nothing useful to say
    bool hidden;     // the source line holds a secret: it is not shown
};

struct diagnostics {
    struct arena *arena;
    struct diagnostic *items;
    size_t count, capacity;
    uint32_t error_count, warning_count;
    size_t count_max;  // further ones are counted, not kept
    struct str source; // given to every new entry; set by a reader while it reads a child document
    bool failed;       // memory ran out, so some were counted that should have been kept
};

// Every id with a title and an explanation for `cairn help ID`. X(id, title, explanation) in doc/diagnostic_list.h.
struct diagnostic_info {
    const char *id, *title, *explanation;
};
const struct diagnostic_info *diagnostic_info(const char *id);  // NULL when unknown
const struct diagnostic_info *diagnostic_info_at(size_t index); // NULL past the end

void diagnostics_init(struct diagnostics *diagnostics, struct arena *arena);
// Formats the message; returns the entry to which a hint may be added, or NULL when it was only counted.
struct diagnostic *diagnose(struct diagnostics *diagnostics, enum severity severity, const char *id, const char *code,
                            struct str file, uint32_t line, uint32_t column, uint32_t width, const char *format, ...)
    PRINTF_LIKE(9, 10);
void diagnostic_note(struct diagnostics *diagnostics, struct diagnostic *diagnostic, const char *format, ...)
    PRINTF_LIKE(3, 4);
void diagnostic_hint(struct diagnostics *diagnostics, struct diagnostic *diagnostic, const char *format, ...)
    PRINTF_LIKE(3, 4);
// By (line, column), errors and warnings mixed; entries of one file stay together, files in order of appearance.
void diagnostics_sort(struct diagnostics *diagnostics);
// "FILE:LINE:COL: error[E0203] message", the source line with the place marked, note and hint. `text` is the
// contents of the main document; diagnostics of other files carry their own.
void diagnostic_write(struct buf *out, const struct diagnostic *diagnostic, struct str text, bool color);

struct doc_limits {
    size_t size_max;         // 8 MiB JSON
    size_t yaml_size_max;    // 1 MiB
    uint32_t depth_max;      // 64
    uint32_t node_count_max; // 100,000, alias expansion included
};
extern const struct doc_limits doc_limits_default;
#define DOC_MORE_STEPS "--max-steps N allows more, of steps and of values (`cairn help E0505`)" // the hint of such a limit

// JSON when the first character that is not white space is '{' or '[', else YAML. Nothing in *out when it returns E_INVALID
// (then there is at least one error diagnostic). Strings borrow `text` or live in `arena`.
enum code doc_tree(struct str text, struct str file, const struct doc_limits *limits, struct arena *arena,
                   struct json *out, struct diagnostics *diagnostics) MUST_CHECK;

// TOML 1.0 without dates, as one object; values and keys carry their places. E_INVALID with the place in `err`; E_LIMIT.
enum code toml_parse(struct str text, struct arena *arena, struct json *out, struct error *err) MUST_CHECK;

#endif
