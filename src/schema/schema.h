// JSON Schema 2020-12, the part that Cairn uses, compiled once and then applied without allocating.
//
// A keyword that the compiler does not know is an error (E_UNSUPPORTED naming the keyword and its place), never ignored:
// what validates here validates elsewhere. docs/format/schema.md lists the supported keywords.
// A schema is immutable after schema_compile and may be shared by threads.
#ifndef CAIRN_SCHEMA_SCHEMA_H
#define CAIRN_SCHEMA_SCHEMA_H

#include "json/json.h"

struct schema;
struct schema_set; // documents that may refer to each other by $ref

enum code schema_set_open(struct arena *arena, struct schema_set **out) MUST_CHECK;
// `document` must outlive the set. `uri` is what others write in $ref ("event-common.json"); $id, when present, counts too.
enum code schema_set_add(struct schema_set *set, struct str uri, const struct json *document,
                         struct error *err) MUST_CHECK;
// `uri` may carry a fragment: "signal.json#/$defs/pause".
enum code schema_compile(struct schema_set *set, struct str uri, const struct schema **out,
                         struct error *err) MUST_CHECK;

struct schema_fault {
    char pointer[160];        // JSON Pointer into the instance, cut when longer
    char message[240];        // "must be one of ..." with the keyword's demand and what was found
    const struct json *value; // the offending value (its line and column place the error in a document)
};

// True when `value` fits. `fault` (may be NULL) tells the first thing that does not.
bool schema_valid(const struct schema *schema, const struct json *value, struct schema_fault *fault);

// Files carried inside the binary (schemas/), by path relative to schemas/: "plan.json", "run-events/RunStarted.json".
struct str schema_embedded(const char *name);   // empty when absent
const char *schema_embedded_name(size_t index); // NULL past the end
// Adds those of a folder ("signals"), or all (NULL), parsed in `arena`, which must outlive the set.
enum code schema_set_embed(struct schema_set *set, const char *folder, struct arena *arena,
                           struct error *err) MUST_CHECK;
// Adds the components of the description of the interface as "openapi.json", with which references begin as in the description:
// "openapi.json#/components/schemas/NAME". `document` (may be NULL): what was added, in `arena`.
enum code schema_set_components(struct schema_set *set, struct arena *arena, const struct json **document,
                                struct error *err) MUST_CHECK;
struct str schema_components(void); // their text
// A set with every embedded schema in it.
enum code schema_set_embedded(struct arena *arena, struct schema_set **out, struct error *err) MUST_CHECK;

#endif
