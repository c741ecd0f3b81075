// The language of `cairn ls`: which runs are meant. The same text means the same in every place that takes a query.
//
//   status=FAILED plan~release started>2h (error=TIMEOUT or took>10m) not tag=nightly
//
// A query is read once, then asked about one run after the other. What the head of a run tells is enough for most clauses;
// the others are UNKNOWN until the document or the log of the run is given (three-valued logic: "status=FAILED error=TIMEOUT"
// reads no log of a run that did not fail). docs/format/query.md has the grammar and all fields.
#ifndef CAIRN_VIEW_QUERY_H
#define CAIRN_VIEW_QUERY_H

#include "view/view.h"

struct query;

struct query_fault {
    size_t at, len;     // bytes of the text that it is about
    struct error error; // E_INVALID or E_NOMEM
    struct error hint;  // its message is "" when there is none
};

// NULL: not readable, or out of memory; *fault says which. `now_ms` is what ages
// are counted from. Everything is in `arena`; `text` is copied. The empty text means all runs.
const struct query *query_parse(struct str text, int64_t now_ms, struct arena *arena, struct query_fault *fault);

struct query_facts {
    // of the head
    enum run_status status;
    enum vocabulary vocabulary;
    struct str substatus, plan, version, name, run, project, environment, parent, original, cause;
    int64_t created_ms, started_ms, ended_ms, updated_ms; // 0 = not yet
    uint64_t events;
    uint32_t running, failed, completed, skipped;
    bool owned;
    // of the document and of the log; NULL: not read yet
    const struct program *program;
    const struct run_view *view; // made with view_plan
};

enum query_answer { QUERY_NO = 0, QUERY_YES, QUERY_UNKNOWN /* more must be read */ };
enum query_answer query_ask(const struct query *query, const struct query_facts *facts);

// What every run that matches has for certain: for a store that can look these up. The query must be asked all the same.
struct query_bounds {
    uint32_t status_mask;       // bit (1 << run_status); 0 = any
    struct str plan;            // empty = any
    struct str run_prefix;      // empty = any
    int64_t since_ms, until_ms; // created, both inclusive; 0 = open
    bool nothing;               // no run can match
};
void query_bounds(const struct query *query, struct query_bounds *out);
// Whether the answer tells what a run was given or said (input., cause): a guess that is right is the value.
bool query_names_payload(const struct query *query);

// The fields, for help texts: NULL past the end.
struct query_field_info {
    const char *name;   // "status", "input.NAME"
    const char *values; // what it is compared with
    const char *about;
};
const struct query_field_info *query_field_at(size_t index);

#endif
